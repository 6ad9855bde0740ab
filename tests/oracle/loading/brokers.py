"""Whole brokers on edited directories, and what was predicted of them.

Run by hand: `python -m tests.oracle.loading.brokers --kafka 4.1.0` (Java 17, Maven or `--jars`). One node with two log directories, with ZooKeeper before 3.0,
is started once, written to and stopped; each edit is made in a copy, predicted, and the broker started on it. Compared are the outcome, log starts and ends,
the logs that are scanned, strays, and every file of each log that is served; with `--watch 150` also what retention and the deletion of files have left then.
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
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kforensics.protocol.loading.disk import EPOCH_FILE, METADATA_FILE
from kforensics.protocol.loading.node import UNREGISTERED
from kforensics.protocol.versions import parse_version
from tests.oracle.client import RefusedError, ask_metadata, create_topic, produce
from tests.oracle.cluster import free_ports, wait_until
from tests.oracle.jars import RELEASES, class_path
from tests.oracle.loading.joint_edits import joint_edits
from tests.oracle.loading.judge import OPEN_MODULES
from tests.oracle.loading.node_edits import further_edits, node_edits, write_text
from tests.oracle.loading.odd_edits import odd_edits
from tests.oracle.loading.rare_edits import rare_edits
from tests.oracle.loading.restored_edits import restored_edits
from tests.oracle.loading.setting_edits import setting_edits
from tests.oracle.loading.small_edits import small_edits

TOPICS = tuple(f"orders{at}" for at in range(6))
AGED, AGE_MS = "aged", 10 * 86_400_000
"""A topic whose records are older than the default retention."""
SEGMENT = "00000000000000000000"
FIRST_KRAFT = (3, 0)
CALM = frozenset({"starts-unchanged", "starts-and-repairs"})
START_SECONDS = 80
FAULT_SECONDS = 20
STARTED = re.compile(r"Kafka Server started|\[KafkaServer id=1\] started")
_LOG4J_1 = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
_CLOSED = "may be closed to the broker by owner or mode"
_FAULT = re.compile("Encountered fatal fault|Exiting Kafka due to fatal exception")
_SCANNED = re.compile(
    r"\[(?:LogLoader|Log|UnifiedLog) partition=(?P<name>[^,]+), dir=(?P<dir>[^\]]+)\] "
    "(?:Recovering (?:unflushed )?segment|Could not find offset index|Found a corrupted index)"
)
_AGED = re.compile(
    r"(partition=[^,]+, dir=[^\]]+\] (?:Deleting segment|Found deletable segments).*?(?:baseOffset=\d+|\[[\d,]+\])).*retention time"
)
_LOADED = re.compile(
    r"Completed load of Log\(dir=(?P<dir>[^,]+), .*?logStartOffset=(?P<start>\d+), logEndOffset=(?P<end>\d+)\)"
)


class Node:
    """One node with two log directories; `home` holds them, and what ZooKeeper keeps where the version needs it.

    It is its own controller, unless another is given, which is started before it and ended after it.
    """

    def __init__(
        self,
        kafka: str,
        jars: str,
        home: Path,
        ports: Sequence[int],
        settings: Mapping[str, object] | None = None,
        *,
        roles: str = "broker,controller",
        controller: "Node | None" = None,
    ) -> None:
        self.kafka, self.jars, self.home, self.ports = kafka, jars, home, ports
        self.settings = dict(settings or {})
        self.roles, self.controller = roles, controller
        self.node_id = 2 if roles == "controller" else 1
        self.runs_as: int | None = None
        """The user that starts it; the one that runs the script where None."""
        self.rewritten: Callable[[str], str] = str
        """What is made of the text of its `server.properties`."""
        self.is_kraft = parse_version(kafka) >= FIRST_KRAFT
        self._zookeeper: subprocess.Popen[bytes] | None = None
        self.controller_process: subprocess.Popen[bytes] | None = None

    def with_own_controller(self, *, is_dynamic: bool) -> "Node":
        """Return it as a broker alone, with a controller of its own; the voters are in the metadata log where they are dynamic (KIP-853)."""
        place = f"127.0.0.1:{self.ports[1]}"
        settings: dict[str, object] = {"controller.quorum.voters": f"2@{place}"}
        if is_dynamic:
            settings = {"controller.quorum.voters": "", "controller.quorum.bootstrap.servers": place}
        settings |= self.settings
        beside = Node(self.kafka, self.jars, _beside(self.home), self.ports, settings, roles="controller")
        return Node(self.kafka, self.jars, self.home, self.ports, settings, roles="broker", controller=beside)

    @property
    def log_dirs(self) -> list[Path]:
        """Its log directories; the first has the metadata log."""
        return [self.home / "data-0", self.home / "data-1"]

    def copied_to(self, home: Path, ports: Sequence[int] | None = None) -> "Node":
        """Return a copy of it, which has its ports where none are given."""
        leave_out = shutil.ignore_patterns("console", "server.properties", "log4j.properties", ".lock")
        for ending in ("", ".zookeeper"):
            source = self.home.with_name(self.home.name + ending)
            if source.is_dir():
                shutil.copytree(source, home.with_name(home.name + ending), ignore=leave_out)
        ports = ports or self.ports
        moved = {
            name: value.replace(f":{self.ports[1]}", f":{ports[1]}") if isinstance(value, str) else value
            for name, value in self.settings.items()
        }
        beside = self.controller.copied_to(_beside(home), ports) if self.controller is not None else None
        return Node(self.kafka, self.jars, home, ports, moved, roles=self.roles, controller=beside)

    def _java(self, *command: str) -> list[str]:
        log = self.home / "log4j.properties"
        log.write_text(_LOG4J_1)
        logging = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=info", f"-Dlog4j.configuration=file:{log}"]
        options = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *logging, *OPEN_MODULES]
        # Half of what a start costs is the loading of classes: the first broker that is stopped leaves them for the others.
        archive = Path(self.jars).with_name(f"{Path(self.jars).name}.jsa")
        if archive.is_file() and self.runs_as is None:
            options.append(f"-XX:SharedArchiveFile={archive}")
        elif self.controller is None and command[0] == "kafka.Kafka":
            options.append(f"-XX:ArchiveClassesAtExit={archive}")
        user = f"{self.runs_as}"
        prefix = [] if self.runs_as is None else ["setpriv", "--reuid", user, "--regid", user, "--clear-groups"]
        return [*prefix, "java", *options, "-cp", f"{self.jars}/*", *command]

    def properties(self) -> Path:
        """Write its `server.properties`."""
        client, controller = self.ports
        path = self.home / "server.properties"
        settings: dict[str, object] = {
            "log.dirs": ",".join(map(str, self.log_dirs)),
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.num.partitions": 1,
            "transaction.state.log.min.isr": 1,
            "log.index.size.max.bytes": 65536,
            "log.cleaner.dedupe.buffer.size": 2 << 20,
        }
        if self.is_kraft:
            listeners = {
                "broker": f"PLAINTEXT://127.0.0.1:{client}",
                "controller": f"CONTROLLER://127.0.0.1:{controller}",
            }
            settings |= {
                "process.roles": self.roles,
                "node.id": self.node_id,
                "controller.quorum.voters": f"1@127.0.0.1:{controller}",
                "controller.listener.names": "CONTROLLER",
                "metadata.log.max.record.bytes.between.snapshots": 1_000,
                "initial.broker.registration.timeout.ms": 10_000,
                "listeners": ",".join(listeners[role] for role in self.roles.split(",")),
                "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            }
        else:
            settings |= {
                "broker.id": 1,
                "zookeeper.connect": f"127.0.0.1:{controller}",
                "zookeeper.session.timeout.ms": 6_000,
                "zookeeper.connection.timeout.ms": 120_000,
                "listeners": f"PLAINTEXT://127.0.0.1:{client}",
            }
        settings |= self.settings
        path.write_text(self.rewritten("".join(f"{name}={value}\n" for name, value in settings.items())))
        return path

    def format(self, *options: str, cluster: str = "") -> None:
        """Make the log directories, those of its controller too."""
        if not self.is_kraft:
            return
        cluster = cluster or base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if self.controller is not None:
            self.controller.home.mkdir(parents=True)
            self.controller.format(*options, cluster=cluster)
        elif not self.settings.get("controller.quorum.voters", "static"):
            options = (*options, "--standalone")
        command = self._java("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self.properties()), *options)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def start(self) -> subprocess.Popen[bytes]:
        """Start it; what it logs goes to `console`."""
        self.home.mkdir(parents=True, exist_ok=True)
        properties = self.properties()
        if not self.is_kraft:
            self._start_zookeeper()
        if self.controller is not None:
            self.controller_process = self.controller.start()
        with (self.home / "console").open("wb") as console:
            return subprocess.Popen(
                self._java("kafka.Kafka", str(properties)),
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
            )

    def _start_zookeeper(self) -> None:
        data = self.home.with_name(f"{self.home.name}.zookeeper")
        data.mkdir(exist_ok=True)
        config = data / "zoo.cfg"
        config.write_text(
            f"dataDir={data}\nclientPort={self.ports[1]}\nclientPortAddress=127.0.0.1\ntickTime=500\nadmin.enableServer=false\n"
        )
        with (data / "console").open("wb") as console:
            self._zookeeper = subprocess.Popen(
                self._java("org.apache.zookeeper.server.quorum.QuorumPeerMain", str(config)),
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
            )

    def end(self, process: subprocess.Popen[bytes], *, cleanly: bool = False) -> None:
        """End it, and its ZooKeeper."""
        if cleanly:
            process.terminate()
            process.wait(START_SECONDS)
        elif process.poll() is None:
            process.kill()
            process.wait()
        if self._zookeeper is not None:
            self._zookeeper.kill()
            self._zookeeper.wait()
            self._zookeeper = None
        if self.controller is not None and self.controller_process is not None:
            self.controller.end(self.controller_process, cleanly=cleanly)
            self.controller_process = None

    def console(self) -> str:
        """What it logged."""
        return (self.home / "console").read_text(errors="replace")


def _beside(home: Path) -> Path:
    return home.with_name(f"{home.name}.controller")


def jars_of(kafka: str) -> str:
    """The folder of a release's jars: fetched by Maven where `jars.RELEASES` has it, else put there by hand."""
    release = next((one for one in RELEASES if one.version == kafka), None)
    by_hand = Path.home() / ".cache/kforensics-oracle" / kafka
    if release is None or (release.is_kraft and by_hand.is_dir()):
        return str(by_hand)
    return class_path(release).removesuffix("/*")


