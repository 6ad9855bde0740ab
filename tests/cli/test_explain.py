"""`explain` against what happened in the recordings, with all evidence and with little, and in all its forms."""

import gzip
import json
import re
import shutil
from pathlib import Path

import pytest

from kforensics.ask.model import Ask
from kforensics.cli.app import run
from kforensics.commands import explain as explain_module
from tests.builders.directories import copied
from tests.builders.explained import arguments_of, explain

pytestmark = pytest.mark.usefixtures("read_once")

RECORDINGS = sorted(
    p.name.removesuffix(".tar.xz") for p in (Path(__file__).parents[2] / "fixtures" / "incidents").glob("*.tar.xz")
)
CALM = (
    "all-codecs-4.x",
    "benign-rolling-restart-4.x",
    "kip101-saves-0.11",
    "mixed-magic-1.1",
    "operator-actions-2.5",
    "operator-actions-2.8",
    "recreated-topic-4.x",
)
CAUSES = {
    "acks1-tail-1.1": {"uncommitted-tail"},
    "acks1-tail-2.8": {"uncommitted-tail"},
    "consumer-ahead-4.x": {"unclean-election"},
    "damaged-leader-2.8": {"damage"},
    "epoch-truncate-2.8": {"uncommitted-tail"},
    "epoch-truncate-3.9": {"uncommitted-tail"},
    "fast-failover-1.1": {"unclean-election"},
    "fast-failover-2.x": {"unclean-election"},
    "hw-loss-0.10": {"hw-truncation"},
    "kraft-quorum-3x": {"uncommitted-tail"},
    "last-standing-3.3": {"power-loss", "last-replica-standing"},
    "late-return-2.4": {"unclean-election", "uncommitted-tail"},
    "min-isr-4.1": {"uncommitted-tail"},
    "power-cut-2.8": {"power-loss"},
    "power-loss-4.x": {"power-loss", "last-replica-standing"},
    "reassignment-jbod-2.8": {"recreated-topic"},
    "unclean-election-2.8": {"unclean-election"},
    "unclean-election-4.x": {"unclean-election"},
}


def offsets_of(losses, certainty):
    return {
        (loss["topic"], loss["partition"], offset)
        for loss in losses
        if loss["committed"] == certainty
        for offset in range(loss["first_offset"], loss["last_offset"] + 1)
    }


@pytest.mark.parametrize("name", RECORDINGS)
@pytest.mark.some(16)
def test_what_happened_is_found_and_nothing_is_invented(name, incident, capsys):
    root = incident(name)
    check = json.loads((root / "checks.json").read_text())["explain"]
    document, code = explain(capsys, *arguments_of(root))

    edited = {tuple(one) for one in check.get("edited", [])}
    found = {
        (t["broker_id"], t["topic"], t["partition"], t["from_offset"], t["to_offset"]) for t in document["truncations"]
    }
    wanted = {
        (t["broker_id"], t["topic"], t["partition"], t["from_offset"], t["to_offset"]) for t in check["truncations"]
    }
    assert wanted <= found
    assert {truncation[:3] for truncation in found - wanted} <= edited
    elections = {
        (e["topic"], e["partition"], e["leader_epoch"]) for e in document["timeline"] if e["kind"] == "unclean-election"
    }
    assert {(e["topic"], e["partition"], e["leader_epoch"]) for e in check["unclean_elections"]} <= elections
    told = offsets_of(document["losses"], "certain") | offsets_of(document["losses"], "possible")
    assert {(one["topic"], one["partition"], offset) for one in check["lost"] for offset in one["offsets"]} <= told
    kept = {
        (one["topic"], one["partition"], offset)
        for one in check["not_lost"]
        for first, last in one["runs"]
        for offset in range(first, last + 1)
    }
    assert set() == kept & offsets_of(document["losses"], "certain")
    assert CAUSES.get(name, set()) <= {t["cause"] for t in document["truncations"]}
    assert [] == document["problems"]
    is_grave = any(one["severity"] in {"warning", "error", "critical"} for one in document["findings"])
    assert (document["answer"]["state"] == "nothing-lost" and not is_grave) == (code == 0)
    assert "unknown" != document["answer"]["state"]
    assert all(truncation["citations"] for truncation in document["truncations"])
    assert False not in {
        truncation["agrees"] for truncation in document["truncations"] if isinstance(truncation["agrees"], bool)
    }


