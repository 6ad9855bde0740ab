"""Keys and values of `__share_group_state` (KIP-932).

(Kafka: ShareSnapshotKey.json, ShareSnapshotValue.json, ShareUpdateKey.json, ShareUpdateValue.json, 4.0 to 4.4)
"""

from kforensics.formats.messages.frame import CoordinatorRecord, CoordinatorTables, parse_coordinator_record
from kforensics.formats.messages.schema import Array, Scalar, field, message, struct

INT8, INT16, INT32, INT64, STRING = Scalar.INT8, Scalar.INT16, Scalar.INT32, Scalar.INT64, Scalar.STRING

_PARTITION_KEY = (field("group_id", STRING), field("topic_id", Scalar.UUID), field("partition", INT32))
_STATE_BATCHES = field(
    "state_batches",
    Array(
        struct(
            field("first_offset", INT64),
            field("last_offset", INT64),
            field("delivery_state", INT8),
            field("delivery_count", INT16),
        )
    ),
)
_DELIVERY_COMPLETE_COUNT = field("delivery_complete_count", INT32, tag=0, default=-1)

SHARE_SNAPSHOT_KEY = message("ShareSnapshotKey", *_PARTITION_KEY)
SHARE_SNAPSHOT_VALUE = message(
    "ShareSnapshotValue",
    field("snapshot_epoch", INT32),
    field("state_epoch", INT32),
    field("leader_epoch", INT32),
    field("start_offset", INT64),
    _DELIVERY_COMPLETE_COUNT,
    field("create_timestamp", INT64),
    field("write_timestamp", INT64),
    _STATE_BATCHES,
    flexible="0+",
)
SHARE_UPDATE_KEY = message("ShareUpdateKey", *_PARTITION_KEY)
SHARE_UPDATE_VALUE = message(
    "ShareUpdateValue",
    field("snapshot_epoch", INT32),
    field("leader_epoch", INT32),
    field("start_offset", INT64),
    _DELIVERY_COMPLETE_COUNT,
    _STATE_BATCHES,
    flexible="0+",
)

SHARE_TABLES = CoordinatorTables(
    keys={0: SHARE_SNAPSHOT_KEY, 1: SHARE_UPDATE_KEY}, values={0: SHARE_SNAPSHOT_VALUE, 1: SHARE_UPDATE_VALUE}
)


def parse_share_record(key: bytes | None, value: bytes | None) -> CoordinatorRecord:
    """Decode a record of `__share_group_state` (KIP-932)."""
    return parse_coordinator_record(key, value, SHARE_TABLES)
