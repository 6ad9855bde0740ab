"""Brokers taken away from the recordings: `diff` of what is left is unsure, never calm, and more evidence only refines it."""

import json
import random
import shutil
from pathlib import Path

import pytest

from kforensics.ask.model import Ask
from kforensics.cli.app import run
from kforensics.commands.comparing import compare
from kforensics.damage import Absent
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.findings.answers.model import State
from kforensics.protocol.truncation import ProtocolName
from tests.builders.cases import case_of
from tests.builders.directories import copied
from tests.builders.repeating import OF_EACH_KIND, times

pytestmark = pytest.mark.usefixtures("read_once")

RECORDINGS = sorted(
    p.name.removesuffix(".tar.xz") for p in (Path(__file__).parents[2] / "fixtures" / "incidents").glob("*.tar.xz")
)
SUBSETS = times(1, 4)
CALM = frozenset({State.AGREE, State.SAME_ENDS, State.BEHIND})


def look(nodes, check):
    options = check.get("options", [])
    protocol = ProtocolName(options[options.index("--protocol") + 1]) if "--protocol" in options else None
    return compare(case_of(find_inputs(nodes), Ask(protocol=protocol)), keep_quiet=True)


def ends_of(result):
    """By partition and broker, where the live logs end."""
    return {
        one.partition: {
            r.view.replica.broker_id: r.view.log_end_offset
            for r in one.report.replicas
            if r.view.replica.state == "live"
        }
        for one in result.partitions
        if one.report is not None
    }


def check_one(context, result, whole, lost):
    everything = {one.partition: one for one in whole.partitions}
    ends = ends_of(result)
    for one in result.partitions:
        where = (context, str(one.partition), one.state.value)
        full = everything[one.partition]
        here = set(ends.get(one.partition, ()))
        assigned = full.report.assigned
        if full.state is State.AT_RISK and one.state is State.AGREE:
            pytest.fail(f"{where}: agrees, and with every broker it is at risk")
        if not isinstance(assigned, Absent) and not full.report.is_quorum and set(assigned) - here:
            is_known = not isinstance(one.report.assigned, Absent)
            emptied = {gone.broker_id for gone in one.report.emptied}
            assert one.state not in CALM or (is_known and set(assigned) <= here | emptied), where
        offsets = lost.get(tuple(one.partition), set())
        if not offsets:
            continue
        reaching = {broker for broker, end in ends[one.partition].items() if end > min(offsets)}
        if len(here) > 1 and len(reaching) == 1 and max(ends[one.partition].values()) > min(offsets) + 1:
            assert one.state not in CALM, where


def check_truncations(context, result, check):
    """What the brokers did is foretold, or what is foretold is called unsure."""
    reports = {tuple(one.partition): one for one in result.partitions}
    for expected in check.get("truncations", []):
        one = reports.get((expected["topic"], expected["partition"]))
        if one is None or one.report is None:
            continue
        choice = next((w for w in one.report.what_if if w.leader.replica.broker_id == expected["leader"]), None)
        replica = next((r for r in one.report.replicas if r.view.replica.broker_id == expected["broker_id"]), None)
        if choice is None or replica is None:
            continue
        found = {view.replica.broker_id: truncation.offset for view, truncation in choice.truncations}
        is_assumed = not isinstance(replica.protocol, Absent) and replica.protocol.reason.startswith("assumed")
        is_unsure = is_assumed and one.state in {State.UNKNOWN, State.MAYBE_AT_RISK}
        assert found.get(expected["broker_id"]) == expected["offset"] or is_unsure, (context, expected)


@pytest.mark.parametrize("name", RECORDINGS)
@pytest.mark.some(*OF_EACH_KIND)
def test_with_brokers_taken_away_nothing_is_calm_without_proof(name, incident):
    root = incident(name)
    checks = json.loads((root / "checks.json").read_text())
    lost = {
        (loss["topic"], loss["partition"]): set(loss["offsets"])
        for loss in (checks.get("explain") or {}).get("lost", [])
    }
    choice = random.Random(name)
    for check in checks["diff"]:
        nodes = sorted((root / "snapshots" / check["snapshot"]).iterdir())
        whole = look(nodes, check)
        check_one(f"{name} {check['snapshot']}", whole, whole, lost)
        for _ in range(SUBSETS):
            some = [node for node in nodes if choice.random() < 0.7]
            if not some:
                continue
            result = look(some, check)
            context = f"{name} {check['snapshot']} of {[node.name for node in some]}"
            check_one(context, result, whole, lost)
            check_truncations(context, result, check)
            assert result.answer.state is not State.AGREE or whole.answer.state is not State.AT_RISK, context


