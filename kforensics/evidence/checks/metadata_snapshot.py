"""`.checkpoint` snapshots of the KRaft log: whole only with a header record first and a footer record last."""

from dataclasses import dataclass, replace
from typing import Any

from kforensics.damage import Damage, DamageKind, Gravity, Span
from kforensics.errors import FormatError
from kforensics.formats.log.batch_table import CONTROL_BIT
from kforensics.formats.log.record_batch import iter_batch_records
from kforensics.formats.segment.walk import Level, walk_segment
from kforensics.source.mapped import EvidenceFile

_LARGEST_CONTROL_BATCH = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataSnapshotScan:
    """The findings of one pass over a snapshot."""

    batch_count: int
    record_count: int
    damage: tuple[Damage, ...]


def scan_metadata_snapshot(file: EvidenceFile, *, level: Level) -> MetadataSnapshotScan:
    """Walk a snapshot of the metadata log once.

    Args:
        file: a `.checkpoint` file, open.
        level: how much of each batch is checked; header and footer are asked for in any case.

    Raises:
        EvidenceUnreadable: a part of the file can't be read.
    """
    first: Any = None
    last: Any = None
    batches = records = 0
    damage: list[Damage] = []
    for window in walk_segment(file, level=level):
        # A node renames a snapshot to its name once it is whole: an unfinished end is no matter of course here.
        damage.extend(replace(place, gravity=Gravity.DAMAGE) for place in window.damage)
        batches += len(window.batches)
        records += window.record_count
        if len(window.batches):
            first = window.batches[0].copy() if first is None else first
            last = window.batches[-1].copy()
    if not damage:
        damage += _end_damage(file, first, "snapshot-header", "first")
        damage += _end_damage(file, last, "snapshot-footer", "last")
    return MetadataSnapshotScan(batch_count=batches, record_count=records, damage=tuple(damage))


def _end_damage(file: EvidenceFile, row: Any, wanted: str, place: str) -> list[Damage]:
    span = Span(0, file.size) if row is None else Span(int(row["position"]), int(row["length"]))
    found = "no batch" if row is None else _type_of(file, row, span)
    if found == wanted:
        return []
    return [Damage(span=span, kind=DamageKind.TORN, expected=f"a {wanted} record as the {place} batch", found=found)]


def _type_of(file: EvidenceFile, row: Any, span: Span) -> str:
    if not int(row["attributes"]) & CONTROL_BIT:
        return "a batch of metadata records"
    from kforensics.formats.messages.control import parse_control_record  # noqa: PLC0415 - its message tables take a while to load

    try:
        for record in iter_batch_records(
            file.read(span.position, min(span.length, _LARGEST_CONTROL_BATCH)), span.position
        ):
            return parse_control_record(record.key, record.value).type
    except FormatError:
        pass
    return "a control batch that does not decode"
