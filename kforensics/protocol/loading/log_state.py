"""The state of a log while it loads, and the files behind it: the leader epoch cache, and the producers with their snapshots.

`LeaderEpochFileCache`, `ProducerStateManager`, `ProducerAppendInfo`, `UnifiedLog.rebuildProducerState` (4.1.0; the same since 3.3).
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import cast

from kforensics.damage import Absent
from kforensics.formats.index import SNAPSHOT_ENTRY_LENGTH, SNAPSHOT_HEADER_LENGTH
from kforensics.formats.log.loader_values import (
    SHORT_MARKER,
    Content,
    LoadedBatch,
    LoadFailure,
    ProducerState,
    TransactionEnd,
)
from kforensics.protocol.epochs import EpochRules, Epochs, assign, epochs_after_scan, repair_epochs_at_load
from kforensics.protocol.loading.disk import (
    DELETED,
    EPOCH_FILE,
    EPOCH_FILE_BEING_WRITTEN,
    LARGEST_INT32,
    SNAPSHOT,
    Disk,
    LoadingError,
    LoadSettings,
    NotModelledError,
    offset_of,
    padded,
    thrown,
)
from kforensics.protocol.loading.versions import LoadingRules
from kforensics.units import EpochEntry

TRIMMED = "epochs-trimmed"
"""The rule by which the epoch file is written once its log is loaded."""


class EpochCache:
    """The cache of one log; entries that are added are written at once, removals once the load has ended."""

    def __init__(self, disk: Disk, rules: LoadingRules) -> None:
        self._disk, self._rules = disk, rules
        self.epochs: Epochs = ()
        self._is_stale = False
        disk.refuse_folder(EPOCH_FILE, "KafkaStorageException" if rules.wraps_io_errors else "FileNotFoundException")
        if EPOCH_FILE not in disk.files:
            disk.write(EPOCH_FILE, 0, "epoch-file-created", Content.EPOCHS, ())
            return
        if disk.is_unreadable(EPOCH_FILE):
            raise thrown("KafkaStorageException", f"Error while reading checkpoint file {EPOCH_FILE}", is_io=True)
        read = disk.content(EPOCH_FILE, Content.EPOCHS)
        if isinstance(read, LoadFailure):
            if not rules.wraps_io_errors:
                raise thrown("IOException", read.message)
            if rules.bad_numbers_are_io:
                raise thrown("KafkaStorageException", read.message, is_io=True)
            raise LoadingError(read)
        if not rules.checks_epoch_entries:
            self.epochs = tuple(cast("Epochs", read))
            if any(one.leader_epoch >= after.leader_epoch for one, after in pairwise(self.epochs)):
                raise NotModelledError("leader epochs that do not rise in their file, by Kafka before 2.7")
            return
        for entry in cast("Epochs", read):
            if entry.leader_epoch < 0 or entry.start_offset < 0:
                raise thrown("IllegalArgumentException", f"Received invalid partition leader epoch entry {entry}")
            self.epochs = assign(self.epochs, entry.leader_epoch, entry.start_offset, rules.epochs)

    def found(self, leader_epoch: int, base_offset: int) -> None:
        """Take in a batch that recovery has read; its epoch is added, and written, where it is above the latest.

        Args:
            leader_epoch: of the batch, negative for none.

        Raises:
            LoadingError: IllegalArgumentException, where the offset is negative and the epoch is not.
        """
        if base_offset < 0 <= leader_epoch:
            raise thrown("IllegalArgumentException", "Received invalid partition leader epoch entry")
        if self.epochs and leader_epoch == self.epochs[-1].leader_epoch:
            return  # that of the batch before, as of nearly all
        entries = (EpochEntry(leader_epoch, base_offset),)
        after = epochs_after_scan(
            self.epochs, entries, skips_epoch_zero=self._rules.skips_epoch_zero, rules=self._rules.epochs
        )
        if after != self.epochs:
            self.epochs = after
            self._write("epoch-entered")

    def clear(self) -> None:
        """Forget all entries."""
        self.epochs = ()
        self._write("epochs-cleared")

    def trim(self, log_start_offset: int, log_end_offset: int) -> None:
        """Remove what starts at or behind the log end, and what lies below the checkpointed log start."""
        after, is_stale = trim_epochs(self.epochs, log_start_offset, log_end_offset, self._rules.epochs)
        if is_stale:
            self.epochs, self._is_stale = after, True

    def flush(self) -> None:
        """Write what was removed, as a task does after the load, failed or not; where the task throws, the file stays as it is."""
        if self._is_stale:
            with suppress(LoadingError):
                self._write(TRIMMED)

    def _write(self, rule: str) -> None:
        self._disk.refuse_folder(EPOCH_FILE_BEING_WRITTEN, "KafkaStorageException")
        self._disk.write(EPOCH_FILE, epoch_file_length(self.epochs), rule, Content.EPOCHS, self.epochs)
        if EPOCH_FILE_BEING_WRITTEN in self._disk.files:
            self._disk.delete(EPOCH_FILE_BEING_WRITTEN, rule)
        self._is_stale = False


def trim_epochs(epochs: Epochs, log_start_offset: int, log_end_offset: int, rules: EpochRules) -> tuple[Epochs, bool]:
    """Return the cache without what starts at or behind the log end, and what lies below the log start; and whether the file is written."""
    after = repair_epochs_at_load(epochs, log_start_offset, log_end_offset, rules)
    # Since KAFKA-7415 an entry at the log start itself counts as removed and is entered again: the file is written.
    has_first = rules.repairs_conflicts and any(entry.start_offset <= log_start_offset for entry in after)
    return after, after != epochs or has_first


def epoch_file_length(epochs: Epochs) -> int:
    """Return the bytes of an epoch file."""
    lines = ["0", str(len(epochs)), *(f"{epoch.leader_epoch} {epoch.start_offset}" for epoch in epochs)]
    return sum(len(line) + 1 for line in lines)


NO_PRODUCER = NO_SEQUENCE = -1


@dataclass(slots=True)
class _Producer:
    """A producer as it is while batches are taken in."""

    epoch: int = -1
    coordinator_epoch: int = -1
    last_timestamp: int = -1
    transaction_start: int = -1
    last_offset: int = -1

    def enter_epoch(self, epoch: int, *, forgets_batches: bool) -> None:
        """Take over an epoch; with another one its last batch is forgotten (before 2.4)."""
        if forgets_batches and self.epoch != epoch:
            self.last_offset = self.last_timestamp = -1
        self.epoch = epoch


@dataclass(frozen=True, slots=True)
class CompletedTransaction:
    """A transaction whose marker has been read."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class Producers:
    """The producers of one log, and the snapshots that are known of it."""

    def __init__(
        self,
        disk: Disk,
        settings: LoadSettings,
        rules: LoadingRules | None = None,
        *,
        is_of_recovery: bool = False,
    ) -> None:
        self._disk, self._settings = disk, settings
        self._rules = rules or LoadingRules()
        self._is_forgetful = is_of_recovery and self._rules.forgets_producers_in_recovery
        self.by_id: dict[int, _Producer] = {}
        self._ongoing: dict[int, int] = {}
        """The producer of each open transaction, by its first offset."""
        self._unreplicated: dict[int, CompletedTransaction] = {}
        self.map_end = 0
        self._snapshot_end = 0
        self._known = self._list() if self._rules.removes_stray_snapshots else {}

    @property
    def _snapshots(self) -> dict[int, str]:
        """Snapshots by offset: as they were listed once (2.8), or as they lie there now."""
        return self._known if self._rules.removes_stray_snapshots else self._list()

    def _list(self) -> dict[int, str]:
        found: dict[int, str] = {}
        for name in self._disk.names():
            if name.endswith(SNAPSHOT):
                offset = offset_of(name)
                if offset in found:
                    raise NotModelledError(
                        "two producer snapshots of one offset, of which the order of the file system chooses one"
                    )
                found[offset] = name
        return found

    @property
    def newest_snapshot(self) -> int | None:
        """The offset of the newest snapshot."""
        return max(self._snapshots, default=None)

    @property
    def is_empty(self) -> bool:
        """No producer and no transaction is known."""
        return not self.by_id and not self._unreplicated

    def first_unstable(self) -> int | None:
        """Return the first offset of the oldest transaction that is open, or whose marker is not known to be replicated."""
        return min((*self._ongoing, *self._unreplicated), default=None)

    def high_watermark_reached(self, offset: int) -> None:
        """Forget completed transactions whose markers are below the high watermark (`onHighWatermarkUpdated`)."""
        self._unreplicated = {at: one for at, one in self._unreplicated.items() if one.last_offset >= offset}

    def remove_stray_snapshots(self, base_offsets: Iterable[int]) -> None:
        """Delete snapshots that are no segment's base, but the newest behind the last segment's base (`removeStraySnapshots`, 2.8)."""
        bases = set(base_offsets)
        self._known = self._list()
        strays = sorted(offset for offset in self._snapshots if offset not in bases)
        kept = strays[-1] if strays and strays[-1] >= max(bases, default=strays[-1]) else None
        for offset in strays:
            if offset != kept:
                self._delete(offset, "snapshot-of-no-segment")

    def mark_deleted(self, offset: int) -> None:
        """Rename the snapshot of a segment that is deleted, if it has one, to be deleted later (`removeAndMarkSnapshotForDeletion`, 3.0 to 3.2)."""
        name = self._snapshots.pop(offset, None)
        if name is not None and name in self._disk.files:
            self._disk.rename(name, f"{name}{DELETED}", "log-start-above-log-end")

    def truncate_fully(self, offset: int) -> None:
        """Forget all producers and delete all snapshots (`truncateFullyAndStartAt`)."""
        self._clear()
        for known in list(self._snapshots):
            self._delete(known, "log-start-above-log-end")
        self._snapshot_end, self.map_end = 0, offset

    def reload(self, log_start_offset: int, log_end_offset: int) -> None:
        """Delete snapshots outside of the log and start from the newest that can be read, unless what is known already ends where the log does (`truncateAndReload`)."""
        for offset in list(self._snapshots):
            if offset > log_end_offset or offset <= log_start_offset:
                self._delete(offset, "snapshot-outside-of-log")
        if log_end_offset == self.map_end:
            self.high_watermark_reached(log_start_offset)
            self.map_end = max(self.map_end, log_start_offset)
            newest = self.newest_snapshot
            self._snapshot_end = log_start_offset if newest is None else newest
            if self._rules.evicts_producers_below_start:
                removed = {at for at, one in self.by_id.items() if one.last_offset < log_start_offset}
                self.by_id = {at: one for at, one in self.by_id.items() if at not in removed}
                self._ongoing = {at: producer for at, producer in self._ongoing.items() if producer not in removed}
            return
        self._clear()
        self._load(log_start_offset)

    def _load(self, log_start_offset: int) -> None:
        while (offset := self.newest_snapshot) is not None:
            read = cast(
                "tuple[ProducerState, ...] | LoadFailure", self._disk.content(self._snapshots[offset], Content.SNAPSHOT)
            )
            if isinstance(read, LoadFailure):
                self._delete(offset, "snapshot-corrupt")
                continue
            for one in read:
                if one.transaction_start < 0 and is_expired(one, self._settings):
                    continue
                if self._rules.evicts_producers_below_start and one.last_offset < log_start_offset:
                    continue
                self.by_id[one.producer_id] = _Producer(
                    one.producer_epoch,
                    one.coordinator_epoch,
                    one.last_timestamp,
                    one.transaction_start,
                    one.last_offset,
                )
                if one.transaction_start >= 0:
                    self._ongoing[one.transaction_start] = one.producer_id
            self._snapshot_end = self.map_end = offset
            return
        self._snapshot_end = self.map_end = log_start_offset

    def take_in(self, batch: LoadedBatch) -> CompletedTransaction | None:
        """Take in one batch of a scan, and return the transaction that it ends, if any, which is still to be closed with `complete`."""
        if batch.producer_id <= NO_PRODUCER:
            return None
        producer = self.by_id.get(batch.producer_id, _Producer())
        completed, started = _append(producer, batch, self._rules)
        self.by_id[batch.producer_id] = producer
        for first in started:
            self._ongoing[first] = batch.producer_id
        return completed

    def complete(self, one: CompletedTransaction) -> None:
        """Close a transaction (`completeTxn`).

        Raises:
            LoadingError: IllegalArgumentException, where no such transaction is open.
        """
        if self._ongoing.pop(one.first_offset, None) is None:
            raise thrown("IllegalArgumentException", "Attempted to complete transaction which was not started")
        self._unreplicated[one.first_offset] = one

    def load(self, batches: Iterable[LoadedBatch]) -> None:
        """Take in batches below the log end together (`UnifiedLog.loadProducersFromRecords`).

        Raises:
            LoadingError: what Kafka throws at the first batch whose header it can't read, or at a transaction that is not open.
        """
        changed: dict[int, _Producer] = {}
        started: list[tuple[int, int]] = []
        completed: list[CompletedTransaction] = []
        for batch in batches:
            if not isinstance(batch.header_failure, Absent):
                raise LoadingError(batch.header_failure)
            if batch.producer_id <= NO_PRODUCER:
                continue
            producer = changed.get(batch.producer_id)
            if producer is None:
                known = None if self._is_forgetful else self.by_id.get(batch.producer_id)
                producer = _Producer() if known is None else replace(known)
                changed[batch.producer_id] = producer
            ended, firsts = _append(producer, batch, self._rules)
            started += [(batch.producer_id, first) for first in firsts]
            if ended is not None:
                completed.append(ended)
        self.by_id.update(changed)
        for producer_id, first in started:
            self._ongoing[first] = producer_id
        for one in completed:
            self.complete(one)

    def take_snapshot(self, rule: str = "snapshot-written") -> None:
        """Write a snapshot at the end of what is known, unless one was taken there (`takeSnapshot`)."""
        if self.map_end <= self._snapshot_end:
            return
        name = f"{padded(self.map_end)}{SNAPSHOT}"
        length = SNAPSHOT_HEADER_LENGTH + SNAPSHOT_ENTRY_LENGTH * len(self.by_id)
        states: object = tuple(
            ProducerState(
                at, one.epoch, one.coordinator_epoch, one.last_timestamp, one.transaction_start, one.last_offset
            )
            for at, one in self.by_id.items()
        )
        is_shorter = name in self._disk.files and self._disk.length(name) > length
        if is_shorter and not self._rules.truncates_snapshots:
            # The file is written over and not truncated: what is left of a longer one breaks its checksum.
            length, states = self._disk.length(name), LoadFailure("CorruptSnapshotException", "Snapshot is corrupt")
        if self._rules.truncates_snapshots:
            self._disk.refuse_folder(name, "FileNotFoundException")
        self._disk.write(name, length, rule, Content.SNAPSHOT, states)
        self._snapshots[self.map_end] = name
        self._snapshot_end = self.map_end

    def _delete(self, offset: int, rule: str) -> None:
        name = self._snapshots.pop(offset)
        if name in self._disk.files:
            self._disk.delete(name, rule)

    def _clear(self) -> None:
        self.by_id.clear()
        self._ongoing.clear()
        self._unreplicated.clear()


