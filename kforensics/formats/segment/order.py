"""Check what checksums don't cover: along a log, base offsets must rise and leader epochs must not fall.

Base offset and leader epoch of a magic 2 batch lie outside its checksum, offset and length of a message too; only the neighbours show that one of them is
wrong. Where one changed bit makes a batch fit exactly between its neighbours, that bit is named.
"""

from typing import NamedTuple

import numpy as np

from kforensics.damage import Absent, BitFlip, Damage, DamageCause, DamageKind, Span
from kforensics.formats.log.batch_table import BATCH_HEADER, BatchTable
from kforensics.formats.segment.resync import OFFSET_REACH

_EPOCH_POSITION = BATCH_HEADER.position_of("partition_leader_epoch")

_SOME_EPOCH = "a leader epoch of 0 or more"

MOST_LISTED = 1000
"""The most batches out of order that are listed one by one."""


class _Batch(NamedTuple):
    position: int
    length: int
    base_offset: int
    last_offset: int
    leader_epoch: int
    magic: int


class LogOrder:
    """Follows the sound batches of a log, window by window."""

    def __init__(self) -> None:
        self.last_offset = -1
        """The highest offset so far that is no outlier, -1 before the first batch."""
        self.leader_epoch = -1
        self._tail: list[_Batch] = []
        self._listed = 0

    def check(self, table: BatchTable) -> list[Damage]:
        """Return departures from the order among the next batches; one that is out of order itself is no measure for those behind it."""
        if not len(table):
            return []
        base, last = table["base_offset"], table["last_offset"]
        reached = np.maximum.accumulate(np.concatenate(([self.last_offset], last)))
        offsets_rise = bool((base > reached[:-1]).all() and (last >= base).all())
        own = table["partition_leader_epoch"]
        epochs = np.concatenate(([self.leader_epoch], own[own >= 0]))
        epochs_rise = bool((epochs[1:] >= epochs[:-1]).all()) and not self._lacks_epochs(table)
        if offsets_rise and epochs_rise:
            self.last_offset = int(reached[-1])
            self.leader_epoch = int(epochs[-1])
            self._tail = [*self._tail, *_batches(table[-2:])][-2:]
            return []
        seam = len(self._tail)
        batches = [*self._tail, *_batches(table)]
        self._tail = batches[-2:]
        return self._listed_or_counted([*self._check_offsets(batches, seam), *self._check_epochs(batches, seam)])

    def _lacks_epochs(self, table: BatchTable) -> bool:
        """Return whether a batch has an epoch that is none, although leaders gave epochs to those around it."""
        own = table["partition_leader_epoch"]
        if own.min() >= 0:
            return False
        is_batch = table["magic"] == 2
        return bool((own < -1).any() or ((is_batch & (own < 0)).any() and (self.leader_epoch >= 0 or own.max() >= 0)))

    def _listed_or_counted(self, damage: list[Damage]) -> list[Damage]:
        """No more than `MOST_LISTED` one by one along the log; the rest of a window as one."""
        listed = damage[: max(MOST_LISTED - self._listed, 0)]
        rest = sorted(damage[len(listed) :], key=lambda one: one.span.position)
        self._listed += len(listed)
        if rest:
            begin, end = rest[0].span.position, max(one.span.end for one in rest)
            listed.append(
                Damage(
                    span=Span(begin, end - begin),
                    kind=DamageKind.ORDER,
                    expected="offsets that rise and leader epochs that do not fall",
                    found=f"{len(rest)} batches out of order, after {MOST_LISTED} listed one by one",
                )
            )
        return listed

    def _check_offsets(self, batches: list[_Batch], seam: int) -> list[Damage]:
        damage = []
        for index in range(seam, len(batches)):
            batch = batches[index]
            if batch.last_offset >= batch.base_offset > self.last_offset:
                self.last_offset = batch.last_offset
            elif index and _jumped(batches, index):
                damage.append(_offset_damage(batches, index - 1, batches[index - 2].last_offset if index > 1 else -1))
                self.last_offset = batch.last_offset
            else:
                damage.append(_offset_damage(batches, index, self.last_offset))
                self.last_offset = max(self.last_offset, batch.last_offset)
        return damage

    def _check_epochs(self, batches: list[_Batch], seam: int) -> list[Damage]:
        damage = []
        for index in range(seam, len(batches)):
            batch = batches[index]
            if batch.leader_epoch >= self.leader_epoch:
                if index and self.leader_epoch < 0 <= batch.leader_epoch and _lacks_epoch(batches[index - 1]):
                    damage.append(_epoch_damage(batches[index - 1], batch.leader_epoch, _SOME_EPOCH))
                self.leader_epoch = batch.leader_epoch
            elif batch.leader_epoch >= 0:
                before = batches[index - 2].leader_epoch if index > 1 else -1
                if (
                    index
                    and before <= batch.leader_epoch < batches[index - 1].leader_epoch
                    and before != batches[index - 1].leader_epoch
                    and not _returns_to(batches[index - 1].leader_epoch, batches, index + 1)
                ):
                    # Only one batch is above its neighbours: it is the wrong one, not all that follow.
                    damage.append(
                        _epoch_damage(
                            batches[index - 1], batch.leader_epoch, f"a leader epoch of at most {batch.leader_epoch}"
                        )
                    )
                    self.leader_epoch = batch.leader_epoch
                else:
                    damage.append(
                        _epoch_damage(batch, self.leader_epoch, f"a leader epoch of at least {self.leader_epoch}")
                    )
                    if index + 1 < len(batches) and batches[index + 1].leader_epoch < self.leader_epoch:
                        self.leader_epoch = batch.leader_epoch
            elif batch.leader_epoch < -1 or (batch.magic == 2 and self.leader_epoch >= 0):
                damage.append(_epoch_damage(batch, self.leader_epoch, _SOME_EPOCH))
        return damage


