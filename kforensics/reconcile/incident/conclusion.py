"""The conclusion in plain sentences: what is lost and why, what to do and what not to do, and what more evidence would show."""

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kforensics.damage import Absent
from kforensics.evidence.broker_logs import LogFile
from kforensics.evidence.model import Input
from kforensics.reconcile.bugs.evidence import BugTrace
from kforensics.reconcile.history.causes import CauseName
from kforensics.reconcile.incident.model import Holder, LossEntry, PartitionIncident
from kforensics.reconcile.incident.operations import Operation
from kforensics.reconcile.observed.clocks import Clock, clocks_that_disagree
from kforensics.reconcile.timeline.events import TimelineEntry
from kforensics.units import METADATA_TOPICS, TopicPartition
from kforensics.words import Prohibition, counted, form, listed

CAUSE_WORDS = {
    CauseName.UNCLEAN_ELECTION: "an unclean election",
    CauseName.POWER_LOSS: "a power loss or crash that took what was not yet on disk",
    CauseName.HIGH_WATERMARK: "truncation to a high watermark, the protocol before leader epochs",
    CauseName.UNCOMMITTED_TAIL: "a tail of the log that had not been replicated",
    CauseName.LAST_REPLICA_STANDING: "the last replica standing, which had lost its own tail and led again",
    CauseName.DAMAGE: "damage inside of a log, behind which nothing could be read or start-up recovery kept nothing",
    CauseName.RECOVERY: "start-up recovery",
    CauseName.RECREATED_TOPIC: "a topic that was created again under the same name",
    CauseName.DISK_REPLACED: "a broker that led again with another disk",
    CauseName.DISK_RESTORED: "a disk that was put back to an earlier state",
    CauseName.UNKNOWN: "a cause that the evidence does not show",
}


MOST_NAMED = 4
"""Partitions that are named one by one."""
MOST_CAUSES = 2
"""Causes that one sentence names, those of most records."""
CREATION_MS = 1_000
"""The records of a new topic and of its settings are written within this time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Sentences, most important first."""

    conclusion: tuple[str, ...]
    now: tuple[str, ...]
    """What to do at once, and what not to do (`Prohibition`)."""
    tell: tuple[str, ...]
    """Whom to inform of what."""
    later: tuple[str, ...]
    """Prevention."""
    missing: tuple[str, ...]

    @property
    def advice(self) -> tuple[str, ...]:
        """All advice, the most urgent first."""
        return (*self.now, *self.tell, *self.later)


def conclude(
    incidents: Sequence[PartitionIncident],
    timeline: Sequence[TimelineEntry],
    *,
    operations: Sequence[Operation] = (),
    broker_bugs: Sequence[BugTrace] = (),
    log_files: Sequence[LogFile],
    inputs: Sequence[Input],
    clocks: Sequence[Clock],
) -> Words:
    """Return the sentences that follow from all incidents.

    Args:
        incidents: of all partitions.
        timeline: of all partitions and nodes.
        operations: what operators did, such as reassignments.
        broker_bugs: those that brokers' own log lines show.
        log_files: the log files that were read, to say which are missing.
        inputs: all that were given.
        clocks: those of the log files.
    """
    losses = [
        loss for incident in incidents for loss in incident.losses if incident.partition.topic not in METADATA_TOPICS
    ]
    return Words(
        conclusion=(
            *_first(_verdict(incidents, losses), _residuals(incidents), losses),
            *_elections(timeline, losses, incidents),
            *_groups(incidents),
            *_bugs(incidents),
            *_bugs_of_brokers(broker_bugs),
            *_operations(operations, losses),
        ),
        now=(
            *_what_to_save(losses, inputs),
            *_advice_on_past_end(incidents),
            *_advice_on_residuals(incidents),
            *_what_to_keep(losses, incidents),
        ),
        tell=(*_whom_to_tell(losses), *_consumers(incidents), *_deleted_by_setting(incidents, timeline)),
        later=tuple(_prevention(losses, incidents)),
        missing=tuple(_missing(incidents, log_files, inputs, clocks)),
    )


