"""Write a simulated cluster as the data directories of its nodes at this moment."""

from pathlib import Path

from kforensics.damage import Absent
from kforensics.errors import UsageError
from kforensics.formats.checkpoint.clean_shutdown import CleanShutdown, encode_clean_shutdown
from kforensics.formats.checkpoint.leader_epoch import (
    LeaderEpochCheckpoint,
    LeaderEpochLine,
    encode_leader_epoch_checkpoint,
)
from kforensics.formats.checkpoint.meta_properties import encode_meta_properties, meta_properties
from kforensics.formats.checkpoint.offset import Checkpoint, CheckpointEntry, encode_checkpoint
from kforensics.formats.checkpoint.partition_metadata import PartitionMetadata, encode_partition_metadata
from kforensics.formats.checkpoint.quorum_state import QuorumState, encode_quorum_state
from kforensics.formats.index.producer_snapshot import encode_producers
from kforensics.formats.log.batch_table import CONTROL_BIT
from kforensics.formats.log.record_batch import build_record_batch, encode_record_batch
from kforensics.formats.messages.control import ControlType, encode_control_record
from kforensics.formats.messages.metadata import FEATURE_LEVEL, encode_metadata_record
from kforensics.protocol.outcome import ProtocolName
from kforensics.simulation.cluster import SimulatedCluster
from kforensics.simulation.metadata_log import (
    CONTROLLER_ID,
    METADATA_EPOCH,
    METADATA_VERSION_LEVEL,
    broker_epoch,
    encode_metadata_log,
)
from kforensics.simulation.replica import SimulatedReplica
from kforensics.simulation.segment_files import SegmentFiles, write_segments
from kforensics.units import EpochEntry

DEFAULT_SEGMENT_LENGTH = 1_048_576
METADATA_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def write_cluster(cluster: SimulatedCluster, directory: Path, *, segment_length: int = DEFAULT_SEGMENT_LENGTH) -> int:
    """Write the directories of all nodes below a new directory and return the bytes of the segments.

    Brokers of `kip-595` are KRaft brokers with a controller, older ones have no metadata log.

    Args:
        cluster: as it is at this moment; it is not changed.
        directory: must not exist yet.
        segment_length: the most bytes of a segment, which its last batch does not exceed.

    Raises:
        UsageError: the directory exists, or can't be made.
    """
    make_new(directory)
    is_kraft = cluster.protocol is ProtocolName.KIP_595
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
    """Make a directory that must not exist yet.

    Args:
        directory: with the folders above it, where they are missing.

    Raises:
        UsageError: it exists, or can't be made.
    """
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
        is_kraft = cluster.protocol is ProtocolName.KIP_595
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
    if cluster.protocol is ProtocolName.KIP_595:
        metadata = PartitionMetadata(version=0, topic_id=cluster.topic_id)
        folder.joinpath("partition.metadata").write_bytes(encode_partition_metadata(metadata))
    return written


def _write_identity(cluster: SimulatedCluster, folder: Path, node_id: int) -> None:
    is_kraft = cluster.protocol is ProtocolName.KIP_595
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
