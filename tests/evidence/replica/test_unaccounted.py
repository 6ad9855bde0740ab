"""Logs that are gone, and logs that were copied while their broker ran."""

import json
import os
import shutil
from pathlib import Path

import pytest

from kforensics.cli.app import run
from kforensics.damage import Absent
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.evidence.discovery.partition_dirs import LOGS_LEFT_OUT, find_places
from kforensics.evidence.replica.collect import collect_replica
from kforensics.evidence.replica.unaccounted import (
    Sign,
    Unaccounted,
    find_unaccounted,
    lost_metadata_log,
    unaccounted_offsets,
)
from kforensics.formats.segment.walk import Level, walk_segment
from kforensics.source.mapped import open_evidence
from kforensics.source.naming import parse_file_name
from kforensics.units import TopicPartition
from tests.builders.directories import copied

SEGMENTS = [(0, 20, "0.log"), (20, 40, "20.log"), (40, 60, "40.log")]


@pytest.fixture
def broker(incident, tmp_path):
    """A broker that stopped cleanly; each partition has several segments."""
    target = tmp_path / "broker-1"
    copied(incident("benign-rolling-restart-4.x") / "snapshots" / "99-final" / "broker-1", target)
    return target


def replicas(path):
    places = find_places(find_inputs([path]))
    return {str(tp): collect_replica(place).replica for tp, group in places.by_partition.items() for place in group}


def found(segments, orphans=None, **options):
    given = {"log_start": None, "reach": 60, "is_whole": True} | options
    return [(one.first, one.last, one.sign) for one in find_unaccounted(segments, orphans or {}, **given)]


def test_a_whole_log_accounts_for_all_offsets():
    assert [] == found(SEGMENTS)


def test_a_missing_segment_is_shown_by_its_index_and_by_the_hole_once():
    without = [SEGMENTS[0], SEGMENTS[2]]

    assert [(20, 39, Sign.HOLE)] == found(without)
    assert [(20, 39, Sign.INDEX)] == found(without, {20: "20.index"})
    assert [] == found(without, is_whole=False)  # a cleaner may have been there


def test_the_last_segment_reaches_as_far_as_the_checkpoints_say():
    without = SEGMENTS[:2]

    assert [(40, 59, Sign.INDEX)] == found(without, {40: "40.index"})
    assert "unknown" == found(without, {40: "40.index"}, reach=None)[0][1].value
    assert [(40, 59, Sign.ABOVE_END)] == found(without)
    assert [] == found(without, explained={60})


def test_what_is_below_the_log_start_or_in_another_segment_is_not_missing():
    assert [] == found(SEGMENTS[1:], {0: "0.index"}, log_start=20)
    assert [(5, 19, Sign.INDEX)] == found(SEGMENTS[1:], {0: "0.index"}, log_start=5)
    assert [] == found([(0, 60, "0.log")], {20: "20.index"})
    assert [] == found([], log_start=60)
    assert [(0, 59, Sign.CHECKPOINT)] == found([])
    assert [] == found([], reach=0)


def test_no_recorded_log_has_unaccounted_offsets(broker):
    assert {} == {name: one for name, replica in replicas(broker).items() if (one := unaccounted_offsets(replica))}


def test_the_last_segment_deleted_with_all_that_belongs_to_it_is_damage(broker, capsys):
    for path in (broker / "orders-ok-0").glob(f"{120:020d}.*"):
        path.unlink()

    for arguments in (["verify", str(broker)], ["diff", str(broker)]):
        run([*arguments, "--format", "json"])
        document = json.loads(capsys.readouterr().out)
        gone = [one for one in document["findings"] if one["code"] == "KF116"]
        assert [{"first": 120, "last": 139}] == [one["offsets"] for one in gone], arguments


