"""Records as columns: the same whatever the size of the buffers, and damage behind the records before it."""

import random

import pytest

from kforensics.damage import Absent, Damage, DamageKind
from kforensics.formats.columns import record_columns, record_stream
from kforensics.formats.columns.batch_checks import ExactReads
from kforensics.formats.columns.record_chain import FEW_LANES, Lanes
from kforensics.formats.columns.record_columns import BodyDamage, find_damaged_bodies, iter_columns
from kforensics.formats.log.batches import (
    Message,
    build_record_batch,
    encode_message,
    encode_message_set,
    encode_record_batch,
    with_right_crc,
)
from kforensics.formats.log.records import BodyRecord, encode_body_records
from kforensics.formats.primitives.compression import compress
from kforensics.formats.primitives.numbers import Codec
from kforensics.formats.primitives.word_buffer import MemoryBytes, WordBuffer
from kforensics.formats.segment import walk
from kforensics.formats.segment.walk import Level, iter_records
from tests.formats.segments import batches_of, walked
from tests.trust.hostile import batch_with_body


@pytest.fixture
def small_payloads(monkeypatch):
    """Buffers that hold one compressed batch, or less."""

    def limit(_codec, body):
        return 1 << 13 if len(body) < 600 else 1 << 15

    monkeypatch.setattr(walk, "PAYLOAD_LENGTH", 1 << 11)
    monkeypatch.setattr(record_columns, "PAYLOAD_LENGTH", 1 << 11)
    monkeypatch.setattr(record_columns, "SMALLEST_LIMIT", 1 << 12)
    monkeypatch.setattr(record_columns, "output_limit", limit)


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
def test_small_buffers_change_no_record(codec, small_payloads, monkeypatch):
    data = b"".join(batches_of(random.Random(codec), 2, codec))
    found, level = list(iter_records(MemoryBytes(data))), walked(data)
    monkeypatch.undo()

    assert found == list(iter_records(MemoryBytes(data)))
    assert not [one for one in found if isinstance(one, Damage)]
    assert (level.damage, level.record_count) == ([], len(found))


def test_a_batch_beyond_what_its_codec_may_hold_is_named_and_those_around_it_are_read(small_payloads):
    # The large ones make the buffer grow; the bomb behind the first is beyond its own, smaller limit.
    large, bomb = random.Random(1).randbytes(9_000), bytes(1 << 14)
    values = [large, b"v", bomb, large, b"v"]
    batches = [build_record_batch(at, [(1, b"k", value)], codec=Codec.GZIP) for at, value in enumerate(values)]
    found = list(iter_records(MemoryBytes(b"".join(map(encode_record_batch, batches)))))

    assert [one.kind if isinstance(one, Damage) else one.offset for one in found] == [
        0,
        1,
        DamageKind.TOO_LARGE,
        3,
        4,
    ]


def test_messages_of_a_broken_wrapper_come_before_its_damage(monkeypatch):
    monkeypatch.setattr(record_stream, "_MESSAGES_AT_ONCE", 2)
    inner = [encode_message(Message(at, 1, 0, 1_000, b"k", b"v")) for at in range(5)]
    inner[3] = inner[3][:-1] + b"x"
    wrapper = encode_message(Message(4, 1, Codec.GZIP, 1_000, None, compress(Codec.GZIP, b"".join(inner))))
    plain = encode_message(Message(9, 1, 0, 1_000, b"k", b"behind"))

    found = list(record_stream_of(wrapper + plain))

    assert [one if isinstance(one, int) else one.kind for one in found] == [0, 1, 2, DamageKind.RECORD, 9]


def test_a_wrapper_whose_first_message_is_broken_has_damage_only(monkeypatch):
    monkeypatch.setattr(record_stream, "_MESSAGES_AT_ONCE", 1)
    inner = encode_message(Message(0, 1, 0, 1_000, b"k", b"v"))[:-1] + b"x"
    wrapper = encode_message(Message(0, 1, Codec.GZIP, 1_000, None, compress(Codec.GZIP, inner)))
    plain = encode_message(Message(9, 1, 0, 1_000, b"k", b"behind"))

    assert [one if isinstance(one, int) else one.kind for one in record_stream_of(wrapper + plain)] == [
        DamageKind.RECORD,
        9,
    ]


def record_stream_of(data):
    """Offsets and damage, without what the walk itself says of the wrapper."""
    parts = list(iter_records(MemoryBytes(data)))
    damage = [one for one in parts if isinstance(one, Damage)]
    assert damage[0].kind is damage[-1].kind
    for one in parts:
        if one is not damage[0] or len(damage) == 1:
            yield one if isinstance(one, Damage) else one.offset


