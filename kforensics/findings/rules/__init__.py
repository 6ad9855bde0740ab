"""The rules: each with what it means, what to do, and the function that states it, by subject."""
