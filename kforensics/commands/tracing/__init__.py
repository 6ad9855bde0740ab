"""The parts of `kforensics trace`."""
