"""A cleaner that stands still and a timestamp of the future: said where they are, and not of logs that a cleaner or a clock only is behind with."""

import json
import os

import pytest

from kforensics import diff, explain, groups, ls, predict, triage, verify
from kforensics.evidence.coordinators.replica_log import list_log
from kforensics.formats.log.batches import build_record_batch, encode_record_batch, with_right_crc
from kforensics.protocol.coordinators import created_policy
from kforensics.reconcile.logs import compacted_keys
from kforensics.units import OFFSETS_TOPIC, SHARE_TOPIC, TRANSACTIONS_TOPIC
from tests.builders.coordinators import batch, commit
from tests.builders.directories import CLUSTER, copied, log_dir
from tests.builders.metadata_logs import metadata_batch, metadata_log, metadata_record

NOW = 1_700_000_000_000
HOUR = 3_600_000
DAY = 24 * HOUR


def written(path, content, at_ms):
    path.write_bytes(content)
    os.utime(path, ns=(at_ms * 1_000_000, at_ms * 1_000_000))


def offsets_log(root, *, closed, cleaner, apart_ms, topic=OFFSETS_TOPIC):
    name = f"{topic}-11"
    place = log_dir(root / "b3", 3, partitions=(name,))
    for at in range(closed + 1):
        content = batch(at, [commit("billing", "orders", 0, at)], time_ms=NOW + at * apart_ms)
        written(place / name / f"{at:020d}.log", content, NOW + at * apart_ms)
    if cleaner is not None:
        (place / "cleaner-offset-checkpoint").write_text(f"0\n1\n{topic} 11 {cleaner}\n")
    return place


def of(result, code):
    return [one for one in result.findings if one.code == code]


@pytest.mark.parametrize("command", [verify, ls, groups])
@pytest.mark.parametrize(
    ("cleaner", "words"), [(1, "the cleaner stands at offset 1"), (None, "no cleaner has been over it")]
)
def test_a_cleaner_that_stands_still_is_named(tmp_path, command, cleaner, words):
    (found,) = of(command(offsets_log(tmp_path, closed=6, cleaner=cleaner, apart_ms=HOUR)), "KF121")
    assert words in found.statement
    assert f"{OFFSETS_TOPIC}-11" in found.statement
    assert found.is_grave


@pytest.mark.parametrize(
    "made",
    [
        {"closed": 6, "cleaner": 6, "apart_ms": HOUR},  # up to the active segment
        {"closed": 6, "cleaner": 4, "apart_ms": HOUR},  # less than half is dirty
        {"closed": 6, "cleaner": 0, "apart_ms": 60_000},  # all of one moment, as after a copy
        {"closed": 2, "cleaner": 0, "apart_ms": HOUR},
    ],
)
def test_a_cleaner_that_is_only_behind_is_none(tmp_path, made):
    assert not of(verify(offsets_log(tmp_path, **made)), "KF121")


@pytest.mark.parametrize("command", [verify, ls, explain])
@pytest.mark.parametrize(
    ("topic", "by_broker", "apart_ms", "is_grave"),
    [
        (OFFSETS_TOPIC, False, HOUR, True),
        (OFFSETS_TOPIC, False, 60_000, None),
        ("state", True, HOUR, True),
        ("state", False, HOUR, False),  # a producer may copy records that are old
        ("state", True, 60_000, None),
    ],
)
def test_a_copy_that_lost_the_times_of_its_files_is_judged_by_those_of_its_batches(
    tmp_path, command, topic, by_broker, apart_ms, is_grave
):
    place = offsets_log(tmp_path, closed=6, cleaner=0, apart_ms=apart_ms, topic=topic)
    for log in place.glob("*/*.log"):
        content = bytearray(log.read_bytes())
        content[22] |= 0x08 * by_broker
        written(log, with_right_crc(bytes(content)), NOW + DAY)
    found = of(result := command(place), "KF121")
    assert [is_grave] * len(found) == [one.is_grave for one in found]
    assert bool(found) is (is_grave is not None)
    assert ("the cleaner stands" in result.answer.headline) is (is_grave is True and command is not ls)
    for one in found:
        assert "the oldest complete since 2023-11-14 23:13:20 UTC" in one.statement
        assert ("times that producers gave" in one.statement) is not is_grave


