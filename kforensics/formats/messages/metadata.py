"""Records of the KRaft metadata log (`__cluster_metadata`, 2.8: `@metadata`), its snapshots and `bootstrap.checkpoint`.

The value holds frame and message (`frame.py`); there is no key. The preview in 2.8 wrote most of them in the
old, not flexible encoding and some with
other fields: they have their own tables. (Kafka: metadata/src/main/resources/common/metadata/*.json, 2.8 to 4.4)
"""

from collections.abc import Mapping
from typing import Any

from kforensics.formats.messages.frame import FRAME_VERSION, PREVIEW_FRAME_VERSION, encode_framed, parse_framed
from kforensics.formats.messages.schema import (
    Array,
    Decoded,
    Message,
    Scalar,
    Undecoded,
    by_api_key,
    field,
    message,
    struct,
)

BOOL, INT8, INT16, UINT16 = Scalar.BOOL, Scalar.INT8, Scalar.INT16, Scalar.UINT16
INT32, INT64, FLOAT64 = Scalar.INT32, Scalar.INT64, Scalar.FLOAT64
UUID, STRING, BYTES = Scalar.UUID, Scalar.STRING, Scalar.BYTES

NO_LEADER = -1
LEADER_UNCHANGED = -2
NO_CHANGE = -1
"""The value of the leader recovery state in a partition change that does not change it."""
RECOVERED, RECOVERING = 0, 1

_ENDPOINTS = Array(
    struct(field("name", STRING), field("host", STRING), field("port", UINT16), field("security_protocol", INT16))
)
_FEATURES = Array(
    struct(field("name", STRING), field("min_supported_version", INT16), field("max_supported_version", INT16))
)
_QUOTA_ENTITY = Array(struct(field("entity_type", STRING), field("entity_name", STRING, nullable=True)))

