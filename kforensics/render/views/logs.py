"""What `logs` shows: the kinds of lines with what they mean, what happened in order of time, and an account of each file."""

from collections.abc import Iterator, Sequence

from kforensics.commands.logs import LogsView, Run
from kforensics.commands.result import Result
from kforensics.damage import Absent
from kforensics.formats.log_lines.event import Weight
from kforensics.reconcile.observed.line_kinds import LineKind
from kforensics.render.blocks import GAP, Block, Column, Event, Fact, Prose, Section, Table, Timeline, Tone
from kforensics.render.events import kind_title, to_do
from kforensics.render.frame import problem_items
from kforensics.render.view import View
from kforensics.words import counted, form, listed, utc_words

MOST_RUNS = 40
"""Entries in order of time that are shown without -v."""
MOST_NAMES = 4
MOST_SHAPES = 5


def blocks(result: Result[LogsView], view: View) -> Iterator[Block]:
    """Yield kinds, times and files; of a single line its fields."""
    body = result.body
    if body.is_of_a_line:
        yield from _line(body)
        return
    yield from _kinds(body, result.answer.now, view)
    yield from _times(result, view)
    yield from _files(result, view)
    yield from problem_items(result.problems, result.inputs, view)


def _line(body: LogsView) -> Iterator[Block]:
    message = body.message
    if message is None:
        return
    yield Fact("kind", message.row.section.kind.replace("-", " "), width=18)
    yield Fact("Kafka", message.row.versions, width=18)
    if not isinstance(message.topic_partition, Absent):
        yield Fact("partition", str(message.topic_partition), width=18)
    if not isinstance(message.broker_id, Absent):
        yield Fact("node", str(message.broker_id), width=18)
    for name, value in message.fields.items():
        if isinstance(value, bool):
            continue  # of the table, and not of the line
        shown = listed(list(map(str, value))) if isinstance(value, tuple) else str(value)
        yield Fact(name.replace("_", " "), shown, width=18)


def _kinds(body: LogsView, now: Sequence[str], view: View) -> Iterator[Block]:
    for kind in body.kinds:
        if kind.weight is not Weight.HARMLESS:
            yield GAP
            yield from _kind(kind, now)
    harmless = [one for one in body.kinds if one.weight is Weight.HARMLESS]
    if not harmless:
        return
    yield GAP
    yield Section(title="Harmless", aside=counted(sum(one.lines for one in harmless), "line"), level=3)
    if view.verbose or view.page:
        for one in harmless:
            yield Fact(f"{one.lines:,}", f"{one.section.kind.replace('-', ' ')}: {one.section.meaning}", width=9)
        return
    names = [f"{one.section.kind.replace('-', ' ')} ({one.lines:,})" for one in harmless]
    yield Prose(f"{listed(names, most=MOST_NAMES * 2)}.", depth=1)


def _kind(kind: LineKind, now: Sequence[str]) -> Iterator[Block]:
    mark = f"{kind.weight.value}, {counted(kind.lines, 'line')}"
    yield Section(title=kind_title(kind), aside=mark, level=3)
    yield Prose(kind.meaning, depth=1)
    if kind.causes:
        yield Fact("because", listed([one for one, _ in kind.causes.most_common()], most=2))
    if steps := to_do(kind, now):
        yield Fact("what to do", " ".join(steps))
    if kind.nodes:
        yield Fact("nodes", listed(list(map(str, sorted(kind.nodes))), most=MOST_NAMES * 2))
    if kind.partitions:
        yield Fact("partitions", listed([one for one, _ in kind.partitions.most_common()], most=MOST_NAMES))
    if isinstance(kind.first_ms, int) and isinstance(kind.last_ms, int):
        until = f" to {utc_words(kind.last_ms)}" if kind.last_ms != kind.first_ms else ""
        yield Fact("when", f"{utc_words(kind.first_ms)}{until}")


def _times(result: Result[LogsView], view: View) -> Iterator[Block]:
    runs = result.body.runs
    if not runs:
        return
    yield GAP
    yield Section(title="In order of time")
    most = view.most(MOST_RUNS)
    yield Timeline(name="Lines", events=[_event(one, result) for one in runs[:most]])
    if len(runs) > most:
        yield Prose(f"{len(runs) - most:,} more (-v lists them)", Tone.QUIET, depth=1)


def _event(run: Run, result: Result[LogsView]) -> Event:
    item, event, inputs = run.first, run.first.event, result.inputs
    who = f"{result.body.roles.get(item.node_id, 'node')} {item.node_id}: " if isinstance(item.node_id, int) else ""
    of = f" of {event.topic_partition}" if not isinstance(event.topic_partition, Absent) else ""
    times = f", {counted(run.lines, 'line')}" if run.lines > 1 else ""
    cause = event.fields.get("cause") or event.fields.get("reason")
    place = f"{inputs[item.file.input].path if item.file.path == '.' else item.file.path}:{event.line}"
    return Event(
        time_ms=item.time_ms,
        words=f"{who}{run.section.kind.replace('-', ' ')}{of}{times}" + (f": {cause}" if cause else ""),
        source=place,
        is_strong=run.section.weight is Weight.CAUSE,
    )


def _files(result: Result[LogsView], view: View) -> Iterator[Block]:
    versions = dict(result.body.versions)
    yield GAP
    yield Section(title="Files")
    yield Table(
        name="files",
        columns=(
            Column("file", is_shortened=True),
            Column("node"),
            Column("version"),
            *(Column(title, is_number=True) for title in ("lines", "known")),
            Column("from"),
            Column("to"),
        ),
        rows=(
            (
                result.inputs[one.input].path if one.path == "." else one.path,
                str(one.node_id) if isinstance(one.node_id, int) else "-",
                versions.get(one.node_id, "-") if isinstance(one.node_id, int) else "-",
                one.census.lines,
                sum(one.counts.values()),
                _moment(one.first_time_ms),
                _moment(one.last_time_ms),
            )
            for one in result.body.files
        ),
    )
    if not_searched := sum(one.not_searched for one in result.body.files):
        yield Prose(
            f"{counted(not_searched, 'line')} outside of the time asked about {form(not_searched, 'was', 'were')} counted and not searched.",
            Tone.QUIET,
            depth=1,
        )
    if result.body.outside:
        yield Prose(
            f"Not read, since all lines are outside of the time asked about: {listed(result.body.outside, most=MOST_NAMES)}.",
            Tone.QUIET,
            depth=1,
        )
    if view.verbose:
        for one in result.body.files:
            for shape, count in [*one.unknown.items()][:MOST_SHAPES]:
                yield Fact(f"{count:,}", f"not known in {one.path}: {shape}", width=9)


def _moment(time_ms: int | Absent) -> str:
    return utc_words(time_ms).removesuffix(" UTC") if isinstance(time_ms, int) else "-"
