"""The explanation of an incident as one page for the post-mortem: identity, verdict, what to do, losses, partitions, timeline, proof."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kforensics.commands.cited import CitedCapture, CitedFile
from kforensics.commands.explanation import Explanation
from kforensics.commands.result import Result
from kforensics.commands.sealing.report import seal_sentence
from kforensics.damage import Absent
from kforensics.evidence.model import Citation, Input, full_path
from kforensics.findings.answers.explain import behind_headline
from kforensics.findings.answers.model import CALM, STATES, Answer, State
from kforensics.findings.model import by_gravity
from kforensics.findings.rules.losses import basis_words
from kforensics.reconcile.history.causes import CauseName
from kforensics.reconcile.incident.conclusion import CAUSE_WORDS
from kforensics.reconcile.incident.model import ExplainedTruncation, Holder, LossEntry, PartitionIncident
from kforensics.reconcile.incident.root_cause import root_cause
from kforensics.render.html.identity import identity_of
from kforensics.render.html.lanes import draw_figure, loss_summary
from kforensics.render.html.pages import fill_page
from kforensics.render.html.timeline_rows import Happening, happenings, rows_within
from kforensics.render.html.unknowns import unknowns
from kforensics.render.html.verdict import AnswerMark, advice_of, verdict_of
from kforensics.render.root_cause import root_cause_sentence
from kforensics.render.timeline import is_of_unknown_end, shown_entries
from kforensics.render.view import View
from kforensics.units import METADATA_TOPICS, Depth, TopicPartition
from kforensics.words import utc_text

MOST_LOSSES = 500
MOST_TRUNCATIONS = 200
MOST_FIGURES = 40
MOST_PARTITIONS = 1_000
MOST_HAPPENINGS = 400
MOST_OTHER_HAPPENINGS = 2_000
MOST_FINDINGS = 200
MOST_PROBLEMS = 200
MOST_CITATIONS = 4
MOST_SOURCES = 40
"""Citations of one row, which are folded."""

_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]{1,260}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A citation as a link to the row of its file; without a link if the file is not listed."""

    words: str
    file: int | None
    """The row in the list of files, from 1."""


class _References:
    """Links from citations to the files that are listed with their hashes."""

    def __init__(self, inputs: Sequence[Input], files: Sequence[CitedFile]) -> None:
        self._inputs = inputs
        self._rows = {(file.input, file.path): number for number, file in enumerate(files, start=1)}

    def of(self, citations: Iterable[Citation], most: int = MOST_CITATIONS) -> tuple[Reference, ...]:
        """Return links for the first citations, and count the others."""
        every = [self._one(citation) for citation in dict.fromkeys(citations)]
        more = len(every) - most
        return (*every[:most], Reference(words=f"and {more} more", file=None)) if more > 0 else tuple(every)

    def _one(self, citation: Citation) -> Reference:
        names = self.full_path(citation.input, citation.path).rstrip("/").split("/")
        words = "/".join(names[-2:])
        if isinstance(citation.line, int):
            words += f":{citation.line}"
        elif not isinstance(citation.span, Absent):
            # The directory says more than the name of a segment; the link leads to the whole path.
            words = f"{names[-2 if len(names) > 1 else -1]} byte {citation.span.position}"
        return Reference(words=words, file=self._rows.get((citation.input, citation.path)))

    def full_path(self, number: int, path: str) -> str:
        """Return the path with the path of its input before it."""
        return full_path(self._inputs, number, path)


