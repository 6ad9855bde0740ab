"""The way from files to `Replica`: the only place where bytes and formats meet, and where a span gets its file."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kforensics.damage import Absent, Damage
from kforensics.errors import EvidenceError, FormatError, NewerThanKnown
from kforensics.evidence.discovery.partition_dirs import (
    SHORT,
    TEXT_LIMIT,
    PartitionPlace,
    begins_with_first_segment,
    checkpoint_offset,
    checkpoint_value,
    left_by_cleaning,
    parsed_once,
    problem_of,
)
from kforensics.evidence.model import (
    CheckpointValue,
    Lineage,
    Problem,
    Replica,
    Segment,
)
from kforensics.evidence.replica.segments import read_segment
from kforensics.evidence.replica.tails import read_tails
from kforensics.evidence.replica.unaccounted import EPOCHS_FILE, lost_start, orphan_indexes
from kforensics.formats.checkpoint.lines import parse_leader_epoch_checkpoint
from kforensics.formats.checkpoint.properties import parse_partition_metadata
from kforensics.source.capture import CapturedSegment
from kforensics.source.capture_file import Capture
from kforensics.source.mapped import length_and_time, open_below
from kforensics.source.naming import (
    FileKind,
    FileName,
    FileSuffix,
    parse_file_name,
)
from kforensics.source.store import store_of
from kforensics.source.walk import FoundDirectory, FoundFile, Obstacle, directory_names, walk_partition
from kforensics.units import METADATA_TOPICS, Depth, EpochEntry

if TYPE_CHECKING:
    from kforensics.evidence.replica.captured_loading import CapturedDirectory

Value = TypeVar("Value")

_NO_DAMAGE: Mapping[str, tuple[Damage, ...]] = {}


class CollectedReplica(NamedTuple):
    """A replica and what could not be read of it."""

    replica: Replica
    problems: tuple[Problem, ...]
    captured: "CapturedDirectory | None" = None
    """What a capture says of an ordinary directory, for other replicas that are read beside it."""


class ReplicaCopy(NamedTuple):
    """A replica of which a capture says what another one says of another replica, their high watermarks aside."""

    input: int
    broker_id: int | Absent
    high_watermark: int | Absent
    """As recorded."""


def collect_replica(
    place: PartitionPlace,
    *,
    scanned: Mapping[str, Segment] | None = None,
    left_over: Sequence[FileSuffix] = (FileSuffix.DELETED,),
    depth: Depth = Depth.CONTENT,
    beside: CollectedReplica | None = None,
) -> CollectedReplica:
    """Read one partition directory; whatever can't be read becomes a problem, never an exception.

    Args:
        depth: how much of the segments in use is read; what a capture says of them is never less than all.
        beside: another replica of the partition: what captures say of both is understood once.
    """
    if not place.state.store.holds_bytes and not scanned:
        from kforensics.evidence.replica.captured_loading import read_captured_directory  # noqa: PLC0415 - of captures alone

        captured = read_captured_directory(place, beside.captured if beside else None)
        if captured is not None:
            return CollectedReplica(_captured_replica(place, captured), (), captured)
    problems: list[Problem] = []
    files = _list(place, problems)
    directory = _replica(place, files, _read_own_files(place, files, problems))
    segments = _ends(place, files, directory, problems) if depth is Depth.TAILS else None
    lacking: list[str] = []
    if segments is None:
        segments = _segments(place, files, FileSuffix.NONE, problems, scanned or {}, lacking)
    has_records = not lacking
    deleted = [segment for state in left_over for segment in _segments(place, files, state, problems, scanned or {})]
    replica = stitch_replica(directory, segments, deleted, is_read_whole=not problems, has_records=has_records)
    if problems:
        replica = replace(replica, unread_files=_unread_of(place, problems))
    if place.is_left_out:
        replica = left_out(replica)
    if depth is Depth.CONTENT and replica.unread_below and not place.state.store.holds_bytes:
        problems.append(_left_unread(place, replica))
    return CollectedReplica(replica=replica, problems=tuple(problems))


def left_out(replica: Replica) -> Replica:
    """Return the replica as one whose log was not copied."""
    return replace(replica, is_read_whole=False, is_left_out=True)


def _unread_of(place: PartitionPlace, problems: Sequence[Problem]) -> tuple[str, ...]:
    """Return what of the log itself could not be read: what other files say of it is known all the same."""
    return tuple(
        one.path
        for one in problems
        if one.message is not CHANGED_MEANWHILE and (one.path == place.path or _is_of_log(one.path))
    )


def _is_of_log(path: str) -> bool:
    name = parse_file_name(path.rpartition("/")[2])
    return name.kind in {FileKind.SEGMENT, FileKind.LEADER_EPOCH_CHECKPOINT} and not name.is_transient


def copy_of(collected: CollectedReplica, place: PartitionPlace) -> ReplicaCopy | None:
    """Return a captured replica as a copy of another one of its partition, none where anything but their high watermarks differs, or is not ordinary."""
    state, partition, one = place.state, place.topic_partition, collected.replica
    if collected.captured is None or state.store.holds_bytes:
        return None
    from kforensics.evidence.replica.captured_loading import says_the_same  # noqa: PLC0415 - of captures alone

    if (
        place.directory_state != one.state
        or state.clean_shutdown != one.clean_shutdown
        or checkpoint_offset(state, "recovery_point", partition) != _offset(one.recovery_point)
        or checkpoint_offset(state, "log_start", partition) != _offset(one.log_start)
        or checkpoint_offset(state, "cleaner_point", partition) != _offset(one.cleaner_point)
        or not says_the_same(place, collected.captured)
    ):
        return None
    return ReplicaCopy(state.input, state.broker_id, checkpoint_offset(state, "high_watermark", partition))


def _offset(value: CheckpointValue | Absent) -> int | Absent:
    return value if isinstance(value, Absent) else value.value


def _left_unread(place: PartitionPlace, replica: Replica) -> Problem:
    """Return what a capture that was taken at depth tails lacks of a replica, where content is asked for."""
    last = max(replica.segments, key=lambda one: one.unread_below)
    with open_below(place.state.root, last.path) as file:
        where = file.where.replace(f"/{last.path.rpartition('/')[2]}", "", 1)
    words = f"the capture was taken at depth tails: of content below offset {last.unread_below} it holds nothing. Compare the ends with --depth tails, or read {where}"
    return Problem(input=place.state.input, path=place.path, message=words)


def read_ends(place: PartitionPlace, scan: Callable[[FoundFile], Segment]) -> list[Segment] | None:
    """Return the segments in use of a partition directory as depth tails reads them, none where all of them have to be read."""
    problems: list[Problem] = []
    files = _list(place, problems)
    directory = _replica(place, files, _read_own_files(place, files, problems))
    return read_tails(place, _in_order(files, FileSuffix.NONE), directory, scan)


def as_captured(replica: Replica, root: Path) -> Replica:
    """Return the replica with what its capture says of rows and records that it holds, which summaries of its segments do not say."""
    if store_of(root).holds_bytes:
        return replica
    from kforensics.evidence.captured.reading import captured_segment, has_records  # noqa: PLC0415 - of captures alone

    segments, has_all = [], True
    for segment in replica.segments:
        with open_below(root, segment.path) as file:
            if isinstance(file, CapturedSegment):
                segments.append(captured_segment(file, path=segment.path, base_offset=segment.base_offset))
                has_all &= not segment.batch_count or has_records(file)
            else:
                segments.append(segment)
    return replace(replica, segments=tuple(segments), has_records=has_all)


def _lacks_records(place: PartitionPlace, segment: Segment) -> bool:
    if not segment.batch_count or place.state.store.holds_bytes:
        return False
    with open_below(place.state.root, segment.path) as file:
        if not isinstance(file, CapturedSegment):
            return False
        from kforensics.evidence.captured.reading import has_records  # noqa: PLC0415 - of captures alone

        return not has_records(file)


def collect_directory(place: PartitionPlace) -> CollectedReplica:
    """Return the facts of a partition directory without its segments, which `stitch_replica` adds."""
    problems: list[Problem] = []
    files = _list(place, problems)
    replica = _replica(place, files, _read_own_files(place, files, problems))
    return CollectedReplica(replica=replica, problems=tuple(problems))


def stitch_replica(
    directory: Replica,
    segments: Sequence[Segment],
    deleted: Sequence[Segment],
    *,
    is_read_whole: bool = True,
    has_records: bool = True,
) -> Replica:
    """Return a partition directory together with its segments, each in the order of their base offsets."""
    segments = _without_replaced(_by_base(segments))
    return replace(
        directory,
        segments=segments,
        deleted_segments=_by_base(deleted),
        lineage=_lineage(segments, directory.log_start),
        is_read_whole=is_read_whole,
        has_records=has_records,
    )


class _OwnFiles(NamedTuple):
    """What the small files of a partition directory say."""

    topic_id: str | Absent
    epochs: tuple[EpochEntry, ...] | Absent
    damage: dict[str, tuple[Damage, ...]]


def _read_own_files(place: PartitionPlace, files: Sequence[FoundFile], problems: list[Problem]) -> _OwnFiles:
    damage: dict[str, tuple[Damage, ...]] = {}
    topic_id = _topic_id(place, files, problems, damage)
    return _OwnFiles(topic_id, _epochs(place, files, problems, damage), damage)


def _replica(place: PartitionPlace, files: Sequence[FoundFile], own: _OwnFiles) -> Replica:
    snapshots = sorted(
        f.name.base_offset
        for f in files
        if f.name.kind is FileKind.PRODUCER_SNAPSHOT and not f.name.is_transient and isinstance(f.name.base_offset, int)
    )
    orphans = orphan_indexes([(f.name, f.path) for f in files]) | _lost_start(place, own, files)
    found = _replica_of(
        place,
        topic_id=own.topic_id,
        epochs=own.epochs,
        segments=(),
        producer_snapshots=tuple(snapshots),
        orphan_indexes=tuple(sorted(orphans.items())),
        damage=own.damage,
        has_records=True,
    )
    return with_remote_start(found, place.remote_starts)


def with_remote_start(replica: Replica, remote_starts: Sequence[tuple[str, int]]) -> Replica:
    """Return the replica with where its copies in remote storage begin, of those that are known by topic id: there its log begins, too."""
    start = next((start for one, start in remote_starts if one == replica.topic_id), None)
    if start is None:
        return replica
    orphans = tuple(one for one in replica.orphan_indexes if not one[1].endswith(EPOCHS_FILE))
    return replace(replica, remote_start=start, orphan_indexes=orphans)


def _captured_replica(place: PartitionPlace, captured: "CapturedDirectory") -> Replica:
    found = _replica_of(
        place,
        topic_id=captured.topic_id,
        epochs=captured.epochs,
        segments=tuple([one.segment for one in captured.segments]),
        producer_snapshots=captured.producer_snapshots,
        has_records=captured.has_records,
    )
    return with_remote_start(found, place.remote_starts)


def _replica_of(
    place: PartitionPlace,
    *,
    topic_id: str | Absent,
    epochs: tuple[EpochEntry, ...] | Absent,
    segments: tuple[Segment, ...],
    producer_snapshots: tuple[int, ...],
    has_records: bool,
    orphan_indexes: tuple[tuple[int, str], ...] = (),
    damage: Mapping[str, tuple[Damage, ...]] = _NO_DAMAGE,
) -> Replica:
    """Return a replica with what the files of its log directory say of it."""
    state, partition = place.state, place.topic_partition
    log_start = checkpoint_value(state, "log_start", partition)
    return Replica(
        input=state.input,
        broker_id=state.broker_id,
        path=place.path,
        log_dir=state.log_dir,
        topic_partition=partition,
        state=place.directory_state,
        topic_id=topic_id,
        segments=segments,
        lineage=_lineage(segments, log_start),
        checkpoint_epochs=epochs,
        high_watermark=checkpoint_value(state, "high_watermark", partition),
        recovery_point=checkpoint_value(state, "recovery_point", partition),
        log_start=log_start,
        cleaner_point=checkpoint_value(state, "cleaner_point", partition),
        clean_shutdown=state.clean_shutdown,
        is_controller=state.is_controller,
        producer_snapshots=producer_snapshots,
        orphan_indexes=orphan_indexes,
        damage=damage,
        has_records=has_records,
    )


def _lost_start(place: PartitionPlace, own: _OwnFiles, files: Sequence[FoundFile]) -> dict[int, str]:
    """Return the checkpoint of leader epochs by the offset where it begins, where a clean stop left the log beginning there and it does not any more."""
    state, partition = place.state, place.topic_partition
    is_settled = state.clean_shutdown and begins_with_first_segment(state, partition)
    if isinstance(own.epochs, Absent) or not is_settled or partition.topic in METADATA_TOPICS:
        return {}
    return lost_start(own.epochs, [file.name for file in files], f"{place.path}/{EPOCHS_FILE}")


def _by_base(segments: Sequence[Segment]) -> tuple[Segment, ...]:
    return tuple(sorted(segments, key=lambda one: (one.base_offset, one.path)))


def _without_replaced(segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """Return the segments in use without those that the next start replaces by what a cleaning wrote."""
    out, replaced_to = [], -1
    for segment in segments:
        is_placed = segment.path.endswith(FileSuffix.SWAP.value)
        if is_placed and isinstance(segment.last_offset, int):
            replaced_to = segment.last_offset
        if is_placed or segment.base_offset > replaced_to:
            out.append(segment)
    return tuple(out)


def _list(place: PartitionPlace, problems: list[Problem]) -> list[FoundFile]:
    files = []
    for found in walk_partition(place.state.listings, place.path, name=place.path.rpartition("/")[2]):
        if isinstance(found, FoundFile):
            if isinstance(found.partition, FoundDirectory):  # a broker does not look into directories below
                files.append(found)
        elif isinstance(found, Obstacle):
            problems.append(Problem(input=place.state.input, path=found.path, message=found.message))
    return files


def segment_paths(place: PartitionPlace, *, left_over: Sequence[FileSuffix] = (FileSuffix.DELETED,)) -> tuple[str, ...]:
    """Return the segment files of a partition directory that `collect_replica` reads, by base offset; those that no broker reads any more last."""
    files = [f for f in _list(place, []) if f.name.kind is FileKind.SEGMENT]
    read = sorted(
        (f.name.suffix is not FileSuffix.NONE, f.name.base_offset, f.path)
        for f in files
        if f.name.suffix in {FileSuffix.NONE, *left_over}
    )
    return tuple(path for _, _, path in read)


def scan_place(place: PartitionPlace, path: str) -> Segment | None:
    """Return one segment file of a partition directory as it was read, none where it can't be."""
    name = parse_file_name(path.rpartition("/")[2])
    assert isinstance(name.base_offset, int)
    try:
        return _scan(place, path, name.base_offset)
    except EvidenceError:
        return None


