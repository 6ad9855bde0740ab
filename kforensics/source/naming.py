"""The grammar of names in a data directory.

    log dir      meta.properties, .lock, .kafka_cleanshutdown, <what>-offset-checkpoint, bootstrap.checkpoint,
                 <partition dir>, remote-log-index-cache (tiered storage), lost+found (of the file system)
    partition    <topic>-<partition> [. <32 hex> (-delete | -future | -stray)]
    files        <20 digits> (.log | .index | .timeindex | .txnindex | .snapshot)
                     [.deleted | .cleaned | .swap | .tmp]
                 <20 digits>-<10 digits> [-<random>] .checkpoint [.part | .deleted]
                 <offset>_<uuid> (.index | .timeindex | .txnindex) [.deleted | .tmp]
                     in remote-log-index-cache, the offset not padded
                 leader-epoch-checkpoint, partition.metadata, quorum-state, and .tmp of each

After `org.apache.kafka.storage.internals.log.LocalLog` (4.3), and `kafka.log.Log` before 3.0. In names ending in
`-delete` and `-stray` the topic may be shortened, since the name stays within 255 characters.
"""

import re
import sys
from codecs import getincrementaldecoder
from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from pathlib import PurePath
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.units import METADATA_TOPICS, TopicPartition

LONGEST_TOPIC = 249
LARGEST_OFFSET = 2**63 - 1
LARGEST_PARTITION = 2**31 - 1
LARGEST_EPOCH = 2**31 - 1

REMOTE_INDEX_CACHE = "remote-log-index-cache"
LOST_AND_FOUND = "lost+found"


class FileKind(StrEnum):
    """The kind of a file, by its name and place."""

    SEGMENT = "segment"
    OFFSET_INDEX = "offset-index"
    TIME_INDEX = "time-index"
    TXN_INDEX = "txn-index"
    PRODUCER_SNAPSHOT = "producer-snapshot"
    LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
    OFFSET_CHECKPOINT = "offset-checkpoint"
    META_PROPERTIES = "meta-properties"
    PARTITION_METADATA = "partition-metadata"
    QUORUM_STATE = "quorum-state"
    METADATA_SNAPSHOT = "metadata-snapshot"
    """Also `bootstrap.checkpoint`, which has the same format."""
    CLEAN_SHUTDOWN = "clean-shutdown"
    LOCK = "lock"
    REMOTE_LOG_STATE = "remote-log-state"
    """`remote_log_snapshot` and `_rlmm_committed_offsets`, which tiered storage kept before 3.8."""
    LOG_FILE = "log-file"
    """A log of the broker written by log4j, such as server.log."""
    SERVER_PROPERTIES = "server-properties"
    SYMBOLIC_LINK = "symbolic-link"
    SPECIAL = "special"
    """A pipe, socket or device: never opened."""
    UNKNOWN = "unknown"


class FileSuffix(StrEnum):
    """The state of a file that is not, or no longer, in use."""

    NONE = ""
    DELETED = "deleted"
    CLEANED = "cleaned"
    SWAP = "swap"
    TMP = "tmp"
    PART = "part"


_LEFT_OVER = frozenset({FileSuffix.TMP, FileSuffix.PART, FileSuffix.CLEANED})


class FileName(NamedTuple):
    """A parsed file name."""

    kind: FileKind
    base_offset: int | Absent = Absent.NOT_APPLICABLE
    """The base offset of a segment and its indexes; of a snapshot, the offset behind its content."""
    leader_epoch: int | Absent = Absent.NOT_APPLICABLE
    """The epoch of the last record in a metadata snapshot."""
    remote_segment_id: str | Absent = Absent.NOT_APPLICABLE
    """The uuid of the remote segment whose index tiered storage cached, as written."""
    suffix: FileSuffix = FileSuffix.NONE

    @property
    def is_transient(self) -> bool:
        """Return whether brokers delete such a file by themselves, so that it may vanish at any time."""
        return self.suffix is not FileSuffix.NONE

    @property
    def is_leftover(self) -> bool:
        """Return whether it is what an unfinished write left: no broker reads it, whatever it holds; it is deleted or written anew."""
        return self.suffix in _LEFT_OVER


class DirectoryState(StrEnum):
    """The state of a partition directory, by its name."""

    LIVE = "live"
    FUTURE = "future"
    DELETED = "deleted"
    STRAY = "stray"


class PartitionDirectoryName(NamedTuple):
    """A parsed name of a partition directory."""

    topic: str
    """Its end is missing where the name of a deleted or stray directory would exceed 255 characters with it."""
    partition: int
    state: DirectoryState = DirectoryState.LIVE
    unique_id: str | Absent = Absent.NOT_APPLICABLE
    """The 32 hexadecimal digits that make the name of a renamed directory unique; not the topic id."""

    @property
    def topic_partition(self) -> TopicPartition:
        """Return the partition of which the directory holds a replica."""
        return TopicPartition(self.topic, self.partition)

    @property
    def is_metadata(self) -> bool:
        """Return whether this is the KRaft metadata log."""
        return self.topic in METADATA_TOPICS


