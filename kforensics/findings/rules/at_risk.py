"""What puts committed records at risk, or may: concerns about what a start or an election discards, and what is missing."""

from collections.abc import Iterator, Sequence

from kforensics.damage import Absent
from kforensics.evidence.model import Replica
from kforensics.evidence.replica.unaccounted import is_empty, unaccounted_offsets
from kforensics.findings.answers.model import State
from kforensics.findings.concern import (
    Compared,
    Concern,
    ConcernKind,
    Concerns,
    ConcernWords,
    Items,
    copies_of,
    copies_of_places,
    names_of,
    owners_of,
    partitions_of,
    records_of,
    sum_of,
)
from kforensics.findings.rule import RulesOf
from kforensics.reconcile.replicas.report import ReplicaReport, SoleHolder, Verdict, WhatIf
from kforensics.units import TopicPartition
from kforensics.words import MOST_WORDS, Prohibition, Step, counted, form, joined_by_and, joined_names, listed

AT_RISK: RulesOf[[Compared], Concern] = RulesOf()
WORDS: dict[ConcernKind, ConcernWords] = {}
_RISKY = (State.AT_RISK, State.MAYBE_AT_RISK)


@AT_RISK
def _emptied(compared: Compared) -> Iterator[Concern]:
    report, live = compared.report, compared.live
    has_records = not live or any(one.view.log_end_offset > 0 for one in live)
    end = max((one.view.log_end_offset for one in live), default=0)
    in_sync = report.isr if isinstance(report.isr, frozenset) else frozenset()
    for one in (*report.emptied, *report.strays):
        owners, places = (f"broker {one.broker_id}",), () if one.place is None else (one.place,)
        if one.named is not None and (one.named.value > end or not one.is_electable):
            # What every assigned broker lacks is not there to be destroyed any more.
            is_lost = one.named.value > end and compared.is_whole
            state = State.MAYBE_AT_RISK if is_lost else State.UNKNOWN
            yield Concern(state=state, kind=ConcernKind.GONE, owners=owners, detail=one.reason)
            if not live or not one.is_electable:
                continue
        reason = one.reason if one.named is None else f"{one.reason}, unless the copy left it out,"
        detail = f"{reason} and {f'the ISR is [{one.broker_id}]' if one.is_sole else 'it can be elected'}"
        if not live and not one.is_certain:
            continue
        if not one.is_assigned and has_records:
            detail = f"{one.reason}, and no input shows what was in it"
            yield Concern(state=State.MAYBE_AT_RISK, kind=ConcernKind.EMPTIED, owners=owners, detail=detail)
        elif one.is_electable and has_records:
            state = State.AT_RISK if one.is_certain else State.MAYBE_AT_RISK
            led = next(
                (each for each in report.empty_elections if each.leader.replica.broker_id == one.broker_id), None
            )
            yield Concern(
                state=state,
                kind=ConcernKind.EMPTIED,
                owners=owners,
                certain=0 if led is None else led.discarded.certain,
                possible=0 if led is None else led.discarded.possible,
                detail=detail,
                places=places,
                is_sole=one.is_sole,
                losing=() if led is None else _made_to_lose(compared, led),
            )
        elif has_records:
            state = State.BEHIND if compared.is_led else State.UNKNOWN
            kind = ConcernKind.BEHIND if compared.is_led else ConcernKind.GONE
            yield Concern(state=state, kind=kind, owners=owners, detail=one.reason, places=places)
        elif one.is_electable and not any(each.view.replica.broker_id in in_sync for each in live):
            # Empty logs outside of the ISR don't show that its own was empty.
            yield Concern(state=State.UNKNOWN, kind=ConcernKind.GONE, owners=owners, detail=one.reason, places=places)


def _emptied_words(found: Concerns, items: Items) -> str:
    owner, own = found.by_owners(items)[0]
    count = partitions_of(own)
    one = min((one for _, one in own), key=lambda one: not one.is_sole)
    first = "" if one.is_sole else " first"
    if found.state is State.AT_RISK:
        return f"STARTING {owner.upper()}{first.upper()} DESTROYS {count.upper()}: {one.detail}."
    return f"starting {owner}{first} may destroy {count}: {one.detail}."


