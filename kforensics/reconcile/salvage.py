"""The best copy of each offset of one partition, out of every copy of its log that any input holds, and the offsets that none has, each with the reason.

Batches of the leader's log come first. Where it has none, a batch of another copy is taken if it is of the leader's lineage: of the leader epoch that the
leader's epochs have at that offset, or above the leader's log end and of no older epoch. Batches that begin and end at the same offsets with the same bytes are one batch,
whatever their leader epoch: an ex-leader may have appended what a client sent again. Where a cleaner has passed, a batch and what the cleaner left of it are
merged. Everything else is an alternate: other content for offsets that are taken already. Batches that fail their checksum are in no copy.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Damage, Gravity
from kforensics.evidence.model import BUCKET_OFFSETS, BatchReader
from kforensics.evidence.replica.segments import add_digests
from kforensics.formats.log.batch_table import NO_EPOCH, BatchesByOffset, BatchTable, empty_batches
from kforensics.formats.primitives.numbers import distinct, first_of_each
from kforensics.reconcile.history.log_copies import LogCopy
from kforensics.reconcile.logs.loaded_log import LoadedLog
from kforensics.reconcile.logs.tiers import RemoteCopies, RemotePart
from kforensics.units import OffsetRange


class GapReason(StrEnum):
    """The reason why records are not among what was saved."""

    COMPACTED = "compacted"
    """A cleaner has passed: a later record of the same key superseded them."""
    RETENTION = "deleted-by-retention"
    """Below the log start: retention or DeleteRecords removed them."""
    REMOTE = "remote"
    """Below the first local segment of a log that begins earlier: on no disk, so in remote storage if anywhere, and the record of its copies is not whole."""
    IN_REMOTE = "in-remote-storage"
    """The same, and a finished copy is on record that brokers read."""
    NEITHER = "in-neither-tier"
    """The same, and the record of the copies, which was read whole, names no such copy."""
    DAMAGED = "damaged"
    """The bytes are there and fail their checksum, and no sound copy is among the inputs."""
    NOT_READ = "not-read"
    """The bytes are there, and more than kforensics reads at once; nothing shows that they are damaged."""
    NOT_CAPTURED = "not-captured"
    """Their bytes stayed on the broker that the capture is of."""
    NEVER_SEEN = "never-seen"
    """No input holds them."""
    OVERLAPPING = "overlapping"
    """Another batch of the same log has some of their offsets, and segments hold an offset once."""
    ABORTED = "aborted"
    """Records of aborted transactions, which consumers were never given."""


ON_PURPOSE = frozenset({GapReason.COMPACTED, GapReason.RETENTION, GapReason.ABORTED, GapReason.IN_REMOTE})
"""Reasons that are no loss: Kafka removed, moved or hid the records by its settings or on request."""

UNREADABLE = frozenset({GapReason.DAMAGED, GapReason.NOT_READ})
"""Reasons for which another copy of the same batch is worth a look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A run of offsets that was not saved."""

    offsets: OffsetRange
    count: int
    """Offsets without a record that was saved; below the number of offsets where several holes are taken together."""
    reason: GapReason
    detail: str = ""
    """Where it is, or what to read, in words."""

    @property
    def is_loss(self) -> bool:
        """Whether it is not by intention."""
        return self.reason not in ON_PURPOSE


class HoleJudge:
    """Says why offsets of a log are in no copy.

    Args:
        logs: all of one incarnation of the topic.
        leader: whose log start and cleaner decide; None where no log does.
        remote: what is on record of copies in remote storage.
        damaged: logs whose damage is why; all where they are not named.
    """

    def __init__(
        self,
        logs: Sequence[LoadedLog],
        leader: LoadedLog | None,
        remote: RemoteCopies | None = None,
        *,
        damaged: Sequence[LoadedLog] | None = None,
    ) -> None:
        self._leader, self._remote = leader, remote or RemoteCopies()
        views = [leader] if leader is not None else logs
        self._log_start = max((view.log_start_offset for view in views), default=0)
        self._content_start = min((view.content_start_offset for view in views), default=0)
        self._cleaned_below = max((view.cleaned_below for view in logs), default=0)
        self._damaged = sorted(
            (
                one.offsets_lost,
                reason_of(one),
                f"input {view.replica.input + 1}, {segment.path}, byte {one.span.position:,}",
            )
            for view in (logs if damaged is None else damaged)
            for segment in view.replica.segments
            for one in segment.damage
            if isinstance(one.offsets_lost, OffsetRange)
        )

    def gaps(self, hole: OffsetRange) -> Iterator[Gap]:
        """Yield the hole, split where the reason changes."""
        edges = {hole.first, self._log_start, self._content_start, self._cleaned_below, hole.last + 1}
        edges |= {edge for one, _, _ in self._damaged for edge in (one.first, one.last + 1)}
        for first, end in pairwise(sorted(edge for edge in edges if hole.first <= edge <= hole.last + 1)):
            offsets = OffsetRange(first, end - 1)
            met = next(((reason, where) for one, reason, where in self._damaged if one.meets(offsets)), None)
            if first < self._log_start:
                yield _gap(*offsets, GapReason.RETENTION)
            elif first < self._content_start and self._leader is None:
                yield _gap(*offsets, GapReason.REMOTE)
            elif first < self._content_start:
                yield from (_gap(*one.offsets, remote_reason(one), one.words) for one in self._parts(offsets))
            elif met is not None:
                yield _gap(*offsets, *met)
            elif first < self._cleaned_below:
                yield _gap(*offsets, GapReason.COMPACTED)
            else:
                copied = [one for one in self._parts(offsets) if one.segment is not None]
                yield from (_gap(*one.offsets, GapReason.IN_REMOTE, one.words) for one in copied)
                yield from (_gap(*one, GapReason.NEVER_SEEN) for one in offsets.without(one.offsets for one in copied))

    def _parts(self, offsets: OffsetRange) -> Iterable[RemotePart]:
        return () if self._leader is None else remote_parts(offsets, self._leader, self._remote)


def remote_parts(offsets: OffsetRange, log: LoadedLog, remote: RemoteCopies) -> Iterator[RemotePart]:
    """Yield offsets of a log that are on no disk, by what is on record of their copies in remote storage."""
    one = log.replica
    return remote.parts(offsets, one.topic_partition, one.topic_id, log.written_epochs, log.log_start_offset)


def remote_reason(part: RemotePart) -> GapReason:
    """Return the reason for which offsets are on no disk."""
    if part.segment is not None:
        return GapReason.IN_REMOTE
    if part.is_deleted:
        return GapReason.RETENTION
    return GapReason.REMOTE if part.lacks else GapReason.NEITHER


def reason_of(place: Damage) -> GapReason:
    """Return the reason for which records at a damaged place are not saved."""
    return GapReason.NOT_READ if place.gravity is Gravity.UNREAD else GapReason.DAMAGED


def _gap(first: int, last: int, reason: GapReason, detail: str = "") -> Gap:
    return Gap(offsets=OffsetRange(first, last), count=last - first + 1, reason=reason, detail=detail)


def join_gaps(gaps: list[Gap], one: Gap) -> None:
    """Add a gap to those before it in the order of offsets; holes that a cleaner left are taken together, whatever lies between them."""
    if gaps:
        last = gaps[-1]
        is_next = one.offsets.first <= last.offsets.last + 1 or one.reason is GapReason.COMPACTED
        if last.reason is one.reason and last.detail == one.detail and is_next:
            offsets = OffsetRange(last.offsets.first, max(one.offsets.last, last.offsets.last))
            gaps[-1] = Gap(offsets=offsets, count=last.count + one.count, reason=one.reason, detail=one.detail)
            return
    gaps.append(one)


def without_held(gaps: Sequence[Gap], held: Sequence[OffsetRange]) -> list[Gap]:
    """Return the gaps without the offsets that no best copy has and an alternate does: some input holds them."""
    out = list(gaps)
    for one in held:
        out = [left for gap in out for left in _outside(gap, one)]
    return out


def _outside(gap: Gap, held: OffsetRange) -> Iterator[Gap]:
    first, last = gap.offsets.first, gap.offsets.last
    if gap.reason is not GapReason.NEVER_SEEN or held.last < first or held.first > last:
        yield gap
        return
    for part in gap.offsets.without([held]):
        yield _gap(part.first, part.last, gap.reason, gap.detail)


MAIN = 0
"""The number of the label of what is no alternate."""

_CERTAINTY = {"certain": 0, "possible": 1, "unknown": 2, "no": 3}


class Label(NamedTuple):
    """The kind of content of one output: the best copy, or other content of an epoch that a replica holds."""

    leader_epoch: int = NO_EPOCH
    owner: str = ""
    """Empty for the best copy."""
    is_of_leader: bool = False
    """It is what the log of the leader holds as it is now."""


MOST_LABELS = 100
"""Alternates of a partition that are kept apart: a hostile log can have a leader epoch a batch."""

OTHERS = Label(owner="others")
"""All alternates above that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A run of offsets of one leader epoch that the final leader does not hold."""

    offsets: OffsetRange
    leader_epoch: int | None
    """-1 for batches without one; None for those of any."""
    holders: frozenset[tuple[int, str]]
    """Input and path of the directories that hold it; empty where none does."""
    committed: str
    is_of_leader: bool = False
    """It is what the leader holds where another replica keeps other content: saved beside that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The batches to take of one bucket of offsets, by label and then by offset."""

    rows: BatchTable
    copies: NDArray[np.int64]
    """The index of the copy that each row is of."""
    labels: NDArray[np.int64]
    merged: NDArray[np.bool_]
    """Whether the records of a row are merged with those of another row at the same offsets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Rows of one copy that are taken together."""

    rows: BatchTable
    copy: int
    label: int
    merged: bool = False


@dataclass(slots=True, kw_only=True)
class BestCopies:
    """Chooses among copies, bucket by bucket of offsets, so that memory does not grow with the log.

    Args:
        copies: all of one incarnation of the topic, the leader's first where there is one, the others with the preferred first.
        leader: whose lineage decides; None where no log does.
        reader: gives batch rows.
        wanted: what to take; None for all that there is.
        only: the copy of which anything is taken.
    """

    copies: Sequence[LogCopy]
    leader: LogCopy | None
    reader: BatchReader
    wanted: Sequence[Wanted] | None = None
    only: int | None = None
    """The copy of which anything is taken; the others only show what need not be."""
    labels: list[Label] = field(default_factory=lambda: [Label()])
    """By number; grows while selections are made."""
    _digests: list[Mapping[int, tuple[int, int, int]]] = field(init=False)
    _numbers: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._digests = [_digests_of(copy) for copy in self.copies]
        self._numbers = [] if self.wanted is None else self._labels_of(self.wanted)

    def selections(self) -> Iterator[Selection]:
        """Yield every batch to take, one bucket of offsets after the other, rising."""
        for bucket in self._buckets():
            taken = list(self._wanted_rows(bucket) if self.wanted is not None else self._all_rows(bucket))
            taken = [one for one in taken if len(one.rows) and self.only in {None, one.copy}]
            if taken:
                yield _selection(taken)

    def _buckets(self) -> list[int]:
        known = sorted({bucket for digests in self._digests for bucket in digests})
        if self.only is not None:
            return sorted(self._digests[self.only])
        if self.wanted is None:
            return known
        places = np.array(known, dtype=np.int64)
        chosen: set[int] = set()
        for one in self.wanted:
            first, last = one.offsets.first // BUCKET_OFFSETS, one.offsets.last // BUCKET_OFFSETS
            begin, end = np.searchsorted(places, [first, last + 1])
            # A batch belongs to the bucket of its base offset and may reach into the next one that there is.
            chosen.update(known[max(int(begin) - 1, 0) : int(end)])
        return sorted(chosen)

    def _rows_of(self, at: int, bucket: int) -> BatchTable:
        if bucket not in self._digests[at]:
            return empty_batches()
        first = bucket * BUCKET_OFFSETS
        rows = self.reader.batches(self.copies[at].view.replica, first, first + BUCKET_OFFSETS - 1)
        rows = rows[rows["base_offset"] // BUCKET_OFFSETS == bucket]
        ordered: BatchTable = rows[np.argsort(rows["base_offset"], kind="stable")]
        if len(ordered) and not _is_one_log(ordered):
            # Segments of several passes of a cleaner, or pieces of an image, may hold a batch more than once.
            _, kept = first_of_each(identities(ordered))
            ordered = ordered[np.sort(kept)]
        return ordered

    # ---- everything ----

    def _all_rows(self, bucket: int) -> Iterator[_Rows]:
        taken = _Taken()
        alternates: dict[int, _Taken] = {}
        compared: list[tuple[int, int, int]] = []
        for at in range(len(self.copies)):
            digest = self._digests[at].get(bucket)
            if digest is None or digest in compared:
                continue
            compared.append(digest)
            rows = self._rows_of(at, bucket)
            rows = rows[taken.are_new(rows)]
            if not len(rows):
                continue
            if taken.is_empty and self.copies[at] is self.leader:
                taken.add(rows)
                yield _Rows(rows=rows, copy=at, label=MAIN)
                continue
            yield from self._beside(rows, at, taken, alternates)

    def _beside(self, rows: BatchTable, at: int, taken: "_Taken", alternates: "dict[int, _Taken]") -> Iterator[_Rows]:
        """Rows of a copy that is not the first: those that fill a hole, those that are merged, and alternates."""
        fits, is_one_log = self._fits_lineage(rows), _is_one_log(rows)
        cleaned_below = self._cleaned_below(at)
        fills, merged, others = [], [], []
        if taken.is_empty and is_one_log and bool(fits.all()):
            taken.add(rows)
            yield _Rows(rows=rows, copy=at, label=MAIN)
            return
        for number, row in enumerate(rows):
            over = taken.over(int(row["base_offset"]), int(row["last_offset"]))
            if len(over) and _is_same_before_cleaning(row, over, cleaned_below):
                merged.append(number)
            elif not len(over) and fits[number]:
                fills.append(number)
            else:
                others.append(number)
                continue
            if not is_one_log:
                # What the cleaner left over of several passes overlaps itself.
                taken.add(rows[number : number + 1])
        if is_one_log:
            taken.add(rows[fills + merged])
        yield _Rows(rows=rows[fills], copy=at, label=MAIN)
        yield _Rows(rows=rows[merged], copy=at, label=MAIN, merged=True)
        aside = rows[others]
        taken.remember(aside)
        for epoch in distinct(aside["partition_leader_epoch"]).tolist():
            label = self._number(Label(epoch, self.copies[at].view.replica.owner))
            alike = aside[aside["partition_leader_epoch"] == epoch]
            yield from _with_thinned(alike, at, label, alternates.setdefault(label, _Taken()), cleaned_below)

    def _cleaned_below(self, at: int) -> int:
        leader = self.leader.view.cleaned_below if self.leader is not None else 0
        return max(self.copies[at].view.cleaned_below, leader)

    def _fits_lineage(self, rows: BatchTable) -> NDArray[np.bool_]:
        if self.leader is None:
            return np.ones(len(rows), dtype=np.bool_)
        view = self.leader.view
        lineage = self.leader.view.epochs or self.leader.view.batch_epochs
        epochs = rows["partition_leader_epoch"].astype(np.int64)
        if not lineage:
            return np.ones(len(rows), dtype=np.bool_)
        starts = np.array([entry.start_offset for entry in lineage], dtype=np.int64)
        numbers = np.array([NO_EPOCH, *(entry.leader_epoch for entry in lineage)], dtype=np.int64)
        expected = numbers[np.searchsorted(starts, rows["base_offset"], side="right")]
        # Below the first epoch that the leader still knows, any lower one may be its own.
        known: NDArray[np.bool_] = (expected == epochs) | ((expected == NO_EPOCH) & (epochs <= numbers[1]))
        above = (rows["base_offset"] >= view.log_end_offset) & (epochs >= numbers[-1])
        known |= above | (epochs == NO_EPOCH)
        return known

    # ---- what was asked for ----

    def _labels_of(self, wanted: Sequence[Wanted]) -> list[int]:
        """Return the number of the label of each entry: of runs of different epochs that share offsets, the surest and then the newest is the best copy."""
        chains: list[list[int]] = []
        for at in sorted(range(len(wanted)), key=lambda at: (_kind(wanted[at]), wanted[at].offsets)):
            one = wanted[at]
            last = chains[-1][-1] if chains else None
            if (
                last is not None
                and _kind(wanted[last]) == _kind(one)
                and one.offsets.first <= wanted[last].offsets.last + 1
            ):
                chains[-1].append(at)
            else:
                chains.append([at])
        leader = _place(self.leader) if self.leader is not None else None
        chains.sort(
            key=lambda chain: (
                leader in wanted[chain[0]].holders,
                min(_CERTAINTY[wanted[at].committed] for at in chain),
                -_kind(wanted[chain[0]])[0],
                wanted[chain[0]].offsets,
            )
        )
        numbers = [MAIN] * len(wanted)
        spans: list[OffsetRange] = []
        for chain in chains:
            span = OffsetRange(wanted[chain[0]].offsets.first, max(wanted[at].offsets.last for at in chain))
            is_beside = wanted[chain[0]].is_of_leader
            if is_beside or any(map(span.meets, spans)):
                first = wanted[chain[0]]
                number = self._number(Label(_kind(first)[0], self._owner_of(first), leader in first.holders))
                for at in chain:
                    numbers[at] = number
            else:
                spans.append(span)
        return numbers

    def _owner_of(self, one: Wanted) -> str:
        held = (copy for copy in self.copies if _place(copy) in one.holders)
        return next((copy.view.replica.owner for copy in held), "no input")

    def _wanted_rows(self, bucket: int) -> Iterator[_Rows]:
        assert self.wanted is not None
        here = [
            (one, number)
            for one, number in zip(self.wanted, self._numbers, strict=True)
            if one.holders and one.offsets.last // BUCKET_OFFSETS >= bucket
        ]
        if not here:
            return
        tables = [self._rows_of(at, bucket) for at in range(len(self.copies))]
        leader_at = next((at for at, copy in enumerate(self.copies) if copy is self.leader), None)
        taken, of_leader = _Taken(), _Taken()
        of_labels: dict[int, _Taken] = {}
        if leader_at is not None and self.leader is not None:
            # What start-up recovery discards of the leader's log is not held by it any more.
            its = tables[leader_at]
            taken.remember(its[its["base_offset"] < self.leader.view.log_end_offset])
        for one, number in here:
            for at, rows in enumerate(tables):
                if not len(rows) or _place(self.copies[at]) not in one.holders:
                    continue
                mask = (rows["base_offset"] <= one.offsets.last) & (rows["last_offset"] >= one.offsets.first)
                if one.leader_epoch is not None:
                    mask &= rows["partition_leader_epoch"] == one.leader_epoch
                known = of_leader if at == leader_at else taken
                found = rows[mask]
                found = found[known.are_new(found)]
                known.remember(found)
                yield from _with_thinned(
                    found, at, number, of_labels.setdefault(number, _Taken()), self._cleaned_below(at)
                )

    def _number(self, label: Label) -> int:
        if label not in self.labels:
            if len(self.labels) > MOST_LABELS:
                label = OTHERS
            if label not in self.labels:
                self.labels.append(label)
        return self.labels.index(label)


def _kind(one: Wanted) -> tuple[int, tuple[tuple[int, str], ...]]:
    """Return what runs of one log have in common: their epoch, or the directory that they are of."""
    return (NO_EPOCH, tuple(sorted(one.holders))) if one.leader_epoch is None else (one.leader_epoch, ())


def _is_one_log(rows: BatchTable) -> bool:
    """Whether no two batches share an offset."""
    reached = np.maximum.accumulate(rows["last_offset"])
    return bool((rows["base_offset"][1:] > reached[:-1]).all())


def _place(copy: LogCopy) -> tuple[int, str]:
    return copy.view.replica.input, copy.view.replica.path


def _digests_of(copy: LogCopy) -> dict[int, tuple[int, int, int]]:
    """Digest of each bucket of offsets over all segments of a replica, those that recovery discards included."""
    found = add_digests([segment.digests for segment in copy.view.replica.segments])
    return {int(row["bucket"]): (int(row["low"]), int(row["high"]), int(row["batches"])) for row in found}


class _Taken(BatchesByOffset):
    """The batches of a bucket that are taken already, by offsets and by identity."""

    def __init__(self) -> None:
        super().__init__(empty_batches())
        self._seen: NDArray[np.void] | None = None

    @property
    def is_empty(self) -> bool:
        return not len(self.rows)

    def are_new(self, rows: BatchTable) -> NDArray[np.bool_]:
        """Whether no batch of the same offsets, length and checksum was seen before."""
        if self._seen is None or not len(rows):
            return np.ones(len(rows), dtype=np.bool_)
        return ~np.isin(identities(rows), self._seen)

    def remember(self, rows: BatchTable) -> None:
        if len(rows):
            found = identities(rows)
            self._seen = found if self._seen is None else np.concatenate([self._seen, found])

    def add(self, rows: BatchTable) -> None:
        """Add batches that are taken: their offsets count as held."""
        if not len(rows):
            return
        self.remember(rows)
        super().__init__(np.concatenate([self.rows, rows]))


_IDENTITY = np.dtype([("base_offset", "<i8"), ("last_offset", "<i8"), ("crc", "<u4"), ("length", "<i4")])


def identities(rows: BatchTable) -> NDArray[np.void]:
    """Return what makes each batch itself, its offsets, length and checksum, as one value that sorts and compares as a whole."""
    out = np.empty(len(rows), dtype=_IDENTITY)
    for name in _IDENTITY.names or ():
        out[name] = rows[name]
    return out


def _is_same_before_cleaning(row: np.void, over: BatchTable, cleaned_below: int) -> bool:
    """Whether a batch and those that are taken at its offsets are one batch and what a cleaner left of it."""
    epoch = int(row["partition_leader_epoch"])
    if not (over["partition_leader_epoch"] == epoch).all():
        return False
    rows = [row, *over]
    is_thinned = any(
        int(one["magic"]) == 2 and int(one["count"]) < int(one["last_offset"]) - int(one["base_offset"]) + 1
        for one in rows
    )
    return is_thinned or int(row["last_offset"]) < cleaned_below


def _with_thinned(rows: BatchTable, at: int, label: int, known: _Taken, cleaned_below: int) -> Iterator[_Rows]:
    """Yield the rows of a copy for an output, and separately those that are merged with rows that are there already: a batch, and what a cleaner left of it."""
    merged = np.zeros(len(rows), dtype=np.bool_)
    is_one_log = _is_one_log(rows)
    if not is_one_log or not known.is_empty:
        for number, row in enumerate(rows):
            over = known.over(int(row["base_offset"]), int(row["last_offset"]))
            merged[number] = len(over) and _is_same_before_cleaning(row, over, cleaned_below)
            if not is_one_log:
                known.add(rows[number : number + 1])
    if is_one_log:
        known.add(rows)
    yield _Rows(rows=rows[~merged], copy=at, label=label)
    yield _Rows(rows=rows[merged], copy=at, label=label, merged=True)


def _selection(taken: Sequence[_Rows]) -> Selection:
    rows = np.concatenate([one.rows for one in taken])
    copies = np.concatenate([np.full(len(one.rows), one.copy, dtype=np.int64) for one in taken])
    labels = np.concatenate([np.full(len(one.rows), one.label, dtype=np.int64) for one in taken])
    merged = np.concatenate([np.full(len(one.rows), one.merged, dtype=np.bool_) for one in taken])
    order = np.lexsort((np.arange(len(rows)), rows["base_offset"], labels))
    return Selection(rows=rows[order], copies=copies[order], labels=labels[order], merged=merged[order])
