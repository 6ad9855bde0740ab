"""What `fleet scan` takes of a broker's disks, and its way into an audit."""

import shutil

import pytest

from kforensics.ask.fleet import FleetAsk
from kforensics.ask.model import Ask
from kforensics.commands.capturing import earlier_captures
from kforensics.commands.comparing import compare
from kforensics.errors import UsageError
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.fleet.commands import run_scan
from kforensics.fleet.rows import finding_of
from kforensics.fleet.storage import StoragePath, parse_location
from tests.builders.cases import case_of
from tests.builders.coordinators import batch, write_log
from tests.builders.directories import copied
from tests.fleet.test_identity import node

BROKERS = {
    "broker-1": "02-old-leader-killed",
    "broker-2": "03-old-leader-down-live",
    "broker-3": "03-old-leader-down-live",
}


@pytest.fixture
def snapshots(incident):
    return incident("unclean-election-4.x") / "snapshots"


@pytest.fixture(autouse=True)
def settled(monkeypatch):
    """Files are older than what counts as changing."""
    monkeypatch.setattr(earlier_captures, "SETTLED_NS", 0)


def scan(place, out, **more):
    return run_scan(FleetAsk(paths=(place,), evidence=str(out), normal_priority=True, **more)).body


def test_a_scan_is_small_and_read_once(snapshots, tmp_path, untouched):
    node = snapshots / "03-old-leader-down-live" / "broker-2"

    with untouched(node):
        first = scan(node, tmp_path / "evidence")
    again = scan(node, tmp_path / "evidence")

    assert (7, 0, ()) == (first.replicas, first.reused_segments, first.problems)
    assert first.read_bytes > 100_000
    assert (first.segments, first.segments) == (again.segments, again.reused_segments)
    assert again.read_bytes < first.read_bytes
    assert ["node-2.kfc"] == [one.name for one in (tmp_path / "evidence").iterdir()]
    assert (tmp_path / "evidence" / "node-2.kfc").stat().st_size == again.evidence_bytes


def test_each_node_has_a_capture_and_what_is_of_none_is_said(snapshots, tmp_path):
    found = scan(snapshots / "03-old-leader-down-live", tmp_path / "evidence")

    names = sorted(one.name for one in (tmp_path / "evidence").iterdir())
    assert ["node-1", "node-100", "node-2", "node-3"] == [one.removesuffix(".kfc") for one in names]
    assert () == found.problems
    assert 4 == len(found.inputs)
    both = tmp_path / "both"
    for number in (2, 3):
        copied(snapshots / "03-old-leader-down-live" / f"broker-{number}", both / f"broker-{number}")
    copied(snapshots / "03-old-leader-down-live" / "broker-2" / "orders-0", tmp_path / "orders-0")
    loose = run_scan(
        FleetAsk(paths=(both, tmp_path / "orders-0"), evidence=str(tmp_path / "more"), normal_priority=True)
    ).body
    assert 14 == loose.replicas
    assert ["nothing says of which node it is"] == [one.message.split(": ")[1] for one in loose.problems]


def test_nothing_is_written_inside(snapshots, tmp_path):
    node = copied(snapshots / "03-old-leader-down-live" / "broker-2", tmp_path / "broker-2")
    with pytest.raises(UsageError, match="inside the evidence"):
        scan(node, node / "evidence")


def test_changed_directories_are_read_again_and_missing_ones_are_gone(snapshots, tmp_path):
    node, evidence = tmp_path / "broker-2", tmp_path / "evidence"
    copied(snapshots / "03-old-leader-down-live" / "broker-2", node)
    first = scan(node, evidence)
    shutil.rmtree(node / "orders-1")
    segment = node / "orders-0" / "00000000000000000000.log"
    with segment.open("r+b") as file:
        file.truncate(segment.stat().st_size - 1)

    second = scan(node, evidence)

    assert (first.replicas - 1, first.segments - 1) == (second.replicas, second.segments)
    assert second.segments - 1 == second.reused_segments


@pytest.mark.parametrize("digests_only", [False, True])
@pytest.mark.parametrize(
    ("incident_name", "below", "scanned"),
    [
        ("unclean-election-4.x", [f"snapshots/{one}/{broker}" for broker, one in BROKERS.items()], {0, 1, 2}),
        ("unclean-election-4.x", [f"snapshots/{one}/{broker}" for broker, one in BROKERS.items()], {1}),
        (
            "consumer-ahead-4.x",
            [f"snapshots/03-old-leader-down-live/broker-{number}" for number in (1, 2, 3)],
            {0, 1, 2},
        ),
        ("mixed-magic-1.1", ["snapshots/99-final/broker-1"], {0}),
    ],
)
def test_evidence_is_judged_like_the_directories(
    audit_here, incident, plain, tmp_path, incident_name, below, scanned, digests_only
):
    places = [incident(incident_name) / one for one in below]
    sources = [tmp_path / f"evidence-{number}" if number in scanned else one for number, one in enumerate(places)]
    for number in scanned:
        scan(places[number], sources[number], digests_only=digests_only)

    tables = audit_here(*sources, options=Ask(topics=frozenset({"orders", "billing", "events"}) & _topics(places)))

    expected = compare(case_of(find_inputs(places, with_server_logs=True), Ask()), keep_quiet=True)
    verdicts = {str(one.partition): one.verdict.value for one in expected.partitions}
    found = {f"{row['topic']}-{row['partition']}": row["verdict"] for row in tables.rows("partitions")}
    assert found
    assert found == {name: verdicts[name] for name in found}
    statements = {one.statement for one in expected.findings}
    assert {
        finding_of(row).statement for row in tables.rows("findings") if row["topic"] and row["code"] < "KF4"
    } <= statements
    assert 0 == tables.row_count("problems")


def _topics(places):
    return {one.name.rpartition("-")[0] for place in places for one in place.iterdir() if one.is_dir()}


def test_evidence_goes_to_other_storage_whole(snapshots, tmp_path):
    node = snapshots / "03-old-leader-down-live" / "broker-2"

    found = scan(node, f"mock:///{tmp_path.name}")

    assert f"mock:///{tmp_path.name}" == found.evidence
    folder = parse_location(f"mock:///{tmp_path.name}")
    assert isinstance(folder, StoragePath)
    assert [("node-2.kfc", found.evidence_bytes)] == [(one.name, one.length) for one in folder.entries()]


def test_captures_that_were_replaced_are_read_again_by_the_same_process(audit_here, tmp_path):
    place = node(tmp_path / "broker-1", 1, partitions=("orders-0",))
    evidence = tmp_path / "evidence"

    def ends():
        scan(place, evidence)
        return [row["log_end_offset"] for row in audit_here(evidence).rows("replicas")]

    assert [5] == ends()
    write_log(place, "orders-0", (0, b"".join(batch(at, [(b"k", b"v")]) for at in range(9))))
    assert [9] == ends()
