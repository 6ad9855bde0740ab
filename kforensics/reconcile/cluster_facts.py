"""Leaders, in-sync replicas and restarts out of the metadata log, or out of broker logs where there is none."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from kforensics.damage import Absent
from kforensics.evidence.log_files import LogFile
from kforensics.evidence.metadata_log import MetadataHistory
from kforensics.evidence.metadata_state import BrokerState, PartitionState
from kforensics.formats.log_lines.event import LogEvent, LogEventKind
from kforensics.reconcile.facts import GroupCommit, Leadership
from kforensics.units import TopicPartition

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
MIN_INSYNC_REPLICAS = "min.insync.replicas"

_ISR_CHANGES = frozenset({LogEventKind.ISR_SHRINK, LogEventKind.ISR_EXPAND, LogEventKind.ISR_UPDATED})

Commits = Callable[[TopicPartition], tuple[GroupCommit, ...]]


class KnownFacts:
    """Facts of one cluster, as `reconcile.facts.ClusterFacts` asks for them.

    Args:
        history: the newest metadata log among the inputs, where there is one.
        log_files: broker logs; they tell of leaders where no metadata log does.
        commits: committed consumer offsets of a partition.
    """

    def __init__(self, history: MetadataHistory | None, log_files: Sequence[LogFile], commits: Commits) -> None:
        self._history = history
        self._from_logs: Mapping[TopicPartition, tuple[Leadership, ...]] = leaderships_in_logs(log_files)
        self._commits = commits

    def leaderships(self, partition: TopicPartition, topic_id: str | Absent) -> tuple[Leadership, ...]:
        """Every recorded state of the partition, oldest first."""
        if self._history is not None:
            states: Sequence[PartitionState] = (
                self._history.partition_states(*partition)
                if isinstance(topic_id, Absent)
                else self._history.partitions.get((topic_id, partition.partition), ())
            )
            if states:
                return tuple(
                    _leadership(before, state) for before, state in pairwise((None, *states)) if state is not None
                )
        return self._from_logs.get(partition, ())

    def topic_id(self, topic: str) -> str | Absent:
        """The id under which the metadata log knows the topic now."""
        if self._history is None:
            return Absent.UNKNOWN
        known = [state for state in self._history.topics_named(topic) if isinstance(state.removed, Absent)]
        return known[-1].topic_id if known else Absent.UNKNOWN

    def commits(self, partition: TopicPartition) -> tuple[GroupCommit, ...]:
        """Committed offsets of consumer groups."""
        return self._commits(partition)

    def unclean_restarts(self, broker_id: int) -> tuple[int, ...]:
        """Offsets in the metadata log where the broker came back as a new incarnation without having announced its stop."""
        if self._history is None:
            return ()
        return tuple(_unannounced_restarts(self._history.brokers.get(broker_id, ())))

    def has_metadata_log(self) -> bool:
        """Whether the cluster keeps its metadata in a log of its own (KRaft)."""
        return self._history is not None

    def min_insync_replicas(self, topic: str) -> int:
        """The topic's `min.insync.replicas`, else the cluster's, else Kafka's default of 1."""
        if self._history is None:
            return 1
        value = {
            (change.resource_type, change.resource_name): change.value
            for change in self._history.configs
            if change.name == MIN_INSYNC_REPLICAS
        }
        chosen = value.get((TOPIC_RESOURCE, topic)) or value.get((BROKER_RESOURCE, "")) or "1"
        return int(chosen) if chosen.isdecimal() else 1


def is_unclean(before: PartitionState | None, state: PartitionState) -> bool:
    """Whether the leader of `state` was elected from outside the ISR and the eligible replicas (KIP-704, KIP-966)."""
    if before is None or isinstance(state.leader, Absent) or state.leader_epoch <= before.leader_epoch:
        return False
    if state.is_recovering and not before.is_recovering:
        return True
    return state.leader not in before.isr and state.leader not in before.eligible_leader_replicas


def _leadership(before: PartitionState | None, state: PartitionState) -> Leadership:
    return Leadership(
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=frozenset(state.isr),
        replicas=state.replicas,
        unclean=is_unclean(before, state),
        recorded_at=state.when.offset,
        time_ms=state.when.timestamp_ms,
        citation=state.when.citation,
    )


def _unannounced_restarts(states: Iterable[BrokerState]) -> Iterable[int]:
    before: BrokerState | None = None
    for state in states:
        is_new = before is not None and state.is_registered and state.incarnation_id != before.incarnation_id
        if is_new and before is not None and not before.is_in_controlled_shutdown:
            yield state.when.offset
        before = state


def leaderships_in_logs(log_files: Iterable[LogFile]) -> dict[TopicPartition, tuple[Leadership, ...]]:
    """What leaders wrote into their own logs about their terms and their ISR, by partition, in order of epoch and time."""
    found: dict[TopicPartition, list[Leadership]] = {}
    for log_file in log_files:
        terms: dict[TopicPartition, Leadership] = {}
        for event in log_file.events:
            partition = event.topic_partition
            node = log_file.node_id if isinstance(event.broker_id, Absent) else event.broker_id
            if isinstance(partition, Absent) or isinstance(node, Absent):
                continue
            state = _state_in_log(event, node, terms.get(partition), log_file)
            if state is not None:
                terms[partition] = state
                found.setdefault(partition, []).append(state)
    return {partition: tuple(sorted(states, key=_by_epoch_and_time)) for partition, states in found.items()}


def _by_epoch_and_time(state: Leadership) -> tuple[int, int]:
    return (state.leader_epoch, 0 if isinstance(state.time_ms, Absent) else state.time_ms)


def _state_in_log(event: LogEvent, node: int, term: Leadership | None, log_file: LogFile) -> Leadership | None:
    if event.kind is LogEventKind.LEADER_START:
        epoch = event.number("leader_epoch")
        if isinstance(epoch, Absent):
            return None
    elif event.kind in _ISR_CHANGES and term is not None:
        epoch = term.leader_epoch
    else:
        return None
    isr = event.brokers("isr")
    return Leadership(
        leader=node,
        leader_epoch=epoch,
        isr=Absent.UNKNOWN if isinstance(isr, Absent) else frozenset(isr),
        replicas=Absent.UNKNOWN,
        unclean=False,
        recorded_at=Absent.NOT_APPLICABLE,
        time_ms=event.time_ms,
        citation=log_file.cite(event),
    )
