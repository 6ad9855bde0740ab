"""Everything below the inputs against its format and its neighbours on the same disk: what `verify` says, before it is judged across replicas."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from kforensics.damage import Absent, Damage, DamageKind, Gravity, Span
from kforensics.errors import EvidenceError, FormatError
from kforensics.evidence.checks.context import CheckedPartition, FileReport, FileState, PartitionContext, state_of
from kforensics.evidence.checks.partition import check_partition, scan_tasks
from kforensics.evidence.checks.segment_scan import ScanTask, SegmentScan, fit_together, join_scans, scan_segment_file
from kforensics.evidence.discovery.inputs import WHOLE_INPUT, FoundInput, Inputs
from kforensics.evidence.discovery.partition_dirs import (
    LOGS_LEFT_OUT,
    LogDirState,
    LostDirectory,
    log_dir_states,
    lost_directories,
)
from kforensics.evidence.file_kinds import FILE_KINDS
from kforensics.evidence.model import CheckpointValue, Citation, Problem
from kforensics.evidence.parallel import Progress, spread
from kforensics.evidence.segment_parts import split_segment
from kforensics.formats.checkpoint.lines import iter_checkpoint
from kforensics.formats.primitives.text_lines import DamageList
from kforensics.formats.segment.walk import Buffers, Level
from kforensics.source.naming import FileKind
from kforensics.source.walk import DirectoryKind, FoundDirectory, FoundFile, Obstacle, Wants, of_wanted
from kforensics.units import REMOTE_LOG_TOPIC, TopicPartition

SPLIT_LENGTH = 48 << 20
"""Bytes of a partition from which its segments are walked by several processes."""

_CHECKPOINT_FIELDS = {
    "replication-offset-checkpoint": "high_watermark",
    "recovery-point-offset-checkpoint": "recovery_point",
    "log-start-offset-checkpoint": "log_start",
    "cleaner-offset-checkpoint": "cleaner_point",
}

_LEFT_ON_THE_BROKER = frozenset({FileKind.OFFSET_INDEX, FileKind.TIME_INDEX})

Checkpoints = Mapping[str, Mapping[TopicPartition, CheckpointValue]]
"""Per field of a partition's context, what a log directory's checkpoint says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The reports on all files of all inputs."""

    partitions: tuple[CheckedPartition, ...]
    files: tuple[FileReport, ...]
    """The reports by input and path; those of partitions included."""
    problems: tuple[Problem, ...]


Unexplained = Callable[[Sequence[LostDirectory]], Sequence[LostDirectory]]
"""Those of the partitions without a directory that should have one."""


def verify_inputs(
    inputs: Inputs,
    *,
    level: Level,
    jobs: int,
    progress: Progress = lambda _: None,
    unexplained: Unexplained = tuple,
    wants: Wants | None = None,
) -> Verification:
    """Check every file of the inputs."""
    plans = [_plan(index, found) for index, found in enumerate(inputs.found)]
    lost, left_out = _lost_directories(inputs, plans, unexplained)
    lost = tuple(one for one in lost if wants is None or wants(one.topic_partition))
    contexts = [context for plan in plans for context in plan.contexts if _is_checked(context, wants)]
    checked = _check_partitions(contexts, level=level, jobs=jobs, progress=progress)
    elsewhere: dict[tuple[int, str], list[Damage]] = defaultdict(list)
    for absent in lost:
        elsewhere[absent.value.citation.input, absent.value.citation.path].append(_of_lost(absent))
    for one in checked:
        for path, damage in one.elsewhere:
            elsewhere[one.context.input, path].append(damage)
    files = [report for one in checked for report in one.reports]
    for plan in plans:
        files += [_with_damage(report, elsewhere.get((report.input, report.path), ())) for report in plan.reports]
    problems = [*inputs.problems, *(problem for plan in plans for problem in plan.problems)]
    problems += [
        Problem(input=one.context.input, path=path, message=message)
        for one in checked
        for path, message in one.problems
    ]
    problems += [*left_out, *_not_in_captures(inputs, files)]
    files.sort(key=lambda report: (report.input, report.path))
    problems.sort(key=lambda problem: (problem.input, problem.path, problem.message))
    return Verification(partitions=tuple(checked), files=tuple(files), problems=tuple(problems))


def _lost_directories(
    inputs: Inputs, plans: Sequence["_Plan"], unexplained: Unexplained
) -> tuple[tuple[LostDirectory, ...], tuple[Problem, ...]]:
    """Return the lines of checkpoints that name a partition of which the node holds no directory, and what may have been left out of a copy."""
    states: list[LogDirState] = []
    held = set()
    for index, (found, plan) in enumerate(zip(inputs.found, plans, strict=True)):
        if any(one.are_logs_left_out for one in plan.contexts):
            continue
        # What of them can't be read is named where the files are checked.
        states += log_dir_states(index, found, []).values()
        held |= {
            (index, one.directory.topic_partition) for one in plan.contexts if not isinstance(one.directory, Absent)
        }
    lost, left_out = lost_directories(states, held)
    return tuple(unexplained(lost)), left_out


def _of_lost(one: LostDirectory) -> Damage:
    return Damage(
        span=Span(0, 0),
        kind=DamageKind.MISSING,
        expected="a directory of each partition that it names",
        found=f"none, and line {one.value.citation.line}: {one.topic_partition} up to offset {one.value.value}",
        gravity=Gravity.DAMAGE,
    )


def _is_checked(context: PartitionContext, wants: Wants | None) -> bool:
    return wants is None or (not isinstance(context.directory, Absent) and wants(context.directory.topic_partition))


def _not_in_captures(inputs: Inputs, files: Sequence[FileReport]) -> Iterator[Problem]:
    """Yield what can be checked only where a capture was taken, one problem for each input."""
    for index, found in enumerate(inputs.found):
        capture, inner = found.store.capture, found.store.inner
        if capture is None:
            continue
        count = sum(report.input == index and report.kind in _LEFT_ON_THE_BROKER for report in files)
        if count:
            yield Problem(
                input=index,
                path=WHOLE_INPUT,
                message=(
                    f"of a capture: segments are reported as their checksums were when it was taken; {count} index files and the content of records "
                    f"stayed in {capture.where(inner)}: run verify there to check them"
                ),
            )


def segment_bytes(inputs: Inputs, wants: Wants | None = None) -> int:
    """Return the bytes of all segments below the inputs, for a progress bar."""
    return sum(
        found.length
        for one in inputs.found
        for found in one.walk()
        if isinstance(found, FoundFile) and found.name.kind is FileKind.SEGMENT and of_wanted(found.partition, wants)
    )


@dataclass(slots=True, kw_only=True)
class _Plan:
    contexts: list[PartitionContext]
    reports: list[FileReport]
    problems: list[Problem]


def _plan(index: int, found: FoundInput) -> _Plan:
    """Return the partitions of an input, with all that its log directories say of them; files outside of partitions are checked right here."""
    files: dict[FoundDirectory, list[FoundFile]] = {}
    loose: list[FoundFile] = []
    problems: list[Problem] = []
    has_remote_logs = False
    for item in found.walk():
        match item:
            case FoundDirectory():
                is_record = not isinstance(item.name, Absent) and item.name.topic == REMOTE_LOG_TOPIC
                has_remote_logs |= is_record or item.kind is DirectoryKind.REMOTE_INDEX_CACHE
                if not isinstance(item.name, Absent) or item.kind is DirectoryKind.PARTITION:
                    files[item] = []
            case FoundFile():
                if isinstance(item.partition, FoundDirectory):
                    files.setdefault(item.partition, []).append(item)
                else:
                    loose.append(item)
            case Obstacle():
                problems.append(Problem(input=index, path=item.path, message=item.message))
    partitions = dict(files)
    outside = [item for item in loose if item.name.kind is FileKind.SEGMENT]
    for item in outside:  # a segment that was named by itself
        partitions[FoundDirectory(item.path, item.log_dir, DirectoryKind.PARTITION, Absent.UNKNOWN)] = [item]
    loose = [item for item in loose if item.name.kind is not FileKind.SEGMENT]
    named = frozenset(one.name.topic_partition for one in partitions if not isinstance(one.name, Absent))
    reports, checkpoints = _read_loose(index, found, loose, named, problems)
    clean = {one.path: one.clean_shutdown for one in found.log_dirs}
    epochs = [epoch for one in found.log_dirs if isinstance(epoch := one.broker_epoch, int)]
    contexts = [
        PartitionContext(
            input=index,
            root=found.root,
            path=directory.path,
            directory=directory.name,
            files=tuple(members),
            clean_shutdown=clean.get(directory.log_dir, Absent.UNKNOWN),
            broker_epoch=max(epochs, default=Absent.UNKNOWN),
            has_remote_logs=has_remote_logs,
            **_values(checkpoints.get(directory.log_dir), directory),  # type: ignore[arg-type] # names of checkpoints only
        )
        for directory, members in partitions.items()
    ]
    blind = {path for one in contexts for path in [one.path] if any(_is_at(problem.path, path) for problem in problems)}
    if blind:
        contexts = [replace(one, are_logs_left_out=True) if one.path in blind else one for one in contexts]
    elif _are_logs_left_out(contexts):
        problems.append(Problem(input=index, path=WHOLE_INPUT, message=LOGS_LEFT_OUT))
        contexts = [replace(one, are_logs_left_out=True) for one in contexts]
    return _Plan(contexts=contexts, reports=reports, problems=problems)


def _is_at(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")


def _are_logs_left_out(contexts: Sequence[PartitionContext]) -> bool:
    """Whether checkpoints refer to records and no partition has a segment."""
    if any(file.is_live_segment for one in contexts for file in one.files):
        return False
    values = (value for one in contexts for value in (one.high_watermark, one.recovery_point))
    return any(isinstance(value, CheckpointValue) and value.value > 0 for value in values)


def _values(checkpoints: Checkpoints | None, directory: FoundDirectory) -> dict[str, CheckpointValue | Absent]:
    if checkpoints is None or isinstance(directory.name, Absent):
        return {}
    partition = directory.name.topic_partition
    return {field: values.get(partition, Absent.NOT_WRITTEN) for field, values in checkpoints.items()}


def _read_loose(
    index: int,
    found: FoundInput,
    files: Sequence[FoundFile],
    named: frozenset[TopicPartition],
    problems: list[Problem],
) -> tuple[list[FileReport], dict[str, Checkpoints]]:
    """Files outside of partition directories: checked alone, and what the checkpoints among them say of the `named` partitions by log directory."""
    reports: list[FileReport] = []
    checkpoints: dict[str, dict[str, dict[TopicPartition, CheckpointValue]]] = defaultdict(dict)
    for file in files:
        alone = check_partition(
            PartitionContext(
                input=index,
                root=found.root,
                path="",
                directory=Absent.UNKNOWN,
                files=(file,),
                clean_shutdown=Absent.UNKNOWN,
            ),
            level=Level.RECORDS,
        )
        reports += alone.reports
        problems += [Problem(input=index, path=path, message=message) for path, message in alone.problems]
        field = _CHECKPOINT_FIELDS.get(file.path.rpartition("/")[2])
        if field is not None:
            values = _checkpoint_values(index, found, file, named)
            if values is not None:
                checkpoints[file.log_dir][field] = values
        if file.path == WHOLE_INPUT and file.name.kind is FileKind.UNKNOWN:
            problems.append(
                Problem(
                    input=index, path=file.path, message="its name is not one that a broker writes: it was not checked"
                )
            )
    return reports, dict(checkpoints)


def _checkpoint_values(
    index: int, found: FoundInput, file: FoundFile, named: frozenset[TopicPartition]
) -> dict[TopicPartition, CheckpointValue] | None:
    source = Citation(input=index, path=file.path)
    try:
        with found.open(file.path) as evidence:
            return {
                partition: CheckpointValue(
                    value=entry.offset, citation=replace(source, span=entry.span, line=entry.line)
                )
                for entry in iter_checkpoint(evidence.read_all(FILE_KINDS[file.name.kind].limit), DamageList())
                if (partition := TopicPartition(entry.topic, entry.partition)) in named
            }
    except (EvidenceError, FormatError):
        return None  # named where the file itself is checked


def _with_damage(report: FileReport, more: Sequence[Damage]) -> FileReport:
    if not more or report.state is FileState.UNREADABLE:
        return report
    damage = tuple(sorted((*report.damage, *more), key=lambda place: place.span))
    return replace(report, damage=damage, state=state_of(damage))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A part of one segment of a large partition."""

    context: int
    path: str
    task: ScanTask
    length: int


