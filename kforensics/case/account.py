"""The account of what happened to one partition, and to many partitions in several processes: what `explain` and `trace` share."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from kforensics.case.cluster import Cluster, CommittedOffsets, cluster_of, truncations_of, unread_offsets
from kforensics.case.comparison import Comparison, PartitionResult, compare_replicas
from kforensics.case.leaders import Leaders, leaders_of
from kforensics.case.model import Case, fact_of_question, places_of, settings_of
from kforensics.case.offsets_log import PositionsNow
from kforensics.case.processes import END_OF_LOG, Progress, in_chunks, spread
from kforensics.case.settings import retention_of
from kforensics.case.tiers import remote_copies_of
from kforensics.damage import Absent
from kforensics.errors import EvidenceError
from kforensics.evidence.coordinators.replica_log import holds_records, read_producers
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.evidence.metadata.state import BrokerState, newest_log
from kforensics.evidence.model import Problem, Replica, Segment
from kforensics.evidence.replica.batch_reader import FileBatchReader
from kforensics.evidence.replica.collect import CollectedReplica, collect_replica
from kforensics.evidence.replica.ends import ends_at_hand
from kforensics.evidence.replica.loader_reader import read_needed
from kforensics.findings.answers.explain import incident_state
from kforensics.formats.checkpoint.properties import MetaProperties
from kforensics.formats.index import ProducerEntry
from kforensics.formats.log.loader_values import Content, Need
from kforensics.formats.log_lines.event import LogEventKind
from kforensics.protocol.loading.disk import TIME_INDEX
from kforensics.reconcile.bugs.evidence import Sign, broker_signs, partition_signs
from kforensics.reconcile.history.log_starts import LogStartMove, log_start_moves
from kforensics.reconcile.history.topic_incarnations import Incarnation, incarnations, logs_made_anew
from kforensics.reconcile.incident.doubts import Fencing, Moments, WholeReturn
from kforensics.reconcile.incident.logged_losses import DeletionRequest, deletion_requests
from kforensics.reconcile.incident.logs_over_time import LogsOverTime
from kforensics.reconcile.incident.model import IncidentEvidence, PartitionIncident
from kforensics.reconcile.incident.partition import explain_partition
from kforensics.reconcile.logs.divergence import EndsDoNotDecideError
from kforensics.reconcile.observed.logged_events import LoggedEvent, lines_of_nodes, of_kinds
from kforensics.reconcile.observed.logged_truncations import LoggedTruncation, subject_of
from kforensics.reconcile.observed.outages import Outage, outages_of
from kforensics.units import OFFSETS_TOPIC, Depth, TopicPartition

CHUNK_LENGTH = 64 << 20
CHUNK_PARTITIONS = 32
_SESSION_TIMEOUT_MS = 9_000
"""The default of broker.session.timeout.ms."""
SMALL_WORK = 24 << 20
"""Bytes below which starting processes costs more than it saves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """The partitions that are explained, and what their accounts share."""

    case: Case
    groups: Sequence[tuple[TopicPartition, tuple[PartitionPlace, ...]]]
    cluster: Cluster
    reader: FileBatchReader
    truncations: Sequence[LoggedTruncation]
    """Those of all partitions."""
    logged: Mapping[TopicPartition, Sequence[LoggedTruncation]]
    made: Mapping[TopicPartition, Incarnation]
    signs: Mapping[TopicPartition, tuple[Sign, ...]]
    signs_of_brokers: tuple[Sign, ...]
    last_logged_ms: int | Absent
    commits: CommittedOffsets | PositionsNow
    moments: Moments
    whole_returns: Mapping[TopicPartition, Sequence[WholeReturn]]
    deletions: Mapping[TopicPartition, Sequence[DeletionRequest]]
    log_starts: Mapping[TopicPartition, Sequence[LogStartMove]]
    has_zookeeper: bool = False
    comparison: Comparison | None = None
    """Of the replicas as they are now, where they are compared beside."""


class Account(NamedTuple):
    """What happened to one partition."""

    incident: PartitionIncident
    problems: tuple[Problem, ...]
    """What could not be read."""
    compared: PartitionResult | None = None
    """Its replicas compared, where it has any now and they can be."""


