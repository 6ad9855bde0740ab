"""Voters of the metadata quorum that came back with empty disks: no command is calm, and none says that nothing was committed."""

import json
import re
import shutil
import struct

import pytest

from kforensics.cli.app import run
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.evidence.metadata.files import find_metadata_logs
from kforensics.evidence.metadata.log import read_metadata_log
from kforensics.formats.log.batch_table import CONTROL_BIT
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from kforensics.formats.messages.control import ControlType, encode_control_record
from tests.builders.directories import copied


def batch_places(data):
    """Base offset, last offset and position of each batch of a segment."""
    at = 0
    while at + 27 < len(data):
        base, length = struct.unpack_from(">qi", data, at)
        yield base, base + struct.unpack_from(">i", data, at + 23)[0], at
        at += 12 + length


pytestmark = pytest.mark.usefixtures("read_once")

CALM = {"nothing-lost", "agree", "behind", "same-ends", "starts-unchanged", "starts-and-repairs", "complete"}
COMMANDS = (
    ("explain",),
    ("diff",),
    ("predict", "--now", "2026-11-26T12:00:00Z"),
    ("predict", "--order"),
    ("metadata",),
)


@pytest.fixture
def cluster(incident, tmp_path):
    return copied(incident("kraft-quorum-3x") / "snapshots" / "99-final", tmp_path / "cluster")


def told(capsys, name, *arguments):
    code = run([name, *map(str, arguments), "--format", "json"])
    return code, json.loads(capsys.readouterr().out)


def format_anew(node, *, has_log):
    """What is left of a controller once its directory was formatted, before or after its first start."""
    log = node / "__cluster_metadata-0"
    shutil.rmtree(log)
    (node / "bootstrap.checkpoint").touch()
    if has_log:
        log.mkdir()
        (log / "00000000000000000000.log").touch()
        (log / "leader-epoch-checkpoint").write_text("0\n0\n")


@pytest.mark.parametrize("has_log", [True, False])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.some(4)
def test_a_majority_of_voters_without_metadata_may_elect_one_of_them(cluster, capsys, command, has_log):
    for name in ("controller-101", "controller-102"):
        format_anew(cluster / name, has_log=has_log)
    code, document = told(capsys, command[0], cluster, *command[1:])
    answer = document["answer"]

    assert code in {1, 3}
    assert answer["state"] not in CALM
    assert "Controllers 101 and 102, a majority of the 3 voters, lack metadata that was committed" in answer["headline"]
    assert answer["now"][0].startswith("Start no node of this cluster as it is")
    assert not any("first, then" in step for step in answer["now"])
    said = json.dumps(document)
    assert "fewer than 2 of the 3 voters hold it" not in said
    assert "loads all" not in answer["headline"]
    assert not [loss for loss in document.get("losses", ()) if loss["committed"] == "no"]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.some(2)
def test_one_emptied_voter_of_three_can_not_win(cluster, capsys, command):
    format_anew(cluster / "controller-102", has_log=True)
    _, document = told(capsys, command[0], cluster, *command[1:])

    assert "lack metadata" not in json.dumps(document["answer"])


@pytest.mark.parametrize("names", [("controller-101",), ("controller-102", "controller-103")])
def test_an_emptied_voter_is_given_and_its_directory_not_asked_for(cluster, capsys, names):
    for name in names:
        format_anew(cluster / name, has_log=False)
    _, document = told(capsys, "diff", cluster)
    answer = document["answer"]

    assert "not among the inputs" not in answer["headline"]
    is_said = re.search("none of (its|their) log directories among the inputs does", answer["headline"])
    assert is_said or "Controllers 102 and 103, a majority of the 3 voters, lack metadata" in answer["headline"]
    assert not is_said or any(
        one.startswith("What is on other log directories of controller") for one in answer["unknown"]
    )


def test_voters_that_are_not_given_are_not_taken_as_empty(cluster, capsys):
    format_anew(cluster / "controller-102", has_log=True)
    shutil.rmtree(cluster / "controller-101")
    _, document = told(capsys, "explain", cluster)

    assert "lack metadata" not in document["answer"]["headline"]


def test_the_only_voter_that_was_formatted_anew_knows_none_of_the_topics(fixtures, tmp_path, capsys):
    cluster = copied(fixtures / "unclean-election", tmp_path / "cluster")
    format_anew(cluster / "controller-100", has_log=True)
    code, document = told(capsys, "diff", cluster)

    assert 0 != code
    assert "Controller 100, the only voter, lacks metadata that was committed" in document["answer"]["headline"]


def test_voters_that_are_behind_may_elect_one_of_them_and_make_others_truncate(incident, capsys):
    _, document = told(capsys, "diff", incident("kraft-quorum-3x") / "snapshots" / "02-active-controller-killed")

    headline = document["answer"]["headline"]
    assert "unless a majority of the voters elects one that lacks uncommitted metadata" in headline
    assert "controllers 102 and 103 lack records" in headline


