"""`.index`, `.timeindex`, `.txnindex` and producer `.snapshot`: recordings, round trips, damage, and the derived readers against construct."""

import contextlib
import struct
from typing import Any

import construct
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.damage import DamageKind, Span
from kforensics.errors import FormatError, UnexpectedEnd, UnsupportedFormat
from kforensics.formats.index import (
    ENTRY_LAYOUT,
    HEADER_LAYOUT,
    OFFSET_INDEX_LAYOUT,
    TIME_INDEX_LAYOUT,
    TXN_INDEX_LAYOUT,
    AbortedTransaction,
    ProducerEntry,
    ProducerSnapshot,
    TxnIndex,
    encode_aborted_transactions,
    encode_index,
    encode_producers,
    last_time_entry_span,
    offset_index,
    parse_offset_index,
    parse_producer_snapshot,
    parse_time_index,
    parse_txn_index,
    read_last_time_entry,
    read_time_ends,
    time_index,
)

INT32, INT64 = st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)


@st.composite
def rising_pairs(draw, first):
    count = draw(st.integers(0, 20))
    lefts = draw(st.lists(first, min_size=count, max_size=count, unique=True))
    rights = draw(st.lists(st.integers(1, 2**31 - 1), min_size=count, max_size=count, unique=True))
    return list(zip(sorted(lefts), sorted(rights), strict=True))


@given(rising_pairs(INT32), st.integers(0, 60))
def test_offset_index_round_trip(pairs, spare):
    value = offset_index(pairs, preallocated=(len(pairs) + spare) * 8)
    data = encode_index(value)
    parsed = parse_offset_index(data)
    assert [tuple(entry) for entry in parsed.entries.tolist()] == pairs
    assert (parsed.zero_tail, parsed.damage) == (Span(len(pairs) * 8, spare * 8), ())
    assert encode_index(parsed) == data


@given(rising_pairs(INT64), st.integers(0, 60))
def test_time_index_round_trip(pairs, spare):
    value = time_index(pairs, preallocated=(len(pairs) + spare) * 12)
    data = encode_index(value)
    parsed = parse_time_index(data)
    assert [tuple(entry) for entry in parsed.entries.tolist()] == pairs
    assert (parsed.zero_tail, parsed.damage) == (Span(len(pairs) * 12, spare * 12), ())


def test_a_large_preallocated_tail_is_only_a_tail():
    data = encode_index(offset_index([(9, 4200), (19, 8400)], preallocated=10_485_760))
    parsed = parse_offset_index(data)
    assert len(parsed.entries) == 2
    assert parsed.zero_tail == Span(16, 10_485_744)
    assert parsed.damage == ()


def test_entries_that_fall_are_located():
    data = encode_index(offset_index([(9, 4200), (5, 8400), (19, 8300), (30, 9000)]))
    parsed = parse_offset_index(data)
    assert [(place.kind, place.span) for place in parsed.damage] == [
        (DamageKind.ORDER, Span(8, 8)),
        (DamageKind.ORDER, Span(16, 8)),
    ]
    hole = bytes(8) + data
    assert parse_offset_index(hole).damage[0].span == Span(0, 8)
    assert parse_time_index(encode_index(time_index([(5, 1), (5, 2), (9, 1)]))).damage[0].span == Span(12, 12)
    assert (
        parse_time_index(encode_index(time_index([(-5, 1)]))).damage[0].expected.startswith("a timestamp and an offset")
    )


@pytest.mark.parametrize(
    ("length", "span", "last", "ends"),
    [
        (0, None, None, None),
        (11, None, None, None),
        (12, Span(0, 12), (5, 1), (5, 5, 1)),
        (35, Span(12, 12), (9, 3), (5, 9, 3)),
        (36, Span(24, 12), (0, 0), (5, 0, 0)),
        (48, Span(36, 12), None, None),  # the file became shorter
    ],
)
def test_brokers_find_the_last_entry_of_a_time_index_by_its_length(length, span, last, ends):
    data = encode_index(time_index([(5, 1), (9, 3)], preallocated=36))

    def read(position, count):
        return data[position : position + count]

    assert (span, last, ends) == (
        last_time_entry_span(length),
        read_last_time_entry(read, length),
        read_time_ends(read, length),
    )


@pytest.mark.parametrize(("rest", "zeros"), [(b"abc", False), (bytes(3), True)])
def test_an_incomplete_entry_at_the_end(rest, zeros):
    parsed = parse_offset_index(encode_index(offset_index([(9, 4200)])) + rest)
    assert [(place.kind, place.span) for place in parsed.damage] == [(DamageKind.LENGTH, Span(8, 3))]
    assert parsed.damage[0].found == ("3 bytes of zeros" if zeros else "3 bytes")


def test_damage_of_an_index_is_bounded():
    parsed = parse_offset_index(b"\xff" * 8 * 10_000)
    assert len(parsed.damage) == 101


TRANSACTIONS = st.lists(
    st.builds(
        lambda pid, first, span, stable, last: (pid, first, span, stable, last),
        INT64,
        st.integers(0, 2**40),
        st.integers(0, 2**20),
        INT64,
        st.integers(0, 2**41),
    ),
    max_size=10,
    unique_by=lambda item: item[1] + item[2],
)


