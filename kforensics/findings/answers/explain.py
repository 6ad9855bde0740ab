"""The answer of `explain`: the state of each partition, and the whole in one headline.

A partition is `nothing-lost` only by proof: no loss is shown, and nothing is in doubt (`reconcile.incident.doubts`). Whatever is neither shown nor excluded is
`unknown`, and the answer names the input that would settle it.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kforensics.damage import Absent
from kforensics.evidence.metadata.set_back import QuorumSetBack
from kforensics.evidence.model import Problem
from kforensics.findings.answers.advice import MOST_NAMED
from kforensics.findings.answers.conclusion import (
    Words,
    amount,
    are,
    how_gone,
    missing_replicas_of,
    offsets_truncated,
    owners_in_use,
    records_lost,
    set_aside_place,
    were,
)
from kforensics.findings.answers.model import Answer, State, not_read_words, worst_state
from kforensics.findings.rules.causes import outage_words, set_aside_steps, set_aside_words, with_causes
from kforensics.findings.rules.quorum import quorum_steps, quorum_words
from kforensics.reconcile.history.losses import Loss
from kforensics.reconcile.history.residuals import furthest
from kforensics.reconcile.incident.doubts import DoubtKind
from kforensics.reconcile.incident.model import LeaderBasis, PartitionIncident
from kforensics.reconcile.observed.leadership import Risk
from kforensics.reconcile.observed.outages import Outage, Took
from kforensics.units import METADATA_TOPICS, TopicPartition
from kforensics.words import MOST_WORDS, counted, form, joined_by_and, listed, with_place


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The part of the evidence that the answer covers."""

    not_given: Collection[TopicPartition] = ()
    """Partitions that exist by the metadata and of which no directory is among the inputs."""
    window: str = ""
    """The beginning of the window, and up to when the evidence reaches, in words; empty where no input shows it."""
    problems: Collection[Problem] = ()
    """The problems: what could not be read."""
    below: Collection[Problem] = ()
    """Those of places below the paths that were named: the headline names paths that can't be used by itself."""
    quorum: QuorumSetBack | None = None
    """The voters that can go on without metadata that was committed."""
    named_at: tuple[str, int] | None = None
    """Path and end of a metadata log that names topics whose directories were set aside, where some were."""
    beside: Sequence[str] = ()
    """What logs show beside losses and has to be decided, in clauses."""
    failures: str = ""
    """The last starts that failed and the nodes that ended by themselves, in sentences."""
    mending: Sequence[str] = ()
    """What to do about these."""


def incident_state(incident: PartitionIncident) -> State:
    """Return the state of one partition."""
    states = [_loss_state(loss, incident) for loss in incident.losses]
    if incident.past_end:
        states.append(_past_end_state(incident))
    if incident.residuals:
        states.append(State.DIVERGED)
    is_shown = incident.copies or incident.is_deleted
    if incident.partition.topic not in METADATA_TOPICS and (incident.doubts or not is_shown):
        states.append(State.UNKNOWN)
    return worst_state(states) or State.NOTHING_LOST


def _past_end_state(incident: PartitionIncident) -> State:
    if not incident.is_leader_known:
        return State.UNKNOWN
    is_sure = any(one.is_sure for one in incident.past_end) and not incident.missing_replicas
    return State.LOST if is_sure else State.MAYBE_LOST


def _loss_state(loss: Loss, incident: PartitionIncident) -> State:
    if loss.was_committed == "no" or (loss.aborted and not loss.records):
        return State.UNCOMMITTED_LOST
    if loss in incident.tails_of_copies and loss.was_committed != "certain":
        return State.UNKNOWN
    if (
        loss.was_committed == "certain"
        and not loss.in_use
        and incident.is_leader_known
        and not incident.missing_replicas
    ):
        return State.LOST
    return State.MAYBE_LOST