def _emptied_now(found: Concerns, paths: Sequence[str]) -> Iterator[str]:
    for owner, items in found.by_owners(found.of(ConcernKind.EMPTIED, *_RISKY)):
        unnamed = [f"{paths[at].rstrip('/')}/{path}" for _, one in items for at, path in one.places]
        if unnamed:
            cure = f"Put partition.metadata with the topic id, as other replicas and the metadata log have it, back into {listed(unnamed, most=4)}"
        else:
            cure = "Give it its former disk back"
        yield Prohibition(
            f"Do not start {owner}: elected with an empty log, it makes the other replicas discard theirs. {cure}, or let a broker that holds the records lead first."
        )
        yield f"The partitions: {names_of(items)}."


WORDS[ConcernKind.EMPTIED] = ConcernWords(
    short="a broker that can be elected holds no log of it", headline=_emptied_words, now=_emptied_now
)


@AT_RISK
def _truncations(compared: Compared) -> Iterator[Concern]:
    report, leader = compared.report, compared.report.leader
    if leader is None:
        return
    due = [one for one in compared.live if one.truncation is not None]
    losing = [one for one in due if one.truncation is not None and one.truncation.lost.records]
    led = next((choice for choice in report.what_if if choice.leader is leader.view), None)
    if losing and led is not None:
        yield from _discarded(compared, losing, led)
    elsewhere = [one for one in compared.live if one.by_other_protocols]
    if elsewhere:
        at_risk = any(
            one.truncation is not None or (one.divergence is not None and not one.divergence.is_open)
            for one in elsewhere
        )
        state = State.MAYBE_AT_RISK if at_risk else State.UNKNOWN
        yield compared.concern(
            state, ConcernKind.PROTOCOL, (one.view for one in elsewhere), detail=_by_protocol(elsewhere[0])
        )
    harmless = [one for one in due if one not in losing]
    if harmless:
        again = [one for one in harmless if one.truncation is not None and one.truncation.counts.records]
        kind = ConcernKind.COPIED_AGAIN if again else ConcernKind.UNCOMMITTED
        yield compared.concern(State.UNCOMMITTED_ONLY, kind, (one.view for one in harmless))


def _by_protocol(one: ReplicaReport) -> str:
    own = "nothing" if one.truncation is None else f"to {one.truncation.offset}"
    name = "" if isinstance(one.protocol, Absent) else one.protocol.name
    others = ", ".join(
        f"{other} {'nothing' if isinstance(offset, Absent) else f'to {offset}'}"
        for other, offset in one.by_other_protocols
    )
    return f"{name} truncates {own}, {others}"


def _discarded(compared: Compared, losing: Sequence[ReplicaReport], led: WhatIf) -> Iterator[Concern]:
    report = compared.report
    counts, views = led.discarded, [one.view for one in losing]
    is_sure = compared.is_led and not any(o.by_other_protocols for o in losing)
    is_tail = all(one.is_tail_of_a_copy for one in losing)
    if counts.certain:
        state = State.AT_RISK if is_sure and not is_tail else State.MAYBE_AT_RISK
        kept = led.lost_certain - counts.certain
        found = compared.concern(state, ConcernKind.TAIL if is_tail else ConcernKind.DISCARD, views, counts)
        yield found if is_tail else found._replace(records=kept)
    elif is_tail and (counts.possible or report.is_quorum):
        state = State.UNKNOWN if report.is_quorum else State.MAYBE_AT_RISK
        yield compared.concern(state, ConcernKind.TAIL, views, counts)
    elif counts.possible:
        yield compared.concern(State.MAYBE_AT_RISK, ConcernKind.DISCARD, views, counts)
    elif is_sure:
        yield compared.concern(State.UNCOMMITTED_ONLY, ConcernKind.UNCOMMITTED, views, counts)
    else:
        yield compared.concern(State.UNKNOWN, ConcernKind.LEADER, views, counts)


