"""Audits that are appended to one history: found again, told apart, repeated without effect."""

import json
import re

import pyarrow.dataset as pd
import pytest

from kforensics.cli.app import run
from kforensics.errors import EvidenceNotFound, EvidenceUnreadable, UsageError
from kforensics.findings.model import Severity
from kforensics.fleet.audit_tables import open_audit, open_audits, previous_audit
from kforensics.fleet.level_rows import LEVELS
from kforensics.fleet.lock import hold_lock
from kforensics.fleet.output import open_output
from kforensics.fleet.publishing import is_part_of, part_stem
from kforensics.fleet.schemas import AUDIT_TABLES, TABLES
from kforensics.fleet.tables import AUDIT_MANIFEST, HISTORY_PARTITIONING, WORK, Tables
from kforensics.fleet.views import view_statements
from tests.builders.audits import CLUSTER, one_finding, write_audit
from tests.builders.directories import copied
from tests.conftest import FIXTURES

OTHER = "aaaaaaaaaaaaaaaaaaaaaa"


@pytest.fixture
def history(tmp_path):
    """Three nights of one cluster and one of another."""
    place = tmp_path / "history"
    append(place, "night-1", one_finding(partition=0))
    append(place, "other-1", one_finding(partition=0), cluster=OTHER)
    append(place, "night-2", one_finding(partition=0, offsets=(10, 30)), one_finding(partition=1))
    append(place, "night-3", one_finding(partition=1, severity=Severity.ERROR))
    return place


def append(place, name, *findings, **more):
    return write_audit(place, findings, audit_id=name, is_history=True, **more)


def test_every_audit_is_found_again(history):
    assert ["night-1", "other-1", "night-2", "night-3"] == [one.audit_id for one in open_audits(history)]
    assert "night-3" == open_audit(history).audit_id
    second = open_audit(history, "night-2")
    assert [0, 1] == sorted(row["partition"] for row in second.rows("findings"))
    assert {CLUSTER} == {row["cluster_id"] for row in second.rows("replicas")}
    previous = previous_audit(second)
    assert previous is not None
    assert "night-1" == previous.audit_id
    assert previous_audit(open_audit(history, "other-1")) is None
    with pytest.raises(UsageError, match=r"has no audit night-9: did you mean night-"):
        open_audit(history, "night-9")


def test_other_programs_read_all_of_it_by_cluster_and_day(history):
    for table in AUDIT_TABLES:
        found = pd.dataset(history / table, partitioning=HISTORY_PARTITIONING)
        assert sum(one.row_count(table) for one in open_audits(history)) == found.count_rows()
    findings = pd.dataset(history / "findings", partitioning=HISTORY_PARTITIONING).to_table()
    assert {*AUDIT_TABLES["findings"].names, "audit_date"} == set(findings.column_names)
    assert {CLUSTER: 4, OTHER: 1} == {
        one["values"]: one["counts"] for one in findings["cluster_id"].value_counts().to_pylist()
    }
    assert 4 == len({row["audited_at"] for row in findings.to_pylist()})


def test_an_audit_of_a_name_that_is_there_changes_nothing(history):
    before = {one: one.read_bytes() for one in history.rglob("*") if one.is_file()}

    again = open_output(history, is_history=True, audit_id="night-2")

    assert again.finished is not None
    assert "night-2" == again.finished.audit_id
    assert before == {one: one.read_bytes() for one in history.rglob("*") if one.is_file()}


@pytest.mark.slow
def test_what_an_interrupted_audit_published_is_removed_before_the_next(history):
    rows = open_audit(history).row_count("findings")
    before = pd.dataset(history / "findings").count_rows()
    # Killed when all was published, and before the manifest was there.
    copied(history, history.with_name("copy"))
    append(history, "killed", one_finding(partition=7))
    manifest = json.loads((history / "_audits" / "killed.json").read_text())
    (history / "_audits" / "killed.json").unlink()
    Tables(history / WORK).create(["segments"])
    Tables(history / WORK).write_manifest(AUDIT_MANIFEST, manifest)
    assert before + 1 == pd.dataset(history / "findings").count_rows()

    append(history, "night-4", one_finding(partition=1))

    assert before + 1 == pd.dataset(history / "findings").count_rows()
    assert ["night-3", "night-4"] == [one.audit_id for one in open_audits(history)][-2:]
    assert rows == open_audit(history, "night-3").row_count("findings")


def test_a_part_that_is_missing_is_an_error_of_its_audit_alone(history):
    (part,) = (history / "findings").rglob("night-2-*.parquet")
    part.unlink()

    with pytest.raises(EvidenceUnreadable, match="the part is not there"):
        open_audit(history, "night-2")
    assert "night-3" == open_audit(history).audit_id


