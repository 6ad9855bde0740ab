r"""The beginning of a log line: time, level, and the identity in brackets that most messages carry.

    [2024-05-01 12:00:00,123] INFO [UnifiedLog partition=orders-0, dir=/data] Truncating to offset 60 (class)

The default pattern `[%d] %p %m (%c)%n` is the same from 0.8 to 4.4 (config/log4j.properties, config/log4j2.yaml);
operators also run it without brackets, with `T` in the time, with a zone, and as JSON (log4j2 JsonLayout and
JsonTemplateLayout, ECS, logstash), one object a line.
"""

import datetime as dt
import json
import re
from functools import lru_cache
from typing import Any, NamedTuple

from kforensics.damage import Absent
from kforensics.units import TopicPartition

LEVELS = {name.encode(): name for name in ("INFO", "WARN", "ERROR", "TRACE", "DEBUG", "FATAL")}
LEVEL = rb"(?P<level>" + b"|".join(LEVELS) + rb")"
IDENTITY = (
    rb"(?:\[[^\]\n]{0,600}+\][:,]?|Partition \[[^\]\n]{0,260}+\] on broker \d+:|Broker \d+|Controller \d+ epoch \d+)"
)
"""Up to 0.11 partitions, brokers and controllers name themselves without a bracket around the whole name."""
TEXT_HEAD = rb"20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d[,.]\d{3}(?:Z|[+-]\d\d:?\d\d)?+\]? +" + LEVEL + rb" +"
"""Where a line of the text layouts begins, without the bracket; it finds lines written into another one, too."""
JSON_HEAD = rb"\"(?:message|msg)\" ?: ?\""

TOPIC_PARTITION = rb"@?[A-Za-z0-9._-]{1,249}-\d{1,9}"
"""Topic and number; only the metadata log of 2.8 has the sign before its name."""
_TEXT_LINE = re.compile(TEXT_HEAD)
LATEST_MS = 1 << 43
"""The end of the accepted times, in the year 2248."""
_BEHIND_LOCAL_TIME = frozenset(b"] ")
"""What follows the milliseconds where the line names no zone."""
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_TIME = re.compile(rb"20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d[,.]\d{3}\d*(?P<zone>Z|[+-]\d\d:?\d\d)?")
_IDENTITY_PARTITION = re.compile(
    rb"(?:partition=|Partition |Cache )(?P<name>" + TOPIC_PARTITION + rb")(?![A-Za-z0-9._-])"
)
_IDENTITY_OLD_PARTITION = re.compile(rb"Partition \[(?P<topic>[A-Za-z0-9._-]{1,249}),(?P<partition>\d{1,9})\]")
_IDENTITY_BROKER = re.compile(
    rb"(?:replicaId=|broker=|nodeId=|[A-Za-z]+ id=|on [Bb]roker |Kafka Server |^\[?(?:Broker|Controller) )"
    rb"(?P<id>\d{1,9})"
)
_IDENTITY_LEADER = re.compile(rb"(?:leaderId=|ReplicaFetcherThread-\d{1,9}-)(?P<id>\d{1,9})")
_IDENTITY_DIRECTORY = re.compile(rb", dir=(?P<dir>[^\]\n]{1,4096})")
_COLLECTED_AT = re.compile(
    rb"[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d|\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d:\d\d[\d.,]*(?:Z|[+-]\d\d:?\d\d)?)?"
)
"""A time that a collector of lines puts before them."""
_WRITER_LIMIT = 512
"""The most bytes before a line's time that are looked at."""


class Identity(NamedTuple):
    """The identity in the bracket before a message: the partition, the node, the leader and the directory that it names."""

    topic_partition: TopicPartition | Absent
    broker_id: int | Absent
    leader: int | Absent
    directory: str | Absent


class LineTime(NamedTuple):
    """The time of a line in milliseconds, and whether the line names its time zone."""

    time_ms: int | Absent
    zone_named: bool


def writer_before(window: bytes, position: int) -> str:
    """Return what a collector of lines put before a line, without times; empty where the line begins with its own time or bracket.

    Args:
        position: where the line's own time, or its object, begins.
    """
    start = window.rfind(b"\n", max(0, position - _WRITER_LIMIT), position) + 1
    before = window[max(start, position - _WRITER_LIMIT) : position]
    return "" if before in {b"", b"["} else _writer(before)


@lru_cache(maxsize=4096)
def _writer(before: bytes) -> str:
    named = _COLLECTED_AT.sub(b"", before.removesuffix(b"["))
    return " ".join(named.decode("utf-8", "replace").split())


@lru_cache(maxsize=4096)
def parse_topic_partition(name: bytes) -> TopicPartition:
    """Return the partition that `orders-0` or `[orders,0]` names.

    Args:
        name: a text whose shape the caller's pattern has checked.

    Raises:
        ValueError: no number follows the topic.
    """
    topic, _, partition = name.strip(b"[]").replace(b",", b"-").rpartition(b"-")
    return TopicPartition(topic.decode("ascii", "replace"), int(partition))


