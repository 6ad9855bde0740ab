"""What happened, in order of time."""
