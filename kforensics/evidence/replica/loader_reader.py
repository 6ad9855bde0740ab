"""The files of a partition directory as Kafka's loader reads them: batches by their lengths alone, text files line by line.

The readers of `formats` are made for evidence: they go on behind damage and say what it is. These stop where Kafka stops, and say what Kafka throws.
"""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np

from kforensics.errors import EvidenceUnreadable, FormatError, NewerThanKnown
from kforensics.evidence.replica.captured_loading import captured_content
from kforensics.evidence.replica.loader_batches import read_batches
from kforensics.evidence.replica.loader_scan import ScannedParts, ScansAhead, scan_batches
from kforensics.evidence.replica.loader_text import read_epoch_file, read_topic_id
from kforensics.evidence.replica.loader_values import (
    AbortedEntry,
    Content,
    LoadFailure,
    Need,
    ProducerState,
)
from kforensics.formats.index.offset import OFFSET_INDEX_LAYOUT
from kforensics.formats.index.producer_snapshot import parse_producer_snapshot
from kforensics.formats.index.time import read_last_time_entry, read_time_ends
from kforensics.formats.index.txn import parse_txn_index
from kforensics.source.capture import CapturePath
from kforensics.source.foreign import ForeignPath
from kforensics.source.mapped import open_evidence, read_evidence

SMALL_FILE_LIMIT = 64 << 20
REMEMBERED_FILES, REMEMBERED_LENGTH = 1_024, 256
"""Small files of each kind that are decoded once, and the most bytes of one of them."""


def read_needed(folder: Path, need: Need, scans: ScansAhead | None = None) -> object:
    """Return the content that a rule asks for.

    Args:
        need: the file and what of it.
        scans: segments that are scanned by several processes; None to scan each alone.

    Returns:
        A value of the type that `Content` names.

    Raises:
        EvidenceError: the file can't be read.
        MissingBytes: it is in a capture, which does not hold what is asked for.
    """
    path: Path | str = f"{folder}/{need.file}"
    if isinstance(folder, ForeignPath):
        path = folder / need.file
        if isinstance(path, CapturePath) and (kept := captured_content(path, need)) is not None:
            return kept
    if (decode := _SMALL.get(need.content)) is not None:
        return decode(read_evidence(path, SMALL_FILE_LIMIT))
    with open_evidence(path) as file:
        match need.content:
            case Content.BATCHES:
                return read_batches(file, need.position, checked=False)
            case Content.CHECKED_BATCHES:
                parts: ScannedParts = {}
                if scans is not None and not need.position and file.is_of_the_system:
                    parts = scans.take(str(path), file.size)
                return scan_batches(file, need.position, parts)
            case Content.OFFSET_INDEX:
                data = file.read(0, file.size - file.size % OFFSET_INDEX_LAYOUT.length)
                return _OffsetEntries(data)
            case Content.TIME_INDEX:
                if (ends := read_time_ends(file.read, file.size)) is None:
                    raise EvidenceUnreadable(str(path), "it became shorter while it was read")
                return ends
            case Content.LAST_TIMESTAMP:
                last = read_last_time_entry(file.read, file.size)
                return -1 if last is None else last.timestamp
            case _:
                assert need.content is Content.CHANGED
                return file.mtime_ns // 1_000_000


class _OffsetEntries:
    """The entries of an offset index, as they lie in the file: an active one has more than a million."""

    def __init__(self, data: bytes) -> None:
        self._words = np.frombuffer(data, dtype=">i4")

    def __len__(self) -> int:
        return len(self._words) // 2

    def __getitem__(self, at: int) -> tuple[int, int]:
        return int(self._words[2 * at]), int(self._words[2 * at + 1])


def _snapshot(data: bytes) -> tuple[ProducerState, ...] | LoadFailure:
    try:
        parsed = parse_producer_snapshot(data)
    except FormatError as error:
        newer = error.problem if isinstance(error, NewerThanKnown) else ""
        return LoadFailure("CorruptSnapshotException", str(error), newer=newer)
    if parsed.damage:
        return LoadFailure("CorruptSnapshotException", parsed.damage[0].expected)
    return tuple(
        ProducerState(
            one.producer_id,
            one.producer_epoch,
            one.coordinator_epoch,
            one.timestamp,
            max(one.current_transaction_first_offset, -1),
            one.last_offset,
        )
        for one in parsed.entries
    )


def _aborted(data: bytes) -> tuple[AbortedEntry, ...]:
    """Version and last offset of each whole entry."""
    return tuple(AbortedEntry(one.version, one.last_offset) for one in parse_txn_index(data).entries)


def _remembered(decode: Callable[[bytes], object]) -> Callable[[bytes], object]:
    """Return a decoder that decodes equal bytes of a small file once: many directories have the same ones."""
    known = lru_cache(REMEMBERED_FILES)(decode)
    return lambda data: known(data) if len(data) <= REMEMBERED_LENGTH else decode(data)


_SMALL: dict[Content, Callable[[bytes], object]] = {
    Content.SNAPSHOT: _remembered(_snapshot),
    Content.TXN_INDEX: _aborted,
    Content.EPOCHS: _remembered(read_epoch_file),
    Content.PARTITION_METADATA: _remembered(read_topic_id),
}
