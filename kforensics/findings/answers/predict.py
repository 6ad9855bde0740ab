"""The answer of `predict`: whether each node starts, and what it loses by it."""

from collections.abc import Collection, Iterator, Sequence

from kforensics.damage import Absent
from kforensics.evidence.model import Input
from kforensics.findings.answers.model import Answer, State, worst_state
from kforensics.protocol.loading.starts import StartResult
from kforensics.reconcile.logs.predicted_load import PredictedLog, PredictedStart
from kforensics.words import counted

COPY_FIRST = "Copy the log directories before anything is started: a start that fails changes them too."


def predict_answer(
    starts: Sequence[PredictedStart],
    logs: Sequence[PredictedLog],
    *,
    inputs: Sequence[Input],
    kafka: str,
    kafka_source: str,
    differing: Collection[str] = (),
    left_out: Collection[str] = (),
    without: Collection[str] = (),
    has_zookeeper_node: bool = False,
    has_problems: bool = False,
    has_metadata_log: bool = False,
) -> Answer:
    """Sum the starts up.

    Args:
        starts: of all nodes.
        logs: what each start makes of each directory.
        inputs: of the command.
        kafka: the version that was played.
        kafka_source: `given` or `assumed`.
        differing: versions that the evidence allows too and that end otherwise on these files.
        without: paths that were taken as not there.
        has_zookeeper_node: some node is a broker with ZooKeeper, or is not known to be none.
        left_out: inputs that are a partition directory alone, which can't be played.
        has_problems: something could not be read.
        has_metadata_log: some node holds the log of a metadata quorum.

    Returns:
        The answer; its headline speaks of the logs alone.
    """
    states = set(_states(starts, logs))
    unknown = list(
        _unknown(logs, kafka=kafka, differing=differing, left_out=left_out, has_metadata_log=has_metadata_log)
    )
    if has_zookeeper_node and State.WILL_NOT_START in states:
        unknown.insert(
            0,
            "What a second start does: a broker with ZooKeeper that fails to start may write its marker and recovery points again.",
        )
    if differing or left_out or has_problems:
        states.add(State.UNKNOWN)
    state = worst_state("predict", states) or State.UNKNOWN
    return Answer(
        state=state,
        headline=(f"As if {', '.join(without)} were not there: " if without else "")
        + _headline(state, starts, logs, inputs, kafka=kafka, kafka_source=kafka_source),
        now=tuple(_now(state, logs, inputs)),
        unknown=tuple(unknown),
    )


def _states(starts: Sequence[PredictedStart], logs: Sequence[PredictedLog]) -> Iterator[State]:
    for start in starts:
        if isinstance(start.result, Absent):
            yield State.UNKNOWN
        elif start.result is not StartResult.STARTS:
            yield State.WILL_NOT_START
    for log in logs:
        if log.outcome == "unknown":
            yield State.UNKNOWN
        elif log.lost.records:
            yield State.LOSES
        else:
            yield State.STARTS_AND_REPAIRS if log.is_changed else State.STARTS_UNCHANGED
    if starts:
        yield State.STARTS_UNCHANGED


def _headline(
    state: State,
    starts: Sequence[PredictedStart],
    logs: Sequence[PredictedLog],
    inputs: Sequence[Input],
    *,
    kafka: str,
    kafka_source: str,
) -> str:
    version = f"Kafka {kafka}" if kafka_source == "given" else f"Kafka {kafka}, which is assumed"
    lost = _lost(logs)
    sentences = {
        State.WILL_NOT_START: lambda: _not_starting(starts, inputs, version) + (f" {lost}" if lost else ""),
        State.LOSES: lambda: f"By {version} all logs load. {lost}",
        State.UNKNOWN: lambda: (
            f"What {version} makes of these logs is not known for all of them." + (f" {lost}" if lost else "")
        ),
        State.STARTS_AND_REPAIRS: lambda: (
            f"By {version} all {_count(logs)} load and no record is discarded; files of {_changed(logs)} change."
        ),
        State.STARTS_UNCHANGED: lambda: f"By {version} all {_count(logs)} load as they are.",
    }
    words = sentences[state]()
    if not all(start.clean for start in starts if start.number == 1):
        words += " No clean stop: the logs are recovered, as after a crash now."
    return words


