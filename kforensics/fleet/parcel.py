"""The parcels that travel between the stages: replicas and segments of a group of partitions, packed small.

A row of columns by name would cost more than what it says: values are sent as lists in the order of the tables' columns,
and a whole group's are compressed together.
"""

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kforensics.damage import Absent, Span
from kforensics.evidence.captured.columns import Row, known, known_or
from kforensics.evidence.group_commits import GroupCommitRecord
from kforensics.evidence.model import Citation
from kforensics.fleet.pieces import Scanned
from kforensics.fleet.schemas import PLAN, REPLICAS, SEGMENTS
from kforensics.units import TopicPartition

_DIRECTORY_COLUMNS = ("input", "task", *PLAN.names)
_REPLICA_COLUMNS = tuple(REPLICAS.names)
_SEGMENT_COLUMNS = tuple(name for name in SEGMENTS.names if name not in {"node_id", "topic", "partition", "scanned_ns"})

PartitionKey = tuple[str, str, int]
"""Cluster, topic, partition."""


def group_of(key: PartitionKey, groups: int) -> int:
    """Return the group that judges a partition, the same on every machine."""
    cluster, topic, partition = key
    return zlib.crc32(f"{cluster}\0{topic}\0{partition}".encode()) % groups


def pack(scanned: Scanned, clusters: Sequence[str], groups: int) -> dict[int, bytes]:
    """Return the parcels of a task, by the group that they go to."""
    contents: dict[int, tuple[list[Any], ...]] = {}

    def content_of(key: PartitionKey) -> tuple[list[Any], ...]:
        return contents.setdefault(group_of(key, groups), ([], [], [], []))

    def content(row: Mapping[str, Any]) -> tuple[list[Any], ...]:
        return content_of((clusters[row["input"]], row["topic"], row["partition"]))

    for row in scanned.replicas:
        content(row)[0].append([row[name] for name in _REPLICA_COLUMNS])
    for row in scanned.segments:
        key = (row["source"], row["path"])
        values = [row[name] for name in _SEGMENT_COLUMNS]
        content(row)[1].append([values, scanned.digests.get(key, []), scanned.epochs.get(key, [])])
    for row in scanned.directories:
        content(row)[2].append([row[name] for name in _DIRECTORY_COLUMNS])
    for at, one in scanned.commits:
        values = [*at, *one.partition, one.group, one.offset, known(one.leader_epoch), one.time_ms]
        content_of((clusters[at[1]], *one.partition))[3].append(values)
    return {
        group: zlib.compress(json.dumps(items, separators=(",", ":")).encode(), 6)
        for group, items in sorted(contents.items())
    }


def unpack(parcels: Iterable[bytes]) -> Scanned:
    """Return the rows that several tasks sent to one group.

    Args:
        parcels: as `pack` made them in the same run, so that their columns are these.
    """
    out = Scanned()
    for parcel in parcels:
        replicas, segments, directories, commits = json.loads(zlib.decompress(parcel))
        out.replicas.extend(dict(zip(_REPLICA_COLUMNS, values, strict=True)) for values in replicas)
        out.directories.extend(dict(zip(_DIRECTORY_COLUMNS, values, strict=True)) for values in directories)
        for values, digests, epochs in segments:
            row: Row = dict(zip(_SEGMENT_COLUMNS, values, strict=True))
            out.add_segment(row, digests, epochs)
        for log, number, path, position, topic, partition, group, offset, epoch, time_ms in commits:
            found = GroupCommitRecord(
                partition=TopicPartition(topic, partition),
                group=group,
                offset=offset,
                leader_epoch=known_or(epoch, Absent.NOT_WRITTEN),
                time_ms=time_ms,
                citation=Citation(input=number, path=path, span=Span(position, 0)),
            )
            out.commits.append(((log, number, path, position), found))
    return out
