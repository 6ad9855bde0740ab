"""Chains of batches put together into logs: what is proven, what is likely, what is neither."""

from dataclasses import dataclass, field

from kforensics.commands.salvaging.carving import DAY_MS, group_chains
from kforensics.units import TopicPartition

NONE = (-1, -1, -1)
ORDERS, PAYMENTS = TopicPartition("orders", 0), TopicPartition("payments", 3)


@dataclass
class Chain:
    first_offset: int
    last_offset: int
    first_epoch: int = 0
    last_epoch: int = 0
    first_producer: tuple = NONE
    last_producer: tuple = NONE
    first_timestamp_ms: int = 0
    last_timestamp_ms: int = 0
    samples: list = field(default_factory=list)
    epochs: list = field(default_factory=list)


def test_a_chain_that_shares_a_batch_with_one_replica_has_its_name():
    chains = [Chain(0, 9, samples=[1]), Chain(0, 9, samples=[2]), Chain(50, 59, samples=[3])]
    logs = group_chains(chains, {0: {ORDERS}, 1: {PAYMENTS}})

    assert [(ORDERS, (0,)), (PAYMENTS, (1,)), (None, (2,))] == [(log.partition, log.chains) for log in logs]


def test_a_batch_that_two_partitions_hold_names_neither():
    (log,) = group_chains([Chain(0, 9, samples=[1])], {0: {ORDERS, PAYMENTS}})

    assert log.partition is None


def test_copies_of_one_log_are_put_together_by_a_batch_that_they_share():
    chains = [Chain(0, 9, samples=[1, 2]), Chain(5, 20, samples=[2, 3]), Chain(0, 9, samples=[4])]

    assert [(0, 1), (2,)] == [log.chains for log in group_chains(chains, {})]


def test_a_chain_that_goes_on_is_of_the_same_log_by_its_producer():
    chains = [
        Chain(0, 9, last_producer=(7, 0, 10)),
        Chain(10, 19, first_producer=(8, 0, 10)),
        Chain(10, 19, first_producer=(7, 0, 10)),
    ]

    assert [(0, 2), (1,)] == [log.chains for log in group_chains(chains, {})]


def test_without_producers_only_the_one_chain_that_can_go_on_is_joined():
    pair = [Chain(0, 9), Chain(10, 19, first_timestamp_ms=1_000)]
    assert [(0, 1)] == [log.chains for log in group_chains(pair, {})]

    two_ends = [Chain(0, 9), Chain(3, 9), Chain(10, 19)]
    assert 3 == len(group_chains(two_ends, {}))
    later = [Chain(0, 9), Chain(10, 19, first_timestamp_ms=DAY_MS + 1)]
    assert 2 == len(group_chains(later, {}))
    lower = [Chain(0, 9, last_epoch=4), Chain(10, 19, first_epoch=3)]
    assert 2 == len(group_chains(lower, {}))


def test_what_goes_on_from_a_log_with_a_name_is_likely_of_it_and_no_more():
    chains = [Chain(0, 9, samples=[1]), Chain(10, 19, samples=[2])]
    named, other = group_chains(chains, {1: {ORDERS}})

    assert (ORDERS, (1,), None) == (named.partition, named.chains, named.likely)
    assert (None, (0,), ORDERS) == (other.partition, other.chains, other.likely)
