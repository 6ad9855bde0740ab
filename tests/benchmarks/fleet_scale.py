"""Audit fleets of growing size that have what fleets have: metadata logs and the offsets of consumer groups in their size; `python -m tests.benchmarks.fleet_scale WHAT DIRECTORY`.

    doubling    `--partitions N…` x 3 on 20 brokers and 3 controllers, each size in a process of its own
    clusters    50 partitions x 3 in each of 25, 50, 100 and 200 clusters of 3 nodes: `--partitions N…` names other numbers of clusters
    broker      one broker with 20,000 partitions (`--partitions N…`)
    beside      the audit beside `diff --jobs 2` of the same, in turn; 3,000 partitions where `--partitions` names no other number
    killed      a standalone master with two workers, of which one is killed when tasks have ended, beside a run in which none is; 1,000 partitions
    before      two nights more of the command in another checkout (`--checkout`) and in this one, in turn: nothing changed, and one partition in a hundred
    one         the directory is a fleet: what its audit takes, as JSON

Of each partition there are four records in a log, its leader epochs and its `partition.metadata`; in the metadata log its record and three changes of it;
and of two groups ten commits each. Seconds are those of processors; Spark's start and a first audit are apart. Opens are those of logs, in all processes.
"""

import argparse
import errno
import inspect
import json
import mmap
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from kforensics.ask.model import Ask
from kforensics.fleet.auditing import audit
from kforensics.fleet.judge import STATE
from kforensics.fleet.session import open_session
from kforensics.fleet.sources import read_sources
from kforensics.fleet.summary import summarise
from kforensics.fleet.tables import WORK
from kforensics.formats.checkpoint.lines import Checkpoint, CheckpointEntry, encode_checkpoint
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from tests.benchmarks.fleet import LONG_AGO, Scratch, files_of, first_of, peak_of, template
from tests.benchmarks.fleet_jobs import processor_time
from tests.benchmarks.measure import kforensics, load
from tests.benchmarks.measure import measured as one_process
from tests.benchmarks.metadata import Written, encoded, new_id
from tests.builders.coordinators import batch, commit
from tests.fleet.standalone import standalone

SIZES = {
    "doubling": [1_000, 2_000, 4_000, 8_000],
    "clusters": [25, 50, 100, 200],
    "broker": [20_000],
    "beside": [3_000],
    "killed": [1_000],
    "before": [1_000, 3_000],
}
BROKERS, CONTROLLERS, REPLICAS, OF_A_TOPIC = 20, 3, 3, 20
OF_A_CLUSTER = 50
RECORDS, VALUE_LENGTH = 4, 100
OFFSETS_PARTITIONS, GROUPS, COMMITS, CHANGES = 50, 2, 10, 3
ROUNDS = 3
MEMORY = {"spark.driver.memory": "1g"}
OPENS = "KFORENSICS_BENCHMARK_OPENS"
"""The variable of the environment with the folder where each process counts what it opens of a fleet."""


