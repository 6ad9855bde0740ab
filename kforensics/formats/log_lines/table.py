r"""The lines of Kafka that are known: `lines.tsv` read into rows, and the message in a text by them.

A message is found by its own first words wherever it stands: `KEY_LENGTH` bytes from a capital letter on that follows no
letter or digit. What stands before is time, level, thread, class and the identity in brackets, in any order and layout.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import islice
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.formats.log_lines.event import FieldValue, LogEventKind, Section, Weight
from kforensics.units import TopicPartition

KEY_LENGTHS = (16, 8, 6)
"""The bytes of a message by which it is looked for: the most that its beginning has."""

_LISTS = frozenset(
    {"isr", "from_isr", "to_isr", "replicas", "all", "elr", "adding", "removing", "base_offsets"}
    | {"configured_voters", "stored_voters"}
)
_PATHS = frozenset({"directory", "path", "other_path"})
_IDS = frozenset({"topic_id", "other_topic_id", "incarnation", "previous_incarnation"})
_NAMES = frozenset({"cluster", "stored_cluster", "group", "member", "transaction", "level_name", "level_name_after"})
_BEFORE_FULL_STOP = frozenset({"cluster", "level_name_after"})
"""The names that end sentences, and that no full stop ends; a group's may end with one."""
_TEXTS = (
    frozenset(
        {"reason", "text", "partitions", "name", "version", "state", "diff", "recovery_state", "component", "task"}
    )
    | {"topic_name", "rule", "basis", "role", "error", "fault", "feature", "seconds_text", "state_name", "cause"}
    | _PATHS
    | _IDS
    | _NAMES
)
_PARTITION_GROUPS = frozenset({"partition", "topic", "topic_index"})
_TOPIC_PARTITION = r"@?[A-Za-z0-9._-]{1,249}-\d{1,9}"
"""Topic and number; only the metadata log of 2.8 has the sign before its name."""
_PARTITION = rf"(?P<partition>{_TOPIC_PARTITION})(?![A-Za-z0-9_])"
_ANY_PARTITION = rf"(?:{_PARTITION}|(?P<old_partition>\[[A-Za-z0-9._-]{{1,249}},\d{{1,9}}\]))"
_MARKUP = re.compile(r"~(?P<regex>[^~]*)~|\{(?P<field>[a-z_]+|\*)\}|(?P<anchor>\^)")
_NUMBER = re.compile(rb"-?\d{1,19}")
_PATH_PARTITION = re.compile(
    r"[\\/](?P<name>[A-Za-z0-9._-]{1,249}?-\d{1,9})(?:\.[0-9a-f]{32}-(?:delete|future|stray)|-(?:delete|future|stray))?"
    r"(?:[\\/]+(?P<base>\d{20})\.[^\\/]*)?$"
)
_SUFFIX = re.compile(
    r"(?: +\((?:[\w$]+[.$])*[\w$]+\)(?: +\[[^\]\n]*\])?| +\| +[\w.$]+(?: \([\w.]+:\d+\))?| +\[[\w. -]*-\d+\])? *$"
    r"| +\((?:[\w$]+\.)+[\w$]+\)[\"'<].*$"
)
"""The logger and the thread that some layouts write behind a message, and what wraps the line."""
_LOGGER = re.compile(r" +\((?:[\w$]+[.$])*[\w$]+\)")

