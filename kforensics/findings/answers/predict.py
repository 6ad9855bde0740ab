"""The answer of `predict`: whether each node starts, and what it loses by it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kforensics.damage import Absent
from kforensics.evidence.discovery.partition_dirs import LostDirectory
from kforensics.evidence.model import Input
from kforensics.findings.answers.model import Answer, State, worst_state
from kforensics.findings.answers.start_order import discarded_by_leaders, name_brokers, order_steps, unknown_of_order
from kforensics.protocol.loading.node import UNREGISTERED, Fate
from kforensics.protocol.loading.starts import StartResult
from kforensics.reconcile.logs.predicted_load import (
    DueSegments,
    FurtherEnd,
    LeavingReplica,
    MetadataLoad,
    PredictedLog,
    PredictedStart,
    StartOrder,
    VersionOutcome,
)
from kforensics.words import counted, form, listed

OLDER = "What versions before 0.10 would do, which these files allow too: their loaders are not modelled. If the version is a later one, give it with --kafka."
COPY_FIRST = "Copy the log directories before anything is started: a start that fails changes them too."

FOLLOWERS = (
    "What followers discard once a leader is elected and they truncate to its log: a start only loads the logs. --order over the log "
    "directories of all brokers of a stopped cluster computes it, and diff shows where replicas differ."
)


_INCOMPLETE_METADATA = "; records of the metadata log are missing"


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
    empty: Collection[str] = ()
    """Folders beside its log directories that hold nothing."""
    blank: Collection[str] = ()
    """Log directories of it that hold nothing."""
    formats_blank: bool = True
    """Whether a start makes log directories of empty directories, as a broker with ZooKeeper does."""

    @property
    def is_grave(self) -> bool:
        """Whether the start may come to something else for it: a disk not mounted, or exchanged."""
        return bool(self.empty or (self.missing and self.new))

    def words(self) -> Iterator[str]:
        """Yield what is to be said of it."""
        if self.empty:
            yield (
                f"Next to the log directories of node {self.node_id} there is an empty folder ({', '.join(self.empty)}): if log.dirs names it, a disk is not "
                "mounted. A node without ZooKeeper does not start then; a broker with ZooKeeper creates empty replicas on it."
            )
        if self.blank:
            yield self._words_of_blank()
        if self.configured:
            yield (
                f"server.properties names log directories that are not known to be among those of node {self.node_id} here ({', '.join(self.configured)}): a start reads their "
                "meta.properties and logs too, and may fail on them. Give them."
            )
        if self.missing:
            count = len(self.missing)
            yield (
                f"Node {self.node_id} registered {form(count, 'a log directory', f'{count} log directories')} "
                f"({', '.join(sorted(self.missing))}) that {form(count, 'is', 'are')} not here: what they hold was not read, and partitions assigned "
                "there have no leader on this node until it is back or they are reassigned."
            )
        if self.missing and self.new:
            yield (
                f"Log directories here that node {self.node_id} did not register ({', '.join(sorted(self.new))}): where meta.properties was rewritten "
                "or a disk exchanged, the partitions on it stay without a leader where this node is their only replica."
            )

    def _words_of_blank(self) -> str:
        one = len(self.blank)
        named = (
            f"Whether {form(one, 'the disk', 'the disks')} of {', '.join(self.blank)} {form(one, 'is', 'are')} mounted: server.properties names "
            f"{form(one, 'it as a log directory', 'them as log directories')} of node {self.node_id}, and nothing is in {form(one, 'it', 'them')}."
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedCluster:
    """The starts of all nodes with what is known beside them, and the answer over them."""

    starts: Sequence[PredictedStart]
    logs: Sequence[PredictedLog]
    """What each start makes of each directory."""
    inputs: Sequence[Input]
    kafka: str
    """The version that was played."""
    kafka_source: str
    """`given`, `server-log`, `metadata-log` or `assumed`."""
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
    missing_directories: Collection[MissingDirectories] = ()
    blank_nodes: Collection[int] = ()
    """Inputs of nodes in whose log directories nothing is at all."""
    unclean_nodes: Mapping[int, str] = field(default_factory=dict)
    """By input of a node, why the controller takes its last stop as unclean."""
    unserved: Collection[tuple[int, str]] = ()
    """Input and path of directories without a topic id that become strays, where no replica that their partition is assigned to keeps a log of it."""
    leaving: Sequence[LeavingReplica] = ()
    """Replicas that a reassignment removes from their nodes."""
    order: StartOrder | None = None
    """The order in which to start the brokers, where it was asked for."""
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

    def answer(self) -> Answer:
        """Return the answer over all starts."""
        states = set(self._states())
        unknown = tuple(self._unknown())
        if self.allows_older:
            unknown = (OLDER, *unknown)
        if self.twice:
            named = (self.inputs[one] for one in self.twice)
            paths = listed(
                [_node(one) if isinstance(one.broker_id, Absent) else f"{_node(one)} at {one.path}" for one in named],
                most=4,
            )
            unknown = (f"Which of these is the state that is started: {paths}. Each is started by itself.", *unknown)
        if self.side_by_side:
            nodes = listed([_node(self.inputs[one]) for one in self.side_by_side])
            together = (
                f"Whether {nodes} are nodes of their own: their log directories lie in one folder, and a start that finds them together in its "
                "log.dirs is refused for their ids. Give the server.properties of each."
            )
            unknown = (together, *unknown)
        if (
            self.versions
            or self.left_out
            or self.has_problems
            or self.allows_older
            or self.side_by_side
            or self.not_migrated
            or any(one.is_grave for one in self.missing_directories)
        ):
            states.add(State.UNKNOWN)
        state = worst_state("predict", states) or State.UNKNOWN
        elsewhere = [one for one in self.missing_directories if one.missing or one.configured]
        if state is State.STARTS_UNCHANGED and (self.is_partial or self.unknown_strays or elsewhere):
            state = State.UNKNOWN
        outcome = state
        certain, possible = discarded_by_leaders(self.order)
        if certain or possible:
            state = worst_state("predict", {state, State.LOSES}) or state
        ended_early = self._ended_early()
        brokers_without_logs = [] if self.is_partial else self._without_logs()
        is_in_doubt = (
            any(one.configured or one.blank for one in self.missing_directories)
            or ended_early
            or self.lost
            or any(one.lost_before for one in self.metadata_logs)
            or self._aged()
            or brokers_without_logs
            or any(log.due is Absent.UNREADABLE for log in self._reached())
            or (self.order is not None and self.order.missing)
            or self.twice
            or self.leaving
            or self._without_segment()
            or self._filled_strays()
        )
        if is_in_doubt and state in {State.STARTS_UNCHANGED, State.STARTS_AND_REPAIRS}:
            state = State.UNKNOWN
        return Answer(
            state=state,
            headline=(
                f"In any order of starts, followers discard at least {counted(certain + possible, 'record')} ({certain:,} certainly committed). "
                if certain or possible
                else ""
            )
            + (f"As if {', '.join(self.without)} were not there: " if self.without else "")
            + self._headline(outcome, self._versions())
            + (
                f" No log is on the disk of {listed([_node(one) for one in brokers_without_logs])}: it is new or was emptied."
                if brokers_without_logs
                else ""
            )
            + "".join(
                f" {', '.join(one.blank)} {form(len(one.blank), 'is', 'are')} empty: new, emptied, or not mounted."
                for one in self.missing_directories
                if one.blank
            )
            + (
                f" {counted(len(self.lost), 'partition')} that checkpoints name {form(len(self.lost), 'has', 'have')} no directory here."
                if self.lost
                else ""
            )
            + (f" Not every log directory of node {elsewhere[0].node_id} is here." if elsewhere else "")
            + (
                f" What {name_brokers(self.order.missing)} {form(len(self.order.missing), 'holds', 'hold')} is not known."
                if self.order and self.order.missing
                else ""
            ),
            now=(*self._now(state), *(order_steps(self.order) if self.order else ())),
            later=(
                *self._retention(),
                *self._unclean_registrations(),
            ),
            unknown=(
                *self._crash_now(),
                *(
                    [f"Which version is started: Kafka {self.kafka} is assumed. Give it with --kafka."]
                    if self.kafka_source == "assumed"
                    else []
                ),
                *(
                    f"Which version {_node(self.inputs[node])} is started with: Kafka {version} is assumed."
                    for node, version in self.assumed_nodes.items()
                ),
                *(words for one in self.missing_directories for words in one.words()),
                *(
                    f"Whether the disk of {_node(one)} is new or was emptied: no log of a partition is on it. A broker that is elected with an empty log "
                    "makes the other replicas truncate theirs: give the others and a metadata log to diff before it is started."
                    for one in brokers_without_logs
                ),
                *self._leaving(),
                *([FOLLOWERS] if self.order is None and self._reached() else []),
                *unknown,
                *_gone_before(ended_early),
                *self._gone_segments(),
                *self._held_by_strays(),
                *self._without_directory(),
                *(
                    f"Whether records of the metadata log of {_node(self.inputs[one.input])} are lost: {one.path}: {one.lost_before}. Compare the metadata logs of "
                    "all voters with `kforensics metadata` before a controller starts: voters that lack committed records can elect one that lacks them too."
                    for one in self.metadata_logs
                    if one.lost_before
                ),
                *(unknown_of_order(self.order) if self.order else ()),
            ),
        )

    def _unclean_registrations(self) -> Iterator[str]:
        """Yield which nodes the controller takes out of every ISR and ELR, those with one reason together."""
        by_reason: dict[str, list[str]] = {}
        for node, reason in self.unclean_nodes.items():
            by_reason.setdefault(reason, []).append(_node(self.inputs[node]))
        for reason, names in by_reason.items():
            yield (
                f"When {listed(names, most=4)} {form(len(names), 'registers', 'register')}, the controller takes {form(len(names), 'it', 'each')} "
                f"out of every ISR and ELR: {reason}."
            )

    def _leaving(self) -> Iterator[str]:
        """Yield which replicas are strays where a reassignment completes before the start."""
        shown = []
        for one in self.leaving:
            path = f"{self.inputs[one.cited.input].path.rstrip('/')}/{one.cited.path}"
            shown.append(
                f"{one.path} of {_node(self.inputs[one.node])} (offset {one.offset} of the metadata log, in {path})"
            )
        if shown:
            count = len(shown)
            yield (
                f"Whether {form(count, 'a replica is', f'{count} replicas are')} still assigned when {form(count, 'its broker is', 'their brokers are')} started: "
                f"a reassignment removes {listed(shown, most=4)}. Where it completes before, the directory is a stray, which Kafka 3.0 to 3.6 deletes and 3.7 and later "
                "renames: its records are not served there."
            )

    def _states(self) -> Iterator[State]:
        for start in self.starts:
            if isinstance(start.result, Absent):
                yield State.UNKNOWN
            elif start.result is not StartResult.STARTS:
                yield State.UNKNOWN if self._unreadable_only(start) else State.WILL_NOT_START
        for log in self.logs:
            if not log.is_reached:
                continue
            due = log.due if isinstance(log.due, DueSegments) and log.due.is_setting_known else None
            if log.outcome == "unknown":
                yield State.UNKNOWN
            elif log.lost.records or (due is not None and due.is_whole_log) or self._is_unserved(log):
                yield State.LOSES
            else:
                yield State.STARTS_AND_REPAIRS if log.is_changed or due is not None else State.STARTS_UNCHANGED
        for one in self.metadata_logs:
            if one.unknown:
                yield State.UNKNOWN
            elif one.lost.records:
                yield State.LOSES if one.lost.only_here else State.STARTS_AND_REPAIRS
        if self.starts:
            yield State.STARTS_UNCHANGED

    def _reached(self) -> list[PredictedLog]:
        """Each log once, by the last start that comes as far as loading it."""
        return list({(log.input, log.path): log for log in self.logs if log.is_reached}.values())

    def _aged(self) -> list[PredictedLog]:
        """Return the logs of which retention leaves nothing, by settings that are known or by the defaults."""
        return [log for log in self._reached() if isinstance(log.due, DueSegments) and log.due.is_whole_log]

    def _ended_early(self) -> list[PredictedLog]:
        """Return the logs that ended further back before any start, as files beside them show: their last records may be lost."""
        found = {
            (log.input, log.path): log
            for log in self.logs
            if log.start == 1 and log.is_reached and log.fate is Fate.KEPT and not isinstance(log.further_end, Absent)
        }
        return [found[key] for key in sorted(found)]

    def _without_segment(self) -> list[PredictedLog]:
        """Return the logs of which indexes are here and no segment, and of which nothing says how long they were."""
        return [
            log
            for log in self._reached()
            if log.start == 1
            and log.fate is Fate.KEPT
            and log.outcome == "loads"
            and log.has_only_indexes
            and isinstance(log.further_end, Absent)
            and not isinstance(log.partition, Absent)
            and not log.path.endswith(("-delete", "-future", "-stray"))
        ]

    def _gone_segments(self) -> Iterator[str]:
        found = self._without_segment()
        if found:
            yield (
                f"Whether {listed([log.path for log in found], most=4)} held records: only indexes and no .log file are there, and a start creates an empty log. "
                "Look for its segments (other copies, lost+found) before it."
            )

    def _filled_strays(self) -> list[PredictedLog]:
        """Return the logs with records that are renamed to -stray and not served any more."""
        return [
            log
            for log in self._reached()
            if log.fate is Fate.STRAY and not log.path.endswith("-future") and _may_hold_records(log)
        ]

    def _is_unserved(self, log: PredictedLog) -> bool:
        return log.fate is Fate.STRAY and (log.input, log.path) in self.unserved and _may_hold_records(log)

    def _held_by_strays(self) -> Iterator[str]:
        found = [log for log in self._filled_strays() if not self._is_unserved(log)]
        if found:
            shown = [f"{log.path} of {_node(self.inputs[log.input])}" for log in found]
            yield (
                f"Whether another replica holds what is not served any more: {listed(shown, most=4)}. A stray stays on the disk, and may be the last full copy. "
                "diff says what other replicas hold."
            )

    def _without_directory(self) -> Iterator[str]:
        if self.lost:
            shown = [
                f"{one.topic_partition} (line {one.value.citation.line} of {one.value.citation.path} says {one.value.value})"
                for one in self.lost
            ]
            yield (
                f"What became of the directories of {listed(shown, most=4)}: a start creates an empty log of a partition that is assigned, and the other replicas "
                "truncate theirs where it is elected. Look for them (lost+found, other copies) before it."
            )

    def _without_logs(self) -> list[Input]:
        """Return the brokers that have no log of a partition; a controller alone has none, and of empty directories more is said."""
        holding = {log.node for log in self.logs} | {*self.blank_nodes}
        return [
            self.inputs[start.input]
            for start in self.starts
            if start.number == 1 and start.input not in holding and self.inputs[start.input].kind != "controller"
        ]

    def _unreadable_only(self, start: PredictedStart) -> bool:
        """Whether a start fails for nothing but files that can't be read here."""
        failed = [
            log for log in self.logs if (log.node, log.start) == (start.input, start.number) and log.outcome == "fails"
        ]
        return start.loads_logs and bool(failed) and all(log.is_unreadable for log in failed)

    def _headline(self, state: State, version: str) -> str:
        """Return the answer in a line; what it leaves out is in the parts of the answer that follow."""
        if state is State.WILL_NOT_START:
            return self._not_starting(version) + (f" {self._lost(version)}" if self._last_losing() else "")
        nodes, are_all = self._unclean()
        loads = f"As after a crash{'' if are_all else f' of {listed(nodes)}'}, " if nodes else ""
        if self._last_losing():
            return loads + self._lost(version)
        if state is State.UNKNOWN and (self.logs or self.metadata_logs):
            return f"{loads}{'what' if loads else 'What'} {version} does to some of these logs is not known."
        if not self.logs:
            incomplete = (
                _INCOMPLETE_METADATA.removeprefix("; ")
                if any(one.lost_before for one in self.metadata_logs)
                else "no log of a partition is here"
            )
            return f"Nothing here keeps {version} from starting; {incomplete}."
        but = next(self._but(), "")
        rest = " as they are" if state is State.STARTS_UNCHANGED else ", and loading discards no record"
        return f"{loads}{version} loads {self._all()}{but or rest}."

    def _versions(self) -> str:
        """Return the versions that load logs, in words."""
        loading = {log.node for log in self.logs}
        return f"Kafka {listed(list(dict.fromkeys(start.kafka for start in self.starts if start.input in loading)) or [self.kafka])}"

    def _but(self) -> Iterator[str]:
        """Yield what keeps a start from being as calm as its logs loading, the gravest first."""
        truncated = next((one for one in self.metadata_logs if one.lost.records), None)
        if truncated is not None:
            yield f", but discards {counted(truncated.lost.records, 'record')} of the metadata log"
        if any(one.lost_before for one in self.metadata_logs):
            yield _INCOMPLETE_METADATA
        due = [log.due for log in self._reached() if isinstance(log.due, DueSegments)]
        whole = [one for one in due if one.is_whole_log]
        known = [one for one in whole if one.is_setting_known]
        if known:
            yield f"; retention then deletes all of {len(known):,}"
        ended = self._ended_early()
        if ended:
            yield f"; {counted(len(ended), 'log')} may have lost {form(len(ended), 'its', 'their')} end before"
        bare = self._without_segment()
        if bare:
            yield f"; of {counted(len(bare), 'log')} no segment is here, and {form(len(bare), 'an empty one is', 'empty ones are')} created"
        torn = [log for log in self._reached() if any(after < before for _, before, after in log.scanned)]
        if torn:
            yield f"; what it truncates of {counted(len(torn), 'log')} is no whole batch"
        strays = [log for log in self._reached() if log.fate is Fate.STRAY]
        if strays:
            unserved = {(log.topic, log.partition) for log in strays if self._is_unserved(log)}
            none_kept = f", and no replica of {counted(len(unserved), 'partition')} is kept" if unserved else ""
            yield f"; {len(strays):,} {form(len(strays), 'is a stray', 'are strays')}, renamed and not served{none_kept}"
        if self.leaving:
            yield f"; {len(self.leaving):,} may be {form(len(self.leaving), 'a stray', 'strays')} by then"
        if whole:
            yield f"; default retention would delete all of {len(whole):,}"
        deleted = sum(len(one.base_offsets) for one in due if one.is_setting_known)
        if deleted:
            yield f"; retention then deletes {counted(deleted, 'segment')}"

    def _unclean(self) -> tuple[list[str], bool]:
        """Nodes whose first start finds no marker, and whether all do; a controller alone never writes one."""
        loading = {log.node for log in self.logs}
        firsts = [start for start in self.starts if start.number == 1 and start.input in loading]
        unclean = [start for start in firsts if not start.clean]
        return list(dict.fromkeys(_node(self.inputs[start.input]) for start in unclean)), len(unclean) == len(firsts)

    def _crash_now(self) -> Iterator[str]:
        nodes, _ = self._unclean()
        if nodes:
            count = len(nodes)
            yield (
                f"Whether {listed(nodes)} {form(count, 'was', 'were')} killed or {form(count, 'is', 'are')} still running: there is no clean-shutdown "
                f"marker. If {form(count, 'it', 'one')} is running, this is what a crash now would do."
            )

    def _retention(self) -> Iterator[str]:
        """Yield what retention deletes by settings that are known."""
        due = [log.due for log in self._reached()]
        known = [one for one in due if isinstance(one, DueSegments) and one.is_setting_known]
        if known:
            whole = sum(one.is_whole_log for one in known)
            everything = f", all that {whole:,} of them {form(whole, 'holds', 'hold')}" if whole else ""
            segments = counted(sum(len(one.base_offsets) for one in known), "segment")
            yield f"Some 30 seconds after the start retention deletes {segments} of {counted(len(known), 'log')}{everything}."

    def _not_starting(self, version: str) -> str:
        bad = [start for start in self.starts if start.result not in {StartResult.STARTS, Absent.UNKNOWN}]
        first = bad[0]
        node = _node(self.inputs[first.input])
        others = len({start.input for start in bad}) - 1
        node = f"{node[0].upper()}{node[1:]}" + (f" (and {others} more)" if others else "")
        if first.result is StartResult.DIRECTORY_OFFLINE:
            return f"{node} takes a log directory offline with {version}: {first.exception}."
        if not first.loads_logs:
            return f"{node} does not start with {version}, and loads no log: {first.exception}."
        strays = [log for log in self.logs if log.node == first.input and log.fate is Fate.STRAY]
        if first.exception == UNREGISTERED and strays:
            return f"{node} does not start with {version}, and renames {counted(len(strays), 'log')} to -stray: {first.exception}."
        later = [start for start in self.starts if start.input == first.input and start.number > first.number]
        again = ""
        if later:
            again = (
                f" Start {later[-1].number} succeeds."
                if later[-1].result is StartResult.STARTS
                else " Nor does it later."
            )
        return f"{node} does not start with {version}: {first.exception}.{again}"

    def _lost(self, version: str) -> str:
        losing = self._last_losing()
        records = sum(log.lost.records for log in losing)
        certain = sum(log.lost.certain for log in losing)
        only = sum(log.lost.only_here for log in losing)
        partitions = len({(log.input, log.path) for log in losing})
        return (
            f"{version} discards {counted(records, 'record')} of {counted(partitions, 'log')}: {certain:,} certainly committed, "
            f"{only:,} in no other log given."
        )

    def _last_losing(self) -> list[PredictedLog]:
        """Return the logs that lose records, each once: a later start that truncates the same log again counts what it truncates."""
        return [log for log in self.logs if log.lost.records and log.is_reached]

    def _now(self, state: State) -> Iterator[str]:
        strays = [log for log in self.logs if log.fate in {Fate.STRAY, Fate.DELETED} and log.is_reached]
        aged = self._aged()
        if state not in {State.WILL_NOT_START, State.LOSES} and not strays and not aged:
            return
        yield COPY_FIRST
        if aged:
            yield (
                f"Raise retention before the start if these records are to stay: all of {listed([log.path for log in aged], most=4)}. "
                "--ways-out compares it."
            )
        unserved = [log.path for log in self._reached() if self._is_unserved(log)]
        if unserved:
            yield (
                f"Put partition.metadata with the topic id back into {listed(list(dict.fromkeys(unserved)), most=4)} before any broker is started: "
                "else these partitions begin empty."
            )
        for start in self.starts:
            if not start.loads_logs or start.exception == UNREGISTERED:
                yield f"{self._first_step(start)} of {_node(self.inputs[start.input])} first: {start.reason.rstrip('.')}."
        for log in self._last_losing():
            if log.lost.only_here:
                yield f"Save {log.path} of {_node(self.inputs[log.input])}: {log.lost.only_here:,} of its records are on no other replica given."
            else:
                whole = [holder for holder in log.lost.held_by if holder.records == log.lost.records]
                held = " and ".join(
                    _holder(self.inputs[holder.input], self.inputs[log.input]) for holder in whole or log.lost.held_by
                )
                yield f"Keep {held}, which {form(len(whole), 'holds', 'hold')} what {log.path} of {_node(self.inputs[log.input])} discards."

    def _first_step(self, start: PredictedStart) -> str:
        if start.exception == "ConfigException":
            return "Mend the settings"
        return "Check the mount" if start.input in self.blank_nodes else "Mend the identity"

    def _unknown(self) -> Iterator[str]:
        failed = {start.input for start in self.starts if start.result not in {StartResult.STARTS, Absent.UNKNOWN}}
        if failed & set(self.zookeeper_nodes):
            yield "What a second start does: a broker with ZooKeeper that fails to start may write its marker and recovery points again."
        for log in self.logs:
            if log.outcome == "unknown":
                yield f"What becomes of {log.path}: {log.message}."
            elif log.is_unreadable and log.outcome == "fails":
                yield f"What becomes of {log.path} where the broker can read what can't be read here: {log.message}."
        for one in self.metadata_logs:
            if one.unknown:
                yield f"What becomes of the metadata log {one.path}: {one.unknown}."
        for (node, ending), alike in self._by_ending().items():
            it = form(len(alike), "it", "each")
            yield (
                f"Kafka {listed(alike)} would do something else than {self.kafka} on the files of {_node(self.inputs[node])}: {it} {ending}. "
                "Give the version with --kafka."
            )
        if self.left_out:
            yield f"Partition directories alone have neither marker nor checkpoints: {', '.join(self.left_out)}. Give their log directory."
        if self.is_partial:
            yield "What becomes of the other partitions, any of which may end the start: only those asked for were read."
        if self.unknown_strays:
            nodes = ", ".join(_node(self.inputs[one]) for one in self.unknown_strays)
            yield (
                f"Which directories of {nodes} are strays, which Kafka 3.0 to 3.6 deletes and 3.7 renames: no metadata log that can be read whole "
                "is among the inputs. Give a controller's."
            )
        due = [log.due for log in self._reached()]
        assumed = [one for one in due if isinstance(one, DueSegments) and not one.is_setting_known]
        if assumed:
            yield (
                f"What retention deletes some 30 seconds later: by Kafka's defaults (7 days, no size), which are assumed, segments of "
                f"{counted(len(assumed), 'log')} are due, all of {sum(one.is_whole_log for one in assumed):,}. Give server.properties among the inputs, "
                "or --set log.retention.ms=…; --now is the time of the start."
            )
        unread = sum(one is Absent.UNREADABLE for one in due)
        if unread:
            yield f"What retention deletes of {counted(unread, 'log')}, whose time indexes can't be read."
        for node, version in self.not_migrated.items():
            yield (
                f"Whether {_node(self.inputs[node])} starts at all: its meta.properties is of a broker with ZooKeeper, "
                + (
                    "and its server.properties of a node without. Which of its logs are strays then, the metadata log of the cluster decides."
                    if node in self.with_roles
                    else f"with whose settings Kafka {version} ends with ConfigException. A cluster migrates to KRaft by Kafka 3.x. Give the server.properties that it will be started with."
                )
            )
        if self.zookeeper_nodes:
            yield "Which partitions a broker with ZooKeeper deletes when it starts: only ZooKeeper knows."
        yield "Whether another process holds a log directory's lock, and whether the disk has room: files do not say it."

    def _by_ending(self) -> Mapping[tuple[int, str], list[str]]:
        """Return the versions that end in the same words, by node and these words."""
        found: dict[tuple[int, str], list[str]] = {}
        for one in self.versions:
            found.setdefault((one.input, _ends(one)), []).append(one.kafka)
        return found

    def _all(self) -> str:
        count = len({(log.input, log.path) for log in self.logs})
        return "its only log" if count == 1 else f"all {count:,} logs"