def reformat_elsewhere(node):
    """What formatting leaves of a controller: another directory id, no log."""
    shutil.rmtree(node / "__cluster_metadata-0")
    path = node / "meta.properties"
    path.write_text(re.sub("directory.id=.*", "directory.id=AAAAAAAAAAAAAAAAAAAAXw", path.read_text()))


def settings(folder, node, text):
    (folder / f"settings-{node}").mkdir()
    (folder / f"settings-{node}" / "server.properties").write_text(
        f"node.id={node}\nprocess.roles=controller\n{text}\n"
    )
    return folder / f"settings-{node}"


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.some(2)
def test_dynamic_voters_with_other_directory_ids_are_none_and_nobody_is_elected(cluster, tmp_path, capsys, command):
    given = []
    for node in (101, 102):
        reformat_elsewhere(cluster / f"controller-{node}")
        given.append(settings(tmp_path, node, "controller.quorum.bootstrap.servers=localhost:9093"))
    paths = [cluster] if command[0] == "metadata" else [cluster, *given]
    code, document = told(capsys, command[0], *paths, *command[1:])
    answer = document["answer"]

    assert code in {1, 3}
    assert answer["state"] not in CALM
    if command[0] == "metadata":
        assert "where controller.quorum.voters is still in their settings; else no controller" in answer["headline"]
        return
    assert "No controller can be elected: controllers 101 and 102 are no voters any more" in answer["headline"]
    assert "forgets" not in answer["headline"]
    assert answer["now"][0].startswith("Copy the log") or "Format no other controller" in answer["now"][0]
    assert "Start broker" not in json.dumps(answer)
    if command[0] == "predict":
        assert "will-not-start" == answer["state"]


def test_dynamic_voters_that_lost_their_metadata_logs_know_none_and_brokers_end(cluster, tmp_path, capsys):
    """One that keeps its log is elected: the others vote for it, whatever they know."""
    given, starts = [cluster], []
    for node in (101, 102, 103):
        shutil.rmtree(cluster / f"controller-{node}" / "__cluster_metadata-0")
        given.append(settings(tmp_path, node, "controller.quorum.bootstrap.servers=localhost:9093"))
        _, document = told(capsys, "predict", *given, "--now", "2026-11-26T12:00:00Z")
        starts.append({one["exception"] for one in document["starts"] if one["outcome"] == "exits"})
    answer = document["answer"]

    assert [set(), set(), {"RuntimeException"}] == starts
    assert "will-not-start" == answer["state"]
    assert "controllers 101, 102 and 103 know no voter, since they have lost the metadata log" in answer["headline"]
    assert any("give each the metadata log of node 1 (not supported" in step for step in answer["now"])
    assert "The voters know" not in json.dumps(answer)
    _, listing = told(capsys, "ls", *given)
    assert listing["answer"]["headline"].startswith("No controller can be elected")


def test_voters_in_settings_that_are_no_node_ids_are_none(cluster, tmp_path, capsys):
    given = [cluster]
    for node in (101, 102):
        format_anew(cluster / f"controller-{node}", has_log=False)
        (cluster / f"controller-{node}" / "quorum-state").unlink(missing_ok=True)
        shutil.rmtree(cluster / f"controller-{node}" / "__cluster_metadata-0", ignore_errors=True)
        given.append(settings(tmp_path, node, f"controller.quorum.voters={'1' * 5000}@localhost:9093,x@,@"))
    code, document = told(capsys, "diff", *given)

    assert code in {1, 3}
    assert document["answer"]["state"] not in CALM


@pytest.mark.slow
def test_what_an_emptied_quorum_forgets_is_listed_with_what_each_broker_does(fixtures, tmp_path, capsys):
    cluster = copied(fixtures / "unclean-election", tmp_path / "cluster")
    format_anew(cluster / "controller-100", has_log=True)
    _, document = told(capsys, "metadata", cluster)
    quorum = document["quorum"]

    assert ([100], True, False) == (quorum["voters"], quorum["is_certain"], quorum["is_stuck"])
    assert {"__consumer_offsets", "orders", "payments"} >= set(quorum["forgotten"]["topics"])
    assert [(1, 0), (2, 0), (3, 0)] == [(one["node"], one["truncates_to"]) for one in quorum["brokers"]]
    count = sum(len(one["directories"]) for one in quorum["brokers"])
    assert 3 * quorum["forgotten"]["partitions"] == count
    assert (
        f"Brokers 1, 2 and 3 then rename {count} directories to -stray, unless they mix both logs."
        in document["answer"]["headline"]
    )
    _, predicted = told(capsys, "predict", cluster, "--now", "2026-11-26T12:00:00Z")
    assert "stray" not in {log["becomes"] for log in predicted["logs"]}, "the new log may reach as far by then"
    assert "loads all" not in predicted["answer"]["headline"]
    code, compared = told(capsys, "diff", cluster)
    assert (1, "at-risk") == (code, compared["answer"]["state"])
    code, verified = told(capsys, "verify", cluster)
    assert (1, "at-risk") == (code, verified["answer"]["state"])