def _discard_words(found: Concerns, items: Items) -> str:
    owners = joined_by_and(owners_of(items))
    certain, possible = sum_of(items, "certain"), sum_of(items, "possible")
    once = ", once started, will" if owners_of(items) & found.not_starting else " will"
    guess = next((one for _, one in items if one.guess), None)
    if guess is not None:
        what = f"{owners}{once} discard {records_of(certain, possible)} of {partitions_of(items)}"
        words = f"if {guess.leader} leads ({guess.guess}), {what}."
        if len(words.split()) < MOST_WORDS:
            return words
        reason = guess.guess.removeprefix("guessed: ")
        return f"if {guess.leader} leads, which is guessed, {what}. The guess rests on this: {reason}."
    if found.state is State.AT_RISK:
        also = f" (and {possible:,} possibly committed)" if possible else ""
        named = {partition for partition, _ in items}
        behind = [item for item in found.of(ConcernKind.RECOVERY, *_RISKY) if item[0] in named]
        # Of other partitions it is a concern that is named by itself.
        more = records_of(sum_of(behind, "certain"), sum_of(behind, "possible"))
        kept = sum_of(items, "records")
        return (
            f"DATA AT RISK: {owners}{once} discard {counted(certain, 'committed record')}{also} of {partitions_of(items)} that the leader does not hold."
            + (f" Recovery will discard {more} more there, behind damage." if behind else "")
            + (f" Replicas keep {counted(kept, 'more committed record')} that it lacks." if kept else "")
        )
    will = " may" if certain else once
    return f"{owners}{will} discard {records_of(certain, possible)} of {partitions_of(items)} that the leader does not hold."


def _losing(found: Concerns) -> Items:
    return found.of(ConcernKind.DISCARD, *_RISKY) + found.of(ConcernKind.PROTOCOL, State.MAYBE_AT_RISK)


def _discard_now(found: Concerns, paths: Sequence[str]) -> Iterator[str]:
    for owner, items in found.by_owners(_losing(found)):
        whose = "their directories are" if " and " in owner else "its directory is"
        yield Prohibition(f"Do not start {owner} before {whose} copied", copies_of(paths, items))


WORDS[ConcernKind.DISCARD] = ConcernWords(
    short="a replica will discard records that the leader does not hold", headline=_discard_words, now=_discard_now
)


def _protocol_unknown(found: Concerns) -> Iterator[str]:
    if found.of(ConcernKind.PROTOCOL, State.UNKNOWN, State.MAYBE_AT_RISK):
        yield "Which Kafka version the brokers run: give server.log, or state it with --protocol."


WORDS[ConcernKind.PROTOCOL] = ConcernWords(
    short="what is truncated depends on the Kafka version",
    headline="what {first_owners} truncates depends on the Kafka version, which no input shows: of {partition}, {detail}; {partitions} in all.",
    unknown=_protocol_unknown,
)


@AT_RISK
def _sole_holders(compared: Compared) -> Iterator[Concern]:
    report, live = compared.report, compared.live
    is_parted = any(one.verdict is Verdict.SILENT_DIVERGENCE for one in live)
    for holder in report.sole_holders:
        own = next((one for one in live if one.view is holder.view), None)
        if own is None or (compared.is_led and own.truncation is not None) or (is_parted and holder.is_other_content):
            # What it loses, or differs in, is reported as such.
            continue
        yield from _sole_holder(compared, holder)


