"""`explain --since --until` over the logs of many months: files outside of the window are left alone, and the answer stays. A calm answer says up to when it holds."""

import datetime as dt
import gzip
import json
import os
from types import SimpleNamespace

import pytest

from kforensics.cli.app import run
from kforensics.commands.explain import _up_to
from kforensics.evidence.discovery import log_spans
from kforensics.evidence.discovery.log_spans import LogSpan, TimeWindow, files_outside, ranges_inside
from kforensics.source.mapped import read_counts
from kforensics.units import TopicPartition
from tests.builders.directories import copied
from tests.builders.explained import arguments_of, explain

DAY_MS = 86_400_000
NOW = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)
"""The day of the recording."""


def line(time, text):
    return f"[{time:%Y-%m-%d %H:%M:%S},123] INFO {text}\n".encode()


def day_of_lines(time, *texts, count=2000):
    step = dt.timedelta(hours=23) / count
    noise = "[GroupCoordinator 1]: Stabilized group g generation 7 (kafka.coordinator.group.GroupCoordinator)"
    return b"".join(
        line(time + number * step, texts[number] if number < len(texts) else noise) for number in range(count)
    )


def made(**values):
    return SimpleNamespace(**values)


def milliseconds(time):
    return int(time.timestamp() * 1000)


@pytest.fixture
def recording(incident, tmp_path):
    """A recording of 4.x whose logs may be altered."""
    source, root = incident("benign-rolling-restart-4.x"), tmp_path / "recording"
    copied(source / "logs", root / "logs")
    for name in ("snapshots", "checks.json"):
        (root / name).symlink_to(source / name)
    return root


@pytest.fixture
def long_lived(recording):
    """The recording with a year of older files in the log directory of one broker; it was started half a year ago."""
    folder = recording / "logs" / "broker-1"
    for days in range(3, 365, 7):
        time = NOW - dt.timedelta(days=days)
        texts = ["Kafka version: 4.0.0 (x)", "KafkaConfig values: "] if days == 178 else []
        data = day_of_lines(time, *texts, count=100)
        if days > 30:
            (folder / f"server.log.{time:%Y-%m-%d}.gz").write_bytes(gzip.compress(data, 1))
        else:
            (folder / f"server.log.{time:%Y-%m-%d}").write_bytes(data)
    return recording


def answer_of(document):
    told = {key: document[key] for key in ("answer", "partitions", "conclusion", "findings", "exit_code")}
    # Commands name the paths that were given.
    return told | {
        "answer": told["answer"]
        | {"now": [one.partition(": $")[0].partition(": export")[0] for one in told["answer"]["now"]]}
    }


def test_files_from_before_the_window_are_not_read_and_the_answer_stays(incident, long_lived, capsys):
    bare, _ = explain(capsys, *arguments_of(incident("benign-rolling-restart-4.x")), "--since", "2026-11-20")
    everything, _ = explain(capsys, *arguments_of(long_lived))

    document, _ = explain(capsys, *arguments_of(long_lived), "--since", "2026-11-20")

    assert answer_of(document) == answer_of(bare)
    assert bare["notes"] == []
    assert everything["notes"] == []
    (note,) = document["notes"]
    start = NOW - dt.timedelta(days=178)
    assert note.startswith("51 log files in ")
    files = "server.log.2025-11-26.gz to server.log.2026-11-18"
    assert note.endswith(f"logs/broker-1 were not read, because of --since: {files}.")
    read = {one["path"] for one in document["clocks"]}
    assert f"broker-1/server.log.{start:%Y-%m-%d}.gz" in read  # it was started then, and said its version
    assert len(everything["clocks"]) == len(read) + 51


@pytest.mark.slow
def test_files_from_behind_the_window_are_named_apart_and_the_headline_ends_with_it(long_lived, capsys):
    document, _ = explain(capsys, *arguments_of(long_lived), "--since", "2026-03-01", "--until", "2026-03-02")

    earlier, later = document["notes"]
    assert earlier.endswith("because of --since: server.log.2025-11-26.gz to server.log.2026-02-18.gz.")
    assert later.endswith("because of --until: server.log.2026-03-04.gz to server.log.2026-11-18.")
    assert "since 2026-03-01 00:00:00 UTC and before 2026-03-02 00:00:00 UTC" in document["answer"]["headline"]


