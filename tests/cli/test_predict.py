"""`kforensics predict` on made and recorded log directories: what it says, what it exits with, and what it was not asked to say."""

import json
import os
import shutil

import pytest

from kforensics.cli.app import run
from kforensics.evidence.replica import loader_reader
from kforensics.evidence.replica.loader_scan import scan_batches
from kforensics.formats.log.batches import Message, encode_message_set
from kforensics.formats.segment.walk import walk_segment
from tests.builders.directories import copied
from tests.schemas import reason

RECORDED = "unclean-election"
LOG = "00000000000000000000.log"


@pytest.fixture
def cluster(fixtures, tmp_path):
    """A copy of three brokers that were killed, to be edited."""
    copy = tmp_path / "cluster"
    copied(fixtures / RECORDED, copy)
    for path in copy.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return copy


def predict(capsys, *arguments, code):
    assert run(["predict", *map(str, arguments), "--kafka", "4.1.0", "--format", "json"]) == code
    return json.loads(capsys.readouterr().out)


def mark_clean(broker):
    """Put the marker there, and trim the time indexes as a clean stop does: their zeros would be read as times (KAFKA-10207)."""
    for index in broker.glob("*/*.timeindex"):
        data = index.read_bytes().rstrip(b"\0")
        index.write_bytes(data + bytes(-len(data) % 12))
    (broker / ".kafka_cleanshutdown").write_text("")


def log_of(document, path, start=1):
    return next(log for log in document["logs"] if (log["path"], log["start"]) == (path, start))


def test_a_killed_broker_starts_and_loses_nothing(cluster, capsys):
    document = predict(capsys, cluster / "broker-1", code=3)

    assert document["answer"]["state"] == "unknown"
    assert document["answer"]["headline"] == (
        "As after a crash, Kafka 4.1.0 loads all 6 logs, and loading discards no record. "
        "What it discards of 6 logs as a follower depends on other brokers: 62 records are above the high watermark."
    )
    assert any("a start only loads the logs" in line for line in document["answer"]["unknown"])
    (start,) = document["starts"]
    assert (start["outcome"], start["clean"], start["logs_scanned"]) == ("starts", False, 6)
    orders = log_of(document, "orders-0")
    assert (orders["outcome"], orders["records_lost"], orders["after"]["log_end_offset"]) == ("loads", 0, 103)
    assert {change["name"]: change["action"] for change in orders["files"]}["00000000000000000103.snapshot"] == "create"
    assert "__cluster_metadata-0" not in {log["path"] for log in document["logs"]}


def test_a_clean_log_directory_loads_unscanned(cluster, capsys):
    mark_clean(cluster / "broker-1")

    document = predict(capsys, cluster / "broker-1", code=3)

    assert document["starts"][0]["bytes_scanned"] == 0
    assert "s after a crash" not in document["answer"]["headline"]


def test_zeros_behind_a_clean_log_end_the_first_start_and_not_the_second(cluster, capsys):
    mark_clean(cluster / "broker-1")
    with (cluster / "broker-1" / "orders-0" / LOG).open("ab") as log:
        log.write(bytes(100))

    document = predict(capsys, cluster / "broker-1", code=1)

    assert [(start["outcome"], start["clean"]) for start in document["starts"]] == [("exits", True), ("starts", False)]
    assert document["answer"]["state"] == "will-not-start"
    assert "Start 2 succeeds" in document["answer"]["headline"]
    assert log_of(document, "orders-0")["exception"] == "CorruptRecordException"
    again = log_of(document, "orders-0", start=2)
    assert (again["outcome"], again["records_lost"], again["after"]["log_end_offset"]) == ("loads", 0, 103)
    assert {
        "name": LOG,
        "action": "truncate",
        "to_name": None,
        "to_bytes": 23418,
        "rule": "corruption-found",
    } in again["files"]


