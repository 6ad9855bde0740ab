from hypothesis import given
from hypothesis import strategies as st

from kforensics.evidence.discovery.partition_dirs import CheckpointLines, packed_line, unpacked_line
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