_WORD = re.compile(rb"(?<![^ \t\n\r\"'>|\]\[:;=.,(])[A-Z]")
_BEFORE_TIME = re.compile(rb"^.*\d\d:\d\d:\d\d", re.DOTALL)
"""What names another writer where a line was torn and the next one begins in it."""
_IDENTITY_PARTITION = re.compile(
    rf"(?:partition=(?:[\w-]{{22}}:)?|(?<![\w.])Partition |Cache )(?P<name>{_TOPIC_PARTITION})(?![A-Za-z0-9._-])".encode()
)
_IDENTITY_OLD_PARTITION = re.compile(rb"Partition \[(?P<topic>[A-Za-z0-9._-]{1,249}),(?P<partition>\d{1,9})\]")
_IDENTITY_BROKER = re.compile(
    rb"(?:replicaId=|broker=|brokerId=|nodeId=|controllerId=|\[[A-Za-z]+ id=|on [Bb]roker |Kafka Server |RemoteLogManager="
    rb"|(?:^|[ \[])(?:Broker|Controller|GroupCoordinator|Transaction Coordinator|Transaction State Manager|MetadataLoader) )"
    rb"(?P<id>\d{1,9})"
)
_IDENTITY_LEADER = re.compile(rb"(?:leaderId=|ReplicaFetcherThread-\d{1,9}-)(?P<id>\d{1,9})")
_IDENTITY_DIRECTORY = re.compile(rb", dir=(?P<dir>[^\]\n]{1,4096})")


class Row(NamedTuple):
    """One text of one or more versions of Kafka."""

    number: int
    section: Section
    versions: str
    text: str
    """As the table has it."""
    constant: Mapping[str, FieldValue]
    anchor: str
    """The literal beginning by which it is found; it may be found in the middle of the text."""
    is_searched: bool
    """Whether words before the anchor belong to it."""
    advice: str
    """What to do about it, in sentences; empty where the line calls for nothing."""


class Message(NamedTuple):
    """A parsed message: the content of a line without its time and place."""

    row: Row
    topic_partition: TopicPartition | Absent
    broker_id: int | Absent
    fields: Mapping[str, FieldValue]
    start: int
    """Where the message begins in its text."""


class FoundMessage(NamedTuple):
    """A known message in a text."""

    message: Message
    before: bytes
    text: bytes


class _Pattern(NamedTuple):
    """The compiled text of a row."""

    row: Row
    before: int
    """The bytes of the words right before the anchor that belong to it."""
    anchor: bytes
    """With those words."""
    literal: bytes
    """The longest words behind the first field, without which nothing is looked for: to search them takes a tenth of the time."""
    find: Callable[[bytes, int, int], re.Match[bytes] | None]
    """Finds the text from its beginning on, or that of the line where words before the anchor belong to it."""
    convert: tuple[tuple[int, str, Callable[[bytes], FieldValue]], ...]
    """The group, the name and the reader of each field."""
    partitions: tuple[int, ...]
    topic: tuple[int, int] | None
    node: int
    """The group of the node that wrote the line; 0 where it has none."""


@cache
def sections() -> tuple[Section, ...]:
    """Return the kinds of lines, in the order of the table."""
    return tuple(dict.fromkeys(row.section for row in rows()))


@cache
def rows() -> tuple[Row, ...]:
    """Return all rows of the table."""
    found: list[Row] = []
    section: Section | None = None
    for line in (files(__package__) / "lines.tsv").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            kind, _, rest = line[1:].partition("] ")
            weight, *flags = rest.split()
            section = Section(LogEventKind(kind), Weight(weight), "", frozenset(flags))
        elif line.startswith("= ") and section is not None:
            section = section._replace(meaning=line[2:])
        elif line.startswith("> ") and section is not None:
            section = section._replace(ended_by=frozenset(map(LogEventKind, line[2:].split())))
        elif line.startswith("! ") and section is not None and found and found[-1].section == section:
            found[-1] = found[-1]._replace(advice=line[2:])
        elif line.startswith("! ") and section is not None:
            section = section._replace(advice=line[2:])
        elif "\t" in line and not line.startswith("#") and section is not None:
            versions, text, *constant = line.split("\t")
            has_mark = any(one["anchor"] for one in _MARKUP.finditer(text))
            constants, anchor = _constants(constant), _anchor(text)
            found.append(Row(len(found), section, versions, text, constants, anchor, has_mark, section.advice))
    return tuple(found)


