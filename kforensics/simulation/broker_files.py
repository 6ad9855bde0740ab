"""Write a simulated cluster as the data directories of its nodes at this moment, and the log lines of its brokers.

Segments are rolled and indexed as `LogSegment.append` does; lines have the words of each protocol's versions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.errors import UsageError
from kforensics.formats.checkpoint.json_files import (
    CleanShutdown,
    QuorumState,
    encode_clean_shutdown,
    encode_quorum_state,
)
from kforensics.formats.checkpoint.lines import (
    Checkpoint,
    CheckpointEntry,
    LeaderEpochCheckpoint,
    LeaderEpochLine,
    encode_checkpoint,
    encode_leader_epoch_checkpoint,
)
from kforensics.formats.checkpoint.properties import (
    PartitionMetadata,
    encode_meta_properties,
    encode_partition_metadata,
    meta_properties,
)
from kforensics.formats.index import encode_index, encode_producers, offset_index, time_index
from kforensics.formats.log.batch_table import CONTROL_BIT
from kforensics.formats.log.batches import Message, build_record_batch, encode_message_set, encode_record_batch
from kforensics.formats.messages.control import ControlType, encode_control_record
from kforensics.formats.messages.metadata import FEATURE_LEVEL, encode_metadata_record
from kforensics.protocol.truncation import ProtocolName, StepKind, TruncationStep
from kforensics.protocol.versions import PROTOCOL_RULES
from kforensics.simulation.cluster import SimulatedCluster
from kforensics.simulation.metadata_log import (
    CONTROLLER_ID,
    METADATA_EPOCH,
    METADATA_VERSION_LEVEL,
    broker_epoch,
    encode_metadata_log,
)
from kforensics.simulation.replica import Alignment, RoleChange, SimulatedBatch, SimulatedReplica
from kforensics.units import EpochEntry, TopicPartition

INDEX_INTERVAL_LENGTH = 4_096
PREALLOCATED_INDEX_LENGTH = 65_536
"""A small `log.index.size.max.bytes`, so that generated directories stay small where holes are not kept."""


@lru_cache(maxsize=65_536)
def encode_batch(batch: SimulatedBatch, magic: int) -> bytes:
    """Encode a batch; every replica that holds it has the same bytes."""
    pairs = [(f"key-{record}".encode(), f"value of {record}".encode()) for record in batch.records]
    if magic < 2:
        messages = [
            Message(batch.base_offset + index, magic, 0, batch.timestamp_ms, key, value)
            for index, (key, value) in enumerate(pairs)
        ]
        return encode_message_set(messages)
    records = [(batch.timestamp_ms, key, value) for key, value in pairs]
    return encode_record_batch(
        build_record_batch(batch.base_offset, records, partition_leader_epoch=batch.leader_epoch)
    )


@dataclass(slots=True)
class SegmentFiles:
    """One segment while it is built."""

    base_offset: int
    log: bytearray = field(default_factory=bytearray)
    offset_entries: list[tuple[int, int]] = field(default_factory=list)
    time_entries: list[tuple[int, int]] = field(default_factory=list)
    _since_entry: int = 0
    _max_timestamp_ms: int = -1
    _max_timestamp_offset: int = 0

    def __post_init__(self) -> None:
        self._max_timestamp_offset = self.base_offset

    def append(self, data: bytes, *, last_offset: int, timestamp_ms: int) -> None:
        """Append one batch, and an index entry if enough bytes have followed the last one."""
        if timestamp_ms > self._max_timestamp_ms:
            self._max_timestamp_ms, self._max_timestamp_offset = timestamp_ms, last_offset
        if self._since_entry > INDEX_INTERVAL_LENGTH:
            self.offset_entries.append((last_offset - self.base_offset, len(self.log)))
            self._add_time()
            self._since_entry = 0
        self.log += data
        self._since_entry += len(data)

    def write(self, folder: Path, *, is_closed: bool) -> None:
        """Write the three files; a closed segment's indexes are trimmed and its time index ends with its newest record."""
        stem = f"{self.base_offset:020d}"
        if is_closed:
            self._add_time()
        folder.joinpath(f"{stem}.log").write_bytes(self.log)
        preallocated = 0 if is_closed else PREALLOCATED_INDEX_LENGTH
        index = offset_index(self.offset_entries, preallocated=preallocated)
        folder.joinpath(f"{stem}.index").write_bytes(encode_index(index))
        times = time_index(self.time_entries, preallocated=preallocated - preallocated % 12)
        folder.joinpath(f"{stem}.timeindex").write_bytes(encode_index(times))

    def _add_time(self) -> None:
        if not self.time_entries or self._max_timestamp_ms > self.time_entries[-1][0]:
            self.time_entries.append((max(self._max_timestamp_ms, 0), self._max_timestamp_offset - self.base_offset))


