"""The places of partition directories, what the files of their log directories say of all of them, and how far the cleaner of a compacted topic has got."""

import stat
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from kforensics.damage import Absent
from kforensics.errors import EvidenceError, FormatError
from kforensics.evidence.discovery.inputs import WHOLE_INPUT, FoundInput, Inputs
from kforensics.evidence.discovery.log_dirs import node_kind
from kforensics.evidence.model import CheckpointValue, Citation, Problem
from kforensics.evidence.parallel import WORTH_A_PROCESS, Progress, spread
from kforensics.formats.checkpoint.lines import iter_checkpoint, plain_entries
from kforensics.formats.log.batch_table import BATCH_HEADER, TIMESTAMP_TYPE_BIT
from kforensics.formats.primitives.text_lines import DamageList
from kforensics.source.mapped import open_evidence
from kforensics.source.naming import (
    LARGEST_OFFSET,
    DirectoryState,
    FileKind,
    FileSuffix,
    PartitionDirectoryName,
    parse_partition_directory,
)
from kforensics.source.store import ForeignPath, Store, store_of
from kforensics.source.walk import Found, FoundDirectory, FoundFile, Listings, Obstacle, join, walk_partition
from kforensics.units import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TopicPartition

_LINE_BITS = 32


def packed_line(offset: int, line: int) -> int:
    """Return offset and line of a checkpoint, from 1, in one number: lines that are read are few enough for its bits."""
    return offset << _LINE_BITS | line


def unpacked_line(packed: int) -> tuple[int, int]:
    """Return offset and line of a checkpoint that `packed_line` put into one number."""
    return packed >> _LINE_BITS, packed & ((1 << _LINE_BITS) - 1)


