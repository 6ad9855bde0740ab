"""The history of the logs of a partition: copies over time, truncations, causes, losses."""
