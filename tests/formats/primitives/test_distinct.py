"""Distinct values, as numpy finds them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kforensics.formats.primitives.numbers import distinct, first_of_each


@given(st.lists(st.integers(-3, 3)))
def test_values_and_the_places_where_they_occur_first_are_those_of_numpy(values):
    column = np.array(values, dtype=np.int64)
    expected, places = np.unique(column, return_index=True)

    assert distinct(column).tolist() == expected.tolist()
    found, firsts = first_of_each(column)
    assert (found.tolist(), firsts.tolist()) == (expected.tolist(), places.tolist())
