"""Compute where a follower truncates its log against a leader, by each of Kafka's four protocols, step by step with numbers.

    hw        0.8 to 0.10, and later below inter.broker.protocol 0.11.0-IV2   ReplicaManager.makeFollowers
    kip-101   0.11 to 1.1                                   ReplicaFetcherThread.maybeTruncate
    kip-279   2.0 to 2.7                                    AbstractFetcherThread.getOffsetTruncationState
    kip-595   2.8 and later, inter.broker.protocol 2.7-IV1  Partition.readRecords and truncateOnFetchResponse

Each function is pure. Members of the metadata quorum follow `quorum_truncation` (KIP-595).
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.protocol.epochs import (
    CURRENT_RULES,
    EpochEndOffset,
    EpochRules,
    Epochs,
    assign,
    end_offset_for_epoch,
    latest_epoch,
    truncate_from_end,
)


class ProtocolName(StrEnum):
    """The truncation protocol of a follower."""

    HW = "hw"
    KIP_101 = "kip-101"
    KIP_279 = "kip-279"
    KIP_595 = "kip-595"


class TruncationRule(StrEnum):
    """The one rule that decided an outcome."""

    NOTHING_TO_TRUNCATE = "nothing-to-cut"
    HIGH_WATERMARK = "high-watermark"
    """The follower truncated to its own high watermark, as every follower did before KIP-101."""
    EMPTY_EPOCH_CACHE = "empty-epoch-cache"
    """The follower knows no leader epoch and fell back to its high watermark."""
    UNDEFINED_EPOCH = "undefined-epoch"
    """The leader knows nothing of the epoch asked for, so the follower fell back to its high watermark."""
    LEADER_END_OFFSET = "leader-end-offset"
    """KIP-101: the leader's end of the follower's last epoch."""
    DIVERGING_EPOCH = "diverging-epoch"
    """KIP-279, KIP-595: the last epoch both know, at the lower of its two ends."""
    OUT_OF_RANGE_ABOVE = "out-of-range-above"
    """The follower's log ended above the leader's and was truncated to the leader's end without comparing epochs."""
    OUT_OF_RANGE_BELOW = "out-of-range-below"
    """The leader's log starts above the follower's end: the follower discards everything and starts there."""
    HALTED = "halted"
    """The follower's log ended above the leader's, and its broker halts rather than truncate it: `unclean.leader.election.enable` is false (up to 1.0)."""
    ENDLESS = "endless"
    """The follower asks the same question for ever (KAFKA-10706, or a leader that knows less than it)."""


class StepKind(StrEnum):
    """The event of one step."""

    HIGH_WATERMARK = "high-watermark"
    EPOCH_REQUEST = "epoch-request"
    FETCH = "fetch"
    OUT_OF_RANGE = "out-of-range"


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncationStep:
    """One question of the follower, the leader's answer, the follower's own lookup, and the resulting truncation."""

    kind: StepKind
    fetch_offset: int | Absent = Absent.NOT_APPLICABLE
    requested_epoch: int | Absent = Absent.NOT_APPLICABLE
    answer_epoch: int | Absent = Absent.NOT_APPLICABLE
    answer_offset: int | Absent = Absent.NOT_APPLICABLE
    """The end of the leader's epoch; in an out-of-range step, the leader's log end offset."""
    answer_start: int | Absent = Absent.NOT_APPLICABLE
    """The leader's log start offset, in an out-of-range step."""
    halts: bool | Absent = False
    """Whether the broker halts instead; unknown where neither version nor `unclean.leader.election.enable` is."""
    own_epoch: int | Absent = Absent.NOT_APPLICABLE
    own_offset: int | Absent = Absent.NOT_APPLICABLE
    log_end_offset: int
    """The follower's log end offset before the step."""
    truncate_to: int | Absent = Absent.NOT_APPLICABLE
    """The follower's log end offset after the step, absent if the step truncated nothing."""
    rule: TruncationRule = TruncationRule.NOTHING_TO_TRUNCATE

    def sentence(self) -> str:
        """Describe the step in words."""
        truncation = "truncates nothing" if isinstance(self.truncate_to, Absent) else f"truncates to {self.truncate_to}"
        match self.kind:
            case StepKind.HIGH_WATERMARK:
                return (
                    f"its log ends at {self.log_end_offset}, its high watermark is {self.own_offset}: it {truncation}"
                )
            case StepKind.OUT_OF_RANGE:
                held = f"the leader's log is {self.answer_start} to {self.answer_offset}"
                if self.halts is True:
                    truncation = "truncates nothing, and its broker halts (unclean.leader.election.enable=false)"
                elif isinstance(self.halts, Absent):
                    truncation += ", or its broker halts (unclean.leader.election.enable=false, up to 1.0)"
                return f"its fetch at {self.fetch_offset} is out of range, {held}: it {truncation}"
            case StepKind.EPOCH_REQUEST:
                return (
                    f"it asks where epoch {self.requested_epoch} ends; {self._answer()}{self._own()}: it {truncation}"
                )
            case StepKind.FETCH:  # pragma: no branch - every member is named
                last = "no epoch" if isinstance(self.requested_epoch, Absent) else f"epoch {self.requested_epoch}"
                return f"it fetches at {self.fetch_offset} in {last}; {self._answer()}{self._own()}: it {truncation}"

    def _answer(self) -> str:
        if isinstance(self.answer_offset, Absent):
            return (
                "the leader finds no divergence"
                if self.answer_offset is Absent.NOT_APPLICABLE
                else "the leader does not know"
            )
        if isinstance(self.answer_epoch, Absent):
            return f"the leader answers offset {self.answer_offset}"
        return f"on the leader epoch {self.answer_epoch} ends at {self.answer_offset}"

    def _own(self) -> str:
        if isinstance(self.own_offset, Absent):
            return ""
        return f", its own epoch {self.own_epoch} ends at {self.own_offset}"