@pytest.mark.parametrize("topic", [OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_TOPIC])
def test_a_topic_that_brokers_create_without_compaction_waits_for_no_cleaner(tmp_path, topic):
    place = offsets_log(tmp_path, closed=6, cleaner=None, apart_ms=HOUR, topic=topic)
    (place / f"{topic}-11/{0:020d}.log.cleaned").write_bytes(b"")
    is_compacted = created_policy(topic) == "compact"
    assert bool(of(verify(place), "KF121")) is bool(of(ls(place), "KF121")) is is_compacted
    assert bool(of(explain(place), "KF125")) is is_compacted


STARTED = "[{0}] INFO [KafkaRaftServer nodeId=3] Kafka Server started (kafka.server.KafkaRaftServer)\n"
STOPPED = """[2023-11-14 22:20:00,000] WARN [kafka-log-cleaner-thread-0]: Unexpected exception thrown when cleaning log UnifiedLog(dir=/kafka/__consumer_offsets-11, topic=__consumer_offsets, partition=11, highWatermark=9, lastStableOffset=9, logStartOffset=0, logEndOffset=9). Marking its partition (__consumer_offsets-11) as uncleanable (kafka.log.LogCleaner)
java.lang.IllegalArgumentException: requirement failed: 1048576 messages in segment __consumer_offsets-11/00000000000000000000.log but offset map can fit only 393216. You can increase log.cleaner.dedupe.buffer.size or decrease log.cleaner.threads
\tat kafka.log.Cleaner.buildOffsetMap(LogCleaner.scala:1000)
"""
DIED = "[2023-11-14 22:20:00,000] ERROR [kafka-log-cleaner-thread-0]: Error due to (kafka.log.LogCleaner$CleanerThread)\njava.lang.OutOfMemoryError: Java heap space\n"


def logged(root, *lines):
    folder = root / "logs/broker-3"
    folder.mkdir(parents=True)
    (folder / "server.log").write_text("".join(lines))


@pytest.mark.parametrize("command", [verify, groups])
@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (
            (STOPPED,),
            "the broker marked this log as uncleanable: one segment holds more records than its map has room for, which are 393216",
        ),
        ((DIED,), "the broker lost its cleaner thread, which compacts none of its logs any more"),
    ],
)
def test_the_brokers_own_line_says_why(tmp_path, command, lines, words):
    offsets_log(tmp_path, closed=6, cleaner=1, apart_ms=HOUR)
    logged(tmp_path, *lines)
    (found,) = of(command(tmp_path), "KF121")
    assert words in found.meaning
    assert found.confidence == "proven"
    assert "No line and no setting" not in found.meaning


def test_a_real_cleaner_that_met_a_damaged_batch(compaction, tmp_path):
    root = copied(compaction("uncleanable-4.1"), tmp_path / "recording")
    # The recording took seconds: a cleaner is called stuck after an hour.
    for at, path in enumerate(sorted((root / "broker-1/state-0").glob("*.log"))):
        os.utime(path, ns=(NOW * 1_000_000 + at * HOUR * 1_000_000,) * 2)
    (found,) = of(verify(root), "KF121")
    assert found.topic == "state"
    assert "marked this log as uncleanable: CorruptRecordException: Log segment may be corrupt" in found.meaning
    assert "00000000000000000006.log" in found.meaning


def test_a_real_broker_that_was_killed_in_a_cleaning(compaction):
    root = compaction("killed-cleaner-4.1")
    told = json.loads((root / "told.json").read_text())
    assert (told["left"], told["left_after_start"]) == ([f"{0:020d}.log.cleaned"], [])
    assert told["segments_after_start"] == told["segments"]
    words = f"a cleaning was not finished; the next start deletes {0:020d}.log.cleaned"
    explained, verified = explain(root), verify(root)
    for result in (explained, verified):
        (found,) = of(result, "KF125")
        assert found.topic == "state"
        assert words in found.statement
        assert not of(result, "KF121")  # seconds are no standstill
    assert explained.answer.state == "nothing-lost"
    # 100 keys, each written six times, and a tombstone.
    (row,) = verified.to_dict()["compacted"]
    assert (row["topic"], row["records"], row["superseded"], row["superseded_below"]) == ("state", 601, 500, 0)
    assert (row["tombstones"], row["tombstones_due"], row["tombstones_kept"]) == (1, 0, 0)


