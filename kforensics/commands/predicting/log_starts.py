"""What a start of a node does to one of its directories: the load, and the report on the log before and after it.

Several processes may look at directories before the fates of all are known: what each loads to, and which segments are scanned in parts.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar, cast

from kforensics.case.processes import in_chunks, spread
from kforensics.case.settings import Policy, Settings
from kforensics.commands.loading import DirectoryOnDisk
from kforensics.commands.lost_records import lost_pieces
from kforensics.commands.predicting.directories import (
    StartedDirectory,
    checkpointed,
    end_before,
    epochs_of,
    find_due_segments,
    find_pinned_retention,
    further_end,
    named_offsets,
    offset_or_zero,
    segments_of,
    topic_id_of,
    unchanged_end,
)
from kforensics.commands.predicting.nodes import Node
from kforensics.damage import Absent
from kforensics.errors import newer_than_known
from kforensics.evidence.parallel import WORTH_A_PROCESS
from kforensics.evidence.replica.loader_scan import WORTH_COLUMNS, ScansAhead
from kforensics.evidence.segment_parts import SMALLEST_PART
from kforensics.formats.log.batch_table import NEWEST_MAGIC
from kforensics.formats.log.loader_values import Batches, Content, LoadedBatch, LoadFailure, Need
from kforensics.protocol.loading.alike import OtherRules
from kforensics.protocol.loading.disk import (
    ENDINGS,
    INDEX,
    INDEXES,
    LOG,
    LoadOutcome,
    LoadSettings,
    Unpredictable,
    first_scanned,
)
from kforensics.protocol.loading.node import Fate
from kforensics.protocol.loading.starts import LogLoad
from kforensics.protocol.loading.versions import Asked, AskedVersion, loading_rules
from kforensics.protocol.versions import KafkaVersion
from kforensics.reconcile.logs.predicted_load import (
    DueSegments,
    LogAtStart,
    LostPiece,
    LostRecords,
    PinnedRetention,
    PredictedLog,
)
from kforensics.source.store import ForeignPath
from kforensics.units import TopicPartition
from kforensics.words import listed

NOTHING_LOST = LostRecords()
_ENOUGH_BATCHES = 2
"""Of a magic above those that are known, one behind the other, that are no flipped bits."""
RETENTION_DELAY_MS = 30_000
"""How long after a start retention runs first (`log.initial.task.delay.ms`)."""

T = TypeVar("T")
Outcomes = dict[tuple[object, ...], LoadOutcome | Unpredictable]
"""Loads that were predicted, by all that they depend on."""
Alike = dict[object, Any]
"""Values of logs, each by itself: one is held of those that are equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """The conditions under which a node is started."""

    version: KafkaVersion
    now_ms: int
    is_inferred: bool = False
    """The version is that of the evidence: where that is newer than known, so is the version."""
    newer: str = ""
    """What is newer than known, so that nothing can be said of the start; empty where nothing is."""
    topics: frozenset[str] = frozenset()
    partitions: frozenset[int] = frozenset()
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings that were given with `--set`."""
    without: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """By input: paths that are taken as not there."""
    with_marker: bool = False
    """Every log directory is taken to hold `.kafka_cleanshutdown`."""


class LogStarts:
    """Loads the directories of a node under some conditions, and describes what comes of each.

    Args:
        outcomes: first loads that were predicted, where the node is started again and again; more are added.
        alike: values of logs that were described before, which equal ones share; more are added.
        others: versions under which each log is loaded, too, where they may make something else of it.
    """

    def __init__(
        self,
        node: Node,
        conditions: Conditions,
        known: Settings,
        outcomes: Outcomes | None,
        alike: Alike,
        others: Sequence[KafkaVersion] = (),
    ) -> None:
        self._node, self._conditions, self._known = node, conditions, known
        self.version = conditions.version
        self.asked = AskedVersion(*conditions.version)
        """What was asked of the version for the log that was looked at last."""
        self._outcomes = outcomes
        self._others = [LogStarts(node, replace(conditions, version=version), known, None, alike) for version in others]
        self._differing: dict[object, tuple[list[int], OtherRules | None]] = {}
        self._settled: dict[object, bool] = {}
        self._alike = alike
        self._load_settings: dict[str, LoadSettings] = {}
        self._retention: dict[str, Policy] = {}

    def load(self, directory: StartedDirectory, *, clean: bool) -> LogLoad:
        """Return what loading makes of a directory as it is now."""
        self.asked = AskedVersion(*self._conditions.version)
        found, disk = directory.within.logs, directory.disk
        if directory.links:
            reason = f"{directory.links[0]} is a symbolic link, which is not followed"
            return LogLoad(key_of(*directory.place), directory.name, Unpredictable(reason))
        if directory.why_not_listed:
            return LogLoad(key_of(*directory.place), directory.name, Unpredictable(directory.why_not_listed))
        point = offset_or_zero(found.recovery_points, directory.partition)
        start = offset_or_zero(found.log_starts, directory.partition)
        settings = self._settings_of(directory.partition)
        key = None
        if self._outcomes is not None and not disk.written and not disk.origins:
            rules = loading_rules(self._conditions.version)
            key = disk.folder, tuple(disk.files.items()), clean, point, start, settings, rules
        outcome = None if self._outcomes is None or key is None else self._outcomes.get(key)
        if outcome is None:
            asked = Asked(settings)
            outcome = disk.load(
                clean_shutdown=clean,
                recovery_point=point,
                log_start_offset=start,
                settings=cast("LoadSettings", asked),
                rules=self.asked.rules,
            )
            self._note_settings(asked)
            if self._conditions.is_inferred and (newer := newer_file(disk)):
                outcome = Unpredictable(newer)
            if self._outcomes is not None and key is not None and not disk.unreadable:
                self._outcomes[key] = outcome
        if disk.unreadable and isinstance(outcome, LoadOutcome) and not isinstance(outcome.failure, Absent):
            # It fails as where the broker can't read them either; they are read here without its rights, or on a copy.
            names = listed(sorted(disk.unreadable), most=3)
            return LogLoad(key_of(*directory.place), directory.name, Unpredictable(f"{names} can't be read here"))
        return LogLoad(key_of(*directory.place), directory.name, outcome)

    def _note_settings(self, asked: Asked[LoadSettings]) -> None:
        """Note that a setting was asked for whose default is another one in other versions."""
        if "producer_expiration_ms" in asked.fields:
            _ = self.asked.rules.default_producer_expiration_ms

    def variants(
        self,
        directory: StartedDirectory,
        log: PredictedLog,
        outcome: LoadOutcome | Unpredictable,
        *,
        clean: bool,
        is_reached: bool,
    ) -> Mapping[int, "Ahead"]:
        """Return what other versions make of a log, where that is something else than was described last, by their places."""
        asked = self.asked
        known_differing = self._differing.get(asked.key)
        if known_differing is None:
            differing = [at for at, one in enumerate(self._others) if not asked.agrees(one.version)]
            versions = [self._others[at].version for at in differing]
            others = OtherRules.of(map(loading_rules, versions)) if all(map(asked.compares_alike, versions)) else None
            known_differing = self._differing[asked.key] = differing, others
        differing, others = known_differing
        if not differing or (others is not None and _are_alike(directory, outcome, others, clean=clean)):
            return {}
        found: dict[int, Ahead] = {}
        known: list[tuple[AskedVersion, Ahead | None]] = []
        own, end = directory.opened, directory.end
        for at in differing:
            other = self._others[at]
            same = next((one for one in known if one[0].agrees(other.version)), None)
            if same is None and known and not found and self._is_settled(asked, known[0][0], at):
                continue
            if same is None:
                # What it meets is no problem of the version that is described.
                directory.opened = None if own is None else replace(own, unreadable={})
                load = other.load(directory, clean=clean)
                ahead: Ahead | None = None
                if _served(load.outcome) != _served(outcome) or not asked.compares_alike(other.version):
                    described = other.describe(1, directory, load.outcome, log.fate, is_reached=is_reached)
                    if what_matters(described) != what_matters(log):
                        ahead = Ahead(topic_id_of(directory.disk), described, needed_load(load))
                same = other.asked, ahead
                known.append(same)
            if same[1] is not None:
                found[at] = same[1]
        directory.opened, directory.end = own, end
        return found

    def _is_settled(self, asked: AskedVersion, lowest: AskedVersion, at: int) -> bool:
        """Whether a version between two that make the same of a log has no rule of its own in what was asked of them."""
        key = asked.key, lowest.key, at
        if key not in self._settled:
            self._settled[key] = asked.has_no_own(self._others[at].version, lowest)
        return self._settled[key]

    def _settings_of(self, partition: TopicPartition | None) -> LoadSettings:
        """Return what loading depends on; Kafka's defaults where nothing is known."""
        topic = "" if partition is None else partition.topic
        if topic not in self._load_settings:
            defaults, version = LoadSettings(), self._conditions.version
            name = "producer.id.expiration.ms" if version >= (3, 4) else "transactional.id.expiration.ms"
            self._load_settings[topic] = LoadSettings(
                now_ms=self._conditions.now_ms,
                index_length=self._known.number(topic, "segment.index.bytes", defaults.index_length),
                index_interval=self._known.number(topic, "index.interval.bytes", defaults.index_interval),
                has_remote_storage=self._known.is_tiered(topic),
                producer_expiration_ms=self._known.of_broker(
                    name, loading_rules(version).default_producer_expiration_ms
                ),
            )
        return self._load_settings[topic]

    def _retained(
        self, directory: StartedDirectory, outcome: LoadOutcome, after: LogAtStart | Absent, fate: Fate
    ) -> tuple[DueSegments | Absent, PinnedRetention | None]:
        """Return what retention takes of a log that is served, and what keeps it from taking more."""
        is_served = fate is Fate.KEPT and not directory.name.endswith(ENDINGS)
        if isinstance(after, Absent) or directory.partition is None or not is_served:
            return Absent.NOT_APPLICABLE, None
        policy = self._retention_of(directory.partition.topic)
        now_ms, version = self._conditions.now_ms + RETENTION_DELAY_MS, self.asked
        due = find_due_segments(directory.disk, outcome, after.segments, policy, now_ms=now_ms, version=version)
        return due, find_pinned_retention(
            directory.disk, outcome, after.segments, due, policy, now_ms=now_ms, version=version
        )

    def _retention_of(self, topic: str) -> Policy:
        if topic not in self._retention:
            self._retention[topic] = self._known.local_retention(topic)
        return self._retention[topic]

    def load_after_clean_shutdown(self, directory: StartedDirectory) -> LoadOutcome | None:
        """Return what loading makes of a directory whose log directory was closed cleanly, where little has to be read for it; else none."""
        found = directory.within.logs
        self.asked = AskedVersion(*self._conditions.version)
        asked = Asked(self._settings_of(directory.partition))
        outcome = directory.disk.load_after_clean_shutdown(
            recovery_point=offset_or_zero(found.recovery_points, directory.partition),
            log_start_offset=offset_or_zero(found.log_starts, directory.partition),
            settings=cast("LoadSettings", asked),
            rules=self.asked.rules,
        )
        self._note_settings(asked)
        return None if self._conditions.is_inferred and newer_file(directory.disk) else outcome

    def describe(
        self,
        number: int,
        directory: StartedDirectory,
        outcome: LoadOutcome | Unpredictable,
        fate: Fate,
        *,
        is_reached: bool,
    ) -> PredictedLog:
        """Return the report on a directory that was loaded."""
        partition, before = directory.partition, self._before(directory, outcome)
        predicted = partial(
            PredictedLog,
            start=number,
            node=self._node.first,
            input=directory.within.input,
            path=directory.found.path,
            topic=partition.topic if partition else Absent.NOT_APPLICABLE,
            partition=partition.partition if partition else Absent.NOT_APPLICABLE,
            topic_id=topic_id_of(directory.disk) if fate is Fate.DELETED else Absent.UNKNOWN,
            fate=fate,
            is_reached=is_reached,
            before=before,
        )
        if before.log_end_offset is Absent.UNREADABLE and isinstance(outcome, LoadOutcome):
            # A clean start need not look at the file that a broker reads; what it makes of the log depends on it all the same.
            outcome = Unpredictable(f"{named_offsets(directory.disk.files, LOG)[-1][1]} can't be read here")
        if isinstance(outcome, Unpredictable):
            return predicted(
                outcome="unknown",
                exception=Absent.UNKNOWN,
                message=outcome.reason,
                after=Absent.UNKNOWN,
                files=(),
                scanned=(),
                lost=NOTHING_LOST,
            )
        failure, after = outcome.failure, self._after(outcome, before)
        due, pinned = self._retained(directory, outcome, after, fate)
        return predicted(
            outcome="loads" if isinstance(failure, Absent) else "fails",
            exception=failure if isinstance(failure, Absent) else failure.exception,
            message="" if isinstance(failure, Absent) else failure.message,
            takes_directory_offline=not isinstance(failure, Absent) and failure.is_io,
            after=after,
            due=self._share(due),
            pinned=pinned,
            further_end=further_end(directory, before),
            above_watermark=_above_watermark(directory, after),
            has_only_indexes=not before.segments and any(one.endswith(INDEXES) for one in directory.disk.files),
            files=self._share(outcome.changes),
            scanned=tuple((one.base_offset, one.length, one.kept_length) for one in outcome.scanned),
            lost=_lost_by(directory, outcome, before, fate),
        )

    def _before(self, directory: StartedDirectory, outcome: LoadOutcome | Unpredictable) -> LogAtStart:
        found, files = directory.within.logs, directory.disk.files
        logs = named_offsets(files, LOG)
        if directory.end is None:
            directory.end = unchanged_end(directory, logs, outcome)
        if directory.end is None:
            directory.end = end_before(directory, logs)
        start = checkpointed(found.log_starts, directory.partition)
        before = LogAtStart(
            log_start_offset=max(start, logs[0][0]) if logs and not isinstance(start, Absent) else start,
            log_end_offset=directory.end,
            recovery_point=checkpointed(found.recovery_points, directory.partition),
            last_stable_offset=Absent.UNKNOWN,
            epochs=epochs_of(directory.disk),
            segments=tuple((base, files[name]) for base, name in logs),
        )
        return self._share(before)

    def _after(self, outcome: LoadOutcome, before: LogAtStart) -> LogAtStart | Absent:
        state = outcome.state
        if isinstance(state, Absent):
            return Absent.NOT_APPLICABLE
        changes_logs = any(LOG in one.name for one in outcome.changes)
        after = LogAtStart(
            log_start_offset=state.log_start_offset,
            log_end_offset=state.log_end_offset,
            recovery_point=state.recovery_point,
            last_stable_offset=state.last_stable_offset,
            epochs=before.epochs if state.epochs == before.epochs else state.epochs,
            segments=segments_of(outcome.tree) if changes_logs else before.segments,
        )
        return self._share(after)

    def _share(self, value: T) -> T:
        """Return the equal value that other directories have: replicas have the same files."""
        shared: T = self._alike.setdefault(value, value)
        return shared

    def shared(self, log: PredictedLog) -> PredictedLog:
        """Return a log that another process has described with the values that other logs have: its replicas on other brokers have the same."""
        before, after = self._share(log.before), self._share(log.after)
        files, due = self._share(log.files), self._share(log.due)
        if before is log.before and after is log.after and files is log.files and due is log.due:
            return log
        return replace(log, before=before, after=after, files=files, due=due)


