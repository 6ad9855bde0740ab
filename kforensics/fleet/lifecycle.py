"""The life of each finding over the audits of a history: since when it is known, when it was last seen and looked for, and whether it is over.

A finding is open where the latest audit found it, closed where all that showed it was read again and it was not found, and else not checked: a night
without one of its brokers ends nothing, and makes nothing new, that night or the night after: what is said of a partition then, in the place of what all of its replicas showed, is no other
finding. What became of each is written when an audit ends, into the table `changes`.
"""

import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from enum import StrEnum
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pd

from kforensics.findings.changes import (
    FINDING_COLUMNS,
    NODE_COLUMNS,
    PROBLEM_COLUMNS,
    Change,
    FindingChange,
    changed_rows,
    may_be_of,
)
from kforensics.findings.rule import ToldApartBy, all_rules
from kforensics.findings.rules.replicas import REPLICAS_NOT_GIVEN
from kforensics.fleet.audit_tables import AuditTables, all_of, one_of
from kforensics.units import Depth

CHANGES = "changes"
"""The table of what became of each finding."""

_CARRIED = (*FINDING_COLUMNS, "first_seen", "last_seen", "last_checked", "depth", "shown_by", "log_dirs")
OF_NO_NODE = -(1 << 40)
"""No number of a node."""
_ENDED = frozenset({Change.GONE, Change.UNCHECKED})

Row = Mapping[str, Any]


class FindingState(StrEnum):
    """Whether a finding holds, as far as it is known."""

    OPEN = "open"
    NOT_CHECKED = "not-checked"
    CLOSED = "closed"


_STATES = {Change.GONE: FindingState.CLOSED, Change.UNCHECKED: FindingState.NOT_CHECKED}


def open_findings(audit: AuditTables, clusters: Iterable[str | None] | None = None) -> list[Row]:
    """Return the findings that are not closed as an audit left them, those among them that it did not check."""
    where = None
    if clusters is not None:
        wanted = set(clusters)
        where = one_of("cluster_id", wanted - {None}, pa.string())
        where = where | pd.field("cluster_id").is_null() if None in wanted else where
    is_open = all_of(where, pd.field("state") != FindingState.CLOSED.value)
    rows = audit.rows(CHANGES, columns=[*_CARRIED, "change", "statement_before"], where=is_open)
    return [row for row in rows if not _stands_in(row)]


def _stands_in(row: Row) -> bool:
    """Return whether a finding of an audit was not there before, and took the place of one that was not checked: with all replicas it is new, or over."""
    was_there = row["statement_before"] is not None or row["code"] == REPLICAS_NOT_GIVEN.code
    return not was_there and row["change"] in {Change.CHANGED.value, Change.WORSE.value}


def bases_of(history: Sequence[AuditTables], clusters: Iterable[str]) -> dict[str, set[str | None]]:
    """Return the audits that the findings of an audit are compared with, the last one of each cluster, whatever it read: ids, with the clusters."""
    out: dict[str, set[str | None]] = {}
    for cluster in clusters:
        of_cluster = [one for one in history if cluster in one.manifest.get("clusters", ())]
        if of_cluster:
            out.setdefault(of_cluster[-1].audit_id, set()).add(cluster or None)
    return out


