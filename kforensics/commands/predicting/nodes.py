"""The nodes among the inputs, and the version of each: which log directories a start would find together, whatever their `meta.properties` say of each other.

An empty directory that a `server.properties` names is one of them: a broker with ZooKeeper starts on it.
"""

import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from kforensics.case.cluster import newer_features
from kforensics.case.settings import Surroundings, log_dirs_of, node_id_of, server_properties
from kforensics.damage import Absent
from kforensics.errors import EvidenceError, FormatError, NewerThanKnown, UsageError, newer_than_known
from kforensics.evidence.broker_logs import LogFile
from kforensics.evidence.discovery.inputs import (
    FoundInput,
    Inputs,
    are_disks_of_one,
    belonging_together,
    empty_log_dir,
    find_inputs,
    why_not_compared,
)
from kforensics.evidence.discovery.log_dirs import FoundLogDir, are_copies
from kforensics.evidence.metadata.history import NEWEST_KRAFT_VERSION, MetadataHistory
from kforensics.evidence.metadata.state import METADATA_VERSION
from kforensics.formats.checkpoint.json_files import parse_quorum_state
from kforensics.formats.checkpoint.properties import (
    ESCAPE,
    TRIMMED,
    UUID_PATTERN,
    MetaProperties,
    parse_meta_properties,
)
from kforensics.formats.checkpoint.properties import NEWEST_VERSION as NEWEST_META_PROPERTIES
from kforensics.formats.checkpoint.properties import WHAT as META_PROPERTIES
from kforensics.formats.log_lines.event import LogEventKind
from kforensics.formats.primitives.text_lines import parse_integer
from kforensics.protocol.loading.node import FIRST_WITHOUT_ZOOKEEPER, NodeDirectory
from kforensics.protocol.loading.versions import (
    FIRST_NOT_MODELLED,
    NEWEST_MODELLED,
    OLDEST_MODELLED,
    distinct_rules,
    loading_rules,
)
from kforensics.protocol.versions import (
    NEWEST_KNOWN,
    NEWEST_LEVEL,
    KafkaVersion,
    least_version_of_level,
    parse_version,
)
from kforensics.source.store import ForeignPath
from kforensics.source.walk import closed_to_owner, join
from kforensics.units import METADATA_TOPIC

_NODE_FOLDER = re.compile(r"(broker|controller|kafka|node|server)[-_.]?\d+", re.IGNORECASE)
"""Folders named like this are of a node each, not disks of one."""


class ConfiguredNode(NamedTuple):
    """The statements of a `server.properties` about its node."""

    log_dirs: frozenset[Path]
    """With symbolic links resolved."""
    node_id: int | Absent
    properties: frozenset[tuple[str, str]]
    """Every setting with its value."""

    def is_at(self, path: Path) -> bool:
        """Return whether it names a log directory, or the one above it, into which a disk was copied by a level too deep."""
        return path in self.log_dirs or (path.parent in self.log_dirs and not _NODE_FOLDER.fullmatch(path.name))

    @property
    def has_roles(self) -> bool:
        """Whether it has `process.roles`: the node runs without ZooKeeper."""
        return bool(dict(self.properties).get("process.roles"))

    @property
    def has_zookeeper(self) -> bool:
        """Whether it has `zookeeper.connect`."""
        return bool(dict(self.properties).get("zookeeper.connect"))


