"""Bombs, lies and nonsense in segments, each with the figure that is promised for it."""

import json
import subprocess
import sys
import tracemalloc

import pytest

from kforensics.errors import FormatError
from kforensics.formats.columns import record_columns
from kforensics.formats.log.batches import Message, encode_message_set, with_right_crc
from kforensics.formats.primitives import compression
from kforensics.formats.primitives.checksum import crc32c
from kforensics.formats.primitives.compression import OUTPUT_LIMIT, compress, decompress
from kforensics.formats.primitives.numbers import Codec, OutputLimitReached, encode_varint
from kforensics.formats.primitives.word_buffer import MemoryBytes
from kforensics.formats.segment import entries, resync
from kforensics.formats.segment.walk import Level, walk_segment
from tests.conftest import ROOT
from tests.steps import steps
from tests.trust.hostile import (
    batch_with_body,
    bombs,
    nested_wrappers,
    record,
    sound_batch,
    write_partition,
    zstd_bomb,
)
from tests.trust.measured import measured

PEAK_MEBIBYTES = 256
ERROR_STEPS = 500
MOST_STEPS_EACH = 150
ERROR_BYTES = 1 << 20
BOMBS = bombs()
SOUND = sound_batch(0) + sound_batch(1)


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.some(2)
def test_a_bomb_is_named_and_the_run_goes_on(name, tmp_path):
    codec, data, _ = BOMBS[name]
    write_partition(tmp_path, "t-0", sound_batch(0) + batch_with_body(1, data, codec=codec) + sound_batch(2))

    run = measured("verify", tmp_path, "--format", "json")

    document = json.loads(run.out)
    segment = next(one for one in document["files"] if one["kind"] == "segment")
    places = [(one["kind"], one["position"]) for one in segment["damage"]]
    is_limit = places[0][0] == "too-large" and name != "zstd-window"
    assert run.code == (3 if is_limit else 1), run.err
    assert [one["gravity"] for one in segment["damage"]] == ["unread" if is_limit else "damage"]
    assert segment["batches"] == 3
    assert segment["records"] == 2
    assert [place for _, place in places] == [len(sound_batch(0))]
    assert places[0][0] in {"too-large", "compression", "record"}  # 21:1 is all that snappy can do
    # Recovery asks for checksums, and this one holds.
    assert not any("the next start cuts" in one["meaning"] for one in document["findings"])
    assert run.peak_mebibytes < PEAK_MEBIBYTES


@pytest.mark.slow
def test_bombs_do_not_go_off_in_dump(tmp_path):
    for name, (codec, data, _) in BOMBS.items():
        write_partition(tmp_path, f"{name}-0", sound_batch(0) + batch_with_body(1, data, codec=codec) + sound_batch(2))

    run = measured("dump", tmp_path, "--records", "--format", "jsonl")

    lines = [json.loads(line) for line in run.out.splitlines()]
    assert run.code == 1, run.err
    assert sum(line["type"] == "record" for line in lines) == 2 * len(BOMBS)
    assert sum(line["type"] == "damage" for line in lines) == len(BOMBS)
    assert run.peak_mebibytes < PEAK_MEBIBYTES


PROMISED_MEBIBYTES = 64
GROWTH = """
import sys
from pathlib import Path
from kforensics.formats.log.batches import with_right_crc
from kforensics.formats.primitives.word_buffer import MemoryBytes
from kforensics.formats.segment.walk import Level, iter_record_chunks, walk_segment
from tests.peak import own_peak_mebibytes
from tests.trust.hostile import sound_batch
data = Path(sys.argv[1]).read_bytes()
def read(data):
    for _ in walk_segment(MemoryBytes(data), level=Level.RECORDS): pass
    for _ in iter_record_chunks(MemoryBytes(data)): pass
read(sound_batch(0))
Path("/proc/self/clear_refs").write_text("5")
before = own_peak_mebibytes()
read(data)
print(own_peak_mebibytes() - before)
"""


def compressed(codec, mebibytes=40):
    return batch_with_body(0, compress(codec, record(bytes((mebibytes << 20) - 1000))), codec=codec)


def large_window():
    return batch_with_body(1, zstd_bomb(), codec=4)


