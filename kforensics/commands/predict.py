"""What `predict` does: predicts the start of each node over its log directories, start after start, until one ends well or nothing changes."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kforensics.ask.model import Ask
from kforensics.case.cluster import ReadBefore, read_before
from kforensics.case.model import Case, tell
from kforensics.case.processes import default_jobs
from kforensics.case.settings import Surroundings, look_around, parse_settings
from kforensics.case.wanted import check_wanted
from kforensics.commands.graver import no_calmer, no_calmer_than_cleaners, no_calmer_than_tiers
from kforensics.commands.lost_records import find_lost_records
from kforensics.commands.predicting.cluster import (
    compare_followers,
    find_order,
    leaving_replicas,
    made_empty,
    returning_leaders,
    unseen_leaders,
)
from kforensics.commands.predicting.directories import Reads
from kforensics.commands.predicting.log_starts import Ahead, Alike, Conditions, Outcomes, what_matters
from kforensics.commands.predicting.node_starts import ListedLogs, NodeStarter, NodeStarts
from kforensics.commands.predicting.nodes import (
    RANK,
    ConfiguredNode,
    Node,
    NodeVersion,
    check_version,
    configured_nodes,
    find_start_inputs,
    given_version,
    nodes_of,
    side_by_side,
    version_of_node,
)
from kforensics.commands.predicting.tiered_logs import TieredLogs
from kforensics.commands.predicting.ways_out import WaysOut
from kforensics.commands.result import Conclusion, Result, now_ms
from kforensics.damage import Absent
from kforensics.errors import UsageError
from kforensics.evidence.broker_logs import LogFile
from kforensics.evidence.discovery.inputs import Inputs, belonging_together, has_log_files
from kforensics.evidence.discovery.partition_dirs import LostDirectory, find_places, log_dir_states, lost_directories
from kforensics.evidence.metadata.files import unexplained, with_roles
from kforensics.evidence.metadata.set_back import absent_controllers
from kforensics.evidence.model import Citation, Problem
from kforensics.findings.answers.predict import predict_answer
from kforensics.findings.answers.predict_cluster import MissingDirectories, PredictedCluster
from kforensics.findings.answers.predict_steps import start_of_log
from kforensics.findings.model import Finding
from kforensics.findings.rules.directories import future_finding, misnamed_finding
from kforensics.findings.rules.upkeep import empty_coordinator_finding
from kforensics.formats.checkpoint.json_files import QuorumState
from kforensics.formats.log_lines.event import LogEventKind
from kforensics.protocol.coordinators import loads_without_end
from kforensics.protocol.loading.node import FIRST_WITHOUT_ZOOKEEPER, Fate, migration_words
from kforensics.protocol.loading.starts import StartResult
from kforensics.protocol.loading.versions import AskedVersion
from kforensics.protocol.versions import parse_version
from kforensics.reconcile.logs.predicted_load import (
    LostPiece,
    MetadataLoad,
    PredictedLog,
    PredictedStart,
    StartOrder,
    VersionOutcome,
    WayOut,
)
from kforensics.source.capture import split_at_capture
from kforensics.source.mapped import directories_held, read_rate_is_limited
from kforensics.source.naming import parse_partition_directory
from kforensics.source.walk import join
from kforensics.units import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, Depth, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """All starts of all nodes."""

    kafka: str
    """The version that is started; of several nodes with several versions the newest, of those with logs where one has some."""
    kafka_source: str
    """A key of `RANK`; of several such nodes the weakest."""
    starts: tuple[PredictedStart, ...]
    logs: tuple[PredictedLog, ...]
    metadata_logs: tuple[MetadataLoad, ...] = ()
    versions: tuple[VersionOutcome, ...] = ()
    """The results by other versions that the evidence allows, where they differ."""
    ways_out: tuple[WayOut, ...] = ()
    """The best first, node by node; none where they were not asked for."""
    order: StartOrder | None = None
    depth: Depth = Depth.CONTENT


def run(request: Ask, *, case: Case | None = None) -> Result[Prediction]:
    """Predict the starts.

    Args:
        case: of the same inputs as they are now, whose facts need not be read again; None where nothing has been asked of them.

    Raises:
        EvidenceError: a path can't be used, or with `keep_going` none can.
        UsageError: a version that is not modelled, no log directory among the inputs, or no partition that was asked for.
    """
    inputs = find_start_inputs(request.paths, keep_going=request.keep_going)
    if request.cluster is not None:
        inputs = belonging_together(inputs, cluster=request.cluster)
    inputs = with_roles(inputs)
    configured = configured_nodes(inputs)
    if case is not None:
        inputs = _listed_beside(inputs, case.inputs)
    inputs, nodes = nodes_of(inputs, configured)
    if case is not None and inputs.described != case.inputs.described:
        case = None  # an empty disk is a log directory for a start alone
    if not nodes:
        message = "predict needs whole log directories, with their marker and checkpoints; none is among the inputs"
        raise UsageError(message)
    if request.topics or request.partitions:
        check_wanted(request, find_places(inputs).by_partition)
    parse_settings(request.settings)
    if request.kafka is not None:
        check_version(request.kafka)
    problems = [
        *inputs.problems,
        *(
            Problem(input=number, path=met.path, message=met.message)
            for number, found in enumerate(inputs.found)
            for met in found.obstacles
        ),
    ]
    ids = [node.node_id for node in nodes if not isinstance(node.node_id, Absent)]
    log_files = _log_files(inputs, frozenset(ids), problems)
    surroundings = look_around(inputs, log_files, problems, case=case, is_of_one_moment=len(ids) == len(set(ids)))
    given = None if request.kafka is None else given_version(request.kafka, surroundings.history)
    starting = _Nodes(request, inputs, surroundings, nodes, given)
    started = starting.start_all()
    problems += [problem for one in started for problem in one.problems]
    known = Case(ask=request, inputs=inputs) if case is None else case.asked(request)
    if case is None and (log_files or not has_log_files(inputs)):
        tell(known, read_before, ReadBefore(surroundings.histories, surroundings.log_files, {}))
    logs = _with_lost_records(inputs, tuple(log for one in started for log in one.logs), problems)
    now = now_ms() if request.now_ms is None else request.now_ms
    tiered = TieredLogs(known, surroundings, now_ms=now, node_count=len(nodes))
    logs = tuple(map(tiered.on_disk, logs))
    if surroundings.quorum is None:  # else controllers may go on without the record of a deletion
        logs = _with_deletions(logs, known)
    starts = tuple(start for one in started for start in one.starts)
    metadata_logs = _metadata_logs(inputs, started, problems)
    versions = starting.others(started)
    # A controller alone registers no version before 3.7: what is said of logs is said of the nodes that have some.
    loading = [one for one in started if one.logs] or started
    body = Prediction(
        kafka=max(loading, key=lambda one: (one.version, one.is_later)).kafka,
        kafka_source=max((starting.versions[one.node.first].source for one in loading), key=RANK.__getitem__),
        starts=starts,
        logs=logs,
        metadata_logs=metadata_logs,
        versions=versions,
        depth=request.depth or Depth.CONTENT,
        ways_out=tuple(way for one in started for way in starting.ways_out(one, logs, problems))
        if request.ways_out
        else (),
        order=_order(request, nodes, case) if request.order else None,
    )
    lost = [] if request.topics or request.partitions else _lost_directories(inputs, problems)
    cluster = starting.cluster(
        known, started, body, configured, lost=lost, has_problems=any(not one.is_foreign for one in problems)
    )
    if log_files:
        cluster = replace(
            cluster,
            log_says=_log_says(log_files, frozenset(ids)),
            disks_say=_log_says(log_files, frozenset(ids), of_disks=True),
        )
    cluster = replace(cluster, remote=tuple(tiered.expiring(logs)))
    endless = tuple(_endless(started, inputs))
    answer = predict_answer(cluster)
    if endless:
        said = f"{answer.headline} {endless[0].statement}."
        answer = replace(answer, headline=said, now=(*answer.now, endless[0].advice))
    return Result(
        command="predict",
        inputs=inputs.described,
        body=body,
        concluded=no_calmer_than_cleaners(
            no_calmer(
                "predict",
                no_calmer_than_tiers(
                    Conclusion(answer=answer, findings=(*_of_disks(cluster), *endless), problems=tuple(problems)),
                    known,
                ),
                known,
            ),
            known,
        ),
    )


def _listed_beside(inputs: Inputs, others: Inputs) -> Inputs:
    """Return inputs of which what others have listed is not listed again."""
    known = {one.root: one.listings for one in others.found}
    return replace(
        inputs,
        found=tuple(
            replace(one, listings=one.listings.beside(known[one.root])) if one.root in known else one
            for one in inputs.found
        ),
    )


def _endless(started: Sequence[NodeStarts], inputs: Inputs) -> Iterator[Finding]:
    """Yield the partitions of coordinators that the version which is started never ends loading."""
    seen: set[tuple[int, str]] = set()
    for one in started:
        for log in one.logs if loads_without_end(one.version) else ():
            if log.topic not in {OFFSETS_TOPIC, TRANSACTIONS_TOPIC} or isinstance(log.after, Absent):
                continue
            bases = [base for base, length in log.after.segments if not length]
            is_served = log.is_reached and log.fate is Fate.KEPT and (log.input, log.path) not in seen
            if is_served and 1 < len(bases) == len(log.after.segments) and isinstance(log.partition, int):
                seen.add((log.input, log.path))
                about = {
                    "topic_partition": TopicPartition(str(log.topic), log.partition),
                    "broker_id": inputs.described[log.node].broker_id,
                    "citations": (Citation(input=log.input, path=log.path),),
                }
                yield empty_coordinator_finding(log.path, bases, about=about, starting=one.kafka)


def _of_disks(cluster: PredictedCluster) -> Iterator[Finding]:
    """Yield the directories under the name of another topic, and the moves between log directories that can't go on once the nodes run."""
    for (number, path), topic in cluster.misnamed.items():
        if (named := parse_partition_directory(path.rpartition("/")[2])) is not None:
            where = Citation(input=number, path=path)
            yield misnamed_finding(named.topic_partition, cluster.inputs[number].broker_id, where, topic)
    for log, copy in cluster.stuck_futures:
        start, end = start_of_log(log), copy.before.log_end_offset
        if (
            isinstance(log.topic, str)
            and isinstance(log.partition, int)
            and isinstance(start, int)
            and isinstance(end, int)
        ):
            yield future_finding(
                partition=TopicPartition(log.topic, log.partition),
                broker_id=cluster.inputs[log.node].broker_id,
                future=(Citation(input=copy.input, path=copy.path), end),
                current=(Citation(input=log.input, path=log.path), start),
            )


