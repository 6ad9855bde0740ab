"""The segments of one replica in the order of their offsets, for readers that go through a whole log once."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kforensics.damage import Damage, Gravity
from kforensics.errors import EvidenceError
from kforensics.evidence.discovery.partition_dirs import PartitionPlace, problem_of
from kforensics.evidence.model import Problem
from kforensics.source.mapped import EvidenceFile, open_evidence
from kforensics.source.naming import FileKind, FileName, FileSuffix
from kforensics.source.walk import FoundFile, Obstacle, walk_partition


@dataclass(slots=True)
class ReplicaLog:
    """The files of a partition directory, and what could not be read of them."""

    place: PartitionPlace
    problems: list[Problem] = field(default_factory=list)
    segments: list[tuple[int, str]] = field(default_factory=list)
    """Base offset and path, in the order of the log."""
    deleted: list[tuple[int, str]] = field(default_factory=list)
    """Segments renamed `.deleted`."""
    snapshots: list[tuple[int, str]] = field(default_factory=list)
    """Offset and path of the producer snapshots."""
    indexes: list[tuple[int, str]] = field(default_factory=list)
    """Base offset and path of the offset indexes."""

    def files(self, segments: list[tuple[int, str]]) -> Iterator[tuple[str, EvidenceFile]]:
        """Open the segments one after the other; one that can't be opened or read is a problem."""
        for _, path in segments:
            try:
                with open_evidence(self.place.state.root / path) as file:
                    yield path, file
            except EvidenceError as error:
                self.problems.append(problem_of(self.place.state.input, path, error))

    def note_damage(self, path: str, damage: Damage) -> None:
        """Note what a broker would not repair by itself: records may be missing there."""
        if damage.gravity is Gravity.DAMAGE:
            words = (
                f"{damage.kind.value} at byte {damage.span.position}: expected {damage.expected}, found {damage.found}"
            )
            problem = Problem(input=self.place.state.input, path=path, position=damage.span.position, message=words)
            self.problems.append(problem)

    @property
    def first_base(self) -> int:
        """The base offset of the first segment, 0 where there is none."""
        return self.segments[0][0] if self.segments else 0

    @property
    def last_base(self) -> int:
        """The base offset of the last segment, 0 where there is none."""
        return self.segments[-1][0] if self.segments else 0


def list_log(place: PartitionPlace) -> ReplicaLog:
    """List the files of a partition directory that tell of its records and producers.

    Args:
        place: the directory.
    """
    log = ReplicaLog(place)
    name = Path(place.path).name
    for found in walk_partition(place.state.listings, place.path, name=name):
        match found:
            case Obstacle():
                log.problems.append(Problem(input=place.state.input, path=found.path, message=found.message))
            case FoundFile():
                _add(log, found.name, found.path)
    for one in (log.segments, log.deleted, log.snapshots):
        one.sort()
    return log


def _add(log: ReplicaLog, name: FileName, path: str) -> None:
    if not isinstance(name.base_offset, int):
        return
    targets: dict[tuple[FileKind, FileSuffix], list[tuple[int, str]]] = {
        (FileKind.SEGMENT, FileSuffix.NONE): log.segments,
        (FileKind.SEGMENT, FileSuffix.DELETED): log.deleted,
        (FileKind.PRODUCER_SNAPSHOT, FileSuffix.NONE): log.snapshots,
        (FileKind.OFFSET_INDEX, FileSuffix.NONE): log.indexes,
    }
    target = targets.get((name.kind, name.suffix))
    if target is not None:
        target.append((name.base_offset, path))
