"""Read evidence beside a live broker, whose disks and processors belong to it first: no faster than was asked, at the lowest priority, and aware of its locks."""

import contextlib
import ctypes
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

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
        """Wait until this many bytes more fit the rate."""
        now = self._clock()
        self._due = max(self._due, now) + count / self._rate
        if self._due > now:
            self._sleep(self._due - now)


# ioprio_set(2): class 3 is idle, which gets the disk when no other process wants it.
_IOPRIO_SET = {"x86_64": 251, "aarch64": 30, "arm64": 30, "ppc64le": 273, "s390x": 282, "riscv64": 30}
_WHO_PROCESS, _CLASS_SHIFT, _CLASS_IDLE = 1, 13, 3
_NICE = 19


def lower_priority() -> None:
    """Lower the priority of this process for disk and processor below that of all others, as far as the system allows."""
    with contextlib.suppress(OSError):
        os.nice(_NICE)
    number = _IOPRIO_SET.get(platform.machine())
    if sys.platform == "linux" and number is not None:
        libc = ctypes.CDLL(None, use_errno=True)
        # Of no avail with some I/O schedulers; a refusal changes nothing.
        libc.syscall(number, _WHO_PROCESS, 0, _CLASS_IDLE << _CLASS_SHIFT)


LOCKS = Path("/proc/locks")


def is_locked(paths: Iterable[Path]) -> bool | None:
    """Whether another process holds a lock on one of the files; none where the system does not say.

    A broker locks `.lock` in each of its log directories for as long as it runs (FileLock, 0.8 to 4.x).
    """
    try:
        held = {
            fields[5] for line in LOCKS.read_text().splitlines() if len(fields := line.replace("-> ", "").split()) > 5
        }
    except (OSError, ValueError):
        return None
    for path in paths:
        try:
            status = path.lstat()
        except OSError:
            continue
        if f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}" in held:
            return True
    return False
