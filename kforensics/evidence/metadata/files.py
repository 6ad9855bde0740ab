"""The files of the metadata log: its directories, its places by offset, and directories that are gone."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Absent, Span
from kforensics.evidence.discovery.inputs import WHOLE_INPUT, FoundInput, Inputs
from kforensics.evidence.discovery.partition_dirs import LostDirectory
from kforensics.evidence.metadata.state import When, newest_log
from kforensics.evidence.model import Citation
from kforensics.formats.log.batch_table import BatchTable
from kforensics.source.naming import FileKind, FileSuffix, parse_partition_directory
from kforensics.source.walk import FoundDirectory, FoundFile, join

if TYPE_CHECKING:
    from kforensics.formats.checkpoint.json_files import QuorumState


class MetadataFiles(NamedTuple):
    """The files of one node's metadata log, by path relative to the input."""

    input: int
    node_id: int | Absent
    root: Path
    directory: str
    segments: tuple[str, ...]
    """The segments, in the order of their base offsets."""
    snapshots: tuple[tuple[int, int, str], ...]
    """End offset, raft epoch and path, in the order of the end offsets."""
    voters: frozenset[int] = frozenset()
    """The voters by a snapshot or by quorum-state; empty where neither names them."""
    quorum: "QuorumState | None" = None
    """What quorum-state beside the log says."""


def find_metadata_logs(inputs: Inputs) -> tuple[MetadataFiles, ...]:
    """Return the metadata logs among the inputs, brokers' copies too; a single snapshot or segment is a log of its own."""
    return tuple(one for number, found in inputs.numbered for one in _metadata_files(number, found))


def with_roles(inputs: Inputs) -> Inputs:
    """Return the inputs, those of emptied nodes with the role that the newest metadata log of the others names: their own directories show none."""
    blank = {at for at, one in inputs.numbered if one.log_dirs and one.described.kind == "broker"}
    blank -= {at for at in blank if any(each.has_broker_files for each in inputs.found[at].log_dirs)}
    if not blank:
        return inputs
    from kforensics.evidence.metadata.log import read_metadata_logs  # noqa: PLC0415 - where a node was emptied

    newest = newest_log(read_metadata_logs(inputs))
    if newest is None:
        return inputs

    def role(node: int | Absent) -> str:
        if node not in newest.current_voters:
            return "broker"
        return "combined" if node in newest.brokers else "controller"

    found = tuple(
        replace(one, described=replace(one.described, kind=role(one.described.broker_id))) if at in blank else one
        for at, one in enumerate(inputs.found)
    )
    return replace(inputs, found=found)


def _metadata_files(number: int, found: FoundInput) -> Iterator[MetadataFiles]:
    by_directory: dict[str, list[FoundFile]] = {}
    for one in found.walk(within=is_metadata_directory):
        if not isinstance(one, FoundFile) or one.name.suffix is not FileSuffix.NONE:
            continue
        if one.path == WHOLE_INPUT:
            if one.name.kind is FileKind.METADATA_SNAPSHOT or (
                one.name.kind is FileKind.SEGMENT and is_metadata_directory(found.root.parent.name)
            ):
                by_directory.setdefault("", []).append(one)
        elif isinstance(one.partition, FoundDirectory) and _is_metadata(one.partition):
            by_directory.setdefault(one.partition.path, []).append(one)
    for directory, members in sorted(by_directory.items()):
        segments = [one for one in members if one.name.kind is FileKind.SEGMENT]
        snapshots = [one for one in members if one.name.kind is FileKind.METADATA_SNAPSHOT]
        if segments or snapshots:
            yield MetadataFiles(
                input=number,
                node_id=found.described.broker_id,
                root=found.root,
                directory=directory,
                segments=tuple(one.path for one in sorted(segments, key=lambda one: _number(one.name.base_offset))),
                snapshots=tuple(
                    sorted(
                        (_number(one.name.base_offset), _number(one.name.leader_epoch), one.path) for one in snapshots
                    )
                ),
                voters=_voters(found),
                quorum=_quorum(found, directory),
            )


def _voters(found: FoundInput) -> frozenset[int]:
    for log_dir in found.log_dirs:
        if isinstance(log_dir.voters, frozenset):
            return log_dir.voters
        quorum = log_dir.quorum
        if not isinstance(quorum, Absent) and not isinstance(quorum.current_voters, Absent):
            return frozenset(quorum.current_voters)
    return frozenset()


