"""`verify` and `diff` against the data directories of a broker that is being written to; opt-in, since it needs Kafka's own jars.

    python -m tests.trust.live_soak --jars DIR --runs 1000        jars of Kafka 4.x, as `mvn dependency:copy-dependencies` fetches them
    python -m tests.trust.live_soak --pom > pom.xml               the pom for that

Three brokers with small segments and short retention, so that files roll, are renamed and vanish all the time. A run holds if it ends by
itself with exit code 0, 1 or 3, calls nothing damaged, and reports as problems only what changed or vanished while it was read. Logs of one partition that are read one after the
other while they grow look as if one of them had to be cut; such a run is counted as skewed, and holds only where the change of that very log was
reported, so that the exit code is 3.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

VERSION = "4.1.0"
POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>soak</groupId><artifactId>soak</artifactId><version>1</version><dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version></dependency>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>{VERSION}</version></dependency>
<dependency><groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId><version>2.24.3</version></dependency>
</dependencies></project>
"""
FIRST_PORT = 39_092
NODES = (1, 2, 3)
SETTINGS = """
process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={folder}
log.segment.bytes=1048576
log.index.size.max.bytes=65536
log.retention.bytes=6000000
log.retention.check.interval.ms=500
log.segment.delete.delay.ms=500
log.cleaner.backoff.ms=500
log.initial.task.delay.ms=500
replica.high.watermark.checkpoint.interval.ms=500
num.partitions=6
default.replication.factor=3
offsets.topic.num.partitions=3
offsets.topic.replication.factor=3
"""
EXPECTED_PROBLEM = re.compile(
    r"changed while|vanished|no such file|deleted or renamed|can't be listed: No such file|grew|shrank"
)
JAVA = ["java", "-Xmx384m", "--add-opens", "java.base/sun.nio.ch=ALL-UNNAMED", "-cp"]


@contextmanager
def cluster(jars: Path, root: Path) -> Iterator[list[Path]]:
    """Three combined nodes on this machine; gives their data directories."""
    path = f"{jars}/*"
    voters = ",".join(f"{node}@127.0.0.1:{FIRST_PORT + 100 + node}" for node in NODES)
    folders = []
    running = []
    try:
        for node in NODES:
            folder = root / f"broker-{node}"
            settings = root / f"server-{node}.properties"
            settings.write_text(
                SETTINGS.format(
                    node=node, voters=voters, port=FIRST_PORT + node, controller=FIRST_PORT + 100 + node, folder=folder
                )
            )
            format_command = [
                *JAVA,
                path,
                "kafka.tools.StorageTool",
                "format",
                "-t",
                "MkU3OEVBNTcwNTJENDM2Qg",
                "-c",
                str(settings),
            ]
            subprocess.run(format_command, check=True, capture_output=True)
            log = (root / f"server-{node}.out").open("wb")
            running.append(
                subprocess.Popen([*JAVA, path, "kafka.Kafka", str(settings)], stdout=log, stderr=log, cwd=root)
            )
            folders.append(folder)
        time.sleep(12)
        yield folders
    finally:
        for process in running:
            process.terminate()
        for process in running:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


def start_load(jars: Path, root: Path, records_per_second: int) -> subprocess.Popen[bytes]:
    """A producer that measures its own latency, to a file."""
    command = [
        *JAVA, f"{jars}/*", "org.apache.kafka.tools.ProducerPerformance", "--topic", "load", "--num-records", "1000000000", "--record-size", "400",
        "--throughput", str(records_per_second), "--producer-props", f"bootstrap.servers=127.0.0.1:{FIRST_PORT + 1}", "acks=all",
        "linger.ms=5", "compression.type=lz4",
    ]  # fmt: skip
    return subprocess.Popen(command, stdout=(root / "load.out").open("wb"), stderr=subprocess.STDOUT, cwd=root)


