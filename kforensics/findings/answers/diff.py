"""The answer of a comparison: the first lines over all partitions, from what each gives reason for.

The worst partition decides the state. The headline is a sentence about the gravest kind of concern that leads to it.
"""

import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from kforensics.evidence.model import Problem
from kforensics.findings.answers.model import Answer, State, worst_state
from kforensics.findings.answers.partition_state import (
    ORDER,
    OTHER_DISKS,
    Concern,
    ConcernKind,
    JudgedPartition,
    judged_partition,
    partition_state,
)
from kforensics.findings.model import Finding
from kforensics.units import METADATA_TOPICS, TopicPartition
from kforensics.words import Prohibition, counted, form, listed

__all__ = ["Concern", "ConcernKind", "JudgedPartition", "diff_answer", "judged_partition", "partition_state"]

Item = tuple[TopicPartition, Concern]

_MOST_NAMED = 5

BELOW_THE_ENDS = "Whether content below the ends of the logs is the same and undamaged"

_CALM = frozenset({State.AGREE, State.BEHIND, State.SAME_ENDS})

_WITHOUT_ALARM = _CALM | {State.UNCOMMITTED_ONLY}

_HEDGED_BY_DEPTH = frozenset({State.DIVERGED, State.UNKNOWN, State.UNCOMMITTED_ONLY, State.BEHIND, State.SAME_ENDS})
"""States whose headline says that content was not compared where it was not; graver ones do not depend on it."""

_SHORT = {
    ConcernKind.EMPTIED: "a broker that can be elected holds no log of it",
    ConcernKind.GONE: "a log or a part of it is missing",
    ConcernKind.DISCARD: "a replica will discard records that the leader does not hold",
    ConcernKind.SOLE: "one replica alone holds records",
    ConcernKind.PAST_END: "a high watermark is past the end of every log",
    ConcernKind.RECOVERY: "recovery will discard records that no other log reaches",
    ConcernKind.ELECTED: "an election can discard records",
    ConcernKind.OUTSIDE: "a directory that is no replica any more holds records alone",
    ConcernKind.PROTOCOL: "what is truncated depends on the Kafka version",
    ConcernKind.DIVERGENCE: "replicas hold different content at the same offset",
    ConcernKind.MISSING: "an assigned replica is not among the inputs",
    ConcernKind.ALONE: "one replica is given",
    ConcernKind.TAIL: "its end may have been copied at another moment than that of other replicas",
    ConcernKind.LEADER: "no input shows which replica leads",
    ConcernKind.COMPACTION: "compacted replicas differ",
    ConcernKind.DAMAGE: "the only replica given is damaged",
    ConcernKind.OTHER_TOPIC: "replicas belong to another topic of the same name",
    ConcernKind.NO_REPLICA: "no live replica is among the inputs",
    ConcernKind.UNREAD: "files could not be read",
    ConcernKind.OUTDATED: "log lines name a later leader epoch",
    ConcernKind.ASSIGNMENT: "no input shows the assignment",
    ConcernKind.COPIED_AGAIN: "what a replica truncates is copied again from the leader",
    ConcernKind.UNCOMMITTED: "a replica will truncate records that were never committed",
    ConcernKind.BEHIND: "a replica is behind",
    ConcernKind.ENDS: "content below the ends of its logs was not compared",
    ConcernKind.DELETED: "the topic was deleted",
    ConcernKind.OBSERVERS: "a broker's copy lacks a part",
    ConcernKind.NO_EPOCHS: "leader-epoch-checkpoint is missing",
}
"""Why a partition is in the state of the whole, where the headline is about others."""


