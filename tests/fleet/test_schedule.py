"""What a scheduler gets of an audit: an exit code by rules, one line of JSON, lines of a log, and metrics."""

import json
import re
from dataclasses import replace

import pytest

import kforensics.fleet
from kforensics.cli.app import run
from kforensics.cli.fleet import stage_progress
from kforensics.commands.result import Conclusion, Result
from kforensics.findings.answers.fleet import fleet_answer
from kforensics.findings.model import Severity
from kforensics.fleet.watch import Stage
from kforensics.render.metrics import metrics_text
from tests.builders.audits import CLUSTER, one_finding, write_audit
from tests.builders.fleet import fleet_summary

SAMPLE = re.compile(
    r'kforensics_[a-z_]+(\{[a-z_]+="([^"\\\n]|\\["\\n])*"(,[a-z_]+="([^"\\\n]|\\["\\n])*")*\})? -?[0-9.e+-]+'
)


@pytest.fixture
def audited(tmp_path):
    """Tables of an audit with one finding that is an error."""
    return str(write_audit(tmp_path / "audit", [one_finding("KF202", Severity.ERROR)]))


@pytest.fixture
def accepting(tmp_path):
    def write(finding, until="2999-01-01"):
        path = tmp_path / "accept.yaml"
        path.write_text(f"- {{finding: '{finding}', who: anna, until: {until}, why: a disk is on its way}}\n")
        return str(path)

    return write


def line_of(capsys, *arguments):
    code = run(["fleet", "report", *arguments, "--format", "jsonl"])
    text = capsys.readouterr().out
    assert 1 == text.count("\n")
    line = json.loads(text)
    assert code == line["exit_code"]
    return line


def test_the_exit_code_follows_the_rules_that_are_given(audited, accepting, capsys):
    assert 1 == line_of(capsys, audited)["exit_code"]
    assert 0 == line_of(capsys, audited, "--fail-on", "critical")["exit_code"]
    # There is no earlier audit: nothing shows that the finding was there before.
    failing = line_of(capsys, audited, "--fail-on", "critical", "--fail-on", "new")
    assert (1, [f"KF202/{CLUSTER}/orders-3/2"]) == (failing["exit_code"], failing["gate"]["failing_ids"])
    accepted = line_of(capsys, audited, "--accept", accepting("KF202/*/orders-*/*"))
    assert (0, 1) == (accepted["exit_code"], accepted["gate"]["accepted"])
    assert 1 == run(["fleet", "report", audited, "--accept", accepting("KF309/*")])
    assert "The acceptance of KF309/* by anna covers none of these findings." in " ".join(
        capsys.readouterr().out.split()
    )


def test_an_acceptance_that_ended_is_said_in_every_format(audited, accepting, capsys):
    ended = accepting("KF202/*", until="2020-01-01")

    assert 1 == run(["fleet", "report", audited, "--accept", ended, "--format", "jsonl"])
    printed = capsys.readouterr()
    assert ["KF202/*"] == [one["finding"] for one in json.loads(printed.out)["gate"]["expired"]]
    assert "KF202/* by anna ended on 2020-01-01" in printed.err
    assert 1 == run(["fleet", "report", audited, "--accept", ended])
    assert "KF202/* by anna ended on 2020-01-01" in " ".join(capsys.readouterr().out.split())
    assert 1 == run(["fleet", "report", audited, "--accept", ended, "--format", "html"])
    page = capsys.readouterr().out
    assert "1 finding fails the rule --fail-on warning." in page
    assert "KF202/* by anna ended on 2020-01-01" in page
    assert f"KF202/{CLUSTER}/orders-3/2</li>" in page


def test_what_was_not_read_is_not_calm_whatever_is_accepted(tmp_path, accepting, capsys):
    unread = {"input": 0, "path": ".", "message": "…"}
    tables = write_audit(tmp_path / "unread", [one_finding()], problems=[unread])

    assert 3 == line_of(capsys, str(tables), "--accept", accepting("KF201/*"))["exit_code"]


def test_a_file_of_acceptances_that_is_none_is_wrong_usage(audited, tmp_path, capsys):
    assert 2 == run(["fleet", "report", audited, "--accept", str(tmp_path / "none.yaml")])
    assert "none.yaml can't be read" in capsys.readouterr().err
    assert 2 == run(["fleet", "report", audited, "--since", audited, "--fail-on", "new"])
    assert "are for a report of one audit" in capsys.readouterr().err


