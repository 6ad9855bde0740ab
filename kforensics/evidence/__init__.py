"""What each disk says, without inference across brokers."""
