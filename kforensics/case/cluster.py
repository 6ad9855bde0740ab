"""Facts about the cluster beside the replicas: metadata log, consumer groups and broker logs among the inputs, read once."""

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from kforensics.case.model import Case, fact, places_of
from kforensics.damage import Absent
from kforensics.errors import newer_than_known
from kforensics.evidence.discovery.inputs import Inputs, LogPlace, ServerSettings, empty_beside, find_logs
from kforensics.evidence.discovery.log_dirs import FoundLogDir
from kforensics.evidence.discovery.partition_dirs import LogDirState, LostDirectory, PartitionPlace, Places
from kforensics.evidence.metadata.files import find_metadata_logs
from kforensics.evidence.metadata.state import majority, newest_log
from kforensics.evidence.model import CheckpointValue, GroupCommit, Problem
from kforensics.formats.checkpoint.properties import NEWEST_VERSION, WHAT, MetaProperties
from kforensics.protocol.truncation import ProtocolName
from kforensics.protocol.versions import (
    NEWEST_FEATURE_LEVELS,
    KafkaVersion,
    least_version_of_level,
    protocols_since,
    renames_unnamed,
)
from kforensics.reconcile.observed.facts import (
    BrokerVersions,
    ClusterFacts,
    Commits,
    CommittedFacts,
    Given,
    GivenBroker,
)
from kforensics.source.walk import join
from kforensics.units import OFFSETS_TOPIC, SHARE_TOPIC, Depth, TopicPartition
from kforensics.words import byte_count

if TYPE_CHECKING:
    from kforensics.case.broker_logs import LoggedEvidence
    from kforensics.evidence.broker_logs import LogFile
    from kforensics.evidence.discovery.log_spans import LogSpan
    from kforensics.evidence.metadata.history import MetadataHistory
    from kforensics.evidence.metadata.set_back import QuorumSetBack
    from kforensics.evidence.metadata.state import FeatureChange
    from kforensics.reconcile.observed.clocks import Clock
    from kforensics.reconcile.observed.logged_events import LoggedEvent
    from kforensics.reconcile.observed.logged_truncations import LoggedTruncation


class ReadBefore(NamedTuple):
    """What was read of some inputs, and need not be read again."""

    histories: "tuple[MetadataHistory, ...]"
    log_files: "tuple[LogFile, ...]"
    logs_not_read: "Mapping[LogPlace, LogSpan]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What the inputs say of a cluster beyond its replicas, and what could not be read of it."""

    facts: ClusterFacts
    histories: "tuple[MetadataHistory, ...]"
    """Every node's copy of the metadata log."""
    log_files: "tuple[LogFile, ...]"
    clocks: "tuple[Clock, ...]"
    """The clock of each log file."""
    events: "tuple[LoggedEvent, ...]"
    """The events of all log files, in order of time."""
    protocol_hints: Mapping[int, ProtocolName]
    """The protocol by the versions in a broker's log files, by broker."""
    versions: BrokerVersions
    possible_protocols: Mapping[int, tuple[ProtocolName, ...]]
    """The protocols that the files of a broker's log directories leave possible, the likeliest first, by broker."""
    given: Given
    """Brokers whose log directories are among the inputs."""
    problems: tuple[Problem, ...]
    left_out: tuple[Problem, ...] = ()
    """Log files and lines of other clusters."""
    logs_not_read: "Mapping[LogPlace, LogSpan]" = field(default_factory=dict)
    """Log files that are outside of the time asked about."""
    quorum: "QuorumSetBack | None" = None
    """The voters that can go on without metadata that was committed."""

    def is_zone_shown(self, item: "LoggedEvent") -> bool:
        """Whether an input shows the zone of the times in a line."""
        pairs = zip(self.log_files, self.clocks, strict=True)
        shown = any(file is item.file and clock.is_shown and clock.source != "assumed" for file, clock in pairs)
        return shown or bool(item.event.zone_named)


