"""Nights of three clusters in one history, with sources that come and go; run as `python -m tests.fleet.nights DIRECTORY [--nights N]`.

Every night all logs of two clusters are read, an hour later the ends of the logs of one of them, and every third night one topic; a third cluster, which
has no metadata log and whose replicas all agree, has audits of its own. Some partitions differ from one night to another (`DIFFERING`). Brokers are away, and
once in a while a whole cluster. Printed is what the history says of each finding, and what of it is not so.
"""

import argparse
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from kforensics.ask.model import Ask
from kforensics.findings.answers.fleet import fleet_answer
from kforensics.findings.answers.model import State
from kforensics.findings.model import Severity
from kforensics.fleet.audit_tables import AuditTables, history_of
from kforensics.fleet.auditing import audit
from kforensics.fleet.session import open_session
from kforensics.fleet.sources import read_sources
from kforensics.fleet.summary import summarise
from kforensics.fleet.tables import Tables
from kforensics.units import Depth
from tests.builders.coordinators import batch

BROKERS, RECORDS = (1, 2, 3), 5
TOPICS = {"orders": 4, "payments": 1}
NIGHTS = 30
LONG_AGO = 1_700_000_000
AUDITED, SOUND = ("a", "b"), "z"
"""Clusters with partitions that differ, and the one without."""

Audited = Callable[..., AuditTables]
"""Audits inventories into a history."""


class Differing(NamedTuple):
    """A partition whose replica on broker 2 holds another record than the others, in some nights."""

    cluster: str
    partition: int
    first: int
    end: int
    """The night in which it is as the others again."""


DIFFERING = (
    Differing("a", 0, 0, NIGHTS),
    Differing("b", 1, 8, NIGHTS),
    Differing("a", 2, 2, 12),
    Differing("a", 2, 20, NIGHTS),
    Differing("b", 3, 4, 17),
)


class Night(NamedTuple):
    """An audit, and what it looks at."""

    name: str
    number: int
    clusters: tuple[str, ...]
    options: Ask

    @property
    def away(self) -> frozenset[tuple[str, int]]:
        """The brokers that can't be found."""
        out = {("a", 2)} if self.number % 4 == 1 else set()
        out |= {("b", 1)} if self.number % 7 == 3 else set()
        out |= {("b", broker) for broker in BROKERS} if self.number % 10 == 6 else set()
        return frozenset(out)


def audits_of(count: int) -> Iterator[Night]:
    """The audits of so many nights, in their order."""
    whole = Ask(is_stopped=True, depth=Depth.CONTENT)
    for number in range(count):
        yield Night(f"night-{number:02}", number, AUDITED, whole)
        yield Night(f"ends-{number:02}", number, AUDITED[:1], replace(whole, depth=Depth.TAILS))
        if number % 3 == 2:
            yield Night(f"topic-{number:02}", number, AUDITED, replace(whole, topics=frozenset({"payments"})))
        yield Night(f"sound-{number:02}", number, (SOUND,), whole)


def prepare(place: Path) -> None:
    """Write the clusters, and an inventory of each with the assignment of its partitions, as ZooKeeper has it."""
    for cluster in (*AUDITED, SOUND):
        for broker in BROKERS:
            node = place / cluster / f"broker-{broker}"
            node.mkdir(parents=True)
            (node / "meta.properties").write_text(f"version=0\nbroker.id={broker}\ncluster.id={cluster}\n")
            for topic, count in TOPICS.items():
                for partition in range(count):
                    write(node / f"{topic}-{partition}", night=0)
        znodes = {
            f"/brokers/topics/{topic}": {"partitions": {str(number): list(BROKERS) for number in range(count)}}
            for topic, count in TOPICS.items()
        }
        (place / f"{cluster}-topics.json").write_text(json.dumps(znodes))
        nodes = [{"location": f"{cluster}/broker-{broker}", "cluster": cluster, "node": broker} for broker in BROKERS]
        topics = [{"assignments": f"{cluster}-topics.json", "cluster": cluster}]
        (place / f"{cluster}.yaml").write_text(json.dumps({"nodes": nodes, "assignments": topics}))


