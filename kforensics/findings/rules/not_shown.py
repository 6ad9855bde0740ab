"""What keeps a verdict open: concerns about what the inputs do not show, each with the input that would show it."""

from collections.abc import Iterator

from kforensics.damage import Absent
from kforensics.findings.answers.model import State
from kforensics.findings.concern import (
    MOST_NAMED,
    OTHER_DISKS,
    Compared,
    Concern,
    ConcernKind,
    Concerns,
    ConcernWords,
    Item,
    Items,
    names_of,
    owners_of,
    partitions_of,
)
from kforensics.findings.rule import RulesOf
from kforensics.reconcile.replicas.report import Verdict
from kforensics.units import TopicPartition
from kforensics.words import MOST_WORDS, counted, form, joined_by_and, joined_names

NOT_SHOWN: RulesOf[[Compared], Concern] = RulesOf()
WORDS: dict[ConcernKind, ConcernWords] = {}


@NOT_SHOWN
def _missing(compared: Compared) -> Iterator[Concern]:
    report, given = compared.report, compared.given
    if report.missing_replicas:
        node = "controller" if report.is_quorum else "broker"
        names = tuple(
            f"{OTHER_DISKS if broker in report.without_disk else ''}{node} {broker}"
            for broker in report.missing_replicas
        )
        electable = () if isinstance(report.electable, Absent) else report.electable
        needed = [broker for broker in report.missing_replicas if broker in electable]
        detail = ", ".join(map(str, needed))
        # A directory that does not say whose it is may be the one that is missing.
        kind = ConcernKind.UNNAMED if any(one.view.replica.is_unnamed for one in given) else ConcernKind.MISSING
        is_stated = report.is_assignment_stated
        yield Concern(state=State.UNKNOWN, kind=kind, owners=names, detail=detail, is_stated=is_stated)


def _missing_words(found: Concerns, items: Items) -> str:
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


def _missing_unknown(found: Concerns) -> Iterator[str]:
    missing = found.of(ConcernKind.MISSING, State.UNKNOWN)
    if missing:
        whose = joined_by_and(owners_of(missing))
        needed = sorted({part for _, one in missing for part in one.detail.split(", ") if part})
        last = f" ({', '.join(needed)} can be elected)" if needed else ""
        yield f"What is on {whose}{last}, assigned {names_of(missing)}: give its data directories too."


WORDS[ConcernKind.MISSING] = ConcernWords(
    short="an assigned replica is not among the inputs", headline=_missing_words, unknown=_missing_unknown
)


def _unnamed_unknown(found: Concerns) -> Iterator[str]:
    unnamed = found.of(ConcernKind.UNNAMED, State.UNKNOWN)
    if unnamed:
        yield f"Of which broker the directory of {names_of(unnamed)} is, {joined_names(owners_of(unnamed), 'or')} perhaps: its meta.properties says it, and is not here or can't be read."


WORDS[ConcernKind.UNNAMED] = ConcernWords(
    short="a directory without meta.properties may be that of an assigned replica",
    headline="a directory with {partitions} has no meta.properties that says whose it is: it may be that of {owners}, which should hold {partitions}.",
    unknown=_unnamed_unknown,
)


@NOT_SHOWN
def _displaced(compared: Compared) -> Iterator[Concern]:
    held = [one.view for one in compared.live if one.view.replica.broker_id in compared.report.displaced]
    if held:
        yield compared.concern(State.UNKNOWN, ConcernKind.DISPLACED, held)


def _displaced_words(found: Concerns, items: Items) -> str:
    agree = f"; the replicas of {counted(found.agreeing(), 'other partition')} agree" if found.agreeing() else ""
    return f"whether {partitions_of(items)} {form(len(items), 'gets', 'get')} a leader is not known{agree}."


def _displaced_unknown(found: Concerns) -> Iterator[str]:
    items = found.of(ConcernKind.DISPLACED, State.UNKNOWN)
    if items:
        yield (
            f"Whether a leader is elected for {names_of(items)} once {joined_by_and(owners_of(items))} has registered: "
            "the metadata places that replica in a log directory that is not here."
        )


WORDS[ConcernKind.DISPLACED] = ConcernWords(
    short="the metadata places a replica in a log directory that is not here",
    headline=_displaced_words,
    unknown=_displaced_unknown,
)


@NOT_SHOWN
def _assignment(compared: Compared) -> Iterator[Concern]:
    report, given = compared.report, compared.given
    if not given:
        return
    if report.is_unknown_topic:
        yield compared.concern(State.UNKNOWN, ConcernKind.UNKNOWN_TOPIC, (one.view for one in given))
    elif isinstance(report.assigned, Absent):
        kind = ConcernKind.ALONE if len(given) == 1 else ConcernKind.ASSIGNMENT
        yield compared.concern(State.UNKNOWN, kind, (one.view for one in given))
    elif len(given) == 1 and len(report.assigned) > 1 and not report.emptied and not report.missing_replicas:
        yield compared.concern(State.UNKNOWN, ConcernKind.ALONE, (one.view for one in given))


