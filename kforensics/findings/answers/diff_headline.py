"""The headline of a comparison: a sentence about the gravest kind of concern."""

from collections.abc import Callable, Sequence

from kforensics.findings.answers.diff_concerns import (
    MOST_NAMED,
    Concerns,
    Item,
    names_of,
    owners_of,
    partitions_of,
    records_of,
    sum_of,
)
from kforensics.findings.answers.model import CALM_OF_DIFF, State
from kforensics.findings.answers.partition_state import ORDER, OTHER_DISKS, ConcernKind
from kforensics.units import METADATA_TOPICS, TopicPartition
from kforensics.words import counted, form, joined_by_and, joined_names

_WITHOUT_ALARM = CALM_OF_DIFF | {State.UNCOMMITTED_ONLY}

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
    ConcernKind.UNNAMED: "a directory without meta.properties may be that of an assigned replica",
    ConcernKind.MISSING: "an assigned replica is not among the inputs",
    ConcernKind.ALONE: "one replica is given",
    ConcernKind.TAIL: "its end may have been copied at another moment than that of other replicas",
    ConcernKind.LEADER: "no input shows which replica leads",
    ConcernKind.COMPACTION: "compacted replicas differ",
    ConcernKind.DAMAGE: "the only replica given is damaged",
    ConcernKind.OTHER_TOPIC: "replicas belong to another topic of the same name",
    ConcernKind.NO_REPLICA: "no live replica is among the inputs",
    ConcernKind.LEFT_OUT: "its .log files are not here",
    ConcernKind.UNREAD: "files could not be read",
    ConcernKind.OUTDATED: "log lines name a later leader epoch",
    ConcernKind.LOGGED_END: "log lines name offsets past the end of a log",
    ConcernKind.SAME_DISK: "log lines name offsets past the end of other logs on the same disks",
    ConcernKind.ASSIGNMENT: "no input shows the assignment",
    ConcernKind.COPIED_AGAIN: "what a replica truncates is copied again from the leader",
    ConcernKind.UNCOMMITTED: "a replica will truncate records that were never committed",
    ConcernKind.BEHIND: "a replica is behind",
    ConcernKind.ENDS: "content below the ends of its logs was not compared",
    ConcernKind.DELETED: "the topic was deleted",
    ConcernKind.OBSERVERS: "a broker's copy lacks a part",
    ConcernKind.NO_EPOCHS: "leader-epoch-checkpoint is missing",
    ConcernKind.LEFT_BYTES: "bytes are behind the last batch of a log that was stopped cleanly",
}
"""Why a partition is in the state of the whole, where the headline is about others."""


_SENTENCES = {
    ConcernKind.RECOVERY: "recovery at the start of {owners} will discard {offsets} of {partitions} that no other log reaches.",
    ConcernKind.PROTOCOL: "what {first_owners} truncates depends on the Kafka version, which no input shows: of {partition}, {detail}; {partitions} in all.",
    ConcernKind.OUTDATED: "the directories of {partitions} were copied before the last log lines: these name leader epoch {detail} of {partition}, which no directory knows.",
    ConcernKind.LOGGED_END: "the directories of {partitions} were copied before the last log lines, or have lost the ends of their logs: {detail}.",
    ConcernKind.SAME_DISK: "the replicas of {partitions} agree, on disks of {owners} where other logs end before offsets that log lines name.",
    ConcernKind.LEADER: "replicas of {partitions} end differently, and no input shows which replica leads.",
    ConcernKind.COMPACTION: "compacted replicas of {partitions} differ by records for which no input holds a later one of the same key.",
    ConcernKind.DAMAGE: "the only replica of {partition} given can't give {detail}: its bytes are damaged; {partitions} in all.",
    ConcernKind.OTHER_TOPIC: "replicas of {partitions} belong to another topic of the same name and were not compared.",
    ConcernKind.NO_REPLICA: "no live replica of {partitions} is among the inputs.",
    ConcernKind.UNNAMED: "a directory with {partitions} has no meta.properties that says whose it is: it may be that of {owners}, which should hold {partitions}.",
    ConcernKind.LEFT_OUT: "no .log file of any partition on {owners} is here: the copy left them out, and nothing can be said of the records of {partitions}.",
    ConcernKind.UNREAD: "files of {partitions} could not be read.",
    ConcernKind.UNCOMMITTED: "Nothing committed is at risk: {owners} will truncate records of {partitions} that were never committed.",
    ConcernKind.ENDS: "By leader epochs and ends all replicas agree: {partitions}, every assigned replica given.",
}
"""What a headline says of partitions by the kind of concern, where it says the same in every state."""


