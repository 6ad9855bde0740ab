"""What `explain` shows: what happened, what was truncated and lost, why, and what more evidence would show; on a page each with its sources."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from kforensics.commands.explanation import Explanation
from kforensics.commands.result import Result
from kforensics.damage import Absent
from kforensics.evidence.model import Citation, Input, full_path
from kforensics.findings.answers.conclusion import amount
from kforensics.findings.answers.explain import behind_headline
from kforensics.findings.answers.model import STATES, State
from kforensics.findings.model import Finding
from kforensics.findings.rules.causes import CAUSES, root_cause, root_cause_sentence
from kforensics.findings.rules.losses import TOLD_BESIDE, basis_words
from kforensics.reconcile.history.causes import CauseName
from kforensics.reconcile.history.losses import Loss
from kforensics.reconcile.incident.model import ExplainedTruncation, LeaderBasis, PartitionIncident
from kforensics.reconcile.observed.clocks import Clock
from kforensics.reconcile.timeline.events import TimelineEntry
from kforensics.render.blocks import (
    GAP,
    Block,
    Cell,
    Column,
    Event,
    Fact,
    Facts,
    FactsForm,
    Folded,
    Prose,
    Section,
    Table,
    Timeline,
    Tone,
    Value,
    item,
    known,
    utc,
)
from kforensics.render.events import GRAVE, is_of_unknown_end, sentences_of, shown_entries, truncation_sentence
from kforensics.render.frame import References, node_name, problem_items
from kforensics.render.view import View
from kforensics.render.views.incident import (
    by_cause,
    by_topic,
    cited,
    figure_of,
    identified,
    other_disks,
    over_time,
    unknowns,
)
from kforensics.units import METADATA_TOPICS, TopicPartition
from kforensics.words import counted, in_short_sentences, listed, shift_text

MOST_ENTRIES = 40
MOST_LOSSES = 60
MOST_FIGURES = 40
"""Partitions whose logs are drawn on a page."""
MOST_PARTITIONS = 1_000
MOST_TRUNCATIONS = 200
FEW = 2
"""Truncations of a broker that followed each other and are shown one by one."""
TOGETHER_MS = 60_000
"""The time within which they do."""
MOST_SOURCES = 40
"""Citations of one row of a page."""

CERTAINTIES = {"certain": "committed", "possible": "possibly committed", "no": "not committed"}
_TONES = {"certain": Tone.BAD, "possible": Tone.WARNING, "no": Tone.QUIET}
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]{1,260}")

_TRUNCATION = tuple(Column(title) for title in ("Partition", "Broker", "Offsets", "Cause"))
_LOSSES = (
    Column("Partition"),
    Column("Offsets"),
    Column("Records"),
    Column("Committed"),
    Column("There now"),
    Column("Cause and reason", on_pages_only=True),
    Column("Still held by", on_pages_only=True),
    Column("Sources", on_pages_only=True),
)


def blocks(result: Result[Explanation], view: View) -> Iterator[Block]:
    """Yield the rest of the conclusion, then what happened, what was lost, why, and what more evidence would show."""
    body = replace(result.body, findings=result.findings, problems=result.problems)
    references = References(body.inputs, body.files)
    if view.page:
        yield from _identified(body, references)
    sentences = [one for one in behind_headline(body.conclusion, body.answer, body.incidents) if one]
    if sentences:
        yield GAP
    for sentence in sentences:
        if not view.page or sentence != result.answer.headline:
            yield Prose(sentence)
    if view.page:
        yield Facts(name="At a glance", form=FactsForm.FIGURES, rows=_figures(result))
        yield from by_topic(body.incidents)
        yield from by_cause(body.incidents, references, _anchors(body.incidents))
        yield from _lost(body, view, references)
        yield from _partitions(body, references)
    yield from _happened(body, view, references)
    yield from _truncated(body, view, references)
    if not view.page:
        yield from _lost(body, view, references)
    yield from _groups(body.incidents, references)
    yield from _torn_transactions(body.incidents, view)
    yield from _told_in_full(body.findings)
    if view.page:
        yield from _operations(body, references)
        yield from _bugs(body, references)
        yield from _residuals(body, references)
    yield from _closing(body, view)


def _identified(body: Explanation, references: References) -> Iterator[Block]:
    yield identified(body)
    if any(incident.losses for incident in body.incidents if incident.partition.topic not in METADATA_TOPICS):
        cause = root_cause(body.incidents)
        words = "The inputs do not show what took these records." if cause is None else root_cause_sentence(cause)
        sources = () if cause is None else references.of(cause.citations, most=MOST_SOURCES)
        yield Prose(f"Root cause: {words}", Tone.STRONG, references=sources)
    if body.is_redacted:
        yield Prose(
            "Consumer groups, hosts and principals in this page are pseudonyms: the same name under the same key is the same pseudonym in every report.",
            Tone.QUIET,
        )


def _figures(result: Result[Explanation]) -> list[tuple[str, str, Tone]]:
    """Return the figures at the top of the page.

    A zero is proven only where the answer is calm; else it is what the inputs show.
    """
    body = result.body
    losses = [one for each in body.incidents if each.partition.topic not in METADATA_TOPICS for one in each.losses]
    zero = "0" if result.answer.state.is_calm else "none shown"

    def figure(words: str, count: int, tone: Tone) -> tuple[str, str, Tone]:
        return (words, f"{count:,}" if count else zero, tone if count else Tone.PLAIN)

    def lost(certainty: str) -> int:
        return sum(loss.records for loss in losses if loss.was_committed == certainty and not loss.in_use)

    at_risk = sum(loss.records for loss in losses if loss.was_committed != "no" and loss.in_use)
    elections = sum(entry.kind == "unclean-election" for entry in body.timeline)
    return [
        figure("committed records lost", lost("certain"), Tone.BAD),
        figure("possibly committed, lost", lost("possible"), Tone.WARNING),
        figure("not committed, discarded", lost("no"), Tone.PLAIN),
        *([figure("still held, at risk", at_risk, Tone.WARNING)] if at_risk else []),
        figure("truncations", sum(len(one.truncations) for one in body.incidents), Tone.PLAIN),
        figure("unclean elections", elections, Tone.PLAIN),
        ("partitions examined", f"{body.partitions:,}", Tone.PLAIN),
    ]


def _happened(body: Explanation, view: View, references: References) -> Iterator[Block]:
    truncations = [truncation for incident in body.incidents for truncation in incident.truncations]
    entries = shown_entries(body.timeline, body.incidents, verbose=view.verbose)
    if not entries and not view.page:
        return
    shown = [entry for entry in entries if entry.kind != "truncation" or _is_line_alone(entry, verbose=view.verbose)]
    events = _events(shown, truncations, body, view, references)
    yield Section(
        title="What happened",
        anchor="timeline",
        lead="From broker logs, the metadata log and the disks, on one clock.",
    )
    if not events and view.page:
        yield Prose("The inputs show no elections, truncations or losses of the partitions that were examined.")
    most = view.most(MOST_ENTRIES)
    if events:
        yield Timeline(name="Timeline", events=events[:most])
    if len(events) > most:
        yield Prose(f"{len(events) - most:,} more (-v lists them)", Tone.QUIET, depth=1)
    if view.page:
        seen = set(map(id, shown))
        others = [one for one in body.timeline if id(one) not in seen and (one.kind != "truncation" or one.is_quiet)]
        rest = _events(others, (), body, view, references)
        if rest:
            title = f"All other events ({counted(len(rest), 'row')})"
            yield Folded(title, [Timeline(name="All other events", events=rest)], is_bulk=True)


def _events(
    entries: Sequence[TimelineEntry],
    truncations: Sequence[ExplainedTruncation],
    body: Explanation,
    view: View,
    references: References,
) -> list[Event]:
    """Return entries and truncations by time, those without a time last."""
    clocks = dict(body.clocks)

    def source(citations: Sequence[Citation], time_ms: int | Absent) -> str:
        clock = clocks.get(citations[0].path) if citations else None
        return _cited(citations, body.inputs) + ("" if clock is None else _shifted(clock, time_ms))

    events = [
        Event(
            time_ms=one.time_ms,
            words=one.words,
            source=source(one.citations, one.time_ms)
            if isinstance(one.metadata_offset, Absent)
            else f"metadata offset {one.metadata_offset}",
            is_strong=one.kind in GRAVE,
            references=references.of(one.citations, most=2),
        )
        for one in sentences_of(entries, body.nodes)
    ]
    events += [
        Event(
            time_ms=time_ms,
            words=words,
            source=source(citations, time_ms),
            is_strong=True,
            references=references.of(citations, most=2),
        )
        for time_ms, words, citations in _grave_ones(truncations, body, view)
    ]
    return sorted(
        events, key=lambda one: (not isinstance(one.time_ms, int), one.time_ms if isinstance(one.time_ms, int) else 0)
    )


def _grave_ones(
    truncations: Sequence[ExplainedTruncation], body: Explanation, view: View
) -> Iterator[tuple[int | Absent, str, tuple[Citation, ...]]]:
    """Yield truncations, on a screen those of a broker that followed each other as one, and disks that were exchanged: when, what, and what shows it."""
    runs: dict[tuple[object, ...], list[ExplainedTruncation]] = {}
    for at, one in enumerate(sorted(truncations, key=lambda one: one.time_ms if isinstance(one.time_ms, int) else 0)):
        alike: tuple[object, ...] = (one.broker_id, one.cause.name)
        last = runs.get(alike, [])[-1:]
        if view.page or view.verbose or (last and not _follows(last[0], one)):
            alike = (at,)
        runs.setdefault(alike, []).append(one)
    for run in runs.values():
        for some in [run] if len(run) > FEW else [[one] for one in run]:
            yield (
                some[0].time_ms,
                truncation_sentence(some, _arrow(view), body.nodes),
                tuple(one for each in some for one in each.citations),
            )
    if truncations:
        for time_ms, broker in other_disks(body.incidents):
            yield (
                time_ms,
                f"broker {broker} registers with another disk than before",
                cited(broker, time_ms, body.timeline),
            )


def _follows(one: ExplainedTruncation, other: ExplainedTruncation) -> bool:
    """Whether a truncation came soon after another one, or neither has a time."""
    if isinstance(one.time_ms, int) and isinstance(other.time_ms, int):
        return other.time_ms - one.time_ms <= TOGETHER_MS
    return isinstance(one.time_ms, Absent) and isinstance(other.time_ms, Absent)


def _arrow(view: View) -> str:
    return "→" if view.unicode else "->"


def _is_line_alone(entry: TimelineEntry, *, verbose: bool) -> bool:
    """Whether a truncation is none of those that are explained, and is shown."""
    return is_of_unknown_end(entry) or (verbose and entry.is_quiet)


def _shifted(clock: Clock, utc_ms: int | Absent) -> str:
    """Return what was added to the time of a line, where its clock or time zone is corrected."""
    shift_ms = clock.shift_at(utc_ms) if isinstance(utc_ms, int) else clock.shift_ms
    return f", {shift_text(shift_ms)}" if shift_ms else ""


def _cited(citations: Sequence[Citation], inputs: Sequence[Input]) -> str:
    if not citations:
        return ""
    first = citations[0]
    place = ""
    if isinstance(first.line, int):
        place = f":{first.line}"
    elif not isinstance(first.span, Absent):
        place = f" byte {first.span.position}"
    name = first.path if first.path != "." else inputs[first.input].path
    short = "/".join(name.split("/")[-2:])
    if "/" not in short and first.input < len(inputs):
        short = f"{inputs[first.input].path.rstrip('/').rsplit('/', 1)[-1]}/{short}"
    return short + place


def _truncated(body: Explanation, view: View, references: References) -> Iterator[Block]:
    truncations = [truncation for incident in body.incidents for truncation in incident.truncations]
    if not truncations:
        return
    yield Section(
        title="What was truncated",
        anchor="truncations",
        lead="Each truncation with its cause, and the truncation that the replication protocol in force prescribes.",
    )
    anchors = _anchors(body.incidents)
    for one in truncations[: MOST_TRUNCATIONS if view.page else None]:
        if view.page:
            yield from _on_page(one, references, anchors.get(one.topic_partition, ""))
        else:
            yield from _on_screen(one, body.nodes, view)
    more = len(truncations) - MOST_TRUNCATIONS
    if view.page and more > 0:
        yield Prose(f"{more:,} more truncations: --format json lists each.", Tone.QUIET)


def _on_screen(one: ExplainedTruncation, inputs: Sequence[Input], view: View) -> Iterator[Block]:
    places = f"{one.from_offset} {_arrow(view)} {one.to_offset}"
    head = (
        str(one.topic_partition),
        node_name(one.broker_id, inputs),
        places,
        f"{one.cause.name}, {one.cause.confidence}",
    )
    yield Table(name="Truncation", columns=_TRUNCATION, rows=[head], has_heading=False)
    yield Prose(one.cause.reason, depth=3)
    for bug in one.bugs:
        yield item(f"{bug.confidence} {bug.jira}: {bug.effect}", depth=3)
    if isinstance(one.agrees, bool):
        verdict = "as the broker did" if one.agrees else "not what the broker did"
        yield Prose(f"recomputed by {one.protocol}: {one.expected_offset}, {verdict}", depth=3)
        yield from (item(step, depth=4) for step in (one.steps if view.verbose else ()))
    elif not one.is_logged:
        yield Prose("no log line reports it: a snapshot shows what was there", depth=3)
    if view.verbose:
        yield from (Prose(_cited([citation], inputs), depth=4) for citation in one.citations)


def _on_page(one: ExplainedTruncation, references: References, anchor: str) -> Iterator[Block]:
    where = f"{one.topic_partition} on broker {known(one.broker_id)}"
    yield Section(title=f"{where}: {one.from_offset} → {one.to_offset}", level=3, link=anchor)
    yield Fact("When", utc(one.time_ms))
    yield Fact("Cause", f"{CAUSES[one.cause.name].name} ({one.cause.confidence}): {one.cause.reason}")
    yield from (Fact("Known bug", f"{bug.confidence} {bug.jira}: {bug.effect}") for bug in one.bugs)
    if not isinstance(one.leader, Absent) or not isinstance(one.leader_epoch, Absent):
        yield Fact("Leader", f"broker {known(one.leader)}, epoch {known(one.leader_epoch)}")
    counts = one.committed
    words = f"{counts.certain:,} committed, {counts.possible:,} possibly, {counts.no:,} not"
    if counts.certain + counts.possible + counts.no == 0:
        words = "not known: no copy of them is among the inputs"
    yield Fact("Records truncated", words)
    rule = str(one.protocol)
    if isinstance(one.agrees, bool):
        rule += f": {one.expected_offset}, {'as the broker did' if one.agrees else 'NOT what the broker did'}"
    elif not one.is_logged:
        rule += "; no log line reports this truncation, but a copy holds the records"
    yield Fact("Rule", rule)
    yield Fact("Evidence", "", references=references.of(one.citations, most=MOST_SOURCES))
    if one.steps:
        yield Folded(f"Steps of the recomputation: {where}", [item(step) for step in one.steps])


def _leaders(incidents: Sequence[PartitionIncident]) -> str:
    """Return the leaders in whose logs the losses are missing."""
    known = {one.is_leader_known for one in incidents if one.losses}
    if known == {True}:
        return "final leaders"
    if known == {False}:
        is_guess = any(one.leader_basis is LeaderBasis.LOG for one in incidents if one.losses)
        return "guessed leaders" if is_guess else "last leaders on record"
    return "final leaders, some of them guessed,"


def _lost(body: Explanation, view: View, references: References) -> Iterator[Block]:
    losses = [
        loss
        for incident in body.incidents
        for loss in incident.losses
        if view.verbose or incident.partition.topic not in METADATA_TOPICS
    ]
    if not losses:
        return
    yield Section(
        title="Ledger of losses" if view.page else f"What the {_leaders(body.incidents)} do not hold",
        anchor="losses",
        lead=f"Every run of records that some copy shows and the logs of the {_leaders(body.incidents)} do not hold. “Committed” is proven, never guessed. "
        "A holder in use may still become leader: the records that it holds are at risk, not lost.",
    )
    anchors = _anchors(body.incidents)
    most = len(losses) if view.page else MOST_LOSSES
    table = [_loss_row(loss, body.inputs, references, anchors, is_page=view.page) for loss in losses[:most]]
    yield Table(name="Runs of records", columns=_LOSSES, rows=table, has_heading=False, is_ledger=True)
    if len(losses) > most:
        yield Prose(f"{counted(len(losses) - most, 'more run')} (--format json has each)", Tone.QUIET, depth=1)
    holders: dict[str, None] = {}
    for loss in losses:
        for holder in loss.held_by:
            place = f"{body.inputs[holder.input].path.rstrip('/')}/{holder.path}"
            holders[place + (" (in use)" if holder.in_use else "")] = None
    if holders and not view.page:
        names = list(holders)
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        yield item(f"still held by: {shown}")
    if not view.page:
        yield from (
            item(in_short_sentences(f"reason: {reason}"))
            for reason in list(dict.fromkeys(loss.reason for loss in losses))[:6]
        )
    open_ones = [str(one.partition) for one in body.incidents if one.losses and one.counts_at_least]
    if open_ones:
        names_of = listed(open_ones, most=4)
        yield item(f"at least these of {names_of}: what else logs held that were truncated is not known")


def _loss_row(
    loss: Loss,
    inputs: Sequence[Input],
    references: References,
    anchors: Mapping[TopicPartition, str],
    *,
    is_page: bool,
) -> Sequence[Value]:
    partition = str(loss.topic_partition)
    records = counted(loss.aborted, "aborted record") if loss.aborted else counted(*amount([loss]))
    offsets = f"{loss.offsets.first}..{loss.offsets.last}"
    certainty = CERTAINTIES[loss.was_committed]
    state = (
        "maybe the same records there now"
        if loss.may_be_in_leader
        else "other records there now"
        if loss.is_replaced
        else "nothing there now"
    )
    if not is_page:
        return (partition, offsets, records, certainty, state)
    is_known = loss.cause is not CauseName.UNKNOWN
    cause = CAUSES[loss.cause].name if is_known else "cause not shown"
    likely = "possible: " if loss.confidence == "possible" and is_known else ""
    in_use = tuple(f"{full_path(inputs, one.input, one.path)} (in use)" for one in loss.held_by if one.in_use)
    copies = tuple(full_path(inputs, one.input, one.path) for one in loss.held_by if not one.in_use)
    return (
        Cell(text=partition, link=anchors.get(loss.topic_partition, "")),
        offsets,
        Cell(text=records, below=f"+ {counted(loss.markers, 'marker')}" if loss.markers and loss.records else ""),
        Cell(badge=certainty, tone=_TONES[loss.was_committed]),
        Cell(text=state, below=f"leader epoch {known(loss.leader_epoch)}"),
        Cell(text=f"{likely}{cause}", below=loss.reason),
        Cell(
            text="" if loss.held_by else "no copy among the inputs",
            items=in_use,
            more=copies,
            more_title=f"{counted(len(copies), 'copy', 'copies')} not in use",
        ),
        Cell(references=references.of(loss.citations, most=MOST_SOURCES)),
    )


def _anchors(incidents: Sequence[PartitionIncident]) -> dict[TopicPartition, str]:
    """Return the id of each partition's section: by its name, so that a link holds on the next page of the same incident too."""
    return {
        one.partition: f"partition-{one.partition}" if _PLAIN_NAME.fullmatch(str(one.partition)) else f"partition.{at}"
        for at, one in enumerate(sorted(incidents, key=_gravity)[:MOST_PARTITIONS], start=1)
    }


