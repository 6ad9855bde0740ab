import json
import os
from pathlib import Path

import pytest

from kforensics.cli.app import run
from tests.builders.directories import copied
from tests.schemas import reason


@pytest.fixture
def ls(capsys):
    def call(*arguments):
        code = run(["ls", *map(str, arguments)])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return code, captured.out, captured.err

    return call


@pytest.fixture
def listed(ls):
    def call(*arguments):
        code, out, err = ls(*arguments, "--format", "json")
        assert err == ""
        return code, json.loads(out)

    return call


def by_partition(document):
    return {(one["input"], one["path"]): one for one in document["partitions"]}


def codes(document):
    return [one["code"] for one in document["findings"]]


def test_an_unclean_election(fixtures, untouched, listed):
    tree = fixtures / "unclean-election"

    with untouched(tree):
        code, document = listed(tree)

    assert code == document["exit_code"] == 0
    assert document["schema"] == "kforensics/ls/2"
    assert document["findings"] == document["problems"] == document["unknown_files"] == document["directories"] == []
    assert [(node["kind"], node["node_id"], node["clean_shutdown"]) for node in document["nodes"]] == [
        ("broker", 1, False),
        ("broker", 2, False),
        ("broker", 3, False),
        ("controller", 100, False),
    ]
    assert by_partition(document)[0, "orders-0"] == {
        "input": 0,
        "path": "orders-0",
        "log_dir": "",
        "topic": "orders",
        "partition": 0,
        "state": "live",
        "topic_id": by_partition(document)[1, "orders-0"]["topic_id"],
        "log_start_offset": 0,
        "high_watermark": 60,
        "recovery_point": None,
        "log_end_offset": 103,
        "last_leader_epoch": 0,
        "last_timestamp_ms": by_partition(document)[0, "orders-0"]["last_timestamp_ms"],
        "segments": 1,
        "deleted_segments": 0,
        "bytes": 23418,
        "files": 5,
        "file_bytes": by_partition(document)[0, "orders-0"]["file_bytes"],
        "lacks_index": False,
        "start": "scanned",
        "cleaner_lag": None,
        "absent": {"recovery_point": "not-written"},
    }
    assert sum(one["count"] for one in document["file_counts"]) == sum(1 for path in tree.rglob("*") if path.is_file())


def test_log_ends_are_those_that_brokers_gave(incident, listed):
    # After a clean stop the recovery point and the high watermark stand at the log end.
    code, document = listed(incident("benign-rolling-restart-4.x") / "snapshots" / "99-final")

    assert code == 0
    compared = 0
    for one in document["partitions"]:
        if isinstance(one["recovery_point"], int):
            assert one["log_end_offset"] == one["recovery_point"], one["path"]
            compared += 1
    assert compared > 20
    assert all(node["clean_shutdown"] for node in document["nodes"] if node["kind"] == "broker")


@pytest.mark.parametrize("name", ["tiered-3.9", "power-cut-2.8", "hw-divergence-0.10", "kraft-quorum-3x"])
def test_every_file_of_a_recording_is_accounted_for(incident, untouched, listed, name):
    tree = incident(name) / "snapshots" / "99-final"

    with untouched(tree):
        code, document = listed(tree, "--files")

    assert code == 0
    assert document["problems"] == document["unknown_files"] == []
    assert len(document["files"]) == sum(1 for path in tree.rglob("*") if path.is_file())
    assert all(isinstance(one["log_end_offset"], int) for one in document["partitions"])
    inputs = [one["path"] for one in document["inputs"]]
    assert all(Path(inputs[one["input"]], one["path"]).is_file() for one in document["files"])


def test_a_tiered_log_starts_before_its_local_part(incident, listed):
    _, document = listed(incident("tiered-3.9") / "snapshots" / "99-final" / "broker-1")

    one = by_partition(document)[0, "archive-0"]
    assert (one["log_start_offset"], one["high_watermark"], one["log_end_offset"]) == (0, 300, 300)
    assert [one["kind"] for one in document["directories"]] == ["remote-index-cache"]


