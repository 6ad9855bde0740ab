"""What a capture reads, in which order, and how much that is: of a log, from which offset on a truncation can still happen."""

import contextlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from kforensics.case.processes import default_jobs
from kforensics.commands.capturing.folders import FolderPlan, LogDirPlan, RootPlan, Tally, add_folders
from kforensics.damage import Absent
from kforensics.errors import EvidenceError, NotADataDir, UsageError, refuse
from kforensics.evidence.discovery.inputs import (
    WHOLE_INPUT,
    FoundInput,
    Inputs,
    find_inputs,
    problem_words,
    unusable_input,
    why_not_compared,
)
from kforensics.evidence.discovery.log_spans import begins_like_a_log
from kforensics.evidence.discovery.partition_dirs import (
    LOGS_LEFT_OUT,
    LogDirState,
    PartitionPlace,
    PlaceFound,
    checkpoint_value,
    log_dir_states,
    lost_directories,
    no_logs_are_here,
    places_in,
)
from kforensics.evidence.metadata.files import find_metadata_logs
from kforensics.evidence.model import BUCKET_OFFSETS, Input, Problem
from kforensics.evidence.parallel import stream
from kforensics.evidence.replica.collect import collect_directory
from kforensics.protocol.loading.disk import first_scanned
from kforensics.source.beside_broker import is_locked
from kforensics.source.discover import Shape
from kforensics.source.naming import DirectoryState, FileKind, FileSuffix, parse_file_name, parse_partition_directory
from kforensics.source.store import Entry
from kforensics.source.walk import DEEPEST, Found, Listings, PackedNames, join, names_of, walk_directory, walk_log_dir
from kforensics.units import OFFSETS_TOPIC, REMOTE_LOG_TOPIC, SHARE_TOPIC, TRANSACTIONS_TOPIC, TopicPartition

if TYPE_CHECKING:
    from kforensics.evidence.metadata.history import MetadataHistory

MARGIN_OFFSETS = BUCKET_OFFSETS
"""Offsets below the point from which a truncation can still happen, from which batches are taken along, too."""

ALWAYS_BY_RECORD = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC})
"""Brokers compact these whatever their settings."""

WITH_CONTENT = ALWAYS_BY_RECORD | {SHARE_TOPIC, REMOTE_LOG_TOPIC}
"""The logs of the coordinators and of the copies in remote storage: their records are the brokers' own, so that they are taken along."""

LARGEST_COORDINATOR_LOG = 256 << 20
"""Bytes of a log of the coordinators up to which its records are taken along."""

LARGEST_CLEANED_LOG = 4 << 20
"""Bytes of a compacted log up to which its records are digested at depth tails, too."""

LARGEST_OFFSET = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What decides how much of a log is taken along."""

    compacted: frozenset[str]
    """Topics that a cleaner works on."""
    all_batches: bool
    margin: int
    is_by_ends: bool
    is_running: bool | None
    """Whether a process holds the lock of a log directory; none where that is not known."""

    def decide(self, folder: FolderPlan) -> None:
        """Decide what is taken along of the log of a partition directory."""
        place = folder.place
        if place is None or folder.is_metadata:
            return
        _decide(folder, self.compacted, all_batches=self.all_batches, margin=self.margin)
        if self.is_by_ends and place.directory_state != DirectoryState.DELETED.value:
            _decide_by_ends(folder, place)
        elif not self.is_running and not place.state.clean_shutdown:
            folder.carried_from = min(folder.carried_from, _scanned_from(folder, place))


def metadata_histories(inputs: Inputs) -> "list[MetadataHistory]":
    """Return what the metadata logs say; one that can't be read is left out."""
    histories = []
    for files in find_metadata_logs(inputs):
        from kforensics.evidence.metadata.log import read_metadata_log  # noqa: PLC0415 - only nodes with a metadata log need it

        with contextlib.suppress(EvidenceError):  # named where the file is taken along
            histories.append(read_metadata_log(files).without_partitions())
    return histories


