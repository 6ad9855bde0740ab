"""What replicas differ in for good, and what is behind or made up for: concerns without danger to committed records."""

from collections.abc import Iterator, Sequence

from kforensics.damage import Absent
from kforensics.evidence.metadata.state import majority
from kforensics.findings.answers.model import State
from kforensics.findings.concern import (
    MOST_NAMED,
    Compared,
    Concern,
    ConcernKind,
    Concerns,
    ConcernWords,
    Items,
    copies_of,
    names_of,
    owners_of,
    partitions_of,
    topics_of,
)
from kforensics.findings.rule import RulesOf
from kforensics.reconcile.logs.loaded_log import LoadedLog
from kforensics.reconcile.replicas.report import Verdict
from kforensics.units import METADATA_TOPICS, OffsetRange
from kforensics.words import Step, counted, form, joined_by_and, listed

SETTLED: RulesOf[[Compared], Concern] = RulesOf()
WORDS: dict[ConcernKind, ConcernWords] = {}
_MOST_RANGES = 4
BELOW_THE_ENDS = "Whether content below the ends of the logs is the same and undamaged"


@SETTLED
def _divergences(compared: Compared) -> Iterator[Concern]:
    report, live = compared.report, compared.live
    parted = [one for one in live if one.verdict is Verdict.SILENT_DIVERGENCE]
    if parted:
        views = [one.view for one in report.odd_ones] or [one.view for one in parted]
        # Where each is damaged at its own place, none of them is one to copy from.
        is_one_whole = len(report.odd_ones) < len(live)
        reasons = {one.reason: report.owner_of(one.view) for one in report.odd_ones} if is_one_whole else {}
        detail = "; ".join(f"{owner}: {why}" if len(reasons) > 1 else why for why, owner in reasons.items())
        concern = compared.concern(State.DIVERGED, ConcernKind.DIVERGENCE, views, detail=detail)
        yield concern._replace(whole=_whole_beside(compared, views), holds=_what_each_holds(compared))


def _whole_beside(compared: Compared, odd: Sequence[LoadedLog]) -> str:
    """Return the owner of a replica that holds intact all that these do; empty where none of those given is known to."""
    report = compared.report
    alone = [one.view for one in report.sole_holders if one.counts.records or one.counts.markers]
    if any(one is view for one in alone for view in odd):
        return ""  # however it came to them, what it alone holds would be gone
    first, end = min(one.content_start_offset for one in odd), max(one.log_end_offset for one in odd)
    whole = [
        one.view
        for one in compared.live
        if not any(one.view is other for other in odd)
        and one.view.is_intact
        and not report.not_compared_below
        and one.view.content_start_offset <= first
        and one.view.log_end_offset >= end
    ]
    leads = report.leader is not None and any(report.leader.view is view for view in whole)
    best = report.leader.view if report.leader is not None and leads else next(iter(whole), None)
    return "" if best is None else report.owner_of(best)


def _what_each_holds(compared: Compared) -> str:
    """Return in words which offsets each replica can give."""
    words = []
    for one in compared.live:
        view = one.view
        whole = OffsetRange(view.content_start_offset, view.log_end_offset - 1)
        held = whole.without(view.lost_ranges) if whole.first <= whole.last else ()
        ranges = listed([f"{part.first}..{part.last}" for part in held], most=_MOST_RANGES) or "nothing"
        doubt = "" if view.is_intact or view.lost_ranges else ", damaged"
        words.append(f"{compared.report.owner_of(view)} {ranges}{doubt}")
    return ", ".join(words)


def _divergence_words(found: Concerns, items: Items) -> str:
    odd = [item for item in items if item[1].detail]
    count = len({tp for tp, _ in items})
    of = names_of(items) if count == 1 else f"{count:,} of {found.among}"
    words = ""
    if odd:
        owners = joined_by_and(dict.fromkeys(owner for _, one in odd for owner in one.owners))
        why = odd[0][1].detail if len(odd) == 1 else "by their checksums or by what the others hold"
        left = [item for item in items if not item[1].detail]
        which = f" in {names_of(odd)}" if left else ""
        words = f" The odd {'one' if ' and ' not in owners else 'ones'} out{which}: {owners} ({why})."
        words += f" Of {names_of(left)} no checksum and no majority tells which is right." if left else ""
    return f"REPLICAS HAVE DIVERGED and will stay so: those of {of} hold different content at the same offset, and replication will not repair it.{words}"


