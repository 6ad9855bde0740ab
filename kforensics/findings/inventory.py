"""Findings that an inventory alone shows: partitions in two directories, unknown directories, replicas of other topics."""

from collections import defaultdict
from collections.abc import Iterator

from kforensics.damage import Absent
from kforensics.evidence.inventory import Inventory, ListedNode, ListedPartition
from kforensics.evidence.model import Citation
from kforensics.findings.missing import lost_directory_finding, missing_finding
from kforensics.findings.model import Finding, Severity, by_gravity, finding
from kforensics.units import TopicPartition

MOST_NAMED = 100
"""Unknown files of one input that are findings of their own; all of them are listed anyway."""


def inventory_findings(inventory: Inventory) -> tuple[Finding, ...]:
    """Return all findings about the inventory, the gravest first.

    Args:
        inventory: what lies in the given directories, by names and small files alone.
    """
    return by_gravity(
        (
            *_doubled(inventory),
            *_strange_directories(inventory),
            *_other_topics(inventory),
            *_strays(inventory),
            *_unknown_files(inventory),
            *_missing(inventory),
            *_lost(inventory),
        )
    )


def _missing(inventory: Inventory) -> Iterator[Finding]:
    nodes = {node.input: node for node in inventory.nodes}
    for one in inventory.missing:
        yield missing_finding(
            one.unaccounted,
            one.topic_partition,
            Citation(input=one.input, path=one.path),
            _node_id(nodes.get(one.input)),
        )


def _lost(inventory: Inventory) -> Iterator[Finding]:
    for one in inventory.lost:
        yield lost_directory_finding(one.topic_partition, one.value, one.broker_id)


def _doubled(inventory: Inventory) -> Iterator[Finding]:
    live: dict[tuple[int, TopicPartition], list[ListedPartition]] = defaultdict(list)
    for one in inventory.partitions:
        if one.state == "live" and (key := _topic_partition(one)) is not None:
            live[one.input, key].append(one)
    nodes = {node.input: node for node in inventory.nodes}
    for (index, key), replicas in live.items():
        if len(replicas) > 1 and index in nodes:
            yield finding(
                "KF502",
                severity=Severity.ERROR,
                statement=f"{key} is in {len(replicas)} log directories of the node",
                topic_partition=key,
                broker_id=nodes[index].node_id,
                citations=tuple(Citation(input=index, path=one.path) for one in replicas),
            )


def _strange_directories(inventory: Inventory) -> Iterator[Finding]:
    nodes = {node.input: node for node in inventory.nodes}
    for directory in inventory.directories:
        if directory.kind in {"unknown", "lost-and-found"}:
            yield finding(
                "KF503",
                severity=Severity.WARNING,
                statement=f"directory {directory.path} is not named like a partition",
                broker_id=_node_id(nodes.get(directory.input)),
                citations=(Citation(input=directory.input, path=directory.path),),
            )


def _other_topics(inventory: Inventory) -> Iterator[Finding]:
    clusters = {node.input: node.cluster_id for node in inventory.nodes}
    ids: dict[tuple[object, TopicPartition], dict[str, list[ListedPartition]]] = defaultdict(lambda: defaultdict(list))
    for one in inventory.partitions:
        key = _topic_partition(one)
        if one.state == "live" and key is not None and not isinstance(one.topic_id, Absent):
            ids[clusters.get(one.input), key][one.topic_id].append(one)
    for (_, key), by_id in ids.items():
        if len(by_id) > 1:
            yield finding(
                "KF504",
                severity=Severity.WARNING,
                statement=f"replicas of {key} belong to {len(by_id)} topics: ids {' and '.join(sorted(by_id))}",
                topic_partition=key,
                citations=tuple(
                    Citation(input=one.input, path=f"{one.path}/partition.metadata")
                    for _, replicas in sorted(by_id.items())
                    for one in replicas
                ),
            )


def _strays(inventory: Inventory) -> Iterator[Finding]:
    nodes = {node.input: node for node in inventory.nodes}
    for one in inventory.partitions:
        if one.state == "stray":
            key = _topic_partition(one)
            yield finding(
                "KF505",
                severity=Severity.NOTE,
                statement=f"{one.path} is a stray replica",
                topic_partition=Absent.UNKNOWN if key is None else key,
                broker_id=_node_id(nodes.get(one.input)),
                citations=(Citation(input=one.input, path=one.path),),
            )


def _unknown_files(inventory: Inventory) -> Iterator[Finding]:
    by_input: dict[int, list[str]] = defaultdict(list)
    for unknown in inventory.unknown:
        if unknown.kind == "unknown":
            by_input[unknown.input].append(unknown.path)
    for index, paths in by_input.items():
        named, more = (paths, []) if len(paths) <= MOST_NAMED else (paths[: MOST_NAMED - 1], paths[MOST_NAMED - 1 :])
        for path in named:
            yield _unknown(index, path, f"{path} is no file that a broker writes")
        if more:
            statement = f"{len(more):,} more files here are none that a broker writes, from {more[0]} on"
            yield _unknown(index, more[0], statement)


def _unknown(index: int, path: str, statement: str) -> Finding:
    return finding("KF506", severity=Severity.NOTE, statement=statement, citations=(Citation(input=index, path=path),))


def _topic_partition(one: ListedPartition) -> TopicPartition | None:
    if isinstance(one.topic, Absent) or isinstance(one.partition, Absent):
        return None
    return TopicPartition(one.topic, one.partition)


def _node_id(node: ListedNode | None) -> int | Absent:
    return Absent.UNKNOWN if node is None else node.node_id
