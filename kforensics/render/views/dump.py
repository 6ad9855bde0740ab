"""What `dump` shows: the content of files line by line, with the meaning of checkpoint lines; payloads are escaped."""

from collections.abc import Iterator, Mapping
from typing import Any

from kforensics.commands.dump import DumpContent
from kforensics.commands.result import Result
from kforensics.damage import Absent, Damage, Gravity
from kforensics.evidence.content import BatchItem, DumpItem, MemberBlob, Message, RecordItem
from kforensics.evidence.file_kinds import FileEntry
from kforensics.formats.log.batch_table import (
    CODEC_MASK,
    CODECS,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
)
from kforensics.formats.messages.schema import UNKNOWN_TAGGED_FIELDS, Undecoded
from kforensics.render.blocks import Block, Lines
from kforensics.render.escape import escape_text
from kforensics.render.view import View
from kforensics.words import counted, utc_text

HEX_WIDTH = 32
"""The bytes in one line of a payload."""

_MEANINGS = {
    "replication-offset-checkpoint": "high watermark: this broker knew every record below {offset} to be committed",
    "recovery-point-offset-checkpoint": "recovery point: every record below {offset} was flushed to disk",
    "log-start-offset-checkpoint": "log start: every record below {offset} was deleted",
    "cleaner-offset-checkpoint": "cleaned up to {offset}: below it compaction may have removed older records of a key",
}


def blocks(result: Result[DumpContent], view: View) -> Iterator[Block]:
    """Yield the content, as it is read; the answer is known only when all of it has been."""
    yield Lines("Content", _lines(result.body, view))


def _lines(content: DumpContent, view: View) -> Iterator[str]:
    several = len(content) > 1
    for number, file in enumerate(content.files()):
        if several:
            yield ("\n" if number else "") + escape_text(file.shown) + "\n"
        unread = len(content.problems)
        item = None
        for item in file.items():
            for line in text_lines(item, show_payload=view.show_payload, as_text=view.as_text):
                yield line + "\n"
        if item is None and len(content.problems) == unread:
            yield "no entries\n" if content.selection.is_everything else "nothing that was asked for\n"


def text_lines(item: DumpItem, *, show_payload: bool, as_text: bool) -> Iterator[str]:
    """Yield the lines of one item, without line breaks."""
    match item:
        case BatchItem():
            yield _batch_line(item)
        case RecordItem():
            yield from _record_lines(item, show_payload=show_payload, as_text=as_text)
        case FileEntry():
            yield _entry_line(item)
        case Damage():
            yield from damage_lines(item)


def damage_lines(damage: Damage) -> Iterator[str]:
    """Yield the lines of a damaged place: the expected and the found bytes, then the lost offsets."""
    what = {Gravity.DAMAGE: "DAMAGE", Gravity.TORN_TAIL: "torn tail", Gravity.UNREAD: "NOT READ"}.get(
        damage.gravity, "note"
    )
    span = damage.span
    yield (
        f"{what} at byte {span.position}, {counted(span.length, 'byte')} ({damage.kind.value}): "
        f"expected {escape_text(damage.expected)}, found {escape_text(damage.found)}"
    )
    if not isinstance(damage.cause, Absent):
        yield f"    cause: {escape_text(damage.cause.detail)}"
    if not isinstance(damage.offsets_lost, Absent):
        yield f"    offsets {damage.offsets_lost.first}..{damage.offsets_lost.last} can't be read"
    if not isinstance(damage.next_good, Absent):
        yield f"    next sound batch: offset {damage.next_good[0]} at byte {damage.next_good[1]}"


def _batch_line(batch: BatchItem) -> str:
    attributes = batch.attributes
    codec = attributes & CODEC_MASK
    parts = [
        f"{batch.base_offset}..{batch.last_offset}",
        counted(batch.record_count, "record"),
        f"at byte {batch.position}, {counted(batch.length, 'byte')}",
        CODECS[codec] if codec < len(CODECS) else f"codec {codec}",
    ]
    if batch.magic < 2:
        parts.append(f"magic {batch.magic}")
    elif batch.partition_leader_epoch >= 0:
        parts.append(f"leader epoch {batch.partition_leader_epoch}")
    if batch.magic and batch.max_timestamp != NO_TIMESTAMP:
        kind = "appended" if attributes & TIMESTAMP_TYPE_BIT else "created"
        parts.append(f"{kind} {utc_text(batch.max_timestamp)}")
    if batch.magic >= 2:
        parts += _producer_parts(batch)
        if attributes & DELETE_HORIZON_BIT:
            parts.append(f"delete horizon {utc_text(batch.base_timestamp)}")
    parts.append(f"crc {batch.crc:08x}" if batch.crc_valid else f"CRC {batch.crc:08x} DOES NOT MATCH")
    return "  ".join(parts)


def _producer_parts(batch: BatchItem) -> Iterator[str]:
    if batch.producer_id >= 0:
        yield f"producer {batch.producer_id} epoch {batch.producer_epoch}"
        if batch.base_sequence >= 0:
            yield f"sequence {batch.base_sequence}"
    if batch.attributes & CONTROL_BIT:
        yield "control"
    if batch.attributes & TRANSACTIONAL_BIT:
        yield "transactional"


