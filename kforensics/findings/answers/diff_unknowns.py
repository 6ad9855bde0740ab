"""What a comparison leaves unknown, and which input would show it."""

from collections.abc import Iterator, Sequence

from kforensics.evidence.model import Problem
from kforensics.findings.answers.diff_concerns import MOST_NAMED, Concerns, first_ones, names_of, owners_of
from kforensics.findings.answers.model import State
from kforensics.findings.answers.partition_state import ConcernKind
from kforensics.words import counted, form, joined_by_and, joined_names

BELOW_THE_ENDS = "Whether content below the ends of the logs is the same and undamaged"


def diff_unknowns(found: Concerns, problems: Sequence[Problem]) -> Iterator[str]:
    """Yield what the inputs do not show, each with what would show it."""
    missing = found.of(ConcernKind.MISSING, State.UNKNOWN)
    if missing:
        whose = joined_by_and(owners_of(missing))
        needed = sorted({part for _, one in missing for part in one.detail.split(", ") if part})
        last = f" ({', '.join(needed)} can be elected)" if needed else ""
        yield f"What is on {whose}{last}, assigned {names_of(missing)}: give its data directories too."
    unnamed = found.of(ConcernKind.UNNAMED, State.UNKNOWN)
    if unnamed:
        yield f"Of which broker the directory of {names_of(unnamed)} is, {joined_names(owners_of(unnamed), 'or')} perhaps: its meta.properties says it, and is not here or can't be read."
    for kind in (ConcernKind.ASSIGNMENT, ConcernKind.ALONE):
        items = [item for item in found.of(kind, State.UNKNOWN) if not any(one is item for one in missing)]
        if items:
            owners = dict.fromkeys(owner.removeprefix("broker ") for _, one in items for owner in one.owners)
            stated = ",".join(owners) if all(owner.isdecimal() for owner in owners) else "1,2,3"
            yield f"Which brokers are assigned {names_of(items)}: give the cluster's metadata log or its controller.log and state-change.log, or state it, as with --replicas {stated}."
    guesses = [
        one.guess for judged in found.judged for one in judged.concerns if one.guess and one.state is not State.BEHIND
    ]
    if guesses and all("the newest record" in guess for guess in guesses):
        yield "Who will lead: the newest record of the leader does not tell; state it with --leader."
    elif guesses or found.of(ConcernKind.LEADER, State.UNKNOWN):
        yield f"Who leads: give {_settled_by(found)}, or state it with --leader."
    left_out = found.of(ConcernKind.LEFT_OUT, State.UNKNOWN)
    if left_out:
        yield f"What {joined_by_and(owners_of(left_out))} {form(len(owners_of(left_out)), 'holds', 'hold')} of {names_of(left_out)}: give copies with their .log files."
    gone = found.of(ConcernKind.GONE, State.MAYBE_AT_RISK, State.UNKNOWN)
    if gone:
        losers = joined_by_and(owners_of(gone))
        yield f"What {losers} held of {names_of(gone)}: an earlier copy of the log directory would show it."
    if found.of(ConcernKind.TAIL, State.UNKNOWN, State.MAYBE_AT_RISK) or any(
        one.detail for _, one in found.of(ConcernKind.PAST_END, State.MAYBE_AT_RISK)
    ):
        yield "Whether brokers ran when they were copied: if none did, say --stopped, and the ends of logs are judged."
    if found.of(ConcernKind.OUTDATED, State.UNKNOWN) or found.of(ConcernKind.LOGGED_END, State.UNKNOWN):
        yield "What the replicas hold since then: give the directories as they were when the log files end, or log files that end when the directories were copied."
    if found.of(ConcernKind.PROTOCOL, State.UNKNOWN, State.MAYBE_AT_RISK):
        yield "Which Kafka version the brokers run: give server.log, or state it with --protocol."
    if found.of(ConcernKind.COMPACTION, State.UNKNOWN):
        yield "Whether a later record of the same key was there: give the other replicas or an earlier copy."
    yield from _below_the_ends(found)
    yield from _lost_before(found)
    if problems:
        yield f"What could not be read: {counted(len(problems), 'thing')} (listed below)."


def _below_the_ends(found: Concerns) -> Iterator[str]:
    unread = [(partition, one.records) for partition, one in found.of(ConcernKind.ENDS, State.SAME_ENDS) if one.records]
    if not unread:
        return
    named = ", ".join(f"{partition} below {offset:,}" for partition, offset in unread[:MOST_NAMED])
    more = f" and {counted(len(unread) - MOST_NAMED, 'other')}" if len(unread) > MOST_NAMED else ""
    yield f"{BELOW_THE_ENDS}: it was not compared ({named}{more}); --depth content compares it."


def _settled_by(found: Concerns) -> str:
    """Return the input that shows who leads: what the accounts of leaders lack, where they lack one thing alone."""
    guessed = [one for one in found.judged if any(concern.guess for concern in one.concerns)]
    asked = {one.settled_by for one in guessed if one.settled_by}
    return asked.pop() if len(asked) == 1 else "the metadata log, controller.log or state-change.log"


def _lost_before(found: Concerns) -> Iterator[str]:
    """Elections on record that may have lost records: replicas that agree now say nothing of that."""
    risky = [(one.partition, one.risks) for one in found.judged if one.risks]
    if risky:
        names = first_ones(str(partition) for partition, _ in risky)
        why = joined_by_and(dict.fromkeys(words for _, risks in risky for words in risks))
        yield f"Whether records of {names} were lost before: {why} {'are' if ' and ' in why else 'is'} on record; `kforensics explain` answers that."
