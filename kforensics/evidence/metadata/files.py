"""Finds the files of metadata logs among the inputs."""

from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.discovery.inputs import WHOLE_INPUT, FoundInput, Inputs
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
    """Return the metadata logs among the inputs, brokers' copies too; a single snapshot or segment is a log of its own.

    Args:
        inputs: of which names are looked at, no content.
    """
    return tuple(one for number, found in enumerate(inputs.found) for one in _metadata_files(number, found))


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
    """Return whether a directory's name is that of the metadata log.

    Args:
        name: of a partition directory, without its parents.
    """
    parsed = parse_partition_directory(name)
    return parsed is not None and parsed.is_metadata


def _is_metadata(directory: FoundDirectory) -> bool:
    return not isinstance(directory.name, Absent) and directory.name.is_metadata


def _number(value: int | Absent) -> int:
    return 0 if isinstance(value, Absent) else value
