"""The shift from the times in a log file to UTC: by option, by named zones, by epochs that the metadata log dates, by file times.

Log lines carry the broker's local time without a zone. A leader epoch of a partition begins at one moment for the whole cluster, so the lines that
report it anchor the clocks of files to one another, and to UTC if a metadata record or a line with a zone reports the same epoch.
"""

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kforensics.damage import Absent
from kforensics.evidence.broker_logs import LogFile
from kforensics.formats.log_lines.event import LogEvent, LogEventKind
from kforensics.reconcile.observed.time_zones import ahead_of_utc_ms
from kforensics.units import TopicPartition

ZONE_STEP_MS = 15 * 60_000
"""Time zones differ from UTC by multiples of a quarter of an hour."""

WIDEST_ZONE_MS = 14 * 3_600_000
SKEW_TOLERATED_MS = 3_000
"""Lines about one epoch are written within this time on a healthy cluster; more is a clock that disagrees."""

MOMENTS_APART_MS = 10_000
"""Between the first and the last line that agree on a clock that is wrong, at least."""

MTIME_TOLERANCE_MS = 30_000
"""A quiet broker writes its last line when it stops, and the file is not touched after."""

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
    """`option`, `named`, `metadata`, `other-logs`, `file-time` or `assumed`."""
    skew_ms: int = 0
    """The part of the shift that is no time zone but a clock that disagrees."""

    def utc_ms(self, event: LogEvent) -> int | Absent:
        """Return the event's time in UTC, in ms since 1970; absent where the line has no time.

        Args:
            event: of the log file that this clock is of; a line that names its zone needs no shift.
        """
        if not isinstance(event.time_ms, int) or event.zone_named:
            return event.time_ms
        return event.time_ms + self.shift_ms


def choose_clocks(
    files: Sequence[LogFile], dated: Mapping[Anchor, int], *, zone: dt.tzinfo | None = None
) -> tuple[Clock, ...]:
    """Return a clock for each file, in order.

    Args:
        files: log files of any nodes.
        dated: UTC times at which leader epochs began, from the metadata log.
        zone: of the logs, where the user names it.
    """
    if zone is not None:
        return tuple(_by_option(file, zone) for file in files)
    anchors = [_anchors(file) for file in files]
    known = dict(dated)
    source = "metadata"
    if not known:
        source = "named"
        for file, times in zip(files, anchors, strict=True):
            if any(event.zone_named for event in file.events):
                known.update({anchor: time for anchor, time in times.items() if anchor not in known})
    clocks: list[Clock | None] = []
    for file, times in zip(files, anchors, strict=True):
        if any(event.zone_named for event in file.events):
            clocks.append(Clock(shift_ms=0, source="named"))
        else:
            clocks.append(_by_anchors(times, known, source))
    return _fill(files, anchors, clocks)


def _by_option(file: LogFile, zone: dt.tzinfo) -> Clock:
    first = file.first_time_ms
    return Clock(shift_ms=-ahead_of_utc_ms(zone, first if isinstance(first, int) else 0), source="option")


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
            anchored.update({anchor: time + clock.shift_ms for anchor, time in times.items() if anchor not in anchored})
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
    """Return the first time at which the file reports each leader epoch."""
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
    """Return nodes whose clock had to be corrected, and by how many milliseconds most of their files say.

    Args:
        files: the log files.
        clocks: one for each of them, in their order.
    """
    skews: dict[int | Absent, Counter[int]] = defaultdict(Counter)
    for file, clock in zip(files, clocks, strict=True):
        if clock.skew_ms:
            skews[file.node_id][clock.skew_ms] += 1
    return {node: max(counts, key=lambda skew: (counts[skew], skew)) for node, counts in skews.items()}
