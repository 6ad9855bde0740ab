"""Engines that are not ours read the same from a history: Spark SQL, DuckDB, pandas, deltalake and pyiceberg.

`pip install duckdb pandas deltalake 'pyiceberg[sql-sqlite]'`, which development does not, then `pytest -m slow tests/fleet/test_engines.py`; what is not there is left out.
The test that saves into a catalog of Iceberg also needs `ICEBERG_SPARK`, a directory with the runtime of Iceberg and the Spark that it is for: `pip install --target DIRECTORY 'pyspark>=4.1,<4.2'`.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kforensics
from kforensics.cli.app import run
from kforensics.fleet.audit_tables import open_audits
from kforensics.fleet.schemas import AUDIT_TABLES
from kforensics.fleet.views import Dialect, view_statements
from tests.builders.coordinators import batch, commit, write_log
from tests.builders.directories import log_dir
from tests.fleet.test_keeping import append, settled

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


@pytest.fixture
def kept(audit_here, tmp_path):
    """A history of four audits, of which the last ones keep most rows of those before them, and its latest audit."""
    cluster = tmp_path / "cluster"
    for number, ends in ((1, 10), (2, 5)):
        place = log_dir(cluster / f"broker-{number}", number, partitions=())
        (place / "replication-offset-checkpoint").unlink()
        for partition in range(8):
            write_log(place, f"orders-{partition}", (0, b"".join(batch(at, [(b"k", b"v")]) for at in range(ends))))
        write_log(place, "__consumer_offsets-0", (0, batch(0, [commit("g", "orders", 1, 8, leader_epoch=0)])))
    settled(cluster)
    for number, grown in enumerate((None, None, 2, 3)):
        if grown is not None:
            append(cluster, grown, 5)
        audit_here(cluster, out=tmp_path / "history", is_history=True, audit_id=f"night-{number}")
    latest = open_audits(tmp_path / "history")[-1]
    assert len(latest.kept_from) == 3
    return str(tmp_path / "history"), latest


ASKED = ("partitions", "findings", "replicas", "commits", "segments")
VIEWED = {"replaced", "nodes", "audits", *ASKED, *(f"{one}_now" for one in ASKED)}


def held(audit, table):
    return sorted(row["verdict_id"] or 0 for row in audit.rows(table))


def by_duckdb(connection, audit, *, made=frozenset(), history=""):
    """Make the views, but for those of tables that are there, and compare what they show with what the audit holds."""
    for statement in view_statements(history, Dialect.DUCKDB):
        name = statement.split()[5]
        if name in VIEWED - made:
            connection.execute(statement)
    for table in ASKED:
        found = connection.execute(f"select coalesce(verdict_id, 0) from {table}_now order by 1").fetchall()
        assert held(audit, table) == [row[0] for row in found], table


def test_rows_that_are_kept_are_shown_by_spark_and_duckdb(spark, kept):
    duckdb = pytest.importorskip("duckdb")
    history, latest = kept

    by_duckdb(duckdb.connect(), latest, history=history)
    for statement in view_statements(history):
        if statement.split()[5] in VIEWED:
            spark.sql(statement)
    for table in ASKED:
        found = spark.sql(f"select coalesce(verdict_id, 0) from {table}_now order by 1").collect()
        assert held(latest, table) == [row[0] for row in found], table


def test_rows_that_are_kept_are_there_in_tables_of_delta_lake(kept, tmp_path):
    duckdb, deltalake = pytest.importorskip("duckdb"), pytest.importorskip("deltalake")
    history, latest = kept
    connection = duckdb.connect()
    folders = deltalake.Schema([deltalake.Field(name, "string") for name in ("cluster_id", "audit_date")])
    for table in ("nodes", "replaced", *ASKED):
        place = str(tmp_path / "delta" / table)
        shutil.copytree(f"{history}/{table}", place)
        deltalake.convert_to_deltalake(place, partition_by=folders, partition_strategy="hive")
        connection.register(table, pa.table(deltalake.DeltaTable(place).to_pyarrow_dataset().to_table()))

    by_duckdb(connection, latest, made=frozenset({"nodes", "replaced", *ASKED}))


def test_rows_that_are_kept_are_read_by_pyiceberg(kept, tmp_path):
    duckdb, catalogs = pytest.importorskip("duckdb"), pytest.importorskip("pyiceberg.catalog.sql")
    history, latest = kept
    lake = catalogs.SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/lake.db", warehouse=f"file://{tmp_path}/lake")
    lake.create_namespace("kafka")
    connection = duckdb.connect()
    for table in ("nodes", "replaced", *ASKED):
        files = sorted(Path(history, table).rglob("*.parquet"))
        # The files stay where they are; Iceberg takes no values from the names of folders.
        made = lake.create_table(f"kafka.{table}", schema=pq.read_schema(files[0]))
        made.add_files([str(one) for one in files])
        (cluster,) = {one.parts[-3].removeprefix("cluster_id=") for one in files}
        rows = made.scan().to_arrow()
        connection.register(table, rows.append_column("cluster_id", pa.repeat(cluster, rows.num_rows)))

    by_duckdb(connection, latest, made=frozenset({"nodes", "replaced", *ASKED}))


SAVED = """
import sys
from pathlib import Path
from kforensics.fleet.audit_tables import open_audits
from kforensics.fleet.frames import save_tables
from kforensics.fleet.session import open_session

history, jar, warehouse = sys.argv[1:]
catalog = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop", ".warehouse": warehouse}
settings = {"spark.jars": jar, "spark.driver.memory": "512m", **{f"spark.sql.catalog.lake{name}": value for name, value in catalog.items()}}
with open_session("local[1]", settings) as spark:
    spark.sql("create namespace lake.kafka")
    for one in open_audits(Path(history)):
        save_tables(spark, one, "lake.kafka")
"""


@pytest.mark.process
def test_rows_that_were_saved_by_iceberg_are_read_by_pyiceberg(kept, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    tables = pytest.importorskip("pyiceberg.table")
    home = os.environ.get("ICEBERG_SPARK")
    if home is None:
        pytest.skip("ICEBERG_SPARK names no Spark for which Iceberg has a runtime")
    (jar,) = Path(home).glob("iceberg-spark-runtime-*.jar")
    history, latest = kept
    places = f"{home}:{Path(kforensics.__file__).parents[1]}"
    subprocess.run(
        [sys.executable, "-c", SAVED, history, jar, tmp_path / "lake"],
        env={**os.environ, "PYTHONPATH": places, "SPARK_HOME": f"{home}/pyspark"},
        check=True,
    )
    connection = duckdb.connect()
    for table in ("nodes", "replaced", *ASKED):
        folder = tmp_path / "lake" / "kafka" / table / "metadata"
        newest = max(folder.glob("v*.metadata.json"), key=lambda one: int(one.name.split(".")[0][1:]))
        connection.register(table, tables.StaticTable.from_metadata(str(newest)).scan().to_arrow())

    by_duckdb(connection, latest, made=frozenset({"nodes", "replaced", *ASKED}))
