"""The content of one file, value by value."""
