"""Audits one after the other as text."""

from collections.abc import Iterator

from kforensics.commands.result import Result
from kforensics.damage import Absent
from kforensics.findings.answers.fleet import change_words
from kforensics.findings.fleet_summary import AuditTrend, TrendLine
from kforensics.render.escape import escape_text
from kforensics.render.text.screen import Line, columns
from kforensics.render.text.whole import whole_screen
from kforensics.render.view import View
from kforensics.words import utc_text


@whole_screen
def write(result: Result[AuditTrend], _view: View) -> Iterator[Line]:
    """Yield one line for each audit, the oldest first."""
    trend = result.body
    yield ""
    yield from columns([("audited (UTC)", "findings", "since the one before", "audit"), *map(_row, trend.lines)])


def _row(line: TrendLine) -> tuple[str, ...]:
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
