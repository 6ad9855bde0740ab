"""What the protocol should have truncated, recomputed from the logs as they were, beside what the broker did."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kforensics.damage import Absent
from kforensics.protocol.epochs import CURRENT_RULES, EpochRules
from kforensics.protocol.outcome import LogState, ProtocolName, TruncationOutcome
from kforensics.protocol.truncation import follower_truncation, leader_after_election
from kforensics.reconcile.history.log_copies import LogCopy
from kforensics.reconcile.history.truncations import ObservedTruncation


@dataclass(frozen=True, slots=True, kw_only=True)
class Recomputation:
    """The protocol's answer for one truncation, and the logs it was computed from."""

    outcome: TruncationOutcome
    expected_offset: int
    follower: LogCopy
    leader: LogCopy

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
        found = Recomputation(outcome=outcome, expected_offset=expected, follower=follower, leader=leader)
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
        and not copy.is_remnant
        and copy.view.replica.state == "live"
        and copy.rank > truncation.before.rank
        and _knows(copy, truncation.leader_epoch)
        and (truncation.is_full or not _was_cut_since(copy, truncation.to_offset))
    ]
    return min(fitting, key=lambda copy: copy.rank, default=None)


def _was_cut_since(leader: LogCopy, offset: int) -> bool:
    """Whether retention or a client has deleted records up to above the offset, and with them the leader epochs that the leader answered by."""
    return leader.view.log_start_offset > offset


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
