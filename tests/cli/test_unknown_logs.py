"""Logs that can't be read, that stand-ins took the place of, or that a copy left out: of their records, and of where they end, no command says anything."""

import json
import os
import re
import shutil

import pytest

from kforensics.cli.app import run
from tests.builders.directories import copied
from tests.opened import opened_path
from tests.schemas import reason

PARTITION = "orders-0"
SEGMENT = f"{0:020}.log"
EPOCHS = "leader-epoch-checkpoint"
LEADER, FOLLOWER = 2, 1
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{64 * 'c'}\nsize 734003200\n"
PAGE = "<!DOCTYPE html>\n<html><title>404 Not Found</title></html>\n" * 40
CLAIMS = re.compile(
    r"will discard|will truncate|alone holds|only on broker|ONLY BROKER|DATA AT RISK|agree|lost from|does not start"
)
"""What must not be said where the log that it depends on is not known."""


@pytest.fixture
def cluster(fixtures, tmp_path):
    """Three brokers and their controller after an unclean election: broker 2 leads `PARTITION`, broker 1 will truncate 43 records of it."""
    return copied(fixtures / "unclean-election", tmp_path / "in")


@pytest.fixture
def refused(monkeypatch):
    """Files and directories that the operating system lets nobody read; even root can't change that."""
    paths: set[str] = set()
    opened, listed = os.open, os.scandir

    def refusing(real):
        def call(path=".", *arguments, **options):
            if opened_path(path, options.get("dir_fd")) in paths:
                raise PermissionError(13, "Permission denied", str(path))
            return real(path, *arguments, **options)

        return call

    monkeypatch.setattr(os, "open", refusing(opened))
    monkeypatch.setattr(os, "scandir", refusing(listed))
    return paths


def document(capsys, *arguments):
    code = run([*map(str, arguments), "--format", "json"])
    return code, json.loads(capsys.readouterr().out)


def screen(capsys, *arguments):
    run([*map(str, arguments)])
    out, err = capsys.readouterr()
    return " ".join((out + err).split())


def of_partition(found):
    (one,) = [each for each in found["partitions"] if f"{each['topic']}-{each['partition']}" == PARTITION]
    return one, {each["broker_id"]: each for each in one["replicas"]}


@pytest.mark.parametrize("what", [f"{PARTITION}/{SEGMENT}", f"{PARTITION}/{EPOCHS}", PARTITION])
@pytest.mark.parametrize("broker", [LEADER, FOLLOWER])
@pytest.mark.parametrize("is_captured", [False, True])
@pytest.mark.some(
    "False-2-orders-0/00000000000000000000.log", "False-1-orders-0/leader-epoch-checkpoint", "True-2-orders-0"
)
@pytest.mark.some("False-2-orders-0/00000000000000000000.log", "False-1-orders-0/leader-epoch-checkpoint")
def test_of_a_log_that_can_not_be_read_nothing_is_judged(cluster, refused, capsys, tmp_path, broker, what, is_captured):
    refused.add(str(cluster / f"broker-{broker}" / what))
    inputs = [cluster]
    if is_captured:
        inputs = [tmp_path / f"{name}.kfc" for name in ("broker-1", "broker-2", "broker-3", "controller-100")]
        for path in inputs:
            run(["capture", str(cluster / path.stem), "-o", str(path)])
        refused.clear()
        capsys.readouterr()

    code, compared = document(capsys, "diff", *inputs, "--topic", "orders", "--partition", "0")
    partition, replicas = of_partition(compared)
    assert (3, "unknown", "unreadable") == (code, compared["answer"]["state"], partition["verdict"])
    assert "unreadable" == reason(replicas[broker], "log_end_offset")
    assert [] == partition["sole_holders"]
    if broker == LEADER:
        assert LEADER == partition["leader"]["broker_id"]
        assert [] == [one for one in replicas.values() if one["expected_truncation"] is not None]
    for command in (
        ["diff"],
        ["explain"],
        ["trace", "--offset", "3"],
        ["salvage", "--what", "at-risk", "-o", str(tmp_path / "out")],
    ):
        said = screen(capsys, *command, *inputs, "--topic", "orders", "--partition", "0")
        assert not CLAIMS.search(said), (command, CLAIMS.search(said))
        assert "not read" in said, command
    own = [one for one in inputs if str(broker) in one.stem] if is_captured else [cluster / f"broker-{broker}"]
    # The list of what is there looks at no leader epochs.
    for command in ("verify", *(() if what.endswith(EPOCHS) else ("ls",)), "predict"):
        code, found = document(capsys, command, *own)
        assert 3 == code, command
        assert found["problems"] or is_captured, command
    logs = [one for one in found["logs"] if one["path"].endswith(PARTITION)]
    assert {"unknown"} == {one["outcome"] for one in logs}
    assert not CLAIMS.search(screen(capsys, "predict", *own))


