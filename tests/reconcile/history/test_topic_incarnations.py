"""A log that a broker loads after the creation of its partition is of an earlier topic only where the broker held a replica before."""

import pytest

from kforensics.reconcile.history.topic_incarnations import incarnations, logs_made_anew
from tests.builders.history import PARTITION, logged_events, shifted

STARTED = "[KafkaServer id=3] started (kafka.server.KafkaServer)"
CREATED = "[Controller id=2 epoch=1] Changed partition t-0 state from NonExistentPartition to NewPartition with assigned replicas {}"
ONLINE = "[Controller id=2 epoch=1] Changed partition t-0 from NewPartition to OnlinePartition with state LeaderAndIsr(leader=2, leaderEpoch=0, isr=List(2, 1), zkVersion=0)"
LOADED = "[Log partition=t-0, dir=/d] Completed load of log with 1 segments, log start offset 0 and log end offset 20"


@pytest.mark.parametrize(
    ("own", "replicas", "stale"),
    [((STARTED, LOADED), "2,1,3", {3: 20}), ((STARTED, LOADED), "2,1", {}), ((LOADED,), "2,1,3", {})],
)
def test_only_a_replica_that_was_away_comes_back_with_the_log_of_an_earlier_topic(own, replicas, stale):
    of_controller = logged_events("nothing", CREATED.format(replicas), ONLINE, node=2)
    of_broker = [
        one._replace(time_ms=shifted(of_controller[0], -2_000 if at + 1 < len(own) else 5_000).time_ms)
        for at, one in enumerate(logged_events(*own, node=3))
    ]
    events = sorted([*of_controller, *of_broker], key=lambda one: one.time_ms)

    assert stale == incarnations(events)[PARTITION].stale_ends


BEGUN = "[Broker id=3] Follower t-0 starts at leader epoch 0 from offset {} with high watermark {}. Previous leader epoch was -1. (state.change.logger)"


@pytest.mark.parametrize(
    ("line", "begun"),
    [
        ("Created log for partition t-0 in /d/t-0 with properties {} (kafka.log.LogManager)", True),
        (BEGUN.format(0, 0), True),
        (BEGUN.format(27, 27), False),
        (STARTED, False),
    ],
)
def test_a_log_is_known_to_be_of_the_new_topic_by_the_line_that_it_was_begun(line, begun):
    of_controller = logged_events("nothing", CREATED.format("2,1,3"), ONLINE, node=2)
    events = [
        *of_controller,
        *(shifted(one, 5_000) for one in logged_events(line, node=3)),
    ]
    made = incarnations(events)[PARTITION]
    assert isinstance(made.created_ms, int)

    assert begun == (3 in made.begun_on)
    assert begun != made.may_be_of_earlier(3, made.created_ms + 2)
    assert not made.may_be_of_earlier(3, made.created_ms - 2)


def test_a_log_that_is_made_after_a_log_directory_failed_is_told_with_it():
    lines = (
        "Kafka version: 3.3.2 (org.apache.kafka.common.utils.AppInfoParser)",
        "[ReplicaManager broker=3] Stopping serving replicas in dir /d1 (kafka.server.ReplicaManager)",
        "Created log for partition t-0 in /d0/t-0 with properties {} (kafka.log.LogManager)",
        "Created log for partition u-0 in /d0/u-0.aa-future with properties {} (kafka.log.LogManager)",
    )
    events = logged_events(*lines, node=3)
    made = logs_made_anew(events)

    assert {PARTITION} == made.keys(), "a future log is that of a move"
    assert [(3, "/d0/t-0", "/d1", events[1].time_ms)] == [
        (one.broker_id, one.directory, one.failed, one.since_ms) for one in made[PARTITION]
    ]
    assert {} == logs_made_anew(logged_events(lines[2], node=3)), "of a partition that is new"


def test_a_start_goes_back_to_the_loading_of_its_logs_and_not_to_the_line_on_its_version():
    lines = (
        "Loading logs from log dirs ArrayBuffer(/d) (kafka.log.LogManager)",
        "Kafka version: 4.1.0 (org.apache.kafka.common.utils.AppInfoParser)",
        "Created log for partition t-0 in /d/t-0 with properties {} (kafka.log.LogManager)",
    )
    loading, version, created = (shifted(one, at * 500) for at, one in enumerate(logged_events(*lines, node=3)))

    (made,) = logs_made_anew([loading, version, created])[PARTITION]
    (without,) = logs_made_anew([version, created])[PARTITION]

    assert (made.since_ms, without.since_ms) == (loading.time_ms, version.time_ms)
