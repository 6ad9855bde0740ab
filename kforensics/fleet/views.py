"""Views of a history in SQL: what the latest audit of each cluster found, and what changed since the one before it.

`python -m kforensics.fleet.views HISTORY [spark|duckdb]` prints them.
"""

import sys
from enum import StrEnum

from kforensics.findings.changes import CHANGES_SQL
from kforensics.fleet.schemas import TABLES


class Dialect(StrEnum):
    """The engine that reads the views."""

    SPARK = "spark"
    DUCKDB = "duckdb"


def view_statements(history: str, dialect: Dialect = Dialect.SPARK) -> tuple[str, ...]:
    """Return the statements that make the views of a history.

    Of each table there are `findings` (every audit), `findings_now` and `findings_before` (the latest audit of each cluster and the one before it), and so on; `audits` names the
    audits, and `findings_since` says what became of each finding.

    Args:
        history: where its tables are, as the engine writes it.
    """
    place = history.rstrip("/")
    statements = [_view(table, f"select * from {_source(f'{place}/{table}', dialect)}") for table in TABLES]  # noqa: S608 - likewise
    statements.append(_view("audits", _AUDITS))
    for table in TABLES:
        statements += [
            _view(
                f"{table}_{name}",
                f"select t.* from {table} t join audits a on a.audit_id = t.audit_id "  # noqa: S608 - names of this package
                f"and coalesce(a.cluster_id, '') = coalesce(t.cluster_id, '') where a.age = {age}",
            )
            for name, age in (("now", 1), ("before", 2))
        ]
    given = ",\n".join(f"{name} as (select * from {view})" for name, view in _compared(dialect).items())  # noqa: S608 - likewise
    statements.append(_view("findings_since", f"with {given},\n{CHANGES_SQL.removeprefix('with ')}"))
    return tuple(statements)


_AUDITS = (
    "select audit_id, cluster_id, audited_at, "
    "row_number() over (partition by cluster_id order by audited_at desc, audit_id desc) as age "
    "from (select distinct audit_id, cluster_id, audited_at from nodes)"
)


def _compared(dialect: Dialect) -> dict[str, str]:
    # Inputs without log directories, as directories of log files, show no replica: they end no finding.
    with_log_dirs = f"where {'size' if dialect is Dialect.SPARK else 'len'}(log_dirs) > 0"
    return {
        "earlier_findings": "findings_before",
        "later_findings": "findings_now",
        "earlier_nodes": f"nodes_before {with_log_dirs}",
        "later_nodes": f"nodes_now {with_log_dirs}",
        "later_problems": "problems_now",
        "earlier_replicas": "replicas_before",
    }


def _view(name: str, query: str) -> str:
    return f"create or replace temporary view {name} as {query}"


def _source(place: str, dialect: Dialect) -> str:
    quoted = place.replace("'", "''")
    if dialect is Dialect.DUCKDB:
        return f"read_parquet('{quoted}/**/*.parquet', hive_partitioning = true)"
    return f"parquet.`{place.replace('`', '``')}`"


if __name__ == "__main__":
    sys.stdout.write(
        "".join(f"{one.strip()};\n\n" for one in view_statements(sys.argv[1], Dialect(*sys.argv[2:3] or ["spark"])))
    )
