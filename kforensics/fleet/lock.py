"""One writer at a time: a lock among the tables, on any storage whose listings show what was written before.

Every writer writes a file of its own and then lists the others. Of two writers, the one that lists later sees the file of the other, so never do both
continue; no storage has to create a file exclusively for that. Object stores can't.
"""

import functools
import getpass
import json
import os
import random
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from kforensics.errors import UsageError
from kforensics.fleet.tables import Tables
from kforensics.words import utc_text

LOCK = "_lock"
"""The folder of the lock; readers of Parquet skip names that begin with an underscore."""

SIGN_INTERVAL = 30.0
"""Seconds between signs of life."""
SILENCE_NS = 5 * 60 * 1_000_000_000
"""A writer of another machine that gave no sign of life for so long is taken for dead: ten signs, which leaves room for clocks that differ."""

_LARGEST_PROCESS_ID = 2**31 - 1
_UNKNOWN_PROCESS = 0

_ATTEMPTS = 8
_LONGEST_PAUSE = 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The process that holds a lock."""

    key: str
    """A name that no other attempt has."""
    host: str
    boot: str
    """The boot of the machine and the namespace that its process id is of, where the system shows them."""
    pid: int
    process_start: str
    """When the process started, by the machine's own count: a process id alone may be another's by now."""
    user: str
    since_ns: int
    seen_ns: int
    """The last sign of life."""

    def is_stale(self, now_ns: int) -> bool:
        """Return whether the process ended without releasing the lock; its signs of life decide where the process can't be looked at."""
        if (self.host, self.boot) == (socket.gethostname(), _boot()):
            start = _process_start(self.pid)
            if start is not None:
                return start != self.process_start
        return now_ns - self.seen_ns > SILENCE_NS

    def __str__(self) -> str:
        if self.pid == _UNKNOWN_PROCESS:
            return f"a process whose lock, {LOCK}/{self.key}.json, can't be read"
        return f"process {self.pid} of {self.user} on {self.host} since {_utc(self.since_ns)}"


@contextmanager
def hold_lock(tables: Tables, *, take_over: bool = False) -> Iterator["Lock"]:
    """Hold the lock of some tables while they are written."""
    lock = Lock(tables)
    lock.acquire(take_over=take_over)
    done = threading.Event()
    signs = threading.Thread(target=lock.give_signs, args=(done,), daemon=True)
    signs.start()
    try:
        yield lock
    finally:
        done.set()
        signs.join()
        lock.remove(lock.own.key)


def require_free(tables: Tables, *, take_over: bool = False) -> None:
    """Refuse what `hold_lock` would refuse, before anything is made ready for the work."""
    lock = Lock(tables)
    for other in lock.holders():
        lock.refuse_unless_stale(other, take_over=take_over)


class Lock:
    """The lock of some tables, as this process takes it."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.own = _this_process()
        self.taken_over: list[Holder] = []
        """Those that held it before and ended without releasing it."""

    def acquire(self, *, take_over: bool) -> None:
        """Take it, or refuse."""
        self.tables.create([LOCK])
        others: list[Holder] = []
        for _ in range(_ATTEMPTS):
            for other in self.holders():
                self.refuse_unless_stale(other, take_over=take_over)
                self.remove(other.key)
                self.taken_over.append(other)
            self._write(self.own)
            others = [one for one in self.holders() if one.key != self.own.key]
            if not others:
                return
            # Two began at the same time: both step back, and try again at different times.
            self.remove(self.own.key)
            time.sleep(random.uniform(0, _LONGEST_PAUSE))  # noqa: S311 - no secret
        raise UsageError(_refusal(self.tables, others[0]))

    def check(self) -> None:
        """Make sure that it was not taken over, before what was written is declared complete."""
        holders = self.holders()
        others = [one for one in holders if one.key != self.own.key]
        if others or not holders:
            by = f" by {others[0]}" if others else ""
            raise UsageError(f"the lock of {self.tables} was taken over{by}: what this audit wrote is left unfinished")

    def refuse_unless_stale(self, other: Holder, *, take_over: bool) -> None:
        """Refuse for a holder that is alive, or whose lock is not to be taken over."""
        if other.pid == _UNKNOWN_PROCESS:
            raise UsageError(f"{_refusal(self.tables, other)}; remove that file if no audit writes there any more")
        if not other.is_stale(time.time_ns()):
            raise UsageError(
                f"{_refusal(self.tables, other)}; it is alive: wait for it or end it, --take-over does not take its lock"
                if take_over
                else _refusal(self.tables, other)
            )
        if not take_over:
            raise UsageError(
                f"{_refusal(self.tables, other)}, which ended without releasing it (last sign of life "
                f"{_utc(other.seen_ns)}): --take-over takes its lock, and what it had read is not read again"
            )

    def holders(self) -> list[Holder]:
        """Return those whose files are there, the first one first."""
        found = (self._read(name.removesuffix(".json")) for name in self.tables.names(LOCK))
        return sorted((one for one in found if one is not None), key=lambda one: (one.since_ns, one.key))

    def _read(self, key: str) -> Holder | None:
        try:
            data = self.tables.read_bytes(f"{LOCK}/{key}.json")
        except FileNotFoundError:
            return None
        try:
            return Holder(**{**_checked(json.loads(data)), "key": key})
        except (LookupError, RecursionError, TypeError, ValueError):
            # Somebody's, written only in part: alive until the contrary is shown.
            now = time.time_ns()
            return Holder(
                key=key, host="", boot="", pid=_UNKNOWN_PROCESS, process_start="", user="", since_ns=now, seen_ns=now
            )

    def _write(self, holder: Holder) -> None:
        self.tables.write_bytes(f"{LOCK}/{holder.key}.json", json.dumps(asdict(holder)).encode())

    def remove(self, key: str) -> None:
        """Remove the file of a holder."""
        try:
            self.tables.remove_file(f"{LOCK}/{key}.json")
        except FileNotFoundError:
            return

    def give_signs(self, done: threading.Event) -> None:
        """Renew the sign of life until the work is done, or the lock is another's."""
        while not done.wait(SIGN_INTERVAL):
            try:
                if self._read(self.own.key) is None:
                    return
                self._write(replace(self.own, seen_ns=time.time_ns()))
            except OSError:
                continue  # storage that does not answer for a moment does not end the work


def _checked(values: Any) -> dict[str, Any]:
    for one in fields(Holder):
        if one.name != "key" and type(values[one.name]) is not one.type:
            raise TypeError(one.name)
    if not 0 < values["pid"] <= _LARGEST_PROCESS_ID:
        raise ValueError(values["pid"])
    return dict(values)


def _refusal(tables: Tables, holder: Holder) -> str:
    return f"{tables} is being written by another audit: {holder}"


def _this_process() -> Holder:
    now = time.time_ns()
    return Holder(
        key=uuid.uuid4().hex[:16],
        host=socket.gethostname(),
        boot=_boot(),
        pid=os.getpid(),
        process_start=_process_start(os.getpid()) or "",
        user=_user(),
        since_ns=now,
        seen_ns=now,
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without a passwd entry
        return f"uid {os.getuid()}"


@functools.cache
def _boot() -> str:
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _process_start(pid: int) -> str | None:
    """Return a value that distinguishes a process from a later one of the same id; empty where there is no such process, none where that is not shown."""
    try:
        # After the name, which may hold anything and ends with the last parenthesis; the 22nd field of proc(5).
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    # Where /proc is mounted with hidepid, processes of other users are there and not shown.
    return None if Path("/proc/self").exists() else "alive"


def _utc(time_ns: int) -> str:
    return utc_text(time_ns // 1_000_000)
