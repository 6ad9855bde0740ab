from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.reconcile.logs.divergence import first_divergence
from kforensics.reconcile.logs.loaded_log import load_log, load_logs
from tests.builders.logs import MemoryReader, batch, record, replica


def divergence(one, other, records=None):
    return first_divergence(load_log(one), load_log(other), MemoryReader(records or {}))


def test_equal_logs_do_not_differ_whatever_their_segment_rolls():
    one = replica(1, [batch(0, 9, 0), batch(10, 19, 0)], [batch(20, 29, 1)])
    other = replica(2, [batch(0, 9, 0)], [batch(10, 19, 0), batch(20, 29, 1)])

    assert divergence(one, other) is None


def test_a_longer_log_does_not_differ():
    assert divergence(replica(1, [batch(0, 9, 0)]), replica(2, [batch(0, 9, 0), batch(10, 12, 0)])) is None


def test_the_same_bytes_in_another_epoch_differ():
    found = divergence(
        replica(1, [batch(0, 9, 0), batch(10, 12, 0, 7)]), replica(2, [batch(0, 9, 0), batch(10, 12, 1, 7)])
    )

    assert (10, "epoch") == (found.offset, found.kind)


def test_other_content_in_the_same_epoch_differs():
    found = divergence(
        replica(1, [batch(0, 9, 0), batch(10, 12, 0, 7)]), replica(2, [batch(0, 9, 0), batch(10, 12, 0, 8)])
    )

    assert (10, "content") == (found.offset, found.kind)
    assert {1, 2} == {citation.input for citation in found.citations}


def test_a_log_that_starts_later_is_compared_from_there():
    assert divergence(replica(1, [batch(0, 9, 0, 5), batch(10, 12, 0)]), replica(2, [batch(10, 12, 0)])) is None


def test_a_hole_without_compaction_differs():
    found = divergence(
        replica(1, [batch(0, 9, 0), batch(10, 19, 0), batch(20, 29, 0)]), replica(2, [batch(0, 9, 0), batch(20, 29, 0)])
    )

    assert (10, "content") == (found.offset, found.kind)


def test_compacted_logs_with_equal_survivors_do_not_differ():
    one = replica(1, [batch(0, 4, 0, 50), batch(5, 9, 0)], cleaned=5)
    other = replica(2, [batch(2, 4, 0, 51, count=2), batch(5, 9, 0)], cleaned=5, base=0)
    records = {
        "b1/t-0": [
            record(0, b"a"),
            record(1, b"b"),
            record(2, b"a"),
            record(3, b"c"),
            record(4, b"d"),
            record(6, b"b"),
            record(7, b"d"),
        ],
        "b2/t-0": [record(2, b"a"), record(3, b"c"), record(6, b"b"), record(7, b"d")],
    }

    assert divergence(one, other, records) is None


def test_a_record_that_compaction_can_not_have_dropped_differs():
    one = replica(1, [batch(0, 4, 0, 50), batch(5, 9, 0)], cleaned=5)
    other = replica(2, [batch(2, 4, 0, 51, count=2), batch(5, 9, 0)], cleaned=5, base=0)
    records = {"b1/t-0": [record(0, b"only"), record(2, b"a")], "b2/t-0": [record(2, b"a")]}

    found = divergence(one, other, records)

    assert (0, "record") == (found.offset, found.kind)


DELETED = record(5, b"k", None)


@pytest.mark.parametrize(
    ("held", "lacking", "parted"),
    [
        ([record(0, b"a"), DELETED], [record(0, b"a")], None),  # removed past its horizon
        ([record(0, b"a"), DELETED], [record(0, b"a"), record(3, b"k")], 5),  # it never had the tombstone
        ([DELETED, record(6, b"k")], [record(3, b"k"), record(6, b"k")], None),  # the key came back
        ([record(0, b"a"), DELETED], [record(0, b"a"), record(3, b"k", None)], None),  # deleted there as well
        ([record(0, b"a"), DELETED], [record(0, b"a"), record(3, b"k", transactional=True, producer=7)], None),
    ],
)
def test_a_tombstone_may_be_missing_where_what_it_deletes_is_gone(held, lacking, parted):
    one = replica(1, [batch(0, 9, 0, 50, count=3), batch(10, 12, 0)], cleaned=10, base=0)
    other = replica(2, [batch(0, 9, 0, 51, count=2), batch(10, 12, 0)], cleaned=10, base=0)
    # The record that it deletes is in one log alone, which by itself is a question at most.
    records = {"b1/t-0": held, "b2/t-0": lacking}

    found = divergence(one, other, records)

    assert (None if found is None or found.is_open else found.offset) == parted
    if parted:
        assert "lacks the tombstone" in found.detail
        assert {1, 2} == {citation.input for citation in found.citations}


