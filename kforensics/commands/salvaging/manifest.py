"""`manifest.json`: where each record came from, byte for byte, and what is missing with its reason."""

import base64
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kforensics import __version__
from kforensics.commands.salvaging.folder import OutFolder, WrittenFile
from kforensics.commands.salvaging.model import SavedLabel, SavedPartition, SavedRun, UnreadEnd
from kforensics.damage import Absent
from kforensics.evidence.model import Input
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
            "schema": "kforensics/salvage-manifest/1",
            "tool_version": __version__,
            "warning": PRIVATE,
            "what": what,
            "form": form,
            "filters": filters,
            "inputs": [_input(one) for one in inputs],
        }
        file.write(json.dumps(head, indent=1)[:-2].encode() + b',\n "partitions": [')
        for at, one in enumerate(partitions):
            file.write(b",\n  " if at else b"\n  ")
            for piece in _partition(one):
                file.write(piece)
        file.write(b"\n ]\n}\n")
        return file.finish()


def _input(one: Input) -> dict[str, Any]:
    return {
        "path": text(one.path),
        "kind": one.kind,
        "broker_id": absent(one.broker_id),
        "cluster_id": absent(one.cluster_id),
    }


def _partition(one: SavedPartition) -> Iterator[bytes]:
    best = next((label for label in one.labels if not label.owner), None)
    head = {
        "topic": one.partition.topic if one.is_named else absent(Absent.UNKNOWN),
        "partition": one.partition.partition if one.is_named else absent(Absent.UNKNOWN),
        **({} if one.is_named else {"name": one.name}),
        **({"likely": one.likely} if one.likely else {}),
        "topic_id": absent(one.topic_id),
        "is_other_topic": one.is_other_topic,
        "leader": {"broker_id": absent(one.leader), "source": one.leader_source or "unknown"},
        "records": one.records,
        "aborted_records": one.aborted_records,
        "markers": one.markers,
        "gaps": [plain_gap(gap) for gap in one.gaps],
        "unread_ends": [plain_end(end) for end in one.unread_ends],
        "files": [] if best is None else [plain_file(file) for file in best.files],
    }
    yield json.dumps(head)[:-1].encode()
    yield b', "runs": ['
    yield from _runs(best)
    yield b'], "alternates": ['
    for at, label in enumerate(label for label in one.labels if label.owner):
        described = {
            "leader_epoch": absent(label.leader_epoch),
            "owner": label.owner,
            "records": label.records,
            "files": [plain_file(file) for file in label.files],
        }
        yield (b", " if at else b"") + json.dumps(described)[:-1].encode() + b', "runs": ['
        yield from _runs(label)
        yield b"]}"
    yield b"]}"


def _runs(label: SavedLabel | None) -> Iterator[bytes]:
    for at, one in enumerate(label.runs if label is not None else ()):
        yield (b",\n   " if at else b"\n   ") + json.dumps(_run(one)).encode()


def _run(one: SavedRun) -> dict[str, Any]:
    return {
        "offsets": {"first": one.offsets.first, "last": one.offsets.last},
        "records": one.records,
        "leader_epochs": {"first": one.leader_epochs.first, "last": one.leader_epochs.last}
        if one.leader_epochs.last >= 0
        else absent(Absent.NOT_APPLICABLE),
        "source": {"input": one.input, "path": text(one.path), "position": one.position, "length": one.length},
        "sha256": absent(one.sha256),
    }


def plain_gap(gap: Gap) -> dict[str, Any]:
    """Return a gap as the manifest and the result show it.

    Args:
        gap: offsets that no output has, with the reason.
    """
    out = {
        "offsets": {"first": gap.offsets.first, "last": gap.offsets.last},
        "count": gap.count,
        "reason": gap.reason.value,
    }
    return {**out, "detail": text(gap.detail)} if gap.detail else out


def plain_end(end: UnreadEnd) -> dict[str, Any]:
    """Return an end of a log that can't be read as the manifest and the result show it.

    Args:
        end: bytes of which not even the offsets are known.
    """
    return {
        "source": {"input": end.input, "path": text(end.path), "position": end.position, "length": end.length},
        "offsets": absent(Absent.UNKNOWN),
    }


def plain_file(file: WrittenFile) -> dict[str, Any]:
    """Return a file of the output as the manifest shows it.

    Args:
        file: with its sha256.
    """
    return {"path": file.path, "bytes": file.bytes, "sha256": file.sha256}


def absent(value: Any) -> Any:
    """Return a value as JSON has it, or `{"absent": …}` with the reason for which it is not there.

    Args:
        value: a text that is no UTF-8 becomes base64.
    """
    return {"absent": value.value} if isinstance(value, Absent) else text(value) if isinstance(value, str) else value


def text(value: str) -> Any:
    """Return text that any reader of JSON takes; a path that is no UTF-8 as base64.

    Args:
        value: as `os.fsdecode` gives it.
    """
    try:
        value.encode()
    except UnicodeEncodeError:
        return {"base64": base64.b64encode(os.fsencode(value)).decode("ascii")}
    return value