def test_topics_of_one_name_and_directories_out_of_use(incident, listed, ls):
    tree = next((incident("recreated-topic-4.x") / "snapshots").glob("03-*"))

    code, document = listed(tree)

    assert code == 1
    assert codes(document) == ["KF504"] * 3
    assert {(one["topic"], one["partition"]) for one in document["findings"]} == {("inventory", n) for n in range(3)}
    states = [one["state"] for one in document["partitions"]]
    assert (states.count("live"), states.count("deleted")) == (21, 10)
    deleted = next(one for one in document["partitions"] if one["state"] == "deleted")
    assert reason(deleted, "high_watermark") is None

    _, text, _ = ls(tree)
    assert "warning: replicas of inventory-0 belong to 2 topics" in text
    assert "inventory-0 deleted" in text
    assert "log directory data-0" in text


def test_the_screen(fixtures, ls):
    code, out, err = ls(fixtures / "unclean-election")

    lines = out.splitlines()
    assert code == 0
    assert err == ""
    assert lines[0].startswith("3 brokers and 1 controller of cluster 6It1kTHbTjKY3LNflMZizQ: 22 replicas of 7")
    assert any(line.split() == ["orders-0", "0", "0", "60", "-", "103", "1", "23", "KB", "scanned"] for line in lines)
    assert "\x1b" not in out
    assert all(len(line) <= 80 for line in lines)
    assert "138 files, all of known kinds:" in out


def test_verbose_adds_topic_ids(fixtures, ls):
    _, out, _ = ls("-v", fixtures / "unclean-election" / "broker-1")

    assert "topic id " in out


def test_lines_of_json(fixtures, ls):
    _, out, _ = ls(fixtures / "unclean-election", "--format", "jsonl", "--files")

    types = [json.loads(line)["type"] for line in out.splitlines()]
    assert types.count("file") == 138
    assert types.count("partition") == 22
    assert types[:5] == ["answer", *["input"] * 4]


def test_a_file_and_a_partition_directory_by_themselves(fixtures, listed, ls):
    broker = fixtures / "unclean-election" / "broker-1"

    _, single = listed(broker / "orders-0" / "00000000000000000000.log")
    _, partition = listed(broker / "orders-0")
    _, text, _ = ls(broker / "orders-0")

    assert [(one["kind"], one["count"]) for one in single["file_counts"]] == [("segment", 1)]
    assert partition["partitions"][0]["log_end_offset"] == 103
    assert reason(partition["partitions"][0], "high_watermark") == "unknown"
    assert "orders-0" in text
    assert text.startswith("1 single partition directory")


def test_odd_things_in_a_log_directory(fixtures, tmp_path, untouched, listed, ls):
    tree = tmp_path / "broker-1"
    copied(fixtures / "unclean-election" / "broker-1" / "orders-0", tree / "orders-0")
    copied(tree / "orders-0", tree / f"orders-1.{'0' * 32}-stray")
    (tree / "meta.properties").write_text("version=0\nbroker.id=1\n")
    (tree / "lost+found").mkdir()
    (tree / "back\x1b[2Jup").mkdir()
    (tree / "back\x1b[2Jup" / "x").write_text("")
    os.mkfifo(tree / "orders-0" / "pipe")

    with untouched(tree):
        code, document = listed(tree)
        _, text, _ = ls(tree, "-v")

    assert code == 1
    assert codes(document) == ["KF503", "KF503", "KF506", "KF505"]
    assert [one["kind"] for one in document["unknown_files"]] == ["unknown", "special"]
    assert "\x1b" not in text
    assert "back\\x1b[2Jup" in text