def _sole_holder(compared: Compared, holder: SoleHolder) -> Iterator[Concern]:
    report = compared.report
    views, counts = (holder.view,), holder.counts
    if report.is_quorum:
        # Above the end of the majority nothing is committed; a voter that lacks it is behind.
        if counts.certain and not holder.is_tail_of_a_copy:
            yield compared.concern(State.MAYBE_AT_RISK, ConcernKind.SOLE, views, counts)
        return
    newest = holder.view.last_epoch
    is_replaced = holder.is_other_content and any(
        isinstance(epoch := choice.leader.last_epoch, int) and isinstance(newest, int) and epoch > newest
        for choice in report.what_if
    )
    if counts.certain and holder.is_tail_of_a_copy:
        yield compared.concern(State.MAYBE_AT_RISK, ConcernKind.TAIL, views, counts)
    elif counts.certain:
        state = State.AT_RISK if compared.is_whole else State.MAYBE_AT_RISK
        yield compared.concern(state, ConcernKind.SOLE, views, counts)._replace(is_replaced=is_replaced)
    elif counts.possible and holder.is_tail_of_a_copy:
        yield compared.concern(State.UNKNOWN, ConcernKind.TAIL, views, counts)
    elif counts.possible:
        concern = compared.concern(State.MAYBE_AT_RISK, ConcernKind.SOLE, views, counts)
        yield concern._replace(is_replaced=is_replaced)


def _sole_words(found: Concerns, items: Items) -> str:
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
        losing = owners_of(found.of(ConcernKind.DISCARD, *_RISKY))
        start = f"Copy its directory, then start {owner} first" if owners_of(own) & losing else f"Start {owner} first"
        return (
            f"ONLY {owner.upper()} HOLDS {counted(certain, 'committed record')} of {partitions_of(own)}.{rest}"
            f" {start}; do not force an unclean election while it is down."
        )
    return f"only {owner}, of the replicas given, holds {records_of(certain, possible)} of {partitions_of(own)}.{rest}"


def _sole_now(found: Concerns, paths: Sequence[str]) -> Iterator[str]:
    """Yield how to keep what one replica alone holds, without an order of starts that other lines contradict."""
    losing = owners_of(_losing(found))  # not started before their directories are copied, as is said already
    groups = found.by_owners(found.of(ConcernKind.SOLE, *_RISKY))
    waiting = found.waiting()
    kept: dict[str, Items] = {}
    alone_in: dict[str, Items] = {}
    for owner, items in groups:
        is_copied = owners_of(items) <= losing
        is_replaced = any(one.is_replaced for _, one in items)
        # Of replicas that are not given another may lead: to start this one first could make it the leader.
        can_lead = all(one.state is State.AT_RISK or (one.leader == owner and not one.guess) for _, one in items)
        if len(groups) == 1 and can_lead and not is_replaced and not owners_of(items) & waiting:
            alone = f"Start {owner} first, and do not force an unclean election while it is down"
            yield (
                Step(f"{alone}.") if is_copied else Step(f"{alone}; copy its directory before", copies_of(paths, items))
            )
            continue
        if not is_copied:
            kept[owner] = items
        if not is_replaced:
            alone_in[owner] = items
    copied = [item for items in kept.values() for item in items]
    if kept:
        whose, they_start = joined_by_and(kept), form(len(kept), "it starts", "they start")
        yield Step(
            f"Copy the {form(len(kept), 'directory', 'directories')} of {whose} before {they_start}",
            copies_of(paths, copied),
        )
    if alone_in:
        which = names_of([item for items in alone_in.values() for item in items])
        one_of = "one of " if len(alone_in) > 1 else ""
        yield Prohibition(
            f"Do not force an unclean election of {which} while {one_of}{joined_by_and(alone_in)} is down."
        )


WORDS[ConcernKind.SOLE] = ConcernWords(short="one replica alone holds records", headline=_sole_words, now=_sole_now)


def _tail_words(_found: Concerns, items: Items) -> str:
    owners = joined_by_and(owners_of(items))
    records = max(one.records for _, one in items)
    if sum_of(items, "certain"):
        held = records_of(sum_of(items, "certain"), sum_of(items, "possible"))
        return f"{owners} alone {'hold' if ' and ' in owners else 'holds'} {held} of {partitions_of(items)}, unless the other directories were copied earlier, while the brokers ran."
    ends = f"the last records of {partitions_of(items)} on {owners}, up to {records:,} of one"
    return f"{ends}, can't be judged. They were copied while brokers ran, or after a power loss."