@dataclass(frozen=True, slots=True)
class Node:
    """The log directories that one start finds."""

    members: tuple[tuple[int, FoundInput], ...]
    """Numbers of inputs, and the inputs."""
    node_id: int | Absent
    is_kraft: bool
    configured: ConfiguredNode | None = None
    """Its `server.properties`, where one among the inputs names its log directories, and no other contradicts it."""
    left_out: frozenset[tuple[int, str]] = frozenset()
    """Input and path of the directories that this leaves out, while it names others that are all here: a start finds none of them."""

    @property
    def first(self) -> int:
        """The number of its first input, by which documents name it."""
        return self.members[0][0]

    @property
    def configured_id(self) -> int | Absent:
        """The id with which it is started: that of its settings, whatever its directories say."""
        known = Absent.UNKNOWN if self.configured is None else self.configured.node_id
        return self.node_id if isinstance(known, Absent) else known

    @property
    def inputs(self) -> tuple[FoundInput, ...]:
        """Its inputs."""
        return tuple(one for _, one in self.members)

    def log_dirs(self) -> Iterator[tuple[int, FoundInput, FoundLogDir]]:
        """Yield the log directories with which it is started, each with its input."""
        for number, one in self.members:
            for log_dir in one.log_dirs:
                if (number, log_dir.path) not in self.left_out:
                    yield number, one, log_dir

    def folders(self) -> tuple[Path, ...]:
        """Return where each of its log directories is."""
        return tuple(one.root / log_dir.path for _, one, log_dir in self.log_dirs())

    def directories(self) -> tuple[NodeDirectory, ...]:
        """Return the statements of each of its log directories about the node."""
        is_alone = len(self.members) == 1
        return tuple(_described(one, log_dir, is_alone=is_alone) for _, one, log_dir in self.log_dirs())

    @property
    def is_of_zookeeper(self) -> bool:
        """Whether its `meta.properties` is of version 0 and it has no metadata log: of a broker with ZooKeeper."""
        metas = (log_dir.meta for one in self.inputs for log_dir in one.log_dirs)
        has_log = any(log_dir.is_metadata_dir for _, _, log_dir in self.log_dirs())
        return not has_log and any(isinstance(meta, MetaProperties) and meta.version == 0 for meta in metas)

    def is_not_migrated(self, version: KafkaVersion) -> bool:
        """Whether log directories of a broker with ZooKeeper are started without it, by the version or by the settings."""
        has_roles = self.configured is not None and self.configured.has_roles
        return self.is_of_zookeeper and (version >= FIRST_WITHOUT_ZOOKEEPER or has_roles)

    @property
    def is_blank(self) -> bool:
        """Whether nothing is in any of its log directories."""
        return len(self.blank_log_dirs()) == len(self.folders())

    def blank_log_dirs(self) -> tuple[str, ...]:
        """Return its log directories in which nothing is: each may be a new disk, or a mount point."""
        return tuple(
            join(one.described.path, log_dir.path).rstrip("/")
            for _, one, log_dir in self.log_dirs()
            if next(one.listings.each(log_dir.path), None) is None and not one.listings.of(log_dir.path).obstacles
        )

    def closed(self) -> tuple[str, ...]:
        """Return what in its log directories, and in the logs in them, owner or mode may close to the broker."""
        return tuple(
            join(log_dir.path, name)
            for one in self.inputs
            if not isinstance(one.root, ForeignPath)
            for log_dir in one.log_dirs
            for name in closed_to_owner(
                one.root / log_dir.path,
                [(entry.name, entry.is_directory) for entry in one.listings.each(log_dir.path)],
            )
        )

    def empty_folders(self) -> tuple[str, ...]:
        """Return empty folders beside its log directories: each may be the mount point of a disk that is not mounted."""
        own = self.folders()
        return tuple(
            entry.name
            for _, one in self.members
            if "" not in one.log_dir_paths
            for entry in one.listings.of("").entries
            if entry.is_directory
            and entry.name not in one.log_dir_paths
            and one.root / entry.name not in own
            and not one.listings.of(entry.name).entries
            and not one.listings.of(entry.name).obstacles
        )


def _described(one: FoundInput, log_dir: FoundLogDir, *, is_alone: bool) -> NodeDirectory:
    meta = log_dir.meta
    if meta is Absent.UNREADABLE and _names_nothing(one, log_dir):
        meta = MetaProperties(0, Absent.NOT_WRITTEN, Absent.NOT_WRITTEN, Absent.NOT_WRITTEN)
    path = log_dir.path if is_alone else join(one.described.path, log_dir.path)
    nothing = Absent.UNREADABLE
    known = meta if isinstance(meta, MetaProperties) else MetaProperties(0, nothing, nothing, nothing)
    return NodeDirectory(
        path=path,
        has_file=meta is not Absent.NOT_WRITTEN,
        is_readable=isinstance(meta, MetaProperties) and _is_taken(meta),
        version=known.version,
        node_id=_own_id(known),
        cluster_id=known.cluster_id,
        directory_id=known.directory_id,
        has_metadata_log=log_dir.is_metadata_dir,
        properties=meta
        if meta is Absent.UNREADABLE
        else frozenset({entry.key: entry.value for entry in known.entries}.items()),
    )


