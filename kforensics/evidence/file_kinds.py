"""The registry of the kinds of files that brokers and controllers write: the meaning of each, its parser, and how its damage is reported.

A kind's name and place are in `source.naming`, its grammar in `formats`. Whoever lists, checks or prints files asks this table, so that a new kind needs
a parser, a name and a row.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from kforensics.damage import Absent, Damage, DamageKind, Gravity, Span
from kforensics.errors import (
    BadChecksum,
    EvidenceUnreadable,
    FormatError,
    LimitReached,
    NewerThanKnown,
    UnexpectedEnd,
    UnsupportedFormat,
)
from kforensics.formats.checkpoint.json_files import parse_clean_shutdown, parse_quorum_state
from kforensics.formats.checkpoint.lines import check_checkpoint, parse_checkpoint, parse_leader_epoch_checkpoint
from kforensics.formats.checkpoint.properties import parse_known_meta_properties, parse_partition_metadata
from kforensics.formats.index import (
    NONE,
    OFFSET_ENTRY_LENGTH,
    SNAPSHOT_ENTRY_LENGTH,
    SNAPSHOT_HEADER_LENGTH,
    TIME_ENTRY_LENGTH,
    TXN_ENTRY_LENGTH,
    empty_file_damage,
    parse_offset_index,
    parse_producer_snapshot,
    parse_time_index,
    parse_txn_index,
)
from kforensics.formats.primitives.text_lines import TEXT_FILE_LIMIT
from kforensics.formats.primitives.word_buffer import without_zero_tail
from kforensics.source.mapped import EvidenceFile
from kforensics.source.naming import FileKind, FileName

READ_LIMIT = 1 << 30
"""Bytes of an index or snapshot that a check reads."""

ENTRIES_LIMIT = 1 << 28
"""Bytes of a file whose entries are listed; brokers write far smaller ones."""

_TEXT_LIMIT = TEXT_FILE_LIMIT + 1
"""Text parsers name what lies behind their limit themselves."""


class FileEntry(NamedTuple):
    """One entry of a file: what it is, and its fields by the names of the format."""

    type: str
    fields: Mapping[str, Any]


Placed = tuple[int, FileEntry | Damage]
Entries = Callable[[bytes, str, FileName], Iterator[FileEntry | Damage]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKindRow:
    """The properties of one kind of file.

    A segment or metadata snapshot is streamed by `formats.segment`, so it has neither `parse` nor `entries`; what no broker writes has none of the three.
    """

    meaning: str
    """One line for people: what the broker keeps in it."""
    parse: Callable[..., Any] | None = None
    """Reads the file whole; gives a value with `damage`, or raises `FormatError` where nothing of it can be understood."""
    entries: Entries | None = None
    """The entries of the file as named fields, damage in its place."""
    limit: int = READ_LIMIT
    """Bytes that the file may have to be read whole."""
    is_preallocated: bool = False
    """Whether brokers leave zeros behind the entries, which `parse` need not be given beside the length of the file."""
    damage_code: str | Absent = Absent.NOT_APPLICABLE
    """The finding for damage in it."""
    is_known: bool = True
    """Whether it has a place beside what a node writes; anything else is named by `ls`."""


def read_and_understand(kind: FileKind, file: EvidenceFile) -> tuple[Any | None, tuple[Damage, ...]]:
    """Read a file whole, without the holes of a sparse one, and return its contents and its damage as `understand` does.

    Raises:
        EvidenceError: it can't be read, is larger than its row allows, or of a version that is newer than known.
    """
    row = FILE_KINDS[kind]
    try:
        if not row.is_preallocated:
            return understand(kind, file.read_all(row.limit))
        file.require_at_most(row.limit)
        return understand(kind, without_zero_tail(file), file.size)
    except NewerThanKnown as error:
        raise EvidenceUnreadable(str(file.path), error.problem) from error


def understand(kind: FileKind, data: bytes, length: int | None = None) -> tuple[Any | None, tuple[Damage, ...]]:
    """Return the contents of a file that was read whole, and its damage.

    Args:
        length: of the file, where `data` leaves zeros at its end out.

    Returns:
        Its value, nothing where it can't be understood at all, and its damage.

    Raises:
        NewerThanKnown: it is of a version that is newer than known.
    """
    if kind is FileKind.PRODUCER_SNAPSHOT and not data:
        return None, (empty_file_damage(),)
    parse = FILE_KINDS[kind].parse
    assert parse is not None
    try:
        value = parse(data) if length is None else parse(data, length)
    except NewerThanKnown:
        raise
    except FormatError as error:
        return None, (damage_of(error),)
    return value, value.damage


def file_entries(file: EvidenceFile, path: Path, name: FileName) -> Iterator[FileEntry | Damage]:
    """Yield the entries of a file that is no segment, and damage in its place; one entry with the length alone where the kind has none."""
    entries = FILE_KINDS[name.kind].entries
    if entries is None:
        yield FileEntry(name.kind.value, {"bytes": file.size})
        return
    data = file.read_all(ENTRIES_LIMIT)
    try:
        yield from entries(data, path.name, name)
    except NewerThanKnown as error:
        raise EvidenceUnreadable(str(path), error.problem) from error
    except FormatError as error:
        yield damage_of(error)


def damage_of(error: FormatError) -> Damage:
    """Return an error of a whole file as damage; its kind follows from the class of the error."""
    gravity = Gravity.DAMAGE
    match error:
        case LimitReached():
            kind, gravity = DamageKind.TOO_LARGE, Gravity.UNREAD
        case UnsupportedFormat():
            kind = DamageKind.VERSION
        case UnexpectedEnd():
            kind = DamageKind.LENGTH
        case BadChecksum():
            kind = DamageKind.CRC
        case _:
            kind = DamageKind.TEXT
    return Damage(span=error.span, kind=kind, expected=error.expected, found=error.found, gravity=gravity)


def lock_damage(length: int) -> tuple[Damage, ...]:
    """Return the damage of a lock file that is not empty, as it is in every version."""
    if not length:
        return ()
    return (
        Damage(
            span=Span(0, length),
            kind=DamageKind.LENGTH,
            expected="an empty file",
            found=f"{length} bytes",
            gravity=Gravity.STALE,
        ),
    )


def _in_place(entries: Iterable[Placed], damage: Iterable[Damage]) -> Iterator[FileEntry | Damage]:
    """Entries with damage behind the entry it lies in."""
    waiting = sorted(damage, key=lambda one: one.span.position)
    for position, entry in entries:
        while waiting and waiting[0].span.position < position:
            yield waiting.pop(0)
        yield entry
    yield from waiting


def _index(
    parse: Callable[[bytes], Any], kind: str, length: int, shown: Callable[[Any, int], Mapping[str, Any]]
) -> Entries:
    """Return what gives the entries of an index, each of a length in bytes and with fields by itself and the base offset."""

    def entries(data: bytes, _file: str, name: FileName) -> Iterator[FileEntry | Damage]:
        index = parse(data)
        base = 0 if isinstance(name.base_offset, Absent) else name.base_offset
        placed = ((at * length, FileEntry(kind, shown(one, base))) for at, one in enumerate(index.entries.tolist()))
        tail = index.zero_tail
        rest = [(tail.position, FileEntry("preallocated", tail._asdict()))] if tail.length else []
        yield from _in_place(chain(placed, rest), index.damage)

    return entries


def _txn_index(data: bytes, _file: str, _name: FileName) -> Iterator[FileEntry | Damage]:
    index = parse_txn_index(data)
    entries = (
        (number * TXN_ENTRY_LENGTH, FileEntry("txn-index-entry", entry._asdict()))
        for number, entry in enumerate(index.entries)
    )
    yield from _in_place(entries, index.damage)


def _producer_snapshot(data: bytes, _file: str, _name: FileName) -> Iterator[FileEntry | Damage]:
    snapshot = parse_producer_snapshot(data)

    def entries() -> Iterator[Placed]:
        header = {"crc": snapshot.crc, "crc_valid": snapshot.crc_valid, "count": len(snapshot.entries)}
        yield 0, FileEntry("producer-snapshot", header)
        for number, entry in enumerate(snapshot.entries):
            shown: dict[str, Any] = {_SHOWN_AS.get(name, name): value for name, value in entry._asdict().items()}
            shown |= {name: Absent.NOT_APPLICABLE for name in _MAY_BE_NONE if shown[name] == NONE}
            yield SNAPSHOT_HEADER_LENGTH + number * SNAPSHOT_ENTRY_LENGTH, FileEntry("producer-snapshot-entry", shown)

    yield from _in_place(entries(), snapshot.damage)


_SHOWN_AS = {"timestamp": "timestamp_ms", "current_transaction_first_offset": "current_txn_first_offset"}
_MAY_BE_NONE = ("last_sequence", "last_offset", "timestamp_ms", "coordinator_epoch", "current_txn_first_offset")


def _checkpoint(data: bytes, file: str, _name: FileName) -> Iterator[FileEntry | Damage]:
    checkpoint = parse_checkpoint(data)
    yield from checkpoint.damage
    for entry in checkpoint.entries:
        yield FileEntry("offset-checkpoint-entry", {"checkpoint": file.removesuffix(".tmp"), **entry._asdict()})


def _leader_epochs(data: bytes, _file: str, _name: FileName) -> Iterator[FileEntry | Damage]:
    checkpoint = parse_leader_epoch_checkpoint(data)
    names = ("leader_epoch", "start_offset", "line")
    entries = (
        (line.position, FileEntry("leader-epoch-entry", dict(zip(names, line[:3], strict=True))))
        for line in checkpoint.lines
    )
    yield from _in_place(entries, checkpoint.damage)


def _meta_properties(data: bytes, _file: str, _name: FileName) -> Iterator[FileEntry | Damage]:
    properties = parse_known_meta_properties(data)
    shown = _fields(properties)
    shown["properties"] = {entry.key: entry.value for entry in shown.pop("entries")}
    yield FileEntry("meta-properties", shown)
    yield from properties.damage


def _one_entry(kind: str, parse: Callable[[bytes], Any]) -> Entries:
    def entries(data: bytes, _file: str, _name: FileName) -> Iterator[FileEntry | Damage]:
        value = parse(data)
        yield FileEntry(kind, _fields(value))
        yield from value.damage

    return entries


def _fields(value: Any) -> dict[str, Any]:
    names = getattr(value, "_fields", None) or tuple(one.name for one in fields(value))
    return {name: getattr(value, name) for name in names if name != "damage"}


def _lock(data: bytes, _file: str, _name: FileName) -> Iterator[FileEntry | Damage]:
    yield FileEntry("lock", {"bytes": len(data)})
    yield from lock_damage(len(data))


FILE_KINDS: Mapping[FileKind, FileKindRow] = {
    FileKind.SEGMENT: FileKindRow(meaning="a segment of a log: its record batches", damage_code="KF101"),
    FileKind.OFFSET_INDEX: FileKindRow(
        meaning="where in the segment some offsets are",
        parse=parse_offset_index,
        is_preallocated=True,
        entries=_index(
            parse_offset_index,
            "offset-index-entry",
            OFFSET_ENTRY_LENGTH,
            lambda one, base: {"offset": base + one[0], "relative_offset": one[0], "position": one[1]},
        ),
        damage_code="KF103",
    ),
    FileKind.TIME_INDEX: FileKindRow(
        meaning="which offset some timestamps have",
        parse=parse_time_index,
        is_preallocated=True,
        entries=_index(
            parse_time_index,
            "time-index-entry",
            TIME_ENTRY_LENGTH,
            lambda one, base: {"timestamp_ms": one[0], "offset": base + one[1], "relative_offset": one[1]},
        ),
        damage_code="KF103",
    ),
    FileKind.TXN_INDEX: FileKindRow(
        meaning="the aborted transactions of a segment",
        parse=parse_txn_index,
        entries=_txn_index,
        damage_code="KF104",
    ),
    FileKind.PRODUCER_SNAPSHOT: FileKindRow(
        meaning="the idempotent producers of a log up to an offset",
        parse=parse_producer_snapshot,
        entries=_producer_snapshot,
        damage_code="KF105",
    ),
    FileKind.LEADER_EPOCH_CHECKPOINT: FileKindRow(
        meaning="the leader epochs of a log and where each began",
        parse=parse_leader_epoch_checkpoint,
        entries=_leader_epochs,
        limit=_TEXT_LIMIT,
        damage_code="KF106",
    ),
    FileKind.OFFSET_CHECKPOINT: FileKindRow(
        meaning="an offset for each partition of a log directory: high watermarks, recovery points, log starts or the cleaner's",
        parse=check_checkpoint,
        entries=_checkpoint,
        limit=_TEXT_LIMIT,
        damage_code="KF107",
    ),
    FileKind.META_PROPERTIES: FileKindRow(
        meaning="which node and cluster a log directory belongs to",
        parse=parse_known_meta_properties,
        entries=_meta_properties,
        limit=_TEXT_LIMIT,
        damage_code="KF108",
    ),
    FileKind.PARTITION_METADATA: FileKindRow(
        meaning="the id of a partition's topic",
        parse=parse_partition_metadata,
        entries=_one_entry("partition-metadata", parse_partition_metadata),
        limit=_TEXT_LIMIT,
        damage_code="KF108",
    ),
    FileKind.QUORUM_STATE: FileKindRow(
        meaning="the vote and the leader that a KRaft node knows",
        parse=parse_quorum_state,
        entries=_one_entry("quorum-state", parse_quorum_state),
        damage_code="KF108",
    ),
    FileKind.METADATA_SNAPSHOT: FileKindRow(meaning="the cluster's metadata at an offset", damage_code="KF109"),
    FileKind.CLEAN_SHUTDOWN: FileKindRow(
        meaning="left by a clean shutdown, taken away by the next start",
        parse=parse_clean_shutdown,
        entries=_one_entry("clean-shutdown", parse_clean_shutdown),
        damage_code="KF108",
    ),
    FileKind.LOCK: FileKindRow(meaning="held by the running broker; empty", entries=_lock, damage_code="KF108"),
    FileKind.REMOTE_LOG_STATE: FileKindRow(meaning="what tiered storage had read of its metadata, before 3.8"),
    FileKind.LOG_FILE: FileKindRow(meaning="a log file of log4j: server.log and its siblings"),
    FileKind.SERVER_PROPERTIES: FileKindRow(meaning="the configuration of a node"),
    FileKind.SYMBOLIC_LINK: FileKindRow(meaning="a symbolic link", is_known=False),
    FileKind.SPECIAL: FileKindRow(meaning="a pipe, socket or device: never opened", is_known=False),
    FileKind.UNKNOWN: FileKindRow(meaning="what no broker writes", is_known=False),
}
"""A row for each kind, in the order of the kinds."""
