"""Log directories by their own small files: who they belong to, how they were left, and which of them are of one node."""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kforensics.damage import Absent
from kforensics.errors import EvidenceError, FormatError
from kforensics.formats.checkpoint.json_files import parse_clean_shutdown
from kforensics.formats.checkpoint.properties import MetaProperties, parse_meta_properties
from kforensics.formats.log.records import Record
from kforensics.formats.segment.walk import iter_records
from kforensics.source.mapped import open_evidence
from kforensics.source.naming import (
    LOST_AND_FOUND,
    REMOTE_INDEX_CACHE,
    DirectoryState,
    FileKind,
    parse_file_name,
    parse_partition_directory,
)
from kforensics.source.walk import Listings, PackedNames, join

if TYPE_CHECKING:
    from kforensics.formats.checkpoint.json_files import QuorumState


Value = TypeVar("Value")

_META = "meta.properties"
SMALL_FILE_LIMIT = 1 << 20
"""Bytes that the small files of a log directory may have; real ones have some hundred."""

PARTITIONS_SAMPLED = 8
"""Partition directories of a log directory that are looked into for signs of the Kafka version."""


class FoundLogDir(NamedTuple):
    """One log directory of an input and what its own small files say of it."""

    path: str
    """Relative to the input; empty where the input is the log directory itself."""
    meta: MetaProperties | Absent
    clean_shutdown: bool
    broker_epoch: int | Absent
    partitions: PackedNames
    """Names of the live partition directories."""
    is_metadata_dir: bool
    has_broker_files: bool
    """Offset checkpoints or partitions other than the metadata log: what a mere controller does not have."""
    quorum: "QuorumState | Absent"
    voters: frozenset[int] | Absent
    """The voters of the quorum, where a metadata snapshot names them."""
    version_floor: tuple[tuple[int, ...], str]
    """The first Kafka version that writes what is here, and the sign of it."""
    logs: tuple[str, ...]
    """The files of log4j in it, or in a folder of it that is no partition, as paths below it."""

    @property
    def node(self) -> tuple[str | Absent, int | Absent]:
        """Cluster and node id, as far as they are known."""
        if isinstance(self.meta, Absent):
            return (Absent.UNKNOWN, Absent.UNKNOWN)
        return (self.meta.cluster_id, self.meta.node_id)


def node_kind(log_dirs: Sequence[FoundLogDir], node_id: int | Absent) -> str:
    """Return `broker`, `controller` or `combined`, from what is in the directories and who has voted."""
    has_metadata = any(one.is_metadata_dir for one in log_dirs)
    if has_metadata and not any(one.has_broker_files for one in log_dirs):
        return "controller"
    return "combined" if any(_is_voter(one, node_id) for one in log_dirs) else "broker"


def _is_voter(log_dir: FoundLogDir, node_id: int | Absent) -> bool:
    quorum = log_dir.quorum
    if isinstance(node_id, Absent) or isinstance(quorum, Absent):
        return False
    if not isinstance(log_dir.voters, Absent):
        return node_id in log_dir.voters
    voters = () if isinstance(quorum.current_voters, Absent) else quorum.current_voters
    # Observers never vote, whatever the version of the quorum.
    return node_id in voters or quorum.leader_id == node_id or not isinstance(quorum.voted_id, Absent)


def version_hint(log_dirs: Sequence[FoundLogDir]) -> str | Absent:
    """Return the oldest Kafka version that writes all that is here, with the sign of it; unknown where nothing shows one."""
    version, sign = max((one.version_floor for one in log_dirs), default=((), ""))
    return f"{'.'.join(map(str, version))} or later ({sign})" if version else Absent.UNKNOWN


def look_at_log_dir(listings: Listings, path: str) -> FoundLogDir:
    """Return a log directory by its own small files and the names in it; a small file that can't be read or parsed is absent in it."""
    root = listings.root
    names = _names_in(listings, path)
    files, live = names.files, names.live
    meta = _parsed(root, join(path, _META), parse_meta_properties) if _META in files else Absent.NOT_WRITTEN
    epoch: int | Absent = Absent.NOT_APPLICABLE
    marker = ".kafka_cleanshutdown"
    if marker in files:
        clean = _parsed(root, join(path, marker), parse_clean_shutdown)
        epoch = clean if isinstance(clean, Absent) else clean.broker_epoch
    metadata = names.metadata[0] if names.metadata else None
    voters: frozenset[int] | Absent = Absent.NOT_APPLICABLE
    quorum: QuorumState | Absent = Absent.NOT_APPLICABLE
    if metadata:
        from kforensics.formats.checkpoint.json_files import parse_quorum_state  # noqa: PLC0415 - of nodes of a quorum alone

        voters = quorum_voters(listings, join(path, metadata))
        quorum = _parsed(root, join(join(path, metadata), "quorum-state"), parse_quorum_state)
    return FoundLogDir(
        path=path,
        meta=meta,
        clean_shutdown=marker in files,
        broker_epoch=epoch,
        partitions=live,
        is_metadata_dir=metadata is not None,
        has_broker_files=bool(live) or any(parse_file_name(name).kind is FileKind.OFFSET_CHECKPOINT for name in files),
        voters=voters,
        quorum=quorum,
        version_floor=_version_floor(names, meta, epoch, _names_inside(listings, path, live)),
        logs=tuple(_logs_inside(listings, path, names)),
    )