@pytest.fixture
def one_file(recording, monkeypatch):
    """The recording, of which one broker's log begins a year before; the broker was started half a year ago, as its log says."""
    monkeypatch.setattr(log_spans, "WINDOW_LENGTH", 1 << 16)
    monkeypatch.setattr(log_spans, "END_LENGTH", 1 << 12)
    monkeypatch.setattr(log_spans, "START_LENGTH", 1 << 12)
    path = recording / "logs" / "broker-1" / "server.log"
    days = []
    for number in range(364, 2, -7):
        texts = ["Kafka version: 4.0.0 (x)", "KafkaConfig values: "] if number == 182 else []
        days.append(day_of_lines(NOW - dt.timedelta(days=number), *texts, count=500))
    path.write_bytes(b"".join(days) + path.read_bytes())
    return recording


@pytest.mark.slow
def test_lines_from_before_the_window_are_not_searched_and_the_answer_stays(incident, one_file, capsys):
    bare, _ = explain(capsys, *arguments_of(incident("benign-rolling-restart-4.x")), "--since", "2026-11-20")

    document, _ = explain(capsys, *arguments_of(one_file), "--since", "2026-11-20")

    assert answer_of(document) == answer_of(bare)
    (note,) = document["notes"]
    assert note.endswith("logs/broker-1/server.log were not searched, because of --since.")
    assert int(note.split()[0].replace(",", "")) > 25_000  # of 26,000


def test_where_a_broker_said_its_version_is_searched_and_what_the_metadata_log_does_not_reach_to(one_file):
    path = one_file / "logs" / "broker-1" / "server.log"
    data = path.read_bytes()
    since = milliseconds(NOW - dt.timedelta(days=100))
    until = milliseconds(NOW - dt.timedelta(days=90))
    recorded = milliseconds(NOW - dt.timedelta(days=20))

    main, late, *starts = ranges_inside(path, TimeWindow(since, until, recorded))

    inside = [data[begin:end] for begin, end in starts]
    assert any(b"Kafka version" in one for one in inside)
    assert any(b"KafkaConfig values" in one for one in inside)
    assert sum(map(len, inside)) < len(data) // 50
    assert f"{NOW - dt.timedelta(days=98):%Y-%m-%d}".encode() in data[slice(*main)]
    assert main[1] - main[0] < len(data) // 6
    assert late[1] == len(data)
    assert f"{NOW - dt.timedelta(days=14):%Y-%m-%d}".encode() in data[slice(*late)]
    assert f"{NOW - dt.timedelta(days=70):%Y-%m-%d}".encode() not in data[slice(*late)]


def test_without_a_metadata_log_all_lines_are_needed(incident, tmp_path, capsys):
    root = tmp_path / "recording"
    copied(incident("kip101-saves-0.11"), root)
    folder = next(path for path in sorted((root / "logs").iterdir()) if path.is_dir())
    (folder / "server.log.2020-01-01").write_bytes(day_of_lines(dt.datetime(2020, 1, 1, tzinfo=dt.UTC)))

    document, _ = explain(capsys, *arguments_of(root), "--since", "2026-01-01")

    assert not [note for note in document["notes"] if "not read" in note]
    assert f"{folder.name}/server.log.2020-01-01" in {one["path"] for one in document["clocks"]}


@pytest.fixture
def months(tmp_path):
    """A file for each of ten months: gzipped, but for the last two."""
    start = dt.datetime(2025, 1, 1, tzinfo=dt.UTC)
    times = [start + dt.timedelta(days=30 * number) for number in range(10)]
    paths = []
    for number, time in enumerate(times):
        data = day_of_lines(time, count=300)
        paths.append(
            tmp_path
            / (f"server.log.{9 - number}.gz" if number < 8 else "server.log.1" if number == 8 else "server.log")
        )
        paths[-1].write_bytes(gzip.compress(data) if number < 8 else data)
    return paths, [milliseconds(time) for time in times]


def outside(paths, since=None, until=None, recorded=2**62, starts=()):
    return [one.at for one in files_outside(paths, TimeWindow(since, until, recorded, starts))]