def diff_headline(found: Concerns) -> str:
    """Return the sentence about the gravest kind of concern, and what a reader has to know beside it."""
    return _worst(found) + _observers(found) + _without_epochs(found) + _left_bytes(found)


def _observers(found: Concerns) -> str:
    copies = found.of(ConcernKind.OBSERVERS, State.AGREE) if found.state in _WITHOUT_ALARM else ()
    return f" The copy of the metadata log on {joined_by_and(owners_of(copies))} lacks a part." if copies else ""


def _without_epochs(found: Concerns) -> str:
    items = found.of(ConcernKind.NO_EPOCHS, State.AGREE) if found.state in _WITHOUT_ALARM else ()
    if not items:
        return ""
    partition, first = items[0]
    return (
        f" Unless the copy left them out, leader-epoch-checkpoint files of {partitions_of(items)} are missing on {joined_by_and(owners_of(items))},"
        f" whose start then truncates these logs: {partition} {first.detail}."
    )


def _left_bytes(found: Concerns) -> str:
    items = found.of(ConcernKind.LEFT_BYTES, State.AGREE) if found.state in _WITHOUT_ALARM else ()
    if not items:
        return ""
    whose = f"{names_of(items)} on {joined_by_and(owners_of(items))}"
    what = items[0][1].detail if len(items) == 1 else "bytes that are no batch"
    return f" But behind the last batch of {whose}, stopped cleanly, are {what}: `kforensics predict` tells whether a start fails."


def _worst(found: Concerns) -> str:
    kinds = sorted((kind for state, kind in found.by_kind if state is found.state), key=ORDER.__getitem__)
    if found.state is State.AGREE or not kinds:
        if found.state is State.AGREE and found.is_metadata_alone:
            return (
                "All replicas of the metadata log agree, every voter given; no log of another partition was compared."
            )
        if found.state is State.AGREE:
            also = of_deleted_topics(sum(one.is_deleted for one in found.judged))
            return f"All replicas agree: {found.among} compared, every assigned replica given{also}."
        return f"UNKNOWN: {found.among} compared, and not all could be read.{_not_compared(found)}"
    items = found.of(kinds[0])
    plain = _SENTENCES.get(kinds[0])
    if plain is not None:
        sentence = _filled(plain, items)
    elif kinds[0] in _BY_ITEMS:
        sentence = _BY_ITEMS[kinds[0]](items)
    else:
        sentence = _BY_ALL[kinds[0]](found, items)
    prefix = {
        State.MAYBE_AT_RISK: "MAYBE AT RISK: ",
        State.UNKNOWN: "UNKNOWN: ",
    }.get(found.state, "")
    said = {tp for tp, _ in items}
    more = ""
    for kind in kinds[1:]:
        others = [(tp, one) for tp, one in found.of(kind) if tp not in said]
        if others:
            more += f" Also {names_of(others)}: {_SHORT[kind]}."
            said |= {tp for tp, _ in others}
    return prefix + sentence + more + _not_compared(found)


def _not_compared(found: Concerns) -> str:
    unread = any(one.records for _, one in found.of(ConcernKind.ENDS, State.SAME_ENDS))
    if not unread or found.state not in _HEDGED_BY_DEPTH:
        return ""
    return " Content below the ends of the logs was not compared."


