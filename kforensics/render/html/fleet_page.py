"""The audit of a fleet as one page: the answer, what changed, findings by cause, partitions, nodes and disks, placement, and what could not be read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kforensics.commands.result import Result
from kforensics.damage import Absent
from kforensics.evidence.model import Input
from kforensics.findings.changes import Change
from kforensics.findings.fleet_summary import AuditComparison, FleetSummary
from kforensics.findings.model import Finding
from kforensics.findings.rule import all_rules
from kforensics.render.fleet_words import changes_by_heading, moved_words, placement_words, totals_words, verdict_counts
from kforensics.render.html.pages import advice_of, fill_page, verdict_of
from kforensics.render.view import View
from kforensics.words import byte_count, command_line, counted, form, listed, utc_text

MOST_PROBLEMS = 200
TREND_WIDTH, TREND_HEIGHT = 240, 40


def write(result: Result[FleetSummary], view: View) -> str:
    """Return the page of an audit, or of a report of one."""
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


# ---------------------------------------------------------------- two audits

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


def write_comparison(result: Result[AuditComparison], view: View) -> str:
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
        known=lambda value: "none" if isinstance(value, Absent) else str(value),
    )


def change_figures(comparison: AuditComparison) -> list[tuple[str, int, str]]:
    """Return the figures of a comparison: the words, the number, and its style."""
    return [(name, comparison.count(change), kind) for name, change, kind in _FIGURES]


# ---------------------------------------------------------------- findings by their causes

MOST_ROWS = 200
"""Findings of one cause that the page shows."""

_MOST_PATHS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseRow:
    """One finding: where, what is at stake, and how to see more."""

    place: str
    brokers: str
    offsets: str
    stake: str
    change: str
    """`new`, `worse` and the like, as against the audit that this one is compared with; empty where it is as it was."""
    severity: str
    statement: str
    advice: str
    """Where it is not that of the cause."""
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseGroup:
    """One cause with its rows."""

    code: str
    title: str
    severity: str
    words: str
    meaning: str
    advice: str
    rows: tuple[CauseRow, ...]
    more: int


def cause_groups(summary: FleetSummary) -> list[CauseGroup]:
    """Return the findings of a summary by their code, the gravest cause first, then the most frequent."""
    by_code: dict[str, list[tuple[Finding, str]]] = {}
    for item, name in zip(summary.findings, summary.finding_ids, strict=True):
        by_code.setdefault(item.code, []).append((item, name))
    stakes = _stakes(summary)
    changes = {} if summary.comparison is None else dict(_changes(summary.comparison))
    groups = [_group(code, found, summary, stakes, changes) for code, found in by_code.items()]
    rank = {code: max(item.severity.rank for item, _ in found) for code, found in by_code.items()}
    return sorted(groups, key=lambda one: (-rank[one.code], -len(by_code[one.code]), one.code))


def _changes(comparison: AuditComparison) -> Iterator[tuple[str, str]]:
    for one in (
        *comparison.new_findings,
        *comparison.worse_findings,
        *comparison.changed_findings,
        *comparison.better_findings,
    ):
        yield one.finding_id, one.change.value


def _stakes(summary: FleetSummary) -> Mapping[tuple[str, int], str]:
    """Return the records at stake in each partition that the summary shows; of a name that several clusters have none."""
    out: dict[tuple[str, int], str] = {}
    for one in summary.worst:
        key = (one.topic, one.partition)
        parts = [counted(one.lost_certain, "committed record")] if one.lost_certain else []
        parts += [f"{one.lost_possible:,} possibly committed"] if one.lost_possible else []
        out[key] = "" if key in out else ", ".join(parts)
    return out


def _group(
    code: str,
    found: Sequence[tuple[Finding, str]],
    summary: FleetSummary,
    stakes: Mapping[tuple[str, int], str],
    changes: Mapping[str, str],
) -> CauseGroup:
    gravest = max((item for item, _ in found), key=lambda item: item.severity.rank)
    kind = all_rules().get(code)
    places = {(item.topic, item.partition) for item, _ in found if not isinstance(item.partition, Absent)}
    brokers = {broker for item, _ in found for broker in _brokers(item, summary.inputs)}
    total = summary.findings_by_code.get(code, len(found))
    words = [counted(total, "finding")]
    words += [f"in {counted(len(places), 'partition')}"] if places else []
    words += [f"on {form(len(brokers), 'broker')} {listed(sorted(brokers, key=int))}"] if 0 < len(brokers) <= 8 else []
    words += [f"on {len(brokers):,} brokers"] if len(brokers) > 8 else []
    advice = gravest.advice if kind is None else kind.advice
    return CauseGroup(
        code=code,
        title=gravest.statement if kind is None else kind.title,
        severity=gravest.severity.value,
        words=" ".join(words),
        meaning=gravest.meaning if kind is None else kind.meaning,
        advice=advice,
        rows=tuple(
            CauseRow(
                place=_place(item),
                brokers=", ".join(_brokers(item, summary.inputs)),
                offsets="" if isinstance(item.offsets, Absent) else f"{item.offsets.first:,} to {item.offsets.last:,}",
                stake="" if isinstance(item.partition, Absent) else stakes.get((str(item.topic), item.partition), ""),
                change=changes.get(name, ""),
                severity=item.severity.value,
                statement=item.statement,
                advice="" if item.advice == advice else item.advice,
                command=next_command(item, summary.inputs, summary.tables),
            )
            for item, name in found[:MOST_ROWS]
        ),
        more=total - min(len(found), MOST_ROWS),
    )


def _place(item: Finding) -> str:
    if isinstance(item.topic, Absent):
        return "the cluster"
    return item.topic if isinstance(item.partition, Absent) else f"{item.topic}-{item.partition}"


def _brokers(item: Finding, inputs: Sequence[Input]) -> list[str]:
    """Return the broker that a finding is about, or those whose files it cites."""
    if not isinstance(item.broker_id, Absent):
        return [str(item.broker_id)]
    cited = {inputs[one.input].broker_id for one in item.citations if 0 <= one.input < len(inputs)}
    return [str(one) for one in sorted(one for one in cited if isinstance(one, int))]


def next_command(item: Finding, inputs: Sequence[Input], tables: str) -> str:
    """Return the command that shows more of a finding: from the files where they are at hand, else from the tables."""
    paths = list(dict.fromkeys(inputs[one.input].path for one in item.citations if 0 <= one.input < len(inputs)))
    filters = []
    if not isinstance(item.topic, Absent):
        filters += ["--topic", item.topic]
        filters += [] if isinstance(item.partition, Absent) else ["--partition", str(item.partition)]
    if not paths or len(paths) > _MOST_PATHS or any("://" in one for one in paths):
        return command_line(["kforensics", "fleet", "report", tables, *filters, "--code", item.code])
    if len(paths) > 1 and filters:
        return command_line(["kforensics", "diff", *paths, *filters])
    folder = item.citations[0].path.rpartition("/")[0]
    own = f"{paths[0].rstrip('/')}/{folder}" if folder and folder != "." and not paths[0].endswith(".kfc") else paths[0]
    return command_line(["kforensics", "verify", own])
