"""Write the log lines of simulated brokers: starts, stops, changes of role and truncations, in the words of each protocol's versions."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.protocol.outcome import ProtocolName, StepKind, TruncationStep
from kforensics.simulation.cluster import SimulatedCluster
from kforensics.simulation.rows import Alignment, RoleChange
from kforensics.units import TopicPartition

DATA_DIRECTORY = "/var/lib/kafka/broker-{}"
VERSIONS = {
    ProtocolName.HW: "0.10.2.2",
    ProtocolName.KIP_101: "1.1.1",
    ProtocolName.KIP_279: "2.6.3",
    ProtocolName.KIP_595: "4.1.0",
}
"""The release whose log lines each protocol uses."""


class LogLine(NamedTuple):
    """One line of a log file."""

    time_ms: int
    file: str
    level: str
    text: str
    logger: str

    def __str__(self) -> str:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=self.time_ms)
        return f"[{moment:%Y-%m-%d %H:%M:%S},{self.time_ms % 1_000:03d}] {self.level} {self.text} ({self.logger})"


def write_broker_logs(cluster: SimulatedCluster, directory: Path) -> None:
    """Write `server.log` and `state-change.log` of every broker below `logs`.

    Args:
        directory: of the cluster, without `logs` yet.
    """
    for broker in cluster.brokers:
        folder = directory.joinpath("logs", f"broker-{broker}")
        folder.mkdir(parents=True)
        lines = sorted(broker_lines(cluster, broker), key=lambda line: line.time_ms)
        for name in ("server.log", "state-change.log"):
            text = "".join(f"{line}\n" for line in lines if line.file == name)
            folder.joinpath(name).write_text(text, encoding="utf-8")


def broker_lines(cluster: SimulatedCluster, broker: int) -> Iterator[LogLine]:
    """Yield every line of one broker, not ordered by time."""
    version = VERSIONS[cluster.protocol]
    starts = [cluster.settings.start_time_ms]
    starts += [event.time_ms for event in cluster.broker_events if event[1:] == (broker, "start")]
    colon = " :" if cluster.protocol in {ProtocolName.HW, ProtocolName.KIP_101} else ":"
    for time_ms in starts:
        yield _server(time_ms, "INFO", f"Kafka version{colon} {version}", "org.apache.kafka.common.utils.AppInfoParser")
    for event in cluster.broker_events:
        if event.broker_id == broker and event.kind == "stop":
            yield _shutdown(cluster.protocol, event.time_ms, broker)
    for partition, simulated in cluster.partitions.items():
        if cluster.protocol is ProtocolName.KIP_595:
            mine = (change for change in simulated.role_changes if change.broker_id == broker)
            yield from (_role_line(cluster, partition, change) for change in mine)
        for alignment in simulated.truncations:
            if alignment.follower == broker:
                yield from _alignment_lines(cluster.protocol, partition, alignment)


def _shutdown(protocol: ProtocolName, time_ms: int, broker: int) -> LogLine:
    if protocol is ProtocolName.KIP_595:
        words = f"[BrokerServer id={broker}] Transition from STARTED to SHUTTING_DOWN"
        return _server(time_ms, "INFO", words, "kafka.server.BrokerServer")
    words = f"[KafkaServer id={broker}] shutting down"
    if protocol is ProtocolName.HW:
        words = f"[Kafka Server {broker}], shutting down"
    return _server(time_ms, "INFO", words, "kafka.server.KafkaServer")


def _alignment_lines(protocol: ProtocolName, partition: TopicPartition, alignment: Alignment) -> Iterator[LogLine]:
    for step in alignment.outcome.steps:
        if isinstance(step.truncate_to, Absent):
            continue
        yield from _reason(protocol, partition, alignment, step, step.truncate_to)
        yield _truncation(protocol, partition, alignment, step.truncate_to)


def _role_line(cluster: SimulatedCluster, partition: TopicPartition, change: RoleChange) -> LogLine:
    now = change.registration
    before = max(now.leader_epoch - 1, -1)
    if now.leader == change.broker_id:
        isr = ",".join(map(str, now.isr))
        words = (
            f"Leader {partition} with topic id Some({cluster.topic_id}) starts at leader epoch {now.leader_epoch} from "
            f"offset {change.log_end_offset} with partition epoch {now.partition_epoch}, high watermark "
            f"{change.high_watermark}, ISR [{isr}], adding replicas [] and removing replicas [] . Previous leader None "
            f"and previous leader epoch was {before}."
        )
    else:
        words = (
            f"Follower {partition} starts at leader epoch {now.leader_epoch} from offset {change.log_end_offset} with "
            f"partition epoch {now.partition_epoch} and high watermark {change.high_watermark}. Current leader is "
            f"{now.leader}. Previous leader Some({now.leader}) and previous leader epoch was {before}."
        )
    text = f"[Broker id={change.broker_id}] {words}"
    return LogLine(change.time_ms, "state-change.log", "INFO", text, "state.change.logger")


def _truncation(protocol: ProtocolName, partition: TopicPartition, alignment: Alignment, offset: int) -> LogLine:
    if protocol is ProtocolName.HW:
        return _server(alignment.time_ms, "INFO", f"Truncating log {partition} to offset {offset}.", "kafka.log.Log")
    is_new = protocol is ProtocolName.KIP_595
    kind = "UnifiedLog" if is_new else "Log"
    logger = "org.apache.kafka.storage.internals.log.UnifiedLog" if is_new else "kafka.log.Log"
    where = DATA_DIRECTORY.format(alignment.follower)
    words = f"[{kind} partition={partition}, dir={where}] Truncating to offset {offset}"
    return _server(alignment.time_ms, "INFO", words, logger)


def _reason(
    protocol: ProtocolName, partition: TopicPartition, alignment: Alignment, step: TruncationStep, offset: int
) -> Iterator[LogLine]:
    fetcher = f"[ReplicaFetcher replicaId={alignment.follower}, leaderId={alignment.leader}, fetcherId=0]"
    logger = "kafka.server.ReplicaFetcherThread"
    if step.kind is StepKind.OUT_OF_RANGE and protocol is not ProtocolName.HW:
        words = (
            f"{fetcher} Reset fetch offset for partition {partition} from {step.log_end_offset} to current leader's "
            f"latest offset {offset}"
        )
        yield _server(alignment.time_ms, "WARN", words, logger)
    elif protocol is ProtocolName.KIP_595:
        state = (
            f"{fetcher} Truncating partition {partition} with TruncationState(offset={offset}, completed=true) due to "
        )
        because = f"local high watermark {offset}"
        if step.kind is StepKind.FETCH:
            because = (
                f"leader epoch and offset EpochEndOffset(errorCode=0, partition={partition.partition}, "
                f"leaderEpoch={step.answer_epoch}, endOffset={step.answer_offset})"
            )
        yield _server(alignment.time_ms, "INFO", state + because, logger)


def _server(time_ms: int, level: str, text: str, logger: str) -> LogLine:
    return LogLine(time_ms, "server.log", level, text, logger)
