"""The leader epoch cache: the start offset of each leader epoch, and the lookup of its end.

Kafka keeps it in memory and in `leader-epoch-checkpoint` (`LeaderEpochFileCache`, KIP-101); here it is a tuple of
`EpochEntry` that rises by epoch. All end offsets are exclusive. The rules changed three times; `EpochRules` says which
of them a broker follows.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.units import EpochEntry

Epochs = tuple[EpochEntry, ...]
"""An epoch cache, rising by epoch; start offsets rise too since 2.0.1 (KAFKA-7415)."""


class EpochRules(NamedTuple):
    """The behaviour of one version of `LeaderEpochFileCache` where versions differ; the defaults are those of today."""

    answers_below_first: bool = True
    """KAFKA-7415 (2.0.1, 2.1.0): an epoch below the first is answered with the first entry's start.

    Before, the answer was undefined.
    """
    undefined_matches_empty: bool = False
    """KAFKA-6857 (0.11.0.0 to 1.0.1 and 1.1.0): an empty cache answers the undefined epoch with the log end.

    The undefined epoch, -1, was taken for the latest one.
    """
    repairs_conflicts: bool = True
    """KAFKA-7415: a new entry removes those it contradicts; before, the new one was ignored with a warning."""
    enters_epoch_when_elected: bool = True
    """KAFKA-7415: a new leader writes its entry when it is elected; before, with its first append."""
    trims_at_log_end: bool = True
    """KAFKA-10706 (2.6.1, 2.7.0): a truncation at or above the log end still removes entries that start there."""


CURRENT_RULES = EpochRules()
RULES_BEFORE_2_6_1 = EpochRules(trims_at_log_end=False)
RULES_BEFORE_2_0_1 = EpochRules(
    answers_below_first=False, repairs_conflicts=False, enters_epoch_when_elected=False, trims_at_log_end=False
)
RULES_BEFORE_1_0_2 = EpochRules(
    answers_below_first=False,
    undefined_matches_empty=True,
    repairs_conflicts=False,
    enters_epoch_when_elected=False,
    trims_at_log_end=False,
)


class EpochEndOffset(NamedTuple):
    """The end of a leader epoch: the answer to OffsetForLeaderEpoch, or a follower's own lookup."""

    leader_epoch: int | Absent
    """The largest epoch not above the one asked for; version 0 of the request does not carry it."""
    end_offset: int


def latest_epoch(epochs: Epochs) -> int | Absent:
    """Return the epoch of the last entry, for which a follower asks first (`LeaderEpochFileCache.latestEpoch`); absent of an empty cache."""
    return epochs[-1].leader_epoch if epochs else Absent.NOT_APPLICABLE


def assign(epochs: Epochs, leader_epoch: int, start_offset: int, rules: EpochRules = CURRENT_RULES) -> Epochs:
    """Return the cache after a batch of `leader_epoch` was appended at `start_offset` (`LeaderEpochFileCache.assign`).

    Args:
        start_offset: the base offset of the batch; a cache that has the epoch already keeps its own.

    Returns:
        The same cache where the epoch or the offset is negative: Kafka refuses such an entry, and a damaged batch can claim any.
    """
    if leader_epoch < 0 or start_offset < 0:
        return epochs
    entry = EpochEntry(leader_epoch, start_offset)
    if not epochs:
        return (entry,)
    last = epochs[-1]
    if leader_epoch == last.leader_epoch and start_offset >= last.start_offset:
        return epochs
    if not rules.repairs_conflicts:
        accepted = leader_epoch > last.leader_epoch and start_offset >= last.start_offset
        return (*epochs, entry) if accepted else epochs
    keep = len(epochs)
    while keep and (epochs[keep - 1].leader_epoch >= leader_epoch or epochs[keep - 1].start_offset >= start_offset):
        keep -= 1
    return (*epochs[:keep], entry)


def truncate_from_end(epochs: Epochs, truncate_to: int) -> Epochs:
    """Return the cache after the log was truncated: epochs that start at or above `truncate_to` are removed, none by a negative one (`truncateFromEnd`)."""
    if truncate_to < 0 or not epochs or epochs[-1].start_offset < truncate_to:
        return epochs
    return tuple(entry for entry in epochs if entry.start_offset < truncate_to)


