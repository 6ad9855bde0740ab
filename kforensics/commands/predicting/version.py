"""Which version of Kafka is started: as given, else as the node's log says, else as it registered itself, else any that the files allow."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kforensics.case.cluster import newer_features
from kforensics.case.settings import Surroundings
from kforensics.damage import Absent
from kforensics.errors import EvidenceError, FormatError, NewerThanKnown, UsageError, newer_than_known
from kforensics.evidence.broker_logs import LogFile
from kforensics.evidence.discovery.inputs import FoundInput
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.evidence.metadata.state import METADATA_VERSION
from kforensics.formats.checkpoint.json_files import parse_quorum_state
from kforensics.formats.checkpoint.properties import NEWEST_VERSION as NEWEST_META_PROPERTIES
from kforensics.formats.checkpoint.properties import WHAT as META_PROPERTIES
from kforensics.formats.checkpoint.properties import MetaProperties
from kforensics.formats.log_lines.event import LogEventKind
from kforensics.protocol.loading.node import FIRST_WITHOUT_ZOOKEEPER
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
from kforensics.source.walk import join
from kforensics.units import METADATA_TOPIC

if TYPE_CHECKING:
    from kforensics.commands.predicting.nodes import Node

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
        _check(logged, f"the log of node {node.node_id} names it")
        return NodeVersion(min(logged, NEWEST_MODELLED) if newer else logged, "server-log", newer=newer)
    if newer:
        return NodeVersion(NEWEST_MODELLED, "metadata-log" if history is not None else "assumed", newer=newer)
    # A quorum that was begun anew does not know who registered with the former one; copies of that do.
    level = _supported(history, node.node_id) or max(
        (_supported(one, node.node_id) for one in around.histories), default=0
    )
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


def _check(version: KafkaVersion, why: str) -> None:
    if version >= FIRST_NOT_MODELLED:
        return
    try:
        loading_rules(version)
    except ValueError as error:
        raise UsageError(f"Kafka {version} ({why}): {error}; --kafka names another version") from error


def _newer(
    members: Sequence[FoundInput], history: MetadataHistory | None, node_id: int | Absent, logged: KafkaVersion | None
) -> Iterator[str]:
    """Yield what only a version later than those that are modelled wrote, in words."""
    if logged is not None and logged >= FIRST_NOT_MODELLED:
        yield f"its log names Kafka {logged}, which is newer than {NEWEST_KNOWN.major}.{NEWEST_KNOWN.minor}, which kforensics knows"
    if history is not None:
        yield from (words for _, words in newer_features(history))
    yield from _newer_records(history)
    supported = _supported(history, node_id)
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
    """Yield records of the metadata log that are newer than known, in words."""
    for one in history.unread if history is not None else ():
        if one.is_newer:
            yield f"offset {one.offset} of the metadata log: {one.words}"


def _logged(log_files: Sequence[LogFile], node_id: int | Absent, *, is_alone: bool) -> KafkaVersion | None:
    """Return the version that the node's log names last."""
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


def _supported(history: MetadataHistory | None, node_id: int | Absent) -> int:
    """Return the newest metadata.version that the node's last registration says it supports; 0 where none does."""
    if history is None or isinstance(node_id, Absent):
        return 0
    said = [one.newest_metadata_version for one in history.brokers.get(node_id, ())[-1:]]
    said += [one.newest_metadata_version for one in history.controllers.get(node_id, ())[-1:]]
    return max((level for level in said if not isinstance(level, Absent)), default=0)


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
