"""What ends an open transaction: the command, or who does it by itself."""

from kforensics.damage import Absent
from kforensics.evidence.coordinators.open_transactions import Marker, OpenTransaction
from kforensics.protocol.coordinators import TransactionStatus
from kforensics.protocol.versions import KafkaVersion
from kforensics.reconcile.transactions.coordinators import Coordinators
from kforensics.reconcile.transactions.verdicts import Judgement, TransactionVerdict
from kforensics.units import TopicPartition

START_OFFSET_SINCE = KafkaVersion(3, 0)
"""Since this version brokers find the transaction that begins at an offset by themselves (KIP-664)."""

_TOOL = "kafka-transactions.sh --bootstrap-server HOST:PORT abort"


def what_ends(
    one: OpenTransaction,
    partition: TopicPartition,
    judgement: Judgement,
    coordinators: Coordinators,
    *,
    last_marker: Marker | None,
    version: KafkaVersion | None,
) -> str:
    """Say what ends a transaction.

    An abort is named only where no commit was decided: else it would hide records that were acknowledged as committed.
    """
    state = judgement.state
    status = TransactionStatus(state.status) if state is not None and state.status in set(TransactionStatus) else None
    decided = status is not None and status.commits
    match judgement.verdict:
        case TransactionVerdict.PREPARED:
            assert state is not None
            leader = _leader_of(coordinators, state.transactional_id)
            return (
                f"{leader} writes the marker as soon as it and the leader of {partition} run; nothing else may end it"
            )
        case TransactionVerdict.IN_TIME:
            return (
                "nothing to do: its producer ends it, or its coordinator when the transaction times out, or replication"
            )
        case TransactionVerdict.UNKNOWN:
            return "nothing yet: first find out what its coordinator knows"
        case TransactionVerdict.TORN if judgement.is_decision_lost:
            return (
                f"its coordinator, with an abort marker: copy the {_records(one)} at offsets {one.first_offset}..{one.last_offset}, which were "
                "acknowledged as committed, before that (kforensics dump) and produce them again"
            )
        case TransactionVerdict.TORN if _was_committed(judgement, decided=decided):
            return (
                f"nothing by itself: it was committed, and whoever ends it by hand hides the {_records(one)} at offsets "
                f"{one.first_offset}..{one.last_offset}, which were acknowledged: copy them first (kforensics dump) and produce them again"
            )
        case TransactionVerdict.HANGING if decided:
            return (
                f"nothing by itself: its coordinator says that {judgement.coordinator_state}, so find out first whether the {_records(one)} at offsets "
                f"{one.first_offset}..{one.last_offset} belong to what was committed (kforensics dump)"
            )
    line = abort_command(one, partition, last_marker=last_marker, version=version)
    if judgement.lost_since_ms is not None and state is not None:
        place = coordinators.place_of(state.transactional_id)
        return f"first ask its application whether it was committed, since {place} lost records in an unclean election; if it was not: {line}"
    return line


def abort_command(
    one: OpenTransaction, partition: TopicPartition, *, last_marker: Marker | None, version: KafkaVersion | None
) -> str:
    """Return the line that ends a transaction by an abort marker (KIP-664)."""
    where = f"{_TOOL} --topic {partition.topic} --partition {partition.partition}"
    epoch = 0 if last_marker is None else max(last_marker.coordinator_epoch, 0)
    by_producer = f"--producer-id {one.producer_id} --producer-epoch {one.producer_epoch} --coordinator-epoch {epoch}"
    if version is not None and version < START_OFFSET_SINCE:
        # Brokers take the request since 0.11; the tool came with 3.0.
        return f"{where} {by_producer} (with the script of Kafka 3.0 or later, since {version} came without it)"
    by_offset = f"{where} --start-offset {one.first_offset}"
    return f"{by_offset} (with brokers before 3.0: {by_producer})" if version is None else by_offset


def _was_committed(judgement: Judgement, *, decided: bool) -> bool:
    marker = judgement.lost_marker
    return decided or (marker is not None and marker.kind.value == "commit")


def _records(one: OpenTransaction) -> str:
    return "records" if isinstance(one.records, Absent) else f"{one.records:,} record{'s' * (one.records != 1)}"


def _leader_of(coordinators: Coordinators, transactional_id: str | bytes) -> str:
    place = coordinators.place_of(transactional_id)
    partition = coordinators.topic.partition_of(transactional_id)
    broker = Absent.UNKNOWN if isinstance(partition, Absent) else coordinators.brokers.get(partition, Absent.UNKNOWN)
    return f"the leader of {place}" if isinstance(broker, Absent) else f"broker {broker}, which leads {place},"
