"""`<base offset>.txnindex`: the aborted transactions whose marker lies in the segment (KIP-98).

    entry := version int16 (0), producer_id int64, first_offset int64, last_offset int64, last_stable_offset int64
    34 bytes
    last_offset is that of the ABORT marker and rises strictly. Never preallocated, absent until the first abort.
    No checksum.

Kafka: `TransactionIndex`, `AbortedTxn` (0.11 and later); a partial entry at the end is ignored by its iterator.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from kforensics.damage import Damage, DamageKind, Span
from kforensics.formats.index.offset import check_rounded, entry_span
from kforensics.formats.primitives.layout import INT16, INT64, FixedLayout
from kforensics.formats.primitives.text_lines import DamageList

TXN_INDEX_LAYOUT = FixedLayout(
    version=INT16,
    producer_id=INT64,
    first_offset=INT64,
    last_offset=INT64,
    last_stable_offset=INT64,
)
TXN_ENTRY_LENGTH = TXN_INDEX_LAYOUT.length
TXN_INDEX_VERSION = 0


class AbortedTransaction(NamedTuple):
    """One aborted transaction: its producer, its first offset, the offset of its marker, and the last stable offset at that time."""

    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnIndex:
    """The entries of one transaction index, in the order of the file."""

    entries: tuple[AbortedTransaction, ...] = ()
    damage: tuple[Damage, ...] = field(default=())


def parse_txn_index(data: bytes | memoryview) -> TxnIndex:
    """Parse a transaction index (`TransactionIndex`); malformed entries stay among the entries.

    Args:
        data: the whole file; an incomplete entry at its end is damage, and no entry.
    """
    damage = DamageList()
    whole = len(data) // TXN_ENTRY_LENGTH * TXN_ENTRY_LENGTH
    entries = tuple(AbortedTransaction(*values) for values in TXN_INDEX_LAYOUT.struct.iter_unpack(data[:whole]))
    for at, entry in enumerate(entries):
        wrong = _what_is_wrong(entry, entries[at - 1] if at else None)
        if wrong:
            damage.add(
                entry_span(at, TXN_ENTRY_LENGTH), DamageKind.INDEX, expected=wrong, found=f"entry {at}: {_shown(entry)}"
            )
    check_rounded(len(data), Span(len(data), -1), TXN_ENTRY_LENGTH, damage)
    return TxnIndex(entries=entries, damage=damage.as_tuple())


def encode_aborted_transactions(entries: Iterable[AbortedTransaction]) -> bytes:
    """Encode a transaction index of these entries (`TransactionIndex`).

    Args:
        entries: written in their order; a broker writes them with rising offsets of their markers.
    """
    return b"".join(TXN_INDEX_LAYOUT.struct.pack(*entry) for entry in entries)


def _what_is_wrong(entry: AbortedTransaction, before: AbortedTransaction | None) -> str:
    if entry.version != TXN_INDEX_VERSION:
        return f"version {TXN_INDEX_VERSION}"
    if entry.producer_id < 0:
        return "a producer id of 0 or more"
    if not 0 <= entry.first_offset <= entry.last_offset:
        return "a first offset that is 0 or more and not above the last"
    if before is not None and entry.last_offset <= before.last_offset:
        return f"a last offset above {before.last_offset}, that of the entry before"
    return ""


def _shown(entry: AbortedTransaction) -> str:
    return f"version {entry.version}, producer {entry.producer_id}, offsets {entry.first_offset} to {entry.last_offset}"