class CheckpointLines(Mapping[TopicPartition, int]):
    """Offset and line of each partition in one number, by topic and then by partition; of two lines of a partition the last counts.

    Args:
        entries: topic, partition, offset and line, in the order of the file.
    """

    __slots__ = ("_count", "_topics")

    def __init__(self, entries: Iterable[tuple[str, int, int, int]]) -> None:
        rows: dict[str, array[int]] = {}
        for topic, partition, offset, line in entries:
            row = rows.get(topic)
            if row is None:
                rows[topic] = array("q", (partition, offset, line))
            else:
                row.extend((partition, offset, line))
        for topic, row in rows.items():
            rows[topic] = _by_partition(row)
        self._topics = rows
        """Of each topic, all partitions in order, then their offsets, then their lines."""
        self._count = sum(map(len, rows.values())) // 3

    def __getitem__(self, key: TopicPartition) -> int:
        row = self._topics[key[0]]
        count = len(row) // 3
        at = bisect_left(row, key[1], 0, count)
        if at == count or row[at] != key[1]:
            raise KeyError(key)
        return packed_line(row[count + at], row[2 * count + at])

    def __iter__(self) -> Iterator[TopicPartition]:
        for topic, row in self._topics.items():
            for partition in row[: len(row) // 3]:
                yield TopicPartition(topic, partition)

    def __len__(self) -> int:
        return self._count

    def __bytes__(self) -> bytes:
        return b"".join(f"{topic}\0{len(row)}\0".encode() + row.tobytes() for topic, row in self._topics.items())


def _by_partition(row: "array[int]") -> "array[int]":
    if len(row) == 3:
        return row
    last = {partition: at for at, partition in enumerate(row[::3])}
    order = sorted(last)
    places = [3 * last[partition] for partition in order]
    # From a list: an array that grew has room to spare.
    return array("q", [*order, *(row[at + 1] for at in places), *(row[at + 2] for at in places)])


TEXT_LIMIT = 64 << 20
"""Bytes of a checkpoint file that are read; 10^6 partitions need half of it."""

CHECKPOINTS = {
    "high_watermark": "replication-offset-checkpoint",
    "recovery_point": "recovery-point-offset-checkpoint",
    "log_start": "log-start-offset-checkpoint",
    "cleaner_point": "cleaner-offset-checkpoint",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirState:
    """The facts that one log directory's own files state about all its partitions."""

    listings: Listings
    """The listings of the input that the log directory belongs to."""
    input: int
    log_dir: str
    broker_id: int | Absent
    clean_shutdown: bool
    checkpoints: Mapping[str, Mapping[TopicPartition, int]] = field(default_factory=dict)
    """Offset and line of each partition in one number, as `packed_line` makes it."""
    unreadable: frozenset[str] = frozenset()
    """Names in `CHECKPOINTS` whose file is there and can't be understood."""
    without_directory: Mapping[str, Mapping[TopicPartition, int]] = field(default_factory=dict)
    """Offsets above zero of partitions that have no directory here, as `checkpoints` holds those of the others; empty where listing them has a cost."""
    is_controller: bool = False
    """Of a controller that is no broker."""
    other_case: Mapping[TopicPartition, TopicPartition] = field(default_factory=dict)
    """Partitions named by a checkpoint of which a directory here differs in case only, and its partition: one directory for both on a disk that ignores case."""

    @property
    def root(self) -> Path:
        """The root of the input."""
        return self.listings.root

    @property
    def store(self) -> Store:
        """What is known of the place of the input's files."""
        return store_of(self.listings.root)


class PartitionPlace(NamedTuple):
    """One partition directory and where it is; small enough to be sent to another process."""

    state: LogDirState
    path: str
    topic_partition: TopicPartition
    directory_state: str
    length: int = 0
    """Bytes of its segments."""
    is_left_out: bool = False
    """No segment of any partition of its input is here, though its checkpoints refer to records."""
    has_deleted: bool = False
    """It holds segments that were renamed for deletion."""
    remote_starts: tuple[tuple[str, int], ...] = ()
    """Topic ids of its name, and where their finished copies in remote storage begin, by records among the inputs."""

    @property
    def is_live(self) -> bool:
        """Whether it is the directory of a replica that its broker has: not set aside, moved or left over."""
        return self.directory_state == "live"


def read_log_dir_state(
    listings: Listings, *, input_index: int, log_dir: str, broker_id: int | Absent, clean_shutdown: bool
) -> tuple[LogDirState, tuple[Problem, ...]]:
    """Return the checkpoints of one log directory, each value with the line that says it."""
    problems: list[Problem] = []
    values: dict[str, Mapping[TopicPartition, int]] = {}
    elsewhere: dict[str, Mapping[TopicPartition, int]] = {}
    unreadable = set()
    root = listings.root
    here = _partitions_here(listings, log_dir)
    folded: dict[TopicPartition, TopicPartition] | None = None
    other_case: dict[TopicPartition, TopicPartition] = {}
    for name, file_name in CHECKPOINTS.items():
        path = join(log_dir, file_name)
        if not (root / path).exists():
            continue
        try:
            with open_evidence(root / path) as file:
                values[name], missing = _checkpoint_lines(file.read_all(TEXT_LIMIT), here)
            if missing and folded is None:  # of thousands of directories
                every = [TopicPartition(topic, number) for topic, numbers in (here or {}).items() for number in numbers]
                folded = {_folded(one): one for one in every}
                folded = folded if len(folded) == len(every) else {}  # else the disk tells case apart
            alike = {one: is_at for one in missing if (is_at := (folded or {}).get(_folded(one))) is not None}
            other_case.update(alike)
            elsewhere[name] = {one: packed for one, packed in missing.items() if one not in alike}
        except (EvidenceError, FormatError) as error:
            unreadable.add(name)
            problems.append(problem_of(input_index, path, error))
    state = LogDirState(
        listings=listings,
        input=input_index,
        log_dir=log_dir,
        broker_id=broker_id,
        clean_shutdown=clean_shutdown,
        checkpoints=values,
        unreadable=frozenset(unreadable),
        without_directory={name: lines for name, lines in elsewhere.items() if lines},
        other_case=other_case,
    )
    return state, tuple(problems)


def _folded(partition: TopicPartition) -> TopicPartition:
    return TopicPartition(partition.topic.casefold(), partition.partition)


def _partitions_here(listings: Listings, log_dir: str) -> dict[str, set[int]] | None:
    """Return the partitions that have a directory by topic; none where that can't be listed."""
    entries, obstacles = listings.lazily(log_dir)
    if obstacles:
        return None
    found: dict[str, set[int]] = {}
    for entry in entries:
        # A file under such a name is no directory; what a symbolic link leads to is not looked at.
        name = None if stat.S_ISREG(entry.mode) else parse_partition_directory(entry.name)
        if name is not None:
            found.setdefault(name.topic, set()).add(name.partition)
    return found


def _checkpoint_lines(
    data: bytes, here: Mapping[str, Collection[int]] | None
) -> tuple[CheckpointLines, dict[TopicPartition, int]]:
    """Offset and line of each partition that is here, and of each that is not and whose offset is above zero."""
    elsewhere: dict[TopicPartition, int] = {}

    def lines() -> Iterator[tuple[str, int, int, int]]:
        for topic, partition, offset, line in _entries(data):
            if here is None or partition in here.get(topic, ()):
                yield topic, partition, offset, line
            elif offset > 0:
                elsewhere[TopicPartition(topic, partition)] = packed_line(offset, line)

    return CheckpointLines(lines()), elsewhere


def _entries(data: bytes) -> Iterator[tuple[str, int, int, int]]:
    """Yield topic, partition, offset and line of each entry of an offset checkpoint."""
    plain = plain_entries(data)
    if plain is None:
        yield from (one[:4] for one in iter_checkpoint(data, DamageList()))
    else:
        for line, (topic, number, offset) in enumerate(plain, 3):
            yield topic.decode("ascii"), int(number), int(offset), line


LOGS_LEFT_OUT = "no .log file of any partition is here: the copy left them out, so nothing can be said of their records"


def no_logs_are_here(states: Iterable[LogDirState], *, has_segments: bool) -> bool:
    """Whether log directories whose checkpoints refer to records hold no segment at all."""
    if has_segments:
        return False
    names = ("high_watermark", "recovery_point")
    return any(
        unpacked_line(packed)[0]
        for state in states
        for name in names
        for packed in state.checkpoints.get(name, {}).values()
    )


class LostDirectory(NamedTuple):
    """A partition that the checkpoints of a log directory name, and of which its node holds no directory."""

    topic_partition: TopicPartition
    broker_id: int | Absent
    name: str
    """The checkpoint that names it with the highest offset, a key of `CHECKPOINTS`."""
    value: CheckpointValue


def lost_directories(
    states: Collection[LogDirState], held: Iterable[tuple[int, TopicPartition]]
) -> tuple[tuple[LostDirectory, ...], tuple[Problem, ...]]:
    """Return the partitions that checkpoints name and of which no log directory of the same node holds a directory, under whatever name.

    A broker removes the lines of a partition that it deleted or that was moved away, and until then keeps its directory under another name.

    Args:
        held: input and partition of every directory.

    Returns:
        What is lost, and a problem for each log directory that names more partitions without a directory than there are with one: then the copy can have
        left them out. Another for each that holds a directory whose name differs in case only.
    """
    problems = [problem for state in states for problem in _of_other_case(state)]
    if not any(state.without_directory for state in states):
        return (), tuple(problems)
    by_broker: dict[int | str, set[TopicPartition]] = {}
    owners = {state.input: _owner(state) for state in states}
    for number, partition in held:
        by_broker.setdefault(owners.get(number, f"input {number}"), set()).add(partition)
    lost: list[LostDirectory] = []
    for state in states:
        here = by_broker.get(_owner(state), set())
        own = named_without_directory(state, here)
        if len(own) > len(here):
            named = f"{own[0].topic_partition} and {len(own) - 1} more" if len(own) > 1 else str(own[0].topic_partition)
            message = f"its checkpoints name {len(own)} partitions of which no directory is here ({named}): the copy left them out, or they are lost"
            problems.append(Problem(input=state.input, path=state.log_dir or WHOLE_INPUT, message=message))
        else:
            lost += own
    return tuple(lost), tuple(problems)


def _of_other_case(state: LogDirState) -> Iterator[Problem]:
    for named, is_at in sorted(state.other_case.items()):
        message = (
            f"the checkpoints also name {named}, which differs from it in case only: a disk that ignores case has one directory for both, "
            f"so it is not known whether one of {named} is missing, nor which of the two these files are of"
        )
        yield Problem(input=state.input, path=join(state.log_dir, str(is_at)), message=message)


def _owner(state: LogDirState) -> int | str:
    return f"input {state.input}" if isinstance(state.broker_id, Absent) else state.broker_id


def named_without_directory(state: LogDirState, here: Collection[TopicPartition]) -> list[LostDirectory]:
    """Return the partitions that the checkpoints of a log directory name with an offset above zero and that have no directory, each once."""
    found: dict[TopicPartition, tuple[int, str]] = {}
    for name in ("high_watermark", "recovery_point", "log_start"):
        for partition, packed in state.without_directory.get(name, {}).items():
            if partition not in here and (
                unpacked_line(packed)[0] > unpacked_line(found.get(partition, (0, ""))[0])[0]
            ):
                found[partition] = packed, name
    return [
        LostDirectory(
            topic_partition=partition,
            broker_id=state.broker_id,
            name=name,
            value=_unpacked(state, name, packed),
        )
        for partition, (packed, name) in sorted(found.items())
    ]


class Places(NamedTuple):
    """Every partition directory of the inputs, by partition, and what could not be looked at."""

    by_partition: Mapping[TopicPartition, tuple[PartitionPlace, ...]]
    problems: tuple[Problem, ...]
    lost: tuple[LostDirectory, ...] = ()
    """Partitions that checkpoints name and of which their node holds no directory."""
    states: tuple[LogDirState, ...] = ()
    """The checkpoints of all log directories."""

    def brokers_without_directory(self, inputs: Container[int]) -> dict[TopicPartition, frozenset[int]]:
        """Return the brokers whose checkpoints name a partition of which no directory of theirs is in some inputs."""
        naming = [one for one in self.states if one.input in inputs and one.without_directory]
        here: dict[int | Absent, set[TopicPartition]] = {one.broker_id: set() for one in naming}
        for partition, group in self.by_partition.items() if naming else ():
            for place in group:
                if place.state.input in inputs and place.state.broker_id in here:
                    here[place.state.broker_id].add(partition)
        found: dict[TopicPartition, set[int]] = {}
        for state in naming:
            for one in named_without_directory(state, here[state.broker_id]):
                if isinstance(one.broker_id, int):
                    found.setdefault(one.topic_partition, set()).add(one.broker_id)
        return {partition: frozenset(brokers) for partition, brokers in found.items()}


LISTED_AT_ONCE = 250
"""Partition directories that a process lists at a time; where there are fewer than eight times as many, none is begun for them."""


def list_ahead(inputs: Inputs, jobs: int) -> None:
    """List thousands of partition directories in several processes."""
    wanted = [
        (one.listings, join(log_dir, name))
        for one in inputs.found
        if not isinstance(one.root, ForeignPath)
        for log_dir in one.log_dir_paths
        for name, mode, _, _ in one.listings.rows(log_dir)[0]
        if stat.S_ISDIR(mode)
    ]
    tasks = [wanted[at : at + LISTED_AT_ONCE] for at in range(0, len(wanted), LISTED_AT_ONCE)]
    if jobs < 2 or len(tasks) < 8:
        return

    def look(task: Sequence[tuple[Listings, str]], _: Progress) -> list[Any]:
        return [listings.packed(path) for listings, path in task]

    found = spread(look, tasks, weights=[WORTH_A_PROCESS] * len(tasks), jobs=jobs, joins=True)
    for task, listed in zip(tasks, found, strict=True):
        for (listings, path), one in zip(task, listed, strict=True):
            listings.keep(path, one)


def find_places(inputs: Inputs) -> Places:
    """Return the partition directories of all inputs; reads names and checkpoints, no logs."""
    problems = list(inputs.problems)
    places: dict[TopicPartition, list[PartitionPlace]] = {}
    every: list[LogDirState] = []
    for index, found in enumerate(inputs.found):
        states = log_dir_states(index, found, problems)
        own = list(places_in(index, found.walk(in_outline=True), states, problems))
        if no_logs_are_here(states.values(), has_segments=any(one.has_segments for one in own)):
            problems.append(Problem(input=index, path=WHOLE_INPUT, message=LOGS_LEFT_OUT))
            own = [one._replace(place=one.place._replace(is_left_out=True)) for one in own]
        every += states.values()
        for one in own:
            places.setdefault(one.place.topic_partition, []).append(one.place)
    lost, left_out = lost_directories(every, ((p.state.input, tp) for tp, group in places.items() for p in group))
    return Places(
        by_partition={tp: tuple(places[tp]) for tp in sorted(places)},
        problems=(*problems, *left_out),
        lost=lost,
        states=tuple(every),
    )


class PlaceFound(NamedTuple):
    """A partition directory, and what its names show."""

    place: PartitionPlace
    has_segments: bool
    """It holds a segment in use."""

    @property
    def is_urgent(self) -> bool:
        """Whether a broker is about to remove it, or segments in it."""
        return self.place.has_deleted or self.place.directory_state == DirectoryState.DELETED.value


def places_in(
    index: int, items: Iterable[Found], states: Mapping[str, LogDirState], problems: list[Problem]
) -> Iterator[PlaceFound]:
    """Yield the partition directories of an input, each when all names in it were read."""
    current: tuple[FoundDirectory, PartitionDirectoryName] | None = None
    length, has_segments, has_deleted = 0, False, False

    def ended(directory: FoundDirectory, name: PartitionDirectoryName) -> PlaceFound:
        place = PartitionPlace(
            state=states[directory.log_dir],
            path=directory.path,
            topic_partition=name.topic_partition,
            directory_state=name.state.value,
            length=length,
            has_deleted=has_deleted,
        )
        return PlaceFound(place, has_segments)

    for item in items:
        match item:
            case FoundFile():
                if current is not None and item.name.kind is FileKind.SEGMENT:
                    length += item.length if isinstance(item.partition, FoundDirectory) else 0
                    has_segments |= item.is_live_segment
                    has_deleted |= item.name.suffix is FileSuffix.DELETED
            case FoundDirectory():
                if current is not None:
                    yield ended(*current)
                current = (item, item.name) if isinstance(item.name, PartitionDirectoryName) else None
                length, has_segments, has_deleted = item.segment_bytes or 0, item.segment_bytes is not None, False
            case Obstacle():
                problems.append(Problem(input=index, path=item.path, message=item.message))
    if current is not None:
        yield ended(*current)


def log_dir_states(index: int, found: FoundInput, problems: list[Problem]) -> dict[str, LogDirState]:
    """Return the checkpoints of every log directory of an input, by its path."""
    if not found.log_dirs:
        # A partition directory by itself: whatever its log directory says is outside of the input.
        return {
            "": LogDirState(
                listings=found.listings, input=index, log_dir="", broker_id=Absent.UNKNOWN, clean_shutdown=False
            )
        }
    states = {}
    is_controller = node_kind(found.log_dirs, found.described.broker_id) == "controller"
    for log_dir in found.log_dirs:
        state, met = read_log_dir_state(
            found.listings,
            input_index=index,
            log_dir=log_dir.path,
            broker_id=found.described.broker_id,
            clean_shutdown=log_dir.clean_shutdown,
        )
        states[log_dir.path] = replace(state, is_controller=is_controller)
        problems.extend(met)
    return states


def checkpoint_value(state: LogDirState, name: str, partition: TopicPartition) -> CheckpointValue | Absent:
    """Return the value that one of the `CHECKPOINTS` has for a partition; `UNREADABLE` where the file is, `NOT_WRITTEN` where it has no such line."""
    packed = _packed_line_of(state, name, partition)
    return packed if isinstance(packed, Absent) else _unpacked(state, name, packed)


def checkpoint_line(state: LogDirState, name: str, partition: TopicPartition) -> tuple[int, int] | Absent:
    """Return the value that one of the `CHECKPOINTS` has for a partition, and the line that says it."""
    packed = _packed_line_of(state, name, partition)
    return packed if isinstance(packed, Absent) else unpacked_line(packed)


def checkpoint_offset(state: LogDirState, name: str, partition: TopicPartition) -> int | Absent:
    """Return the value that one of the `CHECKPOINTS` has for a partition, without the line that says it."""
    line = checkpoint_line(state, name, partition)
    return line if isinstance(line, Absent) else line[0]


def begins_with_first_segment(state: LogDirState, partition: TopicPartition) -> bool:
    """Return whether `log-start-offset-checkpoint` is there and does not name a partition: its log began with its first segment, and no part of it is in remote storage.

    `LogManager.checkpointLogStartOffsetsInDir`, once a minute and at a clean stop, 0.11 and later.
    """
    return "log_start" in state.checkpoints and checkpoint_offset(state, "log_start", partition) is Absent.NOT_WRITTEN


def _packed_line_of(state: LogDirState, name: str, partition: TopicPartition) -> int | Absent:
    lines = state.checkpoints.get(name)
    packed = lines.get(partition) if lines else None
    if packed is not None:
        return packed
    return Absent.UNREADABLE if name in state.unreadable else Absent.NOT_WRITTEN


def _unpacked(state: LogDirState, name: str, packed: int) -> CheckpointValue:
    path = join(state.log_dir, CHECKPOINTS[name])
    offset, line = unpacked_line(packed)
    return CheckpointValue(value=offset, citation=Citation(input=state.input, path=path, line=line))


def problem_of(input_index: int, path: str, error: Exception) -> Problem:
    """Return what can't be read, and where, as the report says it."""
    message = error.problem if isinstance(error, EvidenceError) else str(error)
    position = error.span.position if isinstance(error, FormatError) else Absent.NOT_APPLICABLE
    return Problem(input=input_index, path=path, message=message, position=position)


Value = TypeVar("Value")

SHORT = 1 << 10
"""Bytes up to which it is likely that others hold the same."""


@lru_cache(maxsize=1 << 10)
def parsed_once(parse: Callable[[bytes], Value], data: bytes) -> Value:
    """Return a small file of at most `SHORT` bytes, understood once for all that hold the same."""
    return parse(data)


_COMPACTED = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC})
"""Topics that brokers create with `cleanup.policy=compact`; any other is one where the cleaner's checkpoint names it."""

