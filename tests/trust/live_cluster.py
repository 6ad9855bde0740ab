"""Three real brokers on this machine, small and busy, and a producer that times each acknowledgement."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

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
log.retention.bytes=2000000
log.retention.check.interval.ms=500
log.segment.delete.delay.ms=500
log.cleaner.backoff.ms=500
log.initial.task.delay.ms=500
replica.high.watermark.checkpoint.interval.ms=500
num.partitions=4
default.replication.factor=3
offsets.topic.num.partitions=3
offsets.topic.replication.factor=3
"""
JAVA = ["java", "-Xmx384m", "--add-opens", "java.base/sun.nio.ch=ALL-UNNAMED", "-cp"]
PROBE = Path(__file__).with_name("LatencyProbe.java")
WARM_UP_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Sample:
    """One acknowledged record."""

    sent_seconds: float
    """Of the machine's clock."""
    latency_ms: float


@contextmanager
def cluster(jars: Path, root: Path) -> Iterator[list[Path]]:
    """Three combined nodes; gives their data directories."""
    path = f"{jars}/*"
    voters = ",".join(f"{node}@127.0.0.1:{FIRST_PORT + 100 + node}" for node in NODES)
    folders = []
    running = []
    try:
        for node in NODES:
            folder = root / f"broker-{node}"
            settings = root / f"server-{node}.properties"
            ports = {"port": FIRST_PORT + node, "controller": FIRST_PORT + 100 + node}
            settings.write_text(SETTINGS.format(node=node, voters=voters, folder=folder, **ports))
            cluster_id = "MkU3OEVBNTcwNTJENDM2Qg"
            storage = ["kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(settings)]
            subprocess.run([*JAVA, path, *storage], check=True, capture_output=True)
            running.append(_start([*JAVA, path, "kafka.Kafka", str(settings)], root / f"server-{node}.out"))
            folders.append(folder)
        time.sleep(WARM_UP_SECONDS)
        yield folders
    finally:
        _stop(running)


@contextmanager
def load(jars: Path, root: Path, records_per_second: int) -> Iterator["Load"]:
    """A producer of a steady rate for as long as the context lasts."""
    output = root / "load.out"
    bootstrap = f"127.0.0.1:{FIRST_PORT + 1}"
    producer = _start([*JAVA, f"{jars}/*", str(PROBE), bootstrap, "load", str(records_per_second)], output)
    try:
        time.sleep(WARM_UP_SECONDS)
        yield Load(output)
    finally:
        _stop([producer])


class Load:
    """What the producer measured so far."""

    def __init__(self, output: Path) -> None:
        self._output = output

    def samples(self, begin: float, end: float) -> list[Sample]:
        """The records sent between two times of the machine's clock, in seconds."""
        time.sleep(1.5)  # acknowledgements under way, and the producer's buffer
        pairs = (line.split() for line in self._output.read_text(errors="replace").splitlines())
        found = (
            Sample(int(pair[0]) / 1e3, int(pair[1]) / 1e3) for pair in pairs if len(pair) == 2 and pair[0].isdigit()
        )
        return [sample for sample in found if begin <= sample.sent_seconds < end]


def _start(command: list[str], output: Path) -> subprocess.Popen[bytes]:
    with output.open("wb") as stream:
        return subprocess.Popen(command, stdout=stream, stderr=stream, cwd=output.parent)


def _stop(running: list[subprocess.Popen[bytes]]) -> None:
    for process in running:
        process.terminate()
    for process in running:
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
