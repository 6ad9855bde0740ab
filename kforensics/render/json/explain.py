"""An explanation as plain values for JSON: timeline, truncations, losses and conclusion, as `docs/json.md` promises."""

from collections.abc import Iterator
from typing import Any

from kforensics.commands.explanation import Explanation
from kforensics.commands.result import Result
from kforensics.damage import Absent
from kforensics.evidence.event_kinds import TIMELINE_ALIASES
from kforensics.reconcile.bugs.evidence import BugTrace
from kforensics.reconcile.incident.model import ExplainedTruncation, LossEntry, PartitionIncident
from kforensics.reconcile.timeline.events import TimelineEntry
from kforensics.reconcile.timeline.metadata_events import WHOLE_TOPIC
from kforensics.render.json.document import document, fields_of, json_line, seal_objects
from kforensics.render.view import View
from kforensics.units import TopicPartition
from kforensics.words import utc_text


def write(result: Result[Explanation], _view: View) -> Iterator[str]:
    """Return the document."""
    return document(result, "explain", _plain_explanation(result.body))


def write_lines(result: Result[Explanation], _view: View) -> Iterator[str]:
    """Return an object a line: the explanation, seal, findings, problems."""
    items = (*_explanation_lines(result.body), *seal_objects(result), *result.findings, *result.problems)
    return (json_line(item) for item in items)


def _plain_explanation(result: Explanation) -> dict[str, Any]:
    """Return the body of the document."""
    return {
        "timeline": [_plain_entry(entry) for entry in result.timeline],
        "truncations": [
            _plain_truncation(truncation) for incident in result.incidents for truncation in incident.truncations
        ],
        "losses": [
            _plain_loss(loss, at_least=incident.counts_at_least)
            for incident in result.incidents
            for loss in incident.losses
        ],
        "operations": [
            {
                "kind": one.kind,
                **_names(one.topic_partition),
                "time_ms": one.time_ms,
                "meaning": one.meaning,
                "citations": one.citations,
            }
            for one in result.operations
        ],
        "partitions": [_plain_incident(incident) for incident in result.incidents],
        "known_bugs": [_plain_bug(bug) for bug in result.broker_bugs],
        "conclusion": list(result.conclusion),
        "advice": list(result.advice),
        "would_tell_more": list(result.missing),
        "clocks": [
            {"path": path, "shift_ms": clock.shift_ms, "skew_ms": clock.skew_ms, "source": clock.source}
            for path, clock in result.clocks
        ],
        "notes": list(result.notes),
        "depth": result.depth,
    }


def _explanation_lines(result: Explanation) -> Iterator[dict[str, Any]]:
    """Yield events, truncations, losses and sentences of an explanation, one object a line, each with its type."""
    body = _plain_explanation(result)
    for kind, name in (("event", "timeline"), ("truncation", "truncations"), ("loss", "losses")):
        for item in body[name]:
            yield {"type": kind, **item}
    for sentence in body["conclusion"]:
        yield {"type": "conclusion", "sentence": sentence}


def _plain_entry(entry: TimelineEntry) -> dict[str, Any]:
    """Return one event of the timeline."""
    return {
        "time_ms": entry.time_ms,
        "time_utc": _utc(entry.time_ms),
        "kind": TIMELINE_ALIASES.get(entry.kind, entry.kind),
        "event": entry.kind,
        "broker_id": entry.broker_id,
        **_names(entry.topic_partition),
        "leader_epoch": entry.leader_epoch,
        "detail": dict(entry.detail),
        "quiet": entry.is_quiet,
        "citations": entry.citations,
    }


def _plain_truncation(truncation: ExplainedTruncation) -> dict[str, Any]:
    """Return one truncation that happened."""
    return {
        "broker_id": truncation.broker_id,
        **_names(truncation.topic_partition),
        "time_ms": truncation.time_ms,
        "time_utc": _utc(truncation.time_ms),
        "from_offset": truncation.from_offset,
        "to_offset": truncation.to_offset,
        "rule": truncation.protocol,
        **fields_of(truncation, "decided_by", "leader", "leader_epoch", "expected_offset", "agrees"),
        "steps": list(truncation.steps),
        "logged": truncation.is_logged,
        "cause": truncation.cause.name,
        "cause_reason": truncation.cause.reason,
        "confidence": truncation.cause.confidence,
        "references": list(dict.fromkeys(bug.jira for bug in truncation.bugs)),
        "committed": fields_of(truncation.committed, "certain", "possible", "no"),
        "citations": truncation.citations,
    }


def _plain_loss(loss: LossEntry, *, at_least: bool) -> dict[str, Any]:
    """Return one run of records that the final leader does not hold."""
    return {
        **_names(loss.topic_partition),
        "first_offset": loss.offsets.first,
        "last_offset": loss.offsets.last,
        **fields_of(loss, "records", "aborted", "markers", "committed", "was_committed"),
        "records_at_least": at_least,
        "replaced": loss.is_replaced,
        "leader_epoch": loss.leader_epoch,
        "reason": loss.reason,
        "held_by": [
            fields_of(one, "input", "path", "broker_id", "in_use", "is_vanishing", "is_stray") for one in loss.held_by
        ],
        "cause": loss.cause,
        "citations": loss.citations,
    }


def _plain_bug(bug: BugTrace) -> dict[str, Any]:
    """Return one known bug whose trace is there."""
    return {
        "reference": bug.jira,
        **fields_of(bug, "broker_id", "confidence", "effect", "trace", "citations"),
    }


def _plain_incident(incident: PartitionIncident) -> dict[str, Any]:
    return {
        **_names(incident.partition),
        **fields_of(incident, "state", "leader", "log_start_offset", "log_end_offset"),
        "groups": [
            {"group": group.group, "offset": group.offset, "kind": group.kind, "citations": [group.citation]}
            for group in incident.groups
        ],
        "stays_different": [
            {"broker_id": one.broker_id, "from_offset": one.offset, "rule": one.protocol, "citations": one.citations}
            for one in incident.residuals
        ],
        "known_bugs": [_plain_bug(bug) for bug in incident.bugs],
        "torn_transactions": list(incident.torn_transactions.transactions),
        "hanging_transactions": list(incident.hanging),
        "producers_set_back": list(incident.torn_transactions.producers),
        "other_topics": [{"input": one.input, "path": one.path} for one in incident.other_topics],
        "unread_below": incident.unread_below,
        "records_at_least": incident.counts_at_least,
        "open_questions": [
            {"kind": doubt.kind, "what": doubt.words, "settled_by": doubt.settled_by} for doubt in incident.doubts
        ],
    }


def _names(partition: TopicPartition | Absent) -> dict[str, Any]:
    if isinstance(partition, Absent):
        return {"topic": partition, "partition": partition}
    whole = partition.partition == WHOLE_TOPIC
    return {"topic": partition.topic, "partition": Absent.NOT_APPLICABLE if whole else partition.partition}


def _utc(time_ms: int | Absent) -> str | Absent:
    return time_ms if isinstance(time_ms, Absent) else utc_text(time_ms)
