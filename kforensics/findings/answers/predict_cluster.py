"""The starts of all nodes that were played, the logs among them that the sentences of the answer are about, and log directories that are known beside them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.discovery.partition_dirs import LostDirectory
from kforensics.evidence.metadata.set_back import AbsentControllers, QuorumSetBack
from kforensics.evidence.model import Input
from kforensics.findings.answers.graver import Asked
from kforensics.findings.answers.model import State
from kforensics.protocol.loading.disk import ENDINGS
from kforensics.protocol.loading.node import Fate
from kforensics.protocol.loading.starts import DUPLICATE, StartResult
from kforensics.protocol.versions import KafkaVersion, parse_version
from kforensics.reconcile.logs.predicted_load import (
    DueSegments,
    LeavingReplica,
    MetadataLoad,
    PredictedLog,
    PredictedStart,
    ReturningLeader,
    StartOrder,
    VersionOutcome,
)
from kforensics.words import counted, form, listed


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingDirectories:
    """What is known of log directories of a node beside those that were given."""

    node_id: int | Absent
    missing: Collection[str] = ()
    """Ids that it registered last and that none of its log directories has."""
    new: Collection[str] = ()
    """Ids of its log directories that it did not register."""
    configured: Collection[str] = ()
    """Directories that its `server.properties` names and that are not here."""
    left_out: Collection[str] = ()
    """Log directories of it that are here and that its `server.properties` does not name."""
    empty: Collection[str] = ()
    """Folders beside its log directories that hold nothing."""
    blank: Collection[str] = ()
    """Log directories of it that hold nothing."""
    formats_blank: bool = True
    """Whether a start makes log directories of empty directories, as a broker with ZooKeeper does."""

    @property
    def is_grave(self) -> bool:
        """Whether the start may come to something else for it: a disk not mounted, or exchanged."""
        return bool(self.empty or self.left_out or (self.missing and self.new))

    def words(self) -> Iterator[str]:
        """Yield what is to be said of it."""
        if self.empty:
            yield (
                f"Next to the log directories of node {self.node_id} there is an empty folder ({', '.join(self.empty)}): if log.dirs names it, a disk is not "
                "mounted. A node without ZooKeeper does not start then; a broker with ZooKeeper creates empty replicas on it."
            )
        if self.blank:
            yield self._words_of_blank()
        if self.left_out:
            paths, count = listed(list(self.left_out), most=4), len(self.left_out)
            yield (
                f"Whether {paths} {form(count, 'is', 'are')} meant to go: server.properties of node {self.node_id} names other log directories, which are all here, and not "
                f"{form(count, 'this one', 'these')}. What {form(count, 'it holds', 'they hold')} is not loaded: its partitions have no leader on this node, or begin empty"
                " (before 3.7, and with ZooKeeper)."
            )
        if self.configured:
            yield (
                f"server.properties names log directories that are not known to be among those of node {self.node_id} here ({', '.join(self.configured)}): a start reads their "
                "meta.properties and logs too, and may fail on them. Give them."
            )
        if self.missing:
            count = len(self.missing)
            yield (
                f"Node {self.node_id} registered {form(count, 'a log directory', f'{count} log directories')} "
                f"({', '.join(sorted(self.missing))}) that {form(count, 'is', 'are')} not here. What they hold was not read, and partitions assigned "
                "there have no leader on this node until it is back or they are reassigned."
            )
        if self.missing and self.new:
            yield (
                f"Log directories here that node {self.node_id} did not register ({', '.join(sorted(self.new))}). Where meta.properties was rewritten "
                "or a disk exchanged, the partitions on it stay without a leader where this node is their only replica."
            )

    def _words_of_blank(self) -> str:
        one = len(self.blank)
        named = (
            f"Whether {form(one, 'the disk', 'the disks')} of {', '.join(self.blank)} {form(one, 'is', 'are')} mounted: "
            f"{form(one, 'it is given as a log directory', 'they are given as log directories')} of node {self.node_id}, and nothing is in {form(one, 'it', 'them')}."
        )
        does = (
            f"A broker with ZooKeeper takes {form(one, 'it for a new disk', 'them for new disks')}: it writes meta.properties, and creates empty replicas of "
            "partitions that it does not find. Before it is started,"
            if self.formats_blank
            else f"A node without ZooKeeper starts on no directory that is not formatted. Before kafka-storage.sh formats {form(one, 'it', 'them')},"
        )
        return (
            f"{named} {does} give the log directories of the other brokers and a metadata log to diff: an empty replica that is elected makes the others "
            "truncate theirs."
        )


class RecreatedPartitions(NamedTuple):
    """Partitions of log directories that go offline, which a KRaft broker before 3.7 makes anew in those that are online (KIP-858)."""

    start: PredictedStart
    offline: tuple[str, ...]
    online: tuple[str, ...]
    partitions: tuple[str, ...]

    @property
    def words(self) -> str:
        """What it makes, as a part of a sentence."""
        return f"makes {listed(self.partitions, most=4)} anew, empty, in {listed(self.online, most=4)}"


class UnseenLeaders(NamedTuple):
    """Logs whose leader may be on a broker that is not given."""

    logs: int
    """Those that have other replicas, or records that are not known to be committed."""
    above_watermark: int
    """Their records above the high watermarks that their brokers checkpointed."""

    @property
    def words(self) -> str:
        """What their brokers discard as followers, in a sentence."""
        above = (
            f": {counted(self.above_watermark, 'record')} {form(self.above_watermark, 'is', 'are')} above the high watermark"
            if self.above_watermark
            else ""
        )
        return f"What it discards of {counted(self.logs, 'log')} as a follower depends on other brokers{above}."


@dataclass(frozen=True, kw_only=True)
class PredictedCluster:
    """The starts of all nodes with what is known beside them."""

    starts: Sequence[PredictedStart]
    logs: Sequence[PredictedLog]
    """What each start makes of each directory."""
    inputs: Sequence[Input]
    kafka: str
    """The version that was played."""
    kafka_source: str
    """`given`, `server-log`, `metadata-log` or `assumed`."""
    log_says: str = ""
    """How the last starts ended by the nodes' own lines, where they failed, in sentences."""
    disks_say: str = ""
    """Which log directories nodes went on without last, by their own lines, in sentences."""
    versions: Sequence[VersionOutcome] = ()
    """What other versions that the evidence allows do otherwise on these files."""
    metadata_logs: Sequence[MetadataLoad] = ()
    left_out: Collection[str] = ()
    """Inputs that are a partition directory alone, which can't be played."""
    without: Collection[str] = ()
    """Paths that were taken as not there."""
    zookeeper_nodes: Collection[int] = ()
    """Inputs of brokers with ZooKeeper, or not known to be without."""
    not_migrated: Mapping[int, str] = field(default_factory=dict)
    """By input of a broker with ZooKeeper: the version that is started on its log directories without it."""
    with_roles: Collection[int] = ()
    """Inputs of nodes whose `server.properties` has `process.roles`."""
    side_by_side: Collection[int] = ()
    """First inputs of nodes with ZooKeeper that may be the disks of one."""
    unknown_strays: Collection[int] = ()
    """Inputs of nodes whose assigned partitions no metadata show."""
    displaced: Sequence[str] = ()
    """Partitions whose logs are here, and that the metadata place in log directories that are not."""
    missing_directories: Collection[MissingDirectories] = ()
    blank_nodes: Collection[int] = ()
    """Inputs of nodes in whose log directories nothing is at all."""
    unassigned_nodes: Collection[int] = ()
    """Inputs of nodes that are assigned no partition."""
    unclean_nodes: Mapping[int, str] = field(default_factory=dict)
    """By input of a node, why the controller takes its last stop as unclean."""
    closed: Sequence[str] = ()
    """What in log directories owner or mode may close to the broker."""
    without_metadata: Collection[int] = ()
    """Inputs of nodes that are the only voters, and have no metadata log."""
    leaving: Sequence[LeavingReplica] = ()
    """Replicas that a reassignment removes from their nodes."""
    misnamed: Mapping[tuple[int, str], str] = field(default_factory=dict)
    """By input and path of a directory that is kept: the topic whose id it has, where that is not the topic of its name."""
    made_empty: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """By input of a node: partitions that it leads or may lead, and that none of its log directories holds, so that it makes them anew."""
    returning: Sequence[ReturningLeader] = ()
    """Who is elected for partitions that have no leader, or lose it when its broker registers."""
    order: StartOrder | None = None
    """The order in which to start the brokers, where it was asked for."""
    replicas: Asked | None = None
    """How the replicas of the nodes compare; none where those of one are given."""
    unseen: UnseenLeaders | None = None
    """What is discarded as a follower of a broker that is not given, where the replicas are not compared."""
    quorum: QuorumSetBack | None = None
    """The voters that can go on without metadata that was committed."""
    remote: Sequence[str] = ()
    """What retention deletes in remote storage, a sentence a partition."""
    migration: str = ""
    """What a start of the controllers makes of a migration from ZooKeeper that is not complete, in a sentence."""
    absent: AbsentControllers | None = None
    """The controllers, where none of them is given."""
    lost: Sequence[LostDirectory] = ()
    """Partitions that checkpoints name and of which their node holds no directory."""
    allows_older: bool = False
    """The evidence allows versions too that are not modelled."""
    assumed_nodes: Mapping[int, str] = field(default_factory=dict)
    """The version that is assumed, by input of a node of which none is on record, where others have one."""
    twice: Sequence[int] = ()
    """Inputs of nodes that are given as they were at several moments."""
    is_partial: bool = False
    """Whether only some partitions were asked for."""
    has_problems: bool = False

    def is_newer(self, start: PredictedStart) -> bool:
        """Return whether nothing is said of a start because something is newer than kforensics knows."""
        return isinstance(start.result, Absent) and not start.loads_logs

    @cached_property
    def reached(self) -> list[PredictedLog]:
        """Each log once, by the last start that comes as far as loading it."""
        return list({(log.input, log.path): log for log in self.logs if log.is_reached}.values())

    @cached_property
    def losing(self) -> list[PredictedLog]:
        """The logs that lose records, each once: a later start that truncates the same log again counts what it truncates."""
        return [log for log in self.logs if log.lost.records and log.is_reached and not log.is_deletion_asked]

    @property
    def going(self) -> list[PredictedLog]:
        """The logs that go with records of a topic whose deletion is on record."""
        return [log for log in self.reached if log.lost.records and log.is_deletion_asked]

    @cached_property
    def aged(self) -> list[PredictedLog]:
        """The logs of which retention leaves nothing, by settings that are known or by the defaults."""
        return [log for log in self.reached if isinstance(log.due, DueSegments) and log.due.is_whole_log]

    @cached_property
    def misdated(self) -> list[PredictedLog]:
        """The logs of which retention takes records that are not old, because of their time index."""
        return [log for log in self.reached if isinstance(log.due, DueSegments) and log.due.misdated]

    @cached_property
    def ended_early(self) -> list[PredictedLog]:
        """The logs that ended further back before any start, as files beside them show: their last records may be lost."""
        found = {
            (log.input, log.path): log
            for log in self.logs
            if log.start == 1 and log.is_reached and log.fate is Fate.KEPT and not isinstance(log.further_end, Absent)
        }
        return [found[key] for key in sorted(found)]

    @cached_property
    def without_segment(self) -> list[PredictedLog]:
        """The logs of which indexes are here and no segment, and of which nothing says how long they were."""
        return [
            log
            for log in self.reached
            if log.start == 1
            and log.fate is Fate.KEPT
            and log.outcome == "loads"
            and log.has_only_indexes
            and isinstance(log.further_end, Absent)
            and not isinstance(log.partition, Absent)
            and not log.path.endswith(ENDINGS)
        ]

    @cached_property
    def filled_strays(self) -> list[PredictedLog]:
        """The logs with records that are renamed to -stray and not served any more."""
        return [
            log
            for log in self.reached
            if log.fate is Fate.STRAY and not log.path.endswith("-future") and _may_hold_records(log)
        ]

    @cached_property
    def unserved(self) -> list[PredictedLog]:
        """Those of nodes that begin with empty metadata, and know no topic."""
        return [log for log in self.filled_strays if log.node in self.without_metadata]

    @cached_property
    def open_strays(self) -> list[PredictedLog]:
        """Those of which it is not known whether other replicas hold the same, as no comparison has said it."""
        is_compared = self.replicas is not None and self.replicas.answer.state is not State.UNKNOWN
        return [] if is_compared else [log for log in self.filled_strays if log not in self.unserved]

    @cached_property
    def brokers_without_logs(self) -> list[Input]:
        """The brokers that have no log of a partition, where all partitions were asked for; a controller alone has none, nor has one that is no replica, and of empty directories more is said."""
        holding = {log.node for log in self.logs} | {*self.blank_nodes, *self.unassigned_nodes}
        voters = {one.node for one in self.quorum.standings} if self.quorum else set()
        brokers = (
            {*self.quorum.state.brokers, *(self.quorum.forgotten.brokers if self.quorum.forgotten else ())}
            if self.quorum
            else set()
        )
        # One that was formatted anew is known by the metadata of others alone.
        alone = voters - brokers
        found = [
            self.inputs[start.input]
            for start in self.starts
            if start.number == 1
            and start.input not in holding
            and self.inputs[start.input].kind != "controller"
            and self.inputs[start.input].broker_id not in alone
            and not self.is_partial
        ]
        return sorted(found, key=lambda one: _by_number(node_words(one)))

    @cached_property
    def stuck_futures(self) -> list[tuple[PredictedLog, PredictedLog]]:
        """The logs of which a copy in another log directory ends below their start, so that it can't go on there, and that copy."""
        current = {
            (log.node, log.topic, log.partition): log
            for log in self.reached
            if log.fate in {Fate.KEPT, Fate.UNKNOWN} and not log.path.endswith(ENDINGS)
        }
        copies = (log for log in self.reached if log.path.endswith("-future") and log.fate is not Fate.PROMOTED)
        pairs = ((current.get((log.node, log.topic, log.partition)), log) for log in copies)
        return [(log, copy) for log, copy in pairs if log is not None and _is_below(copy, log)]

    @cached_property
    def doubled(self) -> dict[str, list[list[PredictedLog]]]:
        """The logs of each partition of which a node holds several, and does not start for that."""
        refused = {one.input for one in self.failed if one.number == 1 and one.reason.startswith(DUPLICATE)}
        by_partition: dict[tuple[int, object, object], list[PredictedLog]] = {}
        for log in self.logs:
            if log.start == 1 and log.node in refused and not log.path.endswith(ENDINGS):
                by_partition.setdefault((log.node, log.topic, log.partition), []).append(log)
        found: dict[str, list[list[PredictedLog]]] = {}
        for (node, _, _), logs in by_partition.items():
            if len(logs) > 1:
                found.setdefault(self.node(node), []).append(logs)
        return found

    @cached_property
    def recreated(self) -> list[RecreatedPartitions]:
        """What the first start of each node makes anew of a log directory that goes offline."""
        found = []
        for start in self.starts:
            is_before = _is_before(start.kafka, _FIRST_WITH_ASSIGNED_DIRECTORIES)
            is_offline = start.number == 1 and start.result is StartResult.DIRECTORY_OFFLINE
            if not is_offline or not is_before or start.input in self.zookeeper_nodes:
                continue
            logs = [log for log in self.logs if (log.node, log.start) == (start.input, 1)]
            places = {(log.input, log.path.rpartition("/")[0]) for log in logs}
            places |= {
                (one.input, one.path.rpartition("/")[0]) for one in self.metadata_logs if one.node == start.input
            }
            offline = {(log.input, log.path.rpartition("/")[0]) for log in logs if log.takes_directory_offline}
            gone = [
                f"{log.topic}-{log.partition}"
                for log in logs
                if (log.input, log.path.rpartition("/")[0]) in offline and not log.path.endswith(ENDINGS)
            ]
            if gone and places - offline:
                names = [
                    tuple(sorted(path or self.inputs[number].path for number, path in some))
                    for some in (offline, places - offline)
                ]
                found.append(RecreatedPartitions(start, names[0], names[1], tuple(sorted(gone))))
        return found

    @property
    def has_unknown_log(self) -> bool:
        """Whether it is not known what becomes of some log or some node by its own files."""
        return (
            any(log.outcome != "loads" for log in self.logs if log.is_reached)
            or any(isinstance(start.result, Absent) for start in self.starts)
            or any(one.unknown for one in self.metadata_logs)
        )

    @property
    def emptied(self) -> list[tuple[str, list[str]]]:
        """Each node that makes partitions anew, empty, and these; of a node without any log more is said."""
        named = {str(one.topic_partition) for one in self.lost}
        found = [(self.node(at), [one for one in names if one not in named]) for at, names in self.made_empty.items()]
        return sorted([(node, names) for node, names in found if names], key=lambda one: _by_number(one[0]))

    @property
    def elsewhere(self) -> list[MissingDirectories]:
        """Of each node that has more log directories than are here, what is known of them."""
        return [one for one in self.missing_directories if one.missing or one.configured]

    @property
    def failed(self) -> list[PredictedStart]:
        """The starts that do not succeed."""
        return [start for start in self.starts if start.result not in {StartResult.STARTS, Absent.UNKNOWN}]

    def path_of(self, log: PredictedLog) -> str:
        """Return the path of a log with that of its input."""
        return f"{self.inputs[log.input].path.rstrip('/')}/{log.path}"

    def without_marker(self) -> tuple[list[str], bool]:
        """Return the nodes whose first start finds no marker, and whether all do; a controller alone never writes one."""
        loading = {log.node for log in self.logs if self.inputs[log.node].kind != "controller"}
        firsts = [start for start in self.starts if start.number == 1 and start.input in loading]
        unclean = [start for start in firsts if not start.clean]
        return sorted({self.node(start.input) for start in unclean}, key=_by_number), len(unclean) == len(firsts)

    def node(self, number: int) -> str:
        """Return the node of an input, in words."""
        return node_words(self.inputs[number])


