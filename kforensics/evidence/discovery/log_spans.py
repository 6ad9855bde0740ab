"""Broker logs by how they begin, whatever they are called; and the log files of a long-lived cluster whose lines are all outside of the time that is asked about.

A file's time is that of its first and of its last line; lines between are sampled, and where their times do not rise the file is read. The last line of a
compressed file can't be seen without inflating all of it: it is written before the first line of the file that was begun next under the same name.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kforensics.errors import EvidenceError
from kforensics.source.mapped import EvidenceFile, open_evidence
from kforensics.source.naming import LOG_DIR_MARKERS, FileKind, parse_file_name, parse_partition_directory
from kforensics.source.packed import heads_of, members_of, packing_of, unpacked
from kforensics.source.ranges import Range, RangeRead, read_ranges
from kforensics.source.walk import FoundFile, Listings, walk_files
from kforensics.units import PACKED_ENDING

if TYPE_CHECKING:
    from kforensics.formats.log_lines.stamps import Layout

HEAD_LENGTH = 1 << 16
"""Bytes at a file's start that must show a broker's log line."""

MOST_HEADS = 10_000
"""Files of a directory that are looked into for a broker's log line."""


MOST_INFLATED = 64 << 20
"""The bytes of a compressed tar that are looked through for what it holds."""

MOST_CANDIDATES = 20
_TEXT = re.compile(r"\.(log|out|txt)(\.|$)")


def is_log_file(file: EvidenceFile, *, is_named: bool = False) -> bool:
    """Whether the file begins like a broker's log, compressed or not; of a zip or a tar, one of its files."""
    return any(looks_like_log(head, is_named=is_named) for head in _heads(file))


def _heads(file: EvidenceFile) -> Iterator[bytes]:
    members = list(members_of(file, most=MOST_INFLATED))
    names = logs_among(members)[:MOST_CANDIDATES] if len(members) > 1 else [""]
    return (log_head(file, one) for one in names)


def logs_among(members: Iterable[str]) -> list[str]:
    """Return the members of an archive that may be logs, those that are called so first, then other texts."""
    kinds = {one: parse_file_name(one.rpartition("/")[2]).kind for one in members}
    found = (one for one, kind in kinds.items() if kind in {FileKind.LOG_FILE, FileKind.UNKNOWN})
    return sorted(found, key=lambda one: (kinds[one] is FileKind.UNKNOWN, _TEXT.search(one) is None))


def logs_in(file: EvidenceFile, members: Sequence[str]) -> list[str]:
    """Return the members of an archive that are to be read as logs: of many those alone that are called so, or begin with lines of Kafka."""
    found = logs_among(members)
    if len(found) <= MOST_CANDIDATES:
        return found
    from kforensics.formats.log_lines.unwrap import has_known_line  # noqa: PLC0415 - as below

    named = {one for one in found if parse_file_name(one.rpartition("/")[2]).kind is FileKind.LOG_FILE}
    shown = {name for name, head in heads_of(file, {*found} - named) if has_known_line(head[:HEAD_LENGTH])}
    return [one for one in found if one in named or one in shown]


def packed_data(path: Path) -> str:
    """Return what to do about an archive that has a data directory in it, as the predicate of a sentence; empty for any other file."""
    try:
        with open_evidence(path) as file:
            found = next(filter(is_of_data_dir, members_of(file, most=MOST_INFLATED)), "")
    except EvidenceError:
        return ""
    return f"an archive of a data directory ({found}): unpack it, and name what comes out" if found else ""


def is_of_data_dir(member: str) -> bool:
    """Whether a member of an archive is a file that only data directories hold."""
    folder, _, name = member.rpartition("/")
    is_partition = parse_partition_directory(folder.rpartition("/")[2]) is not None
    return name in LOG_DIR_MARKERS or (is_partition and parse_file_name(name).kind is FileKind.SEGMENT)


def log_head(file: EvidenceFile, member: str = "") -> bytes:
    """Return the beginning of a file, or of a file in a zip, inflated where it is compressed; empty where that can't be done."""
    return b"".join(unpacked(file, member=member, most=HEAD_LENGTH))[:HEAD_LENGTH]


