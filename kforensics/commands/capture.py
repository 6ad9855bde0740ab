"""What `capture` does: the evidence of one node, read once in the order in which it can vanish, into one file."""

import datetime as dt
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kforensics.ask.model import Ask
from kforensics.case.processes import Progress
from kforensics.commands.capturing.container import CaptureWriter, WrittenCapture
from kforensics.commands.capturing.earlier_captures import (
    EarlierCaptures,
    keep_recovered,
    left_behind,
    left_by_killed,
    resume_path,
)
from kforensics.commands.capturing.plan import MARGIN_OFFSETS, CapturePlan, node_of, plan_capture
from kforensics.commands.capturing.taking import Taking
from kforensics.commands.redaction.pseudonyms import pseudonyms_of
from kforensics.commands.result import Conclusion, Result
from kforensics.damage import Absent
from kforensics.errors import EvidenceError, Stopped, UsageError
from kforensics.evidence.model import Problem
from kforensics.findings.answers.copies import capture_answer
from kforensics.formats.log.batch_table import BatchTable
from kforensics.formats.segment.walk import Level, walk_segment
from kforensics.source.beside_broker import lower_priority
from kforensics.source.mapped import open_evidence
from kforensics.units import Depth

if TYPE_CHECKING:
    from kforensics.commands.capturing.redacting import CaptureRedaction
    from kforensics.commands.redaction.pseudonyms import Pseudonyms


