"""The positions of consumer and share groups, how far behind they are, and who moved them: `__consumer_offsets` and `__share_group_state` played in log order."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import merge
from itertools import chain
from typing import NamedTuple

from kforensics.ask.model import Ask
from kforensics.case.account import accounts_of, explain_all, with_returned_doubts
from kforensics.case.leaders import Leaders, leaders_of
from kforensics.case.model import Case
from kforensics.case.offsets_log import OffsetsLog, lost_with_log, offsets_logs
from kforensics.case.opening import open_case
from kforensics.case.share_log import SharePositions
from kforensics.case.wanted import not_there
from kforensics.commands.cleaning import standing_cleaners, with_cleaners
from kforensics.commands.graver import no_calmer_in_cluster
from kforensics.commands.partition_ends import PartitionEnds
from kforensics.commands.redaction.coordinators import GROUP, CoordinatorRedaction, renaming
from kforensics.commands.redaction.pseudonyms import pseudonyms_of
from kforensics.commands.result import Conclusion, Result
from kforensics.damage import Absent
from kforensics.evidence.coordinators.group_log import CommitKey, Name
from kforensics.findings.answers.groups import JudgedGroups
from kforensics.findings.model import by_gravity
from kforensics.findings.rules.coordinators import group_findings
from kforensics.reconcile.coordinator_topics import CoordinatorTopic, coordinator_topic
from kforensics.reconcile.groups.replay import Change, Position, infer_retention, with_return
from kforensics.reconcile.groups.state import GroupState, ShareState
from kforensics.reconcile.groups.views import GroupView
from kforensics.reconcile.history.log_starts import LogStart
from kforensics.reconcile.incident.doubts import DoubtKind
from kforensics.units import OFFSETS_TOPIC, SHARE_TOPIC, Depth
from kforensics.words import listed

SharedPosition = tuple[CommitKey, Position, ShareState | None]
"""A position, with the state of its deliveries where it is that of a share group."""

MOST_SETBACKS = 1_000
"""Set-backs that are kept for the answer, the largest; more of them are only counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """The groups of the inputs."""

    request: Ask
    topic: CoordinatorTopic
    groups: tuple[GroupView, ...]
    setbacks: tuple[Change, ...]
    """The largest first."""
    complete_since_ms: int | Absent
    """From when on the history has every commit; unknown where a part of the topic is missing."""
    skipped_records: int
    changes: Callable[[], Iterator[Change]] = field(repr=False)
    """Plays the logs again and gives every change that was asked for: those of a partition in its order, those of all about in order of time."""


