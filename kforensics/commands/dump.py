"""The content of files: file after file, item after item, so that nothing is held in memory but what is on its way out."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kforensics.ask.model import Ask
from kforensics.case.processes import default_jobs
from kforensics.commands.record_lines import LineMaker, line_windows, write_lines
from kforensics.commands.redaction.key import pseudonyms_of
from kforensics.commands.redaction.names import redact_item
from kforensics.commands.result import Conclusion, Result
from kforensics.damage import Damage, DamageKind, Gravity
from kforensics.errors import EvidenceError
from kforensics.evidence.content.items import (
    DumpItem,
    RecordItem,
    Selection,
    decoder_of_file,
    recognised_name,
    walk_items,
)
from kforensics.evidence.discovery.inputs import WHOLE_INPUT, FoundInput, Inputs, find_inputs
from kforensics.evidence.model import Problem
from kforensics.findings.answers.contents import dump_answer
from kforensics.source.mapped import open_evidence
from kforensics.source.naming import FileKind, FileName, parse_file_name
from kforensics.source.walk import FoundDirectory, FoundFile, Obstacle

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

    def lines(self, make: LineMaker) -> Iterator[list[bytes]]:
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
