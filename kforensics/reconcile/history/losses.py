"""The ledger of losses: records that any copy of a log still shows and the final leader's log does not hold.

A batch of a copy is kept where the leader holds the same bytes at the same offsets; the leader epoch is outside of the checksum and may differ, as when an
ex-leader appended a request that the client had retried. It is no loss where retention, DeleteRecords or compaction took it, nor where the copy is the one that
was changed: the leader held other bytes of the same epoch at those offsets before, or a replica in use holds the batch and differs from the leader in just
that way. All else is lost, whether the leader's log ends before it or holds something else there.

Certain, possible or no is the answer of `reconcile.committed`. An offset that the leader has given to another record since is never called certain: an
acknowledgement or a committed offset that names it may speak of either record. Nor is what a replica in use still holds, for it may lead again. `was_committed`
keeps what the evidence says of the records themselves. Records of a transaction that was aborted are none that a consumer with read_committed could have lost.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Absent
from kforensics.evidence.model import BatchReader, Citation, owner_words
from kforensics.formats.log.batch_table import (
    CONTROL_BIT,
    NO_EPOCH,
    NO_PRODUCER,
    TRANSACTIONAL_BIT,
    BatchesByOffset,
    BatchTable,
)
from kforensics.formats.messages.control import ControlType, parse_control_record
from kforensics.protocol.epochs import epoch_at
from kforensics.reconcile.committed.judge import Certainty, CommitJudge, CommittedRun
from kforensics.reconcile.history.causes import CauseName
from kforensics.reconcile.history.log_copies import Agreement, LogCopy
from kforensics.reconcile.logs.loaded_log import LoadedLog, Marker, Outcomes, are_markers
from kforensics.units import OffsetRange, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A place that still holds records."""

    input: int
    path: str
    broker_id: int | Absent
    is_final: bool
    """Whether it is the log as it is now, not in an earlier snapshot."""
    in_use: bool
    """A replica that its broker serves."""
    is_vanishing: bool = False
    """Files or a directory as they are now that were renamed for deletion: the broker removes them after a while, or at its next start."""
    is_stray: bool = False
    """A directory as it is now of a broker that is no replica any more."""

    @property
    def owner(self) -> str:
        """The owner of the place in words: its broker, or the input where no broker is known."""
        return owner_words(self.input, self.broker_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A run of offsets of one certainty whose records the final leader does not hold."""

    topic_partition: TopicPartition
    offsets: OffsetRange
    records: int
    """Those of aborted transactions aside."""
    aborted: int = 0
    """Records of aborted transactions: no consumer with read_committed gets them."""
    markers: int
    """Control markers among them: no data, but the end of a transaction."""
    committed: Certainty
    was_committed: Certainty
    """The judgement of the records that were here, also where others have taken their offsets."""
    is_replaced: bool
    """The leader holds other records at these offsets."""
    leader_epoch: int | Absent
    """The leader epoch in which they were written."""
    reason: str
    cause: CauseName = CauseName.UNKNOWN
    confidence: str = "possible"
    """The confidence in the cause."""
    held_by: tuple[Holder, ...]
    """Copies that still hold all of the run, newest first."""
    citations: tuple[Citation, ...]
    is_only_logged: bool = False
    """Lines alone say that these offsets were truncated: what they held no input shows, nor whether the leader's log holds the same."""
    may_be_in_leader: bool = False
    """The leader's log has records at these offsets of an earlier leader epoch than what was truncated, or written there since: they may be the same ones, sent again."""

    @property
    def in_use(self) -> tuple[Holder, ...]:
        """Replicas that still hold the run and may yet lead: it is lost for good only when they follow the final leader."""
        return tuple(holder for holder in self.held_by if holder.in_use)


class LostBatch(NamedTuple):
    """One lost batch, with all copies that hold it."""

    base_offset: int
    last_offset: int
    crc: int
    length: int
    epoch: int
    record_count: int
    is_control: bool
    is_transactional: bool
    producer_id: int
    producer_epoch: int
    base_sequence: int
    holders: tuple[LogCopy, ...]
    is_aborted: bool = False
    """Its records are of a transaction that was aborted."""


class _Piece(NamedTuple):
    """Offsets of one lost batch that share certainty, reason and what is there now."""

    first: int
    last: int
    batch: LostBatch
    was_committed: Certainty
    is_replaced: bool
    reason: str
    citations: tuple[Citation, ...]


def find_losses(
    leader: LogCopy,
    lost: Sequence[LostBatch],
    judge: CommitJudge,
    reader: BatchReader,
    *,
    deleted_below: Callable[[LostBatch], int] = lambda _batch: 0,
) -> list[tuple[Loss, tuple[LogCopy, ...]]]:
    """Return the lost batches as runs of one certainty, each with the copies that hold it, by offset; `deleted_below` gives the offset below which a client had records deleted."""
    if not lost:
        return []
    held = _Held(leader.view, OffsetRange(min(b.base_offset for b in lost), max(b.last_offset for b in lost)), reader)
    verdicts = _verdicts(lost, judge)
    # Records below the leader's log start were deleted, on request to the very offset.
    start = leader.view.log_start_offset
    pieces = [piece for batch in lost for piece in _judge(batch, verdicts, held, max(start, deleted_below(batch)))]
    losses = [(_loss(leader.view.replica.topic_partition, group), group[0].batch.holders) for group in _merged(pieces)]
    return sorted(losses, key=lambda each: each[0].offsets)


def lost_batches(
    leader: LogCopy, others: Sequence[LogCopy], agreement: Agreement, reader: BatchReader
) -> tuple[LostBatch, ...]:
    """Return every batch that some copy shows and the leader's log lacks, by offset."""
    found: dict[tuple[int, int, int, int], tuple[LostBatch, list[LogCopy]]] = {}
    for copy in others:
        found_at = _first_suspect(copy.view, leader.view, agreement)
        start = copy.view.log_end_offset if found_at is None else found_at
        parted = _parted_before(start, copy.view, leader.view)
        if min(start, parted) >= copy.view.log_end_offset:
            continue
        rows = reader.batches(copy.view.replica, min(start, parted), copy.view.log_end_offset - 1)
        rows = rows[rows["last_offset"] < copy.view.log_end_offset]
        if parted < start:
            rows = rows[(rows["last_offset"] >= start) | _of_other_epochs(rows, leader.view)]
        for row in _missing_rows(copy, rows, leader, others, reader):
            found.setdefault(_key(row), (_batch_of(row), []))[1].append(copy)
    kept = _only_parted(found, [copy for copy in others if copy.is_in_use], reader)
    batches = [
        batch._replace(holders=_newest_first(holders)) for key, (batch, holders) in found.items() if key not in kept
    ]
    batches.sort(key=lambda batch: (batch.base_offset, batch.epoch, batch.crc))
    return tuple(_with_outcomes(batches, reader))


def _with_outcomes(batches: Sequence[LostBatch], reader: BatchReader) -> Iterator[LostBatch]:
    """Yield the batches, each with whether the log of its newest holder says that its transaction was aborted."""
    first: dict[LogCopy, int] = {}
    for batch in batches:
        if batch.is_transactional and not batch.is_control:
            first.setdefault(batch.holders[0], batch.base_offset)
    aborted = {holder: _aborted_keys(holder.view, offset, reader) for holder, offset in first.items()}
    for batch in batches:
        keys = aborted.get(batch.holders[0], frozenset())
        yield batch._replace(is_aborted=(batch.base_offset, batch.last_offset, batch.crc, batch.length) in keys)


def _aborted_keys(log: LoadedLog, first: int, reader: BatchReader) -> frozenset[tuple[int, int, int, int]]:
    rows = reader.batches(log.replica, first, max(first, log.log_end_offset - 1))
    rows = rows[rows["last_offset"] < log.log_end_offset]
    markers = [
        Marker(int(row["producer_id"]), int(row["base_offset"]), _is_abort(log, int(row["base_offset"]), reader))
        for row in rows[are_markers(rows)]
    ]
    return _keys(rows[Outcomes(markers).are_aborted(rows)])


def _is_abort(log: LoadedLog, offset: int, reader: BatchReader) -> bool:
    record = next((one for one in reader.records(log.replica, offset, offset) if one.offset == offset), None)
    return record is not None and parse_control_record(record.key, record.value).type is ControlType.ABORT


def _only_parted(
    found: Mapping[tuple[int, int, int, int], tuple[LostBatch, list[LogCopy]]],
    replicas: Sequence[LogCopy],
    reader: BatchReader,
) -> frozenset[tuple[int, int, int, int]]:
    """Return the batches that a replica in use holds, while it is not among those whose log shows them as lost: it differs from the leader, and nothing is lost."""
    parted: set[tuple[int, int, int, int]] = set()
    for replica in replicas:
        end = replica.view.log_end_offset
        keys = {key for key, (_, holders) in found.items() if replica not in holders and key[1] < end}
        if keys:
            first, last = min(key[0] for key in keys), max(key[1] for key in keys)
            parted |= keys & _keys(reader.batches(replica.view.replica, first, last))
    return frozenset(parted)


def _first_suspect(copy: LoadedLog, leader: LoadedLog, agreement: Agreement) -> int | None:
    found = agreement.divergence(copy, leader)
    if found is not None:
        return found.offset
    return leader.log_end_offset if copy.log_end_offset > leader.log_end_offset else None


def _parted_before(start: int, copy: LoadedLog, leader: LoadedLog) -> int:
    """Return the first offset below `start` to which the copy's batches and the leader's epoch cache give different epochs, else `start`.

    Where the leader's cleaner has emptied what it wrote there, no pair of batches shows that the logs differ.
    """
    below = min(start, copy.log_end_offset, leader.cleaned_below)
    begin = max(copy.content_start_offset, leader.log_start_offset)
    starts = {begin, *(entry.start_offset for entry in (*copy.batch_epochs, *leader.epochs))}
    candidates = sorted(offset for offset in starts if begin <= offset < below)
    for offset in candidates:
        if _differ(epoch_at(copy.batch_epochs, offset), epoch_at(leader.epochs, offset)):
            return offset
    return start


def _differ(mine: int | Absent, its: int | Absent) -> bool:
    return isinstance(mine, int) and isinstance(its, int) and NO_EPOCH not in {mine, its} and mine != its


def _of_other_epochs(rows: BatchTable, leader: LoadedLog) -> NDArray[np.bool_]:
    """Return which batches end where the leader's log is cleaned, and are of another epoch than its cache has there."""
    of_leader = (epoch_at(leader.epochs, int(base)) for base in rows["base_offset"])
    pairs = zip(rows["partition_leader_epoch"], of_leader, strict=True)
    differ = (_differ(int(mine), its) for mine, its in pairs)
    return np.fromiter(differ, dtype=np.bool_, count=len(rows)) & (rows["last_offset"] < leader.cleaned_below)


def _missing_rows(
    copy: LogCopy, rows: BatchTable, leader: LogCopy, others: Sequence[LogCopy], reader: BatchReader
) -> Iterator[np.void]:
    if not len(rows):
        return
    first, last = int(rows["base_offset"].min()), int(rows["last_offset"].max())
    kept = _keys(reader.batches(leader.view.replica, first, last))
    suspects = [row for row in rows if _key(row) not in kept and row["last_offset"] >= leader.view.log_start_offset]
    if not suspects:
        return
    covered = _Held(leader.view, OffsetRange(first, last), reader)
    earlier = _held_before(copy, leader, others, OffsetRange(first, last), reader)
    for row in suspects:
        if not _was_compacted(row, leader.view, covered) and not _is_the_changed_one(row, covered, earlier):
            yield row


def _keys(rows: BatchTable) -> frozenset[tuple[int, int, int, int]]:
    return frozenset(_key(row) for row in rows)


def _key(row: np.void) -> tuple[int, int, int, int]:
    return (int(row["base_offset"]), int(row["last_offset"]), int(row["crc"]), int(row["length"]))


class _Held(BatchesByOffset):
    """The offsets at which a log holds batches, in a range."""

    def __init__(self, view: LoadedLog, offsets: OffsetRange, reader: BatchReader) -> None:
        rows = reader.batches(view.replica, offsets.first, offsets.last)
        super().__init__(rows[rows["last_offset"] < view.log_end_offset])

    def split(self, first: int, last: int) -> Iterator[tuple[int, int, bool]]:
        at = first
        for row in self.over(first, last):
            base, end = max(int(row["base_offset"]), at), min(int(row["last_offset"]), last)
            if base > at:
                yield at, base - 1, False
            if end >= base:
                yield base, end, True
                at = end + 1
        if at <= last:
            yield at, last, False


def _was_compacted(row: np.void, leader: LoadedLog, held: _Held) -> bool:
    """Whether the leader's lineage contains this batch's epoch here, and its cleaner has passed: the records were superseded."""
    first, last = int(row["base_offset"]), int(row["last_offset"])
    if last >= leader.cleaned_below:
        return False
    epoch = int(row["partition_leader_epoch"])
    lineage = leader.batch_epochs if not leader.epochs else leader.epochs
    if epoch == NO_EPOCH or not lineage:
        return all(int(other["base_offset"]) >= first for other in held.over(first, last))
    if epoch_at(lineage, first) != epoch:
        return False
    # A cleaner rewrites a batch with fewer records: its offsets lie within the old one's.
    return all(int(other["partition_leader_epoch"]) == epoch for other in held.over(first, last))


def _held_before(
    copy: LogCopy, leader: LogCopy, others: Sequence[LogCopy], offsets: OffsetRange, reader: BatchReader
) -> frozenset[tuple[int, int, int, int]]:
    """Batches that any copy no younger than this one already held, the leader's own included where it is of the same time."""
    earlier = [other for other in others if other is not copy and other.rank <= copy.rank and not other.is_remnant]
    if leader.rank <= copy.rank:
        earlier.append(leader)
    return frozenset(key for other in earlier for key in _keys(reader.batches(other.view.replica, *offsets)))


def _is_the_changed_one(row: np.void, held: _Held, earlier: frozenset[tuple[int, int, int, int]]) -> bool:
    """Whether an earlier copy shows the leader's bytes for these offsets and this epoch: this copy was altered, nothing was lost."""
    epoch = int(row["partition_leader_epoch"])
    now = held.over(int(row["base_offset"]), int(row["last_offset"]))
    if not len(now) or epoch == NO_EPOCH:
        return False
    return all(int(other["partition_leader_epoch"]) == epoch and _key(other) in earlier for other in now)


def _batch_of(row: np.void) -> LostBatch:
    return LostBatch(
        base_offset=int(row["base_offset"]),
        last_offset=int(row["last_offset"]),
        crc=int(row["crc"]),
        length=int(row["length"]),
        epoch=int(row["partition_leader_epoch"]),
        record_count=int(row["count"]),
        is_control=bool(row["magic"] == 2 and row["attributes"] & CONTROL_BIT),
        is_transactional=bool(row["magic"] == 2 and row["attributes"] & TRANSACTIONAL_BIT),
        producer_id=int(row["producer_id"]) if row["magic"] == 2 else NO_PRODUCER,
        producer_epoch=int(row["producer_epoch"]),
        base_sequence=int(row["base_sequence"]),
        holders=(),
    )


def _newest_first(holders: Iterable[LogCopy]) -> tuple[LogCopy, ...]:
    return tuple(sorted(holders, key=lambda copy: (-copy.rank, copy.view.replica.input, copy.view.replica.path)))


_Verdicts = dict[tuple[int, int], tuple[CommittedRun, ...]]
"""Runs of certainty by holder (its identity) and leader epoch."""


def _verdicts(lost: Sequence[LostBatch], judge: CommitJudge) -> _Verdicts:
    """Return the judgement of each holder's lost records, asked once for all that were written in one epoch."""
    spans: dict[tuple[int, int], tuple[LogCopy, int, int]] = {}
    for batch in lost:
        for holder in batch.holders:
            key = (id(holder), batch.epoch)
            _, first, last = spans.get(key, (holder, batch.base_offset, batch.last_offset))
            spans[key] = (holder, min(first, batch.base_offset), max(last, batch.last_offset))
    return {key: judge.runs(holder.view, OffsetRange(first, last)) for key, (holder, first, last) in spans.items()}


def _judge(batch: LostBatch, verdicts: _Verdicts, held: _Held, log_start: int) -> Iterator[_Piece]:
    """Yield the batch's offsets from the log start on by certainty: the best that any holder's log proves, for each offset."""
    begin = max(batch.base_offset, log_start)
    runs = [
        run
        for holder in batch.holders
        for run in verdicts[id(holder), batch.epoch]
        if run.offsets.first <= batch.last_offset and run.offsets.last >= batch.base_offset
    ]
    ends = {run.offsets.last + 1 for run in runs}
    edges = sorted({begin, *(run.offsets.first for run in runs), *ends})
    starts = [edge for edge in edges if begin <= edge <= batch.last_offset]  # none of a batch below the log start
    for start, following in pairwise([*starts, batch.last_offset + 1]):
        over = [run for run in runs if run.offsets.first <= start <= run.offsets.last]
        chosen = min(over, key=lambda run: _STRENGTH[run.certainty])
        for first, last, is_held in held.split(start, following - 1):
            yield _Piece(first, last, batch, chosen.certainty, is_held, chosen.reason, chosen.citations)


# A high watermark that one holder's snapshot recorded proves the same batch in every other holder; `no` outranks a mere lack of proof.
_STRENGTH: dict[Certainty, int] = {"certain": 0, "no": 1, "possible": 2}


def _merged(pieces: Sequence[_Piece]) -> Iterator[list[_Piece]]:
    """Yield the pieces that are one loss."""
    group: list[_Piece] = []
    for piece in sorted(pieces, key=lambda piece: (piece.batch.epoch, piece.first)):
        if group and not _continues(group[-1], piece):
            yield group
            group = []
        group.append(piece)
    if group:
        yield group


def _continues(before: _Piece, piece: _Piece) -> bool:
    mine, its = (
        (one.was_committed, one.is_replaced, one.batch.epoch, one.batch.holders, one.reason, one.batch.is_aborted)
        for one in (before, piece)
    )
    return piece.first == before.last + 1 and mine == its


def _loss(partition: TopicPartition, group: Sequence[_Piece]) -> Loss:
    head = group[0]
    inside = [(min(piece.last - piece.first + 1, piece.batch.record_count), piece.batch.is_control) for piece in group]
    data = sum(count for count, is_control in inside if not is_control)
    held_by = tuple(holder_of(copy) for copy in head.batch.holders)
    may_be_there = head.is_replaced or any(one.in_use for one in held_by)
    return Loss(
        topic_partition=partition,
        offsets=OffsetRange(head.first, group[-1].last),
        records=0 if head.batch.is_aborted else data,
        aborted=data if head.batch.is_aborted else 0,
        markers=sum(count for count, is_control in inside if is_control),
        committed="possible" if head.was_committed == "certain" and may_be_there else head.was_committed,
        was_committed=head.was_committed,
        is_replaced=head.is_replaced,
        leader_epoch=Absent.NOT_APPLICABLE if head.batch.epoch == NO_EPOCH else head.batch.epoch,
        reason=head.reason,
        held_by=held_by,
        citations=head.citations,
    )


def holder_of(copy: LogCopy) -> Holder:
    """Return the place of a copy that holds records."""
    replica = copy.view.replica
    return Holder(
        input=replica.input,
        path=replica.path,
        broker_id=replica.broker_id,
        is_final=copy.is_final,
        in_use=copy.is_in_use or (copy.is_unstarted and copy.is_final and replica.is_live),
        is_vanishing=copy.is_final and ((copy.is_remnant and not copy.is_unstarted) or replica.state == "deleted"),
        is_stray=copy.is_final and replica.state == "stray",
    )
