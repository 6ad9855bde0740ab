"""What operators do on purpose, as ZooKeeper-era brokers leave it behind: reported as such by log lines, by disks alone, and never as a loss."""

import shutil

import pytest

from tests.builders.directories import copied
from tests.builders.explained import explain

pytestmark = pytest.mark.usefixtures("read_once")

DELETED = "a client asked to delete the records of ledger-0 below 15"
MOVED = "moved-0 was reassigned from brokers [1, 2] to [2, 3]"
RECREATED = "topic again was deleted and created again under the same name"


def meanings(document):
    return {one["meaning"] for one in document["operations"]}


@pytest.mark.parametrize("name", ["operator-actions-2.5", "operator-actions-2.8"])
@pytest.mark.parametrize(
    ("what", "expected"),
    [
        (("--before", "snapshots/01-before-live", "snapshots/99-final", "logs"), {DELETED, MOVED, RECREATED}),
        (("snapshots/99-final", "logs"), {DELETED, MOVED, RECREATED}),
        (("--before", "snapshots/01-before-live", "snapshots/99-final"), {DELETED, MOVED, RECREATED}),
        (("snapshots/99-final",), {DELETED}),
    ],
)
@pytest.mark.some(3)
def test_operations_are_reported_and_nothing_is_lost(name, what, expected, incident, capsys):
    root = incident(name)
    document, code = explain(capsys, *(one if one.startswith("--") else root / one for one in what))
    state = document["answer"]["state"]

    # Without a line of a leader nothing shows which replica leads.
    assert (0, "nothing-lost") == (code, state) if "logs" in what else (3, "unknown") == (code, state)
    assert expected == meanings(document)
    assert (
        []
        == document["losses"]
        == [truncation for truncation in document["truncations"] if truncation["logged"] is False]
    )
    calm = "Nothing that was committed is missing" if state == "nothing-lost" else "No input shows a loss"
    assert document["conclusion"][0].startswith(calm)
    assert document["conclusion"][1].startswith("On purpose, and no loss: ")
    assert all(one["citations"] for one in document["operations"])
    times = {one["meaning"]: one["time_ms"] for one in document["operations"]}
    # Up to 2.5 brokers do not say why a log start moved.
    assert isinstance(times[DELETED], int) == ("2.8" in name and root / "logs" in [root / one for one in what])


def test_one_brokers_lines_show_no_unclean_election_that_they_can_not_know_of(incident, capsys):
    root = incident("operator-actions-2.5")
    document, code = explain(capsys, root / "snapshots" / "99-final" / "broker-2", root / "logs" / "broker-2")

    assert 3 == code
    assert [] == [entry for entry in document["timeline"] if entry["kind"] == "unclean-election"]


def test_a_clean_election_that_loses_what_was_committed_is_no_normal_end_of_a_tail(incident, capsys):
    root = incident("damaged-leader-2.8")
    document, _ = explain(capsys, root / "snapshots" / "99-final" / "broker-2", root / "logs" / "broker-2")

    # Of leader epoch 2 no line of broker 2 says who led, so nothing shows in which election the records were missing.
    assert {"unknown"} == {truncation["cause"] for truncation in document["truncations"]}
    # The checkpoint of now says nothing of segments that were put aside before.
    assert not any("alone in leader epoch 4" in loss["reason"] for loss in document["losses"])


def test_server_logs_alone_show_that_a_topic_was_created_again(incident, capsys):
    root = incident("operator-actions-2.8")
    logs = sorted((root / "logs").glob("*/server.log"))
    document, code = explain(capsys, root / "snapshots" / "99-final", *logs)

    assert 3 == code
    assert {DELETED, RECREATED} <= meanings(document)