def _verdict(incidents: Sequence[PartitionIncident], losses: Sequence[LossEntry]) -> list[str]:
    by_partition = {incident.partition: incident for incident in incidents}
    sentences: list[str] = []
    for certainty in ("certain", "possible"):
        for is_held in (False, True):
            for is_guess in (False, True):
                chosen = [
                    loss
                    for loss in losses
                    if loss.was_committed == certainty
                    and bool(loss.in_use) is is_held
                    and by_partition[loss.topic_partition].is_leader_known is not is_guess
                ]
                if chosen:
                    also = " more" if sentences else ""
                    sentences.append(_loss_sentence(chosen, by_partition, also, is_guess=is_guess))
    harmless = [loss for loss in losses if loss.was_committed == "no"]
    sentences += _past_end(incidents)
    if not sentences:
        sentences.append(_no_loss(incidents))
    if harmless:
        sentences.append(
            f"{records_lost(harmless)} of {_partitions(harmless)} that {were(harmless)} never committed {are(harmless)} lost: {causes_of(harmless)};"
            " producers with acks=all never got an acknowledgement for them, producers with acks=1 may have got one."
        )
    replaced = [loss for loss in losses if loss.was_committed != "no" and loss.is_replaced]
    if replaced:
        replaced_offsets = sum(loss.offsets.count for loss in replaced)
        sentences.append(
            f"{replaced_offsets} of these offsets {form(replaced_offsets, 'holds', 'hold')} other records now."
        )
    return sentences


def _loss_sentence(
    losses: Sequence[LossEntry],
    by_partition: Mapping[TopicPartition, PartitionIncident],
    also: str,
    *,
    is_guess: bool,
) -> str:
    """Return what became of losses that are alike in whether they were committed, a replica in use holds them, and the leader is guessed."""
    count = sum(loss.records for loss in losses)
    what = f"{count:,}{also} {form(count, 'record')}"
    that = f"that {were(losses)} committed" if losses[0].was_committed == "certain" else "that may have been committed"
    if losses[0].in_use:
        where = "the guessed leader's log" if is_guess else "the leader's log"
        return f"{what} {that} {are(losses)} not in {where} of {_partitions(losses)}, but {_holders(losses)} {form(count, 'it', 'them')}."
    if is_guess or missing_replicas_of(losses, by_partition):
        return (
            f"{what} {that} {are(losses)} in no log in use of {_partitions(losses)} that is given: {causes_of(losses)}."
        )
    return f"{what} {that} {are(losses)} lost from {_partitions(losses)}: {causes_of(losses)}."


def missing_replicas_of(
    losses: Iterable[LossEntry], by_partition: Mapping[TopicPartition, PartitionIncident]
) -> list[int]:
    """Return the replicas of the partitions of some losses that are not among the inputs, so that one may hold the records.

    Args:
        losses: of any partitions.
        by_partition: the incident of each of these partitions.

    Returns:
        Node ids, rising.
    """
    return sorted({broker for loss in losses for broker in by_partition[loss.topic_partition].missing_replicas})


def _past_end(incidents: Sequence[PartitionIncident]) -> list[str]:
    """Partitions with a high watermark that no log reaches, in one sentence."""
    found = [incident for incident in incidents if incident.past_end]
    if not found:
        return []
    first = max(found[0].past_end, key=lambda one: one.high_watermark)
    names = [str(incident.partition) for incident in found]
    of = listed(names, most=MOST_NAMED) if len(names) <= MOST_NAMED else f"{len(names)} partitions"
    recorded = f"{first.owner} recorded high watermark {first.high_watermark} of {found[0].partition}"
    return [
        f"Committed records of {of} are on no disk given here: {recorded}, and every log of it ends at or below {first.log_end}."
    ]


def records_lost(losses: Sequence[LossEntry]) -> str:
    """Return the records of some losses, counted: `3 records`.

    Args:
        losses: of any partitions.
    """
    return counted(sum(loss.records for loss in losses), "record")


def were(losses: Sequence[LossEntry]) -> str:
    """Return the verb for the records of some losses, in the past: `was` or `were`.

    Args:
        losses: of any partitions.
    """
    return "was" if sum(loss.records for loss in losses) == 1 else "were"


def are(losses: Sequence[LossEntry]) -> str:
    """Return the verb for the records of some losses: `is` or `are`.

    Args:
        losses: of any partitions.
    """
    return "is" if were(losses) == "was" else "are"


