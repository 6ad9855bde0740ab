"""Keys and values of the topics of coordinators: offset commits and groups of all kinds, transactions, share groups, and what members of classic groups say.

`__consumer_offsets` (Kafka: OffsetCommitKey.json, OffsetCommitValue.json, GroupMetadataKey.json, GroupMetadataValue.json, 0.8.2 to 4.4, and those of group-coordinator/src/main/resources/common/message/)
"""

from struct import Struct as Layout

from kforensics.formats.messages.frame import CoordinatorRecord, CoordinatorTables, parse_coordinator_record
from kforensics.formats.messages.reader import decode_message
from kforensics.formats.messages.schema import Array, Decoded, Message, Scalar, Undecoded, field, message, struct, zero

INT8, INT16, INT32, INT64 = Scalar.INT8, Scalar.INT16, Scalar.INT32, Scalar.INT64
UUID, STRING, BYTES = Scalar.UUID, Scalar.STRING, Scalar.BYTES

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

_GROUP = field("group_id", STRING)
_MEMBER = (_GROUP, field("member_id", STRING))

_ASSIGNED = Array(
    struct(
        field("topic_id", UUID),
        field("partitions", Array(INT32)),
        field("assignment_epochs", Array(INT32), tag=0, nullable=True, default=()),
    )
)
_CLASSIC_MEMBER = struct(
    field("session_timeout_ms", INT32),
    field("supported_protocols", Array(struct(field("name", STRING), field("metadata", Scalar.BYTES)))),
)
CONSUMER_GROUP_TABLES = CoordinatorTables(
    keys={
        3: message("ConsumerGroupMetadataKey", _GROUP),
        4: message("ConsumerGroupPartitionMetadataKey", _GROUP),
        5: message("ConsumerGroupMemberMetadataKey", *_MEMBER),
        6: message("ConsumerGroupTargetAssignmentMetadataKey", _GROUP),
        7: message("ConsumerGroupTargetAssignmentMemberKey", *_MEMBER),
        8: message("ConsumerGroupCurrentMemberAssignmentKey", *_MEMBER),
        16: message("ConsumerGroupRegularExpressionKey", _GROUP, field("regular_expression", STRING)),
    },
    values={
        3: message(
            "ConsumerGroupMetadataValue",
            field("epoch", INT32),
            field("metadata_hash", INT64, tag=0, default=0),
            flexible="0+",
        ),
        4: message(
            "ConsumerGroupPartitionMetadataValue",
            field(
                "topics",
                Array(
                    struct(
                        field("topic_id", UUID),
                        field("topic_name", STRING),
                        field("num_partitions", INT32),
                        field(
                            "partition_metadata",
                            Array(struct(field("partition", INT32), field("racks", Array(STRING)))),
                        ),
                    )
                ),
            ),
            flexible="0+",
        ),
        5: message(
            "ConsumerGroupMemberMetadataValue",
            field("instance_id", STRING, nullable=True),
            field("rack_id", STRING, nullable=True),
            field("client_id", STRING),
            field("client_host", STRING),
            field("subscribed_topic_names", Array(STRING)),
            field("subscribed_topic_regex", STRING, nullable=True),
            field("rebalance_timeout_ms", INT32, default=-1),
            field("server_assignor", STRING, nullable=True),
            # A member of the new protocol writes null: what is not written is an empty struct.
            field(
                "classic_member_metadata",
                _CLASSIC_MEMBER,
                tag=0,
                nullable=True,
                default=zero(_CLASSIC_MEMBER),
            ),
            flexible="0+",
        ),
        6: message(
            "ConsumerGroupTargetAssignmentMetadataValue",
            field("assignment_epoch", INT32),
            field("assignment_timestamp", INT64, tag=0, default=0),
            flexible="0+",
        ),
        7: message(
            "ConsumerGroupTargetAssignmentMemberValue",
            field("topic_partitions", Array(struct(field("topic_id", UUID), field("partitions", Array(INT32))))),
            flexible="0+",
        ),
        8: message(
            "ConsumerGroupCurrentMemberAssignmentValue",
            field("member_epoch", INT32),
            field("previous_member_epoch", INT32),
            field("state", INT8),
            field("assigned_partitions", _ASSIGNED),
            field("partitions_pending_revocation", _ASSIGNED),
            flexible="0+",
        ),
        16: message(
            "ConsumerGroupRegularExpressionValue",
            field("topics", Array(STRING)),
            field("version", INT64),
            field("timestamp", INT64),
            flexible="0+",
        ),
    },
)
"""Records of the consumer groups of KIP-848, types 3 to 8 and 16 (`ConsumerGroup*.json`, 3.5 to 4.4)."""

