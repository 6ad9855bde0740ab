"""Directories that the simulator writes, loaded by a real broker: it finds nothing to recover, and what the truth file says."""

import json
import re
import shutil
import socket
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from kforensics.cli.app import run
from tests.oracle.cluster import BROKERS, CONTROLLER, Cluster, run_cluster, wait_until
from tests.oracle.jars import RELEASES, Release

pytestmark = pytest.mark.oracle

_PROTOCOLS = {"0.10.2.2": "hw", "1.1.1": "kip-101", "2.5.1": "kip-279", "4.1.0": "kip-595"}
_CHECKS_CLUSTER_ID = {"2.5.1"}
"""Releases that ask ZooKeeper whether the directories are of its cluster."""
_MANY_SEGMENTS = (
    """\
name: many-segments
brokers: [1, 2]
settings: {unclean_leader_election: true}
steps:
"""
    + """\
  - produce: {count: 5000}
  - fetch: 2
  - fetch: 2
"""
    * 40
    + """\
  - produce: {count: 5000, acks: 1}
  - crash: 1
  - produce: {count: 5000}
  - start: 1
  - fetch: 1
  - fetch: 1
"""
)
_STORIES = {
    "unclean-election": ("unclean-election",),
    "isr-lag-messages": ("isr-lag-messages",),
    "many-segments": ("many-segments.yaml",),
    "random": ("--random", "--seed", "4711", "--brokers", "2", "--partitions", "3"),
    "random-again": ("--random", "--seed", "40", "--brokers", "2", "--partitions", "3"),
}
_LOADED = (
    re.compile(r"Completed load of log (?P<partition>\S+) with (?P<segments>\d+) log segments and log end offset (?P<end>\d+)"),
    re.compile(r"\[Log partition=(?P<partition>[^,]+), .*\] Completed load of log with (?P<segments>\d+) segments, .*log end offset (?P<end>\d+)"),
    re.compile(r"Completed load of Log\(dir=\S+/(?P<partition>[^/,]+), .*logEndOffset=(?P<end>\d+)\) with (?P<segments>\d+) segments"),
)  # fmt: skip
_TROUBLE = re.compile(
    r"[Cc]orrupt|Recovering unflushed|Recovering \d+ logs|Attempting recovery|rebuilding index|Rebuilding|unclean shutdown"
    r"|no clean shutdown|Found log file|\bERROR\b|\bFATAL\b|stray"
)
_ROLE = re.compile(
    r"(?:Leader|Follower) (?P<partition>\S+) .*starts at leader epoch (?P<epoch>\d+) from offset (?P<end>\d+)"
)
_QUORUM_LOG = "__cluster_metadata-0"
_USUAL = re.compile(rf"Recovering unflushed segment 0\. \d+(?:/\d+)? recovered for {_QUORUM_LOG}\.")
"""What a broker says of the metadata log at every start, whatever was stopped how: it is opened as after a crash."""
_EPOCH_STARTS = re.compile(r"(?P<epoch>\d+) (?P<start>\d+)")


@dataclass(frozen=True, slots=True)
class Expected:
    """What the truth file says of a replica."""

    log_end_offset: int
    leader_epoch: int
    epochs: tuple[tuple[int, int], ...]
    """Without those that begin at the log end: every load drops them."""


class WrittenCluster(Cluster):
    """Brokers on directories that were written for them."""

    def __init__(self, release: Release, folder: Path, written: Path) -> None:
        super().__init__(release, folder, 1_000)
        self.written = written
        identity = (written / f"broker-{BROKERS[0]}" / "meta.properties").read_text()
        found = re.search(r"^cluster\.id=(.*)$", identity, re.MULTILINE)
        self.cluster_id = found[1].replace("\\", "") if found else ""

    def load(self) -> None:
        """Start everything until the brokers have loaded their logs."""
        for node in (CONTROLLER, *BROKERS):
            self._prepare(node)
        self.start(CONTROLLER)
        if self.release.version in _CHECKS_CLUSTER_ID:
            self._name_cluster()
        for node in BROKERS:
            self.start(node)
            wait_until(partial(self._is_up, node), f"broker {node}")

    def _name_cluster(self) -> None:
        address = f"127.0.0.1:{self.ports[CONTROLLER]}"
        wait_until(partial(_listens, self.ports[CONTROLLER]), "ZooKeeper")
        identity = json.dumps({"version": "1", "id": self.cluster_id}, separators=(",", ":"))
        for path, value in (("/cluster", "{}"), ("/cluster/id", identity)):
            self._run(CONTROLLER, "org.apache.zookeeper.ZooKeeperMain", "-server", address, "create", path, value)

    def _is_up(self, node: int) -> bool:
        assert self.processes[node].poll() is None, self.server_log(node).read_text()[-3_000:]
        log = self.server_log(node)
        return log.exists() and re.search(r"started \(kafka\.server\.Kafka", log.read_text()) is not None

    def _fill(self, node: int) -> None:
        name = f"controller-{node}" if node == CONTROLLER else f"broker-{node}"
        if node == CONTROLLER and not self.release.is_kraft:
            self.data(node).mkdir()
        else:
            shutil.copytree(self.written / name, self.data(node))


