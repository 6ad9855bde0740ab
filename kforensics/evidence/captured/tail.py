"""The bytes of segments that a capture taken with `--with-tail` holds: the ends of logs, as they are on the broker."""

from kforensics.damage import Span
from kforensics.source.capture import CapturedSegment
from kforensics.source.mapped import EvidenceFile


def readable_ranges(file: EvidenceFile) -> tuple[Span, ...]:
    """Return the ranges of a segment that can be read: all of a file; of a captured segment what its capture holds, anything else is a `MissingBytes`.

    Args:
        file: the segment, as `open_evidence` gives it. A captured one is a source of bytes like any other file, with the length and the positions of the file on the broker:
            `walk_segment(file, level=Level.CRC, start=range.position)` reads the batches of a range, which begins at a batch wherever the log before it is sound.

    Returns:
        The ranges in the order of their positions, with bytes between any two of them missing; empty where the capture holds no bytes.

    Raises:
        EvidenceUnreadable: what the capture says of the bytes is impossible.
    """
    if not isinstance(file, CapturedSegment):
        return (Span(0, file.size),) if file.size else ()
    out: list[Span] = []
    for one in file.held():
        if out and out[-1].end == one.position:
            out[-1] = Span(out[-1].position, out[-1].length + one.length)
        else:
            out.append(Span(one.position, one.length))
    return tuple(out)


def is_whole(file: EvidenceFile) -> bool:
    """Whether all bytes of a segment can be read: of a captured one only where the capture holds them.

    Args:
        file: an open segment; one of the file system is whole.

    Raises:
        EvidenceUnreadable: what the capture says of them is impossible.
    """
    return readable_ranges(file) == ((Span(0, file.size),) if file.size else ())
