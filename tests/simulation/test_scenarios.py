"""The built-in scenarios under every protocol, and the one table that every textbook shows."""

import pytest

from kforensics.damage import Absent
from kforensics.protocol.election import Acks, ElectionKind
from kforensics.protocol.truncation import ProtocolName
from kforensics.simulation.cluster import random_cluster
from kforensics.simulation.partition import SimulatedPartition
from kforensics.simulation.replica import ImpossibleEventError, Settings
from kforensics.simulation.scenario import StepFailedError, builtin_names, builtin_scenario, parse_scenario, replay

NOWHERE = Absent.NOT_APPLICABLE
EPOCHS = (ProtocolName.KIP_101, ProtocolName.KIP_279, ProtocolName.KIP_595)


def outcome(name, protocol):
    return replay(builtin_scenario(name), protocol).outcome


def five(row):
    leader, follower = row.replica(row.leader), row.replica(row.follower)
    assert leader is not None
    assert follower is not None
    return (
        leader.log_end_offset,
        row.remote_log_end_offset,
        leader.high_watermark,
        follower.log_end_offset,
        follower.high_watermark,
    )


@pytest.mark.parametrize("protocol", list(ProtocolName))
def test_one_produce_and_two_fetches(protocol):
    rows = replay(builtin_scenario("one-produce"), protocol).rows
    assert [(row.event, five(row)) for row in rows] == [
        ("producer writes", (1, 0, 0, 0, 0)),
        ("follower fetches at 0", (1, 0, 0, 0, 0)),
        ("leader updates HW", (1, 0, 0, 0, 0)),
        ("leader responds, follower appends", (1, 0, 0, 1, 0)),
        ("follower updates HW", (1, 0, 0, 1, 0)),
        ("follower fetches at 1", (1, 1, 0, 1, 0)),
        ("leader updates HW", (1, 1, 1, 1, 0)),
        ("leader responds", (1, 1, 1, 1, 0)),
        ("follower updates HW", (1, 1, 1, 1, 1)),
    ]


def test_high_watermark_truncation_loses_and_epochs_save():
    lost = outcome("hw-loss", ProtocolName.HW)
    assert lost.lost_committed == lost.lost_acknowledged == ((1, "m1"),)
    assert lost.logs == {1: ("m0",), 2: ("m0",)}
    for protocol in EPOCHS:
        saved = outcome("hw-loss", protocol)
        assert saved.lost_committed == saved.lost_acknowledged == ()
        assert saved.logs == {1: ("m0", "m1"), 2: ("m0", "m1")}


def test_high_watermark_truncation_diverges_and_epochs_agree():
    diverged = outcome("hw-divergence", ProtocolName.HW)
    assert diverged.diverged_at == 1
    assert diverged.logs == {1: ("m0", "m2"), 2: ("m0", "m1")}
    assert diverged.lost_committed == ((1, "m1"),)
    for protocol in EPOCHS:
        assert outcome("hw-divergence", protocol).diverged_at is NOWHERE
        assert outcome("hw-divergence", protocol).logs == {1: ("m0", "m2"), 2: ("m0", "m2")}


@pytest.mark.parametrize("protocol", list(ProtocolName))
def test_an_unclean_election_loses_under_every_protocol(protocol):
    assert outcome("unclean-election", protocol).lost_committed == ((1, "m1"),)
    assert (outcome("unclean-election", protocol).diverged_at == 1) is (protocol is ProtocolName.HW)


def test_fast_failover_diverges_until_kip_279():
    at = {protocol: outcome("fast-failover", protocol).diverged_at for protocol in ProtocolName}
    assert at == {
        ProtocolName.HW: 1,
        ProtocolName.KIP_101: 1,
        ProtocolName.KIP_279: NOWHERE,
        ProtocolName.KIP_595: NOWHERE,
    }


@pytest.mark.parametrize("protocol", list(ProtocolName))
def test_the_last_replica_standing_loses_unless_others_are_eligible(protocol):
    assert outcome("last-replica-standing", protocol).lost_committed == ((1, "m1"),)
    assert outcome("last-replica-standing-elr", protocol).lost_committed == ()


def test_the_isr_shrinks_by_silence_and_by_the_old_rule_by_a_burst():
    by_time = [row.isr for row in replay(builtin_scenario("isr-lag"), ProtocolName.KIP_595).rows]
    events = [row.event for row in replay(builtin_scenario("isr-lag"), ProtocolName.KIP_595).rows]
    assert events.count("broker 2 leaves the ISR") == events.count("broker 2 joins the ISR") == 1
    assert by_time[events.index("31000 ms pass") - 1] == (1, 2)
    assert by_time[-1] == (1, 2)
    old = [row.event for row in replay(builtin_scenario("isr-lag-messages"), ProtocolName.HW).rows]
    burst = old.index("producer writes", 1)
    assert old[burst + 1] == "broker 2 leaves the ISR"
    assert "broker 2 joins the ISR" in old


def test_who_is_exactly_at_the_limit_stays_in_the_isr():
    partition = SimulatedPartition((1, 2), ProtocolName.HW, Settings(lag_time_max_ms=30_000, lag_max_messages=4_000))
    rows = partition.produce(4_000)
    rows += partition.advance(30_000)
    rows += partition.advance(1)
    assert [(row.event, row.isr) for row in rows] == [
        ("producer writes", (1, 2)),
        ("30000 ms pass", (1, 2)),
        ("1 ms pass", (1, 2)),
        ("broker 2 leaves the ISR", (1,)),
    ]
    burst = SimulatedPartition((1, 2), ProtocolName.HW, Settings(lag_max_messages=4_000))
    assert burst.produce(4_001)[-1].isr == (1,)


