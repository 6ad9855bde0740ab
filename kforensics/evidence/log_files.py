"""Broker logs among the inputs: recognised by content, read in windows, each with the node that wrote it."""

import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kforensics.damage import Absent
from kforensics.evidence.model import Citation, Problem
from kforensics.formats.log_lines.event import LineCensus, LogEvent, LogEventKind
from kforensics.formats.server_log import looks_like_broker_log, scan_log
from kforensics.source.mapped import EvidenceFile, open_evidence

WINDOW_LENGTH = 1 << 20
"""Bytes that are read and searched at a time."""

HEAD_LENGTH = 1 << 16
"""Bytes at a file's start that must show a broker's log line."""

EVENTS_KEPT = 250_000
"""Events of one file that are kept whatever they say, some 100 MB; above that only those in `DECISIVE`."""

DECISIVE = frozenset(
    {
        LogEventKind.TRUNCATION,
        LogEventKind.FULL_TRUNCATION,
        LogEventKind.METADATA_TRUNCATION,
        LogEventKind.RECOVERY_TRUNCATION,
        LogEventKind.TRUNCATION_REFUSED,
        LogEventKind.UNCLEAN_ELECTION,
        LogEventKind.SEGMENTS_DELETED,
        LogEventKind.LOG_DIR_FAILED,
        LogEventKind.BROKER_HALTED,
        LogEventKind.BROKER_STARTED,
        LogEventKind.RECOVERY_START,
    }
)

_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW = 31
_CONFIGURED_ID_WEIGHT = 1_000
_NODE_DIRECTORY = re.compile(r"(?:broker|controller|kafka|node)[-_.]?(?P<id>\d{1,9})", re.ASCII)
_CONTROLLER_KINDS = frozenset({LogEventKind.BROKER_REGISTERED, LogEventKind.BROKER_FENCED})


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """One broker log, read."""

    input: int
    path: str
    """Relative to the input."""
    is_compressed: bool
    """Positions are then those in what the file holds, not in the file."""
    node_id: int | Absent
    """The node that wrote it, from its lines; where they do not say, from the names of the directories above."""
    events: tuple[LogEvent, ...]
    """In file order."""
    census: LineCensus
    events_dropped: int
    problems: tuple[Problem, ...]
    mtime_ns: int

    @property
    def first_time_ms(self) -> int | Absent:
        """Time of the first event that has one, by the clock of the file."""
        return next((event.time_ms for event in self.events if isinstance(event.time_ms, int)), Absent.NOT_WRITTEN)

    @property
    def last_time_ms(self) -> int | Absent:
        """Time of the last event that has one, by the clock of the file."""
        times = (event.time_ms for event in reversed(self.events) if isinstance(event.time_ms, int))
        return next(times, Absent.NOT_WRITTEN)

    def cite(self, event: LogEvent) -> Citation:
        """The line that an event was read from."""
        return Citation(input=self.input, path=self.path, span=event.span, line=event.line)


def is_log_file(file: EvidenceFile) -> bool:
    """The file begins like a broker's log, gzipped or not."""
    head = file.read(0, HEAD_LENGTH)
    if head.startswith(_GZIP_MAGIC):
        try:
            head = zlib.decompressobj(_GZIP_WINDOW).decompress(head, HEAD_LENGTH)
        except zlib.error:
            return False
    return looks_like_broker_log(head)


def read_log_file(
    root: Path, path: str, *, input_index: int, keep: Callable[[LogEvent], bool] = lambda _event: True
) -> LogFile | None:
    """Read one file, none where it is no broker's log.

    Args:
        root: where the input really is.
        path: of the file, relative to the input; `.` where the input is the file.
        input_index: of the input that the file belongs to.
        keep: which events are wanted.

    Raises:
        EvidenceError: the file can't be opened or read.
    """
    location = root if path == "." else root / path
    with open_evidence(location) as file:
        if not is_log_file(file):
            return None
        is_compressed = file.read(0, len(_GZIP_MAGIC)) == _GZIP_MAGIC
        problems: list[Problem] = []
        chunks = _inflate(file, input_index, path, problems) if is_compressed else _windows(file)
        reading = _Reading()
        for window in scan_log(chunks):
            reading.add(window.events, window.census, keep)
        if reading.dropped:
            message = f"{reading.dropped:,} events of {reading.census.events:,} were left out to bound memory"
            problems.append(Problem(input=input_index, path=path, message=message))
        return LogFile(
            input=input_index,
            path=path,
            is_compressed=is_compressed,
            node_id=_node_of(reading.votes, location),
            events=tuple(reading.events),
            census=reading.census,
            events_dropped=reading.dropped,
            problems=tuple(problems),
            mtime_ns=file.mtime_ns,
        )


class _Reading:
    """What has been kept of a file so far."""

    def __init__(self) -> None:
        self.events: list[LogEvent] = []
        self.census = LineCensus()
        self.dropped = 0
        self.votes: Counter[int] = Counter()

    def add(self, events: Iterable[LogEvent], census: LineCensus, keep: Callable[[LogEvent], bool]) -> None:
        self.census = self.census.plus(census)
        for event in events:
            if isinstance(event.broker_id, int) and event.kind not in _CONTROLLER_KINDS:
                self.votes[event.broker_id] += 1
            if event.kind is LogEventKind.CONFIGURATION:
                self._vote_by_configuration(event)
            if not keep(event):
                continue
            if len(self.events) < EVENTS_KEPT or (event.kind in DECISIVE and len(self.events) < 2 * EVENTS_KEPT):
                self.events.append(event)
            else:
                self.dropped += 1

    def _vote_by_configuration(self, event: LogEvent) -> None:
        for name in ("node.id", "broker.id"):
            configured = event.number(name)
            if isinstance(configured, int) and configured >= 0:
                self.votes[configured] += _CONFIGURED_ID_WEIGHT
                return


def _node_of(votes: Counter[int], location: Path) -> int | Absent:
    if votes:
        return max(votes, key=lambda node: (votes[node], -node))
    for part in reversed(location.parts):
        named = _NODE_DIRECTORY.fullmatch(part)
        if named is not None:
            return int(named["id"])
    return Absent.UNKNOWN


def _windows(file: EvidenceFile) -> Iterator[bytes]:
    position = 0
    while chunk := file.read(position, WINDOW_LENGTH):
        yield chunk
        position += len(chunk)


def _inflate(file: EvidenceFile, input_index: int, path: str, problems: list[Problem]) -> Iterator[bytes]:
    """What a gzip file holds, member by member, a window at a time; behind damage nothing can be read."""
    inflater, is_open, position = zlib.decompressobj(_GZIP_WINDOW), False, 0
    for chunk in _windows(file):
        pending = chunk
        while pending:
            is_open = True
            try:
                yield inflater.decompress(pending, WINDOW_LENGTH)
            except zlib.error as error:
                message = f"the gzip stream is damaged near byte {position}: {error}; what follows is not read"
                problems.append(Problem(input=input_index, path=path, message=message, position=position))
                return
            pending = inflater.unconsumed_tail
            if inflater.eof:
                pending, inflater, is_open = inflater.unused_data, zlib.decompressobj(_GZIP_WINDOW), False
                if not pending.startswith(_GZIP_MAGIC[: len(pending)]):
                    return
        position += len(chunk)
    if is_open:
        message = "the gzip stream ends early; what it still held is read"
        problems.append(Problem(input=input_index, path=path, message=message, position=position))
