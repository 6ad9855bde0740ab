"""Hostile input, failing disks, untouched evidence, reproducible answers."""
