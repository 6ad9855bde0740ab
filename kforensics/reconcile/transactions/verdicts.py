"""Why a transaction is open: it hangs, it was torn by a truncation, its coordinator will end it, or it is in time (KIP-664, KIP-890); and what ends it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from kforensics.damage import Absent
from kforensics.evidence.coordinators.open_transactions import Marker, OpenTransaction
from kforensics.evidence.coordinators.transaction_log import TransactionLog, TransactionState
from kforensics.evidence.model import Citation
from kforensics.formats.messages.control import ControlType
from kforensics.protocol.coordinators import TRANSACTION_VERSION_2, TransactionStatus, is_late
from kforensics.protocol.versions import KafkaVersion
from kforensics.reconcile.coordinator_topics import CoordinatorTopic
from kforensics.units import TRANSACTIONS_TOPIC, TopicPartition
from kforensics.words import listed

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


Confidence = Literal["proven", "likely", "possible"]


class TransactionVerdict(StrEnum):
    """The reason why a transaction has no end marker in a replica."""

    HANGING = "hanging"
    """No coordinator will ever end it."""
    TORN = "torn"
    """Its marker was written and is not in this replica any more."""
    PREPARED = "prepared"
    """Its outcome is decided, and its coordinator still has to write the marker."""
    IN_TIME = "in-time"
    """Its producer, its coordinator or replication ends it."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerElsewhere:
    """The marker of an open transaction in another copy of the log that holds its first batch, too."""

    marker: Marker
    owner: str
    is_ahead: bool
    """The copy is of now, and this replica will copy the marker from it."""
    is_known: bool
    """The leader is known, so that what `is_ahead` says does not rest on a guess."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The judgement of one open transaction."""

    verdict: TransactionVerdict
    confidence: Confidence
    reason: str
    """One sentence."""
    transactional_id: str | bytes | Absent
    state: TransactionState | None
    coordinator_state: str | Absent
    """As Kafka's tools print it; not written where no coordinator knows the producer."""
    lost_marker: Marker | None = None
    """A marker that ended it, in another copy of the log or in another partition."""
    is_decision_lost: bool = False
    """Its coordinator lost the decision to commit it, and may end it otherwise."""
    lost_since_ms: int | None = None
    """When an unclean election may have taken what its coordinator knew of it; -1 at a time that is not known."""
    citations: tuple[Citation, ...] = ()

    @property
    def holds_back(self) -> bool:
        """Whether nothing but an administrator ends it, as far as that is at least likely: the last stable offset is stuck."""
        return self.verdict in {TransactionVerdict.HANGING, TransactionVerdict.TORN} and self.confidence != "possible"


def judge(
    one: OpenTransaction,
    partition: TopicPartition,
    coordinators: Coordinators,
    *,
    elsewhere: MarkerElsewhere | None,
    markers: Sequence[Marker],
    is_stopped: bool,
    now_ms: int,
    absent_leader: int | None = None,
    without_candidate: str | None = None,
) -> Judgement:
    """Say why a transaction is open in a replica."""
    state = coordinators.by_producer.get(one.producer_id)
    verdict, confidence, reason = _verdict(
        one, partition, coordinators, state, elsewhere=elsewhere, markers=markers, is_stopped=is_stopped, now_ms=now_ms
    )
    committed = coordinators.commits.get(one.producer_id) if elsewhere is None else None
    lost = None if elsewhere is None else elsewhere.marker
    if committed is not None and state is not None and partition in state.partitions:
        verdict, confidence, reason = _decided_elsewhere(*committed, state, coordinators, (verdict, confidence, reason))
        lost = committed[1]
    since = None if state is None else coordinators.lost_since(state.transactional_id, one.first_time_ms)
    if verdict in {TransactionVerdict.HANGING, TransactionVerdict.TORN}:
        doubt = None
        if absent_leader is not None:
            doubt = f"broker {absent_leader} leads {partition}, and its log, which may hold the marker, is not here"
        elif lost is None and without_candidate is not None and verdict is TransactionVerdict.TORN:
            doubt = f"the marker may be in a replica of {partition} that is not here: {without_candidate}"
        elif lost is None and state is not None:
            doubt = _unread(coordinators, state)
        if doubt is not None:
            verdict, confidence, reason = TransactionVerdict.UNKNOWN, "possible", f"{doubt}; by what is here, {reason}"
    cited = [one.citation]
    if state is not None and state.citation is not None:
        cited.append(state.citation)
    if elsewhere is not None:
        cited.append(elsewhere.marker.citation)
    if committed is not None:
        cited.append(committed[1].citation)
    unknown = Absent.NOT_WRITTEN if coordinators.topic.is_complete else Absent.UNKNOWN
    return Judgement(
        verdict=verdict,
        confidence=confidence,
        reason=reason,
        transactional_id=unknown if state is None else state.transactional_id,
        state=state,
        coordinator_state=unknown if state is None else status_name(state.status),
        lost_marker=lost if verdict is TransactionVerdict.TORN else None,
        is_decision_lost=verdict is TransactionVerdict.TORN and committed is not None,
        lost_since_ms=since if verdict is TransactionVerdict.HANGING else None,
        citations=tuple(cited),
    )


