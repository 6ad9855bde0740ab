"""How the rules of loading are asked: of a partition directory, of one that was closed cleanly, and of a log of which a summary is at hand.

Most logs were closed cleanly and lie there as their broker left them. For those `load_after_clean_shutdown` comes to what `partition` comes to, without playing each
step; whatever is unusual by its name, its length or its content is left to the steps, which are the rule.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, cast

from kforensics.damage import Absent
from kforensics.formats.index import OFFSET_ENTRY_LENGTH, TIME_ENTRY_LENGTH, TXN_ENTRY_LENGTH
from kforensics.formats.log.batch_table import HEADER_UP_TO_MAGIC, NEWEST_MAGIC
from kforensics.formats.log.loader_values import (
    Batches,
    Content,
    LoadFailure,
    Need,
    ProducerState,
    TopicIdFile,
    headed_batch,
)
from kforensics.protocol.epochs import Epochs, epochs_after_scan
from kforensics.protocol.loading.disk import (
    EPOCH_FILE,
    INDEX,
    LARGEST_INT32,
    LARGEST_INT64,
    LOG,
    METADATA_FILE,
    NEWEST_RULES,
    SNAPSHOT,
    TIME_INDEX,
    TXN_INDEX,
    FileAction,
    FileChange,
    LoadedDirectory,
    LoadedState,
    LoadOutcome,
    LoadSettings,
    Unpredictable,
    first_scanned,
    log_start_at_load,
    padded,
    partition_of_directory,
    recovery_point_at_load,
)
from kforensics.protocol.loading.indexes import (
    EXTENDED,
    WARM_LENGTH,
    lower_bound,
)
from kforensics.protocol.loading.log_state import TRIMMED, epoch_file_length, is_expired, trim_epochs
from kforensics.protocol.loading.partition import load_step_by_step
from kforensics.protocol.loading.versions import LoadingRules
from kforensics.units import EpochEntry

_SHAPE = re.compile(
    r"(?:([0-9]{20})\.index/\1\.log/(?:\1\.snapshot/)?\1\.timeindex/(?:\1\.txnindex/)?)+(?:[0-9]{20}\.snapshot/)?"
    rf"{EPOCH_FILE}(?:/{re.escape(METADATA_FILE)})?"
)
"""The names in the directory, sorted: of each segment its log and both indexes, and behind the last one the snapshot at the log end."""
_EPOCHS = Need(EPOCH_FILE, Content.EPOCHS)
_TOPIC_ID = Need(METADATA_FILE, Content.PARTITION_METADATA)


def load_partition(
    directory: LoadedDirectory,
    *,
    clean_shutdown: bool,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    settings: LoadSettings | None = None,
    rules: LoadingRules | None = None,
) -> LoadOutcome | Need | Unpredictable:
    """Load one partition directory.

    Args:
        recovery_point: of `recovery-point-offset-checkpoint`; 0 where it has none.
        log_start_offset: of `log-start-offset-checkpoint`; 0 where it has none.

    Returns:
        What comes of it; or the content of a file that has to be read before that can be said; or why it can't be.
    """
    settings, rules = settings or LoadSettings(), rules or LoadingRules()
    if clean_shutdown:
        found = load_after_clean_shutdown(
            directory, recovery_point=recovery_point, log_start_offset=log_start_offset, settings=settings, rules=rules
        )
        if found is not None:
            return found
    return load_step_by_step(
        directory,
        clean_shutdown=clean_shutdown,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        settings=settings,
        rules=rules,
    )


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

    Returns:
        What comes of it; None where the steps have to be played.
    """
    files, contents = directory.files, directory.contents
    segments = _segments(directory, rules)
    extended = None if segments is None else _extended(segments, files, settings)
    if segments is None or extended is None:
        return None
    read = contents.get(_EPOCHS)
    if read is None or isinstance(read, LoadFailure) or not are_rising(cast("Epochs", read)):
        return None
    end = end_of_log(directory, segments)
    if end is None or end < max(log_start_offset, segments.bases[-1]):
        return None
    start = log_start_at_load(segments.bases[0], log_start_offset)
    least = start if start == log_start_offset or rules.trims_epochs_to_first_segment else log_start_offset
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


class UsualFiles(NamedTuple):
    """The files of a log that has no others, by the segments that they belong to."""

    bases: list[int]
    """The base offsets of the segments, rising."""
    snapshots: list[int]
    """The offsets of producer snapshots, rising."""
    stem: str
    """What the names of the last segment's files begin with."""


