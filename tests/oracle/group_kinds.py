"""Record a real broker whose groups are of each kind: several generations, a topic made again, offsets in transactions, a group that changes its protocol, share groups; then offsets.retention.minutes is lowered.

Run as `python -m tests.oracle.group_kinds` (confluent-kafka in the environment): it writes `fixtures/coordinators/kinds-4.4.tar.xz`, with what was done and what the tools printed in `told.json`.
"""

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.conftest import ROOT
from tests.oracle.client import produce
from tests.oracle.streams_groups import BROKER, OTHER_TOOL, RELEASE, ask
from tests.oracle.uncleanable import lines_of, running, write_archive

OUT = ROOT / "fixtures" / "coordinators" / "kinds-4.4.tar.xz"
SHARES = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
SETTINGS = {
    **BROKER,
    "share_coordinator_state_topic_num_partitions": 1,
    "share_coordinator_state_topic_replication_factor": 1,
    "group_initial_rebalance_delay_ms": 0,
    "offsets_retention_check_interval_ms": 1_000,
}
TOPICS = ("orders", "again", "jobs")
RETENTION_S = 60


class Client:
    """What is done by clients and tools, and told."""

    def __init__(self, port: int, told: list[dict[str, object]]) -> None:
        from confluent_kafka.admin import AdminClient

        self.port, self.told, self.server = port, told, f"127.0.0.1:{port}"
        self.admin = AdminClient({"bootstrap.servers": self.server, "log_level": 0})

    def tell(self, what: str, **more: object) -> None:
        self.told.append({"what": what, "at": time.time(), **more})

    def tool(self, main: str, *words: str) -> None:
        self.tell(f"{main.rpartition('.')[2]} {' '.join(words)}", printed=ask(self.port, *words, tool=main))

    def member(self, group: str, topic: str, **more: object) -> Any:
        """A member that has read its first record."""
        from confluent_kafka import Consumer

        settings = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False, "log_level": 0}
        found = Consumer({"bootstrap.servers": self.server, **settings, **more})
        found.subscribe([topic])
        until = time.time() + 60
        while time.time() < until:
            message = found.poll(0.3)
            if message is not None and not message.error():
                return found
        raise TimeoutError(group)

    def commit(self, member: Any, group: str, topic: str, offset: int) -> None:
        from confluent_kafka import TopicPartition

        member.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
        self.tell("committed", group=group, topic=topic, offset=offset)

    def read(self, group: str, topic: str, *offsets: int, **more: object) -> None:
        """Commit as a member, which then leaves."""
        member = self.member(group, topic, **more)
        for offset in offsets:
            self.commit(member, group, topic, offset)
        member.close()


def drive(one: Client) -> None:
    """Let groups of each kind commit."""
    from confluent_kafka import Producer, TopicPartition
    from confluent_kafka.admin import NewTopic

    one.read("gens", "orders", 12, 6, 9)
    one.read("static", "orders", 10, **{"group.instance.id": "s-1"})
    one.read("static", "orders", 14, **{"group.instance.id": "s-1"})
    stays = one.member("again", "again")
    one.commit(stays, "again", "again", 18)
    for done in one.admin.delete_topics(["again"]).values():
        done.result()
    time.sleep(3)
    for done in one.admin.create_topics([NewTopic("again", 1, 1)]).values():
        done.result()
    one.tell("again was deleted and created again")
    time.sleep(2)
    produce(one.port, "again", [(b"%d" % at, b"new") for at in range(5)], has_v3=True)
    one.commit(stays, "again", "again", 4)
    stays.close()
    member = one.member("in-transactions", "orders")
    producer = Producer({"bootstrap.servers": one.server, "transactional.id": "tx", "log_level": 0})
    producer.init_transactions(30)
    for offset, end in ((11, producer.commit_transaction), (3, producer.abort_transaction), (2, producer.flush)):
        producer.begin_transaction()
        producer.produce("jobs", b"x")
        producer.send_offsets_to_transaction([TopicPartition("orders", 0, offset)], member.consumer_group_metadata())
        end(30)
        one.tell("in a transaction", offset=offset, ended=end.__name__)
    one.read("migrated", "orders", 13, **{"group.protocol": "consumer"})
    one.read("migrated", "orders", 5)
    one.read("back", "orders", 17)
    for group in ("workers", "doomed", "reset"):
        words = ("--alter", "--entity-type", "groups", "--entity-name", group)
        one.tool("org.apache.kafka.tools.ConfigCommand", *words, "--add-config", "share.auto.offset.reset=earliest")
        reads = ("--topic", "jobs", "--group", group, "--max-messages", "12", "--timeout-ms", "15000")
        one.tool("org.apache.kafka.tools.consumer.ConsoleShareConsumer", *reads)


def record(home: Path) -> None:
    """Run everything and write the archive."""
    told: list[dict[str, object]] = []

    def keep(name: str) -> None:
        target = home / f"kept/{name}/broker-1"
        shutil.copytree(home / "data", target, ignore=shutil.ignore_patterns(".lock", "*index"))

    with running(home, {name: {} for name in TOPICS}, RELEASE, **SETTINGS) as (port, _):
        one = Client(port, told)
        for name in TOPICS:
            produce(port, name, [(b"%d" % at, b"record") for at in range(20)], has_v3=True)
        drive(one)
        one.tool(SHARES, "--describe", "--all-groups")
        keep("10-read")
        one.tool(SHARES, "--delete", "--group", "doomed")
        one.tool(SHARES, "--reset-offsets", "--group", "reset", "--topic", "jobs", "--to-earliest", "--execute")
        one.tool(OTHER_TOOL, "--describe", "--all-groups")
    keep("20-reset")
    with running(home, {}, RELEASE, **SETTINGS, offsets_retention_minutes=RETENTION_S // 60) as (port, _):
        one = Client(port, told)
        time.sleep(RETENTION_S + 25)
        one.read("back", "orders", 2)
        for tool in (OTHER_TOOL, SHARES):
            one.tool(tool, "--describe", "--all-groups")
    keep("30-expired")
    shutil.copy(home / "server.properties", home / "kept/30-expired/broker-1/server.properties")
    named = home / "kept/30-expired/broker-1/server.properties"
    named.write_text(named.read_text().replace(str(home), "/kafka"))
    lines = [line for line in lines_of(home) if "cleaning up group metadata" in line or "Kafka Server started" in line]
    write_archive(OUT, home / "kept", lines, told, inside="snapshots")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        record(Path(folder))