@lru_cache(maxsize=4096)
def _second_ms(text: bytes) -> int | None:
    """Return the milliseconds since 1970 of `2024-05-01 12:00:00`, or None if there is no such day or hour."""
    year, month, date = int(text[:4]), int(text[5:7]), int(text[8:10])
    hour, minute, second = int(text[11:13]), int(text[14:16]), int(text[17:19])
    try:
        days = dt.date(year, month, date).toordinal() - _EPOCH_DAY
    except ValueError:
        return None
    if hour > 23 or minute > 59 or second > 60:
        return None
    return ((days * 24 + hour) * 60 + minute) * 60_000 + second * 1000


def parse_moment(text: bytes) -> LineTime:
    """Return the time at the beginning of the text, `2024-05-01 12:00:00,123` with or without a zone.

    Args:
        text: from the first digit of the year on.

    Returns:
        Milliseconds since 1970, `UNREADABLE` where the text begins with no time; read as UTC where it names no zone.
    """
    found = _TIME.match(text)
    base = _second_ms(text[:19]) if found else None
    if found is None or base is None:
        return LineTime(Absent.UNREADABLE, False)
    time_ms = base + int(text[20:23])
    zone = found["zone"]
    if zone is None:
        return LineTime(time_ms, False)
    if zone != b"Z":
        minutes = int(zone[1:3]) * 60 + int(zone[-2:])
        time_ms -= (minutes if zone[:1] == b"+" else -minutes) * 60_000
    return LineTime(time_ms, True)


def parse_head_moment(head: bytes) -> LineTime:
    """Return the time of a line that begins with a `TEXT_HEAD`.

    Args:
        head: what `TEXT_HEAD` matched, from the first digit of the year on.
    """
    seconds = _second_ms(head[:19]) if head[23] in _BEHIND_LOCAL_TIME else None
    return parse_moment(head) if seconds is None else LineTime(seconds + int(head[20:23]), False)


def line_moment(line: bytes) -> LineTime:
    """Return the time of a line of a text or a JSON layout; one of neither has none.

    Args:
        line: one line, with or without its line end.
    """
    if line.lstrip().startswith(b"{"):
        parsed = parse_json_line(line)
        return LineTime(parsed, False) if isinstance(parsed, Absent) else parsed.moment
    head = _TEXT_LINE.search(line)
    return LineTime(Absent.NOT_WRITTEN, False) if head is None else parse_head_moment(head[0])


@lru_cache(maxsize=4096)
def parse_identity(text: bytes) -> Identity:
    """Return the partition, node, leader and directory that the bracket before a message names.

    Args:
        text: the bracket, or empty where a message has none: then all are `NOT_WRITTEN`.
    """
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
    return Identity(
        topic_partition,
        int(broker["id"]) if broker else Absent.NOT_WRITTEN,
        int(leader["id"]) if leader else Absent.NOT_WRITTEN,
        directory["dir"].decode("utf-8", "replace") if directory else Absent.NOT_WRITTEN,
    )


class JsonLine(NamedTuple):
    """The content of a line of a JSON layout."""

    moment: LineTime
    level: str
    message: bytes


def parse_json_line(line: bytes) -> JsonLine | Absent:
    """Return one log event of a JSON layout, absent if the line is no such object.

    Args:
        line: one line; of unknown layouts too, as long as it is an object with a `message` or `msg`.
    """
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError):
        return Absent.UNREADABLE
    if not isinstance(value, dict):
        return Absent.UNREADABLE
    message = value.get("message", value.get("msg"))
    if not isinstance(message, str):
        return Absent.UNREADABLE
    level = value.get("level", value.get("log.level", value.get("severity", "")))
    return JsonLine(_json_moment(value), level if isinstance(level, str) else "", message.encode("utf-8", "replace"))


def _json_moment(value: dict[str, Any]) -> LineTime:
    instant = value.get("instant")
    if isinstance(instant, dict) and isinstance(seconds := instant.get("epochSecond"), int):
        nanos = instant.get("nanoOfSecond", 0)
        time_ms = seconds * 1000 + (nanos // 1_000_000 if isinstance(nanos, int) else 0)
        return LineTime(time_ms, True) if 0 < time_ms < LATEST_MS else LineTime(Absent.UNREADABLE, False)
    for name in ("timeMillis", "epochMillis", "@timestamp", "timestamp", "time", "ts"):
        time = value.get(name)
        if isinstance(time, int) and not isinstance(time, bool) and 0 < time < LATEST_MS:
            return LineTime(time, True)
        if isinstance(time, str):
            return parse_moment(time.encode("ascii", "replace"))
    return LineTime(Absent.NOT_WRITTEN, False)
