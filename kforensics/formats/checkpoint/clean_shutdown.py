"""`.kafka_cleanshutdown` of a log directory: its presence says that the broker stopped cleanly.

    0.8.0 to 3.6: an empty file; 3.7 and later: one JSON object `{"version":0,"brokerEpoch":N}`, N = -1 where it
    is not known.

Kafka: `CleanShutdownFileHandler`. The presence of the file decides; a broker that can't read the content only lacks the epoch.
"""

import json
from typing import NamedTuple

from kforensics.damage import Absent, Damage, DamageKind, Gravity, Span
from kforensics.errors import FormatError, require_known
from kforensics.formats.primitives.json_line import integer_of, parse_json_object
from kforensics.formats.primitives.text_lines import shown

NEWEST_VERSION = 0
NO_BROKER_EPOCH = -1


class CleanShutdown(NamedTuple):
    """The content of the file: the epoch is `NOT_APPLICABLE` in the empty file of old brokers, and `NOT_WRITTEN` if it is -1."""

    broker_epoch: int | Absent
    damage: tuple[Damage, ...] = ()


def parse_clean_shutdown(data: bytes | memoryview) -> CleanShutdown:
    """Parse `.kafka_cleanshutdown`; its presence shows a clean shutdown even if the content is malformed.

    Args:
        data: the whole file, empty up to 3.6.

    Returns:
        The broker epoch; what can't be read of it is damage of gravity `stale`.

    Raises:
        NewerThanKnown: it is of a newer version.
    """
    if not len(data):
        return CleanShutdown(broker_epoch=Absent.NOT_APPLICABLE)
    try:
        fields = parse_json_object(data, expected="nothing, or a JSON object with brokerEpoch")
    except FormatError as error:
        return _unreadable(error.span, error.expected, error.found)
    version, epoch = integer_of(fields.get("version")), integer_of(fields.get("brokerEpoch"))
    if version is not None and version > NEWEST_VERSION:
        require_known(Span(0, len(data)), ".kafka_cleanshutdown version", found=version, newest=NEWEST_VERSION)
    if version != 0 or epoch is None or epoch < NO_BROKER_EPOCH:
        return _unreadable(Span(0, len(data)), "version 0 and a brokerEpoch", shown(data))
    return CleanShutdown(broker_epoch=Absent.NOT_WRITTEN if epoch == NO_BROKER_EPOCH else epoch)


def encode_clean_shutdown(marker: CleanShutdown) -> bytes:
    """Encode the file as a broker writes it (`CleanShutdownFileHandler`).

    Args:
        marker: its epoch `NOT_APPLICABLE` makes the empty file of brokers up to 3.6; any other absence is written as -1.
    """
    if marker.broker_epoch is Absent.NOT_APPLICABLE:
        return b""
    epoch = NO_BROKER_EPOCH if isinstance(marker.broker_epoch, Absent) else marker.broker_epoch
    return json.dumps({"version": 0, "brokerEpoch": epoch}, separators=(",", ":")).encode()


def _unreadable(span: Span, expected: str, found: str) -> CleanShutdown:
    place = Damage(span=span, kind=DamageKind.TEXT, expected=expected, found=found, gravity=Gravity.STALE)
    return CleanShutdown(broker_epoch=Absent.UNREADABLE, damage=(place,))
