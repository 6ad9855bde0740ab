"""Rows of a timeline: the sentences that every rendering tells, each with what shows it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.reconcile.incident.model import Truncation
from kforensics.reconcile.timeline.events import TimelineEntry
from kforensics.render.events import GRAVE, cut_sentence, told


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """One row; `time_ms` in UTC."""

    time_ms: int | Absent
    words: str
    is_strong: bool
    """Worth a second look."""
    citations: tuple[Citation, ...]


def happenings(entries: Iterable[TimelineEntry], cuts: Iterable[Truncation] = ()) -> list[Happening]:
    """Entries and cuts by time, those without a time last; alike ones of one moment become one row.

    Args:
        entries: of the timeline.
        cuts: in place of the entries for them, since they know where the log ended before.
    """
    rows = [
        Happening(time_ms=one.time_ms, words=one.words, is_strong=one.kind in GRAVE, citations=one.citations)
        for one in told(entries)
    ]
    rows += [
        Happening(time_ms=cut.time_ms, words=cut_sentence(cut, "→"), is_strong=True, citations=cut.citations)
        for cut in cuts
    ]
    rows.sort(key=lambda row: (not isinstance(row.time_ms, int), row.time_ms if isinstance(row.time_ms, int) else 0))
    return rows


def rows_within(rows: Sequence[Happening], most: int) -> tuple[list[Happening], int]:
    """The first rows, and how many are left."""
    return list(rows[:most]), max(0, len(rows) - most)