@pytest.mark.slow
def test_a_segment_that_was_deleted_by_hand_is_damage_for_verify_diff_and_ls(broker, incident, capsys):
    (broker / "orders-ok-0" / f"{20:020d}.log").unlink()
    other = incident("benign-rolling-restart-4.x") / "snapshots" / "99-final" / "broker-2"

    # Its index is there: a copy may have left it out, so that replicas do not differ by it.
    for arguments, expected in (
        (["verify", str(broker)], 1),
        (["ls", str(broker)], 1),
        (["diff", str(broker), str(other)], 3),
    ):
        code = run([*arguments, "--format", "json"])
        document = json.loads(capsys.readouterr().out)
        gone = [one for one in document["findings"] if one["code"] == "KF116"]
        assert expected == code, arguments
        assert [{"first": 20, "last": 39}] == [one["offsets"] for one in gone], arguments
        assert gone[0]["citations"]
    assert 1 == run(["verify", str(broker)])
    assert "20 offsets (20..39) of orders-ok-0 are missing" in capsys.readouterr().out


def test_a_partition_without_any_segment_is_damage(broker, capsys):
    for path in (broker / "orders-ok-0").iterdir():
        if path.suffix in {".log", ".index", ".timeindex"}:
            path.unlink()

    assert 1 == run(["verify", str(broker), "--format", "json"])
    document = json.loads(capsys.readouterr().out)

    (gone,) = [one for one in document["findings"] if one["code"] == "KF116"]
    assert {"first": 0, "last": 139} == gone["offsets"]
    assert "checkpoint" in gone["citations"][0]["path"]


def test_a_metadata_log_that_ends_below_the_registration_of_its_broker_has_lost_its_end(broker, capsys):
    assert 0 == run(["metadata", str(broker)])
    assert "Incomplete" not in capsys.readouterr().out
    epoch = json.loads((broker / ".kafka_cleanshutdown").read_text())["brokerEpoch"]
    os.truncate(next((broker / "__cluster_metadata-0").glob("*.log")), 3_000)

    documents = {}
    for command, code in (("ls", 1), ("verify", 1), ("metadata", 3)):
        assert code == run([command, str(broker), "--format", "json"])
        documents[command] = json.loads(capsys.readouterr().out)
    for command in ("ls", "verify"):
        (lost,) = [one for one in documents[command]["findings"] if one["code"] == "KF116"]
        assert epoch == lost["offsets"]["last"]
        assert "leader of the quorum" in lost["meaning"]
    assert f"a broker registered at offset {epoch}, above its end" in documents["metadata"]["answer"]["headline"]


def test_a_metadata_log_without_its_segment_is_damage(broker, capsys):
    for path in (broker / "__cluster_metadata-0").glob("*.log"):
        path.unlink()

    assert 1 == run(["verify", str(broker), "--format", "json"])
    assert ["KF116"] == [
        one["code"] for one in json.loads(capsys.readouterr().out)["findings"] if one["severity"] == "error"
    ]


@pytest.mark.parametrize("left", [0, 1])
def test_ls_reads_no_truncation_from_an_end_that_lies_further_below_its_checkpoints_than_a_batch_or_in_one(
    broker, capsys, left
):
    """A truncation to an offset inside a batch drops that batch, and leaves no byte of it."""
    log = [one for one in sorted((broker / "orders-ok-1").glob("*.log")) if one.stat().st_size][-1]
    with open_evidence(log) as file:
        starts = [int(row["position"]) for one in walk_segment(file, level=Level.CRC) for row in one.batches]
    assert 0 == run(["ls", str(broker)])
    capsys.readouterr()
    os.truncate(log, starts[-4] if not left else log.stat().st_size - 1)

    assert 1 == run(["ls", str(broker), "--format", "json"])

    (lost,) = json.loads(capsys.readouterr().out)["findings"]
    assert ("KF116", "orders-ok", 1) == (lost["code"], lost["topic"], lost["partition"])


