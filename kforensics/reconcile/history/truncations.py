"""The truncations that happened: found in copies and log lines, and recomputed by the rules of the protocol."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.model import CheckpointValue, Citation
from kforensics.protocol.epochs import CURRENT_RULES, EpochRules, epoch_at
from kforensics.protocol.truncation import (
    LogState,
    ProtocolName,
    TruncationOutcome,
    follower_truncation,
    leader_after_election,
)
from kforensics.reconcile.committed.proofs import FILE_TIME_SLACK_MS
from kforensics.reconcile.history.log_copies import Agreement, LogCopy, was_set_aside
from kforensics.reconcile.logs.loaded_log import LoadedLog
from kforensics.reconcile.observed.logged_truncations import LoggedTruncation
from kforensics.units import TopicPartition


class Replacement(NamedTuple):
    """The leader epochs on both sides of a target, in a log after the truncation."""

    kept: int
    """The leader epoch of the last record that stayed; -1 where none did."""
    epoch: int
    """The leader epoch in which the log continues."""


def replacement_at(
    offset: int,
    copies: Sequence[LogCopy],
    *,
    brokers: Sequence[int | Absent],
    before: LogCopy | None,
    no_later: int | Absent,
) -> Replacement | None:
    """Return the epochs around a truncation's target, none where no log after the truncation continues there.

    Args:
        brokers: the one that truncated, and its leader where known: only their logs count.
        no_later: the leader epoch in which the replica truncated; what a later one wrote came after another truncation.
    """
    for copy in sorted(copies, key=lambda one: one.rank):
        if not copy.is_live or copy.broker_id not in brokers:
            continue
        if copy.rank <= before.rank if before is not None else not copy.is_final:
            continue
        found = _around(offset, copy)
        if found is None or (isinstance(no_later, int) and found.epoch > no_later):
            continue
        discarded = epoch_at(before.view.batch_epochs, offset) if before is not None else found.kept
        if isinstance(discarded, int) and found.epoch > discarded:
            return found
    return None


def _around(offset: int, copy: LogCopy) -> Replacement | None:
    view = copy.view
    lineage = view.epochs or view.batch_epochs
    continues = view.log_end_offset > offset or any(entry.start_offset == offset for entry in lineage)
    epoch = epoch_at(lineage, offset)
    if not continues or isinstance(epoch, Absent):
        return None
    kept = epoch_at(lineage, offset - 1)
    return Replacement(kept if isinstance(kept, int) else -1, epoch)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedTruncation:
    """One truncation that removed something, with everything known of it before its cause is judged."""

    broker_id: int | Absent
    topic_partition: TopicPartition
    time_ms: int | Absent
    from_offset: int
    to_offset: int
    rule: str = "unknown"
    leader: int | Absent = Absent.UNKNOWN
    leader_epoch: int | Absent = Absent.UNKNOWN
    is_full: bool = False
    is_logged: bool = False
    """Whether a log line reports it; else only the disks show it, and `to_offset` is where their content differs first."""
    is_shortened: bool = False
    """Whether only the disks show it, and the later log merely ends earlier: nothing has replaced what was lost."""
    is_inside: bool = False
    """Start-up recovery stopped inside of the log and dropped whole segments behind."""
    empties_segment: bool = False
    """Start-up recovery gave up a whole segment, sound batches included, which began at `to_offset`."""
    before: LogCopy | None
    """The node's log as it was, or at least began to be, before the truncation."""
    high_watermark: CheckpointValue | Absent = Absent.UNKNOWN
    """The high watermark with which the replica took up its role before, where a line says it."""
    replacement: Replacement | None = None
    """What replaced the discarded records, where a later log shows it."""
    citations: tuple[Citation, ...]