_SENTENCES = {
    ConcernKind.RECOVERY: "recovery at the start of {owners} will discard {offsets} of {partitions} that no other log reaches.",
    ConcernKind.OUTSIDE: "directories of {owners} that are no replica any more hold {what} of {partitions} that no replica holds.",
    ConcernKind.PROTOCOL: "what {first_owners} truncates depends on the Kafka version, which no input shows: of {partition}, {detail}; {partitions} in all.",
    ConcernKind.ALONE: "nothing was compared: of {partitions} one replica is given.",
    ConcernKind.OUTDATED: "the directories of {partitions} were copied before the last log lines: these name leader epoch {detail} of {partition}, which no directory knows.",
    ConcernKind.LEADER: "replicas of {partitions} end differently, and no input shows which replica leads.",
    ConcernKind.COMPACTION: "compacted replicas of {partitions} differ by records for which no input holds a later one of the same key.",
    ConcernKind.DAMAGE: "the only replica of {partition} given can't give {detail}: its bytes are damaged; {partitions} in all.",
    ConcernKind.OTHER_TOPIC: "replicas of {partitions} belong to another topic of the same name and were not compared.",
    ConcernKind.NO_REPLICA: "no live replica of {partitions} is among the inputs.",
    ConcernKind.UNREAD: "files of {partitions} could not be read.",
    ConcernKind.UNCOMMITTED: "Nothing committed is at risk: {owners} will truncate records of {partitions} that were never committed.",
    ConcernKind.BEHIND: "No replica will truncate; {owners} {lack} records of {partitions} of {count} that others hold.",
    ConcernKind.ENDS: "By leader epochs and ends all replicas agree: {partitions}, every assigned replica given.",
}
"""What a headline says of partitions by the kind of concern, where it says the same in every state."""


def diff_answer(
    judged: Sequence[JudgedPartition],
    *,
    paths: Sequence[str],
    findings: Sequence[Finding] = (),
    problems: Sequence[Problem] = (),
    among: int | None = None,
    not_given: Collection[TopicPartition] = (),
) -> Answer:
    """Return the answer over all partitions that were compared.

    Args:
        judged: every partition with its concerns.
        paths: of the inputs, where their directories can be copied.
        findings: of the whole result; several clusters, or a broker given twice, make the comparison itself unknown.
        problems: what could not be read.
        among: the number of all partitions but those of deleted topics, where those in `judged` are only the worst of them.
        not_given: partitions that the metadata names and of which no replica is among the inputs, some broker being there.
    """
    deleted = sum(one.is_deleted for one in judged)
    among = len(judged) - deleted if among is None else among
    mixed = next((one for one in findings if one.code in {"KF507", "KF508"}), None)
    if mixed is not None:
        headline = f"UNKNOWN: these inputs can't be compared as they are: {mixed.statement}."
        return Answer(state=State.UNKNOWN, headline=headline, now=(mixed.advice,) if mixed.advice else ())
    if not judged:
        return Answer(
            state=State.UNKNOWN,
            headline="UNKNOWN: nothing to compare: no partition was found.",
            unknown=("What the replicas hold: give the data directories of the brokers.",),
        )
    state = worst_state("diff", (one.state for one in judged)) or State.UNKNOWN
    if state in _CALM and not among:
        return Answer(
            state=State.UNKNOWN,
            headline=f"UNKNOWN: nothing to compare: {counted(deleted, 'partition')}, of {deleted_topics(deleted)}.",
            unknown=("What other partitions hold: give the data directories of the brokers.",),
        )
    if state in _CALM and not_given and all(one.partition.topic in METADATA_TOPICS for one in judged):
        names = listed([str(one) for one in sorted(not_given)], most=_MOST_NAMED)
        return Answer(
            state=State.UNKNOWN,
            headline=f"UNKNOWN: only the metadata log was compared; of {counted(len(not_given), 'partition')} that it names no replica is given.",
            unknown=(f"What the replicas of {names} hold: give the data directories of their brokers.",),
        )
    if problems and state in _CALM:
        state = State.UNKNOWN
    words = _Words(judged, state, paths, problems, among=among)
    return Answer(
        state=state,
        headline=words.headline() + (_incomplete(problems) if problems else ""),
        now=tuple(words.now()),
        tell=tuple(words.tell()),
        later=tuple(words.later()),
        unknown=tuple(words.unknown()),
    )


def deleted_topics(count: int) -> str:
    """Return what some partitions are of.

    Args:
        count: of the partitions.
    """
    return form(count, "a deleted topic", "deleted topics")


def of_deleted_topics(count: int) -> str:
    """Return, in brackets, how many partitions beside those that were compared are of deleted topics; nothing where none is.

    Args:
        count: of them.
    """
    partitions = f"{counted(count, 'other partition')} {form(count, 'is', 'are')}"
    return f" ({partitions} of {deleted_topics(count)})" if count else ""


def _incomplete(problems: Sequence[Problem]) -> str:
    return f" Incomplete: {counted(len(problems), 'thing')} could not be read."


