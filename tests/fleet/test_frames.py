"""The tables of an audit as DataFrames, and in the tables of a catalog."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import kforensics.fleet
from kforensics.ask.fleet import FleetAsk
from kforensics.errors import EvidenceUnreadable, UsageError
from kforensics.fleet import commands, frames
from kforensics.fleet.audit_tables import history_of, open_audits
from kforensics.fleet.stages import errors_of_tasks
from kforensics.fleet.tables import Tables
from tests.builders.audits import one_finding, write_audit
from tests.fleet.test_identity import node


@pytest.fixture
def history(tmp_path):
    for name, partitions in (("1", (3,)), ("2", (3, 4))):
        findings = [one_finding(partition=number) for number in partitions]
        write_audit(tmp_path / "history", findings, audit_id=name, is_history=True)
    return tmp_path / "history"


@pytest.mark.spark
def test_a_table_is_a_data_frame_with_the_rows_of_one_audit(spark, history):
    report = kforensics.fleet.report(history)

    for table in ("findings", "partitions", "changes", "segments"):
        found = report.to_spark(table, spark)
        own = report.to_arrow(table)
        assert own.schema.names == found.columns
        assert own.to_pylist() == found.toArrow().to_pylist()
    with pytest.raises(UsageError, match="an audit has no table finding; there are"):
        report.to_spark("finding", spark)


@pytest.mark.spark
def test_a_part_that_is_gone_is_named_by_the_task_that_wanted_it(spark, history):
    (audit, _) = open_audits(history)
    frame = frames.frame_of(spark, audit, "findings")
    gone = history / "findings" / f"{audit.parts('findings')[0]}.parquet"
    gone.unlink()

    with pytest.raises(EvidenceUnreadable, match="by task 0") as error, errors_of_tasks(audit):
        frame.collect()
    assert gone.name in str(error.value)


@pytest.mark.spark
def test_tables_are_written_into_a_schema_by_the_writers_of_spark(spark, history):
    spark.sql("create schema if not exists kept")
    first, second = open_audits(history)

    frames.save_tables(spark, first, "kept")

    assert [("1", 3)] == [(one.audit_id, one.partition) for one in spark.table("kept.findings").collect()]
    # Plain Parquet in Spark's own catalog can't replace a part of its rows.
    with pytest.raises(UsageError, match="--save-to kept: kept"):
        frames.save_tables(spark, second, "kept")
    with pytest.raises(UsageError, match="--save-to nowhere"):
        frames.save_tables(spark, second, "nowhere")


@pytest.mark.parametrize(
    ("schema", "words"),
    [("lake..kafka", "no name of a schema"), ("lak.kafka", "no catalog lak; did you mean lake"), ("a-b", "no name")],
)
def test_a_schema_that_can_not_be_one_is_refused_before_a_session_is_started(tmp_path, monkeypatch, schema, words):
    node(tmp_path / "b1", 1)
    monkeypatch.setattr(commands, "open_session", None)
    conf = {"spark.sql.catalog.lake": "org.example.Catalog", "spark.sql.catalog.lake.uri": "…"}
    request = FleetAsk(sources=(str(tmp_path / "b1"),), history_tables=tmp_path / "h", save_to=schema, spark_conf=conf)

    with pytest.raises(UsageError, match=words):
        commands.run_audit(request)
    assert not (tmp_path / "h").exists()


@pytest.mark.spark
def test_a_schema_that_is_not_there_is_refused_before_anything_is_read(spark, tmp_path):
    node(tmp_path / "b1", 1)
    request = FleetAsk(sources=(str(tmp_path / "b1"),), history_tables=tmp_path / "h", save_to="nowhere_at_all")

    with pytest.raises(UsageError, match="there is no such schema"):
        commands.run_audit(request, session=spark)
    assert not history_of(Tables(tmp_path / "h"))


@pytest.mark.spark
def test_where_tables_can_not_be_saved_the_metrics_say_so(spark, tmp_path, monkeypatch):
    node(tmp_path / "b1", 1)
    spark.sql("create schema if not exists kept")
    monkeypatch.setattr(frames, "save_tables", refusing)
    target = tmp_path / "metrics" / "k.prom"
    target.parent.mkdir()
    request = FleetAsk(sources=(str(tmp_path / "b1"),), history_tables=tmp_path / "h", save_to="kept", metrics=target)

    with pytest.raises(UsageError, match="full"):
        commands.run_audit(request, session=spark)
    (line,) = [one for one in target.read_text().splitlines() if one.startswith("kforensics_audit_exit_code")]
    assert "2" == line.split()[-1]
    assert 1 == len(history_of(Tables(tmp_path / "h")))


def refusing(*_):
    raise UsageError("full")


BY_ICEBERG = """
import sys
from pathlib import Path
from kforensics.fleet.audit_tables import open_audits
from kforensics.fleet.frames import save_tables
from kforensics.fleet.session import open_session