def _constants(cells: list[str]) -> dict[str, FieldValue]:
    pairs = (pair.partition("=") for cell in cells for pair in cell.split())
    return {
        name: value == "true" if value in {"true", "false"} else value.replace("+", " ") for name, _, value in pairs
    }


def _anchor(text: str) -> str:
    """Return the literal text from the mark on, or from the beginning, up to the first field or expression."""
    start = next((found.end() for found in _MARKUP.finditer(text) if found["anchor"]), 0)
    end = next((found.start() for found in _MARKUP.finditer(text, start)), len(text))
    return text[start:end]


def advice_of(fields: Mapping[str, FieldValue], row: int) -> str:
    """Return what to do about a line, by the exception below it where that is known; empty where it calls for nothing."""
    return str(fields.get("advice") or (rows()[row].advice if row >= 0 else ""))


@cache
def told_kinds() -> frozenset[LogEventKind]:
    """Return the kinds of lines on which no conclusion rests."""
    return frozenset(row.section.kind for row in rows() if row.section.flags & {"told", "bulk"})


@cache
def ended_kinds() -> frozenset[LogEventKind]:
    """Return the kinds of lines of which others show that they are over, and those of these."""
    return frozenset(kind for one in sections() if one.ended_by for kind in (one.kind, *one.ended_by))


@cache
def harmless_kinds() -> frozenset[LogEventKind]:
    """Return the kinds of lines on which no conclusion rests and that are all harmless."""
    graver = {row.section.kind for row in rows() if row.section.weight is not Weight.HARMLESS}
    return told_kinds() - graver


@cache
def bulk_kinds() -> frozenset[LogEventKind]:
    """Return the kinds of lines that are only counted, whoever asks."""
    return frozenset(row.section.kind for row in rows() if "bulk" in row.section.flags)


@cache
def keys() -> dict[bytes, tuple[Row, ...]]:
    """Return the rows by the first bytes of their anchors; one that is too short by them and a digit each."""
    found: dict[bytes, list[Row]] = {}
    for row in rows():
        anchor = row.anchor.encode()
        length = next((length for length in KEY_LENGTHS if len(anchor) >= length), 0)
        for key in [anchor[:length]] if length else [anchor + b"%d" % digit for digit in range(10)]:
            found.setdefault(key, []).append(row)
    return {key: tuple(sorted(rows, key=lambda row: -len(row.anchor))) for key, rows in found.items()}


@lru_cache(maxsize=1 << 15)
def _patterns_like(begun: bytes) -> tuple[tuple[int, bytes, bytes, bool, _Pattern], ...]:
    """Return the rows whose messages begin like a text, by at most its `KEY_LENGTHS[0]` first bytes, behind how each is told apart."""
    known = keys()
    found = (_pattern(row.number) for length in KEY_LENGTHS for row in known.get(begun[:length], ()))
    return tuple((one.before, one.anchor, one.literal, one.row.is_searched, one) for one in found)


@cache
def _pattern(number: int) -> _Pattern:
    row = rows()[number]
    text, at, parts, literals, numeric, before = row.text, 0, list[str](), list[str](), set[str](), ""
    for found in _MARKUP.finditer(text):
        literals.append(text[at : found.start()])
        parts.append(re.escape(literals[-1]))
        at = found.end()
        if found["anchor"]:
            before = literals[-1]
            literals.clear()
            continue
        if found["regex"] is not None:
            parts.append(f"(?:{found['regex']})")
        else:
            parts.append(_field(found["field"], is_last=at == len(text)))
            numeric |= {found["field"]} - _LISTS - _TEXTS  # of digits alone
    expression = re.compile("".join((*parts, re.escape(text[at:]))).encode())
    named = [(name.removeprefix("old_"), index) for name, index in expression.groupindex.items()]
    places = dict(named)
    return _Pattern(
        row,
        len(before),
        f"{before}{row.anchor}".encode(),
        max((*literals[1:], text[at:]), key=len).encode() if at else b"",
        expression.search if row.is_searched else expression.match,
        tuple(
            (index, name, int if name in numeric else _converter(name))
            for name, index in named
            if name not in _PARTITION_GROUPS | {"node"}
        ),
        tuple(index for name, index in named if name == "partition"),
        (places["topic"], places["topic_index"]) if "topic" in places else None,
        places.get("node", 0),
    )


