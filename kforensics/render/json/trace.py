"""The document of `trace`: `kforensics/trace/1`."""

import json
from collections.abc import Iterator
from functools import lru_cache

from kforensics.commands.cited import CitedFile
from kforensics.commands.result import Result
from kforensics.commands.trace import TraceReport
from kforensics.damage import Absent
from kforensics.evidence.plain import to_plain
from kforensics.reconcile.trace.model import SearchedPartition, SearchGap, TracedCopy, TracedRecord, Until
from kforensics.render.json.document import write_document, write_lines
from kforensics.render.json.shape import Document, Each, Field, Shape, own, shape
from kforensics.render.view import View


def write(result: Result[TraceReport], view: View) -> Iterator[str]:
    """Return the document; keys, values and headers only where they are asked for."""
    return write_document(TRACE, result, records=(_text(one, view) for one in result.body.records))


def write_lines_of_records(result: Result[TraceReport], view: View) -> Iterator[str]:
    """Yield the lines, each record read when its line is written."""
    return write_lines(TRACE, result, record=(_text(one, view) for one in result.body.records))


def _sum(name: str) -> Field:
    return Field(lambda body: sum(getattr(one, name) for one in body.partitions), "", int)


def _erasure(body: TraceReport) -> TraceReport | None:
    return None if body.erasure is None else body


shape(SearchGap, "Offsets that were not searched, or files that were not.", own("offsets reason detail"))
shape(
    SearchedPartition,
    "What was searched of a partition.",
    {
        **own("topic partition", "partition."),
        "leader": Field(".", "", {"broker_id": "leader", "is_known": "is_leader_known"}),
        **own("replicas segments bytes records log_start_offset log_end_offset"),
        "offsets": ("covered", "Of its lineage, those that were read."),
        "gaps": "",
    },
)
_OF_COPIES = ("timestamp_ms", "producer_id", "producer_epoch", "sequence", "key_length", "value_length")
"""The fields of a record that only a copy shows."""

_COPY = Shape(
    TracedCopy,
    "A copy of a record on a disk.",
    {**own("broker_id input path position"), "in": "kind", "until": ("", "Until when bytes lie there.")},
)
_SHOWN = "Only with `--show-payload`."
RECORD = Shape(
    TracedRecord,
    "A record, by offset, leader epoch and content. Of an offset that no copy holds the fields that only a copy shows are unknown.",
    {
        **own("topic partition", "partition."),
        **own("topic_id offset"),
        "timestamp_ms": Field("record.timestamp_ms", "", int | Absent),
        "leader_epoch": "",
        **{name: Field("", "", int | Absent) for name in _OF_COPIES[1:4]},
        "key_length": Field("", "Null for none.", int | None | Absent),
        "value_length": Field("", "Null for none.", int | None | Absent),
        **own("committed read_committed state"),
        "copies": Field("copies", "", Each(_COPY)),
        "fate": ("", "What became of it."),
        "key": Field("record.key", _SHOWN, bytes | None, is_optional=True),
        "value": Field("record.value", _SHOWN, bytes | None, is_optional=True),
        "headers": Field("record.headers", _SHOWN, tuple[tuple[bytes, bytes | None], ...], is_optional=True),
    },
)
"""As `_text` writes it."""

TRACE = Document(
    "trace",
    TraceReport,
    {
        "topic": "",
        "by": ("", "What was searched by; what was searched for is not in the document."),
        "placement": ("", "With `--key`; else null."),
        "looked_at": Field(
            ".",
            "",
            {
                "replicas": _sum("replicas"),
                **{name: _sum(name) for name in ("segments", "bytes", "records")},
                "partitions": "",
            },
        ),
        "erasure": Field(
            _erasure,
            "With `--erasure` alone.",
            {
                "places": Field("records.tally.copies", "How many hold bytes of the key.", int),
                "files": ("erasure", "The files that were searched."),
            },
            is_optional=True,
        ),
        "records": Field(lambda _: None, "Distinct ones.", Each(RECORD), is_optional=True),
    },
    streamed=("records",),
    lines={
        **dict.fromkeys(("answer", "input"), ""),
        "record": "records",
        "partition": Field(lambda result: result.body.partitions, "", SearchedPartition),
        "file": Field(lambda result: result.body.erasure or (), "", CitedFile),
        **dict.fromkeys(("finding", "problem"), ""),
    },
)


def _text(one: TracedRecord, view: View) -> str:
    """Return the object of a record as text: to make its fields values first would take most of the time where they are many."""
    record = one.record
    reasons = _reasons(("topic_id", one.topic_id), ("leader_epoch", one.leader_epoch))
    if record is None:
        time = producer_id = producer_epoch = sequence = key_length = value_length = "null"
        reasons = {**dict.fromkeys(_OF_COPIES, Absent.UNKNOWN.value), **reasons}
    else:
        is_of_producer = record.producer_id >= 0
        if record.timestamp_ms >= 0:
            time = str(record.timestamp_ms)
        else:
            time, reasons = "null", {"timestamp_ms": Absent.NOT_WRITTEN.value, **reasons}
        producer_id = str(record.producer_id) if is_of_producer else "null"
        producer_epoch = str(record.producer_epoch) if is_of_producer else "null"
        sequence = str(record.sequence) if record.sequence >= 0 else "null"
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
        f'"fate": {json.dumps(to_plain(fates)) if fates else "[]"}{payload}'
        f"{_beside(reasons)}}}"
    )


def _copy(copy: TracedCopy) -> str:
    broker_id, number, path, position, kind, until = copy
    return (
        f'{{"broker_id": {_dumped(broker_id)}, "input": {number}, "path": {_dumped(path)}, "position": {position}, '
        f'"in": "{kind.value}", "until": {_until(until)}{_beside(_reasons(("broker_id", broker_id)))}}}'
    )


def _reasons(*fields: tuple[str, object]) -> dict[str, str]:
    return {
        name: value.value for name, value in fields if isinstance(value, Absent) and value is not Absent.NOT_APPLICABLE
    }


def _beside(reasons: dict[str, str]) -> str:
    return f', "absent": {json.dumps(reasons)}' if reasons else ""


@lru_cache(maxsize=4096)
def _until(until: Until) -> str:
    return json.dumps(
        to_plain({"statement": until.statement, "not_before_ms": until.not_before_ms, "by_ms": until.by_ms})
    )


@lru_cache(maxsize=4096, typed=True)  # a topic may have the name of a reason for which a value is absent
def _dumped(value: str | int | Absent) -> str:
    return json.dumps(to_plain(value))