def _assignment_words(found: Concerns, items: Items) -> str:
    due = found.of(ConcernKind.COPIED_AGAIN, State.UNCOMMITTED_ONLY)
    if {tp for tp, _ in due} & {tp for tp, _ in items}:
        leaders = joined_by_and(dict.fromkeys(one.leader for _, one in due))
        stay = f"{leaders} must stay up, if {'they lead' if ' and ' in leaders else 'it leads'}, until what others truncate is copied again"
        return f"no input shows the assignment of {partitions_of(items)}; {stay}."
    agree = "have the same ends" if found.of(ConcernKind.ENDS, State.SAME_ENDS) else "agree"
    return f"the replicas given of {partitions_of(items)} {agree}, and no input shows whether they are all."


def _alone_words(found: Concerns, items: Items) -> str:
    others = found.count - len({tp for tp, _ in items})
    if not others:
        return f"nothing was compared: of {partitions_of(items)} one replica is given."
    agree = f"; all replicas of {counted(found.agreeing(), 'partition')} agree" if found.agreeing() else ""
    return f"of {partitions_of(items)} of {found.count:,} one replica is given, compared with nothing{agree}."


def _which_brokers(found: Concerns, kind: ConcernKind) -> Iterator[str]:
    items = found.of(kind, State.UNKNOWN)
    if items:
        asked = f"Which brokers are assigned {names_of(items)}"
        give = "give the cluster's metadata log or its controller.log and state-change.log, or state all of them, given here or not, with --replicas."
        is_long = len(f"{asked} {give}".split()) > MOST_WORDS
        yield f"{asked}. {give[0].upper()}{give[1:]}" if is_long else f"{asked}: {give}"


WORDS[ConcernKind.ASSIGNMENT] = ConcernWords(
    short="no input shows the assignment",
    headline=_assignment_words,
    unknown=lambda found: _which_brokers(found, ConcernKind.ASSIGNMENT),
)
WORDS[ConcernKind.ALONE] = ConcernWords(
    short="one replica is given",
    headline=_alone_words,
    unknown=lambda found: _which_brokers(found, ConcernKind.ALONE),
)


def _leader_unknown(found: Concerns) -> Iterator[str]:
    guesses = [
        one.guess for judged in found.judged for one in judged.concerns if one.guess and one.state is not State.BEHIND
    ]
    if guesses and all("the newest record" in guess for guess in guesses):
        yield "Who will lead: the newest record of the leader does not tell; state it with --leader."
    elif guesses or found.of(ConcernKind.LEADER, State.UNKNOWN):
        yield f"Who leads: give {_settled_by(found)}, or state it with --leader."


def _settled_by(found: Concerns) -> str:
    """Return the input that shows who leads: what the accounts of leaders lack, where they lack one thing alone."""
    guessed = [one for one in found.judged if any(concern.guess for concern in one.concerns)]
    asked = {one.settled_by for one in guessed if one.settled_by}
    return asked.pop() if len(asked) == 1 else "the metadata log, controller.log or state-change.log"


WORDS[ConcernKind.LEADER] = ConcernWords(
    short="no input shows which replica leads",
    headline="replicas of {partitions} end differently, and no input shows which replica leads.",
    unknown=_leader_unknown,
)


@NOT_SHOWN
def _left_out(compared: Compared) -> Iterator[Concern]:
    left_out = [one.view for one in compared.given if one.view.replica.is_left_out]
    if left_out:
        yield compared.concern(State.UNKNOWN, ConcernKind.LEFT_OUT, left_out)


def _left_out_unknown(found: Concerns) -> Iterator[str]:
    left_out = found.of(ConcernKind.LEFT_OUT, State.UNKNOWN)
    if left_out:
        yield f"What {joined_by_and(owners_of(left_out))} {form(len(owners_of(left_out)), 'holds', 'hold')} of {names_of(left_out)}: give copies with their .log files."


WORDS[ConcernKind.LEFT_OUT] = ConcernWords(
    short="its .log files are not here",
    headline="no .log file of any partition on {owners} is here: the copy left them out, and nothing can be said of the records of {partitions}.",
    unknown=_left_out_unknown,
)


@NOT_SHOWN
def _no_replica(compared: Compared) -> Iterator[Concern]:
    report = compared.report
    # One that was created after its brokers were copied has no directory anywhere, and one of which every directory was left out has none either.
    if not compared.given and not report.missing_replicas and not any(one.is_certain for one in report.emptied):
        yield compared.concern(State.UNKNOWN, ConcernKind.NO_REPLICA)


