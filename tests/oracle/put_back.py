"""Lost records back into a real broker, by the script that `salvage` writes, and a broker that serves salvaged segments.

Run by hand, in an environment with `confluent-kafka` and Java 17 (jars by Maven or `--jars`):

    python -m tests.oracle.put_back RECORDING [--kafka VERSION] [--jars CLASSPATH]

A single broker, of Kafka 4.1.0 unless another version is named, on 127.0.0.1 gets the topics of what was lost in the recording. `put_back.py` runs dry, then for real, then again: what is
consumed must be what is on the disks of the recording, but for offsets and the header that the script sets, and nothing twice. The same in topics with
LogAppendTime, where the times are the broker's. Then the broker is stopped, everything is salvaged as segments with the topic's id, and a start on these serves it.
"""

import argparse
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests import salvaged
from tests.oracle.jars import RELEASES, class_path

VERSION = "4.1.0"
HEADER = "kforensics-salvage"
WAIT_SECONDS = 240
_OPENED = [
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in ("sun.nio.ch", "java.nio", "jdk.internal.ref", "java.lang")
]
_LOGGING = """\
rootLogger.level=INFO
rootLogger.appenderRef.file.ref=file
appender.file.type=File
appender.file.name=file
appender.file.fileName={file}
appender.file.layout.type=PatternLayout
appender.file.layout.pattern=[%d] %p %m (%c)%n
"""


class Broker:
    """One node that is broker and controller."""

    def __init__(self, folder: Path, jars: str) -> None:
        self.folder, self.jars = folder, jars
        self.data = folder / "data"
        ports = []
        for _ in range(2):
            with socket.socket() as one:
                one.bind(("127.0.0.1", 0))
                ports.append(one.getsockname()[1])
        self.bootstrap = f"127.0.0.1:{ports[0]}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{ports[1]}",
            "listeners": f"PLAINTEXT://{self.bootstrap},CONTROLLER://127.0.0.1:{ports[1]}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": self.data,
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "log.retention.ms": -1,
            "log.index.size.max.bytes": 65536,
            "auto.create.topics.enable": "false",
        }
        folder.mkdir(parents=True)
        (folder / "server.properties").write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        (folder / "log4j2.properties").write_text(_LOGGING.format(file=folder / "server.log"))
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self._java("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(folder / "server.properties")).wait(
            WAIT_SECONDS
        )
        self._process: subprocess.Popen[bytes] | None = None

    def _java(self, *arguments: str) -> "subprocess.Popen[bytes]":
        command = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *_OPENED]
        command += [f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}", "-cp", self.jars, *arguments]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    @contextmanager
    def running(self) -> Iterator[None]:
        """The broker, until the block ends."""
        self._process = self._java("kafka.Kafka", str(self.folder / "server.properties"))
        try:
            self._wait()
            yield
        finally:
            self._process.terminate()
            try:
                self._process.wait(WAIT_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _wait(self) -> None:
        from confluent_kafka.admin import AdminClient

        end = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < end:
            try:
                AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0}).list_topics(timeout=2)
            except Exception:  # noqa: BLE001 - whatever it is, it is not up yet
                time.sleep(0.5)
            else:
                return
        raise TimeoutError((self.folder / "server.log").read_text()[-2000:])

    def create(self, topics: dict[str, int], **config: str) -> None:
        """Create topics by name and number of partitions."""
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        made = [
            NewTopic(name, num_partitions=count, replication_factor=1, config=config) for name, count in topics.items()
        ]
        for future in admin.create_topics(made).values():
            future.result()

    def topic_id(self, topic: str) -> str:
        """The id of a topic, out of its directory."""
        text = next(self.data.glob(f"{topic}-*")).joinpath("partition.metadata").read_text()
        return text.partition("topic_id: ")[2].strip()

    def consume(self, topics: list[str]) -> list[tuple[salvaged.Content, int, bytes | None]]:
        """Every record of the topics: content without the header of the script, its type of time, and that header."""
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "check",
                "enable.auto.commit": "false",
                "isolation.level": "read_uncommitted",
            }
        )
        found = []
        try:
            known = consumer.list_topics(timeout=10).topics
            for topic in topics:
                for number in known[topic].partitions:
                    place = TopicPartition(topic, number, OFFSET_BEGINNING)
                    _, end = consumer.get_watermark_offsets(place, timeout=10)
                    consumer.assign([place])
                    at = 0
                    while at < end:
                        message = consumer.poll(3)
                        if message is None:  # only markers are left
                            position = consumer.position([TopicPartition(topic, number)])[0].offset
                            assert position > at, (topic, number, at, end)
                            at = position
                            continue
                        assert not message.error(), message.error()
                        at = message.offset() + 1
                        headers = message.headers() or []
                        mark = next((value for name, value in headers if name == HEADER), None)
                        rest = tuple((name, value) for name, value in headers if name != HEADER)
                        kind, moment = message.timestamp()
                        content = (topic, number, message.offset(), moment, message.key(), message.value(), rest)
                        found.append((salvaged.Content(*content), kind, mark))
        finally:
            consumer.close()
        return found


