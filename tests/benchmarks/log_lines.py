"""Reads a log of a gigabyte on one core and compares the processor time with that of `grep -c Truncat` on the same file.

python -m tests.benchmarks.log_lines [LOG] [--bytes N] [--command] [--steady]     without LOG one is made of the recordings' server logs, noise and all
python -m tests.benchmarks.log_lines --year [--bytes N]     `explain` of a recording, with a year of older server logs of so many bytes, with and without --since

The recordings are short: their logs are for the most part starts, and the same 16 MB again and again. With --steady the log is one of a broker
that runs for months, in which hardly a line is written twice: groups that rebalance, segments that are rolled and deleted, an ISR that changes.

Both run in the C locale, where grep is at its fastest; the page cache is warm, and the bytecode of the package is there, as where it is installed.
"""

import argparse
import compileall
import datetime as dt
import gzip
import json
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from random import Random

from kforensics.formats.log_lines.scan import scan_log
from kforensics.formats.log_lines.table import told_kinds
from tests.benchmarks.measure import kforensics, line, load, measured
from tests.builders.history import read_log

FIXTURES = Path(__file__).parent.parent.parent / "fixtures" / "incidents"
LIMIT = 8.0
LOCALE = {**os.environ, "LC_ALL": "C"}
PACKAGE = Path(__file__).parent.parent.parent / "kforensics"
STEADY = {
    (
        "[GroupCoordinator 1]: Dynamic member with unknown member id joins group {group} in Stable state. Created a new member id {member} (kafka.coordinator.group.GroupCoordinator)",
        "[GroupCoordinator 1]: Preparing to rebalance group {group} in state PreparingRebalance with old generation {number} (__consumer_offsets-7) (reason: Adding new member {member}) (kafka.coordinator.group.GroupCoordinator)",
        "[GroupCoordinator 1]: Stabilized group {group} generation {number} (__consumer_offsets-7) with 3 members (kafka.coordinator.group.GroupCoordinator)",
        "[GroupCoordinator 1]: Assignment received from leader {member} for group {group} for generation {number}. The group has 3 members, 0 of which are static. (kafka.coordinator.group.GroupCoordinator)",
    ): 50,
    (
        "[LocalLog partition={partition}, dir=/d] Rolled new log segment at offset {offset} in 4 ms. (kafka.log.LocalLog)",
        "[ProducerStateManager partition={partition}]Wrote producer snapshot at offset {offset} with 3 producer ids in 2 ms. (org.apache.kafka.storage.internals.log.ProducerStateManager)",
    ): 10,
    (
        "[UnifiedLog partition={partition}, dir=/d] Deleting segment LogSegment(baseOffset={offset}, size=1073732000, lastModifiedTime=1772000000000, largestRecordTimestamp=Some(1772000000000)) due to log retention time 604800000ms breach based on the largest record timestamp in the segment (kafka.log.UnifiedLog)",
        "[UnifiedLog partition={partition}, dir=/d] Incremented log start offset to {offset} due to segment deletion (kafka.log.UnifiedLog)",
        "[LocalLog partition={partition}, dir=/d] Deleting segment files LogSegment(baseOffset={offset}, size=1073732000, lastModifiedTime=1772000000000, largestRecordTimestamp=Some(1772000000000)) (kafka.log.LocalLog$)",
        "Deleted log /d/{partition}/{offset:020d}.log.deleted. (kafka.log.LogSegment)",
        "Deleted offset index /d/{partition}/{offset:020d}.index.deleted. (kafka.log.LogSegment)",
        "Deleted time index /d/{partition}/{offset:020d}.timeindex.deleted. (kafka.log.LogSegment)",
        "Deleted producer state snapshot /d/{partition}/{offset:020d}.snapshot.deleted (kafka.log.SnapshotFile)",
    ): 10,
    (
        "[GroupCoordinator 1]: Member {member} in group {group} has failed, removing it from the group (kafka.coordinator.group.GroupCoordinator)",
    ): 10,
    (
        "[GroupMetadataManager brokerId=1] Removed {number} expired offsets in 3 milliseconds. (kafka.coordinator.group.GroupMetadataManager)",
    ): 6,
    (
        "[SocketServer listenerType=BROKER, nodeId=1] Failed authentication with /10.0.0.{number} (SSL handshake failed) (org.apache.kafka.common.network.Selector)",
    ): 6,
    (
        "[Partition {partition} broker=1] Shrinking ISR from 1,2,3 to 1,3. Leader: (highWatermark: {offset}, endOffset: {offset}). Out of sync replicas: (brokerId: 2, endOffset: 7). (kafka.cluster.Partition)",
        "[Partition {partition} broker=1] ISR updated to 1,3  and version updated to {number} (kafka.cluster.Partition)",
        "[Partition {partition} broker=1] Expanding ISR from 1,3 to 1,3,2 (kafka.cluster.Partition)",
    ): 3,
}
"""Lines that a broker writes together, and how often."""


