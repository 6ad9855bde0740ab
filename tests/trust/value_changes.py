"""Changes of values in evidence after which the bytes are as valid as before: every checksum and digest is made right again.

A change takes a tree that `tests.trust.values` makes and alters one of its files, or a run of them, in place.
"""

import base64
import io
import json
import os
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from kforensics.formats.index import ENTRY_LAYOUT as PRODUCER_ENTRY
from kforensics.formats.index import (
    OFFSET_INDEX_LAYOUT,
    TIME_INDEX_LAYOUT,
    TXN_INDEX_LAYOUT,
    ProducerEntry,
    encode_producers,
    parse_producer_snapshot,
)
from kforensics.formats.log.batch_table import BATCH_HEADER
from kforensics.formats.log.batches import encode_message as encode_old_message
from kforensics.formats.log.batches import encode_record_batch, parse_message, parse_record_batch, with_right_crc
from kforensics.formats.log.records import BodyRecord
from kforensics.formats.messages.coordinators import GROUP_TABLES, SHARE_TABLES, TXN_TABLES
from kforensics.formats.messages.frame import CoordinatorTables, parse_coordinator_record
from kforensics.formats.messages.metadata import encode_metadata_record, parse_metadata_record
from kforensics.formats.messages.reader import encode_message
from kforensics.formats.messages.schema import Decoded
from kforensics.formats.primitives.numbers import FixedLayout

