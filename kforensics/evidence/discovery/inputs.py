"""The inputs that the paths on a command line name: one input a node, with its identity, all of its log directories, and what lies beside them."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.errors import (
    EvidenceError,
    EvidenceUnreadable,
    InputsRefused,
    MomentsMixed,
    NotADataDir,
    UsageError,
    did_you_mean,
    nearest_names,
    refuse,
)
from kforensics.evidence.discovery.log_dirs import (
    SMALL_FILE_LIMIT,
    FoundLogDir,
    group_by_node,
    look_at_log_dir,
    node_kind,
    version_hint,
)
from kforensics.evidence.discovery.log_spans import (
    MOST_HEADS,
    begins_like_a_log,
    has_kafkas_lines,
    holds_logs,
    is_of_data_dir,
    logs_in,
    packed_data,
)
from kforensics.evidence.model import Input, Problem
from kforensics.formats.checkpoint.properties import MetaProperties, parse_properties
from kforensics.source.capture import captured_roots, captures_in, split_at_capture
from kforensics.source.discover import EMPTY_DIRECTORY, Place, Shape, discover
from kforensics.source.mapped import EvidenceFile, open_evidence, read_evidence
from kforensics.source.naming import FileKind, parse_file_name, parse_partition_directory
from kforensics.source.packed import members_of
from kforensics.source.store import Store, store_of
from kforensics.source.walk import (
    Found,
    FoundFile,
    Listing,
    Listings,
    Obstacle,
    join,
    list_directory,
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
    is_named: bool = True
    """It was named itself, not found below a path that was."""

    @property
    def root(self) -> Path:
        """The root of the input; every path of it is relative to this."""
        return self.listings.root

    @property
    def store(self) -> Store:
        """What is known of the place of its files."""
        return store_of(self.root)

    def open(self, path: str) -> EvidenceFile:
        """Open a file of this input."""
        return open_evidence(self.root / path)

    def read_small(self, path: str, limit: int = SMALL_FILE_LIMIT) -> bytes:
        """Return all bytes of a small file of this input."""
        return read_evidence(self.root / path, limit)

    def walk(self, *, within: Callable[[str], bool] | None = None, in_outline: bool = False) -> Iterator[Found]:
        """Yield everything below the input, and what could not be looked at.

        Args:
            in_outline: the files of a partition directory are not wanted where the bytes of its segments are known without them.
        """
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
                    yield from walk_log_dir(self.listings, log_dir, within=within, in_outline=in_outline)

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
    """The inputs of a command in the order they were named, and the named paths that can't be used."""

    found: tuple[FoundInput, ...]
    problems: tuple[Problem, ...] = ()
    cluster: str | Absent = Absent.UNKNOWN
    """The cluster that was asked for, else the only one that data directories name."""
    is_cluster_chosen: bool = False
    """It was asked for: what names another cluster is left out, not refused."""
    left_out: tuple[Input, ...] = ()
    """Inputs of other clusters than the one that was asked for."""

    @property
    def described(self) -> tuple[Input, ...]:
        """The inputs as reports show them."""
        return tuple(one.described for one in self.found)

    def below_named(self, problems: Iterable[Problem]) -> list[Problem]:
        """Return the problems of places below paths that can be used: headlines name the others by themselves."""
        return [one for one in problems if not one.is_foreign and self.found[one.input].shape is not Absent.UNREADABLE]

    @property
    def numbered(self) -> Iterator[tuple[int, FoundInput]]:
        """The inputs that are looked at, each with its number."""
        return enumerate(self.found)

    @property
    def brokers(self) -> frozenset[int]:
        """The nodes whose data directories are among the inputs."""
        return frozenset(
            one.described.broker_id for one in self.found if one.log_dirs and isinstance(one.described.broker_id, int)
        )


WhyNot = Callable[[FoundInput], str]
"""Why a command can make nothing of a single file that was named; empty where it can."""


def why_not_checked(found: FoundInput) -> str:
    """Say why commands that look at one file after the other do not check it; empty where they do."""
    return "" if _has_known_name(found) else "its name is not one that a broker writes"


def _has_known_name(found: FoundInput) -> bool:
    names = (Path(found.described.path).name, found.root.name)
    return any(parse_file_name(name).kind is not FileKind.UNKNOWN for name in names)


def why_not_listed(found: FoundInput) -> str:
    """Say why commands that list what is there do not list it; empty where they do: broker logs are recognised by what they hold."""
    words = why_not_checked(found)
    return words if words and not begins_like_a_log(found.root, is_named=True) else ""


