"""The open and torn transactions of every replica of one partition, each compared with the other copies of its log; and those that another partition ended otherwise.

A coordinator writes markers once its decision is in all replicas in sync (KIP-98); an unclean election of its partition of `__transaction_state` may take the decision, and
the next coordinator finds the transaction Ongoing. It ends it when it times out or when its producer comes back, with an epoch that is one higher at most
(`TransactionCoordinator.handleInitProducerId`, KIP-890). So a transaction is committed in one partition and aborted in another.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Absent
from kforensics.evidence.coordinators.open_transactions import (
    Marker,
    OpenTransaction,
    ProducerBatches,
    ReplicaTransactions,
)
from kforensics.evidence.coordinators.transaction_log import TransactionState
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.model import Citation
from kforensics.formats.log.batch_table import CONTROL_BIT, BatchTable
from kforensics.formats.messages.control import ControlType
from kforensics.protocol.coordinators import TransactionStatus
from kforensics.reconcile.transactions.verdicts import (
    Confidence,
    Coordinators,
    Judgement,
    MarkerElsewhere,
    TransactionVerdict,
    is_end,
    judge,
    status_name,
)
from kforensics.units import TopicPartition
from kforensics.words import name_text

ReadProducers = Callable[[PartitionPlace, NDArray[np.int64], bool], ProducerBatches]
"""Reads the batches of producers in a copy: its directory, their ids, and whether in its `.deleted` segments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TornTransaction:
    """A transaction whose records are lost from a replica that kept its marker."""

    producer_id: int
    producer_epoch: int
    first_offset: int | Absent
    """Of its lost records, in the copy that holds them; unknown where none does."""
    last_offset: int | Absent
    records: int | Absent
    marker: Marker
    transactional_id: str | bytes | Absent
    coordinator_state: str | Absent
    confidence: Confidence
    reason: str
    citations: tuple[Citation, ...]
    committed_in: TopicPartition | None = None
    """Another partition with a commit marker of it, where its records are here and were aborted."""
    commit_offset: int = -1
    """Of that marker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedTransaction:
    """An open transaction with its verdict."""

    open: OpenTransaction
    judgement: Judgement
    last_marker: Marker | None = None
    """The producer's marker before it in the same log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTransactions:
    """One replica."""

    replica: ReplicaTransactions
    leads: bool | Absent
    """Whether it leads the partition; unknown where no input names the leader."""
    absent_leader: int | None
    """The broker that leads the partition, where its log is not here."""
    without_candidate: str | None
    """A clause that says why no replica here speaks for the partition, where it is not known who leads; none where one does."""
    open: tuple[JudgedTransaction, ...]
    torn: tuple[TornTransaction, ...]
    last_stable_offset: int
    """The smallest first offset of an open transaction; the log end offset where there is none, which a consumer reaches with the high watermark."""

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition."""
        return self.replica.place.topic_partition

    def only(self, is_wanted: Callable[[int, object], bool]) -> "PartitionTransactions":
        """Return the replica with the transactions of some producers only; its last stable offset stays that of all."""
        return replace(
            self,
            open=tuple(one for one in self.open if is_wanted(one.open.producer_id, one.judgement.transactional_id)),
            torn=tuple(one for one in self.torn if is_wanted(one.producer_id, one.transactional_id)),
        )

    @property
    def counts(self) -> bool:
        """Whether it speaks for the partition: no other replica here is known to lead it."""
        return self.leads is not False or self.absent_leader is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """A copy of the partition's log that markers and lost records are looked for in."""

    place: PartitionPlace
    owner: str
    is_now: bool
    """It is a live replica, not an earlier snapshot or segments that are being deleted."""
    is_deleted: bool = False


def judge_partition(
    replicas: Sequence[ReplicaTransactions],
    copies: Sequence[Copy],
    coordinators: Coordinators,
    read: ReadProducers,
    *,
    leader: int | Absent,
    without_candidate: str | None,
    is_stopped: bool,
    now_ms: int,
) -> tuple[PartitionTransactions, ...]:
    """Judge the transactions of all replicas of one partition.

    Args:
        without_candidate: a clause that says why no replica here speaks for the partition, where it is not known who leads.
    """
    producers = {one.producer_id for replica in replicas for one in replica.open}
    producers |= {one.producer_id for replica in replicas for one in replica.lone}
    wanted = np.array(sorted(producers), dtype=np.int64)
    contents = [(copy, read(copy.place, wanted, copy.is_deleted)) for copy in copies] if producers else []
    here = {one.place.state.broker_id for one in replicas}
    absent_leader = None if isinstance(leader, Absent) or leader in here else leader
    return tuple(
        _Replica(
            replica, replicas, contents, coordinators, leader, absent_leader, without_candidate, is_stopped, now_ms
        ).judged()
        for replica in replicas
    )