@pytest.mark.parametrize("has_index", [True, False])
@pytest.mark.some(1)
def test_a_metadata_log_without_any_segment_is_missing(broker, capsys, has_index):
    folder = broker / "__cluster_metadata-0"
    assert list(folder.glob("*.index"))
    for ending in ("log", *(() if has_index else ("index", "timeindex"))):
        for file in folder.glob(f"*.{ending}"):
            file.unlink()

    for command, code in (("ls", 1), ("verify", 1), ("predict", 3)):
        assert code == run([command, str(broker), "--format", "json"])
        document = json.loads(capsys.readouterr().out)
        if command == "predict":
            assert "records of the metadata log are missing" in document["answer"]["headline"]
        else:
            assert ["__cluster_metadata-0"] == [
                f"{one['topic']}-{one['partition']}" for one in document["findings"] if one["code"] == "KF116"
            ]
    assert 3 == run(["metadata", str(broker)])
    assert "no segment and no snapshot of the KRaft metadata log" in capsys.readouterr().err


def test_a_metadata_log_that_was_only_formatted_misses_nothing():
    formatted = parse_file_name(f"{0:020d}-{0:010d}.checkpoint")
    epochs = parse_file_name("leader-epoch-checkpoint")
    segment = parse_file_name(f"{0:020d}.log")

    assert lost_metadata_log([(formatted, 300, "a"), (epochs, 4, "b")]) is None
    assert lost_metadata_log([(epochs, 8, "b"), (segment, 0, "c")]) is None
    assert lost_metadata_log([(formatted, 300, "a"), (epochs, 8, "b")]) == Unaccounted(
        first=0, last=Absent.UNKNOWN, sign=Sign.NO_SEGMENT, path="b"
    )


@pytest.mark.parametrize("has_nested", [False, True])
@pytest.mark.some(1)
def test_a_copy_that_left_all_logs_out_is_one_line(broker, capsys, has_nested):
    """A log in a directory below a partition's is none that a broker loads."""
    backup = broker / "orders-ok-0" / "backup"
    backup.mkdir()
    for path in sorted(broker.rglob("*.log")):
        if has_nested and path.parent == backup.parent:
            path.rename(backup / path.name)
        else:
            path.unlink()

    for name in ("verify", "ls", "diff", "explain"):
        code = run([name, str(broker), "--format", "json"])
        document = json.loads(capsys.readouterr().out)
        assert 3 == code, name
        assert 1 == sum(one["message"] == LOGS_LEFT_OUT for one in document["problems"]), name
        assert not [one for one in document["findings"] if one["code"] == "KF116"]


def test_an_emptied_log_is_damage_though_a_producer_snapshot_names_its_end(broker, capsys):
    assert (broker / "orders-ok-0" / f"{140:020d}.snapshot").exists()
    for path in (broker / "orders-ok-0").glob("*.log"):
        os.truncate(path, 0)

    for name in ("verify", "ls"):
        assert 1 == run([name, str(broker), "--format", "json"])
        document = json.loads(capsys.readouterr().out)
        gone = [one for one in document["findings"] if one["code"] == "KF116"]
        assert 139 == max(one["offsets"]["last"] for one in gone), name
    # A truncation inside the only batch behind a segment's base keeps its target as log end: one batch, not all of them.
    assert [] == found([(0, 60, "0.log")], reach=65, explained={65}, longest_batch=5)
    assert [(60, 65, Sign.ABOVE_END)] == found([(0, 60, "0.log")], reach=66, explained={66}, longest_batch=5)
    assert [(0, 64, Sign.ABOVE_END)] == found([(0, 0, "0.log")], reach=65, explained={65}, longest_batch=0)


@pytest.mark.parametrize("is_file", [False, True])
@pytest.mark.some(1)
def test_a_partition_that_checkpoints_name_and_that_has_no_directory_is_damage(broker, incident, capsys, is_file):
    shutil.rmtree(broker / "orders-ok-0")
    if is_file:
        (broker / "orders-ok-0").write_text("no directory")
    others = [str(incident("benign-rolling-restart-4.x") / "snapshots" / "99-final" / f"broker-{at}") for at in (2, 3)]
    places = find_places(find_inputs([broker, *map(Path, others)]))

    assert {TopicPartition("orders-ok", 0): frozenset({1})} == places.brokers_without_directory({0, 1, 2})
    assert {} == places.brokers_without_directory({1, 2})
    for arguments in (["verify", str(broker)], ["ls", str(broker)], ["diff", str(broker), *others]):
        code = run([*arguments, "--format", "json"])
        document = json.loads(capsys.readouterr().out)
        (gone,) = [one for one in document["findings"] if one["code"] == "KF116"]
        assert 1 == code or document["answer"]["state"] == "unknown", arguments
        assert "orders-ok-0" in gone["statement"]
        assert "checkpoint" in gone["citations"][0]["path"]
        assert 1 == len(gone["citations"])
    assert (
        "STARTING BROKER 1 FIRST DESTROYS 1 PARTITION: checkpoints name it up to offset 140, and no directory of it is there, unless the copy left it out, and it can be elected."
        == document["answer"]["headline"]
    )


