"""What the evidence of one partition leaves open, by its truncations, losses and copies."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kforensics.reconcile.history.causes import CauseName
from kforensics.reconcile.history.losses import Loss
from kforensics.reconcile.history.truncations import ObservedTruncation
from kforensics.reconcile.incident.doubts import Doubt, DoubtKind, Doubts, Reliance, doubts_of
from kforensics.reconcile.incident.logs_over_time import LogsOverTime
from kforensics.reconcile.incident.losses import tails_of_copies
from kforensics.reconcile.incident.model import ExplainedTruncation
from kforensics.units import METADATA_TOPICS, OffsetRange
from kforensics.words import listed

_YOUNGER_DISKS = "a copy of the disks of these brokers that is younger than their log lines"


def partition_doubts(known: LogsOverTime, truncations: Sequence[ExplainedTruncation], losses: Sequence[Loss]) -> Doubts:
    """Return what the evidence leaves open of a partition."""
    if known.partition.topic in METADATA_TOPICS or known.is_deleted():
        return Doubts()
    found = doubts_of(
        known.account,
        known.leader,
        known.copies,
        known.evidence.moments,
        is_leader_known=known.is_leader_known,
        needed_in_sync=known.evidence.facts.needed_in_sync(known.partition.topic),
        whole_returns=known.evidence.whole_returns,
        with_earlier_topic={copy.broker_id for copy in known.others if copy.is_final},
        unread=known.unread,
        made_anew=known.evidence.moments.made_anew.get(known.partition, ()),
    )
    without_copy = [
        observed
        for observed, one in zip(known.observed, truncations, strict=True)
        if observed.before is None
        and one.cause.name is not CauseName.RECREATED_TOPIC
        # Where every record of it is proven not to have been committed, what they held does not matter.
        and not _covers(_denied(known, observed, losses), OffsetRange(observed.to_offset, observed.from_offset - 1))
        and not known.is_uncommitted(observed)
        # What a start took from one replica, each leader since held, as far as it was committed.
        and (observed.rule != "recovery" or known.whole_account is None)
    ]
    of_truncations = (
        Doubt(
            DoubtKind.TRUNCATION,
            f"{_at(observed)}, which broker {observed.broker_id} cut off",
            f"a copy of the disks of broker {observed.broker_id} from before",
            offsets=OffsetRange(observed.to_offset, observed.from_offset - 1),
        )
        for observed in without_copy
    )
    tails = (
        Doubt(
            DoubtKind.COPY,
            f"whether offsets {loss.offsets.first} to {loss.offsets.last} were lost, which the leader's copy lacks: it was made while the broker ran, or after a power loss",
            "a copy that was made while no broker ran (--stopped says so)",
        )
        for loss in tails_of_copies(known, losses)
    )
    order = Doubt(
        DoubtKind.ORDER,
        "which directories are the later ones: the times of files contradict the order of the snapshots",
        "the order in which the snapshots were taken",
    )
    in_order = (order,) if known.evidence.is_order_in_doubt else ()
    past = known.logged_past_end
    shortened = {
        (copy.rank, broker)
        for copy in known.copies
        if copy.is_final and isinstance(broker := copy.broker_id, int) and broker in past
    }
    return replace(
        found,
        open=(
            *found.open,
            *in_order,
            *of_truncations,
            *_of_recoveries(known),
            *tails,
            *_of_logged_ends(known),
            *_of_compaction(known),
        ),
        dispelled=(*found.dispelled, *(() if past else _of_older_disk(known))),
        shortened=found.shortened | shortened,
    )


def _of_recoveries(known: LogsOverTime) -> Iterator[Doubt]:
    """Yield the recoveries that found corruption, of which nothing shows how far the log had reached: of the leader's log, or of any where it is not known."""
    if known.whole_account is not None:
        return
    seen = {(one.broker_id, one.to_offset) for one in known.observed}
    lines = {
        (line.broker_id, line.to_offset)
        for line in known.evidence.logged
        if line.is_recovery_of_unknown_end and (line.broker_id, line.to_offset) not in seen
    }
    led = known.leader.broker_id if known.leader is not None and known.is_leader_known else None
    for broker, offset in sorted(lines, key=str):
        if led in {None, broker}:
            yield Doubt(
                DoubtKind.TRUNCATION,
                f"what the log of broker {broker} held from offset {offset} on, to which its recovery truncated it",
                f"a copy of the disks of broker {broker} from before",
            )


