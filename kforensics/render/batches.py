"""What fields of batches are called, wherever they are shown."""

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
"""Compression codecs by the number in a batch's attributes."""

NO_TIME = -1
"""The timestamp of a batch or record that has none."""
