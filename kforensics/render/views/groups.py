"""What `groups` shows: each group with its positions, and their history."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, chain, islice

from kforensics.commands.groups import Groups
from kforensics.commands.result import Result
from kforensics.damage import Absent
from kforensics.evidence.coordinators.group_log import Name
from kforensics.findings.rules.upkeep import OF_UPKEEP
from kforensics.reconcile.groups.replay import Change
from kforensics.reconcile.groups.state import DELIVERY_STATES, ShareState
from kforensics.reconcile.groups.views import GroupPosition, GroupView
from kforensics.render.blocks import (
    GAP,
    Block,
    Column,
    Course,
    Look,
    Moment,
    OverTime,
    Prose,
    Section,
    Stretch,
    Table,
    Tone,
    item,
    text_of,
)
from kforensics.render.frame import References, problem_items
from kforensics.render.view import View
from kforensics.words import counted, form, utc_text

MOST_GROUPS = 20
"""Groups that are shown without -v."""
MOST_POSITIONS = 20
"""Positions of a group that are shown without -v, those furthest behind."""
MOST_CHANGES = 200
"""Changes that are shown without -v."""
MOST_DRAWN = 200_000
"""Changes that a page looks at for what it draws."""
MOST_MOMENTS = 100
"""Moments of a group that a page draws, and stretches of one of its positions."""


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
    if view.page:
        yield from _pictures(body, result)
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


def _changes_by_group(body: Groups) -> dict[Name, list[Change]]:
    """Return what a page draws: every change where the history was asked for or a position was set back, by group."""
    found: dict[Name, list[Change]] = defaultdict(list)
    if body.setbacks or body.request.history:
        for change in islice(body.changes(), MOST_DRAWN):
            found[change.key.group].append(change)
    return found


def _pictures(body: Groups, result: Result[Groups]) -> Iterator[Block]:
    """Yield the positions of each group over time that has any, those of groups of which only changes are left among them."""
    drawn, refer = _changes_by_group(body), References(result.inputs)
    shown = {group.name: group.positions for group in body.groups}
    names = dict.fromkeys((*(one.key.group for one in body.setbacks), *shown, *drawn))
    every = (_over_time(name, shown.get(name, ()), drawn.get(name, ()), refer) for name in names)
    pictures = list(islice(chain.from_iterable(every), 2 * MOST_GROUPS))
    if pictures:
        yield Section(title="Positions over time")
    yield from pictures


def _over_time(
    name: Name, positions: Sequence[GroupPosition], changes: Sequence[Change], refer: References
) -> Iterator[Block]:
    """Yield the positions of a group over time, a lane for each that was set back, removed or passed by a log start; none where nothing happened."""
    by_key: dict[tuple[Name, int], list[Change]] = defaultdict(list)
    for change in sorted(changes, key=lambda one: one.time_ms):
        by_key[change.key.topic, change.key.partition].append(change)
    times = [one.time_ms for one in changes] + [one.position.committed_ms for one in positions]
    removals = {(one.topic, one.partition): one.removal for one in positions if one.removal is not None}
    times += [one.since_ms for one in removals.values() if isinstance(one.since_ms, int)]
    courses = []
    for key in sorted({*by_key, *removals}, key=lambda one: (text_of(one[0]), one[1])):
        stretches, moments = _course(by_key[key], max(times), refer)
        removal = removals.get(key)
        if removal is not None and isinstance(removal.since_ms, int):
            words = f"the log start passed its position, by {removal.words}"
            moments.append(
                Moment(time_ms=removal.since_ms, words=words, is_grave=True, references=refer.of(removal.citations))
            )
        if moments:
            courses.append(Course(name=f"{text_of(key[0])}-{key[1]}", stretches=stretches, moments=moments))
    if courses:
        drawn = _bounded(courses[:MOST_POSITIONS])
        left = sum(len(one.moments) for one in courses) - sum(len(one.moments) for one in drawn)
        yield Section(title=text_of(name), level=3)
        yield OverTime(name=text_of(name), courses=drawn, legend=_LEGEND)
        if left:
            words = f"{counted(left, 'more moment')}, less grave or earlier, {form(left, 'is', 'are')} not drawn"
            others = len(courses) - len(drawn)
            which = f", those of {counted(others, 'more position')} among them" if others else ""
            yield Prose(f"{words}{which}: kforensics groups --history --format jsonl lists all.", depth=1)


def _bounded(courses: Sequence[Course]) -> list[Course]:
    """Return lanes with no more than a page can show: the grave moments and the latest, and what was before the last stretches in one."""
    moments = sorted(
        (one for each in courses for one in each.moments), key=lambda one: (not one.is_grave, -one.time_ms)
    )
    kept = {id(one) for one in moments[:MOST_MOMENTS]}
    found = []
    for each in courses:
        stretches, first = list(each.stretches), list(each.stretches[:-MOST_MOMENTS])
        if first:
            words = f"{counted(len(first), 'stretch', 'stretches')}, not drawn one by one"
            one = Stretch(begin_ms=first[0].begin_ms, end_ms=first[-1].end_ms, words=words, look=Look.FOLLOWS)
            stretches = [one, *stretches[-MOST_MOMENTS:]]
        shown = [one for one in each.moments if id(one) in kept]
        found.append(replace(each, stretches=stretches, moments=shown))
    return found


_LEGEND = (
    (Look.FOLLOWS, "goes on from where it was"),
    (Look.BEHIND, "set back, and not yet where it had been"),
    (Look.AWAY, "without a position"),
)


def _course(changes: Sequence[Change], end_ms: int, refer: References) -> tuple[list[Stretch], list[Moment]]:
    """Return the stretches of one position, and what set it back or removed it."""
    stretches, moments, goal = list[Stretch](), list[Moment](), 0
    look: Look | None = None
    begin_ms = first = last = 0
    # The highest offset from each change on: below what was before a set-back, it is still behind.
    later = list(accumulate((one.offset or 0 for one in reversed(changes)), max))[::-1]

    def close(time_ms: int) -> None:
        words = "no position" if look is Look.AWAY else f"{first:,}" if first == last else f"{first:,} to {last:,}"
        if look is not None and time_ms > begin_ms:
            stretches.append(Stretch(begin_ms=begin_ms, end_ms=time_ms, words=words, look=look, label=words))

    for at, change in enumerate(changes):
        if change.set_back or change.offset is None:
            words = _change_words(change).removeprefix(utc_text(change.time_ms)).strip()
            grave = bool(change.set_back) and later[at] < (change.previous or 0)
            moments.append(
                Moment(time_ms=change.time_ms, words=words, is_grave=grave, references=refer.of(change.citations))
            )
        goal = max(goal, change.previous or 0) if change.set_back else goal
        if change.offset is None:
            now = Look.AWAY
        else:
            goal = 0 if change.offset >= goal else goal
            now = Look.BEHIND if goal else Look.FOLLOWS
        if now is not look or change.set_back:
            close(change.time_ms)
            look, begin_ms, first = now, change.time_ms, change.offset or 0
        last = first if change.offset is None else change.offset
    close(end_ms)
    return stretches, moments


def _row(one: GroupPosition) -> tuple[str, str, str, str, str]:
    end = "unknown" if isinstance(one.log_end_offset, Absent) else f"{one.log_end_offset:,}"
    lag = "unknown" if isinstance(one.lag, Absent) else f"{one.lag:,}"
    past = "  PAST THE END" if one.is_past_the_end is True else ""
    if one.deleted_unread:
        left = "" if isinstance(one.left_unread, Absent) else f", {one.left_unread:,} left"
        past = f"  BELOW THE START: {one.deleted_unread:,} {'deleted' if one.is_deleted else 'gone'} unread{left}"
    elif one.has_wrong_epoch:
        what = "NEVER READ" if one.has_unread_in_front else f"LEADER EPOCH {one.position.leader_epoch}"
        past = f"  {what}: {one.way_on}"
    elif one.removed_ms is not None:
        past = f"  the topic was deleted at {utc_text(one.removed_ms)}"
    elif one.is_before_markers:
        past = "  no record is unread: markers of transactions"
    elif one.records_left is not Absent.NOT_APPLICABLE and one.lag:
        most = one.records_left
        known = "an unknown number of records" if isinstance(most, Absent) else f"at most {counted(most, 'record')}"
        past = f"  {known} up to there: a cleaner has removed others"
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
    how = "put forward again by hand at" if change.is_put_back else "caught up again by"
    caught_up = "" if change.caught_up_ms is None else f"; {how} {utc_text(change.caught_up_ms)}"
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