def changes_between(
    before: Sequence[Row], after: AuditTables, earlier_audits: Iterable[AuditTables] = ()
) -> Iterator[FindingChange]:
    """Yield what became of findings that were not closed by an audit, the gravest first.

    Args:
        earlier_audits: those that left the findings; what they could read tells what came since from what could not be seen before.
    """
    findings = list(after.rows("findings", columns=FINDING_COLUMNS))
    retired = after.manifest.get("retired", ())
    before = [_without_retired(row, retired) for row in before]
    known = {row["finding_id"]: row for row in before}
    numbers = _numbers(after)
    scope = {name: frozenset(found) for name, found in after.manifest.get("scope", {}).items()}
    found = {row["finding_id"] for row in findings}
    missing = [row for row in before if row["finding_id"] not in found]
    problems = list(after.rows("problems", columns=PROBLEM_COLUMNS)) if missing else []
    shown = {
        (row["cluster_id"], number)
        for row in missing
        for number in {*row["shown_by"], row["node_id"]} - {None}
        if number in row["shown_by"] or number not in _retired(row, retired)
    }
    rows = changed_rows(
        before,
        findings,
        earlier_nodes=[
            {"audit_id": None, "input": None, "cluster_id": cluster, "node_id": number} for cluster, number in shown
        ],
        later_nodes=_nodes(after, numbers),
        later_problems=problems,
        earlier_replicas=[*_replicas(missing), *_known_partitions(after, problems)],
    )
    read = _read_whole(after)
    looked_at = _LookedAt(after, missing)
    unread = {
        row.finding_id
        for row in rows
        if row.change is Change.GONE
        and not (_could_be_seen(known[row.finding_id], after.depth, scope) and looked_at.all_of(known[row.finding_id]))
    }
    rows = [
        replace(row, change=Change.GONE)
        if row.change is Change.UNCHECKED
        and _is_of_one_broker(row.code, row.node_id)
        and (row.cluster_id, row.node_id) in read
        and _could_be_seen(known[row.finding_id], after.depth, scope)
        and looked_at.all_of(known[row.finding_id])
        else row
        for row in rows
    ]
    # Broker 2 differs from its leader, and without the leader broker 3 differs from broker 2: that is not new, unless broker 2 is away itself,
    # or broker 3 had been compared with it already.
    elsewhere = {
        _subject(row): row for row in rows if row.change is Change.UNCHECKED and (row.cluster_id, row.node_id) in read
    }
    alike = [
        one
        for one in (earlier_audits if elsewhere else ())
        if one.depth is after.depth and one.manifest.get("scope") == after.manifest.get("scope")
    ]
    read_before = {node for one in alike for node in _read_whole(one)}
    stood_in = {
        row["finding_id"]
        for one in alike
        for row in one.rows(CHANGES, columns=["finding_id", "code", "change", "statement_before"])
        if _stands_in(row)
    }
    for row in rows:
        earlier = known.get(row.finding_id)
        if row.finding_id in unread:
            yield replace(row, change=Change.UNCHECKED)
        elif row.change is Change.NEW:
            away = elsewhere.get(_subject(row))
            was_away = away is not None and known[away.finding_id].get("change") == Change.UNCHECKED.value
            is_newer = was_away and (row.cluster_id, row.node_id) in read_before and row.finding_id not in stood_in
            yield _as_known(row, None if is_newer or _is_of_one_broker(row.code, row.node_id) else away)
        elif row.change is Change.BETTER and earlier and not _is_proven(earlier, read, after.depth, scope):
            kept = {one: earlier[one] for one in _WEIGHT}
            yield replace(row, change=Change.UNCHANGED, **kept)
        else:
            yield row


def _without_retired(row: Row, retired: Iterable[tuple[str | None, int]]) -> Row:
    """Return a finding without the nodes that are gone for good: nobody can read them again."""
    gone = _retired(row, retired)
    had = row.get("log_dirs") or [0] * len(row["shown_by"])
    left = [(one, count) for one, count in zip(row["shown_by"], had, strict=False) if one not in gone]
    return {**row, "shown_by": [one for one, _ in left], "log_dirs": [count for _, count in left]} if gone else row


def _retired(row: Row, retired: Iterable[tuple[str | None, int]]) -> set[int]:
    """Return the nodes that are gone for good of those that may be of the cluster of a finding."""
    return {number for cluster, number in retired if may_be_of(cluster, row["cluster_id"])}


_WEIGHT = ("severity", "severity_rank", "first_offset", "last_offset")


def _is_proven(
    earlier: Row, read: Collection[tuple[Any, Any]], depth: Depth, scope: Mapping[str, frozenset[Any]]
) -> bool:
    """Return whether all that showed a finding was read again: with less of it the same weighs less, and is no better."""
    is_whole = all((earlier["cluster_id"], number) in read for number in earlier["shown_by"])
    return is_whole and _could_be_seen(earlier, depth, scope)


_SUBJECT = ("cluster_id", "topic", "partition", "code")


def _subject(row: FindingChange) -> tuple[Any, ...]:
    return tuple(getattr(row, one) for one in _SUBJECT)


def _as_known(row: FindingChange, unchecked: FindingChange | None) -> FindingChange:
    """Return a new finding as what it is where a replica is away: that it is not given, or what is open of its partition, seen by other replicas."""
    if row.code == REPLICAS_NOT_GIVEN.code:
        return replace(row, change=Change.CHANGED)
    if row.topic is None or unchecked is None:
        return row
    is_graver = row.severity_rank > unchecked.severity_rank
    return replace(row, change=Change.WORSE if is_graver else Change.CHANGED, severity_before=unchecked.severity_before)


def _is_of_one_broker(code: str, node_id: int | None) -> bool:
    """Return whether a broker shows a finding by itself: damage of its own files, whatever the other replicas are like."""
    if node_id is None or not code.startswith("KF1"):
        return False
    rule = all_rules().get(code)
    return rule is not None and rule.told_apart_by is not ToldApartBy.NOTHING


