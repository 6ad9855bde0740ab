"""Times in log lines, in whatever layout they were written.

A time is found by its clock, `10:00:01`, with what stands before (a date in one of many orders, or none) and behind it
(a fraction, AM or PM, a zone), or as the number of seconds, milliseconds, microseconds or nanoseconds since 1970.
"""

import datetime as dt
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from kforensics.damage import Absent

LATEST_MS = 1 << 43
"""The end of the accepted times, in the year 2248."""

DAY_MS = 86_400_000
ZONE_STEP_MS = 15 * 60_000
"""Time zones differ from UTC by multiples of a quarter of an hour."""

WIDEST_ZONE_MS = 14 * 3_600_000
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_FIRST_DAY_MS = (dt.date(2011, 1, 1).toordinal() - _EPOCH_DAY) * DAY_MS
"""No log of Kafka is older."""
_ORDERS = (_DAY_FIRST := (2, 1, 0)), (2, 0, 1), (0, 1, 2)
"""The orders in which dates are written, by the places of the year, the month and the day."""
_MONTHS = {
    begin.encode(): number
    for number, begins in enumerate(
        (
            "jan gen ene janv янв",
            "feb fév fev фев",
            "mar mär maa mrt мар",
            "apr avr abr апр",
            "may mai mag maj mei мая май",
            "jun juin giu июн",
            "jul juil lug июл",
            "aug aoû ago авг",
            "sep set сен",
            "oct okt ott out окт",
            "nov ноя",
            "dec dez déc dic дек",
        ),
        1,
    )
    for begin in begins.split()
}
"""The months by the letters with which they begin, in the languages that are written most."""
_MONTH = rb"[A-Za-z\x80-\xff]{3,20}\.?"
_MONTH_BEGUN = re.compile(b"|".join(sorted(_MONTHS, reverse=True)))  # longer ones first
_ZONES = {
    **dict.fromkeys((b"Z", b"UTC", b"GMT", b"WET"), 0),
    **dict.fromkeys((b"CET", b"WEST"), 60),
    **dict.fromkeys((b"CEST", b"EET"), 120),
    **dict.fromkeys((b"EEST", b"MSK"), 180),
    b"JST": 540,
    b"EDT": -240,
    b"EST": -300,
    b"PDT": -420,
    b"PST": -480,
}
_CLOCK = re.compile(
    rb"(?<!\d)(?P<hour>\d{1,2})(?P<mark>[:.])(?P<minute>\d\d)(?P=mark)(?P<second>\d\d)(?![\d:]\d:)(?:[.,:](?P<fraction>\d{1,9}))?(?P<half> ?[AaPp][Mm]\b)?"
    rb"(?: ?(?P<zone>[+-]\d\d:?(?:\d\d)?(?!:?\d)|(?:" + b"|".join(sorted(_ZONES.keys(), reverse=True)) + rb")\b))?"
    rb"(?P<year> 20\d\d\b)?"
)
_DATE_BEFORE = re.compile(
    rb"(?:(?<!\d)(?P<year>20\d\d)(?P<mark>[-/.]?)(?P<month>\d\d)(?P=mark)(?P<day>\d\d)"
    rb"|(?<!\d)(?P<year_5>20\d\d)\xe5\xb9\xb4(?P<month_5>\d\d?)\xe6\x9c\x88(?P<day_5>\d\d?)\xe6\x97\xa5"
    rb"|(?<!\d)(?P<day_2>\d{1,2})(?: de |[/ .-]{1,2})(?P<month_2>" + _MONTH + rb")(?: de |[/ .,-]+)(?P<year_2>20\d\d)"
    rb"|(?P<month_3>" + _MONTH + rb") +(?P<day_3>\d{1,2})(?:,? +(?P<year_3>20\d\d))?"
    rb"|(?<![\d/.])(?P<first>\d{1,2})(?P<between>[/.])(?P<second>\d{1,2})[/.](?P<third>(?:20)?\d\d))[^\d\n]{0,8}$"
)
_EPOCH = re.compile(
    rb"(?:^(?:%\d\|)?\W{0,2}|(?<![^\s\[(|])(?=\d{13}))(?P<number>1[4-9]\d{8}(?:\.\d{1,9}|\d{3}|\d{6}|\d{9})?)(?![\d.])"
    rb"|\b(?:ts|time|timestamp)\"? ?[=:] ?\"?(?P<named>1[4-9]\d{8}(?:\.\d{1,9}|\d{3}|\d{6}|\d{9})?)(?![\d.])"
)
_DIGITS_ALONE = re.compile(
    rb"(?<![\d.-])(?P<date>20\d\d(?:0[1-9]|1[0-2])[0-3]\d)[T _-]?(?P<clock>[0-2]\d[0-5]\d[0-5]\d)(?:[.,]?(?P<fraction>\d{3}(?:\d{3}){0,2}))?(?P<zone>Z|[+-]\d\d:?\d\d)?(?![\d.:-])"
)
"""A time without marks between its numbers, as the shortest patterns of log4j write it."""
_COMMON = re.compile(
    rb"(?P<second>20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:[.,](?P<fraction>\d{3}))?(?=\]| (?!\[?[+-]\d\d:?\d\d|(?:Z|UTC|GMT|[A-Z]{2,3}T)\b))"
)
_HEAD_LENGTH = 400
_LEVELS = (b"TRACE", b"DEBUG", b"INFO", b"WARN", b"ERROR", b"FATAL")
LEVEL = re.compile(rb"(?<![A-Za-z])(?:" + b"|".join(_LEVELS) + rb"|WARNING|SEVERE)(?![A-Za-z])")
"""The level of a line, as the layouts write it."""