def _field(name: str, *, is_last: bool) -> str:
    if name == "*":
        return r"[^\n]{0,2000}?"
    if name in {"partition", "any_partition"}:
        return _PARTITION if name == "partition" else _ANY_PARTITION
    value = r"-?\d{1,19}"
    if name in _LISTS:
        value = "[0-9, ]*"
    elif name in _IDS:
        value = "[A-Za-z0-9_-]{22}"
    elif name in _NAMES and is_last:
        value = r"[^\s,)(]{0,299}[^\s,)(.]" if name in _BEFORE_FULL_STOP else r"[^\s,)(]{1,300}"
    elif name in _NAMES:
        value = r"[^\n]{1,300}?"
    elif name in _TEXTS:
        value = r"[^\n]{0,4096}" if is_last else r"[^\n]{0,4096}?"
    return f"(?P<{name}>{value})"


def _converter(name: str) -> Callable[[bytes], FieldValue]:
    if name in _LISTS:
        return _numbers
    return _text if name in _TEXTS else _number


@lru_cache(maxsize=1 << 10)
def _numbers(value: bytes) -> tuple[int, ...]:
    return tuple(int(item) for item in _NUMBER.findall(value))


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace").rstrip()


def _number(value: bytes) -> FieldValue:
    return int(value) if _NUMBER.fullmatch(value) else _text(value)


MESSAGE_LENGTH_LIMIT = 1 << 16
"""The most bytes of a message that are read."""

MOST_BEGINNINGS = 64
"""The most beginnings of messages in a line that are read: each may be compared with all that follows."""

LONGEST_REMEMBERED = 1 << 11
"""The most bytes of a text that is cached; a log may consist of long lines that all differ."""


def message_at(text: bytes, position: int, begin: int = 0, end: int | None = None) -> Message | None:
    """Return the message whose first words stand at a position of a line, which begins and ends at others of the text; None if none is known."""
    end = len(text) if end is None else end
    begun = text[position : min(end, position + KEY_LENGTHS[0])]
    for before, anchor, literal, is_searched, pattern in _patterns_like(begun):
        begins = position >= before and text.startswith(anchor, position - before, end)
        if begins and text.find(literal, position, end) >= 0:
            found = pattern.find(text, begin if is_searched else position, end)
            if found is not None:
                return _message(pattern, found, text, begin, end)
    return None


def find_message_in(text: bytes) -> FoundMessage | None:
    """Return the first known message in a text that nothing wraps, one of an exception only where there is no other."""
    exception: FoundMessage | None = None
    words = (word.start() for word in _WORD.finditer(text, 0, MESSAGE_LENGTH_LIMIT))
    begins = (start for start in words if _patterns_like(text[start : start + KEY_LENGTHS[0]]))
    for start in islice(begins, MOST_BEGINNINGS):
        message = message_at(text, start)
        if message is None:
            continue
        found = FoundMessage(message, text[: message.start], text)
        if not is_exception(message):
            return found
        exception = exception or found
    return exception


def is_exception(message: Message) -> bool:
    """Return whether a message stands below another line."""
    return "exception" in message.row.section.flags


