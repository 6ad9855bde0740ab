"""Find the files of the evidence and open them read-only; this layer knows files, not records."""