def write(directory: Path, *, night: int, other: bool = False) -> None:
    """Write a log, of which one record may be another, as it was left in a night."""
    directory.mkdir(exist_ok=True)
    values = [b"other" if other and at == RECORDS // 2 else b"value" for at in range(RECORDS)]
    log = directory / f"{0:020}.log"
    log.write_bytes(b"".join(batch(at, [(b"key", value)]) for at, value in enumerate(values)))
    (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    os.utime(log, (LONG_AGO + night, LONG_AGO + night))


@dataclass(slots=True)
class Told:
    """What a history says after its last night."""

    lives: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The last row of each finding."""
    changes: dict[str, Counter[str]] = field(default_factory=dict)
    """By finding, how often it became what."""
    nights: list[tuple[str, Counter[str]]] = field(default_factory=list)
    """By audit, how many findings became what."""
    new: set[tuple[str, str, int]] = field(default_factory=set)
    """Audit, cluster and partition of what is called new."""
    closed: set[tuple[str, str, int]] = field(default_factory=set)
    not_green: list[str] = field(default_factory=list)
    """Audits of the cluster without differences that are not said to agree."""
    begun: dict[datetime, str] = field(default_factory=dict)
    """The names of the audits by their times."""


def run_nights(place: Path, count: int, audited: Audited) -> Told:
    """Let so many nights pass, and read what the history says of them."""
    prepare(place)
    told = Told()
    for night in audits_of(count):
        for one in DIFFERING if night.name.startswith("night") else ():
            if night.number in {one.first, one.end}:
                node = place / one.cluster / "broker-2"
                write(node / f"orders-{one.partition}", night=night.number, other=night.number == one.first)
        places = [place / cluster / f"broker-{broker}" for cluster, broker in night.away]
        for path in places:
            path.rename(path.with_name(f"away-{path.name}"))
        inventories = [str(place / f"{cluster}.yaml") for cluster in night.clusters]
        tables = audited(inventories, place / "history", night.name, night.options)
        for path in places:
            path.with_name(f"away-{path.name}").rename(path)
        if SOUND in night.clusters and fleet_answer(summarise(tables, most=0)).state is not State.AGREE:
            told.not_green.append(night.name)
    for kept in history_of(Tables(place / "history")):
        read(kept, told)
    return told


def read(one: AuditTables, told: Told) -> None:
    """Add what an audit says became of findings."""
    counts: Counter[str] = Counter()
    told.begun[datetime.fromtimestamp(0, UTC) + timedelta(microseconds=one.audited_ns // 1_000)] = one.audit_id
    for row in one.rows("changes"):
        told.lives[row["finding_id"]] = dict(row)
        told.changes.setdefault(row["finding_id"], Counter())[row["change"]] += 1
        counts[row["change"]] += 1
        if row["severity_rank"] > Severity.NOTE.rank:
            which = (one.audit_id, row["cluster_id"], row["partition"])
            (told.new if row["change"] == "new" else told.closed if row["state"] == "closed" else set()).add(which)
    told.nights.append((one.audit_id, counts))


def expected(count: int) -> tuple[set[tuple[str, str, int]], set[tuple[str, str, int]]]:
    """What is new in so many nights, and what is closed: once each, in the first night that could tell."""
    new, closed = set(), set()
    for one in DIFFERING:
        nights = [night for night in audits_of(count) if night.name.startswith("night")]
        for night in nights:
            away = {broker for cluster, broker in night.away if cluster == one.cluster}
            if one.first <= night.number < one.end and 2 not in away:
                new.add((night.name, one.cluster, one.partition))
                break
        for night in nights:
            if night.number >= one.end and all(cluster != one.cluster for cluster, _ in night.away):
                closed.add((night.name, one.cluster, one.partition))
                break
    return new, closed


def shown(told: Told, count: int) -> Iterator[str]:
    """The table of all findings above a note, that of the audits, and what is wrong."""
    yield "finding                    first seen  last seen  last checked  state          new  not checked  closed"
    for finding_id, row in sorted(told.lives.items()):
        if row["severity_rank"] > Severity.NOTE.rank and told.changes[finding_id]["new"]:
            times = [told.begun[row[name]] for name in ("first_seen", "last_seen", "last_checked")]
            counts = told.changes[finding_id]
            yield (
                f"{finding_id:26} {times[0]:11} {times[1]:10} {times[2]:13} {row['state']:14} {counts['new']:3} "
                f"{counts['unchecked']:12} {counts['gone']:7}"
            )
    yield ""
    yield "audit        new  unchanged  worse  better  changed  not checked  closed"
    for name, counts in told.nights:
        yield (
            f"{name:10} {counts['new']:5} {counts['unchanged']:10} {counts['worse']:6} {counts['better']:7} "
            f"{counts['changed']:8} {counts['unchecked']:12} {counts['gone']:7}"
        )
    new, closed = expected(count)
    yield ""
    yield f"{len(new)} began: {len(told.new - new)} false new, {len(new - told.new)} missed"
    yield f"{len(closed)} ended: {len(told.closed - closed)} falsely closed, {len(closed - told.closed)} missed"
    yield f"audits of the cluster that agrees, with ZooKeeper and assignments, that are not green: {len(told.not_green)}"


def main() -> None:
    """Audit the nights on Spark, and print what the history says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--nights", type=int, default=NIGHTS)
    arguments = parser.parse_args()
    with open_session("local[2]", {"spark.driver.memory": "1g"}) as session:

        def audited(inventories: Sequence[str], history: Path, name: str, options: Ask) -> AuditTables:
            more: dict[str, Any] = {"options": options, "is_history": True, "audit_id": name, "keep_going": True}
            return audit(lambda: session, read_sources(inventories), history, **more)

        told = run_nights(arguments.directory, arguments.nights, audited)
    print("\n".join(shown(told, arguments.nights)))


if __name__ == "__main__":
    main()
