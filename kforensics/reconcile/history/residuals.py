"""What is still wrong once all is over: replicas that differ and stay so, and high watermarks past the end of every log."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.protocol.truncation import ProtocolName
from kforensics.reconcile.history.log_copies import Agreement, LogCopy
from kforensics.reconcile.history.losses import is_in_use
from kforensics.reconcile.replicas.expected_truncation import follower_outcome, next_epoch
from kforensics.reconcile.replicas.leader import ProtocolChoice
from kforensics.units import OffsetRange

Protocols = Callable[[LogCopy], ProtocolChoice]


@dataclass(frozen=True, slots=True, kw_only=True)
class Residual:
    """One replica that differs from the leader for good."""

    broker_id: int | Absent
    offset: int
    """The first that differs."""
    protocol: ProtocolName
    old_format: bool
    """Some of its batches are of magic 0 or 1, without leader epochs."""
    damaged_on: tuple[int | Absent, ...] = ()
    """The brokers of the two whose log is damaged at that offset."""
    citations: tuple[Citation, ...]


def residuals(
    leader: LogCopy, copies: Iterable[LogCopy], agreement: Agreement, protocol_of: Protocols
) -> tuple[Residual, ...]:
    """Return every replica in use that differs from the leader below the offset that it would truncate to.

    Args:
        copies: all copies of the partition's log.
    """
    now = [copy for copy in copies if is_in_use(copy)]
    epoch = next_epoch([copy.view for copy in now], Absent.UNKNOWN)
    found = []
    for copy in now:
        parted = None if copy is leader else agreement.parted_at(copy.view, leader.view)
        if parted is None or any(one.view.is_left_out(parted) for one in (copy, leader)):
            continue
        protocol = protocol_of(copy)
        outcome = follower_outcome(copy.view, leader.view, protocol=protocol, new_epoch=epoch)
        if isinstance(outcome.offset, int) and outcome.offset <= parted:
            continue
        magic = copy.view.oldest_magic
        found.append(
            Residual(
                broker_id=copy.broker_id,
                offset=parted,
                protocol=protocol.name,
                old_format=isinstance(magic, int) and magic < 2,
                damaged_on=tuple(one.broker_id for one in (leader, copy) if _is_damaged(one, parted)),
                citations=(copy.view.replica.cite(), leader.view.replica.cite()),
            )
        )
    return tuple(found)


def _is_damaged(copy: LogCopy, offset: int) -> bool:
    return any(one.offsets.first <= offset <= one.offsets.last for one in copy.view.damaged)


@dataclass(frozen=True, slots=True, kw_only=True)
class PastEnd:
    """One replica whose high watermark no log reaches."""

    broker_id: int | Absent
    owner: str
    high_watermark: int
    log_end: int
    """The log end offset of the longest log."""
    citation: Citation
    is_sure: bool = False
    """The broker had stopped when its directories were copied, or recorded it before; else copying at two moments, or a power loss, may explain it."""
    is_earlier: bool = False
    """It is on record in an earlier snapshot, and the logs as they are now end below it."""

    @property
    def words(self) -> str:
        """Who recorded it, as the beginning of a sentence."""
        verb = "had recorded" if self.is_earlier else "recorded"
        return f"{self.owner} {verb} high watermark {self.high_watermark}"


def furthest(found: Sequence[PastEnd]) -> PastEnd:
    """Return the highest of some high watermarks; of equal ones that of the first broker.

    Args:
        found: at least one.
    """
    return min(found, key=lambda one: (-one.high_watermark, one.is_earlier, one.owner))


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """What has to be known of earlier copies, so that their high watermarks speak of the log as it is now."""

    is_same_log: Callable[[LogCopy], bool] = lambda _copy: False
    """Whether a copy is of the log that the leader holds now."""
    doubted: Mapping[int, int] = field(default_factory=dict)
    """By broker, the offset from which its recorded high watermark proves nothing."""
    is_order_sure: bool = True
    """Nothing contradicts the order of the snapshots."""


def high_watermarks_past_end(
    copies: Sequence[LogCopy],
    known: Iterable[OffsetRange],
    *,
    is_stopped: bool = False,
    is_recreated: bool = False,
    earlier: Earlier = Earlier(),
) -> tuple[PastEnd, ...]:
    """Return every replica with a high watermark past the end of all that are in use: as they are now, else as earlier snapshots show them.

    Args:
        copies: all copies of the partition's log.
        known: offsets of losses that are listed already, with the copies that show them.
        is_stopped: no broker ran when the directories as they are now were copied.
        is_recreated: there was an earlier topic of the name: a checkpoint keeps its line until it is written again, as by a clean stop.
    """
    now = [copy for copy in copies if is_in_use(copy)]
    end = max((copy.view.log_end_offset for copy in now), default=0)
    reached = max((one.last + 1 for one in known), default=end)
    found = [
        _past_end(copy, end, is_sure=is_stopped or copy.view.replica.clean_shutdown)
        for copy in now
        if _recorded(copy) > max(end, reached) and (copy.view.replica.clean_shutdown or not is_recreated)
    ]
    if not found and not is_recreated:
        found = list(_in_snapshots(copies, now, end, reached, earlier))
    return tuple(found)


def _in_snapshots(
    copies: Sequence[LogCopy], now: Sequence[LogCopy], end: int, reached: int, earlier: Earlier
) -> Iterator[PastEnd]:
    """Yield the highest high watermark of an earlier snapshot where it is past the end of every log: a high watermark never goes back without a loss."""
    before = [
        copy
        for copy in copies
        if not copy.is_final
        and not copy.is_remnant
        and copy.view.replica.state == "live"
        and isinstance(copy.broker_id, int)
        and _recorded(copy) > max(end, reached)
        and _recorded(copy) <= earlier.doubted.get(copy.broker_id, _recorded(copy))
        and earlier.is_same_log(copy)
    ]
    if not now or not before:
        return
    is_readable = all(copy.view.segments and not copy.view.damaged for copy in now)
    is_of_now = earlier.is_order_sure and not any(copy.is_outdated for copy in copies)
    yield _past_end(max(before, key=_recorded), end, is_sure=is_readable and is_of_now, is_earlier=True)


def _recorded(copy: LogCopy) -> int:
    recorded = copy.view.replica.high_watermark
    return -1 if isinstance(recorded, Absent) else recorded.value


def _past_end(copy: LogCopy, end: int, *, is_sure: bool, is_earlier: bool = False) -> PastEnd:
    recorded = copy.view.replica.high_watermark
    assert not isinstance(recorded, Absent)
    return PastEnd(
        broker_id=copy.broker_id,
        owner=copy.view.replica.owner,
        high_watermark=recorded.value,
        log_end=end,
        citation=recorded.citation,
        is_sure=is_sure,
        is_earlier=is_earlier,
    )