def test_a_flipped_bit_in_what_is_scanned_discards_what_others_hold(cluster, capsys):
    log = cluster / "broker-2" / "orders-1" / LOG
    data = bytearray(log.read_bytes())
    data[9000] ^= 4
    log.write_bytes(data)

    document = predict(capsys, cluster, code=1)

    assert document["answer"]["state"] == "loses"
    lost = next(log for log in document["logs"] if log["records_lost"])
    assert (lost["path"], lost["records_lost"], lost["committed"]) == ("orders-1", 62, {"certain": 26, "possible": 36})
    assert {holder["broker_id"]: holder["records"] for holder in lost["held_by"]} == {1: 32, 3: 62}
    assert "Keep broker 3, which holds what orders-1 of broker 2 discards." in document["answer"]["now"]
    alone = predict(capsys, cluster / "broker-2", code=1)
    assert next(log for log in alone["logs"] if log["records_lost"])["held_by"] == []
    assert "62 kept in no other log given" in alone["answer"]["headline"]


def test_a_directory_that_is_no_partition_ends_every_start(cluster, capsys):
    (cluster / "broker-1" / "lost+found").mkdir()

    document = predict(capsys, cluster / "broker-1", code=1)

    assert {start["outcome"] for start in document["starts"]} == {"exits"}
    assert log_of(document, "lost+found")["exception"] == "KafkaException"
    assert log_of(document, "lost+found")["topic"] is None
    assert "Nor does it later" in document["answer"]["headline"]


