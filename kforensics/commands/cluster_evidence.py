"""Facts about the cluster beside the replicas: metadata log, consumer groups and broker logs among the inputs, read once."""

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Generic, TypeVar

from kforensics.damage import Absent
from kforensics.errors import EvidenceError
from kforensics.evidence.broker_logs import LogFile, LogPlace, read_log_files
from kforensics.evidence.discovery.inputs import WHOLE_INPUT, Inputs, empty_beside, of_several_clusters
from kforensics.evidence.discovery.log_dirs import FoundLogDir
from kforensics.evidence.discovery.log_spans import LogSpan, TimeWindow, files_outside
from kforensics.evidence.discovery.partition_dirs import LostDirectory, PartitionPlace, Places
from kforensics.evidence.discovery.server_settings import ServerSettings
from kforensics.evidence.group_commits import GroupCommitRecord, highest_commits, walk_group_commits
from kforensics.evidence.metadata.log import MetadataHistory, find_metadata_logs, newest_log, read_metadata_log
from kforensics.evidence.metadata.state import METADATA_VERSION, BrokerState, ControllerState
from kforensics.evidence.model import CheckpointValue, Problem
from kforensics.formats.log_lines.event import LogEvent, LogEventKind
from kforensics.protocol.truncation import ProtocolName
from kforensics.protocol.versions import (
    InterBrokerVersion,
    KafkaVersion,
    least_version_of_level,
    parse_inter_broker_version,
    parse_version,
    protocol_of,
)
from kforensics.reconcile.bugs.evidence import BrokerVersions
from kforensics.reconcile.observed.broker_log_facts import facts_from_logs
from kforensics.reconcile.observed.clocks import Clock, choose_clocks
from kforensics.reconcile.observed.facts import ClusterFacts, GroupCommit
from kforensics.reconcile.observed.logged_events import LoggedEvent, order_events
from kforensics.reconcile.observed.metadata_facts import MetadataFacts
from kforensics.reconcile.replicas.directories import Given, GivenBroker
from kforensics.reconcile.timeline.metadata_events import epoch_times
from kforensics.source.naming import FileKind
from kforensics.source.walk import FoundFile
from kforensics.units import OFFSETS_TOPIC, TopicPartition

if TYPE_CHECKING:
    from kforensics.commands.sealing.report import CheckedSeal

