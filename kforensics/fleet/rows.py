"""Evidence as rows of tables and back, so that what was read in one place can be judged in another."""

from collections.abc import Mapping, Sequence
from typing import Any

from kforensics.damage import Absent, Damage
from kforensics.evidence.captured.columns import (
    Row,
    damage_of,
    damage_rows,
    known,
    known_or,
)
from kforensics.evidence.discovery.partition_dirs import CHECKPOINTS
from kforensics.evidence.model import CheckpointValue, Citation, Lineage, Replica, Segment
from kforensics.evidence.replica.collect import stitch_replica
from kforensics.source.walk import join
from kforensics.units import EpochEntry, TopicPartition

_WITH_RECORDS = frozenset({"files", "records"})
_WITH_BATCHES = _WITH_RECORDS | {"batches"}
"""The part of a replica's content that can be read: its files themselves, or what a scan carried along."""


# ---------------------------------------------------------------- replicas


def replica_row(
    replica: Replica, source: str, sequence: int, content: str = "files", *, segment_files: int | None = None
) -> Row:
    """Return the facts of a partition directory without its segments.

    Args:
        content: what can be read of its segments: `files`, `records`, `batches` or `digests`.
        segment_files: the number of its segment files; none where it could not be listed whole.
    """
    checkpoints = {name: getattr(replica, name) for name in CHECKPOINTS}
    absent = {
        name: value.value
        for name in ("broker_id", "topic_id", "checkpoint_epochs", *CHECKPOINTS)
        if isinstance(value := getattr(replica, name), Absent)
    }
    epochs = replica.checkpoint_epochs
    return {
        "input": replica.input,
        "node_id": known(replica.broker_id),
        "source": source,
        "sequence": sequence,
        "topic": replica.topic_partition.topic,
        "partition": replica.topic_partition.partition,
        "state": replica.state,
        "path": replica.path,
        "log_dir": replica.log_dir,
        "topic_id": known(replica.topic_id),
        "checkpoint_epochs": None
        if isinstance(epochs, Absent)
        else [{"leader_epoch": epoch, "start_offset": start} for epoch, start in epochs],
        **{name: None if isinstance(one, Absent) else one.value for name, one in checkpoints.items()},
        "checkpoint_lines": [_line(one) for one in checkpoints.values()],
        "clean_shutdown": replica.clean_shutdown,
        "producer_snapshots": list(replica.producer_snapshots),
        "orphan_indexes": [{"base_offset": base, "path": path} for base, path in replica.orphan_indexes],
        "segment_files": segment_files,
        "damage": [row for path, damage in sorted(replica.damage.items()) for row in damage_rows(path, damage)],
        "content": content,
        "absent": [f"{name}={why}" for name, why in sorted(absent.items())],
    }


def _line(checkpoint: CheckpointValue | Absent) -> int | None:
    if isinstance(checkpoint, Absent) or isinstance(checkpoint.citation.line, Absent):
        return None
    return checkpoint.citation.line


def replica_of(row: Mapping[str, Any], segments: Sequence[Segment], deleted: Sequence[Segment]) -> Replica:
    """Return the replica of a row and its segments.

    Args:
        deleted: those whose files carry `.deleted`.
    """
    absent = {name: Absent(why) for name, _, why in (one.partition("=") for one in row["absent"] or ())}
    lines = dict(zip(CHECKPOINTS, row["checkpoint_lines"] or (), strict=False))

    def checkpoint(name: str) -> CheckpointValue | Absent:
        if row[name] is None:
            return absent.get(name, Absent.NOT_WRITTEN)
        path = join(row["log_dir"], CHECKPOINTS[name])
        line = known_or(lines.get(name), Absent.NOT_APPLICABLE)
        return CheckpointValue(value=row[name], citation=Citation(input=row["input"], path=path, line=line))

    epochs = row["checkpoint_epochs"]
    damage: dict[str, tuple[Damage, ...]] = {}
    for one in row["damage"] or ():
        damage[one["path"]] = (*damage.get(one["path"], ()), *damage_of([one]))
    is_read_whole = row.get("segment_files") == len(segments) + len(deleted)
    return stitch_replica(
        Replica(
            input=row["input"],
            broker_id=known_or(row["node_id"], absent.get("broker_id", Absent.UNKNOWN)),
            path=row["path"],
            log_dir=row["log_dir"],
            topic_partition=TopicPartition(row["topic"], row["partition"]),
            state=row["state"],
            topic_id=known_or(row["topic_id"], absent.get("topic_id", Absent.NOT_WRITTEN)),
            segments=(),
            lineage=Lineage(log_start_offset=0, log_end_offset=0),
            checkpoint_epochs=absent.get("checkpoint_epochs", Absent.NOT_WRITTEN)
            if epochs is None
            else tuple(EpochEntry(one["leader_epoch"], one["start_offset"]) for one in epochs),
            high_watermark=checkpoint("high_watermark"),
            recovery_point=checkpoint("recovery_point"),
            log_start=checkpoint("log_start"),
            cleaner_point=checkpoint("cleaner_point"),
            clean_shutdown=row["clean_shutdown"],
            producer_snapshots=tuple(row["producer_snapshots"] or ()),
            is_read_whole=is_read_whole,
            unread_files=() if is_read_whole else (row["path"],),
            orphan_indexes=tuple((one["base_offset"], one["path"]) for one in row.get("orphan_indexes") or ()),
            damage=damage,
            is_at_hand=row["content"] in _WITH_BATCHES,
            has_records=row["content"] in _WITH_RECORDS,
        ),
        segments,
        deleted,
    )
