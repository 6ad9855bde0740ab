"""Predicts the starts of one node, one after the other, until one ends well or nothing changes."""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any, TypeVar

from kforensics.commands.loading import DirectoryOnDisk, bytes_scanned
from kforensics.commands.lost_records import lost_pieces
from kforensics.commands.predicting.metadata_log import MetadataStart, start_metadata_log
from kforensics.commands.predicting.nodes import Node
from kforensics.commands.predicting.retention import find_due_segments
from kforensics.commands.predicting.settings import Settings
from kforensics.commands.predicting.surroundings import Surroundings
from kforensics.damage import Absent
from kforensics.errors import EvidenceError
from kforensics.evidence.discovery.inputs import FoundInput
from kforensics.evidence.model import Problem
from kforensics.evidence.replica.loader_dirs import (
    HIGH_WATERMARKS,
    RECOVERY_POINTS,
    FoundDirectory,
    FoundLogs,
    find_logs,
)
from kforensics.evidence.replica.loader_reader import read_needed
from kforensics.evidence.replica.loader_values import Content, LoadFailure, Need, TopicIdFile
from kforensics.evidence.replica.log_tail import read_log_tail
from kforensics.protocol.loading.names import (
    EPOCH_FILE,
    LOG,
    METADATA_FILE,
    SNAPSHOT,
    SWAP,
    offset_of,
    padded,
    partition_of_directory,
)
from kforensics.protocol.loading.node import (
    FIRST_KRAFT,
    Fate,
    HeldLog,
    Refusal,
    fates,
    refuse_identity,
    refuse_level,
    refuse_registration,
    unclean_for_controller,
)
from kforensics.protocol.loading.starts import LoadedLogDir, LogLoad, Start, StartResult, is_loaded, start_of
from kforensics.protocol.loading.values import LoadedState, LoadingError, LoadOutcome, LoadSettings, Unpredictable
from kforensics.protocol.loading.versions import LoadingRules, loading_rules
from kforensics.protocol.versions import KafkaVersion
from kforensics.reconcile.logs.predicted_load import (
    DueSegments,
    FurtherEnd,
    LogAtStart,
    LostPiece,
    LostRecords,
    PredictedLog,
    PredictedStart,
)
from kforensics.source.walk import Obstacle, join
from kforensics.units import EpochEntry, TopicPartition

MOST_STARTS = 4
"""Starts that are predicted at most; a third already changes nothing that the second did not."""
ELR_FEATURE = "eligible.leader.replicas.version"
NOTHING_LOST = LostRecords()
RETENTION_DELAY_MS = 30_000
"""After which retention runs first (`log.initial.task.delay.ms`)."""
ENDINGS = ("-future", "-stray", "-delete")

T = TypeVar("T")
Reads = dict[Path, dict[Need, object]]
"""What has been read, by directory: starts of other versions and under other conditions need not read it again."""


