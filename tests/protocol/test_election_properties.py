"""Elections and the ISR in every state that three replicas can be in."""

from itertools import chain, combinations, product

from kforensics.damage import Absent
from kforensics.protocol.election import (
    ControllerKind,
    ElectionKind,
    PartitionRegistration,
    elect,
    elect_preferred,
    isr_with,
    isr_without,
)

REPLICAS = (2, 1, 3)
SUBSETS = tuple(chain.from_iterable(combinations(REPLICAS, size) for size in range(4)))
NO_LEADER = Absent.NOT_APPLICABLE
LEADERS: tuple[int | Absent, ...] = (NO_LEADER, *REPLICAS)
ALONE = {ElectionKind.ELIGIBLE, ElectionKind.LAST_KNOWN, ElectionKind.UNCLEAN}


def partitions():
    for isr, eligible, leader, last_known in product(SUBSETS, SUBSETS, LEADERS, ((), (1,), (1, 3))):
        if not set(isr) & set(eligible):
            yield PartitionRegistration(
                replicas=REPLICAS,
                isr=isr,
                leader=leader,
                leader_epoch=7,
                eligible_leader_replicas=eligible,
                last_known_leader_replicas=last_known,
            )


def first_of(*conditions):
    """The first replica of the assignment that is in all of them."""
    return next((replica for replica in REPLICAS if all(replica in members for members in conditions)), None)


def test_who_is_elected():
    for before, live, uses_elr, unclean in product(partitions(), SUBSETS, (False, True), (False, True)):
        outcome = elect(before, live, unclean_allowed=unclean, uses_elr=uses_elr)
        after, kind = outcome.partition, outcome.kind
        in_sync = first_of(live, before.isr)
        eligible = first_of(live, before.eligible_leader_replicas) if uses_elr else None
        last = before.last_known_leader_replicas
        is_last = uses_elr and not before.eligible_leader_replicas and len(last) == 1 and last[0] in live
        expected = next(
            choice
            for choice in (
                (ElectionKind.UNCHANGED, before.leader if before.leader in set(live) & set(before.isr) else None),
                (ElectionKind.CLEAN, in_sync),
                (ElectionKind.ELIGIBLE, eligible),
                (ElectionKind.LAST_KNOWN, last[0] if is_last else None),
                (ElectionKind.UNCLEAN, first_of(live) if unclean else None),
                (ElectionKind.UNCHANGED if before.leader is NO_LEADER else ElectionKind.NONE, NO_LEADER),
            )
            if choice[1] is not None
        )
        assert (kind, after.leader) == expected
        assert after.leader_epoch == 7 + (kind is not ElectionKind.UNCHANGED)
        assert after.isr == ((after.leader,) if kind in ALONE else before.isr)
        assert kind not in ALONE or after.leader not in after.eligible_leader_replicas


def test_an_older_controller_takes_the_dead_out_of_the_isr_when_it_elects():
    for before, live in product(partitions(), SUBSETS):
        outcome = elect(before, live, unclean_allowed=False, controller=ControllerKind.ZOOKEEPER)
        if outcome.kind is ElectionKind.CLEAN:
            assert set(outcome.partition.isr) == set(before.isr) & set(live)


def test_the_preferred_leader_lives_and_is_in_sync():
    for before, live in product(partitions(), SUBSETS):
        outcome = elect_preferred(before, live)
        may = before.leader != REPLICAS[0] and REPLICAS[0] in live and REPLICAS[0] in before.isr
        assert outcome.kind is (ElectionKind.PREFERRED if may else ElectionKind.UNCHANGED)
        assert outcome.partition.leader == (REPLICAS[0] if may else before.leader)


def test_the_isr_with_and_without():
    for before, changed, needed in product(partitions(), SUBSETS, (1, 2, 3, 4)):
        isr, old_elr = set(before.isr), set(before.eligible_leader_replicas)
        lost = set(changed[:1])
        left = isr_without(before, changed, min_insync_replicas=needed, uses_elr=True, unclean_shutdown=lost)
        assert set(left.isr) == isr - set(changed)
        if left is not before:
            is_enough = len(left.isr) >= min(needed, len(REPLICAS))
            wanted = set() if is_enough else (old_elr | isr) - set(left.isr) - lost
            assert set(left.eligible_leader_replicas) == wanted
            assert not is_enough or left.last_known_leader_replicas == ()
        kept = isr_without(before, changed)
        assert set(kept.isr) == (isr - set(changed) or set(before.isr[-1:]))
        assert kept.eligible_leader_replicas == before.eligible_leader_replicas
        for joining in changed:
            joined = isr_with(before, joining, min_insync_replicas=needed, uses_elr=True)
            assert set(joined.isr) == isr | {joining}
            if joined is not before:
                is_enough = len(joined.isr) >= min(needed, len(REPLICAS))
                assert set(joined.eligible_leader_replicas) == (set() if is_enough else old_elr - {joining})
