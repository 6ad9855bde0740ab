"""Records of the share groups of KIP-932 in `__consumer_offsets`, types 9 to 15.

(Kafka: group-coordinator/src/main/resources/common/message/ShareGroup*.json, 3.9 to 4.4; type 9 in 4.0 only)
"""

from kforensics.formats.messages.frame import CoordinatorTables
from kforensics.formats.messages.schema import Array, Scalar, field, message, struct

INT8, INT32, INT64, UUID, STRING = Scalar.INT8, Scalar.INT32, Scalar.INT64, Scalar.UUID, Scalar.STRING

_GROUP = field("group_id", STRING)
_MEMBER = (_GROUP, field("member_id", STRING))
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
"""The value of type 9 is known by name only."""