class _LookedAt:
    """Tells whether an audit looked at the disks where findings were that it does not have: a disk that is not mounted is no part of what its node has."""

    def __init__(self, after: AuditTables, missing: Sequence[Row]) -> None:
        self._log_dirs = _log_dirs_of(after)
        # Only of nodes with fewer disks than they had it matters which replicas they hold.
        short = [row for row in missing if row["topic"] is not None and self._lacking(row)]
        where = one_of("topic", {row["topic"] for row in short}, pa.string())
        # Of several clusters in one audit the same node may be in each.
        columns = ["cluster_id", "topic", "partition"]
        held = after.rows("replicas", columns=[*columns, "input"], where=where) if short else ()
        numbers = _numbers(after)
        self._held = {(*(row[one] for one in columns), numbers[row["input"]]) for row in held}
        assigned = after.rows("partitions", columns=[*columns, "assigned"], where=where) if short else ()
        self._assigned = {tuple(row[one] for one in columns): row["assigned"] for row in assigned}

    def _lacking(self, row: Row) -> list[int]:
        """Return the nodes that have fewer log directories than when they showed a finding."""
        numbers = [row["node_id"]] if _is_of_one_broker(row["code"], row["node_id"]) else row["shown_by"]
        had = dict(zip(row["shown_by"], row.get("log_dirs") or (), strict=False))
        return [one for one in numbers if self._log_dirs(row["cluster_id"], one) < had.get(one, 0)]

    def all_of(self, row: Row) -> bool:
        """Return whether each node with fewer disks holds the partition on another one, or should not hold it any more."""
        partition = (row["cluster_id"], row["topic"], row["partition"])
        return all(
            row["topic"] is not None
            and ((*partition, one) in self._held or one not in (self._assigned.get(partition) or (one,)))
            for one in self._lacking(row)
        )


def _log_dirs_of(audit: AuditTables) -> Callable[[str | None, int], int]:
    """Return the function that gives the number of log directories of a node, by cluster and number."""
    numbers = _numbers(audit)
    counts: dict[int, dict[str | None, int]] = {}
    for row in audit.nodes:
        own = counts.setdefault(numbers[row["input"]], {})
        own[row["cluster_id"]] = own.get(row["cluster_id"], 0) + len(row["log_dirs"] or ())

    def log_dirs(cluster: str | None, number: int) -> int:
        return sum(count for one, count in counts.get(number, {}).items() if may_be_of(one, cluster))

    return log_dirs


def _read_whole(audit: AuditTables) -> set[tuple[str | None, int]]:
    """Return the nodes of which all could be read, by cluster and number."""
    troubled = audit.distinct("problems", "input")
    nodes = [(row["input"] in troubled, row["cluster_id"], row["node_id"]) for row in _nodes(audit, _numbers(audit))]
    return {(cluster, node) for _, cluster, node in nodes} - {(cluster, node) for bad, cluster, node in nodes if bad}


def _replicas(missing: Iterable[Row]) -> Iterator[dict[str, Any]]:
    for row in missing:
        for number in row["shown_by"] if row["topic"] is not None else ():
            yield {name: row[name] for name in ("cluster_id", "topic", "partition")} | {"node_id": number}


