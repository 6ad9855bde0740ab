"""`__transaction_state` and `__share_group_state` as replicas hold them: every state that a coordinator wrote, in the order of the log (KIP-932)."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypeVar

from kforensics.damage import Span
from kforensics.evidence.coordinators.group_log import Place
from kforensics.evidence.coordinators.replica_log import list_log
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.model import Citation, Problem
from kforensics.formats.log.records import Record
from kforensics.formats.messages.coordinators import SHARE_TABLES, TXN_TABLES
from kforensics.formats.messages.frame import CoordinatorRecord, CoordinatorTables, parse_coordinator_record
from kforensics.formats.messages.schema import Decoded
from kforensics.units import TopicPartition
from kforensics.words import name_text

State = TypeVar("State")


class TransactionState(NamedTuple):
    """One record: the state of a transactional id from here on."""

    transactional_id: str | bytes
    """As bytes where it is no UTF-8."""
    offset: int
    leader_epoch: int
    """Of the partition of `__transaction_state`, which is the coordinator's epoch."""
    time_ms: int
    is_removed: bool
    """A tombstone: the id expired, and nothing below is set."""
    producer_id: int = -1
    producer_epoch: int = -1
    previous_producer_id: int = -1
    next_producer_id: int = -1
    timeout_ms: int = -1
    status: int = -1
    """A number of `TransactionStatus`, or one that is newer."""
    partitions: tuple[TopicPartition, ...] = ()
    updated_ms: int = -1
    started_ms: int = -1
    client_version: int = 0
    citation: Citation | None = None


@dataclass(slots=True)
class CoordinatorLog:
    """One replica of a partition of a coordinator's topic; what it counts is of what was read."""

    place: PartitionPlace
    skipped: int = 0
    """Records of unknown type or version."""
    why_skipped: str = ""
    """Why the first of them is, in words."""
    end: int = 0
    last_epoch: int = -1
    problems: tuple[Problem, ...] = ()

    def read(
        self,
        tables: CoordinatorTables,
        understood: Callable[[Record, CoordinatorRecord, str], State | None],
        *,
        until_ms: int | None,
        deleted: bool = False,
    ) -> Iterator[State]:
        """Read the records in order; those that are newer are left out."""
        log = list_log(self.place)
        # An empty segment behind the records was rolled at its base offset, which is then the end.
        self.end = log.last_base
        for path, record in log.records(log.deleted if deleted else log.segments):
            self.end = max(self.end, record.offset + 1)
            self.last_epoch = max(self.last_epoch, record.partition_leader_epoch)
            if record.is_control or (until_ms is not None and record.timestamp_ms > until_ms):
                continue
            parsed = parse_coordinator_record(record.key, record.value, tables)
            state = understood(record, parsed, path)
            if state is None:
                self.skipped += 1
                self.why_skipped = self.why_skipped or parsed.why_not_understood
            else:
                yield state
        self.problems = tuple(log.problems)


@dataclass(slots=True)
class TransactionLog(CoordinatorLog):
    """One replica of a partition of `__transaction_state`, read through."""

    states: list[TransactionState] = field(default_factory=list)
    """The newest of each transactional id, in the order of the log."""
    history: list[TransactionState] = field(default_factory=list)
    """All states of the transactional ids that were asked for."""
    newest_ms: int = -1


def read_transaction_log(
    place: PartitionPlace,
    *,
    until_ms: int | None = None,
    history_of: Collection[str | bytes] = (),
    deleted: bool = False,
) -> TransactionLog:
    """Read a replica of `__transaction_state`."""
    found = TransactionLog(place)
    newest: dict[str | bytes, TransactionState] = {}
    understood = partial(_state_of, place)
    for state in found.read(TXN_TABLES, understood, until_ms=until_ms, deleted=deleted):
        found.newest_ms = max(found.newest_ms, state.time_ms)
        if state.transactional_id in history_of:
            found.history.append(state)
        newest.pop(state.transactional_id, None)
        newest[state.transactional_id] = state
    found.states = list(newest.values())
    return found


