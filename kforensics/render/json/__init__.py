"""Documents: what a program reads."""
