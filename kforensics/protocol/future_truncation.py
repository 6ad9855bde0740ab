"""Truncation of a future replica, which is on its way to another disk of its broker (KIP-113)."""

from kforensics.damage import Absent
from kforensics.protocol.epochs import CURRENT_RULES, EpochRules
from kforensics.protocol.truncation import (
    LogState,
    ProtocolName,
    StepKind,
    TruncationOutcome,
    TruncationRule,
    TruncationStep,
    follower_truncation,
    truncate_log,
)


def future_replica_truncation(
    future: LogState,
    current: LogState,
    *,
    truncated_to: int | Absent = Absent.NOT_APPLICABLE,
    rules: EpochRules = CURRENT_RULES,
) -> TruncationOutcome:
    """Compute what a `-future` replica truncates against the current replica of its own broker (KIP-113), always by KIP-279.

    Args:
        future: the log of the future replica.
        current: the log of the current replica, in the role of the leader.
        truncated_to: the offset to which the current replica was truncated last: the future replica is truncated there too, before it asks
            (`ReplicaAlterLogDirsThread`); absent where the current replica was not truncated.
        rules: the epoch cache of the broker's version.

    Returns:
        The outcome with every step; its offset is absent where nothing is truncated.
    """
    fall_back = future.loaded_high_watermark
    if isinstance(truncated_to, Absent):
        return follower_truncation(
            future, current, protocol=ProtocolName.KIP_279, rules=rules, initial_fetch_offset=fall_back
        )
    target = min(truncated_to, future.log_end_offset)
    truncation = truncate_log(future, target, rules=rules)
    outcome = follower_truncation(
        truncation, current, protocol=ProtocolName.KIP_279, rules=rules, initial_fetch_offset=min(target, fall_back)
    )
    if target >= future.log_end_offset:
        return outcome
    step = TruncationStep(
        kind=StepKind.CURRENT_REPLICA,
        own_offset=truncated_to,
        log_end_offset=future.log_end_offset,
        truncate_to=target,
        rule=TruncationRule.CURRENT_REPLICA_TRUNCATION,
    )
    return outcome._replace(
        offset=outcome.after.log_end_offset,
        rule=TruncationRule.CURRENT_REPLICA_TRUNCATION if isinstance(outcome.offset, Absent) else outcome.rule,
        steps=(step, *outcome.steps),
        below_high_watermark=outcome.after.log_end_offset < fall_back,
    )
