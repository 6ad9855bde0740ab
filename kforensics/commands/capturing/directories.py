"""What a capture takes of a directory: the rows of its segments, and its other files byte for byte or by their names."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kforensics.ask.model import Ask
from kforensics.case.processes import Progress, default_jobs
from kforensics.commands.capturing.blocks import SMALL_LENGTH, TASK_SEGMENTS, Gatherer, Piece, groups_of
from kforensics.commands.capturing.container import CannotRedact, CaptureWriter
from kforensics.commands.capturing.earlier_captures import EarlierCaptures
from kforensics.commands.capturing.folders import FolderPlan, RootPlan
from kforensics.commands.capturing.plan import LARGEST_CLEANED_LOG, CapturePlan
from kforensics.commands.capturing.redacting import without_secrets
from kforensics.commands.capturing.segments import CapturedScan, capture_ends, capture_segment
from kforensics.errors import EvidenceError, Stopped
from kforensics.evidence.captured.reading import OFFSET_INDEX, TIME_INDEX
from kforensics.evidence.model import Problem
from kforensics.evidence.parallel import WORTH_A_PROCESS, stream
from kforensics.source.capture_file import COORDINATORS_FOLDER, RECORDS_FOLDER
from kforensics.source.mapped import EvidenceFile, open_evidence
from kforensics.source.naming import FileKind, parse_file_name
from kforensics.source.store import Entry
from kforensics.source.walk import join
from kforensics.units import Depth

if TYPE_CHECKING:
    from kforensics.commands.capturing.redacting import CaptureRedaction

END_OF_LOG = 64 << 10
"""Bytes that are read of a segment by its end, as far as a report of bytes goes."""


@dataclass(slots=True)
class Taken:
    """The numbers of what was taken along, and what was noticed."""

    segments: int = 0
    batches: int = 0
    files: int = 0
    read_bytes: int = 0
    record_bytes: int = 0
    reused_segments: int = 0
    reused_bytes: int = 0
    changed: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def add(self, other: "Taken") -> None:
        """Add what was taken along elsewhere."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))