def _denied(known: LogsOverTime, truncation: ObservedTruncation, losses: Sequence[Loss]) -> list[OffsetRange]:
    """Return the offsets of a truncation whose records are proven not to have been committed.

    What renamed segments of the broker still hold counts where they end where its log did, and it truncated these offsets only once.
    """
    broker, end = truncation.broker_id, truncation.from_offset
    over = [one for one in known.observed if one.broker_id == broker and one.from_offset > truncation.to_offset]
    is_kept = len(over) == 1 and any(
        copy.is_remnant and copy.broker_id == broker and copy.view.log_end_offset == end for copy in known.copies
    )
    return [
        loss.offsets
        for loss in losses
        if loss.was_committed == "no"
        and (not loss.held_by or (is_kept and broker in {holder.broker_id for holder in loss.held_by}))
    ]


def _of_compaction(known: LogsOverTime) -> Iterator[Doubt]:
    """Replicas in use that differ from the leader by what compaction may have removed, though no input shows it."""
    for copy in known.copies:
        if known.leader is None or copy is known.leader or not copy.is_in_use:
            continue
        asked = known.agreement.divergence(copy.view, known.leader.view)
        if asked is not None and asked.is_open:
            yield Doubt(
                DoubtKind.COMPACTION,
                f"whether compaction removed the record of offset {asked.offset}, which broker {copy.broker_id} and the leader, broker {known.leader.broker_id}, do not both hold",
                "the log of another replica, or an earlier copy, with a later record of its key",
            )


def _of_logged_ends(known: LogsOverTime) -> Iterator[Doubt]:
    """Yield the log that had grown furthest past the end of every copy: its disk was put back or has lost its end, or the copies are older."""
    if not known.logged_past_end:
        return
    broker, reached = max(known.logged_past_end.items(), key=lambda one: one[1].offset)
    held = known.held_until(broker)
    others = "" if held == known.furthest_end else " that holds what the leader does"
    since = known.evidence.facts.exists_since_ms(known.partition.topic)
    is_same = isinstance(since, int) and isinstance(reached.time_ms, int) and since <= reached.time_ms
    unless = "" if is_same else ", unless that line is of an earlier topic of the name"
    yield Doubt(
        DoubtKind.LOGGED_END,
        f"what offsets {held} to {reached.offset - 1} held, which no log given{others} reaches; the log of broker {broker} had reached offset {reached.offset} by {reached.place}{unless}",
        f"a copy of the disks of broker {broker} that is younger than {reached.place}",
        offsets=OffsetRange(held, reached.offset - 1),
    )


def _of_older_disk(known: LogsOverTime) -> Iterator[Reliance]:
    """Yield that the log of the leader ends where it did, as long as no log of its broker, nor of one whose log ends where it does, ends before its own lines."""
    leader = known.leader
    if leader is None or not leader.is_final or not isinstance(broker := leader.broker_id, int):
        return
    same = {
        copy.broker_id
        for copy in known.copies
        if copy.is_in_use and copy.view.log_end_offset == leader.view.log_end_offset
    }
    brokers = sorted({broker, *(one for one in same if isinstance(one, int))})
    names = (
        f"broker {broker}"
        if len(brokers) == 1
        else f"one of brokers {listed(list(map(str, brokers)), most=len(brokers))}"
    )
    doubt = Doubt(
        DoubtKind.LOGGED_END,
        f"whether the log ended at offset {leader.view.log_end_offset}; another log of {names} ends before offsets that lines of that broker name",
        _YOUNGER_DISKS,
    )
    yield Reliance(doubt, (frozenset((leader.rank, one) for one in brokers),))


def _at(observed: ObservedTruncation) -> str:
    first, last = observed.to_offset, observed.from_offset - 1
    return f"what was at {f'offset {first}' if first == last else f'offsets {first} to {last}'}"


def _covers(runs: Sequence[OffsetRange], offsets: OffsetRange) -> bool:
    """Whether the runs, of which no two overlap, hold every one of the offsets."""
    inside = (min(run.last, offsets.last) - max(run.first, offsets.first) + 1 for run in runs)
    return sum(count for count in inside if count > 0) == offsets.count