def find_truncations(
    partition: TopicPartition,
    logged: Sequence[LoggedTruncation],
    copies: Sequence[LogCopy],
    agreement: Agreement,
    *,
    others: Sequence[LogCopy] = (),
    deleted: Sequence[LoadedLog] = (),
) -> tuple[ObservedTruncation, ...]:
    """Return every truncation of the partition's replicas that had an effect, by time."""
    truncations = []
    everything = (*copies, *others)
    latest: dict[int | Absent, int] = {}
    rounds: dict[int | Absent, ObservedTruncation] = {}
    for line in logged:
        # What was written before the last truncation of the same replica says nothing of this one.
        previous_ms = latest.get(line.broker_id, Absent.NOT_APPLICABLE)
        if line.broker_id in rounds and _is_next_round(line, previous_ms):
            truncation = _of_round(line, rounds[line.broker_id])
        else:
            truncation = _of_line(line, everything, previous_ms, agreement)
        if truncation is not None:
            truncations.append(truncation)
            rounds[line.broker_id] = truncation
        if line.has_effect is not False and isinstance(line.time_ms, int):
            latest[line.broker_id] = line.time_ms
    for broker in sorted({c.broker_id for c in copies if isinstance(c.broker_id, int)}):
        history = _history(copies, broker)
        lines = [line for line in logged if line.broker_id == broker]
        for earlier, later in pairwise(history):
            if was_set_aside(earlier, later, deleted, agreement):
                continue
            found = _between(partition, earlier, later, agreement)
            if found is not None and not _is_logged(found, earlier, later, lines, agreement):
                truncations.append(found)
    return tuple(
        sorted(
            (replace(truncation, replacement=replacement_of(truncation, copies)) for truncation in truncations),
            key=_order,
        )
    )


def replacement_of(truncation: ObservedTruncation, copies: Sequence[LogCopy]) -> Replacement | None:
    """Return what took the place of the discarded records; None where no later log of the broker or of its leader shows it."""
    return replacement_at(
        truncation.to_offset,
        copies,
        brokers=(truncation.broker_id, truncation.leader),
        before=truncation.before,
        no_later=truncation.leader_epoch,
    )


def _order(truncation: ObservedTruncation) -> tuple[bool, int, int, int]:
    # Without a line all that is known is which snapshot came before.
    known = (truncation.time_ms, truncation.before.taken_ms if truncation.before is not None else 0)
    time = next((one for one in known if isinstance(one, int)), 0)
    broker = truncation.broker_id if isinstance(truncation.broker_id, int) else -1
    return (time == 0, time, broker, -truncation.to_offset)


def _history(copies: Sequence[LogCopy], broker: int) -> list[LogCopy]:
    own = [c for c in copies if c.broker_id == broker and c.is_live]
    newest: dict[int, LogCopy] = {}
    for copy in own:
        known = newest.get(copy.rank)
        if known is None or copy.view.log_end_offset > known.view.log_end_offset:
            newest[copy.rank] = copy
    return [newest[rank] for rank in sorted(newest)]


def _of_line(
    line: LoggedTruncation, copies: Sequence[LogCopy], previous_ms: int | Absent, agreement: Agreement
) -> ObservedTruncation | None:
    if line.has_effect is False:
        return None
    before = _last_before(line, copies, previous_ms, agreement)
    ends = [line.from_offset] if isinstance(line.from_offset, int) else []
    citations = line.citations
    if before is not None and not line.is_exact:
        ends.append(before.view.log_end_offset)
        if before.view.log_end_offset == max(ends):
            citations = (*citations, before.view.replica.cite())
    log_end = max(ends, default=-1)
    if log_end <= line.to_offset:
        # Also where the whole log gave way to the leader's start: what the follower held, the leader had let go.
        return None
    return _observed(line, log_end, before, citations)


