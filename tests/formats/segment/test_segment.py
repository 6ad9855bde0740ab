import random
import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.damage import Damage, DamageKind, Gravity
from kforensics.formats.log.batches import (
    iter_batch_records,
    with_right_crc,
)
from kforensics.formats.primitives.numbers import Codec
from kforensics.formats.primitives.word_buffer import MemoryBytes
from kforensics.formats.segment import walk as segment_module
from kforensics.formats.segment.walk import Level, find_batch_start, iter_records, walk_segment
from tests.conftest import ROOT
from tests.formats.segments import batches_of, walked
from tests.formats.segments import sound_batch as batch
from tests.steps import steps

FORMATS = [(2, codec) for codec in range(5)] + [(magic, codec) for magic in (0, 1) for codec in range(4)]


def test_an_empty_file_holds_nothing():
    assert ([], [], 0) == walked(b"")


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
def test_batches_tile_the_file(magic, codec):
    batches = batches_of(random.Random(1), magic, codec)
    found = walked(b"".join(batches))

    assert [] == found.damage
    assert [len(one) for one in batches] == [row["length"] for row in found.batches]
    assert all(before["position"] + before["length"] == row["position"] for before, row in pairwise(found.batches))
    assert all(before["last_offset"] + 1 == row["base_offset"] for before, row in pairwise(found.batches))
    assert found.record_count == sum(row["count"] for row in found.batches)


def test_all_formats_in_one_file():
    rng = random.Random(2)
    runs: list[bytes] = []
    for magic, codec in sorted(FORMATS):
        offset = len(runs) * 10_000
        for one in batches_of(rng, 2, codec, 3) if magic == 2 else []:
            runs.append((offset + len(runs)).to_bytes(8) + one[8:])
    old = batches_of(rng, 0, 0, 5) + batches_of(rng, 1, 0, 5)
    found = walked(b"".join([*old, *runs]), Level.CRC)

    assert len(old) + len(runs) == len(found.batches)
    assert {DamageKind.ORDER, DamageKind.EPOCH} >= {damage.kind for damage in found.damage}


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
def test_records_are_read_from_columns_as_one_by_one(magic, codec):
    batches = batches_of(random.Random(3), magic, codec, 8)
    data = b"".join(batches)
    found = list(iter_records(MemoryBytes(data)))

    assert len(found) == walked(data).record_count
    if magic == 2:
        positions = [0, *[sum(map(len, batches[: index + 1])) for index in range(len(batches))]]
        expected = [
            record
            for position, one in zip(positions, batches, strict=False)
            for record in iter_batch_records(one, position)
        ]
        assert expected == found


