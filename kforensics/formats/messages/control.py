"""Control records: transaction markers and the messages of the KRaft quorum.

    key    := int16 version (0), int16 type
    value  := EndTxnMarker: int16 version, int32 coordinator_epoch                      types 0 and 1
            | a flexible message whose first field, int16 version, is its own version   types 2 to 6

(Kafka: ControlRecordType, EndTransactionMarker 0.11 to 4.4; LeaderChangeMessage, SnapshotHeaderRecord … 2.8 to 4.4;
KRaftVersionRecord, VotersRecord 3.9+)
"""

from collections.abc import Mapping
from enum import StrEnum
from struct import Struct as Layout
from typing import Any, NamedTuple

from kforensics.formats.messages.reader import decode_message, encode_message
from kforensics.formats.messages.schema import (
    Array,
    Decoded,
    Message,
    Scalar,
    Undecoded,
    field,
    message,
    not_known,
    struct,
)

_KEY = Layout(">hh")
_VERSION = Layout(">h")


class ControlType(StrEnum):
    """The type of a control record (`ControlRecordType`)."""

    ABORT = "abort"
    COMMIT = "commit"
    LEADER_CHANGE = "leader-change"
    SNAPSHOT_HEADER = "snapshot-header"
    SNAPSHOT_FOOTER = "snapshot-footer"
    KRAFT_VERSION = "kraft-version"
    KRAFT_VOTERS = "kraft-voters"
    UNKNOWN = "unknown"


class ControlRecord(NamedTuple):
    """A control record."""

    type: ControlType
    value: Decoded | Undecoded


_VERSION_FIELD = field("version", Scalar.INT16)
_VOTER = struct(field("voter_id", Scalar.INT32), field("voter_directory_id", Scalar.UUID, "1+"))
_VOTER_ENDPOINT = struct(field("name", Scalar.STRING), field("host", Scalar.STRING), field("port", Scalar.UINT16))
_VERSION_RANGE = struct(field("min_supported_version", Scalar.INT16), field("max_supported_version", Scalar.INT16))

END_TXN_MARKER = message("EndTxnMarker", _VERSION_FIELD, field("coordinator_epoch", Scalar.INT32))
LEADER_CHANGE = message(
    "LeaderChangeMessage",
    _VERSION_FIELD,
    field("leader_id", Scalar.INT32),
    field("voters", Array(_VOTER)),
    field("granting_voters", Array(_VOTER)),
    valid="0-1",
    flexible="0+",
)
SNAPSHOT_HEADER = message(
    "SnapshotHeaderRecord", _VERSION_FIELD, field("last_contained_log_timestamp", Scalar.INT64), flexible="0+"
)
SNAPSHOT_FOOTER = message("SnapshotFooterRecord", _VERSION_FIELD, flexible="0+")
KRAFT_VERSION = message("KRaftVersionRecord", _VERSION_FIELD, field("k_raft_version", Scalar.INT16), flexible="0+")
KRAFT_VOTERS = message(
    "VotersRecord",
    _VERSION_FIELD,
    field(
        "voters",
        Array(
            struct(
                field("voter_id", Scalar.INT32),
                field("voter_directory_id", Scalar.UUID),
                field("endpoints", Array(_VOTER_ENDPOINT)),
                field("k_raft_version_feature", _VERSION_RANGE),
            )
        ),
    ),
    flexible="0+",
)

CONTROL_TABLES: Mapping[int, tuple[ControlType, Message]] = {
    0: (ControlType.ABORT, END_TXN_MARKER),
    1: (ControlType.COMMIT, END_TXN_MARKER),
    2: (ControlType.LEADER_CHANGE, LEADER_CHANGE),
    3: (ControlType.SNAPSHOT_HEADER, SNAPSHOT_HEADER),
    4: (ControlType.SNAPSHOT_FOOTER, SNAPSHOT_FOOTER),
    5: (ControlType.KRAFT_VERSION, KRAFT_VERSION),
    6: (ControlType.KRAFT_VOTERS, KRAFT_VOTERS),
}
"""Type and table by the number in the key."""

_NUMBERS = {kind: number for number, (kind, _) in CONTROL_TABLES.items()}


def parse_control_record(key: bytes | None, value: bytes | None) -> ControlRecord:
    """Decode a control record as far as possible (`ControlRecordType`); an unknown type, or a message that does not fit, is `Undecoded` with the reason."""
    if key is None or len(key) < _KEY.size:
        found = "no key" if key is None else f"a key of {len(key)} bytes"
        return ControlRecord(ControlType.UNKNOWN, Undecoded(f"{found} names no type"))
    number = _KEY.unpack_from(key)[1]
    if number not in CONTROL_TABLES:
        return ControlRecord(ControlType.UNKNOWN, not_known("control type", number, max(CONTROL_TABLES)))
    kind, table = CONTROL_TABLES[number]
    if value is None or len(value) < _VERSION.size:
        return ControlRecord(kind, Undecoded("there is no value", table.name))
    return ControlRecord(kind, decode_message(table, _VERSION.unpack_from(value)[0], value))


def encode_control_record(kind: ControlType, fields: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """Encode the key and value of a control record.

    Args:
        fields: of the message; `version` is the version of the message, 0 if it is missing.

    Raises:
        ValueError: the message does not have this version.
    """
    number = _NUMBERS[kind]
    return _KEY.pack(0, number), encode_message(CONTROL_TABLES[number][1], fields.get("version", 0), fields)
