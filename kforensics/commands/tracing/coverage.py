"""The offsets of a partition's lineage that were read, and every reason why something of it was not."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from kforensics.commands.tracing.scan import Coverage, ScannedReplica, merged
from kforensics.commands.tracing.topic_evidence import TruncationAccount, is_of
from kforensics.damage import Absent
from kforensics.evidence.remote_copies import RemoteSegment
from kforensics.protocol.epochs import epoch_at
from kforensics.reconcile.history.causes import CauseName
from kforensics.reconcile.incident.doubts import DoubtKind
from kforensics.reconcile.logs.loaded_log import LoadedLog
from kforensics.reconcile.logs.tiers import RemoteCopies
from kforensics.reconcile.replicas.report import PartitionReport
from kforensics.reconcile.salvage import GapReason, HoleJudge
from kforensics.reconcile.trace.model import CopyKind, SearchedPartition, SearchGap
from kforensics.units import OffsetRange, TopicPartition
from kforensics.words import listed

if TYPE_CHECKING:
    from kforensics.reconcile.incident.model import PartitionIncident

_JUDGED_HERE = frozenset(
    {DoubtKind.LEADER, DoubtKind.REPLICA, DoubtKind.ACCOUNT, DoubtKind.DAMAGE, DoubtKind.UNREADABLE, DoubtKind.REMOTE}
)
"""Doubts about what the search itself shows: which replicas there are, and which offsets were read."""

_MOST_FILES = 2

_WORDS = {
    GapReason.COMPACTED: "a cleaner removed records here",
    GapReason.RETENTION: "below the log start, and no copy is shown to be of this log",
    GapReason.DAMAGED: "damaged, and no sound copy is among the inputs",
    GapReason.NOT_READ: "beyond what kforensics reads at once, and not shown to be damaged",
    GapReason.NEVER_SEEN: "no input holds them",
}


_Gap = partial[SearchGap]


def searched(
    partition: TopicPartition,
    scanned: Sequence[ScannedReplica],
    *,
    report: PartitionReport | None,
    incident: "PartitionIncident | None",
    current: str | Absent,
    account: TruncationAccount,
    remote: RemoteCopies,
) -> SearchedPartition:
    """Return what was read of one partition."""
    gap = partial(SearchGap, partition=partition, offsets=Absent.UNKNOWN)
    choice = report.leader if report is not None else None
    leader = report.leader_log if report is not None else None
    own = [one for one in scanned if is_of(one.replica, current)]
    covered = _covered(own, leader)
    truncated = [*_truncated(gap, incident), *_doubted(gap, incident)]
    own_bytes = (one for one in remote.of(partition, current) if one.may_hold_bytes)
    remote_bytes = (*own_bytes, *remote.former(partition, current))
    gaps = [
        *_holes(gap, own, leader, covered, remote),
        *_beside(gap, leader, remote_bytes),
        *_membership(gap, scanned, report),
        *truncated,
        *_unread(gap, scanned),
    ]
    doubt = "" if truncated else _uncommitted_doubt(partition, scanned, report, current, account)
    if doubt:
        gaps.append(gap(reason="truncated", detail=doubt))
    return SearchedPartition(
        partition=partition,
        leader=choice.broker_id if choice is not None else Absent.UNKNOWN,
        is_leader_known=report is not None and _is_leader_known(report),
        replicas=len(scanned),
        segments=sum(one.segments for one in scanned),
        bytes=sum(one.bytes for one in scanned),
        records=sum(one.records for one in scanned),
        log_start_offset=leader.log_start_offset if leader is not None else Absent.UNKNOWN,
        log_end_offset=leader.log_end_offset if leader is not None else Absent.UNKNOWN,
        covered=covered,
        gaps=tuple(gaps),
        may_lack_truncated=bool(truncated),
        doubted_from=_doubted_from(leader, has_changed=account.has_changed(partition, current))
        if doubt
        else Absent.NOT_APPLICABLE,
        remote_bytes=remote_bytes,
    )


def _is_leader_known(report: PartitionReport) -> bool:
    """Whether no later leader can have been elected than the one that is known: a broker's copy of the metadata log ends where the broker stopped."""
    choice, account = report.leader, report.account
    if choice is None or not choice.is_known:
        return False
    return choice.source == "option" or account is None or account.reaches_now


def _doubted_from(leader: LoadedLog | None, *, has_changed: bool) -> int | Absent:
    """Return the first offset that may have been written twice: after the first change of leaders, as far as that is known."""
    epochs = leader.epochs if leader is not None else ()
    if not has_changed or not epochs or epochs[0].leader_epoch > 0:
        return 0
    return epochs[1].start_offset if len(epochs) > 1 else Absent.NOT_APPLICABLE