def _tail_now(found: Concerns, paths: Sequence[str]) -> Iterator[str]:
    for owner, items in found.by_owners(found.of(ConcernKind.TAIL, State.MAYBE_AT_RISK)):
        yield Step(f"Copy the directory of {owner} before anything is started", copies_of(paths, items))


def _tail_unknown(found: Concerns) -> Iterator[str]:
    past = any(one.detail for _, one in found.of(ConcernKind.PAST_END, State.MAYBE_AT_RISK))
    if past or found.of(ConcernKind.TAIL, State.UNKNOWN, State.MAYBE_AT_RISK):
        yield "Whether brokers ran when they were copied: if none did, say --stopped, and the ends of logs are judged."


WORDS[ConcernKind.TAIL] = ConcernWords(
    short="its end may have been copied at another moment than that of other replicas",
    headline=_tail_words,
    now=_tail_now,
    unknown=_tail_unknown,
)


@AT_RISK
def _outside(compared: Compared) -> Iterator[Concern]:
    report = compared.report
    counts = report.unassigned_counts
    if counts is not None and counts.records:
        outside = [one.view for one in report.unassigned_holders]
        places = tuple((view.replica.input, view.replica.path) for view in outside)
        # What was never committed may have been acknowledged with acks=1, and these directories are the last that hold it.
        state = State.MAYBE_AT_RISK if counts.certain or counts.possible else State.UNCOMMITTED_ONLY
        yield compared.concern(state, ConcernKind.OUTSIDE, outside, counts)._replace(places=places)


def _outside_words(found: Concerns, items: Items) -> str:
    what = records_of(sum_of(items, "certain"), sum_of(items, "possible"))
    if found.state is State.UNCOMMITTED_ONLY:
        what = counted(sum_of(items, "records"), "record")
    sentence = f"directories of {joined_by_and(owners_of(items))} that are no replica any more hold {what} of {partitions_of(items)}, and no replica does."
    if found.state is State.UNCOMMITTED_ONLY:
        return (
            f"Nothing committed is at risk: {sentence} A producer with acks=1 may have got an acknowledgement of them."
        )
    return sentence


def _outside_now(found: Concerns, paths: Sequence[str]) -> Iterator[str]:
    outside = found.of(ConcernKind.OUTSIDE, *_RISKY, State.UNCOMMITTED_ONLY)
    if outside:
        owners = joined_by_and(owners_of(outside))
        is_deleted = any(path.endswith("-delete") for _, one in outside for _, path in one.places)
        fate = ", which deletes some of them," if is_deleted else ""
        yield Step(
            f"Copy these directories before {owners} {'start' if ' and ' in owners else 'starts'}{fate} or anything is done with them",
            copies_of_places(paths, (place for _, one in outside for place in one.places)),
        )


WORDS[ConcernKind.OUTSIDE] = ConcernWords(
    short="a directory that is no replica any more holds records alone", headline=_outside_words, now=_outside_now
)


@AT_RISK
def _elections(compared: Compared) -> Iterator[Concern]:
    report, leader = compared.report, compared.report.leader
    if leader is None or report.is_quorum:
        return
    if isinstance(report.electable, Absent):
        if leader.is_known:
            return
        # A broker without a log has a concern of its own.
        choices = [one for one in report.what_if if not one.is_emptied]
        costs = [one.discarded for one in choices]
        if min((cost.certain for cost in costs), default=0):
            state = State.AT_RISK if compared.is_whole else State.MAYBE_AT_RISK
            best = min(choices, key=lambda one: one.rank)
            yield _elected(compared, state, best)._replace(detail="whichever replica leads")
        elif any(cost.certain or cost.possible for cost in costs):
            yield compared.concern(State.UNKNOWN, ConcernKind.LEADER, (leader.view,))
        return
    for choice in report.costly_elections:
        cost = choice.discarded
        if cost.certain:
            state = State.MAYBE_AT_RISK if choice.is_tail_of_a_copy else State.AT_RISK
        else:
            state = State.UNKNOWN if choice.is_tail_of_a_copy else State.MAYBE_AT_RISK
        if choice.is_tail_of_a_copy:
            # It is about those that hold the end, not about the one that lacks it.
            yield compared.concern(state, ConcernKind.TAIL, (view for view, _ in choice.truncations), cost)
        else:
            yield _elected(compared, state, choice)