def write_segments(
    folder: Path, batches: Sequence[SimulatedBatch], *, magic: int, segment_length: int, is_closed: bool
) -> int:
    """Write a log into its directory and return the bytes of its segments; an empty log has one empty segment.

    Args:
        segment_length: the most bytes of a segment, which a single longer batch exceeds.
        is_closed: whether the broker stopped cleanly, so that the last segment is closed too.
    """
    segments = [SegmentFiles(0)]
    for batch in batches:
        data = encode_batch(batch, magic)
        if segments[-1].log and len(segments[-1].log) + len(data) > segment_length:
            segments.append(SegmentFiles(batch.base_offset))
        segments[-1].append(data, last_offset=batch.end_offset - 1, timestamp_ms=batch.timestamp_ms)
    for segment in segments:
        segment.write(folder, is_closed=is_closed or segment is not segments[-1])
        if segment.base_offset and magic >= 2:
            folder.joinpath(f"{segment.base_offset:020d}.snapshot").write_bytes(encode_producers(()))
    return sum(len(segment.log) for segment in segments)


DEFAULT_SEGMENT_LENGTH = 1_048_576
METADATA_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def write_cluster(cluster: SimulatedCluster, directory: Path, *, segment_length: int = DEFAULT_SEGMENT_LENGTH) -> int:
    """Write the directories of all nodes below a new directory and return the bytes of the segments.

    Brokers of `kip-595` are KRaft brokers with a controller, older ones have no metadata log.

    Args:
        segment_length: the most bytes of a segment, which its last batch does not exceed.
    """
    make_new(directory)
    is_kraft = PROTOCOL_RULES[cluster.protocol].is_kraft
    metadata = encode_metadata_log(cluster) if is_kraft else []
    written = 0
    for broker in cluster.brokers:
        written += _write_broker(cluster, broker, directory.joinpath(f"broker-{broker}"), segment_length)
        if is_kraft:
            _write_metadata(cluster, metadata, directory.joinpath(f"broker-{broker}"), leader=False)
    if is_kraft:
        controller = directory.joinpath(f"controller-{CONTROLLER_ID}")
        controller.mkdir()
        _write_identity(cluster, controller, CONTROLLER_ID)
        _write_metadata(cluster, metadata, controller, leader=True)
    return written


def make_new(directory: Path) -> None:
    """Make a directory that must not exist yet."""
    try:
        directory.mkdir(parents=True)
    except FileExistsError:
        raise UsageError(f"{directory} exists; kforensics overwrites nothing") from None
    except OSError as error:
        raise UsageError(f"{directory} can't be made: {error.strerror}") from error


