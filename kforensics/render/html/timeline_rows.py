"""Rows of a timeline: the sentences that all renderings share, each with its citations."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.reconcile.incident.model import ExplainedTruncation
from kforensics.reconcile.timeline.events import TimelineEntry
from kforensics.render.events import GRAVE, sentences_of, truncation_sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """One row; `time_ms` in UTC."""

    time_ms: int | Absent
    words: str
    is_strong: bool
    """Whether the row is emphasised."""
    citations: tuple[Citation, ...]


def happenings(entries: Iterable[TimelineEntry], truncations: Iterable[ExplainedTruncation] = ()) -> list[Happening]:
    """Return entries and truncations by time, those without a time last; equal ones of one moment become one row.

    Args:
        truncations: the truncations, which replace their entries, since they have the log end offset before.
    """
    rows = [
        Happening(time_ms=one.time_ms, words=one.words, is_strong=one.kind in GRAVE, citations=one.citations)
        for one in sentences_of(entries)
    ]
    rows += [
        Happening(
            time_ms=truncation.time_ms,
            words=truncation_sentence(truncation, "→"),
            is_strong=True,
            citations=truncation.citations,
        )
        for truncation in truncations
    ]
    rows.sort(key=lambda row: (not isinstance(row.time_ms, int), row.time_ms if isinstance(row.time_ms, int) else 0))
    return rows


def rows_within(rows: Sequence[Happening], most: int) -> tuple[list[Happening], int]:
    """Return the first rows, and how many are left out."""
    return list(rows[:most]), max(0, len(rows) - most)