Outcomes = dict[tuple[object, ...], LoadOutcome | Unpredictable]
"""Loads that were predicted, by all that they depend on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """The conditions under which a node is started."""

    version: KafkaVersion
    now_ms: int
    topics: frozenset[str] = frozenset()
    partitions: frozenset[int] = frozenset()
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings that were given with `--set`."""
    without: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """By input: paths that are taken as not there."""
    with_marker: bool = False
    """Every log directory is taken to hold `.kafka_cleanshutdown`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStarts:
    """The result of the starts of one node."""

    node: Node
    version: KafkaVersion
    starts: tuple[PredictedStart, ...]
    logs: tuple[PredictedLog, ...]
    metadata_log: MetadataStart | None
    problems: tuple[Problem, ...]
    has_unknown_strays: bool
    """It runs without ZooKeeper, and no metadata say which partitions it is to hold."""
    missing_directories: frozenset[str]
    """Ids of directories that it registered last and that are not among its log directories."""
    empty_folders: tuple[str, ...]
    """Empty folders beside its log directories."""
    absent_log_dirs: tuple[str, ...]
    """Directories that its `server.properties` names and that are not among its log directories."""
    new_directories: frozenset[str]
    """Ids of its log directories that it did not register."""
    unclean_reason: str
    """Why the controller takes it out of every ISR and ELR when it registers; empty where it does not."""


@dataclass(slots=True)
class _Directory:
    """A directory of a log directory, as the starts so far have left it."""

    input: int
    one: FoundInput
    log_dir: FoundLogs
    found: FoundDirectory
    partition: TopicPartition | None
    directory_id: str | Absent
    reads: Reads
    """What has been read, of all directories."""
    opened: DirectoryOnDisk | None = None
    """None where it is as it was found, and nothing of it is held."""
    links: tuple[str, ...] = ()
    """Files of it that are symbolic links, as they were when it was opened."""
    obstacles: tuple[Obstacle, ...] = ()
    """What could not be read of it when it was opened."""
    end: int | Absent | None = None
    """Where its log ends; None until it is known."""

    @property
    def name(self) -> str:
        """The name of the directory."""
        return self.found.name

    @property
    def disk(self) -> DirectoryOnDisk:
        """Its files as the starts so far have left them."""
        if self.opened is None:
            folder = self.one.root / self.found.path
            content = self.found.content()
            self.links, self.obstacles = content.links, content.obstacles
            self.opened = DirectoryOnDisk(
                folder, content.files, content.folders, read=self.reads.setdefault(folder, {})
            )
        return self.opened

    def release(self) -> None:
        """Let go what was read of a directory that no start has changed yet: it can be had again."""
        disk = self.opened
        if disk is not None and not disk.unreadable and not disk.is_advanced:
            self.opened = None
            self.reads.pop(disk.folder, None)
            self.found.forget()

    @property
    def place(self) -> tuple[int, str]:
        """The log directory that it is in."""
        return self.input, self.log_dir.path


def start_node(
    node: Node,
    conditions: Conditions,
    surroundings: Surroundings,
    reads: Reads,
    node_count: int,
    outcomes: Outcomes | None = None,
    *,
    keeps_reads: bool = True,
) -> NodeStarts:
    """Start a node as often as it takes.

    Args:
        node: its log directories.
        conditions: version, clock, settings, and what is taken as other than it is.
        surroundings: metadata and settings.
        reads: what has been read; more is added.
        node_count: of all nodes among the inputs.
        outcomes: first loads that were predicted, where the node is started again and again; more are added.
        keeps_reads: the node is started under other conditions too: what was read of each directory is kept.
    """
    return _NodeStarter(node, conditions, surroundings, reads, node_count, outcomes, keeps_reads=keeps_reads).start()


class _NodeStarter:
    """Starts one node: loads its directories, decides what becomes of each, and leaves them as that start does for the next one."""

    def __init__(
        self,
        node: Node,
        conditions: Conditions,
        surroundings: Surroundings,
        reads: Reads,
        node_count: int,
        outcomes: Outcomes | None,
        *,
        keeps_reads: bool,
    ) -> None:
        self._outcomes = outcomes
        self._keeps_reads = keeps_reads
        self._shared: dict[object, Any] = {}
        self._node, self._conditions, self._around = node, conditions, surroundings
        self._node_count = node_count
        self._rules = loading_rules(conditions.version)
        self._known = Settings(conditions.settings, surroundings, node.node_id, node_count)
        self._load_settings: dict[str, LoadSettings] = {}
        self._problems: list[Problem] = []
        self._log_dirs: list[tuple[int, FoundLogs]] = []
        self._directories: list[_Directory] = []
        self._metadata: MetadataStart | None = None
        self._metadata_dirs = {
            (number, each.path) for number, one in node.members for each in one.log_dirs if each.is_metadata_dir
        }
        for number, one in node.members:
            without = conditions.without.get(number, frozenset())
            ids = {each.path: each.meta for each in one.log_dirs}
            for log_dir in find_logs(number, one, self._problems, without):
                self._log_dirs.append((number, log_dir))
                meta = ids.get(log_dir.path, Absent.UNKNOWN)
                directory_id = meta if isinstance(meta, Absent) else meta.directory_id
                for found in log_dir.directories:
                    if not is_loaded(found.name, self._rules):
                        self._note(number, found.content().obstacles)
                        continue
                    if not self._is_asked_for(found.name):
                        continue
                    self._directories.append(
                        _Directory(number, one, log_dir, found, _partition(found.name), directory_id, reads)
                    )
            if node.is_kraft and self._metadata is None and conditions.version >= FIRST_KRAFT:
                self._metadata = start_metadata_log(node.first, number, one, self._log_dirs, conditions.version, reads)

    def _is_asked_for(self, name: str) -> bool:
        partition = _partition(name)
        topics, partitions = self._conditions.topics, self._conditions.partitions
        if not topics and not partitions:
            return True
        return partition is not None and (
            (not topics or partition.topic in topics) and (not partitions or partition.partition in partitions)
        )

    def start(self) -> NodeStarts:
        """Return starts one after the other, and what each makes of each directory."""
        starts: list[PredictedStart] = []
        logs: list[PredictedLog] = []
        markers = {
            (number, log_dir.path): log_dir.has_marker or self._conditions.with_marker
            for number, log_dir in self._log_dirs
        }
        refusal = self._refusal()
        for number in range(1, MOST_STARTS + 1):
            log_dirs = [
                LoadedLogDir(
                    _key(place, one.path),
                    markers[place, one.path],
                    _malformed(one, self._rules),
                    self._node.is_kraft and (place, one.path) in self._metadata_dirs,
                )
                for place, one in self._log_dirs
            ]
            becoming = self._fates()
            loads: list[LogLoad] = []
            for directory, fate in zip(self._directories, becoming, strict=True):
                load = self._load(directory, clean=markers[directory.place])
                logs.append(self._predicted_log(number, directory, load, fate, is_reached=refusal is None))
                loads.append(_without_files(load))
                if not self._keeps_reads:
                    directory.release()
            end = start_of(
                log_dirs,
                loads,
                [load for load, fate in zip(loads, becoming, strict=True) if self._is_live(fate)],
                self._rules,
            )
            if Fate.EXITS in becoming and isinstance(end, Start) and end.result is not StartResult.EXITS:
                name = self._directories[becoming.index(Fate.EXITS)].name
                end = Start(StartResult.EXITS, "RuntimeException", f"{name}: no topic id in a directory (KAFKA-16814)")
            if refusal is not None:
                end = Start(StartResult.EXITS, refusal.exception, refusal.reason)
            starts.append(
                self._predicted_start(number, end, loads, clean=all(markers.values()), is_reached=refusal is None)
            )
            is_over = isinstance(end, Unpredictable) or end.result is not StartResult.EXITS
            if is_over or not self._node.is_kraft or refusal is not None:
                break
            had_marker = any(markers.values())
            changed = self._advance(markers)
            markers = dict.fromkeys(markers, False)
            if not had_marker and not changed:
                break
        self._note_unreadable()
        missing, new = self._lost_directories()
        return NodeStarts(
            unclean_reason=self._unclean_reason(),
            missing_directories=missing,
            new_directories=new,
            absent_log_dirs=self._absent_log_dirs(),
            empty_folders=() if self._knows_registration() else self._node.empty_folders(),
            node=self._node,
            version=self._conditions.version,
            starts=tuple(starts),
            logs=tuple(logs),
            metadata_log=self._metadata,
            problems=tuple(self._problems),
            has_unknown_strays=self._node.is_kraft
            and bool(self._directories)
            and (self._around.assigned is None or self._is_preview),
        )

    def _is_live(self, fate: Fate) -> bool:
        """Whether a directory counts when duplicates are looked for."""
        return fate is not Fate.STRAY or not self._rules.renames_strays_before_load

    def _refusal(self) -> Refusal | None:
        """Why no log is loaded at all."""
        version, node = self._conditions.version, self._node
        directories = node.directories()
        refusal = refuse_identity(
            directories,
            version,
            is_kraft=node.is_kraft,
            node_id=self._around.configured_id(self._node_count),
        )
        if refusal is not None or not node.is_kraft:
            return refusal
        empty = node.empty_folders()
        if empty and self._lost_directories()[0]:
            return Refusal(
                "RuntimeException" if version >= (3, 7) else "KafkaException",
                f"No `meta.properties` found in {empty[0]}",
            )
        if self._metadata is not None and self._metadata.refusal is not None:
            return self._metadata.refusal
        is_controller = any(one.described.kind in {"controller", "combined"} for one in node.inputs)
        refusal = refuse_level(self._around.level, version, is_controller=is_controller)
        if refusal is None and self._directories:
            refusal = refuse_registration(directories, self._around.registered, node.node_id, self._around.level)
        return refusal

    @property
    def _is_preview(self) -> bool:
        """Whether it is the preview of 2.8 without ZooKeeper, of which it is not known what it does to strays."""
        return self._conditions.version < (3, 0)

    def _unclean_reason(self) -> str:
        """Why the controller takes the last stop as unclean, where eligible leader replicas are on."""
        state, node_id = self._around.state, self._node.node_id
        if state is None or isinstance(node_id, Absent) or not state.features.get(ELR_FEATURE):
            return ""
        broker = state.brokers.get(node_id)
        epochs = [log_dir.broker_epoch for one in self._node.inputs for log_dir in one.log_dirs]
        return unclean_for_controller(epochs, broker.broker_epoch, self._conditions.version) if broker else ""

    def _knows_registration(self) -> bool:
        """Whether the metadata say which log directories it registered."""
        return bool(not isinstance(self._node.node_id, Absent) and self._around.registered.get(self._node.node_id))

    def _lost_directories(self) -> tuple[frozenset[str], frozenset[str]]:
        """Ids of directories that the node registered last and that are not here, and of those here that it did not register."""
        registered = (
            frozenset()
            if isinstance(self._node.node_id, Absent)
            else frozenset(self._around.registered.get(self._node.node_id, ()))
        )
        here = {one.directory_id for one in self._node.directories() if not isinstance(one.directory_id, Absent)}
        return (registered - here, frozenset(here) - registered) if registered else (frozenset(), frozenset())

    def _absent_log_dirs(self) -> tuple[str, ...]:
        """Directories that its `server.properties` names and that are not here; all that may be meant where copies have other names."""
        named, here = self._known.log_dirs, self._node.folders()
        if len(named) <= len(here):
            return ()
        paths = {str(path) for path in here}
        names = {path.name for path in here}
        without = tuple(one for one in named if os.path.realpath(one) not in paths)
        unlike = tuple(one for one in without if PurePath(one).name not in names)
        return unlike or without

    def _fates(self) -> list[Fate]:
        """Return what becomes of each directory apart from its load."""
        node_id, assigned = self._node.node_id, self._around.assigned
        if not self._node.is_kraft or isinstance(node_id, Absent):
            return [Fate.DELETED if one.name.endswith("-delete") else Fate.KEPT for one in self._directories]
        if assigned is None or self._is_preview:
            return [
                Fate.DELETED if one.name.endswith("-delete") else Fate.UNKNOWN if one.partition else Fate.KEPT
                for one in self._directories
            ]
        held = [
            HeldLog(
                one.name,
                _topic_id(one.disk),
                one.partition.partition if one.partition else -1,
                next((ending for ending in ENDINGS if one.name.endswith(ending)), ""),
                one.directory_id,
            )
            for one in self._directories
        ]
        found = fates(held, assigned, node_id, self._conditions.version)
        return [fate if one.partition else Fate.KEPT for one, fate in zip(self._directories, found, strict=True)]

    def _load(self, directory: _Directory, *, clean: bool) -> LogLoad:
        found, disk = directory.log_dir, directory.disk
        if directory.links:
            reason = f"{directory.links[0]} is a symbolic link, which is not followed"
            return LogLoad(_key(*directory.place), directory.name, Unpredictable(reason))
        point = _offset(found.recovery_points, directory.partition)
        start = _offset(found.log_starts, directory.partition)
        settings = self._settings_of(directory.partition)
        key = None
        if self._outcomes is not None and not disk.written and not disk.origins:
            key = disk.folder, tuple(disk.files.items()), clean, point, start, settings, self._rules
        outcome = None if self._outcomes is None or key is None else self._outcomes.get(key)
        if outcome is None:
            outcome = disk.load(
                clean_shutdown=clean,
                recovery_point=point,
                log_start_offset=start,
                settings=settings,
                rules=self._rules,
            )
            if self._outcomes is not None and key is not None and not disk.unreadable:
                self._outcomes[key] = outcome
        return LogLoad(_key(*directory.place), directory.name, outcome)

    def _settings_of(self, partition: TopicPartition | None) -> LoadSettings:
        """Return what loading depends on; Kafka's defaults where nothing is known."""
        topic = "" if partition is None else partition.topic
        if topic not in self._load_settings:
            defaults = LoadSettings()
            name = (
                "producer.id.expiration.ms" if self._conditions.version >= (3, 4) else "transactional.id.expiration.ms"
            )
            self._load_settings[topic] = LoadSettings(
                now_ms=self._conditions.now_ms,
                index_length=self._known.number(topic, "segment.index.bytes", defaults.index_length),
                index_interval=self._known.number(topic, "index.interval.bytes", defaults.index_interval),
                producer_expiration_ms=self._known.of_broker(name, self._rules.default_producer_expiration_ms),
            )
        return self._load_settings[topic]

    def _due(self, directory: _Directory, outcome: LoadOutcome, fate: Fate) -> DueSegments | Absent:
        """Return what retention takes of a log that is served."""
        if fate is not Fate.KEPT or directory.partition is None or directory.name.endswith(ENDINGS):
            return Absent.NOT_APPLICABLE
        return find_due_segments(
            directory.disk,
            outcome,
            self._known.retention(directory.partition.topic),
            now_ms=self._conditions.now_ms + RETENTION_DELAY_MS,
            version=self._conditions.version,
        )

    def _advance(self, markers: Mapping[tuple[int, str], bool]) -> bool:
        """Load each directory once more, and leave it as the load does; whether anything but the same changed."""
        changed = False
        for directory in self._directories:
            load = self._load(directory, clean=markers[directory.place])
            if isinstance(load.outcome, LoadOutcome):
                changed |= dict(load.outcome.tree) != dict(directory.disk.files)
                directory.opened = directory.disk.after(load.outcome)
                if not isinstance(load.outcome.state, Absent):
                    directory.end = load.outcome.state.log_end_offset
        return changed

    def _predicted_start(
        self, number: int, end: Start | Unpredictable, loads: Sequence[LogLoad], *, clean: bool, is_reached: bool
    ) -> PredictedStart:
        outcomes = [load.outcome for load in loads if isinstance(load.outcome, LoadOutcome) and is_reached]
        return PredictedStart(
            number=number,
            input=self._node.first,
            kafka=str(self._conditions.version),
            result=end.result if isinstance(end, Start) else Absent.UNKNOWN,
            exception=end.exception if isinstance(end, Start) else Absent.UNKNOWN,
            reason=end.reason,
            clean=clean,
            loads_logs=is_reached,
            bytes_scanned=sum(bytes_scanned(one) for one in outcomes),
            logs_scanned=sum(bool(one.scanned) for one in outcomes),
        )

    def _predicted_log(
        self, number: int, directory: _Directory, load: LogLoad, fate: Fate, *, is_reached: bool
    ) -> PredictedLog:
        partition, before = directory.partition, self._before(directory, load)
        predicted = PredictedLog(
            start=number,
            node=self._node.first,
            input=directory.input,
            path=directory.found.path,
            topic=partition.topic if partition else Absent.NOT_APPLICABLE,
            partition=partition.partition if partition else Absent.NOT_APPLICABLE,
            outcome="unknown",
            exception=Absent.UNKNOWN,
            message="",
            fate=fate,
            is_reached=is_reached,
            is_unreadable=bool(directory.disk.unreadable),
            before=before,
            after=Absent.UNKNOWN,
            files=(),
            scanned=(),
            lost=NOTHING_LOST,
        )
        outcome = load.outcome
        if isinstance(outcome, Unpredictable):
            return replace(predicted, message=outcome.reason)
        failure, state = outcome.failure, outcome.state
        after: LogAtStart | Absent = Absent.NOT_APPLICABLE
        if not isinstance(state, Absent):
            after = self._share(
                "log",
                LogAtStart(
                    log_start_offset=state.log_start_offset,
                    log_end_offset=state.log_end_offset,
                    recovery_point=state.recovery_point,
                    last_stable_offset=state.last_stable_offset,
                    epochs=self._share("epochs", state.epochs),
                    segments=self._share("segments", _segments(outcome.tree)),
                ),
            )
        pieces = lost_pieces(
            outcome, directory.disk, log_start_offset=before.log_start_offset, log_end_offset=before.log_end_offset
        )
        if fate is Fate.DELETED and not load.name.endswith("-delete"):
            files = directory.disk.files
            pieces = tuple(LostPiece(name, 0, files[name]) for name in sorted(files) if name.endswith(LOG))
        return replace(
            predicted,
            outcome="loads" if isinstance(failure, Absent) else "fails",
            exception=failure if isinstance(failure, Absent) else failure.exception,
            message="" if isinstance(failure, Absent) else failure.message,
            takes_directory_offline=not isinstance(failure, Absent) and failure.is_io,
            after=after,
            due=self._due(directory, outcome, fate),
            further_end=_further_end(directory, before),
            files=self._share("changes", outcome.changes),
            scanned=tuple((one.base_offset, one.length, one.kept_length) for one in outcome.scanned),
            lost=LostRecords(pieces=pieces) if pieces else NOTHING_LOST,
        )

    def _before(self, directory: _Directory, load: LogLoad) -> LogAtStart:
        found = directory.log_dir
        if directory.end is None:
            directory.end = _unchanged_end(directory, load.outcome)
        if directory.end is None:
            directory.end = _end_before(directory)
        start = _checkpointed(found.log_starts, directory.partition)
        segments = self._share("segments", _segments(directory.disk.files))
        before = LogAtStart(
            log_start_offset=max(start, segments[0][0]) if segments and not isinstance(start, Absent) else start,
            log_end_offset=directory.end,
            recovery_point=_checkpointed(found.recovery_points, directory.partition),
            last_stable_offset=Absent.UNKNOWN,
            epochs=self._share("epochs", _epochs(directory.disk)),
            segments=segments,
        )
        return self._share("log", before)

    def _share(self, kind: str, value: T) -> T:
        """Return the equal value of its kind that other directories have: most of them have the same files."""
        shared: T = self._shared.setdefault((kind, value), value)
        return shared

    def _note(self, number: int, obstacles: Iterable[Obstacle]) -> None:
        self._problems += [Problem(input=number, path=met.path, message=met.message) for met in obstacles]

    def _note_unreadable(self) -> None:
        for directory in self._directories:
            self._note(directory.input, directory.obstacles)
            if directory.opened is None:
                continue
            folder = join(directory.log_dir.path, directory.name)
            for name, words in directory.opened.unreadable.items():
                self._problems.append(Problem(input=directory.input, path=join(folder, name), message=words))


