"""What `salvage` shows: where each run of records came from, what is missing, what was written."""

from collections.abc import Iterator, Sequence

from kforensics.commands.result import Result
from kforensics.commands.salvage import SalvageReport
from kforensics.commands.salvaging.model import SavedLabel, SavedPartition, SavedRun
from kforensics.damage import Absent
from kforensics.evidence.model import Input
from kforensics.reconcile.salvage import Gap, GapReason
from kforensics.render.blocks import GAP, Block, Column, Prose, Table, Value, item
from kforensics.render.frame import problem_items, who
from kforensics.render.view import View
from kforensics.words import byte_count, counted, form, listed

MOST_RUNS = 20
"""Runs and gaps that are shown without -v."""
MOST_FILES = 3

_REASONS = {
    GapReason.COMPACTED: "compacted: later records of the same keys superseded them",
    GapReason.RETENTION: "below the log start: deleted by retention or on request",
    GapReason.REMOTE: "not on these disks: only remote storage can hold them",
    GapReason.IN_REMOTE: "in remote storage, by finished copies on record",
    GapReason.NEITHER: "in no live log here, and in no finished copy in remote storage",
    GapReason.DAMAGED: "damaged, no sound copy",
    GapReason.NOT_READ: "beyond what kforensics reads at once, not shown to be damaged",
    GapReason.NOT_CAPTURED: "not in the capture",
    GapReason.NEVER_SEEN: "held by no input",
    GapReason.OVERLAPPING: "in batches that overlap others of the log",
    GapReason.ABORTED: "of aborted transactions",
}


_RUNS = (Column("Partition"), Column("Offsets"), Column("Records", is_number=True), Column("From"), Column("Place"))


def blocks(result: Result[SalvageReport], view: View) -> Iterator[Block]:
    """Yield runs, gaps and files; -v lists all of them."""
    body, most = result.body, view.most(MOST_RUNS)
    runs = [row for one in body.partitions for row in _runs(one, result.inputs)]
    if runs:
        yield GAP
        yield Table(name="Where records came from", columns=_RUNS, rows=runs[:most], has_heading=False)
    if len(runs) > most:
        yield Prose(f"and {len(runs) - most:,} more (-v lists them)", depth=1)
    gaps = [(one, gap) for one in body.partitions for gap in one.gaps if gap.reason is not GapReason.ABORTED]
    gaps.sort(key=lambda each: (not each[1].is_loss, each[0].partition, each[1].offsets))
    if gaps:
        yield GAP
    yield from (item(_gap_line(one, gap)) for one, gap in gaps[:most])
    if len(gaps) > most:
        yield Prose(f"and {counted(len(gaps) - most, 'more gap')} (-v lists them)", depth=1)
    ends = [f"{one.name}: {end.words} can't be read" for one in body.partitions for end in one.unread_ends]
    if ends:
        yield GAP
    yield from (item(f"{words}; their offsets are unknown") for words in ends[:most])
    if len(ends) > most:
        rest = len(ends) - most
        yield Prose(f"and {rest:,} more {form(rest, 'end of a log', 'ends of logs')} (-v lists them)", depth=1)
    yield GAP
    yield from _tail(body, view)
    yield from problem_items(result.problems, result.inputs, view)


def _runs(one: SavedPartition, inputs: Sequence[Input]) -> Iterator[Sequence[Value]]:
    name = one.name
    if one.likely:
        name += f" (likely {one.likely})"
    if one.is_other_topic:
        name += f" (topic id {one.topic_id!s})"
    for label in one.labels:
        for run in label.runs:
            yield [name, *_run_cells(run, label, inputs)]


def _run_cells(run: SavedRun, label: SavedLabel, inputs: Sequence[Input]) -> list[str]:
    source = inputs[run.input]
    origin = who(source)
    if source.kind == "snapshot-before":
        origin = f"{source.path.rstrip('/').rpartition('/')[2]} of before"
        if not isinstance(source.broker_id, Absent):
            origin = f"broker {source.broker_id} before"
    first, last = run.leader_epochs
    epochs = "" if last < 0 else f", epoch {last}" if first == last else f", epochs {first} to {last}"
    file = run.path.rpartition("/")[2].lstrip("0") or run.path
    if source.kind == "image":
        origin, file = "image", source.path.rpartition("/")[2]
    place = f"{'…' if file[:1].isdigit() or file.startswith('.') else ''}{file} at byte {run.position:,}"
    also = "  other content for these offsets" if label.owner else ""
    return [
        f"{run.offsets.first:,}..{run.offsets.last:,}",
        counted(run.records, "record"),
        origin + epochs,
        place + also,
    ]


def _gap_line(one: SavedPartition, gap: Gap) -> str:
    many = counted(gap.count, "offset")
    detail = f" ({gap.detail})" if gap.detail else ""
    name = one.name
    return f"{name} {gap.offsets.first:,}..{gap.offsets.last:,}: {many} {_REASONS[gap.reason]}{detail}"


def _tail(body: SalvageReport, view: View) -> Iterator[Block]:
    aborted = sum(one.aborted_records for one in body.partitions)
    markers = sum(one.markers for one in body.partitions)
    left = []
    if aborted:
        left.append(f"{counted(aborted, 'record')} of aborted transactions (--with-aborted)")
    if markers and body.form != "segments":
        left.append(counted(markers, "marker"))
    if left:
        yield Prose(f"not taken  {' and '.join(left)}", depth=1)
    files = [file for one in body.partitions for label in one.labels for file in label.files]
    every = [*files, *body.files]
    if body.is_plan:
        yield Prose("a plan: nothing was written")
        return
    if not every:
        yield Prose("no partition is written whole" if body.failure else "nothing was written")
        return
    names = [f"{file.path} {byte_count(file.bytes)}" for file in every]
    shown = listed(names, most=len(names) if view.verbose else MOST_FILES)
    yield Prose(f"written    {body.out}: {shown}", depth=1)
    if files:
        words = "private    keys and values are in it as they were produced; the files can be read by you alone"
        yield Prose(words, depth=1)
