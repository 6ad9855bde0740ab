"""Write the data directories of a fleet: many brokers and partitions of a given size, at the speed of the disk.

All batches are one sound batch repeated, with offset, leader epoch, a name of its own in its first value, and checksum set: of
two partitions no two batches are equal, and of a partition those of all replicas are. A few partitions get a fault whose outcome is known.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Absent
from kforensics.errors import UsageError
from kforensics.formats.checkpoint.lines import (
    Checkpoint,
    CheckpointEntry,
    LeaderEpochCheckpoint,
    LeaderEpochLine,
    encode_checkpoint,
    encode_leader_epoch_checkpoint,
)
from kforensics.formats.checkpoint.properties import (
    PartitionMetadata,
    encode_meta_properties,
    encode_partition_metadata,
    meta_properties,
)
from kforensics.formats.index import encode_index, encode_producers, offset_index, time_index
from kforensics.formats.log.batch_table import BATCH_HEADER, CRC_COVERED_POSITION, CRC_POSITION
from kforensics.formats.log.batches import (
    build_record_batch,
    encode_record_batch,
)
from kforensics.formats.primitives.checksum import crc32c
from kforensics.protocol.election import assign_replicas
from kforensics.simulation.broker_files import make_new
from kforensics.simulation.cluster import stable_id

RECORDS_PER_BATCH = 40
VALUE_LENGTH = 380
SEGMENT_LENGTH = 64 * 1_048_576
WINDOW_LENGTH = 8 * 1_048_576
_START_MS = 1_700_000_000_000
_FAULT_EVERY = 10
_FEWEST_BATCHES = 8
"""The fewest batches of a log: enough for two leader epochs and a fault between them."""
_REPLICATION_FACTOR = 3
"""How many replicas each partition gets, limited to the brokers."""
_FILLING = b"v"
_EPOCH_POSITION = BATCH_HEADER.position_of("partition_leader_epoch")


class FleetFault(StrEnum):
    """The fault of the last replica of a partition; every other replica equals its leader."""

    NONE = "none"
    BEHIND = "behind"
    DIVERGED = "diverged"
    """It holds batches of an epoch that the leader does not know: they will be truncated."""
    SILENT = "silent"
    """One batch has different content at the same offset and epoch: no rule of the protocol repairs it."""


FAULTS = (FleetFault.BEHIND, FleetFault.DIVERGED, FleetFault.SILENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPartition:
    """One partition, its replicas with the leader first, and the fault of the last replica."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    batches: int
    fault: FleetFault
    faulty_broker: int | Absent
    expected_truncation: int | Absent
    first_divergence: int | Absent

    @property
    def directory(self) -> str:
        """Return the name of its directories."""
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetTruth:
    """The fleet that was written."""

    brokers: tuple[int, ...]
    bytes: int
    segments: int
    replicas: int
    partitions: tuple[FleetPartition, ...]


