"""Evidence that brokers extract themselves, and its way into an audit."""

import json
import shutil

import pytest

from kforensics.ask.model import Ask
from kforensics.commands.diff import compare
from kforensics.errors import EvidenceUnreadable, UsageError
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.fleet.local_scan import scan_node
from kforensics.fleet.places import find_sources
from kforensics.fleet.sources import Source, read_sources
from kforensics.fleet.tables import SCAN_MANIFEST, Tables
from kforensics.render.json.replicas import plain_report
from kforensics.source import mapped
from kforensics.source.beside_broker import Pace
from tests.builders.cases import case_of
from tests.builders.directories import copied

BROKERS = {
    "broker-1": "02-old-leader-killed",
    "broker-2": "03-old-leader-down-live",
    "broker-3": "03-old-leader-down-live",
}


@pytest.fixture
def snapshots(incident):
    return incident("unclean-election-4.x") / "snapshots"


def test_a_scan_is_small_and_read_once(snapshots, tmp_path, untouched):
    node = snapshots / "03-old-leader-down-live" / "broker-2"

    with untouched(node):
        first = scan_node([node], tmp_path / "evidence")
    again = scan_node([node], tmp_path / "evidence")

    assert (7, 7, 0, ()) == (first.replicas, first.segments, first.reused_segments, first.problems)
    assert first.read_bytes > 100_000
    assert (7, 7, 0) == (again.segments, again.reused_segments, again.read_bytes)
    tables = Tables(tmp_path / "evidence")
    assert {"replicas": 7, "segments": 7} == {
        name: tables.dataset(name).count_rows() for name in ("replicas", "segments")
    }
    assert tables.dataset("digests").count_rows() >= 6
    assert tables.dataset("lineage").count_rows() >= 6
    assert list((tmp_path / "evidence" / "copies" / "0").rglob("__cluster_metadata-0/*.log"))


def test_an_unfinished_scan_is_no_evidence(snapshots, tmp_path):
    node = snapshots / "03-old-leader-down-live" / "broker-2"
    scan_node([node], tmp_path / "evidence")
    tables = Tables(tmp_path / "evidence")
    manifest = tables.read_manifest(SCAN_MANIFEST) or {}
    tables.write_manifest(SCAN_MANIFEST, {**manifest, "is_complete": False})

    with pytest.raises(EvidenceUnreadable, match="did not finish"):
        find_sources(read_sources([str(tmp_path / "evidence")]))

    for damaged in ({**manifest, "inputs": [{}]}, {"schema": "x"}):
        tables.write_manifest(SCAN_MANIFEST, damaged)
        with pytest.raises(EvidenceUnreadable):
            find_sources(read_sources([str(tmp_path / "evidence")]))
    (tmp_path / "evidence" / SCAN_MANIFEST).unlink()
    with pytest.raises(UsageError, match="overwrites nothing"):
        scan_node([node], tmp_path / "evidence")
    with pytest.raises(UsageError, match="inside the evidence"):
        scan_node([tmp_path / "evidence"], tmp_path / "evidence" / "x")


def test_what_a_scan_could_not_read_stays_known(snapshots, tmp_path):
    node = tmp_path / "broker-2"
    copied(snapshots / "03-old-leader-down-live" / "broker-2", node)
    target = node / "orders-0" / "leader-epoch-checkpoint"
    target.unlink()
    target.mkdir()
    segment = node / "orders-1" / "00000000000000000000.log"
    segment.rename(segment.with_suffix(".away"))
    segment.symlink_to(segment.with_suffix(".away"))

    result = scan_node([node], tmp_path / "evidence")

    found = find_sources([Source(location=tmp_path / "evidence", is_evidence=True)])
    assert result.problems
    assert {one.path for one in result.problems} == {one.path for one in found.problems}


@pytest.mark.spark
def test_digests_alone_show_what_will_be_truncated(run_audit, snapshots, tmp_path):
    places = [snapshots / snapshot / broker for broker, snapshot in BROKERS.items()]
    for number, place in enumerate(places):
        scan_node([place], tmp_path / f"evidence-{number}", digests_only=True)

    summary, _ = run_audit(*(tmp_path / f"evidence-{number}" for number in range(3)))

    expected = compare(case_of(find_inputs(places)))
    assert {
        str(one.partition): one.verdict.value for one in expected.partitions if "metadata" not in one.partition.topic
    } == {
        **{str(one.partition): "consistent" for one in expected.partitions if "metadata" not in one.partition.topic},
        **{f"{one.topic}-{one.partition}": one.verdict for one in summary.worst if "metadata" not in one.topic},
    }
    truncations = {
        (one.topic, one.partition): [
            (
                replica["broker_id"],
                replica["expected_truncation"]["offset"],
                replica["expected_truncation"]["committed"],
            )
            for replica in json.loads(one.report)["replicas"]
            if replica["expected_truncation"]
        ]
        for one in summary.worst
    }
    assert [(1, 60, {"certain": 43, "possible": 0, "no": 0})] == truncations["orders", 0]
    assert {"KF201": 3, "KF213": 1} == {code: count for code, count in summary.findings_by_code.items() if code < "KF4"}