def run(request: Ask, *, case: Case | None = None, is_absence_answer: bool = False) -> Result[Groups]:
    """Play the commits of all groups.

    Args:
        is_absence_answer: whether it is an answer, and no error, that no group has committed in a topic or partition that was asked for.

    Raises:
        EvidenceError: a path can't be used, or they are of several clusters.
        UsageError: nothing among the inputs has the name that was asked for.
    """
    case = open_case(request, again="groups") if case is None else case.asked(request)
    given = leaders_of(case)
    logs = offsets_logs(given, until_ms=request.at_ms)
    ends = PartitionEnds(given, request.at_ms)
    played = _play(request, logs, ends.start_of)
    gone, elsewhere = _only_earlier(given)
    of_gone = [one for one in gone if _wants(request, one.key)]
    shares = SharePositions(given, until_ms=request.at_ms)
    shared = shares.by_group()
    of_shares = [one for one in shares.setbacks() if _wants(request, one.key)]
    topic = _topic(given, logs, played.names, elsewhere)
    if not is_absence_answer:
        _check_names(request, logs.values(), topic, shared)
    groups = _views(request, played.states, played.positions, ends, shared)
    now = {**played.positions, **{key: one for found in shared.values() for key, one, _ in found}}
    by_key: dict[CommitKey, list[Change]] = defaultdict(list)
    for one in (*played.setbacks, *of_shares, *of_gone):
        by_key[one.key].append(one)
    setbacks = [with_return(one, now.get(key), changes) for key, changes in by_key.items() for one in changes]
    pseudonyms = pseudonyms_of(request)
    redaction = None if pseudonyms is None else CoordinatorRedaction(pseudonyms, given)
    shown: Callable[[Change], Change] = (lambda one: one) if redaction is None else redaction.change
    if redaction is not None:
        groups = tuple(sorted(map(redaction.view, groups), key=lambda view: str(view.name)))
        setbacks = list(map(shown, setbacks))
        topic = replace(topic, renamed={redaction.name(GROUP, one): one for one in request.groups})
    problems = (
        *given.places.problems,
        *given.cluster.problems,
        *ends.problems,
        *(problem for log in logs.values() for problem in log.problems),
        *shares.problems,
    )
    skipped = sum(log.skipped for log in logs.values())
    body = Groups(
        request=request,
        topic=topic,
        groups=groups,
        setbacks=tuple(_largest(setbacks)),
        complete_since_ms=_complete_since(logs, topic, request),
        skipped_records=skipped + shares.skipped,
        changes=lambda: map(
            shown,
            _changes(
                request,
                logs,
                (*of_shares, *of_gone, *shares.removals(), *(one for one in played.gone if one.is_lost)),
            ),
        ),
    )
    judged = JudgedGroups(
        groups=groups,
        setbacks=body.setbacks,
        setback_count=played.setback_count + len(of_shares) + len(of_gone),
        removed=[
            shown(one)
            for one in (*played.gone, *shares.removals(since_earlier=True))
            if not one.is_lost and _wants(request, one.key)
        ],
        expired=[shown(one) for one in played.expired if _wants(request, one.key)],
        ahead=[shown(one) for one in (*played.ahead, *shares.skips(ends.start_of)) if _wants(request, one.key)],
        topic=topic,
        asked={str(renaming(redaction, GROUP)(one)) for one in request.groups},
        unread=len(problems),
        skipped=skipped,
        why_skipped=next((log.why_skipped for log in logs.values() if log.skipped), ""),
        complete_since_ms=body.complete_since_ms,
        at_ms=request.at_ms,
        share_topic=shares.topic,
        skipped_of_shares=shares.skipped,
        why_skipped_of_shares=shares.why_skipped,
    )
    standing = standing_cleaners(case, OFFSETS_TOPIC)
    concluded = Conclusion(
        answer=with_cleaners(judged.answer(), standing),
        findings=by_gravity((*group_findings(groups, body.setbacks), *standing)),
        problems=(*problems, *given.cluster.left_out),
    )
    result = Result(
        command="groups",
        inputs=given.inputs.described,
        body=body,
        concluded=no_calmer_in_cluster("groups", concluded, case, *_held_in(request, topic, shared)),
    )
    return result if redaction is None else redaction.result(result)


def _held_in(request: Ask, topic: CoordinatorTopic, shared: Collection[Name]) -> tuple[frozenset[str], frozenset[int]]:
    """Return the topics, and where that is known the partitions, that hold the positions of the groups that are asked about."""
    held = [topic.partition_of(one) for one in request.groups]
    if not request.groups or request.groups & set(shared) or any(isinstance(one, Absent) for one in held):
        return frozenset({OFFSETS_TOPIC, SHARE_TOPIC}), frozenset()
    return frozenset({OFFSETS_TOPIC}), frozenset(one for one in held if isinstance(one, int))


class _Played(NamedTuple):
    """What the logs of all partitions of the topic come to."""

    positions: dict[CommitKey, Position]
    states: dict[Name, tuple[GroupState | None, bool]]
    """Of each group, and whether the absence of a state shows that there is no such group."""
    names: list[tuple[Name, int]]
    """Each group, with the partition that holds it."""
    setbacks: list[Change]
    """The largest of those that were asked for."""
    setback_count: int
    expired: list[Change]
    """What became of other positions that are in force no more."""
    ahead: list[Change]
    """Those that were asked for and moved past offsets of which nothing shows that their group read them."""
    gone: list[Change]
    """What became of positions that are in force no more: of those that the newest earlier copy has, of the groups that were asked for, and of those that were set back."""


def _wants(request: Ask, key: CommitKey) -> bool:
    return (
        (not request.groups or key.group in request.groups)
        and (not request.topics or key.topic in request.topics)
        and (not request.partitions or key.partition in request.partitions)
    )


