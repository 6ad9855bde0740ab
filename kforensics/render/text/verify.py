"""The screen of `verify`: the verdict, the advice, then the evidence."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from kforensics.commands.result import Result
from kforensics.commands.verify import VerifyResult
from kforensics.damage import Absent, DamageCause, Gravity
from kforensics.evidence.checks.context import FileReport, FileState
from kforensics.evidence.model import Input
from kforensics.findings.model import Finding, Severity
from kforensics.findings.rules.files import who
from kforensics.reconcile.replicas.holders import IntactReplica, IntactReplicas
from kforensics.render.escape import escape_text
from kforensics.render.text.screen import Line, Style, Words
from kforensics.render.text.whole import problem_lines, whole_screen
from kforensics.render.view import View
from kforensics.units import OffsetRange
from kforensics.words import counted, form

MOST_FILES = 20
"""The most damaged files that the screen shows in full."""

MOST_PLACES = 5
"""The most damaged places of one file that the screen shows in full."""


@whole_screen
def write(result: Result[VerifyResult], _view: View) -> Iterator[Line]:
    """Yield what to do, then the evidence."""
    verification, inputs, findings = result.body.verification, result.inputs, result.findings
    damaged = [report for report in verification.files if report.state is FileState.DAMAGED]
    for report in damaged[:MOST_FILES]:
        yield ""
        yield from _file_lines(report, result.body.intact, inputs)
    if len(damaged) > MOST_FILES:
        yield ""
        yield f"… and {counted(len(damaged) - MOST_FILES, 'more damaged file')} in --format json."
    histories = [one for one in findings if one.code == "KF113"]
    for one in histories:
        yield ""
        yield Words(f"{escape_text(one.statement)}. {one.meaning}")
    yield from _notes(findings)
    if verification.problems:
        yield ""
    yield from problem_lines(verification.problems[:MOST_FILES], inputs)
    if len(verification.problems) > MOST_FILES:
        yield f"… and {len(verification.problems) - MOST_FILES} more in --format json."


def _file_lines(report: FileReport, intact: IntactReplicas, inputs: Sequence[Input]) -> Iterator[Line]:
    owner = intact.owner(report.input, report.path)
    yield Text(f"{escape_text(report.path)}  {escape_text(who(inputs[report.input]))}", style=Style.HEADING)
    places = [place for place in report.damage if place.gravity is Gravity.DAMAGE]
    for place in places[:MOST_PLACES]:
        lost = place.offsets_lost
        offsets = f", offsets {lost.first}..{lost.last}" if isinstance(lost, OffsetRange) else ""
        yield f"  byte {place.span.position}, {place.span.length} bytes{offsets}"
        yield _field("expected", escape_text(place.expected))
        yield _field("found", escape_text(place.found))
        if isinstance(place.cause, DamageCause):
            flip = place.cause.flip
            where = "" if flip is None else f"; byte {flip.position}, bit {flip.bit}"
            yield _field("cause", f"{escape_text(place.cause.detail)}{where}")
        if not isinstance(place.next_good, Absent):
            yield _field("next good", f"offset {place.next_good[0]} at byte {place.next_good[1]}")
        holders = () if owner is None else intact.holders(owner, place)
        if holders:
            yield _field("intact on", ", ".join(_holder(holder) for holder in holders))
        elif isinstance(lost, OffsetRange) and owner is not None:
            yield _field("intact on", "none of the replicas among the inputs")
    if len(places) > MOST_PLACES:
        yield f"  … and {counted(len(places) - MOST_PLACES, 'more place')}"


def _holder(holder: IntactReplica) -> str:
    path = escape_text(holder.path)
    return path if isinstance(holder.broker_id, Absent) else f"broker {holder.broker_id} ({path})"


def _field(name: str, words: str) -> Words:
    return Words(words, indent=" " * 14, first=f"  {name:<12}")


def _notes(findings: Sequence[Finding]) -> Iterator[Line]:
    unfinished = sum(1 for one in findings if one.code == "KF110")
    notes = [one.statement for one in findings if one.severity is Severity.NOTE and one.code != "KF110"]
    if unfinished:
        notes.insert(
            0,
            f"{counted(unfinished, 'log')} {form(unfinished, 'has', 'have')} an unfinished end, as a running or killed broker leaves it: recovery truncates it",
        )
    if notes:
        yield ""
        for note in notes:
            yield Words(f"Normal: {escape_text(note)}.")