def looks_like_log(head: bytes, *, is_named: bool = False) -> bool:
    """Whether a file that begins so is a broker's log."""
    from kforensics.formats.log_lines.unwrap import looks_like_broker_log  # noqa: PLC0415 - 30 ms, where no log is given

    return looks_like_broker_log(head, is_named=is_named)


def begins_like_a_log(path: Path, *, is_named: bool = False) -> bool:
    """Whether the file at a path begins like a broker's log; one that can't be read does not.

    Args:
        is_named: whether a person named it: then a message without time and level is enough, as people paste it.
    """
    return _begins(path, partial(looks_like_log, is_named=is_named))


def has_kafkas_lines(path: Path) -> bool:
    """Whether the beginning of the file at a path has a line of Kafka: of a file that nobody named and whose name says nothing."""
    from kforensics.formats.log_lines.unwrap import has_known_line  # noqa: PLC0415 - as above

    return _begins(path, has_known_line)


def _begins(path: Path, is_meant: Callable[[bytes], bool]) -> bool:
    try:
        with open_evidence(path) as file:
            return any(map(is_meant, _heads(file)))
    except EvidenceError:
        return False


def holds_logs(listings: Listings) -> bool:
    """Whether any file below a directory begins like a broker's log."""
    files = (item for item in walk_files(listings) if isinstance(item, FoundFile))
    return any(begins_like_a_log(listings.root / item.path) for item, _ in zip(files, range(MOST_HEADS), strict=False))


MARGIN_MS = 24 * 3_600_000
"""Lines name no time zone, and clocks are wrong: files are outside of a window by this much at least."""

OUT_OF_ORDER_MS = 2 * 3_600_000
"""Local time falls back by an hour once a year, and threads write their lines some milliseconds late."""

NO_END_MS = 1 << 62
"""The end of a file of which none is known: no time is behind it."""

SAMPLES = 16
"""Places of a file longer than a window at which a line is looked at."""
SAMPLE_LENGTH = 4 << 10
START_LENGTH = 128 << 10
"""The bytes before and behind a broker's version in which it wrote what it is, and its settings."""
END_LENGTH = 16 << 10
WINDOW_LENGTH = 1 << 20

_VERSION, _CONFIGURATION = b"Kafka version", b"KafkaConfig values"
_ROTATED = re.compile(PACKED_ENDING + r"$|(?<=\.log)[.\-_].*$|[.\-_]?\d{4}-\d{2}-\d{2}([-T_.]?\d{1,2})*")


class TimeWindow(NamedTuple):
    """The time that is asked about, in milliseconds UTC."""

    since_ms: int | None
    until_ms: int | None
    recorded_until_ms: int
    """The end of the metadata log: what lines after it say is said nowhere else."""
    starts_ms: tuple[int, ...] = ()
    """When nodes registered: each had written its version and its settings shortly before."""

    def precedes(self, span: "LogSpan") -> bool:
        """Whether all lines of a log file, whose clock may be `MARGIN_MS` off, are older than what is asked about."""
        return self.since_ms is not None and span.last_ms < self.since_ms - MARGIN_MS

    def follows(self, span: "LogSpan") -> bool:
        """Whether all lines are younger than what is asked about, and within what the metadata log recorded."""
        is_behind = self.until_ms is not None and span.first_ms > self.until_ms + MARGIN_MS
        return is_behind and span.last_ms < self.recorded_until_ms - MARGIN_MS

    def is_of_a_start(self, span: "LogSpan") -> bool:
        """Whether a node may have registered while the file was written."""
        return any(span.first_ms - MARGIN_MS <= start <= span.last_ms + MARGIN_MS for start in self.starts_ms)


class LogSpan(NamedTuple):
    """The times of the first and of the last line of a log file, by its own clock."""

    at: int
    """The number of the file among those that are given."""
    first_ms: int
    last_ms: int


