"""The comparison of two audits as one page: the answer, what became of the findings, and the partitions that are judged otherwise."""

from kforensics.commands.result import Result
from kforensics.damage import Absent
from kforensics.findings.changes import Change
from kforensics.findings.fleet_summary import AuditComparison
from kforensics.render.fleet_words import changes_by_heading, moved_words
from kforensics.render.html.pages import fill_page
from kforensics.render.html.verdict import advice_of, verdict_of
from kforensics.render.view import View

MOST_FINDINGS = 1_000
"""Findings of each change that a page shows."""

_FIGURES = (
    ("new findings", Change.NEW, "certain"),
    ("worse", Change.WORSE, "certain"),
    ("changed", Change.CHANGED, "possible"),
    ("better", Change.BETTER, ""),
    ("not checked again", Change.UNCHECKED, "possible"),
    ("gone", Change.GONE, ""),
    ("unchanged", Change.UNCHANGED, ""),
)


def write(result: Result[AuditComparison], view: View) -> str:
    """Return the page of a comparison."""
    comparison, answer = result.body, result.answer
    return fill_page(
        "fleet_comparison.html",
        made_ms=view.made_ms,
        label=verdict_of(answer),
        answer=answer,
        advice=advice_of(answer),
        identity=[("Audit", comparison.later_audit), ("Compared with", comparison.earlier_audit)],
        figures=change_figures(comparison),
        groups=[
            {
                "heading": heading,
                "anchor": findings[0].change.value,
                "rows": [(one, moved_words(one)) for one in findings[:MOST_FINDINGS]],
                "more": comparison.count(findings[0].change) - len(findings[:MOST_FINDINGS]),
            }
            for heading, findings in changes_by_heading(comparison)
        ],
        changes=comparison.changes[:MOST_FINDINGS],
        nodes=[("New", comparison.new_nodes), ("Missing", comparison.gone_nodes)],
        tables=(comparison.earlier, comparison.later),
        known=_known,
    )


def change_figures(comparison: AuditComparison) -> list[tuple[str, int, str]]:
    """Return the figures of a comparison: the words, the number, and its style."""
    return [(name, comparison.count(change), kind) for name, change, kind in _FIGURES]


def _known(value: object) -> str:
    return "none" if isinstance(value, Absent) else str(value)
