"""What is still wrong once all is over: replicas that differ and stay so, high watermarks past the end of every log, and torn transactions."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Absent
from kforensics.evidence.model import BatchReader, Citation
from kforensics.formats.log.batch_table import CONTROL_BIT, NO_PRODUCER, TRANSACTIONAL_BIT, BatchTable
from kforensics.formats.primitives.numbers import distinct
from kforensics.protocol.truncation import ProtocolName
from kforensics.reconcile.history.log_copies import Agreement, LogCopy
from kforensics.reconcile.history.losses import LostBatch
from kforensics.reconcile.replicas.leader import ProtocolChoice, follower_outcome, next_epoch
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
    """Return every replica in use that differs from the leader below the offset that it would truncate to."""
    now = [copy for copy in copies if copy.is_in_use]
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
    """Return the highest of some high watermarks; of equal ones that of the first broker."""
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
        known: offsets of losses that are listed already, with the copies that show them.
        is_recreated: there was an earlier topic of the name: a checkpoint keeps its line until it is written again, as by a clean stop.
    """
    now = [copy for copy in copies if copy.is_in_use]
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
        if copy.is_live
        and not copy.is_final
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


LOOK_BACK = 200_000
"""Offsets before the first loss in which the leader's log is searched for the same producers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TornTransaction:
    """A transaction of which the leader holds a part only."""

    producer_id: int
    producer_epoch: int
    kind: str
    """`marker-lost`, `data-lost` (the leader holds its marker), or `partly-lost`."""
    lost: OffsetRange
    """The range from the first to the last of its lost offsets."""
    open_from: int | Absent = Absent.NOT_APPLICABLE
    """Its first offset in the leader's log, where nothing ends it there: it holds the last stable offset back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSetBack:
    """An idempotent producer of which the leader knows less than it once acknowledged."""

    producer_id: int
    producer_epoch: int
    lost_sequence: int
    """The highest lost sequence number."""
    kept_sequence: int
    """The highest in the leader's log, -1 where it holds none of the producer's epoch."""


class TornTransactions(NamedTuple):
    """The torn transactions and the producers set back of one partition."""

    transactions: tuple[TornTransaction, ...] = ()
    producers: tuple[ProducerSetBack, ...] = ()
    stuck_at: int | Absent = Absent.NOT_APPLICABLE
    """The last stable offset, where a torn transaction holds it back: that of the first transaction that is open, this one or another."""


def find_torn_transactions(leader: LogCopy, lost: Sequence[LostBatch], reader: BatchReader) -> TornTransactions:
    """Find what the lost batches leave behind in the leader's log."""
    by_producer: dict[tuple[int, int], list[LostBatch]] = defaultdict(list)
    for batch in lost:
        if batch.producer_id != NO_PRODUCER:
            by_producer[batch.producer_id, batch.producer_epoch].append(batch)
    if not by_producer:
        return TornTransactions()
    start = max(leader.view.log_start_offset, lost[0].base_offset - LOOK_BACK)
    rows = reader.batches(leader.view.replica, start, max(leader.view.log_end_offset - 1, start))
    rows = rows[(rows["magic"] == 2) & (rows["last_offset"] < leader.view.log_end_offset)]
    truncations: dict[int, int] = {}
    for batch in lost:
        truncations[batch.epoch] = min(truncations.get(batch.epoch, batch.base_offset), batch.base_offset)
    transactions, producers = [], []
    for (producer_id, producer_epoch), batches in sorted(by_producer.items()):
        own = rows[rows["producer_id"] == producer_id]
        torn = _torn(producer_id, producer_epoch, batches, own, truncations)
        if torn is not None:
            transactions.append(torn)
        set_back = _set_back(producer_id, producer_epoch, batches, own)
        if set_back is not None:
            producers.append(set_back)
    is_stuck = any(isinstance(one.open_from, int) for one in transactions)
    return TornTransactions(
        transactions=tuple(transactions),
        producers=tuple(producers),
        stuck_at=min(_open_offsets(rows), default=Absent.NOT_APPLICABLE) if is_stuck else Absent.NOT_APPLICABLE,
    )


def _open_offsets(rows: BatchTable) -> list[int]:
    """Return the first offset of each producer's transaction that no marker ends."""
    part = rows[(rows["attributes"] & TRANSACTIONAL_BIT) != 0]
    found = (_open_from(part[part["producer_id"] == producer]) for producer in distinct(part["producer_id"]))
    return [offset for offset in found if isinstance(offset, int)]


def _open_from(own: BatchTable) -> int | Absent:
    """Where the last transaction of a producer begins that no marker ends."""
    is_control = (own["attributes"] & CONTROL_BIT) != 0
    is_data = ((own["attributes"] & TRANSACTIONAL_BIT) != 0) & ~is_control
    last_marker = int(own["base_offset"][is_control].max(initial=-1))
    behind = own["base_offset"][is_data & (own["base_offset"] > last_marker)]
    return int(behind.min()) if len(behind) else Absent.NOT_APPLICABLE


def _torn(
    producer_id: int, producer_epoch: int, batches: Sequence[LostBatch], own: BatchTable, truncations: Mapping[int, int]
) -> TornTransaction | None:
    part = [batch for batch in batches if batch.is_transactional]
    if not part:
        return None
    truncation = min(truncations[batch.epoch] for batch in part)
    is_control = (own["attributes"] & CONTROL_BIT) != 0
    is_data = ((own["attributes"] & TRANSACTIONAL_BIT) != 0) & ~is_control
    markers = own["base_offset"][is_control]
    last_end = int(markers[markers < truncation].max(initial=-1))
    kept_data = bool(np.any(is_data & (own["base_offset"] > last_end) & (own["base_offset"] < truncation)))
    kept_marker = _ends_nothing(markers, own["base_offset"][is_data], truncation)
    lost_data = any(not batch.is_control for batch in part)
    if kept_data and not kept_marker:
        kind = "partly-lost" if lost_data else "marker-lost"
    elif kept_marker and lost_data:
        kind = "data-lost"
    else:
        return None
    lost = OffsetRange(part[0].base_offset, max(batch.last_offset for batch in part))
    return TornTransaction(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        kind=kind,
        lost=lost,
        open_from=_open_from(own) if kind != "data-lost" else Absent.NOT_APPLICABLE,
    )


def _ends_nothing(markers: NDArray[np.int64], data: NDArray[np.int64], truncation: int) -> bool:
    """Whether no data of the producer lies between the truncation and its next end marker: the marker then ends the lost transaction, no later one."""
    behind = markers[markers >= truncation]
    if not len(behind):
        return False
    first = behind.min()
    return not bool(np.any((data >= truncation) & (data < first)))


def _set_back(
    producer_id: int, producer_epoch: int, batches: Sequence[LostBatch], own: BatchTable
) -> ProducerSetBack | None:
    sequences = [b.base_sequence + b.record_count - 1 for b in batches if not b.is_control and b.base_sequence >= 0]
    if not sequences:
        return None
    kept = own[(own["producer_epoch"] == producer_epoch) & (own["base_sequence"] >= 0)]
    last = int((kept["base_sequence"].astype(np.int64) + kept["count"] - 1).max(initial=-1))
    # The producer continued, or began again in a higher epoch, after the truncation.
    if last >= max(sequences) or bool(np.any(own["producer_epoch"] > producer_epoch)):
        return None
    return ProducerSetBack(
        producer_id=producer_id, producer_epoch=producer_epoch, lost_sequence=max(sequences), kept_sequence=last
    )