def _divergence_now(found: Concerns, paths: Sequence[str]) -> Iterator[str]:
    parted = found.of(ConcernKind.DIVERGENCE, State.DIVERGED)
    if any(not one.detail for _, one in parted):
        yield "Find out which content is right before a leader changes: readers get one or the other. Don't delete anything."
    odd = [item for item in parted if item[1].detail]
    for owner, items in found.by_owners([item for item in odd if item[1].whole]):
        leaders = joined_by_and(dict.fromkeys(one.whole for _, one in items))
        yield Step(
            f"Have {leaders} lead {names_of(items)}, of which all is intact there, then let {owner} copy it again into an empty directory; keep the old one",
            copies_of(paths, items),
        )
    for owner, items in found.by_owners([item for item in odd if not item[1].whole]):
        yield Step(
            f"Empty and delete no replica of {names_of(items)}. No other one given is known to hold all that {owner} {'hold' if ' and ' in owner else 'holds'} "
            f"({'; '.join(one.holds for _, one in items[:MOST_NAMED])}). Copy the directories first",
            copies_of(paths, items),
        )


def _divergence_tell(found: Concerns) -> Iterator[str]:
    parted = found.of(ConcernKind.DIVERGENCE, State.DIVERGED)
    if parted:
        led = dict.fromkeys(one.leader for _, one in parted if one.leader and not one.guess)
        served = f"; {joined_by_and(led)} {form(len(led), 'leads', 'lead')} now" if led else ""
        yield f"Consumers of {topics_of(parted)}: what they read depends on which broker led{served}."


WORDS[ConcernKind.DIVERGENCE] = ConcernWords(
    short="replicas hold different content at the same offset",
    headline=_divergence_words,
    now=_divergence_now,
    tell=_divergence_tell,
)


def _copied_again_words(_found: Concerns, items: Items) -> str:
    leaders = joined_by_and(dict.fromkeys(one.leader for _, one in items))
    followers = joined_by_and(owners_of(items))
    return f"{followers} will truncate committed records of {partitions_of(items)} and copy them again: {leaders} must stay up until then."


def _copied_again_now(found: Concerns, _paths: Sequence[str]) -> Iterator[str]:
    again = found.of(ConcernKind.COPIED_AGAIN, State.UNCOMMITTED_ONLY)
    for leader in dict.fromkeys(one.leader for _, one in again):
        yield f"Keep {leader} up until its followers have caught up: what they truncate is on its disk alone meanwhile."


WORDS[ConcernKind.COPIED_AGAIN] = ConcernWords(
    short="what a replica truncates is copied again from the leader",
    headline=_copied_again_words,
    now=_copied_again_now,
)
WORDS[ConcernKind.UNCOMMITTED] = ConcernWords(
    short="a replica will truncate records that were never committed",
    headline="Nothing committed is at risk: {owners} will truncate records of {partitions} that were never committed.",
)


@SETTLED
def _behind(compared: Compared) -> Iterator[Concern]:
    report, live, is_led = compared.report, compared.live, compared.is_led
    leader = report.leader
    if len(live) < 2 or (leader is not None and report.leader_log is None):
        return
    best = leader.view if is_led and leader is not None else max((o.view for o in live), key=lambda v: v.log_end_offset)
    alone = next((holder for holder in report.sole_holders if holder.view is best), None)
    short = []
    recorded = best.replica.high_watermark
    for one in live:
        if one.view is best or one.view.log_end_offset >= best.log_end_offset:
            continue
        is_uncommitted = (
            alone is not None
            and alone.offsets.first <= one.view.log_end_offset
            and not alone.counts.certain
            and not alone.counts.possible
            and not report.is_quorum
            # A marker is counted as no record, and commits or aborts some.
            and (isinstance(recorded, Absent) or recorded.value <= one.view.log_end_offset)
        )
        if not is_uncommitted:
            short.append(one.view)
    if short and (is_led or not isinstance(report.electable, Absent)):
        voters = 0 if isinstance(report.assigned, Absent) or not report.is_quorum else len(report.assigned)
        can_win = "they can elect one of them" if voters and len(short) >= majority(voters) else ""
        yield compared.concern(State.BEHIND, ConcernKind.BEHIND, short, detail=can_win)
    elif short:
        yield compared.concern(State.UNKNOWN, ConcernKind.LEADER, short)


