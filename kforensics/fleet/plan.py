"""The plan of an audit: what there is to read, listed in place, and its division into tasks of near-equal bytes.

Each log directory's listing is written to a part of the `plan` table and only its totals are sent; a task is a run of the
listings of one or more log directories.
"""

import hashlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kforensics import __version__
from kforensics.ask.model import Ask
from kforensics.case.wanted import is_wanted
from kforensics.damage import Absent
from kforensics.evidence.captured.columns import Row
from kforensics.evidence.discovery.inputs import FoundInput
from kforensics.evidence.discovery.partition_dirs import (
    CHECKPOINTS,
    CheckpointLines,
    LogDirState,
    PartitionPlace,
    checkpoint_line,
    log_dir_states,
    named_without_directory,
    no_logs_are_here,
    packed_line,
)
from kforensics.evidence.model import Problem
from kforensics.evidence.replica.collect import placed_segments
from kforensics.fleet.audit_tables import AuditTables
from kforensics.fleet.rows import problem_row
from kforensics.fleet.schemas import OF_VERDICTS
from kforensics.fleet.sources import FoundSources, PlannedInput
from kforensics.fleet.tables import Tables
from kforensics.source.naming import FileKind, FileSuffix, PartitionDirectoryName
from kforensics.source.store import store_of
from kforensics.source.walk import SETTLED_NS, FoundDirectory, FoundFile, Obstacle
from kforensics.units import OFFSETS_TOPIC, Depth, TopicPartition

DIRECTORY_WEIGHT = 128 << 10
FILE_WEIGHT = 256 << 10
"""Bytes that could be read in the time that listing a directory or opening a file takes."""

LEAST_TASK = 64 << 20
LARGEST_TASK = 512 << 20
MOST_TASKS = 20_000
"""A fleet too large for as many tasks of `LARGEST_TASK` bytes gets larger ones."""

TASKS_A_CORE = 6
"""So that no core waits long for the last one."""

IS_DIRECTORY, IS_SEGMENT, IS_DELETED_SEGMENT = 0, 1, 2


Named = tuple[str, int, str, int, int]
"""A partition that a checkpoint names and that has no directory beside it: topic, partition, which checkpoint, offset, line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirTask:
    """One log directory to list and to read."""

    number: int
    input: int
    source: str
    found: FoundInput
    """The input with this log directory alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirTotals:
    """The result of listing a log directory."""

    number: int
    weight: int
    bytes: int
    replicas: int
    segments: int
    problems: int
    topics: tuple[str, ...] = ()
    """The topics that were asked for by name and are there."""
    fingerprint: str = ""
    """The digest of the names, lengths and times of change of all files in the log directory."""
    newest_ns: int = 0
    """The newest of these times."""
    named: tuple[Named, ...] = ()
    """Partitions that its checkpoints name and that have no directory in it."""
    has_segments: bool = True
    offsets_bytes: int = 0
    """Of the segments of consumers' offsets."""
    refers_to_records: bool = False
    """Its checkpoints refer to records of partitions that have a directory in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A run of the listing of one log directory, by weight."""

    number: int
    start: int
    end: int


def log_dir_tasks(inputs: Sequence[PlannedInput]) -> tuple[LogDirTask, ...]:
    """Return the log directories of all inputs, in order; a loose partition directory is one by itself."""
    tasks: list[LogDirTask] = []
    for index, planned in enumerate(inputs):
        found = planned.found
        if isinstance(found.shape, Absent) or not (found.log_dirs or found.described.kind == "partition"):
            continue
        for place, source in enumerate(planned.sources):
            own = found
            if found.log_dirs:
                own = replace(
                    found,
                    log_dirs=(found.log_dirs[place],),
                    log_dir_paths=(found.log_dir_paths[place],),
                    obstacles=found.obstacles if place == 0 else (),
                )
            tasks.append(LogDirTask(number=len(tasks), input=index, source=source, found=own))
    return tuple(tasks)


# ---------------------------------------------------------------- the content of a log directory


def part_name(number: int) -> str:
    """Return the part of the `plan` table that lists a log directory."""
    return f"log-dir-{number:06d}"


