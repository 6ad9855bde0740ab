"""`kforensics predict` on whole nodes: identity, strays, the metadata log, levels and versions, on recorded directories that were edited."""

import json
import os
import re
import shutil
import stat
import struct
from functools import partial
from pathlib import Path

import pytest

from kforensics.cli.app import run
from kforensics.errors import EvidenceUnreadable
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.evidence.metadata.files import find_metadata_logs
from kforensics.evidence.metadata.log import read_metadata_log
from kforensics.evidence.replica.loader_reader import read_needed
from kforensics.formats.checkpoint.properties import LOST_DIRECTORY
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from kforensics.formats.messages.control import ControlType, encode_control_record
from kforensics.formats.segment.walk import Level, walk_segment
from kforensics.source.mapped import open_evidence
from tests.builders.directories import copied
from tests.builders.metadata_logs import metadata_batch, metadata_record

LOG = "00000000000000000000.log"


@pytest.fixture
def node(fixtures, tmp_path):
    """One recorded broker whose partitions lie in two log directories, the metadata log in the first."""
    root = tmp_path / "broker"
    copied(fixtures / "unclean-election" / "broker-1", root / "data-0")
    for path in [root, *root.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    second = root / "data-1"
    second.mkdir()
    meta = (root / "data-0" / "meta.properties").read_text()
    (second / "meta.properties").write_text(edited(meta, "directory.id", "B" * 22))
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint", "log-start-offset-checkpoint"):
        shutil.copy(root / "data-0" / name, second / name)
    (root / "data-0" / "orders-1").rename(second / "orders-1")
    for one in (root / "data-0", second):
        (one / ".kafka_cleanshutdown").write_text("")
    return root


def edited(text, key, value):
    return "".join(f"{key}={value}\n" if line.startswith(f"{key}=") else f"{line}\n" for line in text.splitlines())


def edit(path, key, value):
    path.write_text(edited(path.read_text(), key, value))


def predict(capsys, *arguments):
    code = run(["predict", *map(str, arguments), "--format", "json"])
    out = capsys.readouterr()
    assert out.err == "" or code == 3, out.err
    return json.loads(out.out), code


def test_two_log_directories_are_one_node_whose_version_its_registration_shows(node, capsys):
    document, _ = predict(capsys, node)

    assert (document["kafka"], document["kafka_source"], document["versions"]) == ("4.1.0", "metadata-log", [])
    assert [(start["outcome"], start["loads_logs"]) for start in document["starts"]] == [("starts", True)]
    assert {log["becomes"] for log in document["logs"]} == {"kept"}
    later, *elected = document["answer"]["later"]
    assert all("is elected for" in one for one in elected)
    assert (
        "out of every ISR and ELR. The reason: a log directory has no clean-shutdown marker with a broker epoch"
        in later
    )
    assert [one["records_lost"] for one in document["metadata_logs"]] == [0]


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("cluster.id", "another", "Invalid cluster.id"),
        ("node.id", "7", "doesn't match previous node id 1"),
    ],
)
def test_directories_that_name_several_nodes_end_the_start_and_change_nothing(node, capsys, key, value, words):
    edit(node / "data-1" / "meta.properties", key, value)

    document, code = predict(capsys, node)

    (start,) = document["starts"]
    assert (code, start["outcome"], start["loads_logs"], start["clean"]) == (1, "exits", False, True)
    assert words in start["reason"]
    assert document["answer"]["state"] == "will-not-start"
    assert "and loads no log" in document["answer"]["headline"]


def test_a_cloned_disk_ends_the_start(node, capsys):
    shutil.copy(node / "data-0" / "meta.properties", node / "data-1" / "meta.properties")

    document, code = predict(capsys, node)

    assert code == 1
    assert "Duplicate directory ID" in document["starts"][0]["reason"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("node.id", "one"),
        ("node.id", "1  "),
        ("version", "one"),
        ("version", "2"),
        ("note", "\\u12"),
        ("directory.id", "data-1"),
        ("cluster.id", None),
    ],
)
@pytest.mark.some(2)
def test_an_identity_that_kafka_does_not_take_leaves_the_logs_of_the_directory_unloaded(node, capsys, key, value):
    path = node / "data-1" / "meta.properties"
    path.write_text(
        "".join(line for line in path.read_text().splitlines(keepends=True) if not line.startswith(f"{key}="))
    )
    path.write_text(path.read_text() + (f"{key}={value}\n" if value else ""))

    document, code = predict(capsys, node, "--kafka", "4.1.0")

    (start,) = document["starts"]
    assert (code, start["outcome"], start["loads_logs"]) == (1, "dir-offline", True)
    assert document["answer"]["state"] == "will-not-start"
    assert not any("data-1" in log["path"] for log in document["logs"]), "none of its logs is loaded"

    document, _ = predict(capsys, node, "--kafka", "3.6.2")
    assert document["starts"][0]["outcome"] == "exits"


@pytest.mark.parametrize("line", ["version=1\n", "version=0\n"])
def test_the_id_of_a_node_has_another_name_by_the_version_of_meta_properties(node, capsys, line):
    path = node / "data-1" / "meta.properties"
    path.write_text(path.read_text().replace("version=1\n", "").replace("node.id", "broker.id") + line)
    document, _ = predict(capsys, node, "--kafka", "4.1.0")
    outcomes = {"version=1\n": "dir-offline", "version=0\n": "starts"}
    assert document["starts"][0]["outcome"] == outcomes[line]

    path.write_text(path.read_text().replace("broker.id", "node.id").replace("version=1", "version=0"))
    (start,) = predict(capsys, node, "--kafka", "4.1.0")[0]["starts"]
    assert (start["outcome"], start["loads_logs"]) == ("exits", False)
    assert "node ID not found in data-1" in start["reason"]


@pytest.mark.parametrize("is_folder", [True, False])
def test_a_folder_in_place_of_meta_properties_takes_its_directory_offline(node, capsys, is_folder):
    path = node / "data-1" / "meta.properties"
    path.unlink()
    (path.mkdir if is_folder else partial(path.write_text, "\\u12\n"))()
    (node / "data-1" / "lost+found").mkdir()

    document, code = predict(capsys, node, "--kafka", "4.1.0")

    (start,) = document["starts"]
    assert (code, start["outcome"], start["loads_logs"]) == (1, "dir-offline", True)
    assert not any("data-1" in log["path"] for log in document["logs"])


@pytest.mark.parametrize(
    ("kafka", "exception", "words"),
    [("4.1.0", "RuntimeException", "Duplicate directory ID"), ("3.3.2", "KafkaException", "Duplicate log directory")],
)
def test_a_log_directory_that_settings_name_by_two_paths_ends_the_start(node, capsys, kafka, exception, words):
    (node / "other").symlink_to(node / "data-1")
    settings = node.parent / "server.properties"
    named = [node / "data-0", node / "data-1"]
    text = "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@localhost:1\nlog.dirs="
    for one in (node / "data-0", node / "data-1"):
        if kafka < "3.7":
            path = one / "meta.properties"
            path.write_text("".join(line for line in path.read_text().splitlines(True) if "directory.id" not in line))

    settings.write_text(f"{text}{','.join(map(str, (*named, node / 'other')))}\n")
    (start,) = predict(capsys, node, settings, "--kafka", kafka)[0]["starts"]
    assert (start["outcome"], start["exception"], start["loads_logs"]) == ("exits", exception, False)
    assert words in start["reason"]

    settings.write_text(f"{text}{','.join(map(str, named))}\n")
    (start,) = predict(capsys, node, settings, "--kafka", kafka)[0]["starts"]
    assert words not in str(start["reason"])


@pytest.mark.parametrize("name", ["__cluster_metadata-1", f"__cluster_metadata-0.{'a' * 32}-delete"])
def test_what_is_named_after_the_metadata_log_and_is_not_it_is_passed_over(node, capsys, name):
    (node / "data-1" / name).mkdir()
    (start,) = predict(capsys, node, "--kafka", "4.1.0")[0]["starts"]
    assert start["outcome"] == "starts", start["reason"]


def test_a_file_with_the_name_of_the_metadata_log_ends_the_start(node, capsys):
    (node / "data-1" / "__cluster_metadata-0").write_text("")
    (start,) = predict(capsys, node, "--kafka", "4.1.0")[0]["starts"]
    assert (start["outcome"], start["exception"], start["loads_logs"]) == ("exits", "KafkaException", False)
    assert "Found unexpected metadata location" in start["reason"]

    (node / "data-1" / "__cluster_metadata-0").unlink()
    (node / "data-0" / "__cluster_metadata-0").rename(node.parent / "elsewhere")
    (node / "data-0" / "__cluster_metadata-0").symlink_to(node.parent / "elsewhere")
    (start,) = predict(capsys, node, "--kafka", "4.1.0")[0]["starts"]
    assert start["outcome"] != "exits", "a link is followed"
    (node / "data-0" / "__cluster_metadata-0").unlink()
    (node.parent / "elsewhere").rename(node / "data-0" / "__cluster_metadata-0")
    shutil.rmtree(node / "data-0" / "__cluster_metadata-0")
    (node / "data-0" / "__cluster_metadata-0").write_text("")
    (start,) = predict(capsys, node, "--kafka", "4.1.0")[0]["starts"]
    assert (start["outcome"], start["exception"]) == ("exits", "FileAlreadyExistsException")


@pytest.mark.parametrize(
    ("settings", "exception"),
    [
        ("node.id=-1", "ConfigException"),
        ("node.id=1\nmetadata.log.dir=", "KafkaException"),
        ("node.id=1\nmetadata.log.dir={root}/data-0/", "RuntimeException"),
        ("node.id=1\nmetadata.log.dir={root}/data-0", None),
    ],
)
def test_settings_of_identity_and_of_the_metadata_log_are_read_as_they_are_written(node, capsys, settings, exception):
    path = node.parent / "server.properties"
    voters = "process.roles=broker,controller\ncontroller.quorum.voters=1@localhost:1\n"
    path.write_text(f"{voters}log.dirs={node}/data-0,{node}/data-1\n{settings.format(root=node)}\n")

    (start,) = predict(capsys, node, path, "--kafka", "4.1.0")[0]["starts"]

    assert start["exception"] == exception, start["reason"]


@pytest.fixture
def apart(node):
    """The settings of the node, whose metadata log has a directory of its own."""
    (node / "metadata").mkdir()
    (node / "data-0" / "__cluster_metadata-0").rename(node / "metadata" / "__cluster_metadata-0")
    (node / "data-0" / "bootstrap.checkpoint").rename(node / "metadata" / "bootstrap.checkpoint")
    text = (node / "data-0" / "meta.properties").read_text()
    (node / "metadata" / "meta.properties").write_text(edited(text, "directory.id", "C" * 22))
    path = node.parent / "server.properties"
    path.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@localhost:1\n"
        f"metadata.log.dir={node}/metadata\nlog.dirs={node}/data-0,{node}/data-1\n"
    )
    return path


