"""Transactions of which a loss leaves only a part, and idempotent producers whose sequence the leader no longer knows.

A transaction's data and its end marker are appended apart (KIP-98). Where a truncation separates them, data without a marker holds the last stable offset
back, and a marker without data says that lost records were committed. A producer continues with the sequence after its last acknowledged batch; a leader
that holds less answers OUT_OF_ORDER_SEQUENCE_NUMBER.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Absent
from kforensics.evidence.model import BatchReader
from kforensics.formats.log.batch_table import CONTROL_BIT, NO_PRODUCER, TRANSACTIONAL_BIT, BatchTable
from kforensics.formats.primitives.numbers import distinct
from kforensics.reconcile.history.log_copies import LogCopy
from kforensics.reconcile.history.losses import LostBatch
from kforensics.units import OffsetRange

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


@dataclass(frozen=True, slots=True, kw_only=True)
class TornTransactions:
    """The torn transactions and the producers set back of one partition."""

    transactions: tuple[TornTransaction, ...] = ()
    producers: tuple[ProducerSetBack, ...] = ()
    stuck_at: int | Absent = Absent.NOT_APPLICABLE
    """The last stable offset, where a torn transaction holds it back: that of the first transaction that is open, this one or another."""


def find_torn_transactions(leader: LogCopy, lost: Sequence[LostBatch], reader: BatchReader) -> TornTransactions:
    """Find what the lost batches leave behind in the leader's log.

    Args:
        reader: gives batch rows.
    """
    by_producer: dict[tuple[int, int], list[LostBatch]] = defaultdict(list)
    for batch in lost:
        if batch.producer_id != NO_PRODUCER:
            by_producer[batch.producer_id, batch.producer_epoch].append(batch)
    if not by_producer:
        return TornTransactions()
    start = max(leader.view.log_start_offset, lost[0].base_offset - LOOK_BACK)
    rows = reader.batches(leader.view.replica, start, max(leader.view.log_end_offset - 1, start))
    rows = rows[(rows["magic"] == 2) & (rows["last_offset"] < leader.view.log_end_offset)]
    truncations = _truncated_at(lost)
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


def _truncated_at(lost: Sequence[LostBatch]) -> dict[int, int]:
    """Return where each lost line of history differs first from the leader's, by leader epoch."""
    truncations: dict[int, int] = {}
    for batch in lost:
        truncations[batch.epoch] = min(truncations.get(batch.epoch, batch.base_offset), batch.base_offset)
    return truncations


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