def _record_lines(item: RecordItem, *, show_payload: bool, as_text: bool) -> Iterator[str]:
    record = item.record
    parts = [f"{record.offset}"]
    if record.magic and record.timestamp_ms != NO_TIMESTAMP:
        parts.append(utc_text(record.timestamp_ms))
    parts += [f"key {_length(record.key)}", f"value {_length(record.value)}"]
    if record.headers:
        parts.append(counted(len(record.headers), "header"))
    if record.sequence >= 0:
        parts.append(f"sequence {record.sequence}")
    if item.control is not None:
        parts.append(item.control.value)
    yield "  ".join(parts)
    if item.meaning is not None:
        for side in item.meaning:
            if side is not None:
                yield f"    {message_text(side)}"
    if show_payload:
        yield from _payload_lines("key", record.key, as_text=as_text)
        yield from _payload_lines("value", record.value, as_text=as_text)
        for name, value in record.headers:
            yield from _payload_lines(f"header {escape_text(name)}", value, as_text=as_text)


def _length(payload: bytes | None) -> str:
    return "null" if payload is None else counted(len(payload), "byte")


def _payload_lines(title: str, payload: bytes | None, *, as_text: bool) -> Iterator[str]:
    if payload is None:
        yield f"    {title}: null"
    elif as_text:
        yield f"    {title}: {escape_text(payload)}"
    elif len(payload) <= HEX_WIDTH:
        yield f"    {title}: {payload.hex(' ')}".rstrip()
    else:
        yield f"    {title}:"
        for position in range(0, len(payload), HEX_WIDTH):
            yield f"      {payload[position : position + HEX_WIDTH].hex(' ')}"


def message_text(message: Message) -> str:
    """Format a message in one line: name, version, and the fields that differ from their defaults."""
    name = escape_text(message.name or "message")
    version = "" if message.version is None else f" v{message.version}"
    if isinstance(message, Undecoded):
        return f"{name}{version}: not understood: {escape_text(message.reason)}"
    fields = " ".join(f"{key}={field_text(value)}" for key, value in message.fields.items() if value is not None)
    trailing = f" and {counted(message.trailing, 'byte')} that belong to no field" if message.trailing else ""
    return f"{name}{version} {fields}{trailing}".rstrip()


def field_text(value: Any) -> str:
    """Format the value of a field in one line, escaped."""
    match value:
        case Absent():
            return f"({value.value})"
        case str():
            return escape_text(value) if value and " " not in value else f"'{escape_text(value)}'"
        case bytes():
            return f"0x{value.hex()}" if value else "''"
        case MemberBlob():
            return f"{{{message_text(value.message)}}}"
        case Mapping():
            shown = (
                f"{escape_text(str(name))}={field_text(item)}"
                for name, item in value.items()
                if name != UNKNOWN_TAGGED_FIELDS
            )
            return "{" + " ".join(shown) + "}"
        case tuple():
            return "[" + ", ".join(field_text(item) for item in value) + "]"
        case bool():
            return "yes" if value else "no"
    return str(value)


def _entry_line(entry: FileEntry) -> str:
    fields = entry.fields
    match entry.type:
        case "offset-index-entry":
            return f"offset {fields['offset']} (base + {fields['relative_offset']}) at byte {fields['position']}"
        case "time-index-entry":
            time = utc_text(fields["timestamp_ms"])
            return f"{time} at offset {fields['offset']} (base + {fields['relative_offset']})"
        case "preallocated":
            return f"preallocated: {counted(fields['length'], 'zero byte')} from byte {fields['position']} on"
        case "txn-index-entry":
            return (
                f"producer {fields['producer_id']} aborted {fields['first_offset']}..{fields['last_offset']}; "
                f"last stable offset {fields['last_stable_offset']}"
            )
        case "producer-snapshot":
            match = "matches" if fields["crc_valid"] else "DOES NOT MATCH"
            return f"{counted(fields['count'], 'producer')}, checksum {match}"
        case "offset-checkpoint-entry":
            meaning = _MEANINGS.get(fields["checkpoint"], "{offset}").format(offset=fields["offset"])
            return f"{escape_text(fields['topic'])}-{fields['partition']}  {fields['offset']}  {meaning}"
        case "leader-epoch-entry":
            return (
                f"{fields['leader_epoch']}  {fields['start_offset']}  "
                f"leader epoch {fields['leader_epoch']} began at offset {fields['start_offset']}"
            )
        case "clean-shutdown":
            epoch = fields["broker_epoch"]
            known = "" if isinstance(epoch, Absent) else f" in broker epoch {epoch}"
            return f"the broker was stopped cleanly{known}: logs are not recovered when it starts"
        case "lock":
            return "lock of a broker process; it is never deleted, and says nothing about a broker being alive"
    shown = "  ".join(f"{name}={field_text(value)}" for name, value in fields.items())
    return f"{entry.type}  {shown}"
