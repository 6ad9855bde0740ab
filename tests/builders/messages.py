"""Records of coordinator topics and of the remote log metadata, encoded as brokers write them."""

from collections.abc import Mapping
from typing import Any

from kforensics.formats.messages.frame import CoordinatorTables
from kforensics.formats.messages.reader import encode_message


def encode_coordinator_record(
    tables: CoordinatorTables,
    record_type: int,
    key_fields: Mapping[str, Any],
    version: int = 0,
    value_fields: Mapping[str, Any] | None = None,
) -> tuple[bytes, bytes | None]:
    """The key and value of a record of a coordinator topic; without value fields it is a tombstone."""
    key = record_type.to_bytes(2) + encode_message(tables.keys[record_type], 0, key_fields)
    if value_fields is None:
        return key, None
    return key, version.to_bytes(2) + encode_message(tables.values[record_type], version, value_fields)
