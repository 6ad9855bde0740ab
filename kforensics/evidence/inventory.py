"""The inventory: nodes, log directories, partitions with their offsets, every file; of a log only its end is read."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from kforensics.damage import Absent
from kforensics.errors import EvidenceError, FormatError
from kforensics.evidence.discovery.inputs import WHOLE_INPUT, FoundInput, Inputs
from kforensics.evidence.discovery.log_dirs import FoundLogDir
from kforensics.evidence.discovery.partition_dirs import (
    LOGS_LEFT_OUT,
    CleanerLag,
    LogDirState,
    LostDirectory,
    begins_with_first_segment,
    checkpoint_value,
    cleaner_lag,
    log_dir_states,
    lost_directories,
    no_logs_are_here,
)
from kforensics.evidence.file_kinds import FILE_KINDS
from kforensics.evidence.metadata.files import unexplained
from kforensics.evidence.model import Problem
from kforensics.evidence.replica.ends import LogTail, longest_truncated_batch, read_log_tail
from kforensics.evidence.replica.unaccounted import (
    INDEX_KINDS,
    Sign,
    Unaccounted,
    find_unaccounted,
    lost_metadata,
    lost_metadata_log,
    lost_start,
    merged,
    orphan_indexes,
)
from kforensics.formats.checkpoint.lines import parse_leader_epoch_checkpoint
from kforensics.formats.checkpoint.properties import MetaProperties, parse_partition_metadata
from kforensics.source.naming import DirectoryState, FileKind, FileName, FileSuffix, PartitionDirectoryName
from kforensics.source.walk import DirectoryKind, FoundDirectory, FoundFile, Obstacle, Wants, join, of_wanted
from kforensics.units import Depth, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedLogDir:
    """One log directory: whether it was left by a clean shutdown, and the node and cluster that it names."""

    path: str
    clean_shutdown: bool
    broker_epoch: int | Absent
    node_id: int | Absent
    cluster_id: str | Absent
    directory_id: str | Absent


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedNode:
    """One input that is a node."""

    input: int
    kind: str
    node_id: int | Absent
    cluster_id: str | Absent
    kafka_version_hint: str | Absent
    clean_shutdown: bool
    """Whether all of its log directories hold `.kafka_cleanshutdown`, which a mere controller never writes."""
    log_dirs: tuple[ListedLogDir, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPartition:
    """One partition directory; offsets are claims of checkpoints, but for the log end, which is read from the log."""

    input: int
    path: str
    log_dir: str
    topic: str | Absent
    partition: int | Absent
    state: str
    topic_id: str | Absent
    log_start_offset: int | Absent
    high_watermark: int | Absent
    recovery_point: int | Absent
    log_end_offset: int | Absent
    last_leader_epoch: int | Absent
    last_timestamp_ms: int | Absent
    segments: int
    deleted_segments: int
    bytes: int
    """The size of the segments in use."""
    files: int
    file_bytes: int
    """The size of all files in the directory, whatever they are."""
    lacks_index: bool = False
    """A segment in use has no offset index: a start scans it, whatever the marker says."""
    cleaner_lag: CleanerLag | None = None
    start: str = "unknown"
    """What a start does to the directory, by its name, the marker and missing indexes; `kforensics predict` says it by its files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCount:
    """The files of one kind and suffix in an input."""

    input: int
    kind: str
    suffix: str
    count: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherDirectory:
    """A directory in a log directory that is no partition."""

    input: int
    path: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownFile:
    """A file that no broker writes, or that is none: a link, pipe or device."""

    input: int
    path: str
    kind: str
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingOffsets:
    """Offsets of one partition directory for which there is no segment."""

    input: int
    path: str
    topic_partition: TopicPartition
    clean_shutdown: bool
    unaccounted: Unaccounted


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """Everything that was found, in the order of the inputs and of names."""

    nodes: tuple[ListedNode, ...] = ()
    partitions: tuple[ListedPartition, ...] = ()
    files: tuple[FileCount, ...] = ()
    directories: tuple[OtherDirectory, ...] = ()
    unknown: tuple[UnknownFile, ...] = ()
    missing: tuple[MissingOffsets, ...] = ()
    lost: tuple[LostDirectory, ...] = ()
    """Partitions that checkpoints name and of which their node holds no directory."""
    problems: tuple[Problem, ...] = ()


