"""Runs `metadata`: reads every metadata log among the inputs, compares them, and tells the history of the newest."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from kforensics.cli.exits import ExitCode, exit_code_of
from kforensics.cli.options import OutputFormat
from kforensics.cli.output import write_result
from kforensics.commands.processes import default_jobs
from kforensics.damage import Absent, Damage, Gravity
from kforensics.errors import EvidenceError, UsageError
from kforensics.evidence.discovery.inputs import Inputs, find_inputs
from kforensics.evidence.event_kinds import EventKind
from kforensics.evidence.metadata.compare import LogComparison, compare_metadata_logs
from kforensics.evidence.metadata.events import EventSelection, MetadataEvent, change_events
from kforensics.evidence.metadata.log import MetadataHistory, find_metadata_logs, newest_log, read_metadata_log
from kforensics.evidence.metadata.state import MetadataState
from kforensics.evidence.model import Problem
from kforensics.render.escape import escape_text
from kforensics.render.json.document import document_pieces, json_line
from kforensics.render.json.metadata import plain_comparison, plain_event, plain_state
from kforensics.render.text.metadata import comparison_lines, state_lines
from kforensics.render.text.metadata_history import history_pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataQuestion:
    """Whose history is asked for; None stands for everything."""

    topic: str | None = None
    partition: int | None = None
    broker: int | None = None
    at: int | None = None
    verbose: bool = False

    def has(self, event: MetadataEvent) -> bool:
        """Whether an event belongs to the answer."""
        if self.at is not None and event.when.offset > self.at:
            return False
        if self.topic is not None:
            return event.topic == self.topic and (
                self.partition is None or isinstance(event.partition, Absent) or event.partition == self.partition
            )
        return self.broker is None or self.broker in brokers_of(event)


def brokers_of(event: MetadataEvent) -> set[int]:
    """The brokers that an event concerns."""
    detail = event.detail
    names = ("leader", "previous_leader")
    found = {one for name in names if isinstance(one := detail.get(name), int)}
    found |= {one for name in ("added", "removed") for one in detail.get(name, ())}
    if event.kind is not EventKind.CONTROLLER_CHANGE and isinstance(event.broker_id, int):
        found.add(event.broker_id)
    return found


def run_metadata(
    paths: Sequence[Path], question: MetadataQuestion, *, output_format: OutputFormat, out: Path | None
) -> ExitCode:
    """Write the answer."""
    inputs = find_inputs(paths)
    histories = _read_logs(inputs)
    comparison = compare_metadata_logs(histories)
    if comparison is None:
        raise EvidenceError(
            str(paths[0]) if len(paths) == 1 else "the inputs",
            "no KRaft metadata log is here",
            ("a cluster that keeps its metadata in ZooKeeper has none", "the log stands in another log directory"),
        )
    newest = comparison.newest
    _check_question(question, newest)
    problems = [*inputs.problems, *(problem for one in histories for problem in _problems(one))]
    code = exit_code_of((), problems)
    events = change_events(
        newest, topic=question.topic, partition=question.partition, up_to=question.at, wants=question.has
    )
    state = newest.at(question.at) if question.at is not None else newest.latest()
    match output_format:
        case OutputFormat.JSON:
            text = document_pieces(
                "metadata",
                inputs=inputs.described,
                findings=(),
                problems=problems,
                exit_code=code,
                streams={"events": (json_line(plain_event(event)).rstrip() for event in events)},
                **plain_comparison(comparison),
                state=_selected(plain_state(state), question),
            )
        case OutputFormat.JSONL:
            text = (json_line(plain_event(event)) for event in events)
        case _:
            text = _screen(comparison, question, events, state)
    write_result(text, out)
    _report(inputs, problems)
    return code


def _read_logs(inputs: Inputs) -> list[MetadataHistory]:
    """All metadata logs; one tells the partitions, the others are only compared with it and let theirs go."""
    histories: list[MetadataHistory] = []
    for files in find_metadata_logs(inputs):
        histories.append(read_metadata_log(files))
        newest = newest_log(histories)
        histories = [one if one is newest else one.without_partitions() for one in histories]
    return histories


def _check_question(question: MetadataQuestion, history: MetadataHistory) -> None:
    if question.topic is not None and not history.topics_named(question.topic):
        raise UsageError(f"the metadata log knows no topic {question.topic}")
    if question.topic is not None and question.partition is not None:
        if not history.partition_states(question.topic, question.partition):
            raise UsageError(f"topic {question.topic} has no partition {question.partition}")
    elif question.broker is not None and question.broker not in history.brokers:
        raise UsageError(f"the metadata log knows no broker {question.broker}")
    if question.at is not None and question.at >= history.end_offset:
        raise UsageError(f"the metadata log ends at offset {history.end_offset - 1}, before {question.at}")


def _screen(
    comparison: LogComparison, question: MetadataQuestion, events: EventSelection, state: MetadataState
) -> Iterator[str]:
    yield _text(comparison_lines(comparison)) + "\n"
    asked = question.topic is not None or question.broker is not None
    if question.broker is None or question.at is not None:
        yield _text(state_lines(state, topic=question.topic, partition=question.partition))
    if question.at is not None and not asked:
        return
    pieces = (piece for piece in history_pieces(events, verbose=question.verbose, jobs=default_jobs()) if piece)
    if (first := next(pieces, None)) is not None:
        yield "\n" + first
        yield from pieces


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _selected(plain: dict[str, Any], question: MetadataQuestion) -> dict[str, Any]:
    """The state, down to the topic and partition that were asked for."""
    if question.topic is None:
        return plain
    topics = [topic for topic in plain["topics"] if topic["name"] == question.topic]
    if question.partition is not None:
        for topic in topics:
            topic["partitions"] = [one for one in topic["partitions"] if one["partition"] == question.partition]
    return {**plain, "topics": topics}


def _problems(history: MetadataHistory) -> Iterator[Problem]:
    yield from history.problems
    for path, damage in history.damage:
        if damage.gravity is Gravity.DAMAGE:
            yield Problem(input=history.input, path=path, position=damage.span.position, message=_words(damage))


def _words(damage: Damage) -> str:
    return f"{damage.kind.value} at byte {damage.span.position}: expected {damage.expected}, found {damage.found}"


def _report(inputs: Inputs, problems: Sequence[Problem]) -> None:
    for problem in problems:
        where = f"{inputs.found[problem.input].described.path}/{problem.path}"
        typer.echo(f"kforensics: {escape_text(where)}: {escape_text(problem.message)}", err=True)