@pytest.mark.parametrize("name", CALM)
@pytest.mark.some(2)
def test_recordings_where_nothing_was_lost_come_out_calm(name, incident, capsys):
    code = run(["explain", *arguments_of(incident(name))])
    out = capsys.readouterr().out

    assert 0 == code
    assert out.startswith("Nothing that was committed is lost from ")
    assert "What was cut" not in out


def test_the_screen_says_first_what_is_gone_and_why(incident, capsys, untouched):
    root = incident("unclean-election-4.x")
    with untouched(root):
        code = run(["explain", *arguments_of(root)])
    out = capsys.readouterr().out

    assert 1 == code
    assert "56 records that were committed are lost from orders (3 partitions): an unclean" == out.splitlines()[0]
    assert "broker 1 truncates 3 logs by 1 to 43 offsets each, until" in out
    assert "recomputed by kip-595: 68, as the broker did" in out
    # Only a command, or a single long word, the path of a file, may stick out.
    assert all(len(line) <= 80 or len(line.split()) <= 2 or " $ " in line for line in out.splitlines())
    assert "$ kforensics salvage --what lost" in out
    assert "\x1b" not in out


def test_logs_alone_tell_of_cuts_but_not_of_losses(incident, capsys):
    root = incident("unclean-election-4.x")
    document, code = explain(capsys, root / "logs")

    assert 3 == code
    assert {(60, "unclean-election"), (68, "unclean-election"), (74, "unclean-election")} == {
        (t["to_offset"], t["cause"]) for t in document["truncations"]
    }
    assert [] == document["losses"]
    assert any("not among the inputs" in sentence for sentence in document["would_tell_more"])


def test_one_broker_alone_is_looked_at_and_what_is_missing_is_said(incident, capsys):
    document, code = explain(capsys, incident("unclean-election-4.x") / "snapshots" / "99-final" / "broker-2")

    assert 3 == code
    assert "unknown" == document["answer"]["state"]
    assert [] == document["truncations"] == document["losses"]
    assert 2 == len(document["would_tell_more"])


def test_snapshots_alone_show_a_cut_that_no_line_tells_of(incident, capsys):
    root = incident("epoch-truncate-3.9") / "snapshots"
    document, _ = explain(capsys, "--before", root / "02-leader-killed", root / "99-final")

    truncations = {(t["topic"], t["partition"], t["from_offset"], t["to_offset"]): t for t in document["truncations"]}
    assert {("trades", 0, 138, 100), ("clicks", 1, 64, 55)} == set(truncations)
    assert {False} == {truncation["logged"] for truncation in truncations.values()}
    assert {"uncommitted-tail"} == {truncation["cause"] for truncation in truncations.values()}
    assert {"no"} == {loss["committed"] for loss in document["losses"]}


def test_what_renamed_segments_still_hold_is_denied_with_log_lines_too(incident, capsys):
    root = incident("epoch-truncate-2.8")
    document, _ = explain(capsys, root / "snapshots" / "99-final", root / "logs")

    assert "uncommitted-lost" == document["answer"]["state"]
    assert {"no"} == {loss["was_committed"] for loss in document["losses"]}


def test_logs_without_milliseconds_prove_as_much(incident, tmp_path, capsys):
    root = incident("epoch-truncate-2.8")
    logs = shutil.copytree(root / "logs", tmp_path / "logs")
    for path in logs.rglob("*.log"):
        text = re.sub(r"(?m)^\[(\S+ \S+),\d{3}\] (\w+)", r"\1 \2  [main] AppInfo:42 -", path.read_text())
        path.write_text(text)
    document, _ = explain(capsys, root / "snapshots" / "99-final", logs)

    assert "uncommitted-lost" == document["answer"]["state"]
    assert {"no"} == {loss["was_committed"] for loss in document["losses"]}
    assert {"uncommitted-tail"} == {truncation["cause"] for truncation in document["truncations"]}