_Said = tuple[TransactionVerdict, Confidence, str]


def _verdict(
    one: OpenTransaction,
    partition: TopicPartition,
    coordinators: Coordinators,
    state: TransactionState | None,
    *,
    elsewhere: MarkerElsewhere | None,
    markers: Sequence[Marker],
    is_stopped: bool,
    now_ms: int,
) -> _Said:
    if elsewhere is not None:
        return _ended_elsewhere(elsewhere)
    stopped = is_stopped and coordinators.is_stopped(state)
    if state is None:
        return _unknown_producer(one, coordinators, is_stopped=stopped)
    name = _quoted(state)
    status = TransactionStatus(state.status) if state.status in set(TransactionStatus) else None
    listed_here = partition in state.partitions
    if status is TransactionStatus.ONGOING and listed_here:
        if one.producer_epoch < state.producer_epoch and state.started_ms > one.last_time_ms >= 0:
            return (
                TransactionVerdict.IN_TIME,
                "likely",
                f"it is of an earlier epoch, and {name} has begun another transaction in this partition, whose marker ends both",
            )
        if is_late(started_ms=state.started_ms, timeout_ms=state.timeout_ms, now_ms=now_ms):
            where = f"{coordinators.place_of(state.transactional_id)} has no leader, or its replicas here are older than the log"
            return (
                TransactionVerdict.UNKNOWN,
                "possible",
                f"the coordinator lists it as Ongoing for {name}, and its timeout passed: {where}",
            )
        is_sure = stopped and one.producer_id not in coordinators.partly
        return (
            TransactionVerdict.IN_TIME,
            "proven" if is_sure else "likely",
            f"the coordinator lists it as Ongoing for {name}",
        )
    if status is not None and status.is_prepared and listed_here:
        return (
            TransactionVerdict.PREPARED,
            "proven" if stopped else "likely",
            f"{name} is in {status_name(state.status)}: the marker for this partition is still to be written",
        )
    if status is None:
        return TransactionVerdict.UNKNOWN, "possible", f"{name} is in a state that is not known here: {state.status}"
    return _not_listed(one, partition, coordinators, state, status, markers, is_stopped=stopped)


def _decided_elsewhere(
    partition: TopicPartition, marker: Marker, state: TransactionState, coordinators: Coordinators, before: _Said
) -> _Said:
    """Return what a commit marker in another partition of an unfinished transaction says."""
    where = f"its commit marker is at offset {marker.offset:,} of {partition}"
    if not coordinators.has_lost(state, marker):
        return before[0], before[1], f"{before[2]}; {where}, so that the log of its coordinator here is older than that"
    name, now = _quoted(state), status_name(state.status)
    words = f"{where}, and {name} is in {now}: its coordinator lost the decision, and will abort what is left of it"
    return TransactionVerdict.TORN, "likely", words


def _unread(coordinators: Coordinators, state: TransactionState) -> str | None:
    """Return a clause that says why the newest state of a transactional id may not be here."""
    topic = coordinators.topic
    partition = topic.partition_of(state.transactional_id)
    why = topic.unread.get(partition) if isinstance(partition, int) else None
    return None if why is None else f"{topic.name}-{partition} may hold a newer state of {_quoted(state)}: {why}"


def _ended_elsewhere(elsewhere: MarkerElsewhere) -> _Said:
    marker = elsewhere.marker
    where = f"its {marker.kind.value} marker at offset {marker.offset:,} is in {elsewhere.owner}"
    if elsewhere.is_ahead:
        confidence: Confidence = "proven" if elsewhere.is_known else "likely"
        return TransactionVerdict.IN_TIME, confidence, f"{where}, from which this replica will copy it"
    return TransactionVerdict.TORN, "proven", f"{where}, and not in this log: a truncation took it"


