"""Reading behind a live broker: at the lowest priority for disk and processor."""

import contextlib
import ctypes
import os
import platform
import sys

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