def why_not_compared(found: FoundInput) -> str:
    """Say why commands that look at replicas and at what broker logs say of them do not compare it; empty where they do."""
    kind = found.described.kind
    if kind in {FileKind.LOG_FILE.value, FileKind.UNKNOWN.value}:
        if _has_known_name(found) or begins_like_a_log(found.root, is_named=True):
            return ""
        return (
            packed_data(found.root)
            or "no file of a data directory, and no line of its beginning is one of a broker's log"
        )
    if kind == FileKind.SERVER_PROPERTIES.value:
        return ""
    return "a single file does not say which partition of which broker it is of: name its directory"


def put_aside(one: FoundInput) -> FoundInput:
    """Return an input of which nothing is read any more, in its place among the others."""
    return replace(one, shape=Absent.NOT_APPLICABLE, log_dirs=(), log_dir_paths=(), obstacles=())


def find_inputs(
    paths: Sequence[Path],
    *,
    with_server_logs: bool = False,
    why_not: WhyNot | None = None,
    keep_going: bool = False,
    one_cluster: bool = False,
    cluster: str | None = None,
    with_emptied: bool = True,
) -> Inputs:
    """Return the inputs that paths name.

    Args:
        paths: as named by a person; a capture replaces all that it was taken of.
        with_emptied: an empty directory beside a log directory that is named by itself is a problem in the report, as with `keep_going`.

    Raises:
        EvidenceError: a path can't be used, or with `keep_going` none can; or they are not of one cluster.
    """
    errors: list[EvidenceError] = []
    inputs = inputs_at(paths, errors, with_server_logs=with_server_logs, why_not=why_not)
    if errors := without_emptied(errors, inputs.found) if with_emptied else errors:
        refuse(errors, named=len(paths), keep_going=keep_going and len(errors) < len(paths))
    return belonging_together(inputs, cluster=cluster) if one_cluster or cluster is not None else inputs


def inputs_at(
    paths: Sequence[Path],
    errors: list[EvidenceError],
    *,
    with_server_logs: bool = False,
    why_not: WhyNot | None = None,
) -> Inputs:
    """Return the inputs that paths name, each once; those that can't be used are added to the errors, and are problems."""
    found: list[FoundInput] = []
    problems: list[Problem] = []
    seen: set[tuple[Path, tuple[str, ...]]] = set()
    for path in paths:
        try:
            places = _places_at(path, with_server_logs=with_server_logs, why_not=why_not)
        except EvidenceError as error:
            errors.append(error)
            problems.append(Problem(input=len(found), path=WHOLE_INPUT, message=problem_words(error)))
            found.append(unusable_input(path))
            continue
        for place in places:
            key = (place.root, place.log_dir_paths)
            if key not in seen:
                seen.add(key)
                found.append(place)
    return Inputs(found=tuple(found), problems=tuple(problems))


def without_emptied(errors: Sequence[EvidenceError], found: Sequence[FoundInput]) -> list[EvidenceError]:
    """Return the errors without those of empty directories beside a log directory that is named by itself: of such a disk, emptied or not mounted, a problem is enough."""
    beside = {one.root.parent for one in found if one.shape is Shape.LOG_DIR and one.store.holds_bytes}
    return [
        error
        for error in errors
        if not (
            isinstance(error, NotADataDir)
            and error.problem == EMPTY_DIRECTORY
            and Path(error.path).resolve().parent in beside
        )
    ]


def unusable_input(path: Path) -> FoundInput:
    """Return an input in place of a path that can't be used, so that those behind it keep their numbers."""
    described = Input(path=str(path), kind="unreadable")
    return FoundInput(described=described, listings=Listings(path), shape=Absent.UNREADABLE)


def problem_words(error: EvidenceError) -> str:
    """Return an error about a named path as one sentence of a problem, with its likely causes and the nearest names."""
    words = f"{error.problem}; likely {' or '.join(error.causes)}" if error.causes else error.problem
    return f"{words}; {did_you_mean(error.nearest)}" if error.nearest else words


