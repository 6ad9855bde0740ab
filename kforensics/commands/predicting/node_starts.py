"""Predicts the starts of one node, one after the other, until one ends well or nothing changes."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePath
from stat import S_ISREG

from kforensics.case.settings import Settings, Surroundings
from kforensics.commands.loading import bytes_scanned
from kforensics.commands.predicting.directories import (
    Reads,
    StartedDirectory,
    StartedLogDir,
    topic_id_of,
)
from kforensics.commands.predicting.log_starts import (
    Ahead,
    Alike,
    Conditions,
    LogStarts,
    Outcomes,
    key_of,
    look_ahead,
    needed_load,
)
from kforensics.commands.predicting.metadata_log import METADATA_DIRECTORY, MetadataStart, start_metadata_log
from kforensics.commands.predicting.nodes import Node
from kforensics.damage import Absent
from kforensics.errors import EvidenceError, nearest_names
from kforensics.evidence.discovery.log_dirs import SMALL_FILE_LIMIT
from kforensics.evidence.discovery.partition_dirs import LOGS_LEFT_OUT
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.evidence.metadata.replay import OF_NO_TOPIC, UNFINISHED
from kforensics.evidence.metadata.state import METADATA_VERSION, Unread
from kforensics.evidence.model import Problem
from kforensics.evidence.replica.loader_reader import FoundLogs, find_logs
from kforensics.evidence.replica.loader_scan import ScansAhead
from kforensics.formats.checkpoint.json_files import QuorumState
from kforensics.formats.checkpoint.properties import configured_voters
from kforensics.formats.log.loader_values import LoadFailure
from kforensics.protocol.loading.disk import ENDINGS, LoadOutcome, Unpredictable, partition_of_directory
from kforensics.protocol.loading.node import (
    FIRST_KRAFT,
    FIRST_WITH_VOTERS_IN_LOG,
    FIRST_WITHOUT_ZOOKEEPER,
    TWICE_NAMED,
    Assignment,
    Fate,
    HeldLog,
    NodeDirectory,
    Refusal,
    contradiction,
    fates,
    is_displaced,
    misassigned,
    refuse_features,
    refuse_formats,
    refuse_identity,
    refuse_kraft_version,
    refuse_level,
    refuse_migration,
    refuse_registration,
    refuse_without_controller,
    unclean_for_controller,
    with_zookeeper_words,
)
from kforensics.protocol.loading.settings import (
    is_migrating,
    never_ready,
    refuse_topic_settings,
    refuse_values,
)
from kforensics.protocol.loading.starts import LoadedLogDir, LogLoad, Start, StartResult, is_loaded, start_of
from kforensics.protocol.loading.versions import AskedVersion
from kforensics.protocol.versions import KafkaVersion
from kforensics.reconcile.logs.predicted_load import (
    IDENTITY_UNREAD,
    FurtherEnd,
    LogAtStart,
    PredictedLog,
    PredictedStart,
)
from kforensics.source.mapped import read_evidence
from kforensics.source.walk import Obstacle, join
from kforensics.units import TopicPartition
from kforensics.words import form, listed

MOST_STARTS = 4
"""Starts that are predicted at most; a third already changes nothing that the second did not."""
HALF_MIGRATED = (
    "it registered last as a broker with ZooKeeper that migrates to KRaft: started so it deletes its copy of the metadata log and loads its logs by ZooKeeper,"
    " started with process.roles it sets aside what the metadata does not name; give its server.properties"
)
_DEFAULT_LOG_DIR = "/tmp/kafka-logs"  # noqa: S108 - as Kafka names it
"""What a node reads whose settings have neither log.dirs nor log.dir."""
_UNSTABLE_LEVELS = "unstable.feature.versions.enable", "unstable.metadata.versions.enable"
_LEVEL_OF_ELR = 23
"""metadata.version 4.0-IV1, the first whose records have a place for eligible leader replicas (KIP-966)."""
ELR_FEATURE = "eligible.leader.replicas.version"
_OF_IMAGE = {
    f"PartitionRecord{OF_NO_TOPIC}": "NullPointerException",
    f"PartitionChangeRecord{OF_NO_TOPIC}": "NullPointerException",
    "BrokerRegistrationChangeRecord": "IllegalStateException",
    "FenceBrokerRecord": "IllegalStateException",
    "RegisterBrokerRecord": "IllegalStateException",
    "RemoveAccessControlEntryRecord": "IllegalStateException",
    "UnfenceBrokerRecord": "IllegalStateException",
}
"""What the loader of the metadata throws on a record that fits nothing (`TopicsDelta`, `ClusterDelta`), which a combined node has before its controller does."""


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
    misnamed: Mapping[tuple[int, str], str]
    """By input and path of a directory: the topic whose id it has, where that is not the topic of its name."""
    displaced: tuple[str, ...]
    """Partitions whose logs are here, and that the metadata place in a log directory of the node that is not."""
    missing_directories: frozenset[str]
    """Ids of directories that it registered last and that are not among its log directories."""
    empty_folders: tuple[str, ...]
    """Empty folders beside its log directories."""
    blank_log_dirs: tuple[str, ...]
    """Log directories of it in which nothing is; on those only a broker with ZooKeeper starts."""
    absent_log_dirs: tuple[str, ...]
    """Directories that its `server.properties` names and that are not among its log directories."""
    new_directories: frozenset[str]
    """Ids of its log directories that it did not register."""
    unclean_reason: str
    """Why the controller takes it out of every ISR and ELR when it registers; empty where it does not."""
    newer: str = ""
    """What is newer than known, so that nothing is said of its start; empty where nothing is."""
    begins_metadata_anew: bool
    """It is the only voter, and its metadata log is not there."""
    asked: AskedVersion
    """What was asked of the version apart from the logs."""
    ahead: Mapping[int, Ahead]
    """What each log comes to in its first start, where other versions are asked about."""
    is_later: bool = False
    """It needs a version later than `version`, the newest that is modelled."""

    @property
    def kafka(self) -> str:
        """The version in words."""
        return kafka_words(self.version, is_later=self.is_later)


ListedLogs = dict[tuple[int, frozenset[str]], tuple[tuple[FoundLogs, ...], list[Problem]]]
"""Log directories, and what could not be read of them, by input and the paths that are taken as not there."""


def kafka_words(version: KafkaVersion, *, is_later: bool) -> str:
    """Return a version in words.

    Args:
        is_later: it is only the newest that is modelled, and a later one is needed.
    """
    return f"{version.major}.{version.minor} or later" if is_later else str(version)


class NodeStarter:
    """Starts one node as often as it takes: loads its directories, decides what becomes of each, and leaves them as that start does for the next one."""

    def __init__(
        self,
        node: Node,
        conditions: Conditions,
        surroundings: Surroundings,
        reads: Reads,
        node_count: int,
        outcomes: Outcomes | None = None,
        *,
        keeps_reads: bool = True,
        jobs: int = 1,
        others: Sequence[KafkaVersion] = (),
        listed: ListedLogs | None = None,
        alike: Alike | None = None,
    ) -> None:
        """List the directories of the node.

        Args:
            outcomes: first loads that were predicted, where the node is started again and again; more are added.
            keeps_reads: the node is started under other conditions too: what was read of each directory is kept.
            others: other versions, under which each log is looked at while it is read.
            listed: log directories that were found for other starts; more are added.
            alike: values that logs of other starts have, which equal ones share; more are added.
        """
        self._asked = AskedVersion(*conditions.version)
        self._scans = ScansAhead(jobs=jobs)
        self._newer = ""
        self._node, self._conditions, self._around = node, conditions, surroundings
        self._node_count = node_count
        self._rules = self._asked.rules
        own = {} if node.configured is None else dict(node.configured.properties)
        self._known = Settings(conditions.settings, surroundings, node.node_id, node_count, own)
        self._logs = LogStarts(node, conditions, self._known, outcomes, {} if alike is None else alike, others)
        self._has_others = bool(others)
        self._problems: list[Problem] = []
        self._misnamed: Mapping[tuple[int, str], str] = {}
        self._displaced: tuple[str, ...] = ()
        self._log_dirs: list[tuple[int, FoundLogs]] = []
        self._directories: list[StartedDirectory] = []
        self._metadata: MetadataStart | None = None
        self._metadata_dirs = {
            (number, each.path) for number, one in node.members for each in one.log_dirs if each.is_metadata_dir
        }
        self._untaken = self._directories_without_identity()
        here = {os.path.realpath(one) for one in node.folders()}
        named = self._known.log_dirs if here & {*map(os.path.realpath, self._known.log_dirs)} else ()
        self._no_directories = {
            path: LoadFailure("IOException", f"{path} is no directory", is_io=True)
            for path in named
            if not self._is_controller_alone and os.path.isfile(path)  # noqa: PTH113 - many nodes, few of them with settings
        }
        looked_at: list[tuple[int, FoundLogs]] = []
        loads_none = self._known.in_file.get("process.roles") == "controller" and not self._is_preview
        listed = {} if listed is None else listed
        for number, one in node.members:
            without = conditions.without.get(number, frozenset())
            ids = {each.path: each.meta for each in one.log_dirs}
            if (number, without) not in listed:
                met: list[Problem] = []
                listed[number, without] = find_logs(number, one, met, without), met
            found_logs, met = listed[number, without]
            self._problems += met
            for log_dir in found_logs:
                if (number, log_dir.path) in node.left_out:
                    continue
                looked_at.append((number, log_dir))
                if self._is_of_metadata_alone(one.root / log_dir.path):
                    continue
                self._log_dirs.append((number, log_dir))
                if (number, log_dir.path) in self._untaken or loads_none:
                    continue
                meta = ids.get(log_dir.path, Absent.UNKNOWN)
                directory_id = meta if isinstance(meta, Absent) else meta.directory_id
                within = StartedLogDir(number, one, log_dir, directory_id, reads, keeps_reads, self._scans)
                for found in log_dir.directories:
                    if not is_loaded(found.name, self._rules):
                        self._note(number, found.content().obstacles)
                        continue
                    if self._is_asked_for(found.name):
                        self._directories.append(StartedDirectory(within, found))
            if node.is_kraft and self._metadata is None and self._asked >= FIRST_KRAFT:
                self._metadata = start_metadata_log(
                    node.first,
                    number,
                    one,
                    looked_at,
                    self._asked,
                    reads,
                    self._scans,
                    is_inferred=conditions.is_inferred,
                    is_controller=self._is_controller,
                    node_id=node.configured_id,
                    configured_voters=configured_voters(self._known.in_file),
                )

    def _directories_without_identity(self) -> Mapping[tuple[int, str], LoadFailure]:
        """Return the log directories whose `meta.properties` Kafka does not take, by input and path: they are offline, and none of their logs is loaded (3.7; before, those whose file can't be opened)."""
        if self._is_controller_alone:
            return {}
        places = [(number, each.path) for number, _, each in self._node.log_dirs()]
        described = zip(places, self._node.directories(), strict=True)
        return {
            place: LoadFailure("RuntimeException", f"Error while reading meta.properties of {one.path}", is_io=True)
            for place, one in described
            if one.has_file and not one.is_taken(self._asked)
            if self._asked >= (3, 7) or (one.properties is Absent.UNREADABLE and self._asked >= (1, 0))
        }

    def _is_of_metadata_alone(self, folder: Path) -> bool:
        """Whether settings name a directory for the metadata log alone: of what else lies there no log is loaded."""
        values = self._known.in_file
        named = values.get("log.dirs", values.get("log.dir", ""))
        if not named or "metadata.log.dir" not in values or not self._node.is_kraft:
            return False
        real = os.path.realpath(folder)
        log_dirs = {os.path.realpath(path.strip()) for path in named.split(",") if "\0" not in path}
        return real not in log_dirs and real == os.path.realpath(self._known.metadata_dir)

    def _is_asked_for(self, name: str) -> bool:
        topics, partitions = self._conditions.topics, self._conditions.partitions
        if not topics and not partitions:
            return True
        partition = partition_of_directory(name)
        return partition is not None and (
            (not topics or partition.topic in topics) and (not partitions or partition.partition in partitions)
        )

    def start(self, found_ahead: Mapping[int, Ahead] | None = None) -> NodeStarts:
        """Return starts one after the other, and what each makes of each directory.

        Args:
            found_ahead: what the logs come to in the first start, as an earlier one of them has found.
        """
        kept: dict[int, Ahead] = {}
        starts: list[PredictedStart] = []
        logs: list[PredictedLog] = []
        markers = {
            (number, log_dir.path): log_dir.has_marker or self._conditions.with_marker
            for number, log_dir in self._log_dirs
        }
        refusal = self._refusal()
        self._newer = self._newer_than_known() if self._conditions.is_inferred or refusal is None else ""
        not_judged = IDENTITY_UNREAD if self._is_identity_unread() else self._newer
        if not_judged:
            refusal = None
        elif refusal is None:
            not_judged = next(self._doubts_before(), "")
        is_reached = refusal is None and not not_judged
        unregistered = self._registration_refusal() if is_reached else None
        with_logs = {directory.place for directory in self._directories} or markers.keys()
        for number in range(1, MOST_STARTS + 1):
            log_dirs = [
                LoadedLogDir(
                    key_of(place, one.path),
                    markers[place, one.path],
                    self._untaken.get((place, one.path), late if isinstance(early, Absent) else early),
                    self._node.is_kraft and (place, one.path) in self._metadata_dirs,
                    is_read_later=isinstance(early, Absent),
                )
                for place, one in self._log_dirs
                for early, late in [self._malformed(place, one)]
            ]
            log_dirs += [LoadedLogDir(path, False, failure) for path, failure in self._no_directories.items()]
            ahead: Mapping[int, Ahead] = {}
            if number == 1 and found_ahead is not None:
                ahead = found_ahead
            elif number == 1:
                ahead = look_ahead(
                    self._directories,
                    markers,
                    self._logs,
                    self._scans,
                    self._likely_fate,
                    is_reached=is_reached,
                )
            becoming = self._fates(ahead)
            loads: list[LogLoad] = []
            for at, (directory, fate) in enumerate(zip(self._directories, becoming, strict=True)):
                known = ahead.get(at)
                if known is not None and known.log.fate is fate:
                    logs.append(known.log)
                    directory.end = known.log.before.log_end_offset
                    needed = known.load
                    directory.forget()
                else:
                    clean = markers[directory.place]
                    load = self._logs.load(directory, clean=clean)
                    log = self._logs.describe(number, directory, load.outcome, fate, is_reached=is_reached)
                    logs.append(log)
                    needed = needed_load(load)
                    if self._has_others and number == 1:
                        variants = self._logs.variants(directory, log, load.outcome, clean=clean, is_reached=is_reached)
                        known = Ahead(topic_id_of(directory.disk), log, needed, variants)
                    directory.release()
                if self._has_others and number == 1 and known is not None:
                    kept[at] = known
                if needed is not None:
                    loads.append(needed)
            own = logs[len(logs) - len(self._directories) :]
            if Fate.PROMOTED in becoming:
                own = logs[len(logs) - len(own) :] = _without_copied(own)
            is_left_out = not any(log.before.segments for log in own) and any(
                isinstance(log.further_end, FurtherEnd) or log.has_only_indexes for log in own
            )
            if is_left_out:
                logs[len(logs) - len(own) :] = map(_unknown, own)
            end: Start | Unpredictable = (
                Unpredictable(LOGS_LEFT_OUT)
                if is_left_out
                else start_of(
                    log_dirs,
                    loads,
                    (
                        (key_of(*directory.place), directory.name)
                        for directory, fate in zip(self._directories, becoming, strict=True)
                        if self._is_live(fate)
                    ),
                    self._rules,
                )
            )
            if Fate.EXITS in becoming and isinstance(end, Start) and not _exits(end):
                name = self._directories[becoming.index(Fate.EXITS)].name
                end = Start(StartResult.EXITS, "RuntimeException", f"{name}: no topic id in a directory (KAFKA-16814)")
            if not_judged:
                end = Unpredictable(not_judged)
            elif refusal is not None:
                end = Start(StartResult.EXITS, refusal.exception, refusal.reason)
            elif unregistered is not None and not _exits(end):
                end = Start(StartResult.EXITS, unregistered.exception, unregistered.reason)
            elif not _exits(end) and (doubt := next(self._doubts(end), "")):
                end = Unpredictable(doubt)
            starts.append(
                self._predicted_start(
                    number, end, loads, clean=all(markers[place] for place in with_logs), is_reached=is_reached
                )
            )
            if not _exits(end) or not self._node.is_kraft or (refusal or unregistered) is not None:
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
            displaced=self._displaced,
            missing_directories=missing,
            new_directories=new,
            absent_log_dirs=self._absent_log_dirs(),
            blank_log_dirs=self._node.blank_log_dirs(),
            empty_folders=() if self._registered else self._node.empty_folders(),
            node=self._node,
            version=self._conditions.version,
            newer=self._newer,
            begins_metadata_anew=self._begins_metadata_anew,
            asked=self._asked,
            ahead=kept,
            is_later=self._is_later,
            starts=tuple(starts),
            logs=tuple(logs),
            metadata_log=self._metadata,
            problems=tuple(self._problems),
            misnamed=self._misnamed,
            # The preview of KRaft, 2.8, looks for no strays.
            has_unknown_strays=self._node.is_kraft
            and bool(self._directories)
            and self._assigned is None
            and not self._is_preview,
        )

    def _doubts(self, end: Start | Unpredictable) -> Iterator[str]:
        """Yield what leaves it open how a start ends that none of the logs ends."""
        node_id, quorum = self._node.node_id, self._around.quorum
        if self._metadata is not None and self._metadata.load.unknown:
            yield self._metadata.load.unknown
        if self._has_unread_voters:
            yield "its metadata log names voters (KIP-853), which no release before 3.9 reads"
        if self._node.is_not_migrated(self._asked) and self._around.state is None:
            yield "its log directories are of a broker with ZooKeeper, and it is started without"
        broker = self._around.state.brokers.get(node_id) if self._around.state and isinstance(node_id, int) else None
        may_go_back = self._node.is_kraft and self._node.configured is None and self._asked < FIRST_WITHOUT_ZOOKEEPER
        if broker is not None and broker.is_migrating and may_go_back:
            yield HALF_MIGRATED
        if not self._node.is_kraft and self._around.history is not None and self._node.configured is not None:
            enabled, controllers = is_migrating(self._known.in_file), self._around.controllers_migrate
            state = self._around.history.migration
            if words := with_zookeeper_words(state, is_migrating=enabled, controllers_migrate=controllers):
                yield words
        if (elected := self._migration_refusal()) is not None:
            # Another voter may be elected; of a combined node it is open how far its logs are loaded by then.
            yield f"it exits once it is elected: {elected.reason}"
        for own in self._own_histories():
            is_voter = self._is_controller and own.is_of_voter and len(own.current_voters) > 1
            if is_voter and own.kraft_version > 0 and not own.voter_directories and self._asked >= (3, 9):
                yield f"it exits once it is elected: kraft.version is {own.kraft_version}, and the metadata log names no voters"
        if self._node.is_kraft and self._around.state is not None:
            yield from (
                f"the metadata names {words} of {one.topic_partition}"
                for one in self._around.state.partitions.values()
                if (words := contradiction(one.replicas, one.isr, self._asked))
            )
        features, level = self._around.state.features if self._around.state else {}, self._around.level
        if features.get(ELR_FEATURE) and isinstance(level, int) and level < _LEVEL_OF_ELR:
            yield f"its controller writes eligible leader replicas by {ELR_FEATURE}, and fails: metadata.version {level} has no place for them"
        if self._node.is_kraft and (name := never_ready(self._known.in_file)):
            yield f"real brokers did not get ready with {name}, and ended at various points"
        if isinstance(end, Unpredictable):
            return
        if quorum is not None and not self._is_controller and node_id in quorum.mixed:
            yield "it goes by records of two metadata quorums until the log is copied anew"
        for number, one in self._log_dirs:
            for name in sorted(one.files):
                if self._makes_log(number, one.path, name) is Absent.UNKNOWN:
                    place = f"{join(one.path, name)} is a plain file"
                    yield f"{place}: its log directory fails if the broker makes the log of that partition there"
        if not self._node.is_kraft or end.result is StartResult.DIRECTORY_OFFLINE:
            return  # a broker with ZooKeeper begins anew in a directory that was not there
        if absent := self._absent_log_dirs():
            yield f"server.properties names {listed(absent, most=4)}, which {form(len(absent), 'is', 'are')} not given"
        if not self._registered and (empty := self._node.empty_folders()):
            yield f"{listed(empty, most=4)} beside its log directories is empty: if log.dirs names it, a disk is not mounted"

    def _is_identity_unread(self) -> bool:
        """Whether a `meta.properties` can't be read here; a broker that can does not refuse it."""
        unread = False
        for number, one in self._node.members:
            for log_dir in one.log_dirs:
                folders = {entry.name for entry in one.listings.of(log_dir.path).entries if entry.is_directory}
                if log_dir.meta is Absent.UNREADABLE and "meta.properties" not in folders:
                    path = join(log_dir.path, "meta.properties")
                    try:
                        read_evidence(one.root / path, SMALL_FILE_LIMIT)
                    except EvidenceError as error:
                        self._problems.append(Problem(input=number, path=path, message=error.problem))
                        unread = True
        return unread

    def _doubts_before(self) -> Iterator[str]:
        """Yield what leaves it open whether a node comes to load its logs: voters, its copy of the metadata where it only follows, and records before 3.9."""
        around, node_id, history = self._around, self._node.node_id, self._around.history
        if self._node.is_kraft and self._directories and around.voters_in_doubt:
            names = f"{form(len(around.voters_in_doubt), 'voter')} {listed(list(map(str, around.voters_in_doubt)))}"
            yield f"whether {names} can start is not known, and no controller is elected without"
        if history is None:
            return
        voters = history.current_voters
        if self._is_controller:
            misfit, is_open = self._misfit(), any(one.reason == UNFINISHED for one in history.aborted)
            # Such a controller may read the log from its start, where a later snapshot has what is missing.
            if self._asked < FIRST_WITH_VOTERS_IN_LOG and (misfit or is_open or history.gaps):
                words = "lacks records" if history.gaps else "ends inside a transaction"
                words = misfit[1] if misfit else f"The metadata log {words}"
                yield f"{words}, and what a controller of this version makes of it is not known"
            return
        if not self._node.is_kraft or not voters or not around.is_of_one_moment or self._asked < FIRST_KRAFT:
            return
        configured = {int(one) for one in configured_voters(self._known.in_file) if one.isdecimal() and len(one) < 10}
        # Where voters are in the metadata log, the settings only say where to look for them.
        if not history.voter_directories and configured and configured.isdisjoint(voters):
            yield f"its settings name voters {listed(sorted(map(str, configured)))}, and the metadata names {listed(list(map(str, voters)))}"
        mine = [one for one in around.histories if one.node_id == node_id]
        for newer in (each for one in mine for each in one.unread if each.is_newer):
            # It opens its own copy, whatever the controllers make of that record.
            yield f"offset {newer.offset} of its copy of the metadata log: {newer.words}"
        if around.quorum_epoch is None:
            return
        end = max(one.end_offset for one in around.histories if one.node_id in voters)
        above = max((each.end_offset for one in mine for each in one.snapshots), default=0)
        if above > end:
            yield f"its snapshot of the metadata ends at {above}, and the logs of all voters at or below {end}: it can't truncate that"
        states = (one.quorum for _, _, one in self._node.log_dirs())
        epochs = [one.last_epoch for one in mine]
        epochs += [
            one for each in states if isinstance(each, QuorumState) and isinstance(one := each.leader_epoch, int)
        ]
        if max(epochs, default=-1) > around.quorum_epoch + 1:
            yield f"its copy of the metadata has leader epoch {max(epochs)}, which no voter knows: it follows no leader before"

    def _newer_than_known(self) -> str:
        """Return what is newer than known, so that nothing can be said of the start."""
        if self._conditions.newer or not self._conditions.is_inferred:
            return self._conditions.newer
        checkpoints = (
            read
            for _, one in self._log_dirs
            for read in (one.recovery_points, one.log_starts, one.cleaner_positions, one.high_watermarks)
        )
        return next((one.newer for one in checkpoints if isinstance(one, LoadFailure) and one.newer), "")

    @property
    def _is_later(self) -> bool:
        return bool(self._newer) and self._conditions.is_inferred

    def _is_live(self, fate: Fate) -> bool:
        """Whether a directory counts when duplicates are looked for."""
        return fate is not Fate.STRAY or not self._rules.renames_strays_before_load

    @property
    def _is_controller(self) -> bool:
        roles = self._known.in_file.get("process.roles", "")
        return "controller" in roles or any(
            one.described.kind in {"controller", "combined"} for one in self._node.inputs
        )

    @property
    def _is_controller_alone(self) -> bool:
        """Whether it loads no log of a partition, and has no use for what else lies in its log directories."""
        if roles := self._known.in_file.get("process.roles", ""):
            return "broker" not in roles
        return {one.described.kind for one in self._node.inputs} == {"controller"}

    def _malformed(self, number: int, log_dir: FoundLogs) -> tuple[LoadFailure | Absent, LoadFailure | Absent]:
        """Return checkpoints of the wrong shape, which take the directory offline (1.0): one that is read before the logs load, and one that is read then."""
        nothing = Absent.NOT_APPLICABLE
        if self._rules.io_errors_end_start or self._is_controller_alone:
            return nothing, nothing
        early = [log_dir.recovery_points, log_dir.log_starts]
        late = [log_dir.cleaner_positions] if self._known.in_file.get("log.cleaner.enable") != "false" else []
        if any(
            one.place == (number, log_dir.path) and one.partition is not None and not one.name.endswith(ENDINGS)
            for one in self._directories
        ):
            late.append(log_dir.high_watermarks)
        late += [
            LoadFailure("FileAlreadyExistsException", f"{name} is a plain file where its log is to be made", is_io=True)
            for name in log_dir.files
            if self._makes_log(number, log_dir.path, name) is True
        ]
        return self._first_malformed(early), self._first_malformed(late)

    def _makes_log(self, number: int, path: str, name: str) -> bool | Absent:
        """Whether the broker makes the log of a partition in a log directory once it is started: where a plain file has its name, that fails."""
        partition, node_id, assigned = partition_of_directory(name), self._node.node_id, self._assigned
        if (
            partition is None
            or self._is_controller_alone
            or not self._is_asked_for(name)
            or any(one.name == name for one in self._directories)
        ):
            return False
        if not self._node.is_kraft or assigned is None or isinstance(node_id, Absent) or self._is_preview:
            checkpoints = (
                read for _, one in self._log_dirs for read in (one.recovery_points, one.log_starts, one.high_watermarks)
            )
            is_named = any(not isinstance(read, LoadFailure) and partition in read for read in checkpoints)
            return Absent.UNKNOWN if is_named else False
        topics = self._around.state.topics if self._around.state is not None else {}
        ids = (topic_id for topic_id, topic in topics.items() if topic.name == partition.topic)
        place = next((assigned.get((topic_id, partition.partition)) for topic_id in ids), None)
        if place is None or node_id not in place.replicas:
            return False
        if len(self._log_dirs) + len(self._no_directories) == 1:
            return True
        here = {
            each.meta.directory_id: (at, each.path)
            for at, _, each in self._node.log_dirs()
            if not isinstance(each.meta, Absent) and not isinstance(each.meta.directory_id, Absent)
        }
        own = dict(zip(place.replicas, place.directories, strict=False)).get(node_id)
        # Without an assigned directory it tries the one with the fewest logs first.
        return here[own] == (number, path) if self._asked >= (3, 7) and own in here else Absent.UNKNOWN

    def _first_malformed(self, read: Iterable[Mapping[TopicPartition, int] | LoadFailure]) -> LoadFailure | Absent:
        """Return the first failure of a directory: since 3.1 a number that is none only resets the offsets."""
        failures = (one for one in read if isinstance(one, LoadFailure))
        is_io = self._rules.bad_numbers_are_io
        return next((one for one in failures if one.is_io or is_io), Absent.NOT_APPLICABLE)

    @property
    def _begins_metadata_anew(self) -> bool:
        """Whether it is the only voter by its settings, and no metadata log is there: none is known to it then."""
        is_only = self._is_controller and [*configured_voters(self._known.in_file)] == [str(self._node.node_id)]
        return self._node.is_kraft and self._metadata is None and is_only and self._around.history is None

    @property
    def _assigned(self) -> Mapping[tuple[str, int], Assignment] | None:
        return {} if self._begins_metadata_anew else self._around.assigned

    def _directories_named(self) -> list[NodeDirectory]:
        """Return the log directories of the node, those too that settings name and that are not there beside these."""
        found, here = list(self._node.directories()), [os.path.realpath(one) for one in self._node.folders()]
        named = [os.path.realpath(one) for one in self._known.log_dirs]
        if not {*here} & {*named}:
            return found  # the disks were copied: where the others are is not known
        metadata_dir = os.path.realpath(self._known.metadata_dir)
        found = [one._replace(is_metadata_dir=path == metadata_dir) for one, path in zip(found, here, strict=True)]
        found += [
            found[here.index(real)]._replace(path=path, has_metadata_log=False)
            for path, real in self._named_again()
            if real in here
        ]
        missing = [
            one for one in named if one not in here and (one in self._above_left_out or not os.path.lexists(one))
        ]
        nothing = Absent.NOT_WRITTEN
        return [*found, *(NodeDirectory(one, False, False, 0, nothing, nothing, nothing, False) for one in missing)]

    @property
    def _has_unread_voters(self) -> bool:
        history = self._around.history
        has_voters = history is not None and (history.has_no_voter or bool(history.voter_directories))
        return self._node.is_kraft and has_voters and self._asked < FIRST_WITH_VOTERS_IN_LOG

    @cached_property
    def _above_left_out(self) -> frozenset[str]:
        """Where the log directories would have to be that lie one level too deep, and that its settings leave out."""
        roots = {number: one.root for number, one in self._node.members}
        return frozenset(os.path.realpath((roots[number] / path).parent) for number, path in self._node.left_out)

    def _file_for_metadata(self) -> Refusal | None:
        """Return why a plain file with the name of the metadata log ends the start: its directory can't be made, or is not looked for there."""
        for _, one, log_dir in self._node.log_dirs():
            names = {entry.name for entry in one.listings.of(log_dir.path).entries if S_ISREG(entry.mode)}
            if METADATA_DIRECTORY in names:
                place = join(join(one.described.path, log_dir.path), METADATA_DIRECTORY)
                if not any(log_dir.is_metadata_dir for _, _, log_dir in self._node.log_dirs()):
                    return Refusal("FileAlreadyExistsException", place)
                return Refusal("KafkaException", f"Found unexpected metadata location in data directory {place}")
        return None

    def _named_again(self) -> list[tuple[str, str]]:
        """Return the log directories that settings name under a second path, each with the directory that it is."""
        values = self._known.in_file
        paths = [*values.get("log.dirs", "").split(","), values.get("metadata.log.dir", "")]
        named = [
            (path, os.path.realpath(path)) for path in dict.fromkeys(map(str.strip, paths)) if "\0" not in path and path
        ]
        return [one for at, one in enumerate(named) if any(one[1] == real for _, real in named[:at])]

    def _refusal(self) -> Refusal | None:
        version, node = self._asked, self._node
        directories = self._directories_named() if node.is_kraft else list(node.directories())
        refusal = refuse_values(version, self._known.in_file, node.node_id) or refuse_identity(
            directories,
            version,
            is_kraft=node.is_kraft or (version >= FIRST_WITHOUT_ZOOKEEPER and node.is_blank),
            node_id=self._known.node_id,
            is_migrating=is_migrating(self._known.in_file),
        )
        if refusal is None and node.is_kraft:
            refusal = self._file_for_metadata()
        lost = next((path for path in self._no_directories if path == self._known.metadata_dir.rstrip("/")), None)
        if refusal is None and node.is_kraft and lost is not None:
            words = f"Encountered I/O error in metadata log directory {lost}. Cannot continue."
            refusal = Refusal("RuntimeException" if version >= (3, 7) else "KafkaException", words)
        again = [path for path, _ in self._named_again() if path != self._known.metadata_dir]
        if refusal is None and again and not self._is_controller_alone:
            refusal = Refusal("KafkaException", f"{TWICE_NAMED}: {again[0]}")
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
        quorum = self._around.quorum
        history = self._around.history
        for one in self._own_histories():
            # Only a controller that is elected misses the voters: the sole one is.
            is_kept = bool(one.voter_directories) or one.current_voters != (node.node_id,)
            refusal = refusal or refuse_kraft_version(
                one.kraft_version, version, is_controller=self._is_controller, has_voters=is_kept
            )
            reads_all = version >= (FIRST_WITH_VOTERS_IN_LOG if not self._is_controller else (3, 7))
            if reads_all:
                first = max((each.end_offset for each in one.snapshots), default=0)
                behind = {key: place for key, place in one.formats.items() if place[1] >= first}
                refusal = refusal or refuse_formats(behind, version)
            if reads_all and (damaged := _damaged_record(one)):
                exception = "IllegalArgumentException" if damaged.is_empty else "MetadataParseException"
                refusal = refusal or Refusal(exception, f"offset {damaged.offset} of {damaged.path}: {damaged.words}")
        if refusal is not None:
            return refusal
        has_no_voter = history is not None and history.has_no_voter
        is_stuck = bool(self._around.voters_down) or has_no_voter or (quorum is not None and quorum.is_stuck)
        if is_stuck and self._directories and not self._has_unread_voters:
            return refuse_without_controller(version)
        is_unstable_enabled = any(self._known.in_file.get(name) == "true" for name in _UNSTABLE_LEVELS)
        if version >= FIRST_WITH_VOTERS_IN_LOG and (misfit := self._misfit()) is not None:
            is_by_both = misfit[0] in {"RegisterBrokerRecord", "RemoveAccessControlEntryRecord"}
            by_image = _OF_IMAGE.get(misfit[0], "") if is_by_both or not self._is_controller_alone else ""
            return Refusal(by_image or "RuntimeException", misfit[1])
        # A broker alone passes over a level in its snapshot that it does not know.
        opened = self._metadata if self._is_controller else None
        refused = (
            refuse_level(one, version, is_controller=self._is_controller, is_unstable_enabled=is_unstable_enabled)
            for one in (Absent.UNKNOWN if opened is None else opened.snapshot_level, self._around.level)
        )
        refusal = next((one for one in refused if one is not None), None)
        writes = history if self._is_controller and version >= (3, 4) else None
        if refusal is None and writes is not None and (beyond := writes.beyond_level()):
            words = f"Metadata has been lost because the following could not be represented in metadata.version {writes.metadata_version}: {beyond} (__cluster_metadata-0)"
            refusal = Refusal("UnwritableMetadataException", words)
        if refusal is None and self._around.state is not None:
            known = self._around.state.features.items()
            features = {name: level for name, level in known if name != METADATA_VERSION}
            refusal = refuse_features(
                features,
                version,
                is_controller=self._is_controller,
                is_unstable_enabled=is_unstable_enabled or "process.roles" not in self._known.in_file,
            )
        if refusal is None and self._is_controller and (bad := misassigned(self._assigned or {})):
            topics = self._around.state.topics if self._around.state is not None else {}
            name = f"{topics[bad[0]].name if bad[0] in topics else bad[0]}-{bad[1]}"
            words = f"The lengths for replicas and directories do not match: {name} in __cluster_metadata-0"
            refusal = Refusal("InvalidReplicaDirectoriesException", words)
        if refusal is None and any(one.described.kind in {"broker", "combined"} for one in node.inputs):
            refusal = refuse_topic_settings(version, self._known.topics)
        if history is not None and history.current_voters == (node.node_id,) and not self._directories:
            refusal = refusal or self._migration_refusal()
        return refusal

    def _own_histories(self) -> Sequence[MetadataHistory]:
        own = [one for one in self._around.histories if one.node_id == self._node.node_id]
        return own or [one for one in (self._around.history,) if one is not None]

    def _misfit(self) -> tuple[str, str] | None:
        """Return the first record that fits nothing before it, such as a change of a partition that is not there, and where it is, in words."""
        history, opened = self._around.history, self._metadata
        if history is None or opened is None or not self._is_controller or history.gaps:
            return None
        first = max((one.end_offset for one in history.snapshots), default=0)
        end = opened.load.log_end_offset
        name, offset = next(((one, when.offset) for one, when in history.unapplied if when.offset >= first), ("", 0))
        is_read = name and (isinstance(end, Absent) or offset < end)
        return (name, f"{name} at offset {offset} of the metadata log fits nothing before it") if is_read else None

    def _migration_refusal(self) -> Refusal | None:
        """Why it exits once it is the active controller."""
        history = self._around.history
        if history is None or not history.features or not self._is_controller or not is_migrating(self._known.in_file):
            return None
        return refuse_migration(history.migration, history.metadata_version, self._asked)

    def _registration_refusal(self) -> Refusal | None:
        """Why the controller does not let it register; its logs are loaded from the metadata meanwhile, and strays renamed."""
        node = self._node
        if not node.is_kraft or not self._directories:
            return None
        around, migration = self._around, self._around.history.migration if self._around.history else 0
        known = node.directories(), around.registered, node.node_id, around.level
        return refuse_registration(*known, migration=migration, version=self._asked)

    @property
    def _is_preview(self) -> bool:
        """Whether it is the preview of 2.8 without ZooKeeper, of which it is not known what it does to strays."""
        return self._asked < (3, 0)

    def _unclean_reason(self) -> str:
        """Why the controller takes the last stop as unclean, where eligible leader replicas are on."""
        state, node_id = self._around.state, self._node.node_id
        if state is None or isinstance(node_id, Absent) or not state.features.get(ELR_FEATURE):
            return ""
        broker = state.brokers.get(node_id)
        epochs = [
            log_dir.broker_epoch
            for _, one, log_dir in self._node.log_dirs()
            if not self._is_of_metadata_alone(one.root / log_dir.path)
        ]
        return unclean_for_controller(epochs, broker.broker_epoch, self._asked) if broker else ""

    @property
    def _registered(self) -> frozenset[str]:
        """Ids of the log directories that it registered last; none where the metadata do not say."""
        node_id = self._node.node_id
        return frozenset() if isinstance(node_id, Absent) else frozenset(self._around.registered.get(node_id, ()))

    def _lost_directories(self) -> tuple[frozenset[str], frozenset[str]]:
        """Ids of directories that the node registered last and that are not here, and of those here that it did not register."""
        registered = self._registered
        places = zip(self._node.directories(), self._node.folders(), strict=True)
        directories = [one for one, folder in places if not self._is_of_metadata_alone(folder)]
        here = {one.directory_id for one in directories if not isinstance(one.directory_id, Absent)}
        missing = registered - here
        if len(missing) <= sum(one.has_file and isinstance(one.cluster_id, Absent) for one in directories):
            missing = frozenset()  # those of which no meta.properties can be read may be these
        if missing and self._asked >= (3, 7):  # a start gives a new id to a directory without one
            here |= {one.path or "without directory.id" for one in directories if isinstance(one.directory_id, Absent)}
        return (missing, frozenset(here) - registered) if registered else (frozenset(), frozenset())

    def _absent_log_dirs(self) -> tuple[str, ...]:
        """Directories that its `server.properties` names and that are not here; all that may be meant where copies have other names."""
        named, here = self._known.log_dirs, self._node.folders()
        if not named and self._known.in_file.keys() & {"process.roles", "zookeeper.connect"}:
            return () if any(path.name == PurePath(_DEFAULT_LOG_DIR).name for path in here) else (_DEFAULT_LOG_DIR,)
        paths = {*map(str, here), *self._above_left_out}
        names = {path.name for path in here}
        without = tuple(one for one in named if os.path.realpath(one) not in paths)
        # A copy has the name of its disk, or of the folder that is mounted there.
        unlike = tuple(one for one in without if names.isdisjoint(PurePath(one).parts[-2:]))
        if len(named) == len(here):
            # A copy may have any name; one that is nearly that of a disk is of another one, or mistyped.
            unlike = tuple(one for one in unlike if nearest_names(PurePath(one).name, names))
        return unlike if len(named) <= len(here) else unlike or without

    def _likely_fate(self, directory: StartedDirectory) -> Fate:
        """Return the fate that a directory has by its name, and has where the metadata assign it to the node."""
        if directory.name.endswith("-delete"):
            return Fate.DELETED
        is_by_metadata = self._node.is_kraft and not isinstance(self._node.node_id, Absent)
        if not is_by_metadata or directory.partition is None:
            return Fate.KEPT
        return Fate.UNKNOWN if self._assigned is None or self._is_preview else Fate.KEPT

    def _fates(self, ahead: Mapping[int, Ahead]) -> list[Fate]:
        node_id, assigned = self._node.node_id, self._assigned
        if not self._node.is_kraft or isinstance(node_id, Absent) or assigned is None or self._is_preview:
            return [self._likely_fate(one) for one in self._directories]
        listed = [(at, one) for at, one in enumerate(self._directories) if at in ahead or not one.why_not_listed]
        held = [
            HeldLog(
                one.name,
                ahead[at].topic_id if at in ahead else topic_id_of(one.disk),
                one.partition.partition if one.partition else -1,
                next((ending for ending in ENDINGS if one.name.endswith(ending)), ""),
                one.within.directory_id,
            )
            for at, one in listed
        ]
        found = fates(held, assigned, node_id, self._asked)
        topics = self._around.state.topics if self._around.state is not None else {}
        kept = [
            (one, topics[each.topic_id].name, assigned.get((each.topic_id, each.partition)))
            for (_, one), each, fate in zip(listed, held, found, strict=True)
            if fate is Fate.KEPT and not each.ending and isinstance(each.topic_id, str) and each.topic_id in topics
        ]
        self._misnamed = {
            (one.within.input, one.found.path): topic
            for one, topic, _ in kept
            if one.partition is not None and topic != one.partition.topic
        }
        here = {one.directory_id for one in self._node.directories()}
        if self._asked >= (3, 7) and not here & set(Absent):
            self._displaced = tuple(
                f"{topic}-{one.partition.partition}"
                for one, topic, place in kept
                if one.partition is not None and place is not None
                for replica, directory in zip(place.replicas, place.directories, strict=False)
                if replica == node_id and is_displaced(directory, here)
            )
        known = {at: fate if one.partition else Fate.KEPT for (at, one), fate in zip(listed, found, strict=True)}
        return [known.get(at, Fate.UNKNOWN) for at in range(len(self._directories))]

    def _advance(self, markers: Mapping[tuple[int, str], bool]) -> bool:
        """Load each directory once more, and leave it as the load does; whether anything but the same changed."""
        changed = False
        for directory in self._directories:
            load = self._logs.load(directory, clean=markers[directory.place])
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
            kafka=kafka_words(self._conditions.version, is_later=self._is_later),
            result=end.result if isinstance(end, Start) else Absent.UNKNOWN,
            exception=end.exception if isinstance(end, Start) else Absent.UNKNOWN,
            reason=end.reason,
            clean=clean,
            loads_logs=is_reached,
            bytes_scanned=sum(bytes_scanned(one) for one in outcomes),
            logs_scanned=sum(bool(one.scanned) for one in outcomes),
        )

    def _note(self, number: int, obstacles: Iterable[Obstacle]) -> None:
        self._problems += [Problem(input=number, path=met.path, message=met.message) for met in obstacles]

    def _note_unreadable(self) -> None:
        for directory in self._directories:
            self._note(directory.within.input, directory.obstacles)
            if directory.opened is None:
                continue
            for name, words in directory.opened.unreadable.items():
                self._problems.append(
                    Problem(input=directory.within.input, path=join(directory.found.path, name), message=words)
                )


