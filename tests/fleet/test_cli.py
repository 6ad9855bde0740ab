"""The commands: what they print, what they write, how they end."""

import json
import sys

import pytest

from kforensics.cli.app import run
from kforensics.fleet import session as sessions
from tests.captures import document, take


@pytest.fixture
def snapshot(incident):
    return incident("unclean-election-4.x") / "snapshots" / "03-old-leader-down-live"


@pytest.mark.slow
def test_scan_is_the_old_name_of_capture(snapshot, tmp_path, capsys):
    out = tmp_path / "broker-2.kfc"

    assert 0 == run(["fleet", "scan", str(snapshot / "broker-2"), "--out", str(out), "--normal-priority"])
    assert capsys.readouterr().out.startswith("broker-2.kfc has the evidence of node 2.")
    assert document("ls", [out]) == document("ls", [take([snapshot / "broker-2"], tmp_path / "own.kfc")])


@pytest.mark.spark
def test_audit_and_report(spark, snapshot, incident, tmp_path, capsys):
    old = incident("unclean-election-4.x") / "snapshots" / "02-old-leader-killed" / "broker-1"
    sources = [str(old), *(str(snapshot / f"broker-{number}") for number in (2, 3)), str(snapshot / "controller-100")]

    assert 1 == run(["fleet", "audit", *sources, "--out", str(tmp_path / "a"), "--format", "json", "--most", "2"])
    document = json.loads(capsys.readouterr().out)
    assert "kforensics/fleet-audit/2" == document["schema"]
    assert {"nodes": 4, "replicas": 22, "segments": 22, "exit_code": 1, "tables": str(tmp_path / "a")} == {
        name: document[name] for name in ("nodes", "replicas", "segments", "exit_code", "tables")
    }
    assert {"will-truncate": 3, "consistent": 3, "behind": 1} == document["verdicts"]
    assert [("orders", 0), ("orders", 1)] == [(one["topic"], one["partition"]) for one in document["partitions"]]

    assert 1 == run(["fleet", "report", str(tmp_path / "a")])
    screen = capsys.readouterr().out
    assert screen.startswith(
        "DATA AT RISK: broker 1 will discard 56 committed records of 3 partitions that\nthe leader does not hold."
    )
    assert "cp -a" in screen
    assert all(len(line) <= 80 or "incidents" in line or str(tmp_path) in line for line in screen.splitlines())

    assert 1 == run(
        ["fleet", "report", str(tmp_path / "a"), "--topic", "orders", "--code", "KF201", "--format", "json"]
    )
    part = json.loads(capsys.readouterr().out)
    assert {"KF201": 3} == part["findings_by_code"]
    assert {"orders"} == {one["topic"] for one in part["partitions"]}

    assert 1 == run(["fleet", "report", str(tmp_path / "a"), "--format", "html", "-o", str(tmp_path / "page.html")])
    page = (tmp_path / "page.html").read_text()
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page
    assert page.count("<script") == 1  # our own, by its hash
    assert "orders-0: broker 1 will truncate its log from 103 to 60" in page

    assert 2 == run(["fleet", "report", str(tmp_path / "a"), "--since", str(tmp_path / "a")])
    assert "a is this audit itself: name one that was made before" in capsys.readouterr().err
    assert 2 == run(["fleet", "audit", *sources, "--out", str(tmp_path / "a")])
    assert "finished audit" in capsys.readouterr().err
    assert 3 == run(["fleet", "report", str(tmp_path)])


@pytest.mark.spark
@pytest.mark.slow
def test_captures_are_audited_as_the_directories_are(spark, snapshot, tmp_path, capsys):
    nodes = sorted(one for one in snapshot.iterdir() if one.is_dir())
    captures = [str(take([one], tmp_path / f"{one.name}.kfc")) for one in nodes]
    found = []
    for number, sources in enumerate(([str(one) for one in nodes], [*captures[:2], *map(str, nodes[2:])])):
        code = run(["fleet", "audit", *sources, "--out", str(tmp_path / f"tables-{number}")])
        capsys.readouterr()
        run(["fleet", "report", str(tmp_path / f"tables-{number}"), "--format", "json"])
        report = json.loads(capsys.readouterr().out)
        findings = [(one["code"], one["statement"]) for one in report["findings"]]
        found.append((code, findings, report["problems"], [tuple(one.items())[:6] for one in report["partitions"]]))

    assert found[0] == found[1]
    assert found[0][1]


def test_without_the_extra_one_sentence(monkeypatch, snapshot, tmp_path, capsys):
    monkeypatch.setattr(sessions, "find_spec", lambda name: None)

    assert 2 == run(["fleet", "audit", str(snapshot), "--out", str(tmp_path / "a")])

    assert (
        "kforensics: fleet audit needs an optional package: pip install 'kforensics[spark]'\n"
        == capsys.readouterr().err
    )


def test_without_java_one_sentence(monkeypatch):
    from kforensics.errors import UsageError

    monkeypatch.setattr(sessions, "_java_homes", lambda: iter(()))

    with pytest.raises(UsageError, match="needs Java 17 or later: install one"):
        sessions.find_java()


def test_an_old_java_is_reported(monkeypatch, tmp_path):
    from kforensics.errors import UsageError

    monkeypatch.setattr(sessions, "_java_homes", lambda: iter([tmp_path]))
    monkeypatch.setattr(sessions, "_java_version", lambda home: 11)

    with pytest.raises(UsageError, match=r"found Java 11 in .*: install one"):
        sessions.find_java()


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local", "local[1,4]"),
        ("local[2]", "local[2,4]"),
        ("local[*]", "local[*,4]"),
        ("local[2,1]", "local[2,1]"),
        ("spark://h:7077", "spark://h:7077"),
    ],
)
def test_tasks_are_tried_again_in_local_mode_too(master, expected):
    assert expected == sessions.with_attempts(master)


def test_help_loads_nothing_heavy():
    import subprocess

    code = (
        "import sys; from kforensics.cli.app import run; run(['fleet', 'audit', '--help']);"
        "print([n for n in ('pyspark', 'pyarrow', 'numpy') if n in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "[]" == out.splitlines()[-1]
