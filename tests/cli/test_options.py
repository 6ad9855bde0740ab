"""Sizes, rates and times mean the same in every command that takes them."""

import json
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from kforensics.ask import option as values
from kforensics.ask.commands import COMMANDS
from kforensics.ask.option import parse_rate, parse_size, parse_time
from kforensics.ask.questions import options_of
from kforensics.cli.app import run
from kforensics.errors import UsageError
from kforensics.render.emit import OutputFormat, formats_of, shapes_of
from kforensics.source.mapped import limit_read_rate
from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("800000", 800_000),
        ("10k", 10_000),
        ("20G", 20 * 10**9),
        ("1.5MB", 1_500_000),
        ("1.5GiB", 1_610_612_736),
        ("64 KiB", 65_536),
        (" 3T ", 3 * 10**12),
    ],
)
def test_sizes(text, size):
    assert size == parse_size(text, "--bytes")


@pytest.mark.parametrize("text", ["", "much", "-5MB", "5iB", "1,5M", "5MB/s", "1.5.5M", "٣M", "9" * 400])
def test_no_sizes(text):
    with pytest.raises(UsageError, match="--bytes"):
        parse_size(text, "--bytes")


@pytest.mark.parametrize(
    ("text", "rate"), [("50MB/s", 50_000_000), ("1.5MB/s", 1_500_000), ("1.5GiB/s", 1_610_612_736), ("800000", 800_000)]
)
def test_rates(text, rate):
    assert rate == parse_rate(text, "--read-rate")


@pytest.mark.parametrize("text", ["", "fast", "-5MB/s", "0", "0.5", "5 TB/h", "/s", "5/s/s"])
def test_no_rates(text):
    with pytest.raises(UsageError, match="--read-rate"):
        parse_rate(text, "--read-rate")


@pytest.mark.parametrize("command", ["verify", "diff", "seal", "ls", "explain", "triage", "predict"])
@pytest.mark.some(2)
def test_every_command_takes_the_same_rates(command, fixtures, capsys):
    node = str(fixtures / "unclean-election" / "broker-2" / ("" if command == "predict" else "orders-3"))
    try:
        for rate in ("1.5GB/s", "800000000", "1 TiB/s"):
            assert run([command, node, "--read-rate", rate]) in {0, 1, 3}, capsys.readouterr().err
        assert run([command, node, "--read-rate", "1.5 loaves"]) == 2
    finally:
        limit_read_rate(None)
    assert "--read-rate 1.5 loaves: expected bytes a second" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1970-01-01T00:00:01.5", 1500),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:00:01Z", 1000),
        ("1970-01-02", 86_400_000),
        ("-5", -5),
        ("1763706373332", 1_763_706_373_332),
        ("1700000000000000", 1_700_000_000_000_000),
        ("0001-01-01T00:00:00+14:00", -62_135_647_200_000),
    ],
)
def test_times(text, milliseconds):
    assert milliseconds == parse_time(text, "--since")


NOW = datetime(2026, 11, 21, 8, 0, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("now", NOW),
        ("2 hours ago", NOW.replace(hour=6)),
        ("90 min ago", NOW.replace(hour=6, minute=30)),
        ("5m ago", NOW.replace(hour=7, minute=55)),
        ("yesterday 14:00", datetime(2026, 11, 20, 14, tzinfo=UTC)),
        ("yesterday 14:00 +02:00", datetime(2026, 11, 20, 12, tzinfo=UTC)),
        ("21 Nov 2026 06:26", datetime(2026, 11, 21, 6, 26, tzinfo=UTC)),
    ],
)
def test_times_in_words(text, moment, monkeypatch):
    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return NOW

    monkeypatch.setattr(values, "datetime", Clock)

    assert int(moment.timestamp() * 1000) == parse_time(text, "--since")


def test_the_library_for_times_in_words_is_loaded_for_words_alone():
    script = "import sys\nfrom kforensics.ask.option import parse_time\nparse_time('2026-11-21T06:26Z', '--since')\nassert 'dateparser' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT)


