"""The distinct values of a column; `np.unique` loads `numpy.ma` first, a fifth of the start-up of a command."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Kind = TypeVar("Kind", bound=np.generic)


def distinct(values: NDArray[Kind]) -> NDArray[Kind]:
    """Return each value once, in ascending order."""
    ordered = np.sort(values)
    return ordered[_begins(ordered)]


def first_of_each(values: NDArray[Kind]) -> tuple[NDArray[Kind], NDArray[np.int64]]:
    """Return each value once, in ascending order, and the index at which it occurs first."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    begins = _begins(ordered)
    return ordered[begins], order[begins]


def _begins(ordered: NDArray[Kind]) -> NDArray[np.bool_]:
    begins = np.ones(len(ordered), dtype=np.bool_)
    begins[1:] = ordered[1:] != ordered[:-1]
    return begins
