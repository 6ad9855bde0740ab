"""The audit of a fleet as one page: the answer, what changed, findings by cause, partitions, nodes and disks, placement, and what could not be read."""

from typing import NamedTuple

from kforensics.commands.result import Result
from kforensics.damage import Absent
from kforensics.findings.fleet_summary import FleetSummary
from kforensics.render.fleet_words import placement_words, totals_words, verdict_counts
from kforensics.render.html.fleet_causes import cause_groups
from kforensics.render.html.fleet_comparison import change_figures
from kforensics.render.html.pages import fill_page
from kforensics.render.html.verdict import advice_of, verdict_of
from kforensics.render.view import View
from kforensics.words import byte_count, listed, utc_text

MOST_PROBLEMS = 200
TREND_WIDTH, TREND_HEIGHT = 240, 40


def write(result: Result[FleetSummary], view: View) -> str:
    """Return the page of an audit, or of a report of one.

    Args:
        result: of `fleet audit` or `fleet report`.

    Raises:
        MissingExtra: jinja2 is not installed.
    """
    summary, answer = result.body, result.answer
    problems = summary.problems[:MOST_PROBLEMS]
    return fill_page(
        "fleet.html",
        label=verdict_of(answer),
        answer=answer,
        advice=advice_of(answer),
        identity=_identity(summary),
        made_ms=view.made_ms,
        decision=() if summary.gate is None else summary.gate.sentences(),
        failing=() if summary.gate is None else summary.gate.failing_ids,
        figures=_figures(summary),
        verdicts=verdict_counts(summary),
        worst=summary.worst,
        more_partitions=summary.not_consistent - len(summary.worst),
        nodes=summary.brokers,
        disks=summary.damage_by_disk,
        placement=placement_words(summary),
        trend=trend_line(summary),
        causes=cause_groups(summary),
        more_findings=summary.finding_count - len(summary.findings),
        compared=None if summary.comparison is None else summary.comparison.earlier_audit,
        changes=() if summary.comparison is None else change_figures(summary.comparison),
        problems=[(one.place(summary.inputs), one.message) for one in problems],
        more_problems=summary.problem_count - len(problems),
        tables=summary.tables,
        known=_known,
        byte_count=byte_count,
    )


class TrendLine(NamedTuple):
    """The findings of the audits of a history as a line: its points, where it ends, and the same in words."""

    points: str
    end: tuple[float, float]
    words: str


def trend_line(summary: FleetSummary) -> TrendLine | None:
    """Return the line of a history of two audits or more."""
    if len(summary.counts) < 2:
        return None
    most = max(count for _, count in summary.counts) or 1
    step = TREND_WIDTH / (len(summary.counts) - 1)
    places = [
        (round(n * step, 1), round(TREND_HEIGHT * (1 - count / most), 1)) for n, (_, count) in enumerate(summary.counts)
    ]
    numbers = ", ".join(f"{count:,}" for _, count in summary.counts)
    first = utc_text(summary.counts[0][0])
    return TrendLine(
        points=" ".join(f"{x},{y}" for x, y in places),
        end=places[-1],
        words=f"Findings of the last {len(places)} audits, from {first} on: {numbers}",
    )


def _identity(summary: FleetSummary) -> list[tuple[str, str]]:
    rows = [
        (
            "Clusters" if len(summary.clusters) > 1 else "Cluster",
            listed(summary.clusters) or "unknown: no input names its id",
        ),
        ("Audited", utc_text(summary.audited_ms)),
        ("Fleet", totals_words(summary)),
    ]
    if summary.comparison is None:
        rows.append(("Compared with", "no earlier audit: --history keeps them, --since names one"))
    return rows


def _figures(summary: FleetSummary) -> list[tuple[str, int, str]]:
    """Return the figures at the top of the page: the words, the number, and its style."""
    return [
        ("partitions that do not agree", summary.not_consistent, "possible"),
        ("committed records at risk", summary.lost_certain, "certain"),
        ("possibly committed records at risk", summary.lost_possible, "possible"),
        ("damaged places", sum(one.damaged_places for one in summary.damage_by_disk), "possible"),
        ("under-replicated partitions", summary.under_replicated, "possible"),
        ("partitions without a leader", summary.offline, "certain"),
        ("files and directories not read", summary.problem_count, "certain"),
    ]


def _known(value: object) -> str:
    return "?" if isinstance(value, Absent) else str(value)