@pytest.mark.parametrize("protocol", list(ProtocolName))
def test_acks_1_acknowledges_too_early(protocol):
    told = outcome("acks-1", protocol)
    assert told.lost_acknowledged == ((1, "m1"),)
    assert told.lost_committed == ()


def test_every_scenario_plays_under_every_protocol():
    assert len(builtin_names()) >= 8
    for name in builtin_names():
        assert builtin_scenario(name).name == name
        for protocol in ProtocolName:
            assert replay(builtin_scenario(name), protocol).rows


def test_impossible_events_are_refused():
    partition = SimulatedPartition((1, 2), ProtocolName.KIP_595)
    for event, words in [
        (lambda: partition.start(1), "broker 1 is already running"),
        (lambda: partition.start(7), "there is no broker 7"),
        (lambda: partition.fetch(1), "leads and can't fetch from itself"),
        (lambda: partition.restart(1), "its restart is noticed"),
    ]:
        with pytest.raises(ImpossibleEventError, match=words):
            event()
    partition.stop([2])
    for event in (lambda: partition.stop([2]), lambda: partition.fetch(2), lambda: partition.flush(2)):
        with pytest.raises(ImpossibleEventError, match="broker 2 is not running"):
            event()
    partition.stop([1], kind="crash")
    with pytest.raises(ImpossibleEventError, match="there is none"):
        partition.produce(1)


def test_an_impossible_step_is_reported_with_its_line():
    text = "name: x\nbrokers: [1, 2]\nsteps:\n  - produce: {}\n  - start: 2\n"
    with pytest.raises(StepFailedError, match=r"story.yaml:5: start can't happen here: broker 2 is already running"):
        replay(parse_scenario(text, "story.yaml"), ProtocolName.HW)


def test_elections_on_demand():
    partition = SimulatedPartition((1, 2, 3), ProtocolName.KIP_595, Settings(strict_min_isr=True))
    partition.stop([1])
    assert partition.registration.leader == 2
    partition.start(1)
    partition.fetch(1)
    assert partition.elect(preferred=True)[0].event == "broker 1 is elected as the preferred leader"
    assert partition.elect() == []
    partition.stop([2, 3])
    partition.stop([1], kind="crash")
    partition.start(3)
    assert partition.leader is None
    assert partition.elect(unclean=True)[0].event == "broker 3 is elected uncleanly"
    assert [kind for _time, kind, _registration in partition.elections][-1] is ElectionKind.UNCLEAN


def test_a_write_below_min_insync_replicas_is_refused_to_acks_all_only():
    partition = SimulatedPartition((1, 2), ProtocolName.KIP_595, Settings(min_insync_replicas=2, strict_min_isr=True))
    partition.stop([2])
    assert partition.produce(1)[0].event == "producer is refused: NOT_ENOUGH_REPLICAS"
    partition.produce(1, Acks.LEADER)
    assert partition.replicas[1].high_watermark == 0
    assert [record for _offset, record in partition.truth.acknowledged] == ["m0"]
    assert partition.truth.committed == []


def test_checkpoints_follow_the_clock():
    partition = SimulatedPartition((1,), ProtocolName.KIP_595)
    partition.produce(3)
    partition.flush(1)
    replica = partition.replicas[1]
    written = []
    for milliseconds in (1_000, 4_000, 54_999, 1):
        written.append((replica.checkpointed_high_watermark, replica.recovery_point))
        partition.advance(milliseconds)
    written.append((replica.checkpointed_high_watermark, replica.recovery_point))
    assert written == [(Absent.NOT_WRITTEN, 0), (Absent.NOT_WRITTEN, 0), (3, 0), (3, 0), (3, 3)]


def test_a_loss_of_power_takes_what_was_not_flushed_whatever_the_recovery_point_says():
    partition = SimulatedPartition((1,), ProtocolName.KIP_595)
    partition.produce(3)
    partition.flush(1)
    partition.advance(5_000)
    partition.produce(2)
    partition.stop([1], kind="power-loss")
    replica = partition.replicas[1]
    assert (replica.log_end_offset, replica.recovery_point, replica.high_watermark) == (3, 0, 3)
    partition.start(1)
    partition.stop([1])
    assert (replica.recovery_point, replica.high_watermark) == (3, 3)


def test_no_high_watermark_is_above_the_log_end_and_nothing_more_is_flushed_than_there_is():
    for protocol in ProtocolName:
        for seed in range(30):
            for simulated in random_cluster(seed, protocol=protocol).partitions.values():
                for replica in simulated.replicas.values():
                    assert replica.high_watermark <= replica.log_end_offset
                    assert replica.flushed_end <= replica.log_end_offset


@pytest.mark.parametrize("protocol", EPOCHS)
def test_before_2_0_1_a_follower_joins_the_isr_below_the_start_of_the_leader_epoch(protocol):
    partition = SimulatedPartition(brokers=(1, 2, 3, 4), protocol=protocol)
    partition.produce(["a", "b"])
    for broker in (2, 3, 4) * 2:
        partition.fetch(broker)
    partition.stop([3])
    partition.produce(["c", "d"])
    partition.fetch(2)
    partition.stop([1])
    partition.start(3)
    partition.fetch(3)

    leader = partition.leader
    assert leader is not None
    assert (leader.broker_id, leader.high_watermark, leader.epoch_start_offset) == (2, 2, 4)
    assert partition.registration.isr == ((2, 3, 4) if protocol is ProtocolName.KIP_101 else (2, 4))
