"""What the benchmarks share: whole processes timed, with their processor time and peak memory, beside kafka-dump-log."""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

RUNS = 3
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""What is installed has its compiled modules; what runs from a checkout writes them in its first run."""


class Measured(NamedTuple):
    """Medians of some runs: seconds, processor time; the largest peak of one of its processes in bytes, and what it asked the system to read."""

    seconds: float
    processor_seconds: float
    peak: int
    read_bytes: int
    read_requests: int


def benchmark_options(description: str | None) -> argparse.ArgumentParser:
    """The options of a benchmark that stands beside kafka-dump-log."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--kafka-libs", type=Path)
    parser.add_argument("--runs", type=int, default=RUNS)
    return parser


def kforensics(*arguments: str) -> list[str]:
    """The command of this checkout."""
    return [sys.executable, "-m", "kforensics", *arguments]


def dump_log(libraries: Path, file: Path | str, *options: str) -> list[str]:
    """kafka-dump-log of a file, or of several separated by commas, without its shell script, whose start would be counted against it."""
    return ["java", "-cp", f"{libraries}/*", "kafka.tools.DumpLogSegments", "--files", str(file), *options]


def measured(command: Sequence[str], *, runs: int = RUNS, expect: Sequence[int] = (0,)) -> Measured:
    """Run a command some times, its output thrown away.

    Peak memory is that of the largest process the command waited for, as `ru_maxrss`: mapped pages count.
    """
    return median_of([_once(command, expect) for _ in range(runs)])


def measured_in_turn(ours: Sequence[str], theirs: Sequence[str], *, runs: int = RUNS) -> tuple[Measured, Measured]:
    """Run two commands in turn, so that what else the machine does meets both."""
    pairs = [(_once(ours, (0,)), _once(theirs, (0,))) for _ in range(runs)]
    return median_of([one for one, _ in pairs]), median_of([other for _, other in pairs])


def median_of(runs: Sequence[Measured]) -> Measured:
    """The medians of some runs, and the largest of what counts as a peak."""
    return Measured(
        median(one.seconds for one in runs),
        median(one.processor_seconds for one in runs),
        max(one.peak for one in runs),
        max(one.read_bytes for one in runs),
        max(one.read_requests for one in runs),
    )


def _once(command: Sequence[str], expect: Sequence[int]) -> Measured:
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    seconds = time.perf_counter() - started
    read = dict(line.split(": ") for line in Path(f"/proc/{process.pid}/io").read_text().splitlines())
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in expect:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return Measured(
        seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, int(read["rchar"]), int(read["syscr"])
    )


class Together(NamedTuple):
    """The most that all processes of a command held at one time, in bytes."""

    proportional: int
    """A page that several processes share counts once, and pages of files count as far as they are mapped."""
    anonymous: int
    """The part of it that is no page of a file."""


def held_together(command: Sequence[str], *, expect: Sequence[int] = (0,)) -> Together:
    """Run a command and look at all of its processes again and again; what is held for less than the time between two looks may be missed."""
    most = Together(0, 0)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
    while process.poll() is None:
        found = [_held(number) for number in _family(process.pid)]
        most = Together(*(max(before, sum(each)) for before, each in zip(most, zip(*found, strict=True), strict=True)))
        time.sleep(0.02)
    if process.returncode not in expect:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return most


def _family(process: int) -> list[int]:
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        children = []
    return [process, *(one for child in children for one in _family(int(child)))]


def _held(process: int) -> Together:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:  # it has ended
        return Together(0, 0)
    values = {line.split()[0]: int(line.split()[1]) * 1024 for line in lines[1:]}
    return Together(values.get("Pss:", 0), values.get("Pss_Anon:", 0))


def warm(path: Path) -> None:
    """Read a file once, so that the page cache holds it."""
    with path.open("rb") as file:
        while file.read(1 << 24):
            pass


def cold(path: Path) -> None:
    """Drop a file from the page cache, after what is in it is written."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def line(name: str, ours: Measured, peer: Measured | None, floor: float | None = None) -> str:
    """One row: what we need, what the peer needs, and the ratios of seconds and of processor time."""
    row = f"{name:28} {ours.seconds:6.2f} s, processor {ours.processor_seconds:6.2f} s, peak {ours.peak / 1e6:4.0f} MB"
    if peer is None:
        return row
    asked = "" if floor is None else f" (floor {floor:g}x)"
    theirs = (
        f"the other {peer.seconds:6.2f} s, processor {peer.processor_seconds:6.2f} s, peak {peer.peak / 1e6:4.0f} MB"
    )
    ratios = f"{peer.seconds / ours.seconds:5.1f}x, processor {peer.processor_seconds / ours.processor_seconds:5.1f}x"
    return f"{row}   {theirs}   {ratios}{asked}"


def load() -> str:
    """How busy the machine is: figures of a run with more waiting processes than cores say little."""
    return f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