def edits(*, is_kraft: bool = True) -> dict[str, Callable[[Node], object]]:
    """Edits of a node that was stopped cleanly, by name.

    Args:
        is_kraft: whether it runs without ZooKeeper; without, edits of its identity and of topic ids are left out.
    """

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

    found = {
        "none": lambda _: None,
        "without marker": without_marker,
        "zeros behind a log": zeros,
        "flipped bit, without marker": flipped_unclean,
        "malformed epoch file": lambda node: write_text(log(node, "orders3-0", EPOCH_FILE), "0\n2\n0 0\n"),
        "empty epoch file": lambda node: write_text(log(node, "orders3-0", EPOCH_FILE), ""),
        "empty partition.metadata": lambda node: write_text(log(node, "orders4-0", "partition.metadata"), ""),
        "no partition.metadata": lambda node: log(node, "orders4-0", "partition.metadata").unlink(),
        "lost+found": lambda node: (node.log_dirs[1] / "lost+found").mkdir(),
        "a partition twice": twice,
        "another cluster.id in one directory": lambda node: meta(node, "cluster.id", "AAAAAAAAAAAAAAAAAAAAAw"),
        "another node.id in one directory": lambda node: meta(node, "node.id", "7"),
        "a cloned disk": cloned,
        "an index removed": lambda node: log(node, "orders5-0", f"{SEGMENT}.index").unlink(),
        "malformed recovery points": lambda node: write_text(
            node.log_dirs[1] / "recovery-point-offset-checkpoint", "0\n3\norders0 0 5\n"
        ),
    }
    if is_kraft:
        found |= {f"node: {name}": edit for name, edit in node_edits().items()}
        found |= {f"setting: {name}": edit for name, edit in setting_edits().items()}
        found |= {f"odd: {name}": edit for name, edit in odd_edits().items()}
        found |= {f"small: {name}": edit for name, edit in small_edits().items()}
        found |= {f"restored: {name}": edit for name, edit in restored_edits().items()}
    found |= {f"further: {name}": edit for name, edit in further_edits().items()}
    found |= {f"joint: {name}": edit for name, edit in joint_edits(is_kraft=is_kraft).items()}
    found |= {f"rare: {name}": edit for name, edit in rare_edits(is_kraft=is_kraft).items()}
    if not is_kraft:
        # Directories of such a broker have the same meta.properties; with two ids they are of two brokers for all that files say. Not every log has a topic id.
        for name in ("a cloned disk", "no partition.metadata", "another node.id in one directory"):
            del found[name]
    return found