def test_disks_that_disagree_and_a_partition_on_two(fixtures, tmp_path, listed):
    source = fixtures / "unclean-election" / "broker-1" / "orders-0"
    for disk, partitions in (("a", "012"), ("b", "034")):
        for number in partitions:
            copied(source, tmp_path / disk / f"orders-{number}")
        (tmp_path / disk / "meta.properties").write_text("version=0\nbroker.id=1\n")

    code, document = listed(tmp_path)

    assert code == 1
    assert codes(document) == ["KF502"]
    assert [one["path"] for one in document["findings"][0]["citations"]] == ["a/orders-0", "b/orders-0"]


def test_what_can_not_be_read_is_reported_and_the_rest_is_listed(fixtures, tmp_path, listed, ls, monkeypatch):
    tree = tmp_path / "broker-1"
    copied(fixtures / "unclean-election" / "broker-1", tree, ignore=lambda *_: ["__cluster_metadata-0"])
    (tree / "replication-offset-checkpoint").write_bytes(b"\xff\xff")
    (tree / "orders-1" / "partition.metadata").write_bytes(b"nonsense")
    (tree / "orders-2" / "00000000000000000000.log").unlink()
    (tree / "orders-2" / "00000000000000000000.log").symlink_to("/etc/passwd")

    code, document = listed(tree)
    _, text, _ = ls(tree)

    assert code == 3
    assert {one["path"] for one in document["problems"]} == {
        "replication-offset-checkpoint",
        "orders-1/partition.metadata",
        "orders-2/00000000000000000000.log",
    }
    partitions = by_partition(document)
    assert reason(partitions[0, "orders-0"], "high_watermark") == "unreadable"
    assert reason(partitions[0, "orders-1"], "topic_id") == "unreadable"
    assert partitions[0, "orders-3"]["log_end_offset"] == 81
    assert "Could not be read" in text


def test_a_log_end_behind_damage_and_without_index(fixtures, tmp_path, listed):
    source = fixtures / "unclean-election" / "broker-1" / "orders-0"
    for name in ("no-index-0", "foreign-index-0", "torn-0", "rolled-0", "nothing-0"):
        copied(source, tmp_path / name)
    log, index = "00000000000000000000.log", "00000000000000000000.index"
    (tmp_path / "no-index-0" / index).unlink()
    (tmp_path / "foreign-index-0" / index).write_bytes((7).to_bytes(4) + (1234).to_bytes(4))
    with (tmp_path / "torn-0" / log).open("ab") as file:
        file.write(bytes(4096))
    (tmp_path / "rolled-0" / "00000000000000000110.log").write_bytes(b"")
    (tmp_path / "nothing-0" / log).write_bytes(b"")

    code, document = listed(tmp_path)

    ends = {one["topic"]: (one["log_end_offset"], one["last_leader_epoch"]) for one in document["partitions"]}
    assert code == 0
    assert ends == {
        "foreign-index": (103, 0),
        "no-index": (103, 0),
        "nothing": (0, None),
        "rolled": (110, 0),
        "torn": (103, 0),
    }


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, "there is no such file or directory"),
        (lambda path: path.mkdir(), "an empty directory"),
        (
            lambda path: (
                (path / "controller" / "0_0").mkdir(parents=True) or (path / "controller/0_0/0-1-v1.log").touch()
            ),
            "Redpanda",
        ),
    ],
)
def test_what_is_no_data_directory_is_one_clear_sentence(tmp_path, ls, make, words):
    make(tmp_path / "given")

    code, out, err = ls(tmp_path / "given")

    assert (code, out) == (3, "")
    assert words in err
    assert str(tmp_path / "given") in err


def test_a_result_in_a_file(fixtures, tmp_path, ls):
    out = tmp_path / "result.json"

    code, printed, _ = ls(fixtures / "unclean-election", "--format", "json", "-o", out)

    assert (code, printed) == (0, "")
    assert json.loads(out.read_text())["schema"] == "kforensics/ls/2"
    code, _, err = ls(fixtures / "unclean-election", "-o", out)
    assert code == 2
    assert "exists" in err


