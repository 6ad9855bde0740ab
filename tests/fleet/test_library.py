"""The commands for fleets as functions of the library."""

import inspect
import json
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import kforensics
import kforensics.fleet
from kforensics.fleet import auditing, commands
from tests.builders.audits import one_finding, write_audit
from tests.fleet.test_identity import node
from tests.render.formats.page_checks import complaints


@pytest.fixture
def history(tmp_path):
    for name, partitions in (("1", (3,)), ("2", (3, 4))):
        findings = [one_finding(partition=number) for number in partitions]
        write_audit(tmp_path / "history", findings, audit_id=name, is_history=True)
    return tmp_path / "history"


def test_functions_are_those_of_the_command_line():
    assert {"audit", "history", "report", "trend"} == set(kforensics.fleet.__all__)
    taken = set(inspect.signature(kforensics.fleet.audit).parameters)
    assert {"paths", "out", "history", "fail_on", "session", "storage_option", "depth", "topics"} <= taken
    assert "session" not in inspect.signature(kforensics.fleet.report).parameters
    assert str(kforensics.fleet.report.__doc__).startswith("Show an audit again")
    with pytest.raises(AttributeError):
        getattr(kforensics.fleet, "nothing")  # noqa: B009 - mypy knows what there is


def test_a_report_has_its_document_and_whole_tables(history):
    result = kforensics.fleet.report(history, codes="KF201", most=1)

    assert repr(result).startswith("<kforensics fleet report: ")
    assert "<table>" in result._repr_html_()
    assert "2" == result.to_dict()["audit_id"]
    changes = result.to_arrow("changes")
    assert isinstance(changes, pa.Table)
    assert ["new", "unchanged"] == sorted(changes["change"].to_pylist())
    assert 2 == result.to_arrow("findings").num_rows
    since = kforensics.fleet.report(str(history), since="1")
    assert 1 == len(since.to_arrow("new_findings"))
    assert ["1", "2"] == [one["audit_id"] for one in kforensics.fleet.trend(history).to_dict()["audits"]]


def test_a_report_of_one_cluster_has_nothing_of_others(tmp_path):
    nodes = ((1, "first"), (2, "first"), (1, "second"), (9, None))
    tables = tmp_path / "a"
    write_audit(tables, [one_finding()], audit_id="1", nodes=nodes, cluster="first", also_in=("second", None))

    def shown(cluster):
        document = kforensics.fleet.report(tables, cluster=cluster).to_dict()
        return document["nodes"], document["partition_count"], document["finding_count"], document["states_by_cluster"]

    assert (2, 1, 1, {"first": {"agree": 1}}) == shown("first")
    assert (1, 1, 0, {"second": {"agree": 1}}) == shown("second")
    assert (1, 1, 0, {"": {"agree": 1}}) == shown("unknown")
    assert (4, 3, 1) == shown(None)[:3]
    assert [0] == [one["problem_count"] for one in kforensics.fleet.trend(tables, cluster="second").to_dict()["audits"]]
    with pytest.raises(kforensics.UsageError, match="cluster frist is not in the audit"):
        kforensics.fleet.report(tables, cluster="frist")


def test_pages_are_one_of_the_fleet_and_one_of_each_cluster(tmp_path):
    nodes = ((1, "first"), (2, "first"), (1, "second"))
    tables = tmp_path / "a"
    write_audit(tables, [one_finding()], nodes=nodes, cluster="first", also_in=("second",))

    kforensics.fleet.report(tables, pages=tmp_path / "pages")

    pages = {one.name: one.read_text() for one in (tmp_path / "pages").iterdir()}
    assert {"index.html", "cluster-first.html", "cluster-second.html"} == set(pages)
    assert all([] == complaints(page) for page in pages.values())
    assert all(f'<a href="{name}">' in pages["index.html"] for name in pages if name != "index.html")
    assert "KF201" in pages["cluster-first.html"]
    assert "KF201" not in pages["cluster-second.html"]
    with pytest.raises(kforensics.UsageError, match="exists; kforensics overwrites nothing"):
        kforensics.fleet.report(tables, pages=tmp_path / "pages")

    write_audit(tmp_path / "b", [one_finding()], nodes=nodes[:2], cluster="first")
    kforensics.fleet.report(tmp_path / "b", pages=tmp_path / "of-one")
    assert '<a href="cluster-first.html">' in (tmp_path / "of-one" / "index.html").read_text()
    assert "cluster-first.html" not in (tmp_path / "of-one" / "cluster-first.html").read_text()


def test_an_audit_takes_a_session_and_writes_tables(tmp_path, audit_here, monkeypatch):
    node(tmp_path / "broker-1", 1)
    sessions = []
    as_before = auditing._Audit

    def noting(session, *more):
        sessions.append(session())
        return as_before(session, *more)

    monkeypatch.setattr(auditing, "_Audit", noting)
    monkeypatch.setattr(auditing, "groups_of", lambda *_: 1)
    given = SimpleNamespace(createDataFrame=None)
    asked = {"topics": "orders", "metrics": tmp_path / "m.prom"}
    result = kforensics.fleet.audit(given, tmp_path / "broker-1", out=tmp_path / "tables", **asked)
    other = kforensics.fleet.audit(tmp_path / "broker-1", out=tmp_path / "others", session=given)

    assert [given, given] == sessions
    assert given is result.session is other.session
    with pytest.raises(TypeError, match="no session of Spark"):
        kforensics.fleet.report(tmp_path / "tables").to_spark("findings")
    assert {"orders"} == set(result.to_arrow("partitions")["topic"].to_pylist())
    assert ["orders"] == json.loads((tmp_path / "tables" / "audit.json").read_text())["scope"]["topics"]
    assert "kforensics_audit_info" in (tmp_path / "m.prom").read_text()


def test_places_are_not_changed_and_errors_are_those_of_the_package(tmp_path, monkeypatch):
    report: Any = kforensics.fleet.report
    trend: Any = kforensics.fleet.trend
    asked = []

    def note(ask, session):
        asked.append(ask)
        raise kforensics.UsageError("asked")

    monkeypatch.setattr(commands, "run_audit", note)
    with pytest.raises(kforensics.UsageError, match="asked"):
        kforensics.fleet.audit(["s3://copies/broker-1", tmp_path], "gs://b/broker-2", out="s3://audits/monday")
    assert ("s3://copies/broker-1", str(tmp_path), "gs://b/broker-2") == asked[0].sources
    with pytest.raises(kforensics.UsageError, match="--out"):
        kforensics.fleet.audit(tmp_path)
    with pytest.raises(TypeError, match="takes no topicks; did you mean topic"):
        report(tmp_path, topicks="a")
    with pytest.raises(TypeError, match="the tables of one audit"):
        kforensics.fleet.report(tmp_path, tmp_path)
    with pytest.raises(TypeError, match="a path is a str"):
        trend(7)
    with pytest.raises(ValueError, match="no path is given"):
        kforensics.fleet.trend()
    with pytest.raises(kforensics.EvidenceError):
        kforensics.fleet.report(tmp_path / "none")
