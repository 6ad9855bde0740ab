"""`logs`: what lines mean, of one line, of files of several nodes, and of files of which nothing is known."""

import gzip
import json

import pytest

from kforensics.cli.app import run
from kforensics.evidence import broker_logs
from kforensics.evidence.discovery.inputs import LogPlace
from kforensics.formats.log_lines import scan
from kforensics.formats.log_lines.event import LineCensus
from kforensics.formats.log_lines.table import rows
from kforensics.reconcile.observed.line_kinds import told_causes
from tests.builders.archives import tarred, zipped
from tests.conftest import FIXTURES

LINES = """\
[2024-05-01 12:00:00,000] INFO [KafkaServer id=3] starting (kafka.server.KafkaServer)
[2024-05-01 12:00:01,000] ERROR Error while appending records to t-0 in dir /d (kafka.server.LogDirFailureChannel)
java.io.IOException: No space left on device
\tat java.base/sun.nio.ch.FileDispatcherImpl.write0(Native Method)
[2024-05-01 12:00:02,000] WARN [ReplicaManager broker=3] Stopping serving replicas in dir /d (kafka.server.ReplicaManager)
[2024-05-01 12:00:03,000] ERROR Shutdown broker because all log dirs in /d have failed (kafka.log.LogManager)
[2024-05-01 12:00:04,000] INFO Something about 17 cats (kafka.log.Cats)
"""


def said(capsys, *arguments):
    code = run(["logs", *map(str, arguments)])
    return code, capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "code", "word"),
    [
        ("[GroupCoordinator 1]: Stabilized group g generation 7 (__consumer_offsets-17) with 3 members", 0, "Harmless"),
        (
            "kafka-1  | [2024-05-01 12:00:00,000] INFO Fencing broker 2 because its session has timed out. (x)",
            0,
            "A symptom",
        ),
        ('{"message": "Shutdown broker because all log dirs in /d have failed"}', 1, "A cause"),
        ("the quick brown fox", 3, "not among the lines"),
    ],
)
def test_one_line_is_harmless_a_symptom_a_cause_or_not_known(line, code, word, capsys):
    exit_code, screen = said(capsys, "--line", line)

    assert (exit_code, word in " ".join(screen.split())) == (code, True)


def test_the_first_line_says_which_node_failed_and_why(tmp_path, capsys):
    (tmp_path / "server.log").write_text(LINES)
    code, screen = said(capsys, tmp_path / "server.log", "-v")
    text = " ".join(screen.split())

    assert code == 1
    assert text.startswith(
        "Broker 3's process ended by itself at 2024-05-01 12:00:03 UTC: all log dirs in /d have failed: IOException: No space left on device"
    )
    assert "Log dir error cause, 1 line" in text
    assert "because IOException: No space left on device" in text
    assert "Something about * cats" in text


def test_a_document_counts_lines_by_kind_and_file(tmp_path, capsys):
    (tmp_path / "server.log").write_text(LINES)
    (tmp_path / "server.log.1").write_text("12:00 all is well\n")
    code, text = said(capsys, tmp_path, "--format", "json")
    document = json.loads(text)

    assert code == 1
    assert {one["kind"]: one["lines"] for one in document["kinds"]}["disk-cause"] == 1
    assert [(one["known"], one["lines"]) for one in document["files"]] == [(5, 7), (0, 1)]
    assert any("12:00 all is well" in words for words in document["answer"]["unknown"])
    assert document["failures"][0]["node"] == 3
    assert document["events"][0]["detail"]["directory"] == "/d"


REFUSED = "[2025-01-01 12:00:0{second},000] INFO [BrokerLifecycleManager id={node}] Unable to register broker {node} because the controller returned error DUPLICATE_BROKER_REGISTRATION (kafka.server.BrokerLifecycleManager)\n"
REGISTERED = "[2025-01-01 12:00:05,000] INFO [BrokerLifecycleManager id={node}] Successfully registered broker {node} with broker epoch 7 (kafka.server.BrokerLifecycleManager)\n"
FAILED = "[2025-01-01 12:00:0{second},000] WARN [ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Partition orders-{number} marked as failed (kafka.server.ReplicaFetcherThread)\n"
FOLLOWS = "[2025-01-01 12:00:05,000] INFO [Broker id=1] Follower orders-0 starts at leader epoch 4 from offset 9 with partition epoch 4 and high watermark 9. Current leader is 2. Previous leader epoch was 3. (state.change.logger)\n"


