from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.errors import FormatError
from kforensics.formats.columns import record_chain, record_columns
from kforensics.formats.columns.batch_checks import ExactReads
from kforensics.formats.columns.record_chain import Lanes
from kforensics.formats.columns.record_columns import BodyDamage, RecordColumns, find_damaged_bodies, iter_columns
from kforensics.formats.log.records import (
    BodyRecord,
    CountMismatch,
    encode_body_records,
    iter_record_layouts,
    parse_body_records,
    parse_headers,
    slice_nullable,
)
from kforensics.formats.primitives.numbers import encode_varint
from kforensics.formats.primitives.word_buffer import WordBuffer

nullable = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.binary(max_size=5), nullable), max_size=5).map(tuple)
body_records = st.builds(BodyRecord, st.integers(-(1 << 62), 1 << 62), st.integers(0, 3), nullable, nullable, headers)


@st.composite
def bodies(draw: st.DrawFn) -> list[BodyRecord]:
    """Records whose offset deltas rise."""
    found, delta = [], -1
    for record in draw(st.lists(body_records, max_size=5)):
        delta += 1 + record.offset_delta
        found.append(record._replace(offset_delta=delta))
    return found


@given(st.lists(body_records, max_size=20))
def test_round_trip(records):
    body = encode_body_records(records)

    assert records == list(parse_body_records(body, len(records)))


@given(st.lists(body_records, min_size=1, max_size=5), st.integers(-3, 3).filter(bool))
def test_a_wrong_count_is_an_error(records, more):
    body = encode_body_records(records)
    count = max(len(records) + more, 0)

    with pytest.raises(CountMismatch):
        list(parse_body_records(body, count))


# All ways through the column reader: many lanes at once, lane after lane, and lanes longer than a piece.
WAYS = {"lanes": (1, 1, 1 << 16), "one by one": (10**6, 10**6, 1 << 16), "pieces": (2, 2, 3)}


@contextmanager
def way_through(way: str) -> Iterator[None]:
    few_lanes, few_records, group = WAYS[way]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_chain, "FEW_LANES", few_lanes)
        patch.setattr(record_chain, "GROUP_RECORDS", group)
        patch.setattr(record_chain, "PIECE_RECORDS", group)
        patch.setattr(record_columns, "FEW_RECORDS", few_records)
        yield


@pytest.mark.parametrize("way", WAYS)
@given(given=st.lists(bodies(), min_size=1, max_size=6))
def test_columns_hold_what_the_exact_reader_reads(way, given):
    buffer, lanes = laid_out(
        [(encode_body_records(one), len(one), one[-1].offset_delta if one else 0) for one in given]
    )

    with way_through(way):
        found = [pair for part in iter_columns(buffer, lanes, ExactReads(1 << 20)) for pair in values(buffer, part)]

        assert [] == find_damaged_bodies(buffer, lanes, ExactReads(1 << 20))
    assert [(row, record) for row, one in enumerate(given) for record in one] == found