def _message(pattern: _Pattern, found: re.Match[bytes], text: bytes, begin: int, end: int) -> Message:
    row, _, _, _, _, convert, partitions, topic, node = pattern
    fields: dict[str, FieldValue] = {**row.constant}
    values = found.groups()
    for index, name, read in convert:
        value = values[index - 1]
        if value is not None:
            shown = fields[name] = read(value)
            if read is not int and isinstance(shown, str) and found.end(index) == end:
                fields[name] = _without_suffix(shown)
    start = found.start()
    spoken_of, broker, leader, directory = _identity(text[max(begin, start - 600) : start])
    if leader is not Absent.NOT_WRITTEN:
        fields.setdefault("leader", leader)
    if directory is not Absent.NOT_WRITTEN:
        fields.setdefault("directory", directory)
    partition = _partition_of(partitions, topic, values) if partitions or topic else Absent.NOT_WRITTEN
    if isinstance(partition, Absent):
        partition = spoken_of
        if isinstance(partition, Absent) and isinstance(path := fields.get("path"), str):
            partition = _of_path(path, fields)
    wrote = values[node - 1] if node else None
    of_message = row, partition, broker if wrote is None else int(wrote), fields, start
    return tuple.__new__(Message, of_message)  # a call of the class itself takes three times as long


def _without_suffix(text: str) -> str:
    # Most layouts write the logger alone: then there is one place at which the suffix may begin.
    if text.endswith(")") and " | " not in text:
        start = text.rfind(" (")
        return text[:start].rstrip(" ") if start >= 0 and _LOGGER.fullmatch(text, start) else text
    return _SUFFIX.sub("", text)


def _of_path(path: str, fields: dict[str, FieldValue]) -> TopicPartition | Absent:
    """Return the partition whose directory, or a file in it, a path names, and note the file's base offset."""
    found = _PATH_PARTITION.search(path)
    if found is None:
        return Absent.NOT_WRITTEN
    if found["base"] is not None:
        fields.setdefault("base_offset", int(found["base"]))
    return parse_topic_partition(found["name"].encode())


def _partition_of(
    partitions: Sequence[int], topic: tuple[int, int] | None, values: Sequence[bytes | None]
) -> TopicPartition | Absent:
    for index in partitions:
        if (name := values[index - 1]) is not None:
            return parse_topic_partition(name)
    if topic is not None and (name := values[topic[0] - 1]) is not None:
        return TopicPartition(name.decode("ascii", "replace"), int(values[topic[1] - 1] or b""))
    return Absent.NOT_WRITTEN


@lru_cache(maxsize=4096)
def parse_topic_partition(name: bytes) -> TopicPartition:
    """Return the partition that `orders-0` or `[orders,0]` names.

    Raises:
        ValueError: no number follows the topic.
    """
    topic, _, partition = name.strip(b"[]").replace(b",", b"-").rpartition(b"-")
    return TopicPartition(topic.decode("ascii", "replace"), int(partition))


class _Identity(NamedTuple):
    """What the brackets before a message name."""

    topic_partition: TopicPartition | Absent
    broker_id: int | Absent
    leader: int | Absent
    directory: str | Absent


@lru_cache(maxsize=1 << 13)
def _identity(before: bytes) -> _Identity:
    text = _BEFORE_TIME.sub(b"", before)
    partition = _IDENTITY_PARTITION.search(text)
    old = None if partition else _IDENTITY_OLD_PARTITION.search(text)
    topic_partition: TopicPartition | Absent = Absent.NOT_WRITTEN
    if partition is not None:
        topic_partition = parse_topic_partition(partition["name"])
    elif old is not None:
        topic_partition = TopicPartition(old["topic"].decode("ascii"), int(old["partition"]))
    broker, leader, directory = (
        _IDENTITY_BROKER.search(text),
        _IDENTITY_LEADER.search(text),
        _IDENTITY_DIRECTORY.search(text),
    )
    return _Identity(
        topic_partition,
        int(broker["id"]) if broker else Absent.NOT_WRITTEN,
        int(leader["id"]) if leader else Absent.NOT_WRITTEN,
        directory["dir"].decode("utf-8", "replace") if directory else Absent.NOT_WRITTEN,
    )