def _above_watermark(directory: StartedDirectory, after: LogAtStart | Absent) -> int:
    end = after if isinstance(after, Absent) else after.log_end_offset
    watermark = checkpointed(directory.within.logs.high_watermarks, directory.partition)
    if isinstance(end, Absent) or isinstance(watermark, Absent) or directory.name.endswith(ENDINGS):
        return 0
    return max(0, end - watermark)


def _lost_by(directory: StartedDirectory, outcome: LoadOutcome, before: LogAtStart, fate: Fate) -> LostRecords:
    """Return the bytes of a log that are not read again; of a directory that is deleted, all."""
    if fate is Fate.DELETED and not directory.name.endswith("-delete"):
        files = directory.disk.files
        return LostRecords(
            pieces=tuple(LostPiece(name, 0, files[name]) for name in sorted(files) if name.endswith(LOG))
        )
    pieces = lost_pieces(
        outcome, directory.disk, log_start_offset=before.log_start_offset, log_end_offset=before.log_end_offset
    )
    return LostRecords(pieces=pieces) if pieces else NOTHING_LOST


def newer_file(disk: DirectoryOnDisk) -> str:
    """Return which file that a load has read is of a version newer than known, in words; empty where none is."""
    found = ((need.file, _newer(one)) for need, one in disk.read.items())
    return next((f"{file}: {words}" for file, words in found if words), "")