def _play(request: Ask, logs: Mapping[int, OffsetsLog], start_of: Callable[[CommitKey], LogStart | None]) -> _Played:
    """Play each log to its end; every log learns the retention that the expired positions of all show."""
    setbacks: list[Change] = []
    count = 0
    gone: list[Change] = []
    expired: list[Change] = []
    ahead: list[Change] = []
    positions: dict[CommitKey, Position] = {}
    states: dict[Name, tuple[GroupState | None, bool]] = {}
    names: list[tuple[Name, int]] = []
    unexplained: list[tuple[Name, int]] = []
    for number, log in logs.items():
        replay = log.replay()
        replay.start_of = start_of
        for change in chain(log.settle(replay), _noted(log.gone_since_earlier(replay), gone)):
            if _wants(request, change.key):
                count += 1
                setbacks.append(change)
                if len(setbacks) > 2 * MOST_SETBACKS:
                    setbacks = _largest(setbacks)
        noted, told = {one.key for one in gone}, {one.key for one in setbacks}
        for key, one in replay.former.items():
            if key not in noted and not one.removal.is_lost:
                (gone if key.group in request.groups or key in told else expired).append(one.removal)
        ahead += (one for key, one in replay.ahead.items() if _wants(request, key))
        unexplained += replay.unexplained
        positions.update(replay.positions)
        here = {key.group for key in replay.positions} | replay.groups.keys()
        names += [(name, number) for name in here]
        for name in here:
            states[name] = (replay.groups.get(name), replay.known_from is not None)
    inferred_ms = infer_retention(unexplained)
    for log in logs.values():
        log.inferred_ms = inferred_ms
    return _Played(positions, states, names, setbacks, count, expired, ahead, gone)


def _noted(changes: Iterable[Change], gone: list[Change]) -> Iterator[Change]:
    """Yield those that are lost, and note them all."""
    for one in changes:
        gone.append(one)
        if one.is_lost:
            yield one


def _only_earlier(given: Leaders) -> tuple[list[Change], dict[int, str]]:
    """Return the lost positions of partitions that earlier copies alone hold, where the brokers of these copies are given as they are now, and the other such partitions, each with a clause that says why it is unknown."""
    now = given.live(OFFSETS_TOPIC)
    lost: list[Change] = []
    elsewhere: dict[int, str] = {}
    for tp, group in given.places.by_partition.items():
        earlier = [one for one in group if not given.is_now(one) and one.is_live]
        if tp.topic != OFFSETS_TOPIC or tp in now:
            continue
        if not earlier:
            if any(one.directory_state == "stray" for one in group):
                elsewhere[tp.partition] = "a stray directory alone is here, which no broker serves"
            continue
        if not given.is_gone(tp):
            elsewhere[tp.partition] = "it is in an earlier copy only"
            continue
        newest = max(given.case.ranks[one.state.input] for one in earlier)
        places = [one for one in earlier if given.case.ranks[one.state.input] == newest]
        lost += lost_with_log(given, tp, places)
    return lost, elsewhere


def _topic(
    given: Leaders,
    logs: Mapping[int, OffsetsLog],
    names: Sequence[tuple[Name, int]],
    elsewhere: Mapping[int, str],
) -> CoordinatorTopic:
    return coordinator_topic(
        OFFSETS_TOPIC,
        logs,
        history=given.history,
        is_history_newest=given.is_history_newest,
        settings=given.settings("offsets.topic.num.partitions"),
        names=names,
        unread={**_unread(given, logs), **elsewhere},
    )


def _unread(given: Leaders, logs: Mapping[int, OffsetsLog]) -> dict[int, str]:
    """Return the partitions whose log is here in part, or of which commits may be lost, each with a clause that says why."""
    unread = {number: why for number, log in logs.items() if (why := log.unread) is not None}
    if not any(log.outline.end for log in logs.values()):
        empty = {
            number: epoch
            for number, log in logs.items()
            if (epoch := log.newest_epoch) > 0 and not log.is_shown_from_its_creation
        }
        words = (
            "its log is empty in leader epoch {}, as those of all partitions here are: nothing shows that it always was"
        )
        unread = {**{number: words.format(epoch) for number, epoch in empty.items()}, **unread}
    return {**unread, **_doubtful(given, {number: log for number, log in logs.items() if number not in unread})}


def _doubtful(given: Leaders, logs: Mapping[int, OffsetsLog]) -> dict[int, str]:
    """Return the partitions of which commits may be lost at a return of their leader, each with a clause that says which: by the account that `explain` gives of it."""
    epochs = {number: found for number, log in logs.items() if (found := log.doubtful_epochs)}
    if not epochs:
        return {}
    asked = given.case.asking(
        topics=frozenset({OFFSETS_TOPIC}), partitions=frozenset(epochs), depth=Depth.TAILS, at_ms=None, jobs=1
    )
    incidents = with_returned_doubts([one.incident for one in explain_all(accounts_of(asked), None)])
    return {
        incident.partition.partition: f"commits may be lost. No input shows {doubt.words}. Give {doubt.settled_by}"
        for incident in incidents
        for doubt in incident.doubts
        if doubt.kind is DoubtKind.ELECTION and doubt.leader_epoch in epochs[incident.partition.partition]
    }


