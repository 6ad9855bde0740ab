"""Commands that are asked about the same evidence agree, and what is added to it makes none calmer."""

import json
import re
import shutil

import pytest

from kforensics.cli.app import run
from kforensics.commands import explain as module
from tests.conftest import FIXTURES

FINAL = "snapshots/99-final"


@pytest.fixture
def say(capsys):
    def call(name, *arguments):
        code = run([name, *map(str, arguments), "--format", "json"])
        return code, json.loads(capsys.readouterr().out)["answer"]

    return call


@pytest.mark.parametrize(
    ("topic", "words"), [("orders-0", "43 records that were committed are lost"), ("orders-3", "56")]
)
@pytest.mark.some(1)
def test_a_log_whose_topic_was_given_another_id_is_that_of_now(say, tmp_path, topic, words):
    """Old tools gave topics of a ZooKeeper cluster a new id (KAFKA-14190); what both logs hold is not lost."""
    now = tmp_path / "now"
    shutil.copytree(FIXTURES / "unclean-election", now, symlinks=True)
    named = now / "broker-1" / topic / "partition.metadata"
    named.write_text("version: 0\ntopic_id: 7q2nFuXrRiG-oQI24tJHSg")

    assert say("explain", now)[1]["headline"].startswith(words)
    of_replicas = "56 committed records of 3" if topic == "orders-3" else "13 committed records of 2"
    assert f"broker 1 will discard {of_replicas} partitions" in say("diff", now)[1]["headline"]


@pytest.mark.parametrize("stopped", [(), ("--stopped",)])
@pytest.mark.parametrize("name", ["diff", "predict", "explain"])
@pytest.mark.some(2)
def test_lines_of_later_starts_do_not_hide_a_disk_that_was_exchanged(incident, say, name, stopped):
    root = incident("disk-replaced-4.x")
    replaced = root / "snapshots" / "03-all-down-disk-replaced"
    alone, with_lines = say(name, replaced, *stopped), say(name, replaced, root / "logs", *stopped)

    for code, answer in (alone, with_lines):
        assert code == 1
        assert answer["headline"].startswith("STARTING BROKER 1 DESTROYS 5 PARTITIONS: its disk is empty")
        assert "Do not start broker 1" in " ".join(answer["now"][:2])
    assert "MAYBE AT RISK" not in with_lines[1]["headline"]


def test_lines_of_later_starts_leave_the_members_of_the_isr_known(incident, say):
    root = incident("disk-replaced-4.x")
    code, answer = say("diff", root / "snapshots" / "02-all-down-before-replacement", root / "logs")

    assert (code, answer["state"]) == (1, "at-risk")
    assert "ONLY BROKER 1 HOLDS 20 committed records" in answer["headline"]
    assert "copied earlier" not in answer["headline"]


@pytest.mark.parametrize("recording", ["consumer-ahead-4.x", "power-loss-4.x"])
@pytest.mark.parametrize("name", ["diff", "predict"])
@pytest.mark.some(2)
def test_replicas_that_agree_after_an_unclean_election_may_have_lost_records_by_it(incident, say, recording, name):
    code, answer = say(name, incident(recording) / FINAL)

    assert (code, answer["state"]) == (3, "unknown")
    assert answer["headline"].startswith("Whether committed records of")
    assert "are lost is unknown: see `kforensics explain`." in answer["headline"]
    assert "in an unclean election in leader epoch" in answer["headline"]
    assert "Evidence against it" not in " ".join(answer["unknown"])


@pytest.mark.parametrize("name", ["diff", "predict"])
def test_replicas_that_agree_with_a_leader_of_another_disk_may_have_lost_all(incident, say, name):
    code, answer = say(name, incident("disk-replaced-4.x") / FINAL)

    assert (code, answer["state"]) == (3, "unknown")
    assert "whether anything was lost when broker 1 came back with another disk" in answer["headline"]
    assert not answer["headline"].startswith("All replicas agree")


