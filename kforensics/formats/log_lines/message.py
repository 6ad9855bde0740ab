"""Parse the text behind a line's level into a typed message: the declared shapes are found by their beginnings."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.formats.log_lines.broker_life import BROKER_SHAPES
from kforensics.formats.log_lines.event import FOLDED, FieldValue, LogEventKind
from kforensics.formats.log_lines.leadership import LEADERSHIP_SHAPES
from kforensics.formats.log_lines.prefix import IDENTITY, TOPIC_PARTITION, parse_identity
from kforensics.formats.log_lines.recovery import RECOVERY_SHAPES
from kforensics.formats.log_lines.shape import Shape, match_shape
from kforensics.formats.log_lines.truncation import TRUNCATION_SHAPES
from kforensics.units import TopicPartition

SHAPES: tuple[Shape, ...] = (*TRUNCATION_SHAPES, *LEADERSHIP_SHAPES, *RECOVERY_SHAPES, *BROKER_SHAPES)


class Message(NamedTuple):
    """A parsed message: the content of a line without its time and place."""

    kind: LogEventKind
    topic_partition: TopicPartition | Absent
    broker_id: int | Absent
    fields: Mapping[str, FieldValue]
    is_folded: bool


def _beginnings(shapes: Iterable[Shape]) -> bytes:
    by_letter: dict[bytes, list[bytes]] = {}
    for start in sorted({shape.start for shape in shapes if shape.start}, key=lambda start: (-len(start), start)):
        by_letter.setdefault(start[:1], []).append(re.escape(start[1:]))
    branches = [re.escape(letter) + b"(?:" + b"|".join(rests) + b")" for letter, rests in by_letter.items()]
    return b"(?:" + b"|".join((*branches, TOPIC_PARTITION + rb" starts at ")) + b")"


MESSAGE_START = rb"(?:" + IDENTITY + rb" *+)?" + _beginnings(SHAPES)
"""The pattern of the identity, if there is one, and the beginning of any declared message."""
_MESSAGE = re.compile(rb"(?P<identity>" + IDENTITY + rb" *+)?(?P<beginning>" + _beginnings(SHAPES) + rb")")


LONGEST_REMEMBERED = 1 << 11
"""The most bytes of a text that is cached; a log may consist of long lines that all differ."""


def parse_message(text: bytes) -> Message | None:
    """Return the message in the text behind a line's level, or None if the text only begins like one.

    Args:
        text: the identity in brackets, if there is one, and the message, without the line end.
    """
    return _remembered(text) if len(text) <= LONGEST_REMEMBERED else _parse(text)


# Brokers repeat themselves: most lines differ only in their time.
@lru_cache(maxsize=1 << 14)
def _remembered(text: bytes) -> Message | None:
    return _parse(text)


def _parse(text: bytes) -> Message | None:
    found = _MESSAGE.match(text)
    if found is None:
        return None
    body = text[found.start("beginning") :]
    for candidate in _shapes_for(found["beginning"]):
        match = match_shape(candidate, body)
        if match is None:
            continue
        speaker = parse_identity(found["identity"] or b"")
        if not isinstance(speaker.leader, Absent):
            match.fields.setdefault("leader", speaker.leader)
        if not isinstance(speaker.directory, Absent):
            match.fields.setdefault("directory", speaker.directory)
        partition = speaker.topic_partition if isinstance(match.topic_partition, Absent) else match.topic_partition
        return Message(match.kind, partition, speaker.broker_id, match.fields, match.kind in FOLDED)
    return None


@lru_cache(maxsize=1024)
def _shapes_for(beginning: bytes) -> tuple[Shape, ...]:
    """Return the shapes with this beginning, the longest first, then those that begin with a partition's name."""
    fitting = [shape for shape in SHAPES if shape.start and beginning.startswith(shape.start)]
    fitting.sort(key=lambda shape: -len(shape.start))
    return (*fitting, *(shape for shape in SHAPES if not shape.start))
