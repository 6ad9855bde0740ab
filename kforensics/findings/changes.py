"""What became of the findings of an earlier audit, as one query of SQLite, which keeps its tables in a file where they are large.

A finding is the same in both where its `finding_id` is. That one is no longer found says that it is gone only where all that showed it was read again:
a broker that was not given, or could not be read, ends no finding.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import quote

from kforensics.damage import Absent, Span
from kforensics.findings.model import Finding
from kforensics.findings.rule import ToldApartBy, rule_of


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
REPLICA_COLUMNS = ("cluster_id", "topic", "partition", "node_id")
PROBLEM_COLUMNS = ("audit_id", "input", "topic", "partition")

TABLES: Mapping[str, tuple[str, ...]] = {
    "earlier_findings": FINDING_COLUMNS,
    "later_findings": FINDING_COLUMNS,
    "earlier_nodes": NODE_COLUMNS,
    "later_nodes": NODE_COLUMNS,
    "later_problems": PROBLEM_COLUMNS,
    "earlier_replicas": REPLICA_COLUMNS,
}
"""The tables that the query compares, and the columns of them that it uses."""

CHANGES_SQL = """\
with known_partitions as (
  select distinct topic, partition from earlier_replicas
),
missing as (
  select o.*, case when r.topic is null then 0 else 1 end as has_replicas from earlier_findings o
  left join known_partitions r on r.topic = o.topic and r.partition = o.partition
  where not exists (select 1 from later_findings n where n.finding_id = o.finding_id)
),
read_again as (
  -- the nodes of the later audit, and what could not be read of each: a partition that the earlier audit knew, or more
  select n.cluster_id, n.node_id, p.input as problem_input,
    case when r.topic is not null then p.topic end as topic, case when r.topic is not null then p.partition end as partition
  from later_nodes n
  left join later_problems p on p.audit_id = n.audit_id and p.input = n.input
  left join known_partitions r on r.topic = p.topic and r.partition = p.partition
  where n.node_id is not null
),
unread_nodes as (
  select o.cluster_id, o.node_id from earlier_nodes o
  where not exists (
    select 1 from read_again n
    where n.node_id = o.node_id and coalesce(n.cluster_id = o.cluster_id, true))
  or exists (
    select 1 from read_again n
    where n.node_id = o.node_id and coalesce(n.cluster_id = o.cluster_id, true)
    and n.problem_input is not null and n.topic is null)
),
unread_replicas as (
  select r.cluster_id, r.topic, r.partition from earlier_replicas r
  join (select distinct topic, partition from missing) m on m.topic = r.topic and m.partition = r.partition
  where r.node_id is null
  or exists (
    select 1 from unread_nodes u where u.node_id = r.node_id and coalesce(u.cluster_id = r.cluster_id, true))
  or exists (
    select 1 from read_again n
    where n.node_id = r.node_id and coalesce(n.cluster_id = r.cluster_id, true)
    and n.topic = r.topic and n.partition = r.partition)
),
unread as (
  select m.finding_id from missing m
  join unread_replicas u
    on u.topic = m.topic and u.partition = m.partition and coalesce(u.cluster_id = m.cluster_id, true)
  union
  select m.finding_id from missing m
  join unread_nodes u on coalesce(u.cluster_id = m.cluster_id, true)
    and (u.node_id = m.node_id or (m.has_replicas = 0 and (m.node_id is null or u.node_id is null)))
),
both_known as (
  select n.*,
    o.severity as severity_before, o.first_offset as first_offset_before, o.last_offset as last_offset_before,
    o.statement as statement_before,
    case
      when o.finding_id is null then 'new'
      when n.severity_rank > o.severity_rank then 'worse'
      when n.severity_rank < o.severity_rank then 'better'
      when n.confidence_rank > o.confidence_rank then 'worse'
      when (n.first_offset is null) <> (o.first_offset is null) then 'worse'
      when n.first_offset < o.first_offset or n.last_offset > o.last_offset then 'worse'
      when n.first_offset > o.first_offset or n.last_offset < o.last_offset then 'better'
      when n.statement <> o.statement or n.confidence_rank < o.confidence_rank then 'changed'
      else 'unchanged'
    end as change
  from later_findings n left join earlier_findings o on o.finding_id = n.finding_id
)
select finding_id, change, cluster_id, code, severity, severity_rank, topic, partition, node_id,
  first_offset, last_offset, statement, severity_before, first_offset_before, last_offset_before, statement_before
from both_known
union all
select m.finding_id, case when u.finding_id is null then 'gone' else 'unchecked' end, m.cluster_id, m.code, null,
  m.severity_rank, m.topic, m.partition, m.node_id, null, null, null,
  m.severity, m.first_offset, m.last_offset, m.statement
from missing m left join unread u on u.finding_id = m.finding_id
"""
"""One row for each finding of either audit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedRow:
    """A finding of one or both audits; `now` and `before` are None where that audit does not have it."""

    finding_id: str
    change: Change
    cluster_id: str | None
    code: str
    severity_rank: int
    topic: str | None
    partition: int | None
    node_id: int | None
    severity: str | None
    first_offset: int | None
    last_offset: int | None
    statement: str | None
    severity_before: str | None
    first_offset_before: int | None
    last_offset_before: int | None
    statement_before: str | None


def changed_rows(tables: Mapping[str, Iterable[Mapping[str, Any]]]) -> Iterator[ChangedRow]:
    """Yield the findings of two audits, each with its change, the gravest first."""
    with closing(sqlite3.connect("")) as database:  # a temporary file, which SQLite keeps in memory while it is small
        for name, columns in TABLES.items():
            database.execute(f"create table {name} ({', '.join(columns)})")
            marks = ", ".join("?" * len(columns))
            rows = (tuple(row[column] for column in columns) for row in tables[name])
            database.executemany(f"insert into {name} values ({marks})", rows)  # noqa: S608 - names of this module
        for name, indexed in _INDEXES:
            database.execute(f"create index {name}_by on {name} ({indexed})")
        database.row_factory = sqlite3.Row
        order = "order by severity_rank desc, finding_id"
        for row in database.execute(f"select * from ({CHANGES_SQL}) {order}"):  # noqa: S608 - likewise
            values = dict(row)
            yield ChangedRow(**{**values, "change": Change(values["change"])})


_INDEXES = (
    ("earlier_findings", "finding_id"),
    ("later_findings", "finding_id"),
    ("later_problems", "input"),
    ("later_nodes", "node_id"),
    ("earlier_replicas", "topic, partition"),
)


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
