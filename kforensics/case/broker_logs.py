"""What the broker logs among the inputs say: their files, the clock of each, and all events in order of time."""

import datetime as dt
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.errors import EvidenceError
from kforensics.evidence.broker_logs import LogFile, read_log_files, silence_of
from kforensics.evidence.discovery.inputs import WHOLE_INPUT, Inputs, LogPlace, find_logs, of_several_clusters
from kforensics.evidence.discovery.log_spans import NO_END_MS, LogSpan, TimeWindow, files_outside
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.evidence.metadata.state import BrokerState, ControllerState
from kforensics.evidence.model import Problem
from kforensics.evidence.replica.ends import first_record_times
from kforensics.formats.log_lines.event import LogEventKind
from kforensics.protocol.truncation import ProtocolName
from kforensics.protocol.versions import (
    InterBrokerVersion,
    KafkaVersion,
    parse_inter_broker_version,
    parse_version,
    protocol_of,
)
from kforensics.reconcile.observed.clocks import Clock, choose_clocks, created_logs, with_zone_of_records
from kforensics.reconcile.observed.logged_events import LoggedEvent, LoggedEvents, order_events
from kforensics.reconcile.timeline.events import epoch_times
from kforensics.words import form, listed


class LoggedEvidence(NamedTuple):
    """The broker logs among the inputs, read."""

    files: tuple[LogFile, ...]
    clocks: tuple[Clock, ...]
    """The clock of each log file."""
    events: LoggedEvents
    """The events of all log files, in order of time."""
    protocol_hints: Mapping[int, ProtocolName]
    """The protocol by the versions in a broker's log files, by broker."""
    versions: Mapping[int, KafkaVersion]
    """The version that a broker's log files name last, by broker."""
    problems: Sequence[Problem]


def logged_evidence(
    log_files: Sequence[LogFile],
    histories: Sequence[MetadataHistory],
    *,
    problems: Sequence[Problem] = (),
    zone: dt.tzinfo | None = None,
    places: Iterable[PartitionPlace] = (),
) -> LoggedEvidence:
    """Return what log files say, in order of time."""
    files = tuple(log_files)
    # Of a long metadata log these are many, and only log lines are compared with them.
    dated = {anchor: time for history in histories if files for anchor, time in epoch_times(history).items()}
    clocks = choose_clocks(files, dated, zone=zone)
    if created := created_logs(files, clocks):
        clocks = with_zone_of_records(clocks, created, first_record_times(places, created))
    versions = _last_versions(files)
    return LoggedEvidence(
        files=files,
        clocks=clocks,
        events=order_events(files, clocks),
        protocol_hints=_protocol_hints(files, versions),
        versions=versions,
        problems=problems,
    )


def logs_outside(inputs: Inputs, window: TimeWindow | None) -> dict[LogPlace, LogSpan]:
    """Return the log files whose lines are all outside of the time that is asked about."""
    if window is None:
        return {}
    places = find_logs(inputs)
    outside = files_outside([place.location for place in places], window)
    return {places[one.at]: one for one in outside}


def window_of(
    since_ms: int | None, until_ms: int | None, newest: MetadataHistory | None = None, end_ms: int = NO_END_MS
) -> TimeWindow | None:
    """Return the time that is asked about; None where it is any.

    Args:
        end_ms: the end of the metadata log: what lines after it say is said nowhere else.
    """
    if since_ms is None and until_ms is None:
        return None
    starts = _last_starts(newest, since_ms) if since_ms is not None and newest is not None else ()
    return TimeWindow(since_ms, until_ms, end_ms, starts)


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


def logs_of_cluster(inputs: Inputs, log_files: Sequence[LogFile]) -> tuple[tuple[LogFile, ...], tuple[Problem, ...]]:
    """Return the log files that are of the cluster of the inputs by their own lines, or whose lines name none, and a problem for each that is not.

    Returns:
        The files; one that names no cluster is left out where it lies in a directory of files of other clusters only.

    Raises:
        InputsRefused: the lines of all log files at a named path are of other clusters, and none was asked for.
    """
    expected = _wanted_clusters(inputs)
    if not expected and len({min(file.clusters) for file in log_files if file.clusters}) < 2:
        return tuple(log_files), ()
    of_others = [file for file in log_files if file.clusters and expected.isdisjoint(file.clusters)]
    if not of_others:
        return tuple(log_files), ()
    # Beside lines of the own cluster, and where nobody named them, such files are old ones.
    beside = {file.input for file in log_files if not expected.isdisjoint(file.clusters)}
    is_meant = {file.input for file in of_others if inputs.found[file.input].is_named} - beside
    if not inputs.is_cluster_chosen and (is_meant or not expected):
        named = [(one.path, one.cluster_id) for one in inputs.described if not isinstance(one.cluster_id, Absent)]
        named += [(_shown(inputs, file), cluster) for file in of_others for cluster in file.clusters]
        raise of_several_clusters(named)
    folders = {(file.input, file.path.rpartition("/")[0]) for file in of_others}
    folders -= {
        (file.input, file.path.rpartition("/")[0]) for file in log_files if not expected.isdisjoint(file.clusters)
    }
    apart = {(file.input, file.path) for file in of_others}
    kept = tuple(
        file
        for file in log_files
        if (file.input, file.path) not in apart
        and (file.clusters or (file.input, file.path.rpartition("/")[0]) not in folders)
    )
    if inputs.is_cluster_chosen:
        return kept, ()
    left_out = (file for file in log_files if file not in kept)
    return kept, tuple(
        Problem(input=file.input, path=file.path, message=_OF_OTHERS.format(_whose(file)), is_foreign=True)
        for file in left_out
    )


