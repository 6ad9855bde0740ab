"""Whole brokers on edited directories, and what was predicted of them.

Run by hand: `python -m tests.oracle.loading.brokers --kafka 4.1.0` (Java 17, Maven or `--jars`). One node without ZooKeeper, with two log directories, is
started once, written to and stopped; each edit is made in a copy, predicted, and the broker started on it.
"""

import argparse
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.oracle.client import RefusedError, ask_metadata, create_topic, produce
from tests.oracle.cluster import free_ports, wait_until
from tests.oracle.loading.judge import OPEN_MODULES

TOPICS = tuple(f"orders{at}" for at in range(6))
SEGMENT = "00000000000000000000"
STARTED, START_SECONDS = "Kafka Server started", 150
_LOADED = re.compile(
    r"Completed load of Log\(dir=(?P<dir>[^,]+), .*?logStartOffset=(?P<start>\d+), logEndOffset=(?P<end>\d+)\)"
)


class Node:
    """One node with two log directories; `home` holds them."""

    def __init__(self, jars: str, home: Path, ports: tuple[int, int]) -> None:
        self.jars, self.home, self.ports = jars, home, ports

    @property
    def log_dirs(self) -> list[Path]:
        """Its log directories; the first has the metadata log."""
        return [self.home / "data-0", self.home / "data-1"]

    def _java(self, *command: str) -> list[str]:
        log = "-Dorg.slf4j.simpleLogger.defaultLogLevel=info"
        options = ["-Xmx320m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", log, *OPEN_MODULES]
        return ["nice", "java", *options, "-cp", f"{self.jars}/*", *command]

    def _properties(self) -> Path:
        client, controller = self.ports
        path = self.home / "server.properties"
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": ",".join(map(str, self.log_dirs)),
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "log.cleaner.dedupe.buffer.size": 2 << 20,
        }
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return path

    def format(self) -> None:
        """Make the log directories."""
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        command = self._java("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self._properties()))
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def start(self) -> subprocess.Popen[bytes]:
        """Start it; what it logs goes to `console`."""
        properties = self._properties()
        with (self.home / "console").open("wb") as console:
            return subprocess.Popen(
                self._java("kafka.Kafka", str(properties)),
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
            )

    def console(self) -> str:
        """What it logged."""
        return (self.home / "console").read_text(errors="replace")


def edits() -> dict[str, Callable[[Node], None]]:
    """Edits of a node that was stopped cleanly, by name."""

    def log(node: Node, name: str, file: str) -> Path:
        return next(one / name / file for one in node.log_dirs if (one / name).is_dir())

    def meta(node: Node, key: str, value: str) -> None:
        path = node.log_dirs[1] / "meta.properties"
        lines = [f"{key}={value}" if line.startswith(f"{key}=") else line for line in path.read_text().splitlines()]
        path.write_text("\n".join(lines) + "\n")

    def without_marker(node: Node) -> None:
        for one in node.log_dirs:
            (one / ".kafka_cleanshutdown").unlink()

    def zeros(node: Node) -> None:
        with log(node, "orders0-0", f"{SEGMENT}.log").open("ab") as file:
            file.write(bytes(200))

    def flipped_unclean(node: Node) -> None:
        without_marker(node)
        path = log(node, "orders1-0", f"{SEGMENT}.log")
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 4
        path.write_bytes(data)

    def twice(node: Node) -> None:
        source = log(node, "orders2-0", "").resolve()
        other = next(one for one in node.log_dirs if one != source.parent)
        shutil.copytree(source, other / source.name)

    def cloned(node: Node) -> None:
        shutil.copy(node.log_dirs[0] / "meta.properties", node.log_dirs[1] / "meta.properties")

    return {
        "none": lambda _: None,
        "without marker": without_marker,
        "zeros behind a log": zeros,
        "flipped bit, without marker": flipped_unclean,
        "malformed epoch file": lambda node: (
            log(node, "orders3-0", "leader-epoch-checkpoint").write_text("0\n2\n0 0\n"),
            None,
        )[1],
        "empty epoch file": lambda node: (log(node, "orders3-0", "leader-epoch-checkpoint").write_text(""), None)[1],
        "empty partition.metadata": lambda node: (log(node, "orders4-0", "partition.metadata").write_text(""), None)[1],
        "no partition.metadata": lambda node: log(node, "orders4-0", "partition.metadata").unlink(),
        "lost+found": lambda node: (node.log_dirs[1] / "lost+found").mkdir(),
        "a partition twice": twice,
        "another cluster.id in one directory": lambda node: meta(node, "cluster.id", "AAAAAAAAAAAAAAAAAAAAAw"),
        "another node.id in one directory": lambda node: meta(node, "node.id", "7"),
        "a cloned disk": cloned,
        "an index removed": lambda node: log(node, "orders5-0", f"{SEGMENT}.index").unlink(),
        "malformed recovery points": lambda node: (
            (node.log_dirs[1] / "recovery-point-offset-checkpoint").write_text("0\n3\norders0 0 5\n"),
            None,
        )[1],
    }


def prepare(node: Node) -> None:
    """Start a new node, write to six topics, stop it cleanly."""
    node.home.mkdir(parents=True)
    node.format()
    process = node.start()
    try:
        wait_until(lambda: STARTED in node.console() or process.poll() is not None, "the first start", START_SECONDS)
        for topic in TOPICS:
            create_topic(node.ports[0], topic, (1,), {}, has_v2=True)
        for topic in TOPICS:
            wait_until(partial(_leads, node.ports[0], topic), f"a leader of {topic}", START_SECONDS)
            for count in (3, 1, 5):
                produce(node.ports[0], topic, [(b"k", b"v" * 200)] * count, has_v3=True)
    finally:
        process.terminate()
        process.wait(START_SECONDS)


def _leads(port: int, topic: str) -> bool:
    try:
        return ask_metadata(port, topic).leader == 1
    except (OSError, RefusedError):
        return False


def predicted(node: Node, kafka: str) -> dict[str, Any]:
    """What `kforensics predict` says of the first start."""
    done = subprocess.run(
        [sys.executable, "-m", "kforensics", "predict", str(node.home), "--kafka", kafka, "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    document = json.loads(done.stdout)
    start = document["starts"][0]
    logs = [log for log in document["logs"] if log["start"] == 1 and "log_end_offset" in log["after"]]
    loaded = {
        Path(log["path"]).name: [log["after"]["log_start_offset"], log["after"]["log_end_offset"]] for log in logs
    }
    return {
        "outcome": start["outcome"],
        "loaded": loaded if start["loads_logs"] else {},
        "strays": sorted(Path(log["path"]).name for log in logs if log["becomes"] == "stray"),
    }


def observed(node: Node) -> dict[str, Any]:
    """What a broker does; it is killed once it has started."""
    process = node.start()
    end = time.monotonic() + START_SECONDS
    while process.poll() is None and STARTED not in node.console() and time.monotonic() < end:
        time.sleep(0.5)
    if process.poll() is None:
        time.sleep(3)  # an offline directory ends the node a moment after it has started
    ended = process.poll()
    if ended is None:
        process.kill()
        process.wait()
    console = node.console()
    # Of a directory that is renamed the line has the new name.
    loaded = {
        Path(match["dir"]).name.partition(".")[0]: [int(match["start"]), int(match["end"])]
        for match in _LOADED.finditer(console)
        if "__cluster_metadata" not in match["dir"]
    }
    is_offline = "Stopping serving replicas in dir" in console
    strays = [
        entry.name.partition(".")[0]
        for one in node.log_dirs
        for entry in one.iterdir()
        if entry.name.endswith("-stray")
    ]
    outcome = "exits" if ended is not None else "dir-offline" if is_offline else "starts"
    return {"outcome": outcome, "loaded": loaded, "strays": sorted(strays)}


def differences(told: dict[str, Any], seen: dict[str, Any]) -> list[str]:
    """Where they differ; logs that a failing start did not come to are not compared."""
    out = [f"{key}: {told[key]} predicted, {seen[key]} seen" for key in ("outcome", "strays") if told[key] != seen[key]]
    for name, ends in seen["loaded"].items():
        if name in told["loaded"] and told["loaded"][name] != ends:
            out.append(f"{name}: {told['loaded'][name]} predicted, {ends} seen")
        elif name not in told["loaded"]:
            out.append(f"{name}: not predicted to load, {ends} seen")
    if seen["outcome"] == "starts":
        out += [f"{name}: predicted to load, not seen" for name in told["loaded"] if name not in seen["loaded"]]
    return out


def main() -> int:
    """Try each edit and print what came of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kafka", default="4.1.0")
    parser.add_argument("--jars", default=None)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    jars = given.jars or str(Path.home() / ".cache/kforensics-oracle" / given.kafka)
    client, controller = free_ports(2)
    wrong = 0
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as work:
        base = Node(jars, Path(work) / "base", (client, controller))
        prepare(base)
        for at, (name, edit) in enumerate(edits().items()):
            if given.only not in name:
                continue
            node = Node(jars, Path(work) / str(at), base.ports)
            shutil.copytree(base.home, node.home)
            for path in node.home.glob("*.properties"):
                path.unlink()
            edit(node)
            told = predicted(node, given.kafka)
            odd = differences(told, seen := observed(node))
            wrong += bool(odd)
            print(
                f"{name}: {seen['outcome']}, {len(seen['loaded'])} logs loaded; {'; '.join(odd) or 'as predicted'}",
                flush=True,
            )
            shutil.rmtree(node.home)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
