"""Truncations explained: by which rule, because of what, and whether the records had been committed."""

from collections.abc import Sequence
from dataclasses import replace

from kforensics.damage import Absent
from kforensics.evidence.model import CheckpointValue
from kforensics.protocol.outcome import TruncationRule
from kforensics.reconcile.committed.judge import CommittedCounts, CommittedRun, count_runs
from kforensics.reconcile.history.causes import CauseEvidence, CauseName, cause_of, election_behind
from kforensics.reconcile.history.log_copies import LogCopy
from kforensics.reconcile.history.recomputation import Recomputation, recompute
from kforensics.reconcile.history.truncations import ObservedTruncation, replacement_of
from kforensics.reconcile.incident.logs_over_time import LogsOverTime
from kforensics.reconcile.incident.model import ExplainedTruncation
from kforensics.units import OffsetRange


def explained_truncation(
    known: LogsOverTime, observed: ObservedTruncation, causes: CauseEvidence
) -> ExplainedTruncation:
    """Return a truncation with its cause, what the protocol would have truncated, and whether what it took was committed.

    Args:
        causes: what may have caused it.
    """
    truncation = _with_leader(observed, causes, known.copies)
    protocol = known.protocol_behind(truncation)
    runs = _runs_of(known, truncation)
    counts = CommittedCounts.of(runs)
    versions = known.evidence.versions
    again = recompute(
        truncation,
        known.copies,
        protocol,
        rules=versions.epoch_rules(truncation.broker_id, protocol),
        leader_rules=versions.epoch_rules(truncation.leader, protocol),
    )
    none_committed = all(run.certainty == "no" for run in runs) if runs else known.is_uncommitted(truncation)
    cause = cause_of(
        truncation,
        causes,
        protocol=protocol,
        none_committed=none_committed,
        some_committed=counts.certain > 0,
        is_by_protocol=again is not None and again.agrees(truncation),
        is_out_of_range=_is_out_of_range(truncation, again),
    )
    is_by_recovery = truncation.is_inside or (
        cause.name in {CauseName.POWER_LOSS, CauseName.RECOVERY} and truncation.rule != "epoch"
    )
    if cause.name in {CauseName.POWER_LOSS, CauseName.RECREATED_TOPIC} or truncation.is_inside:
        again = None  # no protocol took these records
    return ExplainedTruncation(
        broker_id=truncation.broker_id,
        topic_partition=known.partition,
        time_ms=truncation.time_ms,
        from_offset=truncation.from_offset,
        to_offset=truncation.to_offset,
        protocol="recovery" if is_by_recovery else protocol.value,
        decided_by=truncation.rule,
        leader=truncation.leader,
        leader_epoch=truncation.leader_epoch,
        expected_offset=again.expected_offset if again is not None else Absent.UNKNOWN,
        agrees=again.agrees(truncation) if again is not None else Absent.UNKNOWN,
        steps=tuple(step.sentence() for step in again.outcome.steps) if again is not None else (),
        is_logged=truncation.is_logged,
        cause=cause,
        committed=counts if known.is_leader_known and not known.evidence.is_order_in_doubt else counts.on_a_guess,
        citations=tuple(dict.fromkeys((*truncation.citations, *cause.citations))),
    )


def _is_out_of_range(truncation: ObservedTruncation, again: Recomputation | None) -> bool:
    """Whether a follower truncated to its leader's end: by its line, by the rules, or since it went below the high watermark with which it took up its role."""
    if truncation.rule != "unknown":
        return truncation.rule == "leader-end"
    started_with = truncation.high_watermark
    if isinstance(started_with, CheckpointValue):
        return truncation.to_offset < started_with.value
    return (
        again is not None
        and again.outcome.rule is TruncationRule.OUT_OF_RANGE_ABOVE
        and again.expected_offset == truncation.to_offset
    )


def was_truncated(one: ExplainedTruncation) -> bool:
    """Return whether a broker truncated its log: not where it lost the log with its disk, or an end of it, and led on with what was left.

    Args:
        one: by a line, or by what earlier copies show.
    """
    is_of_disk = one.cause.name in {CauseName.DISK_REPLACED, CauseName.DISK_RESTORED}
    return one.is_logged or not is_of_disk or one.leader != one.broker_id


def _runs_of(known: LogsOverTime, truncation: ObservedTruncation) -> tuple[CommittedRun, ...]:
    if truncation.before is None or known.judge is None or truncation.before not in known.copies:
        return ()
    view = truncation.before.view
    last = min(truncation.from_offset, view.log_end_offset) - 1
    if last < truncation.to_offset:
        return ()
    return count_runs(known.judge.runs(view, OffsetRange(truncation.to_offset, last)), view, known.reader)


def _with_leader(
    truncation: ObservedTruncation, causes: CauseEvidence, copies: Sequence[LogCopy]
) -> ObservedTruncation:
    """Return the truncation with its leader, where no log line names one: who led in the epoch that a line names, else the one of the election behind it."""
    if isinstance(truncation.leader, int):
        return truncation
    named = truncation.leader_epoch
    led = {
        state.leader for state in causes.leaderships if state.leader_epoch == named and isinstance(state.leader, int)
    }
    if isinstance(named, int) and len(led) == 1:
        truncation = replace(truncation, leader=led.pop())
        return replace(truncation, replacement=truncation.replacement or replacement_of(truncation, copies))
    election = election_behind(truncation, causes.leaderships)
    if election is None or (isinstance(named, int) and election.leader_epoch != named):
        return truncation
    return replace(truncation, leader=election.leader, leader_epoch=election.leader_epoch)