def files_outside(paths: Sequence[Path], window: TimeWindow) -> list[LogSpan]:
    """Return the files that need not be read, in the order in which they are given.

    Of each directory the newest file before the window in which a broker wrote its version, and its settings, is needed: it started then. They are looked for where nodes
    registered first, then in all files. The youngest file of a name is needed too.
    """
    families: dict[tuple[Path, str], list[LogSpan]] = defaultdict(list)
    for one in _spans(paths):
        families[paths[one.at].parent, _ROTATED.sub("", paths[one.at].name)].append(one)
    before: dict[Path, list[LogSpan]] = defaultdict(list)
    outside: list[LogSpan] = []
    for (folder, _), members in families.items():
        members.sort(key=lambda one: one.first_ms)
        for at, member in enumerate(members[:-1]):
            one = member if member.last_ms >= 0 else _ended(member, members[at + 1 :])
            if window.precedes(one):
                before[folder].append(one)
            elif window.follows(one):
                outside.append(one)
    for older in before.values():
        older.sort(key=lambda one: (not window.is_of_a_start(one), -one.last_ms))
        needed = _last_start(older, paths)
        outside += [one for one in older if one.at not in needed]
    return sorted(outside)


def _ended(member: LogSpan, behind: Sequence[LogSpan]) -> LogSpan:
    """Return a file without a last line of its own, which ends where the next one begins; a copy of it, whole or in part, begins with it and is not the next."""
    begins = (one.first_ms for one in behind if one.first_ms > member.first_ms)
    return member._replace(last_ms=next(begins, NO_END_MS))


def _last_start(older: Sequence[LogSpan], paths: Sequence[Path]) -> set[int]:
    """Return the first of these files that holds a broker's version, and the first that holds its settings."""
    needed: set[int] = set()
    wanted = {_VERSION, _CONFIGURATION}
    for one in older:
        try:
            found = _texts_in(paths[one.at], wanted)
        except EvidenceError:
            found = set(wanted)  # it can't be judged
        if found:
            needed.add(one.at)
            wanted -= found
        if not wanted:
            break
    return needed


def _texts_in(path: Path, texts: Iterable[bytes]) -> set[bytes]:
    found: set[bytes] = set()
    failed: list[int] = []
    rest = b""
    with open_evidence(path) as file:
        for chunk in unpacked(file, note=lambda position, _: failed.append(position)):
            found |= {text for text in texts if text in rest + chunk}
            rest = chunk[-64:]
    return set(texts) if failed else found  # what can't be read can't be judged


