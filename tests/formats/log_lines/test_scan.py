"""Broker log lines against recordings of 0.10 to 4.3, the texts of other versions, and hostile input."""

import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.damage import Absent
from kforensics.formats.log_lines import scan as scanner
from kforensics.formats.log_lines.event import LineCensus, LogEvent, LogEventKind
from kforensics.formats.log_lines.partition_change import parse_partition_change
from kforensics.formats.log_lines.scan import scan_log
from kforensics.formats.log_lines.unwrap import find_message, layout_of, line_moment, looks_like_broker_log
from kforensics.units import TopicPartition
from tests.hang import no_hang
from tests.steps import steps

KIND = LogEventKind
NOON_MS = 1_714_564_800_123
RECORDINGS = (
    "consumer-ahead-4.x",
    "epoch-truncate-2.8",
    "epoch-truncate-3.9",
    "fast-failover-1.1",
    "hw-loss-0.10",
    "kraft-quorum-3x",
    "power-loss-4.x",
    "unclean-election-2.8",
    "unclean-election-4.x",
)


def scan(*chunks: bytes) -> tuple[list[LogEvent], LineCensus]:
    events: list[LogEvent] = []
    census = LineCensus()
    for window in scan_log(chunks):
        events.extend(window.events)
        census = census.plus(window.census)
    return events, census


def one(message: str) -> LogEvent:
    events, _ = scan(f"[2024-05-01 12:00:00,123] INFO {message} (kafka.log.Log)\n".encode())

    assert len(events) == 1, message
    return events[0]


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_truncation_and_election_of_a_recording_has_its_line(name, incident):
    root: Path = incident(name)
    checks = json.loads((root / "checks.json").read_text())["explain"]
    truncated, elected = set(), set()
    for path in sorted(root.glob("logs/*/*.log")):
        events, _ = scan(path.read_bytes())
        for event in events:
            if event.kind in {KIND.TRUNCATION, KIND.RECOVERY_TRUNCATION}:
                truncated.add((int(path.parent.name.rpartition("-")[2]), event.topic_partition, event.number("offset")))
            if event.kind is KIND.UNCLEAN_ELECTION:
                elected.add(event.topic_partition)

    wanted = {(t["broker_id"], (t["topic"], t["partition"]), t["to_offset"]) for t in checks["truncations"]}
    assert wanted <= truncated
    assert {(e["topic"], e["partition"]) for e in checks["unclean_elections"]} <= elected


