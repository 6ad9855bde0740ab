"""The keys of a compacted log: how many records later ones supersede, above the cleaner's point and below it, and the delete horizons of its tombstones (KIP-534)."""

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from kforensics.damage import Absent, Damage
from kforensics.evidence.coordinators.replica_log import list_log
from kforensics.evidence.discovery.partition_dirs import PartitionPlace, checkpoint_value
from kforensics.evidence.model import CheckpointValue, Citation
from kforensics.formats.log.batch_table import CONTROL_BIT, DELETE_HORIZON_BIT
from kforensics.formats.messages.control import ControlType
from kforensics.formats.segment.walk import iter_record_chunks
from kforensics.reconcile.logs.loaded_log import Marker, Outcomes
from kforensics.units import OffsetRange, TopicPartition
from kforensics.words import counted, form, listed, utc_words

if TYPE_CHECKING:
    from kforensics.formats.columns.record_stream import RecordChunk

_LONGEST = 256 << 20
"""Bytes of a log of which the keys are counted."""

_MOST_KEYS = 1 << 18
"""Keys that are held: of more a half is left out, again and again, and each that is left counts for those beside it."""


@dataclass(slots=True, kw_only=True)
class CompactedLog:
    """The records with a key of one log that is compacted, those of aborted transactions left out."""

    partition: TopicPartition
    broker_id: int | Absent
    citation: Citation
    cleaner_point: int
    """Below it a cleaner has been over the log; 0 where no checkpoint names it."""
    records: int = 0
    superseded: int = 0
    """Those that a later record of their key follows."""
    superseded_below: int = 0
    """Those of them that are followed below the cleaner's point already, where a cleaner leaves one record of a key."""
    twice: OffsetRange | None = None
    """The first two offsets of such a key."""
    is_estimate: bool = False
    """Whether the superseded ones are counted by a sample of the keys."""
    is_at_least: bool = False
    """Whether damage hides records."""
    tombstones: int = 0
    due: int = 0
    """Tombstones whose delete horizon had passed when the log was written last: the next cleaning removes them."""
    kept: int = 0
    """Those whose delete horizon had not passed."""
    kept_until_ms: int | Absent = Absent.NOT_APPLICABLE
    """The last of these horizons."""
    written_ms: int = -1
    """The largest timestamp of the log, which is what delete horizons are held against."""

    def superseded_words(self) -> str:
        """Return how many records are superseded, in words."""
        hedge = "at least " if self.is_at_least else "about " if self.is_estimate else ""
        return f"{hedge}{self.superseded:,}"

    def tombstone_words(self) -> str:
        """Return what becomes of the tombstones, in a clause; empty where there is none."""
        if not self.tombstones:
            return ""
        parts = []
        if self.due:
            parts.append(f"{self.due:,} past {form(self.due, 'its', 'their')} delete horizon")
        if self.kept and isinstance(self.kept_until_ms, int):
            until = utc_words(self.kept_until_ms)
            parts.append(f"{self.kept:,} before {form(self.kept, 'it', 'theirs')}, {until} at the latest")
        if rest := self.tombstones - self.due - self.kept:
            parts.append(f"{rest:,} without one")
        return f"{counted(self.tombstones, 'is a tombstone', 'are tombstones')} ({listed(parts)})"


def keys_of_log(place: PartitionPlace) -> CompactedLog | None:
    """Count the records of a log by their keys, in bounded memory; none where it is too long, or its bytes are not here."""
    if not place.state.store.holds_bytes:
        return None
    log = list_log(place)
    try:
        length = sum((place.state.root / path).stat().st_size for _, path in log.segments)
    except OSError:  # a broker deleted it, or it can't be read
        return None
    if length > _LONGEST:
        return None
    point = checkpoint_value(place.state, "cleaner_point", place.topic_partition)
    found = CompactedLog(
        partition=place.topic_partition,
        broker_id=place.state.broker_id,
        citation=Citation(input=place.state.input, path=place.path),
        cleaner_point=point.value if isinstance(point, CheckpointValue) else 0,
    )
    outcomes = Outcomes()
    for part in log.batches(log.segments):
        if len(part.rows):
            found.written_ms = max(found.written_ms, int(part.rows["max_timestamp"].max()))
        for row in part.rows[(part.rows["magic"] == 2) & ((part.rows["attributes"] & CONTROL_BIT) != 0)]:
            kind = part.control(row).type
            if kind in {ControlType.COMMIT, ControlType.ABORT}:
                outcomes.add(Marker(int(row["producer_id"]), int(row["base_offset"]), kind is ControlType.ABORT))
    seen = _Seen(found)
    for _, file in log.files(log.segments):
        for chunk in iter_record_chunks(file):
            if not isinstance(chunk, Damage):
                seen.add(chunk, outcomes)
    found.is_at_least = bool(log.problems)
    return found if found.records else None


class _Seen:
    """The last offset of each key of a log, or of a sample of its keys."""

    def __init__(self, found: CompactedLog) -> None:
        self._found = found
        self._offsets: dict[int, int] = {}
        self._weight = 1

    def add(self, chunk: "RecordChunk", outcomes: Outcomes) -> None:
        found, batches = self._found, chunk.batches
        is_v2 = batches["magic"] == 2
        is_left_out = is_v2 & ((batches["attributes"] & CONTROL_BIT) != 0) | outcomes.are_aborted(batches)
        wanted = (chunk.key_length >= 0) & ~is_left_out[chunk.rows]
        found.records += int(wanted.sum())
        are_tombstones = wanted & (chunk.value_length < 0)
        found.tombstones += int(are_tombstones.sum())
        has_horizon = is_v2 & ((batches["attributes"] & DELETE_HORIZON_BIT) != 0)
        of_tombstones = chunk.rows[are_tombstones & has_horizon[chunk.rows]]
        horizons = batches["base_timestamp"][of_tombstones]
        kept = horizons[horizons >= found.written_ms]
        found.due += len(horizons) - len(kept)
        found.kept += len(kept)
        if len(kept):
            latest = found.kept_until_ms if isinstance(found.kept_until_ms, int) else -1
            found.kept_until_ms = max(latest, int(kept.max()))
        columns = (chunk.offset[wanted], chunk.key_position[wanted], chunk.key_length[wanted])
        for offset, at, length in zip(*(column.tolist() for column in columns), strict=True):
            self._add(offset, chunk.view[at : at + length])

    def _add(self, offset: int, key: memoryview) -> None:
        number = int.from_bytes(blake2b(key, digest_size=8).digest())
        if number & (self._weight - 1):
            return
        found = self._found
        earlier = self._offsets.get(number)
        self._offsets[number] = offset
        if earlier is not None:
            found.superseded += self._weight
            if offset < found.cleaner_point:
                found.superseded_below += self._weight
                found.twice = found.twice or OffsetRange(earlier, offset)
        elif len(self._offsets) > _MOST_KEYS:
            self._weight *= 2
            found.is_estimate = True
            self._offsets = {one: last for one, last in self._offsets.items() if not one & (self._weight - 1)}
