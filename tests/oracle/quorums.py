"""Disasters of a metadata quorum, recorded with real brokers: what was on the disks before the start that did the harm, and what it left.

Run by hand: `python -m tests.oracle.quorums FOLDER [NAME]…` (Java 17, Maven) writes FOLDER/NAME.tar.xz with `before/` and `after/`, each with a directory a node,
`settings/`, `logs/` with the lines of that start that speak of the quorum and of directories, and `truth.json`.
"""

import argparse
import base64
import json
import re
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from tests.oracle.client import RefusedError, ask_metadata, create_topic, produce
from tests.oracle.cluster import free_ports, wait_until
from tests.oracle.jars import RELEASES, Release, class_path
from tests.oracle.loading.judge import OPEN_MODULES

BROKERS = (1, 2)
TOPICS = ("orders", "payments")
SETTLE_SECONDS = 15
KAFKA_3_6 = Release("3.6.2", "2.13", ("org.slf4j:slf4j-reload4j:1.7.36",), is_kraft=True)
KAFKA_4_1 = next(one for one in RELEASES if one.version == "4.1.0")
_LOG4J = {
    False: "log4j.rootLogger=INFO, file\nlog4j.appender.file=org.apache.log4j.FileAppender\nlog4j.appender.file.File={file}\n"
    "log4j.appender.file.layout=org.apache.log4j.PatternLayout\nlog4j.appender.file.layout.ConversionPattern=[%d] %p %m (%c)%n\n",
    True: "rootLogger.level=INFO\nrootLogger.appenderRef.file.ref=file\nappender.file.type=File\nappender.file.name=file\nappender.file.fileName={file}\n"
    "appender.file.layout.type=PatternLayout\nappender.file.layout.pattern=[%d] %p %m (%c)%n\n",
}
_KEPT = re.compile(
    r"\b[Ss]tray|[Tt]runcat|Completed transition to (?:Leader|Follower|Unattached)|[Rr]egistered broker|Unable to register|Created log for|Kafka version"
)


class Nodes:
    """Controllers and brokers of one release, each a node of its own on 127.0.0.1."""

    def __init__(self, release: Release, folder: Path, controllers: Sequence[int]) -> None:
        self.release, self.folder, self.controllers = release, folder, tuple(controllers)
        self.jars = class_path(release)
        self.cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        every = (*controllers, *BROKERS)
        self.ports = dict(zip(every, free_ports(len(every)), strict=True))
        self.running: dict[int, subprocess.Popen[bytes]] = {}
        self.bootstrapped: set[int] = set()
        """Nodes that are told where controllers are, and not which ones vote (KIP-853)."""
        self.identities: dict[int, str] = {}
        """The `meta.properties` that nodes had before they were formatted anew with another directory id."""
        for node in every:
            self.format(node)

    def data(self, node: int) -> Path:
        """Return the log directory of a node."""
        return self.folder / f"node-{node}" / "data"

    def log(self, node: int) -> Path:
        """Return the log file of a node."""
        return self.folder / f"node-{node}" / "server.log"

    def settings(self, node: int) -> Path:
        """Write the settings of a node."""
        places = [(one, f"127.0.0.1:{self.ports[one]}") for one in self.controllers]
        named: Mapping[str, object] = {"controller.quorum.voters": ",".join(f"{one}@{place}" for one, place in places)}
        if node in self.bootstrapped:
            named = {"controller.quorum.bootstrap.servers": ",".join(place for _, place in places)}
        listener = "CONTROLLER" if node in self.controllers else "PLAINTEXT"
        values: dict[str, object] = {
            **named,
            "node.id": node,
            "process.roles": "controller" if node in self.controllers else "broker",
            "listeners": f"{listener}://127.0.0.1:{self.ports[node]}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": self.data(node),
            "broker.session.timeout.ms": 4_000,
            "broker.heartbeat.interval.ms": 500,
            "controlled.shutdown.max.retries": 1,
            "log.cleaner.dedupe.buffer.size": 2 << 20,
            "log.index.size.max.bytes": 4_096,
        }
        path = self.folder / f"node-{node}" / "server.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
        return path

    def format(self, node: int, *options: str) -> None:
        """Empty the disk of a node, and format it."""
        shutil.rmtree(self.data(node), ignore_errors=True)
        self.data(node).mkdir(parents=True)
        command = ("kafka.tools.StorageTool", "format", "-t", self.cluster_id, "-c", str(self.settings(node)), *options)
        subprocess.run(self.java(node, *command), check=True, stdout=subprocess.DEVNULL, cwd=self.folder)

    def java(self, node: int, *command: str) -> list[str]:
        """Return the command of a Java program that logs as a node."""
        logging = self.folder / f"node-{node}" / "log4j.properties"
        logging.write_text(_LOG4J[self.release.has_log4j_2].format(file=self.log(node)))
        name = "log4j2.configurationFile" if self.release.has_log4j_2 else "log4j.configuration"
        options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *OPEN_MODULES, f"-D{name}=file:{logging}"]
        return ["nice", "-n", "10", "java", *options, "-cp", self.jars, *command]

    def start(self, *nodes: int) -> None:
        """Start some nodes."""
        for node in nodes:
            with (self.folder / f"node-{node}" / "console").open("ab") as console:
                self.running[node] = subprocess.Popen(
                    self.java(node, "kafka.Kafka", str(self.settings(node))),
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=console,
                    stderr=subprocess.STDOUT,
                )

    def stop(self, *nodes: int) -> None:
        """Stop some nodes, all where none is named: in order, or with kill where one waits for others."""
        for node in nodes or tuple(sorted(self.running)):
            process = self.running.pop(node)
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def kill(self, *nodes: int) -> None:
        """End some nodes as `kill -9` does."""
        for node in nodes or tuple(self.running):
            process = self.running.pop(node)
            process.kill()
            process.wait()

    def create(self, *topics: str, records: int = 6) -> None:
        """Create topics of one partition on all brokers, and write to each."""
        port = self.ports[BROKERS[0]]
        for topic in topics:
            wait_until(partial(self._created, port, topic), topic)
            lines = [(f"{topic}-{at}".encode(), f"value {at} of {topic}".encode()) for at in range(records)]
            wait_until(partial(self._written, port, topic, lines), f"records of {topic}")

    def _created(self, port: int, topic: str) -> bool:
        with suppress(OSError, RefusedError):
            create_topic(port, topic, BROKERS, {"min.insync.replicas": "1", "retention.ms": "-1"}, has_v2=True)
            return True
        return False

    def _written(self, port: int, topic: str, lines: list[tuple[bytes, bytes]]) -> bool:
        with suppress(OSError, RefusedError):
            state = ask_metadata(port, topic)
            if state.in_sync == set(BROKERS):
                produce(self.ports[state.leader], topic, lines, has_v3=True)
                return True
        return False

    def tool(self, main: str, *words: str) -> None:
        """Run one of Kafka's tools against the controllers."""
        place = f"127.0.0.1:{self.ports[self.controllers[0]]}"
        subprocess.run(
            self.java(BROKERS[0], main, "--bootstrap-controller", place, *words), check=True, cwd=self.folder
        )

    def keep(self, moment: Path) -> None:
        """Copy the directories of all nodes."""
        for node in (*self.controllers, *BROKERS):
            kind = "controller" if node in self.controllers else "broker"
            shutil.copytree(self.data(node), moment / f"{kind}-{node}", ignore=shutil.ignore_patterns(".lock"))