@pytest.mark.parametrize(
    ("message", "kind", "partition", "fields"),
    [
        ("Truncating log orders-0 to offset 45.", KIND.TRUNCATION, ("orders", 0), {"offset": 45}),
        ("Truncating log [or-d.ers,12] to offset 45.", KIND.TRUNCATION, ("or-d.ers", 12), {"offset": 45}),
        (
            "[UnifiedLog partition=my.topic-1-7, dir=/data] Truncating to offset 60",
            KIND.TRUNCATION,
            ("my.topic-1", 7),
            {"offset": 60, "directory": "/data"},
        ),
        (
            "Truncating orders-0 to 5 has no effect as the largest offset in the log is 4.",
            KIND.TRUNCATION_WITHOUT_EFFECT,
            ("orders", 0),
            {"offset": 5, "last_offset": 4},
        ),
        (
            "[Log partition=orders-0, dir=/d] Truncating to 0 has no effect as the largest offset in the log is -1",
            KIND.TRUNCATION_WITHOUT_EFFECT,
            ("orders", 0),
            {"offset": 0, "last_offset": -1},
        ),
        (
            "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Truncating orders-0 to offset 3 below high watermark 9",
            KIND.TRUNCATION_BELOW_HIGH_WATERMARK,
            ("orders", 0),
            {"offset": 3, "high_watermark": 9, "leader": 2},
        ),
        (
            (
                "[ReplicaFetcherThread-0-2]: Based on follower's leader epoch, leader replied with an offset 60 >= the"
                " follower's log end offset 60 in orders-0. No truncation needed."
            ),
            KIND.TRUNCATION_DECISION,
            ("orders", 0),
            {"offset": 60, "log_end_offset": 60, "rule": "epoch", "needed": False},
        ),
        (
            (
                "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Based on replica's leader epoch, leader replied with"
                " an unknown offset in a.b-0. The initial fetch offset 7 will be used for truncation."
            ),
            KIND.TRUNCATION_DECISION,
            ("a.b", 0),
            {"offset": 7, "rule": "high-watermark"},
        ),
        (
            (
                "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Based on replica's leader epoch, leader replied with"
                " epoch 4 below any replica's tracked epochs for t-0. The leader's offset only 3 will be used for truncation."
            ),
            KIND.TRUNCATION_DECISION,
            ("t", 0),
            {"offset": 3, "leader_epoch": 4, "rule": "leader-offset"},
        ),
        (
            (
                "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Truncating partition t-3 with TruncationState(offset=68,"
                " completed=true) due to leader epoch and offset EpochEndOffset(errorCode=0, partition=3, leaderEpoch=0,"
                " endOffset=74)"
            ),
            KIND.TRUNCATION_DECISION,
            ("t", 3),
            {"offset": 68, "end_offset": 74, "leader_epoch": 0, "rule": "epoch", "leader": 2},
        ),
        (
            (
                "[ReplicaFetcherThread-0-2], Replica 1 for partition [t,0] reset its fetch offset from 9 to current leader 2's"
                " latest offset 5"
            ),
            KIND.FETCH_OFFSET_RESET,
            ("t", 0),
            {"log_end_offset": 9, "offset": 5, "leader": 2, "rule": "leader-end"},
        ),
        (
            (
                "Truncate fully and reset fetch offset for partition t-0 from 3 to the current leader's start offset 90 because"
                " the local replica's end offset is smaller than the current leader's start offsets."
            ),
            KIND.FULL_TRUNCATION,
            ("t", 0),
            {"log_end_offset": 3, "offset": 90},
        ),
        (
            (
                "[ReplicaFetcherThread-0-2], Exiting because log truncation is not allowed for partition test-0, current leader"
                " 2's latest offset 2051 is less than replica 1's latest offset 2391"
            ),
            KIND.TRUNCATION_REFUSED,
            ("test", 0),
            {"offset": 2051, "log_end_offset": 2391, "leader": 2},
        ),
        (
            "[RaftManager id=1] Truncated to offset 88 from Fetch response from leader 102",
            KIND.METADATA_TRUNCATION,
            None,
            {"offset": 88, "leader": 102},
        ),
        (
            (
                "[Broker id=1] Follower t-0 starts at leader epoch 5 from offset 85 with partition epoch 3 and high watermark"
                " 85. Current leader is 2. Previous leader Some(1) and previous leader epoch was 4."
            ),
            KIND.FOLLOWER_START,
            ("t", 0),
            {"offset": 85, "leader_epoch": 5, "leader": 2, "previous_leader_epoch": 4},
        ),
        (
            "Partition [t,0] on broker 1: t-0 starts at Leader Epoch 1 from offset 60. Previous Leader Epoch was: 0",
            KIND.LEADER_START,
            ("t", 0),
            {"offset": 60, "leader_epoch": 1},
        ),
        (
            "[Partition t-0 broker=1] t-0 starts at leader epoch 2 from offset 25 with high watermark 24. Previous leader epoch was 1.",
            KIND.LEADER_START,
            ("t", 0),
            {"offset": 25, "leader_epoch": 2, "high_watermark": 24, "previous_leader_epoch": 1},
        ),
        (
            (
                "[OfflinePartitionLeaderSelector]: No broker in ISR is alive for [t,0]. Elect leader 2 from live brokers 2,3."
                " There's potential data loss."
            ),
            KIND.UNCLEAN_ELECTION,
            ("t", 0),
            {"leader": 2, "replicas": (2, 3)},
        ),
        (
            (
                "[Partition t-0 broker=1] Shrinking ISR from 1,2,3 to 1,2. Leader: (highWatermark: 63, endOffset: 67). Out of"
                " sync replicas: (brokerId: 3, endOffset: 63)."
            ),
            KIND.ISR_SHRINK,
            ("t", 0),
            {"from_isr": (1, 2, 3), "to_isr": (1, 2), "high_watermark": 63, "log_end_offset": 67},
        ),
        (
            "Corruption found in segment 659, truncating to offset 931",
            KIND.RECOVERY_TRUNCATION,
            None,
            {"base_offset": 659, "offset": 931},
        ),
        (
            (
                "Updated PartitionLeaderEpoch. New: {epoch:2, offset:9}, Current: {epoch:-1, offset-1} for Partition: t-0. Cache"
                " now contains 0 entries."
            ),
            KIND.EPOCH_ASSIGNED,
            ("t", 0),
            {"leader_epoch": 2, "offset": 9},
        ),
        (
            "Error while appending records to t-0 in dir /data/1",
            KIND.LOG_DIR_ERROR,
            None,
            {"directory": "/data/1", "reason": "appending records to t-0"},
        ),
        (
            "[Controller id=2] Newly added brokers: , deleted brokers: 1,3, bounced brokers: , all live brokers: 2,4",
            KIND.LIVE_BROKERS,
            None,
            {"all": (2, 4)},
        ),
        (
            "[BrokerChangeListener on Controller 1]: Newly added brokers: 2, deleted brokers: , all live brokers: 1,2",
            KIND.LIVE_BROKERS,
            None,
            {"all": (1, 2)},
        ),
        (
            "[Controller id=3] Currently active brokers in the cluster: Set(3, 4) (kafka.controller.KafkaController)",
            KIND.LIVE_BROKERS,
            None,
            {"all": (3, 4)},
        ),
        (
            "[QuorumController id=1] Fencing broker 3 at epoch 14 because its session has timed out.",
            KIND.BROKER_FENCED,
            None,
            {"broker": 3, "broker_epoch": 14, "reason": "its session has timed out"},
        ),
    ],
)
def test_texts_of_all_versions(message, kind, partition, fields):
    event = one(message)

    assert kind is event.kind
    assert event.time_ms == NOON_MS
    assert (TopicPartition(*partition) if partition else Absent.NOT_WRITTEN) == event.topic_partition
    assert fields.items() <= dict(event.fields).items()


