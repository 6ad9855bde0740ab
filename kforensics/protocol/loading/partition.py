"""What loading makes of one partition directory (`LogLoader.load`, `UnifiedLog.create`, 4.1.0; in Scala from 3.3 to 3.9).

Before a segment is opened, files that an interrupted deletion, cleaning or split has left are put right (`LogLoader.removeTempFilesAndCollectSwapFiles`).
"""

from collections.abc import Callable, Iterator
from typing import TypeVar, cast

from kforensics.damage import Absent
from kforensics.formats.log.loader_values import Content, LoadFailure, Need, TopicIdFile
from kforensics.protocol.loading.disk import (
    CLEANED,
    DELETED,
    INDEX,
    INDEXES,
    LOG,
    METADATA_FILE,
    QUORUM_SNAPSHOT_DELETED,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    Disk,
    LoadedDirectory,
    LoadedState,
    LoadingError,
    LoadOutcome,
    LoadSettings,
    NeedError,
    NotModelledError,
    ScannedSegment,
    Unpredictable,
    first_scanned,
    known_indexes,
    log_start_at_load,
    offset_of,
    padded,
    partition_of_directory,
    recovery_point_at_load,
    refused_name,
    thrown,
)
from kforensics.protocol.loading.log_state import EpochCache, Producers
from kforensics.protocol.loading.segments import OVERFLOW, SPLIT, Segment
from kforensics.protocol.loading.versions import LoadingRules


def put_right(disk: Disk, settings: LoadSettings, rules: LoadingRules) -> list[str]:
    """Delete what is left of deletions and cleanings, and put swapped files in place (KAFKA-6264, KAFKA-12520).

    Where the name of a `.cleaned` file holds no number, loading ends there; which `.deleted` files it has removed by then depends on the order in which
    the file system lists them. Here it is by name.

    Returns:
        Logs that are still to be swapped in once the segments are loaded (before 3.0).

    Raises:
        LoadingError: what Kafka throws, as at a name that holds no number.
        NeedError: a segment that is to be swapped in has to be read, and was not given yet.
    """
    if not rules.renames_swaps:
        return _collect_swaps(disk, rules)
    swapped = _remove_temporary(disk, rules)
    bounds: list[tuple[int, int]] = []
    for name in swapped:
        if name.removesuffix(SWAP).endswith(LOG):
            segment = Segment(disk, offset_of(name), settings, rules, suffix=SWAP)
            bounds.append((segment.base_offset, segment.next_offset()))
    if bounds:
        lowest, end = min(base for base, _ in bounds), max(after for _, after in bounds)
        for name in disk.names():
            offset = None if name.endswith(SWAP) else _offset_or_none(name)
            if offset is not None and lowest <= offset < end:
                disk.delete(name, "replaced-by-swap")
    for name in disk.names():
        if name.endswith(SWAP):
            disk.rename(name, name.removesuffix(SWAP), "swap-completed")
    return []


def _collect_swaps(disk: Disk, rules: LoadingRules) -> list[str]:
    """Collect the swapped logs as Kafka before 3.0 does: their indexes are deleted, the logs are returned for later."""
    cleaned: list[str] = []
    swapped: list[str] = []
    lowest: int | None = None
    swapped_indexes: tuple[str, ...] = INDEXES if rules.removes_swapped_indexes else ()
    if not rules.knows_magic_2:
        swapped_indexes = (INDEX,)
    for name in disk.names():
        if name not in disk.files:
            continue
        if name.endswith(DELETED):
            disk.delete(name, "deleted-suffix")
        elif name.endswith(CLEANED) and rules.completes_every_swap:
            disk.delete(name, "cleaning-not-finished")
        elif name.endswith(CLEANED):
            offset = offset_of(name)
            lowest = offset if lowest is None else min(lowest, offset)
            cleaned.append(name)
        elif name.endswith(SWAP) and name.removesuffix(SWAP).endswith(swapped_indexes):
            disk.delete(name, "deleted-suffix")
        elif name.endswith(SWAP) and name.removesuffix(SWAP).endswith((LOG, *INDEXES) if rules.knows_magic_2 else LOG):
            _delete_indexes(disk, offset_of(name), "", INDEXES if rules.knows_magic_2 else (INDEX,))
            if name.removesuffix(SWAP).endswith(LOG):
                swapped.append(name)
    invalid = [name for name in swapped if lowest is not None and offset_of(name) >= lowest]
    for name in invalid:
        _delete_indexes(disk, offset_of(name), SWAP)
        disk.delete(name, "cleaning-not-finished")
    for name in cleaned:
        disk.delete(name, "cleaning-not-finished")
    left = [name for name in swapped if name not in invalid]
    if len(left) > 1:
        raise NotModelledError("several segments to be swapped in, which is done in the order of the file system")
    return left