def test_what_a_replica_in_use_still_holds_is_at_stake_and_not_gone(incident, capsys):
    root = incident("unclean-election-4.x") / "snapshots"
    parts = [root / "02-old-leader-killed" / "broker-1", *sorted((root / "03-old-leader-down-live").glob("*-[23]"))]
    code = run(["explain", *map(str, parts)])
    out = capsys.readouterr().out

    assert 1 == code
    assert "are only on broker 1, which isn't the leader." in " ".join(out.split())
    assert "Do not start broker 1 before its directory is copied" in out


def test_snapshots_in_the_wrong_order_are_put_right_and_named(incident, capsys):
    root = incident("hw-loss-0.10")
    document, _ = explain(capsys, *arguments_of(root))
    given = arguments_of(root)
    swapped, _ = explain(capsys, *given[4:6], *given[2:4], *given[0:2], *given[6:])

    assert 1 == len(swapped["notes"])
    assert [] == document["notes"]
    for part in ("truncations", "losses"):
        assert [_without_inputs(one) for one in document[part]] == [_without_inputs(one) for one in swapped[part]]


def _without_inputs(value):
    if isinstance(value, dict):
        return {key: _without_inputs(item) for key, item in value.items() if key != "input"}
    return sorted(map(json.dumps, map(_without_inputs, value))) if isinstance(value, list) else value


def test_rotated_gzipped_and_damaged_logs_of_any_name(incident, capsys, tmp_path):
    root = incident("hw-loss-0.10")
    copied(root / "snapshots" / "99-final", tmp_path / "now")
    logs = tmp_path / "collected"
    logs.mkdir()
    for node in (1, 2):
        text = (root / "logs" / f"broker-{node}" / "server.log").read_bytes()
        middle = text.index(b"\n", len(text) // 2) + 1
        (logs / f"node{node}-old.bin").write_bytes(gzip.compress(b"\xff\x00 garbage \x1b[31m\n" + text[:middle]))
        (logs / f"node{node}.txt").write_bytes(text[middle:] + b"[2026-11-21 07:0")
    document, code = explain(capsys, tmp_path / "now", logs)

    assert {(1, 60, 45), (2, 60, 45)} == {
        (t["broker_id"], t["from_offset"], t["to_offset"]) for t in document["truncations"]
    }
    assert code == 1
    assert {"possible"} == {loss["committed"] for loss in document["losses"]}


def test_the_zone_of_the_logs_by_option(incident, capsys):
    root = incident("hw-loss-0.10")
    plain, _ = explain(capsys, *arguments_of(root), "--log-timezone", "UTC")
    shifted, _ = explain(capsys, *arguments_of(root), "--log-timezone", "+02:00")

    first, second = (doc["timeline"][0]["time_ms"] for doc in (plain, shifted))
    assert 2 * 3_600_000 == first - second
    assert {"option"} == {clock["source"] for clock in shifted["clocks"]}
    run(["explain", *arguments_of(root), "--log-timezone", "+02:00"])
    happened = capsys.readouterr().out.partition("What happened")[2].partition("What was truncated")[0]
    assert happened.count("-2:00:00]") == happened.count(".log:") > 3
    run(["explain", *arguments_of(root), "--log-timezone", "UTC"])
    assert ":00:00]" not in capsys.readouterr().out


def test_only_what_is_asked_for(incident, capsys):
    root = incident("unclean-election-4.x")
    document, _ = explain(
        capsys, *arguments_of(root), "--topic", "orders", "-p", "2", "--since", "2026-11-21T06:40:07Z"
    )

    assert {("orders", 2)} == {(t["topic"], t["partition"]) for t in document["truncations"]}
    assert {"orders"} >= {e["topic"] for e in document["timeline"] if isinstance(e["topic"], str)}
    assert min(e["time_utc"] for e in document["timeline"]) >= "2026-11-21T06:40:07"


def test_jsonl_has_an_object_a_line(incident, capsys):
    run(["explain", *arguments_of(incident("hw-loss-0.10")), "--format", "jsonl"])
    kinds = [json.loads(line).get("type", "finding") for line in capsys.readouterr().out.splitlines()]

    assert {"event", "truncation", "loss", "conclusion", "finding"} == set(kinds)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--log-timezone", "Mars/Base"], 2),
        (["--since", "some day"], 2),
        (["--format", "sarif"], 2),
    ],
)
def test_wrong_usage_is_named(options, code, incident, capsys):
    assert code == run(["explain", str(incident("hw-loss-0.10") / "logs"), *options])
    assert capsys.readouterr().err


