"""The taking of a capture: the order in which everything is read, what other processes take along, and the manifest."""

import datetime as dt
import json
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kforensics import __version__
from kforensics.ask.model import Ask
from kforensics.case.processes import Progress, default_jobs
from kforensics.commands.capturing.blocks import SMALL_LENGTH, Block, Gatherer, Piece, about_to_be_removed
from kforensics.commands.capturing.container import CaptureWriter, WrittenCapture
from kforensics.commands.capturing.directories import Directories, Taken
from kforensics.commands.capturing.earlier_captures import BEGUN, EarlierCaptures, segments_of
from kforensics.commands.capturing.folders import FolderPlan
from kforensics.commands.capturing.plan import MARGIN_OFFSETS, CapturePlan, Task, node_of
from kforensics.commands.capturing.segments import CapturedScan
from kforensics.damage import Absent
from kforensics.errors import EvidenceError, Stopped
from kforensics.evidence.captured.reading import OFFSET_INDEX, TIME_INDEX
from kforensics.evidence.model import Problem
from kforensics.evidence.parallel import stream
from kforensics.source.mapped import open_evidence
from kforensics.source.naming import FileKind, FileSuffix, parse_file_name
from kforensics.source.store import Entry
from kforensics.units import Depth
from kforensics.words import byte_count

if TYPE_CHECKING:
    from kforensics.commands.capturing.redacting import CaptureRedaction

MOST_HELD = 256
"""Segments about to be removed that are kept open; processes may have 1,024 files open."""

FOLDERS_AT_ONCE = 1_024
"""Directories whose segments are read ahead together."""

LIGHT_BYTES = 256 << 10
"""Bytes of segments up to which another process takes a whole partition directory along."""

GROUPS_OF_TASK = 64
"""Numbers of groups of rows that are kept free for one task: all rows of 1,024 light directories fit into a third of them."""


@dataclass(frozen=True, slots=True)
class _Gathered:
    """What a process made of some partition directories."""

    blocks: list[Block]
    columns: list[tuple[str, bytes]]
    taken: Taken
    left: tuple[str, ...]
    """The directories that it did not take along: their segments are worth a process each, or records of theirs are wanted."""
    is_cut_short: bool
    """It was asked to stop before it had taken all of them."""