def _newer(read: object) -> str:
    if isinstance(read, LoadFailure):
        return read.newer
    if not isinstance(read, Batches):
        return ""
    # One alone behind sound batches is rather a flipped bit; behind what a capture holds is a stand-in for the next one.
    held = [one for one in read.batches[-_ENOUGH_BATCHES - 1 :] if isinstance(one, LoadedBatch)]
    last = held[-_ENOUGH_BATCHES:]
    is_whole = len(last) == _ENOUGH_BATCHES or not (last and last[0].position)
    magic = min((one.magic for one in last), default=0)
    return newer_than_known("batch magic", magic, NEWEST_MAGIC) if is_whole and magic > NEWEST_MAGIC else ""


def expected_scans(directory: StartedDirectory, *, clean: bool) -> list[tuple[str, int]]:
    """Return names and lengths of the segments that a load most likely scans, in the order in which it does; which it does scan is known when it is predicted."""
    files = directory.disk.files
    logs = named_offsets(files, LOG)
    if clean:
        scanned = [name for _, name in logs if f"{name.removesuffix(LOG)}{INDEX}" not in files]
    else:
        point = offset_or_zero(directory.within.logs.recovery_points, directory.partition)
        scanned = [name for _, name in logs[first_scanned([base for base, _ in logs], point) :]]
    return [(name, files[name]) for name in scanned]


