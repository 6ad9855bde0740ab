"""Many records at once, as columns of numbers."""
