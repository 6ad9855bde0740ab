"""The answer of metadata logs, and what is said of a quorum that goes on without metadata that was committed, or that can elect no controller."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kforensics.damage import Absent
from kforensics.evidence.metadata.state import majority
from kforensics.findings.answers.model import Answer, State, no_calmer_than_open
from kforensics.protocol.versions import NEWEST_LEVEL, KafkaVersion, least_version_of_level, level_name
from kforensics.units import METADATA_TOPIC
from kforensics.words import Prohibition, Step, copy_of, counted, form, listed, with_place

if TYPE_CHECKING:
    from kforensics.evidence.metadata.compare import LogComparison, MetadataTail
    from kforensics.evidence.metadata.set_back import AbsentControllers, AffectedBroker, Forgotten, QuorumSetBack
    from kforensics.evidence.model import Problem
    from kforensics.evidence.replica.unaccounted import Unaccounted

FIRST_THAT_RENAMES = KafkaVersion(3, 7)
"""The first release that renames a directory that the metadata does not name; those of KRaft before delete it."""
MOST_TOPICS = 3


def quorum_words(found: "QuorumSetBack") -> str:
    """Return the sentences that say it first."""
    if found.is_stuck:
        return f"{_nobody_leads(found)} Until then no broker registers."
    if found.mixed:
        return " ".join([_two_quorums(found), *_what_follows(found)])
    return " ".join([_lacking(found) if found.is_shown else _beyond(found), *_what_follows(found)])


def _beyond(found: "QuorumSetBack") -> str:
    """Return what a copy has that no voter has, and nothing shows to have been committed."""
    who = f"{form(len(found.holders), 'node', 'nodes')} {listed([str(one) for one in found.holders])}"
    return (
        f"The metadata log of {who if found.holders else 'a node'} reaches beyond those of all voters, which end at or below offset {found.end}."
        " Either the voters were copied before, or they lost it."
    )


def _nobody_leads(found: "QuorumSetBack") -> str:
    replaced = [one.node for one in found.standings if one.known_as]
    without = [one for one in found.voters if one not in replaced]
    why = []
    if count := len(replaced):
        why.append(
            f"{_names(replaced)} {form(count, 'is no voter', 'are no voters')} any more, and {form(count, 'comes', 'come')} back with another directory id"
            f" than the one of {form(count, 'its', 'their')} vote"
        )
    if count := len(without):
        why.append(
            f"{_names(without)} {form(count, 'knows', 'know')} no voter, since {form(count, 'it has', 'they have')} lost the metadata log that names them"
        )
    return f"No controller can be elected: {'; '.join(why)}."


def _two_quorums(found: "QuorumSetBack") -> str:
    one, names = len(found.mixed) == 1, _names(found.voters)
    return (
        f"{form(len(found.mixed), 'Node', 'Nodes')} {listed([str(each) for each in found.mixed])} {'holds' if one else 'hold'} records of two metadata quorums."
        f" From offset {found.end} on {'it differs' if one else 'they differ'} from {names} within one leader epoch, which no truncation repairs."
        f" {names[0].upper()}{names[1:]} began anew, or came back with an earlier disk."
    )


def _names(controllers: Collection[int]) -> str:
    return f"{form(len(controllers), 'controller')} {listed([str(one) for one in controllers])}"


def _lacking(found: "QuorumSetBack") -> str:
    names, many = listed([str(one) for one in found.voters]), len(found.voters) > 1
    who = f"Controllers {names}, a majority of the {found.voter_count} voters," if many else f"Controller {names}"
    who = f"{who}, the only voter," if found.voter_count == 1 else who
    if found.is_open:
        who = f"{form(len(found.voters), 'Controller', 'Controllers')} {names}, {'one' if not many else len(found.voters)} of {found.voter_count} voters,"
    hedge = (
        ""
        if found.is_emptied
        else " Only a copy that was made before the others, while the cluster ran, would explain that otherwise."
    )
    if found.is_open:
        more = majority(found.voter_count) - len(found.voters)
        hedge = f" Whether {more} more {form(more, 'voter lacks', 'voters lack')} it is not known: with {form(more, 'it', 'them')} the quorum can go on."
    if found.by_settings:
        hedge = " They can lead where controller.quorum.voters is still in their settings; else no controller can be elected."
    ends = f"{'Their logs end' if many else 'Its log ends'} at or below offset {found.end}"
    if found.is_anew:
        ends = f"{'Their quorum' if many else 'Its quorum'} began anew, or was put back, from offset {found.end} on"
    return f"{who} {form(len(found.voters), 'lacks', 'lack')} metadata that was committed. {ends}, and {found.shown_by}.{hedge}"


def _what_follows(found: "QuorumSetBack") -> Iterator[str]:
    """Yield what the cluster forgets, and what becomes of the directories of brokers."""
    gone = found.forgotten
    holding = [one for one in found.brokers if one.directories]
    if gone is not None and gone.topics:
        topics = f"{form(len(gone.topics), 'topic')} {listed(list(gone.topics), most=MOST_TOPICS)}"
        forgets = (
            "Their log of now does not know"
            if found.mixed
            else "A start then forgets"
            if found.is_open
            else "A start forgets"
        )
        yield f"{forgets} {topics} ({counted(gone.partitions, 'partition')})."
    elif gone is not None and not found.mixed and (changes := list(forgotten_words(gone._replace(epochs=())))):
        yield f"{'A' if found.is_shown else 'If they did, a'} start forgets {changes[0]}{' and more' if changes[1:] else ''}."
        if gone.elections:
            yield "An election can lose then what was committed: it goes by who was in sync before."
    if holding:
        who = f"{form(len(holding), 'broker')} {listed([str(one.node) for one in holding])}"
        unless = ", unless they mix both logs" if found.can_mix else " once they follow it" if found.is_anew else ""
        yield f"{who[0].upper()}{who[1:]} {'' if found.is_anew else 'then '}{_what_they_do(holding)}{unless}."


def _what_they_do(brokers: "Collection[AffectedBroker]") -> str:
    """Return what becomes of the directories that brokers hold and that the metadata does not assign to them, by the releases that they run."""
    count, releases = len(brokers), [_release(one) for one in brokers]
    directories = counted(sum(len(one.directories) for one in brokers), "directory", "directories")
    deleting, renaming = form(count, "deletes", "delete"), form(count, "renames", "rename")
    if all(one is not None and one >= FIRST_THAT_RENAMES for one in releases):
        return f"{renaming} {directories} to -stray"
    if all(one is not None and one < FIRST_THAT_RENAMES for one in releases):
        return f"{deleting} {directories}"
    return f"{renaming} {directories} to -stray (3.7 and later) or {deleting} them (3.0 to 3.6)"


def _release(broker: "AffectedBroker") -> KafkaVersion | None:
    """Return the release that a broker runs at least, by what it said when it registered."""
    return least_version_of_level(broker.newest_level) if isinstance(broker.newest_level, int) else None


def quorum_steps(found: "QuorumSetBack") -> Iterator[str]:
    """Yield what not to do before it is mended, and how the metadata can be brought back."""
    names = _names(found.voters)
    if found.mixed:
        yield Prohibition(
            "Restart no node before it is decided which metadata goes on: a broker keeps, or sets aside, its partitions by what its own copy says by then."
        )
        yield Step("Copy the metadata logs of all nodes before anything is moved", tuple(map(copy_of, found.copies)))
        yield (
            f"To go on with that of {names}: stop {form(len(found.mixed), 'node', 'nodes')} {listed([str(one) for one in found.mixed])}, move {METADATA_TOPIC}-0 there aside,"
            f" and start {form(len(found.mixed), 'it', 'them')}. The log is copied anew, and partitions that it does not name are set aside."
        )
        yield _to_former(found)
        return
    from_whom = f" of node {found.holders[0]}" if found.holders else ""
    if found.is_stuck:
        known = {one.node: one.known_as for one in found.standings if one.known_as}
        ids = listed([f"controller {node} as {known[node]}" for node in found.voters if node in known], most=9)
        yield Prohibition(
            f"Format no other controller, and none of these again: a quorum that is begun anew (--standalone, --initial-controllers) forgets all topics.{f' The voters know {ids}.' if ids else ''}"
        )
        former_id = " and its former directory.id in meta.properties" if known else ""
        yield (
            f"Bring the former {form(len(found.voters), 'disk', 'disks')} of {names} back. Where they are lost, no tool of Kafka mends it: give"
            f" {form(len(found.voters), 'it', 'each')} the metadata log{from_whom}{former_id} (not supported; try it on copies)."
        )
        return
    if found.is_open:
        yield f"Give the log directories of the other {found.voter_count - len(found.voters)} voters, too: they decide whether one that lacks it can be elected."
    if not found.is_shown:
        yield f"If {names} {form(len(found.voters), 'was', 'were')} copied before the others, copy {form(len(found.voters), 'its log directories', 'their log directories')} again: their logs decide."
    yield Prohibition(
        f"Start no node of this cluster as it is: the quorum can go on from offset {found.end}, and nodes with more truncate their metadata, or mix it with the new."
        " Brokers then set aside, or delete, the partitions that it does not name."
        + ("" if found.source else f" Give {names} the metadata log{from_whom} first.")
    )
    if found.source is not None:
        path, end = found.source
        yield (
            f"Give {names} this metadata log first: {path}, which reaches to offset {end - 1}, as {METADATA_TOPIC}-0, without its quorum-state and owned by the user of Kafka."
            " Kafka has no tool for it, and does not support it: try it on copies."
        )


def _to_former(found: "QuorumSetBack") -> str:
    """Return how the metadata from before a quorum was begun anew is brought back, where a node still holds it."""
    if found.source is None:
        return ""
    path, end = found.source
    if not found.is_source_whole:
        return (
            f"The former metadata can't be brought back from these logs as they are: {path} has most of it, to offset {end - 1}, and records of the other quorum from {end} on."
            " Look for a copy from before."
        )
    ids = listed([f"controller {node} as {known}" for node, known in sorted(found.former_ids.items())], most=9)
    known_as = f" It knows its voters by the directory.id in meta.properties: {ids}." if ids else ""
    since = (
        f" {form(len(found.since), 'Topic', 'Topics')} {listed(list(found.since), most=MOST_TOPICS)}, created since, {form(len(found.since), 'is', 'are')} forgotten then."
        if found.since
        else ""
    )
    return (
        f"To go on with the former metadata: stop every node, move {METADATA_TOPIC}-0 aside on each, and give each controller {path}, which reaches to offset {end - 1}."
        f" It goes there as {METADATA_TOPIC}-0, without its quorum-state and owned by the user of Kafka.{known_as} Take -stray from the names of directories that were set aside, then start"
        f" the controllers, and the brokers after them.{since} Kafka has no tool for it, and does not support it: try it on copies."
    )


def with_quorum(answer: Answer, found: "QuorumSetBack") -> Answer:
    """Return an answer that does not speak of the quorum itself, with what it goes on with first: none is calm then."""
    return replace(
        answer,
        state=no_calmer_than_open(answer.state),
        headline=f"{quorum_words(found)} {answer.headline}",
        now=tuple(dict.fromkeys((*quorum_steps(found), *answer.now))),
    )


def quorum_tell(found: "QuorumSetBack") -> Iterator[str]:
    """Yield whom to tell of it."""
    if found.forgotten is not None and found.forgotten.topics:
        topics = listed(list(found.forgotten.topics), most=MOST_TOPICS)
        yield f"Producers and consumers of {topics}: {form(len(found.forgotten.topics), 'the topic', 'the topics')} can be gone after the next start."


def absent_words(voters: Collection[int]) -> str:
    """Return what none of the inputs shows where no controller is among them."""
    names, one = _names(voters), len(voters) == 1
    return (
        f"What {names} {form(len(voters), 'holds', 'hold')}, {'which is not' if one else 'none of which is'} among the inputs: brokers set aside, or delete,"
        " what the metadata of their controllers does not assign to them."
    )


def _ways_back(absent: "AbsentControllers") -> Iterator[str]:
    """Yield how the copy of a broker is made the metadata of new controllers, where the disks of all are lost."""
    names, each = _names(absent.voters), form(len(absent.voters), "it", "each")
    yield (
        f"If the disks of {names} are lost, {absent.path} is the longest copy given: it reaches to offset {absent.end - 1}, and what came later is gone."
        " Kafka has no tool that goes on with it, and does not support it: try it on copies of all disks, with every node stopped."
    )
    flag, then = (
        "",
        f"keep controller.quorum.voters as it was, and give {each} the copy as {METADATA_TOPIC}-0, without its quorum-state.",
    )
    if absent.directories:
        flag = " --no-initial-controllers"
        ids = listed([f"controller {node} as {known}" for node, known in sorted(absent.directories.items())], most=9)
        then = f"write the directory.id by which the voters know {each} into its meta.properties ({ids}), and give {each} the copy as {METADATA_TOPIC}-0, without its quorum-state."
    cluster = absent.cluster_id or "CLUSTER_ID"
    yield Step(
        f"Format {form(len(absent.voters), 'the new controller', 'each new controller')} with the id of the cluster and {form(len(absent.voters), 'its', 'its own')} former node.id,"
        f" then {then} --standalone and --initial-controllers (3.9 and later) begin a quorum that forgets all topics:",
        (f"kafka-storage.sh format --cluster-id {cluster} --config controller.properties{flag}",),
    )


def forgotten_words(gone: "Forgotten") -> Iterator[str]:
    """Yield what a quorum forgets, kind by kind."""
    if gone.topics:
        yield f"{form(len(gone.topics), 'topic')} {listed(list(gone.topics), most=8)}, and with them {counted(gone.partitions, 'partition')}"
    elif gone.partitions:
        yield counted(gone.partitions, "partition")
    if gone.elections:
        yield f"the last leader or in-sync replicas of {counted(len(gone.elections), 'partition')}"
    if gone.deletions:
        names = listed(list(gone.deletions), most=8)
        yield f"that {form(len(gone.deletions), 'topic', 'topics')} {names} {form(len(gone.deletions), 'was', 'were')} deleted, and makes {form(len(gone.deletions), 'it', 'them')} anew"
    if gone.configs:
        yield counted(gone.configs, "configuration")
    if gone.acls:
        yield counted(gone.acls, "ACL")
    if gone.brokers:
        yield f"the last registration of {form(len(gone.brokers), 'broker')} {listed([str(one) for one in gone.brokers], most=8)}"
    if gone.producer_ids is not None:
        first, end = gone.producer_ids
        yield f"which producer ids were given out: {first}..{end - 1} are given out again, and brokers that know them take new records for old ones"
    for name, before, after in gone.features:
        yield f"{name} {before}, which is {after or 'not set'} then"
    for partition, before, after in gone.epochs[:MOST_TOPICS]:
        yield f"leader epoch {before} of {partition}, which is {after} then"
    if len(gone.epochs) > MOST_TOPICS:
        yield f"leader epochs of {len(gone.epochs) - MOST_TOPICS} more partitions"


def broker_words(broker: "AffectedBroker") -> str:
    """Return what a broker does once it follows the quorum."""
    parts = []
    if broker.truncates_to is not None:
        parts.append(
            f"truncates its metadata log to {broker.truncates_to}, or to where the new log ends in the same leader epoch by then, and mixes both"
        )
    if broker.directories:
        parts.append(f"{_what_they_do([broker])}: {listed(list(broker.directories), most=4)}")
    if broker.epochs is not None:
        marker, registered = broker.epochs
        known = f"knows broker epoch {registered}" if registered >= 0 else "does not know it"
        parts.append(f"registers anew: its clean stop names broker epoch {marker}, and the controller {known}")
    return "; ".join(parts) or "keeps what it has"


def metadata_answer(
    comparison: "LogComparison",
    problems: "Sequence[Problem]",
    *,
    lost_end: "Unaccounted | None" = None,
    quorum: "QuorumSetBack | None" = None,
    absent: "AbsentControllers | None" = None,
) -> Answer:
    """Return the answer to what the metadata logs hold.

    Returns:
        `diverged` where a node holds records that the newest log does not and that a majority may have held, `unknown` where not all could be read, `behind` where a log is shorter or has a tail that no majority held, `agree`
        where several are the same, `complete` for one alone.
    """
    unread = counted(len(problems), "problem") if problems else ""
    incomplete = [f"with {unread}"] if unread else []
    if lost_end is not None:
        incomplete.append(f"a broker registered at offset {lost_end.last}, above its end")
    prefix = f"Incomplete, {' and '.join(incomplete)}: " if incomplete else ""
    headline = f"{prefix}{_newest(comparison)}"
    return Answer(
        state=_state(comparison, bool(incomplete or quorum)),
        headline=f"{quorum_words(quorum)} {headline}" if quorum else headline,
        now=with_place(quorum_steps(quorum)) if quorum else (),
        unknown=(
            *(
                (
                    f"What {lost_end.words} and later ones hold: .kafka_cleanshutdown names the broker epoch {lost_end.last}.",
                )
                if lost_end
                else ()
            ),
            *((f"What the metadata holds in the places of {unread} is not shown.",) if unread else ()),
            *_uncommitted(comparison),
            *(() if absent is None else (absent_words(absent.voters), *_ways_back(absent))),
        ),
    )


def _state(comparison: "LogComparison", is_incomplete: bool) -> State:
    tails = [log.tail for log in comparison.logs if not isinstance(log.tail, Absent)]
    # What no majority holds was not committed: its node truncates it when it next fetches (KIP-595).
    if any(_can_be_committed(tail, comparison) for tail in tails) or any(log.is_mixed for log in comparison.logs):
        return State.DIVERGED
    if is_incomplete:
        return State.UNKNOWN
    if tails or any(log.behind for log in comparison.logs):
        return State.BEHIND
    return State.AGREE if len(comparison.logs) > 1 else State.COMPLETE


def _can_be_committed(tail: "MetadataTail", comparison: "LogComparison") -> bool:
    """Whether a majority of the voters can hold a tail that differs from the newest log; a majority that holds the newest log there excludes it."""
    voters = comparison.voters
    without = {
        log.history.node_id
        for log in comparison.logs
        if isinstance(log.tail, Absent) or log.tail.first_offset != tail.first_offset
    }
    return not voters or len(set(voters) - without) >= majority(len(voters))


def _uncommitted(comparison: "LogComparison") -> Iterator[str]:
    """Yield the parts of the newest log that are not shown to be committed."""
    newest, end, voters = comparison.newest, comparison.majority_end_offset, comparison.voters
    if isinstance(end, Absent):
        if len(voters) > 1:
            yield f"How far the metadata is committed: the logs of most of the voters {listed(list(map(str, voters)))} would show it."
    elif end < newest.end_offset:
        last = newest.end_offset - 1
        is_one = last == end
        offsets, them = (f"offset {end}", "it") if is_one else (f"offsets {end}..{last}", "them")
        yield f"Whether {offsets} {'was' if is_one else 'were'} ever committed: no majority of the voters holds {them} in the logs given, which need not be of one moment."


def _newest(comparison: "LogComparison") -> str:
    newest = comparison.newest
    node = "a node" if isinstance(newest.node_id, Absent) else f"node {newest.node_id}"
    version = newest.metadata_version
    newer = f" ({level_name(version)})" if isinstance(version, int) and version > NEWEST_LEVEL else ""
    feature = "" if isinstance(version, Absent) else f", metadata.version {version}{newer}"
    feature += {1: ", a migration from ZooKeeper under way", 2: ", a migration from ZooKeeper begun"}.get(
        newest.migration, ""
    )
    logs = "" if len(comparison.logs) == 1 else f" (the newest of {len(comparison.logs)} logs)"
    if not newest.is_log_known:
        return f"Metadata log of {node}{logs}: it could not be read whole, and where it ends is unknown{feature}."
    if newest.start_offset == newest.end_offset:
        return f"Metadata log of {node}{logs}: no record behind its snapshot at offset {newest.end_offset}{feature}."
    return (
        f"Metadata log of {node}{logs}: offsets {newest.start_offset}..{newest.end_offset - 1}, "
        f"leader epoch {newest.last_epoch}{feature}."
    )
