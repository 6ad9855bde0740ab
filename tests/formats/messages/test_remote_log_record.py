"""Records of `__remote_log_metadata`, as a 3.9 broker wrote them."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from kforensics.damage import Damage
from kforensics.formats.messages.frame import encode_framed
from kforensics.formats.messages.remote_log import REMOTE_LOG_TABLES, parse_remote_log_record
from kforensics.formats.messages.schema import Decoded, Undecoded
from kforensics.formats.primitives.word_buffer import MemoryBytes
from kforensics.formats.segment.walk import iter_records


def test_recorded_segments(incident: Callable[[str], Path]) -> None:
    log = incident("tiered-3.9") / "snapshots/99-final/broker-1/__remote_log_metadata-1/00000000000000000000.log"
    names: Counter[str] = Counter()
    for record in iter_records(MemoryBytes(log.read_bytes())):
        assert not isinstance(record, Damage)
        assert record.value is not None
        message = parse_remote_log_record(record.value)
        assert isinstance(message, Decoded)
        assert message.api_key is not None
        assert record.value == encode_framed(REMOTE_LOG_TABLES[message.api_key], message.version, message.fields)
        names[message.name] += 1

    assert names == {"RemoteLogSegmentMetadataRecord": 14, "RemoteLogSegmentMetadataUpdateRecord": 14}


@pytest.mark.parametrize("api_key", REMOTE_LOG_TABLES)
def test_every_type(api_key: int) -> None:
    message = parse_remote_log_record(encode_framed(REMOTE_LOG_TABLES[api_key], 0, {}))

    assert isinstance(message, Decoded)
    assert (REMOTE_LOG_TABLES[api_key].name, 0) == (message.name, message.trailing)


def test_unknown_type_is_named() -> None:
    assert Undecoded(
        "record type 9 is newer than 3, which kforensics knows", None, 0, 9, is_newer=True
    ) == parse_remote_log_record(b"\x01\x09\x00")
