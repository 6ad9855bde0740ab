"""The causes of losses: what each is called, how it came to pass, what would prevent it, and the one that is behind most of what was lost.

Only causes that are proven or likely count: what is merely possible is no cause.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.reconcile.history.causes import CauseName
from kforensics.reconcile.history.losses import Holder, Loss
from kforensics.reconcile.incident.model import ExplainedTruncation, PartitionIncident
from kforensics.reconcile.observed.leadership import Election, Risk
from kforensics.reconcile.observed.outages import Outage, Took
from kforensics.units import METADATA_TOPIC, METADATA_TOPICS, TopicPartition
from kforensics.words import MOST_WORDS, counted, form, in_short_sentences, joined_by_and, listed, utc_text, utc_words

MOST_NAMED = 4
MOST_CAUSES = 2
"""Causes that one sentence names, those of most records."""


class CauseWords(NamedTuple):
    """What is said of a cause."""

    name: str
    happened: str = "{name} took records of {of} on {who}{when}"
    """How it came to pass."""
    later: str = ""
    """What would prevent it; that of an unclean election depends on the setting that allowed it."""
    is_by_election: bool = False
    """It is an election that left the records behind."""
    truncated_by: str = ""
    """The rule by which the truncation was decided that is the cause; of a restored disk no line reports one."""


_SPREAD = "Spread replicas over power domains, and keep min.insync.replicas at 2 or more (KIP-966)."

CAUSES = {
    CauseName.UNCLEAN_ELECTION: CauseWords(
        "an unclean election",
        "{who} became {leader} of {of} by unclean election{when}{isr}",
        is_by_election=True,
    ),
    CauseName.DISK_RESTORED: CauseWords(
        "a disk that was put back to an earlier state",
        "{who} became {leader} of {of} again{when}, with {its} {disk} put back to an earlier state",
        later="Don't put the disk of a replica back to an earlier state: empty it and let it follow another one, or start it last.",
        is_by_election=True,
        truncated_by="recovery",
    ),
    CauseName.DISK_REPLACED: CauseWords(
        "a broker that came back with another or an emptied disk",
        "{who} became {leader} of {of} again{when}, with another disk than before, or an emptied one",
        later="Before a broker starts with another disk, let another replica in sync lead its partitions, and wait until it has been copied.",
        is_by_election=True,
    ),
    CauseName.METADATA_SET_BACK: CauseWords(
        "a metadata quorum that was begun anew or put back, and never named their topics",
        "{who} set {of} aside: the metadata of now, which is complete, never named the topic",
        later="Keep three controllers on disks of their own that outlive them, and never format or put back a majority of them.",
    ),
    CauseName.HIGH_WATERMARK: CauseWords(
        "truncation to a high watermark, the protocol before leader epochs",
        "{who} truncated {of} to {its} high watermark{when}, as brokers did before leader epochs (KIP-101)",
        later="Upgrade to 0.11 or later with inter.broker.protocol.version to match: leader epochs end this kind of loss (KIP-101).",
        truncated_by="high-watermark",
    ),
    CauseName.DAMAGE: CauseWords(
        "damage inside of a log, behind which nothing could be read or start-up recovery kept nothing",
        "damage inside of the {log} of {of} on {who}{when} made all behind it unreadable, or start-up recovery discarded it",
        later="Check the disks of the brokers whose logs were damaged before they serve again.",
        truncated_by="recovery",
    ),
    CauseName.RECOVERY: CauseWords(
        "start-up recovery",
        "start-up recovery of {who} emptied segments of {of}{when}",
        later="Make room on the log directories before a broker starts after an unclean shutdown, and copy them first.",
        truncated_by="recovery",
    ),
    CauseName.LAST_REPLICA_STANDING: CauseWords(
        "the last replica standing, which had lost its own tail and led again",
        "{who}, the last in sync, lost the end of {its} {log} of {of}{found} and led again",
        later=_SPREAD,
        truncated_by="recovery",
    ),
    CauseName.POWER_LOSS: CauseWords(
        "a power loss or crash that took what was not yet on disk",
        "{who} lost the end of {its} {log} of {of} in a power loss or crash{found}",
        later=_SPREAD,
        truncated_by="recovery",
    ),
    CauseName.RETENTION: CauseWords(
        "retention that took them for older than they were",
        later="Check the time indexes of the other partitions with `kforensics verify`, and with `kforensics predict` before a broker starts: one of zeros makes a segment one of 1970 (KAFKA-10207). Timestamps in seconds do so, too: message.timestamp.before.max.ms (3.6) lets brokers refuse them.",
    ),
    CauseName.UNCOMMITTED_TAIL: CauseWords(
        "a tail of the log that had not been replicated",
        "{who} became {leader} of {of} cleanly{when}, before the end of the log had reached {them}",
        is_by_election=True,
    ),
    CauseName.RECREATED_TOPIC: CauseWords("a topic that was created again under the same name"),
    CauseName.UNKNOWN: CauseWords("a cause that the evidence does not show"),
}


def causes_of(losses: Sequence[Loss]) -> str:
    """Return the causes of some losses, in words that claim no more than is known of each: a cause that is only possible is none, and counts say of how many."""
    known, possible = Counter[CauseName](), Counter[CauseName]()
    unexplained = 0
    for loss in losses:
        if loss.cause is not CauseName.UNKNOWN and loss.confidence != "possible":
            known[loss.cause] += loss.records
            continue
        unexplained += loss.records
        if loss.cause is not CauseName.UNKNOWN:
            possible[loss.cause] += loss.records
    guesses = [CAUSES[cause].name for cause, _ in possible.most_common(MOST_CAUSES)]
    hedge = f", {listed(guesses, most=MOST_NAMED)} {form(len(guesses), 'is', 'are')} possible" if guesses else ""
    if not known:
        return f"cause unknown{hedge}"
    words = listed([CAUSES[cause].name for cause, _ in known.most_common(MOST_CAUSES)], most=MOST_NAMED)
    if not unexplained:
        return words
    if set(guesses) == {CAUSES[cause].name for cause in known}:
        hedge = ", the same is possible"
    others = "the other one" if unexplained == 1 else f"the other {unexplained:,}"
    return f"{words} for {sum(known.values()):,} of them; of {others} the cause is unknown{hedge}"


def with_causes(what: str, losses: Sequence[Loss], *, before: str = "") -> str:
    """Return what was lost with its causes: one sentence, or where that is too long another one for them.

    Args:
        before: the condition under which it was lost, which will stand before it.
    """
    causes = causes_of(losses)
    if len(f"{before} {what} {causes.partition('; ')[0]}".split()) < MOST_WORDS:
        return f"{what}: {causes}."
    unknown = causes.removeprefix("cause unknown")
    return f"{what}. The cause{f' is unknown{unknown}' if unknown != causes else f': {causes}'}."


def prevention(losses: Sequence[Loss], incidents: Sequence[PartitionIncident]) -> list[str]:
    """Return what would prevent such losses, where their causes are known."""
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
    met = {loss.cause for loss in lost if loss.cause is not CauseName.DAMAGE or not loss.in_use}
    return list(
        dict.fromkeys([*advice, *(words.later for cause, words in CAUSES.items() if cause in met and words.later)])
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RootCause:
    """The cause behind most of the lost records, as far as it is proven or likely."""

    cause: CauseName
    confidence: str
    """The weakest of the losses that it sums up: `proven` or `likely`."""
    brokers: tuple[int, ...] | Absent
    """The brokers that were elected, or whose logs were truncated; absent where no input names them for every partition."""
    first_ms: int | Absent
    """When it happened, UTC: to the first of the partitions, where there are several; absent where a time is missing."""
    last_ms: int | Absent
    isr: tuple[int, ...] | Absent
    """The replicas in sync before the election, where they were the same for every partition."""
    partitions: tuple[TopicPartition, ...]
    other_causes: tuple[CauseName, ...]
    """Further causes of losses as grave, proven or likely."""
    unexplained: int
    """Records as gravely lost whose cause is not known, or only possible."""
    citations: tuple[Citation, ...]


class _Origin(NamedTuple):
    broker_id: int | Absent
    time_ms: int | Absent
    isr: frozenset[int] | Absent
    citations: tuple[Citation, ...]


_NOWHERE = _Origin(Absent.UNKNOWN, Absent.UNKNOWN, Absent.UNKNOWN, ())


def root_cause(incidents: Iterable[PartitionIncident]) -> RootCause | None:
    """Return the cause behind most of the records that are lost.

    Returns:
        The cause of the gravest losses: of committed records that no replica in use holds, else of those that may have been committed, else of the others. None
        where nothing is lost, or nothing that is proven or likely explains it.
    """
    every = [(one, loss) for one in incidents if one.partition.topic not in METADATA_TOPICS for loss in one.losses]
    certain = [pair for pair in every if pair[1].was_committed == "certain" and not pair[1].in_use]
    found = certain or [pair for pair in every if pair[1].was_committed != "no"] or every
    groups: dict[CauseName, list[tuple[Loss, _Origin]]] = defaultdict(list)
    unexplained = 0
    for incident, loss in found:
        if loss.cause is CauseName.UNKNOWN or loss.confidence == "possible":
            unexplained += loss.records
        else:
            groups[loss.cause].append((loss, _origin(incident, loss)))
    if not groups:
        return None
    chosen = max(groups, key=lambda cause: sum(loss.records for loss, _ in groups[cause]))
    return _summed_up(chosen, groups[chosen], tuple(cause for cause in groups if cause is not chosen), unexplained)


def _summed_up(
    cause: CauseName, found: Sequence[tuple[Loss, _Origin]], others: tuple[CauseName, ...], unexplained: int
) -> RootCause:
    times = [origin.time_ms for _, origin in found if isinstance(origin.time_ms, int)]
    brokers = {origin.broker_id for _, origin in found if isinstance(origin.broker_id, int)}
    are_all_named = all(isinstance(origin.broker_id, int) for _, origin in found)
    are_all_timed = len(times) == len(found)
    before = {origin.isr for _, origin in found}
    isr = before.pop() if len(before) == 1 else Absent.UNKNOWN
    return RootCause(
        cause=cause,
        confidence="proven" if all(loss.confidence == "proven" for loss, _ in found) else "likely",
        brokers=tuple(sorted(brokers)) if are_all_named else Absent.UNKNOWN,
        first_ms=min(times) if are_all_timed else Absent.UNKNOWN,
        last_ms=max(times) if are_all_timed else Absent.UNKNOWN,
        isr=tuple(sorted(isr)) if isinstance(isr, frozenset) else Absent.UNKNOWN,
        partitions=tuple(sorted({loss.topic_partition for loss, _ in found})),
        other_causes=others,
        unexplained=unexplained,
        citations=tuple(dict.fromkeys(citation for _, origin in found for citation in origin.citations)),
    )


def _origin(incident: PartitionIncident, loss: Loss) -> _Origin:
    """Return the election or the truncation that the loss cites and that its cause speaks of."""
    election = _election(incident, loss) if CAUSES[loss.cause].is_by_election else None
    if election is not None:
        state, before = election.state, election.before
        isr = before.isr if before is not None else Absent.UNKNOWN
        return _Origin(state.leader, state.time_ms, isr, (state.citation,))
    truncation = _truncation(incident.truncations, loss) if CAUSES[loss.cause].truncated_by else None
    if truncation is None:
        return _NOWHERE
    return _Origin(truncation.broker_id, truncation.time_ms, Absent.NOT_APPLICABLE, truncation.citations)


def _election(incident: PartitionIncident, loss: Loss) -> Election | None:
    """Return the election that a loss cites, or the only one of its kind since the records were written."""
    elections = () if incident.account is None else incident.account.elections
    written_in = loss.leader_epoch if isinstance(loss.leader_epoch, int) else -1
    later = [one for one in elections if one.state.leader_epoch > written_in]
    cited = next((one for one in later if one.state.citation in loss.citations), None)
    of_kind = [one for one in later if one.risk is not None and one.risk is _RISKS.get(loss.cause)]
    return cited or (of_kind[0] if len(of_kind) == 1 else None)


_RISKS = {CauseName.UNCLEAN_ELECTION: Risk.UNCLEAN, CauseName.DISK_REPLACED: Risk.OTHER_DISK}


def _truncation(truncations: Sequence[ExplainedTruncation], loss: Loss) -> ExplainedTruncation | None:
    cited = [
        one
        for one in truncations
        if one.citations and one.citations[0] in loss.citations and one.to_offset <= loss.offsets.first
    ]
    same_cause = [one for one in cited if one.cause.name is loss.cause]
    # A follower truncates because of what its leader lacks: then the cause cites how that had lost it.
    behind = {citation for one in same_cause for citation in one.cause.citations}
    of_leader = [one for one in truncations if one.citations and one.citations[0] in behind]
    by_rule = [one for one in (*cited, *of_leader) if one.decided_by == CAUSES[loss.cause].truncated_by]
    return next(iter((*by_rule, *same_cause)), None)


def root_cause_sentence(cause: RootCause) -> str:
    """Return the sentence; it names broker and time only where an input shows them."""
    words = _happened(cause)
    likely = " (likely, not proven)" if cause.confidence != "proven" else ""
    return in_short_sentences(f"{words[:1].upper()}{words[1:]}{likely}{_rest(cause)}.")


def _rest(cause: RootCause) -> str:
    rest = f"; {counted(len(cause.other_causes), 'other cause')} in the ledger" if cause.other_causes else ""
    if cause.unexplained:
        rest += f"; what took {counted(cause.unexplained, 'other record')} is not shown"
    return rest


def _happened(cause: RootCause) -> str:
    words, of = CAUSES[cause.cause], listed([str(one) for one in cause.partitions], most=MOST_NAMED)
    if isinstance(cause.brokers, Absent):
        which = "by which election" if words.is_by_election else "on which broker"
        return f"{words.name} took records of {of}; {which} is not shown for all of them"
    count = len(cause.brokers)
    return words.happened.format(
        name=words.name,
        of=of,
        who=f"{form(count, 'broker')} {listed([str(one) for one in cause.brokers])}",
        leader=form(count, "leader"),
        its=form(count, "its", "their"),
        them=form(count, "it", "them"),
        disk=form(count, "disk"),
        log=form(len(cause.partitions), "log"),
        when=_when(cause),
        isr=_isr(cause),
        found=_found(cause),
    )


def _when(cause: RootCause) -> str:
    if not isinstance(cause.first_ms, int) or not isinstance(cause.last_ms, int):
        return " at a time that no input shows"
    if cause.first_ms // 1000 == cause.last_ms // 1000:
        return f" at {utc_text(cause.first_ms)}"
    return f" from {utc_text(cause.first_ms)} to {utc_text(cause.last_ms)}"


def _found(cause: RootCause) -> str:
    """When start-up recovery found it: the records were lost some time before."""
    if not isinstance(cause.first_ms, int):
        return ""
    return f", as start-up recovery found at {utc_text(cause.first_ms)}"


def _isr(cause: RootCause) -> str:
    if isinstance(cause.isr, Absent):
        return ""
    return f", while the ISR was {'[' + ', '.join(map(str, cause.isr)) + ']' if cause.isr else 'empty'}"


def set_aside_words(losses: Sequence[Loss], named_at: tuple[str, int] | None) -> str:
    """Return who set directories aside of topics that the metadata never named, and where metadata is that names them; empty where none did.

    Args:
        named_at: path and end of the metadata log of the inputs that names them, None where none does.
    """
    holders = _set_aside(losses)
    if not holders:
        return ""
    owners = joined_by_and(dict.fromkeys(one.owner for one in holders))
    count = len({(one.input, one.path) for one in holders})
    where = (
        "No input holds metadata that names them."
        if named_at is None
        else f"Metadata that names them is at {named_at[0]}, up to offset {named_at[1] - 1}."
    )
    return f"{owners[0].upper()}{owners[1:]} set {counted(count, 'directory', 'directories')} aside. {where}"


def set_aside_steps(losses: Sequence[Loss], named_at: tuple[str, int] | None) -> Iterator[str]:
    """Yield how metadata can be brought back that names directories that were set aside."""
    if not _set_aside(losses):
        return
    if named_at is None:
        yield (
            f"Look for metadata that names these topics: {METADATA_TOPIC}-0 of a broker that was not started since, a former disk of a controller, a backup."
            " Without it no broker serves these directories: `kforensics salvage --what lost` takes the records out."
        )
        return
    yield (
        f"To bring the topics back, on copies of all disks: stop every node, give each controller {named_at[0]} as {METADATA_TOPIC}-0, without quorum-state,"
        f" and move {METADATA_TOPIC}-0 of each broker aside."
    )
    yield (
        "Then rename each directory back to TOPIC-PARTITION, one of each partition on a broker, and start the controllers first. Kafka has no tool for it and does not support it;"
        " what the metadata took up since is forgotten."
    )


def _set_aside(losses: Sequence[Loss]) -> list[Holder]:
    return [
        holder
        for loss in losses
        if loss.cause is CauseName.METADATA_SET_BACK
        for holder in loss.held_by
        if holder.is_stray or holder.is_vanishing
    ]


def outage_words(outage: Outage, partitions: str, *, logs: int, short: int, lost: Sequence[str] = ()) -> str:
    """Return what has to be true for a loss where a broker led again that had gone down, what speaks for it and against it, and what settles it.

    Args:
        logs: how many logs of its are given.
        short: how many of them end below a high watermark that it wrote down.
        lost: partitions of these of which records are known to be lost.
    """
    broker = outage.broker_id
    after = f" after its start at {utc_words(outage.start_ms)}" if isinstance(outage.start_ms, int) else ""
    words = [
        f"Whether broker {broker} had lost records when it led again{after} ({partitions}).",
        "Only a machine that went down (power, kernel), or a disk that was exchanged or put back, takes any: what a killed process has written stays in the page cache.",
    ]
    signs = {took: [one.words for one in outage.signs if one.took is took] for took in Took}
    if lost:
        signs[Took.MACHINE].append(f"records of {listed(list(lost), most=2)} are gone")
    if short:
        ends = form(short, "ends", "end")
        signs[Took.MACHINE].append(
            f"{short} of its {counted(logs, 'log')} {ends} below a high watermark that it wrote down"
        )
    elif logs:
        signs[Took.PROCESS].append(f"none of its {counted(logs, 'log')} ends below a high watermark that it wrote down")
    words += [f"Evidence for it: {one}." for one in signs[Took.MACHINE]]
    words += [f"Evidence against it: {one}." for one in signs[Took.PROCESS]]
    if outage.was_booted:
        words.append(
            "How the machine went down settles it (`journalctl -b -1 -e`): shut down in order after the kill, it had written everything to its disk, and lost nothing there."
        )
    elif outage.proven is None:
        words.append(
            "The journal of its machine settles it (`journalctl --list-boots`): no boot before the broker came back, and the same disk: nothing was lost."
        )
    return " ".join(words)