def _filled(sentence: str, items: Sequence[Item]) -> str:
    partition, first = items[0]
    return sentence.format(
        partition=partition,
        partitions=partitions_of(items),
        owners=joined_by_and(owners_of(items)),
        first_owners=joined_by_and(first.owners),
        detail=first.detail,
        offsets=counted(sum_of(items, "records"), "offset"),
        what=records_of(sum_of(items, "certain"), sum_of(items, "possible")),
    )


def _emptied(found: Concerns, items: Sequence[Item]) -> str:
    owner, own = found.by_owners(items)[0]
    count = partitions_of(own)
    one = min((one for _, one in own), key=lambda one: not one.is_sole)
    first = "" if one.is_sole else " first"
    if found.state is State.AT_RISK:
        return f"STARTING {owner.upper()}{first.upper()} DESTROYS {count.upper()}: {one.detail}."
    return f"starting {owner}{first} may destroy {count}: {one.detail}."


def _gone(items: Sequence[Item]) -> str:
    partition, one = items[0]
    owners = joined_by_and(dict.fromkeys(owner for tp, other in items if tp == partition for owner in other.owners))
    others = len({tp for tp, _ in items}) - 1
    more = f" The same of {counted(others, 'other partition')}." if others else ""
    return f"the log of {partition} on {owners} is not here, or not whole (removed, or left out of the copy): {one.detail}.{more}"


def _outside(found: Concerns, items: Sequence[Item]) -> str:
    what = records_of(sum_of(items, "certain"), sum_of(items, "possible"))
    if found.state is State.UNCOMMITTED_ONLY:
        what = counted(sum_of(items, "records"), "record")
    sentence = f"directories of {joined_by_and(owners_of(items))} that are no replica any more hold {what} of {partitions_of(items)} that no replica holds."
    if found.state is State.UNCOMMITTED_ONLY:
        return (
            f"Nothing committed is at risk: {sentence} A producer with acks=1 may have got an acknowledgement of them."
        )
    return sentence


def _discard(found: Concerns, items: Sequence[Item]) -> str:
    owners = joined_by_and(owners_of(items))
    certain, possible = sum_of(items, "certain"), sum_of(items, "possible")
    once = ", once started, will" if owners_of(items) & found.not_starting else " will"
    guess = next((one for _, one in items if one.guess), None)
    if guess is not None:
        what = records_of(certain, possible)
        return f"if {guess.leader} leads ({guess.guess}), {owners}{once} discard {what} of {partitions_of(items)}."
    if found.state is State.AT_RISK:
        also = f" (and {possible:,} that may have been committed)" if possible else ""
        return f"DATA AT RISK: {owners}{once} discard {counted(certain, 'committed record')}{also} of {partitions_of(items)} that the leader does not hold."
    will = " may" if certain else once
    return f"{owners}{will} discard {records_of(certain, possible)} of {partitions_of(items)} that the leader does not hold."


def _sole(found: Concerns, items: Sequence[Item]) -> str:
    groups = found.by_owners(items)
    owner, own = groups[0]
    certain, possible = sum_of(own, "certain"), sum_of(own, "possible")
    rest = "".join(
        f" Only {other} holds {records_of(sum_of(theirs, 'certain'), sum_of(theirs, 'possible'))} of {partitions_of(theirs)}."
        for other, theirs in groups[1:3]
    )
    if found.state is State.AT_RISK and rest:
        return (
            f"ONLY {owner.upper()} HOLDS {counted(certain, 'committed record')} of {partitions_of(own)}.{rest}"
            f" Do not force an unclean election while one of {joined_by_and(owners_of(items))} is down."
        )
    if found.state is State.AT_RISK and any(one.is_replaced for _, one in own):
        return (
            f"ONLY {owner.upper()} HOLDS {counted(certain, 'committed record')} of {partitions_of(own)}, and others hold other records there."
            f" Copy its directory before it starts."
        )
    if found.state is State.AT_RISK and owners_of(own) & found.waiting():
        return (
            f"ONLY {owner.upper()} HOLDS {counted(certain, 'committed record')} of {partitions_of(own)}."
            f" Do not force an unclean election, and copy its directory before it starts."
        )
    if found.state is State.AT_RISK:
        losing = owners_of(found.of(ConcernKind.DISCARD, State.AT_RISK, State.MAYBE_AT_RISK))
        start = f"Copy its directory, then start {owner} first" if owners_of(own) & losing else f"Start {owner} first"
        return (
            f"ONLY {owner.upper()} HOLDS {counted(certain, 'committed record')} of {partitions_of(own)}.{rest}"
            f" {start}; do not force an unclean election while it is down."
        )
    return f"only {owner}, of the replicas given, holds {records_of(certain, possible)} of {partitions_of(own)}.{rest}"


