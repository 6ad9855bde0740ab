"""Checks of one partition directory against itself: each module one concern, no inference across brokers."""
