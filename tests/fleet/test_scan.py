"""Evidence that brokers extract themselves, and its way into an audit."""

import json
import shutil

import pytest

from kforensics.errors import EvidenceUnreadable, UsageError
from kforensics.evidence.inputs import find_inputs
from kforensics.fleet.local_scan import scan_node
from kforensics.fleet.places import find_sources
from kforensics.fleet.sources import Source, read_sources
from kforensics.fleet.tables import SCAN_MANIFEST, Tables
from kforensics.fleet.throttle import RateLimit, lower_priority, parse_rate
from kforensics.pipeline.diff import DiffOptions, compare

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
    assert tables.names("copies/0/__cluster_metadata-0")


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
    shutil.copytree(snapshots / "03-old-leader-down-live" / "broker-2", node)
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
@pytest.mark.xdist_group("spark")
def test_evidence_alone_tells_what_will_be_cut(run_audit, snapshots, tmp_path):
    places = [snapshots / snapshot / broker for broker, snapshot in BROKERS.items()]
    for number, place in enumerate(places):
        scan_node([place], tmp_path / f"evidence-{number}")

    summary, _ = run_audit(*(tmp_path / f"evidence-{number}" for number in range(3)))

    expected = compare(find_inputs(places), DiffOptions(), jobs=1)
    assert {
        str(one.partition): one.verdict.value for one in expected.partitions if "metadata" not in one.partition.topic
    } == {
        **{str(one.partition): "consistent" for one in expected.partitions if "metadata" not in one.partition.topic},
        **{f"{one.topic}-{one.partition}": one.verdict for one in summary.worst if "metadata" not in one.topic},
    }
    cuts = {
        (one.topic, one.partition): [
            (
                replica["broker_id"],
                replica["expected_truncation"]["offset"],
                replica["expected_truncation"]["committed"],
            )
            for replica in json.loads(one.report)["replicas"]
            if "offset" in replica["expected_truncation"]
        ]
        for one in summary.worst
    }
    assert [(1, 60, {"certain": 43, "possible": 0, "no": 0})] == cuts["orders", 0]
    assert {"KF201": 3, "KF213": 1} == {code: count for code, count in summary.findings_by_code.items() if code < "KF4"}


@pytest.mark.parametrize(
    ("text", "rate"), [("50MB/s", 50_000_000), ("1.5GiB/s", 1_610_612_736), ("800000", 800_000), ("10k", 10_000)]
)
def test_rates(text, rate):
    assert rate == parse_rate(text)


@pytest.mark.parametrize("text", ["", "fast", "-5MB/s", "0", "5 TB/s"])
def test_no_rates(text):
    with pytest.raises(UsageError):
        parse_rate(text)


def test_reading_waits_for_its_budget():
    now = [0.0]
    limit = RateLimit(1_000_000, clock=lambda: now[0], sleep=lambda seconds: now.__setitem__(0, now[0] + seconds))

    class Source:
        size = 5_000_000

        def read_into(self, position, buffer):
            return min(len(buffer), max(self.size - position, 0))

    source = limit.wrap(Source())
    assert 5_000_000 == source.read_into(0, memoryview(bytearray(6_000_000)))
    assert 5.0 == pytest.approx(now[0])


def test_priority_is_lowered_in_a_process_of_its_own():
    import multiprocessing

    process = multiprocessing.get_context("fork").Process(target=lower_priority)
    process.start()
    process.join()
    assert 0 == process.exitcode