def main() -> None:
    """Measure one of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=[*SIZES, "one"])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--partitions", type=int, nargs="+")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--commits", type=int, default=COMMITS, help="of each group and partition, for `before`")
    parser.add_argument("--checkout", type=Path, help="of the commit that is compared with this one by `before`")
    arguments = parser.parse_args()
    what, directory = arguments.what, arguments.directory
    if what == "one":
        print(json.dumps(one(directory)))
        return
    sizes = arguments.partitions or SIZES[what]
    directory.mkdir(parents=True, exist_ok=True)
    if what == "beside":
        beside(fleet_of(directory, sizes[0]), arguments.rounds)
    elif what == "killed":
        killed(fleet_of(directory, sizes[0]), arguments.rounds)
    elif what == "before":
        for size in sizes:
            before(directory, size, arguments.commits, {"before": arguments.checkout.absolute(), "now": Path.cwd()})
    else:
        made: dict[str, Callable[[Path, int], Path]] = {
            "doubling": fleet_of,
            "clusters": many_clusters,
            "broker": one_broker,
        }
        table([(size, made[what](directory, size)) for size in sizes])


def table(fleets: Sequence[tuple[int, Path]]) -> None:
    """Print a row for each fleet, and how much more it takes than as many times of the one before."""
    print(
        "size     directories     bytes  processor s (driver, java, workers)  a directory  a doubling  driver     java  tasks  shuffled    opens"
    )
    before: tuple[int, float] | None = None
    for size, fleet in fleets:
        # A process of its own, so that peaks of memory are those of this size.
        command = [sys.executable, "-m", "tests.benchmarks.fleet_scale", "one", str(fleet)]
        found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        used, parts = found["processor"], found["by_kind"]
        grown = f"{used / before[1] / (size / before[0]):.2f}" if before else ""
        print(
            f"{size:<8,} {found['replicas']:11,} {found['bytes'] / 1e6:7,.0f} MB {used:9.1f} ({parts['driver']:.1f}, {parts['java']:.1f}, {parts['workers']:.1f})"
            f" {used / found['replicas'] * 1e3:18.2f} ms {grown:>10} {found['driver_peak'] / 1e6:6.0f} MB {found['java_peak'] / 1e6:5.0f} MB"
            f" {found['tasks']:5} {found['shuffled'] / 1e6:7.2f} MB {found['opens']:8,}   {found['states']} {found['stages']} {load()}",
            flush=True,
        )
        before = (size, used)


def one(fleet: Path) -> dict[str, Any]:
    """Audit one fleet, and return what it took."""
    with Scratch(fleet.parent) as out:
        events, opens = out / "events", out / "opens"
        events.mkdir()
        opens.mkdir()
        os.environ[OPENS] = str(opens)
        settings = MEMORY | {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
            "spark.eventLog.dir": events.as_uri(),
            "spark.python.daemon.module": "tests.benchmarks.counting_daemon",
        }
        count_opens()
        with open_session("local[2]", settings) as session:
            small = fleet_of(fleet.parent, OF_A_TOPIC)
            audit(lambda: session, read_sources([str(small)]), out / "warm", options=Ask())
            earlier, shuffled = opened(opens), shuffled_in(events)
            with processor_time() as spent:
                tables = audit(lambda: session, read_sources([str(fleet)]), out / "tables", options=Ask())
            java = peak_of(session.sparkContext._gateway.proc.pid)
            counted = opened(opens) - earlier
        summary = summarise(tables, most=0)
        return {
            "processor": sum(spent.values()),
            "by_kind": {kind: spent.get(kind, 0.0) for kind in ("driver", "java", "workers")},
            "replicas": summary.replicas,
            "bytes": summary.bytes,
            "states": dict(summary.states),
            "stages": dict(tables.manifest["seconds"]),
            "driver_peak": peak_of(os.getpid()),
            "java_peak": java,
            "tasks": tables.manifest["tasks"],
            "shuffled": shuffled_in(events) - shuffled,
            "opens": counted,
        }


def count_opens() -> None:
    """Let this process, and those that it forks, count each log that they open; evidence is opened by its name below directories that are open."""
    counters: dict[int, mmap.mmap] = {}

    def see(event: str, given: tuple[Any, ...]) -> None:
        if event != "open" or not str(given[0]).endswith(".log"):
            return
        number = os.getpid()
        if number not in counters:
            with (Path(os.environ[OPENS]) / str(number)).open("wb+") as file:
                file.write(bytes(8))
                file.flush()
                counters[number] = mmap.mmap(file.fileno(), 8)
        counter = counters[number]
        counter[:] = struct.pack("<q", struct.unpack("<q", counter[:])[0] + 1)

    sys.addaudithook(see)


def opened(folder: Path) -> int:
    """The files that all processes opened so far."""
    return sum(struct.unpack("<q", one.read_bytes())[0] for one in folder.iterdir())


def shuffled_in(events: Path) -> int:
    """The bytes that tasks wrote for others, by Spark's event log."""
    return sum(
        json.loads(line)["Task Metrics"]["Shuffle Write Metrics"]["Shuffle Bytes Written"]
        for file in events.iterdir()
        for line in file.read_text().splitlines()
        if '"Event":"SparkListenerTaskEnd"' in line
    )