def test_a_window_leaves_out_what_surely_ends_before_or_begins_behind_it(months):
    paths, times = months

    # The third file may have lines up to the first line of the fourth; the fifth is a month after the third.
    assert outside(paths, since=times[3] + 2 * DAY_MS) == [0, 1, 2]
    assert outside(paths, since=times[3] + DAY_MS - 1) == [0, 1]
    assert outside(paths, since=times[8] + 3 * DAY_MS) == list(range(9))
    assert outside(paths, until=times[3]) == [4, 5, 6, 7, 8]  # the youngest is read whatever it holds
    assert outside(paths, until=times[3], recorded=times[6]) == [4]
    assert outside(paths, since=times[5], until=times[5]) == [0, 1, 2, 3, 6, 7, 8]
    assert outside(paths, since=0) == outside(paths, until=2**62) == []


def test_what_can_not_be_judged_is_read(months):
    paths, times = months
    since = times[9]
    two_logs = paths[8].read_bytes() + paths[9].read_bytes() + paths[8].read_bytes()
    paths[8].write_bytes(two_logs * 30)  # of 1 MB and more, with younger lines between
    paths[3].write_bytes(b"\x1f\x8bno gzip")
    paths[4].write_bytes(gzip.compress(b"no line\n" * 9))
    paths[5].unlink()

    assert outside(paths, since=since) == [0, 1, 2, 6]  # the eighth may reach up to the tenth


def test_a_copy_of_a_compressed_file_does_not_end_it(tmp_path):
    start = dt.datetime(2025, 1, 1, tzinfo=dt.UTC)
    days = [day_of_lines(start + dt.timedelta(days=number)) for number in range(30)]
    paths = [tmp_path / name for name in ("server.log.1.gz", "server.log.2.gz", "server.log")]
    for path, data in zip(paths[:2], (b"".join(days), days[0]), strict=True):
        path.write_bytes(gzip.compress(data))

    since = milliseconds(start) + 20 * DAY_MS
    assert outside(paths[:2], since=since) == []
    paths[2].write_bytes(day_of_lines(start + dt.timedelta(days=30)))
    assert outside(paths, since=since) == []
    assert outside(paths, since=since + 20 * DAY_MS) == [0, 1]


def test_the_last_start_before_the_window_is_read(months):
    paths, times = months
    data = gzip.decompress(paths[4].read_bytes())
    paths[4].write_bytes(gzip.compress(data + line(dt.datetime(2025, 5, 2, tzinfo=dt.UTC), "Kafka version: 4.0.0 (x)")))
    data = gzip.decompress(paths[2].read_bytes())
    paths[2].write_bytes(gzip.compress(data + line(dt.datetime(2025, 3, 3, tzinfo=dt.UTC), "KafkaConfig values: ")))

    read_counts.reset()
    assert outside(paths, since=times[9]) == [0, 1, 3, 5, 6, 7, 8]
    searched = read_counts.bytes
    read_counts.reset()
    assert outside(paths, since=times[9], starts=(times[2] + DAY_MS, times[4] + DAY_MS)) == [0, 1, 3, 5, 6, 7, 8]
    assert read_counts.bytes < searched - sum(paths[at].stat().st_size for at in (5, 6, 7, 8))


def test_the_span_of_a_file_is_that_of_its_lines(months):
    paths, times = months

    found = files_outside(paths, TimeWindow(times[9] + 9 * DAY_MS, None, 2**62))

    assert found[0] == LogSpan(0, times[0] + 123, times[1] + 123)
    assert found[-1].at == 8
    assert found[-1].first_ms == times[8] + 123
    assert found[-1].last_ms < times[8] + DAY_MS


@pytest.mark.parametrize(("moment", "newest"), [("01-before-live", "06:52:06"), ("99-final", "06:52:51")])
@pytest.mark.some(1)
def test_a_calm_answer_says_up_to_when_the_evidence_reaches(moment, newest, incident, capsys):
    """Disks that were all put back to an earlier moment are as calm as they were then."""
    snapshot = incident("benign-rolling-restart-4.x") / "snapshots" / moment
    document, code = explain(capsys, *map(str, sorted(snapshot.iterdir())))

    assert 0 == code
    assert document["answer"]["headline"].endswith(
        f" since 2026-11-21 06:52:02 UTC, by evidence up to 2026-11-21 {newest} UTC (the newest record)."
    )


