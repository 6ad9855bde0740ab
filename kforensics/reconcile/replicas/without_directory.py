"""A partition of which no directory is among the inputs, and the assigned brokers that hold none though they are given."""

from collections.abc import Collection

from kforensics.damage import Absent
from kforensics.reconcile.observed.facts import ClusterFacts, Leadership
from kforensics.reconcile.replicas.directories import EmptiedReplica, Given, beside, where_is
from kforensics.reconcile.replicas.report import PartitionReport, Verdict
from kforensics.units import TopicPartition


def partition_without_replicas(
    partition: TopicPartition, state: Leadership | None, *, facts: ClusterFacts, given: Given, is_stopped: bool = False
) -> PartitionReport:
    """Return a partition that the metadata or a checkpoint names and of which no directory is among the inputs.

    Args:
        state: its newest recorded state, where there is one.
        facts: what the metadata says of brokers.
        given: brokers whose log directories are among the inputs.
        is_stopped: no broker ran when the directories were copied.
    """
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
        electable=isr if isinstance(isr, Absent) or state is None else isr | state.eligible,
        emptied=emptied,
        is_stopped=is_stopped,
    )


def directories_of(
    partition: TopicPartition, state: Leadership, holders: Collection[int | Absent], given: Given, facts: ClusterFacts
) -> tuple[tuple[EmptiedReplica, ...], tuple[int, ...]]:
    """Return the assigned brokers that hold no directory though they are given, and those whose directory is not among the inputs.

    Args:
        holders: the brokers that hold a directory of it.
        given: brokers whose log directories are among the inputs.
        facts: what the metadata says of brokers.
    """
    emptied: list[EmptiedReplica] = []
    elsewhere: list[int] = []
    electable = frozenset() if isinstance(state.isr, Absent) else state.isr | state.eligible
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


def possibly_emptied(
    partition: TopicPartition, holders: Collection[int | Absent], given: Given
) -> tuple[EmptiedReplica, ...]:
    """Return the brokers that hold no directory of a partition and may have lost one, where no metadata tells its assignment: their checkpoints name it, or an empty directory lies beside their log directories.

    Args:
        holders: the brokers that hold a directory of it.
        given: brokers whose log directories are among the inputs.
    """
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
                else f"its checkpoints name it up to offset {named.value} and it holds no directory of it",
                is_electable=False,
                is_sole=False,
                is_assigned=named is not None,
                named=named,
            )
        )
    return tuple(found)
