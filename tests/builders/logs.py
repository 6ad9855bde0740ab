"""Replicas made of batches in memory, and a reader over them."""

from dataclasses import dataclass

import numpy as np

from kforensics.damage import Absent
from kforensics.evidence.model import CheckpointValue, Citation, Lineage, Replica, Segment
from kforensics.evidence.replica.segments import digest_batches
from kforensics.formats.log.batch_table import empty_batches
from kforensics.formats.log.records import Record
from kforensics.units import EpochEntry, TopicPartition

HERE = Citation(input=0, path="made-0")


@dataclass
class MemoryReader:
    """Batches from the replicas themselves, records from a table by path."""

    records_by_path: dict

    def batches(self, replica, first_offset, last_offset):
        parts = []
        for at, segment in enumerate(replica.segments):
            rows = segment.batches[
                (segment.batches["last_offset"] >= first_offset) & (segment.batches["base_offset"] <= last_offset)
            ].copy()
            rows["segment"] = at
            parts.append(rows)
        return np.concatenate(parts) if parts else empty_batches()

    def records(self, replica, first_offset, last_offset):
        return (r for r in self.records_by_path.get(replica.path, ()) if first_offset <= r.offset <= last_offset)


def batch(base, last, epoch, crc=0, *, count=None, magic=2, attributes=0, producer=-1):
    return (
        base,
        last,
        epoch,
        crc or base * 31 + epoch,
        last - base + 1 if count is None else count,
        magic,
        attributes,
        producer,
    )


def replica(
    broker,
    *segments,
    checkpoint=None,
    high_watermark=None,
    recovery_point=None,
    log_start=None,
    cleaned=None,
    clean=True,
    topic_id=Absent.NOT_WRITTEN,
    state="live",
    name="t",
    base=None,
):
    built = tuple(segment(broker, rows, base if at == 0 else None) for at, rows in enumerate(segments))
    epochs: list[EpochEntry] = []
    for one in built:
        epochs += [e for e in one.epochs if not epochs or epochs[-1].leader_epoch != e.leader_epoch]
    end = max((s.base_offset if isinstance(s.last_offset, Absent) else s.last_offset + 1 for s in built), default=0)
    return Replica(
        input=broker,
        broker_id=broker,
        path=f"b{broker}/{name}-0",
        log_dir="",
        topic_partition=TopicPartition(name, 0),
        state=state,
        topic_id=topic_id,
        segments=built,
        lineage=Lineage(
            log_start_offset=log_start or (built[0].base_offset if built else 0),
            log_end_offset=end,
        ),
        checkpoint_epochs=tuple(epochs) if checkpoint is None else tuple(EpochEntry(*e) for e in checkpoint),
        high_watermark=_value(high_watermark),
        recovery_point=_value(recovery_point),
        log_start=_value(log_start),
        cleaner_point=_value(cleaned),
        clean_shutdown=clean,
    )


def segment(broker, rows, file_base=None):
    table = empty_batches(len(rows))
    position = 0
    for at, (base, last, epoch, crc, count, magic, attributes, producer) in enumerate(rows):
        table[at] = (base, last, position, 100, epoch, crc, True, magic, attributes, count, 0, 0, producer, 0, 0, 0)
        position += 100
    epochs: list[EpochEntry] = []
    for row in rows:
        if row[2] >= 0 and (not epochs or epochs[-1].leader_epoch != row[2]):
            epochs.append(EpochEntry(row[2], row[0]))
    first = rows[0][0] if rows else 0
    return Segment(
        path=f"b{broker}/{first:020d}.log",
        base_offset=first if file_base is None else file_base,
        length=position,
        valid_length=position,
        recovered_end_offset=rows[-1][1] + 1 if rows else Absent.NOT_APPLICABLE,
        first_offset=first if rows else Absent.NOT_APPLICABLE,
        last_offset=max(r[1] for r in rows) if rows else Absent.NOT_APPLICABLE,
        batch_count=len(rows),
        record_count=sum(r[4] for r in rows),
        epochs=tuple(epochs),
        magics=frozenset(r[5] for r in rows),
        max_timestamp_ms=0,
        digests=digest_batches(table),
        batches=table,
        is_thinned=any(one[4] < one[1] - one[0] + 1 and one[5] == 2 for one in rows),
        thinned_below=max((one[1] + 1 for one in rows if one[4] < one[1] - one[0] + 1 and one[5] == 2), default=0),
        longest_batch=max((row[1] - row[0] + 1 for row in rows), default=0),
    )


def record(offset, key=b"k", value=b"v", *, magic=2, control=False, transactional=False, producer=-1):
    return Record(offset, 0, key, value, (), -1, 0, offset, 0, producer, -1, magic, transactional, control)


def _value(number):
    return Absent.NOT_WRITTEN if number is None else CheckpointValue(value=number, citation=HERE)
