"""Which copy of each offset is the best one, and what is in no copy."""