class Taking:
    """Takes a capture.

    Args:
        progress: called with bytes read and problems so far.
        base: earlier captures, whose segments are not read again.
        redaction: none where names are taken along as they are.
        is_asked_to_stop: asked between segments.
    """

    def __init__(
        self,
        plan: CapturePlan,
        writer: CaptureWriter,
        request: Ask,
        progress: Progress | None,
        base: EarlierCaptures,
        redaction: "CaptureRedaction | None",
        is_asked_to_stop: Callable[[], bool],
    ) -> None:
        self.plan = plan
        self.writer = writer
        self.request = request
        self.redaction = redaction
        self.base = base
        self._directories = Directories(plan, writer, request, progress, base, redaction, is_asked_to_stop)
        self._taken = self._directories.taken
        self._taken.problems = list(plan.problems)
        self._named = self._directories.named
        self._after: list[dict[str, str]] = []

    @property
    def problems(self) -> list[Problem]:
        """What could not be read."""
        return self._taken.problems

    def _message(self, words: str) -> str:
        return words if self.redaction is None else self.redaction.message(words)

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
        first: list[Piece] = []
        for folder in self.plan.urgent():
            entries = folder.entries
            lengths = {one.name: one.length for one in entries}
            first += [
                self._directories.piece(folder, entry, base, lengths)
                for entry, name, base in about_to_be_removed(folder, entries)
                if not self._directories.by_ends(folder) or name.suffix is FileSuffix.DELETED
            ]
        # Their bytes are to be there still once they are scanned.
        for piece in [piece for piece in first if piece.records_folder][:MOST_HELD]:
            with suppress(EvidenceError):  # named where the segment is scanned
                self._directories.held[piece.path] = open_evidence(piece.path)
        for piece, scan in self._directories.scan(first):
            self._directories.early[piece.path] = scan
        self._read_in_groups(self.plan.folders())
        self._read_partitions()
        single = [self._directories.root_file(root) for root in self.plan.roots if root.file is not None]
        names = [
            {"name": self._named(root.name), "mode": stat.S_IFDIR | 0o755, "length": 0, "mtime_ns": 0}
            for root in self.plan.roots
            if root.file is None
        ]
        self.writer.add_folder("", [*names, *single])
        self._read_checkpoints_again()

    # ------------------------------------------------------------ partition directories

    def _read_partitions(self) -> None:
        """Take the partition directories along: light ones in other processes, then those whose segments are worth one each."""
        tasks = self.plan.tasks()
        left: list[tuple[str, ...]] = []
        if self.redaction is None and not self.request.with_tail:
            first = self.writer.reserve_groups(len(tasks) * GROUPS_OF_TASK)
            numbered = [(task, first + at * GROUPS_OF_TASK) for at, task in enumerate(tasks)]
            jobs = default_jobs() if self.request.jobs is None else self.request.jobs
            for one in stream(self._gather, numbered, jobs=jobs):
                for name, data in one.columns:
                    self.writer.keep_column(name, data)
                for block in one.blocks:
                    self.writer.keep_block(block)
                self._taken.add(one.taken)
                self._directories.report(one.taken.read_bytes + one.taken.reused_bytes)
                left.append(one.left)
                if one.is_cut_short:
                    raise Stopped("stopped")
        for at, task in enumerate(tasks):
            self._read_in_groups(self.plan.partitions(task.log_dir, left[at] if left else task.names))

    def _gather(self, numbered: tuple[Task, int]) -> _Gathered:
        """Take the light ones of some partition directories along; called in another process."""
        task, first_group = numbered
        gatherer = Gatherer(first_group)
        request = replace(self.request, jobs=1)
        directories = Directories(
            self.plan,
            gatherer,
            request,
            None,
            self.base,
            None,
            self._directories.is_asked_to_stop,
            early=self._directories.early,
        )
        left: list[str] = []
        light: list[FolderPlan] = []
        is_cut_short = False
        for name in task.names:
            folders = list(self.plan.partitions(task.log_dir, [name]))
            if len(folders) == 1 and self._is_light(folders[0]):
                light += folders
            else:
                left.append(name)
        try:
            left += [folder.path.name for folder in directories.take_light(light, first_group + GROUPS_OF_TASK // 2)]
        except Stopped:
            folder, scans = directories.unfinished
            if folder is not None and scans:
                gatherer.add_folder(folder.inner, directories.segments(folder, scans))
            is_cut_short = True
        gatherer.end()
        return _Gathered(gatherer.blocks, gatherer.columns, directories.taken, tuple(left), is_cut_short)

    def _is_light(self, folder: FolderPlan) -> bool:
        """Whether another process can take a directory along: neither its segments nor its other files are large, and none of its records are taken along."""
        if folder.place is None or folder.is_metadata or folder.with_content or folder.by_record:
            return False
        length = 0
        for entry in folder.entries:
            if ".log" in entry.name:
                length += entry.length
            elif entry.length > SMALL_LENGTH and not entry.name.endswith((OFFSET_INDEX, TIME_INDEX)):
                return False
        return length <= LIGHT_BYTES and not self._directories.has_early(folder)

    def _read_in_groups(self, folders: Iterator[FolderPlan]) -> None:
        while group := list(islice(folders, FOLDERS_AT_ONCE)):
            self._directories.take(group)

    # ------------------------------------------------------------ checkpoints

    def _of_log_dirs(self) -> Iterator[tuple[FolderPlan, Entry]]:
        for folder in self.plan.without_partitions():
            for entry in folder.each():
                if entry.is_directory:
                    continue
                name = parse_file_name(entry.name)
                if name.kind is FileKind.OFFSET_CHECKPOINT and name.suffix is FileSuffix.NONE:
                    yield folder, entry

    def _read_checkpoints(self) -> None:
        for folder, entry in self._of_log_dirs():
            try:
                with open_evidence(folder.path / entry.name) as file:
                    self._directories.checkpoints[folder.path / entry.name] = file.read(0, file.size)
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
            if path in self._directories.checkpoints and data != self._directories.checkpoints[path]:
                self._taken.changed.append(str(path))
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
            segments=self._taken.segments,
            batches=self._taken.batches,
            files=self._taken.files,
            read_bytes=self._taken.read_bytes,
            record_bytes=self._taken.record_bytes,
            reused_segments=self._taken.reused_segments,
            reused_bytes=self._taken.reused_bytes,
            blanked_records=0 if self.redaction is None else self.redaction.blanked.total(),
            changed=tuple(self._taken.changed),
        )

    def leave(self, started: dt.datetime, path: Path) -> None:
        """Keep what was read, so that the same command continues from there, unless what an earlier run left holds more.

        Args:
            path: of the file that an interrupted run leaves; what an earlier one left there is replaced.

        Raises:
            Stopped: always; it says what was kept.
        """
        folder, scans = self._directories.unfinished
        written = self.writer.folders()
        pending: dict[str, tuple[FolderPlan, dict[str, CapturedScan]]] = {}
        for one in (*([] if folder is None else [folder]), *self.plan.urgent()):
            own = dict(scans) if folder is not None and one.inner == folder.inner else {}
            for entry, _, _ in one.segments():
                if one.path / entry.name in self._directories.early:
                    own.setdefault(entry.name, self._directories.early[one.path / entry.name])
            if own and one.inner not in written:
                pending[one.inner] = one, own
        for inner, (one, own) in pending.items():
            self.writer.add_folder(inner, self._directories.segments(one, own))
        before = segments_of(path)
        if self._taken.segments <= before:
            raise Stopped(f"stopped; {path} still holds what was read before: the same command continues from there")
        self.writer.finish({**self.manifest(started), "interrupted": True}, path)
        size = byte_count(self._taken.read_bytes + self._taken.reused_bytes)
        raise Stopped(f"stopped; what was read, {size}, is kept in {path}: the same command continues from there")

    def manifest(self, started: dt.datetime) -> dict[str, Any]:
        """Return the manifest of the capture."""
        node = node_of(self.plan)
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
                "depth": (self.request.depth or Depth.CONTENT).value,
                "margin_offsets": MARGIN_OFFSETS,
                "with_tail": self.request.with_tail,
            },
            "counts": {
                "replicas": self.plan.replicas,
                "segments": self._taken.segments,
                "batches": self._taken.batches,
                "files": self._taken.files,
                "reused_segments": self._taken.reused_segments,
            },
            "since": self.base.described(),
            "checkpoints_after": self._after,
            "redaction": None if self.redaction is None else self.redaction.described(),
            "running": self.plan.scope.is_running,
            "changed": [self._named(path) for path in self._taken.changed],
            "problems": [
                {"path": self._named(one.path), "message": self._message(one.message)} for one in self._taken.problems
            ],
        }


def _utc(moment: dt.datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"
