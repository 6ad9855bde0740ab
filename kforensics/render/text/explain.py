"""An explanation as text: the conclusion first, then what happened, what is lost, why, and what more evidence would show."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rich.text import Text

from kforensics.commands.explanation import Explanation
from kforensics.commands.result import Result
from kforensics.damage import Absent
from kforensics.evidence.model import Citation, Input
from kforensics.findings.answers.explain import behind_headline
from kforensics.reconcile.incident.model import ExplainedTruncation, LeaderBasis, LossEntry, PartitionIncident
from kforensics.reconcile.timeline.events import TimelineEntry
from kforensics.render.escape import escape_text
from kforensics.render.events import sentences_of, truncation_sentence
from kforensics.render.text.screen import INDENT, Line, Style, Words, columns, hanging, section
from kforensics.render.text.whole import problem_lines, whole_screen
from kforensics.render.timeline import is_of_unknown_end, shown_entries
from kforensics.render.view import View
from kforensics.units import METADATA_TOPICS
from kforensics.words import counted, listed, shift_text, time_of_day

MOST_ENTRIES = 40
MOST_LOSSES = 60


@whole_screen
def write(result: Result[Explanation], view: View) -> Iterator[Line]:
    """Yield the rest of the conclusion, then what happened, what was lost, why, and what more evidence would show.

    Args:
        view: of the screen, and whether what is of no concern is listed too.
    """
    body = replace(result.body, findings=result.findings, problems=result.problems)
    verbose, unicode = view.verbose, view.unicode
    yield from _more(behind_headline(body.conclusion, body.answer, body.incidents))
    truncations = [truncation for incident in body.incidents for truncation in incident.truncations]
    entries = shown_entries(body.timeline, body.incidents, verbose=verbose)
    if entries:
        yield from section("What happened")
        shifts = {path: clock.shift_ms for path, clock in body.clocks}
        yield from _happened(entries, truncations, body.inputs, shifts, verbose=verbose, unicode=unicode)
    if truncations:
        yield from section("What was truncated")
        for truncation in truncations:
            yield from _truncation_lines(truncation, body.inputs, verbose=verbose, unicode=unicode)
    losses = [
        loss
        for incident in body.incidents
        for loss in incident.losses
        if verbose or incident.partition.topic not in METADATA_TOPICS
    ]
    if losses:
        yield from section(f"What the {_leaders(body.incidents)} do not hold")
        yield from _loss_lines(losses, body.inputs)
        open_ones = [str(one.partition) for one in body.incidents if one.losses and one.counts_at_least]
        if open_ones:
            names = escape_text(listed(open_ones, most=4))
            yield hanging(f"at least these of {names}: what else logs held that were truncated is not known")
    groups = [(incident, group) for incident in body.incidents for group in incident.groups]
    if groups:
        yield from section("Consumer groups with offsets of lost records")
        for incident, group in groups:
            where = {
                "ahead": "past the log end",
                "replaced": "inside offsets that hold other records now",
                "set-back": f"after it had committed {group.was_at}, which is lost",
            }[group.kind]
            yield hanging(
                f"{escape_text(group.group)} committed {group.offset} of {escape_text(str(incident.partition))}, {where}"
                f" {incident.log_end_offset if group.kind == 'ahead' else ''}"
            )
    yield from _torn_transactions(body.incidents)
    yield from _closing(body, verbose=verbose)


def _leaders(incidents: Sequence[PartitionIncident]) -> str:
    """Return the leaders in whose logs the losses are missing."""
    known = {one.is_leader_known for one in incidents if one.losses}
    if known == {True}:
        return "final leaders"
    if known == {False}:
        is_guess = any(one.leader_basis is LeaderBasis.LOG for one in incidents if one.losses)
        return "guessed leaders" if is_guess else "last leaders on record"
    return "final leaders, some of them guessed,"


def _more(sentences: Sequence[str]) -> Iterator[Line]:
    """Yield the further sentences of the conclusion."""
    if sentences:
        yield ""
    for sentence in sentences:
        yield Words(escape_text(sentence))


def _happened(
    entries: Sequence[TimelineEntry],
    truncations: Sequence[ExplainedTruncation],
    inputs: Sequence[Input],
    shifts: Mapping[str, int],
    *,
    verbose: bool,
    unicode: bool,
) -> Iterator[Line]:
    shown = [entry for entry in entries if entry.kind != "truncation" or _is_line_alone(entry, verbose=verbose)]
    rows = [
        (
            one.time_ms,
            escape_text(one.words),
            _cited(one.citations, inputs) + _shifted(one.citations, shifts)
            if isinstance(one.metadata_offset, Absent)
            else f"metadata offset {one.metadata_offset}",
        )
        for one in sentences_of(shown)
    ]
    arrow = "→" if unicode else "->"
    rows += [
        (
            truncation.time_ms,
            escape_text(truncation_sentence(truncation, arrow)),
            _cited(truncation.citations, inputs) + _shifted(truncation.citations, shifts),
        )
        for truncation in truncations
    ]
    rows.sort(key=lambda row: (not isinstance(row[0], int), row[0] if isinstance(row[0], int) else 0))
    hidden = 0 if verbose else max(0, len(rows) - MOST_ENTRIES)
    for time_ms, words, source in rows[: None if verbose else MOST_ENTRIES]:
        time = time_of_day(time_ms) if isinstance(time_ms, int) else "time unknown"
        text = f"{words} [{source}]" if source else words
        yield Words(text, indent=INDENT + " " * 14, first=f"{INDENT}{time:<12}  ")
    if hidden:
        yield Text(f"{INDENT}{hidden:,} more (-v lists them)", style=Style.QUIET)


def _is_line_alone(entry: TimelineEntry, *, verbose: bool) -> bool:
    """Whether a truncation is none of those that are explained, and is shown."""
    return is_of_unknown_end(entry) or (verbose and entry.is_quiet)


def _shifted(citations: Sequence[Citation], shifts: Mapping[str, int]) -> str:
    """Return what was added to the time of the cited line, where its clock or time zone is corrected."""
    shift_ms = shifts.get(citations[0].path, 0) if citations else 0
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
    return escape_text(short + place)


def _truncation_lines(
    truncation: ExplainedTruncation, inputs: Sequence[Input], *, verbose: bool, unicode: bool
) -> Iterator[Line]:
    arrow = "→" if unicode else "->"
    head = f"{escape_text(str(truncation.topic_partition))}  broker {truncation.broker_id}  {truncation.from_offset} {arrow} {truncation.to_offset}  {truncation.cause.name}, {truncation.cause.confidence}"
    yield Text(INDENT + head)
    yield Words(escape_text(truncation.cause.reason), indent=INDENT * 3)
    for bug in truncation.bugs:
        yield Words(escape_text(f"{bug.confidence} {bug.jira}: {bug.effect}"), indent=INDENT * 4, first=INDENT * 3)
    if isinstance(truncation.agrees, bool):
        verdict = "as the broker did" if truncation.agrees else "not what the broker did"
        yield Words(f"recomputed by {truncation.protocol}: {truncation.expected_offset}, {verdict}", indent=INDENT * 3)
        if verbose:
            for step in truncation.steps:
                yield Words(escape_text(step), indent=INDENT * 5, first=INDENT * 4)
    elif not truncation.is_logged:
        yield Words("no log line reports it: a snapshot shows what was there", indent=INDENT * 3)
    if verbose:
        for citation in truncation.citations:
            yield Words(_cited([citation], inputs), indent=INDENT * 4)


def _loss_lines(losses: Sequence[LossEntry], inputs: Sequence[Input]) -> Iterator[Line]:
    rows = []
    for loss in losses[:MOST_LOSSES]:
        certainty = {"certain": "certainly committed", "possible": "possibly committed", "no": "not committed"}[
            loss.was_committed
        ]
        state = "other records there now" if loss.is_replaced else "nothing there now"
        rows.append(
            (
                escape_text(str(loss.topic_partition)),
                f"{loss.offsets.first}..{loss.offsets.last}",
                counted(loss.aborted, "aborted record") if loss.aborted else counted(loss.records, "record"),
                certainty,
                state,
            )
        )
    yield from columns(rows)
    if len(losses) > MOST_LOSSES:
        yield Text(
            f"{INDENT}{counted(len(losses) - MOST_LOSSES, 'more run')} (--format json has each)", style=Style.QUIET
        )
    holders: dict[str, None] = {}
    for loss in losses:
        for holder in loss.held_by:
            place = f"{inputs[holder.input].path.rstrip('/')}/{holder.path}"
            holders[place + (" (in use)" if holder.in_use else "")] = None
    if holders:
        names = [escape_text(place) for place in holders]
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        yield hanging(f"still held by: {shown}")
    for reason in list(dict.fromkeys(loss.reason for loss in losses))[:6]:
        yield hanging(f"reason: {escape_text(reason)}")


_TORN_WORDS = {
    "marker-lost": "its data is there and its end marker is lost: read_committed consumers stop there",
    "data-lost": "its end marker is there and data is lost",
    "partly-lost": "a part of its data is lost, with its end marker: read_committed consumers stop there",
}


def _torn_transactions(incidents: Sequence[PartitionIncident]) -> Iterator[Line]:
    torn = [(incident.partition, one) for incident in incidents for one in incident.torn_transactions.transactions]
    set_back = [(incident.partition, one) for incident in incidents for one in incident.torn_transactions.producers]
    if torn:
        yield from section("Torn transactions")
    for partition, one in torn[:MOST_LOSSES]:
        words = f"{escape_text(str(partition))}  producer {one.producer_id} epoch {one.producer_epoch}, {one.lost.first}..{one.lost.last}: {_TORN_WORDS[one.kind]}"
        yield hanging(words)
    if set_back:
        yield from section("Producers whose sequence the leader no longer knows")
    for partition, back in set_back[:MOST_LOSSES]:
        kept = f"ends at {back.kept_sequence}" if back.kept_sequence >= 0 else "holds none of it"
        words = f"{escape_text(str(partition))}  producer {back.producer_id} epoch {back.producer_epoch}: had reached sequence {back.lost_sequence}, the leader {kept}"
        yield hanging(words)


def _closing(result: Explanation, *, verbose: bool) -> Iterator[Line]:
    quiet = sum(entry.is_quiet for entry in result.timeline)
    without_effect = sum(e.kind == "truncation" and e.detail.get("effect") is False for e in result.timeline)
    for heading, lines in (("About what was given", result.notes), ("What would show more", result.missing)):
        if lines:
            yield from section(heading)
        for sentence in lines:
            yield hanging(escape_text(sentence))
    if not verbose and quiet:
        noise = (
            counted(without_effect, "truncation") + " without effect"
            if without_effect
            else counted(quiet, "event") + " of no consequence"
        )
        yield ""
        yield Text(f"{noise} left out (-v lists all {len(result.timeline):,} events).", style=Style.QUIET)
    if result.problems:
        yield ""
        yield from problem_lines(result.problems, result.inputs)