def prepare(node: Node, *options: str) -> None:
    """Start a new node, write to its topics, stop it cleanly.

    Args:
        options: of `kafka-storage format`.
    """
    node.home.mkdir(parents=True)
    node.format(*options)
    process = node.start()
    try:
        wait_until(
            lambda: STARTED.search(node.console()) is not None or process.poll() is not None, "a start", START_SECONDS
        )
        for topic in (*TOPICS, AGED):
            create_topic(node.ports[0], topic, (1,), {}, has_v2=True)
        for topic in (*TOPICS, AGED):
            wait_until(partial(leads, node.ports[0], topic), f"a leader of {topic}", START_SECONDS)
            for count in (3, 1, 5):
                behind_ms = AGE_MS if topic == AGED else 0
                produce(node.ports[0], topic, [(b"k", b"v" * 200)] * count, has_v3=True, behind_ms=behind_ms)
    finally:
        node.end(process, cleanly=True)


def leads(port: int, topic: str) -> bool:
    """Whether node 1 leads the only partition of a topic."""
    try:
        return ask_metadata(port, topic).leader == 1
    except (OSError, RefusedError):
        return False


@dataclass
class Trees:
    """Files of partition directories with their sizes, by directory: once all logs are loaded, and at the end of the watch."""

    loaded: dict[str, dict[str, int]]
    watched: dict[str, dict[str, int]]


