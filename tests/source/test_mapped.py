import os
import socket
from hashlib import sha256

import pytest

from kforensics.errors import EvidenceNotFound, EvidenceUnreadable
from kforensics.source import mapped
from kforensics.source.mapped import (
    directories_held,
    link_target,
    open_below,
    open_evidence,
    open_named,
    read_evidence,
    status_of,
)
from kforensics.source.walk import list_directory


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(bytes(range(256)) * 16)
    return path


def test_reads_spans_and_is_short_only_at_the_end(file):
    with open_evidence(file) as evidence:
        buffer = bytearray(10)

        assert evidence.size == 4096
        assert evidence.read(0, 4) == b"\x00\x01\x02\x03"
        assert evidence.read(4090, 100) == bytes(range(250, 256))
        assert evidence.read(5000, 4) == b""
        assert evidence.read(-1, 4) == b""
        assert evidence.read(0, -4) == b""
        assert evidence.read_into(4092, memoryview(buffer)) == 4
        assert bytes(buffer[:4]) == bytes(range(252, 256))
        assert evidence.sha256() == sha256(file.read_bytes()).hexdigest()


def test_a_length_is_a_claim(file):
    with open_evidence(file) as evidence:
        assert len(evidence.read(0, 2**62)) == 4096
        assert evidence.read_all(4096) == file.read_bytes()
        with pytest.raises(EvidenceUnreadable, match="more than"):
            evidence.read_all(4095)


def test_a_file_that_shrinks_gives_short_reads_and_is_called_changed(file):
    with open_evidence(file) as evidence:
        assert not evidence.changed()

        os.truncate(file, 100)

        assert len(evidence.read(0, 4096)) == 100
        assert evidence.changed()


def test_a_file_that_is_replaced_or_goes_is_called_changed(file, tmp_path):
    with open_evidence(file) as evidence:
        other = tmp_path / "other"
        other.write_bytes(file.read_bytes())
        os.utime(other, ns=(evidence.mtime_ns, evidence.mtime_ns))
        other.rename(file)

        assert evidence.changed()

        file.unlink()

        assert evidence.changed()
        assert len(evidence.read(0, 4096)) == 4096


def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/etc/hostname")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))

    for name, words in (("pipe", "named pipe"), ("link", "symbolic link"), ("socket", "socket"), (".", "directory")):
        with pytest.raises(EvidenceUnreadable, match=words):
            open_evidence(tmp_path / name)
    with pytest.raises(EvidenceUnreadable, match="character device"):
        open_evidence("/dev/zero")


def test_what_is_not_there_is_also_a_file_not_found_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_evidence(tmp_path / "gone")
    with pytest.raises(EvidenceNotFound):
        open_evidence(tmp_path / "gone")
    with pytest.raises(EvidenceUnreadable):
        open_evidence(tmp_path / "null\0byte")
    with pytest.raises(EvidenceUnreadable):
        open_evidence(tmp_path / ("x" * 5000))


def test_reading_leaves_the_access_time_where_the_system_lets_it(file):
    os.utime(file, ns=(1, file.stat().st_mtime_ns))

    with open_evidence(file) as evidence:
        evidence.read(0, 100)

    assert file.stat().st_atime_ns == 1


def test_another_owner_costs_the_access_time_only(file, monkeypatch):
    real = os.open

    def refuse(path, flags, **options):
        if flags & mapped.NO_ACCESS_TIME:
            raise PermissionError(1, "Operation not permitted")
        return real(path, flags, **options)

    monkeypatch.setattr("kforensics.source.mapped.os.open", refuse)

    with open_evidence(file) as evidence:
        assert evidence.read(0, 1) == b"\x00"


@pytest.mark.parametrize(
    ("number", "words"),
    [(5, "I/O error at byte 7"), (13, "no permission"), (116, "can't be read"), (2, "no such file")],
)
def test_a_failing_read_says_where(file, monkeypatch, number, words):
    with open_evidence(file) as evidence:

        def fail(*_):
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr("kforensics.source.mapped.os.preadv", fail)
        with pytest.raises((EvidenceUnreadable, EvidenceNotFound), match=words) as caught:
            evidence.read(7, 10)

    assert caught.value.path == str(file)


def test_closing_twice_is_harmless(file):
    evidence = open_evidence(file)
    evidence.close()
    evidence.close()


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), OSError(40, "Too many levels")])
def test_a_file_that_can_not_be_opened_says_why(file, monkeypatch, error):
    def refuse(*_, **_options):
        raise error

    monkeypatch.setattr("kforensics.source.mapped.os.open", refuse)

    with pytest.raises(EvidenceUnreadable) as caught:
        open_evidence(file)

    assert caught.value.causes


