"""Files of the evidence, opened read-only: this layer knows files, not records."""
