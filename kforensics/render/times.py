"""Times on screens: ISO 8601 in UTC."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

_START = datetime(1970, 1, 1, tzinfo=UTC)


def utc_text(time_ms: int) -> str:
    """Return milliseconds since 1970 as `2026-11-21T06:26:13.332Z`, or as a number outside of the years 1 to 9999.

    Args:
        time_ms: in UTC; a claim from disk may be any number.
    """
    seconds, rest = divmod(time_ms, 1000)
    text = _second_text(seconds)
    return f"{time_ms} ms" if text is None else f"{text}.{rest:03d}Z"


@lru_cache(maxsize=1024)
def _second_text(seconds: int) -> str | None:
    """Return the text of a second; it is cached, since consecutive records share their second."""
    try:
        moment = _START + timedelta(seconds=seconds)
    except OverflowError:
        return None
    return moment.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")


def shift_text(shift_ms: int) -> str:
    """Return what was added to a time to make it UTC: `-2:00:00`, `+0:00:01.500`.

    Args:
        shift_ms: negative for a clock ahead of UTC.
    """
    seconds, millis = divmod(abs(shift_ms), 1000)
    text = f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}" + (f".{millis:03}" if millis else "")
    return f"{'-' if shift_ms < 0 else '+'}{text}"
