"""The replicas of a partition: their assignment, what they make committed and readable, and elections of leaders, clean, preferred and unclean, with ELR (KIP-966).

`AdminUtils.assignReplicasToBrokers`; `PartitionLeaderElectionAlgorithms` and `PartitionStateMachine` for ZooKeeper, `PartitionChangeBuilder` for KRaft.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum

from kforensics.damage import Absent
from kforensics.errors import UsageError


def assign_in_turn(
    broker_ids: Collection[int], partitions: int, replication_factor: int
) -> tuple[tuple[int, ...], ...]:
    """Assign the replicas of each partition by the plain rule: replica j of partition i is on broker (i + j) mod n."""
    brokers = _enough_brokers(broker_ids, replication_factor)
    return tuple(
        tuple(brokers[(partition + turn) % len(brokers)] for turn in range(replication_factor))
        for partition in range(partitions)
    )


def assign_replicas(
    broker_ids: Collection[int],
    partitions: int,
    replication_factor: int,
    *,
    start_index: int = 0,
    shift: int = 0,
    racks: Mapping[int, str] | None = None,
) -> tuple[tuple[int, ...], ...]:
    """Assign the replicas of each partition as a controller does, the preferred leader first (`AdminUtils.assignReplicasToBrokers`).

    The assignment rotates over the brokers as `assign_in_turn` does, but starts at a random `start_index` and moves the followers by a
    `shift` that grows by one with every n partitions; with racks the brokers are first arranged so that neighbours are
    in different racks, and a rack or broker that is already used is skipped.

    Args:
        start_index: the place of the first preferred leader among the brokers; a controller draws it.
        shift: how far the first followers are moved; a controller draws it too.
        racks: the rack of every broker; None, or an empty mapping, where racks do not count.
    """
    brokers = _enough_brokers(broker_ids, replication_factor)
    rack_of = dict(racks) if racks else {broker: str(broker) for broker in brokers}
    if any(broker not in rack_of for broker in brokers):
        raise UsageError("either every broker has a rack, or none")
    arranged = _alternate_racks(brokers, rack_of) if racks else brokers
    rack_count = len({rack_of[broker] for broker in brokers}) if racks else 1
    assignment = []
    for partition in range(partitions):
        if partition and partition % len(arranged) == 0:
            shift += 1
        first = (partition + start_index) % len(arranged)
        chosen = [arranged[first]]
        turn = 0
        while len(chosen) < replication_factor:
            broker = arranged[(first + 1 + (shift * rack_count + turn) % (len(arranged) - 1)) % len(arranged)]
            used_racks = {rack_of[member] for member in chosen}
            rack_is_free = not racks or rack_of[broker] not in used_racks or len(used_racks) == rack_count
            if rack_is_free and broker not in chosen:
                chosen.append(broker)
            turn += 1
        assignment.append(tuple(chosen))
    return tuple(assignment)


def _enough_brokers(broker_ids: Collection[int], replication_factor: int) -> list[int]:
    brokers = sorted(broker_ids)
    if not 0 < replication_factor <= len(brokers):
        raise UsageError(
            f"a replication factor of {replication_factor} needs as many brokers, there are {len(brokers)}"
        )
    return brokers


def _alternate_racks(brokers: list[int], rack_of: Mapping[int, str]) -> list[int]:
    racks = sorted({rack_of[broker] for broker in brokers})
    by_rack = [[broker for broker in brokers if rack_of[broker] == rack] for rack in racks]
    deepest = max(len(members) for members in by_rack)
    return [members[depth] for depth in range(deepest) for members in by_rack if depth < len(members)]


class ControllerKind(StrEnum):
    """The kind of the controller that elects."""

    ZOOKEEPER = "zookeeper"
    KRAFT = "kraft"


class ElectionKind(StrEnum):
    """The kind of election that made a replica leader."""

    UNCHANGED = "unchanged"
    CLEAN = "clean"
    PREFERRED = "preferred"
    ELIGIBLE = "eligible-leader-replica"
    """Clean by KIP-966: the ISR was empty, a member of the ELR holds everything committed."""
    LAST_KNOWN = "last-known-leader"
    """Unclean by KIP-966: ISR and ELR were empty, and the last known leader returned."""
    UNCLEAN = "unclean"
    NONE = "none"
    """The partition stays without a leader until a member of the ISR returns."""


class RecoveryState(StrEnum):
    """Whether a leader may have lost records (KIP-704, metadata.version 3.2-IV0)."""

    RECOVERED = "recovered"
    RECOVERING = "recovering"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRegistration:
    """The controller's state of one partition."""

    replicas: tuple[int, ...]
    """The assignment, the preferred leader first."""
    isr: tuple[int, ...]
    leader: int | Absent
    leader_epoch: int
    partition_epoch: int = 0
    """The partition epoch, which rises with every change in KRaft, as zkVersion does in ZooKeeper."""
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_leader_replicas: tuple[int, ...] = ()
    recovery_state: RecoveryState = RecoveryState.RECOVERED


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionOutcome:
    """The partition after an election, and the kind of the election."""

    kind: ElectionKind
    partition: PartitionRegistration


