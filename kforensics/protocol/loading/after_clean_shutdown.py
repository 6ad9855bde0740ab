"""What loading makes of a log that was closed cleanly and lies there as its broker left it: as `partition` has it, without playing each step.

Most logs are such. Whatever is unusual by its name, its length or its content is left to the steps, which are the rule: `partition` asks here first.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, cast

from kforensics.damage import Absent
from kforensics.evidence.replica.loader_values import (
    Batches,
    Content,
    LoadFailure,
    Need,
    ProducerState,
    TopicIdFile,
)
from kforensics.formats.index.sparse import OFFSET_ENTRY_LENGTH, TIME_ENTRY_LENGTH, TXN_ENTRY_LENGTH
from kforensics.formats.log.batch_table import HEADER_UP_TO_MAGIC, NEWEST_MAGIC
from kforensics.protocol.epochs import Epochs
from kforensics.protocol.loading.disk import (
    EPOCH_FILE,
    INDEX,
    LARGEST_INT64,
    LOG,
    METADATA_FILE,
    SNAPSHOT,
    TIME_INDEX,
    TXN_INDEX,
    FileAction,
    FileChange,
    LoadedDirectory,
    LoadedState,
    LoadOutcome,
    LoadSettings,
    padded,
    partition_of_directory,
)
from kforensics.protocol.loading.indexes import (
    EXTENDED,
    WARM_LENGTH,
    lower_bound,
)
from kforensics.protocol.loading.log_state import TRIMMED, epoch_file_length, is_expired, trim_epochs
from kforensics.protocol.loading.versions import LoadingRules
from kforensics.protocol.recovery import log_start_at_load, recovery_point_at_load

_SHAPE = re.compile(
    r"(?:([0-9]{20})\.index/\1\.log/(?:\1\.snapshot/)?\1\.timeindex/(?:\1\.txnindex/)?)+(?:[0-9]{20}\.snapshot/)?"
    rf"{EPOCH_FILE}(?:/{re.escape(METADATA_FILE)})?"
)
"""The names in the directory, sorted: of each segment its log and both indexes, and behind the last one the snapshot at the log end."""
_EPOCHS = Need(EPOCH_FILE, Content.EPOCHS)
_TOPIC_ID = Need(METADATA_FILE, Content.PARTITION_METADATA)


def load_after_clean_shutdown(
    directory: LoadedDirectory,
    *,
    recovery_point: int,
    log_start_offset: int,
    settings: LoadSettings,
    rules: LoadingRules,
) -> LoadOutcome | None:
    """Load a log whose log directory holds the marker of a clean shutdown, where only derived files change.

    Contents are asked for in the order of the steps, and none that these would not ask for.

    Args:
        directory: its files, and what has been read of them.
        recovery_point: of its checkpoint; 0 where it has none.
        log_start_offset: of its checkpoint; 0 where it has none.

    Returns:
        What comes of it; None where the steps have to be played.
    """
    files, contents = directory.files, directory.contents
    segments = _segments(directory, rules)
    extended = None if segments is None else _extended(segments, files, settings)
    if segments is None or extended is None:
        return None
    read = contents.get(_EPOCHS)
    if read is None or isinstance(read, LoadFailure) or not _are_rising(cast("Epochs", read)):
        return None
    end = _log_end(directory, segments)
    if end is None or end < max(log_start_offset, segments.bases[-1]):
        return None
    start = log_start_at_load(segments.bases[0], log_start_offset)
    least = start if rules.trims_epochs_to_first_segment else log_start_offset
    epochs, is_written = trim_epochs(tuple(cast("Epochs", read)), least, end, rules.epochs)
    producers = _count_producers(directory, segments, start, end, settings)
    if producers is None or not _is_topic_id_sound(directory, rules):
        return None
    tree = {name: files[name] for name in sorted(files)}
    changes = []
    for name, length in extended:
        if length != tree[name]:
            changes.append(FileChange(name, FileAction.EXTEND, Absent.NOT_APPLICABLE, length, EXTENDED))
            tree[name] = length
    origins = dict(zip(files, files, strict=True))
    if is_written:
        tree[EPOCH_FILE] = length = epoch_file_length(epochs)
        changes.append(FileChange(EPOCH_FILE, FileAction.REBUILD, Absent.NOT_APPLICABLE, length, TRIMMED))
        del origins[EPOCH_FILE]
    return LoadOutcome(
        state=LoadedState(
            log_start_offset=start,
            log_end_offset=end,
            recovery_point=recovery_point_at_load(recovery_point, end, clean_shutdown=True),
            last_stable_offset=end,
            epochs=epochs,
            producer_count=producers,
        ),
        failure=Absent.NOT_APPLICABLE,
        tree=tree,
        changes=tuple(changes),
        scanned=(),
        deleted_segments=(),
        written={_EPOCHS: epochs} if is_written else {},
        origins=origins,
    )


class _Segments(NamedTuple):
    """The files of a log that has no others, by the segments that they belong to."""

    bases: list[int]
    """The base offsets of the segments, rising."""
    snapshots: list[int]
    """The offsets of producer snapshots, rising."""
    stem: str
    """What the names of the last segment's files begin with."""