def test_a_voter_that_was_put_back_is_told_and_hedged_and_the_topics_it_knows_stay(fixtures, tmp_path, capsys):
    """Of a controller that was copied a moment before the others, and lacks only what came last, nothing of it is said."""
    cluster = copied(fixtures / "unclean-election", tmp_path / "cluster")
    log = cluster / "controller-100" / "__cluster_metadata-0" / "00000000000000000000.log"
    data = log.read_bytes()
    _, whole = told(capsys, "metadata", fixtures / "unclean-election")
    made = next(one for one in whole["events"] if one["event"] == "topic-created" and one["topic"] == "payments")
    batches = list(batch_places(data))
    kept = next(place for _, last, place in batches if last >= made["offset"])
    log.write_bytes(data[:kept])
    _, document = told(capsys, "metadata", cluster)
    quorum = document["quorum"]

    assert ["payments"] == quorum["forgotten"]["topics"]
    assert "Only a copy that was made before the others, while the cluster ran" in document["answer"]["headline"]
    assert {"payments-0", "payments-1"} == {name for one in quorum["brokers"] for name in one["directories"]}
    code, document = told(capsys, "diff", cluster)
    assert 1 == code
    assert "A start forgets topic payments (2 partitions)" in document["answer"]["headline"]
    _, predicted = told(capsys, "predict", cluster, "--now", "2026-11-26T12:00:00Z")
    assert {"payments"} == {log["topic"] for log in predicted["logs"] if log["becomes"] == "stray"}

    later = copied(fixtures / "unclean-election", tmp_path / "later")
    (later / log.relative_to(cluster)).write_bytes(data[: batches[-1][2]])
    _, document = told(capsys, "metadata", later)
    assert "quorum" not in document


@pytest.mark.parametrize(("name", "emptied"), [("majority-emptied", (102, 103)), ("only-controller-emptied", (100,))])
@pytest.mark.some(1)
def test_an_emptied_controller_is_called_one_and_no_broker(quorums, capsys, name, emptied):
    before = quorums(name) / "before"
    for command in ("triage", "predict", "diff", "explain", "ls"):
        _, document = told(capsys, command, before)
        kinds = {one["broker_id"]: one["kind"] for one in document["inputs"]}
        assert {"controller"} == {kinds[one] for one in emptied}
        assert "broker" == kinds[1]
        run([command, str(before)])
        shown = " ".join(capsys.readouterr().out.split())
        assert not re.search(r"brokers? (\d+(, | and ))*10\d", shown)
        assert f"controller {emptied[0]}" in shown or f"ontrollers {emptied[0]}" in shown or command == "explain"
        assert "not among the inputs and should hold" not in shown


def test_an_emptied_voter_that_is_registered_as_a_broker_is_still_one(capsys, tmp_path, incident):
    root = copied(incident("all-codecs-4.x") / "snapshots" / "99-final", tmp_path / "one")
    emptied = tmp_path / "emptied"
    emptied.mkdir()
    (node,) = root.iterdir()
    shutil.copy(next(node.rglob("meta.properties")), emptied)
    log = next(one for one in node.rglob("__cluster_metadata-0") if one.is_dir())
    shutil.copytree(log, tmp_path / "kept" / "__cluster_metadata-0")

    _, document = told(capsys, "ls", emptied, tmp_path / "kept" / "__cluster_metadata-0")

    assert "combined" == document["inputs"][0]["kind"]


def test_lines_of_a_controller_are_not_those_of_a_broker(incident, capsys):
    run(["logs", str(incident("kraft-quorum-3x") / "logs")])
    shown = capsys.readouterr().out

    assert "controller 102: controller elected" in shown
    assert not re.search(r"broker 10\d", shown)


def test_what_befalls_the_metadata_log_is_not_told_of_brokers(incident, capsys):
    root = incident("kraft-quorum-3x") / "snapshots"
    run(["explain", str(root / "99-final"), "--before", str(root / "02-active-controller-killed"), "-v"])
    shown = " ".join(capsys.readouterr().out.split())

    assert "controller 102 becomes leader of __cluster_metadata-0 (epoch 3)" in shown
    assert not re.search(r"broker 10\d (truncates|becomes)", shown)


def test_a_level_of_the_quorum_that_no_release_knows_leaves_the_start_unknown(cluster, capsys):
    log = cluster / "controller-103" / "__cluster_metadata-0"
    (segment,) = log.glob("*.log")
    segment.chmod(0o644)
    (history,) = map(read_metadata_log, find_metadata_logs(find_inputs([cluster / "controller-103"])))
    record = (1_000, *encode_control_record(ControlType.KRAFT_VERSION, {"k_raft_version": 7}))
    batch = build_record_batch(
        history.end_offset, [record], attributes=CONTROL_BIT, partition_leader_epoch=history.last_epoch
    )
    segment.write_bytes(segment.read_bytes() + encode_record_batch(batch))
    _, document = told(capsys, "predict", cluster / "controller-103", "--now", "2026-11-26T12:00:00Z")

    assert "unknown" == document["answer"]["state"]
    assert "kraft.version 7 is newer than 1" in json.dumps(document)
