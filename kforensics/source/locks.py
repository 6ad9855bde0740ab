"""Whether a process holds the lock of a log directory, without trying to take it."""

import os
from collections.abc import Iterable
from pathlib import Path

LOCKS = Path("/proc/locks")


def is_locked(paths: Iterable[Path]) -> bool | None:
    """Whether another process holds a lock on one of the files; none where the system does not say.

    A broker locks `.lock` in each of its log directories for as long as it runs (FileLock, 0.8 to 4.x).

    Args:
        paths: of the files; what is not there is locked by no process.
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