def test_what_lies_beside_a_metadata_log_of_its_own_directory_is_not_loaded(node, apart, capsys):
    copied(node / "data-1" / "orders-1", node / "metadata" / "orders-1")
    (node / "metadata" / "lost+found").mkdir()

    document, _ = predict(capsys, node, apart, "--kafka", "4.1.0")

    (start,) = document["starts"]
    assert start["outcome"] == "starts", start["reason"]
    assert not any("metadata/" in log["path"] for log in document["logs"])


def test_a_file_in_place_of_the_directory_of_the_metadata_log_ends_the_start(node, apart, capsys):
    shutil.rmtree(node / "metadata")
    (node / "metadata").write_text("")
    for kafka, exception in (("4.1.0", "RuntimeException"), ("3.6.2", "KafkaException")):
        (start,) = predict(capsys, node / "data-0", node / "data-1", apart, "--kafka", kafka)[0]["starts"]
        assert (start["outcome"], start["exception"], start["loads_logs"]) == ("exits", exception, False)


def test_files_in_place_of_all_log_directories_end_the_start_whatever_the_metadata_log_is_in(node, apart, capsys):
    for one in (node / "data-0", node / "data-1"):
        shutil.rmtree(one)
        one.write_text("")
    (start,) = predict(capsys, node, apart, "--kafka", "4.1.0")[0]["starts"]
    assert start["outcome"] == "exits"


def test_an_empty_meta_properties_ends_the_start(node, capsys):
    (node / "data-1" / "meta.properties").write_text("")

    document, code = predict(capsys, node)

    (start,) = document["starts"]
    assert (code, start["outcome"], start["exception"]) == (1, "exits", "RuntimeException")
    assert "ID not found in " in start["reason"]
    assert "data-1" in start["reason"]
    assert "registered a log directory" not in str(document["answer"]), "it may be this one"
    assert "Not every log directory" not in document["answer"]["headline"]


def test_an_empty_bootstrap_checkpoint_ends_the_start_and_a_missing_one_does_not(node, capsys):
    path = node / "data-0" / "bootstrap.checkpoint"
    path.write_bytes(b"")
    for version in ((), ("--kafka", "4.4.0")):
        (start,) = predict(capsys, node, *version)[0]["starts"]
        assert (start["outcome"], start["exception"], start["loads_logs"]) == ("exits", "RuntimeException", False)
        assert "bootstrap.checkpoint" in start["reason"]

    path.unlink()
    assert predict(capsys, node)[0]["starts"][0]["outcome"] == "starts"


def test_two_future_logs_of_a_partition_end_the_start(node, capsys):
    for folder, letter in (("data-0", "a"), ("data-1", "b")):
        shutil.copytree(node / "data-1" / "orders-1", node / folder / f"orders-1.{letter * 32}-future")

    document, code = predict(capsys, node)

    assert (code, document["starts"][0]["exception"]) == (1, "IllegalStateException")
    shutil.rmtree(node / "data-1" / f"orders-1.{'b' * 32}-future")
    assert predict(capsys, node)[0]["starts"][0]["outcome"] == "starts"


def test_partitions_that_a_broker_may_lead_and_no_longer_holds_are_made_anew(node, capsys):
    """Its log directories are there and formatted, and their logs are gone, checkpoints too."""
    assert "anew" not in str(predict(capsys, node)[0]["answer"])
    shutil.rmtree(node / "data-1" / "orders-1")
    for path in node.glob("*/*-checkpoint"):
        path.unlink()

    document, code = predict(capsys, node)

    assert (code, document["answer"]["state"]) == (3, "unknown")
    assert "Broker 1 makes orders-1 anew, empty" in document["answer"]["headline"]
    assert any("Whether orders-1 held records" in line for line in document["answer"]["unknown"])


def test_a_log_directory_that_the_settings_leave_out_is_not_loaded(node, tmp_path, capsys):
    file = tmp_path / "server.properties"
    keeps = "node.id=1\nlog.retention.ms=-1\n"
    file.write_text(f"{keeps}log.dirs={node / 'data-0'},{node / 'data-1'}\n")
    document, _ = predict(capsys, node, file)
    assert any("data-1/orders-1" in log["path"] for log in document["logs"])
    assert "does not name" not in document["answer"]["headline"]

    file.write_text(f"{keeps}log.dirs={node / 'data-0'}\n")
    document, code = predict(capsys, node, file)
    assert (code, document["answer"]["state"]) == (3, "unknown")
    assert "data-1 is not loaded: server.properties does not name it" in document["answer"]["headline"]
    assert not any("data-1" in log["path"] for log in document["logs"])


def test_a_settings_file_that_is_named_beside_its_folder_counts_once(node, capsys):
    for folder in ("data-0", "data-1"):
        edit(node / folder / "meta.properties", "node.id", "7")
    (node / "server.properties").write_text("node.id=1\nlog.retention.hours=20\n")

    document, _ = predict(capsys, node, node / "server.properties")

    assert "doesn't match previous node id 1" in document["starts"][0]["reason"]


def test_an_empty_folder_beside_the_log_directories_may_be_a_disk_that_is_not_mounted(node, capsys):
    shutil.rmtree(node / "data-1")
    (node / "data-1").mkdir()
    document, _ = predict(capsys, node)
    assert not any("is not mounted" in line for line in document["answer"]["unknown"]), "it registered one directory"

    shutil.rmtree(node / "data-0" / "__cluster_metadata-0")
    document, code = predict(capsys, node)
    assert (code, document["answer"]["state"], document["starts"][0]["outcome"]) == (3, "unknown", None)
    assert "data-1 beside its log directories is empty" in document["answer"]["headline"]
    assert any("is not mounted" in line for line in document["answer"]["unknown"])

    (node / "data-1").rmdir()
    document, _ = predict(capsys, node)
    assert not any("is not mounted" in line for line in document["answer"]["unknown"])


