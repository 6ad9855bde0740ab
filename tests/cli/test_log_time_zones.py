"""Log lines in local time: the zone is taken from lines and records that tie it to UTC, and a window that begins after its end shows nothing."""

import datetime as dt
import json

import pytest

from kforensics.cli.app import run
from kforensics.damage import Absent
from kforensics.evidence.broker_logs import LogFile
from kforensics.reconcile.observed.clocks import Clock, choose_clocks, created_logs, parse_zone, with_zone_of_records
from kforensics.units import TopicPartition
from tests.builders.directories import CLUSTER
from tests.builders.history import log_file, read_log
from tests.trust.hostile import sound_batch, write_partition

FIRST_MS = 1_700_000_000_000
"""The time of `sound_batch`."""
HOUR_MS = 3_600_000


def line(utc_ms, ahead_hours, text):
    local = dt.datetime.fromtimestamp(utc_ms / 1000 + ahead_hours * 3600, dt.UTC)
    return f"[{local:%Y-%m-%d %H:%M:%S},{utc_ms % 1000:03}] INFO {text}\n"


def of_creation(utc_ms, ahead_hours, name="t-0"):
    return line(
        utc_ms,
        ahead_hours,
        f"Created log for partition {name} in /data/{name} with properties {{}} (kafka.log.LogManager)",
    ) + line(
        utc_ms + 200,
        ahead_hours,
        f"[Broker id=1] Leader {name} starts at leader epoch 0 from offset 0 with high watermark 0 ISR [1] addingReplicas [] removingReplicas []. "
        "Previous leader epoch was -1. (state.change.logger)",
    )


def of_start(utc_ms, ahead_hours, *, tie=False):
    texts = [
        f"Cluster ID = {CLUSTER} (kafka.server.KafkaServer)",
        "Kafka version: 3.1.0 (o.a.k.common.utils.AppInfoParser)",
    ]
    texts += [f"Kafka startTimeMs: {utc_ms - 3} (o.a.k.common.utils.AppInfoParser)"] if tie else []
    texts.append("[KafkaServer id=1] started (kafka.server.KafkaServer)")
    return "".join(line(utc_ms, ahead_hours, text) for text in texts)