@given(TRANSACTIONS)
def test_txn_index_round_trip(rows):
    entries = tuple(
        sorted(
            (AbortedTransaction(0, pid, first, first + span, stable) for pid, first, span, stable, _ in rows),
            key=lambda entry: entry.last_offset,
        )
    )
    assert parse_txn_index(encode_aborted_transactions(entries)) == TxnIndex(entries=entries)


def test_txn_index_entries_that_make_no_sense():
    rows = [
        AbortedTransaction(0, 1, 5, 9, 5),
        AbortedTransaction(1, 1, 10, 12, 5),
        AbortedTransaction(0, -1, 10, 13, 5),
        AbortedTransaction(0, 1, 15, 14, 5),
    ]
    parsed = parse_txn_index(encode_aborted_transactions([*rows, AbortedTransaction(0, 1, 2, 3, 5)]) + b"tail")
    assert len(parsed.entries) == 5
    assert [place.span.position for place in parsed.damage] == [34, 68, 102, 136, 170]
    assert parsed.damage[-1].kind is DamageKind.LENGTH


PRODUCERS = st.builds(
    ProducerEntry,
    INT64,
    st.integers(-1, 2**15 - 1),
    st.integers(-1, 2**31 - 1),
    st.integers(-1, 2**63 - 1),
    INT32,
    st.integers(-1, 2**63 - 1),
    st.integers(-1, 2**31 - 1),
    st.integers(-1, 2**63 - 1),
)


@given(st.lists(PRODUCERS, max_size=10))
def test_producer_snapshot_round_trip(entries):
    data = encode_producers(entries)
    parsed = parse_producer_snapshot(data)
    assert len(data) == 10 + 46 * len(entries)
    assert (parsed.entries, parsed.damage, parsed.crc_valid) == (tuple(entries), (), True)
    assert encode_producers(parsed.entries) == data


@given(st.integers(6, 10 + 46 * 2 - 1), st.integers(0, 7))
def test_any_flipped_bit_behind_the_checksum_is_seen(position, bit):
    data = bytearray(
        encode_producers([ProducerEntry(1, 0, 9, 9, 4, 1000, -1, -1), ProducerEntry(2, 1, 0, 10, 0, 1000, 3, 10)])
    )
    data[position] ^= 1 << bit
    parsed = parse_producer_snapshot(bytes(data))
    assert not parsed.crc_valid
    assert parsed.damage[0].kind is DamageKind.CRC


def test_producer_snapshot_with_a_lying_count():
    for count in (-1, 2**31 - 1, 0):
        data = encode_producers([ProducerEntry(1, 0, 9, 9, 4, 1000, -1, -1)])
        parsed = parse_producer_snapshot(data[:6] + struct.pack(">i", count) + data[10:])
        assert {place.kind for place in parsed.damage} == {DamageKind.CRC, DamageKind.COUNT}
        assert len(parsed.entries) == 1


def test_producer_snapshot_that_is_none():
    with pytest.raises(UnexpectedEnd):
        parse_producer_snapshot(b"")
    with pytest.raises(UnsupportedFormat):
        parse_producer_snapshot(bytes(10))


def test_recordings_hold_no_damage_and_equal_the_declarations(incident):
    root = incident("unclean-election-2.8") / "snapshots"
    seen = dict.fromkeys((".index", ".timeindex", ".txnindex", ".snapshot"), 0)
    index: Any
    for path in sorted(root.rglob("*")):
        if path.suffix not in seen or not path.is_file():
            continue
        data = path.read_bytes()
        if path.suffix == ".index":
            index = parse_offset_index(data)
            reference = construct.GreedyRange(OFFSET_INDEX_LAYOUT.declaration).parse(data[: index.zero_tail.position])
            assert [tuple(entry) for entry in index.entries.tolist()] == [
                (row.relative_offset, row.position) for row in reference
            ]
        elif path.suffix == ".timeindex":
            index = parse_time_index(data)
            reference = construct.GreedyRange(TIME_INDEX_LAYOUT.declaration).parse(data[: index.zero_tail.position])
            assert [tuple(entry) for entry in index.entries.tolist()] == [
                (row.timestamp, row.relative_offset) for row in reference
            ]
        elif path.suffix == ".txnindex":
            index = parse_txn_index(data)
            reference = construct.GreedyRange(TXN_INDEX_LAYOUT.declaration).parse(data)
            assert [entry._asdict() for entry in index.entries] == [
                {k: v for k, v in row.items() if k != "_io"} for row in reference
            ]
        else:
            index = parse_producer_snapshot(data)
            reference = construct.Struct(
                "header" / HEADER_LAYOUT.declaration,
                "entries" / ENTRY_LAYOUT.declaration[construct.this.header.count],
            ).parse(data)
            assert [entry._asdict() for entry in index.entries] == [
                {k: v for k, v in row.items() if k != "_io"} for row in reference.entries
            ]
            assert isinstance(index, ProducerSnapshot)
        assert index.damage == ()
        seen[path.suffix] += 1
    assert min(seen[".index"], seen[".timeindex"], seen[".snapshot"]) > 0


@given(st.binary(max_size=300))
def test_any_bytes(data):
    for parse in (parse_offset_index, parse_time_index, parse_txn_index):
        parsed = parse(data)
        assert len(parsed.entries) <= len(data) // 8
        assert all(0 <= place.span.position <= place.span.end <= len(data) for place in parsed.damage)
    with contextlib.suppress(FormatError):
        parse_producer_snapshot(data)
    assert np.array_equal(parse_offset_index(memoryview(data)).entries, parse_offset_index(data).entries)
