"""What the group and transaction coordinators wrote, and what the partitions hold of transactions."""
