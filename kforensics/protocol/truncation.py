"""Compute where a follower truncates its log against a leader, by each of Kafka's four protocols, step by step with numbers.

    hw        0.8 to 0.10, and later below inter.broker.protocol 0.11.0-IV2   ReplicaManager.makeFollowers
    kip-101   0.11 to 1.1                                   ReplicaFetcherThread.maybeTruncate
    kip-279   2.0 to 2.7                                    AbstractFetcherThread.getOffsetTruncationState
    kip-595   2.8 and later, inter.broker.protocol 2.7-IV1  Partition.readRecords and truncateOnFetchResponse

Each function is pure. `quorum_truncation` has the rules of the metadata quorum.
"""

from dataclasses import replace

from kforensics.damage import Absent
from kforensics.protocol.epochs import (
    CURRENT_RULES,
    EpochEndOffset,
    EpochRules,
    assign,
    end_offset_for_epoch,
    latest_epoch,
    truncate_from_end,
)
from kforensics.protocol.outcome import (
    LogState,
    ProtocolName,
    StepKind,
    TruncationOutcome,
    TruncationRule,
    TruncationStep,
)


def leader_after_election(leader: LogState, new_epoch: int, *, rules: EpochRules = CURRENT_RULES) -> LogState:
    """Return the log of a replica that has just become leader.

    It enters `new_epoch` at its log end (KAFKA-7415, 2.0.1); before, a leader did so with its first append.

    Args:
        new_epoch: the leader epoch that the controller gave it.
    """
    if not rules.enters_epoch_when_elected:
        return leader
    return leader._replace(epochs=assign(leader.epochs, new_epoch, leader.log_end_offset, rules))


def truncate_log(log: LogState, truncate_to: int, *, rules: EpochRules = CURRENT_RULES) -> LogState:
    """Return the log after `UnifiedLog.truncateTo`, which lowers log end, epochs, log start and high watermark together.

    Args:
        truncate_to: the new log end offset; at or above the present one no record is discarded.
        rules: whether entries that start at the log end are removed even then (KAFKA-10706).
    """
    if truncate_to >= log.log_end_offset:
        return log._replace(epochs=truncate_from_end(log.epochs, truncate_to)) if rules.trims_at_log_end else log
    high_watermark = (
        log.high_watermark if isinstance(log.high_watermark, Absent) else min(log.high_watermark, truncate_to)
    )
    return LogState(
        epochs=truncate_from_end(log.epochs, truncate_to),
        log_start_offset=min(log.log_start_offset, truncate_to),
        log_end_offset=truncate_to,
        high_watermark=high_watermark,
    )


def restart_log_at(offset: int) -> LogState:
    """Return the log after `truncateFullyAndStartAt`: it is empty and starts at `offset`, as does the high watermark (KAFKA-9491).

    Args:
        offset: where the log starts and ends; the follower takes it from the leader's log start offset.
    """
    return LogState(epochs=(), log_start_offset=offset, log_end_offset=offset, high_watermark=offset)


def follower_truncation(
    follower: LogState,
    leader: LogState,
    *,
    protocol: ProtocolName,
    rules: EpochRules = CURRENT_RULES,
    leader_rules: EpochRules | None = None,
    halts_out_of_range: bool | Absent = False,
) -> TruncationOutcome:
    """Compute what a follower of `protocol` truncates against `leader`, until it can fetch records.

    Args:
        follower: the follower's log as its broker has loaded it.
        leader: the leader's log; one elected just now should come out of `leader_after_election`.
        leader_rules: the epoch cache of the leader's version; the follower's if it is not given.
        halts_out_of_range: whether a broker whose log ends above the leader's halts: up to 1.0 with `unclean.leader.election.enable=false`, where no leader
            epochs were compared before; unknown where it is not known of version or setting.
    """
    walk = _Walk(follower, leader, rules, leader_rules or rules, halts_out_of_range)
    match protocol:
        case ProtocolName.HW:
            walk.truncate_to_high_watermark(TruncationRule.HIGH_WATERMARK)
            walk.fetch(compares_epochs=False)
        case ProtocolName.KIP_101:
            walk.ask_once()
            walk.fetch(compares_epochs=False)
        case ProtocolName.KIP_279:
            walk.ask_until_stable()
            walk.fetch(compares_epochs=False)
        case _:
            if not follower.epochs:
                walk.truncate_to_high_watermark(TruncationRule.EMPTY_EPOCH_CACHE)
            walk.fetch(compares_epochs=True)
    return walk.outcome(protocol)


