"""Evidence > Node > Replica > Segment: what the disks say, immutable and without inference across brokers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Absent, Damage, Span
from kforensics.formats.log.batch_table import BatchTable
from kforensics.formats.log.records import Record
from kforensics.units import METADATA_TOPICS, EpochEntry, TopicPartition
from kforensics.words import listed

BUCKET_OFFSETS = 65_536
"""Offsets in one digest bucket; bucket n covers n * 65,536 and up."""

DIGEST_DTYPE = np.dtype([("bucket", "<i8"), ("low", "<u8"), ("high", "<u8"), ("batches", "<i8"), ("position", "<i8")])
"""One digest: 128 bits that add up over segments, the batches in it, and the position of the first of them in its file."""

NO_DIGESTS = np.zeros(0, dtype=DIGEST_DTYPE)
"""Those of a segment of which none were made: one array, since an array takes more room than all else of such a segment."""
NO_DIGESTS.setflags(write=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """The place where a statement can be checked: an input, a file in it, and a run of bytes or a line."""

    input: int
    path: str
    span: Span | Absent = Absent.NOT_APPLICABLE
    line: int | Absent = Absent.NOT_APPLICABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that could not be read, which makes the look incomplete and the exit code 3, or that was left out as it is foreign."""

    input: int
    path: str
    message: str
    position: int | Absent = Absent.NOT_APPLICABLE
    is_foreign: bool = False
    """It is of another cluster or node, and was left out: nothing is incomplete by that."""
    is_silent: bool = False
    """It is a log file of which no line is known; the answer names it among what can't be told."""

    def place(self, inputs: "Sequence[Input]") -> str:
        """Return the whole path of what could not be read, as the input was named."""
        return full_path(inputs, self.input, self.path)


def full_path(inputs: "Sequence[Input]", number: int, path: str) -> str:
    """Return the whole path of a place in an input, as the input was named.

    Args:
        path: relative to it; `..` before it leads to what was found beside the input, below the path that was named.
    """
    given = inputs[number].path.rstrip("/") if number < len(inputs) else ""
    while path.startswith("../") and given.rpartition("/")[2] not in {"", ".", ".."}:
        given, slash, _ = given.rpartition("/")
        path = path[3:]
        if not slash:
            return path
    return given if path == "." else f"{given}/{path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One thing named on the command line, or one node found below it."""

    path: str
    kind: str
    broker_id: int | Absent = Absent.UNKNOWN
    cluster_id: str | Absent = Absent.UNKNOWN
    kafka_version_hint: str | Absent = Absent.UNKNOWN


class CheckpointValue(NamedTuple):
    """One number out of a checkpoint file, with the line that says it."""

    value: int
    citation: Citation


class Lineage(NamedTuple):
    """The beginning and end of a replica's log on disk, with its leader epochs."""

    log_start_offset: int
    log_end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One `.log` file, read: offsets, epochs, digests and damage; positions are bytes in the file."""

    path: str
    base_offset: int
    length: int
    """Bytes of the file."""
    valid_length: int
    """Bytes up to the end of the last sound batch that recovery would keep."""
    recovered_end_offset: int | Absent
    """The offset behind the last batch before the first one that fails, absent where no batch is sound."""
    first_offset: int | Absent
    last_offset: int | Absent
    """The last offset of all sound batches, also of those behind a damaged one."""
    batch_count: int
    record_count: int
    epochs: tuple[EpochEntry, ...]
    """The offset at which each leader epoch begins in this file, in file order; magic 2 batches only."""
    magics: frozenset[int]
    max_timestamp_ms: int | Absent
    digests: NDArray[np.void]
    """The digests, of `DIGEST_DTYPE`, rising by bucket."""
    batches: BatchTable | Absent
    """The whole table where it is small, else absent: ask `BatchReader`."""
    damage: tuple[Damage, ...] = ()
    changed: bool = False
    """The file changed or vanished while it was read."""
    mtime_ns: int = 0
    recovered_batch_count: int = 0
    recovered_record_count: int = 0
    """Before the first batch that fails: what recovery would keep."""
    is_thinned: bool = False
    """Some batches lack records that they were written with, as a cleaner leaves them (magic 2)."""
    thinned_below: int | Absent = Absent.UNKNOWN
    """The offset behind the last batch that lacks such records, or behind offsets that are missing after one; 0 where none does, unknown where it was not recorded."""
    longest_batch: int | Absent = Absent.UNKNOWN
    """Offsets of the longest batch, 0 where there is none; unknown where it was not recorded."""
    batches_from: int = 0
    """Batches below this offset can't be read: a capture holds only digests of them."""
    unread_below: int = 0
    """Batches below this offset were not read: counts, digests, damage and the table are of those from it on."""


