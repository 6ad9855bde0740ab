"""The first answer to an incident: what explain, diff, predict, groups and transactions say of the inputs, folded into one."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from kforensics.ask.model import Ask
from kforensics.ask.questions import options_of
from kforensics.case.cluster import cluster_of, unread_offsets
from kforensics.case.model import Case, now_of, places_of, quick_depth
from kforensics.case.opening import open_case
from kforensics.case.wanted import is_wanted
from kforensics.commands import explain
from kforensics.commands.cleaning import standing_cleaners, with_cleaners
from kforensics.commands.explanation import Explanation
from kforensics.commands.graver import no_calmer_than_order
from kforensics.commands.outside import check_new_file
from kforensics.commands.result import Conclusion, Result
from kforensics.errors import EvidenceError, UsageError
from kforensics.evidence.model import Problem
from kforensics.findings.answers.contents import NODE_NAMES
from kforensics.findings.answers.graver import Asked, with_findings
from kforensics.findings.answers.model import Answer, State, silence_words, unusable_words
from kforensics.findings.answers.triage import (
    TopicRow,
    Unasked,
    set_aside_owners,
    steps_script,
    topic_rows,
    triage_answer,
)
from kforensics.findings.concern import JudgedPartition
from kforensics.findings.model import by_gravity
from kforensics.findings.rules.causes import RootCause, root_cause
from kforensics.findings.rules.losses import TOLD_BESIDE
from kforensics.findings.rules.replicas import LEFT_BYTES
from kforensics.reconcile.logs.predicted_load import Election, PredictedStart, election_file
from kforensics.reconcile.observed.line_kinds import LineKind, told_causes
from kforensics.source.store import store_of
from kforensics.units import METADATA_TOPICS, OFFSETS_TOPIC, TRANSACTIONS_TOPIC, Depth
from kforensics.words import byte_count

MOST_BYTES = 1 << 30
"""Bytes of logs up to which transactions are asked for where only the ends of logs are to be read: they are found by reading all of each log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Triage:
    """The answers of several commands to the same inputs, and what the first screen shows of them."""

    explained: Explanation
    cause: RootCause | None
    """What is behind most of the lost records."""
    topics: tuple[TopicRow, ...]
    """The topics of which records are lost, may be, or are at risk."""
    partitions: int
    """The number of partitions that were looked at."""
    starts: tuple[tuple[int, PredictedStart], ...]
    """The last start of each node that was predicted, with the number of its input."""
    asked: tuple[Asked, ...]
    """Each question with its answer."""
    unasked: tuple[Unasked, ...]
    """The questions that these inputs can't answer, with the reason."""
    lines: tuple[LineKind, ...]
    """What lines of broker logs mean that are not harmless, causes first; beside partition directories only causes on which no conclusion rests."""
    depth: Depth


