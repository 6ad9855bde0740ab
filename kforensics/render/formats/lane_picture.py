"""Lanes over offsets and over time as parts of a page: places and widths in percent, so that a lane fits every screen, with words for every fact that a colour shows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html import escape

from kforensics.render.blocks import Bars, Course, Lane, Lanes, Moment, OverTime, Reference, Stretch, Tone
from kforensics.render.escape import escape_text
from kforensics.render.lanes import bounds_of, count_words, course_words, lane_words, scale_of, span_words, told
from kforensics.words import utc_text

STEPS = 10_000
"""Places on a lane: hundredths of a percent."""
COLOURS = 6
"""Colours of leader epochs; the style has a rule for each."""
TIME_ROOM = 18.0
"""Percent of a narrow lane that the time of an election takes."""

Placing = Callable[[int], float]
"""A function from an offset or a time to its place from the left, in percent."""

_LEGEND = (
    ("epoch c0", "leader epochs, labelled e0, e1 …"),
    ("lost certain", "committed, not in the leader's log"),
    ("lost possible", "possibly committed, not in it"),
    ("lost no", "not committed, not in it"),
    ("cut", "will be truncated"),
    ("differs", "other content than the leader's"),
    ("elected at", "election"),
    ("elected unclean at", "unclean election"),
    ("watermark at", "high watermark (HW) as checkpointed"),
)
LEGEND = (
    '<ul class="legend">'
    + "".join(
        f'<li><span class="swatch" aria-hidden="true"><span class="{kind}"></span></span>{escape(words)}</li>'
        for kind, words in _LEGEND
    )
    + "</ul>\n"
)


class Places:
    """The places of a page, each a class of its style: the policy of a page allows no style at an element."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}

    def at(self, left: float, width: float | None = None) -> str:
        """Return the class of a place, in percent of the lane."""
        key = (f"{left:.2f}", "" if width is None else f"{width:.2f}")
        return self._names.setdefault(key, f"p{len(self._names)}")

    def rules(self) -> str:
        """Return the rules of all places."""
        return "".join(
            f".{name}{{left:{left}%{f';width:{width}%' if width else ''}}}\n"
            for (left, width), name in self._names.items()
        )


def draw(block: Lanes, places: Places, name: Callable[[str], str]) -> tuple[str, Mapping[int, str]]:
    """Return a picture, and the colour of each leader epoch in it."""
    every = [lane for _, lanes in block.moments for lane in lanes if not lane.instead]
    scale = scale_of(every, STEPS)
    if block.in_frames:
        scale = replace(scale, first=0)
    epochs = sorted({entry.leader_epoch for lane in every for entry in lane.epochs if entry.leader_epoch >= 0})
    kinds = {epoch: f"c{at % COLOURS}" for at, epoch in enumerate(epochs)}

    def place(offset: int) -> float:
        return scale.column(offset) * 100 / STEPS

    def lanes_of(lanes: Sequence[Lane]) -> str:
        return "".join(_lane(lane, place, scale.first, kinds, places) for lane in lanes)

    if block.in_frames:
        frames = "".join(
            f'<li><figure><div class="lanes">{lanes_of(lanes)}</div><figcaption>{number}. {_text(moment)}</figcaption></figure></li>\n'
            for number, (moment, lanes) in enumerate(block.moments, 1)
        )
        return (
            f'<div class="scroll frames" role="region" tabindex="0" aria-label="{name(f"Steps, {block.name}")}"><ol>{frames}</ol></div>\n',
            kinds,
        )
    moments = "".join(
        f'<div class="snapshot" role="group" aria-label="{name(f"{block.name}, {moment}" if moment else block.name)}">'
        f"{_when(moment)}\n{lanes_of(lanes)}</div>\n"
        for moment, lanes in block.moments
    )
    marks = ticks(scale.first, scale.last)
    axis = "".join(
        f'<span class="tick{" end" if offset in {marks[0], marks[-1]} else ""}{" last" if at == len(marks) - 1 else ""} {places.at(place(offset))}">{offset}</span>'
        for at, offset in enumerate(marks)
    )
    words = "".join(
        f"<li>{f'{_text(moment)}: ' if moment else ''}<ul>{''.join(f'<li>{_text(lane_words(lane))}</li>' for lane in lanes)}</ul></li>"
        for moment, lanes in block.moments
    )
    picture = (
        f'<div class="lanes">\n{moments}<div class="lane axis"><span class="owner">offset</span><div class="ticks">{axis}</div></div>\n</div>\n'
        f'<details class="bulk"><summary>In words<span class="hidden">: {name(f"the lanes of {block.name}")}</span></summary><ul>{words}</ul></details>\n'
    )
    return picture, kinds


