"""How often tests repeat what one repetition nearly always shows too: seldom while working, often by night."""

import os

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")


def times(usual: int, deep: int) -> int:
    """The first number, and with `HYPOTHESIS_PROFILE=deep` the second."""
    return deep if PROFILE == "deep" else usual
