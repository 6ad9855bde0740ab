"""The small files of a log directory and of a partition directory."""