def _gravity(incident: PartitionIncident) -> tuple[bool, int]:
    """Return the place of a partition in the order: the worst state first, and the metadata log last."""
    states = [state.value for state in STATES["explain"]]
    rank = states.index(incident.state) if incident.state in states else len(states)
    return incident.partition.topic in METADATA_TOPICS, rank


def _partitions(body: Explanation, references: References) -> Iterator[Block]:
    """Yield every partition that something happened to: its state, and the picture of its logs."""
    incidents = sorted(body.incidents, key=_gravity)
    if not incidents:
        return
    yield Section(
        title="Partitions, before and after",
        anchor="partitions",
        lead="Each bar is one log of one snapshot, to scale within its partition; what all logs share may be shortened on the left. "
        "A time above a bar is when its broker was elected, UTC, at the offset where the leader epoch begins.",
    )
    anchors, drawn = _anchors(incidents), 0
    for incident in incidents[:MOST_PARTITIONS]:
        yield Section(title=str(incident.partition), level=3, anchor=anchors[incident.partition])
        tone = {1: Tone.BAD, 3: Tone.WARNING}
        code = STATES["explain"].get(State(incident.state), 0) if incident.state else 0
        words = (
            f"{incident.state.replace('-', ' ').capitalize()}{', by the ends of the logs' if incident.unread_below else ''}. "
            if incident.state
            else ""
        )
        parts = [part for part in (_leader_words(incident), _loss_words(incident.losses)) if part]
        told = "; ".join(parts)
        yield Prose(f"{words}{told[:1].upper()}{told[1:]}.", tone.get(code, Tone.PLAIN))
        if not incident.logs:
            yield Prose("No log of it is among the inputs.", Tone.QUIET)
        elif drawn >= MOST_FIGURES:
            yield Prose(f"Its logs are not drawn: the first {MOST_FIGURES} partitions are.", Tone.QUIET)
        else:
            drawn += 1
            yield from figure_of(incident, body.inputs, references)
            yield from over_time(incident, body.timeline, references)
    if len(incidents) > MOST_PARTITIONS:
        yield Prose(f"{len(incidents) - MOST_PARTITIONS:,} more partitions: --format json lists each.", Tone.QUIET)


