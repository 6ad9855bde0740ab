"""The screen of `kforensics groups`: the answer, then each group with its positions, and their history."""

from collections.abc import Iterator

from rich.text import Text

from kforensics.commands.groups import Groups
from kforensics.commands.result import Result
from kforensics.damage import Absent
from kforensics.reconcile.groups.replay import Change
from kforensics.reconcile.groups.share_state import DELIVERY_STATES, ShareState
from kforensics.reconcile.groups.views import GroupPosition, GroupView
from kforensics.render.escape import escape_text
from kforensics.render.text.screen import INDENT, Line, Style, Words, columns, hanging, section
from kforensics.render.text.whole import problem_lines, whole_screen
from kforensics.render.view import View
from kforensics.words import counted, utc_text

MOST_GROUPS = 20
"""Groups that are shown without -v."""
MOST_POSITIONS = 20
"""Positions of a group that are shown without -v, those furthest behind."""
MOST_CHANGES = 200
"""Changes that are shown without -v."""


@whole_screen
def write(result: Result[Groups], view: View) -> Iterator[Line]:
    """Yield the groups, the set-backs and, where it was asked for, the history; -v lists all of it.

    Args:
        view: of the screen, and whether all is listed.
    """
    body = result.body
    shown = body.groups if view.verbose else body.groups[:MOST_GROUPS]
    for group in shown:
        yield Text()
        yield from _group_lines(group, verbose=view.verbose)
    if len(body.groups) > len(shown):
        yield Text(f"and {len(body.groups) - len(shown)} more groups (-v lists them)")
    if body.request.history or body.request.expired:
        yield from section("Expired:" if body.request.expired else "History:")
        yield from _change_lines(body.changes(), verbose=view.verbose)
    elif body.setbacks:
        yield from section("Set back:")
        yield from _change_lines(iter(body.setbacks), verbose=view.verbose)
    yield Words(_complete(body), style=Style.QUIET)
    yield from problem_lines(result.problems, result.inputs)


def _group_lines(group: GroupView, *, verbose: bool) -> Iterator[Line]:
    state = group.state
    if state is None:
        kind = "share partitions" if any(one.share for one in group.positions) else "commits"
        words = f"{'no members' if group.is_known_empty else 'state unknown'}: only {kind} are here"
    else:
        words = (
            f"{state.name}, {counted(state.member_count, 'member')}, generation {state.generation} ({state.type.value})"
        )
    yield Words(f"{escape_text(group.name)}: {words}", style=Style.HEADING)
    positions = sorted(group.positions, key=lambda one: (one.is_past_the_end is not True, -_lag(one)))
    shown = group.positions if verbose or len(positions) <= MOST_POSITIONS else tuple(positions[:MOST_POSITIONS])
    rows = [("partition", "committed", "log end", "lag", "at")] if shown else []
    rows += [_row(one) for one in shown]
    yield from columns(rows, right=frozenset({1, 2, 3}))
    for one in shown:
        if one.share is not None and one.share.deliveries:
            words = (
                f"{escape_text(one.topic)}-{one.partition} from {one.position.offset:,} on: {_deliveries(one.share)}"
            )
            yield hanging(words)
    if len(shown) < len(group.positions):
        yield Text(f"{INDENT}and {len(group.positions) - len(shown)} more positions, less far behind (-v lists them)")


def _row(one: GroupPosition) -> tuple[str, str, str, str, str]:
    end = "unknown" if isinstance(one.log_end_offset, Absent) else f"{one.log_end_offset:,}"
    lag = "unknown" if isinstance(one.lag, Absent) else f"{one.lag:,}"
    past = "  PAST THE END" if one.is_past_the_end is True else "  BELOW THE START" if one.deleted_unread else ""
    if one.is_before_markers:
        past = "  no record is unread: markers of transactions"
    return (
        f"{escape_text(one.topic)}-{one.partition}",
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


def _change_lines(changes: Iterator[Change], *, verbose: bool) -> Iterator[Line]:
    for at, change in enumerate(changes):
        if at == MOST_CHANGES and not verbose:
            yield Text(f"{INDENT}and more (-v lists all)")
            return
        yield hanging(_change_words(change))


def _change_words(change: Change) -> str:
    key = change.key
    offset = f"{change.offset:,}" if change.offset is not None else "lost" if change.is_lost else "removed"
    before = "" if change.previous is None else f" (before: {change.previous:,})"
    back = ", SET BACK" if change.set_back and not change.is_lost else ""
    caught_up = "" if change.caught_up_ms is None else f"; caught up again by {utc_text(change.caught_up_ms)}"
    return (
        f"{utc_text(change.time_ms)}  {escape_text(key.group)} {escape_text(key.topic)}-{key.partition} {offset}{before}{back}, by {change.by} "
        f"({change.confidence}): {escape_text(change.reason)}{caught_up}"
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