def _logs_inside(listings: Listings, path: str, names: "_Names") -> Iterator[str]:
    yield from (one for one in sorted(names.files) if parse_file_name(one).kind is FileKind.LOG_FILE)
    for folder in names.folders:
        for entry in listings.each(join(path, folder)) if folder not in {LOST_AND_FOUND, REMOTE_INDEX_CACHE} else ():
            if not entry.is_directory and parse_file_name(entry.name).kind is FileKind.LOG_FILE:
                yield join(folder, entry.name)


def live_names(listings: Listings, path: str) -> PackedNames:
    """Return the names of the live partition directories in a log directory."""
    return _names_in(listings, path).live


class _Names(NamedTuple):
    """The names in a log directory by what they are."""

    files: set[str]
    live: PackedNames
    """Of partition directories but the metadata log's."""
    metadata: list[str]
    """Directories of the metadata log."""
    states: set[DirectoryState]
    """Of all partition directories."""
    folders: list[str]
    """Directories of no partition."""


def _names_in(listings: Listings, path: str) -> _Names:
    """Sort the names by what they are, one by one: there may be a million of them."""
    files: set[str] = set()
    metadata: list[str] = []
    states: set[DirectoryState] = set()
    folders: list[str] = []

    def live() -> Iterator[str]:
        for entry in listings.each(path):
            if not entry.is_directory or entry.name == _META:
                files.add(entry.name)  # a folder of this name is a file that can't be read
                continue
            if (parsed := parse_partition_directory(entry.name)) is None:
                folders.append(entry.name)
                continue
            states.add(parsed.state)
            if parsed.is_metadata:
                if not parsed.partition and parsed.state is DirectoryState.LIVE:
                    metadata.append(entry.name)  # others are passed over by a start
            elif parsed.state is DirectoryState.LIVE:
                yield entry.name

    return _Names(files, PackedNames.of(live()), metadata, states, folders)


def _version_floor(
    names: _Names, meta: MetaProperties | Absent, broker_epoch: int | Absent, inside: set[str]
) -> tuple[tuple[int, ...], str]:
    files, states = names.files, names.states
    signs: list[tuple[bool, tuple[int, ...], str]] = [
        (DirectoryState.STRAY in states, (3, 7), "stray directories"),
        (isinstance(meta, MetaProperties) and not isinstance(meta.directory_id, Absent), (3, 7), "directory.id"),
        (
            ".kafka_cleanshutdown" in files and broker_epoch is not Absent.NOT_APPLICABLE,
            (3, 7),
            "broker epoch in .kafka_cleanshutdown",
        ),
        (REMOTE_INDEX_CACHE in names.folders, (3, 6), "index cache of tiered storage"),
        ("bootstrap.checkpoint" in files, (3, 3), "bootstrap.checkpoint"),
        ("__cluster_metadata-0" in names.metadata, (3, 0), "metadata log"),
        ("@metadata-0" in names.metadata, (2, 8), "metadata log of the KRaft preview"),
        (isinstance(meta, MetaProperties) and meta.version == 1, (2, 8), "meta.properties version 1"),
        ("partition.metadata" in inside, (2, 8), "partition.metadata"),
        (DirectoryState.FUTURE in states, (1, 1), "move between log directories"),
        ("leader-epoch-checkpoint" in inside, (0, 11), "leader-epoch-checkpoint"),
        ("log-start-offset-checkpoint" in files, (0, 11), "log-start-offset-checkpoint"),
        (DirectoryState.DELETED in states, (0, 10, 2), "deleted directories"),
        (isinstance(meta, MetaProperties) and not isinstance(meta.cluster_id, Absent), (0, 10, 1), "cluster.id"),
        (any(name.endswith(".timeindex") for name in inside), (0, 10, 1), "time indexes"),
        (_META in files, (0, 8, 2), _META),
        ("recovery-point-offset-checkpoint" in files, (0, 8, 1), "recovery-point-offset-checkpoint"),
    ]
    return next(((version, sign) for seen, version, sign in signs if seen), ((), ""))


def _names_inside(listings: Listings, path: str, partitions: Iterable[str]) -> set[str]:
    sample = heapq.nsmallest(PARTITIONS_SAMPLED, partitions)
    return {entry.name for partition in sample for entry in listings.of(join(path, partition)).entries}


