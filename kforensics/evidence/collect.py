"""From files to `Replica`: the only place where bytes and formats meet, and where a span gets its file."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from kforensics.damage import Absent, Damage
from kforensics.errors import EvidenceError, FormatError
from kforensics.evidence.inputs import FoundInput, Inputs
from kforensics.evidence.model import (
    BUCKET_OFFSETS,
    CheckpointValue,
    Citation,
    Lineage,
    Problem,
    Replica,
    Segment,
)
from kforensics.evidence.segments import scan_segment
from kforensics.formats.batch_table import BatchTable, empty_batches
from kforensics.formats.checkpoint import iter_checkpoint
from kforensics.formats.leader_epoch_checkpoint import parse_leader_epoch_checkpoint
from kforensics.formats.partition_metadata import parse_partition_metadata
from kforensics.formats.records import Record
from kforensics.formats.segment import Level, iter_records, walk_segment
from kforensics.formats.text_lines import DamageList
from kforensics.source.foreign import ForeignPath
from kforensics.source.mapped import EvidenceFile, open_evidence
from kforensics.source.naming import (
    FileKind,
    FileName,
    FileSuffix,
    PartitionDirectoryName,
    parse_file_name,
    parse_partition_directory,
)
from kforensics.source.walk import FoundDirectory, FoundFile, Obstacle, directory_names, join, walk_partition
from kforensics.units import EpochEntry, TopicPartition

Value = TypeVar("Value")

TEXT_LIMIT = 64 << 20
"""Bytes of a checkpoint file that are read; 10^6 partitions need half of it."""

_LINE_BITS = 32
_READ_SUFFIXES = frozenset({FileSuffix.NONE, FileSuffix.DELETED})

CHECKPOINTS = {
    "high_watermark": "replication-offset-checkpoint",
    "recovery_point": "recovery-point-offset-checkpoint",
    "log_start": "log-start-offset-checkpoint",
    "cleaner_point": "cleaner-offset-checkpoint",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirState:
    """What one log directory's own files say of all its partitions."""

    root: Path
    input: int
    log_dir: str
    broker_id: int | Absent
    clean_shutdown: bool
    checkpoints: Mapping[str, Mapping[TopicPartition, int]] = field(default_factory=dict)
    """Offset and line of each partition in one number: a fleet's checkpoints hold millions."""
    unreadable: frozenset[str] = frozenset()
    """Names in `CHECKPOINTS` whose file is there and can't be understood."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionPlace:
    """One partition directory and where it stands; small enough to be sent to another process."""

    state: LogDirState
    path: str
    topic_partition: TopicPartition
    directory_state: str
    length: int = 0
    """Bytes of its segments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedReplica:
    """A replica and what could not be read of it."""

    replica: Replica
    problems: tuple[Problem, ...]


def read_log_dir_state(
    root: Path, *, input_index: int, log_dir: str, broker_id: int | Absent, clean_shutdown: bool
) -> tuple[LogDirState, tuple[Problem, ...]]:
    """The checkpoints of one log directory, each value with the line that says it."""
    problems: list[Problem] = []
    values: dict[str, dict[TopicPartition, int]] = {}
    unreadable = set()
    here = _partitions_here(root, log_dir)
    for name, file_name in CHECKPOINTS.items():
        path = join(log_dir, file_name)
        if not (root / path).exists():
            continue
        try:
            with open_evidence(root / path) as file:
                values[name] = _checkpoint_lines(file.read_all(TEXT_LIMIT), here)
        except (EvidenceError, FormatError) as error:
            unreadable.add(name)
            problems.append(_problem(input_index, path, error))
    state = LogDirState(
        root=root,
        input=input_index,
        log_dir=log_dir,
        broker_id=broker_id,
        clean_shutdown=clean_shutdown,
        checkpoints=values,
        unreadable=frozenset(unreadable),
    )
    return state, tuple(problems)