@pytest.mark.parametrize(
    ("lines", "is_over"),
    [
        (REFUSED.format(second=1, node=1) + REGISTERED.format(node=1), True),
        (REFUSED.format(second=1, node=1) + REGISTERED.format(node=1) + REFUSED.format(second=9, node=1), False),
        (REFUSED.format(second=1, node=1) + REGISTERED.format(node=2), False),
        (FAILED.format(second=1, number=0) + FOLLOWS, True),
        (FAILED.format(second=1, number=0) + FAILED.format(second=2, number=1) + FOLLOWS, False),
        (FAILED.format(second=1, number=0) + FOLLOWS + FAILED.format(second=9, number=0), False),
    ],
)
@pytest.mark.parametrize("command", ["logs", "triage"])
def test_a_cause_of_which_later_lines_show_that_it_is_over_is_a_symptom(command, lines, is_over, tmp_path, capsys):
    (tmp_path / "server.log").write_text(lines)
    code = run([command, str(tmp_path), "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    (kind,) = [one for one in document["kinds"] if one["kind"] in {"registration-refused", "partition-failed"}]

    assert kind["weight"] == ("symptom" if is_over else "cause")
    assert kind["meaning"].endswith("It was over before the logs end.") == is_over
    assert bool(kind["advice"]) == (not is_over)
    assert command == "triage" or code == (0 if is_over else 1)


def test_of_lines_that_were_counted_and_not_kept_nothing_shows_that_they_are_over():
    (number,) = [one.number for one in rows() if one.text == "Unable to register broker {broker}."]

    file = broker_logs.LogFile(
        input=0,
        path="server.log",
        is_compressed=False,
        node_id=1,
        events=(),
        census=LineCensus(),
        events_dropped=3,
        problems=(),
        mtime_ns=0,
        counts={number: 3},
    )

    (kind,) = told_causes([file], ())

    assert (kind.section.kind, kind.lines) == ("registration-refused", 3)


def test_a_line_without_a_time_is_over_by_later_lines_of_its_own_file_alone(tmp_path, capsys):
    untimed = REFUSED.format(second=1, node=1).partition("] ")[2]
    (tmp_path / "console.log").write_text(untimed)
    (tmp_path / "server.log").write_text(REGISTERED.format(node=1))
    _, text = said(capsys, tmp_path, "--format", "json")

    (kind,) = [one for one in json.loads(text)["kinds"] if one["kind"] == "registration-refused"]
    assert kind["weight"] == "cause"


def test_where_no_line_is_known_the_answer_is_unknown(tmp_path, capsys):
    (tmp_path / "server.log").write_text("2024-05-01 12:00:00 INFO tomcat started\n")

    assert said(capsys, tmp_path)[0] == 3
    assert said(capsys)[0] == 2


def test_times_are_those_that_were_asked_for(tmp_path, capsys):
    (tmp_path / "server.log").write_text(LINES)
    _, text = said(capsys, tmp_path, "--until", "2024-05-01T12:00:01.500", "--format", "json")

    assert {one["kind"] for one in json.loads(text)["kinds"]} == {"life-step", "log-dir-error", "disk-cause"}


def test_routine_is_harmless(tmp_path, capsys):
    (tmp_path / "server.log").write_text(LINES.splitlines()[0] + "\n")
    code, screen = said(capsys, tmp_path)

    assert code == 0
    assert "harmless" in screen


def test_predict_tells_the_failed_start_of_the_log_that_its_directories_do_not_show(tmp_path, capsys):
    log = tmp_path / "server.log"
    failed = "[2026-11-21 06:40:12,712] ERROR [KafkaServer id=%d] Fatal error during KafkaServer startup. Prepare to shutdown (x)\njava.net.BindException: Address already in use\n"
    found = {}
    for node in (2, 3):
        log.write_text(failed % node)
        run(["predict", str(FIXTURES / "unclean-election" / "broker-2"), str(log), "--format", "json"])
        found[node] = " ".join(json.loads(capsys.readouterr().out)["answer"]["unknown"])

    assert "Broker 2's last start failed at 2026-11-21 06:40:12 UTC: BindException: Address already in use." in found[2]
    assert "last start failed" not in found[3]


@pytest.mark.parametrize("command", ["diff", "explain", "triage", "predict", "groups"])
@pytest.mark.some(2)
def test_a_log_of_which_nothing_is_understood_stands_among_what_can_not_be_told(command, tmp_path, capsys):
    log = tmp_path / "server.log"
    log.write_text("12:00 all is well\n12:01 all is well\n")
    arguments = [command, str(FIXTURES / "unclean-election"), "--format", "json"]

    run(arguments)
    before = json.loads(capsys.readouterr().out)
    run([*arguments[:2], str(log), *arguments[2:]])
    document = json.loads(capsys.readouterr().out)

    of_it = [one for one in document["answer"]["unknown"] if str(log) in one]
    assert of_it == [f"What {log} says: none of its 2 lines is known. One of them: 12:00 all is well."]
    assert document["answer"]["state"] == before["answer"]["state"]
    assert document["exit_code"] == before["exit_code"]


def shown_of(capsys, *arguments):
    code = run(["logs", *arguments])
    return code, " ".join(capsys.readouterr().out.split())


def test_a_line_is_read_with_the_exception_below_it(capsys):
    line = (
        "[2026-03-01 10:00:00,123] ERROR Error while appending records to orders-3 in dir /d (kafka.server.X)\n"
        "java.io.IOException: No space left on device\n\tat x.Y(Z.java:1)"
    )

    code, shown = shown_of(capsys, "--line", line)

    assert code == 1
    assert "cause IOException: No space left on device" in shown


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "The line is empty."),
        ("\tat kafka.log.Log.append(Log.scala:12)", "give the line above it, or the whole trace"),
        ("[2026-03-01 10:00:00,123] ERROR Something new (kafka.server.X)", "nothing is said of it"),
        ("\udc80\udcff\udc00", "nothing is said of it"),
    ],
)
def test_of_a_line_that_is_not_known_nothing_calm_is_said(line, words, capsys):
    code, shown = shown_of(capsys, "--line", line)

    assert code == 3
    assert words in shown
    assert "Harmless" not in shown
    assert "no consequence" not in shown
    assert "Files" not in shown


