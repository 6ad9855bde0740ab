"""The entries of every file that is no segment, as named fields, damage in its place."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kforensics.damage import Absent, Damage, DamageKind, Gravity, Span
from kforensics.errors import FormatError
from kforensics.formats.checkpoint.clean_shutdown import parse_clean_shutdown
from kforensics.formats.checkpoint.leader_epoch import parse_leader_epoch_checkpoint
from kforensics.formats.checkpoint.meta_properties import parse_meta_properties
from kforensics.formats.checkpoint.offset import parse_checkpoint
from kforensics.formats.checkpoint.partition_metadata import parse_partition_metadata
from kforensics.formats.checkpoint.quorum_state import parse_quorum_state
from kforensics.formats.index.offset import INDEX_ENTRY_LENGTH, parse_offset_index
from kforensics.formats.index.producer_snapshot import (
    NONE,
    SNAPSHOT_ENTRY_LENGTH,
    SNAPSHOT_HEADER_LENGTH,
    parse_producer_snapshot,
)
from kforensics.formats.index.time import TIME_ENTRY_LENGTH, parse_time_index
from kforensics.formats.index.txn import TXN_ENTRY_LENGTH, parse_txn_index
from kforensics.source.mapped import EvidenceFile
from kforensics.source.naming import FileKind, FileName

FILE_LIMIT = 1 << 28
"""Bytes of a file that is read as a whole; brokers write far smaller ones."""


class FileEntry(NamedTuple):
    """One entry of a file: what it is, and its fields by the names of the format."""

    type: str
    fields: Mapping[str, Any]


Placed = tuple[int, FileEntry | Damage]


def file_entries(file: EvidenceFile, path: Path, name: FileName) -> Iterator[FileEntry | Damage]:
    """The entries of a file that is no segment.

    Raises:
        EvidenceError: the file can't be read.
    """
    if name.kind not in _READERS:
        yield FileEntry(name.kind.value, {"bytes": file.size})
        return
    data = file.read_all(FILE_LIMIT)
    try:
        yield from _READERS[name.kind](data, path.name, name)
    except FormatError as error:
        yield Damage(span=error.span, kind=DamageKind.TEXT, expected=error.expected, found=error.found)


def _in_place(entries: Iterable[Placed], damage: Iterable[Damage]) -> Iterator[FileEntry | Damage]:
    """Entries with damage behind the entry it lies in."""
    waiting = sorted(damage, key=lambda one: one.span.position)
    for position, entry in entries:
        while waiting and waiting[0].span.position < position:
            yield waiting.pop(0)
        yield entry
    yield from waiting


def _base(name: FileName) -> int:
    return 0 if isinstance(name.base_offset, Absent) else name.base_offset


def _preallocated(tail: Span) -> Iterator[Placed]:
    if tail.length:
        yield tail.position, FileEntry("preallocated", {"position": tail.position, "length": tail.length})


def _offset_index(data: bytes, _file: str, name: FileName) -> Iterator[FileEntry | Damage]:
    index = parse_offset_index(data)
    base = _base(name)

    def entries() -> Iterator[Placed]:
        for number, (relative, position) in enumerate(index.entries.tolist()):
            fields = {"offset": base + relative, "relative_offset": relative, "position": position}
            yield number * INDEX_ENTRY_LENGTH, FileEntry("offset-index-entry", fields)
        yield from _preallocated(index.zero_tail)

    yield from _in_place(entries(), index.damage)


def _time_index(data: bytes, _file: str, name: FileName) -> Iterator[FileEntry | Damage]:
    index = parse_time_index(data)
    base = _base(name)

    def entries() -> Iterator[Placed]:
        for number, (timestamp, relative) in enumerate(index.entries.tolist()):
            fields = {"timestamp_ms": timestamp, "offset": base + relative, "relative_offset": relative}
            yield number * TIME_ENTRY_LENGTH, FileEntry("time-index-entry", fields)
        yield from _preallocated(index.zero_tail)

    yield from _in_place(entries(), index.damage)


def _txn_index(data: bytes, _file: str, _name: FileName) -> Iterator[FileEntry | Damage]:
    index = parse_txn_index(data)
    entries = (
        (number * TXN_ENTRY_LENGTH, FileEntry("txn-index-entry", entry._asdict()))
        for number, entry in enumerate(index.entries)
    )
    yield from _in_place(entries, index.damage)


def _producer_snapshot(data: bytes, _file: str, _name: FileName) -> Iterator[FileEntry | Damage]:
    snapshot = parse_producer_snapshot(data)

    def entries() -> Iterator[Placed]:
        header = {"crc": snapshot.crc, "crc_valid": snapshot.crc_valid, "count": len(snapshot.entries)}
        yield 0, FileEntry("producer-snapshot", header)
        for number, entry in enumerate(snapshot.entries):
            first_offset = entry.current_transaction_first_offset
            fields = {
                "producer_id": entry.producer_id,
                "producer_epoch": entry.producer_epoch,
                "last_sequence": _present(entry.last_sequence),
                "last_offset": _present(entry.last_offset),
                "offset_delta": entry.offset_delta,
                "timestamp_ms": _present(entry.timestamp),
                "coordinator_epoch": _present(entry.coordinator_epoch),
                "current_txn_first_offset": _present(first_offset),
            }
            yield SNAPSHOT_HEADER_LENGTH + number * SNAPSHOT_ENTRY_LENGTH, FileEntry("producer-snapshot-entry", fields)

    yield from _in_place(entries(), snapshot.damage)


def _present(value: int) -> int | Absent:
    return Absent.NOT_APPLICABLE if value == NONE else value


def _checkpoint(data: bytes, file: str, _name: FileName) -> Iterator[FileEntry | Damage]:
    checkpoint = parse_checkpoint(data)
    yield from checkpoint.damage
    for entry in checkpoint.entries:
        yield FileEntry("offset-checkpoint-entry", {"checkpoint": file.removesuffix(".tmp"), **entry._asdict()})


def _leader_epochs(data: bytes, _file: str, _name: FileName) -> Iterator[FileEntry | Damage]:
    checkpoint = parse_leader_epoch_checkpoint(data)
    entries = (
        (
            line.position,
            FileEntry(
                "leader-epoch-entry",
                {"leader_epoch": line.leader_epoch, "start_offset": line.start_offset, "line": line.line},
            ),
        )
        for line in checkpoint.lines
    )
    yield from _in_place(entries, checkpoint.damage)


def _meta_properties(data: bytes, _file: str, _name: FileName) -> Iterator[FileEntry | Damage]:
    properties = parse_meta_properties(data)
    fields = {
        "version": properties.version,
        "node_id": properties.node_id,
        "cluster_id": properties.cluster_id,
        "directory_id": properties.directory_id,
        "properties": {entry.key: entry.value for entry in properties.entries},
    }
    yield FileEntry("meta-properties", fields)
    yield from properties.damage


def _partition_metadata(data: bytes, _file: str, _name: FileName) -> Iterator[FileEntry | Damage]:
    metadata = parse_partition_metadata(data)
    yield FileEntry("partition-metadata", {"version": metadata.version, "topic_id": metadata.topic_id})
    yield from metadata.damage


def _quorum_state(data: bytes, _file: str, _name: FileName) -> Iterator[FileEntry | Damage]:
    state = parse_quorum_state(data)
    fields = {
        "data_version": state.data_version,
        "leader_id": state.leader_id,
        "leader_epoch": state.leader_epoch,
        "voted_id": state.voted_id,
        "voted_directory_id": state.voted_directory_id,
        "cluster_id": state.cluster_id,
        "applied_offset": state.applied_offset,
        "current_voters": state.current_voters,
    }
    yield FileEntry("quorum-state", fields)
    yield from state.damage


def _clean_shutdown(data: bytes, _file: str, _name: FileName) -> Iterator[FileEntry | Damage]:
    marker = parse_clean_shutdown(data)
    yield FileEntry("clean-shutdown", {"broker_epoch": marker.broker_epoch})
    yield from marker.damage


def _lock(data: bytes, _file: str, _name: FileName) -> Iterator[FileEntry | Damage]:
    yield FileEntry("lock", {"bytes": len(data)})
    if data:
        yield Damage(
            span=Span(0, len(data)),
            kind=DamageKind.LENGTH,
            expected="an empty file",
            found=f"{len(data)} bytes",
            gravity=Gravity.STALE,
        )


_READERS: Mapping[FileKind, Callable[[bytes, str, FileName], Iterator[FileEntry | Damage]]] = {
    FileKind.OFFSET_INDEX: _offset_index,
    FileKind.TIME_INDEX: _time_index,
    FileKind.TXN_INDEX: _txn_index,
    FileKind.PRODUCER_SNAPSHOT: _producer_snapshot,
    FileKind.OFFSET_CHECKPOINT: _checkpoint,
    FileKind.LEADER_EPOCH_CHECKPOINT: _leader_epochs,
    FileKind.META_PROPERTIES: _meta_properties,
    FileKind.PARTITION_METADATA: _partition_metadata,
    FileKind.QUORUM_STATE: _quorum_state,
    FileKind.CLEAN_SHUTDOWN: _clean_shutdown,
    FileKind.LOCK: _lock,
}