def _no_loss(incidents: Sequence[PartitionIncident]) -> str:
    looked = [one for one in incidents if one.copies > 0 and one.partition.topic not in METADATA_TOPICS]
    if not looked:
        return "No log of any partition was given, so what was lost is unknown."
    open_ones = [one for one in looked if one.doubts]
    if open_ones:
        first = open_ones[0]
        return (
            f"No input shows a loss of committed records in {counted(len(looked), 'partition')}, and none excludes it in"
            f" {len(open_ones)} of them: the inputs do not show {first.doubts[0].words} ({first.partition})."
        )
    parted = sum(bool(one.residuals) for one in looked)
    if not parted:
        proof = "as the ends of their logs prove" if any(one.unread_below for one in looked) else "as the inputs prove"
        return f"Nothing that was committed is missing in {counted(len(looked), 'partition')}, {proof}."
    of = "the partition" if parted == 1 else f"the {parted} partitions"
    if parted == len(looked):
        return f"The inputs do not prove that nothing that was committed is missing in {of} whose replicas differ."
    return (
        f"Nothing that was committed is missing in {counted(len(looked) - parted, 'other partition')}, as the inputs prove;"
        f" they do not prove it of {of} whose replicas differ."
    )


def _partitions(losses: Sequence[LossEntry]) -> str:
    by_topic: dict[str, set[int]] = defaultdict(set)
    for loss in losses:
        by_topic[loss.topic_partition.topic].add(loss.topic_partition.partition)
    names = [
        f"{topic}-{min(parts)}" if len(parts) == 1 else f"{topic} ({len(parts)} partitions)"
        for topic, parts in sorted(by_topic.items())
    ]
    return listed(names, most=MOST_NAMED)


def causes_of(losses: Sequence[LossEntry]) -> str:
    """Return the causes of some losses, in words that claim no more than is known of each: a cause that is only possible is none.

    Args:
        losses: of which at least one has records.

    Returns:
        The causes; where some of the records have none that is known, the number of those that have one.
    """
    known, possible = Counter[CauseName](), Counter[CauseName]()
    unexplained = 0
    for loss in losses:
        if loss.cause is not CauseName.UNKNOWN and loss.confidence != "possible":
            known[loss.cause] += loss.records
            continue
        unexplained += loss.records
        if loss.cause is not CauseName.UNKNOWN:
            possible[loss.cause] += loss.records
    guesses = [CAUSE_WORDS[cause] for cause, _ in possible.most_common(MOST_CAUSES)]
    hedge = f", {listed(guesses, most=MOST_NAMED)} {form(len(guesses), 'is', 'are')} possible" if guesses else ""
    if not known:
        return f"cause unknown{hedge}"
    words = listed([CAUSE_WORDS[cause] for cause, _ in known.most_common(MOST_CAUSES)], most=MOST_NAMED)
    if not unexplained:
        return words
    if set(guesses) == {CAUSE_WORDS[cause] for cause in known}:
        hedge = ", the same is possible"
    others = "the other one" if unexplained == 1 else f"the other {unexplained:,}"
    return f"{words} for {sum(known.values()):,} of them; of {others} the cause is unknown{hedge}"


def _holders(losses: Sequence[LossEntry]) -> str:
    brokers = sorted({str(holder.broker_id) for loss in losses for holder in loss.in_use})
    return (
        f"broker {brokers[0]} still holds"
        if len(brokers) == 1
        else f"brokers {listed(brokers, most=MOST_NAMED)} still hold"
    )


def _elections(
    timeline: Sequence[TimelineEntry], losses: Sequence[LossEntry], incidents: Sequence[PartitionIncident]
) -> list[str]:
    elections = {(entry.topic_partition, entry.leader_epoch) for entry in timeline if entry.kind == "unclean-election"}
    harmed = {loss.topic_partition for loss in losses if loss.was_committed != "no"}
    harmless = sum(partition not in harmed for partition, _ in elections)
    if not elections:
        return []
    count = len(elections)
    tail = ""
    looked = {incident.partition for incident in incidents if incident.copies}
    is_account_whole = not any(incident.doubts for incident in incidents) and {one for one, _ in elections} <= looked
    if harmless and is_account_whole:
        whom = "it" if count == 1 else "them" if harmless == count else f"{harmless} of them"
        tail = f"; no input shows that anything was lost by {whom}"
    forced = sum(len(incident.forced_elections) for incident in incidents)
    by_whom = f", {'which' if forced == count else f'{forced} of which'} an operator forced" if forced else ""
    return [f"There {form(count, 'was', 'were')} {counted(count, 'unclean election')}{by_whom}{tail}."]