def _write_broker(cluster: SimulatedCluster, broker: int, folder: Path, segment_length: int) -> int:
    folder.mkdir()
    _write_identity(cluster, folder, broker)
    here = {
        partition: simulated.replicas[broker]
        for partition, simulated in cluster.partitions.items()
        if broker in simulated.replicas
    }
    written = 0
    for partition, replica in here.items():
        written += _write_replica(cluster, replica, folder.joinpath(str(partition)), segment_length)
    high_watermarks = [
        CheckpointEntry(*partition, replica.checkpointed_high_watermark)
        for partition, replica in here.items()
        if not isinstance(replica.checkpointed_high_watermark, Absent)
    ]
    recovery_points = [CheckpointEntry(*partition, replica.recovery_point) for partition, replica in here.items()]
    for name, entries in {
        "replication-offset-checkpoint": high_watermarks,
        "recovery-point-offset-checkpoint": recovery_points,
        "log-start-offset-checkpoint": [],
        "cleaner-offset-checkpoint": [],
    }.items():
        folder.joinpath(name).write_bytes(encode_checkpoint(Checkpoint(entries=tuple(entries))))
    if here and all(replica.stopped_cleanly for replica in here.values()):
        turns = sum(event.broker_id == broker and event.kind == "start" for event in cluster.broker_events)
        is_kraft = PROTOCOL_RULES[cluster.protocol].is_kraft
        epoch: int | Absent = broker_epoch(broker, turns) if is_kraft else Absent.NOT_APPLICABLE
        marker = encode_clean_shutdown(CleanShutdown(broker_epoch=epoch))
        folder.joinpath(".kafka_cleanshutdown").write_bytes(marker)
    return written


def _write_replica(cluster: SimulatedCluster, replica: SimulatedReplica, folder: Path, segment_length: int) -> int:
    folder.mkdir()
    magic = 2 if replica.keeps_epochs else 1
    written = write_segments(
        folder, replica.log, magic=magic, segment_length=segment_length, is_closed=replica.stopped_cleanly
    )
    if replica.keeps_epochs:
        folder.joinpath("leader-epoch-checkpoint").write_bytes(_epochs(replica.epochs))
        if replica.stopped_cleanly:
            folder.joinpath(f"{replica.log_end_offset:020d}.snapshot").write_bytes(encode_producers(()))
    if PROTOCOL_RULES[cluster.protocol].is_kraft:
        metadata = PartitionMetadata(version=0, topic_id=cluster.topic_id)
        folder.joinpath("partition.metadata").write_bytes(encode_partition_metadata(metadata))
    return written


def _write_identity(cluster: SimulatedCluster, folder: Path, node_id: int) -> None:
    is_kraft = PROTOCOL_RULES[cluster.protocol].is_kraft
    identity = meta_properties(
        version=int(is_kraft),
        node_id=node_id,
        cluster_id=cluster.cluster_id,
        directory_id=cluster.directory_id(node_id) if is_kraft else Absent.NOT_WRITTEN,
    )
    folder.joinpath("meta.properties").write_bytes(encode_meta_properties(identity))


def _write_metadata(
    cluster: SimulatedCluster, batches: list[tuple[int, int, bytes]], folder: Path, *, leader: bool
) -> None:
    log_folder = folder.joinpath("__cluster_metadata-0")
    log_folder.mkdir()
    segment = SegmentFiles(0)
    for _base_offset, last_offset, data in batches:
        segment.append(data, last_offset=last_offset, timestamp_ms=cluster.settings.start_time_ms)
    segment.write(log_folder, is_closed=True)
    log_folder.joinpath("leader-epoch-checkpoint").write_bytes(_epochs((EpochEntry(METADATA_EPOCH, 0),)))
    metadata = PartitionMetadata(version=0, topic_id=METADATA_TOPIC_ID)
    log_folder.joinpath("partition.metadata").write_bytes(encode_partition_metadata(metadata))
    quorum = QuorumState(
        data_version=0,
        leader_id=CONTROLLER_ID,
        leader_epoch=METADATA_EPOCH,
        voted_id=CONTROLLER_ID if leader else Absent.NOT_WRITTEN,
        applied_offset=0,
        current_voters=(CONTROLLER_ID,),
    )
    log_folder.joinpath("quorum-state").write_bytes(encode_quorum_state(quorum))
    folder.joinpath("bootstrap.checkpoint").write_bytes(_bootstrap(cluster.settings.start_time_ms))