def test_a_directory_that_was_registered_and_is_not_here_is_said_first(fixtures, capsys, tmp_path):
    """The recorded registration names the directory of the broker; under another id it is not that one."""
    broker = tmp_path / "broker-1"
    copied(fixtures / "unclean-election" / "broker-1", broker)
    for path in [broker, *broker.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    edit(broker / "meta.properties", "directory.id", "B" * 22)

    document, code = predict(capsys, broker)

    assert (code, document["answer"]["state"]) == (3, "unknown")
    assert "Not every log directory of node 1 is here" in document["answer"]["headline"]
    assert any("did not register" in line for line in document["answer"]["unknown"])


def test_directories_that_no_metadata_assign_become_strays_and_earlier_versions_delete_them(node, capsys):
    metadata = node / "data-1" / "orders-1" / "partition.metadata"
    metadata.write_text("version: 0\ntopic_id: Zn7nXw1aQ6uO0t0zMfDkyw")

    document, _ = predict(capsys, node)
    log = next(log for log in document["logs"] if log["path"].endswith("orders-1"))
    assert (log["becomes"], log["records_lost"]) == ("stray", 0)
    assert "1 is a stray" in document["answer"]["headline"]

    shutil.rmtree(node / "data-0" / "__cluster_metadata-0")
    document, code = predict(capsys, node, "--kafka", "4.1.0")
    assert {log["becomes"] for log in document["logs"]} == {"unknown"}
    assert (code, document["answer"]["state"]) != (0, "starts-unchanged")
    assert any("no metadata log" in line for line in document["answer"]["unknown"])


def test_a_replica_that_a_reassignment_removes_may_be_a_stray_when_its_broker_is_started(node, capsys):
    (history,) = [read_metadata_log(files) for files in find_metadata_logs(find_inputs([node]))]
    moved = next(one for one in history.latest().partitions.values() if (one.topic, one.partition) == ("orders", 1))
    fields = {"partition_id": 1, "topic_id": moved.topic_id, "removing_replicas": (1,)}
    (log,) = (node / "data-0" / "__cluster_metadata-0").glob("*.log")
    whole = log.read_bytes()
    record = metadata_record("PartitionChangeRecord", fields)
    log.write_bytes(whole + metadata_batch(history.end_offset, [record], epoch=history.last_epoch))

    document, code = predict(capsys, node)

    assert (code, document["answer"]["state"]) == (3, "unknown")
    assert document["answer"]["headline"].startswith("Kafka 4.1.0 loads all 6 logs; 1 may be a stray by then. ")
    (words,) = [line for line in document["answer"]["unknown"] if "reassignment" in line]
    assert f"data-1/orders-1 of broker 1 (metadata offset {history.end_offset}, in " in words
    assert str(log) in words

    log.write_bytes(whole)
    document, _ = predict(capsys, node)
    assert "reassignment" not in str(document["answer"])


def test_what_comes_of_a_partition_whose_metadata_contradict_themselves_is_not_known(node, capsys):
    (history,) = [read_metadata_log(files) for files in find_metadata_logs(find_inputs([node]))]
    one = next(one for one in history.latest().partitions.values() if (one.topic, one.partition) == ("orders", 1))
    (log,) = (node / "data-0" / "__cluster_metadata-0").glob("*.log")
    whole = log.read_bytes()
    lost = {"directories": tuple(LOST_DIRECTORY for _ in one.replicas)}
    for change, words in (
        ({"replicas": (1, 1), "isr": (1,), "directories": ()}, "names a broker twice among the replicas of orders-1"),
        ({"replicas": (), "isr": (), "directories": ()}, "the metadata names no replicas of orders-1"),
        ({"isr": (1, 9)}, "an in-sync replica that is none of the replicas of orders-1"),
        (lost, "Whether orders-1 gets a leader is not known"),
    ):
        record = metadata_record("PartitionChangeRecord", {"partition_id": 1, "topic_id": one.topic_id, **change})
        log.write_bytes(whole + metadata_batch(history.end_offset, [record], epoch=history.last_epoch))
        document, code = predict(capsys, node, "--kafka", "4.1.0")
        assert (code, document["answer"]["state"]) == (3, "unknown"), change
        assert words in document["answer"]["headline"] + str(document["starts"])


def test_a_topic_whose_segments_are_smaller_than_the_version_takes_ends_the_start(node, capsys):
    (history,) = [read_metadata_log(files) for files in find_metadata_logs(find_inputs([node]))]
    fields = {"resource_type": 2, "resource_name": "elsewhere", "name": "segment.bytes", "value": "4000"}
    (log,) = (node / "data-0" / "__cluster_metadata-0").glob("*.log")
    whole = log.read_bytes()
    record = metadata_record("ConfigRecord", fields)
    log.write_bytes(whole + metadata_batch(history.end_offset, [record], epoch=history.last_epoch))

    document, _ = predict(capsys, node, "--kafka", "4.1.0")
    start = document["starts"][0]
    assert (start["outcome"], start["exception"], start["loads_logs"]) == ("exits", "ConfigException", False)
    assert "topic elsewhere" in start["reason"]
    assert document["answer"]["state"] == "will-not-start"


@pytest.mark.parametrize(
    ("name", "fields", "exception"),
    [
        ("TopicRecord", {"name": "fresh", "topic_id": "B" * 21 + "A"}, None),
        ("TopicRecord", {"name": "orders", "topic_id": "B" * 21 + "A"}, "RuntimeException"),
        ("RemoveTopicRecord", {"topic_id": "B" * 21 + "A"}, "RuntimeException"),
        ("PartitionChangeRecord", {"partition_id": 0, "topic_id": "B" * 21 + "A", "leader": 1}, "NullPointerException"),
        ("UnregisterBrokerRecord", {"broker_id": 77, "broker_epoch": 1}, "RuntimeException"),
        ("FenceBrokerRecord", {"id": 1, "epoch": 99_999}, "IllegalStateException"),
    ],
)
@pytest.mark.some(2)
def test_a_controller_ends_on_a_record_that_fits_nothing_before_it(node, apart, capsys, name, fields, exception):
    (history,) = [read_metadata_log(files) for files in find_metadata_logs(find_inputs([node]))]
    (log,) = (node / "metadata" / "__cluster_metadata-0").glob("*.log")
    batch = metadata_batch(history.end_offset, [metadata_record(name, fields)], epoch=history.last_epoch)
    log.write_bytes(log.read_bytes() + batch)

    (start,) = predict(capsys, node, apart, "--kafka", "4.1.0")[0]["starts"]

    assert (start["outcome"], start["exception"]) == ("exits" if exception else "starts", exception), start["reason"]
    assert not exception or f"at offset {history.end_offset} of the metadata log" in start["reason"]
    older = predict(capsys, node, apart, "--kafka", "3.7.1")[0]["starts"][0]
    assert older["outcome"] != "exits" or "metadata.version" in older["reason"], "measured with 3.9 and 4.1 alone"


@pytest.mark.parametrize(
    ("voters", "outcome", "words"),
    [
        ((), "exits", "no controller is elected"),
        ((9,), None, "whether voter 9 can start is not known"),
        ((100,), "starts", ""),
    ],
)
def test_no_voter_and_one_that_never_registered_let_no_broker_in(node, capsys, voters, outcome, words):
    (history,) = [read_metadata_log(files) for files in find_metadata_logs(find_inputs([node]))]
    (log,) = (node / "data-0" / "__cluster_metadata-0").glob("*.log")
    versions = {"min_supported_version": 0, "max_supported_version": 1}
    named = [
        {"voter_id": one, "voter_directory_id": "B" * 21 + "A", "endpoints": (), "k_raft_version_feature": versions}
        for one in voters
    ]
    record = encode_control_record(ControlType.KRAFT_VOTERS, {"voters": named})
    batch = build_record_batch(
        history.end_offset, [(1_000, *record)], partition_leader_epoch=history.last_epoch, attributes=0x20
    )
    log.write_bytes(log.read_bytes() + encode_record_batch(batch))

    document, _ = predict(capsys, node, "--kafka", "4.1.0")

    assert document["starts"][0]["outcome"] == outcome
    assert words in document["starts"][0]["reason"]


def test_voters_that_are_not_given_are_in_doubt_beside_a_controller_that_is_none(node, tmp_path, fixtures, capsys):
    beside = copied(fixtures / "unclean-election" / "controller-100", tmp_path / "controller")
    edit(beside / "meta.properties", "node.id", "7")

    starts = predict(capsys, node, beside, "--kafka", "4.1.0")[0]["starts"]

    assert "whether voter 100 can start is not known" in starts[0]["reason"]
    assert predict(capsys, node, "--kafka", "4.1.0")[0]["starts"][0]["outcome"] == "starts"


@pytest.mark.parametrize(("level", "outcome"), [(22, None), (25, "starts")])
def test_a_level_without_place_for_the_eligible_leader_replicas_that_a_feature_asks_for_is_no_known_start(
    node, capsys, level, outcome
):
    (history,) = [read_metadata_log(files) for files in find_metadata_logs(find_inputs([node]))]
    (log,) = (node / "data-0" / "__cluster_metadata-0").glob("*.log")
    levels = {"eligible.leader.replicas.version": 1, "metadata.version": level}
    records = [metadata_record("FeatureLevelRecord", {"name": n, "feature_level": at}) for n, at in levels.items()]
    log.write_bytes(log.read_bytes() + metadata_batch(history.end_offset, records, epoch=history.last_epoch))

    assert predict(capsys, node, "--kafka", "4.1.0")[0]["starts"][0]["outcome"] == outcome


@pytest.mark.parametrize(("gap", "last"), [(0, "BeginTransactionRecord"), (3, "NoOpRecord")])
def test_what_a_controller_before_3_9_makes_of_an_open_transaction_or_of_a_gap_is_not_known(
    node, apart, capsys, monkeypatch, gap, last
):
    (history,) = [read_metadata_log(files) for files in find_metadata_logs(find_inputs([node]))]
    (log,) = (node / "metadata" / "__cluster_metadata-0").glob("*.log")
    (node / "metadata" / "bootstrap.checkpoint").unlink()
    levels = history.latest().features
    lowered = ({"name": name, "feature_level": 19 if name == "metadata.version" else 0} for name in levels)
    records = [
        *(metadata_record("FeatureLevelRecord", one) for one in lowered),
        metadata_record(last, {}),
    ]
    batch = metadata_batch(history.end_offset + gap, records, epoch=history.last_epoch)
    log.write_bytes(log.read_bytes() + batch)

    started = predict(capsys, node, apart, "--kafka", "3.8.1")[0]["starts"][0]
    assert started["exception"] == "MetadataParseException", "its log has a ClearElrRecord, which came with 4.0"
    monkeypatch.setattr("kforensics.commands.predicting.node_starts.refuse_formats", lambda *_: None)
    outcomes = [
        predict(capsys, node, apart, "--kafka", version)[0]["starts"][0]["outcome"] for version in ("3.8.1", "4.1.0")
    ]

    assert outcomes == [None, "starts"]


@pytest.mark.parametrize(
    ("change", "kafka", "exception"),
    [
        ({"leaderEpoch": None}, "4.1.0", "RuntimeException"),
        ({"leaderEpoch": "1"}, "4.1.0", "NumberFormatException"),
        ({"leaderEpoch": 1.5}, "3.3.2", "NumberFormatException"),
        ({"leaderId": 1 << 40}, "4.1.0", "NumberFormatException"),
        ({"votedDirectoryId": 5}, "4.1.0", "RuntimeException"),
        ({"currentVoters": [{"voterId": 1}]}, "4.1.0", "UnsupportedVersionException"),
        ({"currentVoters": [{"voterId": 1}], "votedDirectoryId": None}, "4.1.0", "RuntimeException"),
        ({"data_version": -1}, "4.1.0", "IllegalStateException"),
        ({"data_version": "0"}, "4.1.0", "RuntimeException"),
        ({"note": 1}, "4.1.0", None),
    ],
)
@pytest.mark.some(3)
def test_fields_of_quorum_state_that_kafka_does_not_read_end_the_start(node, capsys, change, kafka, exception):
    path = node / "data-0" / "__cluster_metadata-0" / "quorum-state"
    whole = {"leaderId": 1, "leaderEpoch": 1, "votedId": -1, "votedDirectoryId": "A" * 22, "data_version": 1}
    if kafka < "3.8":
        (node / "data-0" / "bootstrap.checkpoint").unlink()
        whole |= {"clusterId": "", "appliedOffset": 0, "currentVoters": [], "data_version": 0}
        for one in (node / "data-0", node / "data-1"):
            meta = (one / "meta.properties").read_text().splitlines(keepends=True)
            (one / "meta.properties").write_text("".join(line for line in meta if "directory.id" not in line))
    fields = {key: value for key, value in {**whole, **change}.items() if value is not None}
    path.write_text(json.dumps(fields))

    (start,) = predict(capsys, node, "--kafka", kafka)[0]["starts"]

    assert (start["outcome"], start["exception"]) == ("exits" if exception else "starts", exception), start["reason"]


def test_kafka_reads_the_first_object_of_quorum_state_and_nothing_behind_it(node, capsys):
    path = node / "data-0" / "__cluster_metadata-0" / "quorum-state"
    for more in ("more", "\n{}"):
        path.write_text(path.read_text() + more)
        (start,) = predict(capsys, node, "--kafka", "4.1.0")[0]["starts"]
        assert start["outcome"] == "starts", start["reason"]


@pytest.mark.parametrize(
    ("name", "exception"),
    [
        ("backup.checkpoint", "StringIndexOutOfBoundsException"),
        ("0000000000000000000a-0000000001.checkpoint", "NumberFormatException"),
        ("backup.checkpoint.txt", None),
    ],
)
def test_names_like_that_of_a_snapshot_end_the_start(node, capsys, name, exception):
    (node / "data-0" / "__cluster_metadata-0" / name).write_text("")
    (start,) = predict(capsys, node, "--kafka", "4.1.0")[0]["starts"]
    assert (start["outcome"], start["exception"]) == ("exits" if exception else "starts", exception), start["reason"]


def test_the_topic_id_of_another_in_the_metadata_log_ends_the_start(node, capsys):
    path = node / "data-0" / "__cluster_metadata-0" / "partition.metadata"
    for topic_id, exception in (("B" * 21 + "A", "InconsistentTopicIdException"), ("A" * 21 + "Q", None)):
        path.write_text(f"version: 0\ntopic_id: {topic_id}")
        (start,) = predict(capsys, node, "--kafka", "4.1.0")[0]["starts"]
        assert (start["outcome"], start["exception"]) == ("exits" if exception else "starts", exception)


@pytest.mark.parametrize("name", ["quorum-state", "quorum-state.tmp", "00000000000000000900-0000000900.checkpoint"])
def test_a_folder_in_place_of_a_file_of_the_quorum_ends_the_start(node, capsys, name):
    path = node / "data-0" / "__cluster_metadata-0" / name
    path.unlink(missing_ok=True)
    path.mkdir()
    (path / "a").touch()

    (start,) = predict(capsys, node, "--kafka", "4.1.0")[0]["starts"]

    assert (start["outcome"], start["exception"]) == ("exits", "UncheckedIOException"), start["reason"]


def test_logs_that_the_metadata_place_in_a_directory_that_is_not_here_have_no_leader(node, capsys):
    said = "once the broker has registered: the metadata"
    assert said not in json.dumps(predict(capsys, node, "--kafka", "4.1.0")[0]["answer"])
    edit(node / "data-0" / "meta.properties", "directory.id", "C" * 21 + "A")
    assert said in json.dumps(predict(capsys, node, "--kafka", "4.1.0")[0]["answer"])


def test_a_broker_that_may_not_register_renames_its_logs_all_the_same(node, capsys):
    for folder in ("data-0", "data-1"):
        edit(node / folder / "meta.properties", "node.id", "4")

    document, code = predict(capsys, node, "--kafka", "4.1.0")
    start = document["starts"][0]
    assert (start["outcome"], start["exception"], start["loads_logs"]) == (
        "exits",
        "InvalidRegistrationException",
        True,
    )
    assert {log["becomes"] for log in document["logs"]} == {"stray"}
    assert (code, len(document["starts"])) == (1, 1)
    assert f"and renames {len(document['logs'])} logs to -stray" in document["answer"]["headline"]
    assert any(line.startswith("Mend the identity of broker 4 first") for line in document["answer"]["now"])


def test_a_version_below_the_level_of_the_cluster_is_refused(node, capsys):
    document, code = predict(capsys, node, "--kafka", "3.9.1")

    assert code == 1
    assert "metadata.version" in document["starts"][0]["reason"]
    assert document["starts"][0]["loads_logs"] is False


def test_no_broker_is_let_in_where_its_only_controller_does_not_start(fixtures, tmp_path, capsys):
    for name in ("broker-1", "controller-100"):
        copied(fixtures / "unclean-election" / name, tmp_path / name)
    nodes = tmp_path / "broker-1", tmp_path / "controller-100"
    before, _ = predict(capsys, *nodes, "--kafka", "4.1.0")
    assert {one["outcome"] for one in before["starts"]} == {"starts"}

    (nodes[1] / "__cluster_metadata-0" / "quorum-state").write_text("")
    document, code = predict(capsys, *nodes, "--kafka", "4.1.0")

    exceptions = {one["input"]: one["exception"] for one in document["starts"]}
    assert list(exceptions.values()) == ["RuntimeException", "UncheckedIOException"]
    assert not any(one["loads_logs"] for one in document["starts"])
    assert (code, document["answer"]["state"]) == (1, "will-not-start")
    assert document["answer"]["headline"].startswith("Controller 100 (and 1 more) does not start")
    assert any(one.startswith("Mend the metadata log of controller 100 first") for one in document["answer"]["now"])
    assert not any("of broker 1 first" in one for one in document["answer"]["now"]), "it only waits for the controller"


def test_a_voter_is_who_its_settings_say_whatever_its_directory_says(fixtures, tmp_path, capsys):
    for name in ("broker-1", "controller-100"):
        copied(fixtures / "unclean-election" / name, tmp_path / name)
    nodes = tmp_path / "broker-1", tmp_path / "controller-100"
    edit(nodes[1] / "meta.properties", "node.id", "7")
    settings = tmp_path / "server.properties"
    settings.write_text(f"process.roles=controller\nnode.id=100\nlog.dirs={nodes[1]}\n")

    document, _ = predict(capsys, *nodes, settings, "--kafka", "4.1.0")

    reasons = [one["reason"] for one in document["starts"]]
    assert "no controller is elected" in reasons[0]
    assert "Stored node id 7" in reasons[1]
    edit(nodes[1] / "meta.properties", "node.id", "100")
    (nodes[1] / "lost+found").mkdir()
    starts = predict(capsys, *nodes, settings, "--kafka", "4.1.0")[0]["starts"]
    assert [one["outcome"] for one in starts] == ["starts", "starts"], "a controller looks for no logs"


@pytest.mark.parametrize("name", ["replication-offset-checkpoint", "cleaner-offset-checkpoint"])
def test_a_malformed_checkpoint_that_is_read_once_the_logs_are_loaded_takes_its_directory(node, tmp_path, capsys, name):
    (node / "data-1" / name).write_text("0\n3\norders 0 5\n")

    document, _ = predict(capsys, node, "--kafka", "4.1.0")

    assert [one["outcome"] for one in document["starts"]] == ["dir-offline"]
    assert document["starts"][0]["exception"] == "KafkaStorageException"
    (node / "data-1" / name).write_text("0\n1\norders 0 many\n")
    document, _ = predict(capsys, node, "--kafka", "4.1.0")
    assert [one["outcome"] for one in document["starts"]] == ["starts"], "a number that is none is no I/O error"


def test_a_plain_file_where_a_log_is_to_be_made_fails_its_log_directory(node, capsys):
    shutil.rmtree(node / "data-1" / "orders-1")
    (node / "data-1" / "orders-1").write_text("")

    document, code = predict(capsys, node, "--kafka", "4.1.0")

    assert [one["outcome"] for one in document["starts"]] == ["starts"], "it is assigned to the other directory"
    assigned = next(
        line
        for line in (node / "data-0" / "meta.properties").read_text().splitlines()
        if line.startswith("directory.id")
    ).partition("=")[2]
    edit(node / "data-0" / "meta.properties", "directory.id", "C" * 22)
    document, code = predict(capsys, node, "--kafka", "4.1.0")
    assert [one["outcome"] for one in document["starts"]] == [None], "it may be made in either"
    assert (code, document["answer"]["state"]) == (3, "unknown")
    assert "data-1/orders-1 is a plain file" in json.dumps(document["starts"])
    edit(node / "data-1" / "meta.properties", "directory.id", assigned)
    document, _ = predict(capsys, node, "--kafka", "4.1.0")
    assert [one["outcome"] for one in document["starts"]] == ["dir-offline"]
    assert document["answer"]["state"] == "will-not-start"
    shutil.rmtree(node / "data-0" / "orders-0")
    (node / "data-1").rename(node.with_name("aside"))
    (node / "data-0" / "orders-0").write_text("")
    document, code = predict(capsys, node, "--kafka", "4.1.0")
    assert {one["outcome"] for one in document["starts"]} == {"exits"}, "it is the only log directory"
    assert {one["exception"] for one in document["starts"]} == {"FileAlreadyExistsException"}
    assert (code, document["answer"]["state"]) == (1, "will-not-start")
    (node / "data-0" / "orders-0").rename(node / "data-0" / "bills-0")
    document, _ = predict(capsys, node, "--kafka", "4.1.0")
    assert {one["outcome"] for one in document["starts"]} == {"starts"}, "no log of that name is made"


def test_a_log_that_ends_below_its_log_start_is_not_calm(node, capsys):
    (node / "data-1" / "log-start-offset-checkpoint").write_text("0\n1\norders 1 9000\n")

    document, code = predict(capsys, node, "--kafka", "4.1.0")

    assert (code, document["answer"]["state"]) == (3, "unknown")
    assert "may have lost its end before" in document["answer"]["headline"]
    assert "log-start-offset-checkpoint says 9000" in " ".join(document["answer"]["unknown"])


def test_log_directories_that_two_settings_name_are_of_two_nodes(node, tmp_path, capsys):
    other = tmp_path / "controller"
    other.mkdir()
    (other / "meta.properties").write_text(edited((node / "data-1" / "meta.properties").read_text(), "node.id", "9"))
    for at, node_id, places in ((0, 1, (node / "data-0", node / "data-1")), (1, 9, (other,))):
        (tmp_path / str(at)).mkdir()
        text = f"process.roles=broker\nnode.id={node_id}\nlog.dirs={','.join(map(str, places))}\n"
        (tmp_path / str(at) / "server.properties").write_text(text)

    document, _ = predict(capsys, node, other, tmp_path / "0", tmp_path / "1", "--kafka", "4.1.0")

    assert "previous node id" not in str(document["starts"])
    assert len({one["input"] for one in document["starts"]}) == 2

    named = tmp_path / "1" / "server.properties"
    named.write_text(f"{named.read_text()}node.id=2\n")
    document, _ = predict(capsys, node, other, tmp_path / "0", tmp_path / "1", "--kafka", "4.1.0")

    assert [one["exception"] for one in document["starts"]] == [None, "RuntimeException"]
    assert "Stored node id 9 doesn't match previous node id 2" in document["starts"][1]["reason"]
    for line, words in (
        ("node.id=-1\n", "node.id"),
        ("", "Missing configuration `node.id`"),
        ("node.id=9\nlog.segment.bytes=1\n", "log.segment.bytes"),
    ):
        named.write_text(f"{text.replace('node.id=9', '').strip()}\n{line}")
        document, _ = predict(capsys, node, other, tmp_path / "0", tmp_path / "1", "--kafka", "4.1.0")
        assert document["starts"][1]["exception"] == "ConfigException"
        assert words in document["starts"][1]["reason"]


def test_a_controller_alone_has_no_use_for_its_other_log_directories(fixtures, tmp_path, capsys):
    root = tmp_path / "one"
    copied(fixtures / "unclean-election" / "controller-100", root / "data-0")
    (root / "data-1").mkdir()
    meta = edited((root / "data-0" / "meta.properties").read_text(), "directory.id", "none")
    (root / "data-1" / "meta.properties").write_text(meta)
    (root / "data-1" / "recovery-point-offset-checkpoint").write_text("0\n3\norders 0 5\n")

    for roles, outcome in (("controller", "starts"), ("broker,controller", "dir-offline")):
        (tmp_path / "server.properties").write_text(
            f"node.id=100\nprocess.roles={roles}\nlog.dirs={root}/data-0,{root}/data-1\n"
        )
        document, _ = predict(capsys, root, tmp_path / "server.properties", "--kafka", "4.1.0")
        assert [one["outcome"] for one in document["starts"]] == [outcome]


@pytest.mark.parametrize("level", [2, 3])
def test_a_feature_of_a_later_release_ends_the_start(node, capsys, level):
    (history,) = [read_metadata_log(files) for files in find_metadata_logs(find_inputs([node]))]
    (log,) = (node / "data-0" / "__cluster_metadata-0").glob("*.log")
    record = metadata_record("FeatureLevelRecord", {"name": "transaction.version", "feature_level": level})
    log.write_bytes(log.read_bytes() + metadata_batch(history.end_offset, [record], epoch=history.last_epoch))

    document, _ = predict(capsys, node, "--kafka", "4.1.0")

    start = document["starts"][0]
    if level == 2:
        assert (start["outcome"], start["reason"]) == ("starts", "")
        return
    assert (start["outcome"], start["loads_logs"]) == ("exits", False)
    assert "version 3 of transaction.version" in start["reason"]
    assert document["answer"]["state"] == "will-not-start"
    inferred, _ = predict(capsys, node)
    assert inferred["answer"]["state"] == "unknown", "a release that is later than is known may support it"


def controller_of(fixtures, tmp_path):
    """A copy of a controller, with its metadata log, the file of it, and what it says."""
    root = tmp_path / "controller-100"
    copied(fixtures / "unclean-election" / "controller-100", root)
    (files,) = find_metadata_logs(find_inputs([root]))
    (log,) = (root / "__cluster_metadata-0").glob("*.log")
    return root, files, log, read_metadata_log(files)


def test_records_that_no_controller_writes_end_the_start(fixtures, tmp_path, capsys):
    root, files, log, history = controller_of(fixtures, tmp_path)
    whole = log.read_bytes()
    begun = metadata_record("BeginTransactionRecord", {"name": "t"})
    (topic_id,) = [at for at, one in history.topics.items() if one.name == "orders"]
    change = {"partition_id": 0, "topic_id": topic_id, "replicas": (1, 2), "directories": (topic_id,)}
    expected = {
        "MetadataParseException": [begun[:-1]],
        "IllegalArgumentException": [b""],
        "RuntimeException": [begun, begun],
        "InvalidReplicaDirectoriesException": [metadata_record("PartitionChangeRecord", change)],
    }
    for exception, records in expected.items():
        log.write_bytes(whole + metadata_batch(history.end_offset, records, epoch=history.last_epoch))
        start = predict(capsys, root, "--kafka", "4.1.0")[0]["starts"][0]
        assert (start["outcome"], start["exception"]) == ("exits", exception), start["reason"]

    removals = [
        metadata_record("RemoveAccessControlEntryRecord", {"id": topic_id}),
        metadata_record("RemoveUserScramCredentialRecord", {"name": "a", "mechanism": 1}),
    ]
    log.write_bytes(whole + metadata_batch(history.end_offset, removals, epoch=history.last_epoch))
    found = [name for name, _ in read_metadata_log(files).unapplied]
    assert found == ["RemoveAccessControlEntryRecord", "RemoveUserScramCredentialRecord"]


def test_a_controller_that_joins_starts_without_voters(incident, capsys):
    """As this one did: only a controller that is elected misses them."""
    root = incident("controller-change-4.4") / "snapshots" / "01-before-live" / "controller-904"
    assert [one["outcome"] for one in predict(capsys, root)[0]["starts"]] == ["starts"]


def test_a_level_that_has_no_place_for_the_metadata_ends_every_controller(fixtures, tmp_path, capsys):
    root, files, log, history = controller_of(fixtures, tmp_path)
    whole = log.read_bytes()
    expected = {16: "the online log directories of one or more brokers", 17: ""}
    for level, beyond in expected.items():
        record = metadata_record("FeatureLevelRecord", {"name": "metadata.version", "feature_level": level})
        log.write_bytes(whole + metadata_batch(history.end_offset, [record], epoch=history.last_epoch))
        changed = read_metadata_log(files)
        start = predict(capsys, root, "--kafka", "4.1.0")[0]["starts"][0]
        assert (changed.beyond_level(), len(changed.level_problems)) == (beyond, bool(beyond))
        assert (start["exception"] == "UnwritableMetadataException") is bool(beyond)
        assert beyond in start["reason"]


@pytest.mark.parametrize(
    ("place", "bits", "exception"),
    [
        (18, 4, None),  # the checksum, which nobody compares
        (16, 4, None),  # a magic above 2 is read as 2
        (10, 4, "RuntimeException"),  # a length beyond the end of the file, which ends it
        (11, 0xFF, "CorruptRecordException"),
        (22, 4, "KafkaException"),
        (61, 4, "InvalidRecordException"),
        (70, 4, "RuntimeException"),
    ],
)
def test_bootstrap_checkpoint_is_read_by_each_start_without_its_checksum(node, capsys, place, bits, exception):
    record = metadata_record("FeatureLevelRecord", {"name": "metadata.version", "feature_level": 14})
    data = bytearray(metadata_batch(0, [record]))
    data[place] = 5 if bits == 0xFF else data[place] ^ bits
    (node / "data-0" / "bootstrap.checkpoint").write_bytes(data)

    for kafka in ("4.1.0", "4.4.0"):
        start = predict(capsys, node, "--kafka", kafka)[0]["starts"][0]
        assert (start["exception"], start["outcome"]) == (exception, "exits" if exception else "starts"), start[
            "reason"
        ]


def test_a_metadata_log_is_read_whole_after_a_clean_stop_too(node, capsys):
    log = node / "data-0" / "__cluster_metadata-0" / LOG
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 8
    log.write_bytes(data)

    document, code = predict(capsys, node, "--kafka", "4.1.0")

    (metadata,) = document["metadata_logs"]
    assert metadata["records_lost"] > 0
    assert metadata["held_by"] == []
    assert (code, document["answer"]["state"]) == (1, "loses")
    assert "records of the metadata log" in document["answer"]["headline"]


def test_the_server_log_names_the_version(node, tmp_path, capsys):
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "server.log").write_text(
        "[2026-11-20 10:00:00,000] INFO [BrokerServer id=1] Transition from SHUTDOWN to STARTING (kafka.server.BrokerServer)\n"
        "[2026-11-20 10:00:00,100] INFO Kafka version: 4.0.0 (org.apache.kafka.common.utils.AppInfoParser)\n"
    )

    document, _ = predict(capsys, node, logs)

    assert (document["kafka"], document["kafka_source"]) == ("4.0.0", "server-log")