@pytest.mark.parametrize(
    ("magic", "name"),
    [(b"\x28\xb5\x2f\xfd\x00", "zstd"), (b"BZh9", "bzip2"), (b"\xfd7zXZ\x00", "xz"), (b"PK\x03\x04", "zip")],
)
def test_a_log_in_a_compression_that_can_t_be_read_is_named_with_it(magic, name, tmp_path, capsys):
    (tmp_path / "server.log").write_bytes(b"[2026-03-01 10:00:00,123] INFO Truncating to offset 7 (kafka.log.Log)\n")
    (tmp_path / "server.log.1").write_bytes(magic + bytes(range(256)) * 4)

    _, shown = shown_of(capsys, str(tmp_path))

    assert f"server.log.1 says: it is compressed by {name}, and damaged, cut off or encrypted: nothing of it" in shown
    assert "1 known line of 1 file" in shown


@pytest.mark.parametrize("name", ["export.json", "broker-7", "sent.gz"])
def test_a_log_is_read_whatever_it_is_called(name, tmp_path, capsys):
    line = b"[2026-03-01 10:00:00,123] INFO [Log partition=t-0, dir=/d] Truncating to offset 7 (kafka.log.Log)\n"
    (tmp_path / name).write_bytes(gzip.compress(line) if name.endswith("gz") else line)

    _, shown = shown_of(capsys, str(tmp_path / name))

    assert "1 known line of 1 file" in shown


