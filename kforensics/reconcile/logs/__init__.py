"""One log as its broker loads it, and where two logs differ."""