def owner_words(number: int, broker_id: int | Absent) -> str:
    """Return the owner of a directory in words: its broker, or the input where no broker is known."""
    return f"input {number + 1}" if isinstance(broker_id, Absent) else f"broker {broker_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One partition directory of one node."""

    input: int
    broker_id: int | Absent
    path: str
    """Relative to the input."""
    log_dir: str
    """Relative to the input; empty where the input is the log dir itself."""
    topic_partition: TopicPartition
    state: str
    """`live`, `future`, `stray` or `deleted`, from the directory's name."""
    topic_id: str | Absent
    segments: tuple[Segment, ...]
    lineage: Lineage
    """The lineage by the batches: a fact. Its log end is that of the last sound batch."""
    checkpoint_epochs: tuple[EpochEntry, ...] | Absent
    """The epochs of `leader-epoch-checkpoint`: a claim, and what the broker acts on."""
    high_watermark: CheckpointValue | Absent
    recovery_point: CheckpointValue | Absent
    log_start: CheckpointValue | Absent
    cleaner_point: CheckpointValue | Absent
    clean_shutdown: bool
    """The log dir holds `.kafka_cleanshutdown`."""
    producer_snapshots: tuple[int, ...] = ()
    """Offsets that name the `.snapshot` files."""
    is_left_out: bool = False
    """No segment of any partition of its input is here: the copy left them all out."""
    is_read_whole: bool = True
    """Its directory could be listed and all of its segments read: else what is not here need not be missing."""
    is_controller: bool = False
    """Of a controller that is no broker."""
    unread_files: tuple[str, ...] = ()
    """Segments in use, `leader-epoch-checkpoint`, or the directory itself, that could not be read: what the log holds and where it ends is unknown."""
    orphan_indexes: tuple[tuple[int, str], ...] = ()
    """Base offset and path of indexes whose segment is not there, and of `leader-epoch-checkpoint` where it begins below every segment."""
    remote_start: int | Absent = Absent.UNKNOWN
    """Where the finished copies of its segments in remote storage begin, by records among the inputs."""
    deleted_segments: tuple[Segment, ...] = ()
    """Segments renamed `.deleted`: content that outlives a truncation or retention."""
    damage: Mapping[str, tuple[Damage, ...]] = field(default_factory=dict)
    """The damage of files other than segments, by path relative to the input."""
    has_records: bool = True
    """Whether its records, or digests that show which are equal, can be read."""

    @property
    def is_live(self) -> bool:
        """Whether it is the directory of a replica that its broker has: not set aside, moved or left over."""
        return self.state == "live"

    @property
    def epochs_from(self) -> int | Absent:
        """Where the leader epochs of its `leader-epoch-checkpoint` begin."""
        epochs = () if isinstance(self.checkpoint_epochs, Absent) else self.checkpoint_epochs
        return epochs[0].start_offset if epochs else Absent.UNKNOWN

    @property
    def begins_behind_its_epochs(self) -> bool:
        """Whether its first leader epoch begins below its first segment: a broker that deletes the beginning of a log takes its epochs along."""
        begins = self.epochs_from
        return isinstance(begins, int) and bool(self.segments) and begins < self.segments[0].base_offset

    @property
    def is_unnamed(self) -> bool:
        """Whether no `meta.properties` says of which broker it is."""
        return isinstance(self.broker_id, Absent)

    @property
    def has_no_log(self) -> bool:
        """Whether no segment is here, with the first of which a broker makes the directory: they were removed, or left out of the copy."""
        is_formatted = self.topic_partition.topic in METADATA_TOPICS and not self.checkpoint_epochs
        is_served = self.state in {"live", "future"}
        return is_served and not self.segments and not self.unread_files and not is_formatted

    @property
    def lacks_end(self) -> bool:
        """Whether its last segment is not here, by the index that is: it was removed, or left out of the copy."""
        end = self.lineage.log_end_offset
        return bool(self.segments) and any(base >= end for base, _ in self.orphan_indexes)

    @property
    def is_log_known(self) -> bool:
        """Whether its log is here up to its end, and could be read: else what it holds, and where it ends, is unknown."""
        return not self.unread_files and not self.has_no_log and not self.lacks_end

    @property
    def lack(self) -> str:
        """Why its log is not known, as the predicate of a sentence about it."""
        if not self.unread_files:
            return f"is not here{'' if self.has_no_log else ' to its end'}: removed, or left out of the copy"
        if self.unread_files == (self.path,):
            return "could not be read"
        names = dict.fromkeys(path.rpartition("/")[2] for path in self.unread_files)
        return f"could not be read whole ({listed(list(names), most=3)})"

    @property
    def batches_from(self) -> int:
        """The offset from which its batches can be read; below it, of some segment only digests are here."""
        return max([segment.batches_from for segment in self.segments] or (0,))

    @property
    def unread_below(self) -> int:
        """The offset from which all of its batches were read, 0 where all were."""
        return max([segment.unread_below for segment in self.segments] or (0,))

    @property
    def owner(self) -> str:
        """The owner of the replica in words: its node, or the input where none is known."""
        words = owner_words(self.input, self.broker_id)
        return words.replace("broker", "controller") if self.is_controller else words

    def cite(self, name: str = "", span: Span | Absent = Absent.NOT_APPLICABLE) -> Citation:
        """Return a citation of a file in the replica's directory, or of the directory."""
        return Citation(input=self.input, path=f"{self.path}/{name}" if name else self.path, span=span)


class BatchReader(Protocol):
    """The interface through which conclusions ask for content: the only way from a rule to bytes, handed in by `evidence.batch_reader`."""

    def batches(self, replica: Replica, first_offset: int, last_offset: int) -> BatchTable:
        """Return every sound batch that touches the offsets, in file order; `segment` indexes `replica.segments`."""
        ...

    def records(self, replica: Replica, first_offset: int, last_offset: int) -> Iterator[Record]:
        """Yield every record at the offsets, in file order, payloads included."""
        ...


class GroupCommit(NamedTuple):
    """An offset that a consumer group committed: its members have read everything below it."""

    partition: TopicPartition
    group: str
    offset: int
    leader_epoch: int | Absent
    """The leader epoch of the last consumed record, if the client sent it (value version 3 and later)."""
    time_ms: int
    citation: Citation
    is_share: bool = False
    """It is where a share group starts."""
    was_at: int | Absent = Absent.NOT_APPLICABLE
    """Of a share group: where an earlier copy knows it further on, for which no record of the log of now says why."""
