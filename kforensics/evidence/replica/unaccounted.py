"""Offsets that a partition directory refers to and holds no segment for: a log, or a part of it, that is missing.

A broker deletes the indexes of a segment together with it, and lowers checkpoints when it truncates. So an index without its segment, a recovery point or
high watermark above zero without any segment, and a hole between two segments of a log that no cleaner touched show segments that were taken away.

With the segments at the beginning of a log it also deletes what `leader-epoch-checkpoint` says of them, so that no leader epoch there begins below the first
segment: `UnifiedLog.maybeIncrementLogStartOffset` and `LeaderEpochFileCache.truncateFromStart` up to 4.3.1, `clearAndFlushEarliest` up to 2.2. A log in remote
storage (KIP-405) keeps its epochs, and a line in `log-start-offset-checkpoint`, whatever its log start.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.model import CheckpointValue, Replica
from kforensics.source.naming import FileKind, FileName
from kforensics.units import EpochEntry

_NO_EPOCHS_BYTES = len("0\n0\n")
"""What a checkpoint of leader epochs without an entry takes."""

EPOCHS_FILE = FileKind.LEADER_EPOCH_CHECKPOINT.value

INDEX_KINDS = frozenset({FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TXN_INDEX})


class Sign(StrEnum):
    """The sign that a segment is missing."""

    INDEX = "index"
    """An index of that base offset is there."""
    CHECKPOINT = "checkpoint"
    """A recovery point or high watermark above zero, and no segment at all."""
    HOLE = "hole"
    """The segment before ends below the base offset of the one behind it."""
    ABOVE_END = "above-end"
    """A recovery point or high watermark above the log end."""
    REGISTRATION = "registration"
    """The registration that the marker of a clean stop names is above the end of the metadata log."""
    NO_SEGMENT = "no-segment"
    """Files of a metadata log are there that are written with its records, and no segment."""
    EPOCHS = "epochs"
    """The first leader epoch of `leader-epoch-checkpoint` begins below the base offset of the first segment."""


class Unaccounted(NamedTuple):
    """Offsets for which there is no segment."""

    first: int
    last: int | Absent
    """Unknown where nothing says how far the missing segment reached."""
    sign: Sign
    path: str = ""
    """The file that shows it, relative to the input; empty for checkpoints, which the caller knows."""

    @property
    def words(self) -> str:
        """The offsets in words."""
        if isinstance(self.last, Absent):
            return f"offsets from {self.first} on"
        return f"offset {self.first}" if self.first == self.last else f"offsets {self.first} to {self.last}"

    @property
    def are(self) -> str:
        """The verb that follows the words."""
        return "is" if self.first == self.last else "are"


def orphan_indexes(files: Sequence[tuple[FileName, str]]) -> dict[int, str]:
    """Return the indexes in use whose segment is not there under any name, by base offset."""
    segments = {name.base_offset for name, _ in files if name.kind is FileKind.SEGMENT}
    found: dict[int, str] = {}
    for name, path in files:
        base = name.base_offset
        if name.kind in INDEX_KINDS and not name.is_transient and isinstance(base, int) and base not in segments:
            found.setdefault(base, path)
    return found


def lost_start(epochs: Sequence[EpochEntry], files: Iterable[FileName], path: str) -> dict[int, str]:
    """Return the path of `leader-epoch-checkpoint` by the offset where it begins, where that is below every segment of the log; nothing where it is not.

    Args:
        files: names of all files of the partition directory: a segment that waits for its deletion, or for its place in the log after compaction, is not missing.
    """
    own = [name for name in files if name.kind is FileKind.SEGMENT or name.kind in INDEX_KINDS]
    bases = [base for name in own if isinstance(base := name.base_offset, int)]
    is_log = any(name.kind is FileKind.SEGMENT and not name.is_transient for name in own)
    begun = epochs[0].start_offset if epochs else -1
    return {begun: path} if is_log and 0 <= begun < min(bases) else {}


def find_unaccounted(
    segments: Sequence[tuple[int, int, str]],
    orphans: Mapping[int, str],
    *,
    log_start: int | None,
    reach: int | None,
    explained: Collection[int] = (),
    is_whole: bool = False,
    longest_batch: int | None = None,
) -> Iterator[Unaccounted]:
    """Yield what is unaccounted for, by offset.

    Args:
        segments: base offset, log end offset and path of each segment in use, by base offset.
        orphans: files that speak of a segment which is not there, by its base offset: indexes, and the first line of `leader-epoch-checkpoint`.
        reach: the higher of recovery point and high watermark.
        explained: offsets of producer snapshots, which explain a log end above the last batch.
        is_whole: no cleaner touched the log and its batches are sound, so that its segments follow one another.
        longest_batch: the offsets of the longest batch of the log, 0 where it has none: a truncation that ends inside a batch keeps its target as log
            end, and drops that one batch.
    """
    bases = sorted({base for base, _, _ in segments} | set(orphans))
    for base in sorted(orphans):
        if any(start <= base < end for start, end, _ in segments):
            continue  # left behind by a truncation: its offsets are in another segment
        behind = next((other for other in bases if other > base), None)
        if behind is None and reach is not None and reach > base:
            behind = reach
        if behind is not None and log_start is not None and log_start >= behind:
            continue
        last = Absent.UNKNOWN if behind is None else behind - 1
        sign = Sign.EPOCHS if orphans[base].endswith(EPOCHS_FILE) else Sign.INDEX
        yield Unaccounted(first=max(base, log_start or 0), last=last, sign=sign, path=orphans[base])
    if is_whole:
        for (_, end, _), (base, _, path) in pairwise(segments):
            if base > end and not any(end <= orphan < base for orphan in orphans):
                yield Unaccounted(first=end, last=base - 1, sign=Sign.HOLE, path=path)
    if reach is None or (orphans and max(orphans) >= max((base for base, _, _ in segments), default=0)):
        return
    end = max((end for _, end, _ in segments), default=log_start or 0)
    is_in_a_batch = longest_batch is None or reach - end <= longest_batch
    if reach > end and not (segments and reach in explained and is_in_a_batch):
        yield Unaccounted(first=end, last=reach - 1, sign=Sign.ABOVE_END if segments else Sign.CHECKPOINT)


def lost_metadata(end: int, broker_epochs: Iterable[int | Absent]) -> Unaccounted | None:
    """Return the end of a metadata log that is missing: a broker epoch is the offset of the record that registered the broker (KIP-631), and a broker that stopped cleanly had read that record."""
    last = max((epoch for epoch in broker_epochs if isinstance(epoch, int)), default=-1)
    return Unaccounted(first=end, last=last, sign=Sign.REGISTRATION) if last >= end else None


def lost_metadata_log(files: Iterable[tuple[FileName, int, str]]) -> Unaccounted | None:
    """Return a metadata log that is missing as a whole: it has a segment from its first record on, and a storage that was only formatted has a snapshot at 0 alone.

    Args:
        files: name, length and path of each file of its directory.

    Returns:
        None where a segment is there, or the index of one, or nothing shows that there were records.
    """
    snapshot, shown = 0, ""
    for name, length, path in files:
        base = name.base_offset if isinstance(name.base_offset, int) else 0
        if not name.is_transient and (name.kind is FileKind.SEGMENT or name.kind in INDEX_KINDS):
            return None
        if name.kind is FileKind.METADATA_SNAPSHOT and not name.is_transient:
            snapshot = max(snapshot, base)
        is_written = base > 0 or (name.kind is FileKind.LEADER_EPOCH_CHECKPOINT and length > _NO_EPOCHS_BYTES)
        if is_written and not name.is_transient:
            shown = shown or path
    return Unaccounted(first=snapshot, last=Absent.UNKNOWN, sign=Sign.NO_SEGMENT, path=shown) if shown else None


def merged(found: Iterable[Unaccounted]) -> tuple[Unaccounted, ...]:
    """Join ranges of offsets that follow one another into one, shown by the first of their files."""
    out: list[Unaccounted] = []
    for one in found:
        before = out[-1] if out else None
        if before is not None and before.sign is one.sign and before.last == one.first - 1:
            out[-1] = before._replace(last=one.last)
        else:
            out.append(one)
    return tuple(out)


def unaccounted_offsets(replica: Replica) -> tuple[Unaccounted, ...]:
    """Return the offsets of a replica for which there is no segment, none for what is deleted, moved or stray."""
    if not replica.is_live or not replica.is_read_whole:
        return ()
    ends = [
        (one.base_offset, one.base_offset if isinstance(one.last_offset, Absent) else one.last_offset + 1, one.path)
        for one in replica.segments
    ]
    reach = highest(replica.high_watermark, replica.recovery_point)
    has_holes = any(base > end for (_, end, _), (base, _, _) in pairwise(ends))
    if (
        ends
        and not replica.orphan_indexes
        and not has_holes
        and (reach is None or reach <= max(end for _, end, _ in ends))
    ):
        return ()  # so it is of nearly all
    is_cleaned = isinstance(replica.cleaner_point, CheckpointValue) or any(one.is_thinned for one in replica.segments)
    has_checkpoints = isinstance(replica.high_watermark, CheckpointValue) or isinstance(
        replica.recovery_point, CheckpointValue
    )
    is_sound = not any(one.damage or one.changed for one in replica.segments)
    return merged(
        find_unaccounted(
            ends,
            dict(replica.orphan_indexes),
            log_start=value_of(replica.log_start),
            reach=reach,
            explained=replica.producer_snapshots,
            is_whole=is_sound and has_checkpoints and not is_cleaned,
            longest_batch=_longest_batch(replica),
        )
    )


def missing_offsets(replica: Replica) -> tuple[Unaccounted, ...]:
    """Return the offsets that a replica should hold and does not, as far as its own files show it.

    Numbers above a log end are ordinary where a broker ran while it was copied, or lost power: they count after a clean stop.
    """
    return tuple(
        one for one in unaccounted_offsets(replica) if one.sign is not Sign.ABOVE_END or replica.clean_shutdown
    )


def _longest_batch(replica: Replica) -> int | None:
    """Return the offsets of the longest batch, none where that of a segment is not known."""
    longest = 0
    for one in replica.segments:
        if isinstance(one.longest_batch, Absent):
            if one.batch_count:
                return None
        else:
            longest = max(longest, one.longest_batch)
    return longest


def is_empty(replica: Replica) -> bool:
    """Whether no segment of a replica holds a batch."""
    return not any(one.batch_count for one in replica.segments)


def value_of(value: CheckpointValue | Absent) -> int | None:
    """Return the number of a checkpoint, none where there is none."""
    return None if isinstance(value, Absent) else value.value


def highest(*values: CheckpointValue | Absent) -> int | None:
    """Return the highest number of some checkpoints, where there is any."""
    return max((one.value for one in values if not isinstance(one, Absent)), default=None)