def beside(fleet: Path, rounds: int) -> None:
    """Print what an audit takes beside `diff` of the same."""
    command = kforensics("diff", "--jobs", "2", "--format", "json", str(fleet))
    with open_session("local[2]", MEMORY) as session, Scratch(fleet.parent) as out:
        audit(lambda: session, read_sources([str(first_of(fleet))]), out / "warm", options=Ask())
        for number in range(rounds):
            of_diff = one_process(command, runs=1, expect=(0, 1, 3)).processor_seconds
            with processor_time() as spent:
                audit(lambda: session, read_sources([str(fleet)]), out / str(number), options=Ask())
            used = sum(spent.values())
            by_kind = ", ".join(f"{kind} {seconds:.1f}" for kind, seconds in sorted(spent.items()))
            print(
                f"diff --jobs 2: {of_diff:.1f} s of processors; audit: {used:.1f} s ({by_kind}), {used / of_diff:.2f} of it; {load()}",
                flush=True,
            )


def killed(fleet: Path, rounds: int) -> None:
    """Print what a cluster of two workers makes of a fleet, with and without one that is killed."""
    found = []
    for number in range(2):
        with Scratch(fleet.parent) as out:
            settings = {"spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1"}
            with standalone(out) as (master, workers), open_session(master, settings) as session:
                audit(lambda: session, read_sources([str(first_of(fleet))]), out / "warm", options=Ask())
                killing = threading.Thread(target=kill_midway, args=(out / "tables" / WORK / STATE, workers[0].pid))
                if number:
                    killing.start()
                begin = time.perf_counter()
                tables = audit(lambda: session, read_sources([str(fleet)]), out / "tables", options=Ask())
                seconds = time.perf_counter() - begin
                if number:
                    killing.join()
            rows = {name: sorted(map(str, tables.rows(name, columns=columns))) for name, columns in COMPARED.items()}
            found.append(rows)
            print(
                f"{'one of two workers killed' if number else 'two workers'}: {seconds:.1f} s by the clock, {tables.row_count('partitions'):,} partitions, {tables.row_count('problems')} problems; {load()}",
                flush=True,
            )
    print("the same verdicts and findings" if found[0] == found[1] else "NOT THE SAME")


def before(directory: Path, partitions: int, commits: int, checkouts: Mapping[str, Path]) -> None:
    """Print what three nights of a fleet take in two checkouts, by the command, Spark's start with it."""
    small = fleet_of(directory, OF_A_TOPIC)
    with Scratch(directory) as out:
        fleet = out / "fleet"
        # Files have many names: what is shorter, or grows in a night, gets one of its own.
        shutil.copytree(fleet_of(directory, partitions, commits), fleet, copy_function=os.link)
        shorten(fleet)
        starts = {name: night(tree, small, out / f"{name}-start", out).processor for name, tree in checkouts.items()}
        print(
            f"Spark's start and 20 x 3: {', '.join(f'{name} {used:.1f} s' for name, used in starts.items())}",
            flush=True,
        )
        for number, what in enumerate(("first night", "nothing changed", "one in a hundred changed")):
            grown = grow(fleet) if number == 2 else 0
            for name, tree in checkouts.items():
                found = night(tree, fleet, out / name, out)
                print(
                    f"{partitions:,} x {REPLICAS}, {what} ({grown} logs), {name}: {found.processor:.1f} s of processors, driver {found.driver / 1e6:.0f} MB, "
                    f"{found.opens:,} opens, {found.shuffled / 1e6:.2f} MB shuffled; {load()}",
                    flush=True,
                )


