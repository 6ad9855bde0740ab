"""Known bugs by trace and version: named where both fit, not where the version is outside, not where the trace is another."""

from dataclasses import replace
from pathlib import Path

import pytest

from kforensics.damage import Damage, DamageKind, Span
from kforensics.evidence.broker_logs import LogFile
from kforensics.formats.log_lines.event import LineCensus
from kforensics.formats.log_lines.scan import scan_log
from kforensics.protocol.known_bugs import KNOWN_BUGS
from kforensics.protocol.truncation import ProtocolName
from kforensics.protocol.versions import parse_version
from kforensics.reconcile.bugs.evidence import BrokerVersions, TraceEvidence
from kforensics.reconcile.bugs.log_signs import broker_signs, partition_signs
from kforensics.reconcile.bugs.traces import broker_bugs, bug_traces
from kforensics.reconcile.history.log_copies import LogCopy
from kforensics.reconcile.history.losses import Loss
from kforensics.reconcile.history.residual_divergence import Residual
from kforensics.reconcile.history.truncations import ObservedTruncation
from kforensics.reconcile.logs.loaded_log import load_log
from kforensics.reconcile.observed.facts import Leadership
from kforensics.reconcile.observed.logged_events import LoggedEvent
from kforensics.reconcile.observed.logged_truncations import logged_truncations
from kforensics.units import OffsetRange, TopicPartition
from tests.builders.logs import HERE, MemoryReader, batch, replica

PARTITION = TopicPartition("t", 0)
TRANSACTIONAL, MARKER = 16, 48


def events(*lines, node=1):
    text = "".join(f"[2024-05-01 12:00:{at:02d},000] INFO {line} (kafka)\n" for at, line in enumerate(lines)).encode()
    found = [event for window in scan_log([text]) for event in window.events]
    file = LogFile(
        input=0,
        path="server.log",
        is_compressed=False,
        node_id=node,
        events=tuple(found),
        census=LineCensus(),
        events_dropped=0,
        problems=(),
        mtime_ns=0,
    )
    return [LoggedEvent(event, node, event.time_ms, file) for event in found]


def copy(one, *, rank=1, is_final=True):
    return LogCopy(view=load_log(one), rank=rank, is_final=is_final)


def term(leader, epoch, isr=(1, 2), *, unclean=False):
    return Leadership(
        leader=leader,
        leader_epoch=epoch,
        isr=frozenset(isr),
        replicas=(1, 2),
        unclean=unclean,
        recorded_at=epoch,
        time_ms=epoch,
        citation=HERE,
    )


def cut_of(broker, start, end, *, rule="epoch", before=None, topic=PARTITION):
    return ObservedTruncation(
        broker_id=broker,
        topic_partition=topic,
        time_ms=5,
        from_offset=end,
        to_offset=start,
        rule=rule,
        leader=2,
        leader_epoch=2,
        is_full=False,
        is_logged=True,
        is_shortened=False,
        before=before,
        citations=(HERE,),
    )


def evidence(version, *copies, leader=None, **more):
    same = {"agree_until": lambda _one, other: other.log_end_offset, "reader": MemoryReader({})}
    plain = {"leaderships": (), "truncations": (), "logged": (), "residuals": (), "ordinary_truncations": frozenset()}
    versions = BrokerVersions(by_broker={broker: parse_version(version) for broker in (1, 2, 3)})
    return TraceEvidence(versions=versions, copies=copies, leader=leader, **{**same, **plain, **more})


def missed_truncation(epoch=1):
    parted = [batch(0, 4, 0), batch(5, 9, epoch, crc=7)]
    follower, leader = copy(replica(1, [batch(0, 9, 0)])), copy(replica(2, parted))
    differs = Residual(broker_id=1, offset=5, protocol=ProtocolName.KIP_101, old_format=False, citations=(HERE,))
    return {"copies": (follower, leader), "leader": leader, "residuals": (differs,)}