@pytest.mark.parametrize("way", WAYS)
@given(given=st.lists(bodies(), min_size=1, max_size=6), rng=st.randoms(use_true_random=False))
@pytest.mark.some("lanes", "one by one")
def test_columns_agree_with_the_exact_reader_on_damaged_bodies(way, given, rng):
    damaged = []
    for one in given:
        body: bytearray = bytearray(encode_body_records(one))
        if body and rng.random() < 0.6:
            body[rng.randrange(len(body))] = rng.choice([rng.randrange(256), 0, 1, 0xFF, 0x80])
        damaged.append(
            (
                bytes(body),
                max(len(one) + rng.choice([0, 0, 0, -1, 1]), 0),
                (one[-1].offset_delta if one else 0) + rng.choice([0, 0, -1]),
            )
        )
    buffer, lanes = laid_out(damaged)

    expected: list[object] = []
    for row, (content, count, last_delta) in enumerate(damaged):
        start = int(lanes.starts[row])
        try:
            for layout in iter_record_layouts(buffer.view, start, start + len(content), count, last_delta):
                expected.append(  # noqa: PERF401  # what came before an error is kept
                    (
                        row,
                        layout.offset_delta,
                        layout.timestamp_delta,
                        layout.key_length,
                        layout.value_length,
                        layout.end,
                    )
                )
        except FormatError as error:
            expected.append((row, str(error)))

    found: list[object] = []
    with way_through(way):
        parts = list(iter_columns(buffer, lanes, ExactReads(1 << 20)))
        damaged_lanes = find_damaged_bodies(buffer, lanes, ExactReads(1 << 20))
    for part in parts:
        if isinstance(part, BodyDamage):
            found.append((part.row, str(part.error)))
        else:
            columns = (part.rows, part.offset_delta, part.timestamp_delta, part.key_length, part.value_length, part.end)
            found += zip(*(column.tolist() for column in columns), strict=True)
    errors = [one for one in expected if len(one) == 2]  # type: ignore[arg-type]
    assert expected == found
    assert errors == [(one.row, str(one.error)) for one in damaged_lanes]


@pytest.mark.parametrize(
    "body",
    [
        b"\xff" * 10,
        encode_varint((1 << 31) - 1) + bytes(100),
        b"\x0c\x00\x00\x00\x01\x01\x80\x80\x80\x80\x20",
        encode_varint(10) + b"\x00\x00\x00\xfe\xff\xff\xff\x0f\x01\x00",
        encode_varint(10) + b"\x00\x00\x00\x01\x01\xfe\xff\xff\xff\x0f",
        encode_varint(10) + b"\x00" + b"\xff" * 9,
    ],
    ids=["endless varint", "long record", "headers", "long key", "header count", "endless timestamp"],
)
def test_lies_cost_nothing(body):
    buffer, lanes = laid_out([(body, 1, 0)])

    ((damage,), parts) = (
        find_damaged_bodies(buffer, lanes, ExactReads(1 << 20)),
        list(iter_columns(buffer, lanes, ExactReads(1 << 20))),
    )

    assert 0 == damage.row
    assert [BodyDamage] == [type(part) for part in parts]


def test_offset_deltas_must_rise_up_to_the_last():
    records = [BodyRecord(0, delta, None, None) for delta in (0, 2, 2)]
    body = encode_body_records(records)

    with pytest.raises(FormatError, match="an offset delta of 3 to 9"):
        list(iter_record_layouts(body, 0, len(body), 3, 9))
    with pytest.raises(FormatError, match="an offset delta of 1 to 1"):
        list(iter_record_layouts(body, 0, len(body), 3, 1))


def laid_out(given: list[tuple[bytes, int, int]]) -> tuple[WordBuffer, Lanes]:
    content = b"".join(body for body, _, _ in given)
    buffer = WordBuffer(len(content))
    buffer.view[: len(content)] = content
    buffer.filled = len(content)
    ends = np.cumsum([len(body) for body, _, _ in given])
    starts = ends - [len(body) for body, _, _ in given]
    counts, deltas = (np.array([one[place] for one in given], dtype=np.int64) for place in (1, 2))
    return buffer, Lanes(np.arange(len(given)), starts, ends, counts, deltas)


def values(buffer: WordBuffer, part: RecordColumns | BodyDamage) -> list[tuple[int, BodyRecord]]:
    assert isinstance(part, RecordColumns)
    found = []
    for index, row in enumerate(part.rows.tolist()):
        key, value = (
            slice_nullable(buffer.view, int(position[index]), int(length[index]))
            for position, length in ((part.key_position, part.key_length), (part.value_position, part.value_length))
        )
        names = parse_headers(
            buffer.view, int(part.header_position[index]), int(part.end[index]), int(part.header_count[index])
        )
        found.append(
            (row, BodyRecord(int(part.timestamp_delta[index]), int(part.offset_delta[index]), key, value, names))
        )
    return found