def _elected(compared: Compared, state: State, choice: WhatIf) -> Concern:
    concern = compared.concern(state, ConcernKind.ELECTED, (choice.leader,), choice.discarded)
    return concern._replace(losing=_made_to_lose(compared, choice))


def _made_to_lose(compared: Compared, choice: WhatIf) -> tuple[str, ...]:
    return tuple(dict.fromkeys(compared.report.owner_of(view) for view, _ in choice.truncations))


def _elected_words(found: Concerns, items: Items) -> str:
    certain, possible = sum_of(items, "certain"), sum_of(items, "possible")
    owners = joined_names(owners_of(items), "or")
    if any(one.detail for _, one in items):
        return f"whichever replica leads, {records_of(certain, possible)} of {partitions_of(items)} will be discarded."
    lead = "DATA AT RISK: " if found.state is State.AT_RISK else ""
    return f"{lead}if {owners} is elected, which can be without an unclean election, {records_of(certain, possible)} of {partitions_of(items)} will be discarded."


def _elected_now(found: Concerns, _paths: Sequence[str]) -> Iterator[str]:
    items = found.of(ConcernKind.ELECTED, *_RISKY)
    owners = [owner for owner, _ in found.by_owners(items)]
    if len(owners) > 1:
        yield Prohibition(
            f"Do not start {joined_by_and(owners)} before brokers lead that hold all of {names_of(items)}."
        )
    elif owners:
        yield Prohibition(f"Do not start {owners[0]} before a broker that holds all of {names_of(items)} leads.")


WORDS[ConcernKind.ELECTED] = ConcernWords(
    short="an election can discard records", headline=_elected_words, now=_elected_now
)


@AT_RISK
def _gone(compared: Compared) -> Iterator[Concern]:
    """Replicas whose own files name offsets that their log does not hold: what they lack was not copied too late, it is missing."""
    report, live = compared.report, compared.live
    without_log = [
        one
        for one in compared.given
        if not (one.view.replica.is_log_known or one.view.replica.unread_files or one.view.replica.is_left_out)
    ]
    electable = frozenset() if isinstance(report.electable, Absent) else report.electable
    for one in (*live, *without_log):
        replica = one.view.replica
        others = any(other.view.log_end_offset > one.view.log_end_offset for other in live)
        # What its checkpoints name of a log of 0 bytes came after it was copied, or went with a power loss, unless it was stopped cleanly.
        lacks = one.view.missing or (unaccounted_offsets(replica) if others and is_empty(replica) else ())
        words = f"{lacks[0].words} {lacks[0].are} unaccounted for by its own files" if lacks else ""
        if replica.has_no_log:
            words = f"no .log file of it is here, and {words or _began(replica)}".removesuffix(", and ")
        if not words:
            continue
        is_sure = bool(one.view.missing) or report.is_stopped
        if is_empty(replica) and others and replica.broker_id in electable:
            is_sole = isinstance(report.isr, frozenset) and report.isr == {replica.broker_id}
            isr = f"the ISR is [{replica.broker_id}]" if is_sole else "it can be elected"
            state = State.AT_RISK if is_sure and not replica.has_no_log else State.MAYBE_AT_RISK
            why = "its log was removed, or the copy left it out" if replica.has_no_log else "its log is empty"
            detail = f"{why}, {words}, and {isr}"
            yield compared.concern(state, ConcernKind.EMPTIED, (one.view,), detail=detail)._replace(is_sole=is_sole)
        elif is_sure or replica.has_no_log:
            # What no other log reaches, of all that are assigned, is in none of them.
            is_held = others or any(o is not one and o.view.log_end_offset > lacks[0].first for o in live if lacks)
            is_lost = lacks and compared.is_whole and not (report.is_quorum or is_held)
            state = State.MAYBE_AT_RISK if is_lost else State.UNKNOWN
            yield compared.concern(state, ConcernKind.GONE, (one.view,), detail=words)
        else:
            count = last + 1 - lacks[0].first if isinstance(last := lacks[-1].last, int) else 0
            yield compared.concern(State.UNKNOWN, ConcernKind.TAIL, (one.view,), records=count)