@fact_of_question
def accounts_of(case: Case) -> Accounts:
    """Return what is needed to explain the partitions that a case is asked about; no log of theirs is read."""
    cluster, places, leaders = cluster_of(case), places_of(case), leaders_of(case)
    events = cluster.events
    truncations = truncations_of(case)
    groups = [(tp, group) for tp, group in places.by_partition.items() if case.explains(tp)]
    known = {tp for tp, _ in groups}
    groups += [(tp, ()) for tp in sorted(subject_of(truncations)) if tp not in known and case.explains(tp)]
    return Accounts(
        case=case,
        groups=groups,
        cluster=cluster,
        reader=FileBatchReader([one.root for one in case.inputs.found]),
        truncations=truncations,
        logged=_by_partition(truncations),
        made=incarnations(events),
        signs=partition_signs(events),
        signs_of_brokers=broker_signs(events),
        last_logged_ms=max(
            (one.last_ms for one in lines_of_nodes(events) if isinstance(one.last_ms, int)), default=Absent.UNKNOWN
        ),
        commits=_final_commits(leaders),
        moments=replace(
            _moments(case, cluster.histories),
            since_ms=case.ask.since_ms,
            is_stopped=case.ask.is_stopped,
            outages=_outages(case, events, cluster.histories),
            made_anew=logs_made_anew(events),
            remote_copies=remote_copies_of(case),
            without_directory=places.brokers_without_directory(
                frozenset(range(len(case.inputs.found))) - case.ranks.keys()
            ),
        ),
        whole_returns=_whole_returns(events),
        deletions=deletion_requests(events),
        log_starts=log_start_moves(events, is_zone_shown=cluster.is_zone_shown),
        has_zookeeper=any(
            isinstance(log_dir.meta, MetaProperties) and log_dir.meta.version == 0
            for one in case.inputs.found
            for log_dir in one.log_dirs
        ),
    )


def settled(incidents: Sequence[PartitionIncident]) -> Iterator[PartitionIncident]:
    """Yield the incidents of partitions that something happened to, each with its state, once those of all partitions are known."""
    for incident in with_returned_doubts(incidents):
        if is_eventful(incident):
            yield replace(incident, state=incident_state(incident).value)


def with_returned_doubts(incidents: Sequence[PartitionIncident]) -> Iterator[PartitionIncident]:
    """Yield the incidents with the doubts back that relied on copies of nodes of which any log shows that they had lost the end of their logs."""
    shortened = frozenset(key for incident in incidents for key in incident.shortened)
    for incident in incidents:
        back = [one.doubt for one in incident.dispelled if not one.holds(shortened)]
        yield replace(incident, doubts=tuple(dict.fromkeys((*incident.doubts, *back)))) if back else incident


def _outages(
    case: Case, events: Sequence[LoggedEvent], histories: Sequence[MetadataHistory]
) -> dict[int, tuple[Outage, ...]]:
    newest = newest_log(histories)
    if newest is None or not events:
        return outages_of(events)
    timeout_ms = min(settings_of(case).numbers("broker.session.timeout.ms"), default=_SESSION_TIMEOUT_MS)
    fenced = _fenced(newest)
    return outages_of(
        events,
        newest,
        {
            broker: tuple((state.when.timestamp_ms, state.when.timestamp_ms - timeout_ms) for state in states)
            for broker, states in fenced.items()
        },
    )


def _fenced(newest: MetadataHistory) -> dict[int, tuple[BrokerState, ...]]:
    """Return the states with which the sessions of brokers ended that had not announced their stop."""
    return {
        broker: tuple(
            state
            for before, state in pairwise(states)
            if state.is_fenced and not before.is_fenced and not before.is_in_controlled_shutdown
        )
        for broker, states in newest.brokers.items()
    }


