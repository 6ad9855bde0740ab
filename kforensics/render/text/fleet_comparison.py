"""The comparison of two audits as text."""

from collections.abc import Iterator

from rich.text import Text

from kforensics.commands.result import Result
from kforensics.damage import Absent
from kforensics.findings.fleet_summary import AuditComparison
from kforensics.render.escape import escape_text
from kforensics.render.text.screen import INDENT, Style, columns, wrapped
from kforensics.render.text.whole import whole_screen
from kforensics.render.view import View
from kforensics.words import listed

_SHOWN_FINDINGS = 20


def write(result: Result[AuditComparison], view: View) -> Iterator[str]:
    """Write what is new and what is no longer there."""
    return whole_screen(result, view, _lines(result.body, verbose=view.verbose, width=view.width))


def _lines(comparison: AuditComparison, *, verbose: bool, width: int) -> Iterator[Text | str]:
    new, resolved, changes = comparison.new_findings, comparison.gone_findings, comparison.changes
    most = None if verbose else _SHOWN_FINDINGS
    for heading, nodes in (("New nodes", comparison.new_nodes), ("Missing nodes", comparison.gone_nodes)):
        if nodes:
            yield from wrapped(f"{heading}: {escape_text(listed(nodes))}", width=width, indent=INDENT)
    if changes:
        yield ""
        yield Text("Verdicts", style=Style.HEADING)
        yield from columns(
            [
                (escape_text(f"{one.topic}-{one.partition}"), _verdict(one.before), "->", _verdict(one.after))
                for one in changes[:most]
            ]
        )
    for heading, findings in (("New", new), ("No longer found", resolved)):
        if findings:
            yield ""
            yield Text(heading, style=Style.HEADING)
        for item in findings[:most]:
            yield from wrapped(
                f"{item.code} {escape_text(item.statement)}", width=width, indent=INDENT * 2, first=INDENT
            )
        if most is not None and len(findings) > most:
            yield Text(f"{INDENT}and {len(findings) - most} more (-v)")


def _verdict(value: str | Absent) -> str:
    return "none" if isinstance(value, Absent) else value