class _Words:
    """The sentences of an answer."""

    def __init__(
        self,
        judged: Sequence[JudgedPartition],
        state: State,
        paths: Sequence[str],
        problems: Sequence[Problem],
        *,
        among: int,
    ) -> None:
        self.judged = judged
        self.state = state
        self.paths = paths
        self.problems = problems
        self.among = counted(among, "partition")
        self.count = among
        self.is_metadata_alone = among == sum(one.partition.topic in METADATA_TOPICS for one in judged)
        self.by_kind: dict[tuple[State, ConcernKind], list[Item]] = {}
        for one in judged:
            for concern in one.concerns:
                self.by_kind.setdefault((concern.state, concern.kind), []).append((one.partition, concern))

    def of(self, kind: ConcernKind, *states: State) -> list[Item]:
        return [item for state in states or (self.state,) for item in self.by_kind.get((state, kind), ())]

    def by_owners(self, items: Sequence[Item]) -> list[tuple[str, list[Item]]]:
        """Return the concerns by whom they are about, those with most committed records first."""
        groups: dict[str, list[Item]] = {}
        for item in items:
            groups.setdefault(_and(item[1].owners), []).append(item)
        return sorted(
            groups.items(), key=lambda group: (-_sum(group[1], "certain"), -_sum(group[1], "possible"), group)
        )

    def headline(self) -> str:
        return self._worst() + self._observers() + self._without_epochs()

    def _observers(self) -> str:
        copies = self.of(ConcernKind.OBSERVERS, State.AGREE) if self.state in _WITHOUT_ALARM else ()
        return f" The copy of the metadata log on {_and(_owners(copies))} lacks a part." if copies else ""

    def _without_epochs(self) -> str:
        items = self.of(ConcernKind.NO_EPOCHS, State.AGREE) if self.state in _WITHOUT_ALARM else ()
        if not items:
            return ""
        partition, first = items[0]
        return (
            f" Unless the copy left them out, leader-epoch-checkpoint files of {_partitions(items)} are missing on {_and(_owners(items))},"
            f" whose start then truncates these logs: {partition} {first.detail}."
        )

    def _worst(self) -> str:
        kinds = sorted((kind for state, kind in self.by_kind if state is self.state), key=ORDER.__getitem__)
        if self.state is State.AGREE or not kinds:
            if self.state is State.AGREE and self.is_metadata_alone:
                return "All replicas of the metadata log agree, every voter given; no log of another partition was compared."
            if self.state is State.AGREE:
                also = of_deleted_topics(sum(one.is_deleted for one in self.judged))
                return f"All replicas agree: {self.among} compared, every assigned replica given{also}."
            return f"UNKNOWN: {self.among} compared, and not all could be read.{self._not_compared()}"
        items = self.of(kinds[0])
        plain = _SENTENCES.get(kinds[0])
        sentence: str = (
            getattr(self, f"_{kinds[0].name.lower()}")(items) if plain is None else self._filled(plain, items)
        )
        if kinds[0] is ConcernKind.BEHIND and self.of(ConcernKind.NO_EPOCHS, State.AGREE):
            sentence = f"By leader epochs no replica truncates; {sentence.partition('; ')[2]}"
        prefix = {
            State.MAYBE_AT_RISK: "MAYBE AT RISK: ",
            State.UNKNOWN: "UNKNOWN: ",
        }.get(self.state, "")
        said = {tp for tp, _ in items}
        more = ""
        for kind in kinds[1:]:
            others = [(tp, one) for tp, one in self.of(kind) if tp not in said]
            if others:
                more += f" Also {_names(others)}: {_SHORT[kind]}."
                said |= {tp for tp, _ in others}
        return prefix + sentence + more + self._not_compared()

    def _not_compared(self) -> str:
        unread = any(one.records for _, one in self.of(ConcernKind.ENDS, State.SAME_ENDS))
        if not unread or self.state not in _HEDGED_BY_DEPTH:
            return ""
        return " Content below the ends of the logs was not compared."

    def _filled(self, sentence: str, items: Sequence[Item]) -> str:
        partition, first = items[0]
        owners = _and(_owners(items))
        return sentence.format(
            partition=partition,
            partitions=_partitions(items),
            owners=owners,
            first_owners=_and(first.owners),
            detail=first.detail,
            lack="lack" if " and " in owners else "lacks",
            offsets=counted(_sum(items, "records"), "offset"),
            what=_what(_sum(items, "certain"), _sum(items, "possible")),
            count=f"{self.count:,}",
        )

    # The sentences that depend on more: one for each other kind of concern, in the state that it decides.

    def _emptied(self, items: Sequence[Item]) -> str:
        owner, own = self.by_owners(items)[0]
        count = _partitions(own)
        one = min((one for _, one in own), key=lambda one: not one.is_sole)
        first = "" if one.is_sole else " first"
        if self.state is State.AT_RISK:
            return f"STARTING {owner.upper()}{first.upper()} DESTROYS {count.upper()}: {one.detail}."
        return f"starting {owner}{first} may destroy {count}: {one.detail}."

    def _gone(self, items: Sequence[Item]) -> str:
        partition, one = items[0]
        owners = _and(dict.fromkeys(owner for tp, other in items if tp == partition for owner in other.owners))
        does, they = ("do", "they") if " and " in owners else ("does", "it")
        others = len({tp for tp, _ in items}) - 1
        more = (
            f" {counted(others, 'other partition')} {form(others, 'has', 'have')} lost a log or a part of it, too."
            if others
            else ""
        )
        return f"{owners} {does} not hold the log of {partition} that {they} had: {one.detail}.{more}"

    def _discard(self, items: Sequence[Item]) -> str:
        owners = _and(_owners(items))
        certain, possible = _sum(items, "certain"), _sum(items, "possible")
        guess = next((one for _, one in items if one.guess), None)
        if guess is not None:
            what = _what(certain, possible)
            return f"if {guess.leader} leads ({guess.guess}), {owners} will discard {what} of {_partitions(items)}."
        if self.state is State.AT_RISK:
            also = f" (and {possible:,} that may have been committed)" if possible else ""
            return f"DATA AT RISK: {owners} will discard {counted(certain, 'committed record')}{also} of {_partitions(items)} that the leader does not hold."
        will = "may" if certain else "will"
        return (
            f"{owners} {will} discard {_what(certain, possible)} of {_partitions(items)} that the leader does not hold."
        )

    def _sole(self, items: Sequence[Item]) -> str:
        groups = self.by_owners(items)
        owner, own = groups[0]
        certain, possible = _sum(own, "certain"), _sum(own, "possible")
        rest = "".join(
            f" Only {other} holds {_what(_sum(theirs, 'certain'), _sum(theirs, 'possible'))} of {_partitions(theirs)}."
            for other, theirs in groups[1:3]
        )
        if self.state is State.AT_RISK and rest:
            return (
                f"ONLY {owner.upper()} HOLDS {counted(certain, 'committed record')} of {_partitions(own)}.{rest}"
                f" Do not force an unclean election while one of {_and(_owners(items))} is down."
            )
        if self.state is State.AT_RISK and any(one.is_replaced for _, one in own):
            return (
                f"ONLY {owner.upper()} HOLDS {counted(certain, 'committed record')} of {_partitions(own)}, and others hold other records there."
                f" Copy its directory before it starts."
            )
        if self.state is State.AT_RISK and _owners(own) & self._waiting():
            return (
                f"ONLY {owner.upper()} HOLDS {counted(certain, 'committed record')} of {_partitions(own)}."
                f" Do not force an unclean election, and copy its directory before it starts."
            )
        if self.state is State.AT_RISK:
            losing = _owners(self.of(ConcernKind.DISCARD, State.AT_RISK, State.MAYBE_AT_RISK))
            start = f"Copy its directory, then start {owner} first" if _owners(own) & losing else f"Start {owner} first"
            return (
                f"ONLY {owner.upper()} HOLDS {counted(certain, 'committed record')} of {_partitions(own)}.{rest}"
                f" {start}; do not force an unclean election while it is down."
            )
        return f"only {owner}, of the replicas given, holds {_what(certain, possible)} of {_partitions(own)}.{rest}"

    def _past_end(self, items: Sequence[Item]) -> str:
        owners = _and(_owners(items))
        words = f"{owners} recorded high watermarks up to {counted(_sum(items, 'records'), 'offset')} past the end of every log, of {_partitions(items)}"
        if self.state is State.AT_RISK:
            return f"COMMITTED RECORDS ARE MISSING: {words}."
        return f"{words}: copied while the broker ran, or after a power loss."

    def _elected(self, items: Sequence[Item]) -> str:
        certain, possible = _sum(items, "certain"), _sum(items, "possible")
        owners = _joined(_owners(items), "or")
        if any(one.detail for _, one in items):
            return f"whichever replica leads, {_what(certain, possible)} of {_partitions(items)} will be discarded."
        lead = "DATA AT RISK: " if self.state is State.AT_RISK else ""
        return f"{lead}if {owners} is elected, which can be without an unclean election, {_what(certain, possible)} of {_partitions(items)} will be discarded."

    def _divergence(self, items: Sequence[Item]) -> str:
        odd = [one for _, one in items if one.detail]
        count = len({tp for tp, _ in items})
        of = _names(items) if count == 1 else f"{count:,} of {self.among}"
        words = ""
        if odd and len(odd) == len(items):
            owners = _and(dict.fromkeys(owner for one in odd for owner in one.owners))
            why = odd[0].detail if len(odd) == 1 else "by their checksums or by what the others hold"
            words = f" The odd {'one' if ' and ' not in owners else 'ones'} out: {owners} ({why})."
        return f"REPLICAS DIFFER FOR GOOD: those of {of} hold different content at the same offset, and replication will not repair it.{words}"

    def _missing(self, items: Sequence[Item]) -> str:
        groups = [
            (owner, [one for one in items if owner in one[1].owners])
            for owner in dict.fromkeys(owner for _, one in items for owner in one.owners)
        ]
        away = [(owner, own) for owner, own in groups if not owner.startswith(OTHER_DISKS)]
        sentences = []
        if away:
            owners, own = _and(owner for owner, _ in away), [item for _, own in away for item in own]
            are = "are" if len(away) > 1 else "is"
            sentences.append(f"{owners} {are} not among the inputs and should hold {_partitions(own)}.")
        for owner, own in [one for one in groups if one not in away][:_MOST_NAMED]:
            name = owner.removeprefix(OTHER_DISKS)
            sentences.append(
                f"{name} should hold {_partitions(own)} by the newest record given, and none of its log directories among the inputs does."
            )
        return " ".join(sentences)

    def _tail(self, items: Sequence[Item]) -> str:
        owners = _and(_owners(items))
        records = max(one.records for _, one in items)
        if _sum(items, "certain"):
            held = _what(_sum(items, "certain"), _sum(items, "possible"))
            return f"{owners} alone {'hold' if ' and ' in owners else 'holds'} {held} of {_partitions(items)}, or others were copied earlier while they ran."
        ends = f"the last records of {_partitions(items)} on {owners}, up to {records:,} of one"
        return f"copied while brokers ran, or after a power loss: {ends}, can't be judged."

    def _assignment(self, items: Sequence[Item]) -> str:
        due = self.of(ConcernKind.COPIED_AGAIN, State.UNCOMMITTED_ONLY)
        if {tp for tp, _ in due} & {tp for tp, _ in items}:
            leaders = _and(dict.fromkeys(one.leader for _, one in due))
            stay = f"{leaders} must stay up, if {'they lead' if ' and ' in leaders else 'it leads'}, until what others truncate is copied again"
            return f"no input shows the assignment of {_partitions(items)}; {stay}."
        agree = "have the same ends" if self.of(ConcernKind.ENDS, State.SAME_ENDS) else "agree"
        return f"the replicas given of {_partitions(items)} {agree}, and no input shows whether they are all."

    def _copied_again(self, items: Sequence[Item]) -> str:
        leaders = _and(dict.fromkeys(one.leader for _, one in items))
        followers = _and(_owners(items))
        return f"{followers} will truncate committed records of {_partitions(items)} and copy them again: {leaders} must stay up until then."

    def now(self) -> Iterator[str]:
        for owner, items in self.by_owners(self.of(ConcernKind.EMPTIED, State.AT_RISK, State.MAYBE_AT_RISK)):
            yield Prohibition(
                f"Do not start {owner}: elected with an empty log, it makes the other replicas truncate theirs to 0. Give it its former disk back, or let a broker that holds the records lead first."
            )
            yield f"The partitions: {_names(items)}."
        losing = self.of(ConcernKind.DISCARD, State.AT_RISK, State.MAYBE_AT_RISK) + self.of(
            ConcernKind.PROTOCOL, State.MAYBE_AT_RISK
        )
        for owner, items in self.by_owners(losing):
            whose = "their directories are" if " and " in owner else "its directory is"
            yield Prohibition(f"Do not start {owner} before {whose} copied: {self._copy(items)}")
        yield from self._keep_sole_holders(_owners(losing))
        for owner, items in self.by_owners(self.of(ConcernKind.TAIL, State.MAYBE_AT_RISK)):
            yield f"Copy the directory of {owner} before anything is started: {self._copy(items)}"
        outside = self.of(ConcernKind.OUTSIDE, State.AT_RISK, State.MAYBE_AT_RISK)
        if outside:
            owners = _and(_owners(outside))
            is_deleted = any(path.endswith("-delete") for _, one in outside for _, path in one.places)
            fate = ", which deletes some of them," if is_deleted else ""
            yield f"Copy these directories before {owners} {'start' if ' and ' in owners else 'starts'}{fate} or anything is done with them: {self._copy_places(outside)}"
        for owner, items in self.by_owners(self.of(ConcernKind.ELECTED, State.AT_RISK, State.MAYBE_AT_RISK)):
            yield Prohibition(f"Do not start {owner} before a broker that holds all of {_names(items)} leads.")
        for owner, items in self.by_owners(self.of(ConcernKind.GONE, State.MAYBE_AT_RISK, State.UNKNOWN)):
            yield f"Look for what {owner} lost of {_names(items)} (lost+found, other copies) before it starts: it begins an empty log, or serves one with a hole."
        for owner, items in self.by_owners(self.of(ConcernKind.RECOVERY, State.MAYBE_AT_RISK)):
            yield f"Copy the log of {owner} before it starts: {self._copy(items)}"
        if self.of(ConcernKind.PAST_END, State.AT_RISK, State.MAYBE_AT_RISK):
            yield "Look for another replica or an earlier copy before anything is started."
        parted = self.of(ConcernKind.DIVERGENCE, State.DIVERGED)
        if any(not one.detail for _, one in parted):
            yield "Find out which content is right before a leader changes: readers get one or the other. Delete nothing."
        for owner, items in self.by_owners([item for item in parted if item[1].detail]):
            yield f"Have another broker than {owner} lead {_names(items)}, then let {owner} copy it again into an empty directory; keep the old one: {self._copy(items)}"
        again = self.of(ConcernKind.COPIED_AGAIN, State.UNCOMMITTED_ONLY)
        for leader in dict.fromkeys(one.leader for _, one in again):
            yield f"Keep {leader} up until its followers have caught up: what they truncate is on its disk alone meanwhile."

    def _keep_sole_holders(self, losing: frozenset[str]) -> Iterator[str]:
        """How to keep what one replica alone holds, without an order of starts that other lines contradict.

        Args:
            losing: owners that are not started before their directories are copied, as is said already.
        """
        groups = self.by_owners(self.of(ConcernKind.SOLE, State.AT_RISK, State.MAYBE_AT_RISK))
        waiting = self._waiting()
        for owner, items in groups:
            is_copied = _owners(items) <= losing
            copied = "." if is_copied else f"; copy its directory before: {self._copy(items)}"
            is_replaced = any(one.is_replaced for _, one in items)
            # Of replicas that are not given another may lead: to start this one first could make it the leader.
            can_lead = all(one.state is State.AT_RISK or (one.leader == owner and not one.guess) for _, one in items)
            if len(groups) == 1 and can_lead and not is_replaced and not _owners(items) & waiting:
                yield f"Start {owner} first, and do not force an unclean election while it is down{copied}"
                continue
            if not is_copied:
                yield f"Copy the directory of {owner} before it starts: {self._copy(items)}"
            if not is_replaced:
                yield Prohibition(f"Do not force an unclean election of {_names(items)} while {owner} is down.")

    def _waiting(self) -> frozenset[str]:
        """Return the owners that are not to start first: what they hold, or others do, could be discarded then."""
        risky = [State.AT_RISK, State.MAYBE_AT_RISK]
        # Where another one is known to lead, to start first makes it discard what it holds.
        follows = [item for item in self.of(ConcernKind.DISCARD, *risky) if not item[1].guess]
        waiting = _owners(follows + self.of(ConcernKind.EMPTIED, *risky) + self.of(ConcernKind.ELECTED, *risky))
        # One that may lack the end of its log makes those that hold it truncate, once it leads.
        unsure = self.of(ConcernKind.TAIL, *risky) + [
            item for item in self.of(ConcernKind.DISCARD, *risky) if item[1].guess
        ]
        waiting |= {one.leader for _, one in unsure if one.leader and one.leader not in one.owners}
        # A log directory that is not given may be empty, and what it should hold is led by its broker then.
        missing = _owners(self.of(ConcernKind.MISSING, State.UNKNOWN))
        return waiting | {owner.removeprefix(OTHER_DISKS) for owner in missing if owner.startswith(OTHER_DISKS)}

    def _copy(self, items: Sequence[Item]) -> str:
        paths = dict.fromkeys(self.paths[at] for _, one in items for at in one.inputs if at < len(self.paths))
        return "; ".join(f"cp -a {shlex.quote(path)} {shlex.quote(_copy_of(path))}" for path in paths)

    def _copy_places(self, items: Sequence[Item]) -> str:
        """Return the commands that copy single directories out of log directories, where a broker would not start with a copy among the others."""
        by_input: dict[int, dict[str, None]] = {}
        for _, one in items:
            for at, path in one.places:
                by_input.setdefault(at, {})[path] = None
        commands = []
        for at, places in by_input.items():
            if at >= len(self.paths):
                continue
            source = self.paths[at].rstrip("/")
            named = " ".join(shlex.quote(f"{source}/{path}") for path in list(places)[:_MOST_NAMED])
            more = f" (and {len(places) - _MOST_NAMED} more)" if len(places) > _MOST_NAMED else ""
            target = shlex.quote(_copy_of(source))
            commands.append(f"mkdir -p {target} && cp -a {named} {target}{more}")
        return "; ".join(commands)

    def tell(self) -> Iterator[str]:
        risky = [
            item
            for kind in (
                ConcernKind.EMPTIED,
                ConcernKind.DISCARD,
                ConcernKind.SOLE,
                ConcernKind.ELECTED,
                ConcernKind.PAST_END,
            )
            for item in self.of(kind, State.AT_RISK)
        ]
        if risky:
            yield f"Producers and consumers of {_topics(risky)}: committed records can be lost at the next start."
        parted = self.of(ConcernKind.DIVERGENCE, State.DIVERGED)
        if parted:
            led = dict.fromkeys(one.leader for _, one in parted if one.leader and not one.guess)
            served = f"; {_and(led)} {form(len(led), 'leads', 'lead')} now" if led else ""
            yield f"Consumers of {_topics(parted)}: what they read depends on which broker led{served}."

    def later(self) -> Iterator[str]:
        if self.of(ConcernKind.SOLE, State.AT_RISK) or self.of(ConcernKind.DISCARD, State.AT_RISK):
            yield "With min.insync.replicas of 2 or more and acks=all, no replica alone holds what was acknowledged."

    def unknown(self) -> Iterator[str]:
        missing = self.of(ConcernKind.MISSING, State.UNKNOWN)
        if missing:
            whose = _and(_owners(missing))
            needed = sorted({part for _, one in missing for part in one.detail.split(", ") if part})
            last = f" ({', '.join(needed)} can be elected)" if needed else ""
            yield f"What is on {whose}{last}, assigned {_names(missing)}: give its data directories too."
        for kind in (ConcernKind.ASSIGNMENT, ConcernKind.ALONE):
            items = [item for item in self.of(kind, State.UNKNOWN) if not any(one is item for one in missing)]
            if items:
                owners = dict.fromkeys(owner.removeprefix("broker ") for _, one in items for owner in one.owners)
                stated = ",".join(owners) if all(owner.isdecimal() for owner in owners) else "1,2,3"
                yield f"Which brokers are assigned {_names(items)}: give the cluster's metadata log or its controller.log and state-change.log, or state it, as with --replicas {stated}."
        guesses = [
            one.guess
            for judged in self.judged
            for one in judged.concerns
            if one.guess and one.state is not State.BEHIND
        ]
        if guesses and all("the newest record" in guess for guess in guesses):
            yield "Who will lead: the newest record of the leader does not tell; state it with --leader."
        elif guesses or self.of(ConcernKind.LEADER, State.UNKNOWN):
            yield f"Who leads: give {self._settled_by()}, or state it with --leader."
        gone = self.of(ConcernKind.GONE, State.MAYBE_AT_RISK, State.UNKNOWN)
        if gone:
            losers = _and(_owners(gone))
            yield f"What {losers} held of {_names(gone)}: an earlier copy of the log directory would show it."
        if self.of(ConcernKind.TAIL, State.UNKNOWN, State.MAYBE_AT_RISK) or self.of(
            ConcernKind.PAST_END, State.MAYBE_AT_RISK
        ):
            yield "Whether brokers ran when they were copied: if none did, say --stopped, and the ends of logs are judged."
        if self.of(ConcernKind.OUTDATED, State.UNKNOWN):
            yield "What the replicas hold since then: give the directories as they were when the log files end, or log files that end when the directories were copied."
        if self.of(ConcernKind.PROTOCOL, State.UNKNOWN, State.MAYBE_AT_RISK):
            yield "Which Kafka version the brokers run: give server.log, or state it with --protocol."
        if self.of(ConcernKind.COMPACTION, State.UNKNOWN):
            yield "Whether a later record of the same key was there: give the other replicas or an earlier copy."
        yield from self._below_the_ends()
        yield from self._lost_before()
        if self.problems:
            yield f"What could not be read: {counted(len(self.problems), 'thing')} (listed below)."

    def _below_the_ends(self) -> Iterator[str]:
        unread = [
            (partition, one.records) for partition, one in self.of(ConcernKind.ENDS, State.SAME_ENDS) if one.records
        ]
        if not unread:
            return
        named = ", ".join(f"{partition} below {offset:,}" for partition, offset in unread[:_MOST_NAMED])
        more = f" and {counted(len(unread) - _MOST_NAMED, 'other')}" if len(unread) > _MOST_NAMED else ""
        yield f"{BELOW_THE_ENDS}: it was not compared ({named}{more}); --depth content compares it."

    def _settled_by(self) -> str:
        """Return the input that shows who leads: what the accounts of leaders lack, where they lack one thing alone."""
        guessed = [one for one in self.judged if any(concern.guess for concern in one.concerns)]
        asked = {one.settled_by for one in guessed if one.settled_by}
        return asked.pop() if len(asked) == 1 else "the metadata log, controller.log or state-change.log"

    def _lost_before(self) -> Iterator[str]:
        """Elections on record that may have lost records: replicas that agree now say nothing of that."""
        risky = [(one.partition, one.risks) for one in self.judged if one.risks]
        if risky:
            names = [str(partition) for partition, _ in risky]
            more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
            why = _and(dict.fromkeys(words for _, risks in risky for words in risks))
            yield f"Whether records of {', '.join(names[:_MOST_NAMED])}{more} were lost before: {why} {'are' if ' and ' in why else 'is'} on record; `kforensics explain` answers that."