@dataclass(slots=True)
class Directories:
    """Takes directories along one after the other."""

    plan: CapturePlan
    writer: Gatherer
    """Where they are written; large files and bytes of segments need a `CaptureWriter`."""
    request: Ask
    progress: Progress | None
    base: EarlierCaptures
    redaction: "CaptureRedaction | None"
    is_asked_to_stop: Callable[[], bool]
    """Asked between segments."""
    taken: Taken = field(default_factory=Taken)
    held: dict[Path, EvidenceFile] = field(default_factory=dict)
    """Segments that may be removed at any moment, kept open until their bytes were taken along."""
    early: dict[Path, CapturedScan] = field(default_factory=dict)
    """Segments that were read before all others, until their directories are written."""
    unfinished: tuple[FolderPlan | None, dict[str, CapturedScan]] = (None, {})
    """The directory whose segments are read, and those of them that were."""
    checkpoints: dict[Path, bytes] = field(default_factory=dict)
    """The files of log directories that change while a broker runs, as they were before the logs were read."""

    @property
    def _archive(self) -> CaptureWriter:
        assert isinstance(self.writer, CaptureWriter)
        return self.writer

    def take(self, folders: Sequence[FolderPlan]) -> None:
        """Take directories along; their segments are read ahead."""
        for folder, scans in self._folders(folders, self.early):
            self._folder(folder, scans)

    def take_light(self, folders: Sequence[FolderPlan], last_group: int) -> Iterator[FolderPlan]:
        """Take directories along, and yield those that were left: their records have to be taken along, or no group is left for their rows."""
        for folder, scans in self._folders(folders, {}):
            if folder.by_record or self.writer.next_group > last_group:
                yield folder
            else:
                self._folder(folder, scans)

    def has_early(self, folder: FolderPlan) -> bool:
        """Whether segments of a directory were read before all others."""
        return bool(self.early) and any(folder.path / entry.name in self.early for entry in folder.each())

    # ------------------------------------------------------------ segments

    def scan(self, pieces: Sequence[Piece]) -> Iterator[tuple[Piece, CapturedScan]]:
        """Yield the segments with what was found in them; those that did not change are as an earlier capture has them."""
        is_new = [not self.base or self.base.scan(piece.task(), with_bytes=piece.has_bytes) is None for piece in pieces]
        read = self._read(list(compress(pieces, is_new)))
        for piece, is_read in zip(pieces, is_new, strict=True):
            if self.is_asked_to_stop():
                raise Stopped("stopped")
            if is_read:
                yield piece, next(read)
            else:
                yield piece, self._reused(piece)

    def piece(
        self, folder: FolderPlan, entry: Entry, base_offset: int, lengths: Mapping[str, int] | None = None
    ) -> Piece:
        """Return what is to be read of a segment."""
        key = b"" if self.redaction is None else self.redaction.digest_key
        records_folder = RECORDS_FOLDER if self.request.with_tail else ""
        if folder.with_content and self.redaction is None:
            records_folder = COORDINATORS_FOLDER
        stem, _, ending = entry.name.rpartition(".")
        indexes = tuple(
            one for one in (OFFSET_INDEX, TIME_INDEX) if ending == "log" and lengths and lengths.get(f"{stem}{one}")
        )
        return Piece(folder, entry, base_offset, key, records_folder, indexes)

    def _reused(self, piece: Piece) -> CapturedScan:
        found = self.base.scan(piece.task(), with_bytes=piece.has_bytes)
        if found is None:  # it changed since the list was made
            scan = self._taken(piece, capture_segment(piece.task()))
        else:
            scan, file = found
            self.taken.reused_segments += 1
            self.taken.reused_bytes += scan.length
            if piece.has_bytes:
                row = scan.content["segment"]
                row["bytes"] = self._archive.add_records(file, scan.bytes_from, scan.length, piece.records_folder)
                row["bytes_from"] = piece.task().bytes_from
                self._count_bytes(piece, row["bytes"])
            self.report(scan.length)
        return scan

    def _read(self, pieces: Sequence[Piece]) -> Iterator[CapturedScan]:
        """Yield the scans of segments; other processes read ahead."""
        groups = list(groups_of(pieces))
        is_small = sum(piece.entry.length for piece in pieces) < WORTH_A_PROCESS and len(pieces) < TASK_SEGMENTS
        jobs = 1 if is_small else self.request.jobs or default_jobs()
        results = stream(lambda group: [capture_segment(piece.task()) for piece in group], groups, jobs=jobs)
        for group, scans in zip(groups, results, strict=True):
            for piece, scan in zip(group, scans, strict=True):
                yield self._taken(piece, scan)

    def _taken(self, piece: Piece, scan: CapturedScan) -> CapturedScan:
        self.taken.read_bytes += scan.length
        self.report(scan.length)
        if piece.has_bytes:
            self._keep_bytes(piece, scan)
        return scan

    def report(self, count: int) -> None:
        """Say how many bytes more were read."""
        if self.progress:
            self.progress(count, len(self.taken.problems))

    def _keep_bytes(self, piece: Piece, scan: CapturedScan) -> None:
        row = scan.content.get("segment")
        if row is None:
            return
        try:
            with self.held.pop(piece.path, None) or open_evidence(piece.path) as file:
                row["bytes"] = self._archive.add_records(file, scan.bytes_from, scan.length, piece.records_folder)
        except EvidenceError as error:
            words = f"its bytes could not be taken along: {error.problem}"
            self._problem(piece.folder, piece.entry.name, words)
            return
        row["bytes_from"] = piece.task().bytes_from
        length = self._count_bytes(piece, row["bytes"])
        scan.changed |= length != scan.length - scan.bytes_from

    def _count_bytes(self, piece: Piece, held: list[list[int | None]]) -> int:
        length = sum(one[1] or 0 for one in held)
        if piece.records_folder == RECORDS_FOLDER:
            self.taken.record_bytes += length
        return length

    def _folders(
        self, folders: Sequence[FolderPlan], early: dict[Path, CapturedScan]
    ) -> Iterator[tuple[FolderPlan, dict[str, CapturedScan]]]:
        """Every directory with its segments, in order; the segments are read ahead."""
        pieces: list[Piece] = []
        for folder in folders:
            if self.by_ends(folder):
                continue
            segments = [(entry, base) for entry, _, base in folder.segments()]
            lengths = {one.name: one.length for one in folder.each()} if segments else {}
            pieces += [
                self.piece(folder, entry, base, lengths)
                for entry, base in segments
                if not early or folder.path / entry.name not in early
            ]
        scans = self.scan(pieces)
        for folder in folders:
            own: dict[str, CapturedScan] = {}
            self.unfinished = folder, own
            if self.by_ends(folder):
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
                    own[entry.name] = self._with_records(own[entry.name], self.piece(folder, entry, base))
            yield folder, own

    def by_ends(self, folder: FolderPlan) -> bool:
        """Whether of the directory the ends of its log alone are read."""
        return self.request.depth is Depth.TAILS and folder.place is not None and not folder.is_metadata

    def _ends(self, folder: FolderPlan) -> dict[str, CapturedScan]:
        """Return what depth tails reads of the segments of a directory; all of each that is not in use, or where the ends do not decide."""
        if self.is_asked_to_stop():
            raise Stopped("stopped")
        assert folder.place is not None
        pieces = {entry.name: self.piece(folder, entry, base) for entry, _, base in folder.segments()}
        own = {name: self.early[piece.path] for name, piece in pieces.items() if piece.path in self.early}
        found = capture_ends(folder.place, {name: piece.task() for name, piece in pieces.items()}) or {}
        is_small = sum(piece.entry.length for piece in pieces.values()) <= LARGEST_CLEANED_LOG
        if is_small and not folder.by_record and any(scan.differs_by_batch for scan in found.values()):
            folder.by_record, folder.carried_from = True, 0
            found = capture_ends(folder.place, {name: piece.task() for name, piece in pieces.items()}) or {}
        for name, piece in pieces.items():
            if name not in own:
                own[name] = found.get(name) or capture_segment(piece.task())
                self.taken.read_bytes += min(own[name].length, END_OF_LOG) if name in found else own[name].length
                self.report(own[name].length)
                if piece.has_bytes:
                    self._keep_bytes(piece, own[name])
        return own

    def _with_records(self, scan: CapturedScan, piece: Piece) -> CapturedScan:
        """Return the scan of a segment that is read once more, for digests of its records; its bytes were taken along before."""
        found = self.base.scan(piece.task(), with_bytes=False)
        again = found[0] if found else capture_segment(piece.task())
        row, before = again.content.get("segment"), scan.content.get("segment") or {}
        if row is not None and "bytes" in before:
            row |= {name: before[name] for name in ("bytes", "bytes_from")}
            if (
                again.length < scan.length
            ):  # it was truncated meanwhile: what was behind its end is not of what was read
                row["bytes"] = [one for one in row["bytes"] if one[0] + one[1] <= again.length]
                again.changed = row["changed"] = True
        again.indexes = scan.indexes
        return again

    def _folder(self, folder: FolderPlan, scans: dict[str, CapturedScan]) -> None:
        for met in () if folder.may_vanish else folder.obstacles:
            found = Problem(input=self._input_of(folder), path=met.path, message=met.message)
            if found not in self.plan.problems:  # it was met first when the names were looked at
                self.taken.problems.append(found)
        if not folder.may_vanish and any(met.path == folder.relative for met in folder.obstacles):
            return  # a directory without entries would be an empty one
        indexes = {
            f"{name.removesuffix('.log')}{ending}": content
            for name, scan in scans.items()
            for ending, content in scan.indexes.items()
        }
        is_whole = not self.by_ends(folder)
        to_copy = {f"{name.removesuffix('.log')}{OFFSET_INDEX}" for name in scans if is_whole} - indexes.keys()

        def described(entry: Entry) -> dict[str, Any]:
            scan = scans.get(entry.name)
            if scan is not None:
                return self._segment(folder, entry, scan)
            if entry.name in indexes:
                return {**_described(entry), "content": indexes[entry.name]}
            is_asked_for = entry.name in to_copy and 0 < entry.length <= SMALL_LENGTH
            return self._file(folder, entry, is_asked_for=is_asked_for)

        self.writer.add_folder(self.named(folder.inner), map(described, folder.each()))

    def named(self, path: str) -> str:
        """Return a path as it is called in the capture."""
        return path if self.redaction is None else self.redaction.path(path)

    def segments(self, folder: FolderPlan, scans: Mapping[str, CapturedScan]) -> list[dict[str, Any]]:
        """Return the entries of the segments of a directory that were read, whose rows are written."""
        return [self._segment(folder, entry, scans[entry.name]) for entry in folder.entries if entry.name in scans]

    def _segment(self, folder: FolderPlan, entry: Entry, scan: CapturedScan) -> dict[str, Any]:
        self.taken.segments += 1
        row = scan.content.get("segment")
        if row is not None:
            if self.redaction is not None and "commits" in row:
                row["commits"] = self.redaction.commits(row["commits"])
            row["batches"] = self.writer.add_rows("batches", scan.batches)
            self.taken.batches += sum(run[2] for run in row["batches"])
            if row["records"] is not None:
                row["records"] = self.writer.add_rows("records", scan.records)
        name = parse_file_name(entry.name)
        if scan.problem is not None and not (name.is_transient and not (folder.path / entry.name).exists()):
            self._problem(folder, entry.name, scan.problem)
        if scan.changed:
            self.taken.changed.append(str(folder.path / entry.name))
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
        kept = self.checkpoints.get(path) if folder.place is None else None
        try:
            if kept is not None:
                if self.redaction is not None:
                    kept = self.redaction.checkpoint(kept)
                row |= {
                    "length": len(kept),
                    "content": self._small(f"{self.named(folder.inner)}/{name}", kept, entry.mtime_ns),
                }
            else:
                row |= self._copied(folder, path, f"{self.named(folder.inner)}/{name}")
        except CannotRedact as error:
            assert self.redaction is not None
            self.redaction.left_out.append(f"{self.named(folder.inner)}/{name}")
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
                if length <= SMALL_LENGTH:
                    data = b"".join(pieces)
                    content, length = self._small(inner, data, file.mtime_ns), len(data)
                else:
                    content, length = self._archive.add_pieces(inner, pieces, file.mtime_ns)
                    self.taken.files += 1
            elif length <= SMALL_LENGTH:
                data = file.read(0, length)
                if parse_file_name(path.name).kind is FileKind.SERVER_PROPERTIES:
                    data = without_secrets(data)
                content, length = self._small(inner, data, file.mtime_ns), len(data)
            else:
                content, length = self._archive.add_large(file, length)
                self.taken.files += 1
            self.taken.read_bytes += file.size
            self.report(file.size)
            return {"length": length, "mtime_ns": file.mtime_ns, "content": content}

    def _small(self, inner: str, data: bytes, mtime_ns: int) -> dict[str, Any]:
        self.taken.files += 1
        return self.writer.add_small(inner, data, mtime_ns)

    def root_file(self, root: RootPlan) -> dict[str, Any]:
        """Return the entry of a path that is a file itself."""
        assert root.file is not None
        folder = FolderPlan(root=root.real.parent, relative="", inner="", holds_logs=True)
        status = root.file.lstat()
        entry = Entry(root.file.name, status.st_mode, status.st_size, status.st_mtime_ns)
        return {**self._file(folder, entry), "name": self.named(root.name)}

    def _problem(self, folder: FolderPlan, name: str, words: str) -> None:
        path = join(folder.relative, name)
        self.taken.problems.append(Problem(input=self._input_of(folder), path=path, message=words))

    def _input_of(self, folder: FolderPlan) -> int:
        return next((at for at, one in enumerate(self.plan.inputs) if _is_below(folder.root, Path(one.path))), 0)


def _described(entry: Entry) -> dict[str, Any]:
    return {"name": entry.name, "mode": entry.mode, "length": entry.length, "mtime_ns": entry.mtime_ns}


def _is_below(path: Path, given: Path) -> bool:
    real = given.resolve()
    return path == real or real in path.parents