def _moments(case: Case, histories: Sequence[MetadataHistory]) -> Moments:
    newest = newest_log(histories)
    brokers = case.nodes_by_rank().get(case.final_rank, frozenset())
    if newest is None:
        return Moments(metadata_ends=case.metadata_ends, brokers=brokers)
    # Without the setting nothing shows how long before its fencing a broker had sent its last heartbeat.
    timeout_ms = min(settings_of(case).numbers("broker.session.timeout.ms"), default=0)
    return Moments(
        metadata_ends=case.metadata_ends,
        metadata_times={
            rank: time for rank, end in case.metadata_ends.items() if (time := _time_below(newest, end)) is not None
        },
        fencings={
            broker: tuple(Fencing(state.when.offset, state.when.timestamp_ms - timeout_ms) for state in states)
            for broker, states in _fenced(newest).items()
        },
        logs_held=case.logs_held,
        unchanged=case.unchanged,
        quorum_starts=frozenset(entry.start_offset for entry in newest.epochs),
        brokers=brokers,
    )


def _time_below(history: MetadataHistory, offset: int) -> int | None:
    """Return the time at which the last batch below an offset of the metadata log was appended."""
    rows = history.batches[history.batches["last_offset"] < offset]
    return int(rows["max_timestamp"][-1]) if len(rows) else None


def _whole_returns(events: Sequence[LoggedEvent]) -> dict[TopicPartition, list[WholeReturn]]:
    """Followers that truncated nothing by the leader's answer, by partition."""
    found: dict[TopicPartition, list[WholeReturn]] = defaultdict(list)
    for item in of_kinds(events, (LogEventKind.TRUNCATION_DECISION,)):
        event, end = item.event, item.event.number("log_end_offset")
        if event.fields.get("needed", True) or isinstance(event.topic_partition, Absent):
            continue
        if isinstance(end, int) and isinstance(item.node_id, int):
            found[event.topic_partition].append(WholeReturn(item.node_id, end, item.time_ms))
    return found


def _by_partition(truncations: Sequence[LoggedTruncation]) -> dict[TopicPartition, list[LoggedTruncation]]:
    found: dict[TopicPartition, list[LoggedTruncation]] = defaultdict(list)
    for truncation in truncations:
        found[truncation.topic_partition].append(truncation)
    return found


def _final_commits(given: Leaders) -> CommittedOffsets | PositionsNow:
    """Return what groups committed last, nothing where that is too long to be read; of a capture that holds no more, the highest offsets that they committed."""
    if unread_offsets(given.case):
        return CommittedOffsets(())
    now = tuple(
        place
        for tp, group in given.places.by_partition.items()
        if tp.topic == OFFSETS_TOPIC
        for place in group
        if given.is_now(place) and place.is_live
    )
    if not all(map(holds_records, now)):
        return CommittedOffsets(now, given.case.rename_group)
    return PositionsNow(given, given.case.rename_group)


def is_eventful(incident: PartitionIncident) -> bool:
    """Whether anything happened to a partition that its explanation has to speak of."""
    return bool(
        incident.truncations
        or incident.losses
        or incident.groups
        or incident.residuals
        or incident.past_end
        or incident.hanging
        or any(state.unclean for state in incident.leaderships)
        or incident.doubts
    )


def explain_all(shared: Accounts, progress: Progress | None) -> list[Account]:
    """Explain what happened to every partition, in several processes where there is enough to read."""
    jobs, is_by_ends = shared.case.jobs, shared.case.depth is Depth.TAILS
    weights = [
        len(group) * END_OF_LOG if is_by_ends else sum(place.length for place in group) for _, group in shared.groups
    ]
    if sum(weights) < SMALL_WORK:
        jobs = 1
    chunks = list(in_chunks(iter(weights), weight=CHUNK_LENGTH, most=CHUNK_PARTITIONS))
    if progress:
        progress.expect(sum(weights))
    sizes = [sum(weights[first:end]) for first, end in chunks]
    done = spread(_explain_chunk, shared, chunks, jobs=jobs, sizes=sizes, progress=progress)
    return [result for chunk in done for result in chunk]


def _explain_chunk(shared: Accounts, chunk: tuple[int, int]) -> list[Account]:
    if shared.case.depth is Depth.CONTENT:
        return [_explain_one(shared, at) for at in range(*chunk)]
    with ends_at_hand(group for _, group in shared.groups[slice(*chunk)]):
        return [_explain_one(shared, at) for at in range(*chunk)]