def _when(moment: str) -> str:
    return f'<p class="when">{_text(moment)}</p>' if moment else ""


def _text(words: str) -> str:
    return escape(escape_text(words))


def _lane(lane: Lane, place: Placing, first: int, kinds: Mapping[int, str], places: Places) -> str:
    owner = f'<span class="owner{" in-sync" if lane.tone is Tone.GOOD else ""}">{_text(lane.name)}</span>'
    if lane.instead:
        return f'<div class="lane"><span class="owner">{_text(lane.name)}</span><span class="instead">{_text(lane.instead)}</span></div>\n'
    parts = [*_pieces(lane, place, kinds, places)]
    for run, kind in lane.lost:
        left, end = place(max(run.first, lane.start)), place(min(run.last + 1, lane.end))
        left = min(left, 99.5)
        parts.append(f'<span class="lost {kind} {places.at(left, max(end - left, 0.5))}"></span>')
    for offset, kind in ((lane.differs_from, "differs"), (lane.truncated_from, "cut")):
        if offset is not None and offset < lane.end:
            left = min(place(max(offset, lane.start)), 99.5)
            parts.append(f'<span class="{kind} {places.at(left, max(place(lane.end) - left, 0.5))}"></span>')
    if lane.watermark is not None and lane.start <= lane.watermark <= lane.end:
        parts.append(f'<span class="watermark {places.at(place(lane.watermark))}"></span>')
    parts += _elections(lane, place, first, places)
    classes = ["track"]
    classes += ["shortened"] if lane.start < first < lane.end else []
    classes += ["elections"] if lane.elections else []
    classes += ["timed"] if any("</span></span>" in part and "elected" in part for part in parts) else []
    return (
        f'<div class="lane{" pale" if lane.tone is Tone.QUIET else ""}">{owner}<span class="ends">{_text(lane.note)}</span>'
        f'<div class="{" ".join(classes)}" role="img" aria-label="{_text(lane_words(lane))}">{"".join(parts)}</div></div>\n'
    )


def _pieces(lane: Lane, place: Placing, kinds: Mapping[int, str], places: Places) -> list[str]:
    kept = min([run.first for run, _ in lane.lost] + [lane.end])
    pieces: list[tuple[int, int, int, str]] = []
    for at, entry in enumerate(lane.epochs):
        end = lane.epochs[at + 1].start_offset if at + 1 < len(lane.epochs) else lane.end
        label = f"e{entry.leader_epoch}" if entry.leader_epoch >= 0 else ""
        pieces.append((max(entry.start_offset, lane.start), min(end, lane.end), entry.leader_epoch, label))
    if not pieces:
        pieces = [(lane.start, lane.end, -1, "")]
    if lane.records:
        pieces = [
            (offset, offset + 1, max((epoch for start, _, epoch, _ in pieces if start <= offset), default=-1), record)
            for offset, record in lane.records
        ]
    drawn = []
    for start, end, epoch, label in pieces:
        width = place(end) - place(start)
        if width <= 0:
            continue
        room = max(0.0, min(width, place(kept) - place(start))) * 100 / width
        term = f'<span class="term {places.at(0, room)}"><b>{_text(label)}</b></span>' if label and room > 0 else ""
        drawn.append(f'<span class="epoch {kinds.get(epoch, "plain")} {places.at(place(start), width)}">{term}</span>')
    return drawn