def _operations(operations: Sequence[Operation], losses: Sequence[LossEntry]) -> list[str]:
    """All operations: those that took nothing else than what was asked for, and those of partitions that lost records."""
    harmed = {loss.topic_partition for loss in losses if loss.was_committed != "no"}
    on_purpose: list[str] = []
    others: list[str] = []
    for one in operations:
        if one.topic_partition.topic not in METADATA_TOPICS:
            is_on_purpose = one.kind == "delete-records" or one.topic_partition not in harmed
            (on_purpose if is_on_purpose else others).append(one.meaning)
    sentences = [f"On purpose, and no loss: {listed(on_purpose, most=MOST_NAMED)}."] if on_purpose else []
    if others:
        sentences.append(
            f"On purpose, in partitions that lost records, by it or not: {listed(others, most=MOST_NAMED)}."
        )
    return sentences


def _bugs(incidents: Sequence[PartitionIncident]) -> list[str]:
    """Known bugs that fit what was lost or differs, a sentence for each."""
    harmed = [incident for incident in incidents if incident.truncations or incident.losses or incident.residuals]
    by_bug: dict[tuple[str, str], list[str]] = defaultdict(list)
    for incident in harmed:
        for bug in incident.bugs:
            by_bug[bug.jira, bug.effect].append(str(incident.partition))
    sure = {bug.jira for incident in harmed for bug in incident.bugs if bug.confidence == "likely"}
    return [
        f"The traces in {listed(list(dict.fromkeys(names)), most=MOST_NAMED)} {'fit' if jira in sure else 'may fit'} {jira}: {effect}."
        for (jira, effect), names in by_bug.items()
    ]


def _bugs_of_brokers(bugs: Sequence[BugTrace]) -> list[str]:
    """Known bugs that starts and stops show, where nothing else leaves the trace."""
    by_bug: dict[tuple[str, str], list[str]] = defaultdict(list)
    for bug in bugs:
        if bug.confidence == "likely":
            by_bug[bug.jira, bug.effect].append(f"broker {bug.broker_id}")
    return [
        f"The starts of {listed(list(dict.fromkeys(who)), most=MOST_NAMED)} fit {jira}: {effect}."
        for (jira, effect), who in by_bug.items()
    ]


def _groups(incidents: Sequence[PartitionIncident]) -> list[str]:
    at_risk = [(incident.partition, group) for incident in incidents for group in incident.groups]
    if not at_risk:
        return []
    names = sorted({group.group for _, group in at_risk})
    groups = f"{form(len(names), 'Consumer group')} {listed(names, most=MOST_NAMED)}"
    ahead = sum(group.kind == "ahead" for _, group in at_risk)
    if ahead == len(at_risk):
        return [f"{groups} committed offsets beyond the end of the log and will be reset or skip records."]
    return [
        f"{groups} committed offsets that hold other records now: the groups never read the records that replaced them."
    ]


def _first(verdict: list[str], residuals: list[str], losses: Sequence[LossEntry]) -> list[str]:
    """Losses come before differing replicas, and these before the statement that nothing is lost."""
    is_lost = any(loss.was_committed != "no" for loss in losses)
    return [*verdict, *residuals] if is_lost else [*residuals, *verdict]


