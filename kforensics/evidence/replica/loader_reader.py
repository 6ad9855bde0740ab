"""A broker's log and partition directories as its start finds them: markers, checkpoints and files as Kafka's loader reads them, and what reading them throws.

The readers of `formats` are made for evidence: they go on behind damage and say what it is. These stop where Kafka stops: `FileLogInputStream`,
`CheckpointFile`, `LeaderEpochCheckpointFile`, `PartitionMetadataReadBuffer` (4.1.0; the same from 3.3 on).
"""

import re
import stat
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, cast

from kforensics.errors import EvidenceError, EvidenceUnreadable, FormatError, NewerThanKnown, newer_than_known
from kforensics.evidence.discovery.inputs import FoundInput
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.model import Problem
from kforensics.evidence.replica.captured_loading import captured_content
from kforensics.evidence.replica.loader_scan import ScannedParts, ScansAhead, read_batches, scan_batches
from kforensics.formats.checkpoint.lines import CHECKPOINT_VERSION
from kforensics.formats.checkpoint.properties import ZERO_UUID
from kforensics.formats.index import (
    OFFSET_INDEX_LAYOUT,
    parse_producer_snapshot,
    parse_txn_index,
    read_last_time_entry,
    read_time_ends,
)
from kforensics.formats.log.loader_values import (
    AbortedEntry,
    Content,
    LoadFailure,
    Need,
    ProducerState,
    TopicIdFile,
)
from kforensics.formats.primitives.text_lines import parse_integer
from kforensics.source.mapped import EvidenceFile, open_evidence, read_evidence
from kforensics.source.store import ForeignPath
from kforensics.source.walk import Obstacle, join
from kforensics.units import EpochEntry, TopicPartition

MARKER = ".kafka_cleanshutdown"
RECOVERY_POINTS, LOG_STARTS = "recovery-point-offset-checkpoint", "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_POSITIONS = "cleaner-offset-checkpoint"
CHECKPOINT_LIMIT = 64 << 20


@dataclass(frozen=True, slots=True)
class FoundDirectory:
    """A sub-directory of a log directory, whatever its name; what is in it is taken from the listing whenever it is asked for."""

    name: str
    path: str
    """Relative to the input."""
    _input: FoundInput
    _without: Collection[str]

    def content(self, *, once: bool = False) -> "DirectoryContent":
        """Return what is in it."""
        rows, obstacles = self._input.listings.rows(self.path, once=once)
        files: dict[str, int] = {}
        folders: list[str] = []
        links: list[str] = []
        for name, mode, length, _ in rows:
            if self._without and join(self.path, name) in self._without:
                continue
            if stat.S_ISREG(mode):
                files[name] = length
            else:
                (links if stat.S_ISLNK(mode) else folders).append(name)
        return DirectoryContent(files, frozenset(folders), tuple(links), obstacles)

    def forget(self) -> None:
        """Drop what is known of it: whoever asks again has it listed again."""
        self._input.listings.forget(self.path)


class DirectoryContent(NamedTuple):
    """The names in a directory."""

    files: dict[str, int]
    """Plain files with their sizes."""
    folders: frozenset[str]
    """Names of what is neither a plain file nor a link."""
    links: tuple[str, ...]
    """Names of symbolic links, which a broker follows and nothing here does."""
    obstacles: tuple[Obstacle, ...]
    """What could not be read of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLogs:
    """One log directory of an input."""

    path: str
    """Relative to the input."""
    has_marker: bool
    recovery_points: dict[TopicPartition, int] | LoadFailure
    log_starts: dict[TopicPartition, int] | LoadFailure
    high_watermarks: dict[TopicPartition, int] | LoadFailure
    cleaner_positions: dict[TopicPartition, int] | LoadFailure
    directories: tuple[FoundDirectory, ...]
    files: frozenset[str]
    """Names of its plain files."""


def find_logs(
    index: int, one: FoundInput, problems: list[Problem], without: Collection[str] = ()
) -> tuple[FoundLogs, ...]:
    """Return the log directories of an input; what can't be read is added to `problems`."""
    return tuple(_log_dir(index, one, log_dir, problems, without) for log_dir in one.log_dir_paths)