@pytest.mark.parametrize("release", [one for one in RELEASES if one.is_kraft], ids=lambda one: one.version)
def test_a_broker_says_the_usual_of_directories_of_its_own(release: Release, tmp_path: Path) -> None:
    """The control: what is excused in written directories is said of a broker's own too, and nothing else."""
    with run_cluster(release, tmp_path / "cluster", mark_interval_ms=1_000) as cluster:
        cluster.write(3, 3)
        cluster.stop(BROKERS[1])
        position = cluster.server_log(BROKERS[1]).stat().st_size
        cluster.start(BROKERS[1])
        cluster.wait_in_sync()
        cluster.stop(BROKERS[1])
        lines = cluster.server_log(BROKERS[1]).read_bytes()[position:].decode().splitlines()
    assert [line for line in lines if _USUAL.search(line)]
    assert _trouble(lines) == []


@pytest.mark.parametrize("incident", _STORIES)
@pytest.mark.parametrize("release", [one for one in RELEASES if one.version in _PROTOCOLS], ids=lambda one: one.version)
def test_brokers_load_written_directories_without_recovery(
    release: Release,
    incident: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = tmp_path / "written"
    (tmp_path / "many-segments.yaml").write_text(_MANY_SEGMENTS)
    monkeypatch.chdir(tmp_path)
    given = [*_STORIES[incident], "--stop", "--protocol", _PROTOCOLS[release.version], "--write", str(written)]
    assert run(["simulate", *given]) == 0
    expected = _expected(written)
    cluster = WrittenCluster(release, tmp_path / "cluster", written)
    try:
        cluster.load()
        for node in BROKERS:
            cluster.stop(node)
    finally:
        cluster.kill_everything()
    for node in BROKERS:
        lines = cluster.server_log(node).read_text().splitlines()
        assert _trouble(lines) == []
        assert _lengthened(written / f"broker-{node}", cluster.data(node)) == []
        assert _loaded(lines) == {name: one.log_end_offset for name, one in expected[node].items()}
        if release.is_kraft and node == BROKERS[0]:
            # It is alone when it reads the metadata log, so what it is told first is what was written.
            assert _roles(lines) == {
                name: (one.leader_epoch, one.log_end_offset) for name, one in expected[node].items()
            }
        for name, one in expected[node].items():
            if release.has_epochs:
                assert _epochs(cluster.data(node) / name)[: len(one.epochs)] == one.epochs
    capsys.readouterr()
    assert run(["verify", *(str(cluster.data(node)) for node in BROKERS)]) == 0
    assert capsys.readouterr().out.startswith("Sound: ")


def _trouble(lines: list[str]) -> list[str]:
    return [line for line in lines if _TROUBLE.search(line) and not _USUAL.search(line)]


def _lengthened(before: Path, after: Path) -> list[str]:
    """The segments, those of the metadata log included, that are not what was written with something behind it."""
    changed = []
    for segment in before.rglob("*.log"):
        now = after / segment.relative_to(before)
        is_kept = now.is_file() and now.read_bytes().startswith(segment.read_bytes())
        changed += [] if is_kept else [str(segment.relative_to(before))]
    return changed


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def _expected(written: Path) -> dict[int, dict[str, Expected]]:
    truth = json.loads((written / "truth.json").read_text())
    out: dict[int, dict[str, Expected]] = {node: {} for node in BROKERS}
    for partition in truth["partitions"]:
        for replica in partition["replicas"]:
            end = replica["log_end_offset"]
            epochs = tuple((epoch, start) for epoch, start in replica["epochs"] if start < end)
            name = f"{partition['topic']}-{partition['partition']}"
            out[replica["broker_id"]][name] = Expected(end, partition["leader_epoch"], epochs)
    return out


def _loaded(lines: list[str]) -> dict[str, int]:
    """The log end offset that each partition was loaded with."""
    found = (match for line in lines for pattern in _LOADED if (match := pattern.search(line)))
    return {match["partition"]: int(match["end"]) for match in found if not match["partition"].startswith("__")}


def _roles(lines: list[str]) -> dict[str, tuple[int, int]]:
    """The leader epoch and log end offset with which each partition was first led or followed."""
    roles: dict[str, tuple[int, int]] = {}
    for line in lines:
        if match := _ROLE.search(line):
            roles.setdefault(match["partition"], (int(match["epoch"]), int(match["end"])))
    return roles


def _epochs(folder: Path) -> tuple[tuple[int, int], ...]:
    """The epochs that the broker wrote down when it stopped."""
    lines = (folder / "leader-epoch-checkpoint").read_text().splitlines()[2:]
    matches = (_EPOCH_STARTS.fullmatch(line) for line in lines)
    return tuple((int(match["epoch"]), int(match["start"])) for match in matches if match)
