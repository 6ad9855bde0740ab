"""Records of the consumer groups of KIP-848 in `__consumer_offsets`, types 3 to 8 and 16.

(Kafka: group-coordinator/src/main/resources/common/message/ConsumerGroup*.json, 3.5 to 4.4)
"""

from kforensics.formats.messages.frame import CoordinatorTables
from kforensics.formats.messages.schema import Array, Scalar, field, message, struct, zero

INT8, INT32, INT64, UUID, STRING = Scalar.INT8, Scalar.INT32, Scalar.INT64, Scalar.UUID, Scalar.STRING

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
