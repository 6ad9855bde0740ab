"""The voters of a KRaft quorum as the newest metadata snapshot names them (KIP-853)."""

from pathlib import Path

from kforensics.damage import Absent
from kforensics.errors import EvidenceError
from kforensics.formats.log.records import Record
from kforensics.formats.segment.walk import iter_records
from kforensics.source.mapped import open_evidence
from kforensics.source.naming import FileKind, parse_file_name
from kforensics.source.walk import Listings, join

HEAD_LENGTH = 1 << 16
"""Bytes at the beginning of a snapshot that hold its control batches."""


def quorum_voters(listings: Listings, metadata_dir: str) -> frozenset[int] | Absent:
    """Return node ids of the voters of a quorum (KIP-853); absent where no snapshot names them, as in a quorum that is configured statically.

    Args:
        metadata_dir: the directory of the metadata log, relative to their root; its newest readable snapshot counts.
    """
    snapshots = []
    for entry in listings.of(metadata_dir).entries:
        name = parse_file_name(entry.name)
        if name.kind is FileKind.METADATA_SNAPSHOT and not name.is_transient and isinstance(name.base_offset, int):
            snapshots.append((name.base_offset, name.leader_epoch, entry.name))
    for _, _, file_name in sorted(snapshots, reverse=True):
        voters = _voters_of(listings.root / join(metadata_dir, file_name))
        if voters is not None:
            return voters
    return Absent.NOT_WRITTEN


def _voters_of(path: Path) -> frozenset[int] | None:
    from kforensics.formats.messages.control import ControlType, parse_control_record  # noqa: PLC0415 - the tables of messages take a while to load
    from kforensics.formats.messages.schema import Decoded  # noqa: PLC0415 - the tables of messages take a while to load

    try:
        with open_evidence(path) as file:
            for record in iter_records(file, end=HEAD_LENGTH):
                if not isinstance(record, Record) or not record.is_control:
                    return None
                control = parse_control_record(record.key, record.value)
                if control.type is ControlType.KRAFT_VOTERS and isinstance(control.value, Decoded):
                    return frozenset(int(voter["voter_id"]) for voter in control.value.fields["voters"])
    except EvidenceError:
        return None  # whoever reads the snapshot for its own sake says why
    return None