def test_replicas_that_agree_leave_open_what_a_leader_lost_that_came_back_from_an_unclean_stop(incident, say):
    root = incident("kip101-saves-0.11")
    code, answer = say("diff", root / FINAL, root / "logs")

    assert (code, answer["state"]) == (3, "unknown")
    assert answer["headline"].startswith("Whether committed records of orders-0 are lost is unknown: see ")
    assert "All replicas agree" in answer["headline"]


def test_replicas_of_which_not_all_may_be_given_hide_no_loss_that_lines_show(incident, say, tmp_path):
    root = incident("hw-loss-0.10")
    shutil.copytree(root / FINAL, tmp_path / "now", symlinks=True)
    shutil.copytree(root / "logs", tmp_path / "logs", symlinks=True)
    shutil.rmtree(tmp_path / "logs" / "broker-1")
    said = "at least 6 offsets of orders-0 were truncated, whose records were possibly committed"

    for name in ("explain", "diff", "predict", "verify"):
        code, answer = say(name, tmp_path / "now", tmp_path / "logs")

        assert (code, answer["state"]) == (1, "maybe-lost")
        assert f"still leads, {said}" in answer["headline"]


@pytest.mark.parametrize("name", ["diff", "predict", "verify"])
@pytest.mark.some(1)
def test_replicas_that_agree_hide_no_truncation_that_lines_show(incident, say, name):
    """Of server.log alone no line says who was in sync; with state-change.log nothing committed was truncated."""
    root = incident("epoch-truncate-2.8")
    code, answer = say(name, root / FINAL, root / "logs" / "broker-1" / "server.log")

    assert (code, answer["state"]) == (1, "maybe-lost")
    assert answer["headline"].startswith("At least 15 offsets of clicks-1 and trades-0 were truncated")
    assert ": see `kforensics explain`. " in answer["headline"]

    code, answer = say(name, root / FINAL, root / "logs")

    assert code == 0
    assert "truncated" not in answer["headline"]


@pytest.mark.parametrize("snapshot", ["03-recreated-broker-3-down-live", "99-final"])
@pytest.mark.parametrize("name", ["diff", "verify"])
@pytest.mark.some(2)
def test_directories_of_another_topic_of_the_name_hide_no_loss(incident, say, tmp_path, name, snapshot):
    """No metadata says that the topic was deleted and created again."""
    root = incident("recreated-topic-4.x") / "snapshots"
    bare = tmp_path / snapshot
    shutil.copytree(
        root / snapshot, bare, symlinks=True, ignore=lambda _, names: [one for one in names if "metadata-0" in one]
    )
    code, answer = say(name, bare)

    assert (code, answer["state"]) == (1, "maybe-lost")
    assert "165 records of inventory (3 partitions) that were possibly committed" in answer["headline"]
    assert ": see `kforensics explain`. " in answer["headline"]

    _, answer = say(name, root / snapshot)

    assert answer["state"] not in {"lost", "maybe-lost"}
    assert "165" not in answer["headline"]


@pytest.mark.parametrize("name", ["explain", "diff", "predict"])
def test_nodes_without_an_id_are_not_a_leader_that_is_not_known(incident, say, tmp_path, name):
    """The longer log was copied while its broker ran: its tail is no loss, whoever led."""
    bare = tmp_path / "now"
    held = incident("fast-failover-1.1") / "snapshots" / "02-both-down-a-has-tail"
    shutil.copytree(held, bare, symlinks=True, ignore=shutil.ignore_patterns("meta.properties"))
    code, answer = say(name, bare)

    assert (code, answer["state"]) == (3, "unknown")
    assert "isn't the leader" not in answer["headline"]


@pytest.fixture
def with_other_byte(incident, tmp_path):
    """One byte of a closed part of a log is another, which no start reads."""
    now = tmp_path / "now"
    shutil.copytree(incident("epoch-truncate-2.8") / FINAL, now, symlinks=True)
    segment = now / "broker-1" / "trades-1" / f"{0:020}.log"
    content = bytearray(segment.read_bytes())
    content[5826] ^= 0xFF
    segment.write_bytes(content)
    return now


