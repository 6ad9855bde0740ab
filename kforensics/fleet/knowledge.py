"""Facts from the metadata logs, broker logs and consumer groups of a fleet, cluster by cluster, without reading its partitions."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pd

from kforensics.ask.model import Ask
from kforensics.case.cluster import Cluster, cluster_of, commits_by_partition, gather_cluster, given_brokers
from kforensics.case.comparison import known_partitions
from kforensics.case.disks import refused_ids, stuck_and_doubled, topics_by_id
from kforensics.case.model import Case, copies_on_record, places_of, remote_starts_in, tell
from kforensics.commands.predicting.refusals import refused_starts
from kforensics.damage import Absent, Span
from kforensics.errors import InputsRefused, UsageError, did_you_mean, nearest_names
from kforensics.evidence.discovery.inputs import WHOLE_INPUT, FoundInput, Inputs
from kforensics.evidence.discovery.log_dirs import live_names
from kforensics.evidence.discovery.partition_dirs import (
    LogDirState,
    LostDirectory,
    PartitionPlace,
    Places,
    lost_directories,
    packed_line,
)
from kforensics.evidence.group_commits import commits_in_log, highest_commits
from kforensics.evidence.metadata.compare import refuse_two_clusters
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.evidence.metadata.state import newest_log
from kforensics.evidence.model import Citation, GroupCommit, Problem
from kforensics.findings.model import Finding
from kforensics.findings.rules.inputs import RefusedStart
from kforensics.fleet.audit_tables import AuditTables
from kforensics.fleet.facts import NOTHING, ClusterKnowledge, Gathered, SplitKnowledge, no_commits
from kforensics.fleet.plan import IS_DIRECTORY, LogDirTask, LogDirTotals, part_name, place_of, state_of, verdict_id
from kforensics.fleet.schemas import COMMITS, FACTS
from kforensics.fleet.sources import LISTERS, Assignments, PlannedInput
from kforensics.fleet.tables import Tables
from kforensics.formats.log_lines.event import LogEventKind
from kforensics.reconcile.observed.logged_events import of_kinds
from kforensics.source.naming import FileKind, FileSuffix, parse_partition_directory
from kforensics.source.walk import SETTLED_NS, Found, FoundFile, Listings, PackedNames, join, walk_partition
from kforensics.units import OFFSETS_TOPIC, REMOTE_LOG_TOPIC, TopicPartition

MOST_METADATA_LOGS = 16
"""Copies of the metadata log that are read for a cluster, those that reach furthest; every broker of a large one has its own."""

FACTS_TABLE = "facts"
"""What is known of each partition beside its replicas; a table of the stages alone."""

COMMITS_TABLE = "commits"
"""What consumer groups committed by each log directory, likewise."""

LISTED_HERE = 20_000
"""Partition directories that the driver lists by itself."""

FACTS_A_PART = 20_000
"""Partitions; one task of the scan reads a part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _MetadataOnly(FoundInput):
    """An input of which only the metadata log is looked at."""

    def walk(self, *, within: Callable[[str], bool] | None = None, in_outline: bool = False) -> Iterator[Found]:  # noqa: ARG002 - the files of this log are always wanted
        for log_dir in self.log_dirs:
            if not log_dir.is_metadata_dir:
                continue
            for entry in self.listings.of(log_dir.path).entries:
                name = parse_partition_directory(entry.name) if entry.is_directory else None
                if name is not None and name.is_metadata and (within is None or within(entry.name)):
                    yield from walk_partition(self.listings, join(log_dir.path, entry.name), name=entry.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _NamesThere(PackedNames):
    """The names of partition directories of a log directory of which one is known: it is listed where they are asked for."""

    listings: Listings
    path: str

    def __iter__(self) -> Iterator[str]:
        yield from live_names(self.listings, self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class _InputsOfCluster(Inputs):
    """The inputs of a fleet, of which those of one cluster are looked at, so that many clusters cost what each does."""

    members: tuple[int, ...]

    @property
    def numbered(self) -> Iterator[tuple[int, FoundInput]]:
        return ((number, self.found[number]) for number in self.members)


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """The inputs of all clusters, with what was listed in them."""

    inputs: tuple[PlannedInput, ...]
    clusters: tuple[str, ...]
    """The cluster of each input."""
    tasks: tuple[LogDirTask, ...]
    totals: tuple[LogDirTotals, ...]
    assignments: Mapping[str, Assignments]
    """By cluster, what the inventory says."""
    tables: Tables
    bases: Mapping[str, AuditTables] = field(default_factory=dict)
    """By cluster, the earlier audit whose commits are taken over where nothing changed."""
    audit: str = ""
    """The name of the audit."""
    bare: frozenset[int] = frozenset()
    """Inputs whose copies left out the logs."""
    options: Ask = field(default_factory=Ask)

    @cached_property
    def members(self) -> Mapping[str, Sequence[int]]:
        """The inputs of each cluster."""
        out: dict[str, list[int]] = {}
        for number, cluster in enumerate(self.clusters):
            out.setdefault(cluster, []).append(number)
        return out

    @property
    def is_small(self) -> bool:
        """Whether the driver looks at all of it by itself, and keeps what it listed."""
        return is_small(self.inputs)

    @cached_property
    def _listings(self) -> dict[int, pa.Table]:
        return {}

    def listing(self, number: int) -> pa.Table:
        """Return the listing of a log directory, which is asked for again and again."""
        found = self._listings.get(number)
        if found is None:
            found = self.tables.read_part("plan", part_name(number))
            if self.is_small:
                self._listings[number] = found
        return found

    @cached_property
    def _gathered(self) -> dict[str, Cluster]:
        return {}

    def gathered(self, cluster: str) -> Cluster:
        """Return what metadata logs and log files say of a cluster."""
        found = self._gathered.get(cluster)
        if found is None:
            found = gather_cluster(
                self.inputs_of(cluster), Places(by_partition={}, problems=()), commits=no_commits, is_audit=True
            )
            if self.is_small:
                self._gathered[cluster] = found
        return found

    def inputs_of(self, cluster: str, *, is_whole: bool = False) -> "_InputsOfCluster":
        """Return the inputs of a cluster, with the files of their metadata logs alone or with all."""
        own, members = list(self.nothing), self.members[cluster]
        chosen = _chosen(self.inputs, members)
        for number in members:
            given = _with_names(self.inputs[number].found)
            reduced = _reduced(given) if number in chosen else replace(given, shape=Absent.UNREADABLE, obstacles=())
            own[number] = given if is_whole else reduced
        known = cluster or Absent.UNKNOWN
        return _InputsOfCluster(found=tuple(own), members=tuple(members), cluster=known, is_cluster_chosen=True)

    @cached_property
    def listed(self) -> Mapping[int, list[tuple[LogDirTask, LogDirTotals]]]:
        """The log directories of each input, as far as they are read."""
        out: dict[int, list[tuple[LogDirTask, LogDirTotals]]] = {}
        for one in self.totals:
            out.setdefault(self.tasks[one.number].input, []).append((self.tasks[one.number], one))
        return out

    @cached_property
    def nothing(self) -> tuple[FoundInput, ...]:
        """Every input as one of which nothing is looked at."""
        return tuple(_without_files(one.found) for one in self.inputs)


def is_small(inputs: Sequence[PlannedInput]) -> bool:
    """Return whether the driver lists by itself what a job would take longer to start for."""
    return sum(one.partition_count for one in inputs) <= LISTED_HERE


def cluster_of_inputs(inputs: Sequence[PlannedInput]) -> tuple[str, ...]:
    """Return the cluster id of each input; those that do not know theirs belong to the only one there is, else to none, which is empty."""
    known = [one.found.described.cluster_id for one in inputs]
    ids = {one for one in known if not isinstance(one, Absent)}
    only = next(iter(ids)) if len(ids) == 1 else ""
    return tuple(only if isinstance(one, Absent) else one for one in known)


def gather_knowledge(fleet: Fleet, cluster: str) -> Gathered:
    """Return what is known of a cluster, and write what is known of each of its partitions."""
    inputs, members = fleet.inputs, fleet.members[cluster]
    listed = [one for number in members for one in fleet.listed.get(number, ())]
    lost, left_out = _lost(listed, fleet)
    problems: list[Problem] = [*left_out]
    found, gathered = fleet.inputs_of(cluster), fleet.gathered(cluster)
    problems.extend((*gathered.problems, *gathered.left_out))
    try:
        refuse_two_clusters(gathered.histories, found)
    except InputsRefused as error:
        first = min(one.input for one in gathered.histories)
        problems.append(Problem(input=first, path=WHOLE_INPUT, message=str(error)))
    history = newest_log(gathered.histories)
    stated = fleet.assignments.get(cluster, {})
    known = known_partitions(history, lost, gathered.histories)
    if history is None:
        known = {**dict.fromkeys(stated, Absent.UNKNOWN), **known}
    racks = {
        **_racks_in(history),
        **{
            broker: one.rack
            for one in (inputs[number] for number in members)
            if one.rack is not None and not isinstance(broker := one.found.described.broker_id, Absent)
        },
    }
    split = SplitKnowledge(
        ClusterKnowledge(
            facts=gathered.facts,
            protocol_hints=dict(gathered.protocol_hints),
            possible_protocols=gathered.possible_protocols,
            racks=racks,
            given=given_brokers(
                Inputs(found=tuple(inputs[number].found for number in members)),
                lost,
                versions=gathered.versions,
                history=history,
            ),
            assignments=stated,
            remote_starts=_remote_starts(fleet, listed, lost),
        ),
        commits_by_partition(highest_commits(_commits_of(fleet, listed))),
    )
    return Gathered(
        cluster=cluster,
        shared=split.shared(),
        parts=tuple(_write_facts(fleet, cluster, split, known, [task for task, _ in listed])),
        racks=racks,
        has_metadata=history is not None,
        problems=tuple(problems),
        topics={} if history is None else topics_by_id(history),
        quorum=None if gathered.quorum is None else replace(gathered.quorum, state=cast("Any", None)),
        findings=_of_disks(fleet, found, gathered, listed),
    )


def _remote_starts(
    fleet: Fleet, listed: Sequence[tuple[LogDirTask, LogDirTotals]], lost: Iterable[LostDirectory]
) -> dict[TopicPartition, tuple[tuple[str, int], ...]]:
    places = []
    for task, _ in listed:
        rows = fleet.listing(task.number)
        rows = rows.filter(pc.and_(pc.equal(rows["topic"], REMOTE_LOG_TOPIC), pc.equal(rows["state"], "live")))
        places += [place_of(task, row) for row in rows.to_pylist()]
    return remote_starts_in(copies_on_record(places, lost)) if places else {}


def _of_disks(
    fleet: Fleet, inputs: Inputs, gathered: Cluster, listed: Sequence[tuple[LogDirTask, LogDirTotals]]
) -> tuple[Finding, ...]:
    """Return what is wrong with log directories of one broker as they lie side by side, which partitions that several of them hold show, and lines that name others."""
    by_broker: dict[int | Absent, list[tuple[LogDirTask, pa.Table]]] = {}
    refused = {one.event.topic_partition for one in of_kinds(gathered.events, (LogEventKind.TOPIC_ID_MISMATCH,))}
    for task, _ in listed:
        rows = fleet.listing(task.number)
        directories = rows.filter(pc.equal(rows["kind"], IS_DIRECTORY))
        by_broker.setdefault(task.found.described.broker_id, []).append((task, directories))
    places: dict[TopicPartition, list[PartitionPlace]] = {}
    for own in by_broker.values():
        names = ["topic", "partition"]
        counted = (
            pa.concat_tables([rows.select(names) for _, rows in own]).group_by(names).aggregate([([], "count_all")])
        )
        twice = counted.filter(pc.greater(counted["count_all"], 1)).select(names).to_pylist() if len(own) > 1 else []
        wanted = {TopicPartition(**one) for one in twice} | refused
        for task, rows in own if wanted else ():
            topics = pa.array({one.topic for one in wanted if isinstance(one, TopicPartition)}, pa.string())
            for row in rows.filter(pc.is_in(rows["topic"], value_set=topics)).to_pylist():
                if (partition := TopicPartition(row["topic"], row["partition"])) in wanted:
                    places.setdefault(partition, []).append(place_of(task, row))
    case = Case(ask=fleet.options, inputs=inputs)
    tell(case, places_of, Places(by_partition={one: tuple(own) for one, own in sorted(places.items())}, problems=()))
    tell(case, cluster_of, gathered)
    return (*stuck_and_doubled(case), *refused_ids(case))


def refused_in(fleet: Fleet, cluster: str, doubted: Mapping[int, set[TopicPartition]]) -> tuple[RefusedStart, ...]:
    """Return the brokers of a cluster that do not start as they are, of those that a comparison says something of."""
    return refused_starts(fleet.inputs_of(cluster, is_whole=True), fleet.gathered(cluster), doubted)


def unchanged_offsets(fleet: Fleet, number: int) -> tuple[frozenset[str], int]:
    """Return the directories of consumers' offsets in a log directory that an earlier audit saw as they are, and the bytes of all others."""
    task, rows = fleet.tasks[number], fleet.listing(number)
    columns = ["kind", "path", "directory", "partition", "fingerprint", "mtime_ns", "length"]
    listed = rows.filter(pc.equal(rows["topic"], OFFSETS_TOPIC)).select(columns).to_pylist()
    directories = {row["path"]: row for row in listed if row["kind"] == IS_DIRECTORY}
    base = fleet.bases.get(fleet.clusters[task.input])
    known = frozenset() if base is None else _unchanged(directories, task.source, base)
    return known, sum(row["length"] for row in listed if row["directory"] not in known)


def list_commits(fleet: Fleet, number: int, known: frozenset[str] | None = None) -> int:
    """Write what consumer groups committed by the logs of one log directory, the highest by group, partition and leader epoch, and return the number of rows; a file that can't be read has a row without any.

    Args:
        known: directories that are not read, where it is known already which these are.
    """
    task = fleet.tasks[number]
    place = PartitionPlace(state_of(task), "", TopicPartition(OFFSETS_TOPIC, 0), "live")
    cluster = fleet.clusters[task.input]
    known = unchanged_offsets(fleet, number)[0] if known is None else known
    rows_of = fleet.listing(number)
    listed = rows_of.filter(pc.equal(rows_of["topic"], OFFSETS_TOPIC)).select(
        ["kind", "path", "directory", "partition"]
    )
    listed = listed.to_pylist()
    own = {one: verdict_id(fleet.audit, (cluster, OFFSETS_TOPIC, one)) for one in {row["partition"] for row in listed}}
    rows: list[dict[str, Any]] = []
    if known:
        of_source = pd.field("source") == task.source
        rows += (
            {**row, "verdict_id": own[row["log"]]}
            for row in fleet.bases[cluster].rows(COMMITS_TABLE, columns=COMMITS.names, where=of_source)
            if row["path"].rpartition("/")[0] in known
        )
    logs: dict[str, dict[str, dict[str, Any]]] = {}
    for row in listed:
        if row["kind"] != IS_DIRECTORY and row["directory"] not in known:
            logs.setdefault(row["directory"], {})[row["path"]] = {
                "log": row["partition"],
                "input": task.input,
                "source": task.source,
                "path": row["path"],
                "verdict_id": own[row["partition"]],
            }
    for files in logs.values():
        unread: list[str] = []
        for one in highest_commits(commits_in_log(place, files, unread)):
            assert isinstance(one.citation.span, Span)
            rows.append(
                {
                    **files[one.citation.path],
                    "position": one.citation.span.position,
                    "topic": one.partition.topic,
                    "partition": one.partition.partition,
                    "group_id": one.group,
                    "committed_offset": one.offset,
                    "leader_epoch": None if isinstance(one.leader_epoch, Absent) else one.leader_epoch,
                    "time_ms": one.time_ms,
                }
            )
        rows += (files[path] for path in unread)
    fleet.tables.write(COMMITS_TABLE, part_name(number), rows, COMMITS)
    return len(rows)


def unread_offsets(base: AuditTables) -> list[int]:
    """Return the partitions of consumers' offsets of which an earlier audit could not read a file."""
    unread: list[int] = base.column_table(COMMITS_TABLE, ["log"], pd.field("group_id").is_null())["log"].to_pylist()
    return unread


def _unchanged(directories: Mapping[str, Mapping[str, Any]], source: str, base: AuditTables) -> frozenset[str]:
    """Return the directories of consumers' offsets that are as an earlier audit saw them, which could read all of their files."""
    if not directories:
        return frozenset()
    of_topic = pd.field("topic") == OFFSETS_TOPIC
    problems = base.column_table("problems", ["topic", "partition"], of_topic | pd.field("topic").is_null())
    if problems["topic"].null_count:
        return frozenset()  # what could not be read may have been of any partition
    troubled = {*problems["partition"].to_pylist(), *unread_offsets(base)}
    columns = ["path", "partition", "fingerprint", "audited_at"]
    found = base.column_table("replicas", columns, of_topic & (pd.field("source") == source))
    times = found["audited_at"].cast(pa.int64()).to_pylist()
    return frozenset(
        row["path"]
        for row, time in zip(found.select(columns[:3]).to_pylist(), times, strict=True)
        if row["partition"] not in troubled
        and (now := directories.get(row["path"])) is not None
        and now["fingerprint"] == row["fingerprint"]
        and now["mtime_ns"] + SETTLED_NS < time * 1_000
    )


def _commits_of(fleet: Fleet, listed: Iterable[tuple[LogDirTask, LogDirTotals]]) -> Iterator[GroupCommit]:
    """Yield what the groups of a cluster committed in the order in which `diff` reads it: of equal commits the first one counts."""
    parts = [part_name(one.number) for _, one in listed if one.offsets_bytes]
    is_read = pd.field("group_id").is_valid()
    rows = [row for part in parts for row in fleet.tables.read_part(COMMITS_TABLE, part, filters=is_read).to_pylist()]
    for row in sorted(rows, key=lambda row: (row["log"], row["input"], row["path"], row["position"])):
        yield GroupCommit(
            partition=TopicPartition(row["topic"], row["partition"]),
            group=row["group_id"],
            offset=row["committed_offset"],
            leader_epoch=Absent.NOT_WRITTEN if row["leader_epoch"] is None else row["leader_epoch"],
            time_ms=row["time_ms"],
            citation=Citation(input=row["input"], path=row["path"], span=Span(row["position"], 0)),
        )


def _write_facts(
    fleet: Fleet,
    cluster: str,
    split: SplitKnowledge,
    known: Mapping[TopicPartition, str | Absent],
    tasks: Sequence[LogDirTask],
) -> Iterator[str]:
    """Write the rows of the partitions that are listed, or should be, and yield the names of their parts."""
    every = sorted({*known, *(partition for task in tasks for partition in _held(task, fleet))})
    number = sorted(fleet.members).index(cluster)
    for first in range(0, len(every), FACTS_A_PART):
        rows = []
        for partition in every[first : first + FACTS_A_PART]:
            facts = split.own(partition)
            if facts != NOTHING or partition in known:
                topic_id = known.get(partition, Absent.UNKNOWN)
                rows.append(
                    {
                        "cluster_id": cluster,
                        "topic": partition.topic,
                        "partition": partition.partition,
                        "is_known": partition in known,
                        "topic_id": None if isinstance(topic_id, Absent) else topic_id,
                        "facts": facts,
                    }
                )
        if rows:
            part = f"cluster-{number:05d}-{first:08d}"
            fleet.tables.write(FACTS_TABLE, part, rows, FACTS)
            yield part


def stated_by_cluster(
    assignments: Mapping[str | None, Assignments], clusters: Collection[str]
) -> dict[str, Assignments]:
    """Return the assignments of an inventory by cluster; those that name none belong to the only one there is."""
    out: dict[str, Assignments] = {}
    for named, own in assignments.items():
        cluster = named if named is not None else next(iter(clusters)) if len(clusters) == 1 else None
        if cluster is None:
            words = f"there are {len(clusters)} of them: name it in the column `cluster`"
            raise UsageError(f"the inventory has assignments of partitions and does not say of which cluster; {words}")
        if cluster not in clusters:
            near = did_you_mean(nearest_names(cluster, clusters))
            raise UsageError(
                f"the inventory has assignments of cluster {cluster}, of which no node is given; {near}".rstrip("; ")
            )
        out[cluster] = {**out.get(cluster, {}), **own}
    return out


def _lost(
    listed: Sequence[tuple[LogDirTask, LogDirTotals]], fleet: Fleet
) -> tuple[tuple[LostDirectory, ...], tuple[Problem, ...]]:
    """Return the partitions that checkpoints name and of which their node holds no directory, and what copies may have left out."""
    states = [_named_state(task, total) for task, total in listed]
    # Only where something is named at all are listings looked at again.
    wanted = {(state.broker_id, state.input) for state in states if state.without_directory}
    held = {
        (task.input, partition)
        for (task, _), state in zip(listed, states, strict=True)
        if any(state.input == number or state.broker_id == broker for broker, number in wanted)
        for partition in _held(task, fleet)
    }
    return lost_directories(states, held) if wanted else ((), ())


def _held(task: LogDirTask, fleet: Fleet) -> Iterator[TopicPartition]:
    rows = fleet.listing(task.number)
    held = rows.filter(pc.equal(rows["kind"], IS_DIRECTORY))
    yield from map(TopicPartition, held["topic"].to_pylist(), held["partition"].to_pylist())


def _named_state(task: LogDirTask, total: LogDirTotals) -> LogDirState:
    named: dict[str, dict[TopicPartition, int]] = {}
    for topic, partition, name, offset, line in total.named:
        named.setdefault(name, {})[TopicPartition(topic, partition)] = packed_line(offset, line)
    return state_of(task, without_directory=named)


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


def _without_files(found: FoundInput) -> FoundInput:
    """Return an input of another cluster, of which nothing is looked at."""
    unknown = Absent.UNKNOWN
    described = replace(found.described, kind="unreadable", broker_id=unknown, cluster_id=unknown)
    return FoundInput(described=described, listings=found.listings, shape=Absent.UNREADABLE)


def _reduced(found: FoundInput) -> FoundInput:
    if not found.log_dirs:
        return replace(found, shape=Absent.UNREADABLE) if found.described.kind == "partition" else found
    return _MetadataOnly(**{one.name: getattr(found, one.name) for one in fields(found)})


def _with_names(found: FoundInput) -> FoundInput:
    """Return an input whose log directories name all of their partitions, where they are asked for them."""
    log_dirs = tuple(
        one._replace(partitions=_NamesThere(groups=one.partitions.groups, listings=found.listings, path=one.path))
        for one in found.log_dirs
    )
    return replace(found, log_dirs=log_dirs)


def _racks_in(history: MetadataHistory | None) -> dict[int, str]:
    if history is None:
        return {}
    brokers = history.latest().brokers
    return {number: state.rack for number, state in brokers.items() if not isinstance(state.rack, Absent)}