def _unknown_producer(one: OpenTransaction, coordinators: Coordinators, *, is_stopped: bool) -> _Said:
    topic = coordinators.topic
    if topic.is_complete and topic.count:
        return (
            TransactionVerdict.HANGING,
            "proven" if is_stopped else "likely",
            f"no transactional id has producer id {one.producer_id}, so no coordinator will end it",
        )
    if topic.lacks:
        names = listed([str(number) for number in topic.lacks])
        return (
            TransactionVerdict.UNKNOWN,
            "possible",
            f"its coordinator's log may be what is not here as a whole: partition {names} of {topic.name}",
        )
    if topic.count == 0:
        return TransactionVerdict.HANGING, "likely", f"the metadata knows no topic {topic.name}"
    return (
        TransactionVerdict.UNKNOWN,
        "possible",
        f"how many partitions {topic.name} has is not known, and those here don't name the producer",
    )


def _not_listed(
    one: OpenTransaction,
    partition: TopicPartition,
    coordinators: Coordinators,
    state: TransactionState,
    status: TransactionStatus,
    markers: Sequence[Marker],
    *,
    is_stopped: bool,
) -> _Said:
    """Judge a transaction whose coordinator knows the producer and does not have this partition in an unfinished one."""
    sure: Confidence = "proven" if is_stopped else "likely"
    name, now = _quoted(state), status_name(state.status)
    ended = _last_ended(one, partition, coordinators, state)
    if ended is not None:
        if any(marker.time_ms >= ended.started_ms for marker in markers):
            ended_at = f"written after the marker at offset {markers[-1].offset:,} had ended the transaction of {name}, of which its coordinator ({now}) does not know"
            return TransactionVerdict.HANGING, sure, ended_at
        listed_then = _listed_then(ended, partition, coordinators)
        if listed_then is False:
            return (
                TransactionVerdict.HANGING,
                sure,
                f"the transaction of {name} ended without this partition, so no coordinator will end it",
            )
        torn: Confidence = sure if listed_then or _is_of_ended_epoch(one, state) else "likely"
        return (
            TransactionVerdict.TORN,
            torn,
            f"the coordinator says {status_name(ended.status)} for {name}, so a marker was written, and it is not in this log",
        )
    if status is TransactionStatus.ONGOING or status.is_prepared:
        return (
            TransactionVerdict.HANGING,
            sure,
            f"{name} is in {now} and does not list this partition, so its marker will not be written here",
        )
    return (
        TransactionVerdict.HANGING,
        sure,
        f"{name} is in {now}: the coordinator knows of no transaction in this partition",
    )


def _last_ended(
    one: OpenTransaction, partition: TopicPartition, coordinators: Coordinators, state: TransactionState
) -> TransactionState | None:
    """Return the transaction of the id that was complete after these records were written, where one can hold them."""
    states = [known for known in coordinators.history.get(state.transactional_id, ()) if not known.is_removed] or [
        state
    ]
    complete = [
        known
        for known in states
        if known.status in set(TransactionStatus)
        and TransactionStatus(known.status).is_complete
        and known.producer_id in {one.producer_id, state.producer_id}
        and known.producer_epoch >= one.producer_epoch
        and (known.started_ms < 0 or one.first_time_ms <= known.updated_ms)
    ]
    holding = [known for known in complete if _listed_then(known, partition, coordinators) is not False]
    # The earliest that ended after the records: later transactions of the same producer have records of their own.
    return min(holding or complete, key=lambda known: known.updated_ms, default=None)


def _listed_then(ended: TransactionState, partition: TopicPartition, coordinators: Coordinators) -> bool | None:
    """Whether an ended transaction had the partition; none where the states that would show it were compacted away."""
    steps = [
        known
        for known in coordinators.history.get(ended.transactional_id, ())
        if known.started_ms == ended.started_ms >= 0 and known.offset < ended.offset and known.partitions
    ]
    if not steps:
        return None
    return any(partition in known.partitions for known in steps)


def _is_of_ended_epoch(one: OpenTransaction, state: TransactionState) -> bool:
    """Whether the epoch alone shows that its transaction was ended: from transaction version 2 on each has its own."""
    return state.client_version >= TRANSACTION_VERSION_2 and one.producer_epoch < state.producer_epoch


def _quoted(state: TransactionState) -> str:
    name = state.transactional_id
    return name.decode(errors="replace") if isinstance(name, bytes) else name


def is_end(kind: ControlType) -> bool:
    """Whether a control record ends a transaction."""
    return kind in {ControlType.ABORT, ControlType.COMMIT}


START_OFFSET_SINCE = KafkaVersion(3, 0)
"""Since this version brokers find the transaction that begins at an offset by themselves (KIP-664)."""

TOOL = "kafka-transactions.sh --bootstrap-server HOST:PORT abort"


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
                f"{one.first_offset}..{one.last_offset}, which were acknowledged; copy them first (kforensics dump) and produce them again"
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
    where = f"{TOOL} --topic {partition.topic} --partition {partition.partition}"
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
