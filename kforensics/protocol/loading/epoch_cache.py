"""The leader epoch cache and its file while a log loads (`LeaderEpochFileCache`, 3.3 to 4.4)."""

from contextlib import suppress
from itertools import pairwise
from typing import cast

from kforensics.evidence.replica.loader_values import Content, LoadFailure
from kforensics.protocol.epochs import EpochRules, Epochs, assign
from kforensics.protocol.loading.disk import Disk
from kforensics.protocol.loading.names import EPOCH_FILE, EPOCH_FILE_BEING_WRITTEN
from kforensics.protocol.loading.values import LoadingError, NotModelledError, thrown
from kforensics.protocol.loading.versions import LoadingRules
from kforensics.protocol.recovery import epochs_after_scan, repair_epochs_at_load
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
