"""Limit the rate at which evidence is read: the disks of a live broker belong to the broker first."""

import time
from collections.abc import Callable

PIECES_PER_SECOND = 20
"""A paced reader reads in pieces of this part of a second, so that the broker's own reads never wait long behind a large one."""


class Pace:
    """A rate in bytes per second, kept over any interval: unused bytes are not saved up."""

    def __init__(
        self,
        bytes_per_second: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate = bytes_per_second
        self._clock = clock
        self._sleep = sleep
        self._due = clock()

    @property
    def piece(self) -> int:
        """Return the number of bytes to read at a time."""
        return max(self._rate // PIECES_PER_SECOND, 4096)

    def spent(self, count: int) -> None:
        """Wait until this many bytes more fit the rate.

        Args:
            count: the bytes that were just read.
        """
        now = self._clock()
        self._due = max(self._due, now) + count / self._rate
        if self._due > now:
            self._sleep(self._due - now)
