"""The state of share partitions: updates over snapshots, offset by offset."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.evidence.coordinators.group_log import Place
from kforensics.evidence.coordinators.transaction_log import UNCHANGED, Delivery, ShareChange, SharePartition
from kforensics.reconcile.groups import state as share_state
from kforensics.reconcile.groups.state import combined, played


@st.composite
def deliveries(draw):
    first = draw(st.integers(0, 20))
    return Delivery(first, first + draw(st.integers(0, 6)), draw(st.sampled_from([0, 2, 4])), draw(st.integers(1, 3)))


@given(st.lists(deliveries(), max_size=4), st.lists(deliveries(), max_size=4), st.integers(0, 12))
def test_each_offset_has_the_delivery_of_the_highest_count_and_state(before, update, start):
    found = combined(before, update, start)

    held = {at: (one.delivered, one.state) for one in found for at in range(one.first_offset, one.last_offset + 1)}
    expected: dict[int, tuple[int, int]] = {}
    for one in (*before, *update):
        for at in range(max(one.first_offset, start), one.last_offset + 1):
            expected[at] = max(expected.get(at, (0, 0)), (one.delivered, one.state))
    assert held == expected
    for one, behind in pairwise(found):
        assert one.last_offset < behind.first_offset
        is_joined = one.last_offset + 1 == behind.first_offset
        assert not is_joined or (one.state, one.delivered) != (behind.state, behind.delivered)


def test_an_update_archives_the_rest_of_a_run():
    before = [Delivery(10, 19, 0, 1)]
    update = [Delivery(10, 14, 2, 1), Delivery(15, 16, 4, 2)]

    assert combined(before, update, 12) == (Delivery(12, 14, 2, 1), Delivery(15, 16, 4, 2), Delivery(17, 19, 0, 1))
    assert combined((), (), 0) == ()
    assert combined([Delivery(0, 1, 0, 1)], [Delivery(5, 6, 0, 1)], 0) == (Delivery(0, 1, 0, 1), Delivery(5, 6, 0, 1))


KEY = SharePartition("billing", "AAAAAAAAAAAAAAAAAAAAAQ", 0)


def update(offset, start, found):
    at = Place(offset, 0, 0, "0.log", 0)
    return ShareChange(KEY, at, is_update=offset > 0, start_offset=start, leader_epoch=1, deliveries=tuple(found))


@given(
    st.lists(
        st.tuples(st.one_of(st.just(UNCHANGED), st.integers(0, 20)), st.lists(deliveries(), max_size=3)), min_size=1
    ),
    st.sampled_from([0, 3, 256]),
)
def test_deliveries_that_are_combined_late_come_to_the_same(records, most_waiting):
    changes = [update(at, max(start, 0) if not at else start, found) for at, (start, found) in enumerate(records)]
    start = 0
    known: tuple[Delivery, ...] = ()
    for one in changes:
        start = start if one.start_offset == UNCHANGED else one.start_offset
        known = combined(known, one.deliveries, start)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(share_state, "MOST_WAITING", most_waiting)
        (state,) = played(changes).states.values()

    assert (start, known, changes[-1].at) == (state.start_offset, state.deliveries, state.at)


def test_a_run_that_ends_before_it_begins_is_none():
    assert combined([Delivery(9, 3, 0, 1)], [Delivery(2, 4, 1, 1)], 0) == (Delivery(2, 4, 1, 1),)


def test_a_long_log_of_single_deliveries_is_played_without_comparing_each_with_each(monkeypatch):
    counts = []
    combine = share_state.combined

    def counted(*given):
        counts.append(1)
        return combine(*given)

    monkeypatch.setattr(share_state, "combined", counted)
    changes = [update(at, 0, [Delivery(2 * at, 2 * at, 1, 1)]) for at in range(20_000)]

    (state,) = played(changes).states.values()

    assert 20_000 == len(state.deliveries)
    assert len(counts) < 20


def test_a_share_group_that_was_removed_and_began_lower_was_set_back():
    removed = ShareChange(KEY, Place(5, 0, 60_000, "0.log", 0), is_removed=True)

    lower, same = (played([update(0, 50, ()), removed, update(0, start, ())]) for start in (20, 50))
    (back,) = lower.setbacks

    assert (50, 20, False, removed.at) == (back.previous, back.offset, back.is_reset, back.removed)
    assert [KEY] == [key for key, _, _ in lower.removals]
    assert [] == same.setbacks


@pytest.mark.parametrize(
    ("done", "reset_epoch", "previous"),
    [
        ([Delivery(0, 9, 2, 1)], 1, 10),
        ([Delivery(0, 9, 2, 1)], 0, 10),
        ([Delivery(4, 9, 2, 1)], 1, 10),  # it had given 0 to 3 back
        ([Delivery(0, 9, 0, 1)], 1, None),
    ],
)
def test_records_that_are_done_with_above_the_start_offset_are_read_again_after_a_reset(done, reset_epoch, previous):
    anew = update(2, 0, ())._replace(is_update=False, state_epoch=reset_epoch)
    setbacks = played([update(0, 0, ()), update(1, UNCHANGED, done), anew]).setbacks

    assert [(one.previous, one.offset) for one in setbacks] == [(previous, 0)] * (previous is not None)


@pytest.mark.parametrize(
    ("found", "start", "skipped"),
    [
        ([Delivery(0, 14, 2, 1)], 15, []),
        ([Delivery(0, 14, 2, 1)], 30, [(15, 30)]),
        ([Delivery(0, 14, 0, 1)], 15, [(0, 15)]),
        ([Delivery(0, 4, 2, 1), Delivery(10, 19, 2, 1)], 20, [(5, 20)]),
        ([Delivery(0, 9, 2, 1), Delivery(10, 19, 4, 5)], 20, []),
    ],
    ids=["acknowledged", "deleted behind it", "delivered alone", "a hole", "given up"],
)
def test_a_start_that_goes_past_what_its_group_was_not_done_with_skips_it(found, start, skipped):
    changes = [update(0, 0, ()), update(1, 0, found), update(2, start, ())]

    assert [(one.previous, one.offset) for one in played(changes).skips] == skipped
