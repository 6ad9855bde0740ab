"""What the transaction coordinators know, by transactional id and by producer id."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kforensics.damage import Absent
from kforensics.evidence.coordinators.open_transactions import Marker
from kforensics.evidence.coordinators.transaction_log import TransactionLog, TransactionState
from kforensics.protocol.coordinators import TransactionStatus
from kforensics.reconcile.coordinator_topics import CoordinatorTopic
from kforensics.units import TRANSACTIONS_TOPIC, TopicPartition

STATUS_NAMES = {
    TransactionStatus.EMPTY: "Empty",
    TransactionStatus.ONGOING: "Ongoing",
    TransactionStatus.PREPARE_COMMIT: "PrepareCommit",
    TransactionStatus.PREPARE_ABORT: "PrepareAbort",
    TransactionStatus.COMPLETE_COMMIT: "CompleteCommit",
    TransactionStatus.COMPLETE_ABORT: "CompleteAbort",
    TransactionStatus.DEAD: "Dead",
    TransactionStatus.PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinators:
    """The newest states by one replica of each partition of `__transaction_state`."""

    topic: CoordinatorTopic
    by_id: Mapping[str | bytes, TransactionState]
    by_producer: Mapping[int, TransactionState]
    """By the producer id of the state, and by those before and after it while they change."""
    history: Mapping[str | bytes, Sequence[TransactionState]] = field(default_factory=dict)
    """Every state on disk of the transactional ids that were asked for, those of other replicas and earlier snapshots among them."""
    stopped: frozenset[int] = frozenset()
    """Partitions whose replica was left by a clean shutdown."""
    brokers: Mapping[int, int | Absent] = field(default_factory=dict)
    """The broker that leads each partition, as far as it is known."""
    newest_ms: int = -1
    unclean: Mapping[int, int] = field(default_factory=dict)
    """Partitions whose leader was elected uncleanly, and when last; -1 where the time is not known."""
    commits: Mapping[int, tuple[TopicPartition, Marker]] = field(default_factory=dict)
    """By producer id: a commit marker in a partition of a transaction that its coordinator does not hold for committed."""
    partly: frozenset[int] = frozenset()
    """Producer ids of unfinished transactions with a partition that is not here, which may have a marker."""
    epochs: Mapping[int, int] = field(default_factory=dict)
    """The newest leader epoch of each partition, in its log or on record."""

    def place_of(self, transactional_id: str | bytes) -> str:
        """Return the partition of a transactional id, or of its pseudonym, in words; without a known count of partitions the topic is named."""
        partition = self.topic.partition_of(transactional_id)
        return TRANSACTIONS_TOPIC if isinstance(partition, Absent) else f"{TRANSACTIONS_TOPIC}-{partition}"

    def lost_since(self, transactional_id: str | bytes, time_ms: int) -> int | None:
        """Return when, in UTC ms, an unclean election may have taken newer states of a transactional id; negative where its time is not known, none where none on record can have."""
        partition = self.topic.partition_of(transactional_id)
        when = None if isinstance(partition, Absent) else self.unclean.get(partition)
        return when if when is not None and (when < 0 or when >= time_ms) else None

    def has_lost(self, state: TransactionState, marker: Marker) -> bool:
        """Whether the log of the state's partition is newer than a marker that a decision led to, so that it lost the decision.

        A marker has the leader epoch of the coordinator that wrote it, and is written after the decision is in all replicas in sync
        (`TransactionMarkerChannelManager`, KIP-98).
        """
        partition = self.topic.partition_of(state.transactional_id)
        later = not isinstance(partition, Absent) and self.epochs.get(partition, -1) > marker.coordinator_epoch >= 0
        return later or self.is_stopped(state)

    def is_stopped(self, state: TransactionState | None) -> bool:
        """Whether what is known of a transactional id, or of all, is of a stopped broker."""
        if state is None:
            return self.topic.present <= self.stopped
        partition = self.topic.partition_of(state.transactional_id)
        return self.topic.present <= self.stopped if isinstance(partition, Absent) else partition in self.stopped


def status_name(status: int) -> str:
    """Return a status as Kafka's tools print it."""
    return STATUS_NAMES[TransactionStatus(status)] if status in set(TransactionStatus) else f"status {status}"


def join_coordinators(
    topic: CoordinatorTopic,
    logs: Mapping[int, TransactionLog],
    *,
    stopped: frozenset[int],
    brokers: Mapping[int, int | Absent],
    history: Mapping[str | bytes, Sequence[TransactionState]] | None = None,
    unclean: Mapping[int, int] | None = None,
    epochs: Mapping[int, int] | None = None,
) -> Coordinators:
    """Join the partitions of `__transaction_state`."""
    by_id: dict[str | bytes, TransactionState] = {}
    by_producer: dict[int, TransactionState] = {}
    for log in logs.values():
        for state in log.states:
            by_id[state.transactional_id] = state
            for producer in (state.previous_producer_id, state.next_producer_id, state.producer_id):
                if producer >= 0:
                    by_producer[producer] = state
    return Coordinators(
        topic=topic,
        by_id=by_id,
        by_producer=by_producer,
        history=history or {},
        stopped=stopped,
        brokers=brokers,
        newest_ms=max((log.newest_ms for log in logs.values()), default=-1),
        unclean=unclean or {},
        epochs={number: max(log.last_epoch, (epochs or {}).get(number, -1)) for number, log in logs.items()},
    )
