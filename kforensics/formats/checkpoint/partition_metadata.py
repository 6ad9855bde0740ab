"""`partition.metadata` of a partition directory: the id of the topic (KIP-516).

    version: 0 LF topic_id: <16 bytes in URL-safe base64, 22 characters> [LF]
    No checksum. Written lazily, so it may be missing; the zero id is never written.

Kafka: `PartitionMetadataFile` (2.8 and later).
"""

import re
from typing import NamedTuple

from kforensics.damage import Absent, Damage, DamageKind, Span
from kforensics.errors import FormatError, require_known
from kforensics.formats.checkpoint.meta_properties import UUID_PATTERN
from kforensics.formats.primitives.text_lines import (
    DamageList,
    TextLine,
    beyond_limit,
    parse_integer,
    shown,
    walk_lines,
)
from kforensics.formats.primitives.uuid import uuid_bytes, uuid_text

ZERO_UUID = "A" * 22

MOST_LINES = 16
"""The most lines of the file that are read; a broker writes two."""

_LINE = re.compile(rb"\s*([A-Za-z_]+)\s*:\s*(\S*)\s*")


class PartitionMetadata(NamedTuple):
    """The topic id with the number of its line."""

    version: int
    topic_id: str | Absent
    damage: tuple[Damage, ...] = ()


def parse_partition_metadata(data: bytes | memoryview) -> PartitionMetadata:
    """Parse `partition.metadata`, the topic id of a partition directory (`PartitionMetadataFile`, KIP-516).

    Args:
        data: the whole file, of which `MOST_LINES` lines are read.

    Returns:
        The topic id, `UNREADABLE` where the line is missing or holds no id that a topic can have; damage says why.

    Raises:
        FormatError: the file holds no line that a broker writes; `UnsupportedFormat` where the version is not 0.
    """
    damage = DamageList()
    values: dict[str, tuple[TextLine, bytes]] = {}
    for line in walk_lines(data):
        match = _LINE.fullmatch(line.content)
        if line.number > MOST_LINES or match is None:
            damage.add_line(line, "version: 0 and topic_id: <id>")
            continue
        values[match[1].decode("ascii")] = (line, match[2])
    if "version" not in values and "topic_id" not in values:
        raise FormatError(
            Span(0, len(data)),
            expected="lines of version: 0 and topic_id: <id>",
            found=shown(data) if len(data) else "an empty file",
        )
    _check_version(values.get("version"), data, damage)
    topic_id = _topic_id(values.get("topic_id"), data, damage)
    return PartitionMetadata(version=0, topic_id=topic_id, damage=(*damage.as_tuple(), *beyond_limit(len(data))))


def encode_partition_metadata(metadata: PartitionMetadata) -> bytes:
    """Encode the file as a broker writes it, without a line break at the end (`PartitionMetadataFile`).

    Args:
        metadata: its topic id must not be absent, which the file can't say.
    """
    return f"version: {metadata.version}\ntopic_id: {metadata.topic_id}".encode()


def is_uuid(text: str) -> bool:
    """Whether the text is a Kafka `Uuid` of 22 characters that a topic can have.

    Args:
        text: after `topic_id: ` in partition.metadata.
    """
    return UUID_PATTERN.fullmatch(text) is not None and text != ZERO_UUID


def _check_version(value: tuple[TextLine, bytes] | None, data: bytes | memoryview, damage: DamageList) -> None:
    if value is None:
        damage.add(Span(0, len(data)), DamageKind.VERSION, expected="a line version: 0", found="no such line")
        return
    line, text = value
    version = parse_integer(text, bits=32)
    if version is None:
        damage.add_line(line, "version: 0", DamageKind.VERSION)
    else:
        require_known(line.span, "partition.metadata version", found=version, newest=0)


def _topic_id(value: tuple[TextLine, bytes] | None, data: bytes | memoryview, damage: DamageList) -> str | Absent:
    if value is None:
        damage.add(Span(0, len(data)), DamageKind.TEXT, expected="a line topic_id: <id>", found="no such line")
        return Absent.UNREADABLE
    line, raw = value
    text = raw.decode("ascii", errors="replace")
    if not UUID_PATTERN.fullmatch(text) or uuid_text(uuid_bytes(text)) != text:
        damage.add_line(line, "22 characters of URL-safe base64")
        return Absent.UNREADABLE
    if text == ZERO_UUID:
        damage.add_line(line, "an id other than zero")
        return Absent.UNREADABLE
    return text