def _scan(place: PartitionPlace, path: str, base_offset: int, lacking: list[str] | None = None) -> Segment:
    """One segment file, or what a capture holds of it; where the capture lacks its records, its path is added to those that do."""
    with open_below(place.state.root, path) as file:
        segment = read_segment(file, path=path, base_offset=base_offset, with_batches=False)
        if lacking is not None and segment.batch_count and isinstance(file, CapturedSegment):
            from kforensics.evidence.captured.reading import has_records  # noqa: PLC0415 - of captures alone

            if not has_records(file):
                lacking.append(path)
        return segment


def _ends(
    place: PartitionPlace,
    files: Sequence[FoundFile],
    directory: Replica,
    problems: list[Problem],
) -> tuple[Segment, ...] | None:
    """Return the segments in use read from the recovery point or the end of the log on, none where all of them have to be read."""
    if not place.state.store.holds_bytes:
        return None

    def scan(found: FoundFile) -> Segment:
        assert isinstance(found.name.base_offset, int)
        return _scan(place, found.path, found.name.base_offset)

    segments = read_tails(place, _in_order(files, FileSuffix.NONE), directory, scan)
    problems += [
        Problem(input=place.state.input, path=one.path, message=CHANGED_MEANWHILE)
        for one in segments or ()
        if one.changed
    ]
    return None if segments is None else tuple(segments)


