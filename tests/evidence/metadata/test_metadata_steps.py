"""Changes of partitions taken many at a time lead where they lead one by one."""

from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kforensics.damage import Absent
from kforensics.evidence.event_kinds import EventKind
from kforensics.evidence.metadata import steps as metadata_steps
from kforensics.evidence.metadata.events import change_events
from kforensics.evidence.metadata.files import RecordPlaces
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.evidence.metadata.partitions import PartitionHistories
from kforensics.evidence.metadata.steps import Origin, PartitionReplay
from kforensics.formats.log.batch_table import empty_batches
from kforensics.formats.messages.metadata import parse_metadata_record
from kforensics.formats.messages.metadata_bulk import FRAME_LENGTH, SUBJECT_LENGTH, PartitionRecords
from kforensics.formats.messages.schema import Decoded
from tests.builders.metadata_logs import TOPIC_ID, history_of, metadata_batch, metadata_record

CUT = FRAME_LENGTH + SUBJECT_LENGTH

brokers = st.lists(st.integers(1, 4), max_size=3, unique=True).map(tuple)
changes = st.fixed_dictionaries(
    {"partition_id": st.integers(0, 3), "topic_id": st.just(TOPIC_ID)},
    optional={
        "isr": brokers,
        "leader": st.integers(-1, 4),
        "replicas": brokers,
        "eligible_leader_replicas": brokers,
        "leader_recovery_state": st.integers(0, 1),
    },
)


def created(partition: int) -> dict[str, Any]:
    fields = {"partition_id": partition, "topic_id": TOPIC_ID, "replicas": (1, 2, 3), "isr": (1, 2, 3), "leader": 1}
    return fields | {"leader_epoch": 5 * partition, "partition_epoch": partition}


def value(name: str, fields: dict[str, Any], version: int = 2) -> bytes:
    return metadata_record(name, fields, version)


def fields_of(data: bytes) -> dict[str, Any]:
    message = parse_metadata_record(data)
    assert isinstance(message, Decoded)
    return message.fields


def replay() -> PartitionReplay:
    started = PartitionReplay()
    for partition in range(3):
        started.record(fields_of(value("PartitionRecord", created(partition))), "t", Origin(partition, 1, 0))
    return started


def bulk(values: list[bytes], version: int) -> PartitionRecords:
    rows = np.arange(len(values))
    return PartitionRecords(
        rows, True, version, [one[FRAME_LENGTH:CUT] for one in values], [one[CUT:] for one in values]
    )


@given(st.lists(changes, max_size=60), st.integers(0, 2), st.integers(1, 40), st.sampled_from([1, 8, 1 << 17]))
def test_many_at_a_time_as_one_by_one(told: list[dict[str, Any]], version: int, size: int, most: int) -> None:
    written = [
        value("PartitionChangeRecord", {name: one[name] for name in one if version == 2 or "elig" not in name}, version)
        for one in told
    ]
    single, together = replay(), replay()
    left_single = [
        at for at, one in enumerate(written) if not single.change(fields_of(one), Origin(3 + at, 10 + at, 0))
    ]
    left_together: list[int] = []
    before = metadata_steps.MOST_MOVES
    metadata_steps.MOST_MOVES = most
    try:
        for first in range(0, len(written), size):
            part = written[first : first + size]
            at = np.arange(first, first + len(part))
            left = together.change_all(bulk(part, version), 3 + at, 10 + at, np.zeros(len(part), np.int64))
            left_together += [first + one for one in left]
    finally:
        metadata_steps.MOST_MOVES = before

    assert left_together == left_single == [at for at, one in enumerate(told) if one["partition_id"] == 3]
    assert history(together) == history(single)


def history(found: PartitionReplay) -> dict[Any, Any]:
    places = RecordPlaces(0)
    places.add_batches("a.log", np.zeros(1, empty_batches().dtype))
    histories = PartitionHistories(found.keys, found.topics, found.statuses, found.steps(), places)
    return {key: tuple(states) for key, states in histories.items()}


