from hypothesis import given
from hypothesis import strategies as st

from kforensics.source import walk
from kforensics.source.walk import PackedNames


@given(st.lists(st.text("ab-.", min_size=1), max_size=20), st.integers(1, 7))
def test_packed_names_are_those_that_were_given(names, at_once):
    before, walk.NAMES_AT_ONCE = walk.NAMES_AT_ONCE, at_once
    try:
        packed = PackedNames.of(names)
    finally:
        walk.NAMES_AT_ONCE = before

    assert (names, len(names), bool(names)) == (list(packed), len(packed), bool(packed))
    assert all(group.count("/") < at_once for group in packed.groups)
