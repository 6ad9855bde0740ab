"""A metadata log read with its partitions' records taken together says what it says record by record."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.evidence.metadata import log as metadata_log
from kforensics.evidence.metadata.events import change_events
from kforensics.evidence.metadata.files import find_metadata_logs
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.formats.columns.record_stream import RecordChunk
from kforensics.formats.log.batch_table import CONTROL_BIT
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from kforensics.formats.log.records import slice_nullable
from kforensics.formats.messages.metadata import METADATA_TABLES, encode_metadata_record
from kforensics.formats.messages.metadata_bulk import OtherRecord
from tests.builders.metadata_logs import KEYS

TOPIC_IDS = ("utqilf0YTC25ZZCcD1bqxw", "AAAAAAAAAAAAAAAAAAAAAQ")
NAMES = {
    "PartitionChangeRecord": 60,
    "PartitionRecord": 12,
    "TopicRecord": 8,
    "NoOpRecord": 5,
    "BeginTransactionRecord": 3,
    "EndTransactionRecord": 3,
    "AbortTransactionRecord": 2,
    "ClearElrRecord": 2,
    "RemoveTopicRecord": 2,
}


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.some(20)
def test_together_as_one_by_one(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "__cluster_metadata-0"
    directory.mkdir()
    (directory / f"{0:020}.log").write_bytes(random_log(random.Random(seed)))
    together = told(directory)
    monkeypatch.setattr(metadata_log, "sort_records", one_by_one)
    assert told(directory) == together


def told(directory: Path) -> dict[str, Any]:
    history: MetadataHistory = metadata_log.read_metadata_log(find_metadata_logs(find_inputs([directory]))[0])
    names = ("topics", "unapplied", "aborted", "start_offset", "end_offset", "gaps", "damage")
    return {name: getattr(history, name) for name in names} | {
        "partitions": {key: tuple(states) for key, states in history.partitions.items()},
        "events": list(change_events(history)),
        "problems": sorted(map(str, history.problems)),
    }


def one_by_one(chunk: RecordChunk, rows: NDArray[np.intp]) -> Iterator[OtherRecord]:
    is_control = chunk.batches["attributes"][chunk.rows] & CONTROL_BIT > 0
    for row in rows.tolist():
        key = slice_nullable(chunk.view, int(chunk.key_position[row]), int(chunk.key_length[row]))
        value = slice_nullable(chunk.view, int(chunk.value_position[row]), int(chunk.value_length[row]))
        yield OtherRecord(row, bool(is_control[row]), key, value)


def random_log(dice: random.Random) -> bytes:
    """Batches with gaps, steps back and a flipped bit, of records some of which are torn or changed."""
    offset, out = dice.choice([0, 0, 7]), bytearray()
    for _ in range(dice.randrange(1, 12)):
        values = [(dice.randrange(-1, 99), None, random_value(dice)) for _ in range(dice.randrange(1, 30))]
        out += encode_record_batch(build_record_batch(offset, values, partition_leader_epoch=1))
        offset = max(0, offset + len(values) + dice.choice([0] * 18 + [3, -5]))
    if dice.random() < 0.2:
        out[dice.randrange(len(out))] ^= 1
    return bytes(out)


def random_value(dice: random.Random) -> bytes | None:
    name = dice.choices(list(NAMES), list(NAMES.values()))[0]
    table = METADATA_TABLES[KEYS[name]]
    version = dice.choice(list(table.versions)[:3])
    known = {field.name for field in table.fields if version in field.versions}
    fields = {key: value for key, value in random_fields(dice, name).items() if key in known}
    value = bytearray(encode_metadata_record(KEYS[name], version, fields))
    if dice.random() < 0.05:
        value[dice.randrange(len(value))] = dice.randrange(256)
    if dice.random() < 0.03:
        del value[dice.randrange(len(value)) :]
    return bytes(value) if dice.random() > 0.01 else None


def random_fields(dice: random.Random, name: str) -> dict[str, Any]:
    def brokers() -> tuple[int, ...]:
        return tuple(dice.sample(range(1, 5), dice.randrange(4)))

    fields: dict[str, Any] = {"name": dice.choice("ab"), "topic_id": dice.choice(TOPIC_IDS), "topic_name": "a"}
    fields |= {"partition_id": dice.randrange(3)}
    said = {"isr": brokers(), "replicas": brokers(), "leader": dice.randrange(-2, 4)}
    said |= {"eligible_leader_replicas": brokers(), "leader_recovery_state": dice.randrange(2)}
    if name == "PartitionChangeRecord":
        return fields | {key: value for key, value in said.items() if dice.random() < 0.5}
    return fields | said | {"leader_epoch": dice.randrange(5), "partition_epoch": 3}
