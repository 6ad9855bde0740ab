"""Every recorded segment against what Kafka's own tool of the same version prints of it, field by field."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kforensics.damage import Damage
from kforensics.formats.log.batch_table import (
    CODEC_MASK,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
)
from kforensics.formats.log.batches import iter_message_records, parse_message, sequence_of
from kforensics.formats.log.records import Record
from kforensics.formats.primitives.compression import decompress
from kforensics.formats.primitives.word_buffer import MemoryBytes
from kforensics.formats.segment.walk import Level, iter_records, walk_segment

INCIDENTS = [
    "all-codecs-4.x",
    "mixed-magic-1.1",
    "hw-divergence-0.10",
    "kip101-saves-0.11",
    "fast-failover-2.x",
    "power-cut-2.8",
    "tiered-3.9",
]
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]

PAIR = re.compile(rb"(\w+): (\[[^\]]*\]|[^ \n]+)")
# A payload may hold line breaks, so lines are told by how they begin.
LINE = re.compile(
    rb"^(?:\| )?(?:baseOffset|offset): \d+ (?:.*?)(?= key: | payload: | endTxnMarker: | LeaderChange|$)", re.MULTILINE
)


@pytest.mark.parametrize("name", INCIDENTS)
@pytest.mark.some("all-codecs-4.x", "kip101-saves-0.11", "hw-divergence-0.10")
def test_batches_and_records_are_those_that_kafka_prints(incident, name):
    compared = 0
    for oracle in sorted((incident(name) / "oracle").rglob("*.log.txt")):
        segment = segment_of(oracle, incident(name) / "snapshots")
        if segment is None:
            continue
        lines = [fields(line.group()) for line in LINE.finditer(oracle.read_bytes())]
        data = segment.read_bytes()
        batch_lines = [line for line in lines if b"baseOffset" in line and b"crc" in line and line[b"crc"] != b"null"]
        record_lines = [line for line in lines if line not in batch_lines]
        assert_batches(data, batch_lines)
        records = [record for record in iter_records(MemoryBytes(data)) if isinstance(record, Record)]
        printed = stops_at(oracle)
        if not printed:
            assert len(record_lines) == len(records), oracle
        for line, record in zip(record_lines, records, strict=False):
            assert_record(line, record, data)
        compared += len(record_lines)

    assert compared > 100


def test_recorded_damage_is_found_where_it_was_made(incident):
    found = {}
    for name in ("power-cut-2.8", "silent-divergence-4.x"):
        for path in sorted((incident(name) / "snapshots").rglob("*.log")):
            damage = [
                one
                for window in walk_segment(MemoryBytes(path.read_bytes()), level=Level.RECORDS)
                for one in window.damage
            ]
            if damage:
                found[str(path.relative_to(incident(name) / "snapshots"))] = [
                    (*one.span, one.kind.value, cause_of(one)) for one in damage
                ]

    before = "02-after-power-loss/broker-1/kafka-logs"
    flipped = [(4559, 1485, "crc", ("bit-flip", 4720, 2))]
    assert {
        f"{before}/readings-0/00000000000000000659.log": [(47717, 295, "torn", "torn-write")],
        f"{before}/readings-2/00000000000000000799.log": [
            (16310, 488, "crc", "zero-page"),
            (16798, 3100, "zeros", "zero-page"),
        ],
        f"{before}/readings-3/00000000000000000783.log": [(22585, 8192, "zeros", "zero-page")],
        f"{before}/readings-4/00000000000000000863.log": [(3975, 4300, "crc", "zero-page")],
        "03-follower-tampered/broker-2/audit-0/00000000000000000040.log": flipped,
        "99-final/broker-2/audit-0/00000000000000000040.log": flipped,
    } == found


def cause_of(damage: Damage) -> object:
    assert not isinstance(damage.cause, str)
    flip = damage.cause.flip
    return damage.cause.kind if flip is None else (damage.cause.kind, flip.position, flip.bit)


def segment_of(oracle: Path, snapshots: Path) -> Path | None:
    """The tool's first line names the file below its snapshot, whose name stands before it or in the oracle's path."""
    named = oracle.read_bytes().splitlines()[0].removeprefix(b"Dumping ").decode()
    snapshot = oracle.relative_to(snapshots.parent / "oracle").parts[0]
    return next((path for path in (snapshots / named, snapshots / snapshot / named) if path.is_file()), None)


def fields(line: bytes) -> dict[bytes, bytes]:
    return dict(PAIR.findall(line))


def stops_at(oracle: Path) -> bool:
    """Kafka's tool gave up before the end of the file."""
    return b"invalid bytes at the end" in oracle.read_bytes()


