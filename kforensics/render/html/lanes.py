"""Logs as lanes of a picture: places and widths in percent, so that a lane fits every screen, with words for every fact that a colour shows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.model import Citation, Input
from kforensics.reconcile.history.log_copies import LogOutline
from kforensics.reconcile.incident.model import LeaderBasis, LossEntry, PartitionIncident
from kforensics.reconcile.observed.leadership import Election
from kforensics.render.escape import shorten
from kforensics.render.lanes import Lane, scale_of
from kforensics.units import EpochEntry
from kforensics.words import counted, time_of_day, utc_text

STEPS = 10_000
"""Places on a lane: hundredths of a percent."""
COLOURS = 6
"""Colours of leader epochs; the page has a style for each."""
MOST_LANES = 120
MOST_TERMS = 60
"""Leader epochs that are listed below a picture."""
MOST_LABEL = 60
"""The most characters of a snapshot's name in a picture."""
TIME_ROOM = 18.0
"""Percent of a narrow lane that the time of an election takes."""

Placing = Callable[[int], float]
"""A function from an offset to its place from the left, in percent."""

_CERTAINTY_WORDS = {"certain": "committed", "possible": "possibly committed", "no": "not committed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a lane: its place and width in percent, its kind, and a label, which has `label_width` percent of the piece."""

    left: float
    width: float
    kind: str
    label: str = ""
    label_width: float = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionMark:
    """An election at the offset where its leader epoch begins."""

    left: float
    is_unclean: bool
    time: str
    """The time of day, where there is room for it on this lane."""
    ends_there: bool
    """Whether the time is written to the left of its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnLane:
    """One log; `words` describe the drawing."""

    name: str
    pieces: tuple[Piece, ...]
    lost: tuple[Piece, ...]
    elections: tuple[ElectionMark, ...]
    watermark: float | None
    is_shortened: bool
    """The log begins before what is drawn."""
    ends: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All logs of one snapshot, or of now."""

    name: str
    lanes: tuple[DrawnLane, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A leader epoch: its colour, and who began to lead in it when, as far as any input shows."""

    epoch: int
    kind: str
    time: str
    words: str
    is_unclean: bool
    citations: tuple[Citation, ...]


class Tick(NamedTuple):
    """An offset below the lanes."""

    left: float
    offset: int
    is_end: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """The picture of one partition."""

    snapshots: tuple[Snapshot, ...]
    ticks: tuple[Tick, ...]
    terms: tuple[Term, ...]
    more_terms: int
    left_out: int
    """The number of logs that are not drawn."""


def draw_figure(incident: PartitionIncident, inputs: Sequence[Input]) -> Figure:
    """Draw every log of a partition, snapshot by snapshot, to one scale; the part that all logs share is shortened.

    Args:
        incident: with its logs, the oldest first.
    """
    logs = _within(incident.logs)
    firsts = [loss.offsets.first for loss in incident.losses]
    scale = scale_of(
        [
            Lane(start=log.log_start_offset, end=log.log_end_offset, truncated_from=min(firsts, default=None))
            for log in logs
        ],
        STEPS,
    )

    def place(offset: int) -> float:
        return scale.column(offset) * 100 / STEPS

    terms = _terms(incident, logs)
    drawing = _Drawing(incident, place, scale.first, {term.epoch: term.kind for term in terms}, _elections(incident))
    snapshots = []
    for rank in sorted({log.rank for log in logs}):
        there = [log for log in logs if log.rank == rank]
        snapshots.append(
            Snapshot(name=_snapshot_name(there, inputs), lanes=tuple(_lane(log, drawing) for log in there))
        )
    ticks = _ticks(scale.first, scale.last)
    return Figure(
        snapshots=tuple(snapshots),
        ticks=tuple(Tick(place(offset), offset, offset in {ticks[0], ticks[-1]}) for offset in ticks),
        terms=terms[:MOST_TERMS],
        more_terms=max(0, len(terms) - MOST_TERMS),
        left_out=len(incident.logs) - len(logs),
    )


def loss_summary(losses: Sequence[LossEntry]) -> str:
    """Return the records that the leader does not hold, in a few words; empty where it holds all."""
    count = sum(loss.records for loss in losses)
    if not count:
        return ""
    first, last = min(loss.offsets.first for loss in losses), max(loss.offsets.last for loss in losses)
    where = f"offset {first}" if first == last else f"offsets {first} to {last}"
    return f"{counted(count, 'record')} not in the leader's log, {where}"


class _Drawing(NamedTuple):
    """What all lanes of a partition share."""

    incident: PartitionIncident
    place: Placing
    first: int
    """The first offset that is drawn."""
    kinds: dict[int, str]
    elections: dict[int, Election]


def _within(logs: Sequence[LogOutline]) -> list[LogOutline]:
    """Return the logs that are drawn: those of now first, then the newest snapshots."""
    kept = sorted(logs, key=lambda log: (log.is_final, log.rank), reverse=True)[:MOST_LANES]
    chosen = set(map(id, kept))
    return [log for log in logs if id(log) in chosen]


def _elections(incident: PartitionIncident) -> dict[int, Election]:
    """Return the election of each leader epoch; a leader that only came back keeps its epoch."""
    account = incident.account
    found: dict[int, Election] = {}
    for one in account.elections if account is not None else ():
        if one.before is not one.state:
            found.setdefault(one.state.leader_epoch, one)
    return found


def _terms(incident: PartitionIncident, logs: Sequence[LogOutline]) -> tuple[Term, ...]:
    elections = _elections(incident)
    epochs = {entry.leader_epoch for log in logs for entry in log.epochs if entry.leader_epoch >= 0}
    # Colours are for epochs that some lane shows.
    kinds = {epoch: f"c{at % COLOURS}" for at, epoch in enumerate(sorted(epochs))}
    terms = []
    for epoch in sorted(epochs | elections.keys()):
        election = elections.get(epoch)
        time_ms = election.state.time_ms if election is not None else Absent.UNKNOWN
        terms.append(
            Term(
                epoch=epoch,
                kind=kinds.get(epoch, "plain"),
                time=utc_text(time_ms) if isinstance(time_ms, int) else "",
                words=_election_words(election, is_on_disk=epoch in epochs),
                is_unclean=election is not None and election.state.unclean,
                citations=() if election is None else (election.state.citation,),
            )
        )
    return tuple(terms)


def _election_words(election: Election | None, *, is_on_disk: bool) -> str:
    if election is None:
        return "no input shows who led"
    state, before = election.state, election.before
    how = " by unclean election" if state.unclean else ""
    words = f"broker {state.leader} becomes leader{how}"
    if state.unclean and before is not None and isinstance(before.isr, frozenset):
        words += f", the ISR was {sorted(before.isr)}" if before.isr else ", the ISR was empty"
    return words if is_on_disk else f"{words}; no log given has records of this epoch"


def _snapshot_name(logs: Sequence[LogOutline], inputs: Sequence[Input]) -> str:
    if logs[0].is_final:
        return "Now"
    paths = sorted({inputs[log.input].path.rstrip("/") for log in logs if log.input < len(inputs)})
    parents = {path.rpartition("/")[0] for path in paths}
    is_one_snapshot = len(paths) > 1 and len(parents) == 1
    names = (
        [parents.pop().rpartition("/")[2]] if is_one_snapshot else ["/".join(path.split("/")[-2:]) for path in paths]
    )
    return f"Before: {shorten(', '.join(names), MOST_LABEL)}"


def _leader_mark(incident: PartitionIncident) -> str:
    if incident.is_leader_known:
        return "leader"
    return "leader, guessed" if incident.leader_basis is LeaderBasis.LOG else "leader?"


def _lane(log: LogOutline, drawing: _Drawing) -> DrawnLane:
    incident, place = drawing.incident, drawing.place
    owner = f"broker {log.broker_id}" if isinstance(log.broker_id, int) else "unknown broker"
    extra = "deleted files" if log.is_remnant else "" if log.state == "live" else log.state
    if log.is_final and not log.is_remnant and log.state == "live" and log.broker_id == incident.leader:
        extra = _leader_mark(incident)
    name = f"{owner} ({extra})" if extra else owner
    lost = [loss for loss in incident.losses if _holds(log, loss)]
    count = sum(loss.records for loss in lost)
    checkpointed = f"HW {log.high_watermark}" if isinstance(log.high_watermark, int) else ""
    return DrawnLane(
        name=name,
        pieces=_pieces(log, drawing, kept_until=min((loss.offsets.first for loss in lost), default=log.log_end_offset)),
        lost=tuple(_lost_piece(log, loss, place) for loss in lost),
        elections=_moments(log, drawing),
        watermark=place(log.high_watermark)
        if isinstance(log.high_watermark, int) and log.log_start_offset <= log.high_watermark <= log.log_end_offset
        else None,
        is_shortened=log.log_start_offset < drawing.first < log.log_end_offset,
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


def _pieces(log: LogOutline, drawing: _Drawing, *, kept_until: int) -> tuple[Piece, ...]:
    place = drawing.place
    entries = log.epochs or (EpochEntry(-1, log.log_start_offset),)
    pieces = []
    for at, entry in enumerate(entries):
        start = max(entry.start_offset, log.log_start_offset)
        end = entries[at + 1].start_offset if at + 1 < len(entries) else log.log_end_offset
        width = place(min(end, log.log_end_offset)) - place(start)
        if width <= 0:
            continue
        room = max(0.0, min(width, place(kept_until) - place(start)))
        pieces.append(
            Piece(
                left=place(start),
                width=width,
                kind=drawing.kinds.get(entry.leader_epoch, "plain"),
                label=f"e{entry.leader_epoch}" if entry.leader_epoch >= 0 else "",
                label_width=room * 100 / width,
            )
        )
    return tuple(pieces)


def _lost_piece(log: LogOutline, loss: LossEntry, place: Placing) -> Piece:
    start = place(max(loss.offsets.first, log.log_start_offset))
    end = place(min(loss.offsets.last + 1, log.log_end_offset))
    return Piece(left=min(start, 99.5), width=max(end - start, 0.5), kind=loss.was_committed)


def _moments(log: LogOutline, drawing: _Drawing) -> tuple[ElectionMark, ...]:
    """Return the elections whose leader epoch begins on this log; the time of day stands on the log of whom they elected."""
    there = [
        (drawing.place(entry.start_offset), drawing.elections[entry.leader_epoch].state)
        for entry in log.epochs
        if entry.leader_epoch in drawing.elections
        and max(drawing.first, log.log_start_offset) <= entry.start_offset <= log.log_end_offset
    ]
    moments, free_from = [], 0.0
    for at, (left, state) in enumerate(there):
        following = there[at + 1][0] if at + 1 < len(there) else 100.0
        ends_there = following - left < TIME_ROOM <= left - free_from
        has_room = ends_there or following - left >= TIME_ROOM
        is_shown = has_room and state.leader == log.broker_id and isinstance(state.time_ms, int)
        moments.append(
            ElectionMark(
                left=left,
                is_unclean=state.unclean,
                time=time_of_day(state.time_ms).partition(".")[0]
                if is_shown and isinstance(state.time_ms, int)
                else "",
                ends_there=ends_there,
            )
        )
        free_from = left + (TIME_ROOM if is_shown and not ends_there else 0.0)
    return tuple(moments)


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
