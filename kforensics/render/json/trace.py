"""The document of `trace`: `kforensics/trace/1`."""

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from kforensics.commands.result import Result
from kforensics.commands.trace import TraceReport
from kforensics.damage import Absent
from kforensics.reconcile.trace.model import SearchedPartition, SearchGap, TracedCopy, TracedRecord
from kforensics.render.json.answer import plain_answer
from kforensics.render.json.document import DocumentBody, document, to_plain, typed_lines
from kforensics.render.view import View


def write(result: Result[TraceReport], view: View) -> Iterator[str]:
    """Return the fields that `docs/json.md` promises; keys, values and headers only where they are asked for."""
    body = result.body
    fields = {
        "topic": body.topic,
        "by": body.by,
        "placement": body.placement or Absent.NOT_APPLICABLE,
        "looked_at": {
            "replicas": sum(one.replicas for one in body.partitions),
            "segments": sum(one.segments for one in body.partitions),
            "bytes": sum(one.bytes for one in body.partitions),
            "records": sum(one.records for one in body.partitions),
            "partitions": [_partition(one) for one in body.partitions],
        },
    }
    if body.erasure is not None:
        fields["erasure"] = {"places": body.records.tally.copies, "files": body.erasure.files}
    records = (json.dumps(_record(one, view)) for one in body.records)
    return document(result, DocumentBody(name="trace", fields=fields, streams={"records": records}))


def write_lines(result: Result[TraceReport], view: View) -> Iterator[str]:
    """Yield the answer, the inputs, the records, each read when its line is written, and what was searched."""
    body = result.body
    yield from typed_lines(("answer", [plain_answer(result.answer)]), ("input", result.inputs))
    for one in body.records:
        yield json.dumps({"type": "record", **_record(one, view)}) + "\n"
    yield from typed_lines(
        ("partition", (_partition(one) for one in body.partitions)),
        ("file", body.erasure.files if body.erasure is not None else ()),
        ("finding", result.findings),
        ("problem", result.problems),
    )


def _partition(one: SearchedPartition) -> dict[str, Any]:
    return {
        "topic": one.partition.topic,
        "partition": one.partition.partition,
        "leader": {"broker_id": one.leader, "is_known": one.is_leader_known},
        "replicas": one.replicas,
        "segments": one.segments,
        "bytes": one.bytes,
        "records": one.records,
        "log_start_offset": one.log_start_offset,
        "log_end_offset": one.log_end_offset,
        "offsets": [{"first": run.first, "last": run.last} for run in one.covered],
        "gaps": [_gap(gap) for gap in one.gaps],
    }


def _gap(gap: SearchGap) -> dict[str, Any]:
    offsets = gap.offsets if isinstance(gap.offsets, Absent) else {"first": gap.offsets.first, "last": gap.offsets.last}
    return {"offsets": offsets, "reason": str(gap.reason), "detail": gap.detail}


def _record(one: TracedRecord, view: View) -> dict[str, Any]:
    """Return the record as `to_plain` would give it, which would take most of the time where they are many."""
    record = one.record
    unknown, none = _plain(Absent.UNKNOWN), _plain(Absent.UNKNOWN if record is None else Absent.NOT_APPLICABLE)
    is_of_producer = record is not None and record.producer_id >= 0
    plain: dict[str, Any] = {
        "topic": _plain(one.partition.topic),
        "partition": one.partition.partition,
        "topic_id": _plain(one.topic_id),
        "offset": one.offset,
        "timestamp_ms": unknown if record is None else _time(record.timestamp_ms),
        "leader_epoch": _number(one.leader_epoch),
        "producer_id": record.producer_id if record is not None and is_of_producer else none,
        "producer_epoch": record.producer_epoch if record is not None and is_of_producer else none,
        "sequence": record.sequence if record is not None and record.sequence >= 0 else none,
        "key_length": unknown if record is None else _length(record.key),
        "value_length": unknown if record is None else _length(record.value),
        "committed": one.committed,
        "read_committed": one.read_committed,
        "state": one.state,
        "copies": [_copy(copy) for copy in one.copies],
        "fate": [
            {"kind": fate.kind.value, "statement": _plain(fate.statement), "citations": to_plain(fate.citations)}
            for fate in one.fate
        ],
    }
    if view.show_payload and record is not None:
        plain |= to_plain({"key": record.key, "value": record.value, "headers": record.headers})
    return plain


def _copy(copy: TracedCopy) -> dict[str, Any]:
    return {
        "broker_id": _number(copy.broker_id),
        "input": copy.input,
        "path": _plain(copy.path),
        "position": copy.position,
        "in": copy.kind.value,
        "until": {
            "statement": _plain(copy.until.statement),
            "not_before_ms": _number(copy.until.not_before_ms),
            "by_ms": _number(copy.until.by_ms),
        },
    }


@lru_cache(maxsize=4096)
def _plain(value: str | Absent) -> Any:
    return to_plain(value)


def _number(value: int | Absent) -> Any:
    return _plain(value) if isinstance(value, Absent) else value


def _time(time_ms: int) -> Any:
    return time_ms if time_ms >= 0 else _plain(Absent.NOT_WRITTEN)


def _length(part: bytes | None) -> int | None:
    return None if part is None else len(part)
