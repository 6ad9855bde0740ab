"""The content of files: file after file, item after item, so that nothing is held in memory but what is on its way out.

Lines of records are made by several processes where a file is large. Each takes every n-th stretch, makes its lines, and writes them itself when the turn comes
round; so nothing is copied between processes and the order is that of the file. A stretch starts where a sound batch is found. Whether that is where the stretch before
ended, and whether offsets and epochs go on rising, is checked at each seam: where not, and wherever something is damaged, this process continues alone from the seam,
with the order of the whole file in view. So the output does not depend on the number of processes.
"""

import mmap
import os
import struct
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from kforensics.ask.model import Ask
from kforensics.case.processes import default_jobs
from kforensics.commands.redaction.names import redact_item
from kforensics.commands.redaction.pseudonyms import pseudonyms_of
from kforensics.commands.result import Conclusion, Result
from kforensics.damage import Damage, DamageKind, Gravity
from kforensics.errors import EvidenceError
from kforensics.evidence.content import (
    DumpItem,
    RecordItem,
    Selection,
    control_meaning,
    decoder_of_file,
    recognised_name,
    walk_items,
)
from kforensics.evidence.discovery.inputs import WHOLE_INPUT, FoundInput, Inputs, find_inputs
from kforensics.evidence.model import Problem
from kforensics.evidence.parallel import InTurn
from kforensics.findings.answers.contents import dump_answer
from kforensics.formats.columns.record_stream import RecordChunk, behind, split_control
from kforensics.formats.segment.walk import Level, find_batch_start, iter_record_chunks, walk_segment
from kforensics.source.mapped import EvidenceFile, open_evidence
from kforensics.source.naming import FileKind, FileName, parse_file_name
from kforensics.source.walk import FoundDirectory, FoundFile, Obstacle

STRETCH_LENGTH = 8 << 20
"""Bytes of the file that one process takes at a time: small enough to hold their lines until it is their turn."""

WORTH_PROCESSES = 24 << 20
"""Bytes of a file for which a second process pays."""

_TURN = struct.Struct(">qqqq?")

Buffer = bytes | memoryview


class LineMaker(Protocol):
    """The function that makes lines, each with its line break, of the records of a segment."""

    def records(self, chunk: RecordChunk) -> Buffer:
        """Return the lines of the records of a chunk that are no control records, one behind the other."""

    def item(self, item: RecordItem | Damage) -> bytes:
        """Return the line of a control record or of damage."""


class _Turn(NamedTuple):
    """The state that the stretches so far hand to the next one; all of them are undamaged."""

    position: int = 0
    """The position where they ended: everything before is written."""
    restart: int = 0
    """The position where the last of them began."""
    last_offset: int = -1
    leader_epoch: int = -1
    good: bool = True


class _Lines(NamedTuple):
    """The lines of a stretch, and what the seams are checked by."""

    lines: list[Buffer]
    start: int
    end: int
    first_offset: int
    last_offset: int
    first_epoch: int
    leader_epoch: int
    good: bool


def write_lines(file: EvidenceFile, path: Path, make: LineMaker, descriptor: int, *, jobs: int) -> tuple[Damage, ...]:
    """Write the lines of all records of a segment to an open file.

    Args:
        descriptor: of the file that is written; nothing may wait in a buffer of its writer.
    """
    turn, met = _Turn(), dict[Gravity, Damage]()
    if jobs > 1 and file.size >= WORTH_PROCESSES and hasattr(os, "fork"):
        turn = _write_in_turn(path, file.size, make, descriptor, jobs)
    if turn.position < file.size:
        for lines, damage in line_windows(file, make, start=turn.restart, skip_to=turn.position):
            _write_all(descriptor, [lines])
            if damage is not None:
                met.setdefault(damage.gravity, damage)
    return tuple(met.values())


def line_windows(
    file: EvidenceFile, make: LineMaker, *, start: int = 0, end: int | None = None, skip_to: int = 0
) -> Iterator[tuple[Buffer, Damage | None]]:
    """Yield lines of all records, some at a time, and the damage that some of them are; what begins before `skip_to` is walked, and not shown."""
    for part in iter_record_chunks(file, start=start, end=end):
        if isinstance(part, Damage):
            if part.span.position >= skip_to:
                yield make.item(part), part
            continue
        for chunk, is_control in split_control(behind(part, skip_to)):
            if is_control:
                yield b"".join(make.item(RecordItem(one, *control_meaning(one))) for one in chunk.records()), None
            else:
                yield make.records(chunk), None


def _write_all(descriptor: int, lines: Sequence[Buffer]) -> None:
    left = memoryview(b"".join(lines))
    while left:
        left = left[os.write(descriptor, left) :]


