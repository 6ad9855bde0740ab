"""What `capture` does: the evidence of one node, read once in the order in which it can vanish, into one file."""

import datetime as dt
import json
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import compress, islice
from pathlib import Path
from typing import Any

from kforensics import __version__
from kforensics.commands.capturing.container import SMALL_LENGTH, CaptureWriter
from kforensics.commands.capturing.earlier_captures import EarlierCaptures
from kforensics.commands.capturing.estimate import CaptureEstimate, estimate
from kforensics.commands.capturing.killed import BEGUN, left_by_killed, recover
from kforensics.commands.capturing.plan import (
    LARGEST_CLEANED_LOG,
    MARGIN_OFFSETS,
    CapturePlan,
    FolderPlan,
    RootPlan,
    plan_capture,
)
from kforensics.commands.capturing.redacting import CannotRedact, CaptureRedaction, redaction_of
from kforensics.commands.capturing.secrets import without_secrets
from kforensics.commands.capturing.segments import CapturedScan, SegmentTask, capture_ends, capture_segment
from kforensics.commands.processes import default_jobs
from kforensics.commands.redaction.pseudonyms import Pseudonyms
from kforensics.commands.result import Conclusion, Progress, Result
from kforensics.damage import Absent
from kforensics.errors import EvidenceError, Stopped, UsageError
from kforensics.evidence.captured.indexes import OFFSET_INDEX, TIME_INDEX
from kforensics.evidence.model import Input, Problem
from kforensics.evidence.parallel import WORTH_A_PROCESS, stream
from kforensics.findings.answers.capture import capture_answer
from kforensics.source.capture import COORDINATORS_FOLDER, ENDING, RECORDS_FOLDER, open_capture
from kforensics.source.mapped import EvidenceFile, open_evidence
from kforensics.source.naming import FileKind, FileSuffix, parse_file_name
from kforensics.source.priority import lower_priority
from kforensics.source.walk import Entry, join
from kforensics.units import Depth, TopicPartition
from kforensics.words import byte_count

END_OF_LOG = 64 << 10
"""Bytes that are read of a segment by its end, as far as a report of bytes goes."""

MOST_HELD = 256
"""Segments about to be removed that are kept open; processes may have 1,024 files open."""

FOLDERS_AT_ONCE = 1_024
"""Directories whose segments are read ahead together."""

TASK_BYTES = 64 << 20
TASK_SEGMENTS = 256
"""Bytes and segments after which what a process read is handed over."""


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
    pseudonyms: Pseudonyms | None = None
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureReport:
    """The node, what was expected, and the file that was written."""

    node_id: int | Absent
    cluster_id: str | Absent
    plan: CaptureEstimate
    """What was expected before."""
    capture: WrittenCapture | Absent
    """Absent where only the plan was asked for."""


def run(request: CaptureRequest, progress: Progress | None = None) -> Result[CaptureReport]:
    """Take a capture, or say what it would take.

    Args:
        request: the paths of one node, and the file.
        progress: called with bytes read and problems so far.

    Returns:
        The figures of the capture, and what could not be read.

    Raises:
        EvidenceError: a path can't be used, or with `keep_going` none can.
        UsageError: they are of several nodes, or the file can't be written.
        Stopped: it was asked to stop; what was read is kept for the same command to go on from.
    """
    _require_possible(request)
    if request.lowest_priority:
        lower_priority()
    started = dt.datetime.now(dt.UTC)
    is_by_ends = request.depth is Depth.TAILS
    plan = plan_capture(
        request.paths,
        all_batches=request.all_batches,
        margin=0 if is_by_ends else request.margin,
        keep_going=request.keep_going,
        is_by_ends=is_by_ends,
    )
    expected = estimate(plan, rate=request.rate, with_tail=request.with_tail)
    written: WrittenCapture | Absent = Absent.NOT_WRITTEN
    problems = plan.problems
    if request.out is not None:
        if progress is not None:
            progress.expect(expected.read_bytes)
        left = resume_path(request.out)
        redaction = _redaction(request, plan)
        begins_again = redaction is not None or request.depth is Depth.TAILS
        killed = () if begins_again else left_by_killed(request.out)
        for part in killed:
            _recover(part, left)
        base = EarlierCaptures([] if begins_again else [*_left_behind(left), *request.since])
        base.require_node(_cluster_and_node(plan))
        with CaptureWriter(request.out) as writer:
            taking = _Taking(plan, writer, request, progress, base, redaction)
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
    node = _node(plan)
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


