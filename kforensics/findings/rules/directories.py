"""What should be in a place and is not, or is there and should not be: missing segments, partitions in two directories, other topics, unknown files."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kforensics.damage import Absent
from kforensics.evidence.model import CheckpointValue, Citation
from kforensics.evidence.replica.unaccounted import Sign, Unaccounted
from kforensics.findings.model import Finding, Weight, by_gravity
from kforensics.findings.rule import Rule, RulesOf, ToldApartBy
from kforensics.findings.rules.upkeep import cleaner_finding
from kforensics.units import METADATA_TOPICS, OffsetRange, TopicPartition
from kforensics.words import counted

if TYPE_CHECKING:
    from kforensics.evidence.inventory import Inventory, ListedNode, ListedPartition

SHOWN_BY = {
    Sign.INDEX: "an index is there, and its segment is not",
    Sign.CHECKPOINT: "the checkpoints refer to records, and no segment is there",
    Sign.HOLE: "the segment before them ends too early",
    Sign.ABOVE_END: "its checkpoints are above the log end",
    Sign.REGISTRATION: "the broker epoch in .kafka_cleanshutdown, the offset of its registration, is above the log end",
    Sign.NO_SEGMENT: "files are there that are written with its records, and no segment",
    Sign.EPOCHS: "its leader-epoch-checkpoint begins there, and its first segment behind them",
}

OF_METADATA = (
    "A part of this copy of the metadata log was removed, or the log was put back to an earlier state."
    " The node fetches what is missing from the leader of the quorum, as far as enough voters still hold it."
)
COMPARE_VOTERS = "Compare the metadata logs of all voters with `kforensics metadata` before a controller starts: voters that lack committed records can elect one that lacks them too."


MISSING_SEGMENT = Rule(
    "KF116",
    Weight.DAMAGE,
    title="a missing segment",
    meaning="Its index, a checkpoint or the segments around it show that it was there: a broker deletes them together, so it was removed, or the copy left it out. "
    "A start without it does not bring it back: the broker begins an empty log, or serves the log with a hole.",
    advice="Look for the file on the broker's disk, in lost+found, in other copies of the directory and on the other replicas before this broker starts.",
    told_apart_by=ToldApartBy.FILE,
)


def lost_directory_finding(partition: TopicPartition, named: CheckpointValue, broker_id: int | Absent) -> Finding:
    """Return the finding about a partition that a checkpoint of a log directory names, and of which its broker holds no directory."""
    return MISSING_SEGMENT.states(
        f"offsets up to {named.value - 1} of {partition} are unaccounted for: {named.citation.path} names it, and there is no directory of it",
        topic_partition=partition,
        broker_id=broker_id,
        citations=(named.citation,),
    )


def missing_finding(
    unaccounted: Unaccounted, partition: TopicPartition, directory: Citation, broker_id: int | Absent
) -> Finding:
    """Return the finding about offsets for which there is no segment."""
    last = unaccounted.last
    path = unaccounted.path
    return MISSING_SEGMENT.states(
        f"{unaccounted.words} of {directory.path} {unaccounted.are} unaccounted for: {SHOWN_BY[unaccounted.sign]}",
        meaning=OF_METADATA if partition.topic in METADATA_TOPICS else "",
        advice=COMPARE_VOTERS if partition.topic in METADATA_TOPICS else "",
        topic_partition=partition,
        broker_id=broker_id,
        offsets=Absent.UNKNOWN if isinstance(last, Absent) else OffsetRange(unaccounted.first, last),
        citations=(replace(directory, path=path) if path else directory,),
    )


FUTURE_BELOW_START = Rule(
    "KF516",
    Weight.DECIDE,
    title="a move between log directories that can't go on",
    meaning="The future log ends below the start of the log that it is to replace. A broker that finds the offsets to differ marks the partition as failed and does not try again before a restart; the directory stays, and the disk space with it.",
    advice="With the broker stopped delete the -future directory alone, start the broker, and ask for the move again (kafka-reassign-partitions.sh).",
    references=("KIP-113",),
    told_apart_by=ToldApartBy.FILE,
)


def future_finding(
    *,
    partition: TopicPartition,
    broker_id: int | Absent,
    future: tuple[Citation, int],
    current: tuple[Citation, int],
) -> Finding:
    """Return the finding about a future log, by its directory and where it ends, and that of the log in use and where it begins."""
    return FUTURE_BELOW_START.states(
        f"the future log {future[0].path} ends at {future[1]}, below {current[1]}, where the log of {partition} in {current[0].path} begins: it can never catch up from there",
        topic_partition=partition,
        broker_id=broker_id,
        citations=(future[0], current[0]),
    )


OTHER_TOPIC = Rule(
    "KF504",
    Weight.DECIDE,
    title="replicas under one name belong to different topics",
    meaning="The topic was deleted and created again under its name: these logs have nothing to do with each other.",
    advice="Do not compare or copy data between them; the id in the cluster metadata says which one is current.",
    references=("KIP-516",),
    told_apart_by=ToldApartBy.FILE,
)

MISNAMED = Rule(
    "KF517",
    Weight.DAMAGE,
    title="a directory under the name of another topic",
    meaning="Its partition.metadata has the id of another topic of the cluster. A broker does not serve it (InconsistentTopicIdException); consumers and followers find nothing there, and the records are not lost.",
    advice="Look whose records it holds before the broker is started. Where directories were exchanged, give each its own name again; where only the file is of another directory, put its own back.",
    references=("KIP-516",),
    told_apart_by=ToldApartBy.FILE,
)


def misnamed_finding(partition: TopicPartition, broker_id: int | Absent, directory: Citation, topic: str) -> Finding:
    """Return the finding about a directory that has the topic id of another topic."""
    return MISNAMED.states(
        f"broker {broker_id} has {directory.path} with the topic id of {topic}, and does not serve it",
        topic_partition=partition,
        broker_id=broker_id,
        citations=(directory,),
    )


REFUSED_ID = Rule(
    "KF518",
    Weight.DECIDE,
    title="a partition that its broker knows under another topic id",
    meaning="The broker refuses what it is told of this partition (INCONSISTENT_TOPIC_ID): it neither leads nor follows it, and replicates nothing, until the ids agree.",
    advice="Ask the cluster which topic id is current (kafka-topics.sh --describe). Where it is not that of the directory, copy the directory, move it out with the broker stopped, and start the broker: it copies the partition from its leader.",
    references=("KIP-516",),
    told_apart_by=ToldApartBy.FILE,
)


def refused_id_finding(
    partition: TopicPartition,
    broker_id: int,
    ids: tuple[str, str],
    on_disk: str | Absent,
    citations: tuple[Citation, ...],
) -> Finding:
    """Return the finding about a partition that a broker has in memory under one topic id, and is told of under another.

    Args:
        on_disk: the topic id that its directory has, by its own file.
    """
    known, told = ids
    where = {known: "in memory and on disk", told: f"in memory, though its directory has {told}"}
    return REFUSED_ID.states(
        f"broker {broker_id} knows {partition} by the topic id {known} {where.get(str(on_disk), 'in memory')}, and is told {told}: it neither leads nor follows it",
        advice="Restart the broker: it takes the topic id from the directory." if on_disk == told else "",
        topic_partition=partition,
        broker_id=broker_id,
        citations=citations,
    )


STRAY = Rule(
    "KF505",
    Weight.NOTE,
    title="stray replica",
    meaning="The cluster no longer assigns this replica to the broker, which set it aside.",
    advice="Keep it until it is clear that no current replica lacks its records.",
    references=("KAFKA-15605",),
    told_apart_by=ToldApartBy.FILE,
)

VANISHING_DIRECTORY = Rule(
    "KF214",
    Weight.NOTE,
    title="a directory on its way to deletion",
    meaning="The broker renamed it when the topic was deleted or the replica moved away, and removes it a minute later.",
    advice="Copy it if its records may be needed.",
    told_apart_by=ToldApartBy.FILE,
)


OF_INVENTORY: "RulesOf[[Inventory], Finding]" = RulesOf()
"""What lies in the given directories, by names and small files alone."""

MOST_NAMED = 100
"""Unknown files of one input that are findings of their own; all of them are listed anyway."""


def inventory_findings(inventory: "Inventory") -> tuple[Finding, ...]:
    """Return all findings about the inventory, the gravest first."""
    return by_gravity(tuple(OF_INVENTORY.of(inventory)))


@OF_INVENTORY
def _missing(inventory: "Inventory") -> Iterator[Finding]:
    nodes = {node.input: node for node in inventory.nodes}
    for one in inventory.missing:
        yield missing_finding(
            one.unaccounted,
            one.topic_partition,
            Citation(input=one.input, path=one.path),
            _node_id(nodes.get(one.input)),
        )


@OF_INVENTORY
def _cleaners(inventory: "Inventory") -> Iterator[Finding]:
    nodes = {node.input: node.node_id for node in inventory.nodes}
    for one in inventory.partitions:
        if one.cleaner_lag is None or isinstance(one.topic, Absent) or isinstance(one.partition, Absent):
            continue
        yield cleaner_finding(
            one.cleaner_lag,
            where=one.path,
            partition=TopicPartition(one.topic, one.partition),
            broker_id=nodes.get(one.input, Absent.UNKNOWN),
            citation=Citation(input=one.input, path=one.path),
        )


@OF_INVENTORY
def _lost(inventory: "Inventory") -> Iterator[Finding]:
    for one in inventory.lost:
        yield lost_directory_finding(one.topic_partition, one.value, one.broker_id)


IN_TWO_LOG_DIRECTORIES = Rule(
    "KF502",
    Weight.DAMAGE,
    title="one partition is in two log directories of a node",
    meaning="A broker refuses to start when two of its log directories hold one partition, but for a move. In KRaft, since 3.7.1, one of them that the metadata does not assign, or that is of another topic id, is renamed to -stray first, and the broker starts.",
    advice="Compare both directories; keep copies of both before one is taken away.",
    references=("KIP-113",),
)


def doubled_finding(
    partition: TopicPartition, broker_id: int | Absent, places: Sequence[Citation], lengths: Sequence[int] = ()
) -> Finding:
    """Return the finding about a partition that several log directories of a node hold, with the offsets of each where these were read."""
    full = [(place.path, length) for place, length in zip(places, lengths, strict=False) if length]
    anew = (
        f": {counted(full[0][1], 'offset')} in one, and none in another, as when it was made anew while that log directory was offline (3.0 to 3.6)"
        if lengths and len(full) == 1
        else ""
    )
    return IN_TWO_LOG_DIRECTORIES.states(
        f"{'the node' if isinstance(broker_id, Absent) else f'broker {broker_id}'} holds {partition} in {len(places)} of its log directories{anew}",
        topic_partition=partition,
        broker_id=broker_id,
        citations=tuple(places),
    )


@OF_INVENTORY
def _doubled(inventory: "Inventory") -> Iterator[Finding]:
    live: dict[tuple[int, TopicPartition], list[ListedPartition]] = defaultdict(list)
    for one in inventory.partitions:
        if one.state == "live" and (key := _topic_partition(one)) is not None:
            live[one.input, key].append(one)
    nodes = {node.input: node for node in inventory.nodes}
    for (index, key), replicas in live.items():
        if len(replicas) > 1 and index in nodes:
            yield doubled_finding(key, nodes[index].node_id, [Citation(input=index, path=one.path) for one in replicas])


STRANGE_DIRECTORY = Rule(
    "KF503",
    Weight.DECIDE,
    title="a directory that is neither a partition nor anything else a broker writes",
    meaning="A broker of any version aborts at start on a directory whose name is not of the form topic-partition. Since 2.8 that start has removed the clean-shutdown marker by then, so the next one recovers every log of the directory.",
    advice="Move it out of the log directory of the broker, not of the evidence, before the broker is started.",
)


@OF_INVENTORY
def _strange_directories(inventory: "Inventory") -> Iterator[Finding]:
    nodes = {node.input: node for node in inventory.nodes}
    for directory in inventory.directories:
        if directory.kind in {"unknown", "lost-and-found"}:
            yield STRANGE_DIRECTORY.states(
                f"directory {directory.path} is not named like a partition",
                broker_id=_node_id(nodes.get(directory.input)),
                citations=(Citation(input=directory.input, path=directory.path),),
            )


@OF_INVENTORY
def _other_topics(inventory: "Inventory") -> Iterator[Finding]:
    clusters = {node.input: node.cluster_id for node in inventory.nodes}
    ids: dict[tuple[object, TopicPartition], dict[str, list[ListedPartition]]] = defaultdict(lambda: defaultdict(list))
    for one in inventory.partitions:
        key = _topic_partition(one)
        if one.state == "live" and key is not None and not isinstance(one.topic_id, Absent):
            ids[clusters.get(one.input), key][one.topic_id].append(one)
    for (_, key), by_id in ids.items():
        if len(by_id) > 1:
            yield OTHER_TOPIC.states(
                f"replicas of {key} belong to {len(by_id)} topics: ids {' and '.join(sorted(by_id))}",
                topic_partition=key,
                citations=tuple(
                    Citation(input=one.input, path=f"{one.path}/partition.metadata")
                    for _, replicas in sorted(by_id.items())
                    for one in replicas
                ),
            )


@OF_INVENTORY
def _strays(inventory: "Inventory") -> Iterator[Finding]:
    nodes = {node.input: node for node in inventory.nodes}
    for one in inventory.partitions:
        if one.state == "stray":
            key = _topic_partition(one)
            yield STRAY.states(
                f"{one.path} is a stray replica",
                topic_partition=Absent.UNKNOWN if key is None else key,
                broker_id=_node_id(nodes.get(one.input)),
                citations=(Citation(input=one.input, path=one.path),),
            )


STRANGE_FILE = Rule(
    "KF506",
    Weight.NOTE,
    title="a name that a broker does not write",
    meaning="The file is listed and was not read as Kafka data.",
    advice="Check where it comes from; brokers ignore most such files.",
    told_apart_by=ToldApartBy.FILE,
)


@OF_INVENTORY
def _unknown_files(inventory: "Inventory") -> Iterator[Finding]:
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
    return STRANGE_FILE.states(statement, citations=(Citation(input=index, path=path),))


def _topic_partition(one: "ListedPartition") -> TopicPartition | None:
    if isinstance(one.topic, Absent) or isinstance(one.partition, Absent):
        return None
    return TopicPartition(one.topic, one.partition)


def _node_id(node: "ListedNode | None") -> int | Absent:
    return Absent.UNKNOWN if node is None else node.node_id