def compacted_topics(histories: "Sequence[MetadataHistory]") -> frozenset[str]:
    """Return the topics that may be compacted by their settings, as far as the metadata log shows it; the cleaner's checkpoint shows the others."""
    policies: dict[str, str | None] = {}
    for history in histories:
        from kforensics.evidence.metadata.state import TOPIC_RESOURCE  # noqa: PLC0415 - only nodes with a metadata log need it

        for one in history.configs:
            if one.resource_type == TOPIC_RESOURCE and one.name == "cleanup.policy":
                policies[one.resource_name] = one.value
    return frozenset(topic for topic, policy in policies.items() if policy is not None and "compact" in policy)


def _decide(folder: FolderPlan, compacted: frozenset[str], *, all_batches: bool, margin: int) -> None:
    """From which offset a row a batch is taken along, and whether digests of records are."""
    place = folder.place
    assert place is not None
    cleaner_point = checkpoint_value(place.state, "cleaner_point", place.topic_partition)
    folder.by_record = not isinstance(cleaner_point, Absent) or place.topic_partition.topic in compacted
    if place.topic_partition.topic in WITH_CONTENT:
        folder.with_content = sum(entry.length for entry, _, _ in folder.segments()) <= LARGEST_COORDINATOR_LOG
    if folder.with_content:
        return
    if not place.is_live:
        return
    folder.bytes_from = stake(place, margin)
    if not all_batches and not folder.by_record:
        folder.carried_from = folder.bytes_from


def _decide_by_ends(folder: FolderPlan, place: PartitionPlace) -> None:
    """Of small logs that a cleaner works on all rows and records are taken along; of others rows from the high watermark or the recovery point on."""
    length = sum(entry.length for entry, _, _ in folder.segments())
    if folder.with_content or (folder.by_record and length <= LARGEST_CLEANED_LOG):
        folder.carried_from = 0
        return
    folder.by_record = False
    values = [
        checkpoint_value(place.state, name, place.topic_partition) for name in ("high_watermark", "recovery_point")
    ]
    folder.carried_from = min((one.value for one in values if not isinstance(one, Absent)), default=LARGEST_OFFSET)


def _scanned_from(folder: FolderPlan, place: PartitionPlace) -> int:
    """Return the base offset of the segment that holds the recovery point, from which a start after an unclean shutdown reads every batch."""
    if not folder.carried_from:
        return 0
    point = checkpoint_value(place.state, "recovery_point", place.topic_partition)
    bases = sorted(base for _, name, base in folder.segments() if name.suffix is FileSuffix.NONE)
    return bases[first_scanned(bases, 0 if isinstance(point, Absent) else point.value)] if bases else 0


