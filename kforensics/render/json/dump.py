"""The result of `dump` as JSON, a document or lines; the field names are a promise (`docs/json.md`).

Lines of records are made from columns, the same bytes as `plain_record` gives, without an object for each record.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kforensics.commands.dump import DumpContent
from kforensics.commands.result import Result
from kforensics.damage import Absent, Damage
from kforensics.evidence.content import BatchItem, DumpItem, MemberBlob, Message, RecordItem
from kforensics.evidence.file_kinds import FileEntry
from kforensics.evidence.plain import fields_of, plain_bytes, plain_object, to_plain
from kforensics.evidence.record_lines import PlainCells, RecordLines
from kforensics.formats.columns.record_stream import RecordChunk
from kforensics.formats.log.batch_table import (
    CODEC_MASK,
    CODECS,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
)
from kforensics.formats.messages.schema import Undecoded
from kforensics.render.json.document import document
from kforensics.render.view import View


def plain_item(item: DumpItem, *, show_payload: bool, as_text: bool) -> dict[str, Any]:
    """Return one object of the output."""
    match item:
        case BatchItem():
            return _plain_batch(item)
        case RecordItem():
            return plain_record(item, show_payload=show_payload, as_text=as_text)
        case FileEntry():
            return {"type": item.type, **to_plain(item.fields)}
        case Damage():
            return _plain_damage(item)


def _plain_batch(batch: BatchItem) -> dict[str, Any]:
    attributes = batch.attributes
    codec = attributes & CODEC_MASK
    has_producer = batch.magic >= 2 and batch.producer_id >= 0
    has_time = batch.magic >= 1
    has_horizon = batch.magic >= 2 and bool(attributes & DELETE_HORIZON_BIT)
    fields = {
        "type": "batch",
        "position": batch.position,
        "length": batch.length,
        "base_offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "count": batch.record_count,
        "magic": batch.magic,
        "compression": CODECS[codec] if codec < len(CODECS) else Absent.UNREADABLE,
        "partition_leader_epoch": _leader_epoch(batch.magic, batch.partition_leader_epoch),
        "crc": batch.crc,
        "crc_valid": batch.crc_valid,
        "timestamp_type": ("log-append" if attributes & TIMESTAMP_TYPE_BIT else "create")
        if has_time
        else Absent.NOT_APPLICABLE,
        "base_timestamp_ms": _plain_time(batch.magic, batch.base_timestamp),
        "max_timestamp_ms": _plain_time(batch.magic, batch.max_timestamp),
        "producer_id": batch.producer_id if has_producer else Absent.NOT_APPLICABLE,
        "producer_epoch": batch.producer_epoch if has_producer else Absent.NOT_APPLICABLE,
        "base_sequence": batch.base_sequence if has_producer and batch.base_sequence >= 0 else Absent.NOT_APPLICABLE,
        "is_transactional": batch.magic >= 2 and bool(attributes & TRANSACTIONAL_BIT),
        "is_control": batch.magic >= 2 and bool(attributes & CONTROL_BIT),
        "delete_horizon_ms": batch.base_timestamp if has_horizon else Absent.NOT_APPLICABLE,
    }
    return plain_object(fields.items())


def plain_record(item: RecordItem, *, show_payload: bool, as_text: bool) -> dict[str, Any]:
    """Return a record; key, value and headers only where they were asked for."""
    record = item.record
    plain: dict[str, Any] = {
        "type": "record",
        "offset": record.offset,
        "batch_position": record.batch_position,
        "timestamp_ms": None,
    }
    if show_payload:
        plain["key"] = _plain_payload(record.key, as_text=as_text)
        plain["value"] = _plain_payload(record.value, as_text=as_text)
        plain["headers"] = [plain_header(name, value, as_text=as_text) for name, value in record.headers]
    plain["key_length"] = None if record.key is None else len(record.key)
    plain["value_length"] = None if record.value is None else len(record.value)
    plain["sequence"] = record.sequence if record.sequence >= 0 else None
    if item.control is not None:
        plain["control"] = item.control.value
    if item.meaning is not None:
        plain["decoded"] = {
            "key": None if item.meaning.key is None else _plain_message(item.meaning.key),
            "value": None if item.meaning.value is None else _plain_message(item.meaning.value),
        }
    time = _plain_time(record.magic, record.timestamp_ms)
    if not isinstance(time, Absent):
        plain["timestamp_ms"] = time
    elif time is Absent.NOT_WRITTEN:
        plain["absent"] = {"timestamp_ms": time.value}
    return plain


def _plain_time(magic: int, time_ms: int) -> int | Absent:
    """Return a time as on disk; magic 0 has none, and -1 says that none was given."""
    if magic == 0:
        return Absent.NOT_APPLICABLE
    return Absent.NOT_WRITTEN if time_ms == NO_TIMESTAMP else time_ms


def _plain_payload(payload: bytes | None, *, as_text: bool) -> Any:
    """Return bytes as base64, or as a string where that is asked for and they are UTF-8."""
    if payload is None:
        return None
    if as_text:
        try:
            return payload.decode()
        except UnicodeDecodeError:
            pass
    return plain_bytes(payload)


def plain_header(name: bytes, value: bytes | None, *, as_text: bool) -> list[Any]:
    """Return one header as a pair."""
    return [_plain_payload(name, as_text=True), _plain_payload(value, as_text=as_text)]


def _plain_damage(damage: Damage) -> dict[str, Any]:
    good = damage.next_good
    fields = {
        "type": "damage",
        "position": damage.span.position,
        "length": damage.span.length,
        **fields_of(damage, "kind", "gravity", "expected", "found", "offsets_lost"),
        "next_good": good if isinstance(good, Absent) else {"offset": good[0], "position": good[1]},
        "cause": damage.cause,
    }
    return plain_object(fields.items())


def _plain_message(message: Message) -> dict[str, Any]:
    """Return a message by name and version, its fields as they are decoded; one that was not understood says why."""
    plain: dict[str, Any] = {"name": message.name, "version": message.version}
    if message.api_key is not None:
        plain["api_key"] = message.api_key
    if isinstance(message, Undecoded):
        plain |= {"fields": None, "reason": message.reason}
    else:
        plain["fields"] = message.fields
        if message.trailing:
            plain["trailing_bytes"] = message.trailing
    reasons = {"name": Absent.UNKNOWN, "version": Absent.UNREADABLE, "fields": Absent.UNREADABLE}
    reasons = {name: why for name, why in reasons.items() if plain[name] is None}
    return {**plain, "absent": reasons} if reasons else plain


def dump_line(plain: dict[str, Any], label: str = "") -> str:
    """Return one object as a line.

    Args:
        plain: as `plain_item` gives it; a number that JSON does not have becomes text.
        label: JSON that follows its last field; empty for none.
    """
    try:
        line = _ENCODER.encode(plain)
    except ValueError:  # of numbers that JSON does not have: only a quota can hold one
        line = _ENCODER.encode(_finite(plain))
    return f"{line[:-1]}{label}}}\n"


def _plain_value(value: Any) -> Any:
    """Return what the encoder can't write by itself: bytes, and a member's blob with its bytes beside what they mean."""
    if isinstance(value, MemberBlob):
        message = _plain_message(value.message)
        fields = message.pop("fields")
        return {**plain_bytes(value.raw), **(fields if fields is not None else message)}
    return to_plain(value)


def _finite(value: Any) -> Any:
    match value:
        case Mapping():
            return {name: _finite(item) for name, item in value.items()}
        case list() | tuple():
            return [_finite(item) for item in value]
        case float() if not math.isfinite(value):
            return str(value)
    return value


# Made once: `json.dumps` with these options would make one for each record.
_ENCODER = json.JSONEncoder(default=_plain_value, allow_nan=False)


def _leader_epoch(magic: int, leader_epoch: int) -> int | Absent:
    if magic < 2:
        return Absent.NOT_APPLICABLE
    return Absent.NOT_WRITTEN if leader_epoch < 0 else leader_epoch


@dataclass(frozen=True, slots=True)
class _Lines:
    """Makes the lines of the records of one file."""

    view: View
    label: str

    def records(self, chunk: RecordChunk) -> bytes | memoryview:
        return record_lines(chunk, show_payload=self.view.show_payload, as_text=self.view.as_text, label=self.label)

    def item(self, item: RecordItem | Damage) -> bytes:
        plain = plain_item(item, show_payload=self.view.show_payload, as_text=self.view.as_text)
        return dump_line(plain, self.label).encode()


def write(result: Result[DumpContent], view: View) -> Iterator[str]:
    """Yield one document, written as the content is read."""
    entries = (line for some in _lines(result.body, view, None) for line in some.splitlines())
    return document(result, "dump", streams={"entries": entries})


def write_lines(result: Result[DumpContent], view: View) -> Iterator[str]:
    """Return an entry a line of what `dump` reads while the lines are written."""
    return _lines(result.body, view, view)


def _lines(content: DumpContent, view: View, direct: View | None) -> Iterator[str]:
    several = len(content) > 1
    for file in content.files():
        label = f', "file": {json.dumps(to_plain(file.shown))}' if several else ""
        if not file.is_plain:
            for item in file.items():
                plain = plain_item(item, show_payload=view.show_payload, as_text=view.as_text)
                yield dump_line(plain, label)
        elif direct is not None and direct.descriptor is not None:
            file.write_lines(_Lines(view, label), direct.descriptor())
        else:
            yield from (str(some, "ascii") for some in file.lines(_Lines(view, label)))


_WITHOUT_TIME = b', "absent": {"timestamp_ms": "not-written"}'


def record_lines(chunk: RecordChunk, *, show_payload: bool, as_text: bool, label: str = "") -> bytes | memoryview:
    """Return one line a record, with line breaks.

    Args:
        chunk: valid until this returns; control records are not for this writer.
        label: JSON that follows the last field; empty for none.
    """
    if not len(chunk.rows):
        return b""
    batches, times = chunk.batches, chunk.timestamp_ms
    is_old = batches["magic"][chunk.rows] == 0  # wrappers never mix magics, but neighbours do
    is_unwritten = (times == NO_TIMESTAMP) & ~is_old
    line = RecordLines(PlainCells())
    line.text(b'{"type": "record", "offset": ').digits(chunk.offset)
    line.text(b', "batch_position": ').digits(batches["position"][chunk.rows])
    line.text(b', "timestamp_ms": ').digits(times, is_old | is_unwritten)
    if show_payload:
        line.text(b', "key": ').payload(chunk.view, chunk.key_position, chunk.key_length, as_text=as_text)
        line.text(b', "value": ').payload(chunk.view, chunk.value_position, chunk.value_length, as_text=as_text)
        line.text(b', "headers": ').headers(chunk, as_text=as_text)
    line.text(b', "key_length": ').number(chunk.key_length)
    line.text(b', "value_length": ').number(chunk.value_length)
    line.text(b', "sequence": ').number(chunk.sequence)
    line.words(is_unwritten, (b"", _WITHOUT_TIME))
    return line.text(label.encode() + b"}\n").joined()
