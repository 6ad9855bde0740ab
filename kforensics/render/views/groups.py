"""What `groups` shows: each group with its positions, and their history."""

from collections.abc import Iterator

from kforensics.commands.groups import Groups
from kforensics.commands.result import Result
from kforensics.damage import Absent
from kforensics.findings.rules.upkeep import OF_UPKEEP
from kforensics.reconcile.groups.replay import Change
from kforensics.reconcile.groups.state import DELIVERY_STATES, ShareState
from kforensics.reconcile.groups.views import GroupPosition, GroupView
from kforensics.render.blocks import GAP, Block, Column, Prose, Section, Table, Tone, item, text_of
from kforensics.render.frame import problem_items
from kforensics.render.view import View
from kforensics.words import counted, utc_text

MOST_GROUPS = 20
"""Groups that are shown without -v."""
MOST_POSITIONS = 20
"""Positions of a group that are shown without -v, those furthest behind."""
MOST_CHANGES = 200
"""Changes that are shown without -v."""


COLUMNS = (
    Column("partition"),
    *(Column(title, is_number=True) for title in ("committed", "log end", "lag")),
    Column("at"),
)


def blocks(result: Result[Groups], view: View) -> Iterator[Block]:
    """Yield the groups, the set-backs and, where it was asked for, the history; -v lists all of it."""
    body = result.body
    shown = body.groups[: view.most(MOST_GROUPS)]
    for group in shown:
        yield GAP
        yield from _group(group, view)
    if len(body.groups) > len(shown):
        yield Prose(f"and {len(body.groups) - len(shown)} more groups (-v lists them)")
    if body.request.history or body.request.expired:
        yield Section(title="Expired:" if body.request.expired else "History:")
        yield from _changes(body.changes(), view)
    elif body.setbacks:
        yield Section(title="Set back:")
        yield from _changes(iter(body.setbacks), view)
    for one in result.findings:
        if one.code in OF_UPKEEP:
            yield GAP
            yield Prose(f"{one.statement}. {one.meaning} {one.advice}")
    yield Prose(_complete(body), tone=Tone.QUIET)
    yield from problem_items(result.problems, result.inputs, view)


def _group(group: GroupView, view: View) -> Iterator[Block]:
    state = group.state
    if state is None:
        kind = "share partitions" if any(one.share for one in group.positions) else "commits"
        words = f"{'no members' if group.is_known_empty else 'state unknown'}: only {kind} are here"
    else:
        words = (
            f"{state.name}, {counted(state.member_count, 'member')}, generation {state.generation} ({state.type.value})"
        )
    name = text_of(group.name)
    yield Section(title=f"{name}: {words}", level=3)
    positions = sorted(
        group.positions,
        key=lambda one: (one.is_past_the_end is not True, not one.deleted_unread, not one.has_wrong_epoch, -_lag(one)),
    )
    most = view.most(MOST_POSITIONS)
    shown = group.positions if len(positions) <= most else tuple(positions[:most])
    yield Table(name=f"Positions of {name}", columns=COLUMNS, rows=[_row(one) for one in shown])
    for one in shown:
        if one.share is not None and one.share.deliveries:
            where = f"{text_of(one.topic)}-{one.partition} from {one.position.offset:,} on"
            yield item(f"{where}: {_deliveries(one.share)}")
    if len(shown) < len(group.positions):
        rest = len(group.positions) - len(shown)
        yield Prose(f"and {rest} more positions, less far behind (-v lists them)", depth=1)


def _row(one: GroupPosition) -> tuple[str, str, str, str, str]:
    end = "unknown" if isinstance(one.log_end_offset, Absent) else f"{one.log_end_offset:,}"
    lag = "unknown" if isinstance(one.lag, Absent) else f"{one.lag:,}"
    past = "  PAST THE END" if one.is_past_the_end is True else ""
    if one.deleted_unread:
        left = "" if isinstance(one.left_unread, Absent) else f", {one.left_unread:,} left"
        past = f"  BELOW THE START: {one.deleted_unread:,} deleted unread{left}"
    elif one.has_wrong_epoch:
        past = f"  LEADER EPOCH {one.position.leader_epoch}: {one.way_on}"
    elif one.is_before_markers:
        past = "  no record is unread: markers of transactions"
    return (
        f"{text_of(one.topic)}-{one.partition}",
        f"{one.position.offset:,}",
        end,
        lag,
        utc_text(one.position.committed_ms) + past,
    )


def _deliveries(share: ShareState) -> str:
    """Return how many records of each state there are, those that were delivered more than once among them."""
    counts: dict[str, int] = {}
    for one in share.deliveries:
        state = DELIVERY_STATES.get(one.state, f"state {one.state}")
        words = f"{state}, delivered {counted(one.delivered, 'time')}" if one.state == 0 else state
        counts[words] = counts.get(words, 0) + one.last_offset - one.first_offset + 1
    return "; ".join(f"{count:,} {words}" for words, count in counts.items())


def _changes(changes: Iterator[Change], view: View) -> Iterator[Block]:
    for at, change in enumerate(changes):
        if at == view.most(MOST_CHANGES):
            yield Prose("and more (-v lists all)", depth=1)
            return
        yield item(_change_words(change))


def _change_words(change: Change) -> str:
    key = change.key
    offset = f"{change.offset:,}" if change.offset is not None else "lost" if change.is_lost else "removed"
    before = "" if change.previous is None else f" (before: {change.previous:,})"
    back = ", SET BACK" if change.set_back and not change.is_lost else ""
    caught_up = "" if change.caught_up_ms is None else f"; caught up again by {utc_text(change.caught_up_ms)}"
    return (
        f"{utc_text(change.time_ms)}  {text_of(key.group)} {text_of(key.topic)}-{key.partition} {offset}{before}{back}, by {change.by} "
        f"({change.confidence}): {change.reason}{caught_up}"
    )


def _complete(body: Groups) -> str:
    since = body.complete_since_ms
    if since is Absent.UNKNOWN:
        return f"The history is not complete: parts of {body.topic.name} are missing."
    if isinstance(since, Absent):
        return ""
    return f"The history is complete since {utc_text(since)}."


def _lag(one: GroupPosition) -> int:
    return -1 if isinstance(one.lag, Absent) else one.lag
