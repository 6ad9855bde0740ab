"""Time zones as people write them."""

import datetime as dt
import re

from kforensics.errors import UsageError

_OFFSET = re.compile(r"(?P<sign>[+-])(?P<hours>\d{2}):?(?P<minutes>\d{2})")


def parse_zone(text: str) -> dt.tzinfo:
    """Return a zone as people write it.

    Args:
        text: `+02:00`, `UTC` or a name of the IANA database such as `Europe/Berlin`.
    """
    if text.upper() in {"UTC", "Z", "GMT"}:
        return dt.UTC
    found = _OFFSET.fullmatch(text)
    if found is not None and int(found["hours"]) < 24:
        ahead = dt.timedelta(hours=int(found["hours"]), minutes=int(found["minutes"]))
        return dt.timezone(ahead if found["sign"] == "+" else -ahead)
    import zoneinfo  # noqa: PLC0415 - it reads how Python was built, and few zones are named

    try:
        return zoneinfo.ZoneInfo(text)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UsageError(f"{text!r} is no time zone; write it as +02:00 or Europe/Berlin") from error


def ahead_of_utc_ms(zone: dt.tzinfo, wall_ms: int) -> int:
    """Return how far the zone is ahead of UTC at a time of its own clocks, in ms.

    Args:
        wall_ms: what the zone's clocks show, as ms since 1970.
    """
    wall = dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=wall_ms)  # noqa: DTZ001 - a wall clock time is meant
    offset = zone.utcoffset(wall)
    return round(offset.total_seconds() * 1000) if offset is not None else 0