REGISTER_BROKER = message(
    "RegisterBrokerRecord",
    field("broker_id", INT32),
    field("is_migrating_zk_broker", BOOL, "2+", default=False),
    field("incarnation_id", UUID),
    field("broker_epoch", INT64),
    field("end_points", _ENDPOINTS),
    field("features", _FEATURES),
    field("rack", STRING, nullable=True),
    field("fenced", BOOL, default=True),
    field("in_controlled_shutdown", BOOL, "1+", default=False),
    field("log_dirs", Array(UUID), "3+", tag=0),
    field("cordoned_log_dirs", Array(UUID), "4+", tag=1, nullable=True),
    valid="0-4",
    flexible="0+",
    api_key=0,
)
UNREGISTER_BROKER = message(
    "UnregisterBrokerRecord", field("broker_id", INT32), field("broker_epoch", INT64), flexible="0+", api_key=1
)
TOPIC = message("TopicRecord", field("name", STRING), field("topic_id", UUID), flexible="0+", api_key=2)
PARTITION = message(
    "PartitionRecord",
    field("partition_id", INT32, default=-1),
    field("topic_id", UUID),
    field("replicas", Array(INT32)),
    field("isr", Array(INT32)),
    field("removing_replicas", Array(INT32)),
    field("adding_replicas", Array(INT32)),
    field("leader", INT32, default=NO_LEADER),
    field("leader_recovery_state", INT8, tag=0),
    field("leader_epoch", INT32, default=-1),
    field("partition_epoch", INT32, default=-1),
    field("directories", Array(UUID), "1+"),
    field("eligible_leader_replicas", Array(INT32), "2+", tag=1, nullable=True),
    field("last_known_elr", Array(INT32), "2+", tag=2, nullable=True),
    valid="0-2",
    flexible="0+",
    api_key=3,
)
CONFIG = message(
    "ConfigRecord",
    field("resource_type", INT8),
    field("resource_name", STRING),
    field("name", STRING),
    field("value", STRING, nullable=True),
    flexible="0+",
    api_key=4,
)
PARTITION_CHANGE = message(
    "PartitionChangeRecord",
    field("partition_id", INT32, default=-1),
    field("topic_id", UUID),
    field("isr", Array(INT32), tag=0, nullable=True),
    field("leader", INT32, tag=1, default=LEADER_UNCHANGED),
    field("replicas", Array(INT32), tag=2, nullable=True),
    field("removing_replicas", Array(INT32), tag=3, nullable=True),
    field("adding_replicas", Array(INT32), tag=4, nullable=True),
    field("leader_recovery_state", INT8, tag=5, default=NO_CHANGE),
    field("directories", Array(UUID), "1+", tag=8, nullable=True),
    field("eligible_leader_replicas", Array(INT32), "2+", tag=6, nullable=True),
    field("last_known_elr", Array(INT32), "2+", tag=7, nullable=True),
    valid="0-2",
    flexible="0+",
    api_key=5,
)
FENCE_BROKER = message("FenceBrokerRecord", field("id", INT32), field("epoch", INT64), flexible="0+", api_key=7)
UNFENCE_BROKER = message("UnfenceBrokerRecord", field("id", INT32), field("epoch", INT64), flexible="0+", api_key=8)
REMOVE_TOPIC = message("RemoveTopicRecord", field("topic_id", UUID), flexible="0+", api_key=9)
DELEGATION_TOKEN = message(
    "DelegationTokenRecord",
    field("owner", STRING),
    field("requester", STRING),
    field("renewers", Array(STRING)),
    field("issue_timestamp", INT64),
    field("max_timestamp", INT64),
    field("expiration_timestamp", INT64),
    field("token_id", STRING),
    flexible="0+",
    api_key=10,
)
USER_SCRAM_CREDENTIAL = message(
    "UserScramCredentialRecord",
    field("name", STRING),
    field("mechanism", INT8),
    field("salt", BYTES),
    field("stored_key", BYTES),
    field("server_key", BYTES),
    field("iterations", INT32),
    flexible="0+",
    api_key=11,
)
FEATURE_LEVEL = message(
    "FeatureLevelRecord", field("name", STRING), field("feature_level", INT16), flexible="0+", api_key=12
)
CLIENT_QUOTA = message(
    "ClientQuotaRecord",
    field("entity", _QUOTA_ENTITY),
    field("key", STRING),
    field("value", FLOAT64),
    field("remove", BOOL),
    flexible="0+",
    api_key=14,
)
PRODUCER_IDS = message(
    "ProducerIdsRecord",
    field("broker_id", INT32),
    field("broker_epoch", INT64, default=-1),
    field("next_producer_id", INT64),
    flexible="0+",
    api_key=15,
)
REMOVE_FEATURE_LEVEL = message("RemoveFeatureLevelRecord", field("name", STRING), flexible="0+", api_key=16)
BROKER_REGISTRATION_CHANGE = message(
    "BrokerRegistrationChangeRecord",
    field("broker_id", INT32),
    field("broker_epoch", INT64),
    field("fenced", INT8, tag=0),
    field("in_controlled_shutdown", INT8, "1+", tag=1),
    field("log_dirs", Array(UUID), "2+", tag=2),
    field("cordoned_log_dirs", Array(UUID), "3+", tag=3, nullable=True),
    valid="0-3",
    flexible="0+",
    api_key=17,
)
ACCESS_CONTROL_ENTRY = message(
    "AccessControlEntryRecord",
    field("id", UUID),
    field("resource_type", INT8),
    field("resource_name", STRING),
    field("pattern_type", INT8),
    field("principal", STRING),
    field("host", STRING),
    field("operation", INT8),
    field("permission_type", INT8),
    flexible="0+",
    api_key=18,
)
REMOVE_ACCESS_CONTROL_ENTRY = message("RemoveAccessControlEntryRecord", field("id", UUID), flexible="0+", api_key=19)
NO_OP = message("NoOpRecord", flexible="0+", api_key=20)
ZK_MIGRATION_STATE = message("ZkMigrationStateRecord", field("zk_migration_state", INT8), flexible="0+", api_key=21)
REMOVE_USER_SCRAM_CREDENTIAL = message(
    "RemoveUserScramCredentialRecord", field("name", STRING), field("mechanism", INT8), flexible="0+", api_key=22
)
BEGIN_TRANSACTION = message(
    "BeginTransactionRecord", field("name", STRING, tag=0, nullable=True), flexible="0+", api_key=23
)
END_TRANSACTION = message("EndTransactionRecord", flexible="0+", api_key=24)
ABORT_TRANSACTION = message(
    "AbortTransactionRecord", field("reason", STRING, tag=0, nullable=True), flexible="0+", api_key=25
)
REMOVE_DELEGATION_TOKEN = message("RemoveDelegationTokenRecord", field("token_id", STRING), flexible="0+", api_key=26)
REGISTER_CONTROLLER = message(
    "RegisterControllerRecord",
    field("controller_id", INT32),
    field("incarnation_id", UUID),
    field("zk_migration_ready", BOOL),
    field("end_points", _ENDPOINTS),
    field("features", _FEATURES),
    flexible="0+",
    api_key=27,
)
CLEAR_ELR = message("ClearElrRecord", field("topic_name", STRING), flexible="0+", api_key=28)
UNREGISTER_CONTROLLER = message("UnregisterControllerRecord", field("controller_id", INT32), flexible="0+", api_key=29)