def _observed(
    line: LoggedTruncation, from_offset: int, before: LogCopy | None, citations: tuple[Citation, ...]
) -> ObservedTruncation:
    return ObservedTruncation(
        broker_id=line.broker_id,
        topic_partition=line.topic_partition,
        time_ms=line.time_ms,
        from_offset=from_offset,
        to_offset=line.to_offset,
        rule=line.rule,
        leader=line.leader,
        leader_epoch=line.leader_epoch,
        is_full=line.is_full,
        is_logged=True,
        is_inside=line.is_inside,
        empties_segment=line.empties_segment,
        before=before,
        high_watermark=line.started_with,
        citations=citations,
    )


def _is_next_round(line: LoggedTruncation, previous_ms: int | Absent) -> bool:
    """Whether a truncation follows another one of the replica so soon that no file time shows a copy in between."""
    if not isinstance(line.time_ms, int) or not isinstance(previous_ms, int):
        return False
    return 0 <= line.time_ms - previous_ms <= FILE_TIME_SLACK_MS


def _of_round(line: LoggedTruncation, previous: ObservedTruncation) -> ObservedTruncation | None:
    """Return a further round of a truncation: it takes off what the one before had left, which the copy from before that shows."""
    if line.has_effect is False or not isinstance(line.from_offset, int) or line.from_offset <= line.to_offset:
        return None
    before = previous.before
    if before is not None and (line.from_offset > previous.to_offset or before.view.log_end_offset < line.from_offset):
        # Records that were fetched between the rounds are in no copy.
        before = None
    return _observed(line, line.from_offset, before, line.citations)


def _last_before(
    line: LoggedTruncation, copies: Sequence[LogCopy], previous_ms: int | Absent, agreement: Agreement
) -> LogCopy | None:
    """Return the newest snapshot of the node's log that was written before the line and reaches beyond its target."""
    own = [copy for copy in copies if copy.broker_id == line.broker_id and copy.is_live]
    fitting = [
        copy
        for copy in own
        if not copy.is_final
        and copy.view.log_end_offset > line.to_offset
        and (_is_older(copy, line, previous_ms) or _shows_what_was_discarded(copy, line, own, agreement))
    ]
    if line.is_exact:
        # Archives keep whole seconds, so a snapshot of the same second may show the log after the truncation: the end decides.
        fitting = [copy for copy in fitting if copy.view.log_end_offset == line.from_offset] or [
            copy
            for copy in fitting
            if isinstance(line.from_offset, int)
            and copy.view.log_end_offset < line.from_offset
            and not _holds_what_came_after(copy, line, own, agreement)
        ]
    return max(fitting, key=lambda copy: copy.rank, default=None)


def _holds_what_came_after(copy: LogCopy, line: LoggedTruncation, own: Sequence[LogCopy], agreement: Agreement) -> bool:
    """Whether all of the copy is in a later log of the node: what a follower truncates by leader epoch never comes back."""
    return line.rule == "epoch" and any(
        other.rank > copy.rank
        and other.view.log_end_offset >= copy.view.log_end_offset
        and agreement.divergence(copy.view, other.view) is None
        for other in own
    )


def _is_older(copy: LogCopy, line: LoggedTruncation, previous_ms: int | Absent) -> bool:
    """Whether the copy was written before the line, and not before the previous truncation."""
    if not isinstance(line.time_ms, int) or not isinstance(copy.taken_ms, int):
        return False
    after = isinstance(previous_ms, Absent) or copy.taken_ms >= previous_ms - FILE_TIME_SLACK_MS
    return after and copy.taken_ms <= line.time_ms + FILE_TIME_SLACK_MS


def _shows_what_was_discarded(
    copy: LogCopy, line: LoggedTruncation, own: Sequence[LogCopy], agreement: Agreement
) -> bool:
    """Whether, where file times show nothing, what was behind the target is missing or different in the log as it is now."""
    if isinstance(copy.taken_ms, int):
        return False
    for now in own:
        if now.is_final:
            parted = agreement.parted_at(copy.view, now.view)
            ends = now.view.log_end_offset if parted is None else parted
            start = min(line.to_offset, agreement.batch_start(copy.view, line.to_offset))
            if start <= ends <= line.to_offset and ends < copy.view.log_end_offset:
                return True
    return False