def test_metrics_are_replaced_and_nothing_else_is(audited, tmp_path, capsys):
    path = tmp_path / "kforensics.prom"
    for _ in range(2):
        assert 1 == run(["fleet", "report", audited, "--metrics", str(path)])
    text = path.read_text()
    assert f'kforensics_findings{{cluster="{CLUSTER}",severity="error"}} 1\n' in text
    assert 'kforensics_audit_state{state="agree"} 1\n' in text
    assert "kforensics_audit_exit_code 1\n" in text
    assert [path] == [one for one in tmp_path.iterdir() if one.name != "audit"]
    other = tmp_path / "notes.txt"
    other.write_text("mine")
    assert 2 == run(["fleet", "report", audited, "--metrics", str(other)])
    assert "mine" == other.read_text()
    assert 2 == run(["fleet", "report", audited, "--metrics", str(tmp_path / "none" / "file.prom")])
    assert "is no directory" in capsys.readouterr().err


def test_metrics_are_of_the_form_that_prometheus_reads():
    summary = fleet_summary('"\\\n')
    result = Result(command="fleet audit", body=summary, concluded=Conclusion(answer=fleet_answer(summary)))

    lines = metrics_text(result).splitlines()

    samples = [one for one in lines if not one.startswith("#")]
    assert all(SAMPLE.fullmatch(one) for one in samples)
    assert len(samples) == len({one.rpartition(" ")[0] for one in samples})
    families = [one.split()[2] for one in lines if one.startswith("# TYPE")]
    assert len(families) == len(set(families))
    assert {one.partition("{")[0].partition(" ")[0] for one in samples} <= set(families)
    without = replace(summary, findings_by_cluster={})
    empty = metrics_text(Result(command="fleet audit", body=without, concluded=result.concluded))
    assert 'kforensics_findings{cluster="",severity="critical"} 0' in empty


def test_open_findings_are_counted_by_severity_and_age(tmp_path, monkeypatch):
    history, day = tmp_path / "history", 86_400 * 10**9
    for night, nodes in ((0, (1, 2)), (3, (1, 2)), (40, (1,))):
        monkeypatch.setattr(
            "kforensics.fleet.output.time.time_ns", lambda night=night: 1_700_000_000 * 10**9 + night * day
        )
        found = [one_finding("KF202", Severity.ERROR)] if night != 40 else [one_finding("KF203", partition=4, broker=1)]
        write_audit(history, found, audit_id=str(night), is_history=True, nodes=nodes)

    def counts(audit):
        text = metrics_text(kforensics.fleet.report(history, audit=audit))
        lines = [one for one in text.splitlines() if one.startswith(("kforensics_open", "kforensics_oldest"))]
        return {one.partition("{")[2] for one in lines if not one.endswith(" 0")}

    def line(severity, state, rest):
        return f'cluster="{CLUSTER}",severity="{severity}",state="{state}"{rest}'

    first = "1700000000"
    assert {line("error", "open", ',age="under 1 day"} 1'), line("error", "open", f"}} {first}")} == counts("0")
    assert {line("error", "open", ',age="1 to 7 days"} 1'), line("error", "open", f"}} {first}")} == counts("3")
    # Node 2 was away: what it showed is neither open nor closed.
    assert {
        line("error", "not-checked", ',age="over 30 days"} 1'),
        line("error", "not-checked", f"}} {first}"),
        line("critical", "open", ',age="under 1 day"} 1'),
        line("critical", "open", "} 1703456000"),
    } == counts("40")


def test_without_a_terminal_each_stage_is_a_line(capsys):
    with stage_progress(quiet=False, is_terminal=False) as progress:
        assert progress is not None
        for name, done in (("scan", 0), ("scan", 1), ("reconcile", 1), ("scan", 2)):
            progress(Stage(name=name, tasks=2, tasks_done=done, files=3, bytes=5_000))
        progress(Stage(name="scan and reconcile", tasks=0, seconds=1.25))

    lines = capsys.readouterr().err.splitlines()
    assert 3 == len(lines)
    assert re.fullmatch(r"20\S+Z kforensics fleet audit: scan: 2 tasks, 3 files, 4.9 KB", lines[0])
    assert lines[2].endswith("scan and reconcile: done in 1.2 s")
    with stage_progress(quiet=True, is_terminal=False) as progress:
        assert progress is None
