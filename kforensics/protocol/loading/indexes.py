"""The three indexes of a segment while it loads (`AbstractIndex`, `OffsetIndex`, `TimeIndex`, `TransactionIndex`, 4.1.0; the same in 3.x)."""

from collections.abc import Callable, Sequence
from typing import cast

from kforensics.formats.index import OFFSET_ENTRY_LENGTH, TIME_ENTRY_LENGTH, TXN_ENTRY_LENGTH, TimeEnds
from kforensics.formats.log.batch_table import NO_TIMESTAMP
from kforensics.formats.log.loader_values import AbortedEntry, Content
from kforensics.protocol.loading.disk import LARGEST_INT32, Disk, NotModelledError, thrown

WARM_LENGTH = 8_192
"""Bytes at the end of an index that a lookup tries first (`AbstractIndex.warmEntries`)."""
EXTENDED = "active-index-extended"
"""The rule by which the indexes of the last segment get their full length."""


class OffsetIndex:
    """`.index`: relative offset and position of one batch in so many bytes."""

    def __init__(
        self, disk: Disk, name: str, base_offset: int, largest_length: int, rule: str, *, has_warm_end: bool = True
    ) -> None:
        self._disk, self._name, self._base, self._rule = disk, name, base_offset, rule
        self._has_warm_end = has_warm_end
        self._largest = largest_length // OFFSET_ENTRY_LENGTH * OFFSET_ENTRY_LENGTH
        if name in disk.files:
            self.count = disk.length(name) // OFFSET_ENTRY_LENGTH
        else:
            disk.refuse_folder(name, "FileNotFoundException")
            disk.write(name, self._largest, rule, Content.OFFSET_INDEX, ())
            self.count = 0
        self._own: list[tuple[int, int]] | None = None
        """Entries since it was emptied; until then those of the file count."""
        self._appended: int | None = None
        """The offset appended last, which relative offsets of 32 bits may not hold before 2.0."""

    def entry(self, at: int) -> tuple[int, int]:
        """Return relative offset and position of an entry; zeros where the file was extended."""
        entries = self._own
        if entries is None:
            entries = cast("list[tuple[int, int]]", self._disk.content(self._name, Content.OFFSET_INDEX))
        return entries[at] if at < len(entries) else (0, 0)

    @property
    def last_offset(self) -> int:
        """The offset of the last entry; the base offset where there is none."""
        if self._appended is not None:
            return self._appended
        return self._base + (self.entry(self.count - 1)[0] if self.count else 0)

    def lookup(self, target: int) -> int:
        """Return the position from which to look for an offset: that of the largest entry not above it, or 0."""
        slot = self._slot(target)
        return 0 if slot < 0 else self.entry(slot)[1]

    def is_corrupt(self, *, least: int) -> bool:
        """Whether its sanity check fails (`OffsetIndex.sanityCheck`, before 2.3)."""
        return self._disk.length(self._name) % OFFSET_ENTRY_LENGTH != 0 or (
            self.count > 0 and self.entry(self.count - 1)[0] < least
        )

    def reset(self) -> None:
        """Empty it and give it its full length (`AbstractIndex.reset`)."""
        self._own, self.count, self._appended = [], 0, None
        self._disk.write(self._name, self._largest, self._rule, Content.OFFSET_INDEX, self._own)

    def resize(self, length: int) -> None:
        """Truncate or extend the file to whole entries (`AbstractIndex.resize`).

        Args:
            length: in bytes, rounded down to a multiple of an entry's.

        Raises:
            LoadingError: IllegalArgumentException, where the entries do not fit.
        """
        rounded = length // OFFSET_ENTRY_LENGTH * OFFSET_ENTRY_LENGTH
        if self._disk.length(self._name) != rounded and self.count * OFFSET_ENTRY_LENGTH > rounded:
            raise thrown("IllegalArgumentException", "newPosition > limit")
        self._disk.resize(self._name, rounded, EXTENDED)

    def trim(self) -> None:
        """Truncate the file to its entries."""
        self.resize(self.count * OFFSET_ENTRY_LENGTH)

    def append(self, offset: int, position: int) -> None:
        """Add an entry, which must be above the last one (`OffsetIndex.append`).

        Args:
            offset: absolute; it is stored relative to the base offset as int32, and wraps where it does not fit.

        Raises:
            LoadingError: IllegalArgumentException of a full index, InvalidOffsetException of an offset that is not above.
        """
        assert self._own is not None
        if self.count >= self._disk.length(self._name) // OFFSET_ENTRY_LENGTH:
            raise thrown("IllegalArgumentException", f"Attempt to append to a full index (size = {self.count}).")
        if self.count and offset <= self.last_offset:
            raise thrown("InvalidOffsetException", f"Attempt to append an offset {offset} no larger than the last one")
        self._own.append(((offset - self._base + 2**31) % 2**32 - 2**31, position))
        self._appended = offset
        self.count += 1

    def truncate(self, offset: int) -> None:
        """Remove the entries at and above an offset (`OffsetIndex.truncateTo`)."""
        slot = self._slot(offset)
        kept = 0
        if slot >= 0:
            kept = slot if self.entry(slot)[0] == offset - self._base else slot + 1
        self._own = [self.entry(at) for at in range(kept)]
        self.count, self._appended = kept, None
        self._disk.write(self._name, self._largest, self._rule, Content.OFFSET_INDEX, self._own)

    def _slot(self, target: int) -> int:
        warm = WARM_LENGTH // OFFSET_ENTRY_LENGTH if self._has_warm_end else None
        return lower_bound(lambda at: self._base + self.entry(at)[0], self.count, target, warm)