def elect(
    partition: PartitionRegistration,
    live: Collection[int],
    *,
    unclean_allowed: bool,
    controller: ControllerKind = ControllerKind.KRAFT,
    uses_elr: bool = False,
) -> ElectionOutcome:
    """Elect a leader when the current one is offline: the first live replica of the assignment that is in the ISR.

    Where no member of the ISR lives: a member of the ELR, else the last known leader (both KIP-966), else, where
    unclean election is allowed (the default until 0.10.2), the first live replica, else none.

    Args:
        controller: who elects; KRaft and ZooKeeper differ in what becomes of the ISR.

    Returns:
        The partition after the election, unchanged where its leader may stay or where it had none and gets none.
    """
    if partition.leader in live and partition.leader in partition.isr:
        return ElectionOutcome(kind=ElectionKind.UNCHANGED, partition=partition)
    for replica in partition.replicas:
        if replica in live and replica in partition.isr:
            return _elected(partition, replica, ElectionKind.CLEAN, live, controller)
    if uses_elr:
        for replica in partition.replicas:
            if replica in live and replica in partition.eligible_leader_replicas:
                return _elected(partition, replica, ElectionKind.ELIGIBLE, live, controller)
        last_known = partition.last_known_leader_replicas
        if not partition.eligible_leader_replicas and len(last_known) == 1 and last_known[0] in live:
            return _elected(partition, last_known[0], ElectionKind.LAST_KNOWN, live, controller)
    if unclean_allowed:
        for replica in partition.replicas:
            if replica in live:
                return _elected(partition, replica, ElectionKind.UNCLEAN, live, controller)
    if partition.leader is Absent.NOT_APPLICABLE:
        return ElectionOutcome(kind=ElectionKind.UNCHANGED, partition=partition)
    leaderless = replace(
        partition,
        leader=Absent.NOT_APPLICABLE,
        leader_epoch=partition.leader_epoch + 1,
        partition_epoch=partition.partition_epoch + 1,
    )
    return ElectionOutcome(kind=ElectionKind.NONE, partition=leaderless)


def elect_preferred(
    partition: PartitionRegistration, live: Collection[int], *, controller: ControllerKind = ControllerKind.KRAFT
) -> ElectionOutcome:
    """Elect the preferred leader, the first replica of the assignment, if it is live and in the ISR; unchanged where it leads already or can't be elected."""
    preferred = partition.replicas[0]
    if partition.leader == preferred or preferred not in live or preferred not in partition.isr:
        return ElectionOutcome(kind=ElectionKind.UNCHANGED, partition=partition)
    return _elected(partition, preferred, ElectionKind.PREFERRED, live, controller)


def isr_without(
    partition: PartitionRegistration,
    leaving: Collection[int],
    *,
    min_insync_replicas: int = 1,
    uses_elr: bool = False,
    unclean_shutdown: Collection[int] = (),
) -> PartitionRegistration:
    """Return the partition after members left the ISR.

    Without ELR the last member stays in the ISR although it is offline: only it holds all committed records.
    """
    isr = tuple(replica for replica in partition.isr if replica not in leaving)
    if not isr and not uses_elr:
        isr = partition.isr[-1:]
    if isr == partition.isr:
        return partition
    eligible, last_known = partition.eligible_leader_replicas, partition.last_known_leader_replicas
    if uses_elr:
        if _is_enough(partition, isr, min_insync_replicas):
            eligible = last_known = ()
        else:
            candidates = (*eligible, *(replica for replica in partition.isr if replica not in isr))
            eligible = tuple(dict.fromkeys(r for r in candidates if r not in unclean_shutdown and r not in isr))
            if not isr and not isinstance(partition.leader, Absent):
                last_known = (partition.leader,)
    return replace(
        partition,
        isr=isr,
        eligible_leader_replicas=eligible,
        last_known_leader_replicas=last_known,
        partition_epoch=partition.partition_epoch + 1,
    )


def isr_with(
    partition: PartitionRegistration, joining: int, *, min_insync_replicas: int = 1, uses_elr: bool = False
) -> PartitionRegistration:
    """Return the partition after a replica joined the ISR, which stays in the order of the assignment; at min.insync.replicas the ELR is emptied (KIP-966)."""
    if joining in partition.isr:
        return partition
    isr = tuple(replica for replica in partition.replicas if replica in partition.isr or replica == joining)
    enough = uses_elr and _is_enough(partition, isr, min_insync_replicas)
    eligible = () if enough else tuple(r for r in partition.eligible_leader_replicas if r != joining)
    last_known = () if enough else tuple(r for r in partition.last_known_leader_replicas if r != joining)
    return replace(
        partition,
        isr=isr,
        eligible_leader_replicas=eligible,
        last_known_leader_replicas=last_known,
        partition_epoch=partition.partition_epoch + 1,
    )