def test_a_real_producer_that_wrote_twice_and_with_a_gap(compaction):
    root = compaction("uncleanable-4.1")
    told = [one for one in json.loads((root / "told.json").read_text()) if one["topic"] == "orders"]
    assert [(one["error"], one["offset"]) for one in told] == [(0, 0), (0, 0), (0, 5), (45, -1), (0, 10)]
    result = verify(root / "broker-1")
    (missing,), (again,) = of(result, "KF118"), of(result, "KF124")
    assert "sequences 5 and 6 of producer 4711 (epoch 1) are missing between offsets 9 and 10" in missing.statement
    assert (
        "5 records of producer 4711 from offset 0 on are there again from offset 5 on, in its epoch 1"
        in again.statement
    )
    assert not of(result, "KF119")


def test_a_line_from_before_the_last_start_is_no_cause(tmp_path):
    offsets_log(tmp_path, closed=6, cleaner=1, apart_ms=HOUR)
    logged(tmp_path, STOPPED, STARTED.format("2023-11-14 22:30:00,000"))
    (found,) = of(verify(tmp_path), "KF121")
    assert "uncleanable:" not in found.meaning
    assert "No line and no setting among the inputs says why." in found.meaning


CLEANER = "[{0}] INFO Starting the log cleaner (kafka.log.LogCleaner)\n"


@pytest.mark.parametrize(("stopped", "is_mended"), [(DIED, True), (STOPPED, False)])
def test_new_threads_of_a_running_broker_leave_out_only_what_was_marked(tmp_path, stopped, is_mended):
    offsets_log(tmp_path, closed=6, cleaner=1, apart_ms=HOUR)
    logged(tmp_path, STARTED.format("2023-11-14 22:10:00,000"), stopped, CLEANER.format("2023-11-14 22:30:00,000"))
    (found,) = of(verify(tmp_path), "KF121")
    assert ("No line and no setting among the inputs says why." in found.meaning) is is_mended
    assert (found.confidence == "proven") is not is_mended


@pytest.mark.parametrize("stopped", [DIED, STOPPED])
def test_a_cleaner_that_stops_before_the_broker_says_that_it_has_started_has_stopped(tmp_path, stopped):
    offsets_log(tmp_path, closed=6, cleaner=1, apart_ms=HOUR)
    begun = CLEANER.format("2023-11-14 22:19:59,900")
    logged(tmp_path, begun, stopped, STARTED.format("2023-11-14 22:20:01,000"))
    (found,) = of(verify(tmp_path), "KF121")
    assert found.confidence == "proven"
    assert "At 2023-11-14 22:20:00 UTC the broker" in found.meaning
    with (tmp_path / "logs/broker-3/server.log").open("a") as file:
        file.write(CLEANER.format("2023-11-14 23:00:00,000") + STARTED.format("2023-11-14 23:00:01,000"))
    (found,) = of(verify(tmp_path), "KF121")
    assert "No line and no setting among the inputs says why." in found.meaning


def test_explain_tells_when_compaction_stopped(tmp_path):
    offsets_log(tmp_path, closed=6, cleaner=1, apart_ms=HOUR)
    logged(tmp_path, STOPPED)
    (event,) = [one for one in explain(tmp_path).to_dict()["timeline"] if one["event"] == "cleaner-stopped"]
    assert event["topic"] == OFFSETS_TOPIC


def test_a_segment_that_a_broker_deletes_meanwhile_leaves_the_cleaner_named(tmp_path, monkeypatch):
    place = offsets_log(tmp_path, closed=6, cleaner=1, apart_ms=HOUR)

    def with_a_deleted_one(*arguments):
        log = list_log(*arguments)
        log.segments.append((99, f"{OFFSETS_TOPIC}-11/{99:020d}.log"))
        return log

    monkeypatch.setattr(compacted_keys, "list_log", with_a_deleted_one)
    (found,) = of(verify(place), "KF121")

    assert "the cleaner stands at offset 1" in found.statement
    assert "superseded" not in found.meaning


def beside(place, *, written_ms, cleaner):
    """Write another log of seven segments into the same directory."""
    other = place / f"{OFFSETS_TOPIC}-12"
    other.mkdir()
    for at in range(7):
        content = batch(at, [commit("billing", "orders", 0, at)], time_ms=NOW)
        written(other / f"{at:020d}.log", content, written_ms + at * HOUR)
    (place / "cleaner-offset-checkpoint").write_text(f"0\n2\n{OFFSETS_TOPIC} 11 1\n{OFFSETS_TOPIC} 12 {cleaner}\n")


