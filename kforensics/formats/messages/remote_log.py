"""Records of `__remote_log_metadata` (KIP-405): framed as in the metadata log, with api keys of their own.

(Kafka: storage/src/main/resources/message/*.json, 3.0 to 4.4)
"""

from kforensics.formats.messages.frame import parse_framed
from kforensics.formats.messages.schema import Array, Decoded, Scalar, Undecoded, by_api_key, field, message, struct

INT8, INT32, INT64, UUID = Scalar.INT8, Scalar.INT32, Scalar.INT64, Scalar.UUID

_TOPIC_ID_PARTITION = field(
    "topic_id_partition", struct(field("name", Scalar.STRING), field("id", UUID), field("partition", INT32))
)
_REMOTE_LOG_SEGMENT_ID = field("remote_log_segment_id", struct(_TOPIC_ID_PARTITION, field("id", UUID)))
_BROKER_AND_TIME = (field("broker_id", INT32), field("event_timestamp_ms", INT64))
_CUSTOM_METADATA = field("custom_metadata", Scalar.BYTES, nullable=True)
_STATE = field("remote_log_segment_state", INT8)
_SEGMENT = (
    field("start_offset", INT64),
    field("end_offset", INT64),
    field("broker_id", INT32),
    field("max_timestamp_ms", INT64),
    field("event_timestamp_ms", INT64),
    field("segment_leader_epochs", Array(struct(field("leader_epoch", INT32), field("offset", INT64)))),
    field("segment_size_in_bytes", INT32),
    _CUSTOM_METADATA,
    _STATE,
    field("txn_index_empty", Scalar.BOOL, tag=0),
)

REMOTE_LOG_SEGMENT = message(
    "RemoteLogSegmentMetadataRecord", _REMOTE_LOG_SEGMENT_ID, *_SEGMENT, flexible="0+", api_key=0
)
REMOTE_LOG_SEGMENT_UPDATE = message(
    "RemoteLogSegmentMetadataUpdateRecord",
    _REMOTE_LOG_SEGMENT_ID,
    *_BROKER_AND_TIME,
    _CUSTOM_METADATA,
    _STATE,
    flexible="0+",
    api_key=1,
)
REMOTE_PARTITION_DELETE = message(
    "RemotePartitionDeleteMetadataRecord",
    _TOPIC_ID_PARTITION,
    *_BROKER_AND_TIME,
    field("remote_partition_delete_state", INT8),
    flexible="0+",
    api_key=2,
)
REMOTE_LOG_SEGMENT_SNAPSHOT = message(
    "RemoteLogSegmentMetadataSnapshotRecord", field("segment_id", UUID), *_SEGMENT, flexible="0+", api_key=3
)

REMOTE_LOG_TABLES = by_api_key(
    (REMOTE_LOG_SEGMENT, REMOTE_LOG_SEGMENT_UPDATE, REMOTE_PARTITION_DELETE, REMOTE_LOG_SEGMENT_SNAPSHOT)
)


def parse_remote_log_record(value: bytes) -> Decoded | Undecoded:
    """Decode a record of `__remote_log_metadata` (KIP-405)."""
    return parse_framed(value, REMOTE_LOG_TABLES, {})
