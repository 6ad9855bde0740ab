"""Segments as rows of plain values and back, so that what was read in one place can be judged in another."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Absent, Damage, DamageKind, Gravity, Span
from kforensics.evidence.model import DIGEST_DTYPE, Segment
from kforensics.formats.log.batch_table import BatchTable
from kforensics.source.naming import LARGEST_OFFSET
from kforensics.units import EpochEntry, OffsetRange

Row = dict[str, Any]

_DIGEST_COLUMNS = ("bucket", "low", "high", "batches", "position")


def known(value: Any) -> Any:
    """Return a value as the rows of tables have it: none where it is absent, whatever the reason, and no end behind the last offset that 64 bits hold."""
    if isinstance(value, Absent):
        return None
    return min(value, LARGEST_OFFSET) if type(value) is int else value


def known_or(value: Any, absent: Absent) -> Any:
    """Return a value of a row, or the reason for which it is absent where the row has none.

    Args:
        absent: what none stands for in that column.
    """
    return absent if value is None else value


# ---------------------------------------------------------------- damage


def damage_rows(path: str, damage: Iterable[Damage]) -> list[Row]:
    """Return the damaged places of a file as rows.

    Args:
        path: of the file, relative to its input.
        damage: causes, checksums and the next good batch are not kept.
    """
    return [
        {
            "path": path,
            "position": one.span.position,
            "length": one.span.length,
            "kind": one.kind.value,
            "expected": one.expected,
            "found": one.found,
            "gravity": one.gravity.value,
            "first_offset_lost": one.offsets_lost.first if isinstance(one.offsets_lost, OffsetRange) else None,
            "last_offset_lost": one.offsets_lost.last if isinstance(one.offsets_lost, OffsetRange) else None,
        }
        for one in damage
    ]


def damage_of(rows: Iterable[Mapping[str, Any]] | None) -> tuple[Damage, ...]:
    """Return the damaged places that rows describe.

    Args:
        rows: as `damage_rows` gave them; None for none.

    Raises:
        KeyError: a column is missing.
        ValueError: a kind or gravity is not known.
    """
    return tuple(
        Damage(
            span=Span(row["position"], row["length"]),
            kind=DamageKind(row["kind"]),
            expected=row["expected"],
            found=row["found"],
            gravity=Gravity(row["gravity"]),
            offsets_lost=Absent.NOT_APPLICABLE
            if row["first_offset_lost"] is None
            else OffsetRange(row["first_offset_lost"], row["last_offset_lost"]),
        )
        for row in rows or ()
    )


# ---------------------------------------------------------------- segments


_COLUMNS = (
    *("base_offset", "length", "valid_length", "first_offset", "last_offset", "recovered_end_offset"),
    *("batch_count", "record_count", "recovered_batch_count", "recovered_record_count", "magics", "max_timestamp_ms"),
    *("is_thinned", "thinned_below", "longest_batch", "changed", "mtime_ns"),
)
"""Columns that are a field of a segment, under the same name."""


def segment_row(segment: Segment, place: Mapping[str, Any], *, is_deleted: bool, scanned_ns: int) -> Row:
    """Return a segment as a row of plain values; digests and lineage have tables of their own.

    Args:
        place: the columns that say where it is.
        is_deleted: whether its file carries `.deleted`.
        scanned_ns: when it was read, in ns since 1970.
    """
    columns = {name: known(getattr(segment, name)) for name in _COLUMNS}
    columns["magics"] = sorted(segment.magics)
    damage = damage_rows(segment.path, segment.damage)
    return {
        **place,
        "path": segment.path,
        "is_deleted": is_deleted,
        **columns,
        "scanned_ns": scanned_ns,
        "damage": damage,
    }


def digest_lists(digests: NDArray[np.void]) -> list[list[int]]:
    """Return the digests as numbers, the 128 bits as two signed words.

    Args:
        digests: one a bucket, as `digest_batches` gives them.
    """
    signed = digests.astype(_SIGNED_DIGEST)
    return [list(row) for row in zip(*(signed[name].tolist() for name in _DIGEST_COLUMNS), strict=True)]


_SIGNED_DIGEST = np.dtype([(name, "<i8") for name in _DIGEST_COLUMNS])


def digests_of(rows: Sequence[Sequence[int]]) -> Any:
    """Return the digests that `digest_lists` made lists of.

    Args:
        rows: bucket, the two signed words, batches and position of each.
    """
    return np.frombuffer(array("q", chain.from_iterable(rows)), dtype=DIGEST_DTYPE)


def segment_of(
    row: Mapping[str, Any],
    digests: Sequence[Sequence[int]],
    epochs: Iterable[Sequence[int]],
    *,
    batches: BatchTable | Absent = Absent.NOT_WRITTEN,
    batches_from: int = 0,
    unread_below: int = 0,
    place: Mapping[str, Any] | None = None,
    no_timestamp: Absent = Absent.NOT_APPLICABLE,
) -> Segment:
    """Return the segment that a row, its digests and its lineage describe, with the batches that are known of it.

    Args:
        row: as `segment_row` gave it.
        digests: as `digest_lists` gave them.
        epochs: leader epoch and start offset of each entry of its lineage.
        batches: those that were taken along; `NOT_WRITTEN` where none were kept.
        batches_from: the offset from which on the batches are known.
        unread_below: the offset below which nothing was read; 0 where all was.
        place: path, base offset, length and time of change, where the row itself does not have them.
        no_timestamp: says why a segment has no highest timestamp.

    Raises:
        KeyError: a column is missing.
    """
    place = row if place is None else place
    return Segment(
        path=place["path"],
        base_offset=place["base_offset"],
        length=place["length"],
        valid_length=row["valid_length"],
        recovered_end_offset=known_or(row["recovered_end_offset"], Absent.NOT_APPLICABLE),
        first_offset=known_or(row["first_offset"], Absent.NOT_APPLICABLE),
        last_offset=known_or(row["last_offset"], Absent.NOT_APPLICABLE),
        batch_count=row["batch_count"],
        record_count=row["record_count"],
        epochs=tuple([EpochEntry(epoch, start) for epoch, start in epochs]),
        magics=frozenset(row["magics"] or ()),
        max_timestamp_ms=known_or(row["max_timestamp_ms"], no_timestamp),
        digests=digests_of(digests),
        batches=batches,
        damage=damage_of(row["damage"]) if row["damage"] else (),
        changed=bool(row["changed"]),
        mtime_ns=place["mtime_ns"],
        recovered_batch_count=row["recovered_batch_count"],
        recovered_record_count=row["recovered_record_count"],
        is_thinned=bool(row["is_thinned"]),
        thinned_below=known_or(row.get("thinned_below"), Absent.UNKNOWN),
        longest_batch=known_or(row.get("longest_batch"), Absent.UNKNOWN),
        batches_from=batches_from,
        unread_below=unread_below,
    )