def write_fleet(directory: Path, *, brokers: int, partitions: int, total_length: int) -> FleetTruth:
    """Write the data directories of a fleet below a new directory, and return what is true of them."""
    broker_ids = tuple(range(1, brokers + 1))
    template = _template(_FILLING)
    other = _template(b"w")
    assignment = assign_replicas(broker_ids, partitions, min(_REPLICATION_FACTOR, brokers))
    replicas = sum(len(members) for members in assignment)
    batches = total_length // replicas // len(template)
    if batches < _FEWEST_BATCHES:
        needed = _FEWEST_BATCHES * len(template) * replicas
        raise UsageError(
            f"{replicas} replicas of {_FEWEST_BATCHES} batches need {needed} bytes, given are {total_length}"
        )
    make_new(directory)
    plan = tuple(_plan(number, members, batches) for number, members in enumerate(assignment))
    for broker in broker_ids:
        _write_identity(directory.joinpath(f"broker-{broker}"), broker)
    written = segments = 0
    ends: dict[int, list[CheckpointEntry]] = {broker: [] for broker in broker_ids}
    for partition in plan:
        for broker in partition.replicas:
            folder = directory.joinpath(f"broker-{broker}", partition.directory)
            epochs = _epochs(partition, broker)
            writer = _LogWriter(folder, template, other if _is_silent(partition, broker) else None)
            writer.write(epochs)
            written += writer.written
            segments += writer.segments
            _write_small_files(folder, epochs)
            end = epochs[-1][1] * RECORDS_PER_BATCH
            ends[broker].append(CheckpointEntry(partition.topic, partition.partition, end))
    for broker, entries in ends.items():
        data = encode_checkpoint(Checkpoint(entries=tuple(entries)))
        for name in ("replication-offset-checkpoint", "recovery-point-offset-checkpoint"):
            directory.joinpath(f"broker-{broker}", name).write_bytes(data)
        directory.joinpath(f"broker-{broker}", ".kafka_cleanshutdown").write_bytes(b"")
    return FleetTruth(
        brokers=broker_ids,
        bytes=written,
        segments=segments,
        replicas=replicas,
        partitions=plan,
    )