def test_an_earlier_copy_that_can_not_be_read_shows_no_loss(cluster, fixtures, refused, capsys):
    before = copied(fixtures / "unclean-election", cluster.parent / "before")
    for broker in (1, 2, 3):
        refused.add(str(before / f"broker-{broker}" / PARTITION / SEGMENT))

    _, found = document(capsys, "explain", cluster, "--before", before, "--topic", "orders", "--partition", "0")

    assert [] == found["truncations"]
    assert "maybe-lost" == found["answer"]["state"]
    assert "lost:" not in found["answer"]["headline"]
    assert all("could not be read" in one["message"] or "permission" in one["message"] for one in found["problems"])
    assert 3 == len(found["problems"])


def test_a_high_watermark_that_can_not_be_read_is_none_to_truncate_to(incident, tmp_path, refused, capsys):
    """Brokers of 0.10 truncate to their high watermark when they follow: without one the log would be cut to its start."""
    at = copied(incident("hw-loss-0.10") / "snapshots" / "99-final", tmp_path / "final")
    (checkpoint,) = sorted(at.glob("broker-2/**/replication-offset-checkpoint"))
    refused.add(str(checkpoint))

    code, found = document(capsys, "diff", at, "--leader", "1")

    assert 3 == code
    follower = {one["broker_id"]: one for one in found["partitions"][0]["replicas"]}[2]
    assert "unreadable" == follower["verdict"]
    assert reason(follower, "expected_truncation") is None
    assert "unreadable" == reason(follower, "high_watermark")


@pytest.mark.parametrize("content", [POINTER, PAGE])
@pytest.mark.some(1)
def test_a_stand_in_for_a_segment_is_no_log(cluster, capsys, content):
    log = cluster / "broker-2" / PARTITION / SEGMENT
    log.write_text(content)
    says = "git lfs pull" if content is POINTER else "it is text and no Kafka log"

    for command in (["diff"], ["explain"], ["verify"], ["ls"], ["predict"], ["trace", "-t", "orders", "--offset", "3"]):
        said = screen(capsys, *command, cluster)
        assert says in said, command
        assert "unfinished batch" not in said, command
    code, found = document(capsys, "diff", cluster, "--topic", "orders", "--partition", "0")
    assert (3, "unreadable") == (code, found["partitions"][0]["verdict"])
    assert 3 == run(["dump", str(log)])
    assert says in capsys.readouterr().err
    if content is POINTER:
        assert "734,003,200 bytes" in said
        assert 64 * "c" in said


@pytest.mark.parametrize(
    "name",
    ["meta.properties", "recovery-point-offset-checkpoint", f"{PARTITION}/partition.metadata", f"{PARTITION}/{EPOCHS}"],
)
@pytest.mark.some(2)
def test_a_pointer_in_the_place_of_a_small_file_is_told_as_one(cluster, capsys, name):
    broker = cluster / "broker-2"
    (broker / name).write_text(POINTER)

    code, found = document(capsys, "verify", broker)

    assert 3 == code
    assert any("git lfs pull" in one["message"] for one in found["problems"] if one["path"].endswith(name))
    assert [] == [one for one in found["files"] if one["state"] == "damaged"]


def test_logs_that_one_broker_of_three_lacks_are_compared_with_none(cluster, capsys):
    for log in (cluster / "broker-3").rglob("*.log"):
        log.unlink()

    _, found = document(capsys, "diff", cluster)

    assert "no .log file of any partition is here" in " ".join(one["message"] for one in found["problems"])
    for partition in found["partitions"]:
        lacking = [one for one in partition["replicas"] if one["broker_id"] == 3]
        assert ["unreadable"] == [one["verdict"] for one in lacking]
        assert ["unknown"] == [reason(one, "log_end_offset") for one in lacking]
        assert [] == partition["sole_holders"]
    said = screen(capsys, "predict", cluster / "broker-3")
    assert "no .log file of any partition is here" in said
    assert "log end 0" not in said
    assert "loads all" not in said