def _damaged_record(history: MetadataHistory) -> Unread | None:
    """Return the first record behind the newest snapshot that is whole, and damaged within: every node reads all of them before anything else (`KRaftControlRecordStateMachine`, 3.9), and a controller before (3.7)."""
    first = max((one.end_offset for one in history.snapshots), default=0)
    found = (one for one in history.unread if not one.is_newer and one.offset >= first and one.path.endswith(".log"))
    return min(found, key=lambda one: one.offset, default=None)


def _without_copied(logs: Sequence[PredictedLog]) -> list[PredictedLog]:
    """Return the logs, without the loss of what the future logs hold that replace them."""
    ends = {
        (log.topic, log.partition): log.after.log_end_offset
        for log in logs
        if log.fate is Fate.PROMOTED and isinstance(log.after, LogAtStart)
    }
    return [
        log if isinstance(end := ends.get((log.topic, log.partition)), Absent | None) else _behind(log, end)
        for log in logs
    ]


def _behind(log: PredictedLog, end: int) -> PredictedLog:
    pieces = tuple(one._replace(first_offset=max(one.first_offset, end)) for one in log.lost.pieces)
    return replace(log, lost=replace(log.lost, pieces=pieces)) if log.fate is Fate.DELETED else log


def _unknown(log: PredictedLog) -> PredictedLog:
    return replace(
        log,
        outcome="unknown",
        exception=Absent.UNKNOWN,
        message="no .log file of it is here",
        after=Absent.UNKNOWN,
        files=(),
        due=Absent.NOT_APPLICABLE,
        further_end=Absent.NOT_APPLICABLE,
        has_only_indexes=False,
    )


def _exits(end: Start | Unpredictable) -> bool:
    return isinstance(end, Start) and end.result is StartResult.EXITS