@fact
def read_before(_case: Case) -> ReadBefore | None:
    """Return the logs that a command read before, where it told the case of them."""
    return None


@fact
def cluster_of(case: Case) -> Cluster:
    """Return what metadata logs and broker logs say of the cluster."""
    zone = None
    if case.ask.log_timezone:
        from kforensics.reconcile.observed.clocks import parse_zone  # noqa: PLC0415 - few runs name a zone

        zone = parse_zone(case.ask.log_timezone)
    return gather_cluster(
        case.for_facts(),
        places_of(case),
        rename_group=case.rename_group,
        log_zone=zone,
        jobs=case.jobs,
        earlier=case.ranks.keys(),
        since_ms=case.ask.since_ms,
        until_ms=case.ask.until_ms,
        read=read_before(case) if case.whole is None else cluster_of(case.whole),
        most_commits=MOST_COMMITS if case.depth is Depth.TAILS else None,
    )


@fact
def truncations_of(case: Case) -> "tuple[LoggedTruncation, ...]":
    """Return the truncations that lines report, of all partitions."""
    from kforensics.reconcile.observed.logged_truncations import logged_truncations  # noqa: PLC0415 - most have no logs

    return logged_truncations(cluster_of(case).events)


def gather_cluster(
    inputs: Inputs,
    places: Places,
    *,
    commits: Commits | None = None,
    rename_group: Callable[[str], str] = str,
    log_zone: dt.tzinfo | None = None,
    jobs: int = 1,
    earlier: Collection[int] = (),
    since_ms: int | None = None,
    until_ms: int | None = None,
    read: Cluster | ReadBefore | None = None,
    is_audit: bool = False,
    most_commits: int | None = None,
) -> Cluster:
    """Read the metadata logs and the broker logs of the inputs; consumer offsets are read when they are first asked for.

    Args:
        read: of these inputs and others behind them, whose logs are not read again.
        is_audit: metadata logs of two clusters do not stop it.
        most_commits: bytes of the logs of consumers' offsets that are read; none reads all.

    Raises:
        InputsRefused: what the metadata logs or the log files say is of two clusters.
    """
    histories = _read_metadata_logs(inputs) if read is None else read.histories
    histories = tuple(one for one in histories if one.input < len(inputs.found))
    if len(histories) > 1 and not is_audit:
        from kforensics.evidence.metadata.compare import refuse_two_clusters  # noqa: PLC0415 - only where there are several

        refuse_two_clusters(histories, inputs)
    newest = newest_log(histories)
    not_read: Mapping[LogPlace, LogSpan] = {} if read is None else read.logs_not_read
    logged = None
    if find_logs(inputs) if read is None else read.log_files:
        from kforensics.case.broker_logs import logged_evidence, logs_outside, read_own_logs, window_of  # noqa: PLC0415 - what reads broker logs

        problems: Sequence[Problem] = ()
        if read is None:
            end_ms = newest_time(newest)
            # Where no metadata log says who led, lines of any time do.
            window = None
            if newest is not None and isinstance(end_ms, int):
                window = window_of(since_ms, until_ms, newest, end_ms)
            not_read = logs_outside(inputs, window)
            log_files, problems = read_own_logs(inputs, jobs=jobs, unneeded=not_read, window=window)
        else:
            log_files = read.log_files
        every = (place for group in places.by_partition.values() for place in group)
        logged = logged_evidence(log_files, histories, problems=problems, zone=log_zone, places=every)
    quorum = None
    if histories:
        from kforensics.evidence.metadata.set_back import quorum_set_back  # noqa: PLC0415 - where there is a metadata log

        quorum = quorum_set_back(histories, inputs, earlier)
    offsets = tuple(place for tp, group in places.by_partition.items() if tp.topic == OFFSETS_TOPIC for place in group)
    versions = BrokerVersions(by_broker=logged.versions if logged else {}, at_least=_least_version(newest))
    return Cluster(
        facts=_facts(
            inputs,
            newest,
            commits or CommittedOffsets(offsets, rename_group, most_bytes=most_commits),
            logged,
            is_of_now=newest is None or (newest.input not in earlier and _is_of_majority(newest, histories, earlier)),
            set_back_to=Absent.UNKNOWN if quorum is None or quorum.is_stuck else quorum.end,
        ),
        histories=histories,
        log_files=logged.files if logged else (),
        clocks=logged.clocks if logged else (),
        events=logged.events if logged else (),
        protocol_hints=logged.protocol_hints if logged else {},
        versions=versions,
        possible_protocols=possible_protocols(inputs),
        given=given_brokers(inputs, places.lost, places.states, versions=versions, history=newest),
        problems=(
            *(one for one in (logged.problems if logged else ()) if not one.is_foreign),
            *(_newer_metadata(newest) if newest else ()),
            *_newer_identities(inputs),
        ),
        left_out=tuple(one for one in logged.problems if one.is_foreign) if logged else (),
        logs_not_read=not_read,
        quorum=quorum,
    )