METADATA_TABLES = by_api_key(one for one in tuple(globals().values()) if isinstance(one, Message))
"""Every record since 3.0, all that is declared above, by api key."""

PREVIEW_TABLES = by_api_key(
    (
        message(
            "RegisterBrokerRecord",
            field("broker_id", INT32),
            field("incarnation_id", UUID),
            field("broker_epoch", INT64),
            field("end_points", _ENDPOINTS),
            field("features", _FEATURES),
            field("rack", STRING, nullable=True),
            api_key=0,
        ),
        message("UnregisterBrokerRecord", field("broker_id", INT32), field("broker_epoch", INT64), api_key=1),
        message("TopicRecord", field("name", STRING), field("topic_id", UUID), api_key=2),
        message(
            "PartitionRecord",
            field("partition_id", INT32, default=-1),
            field("topic_id", UUID),
            field("replicas", Array(INT32)),
            field("isr", Array(INT32)),
            field("removing_replicas", Array(INT32), nullable=True),
            field("adding_replicas", Array(INT32), nullable=True),
            field("leader", INT32, default=NO_LEADER),
            field("leader_epoch", INT32, default=-1),
            field("partition_epoch", INT32, default=-1),
            api_key=3,
        ),
        message(
            "ConfigRecord",
            field("resource_type", INT8),
            field("resource_name", STRING),
            field("name", STRING),
            field("value", STRING, nullable=True),
            api_key=4,
        ),
        message(
            "AccessControlRecord",
            field("resource_type", INT8),
            field("resource_name", STRING, nullable=True),
            field("pattern_type", INT8),
            field("principal", STRING),
            field("host", STRING),
            field("operation", INT8),
            field("permission_type", INT8),
            api_key=6,
        ),
        message("FenceBrokerRecord", field("id", INT32), field("epoch", INT64), api_key=7),
        message("UnfenceBrokerRecord", field("id", INT32), field("epoch", INT64), api_key=8),
        message("RemoveTopicRecord", field("topic_id", UUID), api_key=9),
        message(
            "DelegationTokenRecord",
            field("owner", STRING),
            field("renewers", Array(STRING)),
            field("issue_timestamp", INT64),
            field("max_timestamp", INT64),
            field("expiration_timestamp", INT64),
            field("token_id", STRING),
            api_key=10,
        ),
        message(
            "UserScramCredentialRecord",
            field("name", STRING),
            field(
                "credential_infos",
                Array(
                    struct(
                        field("mechanism", INT8),
                        field("salt", BYTES),
                        field("salted_password", BYTES),
                        field("iterations", INT32),
                    )
                ),
            ),
            api_key=11,
        ),
        message(
            "FeatureLevelRecord",
            field("name", STRING),
            field("min_feature_level", INT16),
            field("max_feature_level", INT16),
            api_key=12,
        ),
        message(
            "QuotaRecord",
            field("entity", _QUOTA_ENTITY),
            field("key", STRING),
            field("value", FLOAT64),
            field("remove", BOOL),
            api_key=14,
        ),
        message("RemoveFeatureLevelRecord", field("name", STRING), api_key=16),
    )
)
"""The records that the 2.8 preview wrote differently; its partition changes were flexible already."""


def parse_metadata_record(value: bytes) -> Decoded | Undecoded:
    """Decode a record of the metadata log, of a metadata snapshot or of `bootstrap.checkpoint` (`MetadataRecordSerde`)."""
    return parse_framed(value, METADATA_TABLES, PREVIEW_TABLES)


def encode_metadata_record(
    api_key: int, version: int, fields: Mapping[str, Any], *, frame_version: int = FRAME_VERSION
) -> bytes:
    """Encode the value of a record of the metadata log (`MetadataRecordSerde`).

    Args:
        frame_version: 0 for the 2.8 preview, which has some messages of its own; 1 since 3.0.

    Raises:
        KeyError: no record has this api key.
        ValueError: the message does not have this version.
    """
    preview = PREVIEW_TABLES.get(api_key) if frame_version == PREVIEW_FRAME_VERSION else None
    return encode_framed(preview or METADATA_TABLES[api_key], version, fields, frame_version=frame_version)