def _require_possible(request: CaptureRequest) -> None:
    if request.depth is Depth.TAILS and (request.with_tail or request.all_batches or request.since):
        raise UsageError(
            "--depth tails reads the ends of logs alone: it does not go with --all-batches, --with-tail or --since"
        )
    if request.pseudonyms is None:
        return
    if request.with_tail:
        raise UsageError("--with-tail takes records of users along as they are: it does not go with --redact")
    if request.since:
        raise UsageError("--since takes rows of an earlier capture as they are: it does not go with --redact")


def names_a_capture(out: str) -> bool:
    """Return whether an output has the name of a capture.

    Args:
        out: as `--out` gives it.
    """
    return out.endswith(ENDING)


def resume_path(out: Path) -> Path:
    """Return the path at which a stopped capture is kept.

    Args:
        out: the name that the finished capture will have.
    """
    return out.with_name(f".{out.name}.resume")


def _recover(part: Path, left: Path) -> None:
    """Make what a killed run left one that was stopped, unless an earlier stop left more."""
    try:
        with tempfile.TemporaryDirectory(prefix=f".{left.name}.", dir=left.parent) as folder:
            recovered = Path(folder) / left.name
            if recover(part, recovered) and _segments_of(recovered) > _segments_of(left):
                recovered.replace(left)
    except OSError as error:
        raise UsageError(f"{left} can't be written: {error.strerror}") from error


def _segments_of(path: Path) -> int:
    counts = [open_capture(one).manifest.get("counts") for one in _left_behind(path)]
    found = [one.get("segments") for one in counts if isinstance(one, dict)]
    return sum(one for one in found if type(one) is int)


def _redaction(request: CaptureRequest, plan: CapturePlan) -> CaptureRedaction | None:
    if request.pseudonyms is None:
        return None
    return redaction_of(
        request.pseudonyms,
        with_topics=request.with_topics,
        histories=plan.histories,
        places=tuple(plan.places()),
        is_asked_to_stop=request.is_stopped,
    )


def _left_behind(path: Path) -> list[Path]:
    """Return what an earlier run of the command left, unless it is of no use."""
    try:
        return [path] if open_capture(path).is_interrupted else []
    except EvidenceError:
        return []


def _cluster_and_node(plan: CapturePlan) -> tuple[str | None, int | None]:
    node = _node(plan)
    if node is None:
        return None, None
    return (
        None if isinstance(node.cluster_id, Absent) else node.cluster_id,
        None if isinstance(node.broker_id, Absent) else node.broker_id,
    )


def _node(plan: CapturePlan) -> Input | None:
    return next((one for one in plan.inputs if isinstance(one.broker_id, int)), None)


