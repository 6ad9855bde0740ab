"""The concerns that speak against the agreement of a partition's replicas, each with the state that it leads to.

A partition agrees only where every assigned replica is given and nothing speaks against it. The worst concern is the state of the partition.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.metadata.quorum import majority
from kforensics.evidence.model import Problem, Replica
from kforensics.evidence.replica.unaccounted import is_empty, unaccounted_offsets
from kforensics.findings.answers.model import State, worst_state
from kforensics.reconcile.committed.judge import CommittedCounts
from kforensics.reconcile.logs.loaded_log import LoadedLog
from kforensics.reconcile.observed.leadership import LeadershipAccount, Risk
from kforensics.reconcile.replicas.holders import SoleHolder
from kforensics.reconcile.replicas.report import PartitionReport, ReplicaReport, Verdict, WhatIf
from kforensics.units import Depth, OffsetRange, TopicPartition
from kforensics.words import counted, listed


class ConcernKind(StrEnum):
    """The subject of a concern; the order is that of the headlines of one state."""

    EMPTIED = "emptied"
    GONE = "gone"
    LEFT_OUT = "left-out"
    DISCARD = "discard"
    SOLE = "sole"
    PAST_END = "past-end"
    RECOVERY = "recovery"
    ELECTED = "elected"
    OUTSIDE = "outside"
    PROTOCOL = "protocol"
    DIVERGENCE = "divergence"
    UNNAMED = "unnamed"
    MISSING = "missing"
    TAIL = "tail"
    LEADER = "leader"
    COMPACTION = "compaction"
    DAMAGE = "damage"
    OTHER_TOPIC = "other-topic"
    NO_REPLICA = "no-replica"
    UNREAD = "unread"
    OUTDATED = "outdated"
    LOGGED_END = "logged-end"
    SAME_DISK = "same-disk"
    ASSIGNMENT = "assignment"
    ALONE = "alone"
    COPIED_AGAIN = "copied-again"
    UNCOMMITTED = "uncommitted"
    BEHIND = "behind"
    ENDS = "ends"
    DELETED = "deleted"
    OBSERVERS = "observers"
    NO_EPOCHS = "no-epochs"
    LEFT_BYTES = "left-bytes"


OTHER_DISKS = "other log directories of "
"""What precedes an owner some of whose log directories are given, and none that holds the partition."""

ORDER = {kind: at for at, kind in enumerate(ConcernKind)}
"""The order of kinds: of two concerns of one state the first of these makes the headline."""


class Concern(NamedTuple):
    """One reason why a partition does not simply agree."""

    state: State
    kind: ConcernKind
    owners: tuple[str, ...] = ()
    """The owners of the replicas that it is about, in words."""
    inputs: tuple[int, ...] = ()
    """The inputs of these replicas."""
    certain: int = 0
    """Records that were certainly committed, each counted once."""
    possible: int = 0
    records: int = 0
    """The number of all records, where it matters."""
    leader: str = ""
    """The owner of the log that the others follow, in words."""
    guess: str = ""
    """Why that leader is only guessed; empty where it is known."""
    detail: str = ""
    places: tuple[tuple[int, str], ...] = ()
    """Input and path of the directories that it is about, where these are not all that its owners hold."""
    is_sole: bool = False
    """It is about the only member of the ISR."""
    is_replaced: bool = False
    """Others hold other records at these offsets, in a later leader epoch: to start first saves nothing."""
    whole: str = ""
    """The owner of another replica that holds intact all that those hold which it is about; empty where none is known to."""
    holds: str = ""
    """Which offsets each replica can give, in words."""
    is_stated: bool = False
    """It rests on the assignment that an operator stated, and no record does."""


def concern_of(plain: Mapping[str, Any]) -> Concern:
    """Return the concern of its plain values, as the tables of an audit hold them.

    Args:
        plain: the fields by name, lists where the concern has tuples.

    Raises:
        KeyError: state or kind is missing.
        ValueError: state or kind is none that this version knows.
    """
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()}
    values["places"] = tuple((number, path) for number, path in plain.get("places", ()))
    values["state"], values["kind"] = State(plain["state"]), ConcernKind(plain["kind"])
    return Concern(**values)


class JudgedPartition(NamedTuple):
    """A partition with what it gives reason for; small, so that of an agreeing one nothing else has to be kept."""

    partition: TopicPartition
    concerns: tuple[Concern, ...]
    risks: tuple[str, ...] = ()
    """Why elections on record may have lost committed records before, in words."""
    settled_by: str = ""
    """The input that would show what the account of its leaders does not, where there is such a gap."""

    @property
    def is_deleted(self) -> bool:
        """Whether its topic was deleted: nothing was compared."""
        return any(one.kind is ConcernKind.DELETED for one in self.concerns)

    def led_by(self, account: LeadershipAccount) -> "JudgedPartition":
        """Return the same of the partition of an account, with what that account leaves open.

        Args:
            account: of the leaders of the partition that is judged, or of one of which the same is to be said.
        """
        return self._replace(
            partition=account.partition,
            risks=tuple(dict.fromkeys([RISKS[one.risk] for one in account.risky if one.risk])),
            settled_by=account.gaps[0].settled_by if account.gaps else "",
        )

    @property
    def state(self) -> State:
        """The worst that any concern leads to."""
        return worst_state("diff", (one.state for one in self.concerns)) or State.AGREE


def judged_partition(report: PartitionReport, problems: Sequence[Problem] = ()) -> JudgedPartition:
    """Return the concerns about a partition.

    Args:
        problems: what could not be read of it.
    """
    concerns = tuple(_concerns(report))
    if problems or any(_is_unread(one) for one in report.replicas):
        # A log that is not read whole looks shorter than it is: nothing about its partition is certain.
        hedged = (c._replace(state=State.MAYBE_AT_RISK) if c.state is State.AT_RISK else c for c in concerns)
        concerns = (*hedged, Concern(state=State.UNKNOWN, kind=ConcernKind.UNREAD))
    judged = JudgedPartition(partition=report.partition, concerns=concerns)
    return judged if report.account is None else judged.led_by(report.account)


def _is_unread(one: ReplicaReport) -> bool:
    """Whether a file that decides about a replica could not be read: of its log, or the checkpoint of its high watermark."""
    return bool(one.view.replica.unread_files) or (one.verdict is Verdict.UNREADABLE and one.compared_with is not None)


RISKS: Mapping[Risk, str] = {
    Risk.UNCLEAN: "an unclean election",
    Risk.UNCLEAN_RESTART: "a leader that had stopped uncleanly",
    Risk.OTHER_DISK: "a leader with another disk",
    Risk.OLDER_DISK: "a leader whose disk had been put back to an earlier state",
    Risk.RESTART: "a leader that had restarted while it alone was in sync",
    Risk.HIGH_WATERMARK: "a leader that had truncated to its high watermark",
}


def partition_state(report: PartitionReport, problems: Sequence[Problem] = ()) -> State:
    """Return the state of one partition, by the words of the whole answer.

    Args:
        problems: what could not be read of it.
    """
    return judged_partition(report, problems).state


def _concerns(report: PartitionReport) -> Iterator[Concern]:
    is_of_ends = report.depth is Depth.TAILS
    if report.is_deleted:
        yield Concern(state=State.SAME_ENDS if is_of_ends else State.AGREE, kind=ConcernKind.DELETED)
        # No replica is expected anywhere; of a topic created again under that name none is given.
        if report.is_replaced:
            yield _concern(report, State.UNKNOWN, ConcernKind.OTHER_TOPIC, (one.view for one in report.replicas))
        return
    if is_of_ends:
        yield Concern(state=State.SAME_ENDS, kind=ConcernKind.ENDS, records=report.not_compared_below)
    given = [one for one in report.replicas if _is_replica(one)]
    live = [one for one in given if one.view.replica.is_log_known]
    if report.is_quorum and not isinstance(report.assigned, Absent):
        # Observers copy the metadata log and have no part in what is committed.
        partial = [one.view for one in live if one.view.missing and not report.is_voter(one.view)]
        if partial:
            owners = tuple(dict.fromkeys(map(report.owner_of, partial)))
            yield Concern(state=State.AGREE, kind=ConcernKind.OBSERVERS, owners=owners)
        live = [one for one in live if report.is_voter(one.view)]
        given = [one for one in given if report.is_voter(one.view)]
    yield from _emptied(report, live)
    left_out = [one.view for one in given if one.view.replica.is_left_out]
    if left_out:
        yield _concern(report, State.UNKNOWN, ConcernKind.LEFT_OUT, left_out)
    lacking = [
        one
        for one in given
        if not (one.view.replica.is_log_known or one.view.replica.unread_files or one.view.replica.is_left_out)
    ]
    yield from _gone(report, live, lacking)
    yield from _not_compared(report, live, given)
    yield from _sole_holders(report, live)
    yield from _truncations(report, live)
    yield from _elections(report)
    yield from _divergences(report, live)
    yield from _missing_ends(report, live)
    yield from _behind(report, live)
    yield from _without_epochs(report, live)
    yield from _left_bytes(report, live)


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
        record, is_named, _ = leader.reason.partition("; ")
        return f"guessed: {f'{record}, and ' if is_named else ''}its log and that of broker {others} speak for each as much"
    return f"guessed: {leader.reason}"


def _leader_words(report: PartitionReport) -> str:
    return report.owner_of(report.leader.view) if report.leader is not None else ""


def _concern(
    report: PartitionReport,
    state: State,
    kind: ConcernKind,
    views: Iterable[LoadedLog] = (),
    counts: CommittedCounts | None = None,
    *,
    detail: str = "",
    records: int = 0,
) -> Concern:
    views = tuple(views)
    return Concern(
        state=state,
        kind=kind,
        owners=tuple(dict.fromkeys(map(report.owner_of, views))),
        inputs=tuple(dict.fromkeys(view.replica.input for view in views)),
        certain=counts.certain if counts else 0,
        possible=counts.possible if counts else 0,
        records=records or (counts.records if counts else 0),
        leader=_leader_words(report),
        guess=_guess(report),
        detail=detail,
    )


def _emptied(report: PartitionReport, live: Sequence[ReplicaReport]) -> Iterator[Concern]:
    has_records = not live or any(one.view.log_end_offset > 0 for one in live)
    end = max((one.view.log_end_offset for one in live), default=0)
    for one in report.emptied:
        if one.named is not None and (one.named.value > end or not one.is_electable):
            # What every assigned broker lacks is not there to be destroyed any more.
            is_lost = one.named.value > end and _is_whole(report)
            state = State.MAYBE_AT_RISK if is_lost else State.UNKNOWN
            # Where no copy of it is anywhere, copying may have left it out.
            detail = one.reason if live else f"{one.reason}, lost or left out of the copy"
            yield Concern(state=state, kind=ConcernKind.GONE, owners=(f"broker {one.broker_id}",), detail=detail)
            if not live or not one.is_electable:
                continue
        reason = one.reason if one.named is None else f"{one.reason}, unless the copy left it out,"
        detail = f"{reason} and {f'the ISR is [{one.broker_id}]' if one.is_sole else 'it can be elected'}"
        if not live and not one.is_certain:
            continue
        if not one.is_assigned and has_records:
            detail = f"{one.reason}, and no input shows what was in it"
            owners = (f"broker {one.broker_id}",)
            yield Concern(state=State.MAYBE_AT_RISK, kind=ConcernKind.EMPTIED, owners=owners, detail=detail)
        elif one.is_electable and has_records:
            state = State.AT_RISK if one.is_certain else State.MAYBE_AT_RISK
            owners = (f"broker {one.broker_id}",)
            yield Concern(state=state, kind=ConcernKind.EMPTIED, owners=owners, detail=detail, is_sole=one.is_sole)
        elif has_records:
            is_led = report.leader is not None and report.leader.is_known
            state = State.BEHIND if is_led else State.UNKNOWN
            kind = ConcernKind.BEHIND if is_led else ConcernKind.GONE
            yield Concern(state=state, kind=kind, owners=(f"broker {one.broker_id}",), detail=one.reason)


def _gone(
    report: PartitionReport, live: Sequence[ReplicaReport], without_log: Sequence[ReplicaReport]
) -> Iterator[Concern]:
    """Replicas whose own files name offsets that their log does not hold: what they lack was not copied too late, it is missing."""
    electable = frozenset() if isinstance(report.electable, Absent) else report.electable
    for one in (*live, *without_log):
        replica = one.view.replica
        others = any(other.view.log_end_offset > one.view.log_end_offset for other in live)
        # What its checkpoints name of a log of 0 bytes came after it was copied, or went with a power loss, unless it was stopped cleanly.
        lacks = one.view.missing or (unaccounted_offsets(replica) if others and is_empty(replica) else ())
        words = f"{lacks[0].words} {lacks[0].are} unaccounted for by its own files" if lacks else ""
        if replica.has_no_log:
            words = f"no .log file of it is here, and {words or _began(replica)}".removesuffix(", and ")
        if not words:
            continue
        is_sure = bool(one.view.missing) or report.is_stopped
        if is_empty(replica) and others and replica.broker_id in electable:
            is_sole = isinstance(report.isr, frozenset) and report.isr == {replica.broker_id}
            isr = f"the ISR is [{replica.broker_id}]" if is_sole else "it can be elected"
            state = State.AT_RISK if is_sure and not replica.has_no_log else State.MAYBE_AT_RISK
            why = "its log was removed, or the copy left it out" if replica.has_no_log else "its log is empty"
            detail = f"{why}, {words}, and {isr}"
            yield _concern(report, state, ConcernKind.EMPTIED, (one.view,), detail=detail)._replace(is_sole=is_sole)
        elif is_sure or replica.has_no_log:
            yield _concern(report, State.UNKNOWN, ConcernKind.GONE, (one.view,), detail=words)
        else:
            count = last + 1 - lacks[0].first if isinstance(last := lacks[-1].last, int) else 0
            yield _concern(report, State.UNKNOWN, ConcernKind.TAIL, (one.view,), records=count)


def _began(replica: Replica) -> str:
    claimed = replica.checkpoint_epochs
    began = 0 if isinstance(claimed, Absent) or not claimed else claimed[-1].start_offset
    return f"a leader epoch began in it at offset {began:,}" if began else ""


def _not_compared(
    report: PartitionReport, live: Sequence[ReplicaReport], given: Sequence[ReplicaReport]
) -> Iterator[Concern]:
    others = [one for one in report.replicas if one.verdict is Verdict.DIFFERENT_TOPIC]
    if others and isinstance(report.assigned, Absent):
        yield _concern(report, State.UNKNOWN, ConcernKind.OTHER_TOPIC, (one.view for one in others))
    if report.missing_replicas:
        node = "controller" if report.is_quorum else "broker"
        names = tuple(
            f"{OTHER_DISKS if broker in report.without_disk else ''}{node} {broker}"
            for broker in report.missing_replicas
        )
        electable = () if isinstance(report.electable, Absent) else report.electable
        needed = [broker for broker in report.missing_replicas if broker in electable]
        detail = ", ".join(map(str, needed))
        # A directory that does not say whose it is may be the one that is missing.
        kind = ConcernKind.UNNAMED if any(one.view.replica.is_unnamed for one in given) else ConcernKind.MISSING
        is_stated = report.is_assignment_stated
        yield Concern(state=State.UNKNOWN, kind=kind, owners=names, detail=detail, is_stated=is_stated)
    if not given:
        # One that was created after its brokers were copied has no directory anywhere, and one of which every directory was left out has none either.
        if not report.missing_replicas and not any(one.is_certain for one in report.emptied):
            yield _concern(report, State.UNKNOWN, ConcernKind.NO_REPLICA)
        return
    if isinstance(report.later_epoch, int):
        yield _concern(report, State.UNKNOWN, ConcernKind.OUTDATED, detail=str(report.later_epoch))
    if report.logged_past_end:
        view, end, held, is_furthest, is_same_topic = report.logged_past_end[0]
        records = end.offset - held
        which = "" if is_furthest else " that holds what the leader does"
        past = f"{counted(records, 'offset')} past the end of every log of {report.partition}{which}"
        past += "" if is_same_topic else ", unless that line is of an earlier topic of the name"
        detail = f"the log of {report.owner_of(view)} had reached offset {end.offset:,} by {end.place}, {past}"
        views = [one.view for one in report.logged_past_end]
        yield _concern(report, State.UNKNOWN, ConcernKind.LOGGED_END, views, detail=detail, records=records)
    if isinstance(report.assigned, Absent):
        kind = ConcernKind.ALONE if len(given) == 1 else ConcernKind.ASSIGNMENT
        yield _concern(report, State.UNKNOWN, kind, (one.view for one in given))
    elif len(given) == 1 and len(report.assigned) > 1 and not report.emptied and not report.missing_replicas:
        yield _concern(report, State.UNKNOWN, ConcernKind.ALONE, (one.view for one in given))
    for one in live:
        if one.view.damaged and len(live) == 1:
            lost = one.view.damaged[0].offsets
            detail = f"offsets {lost.first} to {lost.last}"
            yield _concern(report, State.UNKNOWN, ConcernKind.DAMAGE, (one.view,), detail=detail)


def _report_of(live: Sequence[ReplicaReport], view: LoadedLog) -> ReplicaReport | None:
    return next((one for one in live if one.view is view), None)


def _sole_holders(report: PartitionReport, live: Sequence[ReplicaReport]) -> Iterator[Concern]:
    is_led = report.leader is not None and report.leader.is_known
    is_parted = any(one.verdict is Verdict.SILENT_DIVERGENCE for one in live)
    for holder in report.sole_holders:
        own = _report_of(live, holder.view)
        if own is None or (is_led and own.truncation is not None) or (is_parted and holder.is_other_content):
            # What it loses, or differs in, is reported as such.
            continue
        yield from _sole_holder(report, holder)
    counts = report.unassigned_counts
    if counts is not None and counts.records:
        outside = [one.view for one in report.unassigned_holders]
        places = tuple((view.replica.input, view.replica.path) for view in outside)
        # What was never committed may have been acknowledged with acks=1, and these directories are the last that hold it.
        state = State.MAYBE_AT_RISK if counts.certain or counts.possible else State.UNCOMMITTED_ONLY
        yield _concern(report, state, ConcernKind.OUTSIDE, outside, counts)._replace(places=places)


def _sole_holder(report: PartitionReport, holder: SoleHolder) -> Iterator[Concern]:
    views, counts = (holder.view,), holder.counts
    if report.is_quorum:
        # Above the end of the majority nothing is committed; a voter that lacks it is behind.
        if counts.certain and not holder.is_tail_of_a_copy:
            yield _concern(report, State.MAYBE_AT_RISK, ConcernKind.SOLE, views, counts)
        return
    newest = holder.view.last_epoch
    is_replaced = holder.is_other_content and any(
        isinstance(epoch := choice.leader.last_epoch, int) and isinstance(newest, int) and epoch > newest
        for choice in report.what_if
    )
    if counts.certain and holder.is_tail_of_a_copy:
        yield _concern(report, State.MAYBE_AT_RISK, ConcernKind.TAIL, views, counts)
    elif counts.certain:
        state = State.AT_RISK if _is_whole(report) else State.MAYBE_AT_RISK
        yield _concern(report, state, ConcernKind.SOLE, views, counts)._replace(is_replaced=is_replaced)
    elif counts.possible and holder.is_tail_of_a_copy:
        yield _concern(report, State.UNKNOWN, ConcernKind.TAIL, views, counts)
    elif counts.possible:
        concern = _concern(report, State.MAYBE_AT_RISK, ConcernKind.SOLE, views, counts)
        yield concern._replace(is_replaced=is_replaced)


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
        at_risk = any(one.truncation is not None or _is_parted(one) for one in elsewhere)
        state = State.MAYBE_AT_RISK if at_risk else State.UNKNOWN
        yield _concern(
            report, state, ConcernKind.PROTOCOL, (one.view for one in elsewhere), detail=_by_protocol(elsewhere[0])
        )
    harmless = [one for one in due if one not in losing]
    if harmless:
        again = [one for one in harmless if one.truncation is not None and one.truncation.counts.records]
        kind = ConcernKind.COPIED_AGAIN if again else ConcernKind.UNCOMMITTED
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
        yield _concern(report, state, ConcernKind.TAIL if is_tail else ConcernKind.DISCARD, views, counts)
    elif is_tail and (counts.possible or report.is_quorum):
        state = State.UNKNOWN if report.is_quorum else State.MAYBE_AT_RISK
        yield _concern(report, state, ConcernKind.TAIL, views, counts)
    elif counts.possible:
        yield _concern(report, State.MAYBE_AT_RISK, ConcernKind.DISCARD, views, counts)
    elif is_sure:
        yield _concern(report, State.UNCOMMITTED_ONLY, ConcernKind.UNCOMMITTED, views, counts)
    else:
        yield _concern(report, State.UNKNOWN, ConcernKind.LEADER, views, counts)


def _elections(report: PartitionReport) -> Iterator[Concern]:
    leader = report.leader
    if leader is None or report.is_quorum:
        return
    if isinstance(report.electable, Absent):
        if leader.is_known:
            return
        # A broker without a log has a concern of its own.
        choices = [one for one in report.what_if if not one.is_emptied]
        costs = [one.discarded for one in choices]
        if min((cost.certain for cost in costs), default=0):
            state = State.AT_RISK if _is_whole(report) else State.MAYBE_AT_RISK
            best = min(choices, key=lambda one: one.rank)
            yield _concern(
                report, state, ConcernKind.ELECTED, (best.leader,), best.discarded, detail="whichever replica leads"
            )
        elif any(cost.certain or cost.possible for cost in costs):
            yield _concern(report, State.UNKNOWN, ConcernKind.LEADER, (leader.view,))
        return
    for choice in report.costly_elections:
        cost = choice.discarded
        if cost.certain:
            state = State.MAYBE_AT_RISK if choice.is_tail_of_a_copy else State.AT_RISK
        else:
            state = State.UNKNOWN if choice.is_tail_of_a_copy else State.MAYBE_AT_RISK
        if choice.is_tail_of_a_copy:
            # It is about those that hold the end, not about the one that lacks it.
            yield _concern(report, state, ConcernKind.TAIL, (view for view, _ in choice.truncations), cost)
        else:
            yield _concern(report, state, ConcernKind.ELECTED, (choice.leader,), cost)


def _divergences(report: PartitionReport, live: Sequence[ReplicaReport]) -> Iterator[Concern]:
    parted = [one for one in live if one.verdict is Verdict.SILENT_DIVERGENCE]
    if parted:
        views = [one.view for one in report.odd_ones] or [one.view for one in parted]
        # Where each is damaged at its own place, none of them is one to copy from.
        is_one_whole = len(report.odd_ones) < len(live)
        reasons = {one.reason: report.owner_of(one.view) for one in report.odd_ones} if is_one_whole else {}
        detail = "; ".join(f"{owner}: {why}" if len(reasons) > 1 else why for why, owner in reasons.items())
        concern = _concern(report, State.DIVERGED, ConcernKind.DIVERGENCE, views, detail=detail)
        yield concern._replace(whole=_whole_beside(report, live, views), holds=_what_each_holds(report, live))
    asked = [one for one in live if one.divergence is not None and one.divergence.is_open]
    if asked:
        yield _concern(report, State.UNKNOWN, ConcernKind.COMPACTION, (one.view for one in asked))


def _whole_beside(report: PartitionReport, live: Sequence[ReplicaReport], odd: Sequence[LoadedLog]) -> str:
    """Return the owner of a replica that holds intact all that these do; empty where none of those given is known to."""
    if any(one.view is view for one in report.sole_holders for view in odd):
        return ""  # however it came to them, what it alone holds would be gone
    first, end = min(one.content_start_offset for one in odd), max(one.log_end_offset for one in odd)
    return next(
        (
            report.owner_of(one.view)
            for one in live
            if not any(one.view is other for other in odd)
            and one.view.is_intact
            and not report.not_compared_below
            and one.view.content_start_offset <= first
            and one.view.log_end_offset >= end
        ),
        "",
    )


def _what_each_holds(report: PartitionReport, live: Sequence[ReplicaReport]) -> str:
    """Return in words which offsets each replica can give."""
    words = []
    for one in live:
        view = one.view
        whole = OffsetRange(view.content_start_offset, view.log_end_offset - 1)
        held = whole.without(view.lost_ranges) if whole.first <= whole.last else ()
        ranges = listed([f"{part.first}..{part.last}" for part in held], most=_MOST_RANGES) or "nothing"
        doubt = "" if view.is_intact or view.lost_ranges else ", damaged"
        words.append(f"{report.owner_of(view)} {ranges}{doubt}")
    return ", ".join(words)


_MOST_RANGES = 4


def _missing_ends(report: PartitionReport, live: Sequence[ReplicaReport]) -> Iterator[Concern]:
    past = [one for one in live if one.past_end is not None]
    if past:
        end = max(one.view.log_end_offset for one in live)
        highest = max(one.past_end.value for one in past if one.past_end is not None)
        # A copy of a running broker, and a log after a power loss, end below a high watermark just so.
        is_sure = any(one.view.replica.clean_shutdown for one in past) or report.is_stopped
        state = State.AT_RISK if is_sure and _is_whole(report) else State.MAYBE_AT_RISK
        detail = "" if is_sure else "copied while the broker ran, or after a power loss"
        yield _concern(
            report, state, ConcernKind.PAST_END, (one.view for one in past), records=highest - end, detail=detail
        )
    if not all(one.view.replica.is_log_known for one in report.replicas):
        return  # what recovery discards may be in the log that could not be read
    for one in live:
        view = one.view
        if view.truncated_by_recovery is None:
            continue
        before = view.replica.lineage.log_end_offset
        held = max((other.view.log_end_offset for other in live if other is not one), default=0)
        if before > max(held, view.log_end_offset):
            records = before - max(held, view.log_end_offset)
            yield _concern(report, State.MAYBE_AT_RISK, ConcernKind.RECOVERY, (view,), records=records)


def _without_epochs(report: PartitionReport, live: Sequence[ReplicaReport]) -> Iterator[Concern]:
    """Replicas without leader-epoch-checkpoint that keep all they hold with one, and truncate where the copy did not just leave it out."""
    for one in live:
        alone = one.without_file.offset if one.without_file is not None else Absent.NOT_APPLICABLE
        if one.truncation is None and isinstance(alone, int) and alone < one.view.log_end_offset:
            yield _concern(report, State.AGREE, ConcernKind.NO_EPOCHS, (one.view,), detail=f"to {alone}")


def _left_bytes(report: PartitionReport, live: Sequence[ReplicaReport]) -> Iterator[Concern]:
    """Replicas whose log has bytes behind its last batch after a clean stop: they hold what the others do, and their broker may not start."""
    for one in live:
        if one.view.left_behind is not None:
            detail = one.view.left_behind.words
            concern = _concern(report, State.AGREE, ConcernKind.LEFT_BYTES, (one.view,), detail=detail)
            yield concern._replace(guess="")  # it is there whoever leads


def _behind(report: PartitionReport, live: Sequence[ReplicaReport]) -> Iterator[Concern]:
    leader = report.leader
    if len(live) < 2 or (leader is not None and report.leader_log is None):
        return
    is_led = leader is not None and leader.is_known
    best = leader.view if is_led and leader is not None else max((o.view for o in live), key=lambda v: v.log_end_offset)
    alone = next((holder for holder in report.sole_holders if holder.view is best), None)
    short = []
    recorded = best.replica.high_watermark
    for one in live:
        if one.view is best or one.view.log_end_offset >= best.log_end_offset:
            continue
        is_uncommitted = (
            alone is not None
            and alone.offsets.first <= one.view.log_end_offset
            and not alone.counts.certain
            and not alone.counts.possible
            and not report.is_quorum
            # A marker is counted as no record, and commits or aborts some.
            and (isinstance(recorded, Absent) or recorded.value <= one.view.log_end_offset)
        )
        if not is_uncommitted:
            short.append(one.view)
    if short and (is_led or not isinstance(report.electable, Absent)):
        voters = 0 if isinstance(report.assigned, Absent) or not report.is_quorum else len(report.assigned)
        can_win = "they can elect one of them" if voters and len(short) >= majority(voters) else ""
        yield _concern(report, State.BEHIND, ConcernKind.BEHIND, short, detail=can_win)
    elif short:
        yield _concern(report, State.UNKNOWN, ConcernKind.LEADER, short)
