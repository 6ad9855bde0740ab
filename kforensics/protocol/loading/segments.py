"""One segment while it loads: its files, what is found in them, and how it is recovered (`LogSegment`, 4.1.0; the same in 3.x but where said)."""

from collections.abc import Iterator
from typing import cast

from kforensics.damage import Absent
from kforensics.formats.log.batch_table import (
    HEADER_UP_TO_MAGIC,
    LOG_OVERHEAD,
    NEWEST_MAGIC,
    NO_TIMESTAMP,
    SMALLEST_MESSAGE_LENGTH,
)
from kforensics.formats.log.loader_values import Batches, Content, LoadedBatch
from kforensics.protocol.loading.disk import (
    CLEANED,
    DELETED,
    INDEX,
    LARGEST_INT32,
    LOG,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
    Disk,
    LoadingError,
    LoadSettings,
    NotModelledError,
    known_indexes,
    padded,
    thrown,
)
from kforensics.protocol.loading.indexes import (
    NoTimeIndex,
    OffsetIndex,
    TimeIndex,
    TxnIndex,
    can_be_relative,
)
from kforensics.protocol.loading.log_state import EpochCache, Producers
from kforensics.protocol.loading.versions import LoadingRules

SHORTEST_MESSAGE = SMALLEST_MESSAGE_LENGTH[0]
"""`Message.MinMessageOverhead`."""
REBUILT, CREATED, SPLIT = "index-rebuilt", "index-created", "segment-split"
COPY_LENGTH = 1 << 20
"""Bytes that splitting copies at a time (`LogSegment.appendChunkFromFile`)."""
OVERFLOW = "LogSegmentOffsetOverflowException"
ENDS_OF_SCAN = frozenset({"CorruptRecordException", "InvalidRecordException"})


