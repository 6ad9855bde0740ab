"""Audit a generated fleet beside `kforensics diff` over the same; run as `python -m tests.benchmarks.fleet WHAT DIRECTORY`.

    compare     20 brokers, 600 partitions x 3 replicas, 3 GB, some diverged, some damaged: audit (Spark's start-up apart) beside
                `diff --jobs 2`, turn by turn, the same findings, and a second, incremental audit
    doubling    the audit of that fleet, doubled three times, with the driver's peak memory; the doubles are hard links, so that
                the page cache holds all of it
    one         of these the one in the directory
    shuffle     bytes shuffled, from Spark's event log, with batches of one size and of a tenth of it
    plan        the plan stage for 100,000 partitions of tiny logs
    tails       the audit by the ends of logs beside `diff --depth tails --jobs 2` over the same made cluster: three brokers, `--partitions` of 100 MB each

Ratios of one run on a quiet machine count; seconds alone say little.
"""

import argparse
import contextlib
import json
import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from kforensics.ask.model import Ask
from kforensics.evidence.plain import to_plain
from kforensics.findings.fleet_summary import FleetSummary
from kforensics.fleet.audit_tables import open_audit
from kforensics.fleet.auditing import audit
from kforensics.fleet.session import open_session
from kforensics.fleet.sources import read_sources
from kforensics.fleet.summary import summarise
from kforensics.fleet.tables import Tables
from kforensics.formats.checkpoint.lines import (
    Checkpoint,
    CheckpointEntry,
    LeaderEpochCheckpoint,
    LeaderEpochLine,
    encode_checkpoint,
    encode_leader_epoch_checkpoint,
    parse_checkpoint,
)
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from kforensics.units import Depth
from tests.benchmarks.measure import kforensics, load, measured
from tests.benchmarks.tails import made

BROKERS = 20
PARTITIONS = 600
REPLICAS = 3
REPLICA_LENGTH = 1_670_000
RECORDS, VALUE_LENGTH = 40, 394
SMALL_RECORDS = 4
TEMPLATES = 16
TOPICS = 6
DIVERGED_EVERY, DAMAGED_EVERY = 60, 75
ROUNDS = 5
CHECKPOINTS = ("replication-offset-checkpoint", "recovery-point-offset-checkpoint")
LONG_AGO = (1_700_000_000, 1_700_000_000)
_OFFSET = struct.Struct(">q")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["compare", "doubling", "one", "shuffle", "plan", "tails"])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--partitions", type=int, default=33_000)
    arguments = parser.parse_args()
    if arguments.what == "tails":
        by_ends(arguments.directory, arguments.partitions)
        return
    {"compare": compare, "doubling": doubling, "one": one, "shuffle": shuffle, "plan": plan}[arguments.what](
        arguments.directory
    )


def compare(directory: Path) -> None:
    fleet = generated(directory / "fleet-600", PARTITIONS)
    warm(fleet)
    command = [str(Path(sys.executable).with_name("kforensics")), "diff", "--jobs", "2", "--format", "json", str(fleet)]
    rounds = []
    with open_session("local[2]", {"spark.driver.memory": "1g"}) as session, scratch(directory) as out:
        audit(lambda: session, read_sources([str(first_of(fleet))]), out / "warm", options=Ask())
        for number in range(ROUNDS):
            begin = time.perf_counter()
            answer = subprocess.run(command, capture_output=True, check=False)
            local = time.perf_counter() - begin
            seconds, summary = audited(session, fleet, out / f"first-{number}")
            again, second = audited(session, fleet, out / f"second-{number}", since=out / f"first-{number}")
            rounds.append((seconds / local, local, seconds, again))
    expected = json.loads(answer.stdout)["findings"]
    found = [one for one in summary.findings if not one.code.startswith("KF4")]
    same = sorted(map(plain, found)) == sorted(json.dumps(one, sort_keys=True) for one in expected)
    print(f"{summary.bytes / 1e9:.2f} GB, {summary.partition_count} partitions, {summary.replicas} replicas")
    print("diff --jobs 2   audit local[2]   of diff   unchanged, --since   of the first")
    for ratio, local, seconds, again in rounds:
        print(f"{local:11.2f} s {seconds:14.2f} s {ratio:8.2f}x {again:18.2f} s {100 * again / seconds:12.0f} %")
    best = min(one[2] for one in rounds) / min(one[1] for one in rounds)
    print(
        f"median {statistics.median(one[0] for one in rounds):.2f}x, of the best of both {best:.2f}x; {second.read_bytes} bytes read again"
    )
    print(
        f"{len(found)} findings, {'the same' if same else 'NOT THE SAME'} as of diff; verdicts {dict(summary.verdicts)}"
    )


