"""What the logs of brokers say: every known line by its kind, whether it is harmless, a symptom or a cause, and all nodes on one clock."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from kforensics.ask.model import Ask
from kforensics.case.broker_logs import logged_evidence, logs_outside, read_own_logs, roles_of, window_of
from kforensics.case.processes import default_jobs
from kforensics.case.wanted import is_wanted
from kforensics.commands.result import Conclusion, Result
from kforensics.damage import Absent
from kforensics.errors import UsageError
from kforensics.evidence.broker_logs import LogFile
from kforensics.evidence.discovery.inputs import find_inputs, why_not_listed
from kforensics.evidence.model import full_path
from kforensics.findings.answers.model import Answer, State
from kforensics.formats.log_lines.below import cause_in, exception_in, is_of_a_stack, with_cause
from kforensics.formats.log_lines.event import Section, Weight
from kforensics.formats.log_lines.table import Message, advice_of, rows
from kforensics.formats.log_lines.unwrap import find_message
from kforensics.reconcile.observed.clocks import Clock, parse_zone
from kforensics.reconcile.observed.line_kinds import LineKind, last_ms_of, line_kinds
from kforensics.reconcile.observed.logged_events import LoggedEvent
from kforensics.reconcile.observed.node_failures import (
    OF_FAILURES,
    NodeFailure,
    failure_steps,
    failure_words,
    node_failures,
)
from kforensics.words import counted, form, listed, utc_words

_MOST_KINDS = 3
_MOST_STEPS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Lines of one kind by one node that follow each other."""

    first: LoggedEvent
    until_ms: int | Absent
    """The time of the last line."""
    lines: int
    section: Section


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsView:
    """All that the lines say."""

    is_of_a_line: bool = False
    """Whether one line was asked for, and no files."""
    asked_line: str = ""
    message: Message | None = None
    """What the one line says that was asked for; None where it is not known."""
    files: tuple[LogFile, ...] = ()
    clocks: tuple[Clock, ...] = ()
    kinds: tuple[LineKind, ...] = ()
    """Causes first, then symptoms; of each those that conclusions rest on, the most frequent first."""
    runs: tuple[Run, ...] = ()
    """In the order of time, without what is harmless."""
    failures: tuple[NodeFailure, ...] = ()
    versions: tuple[tuple[int, str], ...] = ()
    roles: Mapping[int, str] = field(default_factory=dict)
    """What each node of which a start is among the lines says of itself: `broker`, also of one with both roles and of one with ZooKeeper, or `controller`."""
    known: int = 0
    """The lines that are known, of the time that is asked about."""
    outside: tuple[str, ...] = ()
    """The files that were not read, since all their lines are outside of the time that is asked about."""

    @property
    def graver(self) -> tuple[LineKind, ...]:
        """The kinds that are not harmless."""
        return tuple(one for one in self.kinds if one.weight is not Weight.HARMLESS)


def run(request: Ask) -> Result[LogsView]:
    """Say what log lines mean: of files, or of the one line that is given."""
    if request.line is not None:
        return _of_line(request.line)
    if not request.paths:
        raise UsageError("give log files, directories of them, or a line with --line")
    inputs = find_inputs(
        request.paths,
        with_server_logs=True,
        why_not=why_not_listed,
        keep_going=request.keep_going,
        cluster=request.cluster,
    )
    window = window_of(request.since_ms, request.until_ms)
    outside = logs_outside(inputs, window)
    files, problems = read_own_logs(
        inputs,
        jobs=request.jobs or default_jobs(),
        unneeded=outside,
        keeps_told=True,
        keeps_unowned=True,
        window=window,
    )
    zone = parse_zone(request.log_timezone) if request.log_timezone else None
    evidence = logged_evidence(files, (), problems=problems, zone=zone)
    events = [item for item in evidence.events if _is_in_view(item, request)]
    others = sum(1 + item.event.repeats for item in evidence.events) - sum(1 + item.event.repeats for item in events)
    view = LogsView(
        known=sum(sum(file.counts.values()) for file in files) - others,
        files=files,
        clocks=evidence.clocks,
        kinds=line_kinds(events),
        runs=tuple(_runs(events)),
        failures=node_failures(item for item in events if isinstance(item.node_id, int) or len(item.file.nodes) < 2),
        roles=roles_of(evidence.events),
        versions=tuple((node, str(version)) for node, version in sorted(evidence.versions.items())),
        outside=tuple(full_path(inputs.described, place.input, place.name) for place in outside),
    )
    return Result(
        command="logs",
        inputs=inputs.described,
        body=view,
        concluded=Conclusion(answer=_answer(view), problems=(*inputs.problems, *evidence.problems)),
    )


def _is_in_view(item: LoggedEvent, request: Ask) -> bool:
    partition = item.event.topic_partition
    is_limited = bool(request.topics or request.partitions)
    if is_limited and (isinstance(partition, Absent) or not is_wanted(partition, request)):
        return False
    if not isinstance(item.time_ms, int):
        return True
    is_late = request.since_ms is None or item.time_ms >= request.since_ms
    return is_late and (request.until_ms is None or item.time_ms < request.until_ms)