@dataclass(slots=True)
class _Taking:
    plan: CapturePlan
    writer: CaptureWriter
    request: CaptureRequest
    progress: Progress | None
    base: EarlierCaptures
    redaction: CaptureRedaction | None
    problems: list[Problem] = field(init=False)
    changed: list[str] = field(default_factory=list)
    segments: int = 0
    batches: int = 0
    files: int = 0
    read_bytes: int = 0
    record_bytes: int = 0
    reused_segments: int = 0
    reused_bytes: int = 0
    _held: dict[Path, EvidenceFile] = field(default_factory=dict)
    """Segments that may be removed at any moment, kept open until their bytes were taken along."""
    _early: dict[Path, CapturedScan] = field(default_factory=dict)
    """Segments that were read before all others, until their directories are written."""
    _unfinished: tuple[FolderPlan | None, dict[str, CapturedScan]] = field(init=False)
    """The directory whose segments are read, and those of them that were."""
    _checkpoints: dict[Path, bytes] = field(default_factory=dict)
    """The files of log directories that change while a broker runs, as they were before the logs were read."""
    _after: list[dict[str, str]] = field(default_factory=list)
    _single: list[dict[str, Any]] = field(default_factory=list)
    """Entries of paths that are files themselves."""

    def __post_init__(self) -> None:
        self.problems = list(self.plan.problems)
        self._unfinished = None, {}

    def begin(self, started: dt.datetime) -> None:
        """Say first of which node and roots the capture is, so that what is in it is of use if the process is killed."""
        if self.redaction is None:
            known = {
                name: self.manifest(started)[name] for name in ("tool_version", "started", "node", "roots", "options")
            }
            self.writer.add_part(BEGUN, json.dumps(known, indent=1).encode())

    def read_all(self) -> None:
        """Read checkpoints, then what may vanish, then the logs, then the checkpoints again."""
        self._read_checkpoints()
        first = [
            self._piece(folder, entry, base)
            for folder, entry, base in _about_to_be_removed(self.plan.urgent())
            if not self._by_ends(folder) or parse_file_name(entry.name).suffix is FileSuffix.DELETED
        ]
        self._hold([piece for piece in first if piece.records_folder])
        for piece, scan in self._scan(first):
            self._early[piece.path] = scan
        folders = self.plan.folders()
        while group := list(islice(folders, FOLDERS_AT_ONCE)):
            for folder, scans in self._folders(group, self._early):
                self._folder(folder, scans)
        for root in self.plan.roots:
            if root.file is not None:
                self._root_file(root)
        names = [
            {"name": self._named(root.name), "mode": stat.S_IFDIR | 0o755, "length": 0, "mtime_ns": 0}
            for root in self.plan.roots
            if root.file is None
        ]
        self.writer.add_folder("", [*names, *self._single])
        self._read_checkpoints_again()

    def _hold(self, pieces: "Sequence[_Piece]") -> None:
        """Open segments that are about to be removed, so that their bytes are still there once they were scanned."""
        for piece in pieces[:MOST_HELD]:
            with suppress(EvidenceError):  # named where the segment is scanned
                self._held[piece.path] = open_evidence(piece.path)

    # ------------------------------------------------------------ segments

    def _scan(self, pieces: "Sequence[_Piece]") -> "Iterator[tuple[_Piece, CapturedScan]]":
        """Every segment in order, those that did not change as an earlier capture has them."""
        is_new = [not self.base or self.base.scan(piece.task(), with_bytes=piece.has_bytes) is None for piece in pieces]
        read = self._read(list(compress(pieces, is_new)))
        for piece, is_read in zip(pieces, is_new, strict=True):
            if self.request.is_stopped():
                raise Stopped("stopped")
            if is_read:
                yield piece, next(read)
            else:
                yield piece, self._reused(piece)

    def _piece(
        self, folder: FolderPlan, entry: Entry, base_offset: int, lengths: Mapping[str, int] | None = None
    ) -> "_Piece":
        key = b"" if self.redaction is None else self.redaction.digest_key
        records_folder = RECORDS_FOLDER if self.request.with_tail else ""
        if folder.with_content and self.redaction is None:
            records_folder = COORDINATORS_FOLDER
        stem, _, ending = entry.name.rpartition(".")
        indexes = tuple(
            one for one in (OFFSET_INDEX, TIME_INDEX) if ending == "log" and lengths and lengths.get(f"{stem}{one}")
        )
        return _Piece(folder, entry, base_offset, key, records_folder, indexes)

    def _reused(self, piece: "_Piece") -> CapturedScan:
        found = self.base.scan(piece.task(), with_bytes=piece.has_bytes)
        if found is None:  # it changed since the list was made
            scan = self._taken(piece, capture_segment(piece.task()))
        else:
            scan = found.scan
            self.reused_segments += 1
            self.reused_bytes += scan.length
            if piece.has_bytes:
                row = scan.content["segment"]
                row["bytes"] = found.copy_bytes(self.writer, piece.records_folder)
                row["bytes_from"] = piece.task().bytes_from
                self._count_bytes(piece, row["bytes"])
            self._report(scan.length)
        return scan

    def _read(self, pieces: "Sequence[_Piece]") -> Iterator[CapturedScan]:
        """Yield the scans of segments; other processes read ahead."""
        groups = list(_groups(pieces))
        is_small = sum(piece.entry.length for piece in pieces) < WORTH_A_PROCESS and len(pieces) < TASK_SEGMENTS
        jobs = 1 if is_small else self.request.jobs or default_jobs()
        results = stream(lambda group: [capture_segment(piece.task()) for piece in group], groups, jobs=jobs)
        for group, scans in zip(groups, results, strict=True):
            for piece, scan in zip(group, scans, strict=True):
                yield self._taken(piece, scan)

    def _taken(self, piece: "_Piece", scan: CapturedScan) -> CapturedScan:
        self.read_bytes += scan.length
        self._report(scan.length)
        if piece.has_bytes:
            self._keep_bytes(piece, scan)
        return scan

    def _report(self, count: int) -> None:
        if self.progress:
            self.progress(count, len(self.problems))

    def _keep_bytes(self, piece: "_Piece", scan: CapturedScan) -> None:
        """Take the bytes of a segment along."""
        row = scan.content.get("segment")
        if row is None:
            return
        try:
            with self._held.pop(piece.path, None) or open_evidence(piece.path) as file:
                row["bytes"] = self.writer.add_records(file, scan.bytes_from, scan.length, piece.records_folder)
        except EvidenceError as error:
            words = f"its bytes could not be taken along: {error.problem}"
            self._problem(piece.folder, piece.entry.name, words)
            return
        row["bytes_from"] = piece.task().bytes_from
        length = self._count_bytes(piece, row["bytes"])
        scan.changed |= length != scan.length - scan.bytes_from

    def _count_bytes(self, piece: "_Piece", held: list[list[int | None]]) -> int:
        length = sum(one[1] or 0 for one in held)
        if piece.records_folder == RECORDS_FOLDER:
            self.record_bytes += length
        return length

    def _folders(
        self, folders: Sequence[FolderPlan], early: dict[Path, CapturedScan]
    ) -> Iterator[tuple[FolderPlan, dict[str, CapturedScan]]]:
        """Every directory with its segments, in order; the segments are read ahead."""
        pieces: list[_Piece] = []
        for folder in folders:
            if self._by_ends(folder):
                continue
            entries = folder.entries
            lengths = {one.name: one.length for one in entries}
            pieces += [
                self._piece(folder, entry, base, lengths)
                for entry, _, base in folder.segments(entries)
                if not early or folder.path / entry.name not in early
            ]
        scans = self._scan(pieces)
        for folder in folders:
            own: dict[str, CapturedScan] = {}
            self._unfinished = folder, own
            if self._by_ends(folder):
                yield folder, self._ends(folder)
                continue
            found = list(folder.segments())
            for entry, _, _ in found:
                known = early.get(folder.path / entry.name) if early else None
                own[entry.name] = next(scans)[1] if known is None else known
            if not folder.by_record and any(scan.differs_by_batch for scan in own.values()):
                # A cleaner that left no checkpoint, or an old format: batches alone decide nothing here, either.
                folder.by_record, folder.carried_from = True, 0
                for entry, _, base in found:
                    own[entry.name] = self._with_records(own[entry.name], self._piece(folder, entry, base))
            yield folder, own

    def _by_ends(self, folder: FolderPlan) -> bool:
        """Whether of the directory the ends of its log alone are read."""
        return self.request.depth is Depth.TAILS and folder.place is not None and not folder.is_metadata

    def _ends(self, folder: FolderPlan) -> dict[str, CapturedScan]:
        """Return what depth tails reads of the segments of a directory; all of each that is not in use, or where the ends do not decide."""
        if self.request.is_stopped():
            raise Stopped("stopped")
        assert folder.place is not None
        pieces = {entry.name: self._piece(folder, entry, base) for entry, _, base in folder.segments()}
        own = {name: self._early[piece.path] for name, piece in pieces.items() if piece.path in self._early}
        found = capture_ends(folder.place, {name: piece.task() for name, piece in pieces.items()}) or {}
        is_small = sum(piece.entry.length for piece in pieces.values()) <= LARGEST_CLEANED_LOG
        if is_small and not folder.by_record and any(scan.differs_by_batch for scan in found.values()):
            folder.by_record, folder.carried_from = True, 0
            found = capture_ends(folder.place, {name: piece.task() for name, piece in pieces.items()}) or {}
        for name, piece in pieces.items():
            if name not in own:
                own[name] = found.get(name) or capture_segment(piece.task())
                self.read_bytes += min(own[name].length, END_OF_LOG) if name in found else own[name].length
                self._report(own[name].length)
                if piece.has_bytes:
                    self._keep_bytes(piece, own[name])
        return own

    def _with_records(self, scan: CapturedScan, piece: "_Piece") -> CapturedScan:
        """Return the scan of a segment that is read once more, for digests of its records; its bytes were taken along before."""
        found = self.base.scan(piece.task(), with_bytes=False)
        again = found.scan if found else capture_segment(piece.task())
        row, before = again.content.get("segment"), scan.content.get("segment") or {}
        if row is not None and "bytes" in before:
            row |= {name: before[name] for name in ("bytes", "bytes_from")}
        again.indexes = scan.indexes
        return again

    def _folder(self, folder: FolderPlan, scans: dict[str, CapturedScan]) -> None:
        indexes = {
            f"{name.removesuffix('.log')}{ending}": content
            for name, scan in scans.items()
            for ending, content in scan.indexes.items()
        }
        is_whole = not self._by_ends(folder)
        to_copy = {f"{name.removesuffix('.log')}{OFFSET_INDEX}" for name in scans if is_whole} - indexes.keys()

        def described(entry: Entry) -> dict[str, Any]:
            scan = scans.get(entry.name)
            if scan is not None:
                return self._segment(folder, entry, scan)
            if entry.name in indexes:
                return {**_described(entry), "content": indexes[entry.name]}
            is_asked_for = entry.name in to_copy and 0 < entry.length <= SMALL_LENGTH
            return self._file(folder, entry, is_asked_for=is_asked_for)

        self.writer.add_folder(self._named(folder.inner), map(described, folder.each()))

    def _named(self, path: str) -> str:
        """Return a path as it is called in the capture."""
        return path if self.redaction is None else self.redaction.path(path)

    def _segment(self, folder: FolderPlan, entry: Entry, scan: CapturedScan) -> dict[str, Any]:
        self.segments += 1
        row = scan.content.get("segment")
        if row is not None:
            if self.redaction is not None and "commits" in row:
                row["commits"] = self.redaction.commits(row["commits"])
            row["batches"] = self.writer.add_rows("batches", scan.batches)
            self.batches += sum(run[2] for run in row["batches"])
            if row["records"] is not None:
                row["records"] = self.writer.add_rows("records", scan.records)
        name = parse_file_name(entry.name)
        if scan.problem is not None and not (name.is_transient and not (folder.path / entry.name).exists()):
            self._problem(folder, entry.name, scan.problem)
        if scan.changed:
            self.changed.append(str(folder.path / entry.name))
        length, mtime_ns = (entry.length, entry.mtime_ns) if row is None else (scan.length, scan.mtime_ns)
        return {
            "name": entry.name,
            "mode": entry.mode,
            "length": length,
            "mtime_ns": mtime_ns,
            "content": scan.content,
        }

    # ------------------------------------------------------------ files

    def _file(self, folder: FolderPlan, entry: Entry, *, is_asked_for: bool = False) -> dict[str, Any]:
        is_taken = not entry.is_directory and (is_asked_for or folder.takes(entry))
        name = entry.name
        if self.redaction is not None:
            name = self.redaction.entry(name, is_directory=entry.is_directory, is_taken=is_taken)
        row = {**_described(entry), "name": name}
        if not is_taken:
            return row
        path = folder.path / entry.name
        kept = self._checkpoints.get(path) if folder.place is None else None
        try:
            if kept is not None:
                if self.redaction is not None:
                    kept = self.redaction.checkpoint(kept)
                row |= {
                    "length": len(kept),
                    "content": self._small(f"{self._named(folder.inner)}/{name}", kept, entry.mtime_ns),
                }
            else:
                row |= self._copied(folder, path, f"{self._named(folder.inner)}/{name}")
        except CannotRedact as error:
            assert self.redaction is not None
            self.redaction.left_out.append(f"{self._named(folder.inner)}/{name}")
            row["content"] = {"problem": str(error)}
        except EvidenceError as error:
            if not parse_file_name(entry.name).is_transient:
                self._problem(folder, entry.name, error.problem)
            row["content"] = {"problem": error.problem}
        return row

    def _copied(self, folder: FolderPlan, path: Path, inner: str) -> dict[str, Any]:
        with open_evidence(path) as file:
            length = file.size
            if self.redaction is not None:
                pieces = self.redaction.pieces(file, path.name, is_metadata=folder.is_metadata)
                if pieces is not None:
                    content, length = self.writer.add_pieces(inner, pieces, file.mtime_ns)
                    self.files += 1
                    self.read_bytes += file.size
                    self._report(file.size)
                    return {"length": length, "mtime_ns": file.mtime_ns, "content": content}
            if length <= SMALL_LENGTH:
                data = file.read(0, length)
                if parse_file_name(path.name).kind is FileKind.SERVER_PROPERTIES:
                    data = without_secrets(data)
                content, length = self._small(inner, data, file.mtime_ns), len(data)
            else:
                content, length = self.writer.add_large(file, length)
                self.files += 1
            self.read_bytes += length
            self._report(length)
            return {"length": length, "mtime_ns": file.mtime_ns, "content": content}

    def _small(self, inner: str, data: bytes, mtime_ns: int) -> dict[str, Any]:
        self.files += 1
        return self.writer.add_small(inner, data, mtime_ns)

    def _root_file(self, root: RootPlan) -> None:
        assert root.file is not None
        folder = FolderPlan(root=root.real.parent, relative="", inner="", holds_logs=True)
        status = root.file.lstat()
        entry = Entry(root.file.name, status.st_mode, status.st_size, status.st_mtime_ns)
        self._single.append({**self._file(folder, entry), "name": self._named(root.name)})

    def _problem(self, folder: FolderPlan, name: str, words: str) -> None:
        at = next((at for at, one in enumerate(self.plan.inputs) if _is_below(folder.root, Path(one.path))), 0)
        self.problems.append(Problem(input=at, path=join(folder.relative, name), message=words))

    # ------------------------------------------------------------ checkpoints

    def _of_log_dirs(self) -> Iterator[tuple[FolderPlan, Entry]]:
        for folder in self.plan.without_partitions():
            for entry in folder.each():
                name = parse_file_name(entry.name)
                if name.kind is FileKind.OFFSET_CHECKPOINT and name.suffix is FileSuffix.NONE:
                    yield folder, entry

    def _read_checkpoints(self) -> None:
        for folder, entry in self._of_log_dirs():
            try:
                with open_evidence(folder.path / entry.name) as file:
                    self._checkpoints[folder.path / entry.name] = file.read(0, file.size)
            except EvidenceError:
                continue  # tried again, and named, with the other files of the directory

    def _read_checkpoints_again(self) -> None:
        for folder, entry in self._of_log_dirs():
            path = folder.path / entry.name
            try:
                with open_evidence(path) as file:
                    data = file.read(0, file.size)
            except EvidenceError:
                continue
            if path in self._checkpoints and data != self._checkpoints[path]:
                self.changed.append(str(path))
                part = f"after/{len(self._after):06d}"
                self.writer.add_part(part, data if self.redaction is None else self.redaction.checkpoint(data))
                self._after.append({"path": f"{self._named(folder.inner)}/{entry.name}", "part": part})

    # ------------------------------------------------------------ manifest

    def written(self, out: Path, length: int) -> WrittenCapture:
        """Return the numbers of what was written."""
        return WrittenCapture(
            path=str(out),
            bytes=length,
            replicas=self.plan.replicas,
            segments=self.segments,
            batches=self.batches,
            files=self.files,
            read_bytes=self.read_bytes,
            record_bytes=self.record_bytes,
            reused_segments=self.reused_segments,
            reused_bytes=self.reused_bytes,
            blanked_records=0 if self.redaction is None else self.redaction.blanked.total(),
            changed=tuple(self.changed),
        )

    def leave(self, started: dt.datetime, path: Path) -> None:
        """Keep what was read, so that the same command continues from there, unless what an earlier run left holds more.

        Args:
            started: when this run began, for the manifest.
            path: of the file that an interrupted run leaves; what an earlier one left there is replaced.

        Raises:
            Stopped: always; it says what was kept.
        """
        folder, scans = self._unfinished
        written = self.writer.folders()
        pending: dict[str, tuple[FolderPlan, dict[str, CapturedScan]]] = {}
        for one in self.plan.folders():
            own = dict(scans) if folder is not None and one.inner == folder.inner else {}
            for entry, _, _ in one.segments():
                if one.path / entry.name in self._early:
                    own.setdefault(entry.name, self._early[one.path / entry.name])
            if own and one.inner not in written:
                pending[one.inner] = one, own
        for inner, (one, own) in pending.items():
            entries = [self._segment(one, entry, own[entry.name]) for entry in one.entries if entry.name in own]
            self.writer.add_folder(inner, entries)
        before = _segments_of(path)
        if self.segments <= before:
            raise Stopped(f"stopped; {path} still holds what was read before: the same command continues from there")
        self.writer.finish({**self.manifest(started), "interrupted": True}, path)
        size = byte_count(self.read_bytes + self.reused_bytes)
        raise Stopped(f"stopped; what was read, {size}, is kept in {path}: the same command continues from there")

    def manifest(self, started: dt.datetime) -> dict[str, Any]:
        """Return the manifest of the capture."""
        node = _node(self.plan)
        return {
            "tool_version": __version__,
            "started": _utc(started),
            "ended": _utc(dt.datetime.now(dt.UTC)),
            "node": {
                "node_id": None if node is None else node.broker_id,
                "cluster_id": None if node is None or isinstance(node.cluster_id, Absent) else node.cluster_id,
                "kind": None if node is None else node.kind,
            },
            "roots": [
                {"name": self._named(root.name), "path": self._named(str(root.real))} for root in self.plan.roots
            ],
            "options": {
                "all_batches": self.request.all_batches,
                "depth": self.request.depth.value,
                "margin_offsets": self.request.margin,
                "with_tail": self.request.with_tail,
            },
            "counts": {
                "replicas": self.plan.replicas,
                "segments": self.segments,
                "batches": self.batches,
                "files": self.files,
                "reused_segments": self.reused_segments,
            },
            "since": self.base.described(),
            "checkpoints_after": self._after,
            "redaction": None if self.redaction is None else self.redaction.described(),
            "running": self.plan.is_running,
            "changed": [self._named(path) for path in self.changed],
            "problems": [{"path": self._named(one.path), "message": self._named(one.message)} for one in self.problems],
        }


