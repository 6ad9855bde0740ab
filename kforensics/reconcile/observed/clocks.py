"""The shift from the times in a log file to UTC: by option, by named zones, by epochs that the metadata log dates, by file times.

Log lines carry the broker's local time without a zone. A leader epoch of a partition begins at one moment for the whole cluster, so the lines that
report it anchor the clocks of files to one another, and to UTC if a metadata record or a line with a zone reports the same epoch.
"""

import datetime as dt
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from kforensics.damage import Absent
from kforensics.errors import UsageError
from kforensics.evidence.broker_logs import LogFile
from kforensics.formats.log_lines.event import LogEvent, LogEventKind
from kforensics.formats.log_lines.stamps import WIDEST_ZONE_MS, ZONE_STEP_MS
from kforensics.units import TopicPartition

_OFFSET = re.compile(r"(?P<sign>[+-])(?P<hours>\d{2}):?(?P<minutes>\d{2})")


def parse_zone(text: str) -> dt.tzinfo:
    """Return a zone as people write it: `+02:00`, `UTC` or a name of the IANA database such as `Europe/Berlin`."""
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


def ahead_of_utc_ms(zone: dt.tzinfo, wall_ms: int, *, is_second: bool = False) -> int:
    """Return how far the zone is ahead of UTC, in ms, when its clocks show so many ms since 1970, or show them for the second time."""
    wall = dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=wall_ms)  # noqa: DTZ001 - a wall clock time is meant
    offset = zone.utcoffset(wall.replace(fold=is_second))
    return round(offset.total_seconds() * 1000) if offset is not None else 0


def _again_ms(zone: dt.tzinfo, wall_ms: int) -> int:
    """Return how long after a time the clocks of a zone show it once more; 0 where they don't."""
    return max(0, ahead_of_utc_ms(zone, wall_ms) - ahead_of_utc_ms(zone, wall_ms, is_second=True))


_SUMMER_MS = 3_600_000
"""The most by which clocks are put on in summer."""
_LATE_MS = 60_000
"""Threads write their lines late, by less than this."""
SKEW_TOLERATED_MS = 3_000
"""Lines about one epoch are written within this time on a healthy cluster; more is a clock that disagrees."""

MOMENTS_APART_MS = 10_000
"""Between the first and the last line that agree on a clock that is wrong, at least."""

MTIME_TOLERANCE_MS = 30_000
"""A quiet broker writes its last line when it stops, and the file is not touched after."""

NEW_MS = 60_000
"""Within this time a new log is created and led, and a busy topic gets its first record."""

SOON_MS = 450_000
"""The longest time between a new log and its first record by which a zone is inferred."""

OLDER_MS = 600_000
"""A first record that is older than its log by more is no matter of a producer's clock."""

_LEAST_TOPICS = 2
"""Topics that agree on a zone west of Greenwich, where nothing contradicts UTC: late first records are no proof."""

_ZONES_MS = tuple(
    round(hours * 3_600_000)
    for hours in sorted((*range(-12, 15), -9.5, -3.5, -2.5, 3.5, 4.5, 5.5, 5.75, 6.5, 8.75, 9.5, 10.5, 12.75, 13.75))
)
"""What time zones are ahead of UTC."""

_ANCHORS = frozenset(
    {
        LogEventKind.LEADER_START,
        LogEventKind.FOLLOWER_START,
        LogEventKind.LEADER_AND_ISR,
        LogEventKind.PARTITION_ONLINE,
        LogEventKind.LEADER_SELECTED,
        LogEventKind.EPOCH_ASSIGNED,
    }
)

