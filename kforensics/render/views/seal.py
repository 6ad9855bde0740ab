"""What `capture` and the check of a seal show: what is in the file or would be read; who sealed when, then the differences by kind."""

import json
from collections.abc import Iterator, Sequence

from kforensics.commands.capture import CaptureReport, WrittenCapture
from kforensics.commands.result import Result
from kforensics.commands.seal import CheckedManifest, NewSeal
from kforensics.commands.sealing import CheckedSignature, SignatureState
from kforensics.damage import Absent
from kforensics.evidence.model import Problem
from kforensics.evidence.seal import Change, Difference, ManifestHead, SealEntry
from kforensics.render.blocks import GAP, Block, Column, Prose, Section, Table, item
from kforensics.render.frame import problem_items
from kforensics.render.view import View
from kforensics.words import byte_count, counted, form

MOST_PROBLEMS = 20

_HEADINGS = {
    Change.CONTENT: "other content",
    Change.MISSING: "missing",
    Change.ADDED: "not sealed",
    Change.TIMES: "other times or permissions, same content",
}


def blocks(result: Result[CheckedManifest], view: View) -> Iterator[Block]:
    """Yield who sealed when, then the differences by kind."""
    check, signature = result.body.check, result.body.signature
    assert signature is not None  # once the answer is there, all has been compared
    yield Prose(_sealed_words(check.head))
    yield Prose(_signature_words(signature))
    for change, heading in _HEADINGS.items():
        count = check.counts[change]
        if not count:
            continue
        if change is Change.TIMES and not (view.verbose or view.page):
            yield Prose(f"{counted(count, 'entry', 'entries')} with {heading} (-v lists them).")
            continue
        yield Section(title=heading)
        for one in check.named[change]:
            yield item(_difference_words(one, check.shown))
        if count > len(check.named[change]):
            yield Prose(f"and {count - len(check.named[change]):,} more (--format json lists all)", depth=1)
    yield from _problems(check.problems, check.shown, view)


def manifest_blocks(result: Result[NewSeal], view: View) -> Iterator[Block]:
    """Yield what a new manifest names, with the hash of each file."""
    if not result.body.listed:
        return
    manifest = json.loads(result.body.listed)
    envelope = manifest["envelope"]
    by = f" by {envelope['operator']}" if envelope["operator"] else ""
    case = f", case {envelope['case_id']}" if envelope["case_id"] else ""
    yield Prose(f"Hashed {envelope['sealed_utc']}{by}{case}.")
    shown = [one.path for one in result.inputs]
    yield Section(title="Files and directories")
    yield Table(
        name="By path",
        columns=[
            Column("path", is_mono=True),
            Column("bytes", is_number=True),
            Column("modified"),
            Column("mode", is_mono=True),
            Column("SHA-256", is_mono=True),
        ],
        is_ledger=True,
        rows=[
            (
                place(one["input"], one["path"], shown),
                "" if one["bytes"] is None else one["bytes"],
                (one["modified_utc"] or "not known").partition(".")[0].replace("T", " "),
                one["mode"],
                one["sha256"] or one.get("problem") or one["kind"],
            )
            for one in manifest["entries"]
        ],
    )
    yield from _problems(result.problems, shown, view)


def _sealed_words(head: ManifestHead) -> str:
    envelope = head.envelope
    by = "" if isinstance(envelope.operator, Absent) else f" by {envelope.operator}"
    case = "" if isinstance(envelope.case_id, Absent) else f", case {envelope.case_id}"
    return f"Sealed {envelope.sealed_utc}{by} with kforensics {head.tool_version}{case}."


def _signature_words(signature: CheckedSignature) -> str:
    match signature.state:
        case SignatureState.HOLDS:
            return f"The signature is valid; key {signature.key_id}."
        case SignatureState.BROKEN:
            return f"About the signature: {signature.reason}."
        case SignatureState.NOT_CHECKED:
            return "The signature was not checked: --public-key names the key to check it with."
    return "The manifest is not signed: anyone who can alter the evidence could have altered it too."


def _difference_words(one: Difference, shown: Sequence[str]) -> str:
    subject = one.subject
    where = place(subject.input, subject.path, shown)
    if one.change is Change.CONTENT:
        return f"{where}: sealed {_content(one.sealed)}, found {_content(one.found)}"
    if one.change is Change.TIMES:
        return f"{where}: sealed {_times(one.sealed)}, found {_times(one.found)}"
    return f"{where} ({subject.kind})"


def _content(entry: SealEntry | Absent) -> str:
    if isinstance(entry, Absent):
        return "nothing"
    size = "" if isinstance(entry.length, Absent) else f" of {entry.length:,} bytes"
    return f"{entry.kind}{size} {str(entry.sha256)[:12]}"


def _times(entry: SealEntry | Absent) -> str:
    return "nothing" if isinstance(entry, Absent) else f"{entry.modified} mode {entry.mode}"


def place(number: int, path: str, shown: Sequence[str]) -> str:
    """Return the path of an entry below its input, as given."""
    return shown[number] if path == "." else f"{shown[number].rstrip('/')}/{path}"


def _problems(problems: Sequence[Problem], shown: Sequence[str], view: View) -> Iterator[Block]:
    most = MOST_PROBLEMS if not view.page else len(problems)
    if problems:
        yield Section(title="could not be compared")
    for one in problems[:most]:
        yield item(f"{place(one.input, one.path, shown)}: {one.message}")
    if len(problems) > most:
        yield Prose(f"and {len(problems) - most:,} more", depth=1)


def capture_blocks(result: Result[CaptureReport], view: View) -> Iterator[Block]:
    """Yield figures, and with -v all that could not be read and what changed meanwhile."""
    yield GAP
    one = result.body.capture
    if isinstance(one, WrittenCapture):
        yield from _written(one)
        for path in one.changed if view.verbose or view.page else ():
            yield item(f"changed meanwhile: {path}")
    else:
        plan = result.body.plan
        speed = f", at {byte_count(plan.bytes_per_second)} a second" if plan.bytes_per_second else ""
        yield Prose(
            f"{byte_count(plan.read_bytes)} to read{speed}: {counted(plan.replicas, 'replica')}, {counted(plan.segments, 'segment')}, "
            f"{counted(plan.files, 'file')} byte for byte."
        )
    if view.verbose:
        yield from problem_items(result.problems, result.inputs, view)


def _written(one: WrittenCapture) -> Iterator[Block]:
    yield Prose(
        f"{one.path}: {byte_count(one.bytes)}, out of {byte_count(one.read_bytes)} that were read: "
        f"{counted(one.replicas, 'replica')}, {counted(one.segments, 'segment')} with {counted(one.batches, 'row')} of batches, "
        f"{counted(one.files, 'file')} byte for byte."
    )
    if one.blanked_records:
        yield Prose(
            f"{counted(one.blanked_records, 'record or line', 'records or lines')} could not be written again without names, and "
            f"{form(one.blanked_records, 'was', 'were')} left out; the manifest says which kinds."
        )
    if one.reused_segments:
        yield Prose(
            f"{counted(one.reused_segments, 'segment')} of {byte_count(one.reused_bytes)} did not change since the earlier capture and "
            f"{form(one.reused_segments, 'was', 'were')} not read again."
        )
    if one.record_bytes:
        yield Prose(
            f"It holds {byte_count(one.record_bytes)} of batches with the records of users: it is as private as the log directories."
        )
    else:
        yield Prose("No key, value or header of a record of a topic of yours is in it.")
