"""Audits of fleets as text: one, what changed between two, one after the other, and what was taken on a broker."""

from collections import Counter
from collections.abc import Iterator

from rich.text import Text

from kforensics.commands.result import Result
from kforensics.damage import Absent
from kforensics.findings.answers.fleet import change_words
from kforensics.findings.fleet_summary import AuditComparison, AuditTrend, FleetSummary, ScanResult, TrendLine
from kforensics.render.escape import escape_text
from kforensics.render.fleet_words import changes_by_heading, moved_words, placement_words, totals_words, verdict_counts
from kforensics.render.text.screen import INDENT, Line, Style, Words, columns, hanging, section
from kforensics.render.text.whole import problem_lines, whole_screen
from kforensics.render.view import View
from kforensics.words import byte_count, counted, listed, utc_text

_SHOWN_PARTITIONS = 20
_SHOWN_FINDINGS = 20
_SHOWN_NODES = 10


@whole_screen
def write(result: Result[FleetSummary], view: View) -> Iterator[Line]:
    """Yield the worst partitions, brokers, disks, placement, and where the rest is."""
    summary, verbose = result.body, view.verbose
    yield ""
    yield Words(totals_words(summary))
    for sentence in summary.gate.sentences() if summary.gate else ():
        yield Words(escape_text(sentence))
    yield from _verdict_lines(summary)
    yield from _partition_lines(summary, most=None if verbose else _SHOWN_PARTITIONS)
    yield from _broker_lines(summary, verbose=verbose)
    yield from _placement_lines(summary)
    yield from _finding_lines(summary, most=None if verbose else _SHOWN_FINDINGS)
    yield from _problem_lines(summary, most=None if verbose else _SHOWN_NODES)
    yield ""
    yield Words(f"Tables: {escape_text(summary.tables)}", style=Style.QUIET)


def _verdict_lines(summary: FleetSummary) -> Iterator[Line]:
    rows = [(str(one.partitions), one.words) for one in verdict_counts(summary)]
    if rows:
        yield from section("Partitions by verdict")
        yield from columns(rows, right=frozenset({0}))


def _partition_lines(summary: FleetSummary, *, most: int | None) -> Iterator[Line]:
    worst = summary.worst[:most]
    if not worst:
        return
    yield from section("Worst first")
    rows = []
    for one in worst:
        loss = (
            f"{one.lost_certain} certain, {one.lost_possible} possible" if one.lost_certain or one.lost_possible else ""
        )
        rows.append((escape_text(f"{one.topic}-{one.partition}"), one.verdict, loss))
    yield from columns(rows)
    if summary.not_consistent > len(worst):
        yield Words(
            f"and {summary.not_consistent - len(worst)} more (--most, -v, or the table partitions)", indent=INDENT
        )


def _broker_lines(summary: FleetSummary, *, verbose: bool) -> Iterator[Line]:
    health = Counter(one.health for one in summary.brokers)
    if not health:
        return
    yield from section("Nodes by health")
    words = {
        "sound": "sound",
        "ends-read": "without a finding at the ends of their logs",
        "findings": "with findings",
        "damaged": "with damage",
        "unreadable": "not completely read",
    }
    order = {"unreadable": 0, "damaged": 1, "findings": 2, "ends-read": 3, "sound": 4}
    parts = [f"{health[one]} {words[one]}" for one in order if health[one]]
    yield Words(", ".join(parts), indent=INDENT)
    ailing = sorted(
        (one for one in summary.brokers if verbose or one.health not in {"sound", "ends-read"}),
        key=lambda one: (order[one.health], -one.damaged_places, -one.grave_findings, one.input),
    )
    shown = ailing if verbose else ailing[:_SHOWN_NODES]
    yield from columns(
        [
            (
                f"node {_id(one.node_id)}",
                one.health,
                counted(one.replicas, "replica"),
                byte_count(one.bytes),
                counted(one.grave_findings, "finding") if one.grave_findings else "",
                counted(one.damaged_places, "damaged place") if one.damaged_places else "",
            )
            for one in shown
        ]
    )
    if len(ailing) > len(shown):
        yield Text(f"{INDENT}and {len(ailing) - len(shown)} more (-v)")
    for disk in summary.damage_by_disk[:_SHOWN_NODES]:
        where = escape_text(f"{disk.path}/{disk.log_dir}".rstrip("/"))
        yield hanging(
            f"{counted(disk.damaged_places, 'damaged place')} in {counted(disk.replicas, 'replica')} on {where} (node {_id(disk.node_id)})"
        )