def _segments(directory: LoadedDirectory, rules: LoadingRules) -> _Segments | None:
    """Return the segments of a log where each has both indexes, and nothing else lies there."""
    files = directory.files
    if not _is_modelled(rules) or directory.folders or directory.unreadable:
        return None
    if directory.name.endswith("-delete") or partition_of_directory(directory.name, rules) is None:
        return None
    names = sorted(files)
    joined = "/".join(names)
    if _SHAPE.fullmatch(joined) is None:
        return None
    if TXN_INDEX in joined and any(name.endswith(TXN_INDEX) and files[name] >= TXN_ENTRY_LENGTH for name in names):
        return None
    stems = [name.removesuffix(LOG) for name in names if name.endswith(LOG)]
    bases = [int(stem) for stem in stems]
    snapshots = [int(name.removesuffix(SNAPSHOT)) for name in names if name.endswith(SNAPSHOT)]
    if max([bases[-1], *snapshots]) > LARGEST_INT64:
        return None
    return _Segments(bases, snapshots, stems[-1])


def _is_modelled(rules: LoadingRules) -> bool:
    """Whether nothing in what follows depends on the version but what is asked there (2.8)."""
    return (
        rules.knows_magic_2
        and rules.removes_stray_snapshots
        and rules.has_time_indexes
        and not rules.opens_indexes_at_once
        and not rules.finds_messages_cut_short
        and not rules.evicts_producers_below_start
    )


def _extended(segments: _Segments, files: Mapping[str, int], settings: LoadSettings) -> list[tuple[str, int]] | None:
    """Return the lengths that the indexes of the last segment get; none where one is longer, or gets none."""
    out = []
    for ending, entry_length in ((INDEX, OFFSET_ENTRY_LENGTH), (TIME_INDEX, TIME_ENTRY_LENGTH)):
        name, length = segments.stem + ending, settings.index_length // entry_length * entry_length
        if not length or files[name] > length:
            return None
        out.append((name, length))
    return out


def _are_rising(epochs: Epochs) -> bool:
    """Whether no entry is removed, or refused, when they are entered one by one."""
    return all(one.leader_epoch >= 0 and one.start_offset >= 0 for one in epochs) and all(
        one.leader_epoch < after.leader_epoch and one.start_offset < after.start_offset
        for one, after in pairwise(epochs)
    )


def _log_end(directory: LoadedDirectory, segments: _Segments) -> int | None:
    """Return the offset behind the last batch, to which the last entry of the offset index leads; none where the file does not end there."""
    contents, log, index = directory.contents, segments.stem + LOG, segments.stem + INDEX
    base, length, count = segments.bases[-1], directory.files[log], directory.files[index] // OFFSET_ENTRY_LENGTH
    if not length:
        return None if count else base
    offset, start = base, 0
    if count:
        entries = cast("Sequence[tuple[int, int]] | None", contents.get(Need(index, Content.OFFSET_INDEX)))
        if entries is None or len(entries) < count:
            return None
        offset += entries[count - 1][0]
        slot = lower_bound(lambda at: base + entries[at][0], count, offset, WARM_LENGTH // OFFSET_ENTRY_LENGTH)
        start = entries[slot][1] if slot >= 0 else 0
    if not 0 <= start < length - HEADER_UP_TO_MAGIC:
        return None
    found = cast("Batches | None", contents.get(Need(log, Content.BATCHES, start)))
    if found is None or found.end != length or not found.batches:
        return None
    if any(one.magic != NEWEST_MAGIC or one.header_failure is not Absent.NOT_APPLICABLE for one in found.batches):
        return None
    last = found.batches[-1].last_offset
    return last + 1 if last >= offset else None


def _count_producers(
    directory: LoadedDirectory, segments: _Segments, start: int, end: int, settings: LoadSettings
) -> int | None:
    """Return the number of producers in the snapshot at the log end; none where there is none, or a transaction is open."""
    snapshots = segments.snapshots
    if not snapshots:
        return None if end else 0
    if snapshots[-1] != end or snapshots[0] <= start:
        return None
    read = directory.contents.get(Need(f"{padded(end)}{SNAPSHOT}", Content.SNAPSHOT))
    if read is None or isinstance(read, LoadFailure):
        return None
    states = cast("tuple[ProducerState, ...]", read)
    if any(one.transaction_start >= 0 for one in states):
        return None
    return len({one.producer_id for one in states if not is_expired(one, settings)})


def _is_topic_id_sound(directory: LoadedDirectory, rules: LoadingRules) -> bool:
    if not rules.reads_topic_ids or METADATA_FILE not in directory.files:
        return True
    read = directory.contents.get(_TOPIC_ID)
    return isinstance(read, TopicIdFile) and (not read.version or rules.accepts_later_topic_id_files)
