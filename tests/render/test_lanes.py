from hypothesis import given
from hypothesis import strategies as st

from kforensics.render.blocks import Lane
from kforensics.render.lanes import ASCII_MARKS, draw_lane, scale_of
from kforensics.units import EpochEntry


def drawn(*lanes, width=20):
    scale = scale_of(lanes, width)
    return [draw_lane(lane, scale, marks=ASCII_MARKS) for lane in lanes]


def test_a_truncation_is_drawn_to_scale():
    whole, truncation = drawn(Lane(start=0, end=100), Lane(start=0, end=100, truncated_from=50))

    assert "=" * 20 == whole
    assert "=" * 10 + "x" * 10 == truncation


def test_epochs_alternate_and_are_named():
    (line,) = drawn(Lane(start=0, end=100, epochs=(EpochEntry(0, 0), EpochEntry(7, 50))))

    assert "====e0====----e7----" == line


def test_a_tiny_truncation_is_still_visible():
    lanes = (Lane(start=0, end=1_000_000, truncated_from=999_999), Lane(start=0, end=1_000_000))

    assert "x" in drawn(*lanes)[0]
    assert "x" not in drawn(*lanes)[1]


def test_an_empty_log_is_blank():
    assert " " * 20 == drawn(Lane(start=0, end=100), Lane(start=50, end=50))[1]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2**62),
            st.integers(0, 2**40),
            st.none() | st.integers(0, 2**62),
            st.none() | st.integers(0, 2**62),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_any_lane_has_the_width_of_the_scale(lanes):
    made = [
        Lane(
            start=start,
            end=start + count,
            truncated_from=truncation,
            differs_from=differs,
            epochs=(EpochEntry(3, start),),
        )
        for start, count, truncation, differs in lanes
    ]

    assert {20} == {len(line) for line in drawn(*made)}