def _covered(own: Sequence[ScannedReplica], leader: LoadedLog | None) -> tuple[OffsetRange, ...]:
    """Offsets that the leader's log holds, and those of the same leader epochs that another copy does."""
    if leader is None:
        return ()
    runs: list[OffsetRange] = []
    for one in own:
        is_leader = one.kind is CopyKind.LIVE and _is_same(one, leader)
        for coverage in (one.coverage, one.left_over):
            runs += _of_lineage(coverage, leader, is_leader=is_leader and coverage is one.coverage)
    return merged(runs)


def _of_lineage(coverage: Coverage, leader: LoadedLog, *, is_leader: bool) -> Iterator[OffsetRange]:
    for first, last, epoch in coverage.runs:
        if is_leader:
            yield OffsetRange(first, last)
            continue
        # The epoch of the leader's log may change inside the run: only its part of the same epoch is of the lineage.
        edges = [
            first,
            *(entry.start_offset for entry in leader.epochs if first < entry.start_offset <= last),
            last + 1,
        ]
        for begin, end in pairwise(edges):
            if epoch >= 0 and epoch_at(leader.epochs, begin) == epoch:
                yield OffsetRange(begin, end - 1)


def _is_same(one: ScannedReplica, view: LoadedLog) -> bool:
    return (one.replica.input, one.replica.path) == (view.replica.input, view.replica.path)


def _holes(
    gap: _Gap,
    own: Sequence[ScannedReplica],
    leader: LoadedLog | None,
    covered: Sequence[OffsetRange],
    remote: RemoteCopies,
) -> Iterator[SearchGap]:
    if leader is None:
        if not any(one.kind is CopyKind.LIVE for one in own):
            yield gap(reason="unknown-leader", detail="no live replica of it is among the inputs")
        return
    damage = [
        one.offsets_lost
        for segment in leader.replica.segments
        for one in segment.damage
        if isinstance(one.offsets_lost, OffsetRange)
    ]
    end = max(
        leader.log_end_offset,
        *(one.last + 1 for one in damage),
        *(one.log.high_watermark for one in own if one.kind is CopyKind.LIVE),
        *(watermark.value for one in own if not isinstance(watermark := one.replica.high_watermark, Absent)),
        0,
    )
    judge = HoleJudge([one.log for one in own], leader, remote, damaged=[leader])
    is_captured = any(one.not_captured for one in own if one.kind is CopyKind.LIVE)
    runs = [run for one in own for coverage in (one.coverage, one.left_over) for run in coverage.runs]
    held = merged([OffsetRange(first, last) for first, last, _ in runs])
    for one in (one for hole in OffsetRange(0, end - 1).without(covered) for one in judge.gaps(hole)):
        offsets, reason = one.offsets, one.reason
        if reason is GapReason.NEVER_SEEN and is_captured:
            yield gap(offsets=offsets, reason=GapReason.NOT_CAPTURED, detail=_left_behind(own, leader))
        elif reason is GapReason.NEVER_SEEN:
            yield from _never_seen(gap, offsets, held, leader)
        else:
            is_told = reason is GapReason.RETENTION and one.detail
            detail = one.detail if is_told else _WORDS.get(reason, one.detail)
            yield gap(offsets=offsets, reason=reason, detail=detail)
    if any(segment.damage for segment in leader.replica.segments) and not damage:
        yield gap(
            reason=GapReason.DAMAGED,
            detail=f"{leader.replica.path} of {leader.replica.owner} is damaged at a place whose offsets can't be read",
        )


def _beside(gap: _Gap, leader: LoadedLog | None, copies: Sequence[RemoteSegment]) -> Iterator[SearchGap]:
    """Yield the offsets of copies that the leader's log has not."""
    if leader is None:
        return
    log = OffsetRange(leader.log_start_offset, leader.log_end_offset - 1)
    for copy in copies:
        is_own = copy.topic_id == leader.replica.topic_id or isinstance(leader.replica.topic_id, Absent)
        whose = "not of the leader's log" if is_own else f"of the topic with id {copy.topic_id}"
        for there in copy.beside(leader.written_epochs, log) if is_own else (copy.offsets,):
            detail = f"{whose}, and remote storage was not searched; {copy.words}"
            yield gap(offsets=there, reason=GapReason.REMOTE, detail=detail)


