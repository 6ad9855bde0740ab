"""The records that a load discards: read from the bytes that go, and looked for on the other replicas among the inputs."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from kforensics.commands.loading import DirectoryOnDisk
from kforensics.damage import Absent
from kforensics.errors import EvidenceError, MissingBytes
from kforensics.evidence.discovery.inputs import FoundInput, Inputs
from kforensics.evidence.discovery.partition_dirs import checkpoint_value, read_log_dir_state
from kforensics.evidence.model import Problem
from kforensics.evidence.replica.captured_loading import lacks_rows, rows_at_hand, rows_between
from kforensics.formats.log.batch_table import CONTROL_BIT, BatchTable
from kforensics.protocol.loading.disk import DELETED, LARGEST_INT64, LOG, FileAction, LoadOutcome
from kforensics.reconcile.logs.predicted_load import DiscardHolder, LostPiece, LostRecords
from kforensics.source.naming import DirectoryState, PartitionDirectoryName, parse_partition_directory
from kforensics.source.walk import join


def lost_pieces(
    outcome: LoadOutcome, disk: DirectoryOnDisk, *, log_start_offset: int | Absent, log_end_offset: int | Absent
) -> tuple[LostPiece, ...]:
    """Return the bytes of its log files that the broker will not read again once a load has ended."""
    first = 0 if isinstance(log_start_offset, Absent) else log_start_offset
    pieces = []
    for change in outcome.changes:
        if not change.name.endswith(LOG):
            continue
        on_disk = disk.origins.get(change.name, change.name)
        is_removed = change.action is FileAction.DELETE or (
            change.action is FileAction.RENAME and str(change.to_name).endswith(DELETED)
        )
        if is_removed and change.rule == "segment-split":
            # Its records lie in the segments that replace it, but for what recovery truncates of them.
            if not isinstance(outcome.state, Absent):
                end = max(first, outcome.state.log_end_offset)
                pieces.append(LostPiece(on_disk, 0, disk.files[change.name], end))
        elif is_removed and change.rule != "replaced-by-swap":
            pieces.append(LostPiece(on_disk, 0, disk.files[change.name], first))
        elif change.action is FileAction.TRUNCATE and isinstance(change.to_length, int):
            pieces.append(LostPiece(on_disk, change.to_length, disk.files[change.name], first))
    state = outcome.state
    if (
        not isinstance(state, Absent)
        and not isinstance(log_end_offset, Absent)
        and state.log_end_offset < log_end_offset
    ):
        # What lies above the new end in segments that are kept is not read either.
        pieces += [
            LostPiece(disk.origins.get(before, before), 0, outcome.tree[name], max(first, state.log_end_offset))
            for name, before in outcome.origins.items()
            if name.endswith(LOG)
        ]
    return tuple(sorted(pieces))


class _Batch(NamedTuple):
    base_offset: int
    last_offset: int
    crc: int
    record_count: int
    is_sound: bool
    """Whether its checksum holds; what fails it is no copy of the records."""


Discarded: TypeAlias = Mapping[tuple[int, str], Sequence[LostPiece]]
"""What starts discard, by input and directory."""


def find_lost_records(
    inputs: Inputs, index: int, path: str, lost: LostRecords, problems: list[Problem], discarded: Discarded
) -> LostRecords:
    """Count the records in the bytes that go in the starts that are predicted, and those of them that other replicas hold and keep."""
    one = inputs.found[index]
    found: dict[tuple[int, int], _Batch] = {}
    for piece in lost.pieces:
        try:
            found |= _batches_in(one, path, piece)
        except EvidenceError as error:
            problems.append(Problem(input=index, path=join(path, piece.file), message=error.problem))
    if not found:
        return lost
    batches = list(found.values())
    records = sum(batch.record_count for batch in batches)
    watermark = _high_watermark(one, index, path)
    certain = sum(batch.record_count for batch in batches if batch.last_offset < watermark)
    held: set[tuple[int, int]] = set()
    holders = []
    lowest = min(batch.base_offset for batch in batches)
    for other_index, other in enumerate(inputs.found):
        if other_index == index:
            continue
        gone = {folder: pieces for (number, folder), pieces in discarded.items() if number == other_index}
        there, lacking = _held(other, path.rpartition("/")[2], lowest, gone)
        problems += [Problem(input=other_index, path=missing, message=words) for missing, words in lacking]
        here = found.keys() & there
        if here:
            held |= here
            count = sum(found[key].record_count for key in here)
            holders.append(DiscardHolder(other_index, other.described.broker_id, count))
    return replace(
        lost,
        records=records,
        certain=certain,
        possible=records - certain,
        held_by=tuple(holders),
        only_here=sum(batch.record_count for key, batch in found.items() if key not in held),
    )


def _batches_in(one: FoundInput, path: str, piece: LostPiece) -> dict[tuple[int, int], _Batch]:
    """Return the batches in a piece of a directory that goes, by base offset and checksum."""
    return {
        (batch.base_offset, batch.crc): batch
        for batch in _batches(one, join(path, piece.file), piece.position, piece.end)
        if batch.last_offset >= piece.first_offset
    }


def _batches(one: FoundInput, path: str, position: int, end: int = LARGEST_INT64) -> Iterator[_Batch]:
    """Yield the batches of a log file between two positions, transaction markers apart; also those whose checksum fails, since a sound copy has the same."""
    with one.open(path) as file:
        if position >= file.size:
            return
        for rows in rows_between(file, position, end):
            yield from _records_in(rows)


def _records_in(rows: BatchTable) -> Iterator[_Batch]:
    for row in rows[(rows["attributes"] & CONTROL_BIT) == 0]:
        base, last, count = int(row["base_offset"]), int(row["last_offset"]), int(row["count"])
        if row["crc_valid"] or (0 <= base <= last and 0 < count <= last - base + 1):
            yield _Batch(base, last, int(row["crc"]), count, bool(row["crc_valid"]))


def _held(
    other: FoundInput, name: str, lowest: int, gone: Mapping[str, Sequence[LostPiece]]
) -> tuple[set[tuple[int, int]], list[tuple[str, str]]]:
    """Return the base offset and checksum of every sound batch that another input holds of a partition and keeps, and the segments of captures that may hold more at or above an offset."""
    parsed = parse_partition_directory(name)
    keys: set[tuple[int, int]] = set()
    lacking: list[tuple[str, str]] = []
    if not isinstance(parsed, PartitionDirectoryName):
        return keys, lacking
    for log_dir in other.log_dir_paths:
        for entry in other.listings.of(log_dir).entries:
            there = parse_partition_directory(entry.name) if entry.is_directory else None
            if (
                there is None
                or there.topic_partition != parsed.topic_partition
                or there.state is not DirectoryState.LIVE
            ):
                continue
            folder = join(log_dir, entry.name)
            here: set[tuple[int, int]] = set()
            for file in other.listings.of(folder).entries:
                if not file.name.endswith(LOG):
                    continue
                path = join(folder, file.name)
                try:
                    here |= {(batch.base_offset, batch.crc) for batch in _batches(other, path, 0) if batch.is_sound}
                except MissingBytes as error:
                    with other.open(path) as segment:
                        rows = _records_in(rows_at_hand(segment))
                        here |= {(batch.base_offset, batch.crc) for batch in rows if batch.is_sound}
                        if lacks_rows(segment, lowest):
                            lacking.append((path, error.problem))
                except EvidenceError:
                    continue  # what can't be read there is not counted as held
            for piece in gone.get(folder, ()) if here else ():
                with suppress(EvidenceError):
                    here -= _batches_in(other, folder, piece).keys()
            keys |= here
    return keys, lacking


def _high_watermark(one: FoundInput, index: int, path: str) -> int:
    """Return the high watermark that the broker checkpointed of a log, 0 where there is none, or it may be that of another topic of the same name."""
    folder, _, name = path.rpartition("/")
    parsed = parse_partition_directory(name)
    if not isinstance(parsed, PartitionDirectoryName):
        return 0
    names = [entry.name for entry in one.listings.of(folder).entries]
    others = [
        there.state in _IN_USE
        for other in names
        if other != name
        and isinstance(there := parse_partition_directory(other), PartitionDirectoryName)
        and there.topic_partition == parsed.topic_partition
    ]
    # The line is of the log in use once the file was written again, as a clean stop does.
    is_its_own = parsed.state in _IN_USE and ".kafka_cleanshutdown" in names
    if others and not (is_its_own and not any(others)):
        return 0
    state, _ = read_log_dir_state(
        one.listings, input_index=index, log_dir=folder, broker_id=one.described.broker_id, clean_shutdown=False
    )
    value = checkpoint_value(state, "high_watermark", parsed.topic_partition)
    return 0 if isinstance(value, Absent) else value.value


_IN_USE = frozenset({DirectoryState.LIVE, DirectoryState.FUTURE})