def test_an_unclean_partition_change_is_an_election_only_with_a_new_leader():
    topic = "t-0 with topic ID utqilf0YTC25ZZCcD1bqxw: "
    won = one(f"UNCLEAN partition change for {topic}leader: 1 -> 2, leaderRecoveryState: RECOVERED -> RECOVERING, x")
    lost = one(f"UNCLEAN partition change for {topic}isr: [1] -> [], leader: 1 -> -1, leaderEpoch: 2 -> 3")

    assert KIND.UNCLEAN_ELECTION is won.kind
    assert KIND.PARTITION_CHANGE is lost.kind


def test_json_layouts_and_named_zones():
    message = "[UnifiedLog partition=t-0, dir=/d] Truncating to offset 6"
    lines = [
        json.dumps(
            {
                "instant": {"epochSecond": NOON_MS // 1000, "nanoOfSecond": 123_000_000},
                "level": "INFO",
                "message": message,
            }
        ),
        json.dumps({"@timestamp": "2024-05-01T12:00:00.123Z", "log.level": "INFO", "message": message}),
        json.dumps({"timeMillis": NOON_MS, "level": "INFO", "message": message}),
        f"2024-05-01T14:00:00,123+02:00 INFO {message} (kafka.log.UnifiedLog) [ReplicaFetcherThread-0-1]",
    ]
    events, _ = scan("\n".join([*lines, '{"message": "[Log partition=t-0] Truncating to offset', ""]).encode())

    assert [(e.time_ms, e.zone_named, e.number("offset")) for e in events] == [(NOON_MS, True, 6)] * 4
    assert [event.line for event in events] == [1, 2, 3, 4]


def test_damaged_lines_are_counted_and_the_rest_is_read():
    good = b"[2024-05-01 12:00:00,123] INFO [Log partition=t-0, dir=/d] Truncating to offset 6 (kafka.log.Log)"
    text = b"\n".join(
        [
            b"rncating to offset 5 (kafka.log.Log)",
            b"[2024-05-01 12:00:00,123] INFO [Log partition=t-0, dir=/d] Trunc" + good,
            b"java.io.IOException: No space left on device",
            b"\tat java.base/java.io.FileOutputStream.write(Native Method)",
            b"[2024-13-01 12:00:00,123] INFO [Log partition=t-0, dir=/d] Truncating to offset 7 (kafka.log.Log)",
            b"[2024-05-01 12:00:00,123] INFO Truncating log t-0 to offset ninety.",
            b"\x00" * 40,
            b"caf\xe9 [nginx] GET / 200",
            good[:70],
        ]
    )
    events, census = scan(text)

    assert [event.number("offset") for event in events] == [6, Absent.NOT_WRITTEN, 7]
    assert [KIND.TRUNCATION, KIND.DISK_CAUSE, KIND.TRUNCATION] == [event.kind for event in events]
    assert Absent.UNREADABLE is events[2].time_ms
    assert (census.lines, census.events) == (9, 3)
    assert good in text[events[0].span.position : events[0].span.end]


def test_the_configuration_is_read_without_its_secrets():
    text = (
        b"[2024-05-01 12:00:00,123] INFO KafkaConfig values: \n\tnode.id = 4\n\tssl.keystore.password = hunter2\n"
        b"\tunclean.leader.election.enable = true\n\tlog.dirs = /a,/b\n (kafka.server.KafkaConfig)\n"
    )
    event = scan(text)[0][0]

    assert dict(event.fields) == {"node.id": 4, "unclean.leader.election.enable": True, "log.dirs": "/a,/b"}


def test_repeats_are_folded_with_count_and_last_time():
    line = "[2024-05-01 12:00:0{},000] WARN [ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Partition t-0 marked as failed (x)\n"
    events, census = scan("".join(line.format(second) for second in range(5)).encode())

    assert len(events) == 1
    assert (events[0].repeats, events[0].last_time_ms) == (4, NOON_MS - 123 + 4_000)
    assert census.events == 5


@given(st.integers(1, 97))
def test_windows_of_any_size_give_the_same_events(length):
    text = b"".join(
        b"[2024-05-01 12:00:00,123] INFO [Log partition=t-%d, dir=/d] Truncating to offset %d (kafka.log.Log)\n\tat x\n"
        % (number % 3, number)
        for number in range(40)
    )
    chunks = [text[start : start + length] for start in range(0, len(text), length)]

    assert scan(text) == scan(*chunks)


@given(st.lists(st.binary(max_size=300), max_size=5))
def test_any_bytes_are_read_without_an_error(chunks):
    scan(*chunks)
    looks_like_broker_log(b"".join(chunks))


@given(st.text(alphabet='Truncating log to offset[],-0123 {}"message:\n\x00é', max_size=400))
def test_near_misses_are_read_without_an_error(text):
    scan(b"[2024-05-01 12:00:00,123] INFO " + text.encode())


def test_other_files_are_no_broker_logs():
    assert not looks_like_broker_log(b"\x00" * 4096)
    assert not looks_like_broker_log(b"broker.id=1\nlog.dirs=/data\n")
    assert not looks_like_broker_log(b'{"broker": 1}\n')


def test_impossible_times_and_json_without_one_are_read_as_unknown():
    line = "[2024-05-01 {},123] INFO Truncating log t-0 to offset 6.\n"
    events, _ = scan("".join(line.format(time) for time in ("24:00:00", "12:60:00", "12:00:61")).encode())
    silent, _ = scan(b'{"level": "INFO", "message": "Truncating log t-0 to offset 6."}\n')

    assert {Absent.UNREADABLE} == {event.time_ms for event in events}
    assert [Absent.NOT_WRITTEN] == [event.time_ms for event in silent]


@pytest.mark.parametrize("line", ["[" * 100_000, '["message"]', '{"message": 5}', '{"message": "nothing of use"}'])
def test_json_that_is_no_log_event_is_counted(line):
    assert [] == scan(f'{line}\n{{"msg": "Truncating log t-0 to offset x."}}\n'.encode())[0]


def test_a_text_that_begins_like_no_message_is_none():
    assert find_message(b"[Broker id=1] Nothing of use") is None


def test_a_partition_change_names_only_what_changed():
    won = parse_partition_change(
        "isr: [1] -> [2, 3], leader: 1 -> 2, leaderRecoveryState: RECOVERED -> RECOVERING, leaderEpoch: 4 -> 5"
    )
    same = parse_partition_change("lastKnownElr: [1] -> [], partitionEpoch: 2 -> 3")

    assert (2, 5, (1,), (2, 3), True, Absent.NOT_WRITTEN) == won
    assert (Absent.NOT_WRITTEN, Absent.NOT_WRITTEN, Absent.NOT_WRITTEN, Absent.NOT_WRITTEN, False, 3) == same


def test_a_json_log_is_known_by_its_first_objects():
    assert looks_like_broker_log(b'{"level": "INFO", "message": "started"}\n')
    assert not looks_like_broker_log(b'["message"]\n{"message": 5}\n[1]\n')


@pytest.mark.parametrize(
    ("start", "repeated", "end"),
    [
        (b"\xff", b"a" * 50, b""),
        (b"\x00", b"a" * 50, b""),
        (b"{", b'"message":"Truncating to ",', b"}"),
        (b"", b"[2024-05-01 12:00:00,123] INFO Truncating to offset 5 ", b""),
        (b"", b"[2024-05-01 12:00:00,123] INFO KafkaConfig values: ", b""),
        (b'{"message":"', b"Truncating to offset x ", b'", }'),
        (b'"', b"Truncating to offset x ", b""),
        (b'{"message":"Truncating to offset 5","stack":"Exception ', b"abc", b'"}'),
        (b"Error while appending records to t-0 in dir d java.io.IOException ", b"a.bc.", b""),
        (b"", b"Duplicate log directories found: /a, /b", b""),
        (b"", b"Duplicate log directories for t-0 are found in both /a and /b ", b""),
        (b"", b"The topicId does not exist in /a ", b""),
        (b"", b"BECOME_CONTROLLER ", b""),
        (b"", b"LeaderAndIsr request ", b""),
    ],
    ids=[
        "not-utf8",
        "nul",
        "json",
        "beginnings",
        "configurations",
        "broken-json",
        "quoted",
        "word",
        "names",
        "twins",
        "both",
        "strays",
        "behind-words",
        "behind-many-words",
    ],
)
@pytest.mark.some(5)
def test_long_lines_take_steps_in_proportion(start, repeated, end):
    def scan_line(times):
        return lambda: list(scan_log([start + repeated * times + end]))

    with no_hang():  # steps are blind for an expression that backtracks; over half a megabyte it would for hours
        assert sum(window.census.lines for window in scan_line(10_000)()) == 1

    assert steps(scan_line(1_000)) < 2.1 * steps(scan_line(500))


def test_parts_of_lines_that_a_container_never_ended_are_read_once():
    parts = b"2024-05-01T12:00:00Z stdout P Truncating to offset 5\n" * 20_000

    with no_hang():
        _, census = scan(parts)

    assert census.lines == 20_000


@pytest.mark.slow
def test_columns_that_never_end_are_looked_through_once():
    row = b'"Truncating log t-0 to offset 5\n'

    with no_hang():
        assert len(scan(row * 20_000)[0]) == 20_000


@pytest.mark.parametrize(("start", "end"), [(b'{"a":', b"}"), (b"[", b"]"), (b'[{"timestamp":', b"}]")])
@pytest.mark.some("[-]")
def test_objects_as_deep_as_can_be_read_stop_nothing(start, end):
    message = b'"message": "Truncating log t-0 to offset 6."'
    lines = [b'{%b, "z": %b1%b}\n' % (message, start * depth, end * depth) for depth in (10, 100, *range(400, 1000, 2))]

    assert {6} == {event.number("offset") for event in scan(b"".join(lines))[0]}


@pytest.mark.slow
def test_a_long_name_of_many_objects_takes_its_memory_once():
    objects = b",".join([b'{"a": 1}'] * 20_000)
    line = b'{"message": "Truncating log t-0 to offset 6.", "%b": [%b]}\n' % (b"n" * 400_000, objects)

    tracemalloc.start()
    try:
        (event,), _ = scan(line)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert event.number("offset") == 6
    assert most < 1 << 28


@pytest.mark.parametrize("value", [rb"C:\q ", b"\xff ", rb"\ud800 ", b"\t"])
def test_a_value_on_a_line_of_its_own_that_is_no_json_stops_nothing(value):
    (event, *_), census = scan(b'{\n  "message": "' + value + b'Truncating log t-0 to offset 6.",\n}\n')

    assert (event.number("offset"), event.time_ms) == (6, Absent.NOT_WRITTEN)
    assert census.lines == 3


def test_bytes_of_a_journal_that_are_none_are_no_error():
    text = b"Truncating log t-0 to offset 6."
    listed = ",".join(map(str, text)).encode()
    (event,), _ = scan(b'{"MESSAGE": [' + b"1" * 5000 + b"]}\n" + b'{"MESSAGE": [' + listed + b"]}\n")

    assert event.number("offset") == 6


@pytest.mark.parametrize("changed_ms", [-(1 << 53), 1 << 53])
def test_a_file_that_no_calendar_dates_shows_no_year(changed_ms):
    assert layout_of(b"Feb 29 12:00:00 kafka: x\n", changed_ms=changed_ms).year is None


def test_long_messages_are_not_remembered():
    tracemalloc.start()
    try:
        for number in range(100):
            line = b"[2024-05-01 12:00:00,123] INFO Truncating to offset %d %s\n" % (number, b"a" * 50_000)
            assert [window.census.events for window in scan_log([line])] == [1]
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert held < 1 << 20


def test_a_json_line_is_one_event_however_many_messages_it_quotes():
    line = json.dumps(
        {"level": "INFO", "message": "Truncating to offset 5", "thrown": {"message": "Truncating to offset 6"}}
    )

    (window,) = scan_log([line.encode() + b"\n"])

    assert [5] == [event.number("offset") for event in window.events]


def test_numbers_that_no_broker_writes_are_no_error():
    digits = "9" * 5000
    old = f"Received LeaderAndIsr request (Leader:1,ISR:1,LeaderEpoch:{digits}) correlation id 1 for partition [t,0]"
    (event,), _ = scan(f"[2024-05-01 12:00:00,123] TRACE {old}\n".encode())
    assert event.fields["leader_epoch"] == int("9" * 19)
    (event,), _ = scan(
        b"[2024-05-01 12:00:00,123] INFO KafkaConfig values: \n\tbroker.id = --1\n\tnode.id = -1\n\tlog.dir = -\n"
    )
    assert event.fields == {"broker.id": "--1", "node.id": -1, "log.dir": "-"}
    for seconds in ("9" * 40, "-1", "9" * 400 + ',"nanoOfSecond":5'):
        line = f'{{"instant":{{"epochSecond":{seconds}}},"message":"Truncating log t-0 to offset 6."}}'
        (event,), _ = scan(line.encode())
        assert event.time_ms is Absent.UNREADABLE
    line = f'{{"instant":{{"epochSecond":1714564800,"nanoOfSecond":{"9" * 400}}},"message":"Truncating to offset 6"}}'
    (event,), _ = scan(line.encode())
    assert event.time_ms == NOON_MS - 123


@pytest.mark.parametrize(
    ("time", "found"),
    [("2024-05-01T12:00:00.123", (NOON_MS, False)), ("no time", (Absent.UNREADABLE, False))],
)
def test_a_json_time_without_a_zone_is_read_as_it_stands(time, found):
    line = json.dumps({"@timestamp": time, "message": "[Log partition=t-0] Truncating to offset 6"})
    (event,), _ = scan(f"{line}\n".encode())

    assert (event.time_ms, event.zone_named) == found


def test_the_time_of_a_line_is_that_of_its_layout():
    json_line = json.dumps({"@timestamp": "2024-05-01T12:00:00.123Z", "message": "started"}).encode()
    text_line = b"[2024-05-01 12:00:00,123] INFO started (kafka.server.KafkaServer)"

    assert (1714564800123, True) == line_moment(json_line)
    assert (1714564800123, False) == line_moment(text_line)
    assert not isinstance(line_moment(b"{no object").time_ms, int)
    assert not isinstance(line_moment(b"\tat java.lang.Thread.run").time_ms, int)


def test_lines_that_never_repeat_give_the_same_whatever_is_remembered_of_them(monkeypatch):
    line = b"[2024-05-01 12:00:00,%03d] INFO [Log partition=t-%d, dir=/d] Truncating to offset %d (kafka.log.Log)\n"
    data = b"".join(line % (at % 1000, at % 7, at * at) for at in range(2_000)) * 2
    whole = [event for window in scan_log([data]) for event in window.events]

    monkeypatch.setattr(scanner, "WINDOW_LENGTH", 1 << 14)
    monkeypatch.setattr(scanner, "_TELLING_LINES", 10)
    parts = [event for window in scan_log([data]) for event in window.events]

    assert len(whole) == 4_000
    assert whole == parts
