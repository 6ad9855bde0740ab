"""What brokers did, read from their own lines and bytes without any of kforensics."""

import re
import struct
from pathlib import Path
from typing import NamedTuple

from tests.oracle.cluster import TOPIC

_LINE = re.compile(
    rf"(?:Truncating (?:log )?{TOPIC}-0 to (?:offset )?|\[(?:Unified)?Log partition={TOPIC}-0, .*\] Truncating to (?:offset )?)(?P<offset>\d+)"
)
_FULL_LINE = re.compile(rf"{TOPIC}-0.*Truncate and start")
_PREFIX = struct.Struct(">qi")


class Entry(NamedTuple):
    """A batch, or a message of the old formats: its first offset (last, if it wraps others), and its bytes."""

    offset: int
    body: bytes


def truncation_lines(log_file: Path, position: int) -> list[int]:
    """The offsets that a broker says it truncates the partition to, in lines after a byte position of its log."""
    text = log_file.read_bytes()[position:].decode()
    assert not _FULL_LINE.search(text)
    return [int(found["offset"]) for found in _LINE.finditer(text)]


def entries_of(data: Path) -> list[Entry]:
    """What the partition's segments hold."""
    out = []
    for segment in sorted((data / f"{TOPIC}-0").glob("*.log")):
        content = segment.read_bytes()
        at = 0
        while at < len(content):
            offset, length = _PREFIX.unpack_from(content, at)
            end = at + _PREFIX.size + length
            out.append(Entry(offset, content[at:end]))
            at = end
    return out


def first_difference(one: list[Entry], other: list[Entry]) -> int | None:
    """The offset of the first entry that the logs do not share, none where they are the same."""
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            return min(mine.offset, theirs.offset)
    if len(one) == len(other):
        return None
    longer = max(one, other, key=len)
    return longer[min(len(one), len(other))].offset