class Night(NamedTuple):
    """What one audit by the command took, of all of its processes."""

    processor: float
    driver: int
    opens: int
    shuffled: int


def night(checkout: Path, fleet: Path, history: Path, scratch: Path) -> Night:
    """Audit a fleet into a history by the command of a checkout."""
    work = Path(tempfile.mkdtemp(prefix="night-", dir=scratch))
    opens, events = work / "opens", work / "events"
    opens.mkdir()
    events.mkdir()
    lines = ["import mmap, os, struct, sys", "from pathlib import Path", "from typing import Any", f"OPENS = {OPENS!r}"]
    (work / "sitecustomize.py").write_text("\n".join((*lines, inspect.getsource(count_opens), "count_opens()\n")))
    command = kforensics("fleet", "audit", str(fleet), "--history", str(history), "--master", "local[2]")
    for setting in (*MEMORY.items(), ("spark.eventLog.enabled", "true"), ("spark.eventLog.compress", "false")):
        command += ["--spark-conf", "=".join(setting)]
    command += [
        "--spark-conf",
        "spark.eventLog.rolling.enabled=false",
        "--spark-conf",
        f"spark.eventLog.dir={events.as_uri()}",
    ]
    environment = os.environ | {"PYTHONPATH": f"{work}:{checkout}", OPENS: str(opens)}
    with (work / "said").open("wb") as said:
        process = subprocess.Popen(
            command, cwd=checkout, env=environment, stdout=said, stderr=said, start_new_session=True
        )
        used, driver = 0.0, 0
        while process.poll() is None:
            with suppress(OSError, StopIteration):
                used, driver = max(used, used_by_session(process.pid)), max(driver, peak_of(process.pid))
            time.sleep(0.1)
    if process.returncode not in {0, 1, 3}:
        raise SystemExit((work / "said").read_text())
    return Night(used, driver, opened(opens), shuffled_in(events))


def used_by_session(leader: int) -> float:
    """Processor seconds of the processes of a session so far, with those that ended and were waited for."""
    ticks = os.sysconf("SC_CLK_TCK")
    total = 0
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                words = (folder / "stat").read_text().rpartition(")")[2].split()
                total += sum(map(int, words[11:15])) if int(words[3]) == leader else 0
    return total / ticks


def shorten(fleet: Path) -> None:
    """Leave nothing of one log in ten on some brokers, of which others show what it had, and commits of groups that it was committed."""
    for path in sorted(fleet.glob("broker-0[1-5]/topic-*/*.log"))[::10]:
        path.unlink()
        path.touch()
        os.utime(path, LONG_AGO)


def grow(fleet: Path) -> int:
    """Append a batch to all replicas of one partition in a hundred, and return to how many logs."""
    more = template(RECORDS, VALUE_LENGTH)
    logs = sorted(fleet.glob("broker-*/topic-*/*.log"))
    chosen = [one for one in logs if zlib.crc32(one.parent.name.encode()) % 100 == 0]
    for path in chosen:
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(data + RECORDS.to_bytes(8) + more[8:])
        os.utime(path, (LONG_AGO[0] + 1, LONG_AGO[1] + 1))
    return len(chosen)


COMPARED = {"partitions": ["topic", "partition", "state", "verdict", "report"], "findings": ["finding_id", "statement"]}


def kill_midway(state: Path, process: int) -> None:
    """Kill a process group once a task has ended."""
    while not (state.exists() and any(one.name.startswith("task-") for one in state.iterdir())):
        time.sleep(0.02)
    os.killpg(process, signal.SIGKILL)


# ---------------------------------------------------------------- fleets


def fleet_of(directory: Path, partitions: int, commits: int = COMMITS) -> Path:
    """A cluster of 20 brokers and 3 controllers."""
    name = f"fleet-{partitions}" if commits == COMMITS else f"fleet-{partitions}-{commits}-commits"
    return written(directory / name, [partitions], commits=commits)