def belonging_together(inputs: Inputs, *, cluster: str | None = None, is_of_one_moment: bool = False) -> Inputs:
    """Return the inputs, which are of one cluster then.

    Args:
        is_of_one_moment: whether they are taken as the present state of each broker: a broker that holds a partition twice is an error then.

    Raises:
        InputsRefused: data directories name several clusters, or one broker holds a partition twice and they name none, or are of one moment.
        UsageError: none of them is of the cluster that was asked for.
    """
    require_one_redaction(inputs.found)
    ids = sorted({one.described.cluster_id for one in inputs.found if not isinstance(one.described.cluster_id, Absent)})
    if cluster is not None:
        if ids and cluster not in ids:
            hint = did_you_mean(nearest_names(cluster, ids)) or f"they are of {', '.join(ids)}"
            raise UsageError(f"no data directory among the inputs is of cluster {cluster} (--cluster); {hint}")
        inputs = _only_of(inputs, cluster)
        if is_of_one_moment:
            _refuse_twins(inputs, is_of_one_moment=True)
        return inputs
    if len(ids) > 1:
        raise of_several_clusters(
            [(one.path, one.cluster_id) for one in inputs.described if not isinstance(one.cluster_id, Absent)]
        )
    _refuse_twins(inputs, is_of_one_moment=is_of_one_moment)
    return replace(inputs, cluster=ids[0] if len(ids) == 1 else Absent.UNKNOWN)


def require_one_redaction(found: Iterable[FoundInput]) -> None:
    """Refuse captures with pseudonyms beside others: names and digests of the same things differ in them.

    Raises:
        InputsRefused: they are redacted under different keys, or only some of them are.
    """
    kinds = {one.described.path: one.store.redaction for one in found}
    if len(set(kinds.values())) < 2:
        return
    raise InputsRefused(
        "captures that are redacted can be compared only with captures that are redacted under the same key, with or without topics alike",
        tuple(
            EvidenceUnreadable(path, "it has names as they are" if kind is None else f"its redaction is {kind}")
            for path, kind in kinds.items()
        ),
    )


def of_several_clusters(named: Sequence[tuple[str, str]]) -> InputsRefused:
    """Return the refusal of inputs of several clusters: which path is whose."""
    ids = sorted({cluster for _, cluster in named})
    return InputsRefused(
        f"the inputs are of {len(ids)} clusters ({', '.join(ids)})",
        tuple(EvidenceUnreadable(path, f"it is of cluster {cluster}") for path, cluster in named),
        ("--cluster ID analyses what is of one of them; controllers of one let in no node of another",),
    )


def _only_of(inputs: Inputs, cluster: str) -> Inputs:
    """Return the inputs without those that name another cluster; numbers of inputs in problems follow."""
    kept = [at for at, one in enumerate(inputs.found) if one.described.cluster_id in {cluster, *Absent}]
    number = {at: new for new, at in enumerate(kept)}
    return Inputs(
        found=tuple(inputs.found[at] for at in kept),
        problems=tuple(replace(one, input=number[one.input]) for one in inputs.problems if one.input in number),
        cluster=cluster,
        is_cluster_chosen=True,
        left_out=tuple(one for at, one in enumerate(inputs.described) if at not in number),
    )


def named_log_dirs(inputs: Inputs) -> tuple[Collection[str], ...]:
    """Return the log directories that each `server.properties` among the inputs names."""
    return ServerSettings(inputs).log_dirs


def _refuse_twins(inputs: Inputs, *, is_of_one_moment: bool) -> None:
    """Refuse directories of one broker id that hold a partition twice, where nothing says that they are of one cluster, or they are taken as of one moment."""
    nodes = [one for one in inputs.found if one.log_dirs and isinstance(one.described.broker_id, int)]
    for one, other in combinations(nodes, 2):
        if one.described.broker_id != other.described.broker_id:
            continue
        is_named = not isinstance(one.described.cluster_id, Absent) and not isinstance(
            other.described.cluster_id, Absent
        )
        if is_named and not is_of_one_moment:
            continue
        both = _live_partitions(one) & _live_partitions(other)
        if not both or (is_named and are_disks_of_one(one, other, named_log_dirs(inputs))):
            continue
        node = one.described.broker_id
        times = sum(each.described.broker_id == node for each in nodes)
        often, moments = ("twice", "two") if times == 2 else (f"{times} times", "several")
        clusters, unnamed = (
            ("", "") if is_named else ("of two clusters or ", ", and no cluster.id that says of which cluster")
        )
        words = f"broker {node} with {min(both)}{unnamed}"
        raise MomentsMixed(
            f"node {node} is given {often}, so the inputs are {clusters}of {moments} moments",
            (EvidenceUnreadable(one.described.path, words), EvidenceUnreadable(other.described.path, words)),
            (
                f"{'If they are of one cluster, n' if clusters else 'N'}ame the newest state of each node, and earlier ones after --before",
            ),
        )