def write(result: Result[Explanation], view: View) -> str:
    """Return the page of an explanation; the same values give the same bytes.

    Raises:
        MissingExtra: jinja2 is not installed.
    """
    answer, seal = result.answer, result.seal
    body = replace(result.body, findings=result.findings, problems=result.problems)
    references = _References(body.inputs, body.files)
    truncations = [truncation for incident in body.incidents for truncation in incident.truncations]
    losses = [
        loss
        for incident in body.incidents
        if incident.partition.topic not in METADATA_TOPICS
        for loss in incident.losses
    ]
    findings = by_gravity(body.findings)
    anchors = _anchors(body.incidents)
    return fill_page(
        "explain.html",
        verdict=verdict_of(answer, is_whole=body.depth is Depth.CONTENT),
        headline=answer.headline,
        conclusion=_rest_of_conclusion(body, answer),
        identity=identity_of(body),
        made_ms=view.made_ms,
        root=_root_cause(body, references),
        advice=advice_of(answer),
        figures=_figures_of(body, answer, losses, truncations),
        is_redacted=body.is_redacted,
        seal=seal and seal_sentence(seal),
        seal_holds=seal is not None and seal.holds,
        losses=[_loss_row(loss, references, anchors) for loss in losses[:MOST_LOSSES]],
        more_losses=max(0, len(losses) - MOST_LOSSES),
        partitions=_partitions(body, references, anchors),
        most_figures=MOST_FIGURES,
        more_partitions=max(0, len(body.incidents) - MOST_PARTITIONS),
        **_timeline(body, truncations, references),
        truncations=[
            _truncation_entry(truncation, references, anchors) for truncation in truncations[:MOST_TRUNCATIONS]
        ],
        more_truncations=max(0, len(truncations) - MOST_TRUNCATIONS),
        groups=_groups(body, references),
        transactions=[
            (str(incident.partition), transaction)
            for incident in body.incidents
            for transaction in incident.torn_transactions.transactions
        ],
        producers=[
            (str(incident.partition), back)
            for incident in body.incidents
            for back in incident.torn_transactions.producers
        ],
        findings=[(item, references.of(item.citations)) for item in findings[:MOST_FINDINGS]],
        more_findings=max(0, len(findings) - MOST_FINDINGS),
        bugs=_bugs(body, references),
        operations=[(one, references.of(one.citations)) for one in body.operations[:MOST_FINDINGS]],
        more_operations=max(0, len(body.operations) - MOST_FINDINGS),
        residuals=_residuals(body, references),
        unknowns=unknowns(body),
        notes=body.notes,
        missing=body.missing,
        problems=[
            (references.full_path(problem.input, problem.path), problem.message)
            for problem in body.problems[:MOST_PROBLEMS]
        ],
        more_problems=max(0, len(body.problems) - MOST_PROBLEMS),
        files=[
            {
                "path": file.path if isinstance(file, CitedCapture) else references.full_path(file.input, file.path),
                "length": file.length,
                "sha256": file.sha256,
            }
            for file in body.files
        ],
        inputs=body.inputs,
        clocks=[
            (path, clock) for path, clock in body.clocks if clock.shift_ms or clock.skew_ms or clock.source == "assumed"
        ],
        exit_code=result.exit_code,
        known=_known,
        utc=_utc,
        is_absent=lambda value: isinstance(value, Absent),
    )


def _rest_of_conclusion(result: Explanation, answer: Answer) -> tuple[str, ...]:
    """Return the sentences behind the headline."""
    sentences = behind_headline(result.conclusion, answer, result.incidents)
    return tuple(sentence for sentence in sentences if sentence != answer.headline)


def _root_cause(result: Explanation, references: _References) -> dict[str, object] | None:
    """Return the root cause with its sources, or the sentence that the inputs do not show it; None where nothing is lost."""
    if not any(incident.losses for incident in result.incidents if incident.partition.topic not in METADATA_TOPICS):
        return None
    cause = root_cause(result.incidents)
    if cause is None:
        return {"sentence": "The inputs do not show what took these records.", "references": ()}
    return {"sentence": root_cause_sentence(cause), "references": references.of(cause.citations, most=MOST_SOURCES)}


def _anchors(incidents: Sequence[PartitionIncident]) -> dict[TopicPartition, str]:
    """Return the id of each partition's section: by its name, so that a link holds on the next page of the same incident too."""
    return {
        incident.partition: f"partition-{incident.partition}"
        if _PLAIN_NAME.fullmatch(str(incident.partition))
        else f"partition.{at}"
        for at, incident in enumerate(sorted(incidents, key=_gravity)[:MOST_PARTITIONS], start=1)
    }


def _partitions(
    result: Explanation, references: _References, anchors: Mapping[TopicPartition, str]
) -> list[dict[str, object]]:
    """Every partition that something happened to: its state, and the picture of its logs."""
    rows: list[dict[str, object]] = []
    drawn = 0
    for incident in sorted(result.incidents, key=_gravity)[:MOST_PARTITIONS]:
        is_drawn = bool(incident.logs) and drawn < MOST_FIGURES
        drawn += is_drawn
        figure = draw_figure(incident, result.inputs) if is_drawn else None
        rows.append(
            {
                "name": str(incident.partition),
                "anchor": anchors[incident.partition],
                "state": _mark_of(incident) if incident.state else None,
                "summary": loss_summary(incident.losses),
                "leader": _leader_words(incident),
                "has_logs": bool(incident.logs),
                "figure": figure,
                "terms": [(term, references.of(term.citations)) for term in figure.terms] if figure else [],
            }
        )
    return rows


def _gravity(incident: PartitionIncident) -> tuple[bool, int]:
    """Return the place of a partition in the order: the worst state first, and the metadata log last."""
    states = [state.value for state in STATES["explain"]]
    rank = states.index(incident.state) if incident.state in states else len(states)
    return incident.partition.topic in METADATA_TOPICS, rank


def _mark_of(incident: PartitionIncident) -> AnswerMark:
    return verdict_of(Answer(state=State(incident.state), headline=""), is_whole=not incident.unread_below)


def _leader_words(incident: PartitionIncident) -> str:
    if not isinstance(incident.leader, int):
        return "leader unknown"
    return f"leader: broker {incident.leader}" + ("" if incident.is_leader_known else f", {basis_words(incident)}")


