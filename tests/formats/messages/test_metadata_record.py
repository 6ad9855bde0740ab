"""Records of the metadata log, against what Kafka's own tool printed for the same logs."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.damage import Damage
from kforensics.formats.messages.metadata import (
    METADATA_TABLES,
    PREVIEW_TABLES,
    encode_metadata_record,
    parse_metadata_record,
)
from kforensics.formats.messages.schema import Decoded, Undecoded
from kforensics.formats.primitives.word_buffer import MemoryBytes
from kforensics.formats.segment.walk import iter_records

LOGS = [
    ("epoch-truncate-2.8", "controller-100/@metadata-0", 78),
    ("unclean-election-4.x", "controller-100/__cluster_metadata-0", 159),
    ("kraft-quorum-3x", "controller-101/__cluster_metadata-0", 172),
]
PRINTED = re.compile(r'^\| offset: (\d+) .*? payload: (\{"type".*\})$')


@pytest.mark.parametrize(("name", "place", "count"), LOGS)
def test_agrees_with_kafkas_own_decoder(incident: Callable[[str], Path], name: str, place: str, count: int) -> None:
    root = incident(name)
    log = next((root / "snapshots" / "99-final" / place).glob("*0.log"))
    printed = {
        int(found[1]): json.loads(found[2])
        for line in (root / "oracle" / "99-final" / place / f"{log.name}.txt").read_text().splitlines()
        if (found := PRINTED.match(line))
    }

    decoded = {}
    for record in iter_records(MemoryBytes(log.read_bytes())):
        assert not isinstance(record, Damage)
        if not record.is_control:
            assert record.value is not None
            decoded[record.offset] = parse_metadata_record(record.value)
            assert record.value == re_encoded(decoded[record.offset], record.value[0])

    assert count == len(decoded)
    assert printed.keys() == decoded.keys()
    for offset, message in decoded.items():
        assert isinstance(message, Decoded)
        assert printed[offset]["type"].replace("_", "").lower() == message.name.lower()
        assert printed[offset]["version"] == message.version
        assert_holds(message.fields, printed[offset]["data"])


def re_encoded(message: Decoded | Undecoded, frame_version: int) -> bytes:
    assert isinstance(message, Decoded)
    assert message.api_key is not None
    return encode_metadata_record(message.api_key, message.version, message.fields, frame_version=frame_version)


def assert_holds(ours: Any, peers: Any) -> None:
    """Every field that Kafka prints stands in ours with the same value."""
    if isinstance(peers, Mapping):
        for name, value in peers.items():
            assert_holds(ours[re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()], value)
    elif isinstance(peers, list):
        assert len(peers) == len(ours)
        for one, other in zip(ours, peers, strict=True):
            assert_holds(one, other)
    else:
        assert peers == ours


@pytest.mark.parametrize("api_key", METADATA_TABLES)
def test_every_type_in_its_frame(api_key: int) -> None:
    table = METADATA_TABLES[api_key]
    for version in table.versions:
        message = parse_metadata_record(encode_metadata_record(api_key, version, {}))

        assert isinstance(message, Decoded)
        assert (table.name, version, api_key, 0) == (message.name, message.version, message.api_key, message.trailing)


@pytest.mark.parametrize("api_key", PREVIEW_TABLES)
def test_every_type_in_the_frame_of_the_preview(api_key: int) -> None:
    message = parse_metadata_record(encode_metadata_record(api_key, 0, {}, frame_version=0))

    assert isinstance(message, Decoded)
    assert (PREVIEW_TABLES[api_key].name, 0) == (message.name, message.trailing)


def test_what_is_not_known_is_named() -> None:
    assert Undecoded(
        "record type 99 is newer than 29, which kforensics knows", None, 3, 99, is_newer=True
    ) == parse_metadata_record(b"\x01\x63\x03")
    assert Undecoded("record type 13 is not known", None, 0, 13) == parse_metadata_record(b"\x01\x0d\x00")
    assert Undecoded(
        "frame version 5 is newer than 1, which kforensics knows", None, 0, 2, is_newer=True
    ) == parse_metadata_record(b"\x05\x02\x00")
    assert Undecoded(
        "version 9 is newer than 0, which kforensics knows", "TopicRecord", 9, 2, is_newer=True
    ) == parse_metadata_record(b"\x01\x02\x09")
    assert Undecoded("1 bytes are too few for a frame") == parse_metadata_record(b"\x01")


@given(st.binary(max_size=60))
def test_any_bytes(data: bytes) -> None:
    assert isinstance(parse_metadata_record(data), Decoded | Undecoded)


def test_fields_of_the_preview_in_a_later_frame() -> None:
    """3.0 to 3.2 wrote feature levels in the new frame with the fields of the preview."""
    message = parse_metadata_record(b"\x01\x0c\x00\x00\x01f\x00\x01\x00\x02")

    assert isinstance(message, Decoded)
    assert message.fields == {"name": "f", "min_feature_level": 1, "max_feature_level": 2}


def test_numbers_of_a_frame_may_be_long() -> None:
    assert parse_metadata_record(b"\x01\x82\x00\x00\x02t" + bytes(17)).name == "TopicRecord"
    assert parse_metadata_record(b"\x01\xff\xff\xff\xff\xff\xff") == Undecoded("7 bytes are too few for a frame")