def _in_order(files: Sequence[FoundFile], suffix: FileSuffix) -> list[FoundFile]:
    """Return the segments of a suffix; those in use as the next start has them, which puts what a cleaning wrote in place of what is gone."""
    wanted = [f for f in files if f.name.kind is FileKind.SEGMENT and f.name.suffix is suffix]
    if suffix in {FileSuffix.NONE, FileSuffix.SWAP}:
        placed = placed_segments(files)
        wanted = [*wanted, *placed] if suffix is FileSuffix.NONE else [f for f in wanted if f not in placed]
    return sorted(wanted, key=lambda f: (f.name.base_offset, f.path))


def placed_segments(files: Collection[FoundFile]) -> list[FoundFile]:
    """Return what a cleaning wrote in a partition directory and the next start puts in place of what is gone."""
    taken = {path for path, is_taken in left_by_cleaning(files) if is_taken}
    bases = {f.name.base_offset for f in files if f.name.kind is FileKind.SEGMENT and not f.name.is_transient}
    return [f for f in files if f.path in taken and f.name.base_offset not in bases]


CHANGED_MEANWHILE = "it changed while it was read: what is said of it may not hold"
CHANGED_SINCE = "it changed after it was read and while other replicas were: the replicas are not seen as of one moment"


def _segments(
    place: PartitionPlace,
    files: Sequence[FoundFile],
    suffix: FileSuffix,
    problems: list[Problem],
    scanned: Mapping[str, Segment],
    lacking: list[str] | None = None,
) -> tuple[Segment, ...]:
    out = []
    for found in _in_order(files, suffix):
        assert isinstance(found.name.base_offset, int)
        segment = scanned.get(found.path)
        if segment is None:
            try:
                segment = _scan(place, found.path, found.name.base_offset, lacking)
            except EvidenceError as error:
                problems.append(problem_of(place.state.input, found.path, error))
                continue
        elif lacking is not None and _lacks_records(place, segment):
            lacking.append(found.path)
        if segment.changed and not found.name.is_transient:
            problems.append(Problem(input=place.state.input, path=found.path, message=CHANGED_MEANWHILE))
        out.append(segment)
    return tuple(out)