def _names_nothing(one: FoundInput, log_dir: FoundLogDir) -> bool:
    """Whether `meta.properties` has none of its properties, as an empty one: Kafka takes it for version 0 without ids."""
    try:
        parse_meta_properties(one.read_small(join(log_dir.path, "meta.properties")))
    except EvidenceError:
        return False
    except FormatError as error:
        return error.expected != ESCAPE  # on which the whole file is refused
    return False


def _own_id(meta: MetaProperties) -> int | Absent:
    """Return the id that Kafka reads, which has another name by the version of the file."""
    key = "node.id" if meta.version else "broker.id"
    is_written = not meta.entries or key in {entry.key for entry in meta.entries}
    return meta.node_id if is_written else Absent.NOT_WRITTEN


def _is_taken(meta: MetaProperties) -> bool:
    """Whether Kafka takes the values as they are (`MetaProperties.Builder`, `java.util.Properties`)."""
    values = {entry.key: entry.value for entry in meta.entries}
    lacks = meta.version > 0 and isinstance(meta.cluster_id, Absent)
    lacks = lacks or _own_id(meta) is Absent.UNREADABLE or (meta.version > 0 and isinstance(_own_id(meta), Absent))
    lacks = lacks or parse_integer(values.get("version", "0").strip(TRIMMED).encode(errors="replace"), bits=32) is None
    is_id = isinstance(meta.directory_id, Absent) or UUID_PATTERN.fullmatch(meta.directory_id) is not None
    return is_id and not lacks and all(one.expected != ESCAPE for one in meta.damage)


def nodes_of(inputs: Inputs, configured: Sequence[ConfiguredNode] = ()) -> tuple[Inputs, list[Node]]:
    """Return the nodes among the inputs.

    Raises:
        InputsRefused: the nodes are of several clusters. One node whose directories name several is no reason.
    """
    groups: list[list[tuple[int, FoundInput]]] = []
    for number, one in enumerate(inputs.found):
        if not one.log_dirs:
            continue
        beside_first = sorted(
            groups, key=lambda group: not any(_are_beside(one.root, other.root) for _, other in group)
        )
        mine = next(
            (group for group in beside_first if all(_is_same_node(one, other, configured) for _, other in group)), None
        )
        if mine is None:
            groups.append([(number, one)])
        else:
            mine.append((number, one))
    is_mixed = any(len({one.described.cluster_id for _, one in group}) > 1 for group in groups)
    clusters = {_cluster(group) for group in groups} - set(Absent)
    if not is_mixed or len(clusters) > 1:
        inputs = belonging_together(inputs)
    return inputs, [_node(group, configured) for group in groups]


def side_by_side(nodes: Sequence[Node], configured: Sequence[ConfiguredNode] = ()) -> list[int]:
    """Return the first inputs of nodes with ZooKeeper whose log directories lie in one folder, as the disks of one node do, while their ids differ."""
    named = {path for one in configured for path in one.log_dirs}
    by_parent: dict[Path, list[int]] = {}
    for node in nodes:
        folders = node.folders()
        if node.is_kraft or isinstance(node.node_id, Absent) or any(folder.resolve() in named for folder in folders):
            continue
        parents = {folder.resolve().parent for folder in folders if not _NODE_FOLDER.fullmatch(folder.resolve().name)}
        for parent in parents:
            by_parent.setdefault(parent, []).append(node.first)
    return sorted({first for group in by_parent.values() if len(group) > 1 for first in group})


def _cluster(group: Sequence[tuple[int, FoundInput]]) -> object:
    return next(
        (one.described.cluster_id for _, one in group if not isinstance(one.described.cluster_id, Absent)),
        Absent.UNKNOWN,
    )


def _node(group: Sequence[tuple[int, FoundInput]], configured: Sequence[ConfiguredNode]) -> Node:
    # The directory of the metadata log is the one that the others are compared with.
    ids = [one.described.broker_id for _, one in sorted(group, key=lambda each: not _has_metadata_log(each[1]))]
    members = [one for _, one in group]
    here = {one.root / log_dir.path: (number, log_dir.path) for number, one in group for log_dir in one.log_dirs}
    named = {
        node
        for node in configured
        if node.log_dirs and (all(node.is_at(path) for path in here) or node.log_dirs < here.keys())
    }
    settings = named.pop() if len(named) == 1 else None  # of files that contradict each other any may be the one
    left_out = {here[path] for path in here.keys() - settings.log_dirs} if settings is not None else ()
    if settings is not None:
        ids.append(settings.node_id)
    node_id = next((known for known in ids if not isinstance(known, Absent)), Absent.UNKNOWN)
    is_kraft = runs_without_zookeeper(members) or (settings is not None and settings.has_roles)
    if settings is not None and settings.has_zookeeper and not settings.has_roles:
        is_kraft = False  # a copy of the metadata log is there while it migrates, and is deleted by the next start
    return Node(tuple(group), node_id, is_kraft, settings, frozenset(left_out))


