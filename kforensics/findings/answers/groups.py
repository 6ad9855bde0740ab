"""The answer of `groups`: which groups are past the end of a log, which were set back, and by whom."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from kforensics.damage import Absent
from kforensics.findings.answers.model import Answer, State, skipped_words, worst_state
from kforensics.reconcile.coordinator_topics import CoordinatorTopic
from kforensics.reconcile.groups.replay import TOPIC_DELETED, Change
from kforensics.reconcile.groups.state import GroupType
from kforensics.reconcile.groups.views import GroupPosition, GroupView
from kforensics.words import Step, command_line, counted, form, listed, name_text, utc_words

MOST_NAMED = 4


@dataclass(frozen=True, kw_only=True)
class JudgedGroups:
    """What is known of groups and their positions, and the answer to whether these are right."""

    groups: Sequence[GroupView]
    setbacks: Sequence[Change]
    """The set-backs, the largest first, those that were caught up last."""
    setback_count: int
    """The number of set-backs, those that are not listed included."""
    removed: Sequence[Change] = ()
    """The positions that a record removed, of those that are asked about, or that an earlier copy has."""
    expired: Sequence[Change] = ()
    """Those of others: a group that nobody uses any more loses its positions, too."""
    ahead: Sequence[Change]
    """The moves of positions past offsets of which nothing shows that their group read them."""
    topic: CoordinatorTopic
    """What is known of `__consumer_offsets`."""
    asked: Collection[str]
    """Groups that were asked for; all where there are none."""
    unread: int
    """Places that could not be read."""
    skipped: int
    """Records of `__consumer_offsets` that are not understood."""
    why_skipped: str
    """Why the first of them is not, in words."""
    complete_since_ms: int | Absent
    """From when on every commit is here."""
    at_ms: int | None = None
    """The time that is asked about; None for the end of the logs."""
    share_topic: CoordinatorTopic | None = None
    """What is known of `__share_group_state`."""
    skipped_of_shares: int = 0
    """Records of it that are not understood."""
    why_skipped_of_shares: str = ""
    """Why the first of them is not, in words."""

    @cached_property
    def _behind(self) -> list[Change]:
        """The set-backs behind which a group still is."""
        return [one for one in self.setbacks if one.caught_up_ms is None]

    @cached_property
    def _every(self) -> list[tuple[GroupView, GroupPosition]]:
        return [(group, one) for group in self.groups for one in group.positions]

    @cached_property
    def _past(self) -> list[tuple[GroupView, GroupPosition]]:
        """The positions past the end, the furthest first."""
        return sorted((each for each in self._every if each[1].is_past_the_end is True), key=lambda each: _lag(each[1]))

    @cached_property
    def _below(self) -> list[tuple[GroupView, GroupPosition]]:
        """The positions below a log start, those first that most records were deleted before."""
        found = [(group, one) for group, one in self._every if one.deleted_unread]
        return sorted(found, key=lambda each: -each[1].deleted_unread)

    @cached_property
    def _contradicted(self) -> list[tuple[GroupView, GroupPosition]]:
        return [(group, one) for group, one in self._every if one.has_wrong_epoch]

    @cached_property
    def _ahead(self) -> list[Change]:
        """The moves past offsets that are more than a possibility, the longest way first."""
        return sorted((one for one in self.ahead if not _may_have_read(one)), key=lambda one: -one.past)

    def answer(self) -> Answer:
        """Return the answer: `no-setback` only where all of `__consumer_offsets` that matters, and the log of every position, is here and was read."""
        doubts = list(self._doubts())
        if self.at_ms is not None and isinstance(self.complete_since_ms, int) and self.at_ms < self.complete_since_ms:
            doubts.append(
                f"What groups had committed by {utc_words(self.at_ms)}: the history is complete since {utc_words(self.complete_since_ms)}."
            )
        if self.share_topic is not None:
            doubts += self._of_shares(self.share_topic)
        states = [
            *([State.PAST_THE_END] if self._past else []),
            *([State.SET_BACK] if self.setbacks else []),
            *([State.BELOW_THE_START] if self._below else []),
            *([State.WRONG_EPOCH] if self._contradicted else []),
            *([State.SET_FORWARD] if self._ahead else []),
            *([State.UNKNOWN] if doubts else []),
        ]
        state = worst_state(states) or State.NO_SETBACK
        ahead = _ahead(self._ahead) if state is not State.SET_FORWARD else ""
        said = self._headline(state), ahead, _removed(self.removed)
        is_first = state in {State.UNKNOWN, State.NO_SETBACK}
        if is_first and not self.removed:
            said = _removed(self.expired), *said[:-1]
        return Answer(
            state=state,
            headline=" ".join(filter(None, reversed(said) if is_first else said)),
            now=tuple(self._now()),
            tell=tuple(self._tell()),
            unknown=tuple(doubts),
        )

    def _headline(self, state: State) -> str:
        match state:
            case State.PAST_THE_END:
                group, one = self._past[0]
                where = f"{name_text(one.topic)}-{one.partition}"
                others = f"{len(self._past) - 1:,} other position{'s are' if len(self._past) > 2 else ' is'}"
                more = f"; {others} past the end, too" if len(self._past) > 1 else ""
                also = f"; also {counted(self.setback_count, 'set-back')}" if self.setback_count else ""
                gone = next((each for each in self._behind if each.is_lost), None)
                if gone is not None:
                    also += f". {_lost(gone)}"
                return (
                    f"{_loud(group.name)} IS PAST THE END of {where}: it {'starts at' if one.share else 'committed'} {one.position.offset:,}, and the log ends at "
                    f"{one.log_end_offset:,}{_why_past(one)}{more}{also}."
                )
            case State.SET_BACK:
                return self._set_back()
            case State.BELOW_THE_START:
                group, one = self._below[0]
                more = f" {len(self._below) - 1:,} more." if len(self._below) > 1 else ""
                return f"{_loud(group.name)} IS BELOW THE LOG START of {below_words(one)}{more}"
            case State.WRONG_EPOCH:
                group, one = self._contradicted[0]
                more = f" {len(self._contradicted) - 1:,} more." if len(self._contradicted) > 1 else ""
                where = (
                    "BEHIND RECORDS THAT IT NEVER READ"
                    if one.has_unread_in_front
                    else "AT A LEADER EPOCH THAT THE LOG CONTRADICTS"
                )
                return f"{_loud(group.name)} STANDS {where}: {epoch_words(one)}{more}"
            case State.SET_FORWARD:
                return _ahead(self._ahead)
            case State.UNKNOWN:
                if not self.groups and (self.removed or self.expired):
                    return "Whether one was set back is unknown."
                if not self.groups:
                    return "No commit of a group is here; whether one was set back is unknown."
                are = form(len(self.groups), "is", "are")
                return f"No set-back in the commits of {counted(len(self.groups), 'group')} that {are} here; whether there was one is unknown."
        until = "" if self.at_ms is None else f" until {utc_words(self.at_ms)}"
        if self.removed and not self.groups:
            return ""
        if isinstance(self.complete_since_ms, Absent):
            return (
                f"No group {'has' if self.at_ms is None else 'had'} committed anything{until}."
                if not self.groups
                else f"{counted(len(self.groups), 'group')}, and none was set back{until}."
            )
        return f"{counted(len(self.groups), 'group')}, and none was set back since {utc_words(self.complete_since_ms)}{until}."

    def _set_back(self) -> str:
        worst, count = self.setbacks[0], self.setback_count
        where = f"{name_text(worst.key.topic)}-{worst.key.partition}"
        past = len(self.setbacks) - len(self._behind)
        caught_up = f", {past:,} of them caught up again" if past else ""
        more = f" {count - 1:,} more{caught_up}." if count > 1 else ""
        if worst.offset is None:
            return f"{_lost(worst)}.{more}{self._also_below()}"
        what = f"{where} from {worst.previous:,} to {worst.offset:,} at {utc_words(worst.time_ms)}, {_by_whom(worst)}"
        if worst.caught_up_ms is None:
            return f"{_loud(worst.key.group)} WAS SET BACK: {what}.{more}{self._also_below()}"
        others = "" if count == 1 else f" So were {count - 1:,} more."
        to_do = ", so there is nothing to do" if past == count else ""
        when = f"at {utc_words(worst.caught_up_ms)}"
        if worst.is_put_back:
            return f"{name_text(worst.key.group)} was set back and has its position again{to_do}: {what}; it was put forward by hand {when}, and no member had read meanwhile.{others}"
        return f"{name_text(worst.key.group)} was set back and has caught up again{to_do}: {what}; caught up again {when} or before.{others}"

    def _also_below(self) -> str:
        if not self._below:
            return ""
        groups, _ = _who(self._below)
        count = sum(one.deleted_unread for _, one in self._below)
        went = _WENT[any(one.is_deleted for _, one in self._below)]
        return f" {counted(count, 'offset')} {form(count, *went)} {groups} read them."

    def _doubts(self) -> Iterator[str]:
        is_past = self.at_ms is not None
        if self.asked:
            for name in sorted(self.asked):
                if self.topic.may_lack(name):
                    partition = self.topic.partition_of(name)
                    held = {
                        one.position.place.topic_partition.partition
                        for group, one in self._every
                        if group.name == name and one.share is None
                    }
                    if isinstance(partition, Absent) and held:
                        # Of the same number of partitions a group hashes to the same one, whatever that number is.
                        for number in sorted(held & self.topic.lacks.keys()):
                            yield f"What {self.topic.name}-{number} says of {name}: {self.topic.lacks[number]}."
                    elif isinstance(partition, Absent):
                        yield f"What {name} committed: it may be in a partition of {self.topic.name} that is not among the inputs."
                    else:
                        yield f"What {self.topic.name}-{partition} says of {name}: {self.topic.lacks[partition]}."
        else:
            for reason, names in self.topic.reasons():
                say = form(len(names), "says", "say")
                yield f"What {listed(names, most=MOST_NAMED)} {say} of groups: {reason}."
        if not self.asked and not self.topic.lacks and isinstance(self.topic.count, Absent):
            yield (
                f"Whether all of {self.topic.name} is here: no input shows how many partitions it has. Give the directories of all brokers, and a metadata log or a server.properties."
            )
        by_leader: dict[int | None, set[str]] = {}
        for _, one in self._every:
            if isinstance(one.is_past_the_end, Absent) and one.removed_ms is None:
                by_leader.setdefault(one.absent_leader, set()).add(f"{name_text(one.topic)}-{one.partition}")
        for leader, lost in sorted(by_leader.items(), key=lambda each: -1 if each[0] is None else each[0]):
            why = "no log of their leaders is among the inputs up to its end"
            if leader is not None:
                why = f"broker {leader} {'led' if is_past else 'leads'} there, and its log is not among the inputs"
            yield f"Whether positions in {listed(sorted(lost), most=MOST_NAMED)} {'were' if is_past else 'are'} past the end: {why}."
        yield from map(_deleted_between, filter(_may_have_read, self.ahead))
        if self.unread:
            yield f"What {counted(self.unread, 'place')} that could not be read {form(self.unread, 'holds', 'hold')}."
        if self.skipped:
            yield skipped_words(self.skipped, self.topic.name, self.why_skipped)

    def _of_shares(self, topic: CoordinatorTopic) -> Iterator[str]:
        shares = [
            name_text(one.name)
            for one in self.groups
            if (one.state is not None and one.state.type is GroupType.SHARE)
            or any(each.share for each in one.positions)
        ]
        if shares and not topic.is_complete:
            names = listed(sorted(shares), most=MOST_NAMED)
            why = [f"{listed(parts, most=MOST_NAMED)}: {reason}" for reason, parts in topic.reasons()]
            yield f"Where {names} {form(len(shares), 'reads', 'read')}: not all of {topic.name} is shown to be here{'; ' if why else ''}{'; '.join(why)}."
        if self.skipped_of_shares:
            yield skipped_words(self.skipped_of_shares, topic.name, self.why_skipped_of_shares)

    def _now(self) -> Iterator[str]:
        past = [(group, one) for group, one in self._past if one.share is None]
        if past:
            names, count = _who(past)
            consumes, it, reads = ("consumes", "it", "reads") if count == 1 else ("consume", "they", "read")
            yield Step(
                f"Before {names} {consumes} again: auto.offset.reset decides what {it} {reads}, all of the log (earliest) or nothing that is there now (latest). "
                "Set each position by hand, to the first offset that was not read as it is now",
                (_reset_by_hand(past),),
            )
        if len(past) < len(self._past):
            shared, _ = _who(each for each in self._past if each[1].share is not None)
            yield f"Before {shared} consumes again: set its start offset (kafka-share-groups.sh --reset-offsets --to-earliest or --to-datetime), while it has no members."
        below = [(group, one) for group, one in self._below if one.share is None]
        if below:
            names, count = _who(below)
            left = sum(one.left_unread for _, one in below if isinstance(one.left_unread, int))
            is_known = all(isinstance(one.left_unread, int) for _, one in below)
            rest = f"the {counted(left, 'offset')} that {form(left, 'is', 'are')} left" if is_known else "what is left"
            yield (
                f"Before {names} {form(count, 'consumes', 'consume')} again: offsets below a log start are out of range. Then auto.offset.reset decides what is read next,"
                f" {rest} (earliest) or nothing that is there now (latest)."
            )
        if len(below) < len(self._below):
            yield SHARES_GO_ON
        if self._contradicted:
            names, count = _who(self._contradicted)
            yield Step(
                f"Before {names} {form(count, 'consumes', 'consume')} again: set the position by hand, to the first offset that was not read as it is now",
                (_reset_by_hand(self._contradicted),),
            )
        held = {(group.name, one.topic, one.partition) for group, one in self._every}
        resets = [
            one
            for one in self._behind
            if one.by == "administrator" and one.removed_by is None
            if (one.key.group, one.key.topic, one.key.partition) in held
        ]
        if resets:
            one = resets[0]
            name, where = name_text(one.key.group), f"{name_text(one.key.topic)}:{one.key.partition}"
            sentence = f"If the reset was a mistake: stop {name}, and set its position in {where} to {one.previous} again; what it has read again stays processed twice"
            if one.is_share:
                yield f"{sentence} (kafka-share-groups.sh --reset-offsets --to-datetime, which takes no offset)."
            else:
                yield Step(sentence, (_reset(name, where, str(one.previous)),))
        ahead = [one for one in self._ahead if not one.is_share]
        if ahead and _skipped(one := max(ahead, key=_skipped)):
            name, where = name_text(one.key.group), f"{name_text(one.key.topic)}:{one.key.partition}"
            starts = (each.log_start_offset for _, each in self._every if (each.topic, each.partition) == one.key[1:])
            first = max(one.previous or 0, one.log_start or 0, *(start for start in starts if isinstance(start, int)))
            sentence = f"If {name} has to read what it passed over: stop it, and set its position in {where} to {first} again; what it has read since is processed twice"
            yield Step(sentence, (_reset(name, where, str(first)),))

    def _tell(self) -> Iterator[str]:
        for words, found in (
            ("are read again", self._behind),
            (
                "were read twice, before the group had caught up",
                [one for one in self.setbacks if one.caught_up_ms is not None and not one.is_put_back],
            ),
        ):
            again = sum(one.set_back for one in found if one.by != "truncation" and not one.is_lost)
            if again:
                groups = _groups_of(one for one in found if not one.is_lost)
                yield f"The owners of {groups}: up to {counted(again, 'record')} {words}."
        deleted = [one for one in self._ahead if one.log_start is not None]
        if deleted:
            count = sum(one.past - _skipped(one) for one in deleted)
            yield f"The owners of {_groups_of(deleted)}: up to {counted(count, 'record')} {form(count, *_WENT[True])} {form(len(deleted), 'it', 'they')} read them."
        if count := sum(map(_skipped, self._ahead)):
            yield f"The owners of {_groups_of(filter(_skipped, self._ahead))}: up to {counted(count, 'record')} {form(count, 'was', 'were')} passed over, of which nothing shows that they were read."
        removed = {name_text(one.topic): one.removed_ms for _, one in self._every if one.removed_ms is not None}
        for topic, removed_ms in sorted(removed.items()):
            groups, _ = _who(each for each in self._every if name_text(each[1].topic) == topic)
            yield f"The owners of {groups}: topic {topic} was deleted at {utc_words(removed_ms)}."
        of_topics = [one for one in self.removed if one.reason != TOPIC_DELETED]
        if gone := [*(one for one in self._behind if one.is_lost), *of_topics]:
            for is_share, who in ((False, "auto.offset.reset"), (True, "share.auto.offset.reset of the group")):
                groups = _groups_of(one for one in gone if one.is_share is is_share)
                if groups:
                    yield f"The owners of {groups}: a position is gone, and {who} decides what is read next; set it by hand."
        if read := [each for each in self._past if each[1].position.by != "administrator"]:
            groups, _ = _who(read)
            yield f"The owners of {groups}: they have read records that are not in the log any more."


SHARES_GO_ON = "A share group goes on at the log start by itself: no position has to be set."

_WENT = {True: ("was deleted before", "were deleted before"), False: ("is gone before", "are gone before")}
"""By whether a broker deleted the offsets."""


def _ahead(ahead: Sequence[Change]) -> str:
    """Say which position moved past offsets that its group need not have read, the longest way first; empty where none did."""
    if not ahead:
        return ""
    first = ahead[0]
    count = len(ahead) - 1
    more = f" So {form(count, 'was', 'were')} {count:,} more." if count else ""
    rest, what = _skipped(first), ""
    if first.log_start is not None:
        most, went = "up to " if first.confidence == "likely" else "", first.past - rest
        what = f" The log began at {first.log_start:,} by then: {most}{counted(went, 'offset')} {form(went, *_WENT[True])} it read them, {first.reason}."
    begins, how = "BEGAN ANEW FURTHER ON", f", {_by_whom(first)}"
    if first.removed_by is None:
        begins = "WAS SET FORWARD"
        if what and first.by == "member":
            begins, how = "SKIPPED DELETED RECORDS", ""
    where, when = f"{name_text(first.key.topic)}-{first.key.partition}", utc_words(first.time_ms)
    between = "from there on" if what else "between"
    unread = f" Nothing shows that it read the {counted(rest, 'offset')} {between}." if rest else ""
    return f"{_loud(first.key.group)} {begins}: {where} from {first.previous:,} to {first.offset:,} at {when}{how}.{what}{unread}{more}"


def _may_have_read(change: Change) -> bool:
    """Return whether a group may have read what was deleted between two of its commits."""
    return change.log_start is not None and change.confidence == "possible"


def _skipped(change: Change) -> int:
    """Return how many of the offsets that a position moved ahead were not below the log start."""
    return change.past if change.log_start is None else (change.offset or 0) - change.log_start


def _deleted_between(change: Change) -> str:
    where, start = f"{name_text(change.key.topic)}-{change.key.partition}", change.log_start or 0
    return (
        f"Whether {name_text(change.key.group)} read offsets {change.previous:,} to {start - 1:,} of {where} before they were deleted: it committed {change.previous:,}, "
        f"then {change.offset:,} at {utc_words(change.time_ms)}. They were deleted {change.reason}."
    )


def _removed(removed: Sequence[Change]) -> str:
    """Say which position is gone by a record, and why; empty where none is."""
    if not removed:
        return ""
    first = max(removed, key=lambda one: one.previous or 0)
    count = len(removed) - 1
    more = f" So {form(count, 'is', 'are')} {count:,} more." if count else ""
    gone = "had expired or was deleted" if first.by == "unknown" else _GONE[first.by].replace("had been", "was")
    why = TOPIC_DELETED if first.reason == TOPIC_DELETED else f"it {gone}"
    where = f"{name_text(first.key.topic)}-{first.key.partition}"
    return f"The position of {name_text(first.key.group)} in {where}, {first.previous:,}, is gone since {utc_words(first.time_ms)}: {why}.{more}"


def _lost(worst: Change) -> str:
    where = f"{name_text(worst.key.topic)}-{worst.key.partition}"
    cause = ", which an earlier copy holds; the cause is unknown" if worst.by == "unknown" else f", {_by_whom(worst)}"
    return f"{_loud(worst.key.group)} HAS LOST ITS POSITION in {where}: {worst.previous:,}{cause}"


def below_words(one: GroupPosition) -> str:
    """Say how many offsets were deleted below a log start before a group read them, by what, and how many are left."""
    count, left = one.deleted_unread, one.left_unread
    words = (
        f"{name_text(one.topic)}-{one.partition}: it {'starts at' if one.share else 'committed'} {one.position.offset:,}, and the log starts at {one.log_start_offset:,}: "
        f"{counted(count, 'offset')} {form(count, *_WENT[one.is_deleted])} it read them"
    )
    if isinstance(left, int):
        words += f", {left:,} {form(left, 'is', 'are')} left"
    return f"{words}. They were deleted {one.removal.sentence}." if one.removal is not None else f"{words}."


def _why_past(one: GroupPosition) -> str:
    """Say why a position lies past the end, as far as that is known."""
    if one.recreated_ms is not None:
        return f", as the topic was created anew at {utc_words(one.recreated_ms)}"
    if isinstance(one.goes_on_at, int):
        return f", as what it read was truncated: its leader epoch {one.position.leader_epoch} ends at {one.goes_on_at:,} there"
    if one.position.by == "administrator":
        return ", where a reset set it, or a consumer that is no member"
    return ""


def epoch_words(one: GroupPosition) -> str:
    """Say what a log contradicts of a position, why that may be, and what a consumer does."""
    known = one.goes_on_at
    if one.has_unread_in_front:
        since = "the records in front of it there were written later, in a later leader epoch"
        if one.recreated_ms is not None:
            since = f"the topic was created anew at {utc_words(one.recreated_ms)}"
        return f"it committed {one.position.offset:,} of {name_text(one.topic)}-{one.partition} at {utc_words(one.position.committed_ms)}, and {since}. A consumer does not notice: {one.way_on}."
    log = "the log knows no such epoch" if isinstance(known, Absent) else f"that epoch ends at {known:,} there"
    why = (
        "The records that it read there are gone: those in front of its position were written after the commit."
        if one.had_others
        else "Either the records that it read there were truncated, or its client committed an epoch of before the last change of leaders (KAFKA-19902)."
    )
    return (
        f"it committed {one.position.offset:,} of {name_text(one.topic)}-{one.partition} with leader epoch {one.position.leader_epoch}, and {log}. {why}"
        f" A consumer that checks its position (2.3 and later) does not stay: {one.way_on}."
    )


def _reset(group: str, where: str, offset: str) -> str:
    words = ["--group", group, "--topic", where, "--reset-offsets", "--to-offset", offset, "--execute"]
    return f"kafka-consumer-groups.sh --bootstrap-server HOST:PORT {command_line(words)}"


def _reset_by_hand(found: Sequence[tuple[GroupView, GroupPosition]]) -> str:
    """Return the command that sets the first of some positions to an offset that a person decides."""
    group, one = found[0]
    return _reset(name_text(group.name), f"{name_text(one.topic)}:{one.partition}", "OFFSET")


def _who(found: Iterable[tuple[GroupView, GroupPosition]]) -> tuple[str, int]:
    """Return the groups of some positions in words, and how many they are."""
    names = sorted({name_text(group.name) for group, _ in found})
    return listed(names, most=MOST_NAMED), len(names)


def _groups_of(changes: Iterable[Change]) -> str:
    return listed(sorted({name_text(one.key.group) for one in changes}), most=MOST_NAMED)


def _loud(name: str | bytes) -> str:
    """Return a name in capitals, unless that may make another name of it: digits are in versions and in pseudonyms, which are searched for."""
    text = name_text(name)
    return text if any(one.isdecimal() or one.isupper() for one in text) else text.upper()


_GONE = {
    "expiry": "had expired",
    "deletion": "had been deleted",
    "truncation": "had been truncated",
    "unknown": "was gone, it is not known why",
}


def _by_whom(change: Change) -> str:
    gone = "" if change.removed_by is None else f"the position before {_GONE.get(change.removed_by, 'was gone')}"
    if change.recreated:
        known = "" if change.removed_by == "unknown" or not gone else f"{gone}, "
        return f"after it began anew: {known}{change.recreated}"
    if gone:
        return f"after {gone}"
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
            return f"when {change.reason}"
    return "by whom is not known"


def _lag(one: GroupPosition) -> int:
    return 0 if isinstance(one.lag, Absent) else one.lag
