"""Where the replicas of a partition should be: its assignment, leaders and racks, and brokers that lack its directory."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kforensics.damage import Absent
from kforensics.protocol.loading.node import is_displaced
from kforensics.reconcile.logs.loaded_log import LoadedLog
from kforensics.reconcile.observed.facts import ClusterFacts, Given, Leadership, electable_of
from kforensics.reconcile.replicas.report import EmptiedReplica, PartitionReport, Verdict, beside, where_is
from kforensics.units import METADATA_TOPICS, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """One partition: who should hold it, who does, who leads."""

    assigned: tuple[int, ...] | Absent
    """The assignment from the metadata, the preferred leader first."""
    isr: tuple[int, ...] | Absent
    holders: tuple[int, ...]
    """Brokers with a live directory of it."""
    missing: tuple[int, ...]
    """Assigned, their disks were looked at, and they hold nothing of it."""
    excess: tuple[int, ...]
    """They hold a live directory of it and are not assigned."""
    is_offline: bool
    is_under_replicated: bool
    shares_rack: bool
    """Whether two replicas are in one rack though there are racks enough for all."""
    unclean_elections: int
    """The number of unclean elections that the metadata records."""


def place_partition(
    report: PartitionReport,
    *,
    facts: ClusterFacts,
    audited: Collection[int],
    racks: Mapping[int, str],
    stated: Sequence[int] = (),
) -> Placement:
    """Return the placement of a partition that was judged."""
    history = facts.leaderships(report.partition, report.topic_id)
    # Of a deleted topic no replica is expected anywhere.
    newest: Leadership | None = history[-1] if history and not report.is_deleted else None
    holders = tuple(
        sorted(
            {
                broker
                for one in report.replicas
                if one.view.replica.is_live
                and one.verdict != "different-topic"
                and not isinstance(broker := one.view.replica.broker_id, Absent)
            }
        )
    )
    assigned: tuple[int, ...] | Absent = Absent.UNKNOWN if newest is None else newest.replicas
    if isinstance(assigned, Absent) and stated and not report.is_deleted:
        assigned = tuple(stated)
    isr: tuple[int, ...] | Absent = (
        Absent.UNKNOWN if newest is None or isinstance(newest.isr, Absent) else tuple(sorted(newest.isr))
    )
    # Every broker keeps a copy of the metadata log, whoever its voters are.
    known = () if isinstance(assigned, Absent) or report.partition.topic in METADATA_TOPICS else assigned
    return Placement(
        assigned=assigned,
        isr=isr,
        holders=holders,
        missing=tuple(sorted(set(known) & set(audited) - set(holders))),
        excess=tuple(sorted(set(holders) - set(known))) if known else (),
        is_offline=newest is not None and newest.leader is Absent.NOT_APPLICABLE,
        is_under_replicated=not isinstance(isr, Absent) and len(isr) < len(known),
        shares_rack=report.partition.topic not in METADATA_TOPICS
        and not report.is_deleted
        and shares_rack(known or holders, racks),
        unclean_elections=sum(state.unclean for state in history),
    )


def shares_rack(replicas: Sequence[int], racks: Mapping[int, str]) -> bool:
    """Whether two replicas are in one rack though the known racks are enough for all of them; no where a rack is unknown."""
    if any(broker not in racks for broker in replicas):
        return False
    used = Counter(racks[broker] for broker in replicas)
    return len(used) < min(len(replicas), len(set(racks.values())))


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderSpread:
    """The spread of the leaders of partitions over the brokers."""

    most: int
    fewest: int
    mean: float
    by_broker: Mapping[int, int]

    @property
    def is_skewed(self) -> bool:
        """Whether one broker leads more than 1.5 times its share, and at least ten partitions more than that share."""
        return self.most > 1.5 * self.mean and self.most - self.mean >= 10


def leader_spread(leaders: Sequence[int], brokers: Collection[int]) -> LeaderSpread:
    """Return the spread of leaders over the brokers that could lead; one that leads nothing counts with 0."""
    counts = Counter(leaders)
    by_broker = {broker: counts.get(broker, 0) for broker in sorted({*brokers, *counts})}
    numbers = list(by_broker.values()) or [0]
    return LeaderSpread(most=max(numbers), fewest=min(numbers), mean=sum(numbers) / len(numbers), by_broker=by_broker)


def partition_without_replicas(
    partition: TopicPartition, state: Leadership | None, *, facts: ClusterFacts, given: Given, is_stopped: bool = False
) -> PartitionReport:
    """Return a partition that the metadata or a checkpoint names and of which no directory is among the inputs."""
    emptied: tuple[EmptiedReplica, ...] = possibly_emptied(partition, frozenset(), given)
    elsewhere: tuple[int, ...] = ()
    if state is not None:
        emptied, elsewhere = directories_of(partition, state, frozenset(), given, facts)
    isr = Absent.UNKNOWN if state is None else state.isr
    return PartitionReport(
        partition=partition,
        topic_id=Absent.UNKNOWN,
        leader=None,
        verdict=Verdict.UNREADABLE,
        replicas=(),
        what_if=(),
        missing_replicas=elsewhere,
        without_disk=frozenset(given) & frozenset(elsewhere),
        assigned=Absent.UNKNOWN if state is None else state.replicas,
        isr=isr,
        electable=isr if isinstance(isr, Absent) or state is None else electable_of(state),
        emptied=emptied,
        is_stopped=is_stopped,
    )


def directories_of(
    partition: TopicPartition, state: Leadership, holders: Collection[int | Absent], given: Given, facts: ClusterFacts
) -> tuple[tuple[EmptiedReplica, ...], tuple[int, ...]]:
    """Return the assigned brokers that hold no directory though they are given, and those whose directory is not among the inputs."""
    emptied: list[EmptiedReplica] = []
    elsewhere: list[int] = []
    electable = electable_of(state)
    for broker in () if isinstance(state.replicas, Absent) else state.replicas:
        if broker in holders:
            continue
        one = given.get(broker)
        where, reason = ("elsewhere", "") if one is None else where_is(one, partition, state, facts)
        if one is None or where == "elsewhere":
            elsewhere.append(broker)
            continue
        emptied.append(
            EmptiedReplica(
                broker_id=broker,
                is_certain=where == "emptied",
                reason=reason,
                is_electable=broker in electable,
                is_sole=isinstance(state.isr, frozenset) and state.isr == {broker},
                named=one.named.get(partition),
            )
        )
    return tuple(emptied), tuple(sorted(elsewhere))


def becoming_strays(views: Iterable[LoadedLog], state: Leadership, given: Given) -> Iterator[EmptiedReplica]:
    """Yield the replicas whose directory has no topic id, and whose broker takes it for a stray at its start and begins an empty log."""
    for view in views:
        replica, broker = view.replica, view.replica.broker_id
        if not isinstance(broker, int) or replica.topic_id is not Absent.NOT_WRITTEN or broker not in given:
            continue
        renames = given[broker].renames_unnamed
        if renames is False:
            continue
        yield EmptiedReplica(
            broker_id=broker,
            is_certain=renames is True,
            reason="its directory has no partition.metadata (Kafka 3.7.1 and later renames it to -stray)",
            is_electable=broker in electable_of(state),
            is_sole=isinstance(state.isr, frozenset) and state.isr == {broker},
            place=(replica.input, replica.path),
        )


def displaced_on(views: Iterable[LoadedLog], state: Leadership, given: Given) -> tuple[int, ...]:
    """Return the brokers whose directory of a partition is in another log directory than the metadata says, which is not here."""
    places = dict(state.directories)
    brokers = (view.replica.broker_id for view in views)
    return tuple(
        broker
        for broker in brokers
        if isinstance(broker, int)
        and broker in places
        and (one := given.get(broker)) is not None
        and one.directory_ids
        and is_displaced(places[broker], one.directory_ids)
    )


def possibly_emptied(
    partition: TopicPartition, holders: Collection[int | Absent], given: Given
) -> tuple[EmptiedReplica, ...]:
    """Return the brokers that hold no directory of a partition and may have lost one, where no metadata tells its assignment: their checkpoints name it, or an empty directory lies beside their log directories."""
    found = []
    for broker, one in sorted(given.items()):
        named = one.named.get(partition)
        if broker in holders or (named is None and not one.empty_beside):
            continue
        found.append(
            EmptiedReplica(
                broker_id=broker,
                is_certain=named is not None,
                reason=beside(one)
                if named is None
                else f"checkpoints name it up to offset {named.value}, and no directory of it is there",
                is_electable=False,
                is_sole=False,
                is_assigned=named is not None,
                named=named,
            )
        )
    return tuple(found)