def _leader_words(incident: PartitionIncident) -> str:
    if not isinstance(incident.leader, int):
        return "leader unknown"
    return f"leader: broker {incident.leader}" + ("" if incident.is_leader_known else f", {basis_words(incident)}")


def _loss_words(losses: Sequence[Loss]) -> str:
    """Return the records that the leader does not hold, in a few words; empty where it holds all."""
    count = sum(loss.records for loss in losses)
    if not count:
        return ""
    first, last = min(loss.offsets.first for loss in losses), max(loss.offsets.last for loss in losses)
    where = f"offset {first}" if first == last else f"offsets {first} to {last}"
    return f"{counted(count, 'record')} not in the leader's log, {where}"


def _groups(incidents: Sequence[PartitionIncident], references: References) -> Iterator[Block]:
    groups = [(incident, group) for incident in incidents for group in incident.groups]
    if groups:
        yield Section(title="Groups with offsets of lost records", anchor="clients")
    for incident, group in groups:
        where = {
            "ahead": "past the log end",
            "replaced": "inside offsets that hold other records now",
            "set-back": f"after it had committed {group.was_at}, which is lost",
        }[group.kind]
        yield item(
            f"{group.group} committed {group.offset} of {incident.partition}, {where}"
            f" {incident.log_end_offset if group.kind == 'ahead' else ''}",
            references=references.of((group.citation,)),
        )