def _lacks_epoch(batch: _Batch) -> bool:
    """Return whether it has no leader epoch although leaders write one into every batch of magic 2."""
    return batch.magic == 2 and batch.leader_epoch == -1


def _returns_to(epoch: int, batches: list[_Batch], index: int) -> bool:
    """Return whether the batch at `index` has the epoch again, so that one between is the wrong one."""
    return index < len(batches) and batches[index].leader_epoch == epoch


def _batches(table: BatchTable) -> list[_Batch]:
    names = ("position", "length", "base_offset", "last_offset", "partition_leader_epoch", "magic")
    return [_Batch(*row) for row in zip(*(table[name].tolist() for name in names), strict=True)]


def _jumped(batches: list[_Batch], index: int) -> bool:
    """Return whether the batch before `index` is the outlier: its offset is too high, and it fits between its neighbours."""
    outlier, follower = batches[index - 1], batches[index]
    extent = outlier.last_offset - outlier.base_offset
    if index < 2:
        # Nothing shows where the log starts, but the offsets of a segment are near to each other, so a changed bit is visible.
        right = follower.base_offset - 1 - extent
        is_flipped = right >= 0 and (outlier.base_offset ^ right).bit_count() == 1
        return is_flipped or outlier.base_offset - follower.base_offset >= OFFSET_REACH
    before = batches[index - 2].last_offset
    return outlier.base_offset > before + 1 and follower.base_offset - before - 1 > extent >= 0


def _offset_damage(batches: list[_Batch], index: int, previous_last: int) -> Damage:
    batch = batches[index]
    expected = f"a base offset above {previous_last}" if previous_last >= 0 else "a base offset at the log's start"
    behind = batches[index + 1].base_offset if index + 1 < len(batches) else None
    if behind is not None and behind > previous_last + 1:
        expected += f" and below {behind}"
    return Damage(
        span=Span(batch.position, batch.length),
        kind=DamageKind.ORDER,
        expected=expected,
        found=f"{batch.base_offset} to {batch.last_offset}",
        next_good=(behind, batches[index + 1].position) if behind is not None else Absent.NOT_APPLICABLE,
        cause=_offset_flip(batch, previous_last, behind),
    )


def _offset_flip(batch: _Batch, previous_last: int, behind: int | None) -> DamageCause | Absent:
    """One bit of the stored offset, where the batch then fits exactly behind its predecessor and before its successor."""
    extent = batch.last_offset - batch.base_offset
    right = previous_last + 1
    if previous_last < 0:
        if behind is None:
            return Absent.UNKNOWN
        right = behind - 1 - extent
    if behind is not None and right + extent >= behind:
        return Absent.UNKNOWN
    # Magic 2 stores the first offset, a message its last one.
    stored, wanted = (batch.base_offset, right) if batch.magic == 2 else (batch.last_offset, right + extent)
    return _flip_cause(batch.position, 8, stored, wanted, "base offset" if batch.magic == 2 else "offset")


def _epoch_damage(batch: _Batch, neighbour: int, expected: str) -> Damage:
    return Damage(
        span=Span(batch.position, batch.length),
        kind=DamageKind.EPOCH,
        expected=expected,
        found=str(batch.leader_epoch),
        cause=_flip_cause(batch.position + _EPOCH_POSITION, 4, batch.leader_epoch, neighbour, "leader epoch"),
    )


def _flip_cause(position: int, width: int, stored: int, wanted: int, name: str) -> DamageCause | Absent:
    """Return the cause `bit-flip` where two values of a big-endian field differ in one bit."""
    flip = flip_between(position, width, stored, wanted)
    if flip is None:
        return Absent.UNKNOWN
    return DamageCause(kind="bit-flip", detail=f"one flipped bit in the {name}: {wanted} became {stored}", flip=flip)


def flip_between(position: int, width: int, stored: int, wanted: int) -> BitFlip | None:
    """Return the one bit in which two values of a big-endian field differ, or None where they differ in none or in several."""
    mask = (1 << 8 * width) - 1
    difference = (stored ^ wanted) & mask
    if difference.bit_count() != 1:
        return None
    bit = difference.bit_length() - 1
    place = width - 1 - bit // 8
    found, expected = ((value & mask).to_bytes(width)[place] for value in (stored, wanted))
    return BitFlip(position + place, bit % 8, found, expected)