def test_the_first_line_of_other_things(incident, ls, fixtures):
    snapshots = incident("kraft-quorum-3x") / "snapshots"

    assert ls(snapshots)[1].startswith("2 brokers and 3 controllers in 20 copies of cluster 35R_zJV0Ql-32MswFllj6A:")
    assert " 6 of 8 broker directories left no clean-shutdown marker" in ls(snapshots)[1].replace("\n", " ")
    assert ls(incident("tiered-3.9") / "logs")[1].startswith("11 files, no data directory.\n")
    assert ls(fixtures / "unclean-election" / "controller-100")[1].startswith("1 controller of cluster 6It1kTHb")
    assert "\nStopped cleanly.\n" in ls(incident("tiered-3.9") / "snapshots" / "99-final" / "broker-1")[1]
    assert ls(snapshots / "01-before-live" / "broker-1", snapshots / "01-before-live" / "broker-2" / "meter-0")[
        1
    ].startswith("1 broker and 1 single partition directory of cluster")


def test_disks_of_two_clusters(tmp_path, listed, ls):
    for disk, cluster in (("a", "6It1kTHbTjKY3LNflMZizQ"), ("b", "35R_zJV0Ql-32MswFllj6A")):
        (tmp_path / disk).mkdir()
        (tmp_path / disk / "meta.properties").write_text(f"version=0\nbroker.id=1\ncluster.id={cluster}\n")

    code, document = listed(tmp_path)

    assert (code, len(document["nodes"])) == (0, 2)
    assert ls(tmp_path)[1].startswith("2 brokers of 2 clusters: 0 replicas of 0 partitions")


def test_many_findings_of_a_kind_are_counted(fixtures, tmp_path, ls):
    copied(fixtures / "unclean-election" / "broker-1" / "orders-0", tmp_path / "orders-0")
    for number in range(9):
        (tmp_path / f"strange {number}").mkdir()

    code, out, _ = ls(tmp_path)

    assert code == 1
    assert "and 4 more like these (-v lists them)" in out


def test_an_unreadable_identity_of_a_node_is_a_problem(tmp_path, capsys):
    (tmp_path / "meta.properties").write_bytes(b"version=0\nbroker.id=1\n" * 100_000)
    (tmp_path / "t-0").mkdir()
    assert run(["ls", str(tmp_path)]) == 3
    assert "meta.properties: it can't be read, so the node's id" in " ".join(capsys.readouterr().out.split())


def test_very_many_unknown_files_are_few_findings_and_all_listed(tmp_path, listed):
    for number in range(150):
        (tmp_path / f"strange{number:03}").write_bytes(b"")
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")

    _, document = listed(tmp_path)

    assert codes(document) == ["KF506"] * 100
    statements = {one["statement"] for one in document["findings"]}
    assert "51 more files here are none that a broker writes, from strange099 on" in statements
    assert [one["path"] for one in document["unknown_files"]] == [f"strange{number:03}" for number in range(150)]


def test_each_partition_says_what_a_start_does_to_it(fixtures, tmp_path, listed):
    tree = tmp_path / "broker-1"
    copied(fixtures / "unclean-election" / "broker-1", tree)
    for path in [tree, *tree.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    _, document = listed(tree)
    assert {one["start"] for one in document["partitions"]} == {"scanned"}

    (tree / ".kafka_cleanshutdown").touch()
    (tree / "orders-1" / "00000000000000000000.index").unlink()
    (tree / "orders-2").rename(tree / f"orders-2.{'0' * 32}-stray")
    (tree / "orders-3").rename(tree / f"orders-3.{'0' * 32}-delete")
    _, document = listed(tree)
    words = {one["path"].partition(".")[0]: one["start"] for one in document["partitions"]}
    assert words == {
        "__cluster_metadata-0": "scanned",
        "orders-0": "kept",
        "orders-1": "scanned",
        "orders-2": "stray",
        "orders-3": "deleted",
        "payments-0": "kept",
        "payments-1": "kept",
    }
    _, document = listed(tree / "orders-0")
    assert [one["start"] for one in document["partitions"]] == ["unknown"]
