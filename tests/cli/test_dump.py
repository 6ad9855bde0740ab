"""`kforensics dump`: what it prints of recorded files, against Kafka's own tool; and that columns and processes change no byte."""

import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.cli.app import run
from kforensics.commands import dump as ring
from kforensics.evidence.content import RecordItem, find_range
from kforensics.formats.columns.record_stream import RecordChunk
from kforensics.formats.log.batches import RecordBatch, encode_record_batch
from kforensics.formats.log.batches import build_record_batch as built
from kforensics.formats.log.records import BodyRecord
from kforensics.formats.primitives.numbers import Codec
from kforensics.formats.primitives.word_buffer import MemoryBytes
from kforensics.formats.segment.walk import iter_record_chunks, iter_records
from kforensics.render.json.dump import plain_item, record_lines
from kforensics.source.mapped import open_evidence


def build_record_batch(*arguments: Any, **options: Any) -> bytes:
    return encode_record_batch(built(*arguments, **options))


Incident = Callable[[str], Path]
BATCH = re.compile(
    r"^baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .*?partitionLeaderEpoch: (\d+) .*?position: (\d+) \S+: -?\d+ "
    r"size: (\d+) magic: 2 compresscodec: (\S+) crc: (\d+) isvalid: true"
)
RECORD = re.compile(r"^\| offset: (\d+) (?:CreateTime|LogAppendTime): (-?\d+) keySize: (-?\d+) valueSize: (-?\d+) ")


