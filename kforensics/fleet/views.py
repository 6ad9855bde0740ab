"""Views of a history in SQL: what the latest audit of each cluster found, and what became of what was found before.

`python -m kforensics.fleet.views HISTORY [spark|duckdb]` prints them.
"""

import sys
from enum import StrEnum

from kforensics.fleet.schemas import AUDIT_TABLES, OF_VERDICTS


class Dialect(StrEnum):
    """The engine that reads the views."""

    SPARK = "spark"
    DUCKDB = "duckdb"


def view_statements(history: str, dialect: Dialect = Dialect.SPARK) -> tuple[str, ...]:
    """Return the statements that make the views of a history.

    Of each table there are `findings` (what every audit wrote), `findings_now` and `findings_before` (the latest audit of each cluster and the one before it, with the rows of earlier ones that hold
    still), and so on; `audits` names the audits, and `findings_since` says what became of each finding.
    """
    place = history.rstrip("/")
    statements = [_view(table, f"select * from {_source(f'{place}/{table}', dialect)}") for table in AUDIT_TABLES]  # noqa: S608 - likewise
    statements.append(_view("audits", _AUDITS))
    for table in AUDIT_TABLES:
        rows_of = _KEPT if table in OF_VERDICTS else _OWN
        statements += [
            _view(f"{table}_{name}", rows_of.format(table=table, age=age, of_cluster=_OF_CLUSTER))
            for name, age in (("now", 1), ("before", 2))
        ]
    statements.append(_view("findings_since", "select * from changes_now"))
    return tuple(statements)


_AUDITS = (
    "select audit_id, cluster_id, audited_at, depth, chain, "
    "row_number() over (partition by cluster_id order by audited_at desc, audit_id desc) as age "
    "from (select distinct audit_id, cluster_id, audited_at, depth, coalesce(chain, audit_id) as chain from nodes)"
)

_OF_CLUSTER = "coalesce(a.cluster_id, '') = coalesce(t.cluster_id, '')"
_OWN = "select t.* from {table} t join audits a on a.audit_id = t.audit_id and {of_cluster} where a.age = {age}"
_KEPT = (
    "select t.* from {table} t join audits w on w.audit_id = t.audit_id and coalesce(w.cluster_id, '') = coalesce(t.cluster_id, '') "
    "join audits a on {of_cluster} and a.chain = w.chain and w.audited_at <= a.audited_at and a.age = {age} "
    "left join (select verdict_id, min(audited_at) as replaced_at from replaced group by verdict_id) r on r.verdict_id = t.verdict_id "
    "where t.audit_id = a.audit_id or (t.verdict_id is not null and (r.replaced_at is null or r.replaced_at > a.audited_at))"
)
"""Rows of an audit, and of those before it in its chain each whose verdict no audit until then had replaced."""


def _view(name: str, query: str) -> str:
    return f"create or replace temporary view {name} as {query}"


def _source(place: str, dialect: Dialect) -> str:
    quoted = place.replace("'", "''")
    if dialect is Dialect.DUCKDB:
        return f"read_parquet('{quoted}/**/*.parquet', hive_partitioning = true, union_by_name = true)"
    return f"parquet.`{place.replace('`', '``')}`"


if __name__ == "__main__":
    sys.stdout.write(
        "".join(f"{one.strip()};\n\n" for one in view_statements(sys.argv[1], Dialect(*sys.argv[2:3] or ["spark"])))
    )
