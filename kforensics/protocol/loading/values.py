"""What the rules of loading work on: a partition directory as values, and what loading makes of it.

Nothing here reads a file. What a rule needs of a file's content and was not given, it asks for with a `Need`; whoever reads the evidence gives it
and asks again. So only those bytes are read that a broker would read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.replica.loader_values import LoadFailure, Need
from kforensics.protocol.epochs import Epochs

LARGEST_INT32 = (1 << 31) - 1
LARGEST_INT64 = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedDirectory:
    """A partition directory: its name, its plain files with their sizes, and what has been read of them."""

    name: str
    files: Mapping[str, int]
    folders: frozenset[str] = frozenset()
    """Names of what lies there and is no plain file."""
    unreadable: frozenset[str] = frozenset()
    """Files that can't be opened."""
    contents: Mapping[Need, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSettings:
    """Topic and broker settings that loading depends on; the defaults are Kafka's."""

    index_length: int = 10_485_760
    """segment.index.bytes."""
    index_interval: int = 4_096
    """index.interval.bytes."""
    producer_expiration_ms: int = 86_400_000
    """producer.id.expiration.ms (3.4); before, transactional.id.expiration.ms, 7 days."""
    now_ms: int = 0
    largest_message: int = 1_000_012
    """max.message.bytes, by which Kafka before 0.11 takes longer messages for corrupt when it scans."""


class FileAction(StrEnum):
    """The fate of a file."""

    DELETE = "delete"
    RENAME = "rename"
    TRUNCATE = "truncate"
    CREATE = "create"
    REBUILD = "rebuild"
    EXTEND = "extend"

    __hash__ = str.__hash__


class FileChange(NamedTuple):
    """One file that loading changes."""

    name: str
    action: FileAction
    to_name: str | Absent
    to_length: int | Absent
    """Bytes once it is loaded; absent where it is deleted."""
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedState:
    """A log in memory: once it is loaded, or as far as its files show it before."""

    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    last_stable_offset: int | Absent
    """Once the high watermark has reached the log end."""
    epochs: Epochs
    producer_count: int = 0


class ScannedSegment(NamedTuple):
    """A segment that is read through, and what becomes of it."""

    base_offset: int
    file: str
    length: int
    """Bytes before."""
    kept_length: int
    """Bytes after."""
    end_offset: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOutcome:
    """The result of one load of a partition directory."""

    state: LoadedState | Absent
    """Absent where loading throws."""
    failure: LoadFailure | Absent
    tree: Mapping[str, int]
    """Name and size of each file right after the load, or after what had changed before it threw."""
    changes: tuple[FileChange, ...]
    scanned: tuple[ScannedSegment, ...]
    deleted_segments: tuple[int, ...]
    """Base offsets of sound or unsound segments that recovery deletes."""
    written: Mapping[Need, object]
    """The content of files that loading wrote, by their new names: what the next start reads."""
    origins: Mapping[str, str]
    """Names after the load of files that kept their bytes, with the names they had."""


class Unpredictable(NamedTuple):
    """A case that the rules don't model."""

    reason: str


class LoadingError(Exception):
    """Kafka's exception while a rule plays on; `failure` says which."""

    def __init__(self, failure: LoadFailure) -> None:
        super().__init__(failure.exception)
        self.failure = failure


class NeedError(Exception):
    """A rule needs content that was not given."""

    def __init__(self, need: Need) -> None:
        super().__init__(need.file)
        self.need = need


class NotModelledError(Exception):
    """A case that the rules don't model."""


def thrown(exception: str, message: str, *, is_io: bool = False) -> LoadingError:
    """Return Kafka's exception, to be raised.

    Args:
        exception: the name of the class in Java, without its package.
        is_io: whether it counts as an I/O error, at which the log directory goes offline.
    """
    return LoadingError(LoadFailure(exception, message, is_io))