_PLAIN = LoadOutcome(
    state=LoadedState(log_start_offset=0, log_end_offset=0, recovery_point=0, last_stable_offset=0, epochs=()),
    failure=Absent.NOT_APPLICABLE,
    tree={},
    changes=(),
    scanned=(),
    deleted_segments=(),
    written={},
    origins={},
)
"""A log that loads unscanned and has no open transaction: of those a start needs to know no more."""


def _without_files(load: LogLoad) -> LogLoad:
    """Return what the start of the node depends on: the load without its files, which are in the report by then."""
    if isinstance(load.outcome, Unpredictable):
        return load
    state = load.outcome.state
    is_plain = not isinstance(state, Absent) and state.last_stable_offset == state.log_end_offset
    if is_plain and not load.outcome.scanned:
        return load._replace(outcome=_PLAIN)
    return load._replace(outcome=replace(load.outcome, tree={}, changes=(), written={}, origins={}))


def _key(number: int, path: str) -> str:
    return sys.intern(f"{number}:{path}")


def _topic_id(disk: DirectoryOnDisk) -> str | Absent:
    """Return the topic id in `partition.metadata`."""
    if METADATA_FILE not in disk.files:
        return Absent.NOT_WRITTEN
    need = Need(METADATA_FILE, Content.PARTITION_METADATA)
    if need not in disk.read:
        try:
            disk.read[need] = read_needed(disk.folder, need)
        except EvidenceError as error:
            disk.unreadable[METADATA_FILE] = error.problem
            return Absent.UNREADABLE
    found = disk.read[need]
    return found.topic_id if isinstance(found, TopicIdFile) else Absent.UNREADABLE