def explain_answer(incidents: Sequence[PartitionIncident], words: Words, scope: Scope) -> Answer:
    """Give the answer of `explain`."""
    asked = [one for one in incidents if one.partition.topic not in METADATA_TOPICS]
    by_state: dict[State, list[PartitionIncident]] = {}
    for one in asked:
        by_state.setdefault(incident_state(one), []).append(one)
    states = set(by_state)
    if scope.problems or scope.not_given or scope.quorum or not any(one.copies or one.is_deleted for one in asked):
        states.add(State.UNKNOWN)
    state = worst_state(states) or State.UNKNOWN
    lost = [loss for one in asked for loss in one.losses]
    set_aside = set_aside_words(lost, scope.named_at)
    unread = listed(
        [f"{one.partition} below {one.unread_below:,}" for one in asked if one.unread_below], most=MOST_NAMED
    )
    below = len(scope.below)
    headline = _headline(state, asked, by_state, scope)
    return Answer(
        state=state,
        headline=(f"{scope.failures} " if scope.failures else "")
        + headline
        + _cut(state, asked)
        + (f" {set_aside}" if set_aside else "")
        + (f" {quorum_words(scope.quorum)}" if scope.quorum else "")
        + _stuck(asked)
        + _beside(scope.beside)
        + (f" Content of {unread} was not read." if unread and state in _HEDGED_BY_DEPTH else "")
        + (f" Incomplete: {counted(below, 'thing')} could not be read." if below else ""),
        now=with_place(
            (
                *scope.mending,
                *(quorum_steps(scope.quorum) if scope.quorum else ()),
                *(words.now or _gather(state, asked)),
                *set_aside_steps(lost, scope.named_at),
            )
        ),
        tell=words.tell,
        later=words.later,
        unknown=(
            *_unknown(asked, scope),
            *([_BELOW_THE_ENDS.format(unread)] if unread else []),
        ),
    )


_BELOW_THE_ENDS = "Whether content is damaged, or differs, that was not read ({}): --depth content reads it."
_HEDGED_BY_DEPTH = frozenset({State.NOTHING_LOST, State.UNCOMMITTED_LOST, State.DIVERGED})


def behind_headline(conclusion: Sequence[str], answer: Answer, incidents: Sequence[PartitionIncident]) -> Sequence[str]:
    """Return the sentences of the conclusion that the headline does not say already."""
    certainties = {
        loss.was_committed
        for one in incidents
        if one.partition.topic not in METADATA_TOPICS
        for loss in one.losses
        if loss.was_committed != "no"
    }
    # These headlines sum up what the first sentences tell apart.
    is_sum = answer.state is State.MAYBE_LOST and len(certainties) > 1
    if answer.state is State.DIVERGED or is_sum:
        return conclusion
    return conclusion[1:]


def _headline(
    state: State,
    asked: Sequence[PartitionIncident],
    by_state: dict[State, list[PartitionIncident]],
    scope: Scope,
) -> str:
    affected = by_state.get(state, [])
    match state:
        case State.LOST:
            losses = [
                loss for one in affected for loss in one.losses if loss.was_committed == "certain" and not loss.in_use
            ]
            return _lost(affected, losses)
        case State.MAYBE_LOST:
            return _maybe_lost(affected)
        case State.DIVERGED:
            return f"Replicas of {_names(affected)} hold different content that replication does not repair; no committed record is known to be lost."
        case State.UNKNOWN:
            return _open_question(affected, asked, scope)
        case State.UNCOMMITTED_LOST:
            losses = [loss for one in affected for loss in one.losses]
            aborted = sum(loss.aborted for loss in losses)
            gone = f"; {counted(aborted, 'record')} of aborted transactions {form(aborted, 'is', 'are')} gone"
            also = f"{gone}, too" if aborted else ""
            if aborted and not any(loss.records for loss in losses):
                return f"Nothing that was committed is lost{scope.window}{gone} from {_names(affected)}."
            return (
                f"Nothing that was committed is lost{scope.window}. {_upper(records_lost(losses))} of {_names(affected)} that"
                f" {were(losses)} never committed {are(losses)} lost; a producer with acks=1 may have got an acknowledgement{also}."
            )
        case _:
            count = len(asked)
            return f"Nothing that was committed is lost from {counted(count, 'partition')}{scope.window}."


def _cut(state: State, asked: Sequence[PartitionIncident]) -> str:
    """Return the partitions of which logs were truncated and nothing shows what was there, where the headline is about others."""
    cut = [one for one in asked if one.counts_at_least and not one.losses and not one.past_end]
    if not cut or state not in {State.LOST, State.MAYBE_LOST, State.DIVERGED}:
        return ""
    return f" What logs of {_names(cut)} held that were truncated is not known."


