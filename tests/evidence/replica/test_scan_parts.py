"""A segment scanned in parts gives what one scan gives, and is left to one scan where anything is wrong."""

from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kforensics.evidence.replica import segments
from kforensics.evidence.replica.segments import joined, parts_of, scan_part, scan_segment
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from kforensics.source.mapped import open_evidence

NAME = f"{0:020d}.log"


@pytest.fixture
def scan(tmp_path, monkeypatch):
    """Write batches as a segment; it as one scan and as several parts give it, and how many these were."""
    monkeypatch.setattr(segments, "SMALLEST_PART", 64)
    place: Any = SimpleNamespace(state=SimpleNamespace(root=tmp_path))

    def run(batches, count=3):
        (tmp_path / NAME).write_bytes(b"".join(batches))
        parts = parts_of(place, NAME, count)
        with open_evidence(tmp_path / NAME) as file:
            whole = scan_segment(file, path=NAME, base_offset=0, mtime_ns=file.mtime_ns)
        scanned = [one for part in parts if (one := scan_part(place, NAME, part)) is not None]
        return whole, joined(NAME, scanned), len(parts)

    return run


def batches_of(epochs):
    return [
        encode_record_batch(
            build_record_batch(at * 2, [(1_700_000_000_000 + at, b"k", b"v" * 40)] * 2, partition_leader_epoch=epoch)
        )
        for at, epoch in enumerate(epochs)
    ]


@pytest.mark.parametrize("epochs", [[5] * 30, [1] * 7 + [2] * 9 + [4] * 14, [-1] * 30], ids=["one", "several", "none"])
@pytest.mark.parametrize("count", [2, 3, 6])
def test_parts_are_one_scan(scan, epochs, count):
    whole, found, parts = scan(batches_of(epochs), count)

    assert parts == count
    for one in fields(whole):
        np.testing.assert_array_equal(getattr(whole, one.name), getattr(found, one.name), err_msg=one.name)


@pytest.mark.parametrize("thinned", [2, 20])
@pytest.mark.parametrize("gone", [{}, {10}, {14, 15}, set(range(8, 12))])
def test_traces_of_a_cleaner_are_the_same_in_parts(scan, thinned, gone):
    batches = batches_of([5] * 30)
    whole = build_record_batch(thinned * 2, [(1_700_000_000_000, b"k", b"v" * 40)] * 2, partition_leader_epoch=5)
    batches[thinned] = encode_record_batch(replace(whole, records=whole.records[:1]))

    one, found, parts = scan([batch for at, batch in enumerate(batches) if at not in gone], 3)

    assert (parts, one.thinned_below) == (3, max(thinned * 2 + 2, max(gone, default=-1) * 2 + 2))
    assert found.thinned_below == one.thinned_below


def broken(batches):
    batches[3] = batches[3][:-1] + bytes([batches[3][-1] ^ 1])
    return batches


@pytest.mark.parametrize(
    "batches",
    [
        broken(batches_of([5] * 30)),
        batches_of([5] * 15 + [4] * 15),
        batches_of([5] * 15 + [-1] * 15),
        batches_of([5] * 15) * 2,
    ],
    ids=["a checksum", "a lower epoch", "no epoch any more", "offsets again"],
)
def test_a_segment_with_anything_wrong_is_left_to_one_scan(scan, batches):
    whole, found, parts = scan(batches, 2)

    assert (bool(whole.damage), found, parts) == (True, None, 2)


def test_a_short_segment_or_one_of_an_older_format_is_read_whole(scan, monkeypatch):
    assert scan(batches_of([5] * 30), 1)[2] == 1
    assert scan([b"\0" * 16 + b"\1" + b"\0" * 4000])[2] == 1
    monkeypatch.setattr(segments, "SMALLEST_PART", 1 << 20)
    assert scan(batches_of([5] * 30))[2] == 1
