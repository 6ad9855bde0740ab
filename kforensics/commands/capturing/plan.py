"""What a capture reads, and in which order: the directories below the paths that were named, and which of their files are taken along byte for byte."""

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kforensics.damage import Absent
from kforensics.errors import EvidenceError, NotADataDir, UsageError
from kforensics.evidence.discovery.inputs import (
    WHOLE_INPUT,
    FoundInput,
    Inputs,
    find_inputs,
    problem_words,
    refuse,
    unusable_input,
    why_not_listed,
)
from kforensics.evidence.discovery.log_heads import begins_like_a_log
from kforensics.evidence.discovery.partition_dirs import (
    LOGS_LEFT_OUT,
    LogDirState,
    PartitionPlace,
    checkpoint_value,
    log_dir_states,
    lost_directories,
    no_logs_are_here,
    places_in,
)
from kforensics.evidence.metadata.events import TOPIC_RESOURCE
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.evidence.metadata.log import find_metadata_logs, read_metadata_log
from kforensics.evidence.model import BUCKET_OFFSETS, Input, Problem
from kforensics.evidence.replica.collect import collect_directory
from kforensics.formats.log.batch_table import BatchTable
from kforensics.formats.segment.walk import Level, walk_segment
from kforensics.protocol.recovery import first_scanned
from kforensics.source.discover import Shape
from kforensics.source.locks import is_locked
from kforensics.source.mapped import open_evidence
from kforensics.source.naming import (
    LOST_AND_FOUND,
    DirectoryState,
    FileKind,
    FileName,
    FileSuffix,
    PartitionDirectoryName,
    parse_file_name,
    parse_partition_directory,
)
from kforensics.source.walk import DEEPEST, Entry, Listings, join
from kforensics.units import OFFSETS_TOPIC, SHARE_TOPIC, TRANSACTIONS_TOPIC, TopicPartition

MARGIN_OFFSETS = BUCKET_OFFSETS
"""Offsets below the point from which a truncation can still happen, from which batches are taken along, too."""

ALWAYS_BY_RECORD = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC})
"""Brokers compact these whatever their settings."""

WITH_CONTENT = ALWAYS_BY_RECORD | {SHARE_TOPIC}
"""The logs of the coordinators: their records are the brokers' own, so that they are taken along."""

LARGEST_COORDINATOR_LOG = 256 << 20
"""Bytes of a log of the coordinators up to which its records are taken along."""

_BYTE_FOR_BYTE = frozenset(
    {
        FileKind.TXN_INDEX,
        FileKind.PRODUCER_SNAPSHOT,
        FileKind.LEADER_EPOCH_CHECKPOINT,
        FileKind.OFFSET_CHECKPOINT,
        FileKind.META_PROPERTIES,
        FileKind.PARTITION_METADATA,
        FileKind.QUORUM_STATE,
        FileKind.METADATA_SNAPSHOT,
        FileKind.CLEAN_SHUTDOWN,
        FileKind.REMOTE_LOG_STATE,
        FileKind.LOG_FILE,
        FileKind.SERVER_PROPERTIES,
    }
)

LARGEST_CLEANED_LOG = 4 << 20
"""Bytes of a compacted log up to which its records are digested at depth tails, too."""

LARGEST_OFFSET = 2**63 - 1

LARGEST_COPY = 4 << 30
"""Bytes of a file that are taken along; a metadata log's segments end at 1 GiB, and longer logs are divided into files."""