def _is_enough(partition: PartitionRegistration, isr: Sequence[int], min_insync_replicas: int) -> bool:
    """Return whether the ISR can commit, so that no ELR is kept beside it (`PartitionChangeBuilder.populateTargetElr`)."""
    return len(isr) >= min(min_insync_replicas, len(partition.replicas))


def _elected(
    partition: PartitionRegistration,
    leader: int,
    kind: ElectionKind,
    live: Collection[int],
    controller: ControllerKind,
) -> ElectionOutcome:
    isr, eligible = partition.isr, partition.eligible_leader_replicas
    if kind in {ElectionKind.ELIGIBLE, ElectionKind.LAST_KNOWN, ElectionKind.UNCLEAN}:
        isr = (leader,)
        eligible = tuple(replica for replica in eligible if replica != leader)
    elif controller is ControllerKind.ZOOKEEPER and kind is ElectionKind.CLEAN:
        # KRaft removes brokers from the ISR when they are fenced, ZooKeeper's controller when it elects.
        isr = tuple(replica for replica in isr if replica in live)
    loses = kind in {ElectionKind.UNCLEAN, ElectionKind.LAST_KNOWN} and controller is ControllerKind.KRAFT
    return ElectionOutcome(
        kind=kind,
        partition=replace(
            partition,
            leader=leader,
            isr=isr,
            leader_epoch=partition.leader_epoch + 1,
            partition_epoch=partition.partition_epoch + 1,
            eligible_leader_replicas=() if kind is ElectionKind.UNCLEAN else eligible,
            last_known_leader_replicas=() if loses else partition.last_known_leader_replicas,
            recovery_state=RecoveryState.RECOVERING if loses else RecoveryState.RECOVERED,
        ),
    )


class Acks(IntEnum):
    """The acknowledgements that a producer waits for."""

    NONE = 0
    LEADER = 1
    ALL = -1


def leader_high_watermark(
    high_watermark: int,
    log_end_offsets: Iterable[int],
    *,
    isr_size: int,
    min_insync_replicas: int = 1,
    strict_min_isr: bool = True,
) -> int:
    """Return the leader's high watermark: the lowest log end offset of the ISR with the leader, and never lower than before.

    Since 3.7.0 it stays where it is while the ISR is smaller than min.insync.replicas (`strict_min_isr`, KIP-966); up
    to 3.6 an ISR of one advanced it alone. `Partition.maybeIncrementLeaderHW`.

    Args:
        log_end_offsets: those of the ISR, the leader's own included; without any the high watermark stays.
    """
    if strict_min_isr and isr_size < min_insync_replicas:
        return high_watermark
    return max(high_watermark, min(log_end_offsets, default=high_watermark))


def follower_high_watermark(log_end_offset: int, leader_high_watermark_in_answer: int) -> int:
    """Return a follower's high watermark after it appended what a fetch brought: the leader's from the response, at most its own log end offset."""
    return min(log_end_offset, leader_high_watermark_in_answer)


def may_join_isr(
    follower_log_end_offset: int, high_watermark: int, leader_epoch_start_offset: int, *, needs_epoch_start: bool
) -> bool:
    """Return whether a follower may join the ISR: it has reached the high watermark and, since KAFKA-7128 (2.0.1, 2.1.0), the start of the leader's epoch."""
    reached_epoch = follower_log_end_offset >= leader_epoch_start_offset or not needs_epoch_start
    return follower_log_end_offset >= high_watermark and reached_epoch


def is_in_sync_by_time(*, lag_ms: int, lag_time_max_ms: int) -> bool:
    """Return whether a follower has fetched up to the leader's log end offset within `replica.lag.time.max.ms` (the only rule since 0.9)."""
    return lag_ms <= lag_time_max_ms


def is_in_sync_by_messages(*, lag_messages: int, lag_max_messages: int) -> bool:
    """Return whether a follower is in sync by `replica.lag.max.messages` (0.8 only), which a burst of writes removes although it keeps up."""
    return lag_messages <= lag_max_messages


def accepts_write(acks: Acks, *, isr_size: int, min_insync_replicas: int) -> bool:
    """Return whether a leader accepts a write: with acks=all and an ISR below min.insync.replicas it answers NOT_ENOUGH_REPLICAS."""
    return acks is not Acks.ALL or isr_size >= min_insync_replicas


def is_acknowledged(acks: Acks, last_offset: int, *, leader_log_end_offset: int, high_watermark: int) -> bool:
    """Return whether the producer has got the acknowledgement of its record at `last_offset` (`DelayedProduce`)."""
    match acks:
        case Acks.NONE:
            return False
        case Acks.LEADER:
            return last_offset < leader_log_end_offset
        case Acks.ALL:  # pragma: no branch - every member is named
            return last_offset < high_watermark


def last_stable_offset(high_watermark: int, first_open_transaction_offset: int | Absent) -> int:
    """Return the last stable offset: the first offset of the oldest open transaction, at most the high watermark (KIP-98)."""
    if isinstance(first_open_transaction_offset, Absent):
        return high_watermark
    return min(high_watermark, first_open_transaction_offset)
