"""Whether other versions make the same of a log as one whose load is known, as far as that can be said without playing their loads.

Of most logs it can: their files are the usual ones, and nothing that a load reads is damaged. Where anything is unusual, the loads have to be played.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self, cast

from kforensics.damage import Absent
from kforensics.formats.index import OFFSET_ENTRY_LENGTH, TIME_ENTRY_LENGTH, TimeEnds
from kforensics.formats.log.batch_table import NEWEST_MAGIC
from kforensics.formats.log.loader_values import Batches, Content, LoadedBatch, Need, ProducerState, TopicIdFile
from kforensics.protocol.epochs import EpochRules, Epochs, epochs_after_scan
from kforensics.protocol.loading.disk import (
    ENDINGS,
    EPOCH_FILE,
    INDEX,
    LOG,
    METADATA_FILE,
    SNAPSHOT,
    TIME_INDEX,
    LoadedDirectory,
    LoadedState,
    LoadOutcome,
    first_scanned,
    padded,
)
from kforensics.protocol.loading.indexes import can_be_relative
from kforensics.protocol.loading.load import UsualFiles, are_rising, end_of_log, usual_files
from kforensics.protocol.loading.log_state import trim_epochs
from kforensics.protocol.loading.partition import ABOVE_RECOVERY_POINT
from kforensics.protocol.loading.versions import LoadingRules
from kforensics.units import EpochEntry


class OtherRules(NamedTuple):
    """What the rules of other versions come to for a log in which nothing is damaged."""

    are_known: bool
    """All of them are of 0.11 or later: before, a log is read message by message."""
    least_index_offset: int | None
    """What the last entry of each offset index must reach, or its segment is scanned (before 2.3); None where no version looks at indexes."""
    read_topic_ids: bool
    """One of them reads `partition.metadata`."""
    epochs: frozenset[tuple[bool, bool, EpochRules]]
    """The ways in which they restore and trim leader epochs."""

    @classmethod
    def of(cls, each: Iterable[LoadingRules]) -> Self:
        """Return what some rules come to."""
        rules = tuple(each)
        looking = [one.indexes_base_offsets for one in rules if one.opens_indexes_at_once]
        return cls(
            are_known=all(one.knows_magic_2 for one in rules),
            least_index_offset=int(any(looking)) if looking else None,
            read_topic_ids=any(one.reads_topic_ids for one in rules),
            epochs=frozenset((one.skips_epoch_zero, one.trims_epochs_to_first_segment, one.epochs) for one in rules),
        )


def loads_alike(
    directory: LoadedDirectory,
    outcome: LoadOutcome,
    others: OtherRules,
    *,
    clean_shutdown: bool,
    recovery_point: int,
    log_start_offset: int,
) -> bool:
    """Return whether other versions keep the same segments of a log, and serve the same of them; false too where only their loads can tell.

    Args:
        directory: as it was before the load.
        outcome: what the load comes to by some rules.
        recovery_point: of `recovery-point-offset-checkpoint`; 0 where it has none.
        log_start_offset: of `log-start-offset-checkpoint`; 0 where it has none.
    """
    state = outcome.state
    if isinstance(state, Absent) or not others.are_known or directory.name.endswith(ENDINGS):
        return False
    files = usual_files(directory)
    if files is None or any(LOG in change.name for change in outcome.changes):
        return False
    end, last = state.log_end_offset, len(files.bases) - 1
    if state.last_stable_offset != end or end < max(log_start_offset, files.bases[last]):
        return False
    found: Epochs | None = None
    if clean_shutdown:
        if not outcome.scanned and _end_alike(directory, files, others, end):
            found = ()
        unscanned, are_producers_known = last + 1, state.log_start_offset < end
        snapshot: int | None = end
    elif first_scanned(files.bases, recovery_point) == last:
        found = _scanned_epochs(directory, files, outcome, end)
        unscanned, are_producers_known = last, log_start_offset <= files.bases[last]
        # Nothing is read of what lies before the first segment, or before the log start.
        snapshot = files.bases[last] if last and log_start_offset < files.bases[last] else None
    return (
        found is not None
        and are_producers_known
        and (snapshot is None or _has_no_transaction(directory, files, snapshot))
        and _are_epochs_alike(directory, state, others, found, log_start_offset)
        and _is_topic_id_read(directory, others)
        and _are_indexes_sound(directory, files, others, unscanned)
    )


def _end_alike(directory: LoadedDirectory, files: UsualFiles, others: OtherRules, end: int) -> bool:
    """Whether the last entry of the offset index leads all versions to the same end of the log."""
    lookups = (True,) if others.least_index_offset is None else (True, False)
    return all(end_of_log(directory, files, has_warm_end=one) == end for one in lookups)


def _scanned_epochs(directory: LoadedDirectory, files: UsualFiles, outcome: LoadOutcome, end: int) -> Epochs | None:
    """Return where the leader epochs begin in the last segment, which alone was scanned; none where a scan by other rules may end elsewhere, or throw."""
    base, log = files.bases[-1], files.stem + LOG
    length = directory.files[log]
    scanned = [(*one[:4], one.reason) for one in outcome.scanned]
    is_alone = scanned == [(base, log, length, length, ABOVE_RECOVERY_POINT)]
    read = directory.contents.get(Need(log, Content.CHECKED_BATCHES)) if length else Batches(batches=(), end=0)
    if not is_alone or not isinstance(read, Batches) or read.end != length:
        return None
    epochs: list[EpochEntry] = []
    last = base - 1
    for one in read.batches:
        if not _is_plain(one) or not last < one.base_offset <= one.last_offset:
            return None
        last = one.last_offset
        if not epochs or epochs[-1].leader_epoch != one.leader_epoch:
            epochs.append(EpochEntry(one.leader_epoch, one.base_offset))
    is_relative = not read.batches or can_be_relative(base, last)
    return tuple(epochs) if is_relative and last + 1 == end else None


def _is_plain(one: LoadedBatch) -> bool:
    """Whether a batch is sound, of the newest format, and of no transaction."""
    return (
        one.is_valid
        and one.magic == NEWEST_MAGIC
        and not (one.is_transactional or one.is_control)
        and one.header_failure is Absent.NOT_APPLICABLE
    )


def _has_no_transaction(directory: LoadedDirectory, files: UsualFiles, offset: int) -> bool:
    """Whether the producers at an offset are known by a snapshot there, and none of them has begun a transaction."""
    if offset not in files.snapshots:
        return False
    read = directory.contents.get(Need(f"{padded(offset)}{SNAPSHOT}", Content.SNAPSHOT))
    # What reading it throws is a tuple of another kind.
    return type(read) is tuple and all(one.transaction_start < 0 for one in cast("tuple[ProducerState, ...]", read))


def _are_epochs_alike(
    directory: LoadedDirectory, state: LoadedState, others: OtherRules, found: Epochs, log_start_offset: int
) -> bool:
    read = directory.contents.get(Need(EPOCH_FILE, Content.EPOCHS))
    if type(read) is not tuple or not are_rising(cast("Epochs", read)):
        return False
    for skips_epoch_zero, trims_to_first_segment, rules in others.epochs:
        after = epochs_after_scan(cast("Epochs", read), found, skips_epoch_zero=skips_epoch_zero, rules=rules)
        least = state.log_start_offset if trims_to_first_segment else log_start_offset
        if trim_epochs(after, least, state.log_end_offset, rules)[0] != state.epochs:
            return False
    return True


def _is_topic_id_read(directory: LoadedDirectory, others: OtherRules) -> bool:
    if METADATA_FILE not in directory.files or not others.read_topic_ids:
        return True
    read = directory.contents.get(Need(METADATA_FILE, Content.PARTITION_METADATA))
    return isinstance(read, TopicIdFile) and not read.version


def _are_indexes_sound(directory: LoadedDirectory, files: UsualFiles, others: OtherRules, unscanned: int) -> bool:
    """Whether no version scans one of the first segments for its indexes (`OffsetIndex.sanityCheck`, `TimeIndex.sanityCheck`, before 2.3)."""
    least = others.least_index_offset
    if least is None:
        return True
    contents, lengths = directory.contents, directory.files
    for base in files.bases[:unscanned]:
        index, times = (f"{padded(base)}{ending}" for ending in (INDEX, TIME_INDEX))
        if lengths[index] % OFFSET_ENTRY_LENGTH or lengths[times] % TIME_ENTRY_LENGTH:
            return False
        if lengths[index]:
            entries = cast("Sequence[tuple[int, int]] | None", contents.get(Need(index, Content.OFFSET_INDEX)))
            count = lengths[index] // OFFSET_ENTRY_LENGTH
            if entries is None or len(entries) < count or entries[count - 1][0] < least:
                return False
        if lengths[times]:
            ends = cast("TimeEnds | None", contents.get(Need(times, Content.TIME_INDEX)))
            if ends is None or ends.last_timestamp < ends.first_timestamp or ends.last_relative_offset < 0:
                return False
    return True
