"""What became of a record: its copies, its state, and what shows it."""
