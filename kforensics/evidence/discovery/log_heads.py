"""Broker logs by how they begin, whatever they are called."""

import zlib
from pathlib import Path

from kforensics.errors import EvidenceError
from kforensics.source.mapped import EvidenceFile, open_evidence
from kforensics.source.walk import FoundFile, Listings, walk_files

HEAD_LENGTH = 1 << 16
"""Bytes at a file's start that must show a broker's log line."""

MOST_HEADS = 10_000
"""Files of a directory that are looked into for a broker's log line."""

GZIP_MAGIC = b"\x1f\x8b"
GZIP_WINDOW = 31


def is_log_file(file: EvidenceFile) -> bool:
    """Whether the file begins like a broker's log, gzipped or not."""
    return looks_like_log(log_head(file))


def log_head(file: EvidenceFile) -> bytes:
    """Return the beginning of a file, inflated where it is gzipped; empty where that can't be done."""
    head = file.read(0, HEAD_LENGTH)
    if head.startswith(GZIP_MAGIC):
        try:
            return zlib.decompressobj(GZIP_WINDOW).decompress(head, HEAD_LENGTH)
        except zlib.error:
            return b""
    return head


def looks_like_log(head: bytes, *, is_named: bool = False) -> bool:
    """Whether a file that begins so is a broker's log."""
    from kforensics.formats.log_lines.unwrap import looks_like_broker_log  # noqa: PLC0415 - 30 ms, where no log is given

    return looks_like_broker_log(head, is_named=is_named)


def begins_like_a_log(path: Path) -> bool:
    """Whether the file at a path begins like a broker's log; one that can't be read does not."""
    try:
        with open_evidence(path) as file:
            return is_log_file(file)
    except EvidenceError:
        return False


def holds_logs(root: Path) -> bool:
    """Whether any file below a directory begins like a broker's log."""
    files = (item for item in walk_files(Listings(root)) if isinstance(item, FoundFile))
    return any(begins_like_a_log(root / item.path) for item, _ in zip(files, range(MOST_HEADS), strict=False))
