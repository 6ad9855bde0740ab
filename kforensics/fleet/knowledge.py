"""Facts from the metadata logs, broker logs and consumer groups of a fleet, cluster by cluster, without reading its partitions."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from typing import Any

from kforensics.commands.absent_replicas import known_partitions
from kforensics.commands.cluster_evidence import gather_cluster_evidence, given_brokers
from kforensics.commands.partition_comparison import DiffOptions
from kforensics.damage import Absent, Span
from kforensics.errors import InputsRefused
from kforensics.evidence.captured.rows import known_or
from kforensics.evidence.discovery.checkpoint_lines import packed_line
from kforensics.evidence.discovery.inputs import WHOLE_INPUT, FoundInput, Inputs
from kforensics.evidence.discovery.partition_dirs import (
    LogDirState,
    LostDirectory,
    PartitionPlace,
    Places,
    lost_directories,
)
from kforensics.evidence.group_commits import GroupCommitRecord
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.evidence.metadata.quorum import newest_log
from kforensics.evidence.metadata.unrelated import refuse_two_clusters
from kforensics.evidence.model import Citation, Problem
from kforensics.fleet.judge import ClusterKnowledge
from kforensics.fleet.places import LISTERS, PlannedInput
from kforensics.fleet.plan import IS_DIRECTORY, LogDirTask, LogDirTotals, part_name, wanted_evidence
from kforensics.fleet.tables import Tables
from kforensics.reconcile.replicas.report import Given
from kforensics.source.naming import FileKind, FileSuffix, parse_partition_directory
from kforensics.source.walk import Found, FoundFile, join, walk_partition
from kforensics.units import TopicPartition

MOST_METADATA_LOGS = 16
"""Copies of the metadata log that are read for a cluster, those that reach furthest; every broker of a large one has its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _MetadataOnly(FoundInput):
    """An input of which only the metadata log is looked at."""

    def walk(self, *, within: Callable[[str], bool] | None = None, in_outline: bool = False) -> Iterator[Found]:  # noqa: ARG002 - the files of this log are always wanted
        """Yield the files of the metadata log."""
        for log_dir in self.log_dirs:
            if not log_dir.is_metadata_dir:
                continue
            for entry in self.listings.of(log_dir.path).entries:
                name = parse_partition_directory(entry.name) if entry.is_directory else None
                if name is not None and name.is_metadata and (within is None or within(entry.name)):
                    yield from walk_partition(self.listings, join(log_dir.path, entry.name), name=entry.name)