@pytest.mark.slow
def test_a_start_that_reads_no_closed_part_of_a_log_is_not_calm_beside_it(say, with_other_byte):
    assert [say(name, with_other_byte)[0] for name in ("explain", "diff", "verify", "predict", "triage")] == [1] * 5
    _, answer = say("predict", with_other_byte)

    assert "loads all 31 logs, and loading discards no record." in answer["headline"]
    assert not any("Whether the replicas hold the same below the ends" in one for one in answer["unknown"])


def test_of_large_logs_a_start_says_that_content_was_not_compared(say, with_other_byte, monkeypatch):
    monkeypatch.setattr("kforensics.case.model.READ_WHOLE", 1000)
    code, answer = say("predict", with_other_byte)

    assert code == 0
    assert any(one.startswith("Whether the replicas hold the same below the ends of") for one in answer["unknown"])
    assert "agree" not in answer["headline"]


@pytest.mark.parametrize("name", ["diff", "verify"])
@pytest.mark.some(1)
def test_clean_elections_and_sound_files_stay_what_they_are(incident, say, name):
    quiet = "benign-rolling-restart-4.x" if name == "diff" else "power-loss-4.x"
    code, answer = say(name, incident(quiet) / FINAL)

    assert (code, answer["state"]) == (0, "agree" if name == "diff" else "sound")
    if name == "verify":  # no election decides whether files are sound, and what it leaves open is said
        assert any("had lost records when it led again" in one for one in answer["unknown"])


def test_logs_that_were_written_since_say_nothing_of_what_they_had_lost(incident, say):
    _, answer = say("explain", incident("power-loss-4.x") / FINAL)
    said = " ".join(answer["unknown"])

    assert "Whether broker 2 had lost records when it led again" in said
    assert "Evidence against it" not in said
    assert "end below a high watermark" not in said


def test_the_high_watermark_of_a_recreated_topic_says_nothing_of_the_directory_of_the_deleted_one(incident, say):
    final = incident("reassignment-jbod-2.8") / FINAL
    nodes = final / "broker-2", final / "broker-3"
    whole, parts = final / "broker-1", (final / "broker-1" / "disk-a", final / "broker-1" / "disk-b")

    for given in (whole, *parts):
        _, answer = say("predict", given, *nodes)
        assert "none below a checkpointed high watermark" in answer["headline"]
        assert "9 committed" not in answer["headline"]


def test_lines_add_to_why_a_group_was_set_back_and_do_not_replace_it(coordinators, say):
    root = coordinators("retention-3.9")
    before = root / "snapshots" / "10-before"
    (_, alone), (_, with_lines) = say("groups", before), say("groups", before, root / "logs")

    anew = "the group itself was removed at 2026-11-26 21:51:51 UTC, and created again since"
    assert f"after it began anew: {anew}." in alone["headline"]
    assert f"after it began anew: the position before had expired, {anew}." in with_lines["headline"]
    assert "had expired" not in alone["headline"]


@pytest.mark.parametrize("name", ["predict", "triage"])
@pytest.mark.some(1)
def test_directories_that_are_no_partitions_are_to_be_moved_away(coordinators, say, tmp_path, name):
    shutil.copytree(coordinators("coordinator-lost-4.1") / FINAL, tmp_path / "now", symlinks=True)
    for stranger in ("broker-1/garbage", "broker-1/lost+found", "broker-2/backup.old"):
        (tmp_path / "now" / stranger).mkdir()
    code, answer = say(name, tmp_path / "now")
    moved = [one for one in answer["now"] if one.startswith("Move ")]

    assert code == 1
    assert [one.partition(" before it is started")[0] for one in moved] == [
        "Move garbage and lost+found out of the log directories of broker 1",
        "Move backup.old out of the log directory of broker 2",
    ]
    assert not any("orders" in one or "__cluster_metadata" in one for one in moved)