@pytest.mark.parametrize("broker", [1, 2, 3])
@pytest.mark.some(2)
def test_a_damaged_replica_is_the_odd_one_whoever_leads(broker, incident, tmp_path, capsys):
    final = incident("unclean-election-4.x") / "snapshots" / "99-final"
    for node in final.iterdir():
        copied(node, tmp_path / node.name)
    (log,) = (tmp_path / f"broker-{broker}").rglob("orders-1/*.log")
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)
    nodes = sorted(map(str, tmp_path.iterdir()))

    for leader in (None, 1, 2, 3):
        asked = [] if leader is None else ["--leader", str(leader)]
        assert 1 == run(["diff", *nodes, "--topic", "orders", "--partition", "1", *asked, "--format", "json"])
        document = json.loads(capsys.readouterr().out)
        (part,) = document["partitions"]
        assert "diverged" == document["answer"]["state"]
        assert [broker] == [one["broker_id"] for one in part["odd_ones_out"]]
        assert f"The odd one out: broker {broker} " in document["answer"]["headline"]
        # What another holds intact is not lost, whoever leads; what is damaged on the leader can't be read from it.
        lost = {choice["leader"]: choice["lost_certain"] for choice in part["what_if"]}
        assert {one: 7 if one == broker else 0 for one in (1, 2, 3)} == lost
        assert [] == part["sole_holders"]
        if leader is None:  # the metadata say that broker 3 is elected, whatever its log holds
            assert 3 == part["leader"]["broker_id"]
        parted = [one for one in document["findings"] if one["code"] == "KF204"]
        assert {broker} == {one["broker_id"] for one in parted}


def test_a_replica_of_which_the_offset_of_one_batch_is_damaged_is_copied_again_from_the_leader(
    incident, tmp_path, capsys
):
    final = incident("unclean-election-4.x") / "snapshots" / "99-final"
    for node in final.iterdir():
        copied(node, tmp_path / node.name)
    (log,) = (tmp_path / "broker-1").rglob("orders-1/*.log")
    data = bytearray(log.read_bytes())
    position = 12 + int.from_bytes(data[8:12], "big")
    data[position] ^= 1  # a checksum does not cover the base offset, of which no other log has a batch there now
    log.write_bytes(data)
    nodes = sorted(map(str, tmp_path.iterdir()))

    assert 1 == run(["diff", *nodes, "--topic", "orders", "--partition", "1", "--format", "json"])
    steps = json.loads(capsys.readouterr().out)["answer"]["now"]

    assert any(
        step.startswith("Have broker 3 lead orders-1, of which all is intact there, then let broker 1")
        for step in steps
    )
    assert not any(step.startswith("Empty and delete no replica") for step in steps)


def flip(root, broker, position):
    (log,) = (root / f"broker-{broker}").rglob("orders-0/*.log")
    data = bytearray(log.read_bytes())
    data[position] ^= 1
    log.write_bytes(data)


