"""The screen of `kforensics salvage`: the answer, where each run of records came from, what is missing, what was written."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from kforensics.commands.result import Result
from kforensics.commands.salvage import SalvageReport
from kforensics.commands.salvaging.model import SavedLabel, SavedPartition, SavedRun
from kforensics.damage import Absent
from kforensics.evidence.model import Input
from kforensics.reconcile.salvage.gaps import Gap, GapReason
from kforensics.render.escape import escape_text
from kforensics.render.text.screen import INDENT, Line, Words, columns, hanging
from kforensics.render.text.whole import problem_lines, whole_screen
from kforensics.render.view import View
from kforensics.words import byte_count, counted, form, listed

MOST_RUNS = 20
"""Runs and gaps that are shown without -v."""
MOST_FILES = 3

_REASONS = {
    GapReason.COMPACTED: "compacted: later records of the same keys superseded them",
    GapReason.RETENTION: "below the log start: deleted by retention or on request",
    GapReason.REMOTE: "not on these disks: only remote storage can hold them",
    GapReason.DAMAGED: "damaged, no sound copy",
    GapReason.NOT_READ: "beyond what kforensics reads at once, not shown to be damaged",
    GapReason.NOT_CAPTURED: "not in the capture",
    GapReason.NEVER_SEEN: "held by no input",
    GapReason.OVERLAPPING: "in batches that overlap others of the log",
    GapReason.ABORTED: "of aborted transactions",
}


@whole_screen
def write(result: Result[SalvageReport], view: View) -> Iterator[Line]:
    """Yield runs, gaps and files; -v lists all of them.

    Args:
        view: of the screen, and whether all is listed.
    """
    body, most = result.body, 1 << 30 if view.verbose else MOST_RUNS
    rows = [row for one in body.partitions for row in _rows(one, result.inputs)]
    if rows:
        yield Text()
        yield from columns(rows[:most], right=frozenset({2}))
    if len(rows) > most:
        yield Text(f"{INDENT}and {len(rows) - most:,} more (-v lists them)")
    gaps = [(one, gap) for one in body.partitions for gap in one.gaps if gap.reason is not GapReason.ABORTED]
    gaps.sort(key=lambda item: (not item[1].is_loss, item[0].partition, item[1].offsets))
    if gaps:
        yield Text()
        for one, gap in gaps[:most]:
            yield hanging(_gap_line(one, gap))
    if len(gaps) > most:
        yield Text(f"{INDENT}and {counted(len(gaps) - most, 'more gap')} (-v lists them)")
    ends = [f"{one.name}: {end.words} can't be read" for one in body.partitions for end in one.unread_ends]
    if ends:
        yield Text()
        for words in ends[:most]:
            line = f"{escape_text(words)}; their offsets are unknown"
            yield hanging(line)
    if len(ends) > most:
        yield Text(
            f"{INDENT}and {len(ends) - most:,} more {form(len(ends) - most, 'end of a log', 'ends of logs')} (-v lists them)"
        )
    yield Text()
    yield from _tail(body, view)
    yield from problem_lines(result.problems, result.inputs)


def _rows(one: SavedPartition, inputs: Sequence[Input]) -> Iterator[list[str]]:
    name = escape_text(one.name)
    if one.likely:
        name += f" (likely {escape_text(one.likely)})"
    if one.is_other_topic:
        name += f" (topic id {escape_text(str(one.topic_id))})"
    for label in one.labels:
        for run in label.runs:
            yield [name, *_run_cells(run, label, inputs)]


def _run_cells(run: SavedRun, label: SavedLabel, inputs: Sequence[Input]) -> list[str]:
    source = inputs[run.input]
    who = escape_text(source.path) if isinstance(source.broker_id, Absent) else f"broker {source.broker_id}"
    if source.kind == "snapshot-before":
        who = f"{escape_text(source.path.rstrip('/').rpartition('/')[2])} of before"
        if not isinstance(source.broker_id, Absent):
            who = f"broker {source.broker_id} before"
    first, last = run.leader_epochs
    epochs = "" if last < 0 else f", epoch {last}" if first == last else f", epochs {first} to {last}"
    file = escape_text(run.path.rpartition("/")[2].lstrip("0") or run.path)
    if source.kind == "image":
        who, file = "image", escape_text(source.path.rpartition("/")[2])
    place = f"{'…' if file[:1].isdigit() or file.startswith('.') else ''}{file} at byte {run.position:,}"
    also = "  other content for these offsets" if label.owner else ""
    return [f"{run.offsets.first:,}..{run.offsets.last:,}", counted(run.records, "record"), who + epochs, place + also]


def _gap_line(one: SavedPartition, gap: Gap) -> str:
    many = counted(gap.count, "offset")
    detail = f" ({escape_text(gap.detail)})" if gap.detail else ""
    name = escape_text(one.name)
    return f"{name} {gap.offsets.first:,}..{gap.offsets.last:,}: {many} {_REASONS[gap.reason]}{detail}"


def _tail(body: SalvageReport, view: View) -> Iterator[Line]:
    aborted = sum(one.aborted_records for one in body.partitions)
    markers = sum(one.markers for one in body.partitions)
    left = []
    if aborted:
        left.append(f"{counted(aborted, 'record')} of aborted transactions (--with-aborted)")
    if markers and body.form != "segments":
        left.append(counted(markers, "marker"))
    if left:
        yield Words(f"not taken  {' and '.join(left)}", indent=INDENT)
    files = [file for one in body.partitions for label in one.labels for file in label.files]
    every = [*files, *body.files]
    if not every:
        yield Words("no partition is written whole" if body.failure else "nothing was written")
        return
    names = [f"{file.path} {byte_count(file.bytes)}" for file in every]
    shown = listed(names, most=len(names) if view.verbose else MOST_FILES)
    yield Words(f"written    {escape_text(body.out)}: {escape_text(shown)}", indent=INDENT)
    if files:
        words = "private    keys and values are in it as they were produced; the files can be read by you alone"
        yield Words(words, indent=INDENT)