def test_a_partition_that_a_metadata_log_from_offset_0_never_knew_is_missing(broker, capsys):
    """The metadata log is older than the checkpoint, since it would show the deletion of a topic."""
    text = (broker / "replication-offset-checkpoint").read_text().splitlines()
    lines = [*text[2:], "deleted-long-ago 0 17"]
    (broker / "replication-offset-checkpoint").write_text("\n".join([text[0], str(len(lines)), *lines, ""]))

    for name in ("verify", "ls"):
        assert 1 == run([name, str(broker), "--format", "json"]), name
        (found,) = [one for one in json.loads(capsys.readouterr().out)["findings"] if one["code"] == "KF116"]
        assert "deleted-long-ago-0" in found["statement"]
    shutil.rmtree(broker / "__cluster_metadata-0")
    assert 1 == run(["verify", str(broker), "--format", "json"])
    assert "deleted-long-ago-0" in capsys.readouterr().out


def test_a_renamed_directory_or_one_on_another_disk_is_not_missing(broker, tmp_path):
    (broker / "orders-ok-0").rename(broker / "orders-ok-0.0123456789abcdef0123456789abcdef-delete")
    assert () == find_places(find_inputs([broker])).lost

    other = tmp_path / "disk-2"
    other.mkdir()
    shutil.copy(broker / "meta.properties", other)
    (broker / "orders-ok-0.0123456789abcdef0123456789abcdef-delete").rename(other / "orders-ok-0")
    assert () == find_places(find_inputs([broker, other])).lost
    assert ["orders-ok-0"] == [str(one.topic_partition) for one in find_places(find_inputs([broker])).lost]


def test_a_copy_of_a_few_partitions_is_not_called_a_loss(broker):
    for path in broker.iterdir():
        if path.is_dir() and path.name not in {"orders-ok-0", "__cluster_metadata-0"}:
            shutil.rmtree(path)
    places = find_places(find_inputs([broker]))

    assert () == places.lost
    assert ["the copy left them out, or they are lost"] == [one.message.rpartition(": ")[2] for one in places.problems]


def without_start(broker, below=40):
    """The partition directory, without the segments that begin below an offset and all that belongs to them."""
    directory = broker / "orders-ok-0"
    for path in directory.iterdir():
        if path.name[:20].isdecimal() and int(path.name[:20]) < below and path.suffix != ".snapshot":
            path.unlink()
    return directory


def test_the_first_segments_deleted_with_all_that_belongs_to_them_are_damage(broker, capsys):
    """No leader epoch of a log begins below its first segment, where the broker deleted what was before."""
    without_start(broker)

    for name in ("verify", "ls", "diff"):
        code = run([name, str(broker), "--format", "json"])
        document = json.loads(capsys.readouterr().out)
        (gone,) = [one for one in document["findings"] if one["code"] == "KF116"]
        assert {"first": 0, "last": 39} == gone["offsets"], name
        assert "orders-ok-0/leader-epoch-checkpoint" == gone["citations"][0]["path"], name
        assert code == (3 if name == "diff" else 1)
    assert 1 == run(["verify", str(broker)])
    assert "40 offsets (0..39) of orders-ok-0 are missing" in capsys.readouterr().out


