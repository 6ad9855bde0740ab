"""Keys and values of `__transaction_state`.

The status is 0 Empty, 1 Ongoing, 2 PrepareCommit, 3 PrepareAbort, 4 CompleteCommit, 5 CompleteAbort, 6 Dead, 7
PrepareEpochFence.
(Kafka: TransactionLogKey.json, TransactionLogValue.json, 0.11 to 4.4)
"""

from kforensics.formats.messages.frame import CoordinatorRecord, CoordinatorTables, parse_coordinator_record
from kforensics.formats.messages.schema import Array, Scalar, field, message, struct

INT16, INT32, INT64, STRING = Scalar.INT16, Scalar.INT32, Scalar.INT64, Scalar.STRING

TRANSACTION_LOG_KEY = message("TransactionLogKey", field("transactional_id", STRING))
TRANSACTION_LOG_VALUE = message(
    "TransactionLogValue",
    field("producer_id", INT64),
    field("previous_producer_id", INT64, "1+", tag=0, default=-1),
    field("next_producer_id", INT64, "1+", tag=1, default=-1),
    field("producer_epoch", INT16),
    field("next_producer_epoch", INT16, "1+", tag=3, default=-1),
    field("transaction_timeout_ms", INT32),
    field("transaction_status", Scalar.INT8),
    field(
        "transaction_partitions",
        Array(struct(field("topic", STRING), field("partition_ids", Array(INT32)))),
        nullable=True,
    ),
    field("transaction_last_update_timestamp_ms", INT64),
    field("transaction_start_timestamp_ms", INT64),
    field("client_transaction_version", INT16, "1+", tag=2, default=0),
    valid="0-1",
    flexible="1+",
)

TXN_TABLES = CoordinatorTables(keys={0: TRANSACTION_LOG_KEY}, values={0: TRANSACTION_LOG_VALUE})


def parse_txn_record(key: bytes | None, value: bytes | None) -> CoordinatorRecord:
    """Decode a record of `__transaction_state` (`TransactionLogKey`, `TransactionLogValue`)."""
    return parse_coordinator_record(key, value, TXN_TABLES)