_NOT_USED = frozenset(
    {LogEventKind.HIGH_WATERMARK_LOADED, LogEventKind.HIGH_WATERMARK_MISSING, LogEventKind.SEGMENTS_TRUNCATED}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterEvidence:
    """The evidence beyond the replicas, and what could not be read of it."""

    facts: ClusterFacts
    histories: tuple[MetadataHistory, ...]
    """Every node's copy of the metadata log."""
    log_files: tuple[LogFile, ...]
    clocks: tuple[Clock, ...]
    """The clock of each log file."""
    events: tuple[LoggedEvent, ...]
    """The events of all log files, in order of time."""
    protocol_hints: Mapping[int, ProtocolName]
    """The protocol by the versions in a broker's log files, by broker."""
    versions: BrokerVersions
    possible_protocols: Mapping[int, tuple[ProtocolName, ...]]
    """The protocols that the files of a broker's log directories leave possible, the likeliest first, by broker."""
    given: Given
    """Brokers whose log directories are among the inputs."""
    problems: tuple[Problem, ...]
    logs_not_read: Mapping[LogPlace, LogSpan] = field(default_factory=dict)
    """Log files that are outside of the time asked about."""


Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading(Generic[Found]):
    """What was read of the inputs beside their logs, and need not be read again for another look at the same inputs."""

    found: Found
    """The inputs."""
    seal: "CheckedSeal | None"
    """The seal that they were checked against."""
    places: Places
    gathered: ClusterEvidence


def gather_cluster_evidence(
    inputs: Inputs,
    places: Places,
    *,
    carried_commits: Iterable[GroupCommitRecord] = (),
    rename_group: Callable[[str], str] = str,
    log_zone: dt.tzinfo | None = None,
    jobs: int = 1,
    earlier: Collection[int] = (),
    since_ms: int | None = None,
    until_ms: int | None = None,
    read: ClusterEvidence | None = None,
) -> ClusterEvidence:
    """Read the metadata logs and the broker logs of the inputs; consumer offsets are read when they are first asked for.

    Args:
        inputs: with broker logs among them.
        places: partition directories of the inputs.
        carried_commits: of consumer groups, out of another reading.
        rename_group: what consumer groups are called.
        log_zone: of the times in log files, where the user names it.
        jobs: processes.
        earlier: inputs that are not as they are now.
        since_ms: log files that are older need not be read.
        until_ms: log files that are younger need not be read.
        read: of these inputs and others behind them, whose logs are not read again.
    """
    histories = (
        tuple(read_metadata_log(files) for files in find_metadata_logs(inputs))
        if read is None
        else tuple(one for one in read.histories if one.input < len(inputs.found))
    )
    newest = newest_log(histories)
    problems: list[Problem] = []
    not_read: Mapping[LogPlace, LogSpan]
    if read is None:
        not_read = _logs_outside(inputs, newest, since_ms, until_ms)
        log_files, problems = read_logs(inputs, jobs=jobs, unneeded=not_read)
        log_files = logs_of_cluster(inputs, log_files)
    else:
        not_read, log_files = read.logs_not_read, read.log_files
    settings = ServerSettings(inputs)
    offsets = tuple(place for tp, group in places.by_partition.items() if tp.topic == OFFSETS_TOPIC for place in group)
    versions = _versions(log_files)
    # Of a long metadata log these are many, and only log lines are compared with them.
    dated = {anchor: time for history in histories if log_files for anchor, time in epoch_times(history).items()}
    clocks = choose_clocks(log_files, dated, zone=log_zone)
    events = order_events(log_files, clocks)
    return ClusterEvidence(
        facts=facts_from_logs(
            events,
            MetadataFacts(
                newest,
                CommittedOffsets(offsets, rename_group, carried_commits),
                is_of_now=newest is None or newest.input not in earlier,
            ),
            newest_version=_newest_of_all(versions, inputs),
            configured=settings.numbers("min.insync.replicas"),
            unclean_elections=settings.flags("unclean.leader.election.enable"),
            metadata_end_ms=newest_time(newest),
        ),
        histories=histories,
        log_files=log_files,
        clocks=clocks,
        events=events,
        protocol_hints=protocol_hints(log_files),
        versions=BrokerVersions(by_broker=versions, at_least=_least_version(newest)),
        possible_protocols=possible_protocols(inputs),
        given=given_brokers(inputs, places.lost),
        problems=tuple(problems),
        logs_not_read=not_read,
    )


def _logs_outside(
    inputs: Inputs, newest: MetadataHistory | None, since_ms: int | None, until_ms: int | None
) -> dict[LogPlace, LogSpan]:
    """Log files that are outside of the time asked about; none where no metadata log says who led, and lines of any time do."""
    end = newest_time(newest)
    if not isinstance(end, int) or (since_ms is None and until_ms is None):
        return {}
    places = find_logs(inputs)
    starts = _last_starts(newest, since_ms) if newest is not None and since_ms is not None else ()
    outside = files_outside([place.location for place in places], TimeWindow(since_ms, until_ms, end, starts))
    return {places[one.at]: one for one in outside}


def _last_starts(newest: MetadataHistory, before_ms: int) -> tuple[int, ...]:
    """When each node registered last before a time, as a new incarnation."""
    last: set[int] = set()
    nodes: list[Sequence[BrokerState | ControllerState]] = [*newest.brokers.values(), *newest.controllers.values()]
    for states in nodes:
        first: dict[str | Absent, int] = {}
        for state in states:
            first.setdefault(state.incarnation_id, state.when.timestamp_ms)
        last |= {max((time for time in first.values() if 0 <= time < before_ms), default=-1)}
    return tuple(sorted(last - {-1}))


def logs_of_cluster(inputs: Inputs, log_files: Sequence[LogFile]) -> tuple[LogFile, ...]:
    """Return the log files that are of the cluster of the inputs by their own lines, or whose lines name none.

    Args:
        inputs: whose `meta.properties` name clusters.
        log_files: every one among them.

    Returns:
        The files; one that names no cluster is left out where it lies in a directory of files of other clusters only.

    Raises:
        InputsRefused: lines of a log file name another cluster, and none was asked for.
    """
    clusters = {one.cluster_id for one in inputs.described if not isinstance(one.cluster_id, Absent)}
    expected = {inputs.cluster} if not isinstance(inputs.cluster, Absent) else clusters
    if not expected and len({min(file.clusters) for file in log_files if file.clusters}) < 2:
        return tuple(log_files)
    of_others = [file for file in log_files if file.clusters and expected.isdisjoint(file.clusters)]
    if not of_others:
        return tuple(log_files)
    if not inputs.is_cluster_chosen:
        named = [(one.path, one.cluster_id) for one in inputs.described if not isinstance(one.cluster_id, Absent)]
        named += [(_shown(inputs, file), cluster) for file in of_others for cluster in file.clusters]
        raise of_several_clusters(named)
    folders = {(file.input, file.path.rpartition("/")[0]) for file in of_others}
    folders -= {
        (file.input, file.path.rpartition("/")[0]) for file in log_files if not expected.isdisjoint(file.clusters)
    }
    apart = {(file.input, file.path) for file in of_others}
    return tuple(
        file
        for file in log_files
        if (file.input, file.path) not in apart
        and (file.clusters or (file.input, file.path.rpartition("/")[0]) not in folders)
    )


def _shown(inputs: Inputs, file: LogFile) -> str:
    given = inputs.found[file.input].described.path
    line = min(citation.line for citation in file.clusters.values() if isinstance(citation.line, int))
    return f"{given if file.path == WHOLE_INPUT else f'{given}/{file.path}'}, line {line}"


def find_logs(inputs: Inputs) -> list[LogPlace]:
    """Return the files among the inputs that may be broker logs.

    Args:
        inputs: of which log files given alone, and directories without data directories, are looked at.
    """
    return [
        LogPlace(found.root, item.path, index)
        for index, found in enumerate(inputs.found)
        if found.described.kind in {"log-files", FileKind.LOG_FILE.value}
        for item in found.walk()
        if isinstance(item, FoundFile) and item.name.kind in {FileKind.LOG_FILE, FileKind.UNKNOWN}
    ]


def read_logs(
    inputs: Inputs, *, jobs: int = 1, unneeded: Collection[LogPlace] = ()
) -> tuple[tuple[LogFile, ...], list[Problem]]:
    """Return every broker log among the inputs that is needed, and what could not be read of them.

    Args:
        inputs: all that were given.
        jobs: the number of processes.
        unneeded: files whose lines are all outside of the time in question.
    """
    places = [place for place in find_logs(inputs) if place not in unneeded]
    out: list[LogFile] = []
    problems: list[Problem] = []
    for place, found in zip(places, read_log_files(places, keep=_is_relevant, jobs=jobs), strict=True):
        if isinstance(found, EvidenceError):
            problems.append(Problem(input=place.input, path=place.path, message=found.problem))
        elif found is not None:
            out.append(found)
            problems.extend(found.problems)
    return tuple(out), problems


def _is_relevant(event: LogEvent) -> bool:
    """Brokers write many lines of these kinds, and no conclusion rests on them."""
    return event.kind not in _NOT_USED


def protocol_hints(log_files: tuple[LogFile, ...]) -> dict[int, ProtocolName]:
    """Return the protocol of each broker by the version and the `inter.broker.protocol.version` that its log names last.

    Args:
        log_files: of any brokers; one whose log names no version is left out.
    """
    levels = _inter_broker_versions(log_files)
    return {
        broker: protocol_of(version, levels.get(broker, Absent.NOT_WRITTEN))
        for broker, version in _versions(log_files).items()
    }


def _inter_broker_versions(log_files: tuple[LogFile, ...]) -> dict[int, InterBrokerVersion]:
    """Return the protocol level that each broker was last started with, where its log has the configuration."""
    found: dict[int, InterBrokerVersion] = {}
    for log_file in log_files:
        for event in log_file.events:
            level = event.fields.get("inter.broker.protocol.version")
            if event.kind is not LogEventKind.CONFIGURATION or isinstance(log_file.node_id, Absent) or level is None:
                continue
            with suppress(ValueError):  # a level that can't be read shows nothing
                found[log_file.node_id] = parse_inter_broker_version(str(level))
    return found


def _versions(log_files: tuple[LogFile, ...]) -> dict[int, KafkaVersion]:
    """Return the version that the log of each broker names last."""
    found: dict[int, KafkaVersion] = {}
    for log_file in log_files:
        for event in log_file.events:
            text = event.fields.get("version")
            is_named = event.kind is LogEventKind.VERSION and isinstance(text, str)
            if is_named and not isinstance(log_file.node_id, Absent):
                found[log_file.node_id] = parse_version(str(text))
    return found


def _newest_of_all(versions: Mapping[int, KafkaVersion], inputs: Inputs) -> KafkaVersion | None:
    """Return the newest version that a broker runs; none where the log of a broker that is among the inputs names none."""
    brokers = {
        one.described.broker_id
        for one in inputs.found
        if one.described.kind in {"broker", "combined"} and isinstance(one.described.broker_id, int)
    }
    return max(versions.values()) if versions and brokers <= versions.keys() else None


def newest_time(history: MetadataHistory | None) -> int | Absent:
    """Return the newest time that a batch of the metadata log has, in UTC ms; unknown without batches.

    Args:
        history: the metadata log, None where there is none.
    """
    if history is None or not len(history.batches):
        return Absent.UNKNOWN
    return int(history.batches["max_timestamp"].max())


def _least_version(history: MetadataHistory | None) -> KafkaVersion | None:
    """Return the release that brought the metadata.version in force, which no broker is older than."""
    levels = [change.level for change in history.features if change.name == METADATA_VERSION] if history else []
    return least_version_of_level(levels[-1]) if levels else None


def possible_protocols(inputs: Inputs) -> dict[int, tuple[ProtocolName, ...]]:
    """Return the truncation protocols that the files of each broker's log directories leave possible, the likeliest first.

    Brokers from 2.8 on write `partition.metadata` into every partition directory, and those from 0.11 on `leader-epoch-checkpoint`. A broker
    of whose partitions none was given is left out.

    Args:
        inputs: all that were given.
    """
    floors: dict[int, tuple[int, ...]] = {}
    for found in inputs.found:
        broker = found.described.broker_id
        if isinstance(broker, int) and any(one.partitions for one in found.log_dirs):
            floors[broker] = max(floors.get(broker, ()), *(one.version_floor[0] for one in found.log_dirs))
    out: dict[int, tuple[ProtocolName, ...]] = {}
    for broker, floor in floors.items():
        if floor >= (2, 8):
            out[broker] = (ProtocolName.KIP_595,)
        elif floor >= (0, 11):
            out[broker] = (ProtocolName.KIP_279, ProtocolName.KIP_101)
        elif floor:
            out[broker] = (ProtocolName.HW, ProtocolName.KIP_279, ProtocolName.KIP_101)
    return out


def given_brokers(inputs: Inputs, lost: Iterable[LostDirectory] = ()) -> dict[int, GivenBroker]:
    """Return brokers whose log directories are among the inputs, all directories of one together.

    Args:
        inputs: with their log directories.
        lost: partitions that checkpoints name and of which there is no directory.
    """
    named: dict[int, dict[TopicPartition, CheckpointValue]] = {}
    for one in lost:
        if isinstance(one.broker_id, int):
            named.setdefault(one.broker_id, {})[one.topic_partition] = one.value
    directories: dict[int, list[FoundLogDir]] = {}
    empty: dict[int, set[str]] = {}
    for found in inputs.found:
        if isinstance(found.described.broker_id, int) and found.described.kind != "controller":
            directories.setdefault(found.described.broker_id, []).extend(found.log_dirs)
            empty.setdefault(found.described.broker_id, set()).update(empty_beside(found))
    return {
        broker: GivenBroker(
            broker_id=broker,
            directory_ids=frozenset(
                one.meta.directory_id
                for one in found
                if not isinstance(one.meta, Absent) and not isinstance(one.meta.directory_id, Absent)
            ),
            is_empty=not any(one.partitions for one in found),
            is_stopped=all(one.clean_shutdown for one in found),
            named=named.get(broker, {}),
            empty_beside=tuple(sorted(empty.get(broker, ()))),
        )
        for broker, found in directories.items()
        if found
    }


class CommittedOffsets:
    """Consumer groups' committed offsets by partition, read from the logs when the first partition is asked for."""

    def __init__(
        self,
        places: tuple[PartitionPlace, ...],
        rename_group: Callable[[str], str] = str,
        carried: Iterable[GroupCommitRecord] = (),
    ) -> None:
        self._places = places
        self._rename_group = rename_group
        self._carried = carried
        self._known: dict[TopicPartition, tuple[GroupCommit, ...]] | None = None

    def __call__(self, partition: TopicPartition) -> tuple[GroupCommit, ...]:
        """Return what groups committed in the partition."""
        if self._known is None:
            self._known = _highest_commits(chain(walk_group_commits(self._places), self._carried), self._rename_group)
        return self._known.get(partition, ())


def _highest_commits(
    commits: Iterable[GroupCommitRecord], rename_group: Callable[[str], str]
) -> dict[TopicPartition, tuple[GroupCommit, ...]]:
    out: dict[TopicPartition, list[GroupCommit]] = {}
    for commit in highest_commits(commits):
        found = GroupCommit(
            group=rename_group(commit.group),
            offset=commit.offset,
            leader_epoch=commit.leader_epoch,
            time_ms=commit.time_ms,
            citation=commit.citation,
        )
        out.setdefault(commit.partition, []).append(found)
    return {partition: tuple(commits) for partition, commits in out.items()}