def _is_of_majority(
    newest: "MetadataHistory", histories: "Sequence[MetadataHistory]", earlier: Collection[int]
) -> bool:
    """Whether so many voters are given as they are now that one of them holds all that is committed (KIP-595): a single one may have been down for long."""
    voters = frozenset(newest.current_voters)
    given = {one.node_id for one in histories if one.input not in earlier} & voters
    return len(given) >= majority(len(voters))


def _read_metadata_logs(inputs: Inputs) -> "tuple[MetadataHistory, ...]":
    found = find_metadata_logs(inputs)
    if not found:
        return ()
    from kforensics.evidence.metadata.log import read_metadata_log  # noqa: PLC0415 - the records of the metadata log

    return tuple(map(read_metadata_log, found))


def _newer_metadata(newest: "MetadataHistory") -> Iterator[Problem]:
    yield from newest.unread_problems
    for change, words in newer_features(newest):
        message = f"offset {change.when.offset}: {words}"
        yield Problem(input=newest.input, path=change.when.citation.path, message=message)
    yield from newest.level_problems


def newer_features(history: "MetadataHistory") -> "Iterator[tuple[FeatureChange, str]]":
    """Yield the feature levels in force that are newer than known, each with that in words: what brokers do by them is not known."""
    for name, change in {change.name: change for change in history.features}.items():
        newest = NEWEST_FEATURE_LEVELS.get(name, 0)
        if change.level > newest:
            yield change, newer_than_known(name, change.level, newest)


def _newer_identities(inputs: Inputs) -> Iterator[Problem]:
    for number, found in inputs.numbered:
        for one in found.log_dirs:
            if isinstance(one.meta, MetaProperties) and one.meta.version > NEWEST_VERSION:
                message = newer_than_known(WHAT, one.meta.version, NEWEST_VERSION)
                yield Problem(input=number, path=join(one.path, "meta.properties"), message=message)


def _facts(
    inputs: Inputs,
    newest: "MetadataHistory | None",
    commits: Commits,
    logged: "LoggedEvidence | None",
    *,
    is_of_now: bool,
    set_back_to: int | Absent,
) -> ClusterFacts:
    settings = ServerSettings(inputs)
    configured, unclean = settings.numbers("min.insync.replicas"), settings.flags("unclean.leader.election.enable")
    facts: ClusterFacts = CommittedFacts(commits)
    if newest is not None:
        from kforensics.reconcile.observed.metadata_facts import MetadataFacts  # noqa: PLC0415 - where there is a metadata log

        facts = MetadataFacts(newest, commits, is_of_now=is_of_now, set_back_to=set_back_to)
    if newest is None and logged is None and not configured and not unclean:
        return facts
    from kforensics.reconcile.observed.broker_log_facts import facts_from_logs  # noqa: PLC0415 - where any log or setting is
    from kforensics.reconcile.timeline.logged_operations import deleted_topics, deletion_times, logged_operations  # noqa: PLC0415 - the same

    operations = list(logged_operations(logged.events)) if logged else []
    return facts_from_logs(
        logged.events if logged else (),
        facts,
        newest_version=_newest_of_all(logged.versions, inputs) if logged else None,
        configured=configured,
        unclean_elections=unclean,
        metadata_end_ms=newest_time(newest),
        files=logged.files if logged else (),
        deleted_topics=deleted_topics(operations),
        recreated_topics=deletion_times(operations),
    )