__all__ = ["CaptureReport", "WrittenCapture", "resume_path", "run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureEstimate:
    """The estimate of what a capture reads and writes."""

    replicas: int
    segments: int
    files: int
    """To be taken along byte for byte."""
    read_bytes: int
    capture_bytes: int
    """About as large the capture will be."""
    bytes_per_second: int
    """Of the disk, as measured on the beginning of the largest segment, or the rate that was asked for; 0 where nothing is to be read."""
    seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureReport:
    """The node, what was expected, and the file that was written."""

    node_id: int | Absent
    cluster_id: str | Absent
    plan: CaptureEstimate
    """What was expected before."""
    capture: WrittenCapture | Absent
    """Absent where only the plan was asked for."""


def run(
    request: Ask,
    progress: Progress | None = None,
    *,
    is_asked_to_stop: Callable[[], bool] = lambda: False,
    lowest_priority: bool = False,
) -> Result[CaptureReport]:
    """Take a capture, or say what it would take.

    Args:
        lowest_priority: step behind every other process for disk and processor, for good.

    Raises:
        EvidenceError: a path can't be used, or with `keep_going` none can.
        UsageError: they are of several nodes, or the file can't be written.
        Stopped: it was asked to stop; what was read is kept for the same command to go on from.
    """
    pseudonyms = pseudonyms_of(request)
    _require_possible(request, pseudonyms)
    if lowest_priority:
        lower_priority()
    started = dt.datetime.now(dt.UTC)
    is_by_ends = request.depth is Depth.TAILS
    plan = plan_capture(
        request.paths,
        all_batches=request.all_batches,
        margin=0 if is_by_ends else MARGIN_OFFSETS,
        keep_going=request.keep_going,
        is_by_ends=is_by_ends,
        jobs=request.jobs,
    )
    expected = estimate(plan, rate=request.read_rate, with_tail=request.with_tail)
    written: WrittenCapture | Absent = Absent.NOT_WRITTEN
    problems = plan.problems
    if request.out is not None:
        if progress is not None:
            progress.expect(expected.read_bytes)
        left = resume_path(request.out)
        redaction = _redaction(request, pseudonyms, plan, is_asked_to_stop)
        begins_again = redaction is not None or request.depth is Depth.TAILS
        killed = () if begins_again else left_by_killed(request.out)
        for part in killed:
            keep_recovered(part, left)
        base = EarlierCaptures([] if begins_again else [*left_behind(left), *request.earlier_captures])
        base.require_node(_cluster_and_node(plan))
        with CaptureWriter(request.out) as writer:
            taking = Taking(plan, writer, request, progress, base, redaction, is_asked_to_stop)
            try:
                taking.begin(started)
                taking.read_all()
            except Stopped:
                if begins_again:
                    raise
                taking.leave(started, left)
                raise
            length = writer.finish(taking.manifest(started))
        for path in () if begins_again else (left, *killed):
            path.unlink(missing_ok=True)
        written, problems = taking.written(request.out, length), taking.problems
    node = node_of(plan)
    answer = capture_answer(
        node.broker_id if node else Absent.UNKNOWN,
        Path(written.path).name if isinstance(written, WrittenCapture) else None,
        [_where(plan, one) for one in problems],
        changed=len(written.changed) if isinstance(written, WrittenCapture) else 0,
        seconds=expected.seconds,
        capture_bytes=expected.capture_bytes,
        is_by_ends=is_by_ends,
    )
    return Result(
        command="capture",
        inputs=plan.inputs,
        body=CaptureReport(
            node_id=node.broker_id if node else Absent.UNKNOWN,
            cluster_id=node.cluster_id if node else Absent.UNKNOWN,
            plan=expected,
            capture=written,
        ),
        concluded=Conclusion(answer=answer, problems=tuple(problems)),
    )


def _where(plan: CapturePlan, one: Problem) -> str:
    given = plan.inputs[one.input].path if one.input < len(plan.inputs) else ""
    return f"{given}/{one.path}: {one.message}" if one.path != "." else f"{given}: {one.message}"


def _require_possible(request: Ask, pseudonyms: "Pseudonyms | None") -> None:
    if request.depth is Depth.TAILS and (request.with_tail or request.all_batches or request.earlier_captures):
        raise UsageError(
            "--depth tails reads the ends of logs alone: it does not go with --all-batches, --with-tail or --since"
        )
    if pseudonyms is None:
        return
    if request.with_tail:
        raise UsageError("--with-tail takes records of users along as they are: it does not go with --redact")
    if request.earlier_captures:
        raise UsageError("--since takes rows of an earlier capture as they are: it does not go with --redact")


def _redaction(
    request: Ask, pseudonyms: "Pseudonyms | None", plan: CapturePlan, is_asked_to_stop: Callable[[], bool]
) -> "CaptureRedaction | None":
    if pseudonyms is None:
        return None
    from kforensics.commands.capturing.redacting import redaction_of  # noqa: PLC0415 - only --redact needs it

    return redaction_of(
        pseudonyms,
        with_topics=request.redact_topics,
        histories=plan.histories,
        places=tuple(plan.places()),
        paths=(
            *(path for one in plan.roots for path in (one.name, str(one.real), *(each.inner for each in one.log_dirs))),
            *(one.path for one in plan.inputs),
        ),
        is_asked_to_stop=is_asked_to_stop,
    )


def _cluster_and_node(plan: CapturePlan) -> tuple[str | None, int | None]:
    node = node_of(plan)
    if node is None:
        return None, None
    return (
        None if isinstance(node.cluster_id, Absent) else node.cluster_id,
        None if isinstance(node.broker_id, Absent) else node.broker_id,
    )


SEGMENT_BYTES = 500
BATCH_BYTES = 12
RECORD_BYTES = 40
"""What a segment, a batch and the digests of a record take in a capture, some less than at most."""

USUAL_BATCH_LENGTH = 4_096
USUAL_RECORDS = 10
_MEASURED_BYTES = 32 << 20
_SLOWEST = 1 << 20


def estimate(plan: CapturePlan, *, rate: int | None = None, with_tail: bool = False) -> CaptureEstimate:
    """Estimate by names and lengths, and read at most 48 MiB to measure."""
    tally = plan.tally
    size = tally.size + (tally.at_stake if with_tail else 0.0)
    length, records = _sampled(tally.longest)
    size += tally.segments * SEGMENT_BYTES + BATCH_BYTES * tally.carried / length
    size += RECORD_BYTES * records * tally.recorded / length
    read = tally.scanned + tally.copied
    speed = _measured(tally.longest) if read else 0
    if rate is not None and speed:
        speed = min(speed, rate)
    return CaptureEstimate(
        replicas=plan.replicas,
        segments=tally.segments,
        files=tally.files,
        read_bytes=read,
        capture_bytes=int(size) + 4_096,
        bytes_per_second=speed,
        seconds=-(-read // speed) if speed else 0,
    )


def _sampled(longest: Sequence[tuple[int, str]]) -> tuple[float, float]:
    """Bytes and records of a batch, on average over some segments."""
    batches = length = records = 0
    for size, path in longest:
        rows = _batches_of(Path(path), size) if size else None
        if rows is not None:
            batches += len(rows)
            length += int(rows["length"].sum())
            records += int(rows["count"].sum())
    return (length / batches, records / batches) if batches and length else (USUAL_BATCH_LENGTH, USUAL_RECORDS)


def _measured(longest: Sequence[tuple[int, str]]) -> int:
    """Bytes a second in which the beginning of the largest segment can be read."""
    if not longest:
        return 100 << 20
    buffer, position = memoryview(bytearray(1 << 20)), 0
    began = time.monotonic()
    try:
        with open_evidence(Path(max(longest)[1])) as file:
            while position < _MEASURED_BYTES and (count := file.read_into(position, buffer)):
                position += count
    except EvidenceError:
        return _SLOWEST
    return max(int(position / max(time.monotonic() - began, 1e-6)), _SLOWEST)


def _batches_of(path: Path, length: int) -> BatchTable | None:
    """Return some batches at the beginning of a segment, to estimate by; none where there are none, or it can't be read."""
    try:
        with open_evidence(path) as file:
            for window in walk_segment(file, level=Level.CRC, end=min(length, 1 << 20)):
                if len(window.batches):
                    return window.batches
    except EvidenceError:
        return None
    return None
