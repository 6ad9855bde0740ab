"""The replicas of a partition as they are now: leader, placement, expected truncations."""
