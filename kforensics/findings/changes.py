"""What became of the findings of an earlier audit.

A finding is the same in both where its `finding_id` is. That one is no longer found says that it is gone only where all that showed it was read again:
a broker that was not given, or could not be read, ends no finding.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import quote

from kforensics.damage import Absent, Span
from kforensics.findings.model import Finding
from kforensics.findings.rule import ToldApartBy, rule_of
from kforensics.units import OffsetRange


class Change(StrEnum):
    """The change of a finding between two audits."""

    NEW = "new"
    WORSE = "worse"
    """It is graver or more certain, or it concerns offsets that it did not concern before."""
    CHANGED = "changed"
    """Its words are others, and nothing that could be compared shows whether it is worse or better."""
    BETTER = "better"
    """It is less grave, or it concerns a part of the offsets that it concerned before, and no others."""
    UNCHECKED = "unchecked"
    """It is no longer found, but not all that showed it was read again."""
    GONE = "gone"
    UNCHANGED = "unchanged"


NOT_BETTER = frozenset({Change.NEW, Change.WORSE, Change.CHANGED})
"""Changes after which a finding may be worse than it was."""

FINDING_COLUMNS = (
    "finding_id",
    "cluster_id",
    "code",
    "severity",
    "severity_rank",
    "confidence_rank",
    "topic",
    "partition",
    "node_id",
    "first_offset",
    "last_offset",
    "statement",
)
NODE_COLUMNS = ("audit_id", "input", "cluster_id", "node_id")
PROBLEM_COLUMNS = ("audit_id", "input", "topic", "partition")

Rows = Iterable[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingChange:
    """A finding of one or both of two audits; what one of them does not have is None."""

    finding_id: str
    """The same in both; `findings.identity` says what it is made of."""
    change: Change
    code: str
    cluster_id: str | None
    topic: str | None
    partition: int | None
    node_id: int | None
    severity: str | None
    severity_before: str | None
    severity_rank: int
    first_offset: int | None
    last_offset: int | None
    first_offset_before: int | None
    last_offset_before: int | None
    statement: str | None
    statement_before: str | None

    @property
    def said(self) -> str:
        """The statement of the later audit, or of the earlier one where the later does not have it."""
        return self.statement_before or "" if self.statement is None else self.statement

    @property
    def offsets(self) -> OffsetRange | Absent:
        """The offsets that it concerns."""
        return _range(self.first_offset, self.last_offset)

    @property
    def offsets_before(self) -> OffsetRange | Absent:
        """Those that it concerned."""
        return _range(self.first_offset_before, self.last_offset_before)


def _range(first: int | None, last: int | None) -> OffsetRange | Absent:
    return Absent.NOT_APPLICABLE if first is None or last is None else OffsetRange(first, last)


def changed_rows(
    before: Rows, after: Rows, *, earlier_nodes: Rows, later_nodes: Rows, later_problems: Rows, earlier_replicas: Rows
) -> list[FindingChange]:
    """Return the findings of two audits, each with its change, the gravest first; the rows have the columns that are named above."""
    earlier, later = ({row["finding_id"]: row for row in rows} for rows in (before, after))
    missing = [row for row in earlier.values() if row["finding_id"] not in later]
    unread = _Unread(missing, earlier_nodes, later_nodes, later_problems, list(earlier_replicas))
    found = [_changed(_change_of(row, earlier.get(own)), row, earlier.get(own)) for own, row in later.items()]
    found += [_changed(Change.UNCHECKED if unread.has(row) else Change.GONE, None, row) for row in missing]
    return sorted(found, key=lambda one: (-one.severity_rank, one.finding_id))


def _change_of(now: Mapping[str, Any], before: Mapping[str, Any] | None) -> Change:
    if before is None:
        return Change.NEW
    weights = [(one["severity_rank"], one["confidence_rank"]) for one in (now, before)]
    if weights[0][0] != weights[1][0]:
        return Change.WORSE if weights[0] > weights[1] else Change.BETTER
    offsets = [(one["first_offset"], one["last_offset"]) for one in (now, before)]
    if weights[0] > weights[1] or (offsets[0][0] is None) != (offsets[1][0] is None):
        return Change.WORSE
    if offsets[0][0] is not None and offsets[0] != offsets[1]:
        (first, last), (first_before, last_before) = offsets
        return Change.WORSE if first < first_before or last > last_before else Change.BETTER
    is_same = weights[0] == weights[1] and now["statement"] == before["statement"]
    return Change.UNCHANGED if is_same else Change.CHANGED


_OF_EACH = ("severity", "first_offset", "last_offset", "statement")


def _changed(change: Change, now: Mapping[str, Any] | None, before: Mapping[str, Any] | None) -> FindingChange:
    either = now or before or {}
    values: dict[str, Any] = {one: either[one] for one in FINDING_COLUMNS if one not in {"confidence_rank", *_OF_EACH}}
    for name in _OF_EACH:
        values |= {name: now and now[name], f"{name}_before": before and before[name]}
    return FindingChange(**values, change=change)


def may_be_of(one: str | None, other: str | None) -> bool:
    """Return whether two clusters may be the same: one that is not known may be any."""
    return one is None or other is None or one == other


class _Unread:
    """Tells which findings that are missing may be there all the same: not all that showed them was read again."""

    def __init__(
        self,
        missing: Sequence[Mapping[str, Any]],
        earlier_nodes: Rows,
        later_nodes: Rows,
        later_problems: Rows,
        replicas: Sequence[Mapping[str, Any]],
    ) -> None:
        self._partitions = {(row["topic"], row["partition"]) for row in replicas}
        unread: dict[tuple[str, int], set[tuple[str, int] | None]] = {}
        for row in later_problems:
            partition = (row["topic"], row["partition"])
            # What names no partition that is known may have been of any.
            named = partition if partition in self._partitions else None
            unread.setdefault((row["audit_id"], row["input"]), set()).add(named)
        looks: dict[int | None, list[tuple[str | None, set[tuple[str, int] | None]]]] = {}
        for row in later_nodes:
            if row["node_id"] is not None:
                look = (row["cluster_id"], unread.get((row["audit_id"], row["input"]), set()))
                looks.setdefault(row["node_id"], []).append(look)
        self._nodes: dict[int | None, set[str | None]] = {}
        for row in earlier_nodes:
            own = [lacks for cluster, lacks in looks.get(row["node_id"], ()) if may_be_of(cluster, row["cluster_id"])]
            if not own or any(None in lacks for lacks in own):
                self._nodes.setdefault(row["node_id"], set()).add(row["cluster_id"])
        wanted = {(row["topic"], row["partition"]) for row in missing}
        self._of_partitions: dict[tuple[str, int], set[str | None]] = {}
        for row in replicas:
            partition, cluster = (row["topic"], row["partition"]), row["cluster_id"]
            if partition in wanted and (
                row["node_id"] is None
                or _is_among(cluster, self._nodes.get(row["node_id"], ()))
                or any(may_be_of(one, cluster) and partition in lacks for one, lacks in looks.get(row["node_id"], ()))
            ):
                self._of_partitions.setdefault(partition, set()).add(cluster)

    def has(self, row: Mapping[str, Any]) -> bool:
        """Return whether a replica of its partition, its node, or where it has neither any node was not read again."""
        partition, cluster, node = (row["topic"], row["partition"]), row["cluster_id"], row["node_id"]
        if _is_among(cluster, self._of_partitions.get(partition, ())):
            return True
        if node is not None and _is_among(cluster, self._nodes.get(node, ())):
            return True
        of_any = self._nodes.values() if node is None else [self._nodes.get(None, set())]
        return partition not in self._partitions and any(_is_among(cluster, clusters) for clusters in of_any)


def _is_among(cluster: str | None, clusters: Iterable[str | None]) -> bool:
    return any(may_be_of(cluster, one) for one in clusters)


_NONE = "-"


def finding_ids(findings: Sequence[Finding], cluster: str | None, roots: Sequence[object]) -> tuple[str, ...]:
    """Return the ids of findings: code, cluster, partition, broker, and where one replica can have several, what each is about.

    `KF206/MkU3OEVBNTcwNTJENDM2Qg/orders-3/2/orders-3/00000000000000000000.log@4096`. Parts that do not apply are `-`. Findings that nothing sets
    apart are numbered in the order of their offsets.

    Args:
        roots: the place of each input, which stands for a broker whose id is not known.
    """
    ids = [_id(one, cluster, roots) for one in findings]
    order = sorted(range(len(ids)), key=lambda at: (ids[at], _order(findings[at])))
    seen: Counter[str] = Counter()
    out = list(ids)
    for at in order:
        seen[ids[at]] += 1
        if seen[ids[at]] > 1:
            out[at] = f"{ids[at]}#{seen[ids[at]]}"
    return tuple(out)


def _id(item: Finding, cluster: str | None, roots: Sequence[object]) -> str:
    partition = _NONE if isinstance(item.topic, Absent) else f"{quote(item.topic, safe='')}-{item.partition}"
    parts = [item.code, quote(cluster, safe="") if cluster else _NONE, partition, _broker(item, roots)]
    about = _about(item)
    return "/".join([*parts, about] if about else parts)


def _broker(item: Finding, roots: Sequence[object]) -> str:
    if not isinstance(item.broker_id, Absent):
        return str(item.broker_id)
    if item.broker_id is Absent.NOT_APPLICABLE or not item.citations:
        return _NONE
    return _quoted(str(roots[item.citations[0].input]), safe="")


def _about(item: Finding) -> str:
    told_apart_by = rule_of(item.code).told_apart_by
    if told_apart_by is ToldApartBy.NOTHING or not item.citations:
        return ""
    cited = item.citations[0]
    parts = cited.path.split("/")
    # How far above the partition's directory an input begins, is up to who names it.
    own = [
        at for at, part in enumerate(parts) if not isinstance(item.topic, Absent) and part.startswith(f"{item.topic}-")
    ]
    path = _quoted("/".join(parts[own[-1] if own else -1 :]), safe="/")
    if told_apart_by is ToldApartBy.PLACE and isinstance(cited.span, Span):
        return f"{path}@{cited.span.position}"
    return path


def _quoted(text: str, safe: str) -> str:
    return quote(text.encode("utf-8", "surrogateescape"), safe=safe)


def _order(item: Finding) -> tuple[int, str, str]:
    first = -1 if isinstance(item.offsets, Absent) else item.offsets.first
    return (first, item.citations[0].path if item.citations else "", item.statement)