def _between(
    partition: TopicPartition, earlier: LogCopy, later: LogCopy, agreement: Agreement
) -> ObservedTruncation | None:
    """Return the truncation without which the later log could not be as it is; none where the log only grew, or was created again."""
    parted = agreement.parted_at(earlier.view, later.view)
    end = earlier.view.log_end_offset
    if parted is None and later.view.log_end_offset >= end:
        return None
    if _was_altered(earlier, later, parted):
        return None
    to_offset = later.view.log_end_offset if parted is None else _parted_by_epochs(earlier.view, later.view, parted)
    if to_offset <= later.view.log_start_offset and later.view.log_end_offset == later.view.log_start_offset:
        # An empty log of a partition may be a new replica as well as one that lost all.
        return None
    return ObservedTruncation(
        broker_id=earlier.broker_id,
        topic_partition=partition,
        time_ms=Absent.UNKNOWN,
        from_offset=end,
        to_offset=to_offset,
        is_shortened=parted is None,
        before=earlier,
        citations=tuple(_disk_citations(earlier, later)),
    )


def _parted_by_epochs(earlier: LoadedLog, later: LoadedLog, parted: int) -> int:
    """Return where the leader epochs of two logs part, where a cleaner removed what lies between that and the first offset at which they are shown to differ.

    A cleaner leaves the leader epochs as they were. Only where the two caches say of the first difference what the batches say are they taken to be of these logs.
    """
    pair = (earlier, later)
    if parted > max(view.cleaned_below for view in pair):
        return parted
    if any(epoch_at(view.epochs, parted) != epoch_at(view.batch_epochs, parted) for view in pair):
        return parted
    starts = {entry.start_offset for view in pair for entry in view.epochs if entry.start_offset < parted}
    for start in sorted(starts):
        mine, its = epoch_at(earlier.epochs, start), epoch_at(later.epochs, start)
        if not isinstance(mine, Absent) and not isinstance(its, Absent) and mine != its:
            return start
    return parted


def _disk_citations(earlier: LogCopy, later: LogCopy) -> Iterator[Citation]:
    for copy in (earlier, later):
        segments = copy.view.replica.segments
        name = segments[-1].path.rpartition("/")[2] if segments else ""
        yield copy.view.replica.cite(name)


def _was_altered(earlier: LogCopy, later: LogCopy, parted: int | None) -> bool:
    """Other bytes in one leader epoch, the log no shorter: a follower can't have fetched them, someone changed the file."""
    if parted is None or later.view.log_end_offset < earlier.view.log_end_offset:
        return False
    mine, its = epoch_at(earlier.view.batch_epochs, parted), epoch_at(later.view.batch_epochs, parted)
    return not isinstance(mine, Absent) and mine == its


def _is_logged(
    found: ObservedTruncation, earlier: LogCopy, later: LogCopy, lines: Sequence[LoggedTruncation], agreement: Agreement
) -> bool:
    """Return a line explains the difference: one between the snapshots that truncated no higher, or one that found it at the next start."""
    window = (earlier.taken_ms, later.taken_ms)
    for line in lines:
        if line.has_effect is False:
            continue
        # A batch that holds the target is discarded whole, so the content differs from where it began.
        reached = min(line.to_offset, agreement.batch_start(earlier.view, line.to_offset))
        if reached <= found.to_offset and _within(line.time_ms, window):
            return True
        if line.to_offset == found.to_offset and line.rule == "recovery":
            return True
        if line.is_exact and (line.from_offset, line.to_offset) == (found.from_offset, found.to_offset):
            # Its time is that of a clock or zone that no input shows.
            return True
    return False