def _partitions_here(root: Path, log_dir: str) -> frozenset[TopicPartition] | None:
    """The partitions that have a directory; none where that can't be told at no cost."""
    if isinstance(root, ForeignPath):
        return None
    try:
        names = directory_names(root, log_dir)
    except OSError:
        return None
    parsed = (parse_partition_directory(name) for name in names)
    return frozenset(name.topic_partition for name in parsed if name is not None)


def _checkpoint_lines(data: bytes, here: frozenset[TopicPartition] | None) -> dict[TopicPartition, int]:
    """Offset and line of each partition that is here: a checkpoint may name a million others."""
    return {
        partition: entry.offset << _LINE_BITS | entry.line
        for entry in iter_checkpoint(data, DamageList())
        if (partition := TopicPartition(entry.topic, entry.partition)) and (here is None or partition in here)
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Every partition directory of the inputs, by partition, and what could not be looked at."""

    by_partition: Mapping[TopicPartition, tuple[PartitionPlace, ...]]
    problems: tuple[Problem, ...]


def find_places(inputs: Inputs) -> Places:
    """The partition directories of all inputs; reads names and checkpoints, no logs."""
    problems = list(inputs.problems)
    places: dict[TopicPartition, list[PartitionPlace]] = {}
    for index, found in enumerate(inputs.found):
        states = log_dir_states(index, found, problems)
        current: PartitionPlace | None = None
        length = 0
        for item in found.walk():
            match item:
                case FoundDirectory(name=PartitionDirectoryName() as name):
                    _keep(places, current, length)
                    current = PartitionPlace(
                        state=states[item.log_dir],
                        path=item.path,
                        topic_partition=name.topic_partition,
                        directory_state=name.state.value,
                    )
                    length = 0
                case FoundDirectory():
                    _keep(places, current, length)
                    current = None
                case FoundFile() if item.name.kind is FileKind.SEGMENT and current is not None:
                    length += item.length
                case Obstacle():
                    problems.append(Problem(input=index, path=item.path, message=item.message))
        _keep(places, current, length)
    return Places(by_partition={tp: tuple(places[tp]) for tp in sorted(places)}, problems=tuple(problems))


def _keep(places: dict[TopicPartition, list[PartitionPlace]], place: PartitionPlace | None, length: int) -> None:
    if place is not None:
        places.setdefault(place.topic_partition, []).append(replace(place, length=length))


def log_dir_states(index: int, found: FoundInput, problems: list[Problem]) -> dict[str, LogDirState]:
    """The checkpoints of every log directory of an input, by its path; what can't be read goes to `problems`."""
    if not found.log_dirs:
        # A partition directory by itself: whatever its log directory says stands outside of the input.
        return {
            "": LogDirState(root=found.root, input=index, log_dir="", broker_id=Absent.UNKNOWN, clean_shutdown=False)
        }
    states = {}
    for log_dir in found.log_dirs:
        states[log_dir.path], met = read_log_dir_state(
            found.root,
            input_index=index,
            log_dir=log_dir.path,
            broker_id=found.described.broker_id,
            clean_shutdown=log_dir.clean_shutdown,
        )
        problems.extend(met)
    return states


def collect_replica(
    place: PartitionPlace, *, level: Level = Level.CRC, scanned: Mapping[str, Segment] | None = None
) -> CollectedReplica:
    """Read one partition directory; whatever can't be read becomes a problem, never an exception.

    Args:
        place: the directory.
        level: how deep batches are checked.
        scanned: segments that were read already, by path.
    """
    problems: list[Problem] = []
    files = _list(place, problems)
    segments = _segments(place, files, FileSuffix.NONE, level, problems, scanned or {})
    deleted = _segments(place, files, FileSuffix.DELETED, level, problems, scanned or {})
    replica = stitch_replica(_read_directory(place, files, problems), segments, deleted)
    return CollectedReplica(replica=replica, problems=tuple(problems))


def collect_directory(place: PartitionPlace) -> CollectedReplica:
    """All that a partition directory says but for its segments, which `stitch_replica` adds."""
    problems: list[Problem] = []
    files = _list(place, problems)
    return CollectedReplica(replica=_read_directory(place, files, problems), problems=tuple(problems))


def stitch_replica(directory: Replica, segments: Sequence[Segment], deleted: Sequence[Segment]) -> Replica:
    """A partition directory together with its segments, each in the order of their base offsets."""
    segments = tuple(sorted(segments, key=lambda one: (one.base_offset, one.path)))
    deleted = tuple(sorted(deleted, key=lambda one: (one.base_offset, one.path)))
    return replace(
        directory, segments=segments, deleted_segments=deleted, lineage=_lineage(segments, directory.log_start)
    )


def _read_directory(place: PartitionPlace, files: Sequence[FoundFile], problems: list[Problem]) -> Replica:
    state = place.state
    damage: dict[str, tuple[Damage, ...]] = {}
    log_start = checkpoint_value(state, "log_start", place.topic_partition)
    return Replica(
        input=state.input,
        broker_id=state.broker_id,
        path=place.path,
        log_dir=state.log_dir,
        topic_partition=place.topic_partition,
        state=place.directory_state,
        topic_id=_topic_id(place, files, problems, damage),
        segments=(),
        lineage=_lineage((), log_start),
        checkpoint_epochs=_epochs(place, files, problems, damage),
        high_watermark=checkpoint_value(state, "high_watermark", place.topic_partition),
        recovery_point=checkpoint_value(state, "recovery_point", place.topic_partition),
        log_start=log_start,
        cleaner_point=checkpoint_value(state, "cleaner_point", place.topic_partition),
        clean_shutdown=state.clean_shutdown,
        producer_snapshots=tuple(
            sorted(
                f.name.base_offset
                for f in files
                if f.name.kind is FileKind.PRODUCER_SNAPSHOT
                and not f.name.is_transient
                and isinstance(f.name.base_offset, int)
            )
        ),
        damage=damage,
    )


def _list(place: PartitionPlace, problems: list[Problem]) -> list[FoundFile]:
    files = []
    for found in walk_partition(place.state.root, place.path, name=Path(place.path).name):
        match found:
            case FoundFile():
                files.append(found)
            case Obstacle():
                problems.append(Problem(input=place.state.input, path=found.path, message=found.message))
            case FoundDirectory():
                pass
    return files


def segment_paths(place: PartitionPlace) -> tuple[str, ...]:
    """The segment files of a partition directory that `collect_replica` reads."""
    return tuple(
        f.path for f in _list(place, []) if f.name.kind is FileKind.SEGMENT and f.name.suffix in _READ_SUFFIXES
    )


def scan_place(place: PartitionPlace, path: str, level: Level = Level.CRC) -> Segment | None:
    """One segment file of a partition directory, none where it can't be read."""
    name = parse_file_name(path.rpartition("/")[2])
    assert isinstance(name.base_offset, int)
    try:
        with open_evidence(place.state.root / path) as file:
            segment = scan_segment(file, path=path, base_offset=name.base_offset, level=level, mtime_ns=file.mtime_ns)
            return replace(segment, changed=file.changed())
    except EvidenceError:
        return None


CHANGED_MEANWHILE = "it changed while it was read: what is said of it may not hold"
CHANGED_SINCE = "it changed after it was read and while other replicas were: the replicas are not seen as of one moment"


def _segments(
    place: PartitionPlace,
    files: Sequence[FoundFile],
    suffix: FileSuffix,
    level: Level,
    problems: list[Problem],
    scanned: Mapping[str, Segment],
) -> tuple[Segment, ...]:
    wanted = [f for f in files if f.name.kind is FileKind.SEGMENT and f.name.suffix is suffix]
    out = []
    for found in sorted(wanted, key=lambda f: (f.name.base_offset, f.path)):
        assert isinstance(found.name.base_offset, int)
        segment = scanned.get(found.path)
        if segment is None:
            try:
                with open_evidence(place.state.root / found.path) as file:
                    segment = scan_segment(
                        file, path=found.path, base_offset=found.name.base_offset, level=level, mtime_ns=file.mtime_ns
                    )
                    segment = replace(segment, changed=file.changed())
            except EvidenceError as error:
                problems.append(_problem(place.state.input, found.path, error))
                continue
        if segment.changed and not found.name.is_transient:
            problems.append(Problem(input=place.state.input, path=found.path, message=CHANGED_MEANWHILE))
        out.append(segment)
    return tuple(out)


def changes_since(place: PartitionPlace, replica: Replica) -> tuple[Problem, ...]:
    """The end of a log that grew, was cut or went away since it was read: replicas are then not seen as of one moment."""
    if not replica.segments or replica.segments[-1].changed:
        return ()
    last = replica.segments[-1]
    try:
        with open_evidence(place.state.root / last.path) as file:
            now = (file.size, file.mtime_ns)
        names = directory_names(place.state.root, place.path)
    except (EvidenceError, OSError):
        pass
    else:
        rolled = any(_follows(parse_file_name(name), last.base_offset) for name in names if name.endswith(".log"))
        if now == (last.length, last.mtime_ns) and not rolled:
            return ()
    return (Problem(input=place.state.input, path=last.path, message=CHANGED_SINCE),)


def _follows(name: FileName, base_offset: int) -> bool:
    return name.kind is FileKind.SEGMENT and isinstance(name.base_offset, int) and name.base_offset > base_offset


def _lineage(segments: Sequence[Segment], log_start: CheckpointValue | Absent) -> Lineage:
    epochs: list[EpochEntry] = []
    for segment in segments:
        for entry in segment.epochs:
            if not epochs or epochs[-1].leader_epoch != entry.leader_epoch:
                epochs.append(entry)
    first = segments[0].base_offset if segments else 0
    end = first
    for segment in segments:
        end = max(end, segment.base_offset if isinstance(segment.last_offset, Absent) else segment.last_offset + 1)
    return Lineage(
        epochs=tuple(epochs),
        log_start_offset=first if isinstance(log_start, Absent) else log_start.value,
        log_end_offset=end,
    )


def checkpoint_value(state: LogDirState, name: str, partition: TopicPartition) -> CheckpointValue | Absent:
    """What one of the `CHECKPOINTS` says of a partition."""
    if name in state.unreadable:
        return Absent.UNREADABLE
    packed = state.checkpoints.get(name, {}).get(partition)
    if packed is None:
        return Absent.NOT_WRITTEN
    path = join(state.log_dir, CHECKPOINTS[name])
    citation = Citation(input=state.input, path=path, line=packed & ((1 << _LINE_BITS) - 1))
    return CheckpointValue(value=packed >> _LINE_BITS, citation=citation)


def _epochs(
    place: PartitionPlace, files: Sequence[FoundFile], problems: list[Problem], damage: dict[str, tuple[Damage, ...]]
) -> tuple[EpochEntry, ...] | Absent:
    parsed = _parsed(place, files, FileKind.LEADER_EPOCH_CHECKPOINT, parse_leader_epoch_checkpoint, problems)
    if isinstance(parsed, Absent):
        return parsed
    path, checkpoint = parsed
    if checkpoint.damage:
        damage[path] = checkpoint.damage
        # The broker refuses a file with a line it can't read, so what is left of it is no claim.
        return Absent.UNREADABLE
    return checkpoint.entries


def _topic_id(
    place: PartitionPlace, files: Sequence[FoundFile], problems: list[Problem], damage: dict[str, tuple[Damage, ...]]
) -> str | Absent:
    parsed = _parsed(place, files, FileKind.PARTITION_METADATA, parse_partition_metadata, problems)
    if isinstance(parsed, Absent):
        return parsed
    path, metadata = parsed
    if metadata.damage:
        damage[path] = metadata.damage
    return metadata.topic_id


def _parsed(
    place: PartitionPlace,
    files: Sequence[FoundFile],
    kind: FileKind,
    parse: Callable[[bytes], Value],
    problems: list[Problem],
) -> tuple[str, Value] | Absent:
    """A small file of the directory, understood, with its path; a file that can't be read is also a problem."""
    found = _file_of(files, kind)
    if found is None:
        return Absent.NOT_WRITTEN
    try:
        with open_evidence(place.state.root / found.path) as file:
            return found.path, parse(file.read_all(TEXT_LIMIT))
    except EvidenceError as error:
        problems.append(_problem(place.state.input, found.path, error))
    except FormatError:
        pass  # what a broker can't parse either is judged by the consistency checks
    return Absent.UNREADABLE


def _file_of(files: Sequence[FoundFile], kind: FileKind) -> FoundFile | None:
    return next((f for f in files if f.name.kind is kind and not f.name.is_transient), None)


def _problem(input_index: int, path: str, error: Exception) -> Problem:
    message = error.problem if isinstance(error, EvidenceError) else str(error)
    position = error.span.position if isinstance(error, FormatError) else Absent.NOT_APPLICABLE
    return Problem(input=input_index, path=path, message=message, position=position)


class FileBatchReader:
    """Batches and records of collected replicas, from what was kept of them or from their files.

    Args:
        roots: where each input really is, by its index.
    """

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = roots

    def batches(self, replica: Replica, first_offset: int, last_offset: int) -> BatchTable:
        """Rows of every sound batch that touches the offsets, in file order; a file that vanished since gives none."""
        parts = []
        for at, segment in enumerate(replica.segments):
            if not _touches(segment, first_offset, last_offset):
                continue
            rows = (
                segment.batches
                if not isinstance(segment.batches, Absent)
                else self._read_rows(replica, segment, first_offset, last_offset)
            )
            rows = rows[
                (rows["last_offset"] >= first_offset) & (rows["base_offset"] <= last_offset) & rows["crc_valid"]
            ]
            if len(rows):
                rows = rows.copy()
                rows["segment"] = at
                parts.append(rows)
        return np.concatenate(parts) if parts else empty_batches()

    def records(self, replica: Replica, first_offset: int, last_offset: int) -> Iterator[Record]:
        """Every record at the offsets, in file order; damaged places give none."""
        for segment in replica.segments:
            if not _touches(segment, first_offset, last_offset):
                continue
            start = _start_position(segment, first_offset)
            try:
                with self._open(replica, segment) as file:
                    for record in iter_records(file, start=start):
                        if not isinstance(record, Record):
                            continue
                        if first_offset <= record.offset <= last_offset:
                            yield record
                        elif record.batch_base_offset > last_offset:
                            break
            except EvidenceError:
                continue

    def _open(self, replica: Replica, segment: Segment) -> EvidenceFile:
        return open_evidence(self._roots[replica.input] / segment.path)

    def _read_rows(self, replica: Replica, segment: Segment, first_offset: int, last_offset: int) -> BatchTable:
        parts = []
        try:
            with self._open(replica, segment) as file:
                for window in walk_segment(file, level=Level.CRC, start=_start_position(segment, first_offset)):
                    parts.append(window.batches)
                    if len(window.batches) and int(window.batches["base_offset"][-1]) > last_offset:
                        break
        except EvidenceError:
            pass
        return np.concatenate(parts) if parts else empty_batches()


def _touches(segment: Segment, first_offset: int, last_offset: int) -> bool:
    if isinstance(segment.first_offset, Absent) or isinstance(segment.last_offset, Absent):
        return False
    return segment.first_offset <= last_offset and segment.last_offset >= first_offset


def _start_position(segment: Segment, first_offset: int) -> int:
    """A batch position from which every batch that touches the offset is read."""
    if not isinstance(segment.batches, Absent):
        before = segment.batches[segment.batches["last_offset"] < first_offset]
        reached = segment.batches[segment.batches["last_offset"] >= first_offset]
        return int(reached["position"][0]) if len(reached) else (int(before["position"][-1]) if len(before) else 0)
    # A batch belongs to the bucket of its base offset and may reach into the next one.
    earlier = segment.digests[segment.digests["bucket"] < first_offset // BUCKET_OFFSETS]
    return int(earlier["position"][-1]) if len(earlier) else 0
