"""The on-disk formats of Kafka. Each module decodes one format from bytes to values, and encodes it again."""
