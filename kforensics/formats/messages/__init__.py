"""Messages by schema: the metadata log, the internal topics, control records."""