def test_what_holds_no_finished_audit_is_said(tmp_path):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(EvidenceUnreadable, match="no tables of an audit"):
        open_audits(tmp_path)
    with pytest.raises(EvidenceNotFound, match="there is nothing here"):
        open_audits(tmp_path / "nowhere")
    Tables(tmp_path / "begun" / WORK).create(["segments"])
    Tables(tmp_path / "begun" / WORK).write_manifest(AUDIT_MANIFEST, {})
    with pytest.raises(EvidenceUnreadable, match="its only audit did not finish"):
        open_audits(tmp_path / "begun")


def test_a_directory_of_something_else_is_no_history(history, tmp_path):
    single = write_audit(tmp_path / "single")
    with pytest.raises(UsageError, match="holds the tables of one audit"):
        open_output(single.location, is_history=True, audit_id=None)
    with pytest.raises(UsageError, match="is not empty and holds no audit"):
        open_output(history, is_history=False, audit_id=None)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").touch()
    with pytest.raises(UsageError, match="holds no history"):
        open_output(tmp_path / "notes", is_history=True, audit_id=None)


def test_the_commands_take_a_history(history, capsys):
    place = str(history)
    assert 0 == run(["fleet", "report", place, "--since", "previous", "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    assert ("night-2", "night-3") == (document["earlier_audit"], document["later_audit"])
    assert {"better": 1, "gone": 1} == document["findings_by_change"]
    assert 1 == run(["fleet", "report", place, "--audit", "night-2", "--since", "night-1"])
    assert capsys.readouterr().out.startswith("1 finding new, 1 worse")
    assert 0 == run(["fleet", "report", place, "--fail-on", "worse", "--format", "jsonl"])
    line = json.loads(capsys.readouterr().out)
    assert ("night-3", "night-2", {"better": 1, "gone": 1}) == (
        line["audit_id"],
        line["compared_with"],
        line["findings_by_change"],
    )
    assert 2 == run(["fleet", "report", place, "--audit", "night-1", "--since", "previous"])
    assert "none before it of the same cluster" in capsys.readouterr().err


def test_what_is_there_or_locked_needs_no_spark(history, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("kforensics.fleet.commands.open_session", lambda *_: pytest.fail("Spark was started"))
    audit = ["fleet", "audit", str(FIXTURES / "unclean-election"), "--history", str(history), "--audit-id"]

    assert 1 == run([*audit, "night-2", "--format", "jsonl"])
    line = json.loads(capsys.readouterr().out)
    assert ("night-2", "night-1", {"new": 1, "worse": 1}) == (
        line["audit_id"],
        line["compared_with"],
        line["findings_by_change"],
    )
    with hold_lock(Tables(history)):
        assert 2 == run([*audit, "night-9"])
    assert "is being written by another audit: process" in capsys.readouterr().err


def test_a_mistyped_path_needs_no_spark(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("kforensics.fleet.session.find_java", lambda: pytest.fail("Spark was started"))

    assert 3 == run(["fleet", "audit", str(tmp_path / "brokr-1"), "--out", str(tmp_path / "out")])
    assert "brokr-1: there is no such file or directory" in capsys.readouterr().err


def test_out_or_history_and_not_both(tmp_path, capsys):
    for given in ([], ["--out", "a", "--history", "b"]):
        assert 2 == run(["fleet", "audit", str(tmp_path), *given])
        assert "give either --out" in capsys.readouterr().err


@pytest.mark.slow
def test_the_trend_is_that_of_each_cluster(history, capsys):
    assert 0 == run(["fleet", "trend", str(history), "--format", "jsonl"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [
        ("night-1", {}, {"critical": 1}),
        ("other-1", {}, {"critical": 1}),
        ("night-2", {"new": 1, "worse": 1}, {"critical": 2}),
        ("night-3", {"better": 1, "gone": 1}, {"error": 1}),
    ] == [(one["audit_id"], one["findings_by_change"], one["findings_by_severity"]) for one in lines]
    assert 0 == run(["fleet", "trend", str(history), "--last", "2", "--partition", "0", "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    assert (4, [{"worse": 1}, {"gone": 1}]) == (
        document["audit_count"],
        [one["findings_by_change"] for one in document["audits"]],
    )
    assert 0 == run(["fleet", "trend", str(history)])
    screen = capsys.readouterr().out
    assert (
        "The latest of 4 audits has 1 finding of warning and above; the first of them had 1; since the audit before: "
        in " ".join(screen.split())
    )
    assert ["2 critical", "1 new, 1 worse", "night-2"] == re.split(r"  +", screen.splitlines()[-2].strip())[1:]
    assert all(len(line) <= 80 for line in screen.splitlines())
    append(history, "night-4", nodes=(1,))
    assert 3 == run(["fleet", "trend", str(history), "--format", "json"])
    assert ["node 2"] == json.loads(capsys.readouterr().out)["audits"][-1]["gone_nodes"]


NOW = {"findings", "replaced", "nodes", "audits", "findings_now", "changes", "changes_now", "findings_since"}
"""Views of which one needs all others; Spark takes its time to make those of every table."""


@pytest.mark.spark
def test_a_view_shows_now_in_spark(spark, history):
    for statement in view_statements(str(history)):
        if statement.split()[5] in NOW:
            spark.sql(statement)

    assert [("night-3", 1), ("other-1", 0)] == rows(spark, "select audit_id, partition from findings_now")
    # What became of each finding was written when the audit ended: nothing compares audits again.
    since = spark.sql("select * from findings_since")
    plan = since._jdf.queryExecution().executedPlan().toString()
    exchanges = plan.count("Exchange")
    assert exchanges <= 4, plan
    assert [("better", 1), ("gone", 0), ("new", 0)] == rows(spark, "select change, partition from findings_since")


def rows(spark, query):
    return sorted(tuple(row) for row in spark.sql(query).collect())


@pytest.mark.slow
@pytest.mark.spark
def test_views_show_now_and_since_in_spark(spark, history):
    for statement in view_statements(str(history)):
        spark.sql(statement)

    assert [("night-2", 0), ("night-2", 1)] == rows(spark, "select audit_id, partition from findings_before")
    # The other cluster has one audit only: what that found is new.
    assert [("better", 1), ("gone", 0), ("new", 0)] == rows(spark, "select change, partition from findings_since")
    assert [(5,)] == rows(spark, "select count(distinct finding_id, audit_id) from findings")
    assert [(0,)] == rows(spark, "select count(*) from problems_now")


@pytest.mark.spark
def test_no_column_needs_quotes_in_sql(spark):
    known = {**AUDIT_TABLES, **LEVELS}
    chosen = sorted({name for schema in known.values() for name in schema.names})
    spark.conf.set("spark.sql.ansi.enforceReservedKeywords", "true")
    spark.conf.set("spark.sql.ansi.enabled", "true")
    try:
        given = ", ".join(f"1 as `{name}`" for name in chosen)
        assert spark.sql(f"select {', '.join(chosen)} from (select {given})").columns == chosen
    finally:
        spark.conf.unset("spark.sql.ansi.enforceReservedKeywords")
        spark.conf.unset("spark.sql.ansi.enabled")


def test_a_trend_over_other_topics_is_incomplete(tmp_path, capsys):
    place = tmp_path / "history"
    append(place, "night-1", one_finding(partition=0), one_finding(partition=1))
    append(place, "night-2", scope={"topics": ["payments"], "partitions": []})

    assert 3 == run(["fleet", "trend", str(place), "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    assert document["answer"]["headline"].startswith("Incomplete: The latest of 2 audits has 0 findings")
    assert ["The two audits were not made of the same topics: only these are compared: payments."] == document[
        "audits"
    ][-1]["limits"]


def test_a_new_attempt_removes_the_parts_of_the_one_before(tmp_path):
    out = tmp_path / "out"
    open_output(out, is_history=False, audit_id="one").begin({}, TABLES)
    part = out / "findings" / "part-00001.parquet"
    part.parent.mkdir(exist_ok=True)
    part.write_bytes(b"")

    open_output(out, is_history=False, audit_id="one").begin({}, TABLES)
    assert not part.exists()


def test_a_filter_on_findings_makes_no_fleet_sound(tmp_path, capsys):
    write_audit(tmp_path / "tables", [one_finding(severity=Severity.WARNING)])

    run(["fleet", "report", str(tmp_path / "tables"), "--severity", "critical"])
    screen = " ".join(capsys.readouterr().out.split())
    assert "fleet is sound" not in screen
    assert "All replicas of 1 partition agree on 2 nodes, every assigned replica given." in screen


def test_names_of_audits_become_names_of_files_that_are_told_apart():
    ids = ["night", "night-1", "night/1", "night 1", "..", "a" * 9, "ä"]
    assert len(ids) == len({part_stem(one) for one in ids})
    assert is_part_of("cluster_id=x/audit_date=2026-11-22/night-00000.parquet", "night")
    assert not is_part_of("night-1-00000.parquet", "night")
    assert not any("/" in part_stem(one) or part_stem(one).startswith((".", "_")) for one in ids)
