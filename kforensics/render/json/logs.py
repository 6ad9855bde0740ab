"""`logs` as plain JSON values: kinds of lines, what happened in order of time, and an account of each file."""

from collections.abc import Iterator
from typing import Any

from kforensics.commands.logs import LineKind, LogsView, Run
from kforensics.commands.result import Result
from kforensics.evidence.broker_logs import LogFile
from kforensics.formats.log_lines.table import Message
from kforensics.reconcile.observed.clocks import Clock
from kforensics.render.json.document import document, to_plain
from kforensics.render.view import View


def write(result: Result[LogsView], _view: View) -> Iterator[str]:
    """Return the fields that `docs/json.md` promises."""
    body = result.body
    fields = {
        "line": None if not body.asked_line else {"text": body.asked_line, "message": _message(body.message)},
        "kinds": [_kind(one) for one in body.kinds],
        "files": [_file(one, clock) for one, clock in zip(body.files, body.clocks, strict=True)],
        "failures": [
            {"node": to_plain(one.node_id), "time_ms": to_plain(one.time_ms), "words": one.words}
            for one in body.failures
        ],
    }
    return document(result, "logs", fields, streams={"events": map(_run, body.runs)})


def _message(message: Message | None) -> dict[str, Any] | None:
    if message is None:
        return None
    section = message.row.section
    return {
        "kind": section.kind.value,
        "weight": section.weight.value,
        "meaning": section.meaning,
        "versions": message.row.versions,
        "partition": to_plain(message.topic_partition)
        if not isinstance(message.topic_partition, tuple)
        else str(message.topic_partition),
        "node": to_plain(message.broker_id),
        "detail": {name: to_plain(value) for name, value in message.fields.items()},
    }


def _kind(one: LineKind) -> dict[str, Any]:
    return {
        "kind": one.section.kind.value,
        "weight": one.section.weight.value,
        "meaning": one.section.meaning,
        "lines": one.lines,
        "first_ms": to_plain(one.first_ms),
        "last_ms": to_plain(one.last_ms),
        "nodes": sorted(one.nodes),
        "partitions": [name for name, _ in one.partitions.most_common()],
        "causes": [words for words, _ in one.causes.most_common()],
        "citations": [to_plain(one.example)] if one.example is not None else [],
    }


def _run(one: Run) -> dict[str, Any]:
    event = one.first.event
    partition = event.topic_partition
    return {
        "kind": one.section.kind.value,
        "weight": one.section.weight.value,
        "time_ms": to_plain(one.first.time_ms),
        "until_ms": to_plain(one.last.time_ms),
        "lines": one.lines,
        "node": to_plain(one.first.node_id),
        "partition": str(partition) if isinstance(partition, tuple) else to_plain(partition),
        "detail": {name: to_plain(value) for name, value in event.fields.items()},
        "citations": [to_plain(one.first.citation)],
    }


def _file(one: LogFile, clock: Clock) -> dict[str, Any]:
    return {
        "input": one.input,
        "path": one.path,
        "node": to_plain(one.node_id),
        "lines": one.census.lines,
        "known": sum(one.counts.values()),
        "first_ms": to_plain(one.first_time_ms),
        "last_ms": to_plain(one.last_time_ms),
        "clock": {"shift_ms": clock.shift_ms, "skew_ms": clock.skew_ms, "source": clock.source},
        "unknown": [{"message": message, "lines": count} for message, count in one.unknown.items()],
    }