def _is_named(one: FoundInput, paths: Collection[Path]) -> bool:
    return all(one.root / log_dir.path in paths for log_dir in one.log_dirs)


def _has_metadata_log(one: FoundInput) -> bool:
    return any(log_dir.is_metadata_dir for log_dir in one.log_dirs)


def _is_same_node(one: FoundInput, other: FoundInput, configured: Sequence[ConfiguredNode]) -> bool:
    naming = [{node for node in configured if _is_named(each, node.log_dirs)} for each in (one, other)]
    if all(naming):
        return not naming[0].isdisjoint(naming[1])
    for settings, unnamed in zip(naming, (other, one), strict=True):
        ids = {node.node_id for node in settings} | {unnamed.described.broker_id}
        if settings and len(ids - set(Absent)) > 1:
            return False  # the settings of another node name one of them
    if not any(naming) and not any(one.listings.of(log_dir.path).entries for log_dir in one.log_dirs):
        return True  # it was taken for a log directory of the only node that is given, or of the one beside it
    if _has_metadata_log(one) and _has_metadata_log(other):
        return False
    pairs = ((mine, theirs) for mine in one.log_dirs for theirs in other.log_dirs)
    if not are_disks_of_one(one, other) and any(are_copies(mine, theirs) and mine.partitions for mine, theirs in pairs):
        return False
    mine, theirs = one.described, other.described
    is_same_id = mine.broker_id == theirs.broker_id and not isinstance(mine.broker_id, Absent)
    is_same_cluster = mine.cluster_id == theirs.cluster_id and not isinstance(mine.cluster_id, Absent)
    if is_same_id and is_same_cluster:
        return True
    if not _are_beside(one.root, other.root):
        return False
    # A node without ZooKeeper has one metadata log: a directory without one lies beside that of its node.
    return is_same_id or (runs_without_zookeeper([one, other]) and _has_metadata_log(one) != _has_metadata_log(other))


def _are_beside(one: Path, other: Path) -> bool:
    """Whether two folders lie side by side as the disks of one node do, and neither has the name of a node."""
    return one.parent == other.parent and not any(_NODE_FOLDER.fullmatch(each.name) for each in (one, other))


def find_start_inputs(paths: Sequence[Path], *, keep_going: bool) -> Inputs:
    """Return the inputs that paths name.

    An empty directory, named or below one that is, is one where a `server.properties` among them names it. Else one that is named is one of the only node of which no settings are given, or of
    the one whose log directories lie beside it: the mount point of a disk that is not mounted.
    """
    find = partial(find_inputs, with_server_logs=True, why_not=why_not_compared, with_emptied=False)
    empty = [path for path in dict.fromkeys(paths) if _is_empty(path)]
    others = [path for path in paths if path not in empty]
    if not others:
        return find(paths, keep_going=keep_going)
    inputs = find(others, keep_going=True)
    named = set(chain.from_iterable(node.log_dirs for node in configured_nodes(inputs)))
    nodes = [
        one for one in inputs.found if one.log_dirs and named.isdisjoint(one.root / each.path for each in one.log_dirs)
    ]

    def is_of_one(path: Path) -> bool:
        beside = (one for one in nodes if _are_beside(one.root, path.resolve()))
        ids = ({one.described.broker_id for one in among} for among in (nodes, beside))
        return any(len(each) == 1 and not each & set(Absent) for each in ids)

    blank = [path for path in empty if path.resolve() in named or is_of_one(path)]
    inside = {one: _empty_below(one, named) for one in others if not isinstance(one, ForeignPath)}
    if len(blank) < len(empty) or inputs.problems:
        unusable = {one.described.path for one in inputs.found if one.described.kind == "unreadable"}
        alone = [path for path, found in inside.items() if found and str(path) in unusable]
        inputs = find([path for path in paths if path not in blank and path not in alone], keep_going=keep_going)
    log_dirs = {path.resolve(): path for path in chain(blank, *inside.values())}
    return replace(inputs, found=(*inputs.found, *map(empty_log_dir, log_dirs.values())))