def _behind_words(found: Concerns, items: Items) -> str:
    owners = joined_by_and(owners_of(items))
    truncates = (
        "By leader epochs no replica truncates"
        if found.of(ConcernKind.NO_EPOCHS, State.AGREE)
        else "No replica of a topic will truncate"
        if found.of(ConcernKind.AHEAD, State.AGREE)
        else "No replica will truncate"
    )
    lack = "lack" if " and " in owners else "lacks"
    if all(one.places for _, one in items):
        lack = "will lack"  # once a start has renamed the directory
    if any(tp.topic in METADATA_TOPICS and one.detail for tp, one in items):
        truncates = (
            "No replica will truncate, unless a majority of the voters elects one that lacks uncommitted metadata"
        )
    return f"{truncates}; {owners} {lack} records of {partitions_of(items)} of {found.count:,} that others hold."


WORDS[ConcernKind.BEHIND] = ConcernWords(short="a replica is behind", headline=_behind_words)


def _ends_unknown(found: Concerns) -> Iterator[str]:
    unread = [(partition, one.records) for partition, one in found.of(ConcernKind.ENDS, State.SAME_ENDS) if one.records]
    if not unread:
        return
    named = ", ".join(f"{partition} below {offset:,}" for partition, offset in unread[:MOST_NAMED])
    more = f" and {counted(len(unread) - MOST_NAMED, 'other')}" if len(unread) > MOST_NAMED else ""
    yield f"{BELOW_THE_ENDS}: it was not compared ({named}{more}); --depth content compares it."


WORDS[ConcernKind.ENDS] = ConcernWords(
    short="content below the ends of its logs was not compared",
    headline="By leader epochs and ends all replicas agree: {partitions}, every assigned replica given.",
    unknown=_ends_unknown,
)
WORDS[ConcernKind.DELETED] = ConcernWords(short="the topic was deleted")


@SETTLED
def _observers(compared: Compared) -> Iterator[Concern]:
    partial = [view for view in compared.observers if view.missing]
    if partial:
        owners = tuple(dict.fromkeys(map(compared.report.owner_of, partial)))
        yield Concern(state=State.AGREE, kind=ConcernKind.OBSERVERS, owners=owners)
    reports = {id(one.view): one for one in compared.report.replicas}
    ahead = [view for view in compared.observers if reports[id(view)].truncation is not None]
    # Where recovery makes the voters' logs shorter, that concern says what the copies hold.
    if ahead and not any(compared.report.is_voter(one.view) for one in compared.report.recovered):
        yield compared.concern(State.AGREE, ConcernKind.AHEAD, ahead)


WORDS[ConcernKind.OBSERVERS] = ConcernWords(short="a broker's copy lacks a part")
WORDS[ConcernKind.AHEAD] = ConcernWords(short="a broker's copy of the metadata log holds more than its leader's")


@SETTLED
def _without_epochs(compared: Compared) -> Iterator[Concern]:
    """Replicas without leader-epoch-checkpoint that keep all they hold with one, and truncate where the copy did not just leave it out."""
    for one in compared.live:
        alone = one.without_file.offset if one.without_file is not None else Absent.NOT_APPLICABLE
        if one.truncation is None and isinstance(alone, int) and alone < one.view.log_end_offset:
            yield compared.concern(State.AGREE, ConcernKind.NO_EPOCHS, (one.view,), detail=f"to {alone}")


WORDS[ConcernKind.NO_EPOCHS] = ConcernWords(short="leader-epoch-checkpoint is missing")


@SETTLED
def _left_bytes(compared: Compared) -> Iterator[Concern]:
    """Replicas whose log has bytes behind its last batch after a clean stop: they hold what the others do, and their broker may not start."""
    for one in compared.live:
        if one.view.left_behind is not None:
            detail = one.view.left_behind.words
            concern = compared.concern(State.AGREE, ConcernKind.LEFT_BYTES, (one.view,), detail=detail)
            yield concern._replace(guess="")  # it is there whoever leads


WORDS[ConcernKind.LEFT_BYTES] = ConcernWords(short="bytes are behind the last batch of a log that was stopped cleanly")
