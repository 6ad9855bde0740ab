"""The chosen batches of a partition as runs of bytes and as records, each read from where it lies."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kforensics.errors import EvidenceError, FormatError
from kforensics.evidence.captured.reading import is_whole, readable_ranges
from kforensics.evidence.checks.producers import ABORT, COMMIT, parse_marker
from kforensics.evidence.discovery.inputs import WHOLE_INPUT
from kforensics.evidence.model import BUCKET_OFFSETS, BatchReader, Segment
from kforensics.evidence.replica.ends import PartOfFile
from kforensics.formats.log.batch_table import BATCH_HEADER, BatchTable
from kforensics.formats.log.records import parse_body_records
from kforensics.formats.primitives.word_buffer import SegmentBytes
from kforensics.reconcile.history.log_copies import LogCopy
from kforensics.reconcile.logs.loaded_log import Marker, Outcomes, are_markers
from kforensics.reconcile.salvage import Selection
from kforensics.source.mapped import EvidenceFile, open_evidence, open_image

BECAME_SHORTER = "it has become shorter"

_KEPT_OPEN = 8
_LARGEST_MARKER = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Chosen batches that lie one behind the other in one file."""

    copy: int
    label: int
    rows: BatchTable

    @property
    def start(self) -> int:
        """The position of the first batch."""
        return int(self.rows["position"][0])

    @property
    def end(self) -> int:
        """The position behind the last batch."""
        return int(self.rows["position"][-1]) + int(self.rows["length"][-1])

    @property
    def segment(self) -> int:
        """The index of the segment in the replica."""
        return int(self.rows["segment"][0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Batches over the same offsets, of one leader epoch, whose records are taken together: what a cleaner left, and what was there before."""

    label: int
    parts: tuple[Run, ...]
    """The preferred first."""


def runs_of(selection: Selection) -> Iterator[Run | Merge]:
    """Yield the batches of a selection as runs, in order of label and offset; runs of several copies to be merged where a cleaner passed one of them."""
    rows, copies, labels = selection.rows, selection.copies, selection.labels
    clusters = _clusters(selection)
    ends = rows["position"].astype(np.int64) + rows["length"]
    breaks = (
        (np.diff(copies) != 0)
        | (np.diff(labels) != 0)
        | (np.diff(rows["segment"]) != 0)
        | (rows["position"][1:] != ends[:-1])
        | (np.diff(clusters) != 0)
    )
    edges = [0, *(np.flatnonzero(breaks) + 1).tolist(), len(rows)]
    waiting: list[Run] = []
    cluster = -1
    for first, end in pairwise(edges):
        run = Run(copy=int(copies[first]), label=int(labels[first]), rows=rows[first:end])
        mine = int(clusters[first])
        if waiting and mine != cluster:
            yield Merge(label=waiting[0].label, parts=tuple(sorted(waiting, key=lambda one: one.copy)))
            waiting = []
        cluster = mine
        if mine < 0:
            yield run
        else:
            waiting.append(run)
    if waiting:
        yield Merge(label=waiting[0].label, parts=tuple(sorted(waiting, key=lambda one: one.copy)))


def _clusters(selection: Selection) -> NDArray[np.int64]:
    """For each row the number of the group that is merged, -1 for none."""
    out = np.full(len(selection.rows), -1, dtype=np.int64)
    if not selection.merged.any():
        return out
    number = 0
    begin, reach, label = 0, -1, -1
    bases, lasts = selection.rows["base_offset"].tolist(), selection.rows["last_offset"].tolist()
    labels = selection.labels.tolist()
    for at in range(len(out) + 1):
        if at < len(out) and labels[at] == label and bases[at] <= reach:
            reach = max(reach, lasts[at])
            continue
        if selection.merged[begin:at].any() and at - begin > 1:
            out[begin:at] = number
            number += 1
        if at < len(out):
            begin, reach, label = at, lasts[at], labels[at]
    return out


def _nothing() -> None:
    pass


@dataclass(slots=True, kw_only=True)
class CopyFiles:
    """The files of the copies of a partition; a few are kept open.

    Args:
        copies: as `BestCopies` numbers them.
        roots: where each input really is, by its index.
        before_close: called before a file is closed that something else may still read.
    """

    copies: Sequence[LogCopy]
    roots: Sequence[Path]
    before_close: Callable[[], None] = _nothing
    _open: dict[tuple[int, str], EvidenceFile] = field(default_factory=dict)

    def segment(self, copy: int, number: int) -> Segment:
        """Return a segment of a copy."""
        return self.copies[copy].view.replica.segments[number]

    def of(self, copy: int, number: int) -> EvidenceFile:
        """Return the file of a segment, opened where it is not; few are kept open."""
        replica = self.copies[copy].view.replica
        key = (replica.input, replica.segments[number].path)
        if key not in self._open:
            while len(self._open) >= _KEPT_OPEN:
                self.before_close()
                self._open.pop(next(iter(self._open))).close()
            opened = open_image if key[1] == WHOLE_INPUT else open_evidence
            self._open[key] = opened(self.roots[replica.input] / key[1])
        return self._open[key]

    def at_hand(self, run: Run) -> NDArray[np.bool_]:
        """Return whether the bytes of each batch are here: of a captured segment some or all may have stayed on the broker."""
        file = self.of(run.copy, run.segment)
        out = np.ones(len(run.rows), dtype=np.bool_)
        if not is_whole(file):
            out[:] = False
            ends = run.rows["position"].astype(np.int64) + run.rows["length"]
            for span in readable_ranges(file):
                out |= (run.rows["position"] >= span.position) & (ends <= span.end)
        return out

    def source(self, run: Run) -> SegmentBytes:
        """Return the bytes to read the batches of a run from; of a captured segment none behind them are asked for."""
        file = self.of(run.copy, run.segment)
        return file if is_whole(file) else PartOfFile(file, run.end)

    def where_missing(self, copy: int, number: int) -> str:
        """Return the file on the broker that a captured segment is of; empty for any other segment."""
        return self.of(copy, number).where

    def close(self) -> None:
        """Close all files."""
        for file in self._open.values():
            file.close()
        self._open.clear()


def outcomes_of(at: int, files: CopyFiles, reader: BatchReader) -> Outcomes:
    """Return the outcome of every transaction of one copy, by the markers in it."""
    replica = files.copies[at].view.replica
    buckets = sorted({int(bucket) for segment in replica.segments for bucket in segment.digests["bucket"]})
    outcomes = Outcomes()
    for bucket in buckets:
        first = bucket * BUCKET_OFFSETS
        rows = reader.batches(replica, first, first + BUCKET_OFFSETS - 1)
        rows = rows[(rows["base_offset"] // BUCKET_OFFSETS == bucket) & are_markers(rows)]
        for row in rows[np.argsort(rows["base_offset"], kind="stable")]:
            marker = marker_of(row, at, files)
            if marker is not None and marker[0] in {ABORT, COMMIT}:
                outcomes.add(Marker(int(row["producer_id"]), int(row["last_offset"]), marker[0] == ABORT))
    return outcomes


def marker_of(row: Any, at: int, files: CopyFiles) -> tuple[int, int] | None:
    """Return type and coordinator epoch of a control batch, None where it ends no transaction."""
    length = int(row["length"])
    if length > _LARGEST_MARKER:
        return None
    try:
        data = files.of(at, int(row["segment"])).read(int(row["position"]), length)
        record = next(parse_body_records(memoryview(data)[BATCH_HEADER.length :], 1), None)
    except (EvidenceError, FormatError):
        return None
    return None if record is None else parse_marker(record.key, record.value)


CERTAINTIES = ("unknown", "certain", "possible", "no")
