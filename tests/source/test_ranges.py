"""Ranges of many files: each is answered once and truly, with as many requests under way as are allowed, and never more."""

import errno
import itertools
import os
import threading
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.errors import EvidenceNotFound, EvidenceUnreadable
from kforensics.source import mapped, ranges
from kforensics.source.beside_broker import Pace
from kforensics.source.mapped import held_ranges, open_evidence, read_counts
from kforensics.source.ranges import MOST_REQUESTS, Range, at_hand, read_ranges

READ = os.preadv


class ColdDisk:
    """`os.preadv` of a disk whose cache is empty: it counts the requests that wait, and lets none through before as many wait as `until`."""

    def __init__(self, monkeypatch, *, until=1):
        self.waiting = self.most = self.asked = self.asked_in_threads = 0
        self.given_back = []
        self.failing = None
        self._until = until
        self._changed = threading.Condition()
        monkeypatch.setattr(os, "preadv", self.preadv)
        monkeypatch.setattr(os, "posix_fadvise", self.advise)

    def preadv(self, descriptor, buffers, position, flags=0):
        if flags:
            raise BlockingIOError(errno.EAGAIN, "not in memory")
        with self._changed:
            self.asked += 1
            self.asked_in_threads += threading.current_thread() is not threading.main_thread()
            self.waiting += 1
            self.most = max(self.most, self.waiting)
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self.most >= self._until, timeout=30), "too few requests at once"
        try:
            if self.failing is not None and position <= self.failing < position + len(buffers[0]):
                raise OSError(errno.EIO, "input/output error")
            return READ(descriptor, buffers, position)
        finally:
            with self._changed:
                self.waiting -= 1

    def advise(self, descriptor, position, length, advice):
        if advice == os.POSIX_FADV_DONTNEED:
            self.given_back.append((position, length))


@pytest.fixture
def files(tmp_path):
    paths = [tmp_path / f"{number:03}.log" for number in range(200)]
    for number, path in enumerate(paths):
        path.write_bytes(bytes([number]) * 100)
    return paths


def test_as_many_requests_wait_as_are_allowed_and_never_more(files, monkeypatch):
    monkeypatch.setattr(ranges, "PROBES", 0)
    disk = ColdDisk(monkeypatch, until=MOST_REQUESTS)

    found = list(read_ranges([Range(path, 10, 20) for path in reversed(files)]))

    assert [one.wanted.path for one in found] == files
    assert all(one.data == bytes([number]) * 20 and one.error is None for number, one in enumerate(found))
    assert disk.most == MOST_REQUESTS
    assert disk.asked == len(files)
    assert disk.given_back == [(0, 4096)] * len(files)
    assert not [one for one in threading.enumerate() if one.name.startswith("ranges")]


@pytest.mark.parametrize(("waits", "in_threads"), [(0.01, 200 - ranges.PROBES), (0.0001, 0)])
def test_threads_are_for_disks_that_let_one_wait(files, monkeypatch, waits, in_threads):
    moments = itertools.count()
    monkeypatch.setattr(ranges, "perf_counter", lambda: next(moments) * waits)
    disk = ColdDisk(monkeypatch)

    found = list(read_ranges([Range(path, 0, 10) for path in files]))

    assert [one.data for one in found] == [bytes([number]) * 10 for number in range(len(files))]
    assert (disk.asked, disk.asked_in_threads) == (len(files), in_threads)


def test_a_read_rate_leaves_one_request_at_a_time(files, monkeypatch):
    disk = ColdDisk(monkeypatch)
    slept: list[float] = []
    monkeypatch.setattr(mapped, "_pace", Pace(1000, clock=lambda: 0.0, sleep=slept.append))

    assert len(list(read_ranges([Range(path, 0, 10) for path in files]))) == len(files)

    assert disk.most == 1
    assert slept[-1] == pytest.approx(len(files) * 10 / 1000)
    assert len(disk.given_back) == len(files)


def test_what_is_in_memory_needs_no_thread_and_stays_there(files, monkeypatch):
    advice = []
    monkeypatch.setattr(
        os, "preadv", lambda descriptor, buffers, position, _flags=0: READ(descriptor, buffers, position)
    )
    monkeypatch.setattr(os, "posix_fadvise", lambda *arguments: advice.append(arguments[-1]))
    monkeypatch.setattr(threading.Thread, "start", None)
    mapped.read_counts.reset()

    assert len(list(read_ranges([Range(path, 0, 10) for path in files]))) == len(files)

    assert set(advice) == {os.POSIX_FADV_RANDOM}
    assert (mapped.read_counts.requests, mapped.read_counts.bytes) == (len(files), len(files) * 10)