def _residuals(incidents: Sequence[PartitionIncident]) -> list[str]:
    """Replicas that stay different, a sentence for each partition."""
    found = [incident for incident in incidents if incident.residuals]
    sentences = []
    for incident in found[:MOST_NAMED]:
        brokers = sorted({str(one.broker_id) for one in incident.residuals})
        first = min(one.offset for one in incident.residuals)
        damaged = sorted({str(broker) for one in incident.residuals for broker in one.damaged_on})
        if damaged:
            sentences.append(
                f"The log of {incident.partition} on {form(len(damaged), 'broker')} {listed(damaged, most=MOST_NAMED)} is damaged at offset {first}, and no rule will repair it."
            )
            continue
        if incident.is_leader_known:
            who = (
                f"{form(len(brokers), 'Broker')} {listed(brokers, most=MOST_NAMED)} {form(len(brokers), 'holds', 'hold')}"
                f" other content than broker {incident.leader}, the last leader on record,"
            )
        else:
            every = sorted({*brokers, str(incident.leader)})
            who = f"Brokers {listed(every, most=MOST_NAMED)} hold different content"
        sentences.append(f"{who} in {incident.partition} from offset {first} on, and no rule will repair it.")
    if len(found) > MOST_NAMED:
        sentences.append(
            f"{len(found) - MOST_NAMED} more partitions have replicas that stay different from their leaders."
        )
    return sentences


def _advice_on_past_end(incidents: Sequence[PartitionIncident]) -> list[str]:
    if not any(incident.past_end for incident in incidents):
        return []
    return ["Look for another replica or an earlier snapshot of these partitions before anything is started."]


def _advice_on_residuals(incidents: Sequence[PartitionIncident]) -> list[str]:
    every = [one for incident in incidents for one in incident.residuals]
    if not every:
        return []
    if all(one.damaged_on for one in every):
        return [
            "Look at the damage with `kforensics verify`, copy the replicas that are sound, and replace the damaged one from them: Kafka does not."
        ]
    return [
        "Look at the differing replicas with `kforensics diff`, keep a copy of each, and decide which one is to be trusted."
    ]


def _what_to_save(losses: Sequence[LossEntry], inputs: Sequence[Input]) -> list[str]:
    """Return what holds lost records and will not stay: renamed files and directories first, then those of brokers that are no replicas any more."""
    advice = []
    lost = [loss for loss in losses if loss.was_committed != "no"]
    vanishing = _places((holder for loss in lost for holder in loss.held_by if holder.is_vanishing), inputs)
    if vanishing:
        many = len(vanishing) != 1
        advice.append(
            f"Copy {f'these {len(vanishing)} directories' if many else 'this directory'} before any broker starts: files in {'them' if many else 'it'} that were renamed for"
            f" deletion (.deleted, -delete) still hold lost records, and brokers remove them: cp -a {_paths(vanishing)} SAFE_PLACE"
        )
    strays = _places((holder for loss in lost for holder in loss.held_by if holder.is_stray), inputs)
    if strays:
        advice.append(
            f"Copy the -stray {form(len(strays), 'directory', 'directories')} that still {form(len(strays), 'holds', 'hold')} lost records: cp -a {_paths(strays)} SAFE_PLACE"
        )
    return advice


def _places(holders: Iterable[Holder], inputs: Sequence[Input]) -> list[str]:
    paths = {f"{inputs[one.input].path}/{one.path}" if one.path else inputs[one.input].path for one in holders}
    return sorted(path.replace("//", "/") for path in paths)


def _paths(places: Sequence[str]) -> str:
    shown = " ".join(shlex.quote(place) for place in places[:MOST_NAMED])
    return (
        shown if len(places) <= MOST_NAMED else f"{shown} and {len(places) - MOST_NAMED} more (--format json has them)"
    )


def _what_to_keep(losses: Sequence[LossEntry], incidents: Sequence[PartitionIncident]) -> list[str]:
    advice: list[str] = []
    kept = {(one.broker_id, incident.partition) for incident in incidents for one in incident.residuals}
    in_use = sorted(
        {
            (holder.broker_id, str(loss.topic_partition))
            for loss in losses
            for holder in loss.in_use
            # A replica that no rule truncates keeps what only it holds.
            if loss.was_committed != "no" and (holder.broker_id, loss.topic_partition) not in kept
        },
        key=str,
    )
    for broker in sorted({broker for broker, _ in in_use}, key=str):
        names = [name for who, name in in_use if who == broker]
        advice.append(
            Prohibition(
                f"Do not start broker {broker} before its directories of {listed(names, most=MOST_NAMED)} are copied: as a follower it will truncate what only it holds."
            )
        )
    held = sorted(
        {
            (holder.input, holder.path)
            for loss in losses
            if loss.was_committed != "no"
            for holder in loss.held_by
            if not holder.in_use and not holder.is_final
        }
    )
    if held:
        advice.append(
            f"Keep the snapshots: {counted(len(held), 'directory', 'directories')} in them still {form(len(held), 'holds', 'hold')} lost records."
        )
    return advice