def loaded_high_watermark(high_watermark: int | Absent, log_start_offset: int, log_end_offset: int) -> int:
    """Return the high watermark that a broker uses: 0 if it is missing, and limited to the log (`UnifiedLog.updateHighWatermark`)."""
    known = 0 if isinstance(high_watermark, Absent) else high_watermark
    return max(log_start_offset, min(known, log_end_offset))


class LogState(NamedTuple):
    """The facts about a replica's log that the protocol uses."""

    epochs: Epochs
    log_start_offset: int
    log_end_offset: int
    high_watermark: int | Absent
    """The high watermark of the checkpoint or of memory; absent counts as 0, as in a broker."""

    @property
    def loaded_high_watermark(self) -> int:
        """Return the high watermark that a broker uses for this log."""
        return loaded_high_watermark(self.high_watermark, self.log_start_offset, self.log_end_offset)


class TruncationOutcome(NamedTuple):
    """The result of the protocol for a follower's log against a leader."""

    protocol: ProtocolName
    offset: int | Absent
    """The new log end offset, `NOT_APPLICABLE` if nothing is truncated."""
    rule: TruncationRule
    steps: tuple[TruncationStep, ...]
    after: LogState
    full_restart: bool = False
    """Whether the whole log was discarded and starts again, empty, at `after.log_start_offset`."""
    endless: bool = False
    """Whether the follower never finishes, so that it stays out of the ISR."""
    halts: bool = False
    """Whether its broker halts, with the log as it is after the steps."""
    below_high_watermark: bool = False
    """Whether it truncates below the follower's own high watermark, which never happens with clean elections and fencing."""