def are_disks_of_one(one: FoundInput, other: FoundInput, settings: Iterable[Collection[str]] = ()) -> bool:
    """Whether two inputs of one node id are log directories of one node that holds partitions in both, and no copies of two moments.

    They have directory ids, none in common, and one metadata log at most. Before 3.7, which wrote no ids, and made what an offline directory held anew in another,
    they lie in one folder, hold not just the same, and one alone has the metadata log, of which a copy of each moment of a node has one.

    Args:
        settings: the log directories that each `server.properties` names.
    """
    here = {(found.root / log_dir.path).resolve() for found in (one, other) for log_dir in found.log_dirs}
    if any(here <= {Path(path.strip()).resolve() for path in named} for named in settings):
        return True
    ids, others = _directory_ids(one), _directory_ids(other)
    have_logs = [any(each.is_metadata_dir for each in found.log_dirs) for found in (one, other)]
    if ids or others:
        return bool(ids) and bool(others) and not ids & others and not all(have_logs)
    is_beside = one.root.resolve().parent == other.root.resolve().parent
    return is_beside and have_logs[0] != have_logs[1] and _live_partitions(one) != _live_partitions(other)


def _directory_ids(found: FoundInput) -> frozenset[object]:
    return frozenset(
        one.meta.directory_id
        for one in found.log_dirs
        if isinstance(one.meta, MetaProperties) and not isinstance(one.meta.directory_id, Absent)
    )


def _live_partitions(found: FoundInput) -> frozenset[str]:
    return frozenset(name for one in found.log_dirs for name in one.partitions)


def _places_at(path: Path, *, with_server_logs: bool, why_not: WhyNot | None) -> list[FoundInput]:
    """Return the inputs at a path; a capture replaces what it was taken of, and a directory for the captures in it, too."""
    captured = split_at_capture(path)
    if captured is not None:
        return _captured_inputs([captured], with_server_logs=with_server_logs)
    try:
        place = discover(path)
    except NotADataDir as error:
        inside = captures_in(path, list_directory(path, "").entries)
        listings = Listings(path.resolve())
        files = (one.path for one in islice(walk_files(listings), MOST_HEADS) if isinstance(one, FoundFile))
        packed = tuple(_packed_data_dirs(path, files))
        logs = with_server_logs and store_of(path).is_here and holds_logs(listings)
        if not inside and not logs:
            if packed:
                raise NotADataDir(
                    str(path), error.problem, tuple(f"{one.path}: {one.message}" for one in packed)
                ) from error
            raise
        return [
            *_captured_inputs(inside, with_server_logs=with_server_logs),
            *([_simple(path, listings, "log-files", Shape.FILES, packed)] if logs else []),
        ]
    inside = () if place.shape is Shape.FILE else captures_in(path, place.listings.of("").entries)
    places = _inputs_of(path, place, with_server_logs=with_server_logs)
    if why_not is not None and len(places) == 1 and places[0].shape is Shape.FILE and (words := why_not(places[0])):
        raise EvidenceUnreadable(str(path), words)
    if place.shape in {Shape.LOG_DIR, Shape.PARTITION} and places:
        return _with_captures_beside(places, inside, with_server_logs=with_server_logs)
    return [*_captured_inputs(inside, with_server_logs=with_server_logs), *places]


def _with_captures_beside(
    places: list[FoundInput], captures: Iterable[Path], *, with_server_logs: bool
) -> list[FoundInput]:
    """Return the inputs at a directory that a broker writes to, and those of the captures that somebody put there: one that can't be used is a file of it that can't be read."""
    found: list[FoundInput] = []
    met: list[Obstacle] = []
    for capture in captures:
        try:
            found += _captured_inputs([capture], with_server_logs=with_server_logs)
        except EvidenceError as error:
            met.append(Obstacle(capture.name, problem_words(error)))
    first = places[0]
    return [*found, replace(first, obstacles=(*first.obstacles, *met)) if met else first, *places[1:]]


def _captured_inputs(captures: Iterable[Path], *, with_server_logs: bool) -> list[FoundInput]:
    return [
        one
        for capture in captures
        for root in captured_roots(capture)
        for one in _inputs_of(root, discover(root), with_server_logs=with_server_logs)
    ]


