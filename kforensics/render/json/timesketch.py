"""The events of an incident as Timesketch takes them: one object a line, each with `message`, `datetime` and `timestamp_desc`.

Timesketch has a place only for what has a time: events without one are left out, and are in the other formats.
"""

from collections.abc import Iterator
from typing import Any

from kforensics.commands.explanation import Explanation
from kforensics.commands.result import Result
from kforensics.commands.triage import Triage
from kforensics.damage import Absent
from kforensics.evidence.model import Citation, Input
from kforensics.reconcile.timeline.events import TimelineEntry
from kforensics.render.escape import escape_text
from kforensics.render.events import sentences_of
from kforensics.render.json.document import json_line
from kforensics.render.view import View
from kforensics.words import utc_second


def write(result: Result[Explanation | Triage], _view: View) -> Iterator[str]:
    """Yield an object for each event that has a time."""
    body = result.body.explained if isinstance(result.body, Triage) else result.body
    for entry in body.timeline:
        if isinstance(entry.time_ms, int) and (second := utc_second(entry.time_ms // 1000)) is not None:
            moment = f"{second}.{entry.time_ms % 1000:03d}000+00:00"
            yield json_line(_event(entry, entry.time_ms, moment, result.inputs))


def _event(entry: TimelineEntry, time_ms: int, moment: str, inputs: tuple[Input, ...]) -> dict[str, Any]:
    (sentence,) = sentences_of([entry])
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
