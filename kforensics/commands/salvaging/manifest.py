"""`manifest.json`: where each record came from, byte for byte, and what is missing with its reason."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kforensics import __version__
from kforensics.commands.salvaging.folder import OutFolder, WrittenFile
from kforensics.commands.salvaging.model import SavedLabel, SavedPartition, SavedRun, UnreadEnd
from kforensics.damage import Absent
from kforensics.evidence.model import Input
from kforensics.evidence.plain import fields_of, to_plain
from kforensics.reconcile.salvage.gaps import Gap

MANIFEST = "manifest.json"
PRIVATE = "keys, values and headers are written as they were produced: private data"


def write_manifest(
    folder: OutFolder,
    *,
    inputs: Sequence[Input],
    partitions: Sequence[SavedPartition],
    what: str,
    form: str,
    filters: Mapping[str, Any],
) -> WrittenFile:
    """Write the manifest; nothing in it depends on when or where it is written."""
    with folder.open(MANIFEST) as file:
        head = {
            "schema": "kforensics/salvage-manifest/2",
            "tool_version": __version__,
            "warning": PRIVATE,
            "what": what,
            "form": form,
            "filters": filters,
            "inputs": [fields_of(one, "path", "kind", "broker_id", "cluster_id") for one in inputs],
        }
        file.write(json.dumps(to_plain(head), indent=1)[:-2].encode() + b',\n "partitions": [')
        for at, one in enumerate(partitions):
            file.write(b",\n  " if at else b"\n  ")
            for piece in _partition(one):
                file.write(piece)
        file.write(b"\n ]\n}\n")
        return file.finish()


def _partition(one: SavedPartition) -> Iterator[bytes]:
    best = next((label for label in one.labels if not label.owner), None)
    head = {
        "topic": one.partition.topic if one.is_named else Absent.UNKNOWN,
        "partition": one.partition.partition if one.is_named else Absent.UNKNOWN,
        **({} if one.is_named else {"name": one.name}),
        **({"likely": one.likely} if one.likely else {}),
        "topic_id": one.topic_id,
        "is_other_topic": one.is_other_topic,
        "leader": {"broker_id": one.leader, "source": one.leader_source or "unknown"},
        "records": one.records,
        "aborted_records": one.aborted_records,
        "markers": one.markers,
        "gaps": [plain_gap(gap) for gap in one.gaps],
        "unread_ends": [plain_end(end) for end in one.unread_ends],
        "files": [] if best is None else best.files,
    }
    yield json.dumps(to_plain(head))[:-1].encode()
    yield b', "runs": ['
    yield from _runs(best)
    yield b'], "alternates": ['
    for at, label in enumerate(label for label in one.labels if label.owner):
        described = {
            "leader_epoch": label.leader_epoch,
            "owner": label.owner,
            "records": label.records,
            "files": label.files,
        }
        yield (b", " if at else b"") + json.dumps(to_plain(described))[:-1].encode() + b', "runs": ['
        yield from _runs(label)
        yield b"]}"
    yield b"]}"


def _runs(label: SavedLabel | None) -> Iterator[bytes]:
    for at, one in enumerate(label.runs if label is not None else ()):
        yield (b",\n   " if at else b"\n   ") + json.dumps(to_plain(_run(one))).encode()


def _run(one: SavedRun) -> dict[str, Any]:
    return {
        "offsets": one.offsets,
        "records": one.records,
        "leader_epochs": one.leader_epochs if one.leader_epochs.last >= 0 else None,
        "source": fields_of(one, "input", "path", "position", "length"),
        "sha256": one.sha256,
    }


def plain_gap(gap: Gap) -> dict[str, Any]:
    """Return a gap as the manifest and the result show it.

    Args:
        gap: offsets that no output has, with the reason.
    """
    return fields_of(gap, "offsets", "count", "reason", *(["detail"] if gap.detail else []))


def plain_end(end: UnreadEnd) -> dict[str, Any]:
    """Return an end of a log that can't be read as the manifest and the result show it.

    Args:
        end: bytes of which not even the offsets are known.
    """
    return {"source": fields_of(end, "input", "path", "position", "length"), "offsets": Absent.UNKNOWN}
