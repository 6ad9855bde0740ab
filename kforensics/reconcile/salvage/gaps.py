"""Offsets that no output has, each with the reason."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from kforensics.damage import Damage, Gravity
from kforensics.reconcile.logs.loaded_log import LoadedLog
from kforensics.reconcile.logs.tiers import RemoteCopies, RemotePart
from kforensics.units import OffsetRange

if TYPE_CHECKING:
    from kforensics.reconcile.history.log_copies import LogCopy


class GapReason(StrEnum):
    """The reason why records are not among what was saved."""

    COMPACTED = "compacted"
    """A cleaner has passed: a later record of the same key superseded them."""
    RETENTION = "deleted-by-retention"
    """Below the log start: retention or DeleteRecords removed them."""
    REMOTE = "remote"
    """Below the first local segment of a log that begins earlier: on no disk, so in remote storage if anywhere, and the record of its copies is not whole."""
    IN_REMOTE = "in-remote-storage"
    """The same, and a finished copy is on record that brokers read."""
    NEITHER = "in-neither-tier"
    """The same, and the record of the copies, which was read whole, names no such copy."""
    DAMAGED = "damaged"
    """The bytes are there and fail their checksum, and no sound copy is among the inputs."""
    NOT_READ = "not-read"
    """The bytes are there, and more than kforensics reads at once; nothing shows that they are damaged."""
    NOT_CAPTURED = "not-captured"
    """Their bytes stayed on the broker that the capture is of."""
    NEVER_SEEN = "never-seen"
    """No input holds them."""
    OVERLAPPING = "overlapping"
    """Another batch of the same log has some of their offsets, and segments hold an offset once."""
    ABORTED = "aborted"
    """Records of aborted transactions, which consumers were never given."""


ON_PURPOSE = frozenset({GapReason.COMPACTED, GapReason.RETENTION, GapReason.ABORTED, GapReason.IN_REMOTE})
"""Reasons that are no loss: Kafka removed, moved or hid the records by its settings or on request."""

UNREADABLE = frozenset({GapReason.DAMAGED, GapReason.NOT_READ})
"""Reasons for which another copy of the same batch is worth a look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A run of offsets that was not saved."""

    offsets: OffsetRange
    count: int
    """Offsets without a record that was saved; below the number of offsets where several holes are taken together."""
    reason: GapReason
    detail: str = ""
    """Where it is, or what to read, in words."""

    @property
    def is_loss(self) -> bool:
        """Whether it is not by intention."""
        return self.reason not in ON_PURPOSE


class HoleJudge:
    """Says why offsets of a log are in no copy.

    Args:
        copies: all of one incarnation of the topic.
        leader: whose log start and cleaner decide; None where no log does.
        remote: what is on record of copies in remote storage.
    """

    def __init__(
        self, copies: "Sequence[LogCopy]", leader: "LogCopy | None", remote: RemoteCopies | None = None
    ) -> None:
        self._leader, self._remote = leader, remote or RemoteCopies()
        views = [leader.view] if leader is not None else [copy.view for copy in copies]
        self._log_start = max((view.log_start_offset for view in views), default=0)
        self._content_start = min((view.content_start_offset for view in views), default=0)
        self._cleaned_below = max((copy.view.cleaned_below for copy in copies), default=0)
        self._damaged = sorted(
            (
                one.offsets_lost,
                reason_of(one),
                f"input {copy.view.replica.input + 1}, {segment.path}, byte {one.span.position:,}",
            )
            for copy in copies
            for segment in copy.view.replica.segments
            for one in segment.damage
            if isinstance(one.offsets_lost, OffsetRange)
        )

    def gaps(self, hole: OffsetRange) -> tuple[Gap, ...]:
        """Return the hole, split where the reason changes."""
        out: list[Gap] = []
        first = hole.first
        if first < self._log_start:
            last = min(hole.last, self._log_start - 1)
            out.append(_gap(first, last, GapReason.RETENTION))
            first = last + 1
        if first <= hole.last and first < self._content_start:
            last = min(hole.last, self._content_start - 1)
            out += self._below_the_disks(OffsetRange(first, last))
            first = last + 1
        if first > hole.last:
            return tuple(out)
        damaged = [
            (offsets, reason, where)
            for offsets, reason, where in self._damaged
            if offsets.first <= hole.last and offsets.last >= first
        ]
        for offsets, reason, where in damaged:
            begin, end = max(offsets.first, first), min(offsets.last, hole.last)
            if begin > end:
                continue
            if begin > first:
                out.append(self._plain(first, begin - 1))
            out.append(_gap(begin, end, reason, where))
            first = end + 1
        if first <= hole.last:
            out.append(self._plain(first, hole.last))
        return tuple(out)

    def _below_the_disks(self, offsets: OffsetRange) -> Iterator[Gap]:
        if self._leader is None:
            yield _gap(*offsets, GapReason.REMOTE)
            return
        view = self._leader.view
        for part in remote_parts(offsets, view, self._remote):
            yield _gap(*part.offsets, remote_reason(part), part.detail)

    def _plain(self, first: int, last: int) -> Gap:
        return _gap(first, last, GapReason.COMPACTED if last < self._cleaned_below else GapReason.NEVER_SEEN)


def remote_parts(offsets: OffsetRange, log: LoadedLog, remote: RemoteCopies) -> Iterator[RemotePart]:
    """Yield offsets of a log that are on no disk, by what is on record of their copies in remote storage."""
    one = log.replica
    return remote.parts(offsets, one.topic_partition, one.topic_id, log.epochs, log.log_start_offset)


def remote_reason(part: RemotePart) -> GapReason:
    """Return the reason for which offsets are on no disk."""
    if part.segment is not None:
        return GapReason.IN_REMOTE
    if part.is_deleted:
        return GapReason.RETENTION
    return GapReason.REMOTE if part.lacks else GapReason.NEITHER


def reason_of(place: Damage) -> GapReason:
    """Return the reason for which records at a damaged place are not saved."""
    return GapReason.NOT_READ if place.gravity is Gravity.UNREAD else GapReason.DAMAGED


def _gap(first: int, last: int, reason: GapReason, detail: str = "") -> Gap:
    return Gap(offsets=OffsetRange(first, last), count=last - first + 1, reason=reason, detail=detail)


def join_gaps(gaps: list[Gap], one: Gap) -> None:
    """Add a gap to those before it in the order of offsets; holes that a cleaner left are taken together, whatever lies between them."""
    if gaps:
        last = gaps[-1]
        is_next = one.offsets.first <= last.offsets.last + 1 or one.reason is GapReason.COMPACTED
        if last.reason is one.reason and last.detail == one.detail and is_next:
            offsets = OffsetRange(last.offsets.first, max(one.offsets.last, last.offsets.last))
            gaps[-1] = Gap(offsets=offsets, count=last.count + one.count, reason=one.reason, detail=one.detail)
            return
    gaps.append(one)


def without_held(gaps: Sequence[Gap], held: Sequence[OffsetRange]) -> list[Gap]:
    """Return the gaps without the offsets that no best copy has and an alternate does: some input holds them."""
    out = list(gaps)
    for one in held:
        out = [left for gap in out for left in _outside(gap, one)]
    return out


def _outside(gap: Gap, held: OffsetRange) -> Iterator[Gap]:
    first, last = gap.offsets.first, gap.offsets.last
    if gap.reason is not GapReason.NEVER_SEEN or held.last < first or held.first > last:
        yield gap
        return
    for part in gap.offsets.without([held]):
        yield _gap(part.first, part.last, gap.reason, gap.detail)