def _log_says(log_files: Sequence[LogFile], nodes: frozenset[int], *, of_disks: bool = False) -> str:
    """Return how the last starts of nodes failed by their own lines, or which log directories they went on without, in sentences."""
    from kforensics.case.broker_logs import logged_evidence  # noqa: PLC0415 - for broker logs alone
    from kforensics.reconcile.observed.node_failures import failure_words, node_failures  # noqa: PLC0415

    failures = node_failures(logged_evidence(log_files, ()).events)
    return failure_words(
        [
            one
            for one in failures
            if (one.directory if of_disks else one.is_start)
            and (isinstance(one.node_id, Absent) or one.node_id in nodes)
        ]
    )


def _lost_directories(inputs: Inputs, problems: list[Problem]) -> Sequence[LostDirectory]:
    """Return the partitions that checkpoints name and of which their node holds no directory."""
    states = [state for number, one in enumerate(inputs.found) for state in log_dir_states(number, one, []).values()]
    if not any(state.without_directory or state.other_case for state in states):
        return ()
    held = [
        (number, name.topic_partition)
        for number, one in enumerate(inputs.found)
        for log_dir in one.log_dir_paths
        for entry in one.listings.of(log_dir).entries
        if entry.is_directory and (name := parse_partition_directory(entry.name)) is not None
    ]
    lost, left_out = lost_directories(states, held)
    problems += left_out
    return unexplained(lost, inputs)


