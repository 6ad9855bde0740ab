"""Was it committed? Certain, possible or no, with the reason, for any run of offsets in one replica's log.

Certain and no need a proof (`commit_proofs`); possible is all else. Acknowledgements are never guessed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from kforensics.damage import Absent
from kforensics.evidence.model import BatchReader, CheckpointValue, Citation
from kforensics.formats.log.batch_table import CONTROL_BIT, BatchTable
from kforensics.reconcile.committed.proofs import Bound, CommitProofs
from kforensics.reconcile.logs.loaded_log import LoadedLog
from kforensics.units import OffsetRange

Certainty = Literal["certain", "possible", "no"]


class CommittedRun(NamedTuple):
    """A run of offsets of one certainty, why, and where that can be checked."""

    offsets: OffsetRange
    certainty: Certainty
    reason: str
    citations: tuple[Citation, ...] = ()
    records: int = 0
    markers: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedCounts:
    """Records by certainty; control markers are counted apart."""

    certain: int = 0
    possible: int = 0
    no: int = 0
    markers: int = 0

    @property
    def records(self) -> int:
        """The number of all records."""
        return self.certain + self.possible + self.no

    def __add__(self, other: "CommittedCounts") -> "CommittedCounts":
        """Return the sums of the counts."""
        return CommittedCounts(
            certain=self.certain + other.certain,
            possible=self.possible + other.possible,
            no=self.no + other.no,
            markers=self.markers + other.markers,
        )

    @property
    def on_a_guess(self) -> "CommittedCounts":
        """The same records where no input shows the leader: nothing is certain then."""
        return CommittedCounts(possible=self.certain + self.possible, no=self.no, markers=self.markers)

    @classmethod
    def of(cls, runs: Sequence[CommittedRun]) -> "CommittedCounts":
        """Return the counts of several runs, by certainty."""
        by_certainty = {"certain": 0, "possible": 0, "no": 0}
        for run in runs:
            by_certainty[run.certainty] += run.records
        return cls(**by_certainty, markers=sum(run.markers for run in runs))


class CommitJudge(CommitProofs):
    """Judges offsets of one partition's replicas by all evidence there is."""

    def runs(self, view: LoadedLog, offsets: OffsetRange) -> tuple[CommittedRun, ...]:
        """Return the offsets of a log in runs of one certainty, in order; another log may hold other records at the same offsets."""
        if offsets.count <= 0:
            return ()
        if self.is_quorum:
            certain, never = self.by_majority(view)
        else:
            certain, never = self.certain_below(view, offsets), self.never_from(view, offsets)
        split = min(max(certain.offset if certain else offsets.first, offsets.first), offsets.last + 1)
        end = min(max(never.offset if never else offsets.last + 1, split), offsets.last + 1)
        out: list[CommittedRun] = []
        if certain and split > offsets.first:
            out.append(_run(offsets.first, split - 1, "certain", certain))
        if end > split:
            out.append(_run(split, end - 1, "possible", Bound(split, self._why_possible(view, split), ())))
        if never and end <= offsets.last:
            out.append(_run(end, offsets.last, "no", never))
        return tuple(out)

    def _why_possible(self, view: LoadedLog, first: int) -> str:
        recorded = view.replica.high_watermark
        if isinstance(recorded, CheckpointValue) and recorded.value > max(first, view.log_end_offset):
            return f"the recorded high watermark {recorded.value} is above the log end {view.log_end_offset}: it may be that of other records"
        if not self.leaderships:
            is_above = self.is_above_all(first)
            above = (
                "above every recorded high watermark"
                if is_above
                else "no recorded high watermark proves them committed"
            )
            return f"{above}; no metadata shows which replicas were in sync"
        if isinstance(recorded, CheckpointValue) and recorded.value > first:
            return f"the recorded high watermark {recorded.value} does not prove them committed; nothing contradicts it"
        if isinstance(recorded, Absent):
            return "no high watermark is recorded; nothing contradicts it"
        return f"above the recorded high watermark {recorded.value}, which is written every 5 s; nothing contradicts it"


def _run(first: int, last: int, certainty: Certainty, bound: Bound) -> CommittedRun:
    return CommittedRun(
        offsets=OffsetRange(first, last), certainty=certainty, reason=bound.reason, citations=bound.citations
    )


def count_runs(runs: Sequence[CommittedRun], view: LoadedLog, reader: BatchReader) -> tuple[CommittedRun, ...]:
    """Return the runs with their records counted from the batches of the replica's log."""
    if not runs:
        return ()
    rows = reader.batches(view.replica, runs[0].offsets.first, runs[-1].offsets.last)
    out = []
    for run in runs:
        records, markers = count_records(rows, run.offsets)
        out.append(run._replace(records=records, markers=markers))
    return tuple(out)


def count_records(rows: BatchTable, offsets: OffsetRange) -> tuple[int, int]:
    """Return how many data records and control markers there are at the offsets, both ends included; a thinned batch counts what it still holds at most."""
    first = np.maximum(rows["base_offset"], offsets.first)
    last = np.minimum(rows["last_offset"], offsets.last)
    inside = np.minimum(np.maximum(last - first + 1, 0), rows["count"])
    control = (rows["attributes"] & CONTROL_BIT) != 0
    magic2 = rows["magic"] == 2
    markers = int(inside[control & magic2].sum())
    return int(inside.sum()) - markers, markers