def is_expired(one: ProducerState, settings: LoadSettings) -> bool:
    """Return whether a producer of a snapshot is forgotten for its age (`isProducerExpired`)."""
    return settings.now_ms - one.last_timestamp >= settings.producer_expiration_ms


def _append(
    producer: _Producer, batch: LoadedBatch, rules: LoadingRules
) -> tuple[CompletedTransaction | None, list[int]]:
    """Change a producer by a batch; the transaction that it ends, and the first offsets of those that it begins (`ProducerAppendInfo.append`)."""
    if batch.is_control:
        end = batch.end
        if isinstance(end, LoadFailure):
            if end.exception == SHORT_MARKER and not rules.short_markers_underflow:
                end = end._replace(exception="InvalidRecordException")
            raise LoadingError(end)
        if not isinstance(end, TransactionEnd) and rules.needs_markers:
            raise thrown("NoSuchElementException", "a control batch without records")
        if not isinstance(end, TransactionEnd):
            return None, []  # the records of the marker's batch were removed by compaction
        if rules.fences_markers and batch.producer_epoch < producer.epoch:
            raise thrown(
                "ProducerFencedException", f"Producer's epoch at offset {batch.base_offset} is no longer valid"
            )
        if rules.fences_markers and end.coordinator_epoch < producer.coordinator_epoch:
            raise thrown("TransactionCoordinatorFencedException", f"Invalid coordinator epoch {end.coordinator_epoch}")
        ended = None
        begun: list[int] = []
        if producer.transaction_start < 0 and rules.completes_unknown_transactions:
            producer.transaction_start = batch.base_offset
            begun = [batch.base_offset]
        if producer.transaction_start >= 0:
            ended = CompletedTransaction(batch.producer_id, producer.transaction_start, batch.base_offset, end.is_abort)
        producer.enter_epoch(
            batch.producer_epoch, forgets_batches=rules.evicts_producers_below_start and not rules.marker_is_last_record
        )
        producer.coordinator_epoch, producer.transaction_start = end.coordinator_epoch, -1
        if rules.marker_is_last_record:
            producer.last_offset = batch.base_offset
        if rules.marker_is_last_record or not rules.evicts_producers_below_start:
            producer.last_timestamp = end.timestamp
        return ended, begun
    producer.epoch, producer.last_timestamp, producer.last_offset = (
        batch.producer_epoch,
        batch.max_timestamp,
        batch.last_offset,
    )
    if producer.transaction_start >= 0 and not batch.is_transactional:
        raise thrown("InvalidTxnStateException", f"Expected transactional write from producer {batch.producer_id}")
    if producer.transaction_start < 0 and batch.is_transactional:
        producer.transaction_start = _counted_back(batch) if rules.counts_back_by_sequence else batch.base_offset
        return None, [producer.transaction_start]
    return None, []


def _counted_back(batch: LoadedBatch) -> int:
    """Return the first offset of a batch by the numbers of its records; where these go over the largest one, it lies far behind the batch (`ProducerAppendInfo.append`, before 2.1)."""
    first, delta = batch.base_sequence, batch.last_offset - batch.base_offset
    if first == NO_SEQUENCE:
        return batch.last_offset
    last = delta - (LARGEST_INT32 - first) - 1 if first > LARGEST_INT32 - delta else first + delta
    return batch.last_offset - (last - first)