def judge(command: str, run: subprocess.CompletedProcess[str]) -> tuple[str, str]:
    """Whether a run held, and why not."""
    if run.returncode not in {0, 1, 3} or "Traceback" in run.stderr:
        return "defect", f"exit code {run.returncode}: {run.stderr[-500:]}"
    document = json.loads(run.stdout)
    if command == "verify":
        damaged = [one for one in document["files"] if one["state"] == "damaged"]
        if damaged:
            return "damaged", json.dumps(damaged[0])[:600]
    changed = {Path(one["path"]).parent.name for one in document["problems"]}
    grave = [one for one in document["findings"] if one["severity"] in {"critical", "error"}]
    if grave and run.returncode == 3 and all(f"{one['topic']}-{one['partition']}" in changed for one in grave):
        return "skewed", ""
    if grave:
        return "false alarm", f"{grave[0]['code']}: {grave[0]['statement']}"
    strange = [one for one in document["problems"] if not EXPECTED_PROBLEM.search(one["message"])]
    if strange:
        return "strange problem", json.dumps(strange[0])
    return ("problems", "") if document["problems"] else ("calm", "")


def produce_latency(root: Path, skip_lines: int) -> tuple[list[float], list[float], int]:
    """Average and 99th percentile of latency in ms, a window of five seconds each, behind the first lines; and the lines there are."""
    lines = (root / "load.out").read_text(errors="replace").splitlines()
    windows = re.compile(r"([\d.]+) ms avg latency, ([\d.]+) ms max latency")
    found = [match for line in lines[skip_lines:] if (match := windows.search(line))]
    return [float(match[1]) for match in found], [float(match[2]) for match in found], len(lines)


def soak(folders: Sequence[Path], root: Path, runs: int, rate: str | None) -> Counter[str]:
    """Run both commands by turns; each kind of outcome with its count."""
    outcomes: Counter[str] = Counter()
    shown: Counter[str] = Counter()
    for number in range(runs):
        command = ("verify", "diff")[number % 2]
        arguments = [sys.executable, "-m", "kforensics", command, "--format", "json", *map(str, folders)]
        arguments += ["--read-rate", rate] if rate else []
        run = subprocess.run(
            arguments, capture_output=True, text=True, check=False, env={**os.environ, "KFORENSICS_TRACEBACK": "1"}
        )
        outcome, reason = judge(command, run)
        outcomes[f"{command}: {outcome}"] += 1
        if reason and shown[outcome] < 3:
            shown[outcome] += 1
            sys.stdout.write(f"run {number}, {command}: {outcome}: {reason}\n")
            sys.stdout.flush()
            (root / f"{outcome.replace(' ', '-')}-{number}.json").write_text(run.stdout)
    return outcomes


def main() -> int:
    """Start, measure without and with readers, and say what came of it; 1 where a run did not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jars", type=Path)
    parser.add_argument("--pom", action="store_true", help="print a pom that fetches the jars")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--read-rate", default="50MB/s")
    parser.add_argument("--records-per-second", type=int, default=3_000)
    parser.add_argument(
        "--quiet-seconds", type=int, default=30, help="time to measure the broker's latency without a reader"
    )
    parser.add_argument("--work", type=Path, help="a directory to keep; else a temporary one")
    options = parser.parse_args()
    if options.pom:
        sys.stdout.write(POM)
        return 0
    with TemporaryDirectory() as temporary:
        root = options.work or Path(temporary)
        root.mkdir(parents=True, exist_ok=True)
        with cluster(options.jars.resolve(), root) as folders:
            load = start_load(options.jars.resolve(), root, options.records_per_second)
            try:
                time.sleep(15)
                _, _, seen = produce_latency(root, 0)
                time.sleep(options.quiet_seconds)
                average, largest, seen_quiet = produce_latency(root, seen)
                sys.stdout.write(
                    f"without readers: average latency {mean(average):.1f} ms, mean of largest {mean(largest):.0f} ms\n"
                )
                started = time.monotonic()
                outcomes = soak(folders, root, options.runs, options.read_rate)
                average, largest, _ = produce_latency(root, seen_quiet)
                sys.stdout.write(
                    f"with readers:    average latency {mean(average):.1f} ms, mean of largest {mean(largest):.0f} ms\n"
                )
                sys.stdout.write(
                    f"{options.runs} runs in {time.monotonic() - started:.0f} s: {dict(sorted(outcomes.items()))}\n"
                )
            finally:
                load.terminate()
                load.wait()
    held = all(name.endswith((": calm", ": problems", ": skewed")) for name in outcomes)
    return 0 if held else 1


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else float("nan")


if __name__ == "__main__":
    sys.exit(main())
