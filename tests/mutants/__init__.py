"""Rules broken on purpose."""