def needed_load(load: LogLoad) -> LogLoad | None:
    """Return what the start of the node depends on: the load without its files, which are in the report by then.

    Returns:
        None for a log that loads without being scanned and has no open transaction: of such a log the start needs the name alone.
    """
    if isinstance(load.outcome, Unpredictable):
        return load
    state = load.outcome.state
    is_plain = not isinstance(state, Absent) and state.last_stable_offset == state.log_end_offset
    if is_plain and not load.outcome.scanned:
        return None
    return load._replace(outcome=replace(load.outcome, tree={}, changes=(), written={}, origins={}))


def key_of(number: int, path: str) -> str:
    """Return the key of a log directory among those of a node."""
    return sys.intern(f"{number}:{path}")


CLEAN_LOG, UNCLEAN_LOG = WORTH_A_PROCESS // 500, WORTH_A_PROCESS // 200
"""The bytes that take as long to read as a small log takes to load, after a clean shutdown and without one."""
WEIGHT_OF_A_TASK, LOGS_OF_A_TASK = WORTH_A_PROCESS // 5, 100
"""The most bytes to read, and the most logs, that a process takes at a time."""


class Ahead(NamedTuple):
    """What was found of a log before the fates of directories are known."""

    topic_id: str | Absent
    log: PredictedLog
    """The log as it is predicted to load, with its likely fate."""
    load: LogLoad | None
    """What the start of the node depends on; none where it needs no more than the name."""
    variants: Mapping[int, "Ahead"] = MappingProxyType({})
    """What other versions make of it, where that is something else, by their places."""


