"""What `predict` does: plays the start of each node over its log directories, start after start, until one ends well or nothing changes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kforensics.commands.loading import DirectoryOnDisk, bytes_scanned
from kforensics.commands.lost_records import find_lost_records, lost_pieces
from kforensics.commands.result import Conclusion, Result
from kforensics.damage import Absent
from kforensics.errors import EvidenceError, EvidenceUnreadable, UsageError
from kforensics.evidence.discovery.inputs import FoundInput, Inputs, find_inputs, refuse, why_not_compared
from kforensics.evidence.model import Problem
from kforensics.evidence.replica.loader_dirs import FoundLogs, find_logs
from kforensics.evidence.replica.loader_values import Content, LoadFailure, Need
from kforensics.evidence.replica.log_tail import read_log_tail
from kforensics.findings.answers.predict import predict_answer
from kforensics.formats.checkpoint.meta_properties import MetaProperties
from kforensics.protocol.loading.names import LOG, SWAP, offset_of, padded, partition_of_directory
from kforensics.protocol.loading.starts import LoadedLogDir, LogLoad, Start, StartResult, is_loaded, start_of
from kforensics.protocol.loading.values import LoadingError, LoadOutcome, LoadSettings, Unpredictable
from kforensics.protocol.loading.versions import NEWEST_MODELLED, LoadingRules, distinct_rules, loading_rules
from kforensics.protocol.versions import KafkaVersion, parse_version
from kforensics.reconcile.logs.predicted_load import LogState, LostRecords, PredictedLog, PredictedStart
from kforensics.source.capture import CapturePath
from kforensics.source.walk import join
from kforensics.units import EpochEntry, TopicPartition

KRAFT = 1
"""The version of `meta.properties` without ZooKeeper."""

MOST_STARTS = 4
"""Starts that are played at most; a third already changes nothing that the second did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictRequest:
    """What to predict."""

    paths: tuple[Path, ...]
    keep_going: bool = False
    """A path that can't be used is a problem beside the others."""
    kafka: str | None = None
    """The version that will be started; by the evidence where it is not given."""
    now_ms: int = 0
    topics: frozenset[str] = frozenset()
    partitions: frozenset[int] = frozenset()
    without: tuple[Path, ...] = ()
    """Files and directories that are taken as not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """All starts of all nodes."""

    kafka: str
    kafka_source: str
    """`given` or `assumed`."""
    starts: tuple[PredictedStart, ...]
    logs: tuple[PredictedLog, ...]


def run(request: PredictRequest) -> Result[Prediction]:
    """Play the starts.

    Args:
        request: the paths and the version.

    Returns:
        The starts of each node, what each log comes to, and the answer.

    Raises:
        EvidenceError: a capture among the inputs.
        UsageError: a version that is not modelled, or no log directory among the inputs.
    """
    inputs = find_inputs(request.paths, why_not=why_not_compared, keep_going=request.keep_going, one_cluster=True)
    _refuse_captures(inputs)
    version, source, others = _version(request, inputs)
    nodes = [(index, one) for index, one in enumerate(inputs.found) if one.log_dirs]
    if not nodes:
        message = "predict needs whole log directories, with their marker and checkpoints; none is among the inputs"
        raise UsageError(message)
    problems = list(inputs.problems)
    without = _without(request, inputs)
    played = _play_all(request, nodes, loading_rules(version), problems, without)
    differing = [
        other
        for other in others
        if _told(_play_all(request, nodes, loading_rules(other), [], without)) != _told(played)
    ]
    left_out = [one.described.path for one in inputs.found if one.described.kind == "partition"]
    starts = tuple(start for _, some, _ in played for start in some)
    logs = tuple(log for _, _, some in played for log in some)
    logs = _with_lost_records(inputs, logs, problems)
    answer = predict_answer(
        starts,
        logs,
        inputs=inputs.described,
        kafka=str(version),
        kafka_source=source,
        differing=[str(one) for one in differing],
        left_out=left_out,
        without=[str(path) for path in request.without],
        has_zookeeper_node=any(not _is_kraft(one) for _, one in nodes),
        has_problems=bool(problems),
        has_metadata_log=any(log_dir.is_metadata_dir for _, one in nodes for log_dir in one.log_dirs),
    )
    return Result(
        command="predict",
        inputs=inputs.described,
        body=Prediction(kafka=str(version), kafka_source=source, starts=starts, logs=logs),
        concluded=Conclusion(answer=answer, problems=tuple(problems)),
    )


def _refuse_captures(inputs: Inputs) -> None:
    """Refuse captures: a start reads every batch and every index, which they do not hold."""
    errors: list[EvidenceError] = []
    for one in inputs.found:
        if isinstance(one.root, CapturePath):
            capture, inner = one.root.place()
            words = f"a capture does not hold the segments and indexes that a start reads: name {capture.where(inner)}"
            errors.append(EvidenceUnreadable(one.described.path, words))
    refuse(errors, named=len(inputs.found))


def _without(request: PredictRequest, inputs: Inputs) -> dict[int, frozenset[str]]:
    """The paths that are taken as not there, by input and relative to it."""
    found: dict[int, frozenset[str]] = {}
    for path in request.without:
        places = [
            (index, str(path.absolute().relative_to(one.root.absolute())))
            for index, one in enumerate(inputs.found)
            if path.absolute().is_relative_to(one.root.absolute()) and path.absolute() != one.root.absolute()
        ]
        if not places or not path.exists():
            message = f"--without {path}: no file or directory of the log directories given"
            raise UsageError(message)
        for index, relative in places:
            found[index] = found.get(index, frozenset()) | {relative}
    return found


def _is_kraft(one: FoundInput) -> bool:
    """Whether a node runs without ZooKeeper, by its meta.properties."""
    return all(isinstance(log_dir.meta, MetaProperties) and log_dir.meta.version == KRAFT for log_dir in one.log_dirs)


def _version(request: PredictRequest, inputs: Inputs) -> tuple[KafkaVersion, str, tuple[KafkaVersion, ...]]:
    """The version, where it is from, and other versions that the evidence allows."""
    if request.kafka is not None:
        try:
            version = parse_version(request.kafka)
            loading_rules(version)
        except ValueError as error:
            raise UsageError(f"--kafka {request.kafka}: {error}") from error
        return version, "given", ()
    floors = [log_dir.version_floor[0] for one in inputs.found for log_dir in one.log_dirs]
    floor = max((KafkaVersion(*numbers) for numbers in floors if numbers), default=KafkaVersion(0, 8))
    return NEWEST_MODELLED, "assumed", tuple(one for one in distinct_rules() if one != NEWEST_MODELLED and one >= floor)


_Played = list[tuple[int, list[PredictedStart], list[PredictedLog]]]


def _play_all(
    request: PredictRequest,
    nodes: Sequence[tuple[int, FoundInput]],
    rules: LoadingRules,
    problems: list[Problem],
    without: Mapping[int, frozenset[str]],
) -> _Played:
    settings = LoadSettings(now_ms=request.now_ms, producer_expiration_ms=rules.default_producer_expiration_ms)
    return [
        (index, *_Node(request, index, one, settings, rules, problems, without.get(index, frozenset())).play())
        for index, one in nodes
    ]


def _told(played: _Played) -> object:
    """What two versions are compared by."""
    return [
        (starts, [(log.path, log.start, log.exception, log.after, log.files) for log in logs])
        for _, starts, logs in played
    ]


@dataclass(slots=True)
class _Directory:
    """A directory through the starts."""

    log_dir: FoundLogs
    name: str
    partition: TopicPartition | None
    disk: DirectoryOnDisk


class _Node:
    """One node through its starts."""

    def __init__(
        self,
        request: PredictRequest,
        index: int,
        one: FoundInput,
        settings: LoadSettings,
        rules: LoadingRules,
        problems: list[Problem],
        without: frozenset[str],
    ) -> None:
        self._request, self._index, self._one, self._settings, self._rules = request, index, one, settings, rules
        self._problems = problems
        self._log_dirs = find_logs(index, one, problems, without)
        self._directories = [
            _Directory(
                log_dir,
                found.name,
                _partition(found.name),
                DirectoryOnDisk(one.root / join(log_dir.path, found.name), found.files),
            )
            for log_dir in self._log_dirs
            for found in log_dir.directories
            if is_loaded(found.name) and self._is_asked_for(found.name)
        ]
        self._ends: dict[int, int | Absent] = {}

    def _is_asked_for(self, name: str) -> bool:
        partition = _partition(name)
        topics, partitions = self._request.topics, self._request.partitions
        if not topics and not partitions:
            return True
        return partition is not None and (
            (not topics or partition.topic in topics) and (not partitions or partition.partition in partitions)
        )

    def play(self) -> tuple[list[PredictedStart], list[PredictedLog]]:
        """Starts one after the other, and what each makes of each directory."""
        starts: list[PredictedStart] = []
        logs: list[PredictedLog] = []
        markers = {log_dir.path: log_dir.has_marker for log_dir in self._log_dirs}
        for number in range(1, MOST_STARTS + 1):
            log_dirs = [LoadedLogDir(one.path, markers[one.path], _malformed(one)) for one in self._log_dirs]
            loads = [self._load(directory, clean=markers[directory.log_dir.path]) for directory in self._directories]
            end = start_of(log_dirs, loads)
            logs += [
                self._told_log(number, directory, load)
                for directory, load in zip(self._directories, loads, strict=True)
            ]
            starts.append(self._told_start(number, end, loads, clean=all(markers.values())))
            if isinstance(end, Unpredictable) or end.result is not StartResult.EXITS or not _is_kraft(self._one):
                break
            had_marker = any(markers.values())
            markers = dict.fromkeys(markers, False)
            changed = self._advance(loads)
            if not had_marker and not changed:
                break
        self._note_unreadable()
        return starts, logs

    def _load(self, directory: _Directory, *, clean: bool) -> LogLoad:
        found = directory.log_dir
        outcome = directory.disk.load(
            clean_shutdown=clean,
            recovery_point=_offset(found.recovery_points, directory.partition),
            log_start_offset=_offset(found.log_starts, directory.partition),
            settings=self._settings,
            rules=self._rules,
        )
        return LogLoad(found.path, directory.name, outcome)

    def _advance(self, loads: Sequence[LogLoad]) -> bool:
        """Leave each directory as its load left it; whether anything but the same changed."""
        changed = False
        for directory, load in zip(self._directories, loads, strict=True):
            if isinstance(load.outcome, LoadOutcome):
                changed |= dict(load.outcome.tree) != dict(directory.disk.files)
                directory.disk = directory.disk.after(load.outcome)
                if not isinstance(load.outcome.state, Absent):
                    self._ends[id(directory)] = load.outcome.state.log_end_offset
        return changed

    def _told_start(
        self, number: int, end: Start | Unpredictable, loads: Sequence[LogLoad], *, clean: bool
    ) -> PredictedStart:
        outcomes = [load.outcome for load in loads if isinstance(load.outcome, LoadOutcome)]
        return PredictedStart(
            number=number,
            input=self._index,
            result=end.result if isinstance(end, Start) else Absent.UNKNOWN,
            exception=end.exception if isinstance(end, Start) else Absent.UNKNOWN,
            reason=end.reason,
            clean=clean,
            bytes_scanned=sum(bytes_scanned(one) for one in outcomes),
            logs_scanned=sum(bool(one.scanned) for one in outcomes),
        )

    def _told_log(self, number: int, directory: _Directory, load: LogLoad) -> PredictedLog:
        partition, before = directory.partition, self._before(directory, load)
        told = PredictedLog(
            start=number,
            input=self._index,
            path=join(load.log_dir, load.name),
            topic=partition.topic if partition else Absent.NOT_APPLICABLE,
            partition=partition.partition if partition else Absent.NOT_APPLICABLE,
            outcome="unknown",
            exception=Absent.UNKNOWN,
            message="",
            before=before,
            after=Absent.UNKNOWN,
            files=(),
            scanned=(),
            lost=LostRecords(),
        )
        outcome = load.outcome
        if isinstance(outcome, Unpredictable):
            return replace(told, message=outcome.reason)
        failure, state = outcome.failure, outcome.state
        after: LogState | Absent = Absent.NOT_APPLICABLE
        if not isinstance(state, Absent):
            after = LogState(
                log_start_offset=state.log_start_offset,
                log_end_offset=state.log_end_offset,
                recovery_point=state.recovery_point,
                last_stable_offset=state.last_stable_offset,
                epochs=state.epochs,
                segments=_segments(outcome.tree),
            )
        pieces = lost_pieces(
            outcome, directory.disk, log_start_offset=before.log_start_offset, log_end_offset=before.log_end_offset
        )
        return replace(
            told,
            outcome="loads" if isinstance(failure, Absent) else "fails",
            exception=failure if isinstance(failure, Absent) else failure.exception,
            message="" if isinstance(failure, Absent) else failure.message,
            after=after,
            files=outcome.changes,
            scanned=tuple((one.base_offset, one.length, one.kept_length) for one in outcome.scanned),
            lost=LostRecords(pieces=pieces),
        )

    def _before(self, directory: _Directory, load: LogLoad) -> LogState:
        found = directory.log_dir
        if id(directory) not in self._ends:
            self._ends[id(directory)] = _unchanged_end(directory, load.outcome) or self._end_before(directory)
        start = _checkpointed(found.log_starts, directory.partition)
        segments = _segments(directory.disk.files)
        return LogState(
            log_start_offset=max(start, segments[0][0]) if segments and not isinstance(start, Absent) else start,
            log_end_offset=self._ends[id(directory)],
            recovery_point=_checkpointed(found.recovery_points, directory.partition),
            last_stable_offset=Absent.UNKNOWN,
            epochs=_epochs(directory.disk),
            segments=segments,
        )

    def _end_before(self, directory: _Directory) -> int | Absent:
        """Where the log ends by its last sound batch."""
        folder = join(directory.log_dir.path, directory.name)
        logs = [(base, join(folder, name)) for base, name in _named_offsets(directory.disk.files, LOG)]
        indexes = {base: join(folder, name) for base, name in _named_offsets(directory.disk.files, ".index")}
        try:
            tail = read_log_tail(self._one, logs, indexes)
        except EvidenceError:
            return Absent.UNREADABLE
        return tail if isinstance(tail, Absent) else tail.log_end_offset

    def _note_unreadable(self) -> None:
        for directory in self._directories:
            folder = join(directory.log_dir.path, directory.name)
            for name, words in directory.disk.unreadable.items():
                self._problems.append(Problem(input=self._index, path=join(folder, name), message=words))


def _unchanged_end(directory: _Directory, outcome: LoadOutcome | Unpredictable) -> int | None:
    """Where a log ends that loads unscanned and keeps all of its segments: the load has read it; none where it has to be looked for."""
    if isinstance(outcome, Unpredictable) or isinstance(outcome.state, Absent) or outcome.scanned:
        return None
    logs = _named_offsets(directory.disk.files, LOG)
    is_plain = all(name == f"{padded(base)}{LOG}" for base, name in logs)
    if not logs or not is_plain or not directory.disk.files[logs[-1][1]]:
        return None
    if any(change.name.endswith((LOG, SWAP)) for change in outcome.changes):
        return None
    return outcome.state.log_end_offset


def _partition(name: str) -> TopicPartition | None:
    parsed = partition_of_directory(name)
    return None if parsed is None else TopicPartition(*parsed)


def _malformed(log_dir: FoundLogs) -> LoadFailure | Absent:
    """A checkpoint of the wrong shape, which takes the directory offline; a number that is none only resets the offsets."""
    for read in (log_dir.recovery_points, log_dir.log_starts):
        if isinstance(read, LoadFailure) and read.is_io:
            return read
    return Absent.NOT_APPLICABLE


def _checkpointed(read: Mapping[TopicPartition, int] | LoadFailure, partition: TopicPartition | None) -> int | Absent:
    if isinstance(read, LoadFailure):
        return Absent.UNREADABLE
    return Absent.NOT_WRITTEN if partition is None else read.get(partition, Absent.NOT_WRITTEN)


def _offset(read: Mapping[TopicPartition, int] | LoadFailure, partition: TopicPartition | None) -> int:
    value = _checkpointed(read, partition)
    return 0 if isinstance(value, Absent) else value


def _named_offsets(files: Iterable[str], ending: str) -> list[tuple[int, str]]:
    out = []
    for name in sorted(files):
        if name.endswith(ending):
            try:
                out.append((offset_of(name), name))
            except LoadingError:
                continue
    return out


def _segments(files: Mapping[str, int]) -> tuple[tuple[int, int], ...]:
    return tuple((base, files[name]) for base, name in _named_offsets(files, LOG))


def _epochs(disk: DirectoryOnDisk) -> tuple[EpochEntry, ...] | Absent:
    """What the epoch file says before the load, which has read it."""
    need = Need("leader-epoch-checkpoint", Content.EPOCHS)
    found = disk.written.get(need, disk.read.get(need, Absent.NOT_WRITTEN))
    if isinstance(found, LoadFailure):
        return Absent.UNREADABLE
    return found if isinstance(found, Absent) else tuple(found)  # type: ignore[arg-type]


def _with_lost_records(
    inputs: Inputs, logs: tuple[PredictedLog, ...], problems: list[Problem]
) -> tuple[PredictedLog, ...]:
    """The logs with the records that each loses, and who else holds them."""
    return tuple(
        replace(log, lost=find_lost_records(inputs, log.input, log.path, log.lost, problems))
        if log.lost.pieces
        else log
        for log in logs
    )