def _copy_of(path: str) -> str:
    """Return a place for the copy of a directory that is not below its parent: whoever names the parent, or all in it, again does not name the copy too."""
    pure = PurePosixPath(path)
    parent = pure.parent
    is_inside = pure.is_absolute() or parent.name not in {"", ".."}
    names = [one for one in (parent.name if is_inside else "", pure.name) if one]
    return str((parent.parent if is_inside else parent / "..") / "-".join(["copy-of", *(names or ["data"])]))


def _owners(items: Sequence[Item]) -> frozenset[str]:
    return frozenset(owner for _, one in items for owner in one.owners)


def _sum(items: Sequence[Item], name: str) -> int:
    return sum(getattr(one, name) for _, one in items)


def _what(certain: int, possible: int) -> str:
    if certain and possible:
        return f"{counted(certain, 'committed record')} and {possible:,} that may have been committed"
    if certain:
        return counted(certain, "committed record")
    return f"{counted(possible, 'record')} that may have been committed"


def _partitions(items: Sequence[Item]) -> str:
    return counted(len({partition for partition, _ in items}), "partition")


def _names(items: Sequence[Item]) -> str:
    names = list(dict.fromkeys(str(partition) for partition, _ in items))
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _topics(items: Sequence[Item]) -> str:
    names = list(dict.fromkeys(partition.topic for partition, _ in items))
    more = f" and {len(names) - _MOST_NAMED} more topics" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _and(names: Iterable[str]) -> str:
    return _joined(names, "and")


def _joined(names: Iterable[str], word: str) -> str:
    """Names in a sentence, those of one kind together: `brokers 1 and 2 and controller 100`."""
    every = sorted(dict.fromkeys(names), key=lambda name: (len(name), name))
    parts = []
    for kind in dict.fromkeys(name.rpartition(" ")[0] for name in every):
        numbers = [name.rpartition(" ")[2] for name in every if name.rpartition(" ")[0] == kind]
        several = f"{kind}s {', '.join(numbers[:-1])} {word} {numbers[-1]}"
        parts.append(several if len(numbers) > 1 else f"{kind} {numbers[0]}".strip())
    return f" {word} ".join(parts)
