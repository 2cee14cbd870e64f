"""Room: protocols."""
