"""A broker that is given and holds no directory of a partition: not among its log directories, or its disk was emptied or exchanged."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from kforensics.evidence.model import CheckpointValue
from kforensics.formats.checkpoint.meta_properties import RESERVED_DIRECTORY_IDS
from kforensics.reconcile.observed.facts import ClusterFacts, Leadership
from kforensics.units import TopicPartition
from kforensics.words import form, listed

Holding = Literal["elsewhere", "emptied", "maybe-emptied"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenBroker:
    """A broker whose log directories are among the inputs."""

    broker_id: int
    directory_ids: frozenset[str]
    """The directory ids of `meta.properties`, since 3.7; empty before."""
    is_empty: bool
    """Whether none of its log directories holds a partition other than the metadata log."""
    is_stopped: bool
    """Whether all of its log directories hold the marker of a clean shutdown."""

    named: Mapping[TopicPartition, CheckpointValue] = field(default_factory=dict)
    """Partitions that its checkpoints name and of which none of its log directories holds a directory."""
    other_case: frozenset[TopicPartition] = frozenset()
    """Partitions that its checkpoints name and whose directory may be one that differs from it in case only."""
    empty_beside: tuple[str, ...] = ()
    """Empty directories beside its log directories: each may be a log directory whose disk was emptied, exchanged or not mounted."""


class EmptiedReplica(NamedTuple):
    """A replica that should be on a broker that is given, and is not."""

    broker_id: int
    is_certain: bool
    reason: str
    is_electable: bool
    """Its broker is in the ISR or an eligible leader replica: it can lead with an empty log."""
    is_sole: bool
    """It is the whole ISR."""
    is_assigned: bool = True
    """An input shows that it is assigned to its broker; else the broker is given, and one of its log directories may be the one that held it."""
    named: CheckpointValue | None = None
    """The checkpoint that names the partition on that broker, where one does."""


def where_is(
    broker: GivenBroker, partition: TopicPartition, state: Leadership, facts: ClusterFacts
) -> tuple[Holding, str]:
    """Return what it means that a broker of the assignment holds no directory of the partition.

    Args:
        facts: what the metadata says of the broker.

    Returns:
        `elsewhere` where a log directory of it is not among the inputs or its disk may not tell case apart, `emptied` where a disk was exchanged or emptied, and why.
    """
    named = broker.named.get(partition)
    if named is not None:
        return "emptied", f"its checkpoints name it up to offset {named.value} and it holds no directory of it"
    if partition in broker.other_case:
        return "elsewhere", ""
    registered = facts.registered_directories(broker.broker_id)
    here = broker.directory_ids
    if isinstance(registered, frozenset) and registered and here:
        if here - registered:
            is_empty = "its disk is empty, " if broker.is_empty else ""
            return "emptied", f"{is_empty}its directory.id is not the registered one"
        holder = dict(state.directories).get(broker.broker_id)
        if holder in here:
            return "maybe-emptied", "the log directory that is to hold it is there and does not"
        # A broker that started without a disk registers what is left of it.
        if registered - here or (holder is not None and holder not in RESERVED_DIRECTORY_IDS):
            return "elsewhere", "one of its log directories is not among the inputs"
    if broker.is_empty:
        # A running broker without a partition can be copied before its first one is created.
        return "emptied" if not (isinstance(registered, frozenset) and here) else "maybe-emptied", "its disk is empty"
    return "maybe-emptied", beside(broker) or "its log directories hold no directory of it"


def beside(broker: GivenBroker) -> str:
    """Return what the empty directories beside a broker's log directories may mean, in words; empty where there are none."""
    if not broker.empty_beside:
        return ""
    names, are = listed(broker.empty_beside), form(len(broker.empty_beside), "is", "are")
    return f"{names}, beside its log directories, {are} empty"


Given = Mapping[int, GivenBroker]
"""Brokers by id."""
