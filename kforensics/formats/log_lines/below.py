"""What stands on the lines below a message: the exception that says why, or the configuration that a broker prints when it starts."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.formats.log_lines.event import FieldValue
from kforensics.formats.log_lines.table import Message, find_message_in
from kforensics.units import TopicPartition

_EXCEPTION = re.compile(
    rb"(?P<by>Caused by: )?(?<![\w$.])(?:[a-z_][\w$]*+\.)++(?P<name>(?:[A-Z]\w*[.$])?[A-Z]\w*(?:Exception|Error|Failure|Interrupted))\b(?:: (?P<words>[^\n\r]*?)(?= at [\w$.<>/@-]+\(|[\n\r]|\Z))?"
)
_BEHIND = re.compile(r" \((?:[\w$]+\.)+[\w$]+\)(?: \[[^\]]*\]|[\"'<].*)?$|\"(?:[,}\]]*|,(?! ).*| [\w.]+=.*)$")
"""The logger, and what wraps the line."""
_IN_A_STACK = re.compile(
    rb"(?:^|[\s|\"])(?:at [\w$.<>/@-]+\(|Caused by: |\.\.\. \d+ (?:more|common frames)|Suppressed: )"
)


def is_of_a_stack(text: bytes) -> bool:
    """Return whether a line is one of a stack trace."""
    return text.startswith(b"\t") or _IN_A_STACK.search(text) is not None


def exception_in(text: bytes) -> re.Match[bytes] | None:
    """Return the first exception that a text names."""
    return _EXCEPTION.search(text) if b"xception" in text or b"Error" in text or b"Failure" in text else None


class Cause(NamedTuple):
    """What the exception below a line says."""

    words: str
    message: Message | None


def cause_in(stack: bytes) -> Cause | None:
    """Return the innermost cause in a stack trace."""
    found = list(_EXCEPTION.finditer(stack))
    if not found:
        return None
    inner = next((one for one in reversed(found) if one["by"]), found[0])
    name = inner["name"].decode("utf-8", "replace")
    words = _BEHIND.sub("", (inner["words"] or b"").decode("utf-8", "replace").strip())
    known = find_message_in(inner[0]) or find_message_in(found[0][0])
    return Cause(f"{name}: {words}" if words else name, known.message if known else None)


def with_cause(
    fields: Mapping[str, FieldValue], partition: TopicPartition | Absent, cause: Cause
) -> tuple[Mapping[str, FieldValue], TopicPartition | Absent]:
    """Return the fields and the partition of a message, with those that the exception below it names."""
    known = cause.message
    more = known.fields if known is not None else {}
    if known is not None and isinstance(partition, Absent):
        partition = known.topic_partition
    advice = {"advice": known.row.advice} if known is not None and known.row.advice else {}
    return {**more, **fields, **advice, "cause": cause.words}, partition


_CONFIGURATION_LIMIT = 1 << 17
_END = re.compile(rb"\n(?![ \t\n])")
_KEPT = frozenset(
    {
        b"broker.id",
        b"node.id",
        b"process.roles",
        b"log.dirs",
        b"log.dir",
        b"unclean.leader.election.enable",
        b"min.insync.replicas",
        b"default.replication.factor",
        b"inter.broker.protocol.version",
        b"log.message.format.version",
        b"log.flush.interval.messages",
        b"log.flush.interval.ms",
        b"replica.lag.time.max.ms",
        b"log.retention.ms",
        b"log.retention.minutes",
        b"log.retention.hours",
        b"log.retention.bytes",
        b"log.cleanup.policy",
        b"offsets.retention.minutes",
        b"offsets.topic.num.partitions",
        b"transaction.state.log.num.partitions",
    }
)
_NUMBER = re.compile(rb"-?\d{1,18}")
SETTING = re.compile(
    rb"(?<![\w.])(?:\\t)?(?P<setting>[a-z][\w.-]* =(?: [^\n]*?)?)\s*(?:(?:\\[nr])*(?:\"|'[^\w,\]]|</|<br)[^\n]*)?$"
)
"""A line of a configuration, whatever stands before and behind it."""


def parse_configuration(text: bytes, position: int = 0) -> dict[str, FieldValue]:
    """Return the settings of retention, replication, election and coordinators by their names; secrets are never among them.

    Args:
        position: the line end of `KafkaConfig values:`; the first line behind it that is not indented ends the settings.

    Returns:
        Numbers and booleans where the text is one, else the text; settings that are not kept, or not printed, are missing.
    """
    limit = min(len(text), position + _CONFIGURATION_LIMIT)
    end = _END.search(text, position + 1, limit)
    return dict(_values(text[position : end.start() if end else limit]))


# A broker prints the same values at each start.
@lru_cache(maxsize=256)
def _values(block: bytes) -> dict[str, FieldValue]:
    pairs = (line.partition(b" = ") for line in block.split(b"\n"))
    kept = ((name.strip(), value.strip()[:1_000]) for name, mark, value in pairs if mark)
    return {name.decode("ascii"): _value(value) for name, value in kept if name in _KEPT}


def _value(text: bytes) -> FieldValue:
    if text in {b"true", b"false"}:
        return text == b"true"
    if _NUMBER.fullmatch(text):
        return int(text)
    return text.decode("utf-8", "replace")
