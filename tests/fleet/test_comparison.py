"""Two audits, compared from their tables: whole, in part, of different nodes, and in the SQL of other engines."""

import json

import pytest

from kforensics.cli.app import run
from kforensics.findings.answers.fleet import comparison_answer
from kforensics.findings.answers.model import State
from kforensics.findings.model import Severity
from kforensics.fleet.audit_tables import Filters, history_of, previous_audit
from kforensics.fleet.comparison import compare_audits
from kforensics.fleet.summary import summarise
from kforensics.fleet.tables import Tables
from kforensics.units import Depth
from tests.builders.audits import CLUSTER, one_finding, write_audit


def ids(findings):
    return [one.finding_id for one in findings]


@pytest.fixture
def two(tmp_path):
    """An audit and a later one, with a finding of each change but `unchecked`."""
    earlier = [
        one_finding(partition=0),
        one_finding(partition=1),
        one_finding(partition=2),
        one_finding(partition=4, statement="before"),
        one_finding(partition=5),
    ]
    later = [
        one_finding(partition=0),
        one_finding(partition=1, offsets=(10, 30)),
        one_finding(partition=2, offsets=(11, 12)),
        one_finding(partition=4, statement="after"),
        one_finding("KF202", Severity.ERROR, partition=6),
    ]
    return write_audit(tmp_path / "earlier", earlier), write_audit(tmp_path / "later", later)


def test_every_finding_is_of_one_change(two):
    found = compare_audits(*two)

    assert {"new": 1, "worse": 1, "changed": 1, "better": 1, "gone": 1, "unchanged": 1} == found.findings_by_change
    assert [f"KF202/{CLUSTER}/orders-6/2"] == ids(found.new_findings)
    assert [f"KF201/{CLUSTER}/orders-1/2"] == ids(found.worse_findings)
    assert [f"KF201/{CLUSTER}/orders-2/2"] == ids(found.better_findings)
    assert ["before"] == [one.statement_before for one in found.changed_findings]
    assert [f"KF201/{CLUSTER}/orders-5/2"] == ids(found.gone_findings)
    assert () == found.unchecked_findings
    answer = comparison_answer(found)
    assert (
        State.CHANGED,
        "1 finding new, 1 worse, 1 changed, 1 better, 1 gone; 2 partitions with another verdict.",
    ) == (
        answer.state,
        answer.headline,
    )


def test_filters_leave_a_part_and_a_finding_that_is_less_grave_now_is_not_gone(two, tmp_path):
    found = compare_audits(two[0], two[1], Filters(partitions=frozenset({1, 5})))
    assert {"worse": 1, "gone": 1} == found.findings_by_change
    assert {"new": 1} == compare_audits(two[0], two[1], Filters(codes=frozenset({"KF202"}))).findings_by_change

    milder = write_audit(tmp_path / "milder", [one_finding(severity=Severity.NOTE)])
    graver = write_audit(tmp_path / "graver", [one_finding(severity=Severity.ERROR)])
    of_errors = Filters(least_severity=Severity.ERROR)
    assert {"better": 1} == compare_audits(graver, milder, of_errors).findings_by_change
    assert {"worse": 1} == compare_audits(milder, graver, of_errors).findings_by_change
    assert {} == compare_audits(milder, milder, of_errors).findings_by_change


def test_an_audit_of_fewer_nodes_or_of_other_topics_is_not_calm(tmp_path):
    both = write_audit(tmp_path / "both", [one_finding()])
    fewer = write_audit(tmp_path / "fewer", [], nodes=(1,))
    other = write_audit(tmp_path / "other", [], scope={"topics": ["payments"], "partitions": []})
    unread = {"input": 1, "path": "data-0", "message": "…"}

    found = compare_audits(both, fewer)
    assert ({"unchecked": 1}, ("node 2",)) == (found.findings_by_change, found.gone_nodes)
    answer = comparison_answer(found)
    assert State.UNKNOWN is answer.state
    assert answer.headline.startswith("1 finding not checked again")
    assert State.UNKNOWN is comparison_answer(compare_audits(both, other)).state
    assert {} == compare_audits(both, other).findings_by_change
    with_problem = write_audit(tmp_path / "problem", [], problems=[unread])
    assert {"unchecked": 1} == compare_audits(both, with_problem).findings_by_change
    assert {"gone": 1} == compare_audits(both, write_audit(tmp_path / "sound", [])).findings_by_change


def test_a_node_stays_the_same_when_a_cluster_is_added_and_is_another_in_another_cluster(tmp_path):
    one = write_audit(tmp_path / "one", nodes=(1, 2))
    two = write_audit(tmp_path / "two", nodes=(1, 2, (1, "other")))
    moved = write_audit(tmp_path / "moved", nodes=((1, "other"), 2))

    assert (("node 1 of cluster other",), ()) == _nodes(one, two)
    assert ((), ("node 1 of cluster other",)) == _nodes(two, one)
    assert (("node 1 of cluster other",), (f"node 1 of cluster {CLUSTER}",)) == _nodes(one, moved)
    assert ((), ()) == _nodes(one, write_audit(tmp_path / "unknown", nodes=((1, None), 2)))


