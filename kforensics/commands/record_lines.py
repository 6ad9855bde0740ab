"""Lines of a segment's records: columns to bytes, in several processes where the file is large.

Each process takes every n-th stretch of the file, makes its lines, and writes them itself when the turn comes round;
so nothing is copied between
processes and the order is that of the file. A stretch starts where a sound batch is found. Whether that is where the
stretch before ended, and whether
offsets and epochs go on rising, is checked at each seam: where not, and wherever something is damaged, this process
continues alone from the seam, with the
order of the whole file in view. So the output does not depend on the number of processes.
"""

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from kforensics.damage import Damage, Gravity
from kforensics.errors import EvidenceError
from kforensics.evidence.content.items import RecordItem, control_meaning
from kforensics.formats.columns.record_stream import RecordChunk, behind, split_control
from kforensics.formats.segment.walk import Level, find_batch_start, iter_record_chunks, walk_segment
from kforensics.source.mapped import EvidenceFile, open_evidence

STRETCH_LENGTH = 8 << 20
"""Bytes of the file that one process takes at a time: small enough to hold their lines until it is their turn."""

WORTH_PROCESSES = 24 << 20
"""Bytes of a file for which a second process pays."""

_TURN = struct.Struct(">qqqq?")


class LineMaker(Protocol):
    """The function that makes lines, each with its line break, of the records of a segment."""

    def records(self, chunk: RecordChunk) -> list[bytes]:
        """Return the lines of records that are no control records.

        Args:
            chunk: valid until the next one is asked for.
        """

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

    lines: list[bytes]
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
        turn = _Ring(path, file.size, make, descriptor, jobs).run()
    if turn.position < file.size:
        for lines, damage in line_windows(file, make, start=turn.restart, skip_to=turn.position):
            _write_all(descriptor, lines)
            if damage is not None:
                met.setdefault(damage.gravity, damage)
    return tuple(met.values())


def line_windows(
    file: EvidenceFile, make: LineMaker, *, start: int = 0, end: int | None = None, skip_to: int = 0
) -> Iterator[tuple[list[bytes], Damage | None]]:
    """Yield lines of all records, some at a time, and the damage that some of them are; what begins before `skip_to` is walked, and not shown."""
    for part in iter_record_chunks(file, start=start, end=end):
        if isinstance(part, Damage):
            if part.span.position >= skip_to:
                yield [make.item(part)], part
            continue
        for chunk, is_control in split_control(behind(part, skip_to)):
            if is_control:
                yield [make.item(RecordItem(one, *control_meaning(one))) for one in chunk.records()], None
            else:
                yield make.records(chunk), None


def _write_all(descriptor: int, lines: list[bytes]) -> None:
    left = memoryview(b"".join(lines))
    while left:
        left = left[os.write(descriptor, left) :]


class _Ring:
    """Processes that pass the turn to write round; each reads the file through a descriptor of its own."""

    def __init__(self, path: Path, size: int, make: LineMaker, descriptor: int, jobs: int) -> None:
        self._path = path
        self._make = make
        self._descriptor = descriptor
        self._stretches = -(-size // STRETCH_LENGTH)
        self._size = size
        self._jobs = min(jobs, self._stretches)

    def run(self) -> _Turn:
        """Write as far as all is well, and return how far that is."""
        pipes = [os.pipe() for _ in range(self._jobs + 1)]
        children = [self._start(number, pipes) for number in range(self._jobs)]
        os.write(pipes[0][1], _TURN.pack(*_Turn()))
        result = pipes[-1][0]
        for reader, writer in pipes:
            os.close(writer)
            if reader != result:
                os.close(reader)
        try:
            turn = _receive(result)
        finally:
            os.close(result)
            codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        if turn is None:
            if _PIPE_CLOSED in codes:
                raise BrokenPipeError
            raise ChildProcessError(f"a process of this dump ended early (exit codes {codes})")
        return turn

    def _start(self, number: int, pipes: list[tuple[int, int]]) -> int:
        child = os.fork()
        if child:
            return child
        code = 1
        try:
            mine = {pipes[number][0], pipes[(number + 1) % self._jobs][1], pipes[-1][1]}
            for descriptor in {one for pipe in pipes for one in pipe} - mine:
                os.close(descriptor)
            self._work(number, pipes[number][0], pipes[(number + 1) % self._jobs][1], pipes[-1][1])
            code = 0
        except BrokenPipeError:
            code = _PIPE_CLOSED
        finally:
            # Neither buffers nor exit handlers of the parent may run twice.
            os._exit(code)

    def _work(self, number: int, turns: int, onward: int, result: int) -> None:
        good = True
        with open_evidence(self._path) as file:
            for stretch in range(number, self._stretches, self._jobs):
                lines = self._lines(file, stretch) if good else None
                turn = _receive(turns)
                if turn is None:
                    return
                turn = self._pass(turn, lines, min((stretch + 1) * STRETCH_LENGTH, self._size))
                good = turn.good
                os.write(result if stretch == self._stretches - 1 else onward, _TURN.pack(*turn))

    def _pass(self, turn: _Turn, lines: _Lines | None, upper: int) -> _Turn:
        """Write the stretch if it continues where the turn ended."""
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
        _write_all(self._descriptor, lines.lines)
        epoch = max(lines.leader_epoch, turn.leader_epoch)
        return _Turn(lines.end, lines.start, lines.last_offset, epoch, good=True)

    def _lines(self, file: EvidenceFile, stretch: int) -> _Lines | None:
        """Return the lines of a stretch; None where this process can't make them."""
        lower, upper = stretch * STRETCH_LENGTH, min((stretch + 1) * STRETCH_LENGTH, self._size)
        try:
            start = find_batch_start(file, lower) if lower else 0
            if start is None or start >= upper:
                return _Lines([], self._size if start is None else start, 0, -1, -1, -1, -1, good=True)
            return self._walk(file, start, upper)
        except EvidenceError:
            return None

    def _walk(self, file: EvidenceFile, start: int, upper: int) -> _Lines:
        lines: list[bytes] = []
        damage: Damage | None = None
        for some, damage in line_windows(file, self._make, start=start, end=upper):
            if damage is not None:
                break
            lines += some
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


_PIPE_CLOSED = 32


def _receive(descriptor: int) -> _Turn | None:
    data = os.read(descriptor, _TURN.size)
    return _Turn(*_TURN.unpack(data)) if len(data) == _TURN.size else None
