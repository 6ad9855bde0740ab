"""Real brokers as the judge of what is predicted."""
