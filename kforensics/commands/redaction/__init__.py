"""Names and payloads replaced by stable pseudonyms."""