def _whom_to_tell(losses: Sequence[LossEntry]) -> list[str]:
    lost = [loss for loss in losses if loss.was_committed != "no"]
    if lost and not any(loss.was_committed == "certain" for loss in lost):
        return ["Ask the producers of these offsets which of their records were acknowledged."]
    if lost:
        return [
            "Inform the producers of these offsets: those with acks=all may have got an acknowledgement of these records."
        ]
    if losses:
        return ["Inform producers with acks=1: some of these records may have been acknowledged to them."]
    return []


def _consumers(incidents: Sequence[PartitionIncident]) -> list[str]:
    """Consumers that are stuck, skip records or read them twice."""
    sentences = []
    stuck = [(one.partition, one.stuck_at) for one in incidents if one.stuck_at is not None]
    for partition, (at, first) in stuck[:MOST_NAMED]:
        sentences.append(
            f"Consumers of {partition} with isolation.level=read_committed get nothing from offset {at} on until the transaction at {first} is ended, which no"
            " coordinator does: `kforensics transactions` of the same inputs says how."
        )
    if len(stuck) > MOST_NAMED:
        sentences.append(f"{len(stuck) - MOST_NAMED} more partitions have a last stable offset that is stuck.")
    for kind, words in _GROUP_WORDS.items():
        met = [(incident.partition, group) for incident in incidents for group in incident.groups if group.kind == kind]
        if met:
            names = listed([f"{group.group} ({partition} at {group.offset})" for partition, group in met])
            sentences.append(f"Inform {form(len(met), 'consumer group')} {names}: {words}.")
    return sentences


_GROUP_WORDS = {
    "ahead": "the offset is past the log end, so they are reset by auto.offset.reset or skip what is written up to it",
    "replaced": "records before the offset were replaced, and are never read without a reset",
    "set-back": "a later commit is lost, so records are read again",
}


def _deleted_by_setting(incidents: Sequence[PartitionIncident], timeline: Sequence[TimelineEntry]) -> list[str]:
    """Return records that a change of retention deleted between an earlier snapshot and now, with the copies that still hold them."""
    created = {
        entry.topic_partition.topic: entry.time_ms
        for entry in timeline
        if entry.kind == "topic-created" and not isinstance(entry.topic_partition, Absent)
    }
    changed: dict[str, TimelineEntry] = {}
    for entry in timeline:
        is_retention = entry.kind == "config-change" and str(entry.detail.get("name")).startswith("retention.")
        if not is_retention or isinstance(entry.topic_partition, Absent) or not isinstance(entry.time_ms, int):
            continue
        topic = entry.topic_partition.topic
        since = created.get(topic, Absent.UNKNOWN)
        # What a topic is created with is no change.
        if not isinstance(since, int) or entry.time_ms > since + CREATION_MS:
            changed.setdefault(topic, entry)
    sentences = []
    for incident in incidents:
        change = changed.get(incident.partition.topic)
        start = incident.log_start_offset
        if change is None or not isinstance(start, int):
            continue
        held = [
            log for log in incident.logs if not log.is_remnant and log.log_start_offset < min(start, log.log_end_offset)
        ]
        if held:
            first = min(log.log_start_offset for log in held)
            sentences.append(
                f"Offsets {first} to {start - 1} of {incident.partition} are below the log start, and {change.detail.get('name')} was set to {change.detail.get('value')}:"
                f" {counted(len(held), 'directory', 'directories')} among the inputs still {form(len(held), 'holds', 'hold')} some of them."
            )
    more = len(sentences) - MOST_NAMED
    return [
        *sentences[:MOST_NAMED],
        *([f"{more} more partitions lost records to a change of retention."] if more > 0 else []),
    ]


