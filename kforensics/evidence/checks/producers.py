"""Producer snapshots and aborted transactions, recomputed from the log.

The state after the batches below an offset is what `<offset>.snapshot` must say: per producer its last batch and its
open transaction (Kafka:
`ProducerStateManager`, `ProducerAppendInfo`). Producers that expired, and such whose batches retention or
DeleteRecords took, may be missing from either
side; compaction keeps the last batch of a producer, but not its timestamp. Where the log no longer begins at its
first record the replay starts from the
snapshot there.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kforensics.damage import Damage, DamageKind, Gravity, Span
from kforensics.evidence.checks.producer_events import NONE, DataRun, Marker, ProducerEvent, Split
from kforensics.formats.index.offset import entry_span
from kforensics.formats.index.producer_snapshot import (
    SNAPSHOT_ENTRY_LENGTH,
    SNAPSHOT_HEADER_LENGTH,
    ProducerEntry,
    ProducerSnapshot,
)
from kforensics.formats.index.txn import TXN_ENTRY_LENGTH, AbortedTransaction, TxnIndex
from kforensics.formats.primitives.text_lines import DamageList


class Aborted(NamedTuple):
    """A transaction as its ABORT marker ended it: a first offset of -1 is one without records, or begun before the log."""

    producer_id: int
    first_offset: int
    last_stable_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerHistory:
    """The state at each offset asked for, and the transactions that ended."""

    states: Mapping[int, Mapping[int, ProducerEntry]]
    aborted: Mapping[int, "Aborted"] = field(default_factory=dict)
    """The aborted transactions, by the offset of the ABORT marker."""
    committed: frozenset[tuple[int, int]] = frozenset()
    """Producer and offset of COMMIT markers."""


def replay(
    events: Iterable[ProducerEvent], *, start: Mapping[int, ProducerEntry], splits: Sequence[int]
) -> ProducerHistory:
    """Fold events in log order.

    Args:
        events: of all segments, one behind the other.
        start: the state before the first of them.
        splits: offsets at which the state is kept; those that no batch reaches get the last state.
    """
    state = dict(start)
    states: dict[int, Mapping[int, ProducerEntry]] = {}
    aborted: dict[int, Aborted] = {}
    committed: set[tuple[int, int]] = set()
    for event in events:
        match event:
            case Split(offset):
                for split in splits:
                    if split <= offset and split not in states:
                        states[split] = dict(state)
            case DataRun():
                state[event.producer_id] = _after_data(state.get(event.producer_id), event)
            case Marker():
                before = state.get(event.producer_id)
                first = NONE if before is None else before.current_transaction_first_offset
                if event.is_abort:
                    aborted[event.offset] = Aborted(event.producer_id, first, _last_stable_offset(state, event))
                else:
                    committed.add((event.producer_id, event.offset))
                state[event.producer_id] = _after_marker(before, event)
    for split in splits:
        states.setdefault(split, dict(state))
    return ProducerHistory(states=states, aborted=aborted, committed=frozenset(committed))


def _last_stable_offset(state: Mapping[int, ProducerEntry], marker: Marker) -> int:
    """Return the offset at which the first of the other open transactions began; behind the marker where there is none."""
    others = (
        entry.current_transaction_first_offset
        for producer_id, entry in state.items()
        if producer_id != marker.producer_id and entry.current_transaction_first_offset != NONE
    )
    return min(others, default=marker.offset + 1)


def _after_data(before: ProducerEntry | None, run: DataRun) -> ProducerEntry:
    open_first = NONE if before is None else before.current_transaction_first_offset
    return ProducerEntry(
        run.producer_id,
        run.producer_epoch,
        run.last_sequence,
        run.last_offset,
        run.offset_delta,
        run.timestamp,
        NONE if before is None else before.coordinator_epoch,
        run.transaction_first_offset if open_first == NONE else open_first,
    )


def _after_marker(before: ProducerEntry | None, marker: Marker) -> ProducerEntry:
    if before is None or before.producer_epoch != marker.producer_epoch:
        return ProducerEntry(
            marker.producer_id, marker.producer_epoch, NONE, NONE, 0, marker.timestamp, marker.coordinator_epoch, NONE
        )
    return before._replace(
        timestamp=marker.timestamp, coordinator_epoch=marker.coordinator_epoch, current_transaction_first_offset=NONE
    )


def check_snapshot(
    snapshot: ProducerSnapshot,
    state: Mapping[int, ProducerEntry],
    *,
    log_start: int,
    is_compacted: bool,
    gravity: Gravity,
) -> tuple[Damage, ...]:
    """Return the producers whose last batch or open transaction is not the log's.

    Args:
        log_start: the first offset the log holds: older batches can't be recomputed.
        is_compacted: whether the cleaner has been over these offsets.
    """
    damage = DamageList(gravity)
    for at, entry in enumerate(snapshot.entries):
        recomputed = state.get(entry.producer_id)
        span = Span(SNAPSHOT_HEADER_LENGTH + at * SNAPSHOT_ENTRY_LENGTH, SNAPSHOT_ENTRY_LENGTH)
        if recomputed is None:
            if entry.last_offset >= log_start and not is_compacted:
                damage.add(
                    span, DamageKind.MISMATCH, expected="a producer with a batch in the log", found=_shown(entry)
                )
            continue
        if _differs(entry, recomputed, log_start=log_start, is_compacted=is_compacted):
            damage.add(
                span, DamageKind.MISMATCH, expected=_shown(recomputed) + ", as the log has it", found=_shown(entry)
            )
    return damage.as_tuple()


def _differs(entry: ProducerEntry, recomputed: ProducerEntry, *, log_start: int, is_compacted: bool) -> bool:
    if entry.producer_epoch != recomputed.producer_epoch and not is_compacted:
        return True
    if (
        recomputed.last_offset == NONE
    ):  # only markers are left of it: its data was compacted away, or came before the log
        return False
    if (entry.last_offset, entry.last_sequence, entry.offset_delta) != (
        recomputed.last_offset,
        recomputed.last_sequence,
        recomputed.offset_delta,
    ):
        return True
    first, recomputed_first = entry.current_transaction_first_offset, recomputed.current_transaction_first_offset
    return first != recomputed_first and not is_compacted and min(first, recomputed_first) >= log_start


def _shown(entry: ProducerEntry) -> str:
    open_first = entry.current_transaction_first_offset
    transaction = "" if open_first == NONE else f", transaction open since {open_first}"
    return f"producer {entry.producer_id} epoch {entry.producer_epoch}: sequence {entry.last_sequence} at offset {entry.last_offset}{transaction}"


def _is_of_one_append(entry: AbortedTransaction, marker: Aborted, end_offset: int) -> bool:
    """Return the last stable offset is where a later transaction began, which a follower had appended along with this one.

    `UnifiedLog.append` opens every transaction of a fetch response before it closes the first (4.1), so that followers may write what the leader did not.
    """
    return (
        (entry.producer_id, entry.first_offset) == marker[:2]
        and marker.last_stable_offset == entry.last_offset + 1
        and marker.last_stable_offset < entry.last_stable_offset < end_offset
    )


def check_txn_index(
    index: TxnIndex,
    history: ProducerHistory,
    *,
    base_offset: int,
    end_offset: int,
    log_start: int,
    is_compacted: bool,
    gravity: Gravity,
) -> tuple[Damage, ...]:
    """Return damage of entries without their ABORT marker, and of markers without their entry.

    Args:
        end_offset: behind its last batch.
        log_start: the first offset the log holds.
        is_compacted: whether the cleaner may have taken markers away.
    """
    damage = DamageList(gravity)
    for at, entry in enumerate(index.entries):
        span = entry_span(at, TXN_ENTRY_LENGTH)
        marker = history.aborted.get(entry.last_offset)
        where = f"entry {at}: producer {entry.producer_id}, offsets {entry.first_offset} to {entry.last_offset}"
        if marker is None:
            if not base_offset <= entry.last_offset < end_offset:
                damage.add(
                    span,
                    DamageKind.INDEX,
                    expected=f"the offset of a marker in {base_offset}..{end_offset - 1}",
                    found=where,
                )
            elif not is_compacted:
                damage.add(span, DamageKind.INDEX, expected="the offset of an abort marker", found=where)
        elif not is_compacted and marker.first_offset >= log_start:
            found = (entry.producer_id, entry.first_offset, entry.last_stable_offset)
            if found != marker and not _is_of_one_append(entry, marker, end_offset):
                words = f"producer {marker.producer_id} from offset {marker.first_offset}, last stable offset {marker.last_stable_offset}"
                where = f"entry {at}: producer {found[0]} from offset {found[1]}, last stable offset {found[2]}"
                damage.add(span, DamageKind.INDEX, expected=f"{words}, as the log has it", found=where)
        elif marker.producer_id != entry.producer_id:
            damage.add(
                span, DamageKind.INDEX, expected=f"producer {marker.producer_id}, as the log has it", found=where
            )
    listed = {entry.last_offset for entry in index.entries}
    missing = [
        offset
        for offset, transaction in history.aborted.items()
        if base_offset <= offset < end_offset and transaction.first_offset != NONE and offset not in listed
    ]
    for offset in sorted(missing):
        end = len(index.entries) * TXN_ENTRY_LENGTH
        damage.add(
            Span(end, 0),
            DamageKind.INDEX,
            expected=f"an entry for the transaction aborted at offset {offset}",
            found="no entry",
        )
    return damage.as_tuple()
