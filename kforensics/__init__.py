"""Read-only log forensics over Kafka broker data directories."""

__version__ = "0.1.0"
