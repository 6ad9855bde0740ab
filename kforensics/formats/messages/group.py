"""Keys and values of `__consumer_offsets`: offset commits and classic groups; newer groups have tables of their own.

(Kafka: OffsetCommitKey.json, OffsetCommitValue.json, GroupMetadataKey.json, GroupMetadataValue.json, 0.8.2 to 4.4)
"""

from kforensics.formats.messages.consumer_group_tables import CONSUMER_GROUP_TABLES
from kforensics.formats.messages.frame import CoordinatorRecord, CoordinatorTables, parse_coordinator_record
from kforensics.formats.messages.reader import decode_message
from kforensics.formats.messages.schema import Array, Decoded, Scalar, Undecoded, field, message, struct
from kforensics.formats.messages.share_group_tables import SHARE_GROUP_TABLES
from kforensics.formats.messages.streams_group_tables import STREAMS_GROUP_TABLES

INT32, INT64, STRING, BYTES = Scalar.INT32, Scalar.INT64, Scalar.STRING, Scalar.BYTES

_COMMIT_KEY = (field("group", STRING), field("topic", STRING), field("partition", INT32))

LEGACY_OFFSET_COMMIT_KEY = message("LegacyOffsetCommitKey", *_COMMIT_KEY)
OFFSET_COMMIT_KEY = message("OffsetCommitKey", *_COMMIT_KEY)
LEGACY_OFFSET_COMMIT_VALUE = message(
    "LegacyOffsetCommitValue", field("offset", INT64), field("metadata", STRING), field("commit_timestamp", INT64)
)
OFFSET_COMMIT_VALUE = message(
    "OffsetCommitValue",
    field("offset", INT64),
    field("leader_epoch", INT32, "3+", default=-1),
    field("metadata", STRING),
    field("commit_timestamp", INT64),
    field("expire_timestamp", INT64, "1", default=-1),
    field("topic_id", Scalar.UUID, "4+", tag=0),
    valid="0-4",
    flexible="4+",
)
GROUP_METADATA_KEY = message("GroupMetadataKey", field("group", STRING))
GROUP_METADATA_VALUE = message(
    "GroupMetadataValue",
    field("protocol_type", STRING),
    field("generation", INT32),
    field("protocol", STRING, nullable=True),
    field("leader", STRING, nullable=True),
    field("current_state_timestamp", INT64, "2+", default=-1),
    field(
        "members",
        Array(
            struct(
                field("member_id", STRING),
                field("group_instance_id", STRING, "3+", nullable=True),
                field("client_id", STRING),
                field("client_host", STRING),
                field("rebalance_timeout", INT32, "1+", default=-1),
                field("session_timeout", INT32),
                field("subscription", BYTES),
                field("assignment", BYTES),
            )
        ),
    ),
    valid="0-4",
    flexible="4+",
)

LEGACY_OFFSET_COMMIT, OFFSET_COMMIT, GROUP_METADATA = 0, 1, 2

GROUP_TABLES = CoordinatorTables(
    keys={
        LEGACY_OFFSET_COMMIT: LEGACY_OFFSET_COMMIT_KEY,
        OFFSET_COMMIT: OFFSET_COMMIT_KEY,
        GROUP_METADATA: GROUP_METADATA_KEY,
        **CONSUMER_GROUP_TABLES.keys,
        **SHARE_GROUP_TABLES.keys,
        **STREAMS_GROUP_TABLES.keys,
    },
    values={
        LEGACY_OFFSET_COMMIT: LEGACY_OFFSET_COMMIT_VALUE,
        OFFSET_COMMIT: OFFSET_COMMIT_VALUE,
        GROUP_METADATA: GROUP_METADATA_VALUE,
        **CONSUMER_GROUP_TABLES.values,
        **SHARE_GROUP_TABLES.values,
        **STREAMS_GROUP_TABLES.values,
    },
)
"""Every record type of `__consumer_offsets`."""


def parse_group_record(key: bytes | None, value: bytes | None) -> CoordinatorRecord:
    """Decode a record of `__consumer_offsets`: an offset commit, or the state of a group of any kind."""
    record = parse_coordinator_record(key, value, GROUP_TABLES)
    if (
        record.key.version == LEGACY_OFFSET_COMMIT
        and isinstance(record.value, Undecoded)
        and record.value.version
        and value
    ):
        # Brokers chose the version of the value without regard to that of the key: both kinds of key name the same
        # thing.
        again = decode_message(OFFSET_COMMIT_VALUE, record.value.version, value, 2)
        if isinstance(again, Decoded):
            return record._replace(value=again)
    return record