def test_a_file_that_can_not_be_read_here_leaves_the_start_unknown(node, monkeypatch, capsys):
    def read(folder, need, scans):
        if folder.name == "orders-1" and need.file == "leader-epoch-checkpoint":
            raise EvidenceUnreadable("leader-epoch-checkpoint", "Input/output error")
        return read_needed(folder, need, scans)

    monkeypatch.setattr("kforensics.commands.loading.read_needed", read)

    document, code = predict(capsys, node)

    log = next(log for log in document["logs"] if log["path"].endswith("orders-1"))
    # What a broker does that can't read it either is not said of one that can.
    assert (code, document["answer"]["state"], log["outcome"]) == (3, "unknown", "unknown")
    assert [problem["path"] for problem in document["problems"]] == ["data-1/orders-1/leader-epoch-checkpoint"]
    assert any("leader-epoch-checkpoint can't be read here" in line for line in document["answer"]["unknown"])


DAY_MS = 86_400_000


def test_retention_by_settings_that_are_known_is_in_the_headline_and_by_defaults_among_what_is_not_known(node, capsys):
    # A marker beside indexes that are not trimmed would have their zeros read as times (KAFKA-10207).
    for marker in node.glob("*/.kafka_cleanshutdown"):
        marker.unlink()
    recorded = 1_795_000_000_000
    late = ["--now", str(recorded + 400 * DAY_MS)]
    document, _ = predict(capsys, node, *late)
    due = [log["retention"] for log in document["logs"]]
    assert any(one.get("known") is False for one in due)
    assert "default retention would delete all of" in document["answer"]["headline"]
    assert any(
        "by the settings for all topics (Kafka's: 7 days, no size)" in line for line in document["answer"]["unknown"]
    )

    document, _ = predict(capsys, node, *late, "--set", "log.retention.ms=86400000")
    whole = [log["retention"] for log in document["logs"] if log["retention"] and log["retention"]["whole_log"]]
    assert whole
    assert all(one["known"] and one["rule"] == "time" for one in whole)
    assert document["answer"]["state"] not in {"loses", "starts-unchanged"}
    assert "retention then deletes all that" in document["answer"]["headline"]

    document, _ = predict(capsys, node, *late, "--set", "retention.ms=-1")
    assert not any(log["retention"] for log in document["logs"])
    document, _ = predict(capsys, node, "--now", str(recorded))
    assert not any(log["retention"] for log in document["logs"])