NODE_UNTOLD = "it can't be read, so the node's id and cluster are unknown; `kforensics verify` says why"


def take_inventory(inputs: Inputs, *, depth: Depth = Depth.TAILS, wants: Wants | None = None) -> Inventory:
    """Return what lies below all inputs, walked once; what can't be read is a problem, and the rest is still listed."""
    lister = _Lister(depth, wants)
    lister.problems.extend(inputs.problems)
    for index, one in enumerate(inputs.found):
        lister.list_input(index, one)
    lost, left_out = lost_directories(lister.states, lister.held())
    return Inventory(
        nodes=tuple(lister.nodes),
        partitions=tuple(lister.partitions),
        files=tuple(lister.file_counts()),
        directories=tuple(lister.directories),
        unknown=tuple(lister.unknown),
        missing=tuple(lister.missing),
        lost=tuple(one for one in unexplained(lost, inputs) if wants is None or wants(one.topic_partition)),
        problems=(*lister.problems, *left_out),
    )


@dataclass(slots=True)
class _Partition:
    """The part of the partition directory that has been walked so far."""

    directory: FoundDirectory
    segments: list[tuple[int, str]] = field(default_factory=list)
    segment_files: list[FoundFile] = field(default_factory=list)
    indexes: dict[int, str] = field(default_factory=dict)
    names: list[tuple[FileName, str]] = field(default_factory=list)
    """The names of segments and indexes, and their paths."""
    snapshots: set[int] = field(default_factory=set)
    deleted: int = 0
    log_bytes: int = 0
    files: int = 0
    file_bytes: int = 0
    metadata_path: str = ""
    epochs_path: str = ""
    snapshot_end: int = 0
    """Where the newest snapshot of a metadata log ends."""
    of_metadata: list[tuple[FileName, int, str]] = field(default_factory=list)
    """Name, length and path of each file of a metadata log."""

    def add(self, found: FoundFile) -> None:
        self.files += 1
        self.file_bytes += found.length
        name = found.name
        if isinstance(self.directory.name, PartitionDirectoryName) and self.directory.name.is_metadata:
            self.of_metadata.append((name, found.length, found.path))
        if name.kind is FileKind.SEGMENT or name.kind in INDEX_KINDS:
            self.names.append((name, found.path))
        elif name.kind is FileKind.PRODUCER_SNAPSHOT and isinstance(name.base_offset, int):
            self.snapshots.add(name.base_offset)
        if name.kind is FileKind.SEGMENT and name.suffix is FileSuffix.DELETED:
            self.deleted += 1
        if name.is_transient:
            return
        if name.kind is FileKind.SEGMENT and isinstance(name.base_offset, int):
            self.segments.append((name.base_offset, found.path))
            self.segment_files.append(found)
            self.log_bytes += found.length
        elif name.kind is FileKind.OFFSET_INDEX and isinstance(name.base_offset, int):
            self.indexes[name.base_offset] = found.path
        elif name.kind is FileKind.PARTITION_METADATA:
            self.metadata_path = found.path
        elif name.kind is FileKind.LEADER_EPOCH_CHECKPOINT:
            self.epochs_path = found.path
        elif name.kind is FileKind.METADATA_SNAPSHOT and isinstance(name.base_offset, int):
            self.snapshot_end = max(self.snapshot_end, name.base_offset)