def _of_line(line: str) -> Result[LogsView]:
    text = line.encode("utf-8", "replace").replace(b"\\n", b"\n")
    found = find_message(text)
    if found is None:
        is_of_a_trace = is_of_a_stack(text) or exception_in(text) is not None
        words = _OF_A_TRACE if is_of_a_trace else _UNKNOWN_LINE if text.strip() else "The line is empty."
        message, answer = None, Answer(state=State.UNKNOWN, headline=words)
    else:
        message, section = found.message, found.message.row.section
        if "below" in section.flags and (cause := cause_in(text.partition(b"\n")[2])) is not None:
            fields, partition = with_cause(message.fields, message.topic_partition, cause)
            message = message._replace(fields=fields, topic_partition=partition)
        now = tuple(filter(None, [advice_of(message.fields, message.row.number)]))
        headline = f"{_WORDS[section.weight]}: {section.meaning}"
        answer = Answer(state=_STATES[section.weight], headline=headline, now=now)
    return Result(
        command="logs",
        body=LogsView(is_of_a_line=True, asked_line=line, message=message),
        concluded=Conclusion(answer=answer),
    )


_UNKNOWN_LINE = "This line is not among the lines of Kafka 0.9 to 4.4 that are known, and nothing is said of it: it may be of a client or of another program."
_OF_A_TRACE = (
    "This is of a stack trace, and not among the exceptions that are known: give the line above it, or the whole trace."
)
_STATES = {Weight.CAUSE: State.CAUSES, Weight.SYMPTOM: State.SYMPTOMS, Weight.HARMLESS: State.HARMLESS}
_WORDS = {Weight.CAUSE: "A cause", Weight.SYMPTOM: "A symptom", Weight.HARMLESS: "Harmless"}


def _runs(events: Sequence[LoggedEvent]) -> Iterator[Run]:
    sections = [row.section for row in rows()]
    is_telling = [section.weight is not Weight.HARMLESS for section in sections]
    telling = (item for item in events if is_telling[item.event.row])
    for (_, section), group in groupby(telling, lambda item: (item.node_id, sections[item.event.row])):
        items = [*group]
        lines = sum(1 + item.event.repeats for item in items)
        until = max((last_ms_of(item) for item in items if isinstance(item.time_ms, int)), default=Absent.UNKNOWN)
        yield Run(first=items[0], until_ms=until, lines=lines, section=section)


def _answer(view: LogsView) -> Answer:
    known = view.known
    silent = [file for file in view.files if not file.counts]
    if not view.kinds:
        words = "No line of Kafka is known among them" if view.files else "No log file of a broker is among the inputs"
        return Answer(state=State.UNKNOWN, headline=f"{words}.")
    graver = view.graver
    files = counted(len(view.files) - len(silent), "file")
    if not graver:
        all_of = f"{'The' if known == 1 else 'All'} {counted(known, 'known line')} of {files}"
        when = f" (of {period})" if (period := _period(view)) else ""
        return Answer(state=State.HARMLESS, headline=f"{all_of} {form(known, 'is', 'are')} harmless{when}.")
    worst = [one for one in graver if one.weight is graver[0].weight]
    state = State.CAUSES if view.failures else _STATES[worst[0].weight]
    first = f"{failure_words(view.failures)} " if view.failures else ""
    period = _period(view)
    headline = f"{first}{counted(known, 'known line').capitalize()} of {files} {form(known, 'names', 'name')} {_kinds_named(worst)}."
    return Answer(
        state=state,
        headline=f"{headline} They are of {period}." if period else headline,
        now=failure_steps(view.failures)
        or tuple(dict.fromkeys(step for kind in worst for step in kind.advice))[:_MOST_STEPS],
    )


def beside_failures(view: LogsView) -> str:
    """Return the sentence on the gravest lines; beside failed starts, ends and disks on other causes alone. Empty where there are none."""
    apart = [one for one in view.graver if one.weight is Weight.CAUSE and one.section.kind not in OF_FAILURES]
    graver = apart if view.failures else view.graver
    worst = [one for one in graver if one.weight is graver[0].weight]
    worst = [one for one in worst if "told" not in one.section.flags] or worst
    if worst:
        return f"Log lines name {_kinds_named(worst)}."
    return "" if view.graver or not view.kinds else _answer(view).headline


def _kinds_named(kinds: Sequence[LineKind]) -> str:
    """Return kinds of one weight: `a cause: registration refused (2 lines)`."""
    weight = kinds[0].weight.value
    named = [f"{one.section.words}{f' ({one.lines:,} lines)' if one.lines > 1 else ''}" for one in kinds]
    return f"{form(len(kinds), 'a ' + weight, weight + 's')}: {listed(named, most=_MOST_KINDS)}"


def _period(view: LogsView) -> str:
    times = [one for kind in view.kinds for one in (kind.first_ms, kind.last_ms) if isinstance(one, int)]
    if not times:
        return ""
    local = (
        "" if all(clock.is_shown and clock.source != "assumed" for clock in view.clocks) else ", as far as they are UTC"
    )
    until = f" to {utc_words(max(times))}" if max(times) > min(times) else ""
    return f"{utc_words(min(times))}{until}{local}"