def _plan(number: int, replicas: tuple[int, ...], batches: int) -> FleetPartition:
    fault = FleetFault.NONE
    if number % _FAULT_EVERY == _FAULT_EVERY - 1 and len(replicas) > 1:
        fault = FAULTS[number // _FAULT_EVERY % len(FAULTS)]
    nowhere = Absent.NOT_APPLICABLE
    # The leader's second epoch begins with the second half of its log; a diverged follower has batches of an epoch between the two.
    half = batches // 2 * RECORDS_PER_BATCH
    middle = batches // 4 * RECORDS_PER_BATCH
    return FleetPartition(
        topic=f"fleet-{number // 100}",
        partition=number % 100,
        replicas=replicas,
        batches=batches,
        fault=fault,
        faulty_broker=nowhere if fault is FleetFault.NONE else replicas[-1],
        expected_truncation=half if fault is FleetFault.DIVERGED else nowhere,
        first_divergence={FleetFault.DIVERGED: half, FleetFault.SILENT: middle}.get(fault, nowhere),
    )


def _epochs(partition: FleetPartition, broker: int) -> list[tuple[int, int]]:
    """Return the leader epochs, each with the number of the batch behind its last one."""
    half, batches = partition.batches // 2, partition.batches
    is_faulty = partition.faulty_broker == broker
    if is_faulty and partition.fault is FleetFault.DIVERGED:
        return [(0, half), (1, half + max(half // 8, 1))]
    if is_faulty and partition.fault is FleetFault.BEHIND:
        return [(0, half), (2, batches - max(batches // 8, 1))]
    return [(0, half), (2, batches)]


def _is_silent(partition: FleetPartition, broker: int) -> bool:
    return partition.fault is FleetFault.SILENT and partition.faulty_broker == broker


def _template(filling: bytes) -> bytes:
    records = [(_START_MS, f"key-{index:06d}".encode(), filling * VALUE_LENGTH) for index in range(RECORDS_PER_BATCH)]
    return encode_record_batch(build_record_batch(0, records))


class _LogWriter:
    """A writer of one replica's segments, a window of batches at a time."""

    def __init__(self, folder: Path, template: bytes, other: bytes | None) -> None:
        folder.mkdir()
        self.folder = folder
        self.length = len(template)
        self.row = np.frombuffer(template, dtype=np.uint8)
        self.other = None if other is None else np.frombuffer(other, dtype=np.uint8)
        self.value = template.index(_FILLING * VALUE_LENGTH)
        self.name = np.frombuffer(hashlib.blake2b(folder.name.encode(), digest_size=8).digest(), dtype=np.uint8)
        self.written = self.segments = 0

    def write(self, epochs: list[tuple[int, int]]) -> None:
        batches = epochs[-1][1]
        # The content differs where the first quarter ends, as `_plan` promises.
        odd_batch = -1 if self.other is None else batches // 4
        per_segment = max(SEGMENT_LENGTH // self.length, 1)
        for first in range(0, batches, per_segment):
            end = min(first + per_segment, batches)
            stem = f"{first * RECORDS_PER_BATCH:020d}"
            with self.folder.joinpath(f"{stem}.log").open("xb") as file:
                for window in self._windows(first, end, epochs, odd_batch):
                    file.write(window)
            self._write_indexes(stem, end - first)
            self.written += (end - first) * self.length
            self.segments += 1

    def _windows(self, first: int, end: int, epochs: list[tuple[int, int]], odd_batch: int) -> Iterator[memoryview]:
        step = max(WINDOW_LENGTH // self.length, 1)
        rows: NDArray[np.uint8] = np.tile(self.row, (min(step, end - first), 1))
        for start in range(first, end, step):
            count = min(step, end - start)
            numbers = np.arange(start, start + count)
            offsets = (numbers * RECORDS_PER_BATCH).astype(">i8")
            bounds = [until for _epoch, until in epochs]
            terms = np.array([epoch for epoch, _until in epochs])
            leader_epochs = terms[np.searchsorted(bounds, numbers, side="right")].astype(">i4")
            is_odd = self.other is not None and start <= odd_batch < start + count
            if is_odd and self.other is not None:
                rows[odd_batch - start] = self.other
            rows[:count, :8] = offsets.view(np.uint8).reshape(count, 8)
            rows[:count, _EPOCH_POSITION : _EPOCH_POSITION + 4] = leader_epochs.view(np.uint8).reshape(count, 4)
            rows[:count, self.value : self.value + 8] = self.name
            rows[:count, self.value + 8 : self.value + 16] = offsets.view(np.uint8).reshape(count, 8)
            sums = np.array([crc32c(one[CRC_COVERED_POSITION:].data) for one in rows[:count]], dtype=">u4")
            rows[:count, CRC_POSITION : CRC_POSITION + 4] = sums.view(np.uint8).reshape(count, 4)
            yield rows[:count].data
            if is_odd:
                rows[odd_batch - start] = self.row

    def _write_indexes(self, stem: str, batches: int) -> None:
        entries = [((at + 1) * RECORDS_PER_BATCH - 1, at * self.length) for at in range(1, batches)]
        self.folder.joinpath(f"{stem}.index").write_bytes(encode_index(offset_index(entries)))
        times = time_index([(_START_MS, RECORDS_PER_BATCH - 1)])
        self.folder.joinpath(f"{stem}.timeindex").write_bytes(encode_index(times))


def _write_small_files(folder: Path, epochs: list[tuple[int, int]]) -> None:
    lines, start = [], 0
    for leader_epoch, until in epochs:
        lines.append(LeaderEpochLine(leader_epoch, start * RECORDS_PER_BATCH))
        start = until
    checkpoint = LeaderEpochCheckpoint(lines=tuple(lines))
    folder.joinpath("leader-epoch-checkpoint").write_bytes(encode_leader_epoch_checkpoint(checkpoint))
    topic = folder.name.rpartition("-")[0]
    metadata = PartitionMetadata(version=0, topic_id=stable_id(f"topic {topic}"))
    folder.joinpath("partition.metadata").write_bytes(encode_partition_metadata(metadata))
    folder.joinpath(f"{start * RECORDS_PER_BATCH:020d}.snapshot").write_bytes(encode_producers(()))


def _write_identity(folder: Path, broker: int) -> None:
    folder.mkdir()
    identity = meta_properties(
        version=1, node_id=broker, cluster_id=stable_id("fleet"), directory_id=stable_id(f"fleet {broker}")
    )
    folder.joinpath("meta.properties").write_bytes(encode_meta_properties(identity))