def test_a_codec_that_no_version_knows_is_unsupported():
    batch = bytearray(encode_record_batch(build_record_batch(0, [(1, b"k", b"v")])))
    batch[22] |= 7
    found = list(iter_records(MemoryBytes(with_right_crc(bytes(batch)))))

    assert found
    assert {one.kind for one in found if isinstance(one, Damage)} == {DamageKind.UNSUPPORTED}
    assert all(isinstance(one, Damage) for one in found)


def test_a_compressed_batch_that_counts_more_records_than_offsets():
    body = compress(Codec.GZIP, encode_body_records([BodyRecord(0, 0, b"k", b"v", ())]))

    (damage,) = walked(batch_with_body(0, body, codec=Codec.GZIP, count=9)).damage

    assert (damage.kind, damage.expected, damage.found) == (DamageKind.COUNT, "0 to 1 records", "9")


def test_a_batch_that_ends_before_it_begins_loses_an_unknown_number_of_offsets():
    batch = bytearray(encode_record_batch(build_record_batch(7, [(1, b"k", b"v")])))
    batch[23:27] = (-3).to_bytes(4, signed=True)
    behind = encode_record_batch(build_record_batch(8, [(1, b"k", b"v")]))

    level = walked(with_right_crc(bytes(batch)) + behind)

    assert [(one.kind, one.found, one.offsets_lost) for one in level.damage] == [
        (DamageKind.COUNT, "-3", Absent.UNKNOWN)
    ]
    assert level.record_count == 1


@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_whose_key_claims_more_than_the_message(magic):
    message = bytearray(encode_message(Message(0, magic, 0, 1_000 if magic else -1, b"k", b"v")))
    start = 26 if magic else 18
    message[start : start + 4] = (77).to_bytes(4)
    whole = _with_right_message_crc(bytes(message))

    (damage,) = walked(whole, Level.RECORDS).damage

    assert (damage.kind, damage.found.startswith("key length 77,")) == (DamageKind.RECORD, True)


def test_a_wrapper_that_ends_before_the_length_of_its_value():
    # The key takes all of the room, and no byte is left for the length of the value.
    message = bytearray(encode_message(Message(0, 1, Codec.GZIP, 1_000, b"keys", None)))
    message[26:30] = (8).to_bytes(4)

    (damage,) = walked(_with_right_message_crc(bytes(message)), Level.CRC).damage

    assert (damage.kind, damage.expected, damage.found) == (DamageKind.RECORD, "a length of 4 bytes", "0 bytes")


def _with_right_message_crc(message: bytes) -> bytes:
    import zlib

    return message[:12] + zlib.crc32(message[16:]).to_bytes(4) + message[16:]


def test_set_of_messages_in_one_wrapper_counts_them():
    messages = [Message(at, 1, 0, 1_000, b"k", b"v") for at in range(3)]

    assert walked(encode_message_set(messages, codec=Codec.GZIP)).record_count == 3


def lanes_of(*lanes: list[BodyRecord]) -> tuple[WordBuffer, Lanes]:
    import numpy as np

    data = [encode_body_records(records) for records in lanes]
    buffer = WordBuffer(sum(map(len, data)))
    buffer.view[: buffer.capacity] = b"".join(data)
    buffer.filled = buffer.capacity
    ends = np.cumsum([len(one) for one in data])
    counts = np.array([len(records) for records in lanes])
    return buffer, Lanes(np.arange(len(lanes)), ends - [len(one) for one in data], ends, counts, counts - 1)


def records(count: int, value: bytes = b"v") -> list[BodyRecord]:
    return [BodyRecord(0, delta, b"k", value, ()) for delta in range(count)]


def test_without_lanes_there_is_nothing():
    assert list(iter_columns(*lanes_of(), ExactReads(0))) == []


def test_of_many_lanes_the_one_that_breaks_off_early_is_found():
    buffer, lanes = lanes_of(records(9), *([records(2)] * FEW_LANES))
    buffer.view[0] = 0x7F  # the first record claims nearly all that a byte can say, and is negative

    assert [one.row for one in find_damaged_bodies(buffer, lanes, ExactReads(1 << 20))] == [0]


def test_what_may_not_be_read_again_is_named_without_a_place():
    buffer, lanes = lanes_of(records(2), records(2))
    buffer.view[0] = 0x7F

    damage, *rest = iter_columns(buffer, lanes, ExactReads(0))

    assert isinstance(damage, BodyDamage)
    assert damage.error.found.endswith("of which the first was not looked for")
    assert [one.offset_delta.tolist() for one in rest if not isinstance(one, BodyDamage)] == [[0, 1]]