def by_ends(directory: Path, partitions: int) -> None:
    with made(directory, partitions) as root:
        command = ["diff", "--depth", "tails", "--replicas", "1,2,3", "--jobs", "2", "--format", "json", str(root)]
        used = measured(kforensics(*command), runs=1, expect=(0, 1, 3))
        options = Ask(depth=Depth.TAILS, replicas=(1, 2, 3))
        with open_session("local[2]", {"spark.driver.memory": "1g"}) as session, scratch(directory) as out:
            audit(
                lambda: session,
                read_sources([str(root / "broker-1" / "orders-0")]),
                out / "warm",
                options=options,
            )
            before, begun = descendants_seconds(), time.perf_counter()
            tables = audit(lambda: session, read_sources([str(root)]), out / "audit", options=options)
            seconds, processor = time.perf_counter() - begun, descendants_seconds() - before
            summary = summarise(tables, most=10)
    each = partitions * REPLICAS
    print(load())
    print(f"{partitions:,} partitions x {REPLICAS}, {summary.bytes / 1e12:.2f} TB: {dict(summary.states)}")
    print(
        f"audit {seconds:.1f} s, processor {processor:.1f} s, {processor / each * 1e3:.2f} ms a directory; {dict(tables.manifest['seconds'])}"
    )
    print(
        f"diff {used.seconds:.1f} s, processor {used.processor_seconds:.1f} s; {summary.read_bytes / partitions / 1024:.1f} KB read a partition"
    )


def descendants_seconds() -> float:
    """Processor seconds of this process and of all that it started, the ended ones included."""
    fields = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields[int(stat.parent.name)] = stat.read_text().rpartition(")")[2].split()
    family, size = {os.getpid()}, 0
    while size < len(family):
        size = len(family)
        family |= {pid for pid, one in fields.items() if int(one[1]) in family}
    return sum(int(number) for pid in family for number in fields[pid][11:15]) / os.sysconf("SC_CLK_TCK")


def doubling(directory: Path) -> None:
    print("partitions      bytes   seconds  per doubling   driver's peak: interpreter, JVM   heap after collection")
    before = 0.0
    base = generated(directory / f"fleet-{PARTITIONS}", PARTITIONS)
    warm(base)
    for times in (2, 4, 8, 16):  # from 6 GB on: what a job of Spark costs is small beside them
        partitions = PARTITIONS * times
        fleet = multiplied(base, directory / f"fleet-{partitions}", times)
        # A process of its own, so that peaks of memory are those of this size.
        answer = subprocess.run(
            [sys.executable, "-m", "tests.benchmarks.fleet", "one", str(fleet)], stdout=subprocess.PIPE, check=True
        )
        found = json.loads(answer.stdout)
        ratio = f"{found['seconds'] / before / 2:.2f}" if before else ""
        print(
            f"{partitions:10,} {found['bytes'] / 1e9:7.2f} GB {found['seconds']:7.2f} {ratio:>12}   "
            f"{found['interpreter'] / 1e6:6.0f} MB, {found['machine'] / 1e6:.0f} MB   {found['heap'] / 1e6:.0f} MB",
            flush=True,
        )
        before = found["seconds"]