def stake(place: PartitionPlace, margin: int) -> int:
    """Return the offset from which a truncation can still happen, lowered by the margin to the beginning of a run of offsets that has a digest.

    That is the lowest of the high watermark, the recovery point and the beginning of the last leader epoch but one; 0 where one of them is not known.
    """
    partition = place.topic_partition
    values = [checkpoint_value(place.state, name, partition) for name in ("high_watermark", "recovery_point")]
    lowest = min((0 if isinstance(one, Absent) else one.value for one in values), default=0)
    if lowest - margin < BUCKET_OFFSETS:
        return 0  # whatever the epochs are
    epochs = collect_directory(place).replica.checkpoint_epochs
    if isinstance(epochs, Absent) or not epochs:
        return 0
    lowest = min(lowest, epochs[max(len(epochs) - 2, 0)].start_offset)
    return max((lowest - margin) // BUCKET_OFFSETS, 0) * BUCKET_OFFSETS


def find_root(given: Path) -> Inputs:
    """Return the inputs below a path that a capture is asked for."""
    try:
        return find_inputs([given], with_server_logs=True, why_not=why_not_compared)
    except NotADataDir:
        if not given.is_dir() or not any(begins_like_a_log(one) for one in given.iterdir() if one.is_file()):
            raise
        # Its files may be logs by their content; `explain` takes such a directory, too.
        described = Input(path=str(given), kind="log-files")
        return Inputs(found=(FoundInput(described=described, listings=Listings(given.resolve()), shape=Shape.FILES),))


def new_name(name: str, roots: Sequence[RootPlan]) -> str:
    """Return a name that no other root has in the capture."""
    taken, number, found = {root.name for root in roots}, 2, name
    while found in taken:
        found, number = f"{name}-{number}", number + 1
    return found


def require_one_node(inputs: Sequence[FoundInput]) -> None:
    """Refuse directories of more than one node."""
    nodes = {
        (one.described.cluster_id, one.described.broker_id): one.described.path
        for one in inputs
        if isinstance(one.described.broker_id, int)
    }
    if len(nodes) > 1:
        named = ", ".join(f"node {node} in {path}" for (_, node), path in sorted(nodes.items(), key=str))
        raise UsageError(f"a capture is of one node, and there are {len(nodes)}: {named}; capture each by itself")


def plan_root(root: RootPlan, found: Sequence[FoundInput]) -> None:
    """Plan the directories below a root, all but the partition directories of its log directories."""
    planned: dict[str, FolderPlan] = {}
    for one in found:
        prefix = str(one.root.relative_to(root.real)) if one.root != root.real else ""
        match one.shape:
            case Shape.FILE:
                root.file = one.root
            case Shape.PARTITION:
                add_folders(planned, _inner(root, prefix), one, "", DEEPEST)
            case Shape.FILES:
                levels = DEEPEST if one.root == root.real else 0
                add_folders(planned, _inner(root, prefix), one, "", levels, holds_logs=True)
            case Shape.LOG_DIR | Shape.PARENT:
                for path in one.log_dir_paths:
                    log_dir = LogDirPlan(found=one, path=path, inner=_inner(root, prefix, path))
                    log_dir.list_names()
                    if log_dir.inner not in {other.inner for other in root.log_dirs}:
                        root.log_dirs.append(log_dir)
                    add_folders(planned, log_dir.inner, one, path, DEEPEST, without_partitions=True)
    _add_parents(planned, root)
    root.folders = [planned[inner] for inner in sorted(planned)]


def _inner(root: RootPlan, *below: str) -> str:
    return "/".join(part for part in (root.name, *below) if part)


def _add_parents(planned: dict[str, FolderPlan], root: RootPlan) -> None:
    """Add the directories between the path that was named and what was found below it, with nothing else that is in them."""
    if root.file is not None:
        return
    for inner in sorted(planned):
        parent = inner.rpartition("/")[0]
        while parent:
            child = inner[len(parent) + 1 :].partition("/")[0]
            if parent not in planned:
                relative = parent[len(root.name) + 1 :]
                planned[parent] = FolderPlan(root=root.real, relative=relative, inner=parent)
            known = planned[parent]
            if known.listings is None or not known.with_directories:
                known.children = known.children or {}
                known.children[child] = Entry(child, stat.S_IFDIR | 0o755, 0, 0)
            parent = parent.rpartition("/")[0]


def lock_files(roots: Sequence[RootPlan]) -> Iterator[Path]:
    """Yield the files that a running broker holds locks on."""
    for root in roots:
        for folder in root.folders:
            if folder.place is None:
                for entry in folder.each():
                    if not entry.is_directory and parse_file_name(entry.name).kind is FileKind.LOCK:
                        yield folder.path / entry.name


@dataclass(slots=True, kw_only=True)
class CapturePlan:
    """All that a capture reads."""

    roots: list[RootPlan]
    inputs: tuple[Input, ...]
    problems: list[Problem]
    histories: "list[MetadataHistory]"
    """What the metadata logs of the node say."""
    scope: Scope
    replicas: int = 0
    """The number of partition directories."""
    tally: Tally = field(default_factory=Tally)
    """What all directories come to."""

    def folders(self) -> Iterator[FolderPlan]:
        """Yield the directories that are planned one by one, those first of which a broker may take content away at any time; `tasks` gives the others."""
        for one in self.log_dirs():
            yield from self.partitions(one, one.vanishing)
        yield from sorted(self._alone(), key=lambda folder: not folder.may_vanish)

    def tasks(self) -> list["Task"]:
        """Return the partition directories that no broker is about to remove, in groups."""
        return [Task(one, group) for one in self.log_dirs() for group in one.names.groups]

    def log_dirs(self) -> list[LogDirPlan]:
        """Return the log directories."""
        return [one for root in self.roots for one in root.log_dirs]

    def without_partitions(self) -> Iterator[FolderPlan]:
        """Yield the directories that are no partition's."""
        return (folder for folder in self._alone() if folder.place is None)

    def urgent(self) -> Iterator[FolderPlan]:
        """Yield the directories that hold what a broker is about to remove."""
        for root in self.roots:
            for one in root.log_dirs:
                yield from self.partitions(one, one.urgent)
            yield from (folder for folder in root.folders if folder.place is not None)

    def places(self) -> Iterator[PartitionPlace]:
        """Yield the partition directories, by what their names say."""
        yield from (folder.place for folder in self._alone() if folder.place is not None)
        for one in self.log_dirs():
            yield from (place for name in (*one.vanishing, *one.names) if (place := one.place(name)) is not None)

    def partitions(self, log_dir: LogDirPlan, names: Iterable[str]) -> Iterator[FolderPlan]:
        """Yield partition directories with what is below them; each is listed now."""
        for name in names:
            for folder in log_dir.folders(name):
                self.scope.decide(folder)
                yield folder

    def _alone(self) -> list[FolderPlan]:
        return [folder for root in self.roots for folder in root.folders]


def node_of(plan: CapturePlan) -> Input | None:
    """Return the first input that says of which node it is."""
    return next((one for one in plan.inputs if isinstance(one.broker_id, int)), None)


@dataclass(frozen=True, slots=True)
class Task:
    """Some partition directories of one log directory."""

    log_dir: LogDirPlan
    group: str
    """Their names, as `PackedNames` has them."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the directories."""
        return tuple(names_of(self.group))


def plan_capture(
    paths: Sequence[Path],
    *,
    all_batches: bool = False,
    margin: int = MARGIN_OFFSETS,
    keep_going: bool = False,
    is_by_ends: bool = False,
    jobs: int | None = None,
) -> CapturePlan:
    """List what is below the paths; reads names, and of partition directories the small files.

    Args:
        margin: offsets below the lowest point from which a truncation can still happen.
        is_by_ends: the ends of logs alone are read; rows of batches are taken along from the high watermark or the recovery point on.
    """
    roots: list[RootPlan] = []
    inputs: list[FoundInput] = []
    problems: list[Problem] = []
    errors: list[EvidenceError] = []
    for given in paths:
        try:
            found = find_root(given)
        except EvidenceError as error:
            errors.append(error)
            problems.append(Problem(input=len(inputs), path=WHOLE_INPUT, message=problem_words(error)))
            inputs.append(unusable_input(given))
            continue
        if any(one.store.container is not None for one in found.found):
            raise UsageError(
                f"{given} is a capture, or holds one: a capture is taken of directories, so copy it as it is"
            )
        problems += [
            Problem(input=one.input + len(inputs), path=one.path, message=one.message) for one in found.problems
        ]
        real = Path(os.path.realpath(given))
        root = RootPlan(name=new_name(real.name or "root", roots), real=real)
        plan_root(root, found.found)
        roots.append(root)
        inputs += found.found
    refuse(errors, named=len(paths), keep_going=keep_going and len(errors) < len(paths))
    require_one_node(inputs)
    histories = metadata_histories(Inputs(found=tuple(inputs)))
    plan = CapturePlan(
        roots=roots,
        inputs=tuple(one.described for one in inputs),
        problems=problems,
        histories=histories,
        scope=Scope(
            compacted=ALWAYS_BY_RECORD | compacted_topics(histories),
            all_batches=all_batches,
            margin=margin,
            is_by_ends=is_by_ends,
            is_running=is_locked(lock_files(roots)),
        ),
    )
    _survey(plan, inputs, default_jobs() if jobs is None else jobs)
    for root in roots:
        for folder in root.folders:
            plan.scope.decide(folder)
            plan.tally.add(folder)
    return plan


@dataclass(slots=True)
class _Seen:
    """What some partition directories hold."""

    has_segments: bool = False
    urgent: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)


