"""Which findings fail a scheduled audit, and which somebody has accepted."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.damage import Absent
from kforensics.errors import UsageError
from kforensics.findings.changes import Change
from kforensics.findings.gate import FailOn, GatedFinding, decide, parse_acceptances
from kforensics.findings.model import Severity

TODAY = date(2026, 11, 22)


def found(own="KF201/c/orders-3/2", severity=Severity.ERROR, change=Change.UNCHANGED):
    return GatedFinding(finding_id=own, severity=severity, change=change)


def gate(findings, *rules, accept="", is_incomplete=False):
    return decide(
        findings,
        [FailOn(rule) for rule in rules],
        parse_acceptances(accept, "accept.yaml"),
        today=TODAY,
        is_incomplete=is_incomplete,
        compared_with=Absent.NOT_APPLICABLE,
    )


def accept(finding, until="2026-11-22", **more):
    return "\n".join(
        [f"- finding: '{finding}'", "  who: anna", f"  until: {until}", "  why: a disk is on its way"]
        + [f"  {key}: {value}" for key, value in more.items()]
    )


@pytest.mark.parametrize(
    ("severity", "change", "rule", "fails"),
    [
        (Severity.ERROR, Change.UNCHANGED, "error", True),
        (Severity.WARNING, Change.NEW, "error", False),
        (Severity.NOTE, Change.NEW, "note", True),
        (Severity.WARNING, Change.NEW, "new", True),
        (Severity.NOTE, Change.NEW, "new", False),
        (Severity.CRITICAL, Change.WORSE, "new", False),
        (Severity.WARNING, Change.WORSE, "worse", True),
        (Severity.WARNING, Change.NEW, "worse", True),
        (Severity.WARNING, Change.CHANGED, "worse", True),
        (Severity.CRITICAL, Change.BETTER, "worse", False),
        (Severity.CRITICAL, Change.UNCHANGED, "worse", False),
    ],
)
def test_what_fails(severity, change, rule, fails):
    assert int(fails) == gate([found(severity=severity, change=change)], rule).exit_code


def test_any_of_several_rules_fails_it_and_what_is_not_known_is_not_calm():
    assert 1 == gate([found(change=Change.NEW)], "critical", "new").exit_code
    assert 3 == gate([], "note", is_incomplete=True).exit_code
    assert 1 == gate([found()], "note", is_incomplete=True).exit_code
    assert 0 == gate([], "note").exit_code


def test_an_accepted_finding_does_not_fail_until_the_day_is_over():
    one = found(severity=Severity.CRITICAL)

    held = gate([one], "error", accept=accept("KF201/c/orders-*/2"))
    assert (0, 1, 0, ()) == (held.exit_code, held.accepted, held.failing, held.expired)
    ended = gate([one], "error", accept=accept("KF201/c/orders-3/2", until="2026-11-21"))
    assert (1, 0, 1) == (ended.exit_code, ended.accepted, ended.failing)
    assert ["anna"] == [own.who for own in ended.expired]
    assert "ended on 2026-11-21 (a disk is on its way): findings that it covers count again" in " ".join(
        ended.sentences()
    )
    other = gate([one], "error", accept=accept("KF402/*"))
    assert (1, 1) == (other.exit_code, len(other.unused))


def test_an_acceptance_can_be_of_a_severity_and_no_more():
    limited = accept("KF207/*", severity="warning")

    assert 0 == gate([found("KF207/c/t-0/1", Severity.WARNING)], "warning", accept=limited).exit_code
    assert 1 == gate([found("KF207/c/t-0/1", Severity.CRITICAL)], "warning", accept=limited).exit_code


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- {finding: KF201/x, who: a, until: 2026-01-01}", "entry 1 lacks why"),
        ("- {finding: KF201/x, who: '', until: 2026-01-01, why: b}", "entry 1 lacks who"),
        (
            "- {finding: KF201/x, who: a, until: soon, why: b}",
            "expected a day such as 2026-12-01 for until, found 'soon'",
        ),
        ("- {finding: KF201/x, who: a, until: 2026-01-01, why: b, whom: c}", "unknown keys: whom"),
        (
            "- {finding: KF201/x, who: a, until: 2026-01-01, why: b, severity: bad}",
            "expected one of critical, .* for severity, found 'bad'",
        ),
        ("- {finding: '*', who: a, until: 2026-01-01, why: b}", "would accept every finding"),
        ("- {finding: 'KF*', who: a, until: 2026-01-01, why: b}", "would accept every finding"),
        ("- {finding: '[A-Z]*/*', who: a, until: 2026-01-01, why: b}", "would accept every finding"),
        ("finding: KF201", "expected a list"),
        ("- KF201", "found 'KF201'"),
        (
            "- {finding: [KF201/x], who: a, until: 2026-01-01, why: b}",
            r"expected text for finding, found \['KF201/x'\]",
        ),
        ("- {finding: KF201/x, who: a, until: 2026-01-01, why: b, severity: {a: b}}", "expected text for severity"),
        ("- {finding: KF201/x, who: a, until: 2026-13-45, why: b}", "no YAML: month must be in 1..12"),
        ("[" * 20_000, "no YAML"),
        ("- {", "no YAML"),
    ],
)
@pytest.mark.some(5)
def test_a_file_that_is_none_is_refused(text, words):
    with pytest.raises(UsageError, match=words):
        parse_acceptances(text, "accept.yaml")


def test_an_empty_file_accepts_nothing():
    assert () == parse_acceptances("# nothing yet\n", "accept.yaml")


gated = st.builds(
    found, st.sampled_from(["KF201/c/a-0/1", "KF402/c/a-0/-"]), st.sampled_from(Severity), st.sampled_from(Change)
)


@given(st.lists(gated), st.lists(st.sampled_from(FailOn), min_size=1), st.integers(-2, 2))
def test_what_fails_without_acceptances_fails_or_is_accepted_with_them(findings, rules, days):
    until = (TODAY + timedelta(days=days)).isoformat()
    without, held = gate(findings, *rules), gate(findings, *rules, accept=accept("KF201/*", until=until))

    assert without.failing == held.failing + held.accepted
    assert not (days < 0 and held.accepted)
    assert held.failing >= gate([one for one in findings if one.finding_id.startswith("KF4")], *rules).failing