def _nodes(earlier, later):
    found = compare_audits(earlier, later)
    return found.new_nodes, found.gone_nodes


def test_the_worst_partitions_are_those_of_the_worst_states_whatever_their_verdicts(tmp_path):
    judged = {
        0: ("unknown", "silent-divergence"),
        1: ("behind", "behind"),
        2: ("lost", "will-truncate"),
        3: ("agree", "consistent"),
        4: ("diverged", "silent-divergence"),
        5: ("lost", "consistent"),
    }
    tables = write_audit(tmp_path / "tables", judged=judged)

    assert [2, 5, 4, 0, 1] == [one.partition for one in summarise(tables, most=9).worst]
    assert [2, 5] == [one.partition for one in summarise(tables, most=2).worst]


def test_an_audit_of_the_ends_ends_no_finding_of_one_that_read_content(tmp_path):
    history = tmp_path / "history"
    write_audit(history, [one_finding()], audit_id="content", is_history=True)
    write_audit(history, [], audit_id="ends", is_history=True, depth=Depth.TAILS)
    write_audit(history, [], audit_id="content again", is_history=True)
    write_audit(history, [], audit_id="ends again", is_history=True, depth=Depth.TAILS)
    content, ends, again, last = history_of(Tables(history))

    found = compare_audits(content, ends)

    assert {"unchecked": 1} == found.findings_by_change
    assert (
        "Only the earlier audit read the content of logs: what only content shows is no longer looked at.",
    ) == found.limits
    answer = comparison_answer(found)
    assert State.UNKNOWN is answer.state
    assert "not all that showed it was read again" in " ".join(answer.unknown)
    assert ["content", "content", "ends"] == [one and one.audit_id for one in map(previous_audit, (ends, again, last))]
    assert {"gone": 1} == compare_audits(content, again).findings_by_change


def test_the_command_says_it_in_every_format(two, tmp_path, capsys):
    earlier, later = (str(one) for one in two)
    assert 1 == run(["fleet", "report", later, "--since", earlier])
    screen = capsys.readouterr().out
    assert "Worse\n" in screen
    assert "offsets 10..30, they were 10..20" in screen
    assert 1 == run(["fleet", "report", later, "--since", earlier, "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    assert [6] == [one["partition"] for one in document["new_findings"]]
    page = tmp_path / "page.html"
    assert 1 == run(["fleet", "report", later, "--since", earlier, "--format", "html", "-o", str(page)])
    assert "offsets 10..30, they were 10..20" in page.read_text()
    assert page.read_text().count("<script") == 1  # our own, by its hash
    again = [str(write_audit(tmp_path / name, [one_finding()])) for name in ("monday", "tuesday")]
    assert 0 == run(["fleet", "report", again[1], "--since", again[0], "--topic", "orders"])
    assert capsys.readouterr().out.startswith("No finding and no verdict changed")
    assert 2 == run(["fleet", "report", earlier, "--since", later])
    assert "is a later audit" in capsys.readouterr().err
    assert 2 == run(["fleet", "report", later, "--since", "previous"])
    assert "its tables are in no history" in capsys.readouterr().err
    assert 3 == run(["fleet", "report", later, "--since", str(tmp_path / "nowhere")])


@pytest.mark.parametrize(
    ("filters", "words"),
    [
        (("--topic", "ordrs"), "no partition of topic ordrs is in the audit (--topic); did you mean orders?"),
        (("--topic", "orders", "--partition", "99"), "no partition 99 of the wanted topics is in the audit"),
        (("--node", "77"), "node 77 is not in the audit (--node); there is 1, 2"),
        (("--code", "KF20"), "no finding has the code KF20 (--code); did you mean"),
        (("--verdict", "lots"), "there is no verdict lots (--verdict); did you mean lost"),
    ],
)
@pytest.mark.some(2)
def test_filters_that_match_nothing_are_no_calm_answer(two, filters, words, capsys):
    earlier, later = (str(one.location) for one in two)
    for command in (["report", later], ["report", later, "--since", earlier], ["trend", later]):
        assert 2 == run(["fleet", *command, *filters])
        assert words in capsys.readouterr().err


def test_an_audit_that_a_history_does_not_have_is_not_compared(tmp_path, capsys):
    for name in ("night-1", "night-2"):
        write_audit(tmp_path / "history", [one_finding()], audit_id=name, is_history=True)

    assert 3 == run(["fleet", "report", str(tmp_path / "history"), "--since", "night-0"])
    printed = capsys.readouterr().err
    assert "has no audit of this name" in printed
    assert "did you mean night-2 or night-1?" in printed
