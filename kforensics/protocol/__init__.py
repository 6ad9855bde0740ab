"""Kafka's rules as pure functions, each with its source."""
