"""What the benchmarks share: whole processes timed, with their processor time and peak memory, beside kafka-dump-log."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

RUNS = 3


class Measured(NamedTuple):
    """The fastest of some runs: seconds, and the largest peak of one of its processes in bytes."""

    seconds: float
    processor_seconds: float
    peak: int


def kforensics(*arguments: str) -> list[str]:
    """The command as it is installed beside this interpreter."""
    return [str(Path(sys.executable).with_name("kforensics")), *arguments]


def dump_log(libraries: Path, file: Path, *options: str) -> list[str]:
    """kafka-dump-log without its shell script, whose start would be counted against it."""
    return ["java", "-cp", f"{libraries}/*", "kafka.tools.DumpLogSegments", "--files", str(file), *options]


def measured(command: Sequence[str], *, runs: int = RUNS, expect: Sequence[int] = (0,)) -> Measured:
    """Run a command some times, its output thrown away.

    Peak memory is that of the largest process the command waited for, as `ru_maxrss`: mapped pages count.
    """
    return min(_once(command, expect) for _ in range(runs))


def _once(command: Sequence[str], expect: Sequence[int]) -> Measured:
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in expect:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return Measured(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


def warm(path: Path) -> None:
    """Read a file once, so that the page cache holds it."""
    with path.open("rb") as file:
        while file.read(1 << 24):
            pass


def line(name: str, ours: Measured, peer: Measured | None, floor: float | None = None) -> str:
    """One row: what we need, what the peer needs, and the ratio."""
    row = f"{name:28} {ours.seconds:6.2f} s, processor {ours.processor_seconds:6.2f} s, peak {ours.peak / 1e6:4.0f} MB"
    if peer is None:
        return row
    asked = "" if floor is None else f" (floor {floor:g}x)"
    theirs = f"kafka-dump-log {peer.seconds:6.2f} s, processor {peer.processor_seconds:6.2f} s, peak {peer.peak / 1e6:4.0f} MB"
    return f"{row}   {theirs}   {peer.seconds / ours.seconds:5.1f}x{asked}"


def load() -> str:
    """How busy the machine is: figures of a run with more waiting processes than cores say little."""
    return f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
