"""The answer of `triage`: the worst of what each command says of the same inputs, and what to do first.

Each sentence is one that a command answers for; the order of `STATES["triage"]` decides which of them stands first.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from kforensics.ask.model import Ask
from kforensics.exits import ExitCode
from kforensics.findings.answers.advice import Holders, how_to_salvage
from kforensics.findings.answers.graver import SENTENCES, Asked, beyond
from kforensics.findings.answers.model import STATES, Answer, State
from kforensics.findings.answers.predict_steps import COPY_FIRST
from kforensics.findings.concern import Concern, ConcernKind, JudgedPartition
from kforensics.reconcile.history.losses import Holder, Loss
from kforensics.reconcile.incident.model import PartitionIncident
from kforensics.units import METADATA_TOPICS
from kforensics.words import (
    EXPORT,
    Prohibition,
    Rescue,
    Step,
    copied_by,
    counted,
    escaped_line,
    form,
    joined_by_and,
    listed,
    with_place,
)

MOST_HEADLINE = 100
"""Words of a headline beyond which it has no more than the first sentence of each question."""
MOST_UNKNOWN = 2
"""Open questions that the answer names, and each question that ends as unknown or was not asked."""


class Unasked(NamedTuple):
    """A command that can't answer with these inputs."""

    command: str
    why: str


class TopicRow(NamedTuple):
    """The records of one topic that are lost or at risk."""

    topic: str
    partitions: int
    """The partitions of it that something is lost of or at risk."""
    lost: int
    """Records that were certainly committed and that no log in use holds."""
    maybe_lost: int
    """Others that may have been committed."""
    at_risk: int
    """Committed records that a start or an election can discard, without those that are counted as lost."""
    maybe_at_risk: int
    lost_since: int
    """Of those that are or may be lost, the records in directories that were given as they are now: they were truncated after these were copied."""
    is_least: bool
    """More may be lost than is counted."""
    now_on: tuple[str, ...]
    """Who holds lost records as they are now: in files set aside, or other directories."""
    copied_from: tuple[str, ...]
    """Of whom an earlier copy holds lost records."""
    at_risk_on: tuple[str, ...]
    """Who holds the records that are at risk, in logs that a start or an election shortens."""

    @property
    def held_by(self) -> str:
        """Who still holds lost records, and those at risk, in few words; empty for none."""
        now, earlier, risky = _few(self.now_on), _few(self.copied_from), _few(self.at_risk_on)
        if not self.lost and not self.maybe_lost and not now and not earlier:
            return risky
        parts = [now, earlier and f"copies of {earlier}"] if now != earlier else [now and f"{now} and copies"]
        if risky and (self.now_on, self.copied_from) != (self.at_risk_on, ()):
            parts.append(f"at risk: {risky}")
        return "; ".join(filter(None, parts))


MOST_HOLDERS = 3


def _few(owners: Sequence[str]) -> str:
    """Return who it is in a cell of a table: `brokers 1, 2`."""
    return (
        counted(len(owners), "holder") if len(owners) > MOST_HOLDERS else joined_by_and(owners).replace(" and ", ", ")
    )


LOADS_ALL = re.compile(
    r"(?:As after a crash.*, )?Kafka .+ loads (?:all \S+ logs|its only log)(?: as they are|, and loading discards no record)\."
)
_NO_FORCE = "Do not force an unclean election "
_HARM = frozenset({State.AT_RISK, State.MAYBE_AT_RISK})


def topic_rows(
    incidents: Sequence[PartitionIncident], judged: Sequence[JudgedPartition], present: Collection[int]
) -> tuple[TopicRow, ...]:
    """Return the topics of which records are lost or at risk, those with most of them first."""
    incident_of = {one.partition: one for one in incidents if one.partition.topic not in METADATA_TOPICS}
    judged_of = {one.partition: one for one in judged if one.partition.topic not in METADATA_TOPICS}
    rows: dict[str, TopicRow] = {}
    for partition in sorted(incident_of.keys() | judged_of.keys()):
        row = _row(partition.topic, incident_of.get(partition), judged_of.get(partition), present)
        if not any(row[2:6]) and not row.is_least:
            continue
        before = rows.get(partition.topic)
        rows[partition.topic] = row if before is None else _sum(before, row)
    return tuple(sorted(rows.values(), key=lambda row: (-row.lost, -row.maybe_lost, -row.at_risk, row.topic)))


