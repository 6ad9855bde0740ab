"""Decode many records at once as columns of numbers."""
