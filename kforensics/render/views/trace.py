"""What `trace` shows: each record with its copies and what became of it, then what was searched."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from kforensics.commands.cited import CitedFile
from kforensics.commands.result import Result
from kforensics.commands.trace import TraceReport
from kforensics.damage import Absent
from kforensics.evidence.model import Input, full_path
from kforensics.reconcile.trace.model import SearchedPartition, TracedCopy, TracedRecord, Until
from kforensics.render.blocks import (
    GAP,
    Block,
    Column,
    Facts,
    FactsForm,
    Prose,
    Section,
    Table,
    Tone,
    Value,
    item,
)
from kforensics.render.frame import node_name, problem_items
from kforensics.render.view import View
from kforensics.units import OffsetRange
from kforensics.words import byte_count, counted, utc_text

MOST_RECORDS = 20
"""Records that are shown without -v."""
MOST_ON_A_PAGE = 5_000
MOST_PAYLOAD = 200
"""Bytes of a key, a value or a header that a screen shows."""

_COPY = (
    Column("In"),
    Column("Broker"),
    Column("File", is_mono=True),
    Column("Byte", is_number=True, on_pages_only=True),
    Column("Its bytes stay there", on_pages_only=True),
)
_FILES = (
    Column("SHA-256", is_mono=True),
    Column("File", is_mono=True),
    Column("Bytes", is_number=True, on_pages_only=True),
)


def blocks(result: Result[TraceReport], view: View) -> Iterator[Block]:
    """Yield records and what was searched; -v lists all of them."""
    body = result.body
    if view.page:
        about = (("Topic", body.topic, Tone.PLAIN), ("Searched by", ", ".join(body.by), Tone.PLAIN))
        yield Facts(name="What was traced", form=FactsForm.IDENTITY, rows=about)
        yield Section(title="Records", anchor="records")
    most = MOST_ON_A_PAGE if view.page else view.most(MOST_RECORDS)
    for one in islice(body.records, most):
        yield GAP
        yield from _record(one, result.inputs, view, with_until=view.verbose or body.erasure is not None)
    if len(body.records) > most:
        yield Prose(f"and {counted(len(body.records) - most, 'more record')} (-v lists them)", depth=1)
    for found in () if view.page else result.findings:
        yield GAP
        yield Prose(f"{found.code}  {found.statement}")
    yield from _heading("searched", view)
    yield Table(
        name="Partitions that were searched",
        columns=[Column("Partition"), Column("Read"), Column("Offsets of its log"), Column("Not searched")],
        rows=[_searched(one) for one in body.partitions],
        has_heading=False,
    )
    if view.page:
        yield from (item(f"not searched: {gap}") for one in body.partitions for gap in one.gaps)
    if body.erasure is not None:
        yield from _heading("hashes of the files that were searched", view)
        yield Table(
            name="Files that were searched",
            columns=_FILES,
            rows=[_file(one, result.inputs, view) for one in body.erasure],
            has_heading=False,
        )
    yield from problem_items(result.problems, result.inputs, view)


def _heading(title: str, view: View) -> Iterable[Block]:
    """Return a heading, which a screen writes without emphasis."""
    return (Section(title=f"{title[:1].upper()}{title[1:]}"),) if view.page else (GAP, Prose(title))


def _time(one: TracedRecord) -> str:
    return "" if one.record is None or one.record.timestamp_ms < 0 else utc_text(one.record.timestamp_ms)


def _record(one: TracedRecord, inputs: Sequence[Input], view: View, *, with_until: bool) -> Iterator[Block]:
    words = [f"{one.partition} offset {one.offset:,}: {one.state}, committed: {one.committed}"]
    record = one.record
    if record is not None:
        words.append(_time(one) or "no time")
        if not isinstance(one.leader_epoch, Absent):
            words.append(f"leader epoch {one.leader_epoch}")
        if record.producer_id >= 0:
            words.append(f"producer {record.producer_id} epoch {record.producer_epoch} sequence {record.sequence}")
        value = "null" if record.value is None else byte_count(len(record.value))
        words.append(f"value {value}")
    if view.page:
        yield Section(title=f"{one.partition} offset {one.offset:,}", level=3)
    yield Prose(", ".join(words), depth=2)
    if with_until and not view.page:
        for copy in one.copies:
            yield _copies([copy], one, inputs, view)
            yield item(until_words(copy.until), depth=3)
    elif one.copies:
        yield _copies(one.copies, one, inputs, view)
    for fate in one.fate:
        yield item(f"{fate.kind.value}: {fate.statement}")
    if view.show_payload and record is not None and not view.page:
        parts = [("key", record.key), ("value", record.value)]
        parts += [(f"header {_shown(name)}", value) for name, value in record.headers]
        yield from (item(f"{name}: {_shown(part)}") for name, part in parts)


def _copies(copies: Sequence[TracedCopy], one: TracedRecord, inputs: Sequence[Input], view: View) -> Table:
    return Table(
        name=f"Copies of {one.partition} offset {one.offset:,}",
        columns=_COPY,
        rows=[_copy(copy, inputs, view) for copy in copies],
        has_heading=False,
    )


def _shown(part: bytes | None) -> str:
    if part is None:
        return "null"
    shown = part[:MOST_PAYLOAD].decode("utf-8", "backslashreplace")
    return shown if len(part) <= MOST_PAYLOAD else f"{shown}… ({len(part):,} bytes)"


def _copy(copy: TracedCopy, inputs: Sequence[Input], view: View) -> Sequence[Value]:
    source = inputs[copy.input]
    broker = source.path if isinstance(copy.broker_id, Absent) else node_name(copy.broker_id, inputs)
    if view.page:
        path = full_path(inputs, copy.input, copy.path)
        return (copy.kind.value, broker, path, copy.position, until_words(copy.until))
    return (copy.kind.value, broker, f"{copy.path} at byte {copy.position:,}")


def _file(one: CitedFile, inputs: Sequence[Input], view: View) -> Sequence[Value]:
    sha256 = one.sha256.value if isinstance(one.sha256, Absent) else one.sha256
    path = full_path(inputs, one.input, one.path)
    if view.page:
        return (sha256, path, one.length)
    return (f"sha256 {sha256}", path)


def _searched(one: SearchedPartition) -> Sequence[Value]:
    runs = [f"{run.first:,}..{run.last:,}" for run in one.covered[:3]]
    more = f" and {counted(len(one.covered) - 3, 'more run')}" if len(one.covered) > 3 else ""
    return (
        str(one.partition),
        f"{counted(one.replicas, 'copy', 'copies')}, {counted(one.segments, 'segment')}, {byte_count(one.bytes)}",
        f"offsets {', '.join(runs) or 'none'}{more}",
        counted(sum(isinstance(gap.offsets, OffsetRange) for gap in one.gaps), "gap"),  # the others are doubts
    )


def until_words(until: Until) -> str:
    """Return until when the bytes of a copy stay on disk: the reason, and the times that are known."""
    words = until.statement
    if not isinstance(until.not_before_ms, Absent):
        words += f", not before {utc_text(until.not_before_ms)}"
    if not isinstance(until.by_ms, Absent):
        words += f", due by {utc_text(until.by_ms)}"
    return words