def test_records_of_an_aborted_transaction_may_be_missing():
    one = replica(1, [batch(0, 4, 0, 50), batch(5, 9, 0)], cleaned=5)
    other = replica(2, [batch(1, 4, 0, 51, count=2), batch(5, 9, 0)], cleaned=5, base=0)
    abort = record(1, b"\x00\x00\x00\x00", b"", control=True, transactional=True, producer=7)
    records = {"b1/t-0": [record(0, b"x", transactional=True, producer=7), abort], "b2/t-0": [abort]}

    assert divergence(one, other, records) is None


def test_old_message_sets_are_compared_by_record():
    one = replica(1, [batch(0, 9, -1, 50, magic=1)])
    other = replica(2, [batch(0, 4, -1, 51, magic=1), batch(5, 9, -1, 52, magic=1)])
    same = [record(o, str(o).encode(), magic=1) for o in range(10)]
    changed = [*same[:7], record(7, b"other", magic=1), *same[8:]]

    assert divergence(one, other, {"b1/t-0": same, "b2/t-0": same}) is None
    assert 7 == divergence(one, other, {"b1/t-0": same, "b2/t-0": changed}).offset


@given(st.lists(st.integers(1, 70_000), min_size=1, max_size=12), st.integers(0, 11), st.booleans())
def test_the_first_changed_batch_is_found_in_any_bucket(sizes, at, swap):
    rows, changed, base = [], [], 0
    at = min(at, len(sizes) - 1)
    for number, size in enumerate(sizes):
        rows.append(batch(base, base + size - 1, 0, 1000 + number))
        changed.append(batch(base, base + size - 1, 0, 9 if number == at else 1000 + number))
        base += size
    one, other = replica(1, rows), replica(2, changed)

    found = divergence(other, one) if swap else divergence(one, other)

    assert rows[at][0] == found.offset
    assert divergence(one, replica(2, rows)) is None


def test_a_recompressed_batch_with_equal_records_does_not_differ():
    one = replica(1, [batch(0, 4, 0), batch(5, 9, 0, 7, attributes=1)])
    other = replica(2, [batch(0, 4, 0), batch(5, 9, 0, 8, attributes=4)])
    same = [record(o, str(o).encode()) for o in range(10)]
    changed = [*same[:7], record(7, b"other"), *same[8:]]

    assert divergence(one, other, {"b1/t-0": same, "b2/t-0": same}) is None
    assert (7, "record") == ((found := divergence(one, other, {"b1/t-0": same, "b2/t-0": changed})).offset, found.kind)


def test_many_records_that_compaction_took_hide_no_difference_behind_them(monkeypatch):
    monkeypatch.setattr("kforensics.reconcile.logs.divergence._MOST_MISSING", 2)
    one = replica(1, [batch(0, 9, 0, 50), batch(10, 12, 0)], cleaned=10)
    other = replica(2, [batch(0, 9, 0, 51, count=2), batch(10, 12, 0)], cleaned=10, base=0)
    both = [record(7, b"k"), record(8, b"other")]
    records = {
        "b1/t-0": [record(o, b"k") for o in range(8)] + [record(8, b"one")],
        "b2/t-0": both,
    }

    assert (8, "record") == ((found := divergence(one, other, records)).offset, found.kind)


def test_the_first_of_the_records_that_either_log_lacks_is_reported():
    one = replica(1, [batch(0, 9, -1, 50, magic=1)])
    other = replica(2, [batch(0, 9, -1, 51, magic=1)])
    every = [record(o, str(o).encode(), magic=1) for o in range(10)]

    found = divergence(one, other, {"b1/t-0": every[:3] + every[4:], "b2/t-0": every[:7] + every[8:]})

    assert 3 == found.offset


class _Unasked(MemoryReader):
    def batches(self, one, first_offset, last_offset):
        raise AssertionError(f"{one.path}: {first_offset} to {last_offset}")


def test_logs_that_are_loaded_alike_are_not_read_again():
    """Of both the end alone was read."""
    one, other, third = (
        replace(one, segments=tuple(replace(each, unread_below=10) for each in one.segments))
        for one in (
            replica(1, [batch(0, 9, 0), batch(10, 12, 0, 7), batch(13, 14, 0)]),
            replica(2, [batch(0, 9, 0), batch(10, 12, 0, 7), batch(13, 14, 0)]),
            replica(3, [batch(0, 9, 0), batch(10, 12, 0, 8), batch(13, 14, 0)]),
        )
    )
    first, second, differing = load_logs([one, other, third])

    assert first_divergence(first, second, _Unasked({})) is None
    with pytest.raises(AssertionError):
        first_divergence(first, differing, _Unasked({}))
    with pytest.raises(AssertionError):
        first_divergence(first, second, _Unasked({}), [])  # what it proves neither is asked for
