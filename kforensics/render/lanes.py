"""Lanes: the log of one replica drawn to scale, with its leader epochs, what will be truncated, and what differs; and lanes over time in words.

0 ━━━━━━━e0━━━━━━━╳╳╳╳╳╳╳╳ 103
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kforensics.render.blocks import Course, Lane, OverTime
from kforensics.units import EpochEntry
from kforensics.words import time_of_day, utc_text, utc_words

UNICODE_MARKS = {"even": "━", "odd": "─", "truncated": "╳", "differs": "≠", "none": " "}
ASCII_MARKS = {"even": "=", "odd": "-", "truncated": "x", "differs": "#", "none": " "}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The map from offsets to columns, the same for every lane of a partition."""

    first: int
    last: int
    width: int

    def column(self, offset: int) -> int:
        """Return the column where an offset begins; one outside of the scale is at its edge."""
        spread = max(self.last - self.first, 1)
        return min(max((offset - self.first) * self.width // spread, 0), self.width)


def scale_of(lanes: Sequence[Lane], width: int) -> Scale:
    """Return the scale on which all lanes fit; the part that all lanes share is shortened, so that the ends stay distinct."""
    first = min((lane.start for lane in lanes), default=0)
    last = max((lane.end for lane in lanes), default=1)
    marks = ((lane.end, lane.truncated_from, lane.differs_from, *(run.first for run, _ in lane.lost)) for lane in lanes)
    points = [offset for of_lane in marks for offset in of_lane if offset is not None]
    low = min(points, default=first)
    if 0 < last - low < (last - first) // 4:
        first = max(first, last - 4 * (last - low))
    return Scale(first=first, last=max(last, first + 1), width=width)


def draw_lane(lane: Lane, scale: Scale, *, marks: dict[str, str]) -> str:
    """Draw the lane as exactly `scale.width` characters, with marks for each fact as the terminal has them."""
    cells = [marks["none"]] * scale.width
    start, end = scale.column(lane.start), scale.column(lane.end)
    if lane.end > lane.start:
        end = max(end, start + 1)
    terms = lane.epochs or (EpochEntry(0, lane.start),)
    for at, entry in enumerate(terms):
        begin = start if at == 0 else max(scale.column(entry.start_offset), start)
        until = end if at + 1 == len(terms) else min(scale.column(terms[at + 1].start_offset), end)
        mark = marks["even"] if at % 2 == 0 else marks["odd"]
        cells[begin:until] = mark * max(until - begin, 0)
    for offset, mark in ((lane.differs_from, marks["differs"]), (lane.truncated_from, marks["truncated"])):
        if offset is not None and offset < lane.end:
            at = min(scale.column(max(offset, lane.start)), max(end - 1, 0))
            cells[at:end] = mark * (end - at)
    _label(cells, lane, scale, end)
    return "".join(cells[: scale.width])


def _label(cells: list[str], lane: Lane, scale: Scale, end: int) -> None:
    stop = min(p for p in (lane.truncated_from, lane.differs_from, lane.end) if p is not None)
    for at, entry in enumerate(lane.epochs):
        begin = scale.column(max(entry.start_offset, lane.start))
        following = lane.epochs[at + 1].start_offset if at + 1 < len(lane.epochs) else lane.end
        until = min(scale.column(min(following, stop)), end)
        label = f"e{entry.leader_epoch}"
        if until - begin >= len(label) + 2:
            place = begin + (until - begin - len(label)) // 2
            cells[place : place + len(label)] = label


CERTAINTY_WORDS = {"certain": "committed", "possible": "possibly committed", "no": "not committed"}
MOST_NAMED = 20


def lane_words(lane: Lane) -> str:
    """Return in words what the picture of a lane shows."""
    if lane.instead:
        return f"{lane.name} {lane.instead}"
    if lane.end <= lane.start:
        return f"{lane.name} is empty, log end {lane.end}"
    parts = [f"{lane.name} holds offsets {lane.start} to {lane.end - 1}"]
    parts += [f"epoch {entry.leader_epoch} from {entry.start_offset}" for entry in lane.epochs[:MOST_NAMED]]
    if lane.watermark is not None:
        parts.append(f"high watermark {lane.watermark}")
    for offset, what in ((lane.truncated_from, "will be truncated"), (lane.differs_from, "differs")):
        if offset is not None and offset < lane.end:
            parts.append(f"what {what} begins at {offset}")
    lost = ", ".join(f"{run.first} to {run.last} ({CERTAINTY_WORDS[kind]})" for run, kind in lane.lost[:MOST_NAMED])
    return ", ".join(parts) + (f"; the leader lacks {lost}" if lost else "")


def bounds_of(block: OverTime) -> tuple[int, int]:
    """Return the first and the last moment of lanes over time, 0 where they are blank."""
    times = [time for course in block.courses for one in course.stretches for time in (one.begin_ms, one.end_ms)]
    times += [one.time_ms for course in block.courses for one in course.moments]
    return min(times, default=0), max(times, default=0)


def span_words(first: int, last: int) -> str:
    """Return a span of time in words, with the day of its end where that is another one."""
    begin, end = utc_words(first), utc_words(last)
    same = begin[:10] == end[:10] and begin[10:11] == " "
    return f"{begin.removesuffix(' UTC')} to {end[11:] if same else end}"


def told(time_ms: int, block: OverTime) -> str:
    """Return a moment as lanes over time name it: with its day where they go over several."""
    first, last = bounds_of(block)
    is_one_day = utc_text(first)[:10] == utc_text(last)[:10]
    return time_of_day(time_ms) if is_one_day else utc_words(time_ms).removesuffix(" UTC")


def course_words(course: Course, block: OverTime | None = None) -> str:
    """Return in words what a lane over time shows, the oldest first.

    Args:
        block: of which it is a lane; None to have its moments among those of the lane alone.
    """
    whole = block or OverTime(name="", courses=(course,))
    facts = [(one.begin_ms, one.words) for one in course.stretches]
    facts += [(one.time_ms, one.words) for one in course.moments]
    words = "; ".join(f"{told(time, whole)} {what}" for time, what in sorted(facts, key=lambda fact: fact[0]))
    return f"{course.name}: {words or 'nothing is known'}"


def count_words(kinds: Sequence[str], counts: Sequence[int]) -> str:
    """Return the counts of one bar in words."""
    return ", ".join(f"{count:,} {kind}" for count, kind in zip(counts, kinds, strict=True))