WORDS[ConcernKind.NO_REPLICA] = ConcernWords(
    short="no live replica is among the inputs", headline="no live replica of {partitions} is among the inputs."
)


@NOT_SHOWN
def _other_topic(compared: Compared) -> Iterator[Concern]:
    report = compared.report
    others = [one for one in report.replicas if one.verdict is Verdict.DIFFERENT_TOPIC]
    if others and isinstance(report.assigned, Absent):
        yield compared.concern(State.UNKNOWN, ConcernKind.OTHER_TOPIC, (one.view for one in others))


WORDS[ConcernKind.OTHER_TOPIC] = ConcernWords(
    short="replicas belong to another topic of the same name",
    headline="replicas of {partitions} belong to another topic of the same name and were not compared.",
)
WORDS[ConcernKind.UNKNOWN_TOPIC] = ConcernWords(
    short="no metadata log given knows its topic id",
    headline="no metadata log given knows the topic id of {partitions} on {owners}: of another cluster, or of a topic that was deleted or made outside of these copies.",
)
WORDS[ConcernKind.UNREAD] = ConcernWords(
    short="files could not be read", headline="files of {partitions} could not be read."
)


@NOT_SHOWN
def _logged_later(compared: Compared) -> Iterator[Concern]:
    report = compared.report
    if not compared.given:
        return
    if isinstance(report.later_epoch, int):
        yield compared.concern(State.UNKNOWN, ConcernKind.OUTDATED, detail=str(report.later_epoch))
    if report.logged_past_end:
        view, end, held, is_furthest, is_same_topic = report.logged_past_end[0]
        records = end.offset - held
        which = "" if is_furthest else " that holds what the leader does"
        past = f"{counted(records, 'offset')} past the end of every log of {report.partition}{which}"
        past += "" if is_same_topic else "; that line may be of an earlier topic of the name"
        detail = f"the log of {report.owner_of(view)} had reached offset {end.offset:,} by {end.place}, {past}"
        views = [one.view for one in report.logged_past_end]
        yield compared.concern(State.UNKNOWN, ConcernKind.LOGGED_END, views, detail=detail, records=records)


def _logged_later_unknown(found: Concerns) -> Iterator[str]:
    if found.of(ConcernKind.OUTDATED, State.UNKNOWN) or found.of(ConcernKind.LOGGED_END, State.UNKNOWN):
        yield "What the replicas hold since then: give the directories as they were when the log files end, or log files that end when the directories were copied."


WORDS[ConcernKind.OUTDATED] = ConcernWords(
    short="metadata or log lines name a later leader epoch",
    headline="the directories of {partitions} were copied before the last metadata records or log lines: these name leader epoch {detail} of {partition}, which its leader's directory does not know.",
    unknown=_logged_later_unknown,
)
WORDS[ConcernKind.LOGGED_END] = ConcernWords(
    short="log lines name offsets past the end of a log",
    headline="the directories of {partitions} were copied before the last log lines, or have lost the ends of their logs; {detail}.",
)
WORDS[ConcernKind.SAME_DISK] = ConcernWords(
    short="log lines name offsets past the end of other logs on the same disks",
    headline="the replicas of {partitions} agree, on disks of {owners} where other logs end before offsets that log lines name.",
)


@NOT_SHOWN
def _damage(compared: Compared) -> Iterator[Concern]:
    live = compared.live
    for one in live:
        if one.view.damaged and len(live) == 1:
            lost = one.view.damaged[0].offsets
            detail = f"offsets {lost.first} to {lost.last}"
            yield compared.concern(State.UNKNOWN, ConcernKind.DAMAGE, (one.view,), detail=detail)


WORDS[ConcernKind.DAMAGE] = ConcernWords(
    short="the only replica given is damaged",
    headline="the only replica of {partition} given can't give {detail}: its bytes are damaged; {partitions} in all.",
)


@NOT_SHOWN
def _compaction(compared: Compared) -> Iterator[Concern]:
    asked = [one.view for one in compared.live if one.divergence is not None and one.divergence.is_open]
    if asked:
        yield compared.concern(State.UNKNOWN, ConcernKind.COMPACTION, asked)


def _compaction_unknown(found: Concerns) -> Iterator[str]:
    if found.of(ConcernKind.COMPACTION, State.UNKNOWN):
        yield "Whether a later record of the same key was there: give the other replicas or an earlier copy."


WORDS[ConcernKind.COMPACTION] = ConcernWords(
    short="compacted replicas differ",
    headline="compacted replicas of {partitions} differ by records for which no input holds a later one of the same key.",
    unknown=_compaction_unknown,
)