def configured_nodes(inputs: Inputs) -> list[ConfiguredNode]:
    """Return the node that each `server.properties` among the inputs is of."""
    return [
        ConfiguredNode(
            log_dirs=frozenset(Path(os.path.realpath(path)) for path in log_dirs_of(settings)),
            node_id=_number(node_id_of(settings)),
            properties=frozenset(settings.items()),
        )
        for settings in server_properties(inputs, [])
    ]


def _number(text: str) -> int | Absent:
    return int(text) if text.isdecimal() and len(text) < 10 else Absent.UNKNOWN


def _empty_below(given: Path, named: set[Path]) -> list[Path]:
    real = given.resolve()
    return [
        given / path.relative_to(real)
        for path in sorted(named)
        if path != real and path.is_relative_to(real) and _is_empty(path)
    ]


def _is_empty(path: Path) -> bool:
    try:
        return not isinstance(path, ForeignPath) and path.is_dir() and not any(path.iterdir())
    except OSError:
        return False


FIRST_QUORUM, PREVIEW = KafkaVersion(3, 0), KafkaVersion(2, 8)
"""The first version that runs without ZooKeeper and that others can be started after, and the preview before it."""
NEWEST_WITH_ZOOKEEPER = KafkaVersion(3, 9)
RANK = {"given": 0, "server-log": 1, "metadata-log": 2, "assumed": 3}
"""The sources of a version, the surest first."""


@dataclass(frozen=True, slots=True)
class NodeVersion:
    """The version that a node is started with, as far as it is known."""

    version: KafkaVersion
    source: str
    """A key of `RANK`."""
    others: tuple[KafkaVersion, ...] = ()
    """Other versions that the evidence allows, one for each set of rules."""
    allows_older: bool = False
    """The evidence allows versions too that are not modelled."""
    newer: str = ""
    """What is newer than known, in words, so that nothing can be said of the start: of a version by the evidence, that one is later than `version`, too."""


def check_version(text: str) -> KafkaVersion:
    """Return the version of `--kafka`."""
    try:
        version = parse_version(text)
        loading_rules(version)
    except ValueError as error:
        raise UsageError(f"--kafka {text}: {error}") from error
    return version


def given_version(text: str, history: MetadataHistory | None) -> NodeVersion:
    """Return the version of `--kafka`, with what of the metadata it can't be said to read."""
    version = check_version(text)
    # Whether it takes newer levels or files is known; what it does with newer records is not.
    return NodeVersion(version, "given", newer=next(_newer_records(history), ""))


def version_of_node(node: "Node", around: Surroundings, *, is_alone: bool) -> NodeVersion:
    """Return the version of a node by the evidence.

    Args:
        is_alone: no other node is among the inputs: a log whose lines name no node is its own.
    """
    history = around.history
    logged = _logged(around.log_files, node.node_id, is_alone=is_alone)
    newer = next(_newer(node.inputs, history, node.node_id, logged), "")
    if logged is not None:
        try:
            if logged < FIRST_NOT_MODELLED:
                loading_rules(logged)
        except ValueError as error:
            why = f"the log of node {node.node_id} names it"
            raise UsageError(f"Kafka {logged} ({why}): {error}; --kafka names another version") from error
        return NodeVersion(min(logged, NEWEST_MODELLED) if newer else logged, "server-log", newer=newer)
    if newer:
        return NodeVersion(NEWEST_MODELLED, "metadata-log" if history is not None else "assumed", newer=newer)
    # A quorum that was begun anew does not know who registered with the former one; copies of that do.
    known = [] if history is None else [history.newest_level_of(node.node_id)]
    level = max(known, default=0) or max((one.newest_level_of(node.node_id) for one in around.histories), default=0)
    registered = least_version_of_level(level)
    if registered is not None and OLDEST_MODELLED <= registered < FIRST_NOT_MODELLED:
        release = {registered, *(one for one in distinct_rules() if one[:2] == registered[:2])}
        newest = max(release)
        return NodeVersion(newest, "metadata-log", tuple(sorted(release - {newest})))
    floor = _floor(node.inputs, history)
    if node.is_kraft and node.is_blank:
        floor = max(floor, FIRST_QUORUM)
    if node.is_kraft and floor < FIRST_QUORUM:
        # The preview of 2.8 can't be upgraded: no other version starts on its directories.
        return NodeVersion(PREVIEW, "assumed")
    ceiling = FIRST_NOT_MODELLED if node.is_kraft else FIRST_WITHOUT_ZOOKEEPER
    possible = [one for one in distinct_rules() if one < ceiling]
    # The rules of a release hold until the next that differs: the last one at or below the floor is possible, too.
    first = max((at for at, one in enumerate(possible) if one <= floor), default=0)
    allowed = possible[first:]
    newest = max(allowed)
    shown = newest if node.is_kraft else NEWEST_WITH_ZOOKEEPER
    others = tuple(max(one, floor) for one in allowed if one != newest)
    return NodeVersion(shown, "assumed", others, allows_older=floor < OLDEST_MODELLED)


