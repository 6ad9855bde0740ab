"""Columns give back every number that went in, whatever a log claims."""

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.evidence.captured.columns import (
    NO_CONTROL,
    BatchPacker,
    RecordPacker,
    column_of,
    gather,
    narrow,
    npy_of,
    unpack_batches,
    unpack_records,
)
from kforensics.formats.log.batch_table import BATCH_DTYPE, empty_batches
from kforensics.formats.log.records import Record

COMPUTED = {"crc_valid", "segment"}


@st.composite
def tables(draw):
    rows = empty_batches(draw(st.integers(1, 12)))
    for name in set(BATCH_DTYPE.names or ()) - COMPUTED:
        limits = np.iinfo(BATCH_DTYPE[name])
        values = st.integers(int(limits.min), int(limits.max))
        rows[name] = draw(st.lists(values, min_size=len(rows), max_size=len(rows)))
    rows["crc_valid"] = True
    return rows


@given(rows=tables(), at=st.integers(0, 12))
def test_batches_come_back_as_they_were(rows, at):
    packer = BatchPacker()
    windows = [one for one in (rows[:at], rows[at:]) if len(one)]
    pieces = [
        packer.pack(one, np.full(len(one), NO_CONTROL, dtype=np.int16), np.full(len(one), -1, dtype=np.int32))
        for one in windows
    ]
    files = {name: npy_of(np.concatenate([narrow(piece[name]) for piece in pieces])) for name in pieces[0]}
    columns = gather([(0, 0, len(rows))], list(files), lambda _, name: column_of(files[name]))

    assert rows.tolist() == unpack_batches(columns, packer.first).tolist()


def test_records_come_back_with_their_digests():
    plain = {
        "sequence": -1,
        "partition_leader_epoch": -1,
        "producer_epoch": -1,
        "magic": 2,
    }
    records = [
        Record(offset=at * 3, timestamp_ms=at - 5, key=key, value=value, headers=headers, batch_position=at * 70, batch_base_offset=at,
               producer_id=at, is_transactional=at % 2 == 0, is_control=control, **plain)
        for at, (key, value, headers, control) in enumerate(
            [
                (None, b"v" * 16, (), False),
                (b"k" * 16, None, ((b"h" * 16, None),), False),
                (b"\0\0\0\1", None, (), True),
            ]
        )
    ]  # fmt: skip
    packer = RecordPacker()
    pieces = [packer.pack(records[:1]), packer.pack(records[1:])]
    columns = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}

    assert records == list(unpack_records(columns))


@pytest.mark.parametrize(
    "data",
    [
        npy_of(np.arange(5)).replace(b"(5,)", b"(9,)"),
        npy_of(np.arange(5)).replace(b"'|i1'", b"'|S1'"),
        npy_of(np.arange(5))[:-1],
        npy_of(np.arange(5)).replace(b"(5,)", b"(-5,)").replace(b" \n", b"\n"),
        b"PK",
        b"",
        # NumPy's reader of heads fails on these in ways of their own.
        npy_of(np.arange(5)).replace(b"(5,)", b"(5,("),
        npy_of(np.arange(5)).replace(b"False", b"F\0lse"),
        npy_of(np.arange(5)).replace(b"(5,)", b"(0x5,)"),
        npy_of(np.arange(5)).replace(b"'descr'", b"\xff\xfe\xfd\xfc\xfbr'"),
        npy_of(np.arange(16, dtype=np.uint8).reshape(1, 16)).replace(b"'|u1'", b"'|i1'"),
    ],
)
def test_a_column_that_lies_is_refused(data):
    with pytest.raises(ValueError):
        column_of(data)


@given(data=st.binary(max_size=3), at=st.integers(6, 127))
def test_no_change_of_a_head_is_more_than_a_refusal(data, at):
    column = npy_of(np.arange(5))
    changed = column[:at] + data + column[at + len(data) :]
    with contextlib.suppress(ValueError):
        assert column_of(changed).ndim == 1


def test_rows_behind_the_end_of_a_column_are_refused():
    with pytest.raises(ValueError, match="ends behind its column"):
        gather([(0, 3, 3)], ["crc"], lambda *_: np.arange(5))