@pytest.mark.parametrize(
    ("line", "exception", "words"),
    [
        (
            "log.retention.hours=${HOURS}",
            "ConfigException",
            "Invalid value ${HOURS} for configuration log.retention.hours",
        ),
        ("log.segment.bytes=4k", "ConfigException", "Not a number of type INT"),
        ("log.retention.ms=0", "IllegalArgumentException", "log.retention.ms must be unlimited"),
        ("log.cleanup.policy=none", "ConfigException", "String must be one of: compact, delete"),
    ],
)
@pytest.mark.some(2)
def test_a_server_properties_with_a_value_that_a_start_does_not_take_ends_it(
    node, tmp_path, capsys, line, exception, words
):
    file = tmp_path / "server.properties"
    file.write_text(f"node.id=1\n{line}\n")

    document, code = predict(capsys, node, file)

    start = document["starts"][0]
    assert (start["outcome"], start["exception"], start["loads_logs"]) == ("exits", exception, False)
    assert words in start["reason"]
    assert (document["answer"]["state"], code) == ("will-not-start", 1)

    file.write_text("node.id=1\nlog.retention.hours=200\n")
    assert predict(capsys, node, file)[0]["starts"][0]["outcome"] == "starts"


@pytest.mark.parametrize("given", ["retention.ms", "no.such.setting=1", "retention.ms=long", "=3"])
def test_settings_that_nothing_depends_on_are_refused(node, capsys, given):
    assert run(["predict", str(node), "--set", given]) == 2
    assert "--set" in capsys.readouterr().err


def test_settings_of_a_server_properties_among_the_inputs_count(node, tmp_path, capsys):
    file = tmp_path / "server.properties"
    file.write_text("node.id=1\nlog.index.size.max.bytes=131072\nlog.retention.hours=-1\n")

    document, _ = predict(capsys, node, file, "--now", "2030-01-01T00:00:00Z")

    log = next(log for log in document["logs"] if log["path"].endswith("orders-0"))
    sizes = {one["name"]: one["to_bytes"] for one in log["files"]}
    assert sizes["00000000000000000000.index"] == 131072
    assert log["retention"] is None

    file.write_text("node.id=8\n")
    document, code = predict(capsys, node, file)
    assert code == 1
    assert "doesn't match previous node id 8" in document["starts"][0]["reason"]


OTHER_DISK = "B" * 21 + "A"


@pytest.fixture
def moved(node):
    """A future log of `orders-1` in the second log directory; the metadata assign the first, where its log is."""
    edit(node / "data-1" / "meta.properties", "directory.id", OTHER_DISK)
    (node / "data-1" / "orders-1").rename(node / "data-0" / "orders-1")
    future = node / "data-1" / f"orders-1.{'0' * 32}-future"
    shutil.copytree(node / "data-0" / "orders-1", future)
    for index in node.glob("*/*/*.timeindex"):
        index.write_bytes(b"")
    return future


def test_a_future_log_in_the_directory_that_is_assigned_replaces_a_log_that_holds_more(node, moved, capsys):
    """`LogManager.recoverAbandonedFutureLogs` does not ask how far it has come (3.7)."""
    (moved / LOG).write_bytes(b"")
    document, _ = predict(capsys, node)
    assert {"kept"} == {found["becomes"] for found in document["logs"]}, "the other directory is assigned"

    (history,) = [read_metadata_log(files) for files in find_metadata_logs(find_inputs([node]))]
    one = next(one for one in history.latest().partitions.values() if (one.topic, one.partition) == ("orders", 1))
    fields = {"partition_id": 1, "topic_id": one.topic_id, "directories": tuple(OTHER_DISK for _ in one.replicas)}
    (log,) = (node / "data-0" / "__cluster_metadata-0").glob("*.log")
    record = metadata_record("PartitionChangeRecord", fields)
    log.write_bytes(log.read_bytes() + metadata_batch(history.end_offset, [record], epoch=history.last_epoch))
    document, code = predict(capsys, node)

    becomes = {found["path"]: found["becomes"] for found in document["logs"] if "orders-1" in found["path"]}
    assert becomes == {"data-0/orders-1": "deleted", f"data-1/{moved.name}": "promoted"}
    (lost,) = [found for found in document["logs"] if found["records_lost"]]
    assert (lost["path"], code, document["answer"]["state"]) == ("data-0/orders-1", 1, "loses")
    assert "can't go on" not in str(document["answer"])


