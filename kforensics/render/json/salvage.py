"""The document of `salvage`: `kforensics/salvage/1`."""

from collections.abc import Iterator
from typing import Any

from kforensics.commands.result import Result
from kforensics.commands.salvage import SalvageReport
from kforensics.commands.salvaging.manifest import plain_end, plain_file, plain_gap
from kforensics.commands.salvaging.model import SavedLabel, SavedPartition
from kforensics.damage import Absent
from kforensics.render.json.document import document, fields_of
from kforensics.render.view import View


def write(result: Result[SalvageReport], _view: View) -> Iterator[str]:
    """Return the fields that `docs/json.md` promises."""
    body = result.body
    fields = {
        **fields_of(body, "what", "form", "out", "records"),
        "carved": body.carved or Absent.NOT_APPLICABLE,
        "missing": sum(one.missing for one in body.partitions),
        "files": [plain_file(file) for file in body.files],
    }
    return document(result, "salvage", fields, streams={"partitions": map(_partition, body.partitions)})


def _partition(one: SavedPartition) -> dict[str, Any]:
    best = next((label for label in one.labels if not label.owner), None)
    return {
        "topic": one.partition.topic if one.is_named else Absent.UNKNOWN,
        "partition": one.partition.partition if one.is_named else Absent.UNKNOWN,
        "name": one.name,
        "likely": one.likely or Absent.NOT_APPLICABLE,
        "topic_id": one.topic_id,
        "is_other_topic": one.is_other_topic,
        "state": "gaps" if one.missing else "saved",
        "leader": {"broker_id": one.leader, "source": one.leader_source or Absent.UNKNOWN},
        "records": one.records,
        "committed": {"certain": one.certain, "possible": sum(label.possible for label in one.labels)},
        "aborted_records": one.aborted_records,
        "markers": one.markers,
        "files": [] if best is None else [plain_file(file) for file in best.files],
        "runs": 0 if best is None else len(best.runs),
        "gaps": [plain_gap(gap) for gap in one.gaps],
        "unread_ends": [plain_end(end) for end in one.unread_ends],
        "alternates": [_alternate(label) for label in one.labels if label.owner],
    }


def _alternate(label: SavedLabel) -> dict[str, Any]:
    return {
        "leader_epoch": label.leader_epoch,
        "owner": label.owner,
        "records": label.records,
        "files": [plain_file(file) for file in label.files],
    }