@AT_RISK
def _begins_past_its_end(compared: Compared) -> Iterator[Concern]:
    """Replicas whose log start lies above the end of their log: a start deletes all of it, and begins an empty log there."""
    electable = frozenset() if isinstance(compared.report.electable, Absent) else compared.report.electable
    for one in compared.live:
        replica, ends = one.view.replica, [each.last_offset for each in one.view.replica.segments]
        end = ends[-1] + 1 if ends and isinstance(ends[-1], int) else None
        start = replica.log_start
        if end is None or isinstance(start, Absent) or start.value <= end:
            continue
        words = f"its log-start-offset-checkpoint says that it begins at {start.value:,}, past its end at {end:,}: a start deletes all of it"
        if replica.broker_id in electable or not compared.is_led:
            detail = f"{words}{', and it can be elected' if replica.broker_id in electable else ''}"
            yield compared.concern(State.MAYBE_AT_RISK, ConcernKind.EMPTIED, (one.view,), detail=detail)
        else:
            yield compared.concern(State.UNKNOWN, ConcernKind.GONE, (one.view,), detail=words)


def _began(replica: Replica) -> str:
    claimed = replica.checkpoint_epochs
    began = 0 if isinstance(claimed, Absent) or not claimed else claimed[-1].start_offset
    return f"a leader epoch began in it at offset {began:,}" if began else ""


def _gone_words(_found: Concerns, items: Items) -> str:
    partition, one = items[0]
    owners = joined_by_and(dict.fromkeys(owner for tp, other in items if tp == partition for owner in other.owners))
    others = len({tp for tp, _ in items}) - 1
    more = f" The same of {counted(others, 'other partition')}." if others else ""
    return f"the log of {partition} on {owners} is not here, or not whole (removed, or left out of the copy). {one.detail[0].upper()}{one.detail[1:]}.{more}"


def _gone_now(found: Concerns, _paths: Sequence[str]) -> Iterator[str]:
    owners: dict[tuple[TopicPartition, ...], list[str]] = {}
    gone = found.of(ConcernKind.GONE, State.MAYBE_AT_RISK, State.UNKNOWN)
    for owner, items in found.by_owners(gone):
        owners.setdefault(tuple(dict.fromkeys(partition for partition, _ in items)), []).append(owner)
    for partitions, their in owners.items():
        names = names_of([item for item in gone if item[0] in partitions])
        who = joined_by_and(their)
        yield (
            f"Look for the files of {names} that {who} lack here, on their disks, in lost+found and in other copies, before they start. Without them they begin an empty log, or serve one with a hole."
            if " and " in who
            else f"Look for the files of {names} that {who} lacks here, on its disk, in lost+found and in other copies, before it starts. Without them it begins an empty log, or serves one with a hole."
        )


def _gone_unknown(found: Concerns) -> Iterator[str]:
    gone = found.of(ConcernKind.GONE, State.MAYBE_AT_RISK, State.UNKNOWN)
    if gone:
        losers = joined_by_and(owners_of(gone))
        yield f"What {losers} held of {names_of(gone)}: an earlier copy of the log directory would show it."


WORDS[ConcernKind.GONE] = ConcernWords(
    short="a log or a part of it is missing", headline=_gone_words, now=_gone_now, unknown=_gone_unknown
)