def assert_batches(data: bytes, lines: list[dict[bytes, bytes]]) -> None:
    rows = [row for window in walk_segment(MemoryBytes(data), level=Level.RECORDS) for row in window.batches]
    assert not lines or len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=False):
        attributes = int(row["attributes"])
        time_kind = b"LogAppendTime" if attributes & TIMESTAMP_TYPE_BIT else b"CreateTime"
        expected = {
            b"baseOffset": row["base_offset"],
            b"lastOffset": row["last_offset"],
            b"count": row["count"],
            b"baseSequence": row["base_sequence"],
            b"lastSequence": sequence_of(int(row["base_sequence"]), int(row["last_offset"] - row["base_offset"])),
            b"producerId": row["producer_id"],
            b"producerEpoch": row["producer_epoch"],
            b"partitionLeaderEpoch": row["partition_leader_epoch"],
            b"isTransactional": bool(attributes & TRANSACTIONAL_BIT),
            b"isControl": bool(attributes & CONTROL_BIT),
            b"position": row["position"],
            time_kind: row["max_timestamp"],
            b"size": row["length"],
            b"magic": row["magic"],
            b"crc": row["crc"],
            b"isvalid": bool(row["crc_valid"]),
        }
        for name, value in expected.items():
            assert str(value).lower().encode() == line[name], (name, line)
        assert CODECS[attributes & CODEC_MASK].encode() == line[b"compresscodec"].lower()
        if b"deleteHorizonMs" in line:
            has_horizon = bool(attributes & DELETE_HORIZON_BIT)
            assert (f"OptionalLong[{row['base_timestamp']}]" if has_horizon else "OptionalLong.empty").encode() == line[
                b"deleteHorizonMs"
            ]


def assert_record(line: dict[bytes, bytes], record: Record, data: bytes) -> None:
    expected = dict(record_fields(record, data))
    for name in line.keys() & expected.keys():
        assert str(expected[name]).lower().encode() == line[name].lower(), (name, line, record)
    assert line.keys() & {b"keySize", b"keysize"} or record.key is None


def record_fields(record: Record, data: bytes) -> Iterator[tuple[bytes, object]]:
    yield b"offset", record.offset
    yield b"position", record.batch_position
    for name in (b"CreateTime", b"LogAppendTime", b"NoTimestampType"):
        yield name, record.timestamp_ms
    for name in (b"keySize", b"keysize"):
        yield name, -1 if record.key is None else len(record.key)
    for name in (b"valueSize", b"valuesize", b"payloadsize"):
        yield name, -1 if record.value is None else len(record.value)
    yield b"magic", record.magic
    yield b"sequence", record.sequence
    if record.magic == 2:
        yield b"producerId", record.producer_id
        yield b"producerEpoch", record.producer_epoch
        yield b"isTransactional", record.is_transactional
        yield b"headerKeys", "[" + ",".join(name.decode() for name, _ in record.headers) + "]"
        yield b"baseOffset", record.batch_base_offset
        yield b"partitionLeaderEpoch", record.partition_leader_epoch
    else:
        yield b"crc", crc_of_message(data, record)


def crc_of_message(data: bytes, record: Record) -> int:
    """The checksum of the message of a record, which may lie in a wrapper."""
    wrapper, end = parse_message(data, record.batch_position)
    whole = data[record.batch_position : end]
    codec = wrapper.attributes & CODEC_MASK
    inner = whole if not codec else decompress(codec, wrapper.value or b"")
    position = 0
    for one in iter_message_records(whole, 0):
        message, position = parse_message(inner, position)
        if one.offset == record.offset:
            return message.crc
    raise AssertionError(record)
