"""Two brokers of one release on 127.0.0.1, with ZooKeeper or a controller: started, stopped, killed and asked."""

import base64
import shutil
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.oracle.client import Metadata, RefusedError, ask_controller, ask_metadata, create_topic, produce
from tests.oracle.jars import Release, class_path

TOPIC = "orders"
BROKERS = (1, 2)
CONTROLLER = 100
WAIT_SECONDS = 90
STOP_SECONDS = 45
POLL_SECONDS = 0.25
SESSION_SECONDS = 4

BROKER_OPTIONS = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    *(
        f"--add-opens=java.base/{package}=ALL-UNNAMED"
        for package in ("sun.nio.ch", "java.nio", "jdk.internal.ref", "java.lang")
    ),
)

_LOG4J_1 = """\
log4j.rootLogger=INFO, file
log4j.appender.file=org.apache.log4j.FileAppender
log4j.appender.file.File={file}
log4j.appender.file.layout=org.apache.log4j.PatternLayout
log4j.appender.file.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
LOG4J_2 = """\
rootLogger.level=INFO
rootLogger.appenderRef.file.ref=file
appender.file.type=File
appender.file.name=file
appender.file.fileName={file}
appender.file.layout.type=PatternLayout
appender.file.layout.pattern=[%d] %p %m (%c)%n
"""


@contextmanager
def run_cluster(release: Release, folder: Path, *, mark_interval_ms: int) -> Iterator["Cluster"]:
    """A cluster that holds the topic; every process is gone when the block ends.

    Args:
        release: what runs.
        folder: for data and logs.
        mark_interval_ms: how often brokers write their high watermarks down.
    """
    cluster = Cluster(release, folder, mark_interval_ms)
    try:
        cluster.start_first()
        yield cluster
    finally:
        cluster.kill_everything()


class Cluster:
    """The processes, by node id; the one that is no broker is `CONTROLLER`."""

    def __init__(self, release: Release, folder: Path, mark_interval_ms: int) -> None:
        self.release = release
        self.folder = folder
        self.mark_interval_ms = mark_interval_ms
        self.class_path = class_path(release)
        self.cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self.ports = dict(zip((*BROKERS, CONTROLLER), free_ports(len(BROKERS) + 1), strict=True))
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self.records_written = 0

    def data(self, node: int) -> Path:
        """The log directory of a node."""
        return self.folder / f"broker-{node}" / "data"

    def server_log(self, node: int) -> Path:
        """The log file of a node."""
        return self.folder / f"broker-{node}" / "logs" / "server.log"

    def start_first(self) -> None:
        """Start everything and create the topic with both brokers in sync."""
        for node in (CONTROLLER, *BROKERS):
            self._prepare(node)
            self.start(node)
        wait_until(lambda: self._create_topic() or self.state() is not None, "the topic")
        self.wait_in_sync()

    def start(self, node: int) -> None:
        """Start a node that does not run."""
        home = self.folder / f"broker-{node}"
        if node == CONTROLLER and not self.release.is_kraft:
            main = ["org.apache.zookeeper.server.quorum.QuorumPeerMain"]
        else:
            main = ["kafka.Kafka"]
        with (home / "console").open("ab") as console:
            self.processes[node] = subprocess.Popen(
                [*self._java(node), *main, self._properties(node)],
                cwd=home,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def stop(self, node: int) -> None:
        """Stop a node in the orderly way."""
        process = self.processes.pop(node)
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    def kill(self, node: int) -> None:
        """End a node as `kill -9` does, and wait until the cluster counts it out."""
        process = self.processes.pop(node)
        process.kill()
        process.wait()
        time.sleep(SESSION_SECONDS + 2)

    def kill_everything(self) -> None:
        """End all that still run."""
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()
        self.processes.clear()

    def write(self, *batches: int) -> None:
        """Write batches of so many records each, acknowledged by all that are in sync."""
        for count in batches:
            names = [f"order-{number}".encode() for number in range(self.records_written, self.records_written + count)]
            self.records_written += count
            records = [(name, b"value of " + name) for name in names]
            wait_until(partial(self._produce, records), "a leader that takes records")

    def state(self) -> Metadata | None:
        """What the running broker with the lowest id says of the partition, none while it doesn't."""
        for node, process in self.processes.items():
            assert process.poll() is None, f"node {node} ended by itself: see {self.server_log(node)}"
        for node in self._running():
            try:
                return ask_metadata(self.ports[node], TOPIC)
            except (OSError, RefusedError):
                continue
        return None

    def wait_for_leader(self, node: int) -> None:
        """Wait until the node leads."""
        wait_until(lambda: (state := self.state()) is not None and state.leader == node, f"leader {node}")

    def wait_in_sync(self, nodes: tuple[int, ...] = BROKERS) -> None:
        """Wait until exactly these are in sync."""
        wait_until(lambda: (state := self.state()) is not None and state.in_sync == set(nodes), f"in sync: {nodes}")

    def leader(self) -> int:
        """The broker that leads now."""
        state = self.state()
        assert state is not None
        return state.leader

    def _running(self) -> list[int]:
        return [node for node in BROKERS if node in self.processes]

    def _produce(self, records: list[tuple[bytes, bytes]]) -> bool:
        state = self.state()
        if state is None or state.leader not in self._running():
            return False
        try:
            produce(self.ports[state.leader], TOPIC, records, has_v3=self.release.has_epochs)
        except (RefusedError, ConnectionRefusedError):
            return False
        return True

    def _create_topic(self) -> bool:
        configs = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
        try:
            controller = ask_controller(self.ports[BROKERS[0]])
            create_topic(self.ports[controller], TOPIC, BROKERS, configs, has_v2=self.release.has_epochs)
        except (OSError, RefusedError, KeyError):
            return False
        return True

    def _java(self, node: int) -> list[str]:
        home = self.folder / f"broker-{node}"
        logging = "log4j2.configurationFile" if self.release.has_log4j_2 else "log4j.configuration"
        java = shutil.which("java")
        assert java, "the oracle needs Java 17"
        options = [*BROKER_OPTIONS, f"-D{logging}=file:{home / 'log4j.properties'}"]
        return ["nice", "-n", "10", java, *options, "-cp", self.class_path]

    def _prepare(self, node: int) -> None:
        home = self.folder / f"broker-{node}"
        self.server_log(node).parent.mkdir(parents=True)
        logging = LOG4J_2 if self.release.has_log4j_2 else _LOG4J_1
        (home / "log4j.properties").write_text(logging.format(file=self.server_log(node)))
        settings = self._controller_settings() if node == CONTROLLER else self._broker_settings(node)
        Path(self._properties(node)).write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        self._fill(node)

    def _fill(self, node: int) -> None:
        self.data(node).mkdir()
        if self.release.is_kraft:
            self._run(node, "kafka.tools.StorageTool", "format", "-t", self.cluster_id, "-c", self._properties(node))

    def _properties(self, node: int) -> str:
        return str(self.folder / f"broker-{node}" / "server.properties")

    def _run(self, node: int, *command: str) -> None:
        subprocess.run([*self._java(node), *command], check=True, timeout=WAIT_SECONDS, stdout=subprocess.DEVNULL)

    def _controller_settings(self) -> dict[str, object]:
        if not self.release.is_kraft:
            return {
                "dataDir": self.data(CONTROLLER),
                "clientPort": self.ports[CONTROLLER],
                "clientPortAddress": "127.0.0.1",
                "tickTime": 500,
                "admin.enableServer": "false",
            }
        return {
            **self._quorum_settings(CONTROLLER),
            "process.roles": "controller",
            "listeners": f"CONTROLLER://127.0.0.1:{self.ports[CONTROLLER]}",
            "broker.session.timeout.ms": SESSION_SECONDS * 1_000,
            "unclean.leader.election.enable": "true",
            "auto.leader.rebalance.enable": "false",
            "log.dirs": self.data(CONTROLLER),
        }

    def _quorum_settings(self, node: int) -> dict[str, object]:
        return {
            "node.id": node,
            "controller.quorum.voters": f"{CONTROLLER}@127.0.0.1:{self.ports[CONTROLLER]}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        }

    def _broker_settings(self, node: int) -> dict[str, object]:
        if self.release.is_kraft:
            membership: dict[str, object] = {
                **self._quorum_settings(node),
                "process.roles": "broker",
                "broker.session.timeout.ms": SESSION_SECONDS * 1_000,
                "broker.heartbeat.interval.ms": 500,
            }
        else:
            membership = {
                "broker.id": node,
                "zookeeper.connect": f"127.0.0.1:{self.ports[CONTROLLER]}",
                "zookeeper.session.timeout.ms": SESSION_SECONDS * 1_000,
            }
        return {
            **membership,
            "listeners": f"PLAINTEXT://127.0.0.1:{self.ports[node]}",
            "log.dirs": self.data(node),
            "unclean.leader.election.enable": "true",
            "auto.leader.rebalance.enable": "false",
            "auto.create.topics.enable": "false",
            "replica.high.watermark.checkpoint.interval.ms": self.mark_interval_ms,
            "replica.lag.time.max.ms": 5_000,
            "controlled.shutdown.max.retries": 1,
            "controlled.shutdown.retry.backoff.ms": 500,
            "num.network.threads": 2,
            "num.io.threads": 2,
            "offsets.topic.num.partitions": 1,
            "offsets.topic.replication.factor": 1,
            "log.cleaner.dedupe.buffer.size": 2 << 20,
            "log.index.size.max.bytes": 65_536,
        }


def wait_until(is_so: Callable[[], bool], what: str, seconds: float = WAIT_SECONDS) -> None:
    """Ask again and again.

    Raises:
        TimeoutError: it did not come true in time.
    """
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            message = f"waited {seconds:.0f} s for {what}"
            raise TimeoutError(message)
        time.sleep(POLL_SECONDS)


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
