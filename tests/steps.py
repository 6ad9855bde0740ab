"""What a call costs, counted in steps: the same on a fast machine, a slow one and a busy one.

A step is a line of the package that runs, or a function written in Python that is called, whosever it is. What C code does within one step
is not counted: where that could grow too, a test also bounds the memory or the bytes that were read.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import kforensics

_PACKAGE = str(Path(kforensics.__file__).parent)


def steps(call: Callable[[], object]) -> int:
    """The steps of a call in this thread. It is made twice, and the second counts: the first one imports modules and fills caches."""
    call()
    count = 0

    def line(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        if event == "line":
            count += 1
        return line

    def enter(frame: FrameType, _event: str, _argument: Any) -> Any:
        nonlocal count
        count += 1
        return line if frame.f_code.co_filename.startswith(_PACKAGE) else None

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        call()
    finally:
        sys.settrace(before)
    return count