def kafka_7164():
    return {**missed_truncation(), "leaderships": (term(2, 0), term(2, 1))}


def kafka_6361():
    return {**missed_truncation(), "leaderships": (term(1, 0), term(2, 1))}


def kafka_7415():
    # Broker 2 led in epoch 1, and its file knows epochs 0 and 2 only.
    leader = copy(replica(2, [batch(0, 4, 0), batch(5, 9, 2)]))
    return {
        "copies": (leader,),
        "leader": leader,
        "leaderships": (term(1, 0), term(2, 1), term(2, 2)),
        "disagreeing": frozenset({(1, 5)}),
    }


def kafka_7128():
    gone = Loss(
        offsets=OffsetRange(5, 9),
        records=5,
        markers=0,
        committed="certain",
        was_committed="certain",
        is_replaced=False,
        in_use=(),
        leader_epoch=0,
        reason="below its high watermark",
        held_by=(),
        citations=(HERE,),
    )
    states = (term(1, 0, (1,)), term(1, 0, (1, 2)), term(2, 1, (1, 2)))
    return {"copies": (), "losses": (gone,), "leaderships": states}


def kafka_12996():
    leader, follower = copy(replica(2, [batch(50, 59, 3)])), copy(replica(1, [batch(0, 9, 0)]))
    lines = events("[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Partition t-0 marked as failed")
    return {"copies": (leader, follower), "leader": leader, "signs": partition_signs(lines)[PARTITION]}


def kafka_12460():
    metadata = TopicPartition("__cluster_metadata", 0)
    leader = copy(replace(replica(2, [batch(0, 19, 1)]), topic_partition=metadata))
    before = copy(replace(replica(1, [batch(0, 14, 1)]), topic_partition=metadata), rank=0, is_final=False)
    return {
        "copies": (leader, before),
        "leader": leader,
        "truncations": (cut_of(1, 10, 15, rule="epoch", before=before, topic=metadata),),
    }


def kafka_13207():
    lines = events(
        "[Broker id=1] Follower t-0 starts at leader epoch 3 from offset 40 with high watermark 40. Current leader is 3. Previous leader epoch was 2.",
        "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Truncating partition t-0 to local high watermark 30",
    )
    return {"copies": (), "signs": partition_signs(lines)[PARTITION]}


def kafka_18723():
    lines = events(
        "[Broker id=1] Follower t-0 starts at leader epoch 4 from offset 40 with high watermark 30. Previous leader epoch was 3."
    )
    follower = copy(replica(1, [batch(0, 34, 3), batch(35, 44, 4)]))
    return {"copies": (follower,), "signs": partition_signs(lines)[PARTITION]}


def kafka_14055():
    rows = [batch(0, 4, 0, attributes=TRANSACTIONAL, producer=7), batch(5, 9, 0), batch(10, 14, 0)]
    return {"copies": (copy(replica(1, rows, cleaned=10)),)}


def kafka_7601():
    downgraded = replica(1, [batch(0, 4, 0)], [batch(5, 9, -1, crc=5, magic=1)], checkpoint=[(0, 0)])
    return {"copies": (copy(downgraded),)}


def kafka_14616():
    lines = events("[ReplicaManager broker=1] Stopping serving replicas in dir /data/a")
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

    found = {bug.jira: bug for bug in bug_traces(evidence(affected, *copies, **given))}
    assert jira in found
    assert confidence == found[jira].confidence
    assert found[jira].citations
    assert jira not in {bug.jira for bug in bug_traces(evidence(fixed, *copies, **given))}


def other_leader_between():
    return {**kafka_7164(), "leaderships": (term(2, 0), term(1, 1))}


def epoch_far_off():
    return {**missed_truncation(epoch=2**31 - 1), "leaderships": (term(2, 0), term(2, 1))}


def epoch_written():
    return {**kafka_7415(), "leaderships": (term(1, 0), term(2, 2))}


