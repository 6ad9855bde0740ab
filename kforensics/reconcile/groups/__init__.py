"""Positions of consumer groups through time, and who moved them."""