def test_the_answer_stands_before_what_could_not_be_read(tmp_path, capsys):
    line = b"[2026-03-01 10:00:00,%03d] INFO [Log partition=t-0, dir=/d] Truncating to offset %d (kafka.log.Log)\n"
    whole = gzip.compress(b"".join(line % (at % 1000, at * at) for at in range(9_000)))
    (tmp_path / "server.log.gz").write_bytes(whole[: len(whole) // 2])

    _, shown = shown_of(capsys, str(tmp_path))

    assert " known lines of 1 file" in shown[: shown.index("Truncation symptom")]
    assert shown.index("Truncation symptom") < shown.index("Files") < shown.index("not read: ")


@pytest.mark.parametrize("name", ["bundle.zip", "bundle.tar", "bundle.tar.gz", "bundle.tgz"])
def test_each_log_in_an_archive_counts_with_its_own_node(name, tmp_path, capsys):
    line = "[2026-03-01 10:00:00,123] INFO [KafkaServer id={}] started (kafka.server.KafkaServer)\n"
    logs = {
        "README": b"what support sent",
        "broker-1/server.log": line.format(1).encode() * 3,
        "broker-2/server.log.1.gz": gzip.compress(line.format(2).encode()),
    }
    archive = zipped(*logs.items()) if name.endswith("zip") else tarred(*logs.items())
    (tmp_path / name).write_bytes(gzip.compress(archive) if name.endswith("gz") else archive)

    code, shown = shown_of(capsys, str(tmp_path / name))

    assert code == 0
    assert "All 4 known lines of 2 files" in shown
    assert "r.log 1 - 3 3" in shown
    assert "log.1.gz 2 - 1 1" in shown
    assert "README" not in shown


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_log_in_two_bytes_a_character_needs_no_mark(encoding, tmp_path, capsys):
    text = "[2026-03-01 10:00:00,123] INFO Truncating to offset 7 (kafka.log.Log)\r\n" * 3
    (tmp_path / "server.log").write_bytes(text.encode(encoding))

    code, shown = shown_of(capsys, str(tmp_path))

    assert code == 0
    assert "truncation (3 lines)" in shown


def test_lines_of_several_nodes_in_one_file_count_and_no_failure_is_laid_on_a_node_that_none_names(tmp_path, capsys):
    """All of them were left out, and the screen said that no line of Kafka was known."""
    other = LINES.replace("id=3", "id=4").replace("broker=3", "broker=4")
    (tmp_path / "all.log").write_text(LINES + other)

    _, screen = said(capsys, tmp_path / "all.log")

    assert "Broker 3's log directory /d failed" in screen
    assert "Log dir error" in screen
    assert "No line of Kafka is known" not in screen
    assert "events of lines that do not say whose they are stand without a node" in " ".join(screen.split())
    assert "process ended" not in screen


@pytest.mark.parametrize("older", [False, True])
def test_a_log_that_is_given_twice_is_read_once_and_that_is_said(older, tmp_path, capsys):
    (tmp_path / "server.log").write_text(LINES)
    code, alone = said(capsys, tmp_path / "server.log", "--format", "json")
    part = LINES[: LINES.index("[2024-05-01 12:00:03")] if older else LINES
    (tmp_path / "server.log.gz").write_bytes(gzip.compress(part.encode()))

    both_code, both = said(capsys, tmp_path / "server.log", tmp_path / "server.log.gz", "--format", "json")
    one, two = json.loads(alone), json.loads(both)

    assert (code, one["answer"], one["kinds"]) == (both_code, two["answer"], two["kinds"])
    assert [file["path"] for file in two["files"]] == [file["path"] for file in one["files"]]
    assert "all that it holds is in" in both


def test_lines_that_lie_beside_the_log_as_the_output_of_a_container_are_counted_once(tmp_path, capsys):
    twice = LINES + LINES.splitlines(keepends=True)[-3].replace("12:00:02,000", "12:00:09,000") * 2
    (tmp_path / "server.log").write_text(twice)
    _, alone = said(capsys, tmp_path, "--format", "json")
    (tmp_path / "kafka-3-json.log").write_text(
        "".join(
            json.dumps({"log": line, "stream": "stdout", "time": "2024-05-01T12:00:09.9Z"}, separators=(",", ":"))
            + "\n"
            for line in twice.splitlines(keepends=True)
        )
    )
    _, beside = said(capsys, tmp_path, "--format", "json")
    counts = [{one["kind"]: one["lines"] for one in json.loads(text)["kinds"]} for text in (alone, beside)]

    assert len(json.loads(beside)["files"]) == 2
    assert counts[0] == counts[1]
    assert counts[0]["log-dir-failed"] == 3


def test_of_a_copy_that_is_cut_off_what_is_left_is_read_once_and_its_damage_is_said(tmp_path, capsys):
    text = LINES + "".join(f"[2024-05-01 12:01:{at:02}] INFO line {at * at} (kafka.log.Log)\n" for at in range(60))
    (tmp_path / "server.log").write_text(text)
    packed = gzip.compress(text.encode())
    (tmp_path / "server.log.gz").write_bytes(packed[: len(packed) - 30])
    _, alone = said(capsys, tmp_path / "server.log", "--format", "json")

    _, both = said(capsys, tmp_path / "server.log", tmp_path / "server.log.gz", "--format", "json")
    one, two = json.loads(alone), json.loads(both)

    assert one["kinds"] == two["kinds"]
    (problem,) = two["problems"]
    assert "the gzip stream ends early" in problem["message"]
    assert "all that can be read of it is in" in problem["message"]
    assert "all that it holds" not in both


@pytest.mark.parametrize("is_whole", [True, False])
def test_the_node_of_a_log_is_known_by_a_copy_that_lies_under_its_name(is_whole, tmp_path):
    line = "[2024-05-01 12:00:0{}] INFO [Log partition=t-0, dir=/d] Truncating to offset {} (kafka.log.Log)\n"
    text = "".join(line.format(at, 10 - at) for at in range(4))
    (tmp_path / "broker-7").mkdir()
    (tmp_path / "all.log").write_text(text)
    (tmp_path / "broker-7/server.log").write_text(text if is_whole else text[: text.index("[2024-05-01 12:00:02")])
    places = [LogPlace(tmp_path, "all.log", 0), LogPlace(tmp_path, "broker-7/server.log", 0)]

    read = broker_logs.read_log_files(places)

    (file,) = (one for one in read if isinstance(one, broker_logs.LogFile))
    assert file.node_id == 7
    assert len(file.events) == 4


def test_files_of_a_layout_in_which_lines_begin_alike_are_not_opened_by_twos(tmp_path, monkeypatch):
    line = '{{"kubernetes":{{"namespace":"kafka","labels":{{"app":"kafka","part":"broker"}}}},"log":"[2024-05-01 12:00:00,{:03}] INFO [Log partition=t-0, dir=/d] Truncating to offset {} (kafka.log.Log)"}}\n'
    for at in range(5):
        (tmp_path / f"{at}.log").write_text(line.format(at, at))
    compared = []
    monkeypatch.setattr(broker_logs, "_shorter_beginning", lambda *places: compared.append(places))

    read = broker_logs.read_log_files([LogPlace(tmp_path, f"{at}.log", 0) for at in range(5)])

    assert all(isinstance(one, broker_logs.LogFile) for one in read)
    assert not compared


def test_of_a_log_in_no_known_layout_no_lines_are_counted(tmp_path, capsys):
    (tmp_path / "server.log").write_text('{"a":' * 20_000 + '"x"' + "}" * 20_000 + "\n")

    _, screen = said(capsys, tmp_path / "server.log", "--format", "json")

    assert "none of its lines is known" in screen
    assert "0 line" not in screen


def test_logs_that_begin_alike_and_part_are_two(tmp_path, capsys):
    (tmp_path / "server.log").write_text(LINES)
    (tmp_path / "server.log.gz").write_bytes(gzip.compress(LINES.replace("17 cats", "18 cats").encode()))

    _, screen = said(capsys, tmp_path / "server.log", tmp_path / "server.log.gz", "--format", "json")

    assert len(json.loads(screen)["files"]) == 2
    assert "all that it holds is in" not in screen


def test_of_more_events_than_are_kept_the_decisive_ones_stay_and_all_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(broker_logs, "EVENTS_KEPT", 20)
    monkeypatch.setattr(scan, "WINDOW_LENGTH", 1 << 10)
    isr = "[2024-05-01 12:00:00,000] INFO [Partition t-{} broker=3] Shrinking ISR from 1,2,3 to 1,3. (kafka.cluster.Partition)\n"
    cut = "[2024-05-01 12:00:01,000] INFO [Log partition=t-{}, dir=/d] Truncating to offset {} (kafka.log.Log)\n"
    text = "".join(isr.format(at) + cut.format(at, at + 1) for at in range(100))
    (tmp_path / "server.log").write_text(text)
    monkeypatch.setattr(broker_logs, "WINDOW_LENGTH", 1 << 10)

    (file,) = broker_logs.read_log_files([LogPlace(tmp_path, "server.log", 0)])

    assert isinstance(file, broker_logs.LogFile)
    assert sum(file.counts.values()) == file.census.events == 200
    assert file.events_dropped + len(file.events) == 200
    assert file.node_id == 3
    kept = [str(event.kind) for event in file.events]
    assert kept.count("truncation") == 30


@pytest.mark.parametrize(
    ("time", "words"),
    [
        ("03/01/2024 10:00:00", "give the day first or the month, and nothing shows which (03/01/2024 10:00:00)"),
        ("10:00:00.123", "name no date (10:00:00.123)"),
        ("", "name no time"),
    ],
)
def test_what_shows_no_time_is_said(time, words, tmp_path, capsys):
    (tmp_path / "server.log").write_text(
        f"{time} INFO [Log partition=t-0, dir=/d] Truncating to offset 7 (kafka.log.Log)\n"
    )

    _, shown = shown_of(capsys, str(tmp_path))

    assert f"CAN'T TELL What {tmp_path}/server.log says: its lines {words}" in shown
