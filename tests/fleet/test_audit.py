"""An audit finds what a comparison of the same directories finds, finding for finding."""

import json
import shutil
from collections import Counter
from dataclasses import replace

import pytest

from kforensics.ask.model import Ask
from kforensics.commands.comparing import compare
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.findings.answers.fleet import fleet_answer
from kforensics.findings.answers.model import State
from kforensics.render.json.replicas import plain_report
from kforensics.units import Depth
from tests.builders.cases import case_of
from tests.builders.directories import copied

pytestmark = pytest.mark.spark

SNAPSHOTS = [
    "hw-divergence-0.10/snapshots/99-final",
    "power-loss-4.x/snapshots/03-after-power-loss-before-restart",
    "reassignment-jbod-2.8/snapshots/03-broker-3-back-live",
    "silent-divergence-4.x/snapshots/03-follower-tampered",
    "unclean-election-4.x/snapshots/02-old-leader-killed",
]
MORE_SNAPSHOTS = [
    "all-codecs-4.x/snapshots/99-final",
    "epoch-truncate-2.8/snapshots/02-leader-killed",
    "fast-failover-1.1/snapshots/99-final",
    "mixed-magic-1.1/snapshots/99-final",
    "recreated-topic-4.x/snapshots/99-final",
]
READ_BY_ENDS = {
    "hw-divergence-0.10/snapshots/99-final",
    "silent-divergence-4.x/snapshots/03-follower-tampered",
    "unclean-election-4.x/snapshots/02-old-leader-killed",
}
QUIET = {"leader", "consistent"}


def compared(*places, **options):
    return compare(case_of(find_inputs(list(places), with_server_logs=True), Ask(**options)), keep_quiet=True)


def of_the_fleet(finding):
    return finding.code.startswith("KF4")


@pytest.mark.parametrize(
    ("snapshot", "depth"),
    [
        *((one, Depth.CONTENT) for one in SNAPSHOTS),
        *((one, Depth.TAILS) for one in SNAPSHOTS if one in READ_BY_ENDS),
        *(pytest.param(one, Depth.CONTENT, marks=pytest.mark.slow) for one in MORE_SNAPSHOTS),
    ],
)
@pytest.mark.some(4)
def test_an_audit_equals_a_comparison(run_audit, incident, plain, snapshot, depth, untouched):
    name, _, below = snapshot.partition("/")
    place = incident(name) / below
    with untouched(place):
        summary, _ = run_audit(place, options=Ask(depth=depth))
    expected = compared(place, depth=depth)

    assert sorted(map(plain, expected.findings)) == sorted(
        plain(one) for one in summary.findings if not of_the_fleet(one)
    )
    assert {
        (str(one.partition)): json.loads(plain(plain_report(one.report)))
        for one in expected.partitions
        if one.verdict not in QUIET and not one.report.is_deleted
    } == {f"{one.topic}-{one.partition}": json.loads(one.report) for one in summary.worst}
    assert len(expected.partitions) == summary.partition_count
    assert Counter(one.state.value for one in expected.partitions) == summary.states
    assert expected.answer.state is fleet_answer(replace(summary, damage_by_disk=())).state
    assert expected.problems == summary.problems == ()
    assert tuple(expected.inputs) == summary.inputs


@pytest.mark.slow
def test_missing_logs_directories_and_assignments_are_judged_as_in_a_comparison(run_audit, incident, plain, tmp_path):
    final = incident("benign-rolling-restart-4.x") / "snapshots" / "99-final"
    copied(final, tmp_path / "fleet")
    shutil.rmtree(tmp_path / "fleet" / "broker-1" / "orders-ok-0")
    (tmp_path / "fleet" / "broker-1" / "orders-ok-1" / f"{20:020d}.log").unlink(missing_ok=True)
    for path in (tmp_path / "fleet" / "broker-2" / "orders-ok-1").glob("*.log"):
        path.write_bytes(b"")
    for broker in (1, 2, 3):
        shutil.rmtree(tmp_path / "fleet" / f"broker-{broker}" / "profiles-1")
    expected = compared(tmp_path / "fleet")

    summary, _ = run_audit(tmp_path / "fleet")

    assert "profiles-1" in {str(one.partition) for one in expected.partitions}
    assert len(expected.partitions) == summary.partition_count

    assert sorted(map(plain, expected.findings)) == sorted(
        plain(one) for one in summary.findings if not of_the_fleet(one)
    )
    assert "KF116" in summary.findings_by_code
    assert Counter(one.state.value for one in expected.partitions) == summary.states
    answer = fleet_answer(replace(summary, damage_by_disk=()))
    assert (expected.answer.state, expected.answer.headline) == (answer.state, answer.headline)
    assert answer.state is State.AT_RISK