def order_of(case: Case) -> StartOrder:
    """Return the order in which to start the nodes of a case, without playing their starts.

    Raises:
        EvidenceError: a path can't be used.
        UsageError: there are not several nodes, each once.
    """
    inputs = find_start_inputs(case.ask.paths, keep_going=case.ask.keep_going)
    inputs, nodes = nodes_of(inputs, configured_nodes(inputs))
    return _order(case.ask, nodes, case if inputs.described == case.inputs.described else None)


def _order(request: Ask, nodes: Sequence[Node], case: Case | None) -> StartOrder:
    ids = [node.node_id for node in nodes]
    if len(set(ids)) < 2 or len(set(ids)) < len(ids):
        raise UsageError(
            "--order compares the brokers of one stopped cluster: name the log directories of all of them, each once"
        )
    return find_order(request, case)


def _log_files(inputs: Inputs, nodes: frozenset[int], problems: list[Problem]) -> tuple[LogFile, ...]:
    """Server logs among the inputs; what can't be read of one in which no start of these nodes can be is no gap."""
    if not has_log_files(inputs):
        return ()
    from kforensics.case.broker_logs import read_own_logs  # noqa: PLC0415 - for broker logs alone

    log_files, met = read_own_logs(inputs)
    needless = {(one.input, one.path) for one in log_files if nodes and _says_nothing_of(nodes, one)}
    problems += [replace(one, is_foreign=one.is_foreign or (one.input, one.path) in needless) for one in met]
    return log_files