def test_the_replicas_that_are_given_are_not_proposed_as_the_assignment(incident, say):
    final = incident("hw-loss-0.10") / FINAL
    for given in ([final / "broker-1"], [final]):
        _, answer = say("diff", *given)
        (asked,) = [one for one in answer["unknown"] if "--replicas" in one]

        assert "state all of them, given here or not, with --replicas" in asked
        assert "--replicas 1" not in asked


@pytest.mark.parametrize("name", ["diff", "explain", "predict", "triage"])
@pytest.mark.some(2)
def test_a_log_that_is_said_to_begin_past_its_end_is_discarded_by_a_start(incident, say, tmp_path, name):
    """Broker 1 can be elected, and replicas of the same end would be all there is."""
    now = tmp_path / "now"
    shutil.copytree(incident("benign-rolling-restart-4.x") / FINAL, now, symlinks=True)
    begins = now / "broker-1" / "log-start-offset-checkpoint"
    begins.write_text("0\n1\nprofiles 0 5000\n")
    code, answer = say(name, now)

    assert code == 1
    assert "its log-start-offset-checkpoint says that it begins at 5,000, past its end at 280" in answer["headline"]
    assert "lack records of" not in answer["headline"]

    begins.write_text("0\n1\nprofiles 0 280\n")
    assert "past its end" not in say(name, now)[1]["headline"]


@pytest.mark.parametrize("name", ["diff", "explain", "verify"])
@pytest.mark.some(1)
def test_records_that_a_replica_alone_holds_are_said_where_it_can_not_be_compared(incident, say, tmp_path, name):
    """The log of broker 2 is one of another cluster, which no file beside it tells."""
    now = tmp_path / "now"
    shutil.copytree(incident("benign-rolling-restart-4.x") / FINAL, now, symlinks=True)
    shutil.rmtree(now / "broker-2" / "profiles-0")
    shutil.copytree(
        incident("silent-divergence-4.x") / FINAL / "broker-1" / "audit-0",
        now / "broker-2" / "profiles-0",
        ignore=shutil.ignore_patterns("partition.metadata"),
    )
    code, answer = say(name, now)

    assert code == 1
    if name != "verify":  # which is about the files that are missing
        assert "of profiles-0 are only on broker 2, which isn't the leader" in answer["headline"]


def test_records_that_were_never_committed_are_not_called_lost_where_something_else_is_open(say, tmp_path, capsys):
    """Of orders-3 three records were truncated that only their leader had; whether anything of orders-2 is lost is open."""
    history = tmp_path / "history"
    words = "simulate --random --seed 14 --brokers 5 --partitions 6 --protocol kip-595 --write"
    assert run([*words.split(), str(history)]) == 0
    capsys.readouterr()
    nodes = [one for one in sorted(history.iterdir()) if one.is_dir()]

    _, explained = say("explain", *nodes)
    _, saved = say("salvage", *nodes, "--plan")
    assert explained["state"] == "unknown"
    assert saved["headline"].startswith("0 of 3 uncommitted records of orders-3 that the leader does not hold")
    assert "may be lost" not in saved["headline"]


@pytest.mark.parametrize("name", ["diff", "predict", "explain", "verify"])
def test_a_high_watermark_past_the_end_of_the_only_replica_here_is_said_by_every_command(incident, say, tmp_path, name):
    now = tmp_path / "now"
    shutil.copytree(incident("hw-divergence-0.10") / "snapshots" / "02-after-power-loss", now, symlinks=True)
    shutil.rmtree(now / "broker-2" / "kafka-logs" / "ledger-0")
    code, answer = say(name, now)

    assert code == (3 if name == "verify" else 1)  # what a copy of a running broker looks like is no damage of files
    assert answer["headline"].startswith(
        "MAYBE AT RISK: broker 1 recorded high watermarks up to 13 offsets past the end"
    )


def test_what_happened_is_asked_of_the_partitions_alone_that_give_reason_for_it(incident, say, monkeypatch):
    asked, explain = [], module.explain

    def noted(case):
        asked.append(case.only)
        return explain(case)

    monkeypatch.setattr(module, "explain", noted)
    root = incident("epoch-truncate-2.8")
    _, answer = say("diff", root / FINAL, root / "logs" / "broker-1" / "server.log")

    assert answer["headline"].startswith("At least 15 offsets of clicks-1 and trades-0 were truncated")
    assert [sorted(map(str, one)) for one in asked] == [["clicks-1", "trades-0"]]


