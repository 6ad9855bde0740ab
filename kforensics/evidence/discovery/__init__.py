"""Discovery of what the paths on a command line are: nodes, log directories, partition directories, settings."""
