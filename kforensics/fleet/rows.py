"""Evidence as rows of tables and back, so that what was read in one place can be judged in another."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Absent, Damage, DamageKind, Gravity, Span
from kforensics.evidence.discovery.partition_dirs import CHECKPOINTS
from kforensics.evidence.model import DIGEST_DTYPE, CheckpointValue, Citation, Lineage, Replica, Segment
from kforensics.evidence.replica.collect import stitch_replica
from kforensics.source.walk import join
from kforensics.units import EpochEntry, OffsetRange, TopicPartition

Row = dict[str, Any]

_WITH_RECORDS = frozenset({"files", "records"})
_WITH_BATCHES = _WITH_RECORDS | {"batches"}
"""What of a replica's content can be read: its files themselves, or what a scan carried along."""

_DIGEST_COLUMNS = ("bucket", "low", "high", "batches", "position")


def known(value: Any) -> Any:
    """The value, or none where it is absent."""
    return None if isinstance(value, Absent) else value


def known_or(value: Any, absent: Absent) -> Any:
    """The value, or why it is absent."""
    return absent if value is None else value


# ---------------------------------------------------------------- damage


def damage_rows(path: str, damage: Iterable[Damage]) -> list[Row]:
    """The damaged places of a file."""
    return [
        {
            "path": path,
            "position": one.span.position,
            "length": one.span.length,
            "kind": one.kind.value,
            "expected": one.expected,
            "found": one.found,
            "gravity": one.gravity.value,
            "first_offset_lost": one.offsets_lost.first if isinstance(one.offsets_lost, OffsetRange) else None,
            "last_offset_lost": one.offsets_lost.last if isinstance(one.offsets_lost, OffsetRange) else None,
        }
        for one in damage
    ]


def damage_of(rows: Iterable[Mapping[str, Any]] | None) -> tuple[Damage, ...]:
    """Return the damaged places of rows."""
    return tuple(
        Damage(
            span=Span(row["position"], row["length"]),
            kind=DamageKind(row["kind"]),
            expected=row["expected"],
            found=row["found"],
            gravity=Gravity(row["gravity"]),
            offsets_lost=Absent.NOT_APPLICABLE
            if row["first_offset_lost"] is None
            else OffsetRange(row["first_offset_lost"], row["last_offset_lost"]),
        )
        for row in rows or ()
    )


# ---------------------------------------------------------------- segments


def segment_row(segment: Segment, place: Mapping[str, Any], *, is_deleted: bool, scanned_ns: int) -> Row:
    """A segment; `place` gives the columns of its place. Digests and lineage have tables of their own."""
    return {
        **place,
        "path": segment.path,
        "is_deleted": is_deleted,
        "base_offset": segment.base_offset,
        "length": segment.length,
        "valid_length": segment.valid_length,
        "first_offset": known(segment.first_offset),
        "last_offset": known(segment.last_offset),
        "recovered_end_offset": known(segment.recovered_end_offset),
        "batch_count": segment.batch_count,
        "record_count": segment.record_count,
        "recovered_batch_count": segment.recovered_batch_count,
        "recovered_record_count": segment.recovered_record_count,
        "magics": sorted(segment.magics),
        "max_timestamp_ms": known(segment.max_timestamp_ms),
        "is_thinned": segment.is_thinned,
        "changed": segment.changed,
        "mtime_ns": segment.mtime_ns,
        "scanned_ns": scanned_ns,
        "damage": damage_rows(segment.path, segment.damage),
    }


def digest_lists(digests: NDArray[np.void]) -> list[list[int]]:
    """The digests as numbers, the 128 bits as two signed words."""
    signed = digests.astype(_SIGNED_DIGEST)
    return [list(row) for row in zip(*(signed[name].tolist() for name in _DIGEST_COLUMNS), strict=True)]


_SIGNED_DIGEST = np.dtype([(name, "<i8") for name in _DIGEST_COLUMNS])


def digests_of(rows: Sequence[Sequence[int]]) -> Any:
    """The digests that `digest_lists` made lists of."""
    if not rows:
        return np.zeros(0, dtype=DIGEST_DTYPE)
    return np.array([tuple(row) for row in rows], dtype=_SIGNED_DIGEST).view(DIGEST_DTYPE)


def segment_of(row: Mapping[str, Any], digests: Sequence[Sequence[int]], epochs: Iterable[Sequence[int]]) -> Segment:
    """Return the segment of a row, its digests and its lineage; batch tables are never kept."""
    return Segment(
        path=row["path"],
        base_offset=row["base_offset"],
        length=row["length"],
        valid_length=row["valid_length"],
        recovered_end_offset=known_or(row["recovered_end_offset"], Absent.NOT_APPLICABLE),
        first_offset=known_or(row["first_offset"], Absent.NOT_APPLICABLE),
        last_offset=known_or(row["last_offset"], Absent.NOT_APPLICABLE),
        batch_count=row["batch_count"],
        record_count=row["record_count"],
        epochs=tuple(EpochEntry(epoch, start) for epoch, start in epochs),
        magics=frozenset(row["magics"] or ()),
        max_timestamp_ms=known_or(row["max_timestamp_ms"], Absent.NOT_APPLICABLE),
        digests=digests_of(digests),
        batches=Absent.NOT_WRITTEN,
        damage=damage_of(row["damage"]),
        changed=row["changed"],
        mtime_ns=row["mtime_ns"],
        recovered_batch_count=row["recovered_batch_count"],
        recovered_record_count=row["recovered_record_count"],
        is_thinned=row["is_thinned"],
    )


# ---------------------------------------------------------------- replicas


def replica_row(replica: Replica, source: str, sequence: int, content: str = "files") -> Row:
    """What a partition directory says, its segments apart; `content` is what can be read of them: `files`, `records`, `batches` or `digests`."""
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
        "damage": [row for path, damage in sorted(replica.damage.items()) for row in damage_rows(path, damage)],
        "content": content,
        "absent": [f"{name}={why}" for name, why in sorted(absent.items())],
    }


def _line(checkpoint: CheckpointValue | Absent) -> int | None:
    if isinstance(checkpoint, Absent) or isinstance(checkpoint.citation.line, Absent):
        return None
    return checkpoint.citation.line


def replica_of(row: Mapping[str, Any], segments: Sequence[Segment], deleted: Sequence[Segment]) -> Replica:
    """Return the replica of a row and its segments."""
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
            damage=damage,
            is_at_hand=row["content"] in _WITH_BATCHES,
            has_records=row["content"] in _WITH_RECORDS,
        ),
        segments,
        deleted,
    )