def _survey(plan: CapturePlan, inputs: Sequence[FoundInput], jobs: int) -> None:
    """Look at all names once; of partition directories is kept what is urgent, and how much there is of all."""
    log_dirs = plan.log_dirs()
    alone = {(folder.root, folder.relative): folder for root in plan.roots for folder in root.folders}
    numbers = {id(found): index for index, found in enumerate(inputs)}
    states = {index: log_dir_states(index, found, plan.problems) for index, found in enumerate(inputs)}
    for log_dir in log_dirs:
        log_dir.state = states[numbers[id(log_dir.found)]][log_dir.path]
    tasks = plan.tasks() + [Task(one, group) for one in log_dirs for group in PackedNames.of(one.vanishing).groups]
    seen: dict[int, list[_Seen]] = {}

    def look(task: Task) -> _Seen:
        return _look(plan, numbers[id(task.log_dir.found)], task)

    for task, one in zip(tasks, stream(look, tasks, jobs=jobs), strict=True):
        seen.setdefault(numbers[id(task.log_dir.found)], []).append(one)
        task.log_dir.urgent += one.urgent
    every: list[LogDirState] = []
    held: list[Iterator[tuple[int, TopicPartition]]] = []
    for index, found in enumerate(inputs):
        mine = [one for one in log_dirs if one.found is found]
        own = list(places_in(index, _others(found, mine), states[index], plan.problems))
        found_here = seen.get(index, [])
        plan.problems += [problem for one in found_here for problem in one.problems]
        has_segments = any(one.has_segments for one in own) or any(one.has_segments for one in found_here)
        if no_logs_are_here(states[index].values(), has_segments=has_segments):
            plan.problems.append(Problem(input=index, path=WHOLE_INPUT, message=LOGS_LEFT_OUT))
            for log_dir in mine:
                log_dir.state = None
        else:
            plan.replicas += sum(len(one.names) + len(one.vanishing) for one in mine) + len(own)
            every += states[index].values()
            held.append(_held(index, mine, own))
            for held_alone in own:
                place = held_alone.place
                if (folder := alone.get((place.state.root, place.path))) is not None:
                    folder.place = place
        for seen_here in found_here:
            plan.tally.merge(seen_here.tally)
    plan.problems += lost_directories(every, chain.from_iterable(held))[1]