def _elections(lane: Lane, place: Placing, first: int, places: Places) -> list[str]:
    """Return the elections of a lane; a time of day stands where there is room for it."""
    there = [(place(one.offset), one) for one in lane.elections if max(first, lane.start) <= one.offset <= lane.end]
    drawn, free_from = [], 0.0
    for at, (left, one) in enumerate(there):
        following = there[at + 1][0] if at + 1 < len(there) else 100.0
        ends_there = following - left < TIME_ROOM <= left - free_from
        is_shown = bool(one.time) and (ends_there or following - left >= TIME_ROOM)
        classes = f"elected{' unclean' if one.is_unclean else ''}{' before' if ends_there else ''} {places.at(left)}"
        drawn.append(f'<span class="{classes}">{f"<span>{one.time}</span>" if is_shown else ""}</span>')
        free_from = left + (TIME_ROOM if is_shown and not ends_there else 0.0)
    return drawn


def ticks(first: int, last: int) -> list[int]:
    """Return both ends and some round offsets between them."""
    spread = last - first
    step = next(size * 10**power for power in range(20) for size in (1, 2, 5) if size * 10**power * 7 > spread)
    inner = range(-(-first // step) * step, last, step)
    return [first, *(offset for offset in inner if min(offset - first, last - offset) * 12 > spread), last]


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


def draw_over_time(
    block: OverTime, places: Places, name: Callable[[str], str], cite: Callable[[Reference], str]
) -> str:
    """Return the picture; `name` makes names that no other part of the page has, and `cite` a citation a part of the page."""
    first, last = bounds_of(block)
    spread = max(last - first, 1)

    def place(time_ms: int) -> float:
        return (min(max(time_ms, first), last) - first) * 100 / spread

    moments = sorted(
        ((course.name, moment) for course in block.courses for moment in course.moments), key=lambda one: one[1].time_ms
    )
    numbers = {id(moment): number for number, (_, moment) in enumerate(moments, 1)}
    lanes = "".join(_course(course, place, places, numbers) for course in block.courses)
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


def _course(course: Course, place: Placing, places: Places, numbers: dict[int, int]) -> str:
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


BAR_WIDTH, BAR_ROOM, BARS_HEIGHT = 12, 16, 120


def draw_bars(block: Bars, name: Callable[[str], str]) -> str:
    """Return counts as a picture, with each bar in words."""
    most = max((sum(counts) for _, counts in block.moments), default=0) or 1
    whole = len(block.moments) * BAR_ROOM
    told = [f"{moment}: {count_words(block.kinds, counts)}" for moment, counts in block.moments]
    drawn = []
    for at, (_, counts) in enumerate(block.moments):
        parts, below = "", 0.0
        for number, count in enumerate(counts):
            height = BARS_HEIGHT * count / most
            below += height
            if count:
                parts += f'<rect class="k{number}" x="{at * BAR_ROOM}" y="{BARS_HEIGHT - below:.1f}" width="{BAR_WIDTH}" height="{height:.1f}"/>'
        drawn.append(f"<g><title>{_text(told[at])}</title>{parts}</g>")
    ends = [moment for moment, _ in block.moments][:: max(len(block.moments) - 1, 1)]
    axis = "".join(f"<span>{_text(one)}</span>" for one in ends)
    kinds = "".join(
        f'<li><svg width="12" height="12" aria-hidden="true"><rect class="k{number}" width="12" height="12"/></svg>{_text(kind)}</li>'
        for number, kind in enumerate(block.kinds)
    )
    words = "".join(f"<li>{_text(one)}</li>" for one in told)
    return (
        f'<figure class="bars"><svg role="img" aria-label="{name(f"{block.name}: {len(block.moments)} audits, at most {most:,} findings")}" '
        f'viewBox="0 0 {whole} {BARS_HEIGHT}" height="{BARS_HEIGHT}" preserveAspectRatio="none">{"".join(drawn)}</svg>\n'
        f'<figcaption class="quiet">{axis}</figcaption></figure>\n<ul class="legend">{kinds}</ul>\n'
        f'<details class="bulk"><summary>In words<span class="hidden">: {name(block.name)}</span></summary><ul>{words}</ul></details>\n'
    )
