"""Files that are read whole and checked alone: their kind decides which parser says what is wrong."""

from collections.abc import Callable, Mapping
from typing import Any

from kforensics.damage import Damage, DamageKind, Gravity, Span
from kforensics.errors import BadChecksum, FormatError, UnexpectedEnd, UnsupportedFormat
from kforensics.formats.checkpoint.clean_shutdown import parse_clean_shutdown
from kforensics.formats.checkpoint.leader_epoch import parse_leader_epoch_checkpoint
from kforensics.formats.checkpoint.meta_properties import parse_meta_properties
from kforensics.formats.checkpoint.offset import check_checkpoint
from kforensics.formats.checkpoint.partition_metadata import parse_partition_metadata
from kforensics.formats.checkpoint.quorum_state import parse_quorum_state
from kforensics.formats.index.offset import parse_offset_index
from kforensics.formats.index.producer_snapshot import empty_file_damage, parse_producer_snapshot
from kforensics.formats.index.time import parse_time_index
from kforensics.formats.index.txn import parse_txn_index
from kforensics.formats.primitives.text_lines import TEXT_FILE_LIMIT
from kforensics.source.naming import FileKind

READ_LIMIT = 1 << 30
"""Bytes of an index or snapshot that are read."""

PARSERS: Mapping[FileKind, Callable[[bytes], Any]] = {
    FileKind.OFFSET_CHECKPOINT: check_checkpoint,
    FileKind.LEADER_EPOCH_CHECKPOINT: parse_leader_epoch_checkpoint,
    FileKind.META_PROPERTIES: parse_meta_properties,
    FileKind.PARTITION_METADATA: parse_partition_metadata,
    FileKind.QUORUM_STATE: parse_quorum_state,
    FileKind.CLEAN_SHUTDOWN: parse_clean_shutdown,
    FileKind.OFFSET_INDEX: parse_offset_index,
    FileKind.TIME_INDEX: parse_time_index,
    FileKind.TXN_INDEX: parse_txn_index,
    FileKind.PRODUCER_SNAPSHOT: parse_producer_snapshot,
}
"""What understands each kind that is read whole."""

_TEXTS = frozenset(
    {
        FileKind.OFFSET_CHECKPOINT,
        FileKind.LEADER_EPOCH_CHECKPOINT,
        FileKind.META_PROPERTIES,
        FileKind.PARTITION_METADATA,
    }
)


def limit_of(kind: FileKind) -> int:
    """Bytes that a file of a kind may have to be read whole; text parsers name what stands behind their limit themselves."""
    return TEXT_FILE_LIMIT + 1 if kind in _TEXTS else READ_LIMIT


def understand(kind: FileKind, data: bytes) -> tuple[Any | None, tuple[Damage, ...]]:
    """The value of a file read whole, nothing where it can't be understood at all, and its damage."""
    if kind is FileKind.PRODUCER_SNAPSHOT and not data:
        return None, (empty_file_damage(),)
    try:
        value = PARSERS[kind](data)
    except FormatError as error:
        return None, (damage_of(error),)
    return value, value.damage


def damage_of(error: FormatError) -> Damage:
    """An error of a whole file as damage."""
    match error:
        case UnsupportedFormat():
            kind = DamageKind.VERSION
        case UnexpectedEnd():
            kind = DamageKind.LENGTH
        case BadChecksum():
            kind = DamageKind.CRC
        case _:
            kind = DamageKind.TEXT
    return Damage(span=error.span, kind=kind, expected=error.expected, found=error.found)


def lock_damage(length: int) -> tuple[Damage, ...]:
    """A lock file is empty in every version."""
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