CAPTURED_EARLIER = "its broker ran when it was captured, and another replica that was written later has more: the replicas are not seen as of one moment"


def changes_since(place: PartitionPlace, replica: Replica, others: Sequence[Replica] = ()) -> tuple[Problem, ...]:
    """Return what shows that a log grew, was truncated or was deleted since it was read: replicas are then not of one moment."""
    capture = place.state.store.capture
    if capture is not None:
        return _captured_earlier(place, replica, others, capture)
    if not replica.segments or replica.segments[-1].changed:
        return ()
    last = replica.segments[-1]
    try:
        now = length_and_time(place.state.root, last.path)
        is_listed = not place.state.listings.may_have_changed(place.path)
        names = () if is_listed else directory_names(place.state.root, place.path)
    except (EvidenceError, OSError):
        pass
    else:
        rolled = any(_follows(parse_file_name(name), last.base_offset) for name in names if name.endswith(".log"))
        if now == (last.length, last.mtime_ns) and not rolled:
            return ()
    return (Problem(input=place.state.input, path=last.path, message=CHANGED_SINCE),)


def _captured_earlier(
    place: PartitionPlace, replica: Replica, others: Sequence[Replica], capture: Capture
) -> tuple[Problem, ...]:
    if not capture.was_running:
        return ()
    end, started_ns = replica.lineage.log_end_offset, capture.started_ns
    for other in others:
        written_ns = max((one.mtime_ns for one in other.segments), default=0)
        if other.input != replica.input and other.lineage.log_end_offset > end and written_ns > started_ns:
            path = replica.segments[-1].path if replica.segments else place.path
            return (Problem(input=place.state.input, path=path, message=CAPTURED_EARLIER),)
    return ()


