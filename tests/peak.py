"""Peak memory of a process by itself.

`ru_maxrss` of a child starts at what its parent held when it was forked, also after exec: in a large test process it says nothing.
"""

import resource
from pathlib import Path


def own_peak_mebibytes() -> float:
    """The most that this process held at a time since it began its program, or that a child it waited for held."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    own = int(next(line for line in status.splitlines() if line.startswith("VmHWM:")).split()[1])
    return max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / 1024