def _row(
    topic: str, incident: PartitionIncident | None, judged: JudgedPartition | None, present: Collection[int]
) -> TopicRow:
    every = () if incident is None else incident.losses
    losses = [one for one in every if not one.in_use]
    apart = [one for one in every if one.in_use and one.was_committed != "no"]
    holders = _holders_of_lost(incident)
    risky = list(_risks(incident, judged))
    since = [one for one in losses if any(not each.is_final and each.input in present for each in one.held_by)]
    certain_since, possible_since = _records(since, "certain"), _records(since, "possible")
    # What only others than the leader hold is at risk, also where no start discards it: replicas that have diverged stay so.
    certain = max(_most(risky, lambda one: one.certain), _records(apart, "certain"))
    in_all = max(
        _most(risky, lambda one: one.certain) + _most(risky, lambda one: one.possible),
        sum(one.records for one in apart),
    )
    possible = max(in_all - certain, 0)
    at_risk = max(certain - certain_since, 0)
    maybe_at_risk = max(possible - possible_since - max(certain_since - certain, 0), 0)
    counted_risks = [one for one in risky if (one.certain or one.possible) and (at_risk or maybe_at_risk)]
    at_risk_on = [owner for one in counted_risks for owner in one.losing or one.owners]
    if not at_risk_on and (at_risk or maybe_at_risk):
        at_risk_on = [each.owner for one in apart for each in one.held_by]
    return TopicRow(
        topic=topic,
        partitions=1,
        lost=_records(losses, "certain"),
        maybe_lost=_records(losses, "possible"),
        at_risk=at_risk,
        maybe_at_risk=maybe_at_risk,
        lost_since=min(certain_since + possible_since, certain + possible),
        is_least=incident is not None and incident.counts_at_least,
        now_on=tuple(dict.fromkeys(one.owner for one in holders if one.is_final)),
        copied_from=tuple(dict.fromkeys(one.owner for one in holders if not one.is_final)),
        at_risk_on=tuple(dict.fromkeys(at_risk_on)),
    )


def _records(losses: Sequence[Loss], certainty: str) -> int:
    return sum(one.records for one in losses if one.was_committed == certainty)


def _holders_of_lost(incident: PartitionIncident | None) -> list[Holder]:
    losses = () if incident is None else incident.losses
    return [one for loss in losses if not loss.in_use and loss.was_committed != "no" for one in loss.held_by]


def _risks(incident: PartitionIncident | None, judged: JudgedPartition | None) -> Iterator[Concern]:
    """Yield what is at risk of a partition; what directories that are no replica hold is counted as lost where that is known."""
    is_set_aside = any(one.is_stray or one.is_vanishing for one in _holders_of_lost(incident))
    for one in () if judged is None else judged.concerns:
        if one.state in _HARM and not (is_set_aside and one.kind is ConcernKind.OUTSIDE):
            yield one


def _most(risky: Sequence[Concern], count: Callable[[Concern], int]) -> int:
    """Return how many records are at risk: concerns may be about the same ones, but for what recovery discards, which no other one counts."""
    recovered = sum(count(one) for one in risky if one.kind is ConcernKind.RECOVERY)
    return recovered + max((count(one) for one in risky if one.kind is not ConcernKind.RECOVERY), default=0)


def set_aside_owners(incidents: Sequence[PartitionIncident], judged: Sequence[JudgedPartition]) -> tuple[str, ...]:
    """Return who holds in directories that are no replica what is counted as lost, where nothing else is at risk."""
    incident_of = {one.partition: one for one in incidents}
    if any(next(_risks(incident_of.get(one.partition), one), None) for one in judged):
        return ()
    return tuple(
        dict.fromkeys(
            owner
            for one in judged
            for each in one.concerns
            if each.state in _HARM and each.kind is ConcernKind.OUTSIDE
            for owner in each.owners
        )
    )


def _sum(one: TopicRow, other: TopicRow) -> TopicRow:
    return TopicRow(
        topic=one.topic,
        partitions=one.partitions + other.partitions,
        lost=one.lost + other.lost,
        maybe_lost=one.maybe_lost + other.maybe_lost,
        at_risk=one.at_risk + other.at_risk,
        maybe_at_risk=one.maybe_at_risk + other.maybe_at_risk,
        lost_since=one.lost_since + other.lost_since,
        is_least=one.is_least or other.is_least,
        now_on=tuple(dict.fromkeys((*one.now_on, *other.now_on))),
        copied_from=tuple(dict.fromkeys((*one.copied_from, *other.copied_from))),
        at_risk_on=tuple(dict.fromkeys((*one.at_risk_on, *other.at_risk_on))),
    )