def _never_seen(gap: _Gap, offsets: OffsetRange, held: Sequence[OffsetRange], leader: LoadedLog) -> Iterator[SearchGap]:
    """Yield the offsets of a hole, apart from those above the leader's log that another copy holds."""
    nowhere = tuple(offsets.without(held))
    for part in nowhere:
        yield gap(offsets=part, reason=GapReason.NEVER_SEEN, detail=_WORDS[GapReason.NEVER_SEEN])
    for part in offsets.without(nowhere):
        if part.first < leader.log_end_offset:
            yield gap(
                offsets=part,
                reason=GapReason.NEVER_SEEN,
                detail="only logs of other leader epochs than the leader's hold these offsets",
            )


def _left_behind(own: Sequence[ScannedReplica], leader: LoadedLog) -> str:
    """Return which files would show what a capture left on its broker: those of the leader, else of any replica."""
    live = [one for one in own if one.kind is CopyKind.LIVE and one.not_captured]
    one = next((each for each in live if _is_same(each, leader)), live[0])
    files = listed(one.not_captured, most=_MOST_FILES)
    return f"their bytes stayed on {one.replica.owner}: {files} of it, or a capture of it with its tail (--with-tail), would show them"


def _membership(gap: _Gap, scanned: Sequence[ScannedReplica], report: PartitionReport | None) -> Iterator[SearchGap]:
    if report is None:
        return
    if report.missing_replicas:
        names = ", ".join(str(one) for one in report.missing_replicas)
        yield gap(
            reason="missing-replica",
            detail=f"it also belongs to broker {names}, of which no directory of it is among the inputs{_unless_unnamed(scanned)}",
        )
    elif isinstance(report.assigned, Absent):
        given = sorted({str(one.replica.broker_id) for one in scanned if one.kind is CopyKind.LIVE})
        yield gap(
            reason="unknown-replicas",
            detail=f"no input shows which brokers hold replicas of it; searched: {', '.join(given)}",
        )
    for emptied in report.emptied:
        yield gap(
            reason="missing-replica",
            detail=f"broker {emptied.broker_id} {'should' if emptied.is_assigned else 'may'} hold it and has no directory of it: {emptied.reason}",
        )
    if report.leader is not None and not report.leader.is_known and not _is_whole_everywhere(scanned):
        yield gap(reason="unknown-leader", detail="no input shows its leader, so the lineage of its log is guessed")


def _unless_unnamed(scanned: Sequence[ScannedReplica]) -> str:
    return ", unless it is the one without meta.properties" if any(one.replica.is_unnamed for one in scanned) else ""


def _is_whole_everywhere(scanned: Sequence[ScannedReplica]) -> bool:
    """Whether every live replica was read from offset 0 to its end, so that it does not matter which of them leads."""
    for one in scanned:
        if one.kind is not CopyKind.LIVE:
            continue
        own = merged([OffsetRange(first, last) for first, last, _ in one.coverage.runs])
        if (
            one.replica.unread_below
            or any(segment.damage for segment in one.replica.segments)
            or any(OffsetRange(0, one.log.log_end_offset - 1).without(own))
        ):
            return False
    return True


def _truncated(gap: _Gap, incident: "PartitionIncident | None") -> Iterator[SearchGap]:
    for loss in incident.losses if incident is not None else ():
        if not loss.held_by and loss.cause is not CauseName.RETENTION:
            yield gap(
                offsets=loss.offsets, reason="truncated", detail="records that were truncated here are held by no input"
            )


def _doubted(gap: _Gap, incident: "PartitionIncident | None") -> Iterator[SearchGap]:
    """Yield what `explain` does not know of truncations: the log as it is now may have replaced records that no input holds."""
    for doubt in incident.doubts if incident is not None else ():
        if doubt.kind not in _JUDGED_HERE:
            yield gap(reason="truncated", detail=f"records that no input holds may have been truncated: {doubt.words}")


def _uncommitted_doubt(
    partition: TopicPartition,
    scanned: Sequence[ScannedReplica],
    report: PartitionReport | None,
    current: str | Absent,
    account: TruncationAccount,
) -> str:
    """Return that records that were not committed may have been truncated, in words: what they were no log has any more."""
    assigned = report.assigned if report is not None else Absent.UNKNOWN
    if isinstance(assigned, Absent):
        live = (one.replica.broker_id for one in scanned if one.kind is CopyKind.LIVE)
        assigned = tuple({broker for broker in live if isinstance(broker, int)})
    return account.doubt(partition, current, assigned)


def _unread(gap: _Gap, scanned: Sequence[ScannedReplica]) -> Iterator[SearchGap]:
    for one in scanned:
        if not one.replica.is_read_whole:
            yield gap(reason="unreadable", detail=f"{one.replica.path} of {one.replica.owner} could not be read whole")
        for path in one.not_captured:
            yield gap(
                reason=GapReason.NOT_CAPTURED,
                detail=f"{path} of {one.replica.owner} is in the capture without all of its records",
            )