_OF_OTHERS = "its lines are of {}, not of that of the data directories: all of them were left out"


def _whose(file: LogFile) -> str:
    if not file.clusters:
        return "no cluster that they name, beside files of other clusters"
    return f"{form(len(file.clusters), 'cluster', 'clusters')} {listed(sorted(file.clusters))}"


def _wanted_clusters(inputs: Inputs) -> set[str]:
    """Return the cluster that was asked for, else those that data directories name."""
    if not isinstance(inputs.cluster, Absent):
        return {inputs.cluster}
    return {one.cluster_id for one in inputs.described if not isinstance(one.cluster_id, Absent)}


def _shown(inputs: Inputs, file: LogFile) -> str:
    given = inputs.found[file.input].described.path
    line = min(citation.line for citation in file.clusters.values() if isinstance(citation.line, int))
    return f"{given if file.path == WHOLE_INPUT else f'{given}/{file.path}'}, line {line}"


def read_logs(
    inputs: Inputs,
    *,
    jobs: int = 1,
    unneeded: Collection[LogPlace] = (),
    keeps_told: bool = False,
    keeps_unowned: bool = False,
    window: TimeWindow | None = None,
) -> tuple[tuple[LogFile, ...], list[Problem]]:
    """Return every broker log among the inputs that is needed, and what could not be read of them."""
    places = [place for place in find_logs(inputs) if place not in unneeded]
    out: list[LogFile] = []
    problems: list[Problem] = []
    found_files = read_log_files(
        places,
        keeps_told=keeps_told,
        keeps_unowned=keeps_unowned,
        jobs=jobs,
        clusters=_wanted_clusters(inputs),
        window=window,
    )
    for place, found in zip(places, found_files, strict=True):
        if isinstance(found, EvidenceError):
            problems.append(Problem(input=place.input, path=place.name, message=found.problem))
        elif isinstance(found, Problem):
            problems.append(found)
        elif found is not None:
            out.append(found)
            problems.extend(found.problems)
            if (silence := silence_of(found)) is not None:
                problems.append(silence)
    return tuple(out), problems


def read_own_logs(
    inputs: Inputs,
    *,
    jobs: int = 1,
    unneeded: Collection[LogPlace] = (),
    keeps_told: bool = False,
    keeps_unowned: bool = False,
    window: TimeWindow | None = None,
) -> tuple[tuple[LogFile, ...], tuple[Problem, ...]]:
    """Return the broker logs of the cluster of the inputs, and what could not be read of them or was left out."""
    every, met = read_logs(
        inputs, jobs=jobs, unneeded=unneeded, keeps_told=keeps_told, keeps_unowned=keeps_unowned, window=window
    )
    own, left_out = logs_of_cluster(inputs, every)
    gone = {(one.input, one.path) for one in left_out}
    return own, (*(one for one in met if (one.input, one.path) not in gone), *left_out)


def _protocol_hints(log_files: Sequence[LogFile], versions: Mapping[int, KafkaVersion]) -> dict[int, ProtocolName]:
    """Return the protocol of each broker by the version and the `inter.broker.protocol.version` that its log names last; without a version it has none."""
    levels = _inter_broker_versions(log_files)
    return {
        broker: protocol_of(version, levels.get(broker, Absent.NOT_WRITTEN)) for broker, version in versions.items()
    }


def _inter_broker_versions(log_files: Iterable[LogFile]) -> dict[int, InterBrokerVersion]:
    """Return the protocol level that each broker was last started with, where its log has the configuration."""
    found: dict[int, InterBrokerVersion] = {}
    for log_file in log_files:
        for event in log_file.events:
            if event.kind is not LogEventKind.CONFIGURATION or isinstance(log_file.node_id, Absent):
                continue
            if (level := event.fields.get("inter.broker.protocol.version")) is None:
                continue
            with suppress(ValueError):  # a level that can't be read shows nothing
                found[log_file.node_id] = parse_inter_broker_version(str(level))
    return found


def roles_of(events: Iterable[LoggedEvent]) -> dict[int, str]:
    """Return what each node says of itself at its last start among the lines: `broker`, also of one with both roles, or `controller`."""
    found: dict[int, str] = {}
    for item in events:
        if item.event.kind is LogEventKind.CONFIGURATION and isinstance(item.node_id, int):
            roles = str(item.event.fields.get("process.roles", ""))
            found[item.node_id] = "controller" if "controller" in roles and "broker" not in roles else "broker"
    return found


def _last_versions(log_files: Iterable[LogFile]) -> dict[int, KafkaVersion]:
    found: dict[int, KafkaVersion] = {}
    for log_file in log_files:
        for event in log_file.events:
            if event.kind is not LogEventKind.VERSION:
                continue
            text = event.fields.get("version")
            if isinstance(text, str) and not isinstance(log_file.node_id, Absent):
                found[log_file.node_id] = parse_version(str(text))
    return found