def _write_in_turn(path: Path, size: int, make: LineMaker, descriptor: int, jobs: int) -> _Turn:
    """Write by several processes as far as all is well, each through a descriptor of its own, and return how far that is."""
    stretches = -(-size // STRETCH_LENGTH)
    with mmap.mmap(-1, _TURN.size) as shared:  # memory that all processes see
        shared[:] = _TURN.pack(*_Turn())

        def take(stretch: int) -> tuple[int, _Lines | None]:
            is_good = _Turn(*_TURN.unpack(shared)).good
            return stretch, _lines_of(path, stretch * STRETCH_LENGTH, size, make) if is_good else None

        def write(taken: tuple[int, _Lines | None]) -> None:
            upper = min((taken[0] + 1) * STRETCH_LENGTH, size)
            shared[:] = _TURN.pack(*_passed(_Turn(*_TURN.unpack(shared)), taken[1], upper, descriptor))

        processes = InTurn(take, write, jobs=min(jobs, stretches))
        try:
            for stretch in range(stretches):
                deque(processes.submit(stretch), maxlen=0)
            deque(processes.results(), maxlen=0)
        finally:
            processes.close()
        return _Turn(*_TURN.unpack(shared))


def _passed(turn: _Turn, lines: _Lines | None, upper: int, descriptor: int) -> _Turn:
    """Write a stretch if it continues where the turn ended."""
    if not turn.good or (lines is not None and lines.start >= upper <= turn.position):
        return turn  # over, or one batch fills the stretch
    if (
        lines is None
        or not lines.good
        or lines.start != turn.position
        or lines.first_offset <= turn.last_offset
        or 0 <= lines.first_epoch < turn.leader_epoch
    ):
        return turn._replace(good=False)
    _write_all(descriptor, lines.lines)
    epoch = max(lines.leader_epoch, turn.leader_epoch)
    return _Turn(lines.end, lines.start, lines.last_offset, epoch, good=True)


def _lines_of(path: Path, lower: int, size: int, make: LineMaker) -> _Lines | None:
    """Return the lines of a stretch; None where this process can't make them."""
    upper = min(lower + STRETCH_LENGTH, size)
    try:
        with open_evidence(path) as file:
            start = find_batch_start(file, lower) if lower else 0
            if start is None or start >= upper:
                return _Lines([], size if start is None else start, 0, -1, -1, -1, -1, good=True)
            return _walk(file, start, upper, make)
    except EvidenceError:
        return None


def _walk(file: EvidenceFile, start: int, upper: int, make: LineMaker) -> _Lines:
    lines: list[Buffer] = []
    damage: Damage | None = None
    for some, damage in line_windows(file, make, start=start, end=upper):
        if damage is not None:
            break
        lines.append(some)
    # The headers again, for the seams: a batch without records leaves no line.
    windows = list(walk_segment(file, level=Level.HEADERS, start=start, end=upper))
    tables = [window.batches for window in windows if len(window.batches)]
    if damage is not None or not tables or any(window.damage for window in windows):
        return _Lines([], start, start, -1, -1, -1, -1, good=False)
    return _Lines(
        lines,
        start,
        windows[-1].span.end,
        int(tables[0]["base_offset"][0]),
        max(int(table["last_offset"].max()) for table in tables),
        int(tables[0]["partition_leader_epoch"][0]),
        max(int(table["partition_leader_epoch"].max()) for table in tables),
        good=True,
    )


MOST_UNREAD = 10
"""Records of a file that are newer than known and are named one by one."""
UNOPENED = frozenset({FileKind.SYMBOLIC_LINK, FileKind.SPECIAL})

NOT_DUMPED = {
    FileKind.UNKNOWN: "neither its name nor its first bytes are those of a file of a data directory",
    FileKind.LOG_FILE: "a log of a process, not a file of a data directory: `kforensics explain` reads those",
    FileKind.SERVER_PROPERTIES: "a configuration, not a file of a data directory",
}


@dataclass(frozen=True, slots=True)
class DumpFile:
    """One file to decode, and how it is called in the output."""

    input: int
    path: Path
    relative: str
    shown: str
    name: FileName
    _content: "DumpContent" = field(repr=False)

    def items(self) -> Iterator[DumpItem]:
        """Yield batches or records, entries and damage, in the order of the file; an error becomes a problem."""
        content = self._content
        try:
            with open_evidence(self.path) as file:
                name = recognised_name(file, self.name)
                if name.kind in NOT_DUMPED and self.relative == WHOLE_INPUT:
                    content.complain(self, NOT_DUMPED[name.kind])
                    return
                unread = 0
                for item in walk_items(file, self.path, name, records=content.records, selection=content.selection):
                    if isinstance(item, RecordItem) and item.meaning and (reason := item.meaning.newer):
                        unread += 1
                        if unread <= MOST_UNREAD:
                            content.complain(self, f"offset {item.record.offset}: {reason}")
                    if isinstance(item, Damage) and item.kind is DamageKind.UNSUPPORTED:
                        content.complain(self, f"at byte {item.span.position}: {item.found}")
                    elif isinstance(item, Damage):
                        self._met(item)
                    yield redact_item(item, content.pseudonyms) if content.pseudonyms else item
                if unread > MOST_UNREAD:
                    content.complain(self, f"{unread - MOST_UNREAD:,} more records are newer than kforensics knows")
        except EvidenceError as error:
            words = error.problem
            content.complain(self, content.pseudonyms.without_quoted(words) if content.pseudonyms else words)

    @property
    def is_plain(self) -> bool:
        """Whether all records of a segment are asked for and are of no topic of Kafka's own: then columns make the lines."""
        content = self._content
        if content.pseudonyms or not content.records or not content.selection.is_everything:
            return False
        return self.name.kind is FileKind.SEGMENT and decoder_of_file(self.path, self.name) is None

    def lines(self, make: LineMaker) -> Iterator[Buffer]:
        """Yield the lines of all records of a plain segment, some at a time; what can't be read becomes a problem."""
        try:
            with open_evidence(self.path) as file:
                for some, damage in line_windows(file, make):
                    self._met(damage)
                    yield some
        except EvidenceError as error:
            self._content.complain(self, error.problem)

    def write_lines(self, make: LineMaker, descriptor: int) -> None:
        """Write the same lines to an open file, by several processes where the segment is large."""
        try:
            with open_evidence(self.path) as file:
                for damage in write_lines(file, self.path, make, descriptor, jobs=self._content.jobs):
                    self._met(damage)
        except EvidenceError as error:
            self._content.complain(self, error.problem)

    def _met(self, damage: Damage | None) -> None:
        if damage is not None and damage.gravity is Gravity.DAMAGE:
            self._content.damaged.add(self.shown)
        elif damage is not None and damage.gravity is Gravity.UNREAD:
            self._content.complain(self, damage.limit_words)


class DumpContent:
    """The content of all files. It is read each time that it is asked for; what was met the last time is kept."""

    def __init__(self, request: Ask, inputs: Inputs) -> None:
        self.jobs = request.jobs or default_jobs()
        self.pseudonyms = pseudonyms_of(request)
        self.records = request.records or request.show_payload or request.text
        """Whether records are asked for, not batches."""
        self.selection = Selection(
            from_offset=request.from_offset,
            to_offset=request.to_offset,
            leader_epoch=request.leader_epoch,
            producer_id=next(iter(request.producer_ids), None),
            from_time_ms=request.from_time_ms,
            to_time_ms=request.to_time_ms,
        )
        self.damaged: set[str] = set()
        self._inputs = inputs
        self._obstacles: list[Problem] = list(inputs.problems)
        self._files = tuple(self._find())
        self._problems: list[Problem] = []
        self._is_read = False

    def __len__(self) -> int:
        """Return how many files there are."""
        return len(self._files)

    def files(self) -> Iterator[DumpFile]:
        """Yield every file; whoever takes one reads its items before the next."""
        self._problems, self.damaged, self._is_read = [], set(), False
        yield from self._files
        self._is_read = True

    def complain(self, file: DumpFile, message: str) -> None:
        """Keep what could not be read of a file."""
        self._problems.append(Problem(input=file.input, path=file.relative, message=message))

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems so far: what could not be read."""
        return (*self._obstacles, *self._problems)

    def conclude(self) -> Conclusion:
        """Conclude from all the content, which is read for it unless it has been."""
        if not self._is_read:
            for file in self.files():
                for _ in file.items():
                    pass
        problems = self.problems
        answer = dump_answer(files=len(self._files), damaged=len(self.damaged), unread=len(problems))
        return Conclusion(answer=answer, problems=problems)

    def _find(self) -> Iterator[DumpFile]:
        for number, one in enumerate(self._inputs.found):
            for found in one.walk():
                match found:
                    case Obstacle():
                        self._obstacles.append(Problem(input=number, path=found.path, message=found.message))
                    case FoundDirectory():
                        pass
                    case FoundFile() if found.name.kind not in UNOPENED:
                        yield self._file(number, one, found)

    def _file(self, number: int, one: FoundInput, found: FoundFile) -> DumpFile:
        whole = found.path == WHOLE_INPUT
        path = one.root if whole else one.root / found.path
        shown = one.described.path if whole else f"{one.described.path.rstrip('/')}/{found.path}"
        return DumpFile(number, path, found.path, shown, found.name, self)


def _why_not_dumped(found: FoundInput) -> str:
    """Return the reason why a single file is no input, empty where it is one: its name, or its content where that is a segment's, says what it is."""
    name = parse_file_name(Path(found.described.path).name)
    if name.kind is FileKind.UNKNOWN:
        name = parse_file_name(found.root.name)
    with open_evidence(found.root) as file:
        return NOT_DUMPED.get(recognised_name(file, name).kind, "")


def run(request: Ask) -> Result[DumpContent]:
    """Decode the files below the paths."""
    inputs = find_inputs(request.paths, why_not=_why_not_dumped, keep_going=request.keep_going)
    content = DumpContent(request, inputs)
    return Result(command="dump", inputs=inputs.described, body=content, concluded=content.conclude)
