"""The traced records as one page: the answer, each record with its copies and what became of it, what was searched, and the hashes of the files of an erasure report."""

from collections.abc import Sequence
from itertools import islice

from kforensics.commands.result import Result
from kforensics.commands.trace import TraceReport
from kforensics.damage import Absent
from kforensics.evidence.model import Input
from kforensics.reconcile.trace.model import SearchedPartition, TracedRecord
from kforensics.render.html.pages import fill_page
from kforensics.render.html.verdict import advice_of, verdict_of
from kforensics.render.trace_words import until_words
from kforensics.render.view import View
from kforensics.words import byte_count, counted, utc_text

MOST_RECORDS = 5_000
MOST_GAPS = 200


def write(result: Result[TraceReport], view: View) -> str:
    """Return the page; keys, values and headers are never on it.

    Args:
        result: of which the first `MOST_RECORDS` records are shown, and the others counted.

    Raises:
        MissingExtra: jinja2 is not installed.
    """
    body = result.body
    records = list(islice(body.records, MOST_RECORDS))
    gaps = [str(gap) for one in body.partitions for gap in one.gaps]
    return fill_page(
        "trace.html",
        label=verdict_of(result.answer),
        answer=result.answer,
        advice=advice_of(result.answer),
        identity=[("Topic", body.topic), ("Searched by", ", ".join(body.by))],
        made_ms=view.made_ms,
        records=[_record(one, result.inputs) for one in records],
        more_records=len(body.records) - len(records),
        searched=[_searched(one) for one in body.partitions],
        gaps=gaps[:MOST_GAPS],
        more_gaps=len(gaps) - MOST_GAPS,
        files=[
            (_place(result.inputs, one.input, one.path), _bytes(one.length), _known(one.sha256))
            for one in (body.erasure.files if body.erasure is not None else ())
        ],
        is_erasure=body.erasure is not None,
        findings=result.findings,
        problems=[(one.place(result.inputs), one.message) for one in result.problems],
    )


def _record(one: TracedRecord, inputs: Sequence[Input]) -> dict[str, object]:
    record = one.record
    time = "" if record is None or record.timestamp_ms < 0 else utc_text(record.timestamp_ms)
    return {
        "partition": str(one.partition),
        "offset": f"{one.offset:,}",
        "state": one.state,
        "committed": one.committed,
        "time": time,
        "fate": [fate.statement for fate in one.fate],
        "copies": [
            (
                copy.kind.value,
                "" if isinstance(copy.broker_id, Absent) else f"broker {copy.broker_id}",
                _place(inputs, copy.input, copy.path),
                f"{copy.position:,}",
                until_words(copy.until),
            )
            for copy in one.copies
        ],
    }


def _searched(one: SearchedPartition) -> tuple[str, str, str]:
    runs = [f"{run.first:,}..{run.last:,}" for run in one.covered[:3]]
    more = f" and {counted(len(one.covered) - 3, 'more run')}" if len(one.covered) > 3 else ""
    what = f"{counted(one.replicas, 'copy', 'copies')}, {counted(one.segments, 'segment')}, {byte_count(one.bytes)}, {counted(one.records, 'record')}"
    return str(one.partition), what, f"{', '.join(runs) or 'none'}{more}"


def _place(inputs: Sequence[Input], number: int, path: str) -> str:
    given = inputs[number].path.rstrip("/")
    return given if path == "." else f"{given}/{path}"


def _bytes(length: int | Absent) -> str:
    return "unreadable" if isinstance(length, Absent) else f"{length:,}"


def _known(text: str | Absent) -> str:
    return text.value if isinstance(text, Absent) else text
