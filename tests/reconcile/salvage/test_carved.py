"""Chains of batches put together into logs: what is proven, what is likely, what is neither."""

from kforensics.commands.salvaging.carving import DAY_MS, group_chains
from kforensics.evidence.carving import Chain
from kforensics.units import TopicPartition

NONE = (-1, -1, -1)
ORDERS, PAYMENTS = TopicPartition("orders", 0), TopicPartition("payments", 3)


def chain(first_offset, last_offset, **given):
    """A chain of which nothing is known but what is given."""
    unknown = {"first_epoch": 0, "last_epoch": 0, "first_producer": NONE, "last_producer": NONE}
    times = {"first_timestamp_ms": 0, "last_timestamp_ms": 0}
    of = {"image": 0, "start": 0, "end": 0, "first_offset": first_offset, "last_offset": last_offset}
    return Chain(**{**of, **unknown, **times, **given})


def test_a_chain_that_shares_a_batch_with_one_replica_has_its_name():
    chains = [chain(0, 9, samples=[1]), chain(0, 9, samples=[2]), chain(50, 59, samples=[3])]
    logs = group_chains(chains, {0: {ORDERS}, 1: {PAYMENTS}})

    assert [(ORDERS, (0,)), (PAYMENTS, (1,)), (None, (2,))] == [(log.partition, log.chains) for log in logs]


def test_a_batch_that_two_partitions_hold_names_neither():
    (log,) = group_chains([chain(0, 9, samples=[1])], {0: {ORDERS, PAYMENTS}})

    assert log.partition is None


def test_copies_of_one_log_are_put_together_by_a_batch_that_they_share():
    chains = [chain(0, 9, samples=[1, 2]), chain(5, 20, samples=[2, 3]), chain(0, 9, samples=[4])]

    assert [(0, 1), (2,)] == [log.chains for log in group_chains(chains, {})]


def test_a_chain_that_goes_on_is_of_the_same_log_by_its_producer():
    chains = [
        chain(0, 9, last_producer=(7, 0, 10)),
        chain(10, 19, first_producer=(8, 0, 10)),
        chain(10, 19, first_producer=(7, 0, 10)),
    ]

    assert [(0, 2), (1,)] == [log.chains for log in group_chains(chains, {})]


def test_without_producers_only_the_one_chain_that_can_go_on_is_joined():
    pair = [chain(0, 9), chain(10, 19, first_timestamp_ms=1_000)]
    assert [(0, 1)] == [log.chains for log in group_chains(pair, {})]

    two_ends = [chain(0, 9), chain(3, 9), chain(10, 19)]
    assert 3 == len(group_chains(two_ends, {}))
    later = [chain(0, 9), chain(10, 19, first_timestamp_ms=DAY_MS + 1)]
    assert 2 == len(group_chains(later, {}))
    lower = [chain(0, 9, last_epoch=4), chain(10, 19, first_epoch=3)]
    assert 2 == len(group_chains(lower, {}))


def test_what_goes_on_from_a_log_with_a_name_is_likely_of_it_and_no_more():
    chains = [chain(0, 9, samples=[1]), chain(10, 19, samples=[2])]
    named, other = group_chains(chains, {1: {ORDERS}})

    assert (ORDERS, (1,), None) == (named.partition, named.chains, named.likely)
    assert (None, (0,), ORDERS) == (other.partition, other.chains, other.likely)