Anchor = tuple[TopicPartition, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The shift that makes the times of one log file UTC."""

    shift_ms: int
    """Added to the file's times; without the zone of the line, where it has one."""
    source: str
    """`option`, `named`, `metadata`, `start-time`, `other-logs`, `file-time`, `first-records`, `assumed` or `unknown`."""
    skew_ms: int = 0
    """The part of the shift that is no time zone but a clock that disagrees."""
    zone: dt.tzinfo | None = None
    """The zone that gives the shift of each time, where summer time changes it; `shift_ms` is then that of most lines."""

    @property
    def is_shown(self) -> bool:
        """Whether nothing speaks against the zone, or more than a likelihood for it."""
        return self.source not in {"first-records", "unknown"}

    def times_of(self, events: Sequence[LogEvent]) -> list[int | Absent]:
        """Return the times of the events of the file in UTC, in ms since 1970; absent where a line has none.

        An hour that the clock shows twice, as it is put back, is the second one behind a line that steps back; without such
        a line it is unknown which of both it is.
        """
        walls = [
            (at, one.time_ms) for at, one in enumerate(events) if isinstance(one.time_ms, int) and not one.zone_named
        ]
        times = [one.time_ms for one in events]
        for at, wall_ms in walls:
            times[at] = self.utc_of(wall_ms)
        if (zone := self.zone) is None:
            return times
        for later_ms, run in groupby(walls, lambda one: _again_ms(zone, one[1])):
            if later_ms:
                twice = list(run)
                steps = (before - wall_ms for (_, before), (_, wall_ms) in pairwise(twice))
                second = next((number for number, back_ms in enumerate(steps, 1) if back_ms > _LATE_MS), 0)
                for at, wall_ms in twice[second:]:
                    times[at] = self.utc_of(wall_ms) + later_ms if second else Absent.UNKNOWN
        return times

    def utc_of(self, wall_ms: int) -> int:
        """Return a time of the file's clock in UTC."""
        return wall_ms + (self.shift_ms if self.zone is None else -ahead_of_utc_ms(self.zone, wall_ms))

    def shift_at(self, utc_ms: int) -> int:
        """Return what makes the file's times UTC at a moment."""
        if self.zone is None:
            return self.shift_ms
        offset = dt.datetime.fromtimestamp(utc_ms / 1000, self.zone).utcoffset()
        return -round(offset.total_seconds() * 1000) if offset is not None else 0


def choose_clocks(
    files: Sequence[LogFile], dated: Mapping[Anchor, int], *, zone: dt.tzinfo | None = None
) -> tuple[Clock, ...]:
    """Return a clock for each file, in order."""
    if zone is not None:
        return tuple(_by_option(file, zone) for file in files)
    anchors = [_anchors(file) for file in files]
    known = dict(dated)
    source = "metadata"
    if not known:
        source = "named"
        for file, times in zip(files, anchors, strict=True):
            if _names_zones(file):
                known.update({anchor: time for anchor, time in times.items() if anchor not in known})
    clocks: list[Clock | None] = []
    for file, times in zip(files, anchors, strict=True):
        if _names_zones(file):
            clocks.append(Clock(shift_ms=0, source="named"))
        else:
            tied = _by_ties(file)
            clocks.append(
                tied if tied is not None and tied.zone is not None else _by_anchors(times, known, source) or tied
            )
    return _fill(files, anchors, clocks)


def _by_option(file: LogFile, zone: dt.tzinfo) -> Clock:
    first = file.first_time_ms
    shift_ms = -ahead_of_utc_ms(zone, first if isinstance(first, int) else 0)
    return Clock(shift_ms=shift_ms, source="option", zone=None if isinstance(zone, dt.timezone) else zone)


def _names_zones(file: LogFile) -> bool:
    """Whether the lines name their zone; the JVM writes some of its own into the file of a broker that does not."""
    named = sum(event.zone_named for event in file.events)
    return named > 0 and 2 * named > sum(isinstance(event.time_ms, int) for event in file.events)


def _by_ties(file: LogFile) -> Clock | None:
    """Return the zone by lines that name their own time in UTC, or beside which it stands."""
    shifts: Counter[int] = Counter()
    for (shift_ms, _), lines in file.zones.items():
        shifts[shift_ms] += lines
    if not shifts:
        return None
    most = max(shifts, key=lambda shift_ms: (shifts[shift_ms], -abs(shift_ms)))
    is_changed = any(0 < abs(shift_ms - most) <= _SUMMER_MS for shift_ms in shifts)
    zone = _changing_zone(file.zones, shifts[most]) if is_changed else None
    return Clock(shift_ms=most, source="start-time", zone=zone)


def _changing_zone(ties: Mapping[tuple[int, int], int], least: int) -> dt.tzinfo | None:
    """Return a zone whose changes to and from summer time explain more lines than one shift does, of those that do the most usual one; None where none does."""
    import zoneinfo  # noqa: PLC0415 - few logs reach over a change

    fit: defaultdict[int, list[zoneinfo.ZoneInfo]] = defaultdict(list)
    for name in sorted(zoneinfo.available_timezones()):
        zone = zoneinfo.ZoneInfo(name)
        fit[sum(n for (shift_ms, hour), n in ties.items() if ahead_of_utc_ms(zone, hour) == -shift_ms)].append(zone)
    best = max(fit, default=0)
    if best <= least:
        return None
    hours = [hour for _, hour in ties]
    days = range(min(hours), max(hours), 24 * 3_600_000)
    alike: defaultdict[tuple[int, ...], list[zoneinfo.ZoneInfo]] = defaultdict(list)
    for zone in fit[best]:
        alike[tuple(ahead_of_utc_ms(zone, day) for day in days)].append(zone)
    return max(alike.values(), key=len)[0]


def created_logs(files: Sequence[LogFile], clocks: Sequence[Clock]) -> dict[tuple[int, TopicPartition], int]:
    """Return when the log of each new partition was created, by broker, by lines whose zone is only assumed.

    A log is created anew where its partition is: the broker leads it from offset 0 in epoch 0 at that moment. One that is created when a partition moves takes
    over older records.
    """
    created: dict[tuple[int, TopicPartition], int] = {}
    led: dict[tuple[int, TopicPartition], int] = {}
    for file, clock in zip(files, clocks, strict=True):
        for event in file.events if clock.source == "assumed" else ():
            if event.kind is not LogEventKind.LOG_CREATED and event.kind is not LogEventKind.LEADER_START:
                continue
            node = file.node_id if isinstance(event.broker_id, Absent) else event.broker_id
            if (
                isinstance(node, Absent)
                or isinstance(event.topic_partition, Absent)
                or not isinstance(event.time_ms, int)
            ):
                continue
            if event.kind is LogEventKind.LOG_CREATED:
                created.setdefault((node, event.topic_partition), event.time_ms)
            elif event.number("leader_epoch") == event.number("offset") == 0:
                led.setdefault((node, event.topic_partition), event.time_ms)
    return {one: time for one, time in created.items() if one in led and abs(led[one] - time) <= NEW_MS}


def with_zone_of_records(
    clocks: Sequence[Clock],
    created: Mapping[tuple[int, TopicPartition], int],
    first: Mapping[tuple[int, TopicPartition], int],
) -> tuple[Clock, ...]:
    """Return the clocks; those that were assumed to be UTC by the first records of new logs, which can't be older than these."""
    ahead = {one: created[one] - first[one] for one in created.keys() & first.keys()}
    most = max(ahead.values(), default=0)
    zone = next((zone for zone in _ZONES_MS if zone >= most - SKEW_TOLERATED_MS), None)
    by_zone = Counter(
        {partition.topic: 1 for (_, partition), one in ahead.items() if zone is not None and zone - one <= NEW_MS}
    )
    if most <= OLDER_MS and (zone is None or zone >= 0 or len(by_zone) < _LEAST_TOPICS):
        return tuple(clocks)
    if zone is None or zone - most > SOON_MS:
        inferred = Clock(shift_ms=0, source="unknown")
    else:
        inferred = Clock(shift_ms=-zone, source="first-records")
    return tuple(inferred if clock.source == "assumed" else clock for clock in clocks)


def zone_words(clocks: Iterable[Clock]) -> tuple[str, str] | None:
    """Return in words what is not known of the zone of log lines where records contradict UTC, and what would settle it; None where nothing does."""
    doubtful = next((clock for clock in clocks if not clock.is_shown), None)
    if doubtful is None:
        return None
    words = (
        "which time zone the log lines are in: by these a log was created after its first record, so they are not UTC"
    )
    if doubtful.source == "unknown":
        return words, "--log-timezone"
    ahead = -doubtful.shift_ms // 60_000
    zone = f"{'-' if ahead < 0 else '+'}{abs(ahead) // 60:02}:{abs(ahead) % 60:02}"
    if ahead < 0:
        words = f"which time zone the log lines are in: by these first records followed new logs after {abs(ahead) // 60} hours again and again"
    return words, f"--log-timezone ({zone}, by first records of new logs)"


def _fill(
    files: Sequence[LogFile], anchors: Sequence[Mapping[Anchor, int]], clocks: list[Clock | None]
) -> tuple[Clock, ...]:
    """Files that no dated epoch reaches: by their node's other files, by other nodes' epochs, by file times, else as UTC."""
    by_node = {file.node_id: clock for file, clock in zip(files, clocks, strict=True) if clock is not None}
    for at, file in enumerate(files):
        if clocks[at] is None and not isinstance(file.node_id, Absent):
            clocks[at] = by_node.get(file.node_id)
    anchored: dict[Anchor, int] = {}
    for times, clock in zip(anchors, clocks, strict=True):
        if clock is not None:
            anchored.update({anchor: clock.utc_of(time) for anchor, time in times.items() if anchor not in anchored})
    rest = _like_others(clocks) or _by_mtimes(files)
    out = []
    for times, clock in zip(anchors, clocks, strict=True):
        out.append(clock or _by_anchors(times, anchored, "other-logs") or rest)
    return tuple(out)


def _like_others(clocks: Sequence[Clock | None]) -> Clock | None:
    """Nodes of one cluster run in one zone: what all others agree on holds for a file that nothing dates."""
    zones = {round(clock.shift_ms / ZONE_STEP_MS) * ZONE_STEP_MS for clock in clocks if clock is not None}
    return Clock(shift_ms=zones.pop(), source="other-logs") if len(zones) == 1 else None


def _anchors(file: LogFile) -> dict[Anchor, int]:
    first: dict[Anchor, int] = {}
    for event in file.events:
        if event.kind not in _ANCHORS or isinstance(event.topic_partition, Absent):
            continue
        epoch = event.number("leader_epoch")
        if isinstance(epoch, int) and isinstance(event.time_ms, int):
            first.setdefault((event.topic_partition, epoch), event.time_ms)
    return first


def _by_anchors(times: Mapping[Anchor, int], known: Mapping[Anchor, int], source: str) -> Clock | None:
    """Return the zone that most anchors agree on, or None where they prove none.

    A broker that comes back late reports old epochs late, so the majority decides. Partitions and epochs of one name in two clusters are anchors too, and what
    was made by one script begins alike: so a shift that is no time zone is taken for a clock that disagrees only where it is small, and where moments
    that are apart agree on it. A line may be late and is never early: one that is in time shows that the clock is right and that the others are late.
    """
    votes: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for anchor, time in times.items():
        if anchor in known:
            difference = known[anchor] - time
            zone = round(difference / ZONE_STEP_MS) * ZONE_STEP_MS
            if abs(zone) <= WIDEST_ZONE_MS:
                votes[zone].append((difference - zone, time))
    if not votes:
        return None
    zone = max(votes, key=lambda step: (len(votes[step]), -abs(step)))
    from statistics import median  # noqa: PLC0415 - fractions and decimal come with it

    skew = round(median(rest for rest, _ in votes[zone]))
    agreeing = [time for rest, time in votes[zone] if abs(rest - skew) <= SKEW_TOLERATED_MS]
    if abs(skew) <= SKEW_TOLERATED_MS:
        # A line follows its record: being late by some seconds is no skew.
        return Clock(shift_ms=zone, source=source)
    is_late = skew < 0 and any(rest >= -SKEW_TOLERATED_MS for rest, _ in votes[zone])
    if zone == 0 and not is_late and max(agreeing, default=0) - min(agreeing, default=0) >= MOMENTS_APART_MS:
        return Clock(shift_ms=skew, source=source, skew_ms=skew)
    return Clock(shift_ms=0, source=source) if zone == 0 else None


def _by_mtimes(files: Sequence[LogFile]) -> Clock:
    """Return the zone in which last lines were written when their files were last changed, if most nodes agree on one; else UTC.

    Of each node the file with the latest line counts: others have been rotated, or are written at elections alone.
    """
    zones: Counter[int] = Counter()
    newest: dict[int | Absent, tuple[int, LogFile]] = {}
    for file in files:
        last = file.last_time_ms
        known = newest.get(file.node_id)
        if isinstance(last, int) and (known is None or known[0] < last):
            newest[file.node_id] = (last, file)
    for last, file in newest.values():
        difference = file.mtime_ns // 1_000_000 - last
        zone = round(difference / ZONE_STEP_MS) * ZONE_STEP_MS
        if abs(zone) <= WIDEST_ZONE_MS and 0 <= difference - zone <= MTIME_TOLERANCE_MS:
            zones[zone] += 1
    best = max(zones, key=lambda zone: (zones[zone], -abs(zone)), default=None)
    # Copies often carry the time of the copying: one file in thirty then fits some zone by chance.
    if best is None or zones[best] < 2 or zones[best] * 2 <= len(newest):
        return Clock(shift_ms=0, source="assumed")
    return Clock(shift_ms=best, source="file-time")


def clocks_that_disagree(files: Iterable[LogFile], clocks: Iterable[Clock]) -> dict[int | Absent, int]:
    """Return nodes whose clock had to be corrected, and by how many milliseconds most of their files say."""
    skews: dict[int | Absent, Counter[int]] = defaultdict(Counter)
    for file, clock in zip(files, clocks, strict=True):
        if clock.skew_ms:
            skews[file.node_id][clock.skew_ms] += 1
    return {node: max(counts, key=lambda skew: (counts[skew], skew)) for node, counts in skews.items()}
