"""The result of `fleet scan` as text."""

from collections.abc import Iterator

from kforensics.commands.result import Result
from kforensics.findings.fleet_summary import ScanResult
from kforensics.render.escape import escape_text
from kforensics.render.text.screen import Line, hanging
from kforensics.render.text.whole import problem_lines, whole_screen
from kforensics.render.view import View


@whole_screen
def write(result: Result[ScanResult], _view: View) -> Iterator[Line]:
    """Yield what is wrong with single logs, and what to do with the evidence."""
    grave = [one for one in result.findings if one.is_grave]
    for item in grave:
        yield hanging(f"{item.code} {item.severity}: {escape_text(item.statement)}")
    yield from problem_lines(result.problems, result.inputs)
