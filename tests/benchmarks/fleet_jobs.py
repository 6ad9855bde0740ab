"""What Spark's jobs cost an audit: `python -m tests.benchmarks.fleet_jobs WHAT DIRECTORY`.

    cluster     20 tiny log directories on a standalone master with two workers
    nights      30 audits of a small fleet into one history on one session, some logs growing between them
    changed     audits of one fleet into a history: the first, one with nothing changed, and two with 1 % of the segments grown
    skewed      one partition of 2 GB among 10,000 tiny ones, beside each of the two alone
    local       the audit of a fleet, beside `diff --jobs 2` of the same, in turn

Processor seconds are those of all processes of an audit: the driver, the Java machine and the Python workers; seconds by the clock count on a quiet machine alone.
"""

import argparse
import os
import resource
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

from kforensics.ask.model import Ask
from kforensics.fleet.audit_tables import AuditTables
from kforensics.fleet.auditing import audit
from kforensics.fleet.judge import WorkContext
from kforensics.fleet.session import open_session
from kforensics.fleet.sources import read_sources
from kforensics.fleet.stages import scan_task
from kforensics.fleet.summary import summarise
from tests.benchmarks.fleet import (
    LONG_AGO,
    PARTITIONS,
    RECORDS,
    REPLICAS,
    SMALL_RECORDS,
    TEMPLATES,
    TOPICS,
    VALUE_LENGTH,
    Scratch,
    files_of,
    first_of,
    generate,
    generated,
    template,
    warm,
)
from tests.benchmarks.measure import kforensics, load
from tests.benchmarks.measure import measured as one_process
from tests.fleet.standalone import standalone

TINY, TINY_ROUNDS = 20, 6
NIGHTS, NIGHT_PARTITIONS, NIGHT_LENGTH = 30, 120, 20_000
GROWN_LENGTH, GROWN_EVERY = 400_000, 100
TINY_BESIDE, LARGE_LENGTH, LARGE_SEGMENT = 10_000, 2 << 30, 128 << 20
MEMORY = {"spark.driver.memory": "1g"}
ROUNDS = 3