LARGE_BATCHES = {
    "gzip": lambda: compressed(Codec.GZIP),
    "snappy": lambda: compressed(Codec.SNAPPY),
    "lz4": lambda: compressed(Codec.LZ4),
    "zstd": lambda: compressed(Codec.ZSTD),
    "zstd of less": lambda: compressed(Codec.ZSTD, 24),
    "zstd with a window of 128 MiB": large_window,
    "gzip, then zstd": lambda: compressed(Codec.GZIP) + large_window(),
    "a wrapper of magic 1": lambda: encode_message_set([Message(5, 1, 0, 1, b"k", bytes((16 << 20) - 1000))], codec=1),
}
"""By name: batches that decompress to about as much as is looked into, and two that follow each other with different codecs."""


@pytest.mark.parametrize("name", LARGE_BATCHES)
@pytest.mark.some("gzip", "zstd with a window of 128 MiB")
def test_one_batch_takes_no_more_than_four_times_the_input_and_64_mebibytes(name, tmp_path):
    data = LARGE_BATCHES[name]()
    path = tmp_path / "segment"
    path.write_bytes(data)

    run = subprocess.run([sys.executable, "-c", GROWTH, path], capture_output=True, text=True, check=True, cwd=ROOT)

    assert float(run.stdout) <= PROMISED_MEBIBYTES + 4 * len(data) / (1 << 20)


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.some(2)
def test_decompression_stops_at_its_bound(name):
    codec, data, _ = BOMBS[name]

    tracemalloc.start()
    with pytest.raises((OutputLimitReached, FormatError)):
        decompress(codec, data, 1 << 20)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 8 << 20


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.some(2)
def test_no_more_is_decompressed_than_the_limit(name, monkeypatch):
    codec, data, _ = BOMBS[name]
    rooms = []
    real = compression.decompress_into

    def count(codec, data, output):
        rooms.append(len(output))
        return real(codec, data, output)

    for module in (record_columns, compression):
        monkeypatch.setattr(module, "decompress_into", count)

    damage, batches = walk(sound_batch(0) + batch_with_body(1, data, codec=codec) + sound_batch(2))

    assert len(damage) == 1
    assert batches == 3
    assert 0 < len(rooms) <= 8
    assert max(rooms) <= OUTPUT_LIMIT
    assert sum(rooms) <= 3 * OUTPUT_LIMIT