def _script(out: Path, broker: Broker, *options: str) -> str:
    command = [sys.executable, str(out / "put_back.py"), "--bootstrap", broker.bootstrap, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def _without_place(contents: list[salvaged.Content], *, with_time: bool = True) -> Counter[Any]:
    return Counter(one._replace(offset=0, timestamp_ms=one.timestamp_ms if with_time else 0) for one in contents)


def put_back(root: Path, work: Path, jars: str, time_type: str) -> str:
    """Put what a recording lost into a new broker, twice."""
    work.mkdir()
    out = work / "rescue"
    code, _ = salvaged.salvage(root, out)
    lines = salvaged.saved(out)
    lost = [
        content
        for content, line in lines
        if not line["file"].startswith("alternates") and not content.topic.startswith("__")
    ]
    assert lost
    broker = Broker(work / "broker", jars)
    topics = {
        topic: 1 + max(one.partition for one in lost if one.topic == topic) for topic in {one.topic for one in lost}
    }
    with broker.running():
        config = {
            "message.timestamp.type": time_type,
            "retention.ms": "-1",
            "message.timestamp.after.max.ms": str(2**62),
        }
        broker.create(topics, **config)
        assert "nothing was sent" in _script(out, broker, "--dry-run")
        assert not broker.consume(sorted(topics))
        first = _script(out, broker)
        there = broker.consume(sorted(topics))
        second = _script(out, broker)
        again = broker.consume(sorted(topics))
    with_time = time_type == "CreateTime"
    assert _without_place([one for one, _, _ in there], with_time=with_time) == _without_place(
        lost, with_time=with_time
    )
    order = [(one.topic, one.partition, one.key, one.value) for one in sorted(lost, key=lambda one: one[:3])]
    assert order == [
        (one.topic, one.partition, one.key, one.value) for one, _, _ in sorted(there, key=lambda one: one[0][:3])
    ]
    assert {2 if time_type == "LogAppendTime" else 1} == {kind for _, kind, _ in there}
    assert all(mark is not None for _, _, mark in there)
    assert there == again, "run twice, something was doubled"
    assert f"{len(lost)} of {len(lost)} records sent" in first.splitlines()[-1], first
    assert f"{len(lost)} were there already" in second.splitlines()[-1], second
    return f"{time_type}: {len(lost)} records put back (exit code of salvage {code}), consumed equal, nothing doubled by a second run"


def serve_segments(root: Path, work: Path, jars: str) -> str:
    """Let a broker serve what was salvaged as segments."""
    work.mkdir()
    final = max((root / "snapshots").iterdir())
    broker = Broker(work / "broker", jars)
    lines = []
    with tempfile.TemporaryDirectory() as scratch:
        from tests.oracle.loading.salvaged import salvage as as_segments

        salvaged.salvage(root, Path(scratch, "json"), "--what", "all", "--with-aborted")
        lines = [
            (content, line)
            for content, line in salvaged.saved(Path(scratch, "json"), with_other_topics=False)
            if not line["file"].startswith("alternates") and not content.topic.startswith(("__", "@"))
        ]
        expected = [content for content, _ in lines]
        topics = {
            t: 1 + max(one.partition for one in expected if one.topic == t) for t in {one.topic for one in expected}
        }
        with broker.running():
            broker.create(topics)
        options = [word for path in sorted((root / "snapshots").iterdir())[:-1] for word in ("--before", str(path))]
        logs = [str(root / "logs")] if (root / "logs").exists() else []
        for topic in topics:
            out = Path(scratch, topic)
            as_segments(final, out, "--topic", topic, "--topic-id", broker.topic_id(topic), *logs, *options)
            for folder in out.glob(f"{topic}-*"):
                shutil.rmtree(broker.data / folder.name)
                shutil.copytree(folder, broker.data / folder.name)
    with broker.running():
        there = [one for one, _, _ in broker.consume(sorted(topics))]
    committed = Counter(expected)
    assert Counter(there) == committed, (
        len(there),
        len(expected),
        list((Counter(there) - committed).items())[:2],
        list((committed - Counter(there)).items())[:2],
    )
    return f"segments: {len(there)} records of {len(topics)} topics served as they were, offsets and times included"


def main() -> int:
    """Run all of it on one recording."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recording", type=Path)
    parser.add_argument("--kafka", default=VERSION, choices=[one.version for one in RELEASES if one.version >= "3.3"])
    parser.add_argument("--jars")
    options = parser.parse_args()
    jars = options.jars or class_path(next(one for one in RELEASES if one.version == options.kafka))
    with tempfile.TemporaryDirectory() as work:
        for time_type in ("CreateTime", "LogAppendTime"):
            print(put_back(options.recording, Path(work, time_type), jars, time_type), flush=True)
        print(serve_segments(options.recording, Path(work, "segments"), jars), flush=True)
    print(json.dumps({"kafka": options.kafka, "recording": options.recording.name}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