_TORN_WORDS = {
    "marker-lost": "its data is there and its end marker is lost: read_committed consumers stop there",
    "data-lost": "its end marker is there and data is lost",
    "partly-lost": "a part of its data is lost, with its end marker: read_committed consumers stop there",
}


def _torn_transactions(incidents: Sequence[PartitionIncident], view: View) -> Iterator[Block]:
    most = view.most(MOST_LOSSES)
    torn = [(incident.partition, one) for incident in incidents for one in incident.torn_transactions.transactions]
    set_back = [(incident.partition, one) for incident in incidents for one in incident.torn_transactions.producers]
    if torn:
        yield Section(title="Torn transactions")
    for partition, one in torn[:most]:
        words = f"{partition}  producer {one.producer_id} epoch {one.producer_epoch}, {one.lost.first}..{one.lost.last}: {_TORN_WORDS[one.kind]}"
        yield item(words)
    if set_back:
        yield Section(title="Producers whose sequence the leader no longer knows")
    for partition, back in set_back[:most]:
        kept = f"ends at {back.kept_sequence}" if back.kept_sequence >= 0 else "holds none of it"
        words = f"{partition}  producer {back.producer_id} epoch {back.producer_epoch}: had reached sequence {back.lost_sequence}, the leader {kept}"
        yield item(words)


