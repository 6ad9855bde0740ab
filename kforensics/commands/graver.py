"""What another command says of the partitions that a command is asked about: the comparison of `diff --depth tails`, which is quick at any size, or what `explain` says was lost."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from kforensics.case.model import Case, fact, fact_of_question, now_of, places_of, quick_depth
from kforensics.case.wanted import is_wanted
from kforensics.commands.result import Conclusion
from kforensics.damage import Absent
from kforensics.errors import EvidenceError, UsageError
from kforensics.evidence.discovery.inputs import belonging_together, has_log_files
from kforensics.evidence.discovery.partition_dirs import PartitionPlace, checkpoint_value
from kforensics.evidence.metadata.files import find_metadata_logs
from kforensics.evidence.model import CheckpointValue
from kforensics.exits import ExitCode
from kforensics.findings.answers.diff import lost_before
from kforensics.findings.answers.graver import Asked, beyond, may_be_calmer, said_by, with_graver
from kforensics.findings.answers.model import CALM_OF_DIFF, STATES, Answer, State, exit_code, no_calmer_than_open
from kforensics.findings.concern import ConcernKind, JudgedPartition
from kforensics.findings.model import Finding, Weight, by_gravity
from kforensics.findings.rules.quorum import quorum_words, with_quorum
from kforensics.units import METADATA_TOPICS, OFFSETS_TOPIC, Depth, TopicPartition
from kforensics.words import counted, with_place

if TYPE_CHECKING:
    from kforensics.evidence.metadata.set_back import QuorumSetBack


class _History(NamedTuple):
    """What `explain` says of partitions of which something is here that may have taken records."""

    is_answered: bool = False
    lost: Asked | None = None
    """Its answer, where something was lost."""
    left_open: Asked | None = None
    """Its answer, where elections on record leave it open whether anything was lost."""
    unknown: tuple[str, ...] = ()
    """What it leaves open: where brokers led again that had gone down, what has to be true for a loss."""
    past_ends: tuple[str, ...] = ()
    """By partition, what it says of offsets that lines of a broker name and no log of it given reaches."""


def no_calmer(
    command: str,
    found: Conclusion,
    case: Case,
    topics: AbstractSet[str] | None = None,
    partitions: frozenset[int] = frozenset(),
) -> Conclusion:
    """Return the conclusion of a command, no calmer than the replicas of the topics that it is about; none for those that are asked about."""
    if case.is_weighed or not may_be_calmer(found.answer):
        return found
    code = exit_code(command, found.answer, found.findings, found.problems)
    answer = with_graver(found.answer, graver_of(case, topics, partitions), code=code)
    found = found._replace(answer=answer)
    found = found if command == "explain" else no_calmer_than_history(command, found, case)
    if command == "verify" and found.answer.state is State.MAYBE_AT_RISK and _is_as_copied(case):
        # What a copy of running brokers looks like is no damage.
        found = found._replace(answer=replace(found.answer, state=State.UNKNOWN))
    return found


def no_calmer_in_cluster(
    command: str, found: Conclusion, case: Case, topics: AbstractSet[str], partitions: frozenset[int] = frozenset()
) -> Conclusion:
    """Return the conclusion of a command about some topics, no calmer than their replicas and the metadata quorum."""
    found = no_calmer(command, found, case, topics, partitions)
    if case.is_weighed:
        return found
    found = no_calmer_than_metadata(found, case.asking(topics=frozenset(topics)))
    return found._replace(answer=no_calmer_than_order(found.answer, case))


def no_calmer_than_order(answer: Answer, case: Case) -> Answer:
    """Return an answer of earlier copies, no calmer than what is now is sure to be the latest."""
    if case.is_weighed or not case.later:
        return answer
    words = f"If {case.later[0]} is the earlier one, though its files are younger: {answer.headline}"
    return replace(answer, state=no_calmer_than_open(answer.state), headline=words)


def no_calmer_than_history(command: str, found: Conclusion, case: Case) -> Conclusion:
    """Return the conclusion of a command that can say what was lost, no calmer than what happened to the partitions that are asked about."""
    if case.is_weighed or State.MAYBE_LOST not in STATES[command]:
        return found
    answer, code = found.answer, exit_code(command, found.answer, found.findings, found.problems)
    if not may_be_calmer(answer) and not has_log_files(now_of(case).inputs):
        return found
    history = _history_of(case)
    # Whether files are sound, or commits went back, no election decides.
    graver = history.lost or (history.left_open if command in _OF_REPLICAS else None)
    answer = with_graver(answer, graver, code=code)
    answer = replace(answer, unknown=tuple(dict.fromkeys((*answer.unknown, *history.unknown))))
    return found._replace(answer=_no_calmer_than_lines(answer, history.past_ends))


_OF_REPLICAS = frozenset({"diff", "predict"})
"""Commands that are asked whether replicas are as they should be, and lose nothing."""


def no_calmer_than_before(answer: Answer, judged: Sequence[JudgedPartition], case: Case) -> Answer:
    """Return an answer of `diff`, no calmer than what happened to the partitions: replicas that agree now say nothing of that."""
    if case.is_weighed or not may_be_calmer(answer):
        return answer
    history = _asked_of_history(judged, case)
    # Of directories that are older than what lines tell, that they are is said first.
    is_outdated = any(one.kind is ConcernKind.OUTDATED for each in judged for one in each.concerns)
    if answer.state.exit_code and is_outdated:
        return with_graver(answer, history.lost)
    answered = frozenset(lost_before(judged)) if history.is_answered or history.unknown else ()
    kept = tuple(one for one in answer.unknown if one not in answered)
    answer = replace(answer, unknown=(*kept, *history.unknown))
    return with_graver(answer, history.lost or history.left_open)


@fact_of_question
def _history_of(case: Case) -> _History:
    compared = _compared_by_ends(case)
    return _asked_of_history(None if compared is None else [one.judged for one in compared.partitions], case)


def _asked_of_history(judged: Sequence[JudgedPartition] | None, case: Case) -> _History:
    """Return what `explain` says of every partition of which something is here that may have taken records; of what is as it should be it is asked nothing.

    Args:
        judged: what the comparison of replicas gives reason for; None where there is nothing to compare.
    """
    ways = (_set_aside_beside, _ended_early, _only_set_aside, _named_by_lines)
    partitions = _with_risky_elections(case) if judged is None else _left_open(judged)
    explained = _explained(case, partitions.union(*(way(case) for way in ways)))
    if explained is None:
        return _History()
    state, asked = explained.answer.state, Asked("explain", explained.answer, case.ask)
    silent = frozenset(one.partition for one in judged or () if one.state is State.UNKNOWN)
    is_lost = state in _LOSSES and (
        _is_lost(explained, silent) or any(one.counts_at_least for one in explained.incidents)
    )
    is_open = state is State.UNKNOWN and explained.leaves_open
    before = explained.returned or (tuple(lost_before(judged or ())) if is_open else ())
    return _History(
        is_answered=state is not State.UNKNOWN,
        lost=asked if is_lost else None,
        left_open=asked if is_open else None,
        unknown=before if state is State.UNKNOWN else (),
        past_ends=tuple(
            f"{doubt.words} ({one.partition})"
            for one in explained.incidents
            for doubt in one.doubts
            if doubt.is_of_lines
        ),
    )


def _explained(case: Case, partitions: frozenset[TopicPartition]) -> Any:
    """Return what `explain` says of some partitions as they are now; None where there are none, or they can't be explained."""
    asked = _by_ends(case, frozenset(one.topic for one in partitions))
    try:
        return _command("explain").explain(replace(asked, is_weighed=True, only=partitions)) if partitions else None
    except (EvidenceError, UsageError):
        return None