_FIRST_WITH_ASSIGNED_DIRECTORIES = KafkaVersion(3, 7)


def _is_before(kafka: str, version: KafkaVersion) -> bool:
    try:
        return parse_version(kafka) < version
    except ValueError:
        return False  # a later version than is modelled


def _is_below(copy: PredictedLog, log: PredictedLog) -> bool:
    """Whether a future log ends where the current one does not begin yet."""
    first = log.before.segments[0][0] if log.before.segments else Absent.UNKNOWN
    start, end = log.before.log_start_offset, copy.before.log_end_offset
    starts = [one for one in (start, first) if isinstance(one, int)]
    return bool(starts) and isinstance(end, int) and end < max(starts)


def node_words(one: Input) -> str:
    """Return the node that an input is of, in words."""
    role = "controller" if one.kind == "controller" else "broker"
    return f"the node at {one.path}" if isinstance(one.broker_id, Absent) else f"{role} {one.broker_id}"


def _by_number(node: str) -> tuple[int, str]:
    """Return the place of a node among others: `broker 2` is before `broker 10`."""
    return len(node), node


def _may_hold_records(log: PredictedLog) -> bool:
    """Whether a log has records before the start, or its end can't be read."""
    end, start, segments = log.before.log_end_offset, log.before.log_start_offset, log.before.segments
    if not segments:
        return False
    return isinstance(end, Absent) or end > (segments[0][0] if isinstance(start, Absent) else start)