def main() -> int:
    """Print both times and their ratio; exit code 1 where it is above the limit."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("log", nargs="?", type=Path)
    options.add_argument("--bytes", type=int, default=1 << 30)
    options.add_argument("--command", action="store_true", help="time the whole of `explain LOG` and `logs LOG` too")
    options.add_argument("--steady", action="store_true")
    options.add_argument("--year", action="store_true")
    chosen = options.parse_args()
    if chosen.year:
        explain_a_year(chosen.bytes)
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        make = make_steady_log if chosen.steady else make_log
        path = chosen.log or make(Path(scratch) / "server.log", chosen.bytes)
        compileall.compile_dir(PACKAGE, quiet=1)
        grep = min(timed(lambda: grep_count(path)) for _ in range(3))
        scan = min(timed(lambda: scan_all(path)) for _ in range(2))
        read = timed(lambda: read_log(path, "."))
        commands = ("explain", "logs") if chosen.command else ()
        whole = {command: min(timed(lambda: ask(command, path)) for _ in range(2)) for command in commands}  # noqa: B023 - called at once
        size = path.stat().st_size
    print(load())
    print(f"{size / 1e6:,.0f} MB: grep -c Truncat {grep:.2f} s, events {scan:.2f} s ({size / scan / 1e6:,.0f} MB/s)")
    print(f"ratio {scan / grep:.1f} (limit {LIMIT:.0f}); with what is kept as evidence {read:.2f} s, {read / grep:.1f}")
    for command, seconds in whole.items():
        print(f"kforensics {command} {seconds:.2f} s, {seconds / grep:.1f}")
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(f"{memory / 1e6:,.0f} MB at most in one process")
    return int(max(scan, read, *whole.values()) / grep > LIMIT)


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


def make_steady_log(path: Path, length: int) -> Path:
    """The server log of a broker that runs on and on, with the shares of lines that a busy one of many topics and groups writes."""
    draw = Random(7)
    time = dt.datetime(2026, 3, 1)  # noqa: DTZ001 - the broker's own
    with path.open("w", encoding="ascii") as out:
        out.write("[2026-03-01 00:00:00,000] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n")
        while out.tell() < length:
            time += dt.timedelta(milliseconds=draw.randrange(1, 9_000))
            values = {
                "partition": f"topic-{draw.randrange(60)}-{draw.randrange(24)}",
                "offset": draw.randrange(1 << 40),
                "group": f"group-{draw.randrange(200)}",
                "member": f"consumer-{draw.getrandbits(128):032x}",
                "number": draw.randrange(5_000),
            }
            (texts,) = draw.choices(list(STEADY), list(STEADY.values()))
            stamp = f"[{time:%Y-%m-%d %H:%M:%S},{time.microsecond // 1000:03d}] INFO "
            out.writelines(f"{stamp}{text.format(**values)}\n" for text in texts)
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


def ask(command: str, path: Path) -> None:
    """The whole command, started as a user starts it, on one core."""
    subprocess.run(
        [sys.executable, "-m", "kforensics", command, "--jobs", "1", str(path)],
        capture_output=True,
        check=False,
        env=LOCALE,
    )


def scan_all(path: Path) -> None:
    """Every event of the file on which a conclusion of `explain` may rest, none kept; the others are counted."""
    with path.open("rb") as file:
        for _window in scan_log(iter(lambda: file.read(1 << 20), b""), counted=told_kinds()):
            pass


def timed(work: object) -> float:
    """Seconds of processor time that a call takes, here and in processes that it starts."""
    assert callable(work)
    before = _processor()
    work()
    return _processor() - before


def _processor() -> float:
    mine, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return mine.ru_utime + mine.ru_stime + others.ru_utime + others.ru_stime


if __name__ == "__main__":
    sys.exit(main())