def test_partitions_of_a_topic_that_nothing_names(tmp_path: Path) -> None:
    other = "AAAAAAAAAAAAAAAAAAAAAQ"
    found = history_from(
        tmp_path,
        [
            ("TopicRecord", {"name": "t", "topic_id": TOPIC_ID}),
            ("PartitionRecord", created(0)),
            ("PartitionRecord", created(1) | {"topic_id": other}),
            ("PartitionRecord", created(2)),
            ("PartitionRecord", created(0) | {"leader": 3}),
        ],
    )
    assert [(name, when.offset) for name, when in found.unapplied] == [("PartitionRecord of no topic", 2)]
    assert [[one.when.offset for one in states] for states in found.partitions.values()] == [[1, 4], [2], [3]]
    assert found.partitions[other, 1][0].topic == ""
    assert {key[1] for key in found.at(3).partitions} == {0, 2}


def test_a_change_that_is_not_understood_is_left() -> None:
    whole = value("PartitionChangeRecord", {"partition_id": 1, "topic_id": TOPIC_ID, "leader": 2})
    torn = whole[:-1]
    found = replay()
    at = np.arange(3)
    assert found.change_all(bulk([whole, torn, whole], 2), at, at, at * 0) == [1]
    assert [state.leader_epoch for state in history(found)[TOPIC_ID, 1]] == [5, 6, 7]


def log(directory: Path, count: int) -> MetadataHistory:
    """A log of one topic whose only partition has its leader moved over and over, with other records between."""
    records = [("TopicRecord", {"name": "t", "topic_id": TOPIC_ID}), ("PartitionRecord", created(0))]
    for number in range(count):
        leader = number % 3 + 1
        change = {"partition_id": 0, "topic_id": TOPIC_ID, "leader": leader, "isr": (leader,)}
        records.append(("PartitionChangeRecord", change))
        if number % 7 == 0:
            records.append(("NoOpRecord", {}))
        if number % 11 == 0:
            config = {"resource_type": 2, "resource_name": "t", "name": "retention.ms", "value": str(number)}
            records.append(("ConfigRecord", config))
    return history_from(directory, records)


def history_from(directory: Path, records: list[tuple[str, dict[str, Any]]]) -> MetadataHistory:
    values = [metadata_record(name, fields) for name, fields in records]
    return history_of(directory, metadata_batch(0, values, times_ms=range(1_000, 1_000 + len(values))))


def test_changes_and_other_records_keep_their_order(tmp_path: Path) -> None:
    found = log(tmp_path, 100)
    events = list(change_events(found))

    assert found.end_offset == 2 + 100 + 15 + 10
    assert (found.problems, found.unapplied, found.gaps) == ((), (), ())
    assert [event.when.offset for event in events] == sorted(event.when.offset for event in events)
    assert sum(event.kind is EventKind.CONFIG_CHANGE for event in events) == 10
    states = found.partition_states("t", 0)
    assert [state.leader_epoch for state in states] == list(range(101))
    assert [state.partition_epoch for state in states] == list(range(101))
    assert {state.when.timestamp_ms - state.when.offset for state in states} == {1_000}
    assert found.partitions.at((TOPIC_ID, 0), states[50].when.offset) == states[50]
    assert found.at(states[50].when.offset).partitions[TOPIC_ID, 0] == states[50]
    assert [
        one.when.offset for one in change_events(found, topics={"t"}, partitions={0}, up_to=20) if one.partition == 0
    ][-1] <= 20
    assert not [
        one for one in change_events(found, topics={"t"}, partitions={1}) if not isinstance(one.partition, Absent)
    ]
    assert list(found.partitions.epoch_starts()) == [
        ((TOPIC_ID, 0), state.leader_epoch, state.when.timestamp_ms) for state in states
    ]
