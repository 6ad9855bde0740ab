"""Times for people: ISO 8601 in UTC, whatever the number on disk."""

from datetime import UTC, datetime, timedelta

_START = datetime(1970, 1, 1, tzinfo=UTC)


def utc_text(time_ms: int) -> str:
    """Milliseconds since 1970 as `2026-11-21T06:26:13.332Z`; a time outside of years 1 to 9999 as its number."""
    try:
        moment = _START + timedelta(milliseconds=time_ms)
    except OverflowError:
        return f"{time_ms} ms"
    return moment.strftime("%Y-%m-%dT%H:%M:%S.").rjust(20, "0") + f"{time_ms % 1000:03d}Z"