def _by_ends(case: Case, topics: frozenset[str]) -> Case:
    """Return the case that asks what the logs as they are now show, of large ones their ends, of some topics, in the partitions that are asked about."""
    now = now_of(case)
    return now.asking(topics=topics, partitions=case.ask.partitions, depth=case.ask.depth or quick_depth(now))


def _no_calmer_than_lines(answer: Answer, words: Sequence[str]) -> Answer:
    """Return the answer, no calmer than lines of brokers that name offsets which no log given reaches: a log lost its end, or was copied before."""
    if not words:
        return answer
    first, *others = words
    if answer.state.weight > Weight.DECIDE or answer.state.exit_code == ExitCode.FINDINGS:
        return replace(answer, unknown=(*answer.unknown, f"{first[:1].upper()}{first[1:]}."))
    more = f" The same is so of {counted(len(others), 'other partition')}." if others else ""
    said = f"The inputs do not show {first}: see `kforensics explain`.{more} {answer.headline}"
    return replace(answer, state=State.UNKNOWN, headline=said)


@fact_of_question
def _named_by_lines(case: Case) -> frozenset[TopicPartition]:
    """Return the partitions of which lines of a broker name offsets that no log of it given reaches, or say that some were truncated."""
    now = now_of(case)
    if not has_log_files(now.inputs):
        return frozenset()
    from kforensics.case.cluster import cluster_of, truncations_of  # noqa: PLC0415 - what reads broker logs
    from kforensics.reconcile.observed.logged_truncations import subject_of  # noqa: PLC0415 - the same

    try:
        facts, truncated = cluster_of(now).facts, subject_of(truncations_of(now))
        return frozenset(
            partition
            for partition, group in _wanted(case)
            if partition in truncated or _ends_before(facts.logged_ends(partition), group)
        )
    except (EvidenceError, UsageError):
        return frozenset()


