"""Logs as lanes of a picture: places and lengths for SVG, with words for every fact that a colour shows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kforensics.evidence.model import Input
from kforensics.reconcile.history.outline import LogOutline
from kforensics.reconcile.incident.model import LossEntry, PartitionIncident
from kforensics.render.escape import shorten
from kforensics.render.lanes import Lane, scale_of
from kforensics.units import EpochEntry
from kforensics.words import counted

WIDTH = 960
LABEL_WIDTH = 150
BAR_WIDTH = 560
ROW_HEIGHT = 34
HEADING_HEIGHT = 30
BAR_HEIGHT = 20
AXIS_HEIGHT = 26
NARROWEST_LABEL = 26
MOST_LANES = 24
MOST_LABEL = 60
"""The most characters of a snapshot's name in a picture."""

Placing = Callable[[int], float]
"""A function from an offset to its place from the left."""

_CERTAINTY_WORDS = {"certain": "committed", "possible": "possibly committed", "no": "not committed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A rectangle: its place, width and kind, and a label if there is room."""

    x: float
    width: float
    kind: str
    label: str = ""
    label_x: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnLane:
    """One log; `words` describe the drawing."""

    y: int
    name: str
    pieces: tuple[Piece, ...]
    lost: tuple[Piece, ...]
    watermark: float | None
    ends: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """All logs of one snapshot, or of now."""

    y: int
    name: str
    lanes: tuple[DrawnLane, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """The picture of one partition."""

    partition: str
    height: int
    moments: tuple[Moment, ...]
    ticks: tuple[tuple[float, int], ...]
    """The place and the offset of each tick."""
    title: str
    description: str
    summary: str
    """The records that the leader does not hold, in a few words."""
    left_out: int
    """The number of logs that are not drawn."""


def draw_figure(incident: PartitionIncident, inputs: Sequence[Input]) -> Figure:
    """Draw the logs of a partition before and after to one scale; the part that all logs share is shortened."""
    logs = _worth_drawing(incident)
    firsts = [loss.offsets.first for loss in incident.losses]
    scale = scale_of(
        [
            Lane(start=log.log_start_offset, end=log.log_end_offset, truncated_from=min(firsts, default=None))
            for log in logs[:MOST_LANES]
        ],
        BAR_WIDTH * 10,
    )

    def place(offset: int) -> float:
        return LABEL_WIDTH + scale.column(offset) / 10

    moments: list[Moment] = []
    y = 0
    for rank in sorted({log.rank for log in logs[:MOST_LANES]}):
        there = [log for log in logs[:MOST_LANES] if log.rank == rank]
        heading = y
        y += HEADING_HEIGHT
        lanes = []
        for log in there:
            lanes.append(_lane(log, incident, place, y))
            y += ROW_HEIGHT
        moments.append(Moment(y=heading, name=_moment_name(there, inputs), lanes=tuple(lanes)))
    name = str(incident.partition)
    words = [f"{moment.name}: {'; '.join(lane.words for lane in moment.lanes)}." for moment in moments]
    return Figure(
        partition=name,
        height=y + AXIS_HEIGHT,
        moments=tuple(moments),
        ticks=tuple((place(offset), offset) for offset in _ticks(scale.first, scale.last)),
        title=f"Replicas of {name} before and after",
        description=" ".join(words),
        summary=_summary(incident.losses),
        left_out=max(0, len(logs) - MOST_LANES),
    )


def _worth_drawing(incident: PartitionIncident) -> list[LogOutline]:
    """Return the logs without the snapshots in which all logs are as in the snapshot before."""
    by_rank: dict[int, list[LogOutline]] = {}
    for log in incident.logs:
        by_rank.setdefault(log.rank, []).append(log)
    kept: list[LogOutline] = []
    before: list[tuple[object, ...]] = []
    for _rank, logs in sorted(by_rank.items()):
        shapes = [(log.broker_id, log.log_start_offset, log.log_end_offset, log.epochs, log.is_remnant) for log in logs]
        if shapes != before or any(log.is_final for log in logs):
            kept += logs
        before = list(shapes)
    return kept


def _moment_name(logs: Sequence[LogOutline], inputs: Sequence[Input]) -> str:
    if logs[0].is_final:
        return "Now"
    paths = sorted({inputs[log.input].path.rstrip("/") for log in logs if log.input < len(inputs)})
    parents = {path.rpartition("/")[0] for path in paths}
    is_one_snapshot = len(paths) > 1 and len(parents) == 1
    names = (
        [parents.pop().rpartition("/")[2]] if is_one_snapshot else ["/".join(path.split("/")[-2:]) for path in paths]
    )
    return f"Before: {shorten(', '.join(names), MOST_LABEL)}"


def _summary(losses: Sequence[LossEntry]) -> str:
    count = sum(loss.records for loss in losses)
    if not count:
        return ""
    first, last = min(loss.offsets.first for loss in losses), max(loss.offsets.last for loss in losses)
    return f"{counted(count, 'record')} not in the leader's log, offsets {first} to {last}"


def _lane(log: LogOutline, incident: PartitionIncident, place: Placing, y: int) -> DrawnLane:
    owner = f"broker {log.broker_id}" if isinstance(log.broker_id, int) else "unknown broker"
    extra = "deleted files" if log.is_remnant else "" if log.state == "live" else log.state
    if log.is_final and not log.is_remnant and log.state == "live" and log.broker_id == incident.leader:
        extra = "leader"
    name = f"{owner} ({extra})" if extra else owner
    lost = [loss for loss in incident.losses if _holds(log, loss)]
    count = sum(loss.records for loss in lost)
    checkpointed = f"HW {log.high_watermark}" if isinstance(log.high_watermark, int) else ""
    return DrawnLane(
        y=y,
        name=name,
        pieces=_terms(log, place, kept_until=min((loss.offsets.first for loss in lost), default=log.log_end_offset)),
        lost=tuple(_lost_piece(log, loss, place) for loss in lost),
        watermark=place(log.high_watermark)
        if isinstance(log.high_watermark, int) and log.log_start_offset <= log.high_watermark <= log.log_end_offset
        else None,
        ends=", ".join(
            part
            for part in (f"end {log.log_end_offset}", checkpointed, f"leader lacks {count:,}" if count else "")
            if part
        ),
        words=_lane_words(log, name, lost),
    )


def _holds(log: LogOutline, loss: LossEntry) -> bool:
    return (
        any(holder.input == log.input and holder.path == log.path for holder in loss.held_by)
        and loss.offsets.first < log.log_end_offset
        and loss.offsets.last >= log.log_start_offset
    )


def _terms(log: LogOutline, place: Placing, *, kept_until: int) -> tuple[Piece, ...]:
    entries = log.epochs or (EpochEntry(-1, log.log_start_offset),)
    pieces = []
    for at, entry in enumerate(entries):
        start = max(entry.start_offset, log.log_start_offset)
        end = entries[at + 1].start_offset if at + 1 < len(entries) else log.log_end_offset
        width = place(min(end, log.log_end_offset)) - place(start)
        if width <= 0:
            continue
        room = min(width, place(kept_until) - place(start))
        label = f"e{entry.leader_epoch}" if entry.leader_epoch >= 0 and room >= NARROWEST_LABEL else ""
        kind = "even" if at % 2 == 0 else "odd"
        pieces.append(Piece(x=place(start), width=width, kind=kind, label=label, label_x=place(start) + room / 2))
    return tuple(pieces)


def _lost_piece(log: LogOutline, loss: LossEntry, place: Placing) -> Piece:
    start = place(max(loss.offsets.first, log.log_start_offset))
    end = place(min(loss.offsets.last + 1, log.log_end_offset))
    return Piece(x=start, width=max(end - start, 2), kind=loss.was_committed)


def _lane_words(log: LogOutline, name: str, losses: Sequence[LossEntry]) -> str:
    if log.log_end_offset <= log.log_start_offset:
        return f"{name} is empty, log end {log.log_end_offset}"
    words = f"{name} holds offsets {log.log_start_offset} to {log.log_end_offset - 1}"
    terms = ", ".join(f"epoch {entry.leader_epoch} from {entry.start_offset}" for entry in log.epochs[:20])
    lost = ", ".join(
        f"{loss.offsets.first} to {loss.offsets.last} ({_CERTAINTY_WORDS[loss.was_committed]})" for loss in losses[:20]
    )
    return words + (f", {terms}" if terms else "") + (f"; the leader lacks {lost}" if lost else "")


def _ticks(first: int, last: int) -> list[int]:
    """Return both ends and some round offsets between them."""
    spread = last - first
    step = next(size * 10**power for power in range(20) for size in (1, 2, 5) if size * 10**power * 7 > spread)
    inner = range(-(-first // step) * step, last, step)
    return [first, *(offset for offset in inner if min(offset - first, last - offset) * 12 > spread), last]
