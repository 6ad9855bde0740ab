"""The rules of Kafka as pure functions, each with its source."""