def truncate_from_start(epochs: Epochs, log_start_offset: int, rules: EpochRules = CURRENT_RULES) -> Epochs:
    """Return the cache after the log start offset rose: the epoch that holds it starts there now (`truncateFromStart`).

    Several entries may start at one offset before KAFKA-7415: those at the log start are all kept.
    """
    passed = 0
    if not rules.repairs_conflicts:
        while passed < len(epochs) and epochs[passed].start_offset < log_start_offset:
            passed += 1
        if passed < len(epochs) and epochs[passed].start_offset == log_start_offset:
            return epochs[passed:]
    while passed < len(epochs) and epochs[passed].start_offset <= log_start_offset:
        passed += 1
    if not passed:
        return epochs
    return (EpochEntry(epochs[passed - 1].leader_epoch, log_start_offset), *epochs[passed:])


def epochs_after_scan(
    epochs: Epochs,
    found: Epochs,
    *,
    skips_epoch_zero: bool = False,
    rules: EpochRules = CURRENT_RULES,
) -> Epochs:
    """Return the cache after a scan: a batch adds its epoch if it is above the latest one (`LogSegment.recover`).

    Args:
        found: the epochs of the scanned batches with their base offsets, in the order of the log.
        skips_epoch_zero: KAFKA-10432: until 2.6.0 the first epoch of all was not restored.
    """
    for entry in found:
        latest = latest_epoch(epochs)
        is_news = entry.leader_epoch > (-1 if isinstance(latest, Absent) else latest)
        if is_news and not (skips_epoch_zero and entry.leader_epoch == 0):
            epochs = assign(epochs, entry.leader_epoch, entry.start_offset, rules)
    return epochs


def repair_epochs_at_load(
    epochs: Epochs, log_start_offset: int, log_end_offset: int, rules: EpochRules = CURRENT_RULES
) -> Epochs:
    """Return the epoch cache once the log is loaded, without stale entries at both ends that were not flushed in time.

    Args:
        log_start_offset: as checkpointed, 0 where it is not: the first segment's base offset does not count (`LogLoader.load`, 4.1.0).
    """
    return truncate_from_start(truncate_from_end(epochs, log_end_offset), log_start_offset, rules)


def end_offset_for_epoch(
    epochs: Epochs, log_end_offset: int, requested: int | Absent, rules: EpochRules = CURRENT_RULES
) -> EpochEndOffset | Absent:
    """Return the end of the largest epoch not above `requested` (`LeaderEpochFileCache.endOffsetFor`, KIP-101, KIP-279).

    Args:
        requested: the epoch asked for; absent for Kafka's undefined epoch, -1.

    Returns:
        The epoch and its exclusive end offset; `Absent.UNKNOWN` is Kafka's undefined answer.
    """
    if isinstance(requested, Absent):
        if rules.undefined_matches_empty and not epochs:
            return EpochEndOffset(Absent.UNKNOWN, log_end_offset)
        return Absent.UNKNOWN
    if not epochs or requested > epochs[-1].leader_epoch:
        return Absent.UNKNOWN
    if requested == epochs[-1].leader_epoch:
        return EpochEndOffset(requested, log_end_offset)
    if requested < epochs[0].leader_epoch:
        return EpochEndOffset(requested, epochs[0].start_offset) if rules.answers_below_first else Absent.UNKNOWN
    above = bisect_right(epochs, requested, key=_leader_epoch_of)
    return EpochEndOffset(epochs[above - 1].leader_epoch, epochs[above].start_offset)


def validated_position(epochs: Epochs, log_end_offset: int, position: int, leader_epoch: int) -> int | Absent:
    """Return where a consumer goes on that asks the leader for the end of its position's leader epoch before it fetches (KIP-320, `SubscriptionState.maybeCompleteValidation`, 2.3 and later).

    Args:
        leader_epoch: that the position was committed with; -1 for none, which is not asked about.

    Returns:
        The position, where the log confirms it; the end of the epoch, where that is lower; unknown where the leader knows no such epoch: auto.offset.reset decides.
    """
    if leader_epoch < 0 or not epochs:
        return position
    found = end_offset_for_epoch(epochs, log_end_offset, leader_epoch)
    return found if isinstance(found, Absent) else min(position, found.end_offset)


def epoch_at(epochs: Sequence[EpochEntry], offset: int) -> int | Absent:
    """Return the epoch in which an offset lies, absent if it lies before the first entry."""
    found: int | Absent = Absent.UNKNOWN
    for entry in epochs:
        if entry.start_offset > offset:
            break
        found = entry.leader_epoch
    return found


def _leader_epoch_of(entry: EpochEntry) -> int:
    return entry.leader_epoch