@pytest.mark.slow
def test_a_log_that_a_copy_left_out_is_not_lost(cluster, capsys):
    """As by a limit of the file size: indexes and checkpoints are there."""
    before = copied(cluster, cluster.parent / "before")
    for broker in (1, 2, 3):
        (cluster / f"broker-{broker}" / PARTITION / SEGMENT).unlink()

    code, found = document(capsys, "diff", cluster, "--topic", "orders", "--partition", "0")
    partition, _ = of_partition(found)
    assert (1, "unreadable") == (code, partition["verdict"])
    assert "maybe-at-risk" == found["answer"]["state"]
    assert "left out of the copy" in found["answer"]["headline"]
    assert "copied while" not in found["answer"]["headline"]
    assert "No .log file" in screen(capsys, "diff", cluster, "--topic", "orders", "--partition", "0")

    _, found = document(capsys, "explain", cluster, "--before", before, "--topic", "orders", "--partition", "0")
    assert "maybe-at-risk" == found["answer"]["state"]
    assert [] == found["losses"]
    assert "left out of the copy" in found["answer"]["headline"]


@pytest.mark.parametrize("is_stopped", [False, True])
@pytest.mark.some(1)
def test_an_empty_log_below_its_high_watermark_is_lost_after_a_clean_stop_alone(cluster, capsys, is_stopped):
    for broker in (1, 2, 3):
        os.truncate(cluster / f"broker-{broker}" / PARTITION / SEGMENT, 0)
        (cluster / f"broker-{broker}" / PARTITION / EPOCHS).write_text("0\n0\n")
        if is_stopped:
            (cluster / f"broker-{broker}" / ".kafka_cleanshutdown").touch()

    _, found = document(capsys, "diff", cluster, "--topic", "orders", "--partition", "0")
    partition, _ = of_partition(found)
    _, verified = document(capsys, "verify", cluster)
    said = screen(capsys, "diff", cluster, "--topic", "orders", "--partition", "0")

    assert ("lost" == partition["verdict"]) is is_stopped
    assert ("damaged" == verified["answer"]["state"]) is is_stopped
    assert ("lost+found" in said) is is_stopped
    assert ("maybe at risk" in said) is not is_stopped


def test_a_directory_without_meta_properties_may_be_the_one_that_is_missing(cluster, capsys):
    shutil.rmtree(cluster / "broker-2")
    shutil.rmtree(cluster / "broker-3")
    (cluster / "broker-1" / "meta.properties").unlink()

    for command in ("diff", "explain"):
        said = screen(capsys, command, cluster)
        assert "meta.properties" in said, command
        assert "broker 1 is not among the inputs" not in said, command
        assert "add the directory of broker 1" not in said, command


@pytest.fixture
def stopped(incident, tmp_path):
    """A cluster that was stopped; the log of `orders-ok-0` is of seven segments on brokers 1 and 2."""
    return copied(incident("benign-rolling-restart-4.x") / "snapshots" / "99-final", tmp_path / "stopped")


@pytest.mark.parametrize("base", [0, 60, 120])
@pytest.mark.some(1)
def test_of_a_segment_that_a_copy_left_out_nothing_is_known(stopped, capsys, base):
    """Neither do replicas differ by it, nor is it alone on another, nor is it lost where an earlier copy has it."""
    before = copied(stopped, stopped.parent / "before")
    shutil.rmtree(stopped / "broker-3")
    for broker in (1, 2):
        (stopped / f"broker-{broker}" / "orders-ok-0" / f"{base:020}.log").unlink()

    code, found = document(capsys, "diff", stopped, "--topic", "orders-ok", "--partition", "0")
    assert (3, "unknown") == (code, found["answer"]["state"])
    assert "left out of the copy" in found["answer"]["headline"]
    assert not CLAIMS.search(found["answer"]["headline"])
    (partition,) = found["partitions"]
    assert partition["verdict"] not in {"silent-divergence", "lost"}
    assert [] == partition["sole_holders"]

    _, found = document(capsys, "explain", stopped, "--before", before, "--topic", "orders-ok", "--partition", "0")
    assert "unknown" == found["answer"]["state"]
    assert [] == found["losses"]


def test_no_damage_is_seen_behind_a_segment_that_can_not_be_read(stopped, refused, capsys):
    refused.add(str(stopped / "broker-2" / "orders-ok-0" / f"{120:020}.log"))

    code, found = document(capsys, "verify", stopped / "broker-2")

    assert (3, "unknown") == (code, found["answer"]["state"])
    assert [] == [one for one in found["findings"] if one["code"] == "KF116"]
