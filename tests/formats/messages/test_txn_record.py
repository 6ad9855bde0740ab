"""Records of `__transaction_state`."""

import pytest

from kforensics.formats.messages.coordinators import TXN_TABLES, parse_txn_record
from kforensics.formats.messages.schema import Decoded
from tests.builders.messages import encode_coordinator_record


@pytest.mark.parametrize("version", [0, 1])
def test_round_trip(version: int) -> None:
    fields = {
        "producer_id": 3,
        "producer_epoch": 1,
        "transaction_timeout_ms": 60_000,
        "transaction_status": 1,
        "transaction_partitions": ({"topic": "tx", "partition_ids": (1, 0)},),
        "transaction_last_update_timestamp_ms": 5,
        "transaction_start_timestamp_ms": -1,
    }
    record = parse_txn_record(
        *encode_coordinator_record(TXN_TABLES, 0, {"transactional_id": "billing"}, version, fields)
    )

    assert Decoded("TransactionLogKey", 0, {"transactional_id": "billing"}) == record.key
    assert isinstance(record.value, Decoded)
    assert fields.items() <= record.value.fields.items()
    assert ("previous_producer_id" in record.value.fields) == (version == 1)
    assert record.value.fields["transaction_status"] == 1  # Ongoing


def test_transaction_without_partitions() -> None:
    record = parse_txn_record(*encode_coordinator_record(TXN_TABLES, 0, {}, 1, {"transaction_partitions": None}))

    assert isinstance(record.value, Decoded)
    assert record.value.fields["transaction_partitions"] is None