def _explain_one(shared: Accounts, at: int) -> Account:
    partition, places = shared.groups[at]
    collected = [collect_replica(place, depth=shared.case.depth) for place in places]
    compared = _compared(shared, places, collected)
    try:
        explained = explain_replicas(shared, partition, collected)
    except (EndsDoNotDecideError, EvidenceError):
        explained = explain_replicas(shared, partition, [collect_replica(place) for place in places])
    return Account(*explained, compared)


def _compared(
    shared: Accounts, places: Sequence[PartitionPlace], collected: Sequence[CollectedReplica]
) -> PartitionResult | None:
    now = [number for number, place in enumerate(places) if place.state.input not in shared.case.ranks]
    if shared.comparison is None or not now:
        return None
    own = [places[number] for number in now]
    try:
        return compare_replicas(shared.comparison, own, [collected[number] for number in now])
    except (EndsDoNotDecideError, EvidenceError):
        pass
    try:
        return compare_replicas(shared.comparison, own, [collect_replica(place) for place in own])
    except EvidenceError:
        shared.comparison.reader.take_lacks()  # they are none of what is explained next
        return None


def _indexed_ms(roots: Sequence[Path], replica: Replica, segment: Segment) -> int | Absent:
    """Return the last timestamp in the time index beside a segment; unknown where it has none, or can't be read."""
    name = segment.path.rpartition("/")[2].removesuffix(".log") + TIME_INDEX
    try:
        found = read_needed(roots[replica.input] / replica.path, Need(name, Content.LAST_TIMESTAMP))
    except EvidenceError:
        return Absent.UNKNOWN
    return found if isinstance(found, int) and found >= 0 else Absent.UNKNOWN


def _producers(
    roots: Sequence[Path], replica: Replica, offsets: Iterable[int]
) -> Mapping[int, Sequence[ProducerEntry]]:
    """Return what the producer snapshots of some offsets name; nothing of those that are not there, or can't be read."""
    paths = [(at, f"{replica.path}/{at:020d}.snapshot") for at in offsets if at in replica.producer_snapshots]
    return {at: entries for at, _, entries in read_producers(roots[replica.input], paths)}


def explain_replicas(
    shared: Accounts, partition: TopicPartition, collected: Sequence[CollectedReplica]
) -> tuple[PartitionIncident, tuple[Problem, ...]]:
    """Explain what happened to one partition whose replicas have been read.

    Raises:
        EndsDoNotDecideError: the ends of the logs were read alone, and do not decide.
        EvidenceError: they were, and what is needed below can't be read.
    """
    ranks, roots = shared.case.ranks, [one.root for one in shared.case.inputs.found]
    incident = explain_partition(
        LogsOverTime(
            partition,
            [one.replica for one in collected if one.replica.input not in ranks],
            [(ranks[one.replica.input], one.replica) for one in collected if one.replica.input in ranks],
            final_rank=shared.case.final_rank,
            evidence=IncidentEvidence(
                facts=shared.cluster.facts,
                logged=shared.logged.get(partition, ()),
                incarnation=shared.made.get(partition, Incarnation()),
                last_logged_ms=shared.last_logged_ms,
                protocol_hints=shared.cluster.protocol_hints,
                commits=shared.commits(partition),
                versions=shared.cluster.versions,
                signs=(*shared.signs.get(partition, ()), *shared.signs_of_brokers),
                moments=shared.moments,
                whole_returns=shared.whole_returns.get(partition, ()),
                is_deletion_logged=shared.cluster.facts.is_deletion_logged(partition.topic),
                has_zookeeper=shared.has_zookeeper,
                deletions=shared.deletions.get(partition, ()),
                log_starts=shared.log_starts.get(partition, ()),
                retention=partial(retention_of(shared.case), partition),
                indexed_ms=partial(_indexed_ms, roots),
                producers=partial(_producers, roots),
                wanted_leader=shared.case.ask.leader,
                is_order_in_doubt=bool(shared.case.later),
            ),
            reader=shared.reader,
        )
    )
    problems = (problem for one in collected for problem in one.problems)
    return incident, (*problems, *shared.reader.take_lacks())
