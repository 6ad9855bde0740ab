"""The answer of a comparison: what each partition gives reason for, the state that follows, and the first lines over all of them.

A partition agrees only where every assigned replica is given and nothing speaks against it. Whatever speaks against it is a concern, with the state
that it leads to; the worst concern is the state of the partition, and the worst partition that of the whole.
"""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from kforensics.damage import Absent
from kforensics.evidence.model import Input, Problem, Replica
from kforensics.findings.answers.model import Answer, State, worst_state
from kforensics.findings.model import Finding
from kforensics.reconcile.committed.judge import CommittedCounts
from kforensics.reconcile.logs.loaded_log import LoadedLog
from kforensics.reconcile.replicas.holders import SoleHolder
from kforensics.reconcile.replicas.partition import PartitionReport, ReplicaReport, Verdict, WhatIf
from kforensics.units import TopicPartition

_MOST_NAMED = 5


class Kind(StrEnum):
    """What a concern is about; the order is that of the headlines of one state."""

    EMPTIED = "emptied"
    DISCARD = "discard"
    SOLE = "sole"
    PAST_END = "past-end"
    RECOVERY = "recovery"
    ELECTED = "elected"
    OUTSIDE = "outside"
    PROTOCOL = "protocol"
    DIVERGENCE = "divergence"
    MISSING = "missing"
    ALONE = "alone"
    TAIL = "tail"
    LEADER = "leader"
    COMPACTION = "compaction"
    DAMAGE = "damage"
    OTHER_TOPIC = "other-topic"
    NO_REPLICA = "no-replica"
    UNREAD = "unread"
    ASSIGNMENT = "assignment"
    COPIED_AGAIN = "copied-again"
    UNCOMMITTED = "uncommitted"
    BEHIND = "behind"