def _within(time: int | Absent, window: tuple[int | Absent, int | Absent]) -> bool:
    first, last = window
    if not isinstance(time, int):
        return True
    after = not isinstance(first, int) or time >= first - FILE_TIME_SLACK_MS
    before = not isinstance(last, int) or time <= last + FILE_TIME_SLACK_MS
    return after and before


@dataclass(frozen=True, slots=True, kw_only=True)
class Recomputation:
    """The protocol's answer for one truncation."""

    outcome: TruncationOutcome
    expected_offset: int

    def agrees(self, truncation: ObservedTruncation) -> bool:
        """Whether the broker truncated where the rules say, or at the end of one of the rounds before."""
        rounds = {step.truncate_to for step in self.outcome.steps if isinstance(step.truncate_to, int)}
        return truncation.to_offset == self.expected_offset or truncation.to_offset in rounds


def recompute(
    truncation: ObservedTruncation,
    copies: Sequence[LogCopy],
    protocol: ProtocolName,
    *,
    rules: EpochRules = CURRENT_RULES,
    leader_rules: EpochRules = CURRENT_RULES,
) -> Recomputation | None:
    """Return the truncation as the protocol would have it.

    Returns:
        None where the broker led itself, for no leader truncates its log; where no snapshot shows the log before, or none the leader's; and where the one before lacks its leader epochs and the answer is another with and without them.
    """
    follower = truncation.before
    if (
        follower is None
        or follower not in copies
        or truncation.rule == "recovery"
        or truncation.leader == truncation.broker_id
        or follower.view.log_end_offset != truncation.from_offset
    ):
        return None
    leader = _leader_copy(truncation, copies)
    if leader is None:
        return None
    has_file = follower.view.epochs_from != "batches"
    # Without its leader-epoch-checkpoint it may have started so, or the copy left the file out.
    for view in (
        (follower.view,) if has_file else (follower.view, replace(follower.view, epochs=follower.view.scanned_epochs))
    ):
        outcome = follower_truncation(
            view.state,
            _in_term(leader, truncation.leader_epoch),
            protocol=protocol,
            rules=rules,
            leader_rules=leader_rules,
        )
        expected = view.log_end_offset if isinstance(outcome.offset, Absent) else outcome.offset
        found = Recomputation(outcome=outcome, expected_offset=expected)
        if has_file or found.agrees(truncation):
            return found
    return None


def _leader_copy(truncation: ObservedTruncation, copies: Sequence[LogCopy]) -> LogCopy | None:
    """Return the leader's log as it was soonest after the truncation, provided it still knows the term in which the follower truncated, and the epochs below."""
    assert truncation.before is not None
    fitting = [
        copy
        for copy in copies
        if copy.broker_id == truncation.leader
        and copy.is_live
        and copy.rank > truncation.before.rank
        and _knows(copy, truncation.leader_epoch)
        # Above, retention or a client has deleted the leader epochs that the leader answered by.
        and (truncation.is_full or copy.view.log_start_offset <= truncation.to_offset)
    ]
    return min(fitting, key=lambda copy: copy.rank, default=None)


def _in_term(leader: LogCopy, leader_epoch: int | Absent) -> LogState:
    """Return the leader's log in the term of the truncation; one that it wrote nothing in is not in its batches."""
    state = leader.view.state
    if isinstance(leader_epoch, Absent) or (state.epochs and state.epochs[-1].leader_epoch >= leader_epoch):
        return state
    return leader_after_election(state, leader_epoch) if state.epochs else state


def _knows(copy: LogCopy, leader_epoch: int | Absent) -> bool:
    if isinstance(leader_epoch, Absent):
        return True
    claimed = copy.view.replica.checkpoint_epochs
    known = (*copy.view.epochs, *copy.view.batch_epochs, *(() if isinstance(claimed, Absent) else claimed))
    # Without epochs on disk (magic 0 and 1) nothing can contradict.
    return not known or any(entry.leader_epoch == leader_epoch for entry in known)
