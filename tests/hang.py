"""An end to what would never end; it measures nothing, since what it guards takes a few seconds on a slow machine too."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

HANG_SECONDS = 180


@contextmanager
def no_hang() -> Iterator[None]:
    """`with no_hang(): …` fails a call in the main thread that waits for a pipe, reads without end, or backtracks for hours."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        pytest.fail(f"no end after {HANG_SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(HANG_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