def _state_of(place: PartitionPlace, record: Record, parsed: CoordinatorRecord, path: str) -> TransactionState | None:
    if not isinstance(parsed.key, Decoded):
        return None
    name = parsed.key.fields["transactional_id"]
    removed = TransactionState(
        name,
        record.offset,
        record.partition_leader_epoch,
        record.timestamp_ms,
        is_removed=True,
        citation=Citation(input=place.state.input, path=path, span=Span(record.batch_position, 0)),
    )
    if parsed.value is None:
        return removed
    if not isinstance(parsed.value, Decoded):
        return None
    value = parsed.value.fields
    return removed._replace(
        is_removed=False,
        producer_id=value["producer_id"],
        producer_epoch=value["producer_epoch"],
        previous_producer_id=value.get("previous_producer_id", -1),
        next_producer_id=value.get("next_producer_id", -1),
        timeout_ms=value["transaction_timeout_ms"],
        status=value["transaction_status"],
        partitions=tuple(
            TopicPartition(name_text(one["topic"]), partition)
            for one in value["transaction_partitions"] or ()
            for partition in one["partition_ids"]
        ),
        updated_ms=value["transaction_last_update_timestamp_ms"],
        started_ms=value["transaction_start_timestamp_ms"],
        client_version=value.get("client_transaction_version", 0),
    )


_SNAPSHOT, _UPDATE = sorted(SHARE_TABLES.keys)


class SharePartition(NamedTuple):
    """A partition that a share group reads."""

    group: str | bytes
    topic_id: str
    partition: int

    @property
    def coordinator_key(self) -> str | bytes:
        """What its partition of `__share_group_state` is chosen by (`SharePartitionKey.asCoordinatorKey`)."""
        behind = f":{self.topic_id}:{self.partition}"
        return self.group + behind if isinstance(self.group, str) else self.group + behind.encode()


UNCHANGED = -1
"""A start offset that is not written; of a snapshot, that no leader has begun yet."""


class Delivery(NamedTuple):
    """A run of offsets that were delivered alike."""

    first_offset: int
    last_offset: int
    state: int
    """0 available, 1 acquired, 2 acknowledged, 3 archiving, 4 archived; others are newer."""
    delivered: int
    """How often they were delivered."""


class ShareChange(NamedTuple):
    """One record: a share partition as a whole, what changed of it, or that it is removed."""

    key: SharePartition
    at: Place
    is_update: bool = False
    is_removed: bool = False
    """A tombstone: nothing below is set."""
    start_offset: int = UNCHANGED
    state_epoch: int = -1
    """Only snapshots have it."""
    leader_epoch: int = -1
    deliveries: tuple[Delivery, ...] = ()


class ShareLog(CoordinatorLog):
    """One replica of a partition of `__share_group_state`."""

    def changes(self, *, until_ms: int | None = None) -> Iterator[ShareChange]:
        """Read the records in order."""
        return self.read(SHARE_TABLES, _change_of, until_ms=until_ms)


def _change_of(record: Record, parsed: CoordinatorRecord, path: str) -> ShareChange | None:
    if not isinstance(parsed.key, Decoded) or parsed.key.version not in SHARE_TABLES.keys:
        return None
    named = parsed.key.fields
    key = SharePartition(named["group_id"], str(named["topic_id"]), named["partition"])
    at = Place(record.offset, record.partition_leader_epoch, record.timestamp_ms, path, record.batch_position)
    if parsed.value is None:
        return ShareChange(key, at, is_removed=True)
    if not isinstance(parsed.value, Decoded):
        return None
    value = parsed.value.fields
    return ShareChange(
        key,
        at,
        is_update=parsed.key.version == _UPDATE,
        start_offset=value["start_offset"],
        state_epoch=value.get("state_epoch", -1),
        leader_epoch=value["leader_epoch"],
        deliveries=tuple(
            Delivery(one["first_offset"], one["last_offset"], one["delivery_state"], one["delivery_count"])
            for one in value["state_batches"] or ()
        ),
    )
