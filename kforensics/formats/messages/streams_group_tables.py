"""Records of the streams groups of KIP-1071 in `__consumer_offsets`, types 17 and 19 to 23.

(Kafka: group-coordinator/src/main/resources/common/message/StreamsGroup*.json, 4.1 to 4.4)
"""

from kforensics.formats.messages.frame import CoordinatorTables
from kforensics.formats.messages.schema import Array, Scalar, field, message, struct

INT8, INT16, INT32, INT64, STRING = Scalar.INT8, Scalar.INT16, Scalar.INT32, Scalar.INT64, Scalar.STRING

_GROUP = field("group_id", STRING)
_MEMBER = (_GROUP, field("member_id", STRING))
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
