"""Elections with ISR, ELR and last known leader; the assignment of replicas."""

import pytest

from kforensics.damage import Absent
from kforensics.errors import UsageError
from kforensics.protocol.election import (
    ControllerKind,
    ElectionKind,
    PartitionRegistration,
    RecoveryState,
    assign_in_turn,
    assign_replicas,
    elect,
    elect_preferred,
    isr_with,
    isr_without,
)


def partition(isr, *, leader=1, **more):
    return PartitionRegistration(replicas=(1, 2, 3), isr=isr, leader=leader, leader_epoch=4, **more)


def test_the_first_live_replica_of_the_assignment_in_the_isr_leads():
    outcome = elect(partition((3, 2, 1)), {2, 3}, unclean_allowed=True)
    assert outcome.kind is ElectionKind.CLEAN
    assert (outcome.partition.leader, outcome.partition.leader_epoch, outcome.partition.isr) == (2, 5, (3, 2, 1))
    old = elect(partition((3, 2, 1)), {2, 3}, unclean_allowed=True, controller=ControllerKind.ZOOKEEPER)
    assert old.partition.isr == (3, 2)


def test_a_leader_that_lives_stays():
    before = partition((1, 2))
    assert elect(before, {1, 2}, unclean_allowed=False).partition is before


def test_waiting_or_taking_who_lives():
    waiting = elect(partition((1,)), {2, 3}, unclean_allowed=False)
    assert waiting.kind is ElectionKind.NONE
    assert waiting.partition.leader is Absent.NOT_APPLICABLE
    assert waiting.partition.isr == (1,)
    again = elect(waiting.partition, {2, 3}, unclean_allowed=False)
    assert again.kind is ElectionKind.UNCHANGED
    back = elect(waiting.partition, {1, 2, 3}, unclean_allowed=False)
    assert (back.kind, back.partition.leader) == (ElectionKind.CLEAN, 1)
    unclean = elect(partition((1,)), {2, 3}, unclean_allowed=True)
    assert unclean.kind is ElectionKind.UNCLEAN
    assert (unclean.partition.leader, unclean.partition.isr) == (2, (2,))
    assert unclean.partition.recovery_state is RecoveryState.RECOVERING


def test_preferred():
    outcome = elect_preferred(partition((1, 2), leader=2), {1, 2})
    assert (outcome.kind, outcome.partition.leader) == (ElectionKind.PREFERRED, 1)
    assert elect_preferred(partition((2,), leader=2), {1, 2}).kind is ElectionKind.UNCHANGED
    assert elect_preferred(partition((1, 2)), {1, 2}).kind is ElectionKind.UNCHANGED


def test_eligible_leader_replicas():
    shrunk = isr_without(partition((1, 2, 3)), {3}, min_insync_replicas=2, uses_elr=True)
    assert (shrunk.isr, shrunk.eligible_leader_replicas) == ((1, 2), ())
    lower = isr_without(shrunk, {2}, min_insync_replicas=2, uses_elr=True)
    assert (lower.isr, lower.eligible_leader_replicas) == ((1,), (2,))
    empty = isr_without(lower, {1}, min_insync_replicas=2, uses_elr=True)
    assert (empty.isr, empty.eligible_leader_replicas, empty.last_known_leader_replicas) == ((), (2, 1), (1,))
    elected = elect(empty, {2, 3}, unclean_allowed=False, uses_elr=True)
    assert (elected.kind, elected.partition.leader) == (ElectionKind.ELIGIBLE, 2)
    assert (elected.partition.isr, elected.partition.eligible_leader_replicas) == ((2,), (1,))
    joined = isr_with(elected.partition, 3, min_insync_replicas=2, uses_elr=True)
    assert (joined.isr, joined.eligible_leader_replicas) == ((2, 3), ())


def test_the_last_known_leader_is_an_unclean_choice():
    alone = isr_without(partition((1,)), {1}, min_insync_replicas=2, uses_elr=True, unclean_shutdown={1})
    assert (alone.isr, alone.eligible_leader_replicas, alone.last_known_leader_replicas) == ((), (), (1,))
    outcome = elect(alone, {1, 2}, unclean_allowed=False, uses_elr=True)
    assert outcome.kind is ElectionKind.LAST_KNOWN
    assert elect(alone, {2}, unclean_allowed=False, uses_elr=True).kind is ElectionKind.NONE


@pytest.mark.parametrize("known", [{"eligible_leader_replicas": (1,)}, {"last_known_leader_replicas": (1,)}])
def test_an_eligible_or_last_known_replica_that_is_down_does_not_lead(known):
    before = partition((), leader=Absent.NOT_APPLICABLE, **known)
    assert elect(before, {2, 3}, unclean_allowed=False, uses_elr=True).kind is ElectionKind.UNCHANGED
    outcome = elect(before, {2, 3}, unclean_allowed=True, uses_elr=True)
    assert (outcome.kind, outcome.partition.leader) == (ElectionKind.UNCLEAN, 2)
    assert elect(before, (), unclean_allowed=True, uses_elr=True).kind is ElectionKind.UNCHANGED


def test_without_elr_the_last_member_stays():
    before = partition((1,))
    assert isr_without(before, {1}) is before
    two = isr_without(partition((1, 2)), {1, 2})
    assert (two.isr, two.leader_epoch, two.partition_epoch) == ((2,), 4, 1)
    assert isr_with(before, 1) is before
    assert isr_with(before, 2).isr == (1, 2)


def test_assignment_in_turn():
    assert assign_in_turn([1, 2, 3], 4, 2) == ((1, 2), (2, 3), (3, 1), (1, 2))
    assert assign_in_turn([7, 5], 3, 1) == ((5,), (7,), (5,))
    with pytest.raises(UsageError, match="replication factor of 0"):
        assign_in_turn([1], 1, 0)


def test_assignment():
    assert assign_replicas([1, 2, 3], 4, 2) == ((1, 2), (2, 3), (3, 1), (1, 3))
    assert assign_replicas([5], 2, 1) == ((5,), (5,))
    assert assign_replicas(range(3), 1, 3, start_index=1, shift=1) == ((1, 0, 2),)


def test_assignment_across_racks():
    racks = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}
    assert assign_replicas(range(6), 12, 3, racks=racks) == (
        (0, 3, 1),
        (3, 1, 5),
        (1, 5, 4),
        (5, 4, 2),
        (4, 2, 0),
        (2, 0, 3),
        (0, 4, 2),
        (3, 2, 0),
        (1, 0, 3),
        (5, 3, 1),
        (4, 1, 5),
        (2, 5, 4),
    )


def test_a_rack_of_many_waits_until_every_rack_has_a_replica():
    racks = {0: "a", 1: "a", 2: "a", 3: "b"}
    assignment = assign_replicas(range(4), 8, 2, racks=racks)
    assert all(3 in replicas for replicas in assignment)
    assert {len(set(replicas)) for replicas in assignment} == {2}


def test_assignment_refuses_what_cannot_be():
    with pytest.raises(UsageError, match="replication factor of 4"):
        assign_replicas([1, 2, 3], 1, 4)
    with pytest.raises(UsageError, match="a rack"):
        assign_replicas([1, 2], 1, 2, racks={1: "a"})
