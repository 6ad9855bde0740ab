"""The same functions spread over a fleet of data directories by Spark."""
