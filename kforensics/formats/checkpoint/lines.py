"""Checkpoints of lines: offsets by partition, and the leader epochs of a partition."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from kforensics.damage import Damage, DamageKind, Span
from kforensics.errors import FormatError, require_known
from kforensics.formats.primitives.text_lines import (
    TEXT_FILE_LIMIT,
    DamageList,
    TextLine,
    beyond_limit,
    parse_integer,
    shown,
    walk_lines,
)
from kforensics.units import EpochEntry

# Offset checkpoints of a log directory: high watermarks, recovery points, log starts and cleaner positions.
#
# The files are `replication-offset-`, `recovery-point-offset-`, `log-start-offset-` and `cleaner-offset-checkpoint`.
#
#     file  := version LF count LF (entry LF)*        version is 0
#     entry := topic SP partition SP offset           offsets >= 0, in no order
#     An empty file, or one without a count, is an empty list. No checksum.
#
# Kafka: `CheckpointFile`, `OffsetCheckpointFile` (0.8.0 and later). `leader-epoch-checkpoint` shares the frame
# (`parse_frame`).


CHECKPOINT_VERSION = 0

_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_PLAIN_ENTRY = re.compile(rb"([a-zA-Z0-9._-]{1,249}) ([0-9]{1,9}) ([0-9]{1,18})")
"""The pattern of a line as brokers write it: one match per line, since a hostile file may have a million of them."""

# Kafka splits on \s+ of a Java regex: these six bytes and no others.
_BLANK = re.compile(rb"[ \t\n\x0b\f\r]+")


class CheckpointEntry(NamedTuple):
    """The offset of one partition and the number of its line, from 1."""

    topic: str
    partition: int
    offset: int
    line: int = 0
    position: int = 0
    length: int = 0

    @property
    def span(self) -> Span:
        """The span of the line in the file."""
        return Span(self.position, self.length)


class Checkpoint(NamedTuple):
    """The content of one offset checkpoint, in the order of the file."""

    entries: tuple[CheckpointEntry, ...] = ()
    damage: tuple[Damage, ...] = ()


def parse_checkpoint(data: bytes | memoryview) -> Checkpoint:
    """Parse an offset checkpoint (`OffsetCheckpointFile`) into its entries and damage.

    Returns:
        The entries in the order of the file; a line that is no entry, and a wrong count, are damage.

    Raises:
        FormatError: the file does not begin with a version; `UnsupportedFormat` where it is not 0.
    """
    damage = DamageList()
    return Checkpoint(
        entries=tuple(iter_checkpoint(data, damage)), damage=(*damage.as_tuple(), *beyond_limit(len(data)))
    )


def check_checkpoint(data: bytes | memoryview) -> Checkpoint:
    """Check an offset checkpoint and return its damage without the entries, which may be a million.

    Raises:
        FormatError: as `parse_checkpoint` does.
    """
    damage = DamageList()
    for _ in iter_checkpoint(data, damage):
        pass
    return Checkpoint(damage=(*damage.as_tuple(), *beyond_limit(len(data))))


def iter_checkpoint(data: bytes | memoryview, damage: DamageList) -> Iterator[CheckpointEntry]:
    """Yield the entries one by one, for a caller that keeps few of them.

    Args:
        damage: where lines that are no entries are added; complete once the last entry was taken.

    Raises:
        FormatError: as `parse_checkpoint` does.
    """
    for line in parse_frame(data, damage):
        entry = _parse_entry(line, damage)
        if entry is not None:
            yield entry


def plain_entries(data: bytes) -> list[tuple[bytes, bytes, bytes]] | None:
    """Return topic, partition and offset of each entry of a file that is as brokers write it, its lines counted from 3; none where any byte is not, so that `iter_checkpoint` has to read it."""
    head = _HEAD.match(data)
    if head is None or len(data) > TEXT_FILE_LIMIT:
        return None
    rows: list[tuple[bytes, bytes, bytes]] = _PLAIN_LINE.findall(data, head.end())
    length = sum([len(topic) + len(partition) + len(offset) + 3 for topic, partition, offset in rows])
    is_whole = len(rows) == int(head[1]) and head.end() + length == len(data)
    return rows if is_whole else None


_HEAD = re.compile(rb"0\n([0-9]{1,9})\n")
_PLAIN_LINE = re.compile(_PLAIN_ENTRY.pattern + rb"\n")


def encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    """Encode the file as a broker writes it, with its entries in their order, unchecked (`OffsetCheckpointFile`)."""
    return encode_frame(f"{entry.topic} {entry.partition} {entry.offset}" for entry in checkpoint.entries)


def encode_frame(lines: Iterable[str]) -> bytes:
    """Encode the version, count and lines of a checkpoint file (`CheckpointFile`)."""
    body = list(lines)
    return "".join(f"{line}\n" for line in (CHECKPOINT_VERSION, len(body), *body)).encode()


def parse_frame(data: bytes | memoryview, damage: DamageList) -> Iterator[TextLine]:
    """Yield the entry lines of a checkpoint file (`CheckpointFile`); a wrong count becomes damage once the lines are read.

    Raises:
        FormatError: the file does not begin with a version; `UnsupportedFormat` where it is not 0.
    """
    lines = walk_lines(data)
    first = next(lines, None)
    if first is None:
        return
    version = parse_integer(first.content, bits=32)
    if version is None:
        raise FormatError(first.span, expected="the version 0 on line 1", found=shown(first.content))
    require_known(first.span, "checkpoint version", found=version, newest=CHECKPOINT_VERSION)
    second = next(lines, None)
    if second is None:
        return
    declared = parse_integer(second.content, bits=32)
    if declared is None or declared < 0:
        damage.add_line(second, "a count of entries")
        if len(_BLANK.split(second.content)) > 1:  # an entry is where the count should be: the count is missing
            lines = chain((second,), lines)
        declared = None
    found = 0
    for line in lines:
        found += 1
        yield line
    if declared is not None and declared != found:
        damage.add(
            second.span,
            DamageKind.COUNT,
            expected=f"{found} entries, as there are lines",
            found=f"a count of {declared}",
            line=second.number,
        )


def split_fields(line: TextLine) -> list[bytes]:
    """Split a line into fields as Kafka does: a leading blank makes an empty field, trailing blanks make none."""
    return _BLANK.split(line.content.rstrip(b" \t\x0b\f"))


def _parse_entry(line: TextLine, damage: DamageList) -> CheckpointEntry | None:
    plain = _PLAIN_ENTRY.fullmatch(line.content)
    if plain is not None:
        topic, partition, offset = plain.groups()
        return CheckpointEntry(
            topic.decode("ascii"), int(partition), int(offset), line.number, line.position, len(line.content)
        )
    return _parse_odd_entry(line, damage)


def _parse_odd_entry(line: TextLine, damage: DamageList) -> CheckpointEntry | None:
    fields = split_fields(line)
    partition = parse_integer(fields[1], bits=32) if len(fields) == 3 else None
    offset = parse_integer(fields[2], bits=64) if len(fields) == 3 else None
    topic = fields[0].decode("utf-8", errors="backslashreplace")
    if partition is None or offset is None or not _TOPIC.fullmatch(topic):
        damage.add_line(line, "topic, partition and offset")
        return None
    if partition < 0 or offset < 0:
        damage.add_line(line, "a partition and an offset of 0 or more")
        return None
    return CheckpointEntry(topic, partition, offset, line.number, line.position, len(line.content))


# `leader-epoch-checkpoint` of a partition directory: the leader epochs that the broker acts on.
#
#     file  := version LF count LF (entry LF)*        version is 0
#     entry := leader_epoch SP start_offset
#     An empty file is an empty list. No checksum. Epochs rise strictly; start offsets rise strictly since 2.0.1 and
#     2.1.0 (KAFKA-7415);
#     0.11.0.0 to 2.0.0 wrote equal and even falling ones, so the parser does not check the order of start offsets.
#
# Kafka: `LeaderEpochCheckpointFile`, `LeaderEpochFileCache` (0.11.0 and later).


class LeaderEpochLine(NamedTuple):
    """One leader epoch, its start offset, and the number of its line, from 1."""

    leader_epoch: int
    start_offset: int
    line: int = 0
    position: int = 0
    length: int = 0

    @property
    def span(self) -> Span:
        """The span of the line in the file."""
        return Span(self.position, self.length)


class LeaderEpochCheckpoint(NamedTuple):
    """The content of the file, in its order."""

    lines: tuple[LeaderEpochLine, ...] = ()
    damage: tuple[Damage, ...] = ()

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        """The epochs without their line numbers."""
        return tuple(EpochEntry(line.leader_epoch, line.start_offset) for line in self.lines)


def parse_leader_epoch_checkpoint(data: bytes | memoryview) -> LeaderEpochCheckpoint:
    """Parse a `leader-epoch-checkpoint` (`LeaderEpochCheckpointFile`) into its entries and damage.

    Returns:
        The entries in the order of the file, those whose epoch does not rise included; a line that is no entry is damage only.

    Raises:
        FormatError: the file does not begin with a version; `UnsupportedFormat` where it is not 0.
    """
    damage = DamageList()
    lines: list[LeaderEpochLine] = []
    for line in parse_frame(data, damage):
        entry = _parse_line(line, damage)
        if entry is None:
            continue
        if lines and entry.leader_epoch <= lines[-1].leader_epoch:
            expected = f"a leader epoch above {lines[-1].leader_epoch}"
            damage.add_line(line, expected, DamageKind.ORDER)
        lines.append(entry)
    return LeaderEpochCheckpoint(lines=tuple(lines), damage=(*damage.as_tuple(), *beyond_limit(len(data))))


def encode_leader_epoch_checkpoint(checkpoint: LeaderEpochCheckpoint) -> bytes:
    """Encode the file as a broker writes it, with its lines in their order, unchecked (`LeaderEpochCheckpointFile`)."""
    return encode_frame(f"{epoch} {start}" for epoch, start in checkpoint.entries)


def _parse_line(line: TextLine, damage: DamageList) -> LeaderEpochLine | None:
    fields = split_fields(line)
    epoch = parse_integer(fields[0], bits=32) if len(fields) == 2 else None
    start = parse_integer(fields[1], bits=64) if len(fields) == 2 else None
    if epoch is None or start is None or epoch < 0 or start < 0:
        damage.add_line(line, "a leader epoch and its start offset")
        return None
    return LeaderEpochLine(epoch, start, line.number, line.position, len(line.content))
