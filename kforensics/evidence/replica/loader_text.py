"""`leader-epoch-checkpoint` and `partition.metadata` as Kafka reads them: what they hold, or what reading them throws.

Classes: `CheckpointFile`, `LeaderEpochCheckpointFile`, `PartitionMetadataReadBuffer` (4.1.0; the same from 3.3 on).
"""

import re
import sys
from collections.abc import Sequence

from kforensics.errors import newer_than_known
from kforensics.evidence.replica.loader_values import LoadFailure, TopicIdFile
from kforensics.formats.checkpoint.offset import CHECKPOINT_VERSION
from kforensics.formats.checkpoint.partition_metadata import ZERO_UUID
from kforensics.units import EpochEntry, TopicPartition

_LINE_END = re.compile(r"\r\n|\r|\n")
_BLANK = re.compile(r"[ \t\n\x0b\f\r]+")
_NUMBER = re.compile(r"[+-]?[0-9]+")
_TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{22}(==)?")
_PAIR, _TRIPLE = 2, 3
_SURELY_SHORT = 10
"""Digits of a number that may not fit into 32 bits."""


def read_epoch_file(data: bytes) -> tuple[EpochEntry, ...] | LoadFailure:
    """Return the entries of `leader-epoch-checkpoint`, or what reading it throws (`LeaderEpochCheckpointFile`)."""
    read = _checkpoint_fields(data, _PAIR, ((0, 32), (1, 64)))
    if isinstance(read, LoadFailure):
        return read
    return tuple(EpochEntry(int(epoch), int(start)) for epoch, start in read)


def read_offset_checkpoint(data: bytes) -> dict[TopicPartition, int] | LoadFailure:
    """Return the offsets of `recovery-point-offset-checkpoint` or `log-start-offset-checkpoint`, or what reading it throws (`OffsetCheckpointFile`).

    Args:
        data: the whole file; of two lines for a partition the later counts.
    """
    read = _checkpoint_fields(data, _TRIPLE, ((1, 32), (2, 64)))
    if isinstance(read, LoadFailure):
        return read
    return {TopicPartition(sys.intern(topic), int(partition)): int(offset) for topic, partition, offset in read}


def _checkpoint_fields(
    data: bytes, width: int, numbers: Sequence[tuple[int, int]]
) -> list[Sequence[str]] | LoadFailure:
    """Return the lines of a checkpoint file in fields, as `CheckpointFile.read` takes them.

    Args:
        numbers: which of them are numbers, and of how many bits.
    """
    lines = _lines(data)
    if lines is None:
        return _malformed("Input length = 1")
    if not lines:
        return []
    version = _integer(lines[0], 32)
    if version != CHECKPOINT_VERSION:
        newer = (
            ""
            if version is None or version < 0
            else newer_than_known("checkpoint version", version, CHECKPOINT_VERSION)
        )
        return _malformed(f"Unrecognised version or malformed line: {lines[0]}", newer)
    if len(lines) == 1:
        return []
    count = _integer(lines[1], 32)
    if count is None:
        return _malformed(f"Malformed line: {lines[1]}")
    if count < 0:
        return LoadFailure("IllegalArgumentException", f"Illegal Capacity: {count}")
    entries: list[Sequence[str]] = []
    for line in lines[2:]:
        fields = _fields(line)
        if len(fields) != width:
            return _malformed(f"Malformed line: {line}")
        for at, bits in numbers:
            value = _integer(fields[at], bits)
            if value is None:
                return LoadFailure("NumberFormatException", f'For input string: "{fields[at]}"')
            fields[at] = str(value)
        entries.append(fields)
    if len(entries) != count:
        return _malformed(f"Expected [{count}] entries, but found only [{len(entries)}]")
    return entries


def read_topic_id(data: bytes) -> TopicIdFile | LoadFailure:
    """Return the topic id of `partition.metadata`, or what reading it throws (`PartitionMetadataReadBuffer`)."""
    lines = _lines(data)
    if lines is None:
        return _malformed("Input length = 1")
    if not lines:
        return LoadFailure("NullPointerException", "the file is empty")
    fields = _fields(lines[0])
    version = _integer(fields[1], 32) if len(fields) == _PAIR else None
    if version is None or version < 0:
        return _malformed(f"Malformed line or unrecognized version: {lines[0]}")
    if len(lines) == 1:
        return LoadFailure("NullPointerException", "the topic id is missing")
    fields = _fields(lines[1])
    if len(fields) != _PAIR:
        return _malformed(f"Malformed line: {lines[1]}")
    if _TOPIC_ID.fullmatch(fields[1]) is None:
        return LoadFailure("IllegalArgumentException", f"no topic id: {fields[1]}")
    topic_id = fields[1].removesuffix("==")
    if topic_id == ZERO_UUID:
        return _malformed("Invalid topic ID in partition metadata file")
    return TopicIdFile(version, topic_id)


def _malformed(message: str, newer: str = "") -> LoadFailure:
    return LoadFailure("KafkaStorageException", message, is_io=True, newer=newer)


def _lines(data: bytes) -> list[str] | None:
    """Lines as `BufferedReader.readLine` gives them; None where they are no UTF-8."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    lines = _LINE_END.split(text)
    return lines[:-1] if not lines[-1] else lines


def _fields(line: str) -> list[str]:
    """Fields as `Pattern.split` gives them: trailing empty ones are dropped."""
    fields = _BLANK.split(line)
    while len(fields) > 1 and not fields[-1]:
        fields.pop()
    return fields


def _integer(text: str, bits: int) -> int | None:
    if len(text) < _SURELY_SHORT and text.isascii() and text.isdecimal():
        return int(text)
    if _NUMBER.fullmatch(text) is None:
        return None
    digits = text.lstrip("+-").lstrip("0")
    if len(digits) > bits:  # Python refuses to convert thousands of them
        return None
    value = int(digits or "0") * (-1 if text.startswith("-") else 1)
    return value if -(1 << bits - 1) <= value < 1 << bits - 1 else None