def _told_in_full(findings: Sequence[Finding]) -> Iterator[Block]:
    """Yield what the logs show beside all losses, in the words of its rules."""
    told = [one for one in findings if one.code in TOLD_BESIDE]
    if told:
        yield Section(title="What else the logs show")
    for one in told[:MOST_LOSSES]:
        yield item(f"{one.statement}. {one.meaning} {one.advice}")


def _operations(body: Explanation, references: References) -> Iterator[Block]:
    if not body.operations:
        return
    yield Section(
        title="Requested operations",
        anchor="operations",
        lead="Operators and clients requested these operations. They are no losses.",
    )
    events = [
        Event(time_ms=one.time_ms, words=one.meaning, references=references.of(one.citations))
        for one in body.operations
    ]
    yield Timeline(name="Requested operations", events=events)


def _bugs(body: Explanation, references: References) -> Iterator[Block]:
    """Yield every known bug whose trace was found, whether or not it did harm."""
    found = [(f"{incident.partition}, ", bug) for incident in body.incidents for bug in incident.bugs]
    found += [("", bug) for bug in body.broker_bugs]
    if not found:
        return
    yield Section(
        title="Known bugs of Kafka whose traces were found",
        anchor="bugs",
        lead="The broker's version has the bug and the trace fits; it is “possible” if something else leaves the same trace or only a range of versions is known.",
    )
    yield Table(
        name="Known bugs",
        columns=[Column("Bug"), Column("Where"), Column("What it does, and what was seen"), Column("Evidence")],
        rows=[
            (
                Cell(text=bug.jira, below=bug.confidence),
                f"{where}broker {known(bug.broker_id)}",
                Cell(text=bug.effect, below=bug.trace),
                Cell(references=references.of(bug.citations)),
            )
            for where, bug in found
        ],
    )