def test_a_directory_that_waited_through_the_making_of_its_topic_lost_nothing(incident, capsys):
    root = incident("reassignment-jbod-2.8")
    document, code = explain(capsys, root / "snapshots" / "99-final", root / "logs")

    assert {"recreated-topic"} == {
        truncation["cause"] for truncation in document["truncations"] if truncation["topic"] == "sessions"
    }
    assert [] == [loss for loss in document["losses"] if loss["topic"] == "sessions"]
    assert any("topic sessions was deleted and created again" in one["meaning"] for one in document["operations"])
    # The copies that stay differ, as `diff` says, but nothing was lost when the topic was made.
    assert (1, "at-risk") == (code, document["answer"]["state"])
    assert "Nothing that was committed is lost" in document["answer"]["headline"]
    assert [] == document["losses"]


@pytest.mark.parametrize("name", ["acks1-tail-1.1", "acks1-tail-2.8"])
def test_log_lines_of_old_brokers_prove_that_a_tail_was_never_committed(name, incident, capsys):
    root = incident(name)
    document, code = explain(
        capsys, "--before", root / "snapshots" / "01-leader-killed-live", root / "snapshots" / "99-final", root / "logs"
    )

    assert (1, "uncommitted-lost") == (code, document["answer"]["state"])
    assert [(30, 36, 7, "no")] == [
        (one["first_offset"], one["last_offset"], one["records"], one["was_committed"]) for one in document["losses"]
    ]
    assert "broker 2 was in the ISR and its log ended at 30" in document["losses"][0]["reason"]
    assert [("uncommitted-tail", "proven", True)] == [
        (truncation["cause"], truncation["confidence"], truncation["agrees"]) for truncation in document["truncations"]
    ]


def test_a_leader_alone_commits_nothing_where_two_must_be_in_sync(incident, capsys):
    root = incident("min-isr-4.1")
    before = ("--before", root / "snapshots" / "01-leader-killed-live")
    document, code = explain(capsys, *before, root / "snapshots" / "99-final", root / "logs")

    assert (1, "uncommitted-lost") == (code, document["answer"]["state"])
    assert {"no"} == {one["was_committed"] for one in document["losses"]}
    assert "eligible to lead" in document["losses"][0]["reason"]

    without_logs, _ = explain(capsys, *before, root / "snapshots" / "99-final")
    assert "certain" not in {one["was_committed"] for one in without_logs["losses"]}


def test_damage_that_recovery_meets_inside_of_the_leaders_log_is_the_cause(incident, capsys):
    root = incident("damaged-leader-2.8")
    before = [arg for path in sorted((root / "snapshots").glob("0*")) for arg in ("--before", path)]
    document, code = explain(capsys, *before, root / "snapshots" / "99-final", root / "logs")

    assert 1 == code
    assert {("damage", 35)} == {
        (truncation["cause"], truncation["to_offset"]) for truncation in document["truncations"]
    }
    assert 35 == sum(one["records"] for one in document["losses"] if one["was_committed"] == "certain")
    assert {"damage"} == {one["cause"] for one in document["losses"]}
    assert "damage inside of a log" in document["conclusion"][0]


def test_damage_that_no_recovery_looked_at_is_the_cause_too(incident, capsys):
    root = incident("damage-unread-2.8")
    document, code = explain(capsys, root / "snapshots" / "99-final", root / "logs")

    assert 1 == code
    assert [("damage", 35, 39, True)] == [
        (one["cause"], one["first_offset"], one["last_offset"], one["held_by"][0]["in_use"])
        for one in document["losses"]
    ]
    assert any("audit-0 on broker 1 is damaged at offset 35" in sentence for sentence in document["conclusion"])


@pytest.mark.slow
def test_a_partition_whose_topic_was_deleted_on_request_needs_no_log(incident, tmp_path, capsys):
    root = incident("mixed-magic-1.1")

    document, code = explain(capsys, root / "snapshots" / "99-final", root / "logs")

    assert (code, document["answer"]["state"]) == (0, "nothing-lost")
    logs = copied(root / "logs", tmp_path / "logs", ignore=shutil.ignore_patterns("controller.log*"))
    document, code = explain(capsys, root / "snapshots" / "99-final", logs)
    assert (code, document["answer"]["state"]) == (3, "unknown")
    assert "what the leader holds (gone-0)" in document["answer"]["headline"]