@dataclass(eq=False)
class _Replica:
    _replica: ReplicaTransactions
    _replicas: Sequence[ReplicaTransactions]
    _contents: Sequence[tuple[Copy, ProducerBatches]]
    _coordinators: Coordinators
    _leader: int | Absent
    _absent_leader: int | None
    _without_candidate: str | None
    _is_stopped: bool
    _now: int

    def __post_init__(self) -> None:
        replica = self._replica
        self._is_stopped |= replica.place.state.clean_shutdown
        place = replica.place
        own = (place.state.input, place.path)
        self._own: ProducerBatches | None = None
        self._others: list[tuple[Copy, ProducerBatches]] = []
        for copy, batches in self._contents:
            if not copy.is_deleted and (copy.place.state.input, copy.place.path) == own:
                self._own = batches
            else:
                self._others.append((copy, batches))
        self._ends: dict[int, list[int]] = defaultdict(list)
        for offset, marker in sorted(self._own.markers.items() if self._own is not None else ()):
            self._ends[marker.producer_id].append(offset)

    def judged(self) -> PartitionTransactions:
        replica = self._replica
        return PartitionTransactions(
            replica=replica,
            leads=Absent.UNKNOWN if isinstance(self._leader, Absent) else replica.place.state.broker_id == self._leader,
            absent_leader=self._absent_leader,
            without_candidate=self._without_candidate,
            open=tuple(self._judged(one) for one in replica.open),
            torn=tuple(self._torn()),
            last_stable_offset=max(
                min((one.first_offset for one in replica.open), default=replica.log_end_offset),
                replica.log_start_offset,
            ),
        )

    def _judged(self, one: OpenTransaction) -> JudgedTransaction:
        own = self._own
        known = [] if own is None else [m for m in own.markers.values() if m.producer_id == one.producer_id]
        markers = sorted((m for m in known if m.offset < one.first_offset), key=lambda marker: marker.offset)
        judgement = judge(
            one,
            self._replica.place.topic_partition,
            self._coordinators,
            elsewhere=self._marker_elsewhere(one),
            markers=markers,
            is_stopped=self._is_stopped,
            now_ms=self._now,
            absent_leader=self._absent_leader,
            without_candidate=self._without_candidate,
        )
        epoch = self._later_epoch_without(one)
        if epoch is not None and judgement.holds_back:
            why = f"broker {self._leader}, which leads in leader epoch {epoch}, does not hold it: this replica discards it when it follows"
            judgement = replace(judgement, verdict=TransactionVerdict.IN_TIME, confidence="likely", reason=why)
        return JudgedTransaction(open=one, judgement=judgement, last_marker=markers[-1] if markers else None)

    def _later_epoch_without(self, one: OpenTransaction) -> int | None:
        """Return a later leader epoch of the leader's log, where that is here and does not hold the transaction; none where there is none."""
        leads = next((each for each in self._replicas if each.place.state.broker_id == self._leader), None)
        if leads is None or leads is self._replica or not 0 <= one.leader_epoch < leads.last_epoch:
            return None
        if leads.problems or one.first_offset < leads.read_from:
            return None  # it may be in what was not read
        place = (leads.place.state.input, leads.place.path)
        held = (
            self._has_first_batch(one, batches.rows[batches.rows["producer_id"] == one.producer_id])
            for copy, batches in self._others
            if copy.is_now and (copy.place.state.input, copy.place.path) == place
        )
        return None if next(held, True) else leads.last_epoch

    def _marker_elsewhere(self, one: OpenTransaction) -> MarkerElsewhere | None:
        found = []
        for copy, batches in self._others:
            marker = self._next_marker(one, batches)
            if marker is None:
                continue
            is_ahead = copy.is_now and self._will_copy(marker, copy, batches)
            is_known = not isinstance(self._leader, Absent)
            found.append(MarkerElsewhere(marker=marker, owner=copy.owner, is_ahead=is_ahead, is_known=is_known))
        # A copy that this replica follows settles it; what others hold is then of the same history.
        return min(found, key=lambda one: (not one.is_ahead, one.marker.offset), default=None)

    def _next_marker(self, one: OpenTransaction, batches: ProducerBatches) -> Marker | None:
        own = batches.rows[batches.rows["producer_id"] == one.producer_id]
        if one.leader_epoch >= 0 and not self._has_first_batch(one, own):
            return None
        behind = [
            marker
            for marker in batches.markers.values()
            if marker.producer_id == one.producer_id and marker.offset > one.first_offset and is_end(marker.kind)
        ]
        return min(behind, key=lambda marker: marker.offset, default=None)

    def _has_first_batch(self, one: OpenTransaction, other: BatchTable) -> bool:
        """Whether another copy holds the transaction's first batch, with the same content."""
        assert self._own is not None
        mine = self._own.rows[(self._own.rows["producer_id"] == one.producer_id)]
        mine = mine[mine["base_offset"] == one.first_offset]
        same = other[other["base_offset"] == one.first_offset]
        return bool(len(mine) and len(same) and mine["crc"][0] == same["crc"][0])

    def _will_copy(self, marker: Marker, copy: Copy, batches: ProducerBatches) -> bool:
        """Whether replication brings the marker from another replica of now into this one."""
        if not isinstance(self._leader, Absent):
            if self._replica.place.state.broker_id == self._leader:
                return False
            if copy.place.state.broker_id == self._leader:
                return True
        return marker.offset >= self._replica.log_end_offset and batches.last_epoch >= self._replica.last_epoch

    def _torn(self) -> Iterator[TornTransaction]:
        if self._replica.is_cleaned:
            return
        for lone in self._replica.lone:
            if is_end(lone.kind) and lone.offset >= self._replica.log_start_offset:
                torn = self._torn_by_copies(lone) or self._torn_by_itself(lone)
                if torn is not None:
                    yield torn

    def _torn_by_copies(self, lone: Marker) -> TornTransaction | None:
        for copy, batches in self._others:
            data = self._lost_data(lone, batches)
            if not len(data):
                continue
            first, last = int(data["base_offset"][0]), int(data["last_offset"][-1])
            if last < max(self._replica.log_start_offset, self._replica.read_from):
                continue
            return self._torn_transaction(
                lone,
                first=first,
                last=last,
                records=int(data["count"].sum()),
                confidence="proven",
                reason=f"{copy.owner} holds its records at offsets {first:,}..{last:,}, which this log does not",
            )
        return None

    def _previous_end(self, lone: Marker) -> int:
        """Return the offset of the producer's marker before one in this log, -1 where there is none."""
        ends = self._ends.get(lone.producer_id, [])
        at = bisect_left(ends, lone.offset)
        return ends[at - 1] if at else -1

    def _lost_data(self, lone: Marker, batches: ProducerBatches) -> BatchTable:
        """Return the records in another copy that the marker ends: those of the producer's last transaction there that this log does not hold."""
        same = batches.markers.get(lone.offset)
        is_shared = same is not None and (same.leader_epoch, same.time_ms) == (
            lone.leader_epoch,
            lone.time_ms,
        )
        own: BatchTable = batches.rows[
            (batches.rows["producer_id"] == lone.producer_id) & (batches.rows["base_offset"] > self._previous_end(lone))
        ]
        own = own[own["producer_epoch"] <= lone.producer_epoch]
        nothing: BatchTable = own[:0]
        control = (own["attributes"] & CONTROL_BIT) != 0
        if is_shared or not len(own) or control.all():
            return nothing
        ends = np.flatnonzero(control)
        bounds = [-1, *ends.tolist(), len(own)]
        runs: list[BatchTable] = [own[start + 1 : end] for start, end in pairwise(bounds)]
        if len(runs[-1]):
            return runs[-1]
        # All of them are ended there: the one whose marker says the same.
        kinds = [batches.markers[int(own["base_offset"][end])].kind for end in ends]
        closed = [run for run, kind in zip(runs[:-1], kinds, strict=True) if kind is lone.kind and len(run)]
        return closed[-1] if closed else nothing

    def _torn_by_itself(self, lone: Marker) -> TornTransaction | None:
        replica, previous = self._replica, self._previous_end(lone)
        begin = max(replica.log_start_offset, replica.read_from)
        holds_all = begin == 0 or previous >= begin
        # An abort without records is ordinary: a partition is added before the first record is sent. A marker that follows one like it is
        # the same, sent again: the coordinator lost its connection before the answer came.
        before = None if self._own is None else self._own.markers.get(previous)
        is_again = before is not None and (before.kind, before.producer_epoch) == (
            lone.kind,
            lone.producer_epoch,
        )
        if lone.kind is not ControlType.COMMIT or not holds_all or is_again:
            return None
        return self._torn_transaction(
            lone,
            confidence="likely",
            reason="a commit marker follows acknowledged records, and this log holds none of this transaction",
        )

    def _torn_transaction(
        self,
        marker: Marker,
        *,
        confidence: Confidence,
        reason: str,
        first: int | Absent = Absent.UNKNOWN,
        last: int | Absent = Absent.UNKNOWN,
        records: int | Absent = Absent.UNKNOWN,
    ) -> TornTransaction:
        state: TransactionState | None = self._coordinators.by_producer.get(marker.producer_id)
        unknown = Absent.NOT_WRITTEN if self._coordinators.topic.is_complete else Absent.UNKNOWN
        cited = (marker.citation, None if state is None else state.citation)
        return TornTransaction(
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            first_offset=first,
            last_offset=last,
            records=records,
            marker=marker,
            transactional_id=unknown if state is None else state.transactional_id,
            coordinator_state=unknown if state is None else status_name(state.status),
            confidence=confidence if self._absent_leader is None else "possible",
            reason=reason,
            citations=tuple(one for one in cited if one is not None),
        )