@pytest.fixture
def dump(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Runs the command; exit code and standard output."""

    def call(*arguments: object) -> tuple[int, str]:
        code = run(["dump", *map(str, arguments)])
        return int(code), capfd.readouterr().out

    return call


def objects(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


def number(value: Any) -> int:
    return value if isinstance(value, int) else -1


@pytest.mark.parametrize(
    "name", ["tx-0", "codec-zstd-0", "compacted-0", "__consumer_offsets-0", "__transaction_state-0"]
)
def test_agrees_with_kafkas_own_tool(incident: Incident, dump: Callable[..., tuple[int, str]], name: str) -> None:
    root = incident("all-codecs-4.x")
    for log in sorted((root / "snapshots" / "99-final" / "broker-1" / name).glob("*.log")):
        printed = (root / "oracle" / "99-final" / "broker-1" / name / f"{log.name}.txt").read_text(errors="replace")
        code, output = dump(log, "--format", "jsonl")
        assert code == 0
        assert [
            tuple(map(int, found.group(1, 2, 3, 4, 5, 6, 8)))
            for found in map(BATCH.match, printed.splitlines())
            if found
        ] == [
            (
                one["base_offset"],
                one["last_offset"],
                one["count"],
                one["partition_leader_epoch"],
                one["position"],
                one["length"],
                one["crc"],
            )
            for one in objects(output)
        ]
        code, output = dump(log, "--records", "--format", "jsonl")
        assert code == 0
        assert [tuple(map(int, found.groups())) for found in map(RECORD.match, printed.splitlines()) if found] == [
            (one["offset"], number(one["timestamp_ms"]), number(one["key_length"]), number(one["value_length"]))
            for one in objects(output)
        ]


def test_internal_topics_are_decoded(incident: Incident, dump: Callable[..., tuple[int, str]]) -> None:
    broker = incident("all-codecs-4.x") / "snapshots/99-final/broker-1"
    _, output = dump(broker / "__consumer_offsets-0/00000000000000000000.log", "--records", "--format", "jsonl")
    group = next(one for one in objects(output) if one["offset"] == 1)
    member = group["decoded"]["value"]["fields"]["members"][0]
    assert group["decoded"]["key"] == {"name": "GroupMetadataKey", "version": 2, "fields": {"group": "etl-classic"}}
    assert member["subscription"]["topics"] == ["codec-gzip"]
    assert member["subscription"]["base64"].startswith("AAMAAAAB")
    assert "value" not in group

    log = broker / "__cluster_metadata-0/00000000000000000000.log"
    code, output = dump(log, "--records", "--format", "jsonl")
    first, second = objects(output)[:2]
    assert code == 0
    assert first["control"] == "leader-change"
    assert first["decoded"]["value"]["name"] == "LeaderChangeMessage"
    assert second["decoded"]["key"] is None
    assert second["decoded"]["value"] == {
        "name": "BeginTransactionRecord",
        "version": 0,
        "api_key": 23,
        "fields": {"name": "Bootstrap records"},
    }
    code, output = dump(log, "--records")
    assert "BeginTransactionRecord v0 name='Bootstrap records'" in output


@pytest.mark.parametrize(
    ("place", "first"),
    [
        ("replication-offset-checkpoint", "offset-checkpoint-entry"),
        ("meta.properties", "meta-properties"),
        ("__cluster_metadata-0/quorum-state", "quorum-state"),
        (".kafka_cleanshutdown", "clean-shutdown"),
        ("tx-0/leader-epoch-checkpoint", "leader-epoch-entry"),
        ("tx-0/partition.metadata", "partition-metadata"),
        ("tx-0/00000000000000000045.snapshot", "producer-snapshot"),
        ("tx-0/00000000000000000000.txnindex", "txn-index-entry"),
        ("tx-0/00000000000000000000.index", "offset-index-entry"),
        ("tx-0/00000000000000000000.timeindex", "time-index-entry"),
        ("bootstrap.checkpoint", "batch"),
    ],
)
@pytest.mark.some(4)
def test_every_other_kind_of_file(
    incident: Incident, dump: Callable[..., tuple[int, str]], untouched: Callable[..., Any], place: str, first: str
) -> None:
    path = incident("all-codecs-4.x") / "snapshots/99-final/broker-1" / place
    with untouched(path.parent):
        code, output = dump(path, "--format", "jsonl")
        assert code == 0
        assert objects(output)[0]["type"] == first
        code, output = dump(path)
        assert code == 0
        assert output.strip()
        assert "\x1b" not in output


def test_a_checkpoints_line_says_what_it_means(incident: Incident, dump: Callable[..., tuple[int, str]]) -> None:
    broker = incident("all-codecs-4.x") / "snapshots/99-final/broker-1"
    _, output = dump(broker / "replication-offset-checkpoint")
    assert "__transaction_state-0  10  high watermark: this broker knew every record below 10 to be committed" in output
    _, output = dump(broker / "tx-0/leader-epoch-checkpoint")
    assert output.splitlines()[-1] == "2  45  leader epoch 2 began at offset 45"


def test_several_files_carry_their_names(incident: Incident, dump: Callable[..., tuple[int, str]]) -> None:
    partition = incident("all-codecs-4.x") / "snapshots/99-final/broker-1/tx-0"
    code, output = dump(partition, "--records", "--format", "jsonl")
    files = {one["file"] for one in objects(output)}
    assert code == 0
    assert f"{partition}/00000000000000000000.log" in files
    assert len(files) > 5
    code, output = dump(partition, "--records")
    assert f"{partition}/00000000000000000000.log\n" in output


def test_one_document(incident: Incident, dump: Callable[..., tuple[int, str]]) -> None:
    log = incident("all-codecs-4.x") / "snapshots/99-final/broker-1/tx-0/00000000000000000000.log"
    code, output = dump(log, "--format", "json")
    document = json.loads(output)
    assert code == 0
    assert document["schema"] == "kforensics/dump/2"
    assert document["exit_code"] == 0
    assert document["inputs"][0]["kind"] == "segment"
    assert document["entries"][0]["type"] == "batch"
    assert document["problems"] == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--from-offset", 30), lambda one: one["offset"] >= 30),
        (("--to-offset", 12), lambda one: one["offset"] <= 12),
        (("--from-offset", 10, "--to-offset", 20), lambda one: 10 <= one["offset"] <= 20),
        (("--from-time", 1795243067226), lambda one: one["timestamp_ms"] >= 1795243067226),
        (("--to-time", "2026-11-21T06:37:47.226Z"), lambda one: one["timestamp_ms"] <= 1795243067226),
    ],
)
def test_selections(
    incident: Incident,
    dump: Callable[..., tuple[int, str]],
    options: tuple[object, ...],
    expected: Callable[[Any], bool],
) -> None:
    log = incident("all-codecs-4.x") / "snapshots/99-final/broker-1/tx-0/00000000000000000000.log"
    _, whole = dump(log, "--records", "--format", "jsonl")
    _, output = dump(log, "--records", "--format", "jsonl", *options)
    wanted = [one for one in objects(whole) if expected(one)]
    assert wanted == objects(output)
    assert 0 < len(wanted) < len(objects(whole))
    _, batches = dump(log, "--format", "jsonl", *options)
    positions = {one["position"] for one in objects(batches)}
    assert {one["batch_position"] for one in wanted} <= positions


def test_epoch_and_producer(incident: Incident, dump: Callable[..., tuple[int, str]]) -> None:
    partition = incident("all-codecs-4.x") / "snapshots/99-final/broker-1/tx-0"
    for log in partition.glob("*.log"):
        _, output = dump(log, "--format", "jsonl")
        batches = objects(output)
        _, output = dump(log, "--format", "jsonl", "--producer-id", 4)
        assert [one for one in batches if one["producer_id"] == 4] == objects(output)
        _, output = dump(log, "--format", "jsonl", "--epoch", 2)
        assert [one for one in batches if one["partition_leader_epoch"] == 2] == objects(output)


def test_payloads(dump: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    log = tmp_path / "t-0" / "00000000000000000000.log"
    log.parent.mkdir()
    log.write_bytes(build_record_batch(0, [(5, b"k\x1b[2J", b"v\xff"), (6, None, "hé".encode())]))
    _, output = dump(log, "--show-payload")
    assert "key: 6b 1b 5b 32 4a" in output
    _, output = dump(log, "--show-payload", "--text")
    assert "key: k\\x1b[2J" in output
    assert "value: v\\xff" in output
    assert "\x1b" not in output
    _, output = dump(log, "--show-payload", "--text", "--format", "jsonl")
    first, second = objects(output)
    assert (first["key"], first["value"]) == ("k\x1b[2J", {"base64": "dv8="})
    assert (second["key"], second["key_length"], second["value"]) == (None, None, "hé")
    assert output.isascii()


def test_damage_stands_in_its_place(incident: Incident, dump: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    log = tmp_path / "t-0" / "00000000000000000000.log"
    log.parent.mkdir()
    batches = [build_record_batch(number, [(1, b"k", b"v" * 50)]) for number in range(3)]
    damaged = bytearray(batches[1])
    damaged[-5] ^= 4
    log.write_bytes(batches[0] + damaged + batches[2])
    code, output = dump(log, "--records", "--format", "jsonl")
    assert code == 1
    assert [one["type"] for one in objects(output)] == ["record", "damage", "record"]
    code, output = dump(log, "--format", "jsonl")
    assert [(one["type"], one.get("crc_valid")) for one in objects(output)] == [
        ("batch", True),
        ("batch", False),
        ("damage", None),
        ("batch", True),
    ]
    code, output = dump(log)
    assert code == 1
    assert f"DAMAGE at byte {len(batches[0])}" in output


def test_what_can_not_be_dumped(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["dump", str(tmp_path / "nothing")]) == 3
    odd = tmp_path / "odd.bin"
    odd.write_bytes(b"something else entirely, and long enough")
    assert run(["dump", str(odd)]) == 3
    assert "neither its name nor its first bytes" in capfd.readouterr().err
    copy = tmp_path / "copy.bin"
    copy.write_bytes(build_record_batch(7, [(1, b"k", b"v")]))
    assert run(["dump", str(copy), "--format", "jsonl"]) == 0
    assert objects(capfd.readouterr().out)[0]["base_offset"] == 7
    assert run(["dump", str(copy), "--from-time", "some day"]) == 2


def test_lock(dump: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    lock = tmp_path / ".lock"
    lock.touch()
    assert dump(lock, "--format", "jsonl") == (0, '{"type": "lock", "bytes": 0}\n')
    lock.write_bytes(b"x")
    assert "expected an empty file" in dump(lock)[1]


payloads = st.none() | st.binary(max_size=12) | st.text(max_size=6).map(str.encode)
bodies = st.lists(
    st.builds(
        BodyRecord,
        timestamp_delta=st.integers(-5, 5),
        offset_delta=st.just(0),
        key=payloads,
        value=payloads,
        headers=st.lists(st.tuples(st.binary(max_size=4), payloads), max_size=2).map(tuple),
    ),
    min_size=1,
    max_size=5,
).map(lambda records: tuple(record._replace(offset_delta=delta) for delta, record in enumerate(records)))


@given(
    st.lists(
        st.tuples(bodies, st.sampled_from([0, 0, 1, 4, 8, 16]), st.sampled_from([-1, 0, 5, 2**31 - 2])),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
    st.booleans(),
)
def test_columns_make_the_same_lines(
    batches: list[tuple[tuple[BodyRecord, ...], int, int]], show_payload: bool, as_text: bool
) -> None:
    data, offset = b"", 0
    for records, attributes, sequence in batches:
        data += encode_record_batch(
            RecordBatch(
                base_offset=offset,
                attributes=attributes,
                last_offset_delta=len(records) - 1,
                base_timestamp=-1,
                max_timestamp=7,
                producer_id=3 if sequence >= 0 else -1,
                producer_epoch=0 if sequence >= 0 else -1,
                base_sequence=sequence,
                records=records,
            )
        )
        offset += len(records)
    source = MemoryBytes(data)
    singly = [
        json.dumps(plain_item(RecordItem(record, None, None), show_payload=show_payload, as_text=as_text))[:-1].encode()
        + b', "file": "a%b"}\n'
        for record in iter_records(source)
        if not hasattr(record, "span")
    ]
    together = [
        line
        for part in iter_record_chunks(source)
        if isinstance(part, RecordChunk)
        for line in bytes(
            record_lines(part, show_payload=show_payload, as_text=as_text, label=', "file": "a%b"')
        ).splitlines(keepends=True)
    ]
    assert singly == together


def many_batches(count: int) -> Iterator[bytes]:
    choose = random.Random(7)
    for number in range(count):
        value = choose.randbytes(choose.randrange(20, 400))
        codec = Codec.GZIP if number % 9 == 0 else Codec.NONE
        yield build_record_batch(number * 2, [(number, b"k", value), (number, None, value[:9])], codec=codec)


def with_false_seam(batches: list[bytes]) -> bytes:
    inner = b"".join(build_record_batch(offset, [(0, b"k", b"v")]) for offset in range(900, 1100))
    return b"".join(batches) + build_record_batch(len(batches) * 2, [(0, None, inner)])


DAMAGES: dict[str, Callable[[list[bytes]], bytes]] = {
    "sound": b"".join,
    "one flipped bit": lambda batches: (
        b"".join(batches[:200]) + bytes([*batches[200][:-1], batches[200][-1] ^ 1]) + b"".join(batches[201:])
    ),
    "zeros": lambda batches: b"".join(batches[:150]) + bytes(5000) + b"".join(batches[150:]),
    "offsets that fall": lambda batches: b"".join([*batches[200:], *batches[:200]]),
    "a value full of batches": with_false_seam,
    "a torn tail": lambda batches: b"".join(batches)[:-5],
    "one large batch": lambda batches: (
        b"".join(batches[:40]) + build_record_batch(80, [(0, None, bytes(30_000))]) + b"".join(batches[41:])
    ),
}


@pytest.mark.parametrize("what", DAMAGES)
@pytest.mark.some(2)
def test_processes_change_no_byte(
    dump: Callable[..., tuple[int, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(ring, "STRETCH_LENGTH", 5_000)
    monkeypatch.setattr(ring, "WORTH_PROCESSES", 1)
    log = tmp_path / "t-0" / "00000000000000000000.log"
    log.parent.mkdir()
    log.write_bytes(DAMAGES[what](list(many_batches(240))))
    alone = dump(log, "--show-payload", "--format", "jsonl", "--jobs", 1)
    assert len(alone[1].splitlines()) >= 460
    assert alone == dump(log, "--show-payload", "--format", "jsonl", "--jobs", 3)
    assert alone == dump(log, "--show-payload", "--format", "jsonl", "--from-offset", -1)


def test_an_index_shortens_the_way(incident: Incident) -> None:
    log = incident("all-codecs-4.x") / "snapshots/99-final/broker-1/tx-0/00000000000000000000.log"
    with open_evidence(log) as file:
        span = find_range(file, log, 0, from_offset=20, to_offset=20, from_time_ms=None)
        assert 0 < span.start < file.size
        assert span.end is None or span.end > span.start
        assert find_range(file, log, 0, from_offset=None, to_offset=None, from_time_ms=1795243067340).start > 0


def test_an_index_that_lies_is_not_believed(incident: Incident, tmp_path: Path) -> None:
    source = incident("all-codecs-4.x") / "snapshots/99-final/broker-1/tx-0"
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes((source / log.name).read_bytes())
    log.with_suffix(".index").write_bytes(b"\x00\x00\x00\x05\x00\x00\x05\x51")
    with open_evidence(log) as file:
        assert find_range(file, log, 0, from_offset=20, to_offset=None, from_time_ms=None) == (0, None)


def test_a_file_without_entries_says_so(tmp_path, capsys):
    path = tmp_path / "cleaner-offset-checkpoint"
    path.write_text("0\n0\n")

    assert run(["dump", str(path)]) == 0
    assert "no entries\n" == capsys.readouterr().out