def test_no_damaged_replica_is_one_to_copy_from(incident, tmp_path):
    copied(incident("unclean-election-4.x") / "snapshots" / "01-before-live", tmp_path, dirs_exist_ok=True)
    nodes = sorted(tmp_path.iterdir())
    options = Ask(topics=frozenset({"orders"}), partitions=frozenset({0}), is_stopped=True)
    for node in nodes:
        (node / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":7}')

    flip(tmp_path, 1, 200)
    flip(tmp_path, 2, 3000)
    found = compare(case_of(find_inputs(nodes), options))
    two = found.answer
    flip(tmp_path, 3, 6000)
    three = compare(case_of(find_inputs(nodes), options)).answer

    assert "The odd ones out: brokers 1 and 2" in two.headline
    assert {1} == {one.broker_id for one in found.findings if one.code == "KF204"}
    assert any(one.startswith("Have broker 3 lead orders-0, of which all is intact there") for one in two.now)
    assert not any("copy it again" in one for one in three.now)
    assert any(one.startswith("Find out which content is right") for one in three.now)


def test_a_copy_of_a_running_broker_that_has_sound_records_behind_damage_is_at_risk(incident, tmp_path):
    copied(incident("unclean-election-4.x") / "snapshots" / "01-before-live", tmp_path, dirs_exist_ok=True)
    flip(tmp_path, 2, 3000)

    answer = compare(case_of(find_inputs(sorted(tmp_path.iterdir())))).answer

    assert State.AT_RISK is answer.state
    assert answer.headline.startswith(
        "DATA AT RISK: if broker 2 is elected, which can be without an unclean election, 53 "
    )


def test_a_topic_that_the_metadata_alone_names_can_be_asked_for(incident, capsys):
    snapshot = incident("disk-replaced-4.x") / "snapshots" / "03-all-down-disk-replaced"
    paths = [str(snapshot / "broker-1"), str(snapshot / "controller-100")]

    assert 1 == run(["diff", *paths, "--topic", "stock"])
    assert capsys.readouterr().out.startswith("STARTING BROKER 1 DESTROYS 3 PARTITIONS")
    assert 2 == run(["diff", *paths, "--topic", "stok"])
    assert "did you mean stock?" in capsys.readouterr().err
    assert 3 == run(["diff", paths[1], "--topic", "stock"])


def test_a_directory_that_checkpoints_name_may_have_been_left_out_of_the_copy(incident, tmp_path, capsys):
    copied(incident("unclean-election-4.x") / "snapshots" / "99-final", tmp_path / "final")
    (gone,) = (tmp_path / "final" / "broker-3").rglob("orders-0")
    shutil.rmtree(gone)

    assert 1 == run(["diff", str(tmp_path / "final")])
    words = " ".join(capsys.readouterr().out.split())
    assert words.startswith("STARTING BROKER 3 FIRST DESTROYS 1 PARTITION: checkpoints name it")
    assert "no directory of it is there, unless the copy left it out, and it can be elected." in words


@pytest.mark.parametrize(
    ("behind", "words"),
    [(bytes(4096), "4,096 bytes of zeros"), (bytes(4095) + b"\1", "4,096 bytes that are no batch")],
)
@pytest.mark.parametrize("brokers", [(2,), (1, 2, 3)])
@pytest.mark.some(2)
def test_bytes_behind_the_last_batch_of_a_cleanly_stopped_log_are_no_calm(
    behind, words, brokers, incident, tmp_path, capsys
):
    """A start recovers nothing, and reads zeros as a batch: predict says that it fails."""
    root = copied(incident("benign-rolling-restart-4.x") / "snapshots" / "99-final", tmp_path / "final")
    for broker in brokers:
        with max((root / f"broker-{broker}" / "orders-ok-0").glob("*.log")).open("ab") as log:
            log.write(behind)
    whose = "broker 2" if brokers == (2,) else "brokers 1, 2 and 3"
    what = words if brokers == (2,) else "bytes that are no batch"

    for depth in ("tails", "content"):
        assert 1 == run(["diff", *map(str, sorted(root.iterdir())), "--depth", depth, "--format", "json"])
        document = json.loads(capsys.readouterr().out)
        assert document["answer"]["headline"].endswith(
            f" But behind the last batch of orders-ok-0 on {whose}, stopped cleanly, are {what}: `kforensics predict` tells whether a start fails."
        )
        found = [(one["code"], one["broker_id"]) for one in document["findings"] if one["severity"] != "note"]
        assert [("KF217", broker) for broker in brokers] == sorted(found)
        assert document["findings"][0]["statement"].endswith(f"behind its last batch are {words}")


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.some(1)
def test_a_clean_stop_wrote_the_high_watermark_of_a_topic_that_was_created_again(is_clean, incident, tmp_path, capsys):
    """Both logs end 7 offsets below it. Without the marker, it may be the line of the earlier topic."""
    final = copied(incident("recreated-topic-4.x") / "snapshots" / "99-final", tmp_path / "final")
    for broker in (1, 2):
        data = final / f"broker-{broker}" / "data-0"
        with (data / "inventory-1" / "00000000000000000000.log").open("r+b") as log:
            log.truncate(5058)
        if not is_clean:
            (data / ".kafka_cleanshutdown").unlink()

    run(["diff", str(final), "-t", "inventory"])
    compared = " ".join(capsys.readouterr().out.split())
    run(["explain", str(final), "-t", "inventory"])
    explained = " ".join(capsys.readouterr().out.split())

    assert is_clean == compared.startswith(
        "COMMITTED RECORDS ARE MISSING: brokers 1 and 2 recorded high watermarks up to 7 offsets past the end of every log"
    )
    assert is_clean == explained.startswith(
        "Committed records of inventory-1 are lost: broker 1 recorded high watermark 28 of inventory-1, and every log of it ends at or below 21."
    )


def test_a_replica_that_lacks_a_committed_marker_is_behind(incident, capsys):
    snapshots = incident("consumer-ahead-4.x") / "snapshots"
    nodes = [one for one in sorted((snapshots / "99-final").iterdir()) if one.name != "broker-2"]

    run(["diff", *map(str, nodes), str(snapshots / "03-old-leader-down-live" / "broker-2"), "--format", "json"])

    states = {
        f"{one['topic']}-{one['partition']}": one["state"] for one in json.loads(capsys.readouterr().out)["partitions"]
    }
    assert "behind" == states["derived-0"]
