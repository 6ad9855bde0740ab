"""Evidence survives its way through tables and parcels."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kforensics.damage import Absent
from kforensics.evidence.captured.columns import digest_lists, digests_of, segment_of, segment_row
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.evidence.discovery.partition_dirs import find_places
from kforensics.evidence.replica.collect import collect_replica, stitch_replica
from kforensics.findings.model import Severity
from kforensics.fleet.facts import packed, unpacked
from kforensics.fleet.judge import damaged_places
from kforensics.fleet.pieces import Scanned, group_of, pack, unpack
from kforensics.fleet.rows import finding_of, finding_rows
from kforensics.units import OffsetRange, TopicPartition
from tests.builders.findings import finding


def test_replicas_and_segments_survive(incident):
    inputs = find_inputs([incident("power-loss-4.x") / "snapshots" / "03-after-power-loss-before-restart"])
    replicas = [
        collect_replica(place).replica for group in find_places(inputs).by_partition.values() for place in group
    ]
    scanned = Scanned()
    for number, replica in enumerate(replicas):
        source = f"s{replica.input}"
        listed = {
            "input": replica.input,
            "source": source,
            "sequence": number,
            "path": replica.path,
            "fingerprint": None,
        }
        partition = {"topic": replica.topic_partition.topic, "partition": replica.topic_partition.partition}
        directory = packed(replace(replica, segments=()))
        scanned.replicas.append({**listed, **partition, "segment_files": 0, "replica": directory})
        for segment in replica.segments:
            place = {
                "input": replica.input,
                "node_id": replica.broker_id,
                "source": source,
                "topic": replica.topic_partition.topic,
                "partition": replica.topic_partition.partition,
                "directory": replica.path,
            }
            row = segment_row(segment, place, is_deleted=False, scanned_ns=1)
            epochs = [list(one) for one in segment.epochs]
            scanned.segments.append({**row, "digests": digest_lists(segment.digests), "epochs": epochs})

    again = [unpack([parcel]) for parcel in pack(scanned, ["c"] * 9, 5).values()]

    found = {}
    for part in again:
        for row in part.replicas:
            own = [
                segment_of(one, one["digests"], one["epochs"])
                for one in part.segments
                if one["directory"] == row["path"] and one["input"] == row["input"]
            ]
            found[row["input"], row["path"]] = stitch_replica(unpacked(row["replica"]), own, [])
    assert len(replicas) == len(found)
    assert any(segment.damage for replica in replicas for segment in replica.segments)
    for replica in replicas:
        other = found[replica.input, replica.path]
        for mine, its in zip(replica.segments, other.segments, strict=True):
            assert np.array_equal(mine.digests, its.digests)
            assert list(map(_telling, mine.damage)) == list(map(_telling, its.damage))
        assert _bare(replica) == _bare(other)


def _telling(damage):
    # Why nothing is said of lost offsets is not kept.
    lost = damage.offsets_lost if isinstance(damage.offsets_lost, OffsetRange) else None
    return (damage.span, damage.kind, damage.expected, damage.found, damage.gravity, lost)


def _bare(replica):
    segments = tuple(replace(one, digests=None, batches=Absent.NOT_WRITTEN, damage=()) for one in replica.segments)
    return replace(replica, segments=segments)


@given(st.lists(st.tuples(*[st.integers(-(2**63), 2**63 - 1)] * 5), max_size=5))
def test_digests_survive(rows):
    array = digests_of([list(row) for row in rows])

    assert [list(row) for row in rows] == digest_lists(array)


def test_findings_survive():
    one = finding(
        "KF201",
        severity=Severity.CRITICAL,
        statement="x",
        topic_partition=TopicPartition("t", 1),
        broker_id=Absent.UNKNOWN,
        offsets=OffsetRange(1, 2),
    )

    assert one == finding_of(finding_rows([one], "c", ())[0])


def test_groups_do_not_depend_on_the_process():
    assert group_of(("c", "t-1", 1), 1_000) != group_of(("c", "t", 11), 1_000)


def test_the_unfinished_end_of_a_killed_brokers_log_is_no_damage(incident):
    inputs = find_inputs([incident("power-loss-4.x") / "snapshots" / "03-after-power-loss-before-restart"])
    replicas = [
        collect_replica(place).replica for group in find_places(inputs).by_partition.values() for place in group
    ]

    assert 4 == sum(bool(replica.segments[-1].damage) for replica in replicas)
    assert {0} == {damaged_places(replica) for replica in replicas}
    assert 6 == sum(damaged_places(replace(replica, clean_shutdown=True)) for replica in replicas)