LAST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999."""

FIRST_MS = -62_135_596_800_000
"""The first millisecond of the year 1."""

EDGES = (
    0, 1, 2, 3, -1, -2, -3, 5, 127, -128, 2**15 - 1, -(2**15), 2**31 - 1, 2**31, 2**31 + 1, -(2**31), 2**32 - 1, 2**32,
    2**53 + 1, 2**62, -(2**62), 2**63 - 1, 2**63 - 2, 2**63 - 3, -(2**63), -(2**63) + 1, LAST_MS, LAST_MS + 1, FIRST_MS, FIRST_MS - 1,
    1_700_000_000_000_000, 1_700_000_000_000_000_000, 1_700_000_000, 2**63 // 1000, 2**63 // 1_000_000,
)  # fmt: skip
WIDER = (*EDGES, 2**63, 2**64 - 1, 2**64, -(2**63) - 1, 10**30)
"""What text can say and no field of 64 bits."""

LINES = Path(__file__).parents[2] / "fixtures" / "fuzz" / "server-log"
_HEAD = re.compile(rb"\[?20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d[,.]\d{3}")
_PARTITION = re.compile(rb"(?<=[ =])[A-Za-z_.]+-\d{1,3}(?=[ ,.\])])")
SMALLEST_MESSAGE = 80
"""Bytes of a batch that holds more than a record without a field."""

NUMBER = re.compile(rb"-?[0-9]{1,19}")
TOPIC_IDS = ("AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg", "_____________________w")
BATCH_FIELDS = tuple(name for name in BATCH_HEADER.names if name not in {"batch_length", "magic", "crc"})


class Unfit(Exception):  # noqa: N818 - named like what it is
    """The file has nothing that this change could alter."""


def edge(random: Random, old: int, *, bits: int | None = None, others: Sequence[int] = ()) -> int:
    """A value that a field of so many bits can hold: one of the edges, next to the old one, a thousand times it, or that of another place."""
    near = [old + 1, old - 1, old + 2, old - 100, old * 1000, old * 1_000_000, -old, *others]
    near += [random.randrange(8), random.randrange(100), random.randrange(300), old // 2]
    pool = [*near, *near, *near, *(WIDER if bits is None else EDGES)]
    fitting: list[int] = [
        value for value in pool if value != old and (bits is None or -(1 << bits - 1) <= value < 1 << bits - 1)
    ]
    return random.choice(fitting)


def width(layout: FixedLayout, name: str) -> int:
    """The bits of a field."""
    bits: int = layout.dtype[name].itemsize * 8
    return bits


# ---------------------------------------------------------------- batches


def batches_of(data: bytes | bytearray) -> Iterator[tuple[int, int]]:
    """The place of each whole batch or message, as start and end."""
    position = 0
    while position + 17 <= len(data):
        end = position + 12 + int.from_bytes(data[position + 8 : position + 12])
        if end > len(data) or end <= position + 17:
            return
        yield position, end
        position = end


def change_batch(random: Random, path: Path) -> str:
    """One or two fields of a batch, of several of them, or of a record in it."""
    data = path.read_bytes()
    found = list(batches_of(data))
    if not found:
        raise Unfit
    what = random.choice(("header", "header", "header", "record", "message", "message"))
    if what == "message":  # a record that says nothing is in most batches of a metadata log
        found = [(start, end) for start, end in found if end - start >= SMALLEST_MESSAGE] or found
    chosen = random.sample(found, min(len(found), random.choice((1, 1, 1, 2, 5))))
    names = random.sample(BATCH_FIELDS, random.choice((1, 1, 2)))
    out, at = bytearray(), 0
    for start, end in sorted(chosen):
        out += data[at:start]
        batch = data[start:end]
        if batch[16] == 2:
            tables = _tables_of(path)
            if what == "header" or (what == "message" and tables is None):
                batch = _with_fields(random, batch, names)
            elif what == "record":
                batch = _with_record(random, batch)
            else:
                batch = _with_message(random, batch, tables)
        elif batch[16] in (0, 1):
            batch = _with_old_fields(random, batch)
        out += batch
        at = end
    path.write_bytes(bytes(out) + data[at:])
    return f"{what} {' '.join(names)}"


def _with_fields(random: Random, batch: bytes, names: Sequence[str]) -> bytes:
    values = dict(zip(BATCH_HEADER.names, BATCH_HEADER.struct.unpack_from(batch), strict=True))
    others = [value for name, value in values.items() if name != "crc"]
    for name in names:
        bits = width(BATCH_HEADER, name)
        values[name] = edge(random, values[name], bits=bits, others=others)
    return with_right_crc(BATCH_HEADER.struct.pack(*values.values()) + batch[BATCH_HEADER.length :])


def _with_old_fields(random: Random, batch: bytes) -> bytes:
    message, _ = parse_message(batch)
    if message.magic and random.random() < 0.5:
        return encode_old_message(message._replace(timestamp_ms=edge(random, message.timestamp_ms, bits=64)))
    return encode_old_message(message._replace(offset=edge(random, message.offset, bits=64)))


def _with_record(random: Random, data: bytes) -> bytes:
    batch = parse_record_batch(data)
    if not batch.records:
        return data
    at = random.randrange(len(batch.records))
    record = batch.records[at]
    match random.randrange(5):
        case 0 | 1:
            changed = record._replace(timestamp_delta=edge(random, record.timestamp_delta, bits=64))
        case 2 | 3:
            changed = record._replace(offset_delta=edge(random, record.offset_delta, bits=32))
        case _:
            changed = record._replace(key=random.choice((None, b"", b"k", b"\x00\x00", b"\x00\x01")))
    return encode_record_batch(replace(batch, records=(*batch.records[:at], changed, *batch.records[at + 1 :])))


def _tables_of(path: Path) -> str | CoordinatorTables | None:
    topic = path.parent.name
    if topic.startswith(("__cluster_metadata", "@metadata")):
        return "metadata"
    for prefix, tables in (
        ("__consumer_offsets", GROUP_TABLES),
        ("__transaction_state", TXN_TABLES),
        ("__share_group_state", SHARE_TABLES),
    ):
        if topic.startswith(prefix):
            return tables
    return None


def _with_message(random: Random, data: bytes, tables: str | CoordinatorTables | None) -> bytes:
    batch = parse_record_batch(data)
    places = [at for at, record in enumerate(batch.records) if record.value or record.key]
    if not places or batch.attributes & 0x20:
        return _with_record(random, data)
    at = random.choice(places)
    changed = _changed_message(random, batch.records[at], tables)
    return encode_record_batch(replace(batch, records=(*batch.records[:at], changed, *batch.records[at + 1 :])))


def _changed_message(random: Random, record: BodyRecord, tables: str | CoordinatorTables | None) -> BodyRecord:
    for _ in range(5):
        try:
            if tables == "metadata":
                return record._replace(value=_metadata_value(random, record.value or b""))
            assert isinstance(tables, CoordinatorTables)
            return _coordinator_record(random, record, tables)
        except (struct.error, OverflowError, KeyError, IndexError, ValueError, TypeError, AttributeError, Unfit):
            continue
    return record


def _metadata_value(random: Random, value: bytes) -> bytes:
    found = parse_metadata_record(value)
    if not isinstance(found, Decoded) or found.api_key is None:
        raise Unfit
    fields = _changed_fields(random, found.fields)
    return encode_metadata_record(found.api_key, found.version, fields, frame_version=value[0])


def _coordinator_record(random: Random, record: BodyRecord, tables: CoordinatorTables) -> BodyRecord:
    found = parse_coordinator_record(record.key, record.value, tables)
    kind = found.key.version
    if random.random() < 0.4 and isinstance(found.key, Decoded) and kind is not None:
        fields = _changed_fields(random, found.key.fields)
        return record._replace(key=struct.pack(">h", kind) + encode_message(tables.keys[kind], 0, fields))
    if not isinstance(found.value, Decoded) or kind is None:
        raise Unfit
    version = found.value.version
    fields = _changed_fields(random, found.value.fields)
    return record._replace(value=struct.pack(">h", version) + encode_message(tables.values[kind], version, fields))


def _changed_fields(random: Random, fields: Mapping[str, Any]) -> dict[str, Any]:
    copied: dict[str, Any] = _deep(fields)
    places = list(leaves(copied))
    numbers = [(holder, key) for holder, key in places if type(holder[key]) is int]
    texts = [(holder, key) for holder, key in places if isinstance(holder[key], str)]
    lists = [value for value in _all_values(copied) if isinstance(value, list)]
    what = random.choice(
        [*([numbers] * 3 if numbers else []), *([texts] if texts else []), *([lists] if lists else [])]
    )
    if what is lists:
        some = random.choice(lists)
        changed = random.choice(([], some[1:], [*some, *some], some[:1] * 2, list(reversed(some))))
        some[:] = changed
        return copied
    if what is texts:
        holder, key = random.choice(texts)
        other, name = random.choice(texts)
        holder[key] = random.choice((other[name], other[name], "", *TOPIC_IDS))
        return copied
    holder, key = random.choice(numbers)
    holder[key] = edge(random, holder[key], bits=random.choice((8, 16, 32, 64)))
    return copied


def _all_values(value: Any) -> Iterator[Any]:
    yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _all_values(item)


def _deep(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _deep(item) for key, item in value.items()}
    return [_deep(item) for item in value] if isinstance(value, (list, tuple)) else value


def leaves(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a document, as the container and the key that hold it."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(pairs):
        if isinstance(item, (dict, list)):
            yield from leaves(item)
        else:
            yield value, key


# ---------------------------------------------------------------- whole logs


def shift_log(random: Random, path: Path) -> str:
    """All of a partition on all nodes by one distance, names of files included, or every time in it by one factor, or every epoch set."""
    name = path.parent.name
    root = path.parents[2]
    what = random.choice(("offsets", "offsets", "times", "epochs"))
    folders = [folder for folder in root.glob(f"*/{name}") if folder.is_dir()]
    files = [one for folder in folders for one in folder.iterdir()]
    offsets = [int(one.stem) for one in files if one.stem.isdecimal()]
    if not offsets:
        raise Unfit
    distance = random.choice((2**31 - max(offsets) - 5, 2**63 - 1 - max(offsets) - random.choice((1, 50, 500)), 2**40))
    factor = random.choice((1000, 1_000_000, -1, 0))
    epoch = random.choice((-1, 0, 2**31 - 1, 2**31 - 2))
    for one in files:
        if one.suffix == ".log":
            out = bytearray(one.read_bytes())
            for start, end in list(batches_of(out)):
                batch = bytes(out[start:end])
                values = list(BATCH_HEADER.struct.unpack_from(batch)) if batch[16] == 2 else []
                if not values:
                    continue
                if what == "offsets":
                    values[0] += distance
                elif what == "times":
                    values[7:9] = [max(-(2**63), min(value * factor, 2**63 - 1)) for value in values[7:9]]
                else:
                    values[2] = epoch
                if -(2**63) <= values[0] < 2**63:
                    out[start:end] = with_right_crc(BATCH_HEADER.struct.pack(*values) + batch[BATCH_HEADER.length :])
            one.write_bytes(out)
        if what == "offsets" and one.stem.isdecimal() and int(one.stem) + distance < 2**63:
            one.rename(one.with_name(f"{int(one.stem) + distance:020d}{one.suffix}"))
    return what


def rename_files(random: Random, path: Path) -> str:
    """A segment with the files beside it begins elsewhere, or a partition has another number, or a name gets an ending."""
    base, _, _ = path.name.partition(".")
    match random.randrange(5):
        case 0 | 1 | 2 if base.isdecimal() and len(base) == 20:
            new = max(edge(random, int(base)), 0)
            for one in list(path.parent.glob(f"{base}.*")):
                one.rename(one.with_name(f"{new:020d}{one.name[len(base) :]}"))
            return f"segment {new}"
        case 3 if re.fullmatch(r".+-[0-9]+", path.parent.name):
            topic = path.parent.name.rpartition("-")[0]
            ending = random.choice(("", "", f".{'0' * 32}-delete", f".{'0' * 32}-future", f".{'0' * 32}-stray"))
            target = path.parent.with_name(f"{topic}-{max(edge(random, 0), 0)}{ending}")
            if target.exists():
                raise Unfit
            path.parent.rename(target)
            return target.name
        case 4 if path.suffix in {".log", ".index", ".timeindex"}:
            path.rename(path.with_name(path.name + random.choice((".deleted", ".cleaned", ".swap"))))
            return "ending"
    raise Unfit


def change_times(random: Random, path: Path) -> str:
    """The time of the last change of a file."""
    time_ns = random.choice((0, -1, 1, 2**62, 2**31 * 10**9, 2**32 * 10**9, -(2**31) * 10**9, LAST_MS * 10**6 + 10**9))
    try:
        os.utime(path, ns=(time_ns, time_ns))
    except (OverflowError, OSError) as error:
        raise Unfit from error
    return str(time_ns)


# ---------------------------------------------------------------- files beside a log


def change_entry(layout: FixedLayout, random: Random, path: Path) -> str:
    """A field of an entry of an index."""
    data = bytearray(path.read_bytes())
    if len(data) < layout.length:
        data = bytearray(layout.length)
    at = random.randrange(len(data) // layout.length) * layout.length
    values = dict(zip(layout.names, layout.struct.unpack_from(data, at), strict=True))
    name = random.choice(list(values))
    values[name] = edge(random, values[name], bits=width(layout, name))
    layout.struct.pack_into(data, at, *values.values())
    path.write_bytes(data)
    return name


def change_producers(random: Random, path: Path) -> str:
    """A field of an entry of a producer snapshot."""
    try:
        entries = list(parse_producer_snapshot(path.read_bytes()).entries)
    except Exception as error:
        raise Unfit from error
    entries = entries or [ProducerEntry(1000, 0, 0, 0, 0, 1_700_000_000_000, 0, -1)]
    at = random.randrange(len(entries))
    name = random.choice(ProducerEntry._fields)
    bits = width(PRODUCER_ENTRY, PRODUCER_ENTRY.names[ProducerEntry._fields.index(name)])
    old = getattr(entries[at], name)
    entries[at] = entries[at]._replace(**{name: edge(random, old, bits=bits, others=list(entries[at]))})
    path.write_bytes(encode_producers(entries))
    return name


def change_text(random: Random, path: Path) -> str:
    """A number or two of a checkpoint, of properties, of JSON, or of a line of a log file; of `partition.metadata` the topic id."""
    data = path.read_bytes()
    if path.name == "partition.metadata" and random.random() < 0.8:
        ids = [*TOPIC_IDS, *_topic_ids_of_others(path)]
        path.write_bytes(re.sub(rb"(topic_id: ).*", rb"\g<1>" + random.choice(ids).encode(), data))
        return "topic id"
    for _ in range(random.choice((1, 1, 2, 5))):
        numbers = list(NUMBER.finditer(data))
        if not numbers:
            raise Unfit
        one = random.choice(numbers)
        others = [int(number[0]) for number in random.sample(numbers, min(len(numbers), 4))]
        new = edge(random, int(one[0]), others=others)
        data = data[: one.start()] + str(new).encode() + data[one.end() :]
    path.write_bytes(data)
    return "numbers"


_OFTEN = tuple(
    b"[2026-11-21 06:34:17,481] INFO " + line
    for line in (
        b"[UnifiedLog partition=orders-0, dir=/d] Incremented log start offset to 40 due to client delete records request (kafka.log.UnifiedLog)",
        b"[UnifiedLog partition=orders-0, dir=/d] Incremented log start offset to 32 due to segment deletion (kafka.log.UnifiedLog)",
        b"[UnifiedLog partition=orders-0, dir=/d] Truncating to offset 30 (kafka.log.UnifiedLog)",
        b"[Log partition=orders-0, dir=/d] Truncating to 50 has no effect as the largest offset in the log is 31 (kafka.log.Log)",
        b"[Broker id=1] Follower orders-0 starts at leader epoch 2 from offset 25 with high watermark 25. Previous leader epoch was 1. (state.change.logger)",
        b"[Broker id=1] Leader orders-0 starts at leader epoch 3 from offset 30 with high watermark 0 ISR [1] addingReplicas [] removingReplicas []. Previous leader epoch was 2. (state.change.logger)",
        b"Truncating log orders-0 to offset 45. (kafka.log.Log)",
        b"[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Truncating partition orders-0 with TruncationState(offset=16, completed=true) due to leader epoch and offset EpochEndOffset(errorCode=0, partition=0, leaderEpoch=1, endOffset=16) (kafka.server.ReplicaFetcherThread)",
        b"[LogLoader partition=orders-0, dir=/d] Corruption found in segment 0, truncating to offset 20 (kafka.log.LogLoader)",
        b"Recovering unflushed segment 0 in log orders-0. (kafka.log.Log)",
        b"[LogLoader partition=orders-0, dir=/d] Deleting all segments because logEndOffset (9) is smaller than logStartOffset (20) (kafka.log.LogLoader)",
    )
)


@cache
def known_lines() -> Sequence[bytes]:
    """Lines of many kinds and versions, of which those that name a partition come often."""
    lines = [line for path in sorted(LINES.iterdir()) for line in path.read_bytes().splitlines() if _HEAD.match(line)]
    return [*lines, *_OFTEN * 10]


def _put_line(random: Random, lines: list[bytes], tree: Path) -> None:
    """Put a line of another recording between those that are there, of their time and about a partition that is there."""
    at = random.randrange(len(lines))
    head = _HEAD.match(lines[at])
    names = sorted({path.name for path in tree.rglob("*-[0-9]") if path.is_dir()}) or ["orders-0"]
    line = _PARTITION.sub(random.choice(names).encode(), random.choice(known_lines()))
    if head is not None:
        line = head[0] + line[len(head[0]) :]
    numbers = list(NUMBER.finditer(line, 26))
    if numbers and random.random() < 0.7:
        one = random.choice(numbers)
        line = line[: one.start()] + str(edge(random, int(one[0]))).encode() + line[one.end() :]
    lines.insert(at, line)


def change_line(random: Random, path: Path) -> str:
    """Numbers of some lines of a log file, those of their times among them, and lines that were not there."""
    lines = path.read_bytes().split(b"\n")
    for _ in range(random.choice((1, 3, 10, 30))):
        if random.random() < 0.5:
            _put_line(random, lines, path.parents[2])
            continue
        at = random.randrange(len(lines))
        numbers = list(NUMBER.finditer(lines[at]))
        if numbers:
            one = random.choice(numbers)
            new = edge(random, int(one[0]), others=[9999, 1, 1970, 1969])
            if one.end() < 12:  # of a time
                new = random.choice((0, 1, 9999, 1969, 1970, 12, 31, 59))
                lines[at] = (
                    lines[at][: one.start()] + f"{new:0{one.end() - one.start()}d}".encode() + lines[at][one.end() :]
                )
                continue
            lines[at] = lines[at][: one.start()] + str(new).encode() + lines[at][one.end() :]
    path.write_bytes(b"\n".join(lines))
    return "lines"


def _topic_ids_of_others(path: Path) -> list[str]:
    found = []
    for other in path.parents[1].glob("*/partition.metadata"):
        found += re.findall(r"topic_id: (\S{22})", other.read_text(errors="replace"))
    return found


_BY_SUFFIX: Mapping[str, Sequence[Callable[[Random, Path], str]]] = {
    ".log": (change_batch, change_batch, change_batch, change_batch, shift_log, rename_files, change_times),
    ".index": (partial(change_entry, OFFSET_INDEX_LAYOUT), rename_files, change_times),
    ".timeindex": (partial(change_entry, TIME_INDEX_LAYOUT), partial(change_entry, TIME_INDEX_LAYOUT), change_times),
    ".txnindex": (partial(change_entry, TXN_INDEX_LAYOUT),),
    ".snapshot": (change_producers, change_producers, rename_files),
}


def change_something(random: Random, tree: Path) -> str:
    """Change a value in one of the files of a tree, or in some that belong together; what was changed, in words."""
    files = sorted(path for path in tree.rglob("*") if path.is_file() and path.name != ".lock")
    kinds = sorted({_kind(path) for path in files})
    for _ in range(100):
        kind = random.choice(kinds)
        path = random.choice([one for one in files if one.exists() and _kind(one) == kind] or files)
        if not path.exists():
            continue
        change: Callable[[Random, Path], str]
        if path.relative_to(tree).parts[0] == "logs":
            change = change_line if path.suffix != ".properties" else change_text
        elif path.suffix == ".checkpoint":
            change = random.choice((change_batch, rename_files))
        else:
            change = random.choice(_BY_SUFFIX.get(path.suffix, (change_text,)))
        try:
            done = change(random, path)
        except Unfit:
            continue
        return f"{path.relative_to(tree)}: {getattr(change, '__name__', 'entry')} {done}"
    return "nothing"


def _kind(path: Path) -> str:
    """Files of a kind are chosen among themselves, so that a thousand segments don't hide one checkpoint."""
    if path.suffix in {".log", ".checkpoint"}:
        return "log" if not path.parent.name.startswith("__") else path.parent.name.rpartition("-")[0]
    return path.suffix or path.name


