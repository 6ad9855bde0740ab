"""Partitions of which directories are missing."""

from types import SimpleNamespace
from typing import Any

import pytest

from kforensics.case.comparison import known_partitions
from kforensics.damage import Absent
from kforensics.units import TopicPartition


@pytest.mark.parametrize(
    ("ends", "named", "known"),
    [
        ({1: 90, 2: 80, 3: 80}, False, {"old"}),
        # A checkpoint names it: the voters that lack its record were copied before.
        ({1: 90, 2: 80, 3: 80}, True, {"old", "new"}),
        # The voter that is not given may hold it.
        ({1: 90, 2: 80}, False, {"old", "new"}),
        ({1: 90, 2: 86, 3: 80}, False, {"old", "new"}),
        ({1: 90, 2: 85, 3: 85}, False, {"old"}),
    ],
)
def test_a_topic_whose_record_most_voters_lack_has_no_partitions(ends, named, known):
    topics = {
        name[0]: SimpleNamespace(name=name, removed=Absent.NOT_APPLICABLE, created=SimpleNamespace(offset=offset))
        for name, offset in (("old", 10), ("new", 85))
    }
    history: Any = SimpleNamespace(topics=topics, partitions=[("o", 0), ("n", 0)], current_voters=(1, 2, 3))
    nodes: Any = [SimpleNamespace(node_id=node, end_offset=end) for node, end in ends.items()]
    lost: Any = [SimpleNamespace(topic_partition=TopicPartition("new", 0))] if named else []

    assert known == {one.topic for one in known_partitions(history, lost, nodes)}