_DIRECTORY = re.compile(r"(?P<topic>@metadata|[a-zA-Z0-9._-]+)-(?P<partition>0|[1-9][0-9]{0,9})", re.ASCII)
_RENAMED = re.compile(r"(?P<live>.+)\.(?P<unique>[0-9a-f]{32})-(?P<state>delete|future|stray)", re.ASCII | re.DOTALL)
_STATES = {"delete": DirectoryState.DELETED, "future": DirectoryState.FUTURE, "stray": DirectoryState.STRAY}

_OFFSET_FILE = re.compile(r"(?P<offset>[0-9]{20})\.(?P<extension>log|index|timeindex|txnindex|snapshot)", re.ASCII)
_METADATA_SNAPSHOT = re.compile(r"(?P<offset>[0-9]{20})-(?P<epoch>[0-9]{10})(?P<random>-[0-9]+)?\.checkpoint", re.ASCII)
_REMOTE_INDEX = re.compile(
    r"(?P<offset>0|[1-9][0-9]{0,18})_(?P<uuid>[A-Za-z0-9_-]{22})\.(?P<extension>index|timeindex|txnindex)", re.ASCII
)
_SUFFIXED = re.compile(r"(?P<plain>.+)\.(?P<suffix>deleted|cleaned|swap|tmp|part)", re.ASCII | re.DOTALL)
_LOG_FILE = re.compile(
    r"(server|state-change|controller|log-cleaner|broker(-?[0-9]+)?|kafka[a-zA-Z0-9_-]*)\.(log|out)([.-][A-Za-z0-9_.-]+)?",
    re.ASCII,
)
_PROPERTIES = re.compile(r"(server|broker|controller|kraft|kafka|log4j2?)[A-Za-z0-9_-]*\.properties", re.ASCII)

_BY_EXTENSION = {
    "log": FileKind.SEGMENT,
    "index": FileKind.OFFSET_INDEX,
    "timeindex": FileKind.TIME_INDEX,
    "txnindex": FileKind.TXN_INDEX,
    "snapshot": FileKind.PRODUCER_SNAPSHOT,
}

_BY_NAME = {
    "leader-epoch-checkpoint": FileKind.LEADER_EPOCH_CHECKPOINT,
    "replication-offset-checkpoint": FileKind.OFFSET_CHECKPOINT,
    "recovery-point-offset-checkpoint": FileKind.OFFSET_CHECKPOINT,
    "log-start-offset-checkpoint": FileKind.OFFSET_CHECKPOINT,
    "cleaner-offset-checkpoint": FileKind.OFFSET_CHECKPOINT,
    "meta.properties": FileKind.META_PROPERTIES,
    "partition.metadata": FileKind.PARTITION_METADATA,
    "quorum-state": FileKind.QUORUM_STATE,
    "bootstrap.checkpoint": FileKind.METADATA_SNAPSHOT,
    ".kafka_cleanshutdown": FileKind.CLEAN_SHUTDOWN,
    ".lock": FileKind.LOCK,
    "remote_log_snapshot": FileKind.REMOTE_LOG_STATE,
    "_rlmm_committed_offsets": FileKind.REMOTE_LOG_STATE,
}

LOG_DIR_MARKERS = frozenset(
    name
    for name, kind in _BY_NAME.items()
    if kind in {FileKind.META_PROPERTIES, FileKind.OFFSET_CHECKPOINT, FileKind.CLEAN_SHUTDOWN}
    or name == "bootstrap.checkpoint"
)
"""The files that only log directories hold."""

_SUFFIXES_OF_SNAPSHOTS = frozenset({FileSuffix.NONE, FileSuffix.DELETED, FileSuffix.PART, FileSuffix.TMP})


@lru_cache(
    maxsize=1 << 14
)  # one name is asked for several times, for each broker and for each pass over its directories
def parse_partition_directory(name: str) -> PartitionDirectoryName | None:
    """Parse the name of a partition directory (`LocalLog.parseTopicPartitionName`)."""
    renamed = _RENAMED.fullmatch(name)
    plain = _DIRECTORY.fullmatch(renamed["live"] if renamed else name)
    if plain is None:
        return None
    topic, partition = sys.intern(plain["topic"]), int(plain["partition"])  # most topics have many partitions
    if len(topic) > LONGEST_TOPIC or topic in {".", ".."} or partition > LARGEST_PARTITION:
        return None
    if renamed is None:
        return PartitionDirectoryName(topic=topic, partition=partition)
    return PartitionDirectoryName(
        topic=topic, partition=partition, state=_STATES[renamed["state"]], unique_id=renamed["unique"]
    )


@lru_cache(maxsize=1 << 12)  # most directories have files of the same names
def parse_file_name(name: str) -> FileName:
    """Parse a file name; a name that no broker writes has the kind `unknown`."""
    suffixed = _SUFFIXED.fullmatch(name)
    if suffixed is not None:
        return _parse_plain(suffixed["plain"], FileSuffix(suffixed["suffix"]))
    return _parse_plain(name, FileSuffix.NONE)