def _known_partitions(after: AuditTables, problems: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Yield partitions that problems name and that there are: a log directory may be called `data-0`, too."""
    named = {(row["topic"], row["partition"]) for row in problems if row["topic"] is not None}
    if named:
        where = one_of("topic", {topic for topic, _ in named}, pa.string())
        for row in after.rows("partitions", columns=["cluster_id", "topic", "partition"], where=where):
            if (row["topic"], row["partition"]) in named:
                yield {**row, "node_id": OF_NO_NODE}


def _could_be_seen(row: Row, depth: Depth, scope: Mapping[str, frozenset[Any]]) -> bool:
    """Return whether an audit looked where a finding was: what the ends of logs don't show may be there all the same."""
    if row["depth"] == Depth.CONTENT.value and depth is Depth.TAILS:
        return False
    chosen = (("topics", row["topic"]), ("partitions", row["partition"]))
    return all(not scope.get(name) or value in scope[name] for name, value in chosen)


def life_of(
    before: Sequence[Row], after: AuditTables, earlier_audits: Iterable[AuditTables] = ()
) -> list[dict[str, Any]]:
    """Return the rows of the table `changes`: every finding of an audit, and of those before it each that was not closed."""
    now = after.moment
    known = {row["finding_id"]: row for row in before}
    later = {row["finding_id"]: row for row in after.rows("findings", columns=FINDING_COLUMNS)}
    seen = {row["finding_id"]: one for row, one in _seen_in(after, list(later.values()))}
    read = _read_whole(after)
    since = {tuple(row[one] for one in _SUBJECT): row["first_seen"] for row in before}
    out: list[dict[str, Any]] = []
    log_dirs = _log_dirs_of(after)
    for row in changes_between(before, after, earlier_audits):
        earlier, found = known.get(row.finding_id), later.get(row.finding_id)
        own: dict[str, Any] = dict(earlier or {}) if found is None else {**found, **seen[row.finding_id]}
        if earlier is not None and found is not None:
            own["first_seen"] = earlier["first_seen"]
            away = {number for number in earlier["shown_by"] if (row.cluster_id, number) not in read}
            own["shown_by"] = sorted(away.union(own["shown_by"]))
            had = dict(zip(earlier["shown_by"], earlier.get("log_dirs") or (), strict=False))
            # A disk that was there when the finding was first seen is still one that shows it.
            own["log_dirs"] = [max(log_dirs(row.cluster_id, one), had.get(one, 0)) for one in own["shown_by"]]
            # What content once showed only content ends.
            own["depth"] = Depth.CONTENT.value if earlier["depth"] == Depth.CONTENT.value else own["depth"]
            own |= {one: getattr(row, one) for one in _WEIGHT}
        if earlier is None and row.change is not Change.NEW:
            own["first_seen"] = since.get(tuple(own[one] for one in _SUBJECT), now)
        if row.change is not Change.UNCHECKED:
            own["last_checked"] = now
        out.append(
            {
                **own,
                "state": _STATES.get(row.change, FindingState.OPEN).value,
                "change": row.change.value,
                "severity_before": row.severity_before,
                "first_offset_before": row.first_offset_before,
                "last_offset_before": row.last_offset_before,
                "statement_before": row.statement_before,
            }
        )
    return out


def written_changes(audit: AuditTables) -> Iterator[FindingChange]:
    """Yield what became of findings by an audit as it wrote it, the gravest first."""
    rows = sorted(audit.rows(CHANGES), key=lambda row: (-row["severity_rank"], row["finding_id"]))
    for row in rows:
        values: dict[str, Any] = {one.name: row.get(one.name) for one in fields(FindingChange)}
        values["change"] = Change(row["change"])
        if values["change"] in _ENDED:
            values |= dict.fromkeys(("severity", "first_offset", "last_offset", "statement"))
        yield FindingChange(**values)


def _seen_in(audit: AuditTables, rows: Sequence[Row]) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Yield findings of an audit with what the life of each begins with."""
    now = audit.moment
    numbers = _numbers(audit)
    wanted = {(row["topic"], row["partition"]) for row in rows if row["topic"] is not None}
    shown: dict[tuple[str, int], set[tuple[str | None, int]]] = {}
    if wanted:
        where = all_of(
            one_of("topic", {topic for topic, _ in wanted}, pa.string()),
            one_of("partition", {number for _, number in wanted}, pa.int32()),
        )
        for row in audit.rows("replicas", columns=["cluster_id", "topic", "partition", "input"], where=where):
            key = (row["topic"], row["partition"])
            if key in wanted:
                shown.setdefault(key, set()).add((row["cluster_id"], numbers[row["input"]]))
    nodes = {(row["cluster_id"], row["node_id"]) for row in _nodes(audit, numbers)}
    log_dirs = _log_dirs_of(audit)
    for row in rows:
        by = shown.get((row["topic"], row["partition"]), set())
        # What no replica shows, the node shows that it is about; what is about none, all of them.
        by = {one for one in by if may_be_of(one[0], row["cluster_id"])}
        if not by and row["node_id"] is None:
            by = {one for one in nodes if may_be_of(one[0], row["cluster_id"])}
        is_of = sorted(number for _, number in by)
        of_disks = [log_dirs(row["cluster_id"], one) for one in is_of]
        seen = {"first_seen": now, "last_seen": now, "last_checked": now, "depth": audit.depth.value}
        yield row, {**seen, "shown_by": is_of, "log_dirs": of_disks}


def _numbers(audit: AuditTables) -> dict[int, int]:
    """Return what tells the inputs of an audit apart in all audits: the id of a node, or a number below zero that stands for a place."""
    return {
        row["input"]: -1 - zlib.crc32(str(row["path"]).encode("utf-8", "surrogateescape")) % (1 << 31)
        if row["node_id"] is None
        else row["node_id"]
        for row in audit.nodes
    }


def _nodes(audit: AuditTables, numbers: Mapping[int, int]) -> Iterator[dict[str, Any]]:
    """Yield the inputs that can show replicas, or could if they were read: directories of log files show none."""
    for row in audit.nodes:
        if row["log_dirs"] or row["kind"] in {"partition", "unreadable"}:
            yield {**{name: row[name] for name in NODE_COLUMNS}, "node_id": numbers[row["input"]]}