_ORDER = {kind: at for at, kind in enumerate(Kind)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Concern:
    """One reason why a partition does not simply agree."""

    state: State
    kind: Kind
    owners: tuple[str, ...] = ()
    """Whose replicas it is about, in words."""
    inputs: tuple[int, ...] = ()
    """The inputs of these replicas."""
    certain: int = 0
    """Records that were certainly committed, each counted once."""
    possible: int = 0
    records: int = 0
    """All of them, where their number matters."""
    leader: str = ""
    """Whose log the others follow, in words."""
    guess: str = ""
    """Why that leader is only guessed; empty where it is known."""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPartition:
    """A partition with what it gives reason for; small, so that of an agreeing one nothing else has to be kept."""

    partition: TopicPartition
    concerns: tuple[Concern, ...]

    @property
    def state(self) -> State:
        """The worst that any concern leads to."""
        return worst_state("diff", (one.state for one in self.concerns)) or State.AGREE


def judged_partition(report: PartitionReport, problems: Sequence[Problem] = ()) -> JudgedPartition:
    """The concerns about a partition.

    Args:
        report: of the partition.
        problems: what could not be read of it.
    """
    concerns = tuple(_concerns(report))
    if problems:
        # A log that is not read whole looks shorter than it is: nothing about its partition is certain.
        hedged = (replace(c, state=State.MAYBE_AT_RISK) if c.state is State.AT_RISK else c for c in concerns)
        concerns = (*hedged, Concern(state=State.UNKNOWN, kind=Kind.UNREAD))
    return JudgedPartition(partition=report.partition, concerns=concerns)


def partition_state(report: PartitionReport, problems: Sequence[Problem] = ()) -> State:
    """The state of one partition, by the words of the whole answer.

    Args:
        report: of the partition.
        problems: what could not be read of it.
    """
    return judged_partition(report, problems).state


def _concerns(report: PartitionReport) -> Iterator[Concern]:
    if report.is_deleted:
        # No replica is expected anywhere; of a topic created again under that name none is given.
        if report.is_replaced:
            yield _concern(report, State.UNKNOWN, Kind.OTHER_TOPIC, (one.view for one in report.replicas))
        return
    live = [one for one in report.replicas if _is_replica(one)]
    if report.is_quorum and not isinstance(report.assigned, Absent):
        # Observers copy the metadata log and have no part in what is committed.
        live = [one for one in live if one.view.replica.broker_id in report.assigned]
    yield from _emptied(report, live)
    yield from _not_compared(report, live)
    yield from _sole_holders(report, live)
    yield from _truncations(report, live)
    yield from _elections(report)
    yield from _divergences(report, live)
    yield from _missing_ends(report, live)
    yield from _behind(report, live)


def _is_replica(one: ReplicaReport) -> bool:
    return one.view.replica.state == "live" and one.verdict not in {Verdict.DIFFERENT_TOPIC, Verdict.NOT_ASSIGNED}


def _is_whole(report: PartitionReport) -> bool:
    """Whether every assigned replica is given; one that is known to be nowhere counts as given."""
    return not isinstance(report.assigned, Absent) and not report.missing_replicas


def _guess(report: PartitionReport) -> str:
    leader = report.leader
    if leader is None or leader.is_known:
        return ""
    if leader.tied_with:
        others = ", ".join(str(broker) for broker in leader.tied_with)
        return f"guessed: its log and that of broker {others} speak for each as much"
    return f"guessed: {leader.reason}"


def _owner(report: PartitionReport, replica: Replica) -> str:
    return replica.owner.replace("broker", "controller") if report.is_quorum else replica.owner


def _leader_words(report: PartitionReport) -> str:
    return _owner(report, report.leader.view.replica) if report.leader is not None else ""


def _concern(  # noqa: PLR0913 - one place that fills in what most concerns share
    report: PartitionReport,
    state: State,
    kind: Kind,
    views: Iterable[LoadedLog] = (),
    counts: CommittedCounts | None = None,
    *,
    detail: str = "",
    records: int = 0,
) -> Concern:
    replicas = [view.replica for view in views]
    return Concern(
        state=state,
        kind=kind,
        owners=tuple(dict.fromkeys(_owner(report, replica) for replica in replicas)),
        inputs=tuple(dict.fromkeys(replica.input for replica in replicas)),
        certain=counts.certain if counts else 0,
        possible=counts.possible if counts else 0,
        records=records or (counts.records if counts else 0),
        leader=_leader_words(report),
        guess=_guess(report),
        detail=detail,
    )


def _emptied(report: PartitionReport, live: Sequence[ReplicaReport]) -> Iterator[Concern]:
    has_records = not live or any(one.view.log_end_offset > 0 for one in live)
    for one in report.emptied:
        detail = f"{one.reason} and {f'the ISR is [{one.broker_id}]' if one.is_sole else 'it can be elected'}"
        if not live and not one.is_certain:
            # A partition that was created after its brokers were copied has no directory anywhere.
            continue
        if one.is_electable and has_records:
            state = State.AT_RISK if one.is_certain else State.MAYBE_AT_RISK
            yield Concern(state=state, kind=Kind.EMPTIED, owners=(f"broker {one.broker_id}",), detail=detail)
        elif has_records:
            is_led = report.leader is not None and report.leader.is_known
            state = State.BEHIND if is_led else State.UNKNOWN
            yield Concern(
                state=state, kind=Kind.BEHIND if is_led else Kind.LEADER, owners=(f"broker {one.broker_id}",)
            )


def _not_compared(report: PartitionReport, live: Sequence[ReplicaReport]) -> Iterator[Concern]:
    strangers = [one for one in report.replicas if one.verdict is Verdict.DIFFERENT_TOPIC]
    if strangers and isinstance(report.assigned, Absent):
        yield _concern(report, State.UNKNOWN, Kind.OTHER_TOPIC, (one.view for one in strangers))
    if report.missing_replicas:
        kind = "controller" if report.is_quorum else "broker"
        names = tuple(f"{kind} {broker}" for broker in report.missing_replicas)
        electable = () if isinstance(report.electable, Absent) else report.electable
        needed = [broker for broker in report.missing_replicas if broker in electable]
        detail = ", ".join(map(str, needed))
        yield Concern(state=State.UNKNOWN, kind=Kind.MISSING, owners=names, detail=detail)
    if not live:
        if not report.emptied and not report.missing_replicas:
            yield _concern(report, State.UNKNOWN, Kind.NO_REPLICA)
        return
    if isinstance(report.assigned, Absent):
        kind = Kind.ALONE if len(live) == 1 else Kind.ASSIGNMENT
        yield _concern(report, State.UNKNOWN, kind, (one.view for one in live))
    elif len(live) == 1 and len(report.assigned) > 1 and not report.emptied and not report.missing_replicas:
        yield _concern(report, State.UNKNOWN, Kind.ALONE, (one.view for one in live))
    for one in live:
        if one.view.damaged and len(live) == 1:
            lost = one.view.damaged[0].offsets
            detail = f"offsets {lost.first} to {lost.last}"
            yield _concern(report, State.UNKNOWN, Kind.DAMAGE, (one.view,), detail=detail)


def _report_of(live: Sequence[ReplicaReport], view: LoadedLog) -> ReplicaReport | None:
    return next((one for one in live if one.view is view), None)


def _sole_holders(report: PartitionReport, live: Sequence[ReplicaReport]) -> Iterator[Concern]:
    is_led = report.leader is not None and report.leader.is_known
    is_parted = any(one.verdict is Verdict.SILENT_DIVERGENCE for one in live)
    for holder in report.sole_holders:
        own = _report_of(live, holder.view)
        if own is None or (is_led and own.truncation is not None) or (is_parted and holder.is_other_content):
            # What it loses, or differs in, is told as such.
            continue
        yield from _sole_holder(report, holder)
    for holder in report.unassigned_holders:
        if holder.counts.certain or holder.counts.possible:
            yield _concern(report, State.MAYBE_AT_RISK, Kind.OUTSIDE, (holder.view,), holder.counts)


def _sole_holder(report: PartitionReport, holder: SoleHolder) -> Iterator[Concern]:
    views, counts = (holder.view,), holder.counts
    if report.is_quorum:
        # Above the end of the majority nothing is committed; a voter that lacks it is behind.
        if counts.certain and not holder.is_tail_of_a_copy:
            yield _concern(report, State.MAYBE_AT_RISK, Kind.SOLE, views, counts)
        return
    if counts.certain and holder.is_tail_of_a_copy:
        yield _concern(report, State.MAYBE_AT_RISK, Kind.TAIL, views, counts)
    elif counts.certain:
        state = State.AT_RISK if _is_whole(report) else State.MAYBE_AT_RISK
        yield _concern(report, state, Kind.SOLE, views, counts)
    elif counts.possible and holder.is_tail_of_a_copy:
        yield _concern(report, State.UNKNOWN, Kind.TAIL, views, counts)
    elif counts.possible:
        yield _concern(report, State.MAYBE_AT_RISK, Kind.SOLE, views, counts)


def _truncations(report: PartitionReport, live: Sequence[ReplicaReport]) -> Iterator[Concern]:
    leader = report.leader
    if leader is None:
        return
    due = [one for one in live if one.truncation is not None]
    losing = [one for one in due if one.truncation is not None and one.truncation.lost.records]
    led = next((choice for choice in report.what_if if choice.leader is leader.view), None)
    if losing and led is not None:
        yield from _discarded(report, losing, led)
    elsewhere = [one for one in live if one.by_other_protocols]
    if elsewhere:
        at_stake = any(one.truncation is not None or _is_parted(one) for one in elsewhere)
        state = State.MAYBE_AT_RISK if at_stake else State.UNKNOWN
        yield _concern(report, state, Kind.PROTOCOL, (one.view for one in elsewhere), detail=_by_protocol(elsewhere[0]))
    harmless = [one for one in due if one not in losing]
    if harmless:
        again = [one for one in harmless if one.truncation is not None and one.truncation.counts.records]
        kind = Kind.COPIED_AGAIN if again else Kind.UNCOMMITTED
        yield _concern(report, State.UNCOMMITTED_ONLY, kind, (one.view for one in harmless))


def _is_parted(one: ReplicaReport) -> bool:
    return one.divergence is not None and not one.divergence.is_open


def _by_protocol(one: ReplicaReport) -> str:
    own = "nothing" if one.truncation is None else f"to {one.truncation.offset}"
    name = "" if isinstance(one.protocol, Absent) else one.protocol.name
    others = ", ".join(
        f"{other} {'nothing' if isinstance(offset, Absent) else f'to {offset}'}"
        for other, offset in one.by_other_protocols
    )
    return f"{name} truncates {own}, {others}"


def _discarded(report: PartitionReport, losing: Sequence[ReplicaReport], led: WhatIf) -> Iterator[Concern]:
    counts, views = led.discarded, [one.view for one in losing]
    is_sure = report.leader is not None and report.leader.is_known and not any(o.by_other_protocols for o in losing)
    is_tail = all(one.is_tail_of_a_copy for one in losing)
    if counts.certain:
        state = State.AT_RISK if is_sure and not is_tail else State.MAYBE_AT_RISK
        yield _concern(report, state, Kind.TAIL if is_tail else Kind.DISCARD, views, counts)
    elif is_tail and (counts.possible or report.is_quorum):
        state = State.UNKNOWN if report.is_quorum else State.MAYBE_AT_RISK
        yield _concern(report, state, Kind.TAIL, views, counts)
    elif counts.possible:
        yield _concern(report, State.MAYBE_AT_RISK, Kind.DISCARD, views, counts)
    elif is_sure:
        yield _concern(report, State.UNCOMMITTED_ONLY, Kind.UNCOMMITTED, views, counts)
    else:
        yield _concern(report, State.UNKNOWN, Kind.LEADER, views, counts)


def _elections(report: PartitionReport) -> Iterator[Concern]:
    leader = report.leader
    if leader is None or report.is_quorum:
        return
    others = [one for one in report.what_if if not (leader.is_known and one.leader is leader.view)]
    if isinstance(report.electable, Absent):
        if leader.is_known:
            return
        costs = [one.discarded for one in report.what_if]
        if min((cost.certain for cost in costs), default=0):
            state = State.AT_RISK if _is_whole(report) else State.MAYBE_AT_RISK
            best = min(report.what_if, key=lambda one: one.rank)
            yield _concern(report, state, Kind.ELECTED, (best.leader,), best.discarded, detail="whoever leads")
        elif any(cost.certain or cost.possible for cost in costs):
            yield _concern(report, State.UNKNOWN, Kind.LEADER, (leader.view,))
        return
    led = next((one.discarded for one in report.what_if if leader.is_known and one.leader is leader.view), None)
    for choice in others:
        cost = choice.discarded
        is_no_worse = led is not None and cost.certain <= led.certain and cost.possible <= led.possible
        if is_no_worse or choice.leader.replica.broker_id not in report.electable:
            continue
        if cost.certain:
            state = State.MAYBE_AT_RISK if choice.is_tail_of_a_copy else State.AT_RISK
            kind = Kind.TAIL if choice.is_tail_of_a_copy else Kind.ELECTED
            yield _concern(report, state, kind, (choice.leader,), cost)
        elif cost.possible:
            state = State.UNKNOWN if choice.is_tail_of_a_copy else State.MAYBE_AT_RISK
            kind = Kind.TAIL if choice.is_tail_of_a_copy else Kind.ELECTED
            yield _concern(report, state, kind, (choice.leader,), cost)


def _divergences(report: PartitionReport, live: Sequence[ReplicaReport]) -> Iterator[Concern]:
    parted = [one for one in live if one.verdict is Verdict.SILENT_DIVERGENCE]
    if parted:
        yield _concern(report, State.DIVERGED, Kind.DIVERGENCE, (one.view for one in parted))
    asked = [one for one in live if one.divergence is not None and one.divergence.is_open]
    if asked:
        yield _concern(report, State.UNKNOWN, Kind.COMPACTION, (one.view for one in asked))


def _missing_ends(report: PartitionReport, live: Sequence[ReplicaReport]) -> Iterator[Concern]:
    past = [one for one in live if one.past_end is not None]
    if past:
        end = max(one.view.log_end_offset for one in live)
        highest = max(one.past_end.value for one in past if one.past_end is not None)
        # A copy of a running broker, and a log after a power loss, end below a high watermark just so.
        is_sure = any(one.view.replica.clean_shutdown for one in past) or report.is_stopped
        state = State.AT_RISK if is_sure and _is_whole(report) else State.MAYBE_AT_RISK
        yield _concern(report, state, Kind.PAST_END, (one.view for one in past), records=highest - end)
    for one in live:
        view = one.view
        if view.truncated_by_recovery is None:
            continue
        before = view.replica.lineage.log_end_offset
        held = max((other.view.log_end_offset for other in live if other is not one), default=0)
        if before > max(held, view.log_end_offset):
            records = before - max(held, view.log_end_offset)
            yield _concern(report, State.MAYBE_AT_RISK, Kind.RECOVERY, (view,), records=records)


def _behind(report: PartitionReport, live: Sequence[ReplicaReport]) -> Iterator[Concern]:
    if len(live) < 2:
        return
    leader = report.leader
    is_led = leader is not None and leader.is_known
    best = leader.view if is_led and leader is not None else max((o.view for o in live), key=lambda v: v.log_end_offset)
    alone = next((holder for holder in report.sole_holders if holder.view is best), None)
    short = []
    for one in live:
        if one.view is best or one.view.log_end_offset >= best.log_end_offset:
            continue
        is_uncommitted = (
            alone is not None
            and alone.offsets.first <= one.view.log_end_offset
            and not alone.counts.certain
            and not alone.counts.possible
            and not report.is_quorum
        )
        if not is_uncommitted:
            short.append(one.view)
    if short and (is_led or not isinstance(report.electable, Absent)):
        yield _concern(report, State.BEHIND, Kind.BEHIND, short)
    elif short:
        yield _concern(report, State.UNKNOWN, Kind.LEADER, short)


def diff_answer(
    judged: Sequence[JudgedPartition],
    *,
    inputs: Sequence[Input],
    findings: Sequence[Finding] = (),
    problems: Sequence[Problem] = (),
) -> Answer:
    """The answer over all partitions that were compared.

    Args:
        judged: every partition with its concerns.
        inputs: what the concerns' inputs are called.
        findings: of the whole result; several clusters, or a broker given twice, make the comparison itself unknown.
        problems: what could not be read.
    """
    mixed = next((one for one in findings if one.code in {"KF507", "KF508"}), None)
    if mixed is not None:
        headline = f"UNKNOWN: these inputs can't be compared as they are: {mixed.statement}."
        return Answer(state=State.UNKNOWN, headline=headline, now=(mixed.advice,) if mixed.advice else ())
    if not judged:
        return Answer(state=State.UNKNOWN, headline="UNKNOWN: nothing to compare: no partition was found.")
    state = worst_state("diff", (one.state for one in judged)) or State.UNKNOWN
    if problems and state in {State.AGREE, State.BEHIND, State.SAME_ENDS}:
        state = State.UNKNOWN
    words = _Words(judged, state, inputs, problems)
    return Answer(
        state=state,
        headline=words.headline() + (_incomplete(problems) if problems else ""),
        now=tuple(words.now()),
        tell=tuple(words.tell()),
        later=tuple(words.later()),
        unknown=tuple(words.unknown()),
    )


def _incomplete(problems: Sequence[Problem]) -> str:
    return f" Incomplete: {_count(len(problems), 'thing')} could not be read."


class _Words:
    """The sentences of an answer."""

    def __init__(
        self, judged: Sequence[JudgedPartition], state: State, inputs: Sequence[Input], problems: Sequence[Problem]
    ) -> None:
        self.judged = judged
        self.state = state
        self.inputs = inputs
        self.problems = problems
        self.among = _count(len(judged), "partition")
        self.by_kind: dict[tuple[State, Kind], list[tuple[TopicPartition, Concern]]] = {}
        for one in judged:
            for concern in one.concerns:
                self.by_kind.setdefault((concern.state, concern.kind), []).append((one.partition, concern))

    def of(self, kind: Kind, *states: State) -> list[tuple[TopicPartition, Concern]]:
        return [item for state in states or (self.state,) for item in self.by_kind.get((state, kind), ())]

    def by_owners(
        self, items: Sequence[tuple[TopicPartition, Concern]]
    ) -> list[tuple[str, list[tuple[TopicPartition, Concern]]]]:
        """The concerns by whom they are about, those with most committed records first."""
        groups: dict[str, list[tuple[TopicPartition, Concern]]] = {}
        for item in items:
            groups.setdefault(_and(item[1].owners), []).append(item)
        return sorted(groups.items(), key=lambda group: (-_sum(group[1], "certain"), -_sum(group[1], "possible"), group))

    def headline(self) -> str:
        kinds = sorted((kind for state, kind in self.by_kind if state is self.state), key=_ORDER.__getitem__)
        if self.state is State.AGREE or not kinds:
            if self.state is State.AGREE:
                return f"All replicas agree: {self.among} compared, every assigned replica given."
            return f"UNKNOWN: {self.among} compared, and not all could be read."
        items = self.of(kinds[0])
        sentence: str = getattr(self, f"_{kinds[0].name.lower()}")(items)
        prefix = {
            State.MAYBE_AT_RISK: "MAYBE AT RISK: ",
            State.UNKNOWN: "UNKNOWN: ",
        }.get(self.state, "")
        others = {tp for kind in kinds[1:] for tp, _ in self.of(kind)} - {tp for tp, _ in items}
        more = f" {_count(len(others), 'other partition')} {'has' if len(others) == 1 else 'have'} other reasons." if others else ""
        return prefix + sentence + more

    # One sentence for each kind of concern, in the state that it decides.

    def _emptied(self, items: Sequence[tuple[TopicPartition, Concern]]) -> str:
        owner, own = self.by_owners(items)[0]
        count = _partitions(own)
        if self.state is State.AT_RISK:
            return f"STARTING {owner.upper()} DESTROYS {count.upper()}: {own[0][1].detail}."
        return f"starting {owner} may destroy {count}: {own[0][1].detail}."

    def _discard(self, items: Sequence[tuple[TopicPartition, Concern]]) -> str:
        owners = _and(dict.fromkeys(owner for _, one in items for owner in one.owners))
        certain, possible = _sum(items, "certain"), _sum(items, "possible")
        guess = next((one for _, one in items if one.guess), None)
        if guess is not None:
            what = _what(certain, possible)
            return f"if {guess.leader} leads ({guess.guess}), {owners} will discard {what} of {_partitions(items)}."
        if self.state is State.AT_RISK:
            also = f" (and {possible:,} that may have been committed)" if possible else ""
            return f"DATA AT RISK: {owners} will discard {_count(certain, 'committed record')}{also} of {_partitions(items)} that the leader does not hold."
        will = "may" if certain else "will"
        return f"{owners} {will} discard {_what(certain, possible)} of {_partitions(items)} that the leader does not hold."

    def _sole(self, items: Sequence[tuple[TopicPartition, Concern]]) -> str:
        groups = self.by_owners(items)
        owner, own = groups[0]
        certain, possible = _sum(own, "certain"), _sum(own, "possible")
        rest = "".join(
            f" Only {other} holds {_what(_sum(theirs, 'certain'), _sum(theirs, 'possible'))} of {_partitions(theirs)}."
            for other, theirs in groups[1:3]
        )
        if self.state is State.AT_RISK:
            return (
                f"ONLY {owner.upper()} HOLDS {_count(certain, 'committed record')} of {_partitions(own)}.{rest}"
                f" Start {owner} first; do not force an unclean election while it is down."
            )
        return f"only {owner}, of the replicas given, holds {_what(certain, possible)} of {_partitions(own)}.{rest}"

    def _past_end(self, items: Sequence[tuple[TopicPartition, Concern]]) -> str:
        owners = _and(dict.fromkeys(owner for _, one in items for owner in one.owners))
        words = f"{owners} recorded high watermarks up to {_count(_sum(items, 'records'), 'offset')} past the end of every log, of {_partitions(items)}"
        if self.state is State.AT_RISK:
            return f"COMMITTED RECORDS ARE MISSING: {words}."
        return f"{words}: copied while the broker ran, or after a power loss."

    def _recovery(self, items: Sequence[tuple[TopicPartition, Concern]]) -> str:
        owners = _and(dict.fromkeys(owner for _, one in items for owner in one.owners))
        return f"recovery at the start of {owners} will drop {_count(_sum(items, 'records'), 'offset')} of {_partitions(items)} that no other log reaches."

    def _elected(self, items: Sequence[tuple[TopicPartition, Concern]]) -> str:
        certain, possible = _sum(items, "certain"), _sum(items, "possible")
        owners = _or(dict.fromkeys(owner for _, one in items for owner in one.owners))
        if any(one.detail for _, one in items):
            return f"whoever leads, {_what(certain, possible)} of {_partitions(items)} will be discarded."
        lead = "DATA AT RISK: " if self.state is State.AT_RISK else ""
        return f"{lead}if {owners} is elected, which can be without an unclean election, {_what(certain, possible)} of {_partitions(items)} will be discarded."

    def _outside(self, items: Sequence[tuple[TopicPartition, Concern]]) -> str:
        owners = _and(dict.fromkeys(owner for _, one in items for owner in one.owners))
        what = _what(_sum(items, "certain"), _sum(items, "possible"))
        return f"only {owners} holds {what} of {_partitions(items)}, and is no replica any more."

    def _protocol(self, items: Sequence[tuple[TopicPartition, Concern]]) -> str:
        partition, one = items[0]
        return f"what {_and(one.owners)} truncates depends on the Kafka version, which no input tells: of {partition}, {one.detail}; {_partitions(items)} in all."

    def _divergence(self, items: Sequence[tuple[TopicPartition, Concern]]) -> str:
        return f"REPLICAS DIFFER FOR GOOD: {_partitions(items)} of {len(self.judged)} hold different content at the same offset, and replication will not repair it."

    def _missing(self, items: Sequence[tuple[TopicPartition, Concern]]) -> str:
        owners = _and(dict.fromkeys(owner for _, one in items for owner in one.owners))
        are = "are" if " and " in owners else "is"
        return f"{owners} {are} not among the inputs and should hold {_partitions(items)}."

    def _alone(self, items: Sequence[tuple[TopicPartition, Concern]]) -> str:
        return f"nothing was compared: of {_partitions(items)} one replica is given."

    def _tail(self, items: Sequence[tuple[TopicPartition, Concern]]) -> str:
        owners = _and(dict.fromkeys(owner for _, one in items for owner in one.owners))
        records = max(one.records for _, one in items)
        if _sum(items, "certain"):
            held = _what(_sum(items, "certain"), _sum(items, "possible"))
            return f"{owners} alone {'hold' if ' and ' in owners else 'holds'} {held} of {_partitions(items)}, or others were copied earlier while they ran."
        ends = f"the last records of {_partitions(items)} on {owners}, up to {records:,} of one"
        return f"copied while brokers ran, or after a power loss: {ends}, can't be judged."

    def _leader(self, items: Sequence[tuple[TopicPartition, Concern]]) -> str:
        return f"replicas of {_partitions(items)} end differently, and no input tells who leads."

    def _compaction(self, items: Sequence[tuple[TopicPartition, Concern]]) -> str:
        return f"compacted replicas of {_partitions(items)} differ by records for which no input holds a later one of the same key."

    def _damage(self, items: Sequence[tuple[TopicPartition, Concern]]) -> str:
        partition, one = items[0]
        return f"the only replica of {partition} given can't give {one.detail}: its bytes are damaged; {_partitions(items)} in all."

    def _other_topic(self, items: Sequence[tuple[TopicPartition, Concern]]) -> str:
        return f"replicas of {_partitions(items)} belong to another topic of the same name and were not compared."

    def _no_replica(self, items: Sequence[tuple[TopicPartition, Concern]]) -> str:
        return f"no live replica of {_partitions(items)} is among the inputs."

    def _unread(self, items: Sequence[tuple[TopicPartition, Concern]]) -> str:
        return f"files of {_partitions(items)} could not be read."

    def _assignment(self, items: Sequence[tuple[TopicPartition, Concern]]) -> str:
        due = self.of(Kind.COPIED_AGAIN, State.UNCOMMITTED_ONLY)
        if {tp for tp, _ in due} & {tp for tp, _ in items}:
            leaders = _and(dict.fromkeys(one.leader for _, one in due))
            stay = f"{leaders} must stay up, if it leads, until what others truncate is copied again"
            return f"no input tells which brokers {_partitions(items)} are assigned to; {stay}."
        return f"the replicas given of {_partitions(items)} agree, and no input tells whether they are all."

    def _copied_again(self, items: Sequence[tuple[TopicPartition, Concern]]) -> str:
        leaders = _and(dict.fromkeys(one.leader for _, one in items))
        followers = _and(dict.fromkeys(owner for _, one in items for owner in one.owners))
        return f"{followers} will truncate committed records of {_partitions(items)} and copy them again: {leaders} must stay up until then."

    def _uncommitted(self, items: Sequence[tuple[TopicPartition, Concern]]) -> str:
        owners = _and(dict.fromkeys(owner for _, one in items for owner in one.owners))
        return f"Nothing committed is at risk: {owners} will truncate records of {_partitions(items)} that were never committed."

    def _behind(self, items: Sequence[tuple[TopicPartition, Concern]]) -> str:
        owners = _and(dict.fromkeys(owner for _, one in items for owner in one.owners))
        return f"No replica will truncate; {owners} {'lack' if ' and ' in owners else 'lacks'} records of {_partitions(items)} of {len(self.judged)} that others hold."

    def now(self) -> Iterator[str]:
        for owner, items in self.by_owners(self.of(Kind.EMPTIED, State.AT_RISK, State.MAYBE_AT_RISK)):
            yield f"Do not start {owner}: elected with an empty log, it makes the other replicas truncate theirs to 0. Give it its former disk back, or let a broker that holds the records lead first."
            yield f"The partitions: {_names(items)}."
        losing = self.of(Kind.DISCARD, State.AT_RISK, State.MAYBE_AT_RISK) + self.of(
            Kind.PROTOCOL, State.MAYBE_AT_RISK
        )
        for owner, items in self.by_owners(losing):
            yield f"Do not start {owner} before its directory is copied: {self._copy(items)}"
        for owner, items in self.by_owners(self.of(Kind.SOLE, State.AT_RISK, State.MAYBE_AT_RISK)):
            yield f"Start {owner} first, and do not force an unclean election while it is down; copy its directory before: {self._copy(items)}"
        for owner, items in self.by_owners(self.of(Kind.OUTSIDE, State.MAYBE_AT_RISK)):
            yield f"Copy the directories of {owner} before it starts, which makes them -stray: {self._copy(items)}"
        for owner, items in self.by_owners(self.of(Kind.ELECTED, State.AT_RISK, State.MAYBE_AT_RISK)):
            yield f"Do not start {owner} before a broker that holds all of {_names(items)} leads."
        for owner, items in self.by_owners(self.of(Kind.RECOVERY, State.MAYBE_AT_RISK)):
            yield f"Copy the log of {owner} before it starts: {self._copy(items)}"
        if self.of(Kind.PAST_END, State.AT_RISK, State.MAYBE_AT_RISK):
            yield "Look for another replica or an earlier copy before anything is started."
        if self.of(Kind.DIVERGENCE, State.DIVERGED):
            yield "Find out which content is right before a leader changes: readers get one or the other. Delete nothing."
        again = self.of(Kind.COPIED_AGAIN, State.UNCOMMITTED_ONLY)
        for leader in dict.fromkeys(one.leader for _, one in again):
            yield f"Keep {leader} up until its followers have caught up: what they truncate is on its disk alone meanwhile."

    def _copy(self, items: Sequence[tuple[TopicPartition, Concern]]) -> str:
        paths = dict.fromkeys(self.inputs[at].path for _, one in items for at in one.inputs if at < len(self.inputs))
        return "; ".join(f"cp -a {shlex.quote(path)} {shlex.quote(path.rstrip('/') + '.copy')}" for path in paths)

    def tell(self) -> Iterator[str]:
        risky = [
            item
            for kind in (Kind.EMPTIED, Kind.DISCARD, Kind.SOLE, Kind.ELECTED, Kind.PAST_END)
            for item in self.of(kind, State.AT_RISK)
        ]
        if risky:
            yield f"Those who write and read {_topics(risky)}: committed records can be lost at the next start."
        parted = self.of(Kind.DIVERGENCE, State.DIVERGED)
        if parted:
            yield f"Those who read {_topics(parted)}: what they got depends on which broker led."

    def later(self) -> Iterator[str]:
        if self.of(Kind.SOLE, State.AT_RISK) or self.of(Kind.DISCARD, State.AT_RISK):
            yield "With min.insync.replicas of 2 or more and acks=all, no replica alone holds what was acknowledged."

    def unknown(self) -> Iterator[str]:
        missing = self.of(Kind.MISSING, State.UNKNOWN)
        if missing:
            whose = _and(dict.fromkeys(owner for _, one in missing for owner in one.owners))
            needed = sorted({part for _, one in missing for part in one.detail.split(", ") if part})
            last = f" ({', '.join(needed)} can be elected)" if needed else ""
            yield f"What is on {whose}{last}, assigned {_names(missing)}: give its data directories too."
        for kind in (Kind.ASSIGNMENT, Kind.ALONE):
            items = [item for item in self.of(kind, State.UNKNOWN) if not any(one is item for one in missing)]
            if items:
                owners = dict.fromkeys(owner.removeprefix("broker ") for _, one in items for owner in one.owners)
                stated = ",".join(owners) if all(owner.isdecimal() for owner in owners) else "1,2,3"
                yield f"Which brokers are assigned {_names(items)}: give the cluster's metadata log or its controller.log and state-change.log, or state it, as with --replicas {stated}."
        if self.of(Kind.LEADER, State.UNKNOWN) or any(
            one.guess for judged in self.judged for one in judged.concerns if one.state is not State.BEHIND
        ):
            yield "Who leads: give the metadata log, controller.log or state-change.log, or state it with --leader."
        if self.of(Kind.TAIL, State.UNKNOWN, State.MAYBE_AT_RISK) or self.of(Kind.PAST_END, State.MAYBE_AT_RISK):
            yield "Whether brokers ran when they were copied: if none did, say --stopped, and the ends of logs are judged."
        if self.of(Kind.PROTOCOL, State.UNKNOWN, State.MAYBE_AT_RISK):
            yield "Which Kafka version the brokers run: give server.log, or state it with --protocol."
        if self.of(Kind.COMPACTION, State.UNKNOWN):
            yield "Whether a later record of the same key was there: give the other replicas or an earlier copy."
        if self.problems:
            yield f"What the {_count(len(self.problems), 'thing')} hold that could not be read (listed below)."


def _sum(items: Sequence[tuple[TopicPartition, Concern]], name: str) -> int:
    return sum(getattr(one, name) for _, one in items)


def _what(certain: int, possible: int) -> str:
    if certain and possible:
        return f"{_count(certain, 'committed record')} and {possible:,} that may have been committed"
    if certain:
        return _count(certain, "committed record")
    return f"{_count(possible, 'record')} that may have been committed"


def _partitions(items: Sequence[tuple[TopicPartition, Concern]]) -> str:
    return _count(len({partition for partition, _ in items}), "partition")


def _names(items: Sequence[tuple[TopicPartition, Concern]]) -> str:
    names = list(dict.fromkeys(str(partition) for partition, _ in items))
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _topics(items: Sequence[tuple[TopicPartition, Concern]]) -> str:
    names = list(dict.fromkeys(partition.topic for partition, _ in items))
    more = f" and {len(names) - _MOST_NAMED} more topics" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _count(count: int, singular: str) -> str:
    return f"{count:,} {singular if count == 1 else singular + 's'}"


def _and(names: Iterable[str]) -> str:
    return _joined(names, "and")


def _or(names: Iterable[str]) -> str:
    return _joined(names, "or")


def _joined(names: Iterable[str], word: str) -> str:
    """Names in a sentence, those of one kind together: `brokers 1 and 2 and controller 100`."""
    every = sorted(dict.fromkeys(names), key=lambda name: (len(name), name))
    parts = []
    for kind in dict.fromkeys(name.rpartition(" ")[0] for name in every):
        numbers = [name.rpartition(" ")[2] for name in every if name.rpartition(" ")[0] == kind]
        several = f"{kind}s {', '.join(numbers[:-1])} {word} {numbers[-1]}"
        parts.append(several if len(numbers) > 1 else f"{kind} {numbers[0]}".strip())
    return f" {word} ".join(parts)