def _newer(
    members: Sequence[FoundInput], history: MetadataHistory | None, node_id: int | Absent, logged: KafkaVersion | None
) -> Iterator[str]:
    """Yield what only a version later than those that are modelled wrote, in words."""
    if logged is not None and logged >= FIRST_NOT_MODELLED:
        yield f"its log names Kafka {logged}, which is newer than {NEWEST_KNOWN.major}.{NEWEST_KNOWN.minor}, which kforensics knows"
    if history is not None:
        yield from (words for _, words in newer_features(history))
        if history.kraft_version > NEWEST_KRAFT_VERSION:
            yield newer_than_known("kraft.version", history.kraft_version, NEWEST_KRAFT_VERSION)
    yield from _newer_records(history)
    supported = 0 if history is None else history.newest_level_of(node_id)
    if supported > NEWEST_LEVEL:
        yield f"the metadata.version up to which it registered: {newer_than_known('level', supported, NEWEST_LEVEL)}"
    for one in members:
        for log_dir in one.log_dirs:
            if isinstance(log_dir.meta, MetaProperties) and log_dir.meta.version > NEWEST_META_PROPERTIES:
                yield newer_than_known(META_PROPERTIES, log_dir.meta.version, NEWEST_META_PROPERTIES)
            if log_dir.quorum is Absent.UNREADABLE:
                try:
                    parse_quorum_state(one.read_small(join(join(log_dir.path, f"{METADATA_TOPIC}-0"), "quorum-state")))
                except NewerThanKnown as error:
                    yield error.problem
                except (EvidenceError, FormatError):
                    continue


def _newer_records(history: MetadataHistory | None) -> Iterator[str]:
    for one in history.unread if history is not None else ():
        if one.is_newer:
            yield f"offset {one.offset} of the metadata log: {one.words}"


def _logged(log_files: Sequence[LogFile], node_id: int | Absent, *, is_alone: bool) -> KafkaVersion | None:
    named: list[tuple[int, int, KafkaVersion]] = []
    for at, file in enumerate(log_files):
        if file.node_id != node_id and not (is_alone and isinstance(file.node_id, Absent)):
            continue
        for event in file.events:
            text = event.fields.get("version")
            if event.kind is LogEventKind.VERSION and isinstance(text, str):
                time = event.time_ms if isinstance(event.time_ms, int) else 0
                named.append((time, at, parse_version(text)))
    return max(named, key=lambda one: one[:2])[2] if named else None


def _floor(members: Sequence[FoundInput], history: MetadataHistory | None) -> KafkaVersion:
    """Return the release that no broker of these files is older than."""
    floors = [KafkaVersion(0, 8)]
    floors += [
        KafkaVersion(*log_dir.version_floor[0])
        for one in members
        for log_dir in one.log_dirs
        if log_dir.version_floor[0]
    ]
    levels = [change.level for change in history.features if change.name == METADATA_VERSION] if history else []
    least = least_version_of_level(levels[-1]) if levels else None
    return max([*floors, least] if least is not None else floors)


def runs_without_zookeeper(members: Sequence[FoundInput]) -> bool:
    """Whether a node runs without ZooKeeper: by a meta.properties of version 1, or a metadata log."""
    log_dirs = [log_dir for one in members for log_dir in one.log_dirs]
    versions = {log_dir.meta.version for log_dir in log_dirs if isinstance(log_dir.meta, MetaProperties)}
    return 1 in versions or any(log_dir.is_metadata_dir for log_dir in log_dirs)
