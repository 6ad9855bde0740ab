"""The screen of `kforensics trace`: the answer, each record with its copies and what became of it, what was searched."""

from collections.abc import Iterator, Sequence
from itertools import islice

from rich.text import Text

from kforensics.commands.cited import CitedFile
from kforensics.commands.result import Result
from kforensics.commands.trace import TraceReport
from kforensics.damage import Absent
from kforensics.evidence.model import Input, full_path
from kforensics.reconcile.trace.model import SearchedPartition, TracedCopy, TracedRecord
from kforensics.render.escape import escape_text
from kforensics.render.text.screen import INDENT, Line, Words, columns, hanging
from kforensics.render.text.whole import problem_lines, whole_screen
from kforensics.render.trace_words import until_words
from kforensics.render.view import View
from kforensics.units import OffsetRange
from kforensics.words import byte_count, counted, utc_text

MOST_RECORDS = 20
"""Records that are shown without -v."""
MOST_PAYLOAD = 200
"""Bytes of a key, a value or a header that a screen shows."""


@whole_screen
def write(result: Result[TraceReport], view: View) -> Iterator[Line]:
    """Yield records and what was searched; -v lists all of them.

    Args:
        view: of the screen, whether payloads are shown, and whether all is listed.
    """
    body, most = result.body, 1 << 30 if view.verbose else MOST_RECORDS
    for one in islice(body.records, most):
        yield Text()
        yield from _record(one, result.inputs, view, with_until=view.verbose or body.erasure is not None)
    if len(body.records) > most:
        yield Text(f"{INDENT}and {counted(len(body.records) - most, 'more record')} (-v lists them)")
    for found in result.findings:
        yield Text()
        yield Words(f"{found.code}  {escape_text(found.statement)}")
    yield Text()
    yield Text("searched")
    yield from columns([_row(one) for one in body.partitions])
    if body.erasure is not None:
        yield Text()
        yield Text("hashes of the files that were searched")
        yield from columns([_file(one, result.inputs) for one in body.erasure.files])
    yield from problem_lines(result.problems, result.inputs)


def _record(one: TracedRecord, inputs: Sequence[Input], view: View, *, with_until: bool) -> Iterator[Line]:
    words = [f"{escape_text(str(one.partition))} offset {one.offset:,}: {one.state}, committed: {one.committed}"]
    record = one.record
    if record is not None:
        words.append(utc_text(record.timestamp_ms) if record.timestamp_ms >= 0 else "no time")
        if not isinstance(one.leader_epoch, Absent):
            words.append(f"leader epoch {one.leader_epoch}")
        if record.producer_id >= 0:
            words.append(f"producer {record.producer_id} epoch {record.producer_epoch} sequence {record.sequence}")
        value = "null" if record.value is None else byte_count(len(record.value))
        words.append(f"value {value}")
    yield Words(", ".join(words), indent=INDENT * 2)
    if with_until:
        for copy in one.copies:
            yield from columns([_copy(copy, inputs)])
            until = escape_text(until_words(copy.until))
            yield Words(until, indent=INDENT * 4, first=INDENT * 3)
    else:
        yield from columns([_copy(copy, inputs) for copy in one.copies])
    for fate in one.fate:
        statement = f"{fate.kind.value}: {escape_text(fate.statement)}"
        yield hanging(statement)
    if view.show_payload and record is not None:
        parts = [("key", record.key), ("value", record.value)]
        parts += [(f"header {escape_text(_shown(name))}", value) for name, value in record.headers]
        for name, part in parts:
            yield hanging(f"{name}: {escape_text(_shown(part))}")


def _shown(part: bytes | None) -> str:
    if part is None:
        return "null"
    shown = part[:MOST_PAYLOAD].decode("utf-8", "backslashreplace")
    return shown if len(part) <= MOST_PAYLOAD else f"{shown}… ({len(part):,} bytes)"


def _copy(copy: TracedCopy, inputs: Sequence[Input]) -> list[str]:
    source = inputs[copy.input]
    who = escape_text(source.path) if isinstance(copy.broker_id, Absent) else f"broker {copy.broker_id}"
    return [copy.kind.value, who, f"{escape_text(copy.path)} at byte {copy.position:,}"]


def _file(one: CitedFile, inputs: Sequence[Input]) -> list[str]:
    sha256 = one.sha256.value if isinstance(one.sha256, Absent) else one.sha256
    return [f"sha256 {sha256}", escape_text(full_path(inputs, one.input, one.path))]


def _row(one: SearchedPartition) -> list[str]:
    runs = [f"{run.first:,}..{run.last:,}" for run in one.covered[:3]]
    more = f" and {counted(len(one.covered) - 3, 'more run')}" if len(one.covered) > 3 else ""
    return [
        escape_text(str(one.partition)),
        f"{counted(one.replicas, 'copy', 'copies')}, {counted(one.segments, 'segment')}, {byte_count(one.bytes)}",
        f"offsets {', '.join(runs) or 'none'}{more}",
        counted(sum(isinstance(gap.offsets, OffsetRange) for gap in one.gaps), "gap"),  # the others are doubts
    ]