def _follows(name: FileName, base_offset: int) -> bool:
    return name.kind is FileKind.SEGMENT and isinstance(name.base_offset, int) and name.base_offset > base_offset


def _lineage(segments: Sequence[Segment], log_start: CheckpointValue | Absent) -> Lineage:
    first = segments[0].base_offset if segments else 0
    end = first
    for segment in segments:
        end = max(end, segment.base_offset if isinstance(segment.last_offset, Absent) else segment.last_offset + 1)
    return Lineage(
        log_start_offset=first if isinstance(log_start, Absent) else log_start.value,
        log_end_offset=end,
    )


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
    """Return a small file of the directory, understood, with its path; a file that can't be read is also a problem."""
    found = next((one for one in files if one.name.kind is kind and not one.name.is_transient), None)
    if found is None:
        return Absent.UNREADABLE if place.path in _unread_of(place, problems) else Absent.NOT_WRITTEN
    try:
        with open_below(place.state.root, found.path) as file:
            data = file.read_all(TEXT_LIMIT)
        return found.path, parsed_once(parse, data) if len(data) <= SHORT else parse(data)
    except (EvidenceError, NewerThanKnown) as error:
        problems.append(problem_of(place.state.input, found.path, error))
    except FormatError:
        pass  # what a broker can't parse either is judged by the consistency checks
    return Absent.UNREADABLE
