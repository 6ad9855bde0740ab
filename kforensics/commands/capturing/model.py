"""What a capture is asked for, and what is said of one that was written."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kforensics.commands.capturing.stakes import MARGIN_OFFSETS
from kforensics.units import Depth

if TYPE_CHECKING:
    from kforensics.commands.redaction.pseudonyms import Pseudonyms


class CannotRedact(Exception):  # noqa: N818 - it is no error of the caller's
    """A file that can't be redacted, so that it is left out; the words say why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureRequest:
    """The request to capture log directories."""

    paths: Sequence[Path]
    out: Path | None
    """None where only the plan is asked for."""
    all_batches: bool = False
    depth: Depth = Depth.CONTENT
    """At depth tails of logs in use no more is read than the ends, as `diff --depth tails` does."""
    margin: int = MARGIN_OFFSETS
    with_tail: bool = False
    """The bytes of the batches that can still be truncated are taken along, with the records of users in them."""
    since: Sequence[Path] = ()
    """Earlier captures of the node: segments that did not change since are not read again."""
    is_stopped: Callable[[], bool] = lambda: False
    """Whether the capture is to be stopped: asked between segments."""
    pseudonyms: "Pseudonyms | None" = None
    """The pseudonyms of groups, hosts and principals; none where they are taken along as they are."""
    with_topics: bool = False
    """Names of topics become pseudonyms, too."""
    keep_going: bool = False
    """A path that can't be used is a problem in the report, and the others are read."""
    jobs: int | None = None
    rate: int | None = None
    """Bytes a second that the caller limits reading to, for the estimate."""
    lowest_priority: bool = False
    """The process steps behind every other for disk and processor, for good."""


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