_OF_A_START = frozenset({LogEventKind.VERSION, LogEventKind.CONFIGURATION})
"""What is taken from log files: the version that was started last, and its settings."""


def _says_nothing_of(nodes: frozenset[int], file: LogFile) -> bool:
    """Whether a file is of other nodes, or what was left out of it, since no line says whose it is, are no lines of a start."""
    if file.nodes and nodes.isdisjoint(file.nodes):
        return True
    return bool(file.unowned) and not file.unowned & _OF_A_START and len(file.problems) == 1


class _Nodes:
    """The starts of all nodes, under the version of each."""

    def __init__(
        self,
        request: Ask,
        inputs: Inputs,
        surroundings: Surroundings,
        nodes: Sequence[Node],
        given: NodeVersion | None,
    ) -> None:
        self._request, self._around, self._nodes = request, surroundings, nodes
        self._now_ms = now_ms() if request.now_ms is None else request.now_ms
        self._inputs = inputs
        self._without = _without(request, inputs)
        self._outcomes: Outcomes | None = {} if request.ways_out else None
        self._jobs = 1 if read_rate_is_limited() else request.jobs or default_jobs()
        self.reads: Reads = {}
        self._alike: Alike = {}
        self._listed: ListedLogs = {}
        self.versions = {
            node.first: given or version_of_node(node, surroundings, is_alone=len(nodes) == 1) for node in nodes
        }

    def conditions(self, node: Node) -> Conditions:
        version = self.versions[node.first]
        return Conditions(
            version=version.version,
            is_inferred=version.source != "given",
            newer=version.newer,
            now_ms=self._now_ms,
            topics=self._request.topics,
            partitions=self._request.partitions,
            settings=self._request.settings,
            without=self._without,
        )

    def start_all(self) -> list[NodeStarts]:
        """Return the starts of the nodes: of voters first, since no broker is let in where too few of them start."""
        history = self._around.history
        voters = history.current_voters if history is not None and self._around.is_of_one_moment else ()
        self._around = replace(self._around, quorum_epoch=self._quorum_epoch({*voters}))
        started = {
            id_: self.start(one) for one in self._nodes if isinstance(id_ := one.configured_id, int) and id_ in voters
        }
        down = tuple(id_ for id_, one in started.items() if one.starts[-1].result is StartResult.EXITS)
        in_doubt = tuple(id_ for id_, one in started.items() if one.starts[-1].result is Absent.UNKNOWN)
        # A controller that is no voter may be one under another id, and one that became a voter registered before (KIP-853).
        is_strange = any(
            one.described.kind == "controller" and node.configured_id not in voters
            for node in self._nodes
            for one in node.inputs
        )
        registered = {*history.controllers} if history is not None and not is_strange else set()
        in_doubt += tuple(sorted({*voters} - started.keys() - registered)) if registered or is_strange else ()
        spare = (len(voters) - 1) // 2
        if len(down) > spare:
            self._around = replace(self._around, voters_down=down)
        elif len(down) + len(in_doubt) > spare:
            self._around = replace(self._around, voters_in_doubt=in_doubt)
        if len(down) + len(in_doubt) > spare:
            started = {id_: one for id_, one in started.items() if id_ in {*down, *in_doubt}}
        return [
            known if isinstance(id_ := one.configured_id, int) and (known := started.get(id_)) else self.start(one)
            for one in self._nodes
        ]

    def _quorum_epoch(self, voters: Collection[int]) -> int | None:
        """Return the newest leader epoch that voters know; none where not all are given."""
        epochs = {one.node_id: one.last_epoch for one in self._around.histories if one.node_id in voters}
        states = (
            state.leader_epoch
            for node in self._nodes
            if node.node_id in voters
            for _, _, one in node.log_dirs()
            if isinstance(state := one.quorum, QuorumState)
        )
        known = [*epochs.values(), *(epoch for epoch in states if isinstance(epoch, int))]
        return max(known) if voters and epochs.keys() == voters else None

    def start(
        self,
        node: Node,
        conditions: Conditions | None = None,
        ahead: Mapping[int, Ahead] | None = None,
    ) -> NodeStarts:
        """Return the starts of a node.

        Args:
            conditions: other ones than the request says; None for those.
            ahead: what its logs come to in the first start, where that is known.
        """
        with directories_held():
            return NodeStarter(
                node,
                conditions or self.conditions(node),
                self._around,
                self.reads,
                node_count=len(self._nodes),
                outcomes=self._outcomes,
                keeps_reads=self._outcomes is not None,
                jobs=self._jobs,
                others=self.versions[node.first].others if conditions is None else (),
                listed=self._listed,
                alike=self._alike,
            ).start(ahead)

    def ways_out(
        self, started: NodeStarts, logs: Sequence[PredictedLog], problems: list[Problem]
    ) -> tuple[WayOut, ...]:
        """Return what starts of a node come to under changes, the best first."""
        node = started.node
        if started.newer:
            return ()
        return WaysOut(
            node=node,
            inputs=self._inputs,
            conditions=self.conditions(node),
            start=lambda conditions: self.start(node, conditions),
            reads=self.reads,
            problems=problems,
            logs=logs,
        ).find(started)

    def others(self, started: Sequence[NodeStarts]) -> tuple[VersionOutcome, ...]:
        """Return the results by other versions that the evidence allows, where they differ."""
        out = []
        for one in started:
            differing = {at for log in one.ahead.values() for at in log.variants}
            known: list[tuple[AskedVersion, VersionOutcome | None]] = [(one.asked, None)]
            for at, version in enumerate(self.versions[one.node.first].others if not one.newer else ()):
                same = None if at in differing else next((two for two in known if two[0].agrees(version)), None)
                if same is None:
                    ahead = {number: log.variants.get(at, log) for number, log in one.ahead.items()}
                    other = self.start(one.node, replace(self.conditions(one.node), version=version), ahead)
                    last = other.starts[-1]
                    result = VersionOutcome(one.node.first, str(version), last.result, last.exception, last.reason)
                    same = other.asked, None if _come_to_the_same(other, one) else result
                    if at not in differing:
                        known.append(same)
                if same[1] is not None:
                    out.append(same[1]._replace(kafka=str(version)))
        return tuple(out)

    def _migration(self, kafka: str) -> str:
        state = self._around.history.migration if self._around.history is not None else 0
        version = parse_version(kafka.partition(" ")[0])
        return migration_words(state, version, is_enabled=self._around.controllers_migrate)

    def cluster(
        self,
        case: Case,
        started: Sequence[NodeStarts],
        body: Prediction,
        configured: Sequence[ConfiguredNode],
        *,
        lost: Sequence[LostDirectory],
        has_problems: bool,
    ) -> PredictedCluster:
        known = [(node.node_id, node.first) for node in self._nodes if not isinstance(node.node_id, Absent)]
        counts = Counter(node_id for node_id, _ in known)
        replicas = compare_followers(self._request, self._nodes, case, jobs=self._jobs)
        is_apart = replicas is None and body.order is None
        is_partial = bool(self._request.topics or self._request.partitions)
        return PredictedCluster(
            starts=body.starts,
            logs=body.logs,
            inputs=self._inputs.described,
            kafka=body.kafka,
            kafka_source=body.kafka_source,
            versions=body.versions,
            metadata_logs=body.metadata_logs,
            left_out=[one.described.path for one in self._inputs.found if one.described.kind == "partition"],
            without=[str(path) for path in self._request.without],
            zookeeper_nodes=[node.first for node in self._nodes if not node.is_kraft],
            not_migrated={
                one.node.first: str(one.version)
                for one in started
                if one.node.is_not_migrated(one.version) and any(start.result is Absent.UNKNOWN for start in one.starts)
            },
            with_roles={
                node.first for node in self._nodes if node.configured is not None and node.configured.has_roles
            },
            displaced=sorted({name for one in started for name in one.displaced}),
            missing_directories=list(map(_missing_directories, started)),
            blank_nodes=[node.first for node in self._nodes if node.is_blank],
            unassigned_nodes=[node.first for node in self._nodes if self._around.has_no_replica(node.node_id)],
            side_by_side=side_by_side(self._nodes, configured),
            unknown_strays=[one.node.first for one in started if one.has_unknown_strays],
            unclean_nodes={one.node.first: one.unclean_reason for one in started if one.unclean_reason},
            closed=[path for node in self._nodes for path in node.closed()],
            without_metadata=[one.node.first for one in started if one.begins_metadata_anew],
            leaving=leaving_replicas(started, self._around),
            misnamed={place: topic for one in started for place, topic in one.misnamed.items()},
            made_empty={} if is_partial else made_empty(started, self._around),
            returning=returning_leaders(started, self._around, is_partial=is_partial),
            order=body.order,
            replicas=replicas,
            unseen=unseen_leaders(started, self._around) if is_apart else None,
            quorum=self._around.quorum,
            migration=self._migration(body.kafka),
            absent=absent_controllers(self._around.histories, self._inputs) if self._around.histories else None,
            lost=lost,
            allows_older=any(one.allows_older for one in self.versions.values()),
            assumed_nodes={
                node.first: str(self.versions[node.first].version)
                for node in self._nodes
                if body.kafka_source != "assumed" and self.versions[node.first].source == "assumed"
            },
            twice=sorted(first for node_id, first in known if counts[node_id] > 1),
            is_partial=is_partial,
            has_problems=has_problems,
        )