@pytest.mark.spark
@pytest.mark.parametrize(
    ("incident_name", "below", "scanned"),
    [
        ("unclean-election-4.x", [f"snapshots/{one}/{broker}" for broker, one in BROKERS.items()], {0, 1, 2}),
        ("unclean-election-4.x", [f"snapshots/{one}/{broker}" for broker, one in BROKERS.items()], {1}),
        ("consumer-ahead-4.x", ["snapshots/03-old-leader-down-live"], {0}),
        ("mixed-magic-1.1", ["snapshots/99-final"], {0}),
        pytest.param("unclean-election-2.8", ["snapshots/99-final", "logs"], {0, 1}, marks=pytest.mark.slow),
    ],
)
def test_evidence_is_judged_like_the_directories(run_audit, incident, plain, tmp_path, incident_name, below, scanned):
    places = [incident(incident_name) / one for one in below]
    sources = [tmp_path / f"evidence-{number}" if number in scanned else one for number, one in enumerate(places)]
    for number in scanned:
        scan_node([places[number]], sources[number])

    summary, _ = run_audit(*sources)

    expected = compare(case_of(find_inputs(places, with_server_logs=True)), keep_quiet=True)
    assert sorted(map(plain, expected.findings)) == sorted(
        plain(one) for one in summary.findings if not one.code.startswith("KF4")
    )
    assert {
        str(one.partition): json.loads(plain(plain_report(one.report)))
        for one in expected.partitions
        if one.report is not None and one.verdict.value not in {"leader", "consistent"}
    } == {f"{one.topic}-{one.partition}": json.loads(one.report) for one in summary.worst}
    assert "KF408" not in summary.findings_by_code
    assert () == summary.problems


@pytest.mark.spark
def test_options_choose_topics_of_evidence_too(run_audit, snapshots, tmp_path):
    scan_node([snapshots / "03-old-leader-down-live" / "broker-2"], tmp_path / "evidence")

    summary, _ = run_audit(tmp_path / "evidence", options=Ask(topics=frozenset({"orders"}), partitions=frozenset({0})))

    assert 1 == summary.partition_count
    assert () == summary.problems
    with pytest.raises(UsageError, match="no partition of topic none is among the inputs"):
        run_audit(tmp_path / "evidence", options=Ask(topics=frozenset({"orders", "none"})))


def test_changed_directories_are_carried_again_and_missing_ones_removed(snapshots, tmp_path):
    node, evidence = tmp_path / "broker-2", tmp_path / "evidence"
    copied(snapshots / "03-old-leader-down-live" / "broker-2", node)
    scan_node([node], evidence)
    before = {part.name: part.stat().st_mtime_ns for part in (evidence / "batches").iterdir()}
    shutil.rmtree(node / "orders-1")
    segment = node / "orders-0" / "00000000000000000000.log"
    with segment.open("r+b") as file:
        file.truncate(segment.stat().st_size - 1)

    scan_node([node], evidence)

    after = {part.name: part.stat().st_mtime_ns for part in (evidence / "batches").iterdir()}
    assert len(before) - 1 == len(after)
    assert 1 == sum(before[name] != time for name, time in after.items())

    scan_node([node], evidence, digests_only=True)

    assert [] == list((evidence / "batches").iterdir())


def test_everything_is_read_at_the_rate(incident, tmp_path, monkeypatch):
    node = incident("consumer-ahead-4.x") / "snapshots" / "99-final" / "broker-1"
    spent: list[int] = []
    monkeypatch.setattr(Pace, "spent", lambda _pace, count: spent.append(count))

    scan_node([node], tmp_path / "evidence", rate=1 << 40)

    logs = [one for one in node.rglob("*.log") if one.stat().st_size]
    offsets = [one for one in logs if one.parent.name.startswith("__consumer_offsets-")]
    # All logs for their batches; those of consumer offsets for digests of their records, and for the commits in them, too.
    least = sum(one.stat().st_size for one in logs) + 2 * sum(one.stat().st_size for one in offsets)
    assert offsets
    assert sum(spent) >= least
    assert mapped._pace is None
