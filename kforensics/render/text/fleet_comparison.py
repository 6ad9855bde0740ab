"""The comparison of two audits as text."""

from collections.abc import Iterator

from rich.text import Text

from kforensics.commands.fleet_summary import AuditComparison
from kforensics.damage import Absent
from kforensics.render.escape import escape_text
from kforensics.render.text.screen import INDENT, Style, columns, counted, listed, wrapped

_SHOWN_FINDINGS = 20


def comparison_screen(comparison: AuditComparison, *, verbose: bool, width: int) -> Iterator[Text | str]:
    """Yield the new and the resolved findings, and the changed verdicts."""
    new, resolved, changes = comparison.new_findings, comparison.gone_findings, comparison.changes
    if not new and not resolved and not changes and not comparison.new_nodes and not comparison.gone_nodes:
        yield Text("Nothing changed between the two audits.", style=Style.ANSWER_GOOD)
        return
    style = Style.ANSWER_BAD if new else Style.ANSWER_WARNING
    yield from wrapped(
        f"{counted(len(new), 'new finding')}, {len(resolved)} no longer found; {counted(len(changes), 'partition')} with another verdict.",
        width=width,
        style=style,
    )
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
