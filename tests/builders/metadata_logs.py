"""Metadata logs made of records, each record in the newest version that the tables have unless another is named."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.evidence.metadata.files import MetadataFiles, find_metadata_logs
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.evidence.metadata.log import read_metadata_log
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from kforensics.formats.messages.metadata import METADATA_TABLES, encode_metadata_record

TOPIC_ID = "utqilf0YTC25ZZCcD1bqxw"
KEYS = {table.name: key for key, table in METADATA_TABLES.items()}


def metadata_record(name: str, fields: dict[str, Any], version: int | None = None) -> bytes:
    """The value of a metadata record."""
    newest = max(METADATA_TABLES[KEYS[name]].versions)
    return encode_metadata_record(KEYS[name], newest if version is None else version, fields)


def metadata_batch(offset: int, values: Sequence[bytes], *, times_ms: Sequence[int] = (), epoch: int = 1) -> bytes:
    """A batch of metadata records, all of the same time unless times are given."""
    times = times_ms or [1_000] * len(values)
    rows = [(time, None, value) for time, value in zip(times, values, strict=True)]
    return encode_record_batch(build_record_batch(offset, rows, partition_leader_epoch=epoch))


def metadata_log(tmp_path: Path, *batches: bytes) -> MetadataFiles:
    """The files of a metadata log of one segment."""
    target = tmp_path / "__cluster_metadata-0"
    target.mkdir(parents=True, exist_ok=True)
    (target / f"{0:020}.log").write_bytes(b"".join(batches))
    (files,) = find_metadata_logs(find_inputs([target]))
    return files


def history_of(tmp_path: Path, *batches: bytes) -> MetadataHistory:
    """The history that such a log tells."""
    return read_metadata_log(metadata_log(tmp_path, *batches))