def _wanted(case: Case) -> Iterator[tuple[TopicPartition, tuple[PartitionPlace, ...]]]:
    """Yield the directories of each partition of topics that is asked about."""
    for partition, group in places_of(now_of(case)).by_partition.items():
        if partition.topic not in METADATA_TOPICS and is_wanted(partition, case.ask):
            yield partition, group


def _ends_before(ends: Mapping[int, Any], group: Sequence[PartitionPlace]) -> bool:
    """Whether a log ends before an offset that lines of its broker name."""
    from kforensics.evidence.replica.collect import collect_replica  # noqa: PLC0415 - where lines name any

    return any(
        end.offset > collect_replica(place, depth=Depth.TAILS).replica.lineage.log_end_offset
        for place in group
        if place.is_live and isinstance(broker := place.state.broker_id, int) and (end := ends.get(broker)) is not None
    )


def graver_of(
    case: Case, topics: AbstractSet[str] | None = None, partitions: frozenset[int] = frozenset()
) -> Asked | None:
    """Return how the replicas compare of the partitions that are asked about; None where no partition has two replicas here, or they can't be compared."""
    if topics is not None:
        places = places_of(now_of(case))
        # A topic that is not there, as that of share groups mostly, is refused by its name.
        there = {one.topic for one in (*places.by_partition, *(lost.topic_partition for lost in places.lost))}
        case = case.asking(topics=frozenset(topics & there), partitions=partitions)
        if not case.ask.topics:
            return None
    asked, compared = by_ends_of(case), _compared_by_ends(case)
    return None if asked is None or compared is None else Asked("diff", compared.answer, asked.ask)


def _is_as_copied(case: Case) -> bool:
    """Whether replicas may be at risk by no more than what copying them while brokers run leaves behind."""
    concerns = (one for each in _compared_by_ends(case).partitions for one in each.judged.concerns)
    kinds = {one.kind for one in concerns if one.state is State.MAYBE_AT_RISK}
    return kinds <= {ConcernKind.TAIL, ConcernKind.PAST_END}


@fact_of_question
def _compared_by_ends(case: Case) -> Any:
    asked = by_ends_of(case)
    try:
        return None if asked is None else _command("comparing").compare(asked)
    except (EvidenceError, UsageError):
        return None


@fact_of_question
def _with_risky_elections(case: Case) -> frozenset[TopicPartition]:
    """Return the partitions of which metadata or lines of brokers show an election that may have lost records."""
    now = now_of(case)
    if not has_log_files(now.inputs) and not find_metadata_logs(now.inputs):
        return frozenset()
    from kforensics.case.cluster import cluster_of  # noqa: PLC0415 - what reads metadata and broker logs
    from kforensics.reconcile.observed.leadership import account_of  # noqa: PLC0415 - the same

    try:
        facts = cluster_of(now).facts
    except (EvidenceError, UsageError):
        return frozenset()
    return frozenset(
        partition
        for partition, _ in _wanted(case)
        if account_of(partition, facts.topic_id(partition.topic), facts).risky
    )


def _left_open(judged: Sequence[JudgedPartition]) -> frozenset[TopicPartition]:
    """Return the partitions of which the comparison leaves something open that is here, or alarms about it, or that had elections which may have lost records."""
    return frozenset(
        one.partition
        for one in judged
        if one.partition.topic not in METADATA_TOPICS
        if one.risks
        or any(each.kind not in _NOT_HERE and each.state not in CALM_OF_DIFF for each in one.concerns)
        or any(each.kind is ConcernKind.OTHER_TOPIC for each in one.concerns)
    )


