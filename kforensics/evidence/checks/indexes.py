"""Offset and time indexes against their segment, by what every version's entries have in common.

An entry's offset is the first of an append up to 1.1, the last of the whole append from 2.0 and the last of its batch
from 4.1: it need not be an
offset of the log. Its position is a batch's start, that batch begins at or below the offset, and the next entry's
batch begins above it.
A time entry's offset lies in a batch whose largest timestamp is the entry's, and no batch before it has a larger one.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Damage, DamageKind, Gravity, Span
from kforensics.evidence.checks.context import mismatch
from kforensics.evidence.checks.segment_scan import NO_BATCH, UNREADABLE, SegmentScan
from kforensics.formats.index import OFFSET_ENTRY_LENGTH, TIME_ENTRY_LENGTH, SparseIndex, entry_span
from kforensics.formats.primitives.text_lines import DamageList


def check_offset_index(
    index: SparseIndex, scan: SegmentScan, base_offset: int, *, is_recovered: bool
) -> tuple[Damage, ...]:
    """Return the damage of an offset index, read alone and against its segment."""
    offsets = index.entries["relative_offset"].astype(np.int64) + base_offset
    positions = index.entries["position"].astype(np.int64)
    found = scan.index_base_offsets
    if len(found) != len(offsets):  # the index changed between two reads of a live directory
        return _graded(index.damage, is_recovered=is_recovered)
    last = base_offset - 1 if scan.claimed_last_offset is None else scan.claimed_last_offset
    is_beyond = (positions >= scan.claimed_end) | (offsets > last)
    known = found > UNREADABLE
    is_wrong = (found == NO_BATCH) & ~is_beyond
    is_wrong |= known & (found > offsets)
    is_wrong[:-1] |= known[1:] & (found[1:] <= offsets[:-1]) & ~is_beyond[:-1]
    is_wrong &= ~_is_damaged(positions, scan)
    inside = DamageList()
    for at in np.flatnonzero(is_wrong & ~is_beyond).tolist():
        if found[at] == NO_BATCH:
            expected = "the position of a batch"
        elif found[at] > offsets[at]:
            expected = f"an offset of {found[at]} or above, where the batch begins"
        else:
            expected = f"an offset below {found[at + 1]}, the batch of the next entry"
        where = f"entry {at}: offset {offsets[at]} at position {positions[at]}"
        inside.add(entry_span(at, OFFSET_ENTRY_LENGTH), DamageKind.INDEX, expected=expected, found=where)
    return (
        *_graded((*index.damage, *inside.as_tuple()), is_recovered=is_recovered),
        *_beyond(
            is_beyond,
            OFFSET_ENTRY_LENGTH,
            f"entries up to offset {last} and position {scan.claimed_end}",
            is_recovered=is_recovered,
        ),
    )


def check_time_index(
    index: SparseIndex, scan: SegmentScan, base_offset: int, *, is_recovered: bool
) -> tuple[Damage, ...]:
    """Return the damage of a time index, read alone and against its segment.

    Args:
        scan: of the segment, with the entries of the index looked up; without, only the index's own damage is returned.
    """
    offsets = index.entries["relative_offset"].astype(np.int64) + base_offset
    times = index.entries["timestamp"].astype(np.int64)
    found, highest = scan.time_found, scan.time_highest
    if len(found) != len(offsets):
        return _graded(index.damage, is_recovered=is_recovered)
    last = base_offset - 1 if scan.claimed_last_offset is None else scan.claimed_last_offset
    is_beyond = offsets > last
    is_wrong = (found != times) & (found != UNREADABLE)
    is_wrong |= (highest > times) & (found > UNREADABLE)
    if scan.damage:
        is_wrong &= found != NO_BATCH  # its batch may be one of the damaged ones
    inside = DamageList()
    for at in np.flatnonzero(is_wrong & ~is_beyond).tolist():
        if found[at] == NO_BATCH:
            expected = "the offset of a batch"
        elif found[at] != times[at]:
            expected = f"timestamp {found[at]}, the largest of the batch there"
        else:
            expected = f"timestamp {highest[at]}, the largest up to there"
        where = f"entry {at}: timestamp {times[at]} at offset {offsets[at]}"
        inside.add(entry_span(at, TIME_ENTRY_LENGTH), DamageKind.INDEX, expected=expected, found=where)
    return (
        *_graded((*index.damage, *inside.as_tuple()), is_recovered=is_recovered),
        *_beyond(is_beyond, TIME_ENTRY_LENGTH, f"entries up to offset {last}", is_recovered=is_recovered),
    )


def padding_damage(tail: Span, *, is_closed: bool, is_recovered: bool) -> tuple[Damage, ...]:
    """Return the damage of preallocated zeros behind the entries: lookups in a closed segment fall into them (KAFKA-10207).

    They are normal on the last segment and, after a crash, on those that recovery resets. A time index that ends in them
    makes its segment one of 1970, which retention deletes.
    """
    if not tail.length or not is_closed or is_recovered:
        return ()
    return (
        mismatch(
            tail,
            kind=DamageKind.ZEROS,
            expected="an index trimmed to its entries, as a segment's is when it is closed",
            found=f"{tail.length} zero bytes",
            gravity=Gravity.DAMAGE,  # no start rebuilds them: retention reads the time 0, and lookups end in them
        ),
    )


def _is_damaged(positions: NDArray[np.int64], scan: SegmentScan) -> NDArray[np.bool_]:
    """Positions in damaged places of the segment, about which an index can't be wrong."""
    inside = np.zeros(len(positions), dtype=bool)
    for place in scan.damage:
        inside |= (positions >= place.span.position) & (positions < place.span.end)
    return inside


def _graded(damage: Iterable[Damage], *, is_recovered: bool) -> tuple[Damage, ...]:
    gravity = Gravity.REBUILDABLE if is_recovered else Gravity.DAMAGE
    return tuple(replace(place, gravity=gravity) for place in damage)


def _beyond(
    is_beyond: NDArray[np.bool_], entry_length: int, expected: str, *, is_recovered: bool
) -> tuple[Damage, ...]:
    places = np.flatnonzero(is_beyond)
    if not len(places):
        return ()
    first, last = int(places[0]), int(places[-1])
    span = Span(first * entry_length, (last - first + 1) * entry_length)
    gravity = Gravity.REBUILDABLE if is_recovered else Gravity.DAMAGE
    return (
        mismatch(
            span,
            kind=DamageKind.INDEX,
            expected=expected,
            found=f"{len(places)} entries behind the log's end",
            gravity=gravity,
        ),
    )
