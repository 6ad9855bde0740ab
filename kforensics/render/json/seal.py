"""A manifest as it is stored, and the check of one as a document."""

from collections.abc import Iterator, Mapping
from typing import Any

from kforensics.commands.result import Result
from kforensics.commands.seal import CheckedManifest, NewSeal
from kforensics.damage import Absent
from kforensics.evidence.seal.state import Difference, SealEntry
from kforensics.render.json.document import document, to_plain
from kforensics.render.view import View


def write_manifest(result: Result[NewSeal], _view: View) -> Iterator[str]:
    """Return the manifest, made while it is written."""
    return result.body.pieces


def write(result: Result[CheckedManifest], _view: View) -> Iterator[str]:
    """Return the document of a check; what differs is written as it is met, so that a million differences need no memory."""
    body, check = result.body, result.body.check
    return document(
        result,
        "seal-check",
        {
            "inputs": [{"path": one.path, "kind": one.kind} for one in result.inputs],
            "sealed": {"tool_version": check.head.tool_version, **to_plain(check.head.envelope)},
        },
        streams={"differences": map(_plain_difference, body.differences)},
        after=lambda: {
            "counts": {"held": check.held, **{str(change): count for change, count in check.counts.items()}},
            "manifest_sha256": check.manifest_sha256,
            "signature": body.signature,
        },
    )


def _plain_difference(one: Difference) -> Mapping[str, Any]:
    """Return a difference as the document has it; either side is absent where it does not exist."""
    return {
        "input": one.subject.input,
        "path": one.subject.path,
        "change": one.change,
        "sealed": _plain_side(one.sealed),
        "found": _plain_side(one.found),
    }


def _plain_side(entry: SealEntry | Absent) -> object:
    if isinstance(entry, Absent):
        return entry
    return {
        "kind": entry.kind,
        "bytes": entry.length,
        "modified_utc": entry.modified,
        "mode": entry.mode,
        "sha256": entry.sha256,
    }
