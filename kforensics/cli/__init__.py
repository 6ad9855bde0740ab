"""The command line: one module, one command."""