def _parse_plain(name: str, suffix: FileSuffix) -> FileName:
    if (match := _OFFSET_FILE.fullmatch(name)) and suffix is not FileSuffix.PART:
        offset = int(match["offset"])
        if offset <= LARGEST_OFFSET:
            return FileName(kind=_BY_EXTENSION[match["extension"]], base_offset=offset, suffix=suffix)
    elif (match := _METADATA_SNAPSHOT.fullmatch(name)) and suffix in _SUFFIXES_OF_SNAPSHOTS:
        offset, epoch = int(match["offset"]), int(match["epoch"])
        # Only a partial download has the random part.
        is_whole_name = (match["random"] is not None) == (suffix is FileSuffix.PART)
        if is_whole_name and offset <= LARGEST_OFFSET and epoch <= LARGEST_EPOCH:
            return FileName(kind=FileKind.METADATA_SNAPSHOT, base_offset=offset, leader_epoch=epoch, suffix=suffix)
    elif (match := _REMOTE_INDEX.fullmatch(name)) and suffix in {FileSuffix.NONE, FileSuffix.DELETED, FileSuffix.TMP}:
        return FileName(
            kind=_BY_EXTENSION[match["extension"]],
            base_offset=int(match["offset"]),
            remote_segment_id=match["uuid"],
            suffix=suffix,
        )
    elif name in _BY_NAME and suffix in {FileSuffix.NONE, FileSuffix.TMP}:
        return FileName(kind=_BY_NAME[name], suffix=suffix)
    elif suffix is FileSuffix.NONE and _LOG_FILE.fullmatch(name):
        return FileName(kind=FileKind.LOG_FILE)
    elif suffix is FileSuffix.NONE and _PROPERTIES.fullmatch(name):
        return FileName(kind=FileKind.SERVER_PROPERTIES)
    return FileName(kind=FileKind.UNKNOWN)


# Files that stand in for those of a broker: pointers of Git LFS, and text where a broker writes binary data.
#
# A pointer of Git LFS is a text of less than 1,024 bytes whose first line names its version (git-lfs, docs/spec.md). A segment begins with the eight bytes of an
# offset, and no other binary file of a broker with anything that could be read as text either.


HEAD_LENGTH = 1024
"""The first bytes of a file that are looked at."""

TEXT_LENGTH = 1 << 20
"""The bytes at either end that have to be text, too: the values of records may be text of thousands of characters between two heads of batches."""

_FIRST = b"version "
_LFS = re.compile(
    rb"version https?://\S+/spec/v1\n(?:[a-z0-9.-]+ [^\n]*\n)*?oid (\w+):([0-9a-f]{64})\nsize ([0-9]{1,19})\n?"
)
_BINARY = {
    FileKind.SEGMENT: "Kafka log",
    FileKind.OFFSET_INDEX: "index",
    FileKind.TIME_INDEX: "index",
    FileKind.TXN_INDEX: "index",
    FileKind.PRODUCER_SNAPSHOT: "producer snapshot",
    FileKind.METADATA_SNAPSHOT: "metadata snapshot",
}
_NOT_TEXT = re.compile(r"[^\t\n\f\r\x1b\x20-\x7e\x80-\U0010ffff]")


def stand_in(path: PurePath | str, size: int, begun: bytes, read: Callable[[int, int], bytes]) -> str | None:
    """Return what a file is that is not the one its name says, as the predicate of a sentence; None where nothing speaks against it.

    Args:
        begun: its first bytes, a few at least; of nearly all files they tell that nothing else has to be read.
        read: gives the bytes of a position and a length.
    """
    if size < HEAD_LENGTH and _FIRST.startswith(begun[: len(_FIRST)]):
        pointer = _LFS.fullmatch(read(0, HEAD_LENGTH))
        if pointer is not None:
            algorithm, digest, length = (one.decode() for one in pointer.groups())
            return f"it is a Git LFS pointer to a file of {int(length):,} bytes ({algorithm} {digest}), not that file: git lfs pull fetches it"
    what = _BINARY.get(parse_file_name(str(path).rpartition("/")[2]).kind)
    if what is None or not _is_text(read(0, HEAD_LENGTH)):
        return None
    if not (_is_text(read(0, TEXT_LENGTH)) and _is_text(read(max(size - TEXT_LENGTH, 0), TEXT_LENGTH))):
        return None
    return f"it is text and no {what}: something else was put in its place"


def _is_text(data: bytes) -> bool:
    """Whether bytes are text of UTF-8 whose first and last characters may be cut."""
    begun = next((at for at, one in enumerate(data[:4]) if not 0x80 <= one < 0xC0), 0)
    try:
        words = getincrementaldecoder("utf-8")().decode(data[begun:])
    except UnicodeDecodeError:
        return False
    return bool(words) and _NOT_TEXT.search(words) is None