def test_a_capture_shows_that_the_first_segments_are_missing(broker, tmp_path, capsys):
    without_start(broker)
    capture = tmp_path / "broker-1.kfcapture"
    assert 0 == run(["capture", str(broker), "-o", str(capture)])
    capsys.readouterr()

    run(["diff", str(capture), "--format", "json"])

    codes = {one["code"]: one["offsets"] for one in json.loads(capsys.readouterr().out)["findings"]}
    assert {"first": 0, "last": 39} == codes["KF116"]


@pytest.mark.parametrize("given", ["no-marker", "no-checkpoint", "alone", "line"])
@pytest.mark.some(2)
def test_the_first_segments_may_be_missing_where_the_stop_or_the_log_start_does_not_settle_it(broker, capsys, given):
    directory = without_start(broker)
    if given == "no-marker":
        (broker / ".kafka_cleanshutdown").unlink()
    elif given == "no-checkpoint":
        (broker / "log-start-offset-checkpoint").unlink()
    elif given == "line":
        (broker / "log-start-offset-checkpoint").write_text("0\n1\norders-ok 0 7\n")

    assert 1 == run(["verify", str(directory if given == "alone" else broker), "--format", "json"])

    document = json.loads(capsys.readouterr().out)
    (doubt,) = [one for one in document["findings"] if one["severity"] != "note"]
    first = 7 if given == "line" else 0
    assert ("KF117", {"first": first, "last": 39}) == (doubt["code"], doubt["offsets"])
    assert (
        f"No file is damaged, but 1 finding needs a look: offsets {first} to 39 of orders-ok-0 may be missing: "
        "its leader-epoch-checkpoint begins at offset 0, its first segment at 40."
    ) == document["answer"]["headline"]


def test_a_log_start_offset_checkpoint_that_can_not_be_read_proves_nothing_by_what_it_does_not_name(broker, capsys):
    without_start(broker)
    (broker / "log-start-offset-checkpoint").write_bytes(b"\xff\xfe\x00garbage")

    assert 1 == run(["verify", str(broker), "--format", "json"])

    codes = {one["code"] for one in json.loads(capsys.readouterr().out)["findings"]}
    assert "KF117" in codes
    assert "KF116" not in codes


def test_a_line_of_log_start_offset_checkpoint_that_no_clean_stop_leaves_is_looked_at(broker, capsys):
    directory = without_start(broker)
    (directory / "leader-epoch-checkpoint").write_text("")
    (broker / "log-start-offset-checkpoint").write_text("0\n1\norders-ok 0 7\n")

    assert 1 == run(["verify", str(broker), "--format", "json"])

    (doubt,) = [one for one in json.loads(capsys.readouterr().out)["findings"] if one["code"] == "KF117"]
    assert {"first": 7, "last": 39} == doubt["offsets"]


@pytest.mark.parametrize("shown", ["epochs", "log-start", "deleted", "swap", "remote", "remote-cache"])
@pytest.mark.some(2)
def test_a_log_whose_first_segments_its_broker_deleted_or_keeps_elsewhere_misses_nothing(broker, capsys, shown):
    directory, is_clean = without_start(broker), shown in {"epochs", "log-start", "deleted", "swap"}
    if shown == "epochs":
        (directory / "leader-epoch-checkpoint").write_text("0\n1\n2 40\n")
        (broker / "log-start-offset-checkpoint").write_text("0\n1\norders-ok 0 7\n")
        (broker / ".kafka_cleanshutdown").unlink()
    elif shown == "log-start":
        (broker / "log-start-offset-checkpoint").write_text("0\n1\norders-ok 0 45\n")
    elif is_clean:
        (directory / f"{0:020d}.log.{shown}").write_bytes(b"")
    else:
        (broker / "log-start-offset-checkpoint").write_text(
            f"0\n1\norders-ok 0 {7 if shown == 'remote-cache' else 0}\n"
        )
        if shown == "remote-cache":
            (broker / "remote-log-index-cache").mkdir()

    run(["verify", str(broker), "--format", "json"])

    document = json.loads(capsys.readouterr().out)
    assert not {"KF116", "KF117"} & {one["code"] for one in document["findings"]}
