"""The declaration of a message: a literal beginning that finds it fast, and a pattern whose groups are the fields."""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.formats.log_lines.event import FieldValue, LogEventKind
from kforensics.formats.log_lines.prefix import TOPIC_PARTITION, parse_topic_partition
from kforensics.units import TopicPartition

_LISTS = frozenset({"isr", "from_isr", "to_isr", "replicas", "all", "elr", "new_elr", "adding", "removing"})
_TEXTS = frozenset(
    {
        "cluster",
        "reason",
        "path",
        "directory",
        "topic_id",
        "topic_name",
        "incarnation",
        "previous_incarnation",
        "version",
        "state",
        "diff",
        "text",
        "recovery_state",
    }
)
_PARTITION_GROUPS = frozenset({"partition", "topic", "topic_index"})
_NUMBER = re.compile(rb"-?\d{1,19}")

_PARTITION = rb"(?P<partition>" + TOPIC_PARTITION + rb")(?![A-Za-z0-9_])"
_OLD_PARTITION = rb"(?P<old_partition>\[[A-Za-z0-9._-]{1,249},\d{1,9}\])"
_UUID = rb"[A-Za-z0-9_-]{22}"
_PLACES = {
    b"partition": _PARTITION,
    b"any_partition": rb"(?:" + _PARTITION + rb"|" + _OLD_PARTITION + rb")",
}
_VALUES = {
    **{name.encode(): rb"[0-9, ]*" for name in _LISTS},
    **dict.fromkeys((b"directory", b"path"), rb"[^\n]{1,4096}?"),
    **dict.fromkeys((b"topic_id", b"incarnation", b"previous_incarnation"), _UUID),
    b"cluster": rb"[A-Za-z0-9_-]{1,64}",
}
_FIELD = re.compile(rb"\{([a-z_]+)\}")


class _Group(NamedTuple):
    """One group of a pattern: its number, its field, and the conversion of its text."""

    number: int
    field: str
    convert: Callable[[bytes], FieldValue]


class Shape(NamedTuple):
    """One text of one or more versions of Kafka; every match carries the constant fields."""

    kind: LogEventKind
    start: bytes
    """The literal beginning by which the scanner finds the message; empty if the message begins with the partition's name."""
    pattern: re.Pattern[bytes]
    groups: tuple[_Group, ...]
    partition_groups: tuple[int, ...]
    topic_groups: tuple[int, int] | None
    """The groups of topic and partition number, if the text names them separately."""
    constant: Mapping[str, FieldValue]


class ShapeMatch(NamedTuple):
    """The fields that a shape found in a message."""

    kind: LogEventKind
    topic_partition: TopicPartition | Absent
    fields: dict[str, FieldValue]


def shape(kind: LogEventKind, start: bytes, rest: bytes = b"", **constant: FieldValue) -> Shape:
    """Declare a message of Kafka.

    Args:
        kind: the event that the message reports.
        rest: the pattern behind the beginning; its named groups are the fields. Any text may follow. `{name}` is the field of that
            name, a number of at most 19 digits if it is no list, path or id; a group `old_x` is the field `x` in the words of old
            versions. `{partition}` is `orders-0`, `{any_partition}` also `[orders,0]`, as up to 0.11.
    """
    pattern = re.compile(re.escape(start) + _FIELD.sub(_group, rest))
    named = [(group.removeprefix("old_"), index) for group, index in pattern.groupindex.items()]
    places = dict(named)
    return Shape(
        kind,
        start,
        pattern,
        tuple(_Group(index, name, _converter(name)) for name, index in named if name not in _PARTITION_GROUPS),
        tuple(index for name, index in named if name == "partition"),
        (places["topic"], places["topic_index"]) if "topic" in places else None,
        constant,
    )


def match_shape(candidate: Shape, message: bytes) -> ShapeMatch | None:
    """Return the fields of the message, or None if it does not have this shape.

    Args:
        message: the line from the beginning of the message on, behind level and identity.
    """
    found = candidate.pattern.match(message)
    if found is None:
        return None
    fields: dict[str, FieldValue] = {**candidate.constant}
    for index, name, convert in candidate.groups:
        value = found[index]
        if value is not None:
            fields[name] = convert(value)
    return ShapeMatch(candidate.kind, _partition_of(candidate, found), fields)


def _group(field: re.Match[bytes]) -> bytes:
    name = field[1]
    return _PLACES.get(name) or rb"(?P<" + name + rb">" + _VALUES.get(name, rb"-?\d{1,19}") + rb")"


def _partition_of(candidate: Shape, found: re.Match[bytes]) -> TopicPartition | Absent:
    for index in candidate.partition_groups:
        if found[index] is not None:
            return parse_topic_partition(found[index])
    if candidate.topic_groups is not None and found[candidate.topic_groups[0]] is not None:
        return TopicPartition(
            found[candidate.topic_groups[0]].decode("ascii", "replace"), int(found[candidate.topic_groups[1]])
        )
    return Absent.NOT_WRITTEN


def _converter(name: str) -> Callable[[bytes], FieldValue]:
    if name in _LISTS:
        return _numbers
    return _text if name in _TEXTS else int


def _numbers(value: bytes) -> tuple[int, ...]:
    return tuple(int(item) for item in _NUMBER.findall(value))


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