def test_a_cleaner_that_goes_on_with_other_logs_has_left_this_one_out(tmp_path):
    place = offsets_log(tmp_path, closed=6, cleaner=1, apart_ms=HOUR)
    beside(place, written_ms=NOW, cleaner=6)
    (found,) = of(verify(place), "KF121")
    assert (
        f"has been over {OFFSETS_TOPIC}-12 up to its active segment, records written after that too: it ran, and has left this log out"
        in found.meaning
    )
    assert "Of 7 records with a key 6 are superseded" in found.meaning


def test_logs_that_wait_for_no_known_reason_or_on_other_brokers_wait_too(tmp_path):
    place = offsets_log(tmp_path, closed=6, cleaner=1, apart_ms=HOUR)
    other = copied(place, tmp_path / "b4") / "meta.properties"
    other.write_text(other.read_text().replace("=3", "=4"))
    headline = groups(tmp_path).answer.headline
    assert "1 more log waits for a cleaner, too." in headline
    assert "same reason" not in headline


def test_a_log_that_was_compacted_before_does_not_show_that_the_cleaner_runs(tmp_path):
    place = offsets_log(tmp_path, closed=6, cleaner=1, apart_ms=HOUR)
    beside(place, written_ms=NOW - DAY, cleaner=6)
    (found,) = of(verify(place), "KF121")
    assert "left this log out" not in found.meaning
    assert "No line and no setting among the inputs says why." in found.meaning


def test_a_cleaner_that_comes_to_no_log_may_be_dead(tmp_path):
    place = offsets_log(tmp_path, closed=6, cleaner=1, apart_ms=HOUR)
    beside(place, written_ms=NOW, cleaner=1)
    for found in of(verify(place), "KF121"):
        assert (
            "1 more compacted log of the same log directory waits for it, and none was compacted since" in found.meaning
        )
        assert found.confidence == "likely"


@pytest.mark.parametrize(("command", "closed"), [(verify, 6), (groups, 6), (triage, 3)])
def test_what_a_stopped_cleaner_has_left_is_named_at_once(tmp_path, command, closed):
    place = offsets_log(tmp_path, closed=closed, cleaner=1, apart_ms=60_000)
    assert not of(command(place), "KF121")
    logged(tmp_path, DIED)
    (found,) = of(command(tmp_path), "KF121")
    assert f"{closed - 1} closed segments above it" in found.statement  # the cleaner has been over the first


def test_one_dead_thread_of_two_leaves_the_other(tmp_path):
    offsets_log(tmp_path, closed=6, cleaner=1, apart_ms=60_000)
    logged(tmp_path, DIED)
    (tmp_path / "logs/broker-3/server.properties").write_text("node.id=3\nlog.cleaner.threads=2\n")
    wrapped = json.dumps({"log": DIED.partition("\n")[0] + "\n", "stream": "stdout", "time": "2023-11-14T22:20:00.5Z"})
    (tmp_path / "logs/broker-3/console.log").write_text(wrapped + "\n")  # the same line again
    assert not of(groups(tmp_path), "KF121")
    logged_again = (tmp_path / "logs/broker-3/server.log").open("a")
    with logged_again as file:
        file.write(DIED.replace("thread-0", "thread-1"))
    (found,) = of(groups(tmp_path), "KF121")
    assert "the broker lost the last of its 2 cleaner threads, and compacts none of its logs any more" in found.meaning


@pytest.mark.parametrize("threads", ["9" * 5_000, "0", "many"])
def test_a_number_of_threads_that_is_none_of_kafkas_is_taken_for_one(tmp_path, threads):
    offsets_log(tmp_path, closed=6, cleaner=1, apart_ms=HOUR)
    logged(tmp_path, DIED)
    (tmp_path / "logs/broker-3/server.properties").write_text(f"node.id=3\nlog.cleaner.threads={threads}\n")
    (found,) = of(groups(tmp_path), "KF121")
    assert "the broker lost its cleaner thread" in found.meaning