def lower_bound(key: Callable[[int], int], count: int, target: int, warm: int | None) -> int:
    """Return the slot of the largest entry not above a target, -1 for none (`AbstractIndex.largestLowerBoundSlotFor`).

    Args:
        warm: entries at the end that are tried first (2.3); none before.
    """
    if not count:
        return -1
    hot = 0 if warm is None else max(0, count - 1 - warm)
    if key(hot) < target or (warm is None and key(0) == target):
        low, high = hot, count - 1
    elif key(0) > target:
        return -1
    else:
        low, high = 0, hot
    while low < high:
        middle = (low + high + 1) // 2
        found = key(middle)
        if found == target:
            return middle
        low, high = (low, middle - 1) if found > target else (middle, high)
    return low


class TimeIndex:
    """`.timeindex`; of one from disk only the length counts, of one that is rebuilt its last entry."""

    def __init__(self, disk: Disk, name: str, base_offset: int, largest_length: int, rule: str) -> None:
        self._disk, self._name, self._base, self._rule = disk, name, base_offset, rule
        self._largest = largest_length // TIME_ENTRY_LENGTH * TIME_ENTRY_LENGTH
        if name in disk.files:
            self.count = disk.length(name) // TIME_ENTRY_LENGTH
        else:
            disk.refuse_folder(name, "FileNotFoundException")
            disk.create(name, self._largest, rule)
            self.count = 0
        self._last = (NO_TIMESTAMP, base_offset)

    def is_corrupt(self) -> bool:
        """Whether its sanity check fails (`TimeIndex.sanityCheck`, before 2.3)."""
        length = self._disk.length(self._name)
        if length % TIME_ENTRY_LENGTH or not self.count or self._disk.files[self._name].is_rewritten:
            return length % TIME_ENTRY_LENGTH != 0
        ends = cast("TimeEnds", self._disk.content(self._name, Content.TIME_INDEX))
        return ends.last_timestamp < ends.first_timestamp or ends.last_relative_offset < 0

    def reset(self) -> None:
        """Empty it and give it its full length."""
        self.count, self._last = 0, (NO_TIMESTAMP, self._base)
        self._disk.write(self._name, self._largest, self._rule)

    def resize(self, length: int) -> None:
        """Truncate or extend the file to whole entries (`AbstractIndex.resize`).

        Args:
            length: in bytes, rounded down to a multiple of an entry's.

        Raises:
            LoadingError: IllegalArgumentException, where the entries do not fit.
        """
        rounded = length // TIME_ENTRY_LENGTH * TIME_ENTRY_LENGTH
        if self._disk.length(self._name) != rounded and self.count * TIME_ENTRY_LENGTH > rounded:
            raise thrown("IllegalArgumentException", "newPosition > limit")
        self._disk.resize(self._name, rounded, EXTENDED if rounded else self._rule)

    def remove(self) -> None:
        """Remove the file, which a scan makes again (before 1.1)."""
        self._disk.delete(self._name, self._rule)

    def trim(self) -> None:
        """Truncate the file to its entries."""
        self.resize(self.count * TIME_ENTRY_LENGTH)

    def append(self, timestamp: int, offset: int, *, skips_full_check: bool = False) -> None:
        """Add an entry where its timestamp is above the last one's (`TimeIndex.maybeAppend`).

        Args:
            skips_full_check: whether the last slot may be taken, as at the end of a scan.

        Raises:
            LoadingError: IllegalArgumentException of a full index, InvalidOffsetException of an offset below the last one.
        """
        if not skips_full_check and self.count >= self._disk.length(self._name) // TIME_ENTRY_LENGTH - 1:
            raise thrown("IllegalArgumentException", f"Attempt to append to a full time index (size = {self.count}).")
        if self.count and offset < self._last[1]:
            raise thrown("InvalidOffsetException", f"Attempt to append an offset ({offset}) below the last one")
        if timestamp > self._last[0]:
            self._last = (timestamp, offset)
            self.count += 1


