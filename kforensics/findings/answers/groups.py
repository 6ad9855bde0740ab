"""The answer of `groups`: which groups are past the end of a log, which were set back, and by whom."""

import datetime as dt
from collections.abc import Collection, Iterator, Sequence

from kforensics.damage import Absent
from kforensics.findings.answers.model import Answer, State, worst_state
from kforensics.reconcile.coordinator_topics import CoordinatorTopic
from kforensics.reconcile.groups.replay import Change
from kforensics.reconcile.groups.state import GroupType
from kforensics.reconcile.groups.views import GroupPosition, GroupView
from kforensics.words import counted, form, listed, name_text

MOST_NAMED = 4


def groups_answer(
    groups: Sequence[GroupView],
    setbacks: Sequence[Change],
    *,
    setback_count: int,
    topic: CoordinatorTopic,
    asked: Collection[str],
    unread: int,
    skipped: int,
    complete_since_ms: int | Absent,
    at_ms: int | None = None,
    share_topic: CoordinatorTopic | None = None,
    skipped_of_shares: int = 0,
) -> Answer:
    """Return the answer to whether the positions of groups are right.

    Args:
        groups: with their positions.
        setbacks: the largest first.
        setback_count: all of them.
        topic: what is known of `__consumer_offsets`.
        asked: groups that were asked for; all where there are none.
        unread: places that could not be read.
        skipped: records of `__consumer_offsets` of unknown types or versions.
        complete_since_ms: from when on every commit is here.
        at_ms: the time that is asked about; None for the end of the logs.
        share_topic: what is known of `__share_group_state`.
        skipped_of_shares: records of it of unknown types or versions.

    Returns:
        `no-setback` only where every partition of `__consumer_offsets` that matters is here, nothing was unreadable, and the log of every
        position is here.
    """
    past = [(group, one) for group in groups for one in group.positions if one.is_past_the_end is True]
    doubts = list(_doubts(groups, topic, asked, unread=unread, skipped=skipped, is_past=at_ms is not None))
    if at_ms is not None and isinstance(complete_since_ms, int) and at_ms < complete_since_ms:
        doubts.append(
            f"What groups had committed by {_time(at_ms)}: the history is complete since {_time(complete_since_ms)}."
        )
    if share_topic is not None:
        doubts += _of_shares(groups, share_topic, skipped_of_shares)
    states = [
        *([State.PAST_THE_END] if past else []),
        *([State.SET_BACK] if setbacks else []),
        *([State.UNKNOWN] if doubts else []),
    ]
    state = worst_state("groups", states) or State.NO_SETBACK
    return Answer(
        state=state,
        headline=_headline(state, groups, past, setbacks, setback_count, complete_since_ms, at_ms),
        now=tuple(_now(past, setbacks)),
        tell=tuple(_tell(past, setbacks)),
        unknown=tuple(doubts),
    )


def _headline(
    state: State,
    groups: Sequence[GroupView],
    past: Sequence[tuple[GroupView, GroupPosition]],
    setbacks: Sequence[Change],
    count: int,
    complete_since_ms: int | Absent,
    at_ms: int | None,
) -> str:
    match state:
        case State.PAST_THE_END:
            group, one = max(past, key=lambda each: -_lag(each[1]))
            where = f"{name_text(one.topic)}-{one.partition}"
            others = f"{len(past) - 1:,} other position{'s are' if len(past) > 2 else ' is'}"
            more = f"; {others} past the end, too" if len(past) > 1 else ""
            also = f"; also {counted(count, 'set-back')}" if count else ""
            return (
                f"{_loud(group.name)} IS PAST THE END of {where}: it {'starts at' if one.share else 'committed'} {one.position.offset:,}, and the log ends at "
                f"{one.log_end_offset:,}{more}{also}."
            )
        case State.SET_BACK:
            return _set_back(setbacks[0], count)
        case State.UNKNOWN:
            return f"No set-back in the commits of {counted(len(groups), 'group')} that are here; whether there was one is unknown."
    until = "" if at_ms is None else f" until {_time(at_ms)}"
    if isinstance(complete_since_ms, Absent):
        return (
            f"No group {'has' if at_ms is None else 'had'} committed anything{until}."
            if not groups
            else f"{counted(len(groups), 'group')}, and none was set back{until}."
        )
    return f"{counted(len(groups), 'group')}, and none was set back since {_time(complete_since_ms)}{until}."


def _set_back(worst: Change, count: int) -> str:
    key = worst.key
    more = f" {count - 1:,} more." if count > 1 else ""
    return (
        f"{_loud(key.group)} WAS SET BACK: {name_text(key.topic)}-{key.partition} from {worst.previous:,} to {worst.offset:,} at "
        f"{_time(worst.time_ms)}, {_by_whom(worst)}.{more}"
    )


def _loud(name: str | bytes) -> str:
    """Return a name in capitals, unless that may make another name of it: digits are in versions and in pseudonyms, which are searched for."""
    text = name_text(name)
    return text if any(one.isdecimal() or one.isupper() for one in text) else text.upper()