def one(fleet: Path) -> None:
    """Audit one fleet and print time and memory as JSON."""
    with open_session("local[2]", {"spark.driver.memory": "1g"}) as session, scratch(fleet.parent) as out:
        audit(lambda: session, read_sources([str(first_of(fleet))]), out / "warm", options=Ask())
        seconds, summary = audited(session, fleet, out / "first")
        machine = session.sparkContext._jvm.java.lang
        machine.System.gc()
        heap = machine.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed()
        peak = peak_of(session.sparkContext._gateway.proc.pid)
    print(
        json.dumps(
            {
                "seconds": seconds,
                "bytes": summary.bytes,
                "interpreter": peak_of(os.getpid()),
                "machine": peak,
                "heap": heap,
            }
        )
    )


def peak_of(process: int) -> int:
    """The most memory that a process ever held, in bytes."""
    line = next(one for one in Path(f"/proc/{process}/status").read_text().splitlines() if one.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def shuffle(directory: Path) -> None:
    for name, records in ((f"fleet-{PARTITIONS}", RECORDS), ("fleet-small-batches", SMALL_RECORDS)):
        fleet = generated(directory / name, PARTITIONS, records=records)
        events = Path(tempfile.mkdtemp(prefix="events-", dir=directory))
        settings = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
            "spark.eventLog.dir": events.as_uri(),
        }
        with open_session("local[2]", settings) as session, scratch(directory) as out:
            _, summary = audited(session, fleet, out / "first")
            digests = Tables(out / "first").dataset("digests").count_rows()
            batches = sum(row["batches"] for row in Tables(out / "first").rows("digests", columns=["batches"]))
        written = sum(
            json.loads(line)["Task Metrics"]["Shuffle Write Metrics"]["Shuffle Bytes Written"]
            for file in events.iterdir()
            for line in file.read_text().splitlines()
            if '"Event":"SparkListenerTaskEnd"' in line
        )
        allowed = 200 * summary.segments + 64 * digests
        print(
            f"{batches:,} batches: {written:,} bytes shuffled for {summary.segments:,} segments and {digests:,} "
            f"digest buckets: {written / summary.segments:.0f} a segment; allowed {allowed:,}"
        )
        shutil.rmtree(events)


def plan(directory: Path) -> None:
    fleet = directory / "fleet-tiny"
    if not fleet.exists():
        generate(fleet, 100_000, replica_length=1, records=1, replicas=1)
    with open_session("local[2]", {"spark.driver.memory": "1g"}) as session, scratch(directory) as out:
        audit(
            lambda: session,
            read_sources([str(first_of(generated(directory / "fleet-small", 40)))]),
            out / "warm",
            options=Ask(),
        )
        begin = time.perf_counter()
        tables = audit(lambda: session, read_sources([str(fleet)]), out / "first", options=Ask())
        seconds = time.perf_counter() - begin
        tasks = tables.manifest["tasks"]
        print(
            f"stages { ({name: round(value, 1) for name, value in tables.manifest['seconds'].items()}) }, {seconds:.1f} s, {tasks} tasks"
        )


def audited(session: object, fleet: Path, out: Path, since: Path | None = None) -> tuple[float, FleetSummary]:
    begin = time.perf_counter()
    audit(lambda: session, read_sources([str(fleet)]), out, options=Ask(), since=since)
    summary = summarise(open_audit(out), most=100)
    return time.perf_counter() - begin, summary


def scratch(directory: Path) -> "Scratch":
    return Scratch(directory)


class Scratch:
    def __init__(self, directory: Path) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="tables-", dir=directory))

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.path)


def plain(finding: object) -> str:
    return json.dumps(to_plain(finding), sort_keys=True)


def first_of(fleet: Path) -> Path:
    return min(fleet.iterdir())


def warm(fleet: Path) -> None:
    for file in files_of(fleet):
        with file.open("rb") as content:
            while content.read(1 << 24):
                pass


def files_of(fleet: Path) -> Iterator[Path]:
    return (Path(folder, name) for folder, _, names in os.walk(fleet) for name in names)


def generated(fleet: Path, partitions: int, *, records: int = RECORDS) -> Path:
    if not fleet.exists():
        generate(fleet, partitions, replica_length=REPLICA_LENGTH, records=records, replicas=REPLICAS)
    return fleet


