"""The conclusion in plain sentences: what is lost and why, what to do and what not to do, and what more evidence would show."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kforensics.ask.model import Ask
from kforensics.damage import Absent
from kforensics.evidence.broker_logs import LogFile
from kforensics.evidence.model import Input
from kforensics.findings.answers.advice import (
    MOST_NAMED,
    Holders,
    advice_on_past_end,
    advice_on_residuals,
    how_to_get_back,
    how_to_salvage,
    kind_of_groups,
    missing_evidence,
    on_consumers,
    what_to_keep,
    what_to_save,
    whom_to_tell,
)
from kforensics.findings.rules.causes import prevention, with_causes
from kforensics.reconcile.bugs.evidence import BugTrace
from kforensics.reconcile.history.causes import CauseName
from kforensics.reconcile.history.log_copies import LogOutline
from kforensics.reconcile.history.log_starts import Remover
from kforensics.reconcile.history.losses import Loss
from kforensics.reconcile.history.residuals import furthest
from kforensics.reconcile.incident.model import PartitionIncident
from kforensics.reconcile.incident.operations import Operation, setting_changes
from kforensics.reconcile.observed.clocks import Clock
from kforensics.reconcile.timeline.events import TimelineEntry
from kforensics.units import METADATA_TOPICS, TopicPartition
from kforensics.words import MOST_WORDS, Count, counted, form, in_short_sentences, joined_by_and, listed


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
    ask: Ask,
    holders: Holders,
) -> Words:
    """Return the sentences that follow from all incidents."""
    losses = [
        loss for incident in incidents for loss in incident.losses if incident.partition.topic not in METADATA_TOPICS
    ]
    asked = [loss for loss in losses if loss.was_committed != "no"]
    gone = [loss for loss in asked if not loss.in_use]
    held = [*_of_deleted_topics(incidents, operations), *_deleted_and_held(incidents, timeline, operations)]
    return Words(
        conclusion=tuple(
            map(
                in_short_sentences,
                (
                    *_first(_verdict(incidents, losses), _residuals(incidents), losses),
                    *_elections(timeline, losses, incidents),
                    *_groups(incidents),
                    *_bugs(incidents),
                    *_bugs_of_brokers(broker_bugs),
                    *_operations(operations, losses),
                    *_deleted_since(incidents),
                ),
            )
        ),
        now=(
            *what_to_save(losses, inputs),
            *advice_on_past_end(incidents),
            *advice_on_residuals(incidents),
            *what_to_keep(losses, incidents, inputs),
            *how_to_salvage(
                ask,
                holders,
                is_lost=bool(gone),
                is_held=any(loss.held_by for loss in gone),
                is_at_risk=len(gone) < len(asked),
            ),
            *how_to_get_back(ask, holders, {topic for topic, _ in held}),
        ),
        tell=(
            *whom_to_tell(losses),
            *on_consumers(incidents),
            *_some([words for _, words in held], "of which inputs hold what was deleted"),
        ),
        later=tuple(prevention(losses, incidents)),
        missing=tuple(missing_evidence(incidents, log_files, inputs, clocks)),
    )


def _verdict(incidents: Sequence[PartitionIncident], losses: Sequence[Loss]) -> list[str]:
    by_partition = {incident.partition: incident for incident in incidents}
    sentences: list[str] = []
    for certainty in ("certain", "possible"):
        for is_held in (False, True):
            for is_guess in (False, True):
                chosen = [
                    loss
                    for loss in losses
                    if loss.was_committed == certainty
                    and not loss.aborted
                    and bool(loss.in_use) is is_held
                    and by_partition[loss.topic_partition].is_leader_known is not is_guess
                ]
                if chosen:
                    also = " more" if sentences else ""
                    sentences.append(_loss_sentence(chosen, by_partition, also, is_guess=is_guess))
    harmless = [loss for loss in losses if loss.was_committed == "no" and not loss.aborted]
    aborted = [loss for loss in losses if loss.aborted]
    sentences += _past_end(incidents)
    if not sentences:
        sentences.append(_no_loss(incidents))
    if harmless:
        sentences.append(
            with_causes(
                f"{records_lost(harmless)} of {_partitions(harmless)} that {were(harmless)} never committed {are(harmless)} lost",
                harmless,
            )
            + " Producers with acks=all never got an acknowledgement for them, those with acks=1 may have got one."
        )
    if aborted:
        count = sum(loss.aborted for loss in aborted)
        sentences.append(
            f"{counted(count, 'record')} of aborted transactions in {_partitions(aborted)} {form(count, 'is', 'are')} gone, too: consumers with read_committed never get such records."
        )
    replaced = [
        loss for loss in losses if loss.was_committed != "no" and loss.is_replaced and not loss.may_be_in_leader
    ]
    if replaced:
        replaced_offsets = sum(loss.offsets.count for loss in replaced)
        sentences.append(
            f"{replaced_offsets} of these offsets {form(replaced_offsets, 'holds', 'hold')} other records now."
        )
    if again := sum(loss.offsets.count for loss in losses if loss.may_be_in_leader):
        sentences.append(
            f"At {again} of these offsets the leader's log has records that may be the ones that were truncated, sent again."
        )
    return sentences


def _loss_sentence(
    losses: Sequence[Loss],
    by_partition: Mapping[TopicPartition, PartitionIncident],
    also: str,
    *,
    is_guess: bool,
) -> str:
    """Return what became of losses that are alike in whether they were committed, a replica in use holds them, and the leader is guessed."""
    count, noun = amount(losses)
    what = f"{count:,}{also} {form(count, noun)}"
    is_certain = losses[0].was_committed == "certain"
    that = f"that {were(losses)} committed" if is_certain else f"that {were(losses)} possibly committed"
    if losses[0].in_use:
        where = "the guessed leader's log" if is_guess else "the leader's log"
        missing = f"{what} {that} {are(losses)} not in {where} of {_partitions(losses)}"
        held = f"{_holders(losses)} {form(count, 'it', 'them')}."
        is_long = len(f"{missing} but {held}".split()) > MOST_WORDS
        return f"{missing}. {held[0].upper()}{held[1:]}" if is_long else f"{missing}, but {held}"
    if is_guess or missing_replicas_of(losses, by_partition):
        return with_causes(
            f"{what} {that} {are(losses)} in no log in use of {_partitions(losses)} that is given", losses
        )
    if place := set_aside_place(losses):
        return with_causes(f"{what} of {_partitions(losses)} {that} {are(losses)} {place}", losses)
    if any(by_partition[one.topic_partition].counts_at_least for one in losses):
        what = f"{str(Count(count, is_at_least=True)).capitalize()}{also} {form(count, noun)}"
    if all(one.is_only_logged for one in losses):
        truncated = f"{offsets_truncated(losses, by_partition.values())} of {_partitions(losses)}{also} {form(count, 'was', 'were')} truncated"
        return with_causes(f"{truncated}, whose records were possibly committed", losses)
    return with_causes(f"{what} {that} {are(losses)} {how_gone(losses)} from {_partitions(losses)}", losses)


def how_gone(losses: Sequence[Loss]) -> str:
    """Return that losses are lost, or what may have become of some of them instead."""
    if any(one.is_only_logged for one in losses):
        return "lost or truncated"
    is_guess = any(one.cause is CauseName.RETENTION and one.confidence == "possible" for one in losses)
    return "lost or deleted on request" if is_guess else "lost"


def set_aside_place(losses: Sequence[Loss]) -> str:
    """Return that all of some losses lie in directories that were set aside, from which they can be taken; empty where one does not."""
    if all(any(holder.is_stray for holder in loss.held_by) for loss in losses):
        return "in -stray directories only, which no broker serves"
    if all(loss.cause is CauseName.METADATA_SET_BACK for loss in losses):
        return "in -delete directories only, which brokers remove"
    return ""


def missing_replicas_of(losses: Iterable[Loss], by_partition: Mapping[TopicPartition, PartitionIncident]) -> list[int]:
    """Return the replicas of the partitions of some losses that are not among the inputs, so that one may hold the records."""
    return sorted({broker for loss in losses for broker in by_partition[loss.topic_partition].missing_replicas})


def _past_end(incidents: Sequence[PartitionIncident]) -> list[str]:
    """Partitions with a high watermark that no log reaches, in one sentence."""
    found = [incident for incident in incidents if incident.past_end]
    if not found:
        return []
    first = furthest(found[0].past_end)
    names = [str(incident.partition) for incident in found]
    of = listed(names, most=MOST_NAMED) if len(names) <= MOST_NAMED else f"{len(names)} partitions"
    recorded = f"{first.words} of {found[0].partition}{' in an earlier snapshot' if first.is_earlier else ''}"
    return [
        f"Committed records of {of} are on no disk given here: {recorded}, and every log of it ends at or below {first.log_end}{' now' if first.is_earlier else ''}."
    ]


def records_lost(losses: Sequence[Loss], incidents: Iterable[PartitionIncident] = (), *, which: str = "") -> str:
    """Return the records of some losses, counted: `3 committed records`, or `at least 3 records` where one of the incidents may have taken more."""
    number, noun = amount(losses)
    return f"{Count(number, any(one.counts_at_least for one in incidents))} {form(number, f'{which} {noun}'.lstrip())}"


def offsets_truncated(losses: Sequence[Loss], incidents: Iterable[PartitionIncident]) -> str:
    """Return how many offsets lines say were truncated, where nothing shows what they held, in words."""
    number = sum(loss.offsets.count for loss in losses)
    partitions = {loss.topic_partition for loss in losses}
    is_at_least = any(one.counts_at_least for one in incidents if one.partition in partitions)
    return f"{Count(number, is_at_least)} {form(number, 'offset')}".capitalize()


def amount(losses: Sequence[Loss]) -> tuple[int, str]:
    """Return how much some losses come to, and of what: of records, or of markers where they took nothing else."""
    records = sum(loss.records for loss in losses)
    markers = sum(loss.markers for loss in losses)
    return (markers, "transaction marker") if markers and not records else (records, "record")


def were(losses: Sequence[Loss]) -> str:
    """Return the verb for what some losses come to, in the past: `was` or `were`."""
    return "was" if amount(losses)[0] == 1 else "were"


def are(losses: Sequence[Loss]) -> str:
    """Return the verb for what some losses come to: `is` or `are`."""
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


def _partitions(losses: Sequence[Loss]) -> str:
    by_topic: dict[str, set[int]] = defaultdict(set)
    for loss in losses:
        by_topic[loss.topic_partition.topic].add(loss.topic_partition.partition)
    names = [
        f"{topic}-{min(parts)}" if len(parts) == 1 else f"{topic} ({len(parts)} partitions)"
        for topic, parts in sorted(by_topic.items())
    ]
    return listed(names, most=MOST_NAMED)


def _holders(losses: Sequence[Loss]) -> str:
    owners = owners_in_use(losses)
    return f"{joined_by_and(owners)} still {form(len(owners), 'holds', 'hold')}"


def owners_in_use(losses: Iterable[Loss]) -> list[str]:
    """Return who holds in use what the leader does not, in words."""
    return sorted({holder.owner for loss in losses for holder in loss.in_use})


def _elections(
    timeline: Sequence[TimelineEntry], losses: Sequence[Loss], incidents: Sequence[PartitionIncident]
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


def _operations(operations: Sequence[Operation], losses: Sequence[Loss]) -> list[str]:
    """All operations: those that took nothing else than what was asked for, and those of partitions that lost records."""
    harmed = {loss.topic_partition for loss in losses if loss.was_committed != "no"}
    on_purpose: list[str] = []
    others: list[str] = []
    for one in operations:
        if one.topic_partition.topic not in METADATA_TOPICS:
            is_on_purpose = one.kind == "delete-records" or one.topic_partition not in harmed
            (on_purpose if is_on_purpose else others).append(one.meaning)
    return [
        *_asked("On purpose, and no loss", on_purpose),
        *_asked("Asked for, in partitions that lost records, which may not be related", others),
    ]


def _asked(what: str, meanings: Sequence[str]) -> list[str]:
    """Return in a sentence what was asked for, or in one for each operation where that is too long."""
    said = f"{what}: {listed(meanings, most=MOST_NAMED)}."
    if len(said.split()) <= MOST_WORDS or len(meanings) < 2:
        return [said] if meanings else []
    more = len(meanings) - MOST_NAMED
    counted_ones = f" {counted(more, 'more operation')} of the kind." if more > 0 else ""
    return [
        " ".join(f"{one[0].upper()}{one[1:]}." for one in (f"{what}: {meanings[0]}", *meanings[1:MOST_NAMED]))
        + counted_ones
    ]


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
    groups = f"{kind_of_groups(at_risk).capitalize()} {listed(names, most=MOST_NAMED)}"
    ahead = sum(group.kind == "ahead" for _, group in at_risk)
    if ahead == len(at_risk):
        return [f"{groups} committed offsets beyond the end of the log and will be reset or skip records."]
    return [
        f"{groups} committed offsets that hold other records now: the groups never read the records that replaced them."
    ]


def _first(verdict: list[str], residuals: list[str], losses: Sequence[Loss]) -> list[str]:
    """Losses come before differing replicas, and these before the statement that nothing is lost."""
    is_lost = any(loss.was_committed != "no" for loss in losses)
    return [*verdict, *residuals] if is_lost else [*residuals, *verdict]


def _residuals(incidents: Sequence[PartitionIncident]) -> list[str]:
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


def _is_of_early_retention(incident: PartitionIncident) -> bool:
    """Whether what retention deleted is told as lost: it took it for older than it was, whatever was set."""
    return any(loss.cause is CauseName.RETENTION for loss in incident.losses)


def _deleted_since(incidents: Sequence[PartitionIncident]) -> list[str]:
    """Return what was deleted at the beginning of logs since an earlier snapshot, and by what; not on request, which is an operation, nor what is told as lost."""
    sentences = []
    for incident in incidents:
        start = incident.log_start_offset
        is_other = incident.partition.topic in METADATA_TOPICS or _is_of_early_retention(incident)
        if incident.deleted_since is None or isinstance(start, Absent) or is_other:
            continue
        first, removal, is_since = incident.deleted_since
        since = f" since the earlier snapshot{',' * isinstance(removal.since_ms, int)}" if is_since else ""
        if removal.by not in {Remover.REQUEST, Remover.NONE}:
            sentences.append(
                f"Offsets {first:,} to {start - 1:,} of {incident.partition} were deleted{since} {removal.sentence}."
            )
    return _some(sentences, "whose first offsets were deleted")


def _some(sentences: Sequence[str], others: str) -> list[str]:
    """Return the first sentences, and how many others there are."""
    more = len(sentences) - MOST_NAMED
    return [
        *sentences[:MOST_NAMED],
        *([f"There {form(more, 'is', 'are')} {counted(more, 'more partition')} {others}."] if more > 0 else []),
    ]


def _deleted_and_held(
    incidents: Sequence[PartitionIncident], timeline: Sequence[TimelineEntry], operations: Sequence[Operation]
) -> list[tuple[str, str]]:
    """Return the topic of records that a change of retention or a client deleted and that directories still hold, and that they do."""
    changed: dict[str, TimelineEntry] = {}
    for entry in setting_changes(timeline):
        if str(entry.detail.get("name")).startswith("retention.") and not isinstance(entry.topic_partition, Absent):
            changed.setdefault(entry.topic_partition.topic, entry)
    requested = {one.topic_partition for one in operations if one.kind == "delete-records"}
    found: list[tuple[str, str]] = []
    for incident in incidents:
        partition, start = incident.partition, incident.log_start_offset
        change = changed.get(partition.topic)
        if (change is None and partition not in requested) or not isinstance(start, int):
            continue
        firsts = [
            first
            for log in incident.logs
            if not log.is_remnant and (first := _first_of(log)) < min(start, log.log_end_offset)
        ]
        if firsts and not _is_of_early_retention(incident):
            why = (
                "a client asked to delete them"
                if change is None
                else f"{change.detail.get('name')} was set to {change.detail.get('value')}"
            )
            directories = counted(len(firsts), "directory", "directories")
            words = (
                f"Offsets {min(firsts)} to {start - 1} of {partition} are below the log start, and {why}:"
                f" {directories} among the inputs still {form(len(firsts), 'holds', 'hold')} some of them."
            )
            found.append((partition.topic, words))
    return found


def _first_of(log: LogOutline) -> int:
    """Return the first offset that the files of a log hold: segments that begin below its start stay whole."""
    first = log.first_base_offset
    return min(first, log.log_start_offset) if isinstance(first, int) else log.log_start_offset


def _of_deleted_topics(
    incidents: Sequence[PartitionIncident], operations: Sequence[Operation]
) -> Iterator[tuple[str, str]]:
    """Yield the topics that were deleted and of which directories are among the inputs, and that."""
    for one in operations:
        topic = one.topic_partition.topic
        if one.kind not in {"recreated-topic", "deleted-topic"}:
            continue
        of_topic = [incident for incident in incidents if incident.partition.topic == topic]
        places = {(holder.input, holder.path) for incident in of_topic for holder in incident.deleted_topics}
        places |= {(log.input, log.path) for incident in of_topic if incident.is_deleted for log in incident.logs}
        if places:
            directories = counted(len(places), "directory", "directories")
            yield (
                topic,
                f"Topic {topic} was deleted, and {directories} of it {form(len(places), 'is', 'are')} still among the inputs.",
            )
