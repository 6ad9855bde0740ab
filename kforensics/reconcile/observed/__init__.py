"""What metadata and broker logs say of leaders, in-sync replicas, truncations and settings."""