class _Walk:
    """The state of one follower on its way to the first record it can fetch."""

    def __init__(
        self,
        follower: LogState,
        leader: LogState,
        rules: EpochRules,
        leader_rules: EpochRules,
        halts: bool | Absent,
    ) -> None:
        self.start = self.log = follower
        self.leader = leader
        self.rules = rules
        self.leader_rules = leader_rules
        self.fall_back = follower.loaded_high_watermark
        self.steps: list[TruncationStep] = []
        self.halts = halts
        self.full_restart = self.endless = self.halted = False

    def outcome(self, protocol: ProtocolName) -> TruncationOutcome:
        truncation = self.full_restart or self.log.log_end_offset < self.start.log_end_offset
        deciding = [step.rule for step in self.steps if not isinstance(step.truncate_to, Absent)]
        rule = deciding[-1] if deciding and truncation else TruncationRule.NOTHING_TO_TRUNCATE
        return TruncationOutcome(
            protocol=protocol,
            offset=self.log.log_end_offset if truncation else Absent.NOT_APPLICABLE,
            rule=TruncationRule.ENDLESS
            if self.endless
            else TruncationRule.HALTED
            if self.halted and not truncation
            else rule,
            steps=tuple(self.steps),
            after=self.log,
            full_restart=self.full_restart,
            endless=self.endless,
            halts=self.halted,
            below_high_watermark=truncation
            and not isinstance(self.start.high_watermark, Absent)
            and self.log.log_end_offset < min(self.start.high_watermark, self.start.log_end_offset),
        )

    def truncation(self, truncate_to: int, step: TruncationStep) -> None:
        before = self.log
        if truncate_to < before.log_start_offset:
            # The first segment starts above the target: `truncateTo` ends in `truncateFullyAndStartAt`.
            self.log, self.full_restart = restart_log_at(truncate_to), True
        else:
            self.log = truncate_log(before, truncate_to, rules=self.rules)
        changed = self.log.log_end_offset != before.log_end_offset
        self.steps.append(replace(step, truncate_to=self.log.log_end_offset) if changed else step)
        self.fall_back = self.log.log_end_offset

    def truncate_to_high_watermark(self, rule: TruncationRule) -> None:
        step = TruncationStep(
            kind=StepKind.HIGH_WATERMARK, own_offset=self.fall_back, log_end_offset=self.log.log_end_offset, rule=rule
        )
        self.truncation(min(self.fall_back, self.log.log_end_offset), step)

    def leader_end_of(self, leader_epoch: int | Absent) -> EpochEndOffset | Absent:
        return end_offset_for_epoch(self.leader.epochs, self.leader.log_end_offset, leader_epoch, self.leader_rules)

    def ask(self) -> tuple[int | Absent, EpochEndOffset] | None:
        """Ask for the end of the latest epoch; without an answer truncate to the high watermark."""
        requested = latest_epoch(self.log.epochs)
        answer = self.leader_end_of(requested)
        if not isinstance(answer, Absent):
            return requested, answer
        if isinstance(requested, Absent):
            self.truncate_to_high_watermark(TruncationRule.EMPTY_EPOCH_CACHE)
            return None
        self.steps.append(
            TruncationStep(
                kind=StepKind.EPOCH_REQUEST,
                requested_epoch=requested,
                answer_epoch=answer,
                answer_offset=answer,
                log_end_offset=self.log.log_end_offset,
            )
        )
        self.truncate_to_high_watermark(TruncationRule.UNDEFINED_EPOCH)
        return None

    def ask_once(self) -> None:
        """Ask once by KIP-101: one OffsetForLeaderEpoch version 0, whose answer is an offset without an epoch."""
        asked = self.ask()
        if asked is None:
            return
        requested, answer = asked
        step = TruncationStep(
            kind=StepKind.EPOCH_REQUEST,
            requested_epoch=requested,
            answer_offset=answer.end_offset,
            log_end_offset=self.log.log_end_offset,
            rule=TruncationRule.LEADER_END_OFFSET,
        )
        self.truncation(min(answer.end_offset, self.log.log_end_offset), step)

    def ask_until_stable(self) -> None:
        """Ask by KIP-279: OffsetForLeaderEpoch version 1 and later, until both sides name the same epoch."""
        while not self.endless:
            before = self.log
            asked = self.ask()
            if asked is None or self.compare(StepKind.EPOCH_REQUEST, *asked):
                return
            self.endless = self.log == before

    def compare(self, kind: StepKind, requested: int | Absent, answer: EpochEndOffset) -> bool:
        """Truncate by the answer and the own lookup; return whether both name the same epoch (`getOffsetTruncationState`)."""
        log_end_offset = self.log.log_end_offset
        own = end_offset_for_epoch(self.log.epochs, log_end_offset, answer.leader_epoch, self.rules)
        if isinstance(own, Absent):
            target, done = answer.end_offset, True
        elif own.leader_epoch != answer.leader_epoch:
            target, done = own.end_offset, False
        else:
            target, done = min(own.end_offset, answer.end_offset), True
        step = TruncationStep(
            kind=kind,
            fetch_offset=log_end_offset if kind is StepKind.FETCH else Absent.NOT_APPLICABLE,
            requested_epoch=requested,
            answer_epoch=answer.leader_epoch,
            answer_offset=answer.end_offset,
            own_epoch=own if isinstance(own, Absent) else own.leader_epoch,
            own_offset=own if isinstance(own, Absent) else own.end_offset,
            log_end_offset=log_end_offset,
            rule=TruncationRule.DIVERGING_EPOCH,
        )
        self.truncation(min(target, log_end_offset), step)
        return done

    def fetch(self, *, compares_epochs: bool) -> None:
        """Fetch until the leader reports neither a diverging epoch (KIP-595) nor an offset out of its range."""
        while not self.endless:
            before = self.log
            requested = latest_epoch(before.epochs) if compares_epochs else Absent.NOT_APPLICABLE
            in_range = self.leader.log_start_offset <= before.log_end_offset <= self.leader.log_end_offset
            if not isinstance(requested, Absent):
                answer = self.leader_end_of(requested)
                if isinstance(answer, Absent) or before.log_end_offset < self.leader.log_start_offset:
                    in_range = False
                elif answer.leader_epoch != requested or answer.end_offset < before.log_end_offset:
                    self.compare(StepKind.FETCH, requested, answer)
                    self.endless = self.log == before
                    continue
            if in_range:
                if compares_epochs:
                    self.steps.append(
                        TruncationStep(
                            kind=StepKind.FETCH,
                            fetch_offset=before.log_end_offset,
                            requested_epoch=requested,
                            log_end_offset=before.log_end_offset,
                        )
                    )
                return
            self.out_of_range()
            self.endless = self.log == before and not self.halted
            if self.halted:
                return

    def out_of_range(self) -> None:
        """Handle an offset out of range (`fetchOffsetAndTruncate`, up to 1.0 `handleOffsetOutOfRange`): truncate to the leader's end without comparing epochs, or everything, or nothing."""
        leader, log_end_offset = self.leader, self.log.log_end_offset
        step = TruncationStep(
            kind=StepKind.OUT_OF_RANGE,
            fetch_offset=log_end_offset,
            answer_start=leader.log_start_offset,
            answer_offset=leader.log_end_offset,
            log_end_offset=log_end_offset,
        )
        if leader.log_end_offset < log_end_offset and self.halts is True:
            self.halted = True
            self.steps.append(replace(step, rule=TruncationRule.HALTED, halts=True))
        elif leader.log_end_offset < log_end_offset:
            step = replace(step, halts=self.halts)
            self.truncation(leader.log_end_offset, replace(step, rule=TruncationRule.OUT_OF_RANGE_ABOVE))
        elif leader.log_start_offset > log_end_offset:
            self.log, self.full_restart = restart_log_at(leader.log_start_offset), True
            self.steps.append(
                replace(step, truncate_to=leader.log_start_offset, rule=TruncationRule.OUT_OF_RANGE_BELOW)
            )
        else:
            self.steps.append(step)