class _Lister:
    """Gathers an inventory, input by input."""

    def __init__(self, depth: Depth, wants: Wants | None) -> None:
        self.depth = depth
        self._wants = wants
        self._passed_over: set[tuple[int, TopicPartition]] = set()
        self.nodes: list[ListedNode] = []
        self.partitions: list[ListedPartition] = []
        self.directories: list[OtherDirectory] = []
        self.unknown: list[UnknownFile] = []
        self.problems: list[Problem] = []
        self._unread: set[tuple[int, str]] = set()
        """Input and path of problems: there may be as many as directories."""
        self._beside: set[tuple[int, str]] = set()
        """The directories that these are in."""
        self._looked_at = 0
        self.missing: list[MissingOffsets] = []
        self.states: list[LogDirState] = []
        self._counts: Counter[tuple[int, str, str]] = Counter()
        self._bytes: Counter[tuple[int, str, str]] = Counter()

    def list_input(self, index: int, one: FoundInput) -> None:
        states = log_dir_states(index, one, self.problems) if one.log_dirs else {}
        for log_dir in one.log_dirs:
            if log_dir.meta is Absent.UNREADABLE:
                path = join(log_dir.path, "meta.properties")
                self.problems.append(Problem(input=index, path=path, message=NODE_UNTOLD))
        if one.log_dirs:
            self.nodes.append(_node(index, one))
        open_partition: _Partition | None = None
        has_segments = False
        for found in one.walk():
            match found:
                case Obstacle():
                    self.problems.append(Problem(input=index, path=found.path, message=found.message))
                case FoundDirectory():
                    self._close(index, one, open_partition, states)
                    open_partition = _Partition(found) if found.kind is DirectoryKind.PARTITION else None
                    if not of_wanted(found, self._wants):
                        open_partition = None
                        if isinstance(found.name, PartitionDirectoryName):
                            self._passed_over.add((index, found.name.topic_partition))
                    elif open_partition is None:
                        self.directories.append(OtherDirectory(input=index, path=found.path, kind=found.kind.value))
                case FoundFile():
                    if of_wanted(found.partition, self._wants):
                        self._count(index, found)
                    has_segments |= found.is_live_segment
                    if open_partition is not None and found.partition == open_partition.directory:
                        open_partition.add(found)
        self._close(index, one, open_partition, states)
        if no_logs_are_here(states.values(), has_segments=has_segments):
            self.problems.append(Problem(input=index, path=WHOLE_INPUT, message=LOGS_LEFT_OUT))
            self.missing = [missing for missing in self.missing if missing.input != index]
        else:
            self.states += states.values()

    def held(self) -> set[tuple[int, TopicPartition]]:
        return self._passed_over | {
            (one.input, TopicPartition(one.topic, one.partition))
            for one in self.partitions
            if not isinstance(one.topic, Absent) and isinstance(one.partition, int)
        }

    def file_counts(self) -> Iterator[FileCount]:
        for key in sorted(self._counts):
            index, kind, suffix = key
            yield FileCount(input=index, kind=kind, suffix=suffix, count=self._counts[key], bytes=self._bytes[key])

    def _count(self, index: int, found: FoundFile) -> None:
        key = (index, found.name.kind.value, found.name.suffix.value)
        self._counts[key] += 1
        self._bytes[key] += found.length
        if not FILE_KINDS[found.name.kind].is_known:
            self.unknown.append(
                UnknownFile(input=index, path=found.path, kind=found.name.kind.value, bytes=found.length)
            )

    def _close(self, index: int, one: FoundInput, seen: _Partition | None, states: dict[str, LogDirState]) -> None:
        if seen is None:
            return
        directory = seen.directory
        name = directory.name if isinstance(directory.name, PartitionDirectoryName) else None
        state = states.get(directory.log_dir)
        self._note_problems()
        here = (index, directory.path or ".")
        tail = Absent.UNREADABLE if here in self._unread else self._tail(index, one, seen)
        claimed_start = _claim(state, "log_start", name)
        self.partitions.append(
            ListedPartition(
                input=index,
                path=directory.path or ".",
                log_dir=directory.log_dir,
                topic=name.topic if name else Absent.UNKNOWN,
                partition=name.partition if name else Absent.UNKNOWN,
                state=name.state.value if name else "unknown",
                topic_id=self._topic_id(index, one, seen.metadata_path),
                log_start_offset=_log_start(claimed_start, seen.segments),
                high_watermark=_claim(state, "high_watermark", name),
                recovery_point=_claim(state, "recovery_point", name),
                log_end_offset=tail.log_end_offset if isinstance(tail, LogTail) else tail,
                last_leader_epoch=tail.leader_epoch if isinstance(tail, LogTail) else tail,
                last_timestamp_ms=tail.max_timestamp_ms if isinstance(tail, LogTail) else tail,
                segments=len(seen.segments),
                deleted_segments=seen.deleted,
                bytes=seen.log_bytes,
                files=seen.files,
                file_bytes=seen.file_bytes,
                cleaner_lag=cleaner_lag(
                    name.topic, seen.segment_files, _claim(state, "cleaner_point", name), root=one.root
                )
                if name is not None and name.state is DirectoryState.LIVE
                else None,
                lacks_index=any(base not in seen.indexes for base, _ in seen.segments),
            )
        )

        self._note_problems()
        is_read = here not in self._unread and here not in self._beside
        if is_read and name is not None and name.state is DirectoryState.LIVE:
            self._note_missing(index, one, seen, state, name, tail)

    def _note_problems(self) -> None:
        for one in self.problems[self._looked_at :]:
            self._unread.add((one.input, one.path))
            self._beside.add((one.input, one.path.rpartition("/")[0] or "."))
        self._looked_at = len(self.problems)

    def _note_missing(
        self,
        index: int,
        one: FoundInput,
        seen: _Partition,
        state: LogDirState | None,
        name: PartitionDirectoryName,
        tail: LogTail | Absent,
    ) -> None:
        bases = sorted(base for base, _ in seen.segments)
        end = tail.log_end_offset if isinstance(tail, LogTail) else None
        if bases and end is None:
            return  # how far the log reaches can't be read
        lacks = partial(
            MissingOffsets, input=index, path=seen.directory.path or ".", topic_partition=name.topic_partition
        )
        epochs = [log_dir.broker_epoch for log_dir in one.log_dirs if name.is_metadata and end is not None]
        lost_end = lost_metadata(max(end or 0, seen.snapshot_end), epochs) or lost_metadata_log(seen.of_metadata)
        if lost_end is not None:
            self.missing.append(lacks(clean_shutdown=True, unaccounted=lost_end))
        # Of all segments but the last only the base is known here.
        ends = [*bases[:-1], *([] if end is None else [end])]
        reach = [
            value
            for field_name in ("high_watermark", "recovery_point")
            if not isinstance(value := _claim(state, field_name, name), Absent)
        ]
        start = _claim(state, "log_start", name)
        is_clean = any(log_dir.clean_shutdown for log_dir in one.log_dirs if log_dir.path == seen.directory.log_dir)
        highest = max(reach, default=None)
        longest: int | None = None if seen.log_bytes else 0
        if is_clean and end is not None and highest is not None and end < highest and highest in seen.snapshots:
            try:
                longest = longest_truncated_batch(one, seen.segments)
            except EvidenceError as error:
                self.problems.append(_problem(index, one, error))
        self.missing += [
            lacks(clean_shutdown=is_clean, unaccounted=found)
            for found in merged(
                find_unaccounted(
                    [(base, after, "") for base, after in zip(bases, ends, strict=False)],
                    orphan_indexes(seen.names) | self._lost_start(one, seen, state, name, is_clean=is_clean),
                    log_start=None if isinstance(start, Absent) else start,
                    reach=highest,
                    explained=seen.snapshots,
                    longest_batch=longest,
                )
            )
            # Without the marker of a clean stop numbers above the log end are ordinary.
            if found.sign is not Sign.ABOVE_END or is_clean
        ]

    def _lost_start(
        self,
        one: FoundInput,
        seen: _Partition,
        state: LogDirState | None,
        name: PartitionDirectoryName,
        *,
        is_clean: bool,
    ) -> dict[int, str]:
        """Return the checkpoint of leader epochs by the offset where it begins, where a clean stop left the log beginning there and it does not any more."""
        first = min((base for base, _ in seen.segments), default=0)
        is_settled = is_clean and state is not None and begins_with_first_segment(state, name.topic_partition)
        if not (first and is_settled and seen.epochs_path) or name.is_metadata:
            return {}
        try:
            entries = parse_leader_epoch_checkpoint(one.read_small(seen.epochs_path)).entries
        except (EvidenceError, FormatError):
            return {}  # verify names it
        return lost_start(entries, [file for file, _ in seen.names], seen.epochs_path)

    def _tail(self, index: int, one: FoundInput, seen: _Partition) -> LogTail | Absent:
        try:
            return read_log_tail(one, seen.segments, seen.indexes, depth=self.depth)
        except EvidenceError as error:
            self.problems.append(_problem(index, one, error))
            return Absent.UNREADABLE

    def _topic_id(self, index: int, one: FoundInput, path: str) -> str | Absent:
        if not path:
            return Absent.NOT_WRITTEN
        try:
            return parse_partition_metadata(one.read_small(path)).topic_id
        except EvidenceError as error:
            self.problems.append(_problem(index, one, error))
        except FormatError as error:
            message = f"expected {error.expected}, found {error.found}"
            self.problems.append(Problem(input=index, path=path, message=message, position=error.span.position))
        return Absent.UNREADABLE


