"""Record `fixtures/coordinators/retention-3.9`: what retention, requests, tools and age do to the positions of groups, on one node of Kafka 3.9.1.

Run by hand: `python -m tests.oracle.retention TARGET.tar.xz` (Java 17, Maven, and confluent-kafka in the environment). Each act is in `incident.json` with what the client or the
tool answered; directories are copied with the node stopped.
"""

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from tests.oracle.cluster import _LOG4J_1, BROKER_OPTIONS, free_ports, wait_until
from tests.oracle.jars import Release, class_path

RELEASE = Release(
    "3.9.1", "2.13", ("org.slf4j:slf4j-reload4j:1.7.36", "org.apache.kafka:kafka-tools:3.9.1"), is_kraft=True
)
CLUSTER_ID = "RetentionAndGroups0000"
DAY_MS = 86_400_000
FUTURE_MS = 1_935_000_000_000
RecorderT = TypeVar("RecorderT", bound="Recorder")
TOPICS = ("timed", "sized", "asked", "future", "zeroed", "kept")


class Recorder:
    """One node, its clients, and what was done."""

    def __init__(self, home: Path) -> None:
        self.home, self.acts = home, list[dict[str, Any]]()
        self.port, self.controller = free_ports(2)
        self.jars = class_path(RELEASE)
        self.logs = home / "logs" / "broker-1"
        self.logs.mkdir(parents=True)
        self.server = f"127.0.0.1:{self.port}"
        (home / "log4j.properties").write_text(_LOG4J_1.format(file=self.logs / "server.log"))
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller}",
            "listeners": f"PLAINTEXT://{self.server},CONTROLLER://127.0.0.1:{self.controller}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": home / "data",
            "offsets.topic.num.partitions": 1,
            "offsets.topic.replication.factor": 1,
            "offsets.retention.minutes": 1,
            "offsets.retention.check.interval.ms": 1000,
            "log.retention.check.interval.ms": 1000,
            "log.initial.task.delay.ms": 500,
            "log.segment.delete.delay.ms": 1000,
            "log.index.size.max.bytes": 4096,
            "group.initial.rebalance.delay.ms": 0,
            "message.timestamp.after.max.ms": 9_223_372_036_854_775_807,
        }
        self.properties = home / "server.properties"
        self.properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        self.process: subprocess.Popen[bytes] | None = None

    def java(self, main: str, *words: str) -> list[str]:
        return [
            "java",
            *BROKER_OPTIONS,
            f"-Dlog4j.configuration=file:{self.home}/log4j.properties",
            "-cp",
            self.jars,
            main,
            *words,
        ]

    def act(self, what: str, **told: Any) -> None:
        self.acts.append({"time_ms": int(time.time() * 1000), "act": what, **told})

    def format(self) -> None:
        words = ["format", "-t", CLUSTER_ID, "-c", str(self.properties)]
        subprocess.run(self.java("kafka.tools.StorageTool", *words), check=True, capture_output=True)
        (self.logs / "server.log").unlink(missing_ok=True)

    def start(self) -> None:
        self.process = subprocess.Popen(
            self.java("kafka.Kafka", str(self.properties)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        from confluent_kafka.admin import AdminClient

        self.admin = AdminClient({"bootstrap.servers": self.server, "log_level": 0})

        def is_there() -> bool:
            try:
                return bool(self.admin.list_topics(timeout=2).brokers)
            except Exception:  # noqa: BLE001 - it does not answer yet
                return False

        wait_until(is_there, "the node")
        self.act("start")

    def stop(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(45)
        self.act("stop")

    def copy(self, name: str) -> None:
        shutil.copytree(self.home / "data", self.home / "snapshots" / name / "broker-1")

    def produce(self, topic: str, count: int, *, stamp_ms: int = -1) -> None:
        from confluent_kafka import Producer

        answers: list[dict[str, Any]] = []

        def told(error: object, message: Any) -> None:
            answers.append({"offset": message.offset(), "error": None if error is None else str(error)})

        producer = Producer({"bootstrap.servers": self.server, "acks": "all", "linger.ms": 0, "log_level": 0})
        for at in range(count):
            stamp = {} if stamp_ms < 0 else {"timestamp": stamp_ms + at}
            producer.produce(topic, key=f"{topic}-{at}", value="v" * 60, on_delivery=told, **stamp)
            producer.flush(20)
        self.act("produced", topic=topic, acknowledged=answers)

    def set_topic(self, topic: str, **settings: object) -> None:
        from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

        entries = [
            ConfigEntry(name.replace("_", "."), str(value), incremental_operation=AlterConfigOpType.SET)
            for name, value in settings.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        for one in self.admin.incremental_alter_configs([resource]).values():
            one.result()
        self.act("settings", topic=topic, **{name: str(value) for name, value in settings.items()})

    def consumer(self, group: str, topics: list[str], *, reset: str = "earliest") -> Any:
        from confluent_kafka import Consumer

        found = Consumer(
            {
                "bootstrap.servers": self.server,
                "group.id": group,
                "auto.offset.reset": reset,
                "enable.auto.commit": False,
                "session.timeout.ms": 6000,
                "log_level": 0,
            }
        )
        if topics:
            found.subscribe(topics)
        return found

    def read(self, consumer: Any, group: str, count: int, *, wait_s: int = 20) -> dict[str, list[int]]:
        """Read so many records of each topic and commit behind them."""
        from confluent_kafka import TopicPartition

        got: dict[str, list[int]] = {}
        until = time.time() + wait_s
        wanted = 1
        while time.time() < until and (not got or min(map(len, got.values())) < count or len(got) < wanted):
            wanted = max(wanted, len(consumer.assignment()))
            message = consumer.poll(0.5)
            if message is None or message.error():
                continue
            if len(got.setdefault(message.topic(), [])) < count:
                got[message.topic()].append(message.offset())
        positions = [TopicPartition(topic, 0, max(offsets) + 1) for topic, offsets in got.items()]
        consumer.commit(offsets=positions, asynchronous=False)
        self.act("read and committed", group=group, offsets=got)
        return got

    def tool(self, *words: str) -> str:
        main = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
        done = subprocess.run(
            self.java(main, "--bootstrap-server", self.server, *words), capture_output=True, text=True, check=False
        )
        self.act("kafka-consumer-groups", words=list(words), printed=done.stdout.strip()[:2000])
        return done.stdout

    def start_of(self, topic: str) -> int:
        consumer = self.consumer("offsets-only", [])
        from confluent_kafka import TopicPartition

        low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=5)
        consumer.close()
        self.act("log start and end", topic=topic, start=low, end=high)
        return int(low)


def record(one: Recorder) -> None:
    from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
    from confluent_kafka.admin import NewTopic

    one.format()
    one.start()
    small = {"segment.bytes": "600", "retention.ms": "-1", "file.delete.delay.ms": "1000"}
    for made in one.admin.create_topics([NewTopic(name, 1, 1, config=small) for name in TOPICS]).values():
        made.result()
    for topic in ("timed", "sized", "asked", "zeroed", "kept"):
        one.produce(topic, 20)
    one.produce("future", 1, stamp_ms=FUTURE_MS)
    one.produce("future", 19, stamp_ms=int(time.time() * 1000) - 10 * DAY_MS)
    old = one.consumer("etl", ["kept"])
    one.read(old, "etl", 15)
    old.close()
    one.act("left", group="etl")
    for group, count in (("by-tool", 12), ("by-api", 12)):
        each = one.consumer(group, ["kept"])
        one.read(each, group, count)
        each.close()
        one.act("left", group=group)
    one.tool("--group", "by-tool", "--topic", "kept", "--reset-offsets", "--to-offset", "4", "--execute")
    altered = ConsumerGroupTopicPartitions("by-api", [TopicPartition("kept", 0, 3)])
    for answer in one.admin.alter_consumer_group_offsets([altered]).values():
        answer.result()
    one.act("alterConsumerGroupOffsets", group="by-api", offset=3)
    time.sleep(75)
    new = one.consumer("etl", ["kept"])
    one.read(new, "etl", 2)
    slow = one.consumer("slow", ["timed", "sized", "asked", "zeroed", "future"])
    one.read(slow, "slow", 3)
    slow.pause(slow.assignment())
    by_hand: Consumer = one.consumer("by-hand", [])
    by_hand.assign([TopicPartition("kept", 0, 9)])
    by_hand.commit(offsets=[TopicPartition("kept", 0, 9)], asynchronous=False)
    by_hand.commit(offsets=[TopicPartition("kept", 0, 2)], asynchronous=False)
    one.act("committed without a membership", group="by-hand", offsets=[9, 2])
    one.tool("--all-groups", "--describe")
    one.stop()
    one.copy("10-before")
    for index in sorted((one.home / "data" / "zeroed-0").glob("*.timeindex"))[:-1]:
        index.write_bytes(bytes(index.stat().st_size))
    one.act("the time indexes of the closed segments of zeroed-0 were overwritten with zeros")
    one.start()
    one.set_topic("zeroed", retention_ms=7 * DAY_MS)
    one.set_topic("future", retention_ms=7 * DAY_MS)
    one.set_topic("timed", retention_ms=1000)
    one.set_topic("sized", retention_bytes=1200)
    for deleted in one.admin.delete_records([TopicPartition("asked", 0, 11)]).values():
        deleted.result()
    one.act("deleteRecords", topic="asked", before=11)
    wait_until(lambda: all(one.start_of(topic) > 3 for topic in ("timed", "sized", "asked", "zeroed")), "retention")
    one.set_topic("timed", retention_ms=-1)
    one.tool("--all-groups", "--describe")
    for topic in TOPICS:
        one.start_of(topic)
    one.stop()
    one.copy("20-deleted")
    for file in (one.home / "data" / "__consumer_offsets-0").iterdir():
        if file.name != "partition.metadata":
            file.unlink()
    one.act("the files of __consumer_offsets-0 were removed")
    one.start()
    one.tool("--all-groups", "--describe")
    new.close()
    slow.close()
    one.stop()
    one.copy("30-wiped")


def write_archive(target: Path, recorder: Callable[[Path], RecorderT], act: Callable[[RecorderT], None]) -> None:
    """Let a recorder act, and write what it did, its copies and its logs."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / target.name.removesuffix(".tar.xz")
        home.mkdir()
        one = recorder(home)
        try:
            act(one)
        finally:
            if one.process is not None and one.process.poll() is None:
                one.process.kill()
                one.process.wait()
        (home / "incident.json").write_text(json.dumps({"kafka": RELEASE.version, "acts": one.acts}, indent=1))
        shutil.copy(one.properties, one.logs)
        for text in (home / "incident.json", *one.logs.iterdir()):
            text.write_text(text.read_text().replace(str(home), "/recording"))
        kept = ("incident.json", "snapshots", "logs")
        names = [str(path.relative_to(home.parent)) for name in kept for path in [home / name]]
        subprocess.run(
            ["tar", "-C", str(home.parent), "--sparse", "--sort=name", "-cJf", str(target.resolve()), *names],
            check=True,
        )


def main(target: Path) -> None:
    write_archive(target, Recorder, record)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
