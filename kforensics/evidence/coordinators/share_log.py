"""`__share_group_state` as a replica holds it: snapshots and updates of share partitions, in the order of the log (KIP-932)."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kforensics.evidence.coordinators.group_log import Place
from kforensics.evidence.coordinators.replica_log import list_log
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.model import Problem
from kforensics.formats.log.records import Record
from kforensics.formats.messages.coordinators import SHARE_TABLES, parse_share_record
from kforensics.formats.messages.schema import Decoded

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


@dataclass(slots=True)
class ShareLog:
    """One replica of a partition of `__share_group_state`; what it counts is of what was read."""

    place: PartitionPlace
    skipped: int = 0
    """Records of unknown type or version."""
    why_skipped: str = ""
    """Why the first of them is, in words."""
    end: int = 0
    last_epoch: int = -1
    problems: tuple[Problem, ...] = field(default=())

    def changes(self, *, until_ms: int | None = None) -> Iterator[ShareChange]:
        """Read the records in order."""
        log = list_log(self.place)
        self.end = log.last_base
        for path, record in log.records(log.segments):
            self.end = max(self.end, record.offset + 1)
            self.last_epoch = max(self.last_epoch, record.partition_leader_epoch)
            if record.is_control or (until_ms is not None and record.timestamp_ms > until_ms):
                continue
            change = _change_of(record, path)
            if change is None:
                self.skipped += 1
                self.why_skipped = self.why_skipped or parse_share_record(record.key, record.value).why_not_understood
            else:
                yield change
        self.problems = tuple(log.problems)


def _change_of(record: Record, path: str) -> ShareChange | None:
    parsed = parse_share_record(record.key, record.value)
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