def many_clusters(directory: Path, clusters: int) -> Path:
    """Clusters of three nodes."""
    return written(directory / f"fleet-of-{clusters}-clusters", [OF_A_CLUSTER] * clusters, brokers=3, controllers=0)


def one_broker(directory: Path, partitions: int) -> Path:
    """A cluster of one broker."""
    return written(directory / f"fleet-broker-{partitions}", [partitions], brokers=1, controllers=1)


def written(
    fleet: Path,
    clusters: Sequence[int],
    *,
    brokers: int = BROKERS,
    controllers: int = CONTROLLERS,
    commits: int = COMMITS,
) -> Path:
    """A fleet of clusters with so many partitions each; one whose making was interrupted goes on where it stopped."""
    if not fleet.exists():
        work = fleet.with_name(f"making-{fleet.name}")
        for number, partitions in enumerate(clusters):
            place = work / f"cluster-{number}" if len(clusters) > 1 else work
            write_cluster(place, random.Random(number), partitions, brokers, controllers, commits)
        work.rename(fleet)
    return fleet


def write_cluster(
    place: Path, dice: random.Random, partitions: int, brokers: int, controllers: int, commits: int
) -> None:
    """Write the nodes of a cluster; files of the same content are links to one."""
    common = place / "common"
    if place.exists() and not common.exists():
        return
    common.mkdir(parents=True, exist_ok=True)
    log = common / "log"
    log.write_bytes(template(RECORDS, VALUE_LENGTH))
    epochs = common / "epochs"
    epochs.write_text("0\n1\n0 0\n")
    cluster_id = new_id(dice)
    nodes = {number: place / f"broker-{number:02}" for number in range(1, brokers + 1)}
    nodes |= {100 + number: place / f"controller-{100 + number}" for number in range(controllers)}
    held: dict[int, list[CheckpointEntry]] = {number: [] for number in nodes}
    topics = {f"topic-{at}": at * OF_A_TOPIC for at in range(-(-partitions // OF_A_TOPIC))}
    ids = {topic: new_id(dice) for topic in (*topics, "__consumer_offsets")}
    assigned = {
        (topic, number): tuple((first + number + at) % brokers + 1 for at in range(min(REPLICAS, brokers)))
        for topic, first in (*topics.items(), ("__consumer_offsets", 0))
        for number in range(
            OFFSETS_PARTITIONS if topic == "__consumer_offsets" else min(OF_A_TOPIC, partitions - first)
        )
    }
    for number, node in nodes.items():
        node.mkdir(exist_ok=True)
        (node / "meta.properties").write_text(f"version=1\nnode.id={number}\ncluster.id={cluster_id}\n")
        (node / ".kafka_cleanshutdown").touch()
    write_offsets(common, [one for one in assigned if one[0] != "__consumer_offsets"], commits)
    for topic, topic_id in ids.items():
        (common / topic).write_text(f"version: 0\ntopic_id: {topic_id}\n")
    write_metadata(common / "metadata", dice, ids, assigned, brokers)
    # Of a file with many names once: its links have the time, too.
    for file in files_of(common):
        os.utime(file, LONG_AGO)
    for (topic, number), replicas in assigned.items():
        is_offsets = topic == "__consumer_offsets"
        for broker in replicas:
            folder = nodes[broker] / f"{topic}-{number}"
            folder.mkdir(exist_ok=True)
            link(common / f"offsets-{number}" if is_offsets else log, folder / f"{0:020}.log")
            link(epochs, folder / "leader-epoch-checkpoint")
            link(common / topic, folder / "partition.metadata")
            if not is_offsets:
                held[broker].append(CheckpointEntry(topic, number, RECORDS))
    for number, node in nodes.items():
        (node / "__cluster_metadata-0").mkdir(exist_ok=True)
        link(common / "metadata", node / "__cluster_metadata-0" / f"{0:020}.log")
        if held[number]:
            for name in ("replication-offset-checkpoint", "recovery-point-offset-checkpoint"):
                (node / name).write_bytes(encode_checkpoint(Checkpoint(entries=tuple(held[number]))))
        for file in node.iterdir():
            if file.is_file():
                os.utime(file, LONG_AGO)
    shutil.rmtree(common)


def link(file: Path, name: Path) -> None:
    """Give a file one more name; a copy of it, which later names are of, where it has as many as a file system allows."""
    try:
        name.hardlink_to(file)
    except FileExistsError:  # linked before the making was interrupted
        return
    except OSError as error:
        if error.errno != errno.EMLINK:
            raise
        shutil.copy2(file, name)
        file.unlink()
        file.hardlink_to(name)


def write_offsets(folder: Path, partitions: Sequence[tuple[str, int]], commits: int) -> None:
    """Write a log of `__consumer_offsets` for each of its partitions, over which the commits of groups are spread."""
    for log in range(OFFSETS_PARTITIONS):
        own = [
            commit(f"group-{group}", topic, number, RECORDS, leader_epoch=0)
            for at, (topic, number) in enumerate(partitions)
            for group in range(GROUPS)
            if (at + group) % OFFSETS_PARTITIONS == log
        ]
        made = [(len(some), batch(0, some)) for some in batched(own, 500)]
        offset = 0
        with (folder / f"offsets-{log}").open("wb") as file:
            for _ in range(commits):
                for count, data in made:
                    # The base offset is in front of what the checksum covers.
                    file.write(offset.to_bytes(8) + data[8:])
                    offset += count


def batched(items: Iterable[Any], count: int) -> Iterator[list[Any]]:
    """So many at a time."""
    rest = iter(items)
    while some := list(islice(rest, count)):
        yield some


def write_metadata(
    path: Path, dice: random.Random, ids: dict[str, str], assigned: dict[tuple[str, int], tuple[int, ...]], brokers: int
) -> None:
    """Write the metadata log: brokers, topics, partitions, and changes of their ISR."""
    offset = 0
    with path.open("wb") as log:
        for some in batched(_records(dice, ids, assigned, brokers), 200):
            taken = [(LONG_AGO[0] * 1_000, None, encoded(*one)) for one in some]
            log.write(encode_record_batch(build_record_batch(offset, taken, partition_leader_epoch=1)))
            offset += len(taken)


def _records(
    dice: random.Random, ids: dict[str, str], assigned: dict[tuple[str, int], tuple[int, ...]], brokers: int
) -> Iterator[Written]:
    yield "FeatureLevelRecord", {"name": "metadata.version", "feature_level": 20}
    for broker in range(1, brokers + 1):
        end_points = ({"name": "PLAINTEXT", "host": f"kafka-{broker}", "port": 9092, "security_protocol": 0},)
        registration = {
            "broker_id": broker,
            "incarnation_id": new_id(dice),
            "broker_epoch": broker,
            "end_points": end_points,
        }
        yield "RegisterBrokerRecord", {**registration, "features": (), "rack": None, "log_dirs": ()}
        yield "BrokerRegistrationChangeRecord", {"broker_id": broker, "broker_epoch": broker, "fenced": -1}
    for topic, topic_id in ids.items():
        yield "TopicRecord", {"name": topic, "topic_id": topic_id}
    unassigned = new_id(dice)
    for (topic, number), replicas in assigned.items():
        own = {"partition_id": number, "topic_id": ids[topic]}
        more = {
            "removing_replicas": (),
            "adding_replicas": (),
            "leader": replicas[0],
            "leader_epoch": 0,
            "partition_epoch": 0,
        }
        yield (
            "PartitionRecord",
            {**own, "replicas": replicas, "isr": replicas, **more, "directories": (unassigned,) * len(replicas)},
        )
    for at in range(CHANGES):
        for (topic, number), replicas in assigned.items():
            isr = replicas if at == CHANGES - 1 else replicas[: 1 + at % len(replicas)]
            yield "PartitionChangeRecord", {"partition_id": number, "topic_id": ids[topic], "isr": isr}


if __name__ == "__main__":
    main()
