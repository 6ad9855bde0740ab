"""Record a real broker with a streams group of KIP-1071: it reads, is stopped, is reset by kafka-streams-groups, and put back by this tool and another.

Run as `python -m tests.oracle.streams_groups`: it writes `fixtures/coordinators/streams-4.4.tar.xz`, with what `kafka-streams-groups --describe` printed in `told.json`.
"""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import ROOT
from tests.oracle.client import produce
from tests.oracle.cluster import BROKER_OPTIONS
from tests.oracle.jars import Release, class_path
from tests.oracle.uncleanable import lines_of, running, write_archive

OUT = ROOT / "fixtures" / "coordinators" / "streams-4.4.tar.xz"
RELEASE = Release(
    "4.4.0",
    "2.13",
    (
        "org.apache.logging.log4j:log4j-slf4j-impl:2.24.3",
        "org.apache.kafka:kafka-tools:4.4.0",
        "org.apache.kafka:kafka-streams:4.4.0",
    ),
    is_kraft=True,
    has_log4j_2=True,
)
BROKER = {
    "offsets_topic_num_partitions": 1,
    "offsets_topic_replication_factor": 1,
    "transaction_state_log_num_partitions": 1,
    "transaction_state_log_replication_factor": 1,
    "group_streams_initial_rebalance_delay_ms": 0,
}
WORDS = ("to", "be", "or", "not", "to", "be")
TOOL = "org.apache.kafka.tools.streams.StreamsGroupCommand"
OTHER_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


@contextmanager
def application(home: Path, port: int, protocol: str = "streams") -> Iterator[None]:
    """The application, with a group protocol, which is stopped in the orderly way when the block ends."""
    app = ROOT / "tests/oracle/StreamsApp.java"
    command = ["java", *BROKER_OPTIONS, "-cp", class_path(RELEASE), str(app)]
    command += [f"127.0.0.1:{port}", str(home / "state"), protocol]
    with (home / "app.log").open("ab") as log:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)
        try:
            yield
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(60)


def ask(port: int, *words: str, tool: str = TOOL) -> str:
    """What a tool prints."""
    command = ["java", *BROKER_OPTIONS, "-cp", class_path(RELEASE), tool, "--bootstrap-server", f"127.0.0.1:{port}"]
    return subprocess.run([*command, *words], check=False, capture_output=True, text=True, timeout=60).stdout


def record(home: Path) -> None:
    """Run everything and write the archive."""
    told: list[dict[str, object]] = []
    group = ("--group", "tally")

    def tell(port: int, what: str, *words: str, tool: str = TOOL) -> None:
        told.append({"what": what, "at": time.time(), "printed": ask(port, *words, *group, tool=tool)})

    def write(port: int) -> None:
        produce(port, "words", [(b"%d" % at, word.encode()) for at, word in enumerate(WORDS)], has_v3=True)

    with running(home, {"words": {}, "totals": {}}, RELEASE, **BROKER) as (port, _):
        write(port)
        with application(home, port):
            time.sleep(12)
            write(port)
            time.sleep(5)
            tell(port, "running", "--describe", "--offsets")
            tell(port, "state", "--describe", "--state")
            shutil.copytree(home / "data", home / "kept/10-running/broker-1", ignore=shutil.ignore_patterns(".lock"))
        tell(port, "stopped", "--describe", "--offsets")
        tell(port, "reset", "--reset-offsets", "--to-earliest", "--input-topic", "words", "--execute")
        tell(port, "after the reset", "--describe", "--offsets")
        shutil.copytree(home / "data", home / "kept/20-reset/broker-1", ignore=shutil.ignore_patterns(".lock"))
        for name, tool in (("kafka-consumer-groups", OTHER_TOOL), ("kafka-streams-groups", TOOL)):
            topic = "--topic" if tool is OTHER_TOOL else "--input-topic"
            back = ("--reset-offsets", topic, "words:0", "--to-offset", "12", "--execute")
            tell(port, f"put back by {name}", *back, tool=tool)
    shutil.copytree(home / "data", home / "kept/30-put-back/broker-1", ignore=shutil.ignore_patterns(".lock"))
    for path in home.glob("kept/*/broker-1/__cluster_metadata-0/*index"):
        path.unlink()  # two of 10 MB
    lines = [line for line in lines_of(home) if "tally" in line or "Kafka Server started" in line]
    write_archive(OUT, home / "kept", lines, told, inside="snapshots")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        record(Path(folder))