def run(ask: Ask) -> Result[Triage]:
    """Answer what was lost, what is at risk, where it is saved, and what to do first."""
    if ask.steps is not None:
        check_new_file(ask.steps, ask.inputs)
    case = open_case(ask, again="triage")
    ask = replace(ask, paths=case.ask.paths, before=case.ask.before)
    case = replace(case.asked(_as(ask, "explain")), is_weighed=True)
    if ask.depth is None:
        ask = replace(ask, depth=quick_depth(case))
        case = case.asking(depth=ask.depth)
    explained = explain.run(case.ask, case=case, beside=now_of(case).asked(_as(ask, "diff")))
    others = list(_others(ask, case, explained.body))
    results = [explained, *(one for one in others if isinstance(one, Result))]
    unasked = tuple(one for one in others if isinstance(one, Unasked))
    by_command = {one.command: one for one in results}
    numbers = {one.path: number for number, one in enumerate(explained.inputs)}
    judged: tuple[JudgedPartition, ...] = ()
    present: set[int] = set()
    if "diff" in by_command:
        compared = {one.path for one in by_command["diff"].inputs}
        present = {number for number, one in enumerate(explained.inputs) if one.path in compared}
        judged = tuple(one.judged for one in by_command["diff"].body.partitions)
    predicted = by_command.get("predict")
    asked = tuple(Asked(one.command, _own_answer(one)) for one in results)
    topics = topic_rows(explained.body.incidents, judged, present)
    # Their citations name an input by its number.
    paths = [one.path for one in explained.inputs]
    alike = [one for one in results if [each.path for each in one.inputs] == paths]
    findings = by_gravity(tuple({(each.code, each.statement): each for one in alike for each in one.findings}.values()))
    told = {one.statement for one in findings}
    standing = tuple(one for one in standing_cleaners(case) if one.statement not in told)
    set_aside = set_aside_owners(explained.body.incidents, judged)
    answer = triage_answer(asked, unasked, topics, ask, explain.holders_of(explained.inputs), set_aside)
    answer = with_findings(
        "triage", with_cleaners(answer, (*findings, *standing)), findings, {*TOLD_BESIDE, LEFT_BYTES.code}
    )
    lines = told_causes(cluster_of(case).log_files, cluster_of(case).events)
    if not _has_replicas(case) and cluster_of(case).log_files:
        from kforensics.commands import logs  # noqa: PLC0415 - where nothing else is there

        of_logs = logs.run(_as(ask, "logs"))
        # What stands below another line is in the sentence on the failure.
        lines = tuple(
            one for one in of_logs.body.graver if not of_logs.body.failures or "exception" not in one.section.flags
        )
        asked = (*asked, Asked("logs", of_logs.answer))
        parts = logs.beside_failures(of_logs.body), answer.headline
        headline = " ".join(filter(None, reversed(parts) if of_logs.body.failures else parts))
        answer = replace(answer, headline=headline, now=tuple(dict.fromkeys((*of_logs.answer.now, *answer.now))))
    answer = no_calmer_than_order(answer, replace(case, is_weighed=False))
    if ask.steps is not None:
        _write_steps(ask.steps, answer, ask, case, predicted)
    problems = tuple(dict.fromkeys(problem for one in results for problem in _placed(one, numbers)))
    return Result(
        command="triage",
        inputs=explained.inputs,
        body=Triage(
            explained=explained.body,
            cause=root_cause(explained.body.incidents),
            topics=topics,
            partitions=max(explained.body.partitions, len(judged)),
            starts=() if predicted is None else tuple(_starts(predicted, numbers)),
            asked=asked,
            unasked=unasked,
            lines=lines,
            depth=ask.depth or Depth.TAILS,
        ),
        concluded=Conclusion(
            answer=answer,
            findings=by_gravity((*findings, *standing)),
            problems=problems,
        ),
    )


def _own_answer(one: Result[Any]) -> Answer:
    """Return an answer without what log files do not say and which paths can't be used: the whole says it, whatever the number of questions."""
    answer, (hedge, unused) = one.answer, unusable_words(one.inputs)
    said = (*silence_words(one.inputs, one.problems), *unused)
    return replace(
        answer,
        headline=answer.headline.removeprefix(hedge),
        unknown=tuple(words for words in answer.unknown if words not in said),
    )


def _has_replicas(case: Case) -> bool:
    """Return whether a directory of any partition but those of the metadata is among the inputs."""
    return any(one.topic not in METADATA_TOPICS for one in places_of(case).by_partition)


