"""The state of share partitions: updates over snapshots, offset by offset."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kforensics.evidence.coordinators.share_log import Delivery
from kforensics.reconcile.groups.share_state import combined


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