def test_neighbours_are_read_by_one_request_and_fail_alone(tmp_path, monkeypatch):
    disk = ColdDisk(monkeypatch)
    path = tmp_path / "log"
    path.write_bytes(bytes(range(250)) * 1000)
    wanted = [Range(path, 0, 10), Range(path, 5, 10), Range(path, 2000, 10), Range(path, 100_000, 10)]

    assert [one.data[0] for one in read_ranges(wanted)] == [0, 5, 0, 0]
    assert disk.asked == 2

    disk.failing = 2005
    first, second, third, fourth = read_ranges(wanted)
    assert [len(one.data) for one in (first, second, fourth)] == [10, 10, 10]
    assert third.data == b""
    assert isinstance(third.error, EvidenceUnreadable)


def test_files_that_are_missing_or_end_early_are_results(tmp_path, files):
    folder = tmp_path / "folder"
    folder.mkdir()
    wanted = [
        Range(files[0], 90, 20),
        Range(files[0], -4, 8),
        Range(files[0], 500, 8),
        Range(tmp_path / "none", 0, 8),
        Range(folder, 0, 8),
    ]

    found = {(str(one.wanted.path).rpartition("/")[2], one.wanted.position): one for one in read_ranges(wanted)}

    assert len(found[files[0].name, 90].data) == 10
    assert found[files[0].name, -4].data == found[files[0].name, 500].data == b""
    assert all(one.error is None for (name, _), one in found.items() if name == files[0].name)
    assert isinstance(found["none", 0].error, EvidenceNotFound)
    assert isinstance(found["folder", 0].error, EvidenceUnreadable)


def test_no_file_stays_open_where_the_caller_stops(files, monkeypatch):
    opened = []

    def open_and_note(path):
        opened.append(mapped.open_evidence(path))
        return opened[-1]

    monkeypatch.setattr(ranges, "open_evidence", open_and_note)
    with closing(read_ranges([Range(path, at, 10) for path in files for at in (0, 50_000)])) as reader:
        next(reader)

    assert 0 < len(opened) < len(files)
    assert not any(file.is_of_the_system for file in opened)


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    found = {}
    for size in (0, 5_000, 66_000):
        path = tmp_path_factory.mktemp("ranges") / "log"
        found[path] = os.urandom(size)
        path.write_bytes(found[path])
    return found


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-10, 70_000), st.integers(-5, 9_000))), st.integers(1, 4))
def test_each_range_gets_what_the_file_holds(contents, places, requests):
    wanted = [Range(list(contents)[number], at, length) for number, at, length in places]

    found = list(read_ranges(wanted, requests=requests))

    assert sorted(one.wanted for one in found) == sorted(wanted)
    for (path, start, length), data, error, _ in found:
        assert data == (contents[path][start : start + max(length, 0)] if start >= 0 else b"")
        assert error is None


def test_what_is_at_hand_is_read_without_the_disk(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(range(200)))
    with at_hand([Range(path, 10, 20), Range(tmp_path / "missing", 0, 4)]), open_evidence(path) as file:
        read_counts.reset()
        assert file.read(12, 8) == bytes(range(12, 20))
        assert read_counts.requests == 0
        assert file.read(25, 10) == bytes(range(25, 35))
        assert read_counts.requests == 1
        with at_hand([Range(path, 190, 50)]):
            read_counts.reset()
            assert file.read(190, 50) == bytes(range(190, 200))
            assert read_counts.requests == 0
        assert file.read(190, 10) == bytes(range(190, 200))
    assert not held_ranges


def test_what_was_read_ahead_of_a_file_that_is_replaced_is_not_its_content(tmp_path):
    path, newer = tmp_path / "leader-epoch-checkpoint", tmp_path / "newer"
    path.write_bytes(b"0\n2\n0 0\n5 100\n")
    newer.write_bytes(b"0\n1\n0 0\n")
    with at_hand([Range(path, 0, 100)]):
        newer.replace(path)
        with open_evidence(path) as file:
            assert file.read(0, 100) == b"0\n1\n0 0\n"


def test_a_file_is_opened_again_for_bytes_that_are_not_held_alone(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(bytes(range(200)))
    opened = []
    really_open = mapped._open

    def open_and_note(path, *flags):
        opened.append(path)
        return really_open(path, *flags)

    with at_hand([Range(path, 10, 20)]):
        monkeypatch.setattr(mapped, "_open", open_and_note)
        with open_evidence(path) as held:
            assert held.read(10, 20) == bytes(range(10, 30))
            assert (held.is_of_the_system, held.changed(), opened) == (True, False, [])
        assert not held.is_of_the_system
        with open_evidence(path) as file:
            assert file.read(0, 200) == bytes(range(200))
            assert opened == [path]
            path.unlink()
            assert file.changed()