def triage_answer(
    asked: Sequence[Asked],
    unasked: Sequence[Unasked],
    topics: Sequence[TopicRow],
    ask: Ask,
    holders: Holders,
    set_aside: Sequence[str] = (),
) -> Answer:
    """Return the answer over all questions.

    Args:
        set_aside: who holds in directories that are no replica what is lost, where nothing else is at risk.
    """
    rank = {state: at for at, state in enumerate(STATES["triage"])}
    states = {one.command: one.answer.state if one.answer.state in rank else State.NOTHING_LOST for one in asked}
    ordered = sorted(asked, key=lambda one: rank[states[one.command]])
    worst = ordered[0]
    is_repeated = bool(set_aside) and worst.command == "explain"
    said = [
        worst,
        *(one for one in _also(worst, ordered[1:], topics) if not (is_repeated and one.answer.state in _HARM)),
        *(one for one in asked if one is not worst and _is_calm_beside(one, worst)),
    ]
    # What two questions say alike is said once; that logs load is said where the starts are.
    sentences: list[str] = []
    details: list[str] = []
    for one in said:
        own = [each for each in SENTENCES.split(beyond(one.answer.headline, " ".join(sentences))) if each]
        sentences += own
        details += own[1:]
    steps = with_place(_steps(said, [one.command for one in asked], topics, ask, holders))
    forbids = any(one.startswith(_NO_FORCE) for one in steps)
    kept = [one for one in sentences if not LOADS_ALL.fullmatch(one) and not (forbids and one.startswith(_NO_FORCE))]
    # Of many answers the first sentence of each is said; each question has the others.
    while details and len(" ".join(kept).split()) > MOST_HEADLINE:
        if (detail := details.pop()) in kept:
            kept.remove(detail)
    headline = " ".join(kept or sentences)
    if is_repeated:
        headline += f" Directories of {joined_by_and(set_aside)} that are no replica any more still hold lost records."
    since = sum(row.lost_since for row in topics)
    if since and {"explain", "diff"} <= {one.command for one in said}:
        headline += f" {counted(since, 'record')} {form(since, 'is', 'are')} in both counts, truncated after the directories were copied."
    return Answer(
        state=states[worst.command],
        headline=headline,
        now=steps,
        tell=tuple(dict.fromkeys(words for one in said for words in one.answer.tell)),
        unknown=tuple(_unknown(ordered, unasked)),
    )


def _is_calm_beside(one: Asked, worst: Asked) -> bool:
    """Whether a calm answer is said, too: that nothing was lost beside what does not speak of that, and what a start removes beside what is calm."""
    is_of_now = worst.command in {"predict", "groups", "transactions"}
    return one.code == ExitCode.NOTHING_FOUND and (
        (one.command == "explain" and is_of_now) or (one.command == "predict" and worst.code == ExitCode.NOTHING_FOUND)
    )


def _unknown(asked: Sequence[Asked], unasked: Sequence[Unasked]) -> Iterator[str]:
    """Yield what no question answers: what could not be asked, and of each that ends as unknown the first, before all else; not what is left to another one that was asked, too."""
    names = [f"`kforensics {one.command}" for one in asked]
    by_question = [[words for words in one.answer.unknown if not any(name in words for name in names)] for one in asked]
    firsts = [left[0] for one, left in zip(asked, by_question, strict=True) if left and one.code == ExitCode.INCOMPLETE]
    told = [f"What `kforensics {one.command}` would say: {one.why}." for one in unasked] + firsts
    every = list(dict.fromkeys([*told, *(words for left in by_question for words in left)]))
    most = max(MOST_UNKNOWN, len(dict.fromkeys(told)))
    yield from every[:most]
    if len(every) > most:
        yield (
            f"{counted(len(every) - most, 'more open question')}: kforensics {listed([one.command for one in asked], most=len(asked))} "
            f"{'has' if len(asked) == 1 else 'have'} {form(len(every) - most, 'it', 'them')}."
        )


