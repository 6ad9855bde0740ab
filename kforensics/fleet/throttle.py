"""Reading behind a live broker's back: at a bounded rate, and at the lowest priority for disk and processor."""

import contextlib
import ctypes
import os
import platform
import sys
import time
from collections.abc import Callable

from kforensics.formats.segment.walk import SegmentBytes

LARGEST_READ = 1 << 20
"""Bytes that are read between two looks at the clock."""

# ioprio_set(2): class 3 is idle, which gets the disk when nobody else wants it.
_IOPRIO_SET = {"x86_64": 251, "aarch64": 30, "arm64": 30, "ppc64le": 273, "s390x": 282, "riscv64": 30}
_WHO_PROCESS, _CLASS_SHIFT, _CLASS_IDLE = 1, 13, 3
_NICE = 19


def lower_priority() -> None:
    """Step behind everyone else for disk and processor, as far as the system allows."""
    with contextlib.suppress(OSError):
        os.nice(_NICE)
    number = _IOPRIO_SET.get(platform.machine())
    if sys.platform == "linux" and number is not None:
        libc = ctypes.CDLL(None, use_errno=True)
        # Of no avail with some I/O schedulers; a refusal changes nothing.
        libc.syscall(number, _WHO_PROCESS, 0, _CLASS_IDLE << _CLASS_SHIFT)


class RateLimit:
    """A budget of bytes a second, shared by all files that are read one after the other.

    Args:
        rate: bytes a second.
        clock: seconds, rising.
        sleep: waits for seconds.
    """

    def __init__(
        self, rate: int, *, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._rate = rate
        self._clock = clock
        self._sleep = sleep
        self._free_at = clock()

    def spend(self, count: int) -> None:
        """Wait until the bytes read so far fit the rate."""
        now = self._clock()
        self._free_at = max(self._free_at, now) + count / self._rate
        if self._free_at > now:
            self._sleep(self._free_at - now)

    def wrap(self, source: SegmentBytes) -> SegmentBytes:
        """The same bytes, given out at the rate."""
        return _LimitedBytes(source, self)


class _LimitedBytes:
    def __init__(self, source: SegmentBytes, limit: RateLimit) -> None:
        self._source = source
        self._limit = limit
        self.size = source.size

    def read_into(self, position: int, buffer: memoryview) -> int:
        filled = 0
        while filled < len(buffer):
            wanted = buffer[filled : filled + LARGEST_READ]
            count = self._source.read_into(position + filled, wanted)
            self._limit.spend(count)
            filled += count
            if count < len(wanted):
                break
        return filled
