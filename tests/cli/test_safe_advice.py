"""What `verify` advises is safe for the broker as it was stopped: an index, a snapshot or an unfinished end is not always harmless."""

import json

import pytest

from kforensics.cli.app import run
from kforensics.findings.rule import all_rules
from tests.builders.directories import copied

SEGMENT = "orders-0/00000000000000000000.log"


@pytest.fixture
def node(fixtures, tmp_path):
    return copied(fixtures / "unclean-election" / "broker-2", tmp_path / "broker-2")


def verify(capsys, node, code):
    run(["verify", str(node), "--format", "json"])
    return [finding for finding in json.loads(capsys.readouterr().out)["findings"] if finding["code"] == code]


def flip(path, position):
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def test_a_missing_index_is_harmless_only_where_the_segment_is_sound(node, capsys):
    (node / SEGMENT).with_suffix(".index").unlink()
    (sound,) = verify(capsys, node, "KF114")
    flip(node / SEGMENT, 200)
    (damaged,) = verify(capsys, node, "KF114")

    assert "note" == sound["severity"]
    assert "Check these segments" in sound["advice"]
    assert "error" == damaged["severity"]
    assert "a hole" in damaged["meaning"]
    assert "truncates the segment there" in damaged["statement"]


def test_a_missing_time_index_makes_no_broker_scan(node, capsys):
    (node / SEGMENT).with_suffix(".timeindex").unlink()
    flip(node / SEGMENT, 200)
    (found,) = verify(capsys, node, "KF114")

    assert "note" == found["severity"]
    assert "it stays empty until the segment is recovered" in found["statement"]


@pytest.mark.parametrize(
    ("tail", "clean", "kind", "words"),
    [
        (bytes(100), True, ("KF101", "error"), "stops with a CorruptRecordException"),
        (bytes(100), False, ("KF110", "note"), "recovery truncates the log here"),
        (bytes(10), True, ("KF101", "error"), "these bytes stay"),
        (None, True, ("KF101", "error"), "those records included"),
        (None, False, ("KF110", "note"), "nothing before it is touched"),
    ],
)
@pytest.mark.some(2)
def test_an_unfinished_end_behind_a_clean_shutdown_marker_stays(node, capsys, tail, clean, kind, words):
    log = node / SEGMENT
    whole = log.read_bytes()
    log.write_bytes(whole + (whole[:40] if tail is None else tail))
    marker = node / ".kafka_cleanshutdown"
    marker.unlink(missing_ok=True)
    if clean:
        marker.write_text('{"version":0,"brokerEpoch":1}')
    everything = verify(capsys, node, "KF101") + verify(capsys, node, "KF110")
    (found,) = everything

    assert (*kind, True) == (found["code"], found["severity"], words in found["meaning"])


def test_an_index_of_a_damaged_segment_must_stay(node, capsys):
    index = (node / SEGMENT).with_suffix(".index")
    index.write_bytes(b"\x00\x00\x00\x05\x00\x00\x00\x09")
    (node / ".kafka_cleanshutdown").write_text("")
    (general,) = {finding["advice"] for finding in verify(capsys, node, "KF103")}
    flip(node / SEGMENT, (node / SEGMENT).stat().st_size - 50)
    (precise,) = {finding["advice"] for finding in verify(capsys, node, "KF103")}

    assert all_rules()["KF103"].advice == general
    assert precise.startswith("Do not set it aside: its segment has a batch that fails at byte")


def test_the_only_snapshot_must_stay_after_a_clean_stop(node, capsys):
    partition = node / "orders-0"
    for old in partition.glob("*.snapshot"):
        old.unlink()
    (partition / "00000000000000000003.snapshot").write_bytes(bytes(40))
    (node / ".kafka_cleanshutdown").write_text("")
    (clean,) = {finding["advice"] for finding in verify(capsys, node, "KF105")}
    (partition / "00000000000000000002.snapshot").write_bytes(bytes(40))
    (several,) = {finding["advice"] for finding in verify(capsys, node, "KF105")}

    assert clean.startswith("Do not set it aside: it is the only snapshot")
    assert all_rules()["KF105"].advice == several


def test_no_replica_is_emptied_that_alone_holds_records(incident, capsys):
    """Broker 2 took records of its own while it led, so its leader epochs go down again: its log is whole and its records are nowhere else."""
    run(["diff", str(incident("fast-failover-1.1") / "snapshots" / "99-final"), "--format", "json"])
    document = json.loads(capsys.readouterr().out)

    first = next(one for one in document["partitions"] if (one["topic"], one["partition"]) == ("payments", 0))
    assert 2 in {one["broker_id"] for one in first["sole_holders"]}
    steps = document["answer"]["now"]
    assert any(step.startswith("Empty and delete no replica of payments-0") for step in steps)
    assert not any("copy it again into an empty directory" in step for step in steps)