def test_a_path_that_is_not_there_is_named_and_the_rest_is_used_where_that_is_asked_for(incident, capsys, tmp_path):
    root = incident("hw-loss-0.10")
    document, code = explain(capsys, *arguments_of(root), tmp_path / "gone", "--keep-going")

    assert 1 == code
    assert 2 == len(document["truncations"])
    assert "there is no such file" in document["problems"][0]["message"]
    assert 3 == run(["explain", str(tmp_path / "gone")])


def test_a_topic_that_no_input_tells_of_is_said(fixtures, capsys):
    code = run(["explain", str(fixtures / "unclean-election"), "--topic", "orders", "--topic", "nosuch"])

    assert 2 == code
    assert "no partition of topic nosuch is among the inputs" in capsys.readouterr().err


def test_a_time_that_ends_before_it_begins_is_refused(fixtures, capsys):
    code = run(["explain", str(fixtures / "unclean-election"), "--since", "2026-01-02", "--until", "2026-01-01"])

    assert 2 == code
    assert "--since is later than --until" in capsys.readouterr().err


def test_metadata_alone_reads_everything_and_shows_no_log(incident, capsys):
    controller = incident("unclean-election-4.x") / "snapshots" / "99-final" / "controller-100"

    assert 3 == run(["explain", str(controller)])

    screen = " ".join(capsys.readouterr().out.split())
    assert screen.startswith(
        "Whether committed records are lost is unknown: no log of any partition is among the inputs."
    )
    assert "could not be read" not in screen
    # Four elections are on record, and no log shows what they did.
    assert "There were 4 unclean elections." in screen
    assert "no input shows that anything was lost" not in screen


def test_of_many_partitions_without_a_directory_only_unclean_elections_are_shown(fixtures, monkeypatch):
    controller = fixtures / "unclean-election" / "controller-100"
    whole = explain_module.run(Ask(paths=(controller,))).body
    monkeypatch.setattr(explain_module, "MOST_STATES", 3)

    short = explain_module.run(Ask(paths=(controller,))).body

    kinds = {"leader-change", "leader-lost", "unclean-election", "isr-shrink", "isr-expand"}
    unclean = [entry for entry in whole.timeline if entry.kind == "unclean-election"]
    assert unclean == [e for e in short.timeline if e.kind in kinds and not str(e.topic_partition).startswith("__cl")]
    assert len(unclean) < len([entry for entry in whole.timeline if entry.kind in kinds])
    assert any("--topic shows all of a topic" in note for note in short.notes)
    assert not any("--topic shows all of a topic" in note for note in whole.notes)


@pytest.mark.parametrize(
    ("line", "is_understood"),
    [
        ("%s INFO [main] Log:119 - Created log for partition orders-0\n", True),
        ("node-1 kafka: %s created log\n", False),
    ],
)
def test_a_log_file_that_is_given_is_not_asked_for_and_an_unknown_layout_is_named(
    line, is_understood, fixtures, tmp_path, capsys
):
    (tmp_path / "server.log").write_text("".join(line % f"2026-11-21 06:39:{second:02}" for second in range(30)))
    run(["explain", str(fixtures / "unclean-election" / "broker-1"), str(tmp_path / "server.log")])
    shown = " ".join(capsys.readouterr().out.split())

    assert "server.log, state-change.log and controller.log would show" not in shown
    assert is_understood == ("server.log are in a layout that is not understood" not in shown)