def test_a_fleet_without_assignments_is_not_called_sound_until_they_are_stated(run_audit, incident):
    snapshot = incident("hw-loss-0.10") / "snapshots" / "99-final"

    summary, _ = run_audit(snapshot)
    assert State.UNKNOWN is fleet_answer(summary).state
    assert "no input shows whether they are all" in fleet_answer(summary).headline

    stated, _ = run_audit(snapshot, options=Ask(replicas=(1, 2)))
    assert State.AGREE is fleet_answer(stated).state
    assert "every assigned replica given" in fleet_answer(stated).headline


def test_inputs_of_several_moments_are_numbered_as_in_a_comparison(run_audit, incident, plain):
    snapshots = incident("unclean-election-4.x") / "snapshots"
    places = [snapshots / "02-old-leader-killed" / "broker-1", snapshots / "99-final"]

    summary, _ = run_audit(*places)

    expected = compared(*places)
    assert sorted(map(plain, expected.findings)) == sorted(
        plain(one) for one in summary.findings if not of_the_fleet(one)
    )
    assert "KF508" in summary.findings_by_code


def test_the_worst_partitions_come_first(run_audit, incident):
    snapshots = incident("unclean-election-4.x") / "snapshots"

    summary, _ = run_audit(
        snapshots / "02-old-leader-killed" / "broker-1",
        snapshots / "03-old-leader-down-live" / "broker-2",
        snapshots / "03-old-leader-down-live" / "broker-3",
        snapshots / "03-old-leader-down-live" / "controller-100",
        most=2,
    )

    assert [("orders", 0, 43), ("orders", 1, 12)] == [
        (one.topic, one.partition, one.lost_certain) for one in summary.worst
    ]
    assert 56 == summary.lost_certain
    assert 4 == summary.not_consistent
    assert 6 == summary.under_replicated
    assert 4 == summary.unclean_elections
    assert (0, 0, 0, 0) == (summary.offline, summary.missing_replicas, summary.excess_replicas, summary.stray_replicas)


def test_options_choose_topics_and_leaders(run_audit, incident):
    snapshot = incident("silent-divergence-4.x") / "snapshots" / "99-final"

    summary, _ = run_audit(snapshot, options=Ask(topics=frozenset({"audit"}), leader=1))

    assert {"audit"} == {one.topic for one in summary.worst}
    assert summary.partition_count < len(compared(snapshot).partitions)
    assert all(json.loads(one.report)["leader"]["broker_id"] == 1 for one in summary.worst)


def test_nothing_proportional_to_batches_is_shuffled(spark, run_audit, incident):
    before = _shuffled(spark)

    summary, tables = run_audit(incident("all-codecs-4.x") / "snapshots" / "99-final")

    from kforensics.fleet.tables import Tables

    digests = Tables(tables).dataset("digests").count_rows()
    assert summary.segments > 3
    assert _shuffled(spark) - before <= 600 * summary.partition_count + 200 * summary.segments + 64 * digests


def _events(spark, kind):
    for file in spark.kforensics_events.iterdir():
        for line in file.read_text().splitlines():
            event = json.loads(line)
            if event["Event"] == kind:
                yield event


def _shuffled(spark) -> int:
    ended = _events(spark, "SparkListenerTaskEnd")
    return sum(one["Task Metrics"]["Shuffle Write Metrics"]["Shuffle Bytes Written"] for one in ended)


@pytest.mark.slow
def test_listing_on_the_workers_finds_the_same_in_jobs_that_say_what_they_do(spark, run_audit, incident, monkeypatch):
    snapshot = incident("epoch-truncate-2.8") / "snapshots" / "02-leader-killed"
    here, _ = run_audit(snapshot)
    monkeypatch.setattr("kforensics.fleet.knowledge.LISTED_HERE", -1)
    spark.sparkContext.setJobGroup("mine", "my own work")

    there, tables = run_audit(snapshot)

    assert ("mine", "my own work") == tuple(
        spark.sparkContext.getLocalProperty(name) for name in ("spark.jobGroup.id", "spark.job.description")
    )
    words = [one["Properties"].get("spark.job.description", "") for one in _events(spark, "SparkListenerJobStart")]
    own = [one for one in words if f"kforensics fleet audit, {tables}" in one]
    assert [True, True] == [": list " in own[0], " and judge their partitions" in own[-1]]
    assert (here.findings, here.worst, here.replicas, here.bytes) == (
        there.findings,
        there.worst,
        there.replicas,
        there.bytes,
    )
