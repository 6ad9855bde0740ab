"""What a broker finds in the files of a partition directory when it loads them, as values: what the rules of loading are given.

`evidence.replica.loader_reader` reads them from bytes, and `protocol.loading` acts on them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.formats.log.batch_table import CONTROL_BIT, TRANSACTIONAL_BIT


class Content(StrEnum):
    """The part of a file that a rule needs to know."""

    BATCHES = "batches"
    """The headers of the batches from a position on."""
    CHECKED_BATCHES = "checked-batches"
    """The same with their checksums: what a scan reads."""
    OFFSET_INDEX = "offset-index"
    TIME_INDEX = "time-index"
    """The first and the last entry of a time index."""
    TXN_INDEX = "txn-index"
    SNAPSHOT = "snapshot"
    EPOCHS = "epochs"
    PARTITION_METADATA = "partition-metadata"
    LAST_TIMESTAMP = "last-timestamp"
    """The timestamp of the last entry of a time index, -1 where it has none."""
    CHANGED = "changed"
    """When the file was changed last, in milliseconds since 1970."""
    LOG_END = "log-end"
    """Where a log of so many segments ends, by the last sound batch of this one or of those before: no rule asks for it."""

    __hash__ = str.__hash__


class ReaderStep(StrEnum):
    """What Kafka's reader of batches does at a position of a file."""

    ENDS = "ends"
    """Too few bytes are left for a batch."""
    THROWS = "throws"
    """A length below 14 is there, at which it throws CorruptRecordException."""
    INVALID = "invalid"
    """It reads a batch whose length or checksum fails."""
    SOUND = "sound"


class Need(NamedTuple):
    """The content of one file, by the name that it has on disk; `position` counts for batches, and is the number of segments for the end of a log."""

    file: str
    content: Content
    position: int = 0


class LoadFailure(NamedTuple):
    """The exception that loading throws."""

    exception: str
    """The simple name of the class."""
    message: str
    is_io: bool = False
    """An IOException, or a KafkaStorageException around one: the log directory goes offline (3.2.1), the process goes on."""
    newer: str = ""
    """That the file is of a version newer than known, in words: a release that knows it does not throw this."""


SHORT_MARKER = "BufferUnderflowException"
"""A marker's value that is too short, as 4.1 throws it; before, an InvalidRecordException."""


class TransactionEnd(NamedTuple):
    """The marker in a control batch."""

    is_abort: bool
    coordinator_epoch: int
    timestamp: int


class LoadedBatch(NamedTuple):
    """A batch as Kafka's reader sees it (`FileLogInputStream.nextBatch`)."""

    position: int
    length: int
    """Bytes of the whole batch."""
    base_offset: int
    last_offset: int
    magic: int
    leader_epoch: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    record_count: int
    """Records, as stored."""
    is_transactional: bool
    is_control: bool
    is_valid: bool
    """Length and checksum hold (`ensureValid`); true where they were not looked at."""
    end: TransactionEnd | LoadFailure | Absent = Absent.NOT_APPLICABLE
    """Of a control batch of a producer: what its marker says, or what reading it throws."""
    base_sequence: int = 0
    """The number of its first record at the producer; -1 for commits of offsets in transactions, which are not numbered."""
    is_compressed_message: bool = False
    """A compressed message of magic 0 or 1, or bytes that say so, whose base offset is inside and was not read."""
    header_failure: LoadFailure | Absent = Absent.NOT_APPLICABLE
    """What reading more of it than its first 17 bytes throws."""


def headed_batch(
    *,
    position: int,
    length: int,
    base_offset: int,
    last_offset: int,
    magic: int,
    leader_epoch: int,
    attributes: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    record_count: int,
    is_valid: bool = True,
    end: TransactionEnd | LoadFailure | Absent = Absent.NOT_APPLICABLE,
) -> LoadedBatch:
    """Return a batch by what its header of magic 2 says (`DefaultRecordBatch`).

    Args:
        leader_epoch: negative for none.
        max_timestamp: in ms, -1 for none.
        producer_id: negative for none.
        producer_epoch: negative for none.
        base_sequence: negative for none.
        end: what a marker in it says, or what reading it throws.
    """
    return LoadedBatch(
        position=position,
        length=length,
        base_offset=base_offset,
        last_offset=last_offset,
        magic=magic,
        leader_epoch=leader_epoch,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        record_count=record_count,
        is_transactional=bool(attributes & TRANSACTIONAL_BIT),
        is_control=bool(attributes & CONTROL_BIT),
        is_valid=is_valid,
        end=end,
        base_sequence=base_sequence,
    )


def bare_batch(
    *,
    position: int,
    length: int,
    offset: int,
    magic: int,
    max_timestamp: int = -1,
    is_valid: bool = True,
    header_failure: LoadFailure | Absent = Absent.NOT_APPLICABLE,
) -> LoadedBatch:
    """Return a batch that has no header of magic 2: a message of magic 0 or 1, which has one offset, or bytes of which no more was read.

    Args:
        offset: its only one; of a wrapper that of its last message.
    """
    return LoadedBatch(
        position=position,
        length=length,
        base_offset=offset,
        last_offset=offset,
        magic=magic,
        leader_epoch=-1,
        max_timestamp=max_timestamp,
        producer_id=-1,
        producer_epoch=-1,
        record_count=1,
        is_transactional=False,
        is_control=False,
        is_valid=is_valid,
        header_failure=header_failure,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Batches:
    """The batches from a position to where Kafka's reader ends."""

    batches: Sequence[LoadedBatch]
    end: int
    """Position behind the last one."""
    end_is_corrupt: bool = False
    """A length below 14 is there, at which the reader throws CorruptRecordException."""
    header_at_end: tuple[int, int] | None = None
    """Offset and length that are there, where more than 12 bytes are left, which Kafka before 0.11 reads; none where they are not known."""

    @property
    def are_sound(self) -> bool:
        """Whether all are of magic 2 and valid, so that a reader with and one without checksums give the same."""
        return all(one.is_valid and one.magic == 2 for one in self.batches)

    def behind(self, position: int) -> "Batches":
        """Return those at or behind a position at which one of them begins."""
        return replace(self, batches=tuple(one for one in self.batches if one.position >= position))

    def moved(self, start: int) -> "Batches":
        """Return the values for a file that begins at a position of this one."""
        moved = tuple(one._replace(position=one.position - start) for one in self.batches)
        return replace(self, batches=moved, end=self.end - start)


class ProducerState(NamedTuple):
    """A producer in a snapshot, as far as loading acts on it."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    last_timestamp: int
    transaction_start: int
    """First offset of its open transaction; -1 for none."""
    last_offset: int = -1
    """Of its last record; -1 for none."""


class TopicIdFile(NamedTuple):
    """The content of `partition.metadata`."""

    version: int
    topic_id: str


class AbortedEntry(NamedTuple):
    """An entry of a transaction index."""

    version: int
    last_offset: int
