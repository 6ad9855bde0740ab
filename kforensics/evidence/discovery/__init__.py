"""What the paths on a command line are: nodes, log directories, partition directories, settings."""
