"""A scenario as one page without scripts: one frame per step with one lane per broker, side by side to scroll through."""

from collections.abc import Iterator, Sequence
from html import escape

from kforensics.commands.result import Result
from kforensics.commands.simulate import Replays
from kforensics.damage import Absent
from kforensics.findings.answers.model import Answer
from kforensics.render.escape import escape_text
from kforensics.render.view import View
from kforensics.simulation.replica import ReplicaRow, Row
from kforensics.simulation.scenario import Replay

_STYLE = """
:root { color-scheme: light; }
body { background: #fff; color: #222; font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.scroll { overflow-x: auto; scroll-snap-type: x mandatory; } .scroll:focus-visible { outline: 3px solid #0a55ad; }
ol.frames { display: flex; gap: 1rem; list-style: none; margin: 0; padding: .5rem 0 1rem; }
ol.frames > li { border: 1px solid #ccc; border-radius: 6px; flex: 0 0 min(30rem, 86vw); padding: .75rem; scroll-snap-align: start; }
figcaption { min-height: 3em; } figure { margin: 0; } .down { opacity: .35; } text { font: 12px system-ui, sans-serif; }
.name { fill: #fff; text-anchor: middle; } rect { stroke: #fff; }
.even { fill: #2868a6; } .odd { fill: #8a5a24; } .watermark { stroke: #b02020; stroke-width: 2; } .isr { fill: #1d661d; font-weight: 600; }
@media print { .scroll { overflow: visible; } ol.frames { flex-wrap: wrap; } ol.frames > li { flex-basis: 47%; break-inside: avoid; } h1, h2, p { break-after: avoid; } rect { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""
_LANE_HEIGHT = 34
_LANE_LEFT = 120
_LANE_WIDTH = 330
_CHARACTER_WIDTH = 8


def write(result: Result[Replays], _view: View) -> Iterator[str]:
    """Return the page, piece by piece."""
    return page(result.body.replays, result.answer)


def page(found: Sequence[Replay], answer: Answer) -> Iterator[str]:
    """Yield the page of replays, with their answer under its title.

    Args:
        found: one scenario under one protocol or several; at least one.
    """
    title = escape(escape_text(found[0].scenario.title))
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    yield (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">'
        f"<title>{title}</title><style>{_STYLE}</style></head><body>\n<main>\n<h1>{title}</h1>\n<p>{escape(escape_text(answer.headline))}</p>\n"
        "<p>Each frame is one step; scroll sideways to see them all. A bar is a log, record by record where it is short; its colours "
        "change with the leader epoch, and the red line is the high watermark. A bold green name is in the ISR; a pale lane is a broker that is down.</p>\n"
    )
    for one in found:
        yield f"<h2>{escape(one.protocol.value)}</h2>\n<p>{escape(_outcome(one))}</p>\n"
        yield f'<div class="scroll" role="region" tabindex="0" aria-label="Steps, {escape(one.protocol.value)}"><ol class="frames">\n'
        most = max((replica.log_end_offset for row in one.rows for replica in row.replicas), default=1)
        for number, row in enumerate(one.rows, start=1):
            caption = escape(escape_text(row.event))
            yield f"<li><figure>{_lanes(row, number, max(most, 1))}<figcaption>{number}. {caption}</figcaption></figure></li>\n"
        yield "</ol></div>\n"
    yield "</main>\n</body></html>\n"


def _outcome(one: Replay) -> str:
    outcome = one.outcome
    lost = [f"{escape_text(record)} at {offset}" for offset, record in outcome.lost_committed[:5]]
    words = f"Lost although committed: {', '.join(lost)}." if lost else "Nothing committed is lost."
    if isinstance(outcome.diverged_at, Absent):
        return words
    return f"{words} The replicas differ from offset {outcome.diverged_at} on."


def _lanes(row: Row, step: int, most: int) -> str:
    height = _LANE_HEIGHT * len(row.replicas) + 8
    width = _LANE_LEFT + _LANE_WIDTH + 60
    lanes = "".join(_lane(row, place, replica, most) for place, replica in enumerate(row.replicas))
    return f'<svg viewBox="0 0 {width} {height}" width="100%" role="img" aria-label="{escape(escape_text(_words(row, step)))}">{lanes}</svg>'


def _words(row: Row, step: int) -> str:
    """Return what the picture of a step shows."""
    logs = [
        f"broker {one.broker_id}{' (leader)' if row.leader == one.broker_id else ''} ends at {one.log_end_offset},"
        f" high watermark {one.high_watermark}{'' if one.is_running else ', down'}"
        for one in row.replicas
    ]
    return f"Step {step}: {'; '.join(logs)}"


def _lane(row: Row, place: int, replica: ReplicaRow, most: int) -> str:
    top = place * _LANE_HEIGHT + 6

    def column(offset: int) -> float:
        return round(_LANE_LEFT + offset * _LANE_WIDTH / most, 1)

    starts = [entry.start_offset for entry in replica.epochs] or [0]
    if isinstance(replica.records, Absent):
        ends = [*starts[1:], replica.log_end_offset]
        boxes = [(start, end, turn, "") for turn, (start, end) in enumerate(zip(starts, ends, strict=True))]
    else:
        boxes = [
            (offset, offset + 1, sum(start <= offset for start in starts) - 1, record)
            for offset, record in replica.records
        ]
    bars = "".join(_box(column(start), column(end), top, turn, name) for start, end, turn, name in boxes if end > start)
    watermark = column(replica.high_watermark)
    name = f"broker {replica.broker_id}" + (" (leader)" if row.leader == replica.broker_id else "")
    down = "" if replica.is_running else ' class="down"'
    in_isr = ' class="isr"' if replica.broker_id in row.isr else ""
    return (
        f"<g{down}>"
        f'<text x="0" y="{top + 15}"{in_isr}>{escape(name)}</text>{bars}'
        f'<line class="watermark" x1="{watermark}" x2="{watermark}" y1="{top - 3}" y2="{top + 23}"/>'
        f'<text x="{column(replica.log_end_offset) + 6}" y="{top + 15}">{replica.log_end_offset}</text></g>'
    )


def _box(left: float, right: float, top: int, turn: int, name: str) -> str:
    width = round(right - left, 1)
    box = f'<rect class="{"odd" if turn % 2 else "even"}" x="{left}" y="{top}" width="{width}" height="20"/>'
    shown = escape_text(name)
    if not shown or len(shown) * _CHARACTER_WIDTH > width:
        return box
    return f'{box}<text class="name" x="{round(left + width / 2, 1)}" y="{top + 14}">{escape(shown)}</text>'