@pytest.fixture
def exchanged(tmp_path):
    """A directory of an input that is open once, then exchanged for a link to a directory outside."""
    folder = tmp_path / "input" / "orders-0"
    outside = tmp_path / "outside"
    for place, word in ((folder, "inside"), (outside, "secret")):
        place.mkdir(parents=True)
        (place / "file").write_text(word)
    with open_evidence(folder / "file") as file:
        assert file.read_all(100) == b"inside"
    folder.rename(tmp_path / "away")
    folder.symlink_to(outside)
    return folder


@pytest.mark.parametrize(
    "reading",
    [open_evidence, lambda path: read_evidence(path, 100), lambda path: open_below(path.parents[1], "orders-0/file")],
    ids=["open", "read", "below"],
)
def test_a_directory_that_is_exchanged_for_a_link_is_not_followed(exchanged, reading):
    with pytest.raises(EvidenceUnreadable, match=f"behind a symbolic link, {exchanged}, which is not followed"):
        reading(exchanged / "file")


def test_a_link_higher_up_is_not_followed_either(exchanged):
    (exchanged.parent.parent / "outside" / "below").mkdir()
    (exchanged.parent.parent / "outside" / "below" / "file").write_text("secret")

    with pytest.raises(EvidenceUnreadable, match="behind a symbolic link"):
        open_evidence(exchanged / "below" / "file")


def test_an_exchanged_directory_is_neither_listed_nor_looked_into(exchanged):
    listing = list_directory(exchanged.parent, "orders-0")

    assert listing.entries == ()
    assert [one.path for one in listing.obstacles] == ["orders-0"]
    for looked in (status_of, link_target):
        with pytest.raises(OSError):
            looked(exchanged / "file")


def test_a_directory_in_the_place_of_another_is_the_one_that_is_read(exchanged, tmp_path):
    exchanged.unlink()
    exchanged.mkdir()
    (exchanged / "file").write_text("new")

    assert read_evidence(exchanged / "file", 100) == b"new"
    (tmp_path / "away").rename(tmp_path / "input" / "orders-1")
    assert read_evidence(tmp_path / "input" / "orders-1" / "file", 100) == b"inside"


def test_a_link_on_the_way_to_a_file_that_was_named_is_followed(exchanged):
    with open_named(exchanged / "file") as file:
        assert file.read_all(100) == b"secret"
    (exchanged / "link").symlink_to("file")
    with pytest.raises(EvidenceUnreadable, match="a symbolic link, which is not followed"):
        open_named(exchanged / "link")


@pytest.mark.slow
def test_directories_however_deep_within_each_other_are_walked_to(tmp_path):
    depth = 700
    folders = [os.open(tmp_path, os.O_RDONLY)]
    for _ in range(depth):
        os.mkdir("d", dir_fd=folders[-1])
        folders.append(os.open("d", os.O_RDONLY, dir_fd=folders[-1]))
        os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=folders[-1]))
    deepest = tmp_path.joinpath(*["d"] * depth)
    try:
        # What is next to a directory is looked at once all below that was.
        for path in (deepest / "file", *(parent / "file" for parent in deepest.parents[: depth - 1])):
            assert read_evidence(path, 100) == b""
        assert read_evidence(str(tmp_path) + "//d//file", 100) == b""
    finally:
        for above in reversed(folders[:-1]):
            folder = os.open("d", os.O_RDONLY, dir_fd=above)
            os.unlink("file", dir_fd=folder)
            os.rmdir("d", dir_fd=above)
            os.close(folder)
        for folder in folders:
            os.close(folder)


def test_words_of_the_system_name_no_path(exchanged):
    """Of a capture they are kept where names are redacted."""
    assert [one.message for one in list_directory(exchanged.parent, "orders-0/below").obstacles]
    for one in list_directory(exchanged.parent, "orders-0/below").obstacles:
        assert str(exchanged.parent) not in one.message


def test_a_directory_that_is_held_is_the_one_that_was_there(tmp_path):
    folder, outside = tmp_path / "orders-0", tmp_path / "outside"
    for place, word in ((folder, "inside"), (outside, "secret")):
        place.mkdir()
        (place / "file").write_text(word)

    with directories_held():
        assert read_evidence(folder / "file", 100) == b"inside"
        folder.rename(tmp_path / "away")
        folder.symlink_to(outside)
        assert read_evidence(folder / "file", 100) == b"inside"
        with directories_held():
            assert read_evidence(folder / "file", 100) == b"inside"
        assert read_evidence(folder / "file", 100) == b"inside"
    with pytest.raises(EvidenceUnreadable, match="behind a symbolic link"):
        read_evidence(folder / "file", 100)