def _are_alike(
    directory: StartedDirectory, outcome: LoadOutcome | Unpredictable, others: OtherRules, *, clean: bool
) -> bool:
    """Whether it can be said without their loads that other versions make the same of a log."""
    if isinstance(outcome, Unpredictable) or directory.links:
        return False
    found = directory.within.logs
    return directory.disk.loads_alike(
        outcome,
        others,
        clean_shutdown=clean,
        recovery_point=offset_or_zero(found.recovery_points, directory.partition),
        log_start_offset=offset_or_zero(found.log_starts, directory.partition),
    )


def _served(outcome: LoadOutcome | Unpredictable) -> object:
    state = None if isinstance(outcome, Unpredictable) else outcome.state
    if state is None or isinstance(outcome, Unpredictable) or isinstance(state, Absent):
        return object()  # what ends a load is compared once it is described
    logs = tuple(one for one in outcome.changes if LOG in one.name)
    return (state.log_start_offset, state.log_end_offset, state.last_stable_offset, state.epochs, logs, outcome.scanned)


def what_matters(log: PredictedLog) -> object:
    """Return what versions are compared by: what of a log is served, what it loses, and what ends its load."""
    after = log.after
    kept = after if isinstance(after, Absent) else (after.log_start_offset, after.log_end_offset, after.epochs)
    stable = after if isinstance(after, Absent) else after.last_stable_offset
    due = log.due if isinstance(log.due, Absent) else log.due.base_offsets
    return (log.outcome, log.exception, log.takes_directory_offline, log.fate, kept, stable, log.lost, due)