@dataclass(slots=True, kw_only=True)
class FolderPlan:
    """One directory: where it is, what it is in the capture, and what its listing said."""

    root: Path
    """Of the input that it belongs to."""
    relative: str
    """Of the directory below that root; citations use such paths."""
    inner: str
    """Of the directory in the capture."""
    listings: Listings | None = None
    """Of the root; none of a directory of which only what leads to data is taken along."""
    with_directories: bool = True
    held: tuple[Entry, ...] | None = None
    """Its entries, of a partition directory, which is listed when it is its turn."""
    children: dict[str, Entry] | None = None
    """Directories in it that its listing does not give, or that are all that is taken along."""
    place: PartitionPlace | None = None
    is_metadata: bool = False
    holds_logs: bool = False
    """A directory of log files: what is a log by its content is taken along whatever its name."""
    carried_from: int = 0
    """Rows are taken along of all batches that end at this offset or above."""
    bytes_from: int = 0
    """Likewise of their bytes, where bytes are asked for."""
    by_record: bool = False
    with_content: bool = False
    """A log of the coordinators, whose records are taken along."""

    @property
    def path(self) -> Path:
        """The path of the directory."""
        return self.root / self.relative

    @property
    def may_vanish(self) -> bool:
        """Whether a broker is about to remove the directory."""
        if not self.inner.endswith("-delete"):
            return False
        name = parse_partition_directory(self.inner.rpartition("/")[2])
        return name is not None and name.state is DirectoryState.DELETED

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The entries that are taken along."""
        return self.held if self.held is not None else tuple(self.each())

    def each(self) -> Iterator[Entry]:
        """Yield the entries that are taken along, made one by one: a log directory may have a million of them."""
        if self.held is not None:
            yield from self.held
            return
        for one in self.listings.each(self.relative) if self.listings is not None else ():
            if not one.is_directory or (self.with_directories and one.name != LOST_AND_FOUND):
                yield one
        yield from (self.children or {}).values()

    def segments(self, entries: Iterable[Entry] | None = None) -> Iterator[tuple[Entry, FileName, int]]:
        """Yield the segments that are scanned and stay where they are.

        Args:
            entries: of the directory, where they are at hand.
        """
        if self.is_metadata:
            return
        for entry in self.each() if entries is None else entries:
            if ".log" not in entry.name:
                continue
            name = parse_file_name(entry.name)
            if name.kind is FileKind.SEGMENT and isinstance(name.base_offset, int) and stat.S_ISREG(entry.mode):
                yield entry, name, name.base_offset

    def takes(self, entry: Entry) -> bool:
        """Whether a file is taken along byte for byte, by its name; of files without a known name the content decides.

        Args:
            entry: of the directory, as it was listed; one larger than `LARGEST_COPY` is not taken.
        """
        name = parse_file_name(entry.name)
        if not stat.S_ISREG(entry.mode) or entry.length > LARGEST_COPY:
            return False
        if name.kind in {FileKind.SEGMENT, FileKind.OFFSET_INDEX, FileKind.TIME_INDEX}:
            return self.is_metadata
        if name.kind in _BYTE_FOR_BYTE:
            return name.remote_segment_id is Absent.NOT_APPLICABLE
        return name.kind is FileKind.UNKNOWN and self.holds_logs and begins_like_a_log(self.path / entry.name)


@dataclass(slots=True, kw_only=True)
class RootPlan:
    """One of the paths that were named."""

    given: Path
    name: str
    """In the capture."""
    real: Path
    folders: list[FolderPlan] = field(default_factory=list)
    """All but the partition directories of log directories."""
    log_dirs: list["LogDirPlan"] = field(default_factory=list)
    file: Path | None = None
    """The path itself, where it is a file."""


@dataclass(slots=True, kw_only=True)
class LogDirPlan:
    """A log directory, of whose partition directories nothing is kept but their names: there may be a million of them."""

    found: FoundInput
    path: str
    """Relative to the input."""
    inner: str
    """In the capture."""
    state: LogDirState | None = None
    """None where the input holds no logs, so that nothing of its partitions is to be decided."""
    urgent: list[str] = field(default_factory=list)
    """The partition directories that a broker is about to remove, or in which it is about to remove segments."""

    def names(self) -> Iterator[tuple[str, PartitionDirectoryName]]:
        """Yield the partition directories."""
        for entry in self.found.listings.each(self.path):
            name = parse_partition_directory(entry.name) if entry.is_directory else None
            if name is not None:
                yield entry.name, name


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What decides how much of a log is taken along."""

    compacted: frozenset[str]
    """Topics that a cleaner works on."""
    all_batches: bool
    margin: int
    is_by_ends: bool


