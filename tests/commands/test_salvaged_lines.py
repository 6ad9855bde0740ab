"""Lines of salvaged records: the same with and without pyarrow."""

import json
from base64 import b64decode
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from kforensics.commands.salvaging import jsonl
from kforensics.commands.salvaging.folder import OutFolder
from kforensics.commands.salvaging.outputs import Given
from kforensics.commands.salvaging.parquet import ArrowCells
from kforensics.damage import Damage
from kforensics.evidence import record_lines
from kforensics.evidence.record_lines import PlainCells
from kforensics.formats.log.batches import Message, build_record_batch, encode_message, encode_record_batch
from kforensics.formats.primitives.numbers import Codec
from kforensics.formats.primitives.word_buffer import MemoryBytes
from kforensics.formats.segment.walk import iter_record_chunks
from kforensics.units import TopicPartition

HEADERS = ((b"trace", b"1"), (b"\xff", None), ("zoë".encode(), b""))


def payload(random: Random) -> bytes | None:
    return None if random.random() < 0.2 else random.randbytes(random.choice([0, 1, 2, 3, 4, 5, 40]))


def made_log(seed: int) -> bytes:
    """Batches of every magic and some codecs, with nulls, empty payloads and headers, names of headers that are no text among them."""
    random = Random(seed)
    data, offset = b"", 0
    for _ in range(12):
        if random.random() < 0.3:
            magic, time = random.choice([(0, -1), (1, -1), (1, 5)])
            message = Message(offset, magic, 0, time, payload(random), payload(random))
            data, offset = data + encode_message(message), offset + 1
            continue
        records = [(random.choice([-1, 7]), payload(random), payload(random)) for _ in range(random.randrange(1, 9))]
        batch = build_record_batch(
            offset,
            records,
            codec=random.choice([Codec.NONE, Codec.NONE, Codec.GZIP]),
            producer_id=random.choice([-1, 9]),
            producer_epoch=0,
            base_sequence=random.choice([-1, 3]),
            partition_leader_epoch=random.choice([-1, 2]),
        )
        with_headers = [one._replace(headers=random.choice([(), HEADERS])) for one in batch.records]
        batch = replace(batch, records=tuple(with_headers))
        data, offset = data + encode_record_batch(batch), offset + len(records)
    return data


@pytest.mark.parametrize("seed", range(6))
def test_lines_are_the_same_with_and_without_pyarrow(seed, tmp_path, monkeypatch):
    random = Random(seed)
    folder = OutFolder(tmp_path)
    writers = [jsonl.JsonRecords(folder, name, TopicPartition("orders", 0)) for name in ("plain", "arrow")]
    writers[1].expect_many()
    assert isinstance(writers[1]._cells, ArrowCells)
    count = 0
    for chunk in iter_record_chunks(MemoryBytes(made_log(seed))):
        if isinstance(chunk, Damage):
            continue  # a leader epoch of -1
        rows = len(chunk.rows)
        codes = np.array([random.randrange(4) for _ in range(rows)], np.int8)
        given = Given(input=0, path='a"b', committed=codes, aborted=codes > 2)
        plain, arrow = (bytes(writer.lines(chunk, given)) for writer in writers)
        assert plain == arrow
        for line, record in zip(plain.splitlines(), chunk.records(), strict=True):
            found = json.loads(line)
            payloads = [found[name] and b64decode(found[name]["base64"], validate=True) for name in ("key", "value")]
            assert (found["offset"], payloads) == (record.offset, [record.key, record.value])
            assert len(found["headers"]) == len(record.headers)
        count += rows
    assert count > 12
    for writer in writers:
        writer.close()


def test_pyarrow_is_loaded_only_where_there_are_many_records(tmp_path, monkeypatch):
    monkeypatch.setattr(jsonl, "_FEW_RECORDS", 3)
    writer = jsonl.JsonRecords(OutFolder(tmp_path), "few", TopicPartition("orders", 0))
    data = encode_record_batch(build_record_batch(0, [(1, b"k", b"v")] * 2))
    chunk = next(iter_record_chunks(MemoryBytes(data)))
    assert not isinstance(chunk, Damage)
    given = Given(input=0, path="p", committed=np.zeros(2, np.int8), aborted=np.zeros(2, np.bool_))

    writer.add(chunk, given)
    before = type(writer._cells)
    writer.add(chunk, given)
    assert (before, type(writer._cells)) == (PlainCells, ArrowCells)
    assert len(set(map(bytes, writer.file._pieces))) == 1
    writer.close()


def test_long_names_of_headers_are_not_kept():
    long = b"n" * 300
    before = record_lines._short_name.cache_info().currsize

    assert record_lines._name(long) == b'"%b"' % long
    assert record_lines._name(b"\xff" * 300).startswith(b'{"base64": "')
    assert record_lines._short_name.cache_info().currsize == before