def unclean_after():
    given = kafka_7128()
    return {**given, "leaderships": (*given["leaderships"][:2], term(2, 1, (2,), unclean=True))}


def failed_within_range():
    given = kafka_12996()
    leader = copy(replica(2, [batch(0, 59, 3)]))
    return {**given, "leader": leader}


def cut_where_the_leader_ends():
    given = kafka_12460()
    leader = copy(
        replace(replica(2, [batch(0, 9, 1)]), topic_partition=TopicPartition("__cluster_metadata", 0)), rank=1
    )
    return {**given, "copies": (leader, *given["copies"][1:]), "leader": leader}


def fetcher_of_the_leader():
    lines = events(
        "[Broker id=1] Follower t-0 starts at leader epoch 3 from offset 40 with high watermark 40. Current leader is 2. Previous leader epoch was 2.",
        "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Truncating partition t-0 to local high watermark 30",
    )
    return {"copies": (), "signs": partition_signs(lines).get(PARTITION, ())}


def entered_at_its_first_batch():
    given = kafka_18723()
    return {**given, "copies": (copy(replica(1, [batch(0, 39, 3), batch(40, 44, 4)])),)}


def marker_there():
    rows = [
        batch(0, 4, 0, attributes=TRANSACTIONAL, producer=7),
        batch(5, 5, 0, attributes=MARKER, producer=7),
        batch(6, 14, 0),
    ]
    return {"copies": (copy(replica(1, rows, cleaned=10)),)}


def upgraded_format():
    upgraded = replica(1, [batch(0, 4, -1, crc=4, magic=1)], [batch(5, 9, 0)], checkpoint=[(0, 5)])
    return {"copies": (copy(upgraded),)}


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

    assert jira not in {bug.jira for bug in bug_traces(evidence(version, *copies, **given))}


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

    assert found == {(bug.jira, bug.confidence) for bug in broker_bugs(broker_signs(events(*lines)), versions)}


EMPTIED = (
    "[UnifiedLog partition=t-0, dir=/d] Found invalid offset during recovery. Deleting the corrupt segment and creating an empty one"
    " with starting offset 10"
)


@pytest.mark.parametrize(
    ("version", "damaged", "confidence"),
    [("4.1.0", False, "likely"), ("4.3.1", True, "possible"), ("3.9.1", False, None), ("4.4.0", False, None)],
)
def test_recovery_that_empties_a_sound_segment(version, damaged, confidence):
    before = replica(1, [batch(0, 9, 0)], [batch(10, 11, 0)])
    if damaged:
        bad = Damage(span=Span(0, 100), kind=DamageKind.CRC, expected="a", found="b")
        before = replace(before, segments=(before.segments[0], replace(before.segments[1], damage=(bad,))))
    lines = logged_truncations(events(EMPTIED))
    truncation = replace(cut_of(1, 10, 12, rule="recovery", before=copy(before, is_final=False)), empties_segment=True)
    found = bug_traces(evidence(version, truncations=[truncation], logged=lines))

    assert [True] == [line.empties_segment for line in lines]
    assert ([confidence] if confidence else []) == [bug.confidence for bug in found if bug.jira == "RECOVERY-IO-ERROR"]


def test_a_segment_that_is_only_shortened_is_not_emptied():
    line = "[UnifiedLog partition=t-0, dir=/d] Corruption found in segment 0, truncating to offset 10"
    (truncation,) = logged_truncations(events(line))

    assert ("recovery", 10, False) == (truncation.rule, truncation.to_offset, truncation.empties_segment)


def test_every_known_bug_is_in_the_documentation_with_its_trace():
    rows = (Path(__file__).parents[3] / "docs" / "known-bugs.md").read_text(encoding="utf-8")

    assert [] == [bug.jira for bug in KNOWN_BUGS if f"| {bug.jira} |" not in rows]