def _beside(clauses: Sequence[str]) -> str:
    if not clauses:
        return ""
    more = f" {counted(len(clauses) - 1, 'more such finding')}, below." if len(clauses) > 1 else ""
    return f" {clauses[0]}.{more}"


def _stuck(asked: Sequence[PartitionIncident]) -> str:
    """Partitions whose last stable offset is stuck by a transaction of which no other sentence of the headline speaks."""
    stuck = [one for one in asked if one.hanging]
    if not stuck:
        return ""
    is_proven = all(each.confidence == "proven" for one in stuck for each in one.hanging)
    return f" Consumers with isolation.level=read_committed {'are' if is_proven else 'are likely'} stuck in {_names(stuck)}."


def _lost(affected: Sequence[PartitionIncident], losses: Sequence[Loss]) -> str:
    if losses:
        partitions = {loss.topic_partition for loss in losses}
        shown = [one for one in affected if one.partition in partitions]
        others = [one for one in affected if one.partition not in partitions]
        also = f" Committed records of {_names(others)} are on no disk given, too." if others else ""
        what = f"{_upper(records_lost(losses, shown))} that {were(losses)} committed {are(losses)} lost from {_names(shown)}"
        return with_causes(what, losses) + also
    first = affected[0]
    recorded = furthest(first.past_end)
    return (
        f"Committed records of {_names(affected)} are lost: {recorded.words} of {first.partition},"
        f" and every log of it ends at or below {recorded.log_end}{' now' if recorded.is_earlier else ''}."
    )


def _maybe_lost(affected: Sequence[PartitionIncident]) -> str:
    losses = [loss for one in affected for loss in one.losses if loss.was_committed != "no"]
    # Of markers alone the headline speaks where nothing else is lost: the conclusion names them in any case.
    losses = [loss for loss in losses if loss.records] or losses
    condition = _condition(affected)
    if not losses:
        first = next(one for one in affected if one.past_end)
        recorded = furthest(first.past_end)
        return (
            f"Committed records of {_names(affected)} may be lost: {recorded.words} of {first.partition}, and every log given ends at or below"
            f" {recorded.log_end}{' now' if recorded.is_earlier else '' if recorded.is_sure else ' (copied while it ran, or after a power loss)'}."
        )
    if all(one.candidates for one in affected) and not _is_the_same_by_all(affected):
        return _whoever_leads(affected)
    held = [loss for loss in losses if loss.in_use]
    if held and len(held) == len(losses):
        owners = owners_in_use(held)
        isnt = form(len(owners), "isn't the leader", "aren't the leaders")
        where = f"{joined_by_and(owners)}, which {isnt}"
        shown = (
            ", as far as the logs given show"
            if missing_replicas_of(held, {one.partition: one for one in affected})
            else ""
        )
        certain = {loss.was_committed == "certain" for loss in held}
        which = {frozenset({True}): "committed", frozenset({False}): "possibly committed"}.get(frozenset(certain), "")
        mixed = "" if which else f" {_were_committed(held)}"
        text = f"{records_lost(held, which=which)} of {_names(affected)}{mixed} {are(held)} only on {where}{shown}."
    else:
        away = missing_replicas_of(losses, {one.partition: one for one in affected})
        gone = [loss for loss in losses if not loss.in_use]
        why = "no input says which brokers they are of" if _is_unnamed(affected) else _not_given(away, affected)
        lost = f"in no log in use of those given ({why})" if away else set_aside_place(gone) or "lost"
        if held:
            many = amount(gone)[0]
            lost = f"not in the leaders' logs. Other replicas hold {amount(held)[0]:,} of them, {many:,} {form(many, 'is', 'are')} {lost}"
        only_logged = [loss.is_only_logged for loss in losses] if lost == "lost" else []
        if only_logged and all(only_logged):
            text = f"{offsets_truncated(losses, affected)} of {_names(affected)} {were(losses)} truncated, whose records were possibly committed"
        else:
            lost = how_gone(losses) if lost == "lost" else lost
            text = f"{records_lost(losses, (one for one in affected if one.losses))} of {_names(affected)} {_were_committed(losses)} {are(losses)} {lost}"
        if away and len(text.split()) > MOST_WORDS:
            text = f"{text.replace(f' ({why})', '')}. {why[0].upper()}{why[1:]}"
        text = with_causes(text, gone, before=condition)
    if _is_the_same_by_all(affected):
        condition = "Whichever replica leads, "
    if not condition:
        return text[0].upper() + text[1:]
    text = text[0].lower() + text[1:]
    if condition.startswith("If ") and len(f"{condition}{text.partition('. ')[0]}".split()) > MOST_WORDS:
        return f"Suppose {condition[3:-2]}. Then {text}"
    return condition + text


