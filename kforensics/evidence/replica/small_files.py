"""Small files that thousands of partition directories hold with the same few bytes."""

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

Value = TypeVar("Value")

SHORT = 1 << 10
"""Bytes up to which it is likely that others hold the same."""


@lru_cache(maxsize=1 << 10)
def parsed_once(parse: Callable[[bytes], Value], data: bytes) -> Value:
    """Return a small file, understood once for all that hold the same bytes.

    Args:
        data: `SHORT` bytes at most.
    """
    return parse(data)