def mend(nodes: Nodes, source: Path) -> Mapping[str, object]:
    """Bring metadata back as is advised, and return what is served then and how long each log is.

    Args:
        source: the directory of a metadata log from before.
    """
    for node in nodes.ports:
        own = nodes.data(node) / source.name
        shutil.rmtree(own, ignore_errors=True)
        if node in nodes.controllers:
            shutil.copytree(source, own, ignore=shutil.ignore_patterns("quorum-state*"))
        if node in nodes.identities:
            (nodes.data(node) / "meta.properties").write_text(nodes.identities[node])
    for node in BROKERS:
        for aside in (*nodes.data(node).glob("*.*-stray"), *nodes.data(node).glob("*.*-delete")):
            aside.rename(aside.with_name(aside.name.partition(".")[0]))
    nodes.start(*nodes.ports)
    served: dict[str, int] = {}

    def is_served() -> bool:
        with suppress(OSError, RefusedError):
            served.update({topic: ask_metadata(nodes.ports[BROKERS[0]], topic).leader for topic in TOPICS})
        return len(served) == len(TOPICS) and min(served.values()) >= 0

    with suppress(TimeoutError):
        wait_until(is_served, "topics that are served")
    nodes.stop()
    logs = sorted(one for node in BROKERS for one in nodes.data(node).glob("[op]*/*.log"))
    return {"leaders": served, "bytes": {str(one.relative_to(nodes.folder)): one.stat().st_size for one in logs}}


def only_controller_emptied(nodes: Nodes) -> str:
    """Format the only controller anew, with the same cluster id."""
    nodes.create("orders", "payments")
    nodes.stop()
    nodes.format(nodes.controllers[0])
    return "the only controller was formatted anew, with the same cluster id"


def majority_emptied(nodes: Nodes) -> str:
    """Format two of three controllers anew."""
    nodes.create("orders", "payments")
    nodes.stop()
    for node in nodes.controllers[1:]:
        nodes.format(node)
    return "two of three controllers were formatted anew, with the same cluster id, and started before the third"


