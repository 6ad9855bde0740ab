"""Kafka's own log loader as the judge of what `kforensics predict` says of made directories."""
