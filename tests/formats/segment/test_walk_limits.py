"""Walks at their limits: entries that can't be held, files that become shorter, tails behind which nothing is sound."""

import pytest

from kforensics.damage import Absent, DamageKind
from kforensics.errors import FormatError
from kforensics.formats.log.batches import Message, encode_message
from kforensics.formats.log.records import skip_headers
from kforensics.formats.primitives.compression import compress
from kforensics.formats.primitives.numbers import Codec
from kforensics.formats.segment import damaged_places, walk
from kforensics.formats.segment.diagnosis import CRC32C_REFLECTED, locate_flipped_bit
from kforensics.formats.segment.walk import Level, walk_segment
from kforensics.units import OffsetRange
from tests.formats.segments import FIRST_TIMESTAMP_MS, walked
from tests.formats.segments import sound_batch as batch


@pytest.fixture
def small_windows(monkeypatch):
    monkeypatch.setattr(walk, "WINDOW_LENGTH", 1 << 12)
    monkeypatch.setattr(walk, "LARGEST_HELD", 1 << 13)


@pytest.mark.parametrize("level", list(Level))
@pytest.mark.parametrize("magic", [1, 2])
def test_a_sound_entry_that_is_larger_than_may_be_held(small_windows, level, magic):
    value = bytes(1 << 14)
    message = encode_message(Message(3, 1, 0, FIRST_TIMESTAMP_MS, b"k", value))
    data = batch(0) + (message if magic == 1 else batch(3, 1, value)) + batch(4)

    found = walked(data, level)

    assert [int(row["base_offset"]) for row in found.batches] == [0, 3, 4]
    assert [one.kind for one in found.damage] == ([DamageKind.TOO_LARGE] if level is Level.RECORDS else [])


class Shrunk:
    """A file that lost all its bytes after it was opened."""

    size = 10_000

    def read_into(self, _position: int, _buffer: memoryview) -> int:
        return 0


def test_a_file_that_lost_all_its_bytes_since_it_was_opened():
    (window,) = walk_segment(Shrunk(), level=Level.CRC)

    assert (len(window.batches), window.damage, window.record_count) == (0, (), 0)


def test_more_bad_batches_before_a_sound_one_than_are_listed(monkeypatch):
    monkeypatch.setattr(damaged_places, "MOST_PLACES", 3)
    good = [batch(10 * at) for at in range(6)]
    bad = [one[:-1] + bytes([one[-1] ^ 1]) for one in good[:5]]
    monkeypatch.setattr(walk, "WINDOW_LENGTH", len(b"".join(bad)) + 1)

    found = walked(b"".join([*bad, good[5]]), Level.CRC)

    assert [int(row["base_offset"]) for row in found.batches if row["crc_valid"]] == [50]
    assert [one.found for one in found.damage] == ["none that does, after 3 damaged places listed one by one"]


def test_a_tail_of_likely_batches_and_noise_behind_them():
    bad = [one[:-1] + bytes([one[-1] ^ 1]) for one in (batch(3), batch(6))]
    noise = b"\xff" * 40

    found = walked(b"".join([batch(0), *bad, noise]), Level.CRC)

    assert [int(row["base_offset"]) for row in found.batches] == [0, 3, 6]
    assert [(one.span.length, one.offsets_lost) for one in found.damage] == [
        (len(bad[0]), OffsetRange(3, 5)),
        (len(bad[1]), OffsetRange(6, 8)),
        (len(noise), Absent.UNKNOWN),
    ]


def test_a_sound_wrapper_with_a_broken_inside_ends_a_damaged_run():
    inner = encode_message(Message(0, 1, 0, FIRST_TIMESTAMP_MS, b"k", b"v"))[:-1] + b"x"
    wrapper = encode_message(Message(9, 1, Codec.GZIP, FIRST_TIMESTAMP_MS, None, compress(Codec.GZIP, inner)))
    noise = b"\xff" * 100

    found = walked(noise + wrapper, Level.CRC)

    assert found.damage[0].span == (0, len(noise))
    assert found.damage[0].next_good == (9, len(noise))
    assert [one.kind for one in found.damage[1:]] == [DamageKind.RECORD]


def test_a_batch_without_a_leader_epoch_before_those_that_have_one():
    data = batch(0, partition_leader_epoch=-1) + batch(3, partition_leader_epoch=2)

    (damage,) = walked(data, Level.CRC).damage

    assert (damage.kind, damage.span.position, damage.found) == (DamageKind.EPOCH, 0, "-1")


def test_an_offset_that_no_single_flip_explains_has_no_cause():
    data = batch(0) + batch(3) + batch(1) + batch(7)

    (damage,) = walked(data, Level.CRC).damage

    assert (damage.kind, damage.found, damage.cause) == (DamageKind.ORDER, "1 to 3", Absent.UNKNOWN)


def test_a_flip_in_front_of_the_covered_bytes_is_no_flip_of_theirs():
    # The bit at distance 25 lies in the fourth byte from the end.
    syndrome = 1
    for _ in range(25):
        syndrome = syndrome >> 1 ^ (CRC32C_REFLECTED if syndrome & 1 else 0)

    assert locate_flipped_bit(syndrome, 4) == (0, 7)
    assert locate_flipped_bit(syndrome, 3) is None


def test_headers_with_long_names_and_one_that_leaves_the_record():
    name, value = b"n" * 70, b"v"
    long = bytes([70 << 1 & 0x7F | 0x80, 1]) + name + bytes([len(value) << 1]) + value
    short = bytes([2]) + b"n" + bytes([2]) + b"v"
    body = long + short

    assert skip_headers(body, 0, len(body), 2) == len(body)
    with pytest.raises(FormatError, match="expected -1 to 0 bytes, found 1"):
        skip_headers(body, 0, len(body) - 1, 2)


def test_an_only_batch_with_an_offset_that_can_not_be():
    (damage,) = walked(b"\xff" * 8 + batch(0)[8:], Level.CRC).damage

    assert (damage.expected, damage.found) == ("a base offset at the log's start", "-1 to 1")
    assert (damage.cause, damage.next_good) == (Absent.UNKNOWN, Absent.NOT_APPLICABLE)


def test_a_last_batch_with_a_wrong_length_and_an_offset_that_does_not_fit_loses_unknown_offsets():
    last = bytearray(batch(1))
    last[8:12] = (int.from_bytes(last[8:12]) ^ 1 << 9).to_bytes(4)

    (damage,) = walked(batch(0) + bytes(last), Level.CRC).damage

    assert (damage.kind, damage.offsets_lost) == (DamageKind.LENGTH, Absent.UNKNOWN)