def _end_before(directory: _Directory) -> int | Absent:
    """Where the log ends by its last sound batch."""
    folder = join(directory.log_dir.path, directory.name)
    logs = [(base, join(folder, name)) for base, name in _named_offsets(directory.disk.files, LOG)]
    indexes = {base: join(folder, name) for base, name in _named_offsets(directory.disk.files, ".index")}
    try:
        tail = read_log_tail(directory.one, logs, indexes)
    except EvidenceError:
        return Absent.UNREADABLE
    return tail if isinstance(tail, Absent) else tail.log_end_offset


def _further_end(directory: _Directory, before: LogAtStart) -> FurtherEnd | Absent:
    """Return the furthest end that checkpoints, epochs and snapshots name above the end of the log."""
    end, found = before.log_end_offset if before.segments else 0, directory.log_dir
    if isinstance(end, Absent) or directory.partition is None or directory.name.endswith(ENDINGS):
        return Absent.NOT_APPLICABLE
    named = [
        FurtherEnd(file, offset)
        for file, offset in (
            (RECOVERY_POINTS, before.recovery_point),
            (HIGH_WATERMARKS, _checkpointed(found.high_watermarks, directory.partition)),
        )
        if not isinstance(offset, Absent)
    ]
    if not isinstance(before.epochs, Absent):
        named += [FurtherEnd(EPOCH_FILE, entry.start_offset) for entry in before.epochs]
    named += [FurtherEnd(name, offset) for offset, name in _named_offsets(directory.disk.files, SNAPSHOT)]
    furthest = max(named, key=lambda one: one.offset, default=None)
    return furthest if furthest is not None and furthest.offset > end else Absent.NOT_APPLICABLE


