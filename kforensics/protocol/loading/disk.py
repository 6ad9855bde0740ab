"""The partition directory while the rules of loading play on it: names and sizes, what was written, and by which rule each file changed.

Nothing here reads a file. What a rule needs of a file's content and was not given, it asks for with a `Need`; whoever reads the evidence gives it
and asks again. So only those bytes are read that a broker would read. Names are read as `LogFileUtils` and `LocalLog.parseTopicPartitionName` do (4.1.0; the same since 0.10).
"""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.formats.log.loader_values import Batches, Content, LoadFailure, Need
from kforensics.protocol.epochs import Epochs
from kforensics.protocol.loading.versions import LoadingRules
from kforensics.units import TopicPartition

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
    has_remote_storage: bool = False
    """remote.storage.enable: older segments are in remote storage, and the log starts where the checkpoint says (KIP-405, 3.6)."""


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
    """Return Kafka's exception, to be raised; one that counts as an I/O error takes the log directory offline."""
    return LoadingError(LoadFailure(exception, message, is_io))


LOG, INDEX, TIME_INDEX, TXN_INDEX = ".log", ".index", ".timeindex", ".txnindex"
SNAPSHOT, DELETED, CLEANED, SWAP = ".snapshot", ".deleted", ".cleaned", ".swap"
INDEXES = (INDEX, TIME_INDEX, TXN_INDEX)
QUORUM_SNAPSHOT_DELETED = ".checkpoint.deleted"
EPOCH_FILE = "leader-epoch-checkpoint"
EPOCH_FILE_BEING_WRITTEN = f"{EPOCH_FILE}.tmp"
METADATA_FILE = "partition.metadata"
ENDINGS = ("-delete", "-future", "-stray")
"""What the name of a directory that was set aside, or is a copy on its way, ends in."""

NEWEST_RULES = LoadingRules()
_NUMBER = re.compile(r"[+-]?\d+")  # as Java does, of the digits of any script
_MOVED = re.compile(r"(\S+)-(\S+)\.(\S+)-(delete|future|stray)")


def padded(offset: int) -> str:
    """Return an offset as file names have it: 20 digits."""
    return f"{offset:020d}" if offset >= 0 else f"-{-offset:020d}"


def known_indexes(rules: LoadingRules) -> tuple[str, ...]:
    """Return the endings of the indexes that a version has."""
    if rules.knows_magic_2:
        return INDEXES
    return (INDEX, TIME_INDEX) if rules.has_time_indexes else (INDEX,)


def offset_of(name: str) -> int:
    """Return the offset in a file name: the number before its first dot, padded or not.

    Raises:
        LoadingError: NumberFormatException.
    """
    text = name.partition(".")[0]
    value = int(text) if (text.isascii() and text.isdecimal()) or _NUMBER.fullmatch(text) else None
    if value is None or not -LARGEST_INT64 - 1 <= value <= LARGEST_INT64:
        raise thrown("NumberFormatException", f'For input string: "{text}"')
    return value


def partition_of_directory(name: str, rules: LoadingRules = NEWEST_RULES) -> TopicPartition | None:
    """Return topic and partition of a directory name; None where it does not parse, which ends the start."""
    if name.endswith(ENDINGS):  # few do
        endings = (("-delete", rules.knows_deletions), ("-future", rules.knows_futures), ("-stray", rules.knows_strays))
        for ending, is_known in endings:
            if is_known and name.endswith(ending):
                if _MOVED.fullmatch(name) is None:
                    return None
                name = name[: name.rindex(".")]
                break
    return _partition_named(name)


@lru_cache(maxsize=1 << 16)
def _partition_named(name: str) -> TopicPartition | None:
    topic, dash, number = name.rpartition("-")
    if not dash or not topic or _NUMBER.fullmatch(number) is None or int(number) > LARGEST_INT32:
        return None
    return TopicPartition(sys.intern(topic), int(number))  # most topics have many partitions


def refused_name(name: str, rules: LoadingRules) -> LoadingError:
    """Return what the name of a directory that does not parse throws (`Log.parseTopicPartitionName`)."""
    topic, _, number = name.rpartition("-")
    if topic and number and not rules.wraps_bad_partitions:
        return thrown("NumberFormatException", f'For input string: "{number}"')
    return thrown("KafkaException", f"Found directory '{name}' is not in the form of topic-partition")


def first_scanned(base_offsets: Sequence[int], recovery_point: int) -> int:
    """Return the index of the first segment that recovery scans, which holds the recovery point (`LogSegments.values`).

    Args:
        recovery_point: of the checkpoint; 0 of a log without one. Below the first segment, that one is scanned.
    """
    index = 0
    for candidate, base_offset in enumerate(base_offsets):
        if base_offset <= recovery_point:
            index = candidate
    return index


def log_start_at_load(first_base: int, checkpointed: int, *, has_remote_storage: bool = False) -> int:
    """Return the start of the loaded log, which is below its first segment only with remote storage (`LogLoader.load`, 3.6)."""
    return checkpointed if has_remote_storage else max(checkpointed, first_base)


def recovery_point_at_load(checkpointed: int, log_end_offset: int, *, clean_shutdown: bool) -> int:
    """Return the recovery point of the loaded log: its end after a clean shutdown, else the checkpointed one within the log (2.8 and later)."""
    return log_end_offset if clean_shutdown else min(checkpointed, log_end_offset)


@dataclass(slots=True)
class DiskFile:
    """One file: which file of the evidence it was, its size, and its content where the rules wrote it."""

    origin: str
    """Its name in the evidence; empty for a file that the rules made."""
    length: int
    rule: str = ""
    is_rewritten: bool = False


