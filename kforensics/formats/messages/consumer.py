"""The subscription and assignment blobs of classic group members: int16 version, message.

(Kafka: ConsumerProtocolSubscription.json, ConsumerProtocolAssignment.json, versions 0 to 3; a newer version reads as
the newest known one, as in Kafka)
"""

from struct import Struct as Layout

from kforensics.formats.messages.reader import decode_message
from kforensics.formats.messages.schema import Array, Decoded, Message, Scalar, Undecoded, field, message, struct

CONSUMER_PROTOCOL_TYPE = "consumer"
"""The `protocol_type` of a group whose members speak this protocol."""

INT32, STRING, BYTES = Scalar.INT32, Scalar.STRING, Scalar.BYTES
_VERSION = Layout(">h")
_TOPIC_PARTITIONS = Array(struct(field("topic", STRING), field("partitions", Array(INT32))))

SUBSCRIPTION = message(
    "ConsumerProtocolSubscription",
    field("topics", Array(STRING)),
    field("user_data", BYTES, nullable=True),
    field("owned_partitions", _TOPIC_PARTITIONS, "1+"),
    field("generation_id", INT32, "2+", default=-1),
    field("rack_id", STRING, "3+", nullable=True),
    valid="0-3",
)
ASSIGNMENT = message(
    "ConsumerProtocolAssignment",
    field("assigned_partitions", _TOPIC_PARTITIONS),
    field("user_data", BYTES, nullable=True),
    valid="0-3",
)


def parse_subscription(blob: bytes) -> Decoded | Undecoded:
    """Decode the subscription of a member of a classic group (`ConsumerProtocolSubscription`).

    Args:
        blob: the version and the message; a version above the newest known one is read as that, as Kafka does.
    """
    return _parse(SUBSCRIPTION, blob)


def parse_assignment(blob: bytes) -> Decoded | Undecoded:
    """Decode the assignment of a member of a classic group (`ConsumerProtocolAssignment`)."""
    return _parse(ASSIGNMENT, blob)


def _parse(table: Message, blob: bytes) -> Decoded | Undecoded:
    if len(blob) < _VERSION.size:
        return Undecoded(f"{len(blob)} bytes are too few for a version", table.name)
    version = _VERSION.unpack_from(blob)[0]
    return decode_message(table, min(version, table.versions[-1]), blob, _VERSION.size)
