"""The configuration that a broker prints when it starts: `KafkaConfig values:` and one indented `name = value` per line."""

import re
from functools import lru_cache

from kforensics.formats.log_lines.event import FieldValue

_END = re.compile(rb"\n(?![ \t])")
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
        b"offsets.retention.minutes",
        b"offsets.topic.num.partitions",
        b"transaction.state.log.num.partitions",
    }
)
_NUMBER = re.compile(rb"-?\d{1,18}")
_VALUE = re.compile(
    rb"\n[ \t]++(?P<name>" + b"|".join(re.escape(name) for name in sorted(_KEPT)) + rb") = (?P<value>[^\n\r]{0,1000})"
)


def parse_configuration(text: bytes) -> dict[str, FieldValue]:
    """Return the settings of retention, replication, election and coordinators by their names; secrets are never among them.

    Args:
        text: what follows the line `KafkaConfig values:`, from its line end on; the first line that is not indented ends it.

    Returns:
        Numbers and booleans where the text is one, else the text; settings that are not kept, or not printed, are missing.
    """
    end = _END.search(text, 1)
    return dict(_values(text[: end.start()] if end else text))


# A broker prints the same values at each start.
@lru_cache(maxsize=64)
def _values(block: bytes) -> dict[str, FieldValue]:
    return {found["name"].decode("ascii"): _value(found["value"].strip()) for found in _VALUE.finditer(block)}


def _value(text: bytes) -> FieldValue:
    if text in {b"true", b"false"}:
        return text == b"true"
    if _NUMBER.fullmatch(text):
        return int(text)
    return text.decode("utf-8", "replace")
