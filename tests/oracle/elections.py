"""The order in which to start a stopped cluster and the elections it needs, by `predict --order`, followed with real brokers.

Run by hand (Java 17, Maven):

    python -m tests.oracle.elections [--kafka 4.1.0] [--kafka 2.8.1]

Three brokers hold three topics with one partition each. Two are killed one after the other while the third is written to; then that one is killed too, and one of its logs loses its end.
The brokers are started in the order that `predict --order` gives, and when one runs, its object of `elections_by_leader` goes to `kafka-leader-election.sh --election-type unclean`. Then each
topic must be led by the broker that was named, and have lost the records that were said. Then the same disks again the other way round: the last broker of the order first and elected everywhere,
which must lose what `firsts` says of it.
"""

import argparse
import io
import json
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

from kforensics.cli.app import run
from tests.oracle.client import Metadata, RefusedError, ask_controller, ask_metadata, create_topic, produce
from tests.oracle.cluster import CONTROLLER, WAIT_SECONDS, Cluster, free_ports, wait_until
from tests.oracle.jars import RELEASES, Release
from tests.salvaged import _records

BROKERS = (1, 2, 3)
TOPICS = ("damaged", "payments", "orders")
TOOLS = ("org.apache.kafka.tools.LeaderElectionCommand", "kafka.admin.LeaderElectionCommand")


class Stopped(Cluster):
    """A cluster of three brokers, where no election is unclean that was not asked for."""

    def __init__(self, release: Release, folder: Path) -> None:
        super().__init__(release, folder, mark_interval_ms=1_000)
        self.ports = dict(zip((*BROKERS, CONTROLLER), free_ports(len(BROKERS) + 1), strict=True))

    def make(self) -> None:
        """Start everything, and write until all but the first broker are behind; then everything is stopped."""
        for node in (CONTROLLER, *BROKERS):
            self._prepare(node)
            self.start(node)
        for topic in TOPICS:
            wait_until(partial(self._create, topic), f"topic {topic}")
        for dead, alive in ((3, {1, 2, 3}), (2, {1, 2}), (1, {1})):
            wait_until(partial(self.are_in_sync, alive), f"in sync: {alive}")
            for topic in TOPICS:
                wait_until(partial(self._append, topic, 1 + dead), f"records in {topic}")
            if dead == 1:
                time.sleep(2)
            self.kill(dead)
        self.kill_everything()

    def _broker_settings(self, node: int) -> dict[str, object]:
        return {**super()._broker_settings(node), "unclean.leader.election.enable": "false"}

    def _controller_settings(self) -> dict[str, object]:
        settings = super()._controller_settings()
        return settings | ({"unclean.leader.election.enable": "false"} if self.release.is_kraft else {})

    def _create(self, topic: str) -> bool:
        try:
            controller = ask_controller(self.ports[1])
            create_topic(
                self.ports[controller], topic, BROKERS, {"min.insync.replicas": "1"}, has_v2=self.release.has_epochs
            )
        except (OSError, RefusedError, KeyError):
            return self.asked(topic) is not None
        return True

    def asked(self, topic: str) -> Metadata | None:
        """What a running broker says of a topic; none while none does."""
        for node in BROKERS:
            if node in self.processes:
                try:
                    return ask_metadata(self.ports[node], topic)
                except (OSError, RefusedError):
                    continue
        return None

    def are_in_sync(self, brokers: set[int]) -> bool:
        """Whether exactly these brokers are in sync in every topic."""
        return all((said := self.asked(topic)) is not None and said.in_sync == brokers for topic in TOPICS)

    def _append(self, topic: str, count: int) -> bool:
        said = self.asked(topic)
        if said is None or said.leader not in self.processes:
            return False
        names = [f"{topic}-{self.records_written + at}".encode() for at in range(count)]
        self.records_written += count
        try:
            for name in names:
                produce(self.ports[said.leader], topic, [(name, name)], has_v3=self.release.has_epochs)
        except (OSError, RefusedError):
            return False
        return True

    def elect(self, elections: dict[str, Any], broker: int) -> str:
        """Give elections to Kafka's tool; what it prints."""
        file = self.folder / "elections.json"
        file.write_text(json.dumps(elections))
        tool = TOOLS[0] if self.release.is_kraft else TOOLS[1]
        arguments = ["--bootstrap-server", f"127.0.0.1:{self.ports[broker]}", "--election-type", "unclean"]
        done = subprocess.run(
            [*self._java(broker), tool, *arguments, "--path-to-json-file", str(file)],
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
            check=False,
        )
        return done.stdout + done.stderr

    def is_led_by(self, topic: str, broker: int) -> bool:
        """Whether a broker leads a topic now."""
        said = self.asked(topic)
        return said is not None and said.leader == broker

    def held(self) -> dict[str, dict[int, set[tuple[int, bytes]]]]:
        """Offsets and keys of every topic's records, by broker; of a stopped cluster."""
        found: dict[str, dict[int, set[tuple[int, bytes]]]] = {topic: {} for topic in TOPICS}
        for broker in BROKERS:
            for topic in TOPICS:
                logs = sorted((self.data(broker) / f"{topic}-0").glob("*.log"))
                found[topic][broker] = {
                    (content.offset, content.key or b"")
                    for path in logs
                    for content, _, marker in _records(path, topic, 0)
                    if marker is None
                }
        return found