class Stamp(NamedTuple):
    """A time as it is written."""

    start: int
    end: int
    day_ms: int | None
    """The milliseconds of its day at 0:00 since 1970; None where it has no date, or half of one."""
    clock_ms: int
    zone_ms: int | None
    """What the named zone is ahead of UTC."""
    month_day: tuple[int, int] | None = None
    """The month and the day of a date without a year."""
    numbers: tuple[int, int, int] | None = None
    """Those of a date whose order is unknown."""


class LineTime(NamedTuple):
    """The time of a line in milliseconds, and whether the line names its time zone."""

    time_ms: int | Absent
    zone_named: bool


class Layout(NamedTuple):
    """What only a file shows as a whole of its times."""

    year: int | None = None
    """The year of dates without one."""
    order: tuple[int, int, int] | None = None
    """Which numbers of `3/1/2026` are the year, the month and the day; None where nothing shows it."""


def stamps_in(text: bytes) -> list[Stamp]:
    """Return the times in what stands before a message, at most in `_HEAD_LENGTH` bytes at each end, in order."""
    found = [_stamp(text, clock) for clock in _CLOCK.finditer(text)]
    known = [one for one in found if one is not None]
    if not known and (digits := _DIGITS_ALONE.search(text)) is not None:
        known = [one for one in (_stamp_of_digits(digits),) if one is not None]
    if not known and (epoch := _EPOCH.search(text)) is not None:
        name = "number" if epoch["number"] else "named"
        time_ms = epoch_ms(epoch[name])
        if time_ms is not None:
            known.append(Stamp(epoch.start(name), epoch.end(name), 0, time_ms, 0))
    return known


def _stamp_of_digits(found: re.Match[bytes]) -> Stamp | None:
    date, clock = (found[name] for name in ("date", "clock"))
    day_ms = _day_ms(int(date[:4]), int(date[4:6]), int(date[6:]))
    hour, minute, second = int(clock[:2]), int(clock[2:4]), int(clock[4:])
    if day_ms is None or hour > 23:
        return None
    clock_ms = ((hour * 60 + minute) * 60 + second) * 1000 + int((found["fraction"] or b"000")[:3])
    return Stamp(found.start(), found.end(), day_ms, clock_ms, _zone_ms(found["zone"]) if found["zone"] else None)


def epoch_ms(number: bytes | str | float) -> int | None:
    """Return a number of seconds, milliseconds, microseconds or nanoseconds since 1970 in milliseconds; None for no such number."""
    try:
        value = float(number)
    except (ValueError, OverflowError):
        return None
    for unit in (1000.0, 1.0, 1e-3, 1e-6):
        if 1_000_000_000_000 < value * unit < LATEST_MS / 2:
            return round(value * unit)
    return None


def _stamp(text: bytes, clock: re.Match[bytes]) -> Stamp | None:
    hour, minute, second = int(clock["hour"]), int(clock["minute"]), int(clock["second"])
    if clock["half"]:
        hour = hour % 12 + (12 if clock["half"].strip()[:1] in b"Pp" else 0)
    if hour > 23 or minute > 59 or second > 60:
        return None
    fraction = int((clock["fraction"] or b"0").ljust(3, b"0")[:3])
    clock_ms = ((hour * 60 + minute) * 60 + second) * 1000 + fraction
    zone = _zone_ms(clock["zone"]) if clock["zone"] else None
    before = _DATE_BEFORE.search(text, max(0, clock.start() - 40), clock.start())
    end = clock.end()
    if before is None:
        return Stamp(clock.start(), end, None, clock_ms, zone) if clock["mark"] == b":" else None
    if before["first"]:
        numbers = (int(before["first"]), int(before["second"]), int(before["third"]))
        if before["between"] == b".":  # nobody writes the month, or a year of two digits, first between full stops
            day_ms = _day_of(numbers, _DAY_FIRST)
            return None if day_ms is None else Stamp(before.start(), end, day_ms, clock_ms, zone)
        return Stamp(before.start(), end, None, clock_ms, zone, numbers=numbers)
    suffix = next(name for name in ("", "_5", "_2", "_3") if before[f"day{name}"])
    month = before[f"month{suffix}"]
    number = int(month) if month.isdigit() else _month(month.lower())
    day = int(before[f"day{suffix}"])
    written = before[f"year{suffix}"] or (clock["year"] or b"").strip()
    if not number:
        return Stamp(clock.start(), end, None, clock_ms, zone)
    if not written:
        return Stamp(before.start(), end, None, clock_ms, zone, month_day=(number, day))
    day_ms = _day_ms(int(written), number, day)
    return None if day_ms is None else Stamp(before.start(), end, day_ms, clock_ms, zone)


