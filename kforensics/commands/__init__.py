"""The commands, without a command line: inputs in, results out, in as many processes as are allowed."""