def _unchanged_end(directory: _Directory, outcome: LoadOutcome | Unpredictable) -> int | None:
    """Where a log ends that loads unscanned and keeps all of its segments: the load has read it; none where it has to be looked for."""
    if isinstance(outcome, Unpredictable) or isinstance(outcome.state, Absent) or outcome.scanned:
        return None
    logs = _named_offsets(directory.disk.files, LOG)
    is_plain = all(name == f"{padded(base)}{LOG}" for base, name in logs)
    if not logs or not is_plain or not directory.disk.files[logs[-1][1]]:
        return None
    if any(change.name.endswith((LOG, SWAP)) for change in outcome.changes):
        return None
    return outcome.state.log_end_offset


def _partition(name: str) -> TopicPartition | None:
    parsed = partition_of_directory(name)
    return None if parsed is None else TopicPartition(*parsed)


def _malformed(log_dir: FoundLogs, rules: LoadingRules) -> LoadFailure | Absent:
    """Return a checkpoint of the wrong shape, which takes the directory offline (1.0); since 3.1 a number that is none only resets the offsets."""
    for read in (log_dir.recovery_points, log_dir.log_starts) if not rules.io_errors_end_start else ():
        if isinstance(read, LoadFailure) and (read.is_io or rules.bad_numbers_are_io):
            return read
    return Absent.NOT_APPLICABLE


