"""Known bugs by trace and version: named where both fit, not where the version is outside, not where the trace is another."""

from dataclasses import replace
from pathlib import Path

import pytest

from kforensics.damage import Damage, DamageKind, Span
from kforensics.protocol.known_bugs import KNOWN_BUGS
from kforensics.protocol.truncation import ProtocolName
from kforensics.protocol.versions import parse_version
from kforensics.reconcile.bugs.evidence import broker_signs, partition_signs
from kforensics.reconcile.bugs.traces import broker_bugs, bug_traces
from kforensics.reconcile.history.losses import Loss
from kforensics.reconcile.history.residuals import Residual
from kforensics.reconcile.observed.facts import BrokerVersions
from kforensics.reconcile.observed.logged_truncations import logged_truncations
from kforensics.units import OffsetRange, TopicPartition
from tests.builders.history import PARTITION, leadership, log_copy, logged_events, trace_evidence, truncation
from tests.builders.logs import HERE, batch, replica

TRANSACTIONAL, MARKER = 16, 48


def missed_truncation(epoch=1):
    parted = [batch(0, 4, 0), batch(5, 9, epoch, crc=7)]
    follower, leader = log_copy(replica(1, [batch(0, 9, 0)])), log_copy(replica(2, parted))
    differs = Residual(broker_id=1, offset=5, protocol=ProtocolName.KIP_101, old_format=False, citations=(HERE,))
    return {"copies": (follower, leader), "leader": leader, "residuals": (differs,)}


def kafka_7164():
    return {**missed_truncation(), "leaderships": (leadership(2, 0), leadership(2, 1))}


def kafka_6361():
    return {**missed_truncation(), "leaderships": (leadership(1, 0), leadership(2, 1))}


def kafka_7415():
    # Broker 2 led in epoch 1, and its file knows epochs 0 and 2 only.
    leader = log_copy(replica(2, [batch(0, 4, 0), batch(5, 9, 2)]))
    return {
        "copies": (leader,),
        "leader": leader,
        "leaderships": (leadership(1, 0), leadership(2, 1), leadership(2, 2)),
        "disagreeing": frozenset({(1, 5)}),
    }


def kafka_7128():
    gone = Loss(
        topic_partition=PARTITION,
        offsets=OffsetRange(5, 9),
        records=5,
        markers=0,
        committed="certain",
        was_committed="certain",
        is_replaced=False,
        leader_epoch=0,
        reason="below its high watermark",
        held_by=(),
        citations=(HERE,),
    )
    states = (leadership(1, 0, (1,)), leadership(1, 0, (1, 2)), leadership(2, 1, (1, 2)))
    return {"copies": (), "losses": (gone,), "leaderships": states}


def kafka_12996():
    leader, follower = log_copy(replica(2, [batch(50, 59, 3)])), log_copy(replica(1, [batch(0, 9, 0)]))
    lines = logged_events("[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Partition t-0 marked as failed")
    return {"copies": (leader, follower), "leader": leader, "signs": partition_signs(lines)[PARTITION]}


def kafka_12460():
    metadata = TopicPartition("__cluster_metadata", 0)
    leader = log_copy(replace(replica(2, [batch(0, 19, 1)]), topic_partition=metadata))
    before = log_copy(replace(replica(1, [batch(0, 14, 1)]), topic_partition=metadata), rank=0, is_final=False)
    return {
        "copies": (leader, before),
        "leader": leader,
        "truncations": (truncation(15, 10, before=before, topic=metadata),),
    }


def kafka_13207():
    lines = logged_events(
        "[Broker id=1] Follower t-0 starts at leader epoch 3 from offset 40 with high watermark 40. Current leader is 3. Previous leader epoch was 2.",
        "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Truncating partition t-0 to local high watermark 30",
    )
    return {"copies": (), "signs": partition_signs(lines)[PARTITION]}


def kafka_18723():
    lines = logged_events(
        "[Broker id=1] Follower t-0 starts at leader epoch 4 from offset 40 with high watermark 30. Previous leader epoch was 3."
    )
    follower = log_copy(replica(1, [batch(0, 34, 3), batch(35, 44, 4)]))
    return {"copies": (follower,), "signs": partition_signs(lines)[PARTITION]}


def kafka_14055():
    rows = [batch(0, 4, 0, attributes=TRANSACTIONAL, producer=7), batch(5, 9, 0), batch(10, 14, 0)]
    return {"copies": (log_copy(replica(1, rows, cleaned=10)),)}


