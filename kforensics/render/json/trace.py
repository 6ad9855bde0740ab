"""The document of `trace`: `kforensics/trace/1`."""

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from kforensics.commands.result import Result
from kforensics.commands.trace import TraceReport
from kforensics.damage import Absent
from kforensics.reconcile.trace.model import SearchedPartition, SearchGap, TracedCopy, TracedRecord, Until
from kforensics.render.json.document import document, fields_of, plain_answer, to_plain, typed_lines
from kforensics.render.view import View


def write(result: Result[TraceReport], view: View) -> Iterator[str]:
    """Return the fields that `docs/json.md` promises; keys, values and headers only where they are asked for.

    Args:
        result: of `trace`; its records are read while they are written.
    """
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
    records = (_text(one, view) for one in body.records)
    return document(result, "trace", fields, streams={"records": records})


def write_lines(result: Result[TraceReport], view: View) -> Iterator[str]:
    """Yield the answer, the inputs, the records, each read when its line is written, and what was searched."""
    body = result.body
    yield from typed_lines(("answer", [plain_answer(result.answer)]), ("input", result.inputs))
    for one in body.records:
        yield f'{{"type": "record", {_text(one, view)[1:]}\n'
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
        **fields_of(one, "replicas", "segments", "bytes", "records", "log_start_offset", "log_end_offset"),
        "offsets": [{"first": run.first, "last": run.last} for run in one.covered],
        "gaps": [_gap(gap) for gap in one.gaps],
    }


def _gap(gap: SearchGap) -> dict[str, Any]:
    offsets = gap.offsets if isinstance(gap.offsets, Absent) else {"first": gap.offsets.first, "last": gap.offsets.last}
    return {"offsets": offsets, "reason": str(gap.reason), "detail": gap.detail}


def _text(one: TracedRecord, view: View) -> str:
    """Return the object of a record as text: to make its fields values first would take most of the time where they are many."""
    record = one.record
    if record is None:
        unknown = _dumped(Absent.UNKNOWN)
        time = producer_id = producer_epoch = sequence = key_length = value_length = unknown
    else:
        none = _dumped(Absent.NOT_APPLICABLE)
        is_of_producer = record.producer_id >= 0
        time = str(record.timestamp_ms) if record.timestamp_ms >= 0 else _dumped(Absent.NOT_WRITTEN)
        producer_id = str(record.producer_id) if is_of_producer else none
        producer_epoch = str(record.producer_epoch) if is_of_producer else none
        sequence = str(record.sequence) if record.sequence >= 0 else none
        key_length = "null" if record.key is None else str(len(record.key))
        value_length = "null" if record.value is None else str(len(record.value))
    fates = [{"kind": fate.kind.value, "statement": fate.statement, "citations": fate.citations} for fate in one.fate]
    payload = ""
    if view.show_payload and record is not None:
        shown = {"key": record.key, "value": record.value, "headers": record.headers}
        payload = f", {json.dumps(to_plain(shown))[1:-1]}"
    return (
        f'{{"topic": {_dumped(one.partition.topic)}, "partition": {one.partition.partition}, '
        f'"topic_id": {_dumped(one.topic_id)}, "offset": {one.offset}, "timestamp_ms": {time}, '
        f'"leader_epoch": {_dumped(one.leader_epoch)}, "producer_id": {producer_id}, '
        f'"producer_epoch": {producer_epoch}, "sequence": {sequence}, '
        f'"key_length": {key_length}, "value_length": {value_length}, "committed": "{one.committed}", '
        f'"read_committed": "{one.read_committed}", "state": "{one.state}", '
        f'"copies": [{", ".join([_copy(copy) for copy in one.copies])}], '
        f'"fate": {json.dumps(to_plain(fates)) if fates else "[]"}{payload}}}'
    )


def _copy(copy: TracedCopy) -> str:
    broker_id, number, path, position, kind, until = copy
    return (
        f'{{"broker_id": {_dumped(broker_id)}, "input": {number}, "path": {_dumped(path)}, "position": {position}, '
        f'"in": "{kind.value}", "until": {_until(until)}}}'
    )


@lru_cache(maxsize=4096)
def _until(until: Until) -> str:
    return json.dumps(
        to_plain({"statement": until.statement, "not_before_ms": until.not_before_ms, "by_ms": until.by_ms})
    )


@lru_cache(maxsize=4096, typed=True)  # a topic may have the name of a reason for which a value is absent
def _dumped(value: str | int | Absent) -> str:
    return json.dumps(to_plain(value))