def _prevention(losses: Sequence[LossEntry], incidents: Sequence[PartitionIncident]) -> list[str]:
    advice = []
    lost = [loss for loss in losses if loss.was_committed != "no" and loss.confidence != "possible"]
    unclean = {loss.topic_partition for loss in lost if loss.cause is CauseName.UNCLEAN_ELECTION}
    elected = [one for one in incidents if one.partition in unclean]
    if any(one.is_unclean_election_allowed is not False for one in elected):
        advice.append(
            "Set unclean.leader.election.enable=false and min.insync.replicas=2 or more where losing records is worse than waiting."
        )
    forced = sorted({one.partition.topic for one in elected if one.forced_elections})
    if forced:
        advice.append(
            f"unclean.leader.election.enable was false for {listed(forced)}: an operator forced the elections. Before one is forced, compare the replicas with"
            " `kforensics diff`, which names the leader that loses least, and wait for the last one that was in sync."
        )
    if any(loss.cause is CauseName.DISK_RESTORED for loss in lost):
        advice.append(
            "Don't put the disk of a replica back to an earlier state: empty it and let it follow another one, or start it last."
        )
    if any(loss.cause is CauseName.DISK_REPLACED for loss in lost):
        advice.append(
            "Before a broker starts with another disk, let another replica in sync lead its partitions, and wait until it has been copied."
        )
    if any(loss.cause is CauseName.HIGH_WATERMARK for loss in lost):
        advice.append(
            "Upgrade to 0.11 or later with inter.broker.protocol.version to match: leader epochs end this kind of loss (KIP-101)."
        )
    if any(loss.cause is CauseName.DAMAGE and not loss.in_use for loss in lost):
        advice.append("Check the disks of the brokers whose logs were damaged before they serve again.")
    if any(loss.cause is CauseName.RECOVERY for loss in lost):
        advice.append(
            "Make room on the log directories before a broker starts after an unclean shutdown, and copy them first."
        )
    if any(loss.cause in {CauseName.LAST_REPLICA_STANDING, CauseName.POWER_LOSS} for loss in lost):
        advice.append("Spread replicas over power domains, and keep min.insync.replicas at 2 or more (KIP-966).")
    return advice


def _missing(
    incidents: Sequence[PartitionIncident],
    log_files: Sequence[LogFile],
    inputs: Sequence[Input],
    clocks: Sequence[Clock],
) -> list[str]:
    missing = []
    if not any(one.kind in {"controller", "combined"} for one in inputs) and not any(
        incident.leaderships for incident in incidents
    ):
        missing.append(
            "A controller's metadata log, or state-change.log, would show which broker led and which were in sync."
        )
    if not log_files:
        missing.append(
            "server.log, state-change.log and controller.log would show when logs were truncated, by which rule and to which offset."
        )
    if not any(one.kind == "snapshot-before" for one in inputs):
        missing.append("A snapshot of the data directories from before (--before) would show the lost records.")
    with_logs = {file.node_id for file in log_files}
    brokers = {one.broker_id for one in inputs if isinstance(one.broker_id, int) and one.kind in {"broker", "combined"}}
    without = sorted(str(broker) for broker in brokers - with_logs)
    if log_files and without:
        missing.append(
            f"The log files of {form(len(without), 'broker')} {listed(without, most=MOST_NAMED)} are not among the inputs."
        )
    used = [clock for file, clock in zip(log_files, clocks, strict=True) if isinstance(file.first_time_ms, int)]
    if any(clock.source == "assumed" for clock in used):
        missing.append(
            "No input shows the time zone of the log files: their times are taken as UTC (--log-timezone sets it)."
        )
    for node, skew_ms in clocks_that_disagree(log_files, clocks).items():
        missing.append(
            f"The clock of node {node} differs by {abs(skew_ms) / 1000:.1f} s from the others; its times are corrected."
        )
    for incident in incidents:
        last = next(
            (one.leader for one in reversed(incident.leaderships) if isinstance(one.leader, int)), Absent.UNKNOWN
        )
        if isinstance(last, int) and isinstance(incident.leader, int) and last != incident.leader and incident.losses:
            missing.append(
                f"{incident.partition} was last led by broker {last}, whose log is not among the inputs;"
                f" the strongest there, of broker {incident.leader}, takes its place."
            )
    unread = [incident for incident in incidents if isinstance(incident.leader, Absent) and incident.truncations]
    if unread:
        missing.append(
            f"The logs of {listed([str(incident.partition) for incident in unread], most=MOST_NAMED)} are not among the inputs: whether records are lost is open."
        )
    return missing
