"""What evidence is at one moment, and its manifest."""