def generate(fleet: Path, partitions: int, *, replica_length: int, records: int, replicas: int) -> None:
    """Write a fleet; each partition's replicas are equal but for the few that are cut, changed or damaged."""
    work = fleet.with_suffix(".part")
    shutil.rmtree(work, ignore_errors=True)
    length = VALUE_LENGTH if replica_length > 1 else 8
    templates = [template(records, length) for _ in range(TEMPLATES)]
    holders: dict[int, list[tuple[str, int]]] = {broker: [] for broker in range(1, BROKERS + 1)}
    epochs = encode_leader_epoch_checkpoint(LeaderEpochCheckpoint(lines=(LeaderEpochLine(0, 0),)))
    for number in range(partitions):
        topic, partition = f"topic-{number % TOPICS}", number // TOPICS
        content = log(templates, number, replica_length, records)
        for place in range(replicas):
            broker = (number + place) % BROKERS + 1
            folder = work / f"broker-{broker:02}" / f"{topic}-{partition}"
            folder.mkdir(parents=True)
            own = altered(content, templates, number, records) if place == replicas - 1 and replicas > 1 else content
            (folder / f"{0:020}.log").write_bytes(own)
            (folder / "leader-epoch-checkpoint").write_bytes(epochs)
            holders[broker].append((topic, partition))
    ends = max(1, replica_length // len(templates[0])) * records
    for broker, held in holders.items():
        node = work / f"broker-{broker:02}"
        node.mkdir(parents=True, exist_ok=True)
        (node / "meta.properties").write_text(f"version=0\nbroker.id={broker}\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\n")
        (node / ".kafka_cleanshutdown").touch()
        marks = Checkpoint(entries=tuple(CheckpointEntry(topic, partition, ends) for topic, partition in held))
        for name in CHECKPOINTS:
            (node / name).write_bytes(encode_checkpoint(marks))
    for file in files_of(work):
        os.utime(file, LONG_AGO)
    work.rename(fleet)


def multiplied(base: Path, fleet: Path, times: int) -> Path:
    """A fleet of several times the partitions of another, with the same files under other names."""
    if fleet.exists():
        return fleet
    work = fleet.with_suffix(".part")
    shutil.rmtree(work, ignore_errors=True)
    for node in sorted(base.iterdir()):
        (work / node.name).mkdir(parents=True)
        for item in sorted(node.iterdir()):
            if not item.is_dir():
                shutil.copy2(item, work / node.name)
                continue
            for number in range(times):
                target = work / node.name / (f"again-{number}-{item.name}" if number else item.name)
                target.mkdir()
                for file in item.iterdir():
                    (target / file.name).hardlink_to(file)
        for name in CHECKPOINTS:
            entries = parse_checkpoint((node / name).read_bytes()).entries
            marks = Checkpoint(
                entries=tuple(
                    CheckpointEntry(f"again-{number}-{one.topic}" if number else one.topic, one.partition, one.offset)
                    for number in range(times)
                    for one in entries
                )
            )
            (work / node.name / name).write_bytes(encode_checkpoint(marks))
            os.utime(work / node.name / name, LONG_AGO)
    work.rename(fleet)
    return fleet


def log(templates: list[bytes], number: int, length: int, records: int) -> bytes:
    # The base offset lies outside of the checksum: few batches serve for all.
    count = max(1, length // len(templates[0]))
    return b"".join(
        _OFFSET.pack(place * records) + templates[(number + place) % len(templates)][_OFFSET.size :]
        for place in range(count)
    )


def altered(content: bytes, templates: list[bytes], number: int, records: int) -> bytes:
    size = len(templates[0])
    if number % DIVERGED_EVERY == 1:
        at = len(content) // size // 2
        other = _OFFSET.pack(at * records) + templates[(number + at + 1) % len(templates)][_OFFSET.size :]
        return content[: at * size] + other + content[(at + 1) * size :]
    if number % DAMAGED_EVERY == 2:
        at = len(content) // 3
        return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
    return content[:-size] if number % 7 == 3 and len(content) > size else content


def template(records: int, value_length: int) -> bytes:
    given = [(LONG_AGO[0] * 1_000 + n, f"key-{n:04}".encode(), os.urandom(value_length)) for n in range(records)]
    return encode_record_batch(build_record_batch(0, given))


if __name__ == "__main__":
    main()
