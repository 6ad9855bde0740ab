"""The document of `explain`: timeline, truncations, losses and conclusion; and its events as Timesketch takes them, which has a place only for what has a time."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from kforensics.commands.explanation import Explanation
from kforensics.commands.result import Result
from kforensics.commands.triage import Triage
from kforensics.damage import Absent
from kforensics.evidence.model import Citation, Input
from kforensics.findings.rules.causes import root_cause_sentence
from kforensics.reconcile.bugs.evidence import BugTrace
from kforensics.reconcile.history.losses import Holder, Loss
from kforensics.reconcile.history.residuals import Residual
from kforensics.reconcile.incident.doubts import Doubt
from kforensics.reconcile.incident.model import ExplainedTruncation, GroupAtRisk, PartitionIncident
from kforensics.reconcile.incident.operations import Operation
from kforensics.reconcile.observed.line_kinds import LineKind
from kforensics.reconcile.timeline.events import WHOLE_TOPIC, TimelineEntry
from kforensics.render.escape import escape_text
from kforensics.render.events import sentences_of
from kforensics.render.json.document import LAST_LINES, json_line
from kforensics.render.json.shape import Document, Each, Field, Shape, own, shape
from kforensics.render.view import View
from kforensics.units import TopicPartition
from kforensics.words import utc_second, utc_text


class _Loss(NamedTuple):
    entry: Loss
    records_at_least: bool


def _losses(body: Explanation) -> Iterator[_Loss]:
    return (_Loss(loss, one.counts_at_least) for one in body.incidents for loss in one.losses)


def _truncations(body: Explanation) -> Iterator[ExplainedTruncation]:
    return (truncation for one in body.incidents for truncation in one.truncations)


def _number(partition: TopicPartition | Absent) -> int | Absent:
    if isinstance(partition, Absent):
        return partition
    return Absent.NOT_APPLICABLE if partition.partition == WHOLE_TOPIC else partition.partition


def _utc(one: Any) -> str | Absent:
    return one.time_ms if isinstance(one.time_ms, Absent) else utc_text(one.time_ms)


_TIME_UTC = Field(_utc, "The same in ISO 8601.")
_COUNTS = own("certain possible no")
_PARTITION: dict[str, Any] = {
    "topic": "topic_partition.topic",
    "partition": Field(lambda one: _number(one.topic_partition), "", int | Absent),
}

shape(
    TimelineEntry,
    "An event of the timeline.",
    {
        "time_ms": "",
        "time_utc": _TIME_UTC,
        "kind": ("", "The same word as `event`."),
        "event": "kind",
        "broker_id": "",
        **_PARTITION,
        "leader_epoch": "",
        "detail": Field(lambda one: dict(one.detail), "What the line or record says beside, by kind.", dict[str, Any]),
        "quiet": ("is_quiet", "Of no consequence: on screens only with `-v`."),
        "citations": "",
    },
)
shape(
    ExplainedTruncation,
    "What was truncated; not what a leader lost with its disk, which `losses` has alone.",
    {
        "broker_id": "",
        **_PARTITION,
        "time_ms": "",
        "time_utc": _TIME_UTC,
        "from_offset": ("", "The log end before; at least that where no line or copy shows it."),
        "to_offset": ("", "The new log end."),
        "rule": ("protocol", "`hw`, `kip-101`, `kip-279`, `kip-595` or `recovery`."),
        "decided_by": ("", "In the broker's words."),
        **own("leader leader_epoch"),
        "expected_offset": ("", "Recomputed."),
        "agrees": ("", "Whether what was recomputed is what was logged."),
        "steps": "",
        "logged": "is_logged",
        "cause": "cause.name",
        "cause_reason": "cause.reason",
        "confidence": "cause.confidence",
        "references": Field(
            lambda one: list(dict.fromkeys(bug.jira for bug in one.bugs)),
            "JIRA numbers of known bugs that fit.",
            tuple[str, ...],
        ),
        "committed": Field("committed", "Records by certainty.", _COUNTS),
        "citations": "",
    },
)
shape(
    Holder,
    "A place that still holds the records.",
    own("input path broker_id in_use is_vanishing is_stray"),
)
shape(
    BugTrace,
    "A known bug whose trace is there.",
    {"reference": "jira", **own("broker_id confidence effect trace citations")},
)
shape(
    GroupAtRisk,
    "A consumer group whose committed offset is past the log, in offsets that hold other records now, or set back.",
    {**own("group offset kind"), "citations": Field(lambda one: [one.citation], "", tuple[Citation, ...])},
)
shape(
    Residual,
    "A replica that differs from the leader for good.",
    {"broker_id": "", "from_offset": "offset", "rule": "protocol", "citations": ""},
)
shape(
    Doubt,
    "What keeps a partition from being proven whole.",
    {"kind": "", "what": ("words", "What is not known."), "settled_by": ""},
)
shape(
    Operation,
    "What was done on purpose and is no loss.",
    {"kind": "", **_PARTITION, "time_ms": ("", "Unknown where only the disks show it."), **own("meaning citations")},
)
shape(
    PartitionIncident,
    "A partition that something happened to.",
    {
        "topic": "partition.topic",
        "partition": Field(lambda one: _number(one.partition), "", int | Absent),
        **own("state leader log_start_offset log_end_offset groups"),
        "stays_different": ("residuals", "Replicas that differ from the leader for good."),
        "known_bugs": "bugs",
        "torn_transactions": (
            "torn_transactions.transactions",
            "Transactions of which the log has the marker and not all records, or the other way round.",
        ),
        "hanging_transactions": "hanging",
        "producers_set_back": "torn_transactions.producers",
        "other_topics": Field(
            "other_topics", "Directories of other topics that had the name.", Each(own("input path"))
        ),
        "unread_below": ("", "At depth `tails`, the offset below which content was not read; else 0."),
        "records_at_least": ("counts_at_least", "As in `losses`."),
        "open_questions": ("doubts", "What keeps it from being proven whole."),
    },
)
_LOSS = Shape(
    _Loss,
    "A run of offsets, equally certain, that the final leader does not hold.",
    {
        "topic": "entry.topic_partition.topic",
        "partition": Field(lambda one: _number(one.entry.topic_partition), "", int | Absent),
        "first_offset": "entry.offsets.first",
        "last_offset": "entry.offsets.last",
        "records": "entry.records",
        "aborted": "entry.aborted",
        "markers": "entry.markers",
        "committed": ("entry.committed", "Of the offsets."),
        "was_committed": ("entry.was_committed", "Of the records themselves."),
        "records_at_least": (
            "",
            "More of the partition may be lost than its rows count: a log was truncated, or ended further on, and no input holds what was there.",
        ),
        "replaced": ("entry.is_replaced", "The leader has since given the offsets to other records."),
        "only_logged": (
            "entry.is_only_logged",
            "Lines alone say that the offsets were truncated: no input shows what was there, nor whether the leader's log holds the same.",
        ),
        "may_be_in_leader": (
            "entry.may_be_in_leader",
            "The leader's log has records there that may be the same ones, sent again.",
        ),
        "leader_epoch": "entry.leader_epoch",
        "reason": "entry.reason",
        "held_by": "entry.held_by",
        "cause": "entry.cause",
        "citations": "entry.citations",
    },
)

EXPLAIN = Document(
    "explain",
    Explanation,
    {
        "timeline": ("", "In order of time."),
        "truncations": Field(_truncations),
        "losses": Field(_losses, "In runs of offsets that are equally certain.", Each(_LOSS)),
        "operations": "",
        "partitions": ("incidents", "Those that something happened to."),
        "known_bugs": "broker_bugs",
        "conclusion": ("", "Sentences, the most important first."),
        "advice": "",
        "would_tell_more": "missing",
        "clocks": Field(
            "clocks",
            "The clock of each log file.",
            Each({"path": "0", "shift_ms": "1.shift_ms", "skew_ms": "1.skew_ms", "source": "1.source"}),
        ),
        **own("notes depth"),
    },
    lines={
        "event": "timeline",
        "truncation": "truncations",
        "loss": "losses",
        "conclusion": Field(
            lambda result: ({"sentence": one} for one in result.body.conclusion),
            "",
            Shape(None, "", {"sentence": Field("", "", str)}),
        ),
        **LAST_LINES,
    },
)


def write_timesketch(result: "Result[Explanation | Triage]", _view: View) -> Iterator[str]:
    """Yield an object for each event that has a time, as Timesketch takes it: with `message`, `datetime` and `timestamp_desc`."""
    body = result.body if isinstance(result.body, Explanation) else result.body.explained
    for entry in body.timeline:
        if isinstance(entry.time_ms, int) and (second := utc_second(entry.time_ms // 1000)) is not None:
            moment = f"{second}.{entry.time_ms % 1000:03d}000+00:00"
            yield json_line(_event(entry, entry.time_ms, moment, body.nodes))


def _event(entry: TimelineEntry, time_ms: int, moment: str, inputs: tuple[Input, ...]) -> dict[str, Any]:
    (sentence,) = sentences_of([entry], inputs)
    shown_by = "metadata record" if isinstance(sentence.metadata_offset, int) else "log line"
    partition = entry.topic_partition
    fields = {
        "message": escape_text(sentence.words),
        "datetime": moment,
        "timestamp": time_ms * 1000,
        "timestamp_desc": f"Time of the {shown_by}",
        "data_type": f"kafka:{entry.kind}",
        "tag": ["of no consequence"] if entry.is_quiet else [],
        "broker_id": entry.broker_id,
        "topic": partition if isinstance(partition, Absent) else partition.topic,
        "partition": partition if isinstance(partition, Absent) else partition.partition,
        "leader_epoch": entry.leader_epoch,
        "metadata_offset": sentence.metadata_offset,
        "source": [_place(one, inputs) for one in entry.citations],
    }
    return {name: value for name, value in fields.items() if not isinstance(value, Absent)}


def _place(one: Citation, inputs: tuple[Input, ...]) -> str:
    """Return where a person looks: the file, and the line or the byte in it."""
    where = f"{inputs[one.input].path}/{one.path}".removesuffix("/.")
    if isinstance(one.line, int):
        return f"{where}:{one.line}"
    return where if isinstance(one.span, Absent) else f"{where} at byte {one.span.position}"


def _root_cause(body: Triage) -> str | None:
    return None if body.cause is None else root_cause_sentence(body.cause)


def _partitions(one: LineKind) -> list[str]:
    return [name for name, _ in one.partitions.most_common()]


def _causes(one: LineKind) -> list[str]:
    return [words for words, _ in one.causes.most_common()]


def _nodes(one: LineKind) -> list[int]:
    return sorted(one.nodes)


KINDS = Each(
    {
        "kind": "section.kind",
        "weight": ("", "A cause that is over is a symptom."),
        "meaning": ("", "What such a line means, and whether it is over."),
        "lines": "",
        "first_ms": ("", "In UTC."),
        "last_ms": ("", "In UTC."),
        "nodes": _nodes,
        "partitions": (_partitions, "The most frequent first."),
        "causes": (_causes, "What exceptions below the lines say, the most frequent first."),
        "advice": ("", "What to do about it."),
        "example": ("", "One of them."),
    }
)
"""What lines of a kind say."""

TRIAGE = Document(
    "triage",
    Triage,
    {
        "depth": "",
        "partitions_total": "partitions",
        "root_cause": (
            _root_cause,
            "What is behind most of the lost records, in a sentence; null where nothing that is proven or likely explains them.",
        ),
        "topics": "",
        "starts": Field(
            "starts",
            "The last start that is predicted of each node, as in `predict`.",
            Each({"input": "0", "outcome": "1.result", **own("exception reason clean", "1.")}),
        ),
        "questions": Field("asked", "Each command that the inputs can answer.", Each({"command": "", "answer": ""})),
        "kinds": Field(
            "lines",
            "Kinds of lines that are not harmless, as in `logs`, where broker logs are all that there is.",
            KINDS,
        ),
        "not_asked": Field(
            "unasked", "Each command that these inputs can't answer, with the reason.", Each({"command": "", "why": ""})
        ),
    },
)