@AT_RISK
def _recovery(compared: Compared) -> Iterator[Concern]:
    report, counts = compared.report, compared.report.recovered_counts
    views = [one.view for one in report.recovered if not report.is_observer(one.view)]
    if report.is_quorum and counts is not None and views:
        owners = {report.owner_of(view) for view in views}
        ends = {name: one.view.log_end_offset for one in compared.live if (name := report.owner_of(one.view)) in owners}
        cut = ", ".join(f"at {end:,} on {name}" for name, end in ends.items())
        further = [report.owner_of(one) for one in compared.observers if one.log_end_offset > max(ends.values())]
        copies = (
            f" No voter copies back what {joined_by_and(further)} {form(len(further), 'holds', 'hold')} beyond that."
            if further
            else ""
        )
        detail = f"Snapshots aside, it then ends {cut}, and no majority of the voters is shown to hold more.{copies}"
        yield compared.concern(State.UNKNOWN, ConcernKind.RECOVERY, views, records=counts.records, detail=detail)
    elif counts is not None and (counts.certain or counts.possible):
        state = State.AT_RISK if counts.certain and compared.is_whole else State.MAYBE_AT_RISK
        yield compared.concern(state, ConcernKind.RECOVERY, views, counts)


def _recovery_words(found: Concerns, items: Items) -> str:
    records = records_of(sum_of(items, "certain"), sum_of(items, "possible"))
    words = f"recovery at the start of {joined_by_and(owners_of(items))} will discard"
    if found.state is State.UNKNOWN:
        one = items[0][1]
        return f"{words} {counted(one.records, 'record')} of the metadata log. {one.detail}"
    words = f"{words} {records} of {partitions_of(items)} that no other log holds."
    return f"DATA AT RISK: {words}" if found.state is State.AT_RISK else words


def _recovery_now(found: Concerns, paths: Sequence[str]) -> Iterator[str]:
    for owner, items in found.by_owners(found.of(ConcernKind.RECOVERY, *_RISKY, State.UNKNOWN)):
        yield Step(f"Copy the log of {owner} before it starts", copies_of(paths, items))


WORDS[ConcernKind.RECOVERY] = ConcernWords(
    short="recovery will discard records of it",
    headline=_recovery_words,
    now=_recovery_now,
)


@AT_RISK
def _past_end(compared: Compared) -> Iterator[Concern]:
    report, live = compared.report, compared.live
    past = [one for one in live if one.past_end is not None]
    if past:
        end = max(one.view.log_end_offset for one in live)
        highest = max(one.past_end.value for one in past if one.past_end is not None)
        # A copy of a running broker, and a log after a power loss, end below a high watermark just so.
        is_sure = any(one.view.replica.clean_shutdown for one in past) or report.is_stopped
        state = State.AT_RISK if is_sure and compared.is_whole else State.MAYBE_AT_RISK
        detail = "" if is_sure else "copied while the broker ran, or after a power loss"
        yield compared.concern(
            state, ConcernKind.PAST_END, (one.view for one in past), records=highest - end, detail=detail
        )


def _past_end_words(found: Concerns, items: Items) -> str:
    owners = joined_by_and(owners_of(items))
    words = f"{owners} recorded high watermarks up to {counted(sum_of(items, 'records'), 'offset')} past the end of every log, of {partitions_of(items)}"
    if found.state is State.AT_RISK:
        return f"COMMITTED RECORDS ARE MISSING: {words}."
    # After a clean stop the end was not left behind: only a replica that is not given can hold it.
    why = next((one.detail for _, one in items if one.detail), "only a replica that is not given can hold them")
    return f"{words}: {why}."


def _past_end_now(found: Concerns, _paths: Sequence[str]) -> Iterator[str]:
    if found.of(ConcernKind.PAST_END, *_RISKY):
        yield "Look for another replica or an earlier copy before anything is started."


WORDS[ConcernKind.PAST_END] = ConcernWords(
    short="a high watermark is past the end of every log", headline=_past_end_words, now=_past_end_now
)
