"""How often tests repeat what one repetition nearly always shows too: seldom while working, often by night."""

import os

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")


def times(usual: int, deep: int) -> int:
    """The first number, and with `HYPOTHESIS_PROFILE=deep` the second."""
    return deep if PROFILE == "deep" else usual


OF_EACH_KIND = (
    "damaged-leader-2.8",
    "disk-replaced-4.x",
    "fast-failover-1.1",
    "hw-loss-0.10",
    "last-standing-3.3",
    "late-return-2.4",
    "power-cut-2.8",
    "recreated-topic-4.x",
    "unclean-election-4.x",
)
"""Recordings of which each has a protocol or a loss that no other of them has: those of a test of all recordings that run by day."""