def _newest_of_all(versions: Mapping[int, KafkaVersion], inputs: Inputs) -> KafkaVersion | None:
    """Return the newest version that a broker runs; none where the log of a broker that is among the inputs names none."""
    brokers = {
        one.described.broker_id
        for _, one in inputs.numbered
        if one.described.kind in {"broker", "combined"} and isinstance(one.described.broker_id, int)
    }
    return max(versions.values()) if versions and brokers <= versions.keys() else None


def newest_time(history: "MetadataHistory | None") -> int | Absent:
    """Return the newest time that a batch of the metadata log has, in UTC ms; unknown without batches."""
    if history is None or not len(history.batches):
        return Absent.UNKNOWN
    return int(history.batches["max_timestamp"].max())


def _least_version(history: "MetadataHistory | None") -> KafkaVersion | None:
    """Return the release that brought the metadata.version in force, which no broker is older than."""
    if history is None:
        return None
    from kforensics.evidence.metadata.state import METADATA_VERSION  # noqa: PLC0415 - where there is a metadata log

    levels = [change.level for change in history.features if change.name == METADATA_VERSION]
    return least_version_of_level(levels[-1]) if levels else None


def possible_protocols(inputs: Inputs) -> dict[int, tuple[ProtocolName, ...]]:
    """Return the truncation protocols that the files of each broker's log directories leave possible, the likeliest first.

    Brokers from 2.8 on write `partition.metadata` into every partition directory, and those from 0.11 on `leader-epoch-checkpoint`. A broker
    of whose partitions none was given is left out.
    """
    floors: dict[int, tuple[int, ...]] = {}
    for _, found in inputs.numbered:
        broker = found.described.broker_id
        if isinstance(broker, int) and any(one.partitions for one in found.log_dirs):
            floors[broker] = max(floors.get(broker, ()), *(one.version_floor[0] for one in found.log_dirs))
    out: dict[int, tuple[ProtocolName, ...]] = {}
    for broker, floor in floors.items():
        if floor >= (2, 8):
            out[broker] = protocols_since((2, 8))
        elif floor >= (0, 11):
            out[broker] = (ProtocolName.KIP_279, ProtocolName.KIP_101)
        elif floor:
            out[broker] = (ProtocolName.HW, ProtocolName.KIP_279, ProtocolName.KIP_101)
    return out


def given_brokers(
    inputs: Inputs,
    lost: Iterable[LostDirectory] = (),
    states: Iterable[LogDirState] = (),
    *,
    versions: BrokerVersions,
    history: "MetadataHistory | None",
) -> dict[int, GivenBroker]:
    """Return brokers whose log directories are among the inputs, all directories of one together."""
    other_case: dict[int | Absent, set[TopicPartition]] = {}
    for state in states:
        other_case.setdefault(state.broker_id, set()).update(state.other_case)
    named: dict[int, dict[TopicPartition, CheckpointValue]] = {}
    for one in lost:
        if isinstance(one.broker_id, int):
            named.setdefault(one.broker_id, {})[one.topic_partition] = one.value
    directories: dict[int, list[FoundLogDir]] = {}
    empty: dict[int, set[str]] = {}
    for _, found in inputs.numbered:
        is_emptied = not any(one.is_metadata_dir for one in found.log_dirs)
        is_broker = found.described.kind != "controller" or is_emptied
        if isinstance(found.described.broker_id, int) and is_broker:
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
            named=named.get(broker, {}),
            other_case=frozenset(other_case.get(broker, ())),
            empty_beside=tuple(sorted(empty.get(broker, ()))),
            renames_unnamed=any(isinstance(one.meta, MetaProperties) and one.meta.version for one in found)
            and _renames_unnamed(broker, versions, history),
        )
        for broker, found in directories.items()
        if found
    }