def _also(worst: Asked, others: Sequence[Asked], topics: Sequence[TopicRow]) -> Iterator[Asked]:
    """Yield the other questions of which the first line has to speak: graver than unknown, and not about the same records."""
    is_lost = any(row.lost or row.maybe_lost or row.is_least for row in topics)
    by_command = {one.command: one for one in (worst, *others)}
    compared, predicted = by_command.get("diff"), by_command.get("predict")
    # What is said of replicas is at the front of what is said of starts, too: one of the two is enough.
    repeated = None
    if compared and predicted and predicted.answer.headline.startswith(compared.answer.headline):
        repeated = compared if worst is predicted else predicted if compared.code == 1 else None
    for one in others:
        # What explain counts may still be in a log that is in use: diff says what becomes of it, and predict repeats that.
        is_said = one.command == "explain" and worst.command == "diff" and not is_lost
        if one.code == 1 and one is not repeated and not is_said:
            yield one


def _steps(
    said: Sequence[Asked], commands: Collection[str], topics: Sequence[TopicRow], ask: Ask, holders: Holders
) -> Iterator[str]:
    """Yield what not to do before all else, what to do first, how to get the records, and what to hand to others."""
    every = [words for one in said for words in one.answer.now]
    commands_of = [each for one in every if isinstance(one, Step) for each in one.commands]
    copied = {source for each in commands_of if each.startswith("cp -a ") for source in copied_by(each)}
    if copied.issuperset(holders.paths):
        every = [one for one in every if one != COPY_FIRST]
    yield from _prohibitions([one for one in every if isinstance(one, Prohibition)])
    # What only leads to a question that was asked is said by its own steps, or at the end of the screen.
    for one in every:
        led_to = (
            commands
            if one.startswith("See ")
            else [each.command for each in said]
            if one.startswith("Look at ")
            else ()
        )
        if not isinstance(one, (Prohibition, Rescue)) and not any(f"kforensics {name}" in one for name in led_to):
            yield one
    yield from how_to_salvage(
        ask,
        holders,
        is_lost=any(row.lost or row.maybe_lost or row.is_least for row in topics),
        is_held=any(row.now_on or row.copied_from for row in topics),
        is_at_risk=any(row.at_risk or row.maybe_at_risk for row in topics),
    )


def _prohibitions(steps: Sequence[Prohibition]) -> Iterator[str]:
    """Yield what not to do, each start that is to wait for the same copies once."""
    waiting: set[str] = set()
    for one in steps:
        is_start = _BEFORE_COPIED.search(one) is not None
        if not is_start or not one.commands or not waiting.issuperset(one.commands):
            yield one
        if is_start:
            waiting.update(one.commands)


_BEFORE_COPIED = re.compile(r"Do not start .* before (?:its|their) director")


def steps_script(answer: Answer, elections: Sequence[str], order: Sequence[int], discarded: Sequence[str] = ()) -> str:
    """Return what to do, and what loading discards, as a shell script, each command behind its reason; what only a person can do is a comment."""
    lines = [
        "# What `kforensics triage` advises. Read it before it is run: none of it was done.",
        f"# {escaped_line(answer.headline)}",
        "set -eu",
        ': "${SAFE:?a directory on another disk, with room for copies}"',
    ]
    for one in answer.now:
        commands = one.commands if isinstance(one, Step) else ()
        lines += ["", f"# {escaped_line(one.sentence if isinstance(one, Step) else one)}"]
        # Exit codes 1 and 3 say that there are gaps, or that it is not known whether there are: the rest goes on.
        lines += [
            f"{command} || [ $? -le 3 ]" if command.startswith("kforensics ") else command
            for command in commands
            if command != EXPORT
        ]
    if discarded:
        lines += ["", *(f"# {escaped_line(one)}" for one in discarded)]
    if order:
        lines += ["", f"# Start the brokers one at a time, in this order: {', '.join(map(str, order))}."]
    for name in elections:
        broker = name.removeprefix("elections-").removesuffix(".json")
        lines += [
            "",
            f"# Once broker {broker} runs, and before others do: elect it where it loses least. Unclean elections discard what others hold.",
            f"# kafka-leader-election.sh --bootstrap-server HOST:PORT --election-type unclean --path-to-json-file {name}",
        ]
    # A name that no screen shows is quoted as not every sh reads it.
    shell = "#!/usr/bin/env bash" if any("$'" in one for one in lines) else "#!/bin/sh"
    return "\n".join((shell, *lines)) + "\n"