def _problem(index: int, one: FoundInput, error: EvidenceError) -> Problem:
    prefix = f"{one.root}/"
    path = error.path[len(prefix) :] if error.path.startswith(prefix) else "."
    return Problem(input=index, path=path, message=error.problem)


def _node(index: int, one: FoundInput) -> ListedNode:
    described = one.described
    return ListedNode(
        input=index,
        kind=described.kind,
        node_id=described.broker_id,
        cluster_id=described.cluster_id,
        kafka_version_hint=described.kafka_version_hint,
        clean_shutdown=all(log_dir.clean_shutdown for log_dir in one.log_dirs),
        log_dirs=tuple(_log_dir(log_dir) for log_dir in one.log_dirs),
    )


def _log_dir(log_dir: FoundLogDir) -> ListedLogDir:
    meta = log_dir.meta
    return ListedLogDir(
        path=log_dir.path or ".",
        clean_shutdown=log_dir.clean_shutdown,
        broker_epoch=log_dir.broker_epoch,
        node_id=meta.node_id if isinstance(meta, MetaProperties) else meta,
        cluster_id=meta.cluster_id if isinstance(meta, MetaProperties) else meta,
        directory_id=meta.directory_id if isinstance(meta, MetaProperties) else meta,
    )


def _claim(state: LogDirState | None, name: str, partition: PartitionDirectoryName | None) -> int | Absent:
    if state is None or partition is None:
        return Absent.UNKNOWN  # the checkpoints are in the log directory, which is not among the inputs
    if partition.is_metadata or partition.state not in {DirectoryState.LIVE, DirectoryState.FUTURE}:
        return Absent.NOT_APPLICABLE  # a line with this name means the live replica, which may be of another topic
    claimed = checkpoint_value(state, name, partition.topic_partition)
    return claimed if isinstance(claimed, Absent) else claimed.value


def _log_start(claimed: int | Absent, segments: list[tuple[int, str]]) -> int | Absent:
    """Return the checkpoint names only logs that start behind the beginning of their first segment."""
    if not isinstance(claimed, Absent):
        return claimed
    return min(base for base, _ in segments) if segments else Absent.NOT_APPLICABLE
