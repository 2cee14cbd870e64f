"""What the server answers, by place."""
