"""The comparison of two audits as text."""

from collections.abc import Iterator

from rich.text import Text

from kforensics.commands.result import Result
from kforensics.damage import Absent
from kforensics.findings.fleet_summary import AuditComparison
from kforensics.render.escape import escape_text
from kforensics.render.fleet_words import changes_by_heading, moved_words
from kforensics.render.text.screen import INDENT, Line, Style, Words, columns, hanging, section
from kforensics.render.text.whole import whole_screen
from kforensics.render.view import View
from kforensics.words import listed

_SHOWN_FINDINGS = 20


@whole_screen
def write(result: Result[AuditComparison], view: View) -> Iterator[Line]:
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
