"""Times for people: ISO 8601 in UTC, whatever the number on disk."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

_START = datetime(1970, 1, 1, tzinfo=UTC)


def utc_text(time_ms: int) -> str:
    """Milliseconds since 1970 as `2026-11-21T06:26:13.332Z`; a time outside of years 1 to 9999 as its number."""
    seconds, rest = divmod(time_ms, 1000)
    text = _second_text(seconds)
    return f"{time_ms} ms" if text is None else f"{text}.{rest:03d}Z"


@lru_cache(maxsize=1024)
def _second_text(seconds: int) -> str | None:
    """Consecutive records share their second, and making its text takes long."""
    try:
        moment = _START + timedelta(seconds=seconds)
    except OverflowError:
        return None
    return moment.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