# ---------------------------------------------------------------- captures


def change_capture(random: Random, parts: dict[str, bytes], manifest: dict[str, Any]) -> str:
    """Some elements of a column, the head of one, or members of a document of a capture, all in place; what was changed."""
    columns = [one for one in sorted(parts) if one.endswith(".npy")]
    match random.randrange(6):
        case 0 | 1 if columns:
            name = random.choice(columns)
            parts[name] = _changed_column(random, parts[name])
            return name
        case 2 if columns:
            name = random.choice(columns)
            data = bytearray(parts[name])
            length = int.from_bytes(data[8:10], "little")
            for _ in range(random.choice((1, 1, 2))):
                data[random.randrange(6, 10 + length)] = random.choice(
                    (random.randrange(256), *b"{}[]()'\"\\,:# \n\tO<>|fiucbmM0159\0")
                )
            parts[name] = bytes(data)
            return f"head of {name}"
        case 3:
            _changed_document(random, manifest)
            return "manifest"
    name = random.choice([one for one in sorted(parts) if one.endswith(".json")])
    document = json.loads(parts[name])
    _changed_document(random, document)
    parts[name] = json.dumps(document).encode()
    return name


def _changed_column(random: Random, data: bytes) -> bytes:
    column = np.lib.format.read_array(io.BytesIO(data))
    if not column.size:
        return data
    bits = column.dtype.itemsize * 8 + (column.dtype.kind == "u")
    if column.dtype.kind == "i" and random.random() < 0.6:
        column, bits = column.astype(np.int64), 64
    flat = column.reshape(-1)
    for _ in range(random.choice((1, 1, 3))):
        at = random.randrange(flat.size)
        value = edge(random, int(flat[at]), bits=bits, others=[int(flat[random.randrange(flat.size)])])
        flat[at] = max(value, 0) if column.dtype.kind == "u" else value
    out = io.BytesIO()
    np.lib.format.write_array(out, np.ascontiguousarray(column), version=(1, 0))
    return out.getvalue()


def _changed_document(random: Random, document: Any) -> None:
    places = list(leaves(document))
    if not places:
        return
    numbers = [(holder, key) for holder, key in places if type(holder[key]) is int]
    for _ in range(random.choice((1, 1, 2, 4))):
        if numbers and random.random() < 0.75:
            holder, key = random.choice(numbers)
            others = [
                other[name] for other, name in random.sample(numbers, min(4, len(numbers))) if type(other[name]) is int
            ]
            if type(holder[key]) is int:
                holder[key] = edge(random, holder[key], others=others)
        else:
            holder, key = random.choice(places)
            other, name = random.choice(places)
            holder[key] = random.choice(
                (other[name], "", None, True, base64.b64encode(b"1").decode(), str(holder[key])[:-1])
            )
