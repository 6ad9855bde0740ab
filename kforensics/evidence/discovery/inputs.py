"""What the paths on a command line stand for: one input a node, with who it is and all of its log directories."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from kforensics.damage import Absent
from kforensics.errors import EvidenceError
from kforensics.evidence.discovery.log_dirs import (
    SMALL_FILE_LIMIT,
    FoundLogDir,
    group_by_node,
    look_at_log_dir,
    node_kind,
    version_hint,
)
from kforensics.evidence.model import Input, Problem
from kforensics.source.discover import Place, Shape, discover
from kforensics.source.mapped import EvidenceFile, open_evidence
from kforensics.source.naming import (
    FileKind,
    parse_file_name,
)
from kforensics.source.walk import (
    Found,
    FoundFile,
    Listings,
    Obstacle,
    walk_files,
    walk_log_dir,
    walk_partition,
)

WHOLE_INPUT = "."
"""The path of an input that is itself a file, or of its root, relative to the input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundInput:
    """One input: how it is called in reports, and where it really is."""

    described: Input
    listings: Listings
    shape: Shape | Absent
    """Absent where the path that was named can't be used."""
    log_dirs: tuple[FoundLogDir, ...] = ()
    log_dir_paths: tuple[str, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()

    @property
    def root(self) -> Path:
        """Where the input is; every path of it is relative to this."""
        return self.listings.root

    def open(self, path: str) -> EvidenceFile:
        """Open a file of this input by its path relative to the input."""
        return open_evidence(self.root / path)

    def read_small(self, path: str, limit: int = SMALL_FILE_LIMIT) -> bytes:
        """All bytes of a small file of this input."""
        with self.open(path) as file:
            return file.read_all(limit)

    def walk(self) -> Iterator[Found]:
        """Everything below the input, and what could not be looked at."""
        yield from self.obstacles
        match self.shape:
            case Shape.FILE:
                yield self._itself()
            case Shape.PARTITION:
                yield from walk_partition(self.listings, name=Path(self.described.path).resolve().name)
            case Shape.FILES:
                yield from walk_files(self.listings)
            case Shape.LOG_DIR | Shape.PARENT:
                for log_dir in self.log_dir_paths:
                    yield from walk_log_dir(self.listings, log_dir)

    def _itself(self) -> FoundFile | Obstacle:
        try:
            status = self.root.lstat()
        except OSError as error:
            return Obstacle(WHOLE_INPUT, f"it can't be looked at: {error.strerror}")
        name = parse_file_name(Path(self.described.path).name)
        if name.kind is FileKind.UNKNOWN:
            name = parse_file_name(self.root.name)
        return FoundFile(WHOLE_INPUT, "", Absent.NOT_APPLICABLE, name, status.st_size, status.st_mtime_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """All inputs of a command in the order they were named, and the named paths that can't be used."""

    found: tuple[FoundInput, ...]
    problems: tuple[Problem, ...] = ()

    @property
    def described(self) -> tuple[Input, ...]:
        """The inputs as reports show them."""
        return tuple(one.described for one in self.found)


def find_inputs(paths: Sequence[Path], *, with_server_logs: bool = False) -> Inputs:
    """The inputs that paths stand for; a path that can't be used is a problem beside the others.

    Args:
        paths: as named by a person.
        with_server_logs: whether directories of server logs, named or found on the way, are inputs too.

    Raises:
        EvidenceError: none of the paths can be used.
    """
    found: list[FoundInput] = []
    problems: list[Problem] = []
    errors: list[EvidenceError] = []
    seen: set[tuple[Path, tuple[str, ...]]] = set()
    for path in paths:
        try:
            places = _inputs_of(path, discover(path), with_server_logs=with_server_logs)
        except EvidenceError as error:
            errors.append(error)
            problems.append(Problem(input=len(found), path=WHOLE_INPUT, message=_words(error)))
            found.append(
                FoundInput(
                    described=Input(path=str(path), kind="unreadable"), listings=Listings(path), shape=Absent.UNREADABLE
                )
            )
            continue
        for place in places:
            key = (place.root, place.log_dir_paths)
            if key not in seen:
                seen.add(key)
                found.append(place)
    if errors and len(errors) == len(found):
        raise errors[0]
    return Inputs(found=tuple(found), problems=tuple(problems))


def _words(error: EvidenceError) -> str:
    return f"{error.problem}; likely {' or '.join(error.causes)}" if error.causes else error.problem


def _inputs_of(given: Path, place: Place, *, with_server_logs: bool) -> list[FoundInput]:
    match place.shape:
        case Shape.FILE:
            return [
                FoundInput(
                    described=Input(path=str(given), kind=file_input_kind(given, place.root)),
                    listings=place.listings,
                    shape=Shape.FILE,
                )
            ]
        case Shape.PARTITION:
            return [_simple(given, place.listings, "partition", Shape.PARTITION)]
        case Shape.FILES:
            return [_simple(given, place.listings, "log-files", Shape.FILES, place.obstacles)]
        case Shape.LOG_DIR:
            return [_node_input(str(given), place.listings, (look_at_log_dir(place.listings, ""),))]
    log_dirs = tuple(look_at_log_dir(place.listings, path) for path in place.log_dirs)
    inputs = [
        _node_input(str(given / folder), place.listings.below(folder), group)
        for folder, group in group_by_node(log_dirs)
    ]
    inputs += [
        _simple(given / path, place.listings.below(path), "partition", Shape.PARTITION) for path in place.partitions
    ]
    if with_server_logs:
        inputs += [
            _simple(given / path, place.listings.below(path), "log-files", Shape.FILES) for path in place.file_dirs
        ]
    inputs.sort(key=lambda one: one.described.path)
    if inputs and place.obstacles:
        first = inputs[0]
        prefix = first.root.relative_to(place.root)
        met = tuple(
            Obstacle(str(PurePosixPath(_upwards(prefix), obstacle.path)), obstacle.message)
            for obstacle in place.obstacles
        )
        inputs[0] = replace(first, obstacles=(*first.obstacles, *met))
    return inputs


def _upwards(prefix: Path) -> str:
    # What was met on the way to the first input lies beside it, not below.
    return "/".join([".."] * len(prefix.parts)) or "."


def _simple(
    given: Path, listings: Listings, kind: str, shape: Shape, obstacles: tuple[Obstacle, ...] = ()
) -> FoundInput:
    return FoundInput(described=Input(path=str(given), kind=kind), listings=listings, shape=shape, obstacles=obstacles)


def file_input_kind(given: Path, root: Path) -> str:
    """What a single file is as an input; one of unknown name with the ending of a text log is taken for a server log."""
    kind = parse_file_name(given.name).kind
    if kind is FileKind.UNKNOWN:
        kind = parse_file_name(root.name).kind
    if kind in {FileKind.OFFSET_CHECKPOINT, FileKind.LEADER_EPOCH_CHECKPOINT}:
        return "checkpoint"
    if kind is FileKind.UNKNOWN and any(suffix in {".log", ".out", ".txt"} for suffix in given.suffixes):
        return FileKind.LOG_FILE.value
    return kind.value


def _node_input(path: str, listings: Listings, log_dirs: tuple[FoundLogDir, ...]) -> FoundInput:
    cluster_id = next((one.node[0] for one in log_dirs if not isinstance(one.node[0], Absent)), log_dirs[0].node[0])
    node_id = next((one.node[1] for one in log_dirs if not isinstance(one.node[1], Absent)), log_dirs[0].node[1])
    described = Input(
        path=path,
        kind=node_kind(log_dirs, node_id),
        broker_id=node_id,
        cluster_id=cluster_id,
        kafka_version_hint=version_hint(log_dirs),
    )
    return FoundInput(
        described=described,
        listings=listings,
        shape=Shape.LOG_DIR if log_dirs[0].path == "" else Shape.PARENT,
        log_dirs=log_dirs,
        log_dir_paths=tuple(one.path for one in log_dirs),
    )