def ranges_inside(path: Path, window: TimeWindow) -> list[tuple[int, int]]:
    """Return the ranges of a long file that are needed, by binary search; none where that may be all of it, or its times do not rise.

    Returns:
        First that of lines of the time that is asked about; then that of lines that the metadata log does not reach to, and those in which a broker wrote its version and its
        settings last before.
    """
    places = list(_samples(path))
    times, is_compressed, layout = _sampled(read_ranges(places))
    rising = [time for time in times if time is not None]  # within settings and stack traces there is none
    if is_compressed or len(rising) < max(len(times) * 3 // 4, 3) or not _rise(rising):
        return []
    seen = {one.position: time for one, time in zip(places[:-1], times[:-1], strict=False) if time is not None}
    with open_evidence(path) as file:
        if file.size <= WINDOW_LENGTH:
            return []
        begin, end, late = 0, file.size, file.size
        if window.since_ms is not None:
            begin, _ = _sought(file, layout, window.since_ms - MARGIN_MS, seen)
        if window.until_ms is not None:
            _, end = _sought(file, layout, window.until_ms + MARGIN_MS, seen)
            if window.recorded_until_ms < NO_END_MS:
                late, _ = _sought(file, layout, window.recorded_until_ms - MARGIN_MS, seen)
        if not _rise([seen[at] for at in sorted(seen)]):
            return []  # a clock was wrong for a while, and led the search astray
        if late <= end:
            end = late = file.size
        if not begin and end == file.size:
            return []
        return [(begin, max(begin, end)), (max(begin, late), file.size), *_starts_before(file, begin)]


def _starts_before(file: EvidenceFile, end: int) -> Iterator[tuple[int, int]]:
    wanted = {_VERSION, _CONFIGURATION}
    for high in range(end, 0, -WINDOW_LENGTH):
        low = max(high - WINDOW_LENGTH, 0)
        chunk = file.read(low, high - low + len(_CONFIGURATION))
        for text in sorted(wanted):
            if (at := chunk.rfind(text)) >= 0:
                wanted.remove(text)
                yield max(low + at - START_LENGTH, 0), min(low + at + START_LENGTH, end)
        if not wanted:
            break


def _sought(file: EvidenceFile, layout: "Layout", time_ms: int, seen: dict[int, int]) -> tuple[int, int]:
    """Return two positions between which the lines of a time begin, at most a window apart; the whole file where a place has no time. Add the times that are read."""
    low, high = 0, file.size
    while high - low > WINDOW_LENGTH:
        middle = (low + high) // 2
        found = _time_in(file.read(middle, END_LENGTH), layout)
        if found is None:
            found = _time_in(file.read(middle, WINDOW_LENGTH // 2), layout)
        if found is None:
            return 0, file.size
        seen[middle] = found
        low, high = (middle, high) if found < time_ms else (low, middle)
    return low, high


def _rise(times: Sequence[int]) -> bool:
    """Whether lines follow one another in time: no other log was appended, and no clock was set back."""
    return all(one - OUT_OF_ORDER_MS <= two for one, two in pairwise(times))


def _spans(paths: Sequence[Path]) -> Iterator[LogSpan]:
    """Yield the times of all files that have any; the last line of a compressed file is given as -1."""
    number = {str(path): at for at, path in enumerate(paths)}
    samples = read_ranges(sample for path in paths for sample in _samples(path))
    for path, reads in groupby(samples, key=lambda one: str(one.wanted.path)):
        times, is_compressed, _ = _sampled(reads)
        known = [time for time in times if time is not None]
        if is_compressed:
            if len(known) == len(times) and _rise(known):
                yield LogSpan(number[path], known[0], -1)
        elif known and len(known) == len(times) and (_rise(known) or _rise(known[::-1])):
            yield LogSpan(number[path], min(known), max(known))


def _samples(path: Path) -> Iterator[Range]:
    """Yield the head of a file, places between, and its end."""
    try:
        with open_evidence(path) as file:
            size = file.size
    except EvidenceError:
        return
    yield Range(path, 0, SAMPLE_LENGTH)
    end = max(size - END_LENGTH, 0)
    for number in range(1, SAMPLES if size > WINDOW_LENGTH else 1):
        yield Range(path, number * end // SAMPLES, SAMPLE_LENGTH)
    yield Range(path, end, END_LENGTH)


def _sampled(reads: Iterable[RangeRead]) -> "tuple[list[int | None], bool, Layout]":
    """Return the times of the first line of each sample and of the last line of all, whether the file is compressed, and its layout."""
    from kforensics.formats.log_lines.stamps import Layout  # noqa: PLC0415 - 30 ms, where no time is asked for
    from kforensics.formats.log_lines.unwrap import layout_of  # noqa: PLC0415 - as above

    times: list[int | None] = []
    data, is_compressed, layout = b"", False, Layout()
    for one in reads:
        data = one.data
        if not times:
            is_compressed = bool(packing_of(data))
            with open_evidence(one.wanted.path) as file:
                data = b"".join(unpacked(file, most=END_LENGTH))[:END_LENGTH] if is_compressed else data
                layout = layout_of(data, changed_ms=file.mtime_ns // 1_000_000)
        times.append(_time_in(data, layout))
        if is_compressed:
            break
    return [*times, _time_in(data, layout, last=True)], is_compressed, layout


def _time_in(data: bytes, layout: "Layout", *, last: bool = False) -> int | None:
    """Return the time of the first line that has one, or of the last."""
    from kforensics.formats.log_lines.unwrap import line_moment, lines_of  # noqa: PLC0415 - 30 ms, where no time is asked for

    lines = lines_of(data)
    times = (line_moment(line, layout).time_ms for line in (reversed(lines) if last else lines))
    return next((time for time in times if isinstance(time, int)), None)