_FEWEST_SEGMENTS, _FEWEST_WHEN_STOPPED = 3, 2
_LEAST_HOURS_MS = 3_600_000
"""A running cleaner looks every 15 seconds for a log of which half is dirty (`log.cleaner.backoff.ms`, `min.cleanable.dirty.ratio`)."""


class CleanerLag(NamedTuple):
    """Closed segments that a running cleaner would have compacted."""

    cleaner_point: int | Absent
    """Where the cleaner stands by its checkpoint; absent where that does not name the log."""
    first_offset: int
    """Where they begin."""
    end_offset: int
    """Where the active segment begins, which no cleaner touches."""
    segments: int
    bytes: int
    percent: int
    """Of the bytes of all closed segments."""
    since_ms: int
    """When the oldest of them was written last."""
    is_claimed: bool = False
    """That time is one that a producer gave its records: the times of the files do not show for how long they wait."""


def cleaner_lag(
    topic: str, files: Iterable[FoundFile], cleaner_point: int | Absent, *, root: Path, is_stopped: bool = False
) -> CleanerLag | None:
    """Return how much waits for the cleaner, none where it may only not have come to it yet.

    A copy may have lost the times of its files: where these are close together, the times of the first batches count.

    Args:
        root: where the paths of the files begin.
        is_stopped: whether it is known to run no more, so that what waits need not have waited for long.
    """
    if topic not in _COMPACTED and not isinstance(cleaner_point, int):
        return None
    files = list(files)
    live = live_segments(files)
    fewest = _FEWEST_WHEN_STOPPED if is_stopped else _FEWEST_SEGMENTS
    if len(live) <= fewest:
        return None
    point = cleaner_point if isinstance(cleaner_point, int) else 0
    closed, end = live[:-1], live[-1][0]
    dirty = [one for one in closed if one[0] >= point]
    total, waiting = sum(length for _, length, _ in closed), sum(length for _, length, _ in dirty)
    if len(dirty) < fewest or not waiting:
        return None
    if not is_stopped and waiting * 2 < total:
        return None
    since_ms, is_claimed = dirty[0][2], False
    if dirty[-1][2] - since_ms < _LEAST_HOURS_MS:
        paths = {one.name.base_offset: one.path for one in files if one.name.kind is FileKind.SEGMENT}
        # A segment is complete once the next one begins.
        (first, by_broker), (last, _) = (_first_stamp(root / paths[dirty[at][0]]) for at in (1, -1))
        by_broker |= topic in _COMPACTED
        if 0 <= first <= last - _LEAST_HOURS_MS and (by_broker or not is_stopped):
            since_ms, is_claimed = first, not by_broker
        elif not is_stopped:
            return None
    return CleanerLag(
        cleaner_point,
        max(dirty[0][0], point),
        end,
        len(dirty),
        waiting,
        waiting * 100 // total,
        since_ms,
        is_claimed,
    )


