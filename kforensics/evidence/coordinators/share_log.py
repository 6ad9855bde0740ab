"""`__share_group_state` as a replica holds it: the newest state of each share partition, out of snapshots and updates (KIP-932)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kforensics.damage import Damage
from kforensics.evidence.coordinators.group_log import Place
from kforensics.evidence.coordinators.replica_log import ReplicaLog, list_log
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.model import Problem
from kforensics.formats.log.records import Record
from kforensics.formats.messages.schema import Decoded
from kforensics.formats.messages.share import SHARE_TABLES, parse_share_record
from kforensics.formats.segment.walk import iter_records
from kforensics.protocol.share_state import UNCHANGED, Delivery, combined

SHARE_TOPIC = "__share_group_state"
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


class ShareState(NamedTuple):
    """The state of a share partition."""

    start_offset: int
    """The first offset that is not done with, `UNCHANGED` where no leader has begun yet."""
    state_epoch: int
    """Rises with each reset by an administrator."""
    leader_epoch: int
    deliveries: tuple[Delivery, ...]
    at: Place
    """Of the newest record."""


@dataclass(slots=True)
class ShareLog:
    """One replica of a partition of `__share_group_state`, read through."""

    place: PartitionPlace
    states: dict[SharePartition, ShareState] = field(default_factory=dict)
    skipped: int = 0
    """Records of unknown type or version."""
    end: int = 0
    last_epoch: int = -1
    problems: tuple[Problem, ...] = ()


def read_share_log(place: PartitionPlace, *, until_ms: int | None = None) -> ShareLog:
    """Read a replica of `__share_group_state`.

    Args:
        place: its directory.
        until_ms: records that are newer are left out.
    """
    log = list_log(place)
    found = ShareLog(place, end=log.last_base)
    for path, record in _records(log):
        found.end = max(found.end, record.offset + 1)
        found.last_epoch = max(found.last_epoch, record.partition_leader_epoch)
        if not record.is_control and (until_ms is None or record.timestamp_ms <= until_ms):
            _play(found, record, path)
    found.problems = tuple(log.problems)
    return found


def _records(log: ReplicaLog) -> Iterator[tuple[str, Record]]:
    for path, file in log.files(log.segments):
        for record in iter_records(file):
            if isinstance(record, Damage):
                log.note_damage(path, record)
            else:
                yield path, record


def _play(found: ShareLog, record: Record, path: str) -> None:
    parsed = parse_share_record(record.key, record.value)
    if not isinstance(parsed.key, Decoded) or parsed.key.version not in SHARE_TABLES.keys:
        found.skipped += 1
        return
    named = parsed.key.fields
    key = SharePartition(named["group_id"], str(named["topic_id"]), named["partition"])
    if parsed.value is None:
        found.states.pop(key, None)
        return
    if not isinstance(parsed.value, Decoded):
        found.skipped += 1
        return
    value: Mapping[str, Any] = parsed.value.fields
    at = Place(record.offset, record.partition_leader_epoch, record.timestamp_ms, path, record.batch_position)
    before = found.states.get(key) if parsed.key.version == _UPDATE else None
    start = value["start_offset"]
    if before is not None and start == UNCHANGED:
        start = before.start_offset
    written = [
        Delivery(one["first_offset"], one["last_offset"], one["delivery_state"], one["delivery_count"])
        for one in value["state_batches"] or ()
    ]
    found.states[key] = ShareState(
        start_offset=start,
        state_epoch=value["state_epoch"]
        if before is None and "state_epoch" in value
        else (-1 if before is None else before.state_epoch),
        leader_epoch=value["leader_epoch"],
        deliveries=combined(() if before is None else before.deliveries, written, start),
        at=at,
    )