def _residuals(body: Explanation, references: References) -> Iterator[Block]:
    found = [(incident, one) for incident in body.incidents for one in incident.residuals]
    if not found:
        return
    yield Section(
        title="Replicas that stay different", anchor="different", lead="No rule of the protocol repairs these."
    )
    numbers = [Column(title, is_number=True) for title in ("Broker", "Leader", "From offset")]
    yield Table(
        name="Replicas that stay different",
        columns=[Column("Partition"), *numbers, Column("Damaged on broker"), Column("Evidence")],
        rows=[
            (
                str(incident.partition),
                known(one.broker_id),
                known(incident.leader),
                str(one.offset),
                ", ".join(str(broker) for broker in one.damaged_on) or "neither",
                Cell(references=references.of(one.citations)),
            )
            for incident, one in found
        ],
    )


def _closing(body: Explanation, view: View) -> Iterator[Block]:
    parts: list[tuple[str, Sequence[str]]] = [
        ("About what was given", body.notes),
        ("What would show more", body.missing),
    ]
    if view.page:
        parts.insert(0, ("What the inputs do not answer", unknowns(body)))
        if any(lines for _, lines in parts):
            yield Section(title="Open questions", anchor="open")
    for heading, lines in parts:
        if lines:
            yield Section(title=heading, level=3 if view.page else 2)
        yield from (item(sentence) for sentence in lines)
    if view.page:
        yield from _clocks(body)
        return
    shown = set(map(id, shown_entries(body.timeline, body.incidents, verbose=view.verbose)))
    rest = [one for one in body.timeline if id(one) not in shown and (one.kind != "truncation" or one.is_quiet)]
    if rest:
        idle = sum(one.kind == "truncation" and one.detail.get("effect") is False for one in rest)
        among = f", {counted(idle, 'truncation')} without effect among them" if idle else ""
        yield GAP
        yield Prose(f"{counted(len(rest), 'other event')}{among}: -v lists all.", Tone.QUIET)
    if body.problems:
        yield GAP
    yield from problem_items(body.problems, body.inputs, view)


def _clocks(body: Explanation) -> Iterable[Block]:
    found = [one for one in body.clocks if one[1].shift_ms or one[1].skew_ms or one[1].source == "assumed"]
    if not found:
        return ()
    numbers = [Column(title, is_number=True) for title in ("Added (ms)", "of it clock error (ms)")]
    table = Table(
        name="How the times of log files became UTC",
        columns=[Column("Log file", is_mono=True), *numbers, Column("Known from")],
        rows=[(path, str(clock.shift_ms), str(clock.skew_ms), clock.source) for path, clock in found],
    )
    return (Folded(f"Clocks of {counted(len(found), 'log file')}", [table]),)