def _segments(directory: LoadedDirectory, rules: LoadingRules) -> UsualFiles | None:
    """Return the segments of a log where each has both indexes, and nothing else lies there."""
    if not _is_modelled(rules) or directory.name.endswith("-delete"):
        return None
    return None if partition_of_directory(directory.name, rules) is None else usual_files(directory)


def usual_files(directory: LoadedDirectory) -> UsualFiles | None:
    """Return the files of a log of which each segment has both indexes, no transaction was aborted, and nothing else lies there; None of another one."""
    files = directory.files
    if directory.folders or directory.unreadable:
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
    return UsualFiles(bases, snapshots, stems[-1])


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


def _extended(segments: UsualFiles, files: Mapping[str, int], settings: LoadSettings) -> list[tuple[str, int]] | None:
    """Return the lengths that the indexes of the last segment get; none where one is longer, or gets none."""
    out = []
    for ending, entry_length in ((INDEX, OFFSET_ENTRY_LENGTH), (TIME_INDEX, TIME_ENTRY_LENGTH)):
        name, length = segments.stem + ending, settings.index_length // entry_length * entry_length
        if not length or files[name] > length:
            return None
        out.append((name, length))
    return out


def are_rising(epochs: Epochs) -> bool:
    """Whether no entry is removed, or refused, when they are entered one by one."""
    return all(one.leader_epoch >= 0 and one.start_offset >= 0 for one in epochs) and all(
        one.leader_epoch < after.leader_epoch and one.start_offset < after.start_offset
        for one, after in pairwise(epochs)
    )


def end_of_log(directory: LoadedDirectory, segments: UsualFiles, *, has_warm_end: bool = True) -> int | None:
    """Return the offset behind the last batch, to which the last entry of the offset index leads; none where the file does not end there.

    Args:
        has_warm_end: a lookup tries the end of the index first (2.3).
    """
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
        warm = WARM_LENGTH // OFFSET_ENTRY_LENGTH if has_warm_end else None
        slot = lower_bound(lambda at: base + entries[at][0], count, offset, warm)
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
    directory: LoadedDirectory, segments: UsualFiles, start: int, end: int, settings: LoadSettings
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
    if METADATA_FILE not in directory.files or not rules.reads_topic_ids:
        return True
    read = directory.contents.get(_TOPIC_ID)
    return isinstance(read, TopicIdFile) and (not read.version or rules.accepts_later_topic_id_files)


class KnownSegment(NamedTuple):
    """What was read of a segment, as far as its load depends on it."""

    base_offset: int
    end_offset: int
    """The offset behind its last batch, sound or not, which a load without a scan uses as the end."""
    recovered_end_offset: int
    """The offset behind the last batch before the first invalid one; the base offset if no batch is valid."""
    is_torn: bool = False
    """Whether bytes behind `recovered_end_offset` do not parse or have a wrong checksum."""
    epochs: Epochs = ()
    """The start offset of each leader epoch in this segment."""


class KnownLoad(NamedTuple):
    """What a start makes of a log of which a summary is at hand."""

    state: LoadedState
    kept_count: int
    """The number of segments, from the first on, that are kept; if a segment is truncated, it is the last of them."""
    truncated: int | Absent
    """Base offset of the segment that is truncated."""


def load_known_log(
    segments: Sequence[KnownSegment],
    *,
    clean_shutdown: bool,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    checkpoint_epochs: Epochs = (),
    has_remote_storage: bool = False,
    rules: LoadingRules | None = None,
) -> KnownLoad:
    """Load a log that was read before, by the same rules: its segments are files of a batch for each leader epoch, without producers.

    Args:
        clean_shutdown: whether `.kafka_cleanshutdown` is in the log dir. The metadata log of a quorum is opened without it and
            with a recovery point of 0, whatever is there (`KafkaRaftLog.createLog`, 4.3.1).
        has_remote_storage: the topic keeps older segments in remote storage: the log starts where the checkpoint says.

    Returns:
        The log once it is loaded; as it lies there where its load throws, since the broker leaves it so.
    """
    rules = rules or NEWEST_RULES
    settings = LoadSettings(index_interval=LARGEST_INT32, has_remote_storage=has_remote_storage)
    asked = (segments, clean_shutdown, recovery_point, log_start_offset, checkpoint_epochs, settings, rules)
    return _load_sound(*asked) or _load_by_steps(*asked)