def test_a_real_cleaner_whose_thread_died(compaction):
    root = compaction("dead-cleaner-4.1")
    told = json.loads((root / "told.json").read_text())
    assert [one["checkpoint"] for one in told[-2:]] == [["state 0 6", "other 0 10"]] * 2
    verified, first = verify(root), triage(root)
    found = {one.topic: one for one in of(verified, "KF121")}
    assert {topic: one.statement.split("; ")[0].split(": ")[1] for topic, one in found.items()} == {
        "state": "the cleaner stands at offset 6",
        "other": "the cleaner stands at offset 10",
    }
    for one in found.values():
        assert (
            "the broker lost its cleaner thread, which compacts none of its logs any more: OutOfMemoryError"
            in one.meaning
        )
        assert one.confidence == "proven"
        assert "uncleanable:" not in one.meaning
    assert "the broker lost its cleaner thread" in first.answer.headline
    assert "1 more log of this broker waits for the same reason." in first.answer.headline
    assert not of(verify(root / "broker-1"), "KF121")  # without the line seconds are no standstill


@pytest.mark.parametrize("command", [explain, diff, predict])
def test_no_command_is_calm_where_a_cleaner_died(compaction, command):
    root = compaction("dead-cleaner-4.1")
    result = command(root, topics="other")
    assert "other-0 on broker 1: the cleaner stands at offset 10" in result.answer.headline
    assert "the broker lost its cleaner thread, which compacts none of its logs any more" in result.answer.headline
    assert result.exit_code == 1
    assert len(of(result, "KF121")) == 1
    damaged = command(root, topics="state")
    assert "state-0 on broker 1: the cleaner stands" in damaged.answer.headline or damaged.exit_code == 1
    assert not of(command(root / "broker-1", topics="other"), "KF121")  # without the line seconds are no standstill


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("log.cleaner.enable=false", "log.cleaner.enable is false in the broker's server.properties"),
        ("log.cleaner.min.compaction.lag.ms=864000000", "min.compaction.lag.ms of the topic is 864,000,000"),
        ("log.cleaner.min.cleanable.ratio=0.95", "min.cleanable.dirty.ratio of the topic is 0.95"),
        # Neither keeps a cleaner from what has waited for longer.
        ("log.cleaner.min.compaction.lag.ms=3600000", "No line and no setting among the inputs says why"),
        (
            "log.cleaner.min.cleanable.ratio=0.95\nlog.cleaner.max.compaction.lag.ms=3600000",
            "No line and no setting among the inputs says why",
        ),
    ],
)
def test_a_setting_says_why(tmp_path, line, words):
    place = offsets_log(tmp_path, closed=6, cleaner=1, apart_ms=HOUR)
    settings = tmp_path / "server.properties"
    settings.write_text(f"node.id=3\nlog.dirs=/kafka\n{line}\n")
    (found,) = of(verify(place, settings), "KF121")
    assert words in found.meaning


@pytest.mark.parametrize("command", [verify, explain, diff, triage])
@pytest.mark.parametrize(("policy", "is_said"), [("compact", True), ("compact,delete", True), ("delete", False)])
@pytest.mark.some(4)
def test_a_log_that_no_checkpoint_names_is_compacted_by_the_metadata_log(tmp_path, policy, is_said, command):
    place = log_dir(tmp_path / "b3", 3, partitions=("orders-0",))
    for at in range(7):
        content = encode_record_batch(build_record_batch(at, [(NOW, b"k", b"v")]))
        written(place / f"orders-0/{at:020d}.log", content, NOW + at * HOUR)
    (place / "cleaner-offset-checkpoint").write_text("0\n0\n")
    assert not of(command(place), "KF121")
    fields = {"resource_type": 2, "resource_name": "orders", "name": "cleanup.policy", "value": policy}
    metadata_log(place, metadata_batch(0, [metadata_record("ConfigRecord", fields)]))
    found = of(command(place), "KF121")
    assert bool(found) is is_said
    assert all("no cleaner has been over it by its checkpoint" in one.statement for one in found)