def _missing_directories(started: NodeStarts) -> MissingDirectories:
    return MissingDirectories(
        node_id=started.node.node_id,
        missing=started.missing_directories,
        configured=started.absent_log_dirs,
        left_out=sorted(
            join(one.described.path, path)
            for number, one in started.node.members
            for at, path in started.node.left_out
            if at == number
        ),
        new=started.new_directories,
        empty=started.empty_folders,
        blank=started.blank_log_dirs,
        formats_blank=not started.node.is_kraft and started.version < FIRST_WITHOUT_ZOOKEEPER,
    )


def _come_to_the_same(*both: NodeStarts) -> bool:
    """Whether the starts by two versions differ in nothing that matters."""
    one, other = (
        (
            [(start.number, start.result, start.exception, start.loads_logs) for start in each.starts],
            each.metadata_log and (each.metadata_log.refusal is None, each.metadata_log.load),
            len(each.logs),
        )
        for each in both
    )
    # Nearly all logs are described once for all versions.
    return one == other and all(
        mine is its or (mine.path, mine.start, what_matters(mine)) == (its.path, its.start, what_matters(its))
        for mine, its in zip(*(each.logs for each in both), strict=True)
    )


def _metadata_logs(inputs: Inputs, started: Sequence[NodeStarts], problems: list[Problem]) -> tuple[MetadataLoad, ...]:
    loads = [one.metadata_log.load for one in started if one.metadata_log is not None]
    discarded = {(load.input, load.path): load.lost.pieces for load in loads}
    return tuple(
        replace(load, lost=find_lost_records(inputs, load.input, load.path, load.lost, problems, discarded))
        if load.lost.pieces
        else load
        for load in loads
    )