def _held(
    index: int, log_dirs: Sequence[LogDirPlan], places: Sequence[PlaceFound]
) -> Iterator[tuple[int, TopicPartition]]:
    """Yield the partitions of all directories of an input, which are parsed where they are asked for: there may be a million."""
    for log_dir in log_dirs:
        for name in (*log_dir.names, *log_dir.vanishing):
            if (parsed := parse_partition_directory(name)) is not None:
                yield index, parsed.topic_partition
    yield from ((index, one.place.topic_partition) for one in places)


def _look(plan: CapturePlan, index: int, task: Task) -> _Seen:
    log_dir, seen = task.log_dir, _Seen()
    found, state = log_dir.found, log_dir.state
    assert state is not None
    for name in task.names:
        items = walk_directory(found.listings, log_dir.path, name)
        for one in places_in(index, items, {log_dir.path: state}, seen.problems):
            seen.has_segments |= one.has_segments
            if one.is_urgent:
                seen.urgent.append(name)
        for folder in log_dir.folders(name):
            plan.scope.decide(folder)
            seen.tally.add(folder)
        found.listings.forget(join(log_dir.path, name))
    return seen


def _others(found: FoundInput, planned: Collection[LogDirPlan]) -> Iterator[Found]:
    """Yield what is below an input, but for the partition directories of log directories that are planned."""
    if not planned:
        yield from found.walk()
        return
    yield from found.obstacles
    paths = {one.path for one in planned}
    for path in found.log_dir_paths:
        yield from walk_log_dir(found.listings, path, within=_is_no_partition if path in paths else None)


def _is_no_partition(name: str) -> bool:
    return parse_partition_directory(name) is None
