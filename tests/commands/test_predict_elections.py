"""Who is elected once brokers are back, from which list, and what that loses (KIP-966): by predict, diff and explain."""

import json
import shutil

import pytest

from kforensics.cli.app import run
from tests.builders.directories import copied

NOW = ("--now", "2026-11-26T23:00:00Z")


@pytest.fixture
def say(capsys):
    def call(name, *arguments):
        run([name, *map(str, arguments), *(NOW if name == "predict" else ()), "--format", "json"])
        return json.loads(capsys.readouterr().out)

    return call


@pytest.fixture
def cluster(quorums, tmp_path):
    """Two brokers and a controller that were stopped one after the other: ISR empty, ELR and last known leader are broker 2."""
    root = quorums("dynamic-half-done") / "before"
    target = tmp_path / "cluster"
    target.mkdir()
    for name in ("broker-1", "broker-2", "controller-101"):
        copied(root / name, target / name)
    return target


def test_a_member_of_the_elr_that_stopped_cleanly_is_elected_cleanly(cluster, say):
    later = say("predict", cluster)["answer"]["later"]

    assert [
        "Once back, broker 2 is elected for 2 partitions (orders-0 and payments-0) from the ELR. That is clean, with all that the last leader had committed (KIP-966)."
    ] == [one for one in later if "elected" in one]


def test_the_only_member_of_the_elr_leads_where_the_metadata_is_that_of_now(incident, say):
    nodes = incident("unclean-election-4.x") / "snapshots" / "99-final"
    reports = say("diff", nodes, "-v", "--topic", "orders")["partitions"]

    assert {3} == {one["leader"]["broker_id"] for one in reports}
    assert all(
        "broker 3 is in its ELR, which is elected cleanly (KIP-966)" in one["leader"]["reason"] for one in reports
    )
    # What a broker knows of elections ends where it stopped.
    brokers = [nodes / f"broker-{number}" for number in (1, 2, 3)]
    reports = say("diff", *brokers, "-v", "--topic", "orders")["partitions"]
    assert not any("in its ELR" in one["leader"]["reason"] for one in reports)


def test_one_that_did_not_is_elected_as_the_last_known_leader_and_what_that_may_lose_is_told(cluster, say):
    (cluster / "broker-2" / ".kafka_cleanshutdown").unlink()
    later = say("predict", cluster)["answer"]["later"]

    (said,) = [one for one in later if "is elected" in one]
    assert "broker 2 is elected for 2 partitions (orders-0 and payments-0) as the last known leader" in said
    assert "nothing, unless its machine went down too (power, kernel)." in said
    assert "None of its logs ends below what its other files say, which speaks against it." in said
    assert "cleanly, with all" not in said


def test_a_log_that_ends_below_what_its_files_say_speaks_for_a_machine_that_went_down(cluster, say):
    (cluster / "broker-2" / ".kafka_cleanshutdown").unlink()
    log = next((cluster / "broker-2" / "orders-0").glob("*.log"))
    log.write_bytes(b"")
    (said,) = [one for one in say("predict", cluster)["answer"]["later"] if "is elected" in one]

    assert "orders-0 ends below what other files say of it, which speaks for that." in said
    assert "speaks against" not in said


def test_a_loss_by_a_leader_that_came_back_has_its_condition(quorums, say):
    after = quorums("voter-restored") / "after"
    (said,) = [one for one in say("explain", after)["answer"]["unknown"] if "Only a machine that went down" in one]

    assert "Evidence against it: none of its 2 logs ends below a high watermark that it wrote down." in said
    assert said.endswith(
        "The journal of its machine settles it (`journalctl --list-boots`): no boot before the broker came back, and the same disk: nothing was lost."
    )


def test_a_machine_that_lost_power_is_told_by_what_its_recovery_found(incident, say):
    cut = incident("power-cut-2.8")
    given = cut / "snapshots" / "99-final", cut / "logs"
    answer = say("explain", *given)["answer"]

    # Two of the batches that it found damaged were there, and are gone.
    assert answer["headline"].startswith(
        "At least 2 offsets of readings (2 partitions) were truncated, whose records were possibly"
    )
    (one,) = [one for one in answer["unknown"] if "Only a machine that went down" in one]
    assert "Evidence for it: its recovery found damaged records or zeros in readings-2" in one
    # Who compares the same replicas says it too.
    assert say("diff", *given)["answer"]["headline"].startswith(answer["headline"].partition(". ")[0])


def test_an_empty_disk_does_not_speak_against_a_loss(cluster, say):
    for one in (cluster / "broker-2").iterdir():
        if one.name in {"orders-0", "payments-0"}:
            shutil.rmtree(one)
        elif one.name == ".kafka_cleanshutdown" or one.name.endswith("checkpoint"):
            one.unlink()
    (said,) = [one for one in say("predict", cluster)["answer"]["later"] if "is elected" in one]

    assert "it makes the other replicas truncate theirs to 0." in said
    assert "speaks against" not in said
    assert "nothing, unless" not in said
