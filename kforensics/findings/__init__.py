"""The statements of the tool, each with its code, severity, confidence and citations."""
