"""The answers of the commands: one value with a state, a headline and what to do, shown alike as text, JSON and HTML."""
