"""Of several writers one goes on, the others learn who it is."""

import json
import subprocess
import sys
import threading
import time

import pytest

from kforensics.errors import UsageError
from kforensics.fleet import lock as locks
from kforensics.fleet.lock import LOCK, hold_lock
from kforensics.fleet.storage import parse_location
from kforensics.fleet.tables import Tables


def rewritten(tables, **changed):
    """Make of the lock that is held one that another process might have left."""
    (name,) = tables.names(LOCK)
    holder = json.loads(tables.read_bytes(f"{LOCK}/{name}")) | changed
    tables.write_bytes(f"{LOCK}/{name}", json.dumps(holder).encode())


@pytest.fixture
def tables(tmp_path):
    return Tables(tmp_path / "out")


@pytest.fixture
def left(tables):
    """The lock of a process that was killed."""

    def leave(**changed):
        holding = hold_lock(tables)
        holding.__enter__()
        (name,) = tables.names(LOCK)
        content = json.loads(tables.read_bytes(f"{LOCK}/{name}")) | changed
        holding.__exit__(None, None, None)
        tables.write_bytes(f"{LOCK}/{name}", json.dumps(content).encode())

    return leave


def test_a_second_writer_is_refused_and_learns_who_holds_the_lock(tables):
    with hold_lock(tables) as held:
        held.check()
        with pytest.raises(UsageError, match=r"is being written by another audit: process \d+ of \S+ on \S+ since 20"):
            hold_lock(tables).__enter__()
        with pytest.raises(UsageError, match="it is alive"):
            hold_lock(tables, take_over=True).__enter__()
        held.check()
    with hold_lock(tables) as held:
        assert not held.taken_over
    assert [] == tables.names(LOCK)


def test_of_many_at_the_same_time_one_goes_on(tables):
    held_at_once, most, refused = 0, 0, []
    guard = threading.Barrier(6)

    def write():
        nonlocal held_at_once, most
        guard.wait()
        try:
            with hold_lock(tables):
                held_at_once += 1
                most = max(most, held_at_once)
                time.sleep(0.02)
                held_at_once -= 1
        except UsageError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=write) for _ in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()

    assert 1 == most
    assert all("another audit" in one for one in refused)
    assert [] == tables.names(LOCK)


def test_the_lock_of_a_killed_process_is_named_and_taken_over_only_when_asked(tables, left):
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    left(pid=int(dead.stdout))

    with pytest.raises(UsageError, match=r"ended without releasing it .*--take-over"):
        hold_lock(tables).__enter__()
    with hold_lock(tables, take_over=True) as held:
        assert [int(dead.stdout)] == [one.pid for one in held.taken_over]


def test_a_process_id_that_another_process_has_by_now_proves_no_life(tables, left):
    left(process_start="1")

    with hold_lock(tables, take_over=True) as held:
        assert 1 == len(held.taken_over)


def test_a_process_of_another_user_that_is_not_shown_is_judged_by_its_signs_of_life(tables, left, monkeypatch):
    """As with /proc mounted with hidepid: its files are not there, and a signal is refused."""

    def refuse(pid, signal):
        raise PermissionError

    monkeypatch.setattr("os.kill", refuse)
    nobody = 2**22 + 1  # above every process id of Linux
    left(pid=nobody)
    with pytest.raises(UsageError, match="it is alive"):
        hold_lock(tables, take_over=True).__enter__()
    rewritten(tables, pid=nobody, seen_ns=0)
    with hold_lock(tables, take_over=True) as held:
        assert [nobody] == [one.pid for one in held.taken_over]


@pytest.mark.parametrize(
    "changed",
    [{"pid": "7"}, {"pid": 2**70}, {"pid": -1}, {"since_ns": None}, {"seen_ns": 1.5}, {"host": ["a"]}, {"x": 1}],
)
def test_a_lock_that_no_audit_wrote_is_named_and_keeps_others_out(tables, left, changed):
    left(**changed)

    for take_over in (False, True):
        with pytest.raises(
            UsageError, match=r"a process whose lock, _lock/\w+\.json, can't be read; remove that file if"
        ):
            hold_lock(tables, take_over=take_over).__enter__()


@pytest.mark.parametrize("content", [b"", b'{"pid": 7', b"[]", b"{}", b"[" * 100_000])
def test_a_lock_that_was_written_in_part_is_named_and_keeps_others_out(tables, left, content):
    left()
    tables.write_bytes(f"{LOCK}/{tables.names(LOCK)[0]}", content)

    with pytest.raises(UsageError, match="can't be read; remove that file if"):
        hold_lock(tables, take_over=True).__enter__()


@pytest.mark.parametrize(("silent_s", "is_stale"), [(60, False), (3_600, True)])
def test_a_process_elsewhere_is_judged_by_its_signs_of_life(tables, left, silent_s, is_stale):
    left(host="elsewhere", seen_ns=time.time_ns() - silent_s * 1_000_000_000)

    if is_stale:
        with hold_lock(tables, take_over=True):
            pass
    else:
        with pytest.raises(UsageError, match="it is alive"):
            hold_lock(tables, take_over=True).__enter__()


def test_what_lost_its_lock_is_not_declared_complete(tables):
    with hold_lock(tables) as held:
        rewritten(tables, host="elsewhere", seen_ns=0)
        (name,) = tables.names(LOCK)
        tables.remove_file(f"{LOCK}/{name}")
        with pytest.raises(UsageError, match="was taken over: what"):
            held.check()
        with hold_lock(tables), pytest.raises(UsageError, match="taken over by process"):
            held.check()


def test_signs_of_life_are_renewed_and_end_with_the_work(tables, monkeypatch):
    monkeypatch.setattr(locks, "SIGN_INTERVAL", 0.01)
    with hold_lock(tables):
        (name,) = tables.names(LOCK)
        first = json.loads(tables.read_bytes(f"{LOCK}/{name}"))["seen_ns"]
        deadline = time.monotonic() + 10
        while json.loads(tables.read_bytes(f"{LOCK}/{name}"))["seen_ns"] == first:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert [] == tables.names(LOCK)


def test_other_storage_has_the_same_lock():
    tables = Tables(parse_location("mock:///locked"))
    with hold_lock(tables), pytest.raises(UsageError, match="another audit"):
        hold_lock(tables).__enter__()