def _log_dir(index: int, one: FoundInput, path: str, problems: list[Problem], without: Collection[str]) -> FoundLogs:
    listed, obstacles = one.listings.of(path)
    entries = [each for each in listed if not without or join(path, each.name) not in without]
    problems += [Problem(input=index, path=met.path, message=met.message) for met in obstacles]
    problems += [
        Problem(input=index, path=join(path, entry.name), message="a symbolic link, which is not followed")
        for entry in entries
        if stat.S_ISLNK(entry.mode)
    ]
    names = {entry.name for entry in entries if not entry.is_directory}
    return FoundLogs(
        path=path,
        has_marker=MARKER in names,
        recovery_points=_checkpoint(index, one, join(path, RECOVERY_POINTS), names, problems),
        log_starts=_checkpoint(index, one, join(path, LOG_STARTS), names, problems),
        high_watermarks=_checkpoint(index, one, join(path, HIGH_WATERMARKS), names, problems),
        cleaner_positions=_checkpoint(index, one, join(path, CLEANER_POSITIONS), names, problems),
        directories=tuple(
            FoundDirectory(sys.intern(entry.name), sys.intern(join(path, entry.name)), one, without)
            for entry in entries
            if entry.is_directory
        ),
        files=frozenset(entry.name for entry in entries if stat.S_ISREG(entry.mode)),
    )


def _checkpoint(
    index: int, one: FoundInput, path: str, names: set[str], problems: list[Problem]
) -> dict[TopicPartition, int] | LoadFailure:
    if path.rpartition("/")[2] not in names:
        return {}
    try:
        return read_offset_checkpoint(one.read_small(path, CHECKPOINT_LIMIT))
    except EvidenceError as error:
        problems.append(Problem(input=index, path=path, message=error.problem))
        return LoadFailure("KafkaStorageException", error.problem, is_io=True)


_LINE_END = re.compile(r"\r\n|\r|\n")
_BLANK, _COLON = re.compile(r"[ \t\n\x0b\f\r]+"), re.compile(r":[ \t\n\x0b\f\r]+")
_TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{22}(==)?")
_PAIR, _TRIPLE = 2, 3
_ENTRIES_OF_A_PAGE = 1_024
"""Of an offset index, which are read at once."""
_OFFSET_ENTRY = OFFSET_INDEX_LAYOUT.struct.unpack_from
_SURELY_SHORT = 10
"""Digits of a number that may not fit into 32 bits."""


def read_epoch_file(data: bytes) -> tuple[EpochEntry, ...] | LoadFailure:
    """Return the entries of `leader-epoch-checkpoint`, or what reading it throws (`LeaderEpochCheckpointFile`)."""
    read = _checkpoint_fields(data, _PAIR, ((0, 32), (1, 64)))
    if isinstance(read, LoadFailure):
        return read
    return tuple(EpochEntry(int(epoch), int(start)) for epoch, start in read)


def read_offset_checkpoint(data: bytes) -> dict[TopicPartition, int] | LoadFailure:
    """Return the offsets of a recovery point or log start checkpoint, of two lines the later, or what reading it throws (`OffsetCheckpointFile`)."""
    read = _checkpoint_fields(data, _TRIPLE, ((1, 32), (2, 64)))
    if isinstance(read, LoadFailure):
        return read
    return {TopicPartition(sys.intern(topic), int(partition)): int(offset) for topic, partition, offset in read}


