"""Reads a log of a gigabyte and compares the time with `grep -c Truncat` on the same file.

python -m tests.benchmarks.log_lines [LOG] [--bytes N] [--command]     without LOG one is made of the recordings' server logs, noise and all
python -m tests.benchmarks.log_lines --year [--bytes N]     `explain` of a recording, with a year of older server logs of so many bytes, with and without --since

Both run in the C locale, where grep is at its fastest; the page cache is warm.
"""

import argparse
import datetime as dt
import gzip
import json
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from kforensics.formats.log_lines.scan import scan_log
from kforensics.formats.log_lines.table import told_kinds
from tests.benchmarks.measure import kforensics, line, load, measured
from tests.builders.history import read_log

FIXTURES = Path(__file__).parent.parent.parent / "fixtures" / "incidents"
LIMIT = 8.0
LOCALE = {**os.environ, "LC_ALL": "C"}


def main() -> int:
    """Print both times and their ratio; exit code 1 where it is above the limit."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("log", nargs="?", type=Path)
    options.add_argument("--bytes", type=int, default=1 << 30)
    options.add_argument("--command", action="store_true", help="time the whole of `kforensics explain LOG` too")
    options.add_argument("--year", action="store_true")
    chosen = options.parse_args()
    if chosen.year:
        explain_a_year(chosen.bytes)
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        path = chosen.log or make_log(Path(scratch) / "server.log", chosen.bytes)
        grep = min(timed(lambda: grep_count(path)) for _ in range(3))
        scan = min(timed(lambda: scan_all(path)) for _ in range(2))
        read = timed(lambda: read_log(path, "."))
        whole = min(timed(lambda: explain(path)) for _ in range(2)) if chosen.command else 0.0
        size = path.stat().st_size
    print(load())
    print(f"{size / 1e6:,.0f} MB: grep -c Truncat {grep:.2f} s, events {scan:.2f} s ({size / scan / 1e6:,.0f} MB/s)")
    print(f"ratio {scan / grep:.1f} (limit {LIMIT:.0f}); with what is kept as evidence {read:.2f} s, {read / grep:.1f}")
    if chosen.command:
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        print(f"kforensics explain {whole:.2f} s, {whole / grep:.1f}, {memory / 1e6:,.0f} MB at most in one process")
    return int(max(scan, read, whole) / grep > LIMIT)


def make_log(path: Path, length: int) -> Path:
    """Server logs of all recordings, one after another, until there are enough bytes."""
    parts: list[bytes] = []
    for archive in sorted(FIXTURES.glob("*.tar.xz")):
        with tarfile.open(archive) as tar:
            logs = (tar.extractfile(member) for member in tar if member.name.endswith("/server.log"))
            parts.extend(log.read() for log in logs if log is not None)
    once = b"".join(parts)
    with path.open("wb") as out:
        while out.tell() < length:
            out.write(once)
    return path


def explain_a_year(length: int) -> None:
    """Print what `explain` needs with and without --since."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        with tarfile.open(FIXTURES / "power-loss-4.x.tar.xz") as tar:
            tar.extractall(root, filter="data")
        begin = make_year(next(root.rglob("logs/broker-1/server.log")), length)
        (checks,) = root.rglob("checks.json")
        paths = [str(checks.parent / "snapshots" / json.loads(checks.read_text())["explain"]["snapshot"])]
        paths.append(str(checks.parent / "logs"))
        print(load())
        for name, window in (("explain", []), ("explain --since", ["--since", begin])):
            ours = measured(kforensics("explain", *paths, *window), expect=(0, 1, 3))
            reads = f"{ours.read_bytes / 1e6:,.1f} MB read in {ours.read_requests:,} requests"
            print(line(name, ours, None), "", reads, flush=True)


def make_year(server_log: Path, length: int) -> str:
    """Write a log file for each day of the year before the first line of one, the older half of them gzipped, and return its day."""
    begin = dt.datetime.fromisoformat(server_log.read_text()[1:20]).replace(hour=0, minute=0, second=0)
    text = (
        "INFO [GroupCoordinator 1]: Stabilized group orders generation {} (kafka.coordinator.group.GroupCoordinator)\n"
    )
    count = length // 365 // (len(text) + 26)
    for days in range(2, 367):
        day = begin - dt.timedelta(days=days)
        seconds = (day + dt.timedelta(seconds=number * 86_000 // count) for number in range(count))
        data = "".join(f"[{time:%Y-%m-%d %H:%M:%S},000] {text.format(7)}" for time in seconds).encode()
        if days == 180:  # it was started then
            start = f"[{day:%Y-%m-%d %H:%M:%S},000] INFO "
            data = f"{start}KafkaConfig values: \n{start}Kafka version: 4.0.0 (x)\n".encode() + data
        path = server_log.with_name(f"server.log.{day:%Y-%m-%d}")
        if days > 180:
            path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(data, 1))
        else:
            path.write_bytes(data)
    return f"{begin:%Y-%m-%d}"


def grep_count(path: Path) -> None:
    """What an operator would do; the output goes to a pipe, since grep stops at the first hit if nobody reads it."""
    subprocess.run(["grep", "-c", "Truncat", str(path)], stdout=subprocess.PIPE, check=False, env=LOCALE)


def explain(path: Path) -> None:
    """The whole command, started as a user starts it."""
    command = [sys.executable, "-m", "kforensics", "explain", str(path)]
    subprocess.run(command, capture_output=True, check=False, env=LOCALE)


def scan_all(path: Path) -> None:
    """Every event of the file on which a conclusion of `explain` may rest, none kept; the others are counted."""
    with path.open("rb") as file:
        for _window in scan_log(iter(lambda: file.read(1 << 20), b""), counted=told_kinds()):
            pass


def timed(work: object) -> float:
    """Seconds that a call takes."""
    assert callable(work)
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