@pytest.mark.parametrize(
    ("records", "lines", "said"),
    [
        ((4_000, 9_000), (2_000, 9_500), "00:00:09 UTC (the newest record)"),
        ((9_000,), (2_000, 5_000), "00:00:05 UTC (the last log line)"),  # a producer's clock, or lines that end before
        ((), (5_000,), "00:00:05 UTC (the last log line)"),
        ((7_000,), (), "00:00:07 UTC (the newest record)"),
        ((), (), ""),
    ],
)
def test_the_evidence_ends_with_the_logs_or_with_what_shows_who_led(records, lines, said):
    logs = [SimpleNamespace(is_final=True, state="live", newest_ms=time) for time in records]
    logs += [
        SimpleNamespace(is_final=final, state=state, newest_ms=10_000) for final, state in ((0, "live"), (1, "stray"))
    ]
    incidents = [made(partition=TopicPartition("orders", 0), logs=logs)]
    gathered = made(events=[SimpleNamespace(time_ms=time) for time in lines], histories=())

    end_ms, what = _up_to(gathered, incidents)
    assert said == ("" if end_ms is None else f"00:00:{end_ms // 1000:02} UTC ({what})")


@pytest.mark.parametrize(
    "line",
    [
        "2026-01-{day:02} 10:00:00 INFO  [main] UnifiedLog:142 - Truncating log t-0 to offset {number}.\n",
        "Jan {day:2} 10:00:00 host kafka[811]: INFO Truncating log t-0 to offset {number}. (kafka.log.Log)\n",
        '{{"@timestamp": "2026-01-{day:02}T10:00:00Z", "message": "Truncating log t-0 to offset {number}."}}\n',
        '{{\n  "timestamp": {millis},\n  "message": "Truncating log t-0 to offset {number}."\n}},\n',
        '"Jan {day}, 2026 @ 10:00:00.000","Truncating log t-0 to offset {number}."\n',
    ],
)
@pytest.mark.some(2)
def test_logs_searches_only_the_part_of_a_long_file_that_is_asked_about(line, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(log_spans, "WINDOW_LENGTH", 1 << 13)
    monkeypatch.setattr(log_spans, "END_LENGTH", 1 << 10)
    start = 1_767_261_600_000
    lines = [
        line.format(day=1 + number // 100, number=number, millis=start + number // 100 * DAY_MS)
        for number in range(2_900)
    ]
    (tmp_path / "server.log").write_text("".join(lines))
    os.utime(tmp_path / "server.log", (1_770_000_000, 1_770_000_000))

    code = run(["logs", str(tmp_path), "--since", "2026-01-15", "--until", "2026-01-17", "--format", "json"])
    document = json.loads(capsys.readouterr().out)

    (file,) = document["files"]
    assert code in {0, 1}
    assert {one["kind"]: one["lines"] for one in document["kinds"]} == {"truncation": 200}
    assert file["lines"] == "".join(lines).count("\n")
    assert file["not_searched"] > 0.7 * file["lines"]
    cited = document["events"][0]["citation"]["line"]
    assert "offset 1400." in "".join(lines).splitlines()[cited - 1]


def test_a_file_outside_of_the_time_is_named_and_not_read(tmp_path, capsys):
    for month in (1, 2, 3):
        text = f"[2026-0{month}-10 10:00:00,000] INFO Truncating log t-0 to offset {month}. (kafka.log.Log)\n"
        (tmp_path / f"server.log.2026-0{month}-10").write_text(text * 3)

    run(["logs", str(tmp_path), "--since", "2026-03-01"])

    assert "Not read, since all lines are outside of the time asked about" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("year", [2020, 2030])
@pytest.mark.some(1)
def test_a_long_file_with_a_clock_that_was_wrong_for_a_while_is_read_whole(year, tmp_path, monkeypatch):
    """The stretch lies between two samples; a search that meets it would go the wrong way."""
    monkeypatch.setattr(log_spans, "WINDOW_LENGTH", 1 << 17)
    start, path, lines = dt.datetime(2025, 1, 1, tzinfo=dt.UTC), tmp_path / "server.log", 160_000
    with path.open("w") as file:
        for number in range(lines):
            time = start + dt.timedelta(seconds=60 * number)
            if abs(number - lines // 32) < 600:
                time = dt.datetime(year, 1, 1, tzinfo=dt.UTC)
            file.write(f"[{time:%Y-%m-%d %H:%M:%S,000}] INFO x".ljust(99) + "\n")
    at = milliseconds(start + dt.timedelta(seconds=60 * lines // 40))

    assert ranges_inside(path, TimeWindow(at, at + 3_600_000, 2**62)) == []