def _by_whom(change: Change) -> str:
    match change.by:
        case "administrator" if change.is_share:
            return "while the group was empty: a reset by an administrator"
        case "administrator":
            if change.had_members:
                return "while the group was empty: a reset, not a member"
            return "in a group without members: a reset, or a consumer that is no member"
        case "member" if change.is_transactional:
            return "in a transaction"
        case "member":
            return "while the group had members: by one of them, probably"
        case "truncation":
            return f"when {change.reason.removeprefix('a ')}"
    return "by whom is not known"


def _doubts(
    groups: Sequence[GroupView],
    topic: CoordinatorTopic,
    asked: Collection[str],
    *,
    unread: int,
    skipped: int,
    is_past: bool,
) -> Iterator[str]:
    if asked:
        for name in sorted(asked):
            if topic.may_lack(name):
                partition = topic.partition_of(name)
                if isinstance(partition, Absent):
                    yield f"What {name} committed: it may be in a partition of {topic.name} that is not among the inputs."
                else:
                    yield f"What {topic.name}-{partition} says of {name}: {topic.lacks[partition]}."
    else:
        for reason, names in topic.reasons():
            say = form(len(names), "says", "say")
            yield f"What {listed(names, most=MOST_NAMED)} {say} of groups: {reason}."
    if not asked and not topic.lacks and isinstance(topic.count, Absent):
        yield (
            f"Whether all of {topic.name} is here: no input shows how many partitions it has; give the directories of all brokers, and a metadata log or a server.properties."
        )
    by_leader: dict[int | None, set[str]] = {}
    for group in groups:
        for one in group.positions:
            if isinstance(one.is_past_the_end, Absent):
                by_leader.setdefault(one.absent_leader, set()).add(f"{name_text(one.topic)}-{one.partition}")
    for leader, lost in sorted(by_leader.items(), key=lambda each: -1 if each[0] is None else each[0]):
        why = "no log of their leaders is among the inputs up to its end"
        if leader is not None:
            why = f"broker {leader} {'led' if is_past else 'leads'} there, and its log is not among the inputs"
        yield f"Whether positions in {listed(sorted(lost), most=MOST_NAMED)} {'were' if is_past else 'are'} past the end: {why}."
    if unread:
        yield f"What {counted(unread, 'place')} that could not be read {form(unread, 'holds', 'hold')}."
    if skipped:
        yield f"What {counted(skipped, 'record')} of {topic.name} of unknown types or versions {form(skipped, 'says', 'say')}."


def _of_shares(groups: Sequence[GroupView], topic: CoordinatorTopic, skipped: int) -> Iterator[str]:
    shares = [
        name_text(one.name)
        for one in groups
        if (one.state is not None and one.state.type is GroupType.SHARE) or any(each.share for each in one.positions)
    ]
    if shares and not topic.is_complete:
        names = listed(sorted(shares), most=MOST_NAMED)
        why = [f"{listed(parts, most=MOST_NAMED)}: {reason}" for reason, parts in topic.reasons()]
        yield f"Where {names} {form(len(shares), 'reads', 'read')}: not all of {topic.name} is shown to be here{'; ' if why else ''}{'; '.join(why)}."
    if skipped:
        yield f"What {counted(skipped, 'record')} of {topic.name} of unknown types or versions {form(skipped, 'says', 'say')}."


def _now(past: Sequence[tuple[GroupView, GroupPosition]], setbacks: Sequence[Change]) -> Iterator[str]:
    if past:
        groups = sorted({name_text(group.name) for group, _ in past})
        names, consumes, it = (
            listed(groups, most=MOST_NAMED),
            *(("consumes", "it") if len(groups) == 1 else ("consume", "they")),
        )
        reads = form(len(groups), "reads", "read")
        yield (
            f"Before {names} {consumes} again: auto.offset.reset decides what {it} {reads}, all of the log (earliest) or nothing that is there now (latest). "
            "Set the position by hand: kafka-consumer-groups.sh --reset-offsets --to-offset."
        )
    resets = [one for one in setbacks if one.by == "administrator"]
    if resets:
        one = resets[0]
        tool = "kafka-consumer-groups.sh --reset-offsets --to-offset"
        if one.is_share:
            tool = "kafka-share-groups.sh --reset-offsets --to-datetime, which takes no offset"
        yield (
            f"If the reset was a mistake: stop {name_text(one.key.group)} and set {name_text(one.key.topic)}:{one.key.partition} to {one.previous} "
            f"({tool}); what it has read again stays processed twice."
        )


def _tell(past: Sequence[tuple[GroupView, GroupPosition]], setbacks: Sequence[Change]) -> Iterator[str]:
    again = sum(one.set_back for one in setbacks if one.by != "truncation")
    if again:
        groups = listed(sorted({name_text(one.key.group) for one in setbacks}), most=MOST_NAMED)
        yield f"The owners of {groups}: up to {counted(again, 'record')} are read again."
    if past:
        groups = listed(sorted({name_text(group.name) for group, _ in past}), most=MOST_NAMED)
        yield f"The owners of {groups}: they have read records that are not in the log any more."


def _lag(one: GroupPosition) -> int:
    return 0 if isinstance(one.lag, Absent) else one.lag


def _time(time_ms: int) -> str:
    try:
        return dt.datetime.fromtimestamp(time_ms / 1000, tz=dt.UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return f"{time_ms} ms"