def _were_committed(losses: Sequence[Loss]) -> str:
    """Return whether records were committed, as the rows of the losses tell them apart."""
    counted_ones = [loss for loss in losses if loss.records] or losses  # of markers alone their rows tell it
    certain = sum(loss.records for loss in counted_ones if loss.was_committed == "certain")
    possible = sum(loss.records for loss in counted_ones) - certain
    if all(loss.was_committed == "certain" for loss in counted_ones):
        return f"that {were(losses)} committed"
    if not certain:
        return f"that {were(losses)} possibly committed"
    return f"({certain:,} committed, {possible:,} possibly committed)"


def _is_unnamed(affected: Sequence[PartitionIncident]) -> bool:
    """Whether the brokers of some logs are not known, so that a replica that seems to be missing may be given."""
    return any(
        log.is_final and not log.is_remnant and isinstance(log.broker_id, Absent)
        for one in affected
        for log in one.logs
    )


def _not_given(brokers: Sequence[int], affected: Sequence[PartitionIncident]) -> str:
    names = listed([str(broker) for broker in brokers], most=MOST_NAMED)
    if any(doubt.kind is DoubtKind.UNREADABLE for one in affected for doubt in one.doubts):
        return f"what the log of broker {names} holds is not known"
    return (
        f"no replica of broker {names} is among the inputs"
        if len(brokers) == 1
        else f"no replicas of brokers {names} are among the inputs"
    )


def _is_the_same_by_all(affected: Sequence[PartitionIncident]) -> bool:
    """Whether every replica that may lead lacks the same: no other one in use holds it."""
    return all(
        one.candidates
        and len({candidate.records for candidate in one.candidates}) == 1
        and not any(loss.in_use for loss in one.losses)
        for one in affected
    )


def _whoever_leads(affected: Sequence[PartitionIncident]) -> str:
    """Return what is lost by each of the replicas that the guess does not decide between, or at least by whichever of them leads."""
    maybe = f"of {_names(affected)} that were possibly committed are not in its log"
    if len(affected) == 1:
        first, *others = affected[0].candidates
        rest = listed([f"if broker {one.broker_id} leads, {one.records:,}" for one in others])
        return f"If broker {first.broker_id} leads, {counted(first.records, 'record')} {maybe}; {rest}: no input shows which one does."
    least = sum(min(one.records for one in incident.candidates) for incident in affected)
    if least:
        return f"Whichever replica leads, at least {counted(least, 'record')} {maybe}; no input shows which one does."
    most = sum(max(one.records for one in incident.candidates) for incident in affected)
    return f"Up to {counted(most, 'record')} of {_names(affected)} that {form(most, 'was', 'were')} possibly committed {form(most, 'is', 'are')} not in the leaders' logs; no input shows who leads."


def _condition(affected: Sequence[PartitionIncident]) -> str:
    """Return what is to be true for the rest of a sentence, where leaders are guessed."""
    guessed = [one for one in affected if not one.is_leader_known and isinstance(one.leader, int)]
    if not guessed:
        return ""
    of = f" {_names(guessed)}" if len(guessed) < len(affected) else ""
    if len(of.split()) > MOST_NAMED:
        of = f" {len(guessed)} of these partitions"
    leaders, bases = {one.leader for one in guessed}, {one.leader_basis for one in guessed}
    if len(leaders) == len(bases) == 1:
        return _of_one_leader(f"broker {leaders.pop()}", of, bases.pop())
    if LeaderBasis.LOG not in bases:
        older = "; some of the logs given are from before" if LeaderBasis.OLDER_LOG in bases else ""
        return f"If the last leaders on record lead{of}{older}, "
    return f"If the log of the newest leader epoch, then the longest, leads{of or ' each partition'} (a guess), "


