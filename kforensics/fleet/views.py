"""Views of a history in SQL: what the latest audit of each cluster found, and what became of what was found before.

`python -m kforensics.fleet.views HISTORY [spark|duckdb]` prints them.
"""

import sys
from enum import StrEnum

from kforensics.fleet.schemas import AUDIT_TABLES


class Dialect(StrEnum):
    """The engine that reads the views."""

    SPARK = "spark"
    DUCKDB = "duckdb"


def view_statements(history: str, dialect: Dialect = Dialect.SPARK) -> tuple[str, ...]:
    """Return the statements that make the views of a history.

    Of each table there are `findings` (every audit), `findings_now` and `findings_before` (the latest audit of each cluster and the one before it), and so on; `audits` names the
    audits, and `findings_since` says what became of each finding.
    """
    place = history.rstrip("/")
    statements = [_view(table, f"select * from {_source(f'{place}/{table}', dialect)}") for table in AUDIT_TABLES]  # noqa: S608 - likewise
    statements.append(_view("audits", _AUDITS))
    for table in AUDIT_TABLES:
        statements += [
            _view(
                f"{table}_{name}",
                f"select t.* from {table} t join audits a on a.audit_id = t.audit_id "  # noqa: S608 - names of this package
                f"and coalesce(a.cluster_id, '') = coalesce(t.cluster_id, '') where a.age = {age}",
            )
            for name, age in (("now", 1), ("before", 2))
        ]
    statements.append(_view("findings_since", "select * from changes_now"))
    return tuple(statements)


_AUDITS = (
    "select audit_id, cluster_id, audited_at, "
    "row_number() over (partition by cluster_id order by audited_at desc, audit_id desc) as age "
    "from (select distinct audit_id, cluster_id, audited_at from nodes)"
)


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