def _predicted(cluster: Stopped) -> dict[str, Any]:
    paths = [str(cluster.data(node)) for node in BROKERS]
    paths += [str(cluster.data(CONTROLLER))] if cluster.release.is_kraft else []
    logs = [str(cluster.server_log(node)) for node in BROKERS]
    out = io.StringIO()
    with redirect_stdout(out):
        run(["predict", *paths, *logs, "--order", "--kafka", cluster.release.version, "--format", "json"])
    return dict(json.loads(out.getvalue())["order"])


def _started(cluster: Stopped, order: list[int], elections: dict[int, dict[str, Any]]) -> dict[str, int]:
    """Start the brokers one by one, with an election when each runs; the leaders then."""
    cluster.start(CONTROLLER)
    for broker in order:
        cluster.start(broker)
        wait_until(partial(_answers, cluster, broker), f"broker {broker}")
        time.sleep(3)
        if broker in elections:
            print(f"  broker {broker} runs; the tool: {cluster.elect(elections[broker], broker).strip()}", flush=True)
    leaders: dict[str, int] = {}
    wait_until(lambda: cluster.are_in_sync(set(BROKERS)), "all in sync")
    for topic in TOPICS:
        said = cluster.asked(topic)
        leaders[topic] = -1 if said is None else said.leader
    time.sleep(2)
    for node in (*BROKERS, CONTROLLER):
        cluster.stop(node)
    return leaders


def _answers(cluster: Stopped, broker: int) -> bool:
    try:
        ask_metadata(cluster.ports[broker], TOPICS[0])
    except (OSError, RefusedError):
        return False
    return True


def _lost(before: dict[str, dict[int, set[tuple[int, bytes]]]], cluster: Stopped) -> dict[str, int]:
    """Records that a replica held and none holds now, by topic."""
    now = cluster.held()
    return {topic: len(set().union(*before[topic].values()) - set().union(*now[topic].values())) for topic in TOPICS}


def check(release: Release, folder: Path) -> int:
    """How many things came otherwise than was said."""
    cluster = Stopped(release, folder)
    wrong: int = 0
    try:
        cluster.make()
        log = cluster.data(1) / f"{TOPICS[0]}-0" / f"{0:020d}.log"
        content = log.read_bytes()
        log.write_bytes(content[: len(content) // 3])
        before = cluster.held()
        backup = folder.with_name(folder.name + ".backup")
        shutil.copytree(folder, backup)
        order = _predicted(cluster)
        print(f"{release.version}: {json.dumps(order)}", flush=True)
        print("  records:", {topic: {at: len(held) for at, held in by.items()} for topic, by in before.items()})

        by_leader = {one["broker_id"]: one["elections_json"] for one in order["elections_by_leader"]}
        leaders = _started(cluster, order["brokers"], by_leader)
        lost = _lost(before, cluster)
        for one in order["elections"]:
            said = sum(one["committed"].values())
            is_right = leaders[one["topic"]] == one["leader"] and lost[one["topic"]] == said
            wrong += int(not is_right)
            print(
                f"  {'' if is_right else 'WRONG '}{one['topic']}: leader {one['leader']} was said and {leaders[one['topic']]} leads; {said} were to be lost, {lost[one['topic']]} are",
                flush=True,
            )

        shutil.rmtree(folder)
        shutil.copytree(backup, folder)
        last = order["brokers"][-1]
        everything = {"partitions": [{"topic": topic, "partition": 0} for topic in TOPICS]}
        others = [one for one in order["brokers"] if one != last]
        _started(cluster, [last, *others], {last: everything})
        said = next(sum(one["committed"].values()) for one in order["firsts"] if one["broker_id"] == last)
        found = sum(_lost(before, cluster).values())
        wrong += int(found != said)
        print(
            f"  {'' if found == said else 'WRONG '}broker {last} first: {said} were to be lost, {found} are", flush=True
        )
    finally:
        cluster.kill_everything()
    return wrong


def main() -> int:
    """Follow the order with each release; 1 where anything came otherwise."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kafka", action="append", choices=[one.version for one in RELEASES])
    given = parser.parse_args()
    wrong: int = 0
    for version in given.kafka or ["4.1.0", "2.8.1"]:
        release = next(one for one in RELEASES if one.version == version)
        with tempfile.TemporaryDirectory(prefix="elections-") as work:
            wrong += check(release, Path(work) / "cluster")
    print(f"{wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