def predicted(node: Node) -> dict[str, Any]:
    """What `kforensics predict` says of the first start."""
    nodes = [node, *([] if node.controller is None else [node.controller])]
    inputs = [str(place) for one in nodes for place in (one.home, one.properties())]
    done = subprocess.run(
        [sys.executable, "-m", "kforensics", "predict", *inputs, "--kafka", node.kafka, "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    if not done.stdout:
        raise RuntimeError(done.stderr)
    document = json.loads(done.stdout)
    if "starts" not in document and "are of 2 clusters" in document["answer"]["headline"]:
        nothing: dict[str, Any] = {"is_open": True, "exception": ""}
        return nothing | {"controller": nothing, "state": "refused", "headline": document["answer"]["headline"]}
    if "starts" not in document:
        raise RuntimeError(document.get("error", document))
    homes = [_home_of(document, start, nodes) for start in document["starts"]]
    firsts = dict(reversed([*zip(homes, document["starts"], strict=True)]))
    start = firsts[node.home]
    logs = [
        log
        for log in document["logs"]
        if log["start"] == 1 and log["after"] and _home_of(document, log, nodes) == node.home
    ]
    loaded = {
        f"a stray of {_called(Path(log['path']).name)}"
        if log["becomes"] == "stray"
        else _in_disk(f"{document['inputs'][log['input']]['path']}/{log['path']}"): [
            log["after"]["log_start_offset"],
            log["after"]["log_end_offset"],
        ]
        for log in logs
    }
    served = [log for log in logs if log["becomes"] == "kept"] if start["outcome"] == "starts" else []
    folders = {Path(log["path"]).name: Path(document["inputs"][log["input"]]["path"]) / log["path"] for log in served}
    trees = Trees({}, {})
    for log in served:
        name = Path(log["path"]).name
        tree = _played(files_of(folders[name]), log["files"])
        trees.loaded[name] = tree
        trees.watched[name] = _watched(tree, log)
    return {
        "outcome": start["outcome"],
        "loaded": loaded if start["loads_logs"] else {},
        "scanned": start["logs_scanned"] if start["loads_logs"] else 0,
        "strays": sorted(
            _called(Path(log["path"]).name) for log in logs if log["becomes"] == "stray" and start["loads_logs"]
        ),
        "left_open": {_called(Path(log["path"]).name) for log in logs if log["becomes"] == "unknown"},
        "exception": start["exception"] or "",
        "controller": firsts[node.controller.home] if node.controller is not None else None,
        "is_open": start["outcome"] is None or bool(document["problems"]) or _CLOSED in document["answer"]["headline"],
        "state": document["answer"]["state"],
        "headline": document["answer"]["headline"],
        "said": json.dumps(document["answer"]) + json.dumps(document["findings"]),
        "aged": sum(len(log["retention"]["segments"]) for log in served if log["retention"]),
        "trees": trees,
    }


def _called(name: str) -> str:
    """Return what Kafka calls the log in a directory: without what a rename adds and cuts off, and the partition as a plain number."""
    topic, _, number = re.sub(r"\.[^.]*-(?:stray|delete|future)$", "", name).rpartition("-")
    return f"{topic[:200]}-{int(number)}"


def _in_disk(path: str) -> str:
    """Return the names of a log directory and of the directory of a log in it."""
    return "/".join(Path(path).parts[-2:])


def _home_of(document: dict[str, Any], one: dict[str, Any], nodes: Sequence[Node]) -> Path:
    path = Path(document["inputs"][one["input"]]["path"])
    return next(node.home for node in nodes if path.is_relative_to(node.home))


def files_of(folder: Path) -> dict[str, int]:
    """Size of each file; the epoch file, to which a leader adds its epoch, only by name."""
    return {
        path.name: 0 if path.name == EPOCH_FILE or not path.exists() else path.stat().st_size
        for path in folder.iterdir()
        if path.suffix != ".tmp"  # a file that is being written
    }


def _played(tree: dict[str, int], files: list[dict[str, Any]]) -> dict[str, int]:
    """Return the tree after what is predicted of each file."""
    after = dict(tree)
    for change in files:
        length = after.pop(change["name"], 0)
        if change["action"] != "delete":
            name = change["to_name"] if change["action"] == "rename" else change["name"]
            kept = change["to_bytes"] if isinstance(change["to_bytes"], int) else length
            after[name] = 0 if name == EPOCH_FILE else kept
    return after


def _watched(tree: dict[str, int], log: dict[str, Any]) -> dict[str, int]:
    """Return the segments once retention has run and what is marked as deleted is gone."""
    segments = {name: size for name, size in tree.items() if name.endswith(".log")}
    if log["retention"]:
        for base in log["retention"]["segments"]:
            del segments[f"{base:020d}.log"]
        if log["retention"]["whole_log"]:
            segments[f"{log['after']['log_end_offset']:020d}.log"] = 0
    return segments


def observed(node: Node, watch_seconds: int = 0) -> dict[str, Any]:
    """What a broker does; it is killed once it has started, or after the watch."""
    before = {entry.name for one in node.log_dirs if one.is_dir() for entry in one.iterdir()}
    held = {name for name, files in _partition_files(node).items() if any(map(_is_filled, files.items()))}
    process = node.start()
    began = time.monotonic()
    trees = Trees({}, {})
    unled: list[str] = []
    try:
        while process.poll() is None and not STARTED.search(node.console()):
            # Brokers of 3.3 may hang in the shutdown that a fatal fault begins.
            if time.monotonic() > began + (FAULT_SECONDS if _FAULT.search(node.console()) else START_SECONDS):
                break
            time.sleep(0.5)
        if process.poll() is None:
            time.sleep(3)  # an offline directory ends the node a moment after it has started
            trees.loaded = _partition_files(node)
            is_asked = node.is_kraft and STARTED.search(node.console()) is not None
            unled = [topic for topic in (*TOPICS, AGED) if is_asked and not leads(node.ports[0], topic)]
            began = time.monotonic()
        while process.poll() is None and time.monotonic() < began + watch_seconds:
            time.sleep(1)
        trees.watched = _partition_files(node)
        ended = process.poll()
        beside = node.controller_process
        of_controller = None
        if node.controller is not None and beside is not None:
            # One of 3.3 hangs in the shutdown that a fatal fault begins.
            is_ended = beside.poll() is not None or _FAULT.search(node.controller.console())
            of_controller = "exits" if is_ended else "starts"
    finally:
        node.end(process)
    console = node.console()
    # Of a directory that is renamed the line has the new name.
    loaded = {
        _in_disk(match["dir"]) if (name := Path(match["dir"]).name) in before else f"a stray of {_called(name)}": [
            int(match["start"]),
            int(match["end"]),
        ]
        for match in _LOADED.finditer(console)
        if "__cluster_metadata" not in match["dir"]
    }
    is_offline = any(
        line in console for line in ("Stopping serving replicas in dir", "Failed to create or validate data directory")
    )
    strays = [
        _called(entry.name)
        for one in node.log_dirs
        if one.is_dir()
        for entry in one.iterdir()
        if entry.name.endswith("-stray") and entry.name not in before
    ]
    # A log and its copy on another disk have one name.
    scanned = {match.groups() for match in _SCANNED.finditer(console) if match["name"] != "__cluster_metadata-0"}
    return {
        "outcome": "exits"
        if ended is not None or not STARTED.search(console)
        else "dir-offline"
        if is_offline
        else "starts",
        "loaded": loaded,
        "scanned": len(scanned),
        "strays": sorted(strays),
        "aged": len(set(_AGED.findall(console))),
        "trees": trees,
        "unled": unled,
        "controller": of_controller,
        "emptied": sorted(
            name
            for name in ({f"{topic}-0" for topic in (*TOPICS, AGED)} | {name for name in held if "." not in name})
            & trees.loaded.keys()
            if not any(map(_is_filled, trees.loaded[name].items()))
        ),
    }


def _is_filled(file: tuple[str, int]) -> bool:
    return file[0].endswith(".log") and file[1] > 0


def _partition_files(node: Node) -> dict[str, dict[str, int]]:
    folders = [path for one in node.log_dirs if one.is_dir() for path in one.iterdir() if path.is_dir()]
    return {path.name: files_of(path) for path in folders if path.name != "__cluster_metadata-0"}


def differences(told: dict[str, Any], seen: dict[str, Any], *, is_watched: bool = False) -> list[str]:
    """Where they differ; logs that a failing start did not come to are not compared, nor what is not predicted."""
    if told["is_open"]:
        return []
    strays = {*seen["strays"]} - told["left_open"]
    # One that fails has not come to all of them.
    if seen["outcome"] == "exits" and strays <= {*told["strays"]}:
        strays = {*told["strays"]}
    seen = {**seen, "strays": sorted(strays)}
    keys = ["outcome", "strays"]
    if seen["outcome"] == "starts":
        keys += ["scanned", "aged"] if is_watched else ["scanned"]
    out = [f"{key}: {told[key]} predicted, {seen[key]} seen" for key in keys if told[key] != seen[key]]
    told_of = told["controller"] and told["controller"]["outcome"]
    if told_of is not None and told_of != seen["controller"]:
        out.append(f"controller: {told_of} predicted, {seen['controller']} seen")
    for name, ends in seen["loaded"].items():
        if name in told["loaded"] and told["loaded"][name] != ends:
            out.append(f"{name}: {told['loaded'][name]} predicted, {ends} seen")
        elif (
            name not in told["loaded"] and _called(Path(name.removeprefix("a stray of ")).name) not in told["left_open"]
        ):
            out.append(f"{name}: not predicted to load, {ends} seen")
    if seen["outcome"] == "starts":
        out += [f"{name}: predicted to load, not seen" for name in told["loaded"] if name not in seen["loaded"]]
        # A future log is copied on at once, and replaces its log once it has caught up.
        moving = {name.partition(".")[0] for name in told["trees"].loaded if name.endswith("-future")}
        # Of what nobody leads no index is opened, which makes it as large as it may be.
        unled = {f"{topic}-0" for topic in seen["unled"]}
        still = {
            name: tree
            for name, tree in told["trees"].loaded.items()
            if name.partition(".")[0] not in moving and name not in unled
        }
        out += _tree_differences(still, seen["trees"].loaded)
        silent = [one for one in seen["emptied"] if one not in told["said"]]
        if silent and told["state"] in CALM:
            out.append(f"{', '.join(silent)} served empty, and nothing said of it")
        silent = [one for one in seen["unled"] if one not in told["said"]]
        if silent and told["state"] in CALM:
            out.append(f"{', '.join(silent)} without a leader, and nothing said of it")
        if is_watched:
            segments = {
                name: {file: size for file, size in files.items() if file.endswith((".log", ".deleted"))}
                for name, files in seen["trees"].watched.items()
            }
            out += [f"at the end, {words}" for words in _tree_differences(told["trees"].watched, segments)]
    return out


def _tree_differences(told: dict[str, dict[str, int]], seen: dict[str, dict[str, int]]) -> list[str]:
    return [
        f"{name}/{file}: {files.get(file)} bytes predicted, {seen.get(name, {}).get(file)} seen"
        for name, files in told.items()
        for file in sorted({*files, *seen.get(name, {})})
        if files.get(file) != seen.get(name, {}).get(file)
        # Before 3.7 a leader writes the topic id where none is.
        and not (file == METADATA_FILE and file not in files)
    ]


def main() -> int:
    """Try each edit and print what came of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kafka", default="4.1.0")
    parser.add_argument("--jars", default=None)
    parser.add_argument("--only", default="", metavar="PATTERN", help="edits whose names match")
    parser.add_argument("--skip", type=int, default=0, metavar="COUNT", help="leave out the first edits")
    parser.add_argument("--watch", type=int, default=0, metavar="SECONDS", help="look again so long after the start")
    parser.add_argument("--keep", type=Path, default=None, help="a folder for the nodes that differ")
    parser.add_argument("--edit", choices=("node", "broker", "controller"), default="node", help="of two nodes: which")
    parser.add_argument("--dynamic", action="store_true", help="voters in the metadata log (KIP-853, 3.9)")
    parser.add_argument("--made-by", default=None, metavar="VERSION", help="the release that wrote the directories")
    parser.add_argument("--release", default=None, metavar="VERSION", help="--release-version of kafka-storage format")
    given = parser.parse_args()
    jars = given.jars or jars_of(given.kafka)
    maker = given.made_by or given.kafka
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as work:
        made_with = jars_of(maker) if given.made_by else jars
        base = Node(maker, made_with, Path(work) / "base", free_ports(2), {"log.retention.ms": -1})
        if given.edit != "node":
            base = base.with_own_controller(is_dynamic=given.dynamic)
        prepare(base, *(["--release-version", given.release] if given.release else []))
        if given.watch:
            base.settings.clear()
        for one in (base, base.controller):
            if one is not None:
                one.kafka, one.jars = given.kafka, jars

        chosen = [(name, edit) for name, edit in edits(is_kraft=base.is_kraft).items() if re.search(given.only, name)]
        made = partial(_edited, base, Path(work), is_controller=given.edit == "controller")
        odd = 0
        # The next one is edited and predicted while a broker runs.
        with ThreadPoolExecutor(1) as pool:
            coming = [pool.submit(made, *chosen[given.skip])] if chosen[given.skip :] else []
            for at, (name, _) in enumerate(chosen[given.skip :], given.skip + 1):
                found = coming.pop().result()
                coming += [pool.submit(made, *one) for one in chosen[at : at + 1]]
                odd += found is not None and _tried(name, *found, given.watch, given.keep)
        return odd


def _edited(
    base: Node, work: Path, name: str, edit: Callable[[Node], object], *, is_controller: bool
) -> tuple[Node, dict[str, Any] | str] | None:
    """Return an edited copy with what is predicted of it, or why nothing is; nothing where there is nothing to edit."""
    # The addresses of voters that the metadata log names stay, as those of a node that is started again do.
    is_named = bool(base.settings.get("controller.quorum.bootstrap.servers"))
    node = base.copied_to(work / re.sub(r"\W", "-", name), base.ports if is_named else free_ports(2))
    try:
        edit(node.controller if is_controller and node.controller is not None else node)
    except (ValueError, IndexError, StopIteration, OSError):
        return None
    try:
        return node, predicted(node)
    except (RuntimeError, KeyError, LookupError) as error:
        return node, repr(error)


def _is_named(exception: str, console: str) -> bool:
    # Of one that has taken a directory offline only the cause is logged, and of a registration that is refused the error's name.
    shown = {"KafkaStorageException": "LogDirFailureChannel"}
    for one in UNREGISTERED:
        shown[one] = re.sub("(?<=[a-z])(?=[A-Z])", "_", one.removesuffix("Exception")).upper()
    return exception in console or shown.get(exception, exception) in console


def _tried(name: str, node: Node, told: dict[str, Any] | str, watch_seconds: int, keep: Path | None) -> bool:
    """Start a node, print how that differs from what was predicted, and return whether it does."""
    if isinstance(told, str):
        print(f"{name}: predict ended with {told}", flush=True)
        return True
    seen = observed(node, watch_seconds)
    odd = differences(told, seen, is_watched=bool(watch_seconds))
    what = f"{seen['outcome']}, {len(seen['loaded'])} logs loaded, {seen['scanned']} scanned"
    ends = [(node, told["exception"], seen["outcome"])]
    if node.controller is not None:
        what = f"controller {seen['controller']}, {what}"
        ends.append((node.controller, told["controller"]["exception"], seen["controller"]))
    for one, exception, outcome in ends:
        if not told["is_open"] and outcome == "exits" and not _is_named(f"{exception}", one.console()):
            odd.append(f"{exception or 'no exception'} predicted, it is not in the log of node {one.node_id}")
    beside = "".join(f"; {key}: {', '.join(seen[key])}" for key in ("strays", "unled", "emptied") if seen[key])
    result = "; ".join(odd) or ("not predicted" if told["is_open"] else "as predicted")
    print(f"{name}: {what}{beside}; {told['state']}: {told['headline']}")
    print(f"{name}: {what}; {result}", flush=True)
    for one, _, _ in ends:
        if keep and (odd or told["is_open"]):
            shutil.copytree(
                one.home, keep / re.sub(r"\W", "-", name) / one.home.name, symlinks=True, dirs_exist_ok=True
            )
        shutil.rmtree(one.home)
    return bool(odd)


if __name__ == "__main__":
    sys.exit(main())