_NOT_HERE = frozenset(
    {
        ConcernKind.ALONE,
        ConcernKind.ASSIGNMENT,
        ConcernKind.DISPLACED,
        ConcernKind.LEADER,
        ConcernKind.MISSING,
        ConcernKind.NO_REPLICA,
        ConcernKind.UNNAMED,
    }
)
"""Concerns of what is not given, or whose it is: logs show nothing of these."""


def _set_aside_beside(case: Case) -> frozenset[TopicPartition]:
    """Return the partitions of which some directories are in use, and others, or segments in these, were set aside."""
    return frozenset(
        partition
        for partition, group in _wanted(case)
        if any(place.is_live for place in group)
        if any(place.directory_state in _SET_ASIDE or (place.is_live and place.has_deleted) for place in group)
    )


def _is_lost(explained: Any, silent: Collection[TopicPartition]) -> bool:
    """Whether it is any of the records that may be committed; what a replica in use alone holds the comparison itself speaks of, but of partitions that it can't judge."""
    return any(
        one.records and one.committed != "no" and (not one.in_use or each.partition in silent)
        for each in explained.incidents
        for one in each.losses
    )


@fact
def _of_tiers(case: Case) -> list[tuple[TopicPartition, tuple[list[Finding], list[str]]]]:
    """Return by tiered partition what is gravely wrong with it, and what is not shown of it."""
    from kforensics.case.tiers import tiers_of  # noqa: PLC0415 - what reads metadata
    from kforensics.findings.rules.tiers import not_shown, tier_findings  # noqa: PLC0415 - likewise

    return [
        (one.partition, ([each for each in tier_findings(one) if each.is_grave], list(not_shown(one))))
        for one in tiers_of(case)
    ]


def no_calmer_than_tiers(found: Conclusion, case: Case) -> Conclusion:
    """Return the conclusion, no calmer than offsets allow that are in neither tier, or may be."""
    asked = [each for partition, each in _of_tiers(case) if is_wanted(partition, case.ask)]
    if not asked:
        return found
    holes = [one for of_one, _ in asked for one in of_one]
    answer = replace(found.answer, unknown=(*found.answer.unknown, *(one for _, open_ in asked for one in open_)))
    if holes and answer.state.weight <= Weight.DECIDE:
        words = f"{holes[0].statement}: see `kforensics verify`. {answer.headline}"
        state = State.UNKNOWN if answer.state.weight < Weight.DECIDE else answer.state
        answer = replace(answer, state=state, headline=words)
    return found._replace(answer=answer, findings=by_gravity((*found.findings, *holes)))


def no_calmer_than_cleaners(found: Conclusion, case: Case) -> Conclusion:
    """Return the conclusion of a command with the logs that no cleaner comes to, which its first line names where nothing graver was found."""
    is_any_known = bool(find_metadata_logs(case.inputs)) or any(
        partition.topic == OFFSETS_TOPIC
        or isinstance(checkpoint_value(place.state, "cleaner_point", partition), CheckpointValue)
        for partition, place in replicas_now(case)
    )
    if case.is_weighed or not is_any_known:
        return found
    from kforensics.commands.cleaning import standing_cleaners, with_cleaners  # noqa: PLC0415 - what reads metadata

    try:
        standing = standing_cleaners(case)
    except (EvidenceError, UsageError):
        return found
    is_graver = found.answer.state.exit_code == ExitCode.FINDINGS
    answer = found.answer if is_graver else with_cleaners(found.answer, standing)
    return found._replace(answer=answer, findings=by_gravity((*found.findings, *standing)))


def replicas_now(case: Case, topic: str | None = None) -> Iterator[tuple[TopicPartition, PartitionPlace]]:
    """Yield the replicas in use as they are now, of a topic or of what is asked about, without those of the metadata."""
    for partition, group in places_of(case).by_partition.items():
        if partition.topic in METADATA_TOPICS:
            continue
        if partition.topic == topic if topic is not None else is_wanted(partition, case.ask):
            yield from ((partition, place) for place in group if place.is_live and place.state.input not in case.ranks)