def _inputs_of(given: Path, place: Place, *, with_server_logs: bool) -> list[FoundInput]:
    match place.shape:
        case Shape.FILE:
            kind = file_input_kind(given, place.root)
            if with_server_logs and kind == FileKind.UNKNOWN.value and begins_like_a_log(place.root, is_named=True):
                kind = FileKind.LOG_FILE.value
            is_archive = kind == FileKind.LOG_FILE.value and _ARCHIVE.search(given.name) is not None
            words = packed_data(place.root) if is_archive else ""
            held = (Obstacle(WHOLE_INPUT, words),) if words else ()
            return [_simple(given, place.listings, kind, Shape.FILE, held)]
        case Shape.PARTITION:
            return [_simple(given, place.listings, "partition", Shape.PARTITION)]
        case Shape.FILES:
            met = (*place.obstacles, *_packed_data_dirs(place.root, place.other_files))
            return [_simple(given, place.listings, "log-files", Shape.FILES, met)]
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
            replace(_simple(given / path, place.listings.below(path), "log-files", Shape.FILES), is_named=not path)
            for path in place.file_dirs
        ]
        inputs += [
            replace(
                _simple(given / path, Listings(place.root / path), FileKind.LOG_FILE.value, Shape.FILE), is_named=False
            )
            for path in _other_logs(place)
        ]
    inputs.sort(key=lambda one: one.described.path)
    obstacles = (*place.obstacles, *_packed_data_dirs(place.root, place.other_files))
    if inputs and obstacles:
        first = inputs[0]
        prefix = first.root.relative_to(place.root)
        met = tuple(
            Obstacle(str(PurePosixPath("/".join([".."] * len(prefix.parts)) or ".", obstacle.path)), obstacle.message)
            for obstacle in obstacles
        )
        inputs[0] = replace(first, obstacles=(*first.obstacles, *met))
    return inputs


def _packed_data_dirs(root: Path, files: Iterable[str]) -> Iterator[Obstacle]:
    """Yield the archives among files that have data directories in them: nothing unpacks them."""
    for path in filter(_ARCHIVE.search, files) if store_of(root).is_here else ():
        words = packed_data(root / path)
        if words:
            yield Obstacle(path, words)


def _other_logs(place: Place) -> Iterator[str]:
    """Yield the broker logs beside data directories that have other names, as pods and collectors give them; those in a folder of logs are found with it."""
    if store_of(place.root).is_here:
        for path in place.other_files[:MOST_HEADS]:
            is_inside = any(not one or path.startswith(f"{one}/") for one in place.file_dirs)
            if not is_inside and has_kafkas_lines(place.root / path):
                yield path


def _simple(
    given: Path, listings: Listings, kind: str, shape: Shape, obstacles: tuple[Obstacle, ...] = ()
) -> FoundInput:
    return FoundInput(described=Input(path=str(given), kind=kind), listings=listings, shape=shape, obstacles=obstacles)


def file_input_kind(given: Path, root: Path) -> str:
    """Return the kind of input that a single file is; one of unknown name with the ending of a text log counts as a server log."""
    kind = parse_file_name(given.name).kind
    if kind is FileKind.UNKNOWN:
        kind = parse_file_name(root.name).kind
    if kind in {FileKind.OFFSET_CHECKPOINT, FileKind.LEADER_EPOCH_CHECKPOINT}:
        return "checkpoint"
    if kind is FileKind.UNKNOWN and any(suffix in {".log", ".out", ".txt"} for suffix in given.suffixes):
        return FileKind.LOG_FILE.value
    return kind.value


def empty_log_dir(path: Path) -> FoundInput:
    """Return an empty directory as a log directory that no broker has written to yet."""
    listings = Listings(path.resolve())
    return _node_input(str(path), listings, (look_at_log_dir(listings, ""),))


def empty_beside(found: FoundInput) -> frozenset[str]:
    """Return the empty directories beside the log directories of an input, without what a file system puts on a new disk."""
    folders = {str(PurePosixPath(one.path).parent) for one in found.log_dirs if one.path}
    beside = {
        join("" if folder == "." else folder, entry.name)
        for folder in folders
        for entry in found.listings.of("" if folder == "." else folder).entries
        if entry.is_directory and entry.name != "lost+found" and not entry.name.startswith(".")
    }
    listings = {path: found.listings.of(path) for path in beside - {one.path for one in found.log_dirs}}
    return frozenset(path for path, below in listings.items() if not _holds_anything(below))


def _holds_anything(listing: Listing) -> bool:
    return bool(listing.obstacles) or any(entry.name != "lost+found" for entry in listing.entries)


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