def test_a_malformed_epoch_file_takes_the_only_log_directory_and_the_broker(cluster, capsys):
    (cluster / "broker-1" / "orders-0" / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n")

    document = predict(capsys, cluster / "broker-1", code=1)

    assert (document["starts"][0]["outcome"], document["starts"][0]["exception"]) == ("exits", "KafkaStorageException")
    assert "the metadata log has failed" in document["starts"][0]["reason"]


def test_a_malformed_recovery_checkpoint_takes_the_directory_once_all_is_loaded(cluster, capsys):
    (cluster / "broker-1" / "recovery-point-offset-checkpoint").write_text("0\n3\norders 0 5\n")

    document = predict(capsys, cluster / "broker-1", code=1)

    assert document["starts"][0]["outcome"] == "exits"
    assert {log["outcome"] for log in document["logs"]} == {"loads"}


def test_the_version_is_compared_where_it_is_not_given(cluster, capsys):
    assert run(["predict", str(cluster / "broker-1"), "--format", "json"]) == 3
    document = json.loads(capsys.readouterr().out)
    assert (document["kafka"], document["kafka_source"]) == ("4.1.0", "metadata-log")
    shutil.rmtree(cluster / "broker-1" / "__cluster_metadata-0")
    assert run(["predict", str(cluster / "broker-1"), "--format", "json"]) == 3
    document = json.loads(capsys.readouterr().out)
    assert (document["kafka"], document["kafka_source"], document["versions"]) == ("4.4.0", "assumed", [])
    assert any("Kafka 4.4.0 is assumed" in line for line in document["answer"]["unknown"])

    topic_id = cluster / "broker-1" / "orders-1" / "partition.metadata"
    topic_id.write_text(topic_id.read_text().replace("version: 0", "version: 1"))
    (cluster / "broker-1" / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=M\n")

    assert run(["predict", str(cluster / "broker-1"), "--format", "json"]) == 3
    document = json.loads(capsys.readouterr().out)
    assert document["answer"]["state"] == "unknown"
    assert any("Give the version with --kafka" in line for line in document["answer"]["unknown"])


def test_logs_are_read_once_however_many_versions_are_compared(cluster, capsys, monkeypatch):
    broker = cluster / "broker-1"
    shutil.rmtree(broker / "__cluster_metadata-0")
    scanned, ends = [], []
    real_scan, real_walk = scan_batches, walk_segment

    def scan(file, start, parts):
        scanned.append(file.path)
        return real_scan(file, start, parts)

    def walk(file, *, level, start):
        ends.append(file.path)
        return real_walk(file, level=level, start=start)

    monkeypatch.setattr(loader_reader, "scan_batches", scan)
    monkeypatch.setattr("kforensics.evidence.replica.ends.walk_segment", walk)

    assert run(["predict", str(broker), "--format", "json"]) == 3
    logs = json.loads(capsys.readouterr().out)["logs"]
    assert len(scanned) == len(set(scanned)) == len({log["path"] for log in logs if log["before"]["segments"]})
    assert ends == []  # a scan that reaches the end has read it

    with (broker / "orders-0" / LOG).open("ab") as file:
        file.write(b"torn")
    assert run(["predict", str(broker), "--format", "json"]) == 3
    assert log_of(json.loads(capsys.readouterr().out), "orders-0")["before"]["log_end_offset"] == 103
    assert len(ends) == 1


@pytest.mark.parametrize("version", ["0.10.2.2", "2.7.2"])
def test_brokers_that_need_zookeeper_refuse_the_directories_of_those_that_do_not(cluster, capsys, version):
    assert run(["predict", str(cluster / "broker-1"), "--kafka", version, "--format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert "Found unexpected version 1 in meta.properties" in document["starts"][0]["reason"]
    assert document["metadata_logs"] == []


@pytest.mark.parametrize("version", ["0.9.0.1", "5.0.0", "newest"])
def test_versions_that_are_not_modelled_are_refused(cluster, capsys, version):
    assert run(["predict", str(cluster / "broker-1"), "--kafka", version]) == 2
    assert version in capsys.readouterr().err


def test_a_partition_directory_alone_is_refused(cluster, capsys):
    assert run(["predict", str(cluster / "broker-1" / "orders-0"), "--kafka", "4.1.0"]) == 2
    assert "whole log directories" in capsys.readouterr().err


def test_only_the_partitions_asked_for_are_played(cluster, capsys):
    document = predict(capsys, cluster / "broker-1", "--topic", "orders", "--partition", "2", code=3)

    assert [log["path"] for log in document["logs"]] == ["orders-2"]


def test_the_screen_says_the_answer_first_and_nothing_is_written(cluster, capsys):
    (cluster / "broker-1" / "orders-0" / "leader-epoch-checkpoint").unlink()
    before = {path: path.stat().st_mtime_ns for path in cluster.rglob("*")}

    assert run(["predict", str(cluster / "broker-1"), "--kafka", "4.1.0", "-v"]) == 3

    out = capsys.readouterr().out
    assert out.startswith("As after a crash, Kafka 4.1.0 loads all 6 logs, and loading discards no record.")
    assert "this is what a crash now would do" in " ".join(out.split())
    assert "broker 1, start 1: starts" in out
    assert "orders-0: log end 103, leader epoch 0 begins at offset 0, " in out
    assert "rebuild 00000000000000000000.index" in out
    assert {path: path.stat().st_mtime_ns for path in cluster.rglob("*")} == before


def test_a_file_can_be_taken_as_not_there(cluster, capsys):
    broker = cluster / "broker-1"
    mark_clean(broker)
    with (broker / "orders-0" / LOG).open("ab") as log:
        log.write(bytes(100))

    document = predict(capsys, broker, "--without", broker / ".kafka_cleanshutdown", code=3)

    assert [start["outcome"] for start in document["starts"]] == ["starts"]
    assert document["answer"]["headline"].startswith("As if ")
    document = predict(capsys, broker, "--without", broker / "orders-0", code=3)
    assert "orders-0" not in {log["path"] for log in document["logs"]}
    index = broker / "orders-1" / "00000000000000000000.index"
    document = predict(capsys, broker, "--without", index, "--without", broker / "orders-0", code=3)
    assert document["starts"][0]["logs_scanned"] == 1
    assert (broker / ".kafka_cleanshutdown").exists()


def test_a_file_that_is_in_no_log_directory_can_not_be_left_out(cluster, capsys):
    assert run(["predict", str(cluster / "broker-1"), "--without", str(cluster / "broker-2" / "orders-0")]) == 2
    assert "--without" in capsys.readouterr().err


def test_the_second_start_of_a_broker_with_zookeeper_is_not_played(cluster, capsys):
    broker = cluster / "broker-1"
    shutil.rmtree(broker / "__cluster_metadata-0", ignore_errors=True)
    (broker / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=M\n")
    (broker / "lost+found").mkdir()

    assert run(["predict", str(broker), "--kafka", "3.9.1", "--format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)

    assert [start["outcome"] for start in document["starts"]] == ["exits"]
    assert any("a second start" in line for line in document["answer"]["unknown"])


@pytest.fixture
def old_broker(cluster):
    """A broker whose files any version from 0.11 to 3.9 may have written."""
    broker = cluster / "broker-1"
    shutil.rmtree(broker / "__cluster_metadata-0")
    (broker / "bootstrap.checkpoint").unlink()
    (broker / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=M\n")
    for path in broker.rglob("partition.metadata"):
        path.unlink()
    return broker


def test_versions_that_differ_in_what_no_reader_sees_are_not_told_apart(old_broker, capsys):
    """Before 2.6.1 a start leaves an epoch in the file that it forgets (KAFKA-10706)."""
    assert run(["predict", str(old_broker), "--format", "json"]) == 3
    document = json.loads(capsys.readouterr().out)

    assert (document["kafka"], document["kafka_source"], document["versions"]) == ("3.9.0", "assumed", [])
    assert "is assumed" in str(document["answer"]["unknown"])
    assert "these files allow too" not in document["answer"]["headline"]


def test_versions_between_two_that_agree_are_judged_where_they_have_a_rule_of_their_own(old_broker, capsys):
    """From 1.1 to 2.2 a segment without an index is not scanned, and a flipped bit in it not met."""
    mark_clean(old_broker)
    log = old_broker / "orders-0" / LOG
    log.with_suffix(".index").unlink()
    data = bytearray(log.read_bytes())
    data[-1] ^= 1
    log.write_bytes(data)

    assert run(["predict", str(old_broker), "--format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)

    assert [one["kafka"] for one in document["versions"]] == ["1.1.0", "2.0.0", "2.0.1", "2.1.0", "2.2.0"]
    assert run(["predict", str(old_broker), "--kafka", "2.2.0", "--format", "json"]) == 3
    assert not any(one["records_lost"] for one in json.loads(capsys.readouterr().out)["logs"])
    assert run(["predict", str(old_broker), "--kafka", "1.0.2", "--format", "json"]) == 1


def test_the_first_version_that_fits_a_directory_of_the_preview_is_the_preview(cluster, capsys):
    broker = cluster / "broker-1"
    shutil.rmtree(broker / "__cluster_metadata-0")
    (broker / "@metadata-0").mkdir()
    (broker / "@metadata-0" / LOG).touch()
    (broker / "bootstrap.checkpoint").unlink()
    (broker / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=M\n")

    run(["predict", str(broker), "--format", "json"])
    document = json.loads(capsys.readouterr().out)

    assert (document["kafka"], document["kafka_source"]) == ("2.8.0", "assumed")
    assert {log["becomes"] for log in document["logs"]} == {"unknown"}


def test_a_controller_without_the_marker_makes_no_broker_unclean(incident, tmp_path, capsys):
    final = tmp_path / "final"
    copied(incident("unclean-election-4.x") / "snapshots" / "99-final", final)

    run(["predict", str(final)])
    together = capsys.readouterr().out
    run(["predict", str(final / "controller-100")])
    alone = capsys.readouterr().out
    (final / "broker-2" / ".kafka_cleanshutdown").unlink()
    run(["predict", str(final)])
    killed = capsys.readouterr().out

    assert " Kafka 4.1.0 loads all 27 logs" in " ".join(together.split())
    assert "As after a crash" not in together
    assert "Nothing here keeps Kafka 4.1.0 from starting; no log of a partition" in " ".join(alone.split())
    assert "As after a crash of broker 2, Kafka 4.1.0 loads all 27 logs" in " ".join(killed.split())


@pytest.mark.parametrize(("version", "due"), [("0.10.0.1", [0]), ("0.10.1.1", None)])
def test_before_0_10_1_there_are_no_time_indexes_and_retention_goes_by_when_a_segment_was_changed(
    tmp_path, capsys, version, due
):
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=1\n")
    log = tmp_path / "orders-0" / LOG
    log.write_bytes(encode_message_set([Message(0, 1, 0, 4_000_000_000_000, b"k", b"v")]))
    os.utime(log, (1_600_000_000, 1_600_000_000))

    late = ["--kafka", version, "--now", "1790000000000", "--set", "log.retention.ms=86400000"]
    run(["predict", str(tmp_path), *late, "--format", "json"])
    document = json.loads(capsys.readouterr().out)

    (only,) = document["logs"]
    assert only["after"]["log_end_offset"] == 1
    assert (only["retention"] or {}).get("segments") == due
    created = {file["name"].rpartition(".")[2] for file in only["files"] if file["action"] == "create"}
    assert created == ({"index", "timeindex"} if due is None else {"index"})


def test_an_empty_disk_that_is_named_beside_those_of_one_broker_is_one_of_its_own(tmp_path, capsys):
    first, second, other = tmp_path / "a" / "data", tmp_path / "b" / "data", tmp_path / "other"
    for number, one in enumerate((first, other), 1):
        (one / "orders-0").mkdir(parents=True)
        (one / "orders-0" / LOG).touch()
        (one / "meta.properties").write_text(f"version=0\nbroker.id={number}\n")
        (one / ".kafka_cleanshutdown").touch()
    second.mkdir(parents=True)
    asked = ["predict", "--kafka", "2.8.1", "--format", "json", str(first), str(second)]

    assert run(asked) == 3
    document = json.loads(capsys.readouterr().out)
    assert [(one["outcome"], one["clean"]) for one in document["starts"]] == [("starts", True)]
    assert f"{second} is empty: new, emptied, or not mounted." in document["answer"]["headline"]
    assert any(
        f"Whether the disk of {second} is mounted: it is given as" in one for one in document["answer"]["unknown"]
    )
    # Of two brokers it is that of the one whose log directories it lies beside, where it lies beside one.
    assert run([*asked, str(other)]) == 3
    assert "an empty directory" in capsys.readouterr().err
    beside = second.parent.rename(tmp_path / "c") and tmp_path / "a" / "empty"
    beside.mkdir()
    assert run([*asked[:-1], str(beside), str(other)]) == 3
    document = json.loads(capsys.readouterr().out)
    assert [(1, "starts"), (2, "starts")] == [
        (document["inputs"][one["input"]]["broker_id"], one["outcome"]) for one in document["starts"]
    ]
    assert f"{beside} is empty: new, emptied, or not mounted." in document["answer"]["headline"]


def test_an_empty_disk_that_server_properties_names_is_a_log_directory_of_its_broker(tmp_path, capsys):
    first, second, settings = tmp_path / "data-0", tmp_path / "data-1", tmp_path / "server.properties"
    (first / "orders-0").mkdir(parents=True)
    (first / "orders-0" / LOG).touch()
    (first / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAw\n")
    (first / ".kafka_cleanshutdown").touch()
    second.mkdir()
    settings.write_text(f"broker.id=1\nlog.dirs={first},{second}\n")
    asked = ["predict", str(first), str(second), "--kafka", "2.8.1", "--format", "json"]

    assert run([*asked, str(settings)]) == 3
    document = json.loads(capsys.readouterr().out)
    assert [(one["outcome"], one["clean"]) for one in document["starts"]] == [("starts", True)]
    assert document["answer"]["headline"].endswith(
        f", and loading discards no record. {second} is empty: new, emptied, or not mounted."
    )
    assert any(f"Whether the disk of {second} is mounted" in line for line in document["answer"]["unknown"])

    settings.write_text(f"broker.id=1\nlog.dirs={first}\n")
    assert run([*asked, str(settings)]) == 3
    assert "an empty directory" in capsys.readouterr().err

    assert run(["predict", str(first), "--kafka", "4.1.0", "--format", "json"]) == 3
    document = json.loads(capsys.readouterr().out)
    assert [reason(one, "outcome") for one in document["starts"]] == ["unknown"]  # its settings are not given
    assert any("starts at all" in line for line in document["answer"]["unknown"])

    settings.write_text(f"zookeeper.connect=z\nlog.dirs={first}\n")
    migrated = tmp_path / "conf" / "server.properties"
    migrated.parent.mkdir()
    migrated.write_text(f"process.roles=broker\nnode.id=1\nlog.dirs={first}\n")
    assert run(["predict", str(first), str(settings), "--kafka", "4.1.0"]) == 1
    assert "starts at all" not in capsys.readouterr().out
    assert run(["predict", str(first), str(migrated.parent), "--kafka", "3.6.2", "-v"]) == 3
    assert "and its server.properties of a node without" in " ".join(capsys.readouterr().out.split())
    assert run(["predict", str(first), str(settings), str(migrated.parent), "--kafka", "4.1.0"]) == 3
    assert "Give the server.properties that it will be started with" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("settings", "version", "exception", "words"),
    [
        ("zookeeper.connect=z\n", "3.9.1", None, "it writes meta.properties"),
        ("", "2.8.1", None, "it writes meta.properties"),
        ("process.roles=broker\n", "3.6.2", "KafkaException", "No `meta.properties` found"),
        ("process.roles=broker\n", "4.1.0", "RuntimeException", "No readable meta.properties files found."),
        ("", "4.1.0", "RuntimeException", "No readable meta.properties files found."),
        ("zookeeper.connect=z\n", "4.1.0", "ConfigException", 'required configuration "process.roles"'),
        ("process.roles=broker\n", "2.3.1", "ConfigException", 'required configuration "zookeeper.connect"'),
    ],
)
def test_a_broker_with_an_empty_disk_alone_starts_only_with_zookeeper(
    tmp_path, capsys, settings, version, exception, words
):
    disk, conf = tmp_path / "broker" / "data", tmp_path / "conf"
    disk.mkdir(parents=True)
    conf.mkdir()
    (conf / "server.properties").write_text(f"broker.id=1\nlog.dirs={disk}\n{settings}")
    asked = ["--kafka", version, "--format", "json"]

    code = run(["predict", str(tmp_path), *asked])
    document = json.loads(capsys.readouterr().out)
    assert run(["predict", str(disk.parent), str(conf), *asked]) == code
    apart = json.loads(capsys.readouterr().out)
    assert [apart[name] for name in ("answer", "logs")] == [document[name] for name in ("answer", "logs")]

    (start,) = document["starts"]
    answer = document["answer"]
    if exception is None:
        assert (code, answer["state"], start["outcome"]) == (3, "unknown", "starts")
        assert any(words in line for line in answer["unknown"])
    else:
        assert (code, answer["state"], start["outcome"]) == (1, "will-not-start", "exits")
        assert (start["exception"], words in start["reason"]) == (exception, True)
    assert document["logs"] == []
    assert answer["headline"].endswith(f"{disk} is empty: new, emptied, or not mounted.")


def test_a_log_without_any_segment_is_said_to_have_none(incident, tmp_path, capsys):
    copied(incident("unclean-election-4.x") / "snapshots" / "99-final" / "broker-1", tmp_path / "broker-1")
    for path in (tmp_path / "broker-1").rglob("orders-0/*.log"):
        path.unlink()

    run(["predict", str(tmp_path / "broker-1"), "--verbose"])

    assert "orders-0 (recovery-point-offset-checkpoint says 93, it has no segment)" in " ".join(
        capsys.readouterr().out.split()
    )


def test_a_start_is_not_calm_where_brokers_that_hold_replicas_are_not_given(cluster, capsys):
    document = predict(capsys, cluster / "broker-1", cluster / "controller-100", code=3)

    assert document["answer"]["state"] == "unknown"
    assert document["answer"]["headline"].startswith("UNKNOWN: brokers 2 and 3 are not among the inputs")
    assert any(
        "discards as a follower depends on the log of its leader" in one for one in document["answer"]["unknown"]
    )


@pytest.mark.parametrize("named", ["", "data-1"])
def test_settings_of_another_node_say_nothing_of_an_empty_disk_beside(tmp_path, capsys, named):
    """They name disks elsewhere, or this one, which is the other node's then: neither is taken for the settings of the node that is given."""
    first, second, settings = tmp_path / "data-0", tmp_path / "data-1", tmp_path / "server.properties"
    first.mkdir()
    (first / "meta.properties").write_text(f"version=1\nnode.id=1\ncluster.id=c\ndirectory.id={'B' * 21}A\n")
    (first / "__cluster_metadata-0").mkdir()
    second.mkdir()
    settings.write_text(f"process.roles=broker\nnode.id=7\nlog.dirs={tmp_path / named if named else '/elsewhere'}\n")

    run(["predict", str(first), str(second), str(settings), "--kafka", "4.1.0", "--format", "json"])

    document = json.loads(capsys.readouterr().out)
    reasons = {document["inputs"][one["input"]]["path"]: one["reason"] for one in document["starts"]}
    if named:
        assert reasons[str(second)] == "No readable meta.properties files found."
        assert "meta.properties" not in reasons[str(first)]
    else:
        assert "No `meta.properties` found in" in reasons[str(first)]
        assert str(second) not in reasons