class Disk:
    """A working copy of a `LoadedDirectory`."""

    def __init__(self, directory: LoadedDirectory) -> None:
        self._given = directory
        self._folders = directory.folders
        self.files = {name: DiskFile(name, length) for name, length in directory.files.items()}
        self._written: dict[tuple[str, Content], object] = {}
        self._removed: dict[str, str] = {}

    def names(self) -> list[str]:
        """Return the names, sorted as the loader sorts them."""
        return sorted(self.files)

    def exists(self, name: str) -> bool:
        """Whether a file or a folder has this name."""
        return name in self.files or name in self._folders

    def refuse_folder(self, name: str, exception: str = "FileSystemException") -> None:
        """Throw what opening a folder as a file throws.

        Args:
            exception: `FileSystemException` where a channel is opened, `FileNotFoundException` for a stream or an index.

        Raises:
            LoadingError: a folder has this name.
        """
        if name in self._folders:
            raise thrown(exception, f"{name}: Is a directory", is_io=True)

    def length(self, name: str) -> int:
        """Return the length of a file in bytes."""
        return self.files[name].length

    def is_unreadable(self, name: str) -> bool:
        """Whether a file of the evidence can't be opened."""
        return self.files[name].origin in self._given.unreadable

    def content(self, name: str, content: Content, position: int = 0) -> object:
        """Return what the rules wrote into a file, or what was read of it from the evidence.

        Raises:
            LoadingError: IOException, where the file can't be read.
            NeedError: it was not given yet.
        """
        if (name, content) in self._written:
            written = self._written[name, content]
            return written.behind(position) if isinstance(written, Batches) else written
        if self.is_unreadable(name):
            raise thrown("IOException", f"Could not read file {name}", is_io=True)
        need = Need(self.files[name].origin, content, position)
        if need not in self._given.contents:
            raise NeedError(need)
        return self._given.contents[need]

    def create(self, name: str, length: int, rule: str) -> None:
        """Make a file that was not there.

        Raises:
            LoadingError: a folder has this name.
        """
        self.refuse_folder(name)
        self.files[name] = DiskFile("", length, rule, is_rewritten=True)
        self._forget(name)

    def write(self, name: str, length: int, rule: str, content: Content | None = None, value: object = None) -> None:
        """Replace the content of a file, or make it.

        Args:
            content: how `value` is to be read again; None where nothing reads it.

        Raises:
            LoadingError: a folder has this name.
        """
        file = self.files.get(name)
        if file is None:
            self.create(name, length, rule)
        else:
            file.length, file.is_rewritten = length, True
            file.rule = file.rule or rule
        if content is not None:
            self._written[name, content] = value

    def resize(self, name: str, length: int, rule: str) -> None:
        """Truncate or extend a file, whose bytes up to the shorter length stay."""
        file = self.files[name]
        if file.length != length:
            file.length = length
            file.rule = file.rule or rule

    def delete(self, name: str, rule: str) -> None:
        """Remove a file."""
        file = self.files.pop(name)
        self._forget(name)
        if file.origin:
            self._removed[file.origin] = rule

    def rename(self, name: str, to_name: str, rule: str) -> None:
        """Move a file, over one that is there.

        Args:
            to_name: its new name; a file of this name is removed.

        Raises:
            NotModelledError: a folder has the new name, which is replaced where it is empty.
        """
        if to_name in self._folders:
            raise NotModelledError(f"{to_name} is a directory")
        if to_name in self.files:
            self.delete(to_name, rule)
        file = self.files.pop(name)
        file.rule = rule
        self.files[to_name] = file
        for key in [key for key in self._written if key[0] == name]:
            self._written[to_name, key[1]] = self._written.pop(key)

    def _forget(self, name: str) -> None:
        for key in [key for key in self._written if key[0] == name]:
            del self._written[key]

    def tree(self) -> dict[str, int]:
        """Name and size of each file."""
        return {name: self.files[name].length for name in self.names()}

    def written(self) -> Mapping[Need, object]:
        """Return the content of files that the rules wrote."""
        return {Need(name, content): value for (name, content), value in self._written.items()}

    def origins(self) -> dict[str, str]:
        """Return files that kept their bytes, or the first of them, by their names now, with the names they had."""
        return {name: file.origin for name, file in self.files.items() if file.origin and not file.is_rewritten}

    def changes(self) -> tuple[FileChange, ...]:
        """Return the fate of each file that is not as it was."""
        out = [
            FileChange(origin, FileAction.DELETE, Absent.NOT_APPLICABLE, Absent.NOT_APPLICABLE, rule)
            for origin, rule in self._removed.items()
            if origin not in self.files
        ]
        for name, file in self.files.items():
            before = self._given.files.get(file.origin, 0)
            if not file.origin:
                action = FileAction.REBUILD if name in self._removed else FileAction.CREATE
                out.append(FileChange(name, action, Absent.NOT_APPLICABLE, file.length, file.rule))
            elif name != file.origin:
                out.append(FileChange(file.origin, FileAction.RENAME, name, file.length, file.rule))
            elif file.is_rewritten:
                out.append(FileChange(name, FileAction.REBUILD, Absent.NOT_APPLICABLE, file.length, file.rule))
            elif file.length != before:
                action = FileAction.TRUNCATE if file.length < before else FileAction.EXTEND
                out.append(FileChange(name, action, Absent.NOT_APPLICABLE, file.length, file.rule))
        return tuple(sorted(out, key=lambda change: (change.name, change.action)))
