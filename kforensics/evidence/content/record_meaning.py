"""The meaning of the records of Kafka's own topics: the decoder of each topic, and key and value as named fields."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from kforensics.formats.log.records import Record
from kforensics.formats.messages.consumer import CONSUMER_PROTOCOL_TYPE, parse_assignment, parse_subscription
from kforensics.formats.messages.control import ControlType, parse_control_record
from kforensics.formats.messages.frame import CoordinatorRecord
from kforensics.formats.messages.group import parse_group_record
from kforensics.formats.messages.metadata import parse_metadata_record
from kforensics.formats.messages.remote_log import parse_remote_log_record
from kforensics.formats.messages.schema import Decoded, Undecoded, not_understood
from kforensics.formats.messages.share import parse_share_record
from kforensics.formats.messages.txn import parse_txn_record
from kforensics.units import METADATA_TOPICS, OFFSETS_TOPIC, REMOTE_LOG_TOPIC, SHARE_TOPIC, TRANSACTIONS_TOPIC

Message = Decoded | Undecoded

_MEMBER_BLOBS = {"subscription": parse_subscription, "assignment": parse_assignment}


class RecordMeaning(NamedTuple):
    """Key and value of a record, understood; None for what is null or, in the metadata log, for the key."""

    key: Message | None
    value: Message | None

    @property
    def newer(self) -> str:
        """What of it is newer than known, in words; empty where nothing is."""
        for one in (self.key, self.value):
            if isinstance(one, Undecoded) and one.is_newer:
                return one.reason
            if isinstance(one, Decoded) and (words := not_understood(one)):
                return words
        return ""


@dataclass(frozen=True, slots=True)
class MemberBlob:
    """The value that a classic member sent in its own protocol: the bytes, and what they mean."""

    raw: bytes
    message: Message


Decoder = Callable[[bytes | None, bytes | None], RecordMeaning]


def decoder_of_topic(topic: str) -> Decoder | None:
    """Return the decoder of a topic of Kafka's own, or None for any other topic."""
    return _DECODERS.get(topic)


def control_meaning(record: Record) -> tuple[ControlType, RecordMeaning]:
    """Return the type of a control record and the meaning of its value."""
    control = parse_control_record(record.key, record.value)
    return control.type, RecordMeaning(None, control.value)


def decode_metadata(_key: bytes | None, value: bytes | None) -> RecordMeaning:
    """Return a record of the KRaft metadata log or of a snapshot of it.

    Args:
        value: of the record; None for null. Its key means nothing (KIP-631).
    """
    return RecordMeaning(None, None if value is None else parse_metadata_record(value))


def _decode_remote_log(_key: bytes | None, value: bytes | None) -> RecordMeaning:
    return RecordMeaning(None, None if value is None else parse_remote_log_record(value))


def _decode_group(key: bytes | None, value: bytes | None) -> RecordMeaning:
    record = parse_group_record(key, value)
    message = record.value
    if isinstance(message, Decoded) and message.fields.get("protocol_type") == CONSUMER_PROTOCOL_TYPE:
        members = tuple(_with_blobs(member) for member in message.fields["members"] or ())
        message = message._replace(fields=message.fields | {"members": members})
    return RecordMeaning(record.key, message)


def _with_blobs(member: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: MemberBlob(value, _MEMBER_BLOBS[name](value)) if name in _MEMBER_BLOBS and value else value
        for name, value in member.items()
    }


def _decode_coordinator(parse: Callable[[bytes | None, bytes | None], CoordinatorRecord]) -> Decoder:
    def decode(key: bytes | None, value: bytes | None) -> RecordMeaning:
        record = parse(key, value)
        return RecordMeaning(record.key, record.value)

    return decode


_DECODERS: Mapping[str, Decoder] = {
    **dict.fromkeys(METADATA_TOPICS, decode_metadata),
    OFFSETS_TOPIC: _decode_group,
    TRANSACTIONS_TOPIC: _decode_coordinator(parse_txn_record),
    SHARE_TOPIC: _decode_coordinator(parse_share_record),
    REMOTE_LOG_TOPIC: _decode_remote_log,
}