def _delete_indexes(disk: Disk, offset: int, suffix: str, endings: tuple[str, ...] = INDEXES) -> None:
    for ending in endings:
        name = f"{padded(offset)}{ending}{suffix}"
        if name in disk.files:
            disk.delete(name, "index-beside-swap" if not suffix else "cleaning-not-finished")
        elif disk.exists(name):
            raise NotModelledError(f"{name} is a directory, which is deleted where it is empty")


def _remove_temporary(disk: Disk, rules: LoadingRules) -> list[str]:
    cleaned: list[str] = []
    swapped: list[str] = []
    lowest: int | None = None
    for name in disk.names():
        is_kept = name.endswith(QUORUM_SNAPSHOT_DELETED) and rules.keeps_deleted_quorum_snapshots
        if name.endswith(DELETED) and not is_kept:
            disk.delete(name, "deleted-suffix")
        elif name.endswith(CLEANED):
            offset = offset_of(name)
            lowest = offset if lowest is None else min(lowest, offset)
            cleaned.append(name)
        elif name.endswith(SWAP):
            swapped.append(name)
    invalid = [name for name in swapped if lowest is not None and offset_of(name) >= lowest]
    for name in swapped:
        offset_of(name)
    for name in (*invalid, *cleaned):
        disk.delete(name, "cleaning-not-finished")
    return [name for name in swapped if name not in invalid]


def _offset_or_none(name: str) -> int | None:
    if "." not in name:
        return None
    try:
        return offset_of(name)
    except LoadingError:
        return None


T = TypeVar("T")
ABOVE_RECOVERY_POINT = "above-recovery-point"
"""Why recovery scans a segment after an unclean stop."""


def load_step_by_step(
    directory: LoadedDirectory,
    *,
    clean_shutdown: bool,
    recovery_point: int,
    log_start_offset: int,
    settings: LoadSettings,
    rules: LoadingRules,
) -> LoadOutcome | Need | Unpredictable:
    """Load one partition directory step by step, as `load_partition` does where `load_after_clean_shutdown` has no answer."""
    disk = Disk(directory)
    loader = _Loader(directory, disk, clean_shutdown, recovery_point, log_start_offset, settings, rules)
    failure: LoadFailure | Absent = Absent.NOT_APPLICABLE
    state: LoadedState | Absent = Absent.NOT_APPLICABLE
    try:
        state = loader.load()
    except LoadingError as error:
        failure = error.failure
    except NeedError as error:
        return error.need
    except NotModelledError as error:
        return Unpredictable(str(error))
    if loader.cache is not None:
        loader.cache.flush()
    return LoadOutcome(
        state=state,
        failure=failure,
        tree=disk.tree(),
        changes=disk.changes(),
        scanned=tuple(loader.scanned),
        deleted_segments=tuple(loader.deleted),
        written=disk.written(),
        origins=disk.origins(),
    )


def _has_odd_snapshot(disk: Disk) -> bool:
    """Whether a producer snapshot lies there that can't be listed."""
    return any(
        name.endswith(SNAPSHOT) and (len(name) != len(SNAPSHOT) + 20 or not name[:20].isdecimal())
        for name in disk.files
    )