LIES = {
    "count largest": batch_with_body(2, record(), count=2**31 - 1),
    "count negative": batch_with_body(2, record(), count=-1),
    "count smallest": batch_with_body(2, record(), count=-(2**31)),
    "count zero with bytes": batch_with_body(2, record(), count=0),
    "count one too many": batch_with_body(2, record(), count=2),
    "headers largest": batch_with_body(2, record(headers=encode_varint(2**31 - 1))),
    "headers negative": batch_with_body(2, record(headers=encode_varint(-1))),
    "header name negative": batch_with_body(2, record(headers=encode_varint(1) + encode_varint(-1) + b"\x00")),
    "varint too long": batch_with_body(2, b"\xff" * 10),
    "varint too long in key": batch_with_body(2, record(key_length=b"\xff" * 10)),
    "key largest": batch_with_body(2, record(key_length=encode_varint(2**31 - 1))),
    "key below null": batch_with_body(2, record(key_length=encode_varint(-2))),
    "record length negative": batch_with_body(2, encode_varint(-5) + record()[1:]),
    "record length largest": batch_with_body(2, encode_varint(2**31 - 1) + record()[1:]),
    "codec unknown": batch_with_body(2, record(), codec=7),
    "gzip of nothing": batch_with_body(2, b"", codec=1),
    "zstd of noise": batch_with_body(2, b"\x28\xb5\x2f\xfd" + b"\xff" * 20, codec=4),
    "snappy block below zero": batch_with_body(2, b"\x82SNAPPY\x00" + bytes(8) + b"\xff\xff\xff\xff", codec=2),
    "snappy block largest": batch_with_body(2, b"\x82SNAPPY\x00" + bytes(8) + b"\x7f\xff\xff\xff", codec=2),
    "nested wrappers": nested_wrappers(100),
    "nested wrappers of magic 0": nested_wrappers(100, magic=0),
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_told_at_once_and_costs_nothing(name):
    data = SOUND + LIES[name]
    walk(SOUND)
    memory = traced(data) - traced(SOUND)

    damage, batches = walk(data)

    assert len(damage) == 1
    assert damage[0].span.position == len(SOUND)
    assert batches >= 2
    assert walk_steps(data) - walk_steps(SOUND) < ERROR_STEPS
    assert memory < ERROR_BYTES


@pytest.mark.parametrize("length", [2**31 - 1, -1, 0, 13, 48, -(2**31), 2**30])
def test_a_batch_length_is_a_claim(length):
    lying = bytearray(sound_batch(2))
    lying[8:12] = (length & 0xFFFFFFFF).to_bytes(4, "big")
    data = SOUND + bytes(lying) + sound_batch(3) + sound_batch(4)

    damage, batches = walk(data)

    assert batches >= 4
    assert damage[0].span.position == len(SOUND)
    assert any(one.next_good == (3, len(SOUND) + len(lying)) for one in damage)
    assert walk_steps(data) - walk_steps(SOUND) < 3 * ERROR_STEPS


def test_lying_lengths_everywhere_stay_linear(monkeypatch):
    """Every header claims all that is left: following claims would be quadratic."""
    header = bytearray(sound_batch(0))
    count = 4_000
    checked = 0
    real = crc32c

    def count_checked(data, *rest):
        nonlocal checked
        checked += len(data)
        return real(data, *rest)

    for module in (entries, resync):
        monkeypatch.setattr(module, "crc32c", count_checked)

    def lies(number):
        total = number * len(header)
        pieces = []
        for index in range(number):
            header[8:12] = (total - index * len(header) - 12 - index % 7).to_bytes(4, "big")
            pieces.append(bytes(header))
        return b"".join(pieces)

    def work(data):
        nonlocal checked
        source, checked = CountedBytes(data), 0
        list(walk_segment(source, level=Level.RECORDS))
        return source.read, checked

    small, large = lies(count), lies(count * 4)
    (small_read, small_checked), (large_read, large_checked) = work(small), work(large)

    assert walk_steps(large) < 4.4 * walk_steps(small)
    assert large_read <= 4.4 * small_read
    assert large_checked <= 4.4 * small_checked + len(large)


RECORDS = 2_000_000


def dense_batch(name, size=RECORDS):
    """A few hundred or thousand bytes that hold `size` records or headers, how many records that is, and what is said of them."""
    zero_delta = b"\x0c\0\0\0\x01\x01\0"
    match name:
        case "offsets that do not rise":
            body, count, kind = zero_delta * size, size, "record"
        case "the last record too long":
            body, count, kind = zero_delta * (size - 1) + b"\x0e" + zero_delta[1:], size, "record"
        case "headers in every record":
            headers = size // 100
            body, count, kind = record(headers=encode_varint(headers) + b"\x00\x00" * headers) * 100, 100, "record"
        case _:
            body, count, kind = record(headers=encode_varint(size) + b"\x00\x00" * size), 1, "too-large"
    batch = bytearray(batch_with_body(2, compress(Codec.ZSTD, body), codec=4, count=count))
    batch[23:27] = (count - 1).to_bytes(4)
    return SOUND + with_right_crc(bytes(batch)) + sound_batch(2 + count), kind


DENSE = ("offsets that do not rise", "the last record too long", "headers in every record", "headers in one record")


@pytest.mark.parametrize("name", DENSE)
@pytest.mark.some(2)
def test_what_is_dense_is_judged(name):
    data, kind = dense_batch(name)

    damage, batches = walk(data)

    assert [kind] == [one.kind for one in damage]
    assert batches == 4
    assert len(data) < 20_000


@pytest.mark.parametrize("name", DENSE)
@pytest.mark.some(2)
def test_what_is_dense_takes_steps_in_proportion(name):
    small, large = (walk_steps(dense_batch(name, size)[0]) for size in (5_000, 10_000))

    assert large < 2.1 * small
    assert large < MOST_STEPS_EACH * 10_000


@pytest.mark.parametrize("pattern", [b"\x00", b"\xff", sound_batch(0)[:61], sound_batch(0)[:17] + b"\x02" * 44])
@pytest.mark.some(2)
def test_zeros_noise_and_headers_without_end_stay_linear(pattern):
    small, large = (walk_steps(pattern * (size // len(pattern))) for size in (1 << 18, 1 << 20))

    assert large < 4.4 * small
    assert large < 1 << 20


def walk(data, level=Level.RECORDS):
    windows = list(walk_segment(MemoryBytes(data), level=level))
    return [damage for window in windows for damage in window.damage], sum(len(window.batches) for window in windows)


def walk_steps(data):
    return steps(lambda: walk(data))


class CountedBytes(MemoryBytes):
    """A segment in memory that counts what is read of it."""

    def __init__(self, data):
        super().__init__(data)
        self.read = 0

    def read_into(self, position, buffer):
        length = super().read_into(position, buffer)
        self.read += length
        return length


def traced(data):
    tracemalloc.start()
    walk(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak
