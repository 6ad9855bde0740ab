"""`verify` as rows of JSON: the elements of `files`, and counts over all of them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from kforensics.commands.result import Result
from kforensics.commands.verify import VerifyResult
from kforensics.damage import Absent, Damage, DamageCause
from kforensics.evidence.checks.consistency import Verification
from kforensics.evidence.checks.context import FileKind, FileReport, FileState
from kforensics.reconcile.replicas.holders import IntactReplica, IntactReplicas
from kforensics.render.json.document import (
    document,
    fields_of,
    plain_answer,
    seal_objects,
    typed_lines,
)
from kforensics.render.view import View
from kforensics.units import OffsetRange


def write(result: Result[VerifyResult], _view: View) -> Iterator[str]:
    """Return the document piece by piece: a row a file is too much to hold where there are a million."""
    body = result.body
    fields = {"level": body.level.value, "totals": totals(body.verification)}
    return document(
        result, "verify", fields, streams={"files": (_file_row(report, body.intact) for report in body.files)}
    )


def write_lines(result: Result[VerifyResult], _view: View) -> Iterator[str]:
    """Return an object a line, each with its type."""
    body = result.body
    return typed_lines(
        ("answer", (plain_answer(result.answer),)),
        ("input", result.inputs),
        ("seal", seal_objects(result)),
        ("file", (_file_row(report, body.intact) for report in body.files)),
        ("finding", result.findings),
        ("problem", result.problems),
        ("totals", ({**totals(body.verification), "exit_code": result.exit_code},)),
    )


def _file_row(report: FileReport, intact: IntactReplicas) -> dict[str, Any]:
    """Return one element of `files`."""
    owner = intact.owner(report.input, report.path) if report.kind is FileKind.SEGMENT else None
    return {
        "input": report.input,
        "path": report.path,
        "kind": report.kind,
        "bytes": report.length,
        "state": report.state,
        "batches": report.batches,
        "records": report.records,
        "damage": [
            _place_row(place, None if owner is None else intact.holders(owner, place)) for place in report.damage
        ],
    }


def _place_row(place: Damage, holders: Sequence[IntactReplica] | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "position": place.span.position,
        "length": place.span.length,
        **fields_of(place, "kind", "gravity", "expected", "found", "offsets_lost"),
        "next_good": place.next_good
        if isinstance(place.next_good, Absent)
        else {"offset": place.next_good[0], "position": place.next_good[1]},
        "cause": _cause_row(place.cause),
        "checksums": place.checksums
        if isinstance(place.checksums, Absent)
        else {"stored": place.checksums[0], "computed": place.checksums[1]},
    }
    if holders is None or not isinstance(place.offsets_lost, OffsetRange):
        row["intact_on"] = row["intact_in"] = Absent.NOT_APPLICABLE
    else:
        known = (holder.broker_id for holder in holders if not isinstance(holder.broker_id, Absent))
        row["intact_on"] = list(dict.fromkeys(known))
        row["intact_in"] = [{"input": holder.input, "path": holder.path} for holder in holders]
    return row


def _cause_row(cause: DamageCause | Absent) -> Any:
    if isinstance(cause, Absent):
        return cause
    row: dict[str, Any] = {"kind": cause.kind, "detail": cause.detail}
    if cause.flip is not None:
        row |= cause.flip._asdict()
    return row


def totals(verification: Verification) -> dict[str, Any]:
    """Return counts over all files.

    Args:
        verification: of all inputs; counts of batches and records are of the files where they are known.
    """
    states = Counter(report.state for report in verification.files)
    return {
        "files": len(verification.files),
        "bytes": sum(report.length for report in verification.files),
        "batches": sum(report.batches for report in verification.files if isinstance(report.batches, int)),
        "records": sum(report.records for report in verification.files if isinstance(report.records, int)),
        "states": {state: states[state] for state in FileState},
    }