@pytest.mark.parametrize("window_length", [100, 1000, 5000])
@pytest.mark.parametrize(("magic", "codec"), [(2, 0), (2, 4), (1, 2), (0, 0)])
def test_small_windows_find_the_same(monkeypatch, window_length, magic, codec):
    data = bytearray(b"".join(batches_of(random.Random(4), magic, codec)))
    data[len(data) // 2] ^= 4
    whole = walked(data)
    monkeypatch.setattr(segment_module, "WINDOW_LENGTH", window_length)
    monkeypatch.setattr(segment_module, "_OVERHANG", 50)

    windows = list(walk_segment(MemoryBytes(data), level=Level.RECORDS))
    cut = walked(data)

    assert len(windows) > 1
    assert all(before.span.end == window.span.position for before, window in pairwise(windows))
    assert [row.tolist() for row in whole.batches] == [row.tolist() for row in cut.batches]
    assert whole.damage == cut.damage
    assert whole.record_count == cut.record_count
    assert list(iter_records(MemoryBytes(data))) == [*iter_records(MemoryBytes(data))]


def test_a_batch_larger_than_may_be_held_is_proven_in_pieces(monkeypatch):
    data = batch(0) + batch(3, value=bytes(50_000)) + batch(6)
    monkeypatch.setattr(segment_module, "WINDOW_LENGTH", 1000)
    monkeypatch.setattr(segment_module, "_OVERHANG", 50)
    monkeypatch.setattr(segment_module, "LARGEST_HELD", 10_000)

    found = walked(data)
    damaged = walked(data[:100_000] + b"!" + data[100_001:])

    assert [0, 3, 6] == [row["base_offset"] for row in found.batches]
    assert [DamageKind.TOO_LARGE] == [damage.kind for damage in found.damage]
    assert [] == walked(data, Level.CRC).damage
    assert [DamageKind.CRC] == [damage.kind for damage in damaged.damage]
    assert [True, False, True] == [bool(row["crc_valid"]) for row in damaged.batches]


@given(st.lists(st.integers(1, 60), min_size=2, max_size=6), st.integers(0, 3))
def test_ranges_of_a_file_meet_at_their_seams(counts, cut):
    data = b"".join(batch(1000 * index, count) for index, count in enumerate(counts))
    middle = find_batch_start(MemoryBytes(data), len(data) * cut // 4)

    windows = list(walk_segment(MemoryBytes(data), level=Level.CRC, end=middle))
    rest = walked(data, start=windows[-1].span.end if windows else 0)

    assert (windows[-1].span.end if windows else 0) == (len(data) if middle is None else middle)
    assert len(counts) == sum(len(window.batches) for window in windows) + len(rest.batches)


def test_zeros_behind_the_last_batch_may_be_a_preallocated_tail():
    data = batch(0)
    (damage,) = walked(data + bytes(10_000)).damage

    assert (DamageKind.ZEROS, Gravity.TORN_TAIL) == (damage.kind, damage.gravity)
    assert (len(data), 10_000) == damage.span


def test_a_file_that_begins_with_no_batch_is_no_unfinished_write():
    noise = bytes(range(1, 256)) * 40

    alone = walked(noise).damage
    behind = walked(batch(0) + noise).damage

    assert [(damage.kind, damage.gravity) for damage in alone] == [(DamageKind.MAGIC, Gravity.DAMAGE)]
    assert [damage.gravity for damage in behind] == [Gravity.TORN_TAIL]


def test_offsets_that_occur_twice_are_reported_and_kept():
    found = walked(batch(50, 22) + batch(60, 20) + batch(80))

    (damage,) = found.damage
    assert (DamageKind.ORDER, "60 to 79") == (damage.kind, damage.found)
    assert [50, 60, 80] == [row["base_offset"] for row in found.batches]
    assert 45 == found.record_count


def test_one_batch_of_another_leader_epoch_is_reported_alone():
    epochs = [3, 3, 3 + (1 << 20), 3, 3, 4]
    found = walked(b"".join(batch(3 * index, partition_leader_epoch=epoch) for index, epoch in enumerate(epochs)))

    (damage,) = found.damage
    assert (DamageKind.EPOCH, 2 * len(batch(0))) == (damage.kind, damage.span.position)


def test_a_leader_epoch_that_stays_lower_is_reported_once():
    epochs = [3, 3, 5, 5, 4, 4, 4]
    found = walked(b"".join(batch(3 * index, partition_leader_epoch=epoch) for index, epoch in enumerate(epochs)))

    assert [4 * len(batch(0))] == [damage.span.position for damage in found.damage]


def test_a_batch_of_another_file_inside_a_record_is_not_taken_for_one():
    inner = batch(7000)
    data = bytearray(batch(0) + batch(3, value=inner) + batch(6))
    data[len(batch(0)) + 70] ^= 1

    found = walked(data)

    assert [0, 3, 6] == [row["base_offset"] for row in found.batches]
    assert [(3, 5)] == [damage.offsets_lost for damage in found.damage]


@pytest.mark.parametrize("length", [-(1 << 31), -1, 0, 13, 48, (1 << 31) - 1])
def test_lying_lengths_do_not_stop_a_walk(length):
    data = bytearray(batch(0) + batch(3) + batch(6))
    start = len(batch(0))
    data[start + 8 : start + 12] = length.to_bytes(4, signed=True)

    found = walked(data)

    assert [0, 6] == [row["base_offset"] for row in found.batches if row["crc_valid"]]
    (damage,) = found.damage
    assert (DamageKind.LENGTH, start, len(batch(0))) == (damage.kind, *damage.span)
    assert (6, 2 * start) == damage.next_good


def test_a_codec_that_does_not_exist_is_named():
    data = bytearray(batch(0))
    data[22] = 5

    (damage,) = walked(with_right_crc(bytes(data))).damage

    assert DamageKind.UNSUPPORTED == damage.kind


def test_compressed_bytes_that_lie_are_named():
    data = bytearray(batch(0, codec=Codec.ZSTD))
    data[70] ^= 0xFF

    (damage,) = walked(with_right_crc(bytes(data))).damage

    assert DamageKind.COMPRESSION == damage.kind


@given(st.binary(max_size=400))
def test_any_bytes_are_covered_by_batches_and_damage(data):
    found = walked(data)

    assert (found.batches or found.damage) if data else not found.damage
    assert all(isinstance(part, Damage) for part in iter_records(MemoryBytes(data)))


@given(st.randoms(use_true_random=False), st.sampled_from(FORMATS))
def test_any_damage_leaves_a_walk_running(rng, kind):
    data = bytearray(b"".join(batches_of(rng, kind[0], kind[1], 4)))
    for _ in range(rng.randrange(1, 20)):
        place = rng.randrange(len(data))
        data[place : place + rng.randrange(1, 9)] = rng.randbytes(rng.randrange(0, 9))

    found = walked(data)

    assert found.batches or found.damage
    sum(1 for _ in iter_records(MemoryBytes(data)))


PATTERNS = ("headers", "zeros", "random", "bad-checksums", "gaps", "magics")
STEPS_A_BYTE = 4


@pytest.mark.process
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.some(1)
def test_hostile_megabytes_take_little_memory(pattern):
    script = (
        "import sys\n"
        "from tests.peak import own_peak_mebibytes\n"
        "from kforensics.formats.primitives.word_buffer import MemoryBytes\n"
        "from kforensics.formats.segment.walk import Level, walk_segment\n"
        "data = sys.stdin.buffer.read()\n"
        "damage = sum(len(window.damage) for window in walk_segment(MemoryBytes(data), level=Level.RECORDS))\n"
        "print(int(own_peak_mebibytes()), damage)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], input=hostile(pattern), capture_output=True, check=True, cwd=ROOT
    )
    peak, damage = done.stdout.decode().split()

    assert int(peak) < 250
    assert 0 < int(damage) < 10_000


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.some("headers", "zeros", "random", "bad-checksums", "magics")
def test_hostile_bytes_are_walked_in_steps_linear_to_them(pattern):
    def walk(length):
        return lambda: walked(hostile(pattern, length))

    small, large = steps(walk(1 << 16)), steps(walk(1 << 18))

    assert large < 4.4 * small
    assert large < STEPS_A_BYTE * (1 << 18)


def hostile(pattern: str, length: int = 4 << 20) -> bytes:
    one = batch(0, 1, b"")
    match pattern:
        case "headers":
            return (one[:8] + (1 << 20).to_bytes(4) + one[12:61]) * (length // 61)
        case "zeros":
            return bytes(length)
        case "random":
            return random.Random(5).randbytes(length)
        case "bad-checksums":
            bad = one[:17] + b"oops" + one[21:]
            return b"".join(
                offset.to_bytes(8) + (bad if offset % 2 else one)[8:] for offset in range(length // len(one))
            )
        case "gaps":
            return b"".join(offset.to_bytes(8) + one[8:] + b"gap!" for offset in range(length // (len(one) + 4)))
        case _:
            messages = batches_of(random.Random(6), 0, 0, 1)[0]
            return (one + messages) * (length // (len(one) + len(messages)))


@pytest.mark.parametrize(
    ("behind", "expected"), [(10, "a base offset above 9"), (30, "a base offset above 9 and below 30")]
)
def test_a_batch_between_two_that_leave_no_room_is_not_expected_between_them(behind, expected):
    log = b"".join([batch(0, 5), batch(5, 5), batch(2, 3), batch(behind, 5)])

    [place] = [one for window in walk_segment(MemoryBytes(log), level=Level.CRC) for one in window.damage]

    assert (place.expected, place.found) == (expected, "2 to 4")