_TOPIC_PARTITIONS = Array(struct(field("topic_id", UUID), field("partitions", Array(INT32))))
_NAMED_TOPIC = (field("topic_id", UUID), field("topic_name", STRING))
_NAMED_TOPIC_PARTITIONS = Array(struct(*_NAMED_TOPIC, field("partitions", Array(INT32))))
SHARE_GROUP_TABLES = CoordinatorTables(
    keys={
        9: message("ShareGroupPartitionMetadataKey", _GROUP),
        10: message("ShareGroupMemberMetadataKey", *_MEMBER),
        11: message("ShareGroupMetadataKey", _GROUP),
        12: message("ShareGroupTargetAssignmentMetadataKey", _GROUP),
        13: message("ShareGroupTargetAssignmentMemberKey", *_MEMBER),
        14: message("ShareGroupCurrentMemberAssignmentKey", *_MEMBER),
        15: message("ShareGroupStatePartitionMetadataKey", _GROUP),
    },
    values={
        10: message(
            "ShareGroupMemberMetadataValue",
            field("rack_id", STRING, nullable=True),
            field("client_id", STRING),
            field("client_host", STRING),
            field("subscribed_topic_names", Array(STRING)),
            flexible="0+",
        ),
        11: message("ShareGroupMetadataValue", field("epoch", INT32), field("metadata_hash", INT64), flexible="0+"),
        12: message(
            "ShareGroupTargetAssignmentMetadataValue",
            field("assignment_epoch", INT32),
            field("assignment_timestamp", INT64, tag=0, default=0),
            flexible="0+",
        ),
        13: message(
            "ShareGroupTargetAssignmentMemberValue", field("topic_partitions", _TOPIC_PARTITIONS), flexible="0+"
        ),
        14: message(
            "ShareGroupCurrentMemberAssignmentValue",
            field("member_epoch", INT32),
            field("previous_member_epoch", INT32),
            field("state", INT8),
            field("assigned_partitions", _TOPIC_PARTITIONS),
            flexible="0+",
        ),
        15: message(
            "ShareGroupStatePartitionMetadataValue",
            field("initializing_topics", _NAMED_TOPIC_PARTITIONS),
            field("initialized_topics", _NAMED_TOPIC_PARTITIONS),
            field("deleting_topics", Array(struct(*_NAMED_TOPIC))),
            flexible="0+",
        ),
    },
)
"""Records of the share groups of KIP-932, types 9 to 15 (`ShareGroup*.json`, 3.9 to 4.4; type 9 in 4.0 only, its value known by name)."""