def test_a_move_that_can_not_go_on_is_in_the_first_line_and_decides_the_exit_code(node, moved, capsys):
    assert "can't go on" not in str(predict(capsys, node)[0])
    (moved / LOG).write_bytes(b"")
    start = node / "data-0" / "log-start-offset-checkpoint"
    start.write_text("0\n1\norders 1 5\n")

    document, _ = predict(capsys, node)

    assert "; 1 move between log directories can't go on" in document["answer"]["headline"]
    assert [one["code"] for one in document["findings"]] == ["KF516"]


def test_a_partition_whose_only_replica_is_here_is_no_follower(node, capsys):
    (history,) = [read_metadata_log(files) for files in find_metadata_logs(find_inputs([node]))]
    records = [
        metadata_record(
            "PartitionChangeRecord",
            {"partition_id": one.partition, "topic_id": one.topic_id, "replicas": (1,), "isr": (1,), "leader": 1},
        )
        for one in history.latest().partitions.values()
    ]
    (log,) = (node / "data-0" / "__cluster_metadata-0").glob("*.log")
    log.write_bytes(log.read_bytes() + metadata_batch(history.end_offset, records, epoch=history.last_epoch))

    document, _ = predict(capsys, node)

    assert "as a follower" not in str(document["answer"])


@pytest.mark.parametrize("share", [0, 0.5])
def test_a_log_that_has_lost_its_end_is_not_calm_though_the_start_discards_nothing(incident, tmp_path, capsys, share):
    broker = tmp_path / "broker-2"
    copied(incident("consumer-ahead-4.x") / "snapshots" / "99-final" / "broker-2", broker)
    calm, _ = predict(capsys, broker)
    log = broker / "derived-0" / f"{0:020d}.log"
    log.write_bytes(log.read_bytes()[: int(log.stat().st_size * share)])

    document, code = predict(capsys, broker)

    assert ("unknown", 3) == (document["answer"]["state"], code)
    assert "lost its end" not in str(calm["answer"])
    assert "1 log may have lost its end" in document["answer"]["headline"]
    assert any("derived-0 (recovery-point-offset-checkpoint says" in words for words in document["answer"]["unknown"])


def test_a_partition_that_a_checkpoint_names_and_that_has_no_directory_is_not_calm(incident, tmp_path, capsys):
    broker = tmp_path / "broker-2"
    copied(incident("consumer-ahead-4.x") / "snapshots" / "99-final" / "broker-2", broker)
    calm, _ = predict(capsys, broker)
    shutil.rmtree(broker / "derived-0")

    document, code = predict(capsys, broker)

    assert ("unknown", 3) == (document["answer"]["state"], code)
    assert "1 partition that checkpoints name has no directory here" in document["answer"]["headline"]
    assert "directory here" not in calm["answer"]["headline"]
    assert any("derived-0 (" in words for words in document["answer"]["unknown"])


def test_records_are_lost_where_the_index_ends_in_an_incomplete_batch_from_which_a_start_finds_no_end(
    incident, tmp_path, capsys
):
    """`readNextOffset` takes the base offset where no batch is at the last entry of the index."""
    broker = tmp_path / "broker-2"
    copied(incident("consumer-ahead-4.x") / "snapshots" / "99-final" / "broker-2", broker)
    log = broker / "derived-0" / f"{0:020d}.log"
    with open_evidence(log) as file:
        last = list(walk_segment(file, level=Level.CRC))[-1].batches[-1]
    os.truncate(log, log.stat().st_size - 1)
    entry = struct.pack(">ii", last["base_offset"], last["position"])
    log.with_suffix(".index").write_bytes(entry)

    document, code = predict(capsys, broker)

    assert ("loses", 1) == (document["answer"]["state"], code)
    (lost,) = [one for one in document["logs"] if one["path"].endswith("derived-0")]
    assert (lost["before"]["log_end_offset"], lost["after"]["log_end_offset"]) == (last["base_offset"], 0)
    assert 0 < lost["records_lost"] <= last["base_offset"]


@pytest.mark.parametrize(
    "named", ["replication-offset-checkpoint", "leader-epoch-checkpoint", "00000000000000000009.snapshot"]
)
@pytest.mark.some(2)
def test_an_emptied_log_whose_recovery_point_is_0_is_not_calm_where_another_file_shows_its_end(
    incident, tmp_path, capsys, named
):
    broker = tmp_path / "broker-2"
    copied(incident("consumer-ahead-4.x") / "snapshots" / "99-final" / "broker-2", broker)
    folder = broker / "derived-0"
    for file in [*folder.glob("0*"), folder / "leader-epoch-checkpoint"]:
        file.unlink()
    for checkpoint in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        lines = (broker / checkpoint).read_text().splitlines()
        (broker / checkpoint).write_text(
            "\n".join(re.sub(r"^derived 0 .*", "derived 0 0", line) for line in lines) + "\n"
        )
    document, _ = predict(capsys, broker)
    assert "derived-0 (" not in str({**document["answer"], "later": []}), "nothing is left that would show it"

    if named.endswith(".snapshot"):
        (folder / named).touch()
    elif named.startswith("leader"):
        (folder / named).write_text("0\n2\n0 0\n3 7\n")
    else:
        (broker / named).write_text((broker / named).read_text().replace("derived 0 0", "derived 0 9"))
    document, code = predict(capsys, broker)

    assert (document["answer"]["state"], code) == ("unknown", 3)
    assert any(f"derived-0 ({named} says" in words for words in document["answer"]["unknown"])


@pytest.mark.parametrize("is_file", [True, False])
def test_what_a_symbolic_link_leads_to_is_not_known(fixtures, tmp_path, capsys, is_file):
    broker = tmp_path / "broker-1"
    copied(fixtures / "unclean-election" / "broker-1", broker)
    for path in [broker, *broker.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    moved = broker / "orders-0" / LOG if is_file else broker / "orders-0"
    moved.rename(tmp_path / "moved")
    moved.symlink_to(tmp_path / "moved")

    document, code = predict(capsys, broker)

    assert (document["answer"]["state"], code) == ("unknown", 3)
    said = document["answer"]["unknown"] if is_file else [one["message"] for one in document["problems"]]
    assert any("a symbolic link, which is not followed" in words for words in said)


@pytest.mark.parametrize("options", [("--topic", "ordrs"), ("--topic", "orders", "--partition", "77")])
def test_what_was_asked_for_and_is_not_there_is_refused(incident, capsys, options):
    code = run(["predict", str(incident("unclean-election-4.x") / "snapshots" / "99-final"), *options])

    out = capsys.readouterr()
    assert (code, out.out) == (2, "")
    assert "among the inputs" in out.err


@pytest.fixture
def zookeeper_disks(node):
    """Two log directories of a broker with ZooKeeper, of which the second is of another broker."""
    for one, broker in (("data-0", 1), ("data-1", 7)):
        (node / one / "meta.properties").write_text(
            f"version=0\nbroker.id={broker}\ncluster.id=W9wIvkEbTfu2mWq0qIyUOA\n"
        )
    shutil.rmtree(node / "data-0" / "__cluster_metadata-0")
    return [node / "data-0", node / "data-1"]


def write_settings(folder, *log_dirs):
    file = folder / "server.properties"
    file.write_text(f"broker.id=1\nlog.retention.hours=-1\nlog.dirs={','.join(map(str, log_dirs))}\n")
    return file


def test_the_settings_of_other_nodes_in_one_folder_do_not_count(node, tmp_path, capsys):
    for node_id, length in ((1, 131072), (8, 65536)):
        folder = tmp_path / "logs" / f"node-{node_id}"
        folder.mkdir(parents=True)
        (folder / "server.properties").write_text(f"node.id={node_id}\nlog.index.size.max.bytes={length}\n")

    document, _ = predict(capsys, node, tmp_path / "logs")

    assert [start["outcome"] for start in document["starts"]] == ["starts"]
    log = next(log for log in document["logs"] if log["path"].endswith("orders-0"))
    assert {one["name"]: one["to_bytes"] for one in log["files"]}["00000000000000000000.index"] == 131072


def test_log_directories_that_one_server_properties_names_are_one_node(zookeeper_disks, tmp_path, capsys):
    settings = write_settings(tmp_path, *zookeeper_disks)

    document, code = predict(capsys, *zookeeper_disks, settings, "--kafka", "2.8.2")

    assert (document["answer"]["state"], code) == ("will-not-start", 1)
    assert [start["exception"] for start in document["starts"]] == ["InconsistentBrokerMetadataException"]

    document, code = predict(capsys, *zookeeper_disks, "--kafka", "2.8.2")
    assert len(document["starts"]) == 2
    assert (document["answer"]["state"], code) == ("unknown", 3)
    assert any("lie in one folder" in words for words in document["answer"]["unknown"])


def test_a_log_directory_that_only_server_properties_names_leaves_the_start_unknown(zookeeper_disks, tmp_path, capsys):
    first, second = zookeeper_disks
    settings = write_settings(tmp_path, first, second)

    document, code = predict(capsys, first, settings, "--kafka", "2.8.2")

    assert (document["answer"]["state"], code) == ("unknown", 3)
    assert "Not every log directory of node 1 is here." in document["answer"]["headline"]
    assert any(f"here ({second}): a start reads" in words for words in document["answer"]["unknown"])

    write_settings(tmp_path, first, f"{second}\0")  # as in a damaged file
    document, code = predict(capsys, first, settings, "--kafka", "2.8.2")
    assert (document["answer"]["state"], code) == ("unknown", 3)

    write_settings(tmp_path, first)
    document, _ = predict(capsys, first, settings, "--kafka", "2.8.2")
    assert "Not every log directory" not in document["answer"]["headline"]
    assert not any("server.properties names" in words for words in document["answer"]["unknown"])


def test_a_broker_whose_disk_holds_no_log_is_not_calm(node, tmp_path, capsys):
    empty = tmp_path / "emptied"
    empty.mkdir()
    shutil.copy(node / "data-0" / "meta.properties", empty)

    document, code = predict(capsys, empty, "--kafka", "3.9.1")

    assert (document["answer"]["state"], code) == ("unknown", 3)
    assert document["answer"]["headline"].endswith("No log is on the disk of broker 1: it is new or was emptied.")
    assert any("give the others and a metadata log to diff" in words for words in document["answer"]["unknown"])

    held, _ = predict(capsys, node, "--kafka", "4.1.0")
    assert "emptied" not in json.dumps(held["answer"])


@pytest.mark.parametrize("has_line", [True, False])
def test_a_log_without_a_segment_is_not_calm(has_line, tmp_path, capsys):
    """Kafka creates an empty segment there, and the log ends at 0."""
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020d}.index").write_bytes(b"")
    (tmp_path / "t-1").mkdir()
    (tmp_path / "t-1" / f"{0:020d}.log").write_bytes(b"")
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n1\nt 0 4\n" if has_line else "0\n0\n")
    (tmp_path / "meta.properties").write_text(f"version=0\nbroker.id=1\ncluster.id={'A' * 22}\n")

    document, code = predict(capsys, tmp_path, "--kafka", "2.8.2")

    assert (code, document["answer"]["state"]) == (3, "unknown")
    (log,) = [one for one in document["logs"] if one["path"] == "t-0"]
    assert log["after"]["log_end_offset"] == 0
    assert "discards no record" not in document["answer"]["headline"]
    words = (
        "t-0 (recovery-point-offset-checkpoint says 4"
        if has_line
        else "Whether t-0 held records: only indexes and no .log file"
    )
    assert any(words in line for line in document["answer"]["unknown"])