@pytest.fixture
def explained(tmp_path, capsys):
    """What explain says of one broker whose server.log is given."""
    write_partition(tmp_path / "data", "t-0", sound_batch(0) + sound_batch(1))
    (tmp_path / "data" / "meta.properties").write_text(f"version=0\nbroker.id=1\ncluster.id={CLUSTER}\n")
    (tmp_path / "data" / "replication-offset-checkpoint").write_text("0\n1\nt 0 2\n")
    (tmp_path / "data" / "t-0" / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")

    def call(text, *options):
        (tmp_path / "server.log").write_text(text)
        code = run(["explain", str(tmp_path / "data"), str(tmp_path / "server.log"), *options, "--format", "json"])
        return code, json.loads(capsys.readouterr().out)

    return call


@pytest.mark.parametrize("ahead", [2, 5.5, 9])
def test_lines_of_another_zone_than_the_records_make_no_window(explained, ahead):
    text = of_start(FIRST_MS - 60_000, ahead) + of_creation(FIRST_MS - 20_000, ahead)

    code, document = explained(text)

    assert (code, document["answer"]["state"]) == (3, "unknown")
    assert " since " not in document["answer"]["headline"]
    assert "which time zone the log lines are in" in document["answer"]["headline"]
    zone = f"+{int(ahead):02}:{int(ahead % 1 * 60):02}"
    assert any(f"--log-timezone ({zone}" in words for words in document["answer"]["unknown"])
    assert {(one["source"], one["shift_ms"]) for one in document["clocks"]} == {
        ("first-records", -round(ahead * HOUR_MS))
    }
    code, document = explained(text, "--log-timezone", zone)
    assert (code, document["answer"]["state"]) == (0, "nothing-lost")


def test_a_line_that_names_its_time_in_utc_ties_the_others(explained):
    text = of_start(FIRST_MS - 60_000, 5.5, tie=True) + of_creation(FIRST_MS - 20_000, 5.5)

    code, document = explained(text)

    assert (code, document["answer"]["state"]) == (0, "nothing-lost")
    assert "since 2023-11-14 22:12:20 UTC, by evidence up to 2023-11-14 22:13:" in document["answer"]["headline"]
    assert {(one["source"], one["shift_ms"]) for one in document["clocks"]} == {("start-time", -round(5.5 * HOUR_MS))}


def test_a_log_over_a_change_of_summer_time_has_a_shift_before_and_one_behind(tmp_path):
    moments = [dt.datetime(2025, 10, day, 12, tzinfo=dt.UTC) for day in (20, 24, 28, 30)]
    utc = [round(moment.timestamp() * 1000) for moment in moments]
    text = "".join(of_start(utc_ms, hours, tie=True) for utc_ms, hours in zip(utc, (2, 2, 1, 1), strict=True))
    # The clocks of Europe are put back at 1:00 UTC on the 26th.
    change = round(dt.datetime(2025, 10, 26, 1, tzinfo=dt.UTC).timestamp() * 1000)
    between = [change - 2 * HOUR_MS, change + 2 * HOUR_MS]
    text += "".join(of_creation(utc_ms, hours) for utc_ms, hours in zip(between, (2, 1), strict=True))
    (tmp_path / "server.log").write_text(text)
    file = read_log(tmp_path, "server.log")
    assert file is not None

    for clock in (
        *choose_clocks([file], {}),
        *choose_clocks([file], {}, zone=parse_zone("Europe/Berlin")),
    ):
        created = [event for event in file.events if event.kind == "log-created"]
        assert clock.times_of(created) == between
        assert [clock.shift_at(utc_ms) for utc_ms in between] == [-2 * HOUR_MS, -HOUR_MS]


def test_of_an_hour_that_a_clock_shows_twice_lines_are_of_the_second_time_behind_a_step_back():
    change = round(dt.datetime(2025, 10, 26, 1, tzinfo=dt.UTC).timestamp() * 1000)
    utc = [change + round(hours * HOUR_MS) for hours in (-1.5, -0.9, -0.2, 0.1, 0.5, 1.5)]
    text = "".join(of_creation(one, 2 if one < change else 1, f"t-{at}") for at, one in enumerate(utc))
    file = log_file(text)
    created = [event for event in file.events if event.kind == "log-created"]
    (clock,) = choose_clocks([file], {}, zone=parse_zone("Europe/Berlin"))

    assert clock.times_of(created) == utc
    # Nothing shows in which of both hours lines were written that only go on.
    assert clock.times_of(created[:2] + created[4:]) == [utc[0], Absent.UNKNOWN, Absent.UNKNOWN, utc[5]]


def test_a_window_that_begins_after_its_end_is_none(explained):
    code, document = explained(
        of_start(FIRST_MS - 60_000, 0) + of_creation(FIRST_MS - 20_000, 0), "--since", "2024-01-01"
    )

    assert (code, document["answer"]["state"]) == (3, "unknown")
    assert "anything of the time since 2024-01-01" in document["answer"]["headline"]
    assert "by evidence up to" not in document["answer"]["headline"]


def clock_by(*creations, moved=False):
    """The clock of a file in which these partitions are created, each with how long after it the first record came."""
    text = "".join(of_creation(utc_ms, ahead, f"{topic}-0") for topic, utc_ms, ahead, _ in creations)
    if moved:
        text = "".join(one + "\n" for one in text.splitlines() if "Created" in one)
    files: list[LogFile] = [log_file(text)]
    clocks = [Clock(shift_ms=0, source="assumed")]
    created = created_logs(files, clocks)
    first = {(1, TopicPartition(topic, 0)): utc_ms + later for topic, utc_ms, _, later in creations}
    (clock,) = with_zone_of_records(clocks, created, first)
    return clock.source, clock.shift_ms


def test_what_first_records_say_of_the_zone():
    assert clock_by(("a", FIRST_MS, 0, 5_000)) == ("assumed", 0)
    assert clock_by(("a", FIRST_MS, 0, -30_000)) == ("assumed", 0)  # a producer's clock
    assert clock_by(("a", FIRST_MS, 3, 20_000)) == ("first-records", -3 * HOUR_MS)
    # Nobody knows how long after its creation a quiet topic got its first record.
    assert clock_by(("a", FIRST_MS, 3, 20 * 60_000)) == ("unknown", 0)
    assert clock_by(("a", FIRST_MS, 3, 20 * 60_000), ("b", FIRST_MS, 3, 9_000)) == ("first-records", -3 * HOUR_MS)
    # West of Greenwich one late record is no proof, and two topics that are late by the same are.
    assert clock_by(("a", FIRST_MS, -5, 9_000)) == ("assumed", 0)
    west = [("a", FIRST_MS, -5, 9_000), ("b", FIRST_MS + HOUR_MS, -5, 4_000)]
    assert clock_by(*west) == ("first-records", 5 * HOUR_MS)
    # A log that is made when a partition moves is younger than its records.
    assert clock_by(("a", FIRST_MS, 3, 20_000), moved=True) == ("assumed", 0)
