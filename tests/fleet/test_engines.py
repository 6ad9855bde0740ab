"""Spark SQL, DuckDB and pandas read the same numbers from a history; run with `pytest -m slow tests/fleet/test_engines.py`.

It needs `pip install duckdb pandas`, which development does not; without them the test is left out. Iceberg tables are read by pyiceberg, by DuckDB
(`pip install duckdb-extension-iceberg duckdb-extension-avro`, of the same version as duckdb) and by the Spark of `ICEBERG_SPARK`, a directory that
`pip install --target DIRECTORY 'pyspark>=4.1,<4.2'` wrote: Iceberg has no runtime for a later Spark yet.
"""

import json
import os
import subprocess
import sys
from itertools import compress
from pathlib import Path
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


def _holds_structs(table: str, column: str) -> bool:
    schema = AUDIT_TABLES[table]
    kind = schema.field(column).type if column in schema.names else pa.date32()
    return bool(pa.types.is_list(kind) and pa.types.is_struct(kind.value_type))


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


BY_SPARK = """
import json, sys
from pyspark import __version__
from pyspark.sql import SparkSession
runtime = f"org.apache.iceberg:iceberg-spark-runtime-{'.'.join(__version__.split('.')[:2])}_2.13:1.12.0"
spark = SparkSession.builder.master("local[1]").config("spark.jars.packages", runtime).config("spark.ui.enabled", "false").getOrCreate()
asked = json.load(sys.stdin)
found = []
for table, question in asked["questions"]:
    spark.read.format("iceberg").load(f"{asked['history']}/_iceberg/{table}").cache().createOrReplaceTempView(table)
    found.append(list(spark.sql(question).first()))
print(json.dumps(found, default=str))
"""


def test_engines_read_the_same_numbers_from_iceberg_tables(spark, audited, tmp_path):
    duckdb, tables = pytest.importorskip("duckdb"), pytest.importorskip("pyiceberg.table")
    history = audited("--table-format", "iceberg")
    plain, iceberg = duckdb.connect(), duckdb.connect(config={"extension_directory": str(tmp_path / "extensions")})
    for statement in view_statements(history, Dialect.DUCKDB):
        plain.execute(statement)
    for name in ("avro", "iceberg"):
        package = pytest.importorskip(f"duckdb_extension_{name}")
        (extension,) = Path(package.__file__).parent.rglob("*.duckdb_extension")
        iceberg.execute(f"install '{extension}'; load {name}")

    days = [(table, "audit_date", True) for table in AUDIT_TABLES]
    columns = [one for table in AUDIT_TABLES for one in [*COLUMNS, *days] if one[0] == table]
    expected, by_duckdb, by_pyiceberg = [], [], []
    for table in AUDIT_TABLES:
        place = f"{history}/_iceberg/{table}"
        iceberg.execute(f"create view {table} as select * from iceberg_scan('{place}')")
        read = tables.StaticTable.from_metadata(place).scan().to_arrow()
        arrow = duckdb.connect().register(table, read)
        for _, column, is_ordered in (one for one in columns if one[0] == table):
            question = asked(table, f'"{column}"', is_ordered=is_ordered)
            expected.append(plain.execute(question).fetchone())
            by_duckdb.append(iceberg.execute(question).fetchone())
            by_pyiceberg.append(arrow.execute(question).fetchone())
    assert expected == by_duckdb
    # pyiceberg 0.12 shows a null list of structs as an empty one (`ArrowProjectionVisitor.list`).
    is_whole = [not _holds_structs(table, column) for table, column, _ in columns]
    assert list(compress(expected, is_whole)) == list(compress(by_pyiceberg, is_whole))
    assert 3 == plain.execute("select count(distinct audit_id) from nodes").fetchone()[0]

    home = os.environ.get("ICEBERG_SPARK")
    if home is None:
        pytest.skip("ICEBERG_SPARK names no Spark for which Iceberg has a runtime")
    questions = [(table, asked(table, f"`{column}`", is_ordered=is_ordered)) for table, column, is_ordered in columns]
    environment = {**os.environ, "PYTHONPATH": home, "SPARK_HOME": f"{home}/pyspark"}
    done = subprocess.run(
        [sys.executable, "-c", BY_SPARK],
        input=json.dumps({"history": history, "questions": questions}),
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    shown = {question: tuple(row) for question, row in zip(map(tuple, questions), json.loads(done.stdout), strict=True)}
    given = dict(
        zip(map(tuple, questions), (tuple(json.loads(json.dumps(row, default=str))) for row in expected), strict=True)
    )
    assert given == shown
