"""What a capture holds of segments: rows, columns and digests, and how they become segments, batches and records again."""