def _first_stamp(path: Path) -> tuple[int, bool]:
    """Return the largest timestamp of the first batch of a segment, -1 where it can't be read, and whether a broker gave it."""
    try:
        with open_evidence(path) as file:
            header = file.read(0, BATCH_HEADER.length)
    except EvidenceError:
        header = b""
    if len(header) < BATCH_HEADER.length:
        return -1, False
    _, _, _, magic, _, attributes, _, _, max_timestamp, *_ = BATCH_HEADER.struct.unpack_from(header)
    return (max_timestamp, bool(attributes & TIMESTAMP_TYPE_BIT)) if magic == 2 else (-1, False)


def live_segments(files: Iterable[FoundFile]) -> list[tuple[int, int, int]]:
    """Return base offset, length and time of the last write of each segment that is not being deleted or put in place, the active one last."""
    return sorted(
        (base, file.length, file.mtime_ns // 1_000_000)
        for file in files
        if file.name.kind is FileKind.SEGMENT
        and file.name.suffix is FileSuffix.NONE
        and isinstance(base := file.name.base_offset, int)
    )


def left_by_cleaning(files: Iterable[FoundFile]) -> list[tuple[str, bool]]:
    """Return the path of each segment that a cleaning, or a split, was to put in place or was writing, and whether the next start puts it in place (since 2.0)."""
    left = [one for one in files if one.name.kind is FileKind.SEGMENT and one.name.suffix in _REPLACING]
    bases = [one.name.base_offset for one in left if one.name.suffix is FileSuffix.CLEANED]
    lowest = min((base for base in bases if isinstance(base, int)), default=LARGEST_OFFSET)
    return [
        (one.path, one.name.suffix is FileSuffix.SWAP and base < lowest)
        for one in left
        if isinstance(base := one.name.base_offset, int)
    ]


_REPLACING = frozenset({FileSuffix.SWAP, FileSuffix.CLEANED})


def cleaner_lag_of(place: PartitionPlace, *, is_stopped: bool = False) -> CleanerLag | None:
    """Return the same of a partition directory that was found."""
    point = checkpoint_value(place.state, "cleaner_point", place.topic_partition)
    value = point.value if isinstance(point, CheckpointValue) else point
    return cleaner_lag(
        place.topic_partition.topic, files_of(place), value, root=place.state.listings.root, is_stopped=is_stopped
    )


def files_of(place: PartitionPlace) -> Iterator[FoundFile]:
    """Yield the files of a partition directory that was found."""
    name = place.path.rpartition("/")[2]
    return (one for one in walk_partition(place.state.listings, place.path, name=name) if isinstance(one, FoundFile))