def leader_after_election(leader: LogState, new_epoch: int, *, rules: EpochRules = CURRENT_RULES) -> LogState:
    """Return the log of a replica that has just become leader.

    It enters `new_epoch` at its log end (KAFKA-7415, 2.0.1); before, a leader did so with its first append.
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
    """Return the log after `truncateFullyAndStartAt`: it is empty and starts at `offset`, the leader's log start, as does the high watermark (KAFKA-9491)."""
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
        leader: the leader's log; one elected just now should come out of `leader_after_election`.
        halts_out_of_range: whether a broker whose log ends above the leader's halts: up to 1.0 with `unclean.leader.election.enable=false`, where no leader
            epochs were compared before; unknown where it is not known of version or setting.
    """
    walk = _Walk(follower, leader, rules, leader_rules or rules, halts_out_of_range)
    match protocol:
        case ProtocolName.HW:
            walk.truncate_to_high_watermark(TruncationRule.HIGH_WATERMARK)
            return walk.fetched(protocol)
        case ProtocolName.KIP_101:
            walk.ask_once()
            return walk.fetched(protocol)
        case ProtocolName.KIP_279:
            walk.ask_until_stable()
            return walk.fetched(protocol)
        case ProtocolName.KIP_595:  # pragma: no branch - every member is named
            if not follower.epochs:
                walk.truncate_to_high_watermark(TruncationRule.EMPTY_EPOCH_CACHE)
            return walk.fetched(protocol, compares_epochs=True)


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

    def fetched(self, protocol: ProtocolName, *, compares_epochs: bool = False) -> TruncationOutcome:
        self.fetch(compares_epochs=compares_epochs)
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


def quorum_end_offset_for_epoch(log: LogState, leader_epoch: int) -> EpochEndOffset:
    """Return the end of an epoch in a quorum log; there is always an answer (`KafkaMetadataLog.endOffsetForEpoch`)."""
    found = end_offset_for_epoch(log.epochs, log.log_end_offset, leader_epoch)
    return EpochEndOffset(_last_epoch(log), log.log_end_offset) if isinstance(found, Absent) else found


def diverging_end(leader: LogState, fetch_offset: int, last_fetched_epoch: int) -> EpochEndOffset | None:
    """Return the end of the epoch at a quorum leader whose log diverges from that of a node that fetches, else None (KIP-595).

    Source: `ReplicatedLog.validateOffsetAndEpoch`.

    Args:
        last_fetched_epoch: the epoch of its last record, 0 for none.
    """
    if leader.log_start_offset == fetch_offset == last_fetched_epoch == 0:
        return None
    end = quorum_end_offset_for_epoch(leader, last_fetched_epoch)
    if end.leader_epoch != last_fetched_epoch or end.end_offset < fetch_offset:
        return end
    return None


def quorum_truncation(follower: LogState, leader: LogState) -> TruncationOutcome:
    """Compute what a member of the metadata quorum truncates against its leader (KIP-595, `KafkaRaftClient.handleFetchResponse`).

    A directory shows neither the high watermark of a member, which is only in memory, nor whether a leader would send a snapshot instead.

    Args:
        leader: the log of the quorum's leader, which entered its epoch at its log end.
    """
    log = follower
    steps: list[TruncationStep] = []
    endless = False
    while not endless:
        before, last_epoch = log, _last_epoch(log)
        end = diverging_end(leader, log.log_end_offset, last_epoch)
        if end is None:
            own: EpochEndOffset | Absent = Absent.NOT_APPLICABLE
        else:
            target, own = _quorum_target(log, end)
            log = truncate_log(log, target)
            endless = log == before
        is_truncated = log.log_end_offset < before.log_end_offset
        steps.append(
            TruncationStep(
                kind=StepKind.FETCH,
                fetch_offset=before.log_end_offset,
                requested_epoch=last_epoch,
                answer_epoch=Absent.NOT_APPLICABLE if end is None else end.leader_epoch,
                answer_offset=Absent.NOT_APPLICABLE if end is None else end.end_offset,
                own_epoch=own if isinstance(own, Absent) else own.leader_epoch,
                own_offset=own if isinstance(own, Absent) else own.end_offset,
                log_end_offset=before.log_end_offset,
                truncate_to=log.log_end_offset if is_truncated else Absent.NOT_APPLICABLE,
                rule=TruncationRule.NOTHING_TO_TRUNCATE if end is None else TruncationRule.DIVERGING_EPOCH,
            )
        )
        if end is None:
            break
    changed = log.log_end_offset < follower.log_end_offset
    rule = TruncationRule.DIVERGING_EPOCH if changed else TruncationRule.NOTHING_TO_TRUNCATE
    return TruncationOutcome(
        protocol=ProtocolName.KIP_595,
        offset=log.log_end_offset if changed else Absent.NOT_APPLICABLE,
        rule=TruncationRule.ENDLESS if endless else rule,
        steps=tuple(steps),
        after=log,
        endless=endless,
    )


def _last_epoch(log: LogState) -> int:
    last = latest_epoch(log.epochs)
    return 0 if isinstance(last, Absent) else last


def _quorum_target(log: LogState, end: EpochEndOffset) -> tuple[int, EpochEndOffset | Absent]:
    # ReplicatedLog.truncateToEndOffset: epoch 0 has no own lookup.
    if isinstance(end.leader_epoch, Absent) or end.leader_epoch == 0:
        return min(end.end_offset, log.log_end_offset), Absent.NOT_APPLICABLE
    own = quorum_end_offset_for_epoch(log, end.leader_epoch)
    if own.leader_epoch == end.leader_epoch:
        return min(own.end_offset, end.end_offset), own
    return own.end_offset, own
