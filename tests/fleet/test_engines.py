"""Spark SQL, DuckDB and pandas read the same numbers from a history; run with `pytest -m slow tests/fleet/test_engines.py`.

It needs `pip install duckdb pandas`, which development does not; without them the test is left out.
"""

from typing import Any

import pyarrow as pa
import pytest

from kforensics.cli.app import run
from kforensics.fleet.schemas import AUDIT_TABLES
from kforensics.fleet.views import Dialect, view_statements

pytestmark = [pytest.mark.slow, pytest.mark.spark]

Figures = dict[tuple[str, str], tuple[Any, ...]]
"""Of each column of each table: the rows, those with a value, and where values have an order the least and the greatest."""


def has_order(kind: pa.DataType) -> bool:
    return not pa.types.is_nested(kind) and not pa.types.is_timestamp(kind) and not pa.types.is_boolean(kind)


COLUMNS = [(table, one.name, has_order(one.type)) for table, schema in AUDIT_TABLES.items() for one in schema]

QUESTIONS = {
    "audits": "select audit_id, cluster_id, age from audits order by 1, 2",
    "findings": "select audit_id, code, severity, count(*) from findings group by 1, 2, 3 order by 1, 2, 3",
    "since": "select change, count(*) from findings_since group by 1 order by 1",
    "bytes": "select audit_id, node_id, cast(sum(bytes) as bigint), count(*) from replicas group by 1, 2 order by 1, 2",
    "worst": "select topic, `partition`, state, lost_certain, lost_possible from partitions_now order by 1, 2",
    "times": "select distinct audit_id, {micros}(audited_at) from segments order by 1",
}


def asked(table: str, column: str, *, is_ordered: bool) -> str:
    ends = f", min({column}), max({column})" if is_ordered else ""
    return f"select count(*), count({column}){ends} from {table}"


@pytest.fixture
def audited(incident, tmp_path, capsys):
    """Make a history of three audits of two clusters."""

    def make(*options):
        history = str(tmp_path / "history")
        snapshots = incident("unclean-election-4.x") / "snapshots"
        for name in ("01-before-live", "99-final"):
            assert 3 > run(
                ["fleet", "audit", str(snapshots / name), "--history", history, "--audit-id", name, *options]
            )
        other = incident("hw-loss-0.10") / "snapshots" / "99-final"
        run(["fleet", "audit", str(other), "--history", history, "--audit-id", "other", "--replicas", "1,2", *options])
        capsys.readouterr()
        return history

    return make


def test_three_engines_read_the_same_numbers(spark, audited):
    duckdb, pandas = pytest.importorskip("duckdb"), pytest.importorskip("pandas")
    history = audited()
    connection = duckdb.connect()
    for statement in view_statements(history):
        spark.sql(statement)
    for statement in view_statements(history, Dialect.DUCKDB):
        connection.execute(statement)

    for name, text in QUESTIONS.items():
        by_spark = [tuple(row) for row in spark.sql(text.format(micros="unix_micros")).collect()]
        quoted = text.format(micros="epoch_us").replace("`", '"')
        assert by_spark == connection.execute(quoted).fetchall(), name
        assert by_spark, name

    figures: list[Figures] = [{}, {}, {}]
    for table in AUDIT_TABLES:
        frame = pandas.read_parquet(f"{history}/{table}", dtype_backend="pyarrow")
        for _, column, is_ordered in (one for one in COLUMNS if one[0] == table):
            key = (table, column)
            figures[0][key] = tuple(spark.sql(asked(table, f"`{column}`", is_ordered=is_ordered)).first())
            figures[1][key] = connection.execute(asked(table, f'"{column}"', is_ordered=is_ordered)).fetchone()
            values = frame[column].tolist()
            held = [one for one in values if one is not None and one is not pandas.NA]
            ends = ((min(held), max(held)) if held else (None, None)) if is_ordered else ()
            figures[2][key] = (len(values), len(held), *ends)
    by_spark_sql, by_duckdb, by_pandas = figures
    assert by_spark_sql == by_duckdb
    assert by_spark_sql == by_pandas
    assert by_spark_sql["findings", "finding_id"][0] > 0
