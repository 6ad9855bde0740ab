import json
import re
import shutil
from dataclasses import replace

import pytest

from kforensics.case import comparison
from kforensics.cli.app import run
from kforensics.findings.rules.replicas import missing_isr_findings
from kforensics.units import TopicPartition
from tests.builders.coordinators import batch
from tests.builders.directories import copied, log_dir
from tests.builders.history import leadership
from tests.builders.metadata_logs import metadata_batch, metadata_log, metadata_record
from tests.schemas import reason


@pytest.fixture
def unclean(fixtures):
    return fixtures / "unclean-election"


def diff(capsys, *arguments):
    code = run(["diff", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_first_line_is_the_answer(unclean, capsys, untouched):
    with untouched(unclean):
        code, out, err = diff(capsys, unclean)

    assert 1 == code
    assert out.startswith(
        "DATA AT RISK: broker 1 will discard 56 committed records of 3 partitions that\nthe leader does not hold.\n"
        "NOW          Do not start broker 1 before its directory is copied:\n"
        "             $ export SAFE=/path/on/another/disk\n"
        f'             $ cp -a {unclean / "broker-1"} "${{SAFE:?}}"/unclean-election-broker-1\n'
    )
    assert "" == err
    assert max(len(line) for line in out.splitlines() if not line.lstrip().startswith("$ ")) <= 80
    assert "\x1b" not in out


def test_the_lanes_show_the_cut(unclean, capsys):
    _, out, _ = diff(capsys, unclean, "--topic", "orders", "--partition", "0")

    lane = next(line for line in out.splitlines() if line.startswith("  broker 1"))
    assert lane.endswith("103  HW 60")
    assert "e0" in lane
    assert lane.count("╳") == 16
    assert "╳" not in next(line for line in out.splitlines() if line.startswith("  broker 2"))
    assert "orders-1" not in out


def test_ascii_terminals_get_ascii(unclean, capsys, monkeypatch):
    monkeypatch.setattr("kforensics.cli.command.speaks_unicode", lambda: False)

    _, out, _ = diff(capsys, unclean)

    assert out.isascii()
    assert "xxxx" in out


def test_json_is_as_promised(unclean, capsys):
    code, out, _ = diff(capsys, unclean, "--format", "json")
    document = json.loads(out)

    assert "kforensics/diff/2" == document["schema"]
    assert code == document["exit_code"] == 1
    assert [] == document["problems"]
    partition = next(p for p in document["partitions"] if (p["topic"], p["partition"]) == ("orders", 0))
    assert "will-truncate" == partition["verdict"]
    assert (2, 1, "metadata") == (
        partition["leader"]["broker_id"],
        partition["leader"]["leader_epoch"],
        partition["leader"]["source"],
    )
    old_leader = next(r for r in partition["replicas"] if r["broker_id"] == 1)
    assert {"certain": 43, "possible": 0, "no": 0} == old_leader["expected_truncation"]["committed"]
    assert (60, "diverging-epoch", 43) == tuple(
        old_leader["expected_truncation"][k] for k in ("offset", "rule", "records")
    )
    assert {"offset": 60, "kind": "epoch"}.items() <= old_leader["first_divergence"].items()
    assert [[0, 0]] == old_leader["epochs"] == old_leader["checkpoint_epochs"]
    follower = next(r for r in partition["replicas"] if r["broker_id"] == 3)
    assert reason(follower, "expected_truncation") is reason(follower, "first_divergence") is None
    assert {1: 25, 2: 43, 3: 43} == {w["leader"]: w["lost_certain"] for w in partition["what_if"]}
    finding = document["findings"][0]
    assert ("KF201", "critical", "orders") == (finding["code"], finding["severity"], finding["topic"])
    assert all(
        c["path"] and c["input"] in range(len(document["inputs"])) for f in document["findings"] for c in f["citations"]
    )


def test_jsonl_has_one_object_a_line(unclean, capsys):
    _, out, _ = diff(capsys, unclean, "--format", "jsonl")
    objects = [json.loads(line) for line in out.splitlines()]

    assert 7 == sum("what_if" in one for one in objects)
    assert all("\n" not in line for line in out.splitlines())


def test_records_are_listed_only_when_asked_for(unclean, capsys):
    _, plain, _ = diff(capsys, unclean)
    _, keys, _ = diff(capsys, unclean, "--show-records")
    _, payloads, _ = diff(capsys, unclean, "--show-records", "--show-payload")

    assert "ord-" not in plain
    assert "ord-" in keys
    assert "customer" not in keys
    assert "customer" in payloads
    assert 2 == diff(capsys, unclean, "--show-payload")[0]


def test_only_findings_and_steps(unclean, capsys):
    _, findings, _ = diff(capsys, unclean, "--only-findings")
    _, steps, _ = diff(capsys, unclean, "--explain-steps")

    assert 3 == findings.count("KF201 critical")
    assert "━" not in findings
    assert "2. broker 1: it fetches at 60 in epoch 0; the leader finds no divergence" in " ".join(steps.split())


def test_another_leader_can_be_asked_for(unclean, capsys):
    _, out, _ = diff(capsys, unclean, "--leader", "1", "-t", "orders", "-p", "0", "--format", "json")
    partition = json.loads(out)["partitions"][0]

    assert ("option", 1) == (partition["leader"]["source"], partition["leader"]["broker_id"])
    assert {2: 60, 3: 60} == {
        r["broker_id"]: r["expected_truncation"]["offset"] for r in partition["replicas"] if r["broker_id"] != 1
    }


def test_one_node_given_twice_is_said(unclean, capsys, tmp_path):
    copied(unclean / "broker-1", tmp_path / "again")

    code, out, error = diff(capsys, unclean, tmp_path / "again")

    assert (3, "") == (code, out)
    assert "nothing was analysed: node 1 is given twice, so the inputs are of two moments" in error
    command = error.splitlines()[-1]
    assert command.startswith("  $ kforensics explain ")
    assert str(unclean) in command
    assert command.endswith(str(tmp_path / "again"))
    assert 1 == command.count(" --before ")


def test_log_directories_of_one_broker_can_be_named_one_by_one(unclean, capsys, tmp_path):
    copied(unclean / "broker-1", tmp_path / "one")
    held = sorted(path for path in (tmp_path / "one").iterdir() if path.name.rpartition("-")[2].isdigit())
    (tmp_path / "two").mkdir()
    meta = (tmp_path / "one" / "meta.properties").read_text()
    (tmp_path / "two" / "meta.properties").write_text(
        re.sub(r"(?m)^directory\.id=.*$", "directory.id=" + 22 * "A", meta)
    )
    for path in held[::2]:
        path.rename(tmp_path / "two" / path.name)

    _, out, _ = diff(capsys, tmp_path / "one", tmp_path / "two", unclean / "broker-2")

    assert "times" not in out
    assert "can't be compared" not in out


def test_a_replica_that_can_not_be_read_makes_the_look_incomplete(unclean, capsys, tmp_path):
    copied(unclean, tmp_path / "copy")
    log = tmp_path / "copy" / "broker-3" / "orders-3" / f"{0:020}.log"
    log.unlink()
    log.symlink_to("/etc/hostname")

    code, out, _ = diff(capsys, tmp_path / "copy")
    _, calm, _ = diff(capsys, tmp_path / "copy", "--topic", "orders", "--partition", "3", "--format", "json")

    assert 1 == code  # what could not be read does not hide the worse
    assert "unknown" == json.loads(calm)["answer"]["state"]
    assert "Incomplete: 1 thing could not be read." in json.loads(calm)["answer"]["headline"]
    assert "symbolic link" in " ".join(out.split())
    assert "DATA AT RISK" in out


def test_nothing_there_is_a_sentence(capsys, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()

    for path in (tmp_path / "missing", empty):
        code, out, err = diff(capsys, path)
        assert (3, "") == (code, out)
        assert str(path) in err
        assert "Traceback" not in err


def test_garbage_in_a_segment_is_no_traceback(unclean, capsys, tmp_path):
    copied(unclean, tmp_path / "copy")
    log = tmp_path / "copy" / "broker-2" / "orders-0" / f"{0:020}.log"
    log.write_bytes(bytes(range(256)) * 300)

    code, out, err = diff(capsys, tmp_path / "copy")

    assert code in {1, 3}
    assert "orders-0" in out
    assert "" == err


def test_an_output_file_inside_the_evidence_is_refused(unclean, capsys, untouched):
    with untouched(unclean):
        code, _, err = diff(capsys, unclean, "-o", unclean / "report.txt")

    assert 2 == code
    assert "inside the evidence" in err


@pytest.mark.parametrize(
    ("snapshot", "is_known"),
    [
        ("99-final", True),
        ("02-all-down-broker-1-was-alone", False),  # the lines are younger than the directories
    ],
)
@pytest.mark.some(1)
def test_logs_name_the_leader_where_there_is_no_metadata_log(snapshot, is_known, incident, capsys):
    root = incident("unclean-election-2.8")
    paths = (root / "snapshots" / snapshot, root / "logs")

    _, out, _ = diff(capsys, *paths, "-t", "orders", "-p", "0", "--format", "json")

    leader = json.loads(out)["partitions"][0]["leader"]
    assert ("state-change.log", is_known) == (leader["source"], leader["is_known"])


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--topic", "nosuch"), "no partition of topic nosuch is among the inputs (--topic); there is __"),
        (("--topic", "order"), "did you mean orders?"),
        (("--topic", "orders", "--partition", "99"), "no partition 99 of the wanted topics"),
        (("--leader", "77"), "broker 77 holds no wanted partition among the inputs (--leader); there is 1, 2"),
    ],
)
def test_what_was_asked_for_and_is_not_there_is_said(unclean, capsys, asked, said):
    code, out, err = diff(capsys, unclean, *asked)

    assert 2 == code
    assert not out
    assert said in " ".join(err.split())


def test_one_broker_alone_is_nothing_compared(unclean, capsys):
    code, out, _ = diff(capsys, unclean / "broker-2", "--topic", "orders")

    assert 3 == code
    assert out.startswith("UNKNOWN: brokers 1 and 3 are not among the inputs and should hold 4 partitions.")
    assert "agree" not in out


def test_a_deleted_topic_is_not_compared_and_no_broker_here_is_called_missing(incident, capsys):
    code, out, _ = diff(capsys, incident("recreated-topic-4.x") / "snapshots" / "99-final")

    assert 0 == code
    assert out.startswith("No replica will truncate; broker 3 lacks records of 1 partition of 10 that")
    assert "oldstuff-0  no live replica" in out
    assert "oldstuff-0 also belongs to" not in out


def test_a_topic_that_a_controller_without_metadata_log_deleted_is_not_compared(incident, tmp_path, capsys):
    live, logs = (incident("mixed-magic-1.1") / name for name in ("snapshots/02-live", "logs/broker-1"))
    rolled = copied(logs, tmp_path / "broker-1")
    for name in ("server.log", "controller.log"):
        (rolled / name).rename(rolled / f"{name}.1")
    answers = [diff(capsys, live, *given, "-t", "gone", "-t", "history") for given in ((logs,), (), (rolled,))]

    assert [0, 3, 3] == [code for code, _, _ in answers]
    assert "(2 other partitions are of deleted topics)" in " ".join(answers[0][1].split())
    assert not [out for _, out, _ in answers[1:] if "DELETED" in out]


def test_an_isr_whose_disks_lack_the_partition_is_no_calm(fixtures, tmp_path, capsys):
    tree = copied(fixtures / "unclean-election", tmp_path / "cluster")
    shutil.rmtree(tree / "broker-1" / "payments-0")
    for broker in ("broker-2", "broker-3"):
        shutil.rmtree(tree / broker / "payments-1")
    run(["diff", str(tree), "--format", "json"])
    found = {
        f["topic"] + str(f["partition"])
        for f in json.loads(capsys.readouterr().out)["findings"]
        if f["code"] == "KF216"
    }
    run(["diff", str(fixtures / "unclean-election"), "--format", "json"])
    whole = json.loads(capsys.readouterr().out)["findings"]

    # Both members of its ISR, brokers 2 and 3, lack payments-1; payments-0 is only gone where it was not in sync.
    assert {"payments1"} == found
    assert not [f for f in whole if f["code"] == "KF216"]


@pytest.mark.parametrize(
    ("isr", "held", "given", "is_found"),
    [
        ({1}, {2, 3}, {1, 2, 3}, True),
        ({1, 2}, {3}, {1, 2, 3}, True),
        ({1, 2}, {2}, {1, 2}, False),
        ({1}, {2}, {2}, False),
        ((), {2}, {2}, False),
    ],
)
def test_only_an_isr_all_of_whose_disks_are_here_counts(isr, held, given, is_found):
    newest = replace(leadership(1, 1, isr), isr=frozenset(isr))
    found = list(missing_isr_findings(TopicPartition("t", 0), newest, frozenset(held), frozenset(given)))

    assert (["KF216"] if is_found else []) == [one.code for one in found]


def test_a_replica_without_a_segment_beside_a_large_one(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(comparison, "LARGE_PARTITION", 1)
    monkeypatch.setattr(comparison, "SMALL_WORK", 0)
    first = log_dir(tmp_path / "broker-1", 1)
    second = log_dir(tmp_path / "broker-2", 2)
    (first / "orders-0" / "00000000000000000000.log").write_bytes(batch(0, [(b"k", b"v")]))

    run(["diff", str(first), str(second), "--jobs", "2", "--format", "json"])

    document = json.loads(capsys.readouterr().out)
    assert [one["partition"] for one in document["partitions"]] == [0]


def test_partitions_of_a_disk_that_is_not_given_are_no_calm_comparison(tmp_path, capsys):
    """The broker is the only one that they are assigned to, so that no directory of them is anywhere."""
    disks, topic = ("A" * 21 + "w", "B" * 21 + "w"), "C" * 21 + "w"
    first = log_dir(tmp_path / "data-0", directory_id=disks[0])
    records = [
        metadata_record("RegisterBrokerRecord", {"broker_id": 1, "incarnation_id": topic, "log_dirs": disks}),
        metadata_record("TopicRecord", {"name": "orders", "topic_id": topic}),
        *(
            metadata_record(
                "PartitionRecord",
                {"partition_id": at, "topic_id": topic, "replicas": [1], "isr": [1], "leader": 1, "directories": [one]},
            )
            for at, one in enumerate(disks)
        ),
    ]
    metadata_log(first, metadata_batch(0, records))
    (first / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic}")
    (first / "orders-0" / f"{0:020}.log").write_bytes(batch(0, [(b"k", b"one")]))

    code, out, _ = diff(capsys, first)
    assert code == 3
    assert "broker 1 should hold 1 partition by the newest record given, and none of its log directories" in " ".join(
        out.split()
    )
    log_dir(tmp_path / "data-1", directory_id=disks[1], partitions=("orders-1",))
    code, out, _ = diff(capsys, first, tmp_path / "data-1")
    assert "should hold" not in out


def test_the_only_replica_under_the_name_of_another_topic_is_no_replica(tmp_path, capsys):
    topics = {"orders": "A" * 21 + "w", "other": "B" * 21 + "w"}
    node = log_dir(tmp_path / "data", partitions=tuple(f"{name}-0" for name in topics))
    records = [
        metadata_record(*one)
        for name, topic in topics.items()
        for one in (
            ("TopicRecord", {"name": name, "topic_id": topic}),
            ("PartitionRecord", {"topic_id": topic, "replicas": [1], "isr": [1], "leader": 1}),
        )
    ]
    metadata_log(node, metadata_batch(0, records))
    for name, topic in zip(topics, reversed(topics.values()), strict=True):
        (node / f"{name}-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic}")
        (node / f"{name}-0" / f"{0:020}.log").write_bytes(batch(0, [(b"k", b"one")]))

    code, out, _ = diff(capsys, node)
    said = " ".join(out.split())

    assert code != 0
    assert "Broker 1 has orders-0 with the topic id of other, and does not serve it." in said