def _load_sound(
    segments: Sequence[KnownSegment],
    clean_shutdown: bool,
    recovery_point: int,
    log_start_offset: int,
    epochs: Epochs,
    settings: LoadSettings,
    rules: LoadingRules,
) -> KnownLoad | None:
    """Load a log in which nothing is torn, whose files keep their length; None where the steps have to be played."""
    bases = [one.base_offset for one in segments]
    if not bases or any(one.is_torn or one.recovered_end_offset < one.end_offset for one in segments):
        return None
    end = segments[-1].end_offset
    if end < max(log_start_offset, bases[-1]) or not _is_modelled(rules):
        return None
    for one in () if clean_shutdown else segments[first_scanned(bases, recovery_point) :]:
        epochs = epochs_after_scan(epochs, one.epochs, skips_epoch_zero=rules.skips_epoch_zero, rules=rules.epochs)
    start = log_start_at_load(bases[0], log_start_offset, has_remote_storage=settings.has_remote_storage)
    least = start if rules.trims_epochs_to_first_segment else log_start_offset
    state = LoadedState(
        log_start_offset=start,
        log_end_offset=end,
        recovery_point=max(recovery_point_at_load(recovery_point, end, clean_shutdown=clean_shutdown), start),
        last_stable_offset=end,
        epochs=trim_epochs(epochs, least, end, rules.epochs)[0],
    )
    return KnownLoad(state, len(segments), Absent.NOT_APPLICABLE)


def _load_by_steps(
    segments: Sequence[KnownSegment],
    clean_shutdown: bool,
    recovery_point: int,
    log_start_offset: int,
    epochs: Epochs,
    settings: LoadSettings,
    rules: LoadingRules,
) -> KnownLoad:
    files = {EPOCH_FILE: epoch_file_length(epochs)}
    contents: dict[Need, object] = {_EPOCHS: epochs}
    names = [f"{padded(one.base_offset)}{LOG}" for one in segments]
    for name, one in zip(names, segments, strict=True):
        stem = name.removesuffix(LOG)
        checked = _as_batches(one)
        files |= {name: checked.end, f"{stem}{INDEX}": 0, f"{stem}{TIME_INDEX}": 0}
        contents[Need(name, Content.CHECKED_BATCHES)] = contents[Need(name, Content.BATCHES)] = checked
    while True:
        outcome = load_step_by_step(
            LoadedDirectory(name="known-0", files=files, contents=contents),
            clean_shutdown=clean_shutdown,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            settings=settings,
            rules=rules,
        )
        if not isinstance(outcome, Need):
            break
        contents[outcome] = cast("Batches", contents[outcome._replace(position=0)]).behind(outcome.position)
    if isinstance(outcome, Unpredictable) or isinstance(outcome.state, Absent):
        return KnownLoad(
            _as_it_lies(segments, recovery_point, log_start_offset, epochs),
            len(segments),
            Absent.NOT_APPLICABLE,
        )
    return KnownLoad(
        state=outcome.state,
        kept_count=sum(outcome.origins.get(name) == name for name in names),
        truncated=next(
            (one.base_offset for one in outcome.scanned if one.kept_length < one.length), Absent.NOT_APPLICABLE
        ),
    )


_BATCH_LENGTH = 61
"""Bytes that stand for a batch: those of its header."""


def _as_batches(one: KnownSegment) -> Batches:
    """Return a batch for each leader epoch of a segment, and one that fails where it is torn."""
    sound = [entry for entry in one.epochs if entry.start_offset < one.recovered_end_offset]
    if one.base_offset < one.recovered_end_offset and (not sound or sound[0].start_offset > one.base_offset):
        sound.insert(0, EpochEntry(-1, one.base_offset))
    ends = [entry.start_offset for entry in sound[1:]] + [one.recovered_end_offset] * bool(sound)
    spans = [(*entry, end, True) for entry, end in zip(sound, ends, strict=True)]
    if one.is_torn or one.recovered_end_offset < one.end_offset:
        spans.append((-1, one.recovered_end_offset, max(one.end_offset, one.recovered_end_offset), False))
    batches = tuple(
        headed_batch(
            position=at * _BATCH_LENGTH,
            length=_BATCH_LENGTH,
            base_offset=first,
            last_offset=end - 1,
            magic=NEWEST_MAGIC,
            leader_epoch=epoch,
            attributes=0,
            max_timestamp=-1,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            record_count=1,
            is_valid=is_valid,
        )
        for at, (epoch, first, end, is_valid) in enumerate(spans)
    )
    return Batches(batches=batches, end=len(batches) * _BATCH_LENGTH)


def _as_it_lies(
    segments: Sequence[KnownSegment], recovery_point: int, log_start_offset: int, epochs: Epochs
) -> LoadedState:
    end = segments[-1].end_offset if segments else log_start_offset
    return LoadedState(
        log_start_offset=log_start_at_load(segments[0].base_offset, log_start_offset) if segments else log_start_offset,
        log_end_offset=end,
        recovery_point=recovery_point,
        last_stable_offset=Absent.UNKNOWN,
        epochs=epochs,
    )
