"""The values of a truncation: the state of a log, a step with its numbers, and the outcome with the rule that decided it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.protocol.epochs import Epochs


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
            case _:
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
    """Return the high watermark that a broker uses: 0 if it is missing, and limited to the log (`UnifiedLog.updateHighWatermark`).

    Args:
        high_watermark: of the checkpoint or of memory.
    """
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

    @property
    def compares_epochs(self) -> bool:
        """Return whether the truncation compares epochs; otherwise divergent records may stay and equal ones may be discarded."""
        return not self.endless and all(step.kind in {StepKind.EPOCH_REQUEST, StepKind.FETCH} for step in self.steps)
