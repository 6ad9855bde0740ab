"""Zeros are passed over, and nothing else: what is left is the same as of a file that is read whole."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.formats.index import parse_offset_index, parse_time_index
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from kforensics.formats.primitives.word_buffer import MemoryBytes, first_nonzero, without_zero_tail
from kforensics.formats.segment.walk import Level, walk_segment
from kforensics.source.mapped import open_evidence, read_counts

GB = 1 << 30
PIECES = st.lists(st.one_of(st.binary(max_size=20), st.integers(0, 40).map(bytes)), max_size=6)


@given(PIECES, st.integers(0, 50))
def test_the_first_and_the_last_byte_that_is_not_zero_are_found(pieces, start):
    data = b"".join(pieces)
    start = min(start, len(data))

    assert without_zero_tail(MemoryBytes(data)) == data.rstrip(b"\0")
    assert first_nonzero(MemoryBytes(data), start, len(data)) == len(data) - len(data[start:].lstrip(b"\0"))


@given(PIECES)
@pytest.mark.parametrize("parse", [parse_offset_index, parse_time_index])
def test_an_index_means_the_same_without_the_zeros_at_its_end(parse, pieces):
    data = b"".join(pieces)
    whole, trimmed = parse(data), parse(data.rstrip(b"\0"), len(data))

    assert trimmed.entries.tolist() == whole.entries.tolist()
    assert (trimmed.zero_tail, trimmed.damage) == (whole.zero_tail, whole.damage)


def test_bytes_between_holes_are_found_and_holes_are_not_read(tmp_path):
    path = tmp_path / "index"
    path.write_bytes(b"")
    os.truncate(path, GB)
    with path.open("r+b") as file:
        file.seek(1 << 29)
        file.write(b"entry")
    if path.stat().st_blocks * 512 > GB // 2:
        pytest.skip("this file system has no holes")
    read_counts.reset()

    with open_evidence(path) as file:
        assert first_nonzero(file, 0, GB) == 1 << 29
        assert first_nonzero(file, (1 << 29) + 5, GB) == GB
    with path.open("r+b") as file:
        file.seek(1 << 22)
        file.write(b"entry")
        file.truncate(1 << 28)
    with open_evidence(path) as file:
        assert without_zero_tail(file) == bytes(1 << 22) + b"entry"
    assert read_counts.bytes < 1 << 20


@pytest.mark.parametrize("behind", [False, True])
def test_a_preallocated_segment_is_read_up_to_its_last_batch(tmp_path, behind):
    batch = encode_record_batch(build_record_batch(0, [(1_700_000_000_000, b"key", b"value")]))
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(batch)
    os.truncate(path, GB)
    if behind:
        with path.open("ab") as file:
            file.write((1).to_bytes(8) + batch[8:])
    if path.stat().st_blocks * 512 > GB // 2:
        pytest.skip("this file system has no holes")
    read_counts.reset()

    with open_evidence(path) as file:
        windows = list(walk_segment(file, level=Level.CRC))

    (damage,) = [damage for window in windows for damage in window.damage]
    assert damage.span == (len(batch), GB - len(batch))
    assert [position for window in windows for position in window.batches["position"].tolist()] == [0, GB][: 1 + behind]
    assert read_counts.bytes < 100 << 20
