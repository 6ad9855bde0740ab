"""Taking a capture: what to read and in which order, what each segment comes to, and the file that all goes into."""
