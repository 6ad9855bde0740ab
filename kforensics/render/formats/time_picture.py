"""Lanes over time as parts of a page: what was so as bars, what happened as numbered marks, and both in words below."""

from collections.abc import Callable
from html import escape

from kforensics.render.blocks import Course, Moment, OverTime, Reference, Stretch
from kforensics.render.escape import escape_text
from kforensics.render.formats.lane_picture import Places
from kforensics.render.lanes import bounds_of, course_words, span_words, told
from kforensics.words import utc_text

ROOM = 3.0
"""Percent of a lane that the number of a mark takes."""
MOST_TICKS = 7
_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
_STEPS = (
    *(size * 10**power for power in range(3) for size in (1, 2, 5)),
    *(size * _SECOND for size in (1, 2, 5, 10, 15, 30)),
    *(size * _MINUTE for size in (1, 2, 5, 10, 15, 30)),
    *(size * _HOUR for size in (1, 2, 3, 6, 12)),
    *(size * _DAY for size in (1, 2, 7, 14, 30, 90, 365)),
)

Placing = Callable[[int], float]
"""A function from a time to its place from the left, in percent."""


def draw_over_time(
    block: OverTime, places: Places, name: Callable[[str], str], cite: Callable[[Reference], str]
) -> str:
    """Return the picture.

    Args:
        name: makes names that no other part of the page has.
        cite: makes a citation a part of the page.
    """
    first, last = bounds_of(block)
    spread = max(last - first, 1)

    def place(time_ms: int) -> float:
        return (min(max(time_ms, first), last) - first) * 100 / spread

    moments = sorted(
        ((course.name, moment) for course in block.courses for moment in course.moments), key=lambda one: one[1].time_ms
    )
    numbers = {id(moment): number for number, (_, moment) in enumerate(moments, 1)}
    lanes = "".join(_lane(course, place, places, numbers) for course in block.courses)
    ends = ((first, " end", 0.0), (last, " end last", 100.0))
    inner = [(time, "", place(time)) for time in _ticks(first, last)]
    shown = [one for one in inner if 12 < one[2] < 88]
    axis = "".join(
        f'<span class="tick{kind} {places.at(at)}">{_label(time, spread)}</span>'
        for time, kind, at in (ends[0], *shown, ends[1])
    )
    listed = "".join(
        f'<li{" class=" + chr(34) + "grave" + chr(34) if moment.is_grave else ""}><span class="time">{_text(told(moment.time_ms, block))}</span> '
        f"{_text(moment.words if owner in moment.words else f'{owner}: {moment.words}')}{''.join(f' {cite(one)}' for one in moment.references)}</li>"
        for owner, moment in moments
    )
    words = "".join(f"<li>{_text(course_words(course, block))}</li>" for course in block.courses)
    marks = (
        f'<ol class="moments" aria-label="{name(f"What happened to {block.name}")}">{listed}</ol>\n' if listed else ""
    )
    return (
        f'<div class="over-time" role="group" aria-label="{name(f"{block.name} over time")}">\n'
        f'<p class="when">{_text(span_words(first, last))}</p>\n<div class="lanes">{lanes}'
        f'<div class="lane axis"><span class="owner">time</span><div class="ticks">{axis}</div></div></div>\n{marks}</div>\n'
        f'<details class="bulk"><summary>In words<span class="hidden">: {name(f"{block.name}, the lanes over time")}</span></summary><ul>{words}</ul></details>\n'
    )


def time_legend(block: OverTime) -> str:
    """Return what the looks of a picture stand for; empty where it says nothing of that."""
    items = "".join(
        f'<li><span class="swatch" aria-hidden="true"><span class="stretch {look}"></span></span>{_text(words)}</li>'
        for look, words in block.legend
    )
    number = '<li><span class="number" aria-hidden="true">1</span>an event, listed below the picture</li>'
    return f'<ul class="legend">{items}{number}</ul>\n' if items else ""


def _lane(course: Course, place: Placing, places: Places, numbers: dict[int, int]) -> str:
    bars = "".join(_bar(one, place, places) for one in course.stretches)
    marks, groups = "", list[tuple[float, list[Moment]]]()
    for one in sorted(course.moments, key=lambda moment: moment.time_ms):
        at = place(one.time_ms)
        if groups and at - groups[-1][0] < ROOM:
            groups[-1][1].append(one)
        else:
            groups.append((at, [one]))
    for at, group in groups:
        grave = " grave" if any(one.is_grave for one in group) else ""
        edge = " before" if at > 100 - ROOM else ""
        more = "+" if len(group) > 1 else ""
        marks += f'<span class="moment{grave}{edge} {places.at(at)}"><b>{numbers[id(group[0])]}{more}</b></span>'
    return (
        f'<div class="lane"><span class="owner">{_text(course.name)}</span>'
        f'<div class="track marked" role="img" aria-label="{_text(course_words(course))}">{bars}{marks}</div></div>\n'
    )


def _bar(one: Stretch, place: Placing, places: Places) -> str:
    left = min(place(one.begin_ms), 99.8)
    width = max(place(one.end_ms) - left, 0.2)
    label = f'<span class="term {places.at(0, 100)}"><b>{_text(one.label)}</b></span>' if one.label else ""
    return f'<span class="stretch {one.look} {places.at(left, width)}">{label}</span>'


def _ticks(first: int, last: int) -> range:
    step = next((one for one in _STEPS if one * MOST_TICKS > last - first), _STEPS[-1] * 10)
    return range(-(-first // step) * step, last, step)


def _label(time_ms: int, spread: int) -> str:
    text = utc_text(time_ms)
    day, _, time = text.rstrip("Z").partition("T")
    if not time or spread > MOST_TICKS * _DAY:
        return escape(day)
    return time[:5] if spread > MOST_TICKS * _MINUTE else time[:8] if spread > MOST_TICKS * _SECOND else time


def _text(words: str) -> str:
    return escape(escape_text(words))
