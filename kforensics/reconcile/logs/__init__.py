"""A log as its broker loads it, and the first difference of two logs."""