def test_strays_of_which_no_replica_is_kept_are_no_repair(incident, tmp_path, capsys):
    recorded = incident("unclean-election-4.x") / "snapshots" / "99-final"
    for one in sorted(recorded.iterdir()):
        copied(one, tmp_path / one.name)
    whole, _ = predict(capsys, tmp_path)
    removed = sorted(tmp_path.glob("broker-*/orders-0/partition.metadata"))
    assert len(removed) == 3

    removed[0].unlink()
    one, one_code = predict(capsys, tmp_path)
    for path in removed[1:]:
        path.unlink()
    every, code = predict(capsys, tmp_path)

    # Nothing but its unclean elections is in the way of calm.
    assert "loads all 27 logs" in whole["answer"]["headline"]
    assert not any("may be the last full copy" in line for line in whole["answer"]["unknown"])
    assert (one["answer"]["state"], one_code) == ("unknown", 3)
    assert "1 is a stray, renamed and not served" in one["answer"]["headline"]  # the others lead, and hold the same
    assert (every["answer"]["state"], code) == ("loses", 1)
    assert every["answer"]["headline"].startswith("STARTING BROKER 3 FIRST DESTROYS 1 PARTITION")
    assert "3 are strays, renamed and not served" in every["answer"]["headline"]
    assert any("Put partition.metadata with the topic id" in line for line in every["answer"]["now"])


def settings_of(node, tmp_path, *, log_dirs, voters="1@localhost:9093"):
    """A `server.properties` of a combined node in a place of its own."""
    folder = tmp_path / "conf"
    folder.mkdir(exist_ok=True)
    (folder / "server.properties").write_text(
        f"process.roles=broker,controller\nnode.id=1\nlog.dirs={','.join(map(str, log_dirs))}\ncontroller.quorum.voters={voters}\n"
    )
    return folder / "server.properties"


@pytest.mark.parametrize(
    ("change", "outcome", "said"),
    [
        (("log.dirs=", "\ufefflog.dirs="), None, "/tmp/kafka-logs"),
        (("log.dirs=", 'log.dirs="'), "exits", ""),
        (("/data-", "/dta-"), None, "/dta-0"),
        (("log.dirs=", "log.dirs=/nowhere/data-9\n#"), None, "/nowhere/data-9"),
        ((), "starts", ""),
    ],
)
def test_log_directories_that_settings_do_not_name_as_they_lie_here_are_no_calm_start(
    node, tmp_path, capsys, change, outcome, said
):
    settings = settings_of(node, tmp_path, log_dirs=(node / "data-0", node / "data-1"))
    settings.write_text(settings.read_text().replace(*change) if change else settings.read_text())
    document, _ = predict(capsys, node, settings)

    assert document["starts"][0]["outcome"] == outcome
    assert said in str(document["answer"]["unknown"])


def test_a_disk_that_was_copied_one_level_too_deep_ends_the_start(node, tmp_path, capsys):
    settings = settings_of(node, tmp_path, log_dirs=(node / "data-0", node / "data-1"))
    (node / "data-1").rename(node / "aside")
    (node / "data-1").mkdir()
    (node / "aside").rename(node / "data-1" / "data-1")
    document, code = predict(capsys, node, settings)

    assert (code, document["starts"][0]["exception"]) == (1, "RuntimeException")
    assert f"No `meta.properties` found in {node / 'data-1'}" in document["starts"][0]["reason"]
    assert "data-1/data-1 is not loaded: server.properties does not name it" in document["answer"]["headline"]


def test_disks_in_each_others_places_end_the_start(node, tmp_path, capsys):
    """The metadata log is in the first of `log.dirs`, unless `metadata.log.dir` names another (`MetaPropertiesEnsemble`)."""
    right = settings_of(node, tmp_path, log_dirs=(node / "data-0", node / "data-1"))
    assert predict(capsys, node, right)[0]["starts"][0]["outcome"] == "starts"

    wrong = settings_of(node, tmp_path, log_dirs=(node / "data-1", node / "data-0"))
    document, code = predict(capsys, node, wrong)

    assert (code, document["starts"][0]["exception"], document["starts"][0]["loads_logs"]) == (
        1,
        "KafkaException",
        False,
    )
    assert "Found unexpected metadata location" in document["starts"][0]["reason"]
    wrong.write_text(wrong.read_text() + f"metadata.log.dir={node / 'data-0'}\n")
    assert predict(capsys, node, wrong)[0]["starts"][0]["outcome"] == "starts"


def test_a_disk_that_settings_name_and_that_is_gone_ends_the_start_where_the_others_are_in_their_places(
    node, tmp_path, capsys
):
    named = settings_of(node, tmp_path, log_dirs=(node / "data-0", node / "data-1", node / "data-2"))
    document, code = predict(capsys, node, named)
    assert (code, document["starts"][0]["exception"]) == (1, "RuntimeException")
    assert "No `meta.properties` found in" in document["starts"][0]["reason"]

    copies = settings_of(node, tmp_path, log_dirs=("/srv/data-0", "/srv/data-1", "/srv/data-2"))
    document, code = predict(capsys, node, copies)
    assert document["starts"][0]["outcome"] is None, "a start may fail on the one that is not given"
    assert "Not every log directory of node 1 is here" in document["answer"]["headline"]


@pytest.mark.parametrize(("version", "becomes"), [("4.1.0", "stray"), ("3.6.2", "deleted")])
def test_the_only_voter_without_its_metadata_log_serves_none_of_its_logs(node, tmp_path, capsys, version, becomes):
    (log,) = (node / "data-0").glob("__cluster_metadata-0")
    shutil.rmtree(log)
    settings = settings_of(node, tmp_path, log_dirs=(node / "data-0", node / "data-1"))

    document, code = predict(capsys, node, settings, "--kafka", version)

    assert {becomes} == {one["becomes"] for one in document["logs"]}
    assert (code, document["answer"]["state"]) == (1, "loses")
    assert any("it is the only voter" in line for line in document["answer"]["now"])
    assert "partition.metadata" not in str(document["answer"]["now"])

    others = settings_of(node, tmp_path, log_dirs=(node / "data-0", node / "data-1"), voters="1@a:1,2@b:1,3@c:1")
    document, code = predict(capsys, node, others, "--kafka", version)
    assert becomes not in {one["becomes"] for one in document["logs"]}, "the other voters know them"
    assert (code, document["answer"]["state"]) == (3, "unknown")


@pytest.mark.parametrize("is_empty", [False, True])
@pytest.mark.some(1)
def test_a_newest_snapshot_that_can_not_be_read_ends_the_start_of_a_controller(node, tmp_path, capsys, is_empty):
    settings = settings_of(node, tmp_path, log_dirs=(node / "data-0", node / "data-1"))
    quorum = node / "data-0" / "__cluster_metadata-0"
    record = metadata_record("FeatureLevelRecord", {"name": "metadata.version", "feature_level": 25})
    header, footer = (
        encode_record_batch(build_record_batch(at, [(1, *encode_control_record(kind, {}))], attributes=0x20))
        for at, kind in ((0, ControlType.SNAPSHOT_HEADER), (2, ControlType.SNAPSHOT_FOOTER))
    )
    records = metadata_batch(1, [record], epoch=1)
    whole = header + records + footer
    snapshot = quorum / f"{4:020d}-{1:010d}.checkpoint"
    written = {
        whole: ("starts", None),
        records + footer: ("exits", "IllegalStateException"),
        header + records: (None, None),
        whole + whole: (None, None),
        header + bytes([*records[:16], 6, *records[17:]]) + footer: ("exits", "CorruptRecordException"),
        header + bytes([*records[:16], 0, *records[17:]]) + footer: ("exits", "IllegalStateException"),
        header + bytes([*records[:8], 0, 0, 0, 9, *records[12:]]) + footer: ("exits", "CorruptRecordException"),
        header + bytes([*records[:11], records[11] + 1, *records[12:]]) + footer: ("exits", "CorruptRecordException"),
        header + bytes([*records[:9], 1, *records[10:]]) + footer: (None, None),
        bytes([*header[:9], 1, *header[10:]]) + records + footer: ("exits", "NoSuchElementException"),
    }
    for data, ended in written.items():
        snapshot.write_bytes(data)
        start = predict(capsys, node, settings)[0]["starts"][0]
        assert (start["outcome"], start["exception"]) == ended

    snapshot.write_bytes(b"" if is_empty else whole[:-1] + bytes([whole[-1] ^ 1]))
    document, code = predict(capsys, node, settings)

    expected = "NoSuchElementException" if is_empty else "CorruptRecordException"
    assert (code, document["starts"][0]["exception"], document["starts"][0]["loads_logs"]) == (1, expected, False)

    snapshot.write_bytes(whole[:-3])
    document, code = predict(capsys, node, settings)
    assert document["answer"]["state"] == "unknown", "the records before the cut are read"
    assert document["starts"][0]["outcome"] is None

    later = quorum / f"{6:020d}-{1:010d}.checkpoint"
    later.write_bytes(whole)
    assert predict(capsys, node, settings)[0]["starts"][0]["outcome"] == "starts", "an older one is not read"

    above = metadata_record("FeatureLevelRecord", {"name": "metadata.version", "feature_level": 60})
    for record, exception in ((bytes([1, 99, 0, 0]), "MetadataParseException"), (above, "IllegalArgumentException")):
        later.write_bytes(whole + metadata_batch(1, [record], epoch=1))
        assert predict(capsys, node, settings, "--kafka", "4.4.0")[0]["starts"][0]["exception"] == exception


def test_files_of_another_user_are_no_calm_start(node, monkeypatch, capsys):
    """As a start by root leaves them; the tests may not give files away, so it is told of the status."""
    real = os.lstat
    owners, modes = {"data-1": 990, "orders-1": 0}, {"logs": 0o755}

    def lstat(path, *rest, **named):
        status = real(path, *rest, **named)
        name = Path(path).name
        is_log = stat.S_ISDIR(status.st_mode) and not name.startswith("data-")
        mode = stat.S_IFMT(status.st_mode) | modes.get(name, modes["logs"] if is_log else 0o755)
        return os.stat_result((mode, *status[1:4], owners.get(name, 990), 990, *status[6:]))

    monkeypatch.setattr("kforensics.source.walk.os.lstat", lstat)
    document, _ = predict(capsys, node)
    assert "1 file or directory may be closed to the broker by owner or mode." in document["answer"]["headline"]
    assert any("may read and write data-1/orders-1:" in line for line in document["answer"]["unknown"])

    owners["orders-1"] = 990
    assert "closed to the broker" not in str(predict(capsys, node)[0]["answer"])
    modes["orders-1"] = 0o500
    document, code = predict(capsys, node)
    assert (code, document["answer"]["state"]) == (3, "unknown")
    assert any("may read and write data-1/orders-1:" in line for line in document["answer"]["unknown"])
    modes["orders-1"] = 0o755
    owners["leader-epoch-checkpoint"], modes["leader-epoch-checkpoint"] = 0, 0o600
    document, code = predict(capsys, node)
    assert (code, document["answer"]["state"]) == (3, "unknown")
    assert "data-0/orders-0/leader-epoch-checkpoint" in str(document["answer"]["unknown"])
    del owners["leader-epoch-checkpoint"], modes["leader-epoch-checkpoint"]
    modes |= {"logs": 0o500, "data-0": 0o500, "data-1": 0o500}
    assert "closed to the broker" not in str(predict(capsys, node)[0]["answer"]), "the modes of a copy"