def _month(name: bytes) -> int:
    begun = _MONTH_BEGUN.match(name)
    return _MONTHS[begun[0]] if begun else 0


@lru_cache(maxsize=1024)
def _day_ms(year: int, month: int, day: int) -> int | None:
    try:
        return (dt.date(year, month, day).toordinal() - _EPOCH_DAY) * DAY_MS
    except ValueError:
        return None


def _zone_ms(text: bytes) -> int:
    if text in _ZONES:
        return _ZONES[text] * 60_000
    digits = text[1:].replace(b":", b"").ljust(4, b"0")
    minutes = int(digits[:2]) * 60 + int(digits[2:4])
    return (minutes if text[:1] == b"+" else -minutes) * 60_000


def time_of(stamp: Stamp, layout: Layout, outer: Iterable[Stamp] = ()) -> LineTime:
    """Return the time that a line names, read as UTC where no zone is named; unknown where no date is."""
    day_ms = stamp.day_ms
    if day_ms is None and stamp.numbers is not None and layout.order is not None:
        day_ms = _day_of(stamp.numbers, layout.order)
    if day_ms is None and stamp.month_day is not None and layout.year is not None:
        day_ms = _day_ms(layout.year, *stamp.month_day)
    if day_ms is None and stamp.numbers is None:
        for other in outer:
            if other is not stamp and other.day_ms is not None:
                # The day of a time that was noted at most half a day away from it.
                apart = other.clock_ms - stamp.clock_ms
                day_ms = other.day_ms + (DAY_MS if apart > DAY_MS // 2 else -DAY_MS if apart < -DAY_MS // 2 else 0)
                break
    if day_ms is None:
        return LineTime(Absent.UNKNOWN, False)
    wall = day_ms + stamp.clock_ms
    return LineTime(wall, False) if stamp.zone_ms is None else LineTime(wall - stamp.zone_ms, True)


def vote(head: bytes, *, changed_ms: int | None = None) -> Layout:
    """Return what a file shows of its times; dates without a year are those nearest to one with a year, else the last ones before it was changed."""
    dates: list[tuple[int, int, int]] = []
    latest: tuple[int, int] | None = None
    days: list[int] = []
    for line in head.splitlines():
        for stamp in stamps_in(line[:_HEAD_LENGTH]):
            if stamp.numbers is not None:
                dates.append(stamp.numbers)
            if stamp.month_day is not None:
                latest = max(latest or stamp.month_day, stamp.month_day)
            if stamp.day_ms and (changed_ms is None or stamp.day_ms <= changed_ms + DAY_MS):
                days.append(stamp.day_ms)
    year = None
    if latest is not None and days:
        last = dt.datetime.fromtimestamp(max(days) / 1000, dt.UTC).year
        year = min((last - 1, last, last + 1), key=lambda one: abs((_day_ms(one, *latest) or 0) - max(days)))
    elif latest is not None and changed_ms is not None and 0 <= changed_ms < LATEST_MS:
        changed = dt.datetime.fromtimestamp(changed_ms / 1000, dt.UTC)
        year = changed.year - (latest > ((changed + dt.timedelta(days=1)).month, 31))
    return Layout(year, _order(dates, changed_ms))


def _day_of(numbers: tuple[int, int, int], order: tuple[int, int, int]) -> int | None:
    year, month, day = (numbers[at] for at in order)
    return _day_ms(year % 100 + 2000, month, day)


def _order(dates: list[tuple[int, int, int]], changed_ms: int | None) -> tuple[int, int, int] | None:
    """Return the order in which all dates are days of a calendar, before the file was changed and nearest to each other."""
    spans: dict[tuple[int, int, int], tuple[bool, int]] = {}
    for order in _ORDERS:
        days = [day for one in dates if (day := _day_of(one, order)) is not None and day >= _FIRST_DAY_MS]
        if dates and len(days) == len(dates):
            spans[order] = changed_ms is not None and max(days) > changed_ms + DAY_MS, max(days) - min(days)
    best = [order for order, span in spans.items() if span == min(spans.values())]
    return best[0] if len(best) == 1 else None


class Head(NamedTuple):
    """What stands before a message."""

    moment: LineTime
    outer_utc_ms: int | None
    """The time of a collector of lines that names its zone, where the line's own does not."""
    writer: str
    start: int
    """Where the innermost time begins; -1 where there is none."""
    end: int
    clock: str = ""
    """The time as it is written, where it has no date."""
    zone_ms: int | None = None
    """What the zone that the line names is ahead of UTC."""


@lru_cache(maxsize=1 << 12)
def _second_ms(text: bytes) -> int | None:
    day = _day_ms(int(text[:4]), int(text[5:7]), int(text[8:10]))
    hour, minute, second = int(text[11:13]), int(text[14:16]), int(text[17:19])
    if day is None or hour > 23 or minute > 59 or second > 60:
        return None
    return day + ((hour * 60 + minute) * 60 + second) * 1000


def common_moment(window: bytes, position: int) -> tuple[int, LineTime] | None:
    """Return the end and the value of a time as Kafka writes it, which begins at a position or one behind it; None where none does."""
    found = _COMMON.match(window, position + (window[position : position + 1] == b"["))
    if found is None:
        return None
    second, fraction = found.groups()
    seconds = _second_ms(second)
    moment = LineTime(Absent.UNREADABLE if seconds is None else seconds + int(fraction or 0), False)
    return found.end(), moment


def head_of(before: bytes, layout: Layout) -> Head:
    """Return time and writer of a line by what stands before its message."""
    skipped = max(0, len(before) - 2 * _HEAD_LENGTH)
    text = before[skipped:]
    found = stamps_in(text)
    if not found:
        return Head(LineTime(Absent.NOT_WRITTEN, False), None, "", -1, 0)
    inner = found[-1]
    moment = time_of(inner, layout, reversed(found))
    outer = next(
        (time_of(one, layout) for one in found[:-1] if one.zone_ms is not None and one.day_ms is not None), None
    )
    outer_ms = outer.time_ms if outer is not None and isinstance(outer.time_ms, int) and not moment.zone_named else None
    clock = "" if isinstance(moment.time_ms, int) else text[inner.start : inner.end].decode("ascii", "replace")
    writer = _writer(_cleaned(text, found, inner))
    return Head(moment, outer_ms, writer, skipped + inner.start, skipped + inner.end, clock, inner.zone_ms)


def writer_of(before: bytes) -> str:
    """Return the writer of a line that has no time of its own, by what a collector of lines put before it."""
    text = before[-_HEAD_LENGTH:]
    for stamp in reversed(stamps_in(text)):
        text = text[: stamp.start] + text[stamp.end :]
    return _writer(text)


_LAST_COLUMN = re.compile(rb',"(?!.*,")|,(?! )(?!.*,(?! ))')
_PRIORITY = re.compile(rb"<\d{1,3}>1?\s*")
_HOST = re.compile(rb"\s*([\w.-]{1,253})\s")


def _cleaned(text: bytes, found: list[Stamp], inner: Stamp) -> bytes:
    """Return what a collector of lines put before a line, without times; the host behind the only time of a syslog line."""
    if len(found) == 1 and (priority := _PRIORITY.match(text)) is not None and priority.end() == inner.start:
        host = _HOST.match(text, inner.end)
        return host[1] if host else b""
    if len(found) == 1 and text[:1] == b'"':
        columns = text[inner.end :]  # of a table, of which the last is the message
        return columns[: next((one.start() for one in _LAST_COLUMN.finditer(columns)), 0)]
    out, at = b"", 0
    for stamp in found:
        out += text[at : stamp.start]
        at = stamp.end
        if stamp is inner:
            break
    return out


_NOISE = re.compile(
    rb"^\d+:|(?<![\w.-])(?<!(?i:broker|server)[ =:])(?<!(?i:node)[ =:])(?<!(?i:controller)[ =:])\d+(?:\.\d+)?(?![\w.-])|\[\d+\]|^[>*+`\s]+|\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b,?|\b(?:stdout|stderr) [FP]\b|<\d{1,3}>\d?|\"\"+|(?<=[\w.]):\d+(?=:\[?$)|(?<![A-Za-z])(?:INFO|WARN|ERROR|DEBUG|TRACE|FATAL)(?![A-Za-z])"
)


@lru_cache(maxsize=4096)
def _writer(before: bytes) -> str:
    text = _NOISE.sub(b"", before.rpartition(b"\x00")[2]).strip(b'[ ",;')
    return " ".join(text.decode("utf-8", "replace").split())