_KEY_VALUE = struct(field("key", STRING), field("value", STRING))
_TASKS = Array(
    struct(
        field("subtopology_id", STRING),
        field("partitions", Array(INT32)),
        field("assignment_epochs", Array(INT32), tag=0, nullable=True, default=()),
    )
)
_TASK_FIELDS = (field("active_tasks", _TASKS), field("standby_tasks", _TASKS), field("warmup_tasks", _TASKS))
_TOPIC_INFO = Array(
    struct(
        field("name", STRING),
        field("partitions", INT32),
        field("replication_factor", INT16),
        field("topic_configs", Array(_KEY_VALUE)),
    )
)
_COPARTITION_GROUP = struct(
    field("source_topics", Array(INT16)),
    field("source_topic_regex", Array(INT16)),
    field("repartition_source_topics", Array(INT16)),
)
STREAMS_GROUP_TABLES = CoordinatorTables(
    keys={
        17: message("StreamsGroupMetadataKey", _GROUP),
        19: message("StreamsGroupMemberMetadataKey", *_MEMBER),
        20: message("StreamsGroupTargetAssignmentMetadataKey", _GROUP),
        21: message("StreamsGroupTargetAssignmentMemberKey", *_MEMBER),
        22: message("StreamsGroupCurrentMemberAssignmentKey", *_MEMBER),
        23: message("StreamsGroupTopologyKey", _GROUP),
    },
    values={
        17: message(
            "StreamsGroupMetadataValue",
            field("epoch", INT32),
            field("metadata_hash", INT64),
            field("validated_topology_epoch", INT32, tag=0, default=-1),
            field("last_assignment_configs", Array(_KEY_VALUE), tag=1, nullable=True, default=()),
            field("stored_description_topology_epoch", INT32, tag=2, default=-1),
            field("failed_description_topology_epoch", INT32, tag=3, default=-1),
            flexible="0+",
        ),
        19: message(
            "StreamsGroupMemberMetadataValue",
            field("instance_id", STRING, nullable=True),
            field("rack_id", STRING, nullable=True),
            field("client_id", STRING),
            field("client_host", STRING),
            field("rebalance_timeout_ms", INT32, default=-1),
            field("topology_epoch", INT32),
            field("process_id", STRING),
            field("user_endpoint", struct(field("host", STRING), field("port", Scalar.UINT16)), nullable=True),
            field("client_tags", Array(_KEY_VALUE)),
            flexible="0+",
        ),
        20: message(
            "StreamsGroupTargetAssignmentMetadataValue",
            field("assignment_epoch", INT32),
            field("assignment_timestamp", INT64, tag=0, default=0),
            flexible="0+",
        ),
        21: message("StreamsGroupTargetAssignmentMemberValue", *_TASK_FIELDS, flexible="0+"),
        22: message(
            "StreamsGroupCurrentMemberAssignmentValue",
            field("member_epoch", INT32),
            field("previous_member_epoch", INT32),
            field("state", INT8),
            *_TASK_FIELDS,
            field("active_tasks_pending_revocation", _TASKS),
            field("standby_tasks_pending_revocation", _TASKS),
            field("warmup_tasks_pending_revocation", _TASKS),
            flexible="0+",
        ),
        23: message(
            "StreamsGroupTopologyValue",
            field("epoch", INT32),
            field(
                "subtopologies",
                Array(
                    struct(
                        field("subtopology_id", STRING),
                        field("source_topics", Array(STRING)),
                        field("source_topic_regex", Array(STRING)),
                        field("state_changelog_topics", _TOPIC_INFO),
                        field("repartition_sink_topics", Array(STRING)),
                        field("repartition_source_topics", _TOPIC_INFO),
                        field("copartition_groups", Array(_COPARTITION_GROUP)),
                    )
                ),
            ),
            flexible="0+",
        ),
    },
)
"""Records of the streams groups of KIP-1071, types 17 and 19 to 23 (`StreamsGroup*.json`, 4.1 to 4.4)."""

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


TRANSACTION_LOG_KEY = message("TransactionLogKey", field("transactional_id", STRING))
# The status is 0 Empty, 1 Ongoing, 2 PrepareCommit, 3 PrepareAbort, 4 CompleteCommit, 5 CompleteAbort, 6 Dead, 7 PrepareEpochFence.
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


# ShareSnapshotKey.json, ShareSnapshotValue.json, ShareUpdateKey.json, ShareUpdateValue.json (KIP-932, 4.0 to 4.4).
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


CONSUMER_PROTOCOL_TYPE = "consumer"
"""The `protocol_type` of a group whose members speak this protocol."""

_VERSION = Layout(">h")
_NAMED_PARTITIONS = Array(struct(field("topic", STRING), field("partitions", Array(INT32))))

# Of these blobs a newer version reads as the newest known one, as in Kafka.
SUBSCRIPTION = message(
    "ConsumerProtocolSubscription",
    field("topics", Array(STRING)),
    field("user_data", BYTES, nullable=True),
    field("owned_partitions", _NAMED_PARTITIONS, "1+"),
    field("generation_id", INT32, "2+", default=-1),
    field("rack_id", STRING, "3+", nullable=True),
    valid="0-3",
)
ASSIGNMENT = message(
    "ConsumerProtocolAssignment",
    field("assigned_partitions", _NAMED_PARTITIONS),
    field("user_data", BYTES, nullable=True),
    valid="0-3",
)


def parse_subscription(blob: bytes) -> Decoded | Undecoded:
    """Decode the subscription of a member of a classic group, a version above the newest known one as that, as Kafka does (`ConsumerProtocolSubscription`)."""
    return _parse_blob(SUBSCRIPTION, blob)


def parse_assignment(blob: bytes) -> Decoded | Undecoded:
    """Decode the assignment of a member of a classic group (`ConsumerProtocolAssignment`)."""
    return _parse_blob(ASSIGNMENT, blob)


def _parse_blob(table: Message, blob: bytes) -> Decoded | Undecoded:
    if len(blob) < _VERSION.size:
        return Undecoded(f"{len(blob)} bytes are too few for a version", table.name)
    version = _VERSION.unpack_from(blob)[0]
    return decode_message(table, min(version, table.versions[-1]), blob, _VERSION.size)
