"""Commands on files and plans, one module each; `prevalens.__main__` groups them."""
