"""Mutated recordings against every decoder and every command: `python -m tests.fuzz --help`."""