def _quorum(found: FoundInput, directory: str) -> "QuorumState | None":
    for log_dir in found.log_dirs:
        quorum = log_dir.quorum
        if not isinstance(quorum, Absent) and join(log_dir.path, PurePath(directory).name) == directory:
            return quorum
    return None


def is_metadata_directory(name: str) -> bool:
    """Return whether a directory's name is that of the metadata log."""
    parsed = parse_partition_directory(name)
    return parsed is not None and parsed.is_metadata


def _is_metadata(directory: FoundDirectory) -> bool:
    return not isinstance(directory.name, Absent) and directory.name.is_metadata


def _number(value: int | Absent) -> int:
    return 0 if isinstance(value, Absent) else value


PLACE_DTYPE = np.dtype(
    [("path", "<i4"), ("raft_epoch", "<i4"), ("position", "<i8"), ("length", "<i8"), ("from_snapshot", "?")]
)


class RecordPlaces:
    """The places met so far; a log of a million batches has a million of them, so they are rows of a table."""

    def __init__(self, input_index: int) -> None:
        self._input = input_index
        self._paths: list[str] = []
        self._blocks: list[NDArray[np.void]] = []
        self._count = 0
        self._last: tuple[int, Citation] | None = None

    def add_batches(self, path: str, batches: BatchTable) -> int:
        """Add the batches of a segment, and return the number of the first; the others follow."""
        block = np.zeros(len(batches), PLACE_DTYPE)
        block["path"] = self._path(path)
        block["raft_epoch"] = batches["partition_leader_epoch"]
        block["position"] = batches["position"]
        block["length"] = batches["length"]
        return self._add(block)

    def add_snapshot(self, path: str, length: int, raft_epoch: int) -> int:
        """Add a snapshot, and return its number."""
        row = (self._path(path), raft_epoch, 0, length, True)
        return self._add(np.array([row], PLACE_DTYPE))

    def when(self, place: int, offset: int, timestamp_ms: int) -> When:
        """Return the offset and time that a state gives of its record, with the place where that is."""
        path, raft_epoch, position, length, from_snapshot = self._row(place).item()
        if self._last is None or self._last[0] != place:
            self._last = place, Citation(input=self._input, path=self._paths[path], span=Span(position, length))
        return When(offset, raft_epoch, timestamp_ms, self._last[1], bool(from_snapshot))

    def are_snapshots(self, places: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return whether each place is in a snapshot."""
        self._table()
        return self._blocks[0]["from_snapshot"][places] if self._count else np.zeros(len(places), np.bool_)

    def _path(self, path: str) -> int:
        if not self._paths or self._paths[-1] != path:
            self._paths.append(path)
        return len(self._paths) - 1

    def _add(self, block: NDArray[np.void]) -> int:
        self._blocks.append(block)
        self._count += len(block)
        return self._count - len(block)

    def _row(self, place: int) -> np.void:
        before = self._count - len(self._blocks[-1])
        # While a log is read, places are asked for in the order in which they come.
        if place >= before:
            row: np.void = self._blocks[-1][place - before]
            return row
        table: NDArray[np.void] = self._table()
        found: np.void = table[place]
        return found

    def _table(self) -> NDArray[np.void]:
        if len(self._blocks) > 1:
            self._blocks = [np.concatenate(self._blocks)]
        return self._blocks[0] if self._blocks else np.zeros(0, PLACE_DTYPE)


def unexplained(lost: Sequence[LostDirectory], inputs: Inputs) -> tuple[LostDirectory, ...]:
    """Return those that the newest metadata log among the inputs assigns to their broker, or never knew though it begins at 0; all of them where there is none."""
    if not lost:
        return ()
    from kforensics.evidence.metadata.log import read_metadata_log  # noqa: PLC0415 - 20 ms, where nothing is lost

    newest = newest_log([read_metadata_log(files) for files in find_metadata_logs(inputs)])
    if newest is None:
        return tuple(lost)
    state = newest.latest()
    out = []
    for one in lost:
        known = state.partition(*one.topic_partition)
        is_unknown = not newest.start_offset and not newest.topics_named(one.topic_partition.topic)
        if is_unknown or (known is not None and one.broker_id in known.replicas):
            out.append(one)
    return tuple(out)
