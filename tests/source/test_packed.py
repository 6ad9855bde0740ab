"""Files that are compressed whole: told by their first bytes, read piece by piece, and what damage leaves of them."""

import bz2
import gzip
import lzma
import os
import threading

import cramjam
import pytest

from kforensics.source import packed
from kforensics.source.mapped import open_evidence
from kforensics.source.packed import members_of, packing_of, unpacked
from tests.builders.archives import tarred, tarred_and_zipped, zipped

TEXT = b"".join(
    b"[2024-05-01 12:00:00,123] INFO Truncating to offset %d (kafka.log.Log)\n" % (at * at) for at in range(40_000)
)


PACKED = {
    "gzip": gzip.compress(TEXT, 1),
    "bzip2": bz2.compress(TEXT, 1),
    "xz": lzma.compress(TEXT, preset=0),
    "zstd": bytes(cramjam.zstd.compress(TEXT, 1)),
    "lz4": bytes(cramjam.lz4.compress(TEXT, 1)),
    "zip": zipped(("logs/server.log", TEXT)),
    "tar": tarred(("logs/server.log", TEXT)),
}


def read(path, data, **options):
    """What is read of a file, and what could not be."""
    path.write_bytes(data)
    notes: list[tuple[int, str]] = []
    with open_evidence(path) as file:
        pieces = [*unpacked(file, note=lambda *one: notes.append(one), **options)]
    assert max(map(len, pieces), default=0) <= packed.PIECE
    return b"".join(pieces), notes


@pytest.mark.parametrize("name", PACKED)
def test_a_file_is_read_whatever_it_is_called(name, tmp_path):
    assert packing_of(PACKED[name]) == name
    assert read(tmp_path / "server.log.7", PACKED[name]) == (TEXT, [])


@pytest.mark.parametrize("name", ["gzip", "bzip2", "xz", "zstd", "lz4"])
def test_members_follow_one_another(name, tmp_path):
    assert read(tmp_path / "x", PACKED[name] * 2) == (TEXT * 2, [])


def test_a_file_that_is_not_compressed_is_read_as_it_is(tmp_path):
    assert read(tmp_path / "x", TEXT) == (TEXT, [])
    assert read(tmp_path / "y", b"") == (b"", [])


@pytest.mark.parametrize("name", PACKED)
def test_a_beginning_costs_no_more_than_that(name, tmp_path):
    text, notes = read(tmp_path / "x", PACKED[name], most=1_000)

    assert len(text) <= 1_000 + packed.PIECE
    assert (text[:1_000], notes) == (TEXT[:1_000], [])


@pytest.mark.parametrize("name", sorted(PACKED.keys() - {"tar"}))  # no checksum covers what is in a tar
@pytest.mark.parametrize("damage", ["cut", "flip"])
def test_of_a_damaged_file_what_is_before_the_damage_is_read_and_that_is_said(name, damage, tmp_path):
    data, middle = PACKED[name], len(PACKED[name]) * 2 // 3
    bad = (
        data[:middle]
        if damage == "cut"
        else data[:middle] + bytes(one ^ 0xFF for one in data[middle : middle + 5_000]) + data[middle + 5_000 :]
    )

    text, notes = read(tmp_path / "x", bad)

    ((_, words),) = notes
    assert name in words
    assert text != TEXT
    assert TEXT.startswith(text[: len(text) // 2])


@pytest.mark.parametrize("name", ["zstd", "lz4"])
def test_a_codec_that_is_left_early_ends_and_keeps_nothing_open(name, tmp_path):
    (tmp_path / "x").write_bytes(PACKED[name] * 20)
    with open_evidence(tmp_path / "x") as file:
        pieces = unpacked(file)
        first = next(pieces)
        pieces.close()  # type: ignore[attr-defined]
    assert TEXT.startswith(first[:1_000])
    assert not [one for one in threading.enumerate() if "inflate" in one.name]


def test_of_a_file_that_is_held_no_more_is_taken_than_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(packed, "LARGEST_PACKED", 2 << 20)
    noise = os.urandom(3 << 20)

    text, notes = read(tmp_path / "x", bytes(cramjam.zstd.compress(noise, 1)))

    assert text
    assert noise.startswith(text)
    assert notes == [(2 << 20, "it is longer than 2 MiB, of which the first are read: decompress a copy")]


@pytest.mark.parametrize("name", PACKED)
def test_a_file_that_inflates_beyond_measure_is_left_and_that_is_said(name, tmp_path, monkeypatch):
    monkeypatch.setattr(packed, "MOST_HELD", len(TEXT) // 2)
    monkeypatch.setattr(packed, "MOST_TIMES", 0)

    text, notes = read(tmp_path / "x", PACKED[name] * 3)

    assert (TEXT * 3).startswith(text)
    assert len(TEXT) // 2 <= len(text) < 3 * len(TEXT)
    ((_, words),) = notes
    assert "too much for its length" in words
    monkeypatch.setattr(packed, "MOST_TIMES", 1_000)
    assert read(tmp_path / "x", PACKED[name]) == (TEXT, [])


def test_a_dictionary_that_claims_a_lot_of_memory_is_refused(tmp_path):
    claim = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 29}]
    data = lzma.LZMACompressor(lzma.FORMAT_XZ, filters=claim)
    text, notes = read(tmp_path / "x", data.compress(TEXT) + data.flush())

    assert text == b""
    assert "Memory usage limit" in notes[0][1]


@pytest.mark.parametrize("packed_by", [zipped, tarred, tarred_and_zipped])
def test_each_file_of_an_archive_is_read_by_its_name(packed_by, tmp_path):
    data = packed_by(("a/server.log", TEXT[:500]), ("a/", b""), ("a/old.gz", gzip.compress(TEXT[:900])), ("empty", b""))

    assert read(tmp_path / "x", data, member="a/old.gz") == (TEXT[:900], [])
    assert read(tmp_path / "x", data) == (TEXT[:500] + TEXT[:900], [])
    with open_evidence(tmp_path / "x") as file:
        assert list(members_of(file)) == ["a/server.log", "a/old.gz", "empty"]


def test_an_archive_without_its_directory_has_no_files(tmp_path):
    (tmp_path / "y").write_bytes(zipped(("a/server.log", TEXT[:500]))[:-30])

    with open_evidence(tmp_path / "y") as file:
        assert list(members_of(file)) == []


def test_what_is_left_of_a_tar_is_read(tmp_path):
    data = tarred(("server.log", TEXT), ("server.log.1", TEXT))[: len(TEXT) * 3 // 2]

    assert read(tmp_path / "x", data, member="server.log") == (TEXT, [])
    text, notes = read(tmp_path / "x", data)
    assert text.startswith(TEXT)
    assert "the tar archive can't be read whole" in notes[0][1]
    text, notes = read(tmp_path / "x", gzip.compress(data, 0)[:-2_000_000], member="server.log")
    assert TEXT.startswith(text)
    assert notes


@pytest.mark.parametrize("name", ["gzip", "bzip2", "xz", "zstd", "lz4"])
def test_a_file_of_an_archive_may_be_compressed_itself(name, tmp_path):
    assert read(tmp_path / "x", zipped(("server.log.1", PACKED[name]))) == (TEXT, [])


def test_an_encrypted_archive_is_no_empty_one(tmp_path):
    data = bytearray(zipped(("server.log", os.urandom(500))))
    data[6] |= 1  # of the file
    data[data.index(b"PK\x01\x02") + 8] |= 1  # and of the directory

    text, notes = read(tmp_path / "x", bytes(data))

    assert text == b""
    assert "encrypted" in notes[0][1]