def kafka_7601():
    downgraded = replica(1, [batch(0, 4, 0)], [batch(5, 9, -1, crc=5, magic=1)], checkpoint=[(0, 0)])
    return {"copies": (log_copy(downgraded),)}


def kafka_14616():
    lines = logged_events("[ReplicaManager broker=1] Stopping serving replicas in dir /data/a")
    return {"copies": (), "signs": broker_signs(lines), "stale_directories": {1: HERE}}


CASES = [
    (kafka_7164, "KAFKA-7164", "2.0.0", "2.0.1", "likely"),
    (kafka_6361, "KAFKA-6361", "1.1.1", "2.0.0", "likely"),
    (kafka_7415, "KAFKA-7415", "2.0.0", "2.1.0", "likely"),
    (kafka_7128, "KAFKA-7128", "2.0.0", "2.0.1", "likely"),
    (kafka_12996, "KAFKA-12996", "2.8.0", "2.8.1", "likely"),
    (kafka_12460, "KAFKA-12460", "2.8.1", "3.0.0", "likely"),
    (kafka_13207, "KAFKA-13207", "2.8.0", "2.8.1", "likely"),
    (kafka_18723, "KAFKA-18723", "4.0.0", "4.1.0", "likely"),
    (kafka_14055, "KAFKA-14055", "3.2.0", "3.2.1", "likely"),
    (kafka_7601, "KAFKA-7601", "2.2.0", "2.2.1", "likely"),
    (kafka_14616, "KAFKA-14616", "3.6.2", "3.7.0", "possible"),
]


@pytest.mark.parametrize(("make", "jira", "affected", "fixed", "confidence"), CASES)
def test_a_trace_names_its_bug_in_versions_that_have_it_only(make, jira, affected, fixed, confidence):
    given = make()
    copies = given.pop("copies")

    found = {bug.jira: bug for bug in bug_traces(trace_evidence(affected, *copies, **given))}
    assert jira in found
    assert confidence == found[jira].confidence
    assert found[jira].citations
    assert jira not in {bug.jira for bug in bug_traces(trace_evidence(fixed, *copies, **given))}


def other_leader_between():
    return {**kafka_7164(), "leaderships": (leadership(2, 0), leadership(1, 1))}


def epoch_far_off():
    return {**missed_truncation(epoch=2**31 - 1), "leaderships": (leadership(2, 0), leadership(2, 1))}


def epoch_written():
    return {**kafka_7415(), "leaderships": (leadership(1, 0), leadership(2, 2))}


def unclean_after():
    given = kafka_7128()
    return {**given, "leaderships": (*given["leaderships"][:2], leadership(2, 1, (2,), unclean=True))}


def failed_within_range():
    given = kafka_12996()
    leader = log_copy(replica(2, [batch(0, 59, 3)]))
    return {**given, "leader": leader}


def cut_where_the_leader_ends():
    given = kafka_12460()
    leader = log_copy(
        replace(replica(2, [batch(0, 9, 1)]), topic_partition=TopicPartition("__cluster_metadata", 0)), rank=1
    )
    return {**given, "copies": (leader, *given["copies"][1:]), "leader": leader}


def fetcher_of_the_leader():
    lines = logged_events(
        "[Broker id=1] Follower t-0 starts at leader epoch 3 from offset 40 with high watermark 40. Current leader is 2. Previous leader epoch was 2.",
        "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Truncating partition t-0 to local high watermark 30",
    )
    return {"copies": (), "signs": partition_signs(lines).get(PARTITION, ())}


def entered_at_its_first_batch():
    given = kafka_18723()
    return {**given, "copies": (log_copy(replica(1, [batch(0, 39, 3), batch(40, 44, 4)])),)}


def marker_there():
    rows = [
        batch(0, 4, 0, attributes=TRANSACTIONAL, producer=7),
        batch(5, 5, 0, attributes=MARKER, producer=7),
        batch(6, 14, 0),
    ]
    return {"copies": (log_copy(replica(1, rows, cleaned=10)),)}


def upgraded_format():
    upgraded = replica(1, [batch(0, 4, -1, crc=4, magic=1)], [batch(5, 9, 0)], checkpoint=[(0, 5)])
    return {"copies": (log_copy(upgraded),)}


def no_directory_failed():
    return {**kafka_14616(), "signs": ()}