def _past_end(found: Concerns, items: Sequence[Item]) -> str:
    owners = joined_by_and(owners_of(items))
    words = f"{owners} recorded high watermarks up to {counted(sum_of(items, 'records'), 'offset')} past the end of every log, of {partitions_of(items)}"
    if found.state is State.AT_RISK:
        return f"COMMITTED RECORDS ARE MISSING: {words}."
    # After a clean stop the end was not left behind: only a replica that is not given can hold it.
    why = next((one.detail for _, one in items if one.detail), "only a replica that is not given can hold them")
    return f"{words}: {why}."


def _elected(found: Concerns, items: Sequence[Item]) -> str:
    certain, possible = sum_of(items, "certain"), sum_of(items, "possible")
    owners = joined_names(owners_of(items), "or")
    if any(one.detail for _, one in items):
        return f"whichever replica leads, {records_of(certain, possible)} of {partitions_of(items)} will be discarded."
    lead = "DATA AT RISK: " if found.state is State.AT_RISK else ""
    return f"{lead}if {owners} is elected, which can be without an unclean election, {records_of(certain, possible)} of {partitions_of(items)} will be discarded."


def _divergence(found: Concerns, items: Sequence[Item]) -> str:
    odd = [one for _, one in items if one.detail]
    count = len({tp for tp, _ in items})
    of = names_of(items) if count == 1 else f"{count:,} of {found.among}"
    words = ""
    if odd and len(odd) == len(items):
        owners = joined_by_and(dict.fromkeys(owner for one in odd for owner in one.owners))
        why = odd[0].detail if len(odd) == 1 else "by their checksums or by what the others hold"
        words = f" The odd {'one' if ' and ' not in owners else 'ones'} out: {owners} ({why})."
    return f"REPLICAS DIFFER FOR GOOD: those of {of} hold different content at the same offset, and replication will not repair it.{words}"


def _missing(found: Concerns, items: Sequence[Item]) -> str:
    groups = [
        (owner, [one for one in items if owner in one[1].owners])
        for owner in dict.fromkeys(owner for _, one in items for owner in one.owners)
    ]
    away = [(owner, own) for owner, own in groups if not owner.startswith(OTHER_DISKS)]
    sentences = []
    if away:
        owners, own = joined_by_and(owner for owner, _ in away), [item for _, own in away for item in own]
        are = "are" if len(away) > 1 else "is"
        sentences.append(f"{owners} {are} not among the inputs and should hold {partitions_of(own)}.")
    alike: dict[frozenset[TopicPartition], tuple[list[str], list[Item]]] = {}
    for owner, own in [one for one in groups if one not in away]:
        names, _ = alike.setdefault(frozenset(tp for tp, _ in own), ([], own))
        names.append(owner.removeprefix(OTHER_DISKS))
    for names, own in list(alike.values())[:MOST_NAMED]:
        source = "--replicas" if all(one.is_stated for _, one in own) else "the newest record given"
        sentences.append(
            f"{joined_by_and(names)} should hold {partitions_of(own)} by {source}, and none of {form(len(names), 'its', 'their')} log directories "
            "among the inputs does."
        )
    agreeing = found.agreeing()
    if agreeing and any(one.is_stated for _, one in items):
        sentences.append(f"All assigned replicas of {counted(agreeing, 'partition')} agree.")
    return " ".join(sentences)