def _others(ask: Ask, case: Case, explained: Explanation) -> Iterator[Result[Any] | Unasked]:
    # A node without any log may be one that was emptied, or that does not start.
    if not _has_replicas(case) and not any(one.kind in NODE_NAMES for one in explained.inputs):
        return
    from kforensics.commands import diff, predict  # noqa: PLC0415 - where there are directories

    wanted: list[tuple[str, Callable[[Ask], Result[Any]]]] = [("predict", partial(predict.run, case=now_of(case)))]
    if explained.partitions:
        wanted.insert(0, ("diff", partial(diff.run, case=now_of(case), keep_quiet=False)))
    of_offsets = unread_offsets(case)
    if of_offsets:
        yield Unasked(
            "groups", f"it reads all of each log of the coordinators of groups, {byte_count(of_offsets)} here"
        )
    elif OFFSETS_TOPIC in explained.topics:
        from kforensics.commands import groups  # noqa: PLC0415 - where their topic is there

        wanted.append(("groups", partial(groups.run, case=case, is_absence_answer=True)))
    length = _to_read(ask, case) if TRANSACTIONS_TOPIC in explained.topics else 0
    if ask.depth is Depth.TAILS and length > MOST_BYTES:
        yield Unasked(
            "transactions", f"it reads all of each log, {byte_count(length)} here; --depth content asks it too"
        )
    elif TRANSACTIONS_TOPIC in explained.topics:
        from kforensics.commands import transactions  # noqa: PLC0415 - where their topic is there

        wanted.append(("transactions", partial(transactions.run, case=case)))
    for name, command in wanted:
        try:
            result = command(_as(ask, name))
        except (EvidenceError, UsageError) as error:
            yield Unasked(name, str(error))
            continue
        # Where no group has committed in what was asked for, there is nothing to say of groups.
        is_limited = bool(ask.topics or ask.partitions)
        if name != "groups" or result.body.groups or result.answer.state is not State.NO_SETBACK or not is_limited:
            yield result


def _to_read(ask: Ask, case: Case) -> int:
    """Return the bytes of the logs in which transactions are looked for; of a capture its rows are read, which are few."""
    return sum(
        place.length
        for partition, group in places_of(case).by_partition.items()
        for place in group
        if is_wanted(partition, ask) and store_of(place.state.root).capture is None
    )


def _as(ask: Ask, command: str) -> Ask:
    """Return what another command is asked: the options that both have."""
    taken = {one.field for one in options_of(command)}
    return Ask(**{field.name: getattr(ask, field.name) for field in fields(Ask) if field.name in taken})


def _starts(predicted: Result[Any], numbers: Mapping[str, int]) -> Iterator[tuple[int, PredictedStart]]:
    for one in {start.input: start for start in predicted.body.starts}.values():
        if predicted.inputs[one.input].path in numbers:
            yield numbers[predicted.inputs[one.input].path], one


def _write_steps(out: Path, answer: Answer, ask: Ask, case: Case, predicted: Result[Any] | None) -> None:
    """Write what to do as a script, and for each broker that is to be elected the file that the election takes."""
    from kforensics.commands import predict  # noqa: PLC0415 - where steps are asked for
    from kforensics.findings.answers.predict_steps import discarded_by_loading  # noqa: PLC0415 - likewise

    elections: dict[int, list[Election]] = {}
    try:
        order = predict.order_of(now_of(case).asked(_as(ask, "predict")))
    except (EvidenceError, UsageError):
        order = None  # one broker, or one twice: there is no order
    for one in () if order is None else order.unclean:
        elections.setdefault(one.leader, []).append(one)
    files = {
        out.with_name(f"elections-{leader}.json"): json.dumps(election_file(chosen), indent=2)
        for leader, chosen in elections.items()
    }
    discarded = () if predicted is None else tuple(discarded_by_loading(predicted.body.logs, predicted.inputs))
    files[out] = steps_script(answer, [path.name for path in files], [] if order is None else order.brokers, discarded)
    for path, text in files.items():
        check_new_file(path, ask.inputs)
        try:
            path.touch(mode=0o700 if path == out else 0o600, exist_ok=False)
            path.write_text(text, encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise UsageError(f"{path} can't be written: {error.strerror}") from error


def _placed(result: Result[Any], numbers: Mapping[str, int]) -> Iterator[Problem]:
    """Yield what one command could not read, by the inputs of the whole."""
    for one in result.problems:
        if one.input < len(result.inputs) and result.inputs[one.input].path in numbers:
            yield replace(one, input=numbers[result.inputs[one.input].path])