class _Loader:
    """One load; the steps are those of `LogLoader.load`."""

    def __init__(
        self,
        directory: LoadedDirectory,
        disk: Disk,
        clean_shutdown: bool,
        recovery_point: int,
        log_start_offset: int,
        settings: LoadSettings,
        rules: LoadingRules,
    ) -> None:
        self._directory, self._disk = directory, disk
        self._clean, self._point = clean_shutdown, recovery_point
        self._start = log_start_offset if rules.knows_magic_2 else 0
        self._settings, self._rules = settings, rules
        self.cache: EpochCache | None = None
        self._segments: dict[int, Segment] = {}
        self._scanning: Segment | None = None
        self.scanned: list[ScannedSegment] = []
        self.deleted: list[int] = []

    def load(self) -> LoadedState:
        rules = self._rules
        if partition_of_directory(self._directory.name, rules) is None:
            raise refused_name(self._directory.name, rules)
        if _has_odd_snapshot(self._disk) and rules.lists_snapshots_first:
            Producers(self._disk, self._settings, rules)
        if rules.knows_magic_2:
            self.cache = EpochCache(self._disk, rules)
        self._producers = Producers(self._disk, self._settings, rules)
        for name in self._disk.names():
            if name in self._directory.unreadable:
                raise thrown("IOException", f"Could not read file {name}", is_io=True)
        swapped = put_right(self._disk, self._settings, self._rules)
        self._retried(self._load_segments)
        for name in swapped:
            self._complete_swap(name)
        if self._rules.begins_empty_logs_at_zero and not self._segments:
            self._open_if_none(0)
            point, end = self._point, 0
        elif self._directory.name.endswith("-delete"):
            self._open_if_none(0)
            point = self._point if self._rules.keeps_recovery_point_of_deleted else 0
            end = self._last().next_offset() if self._rules.keeps_recovery_point else 0
        else:
            point, end = self._retried(self._recover)
            self._last().resize_indexes()
        first_base = min(self._segments)
        start = log_start_at_load(first_base, self._start, has_remote_storage=self._settings.has_remote_storage)
        if self.cache is None:
            return LoadedState(
                log_start_offset=start,
                log_end_offset=end,
                recovery_point=point,
                last_stable_offset=Absent.NOT_APPLICABLE,
                epochs=(),
            )
        self.cache.trim(start if self._rules.trims_epochs_to_first_segment else self._start, end)
        if self._rules.removes_stray_snapshots:
            self._producers.remove_stray_snapshots(self._segments)
        self._rebuild(self._producers, start, end, from_clean_shutdown=self._clean)
        stable = self._last_stable_offset(start, end)
        self._read_topic_id()
        return LoadedState(
            log_start_offset=start,
            log_end_offset=end,
            recovery_point=point if self._rules.keeps_offsets_below_start else max(point, start),
            last_stable_offset=stable,
            epochs=self.cache.epochs,
            producer_count=len(self._producers.by_id),
        )

    def _load_segments(self) -> None:
        self._segments.clear()
        for name in self._disk.names():
            if name.endswith(known_indexes(self._rules)):
                stem = padded(offset_of(name)) if self._rules.knows_magic_2 else name.rpartition(".")[0]
                if not self._disk.exists(f"{stem}{LOG}"):
                    self._disk.delete(name, "index-without-log")
            elif name.endswith(LOG):
                base = offset_of(name)
                has_index, has_time_index = (
                    self._disk.exists(f"{padded(base)}{ending}") for ending in (INDEX, TIME_INDEX)
                )
                segment = Segment(self._disk, base, self._settings, self._rules)
                if not segment.sanity_check(has_index=has_index, has_time_index=has_time_index):
                    enters = self._rules.enters_epochs_when_index_is_missing
                    self._recover_segment(segment, "index-missing-or-corrupt", enters_epochs=enters)
                self._segments[base] = segment

    def _complete_swap(self, name: str) -> None:
        """Recover a segment that replaces others, and swap it in (`Log.completeSwapOperations`, before 3.0)."""
        swapped = Segment(self._disk, offset_of(name), self._settings, self._rules, suffix=SWAP)
        try:
            self._recover_segment(swapped, "swapped-in", enters_epochs=False)
        except LoadingError as error:
            if error.failure.exception == OVERFLOW:
                raise NotModelledError("a segment to be swapped in that spans more than 2^31 - 1 offsets") from error
            raise
        base, end = swapped.base_offset, swapped.next_offset()
        bases = sorted(self._segments)
        is_considered = base < end or self._rules.empty_swap_replaces
        within = [at for at in bases[first_scanned(bases, base) :] if at < end and is_considered]
        replaced = [at for at in within if self._rules.completes_every_swap or self._segments[at].next_offset() > base]
        for at in replaced:
            old = self._segments[at]
            if at != base:
                del self._segments[at]
            old.mark_deleted("replaced-by-swap")
        swapped.put_in_place("swap-completed")
        self._segments[base] = swapped

    def _recover_segment(self, segment: Segment, reason: str, *, enters_epochs: bool = True) -> int:
        producers = Producers(self._disk, self._settings, self._rules, is_of_recovery=True)
        if self._rules.reads_whole_segments_for_recovery and self._rules.knows_magic_2:
            self._rebuild_for_recovery(producers, segment.base_offset)
        elif self._rules.knows_magic_2:
            self._rebuild(producers, self._start, segment.base_offset, from_clean_shutdown=False)
        length = segment.length
        self._scanning = segment
        try:
            truncated = segment.recover(producers, self.cache if enters_epochs else None)
        finally:
            self.scanned.append(
                ScannedSegment(segment.base_offset, segment.log, length, segment.length, producers.map_end, reason)
            )
        if self._rules.knows_magic_2:
            producers.take_snapshot()
        return truncated

    def _rebuild_for_recovery(self, producers: Producers, end: int) -> None:
        """Build the state of producers at a segment from all of those before it (`Log.recoverSegment`, before 2.0)."""
        producers.reload(self._start, end)
        floor = max((base for base in self._segments if base <= producers.map_end), default=end)
        if floor > end:
            raise thrown("IllegalArgumentException", "inconsistent range")
        for base in self._between(producers.map_end, end):
            segment = self._segments[base]
            found = segment.read(max(base, producers.map_end), segment.length)
            if found is not None:
                producers.load(found)
        producers.map_end = end
        if self._rules.snapshots_before_scan:
            producers.take_snapshot()

    def _retried(self, step: Callable[[], T]) -> T:
        """Return what a step comes to once every segment that spans too many offsets has been split (`retryOnOffsetOverflow`, 2.0)."""
        while True:
            try:
                return step()
            except LoadingError as error:
                if error.failure.exception != OVERFLOW or self._scanning is None:
                    raise
                self._split(self._scanning)

    def _split(self, segment: Segment) -> None:
        """Split a segment; one that is scanned for want of an index is no segment of the log yet, so its files stay (`LocalLog.replaceSegments`)."""
        parts = sorted(segment.split(), key=lambda part: part.base_offset)
        is_replaced = self._segments.pop(segment.base_offset, None) is not None
        if is_replaced:
            segment.mark_deleted(SPLIT)
        for part in parts:
            part.put_in_place(SPLIT)
            self._segments[part.base_offset] = part
        if is_replaced and segment.base_offset not in self._segments and self._rules.deletes_snapshots_later:
            self._producers.mark_deleted(segment.base_offset)

    def _recover(self) -> tuple[int, int]:
        """Recover the log after an unclean shutdown (`recoverLog`); recovery point and log end."""
        if not self._clean:
            bases = sorted(self._segments)
            unflushed = bases[first_scanned(bases, self._point) :]
            while unflushed:
                segment = self._segments[unflushed.pop(0)]
                if self._recover_unflushed(segment):
                    segment.next_offset()
                    self._mark_deleted(unflushed, "behind-corruption")
                    break
        end: int | None = None
        if self._segments:
            end = self._last().next_offset()
            if end < self._start and not self._rules.begins_empty_logs_at_zero:
                self._mark_deleted(sorted(self._segments), "log-start-above-log-end")
                if not self._rules.keeps_state_below_log_start:
                    assert self.cache is not None
                    self.cache.clear()
                    self._producers.truncate_fully(self._start)
                end = None
        self._open_if_none(self._start)
        is_clean = self._clean and end is not None
        found = self._last().next_offset() if end is None else end
        if self._rules.keeps_recovery_point:
            return (found if self._clean else self._point), found
        if self._rules.recovery_point_reaches_end:
            return found, found
        return recovery_point_at_load(self._point, found, clean_shutdown=is_clean), found

    def _recover_unflushed(self, segment: Segment) -> int:
        """Scan a segment; the bytes that were truncated."""
        try:
            return self._recover_segment(segment, ABOVE_RECOVERY_POINT)
        except LoadingError as error:
            is_io = error.failure.is_io and self._rules.io_errors_empty_segments
            if error.failure.exception != "InvalidOffsetException" and not is_io:
                raise
            return segment.truncate_to_base()

    def _mark_deleted(self, bases: list[int], rule: str) -> None:
        """Rename segments, to be removed later; snapshots at their bases lie behind what was scanned and have been deleted before that."""
        for base in bases:
            self._segments.pop(base).mark_deleted(rule)
            if self._rules.deletes_snapshots_below_start_later or (
                self._rules.deletes_snapshots_later and rule == "behind-corruption"
            ):
                self._producers.mark_deleted(base)
        self.deleted += bases

    def _open_if_none(self, base_offset: int) -> None:
        if not self._segments:
            self._segments[base_offset] = Segment(self._disk, base_offset, self._settings, self._rules)

    def _last(self) -> Segment:
        return self._segments[max(self._segments)]

    def _rebuild(self, producers: Producers, start: int, end: int, *, from_clean_shutdown: bool) -> None:
        """Build the state of producers up to an offset (`UnifiedLog.rebuildProducerState`)."""
        bases = sorted(self._segments)
        snapshots = [*bases[-2:], end]
        if producers.newest_snapshot is None and from_clean_shutdown:
            for offset in snapshots:
                producers.map_end = offset
                producers.take_snapshot("snapshot-written-empty")
            return
        was_empty = producers.is_empty and producers.map_end >= end
        producers.reload(start, end)
        if end > producers.map_end and not was_empty:
            holder = max((base for base in bases if base <= end), default=None)
            for base in self._between(producers.map_end, end):
                segment = self._segments[base]
                first = max(base, producers.map_end, start)
                producers.map_end = first
                if base in snapshots or self._rules.reads_whole_segments_for_recovery:
                    producers.take_snapshot()
                if self._rules.reads_up_to_offset:
                    found = segment.read_up_to(first, end)
                else:
                    limit = segment.length
                    if base == holder:
                        position = segment.position_of(end)
                        limit = segment.length if position is None else position
                    found = segment.read(first, limit)
                if found is not None:
                    producers.load(found)
        producers.map_end = end
        if not self._rules.reads_whole_segments_for_recovery:
            producers.take_snapshot()

    def _between(self, first: int, end: int) -> Iterator[int]:
        """Bases of the segments that hold offsets from `first` on and begin before `end` (`LogSegments.values`)."""
        bases = sorted(self._segments)
        for base in bases[first_scanned(bases, first) :] if bases else []:
            if base < end:
                yield base

    def _offset_found(self, offset: int, end: int) -> int:
        """Return the offset that a read at `offset` finds, the base of its batch (`LocalLog.convertToOffsetMetadataOrThrow`)."""
        bases = sorted(self._segments)
        if self._rules.needs_unstable_offset:
            position = self._segments[bases[first_scanned(bases, offset)]].position_of(offset)
            if position is None or offset < bases[0]:
                raise thrown("NullPointerException", f"no position of the first unstable offset {offset}")
            return offset
        for base in bases[first_scanned(bases, offset) :] if offset < end else []:
            segment = self._segments[base]
            position = segment.position_of(offset)
            if position is not None:
                return next(segment.batches(position)).base_offset if self._rules.stable_offset_is_of_batch else offset
        if offset > end and not self._rules.accepts_unstable_offset_past_end:
            raise thrown("OffsetOutOfRangeException", f"Received request for offset {offset}")
        return max(offset, end)

    def _last_stable_offset(self, start: int, end: int) -> int:
        """Return the last stable offset at a high watermark of `end` (`UnifiedLog.maybeIncrementFirstUnstableOffset`)."""
        unstable = self._producers.first_unstable()
        if unstable is not None:
            self._offset_found(max(unstable, start), end)
        high_watermark = end if self._rules.keeps_offsets_below_start else max(start, end)
        self._producers.high_watermark_reached(high_watermark)
        unstable = self._producers.first_unstable()
        if unstable is None:
            return high_watermark
        return min(self._offset_found(max(unstable, start), end), high_watermark)

    def _read_topic_id(self) -> None:
        if not self._rules.reads_topic_ids:
            return
        self._disk.refuse_folder(METADATA_FILE, "KafkaStorageException")
        if METADATA_FILE in self._disk.files:
            read = self._disk.content(METADATA_FILE, Content.PARTITION_METADATA)
            if isinstance(read, LoadFailure):
                raise LoadingError(read)
            if cast("TopicIdFile", read).version and not self._rules.accepts_later_topic_id_files:
                raise thrown("KafkaStorageException", "Unrecognized version of partition metadata file", is_io=True)