def _checkpoint_fields(
    data: bytes, width: int, numbers: Sequence[tuple[int, int]]
) -> list[Sequence[str]] | LoadFailure:
    """Return the lines of a checkpoint file in fields, some of them numbers of so many bits, as `CheckpointFile.read` takes them."""
    lines = _lines(data)
    if lines is None:
        return _malformed("Input length = 1")
    if not lines:
        return []
    version = _integer(lines[0], 32)
    if version != CHECKPOINT_VERSION:
        newer = (
            ""
            if version is None or version < 0
            else newer_than_known("checkpoint version", version, CHECKPOINT_VERSION)
        )
        return _malformed(f"Unrecognised version or malformed line: {lines[0]}", newer)
    if len(lines) == 1:
        return []
    count = _integer(lines[1], 32)
    if count is None:
        return _malformed(f"Malformed line: {lines[1]}")
    if count < 0:
        return LoadFailure("IllegalArgumentException", f"Illegal Capacity: {count}")
    entries: list[Sequence[str]] = []
    for line in lines[2:]:
        fields = _fields(line)
        if len(fields) != width:
            return _malformed(f"Malformed line: {line}")
        for at, bits in numbers:
            value = _integer(fields[at], bits)
            if value is None:
                return LoadFailure("NumberFormatException", f'For input string: "{fields[at]}"')
            fields[at] = str(value)
        entries.append(fields)
    if len(entries) != count:
        return _malformed(f"Expected [{count}] entries, but found only [{len(entries)}]")
    return entries


def read_topic_id(data: bytes) -> TopicIdFile | LoadFailure:
    """Return the topic id of `partition.metadata`, or what reading it throws (`PartitionMetadataReadBuffer`)."""
    lines = _lines(data)
    if lines is None:
        return _malformed("Input length = 1")
    if not lines:
        return LoadFailure("NullPointerException", "the file is empty")
    fields = _fields(lines[0], _COLON)
    version = _integer(fields[1], 32) if len(fields) == _PAIR else None
    if version is None or version < 0:
        return _malformed(f"Malformed line or unrecognized version: {lines[0]}")
    if len(lines) == 1:
        return LoadFailure("NullPointerException", "the topic id is missing")
    fields = _fields(lines[1], _COLON)
    if len(fields) != _PAIR:
        return _malformed(f"Malformed line: {lines[1]}")
    if _TOPIC_ID.fullmatch(fields[1]) is None:
        return LoadFailure("IllegalArgumentException", f"no topic id: {fields[1]}")
    topic_id = fields[1].removesuffix("==")
    if topic_id == ZERO_UUID:
        return _malformed("Invalid topic ID in partition metadata file")
    return TopicIdFile(version, topic_id)


def _malformed(message: str, newer: str = "") -> LoadFailure:
    return LoadFailure("KafkaStorageException", message, is_io=True, newer=newer)


def _lines(data: bytes) -> list[str] | None:
    """Lines as `BufferedReader.readLine` gives them; None where they are no UTF-8."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    lines = _LINE_END.split(text)
    return lines[:-1] if not lines[-1] else lines


def _fields(line: str, between: re.Pattern[str] = _BLANK) -> list[str]:
    """Fields as `Pattern.split` gives them: trailing empty ones are dropped."""
    fields = between.split(line)
    while len(fields) > 1 and not fields[-1]:
        fields.pop()
    return fields


def _integer(text: str, bits: int) -> int | None:
    if len(text) < _SURELY_SHORT and text.isascii() and text.isdecimal():
        return int(text)
    return parse_integer(text.encode(errors="replace"), bits=bits)


SMALL_FILE_LIMIT = 64 << 20
REMEMBERED_FILES, REMEMBERED_LENGTH = 1_024, 256
"""Small files of each kind that are decoded once, and the most bytes of one of them."""


def known_epochs(place: PartitionPlace) -> tuple[EpochEntry, ...]:
    """Return the leader epochs by the checkpoint of a directory; none where there is no such file, or it can't be read."""
    try:
        found = read_needed(place.state.listings.root / place.path, Need("leader-epoch-checkpoint", Content.EPOCHS))
    except EvidenceError:
        return ()
    return () if isinstance(found, LoadFailure) else tuple(cast("Sequence[EpochEntry]", found))