@fact_of_question
def _ended_early(case: Case) -> frozenset[TopicPartition]:
    """Return the partitions of which the beginning of a log went before any retention can have come to it."""
    now = now_of(case)
    if not find_metadata_logs(now.inputs):
        return frozenset()  # what their settings are is on no disk
    from kforensics.case.settings import retention_of  # noqa: PLC0415 - what reads metadata and broker logs
    from kforensics.evidence.coordinators.replica_log import list_log  # noqa: PLC0415 - the same

    try:
        retention = retention_of(now)
        return frozenset(
            partition
            for partition, group in _wanted(case)
            for place in group
            if place.is_live
            if (base := list_log(place).first_base)
            if retention(partition, place.state.broker_id).early_from(0, base)
        )
    except (EvidenceError, UsageError):
        return frozenset()


@fact_of_question
def _only_set_aside(case: Case) -> frozenset[TopicPartition]:
    """Return the partitions that have no directory in use, and others that were set aside, where metadata is here that may not name it."""
    if not find_metadata_logs(now_of(case).inputs):
        return frozenset()
    return frozenset(
        partition
        for partition, group in _wanted(case)
        if group and all(place.directory_state in _SET_ASIDE for place in group)
    )


@fact_of_question
def _lost_with_set_aside(case: Case) -> Asked | None:
    """Return what `explain` says of topics of which nothing is in use, where something is lost by it."""
    explained = _explained(case, _only_set_aside(case))
    if explained is None or explained.answer.state not in _LOSSES:
        return None
    return Asked("explain", explained.answer, case.ask)


_SET_ASIDE = frozenset({"deleted", "stray"})
_LOSSES = frozenset({State.LOST, State.MAYBE_LOST})


def no_calmer_than_metadata(found: Conclusion, case: Case, *, of_quorum: bool = True) -> Conclusion:
    """Return the conclusion of a command that asks for files or metadata, no calmer than a quorum that can't go on, and than what it has set aside.

    Args:
        of_quorum: whether it does not speak of the quorum itself.
    """
    answer, quorum = found.answer, _quorum_of(case) if of_quorum else None
    lost = _lost_with_set_aside(case) if answer.state.weight < Weight.DECIDE else None
    if lost is not None:
        said = said_by(lost, beside=answer.headline)
        answer = replace(
            answer,
            state=no_calmer_than_open(answer.state),
            headline=f"{said} {beyond(answer.headline, said)}".rstrip(),
            now=with_place(tuple(dict.fromkeys((*lost.answer.now, *answer.now)))),
        )
    if quorum is not None and beyond(quorum_words(quorum), answer.headline):
        answer = with_quorum(answer, quorum)
    return found._replace(answer=answer)


@fact_of_question
def _quorum_of(case: Case) -> "QuorumSetBack | None":
    now = now_of(case)
    if not find_metadata_logs(now.inputs):
        return None
    from kforensics.case.cluster import cluster_of  # noqa: PLC0415 - what reads metadata logs

    try:
        belonging_together(now.inputs, cluster=case.ask.cluster, is_of_one_moment=True)
        return cluster_of(now).quorum
    except (EvidenceError, UsageError):
        return None


def _lacks_log(group: Sequence[PartitionPlace]) -> bool:
    """Whether no log of a partition has a byte, which files beside it may speak of."""
    return not any(one.length or one.is_left_out for one in group) and any(one.is_live for one in group)


def _command(name: str) -> Any:
    """Return a command as the command line finds it, by its name: who asks it depends on its answer alone."""
    return import_module(f"kforensics.commands.{name}")


@fact_of_question
def by_ends_of(case: Case) -> Case | None:
    """Return the case that compares the ends of the replicas, as they are now, of what a case is asked about; None where one node is given that lacks no log, or they can't be compared."""
    now, asked = now_of(case), _by_ends(case, case.ask.topics)
    places = places_of(asked)
    nodes = {_node_of(one.described.broker_id, at) for at, one in enumerate(now.inputs.found) if one.log_dirs}
    if not any(is_wanted(one.topic_partition, asked.ask) for one in places.lost) and not any(
        len(nodes.union(_node_of(one.state.broker_id, one.state.input) for one in group)) > 1 or _lacks_log(group)
        for partition, group in places.by_partition.items()
        if is_wanted(partition, asked.ask)
    ):
        return None
    try:
        belonging_together(now.inputs, cluster=case.ask.cluster, is_of_one_moment=True)
    except (EvidenceError, UsageError):
        return None
    return asked


def _node_of(broker_id: int | Absent, number: int) -> int | str:
    """Return whose an input is; of one without an id, that it is another one's than all others'."""
    return broker_id if isinstance(broker_id, int) else f"input {number}"