@dataclass(slots=True, kw_only=True)
class CapturePlan:
    """All that a capture reads."""

    roots: list[RootPlan]
    inputs: tuple[Input, ...]
    problems: list[Problem]
    histories: list[MetadataHistory]
    """What the metadata logs of the node say."""
    is_running: bool | None
    """Whether a process holds the lock of a log directory; none where that is not known."""
    scope: Scope
    replicas: int
    """The number of partition directories."""

    def folders(self) -> Iterator[FolderPlan]:
        """Yield every directory, those first of which a broker may take content away at any time."""
        log_dirs = [one for root in self.roots for one in root.log_dirs]
        for one in log_dirs:
            yield from self._partitions(one, (name for name, parsed in one.names() if _vanishes(parsed)))
        alone = [folder for root in self.roots for folder in root.folders]
        yield from sorted(alone, key=lambda folder: not folder.may_vanish)
        for one in log_dirs:
            yield from self._partitions(one, (name for name, parsed in one.names() if not _vanishes(parsed)))

    def without_partitions(self) -> Iterator[FolderPlan]:
        """Yield the directories that are no partition's."""
        return (folder for root in self.roots for folder in root.folders if folder.place is None)

    def urgent(self) -> Iterator[FolderPlan]:
        """Yield the directories that hold what a broker is about to remove."""
        for root in self.roots:
            for one in root.log_dirs:
                yield from self._partitions(one, one.urgent)
            yield from (folder for folder in root.folders if folder.place is not None)

    def places(self) -> Iterator[PartitionPlace]:
        """Yield the partition directories, by what their names say."""
        for root in self.roots:
            yield from (folder.place for folder in root.folders if folder.place is not None)
            for one in root.log_dirs:
                yield from (_place(one.state, one, *named) for named in one.names() if one.state is not None)

    def _partitions(self, log_dir: LogDirPlan, names: Iterable[str]) -> Iterator[FolderPlan]:
        """Yield partition directories with what is below them; each is listed now."""
        listings = log_dir.found.listings
        for name in names:
            path = join(log_dir.path, name)
            planned: dict[str, FolderPlan] = {}
            _add(planned, f"{log_dir.inner}/{name}", log_dir.found, path, DEEPEST - 1)
            for folder in planned.values():
                folder.held = folder.entries
            parsed = parse_partition_directory(name)
            if log_dir.state is not None and parsed is not None:
                folder = planned[f"{log_dir.inner}/{name}"]
                folder.place = _place(log_dir.state, log_dir, name, parsed)
                self.decide(folder)
            yield from planned.values()
            listings.forget(path)

    def decide(self, folder: FolderPlan) -> None:
        """Decide what is taken along of the log of a partition directory."""
        place, scope = folder.place, self.scope
        if place is None or folder.is_metadata:
            return
        _decide(folder, scope.compacted, all_batches=scope.all_batches, margin=scope.margin)
        if scope.is_by_ends and place.directory_state != DirectoryState.DELETED.value:
            _decide_by_ends(folder, place)
        elif not self.is_running and not place.state.clean_shutdown:
            folder.carried_from = min(folder.carried_from, _scanned_from(folder, place))


def _vanishes(name: PartitionDirectoryName) -> bool:
    return name.state is DirectoryState.DELETED


def _place(state: LogDirState, log_dir: LogDirPlan, name: str, parsed: PartitionDirectoryName) -> PartitionPlace:
    return PartitionPlace(
        state=state,
        path=join(log_dir.path, name),
        topic_partition=parsed.topic_partition,
        directory_state=parsed.state.value,
    )


