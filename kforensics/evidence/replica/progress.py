"""The progress of a node's directories: epochs, log starts and ends, and times of records, read without walking the logs."""

from collections.abc import Mapping
from dataclasses import dataclass

from kforensics.damage import Absent
from kforensics.errors import EvidenceError
from kforensics.evidence.discovery.inputs import FoundInput, Inputs
from kforensics.evidence.discovery.partition_dirs import PartitionPlace, find_places
from kforensics.evidence.replica.collect import collect_directory, segment_paths
from kforensics.evidence.replica.ends import LogTail, read_log_tail
from kforensics.source.naming import parse_file_name
from kforensics.units import METADATA_TOPICS, TopicPartition

MOST_PARTITIONS = 64
"""The number of partitions of a node that are compared, enough to show which of two moments was first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogProgress:
    """One log at one moment."""

    leader_epoch: int | Absent
    """The newest that its checkpoint or its last batch names."""
    log_start_offset: int
    log_end_offset: int
    newest_record_ms: int | Absent
    length: int
    """Bytes of its segments."""
    topic_id: str | Absent = Absent.NOT_WRITTEN


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeProgress:
    """One node's directories at one moment."""

    cluster_id: str | Absent
    node_id: int | Absent
    logs: Mapping[TopicPartition, LogProgress]
    newest_write_ms: int
    """The time at which a segment was last written by the files' own times, in whole seconds as archives keep them; 0 without one."""
    oldest_write_ms: int


def read_progress(found: FoundInput) -> NodeProgress:
    """Return what the directories of a node show of their moment; what can't be read is left out."""
    places = find_places(Inputs(found=(found,)))
    logs: dict[TopicPartition, LogProgress] = {}
    times: list[int] = []
    ordered = sorted(places.by_partition, key=lambda one: (one.topic not in METADATA_TOPICS, one))
    for partition in ordered:
        for place in places.by_partition[partition]:
            if not place.is_live:
                continue
            times += _write_times(place)
            if len(logs) < MOST_PARTITIONS and (progress := _log_progress(found, place)) is not None:
                logs[partition] = progress
    return NodeProgress(
        cluster_id=found.described.cluster_id,
        node_id=found.described.broker_id,
        logs=logs,
        newest_write_ms=max(times, default=0),
        oldest_write_ms=min(times, default=0),
    )


def _write_times(place: PartitionPlace) -> list[int]:
    times = []
    for path in segment_paths(place):
        try:
            times.append(int((place.state.root / path).lstat().st_mtime) * 1_000)
        except OSError:
            continue
    return times


def _log_progress(found: FoundInput, place: PartitionPlace) -> LogProgress | None:
    names = [(parse_file_name(path.rpartition("/")[2]), path) for path in segment_paths(place)]
    segments = [(name.base_offset, path) for name, path in names if isinstance(name.base_offset, int)]
    try:
        tail = read_log_tail(found, segments, {base: path.removesuffix(".log") + ".index" for base, path in segments})
    except EvidenceError:
        return None
    if not isinstance(tail, LogTail):
        return None
    directory = collect_directory(place).replica
    claimed = () if isinstance(directory.checkpoint_epochs, Absent) else directory.checkpoint_epochs
    epochs = [entry.leader_epoch for entry in claimed]
    if isinstance(tail.leader_epoch, int):
        epochs.append(tail.leader_epoch)
    first = min(base for base, _ in segments)
    return LogProgress(
        leader_epoch=max(epochs, default=Absent.NOT_WRITTEN),
        log_start_offset=first if isinstance(directory.log_start, Absent) else directory.log_start.value,
        log_end_offset=tail.log_end_offset,
        newest_record_ms=tail.max_timestamp_ms,
        length=place.length,
        topic_id=directory.topic_id,
    )