@pytest.mark.parametrize(
    ("position", "recovered", "in_all", "also"),
    [
        (200, 43, 56, "Also orders-0: recovery will discard records of it."),
        (15_000, 29, 49, "Recovery will discard 29 committed records more there, behind damage."),
    ],
)
@pytest.mark.some(1)
def test_damage_takes_no_committed_record_behind_it_out_of_the_count(
    say, tmp_path, capsys, position, recovered, in_all, also
):
    given = shutil.copytree(FIXTURES / "unclean-election", tmp_path / "given")
    log = given / "broker-1" / "orders-0" / "00000000000000000000.log"
    content = bytearray(log.read_bytes())
    content[position : position + 60] = bytes(60)
    log.write_bytes(content)

    run(["triage", str(given), "--format", "json"])
    first = json.loads(capsys.readouterr().out)
    _, compared = say("diff", given, "--topic", "orders", "--partition", "0")
    _, explained = say("explain", given)
    _, predicted = say("predict", given)
    _, saved = say("salvage", "--what", "at-risk", given, "-o", tmp_path / "saved")

    assert [(row["at_risk"], row["maybe_at_risk"], row["lost"]) for row in first["topics"]] == [(in_all, 0, 0)]
    assert also in first["answer"]["headline"]
    assert re.search(rf"[Rr]ecovery .*will discard {recovered} committed records", compared["headline"])
    assert f"{in_all} committed records of orders (3 partitions) are only on broker 1" in explained["headline"]
    (alone,) = re.findall(r"discards \d+ records of 1 log: .*, (\d+) kept in no other log", predicted["headline"])
    assert int(alone) >= recovered, "what can't be read is among them"
    assert saved["headline"].startswith(
        f"{in_all} of {in_all} records at risk of orders-0, orders-1 and orders-2 saved"
    )


@pytest.mark.slow
def test_records_that_a_damaged_leader_discards_and_others_hold_are_saved_as_at_risk(say, tmp_path, capsys):
    given = shutil.copytree(FIXTURES / "unclean-election", tmp_path / "given")
    log = given / "broker-3" / "orders-3" / "00000000000000000000.log"
    content = bytearray(log.read_bytes())
    content[2781:2789] = bytes(8)
    log.write_bytes(content)

    run(["triage", str(given), "--format", "json"])
    first = json.loads(capsys.readouterr().out)
    _, saved = say("salvage", "--what", "at-risk", given, "--plan")

    assert [row["at_risk"] for row in first["topics"]] == [130]
    assert saved["headline"].startswith("130 of 130 records at risk")


def test_what_recovery_discards_of_one_disk_is_counted_once_where_no_other_is_given(say, tmp_path, capsys):
    given = shutil.copytree(FIXTURES / "unclean-election" / "broker-3", tmp_path / "given")
    log = given / "orders-3" / "00000000000000000000.log"
    content = bytearray(log.read_bytes())
    content[2781:2789] = bytes(8)
    log.write_bytes(content)

    run(["triage", str(given), "--format", "json"])
    (row,) = json.loads(capsys.readouterr().out)["topics"]
    _, saved = say("salvage", "--what", "at-risk", given, "--plan")

    count = row["at_risk"] + row["maybe_at_risk"]
    assert count > 0
    assert saved["headline"].startswith(f"{count} of {count} records")


def test_what_was_truncated_before_is_not_at_risk(say, tmp_path):
    given = shutil.copytree(FIXTURES / "unclean-election", tmp_path / "given")
    name = "00000000000000000000.log"
    shutil.copy(given / "broker-1" / "orders-1" / name, given / "broker-1" / "orders-0" / f"{name}.deleted")

    _, saved = say("salvage", "--what", "at-risk", given, "--plan")

    assert saved["headline"].startswith("56 of 56 records at risk")