def _check_partitions(
    contexts: Sequence[PartitionContext], *, level: Level, jobs: int, progress: Progress
) -> list[CheckedPartition]:
    """Small partitions are checked whole, one a task; the segments of large ones are walked in parts first."""
    lengths = [sum(file.length for file in context.files if file.name.kind is FileKind.SEGMENT) for context in contexts]
    large = [at for at, length in enumerate(lengths) if jobs > 1 and length >= SPLIT_LENGTH]
    small = [at for at in range(len(contexts)) if at not in set(large)]
    parts = [part for at in large for part in _parts_of(at, contexts[at], level, jobs)]
    work = partial(_work, contexts, level, Buffers.empty())
    tasks: list[_Part | int] = [*parts, *small]
    weights = [part.length for part in parts] + [lengths[at] for at in small]
    results = spread(work, tasks, weights=weights, jobs=jobs, progress=progress)
    scans: dict[int, dict[str, SegmentScan]] = {at: {} for at in large}
    checked: dict[int, CheckedPartition] = {}
    for task, result in zip(tasks, results, strict=True):
        if isinstance(result, CheckedPartition):
            assert isinstance(task, int)
            checked[task] = result
        elif isinstance(task, _Part):
            _join(scans[task.context], task, result)
    for at in large:
        checked[at] = check_partition(contexts[at], level=level, scans=scans[at], progress=progress)
    return [checked[at] for at in range(len(contexts))]