def _gone_before(logs: Sequence[PredictedLog]) -> Iterator[str]:
    if logs:
        shown = [
            f"{log.path} ({log.further_end.file} says {log.further_end.offset}, {_end_words(log.before.log_end_offset)})"
            for log in logs
            if isinstance(log.further_end, FurtherEnd)
        ]
        yield (
            f"Whether records are lost that these logs held before any start: {listed(shown, most=4)}. "
            "diff says what other replicas hold."
        )


def _may_hold_records(log: PredictedLog) -> bool:
    """Whether a log has records before the start, or its end can't be read."""
    end, start, segments = log.before.log_end_offset, log.before.log_start_offset, log.before.segments
    if not segments:
        return False
    return isinstance(end, Absent) or end > (segments[0][0] if isinstance(start, Absent) else start)


def _end_words(end: int | Absent) -> str:
    return "it has no segment" if isinstance(end, Absent) else f"it ends at {end}"


def _holder(holder: Input, of: Input) -> str:
    """Return who holds records that a node discards: another node, or an earlier copy of its own disk."""
    is_same = not isinstance(of.broker_id, Absent) and holder.broker_id == of.broker_id
    return f"the copy of {_node(holder)} at {holder.path}" if is_same else _node(holder)


def _ends(other: VersionOutcome) -> str:
    if isinstance(other.result, Absent):
        return "can't be predicted"
    if other.result is StartResult.STARTS:
        return "starts, with other files"
    return f"ends with {other.exception} ({other.result})"


def _node(one: Input) -> str:
    return f"the node at {one.path}" if isinstance(one.broker_id, Absent) else f"broker {one.broker_id}"