def _parsed(root: Path, path: str, parse: Callable[[bytes], Value]) -> Value | Absent:
    try:
        with open_evidence(root / path) as file:
            return parse(file.read_all(SMALL_FILE_LIMIT))
    except (EvidenceError, FormatError):
        # Whoever reads the file for its own sake reports why; here it only means that nothing is known.
        return Absent.UNREADABLE


def group_by_node(log_dirs: Iterable[FoundLogDir], folder: str = "") -> Iterator[tuple[str, tuple[FoundLogDir, ...]]]:
    """Yield log directories by node: the topmost folder of one node, and its log directories."""
    members = tuple(log_dirs)
    if not members:
        return
    if are_of_one_node(members):
        yield folder, members
        return
    below: dict[str, list[FoundLogDir]] = {}
    for one in members:
        below.setdefault(one.path.partition("/")[0], []).append(one)
    single: dict[tuple[object, object], list[FoundLogDir]] = {}
    for child, inside in sorted(below.items()):
        if are_of_one_node(inside):
            single.setdefault(inside[0].node if _is_known(inside[0]) else (child, None), []).extend(inside)
        else:
            yield from group_by_node((_moved(one, child) for one in inside), join(folder, child))
    for inside in single.values():
        if are_of_one_node(inside) and len({one.path.partition("/")[0] for one in inside}) > 1:
            yield folder, tuple(inside)
            continue
        for child in sorted({one.path.partition("/")[0] for one in inside}):
            yield (
                join(folder, child),
                tuple(_moved(one, child) for one in inside if one.path.partition("/")[0] == child),
            )


def _moved(one: FoundLogDir, child: str) -> FoundLogDir:
    return one._replace(path=one.path[len(child) :].lstrip("/"))


def _is_known(one: FoundLogDir) -> bool:
    return not isinstance(one.node[1], Absent)


def are_of_one_node(log_dirs: Sequence[FoundLogDir]) -> bool:
    """Return whether log directories can all be of one node at one time, and are no copies of each other."""
    if len(log_dirs) == 1:
        return True
    if len({one.node for one in log_dirs}) > 1 or not _is_known(log_dirs[0]):
        return False
    if sum(one.is_metadata_dir for one in log_dirs) > 1:
        return False
    ids = [
        one.meta.directory_id
        for one in log_dirs
        if isinstance(one.meta, MetaProperties) and not isinstance(one.meta.directory_id, Absent)
    ]
    if len(ids) != len(set(ids)):
        return False
    return not any(are_copies(one, other) for place, one in enumerate(log_dirs) for other in log_dirs[:place])


def are_copies(one: FoundLogDir, other: FoundLogDir) -> bool:
    """Whether two log directories share most partitions: disks of one broker share none, or few after a mishap."""
    mine, theirs = _names_of(one.partitions), _names_of(other.partitions)
    return len(mine & theirs) * 2 > min(len(mine), len(theirs))


@lru_cache(maxsize=2)  # one is compared with many
def _names_of(packed: PackedNames) -> frozenset[str]:
    return frozenset(packed)


# The voters of a KRaft quorum as the newest metadata snapshot names them (KIP-853).


HEAD_LENGTH = 1 << 16
"""Bytes at the beginning of a snapshot that hold its control batches."""


def quorum_voters(listings: Listings, metadata_dir: str) -> frozenset[int] | Absent:
    """Return node ids of the voters of a quorum (KIP-853); absent where no snapshot names them, as in a quorum that is configured statically."""
    snapshots = []
    for entry in listings.of(metadata_dir).entries:
        name = parse_file_name(entry.name)
        if name.kind is FileKind.METADATA_SNAPSHOT and not name.is_transient and isinstance(name.base_offset, int):
            snapshots.append((name.base_offset, name.leader_epoch, entry.name))
    for _, _, file_name in sorted(snapshots, reverse=True):
        voters = _voters_of(listings.root / join(metadata_dir, file_name))
        if voters is not None:
            return voters
    return Absent.NOT_WRITTEN


def _voters_of(path: Path) -> frozenset[int] | None:
    from kforensics.formats.messages.control import ControlType, parse_control_record  # noqa: PLC0415 - the tables of messages take a while to load
    from kforensics.formats.messages.schema import Decoded  # noqa: PLC0415 - the tables of messages take a while to load

    try:
        with open_evidence(path) as file:
            for record in iter_records(file, end=HEAD_LENGTH):
                if not isinstance(record, Record) or not record.is_control:
                    return None
                control = parse_control_record(record.key, record.value)
                if control.type is ControlType.KRAFT_VOTERS and isinstance(control.value, Decoded):
                    return frozenset(int(voter["voter_id"]) for voter in control.value.fields["voters"])
    except EvidenceError:
        return None  # whoever reads the snapshot for its own sake says why
    return None
