import json

from hypothesis import given
from hypothesis import strategies as st

from kforensics.commands.capturing.container import DeflatedObject
from kforensics.evidence.discovery.checkpoint_lines import CheckpointLines, packed_line, unpacked_line
from kforensics.source import packed_names
from kforensics.source.packed_names import PackedNames
from kforensics.units import TopicPartition

topics = st.sampled_from(["a", "b", "a-1", "é"])
lines = st.lists(st.tuples(topics, st.integers(0, 5), st.integers(0, 2**63 - 1), st.integers(1, 2**31)), max_size=40)


@given(lines)
def test_packed_lines_are_those_of_a_dictionary(entries):
    plain = {TopicPartition(topic, partition): packed_line(*stated) for topic, partition, *stated in entries}
    packed = CheckpointLines(entries)

    assert plain == dict(packed)
    assert len(plain) == len(packed)
    for topic in ("a", "b", "c"):
        for partition in range(-1, 7):
            key = TopicPartition(topic, partition)
            assert plain.get(key) == packed.get(key)
    assert all(unpacked_line(packed[key]) == unpacked_line(value) for key, value in plain.items())


@given(st.lists(st.text("ab-.", min_size=1), max_size=20), st.integers(1, 7))
def test_packed_names_are_those_that_were_given(names, at_once):
    before, packed_names.NAMES_AT_ONCE = packed_names.NAMES_AT_ONCE, at_once
    try:
        packed = PackedNames.of(names)
    finally:
        packed_names.NAMES_AT_ONCE = before

    assert (names, len(names), bool(names)) == (list(packed), len(packed), bool(packed))
    assert all(group.count("/") < at_once for group in packed.groups)


@given(st.dictionaries(st.text(), st.integers(), max_size=30))
def test_an_object_that_is_held_deflated_is_the_same(members):
    held = DeflatedObject()
    for name, value in members.items():
        held.add(name, value)
        json.loads(b"".join(held.pieces()))

    assert members == json.loads(b"".join(held.pieces()))