class NoTimeIndex(TimeIndex):
    """The time index of a version that has none (before 0.10.1): what is done to it changes no file."""

    def __init__(self) -> None:
        self.count = 0

    def is_corrupt(self) -> bool:
        """Never."""
        return False

    def reset(self) -> None:
        """Do nothing."""

    def remove(self) -> None:
        """Do nothing."""

    def resize(self, length: int) -> None:
        """Do nothing."""

    def append(self, timestamp: int, offset: int, *, skips_full_check: bool = False) -> None:
        """Do nothing."""


class TxnIndex:
    """`.txnindex`, which is there only where a transaction was aborted."""

    def __init__(self, disk: Disk, name: str, base_offset: int, *, reads_whole_versions: bool = True) -> None:
        self._disk, self._name, self._base = disk, name, base_offset
        self._reads_whole_versions = reads_whole_versions
        disk.refuse_folder(name)
        self._is_open = name in disk.files
        self._own: list[AbortedEntry] | None = None

    def is_corrupt(self) -> bool:
        """Whether its sanity check fails (`TransactionIndex.sanityCheck`): an entry ends below the segment.

        Raises:
            LoadingError: a version that is not known.
        """
        if not self._is_open or self._disk.length(self._name) < TXN_ENTRY_LENGTH:
            return False
        for entry in cast("Sequence[AbortedEntry]", self._disk.content(self._name, Content.TXN_INDEX)):
            if entry.version and self._reads_whole_versions:
                words = f"Unexpected aborted transaction version {entry.version} in transaction index {self._name}, supported version range is 0 to 0"
                raise thrown("KafkaException", words)
            # An arithmetic shift leaves the first byte with its sign.
            if entry.version >> 8 > 0:
                raise thrown("KafkaException", f"Unexpected aborted transaction version {entry.version >> 8}")
            if entry.last_offset < self._base:
                return True
        return False

    def rename(self, name: str) -> None:
        """Take another name: a file that lies there under it is not opened before the first entry (`TransactionIndex.renameTo`)."""
        self._name = name

    def reset(self) -> None:
        """Remove all entries."""
        self._own = []
        if self._is_open:
            self._disk.write(self._name, 0, "index-rebuilt", Content.TXN_INDEX, self._own)

    def remove(self) -> None:
        """Remove the file (`TransactionIndex.delete`, before 1.0)."""
        if self._is_open:
            self._disk.delete(self._name, "index-rebuilt")
            self._is_open = False

    def append(self, last_offset: int) -> None:
        """Add an aborted transaction; the file is made where it is the first (`TransactionIndex.append`).

        Raises:
            LoadingError: IllegalArgumentException, where the marker before is at this offset or above.
            NotModelledError: the index would be written over that of another segment.
        """
        assert self._own is not None
        if self._own and self._own[-1].last_offset >= last_offset:
            raise thrown(
                "IllegalArgumentException", "The last offset of appended transactions must increase sequentially"
            )
        if not self._is_open and self._name in self._disk.files:
            raise NotModelledError("entries over those of a transaction index that another segment left")
        self._own.append(AbortedEntry(0, last_offset))
        self._is_open = True
        length = len(self._own) * TXN_ENTRY_LENGTH
        self._disk.write(self._name, length, "index-rebuilt", Content.TXN_INDEX, self._own)


def can_be_relative(base_offset: int, offset: int) -> bool:
    """Return whether an index can hold an offset of a segment (`AbstractIndex.canAppendOffset`)."""
    return 0 <= offset - base_offset <= LARGEST_INT32
