"""What is wrong with the log directories of one broker as they lie side by side: a partition in two of them, moves that can't end, directories under the name of another topic, and partitions known by another topic id."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations
from pathlib import PurePath
from typing import TYPE_CHECKING

from kforensics.case.cluster import cluster_of
from kforensics.case.model import Case, fact_of_question, now_of, places_of
from kforensics.case.wanted import is_wanted
from kforensics.damage import Absent
from kforensics.evidence.discovery.inputs import Inputs, are_disks_of_one, has_log_files, named_log_dirs
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.metadata.state import newest_log
from kforensics.evidence.model import Citation, Replica
from kforensics.evidence.replica.collect import collect_replica
from kforensics.findings.model import Finding
from kforensics.findings.rules.directories import doubled_finding, future_finding, misnamed_finding, refused_id_finding
from kforensics.units import Depth, TopicPartition

if TYPE_CHECKING:
    from kforensics.evidence.metadata.history import MetadataHistory


@fact_of_question
def stuck_and_doubled(case: Case) -> tuple[Finding, ...]:
    """Return the partitions that two log directories of a broker hold, and the moves between log directories that can't end."""
    now = now_of(case)
    found: list[Finding] = []
    for partition, group in places_of(now).by_partition.items():
        if len({one.state.broker_id for one in group}) == len(group) or not is_wanted(partition, case.ask):
            continue
        own: dict[int, list[PartitionPlace]] = defaultdict(list)
        for place in group:
            if place.directory_state in {"live", "future"} and isinstance(broker := place.state.broker_id, int):
                own[broker].append(place)
        for broker, places in own.items():
            live = [one for one in places if one.is_live]
            futures = [one for one in places if not one.is_live]
            if len(live) > 1 and _are_disks_of_one(live, now.inputs):
                found.append(doubled_finding(partition, broker, list(map(_citation, live)), list(map(_length, live))))
            elif len(live) == 1 and futures:
                found += _stuck(partition, broker, live[0], futures)
    return tuple(found)


def _are_disks_of_one(places: Sequence[PartitionPlace], inputs: Inputs) -> bool:
    """Whether directories lie side by side, each with an id of its own, or are disks of one node for another reason: copies of one directory have the same id."""
    known = [
        (PurePath(str(inputs.found[one.state.input].root / log_dir.path)).parent, log_dir.meta.directory_id)
        for one in places
        for log_dir in inputs.found[one.state.input].log_dirs
        if log_dir.path == one.state.log_dir and not isinstance(log_dir.meta, Absent)
    ]
    ids = {directory for _, directory in known if isinstance(directory, str)}
    if len({parent for parent, _ in known}) == 1 and len(ids) == len(places):
        return True
    given = [inputs.found[at] for at in sorted({one.state.input for one in places})]
    named = named_log_dirs(inputs)
    return len(given) == len(places) and all(are_disks_of_one(*both, named) for both in combinations(given, 2))


def _length(place: PartitionPlace) -> int:
    lineage = _replica(place).lineage
    return lineage.log_end_offset - (lineage.log_start_offset if isinstance(lineage.log_start_offset, int) else 0)


def _stuck(
    partition: TopicPartition, broker: int, place: PartitionPlace, futures: Sequence[PartitionPlace]
) -> Iterator[Finding]:
    start = _replica(place).lineage.log_start_offset
    for one in futures:
        end = _replica(one).lineage.log_end_offset
        if isinstance(start, int) and end < start:
            yield future_finding(
                partition=partition, broker_id=broker, future=(_citation(one), end), current=(_citation(place), start)
            )


def misnamed_directories(case: Case, partitions: Collection[TopicPartition]) -> tuple[Finding, ...]:
    """Return the directories, of partitions of which something is amiss, whose topic id is that of another topic of the metadata: their names were exchanged, or a file of another one was put there."""
    now = now_of(case)
    newest = newest_log(cluster_of(now).histories)
    if newest is None or not partitions:
        return ()
    names = topics_by_id(newest)
    found = []
    for partition in sorted(partitions):
        for place in places_of(now).by_partition.get(partition, ()):
            if not place.is_live:
                continue
            topic = names.get(str(_replica(place).topic_id))
            if topic is not None and topic != partition.topic:
                found.append(misnamed_finding(partition, place.state.broker_id, _citation(place), topic))
    return tuple(found)


@fact_of_question
def refused_ids(case: Case) -> tuple[Finding, ...]:
    """Return the partitions that brokers know under another topic id than they are told, by their lines since they were started last."""
    now = now_of(case)
    if not has_log_files(now.inputs):
        return ()
    from kforensics.formats.log_lines.event import LogEventKind as Kind  # noqa: PLC0415 - of broker logs alone
    from kforensics.reconcile.observed.logged_events import LoggedEvent, of_kinds  # noqa: PLC0415 - likewise

    last: dict[tuple[int, TopicPartition], LoggedEvent] = {}
    for item in of_kinds(cluster_of(now).events, (Kind.TOPIC_ID_MISMATCH, Kind.BROKER_STARTED)):
        partition, broker = item.event.topic_partition, item.node_id
        if item.event.kind is Kind.BROKER_STARTED:
            last = {key: one for key, one in last.items() if key[0] != broker}
        elif isinstance(broker, int) and isinstance(partition, TopicPartition) and is_wanted(partition, case.ask):
            last[broker, partition] = item
    found = []
    for (broker, partition), item in sorted(last.items(), key=lambda one: one[0]):
        ids = str(item.event.fields.get("topic_id")), str(item.event.fields.get("other_topic_id"))
        own = [
            place
            for place in places_of(now).by_partition.get(partition, ())
            if place.is_live and place.state.broker_id == broker
        ]
        on_disk = _replica(own[0]).topic_id if own else Absent.UNKNOWN
        citations = (item.citation, *map(_citation, own))
        found.append(refused_id_finding(partition, broker, ids, on_disk, citations))
    return tuple(found)


def topics_by_id(history: "MetadataHistory") -> dict[str, str]:
    """Return the topics that there are, by id."""
    return {
        topic_id: name
        for name, ids in history.topic_ids.items()
        for topic_id in ids
        if isinstance(history.topics[topic_id].removed, Absent)
    }


def _replica(place: PartitionPlace) -> Replica:
    return collect_replica(place, depth=Depth.TAILS).replica


def _citation(place: PartitionPlace) -> Citation:
    return Citation(input=place.state.input, path=place.path)
