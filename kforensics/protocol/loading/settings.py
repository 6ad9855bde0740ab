"""What a start does not take of its settings: a node ends before it looks at its directories.

Types, least values and first versions: `KafkaConfig.configDef` of 0.10.2, 1.1, 2.8, 3.2 to 3.5, 3.9 and 4.1; `ConfigDef.parseType`.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from kforensics.protocol.loading.node import FIRST_KRAFT, FIRST_WITHOUT_ZOOKEEPER, Refusal
from kforensics.protocol.versions import KafkaVersion

LEAST_SEGMENT_BYTES = 1 << 20
"""The least size of a segment that a setting may name (KIP-1030): of brokers since 4.0, of topics since 4.1 (KAFKA-19080)."""
_FIRST = (0, 8)


class _Number(NamedTuple):
    """A setting that is a whole number, from which version on, and its least values with the versions that brought them; each is above the one before."""

    bits: int
    leasts: tuple[tuple[tuple[int, int], int], ...] = ()
    since: tuple[int, int] = _FIRST


_NUMBERS: Mapping[str, _Number] = {
    "broker.id": _Number(32),
    "node.id": _Number(32, since=(2, 8)),
    "log.segment.bytes": _Number(32, ((_FIRST, 14), ((4, 0), LEAST_SEGMENT_BYTES))),
    "log.retention.ms": _Number(64),
    "log.retention.minutes": _Number(32),
    "log.retention.hours": _Number(32),
    "log.retention.bytes": _Number(64),
    "log.index.size.max.bytes": _Number(32, ((_FIRST, 4),)),
    "log.index.interval.bytes": _Number(32, ((_FIRST, 0),)),
    "log.cleaner.delete.retention.ms": _Number(64, (((3, 3), 0),)),
    "log.cleaner.min.compaction.lag.ms": _Number(64, (((3, 3), 0),), since=(0, 10)),
    "log.cleaner.max.compaction.lag.ms": _Number(64, (((3, 3), 1),), since=(2, 3)),
    "transactional.id.expiration.ms": _Number(32, ((_FIRST, 1),), since=(0, 11)),
    "producer.id.expiration.ms": _Number(32, ((_FIRST, 1),), since=(3, 4)),
}
"""Those that a prediction depends on; others are not judged."""
_RETENTION_TIMES = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
"""The first that is there counts."""
_POLICIES = frozenset({"compact", "delete"})
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_MOST_DIGITS = 64
"""Of a number that may be meant: Python refuses to read one of thousands of digits."""


def refuse_settings(version: KafkaVersion, *, has_roles: bool, has_zookeeper: bool) -> Refusal | None:
    """Judge whether a `server.properties` names what a node runs with, as a start does (`KafkaConfig`).

    Args:
        has_roles: it has `process.roles`.
        has_zookeeper: it has `zookeeper.connect`.

    Returns:
        Why the node does not start; nothing where the file has neither setting: it may be a part of one.
    """
    lacking = ""
    if version >= FIRST_WITHOUT_ZOOKEEPER and has_zookeeper and not has_roles:
        lacking = "process.roles"
    elif version < FIRST_KRAFT and has_roles and not has_zookeeper:
        lacking = "zookeeper.connect"
    words = f'Missing required configuration "{lacking}" which has no default value.'
    return Refusal("ConfigException", words) if lacking else None


def refuse_values(version: KafkaVersion, values: Mapping[str, str]) -> Refusal | None:
    """Judge the values of a `server.properties` as a start does (`KafkaConfig`), as far as a prediction depends on them.

    Args:
        values: by name, without white space around them.

    Returns:
        Why the node does not start. A value that another place is to replace (`config.providers`, KIP-421) is taken as in order.
    """
    replaced = "config.providers" in values
    judged = {name: value for name, value in values.items() if not (replaced and "${" in value)}
    for name, kind in _NUMBERS.items():
        if name in judged and version >= kind.since:
            problem = _problem(judged[name], kind, version)
            if problem:
                return _invalid(name, judged[name], problem)
    policies = judged.get("log.cleanup.policy", "")
    for policy in (one.strip() for one in policies.split(",") if policies):
        if policy not in _POLICIES:
            return _invalid("log.cleanup.policy", policy, "String must be one of: compact, delete")
    time = next((name for name in _RETENTION_TIMES if name in values), "")
    if time in judged and not int(judged[time]):
        words = "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to 1"
        return Refusal("IllegalArgumentException", words)
    return None


def _problem(value: str, kind: _Number, version: KafkaVersion) -> str:
    number = _number(value, kind.bits)
    if number is None:
        return f"Not a number of type {'INT' if kind.bits == 32 else 'LONG'}"
    least = max((one for since, one in kind.leasts if version >= since), default=None)
    return f"Value must be at least {least}" if least is not None and number < least else ""


def _number(value: str, bits: int) -> int | None:
    if len(value) > _MOST_DIGITS or not _WHOLE_NUMBER.fullmatch(value):
        return None
    number = int(value)
    return number if -1 << bits - 1 <= number < 1 << bits - 1 else None


def _invalid(name: str, value: str, problem: str) -> Refusal:
    shown = value if len(value) <= _MOST_DIGITS else f"{value[:_MOST_DIGITS]}…"
    return Refusal("ConfigException", f"Invalid value {shown} for configuration {name}: {problem}")


def refuse_segment_bytes(version: KafkaVersion, of_topics: Mapping[str, str]) -> Refusal | None:
    """Judge the sizes of segments that topics have: a broker reads the settings of every topic before it loads a log.

    Args:
        of_topics: `segment.bytes` of each topic of the cluster that has a value of its own, by name.
    """
    if version < (4, 1):
        return None
    sizes = {topic: number for topic, value in of_topics.items() if (number := _number(value.strip(), 64)) is not None}
    small = sorted(topic for topic, size in sizes.items() if size < LEAST_SEGMENT_BYTES)
    if not small:
        return None
    more = f" and {len(small) - 1} more" if len(small) > 1 else ""
    words = (
        f"Invalid value {sizes[small[0]]} for configuration segment.bytes: Value must be at least {LEAST_SEGMENT_BYTES}"
    )
    return Refusal("ConfigException", f"{words} (a setting of topic {small[0]}{more})")