_ABORTED = frozenset(
    {TransactionStatus.PREPARE_ABORT, TransactionStatus.COMPLETE_ABORT, TransactionStatus.PREPARE_EPOCH_FENCE}
)

Directory = tuple[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortedLate:
    """A transaction that began before an unclean election of its coordinator's partition and was aborted after it."""

    state: TransactionState
    """The record of the abort."""
    now: TransactionState
    """The newest record of its transactional id."""

    @property
    def producer_ids(self) -> frozenset[int]:
        """The ids that its batches and markers may have."""
        named = (self.state.producer_id, self.state.previous_producer_id, self.state.next_producer_id)
        return frozenset(one for one in named if one >= 0)


def aborted_late(history: Sequence[TransactionState], election_ms: int) -> Iterator[AbortedLate]:
    """Yield the transactions of an id that were aborted after an unclean election and began before it, each once.

    Args:
        election_ms: when the leader of its partition was elected uncleanly, -1 where the record has no time.
    """
    begun: dict[int, TransactionState] = {}
    for state in history:
        is_after = election_ms < 0 or state.started_ms <= election_ms <= state.time_ms
        if not state.is_removed and state.status in _ABORTED and state.started_ms >= 0 and is_after:
            begun[state.started_ms] = state
    for state in begun.values():
        yield AbortedLate(state=state, now=history[-1])


def split_transactions(
    late: Sequence[AbortedLate], contents: Mapping[TopicPartition, Sequence[ProducerBatches]]
) -> dict[Directory, list[TornTransaction]]:
    """Return the transactions with a commit marker in one partition and aborted records in another, by the directory of those."""
    found: dict[Directory, list[TornTransaction]] = defaultdict(list)
    for one in late:
        commits = [
            (partition, marker)
            for partition, copies in contents.items()
            for copy in copies
            for marker in copy.markers.values()
            if marker.kind is ControlType.COMMIT
            and marker.producer_id in one.producer_ids
            and one.state.started_ms <= marker.time_ms <= one.state.time_ms
            and 0 <= marker.coordinator_epoch < one.state.leader_epoch
        ]
        if not commits:
            continue
        partition, commit = min(commits, key=lambda each: (each[1].time_ms, each[0], each[1].offset))
        for elsewhere, copies in contents.items():
            for copy in copies if elsewhere != partition else ():
                torn = _aborted_in(copy, one, partition, commit)
                if torn is not None:
                    found[copy.place.state.input, copy.place.path].append(torn)
    return found


def _aborted_in(
    copy: ProducerBatches, one: AbortedLate, partition: TopicPartition, commit: Marker
) -> TornTransaction | None:
    """Return the transaction in a log that aborts its records, where its commit marker is in another partition."""
    for producer in sorted(one.producer_ids):
        rows = copy.rows[copy.rows["producer_id"] == producer]
        ends = np.flatnonzero((rows["attributes"] & CONTROL_BIT) != 0)
        begin = 0
        for end in ends.tolist():
            data, begin = rows[begin:end], end + 1
            marker = copy.markers[int(rows["base_offset"][end])]
            is_of_abort = (
                marker.kind is ControlType.ABORT
                and marker.coordinator_epoch > commit.coordinator_epoch
                and commit.producer_epoch <= marker.producer_epoch <= commit.producer_epoch + 1
                and marker.time_ms >= commit.time_ms
            )
            if not is_of_abort or not len(data) or int(data["producer_epoch"].max()) > commit.producer_epoch:
                continue
            name = name_text(one.state.transactional_id)
            first, last = int(data["base_offset"][0]), int(data["last_offset"][-1])
            return TornTransaction(
                producer_id=producer,
                producer_epoch=marker.producer_epoch,
                first_offset=first,
                last_offset=last,
                records=int(data["count"].sum()),
                marker=marker,
                transactional_id=one.state.transactional_id,
                coordinator_state=status_name(one.now.status),
                confidence="likely",
                reason=(
                    f"its commit marker is at offset {commit.offset:,} of {partition}, and its records at offsets {first:,}..{last:,} were aborted here: "
                    f"the coordinator of {name} lost its decision in an unclean election"
                ),
                citations=tuple(
                    each for each in (marker.citation, commit.citation, one.state.citation) if each is not None
                ),
                committed_in=partition,
                commit_offset=commit.offset,
            )
    return None
