"""Captures that a broker took of its disks, in an audit."""

import pytest

from kforensics.ask.model import Ask
from kforensics.commands.comparing import compare
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.fleet.rows import finding_of
from tests.builders.cases import case_of
from tests.builders.coordinators import batch, write_log
from tests.captures import take
from tests.fleet.test_identity import node

BROKERS = {
    "broker-1": "02-old-leader-killed",
    "broker-2": "03-old-leader-down-live",
    "broker-3": "03-old-leader-down-live",
}


@pytest.mark.parametrize("all_batches", [False, True])
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
@pytest.mark.some("unclean-election-4.x-below1-scanned1-False", "consumer-ahead-4.x-below2-scanned2-True")
def test_evidence_is_judged_like_the_directories(
    audit_here, incident, plain, tmp_path, incident_name, below, scanned, all_batches
):
    places = [incident(incident_name) / one for one in below]
    sources = [tmp_path / f"evidence-{number}.kfc" if number in scanned else one for number, one in enumerate(places)]
    for number in scanned:
        take([places[number]], sources[number], all_batches=all_batches)

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


def test_captures_that_were_replaced_are_read_again_by_the_same_process(audit_here, tmp_path):
    place = node(tmp_path / "broker-1", 1, partitions=("orders-0",))
    evidence = tmp_path / "node.kfc"

    def ends():
        evidence.unlink(missing_ok=True)
        take([place], evidence)
        return [row["log_end_offset"] for row in audit_here(evidence).rows("replicas")]

    assert [5] == ends()
    write_log(place, "orders-0", (0, b"".join(batch(at, [(b"k", b"v")]) for at in range(9))))
    assert [9] == ends()