def main() -> None:
    """Measure one of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = {"cluster": cluster, "nights": nights, "changed": changed, "skewed": skewed, "local": local}
    parser.add_argument("what", choices=kinds)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--nights", type=int, default=NIGHTS)
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--length", type=int, default=GROWN_LENGTH, help="of a segment of `changed`")
    arguments = parser.parse_args()
    arguments.directory.mkdir(parents=True, exist_ok=True)
    kinds[arguments.what](arguments)


def cluster(arguments: argparse.Namespace) -> None:
    fleet = arguments.directory / "fleet-trivial"
    if not fleet.exists():
        generate(fleet, TINY, replica_length=1, records=1, replicas=1)
    with Scratch(arguments.directory) as out:
        (out / "spark").mkdir()
        settings = {"spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1"}
        with standalone(out / "spark") as (master, _), open_session(master, settings) as session:
            for number in range(TINY_ROUNDS):
                print(f"audit {number + 1}: {measured(session, fleet, out / str(number))[1]}", flush=True)


def nights(arguments: argparse.Namespace) -> None:
    fleet = arguments.directory / "fleet-of-nights"
    shutil.rmtree(fleet, ignore_errors=True)
    generate(fleet, NIGHT_PARTITIONS, replica_length=NIGHT_LENGTH, records=SMALL_RECORDS, replicas=REPLICAS)
    batch = template(SMALL_RECORDS, VALUE_LENGTH)
    files = size = 0
    with open_session("local[2]", MEMORY) as session, Scratch(arguments.directory) as out:
        history = out / "history"
        for night in range(arguments.nights):
            grown = grow(fleet, night, batch)
            tables, words = measured(session, fleet, history, is_history=True, audit_id=f"night-{night + 1:02}")
            found = [one.stat().st_size for one in files_of(history)]
            print(
                f"night {night + 1:2}: {grown} logs grown, {tables.manifest['read_bytes']:,} bytes read; "
                f"{summarise(tables, most=0).finding_count} findings; {len(found) - files} files and "
                f"{(sum(found) - size) / 1e3:,.0f} kB more; {words}",
                flush=True,
            )
            files, size = len(found), sum(found)


def grow(fleet: Path, night: int, batch: bytes) -> int:
    """Append a batch to all replicas of some partitions, others each night, but for the first; returns how many logs."""
    grown = 0
    for path in sorted(fleet.glob("*/*/*.log")) if night else ():
        if (int(path.parent.name.rpartition("-")[2]) + night) % 10 == 0:
            count = path.stat().st_size // len(batch)
            with path.open("ab") as log_file:
                log_file.write((count * SMALL_RECORDS).to_bytes(8) + batch[8:])
            os.utime(path, (LONG_AGO[0] + night, LONG_AGO[1] + night))
            grown += 1
    return grown


def changed(arguments: argparse.Namespace) -> None:
    fleet = arguments.directory / f"fleet-changed-{arguments.partitions}-{arguments.length}"
    shutil.rmtree(fleet, ignore_errors=True)
    generate(fleet, arguments.partitions, replica_length=arguments.length, records=SMALL_RECORDS, replicas=REPLICAS)
    warm(fleet)
    batch = template(SMALL_RECORDS, VALUE_LENGTH)
    with open_session("local[2]", MEMORY) as session, Scratch(arguments.directory) as out:
        # What the first job of a session costs is a part of Spark's start.
        audit(lambda: session, read_sources([str(first_of(fleet))]), out / "warm", options=Ask())
        first = 0.0
        for night, every in enumerate((0, 0, GROWN_EVERY, GROWN_EVERY)):
            logs = sorted(fleet.glob("*/*/*.log"))
            grown = [path for path in logs if every and _number_of(path) % every == night]
            for path in grown:  # of all replicas, as producers and fetchers do it
                with path.open("ab") as log_file:
                    log_file.write((path.stat().st_size // len(batch) * SMALL_RECORDS).to_bytes(8) + batch[8:])
                os.utime(path, (LONG_AGO[0] + night, LONG_AGO[1] + night))
            with processor_time() as spent:
                tables, words = measured(session, fleet, out / "history", is_history=True, audit_id=f"night-{night}")
            used = sum(spent.values())
            first = first or used
            kept = tables.manifest.get("kept_verdicts", 0 if tables.manifest["tasks"] else "all")
            print(
                f"night {night + 1}: {len(grown)} of {len(logs):,} segments grown, {kept} verdicts kept, {tables.manifest['read_bytes']:,} bytes "
                f"read: {100 * used / first:.1f} % of the first; {words}",
                flush=True,
            )
    print(load())


def _number_of(path: Path) -> int:
    topic, _, partition = path.parent.name.removeprefix("topic-").partition("-")
    return int(partition) * TOPICS + int(topic)


def skewed(arguments: argparse.Namespace) -> None:
    directory = arguments.directory
    tiny, both, alone = (directory / name for name in ("fleet-tiny", "fleet-skewed", "fleet-large"))
    if not tiny.exists():
        generate(tiny, TINY_BESIDE, replica_length=1, records=1, replicas=1)
    node = first_of(tiny).name
    if not both.exists():
        shutil.copytree(tiny, both, copy_function=os.link)
        write_large(both / node / "large-0")
        (alone / node).mkdir(parents=True)
        shutil.copy2(both / node / "meta.properties", alone / node)
        shutil.copytree(both / node / "large-0", alone / node / "large-0", copy_function=os.link)
    warm(alone)
    with open_session("local[2]", MEMORY) as session, Scratch(directory) as out:
        audit(lambda: session, read_sources([str(alone)]), out / "warm", options=Ask())
        for number in range(arguments.rounds):
            for fleet in (tiny, alone, both):
                print(f"{fleet.name:12}: {measured(session, fleet, out / f'{fleet.name}-{number}')[1]}", flush=True)
        for fleet in (tiny, both):
            print(f"{fleet.name:12}: {tasks_of(fleet, out / f'{fleet.name}-tasks')}", flush=True)


def tasks_of(fleet: Path, out: Path) -> str:
    """Say what each task of the scan takes, one after the other in this process, where nothing else is counted."""
    large: list[float] = []
    others: list[float] = []

    def one_by_one(_: Any, scan: WorkContext, *__: Any) -> Any:
        for number in range(len(scan.pieces)):
            begin = time.thread_time()
            found = scan_task(scan, number)
            seconds = time.thread_time() - begin
            (large if any(row["topic"] == "large" for row in found.segments) else others).append(seconds)
        raise InterruptedError

    with (
        patch("kforensics.fleet.knowledge.LISTED_HERE", 1_000_000),
        patch("kforensics.fleet.auditing.cores_of", lambda _: 2),
        patch("kforensics.fleet.auditing.scan_and_judge", one_by_one),
        suppress(InterruptedError),
    ):
        audit(lambda: None, read_sources([str(fleet)]), out, options=Ask())
    return "; ".join(
        f"{len(kind)} scan tasks {words}: {sum(kind):.2f} processor seconds, at most {max(kind, default=0):.2f}"
        for kind, words in ((large, "that read of the large partition"), (others, "of tiny ones alone"))
    )


def write_large(folder: Path) -> None:
    """Write a partition of 2 GB in segments of 128 MB."""
    folder.mkdir(parents=True)
    templates = [template(RECORDS, VALUE_LENGTH) for _ in range(TEMPLATES)]
    count = LARGE_SEGMENT // len(templates[0])
    for number in range(LARGE_LENGTH // LARGE_SEGMENT):
        base = number * count * RECORDS
        path = folder / f"{base:020}.log"
        with path.open("wb") as segment:
            for place in range(count):
                # The base offset lies outside of the checksum.
                segment.write((base + place * RECORDS).to_bytes(8) + templates[place % len(templates)][8:])
        os.utime(path, LONG_AGO)


def local(arguments: argparse.Namespace) -> None:
    fleet = generated(arguments.directory / f"fleet-{arguments.partitions}", arguments.partitions)
    warm(fleet)
    command = kforensics("diff", "--jobs", "2", "--format", "json", str(fleet))
    ratios = []
    with open_session("local[2]", MEMORY) as session, Scratch(arguments.directory) as out:
        # What the first job of a session costs is a part of Spark's start.
        audit(lambda: session, read_sources([str(first_of(fleet))]), out / "warm", options=Ask())
        for number in range(arguments.rounds):
            beside = one_process(command, runs=1, expect=(0, 1, 3))
            begin = time.perf_counter()
            with processor_time() as spent:
                _, words = measured(session, fleet, out / str(number))
            clock = time.perf_counter() - begin
            ratios.append((sum(spent.values()) / beside.processor_seconds, clock / beside.seconds))
            print(
                f"diff --jobs 2: {beside.processor_seconds:.2f} processor seconds, {beside.seconds:.2f} by the clock; "
                f"audit, {ratios[-1][0]:.2f} and {ratios[-1][1]:.2f} of it: {words}",
                flush=True,
            )
    processor, by_clock = (median(kind) for kind in zip(*ratios, strict=True))
    print(f"{load()}; median {processor:.2f} in processor time, {by_clock:.2f} by the clock")


def measured(session: Any, fleet: Path, out: Path, **options: Any) -> tuple[AuditTables, str]:
    """Audit a fleet, and say what it took."""
    begin = time.perf_counter()
    with processor_time() as spent:
        tables = audit(lambda: session, read_sources([str(fleet)]), out, options=Ask(), **options)
    seconds = time.perf_counter() - begin
    by_kind = ", ".join(f"{kind} {used:.2f}" for kind, used in sorted(spent.items()))
    stages = ", ".join(f"{name} {used:.2f}" for name, used in tables.manifest["seconds"].items())
    words = f"{sum(spent.values()):.2f} processor seconds ({by_kind}), {seconds:.2f} by the clock ({stages})"
    return tables, f"{words}, {tables.manifest['tasks']} tasks"


@contextmanager
def processor_time() -> Iterator[dict[str, float]]:
    """The processor seconds that the driver, Java and Python workers of this process use meanwhile."""
    before = _used()
    spent: dict[str, float] = {}
    yield spent
    spent |= {kind: used - before.get(kind, 0.0) for kind, used in _used().items()}


def _used() -> dict[str, float]:
    """Processor seconds so far, by kind of process: this one, and those that it started or that a worker of Spark here started."""
    ticks = os.sysconf("SC_CLK_TCK")
    parents: dict[int, int] = {}
    found: dict[int, tuple[str, float]] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            words = (folder / "stat").read_text().rpartition(")")[2].split()
            program = (folder / "cmdline").read_bytes().partition(b"\0")[0]
        except OSError:
            continue
        number = int(folder.name)
        parents[number] = int(words[1])
        # With children that ended and were waited for.
        found[number] = ("java" if program.endswith(b"java") else "workers", sum(map(int, words[11:15])) / ticks)
    out = {"driver": sum(resource.getrusage(resource.RUSAGE_SELF)[:2])}
    for number, (kind, seconds) in found.items():
        above = number
        while above in parents and above != os.getpid():
            above = parents[above]
        if above == os.getpid() and number != above:
            out[kind] = out.get(kind, 0.0) + seconds
    return out


if __name__ == "__main__":
    main()
