"""What is said of a capture that was written."""

from dataclasses import dataclass


class CannotRedact(Exception):  # noqa: N818 - it is no error of the caller's
    """A file that can't be redacted, so that it is left out; the words say why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCapture:
    """The file that was written, and what is in it."""

    path: str
    bytes: int
    replicas: int
    segments: int
    batches: int
    """Rows a batch that it holds."""
    files: int
    """Taken along byte for byte."""
    read_bytes: int
    record_bytes: int
    """Bytes of batches with records of users that it holds: 0 unless they were asked for."""
    reused_segments: int
    """Segments that were not read, since they are as an earlier capture has them."""
    reused_bytes: int
    """Bytes of those segments on the broker."""
    blanked_records: int
    """Records and lines that a redaction could not write again without names, so that it left them out."""
    changed: tuple[str, ...]
    """Files that changed while they were read, or between the beginning and the end: the broker was running."""