@pytest.mark.parametrize(
    "text", ["", "soon", "20261121", "9" * 19, "2026-13-01", "2026-13-01T00:00Z", "may", "monday", "١٢٣"]
)
def test_no_times(text):
    with pytest.raises(UsageError, match="--since"):
        parse_time(text, "--since")


@pytest.mark.parametrize("options", [("explain", "--since"), ("explain", "--until"), ("dump", "--since")])
@pytest.mark.parametrize("moment", ["1763706373332", "2025-11-21T06:26:13.332Z", "2025-11-21T07:26:13.332+01:00"])
def test_every_command_takes_the_same_times(options, moment, fixtures, capsys):
    command, option = options
    node = str(fixtures / "unclean-election" / "broker-2" / "orders-3")
    evidence = node + "/00000000000000000000.log" if command == "dump" else node

    assert run([command, evidence, option, moment]) in {0, 1, 3}, capsys.readouterr().err
    assert run([command, evidence, option, "one fine day"]) == 2
    assert f"{option} one fine day is no time: write ISO 8601" in capsys.readouterr().err


EVERYWHERE = {
    "--topic": "triage ls verify diff explain logs predict salvage trace groups transactions metadata fleet-audit fleet-report fleet-trend",
    "--partition": "triage ls verify diff explain logs predict salvage trace groups transactions metadata fleet-audit fleet-report fleet-trend",
    "--since": "triage explain logs metadata dump capture fleet-audit fleet-report",
    "--until": "triage explain logs metadata dump",
    "--at": "groups transactions metadata",
    "--cluster": "triage ls verify diff explain logs predict salvage trace groups transactions metadata fleet-report fleet-trend",
    "--stopped": "triage verify diff explain predict salvage trace groups transactions fleet-audit",
    "--keep-going": "triage ls dump verify diff explain logs predict salvage trace groups transactions metadata capture fleet-audit",
    "--read-rate": "triage ls dump verify diff explain logs predict salvage trace groups transactions metadata capture seal",
    "--before": "triage explain salvage trace groups transactions",
    "--plan": "capture salvage",
}
"""Each option of a meaning of its own, with the commands that have it."""

EARLIER = {"capture", "fleet-audit", "fleet-report"}
"""Commands to which --since names an earlier capture or audit, and no time."""


@pytest.mark.parametrize(("flag", "commands"), EVERYWHERE.items())
def test_an_option_is_declared_once_for_all_commands_that_have_it(flag, commands):
    declared = {
        name: one for name in COMMANDS for one in options_of(name) if flag in one.option.flags and name not in EARLIER
    }
    fields = {one.field for name, one in declared.items() if name != "dump"}

    assert {*commands.split()} - EARLIER == {*declared} - EARLIER
    assert len(fields) == 1
    assert len({(one.kind, one.option.many, one.option.read) for one in declared.values()}) == 1


@pytest.mark.parametrize(
    "name", [name for name in COMMANDS if name not in {"simulate", "fleet-trend", "fleet-history"}]
)
@pytest.mark.some(6)
def test_brief_is_everywhere_where_there_is_an_answer(name, capsys):
    run([*name.split("-"), "--help"])

    assert ("--brief" in capsys.readouterr().out) == (
        OutputFormat.BRIEF in formats_of(*shapes_of(name.replace("-", " ")))
    )


ONE_TOPIC = [
    ("ls", "replicas of 2 partitions"),
    ("verify", "Sound: "),
    ("diff", "2 partitions"),
    ("explain", "from 2 partitions"),
    ("metadata", "payments-1"),
    ("predict", "payments"),
    ("triage", "2 partitions judged"),
]


@pytest.mark.parametrize(("command", "words"), ONE_TOPIC)
@pytest.mark.some(2)
def test_only_a_topic_is_looked_at(command, words, fixtures, capsys):
    assert run([command, str(fixtures / "unclean-election"), "-t", "payments"]) in {0, 1, 3}

    out = " ".join(capsys.readouterr().out.split())
    assert words in out
    assert "orders" not in out.replace("unclean-election", "").replace("--topic payments", "").split("CAN'T TELL")[0]