def _without(request: Ask, inputs: Inputs) -> dict[int, frozenset[str]]:
    found: dict[int, frozenset[str]] = {}
    for given in request.without:
        path = split_at_capture(given) or given
        places = [
            (index, str(path.absolute().relative_to(one.root.absolute())))
            for index, one in enumerate(inputs.found)
            if path.absolute().is_relative_to(one.root.absolute()) and path.absolute() != one.root.absolute()
        ]
        if not places or not path.exists():
            message = f"--without {path}: no file or directory of the log directories given"
            raise UsageError(message)
        for index, relative in places:
            found[index] = found.get(index, frozenset()) | {relative}
    return found


def _with_lost_records(
    inputs: Inputs, logs: tuple[PredictedLog, ...], problems: list[Problem]
) -> tuple[PredictedLog, ...]:
    """Return the logs with the records that each loses, and who else keeps them."""
    discarded: dict[tuple[int, str], tuple[LostPiece, ...]] = {}
    for log in logs:
        if log.lost.pieces and log.is_reached:
            place = log.input, log.path
            discarded[place] = (*discarded.get(place, ()), *log.lost.pieces)
    return tuple(
        replace(log, lost=find_lost_records(inputs, log.input, log.path, log.lost, problems, discarded))
        if log.lost.pieces
        else log
        for log in logs
    )


def _with_deletions(logs: tuple[PredictedLog, ...], case: Case) -> tuple[PredictedLog, ...]:
    """Return the logs with the deletions on record that those ask for which go with their directories."""
    if not any(log.fate is Fate.DELETED and log.lost.records for log in logs):
        return logs
    from kforensics.case.cluster import cluster_of  # noqa: PLC0415 - few starts delete records

    facts = cluster_of(case).facts
    return tuple(
        replace(log, topic_deleted_ms=facts.deletion_ms(log.topic, log.topic_id, log.path.rpartition("/")[2]))
        if log.fate is Fate.DELETED and log.lost.records and isinstance(log.topic, str)
        else log
        for log in logs
    )
