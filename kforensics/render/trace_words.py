"""Until when the bytes of a copy stay on disk, in words, for screens and pages."""

from kforensics.damage import Absent
from kforensics.reconcile.trace.model import Until
from kforensics.words import utc_text


def until_words(until: Until) -> str:
    """Return until when bytes stay on disk: the reason, and the times that are known.

    Args:
        until: as far as settings and file times show it.
    """
    words = until.statement
    if not isinstance(until.not_before_ms, Absent):
        words += f", not before {utc_text(until.not_before_ms)}"
    if not isinstance(until.by_ms, Absent):
        words += f", due by {utc_text(until.by_ms)}"
    return words