@pytest.mark.parametrize(
    ("make", "jira", "version"),
    [
        (other_leader_between, "KAFKA-7164", "2.0.0"),
        (epoch_far_off, "KAFKA-7164", "2.0.0"),
        (epoch_written, "KAFKA-7415", "2.0.0"),
        (unclean_after, "KAFKA-7128", "2.0.0"),
        (failed_within_range, "KAFKA-12996", "2.8.0"),
        (cut_where_the_leader_ends, "KAFKA-12460", "2.8.1"),
        (fetcher_of_the_leader, "KAFKA-13207", "2.8.0"),
        (entered_at_its_first_batch, "KAFKA-18723", "4.0.0"),
        (marker_there, "KAFKA-14055", "3.2.0"),
        (upgraded_format, "KAFKA-7601", "2.2.0"),
        (no_directory_failed, "KAFKA-14616", "3.6.2"),
    ],
)
def test_what_looks_alike_names_nothing(make, jira, version):
    given = make()
    copies = given.pop("copies")

    assert jira not in {bug.jira for bug in bug_traces(trace_evidence(version, *copies, **given))}


STOP = "[KafkaServer id=1] shut down completed"
RECOVERS = "Attempting recovery for all logs in /data/a since no clean shutdown file was found"
CLEAN = "Skipping recovery for all logs in /data/a since clean shutdown file was found"
STARTED = "[KafkaServer id=1] started (kafka.server.KafkaServer)"


@pytest.mark.parametrize(
    ("lines", "version", "found"),
    [
        ((STARTED, STOP, RECOVERS), "3.0.0", {("KAFKA-13315", "likely")}),
        ((STARTED, STOP, RECOVERS), "3.0.1", set()),
        ((STARTED, STOP, CLEAN, STARTED), "3.0.0", set()),
        ((STARTED, RECOVERS), "3.0.0", set()),
        ((STOP, CLEAN, CLEAN, STARTED), "2.7.2", {("KAFKA-10471", "possible")}),
        ((STOP, CLEAN, CLEAN, STARTED), "2.8.0", set()),
        ((STOP, CLEAN, STARTED, STOP, CLEAN), "2.7.2", set()),
    ],
)
def test_starts_and_stops_show_bugs_too(lines, version, found):
    versions = BrokerVersions(by_broker={1: parse_version(version)})

    assert found == {(bug.jira, bug.confidence) for bug in broker_bugs(broker_signs(logged_events(*lines)), versions)}


EMPTIED = (
    "[UnifiedLog partition=t-0, dir=/d] Found invalid offset during recovery. Deleting the corrupt segment and creating an empty one"
    " with starting offset 10"
)


@pytest.mark.parametrize(
    ("version", "damaged", "confidence"),
    [("4.1.0", False, "likely"), ("4.3.1", True, "possible"), ("3.9.1", False, None), ("4.4.0", False, "likely")],
)
def test_recovery_that_empties_a_sound_segment(version, damaged, confidence):
    before = replica(1, [batch(0, 9, 0)], [batch(10, 11, 0)])
    if damaged:
        bad = Damage(span=Span(0, 100), kind=DamageKind.CRC, expected="a", found="b")
        before = replace(before, segments=(before.segments[0], replace(before.segments[1], damage=(bad,))))
    lines = logged_truncations(logged_events(EMPTIED))
    emptied = replace(
        truncation(12, 10, rule="recovery", before=log_copy(before, is_final=False)), empties_segment=True
    )
    found = bug_traces(trace_evidence(version, truncations=[emptied], logged=lines))

    assert [True] == [line.empties_segment for line in lines]
    assert ([confidence] if confidence else []) == [bug.confidence for bug in found if bug.jira == "RECOVERY-IO-ERROR"]


def test_a_segment_that_is_only_shortened_is_not_emptied():
    line = "[UnifiedLog partition=t-0, dir=/d] Corruption found in segment 0, truncating to offset 10"
    (truncation,) = logged_truncations(logged_events(line))

    assert ("recovery", 10, False) == (truncation.rule, truncation.to_offset, truncation.empties_segment)


def test_every_known_bug_is_in_the_documentation_with_its_trace():
    rows = (Path(__file__).parents[3] / "docs" / "known-bugs.md").read_text(encoding="utf-8")

    assert [] == [bug.jira for bug in KNOWN_BUGS if f"| {bug.jira} |" not in rows]