history, jar, warehouse = sys.argv[1:]
catalog = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop", ".warehouse": warehouse}
settings = {"spark.jars": jar, **{f"spark.sql.catalog.lake{name}": value for name, value in catalog.items()}}
with open_session("local[1]", settings) as spark:
    spark.sql("create namespace lake.kafka")
    first, second = open_audits(Path(history))
    for one in (first, second, second):
        save_tables(spark, one, "lake.kafka")
    print([tuple(row) for row in spark.sql("select audit_id, partition from lake.kafka.findings order by all").collect()])
"""


@pytest.mark.slow
@pytest.mark.process
def test_an_audit_that_is_saved_twice_is_once_in_tables_of_iceberg(history, tmp_path):
    """`ICEBERG_SPARK` is a directory with the runtime of Iceberg, and the Spark that it is for: `pip install --target DIRECTORY 'pyspark>=4.1,<4.2'`."""
    home = os.environ.get("ICEBERG_SPARK")
    if home is None:
        pytest.skip("ICEBERG_SPARK names no Spark for which Iceberg has a runtime")
    (jar,) = Path(home).glob("iceberg-spark-runtime-*.jar")
    places = f"{home}:{Path(kforensics.__file__).parents[1]}"
    done = subprocess.run(
        [sys.executable, "-c", BY_ICEBERG, history, jar, tmp_path / "lake"],
        env={**os.environ, "PYTHONPATH": places, "SPARK_HOME": f"{home}/pyspark"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.splitlines()[-1] == "[('1', 3), ('2', 3), ('2', 4)]"


@pytest.mark.spark
@pytest.mark.parametrize(("there", "is_whole"), [({"1", "2"}, False), ({"2"}, True), (set(), True)])
@pytest.mark.some(2)
def test_rows_of_earlier_audits_are_saved_where_the_catalog_has_not_all_of_them(
    spark, history, monkeypatch, there, is_whole
):
    assert spark
    (*_, audit) = open_audits(history)
    audit.manifest |= {"kept_from": ["1", "2"], "chains": {"a": "1"}}
    made = set()
    catalog = Catalog("lake.k.nodes")
    monkeypatch.setattr(frames, "frame_of", lambda *_: catalog)

    def saved(frame, *_, is_whole):
        made.add(is_whole)
        return frame

    monkeypatch.setattr(frames, "_saved", saved)
    monkeypatch.setattr(frames, "_audits_of", lambda *_: there)

    frames.save_tables(catalog, audit, "lake.k")

    assert {is_whole} == made
    assert catalog.done[-1].startswith("lake.k.nodes")


class Catalog:
    """A catalog and its writers as far as `save_tables` uses them."""

    def __init__(self, *names):
        self.names, self.done = set(names), []
        self.catalog = self

    def tableExists(self, name):  # noqa: N802 - of Spark
        return name in self.names

    def writeTo(self, name):  # noqa: N802 - of Spark
        self.done.append(name)
        return self

    def create(self):
        self.done[-1] += " made"

    def overwrite(self, condition):
        self.done[-1] += f" where {condition}"


@pytest.mark.spark
def test_what_a_table_has_of_the_audit_is_replaced(spark, history, monkeypatch):
    assert spark
    session = Catalog("lake.k.findings")
    monkeypatch.setattr(frames, "frame_of", lambda *_: session)

    frames.save_tables(session, open_audits(history)[0], "lake.k")

    assert "lake.k.partitions made" in session.done
    assert [True] == [
        "audit_id" in one and "1" in one for one in session.done if one.startswith("lake.k.findings where")
    ]
