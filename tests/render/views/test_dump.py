"""Decoded records and times as people and programs read them."""

import json

import pytest

from kforensics.damage import Absent, BitFlip, Damage, DamageCause, DamageKind, Gravity, Span
from kforensics.evidence.content import RecordItem, RecordMeaning, decoder_of_topic
from kforensics.evidence.file_kinds import FileEntry
from kforensics.formats.log.records import Record
from kforensics.formats.messages.schema import Decoded, Undecoded
from kforensics.render.json.dump import dump_line, plain_item
from kforensics.render.views.dump import damage_lines, field_text, message_text, text_lines
from kforensics.units import OffsetRange
from kforensics.words import utc_text
from tests.schemas import reason

RECORD = Record(3, -1, None, b"v", ((b"h", None),), 4, 0, 3, 0, 7, 0, 2, is_transactional=False, is_control=False)


@pytest.mark.parametrize(
    ("time_ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (1795243067226, "2026-11-21T06:37:47.226Z"),
        (253402300799999, "9999-12-31T23:59:59.999Z"),
        (2**62, f"{2**62} ms"),
    ],
)
def test_times(time_ms: int, text: str) -> None:
    assert utc_text(time_ms) == text


def test_a_message_that_was_not_understood_says_why() -> None:
    message = Undecoded("version 9 is not known", "TopicRecord", 9, 2)
    item = RecordItem(RECORD, None, RecordMeaning(Undecoded("there is no key"), message))

    assert list(text_lines(item, show_payload=True, as_text=True)) == [
        "3  key null  value 1 byte  1 header  sequence 4",
        "    message: not understood: there is no key",
        "    TopicRecord v9: not understood: version 9 is not known",
        "    key: null",
        "    value: v",
        "    header h: null",
    ]
    plain = json.loads(dump_line(plain_item(item, show_payload=False, as_text=False)))
    assert reason(plain, "timestamp_ms") == "not-written"
    assert reason(plain["decoded"]["key"], "name") == "unknown"
    assert plain["decoded"]["value"] == {
        "name": "TopicRecord",
        "version": 9,
        "api_key": 2,
        "fields": None,
        "reason": "version 9 is not known",
        "absent": {"fields": "unreadable"},
    }


def test_fields_of_every_sort() -> None:
    fields = {"a": "x\x1b y", "b": b"\x01", "c": (1, 2), "d": {"e": True}, "f": Absent.UNKNOWN, "g": None, "h": b""}
    text = message_text(Decoded("Some", 1, fields, trailing=2))

    assert text == (
        "Some v1 a='x\\x1b y' b=0x01 c=[1, 2] d={e=yes} f=(unknown) h='' and 2 bytes that belong to no field"
    )
    assert field_text(1.5) == "1.5"


def test_numbers_that_json_does_not_have() -> None:
    meaning = RecordMeaning(None, Decoded("ClientQuotaRecord", 0, {"value": float("nan"), "entity": ({"k": 1.0},)}))
    line = dump_line(plain_item(RecordItem(RECORD, None, meaning), show_payload=False, as_text=False), ', "file": "f"')

    plain = json.loads(line)
    assert plain["file"] == "f"
    assert plain["decoded"]["value"]["fields"] == {"value": "nan", "entity": [{"k": 1.0}]}


def test_a_member_that_can_not_be_read() -> None:
    decode = decoder_of_topic("__consumer_offsets")
    assert decode is not None
    value = (
        b"\x00\x00\x00\x08consumer"
        + bytes(4)
        + b"\xff\xff\xff\xff"
        + b"\x00\x00\x00\x01"
        + bytes(10)
        + b"\x00\x00\x00\x01x"
    )
    meaning = decode(b"\x00\x02\x00\x01g", value + bytes(4))
    line = json.loads(dump_line(plain_item(RecordItem(RECORD, None, meaning), show_payload=False, as_text=False)))
    member = line["decoded"]["value"]["fields"]["members"][0]
    assert member["subscription"]["base64"] == "eA=="
    assert member["subscription"]["reason"] == "1 bytes are too few for a version"
    assert member["assignment"] == {"base64": ""}


def test_damage_with_all_that_is_known() -> None:
    damage = Damage(
        span=Span(10, 61),
        kind=DamageKind.CRC,
        expected="crc 1",
        found="2",
        gravity=Gravity.TORN_TAIL,
        offsets_lost=OffsetRange(4, 6),
        next_good=(7, 71),
        cause=DamageCause(kind="bit-flip", detail="one flipped bit", flip=BitFlip(20, 3, 0, 8)),
    )

    assert list(damage_lines(damage)) == [
        "torn tail at byte 10, 61 bytes (crc): expected crc 1, found 2",
        "    cause: one flipped bit",
        "    offsets 4..6 can't be read",
        "    next sound batch: offset 7 at byte 71",
    ]
    assert plain_item(damage, show_payload=False, as_text=False)["next_good"] == {"offset": 7, "position": 71}


def test_preallocated_zeros() -> None:
    entry = FileEntry("preallocated", {"position": 8, "length": 1})
    assert list(text_lines(entry, show_payload=False, as_text=False)) == ["preallocated: 1 zero byte from byte 8 on"]