@dataclass(frozen=True, slots=True)
class _Piece:
    folder: FolderPlan
    entry: Entry
    base_offset: int
    digest_key: bytes
    records_folder: str
    """The folder of the archive that its bytes go into; empty where they stay."""
    indexes: tuple[str, ...] = ()
    """Endings of the indexes that it has, but of empty ones."""

    @property
    def has_bytes(self) -> bool:
        return bool(self.records_folder)

    @property
    def path(self) -> Path:
        return self.folder.path / self.entry.name

    def task(self) -> SegmentTask:
        place = self.folder.place
        return SegmentTask(
            path=self.path,
            base_offset=self.base_offset,
            length=self.entry.length,
            topic_partition=TopicPartition("", 0) if place is None else place.topic_partition,
            carried_from=0 if parse_file_name(self.entry.name).is_transient else self.folder.carried_from,
            bytes_from=0 if parse_file_name(self.entry.name).is_transient else self.folder.bytes_from,
            digest_key=self.digest_key,
            by_record=self.folder.by_record,
            indexes=self.indexes,
        )


def _described(entry: Entry) -> dict[str, Any]:
    return {"name": entry.name, "mode": entry.mode, "length": entry.length, "mtime_ns": entry.mtime_ns}


def _about_to_be_removed(folders: Iterable[FolderPlan]) -> Iterator[tuple[FolderPlan, Entry, int]]:
    """Segments that a broker is about to remove."""
    for folder in folders:
        for entry, name, base in folder.segments():
            if folder.may_vanish or name.suffix is FileSuffix.DELETED:
                yield folder, entry, base


def _groups(pieces: Sequence[_Piece]) -> Iterator[list[_Piece]]:
    group: list[_Piece] = []
    length = 0
    for piece in pieces:
        group.append(piece)
        length += piece.entry.length
        if length >= TASK_BYTES or len(group) >= TASK_SEGMENTS:
            yield group
            group, length = [], 0
    if group:
        yield group


def _is_below(path: Path, given: Path) -> bool:
    real = given.resolve()
    return path == real or real in path.parents


def _utc(moment: dt.datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"