def test_a_topic_that_is_not_compacted_waits_for_no_cleaner(tmp_path):
    place = log_dir(tmp_path / "b3", 3, partitions=("orders-0",))
    for at in range(7):
        content = encode_record_batch(build_record_batch(at, [(NOW, b"k", b"v")]))
        written(place / f"orders-0/{at:020d}.log", content, NOW + at * HOUR)
    (place / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 1\n")
    assert of(verify(place), "KF121")
    settings = tmp_path / "server.properties"
    settings.write_text("node.id=3\nlog.dirs=/kafka\nlog.cleanup.policy=delete\n")
    # The topic may have a policy of its own, and a cleaner was at work on it.
    assert of(verify(place, settings), "KF121")
    fields = {"resource_type": 2, "resource_name": "orders", "name": "cleanup.policy", "value": "delete"}
    metadata_log(place, metadata_batch(0, [metadata_record("ConfigRecord", fields)]))
    assert not of(verify(place, settings), "KF121")


@pytest.mark.parametrize("command", [verify, groups, triage])
def test_a_brokers_default_is_no_policy_of_the_topic_of_offsets(tmp_path, command):
    offsets_log(tmp_path, closed=6, cleaner=1, apart_ms=HOUR)
    (tmp_path / "b3/server.properties").write_text("node.id=3\nlog.dirs=/kafka\nlog.cleanup.policy=delete\n")
    assert of(command(tmp_path / "b3", tmp_path / "b3/server.properties"), "KF121")


def events_log(root, *segments):
    """Segments of (base offset, stamps, when the file was written)."""
    place = log_dir(root / "b1", partitions=("events-2",))
    for base, stamps, at_ms in segments:
        content = encode_record_batch(build_record_batch(base, [(stamp, b"k", b"v") for stamp in stamps]))
        written(place / f"events-2/{base:020d}.log", content, at_ms)
    return place


def test_a_timestamp_of_the_future_is_a_note_with_its_offset(tmp_path):
    place = events_log(
        tmp_path,
        (0, [NOW, NOW + 400 * DAY, NOW + 1], NOW + 5),
        (3, [NOW + DAY], NOW + DAY),
    )
    (found,) = of(verify(place), "KF120")
    assert (
        "the record at offset 1 in segment 00000000000000000000.log is stamped 2024-12-18 22:13:20 UTC"
        in found.statement
    )
    assert not found.is_grave


def test_a_segment_of_which_every_timestamp_is_of_the_future_is_named(tmp_path):
    place = events_log(tmp_path, (0, [NOW + 400 * DAY, NOW + 400 * DAY], NOW + 5), (2, [NOW + DAY], NOW + DAY))
    (found,) = of(verify(place), "KF120")
    said = "offset 0 in segment 00000000000000000000.log is stamped 2024-12-18 22:13:20 UTC, ahead of the time at which the segment was written last"
    assert said in found.statement


def test_the_producer_of_a_timestamp_of_the_future_is_named(tmp_path):
    place = log_dir(tmp_path / "b1", partitions=("events-2",))
    stamps = [NOW, NOW + 400 * DAY]
    made = build_record_batch(
        0, [(one, b"k", b"v") for one in stamps], producer_id=4711, producer_epoch=0, base_sequence=0
    )
    written(place / f"events-2/{0:020d}.log", encode_record_batch(made), NOW + 5)
    (found,) = of(verify(place), "KF120")
    assert (
        "the record at offset 1 in segment 00000000000000000000.log is stamped by producer 4711 2024-12-18"
        in found.statement
    )


def test_timestamps_in_seconds_are_a_note_where_they_are_the_latest_of_a_segment(tmp_path):
    place = events_log(tmp_path, (0, [NOW // 1000, NOW // 1000 + 1], NOW), (2, [NOW // 1000, NOW], NOW + 5))
    (found,) = of(verify(place), "KF129")
    assert (
        "the record at offset 1 in segment 00000000000000000000.log is stamped 1970-01-20 16:13:20 UTC"
        in found.statement
    )
    assert "taken for seconds it is 2023-11-14 22:13:21 UTC" in found.statement
    assert not found.is_grave
    assert not of(verify(place), "KF120")


@pytest.mark.parametrize(("settings", "is_said"), [({"log.retention.ms": "86400000"}, True), ({}, False)])
def test_predict_says_until_when_retention_waits(tmp_path, settings, is_said):
    place = events_log(
        tmp_path,
        (0, [NOW], NOW),
        (1, [NOW + 400 * DAY, NOW + DAY], NOW + DAY),
        (3, [NOW + 2 * DAY], NOW + 2 * DAY),
    )
    # With ZooKeeper: which directories are strays is then no question.
    (place / "meta.properties").write_text(f"version=0\nbroker.id=1\ncluster.id={CLUSTER}\n")
    result = predict(place, kafka="2.8.1", now="2024-01-20T00:00:00Z", set=settings)
    said = "deletes nothing more of events-2 before 2024-12-19 22:13:20 UTC" in " ".join(map(str, result.answer.later))
    assert said is is_said


def test_of_a_copy_without_times_only_what_is_ahead_of_now_is_said(tmp_path):
    epoch = 315_532_800_000
    place = events_log(tmp_path, (0, [NOW], epoch), (1, [NOW + DAY], epoch), (2, [NOW, 4_000_000_000_000], epoch))
    (found,) = of(verify(place), "KF120")
    assert "offset 3" in found.statement
    assert "ahead of the time now" in found.statement


def test_a_clock_a_few_hours_ahead_is_no_timestamp_of_the_future(tmp_path):
    assert not of(verify(events_log(tmp_path, (0, [NOW, NOW + 20 * HOUR], NOW + 5))), "KF120")


@pytest.mark.parametrize("command", [verify, explain])
def test_what_a_start_makes_of_a_cleaning_that_was_not_finished(tmp_path, command):
    place = log_dir(tmp_path / "b1", partitions=("state-2",))
    (place / "cleaner-offset-checkpoint").write_text("0\n1\nstate 2 10\n")
    for base, suffix in ((0, ".swap"), (0, ".deleted"), (10, ""), (10, ".cleaned")):
        content = encode_record_batch(build_record_batch(base, [(NOW, b"k", b"v")]))
        (place / f"state-2/{base:020d}.log{suffix}").write_bytes(content)
    (found,) = of(command(place), "KF125")
    assert "takes 00000000000000000000.log.swap for its segment" in found.statement
    assert "deletes 00000000000000000010.log.cleaned" in found.statement
    assert not found.is_grave
    (place / "state-2/00000000000000000010.log.cleaned").rename(place / "state-2/00000000000000000000.log.cleaned")
    (found,) = of(command(place), "KF125")
    assert "takes" not in found.statement  # a swap at or above a .cleaned is of a split that was not finished


def test_a_coordinators_partition_of_empty_segments_is_a_known_bug_of_loading(tmp_path):
    place = log_dir(tmp_path / "b1", partitions=(f"{OFFSETS_TOPIC}-3", f"{OFFSETS_TOPIC}-4", "orders-0"))
    for name in (f"{OFFSETS_TOPIC}-3", "orders-0"):
        for base in (0, 50):
            (place / f"{name}/{base:020d}.log").touch()
    (place / f"{OFFSETS_TOPIC}-4/{0:020d}.log").touch()
    (found,) = of(verify(place), "KF126")
    assert f"{OFFSETS_TOPIC}-3 has 2 segments without a record, from offset 0 to 50" in found.statement
    assert "KAFKA-9065" in found.references


@pytest.mark.parametrize(
    ("kafka", "is_endless"),
    [("2.2.2", True), ("2.2.3", False), ("2.3.0", True), ("2.3.1", True), ("2.4.0", False), ("3.9.1", False)],
)
def test_predict_names_what_the_coordinator_of_a_version_never_loads(tmp_path, kafka, is_endless):
    place = log_dir(tmp_path / "b1", partitions=(f"{OFFSETS_TOPIC}-3", f"{OFFSETS_TOPIC}-4", "orders-0"))
    # With ZooKeeper: which directories are strays is then no question.
    (place / "meta.properties").write_text(f"version=0\nbroker.id=1\ncluster.id={CLUSTER}\n")
    for name in (f"{OFFSETS_TOPIC}-3", "orders-0"):
        for base in (0, 50):
            (place / f"{name}/{base:020d}.log").touch()
    (place / f"{OFFSETS_TOPIC}-4/{0:020d}.log").touch()
    result = predict(place, kafka=kafka)
    assert [one.partition for one in of(result, "KF126")] == [3] * is_endless
    assert (f"the coordinator of Kafka {kafka} loads it without an end" in result.answer.headline) is is_endless
    assert (result.exit_code == 1) is is_endless


MISMATCH = "[2023-11-14 22:20:00,000] ERROR [Broker id=1] Topic Id in memory: {} does not match the topic Id for partition events-2 received: {}. (state.change.logger)\n"
IDS = "qN3rTRKuTFyRA5_Z4gzK_g", "EcyzJ0lTQ0WaUJHfKhR5lg"


@pytest.mark.parametrize("command", [explain, diff, triage])
@pytest.mark.parametrize(
    ("on_disk", "where", "to_do"),
    [
        (None, "in memory, and is told", "Ask the cluster which topic id is current"),
        (IDS[0], "in memory and on disk, and is told", "move it out with the broker stopped"),
        (IDS[1], f"in memory, though its directory has {IDS[1]}, and is told", "Restart the broker"),
    ],
)
def test_a_topic_id_in_memory_that_is_not_the_one_a_broker_is_told(tmp_path, command, on_disk, where, to_do):
    place = events_log(tmp_path, (0, [NOW], NOW))
    if on_disk:
        (place / "events-2/partition.metadata").write_text(f"version: 0\ntopic_id: {on_disk}\n")
    folder = tmp_path / "logs/broker-1"
    folder.mkdir(parents=True)
    (folder / "server.log").write_text(MISMATCH.format(*IDS))
    result = command(tmp_path)
    (found,) = of(result, "KF518")
    assert f"broker 1 knows events-2 by the topic id {IDS[0]} {where} {IDS[1]}" in found.statement
    assert found.statement[1:] in result.answer.headline
    assert to_do in " ".join(map(str, result.answer.now))
    assert result.exit_code != 0
    if command is explain:
        (event,) = [one for one in result.to_dict()["timeline"] if one["event"] == "topic-id-mismatch"]
        assert event["detail"]["other_topic_id"] == IDS[1]


def test_a_topic_id_from_before_the_last_start_is_none_in_memory(tmp_path):
    events_log(tmp_path, (0, [NOW], NOW))
    folder = tmp_path / "logs/broker-1"
    folder.mkdir(parents=True)
    started = "[2023-11-14 22:21:00,000] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n"
    (folder / "server.log").write_text(MISMATCH.format(*IDS) + started)
    assert not of(explain(tmp_path), "KF518")


def test_the_first_line_of_groups_and_of_triage_names_a_cleaner_that_stands_still_and_why(tmp_path):
    offsets_log(tmp_path, closed=6, cleaner=1, apart_ms=HOUR)
    logged(tmp_path, STOPPED)
    for command in (groups, triage):
        result = command(tmp_path)
        assert f"{OFFSETS_TOPIC}-11 on broker 3: the cleaner stands at offset 1" in result.answer.headline
        assert "marked this log as uncleanable" in result.answer.headline
        assert any("Raise log.cleaner.dedupe.buffer.size" in one for one in result.answer.now)
        assert result.exit_code != 0
        assert len(of(result, "KF121")) == 1


def test_triage_asks_for_the_cleaner_of_every_topic_that_is_compacted(tmp_path):
    place = offsets_log(tmp_path, closed=6, cleaner=6, apart_ms=HOUR)
    (place / f"{OFFSETS_TOPIC}-11").rename(place / "prices-0")
    (place / "cleaner-offset-checkpoint").write_text("0\n1\nprices 0 1\n")
    headline = triage(tmp_path).answer.headline

    assert "prices-0 on broker 3: the cleaner stands at offset 1" in headline
    (place / "cleaner-offset-checkpoint").write_text("0\n1\nprices 0 6\n")
    assert "cleaner" not in triage(tmp_path).answer.headline


@pytest.mark.parametrize(
    ("topic", "checkpoint", "first", "is_told"),
    [
        ("orders", None, (0, 1), True),
        ("orders", "0\n0\n", (0, 1), False),  # no cleaner has been there: it is damage
        (OFFSETS_TOPIC, None, (0, 1), False),
        ("orders", None, (0, 2), False),  # a cleaner leaves gaps elsewhere, too
    ],
)
def test_a_hole_of_which_no_checkpoint_shows_whether_a_cleaner_made_it_is_told(
    tmp_path, topic, checkpoint, first, is_told
):
    place = log_dir(tmp_path / "b3", 3, partitions=(f"{topic}-4",))
    written(place / f"{topic}-4/{0:020d}.log", b"".join(batch(at, [commit("g", "t", 0, 1)]) for at in first), NOW)
    written(place / f"{topic}-4/{9:020d}.log", batch(9, [commit("g", "t", 0, 1)]), NOW)
    if checkpoint is not None:
        (place / "cleaner-offset-checkpoint").write_text(checkpoint)
    result = verify(place)

    assert bool(of(result, "KF117")) is is_told
    assert (
        f"offsets {first[-1] + 1} to 8 of {topic}-4 may be missing: no segment holds them" in result.answer.headline
    ) is is_told
    assert (result.answer.state == "damaged") is (checkpoint is not None)
