"""Facts from metadata logs and broker logs: leaders, in-sync replicas, truncations and settings."""