def _of_one_leader(leader: str, of: str, basis: LeaderBasis) -> str:
    match basis:
        case LeaderBasis.RECORD:
            return f"If {leader}, the last leader on record, still leads{of}, "
        case LeaderBasis.OLDER_LOG:
            return (
                f"If {leader}, the last leader on record, leads{of} with the log given, which is from before it led, "
            )
        case LeaderBasis.OPTION:
            return f"If {leader} leads{of}, as was given, "
        case _:
            return f"If {leader} leads{of} (guessed by leader epoch and length), "


def _open_question(affected: Sequence[PartitionIncident], asked: Sequence[PartitionIncident], scope: Scope) -> str:
    if not any(one.copies or one.is_deleted for one in asked):
        cut = [one for one in asked if one.counts_at_least]
        of = f" Log lines say that logs of {_names(cut)} were truncated." if cut else ""
        return f"Whether committed records are lost is unknown: no log of any partition is among the inputs.{of}"
    if affected and affected[0].doubts:
        first = affected[0]
        some = f"{len(affected)} of {len(asked)}" if len(affected) < len(asked) else f"{len(affected)}"
        of = f"{some} partitions" if len(asked) > 1 else str(first.partition)
        return f"Whether committed records of {of} are lost is unknown{_likelihood(affected, asked)}. {_first_doubt(affected)}."
    if bare := [one for one in affected if not one.copies]:
        return f"Whether committed records are lost is unknown: no log of {_names(bare)} is among the inputs."
    if scope.quorum:
        return (
            "Whether committed records are lost is unknown until it is settled which metadata the cluster goes on with."
        )
    if scope.not_given:
        names = listed([str(one) for one in sorted(scope.not_given)], most=MOST_NAMED)
        return f"Whether committed records are lost is unknown: no directory of {names} is among the inputs."
    return "Whether committed records are lost is unknown: not everything could be read."


def _likelihood(affected: Sequence[PartitionIncident], asked: Sequence[PartitionIncident]) -> str:
    """Return how likely a loss is, where nothing but the end of a broker leaves it open."""
    outages = {doubt.outage for one in affected for doubt in one.doubts if doubt.kind is not DoubtKind.TRUNCATION}
    known = [one for one in outages if isinstance(one, Outage)]
    took = {one.likely for one in known} if len(known) == len(outages) else set()
    shown = [_shown_by_disks(one, affected, asked) for one in known]
    if took == {Took.PROCESS}:
        return "" if any(short or lost for _, short, lost in shown) else ", and unlikely by all signs"
    is_contradicted = any(logs and not short for logs, short, _ in shown)
    return (", but likely" if is_contradicted else ", and likely by all signs") if took == {Took.MACHINE} else ""


def _shown_by_disks(
    outage: Outage, doubted: Sequence[PartitionIncident], asked: Sequence[PartitionIncident]
) -> tuple[int, int, list[str]]:
    """Return how many logs of a broker are given as they were when it came back, how many end below a high watermark that it wrote down, and the partitions of those in doubt that lost records."""
    broker = outage.broker_id
    # It wrote its high watermarks down anew once it led again: its logs reach all of them, whatever they had lost.
    has_led_since = any(
        log.is_final and log.broker_id == broker and log.epochs and log.epochs[-1].leader_epoch >= doubt.leader_epoch
        for one in doubted
        for doubt in one.doubts
        if doubt.outage == outage and isinstance(doubt.leader_epoch, int)
        for log in one.logs
    )
    given = sum(any(log.is_final and log.broker_id == broker for log in one.logs) for one in asked)
    short = sum(any(each.broker_id == broker for each in one.past_end) for one in asked)
    return (
        0 if has_led_since and not short else given,
        short,
        [str(one.partition) for one in doubted if any(each.was_committed != "no" for each in one.losses)],
    )


def _first_doubt(affected: Sequence[PartitionIncident]) -> str:
    # What an unclean election took is asked before what a restart may have taken.
    of_unclean = (
        (one, doubt)
        for one in affected
        if one.account is not None
        for election in one.account.risky
        if election.risk is Risk.UNCLEAN
        for doubt in one.doubts
        if doubt.leader_epoch == election.state.leader_epoch
    )
    # That another log of a broker ends too early is said where that log is.
    of_lines = ((one, doubt) for one in affected for doubt in one.doubts if doubt.is_of_lines)
    # Offsets that are nowhere by all that is on record are named before what only may be missing.
    unread = (
        (one, doubt)
        for one in affected
        for doubt in one.doubts
        if doubt.kind is DoubtKind.UNREADABLE or (doubt.kind is DoubtKind.REMOTE and not doubt.is_input)
    )
    incident, doubt = (
        next(unread, None) or next(of_unclean, None) or next(of_lines, (affected[0], affected[0].doubts[0]))
    )
    return f"The inputs do not show {doubt.words} ({incident.partition})"


