"""Which brokers each partition is assigned to, by a file of the inventory: where no metadata log says it, as in a cluster with ZooKeeper.

Three kinds of text are understood: what `kafka-topics --describe` prints; JSON as `kafka-reassign-partitions` takes and prints it; and znodes below `/brokers/topics`, as paths with
their JSON behind them or as one JSON object by path.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kforensics.errors import EvidenceUnreadable
from kforensics.source.mapped import open_named
from kforensics.units import TopicPartition

Assignments = Mapping[TopicPartition, tuple[int, ...]]

LIMIT = 1 << 30
"""Bytes of a file that are read."""

_EXPECTED = "expected what kafka-topics --describe prints, a reassignment in JSON, or znodes below /brokers/topics, each with its path"

_DESCRIBED = re.compile(
    r"Topic:\s*(\S+)\s+(?:TopicId:\s*\S+\s+)?Partition:\s*(\d{1,9})\s[^\n]*?Replicas:[ \t]*([\d,]+)"
)
_ZNODE = re.compile(r"/brokers/topics/([^/\s\"']+)[\"']?[\s:=]*(?=[{\"])")
_OBJECT = re.compile(r"^\s*(?=\{)", re.MULTILINE)


def read_assignments(location: Path) -> Assignments:
    """Return the assignment of each partition in a file."""
    with open_named(location) as file:
        text = file.read_all(LIMIT).decode("utf-8", "replace")
    out: dict[TopicPartition, tuple[int, ...]] = {}
    try:
        for partition, brokers in _found(text):
            if not brokers or out.setdefault(partition, brokers) != brokers:
                words = f"brokers {', '.join(map(str, brokers)) or 'none'}, and {', '.join(map(str, out.get(partition, ())))}"
                raise EvidenceUnreadable(str(location), f"{partition} is assigned to {words}")
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise EvidenceUnreadable(str(location), f"it is not understood: {_EXPECTED}") from error
    if not out:
        raise EvidenceUnreadable(str(location), f"no partition is assigned here: {_EXPECTED}")
    return out


def _found(text: str) -> Iterator[tuple[TopicPartition, tuple[int, ...]]]:
    decoder = json.JSONDecoder()
    for topic, number, brokers in _DESCRIBED.findall(text):
        yield TopicPartition(topic, int(number)), tuple(int(one) for one in brokers.split(",") if one)
    znodes = list(_ZNODE.finditer(text))
    for found in znodes:
        content = decoder.raw_decode(text, found.end())[0]
        yield from _of_znode(found[1], json.loads(content) if isinstance(content, str) else content)
    first = None if znodes else _OBJECT.search(text)
    if first is not None:
        # Of what --generate prints the first is the assignment of now, the second a proposal.
        document = decoder.raw_decode(text, first.end())[0]
        for row in document["partitions"]:
            yield TopicPartition(str(row["topic"]), int(row["partition"])), tuple(map(int, row["replicas"]))


def _of_znode(topic: str, content: Any) -> Iterator[tuple[TopicPartition, tuple[int, ...]]]:
    for number, brokers in content["partitions"].items():
        yield TopicPartition(topic, int(number)), tuple(map(int, brokers))
