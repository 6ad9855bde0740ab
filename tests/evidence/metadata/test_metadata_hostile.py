"""Metadata logs made to cost as much as possible: the steps stay in proportion to their length."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.evidence.metadata.files import find_metadata_logs
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.evidence.metadata.log import read_metadata_log
from kforensics.formats.log.batches import Message, encode_message
from tests.builders.metadata_logs import TOPIC_ID, history_of, metadata_batch, metadata_log, metadata_record
from tests.steps import steps

MANY = 8_000
FEW = 500
LINEAR = 2.2
"""What twice the records may take of the steps; were each looked at with all that came before, it would be four times."""


def record(name: str, version: int | None = None, /, **fields: Any) -> bytes:
    return metadata_record(name, fields, version)


def partition(number: int) -> bytes:
    replicas = {"replicas": (1, 2, 3), "isr": (1, 2), "leader": 1, "eligible_leader_replicas": (3,)}
    return record("PartitionRecord", partition_id=number, topic_id=TOPIC_ID, **replicas)


def change(version: int, **fields: Any) -> bytes:
    return record("PartitionChangeRecord", version, partition_id=0, topic_id=TOPIC_ID, **fields)


def batch(offset: int, *values: bytes) -> bytes:
    return metadata_batch(offset, values)


TOPIC = record("TopicRecord", name="t", topic_id=TOPIC_ID)


def linear_history_of(tmp_path: Path, batches: Callable[[int], tuple[bytes, ...]]) -> MetadataHistory:
    """The history of `MANY`, once it is known that twice as many take twice the steps."""
    small, large = (metadata_log(tmp_path / str(count), *batches(count)) for count in (FEW, 2 * FEW))
    assert steps(lambda: read_metadata_log(large)) < LINEAR * steps(lambda: read_metadata_log(small))
    return history_of(tmp_path, *batches(MANY))


@pytest.mark.slow
def test_gaps_before_every_record(tmp_path: Path) -> None:
    one = batch(0, change(0, isr=(1,)))

    def batches(count: int) -> tuple[bytes, ...]:
        # The checksum does not cover the base offset.
        gapped = b"".join((10 + 2 * at).to_bytes(8) + one[8:] for at in range(count))
        return batch(0, TOPIC, partition(0)), gapped

    history = linear_history_of(tmp_path, batches)
    assert len(history.gaps) == MANY
    assert history.gaps[:2] == ((2, 9), (11, 11))
    assert len(history.partition_states("t", 0)) == 1 + MANY


@pytest.mark.slow
def test_versions_that_alternate_over_many_statuses(tmp_path: Path) -> None:
    def batches(count: int) -> tuple[bytes, ...]:
        statuses = [change(0, isr=(at,)) for at in range(count)]
        alternating = [change(at % 2, isr=(1,)) for at in range(count)]
        return batch(0, TOPIC, partition(0)), batch(2, *statuses), batch(2 + count, *alternating)

    history = linear_history_of(tmp_path, batches)
    states = history.partition_states("t", 0)
    assert len(states) == 1 + 2 * MANY
    assert [one.isr for one in states[MANY - 1 : MANY + 2]] == [(MANY - 2,), (MANY - 1,), (1,)]


@pytest.mark.parametrize("name", ["other", "t", ""])
@pytest.mark.some(1)
def test_many_partitions_whose_elr_is_cleared_often(tmp_path: Path, name: str) -> None:
    def batches(count: int) -> tuple[bytes, ...]:
        partitions = [partition(at) for at in range(count)]
        clears = [record("ClearElrRecord", topic_name=name) for _ in range(count)]
        return batch(0, TOPIC, *partitions), batch(1 + count, *clears)

    history = linear_history_of(tmp_path, batches)
    expected = 1 if name == "other" else 2
    assert {len(states) for states in history.partitions.values()} == {expected}


def test_an_elr_is_cleared_wherever_it_came_from(tmp_path: Path) -> None:
    def elr(*brokers: int) -> bytes:
        return change(2, eligible_leader_replicas=brokers)

    clear, clear_other = record("ClearElrRecord", topic_name="t"), record("ClearElrRecord", topic_name="other")
    history = history_of(
        tmp_path,
        batch(0, TOPIC, partition(0), clear, elr(2), clear_other, clear, elr(3), elr(), clear, elr(1)),
        batch(10, record("ClearElrRecord", topic_name=""), elr(2)),
        batch(12, record("RemoveTopicRecord", topic_id=TOPIC_ID), clear),
    )
    told = [one.eligible_leader_replicas for one in history.partition_states("t", 0)]
    assert told == [(3,), (), (2,), (), (3,), (), (1,), (), (2,)]


def test_a_snapshot_named_by_an_epoch_that_no_log_reaches(tmp_path: Path) -> None:
    target = tmp_path / "__cluster_metadata-0"
    target.mkdir()
    for epoch in (2**31 - 1, 2**31, 9_999_999_999):
        (target / f"00000000000000000059-{epoch:010}.checkpoint").write_bytes(batch(0, TOPIC, partition(0)))
    (files,) = find_metadata_logs(find_inputs([target]))
    assert [epoch for _, epoch, _ in files.snapshots] == [2**31 - 1]
    assert [one.raft_epoch for one in read_metadata_log(files).snapshots] == [2**31 - 1]


def test_a_metadata_log_of_messages_shorter_than_any_record(tmp_path: Path) -> None:
    history = history_of(tmp_path, encode_message(Message(0, 1, 0, 1_000, None, b"")))

    assert (history.end_offset, len(history.topics), len(history.brokers)) == (1, 0, 0)
    assert [problem.message for problem in history.problems]


def test_what_every_record_has_that_is_not_known_is_said_once(tmp_path: Path) -> None:
    def newer(number: int) -> bytes:
        value = record("FeatureLevelRecord", name=f"f{number}.version", feature_level=1)
        return value[:-1] + bytes((1, 9, 1, 0))

    history = history_of(tmp_path, batch(0, TOPIC, *map(newer, range(500))), batch(501, b"\x01\x7f\x00"))

    assert [(one.offset, one.records) for one in history.unread] == [(1, 500), (501, 1)]
    first, last = (one.message for one in history.problems)
    assert (
        first == "offset 1: FeatureLevelRecord has tagged field 9, newer than kforensics knows (and 499 more like it)"
    )
    assert "more like it" not in last
    assert len(history.features) == 500