def _figures_of(
    result: Explanation, answer: Answer, losses: Sequence[LossEntry], truncations: Sequence[ExplainedTruncation]
) -> list[tuple[str, str, str]]:
    """Return the figures at the top of the page: the words, the number, and its style.

    A zero is proven only where the answer is calm; else it is what the inputs show.
    """
    zero = "0" if answer.state in CALM else "none shown"

    def number(count: int) -> str:
        return f"{count:,}" if count else zero

    def lost(certainty: str) -> str:
        return number(sum(loss.records for loss in losses if loss.was_committed == certainty and not loss.in_use))

    at_risk = sum(loss.records for loss in losses if loss.was_committed != "no" and loss.in_use)
    elections = sum(entry.kind == "unclean-election" for entry in result.timeline)
    return [
        ("committed records lost", lost("certain"), "certain"),
        ("possibly committed, lost", lost("possible"), "possible"),
        ("not committed, discarded", lost("no"), "no"),
        *([("still held, at risk", number(at_risk), "possible")] if at_risk else []),
        ("truncations", number(len(truncations)), "plain"),
        ("unclean elections", number(elections), "plain"),
        ("partitions examined", f"{result.partitions:,}", "plain"),
    ]


def _timeline(
    result: Explanation, truncations: Sequence[ExplainedTruncation], references: _References
) -> Mapping[str, object]:
    shown = [
        entry
        for entry in shown_entries(result.timeline, result.incidents, verbose=False)
        if entry.kind != "truncation" or is_of_unknown_end(entry)
    ]
    # A truncation has a row of its own, with the log end offset before it.
    others = [entry for entry in result.timeline if entry.kind != "truncation" or entry.is_quiet]
    seen = set(map(id, shown))
    main, more_main = rows_within(happenings(shown, truncations), MOST_HAPPENINGS)
    other, more_other = rows_within(
        happenings(entry for entry in others if id(entry) not in seen),
        MOST_OTHER_HAPPENINGS,
    )
    return {
        "happenings": [_row(one, references) for one in main],
        "more_happenings": more_main,
        "others": [_row(one, references) for one in other],
        "more_others": more_other,
    }


def _row(one: Happening, references: _References) -> tuple[Happening, tuple[Reference, ...]]:
    return one, references.of(one.citations, most=2)


def _loss_row(loss: LossEntry, references: _References, anchors: Mapping[TopicPartition, str]) -> dict[str, object]:
    return {
        "partition": str(loss.topic_partition),
        "anchor": anchors.get(loss.topic_partition),
        "first": loss.offsets.first,
        "last": loss.offsets.last,
        "records": loss.records,
        "markers": loss.markers,
        "committed": loss.was_committed,
        "leader_epoch": loss.leader_epoch,
        "is_replaced": loss.is_replaced,
        "cause": CAUSE_WORDS[loss.cause] if loss.cause is not CauseName.UNKNOWN else "cause not shown",
        "is_possible": loss.confidence == "possible" and loss.cause is not CauseName.UNKNOWN,
        "reason": loss.reason,
        "in_use": [_holder(holder, references) for holder in loss.in_use],
        "copies": [_holder(holder, references) for holder in loss.held_by if not holder.in_use],
        "references": references.of(loss.citations, most=MOST_SOURCES),
    }


def _holder(holder: Holder, references: _References) -> str:
    path = references.full_path(holder.input, holder.path)
    return f"{path} (in use)" if holder.in_use else path


def _truncation_entry(
    truncation: ExplainedTruncation, references: _References, anchors: Mapping[TopicPartition, str]
) -> dict[str, object]:
    return {
        "truncation": truncation,
        "partition": str(truncation.topic_partition),
        "anchor": anchors.get(truncation.topic_partition),
        "cause": CAUSE_WORDS[truncation.cause.name],
        "references": references.of(truncation.citations, most=MOST_SOURCES),
    }


def _bugs(result: Explanation, references: _References) -> list[dict[str, object]]:
    """Return every known bug whose trace was found, whether or not it did harm."""
    found = [(str(incident.partition), bug) for incident in result.incidents for bug in incident.bugs]
    found += [("", bug) for bug in result.broker_bugs]
    return [
        {"partition": where, "bug": bug, "references": references.of(bug.citations)}
        for where, bug in found[:MOST_FINDINGS]
    ]


def _residuals(result: Explanation, references: _References) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = [
        {
            "partition": str(incident.partition),
            "broker": one.broker_id,
            "leader": incident.leader,
            "offset": one.offset,
            "damaged": ", ".join(str(broker) for broker in one.damaged_on),
            "references": references.of(one.citations),
        }
        for incident in result.incidents
        for one in incident.residuals
    ]
    return rows[:MOST_FINDINGS]


def _groups(result: Explanation, references: _References) -> list[dict[str, object]]:
    return [
        {
            "group": group.group,
            "partition": str(incident.partition),
            "offset": group.offset,
            "is_ahead": group.kind == "ahead",
            "log_end_offset": incident.log_end_offset,
            "references": references.of((group.citation,)),
        }
        for incident in result.incidents
        for group in incident.groups
    ]


def _known(value: object) -> object:
    return "unknown" if isinstance(value, Absent) else value


def _utc(time_ms: int | Absent) -> str:
    return "time unknown" if isinstance(time_ms, Absent) else utc_text(time_ms)