def _bootstrap(time_ms: int) -> bytes:
    """Return the snapshot that a formatted directory begins with: header, metadata.version, footer; each a batch of epoch 0."""
    header = encode_control_record(ControlType.SNAPSHOT_HEADER, {"version": 0, "last_contained_log_timestamp": 0})
    level = encode_metadata_record(
        FEATURE_LEVEL.api_key or 0, 0, {"name": "metadata.version", "feature_level": METADATA_VERSION_LEVEL}
    )
    footer = encode_control_record(ControlType.SNAPSHOT_FOOTER, {"version": 0})
    batches = (
        build_record_batch(0, [(time_ms, *header)], attributes=CONTROL_BIT),
        build_record_batch(1, [(time_ms, None, level)]),
        build_record_batch(2, [(time_ms, *footer)], attributes=CONTROL_BIT),
    )
    return b"".join(encode_record_batch(batch) for batch in batches)


def _epochs(entries: tuple[EpochEntry, ...]) -> bytes:
    lines = tuple(LeaderEpochLine(*entry) for entry in entries)
    return encode_leader_epoch_checkpoint(LeaderEpochCheckpoint(lines=lines))


DATA_DIRECTORY = "/var/lib/kafka/broker-{}"


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
    """Write `server.log` and `state-change.log` of every broker below `logs`."""
    for broker in cluster.brokers:
        folder = directory.joinpath("logs", f"broker-{broker}")
        folder.mkdir(parents=True)
        lines = sorted(broker_lines(cluster, broker), key=lambda line: line.time_ms)
        for name in ("server.log", "state-change.log"):
            text = "".join(f"{line}\n" for line in lines if line.file == name)
            folder.joinpath(name).write_text(text, encoding="utf-8")


def broker_lines(cluster: SimulatedCluster, broker: int) -> Iterator[LogLine]:
    """Yield every line of one broker, not ordered by time."""
    version = PROTOCOL_RULES[cluster.protocol].simulated_as
    starts = [cluster.settings.start_time_ms]
    starts += [event.time_ms for event in cluster.broker_events if event[1:] == (broker, "start")]
    colon = " :" if version < (2, 0) else ":"
    for time_ms in starts:
        yield _server(time_ms, "INFO", f"Kafka version{colon} {version}", "org.apache.kafka.common.utils.AppInfoParser")
    for event in cluster.broker_events:
        if event.broker_id == broker and event.kind == "stop":
            yield _shutdown(cluster.protocol, event.time_ms, broker)
    for partition, simulated in cluster.partitions.items():
        if PROTOCOL_RULES[cluster.protocol].is_kraft:
            mine = (change for change in simulated.role_changes if change.broker_id == broker)
            yield from (_role_line(cluster, partition, change) for change in mine)
        for alignment in simulated.truncations:
            if alignment.follower == broker:
                yield from _alignment_lines(cluster.protocol, partition, alignment)


def _shutdown(protocol: ProtocolName, time_ms: int, broker: int) -> LogLine:
    if PROTOCOL_RULES[protocol].is_kraft:
        words = f"[BrokerServer id={broker}] Transition from STARTED to SHUTTING_DOWN"
        return _server(time_ms, "INFO", words, "kafka.server.BrokerServer")
    words = f"[KafkaServer id={broker}] shutting down"
    if not PROTOCOL_RULES[protocol].keeps_epochs:
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
    if not PROTOCOL_RULES[protocol].keeps_epochs:
        return _server(alignment.time_ms, "INFO", f"Truncating log {partition} to offset {offset}.", "kafka.log.Log")
    is_new = PROTOCOL_RULES[protocol].is_kraft
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
    if step.kind is StepKind.OUT_OF_RANGE and PROTOCOL_RULES[protocol].keeps_epochs:
        words = (
            f"{fetcher} Reset fetch offset for partition {partition} from {step.log_end_offset} to current leader's "
            f"latest offset {offset}"
        )
        yield _server(alignment.time_ms, "WARN", words, logger)
    elif PROTOCOL_RULES[protocol].is_kraft:
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
