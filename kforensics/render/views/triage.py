"""What `triage` shows: what is lost or at risk by topic, what happened, what a start does, and the questions that have more."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kforensics.commands.explain import NO_LOGS
from kforensics.commands.result import Result
from kforensics.commands.triage import Triage
from kforensics.damage import Absent
from kforensics.evidence.model import Input
from kforensics.findings.answers.predict_cluster import node_words
from kforensics.findings.rules.causes import root_cause_sentence
from kforensics.protocol.loading.starts import StartResult
from kforensics.reconcile.logs.predicted_load import PredictedStart
from kforensics.reconcile.observed.line_kinds import LineKind
from kforensics.render.blocks import GAP, Block, Column, Prose, Section, Table, Tone, item
from kforensics.render.events import GRAVE, Sentence, kind_words, sentences_of, shown_entries, to_do
from kforensics.render.frame import References, problem_items
from kforensics.render.view import View
from kforensics.render.views.incident import by_cause, by_topic, identified, worst_over_time
from kforensics.render.views.predict import RESULTS
from kforensics.units import Depth
from kforensics.words import Count, counted, in_short_sentences, joined_by_and, listed, utc_words

MOST_TOPICS = 5
"""Topics that are shown without -v."""
MOST_EVENTS = 3
"""Kinds of events that are shown without -v, the root cause among them."""
MOST_PROBLEMS = 1
"""What could not be read that is shown without -v."""
ROOM = 5
"""Lines that a screen has for events and their cause without -v."""
_FRAME = 3
"""Lines that a table takes for its title and its heads."""
_TITLE = 2
"""Lines that a title takes."""
_ALL = 1 << 30

COLUMNS = (
    Column("topic", is_shortened=True),
    *(Column(title, is_number=True) for title in ("partitions", "lost", "maybe", "at risk", "maybe")),
    Column("held by"),
)
PAGE_COLUMNS = (
    *COLUMNS[:3],
    Column("maybe lost", is_number=True),
    COLUMNS[4],
    Column("maybe at risk", is_number=True),
    COLUMNS[-1],
)


def blocks(result: Result[Triage], view: View) -> Iterator[Block]:
    """Yield topics, events, starts, and what to ask next; -v shows all of them. A screen has room for the root cause before all else, and then for the topics."""
    body = result.body
    ends = list(_ends(body, result.inputs))
    cause = "" if body.cause is None else root_cause_sentence(body.cause)
    problems = [one for one in result.problems if one.message != NO_LOGS]  # the headline says that
    unread = [one for one in problem_items(problems, result.inputs, view) if isinstance(one, Prose)]
    left = len(unread) - view.most(MOST_PROBLEMS)
    if left > 0:
        unread = [*unread[:-left], item(f"and {left:,} more (-v lists them)")]
    room = _ALL if view.room is None else view.room - _height(ends, view.width) - _height([cause], view.width - 8)
    room -= _height([one.text for one in unread], view.width - 4)
    if view.page:
        yield identified(body.explained)
    # Where what to do leaves little room, those with fewer losses are counted.
    most = MOST_TOPICS
    if min(len(body.topics), most) + (len(body.topics) > most) > room - _FRAME:
        most = min(max(room - _FRAME - 1, 1), most)
    shown = body.topics[: view.most(most)]
    if shown and room < _FRAME + len(shown) + (len(shown) < len(body.topics)):
        yield Prose(f"Lost or at risk: {counted(len(body.topics), 'topic')} (-v lists them)", Tone.QUIET)
        shown, room = (), room - 1
    if shown:
        yield Section(title="Lost and at risk")
        yield Table(
            name="topics",
            columns=PAGE_COLUMNS if view.page else COLUMNS,
            is_ledger=True,
            rows=[
                (
                    one.topic,
                    f"{one.partitions:,}",
                    str(Count(one.lost, one.is_least)) if one.lost or not one.is_least else "not known",
                    *(f"{count:,}" for count in (one.maybe_lost, one.at_risk, one.maybe_at_risk)),
                    one.held_by or "-",
                )
                for one in shown
            ],
        )
        if len(shown) < len(body.topics):
            yield Prose(f"and {counted(len(body.topics) - len(shown), 'more topic')} (-v lists them)", Tone.QUIET, 1)
        room -= len(shown) + _FRAME + (len(shown) < len(body.topics))
    happened = list(_happened(body, view, cause, room))
    yield from happened
    height = sum(_height([one.text], view.width - 8) if isinstance(one, Prose) else _TITLE for one in happened)
    yield from _lines(body.lines, result.answer.now, view, room - height)
    if view.page:
        references = References(result.inputs)
        yield from by_topic(body.explained.incidents)
        yield from by_cause(body.explained.incidents, references, {})
        yield from worst_over_time(body.explained, references)
        yield Section(title="What a start does")
    if room > 0:
        yield GAP
    yield from unread
    yield from (Prose(text) for text in ends[:-1])
    yield Prose(ends[-1], Tone.QUIET)


def _ends(body: Triage, inputs: Sequence[Input]) -> Iterator[str]:
    """Yield what the starts do, and which questions have more."""
    if body.starts:
        starts = "; ".join(_starts(body.starts, inputs))
        yield f"{starts[0].upper()}{starts[1:]}."
    names = listed([one.command for one in body.asked], most=len(body.asked))
    ends = " by the ends of their logs" if body.depth is Depth.TAILS else ""
    yield f"{counted(body.partitions, 'partition')} judged{ends}. More: kforensics {names}."


class _Event(NamedTuple):
    sentence: Sentence
    more: int
    """Further events of its kind."""
    last_ms: int | Absent


def _happened(body: Triage, view: View, cause: str, room: int) -> Iterator[Block]:
    """Yield the root cause, and the events for which there is room beside it, under a title where that has room, too."""
    events = _events(body, view)
    moments = _MOMENT.findall(cause)
    if cause and room <= _TITLE:
        yield Prose(in_short_sentences(f"Cause: {_MOMENT.sub(lambda found: f'{found[1]} {found[2]} UTC', cause)}"))
        return
    day = _day(events, (one for one, _ in moments))
    cause = _MOMENT.sub(lambda found: found[2] if found[1] == day else f"{found[1]} {found[2]}", cause)
    lines = [(event, _words(event, day)) for event in events]
    if not (view.verbose or view.page):
        width = view.width - 8
        most = min(room - _TITLE - 1, ROOM - _height([cause], width))
        while lines and _height([words for _, words in lines], width) > most:
            lines.pop()
    if not cause and not lines:
        return
    yield Section(title=f"What happened on {day} (UTC)" if day else "What happened (UTC)")
    if cause:
        yield item(cause)
    for _, words in sorted(lines, key=lambda one: _moment(one[0])):
        yield item(words)


def _lines(kinds: Sequence[LineKind], now: Sequence[str], view: View, room: int) -> Iterator[Block]:
    """Yield what lines of logs mean, as far as a screen has room for it beside what happened."""
    if not kinds or room <= 1:  # an empty line follows
        return
    meanings = [" ".join((f"{kind_words(one)}. {one.meaning}", *to_do(one, now))) for one in kinds]
    shown = meanings if view.verbose or view.page else meanings[:MOST_EVENTS]
    while shown and not (view.verbose or view.page) and _height(shown, view.width - 4) + 1 + _FRAME > room:
        shown = shown[:-1]
    if shown:
        yield Section(title="What the log lines mean")
        yield from map(item, shown)
    if len(shown) < len(kinds):
        named = listed([one.section.words for one in kinds[len(shown) :]], most=MOST_EVENTS)
        yield item(f"{'More l' if shown else 'L'}og lines name {named}: kforensics logs.")


_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)\.\d+Z")
"""A time in the sentence of a cause."""


def _height(sentences: Sequence[str], width: int) -> int:
    """Return how many lines of so many columns sentences take."""
    return sum(len(textwrap.wrap(one, width)) for one in sentences)


def _events(body: Triage, view: View) -> list[_Event]:
    """Return of each kind of event that decided something the first, the gravest before others; of what the root cause is, that says it."""
    cause = None if body.cause is None else body.cause.cause.value
    entries = shown_entries(body.explained.timeline, body.explained.incidents, verbose=False)
    events: dict[str, _Event] = {}
    said = [entry for entry in entries if entry.kind not in _FOLLOWS and entry.kind.value != cause]
    for one in sentences_of(said, body.explained.nodes):
        seen = events.get(one.kind)
        events[one.kind] = (
            _Event(one, 0, one.time_ms) if seen is None else _Event(seen.sentence, seen.more + 1, one.time_ms)
        )
    chosen = sorted(events.values(), key=lambda event: event.sentence.kind not in GRAVE)
    return chosen[: view.most(MOST_EVENTS - (cause is not None))]


_FOLLOWS = frozenset({"isr-shrink", "leader-change"})
"""What goes with other events that are shown."""


def _words(event: _Event, day: str) -> str:
    more = f", and {event.more:,} more until {_when(event.last_ms, day)}" if event.more else ""
    return f"{_when(event.sentence.time_ms, day)}  {event.sentence.words}{more}"


def _moment(event: _Event) -> tuple[bool, int]:
    time_ms = event.sentence.time_ms
    return not isinstance(time_ms, int), time_ms if isinstance(time_ms, int) else 0


def _day(events: Sequence[_Event], others: Iterable[str]) -> str:
    """Return the day of all events and of others; empty where there are several, or a time is not known."""
    days = set(others) | {
        utc_words(time).partition(" ")[0] if isinstance(time, int) else ""
        for event in events
        for time in (event.sentence.time_ms, event.last_ms)
    }
    return days.pop() if len(days) == 1 else ""


def _when(time_ms: int | Absent, day: str) -> str:
    words = utc_words(time_ms).removesuffix(" UTC") if isinstance(time_ms, int) else "an unknown time"
    return words.removeprefix(day).strip()


def _starts(starts: Sequence[tuple[int, PredictedStart]], inputs: Sequence[Input]) -> list[str]:
    """Return what becomes of the nodes, those of which the same is to be said together, and those that do not start first."""
    by_words: dict[str, list[str]] = {}
    for number, start in sorted(starts, key=lambda one: one[1].result is StartResult.STARTS):
        one = inputs[number]
        result = "may start or not" if isinstance(start.result, Absent) else RESULTS[start.result.value]
        how = " after a clean stop" if start.clean else " as after a crash"
        why = f" ({start.reason.rstrip('.')})" if start.reason else ""
        # How a node went down says nothing of a start that fails, of which the last attempt is shown.
        words = f"{result}{how if start.result is StartResult.STARTS else ''}{why}"
        by_words.setdefault(words, []).append(node_words(one))
    return [
        f"{joined_by_and(nodes)} {words if len(nodes) == 1 else words.replace('does not', 'do not', 1).replace('starts', 'start', 1)}"
        for words, nodes in by_words.items()
    ]