class Segment:
    """A segment that the loader has opened."""

    def __init__(
        self, disk: Disk, base_offset: int, settings: LoadSettings, rules: LoadingRules, *, suffix: str = ""
    ) -> None:
        self.base_offset, self._disk, self._settings, self._rules = base_offset, disk, settings, rules
        self._suffix = suffix
        stem = padded(base_offset)
        self.names = {ending: f"{stem}{ending}{suffix}" for ending in (LOG, *known_indexes(rules))}
        if self.log not in disk.files:
            disk.refuse_folder(self.log, "FileSystemException" if rules.knows_magic_2 else "FileNotFoundException")
            disk.create(self.log, 0, "segment-created")
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        if rules.opens_indexes_at_once:
            _ = self.offset_index, self.time_index
        self.txn_index = TxnIndex(
            disk,
            self.names.get(TXN_INDEX, ""),
            base_offset,
            reads_whole_versions=rules.reads_whole_txn_versions,
        )

    @property
    def log(self) -> str:
        """The name of its log file."""
        return self.names[LOG]

    @property
    def length(self) -> int:
        """Bytes of its log file."""
        return self._disk.length(self.log)

    @property
    def offset_index(self) -> OffsetIndex:
        """Opened, and made where it is missing, when it is first used (`LazyIndex`)."""
        if self._offset_index is None:
            name = self.names[INDEX]
            self._offset_index = OffsetIndex(
                self._disk,
                name,
                self.base_offset,
                self._settings.index_length,
                self._rule(name),
                has_warm_end=not self._rules.opens_indexes_at_once,
            )
        return self._offset_index

    @property
    def time_index(self) -> TimeIndex:
        """Opened, and made where it is missing, when it is first used."""
        if self._time_index is None and not self._rules.has_time_indexes:
            self._time_index = NoTimeIndex()
        elif self._time_index is None:
            name = self.names[TIME_INDEX]
            self._time_index = TimeIndex(
                self._disk, name, self.base_offset, self._settings.index_length, self._rule(name)
            )
        return self._time_index

    def _rule(self, name: str) -> str:
        return REBUILT if name in self._disk.files else CREATED

    def batches(self, start: int, end: int | None = None, *, checked: bool = False) -> Iterator[LoadedBatch]:
        """Yield the batches between two positions, as `FileLogInputStream` reads them.

        Raises:
            LoadingError: CorruptRecordException at a length below 14.
        """
        end = self.length if end is None else min(end, self.length)
        if not self._rules.knows_magic_2:
            yield from self._messages(start, end, checked=checked)
            return
        if start >= end - HEADER_UP_TO_MAGIC:
            return
        content = Content.CHECKED_BATCHES if checked else Content.BATCHES
        found = cast("Batches", self._disk.content(self.log, content, start))
        for batch in found.batches:
            if batch.position >= end - HEADER_UP_TO_MAGIC or batch.position + batch.length > end:
                return
            yield batch
        if found.end_is_corrupt and found.end < end - HEADER_UP_TO_MAGIC:
            raise thrown("CorruptRecordException", "Found record size smaller than minimum record overhead (14)")

    def _messages(self, start: int, end: int, *, checked: bool) -> Iterator[LoadedBatch]:
        """Yield the messages between two positions, as Kafka before 0.11 reads them.

        Raises:
            LoadingError: CorruptRecordException at a length below 14; before 0.10.2 the reading ends there.
        """
        if start >= end - LOG_OVERHEAD:
            return
        content = Content.CHECKED_BATCHES if checked else Content.BATCHES
        found = cast("Batches", self._disk.content(self.log, content, start))
        for batch in found.batches:
            if batch.position + batch.length > end:
                return
            yield self._legacy(batch, checked=checked)
        if not checked and found.end < end - LOG_OVERHEAD:
            _, length = self._header_at_end(found)
            if length < SHORTEST_MESSAGE and not self._rules.finds_messages_cut_short:
                raise thrown("CorruptRecordException", "Record size is smaller than minimum record overhead (14).")

    def _position_of_message(self, offset: int, start: int) -> int | None:
        """Return the position of the message with an offset, whether all of it is in the file or not (`FileMessageSet.searchFor`, before 0.10.2)."""
        if start >= self.length - LOG_OVERHEAD:
            return None
        found = cast("Batches", self._disk.content(self.log, Content.BATCHES, start))
        for batch in found.batches:
            if batch.position >= self.length - LOG_OVERHEAD:
                return None
            if self._legacy(batch, checked=False).last_offset >= offset:
                return batch.position
        if found.end >= self.length - LOG_OVERHEAD:
            return None
        there, length = self._header_at_end(found)
        if self._rules.compares_before_length and there >= offset:
            return found.end
        if length < SHORTEST_MESSAGE:
            raise thrown("IllegalStateException", f"Invalid message size: {length}")
        return found.end if there >= offset else None

    def _header_at_end(self, found: Batches) -> tuple[int, int]:
        """Return offset and length of the message that is cut short at the end.

        Raises:
            NotModelledError: they were not taken along, or say an end that no int holds.
        """
        if found.header_at_end is None:
            raise NotModelledError("a length at the end of a segment, which Kafka before 0.11 reads")
        if found.end + LOG_OVERHEAD + found.header_at_end[1] > LARGEST_INT32:
            raise NotModelledError("a message whose length leads past 2^31 - 1 bytes")
        return found.header_at_end

    def _legacy(self, batch: LoadedBatch, *, checked: bool) -> LoadedBatch:
        """Return a batch as Kafka before 0.11 reads it: a message with an offset and a checksum.

        Raises:
            NotModelledError: it is longer than the default of max.message.bytes, and no file on disk states what the topic allows.
        """
        if checked and batch.length - LOG_OVERHEAD > self._settings.largest_message:
            raise NotModelledError(
                "a message that is longer than the default of max.message.bytes, which no file on disk states"
            )
        if batch.magic < NEWEST_MAGIC:
            return batch
        return batch._replace(
            last_offset=batch.base_offset, is_valid=not checked, header_failure=Absent.NOT_APPLICABLE, magic=1
        )

    def position_of(self, offset: int, least: int = 0) -> int | None:
        """Return the position of the batch with an offset (`translateOffset`); none where the segment ends below it.

        Args:
            least: the position to begin at, where the index says none behind it.

        Raises:
            NotModelledError: the index has a negative position, or a compressed message set is met where base offsets are compared.
        """
        start = self.offset_index.lookup(offset)
        if start < 0:
            raise NotModelledError("an index with a negative position")
        if self._rules.finds_messages_cut_short:
            return self._position_of_message(offset, max(start, least))
        before: LoadedBatch | None = None
        for batch in self.batches(max(start, least)):
            if not self._rules.finds_by_base_offset:
                if last_offset_of(batch) >= offset:
                    return batch.position
                continue
            if batch.is_compressed_message:
                raise NotModelledError("the base offset of a compressed message of magic 0 or 1")
            if batch.base_offset == offset:
                return batch.position
            if batch.base_offset > offset:
                holds = before is not None and last_offset_of(before) >= offset
                return before.position if holds and before is not None else batch.position
            before = batch
        if before is not None and last_offset_of(before) >= offset:
            return before.position
        return None

    def read(self, offset: int, position_limit: int) -> Iterator[LoadedBatch] | None:
        """Return the batches from an offset on and before a position (`LogSegment.read`).

        Args:
            offset: the first one that is wanted; its batch may begin below it.

        Returns:
            The batches, or None where the segment ends below the offset.

        Raises:
            LoadingError: IllegalArgumentException, where the offset lies behind the position.
        """
        start = self.position_of(offset)
        if start is None:
            return None
        if position_limit < start:
            raise thrown("IllegalArgumentException", f"Invalid size: {position_limit - start}")
        return self.batches(start, position_limit)

    def read_up_to(self, offset: int, end: int) -> Iterator[LoadedBatch] | None:
        """Return the batches from an offset up to the one that holds another (`LogSegment.read` with a largest offset, before 2.4).

        Args:
            end: the exclusive end; the batch that holds it is left out.

        Returns:
            The batches, or None where the segment ends below the first offset.
        """
        start = self.position_of(offset)
        if start is None:
            return None
        if end < offset:
            return iter(())
        position = self.position_of(end, start)
        return self.batches(start, self.length if position is None else position)

    def next_offset(self) -> int:
        """Return the offset behind its last batch, read from the last index entry on, unchecked (`readNextOffset`)."""
        found = self.read(self.offset_index.last_offset, self.length)
        last: LoadedBatch | None = None
        for batch in found or ():
            last = batch
        return self.base_offset if last is None else last_offset_of(last) + 1

    def put_in_place(self, rule: str) -> None:
        """Rename a segment that replaces others: its files lose the suffix."""
        for ending, name in self.names.items():
            plain = name.removesuffix(self._suffix)
            if name in self._disk.files:
                if plain + SWAP in self._disk.files and name != plain + SWAP:
                    self._disk.delete(plain + SWAP, rule)  # it had this name on its way
                self._disk.rename(name, plain, rule)
            self.names[ending] = plain
        self._offset_index = self._time_index = None
        self.txn_index.rename(self.names.get(TXN_INDEX, ""))

    def recover(self, producers: Producers, epochs: EpochCache | None) -> int:
        """Scan it, truncate it at the first batch that fails, and rebuild its indexes (`LogSegment.recover`).

        Raises:
            LoadingError: anything but CorruptRecordException and InvalidRecordException, which end the scan; the files stay as they were then.
        """
        self.offset_index.reset()
        self.time_index.reset()
        self.txn_index.reset()
        valid = last_entry = 0
        largest = (NO_TIMESTAMP, self.base_offset)
        try:
            for batch in self.batches(0, checked=True):
                if not batch.is_valid:
                    break
                is_too_far = not can_be_relative(self.base_offset, batch.last_offset)
                if is_too_far and not self._rules.indexes_base_offsets:
                    raise thrown(OVERFLOW, f"Detected offset overflow at offset {batch.last_offset}")
                if batch.max_timestamp > largest[0]:
                    largest = (batch.max_timestamp, batch.last_offset)
                if valid - last_entry > self._settings.index_interval:
                    indexed = batch.base_offset if self._rules.indexes_base_offsets else batch.last_offset
                    self.offset_index.append(indexed, valid)
                    self.time_index.append(*largest)
                    last_entry = valid
                valid += batch.length
                if not self._rules.knows_magic_2:
                    producers.map_end = batch.last_offset + 1
                if batch.magic >= NEWEST_MAGIC:
                    if epochs is not None:
                        epochs.found(batch.leader_epoch, batch.base_offset)
                    ended = producers.take_in(batch)
                    if ended is not None:
                        if ended.is_aborted:
                            self.txn_index.append(ended.last_offset)
                        producers.complete(ended)
                    producers.map_end = batch.last_offset + 1
        except LoadingError as error:
            if error.failure.exception not in ENDS_OF_SCAN:
                raise
        truncated = self.length - valid
        self._disk.resize(self.log, valid, "corruption-found")
        self.offset_index.trim()
        self.time_index.append(*largest, skips_full_check=True)
        self.time_index.trim()
        return truncated

    def split(self) -> list["Segment"]:
        """Copy a segment whose offsets span too much into several, not yet in place (`LocalLog.splitOverflowedSegment`, 2.0).

        Raises:
            LoadingError: it does not span too much, or holds what can't be copied: its files stay as they are.
        """
        after = self.next_offset()
        if after <= self.base_offset or can_be_relative(self.base_offset, after - 1):
            raise thrown("IllegalArgumentException", "Split operation is only permitted for segments with overflow")
        starts: list[int] = []
        bases: list[int] = []
        end = 0
        for batch in self.batches(0):
            if batch.is_compressed_message:
                raise NotModelledError("the base offset of a compressed message of magic 0 or 1")
            last = last_offset_of(batch)
            if not bases or not can_be_relative(bases[-1], last):
                starts.append(batch.position)
                bases.append(batch.base_offset)
                if not can_be_relative(batch.base_offset, last):
                    raise thrown("IllegalStateException", f"Failed to append records from position {batch.position}")
            end = batch.position + batch.length
        if end < self.length:
            raise thrown("NoSuchElementException", "bytes behind the last batch")
        return [
            self._part(base, start, stop) for base, start, stop in zip(bases, starts, [*starts[1:], end], strict=True)
        ]

    def _part(self, base_offset: int, start: int, end: int) -> "Segment":
        """Return a copy of the batches between two positions, with indexes."""
        part = Segment(self._disk, base_offset, self._settings, self._rules, suffix=CLEANED)
        for content in (Content.BATCHES, Content.CHECKED_BATCHES):
            found = cast("Batches", self._disk.content(self.log, content, start)).moved(start)
            self._disk.write(part.log, end - start, SPLIT, content, found)
        part.offset_index.reset()
        part.time_index.reset()
        part.index_appended()
        return part

    def index_appended(self) -> None:
        """Index the batches of a new segment, as appending them does (`LogSegment.appendFromFile`)."""
        largest = (NO_TIMESTAMP, self.base_offset)
        since_entry = 0
        for chunk in self._chunks():
            for batch in chunk:
                if batch.max_timestamp > largest[0]:
                    largest = (batch.max_timestamp, batch.last_offset)
            if since_entry > self._settings.index_interval:
                self.offset_index.append(chunk[-1].last_offset, chunk[0].position)
                self.time_index.append(*largest)
                since_entry = 0
            since_entry += sum(batch.length for batch in chunk)
        self.time_index.append(*largest, skips_full_check=True)
        self.offset_index.trim()
        self.time_index.trim()

    def _chunks(self) -> Iterator[list[LoadedBatch]]:
        """Yield the batches that are indexed as one, of which there are some: each, or those that fit a buffer together."""
        chunk: list[LoadedBatch] = []
        length = 0
        for batch in self.batches(0):
            is_full = length + batch.length > COPY_LENGTH
            if chunk and (is_full or self._rules.indexes_split_batches):
                yield chunk
                chunk, length = [], 0
            chunk.append(batch)
            length += batch.length
        yield chunk

    def truncate_to_base(self) -> int:
        """Truncate it to its base offset (`LogSegment.truncateTo`); the bytes that were truncated."""
        position = self.position_of(self.base_offset)
        if position is None and self._rules.keeps_index_past_end:
            return 0
        self.offset_index.truncate(self.base_offset)
        self.time_index.reset()
        self.txn_index.reset()
        if position is None:
            return 0
        truncated = self.length - position
        self._disk.resize(self.log, position, "invalid-offset-found")
        return truncated

    def resize_indexes(self) -> None:
        """Extend its indexes to their full length: it takes new records (`resizeIndexes`)."""
        self.offset_index.resize(self._settings.index_length)
        self.time_index.resize(self._settings.index_length)

    def sanity_check(self, *, has_index: bool, has_time_index: bool) -> bool:
        """Return whether its indexes are sound; else the segment is scanned (`sanityCheck`)."""
        if not has_index and self._rules.scans_without_index:
            return False
        is_sound = self._are_indexes_sound(has_time_index=has_time_index)
        if not is_sound and self._rules.removes_corrupt_indexes:
            self._disk.delete(self.names[INDEX], REBUILT)
            self.time_index.remove()
            self.txn_index.remove()
        return is_sound

    def _are_indexes_sound(self, *, has_time_index: bool) -> bool:
        if self._rules.opens_indexes_at_once and self.offset_index.is_corrupt(
            least=1 if self._rules.indexes_base_offsets else 0
        ):
            return False
        if not has_time_index and self._rules.empties_new_time_indexes:
            self.time_index.resize(0)
        if self._rules.opens_indexes_at_once and self.time_index.is_corrupt():
            return False
        return not self.txn_index.is_corrupt()

    def mark_deleted(self, rule: str) -> None:
        """Rename its files, to be deleted later (`changeFileSuffixes`)."""
        for ending, name in self.names.items():
            if name in self._disk.files:
                self._disk.rename(name, name + DELETED, rule)
                self.names[ending] = name + DELETED


def last_offset_of(batch: LoadedBatch) -> int:
    """Return the last offset of a batch, for which its header is read.

    Raises:
        LoadingError: the file ends within the header.
    """
    if not isinstance(batch.header_failure, Absent):
        raise LoadingError(batch.header_failure)
    return batch.last_offset
