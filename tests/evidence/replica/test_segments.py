from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.damage import Absent, DamageKind
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.evidence.discovery.partition_dirs import find_places
from kforensics.evidence.model import BUCKET_OFFSETS
from kforensics.evidence.replica import segments
from kforensics.evidence.replica.batch_reader import FileBatchReader
from kforensics.evidence.replica.collect import collect_replica
from kforensics.evidence.replica.segments import add_digests, digest_batches, scan_segment
from kforensics.formats.log.batch_table import empty_batches
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from kforensics.formats.primitives.word_buffer import MemoryBytes


def rows(items):
    table = empty_batches(len(items))
    for at, (base, epoch, length, crc) in enumerate(items):
        table[at]["base_offset"], table[at]["partition_leader_epoch"], table[at]["length"], table[at]["crc"] = (
            base,
            epoch,
            length,
            crc,
        )
    return table


batches = st.lists(
    st.tuples(
        st.integers(0, 5 * BUCKET_OFFSETS),
        st.integers(-1, 2**31 - 1),
        st.integers(61, 2**31 - 1),
        st.integers(0, 2**32 - 1),
    ),
    min_size=1,
    max_size=30,
)


@given(batches, st.integers(0, 30))
def test_digests_add_up_however_segments_are_rolled(items, at):
    whole = digest_batches(rows(items))
    parts = add_digests([digest_batches(rows(items[:at])), digest_batches(rows(items[at:]))])

    assert all((whole[name] == parts[name]).all() for name in ("bucket", "low", "high", "batches"))


@given(batches, st.data())
def test_a_change_of_any_column_changes_the_digest(items, data):
    at = data.draw(st.integers(0, len(items) - 1))
    column = data.draw(st.integers(1, 3))
    changed = list(items)
    changed[at] = tuple(value ^ 1 if n == column else value for n, value in enumerate(items[at]))

    whole, other = digest_batches(rows(items)), digest_batches(rows(changed))

    assert not all((whole[name] == other[name]).all() for name in ("low", "high"))


def batch(base, epoch, count=3):
    return encode_record_batch(build_record_batch(base, [(1000, b"k", b"v")] * count, partition_leader_epoch=epoch))


def test_a_segment_is_summed_up():
    data = batch(10, 0) + batch(13, 0) + batch(16, 2)

    found = scan_segment(MemoryBytes(data), path="t-0/x.log", base_offset=10)

    assert (10, 18, 3, 9) == (found.first_offset, found.last_offset, found.batch_count, found.record_count)
    assert ((0, 10), (2, 16)) == found.epochs
    assert (len(data), 19) == (found.valid_length, found.recovered_end_offset)
    assert () == found.damage


def test_recovery_ends_before_the_first_bad_batch_and_content_behind_it_is_kept():
    first, bad, last = batch(0, 0), bytearray(batch(3, 0)), batch(6, 0)
    bad[-1] ^= 0x40

    found = scan_segment(MemoryBytes(first + bytes(bad) + last), path="x", base_offset=0)

    assert (len(first), 3, 8) == (found.valid_length, found.recovered_end_offset, found.last_offset)
    assert [DamageKind.CRC] == [damage.kind for damage in found.damage]
    assert 2 == found.batch_count


def test_an_empty_segment_has_no_offsets():
    found = scan_segment(MemoryBytes(b""), path="x", base_offset=7)

    assert (Absent.NOT_APPLICABLE, Absent.NOT_APPLICABLE, 0) == (
        found.first_offset,
        found.last_offset,
        found.batch_count,
    )


def test_a_segment_of_many_batches_is_read_again_where_it_is_asked_for(fixtures, monkeypatch):
    inputs = find_inputs([fixtures / "unclean-election" / "broker-1"])
    places = find_places(inputs)
    place = next(group[0] for tp, group in places.by_partition.items() if str(tp) == "orders-0")
    reader = FileBatchReader([one.root for one in inputs.found])
    kept = collect_replica(place).replica
    monkeypatch.setattr(segments, "KEPT_BATCHES", 3)
    large = collect_replica(place).replica

    assert isinstance(large.segments[0].batches, Absent)
    assert (kept.segments[0].digests["low"] == large.segments[0].digests["low"]).all()
    for first, last in ((0, 102), (60, 60), (100, 500), (200, 300)):
        one, other = reader.batches(kept, first, last), reader.batches(large, first, last)
        assert np.array_equal(one["base_offset"], other["base_offset"])
        assert [r.offset for r in reader.records(kept, first, last)] == [
            r.offset for r in reader.records(large, first, last)
        ]


def test_a_file_that_vanished_gives_nothing(tmp_path, fixtures):
    inputs = find_inputs([fixtures / "unclean-election" / "broker-1"])
    place = find_places(inputs).by_partition[
        next(tp for tp in find_places(inputs).by_partition if str(tp) == "orders-0")
    ][0]
    replica = collect_replica(place).replica

    assert [] == list(FileBatchReader([tmp_path]).records(replica, 0, 10))


def thinned(base, count=3):
    whole = build_record_batch(base, [(1000, b"k", b"v")] * count)
    return encode_record_batch(replace(whole, records=whole.records[:1]))


def torn(data):
    return data[:-1] + bytes([data[-1] ^ 1])


@pytest.mark.parametrize(
    ("data", "below"),
    [
        ([batch(0, 0), batch(3, 0)], 0),
        ([batch(0, 0), batch(9, 0)], 0),
        ([batch(0, 0), thinned(3), batch(6, 0)], 6),
        ([thinned(0), batch(3, 0), batch(9, 0), batch(12, 0)], 9),
        ([thinned(0), batch(3, 0), torn(batch(6, 0)), batch(9, 0)], 3),
    ],
    ids=["all", "a gap alone", "a thinned batch", "a gap behind one", "a damaged batch behind one"],
)
def test_the_last_trace_of_a_cleaner_is_kept_and_damage_is_none(data, below):
    found = scan_segment(MemoryBytes(b"".join(data)), path="t-0/x.log", base_offset=0)

    assert (found.thinned_below, found.is_thinned) == (below, bool(below))