@pytest.mark.parametrize("command", ["ls", "verify", "diff", "explain", "metadata", "predict", "triage", "salvage"])
def test_a_topic_that_is_not_there_is_refused_with_those_that_are(command, fixtures, capsys):
    plan = ["--plan"] if command == "salvage" else []
    assert run([command, str(fixtures / "unclean-election"), "-t", "paymetns", *plan]) == 2
    assert "did you mean payments" in capsys.readouterr().err


def test_the_history_of_two_topics_is_shown(fixtures, capsys):
    node = str(fixtures / "unclean-election")
    assert run(["metadata", node, "-t", "orders", "-t", "payments", "-p", "0", "-p", "1"]) == 0

    out = capsys.readouterr().out
    assert all(f"  {name}" in out for name in ("orders-0", "orders-1", "payments-0", "payments-1"))
    assert "orders-2" not in out


@pytest.mark.parametrize(
    ("asked", "code", "words"),
    [
        (["-p", "orders-0"], 1, "43 committed records of 1 partition"),
        (["-p", "orders-0", "--partition=orders-2"], 1, "44 committed records of 2 partitions"),
        (["-p", "orders-0", "-p", "payments-1"], 2, "--partition names partitions of several topics and numbers"),
        (["-p", "nosuch-0"], 2, "no partition of topic nosuch is among the inputs"),
        (["--", "-p", "orders-0"], 3, "2 of 3 named paths can't be used"),
    ],
)
def test_a_partition_is_asked_for_as_screens_name_it(asked, code, words, fixtures, capsys):
    assert run(["diff", str(fixtures / "unclean-election"), *asked]) == code
    assert words in " ".join("".join(capsys.readouterr()).split())


def test_the_state_of_the_metadata_as_of_a_time_is_that_at_the_last_offset_before(fixtures, capsys):
    node = str(fixtures / "unclean-election")
    run(["metadata", node, "-t", "orders", "--at", "88"])
    by_offset = capsys.readouterr().out
    assert run(["metadata", node, "-t", "orders", "--at", "2026-11-21T06:40:07.719Z"]) == 0
    assert capsys.readouterr().out == by_offset

    assert run(["metadata", node, "--at", "2001-11-21"]) == 2
    assert "the metadata log dates nothing before 2001-11-21" in capsys.readouterr().err
    assert run(["metadata", node, "--at", "98"]) == 2
    assert "the metadata log ends at offset 97, before 98" in capsys.readouterr().err


def test_the_history_of_a_time_has_what_changed_in_it_alone(fixtures, capsys):
    node = str(fixtures / "unclean-election")
    window = ["--since", "2026-11-21T06:40:05Z", "--until", "2026-11-21T06:40:08Z"]
    assert run(["metadata", node, "-v", *window]) == 0

    history = [line for line in capsys.readouterr().out.splitlines() if "2026-11-21T" in line]
    assert history
    assert all("06:40:05" <= line.split()[1][11:19] < "06:40:08" for line in history)


def test_lines_about_one_topic(tmp_path, capsys):
    line = "[2026-11-21 06:26:1{0},000] INFO [Partition {1}-0 broker=1] Shrinking ISR from 1,2 to 1. Leader: (highWatermark: 5, endOffset: 9). Out of sync replicas: (brokerId: 2, endOffset: 5). (kafka.cluster.Partition)\n"
    (tmp_path / "server.log").write_text(line.format(1, "orders") + line.format(2, "payments"))
    run(["logs", str(tmp_path / "server.log"), "-t", "payments", "--format", "json"])

    (kind,) = json.loads(capsys.readouterr().out)["kinds"]
    assert kind["lines"] == 1


def test_a_plan_says_what_salvage_would_write_and_writes_nothing(fixtures, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    node = str(fixtures / "unclean-election")
    wanted = ["salvage", node, "--what", "all", "-t", "orders", "--format", "json"]
    assert run([*wanted, "--plan"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert not any(tmp_path.iterdir())
    assert "can be saved" in plan["answer"]["headline"]
    assert plan["is_plan"] is True

    assert run([*wanted, "-o", "out"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert [one["records"] for one in plan["partitions"]] == [one["records"] for one in done["partitions"]]
    assert plan["records"] == done["records"]
    assert [one["gaps"] for one in plan["partitions"]] == [one["gaps"] for one in done["partitions"]]