def _not_starting(starts: Sequence[PredictedStart], inputs: Sequence[Input], version: str) -> str:
    bad = [start for start in starts if start.result not in {StartResult.STARTS, Absent.UNKNOWN}]
    first = bad[0]
    node = _node(inputs[first.input])
    others = len({start.input for start in bad}) - 1
    more = f" (and {others} more of these nodes)" if others else ""
    if first.result is StartResult.DIRECTORY_OFFLINE:
        return f"By {version} a log directory of {node}{more} goes offline: {first.exception}."
    later = [start for start in starts if start.input == first.input and start.number > first.number]
    again = ""
    if later and later[-1].result is StartResult.STARTS:
        again = f" Start {later[-1].number} succeeds, without the clean-shutdown marker that start 1 removes."
    elif later:
        again = " It does not start later either."
    return f"By {version} {node}{more} does not start: {first.exception}.{again}"


def _lost(logs: Sequence[PredictedLog]) -> str:
    losing = _last_losing(logs)
    records = sum(log.lost.records for log in losing)
    if not records:
        return ""
    certain = sum(log.lost.certain for log in losing)
    only = sum(log.lost.only_here for log in losing)
    partitions = len({(log.input, log.path) for log in losing})
    return (
        f"{counted(records, 'record')} of {counted(partitions, 'log')} will be discarded: "
        f"{certain:,} certainly committed, {records - certain:,} possibly; {only:,} are on no other replica given."
    )


def _last_losing(logs: Sequence[PredictedLog]) -> list[PredictedLog]:
    """The logs that lose records, each once: a later start that truncates the same log again counts what it truncates."""
    return [log for log in logs if log.lost.records]


def _now(state: State, logs: Sequence[PredictedLog], inputs: Sequence[Input]) -> Iterator[str]:
    if state not in {State.WILL_NOT_START, State.LOSES}:
        return
    yield COPY_FIRST
    for log in logs:
        if log.lost.records and log.lost.only_here:
            yield f"Save {log.path} of {_node(inputs[log.input])}: {log.lost.only_here:,} of its records are on no other replica given."
        elif log.lost.records:
            whole = [holder for holder in log.lost.held_by if holder.records == log.lost.records]
            held = " and ".join(_node(inputs[holder.input]) for holder in whole or log.lost.held_by)
            yield f"Keep {held}, which {'holds' if len(whole) == 1 else 'hold'} what {log.path} of {_node(inputs[log.input])} discards."


def _unknown(
    logs: Sequence[PredictedLog],
    *,
    kafka: str,
    differing: Collection[str],
    left_out: Collection[str],
    has_metadata_log: bool,
) -> Iterator[str]:
    for log in logs:
        if log.outcome == "unknown":
            yield f"What becomes of {log.path}: {log.message}."
    if differing:
        yield f"Kafka {', '.join(differing)} would do otherwise than {kafka} on these files: give the version with --kafka."
    if left_out:
        yield f"Partition directories alone have neither marker nor checkpoints: {', '.join(left_out)}. Give their log directory."
    yield (
        "Whether the node starts apart from its logs: identity, locks, registration and stray directories are not looked at, "
        "nor is what retention deletes later."
    )
    if has_metadata_log:
        yield "What becomes of the metadata log, which the quorum opens by rules of its own."


def _count(logs: Sequence[PredictedLog]) -> str:
    count = len({(log.input, log.path) for log in logs})
    return counted(count, "log")


def _changed(logs: Sequence[PredictedLog]) -> str:
    count = len({(log.input, log.path) for log in logs if log.is_changed})
    return counted(count, "log")


def _node(one: Input) -> str:
    return f"node at {one.path}" if isinstance(one.broker_id, Absent) else f"broker {one.broker_id}"