@dataclass(frozen=True, slots=True)
class _CarriedCommits:
    """Consumers' offsets in the evidence of scans; read where they are asked for."""

    places: tuple[tuple[int, str, Tables], ...]
    """Input, key of the log directory, evidence."""

    def __iter__(self) -> Iterator[GroupCommitRecord]:
        for number, source, evidence in self.places:
            for part in evidence.parts("commits"):
                if not part.startswith(f"{source}-"):
                    continue
                for row in evidence.read_part("commits", part).to_pylist():
                    yield GroupCommitRecord(
                        partition=TopicPartition(row["topic"], row["partition"]),
                        group=row["group"],
                        offset=row["committed_offset"],
                        leader_epoch=known_or(row["leader_epoch"], Absent.NOT_WRITTEN),
                        time_ms=row["time_ms"],
                        citation=Citation(input=number, path=row["path"], span=Span(row["position"], 0)),
                    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What is known of the clusters, before any partition is read."""

    clusters: Mapping[str, ClusterKnowledge]
    known: Mapping[str, Mapping[TopicPartition, str | Absent]]
    """By cluster, the partitions of which the metadata log or else a checkpoint speaks, with their topic ids."""
    with_metadata: frozenset[str]
    """Clusters of which a metadata log is among the inputs."""
    problems: tuple[Problem, ...]


def cluster_of_inputs(inputs: Sequence[PlannedInput]) -> tuple[str, ...]:
    """Return the cluster of each input; those that do not know theirs belong to the only one there is, else to none.

    Returns:
        Cluster ids in their order, empty for none.
    """
    known = [one.found.described.cluster_id for one in inputs]
    ids = {one for one in known if not isinstance(one, Absent)}
    only = next(iter(ids)) if len(ids) == 1 else ""
    return tuple(only if isinstance(one, Absent) else one for one in known)


def gather_knowledge(
    inputs: Sequence[PlannedInput],
    clusters: Sequence[str],
    tasks: Sequence[LogDirTask],
    totals: Sequence[LogDirTotals],
    tables: Tables,
) -> Gathered:
    """Return the facts about each cluster, and what could not be read of it."""
    by_number = {one.number: one for one in totals}
    out: dict[str, ClusterKnowledge] = {}
    lost, left_out = _lost(tasks, totals, tables)
    problems: list[Problem] = [*left_out]
    known: dict[str, Mapping[TopicPartition, str | Absent]] = {}
    with_metadata: set[str] = set()
    for cluster in sorted(set(clusters)):
        chosen = _chosen(inputs, [number for number, own in enumerate(clusters) if own == cluster])
        found = Inputs(
            found=tuple(
                _reduced(one.found) if number in chosen else replace(one.found, shape=Absent.UNREADABLE, obstacles=())
                for number, one in enumerate(inputs)
            ),
            cluster=cluster or Absent.UNKNOWN,
            is_cluster_chosen=True,
        )
        places = [
            place
            for task in tasks
            if clusters[task.input] == cluster and task.evidence is None
            for place in _offsets_places(task, by_number[task.number])
        ]
        carried = tuple(
            (task.input, task.source, Tables(task.evidence))
            for task in tasks
            if clusters[task.input] == cluster and task.evidence is not None
        )
        gathered = gather_cluster_evidence(
            found, _as_places(places), carried_commits=_CarriedCommits(carried), is_audit=True
        )
        problems.extend(gathered.problems)
        try:
            refuse_two_clusters(gathered.histories, found)
        except InputsRefused as error:
            first = min(one.input for one in gathered.histories)
            problems.append(Problem(input=first, path=WHOLE_INPUT, message=str(error)))
        history = newest_log(gathered.histories)
        known[cluster] = known_partitions(
            history, [one for one in lost if clusters[one.value.citation.input] == cluster], gathered.histories
        )
        with_metadata |= {cluster} if history is not None else set()
        racks = {
            **_racks_in(history),
            **{
                broker: one.rack
                for number, one in enumerate(inputs)
                if clusters[number] == cluster
                and one.rack is not None
                and not isinstance(broker := one.found.described.broker_id, Absent)
            },
        }
        out[cluster] = ClusterKnowledge(
            facts=gathered.facts,
            protocol_hints=dict(gathered.protocol_hints),
            possible_protocols=gathered.possible_protocols,
            racks=racks,
            given=_given(inputs, [number for number, own in enumerate(clusters) if own == cluster], lost),
        )
    return Gathered(clusters=out, known=known, with_metadata=frozenset(with_metadata), problems=tuple(problems))


def _lost(
    tasks: Sequence[LogDirTask], totals: Sequence[LogDirTotals], tables: Tables
) -> tuple[tuple[LostDirectory, ...], tuple[Problem, ...]]:
    """Return the partitions that checkpoints name and of which their node holds no directory, and what copies may have left out."""
    by_number = {one.number: one for one in totals}
    states = [_named_state(task, by_number[task.number]) for task in tasks]
    # Only where something is named at all are listings looked at again.
    wanted = {(state.broker_id, state.input) for state in states if state.without_directory}
    held = {
        (task.input, partition)
        for task, state in zip(tasks, states, strict=True)
        if any(state.input == number or state.broker_id == broker for broker, number in wanted)
        for partition in _held(task, tables)
    }
    return lost_directories(states, held) if wanted else ((), ())


def _held(task: LogDirTask, tables: Tables) -> Iterator[TopicPartition]:
    """Yield the partitions of which a log directory holds a directory."""
    if task.evidence is None:
        rows = tables.read_part("plan", part_name(task.number), columns=["kind", "topic", "partition"]).to_pylist()
        found: Iterable[Mapping[str, Any]] = (row for row in rows if row["kind"] == IS_DIRECTORY)
    else:
        where = wanted_evidence(task.source, DiffOptions())
        found = Tables(task.evidence).rows("replicas", columns=["topic", "partition"], where=where)
    yield from (TopicPartition(row["topic"], row["partition"]) for row in found)


def _named_state(task: LogDirTask, total: LogDirTotals) -> LogDirState:
    named: dict[str, dict[TopicPartition, int]] = {}
    for topic, partition, name, offset, line in total.named:
        named.setdefault(name, {})[TopicPartition(topic, partition)] = packed_line(offset, line)
    return LogDirState(
        listings=task.found.listings,
        input=task.input,
        log_dir=task.found.log_dir_paths[0] if task.found.log_dir_paths else "",
        broker_id=task.found.described.broker_id if task.found.log_dirs else Absent.UNKNOWN,
        clean_shutdown=bool(task.found.log_dirs) and task.found.log_dirs[0].clean_shutdown,
        without_directory=named,
    )


def _given(inputs: Sequence[PlannedInput], members: Sequence[int], lost: Sequence[LostDirectory]) -> Given:
    """Return the brokers of a cluster that are given."""
    found = Inputs(found=tuple(inputs[number].found for number in members))
    return given_brokers(found, [one for one in lost if one.value.citation.input in members])


def _chosen(inputs: Sequence[PlannedInput], members: Sequence[int]) -> frozenset[int]:
    """Return the inputs whose metadata log is read: all, or in a large cluster those that reach furthest, controllers before brokers."""
    with_log = [n for n in members if any(log_dir.is_metadata_dir for log_dir in inputs[n].found.log_dirs)]
    if len(with_log) > MOST_METADATA_LOGS:
        with ThreadPoolExecutor(LISTERS) as pool:
            reaches = dict(zip(with_log, pool.map(lambda n: _reach(inputs[n].found), with_log), strict=True))
        with_log.sort(key=lambda n: (reaches[n], inputs[n].found.described.kind != "broker", -n), reverse=True)
    without = set(members) - set(with_log)
    return frozenset({*with_log[:MOST_METADATA_LOGS], *without})


def _reach(found: FoundInput) -> tuple[int, int]:
    """Return the extent of a metadata log without reading it: the base offset and the length of its last segment."""
    segments = [
        (item.name.base_offset, item.length)
        for item in _reduced(found).walk()
        if isinstance(item, FoundFile)
        and item.name.kind is FileKind.SEGMENT
        and item.name.suffix is FileSuffix.NONE
        and isinstance(item.name.base_offset, int)
    ]
    return max(segments, default=(-1, 0))


def _reduced(found: FoundInput) -> FoundInput:
    if not found.log_dirs:
        return replace(found, shape=Absent.UNREADABLE) if found.described.kind == "partition" else found
    return _MetadataOnly(**{one.name: getattr(found, one.name) for one in fields(found)})


def _racks_in(history: MetadataHistory | None) -> dict[int, str]:
    if history is None:
        return {}
    brokers = history.latest().brokers
    return {number: state.rack for number, state in brokers.items() if not isinstance(state.rack, Absent)}


def _offsets_places(task: LogDirTask, totals: LogDirTotals) -> Iterator[PartitionPlace]:
    log_dir = task.found.log_dir_paths[0] if task.found.log_dir_paths else ""
    state = LogDirState(
        listings=task.found.listings,
        input=task.input,
        log_dir=log_dir,
        broker_id=task.found.described.broker_id,
        clean_shutdown=False,
    )
    for path in totals.offsets_places:
        name = parse_partition_directory(path.rpartition("/")[2])
        if name is not None:
            yield PartitionPlace(
                state=state, path=path, topic_partition=name.topic_partition, directory_state=name.state.value
            )


def _as_places(places: Iterable[PartitionPlace]) -> Places:
    by_partition: dict[TopicPartition, tuple[PartitionPlace, ...]] = {}
    for place in places:
        by_partition[place.topic_partition] = (*by_partition.get(place.topic_partition, ()), place)
    return Places(by_partition=by_partition, problems=())