def _renames_unnamed(broker: int, versions: BrokerVersions, history: "MetadataHistory | None") -> bool | Absent:
    """Return whether the release of a broker without ZooKeeper renames directories without a topic id, by its log, else by what it registered with."""
    if broker in versions.by_broker:
        return renames_unnamed(versions.by_broker[broker])
    registered = least_version_of_level(0 if history is None else history.newest_level_of(broker))
    least = registered or versions.at_least
    if least is None or (registered is not None and registered < (3, 7)):
        return False  # brokers name a level when they register since 3.3
    # A level tells 3.7 from 3.6, and not 3.7.1 from 3.7.0.
    return renames_unnamed(least) or Absent.UNKNOWN


MOST_COMMITS = 256 << 20
"""Bytes of logs of consumers' offsets that are read at depth `tails` for what proves records committed; the positions of groups are then asked of four times as many."""


def unread_offsets(case: Case, *, of_positions: bool = True) -> int:
    """Return the bytes of the logs of groups' offsets where they are more than are read at the depth asked for, else 0; of a capture its rows are read, which are few.

    Args:
        of_positions: whether for where groups stand, or for what proves records committed.
    """
    if case.depth is not Depth.TAILS:
        return 0
    length = sum(
        place.length
        for tp, group in places_of(case).by_partition.items()
        if tp.topic == OFFSETS_TOPIC or (of_positions and tp.topic == SHARE_TOPIC)
        for place in group
        if place.state.store.holds_bytes
    )
    return length if length > (4 if of_positions else 1) * MOST_COMMITS else 0


def unread_commits(case: Case) -> tuple[str, ...]:
    """Return a sentence that says how much of the logs of consumers' offsets was not read for what proves records committed, none where all was."""
    length = unread_offsets(case, of_positions=False)
    said = "Which other records consumers show to be committed: the logs of __consumer_offsets are {}, of which the last {} were read; `--depth content` and `fleet audit` read all."
    return (said.format(byte_count(length), byte_count(MOST_COMMITS)),) if length else ()


class CommittedOffsets:
    """Consumer groups' committed offsets by partition, read from the logs when the first partition is asked for.

    Args:
        most_bytes: of the ends of all logs that are read; none reads all.
    """

    def __init__(
        self,
        places: tuple[PartitionPlace, ...],
        rename_group: Callable[[str], str] = str,
        *,
        most_bytes: int | None = None,
    ) -> None:
        self._places, self._most_bytes = places, most_bytes
        self._rename_group = rename_group
        self._known: dict[TopicPartition, tuple[GroupCommit, ...]] | None = None

    def __call__(self, partition: TopicPartition) -> tuple[GroupCommit, ...]:
        """Return what groups committed in the partition."""
        if self._known is None and not self._places:
            self._known = {}
        if self._known is None:
            from kforensics.evidence.group_commits import highest_commits, walk_group_commits  # noqa: PLC0415 - where groups committed

            found = walk_group_commits(self._places, most_bytes=self._most_bytes)
            self._known = commits_by_partition(highest_commits(found), self._rename_group)
        return self._known.get(partition, ())


def commits_by_partition(
    commits: Iterable[GroupCommit], rename_group: Callable[[str], str] = str
) -> dict[TopicPartition, tuple[GroupCommit, ...]]:
    """Return what groups committed in each partition."""
    out: dict[TopicPartition, list[GroupCommit]] = {}
    for commit in commits:
        out.setdefault(commit.partition, []).append(commit._replace(group=rename_group(commit.group)))
    return {partition: tuple(commits) for partition, commits in out.items()}
