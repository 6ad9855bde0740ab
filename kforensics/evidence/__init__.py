"""The evidence of each disk, without inference across brokers."""