def verdict_id(audit: str, key: tuple[str, str, int]) -> int:
    """Return the number of the verdict of an audit on a partition, which tells the rows that it is about from those of other audits."""
    digest = hashlib.blake2b(f"{audit}\0{key[0]}\0{key[1]}\0{key[2]}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def file_fingerprint(item: FoundFile) -> bytes:
    """Return what is the same as long as a file is; never the same where the storage knows no time of change."""
    changed = item.mtime_ns or uuid.uuid4().hex
    return f"{item.path}\0{item.length}\0{changed}\n".encode(errors="surrogateescape")


class LogDirLister:
    """Lists one log directory: what tells whether it is as it was, and when it is asked for what there is to read, which takes longer.

    Args:
        task: the log directory, of which names, lengths and times of change are looked at now.
    """

    def __init__(self, task: LogDirTask, options: Ask) -> None:
        self._task = task
        self._options = options
        self.problems: list[Problem] = []
        self.weight = 0
        self.topics: set[str] = set()
        self.newest_ns = 0
        self.has_segments = False
        self._states: Mapping[str, LogDirState] = log_dir_states(task.input, task.found, self.problems)
        found, capture = task.found, store_of(task.found.root).capture
        held = None if capture is None else capture.holds_records
        self._whose = f"{(task.input, str(found.root), found.described, task.source, held)}"
        self._found = tuple(found.walk())
        self.fingerprint = self._outline()

    def _outline(self) -> str:
        """Return a digest of the names, lengths and times of change of all files, and of what the checkpoints say."""
        digest = hashlib.sha256(self._whose.encode(errors="surrogateescape"))
        for state in self._states.values():
            elsewhere = {name: sorted(lines.items()) for name, lines in state.without_directory.items()}
            digest.update(f"{state.clean_shutdown}\0{sorted(state.unreadable)}\0{elsewhere}\0".encode())
            for name, lines in state.checkpoints.items():
                assert isinstance(lines, CheckpointLines)
                digest.update(name.encode() + bytes(lines))
        for item in self._found:
            match item:
                case FoundFile():
                    self.has_segments |= item.is_live_segment
                    self.newest_ns = max(self.newest_ns, item.mtime_ns)
                    digest.update(file_fingerprint(item))
                case FoundDirectory():
                    digest.update(f"{item.path}\n".encode(errors="surrogateescape"))
                case Obstacle():
                    self.problems.append(Problem(input=self._task.input, path=item.path, message=item.message))
        return digest.hexdigest()

    @property
    def outline(self) -> LogDirTotals:
        """What is known of it before its rows are."""
        return LogDirTotals(
            number=self._task.number,
            weight=0,
            bytes=0,
            replicas=0,
            segments=0,
            problems=len(self.problems),
            fingerprint=self.fingerprint,
            newest_ns=self.newest_ns,
            has_segments=self.has_segments,
        )

    def listed(self, tables: Tables) -> LogDirTotals:
        """Write the rows into the `plan` table, and return the totals."""
        rows, number = self.rows(), self._task.number
        tables.write("plan", part_name(number), rows)
        tables.write_if_any("problems", f"plan-{number:06d}", [problem_row(one) for one in self.problems])
        return replace(
            self.outline,
            weight=self.weight,
            bytes=sum(row["length"] for row in rows),
            replicas=sum(row["kind"] == IS_DIRECTORY for row in rows),
            segments=sum(row["kind"] != IS_DIRECTORY for row in rows),
            topics=tuple(sorted(self.topics)),
            named=tuple(self.named()),
            refers_to_records=self.refers_to_records,
            offsets_bytes=sum(row["length"] for row in rows if row["topic"] == OFFSETS_TOPIC),
        )

    @property
    def refers_to_records(self) -> bool:
        """Whether the checkpoints refer to records of partitions that have a directory here."""
        return no_logs_are_here(self._states.values(), has_segments=False)

    def named(self) -> Iterator[Named]:
        """Yield what the checkpoints name and has no directory here."""
        for state in self._states.values():
            for one in named_without_directory(state, ()):
                if is_wanted(one.topic_partition, self._options):
                    yield (*one.topic_partition, one.name, one.value.value, int(one.value.citation.line))

    def rows(self) -> list[Row]:
        """Return the directories of partitions and their segments."""
        states = self._states
        rows: list[Row] = []
        directories: dict[str, Row] = {}
        digests: dict[str, Any] = {}
        current: FoundDirectory | None = None
        row: Row = {}
        below = ""
        sequence = -1
        placed = self._placed()
        for item in self._found:
            if current is not None and isinstance(item, FoundFile) and item.path.startswith(below):
                digests[current.path].update(file_fingerprint(item))
                row["mtime_ns"] = max(row["mtime_ns"], item.mtime_ns)
            match item:
                case FoundDirectory(name=PartitionDirectoryName() as name):
                    partition = name.topic_partition
                    self.topics |= {partition.topic} & self._options.topics
                    wanted = is_wanted(partition, self._options)
                    current = item if wanted else None
                    if wanted:
                        sequence += 1
                        row = directories[item.path] = self._directory(item, name, states[item.log_dir], sequence)
                        rows.append(row)
                        below = f"{item.path}/"
                        digests[item.path] = hashlib.blake2b(self._facts_of(row, states[item.log_dir]), digest_size=16)
                case FoundDirectory():
                    current = None
                case FoundFile() if (
                    current is not None
                    and item.name.kind is FileKind.SEGMENT
                    and (item.name.suffix in {FileSuffix.NONE, FileSuffix.DELETED} or item.path in placed)
                    and item.path.rpartition("/")[0] == current.path
                ):
                    rows.append(self._segment(item, current, sequence))
                    row["segment_files"] += 1
        for path, row in directories.items():
            row["fingerprint"] = digests[path].hexdigest()
        return rows

    def _placed(self) -> set[str]:
        """Return the segments that the next start puts in place."""
        files: dict[str, list[FoundFile]] = {}
        swaps = set()
        for item in self._found:
            if isinstance(item, FoundFile) and item.name.kind is FileKind.SEGMENT:
                folder = item.path.rpartition("/")[0]
                files.setdefault(folder, []).append(item)
                swaps |= {folder} if item.name.suffix is FileSuffix.SWAP else set()
        return {one.path for folder in swaps for one in placed_segments(files[folder])}

    def _facts_of(self, row: Row, state: LogDirState) -> bytes:
        """Return what a replica is judged by beyond its files: the lines about it, its place, and whose it is."""
        about = [row[name] for name in ("path", "state", *CHECKPOINTS, "checkpoint_lines", "unreadable")]
        return f"{self._whose}\0{state.clean_shutdown}\0{about}\n".encode(errors="surrogateescape")

    def _directory(self, item: FoundDirectory, name: PartitionDirectoryName, state: LogDirState, sequence: int) -> Row:
        partition = name.topic_partition
        lines: dict[str, tuple[int | None, int | None]] = dict.fromkeys(CHECKPOINTS, (None, None))
        for one in state.checkpoints:
            line = checkpoint_line(state, one, partition)
            if not isinstance(line, Absent):
                lines[one] = line
        return {
            **self._place(DIRECTORY_WEIGHT, sequence, item.path, partition),
            "kind": IS_DIRECTORY,
            "state": name.state.value,
            "directory": item.path,
            "length": 0,
            "mtime_ns": 0,
            **{one: offset for one, (offset, _) in lines.items()},
            "checkpoint_lines": [line for _, line in lines.values()],
            "unreadable": sorted(state.unreadable),
            "segment_files": 0,
        }

    def _segment(self, item: FoundFile, directory: FoundDirectory, sequence: int) -> Row:
        assert isinstance(directory.name, PartitionDirectoryName)
        # Of the logs of all directories the ends are read, which cost the same.
        weight = 0 if self._options.depth is Depth.TAILS else FILE_WEIGHT + item.length
        return {
            **self._place(weight, sequence, item.path, directory.name.topic_partition),
            "kind": IS_DELETED_SEGMENT if item.name.suffix is FileSuffix.DELETED else IS_SEGMENT,
            "directory": directory.path,
            "length": item.length,
            "mtime_ns": item.mtime_ns,
            "base_offset": item.name.base_offset,
        }

    def _place(self, weight: int, sequence: int, path: str, partition: TopicPartition) -> Row:
        at = self.weight
        self.weight += weight
        return {
            "at": at,
            "sequence": sequence,
            "path": path,
            "topic": partition.topic,
            "partition": partition.partition,
        }


def state_of(task: LogDirTask, **more: Any) -> LogDirState:
    """Return what is known of a log directory, with what its checkpoints say as far as that is given."""
    return LogDirState(
        listings=task.found.listings,
        input=task.input,
        log_dir=task.found.log_dir_paths[0] if task.found.log_dir_paths else "",
        broker_id=task.found.described.broker_id if task.found.log_dirs else Absent.UNKNOWN,
        clean_shutdown=bool(task.found.log_dirs) and task.found.log_dirs[0].clean_shutdown,
        **more,
    )


def place_of(task: LogDirTask, row: Mapping[str, Any]) -> PartitionPlace:
    """Return the partition directory of a row of the plan, with the facts that its log directory has about it."""
    partition = TopicPartition(row["topic"], row["partition"])
    lines = row["checkpoint_lines"] or (None,) * len(CHECKPOINTS)
    state = state_of(
        task,
        checkpoints={
            name: {partition: packed_line(row[name], line or 0)}
            for name, line in zip(CHECKPOINTS, lines, strict=True)
            if row[name] is not None
        },
        unreadable=frozenset(row["unreadable"] or ()),
    )
    return PartitionPlace(
        state=state, path=row["path"], topic_partition=partition, directory_state=row["state"], length=0
    )


def inputs_without_logs(tasks: Sequence[LogDirTask], totals: Sequence[LogDirTotals]) -> frozenset[int]:
    """Return the inputs whose checkpoints refer to records and that hold no segment at all: directories without logs are no empty logs."""
    by_input: dict[int, list[LogDirTotals]] = {}
    for task, one in zip(tasks, totals, strict=True):
        by_input.setdefault(task.input, []).append(one)
    return frozenset(
        number
        for number, own in by_input.items()
        if not any(one.has_segments for one in own) and any(one.refers_to_records for one in own)
    )


# ---------------------------------------------------------------- tasks


def divide(totals: Sequence[LogDirTotals], *, cores: int) -> tuple[tuple[Piece, ...], ...]:
    """Return tasks of near-equal weight: runs over the listings, of several small log directories or of a part of a large one."""
    whole = sum(one.weight for one in totals)
    wanted = max(LEAST_TASK, min(LARGEST_TASK, whole // (cores * TASKS_A_CORE)), whole // MOST_TASKS)
    tasks: list[tuple[Piece, ...]] = []
    current: list[Piece] = []
    room = wanted
    for one in totals:
        for piece in _pieces(one, room, wanted):
            current.append(piece)
            room -= piece.end - piece.start
            if room <= 0:
                tasks.append(tuple(current))
                current, room = [], wanted
    if current:
        tasks.append(tuple(current))
    return tuple(tasks)


def _pieces(one: LogDirTotals, room: int, wanted: int) -> Iterator[Piece]:
    start = 0
    while one.weight - start > room:
        yield Piece(number=one.number, start=start, end=start + room)
        start, room = start + room, wanted
    if one.weight > start or (start == 0 and one.weight == 0):
        yield Piece(number=one.number, start=start, end=one.weight)


# ---------------------------------------------------------------- whether anything changed

TAKEN_OVER = ("nodes", *OF_VERDICTS, "problems")
"""The tables that are the same where nothing has changed."""


def fingerprint_of(
    found: FoundSources, tasks: Sequence[LogDirTask], totals: Sequence[LogDirTotals], options: Ask
) -> str:
    """Return a digest of all that a verdict depends on: every file's name, length and time of change, the options, and this program."""
    out = hashlib.sha256(f"{__version__}\0{options_words(options)}\n".encode())
    for number, one in enumerate(found.inputs):
        described = one.found.described
        out.update(f"{number}\0{described}\0{one.rack}\n".encode(errors="surrogateescape"))
        if not one.found.log_dirs and described.kind != "partition":
            for item in one.found.walk():
                if isinstance(item, FoundFile):
                    out.update(file_fingerprint(item))
    out.update(f"{found.disagreements}\n".encode(errors="surrogateescape"))
    for cluster, assignments in found.assignments.items():
        out.update(f"{cluster}\0{sorted(assignments.items())}\n".encode())
    for task, total in zip(tasks, totals, strict=True):
        out.update(f"{task.source}\0{total.fingerprint}\n".encode())
    return out.hexdigest()


def options_words(options: Ask) -> str:
    """Return what verdicts depend on of what was asked."""
    chosen = (options.leader, options.protocol)
    stated = (options.replicas, options.is_stopped, (options.depth or Depth.CONTENT).value)
    return f"{chosen} {stated} {sorted(options.topics)} {sorted(options.partitions)}"


def is_unchanged(fingerprint: str, totals: Sequence[LogDirTotals], earlier: AuditTables) -> bool:
    """Return whether an earlier audit saw the same, read everything, and began when the last change had settled."""
    if earlier.manifest.get("fingerprint") != fingerprint:
        return False
    newest = max((one.newest_ns for one in totals), default=0)
    if int(earlier.manifest.get("started_ns", 0)) - newest <= SETTLED_NS or any(one.problems for one in totals):
        return False
    return earlier.row_count("problems") == 0
