"""What several nodes that have started do to each other: what followers discard, which replicas are not served any more, and the order that loses least."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from kforensics.ask.model import Ask
from kforensics.case.comparison import known_partitions
from kforensics.case.model import Case
from kforensics.case.settings import BROKER, TOPIC, Surroundings
from kforensics.commands.predicting.node_starts import ELR_FEATURE, NodeStarts
from kforensics.commands.predicting.nodes import Node
from kforensics.damage import Absent
from kforensics.errors import EvidenceError, UsageError
from kforensics.evidence.discovery.inputs import belonging_together, find_inputs, why_not_compared
from kforensics.evidence.metadata.state import MetadataState
from kforensics.findings.answers.graver import Asked
from kforensics.findings.answers.predict_cluster import UnseenLeaders
from kforensics.protocol.election import ElectionKind, PartitionRegistration, elect, isr_without
from kforensics.protocol.loading.disk import ENDINGS
from kforensics.protocol.loading.node import Fate
from kforensics.protocol.loading.starts import StartResult
from kforensics.protocol.versions import parse_version, protocol_of
from kforensics.reconcile.logs.predicted_load import (
    Election,
    FirstStart,
    LeavingReplica,
    PredictedLog,
    ReturningLeader,
    StartOrder,
)
from kforensics.reconcile.observed.metadata_facts import MIN_INSYNC_REPLICAS
from kforensics.reconcile.replicas.report import WhatIf
from kforensics.units import Depth


def compare_followers(request: Ask, nodes: Sequence[Node], known: Case, *, jobs: int) -> Asked | None:
    """Return how the replicas of several nodes compare, of large logs at their ends; None where one node is given, one at several moments, or a state that is on no disk."""
    ids = [node.node_id for node in nodes if not isinstance(node.node_id, Absent)]
    if request.without or len(nodes) < 2 or len(set(ids)) < len(ids):
        return None
    from kforensics.case.cluster import cluster_of  # noqa: PLC0415 - for several nodes alone
    from kforensics.case.model import quick_depth, tell  # noqa: PLC0415
    from kforensics.commands.comparing import compare  # noqa: PLC0415

    asked = Ask(
        paths=request.paths,
        topics=request.topics,
        partitions=request.partitions,
        keep_going=request.keep_going,
        is_stopped=request.is_stopped,
        jobs=jobs,
    )
    try:
        belonging_together(known.inputs)
        case = known.asked(asked)
        if any(node.blank_log_dirs() for node in nodes):
            # For a comparison an empty directory is a disk that was emptied.
            find = partial(find_inputs, with_server_logs=True, why_not=why_not_compared, one_cluster=True)
            case = Case(ask=asked, inputs=find(request.paths, keep_going=request.keep_going))
        elif request.kafka is not None:
            protocol = protocol_of(parse_version(request.kafka))
            read = replace(cluster_of(case), protocol_hints={one: protocol for one in ids if isinstance(one, int)})
            tell(case := Case(ask=asked, inputs=case.inputs), cluster_of, read)
        compared = compare(case := case.asking(depth=request.depth or quick_depth(case)))
    except (EvidenceError, UsageError):
        return None
    return Asked(
        "diff",
        compared.answer,
        ask=request,
        open_kinds=frozenset(
            concern.kind
            for one in compared.partitions
            for concern in one.judged.concerns
            if concern.state is compared.answer.state
        ),
        is_whole=case.depth is Depth.CONTENT,
    )


def returning_leaders(
    started: Sequence[NodeStarts], surroundings: Surroundings, *, is_partial: bool
) -> tuple[ReturningLeader, ...]:
    """Return who is elected for partitions that have no leader, or lose it when its broker registers, where eligible leader replicas are on (KIP-966).

    Args:
        is_partial: whether only some partitions were asked for: those that have logs here.
    """
    state = surroundings.state
    if state is None or not state.features.get(ELR_FEATURE):
        return ()
    unclean = {node.node.node_id for node in started if node.unclean_reason and isinstance(node.node.node_id, int)}
    existing = known_partitions(surroundings.history, (), surroundings.histories)
    displaced = {name for node in started for name in node.displaced}
    with_logs = {(log.topic, log.partition) for node in started for log in node.logs}
    found: dict[tuple[ElectionKind, int | None, tuple[int, ...]], list[str]] = {}
    for one in state.partitions.values():
        if str(one.topic_partition) in displaced:
            continue
        if one.topic_partition not in with_logs and (is_partial or one.topic_partition not in existing):
            continue  # not asked for, or most voters lack its record
        known = PartitionRegistration(
            replicas=one.replicas,
            isr=one.isr,
            leader=one.leader,
            leader_epoch=one.leader_epoch,
            eligible_leader_replicas=tuple(each for each in one.eligible_leader_replicas if each not in unclean),
            last_known_leader_replicas=one.last_known_elr,
        )
        leaving = [each for each in one.isr if each in unclean]
        known = isr_without(
            known,
            leaving,
            min_insync_replicas=_min_insync_replicas(state, one.topic),
            uses_elr=True,
            unclean_shutdown=unclean,
        )
        outcome = elect(known, one.replicas, unclean_allowed=False, uses_elr=True)
        if outcome.kind in {ElectionKind.CLEAN, ElectionKind.UNCHANGED} and not (
            outcome.kind is ElectionKind.UNCHANGED and isinstance(outcome.partition.leader, Absent)
        ):
            continue
        leader = outcome.partition.leader
        others = tuple(each for each in known.eligible_leader_replicas if each != leader)
        kind = outcome.kind if isinstance(leader, int) else ElectionKind.NONE
        key = kind, leader if isinstance(leader, int) else None, others if kind is ElectionKind.ELIGIBLE else ()
        found.setdefault(key, []).append(str(one.topic_partition))
    return tuple(ReturningLeader(*key, tuple(sorted(names))) for key, names in sorted(found.items(), key=str))


def _min_insync_replicas(state: MetadataState, topic: str) -> int:
    keys = ((TOPIC, topic, MIN_INSYNC_REPLICAS), (BROKER, "", MIN_INSYNC_REPLICAS))
    values = (state.configs[key].value for key in keys if key in state.configs)
    return next((int(one) for one in values if one is not None and one.isdecimal() and len(one) < 10), 1)


def leaving_replicas(started: Sequence[NodeStarts], surroundings: Surroundings) -> tuple[LeavingReplica, ...]:
    """Return the replicas that are assigned to their nodes, and that an unfinished reassignment removes (`removing_replicas` of PartitionRecord)."""
    state = surroundings.state
    if state is None:
        return ()
    moving = {(one.topic, one.partition): one for one in state.partitions.values() if one.removing_replicas}
    found = []
    for node in started if moving else ():
        for log in node.logs:
            if isinstance(log.topic, Absent) or isinstance(log.partition, Absent):
                continue
            one = moving.get((log.topic, log.partition))
            is_removed = one is not None and node.node.node_id in one.removing_replicas
            if one is not None and is_removed and log.start == 1 and log.fate is Fate.KEPT:
                staying = [
                    each.node.node_id
                    for each in started
                    if each.node.node_id in {*one.replicas} - {*one.removing_replicas}
                    and any(_holds_all_of(other, log) for other in each.logs)
                ]
                kept_by = staying[0] if staying else Absent.UNKNOWN
                found.append(LeavingReplica(log.node, log.path, one.when.offset, one.when.citation, kept_by))
    return tuple(found)


def _holds_all_of(other: PredictedLog, log: PredictedLog) -> bool:
    """Whether a replica that is kept begins and ends where another one of its partition does, or beyond, once both are loaded."""
    mine, theirs = log.after, other.after
    if (other.topic, other.partition) != (log.topic, log.partition) or other.fate is not Fate.KEPT:
        return False
    if isinstance(mine, Absent) or isinstance(theirs, Absent):
        return False
    starts, ends = (theirs.log_start_offset, mine.log_start_offset), (mine.log_end_offset, theirs.log_end_offset)
    return all(isinstance(low, int) and isinstance(high, int) and low <= high for low, high in (starts, ends))


def made_empty(started: Sequence[NodeStarts], surroundings: Surroundings) -> Mapping[int, tuple[str, ...]]:
    """Return the partitions that a start makes anew, empty, by the first input of the node: it is in their ISR or ELR, or their last known leader, and no log directory of it holds them."""
    state = surroundings.state
    if state is None:
        return {}
    existing = known_partitions(surroundings.history, (), surroundings.histories)
    found: dict[int, tuple[str, ...]] = {}
    for one in started:
        # Before 3.7 what a disk that goes offline held is made anew on the others (KIP-858).
        offline = {StartResult.DIRECTORY_OFFLINE} if one.asked < (3, 7) else set()
        if one.missing_directories or not one.logs or one.starts[-1].result not in {StartResult.STARTS} | offline:
            continue
        held = {
            (log.topic, log.partition)
            for log in one.logs
            if log.fate is Fate.PROMOTED or not log.path.endswith(ENDINGS)
        }
        lacking = [
            str(each.topic_partition)
            for each in state.partitions.values()
            if one.node.node_id in {*each.isr, *each.eligible_leader_replicas, *each.last_known_elr}
            and (each.topic, each.partition) not in held
            and each.topic_partition in existing
        ]
        if lacking:
            found[one.node.first] = tuple(sorted(lacking))
    return found


def unseen_leaders(started: Sequence[NodeStarts], surroundings: Surroundings) -> UnseenLeaders | None:
    """Return what nodes may discard as followers of brokers that are not given; None where each log is known to be the only replica."""
    state = surroundings.state
    assigned = (
        None if state is None else {(one.topic, one.partition): one.replicas for one in state.partitions.values()}
    )
    logs = records = unknown = 0
    for node in started:
        served = (log for log in node.logs if log.fate in {Fate.KEPT, Fate.UNKNOWN} and log.is_reached)
        for (topic, partition), log in {(log.topic, log.partition): log for log in served}.items():
            if isinstance(topic, Absent) or isinstance(partition, Absent):
                continue
            others = None if assigned is None else {*assigned.get((topic, partition), ())} - {node.node.node_id}
            if others or (others is None and log.above_watermark):
                logs, records = logs + 1, records + log.above_watermark
            unknown += others is None
    return UnseenLeaders(logs, records) if logs or unknown else None


def find_order(request: Ask, known: Case | None) -> StartOrder:
    """Return the order that loses least, from what each replica would discard of the others as the leader."""
    from kforensics.commands.comparing import case_of, compare  # noqa: PLC0415 - for `--order` alone

    asked = Ask(paths=request.paths, is_stopped=True, keep_going=request.keep_going, depth=request.depth)
    compared = compare(case_of(asked) if known is None else known.asked(asked), keep_quiet=True)
    reports = [one for one in compared.reports if one.what_if and not one.is_quorum and not one.is_deleted]
    brokers = sorted({broker for report in reports for broker in map(_broker, report.what_if) if broker is not None})
    certain: Counter[int] = Counter()
    possible: Counter[int] = Counter()
    waits: Counter[int] = Counter()
    best_of: Counter[int] = Counter()
    elections: list[Election] = []
    harms: list[Harm] = []
    for report in reports:
        choices = {broker: one for one in report.what_if if (broker := _broker(one)) is not None}
        if not choices:
            continue
        for broker, choice in choices.items():
            certain[broker] += choice.lost_certain
            possible[broker] += choice.lost_possible
        # Of equal ones one that may be elected without an unclean election.
        electable = frozenset() if isinstance(report.electable, Absent) else report.electable
        best = min(choices, key=lambda one: (choices[one].rank, one not in electable, one))
        cost = min((_cost(one) for broker, one in choices.items() if broker != best), default=0)
        waits[best] += max(0, cost - _cost(choices[best]))
        best_of[best] += 1
        harms.append(
            Harm(best, {broker: _cost(one) - _cost(choices[best]) for broker, one in choices.items()}, report.electable)
        )
        elections.append(
            Election(
                topic=report.partition.topic,
                partition=report.partition.partition,
                leader=best,
                is_unclean=Absent.UNKNOWN if isinstance(report.electable, Absent) else best not in report.electable,
                lost_certain=choices[best].lost_certain,
                lost_possible=choices[best].lost_possible,
            )
        )
    order = ordered(
        sorted(brokers, key=lambda one: (-waits[one], certain[one], possible[one], -best_of[one], one)), harms
    )
    return StartOrder(
        brokers=tuple(order),
        wait_for=tuple(one for one in order if waits[one]),
        firsts=tuple(FirstStart(one, certain[one], possible[one]) for one in order),
        elections=tuple(elections),
        missing=tuple(
            sorted(
                {
                    broker
                    for report in compared.reports
                    if not report.is_quorum and not report.is_deleted
                    for broker in report.missing_replicas
                }
            )
        ),
    )


class Harm(NamedTuple):
    """What leaders of one partition discard."""

    best: int
    more: dict[int, int]
    """By broker: records that it discards beyond those that the best leader does."""
    electable: frozenset[int] | Absent
    """Brokers that become leader without an unclean election."""

    def of(self, broker: int, left: Collection[int]) -> tuple[int, int]:
        """Return how many records are discarded where a broker starts before the best leader does: by an election of itself, and by an unclean one."""
        if broker == self.best or self.best not in left:
            return 0, 0
        more = max(0, self.more.get(broker, 0))
        return (more if isinstance(self.electable, Absent) or broker in self.electable else 0), more


def ordered(brokers: Sequence[int], harms: Sequence[Harm]) -> list[int]:
    """Return the brokers so that none starts that would be elected and discard what one behind it holds; of equal ones as they come."""
    left, order = list(brokers), []
    while left:
        sums = {
            one: [sum(part) for part in zip((0, 0), *(harm.of(one, left) for harm in harms), strict=True)]
            for one in left
        }
        first = min(left, key=lambda one: sums[one])
        left.remove(first)
        order.append(first)
    return order


def _broker(choice: WhatIf) -> int | None:
    broker = choice.leader.replica.broker_id
    return None if isinstance(broker, Absent) else broker


def _cost(choice: WhatIf) -> int:
    return choice.lost_certain + choice.lost_possible
