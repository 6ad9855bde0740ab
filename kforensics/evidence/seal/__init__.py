"""The seal of evidence: its state at one moment, and the manifest of it."""
