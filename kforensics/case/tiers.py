"""Where the offsets of tiered partitions are: the one fact that every command asks about remote storage."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kforensics.case.cluster import cluster_of
from kforensics.case.model import Case, fact, places_of, recorded_copies
from kforensics.damage import Absent
from kforensics.errors import EvidenceError, InputsRefused
from kforensics.evidence.discovery.partition_dirs import PartitionPlace, checkpoint_value
from kforensics.evidence.metadata.state import newest_log
from kforensics.evidence.model import CheckpointValue, Replica
from kforensics.evidence.replica.collect import collect_directory
from kforensics.reconcile.logs.tiers import RemoteCopies, Tiers
from kforensics.units import REMOTE_LOG_TOPIC, OffsetRange, TopicPartition

if TYPE_CHECKING:
    from kforensics.evidence.coordinators.replica_log import ReplicaLog

Held = Mapping[tuple[int, str], Sequence[OffsetRange]]
"""The offsets that the logs of directories have, by input and path, where they were read."""


@fact
def remote_copies_of(case: Case) -> RemoteCopies:
    """Return the copies of segments in remote storage, by the records of `__remote_log_metadata` as it is now."""
    found = recorded_copies(case)
    if found is None:
        return RemoteCopies()
    newest = newest_log(cluster_of(case).histories)
    named = newest.topics_named(REMOTE_LOG_TOPIC) if newest is not None else ()
    count = sum(topic_id == named[-1].topic_id for topic_id, _ in newest.partitions) if newest and named else 0
    return RemoteCopies(found.segments, found.whole, count or Absent.UNKNOWN)


@fact
def tiers_of(case: Case) -> tuple[Tiers, ...]:
    """Return the partitions that are partly in remote storage; their logs end with their last batch."""
    return tuple(tiers_up_to(case, {}))


def tiers_up_to(case: Case, read: Held) -> Iterator[Tiers]:
    """Yield the partitions that are partly in remote storage, by the records of the copies among the inputs; none where these are of several clusters."""
    if not any(partition.topic == REMOTE_LOG_TOPIC or _is_late(place) for partition, place in _live(case)):
        return
    from kforensics.evidence.coordinators.replica_log import list_log  # noqa: PLC0415 - few clusters have remote storage

    try:
        remote = remote_copies_of(case)
    except InputsRefused:
        return
    groups: dict[tuple[TopicPartition, str | Absent], list[tuple[PartitionPlace, Replica]]] = defaultdict(list)
    for partition, place in _live(case):
        if partition in remote.segments or _is_late(place):
            try:
                replica = collect_directory(place).replica
            except EvidenceError:
                continue
            groups[partition, replica.topic_id].append((place, replica))
    for (partition, topic_id), group in groups.items():
        logs = [(list_log(place), place, replica) for place, replica in group]
        held = [one for log, place, _ in logs if log.segments for one in _held(case, place, log, read)]
        if not held:
            continue
        starts = [one.value for _, place, _ in logs if isinstance(one := _start(place), CheckpointValue)]
        copied = [one.offsets.first for one in remote.of(partition, topic_id) if one.is_finished]
        first = min(one.first for one in held)
        begins = max(starts, default=copied[0] if copied else first)
        epochs = max(
            (one.checkpoint_epochs for _, _, one in logs if isinstance(one.checkpoint_epochs, tuple)),
            key=lambda one: one[-1:],
            default=(),
        )
        log = OffsetRange(begins, max(one.last for one in held))
        if partition in remote.segments or (epochs and max(epochs[0].start_offset, begins) < first):
            yield Tiers.of(partition, topic_id, log, [one for one in held if one.count > 0], epochs, remote)


def _live(case: Case) -> Iterator[tuple[TopicPartition, PartitionPlace]]:
    for partition, group in places_of(case).by_partition.items():
        for place in group:
            if place.state.input not in case.ranks and place.is_live:
                yield partition, place


def _is_late(place: PartitionPlace) -> bool:
    """Whether the first segment here begins above the log start, as that of a tiered log."""
    start = _start(place)
    if not isinstance(start, CheckpointValue):
        return False
    from kforensics.evidence.coordinators.replica_log import list_log  # noqa: PLC0415 - likewise

    return start.value < list_log(place).first_base


def _start(place: PartitionPlace) -> CheckpointValue | Absent:
    return checkpoint_value(place.state, "log_start", place.topic_partition)


def _held(case: Case, place: PartitionPlace, log: "ReplicaLog", read: Held) -> Sequence[OffsetRange]:
    """Return the offsets of a log: all from its first segment up to its end, unless it was read."""
    known = read.get((place.state.input, place.path))
    if known is not None:
        return known
    from kforensics.evidence.replica.ends import read_log_tail  # noqa: PLC0415 - likewise

    try:
        tail = read_log_tail(case.inputs.found[place.state.input], log.segments, dict(log.indexes))
    except EvidenceError:
        tail = Absent.UNREADABLE
    end = log.last_base if isinstance(tail, Absent) else tail.log_end_offset
    return [OffsetRange(log.first_base, end - 1)]
