"""Record a real broker whose groups are set back by each tool: each way of kafka-consumer-groups, the admin client, a member that seeks, kafka-streams-application-reset, and what takes positions away.

Run as `python -m tests.oracle.resets` (confluent-kafka in the environment): it writes `fixtures/coordinators/resets-4.4.tar.xz`, with what was done and what the tools printed in `told.json`.
"""

import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.conftest import ROOT
from tests.oracle.client import produce
from tests.oracle.streams_groups import BROKER, OTHER_TOOL, RELEASE, WORDS, application, ask
from tests.oracle.uncleanable import lines_of, running, write_archive

OUT = ROOT / "fixtures" / "coordinators" / "resets-4.4.tar.xz"
RESETTER = "org.apache.kafka.tools.StreamsResetter"
READ, RECORDS, LATER = 15, 20, 3
"""How far each group reads, the records of the topic then, and those that are written behind a pause."""
WAYS = {
    "to-earliest": ("--to-earliest",),
    "to-latest": ("--to-latest",),
    "to-offset": ("--to-offset", "4"),
    "shift-by": ("--shift-by", "-6"),
    "to-datetime": ("--to-datetime", "2020-01-01T00:00:00.000"),
    "by-duration": ("--by-duration", "PT10H"),
    "to-current": ("--to-current",),
    "from-file": ("--from-file",),
}
OTHERS = ("by-admin", "by-seek", "offsets-deleted", "group-deleted")


def read(port: int, groups: Sequence[str]) -> None:
    """Let a member of each group read so many records, commit, and leave."""
    from confluent_kafka import Consumer, TopicPartition

    members = {}
    for group in groups:
        members[group] = Consumer(
            {
                "bootstrap.servers": f"127.0.0.1:{port}",
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        members[group].subscribe(["orders"])
    waiting, until = set(groups), time.time() + 60
    while waiting and time.time() < until:
        for group in sorted(waiting):
            message = members[group].poll(0.2)
            if message is not None and not message.error():
                members[group].commit(offsets=[TopicPartition("orders", 0, READ)], asynchronous=False)
                waiting.discard(group)
    assert not waiting, f"no record came to {waiting}"
    if "by-seek" in members:
        members["by-seek"].commit(offsets=[TopicPartition("orders", 0, 2)], asynchronous=False)
    for member in members.values():
        member.close()


def alter(port: int) -> None:
    """Set a position by the admin client."""
    from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0})
    wanted = ConsumerGroupTopicPartitions("by-admin", [TopicPartition("orders", 0, 3)])
    for answer in admin.alter_consumer_group_offsets([wanted]).values():
        answer.result()


def record(home: Path) -> None:
    """Run everything and write the archive."""
    told: list[dict[str, object]] = []

    def tell(port: int, what: str, *words: str, tool: str = OTHER_TOOL) -> None:
        shown = [one.replace(str(home), "/kafka") for one in words]
        told.append({"what": what, "at": time.time(), "words": shown, "printed": ask(port, *words, tool=tool)})

    def keep(name: str) -> None:
        shutil.copytree(home / "data", home / f"kept/{name}/broker-1", ignore=shutil.ignore_patterns(".lock"))

    with running(home, {"orders": {}, "words": {}, "totals": {}}, RELEASE, **BROKER) as (port, _):
        produce(port, "orders", [(b"%d" % at, b"order") for at in range(RECORDS)], has_v3=True)
        produce(port, "words", [(b"%d" % at, word.encode()) for at, word in enumerate(WORDS)], has_v3=True)
        with application(home, port, "classic"):
            read(port, (*WAYS, *OTHERS))
            time.sleep(8)
        keep("10-read")
        plan = home / "plan.csv"
        plan.write_text("orders,0,7\n")
        for group, words in WAYS.items():
            more = (str(plan),) if group == "from-file" else ("--topic", "orders")
            tell(port, group, "--group", group, "--reset-offsets", *words, *more, "--execute")
        alter(port)
        told.append({"what": "by-admin", "at": time.time(), "printed": ""})
        tell(port, "offsets-deleted", "--group", "offsets-deleted", "--delete-offsets", "--topic", "orders")
        tell(port, "group-deleted", "--group", "group-deleted", "--delete")
        resets = ("--application-id", "tally", "--input-topics", "words", "--force")
        tell(port, "tally", *resets, tool=RESETTER)
        tell(port, "described", "--describe", "--all-groups")
    keep("20-reset")
    for path in home.glob("kept/*/broker-1/__cluster_metadata-0/*index"):
        path.unlink()  # two of 10 MB
    lines = [line for line in lines_of(home) if "GroupCoordinator" in line or "Kafka Server started" in line]
    write_archive(OUT, home / "kept", lines, told, inside="snapshots")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        record(Path(folder))
