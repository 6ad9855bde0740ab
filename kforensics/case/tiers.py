"""Where the offsets of tiered partitions are: the one fact that every command asks about remote storage."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from kforensics.case.cluster import cluster_of
from kforensics.case.model import Case, fact, places_of
from kforensics.damage import Absent
from kforensics.errors import EvidenceError, InputsRefused
from kforensics.evidence.discovery.partition_dirs import PartitionPlace, checkpoint_value
from kforensics.evidence.metadata.state import newest_log
from kforensics.evidence.model import CheckpointValue, Replica
from kforensics.evidence.replica.collect import collect_directory
from kforensics.reconcile.logs.tiers import RemoteCopies, Tiers
from kforensics.units import REMOTE_LOG_TOPIC, OffsetRange, TopicPartition

Ends = Mapping[tuple[int, str], int]
"""Where the logs of directories end, by input and path."""


@fact
def remote_copies_of(case: Case) -> RemoteCopies:
    """Return the copies of segments in remote storage, by the records of `__remote_log_metadata` as it is now."""
    places = [place for _, place in _live(case) if place.topic_partition.topic == REMOTE_LOG_TOPIC]
    if not places:
        return RemoteCopies()
    from kforensics.evidence.remote_copies import replayed  # noqa: PLC0415 - few clusters have remote storage

    newest = newest_log(cluster_of(case).histories)
    named = newest.topics_named(REMOTE_LOG_TOPIC) if newest is not None else ()
    count = sum(topic_id == named[-1].topic_id for topic_id, _ in newest.partitions) if newest and named else 0
    found = replayed(places)
    return RemoteCopies(found.segments, found.whole, count or Absent.UNKNOWN)


@fact
def tiers_of(case: Case) -> tuple[Tiers, ...]:
    """Return the partitions that are partly in remote storage; their logs end where a checkpoint, or their last segment, says."""
    return tuple(tiers_up_to(case, {}))


def tiers_up_to(case: Case, ends: Ends) -> Iterator[Tiers]:
    """Yield the partitions that are partly in remote storage, by the records of the copies among the inputs; none where these are of several clusters."""
    if not any(partition.topic == REMOTE_LOG_TOPIC or _is_late(place) for partition, place in _live(case)):
        return
    from kforensics.evidence.coordinators.replica_log import list_log  # noqa: PLC0415 - few clusters have remote storage

    try:
        remote = remote_copies_of(case)
    except InputsRefused:
        return
    named = {(found[0].topic, number) for (_, number), found in remote.segments.items()}
    groups: dict[tuple[TopicPartition, str | Absent], list[tuple[PartitionPlace, Replica]]] = defaultdict(list)
    for partition, place in _live(case):
        if partition in named or _is_late(place):
            try:
                replica = collect_directory(place).replica
            except EvidenceError:
                continue
            groups[partition, replica.topic_id].append((place, replica))
    for (partition, topic_id), group in groups.items():
        logs = [(list_log(place), place, replica) for place, replica in group]
        held = [
            OffsetRange(log.first_base, _end(place, log.last_base, ends) - 1) for log, place, _ in logs if log.segments
        ]
        if not held:
            continue
        starts = [one.value for _, place, _ in logs if isinstance(one := _start(place), CheckpointValue)]
        begins = max(starts, default=min(one.first for one in held))
        epochs = max(
            (one.checkpoint_epochs for _, _, one in logs if isinstance(one.checkpoint_epochs, tuple)),
            key=lambda one: one[-1:],
            default=(),
        )
        is_tiered = bool(epochs) and epochs[0].start_offset < min(one.first for one in held)
        log = OffsetRange(begins, max(one.last for one in held))
        if log.count > 0 and (
            remote.of(partition, topic_id) or (is_tiered and begins < min(one.first for one in held))
        ):
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


def _end(place: PartitionPlace, last_base: int, ends: Ends) -> int:
    known = ends.get((place.state.input, place.path))
    if known is not None:
        return known
    claimed = (
        checkpoint_value(place.state, name, place.topic_partition) for name in ("high_watermark", "recovery_point")
    )
    return max(last_base, *(one.value for one in claimed if isinstance(one, CheckpointValue)), 0)