def voter_restored(nodes: Nodes) -> str:
    """Put an earlier copy of the only controller back."""
    nodes.create("orders")
    nodes.stop()
    controller = nodes.controllers[0]
    shutil.copytree(nodes.data(controller), nodes.folder / "earlier")
    nodes.start(controller, *BROKERS)
    nodes.create("payments")
    nodes.stop()
    shutil.rmtree(nodes.data(controller))
    shutil.move(nodes.folder / "earlier", nodes.data(controller))
    return "the disk of the only controller was put back to a copy from before topic payments was created and the brokers were restarted"


def dynamic_half_done(nodes: Nodes) -> str:
    """Make the voters dynamic, and format two of them anew before they were removed and added."""
    nodes.create("orders")
    nodes.tool("org.apache.kafka.tools.FeatureCommand", "upgrade", "--feature", "kraft.version=1")
    nodes.create("payments")
    nodes.stop()
    nodes.bootstrapped.update((*nodes.controllers, *BROKERS))
    for node in nodes.controllers[1:]:
        nodes.identities[node] = (nodes.data(node) / "meta.properties").read_text()
        nodes.format(node, "--no-initial-controllers")
    return "the voters were made dynamic (kraft.version 1); then two of three controllers were formatted anew, with other directory ids, and were not added as voters"


def brokers_newer(nodes: Nodes) -> str:
    """Cut the end of the only controller's log, as a power loss does whose disk lied about a flush."""
    nodes.create("orders")
    controller = nodes.controllers[0]
    segment = nodes.data(controller) / "__cluster_metadata-0" / f"{0:020d}.log"
    kept = segment.stat().st_size
    nodes.create("payments")
    time.sleep(2)
    nodes.stop(*BROKERS)
    nodes.kill()
    with segment.open("r+b") as file:
        file.truncate(kept)
    return "the only controller was killed, and its log cut back to before topic payments was created (kill -9, then an edit)"


def _length(metadata_log: Path) -> int:
    return sum(one.stat().st_size for one in metadata_log.glob("*.log"))


DISASTERS: Mapping[str, tuple[Release, tuple[int, ...], Callable[[Nodes], str]]] = {
    "only-controller-emptied": (KAFKA_4_1, (100,), only_controller_emptied),
    "majority-emptied": (KAFKA_4_1, (101, 102, 103), majority_emptied),
    "voter-restored": (KAFKA_4_1, (100,), voter_restored),
    "dynamic-half-done": (KAFKA_4_1, (101, 102, 103), dynamic_half_done),
    "brokers-newer": (KAFKA_3_6, (100,), brokers_newer),
}


def record(name: str, target: Path) -> None:
    """Record one of them."""
    release, controllers, disaster = DISASTERS[name]
    with tempfile.TemporaryDirectory() as work:
        root = Path(work) / name
        root.mkdir()
        nodes = Nodes(release, Path(work), controllers)
        try:
            nodes.start(*controllers, *BROKERS)
            words = disaster(nodes)
            nodes.keep(root / "before")
            for node in nodes.ports:
                (root / "settings" / str(node)).mkdir(parents=True)
                text = nodes.settings(node).read_text().replace(str(nodes.folder), "/kafka")
                (root / "settings" / str(node) / "server.properties").write_text(text)
            for node in nodes.ports:
                nodes.log(node).unlink(missing_ok=True)
            # An emptied majority elects one of its own where it is there first.
            nodes.start(*controllers[1:])
            time.sleep(SETTLE_SECONDS if len(controllers) > 1 else 0)
            nodes.start(controllers[0], *BROKERS)
            time.sleep(2 * SETTLE_SECONDS)
            (root / "logs").mkdir()
            for node in nodes.ports:
                lines = nodes.log(node).read_text(errors="replace").replace(str(nodes.folder), "/kafka").splitlines()
                kept = [line for line in lines if _KEPT.search(line)][:60]
                (root / "logs" / f"{node}.log").write_text("".join(f"{line}\n" for line in kept))
            nodes.stop()
            nodes.keep(root / "after")
            sources = sorted((root / "before").glob("broker-*/__cluster_metadata-0"), key=_length)
            mended = mend(nodes, sources[-1])
        finally:
            nodes.kill()
        truth: dict[str, object] = {
            "kafka": release.version,
            "what": words,
            "controllers": controllers,
            "brokers": BROKERS,
        }
        truth["mended"] = mended
        truth["directories"] = {
            moment: {
                one.name: sorted(each.name for each in one.iterdir() if each.is_dir())
                for one in sorted((root / moment).iterdir())
            }
            for moment in ("before", "after")
        }
        (root / "truth.json").write_text(json.dumps(truth, indent=1))
        target.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [
                "tar",
                "--sparse",
                "--sort=name",
                "--owner=0",
                "--group=0",
                "-cJf",
                str(target / f"{name}.tar.xz"),
                "-C",
                work,
                name,
            ],
            check=True,
        )


def main() -> None:
    """Record what is named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", choices=[*DISASTERS, []])
    asked = parser.parse_args()
    for name in asked.names or DISASTERS:
        record(name, asked.folder)


if __name__ == "__main__":
    main()
