"""Record `fixtures/coordinators/tiers-3.9`: copies to remote storage that are finished, cut off, made again, and deleted in part, on one node of Kafka 3.9.1.

Run by hand: `python -m tests.oracle.tiers TARGET.tar.xz` (Java 17, Maven, and confluent-kafka in the environment). The remote storage is a directory, by the plugin of Kafka's own tests
(`LocalTieredStorage`). What it held at each moment, and what a consumer could read while the node ran, is in `incident.json`.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.oracle.cluster import wait_until
from tests.oracle.jars import cache_directory
from tests.oracle.retention import RELEASE, Recorder, write_archive

TESTS = ("kafka-storage", "kafka-clients", "kafka-server-common")
"""Artifacts whose test jars the plugin is in, and what it needs."""
STORAGE = "org.apache.kafka.server.log.remote"
CREATE, MORE = 30, 12


def test_jars() -> str:
    """The class path of Kafka's tests of remote storage, fetched where it is not in the cache."""
    home = cache_directory() / f"{RELEASE.version}-tests"
    for name in TESTS:
        if not (home / f"{name}-{RELEASE.version}-test.jar").exists():
            artifact = f"org.apache.kafka:{name}:{RELEASE.version}:jar:test"
            command = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={home}"]
            subprocess.run(command, check=True, capture_output=True)
    return f"{home}/*"


class TieredRecorder(Recorder):
    """A node with remote storage in a directory."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.jars = f"{self.jars}:{test_jars()}"
        self.remote = home / "remote"
        self.remote.mkdir()
        settings = {
            "remote.log.storage.system.enable": "true",
            "remote.log.storage.manager.class.name": f"{STORAGE}.storage.LocalTieredStorage",
            "remote.log.storage.manager.impl.prefix": "rsm.config.",
            "rsm.config.dir": self.remote,
            "rsm.config.delete.on.close": "false",
            "remote.log.metadata.manager.class.name": f"{STORAGE}.metadata.storage.TopicBasedRemoteLogMetadataManager",
            "remote.log.metadata.manager.impl.prefix": "rlmm.config.",
            "remote.log.metadata.manager.listener.name": "PLAINTEXT",
            "rlmm.config.remote.log.metadata.topic.num.partitions": 1,
            "rlmm.config.remote.log.metadata.topic.replication.factor": 1,
            "remote.log.manager.task.interval.ms": 500,
            "remote.log.manager.thread.pool.size": 2,
            "remote.log.manager.copier.thread.pool.size": 1,
            "remote.log.manager.expiration.thread.pool.size": 1,
        }
        with self.properties.open("a") as file:
            file.writelines(f"{name}={value}\n" for name, value in settings.items())

    @property
    def local(self) -> list[int]:
        """Base offsets of the segments on disk."""
        return sorted(int(one.stem) for one in (self.home / "data" / "archive-0").glob("*.log"))

    @property
    def recorded(self) -> int:
        """Bytes of the records about remote copies."""
        return sum(one.stat().st_size for one in (self.home / "data").glob("__remote_log_metadata-0/*.log"))

    def tell(self) -> None:
        """Note what remote storage and the disk hold."""
        held = sorted(one.name for one in self.remote.rglob("*.log") if "archive" in str(one.parent))
        self.act("held", remote=held, local=self.local)

    def read_all(self) -> None:
        """Note every offset that a consumer gets from the beginning on."""
        from confluent_kafka import Consumer, TopicPartition

        consumer: Consumer = self.consumer("reader", [])
        low, high = consumer.get_watermark_offsets(TopicPartition("archive", 0), timeout=10)
        consumer.assign([TopicPartition("archive", 0, low)])
        got: list[int] = []
        until = time.time() + 40
        while time.time() < until and (not got or got[-1] < high - 1):
            message = consumer.poll(0.5)
            if message is not None and not message.error():
                got.append(message.offset())
        consumer.close()
        self.act("read", start=low, end=high, offsets=got)

    def cut(self, what: str, begin: int) -> None:
        """End the node without a stop as soon as it has begun to write to the record of copies."""
        assert self.process is not None
        until = time.time() + 30
        while self.recorded == begin and time.time() < until:
            pass
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.act(what)


def record(one: TieredRecorder) -> None:
    from confluent_kafka.admin import NewTopic

    one.format()
    one.start()
    wait_until(lambda: one.recorded >= 0 and (one.home / "data" / "__remote_log_metadata-0").is_dir(), "its record")
    config = {
        "remote.storage.enable": "true",
        "segment.bytes": "600",
        "local.retention.ms": "1000",
        "retention.ms": "86400000",
        "file.delete.delay.ms": "1000",
    }
    for made in one.admin.create_topics([NewTopic("archive", 1, 1, config=config)]).values():
        made.result()
    one.produce("archive", CREATE)
    wait_until(lambda: len(one.local) == 1, "all closed segments are in remote storage alone")
    one.read_all()
    one.stop()
    one.tell()
    one.copy("10-copied")
    one.start()
    time.sleep(5)
    begin = one.recorded
    one.produce("archive", MORE)
    one.cut("killed as it had begun to copy", begin)
    one.tell()
    one.copy("20-cut-off")
    one.start()
    wait_until(lambda: len(one.local) == 1, "all closed segments are in remote storage alone")
    one.read_all()
    one.stop()
    one.tell()
    one.copy("30-copied-again")
    one.start()
    time.sleep(5)
    begin = one.recorded
    one.set_topic("archive", retention_ms=2000)
    one.cut("killed as it had begun to delete", begin)
    one.tell()
    one.copy("40-deleting")


def main(target: Path) -> None:
    write_archive(target, TieredRecorder, record)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
