"""The end of an audit: its nodes, the findings about the fleet as a whole, and what could not be read."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from kforensics.ask.model import Ask
from kforensics.case.comparison import nodes_in_parts, single_files, without_directories
from kforensics.case.wanted import is_wanted, missing_filters
from kforensics.commands.comparing import OnDisk, beside_shortened_logs
from kforensics.damage import Absent
from kforensics.evidence.captured.columns import known, known_or
from kforensics.evidence.discovery.inputs import WHOLE_INPUT, FoundInput, Inputs
from kforensics.evidence.model import Citation, Problem
from kforensics.evidence.plain import to_plain
from kforensics.findings.concern import ConcernKind, JudgedPartition, concern_of
from kforensics.findings.model import Finding
from kforensics.findings.rules.directories import misnamed_finding
from kforensics.findings.rules.fleet import inventory_finding, quorum_finding, spread_findings, unknown_cluster_finding
from kforensics.findings.rules.inputs import RefusedStart, identity_findings, with_refused_starts
from kforensics.findings.rules.replicas import OF_TRUNCATIONS
from kforensics.fleet.facts import ClusterKnowledge, Gathered, JoinedKnowledge, unpacked
from kforensics.fleet.judge import JudgedRows, WorkContext
from kforensics.fleet.keeping import Kept
from kforensics.fleet.knowledge import FACTS_TABLE
from kforensics.fleet.plan import LogDirTask, LogDirTotals
from kforensics.fleet.rows import finding_of, finding_rows, input_row, problem_row
from kforensics.fleet.sources import FoundSources
from kforensics.fleet.tables import Tables
from kforensics.reconcile.replicas.placement import leader_spread, partition_without_replicas
from kforensics.reconcile.replicas.report import PartitionReport, Verdict
from kforensics.source.store import store_of
from kforensics.units import METADATA_TOPICS, TopicPartition


def write_rest(
    tables: Tables,
    run: int,
    found: FoundSources,
    clusters: Sequence[str],
    tasks: Sequence[LogDirTask],
    totals: Sequence[LogDirTotals],
    problems: Sequence[Problem],
    gathered: Mapping[str, Gathered],
    kept: Kept,
) -> Mapping[str, int]:
    """Write the nodes, the findings about clusters and inventory, and the problems that the driver knows."""
    by_input: dict[int, list[LogDirTotals]] = {}
    for task, total in zip(tasks, totals, strict=True):
        by_input.setdefault(task.input, []).append(total)
    part = f"run-{run:04d}-driver"
    rows = []
    for number, one in enumerate(found.inputs):
        own = by_input.get(number, [])
        described = one.found.described
        racks = gathered[clusters[number]].racks
        rows.append(
            {
                **input_row(number, described),
                "rack": one.rack
                or (None if isinstance(described.broker_id, Absent) else racks.get(described.broker_id)),
                "is_evidence": store_of(one.found.root).capture is not None,
                "log_dirs": list(one.found.log_dir_paths),
                "replicas": sum(total.replicas for total in own),
                "segments": sum(total.segments for total in own),
                "bytes": sum(total.bytes for total in own),
                "problems": sum(problem.input == number for problem in problems),
            }
        )
    tables.write("nodes", part, rows)
    roots = [one.found.root for one in found.inputs]
    findings = [
        row
        for cluster, own in _cluster_findings(tables, found, clusters, gathered, kept).items()
        for row in finding_rows(own, cluster or None, roots)
    ]
    own_findings = (_identity_findings(found, clusters), _misnamed_directories(tables, clusters, gathered, kept))
    for named, item in chain(*own_findings):
        findings += finding_rows([item], named, roots)
    tables.write("findings", part, findings)
    tables.write("problems", part, [problem_row(one) for one in problems])
    return {"nodes": len(rows), "findings": len(findings), "problems": len(problems)}


def _identity_findings(found: FoundSources, clusters: Sequence[str]) -> Iterator[tuple[str | None, Finding]]:
    """Yield what the inventory and the inputs say of who they are, each with the cluster of its rows: what no audit of a cluster has is new in each."""
    for one in found.disagreements:
        described = found.inputs[one.input].found.described
        item = inventory_finding(described.path, one.given, one.written, described.broker_id)
        yield known(described.cluster_id), item
    unknown: dict[str, list[str]] = {}
    for planned, cluster in zip(found.inputs, clusters, strict=True):
        described = planned.found.described
        if planned.found.log_dirs and isinstance(described.cluster_id, Absent):
            name = described.path if isinstance(described.broker_id, Absent) else f"node {described.broker_id}"
            unknown.setdefault(cluster, []).append(name)
    for cluster, names in sorted(unknown.items()):
        yield None, unknown_cluster_finding(names, cluster)


def _misnamed_directories(
    tables: Tables, clusters: Sequence[str], gathered: Mapping[str, Gathered], kept: Kept
) -> Iterator[tuple[str | None, Finding]]:
    """Yield the directories that have the topic id of another topic, each with its cluster."""
    columns = ["input", "path", "topic", "partition", "topic_id", "node_id"]
    where = (pc.field("verdict") == Verdict.DIFFERENT_TOPIC.value) & (pc.field("state") == "live")
    for row in kept.and_new(tables, "replicas", columns, where):
        cluster = clusters[row["input"]]
        topic = gathered[cluster].topics.get(row["topic_id"])
        if topic is not None and topic != row["topic"]:
            partition, broker = TopicPartition(row["topic"], row["partition"]), known_or(row["node_id"], Absent.UNKNOWN)
            directory = Citation(input=row["input"], path=row["path"])
            yield cluster or None, misnamed_finding(partition, broker, directory, topic)


def write_absent(judge: WorkContext, gathered: Mapping[str, Gathered], options: Ask, kept: Kept) -> Mapping[str, int]:
    """Write the partitions that metadata or checkpoints name and of which no input holds a directory."""
    there = {
        (judge.clusters[row["input"]], TopicPartition(row["topic"], row["partition"]))
        for row in judge.tables.rows("replicas", columns=["input", "topic", "partition"])
    }
    there |= {(cluster, TopicPartition(topic, partition)) for cluster, topic, partition in kept.keys}
    troubled = judge.tables.column_table("problems", ["input", "topic", "partition"], pc.field("topic").is_valid())
    # What a problem names has a directory, though it could not be judged.
    there |= {
        (judge.clusters[number], TopicPartition(topic, partition))
        for number, topic, partition in zip(*(column.to_pylist() for column in troubled.columns), strict=True)
    }
    rows = JudgedRows(judge)
    for one in gathered.values():
        joined = JoinedKnowledge(one.shared)
        for row in (row for part in one.parts for row in judge.tables.read_part(FACTS_TABLE, part).to_pylist()):
            partition = TopicPartition(row["topic"], row["partition"])
            if row["is_known"] and (one.cluster, partition) not in there and is_wanted(partition, options):
                knowledge = joined.of(partition, row["facts"])
                topic_id = known_or(row["topic_id"], Absent.UNKNOWN)
                for report in _absent_reports(partition, topic_id, one, knowledge, judge, options):
                    rows.without_directories(one.cluster, report, knowledge)
    return rows.write("driver-absent") if rows.partitions else {}


def _absent_reports(
    partition: TopicPartition,
    topic_id: str | Absent,
    gathered: Gathered,
    knowledge: ClusterKnowledge,
    judge: WorkContext,
    options: Ask,
) -> Iterator[PartitionReport]:
    """Yield the report on a partition without a directory, where one should be among the inputs."""
    found = list(
        without_directories(
            {partition: topic_id}, knowledge, is_stopped=options.is_stopped, has_metadata=gathered.has_metadata
        )
    )
    yield from found
    audited = judge.audited.get(gathered.cluster, frozenset())
    if not found and not gathered.has_metadata and set(knowledge.assignments.get(partition, ())) & audited:
        yield partition_without_replicas(
            partition, None, facts=knowledge.facts, given=knowledge.given, is_stopped=options.is_stopped
        )


def _cluster_findings(
    tables: Tables, found: FoundSources, clusters: Sequence[str], gathered: Mapping[str, Gathered], kept: Kept
) -> dict[str, list[Finding]]:
    """Return the findings about each cluster as a whole: a fleet may well have several, which are judged one by one."""
    members: dict[str, list[FoundInput]] = {}
    for one, own in zip(found.inputs, clusters, strict=True):
        members.setdefault(own, []).append(one.found)
    leaders: dict[str, list[int]] = {}
    where = pc.field("leader_source") == "metadata"
    columns = ["cluster_id", "leader"]
    for row in kept.and_new(tables, "partitions", columns, where):
        if row["leader"] is not None:
            leaders.setdefault(row["cluster_id"] or "", []).append(row["leader"])
    audited = audited_brokers(found, clusters)
    out: dict[str, list[Finding]] = {}
    for cluster, own_inputs in sorted(members.items()):
        whole = Inputs(found=tuple(own_inputs))
        known_of = gathered[cluster]
        out[cluster] = [*identity_findings(whole, nodes_in_parts(whole)), *known_of.findings]
        if known_of.quorum is not None:
            out[cluster].append(quorum_finding(known_of.quorum))
        if cluster in leaders:
            spread = leader_spread(leaders[cluster], audited.get(cluster, frozenset()))
            out[cluster] += spread_findings(spread, cluster)
    return out


def vanished(found: FoundSources) -> list[Problem]:
    """Return a problem for each input that was there when the audit began and is not there now."""
    return [
        Problem(input=number, path=WHOLE_INPUT, message="it vanished while the audit ran: what it holds is not judged")
        for number, one in enumerate(found.inputs)
        if one.found.log_dirs and not _is_there(one.found.root)
    ]


def judge_beside_shortened_logs(tables: Tables, kept: Kept) -> bool:
    """Say of the partitions of this attempt what is open where another log of the same disk ends before a logged offset; false where that makes a kept verdict another one."""
    columns = ["verdict_id", "topic", "partition", "concerns"]
    kinds = f"{ConcernKind.LOGGED_END}|{ConcernKind.SAME_DISK}"
    is_open = pc.match_substring_regex(pc.field("concerns"), f'"({kinds})"')
    if next(kept.and_new(tables, "partitions", columns, is_open), None) is None:
        return True
    live: dict[int, list[OnDisk]] = {}
    known: dict[int, JudgedPartition] = {}
    of_replicas = ["verdict_id", "input", "log_dir", "node_id"]
    for row in kept.and_new(tables, "replicas", of_replicas, pc.field("state") == "live"):
        place = OnDisk(row["input"], row["log_dir"], known_or(row["node_id"], Absent.UNKNOWN))
        live.setdefault(row["verdict_id"], []).append(place)
    for row in kept.and_new(tables, "partitions", columns):
        concerns = tuple(map(concern_of, json.loads(row["concerns"] or "[]")))
        partition = TopicPartition(row["topic"], row["partition"])
        known[row["verdict_id"]] = JudgedPartition(partition=partition, concerns=concerns)
    alone = {
        number: one._replace(concerns=tuple(each for each in one.concerns if each.kind is not ConcernKind.SAME_DISK))
        for number, one in known.items()
    }
    judged = beside_shortened_logs(alone, live)
    other = {number: one for number, one in judged.items() if one.concerns != known[number].concerns}
    if any(row["verdict_id"] in other for row in kept.rows("partitions", columns=columns)):
        return False
    for part in tables.parts("partitions") if other else ():
        rows = tables.read_part("partitions", part).to_pylist()
        for row in rows:
            if (found := other.get(row["verdict_id"])) is not None:
                row |= {"concerns": json.dumps(to_plain(found.concerns)), "state": found.state.value}
                if row["report"] is not None:
                    row["report"] = json.dumps(json.loads(row["report"]) | {"state": found.state.value})
        tables.write("partitions", part, rows)
    return True


def brokers_in_doubt(tables: Tables, kept: Kept, clusters: Sequence[str]) -> dict[str, dict[int, set[TopicPartition]]]:
    """Return by cluster the brokers that truncate, or have a log with a damaged small file, each with these logs."""
    columns = ["input", "node_id", "topic", "partition", "truncate_to", "damage"]
    is_damaged = (pc.list_value_length(pc.field("damage")) > 0) & ~pc.field("topic").isin([*METADATA_TOPICS])
    is_judged = (pc.field("state") == "live") & pc.field("verdict").is_valid() & pc.field("node_id").is_valid()
    where = is_judged & (pc.field("truncate_to").is_valid() | is_damaged)
    doubted: dict[str, dict[int, set[TopicPartition]]] = {}
    for row in kept.and_new(tables, "replicas", columns, where):
        own = doubted.setdefault(clusters[row["input"]], {}).setdefault(row["node_id"], set())
        if row["damage"] and row["topic"] not in METADATA_TOPICS:
            own.add(TopicPartition(row["topic"], row["partition"]))
    return doubted


def tell_refused_starts(
    tables: Tables, kept: Kept, refused: Mapping[str, Sequence[RefusedStart]], clusters: Mapping[str | None, str]
) -> bool:
    """Promise in the findings of this attempt no truncation of a broker that does not start; false where kept ones know other such brokers.

    Args:
        clusters: those that rows are judged with, by those in the rows.
    """
    now = {cluster: {one.broker_id for one in own if one.is_whole} for cluster, own in refused.items()}
    for base in kept.verdicts:
        before = base.manifest.get("refused", {})
        for cluster in {cluster for cluster, _, _ in kept.keys} & {*base.manifest["clusters"]}:
            whole = {one.broker_id for one in unpacked(before.get(cluster, "[]")) if one.is_whole}
            if whole != now.get(cluster, set()):
                return False
    is_told = pc.field("code").isin([*OF_TRUNCATIONS])
    for part in tables.parts("findings") if any(now.values()) else ():
        if not tables.read_part("findings", part, columns=["code"], filters=is_told).num_rows:
            continue
        rows = tables.read_part("findings", part).to_pylist()
        for row in rows:
            own = refused.get(clusters.get(row["cluster_id"], ""), ())
            row["statement"] = next(with_refused_starts([finding_of(row)], own)).statement
        tables.write("findings", part, rows)
    return True


def _is_there(root: Path) -> bool:
    try:
        return root.exists()
    except OSError:
        return False


def fold_problems(tables: Tables, run: int, gone: Collection[int]) -> int:
    """Leave out that files of inputs that vanished could not be read, which one problem says of each, and return how many rows that were."""
    folded = 0
    for part in tables.parts("problems") if gone else ():
        if "run-" not in part or f"run-{run:04d}-" in part:
            rows = tables.read_part("problems", part)
            kept = rows.filter(pc.invert(pc.is_in(rows["input"], value_set=pa.array(sorted(gone), pa.int32()))))
            folded += rows.num_rows - kept.num_rows
            tables.write("problems", part, kept)
    return folded


def unanswered(
    tables: Tables, found: FoundSources, totals: Sequence[LogDirTotals], options: Ask, kept: Kept
) -> Iterator[Problem]:
    """Yield the problems of requested partitions that are missing, and of replicas that have no other to be compared with."""
    yield from single_files(Inputs(found=tuple(one.found for one in found.inputs)))
    if not options.topics and not options.partitions and options.leader is None:
        return
    columns = ["partition", "node_id"]
    held = pa.concat_tables([tables.column_table("replicas", columns), *kept.chunks("replicas", columns)])
    missing = missing_filters(
        options,
        known_topics={topic for one in totals for topic in one.topics},
        known_partitions=set(pc.unique(held["partition"]).to_pylist()),
        leader=options.leader,
        known_brokers=set(pc.unique(held["node_id"]).to_pylist()),
    )
    for words in missing:
        yield Problem(input=0, path=WHOLE_INPUT, message=words)


def audited_brokers(found: FoundSources, clusters: Sequence[str]) -> dict[str, frozenset[int]]:
    """Return the brokers whose disks were looked at, by cluster: controllers hold no partitions, and a disk that can't be read proves nothing."""
    out: dict[str, set[int]] = {}
    for one, cluster in zip(found.inputs, clusters, strict=True):
        described = one.found.described
        if one.found.log_dirs and described.kind != "controller" and not isinstance(described.broker_id, Absent):
            out.setdefault(cluster, set()).add(described.broker_id)
    return {cluster: frozenset(brokers) for cluster, brokers in out.items()}
