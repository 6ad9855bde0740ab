"""The incident of a partition, put together from all that is known."""
