"""How fast evidence may be read: on the disks of a live broker the broker comes first."""

import time
from collections.abc import Callable

PIECES_PER_SECOND = 20
"""A paced reader reads in pieces of this part of a second, so that nobody waits behind a large read for long."""


class Pace:
    """Bytes per second, kept over any stretch of time: what was not used is not saved up."""

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
        """Bytes to read at a time."""
        return max(self._rate // PIECES_PER_SECOND, 4096)

    def spent(self, count: int) -> None:
        """Wait until this many bytes more fit the rate."""
        now = self._clock()
        self._due = max(self._due, now) + count / self._rate
        if self._due > now:
            self._sleep(self._due - now)