def plan_capture(
    paths: Sequence[Path],
    *,
    all_batches: bool = False,
    margin: int = MARGIN_OFFSETS,
    keep_going: bool = False,
    is_by_ends: bool = False,
) -> CapturePlan:
    """List what is below the paths; reads names, and of partition directories the small files.

    Args:
        paths: data directories, parents of some, and directories of log files, all of one node.
        all_batches: take a row a batch along everywhere.
        margin: offsets below the lowest point from which a truncation can still happen.
        keep_going: a path that can't be used is a problem in the report, and the others are read.
        is_by_ends: the ends of logs alone are read; rows of batches are taken along from the high watermark or the recovery point on.

    Raises:
        EvidenceError: a path can't be used, or with `keep_going` none can.
        UsageError: they are of more than one node.
    """
    roots: list[RootPlan] = []
    inputs: list[FoundInput] = []
    problems: list[Problem] = []
    errors: list[EvidenceError] = []
    for given in paths:
        try:
            found = _find(given)
        except EvidenceError as error:
            errors.append(error)
            problems.append(Problem(input=len(inputs), path=WHOLE_INPUT, message=problem_words(error)))
            inputs.append(unusable_input(given))
            continue
        problems += [
            Problem(input=one.input + len(inputs), path=one.path, message=one.message) for one in found.problems
        ]
        real = Path(os.path.realpath(given))
        root = RootPlan(given=given, name=_new_name(real.name or "root", roots), real=real)
        _plan_root(root, found.found)
        roots.append(root)
        inputs += found.found
    refuse(errors, named=len(paths), keep_going=keep_going and len(errors) < len(paths))
    _require_one_node(inputs)
    histories = _metadata_histories(Inputs(found=tuple(inputs)))
    replicas = _survey(inputs, roots, problems)
    plan = CapturePlan(
        roots=roots,
        inputs=tuple(one.described for one in inputs),
        problems=problems,
        histories=histories,
        is_running=is_locked(_locks(roots)),
        scope=Scope(
            compacted=ALWAYS_BY_RECORD | _compacted_topics(histories),
            all_batches=all_batches,
            margin=margin,
            is_by_ends=is_by_ends,
        ),
        replicas=replicas,
    )
    for root in roots:
        for folder in root.folders:
            plan.decide(folder)
    return plan


def _survey(inputs: Sequence[FoundInput], roots: Sequence[RootPlan], problems: list[Problem]) -> int:
    """Look at all names once, of which only what is urgent is kept; gives the number of partition directories."""
    log_dirs = {(id(one.found), one.path): one for root in roots for one in root.log_dirs}
    alone = {(folder.root, folder.relative): folder for root in roots for folder in root.folders}
    every: list[LogDirState] = []
    held: list[tuple[int, TopicPartition]] = []
    replicas = 0
    for index, found in enumerate(inputs):
        states = log_dir_states(index, found, problems)
        own: list[PartitionPlace] = []
        partitions: set[TopicPartition] = set()
        has_segments = False
        for place, holds_segments, is_urgent in places_in(index, found, states, problems):
            has_segments |= holds_segments
            partitions.add(place.topic_partition)
            replicas += 1
            log_dir = log_dirs.get((id(found), place.state.log_dir))
            if log_dir is None:
                own.append(place)
            else:
                if is_urgent:
                    log_dir.urgent.append(place.path.rpartition("/")[2])
                found.listings.forget(place.path)
        if no_logs_are_here(states.values(), has_segments=has_segments):
            problems.append(Problem(input=index, path=WHOLE_INPUT, message=LOGS_LEFT_OUT))
            replicas -= len(partitions)
            continue
        every += states.values()
        held += ((index, one) for one in partitions)
        for place in own:
            if (folder := alone.get((place.state.root, place.path))) is not None:
                folder.place = place
        for log_dir in log_dirs.values():
            if log_dir.found is found:
                log_dir.state = states[log_dir.path]
    problems += lost_directories(every, held)[1]
    return replicas


def _find(given: Path) -> Inputs:
    try:
        return find_inputs([given], with_server_logs=True, why_not=why_not_listed)
    except NotADataDir:
        if not given.is_dir() or not any(begins_like_a_log(one) for one in given.iterdir() if one.is_file()):
            raise
        # Its files may be logs by their content; `explain` takes such a directory, too.
        described = Input(path=str(given), kind="log-files")
        return Inputs(found=(FoundInput(described=described, listings=Listings(given.resolve()), shape=Shape.FILES),))


def _new_name(name: str, roots: Sequence[RootPlan]) -> str:
    taken, number, found = {root.name for root in roots}, 2, name
    while found in taken:
        found, number = f"{name}-{number}", number + 1
    return found


