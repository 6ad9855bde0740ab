"""A last batch whose base offset was raised, in a recorded partition: the log is wrong, not what stands beside it."""

import shutil

import pytest

from kforensics.damage import DamageKind
from kforensics.evidence.checks.consistency import verify_inputs
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.formats.primitives.word_buffer import MemoryBytes
from kforensics.formats.segment.walk import Level, walk_segment
from tests.builders.directories import copied

SEGMENT = f"{0:020d}.log"


@pytest.fixture
def broker(tmp_path, fixtures):
    copy = tmp_path / "broker-1"
    source = fixtures / "unclean-election" / "broker-1"
    copied(source / "orders-1", copy / "orders-1")
    for name in ("meta.properties", "recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        shutil.copyfile(source / name, copy / name)
    return copy


def damaged(broker):
    verification = verify_inputs(find_inputs([broker]), level=Level.RECORDS, jobs=1)
    return {
        report.path: [place for place in report.damage if place.gravity == "damage"]
        for report in verification.files
        if any(place.gravity == "damage" for place in report.damage)
    }


def last_batch(path):
    (window,) = walk_segment(MemoryBytes(path.read_bytes()), level=Level.CRC)
    return window.batches[-1]


@pytest.mark.parametrize("bit", range(5, 63, 3))
def test_the_log_is_blamed_and_the_bit_is_named(broker, bit):
    path = broker / "orders-1" / SEGMENT
    row = last_batch(path)
    position, base = int(row["position"]), int(row["base_offset"])
    if base >> bit & 1:
        pytest.skip("that bit would lower it")
    data = bytearray(path.read_bytes())
    data[position : position + 8] = (base | 1 << bit).to_bytes(8)
    path.write_bytes(data)

    found = damaged(broker)

    assert list(found) == [f"orders-1/{SEGMENT}"]
    (place,) = found[f"orders-1/{SEGMENT}"]
    assert (place.kind, place.span.position) == (DamageKind.ORDER, position)
    assert (place.cause.flip.position, place.cause.flip.bit) == (position + 7 - bit // 8, bit % 8)


def test_without_witnesses_a_gap_is_no_damage(broker):
    path = broker / "orders-1" / SEGMENT
    row = last_batch(path)
    data = bytearray(path.read_bytes())
    data[int(row["position"]) + 5] ^= 1 << 3
    path.write_bytes(data)
    for beside in [*path.parent.glob("*.index"), *path.parent.glob("*.timeindex")]:
        beside.unlink()

    assert f"orders-1/{SEGMENT}" not in damaged(broker)


def test_an_untouched_partition_has_none(broker):
    assert damaged(broker) == {}