def _checkpointed(read: Mapping[TopicPartition, int] | LoadFailure, partition: TopicPartition | None) -> int | Absent:
    if isinstance(read, LoadFailure):
        return Absent.UNREADABLE
    return Absent.NOT_WRITTEN if partition is None else read.get(partition, Absent.NOT_WRITTEN)


def _offset(read: Mapping[TopicPartition, int] | LoadFailure, partition: TopicPartition | None) -> int:
    value = _checkpointed(read, partition)
    return 0 if isinstance(value, Absent) else value


def _named_offsets(files: Iterable[str], ending: str) -> list[tuple[int, str]]:
    out = []
    for name in sorted(files):
        if name.endswith(ending):
            try:
                out.append((offset_of(name), name))
            except LoadingError:
                continue
    return out


def _segments(files: Mapping[str, int]) -> tuple[tuple[int, int], ...]:
    return tuple((base, files[name]) for base, name in _named_offsets(files, LOG))


def _epochs(disk: DirectoryOnDisk) -> tuple[EpochEntry, ...] | Absent:
    """Return what the epoch file says before the load, which has read it."""
    need = Need(EPOCH_FILE, Content.EPOCHS)
    found = disk.written.get(need, disk.read.get(need, Absent.NOT_WRITTEN))
    if isinstance(found, LoadFailure):
        return Absent.UNREADABLE
    return found if isinstance(found, Absent) else tuple(found)  # type: ignore[arg-type]