def look_ahead(
    directories: Sequence[StartedDirectory],
    markers: Mapping[tuple[int, str], bool],
    starts: LogStarts,
    scans: ScansAhead,
    likely_fate: Callable[[StartedDirectory], Fate],
    *,
    is_reached: bool,
) -> dict[int, Ahead]:
    """Load in several processes the logs whose files are not asked for again, and plan the scans of the others.

    Logs that are unusual or large are left to the caller, and so are all where there are few.

    Args:
        markers: whether each log directory holds the marker of a clean shutdown.
    """
    if scans.jobs < 2:
        return {}
    places: list[int] = []
    weights: list[int] = []
    planned: list[tuple[str, int]] = []
    for at, directory in enumerate(directories):
        if isinstance(directory.within.one.root, ForeignPath):
            continue
        is_kept = directory.within.keeps_reads
        if not markers[directory.place]:
            scanned = expected_scans(directory, clean=False)
            if is_kept or _is_large(scanned):
                planned += _worth_planning(directory, scanned)
            else:
                places.append(at)
                weights.append(UNCLEAN_LOG + sum(length for _, length in scanned))
        elif not is_kept:
            places.append(at)
            weights.append(CLEAN_LOG)
    scans.plan(planned)
    jobs = min(scans.jobs, sum(weights) // WORTH_A_PROCESS)
    if jobs < 2:
        return {}
    chunks = list(in_chunks(weights, weight=WEIGHT_OF_A_TASK, most=LOGS_OF_A_TASK))
    tasks = [places[first:end] for first, end in chunks]

    def look(directories: Sequence[StartedDirectory], task: Sequence[int]) -> list[Ahead | None]:
        return [
            _ahead_of(one, starts, likely_fate(one), clean=markers[one.place], is_reached=is_reached)
            for one in (directories[at] for at in task)
        ]

    with scans.left_to_each():
        sums = [sum(weights[first:end]) for first, end in chunks]
        found = spread(look, directories, tasks, jobs=jobs, weights=sums, joins=True)
    return {
        at: one._replace(log=starts.shared(one.log))
        for task, ahead in zip(tasks, found, strict=True)
        for at, one in zip(task, ahead, strict=True)
        if one is not None
    }


def _ahead_of(
    directory: StartedDirectory, starts: LogStarts, fate: Fate, *, clean: bool, is_reached: bool
) -> Ahead | None:
    disk, ahead = directory.disk, None
    if not directory.links and not directory.obstacles:
        outcome: LoadOutcome | Unpredictable | None = starts.load_after_clean_shutdown(directory) if clean else None
        load: LogLoad | None = None
        if outcome is None and not _is_large(expected_scans(directory, clean=clean)):
            load = starts.load(directory, clean=clean)
            outcome = load.outcome
        if outcome is not None:
            log = starts.describe(1, directory, outcome, fate, is_reached=is_reached)
            variants = starts.variants(directory, log, outcome, clean=clean, is_reached=is_reached)
            topic_id = topic_id_of(disk)
            ahead = None if disk.unreadable else Ahead(topic_id, log, load and needed_load(load), variants)
    directory.forget()
    return ahead


def _is_large(scanned: Sequence[tuple[str, int]]) -> bool:
    """Whether a segment is scanned in parts."""
    return any(length >= 2 * SMALLEST_PART for _, length in scanned)


def _worth_planning(directory: StartedDirectory, scanned: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return paths and lengths of the segments that pay and have not been read."""
    disk = directory.disk
    return [
        (f"{disk.folder}/{name}", length)
        for name, length in scanned
        if length >= WORTH_COLUMNS and Need(name, Content.CHECKED_BATCHES) not in disk.read
    ]