def read_server_properties(found: FoundInput) -> Iterator[tuple[str, Mapping[str, str] | EvidenceError]]:
    """Yield each `server.properties` of an input: its path, and its settings or why it can't be read."""
    for item in found.walk(within=lambda name: parse_partition_directory(name) is None):
        if not isinstance(item, FoundFile) or item.name.kind is not FileKind.SERVER_PROPERTIES:
            continue
        path = found.root if item.path == WHOLE_INPUT else found.root / item.path
        try:
            with open_evidence(path) as file:
                text = file.read_all(SMALL_FILE_LIMIT)
        except EvidenceError as error:
            yield item.path, error
        else:
            yield item.path, {entry.key: entry.value.strip() for entry in parse_properties(text)}


class ServerSettings:
    """The settings of all `server.properties` among some inputs, which are read once; files that can't be read add nothing."""

    def __init__(self, inputs: Inputs) -> None:
        read = (settings for _, found in inputs.numbered for _, settings in read_server_properties(found))
        self._files = tuple(settings for settings in read if not isinstance(settings, EvidenceError))

    def numbers(self, name: str) -> tuple[int, ...]:
        """Return every whole number that a setting has in some file; one of more than nine digits, or with a sign, is left out."""
        return tuple(int(value) for value in self._values(name) if value.isdecimal() and len(value) < 10)

    def flags(self, name: str) -> tuple[bool, ...]:
        """Return every truth value that a setting has in some file; one that is neither `true` nor `false` is left out."""
        return tuple(value.lower() == "true" for value in self._values(name) if value.lower() in {"true", "false"})

    @property
    def log_dirs(self) -> tuple[tuple[str, ...], ...]:
        """The log directories that each file names."""
        return tuple(
            tuple(one for one in value.split(",") if one.strip() and "\0" not in one)
            for value in self._values("log.dirs")
        )

    def of_node(self, node: int) -> Mapping[str, str]:
        """Return the settings of a node, as far as a file names it; those of its last file count."""
        mine = (one for one in self._files if one.get("node.id", one.get("broker.id")) == str(node))
        return {name: value for one in mine for name, value in one.items()}

    def _values(self, name: str) -> Iterator[str]:
        return (settings[name] for settings in self._files if name in settings)


class LogPlace(NamedTuple):
    """A file that may be a broker's log."""

    root: Path
    """The real path of the input."""
    path: str
    """The path relative to the input; `.` where the input is the file."""
    input: int
    member: str = ""
    """The file in it that is meant, where it is a zip or a tar of several."""

    @property
    def name(self) -> str:
        """The path with that of the file in it."""
        return "/".join(one for one in (self.path, self.member) if one not in {"", "."}) or self.path

    @property
    def location(self) -> Path:
        """The real path of the file."""
        return self.root if self.path == "." else self.root / self.path


def has_log_files(inputs: Inputs) -> bool:
    """Return whether log files of brokers were given."""
    return any(_is_of_logs(found) or any(one.logs for one in found.log_dirs) for found in inputs.found)


def _is_of_logs(found: FoundInput) -> bool:
    return found.described.kind in {"log-files", FileKind.LOG_FILE.value}


def find_logs(inputs: Inputs) -> list[LogPlace]:
    """Return the files among the inputs that may be broker logs."""
    places = [LogPlace(found.root, path, index) for index, found in inputs.numbered for path in _logs_of(found)]
    return [one for place in places for one in _in_archive(place)]


def _logs_of(found: FoundInput) -> Iterator[str]:
    for one in found.log_dirs:
        yield from (join(one.path, path) for path in one.logs)
    for item in found.walk() if _is_of_logs(found) else ():
        if isinstance(item, FoundFile) and item.name.kind in {FileKind.LOG_FILE, FileKind.UNKNOWN}:
            yield item.path


_ARCHIVE = re.compile(r"\.(zip|tar(\.\w+)?|t(gz|bz2?|xz|zst))$", re.IGNORECASE)


def _in_archive(place: LogPlace) -> list[LogPlace]:
    """Return the files in a zip or a tar, where it has several; else the file."""
    if _ARCHIVE.search(place.location.name) is None:
        return [place]
    try:
        with open_evidence(place.location) as file:
            members = list(members_of(file))
            logs = logs_in(file, members)
    except EvidenceError:
        return [place]  # who reads it says why it can't be read
    # One that has neither logs nor a data directory may be cut short: who reads it says so.
    is_whole = len(members) < 2 or not (logs or any(map(is_of_data_dir, members)))
    return [place] if is_whole else [place._replace(member=one) for one in logs]