def test_a_broker_with_zookeeper_that_migrates_is_not_judged_by_its_copy_of_the_metadata(node, tmp_path, capsys):
    (node / "data-0" / "__cluster_metadata-0" / "quorum-state").unlink()
    shutil.rmtree(node / "data-1" / "orders-1")
    file = tmp_path / "server.properties"
    settings = (
        f"broker.id=1\nzookeeper.connect=z:2181\nlog.retention.ms=-1\nlog.dirs={node / 'data-0'},{node / 'data-1'}\n"
    )
    file.write_text(settings)
    document, _ = predict(capsys, node, file, "--kafka", "3.9.1")
    start = document["starts"][0]
    assert (start["outcome"], start["loads_logs"]) == ("exits", False)
    assert "Found unexpected version 1" in start["reason"]

    controllers = "controller.quorum.voters=100@c:9093\ncontroller.listener.names=CONTROLLER\n"
    file.write_text(f"{settings}zookeeper.metadata.migration.enable=true\n{controllers}")
    document, _ = predict(capsys, node, file, "--kafka", "3.9.1")
    assert document["starts"][0]["outcome"] == "starts"
    assert {log["becomes"] for log in document["logs"]} == {"kept"}
    assert document["metadata_logs"] == []
    assert any("only ZooKeeper knows" in line for line in document["answer"]["unknown"])


def test_a_file_in_place_of_a_disk_leaves_it_offline(node, tmp_path, capsys):
    shutil.rmtree(node / "data-1")
    (node / "data-1").write_text("")
    file = tmp_path / "server.properties"
    file.write_text(f"node.id=1\nlog.retention.ms=-1\nlog.dirs={node / 'data-0'},{node / 'data-1'}\n")

    document, code = predict(capsys, node, file)

    assert (code, document["starts"][0]["outcome"]) == (1, "dir-offline")
    assert "data-1 is no directory" in document["starts"][0]["reason"]


@pytest.mark.parametrize(("version", "is_made"), [("3.6.2", True), ("3.7.1", False)])
def test_what_was_on_a_disk_that_goes_offline_is_made_anew_on_the_others_before_3_7(
    quorums, tmp_path, capsys, version, is_made
):
    root = copied(quorums("brokers-newer") / "after", tmp_path / "nodes")
    node, disk, file = root / "broker-2", tmp_path / "disk", tmp_path / "server.properties"
    shutil.rmtree(node / "orders-0")
    for one in node.glob("*-offset-checkpoint"):
        one.write_text("0\n0\n")
    disk.touch()
    file.write_text(f"process.roles=broker\nnode.id=2\nlog.dirs={node},{disk}\ncontroller.quorum.voters=100@h:1\n")

    document, _ = predict(capsys, root, file, "--kafka", version)

    assert "dir-offline" in {one["outcome"] for one in document["starts"]}
    assert ("Broker 2 makes orders-0 anew, empty" in document["answer"]["headline"]) == is_made


def test_a_broker_that_registered_last_in_a_migration_may_be_started_with_zookeeper_or_without(
    incident, tmp_path, capsys
):
    found = min((incident("last-standing-3.3") / "snapshots").glob("*/broker-*/__cluster_metadata-0"))
    node = tmp_path / found.parent.name
    copied(found.parent, node)
    for path in [node, *node.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    broker = int(node.name.partition("-")[2])
    (history,) = [read_metadata_log(files) for files in find_metadata_logs(find_inputs([node]))]
    assert "registered last" not in str(predict(capsys, node, "--kafka", "3.6.2")[0]["answer"])
    fields = {
        "broker_id": broker,
        "broker_epoch": history.end_offset,
        "incarnation_id": "AAAAAAAAAAAAAAAAAAAABw",
        "end_points": [],
        "features": [],
        "is_migrating_zk_broker": True,
    }
    log = max((node / "__cluster_metadata-0").glob("*.log"))
    record = metadata_record("RegisterBrokerRecord", fields, 2)
    log.write_bytes(log.read_bytes() + metadata_batch(history.end_offset, [record], epoch=history.last_epoch))

    document, code = predict(capsys, node, "--kafka", "3.6.2")

    assert (code, document["starts"][0]["outcome"], document["answer"]["state"]) == (3, None, "unknown")
    assert "registered last as a broker with ZooKeeper that migrates" in document["starts"][0]["reason"]

    (history,) = [read_metadata_log(files) for files in find_metadata_logs(find_inputs([node]))]
    assert "migration" not in str(document["answer"]["later"])
    record = metadata_record("ZkMigrationStateRecord", {"zk_migration_state": 1})
    log.write_bytes(log.read_bytes() + metadata_batch(history.end_offset, [record], epoch=history.last_epoch))
    document, _ = predict(capsys, node, "--kafka", "3.6.2")
    assert document["answer"]["later"][0].startswith("Unless zookeeper.metadata.migration.enable is true")
    run(["metadata", str(node)])
    assert "a migration from ZooKeeper under way" in " ".join(capsys.readouterr().out.split())
    document, _ = predict(capsys, node, "--kafka", "4.0.0")
    assert "complete it with 3.9 first" in document["answer"]["later"][0]


def test_directories_with_exchanged_names_are_not_served(node, capsys):
    """Their topic ids are of each other's topics, which are both assigned to the broker, so neither is a stray."""
    one, other = node / "data-0" / "orders-0", node / "data-0" / "payments-0"
    one.rename(node / "aside")
    other.rename(one)
    (node / "aside").rename(other)

    document, code = predict(capsys, node)

    assert (code, document["answer"]["state"], document["starts"][0]["outcome"]) == (3, "unknown", "starts")
    assert (
        "orders-0 and payments-0 are not served: they have the topic id of another topic"
        in document["answer"]["headline"]
    )
    assert any(
        "data-0/orders-0 of broker 1" in step and "name it payments-0 again" in step
        for step in document["answer"]["now"]
    )
    other.rename(node / "aside")
    one.rename(other)
    (node / "aside").rename(one)
    assert "not served" not in str(predict(capsys, node)[0]["answer"])


def test_a_log_directory_that_failed_by_the_last_lines_is_not_taken_as_mended(node, tmp_path, capsys):
    log = tmp_path / "server.log"
    log.write_text(
        "[2026-11-27 08:16:19,000] INFO [KafkaServer id=1] starting (kafka.server.KafkaServer)\n"
        "[2026-11-27 08:16:20,000] WARN [ReplicaManager broker=1] Stopping serving replicas in dir /data-1 (kafka.server.ReplicaManager)\n"
    )
    document, code = predict(capsys, node, log, "--kafka", "4.1.0")

    assert (code, document["answer"]["state"]) == (3, "unknown")
    assert "whether its disk is mended is not known" in document["answer"]["headline"]
    assert any(one.startswith("Whether the disk is mended: Broker 1's") for one in document["answer"]["unknown"])
    document, _ = predict(capsys, node, "--kafka", "4.1.0")
    assert "mended" not in document["answer"]["headline"]


def test_brokers_go_by_the_metadata_of_the_voters_not_by_what_their_own_copy_has_beyond(fixtures, tmp_path, capsys):
    nodes = [tmp_path / name for name in ("broker-1", "broker-2", "broker-3", "controller-100")]
    for node in nodes:
        copied(fixtures / "unclean-election" / node.name, node)
    (history,) = [read_metadata_log(files) for files in find_metadata_logs(find_inputs([nodes[-1]]))]
    (orders,) = [key for key, one in history.latest().topics.items() if one.name == "orders"]
    of_voter = max((nodes[-1] / "__cluster_metadata-0").glob("*.log"))
    record = metadata_record("RemoveTopicRecord", {"topic_id": orders})
    more = metadata_batch(history.end_offset, [record], epoch=history.last_epoch)
    shutil.rmtree(nodes[0] / "__cluster_metadata-0")
    shutil.copytree(nodes[-1] / "__cluster_metadata-0", nodes[0] / "__cluster_metadata-0")
    copy = nodes[0] / "__cluster_metadata-0" / of_voter.name
    copy.chmod(0o644)
    copy.write_bytes(of_voter.read_bytes() + more)

    document, _ = predict(capsys, *nodes, "--kafka", "4.1.0")

    assert {log["becomes"] for log in document["logs"]} == {"kept"}
    words = f"reaches beyond those of all voters, which end at or below offset {history.end_offset}."
    assert words in document["answer"]["headline"]
    document, _ = predict(capsys, *nodes[:3], "--kafka", "4.1.0")
    assert "stray" in {log["becomes"] for log in document["logs"]}

    newer = metadata_batch(history.end_offset, [bytes([1, 99, 0, 0])], epoch=history.last_epoch)
    copy.write_bytes(of_voter.read_bytes() + newer)
    document, _ = predict(capsys, *nodes, "--kafka", "4.1.0")
    assert [None, "starts", "starts", "starts"] == [one["outcome"] for one in document["starts"]]
    assert f"offset {history.end_offset} of its copy of the metadata log" in document["starts"][0]["reason"]


def test_a_controller_of_a_cluster_that_was_made_without_zookeeper_ends_where_it_is_to_migrate(
    quorums, tmp_path, capsys
):
    copied(quorums("brokers-newer") / "before" / "controller-100", tmp_path / "controller")
    settings = tmp_path / "server.properties"
    settings.write_text(
        "process.roles=controller\nnode.id=100\ncontroller.quorum.voters=100@h:1\n"
        f"controller.listener.names=C\nlisteners=C://:1\nlog.dirs={tmp_path / 'controller'}\n"
        "zookeeper.metadata.migration.enable=true\nzookeeper.connect=h:2\n"
    )
    document, code = predict(capsys, tmp_path / "controller", settings, "--kafka", "3.9.1")

    assert code == 1
    assert document["starts"][0]["exception"] == "RuntimeException"
    assert document["starts"][0]["reason"].endswith("on a cluster that was created in KRaft mode.")
    assert "identity" not in str(document["answer"]["now"])
    document, _ = predict(capsys, tmp_path / "controller", "--kafka", "3.9.1")
    assert document["starts"][0]["outcome"] == "starts"
