"""What holds in every random history, without a look at disks: high watermarks, the ISR, epoch caches, fenced cuts."""

from itertools import pairwise

import pytest

from kforensics.damage import Absent
from kforensics.protocol.election import ElectionKind
from kforensics.protocol.truncation import ProtocolName
from kforensics.simulation.cluster import random_cluster, truth_of
from kforensics.simulation.partition import SimulatedPartition
from kforensics.simulation.replica import missing_from
from tests.builders.repeating import times

SEEDS = range(times(40, 1_000))
FENCED = {ProtocolName.KIP_279, ProtocolName.KIP_595}
CLEAN = {ElectionKind.CLEAN, ElectionKind.PREFERRED, ElectionKind.ELIGIBLE, ElectionKind.NONE}


@pytest.mark.parametrize("protocol", list(ProtocolName))
@pytest.mark.some(2)
def test_the_high_watermark_rises_and_the_isr_holds_what_is_below(protocol, monkeypatch):
    kept = {"start", "stop", "crash"} if protocol in FENCED else {"start"}
    checked = 0
    raise_it = SimulatedPartition.raise_high_watermark

    def raise_and_check(partition, leader):
        nonlocal checked
        before = leader.high_watermark
        raised = raise_it(partition, leader)
        assert leader.high_watermark >= before
        assert leader.high_watermark <= leader.log_end_offset
        # What was not flushed can be missing after a loss of power, and before epochs a restart cuts what was committed.
        if all(event.kind in kept for event in partition.broker_events):
            checked += 1
            for broker in partition.registration.isr:
                assert partition.replicas[broker].log_end_offset >= leader.high_watermark
        return raised

    monkeypatch.setattr(SimulatedPartition, "raise_high_watermark", raise_and_check)
    for seed in SEEDS:
        random_cluster(seed, protocol=protocol)
    assert checked > 8 * len(SEEDS)


@pytest.mark.parametrize("protocol", sorted(FENCED))
def test_what_was_committed_is_in_the_log_of_every_member_of_the_isr(protocol):
    """The promise StrongIsr, as long as no election was unclean and no log lost what it had not flushed."""
    checked = 0
    for seed in SEEDS:
        for simulated in random_cluster(seed, protocol=protocol).partitions.values():
            unclean = any(kind not in CLEAN for _time, kind, _registration in simulated.elections)
            if unclean or any(event.kind == "power-loss" for event in simulated.broker_events):
                continue
            for broker in simulated.registration.isr:
                checked += 1
                assert missing_from(simulated.replicas[broker].records, simulated.truth.committed) == [], seed
    assert checked > len(SEEDS) // 2


@pytest.mark.parametrize("protocol", list(ProtocolName))
@pytest.mark.some(2)
def test_elections_are_of_who_may_lead(protocol):
    kinds = set()
    for seed in SEEDS:
        for simulated in random_cluster(seed, protocol=protocol).partitions.values():
            states = [registration for _time, registration in simulated.registrations]
            for before, after in pairwise(states):
                assert after.partition_epoch == before.partition_epoch + 1
                assert (after.leader_epoch != before.leader_epoch) == (after.leader != before.leader)
                assert after.leader_epoch - before.leader_epoch in {0, 1}
                assert not set(after.isr) & set(after.eligible_leader_replicas)
            for time_ms, kind, elected in simulated.elections:
                kinds.add(kind)
                assert (kind is ElectionKind.NONE) == isinstance(elected.leader, Absent)
                if isinstance(elected.leader, Absent):
                    continue
                assert elected.leader in elected.isr
                earlier = [state for at, state in simulated.registrations if at < time_ms]
                in_sync = {member for state in earlier[-1:] for member in state.isr}
                assert kind is not ElectionKind.CLEAN or elected.leader in in_sync
                assert kind in CLEAN or elected.isr == (elected.leader,)
                assert kind in CLEAN or elected.leader not in in_sync
                running = alive(simulated, time_ms)
                assert elected.leader in running
                clean_choice = [broker for broker in elected.replicas if broker in running & in_sync]
                assert kind is not ElectionKind.CLEAN or elected.leader == clean_choice[0]
    assert kinds >= {ElectionKind.CLEAN, ElectionKind.UNCLEAN, ElectionKind.NONE}
    assert (ElectionKind.ELIGIBLE in kinds) == (protocol is ProtocolName.KIP_595)


def alive(simulated, time_ms):
    """The brokers that run at a moment."""
    last = {event.broker_id: event.kind for event in simulated.broker_events if event.time_ms <= time_ms}
    return {broker for broker in simulated.brokers if last.get(broker, "start") == "start"}


@pytest.mark.parametrize("protocol", sorted(FENCED))
def test_epoch_caches_have_the_epoch_of_every_batch(protocol):
    for seed in SEEDS:
        for simulated in random_cluster(seed, protocol=protocol).partitions.values():
            for replica in simulated.replicas.values():
                if not replica.is_running:
                    continue
                assert all(
                    a.leader_epoch < b.leader_epoch and a.start_offset < b.start_offset
                    for a, b in pairwise(replica.epochs)
                )
                for batch in replica.log:
                    known = [entry.leader_epoch for entry in replica.epochs if entry.start_offset <= batch.base_offset]
                    assert known, (seed, replica.epochs, batch)
                    assert known[-1] == batch.leader_epoch


@pytest.mark.parametrize("protocol", sorted(FENCED))
@pytest.mark.some(1)
def test_fenced_followers_truncate_where_the_common_prefix_ends(protocol):
    truncations = 0
    for seed in range(4 * len(SEEDS)):
        for partition in truth_of(random_cluster(seed, protocol=protocol, brokers=2)).partitions:
            for replica in partition.replicas:
                if isinstance(partition.leader, Absent) or replica.common_end_offset == replica.log_end_offset:
                    continue
                truncations += 1
                assert replica.truncate_to == replica.common_end_offset, seed
    assert truncations > len(SEEDS) // 8
