"""Log directories of one broker as they lie side by side: what is wrong with them is said by diff, explain and triage, as by predict."""

import json
import re
import shutil

import pytest

from kforensics.cli.app import run
from tests.builders.directories import copied, two_log_dirs

COMMANDS = ("diff", "explain", "triage")
NOT_CALM = {"unknown", "will-not-start", "maybe-lost", "lost", "at-risk", "maybe-at-risk"}
FUTURE = "orders-0.0123456789abcdef0123456789abcdef-future"


@pytest.fixture
def say(capsys):
    def call(name, *arguments):
        run([name, *map(str, arguments), "--format", "json"])
        document = json.loads(capsys.readouterr().out)
        return document["answer"], [one["code"] for one in document.get("findings", ())]

    return call


@pytest.fixture
def disks(quorums, tmp_path):
    return two_log_dirs(quorums("only-controller-emptied") / "before", tmp_path)


def cluster(disks):
    return disks[0].parent.parent


@pytest.mark.parametrize("command", COMMANDS)
def test_two_log_directories_that_are_in_order_are_no_trouble(disks, say, command):
    answer, codes = say(command, cluster(disks))

    assert not {"KF502", "KF516", "KF517"} & set(codes)
    assert not any(words in answer["headline"] for words in ("log directories", "topic id", "future log"))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_move_that_can_never_catch_up(disks, say, command):
    first, second = disks
    shutil.copytree(first / "orders-0", second / FUTURE)
    answer, codes = say(command, cluster(disks))
    assert "future log" not in answer["headline"]

    (second / FUTURE / f"{0:020}.log").write_bytes(b"")
    (first / "log-start-offset-checkpoint").write_text("0\n1\norders 0 3\n")
    answer, codes = say(command, cluster(disks))
    assert (
        f"The future log d2/{FUTURE} ends at 0, below 3, where the log of orders-0 in d1/orders-0 begins"
        in answer["headline"]
    )
    assert answer["state"] in NOT_CALM
    assert any("delete the -future directory alone" in one for one in answer["now"])
    assert command == "triage" or "KF516" in codes


@pytest.mark.parametrize("command", ["diff", "explain"])
def test_one_partition_in_two_log_directories_of_a_broker(disks, say, command):
    first, second = disks
    shutil.copytree(first / "orders-0", second / "orders-0")
    answer, codes = say(command, cluster(disks))

    assert answer["headline"].startswith("Broker 1 holds orders-0 in 2 of its log directories.")
    assert answer["state"] in NOT_CALM
    assert "KF502" in codes
    # Two copies of one log directory are no two disks.
    shutil.copy(first / "meta.properties", second / "meta.properties")
    assert "KF502" not in say(command, cluster(disks))[1]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.some(2)
def test_directories_whose_names_were_exchanged(disks, say, command):
    first, _ = disks
    (first / "orders-0").rename(first / "payments-1")
    (first / "payments-0").rename(first / "orders-0")
    (first / "payments-1").rename(first / "payments-0")
    answer, codes = say(command, cluster(disks))

    assert answer["headline"].startswith(
        "Broker 1 has d1/orders-0 with the topic id of payments, and does not serve it."
    )
    assert answer["state"] in NOT_CALM
    assert any("give each its own name again" in one for one in answer["now"])
    assert command == "triage" or "KF517" in codes
    assert "KF517" in say("predict", cluster(disks))[1]


@pytest.mark.parametrize("command", ["diff", "explain"])
@pytest.mark.parametrize("has_settings", [False, True])
def test_a_disk_that_returned_after_its_partition_was_made_anew_is_one_of_the_same_node(
    disks, say, command, has_settings
):
    first, second = disks
    copied(first / "orders-0", second / "orders-0")
    (second / "orders-0" / f"{0:020}.log").write_bytes(b"")
    for one in disks:
        meta = one / "meta.properties"
        meta.write_text("".join(f"{each}\n" for each in meta.read_text().splitlines() if "directory.id" not in each))
    given = [cluster(disks)]
    if has_settings:
        moved = cluster(disks) / "elsewhere" / "d2"
        moved.parent.mkdir()
        second.rename(moved)
        (first.parent / "server.properties").write_text(f"node.id=1\nlog.dirs={first}, {moved}\n")
    answer, codes = say(command, *given)

    assert "KF502" in codes
    assert answer["headline"].startswith(
        "Broker 1 holds orders-0 in 2 of its log directories: 6 offsets in one, and none"
    )
    assert "made anew while that log directory was offline" in answer["headline"]
    assert "moments" not in json.dumps(answer)
    assert answer["state"] in NOT_CALM


def test_copies_of_two_moments_are_no_disks_of_one_node(disks, capsys):
    first, second = disks
    shutil.rmtree(second)
    copied(first, second)
    for one in disks:
        meta = one / "meta.properties"
        meta.write_text("".join(f"{each}\n" for each in meta.read_text().splitlines() if "directory.id" not in each))
    shutil.rmtree(second / "__cluster_metadata-0")

    assert run(["diff", str(cluster(disks)), "--format", "json"]) == 3
    assert "given twice" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "state"), [("diff", "at-risk"), ("predict", "loses"), ("verify", "at-risk"), ("explain", "maybe-lost")]
)
@pytest.mark.some(1)
def test_one_disk_that_was_put_back_to_an_earlier_copy_can_lead_with_what_it_lacks(
    incident, say, tmp_path, command, state
):
    snapshots = incident("benign-rolling-restart-4.x") / "snapshots"
    cluster = tmp_path / "cluster"
    for one in (snapshots / "99-final").iterdir():
        copied(one, cluster / one.name / "d1" if one.name == "broker-3" else cluster / one.name)
    first, second = cluster / "broker-3" / "d1", cluster / "broker-3" / "d2"
    second.mkdir()
    for name in ("bootstrap.checkpoint", ".kafka_cleanshutdown"):
        shutil.copy(first / name, second / name)
    meta = (first / "meta.properties").read_text()
    (second / "meta.properties").write_text(re.sub("directory.id=.*", "directory.id=Xk0wxQGCNPSes97VI4wl8Q", meta))
    for one in first.glob("*-offset-checkpoint"):
        rest = [line for line in one.read_text().splitlines()[2:] if "orders-ok" not in line]
        one.write_text("\n".join(["0", str(len(rest)), *rest, ""]))
        (second / one.name).write_text("0\n0\n")
    for one in sorted(first.glob("orders-ok-*")):
        shutil.rmtree(one)
        copied(snapshots / "01-before-live" / "broker-3" / one.name, second / one.name)
    answer, _ = say(command, cluster)

    assert answer["state"] == state
    if command == "explain":
        assert (
            "broker 3, the last leader on record, leads with the log given, which is from before" in answer["headline"]
        )
    else:
        assert "if broker 3 is elected, which can be without an unclean election, 360 committed" in answer["headline"]