def _changes(request: Ask, logs: Mapping[int, OffsetsLog], of_shares: Iterable[Change]) -> Iterator[Change]:
    every = merge(
        *(log.play(log.replay()) for log in logs.values()),
        sorted(of_shares, key=lambda one: one.time_ms),
        key=lambda one: one.time_ms,
    )
    return (one for one in every if _wants(request, one.key) and (not request.expired or one.by == "expiry"))


def _largest(setbacks: Sequence[Change]) -> list[Change]:
    # What was there and is gone comes first.
    return sorted(
        setbacks,
        key=lambda one: (one.caught_up_ms is not None, not one.is_lost, -one.set_back, one.time_ms, str(one.key)),
    )[:MOST_SETBACKS]


def _complete_since(logs: Mapping[int, OffsetsLog], topic: CoordinatorTopic, request: Ask) -> int | Absent:
    """Return from when on the logs that hold what was asked for have every commit."""
    lacks = any(topic.may_lack(one) for one in request.groups) if request.groups else not topic.is_complete
    if lacks:
        return Absent.UNKNOWN
    asked = [
        log
        for number, log in logs.items()
        if not request.groups or any(topic.partition_of(one) in {number, Absent.UNKNOWN} for one in request.groups)
    ]
    known = [log.outline for log in asked if log.outline.newest_ms >= 0]
    # A cleaner that came to the end left what is complete from the newest record on.
    cleaned = [
        one.first_ms if one.first_ms >= 0 else one.newest_ms for one in known if one.cleaned_until or not one.is_whole
    ]
    # A log that begins at its first record and was never cleaned holds all there ever was.
    return max(cleaned) if cleaned else min((one.first_ms for one in known), default=Absent.NOT_APPLICABLE)


def _check_names(
    request: Ask,
    logs: Collection[OffsetsLog],
    topic: CoordinatorTopic,
    shared: Mapping[Name, Sequence[SharedPosition]],
) -> None:
    """Refuse a group, topic or partition that no record names, unless it may be in a partition that is not here."""
    known = {name for log in logs for name in log.groups if isinstance(name, str)}
    known |= {name for name in shared if isinstance(name, str)}
    for name in sorted(request.groups - known):
        if not topic.may_lack(name):
            raise not_there(f"no group {name} is among the inputs (--group)", name, known)
    if not topic.is_complete or not (request.topics or request.partitions):
        return
    keys = {key for log in logs for key in log.keys} | {key for those in shared.values() for key, _, _ in those}
    keys = {key for key in keys if not request.groups or key.group in request.groups}
    whose = f"group {listed(sorted(request.groups))}" if request.groups else "no group"
    topics = {key.topic for key in keys if isinstance(key.topic, str)}
    verb = "has not committed" if request.groups else "has committed"
    for one in sorted(request.topics - topics):
        raise not_there(f"{whose} {verb} in topic {one} (--topic)", one, topics)
    numbers = {key.partition for key in keys if not request.topics or key.topic in request.topics}
    for number in sorted(request.partitions - numbers):
        words = f"{whose} {verb} in a partition {number}{_of(request.topics)} (--partition)"
        raise not_there(words, str(number), map(str, numbers))


def _of(topics: Collection[str]) -> str:
    return f" of {listed(sorted(topics))}" if topics else ""


def _views(
    request: Ask,
    states: Mapping[Name, tuple[GroupState | None, bool]],
    positions: Mapping[CommitKey, Position],
    ends: PartitionEnds,
    shared: Mapping[Name, Sequence[SharedPosition]],
) -> tuple[GroupView, ...]:
    by_group: dict[Name, list[SharedPosition]] = defaultdict(list)
    committed = [(key, position, None) for key, position in positions.items()]
    for one in (*committed, *(each for those in shared.values() for each in those)):
        if _wants(request, one[0]):
            by_group[one[0].group].append(one)
    is_filtered = bool(request.topics or request.partitions)
    views = []
    for name in dict.fromkeys([*states, *shared]):
        state, is_known = states.get(name, (None, False))
        if (request.groups and name not in request.groups) or (is_filtered and name not in by_group):
            continue
        own = sorted(by_group.get(name, ()), key=lambda one: (str(one[0].topic), one[0].partition))
        views.append(
            GroupView(
                name=name,
                state=state,
                is_known_empty=is_known,
                positions=tuple(ends.view(*one) for one in own),
            )
        )
    return tuple(sorted(views, key=lambda view: str(view.name)))
