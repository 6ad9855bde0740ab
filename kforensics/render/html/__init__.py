"""Pages: one file each, without script and without anything from elsewhere."""
