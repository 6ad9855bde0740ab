"""Seals taken, checked and signed."""
