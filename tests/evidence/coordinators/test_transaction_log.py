"""States of made logs of `__transaction_state`: versions, tombstones, and what can't be decoded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.evidence.coordinators.transaction_log import read_transaction_log
from kforensics.formats.messages.coordinators import TXN_TABLES
from kforensics.units import TopicPartition
from tests.builders.coordinators import NOW, batch, write_log
from tests.builders.messages import encode_coordinator_record

VALUE = {
    "producer_id": 7,
    "previous_producer_id": 6,
    "next_producer_id": -1,
    "producer_epoch": 3,
    "next_producer_epoch": -1,
    "transaction_timeout_ms": 60_000,
    "transaction_status": 1,
    "transaction_partitions": [{"topic": "orders", "partition_ids": [0, 2]}],
    "transaction_last_update_timestamp_ms": NOW,
    "transaction_start_timestamp_ms": NOW - 5,
    "client_transaction_version": 2,
}


def state(name, version=0, **fields):
    return encode_coordinator_record(TXN_TABLES, 0, {"transactional_id": name}, version, {**VALUE, **fields})


def removed(name):
    return encode_coordinator_record(TXN_TABLES, 0, {"transactional_id": name})


def log_of(tmp_path, *records):
    content = b"".join(batch(at, [one], time_ms=NOW + at) for at, one in enumerate(records))
    return write_log(tmp_path, "__transaction_state-0", (0, content))


@pytest.mark.parametrize(("version", "previous", "client"), [(0, -1, 0), (1, 6, 2)])
def test_every_version_is_read(tmp_path, version, previous, client):
    (found,) = read_transaction_log(log_of(tmp_path, state("a", version))).states

    assert (found.producer_id, found.previous_producer_id, found.client_version) == (7, previous, client)
    assert found.partitions == (TopicPartition("orders", 0), TopicPartition("orders", 2))
    assert (found.status, found.timeout_ms, found.started_ms) == (1, 60_000, NOW - 5)


def test_the_newest_state_of_each_id_counts(tmp_path):
    place = log_of(tmp_path, state("a"), state("b"), state("a", transaction_status=4), removed("b"))

    found = read_transaction_log(place, history_of={"a"})

    assert [(one.transactional_id, one.status, one.is_removed) for one in found.states] == [
        ("a", 4, False),
        ("b", -1, True),
    ]
    assert [one.status for one in found.history] == [1, 4]
    assert found.newest_ms == NOW + 3
    assert [one.status for one in read_transaction_log(place, until_ms=NOW + 1).states] == [1, 1]


@given(records=st.lists(st.tuples(st.integers(0, 3), st.binary(max_size=12), st.none() | st.binary(max_size=30))))
def test_bytes_that_mean_nothing_are_skipped(tmp_path_factory, records):
    made = [(kind.to_bytes(2) + key, value) for kind, key, value in records]
    content = batch(0, [*made, state("sound")])

    found = read_transaction_log(write_log(tmp_path_factory.mktemp("log"), "__transaction_state-0", (0, content)))

    assert found.states[-1].transactional_id == "sound"
    assert found.skipped + len(found.states) <= len(records) + 1
    assert found.end == len(records) + 1
