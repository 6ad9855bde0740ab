"""The bytes that a capture taken with `--with-tail` holds."""

from collections.abc import Iterator

from kforensics.evidence.captured.reading import readable_ranges
from kforensics.source.capture import CapturePath
from kforensics.source.capture_file import CHUNK_LENGTH
from kforensics.source.mapped import open_evidence


def tail_bytes(path: CapturePath) -> Iterator[tuple[int, bytes]]:
    """Yield the bytes of a captured segment that the capture holds: their position in the file on the broker, and at most 4 MiB at a time.

    Args:
        path: of a segment in a capture; one whose bytes stayed on the broker gives nothing.

    Raises:
        EvidenceError: the capture can't be read, or is not what it claims.
    """
    with open_evidence(path) as file:
        for span in readable_ranges(file):
            for position in range(span.position, span.end, CHUNK_LENGTH):
                yield position, file.read(position, min(CHUNK_LENGTH, span.end - position))