def _require_one_node(inputs: Sequence[FoundInput]) -> None:
    nodes = {
        (one.described.cluster_id, one.described.broker_id): one.described.path
        for one in inputs
        if isinstance(one.described.broker_id, int)
    }
    if len(nodes) > 1:
        named = ", ".join(f"node {node} in {path}" for (_, node), path in sorted(nodes.items(), key=str))
        raise UsageError(f"a capture is of one node, and there are {len(nodes)}: {named}; capture each by itself")


def _plan_root(root: RootPlan, found: Sequence[FoundInput]) -> None:
    planned: dict[str, FolderPlan] = {}
    for one in found:
        prefix = str(one.root.relative_to(root.real)) if one.root != root.real else ""
        match one.shape:
            case Shape.FILE:
                root.file = one.root
            case Shape.PARTITION:
                _add(planned, _inner(root, prefix), one, "", DEEPEST)
            case Shape.FILES:
                levels = DEEPEST if one.root == root.real else 0
                _add(planned, _inner(root, prefix), one, "", levels, holds_logs=True)
            case Shape.LOG_DIR | Shape.PARENT:
                for path in one.log_dir_paths:
                    log_dir = LogDirPlan(found=one, path=path, inner=_inner(root, prefix, path))
                    if log_dir.inner not in {other.inner for other in root.log_dirs}:
                        root.log_dirs.append(log_dir)
                    _add(planned, log_dir.inner, one, path, DEEPEST, but=frozenset(name for name, _ in log_dir.names()))
    _add_parents(planned, root)
    root.folders = [planned[inner] for inner in sorted(planned)]


def _inner(root: RootPlan, *below: str) -> str:
    return "/".join(part for part in (root.name, *below) if part)


def _add(
    planned: dict[str, FolderPlan],
    inner: str,
    found: FoundInput,
    relative: str,
    levels: int,
    *,
    holds_logs: bool = False,
    but: frozenset[str] = frozenset(),
) -> None:
    """Plan a directory and those below it, but for some of them."""
    below = [entry for entry in found.listings.each(relative) if entry.is_directory and entry.name not in but]
    name = parse_partition_directory((found.root / relative).name)
    if inner not in planned:
        planned[inner] = FolderPlan(
            root=found.root,
            relative=relative,
            inner=inner,
            listings=found.listings,
            with_directories=bool(levels),
            is_metadata=name is not None and name.is_metadata,
            holds_logs=holds_logs,
        )
    if levels:
        for entry in below:
            if entry.name != LOST_AND_FOUND:
                path = join(relative, entry.name)
                _add(planned, f"{inner}/{entry.name}", found, path, levels - 1, holds_logs=holds_logs)


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


def _metadata_histories(inputs: Inputs) -> list[MetadataHistory]:
    histories = []
    for files in find_metadata_logs(inputs):
        with contextlib.suppress(EvidenceError):  # named where the file is taken along
            histories.append(read_metadata_log(files).without_partitions())
    return histories


def _compacted_topics(histories: Sequence[MetadataHistory]) -> frozenset[str]:
    """Topics that may be compacted by their settings, as far as the metadata log shows it; the cleaner's checkpoint shows the others."""
    policies: dict[str, str | None] = {}
    for history in histories:
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
    if place.directory_state != DirectoryState.LIVE.value:
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


def _locks(roots: Sequence[RootPlan]) -> Iterator[Path]:
    for root in roots:
        for folder in root.folders:
            if folder.place is None:
                for entry in folder.each():
                    if parse_file_name(entry.name).kind is FileKind.LOCK:
                        yield folder.path / entry.name


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

    Args:
        place: the partition directory, with what the checkpoints say of it.
        margin: in offsets.
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


def batches_of(path: Path, length: int) -> BatchTable | None:
    """Return some batches at the beginning of a segment, to estimate by; none where there are none.

    Args:
        path: of the segment; one that can't be read has none.
        length: in bytes.
    """
    try:
        with open_evidence(path) as file:
            for window in walk_segment(file, level=Level.CRC, end=min(length, 1 << 20)):
                if len(window.batches):
                    return window.batches
    except EvidenceError:
        return None
    return None