def _gather(state: State, asked: Sequence[PartitionIncident]) -> tuple[str, ...]:
    """Return what to do where nothing has to be saved and the answer is open: keep everything, and get the input that settles most."""
    if state not in {State.UNKNOWN, State.MAYBE_LOST}:
        return ()
    settled = Counter(doubt.settled_by for one in asked for doubt in one.doubts if doubt.is_input)
    needed = "".join(f" Add {settled_by}." for settled_by, _ in settled.most_common(1))
    return (f"Don't delete any data directory, snapshot or log file of these brokers.{needed}",)


def _unknown(asked: Sequence[PartitionIncident], scope: Scope) -> tuple[str, ...]:
    """Return the open questions, by the input that would settle them: the input that settles most comes first."""
    by_words: dict[tuple[str, str], list[str]] = {}
    returns = doubtful_returns(asked)
    for one in asked:
        for doubt in one.doubts:
            if not isinstance(doubt.outage, Outage):
                by_words.setdefault((doubt.settled_by, doubt.words), []).append(str(one.partition))
    partitions: Counter[str] = Counter()
    first: dict[str, tuple[str, list[str]]] = {}
    for (settled_by, words), names in by_words.items():
        partitions[settled_by] += len(names)
        first.setdefault(settled_by, (words, names))
    sentences = []
    for settled_by, _ in partitions.most_common(MOST_NAMED):
        words, names = first[settled_by]
        sentences.append(f"{_upper(words)} ({listed(names, most=2)}). {_upper(settled_by)} would show it.")
    if any(one.likely is not Took.PROCESS for one in returns):
        sentences = [*returned_words(asked), *sentences]
    else:
        sentences += returned_words(asked)
    if len(partitions) > MOST_NAMED:
        more = len(partitions) - MOST_NAMED
        sentences.append(
            f"{counted(more, 'more open question')}: --format json has {form(more, 'it', 'them')} by partition."
        )
    if scope.not_given:
        sentences.append(
            f"Partitions without any directory among the inputs: {listed([str(one) for one in sorted(scope.not_given)], most=MOST_NAMED)}."
        )
    if scope.problems:
        sentences.append(not_read_words(scope.problems))
    return tuple(sentences)


def doubtful_returns(asked: Sequence[PartitionIncident]) -> dict[Outage, list[PartitionIncident]]:
    """Return how brokers had gone down of which it is not known whether they had lost anything when they led again, each with the partitions."""
    found: dict[Outage, list[PartitionIncident]] = {}
    for one in asked:
        for outage in dict.fromkeys(doubt.outage for doubt in one.doubts if isinstance(doubt.outage, Outage)):
            found.setdefault(outage, []).append(one)
    return found


def returned_words(asked: Sequence[PartitionIncident]) -> list[str]:
    """Return what has to be true for a loss where brokers led again that had gone down, what speaks for and against it, and what settles it."""
    words = []
    for outage, doubted in sorted(doubtful_returns(asked).items(), key=lambda item: item[0][:1]):
        logs, short, lost = _shown_by_disks(outage, doubted, asked)
        partitions = listed([str(one.partition) for one in doubted], most=2)
        words.append(outage_words(outage, partitions, logs=logs, short=short, lost=lost))
    return words


def _upper(words: str) -> str:
    return words[:1].upper() + words[1:]


def _names(incidents: Sequence[PartitionIncident]) -> str:
    by_topic: dict[str, list[TopicPartition]] = {}
    for one in incidents:
        by_topic.setdefault(one.partition.topic, []).append(one.partition)
    return listed(
        [
            str(parts[0]) if len(parts) == 1 else f"{topic} ({len(parts)} partitions)"
            for topic, parts in sorted(by_topic.items())
        ],
        most=MOST_NAMED,
    )
