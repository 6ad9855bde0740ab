"""What the tool states, each statement with its code, severity, confidence and citations."""
