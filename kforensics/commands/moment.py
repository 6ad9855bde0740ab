"""The present moment, as manifests and pages state it: fixed where SOURCE_DATE_EPOCH is set."""

import os
import time


def now_ms() -> int:
    """Return milliseconds since 1970: `SOURCE_DATE_EPOCH` (seconds) where it is set, else the clock."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    return int(fixed) * 1000 if fixed.isdecimal() and len(fixed) < 12 else time.time_ns() // 1_000_000