def read_needed(folder: Path, need: Need, scans: ScansAhead | None = None) -> object:
    """Return the content that a rule asks for.

    Raises:
        EvidenceError: the file can't be read.
        MissingBytes: it is in a capture, which does not hold what is asked for.
    """
    path: Path | str = f"{folder}/{need.file}"
    if isinstance(folder, ForeignPath):
        inside: Path = folder / need.file
        if (kept := captured_content(inside, need)) is not None:
            return kept
        path = inside
    if (decode := _SMALL.get(need.content)) is not None:
        return decode(read_evidence(path, SMALL_FILE_LIMIT))
    with open_evidence(path) as file:
        match need.content:
            case Content.BATCHES:
                return read_batches(file, need.position, checked=False)
            case Content.CHECKED_BATCHES:
                parts: ScannedParts = {}
                if scans is not None and not need.position and file.is_of_the_system:
                    parts = scans.take(str(path), file.size)
                return scan_batches(file, need.position, parts)
            case Content.OFFSET_INDEX:
                return _OffsetEntries(path, file)
            case Content.TIME_INDEX:
                if (ends := read_time_ends(file.read, file.size)) is None:
                    raise EvidenceUnreadable(str(path), "it became shorter while it was read")
                return ends
            case Content.LAST_TIMESTAMP:
                last = read_last_time_entry(file.read, file.size)
                return -1 if last is None else last.timestamp
            case _:
                assert need.content is Content.CHANGED
                return file.mtime_ns // 1_000_000


class _OffsetEntries:
    """The entries of an offset index, read as they are asked for: an active one has more than a million, and most are zeros."""

    def __init__(self, path: Path | str, file: EvidenceFile) -> None:
        self._path, self._count = path, file.size // OFFSET_INDEX_LAYOUT.length
        self._pages: dict[int, bytes] = {}
        if self._count:  # the last one is asked for first
            self._read(file, (self._count - 1) // _ENTRIES_OF_A_PAGE)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, at: int) -> tuple[int, int]:
        page, place = divmod(at, _ENTRIES_OF_A_PAGE)
        if page not in self._pages:
            with open_evidence(self._path) as file:
                self._read(file, page)
        data, position = self._pages[page], place * OFFSET_INDEX_LAYOUT.length
        if len(data) < position + OFFSET_INDEX_LAYOUT.length:
            raise EvidenceUnreadable(str(self._path), "it became shorter while it was read")
        offset, start = _OFFSET_ENTRY(data, position)
        return offset, start

    def _read(self, file: EvidenceFile, page: int) -> None:
        length, first = OFFSET_INDEX_LAYOUT.length, page * _ENTRIES_OF_A_PAGE
        self._pages[page] = file.read(first * length, min(_ENTRIES_OF_A_PAGE, self._count - first) * length)


def _snapshot(data: bytes) -> tuple[ProducerState, ...] | LoadFailure:
    try:
        parsed = parse_producer_snapshot(data)
    except FormatError as error:
        newer = error.problem if isinstance(error, NewerThanKnown) else ""
        return LoadFailure("CorruptSnapshotException", str(error), newer=newer)
    if parsed.damage:
        return LoadFailure("CorruptSnapshotException", parsed.damage[0].expected)
    return tuple(
        ProducerState(
            one.producer_id,
            one.producer_epoch,
            one.coordinator_epoch,
            one.timestamp,
            max(one.current_transaction_first_offset, -1),
            one.last_offset,
        )
        for one in parsed.entries
    )


def _aborted(data: bytes) -> tuple[AbortedEntry, ...]:
    """Version and last offset of each whole entry."""
    return tuple(AbortedEntry(one.version, one.last_offset) for one in parse_txn_index(data).entries)


def _remembered(decode: Callable[[bytes], object]) -> Callable[[bytes], object]:
    """Return a decoder that decodes equal bytes of a small file once: many directories have the same ones."""
    known = lru_cache(REMEMBERED_FILES)(decode)
    return lambda data: known(data) if len(data) <= REMEMBERED_LENGTH else decode(data)


_SMALL: dict[Content, Callable[[bytes], object]] = {
    Content.SNAPSHOT: _remembered(_snapshot),
    Content.TXN_INDEX: _aborted,
    Content.EPOCHS: _remembered(read_epoch_file),
    Content.PARTITION_METADATA: _remembered(read_topic_id),
}