def _alone(found: Concerns, items: Sequence[Item]) -> str:
    others = found.count - len({tp for tp, _ in items})
    if not others:
        return f"nothing was compared: of {partitions_of(items)} one replica is given."
    agree = f"; all replicas of {counted(found.agreeing(), 'partition')} agree" if found.agreeing() else ""
    return f"of {partitions_of(items)} of {found.count:,} one replica is given, compared with nothing{agree}."


def _tail(items: Sequence[Item]) -> str:
    owners = joined_by_and(owners_of(items))
    records = max(one.records for _, one in items)
    if sum_of(items, "certain"):
        held = records_of(sum_of(items, "certain"), sum_of(items, "possible"))
        return f"{owners} alone {'hold' if ' and ' in owners else 'holds'} {held} of {partitions_of(items)}, or others were copied earlier while they ran."
    ends = f"the last records of {partitions_of(items)} on {owners}, up to {records:,} of one"
    return f"copied while brokers ran, or after a power loss: {ends}, can't be judged."


def _assignment(found: Concerns, items: Sequence[Item]) -> str:
    due = found.of(ConcernKind.COPIED_AGAIN, State.UNCOMMITTED_ONLY)
    if {tp for tp, _ in due} & {tp for tp, _ in items}:
        leaders = joined_by_and(dict.fromkeys(one.leader for _, one in due))
        stay = f"{leaders} must stay up, if {'they lead' if ' and ' in leaders else 'it leads'}, until what others truncate is copied again"
        return f"no input shows the assignment of {partitions_of(items)}; {stay}."
    agree = "have the same ends" if found.of(ConcernKind.ENDS, State.SAME_ENDS) else "agree"
    return f"the replicas given of {partitions_of(items)} {agree}, and no input shows whether they are all."


def _behind(found: Concerns, items: Sequence[Item]) -> str:
    owners = joined_by_and(owners_of(items))
    truncates = (
        "By leader epochs no replica truncates"
        if found.of(ConcernKind.NO_EPOCHS, State.AGREE)
        else "No replica will truncate"
    )
    lack = "lack" if " and " in owners else "lacks"
    if any(tp.topic in METADATA_TOPICS and one.detail for tp, one in items):
        truncates = (
            "No replica will truncate, unless a majority of the voters elects one that lacks uncommitted metadata"
        )
    return f"{truncates}; {owners} {lack} records of {partitions_of(items)} of {found.count:,} that others hold."


def _copied_again(items: Sequence[Item]) -> str:
    leaders = joined_by_and(dict.fromkeys(one.leader for _, one in items))
    followers = joined_by_and(owners_of(items))
    return f"{followers} will truncate committed records of {partitions_of(items)} and copy them again: {leaders} must stay up until then."


_BY_ITEMS: dict[ConcernKind, Callable[[Sequence[Item]], str]] = {
    ConcernKind.GONE: _gone,
    ConcernKind.TAIL: _tail,
    ConcernKind.COPIED_AGAIN: _copied_again,
}
"""What it says by what these concerns hold."""

_BY_ALL: dict[ConcernKind, Callable[[Concerns, Sequence[Item]], str]] = {
    ConcernKind.EMPTIED: _emptied,
    ConcernKind.DISCARD: _discard,
    ConcernKind.OUTSIDE: _outside,
    ConcernKind.SOLE: _sole,
    ConcernKind.PAST_END: _past_end,
    ConcernKind.ELECTED: _elected,
    ConcernKind.DIVERGENCE: _divergence,
    ConcernKind.MISSING: _missing,
    ConcernKind.ASSIGNMENT: _assignment,
    ConcernKind.ALONE: _alone,
    ConcernKind.BEHIND: _behind,
}
"""What it says by these concerns in the state that they decide, or beside others."""


def deleted_topics(count: int) -> str:
    """Return what some partitions are of."""
    return form(count, "a deleted topic", "deleted topics")


def of_deleted_topics(count: int) -> str:
    """Return, in brackets, how many partitions beside those that were compared are of deleted topics; nothing where none is."""
    partitions = f"{counted(count, 'other partition')} {form(count, 'is', 'are')}"
    return f" ({partitions} of {deleted_topics(count)})" if count else ""