def _parts_of(number: int, context: PartitionContext, level: Level, jobs: int) -> Iterator[_Part]:
    for file, task in scan_tasks(context, level):
        for part in split_segment(task.path, length=file.length, base_offset=task.base_offset, jobs=jobs):
            scan = replace(task, start=part.start, end=part.end)
            yield _Part(context=number, path=file.path, task=scan, length=part.length(file.length))


def _work(
    contexts: Sequence[PartitionContext], level: Level, buffers: Buffers, task: _Part | int, progress: Progress
) -> CheckedPartition | SegmentScan | None:
    if isinstance(task, int):
        return check_partition(contexts[task], level=level, progress=progress, buffers=buffers)
    try:
        return scan_segment_file(task.task, progress, buffers)
    except EvidenceError:
        return None  # tried again, and named, where the partition is checked


def _join(scans: dict[str, SegmentScan], part: _Part, scan: SegmentScan | None) -> None:
    """Add a part to those before it; if they do not fit, the segment is left out and walked as a whole with its partition."""
    before = scans.get(part.path)
    if part.task.start == 0 and scan is not None:
        scans[part.path] = scan
    elif before is not None:
        if scan is not None and fit_together(before, scan):
            scans[part.path] = join_scans(before, scan)
        else:
            del scans[part.path]
