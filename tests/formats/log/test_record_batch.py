import contextlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.errors import FormatError
from kforensics.formats.log.batch_table import CONTROL_BIT, DELETE_HORIZON_BIT, TIMESTAMP_TYPE_BIT, TRANSACTIONAL_BIT
from kforensics.formats.log.batches import (
    RecordBatch,
    build_record_batch,
    encode_record_batch,
    iter_batch_records,
    sequence_of,
    with_right_crc,
)
from kforensics.formats.log.records import BodyRecord
from kforensics.formats.primitives.numbers import Codec
from tests.formats.segments import walked

int16s = st.integers(-1, (1 << 15) - 1)
int64s = st.integers(-(1 << 62), (1 << 62) - 1)
nullable = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(st.text(max_size=5).map(str.encode), nullable), max_size=4).map(tuple)
bits = st.sets(st.sampled_from([TIMESTAMP_TYPE_BIT, TRANSACTIONAL_BIT, CONTROL_BIT, DELETE_HORIZON_BIT])).map(sum)


@st.composite
def record_batches(draw: st.DrawFn) -> RecordBatch:
    deltas = sorted(draw(st.sets(st.integers(0, 5000), max_size=20)))
    records = tuple(
        BodyRecord(draw(st.integers(-(1 << 40), 1 << 40)), delta, draw(nullable), draw(nullable), draw(headers))
        for delta in deltas
    )
    return RecordBatch(
        base_offset=draw(st.integers(0, 1 << 62)),
        partition_leader_epoch=draw(st.integers(-1, (1 << 31) - 1)),
        attributes=draw(bits) | draw(st.sampled_from(Codec)),
        last_offset_delta=max([*deltas, draw(st.integers(0, 6000))]),
        base_timestamp=draw(int64s),
        max_timestamp=draw(int64s),
        producer_id=draw(int64s),
        producer_epoch=draw(int16s),
        base_sequence=draw(st.integers(-1, (1 << 31) - 1)),
        records=records,
    )


@given(record_batches())
def test_an_encoded_batch_has_the_right_checksum(batch):
    data = encode_record_batch(batch)

    assert data == with_right_crc(data)


@given(record_batches())
def test_a_walk_finds_the_batch_whole(batch):
    found = walked(encode_record_batch(batch))

    assert () == tuple(found.damage)
    assert len(batch.records) == found.record_count
    (row,) = found.batches
    assert (batch.base_offset, batch.base_offset + batch.last_offset_delta) == (row["base_offset"], row["last_offset"])
    assert (batch.partition_leader_epoch, batch.attributes) == (row["partition_leader_epoch"], row["attributes"])
    assert (batch.base_timestamp, batch.max_timestamp) == (row["base_timestamp"], row["max_timestamp"])
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (
        row["producer_id"],
        row["producer_epoch"],
        row["base_sequence"],
    )


@given(record_batches())
def test_records_carry_what_their_batch_says(batch):
    records = list(iter_batch_records(encode_record_batch(batch), 77))

    assert [batch.base_offset + one.offset_delta for one in batch.records] == [record.offset for record in records]
    assert [one.headers for one in batch.records] == [record.headers for record in records]
    for record, one in zip(records, batch.records, strict=True):
        is_log_append = batch.attributes & TIMESTAMP_TYPE_BIT
        assert record.timestamp_ms == (
            batch.max_timestamp if is_log_append else batch.base_timestamp + one.timestamp_delta
        )
        assert (record.key, record.value) == (one.key, one.value)
        assert record.batch_position == 77
        assert record.is_control == bool(batch.attributes & CONTROL_BIT)


@given(record_batches(), st.integers(0, 5000), st.integers(0, 255))
def test_any_damage_to_a_body_is_an_error_or_other_records(batch, place, byte):
    data = bytearray(encode_record_batch(batch))
    data[61 + place % max(len(data) - 61, 1) if len(data) > 61 else 60] = byte
    with contextlib.suppress(FormatError):
        list(iter_batch_records(bytes(data), 0))
    assert len(walked(with_right_crc(bytes(data))).damage) <= 2


def test_sequences_wrap_behind_the_largest_int32():
    largest = (1 << 31) - 1

    assert [largest, 0, 1] == [sequence_of(largest, delta) for delta in range(3)]
    assert -1 == sequence_of(-1, 5)


def test_a_built_batch_is_what_a_producer_sends():
    batch = build_record_batch(
        100, [(5000, b"k", b"v"), (5007, None, None)], codec=Codec.LZ4, producer_id=9, producer_epoch=1, base_sequence=3
    )

    assert (100, 1, 5000, 5007) == (
        batch.base_offset,
        batch.last_offset_delta,
        batch.base_timestamp,
        batch.max_timestamp,
    )
    assert [(0, 0), (7, 1)] == [(record.timestamp_delta, record.offset_delta) for record in batch.records]
    assert [3, 4] == [record.sequence for record in iter_batch_records(encode_record_batch(batch), 0)]


@pytest.mark.parametrize(("count", "kind"), [(2, "count"), (4, "count"), (-1, "count"), ((1 << 31) - 1, "count")])
def test_a_lying_count_is_named(count, kind):
    batch = replace(build_record_batch(0, [(1, b"key", b"value")] * 3), last_offset_delta=10)
    data = bytearray(encode_record_batch(batch))
    data[57:61] = count.to_bytes(4, signed=True)

    (damage,) = walked(with_right_crc(bytes(data))).damage

    assert kind == damage.kind
    assert (0, len(data)) == damage.span