def _placement_lines(summary: FleetSummary) -> Iterator[Line]:
    lines = placement_words(summary)
    if lines:
        yield from section("Placement")
    for line in lines:
        yield hanging(line)


def _finding_lines(summary: FleetSummary, *, most: int | None) -> Iterator[Line]:
    if not summary.finding_count:
        return
    yield ""
    by_severity = ", ".join(f"{count} {severity}" for severity, count in summary.findings_by_severity.items())
    yield Text(f"Findings: {by_severity}", style=Style.HEADING)
    named = zip(summary.findings, summary.finding_ids, strict=True)
    shown = [(item, own) for item, own in named if item.severity.value != "note"][:most]
    for item, own in shown:
        yield hanging(f"{item.code} {item.severity}: {escape_text(item.statement)}")
        if most is None:
            yield Words(escape_text(own), indent=INDENT * 2, style=Style.QUIET)
    grave = sum(count for severity, count in summary.findings_by_severity.items() if severity != "note")
    if grave > len(shown):
        yield Words(f"and {grave - len(shown)} more (-v, or the table findings)", indent=INDENT)


def _problem_lines(summary: FleetSummary, *, most: int | None) -> Iterator[Line]:
    shown = summary.problems[:most]
    if shown:
        yield ""
    yield from problem_lines(shown, summary.inputs)
    if summary.problem_count > len(shown):
        yield Words(f"and {summary.problem_count - len(shown)} more (the table problems)", indent=INDENT)


def _id(node_id: int | Absent) -> str:
    return "?" if isinstance(node_id, Absent) else str(node_id)


# ---------------------------------------------------------------- two audits


@whole_screen
def write_comparison(result: Result[AuditComparison], view: View) -> Iterator[Line]:
    """Yield what is new and what is no longer there."""
    comparison, verbose = result.body, view.verbose
    most = None if verbose else _SHOWN_FINDINGS
    yield ""
    audits = f"Audit {comparison.later_audit}, compared with {comparison.earlier_audit}"
    yield Words(escape_text(audits), style=Style.QUIET)
    for heading, nodes in (("New nodes", comparison.new_nodes), ("Missing nodes", comparison.gone_nodes)):
        if nodes:
            yield Words(f"{heading}: {escape_text(listed(nodes))}", indent=INDENT)
    if comparison.changes:
        yield from section("Verdicts")
        yield from columns(
            [
                (escape_text(f"{one.topic}-{one.partition}"), _verdict(one.before), "->", _verdict(one.after))
                for one in comparison.changes[:most]
            ]
        )
    for heading, findings in changes_by_heading(comparison):
        yield from section(heading)
        for item in findings[:most]:
            words = f"{item.code} {escape_text(item.statement)}"
            yield hanging(words)
            for more in (moved_words(item), item.finding_id if verbose else ""):
                if more:
                    yield Words(escape_text(more), indent=INDENT * 2, style=Style.QUIET)
        if most is not None and len(findings) > most:
            yield Text(f"{INDENT}and {len(findings) - most} more (-v)")


def _verdict(value: str | Absent) -> str:
    return "none" if isinstance(value, Absent) else value


# ---------------------------------------------------------------- audits one after the other


@whole_screen
def write_trend(result: Result[AuditTrend], _view: View) -> Iterator[Line]:
    """Yield one line for each audit, the oldest first."""
    trend = result.body
    yield ""
    yield from columns([("audited (UTC)", "findings", "since the one before", "audit"), *map(_trend_row, trend.lines)])


def _trend_row(line: TrendLine) -> tuple[str, ...]:
    found = [f"{count:,} {name}" for name, count in line.findings_by_severity.items()]
    if line.problem_count:
        found.append(f"{line.problem_count:,} not read")
    changes = [f"{count:,} {change_words(name)}" for name, count in line.findings_by_change.items()]
    is_first = isinstance(line.compared_with, Absent)
    return (
        utc_text(line.audited_ms)[:16].replace("T", " "),
        ", ".join(found) or "none",
        "" if is_first else ", ".join(changes) or "no change",
        escape_text(line.audit_id),
    )


# ---------------------------------------------------------------- what `fleet scan` took


@whole_screen
def write_scan(result: Result[ScanResult], _view: View) -> Iterator[Line]:
    """Yield what is wrong with single logs, and what to do with the evidence."""
    grave = [one for one in result.findings if one.is_grave]
    for item in grave:
        yield hanging(f"{item.code} {item.severity}: {escape_text(item.statement)}")
    yield from problem_lines(result.problems, result.inputs)
