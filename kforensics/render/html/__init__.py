"""HTML pages: one file each, without scripts and external resources."""
