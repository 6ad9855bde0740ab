"""The same small story of a broker in layouts of every kind, and in such as nobody wrote a rule for."""

import codecs
import datetime as dt
import json
import textwrap
from random import Random
from xml.sax.saxutils import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kforensics.damage import Absent
from kforensics.formats.log_lines import scan
from kforensics.formats.log_lines.scan import scan_log
from kforensics.formats.log_lines.unwrap import layout_of, looks_like_broker_log
from kforensics.units import TopicPartition

START_MS = 1_762_552_086_950
"""The time of the first line in UTC."""
ZONE_MS = 5 * 3_600_000 + 1_800_000
"""The broker's clock is half past five ahead."""

STORY = [
    (
        "INFO",
        "main",
        "kafka.log.LogManager",
        "Recovering 7 logs from /srv/kf since no clean shutdown file was found",
        "",
    ),
    (
        "WARN",
        "log-recovery-/srv/kf-0",
        "org.apache.kafka.storage.internals.log.LogLoader",
        "[LogLoader partition=meter.readings-11, dir=/srv/kf] Corruption found in segment 600, truncating to offset 613",
        "",
    ),
    (
        "INFO",
        "ReplicaFetcherThread-1-5",
        "kafka.log.UnifiedLog",
        "[UnifiedLog partition=meter.readings-11, dir=/srv/kf] Truncating to offset 608",
        "",
    ),
    (
        "INFO",
        "kafka-scheduler-2",
        "kafka.cluster.Partition",
        "[Partition audit_log-0 broker=4] Shrinking ISR from 4,5,6 to 4. Leader: (highWatermark: 90, endOffset: 99). Out of sync replicas: (brokerId: 5, endOffset: 90).",
        "",
    ),
    (
        "ERROR",
        "data-plane-kafka-request-handler-3",
        "kafka.server.ReplicaManager",
        "[ReplicaManager broker=4] Error processing append operation on partition audit_log-0",
        "org.apache.kafka.common.errors.OutOfOrderSequenceException: Out of order sequence number for producer 12 at offset 99 in partition audit_log-0: 31 (incoming seq. number), 27 (current end sequence number)\n\tat kafka.log.UnifiedLog.append(UnifiedLog.scala:873)",
    ),
]
WANTED: list[tuple[str, tuple[str, int] | None, dict[str, object]]] = [
    ("recovery-start", None, {"directory": "/srv/kf"}),
    ("recovery-truncation", ("meter.readings", 11), {"base_offset": 600, "offset": 613}),
    ("truncation", ("meter.readings", 11), {"offset": 608}),
    (
        "isr-shrink",
        ("audit_log", 0),
        {"from_isr": (4, 5, 6), "to_isr": (4,), "high_watermark": 90, "log_end_offset": 99},
    ),
    ("append-refused", ("audit_log", 0), {}),
    ("producer-sequence", ("audit_log", 0), {"producer_id": 12, "sequence": 31, "expected_after": 27}),
]


def stamp(number: int, pattern: str, *, zone_ms: int = 0) -> str:
    """The time of a line; `%3` are its milliseconds."""
    time = dt.datetime.fromtimestamp((START_MS + 1000 * number + zone_ms) / 1000, dt.UTC)
    return time.strftime(pattern.replace("%3", f"{time.microsecond // 1000:03}"))


def lines(pattern: str, time: str, *, before: str = "", zone_ms: int = ZONE_MS) -> str:
    """The story in a pattern of a logger; a stack follows on lines of its own, behind what a collector puts before each."""
    out = []
    for number, (level, thread, logger, message, stack) in enumerate(STORY):
        outer = stamp(number, before)
        text = pattern.format(
            t=stamp(number, time, zone_ms=zone_ms),
            level=level,
            thread=thread,
            logger=logger,
            short=logger.rpartition(".")[2],
            message=message,
        )
        out += [outer + line for line in (text, *stack.splitlines())]
    return "\n".join(out) + "\n"


def objects(make) -> str:
    return "".join(json.dumps(make(number, *part)) + "\n" for number, part in enumerate(STORY))


LOCAL, ZONED, NONE = "local", "zoned", "none"
ISO = "%Y-%m-%d %H:%M:%S,%3"
KAFKAS_OWN = lines("[{t}] {level} {message} ({logger})", ISO)
LAYOUTS = {
    "kafka": (LOCAL, KAFKAS_OWN),
    "level first": (LOCAL, lines("{level} [{t}] {message} ({logger})", ISO)),
    "seconds, class and line": (LOCAL, lines("{t} {level:5} [{thread}] {short}:42 - {message}", "%Y-%m-%d %H:%M:%S")),
    "dots": (LOCAL, lines("{t} [{thread}] {level} {logger} -- {message}", "%Y.%m.%d %H:%M:%S.%3")),
    "day, month in letters": (LOCAL, lines("{t} {level} {short}: {message}", "%d/%b/%Y %H:%M:%S.%3")),
    "american": (LOCAL, lines("{t} {level} {message}", "%m/%d/%Y %I:%M:%S %p").replace("11/08/", "11/18/")),
    "zone behind": (
        ZONED,
        lines("{t} +0530 | {level} | {message} | {logger} (Logging.scala:66)", "%Y-%m-%d %H:%M:%S,%3"),
    ),
    "compose, with times": (
        LOCAL,
        lines("[{t}] {level} {message} ({logger})", ISO, before="kafka-1  | %Y-%m-%dT%H:%M:%S.%3456789Z "),
    ),
    "stern": (LOCAL, lines("{t} {level} {message} ({logger}) [{thread}]", ISO, before="kafka-0 kafka ")),
    "journald, precise": (
        LOCAL,
        lines("[{t}] {level} {message} ({logger})", ISO, before="Nov 07 %H:%M:%S.%3456 host1 kafka[811]: "),
    ),
    "grep": (LOCAL, lines("[{t}] {level} {message} ({logger})", ISO, before="logs/server.log-17-")),
    "logfmt": (ZONED, lines('ts={t} level={level} logger={short} msg="{message}"', "%Y-%m-%dT%H:%M:%S.%3Z", zone_ms=0)),
    "xml": (LOCAL, lines("<E><T>{t}</T><L>{level}</L><M>{message}</M></E>", "%Y-%m-%d %H:%M:%S.%3")),
    "colours": (LOCAL, lines("\x1b[36m{t}\x1b[0m \x1b[1;31m{level}\x1b[m [{thread}] \x1b[2m{message}\x1b[0m", ISO)),
    "no time": (NONE, lines("{level} {message} ({logger})", "")),
    "windows": (LOCAL, KAFKAS_OWN.replace("\n", "\r\n")),
    "json, own keys": (
        ZONED,
        objects(
            lambda n, level, thread, logger, message, stack: {
                "ts": stamp(n, "%Y-%m-%dT%H:%M:%S.%3Z"),
                "lvl": level,
                "text": message,
                "trace": stack,
            }
        ),
    ),
    "json in json": (
        ZONED,
        objects(
            lambda n, level, thread, logger, message, stack: {
                "log": json.dumps(
                    {
                        "instant": {"epochSecond": (START_MS + 1000 * n) // 1000, "nanoOfSecond": 950_000_000},
                        "message": message,
                        "thrown": {"text": stack},
                    }
                )
                + "\n",
                "time": stamp(n + 90, "%Y-%m-%dT%H:%M:%S.%3Z"),
            }
        ),
    ),
    "json, many lines": (
        ZONED,
        json.dumps(
            [
                {"timestamp": START_MS + 1000 * n, "message": f"{level} {message}\n{stack}"}
                for n, (level, _, _, message, stack) in enumerate(STORY)
            ],
            indent=2,
        ),
    ),
    "json, one line": (
        ZONED,
        json.dumps(
            {
                "events": [
                    {"logStreamName": "b4", "timestamp": START_MS + 1000 * n, "message": f"{level} {message}\n{stack}"}
                    for n, (level, _, _, message, stack) in enumerate(STORY)
                ],
                "searchedLogStreams": [],
            }
        ),
    ),
    "json, lists on one line": (
        LOCAL,
        json.dumps(
            {
                "status": "success",
                "data": {
                    "result": [
                        {
                            "stream": {"pod": "b4"},
                            "values": [
                                [
                                    f"{START_MS + 1000 * n}000001",
                                    f"[{stamp(n, ISO, zone_ms=ZONE_MS)}] {level} {message}\n{stack}",
                                ]
                                for n, (level, _, _, message, stack) in enumerate(STORY)
                            ],
                        }
                    ]
                },
            }
        ),
    ),
    "json, many lines, times outside": (
        ZONED,
        json.dumps(
            [
                {
                    "timestamp": stamp(n, "%Y-%m-%dT%H:%M:%S.%3456789Z"),
                    "resource": {"labels": {"pod_name": "b4"}},
                    "jsonPayload": {"message": f"{message}", "stack": {"trace": stack}, "logger": logger},
                }
                for n, (_, _, logger, message, stack) in enumerate(STORY)
            ],
            indent=1,
        ),
    ),
    "json, many lines, lists of one": (
        ZONED,
        json.dumps(
            {
                "hits": [
                    {
                        "fields": {
                            "@timestamp": [stamp(n, "%Y-%m-%dT%H:%M:%S.%3Z")],
                            "message": [f"{level} {message}\n{stack}"],
                        }
                    }
                    for n, (level, _, _, message, stack) in enumerate(STORY)
                ]
            },
            indent=2,
        ),
    ),
    "json, message before the stack, too": (
        ZONED,
        objects(
            lambda n, level, thread, logger, message, stack: {
                "timestamp": (START_MS + 1000 * n) / 1000,
                "short_message": message,
                "full_message": f"{message}\n{stack}",
            }
        ),
    ),
    "yaml, a record of many lines": (
        ZONED,
        "".join(
            stamp(
                n,
                f"---\nid: x{n}\nlabels:\n  pod_name: b4\nlogName: stdout\ntextPayload: '{text}'\n"
                "timestamp: '%Y-%m-%dT%H:%M:%S.%3456789Z'\n",
            )
            for n, (level, _, _, message, stack) in enumerate(STORY)
            for text in (f"{level} {message}", *stack.splitlines())
        ),
    ),
    "journal, a field a line": (
        ZONED,
        "".join(
            stamp(n, f"Fri %Y-%m-%d %H:%M:%S.%3456 UTC [s=a;i=1]\n    _HOSTNAME=b4\n    MESSAGE={text}\n    _PID=811\n")
            for n, (level, _, _, message, stack) in enumerate(STORY)
            for text in (f"{level} {message}", *stack.splitlines())
        ),
    ),
    "json, many lines, lists of names and values": (
        ZONED,
        json.dumps(
            {
                "results": [
                    [
                        {"field": "@timestamp", "value": stamp(n, "%Y-%m-%dT%H:%M:%S.%3Z")},
                        {"field": "@message", "value": f"{level} {message}\n{stack}"},
                    ]
                    for n, (level, _, _, message, stack) in enumerate(STORY)
                ]
            },
            indent=4,
        ),
    ),
    "csv, the time last": (
        ZONED,
        "message,level,time\n"
        + "".join(
            f'"{message}\n{stack}","{level}","{stamp(n, "%Y-%m-%dT%H:%M:%S.%3Z")}"\n'
            for n, (level, _, _, message, stack) in enumerate(STORY)
        ),
    ),
    "html, cells of a table": (
        LOCAL,
        "<table>"
        + lines("<tr><td>{t}</td><td>{level}</td><td>{message}</td></tr>", "%Y-%m-%d %H:%M:%S.%3").replace("\n", "\n")
        + "</table>",
    ),
    "csv, ids and seconds before": (
        LOCAL,
        lines("[{t}] {level} {message} ({logger})", ISO, before="%s%3,b4,9001%S00%M007,"),
    ),
    "behind zeros": (LOCAL, "logs/server.log\0\0ustar\0\0" + KAFKAS_OWN),
    "bytes": (
        ZONED,
        objects(
            lambda n, level, thread, logger, message, stack: {
                "__REALTIME_TIMESTAMP": str((START_MS + 1000 * n) * 1000),
                "MESSAGE": list(f"{level} {message}\n{stack}".encode()),
            }
        ),
    ),
    "csv, newest first": (
        ZONED,
        "when,host,line\n"
        + "".join(
            reversed(
                [
                    f'"{stamp(n, "%Y-%m-%dT%H:%M:%S.%3Z")}",b4,"{level} {message}'
                    + (f"\n{stack}" if stack else "")
                    + '"\n'
                    for n, (level, _, _, message, stack) in enumerate(STORY)
                ]
            )
        ),
    ),
    "json, a time by a name of its own": (
        ZONED,
        objects(
            lambda n, level, _thread, _logger, message, stack: {
                "host": "b4",
                "level": level,
                "logtime": stamp(n, "%Y-%m-%dT%H:%M:%S.%3Z"),
                "log_message": f"{message}\n{stack}",
            }
        ),
    ),
    "json, deep below": (
        ZONED,
        objects(
            lambda n, level, _thread, _logger, message, stack: {
                "resourceLogs": [
                    {
                        "resource": {"attributes": [{"key": "pod", "value": {"stringValue": "b4"}}]},
                        "scopeLogs": [
                            {
                                "logRecords": [
                                    {
                                        "timeUnixNano": str((START_MS + 1000 * n) * 1_000_000),
                                        "body": {"stringValue": f"{level} {message}\n{stack}"},
                                    }
                                ]
                            }
                        ],
                    }
                ]
            }
        ),
    ),
    "the stack in the line": (
        ZONED,
        "".join(
            f"ts={stamp(n, '%Y-%m-%dT%H:%M:%S.%3Z')} level={level} msg={json.dumps(message)} err={json.dumps(stack)}\n"
            for n, (level, _, _, message, stack) in enumerate(STORY)
        ),
    ),
    "xml, events over many lines": (
        ZONED,
        '<?xml version="1.0"?>\n<Events>\n'
        + "".join(
            f'<Event level="{level}" thread="t">\n <Instant epochSecond="{(START_MS + 1000 * n) // 1000}" nanoOfSecond="950000000"/>\n'
            f" <Message>{escape(message)}</Message>\n <Thrown><![CDATA[{stack}]]></Thrown>\n</Event>\n"
            for n, (level, _, _, message, stack) in enumerate(STORY)
        )
        + "</Events>\n",
    ),
    "xml, one line": (
        ZONED,
        "<log>"
        + "".join(
            f"<record><millis>{START_MS + 1000 * n}</millis><level>{level}</level><message>{escape(message)}</message>"
            f"<exception><message>{escape(stack)}</message></exception></record>"
            for n, (level, _, _, message, stack) in enumerate(STORY)
        )
        + "</log>",
    ),
    "html": (LOCAL, f"<pre>{escape(lines('[{t}] {level} {message} ({logger})', ISO))}</pre>"),
    "json between zeros": (
        ZONED,
        "".join(
            json.dumps({"timestamp": (START_MS + 1000 * n) / 1000, "full_message": f"{level} {message}\n{stack}"})
            + "\0"
            for n, (level, _, _, message, stack) in enumerate(STORY)
        ),
    ),
    "json, all lines in one text": (
        LOCAL,
        json.dumps(
            {
                "rc": 0,
                "stdout": (text := KAFKAS_OWN),
                "stdout_lines": text.splitlines(),
            }
        ),
    ),
    "json, all lines in one text, and one by one": (
        LOCAL,
        json.dumps(
            {"stdout": (text := KAFKAS_OWN), "stdout_lines": text.splitlines()},
            indent=1,
        ),
    ),
    "folded by a terminal": (
        LOCAL,
        "".join(f"{line[at : at + 72]}\n" for line in KAFKAS_OWN.splitlines() for at in range(0, len(line), 72)),
    ),
    "wrapped by a mail": (
        LOCAL,
        "".join(
            textwrap.fill(line, 76, break_long_words=False, break_on_hyphens=False) + "\n"
            for line in KAFKAS_OWN.splitlines()
        ),
    ),
    "months in German": (LOCAL, lines("{t} {level} {message}", "%d. Nov. %Y %H:%M:%S,%3")),
    "months in French": (LOCAL, lines("{t} {level} {message}", "%d nov. %Y %H:%M:%S,%3")),
    "Chinese": (LOCAL, lines("{t} {level} {message}", "%Y年%m月%d日 %H:%M:%S,%3")),
    "digits alone": (LOCAL, lines("{t} {level} {message}", "%Y%m%d%H%M%S%3")),
    "digits alone, zoned": (ZONED, lines("{t} {level} {message}", "%Y%m%dT%H%M%S,%3Z", zone_ms=0)),
    "a journal with all its fields": (
        LOCAL,
        "".join(f"_PID=8\nMESSAGE={line}\n\n" for line in KAFKAS_OWN.splitlines()),
    ),
    "time and level on two lines": (
        LOCAL,
        lines("{t} {logger} log\n{level}: {message}", "%b %d, %Y %I:%M:%S %p"),
    ),
    "year of two digits": (LOCAL, lines("{t} {level} {short}: {message}", "%y/%m/%d %H:%M:%S")),
    "months in Spanish": (LOCAL, lines("{t} {level} {message}", "%d de noviembre de %Y, %H:%M:%S")),
    "months in Russian": (LOCAL, lines("{t};{level};{message}", "%d нояб. %Y, %H:%M:%S,%3")),
    "a clock with full stops": (LOCAL, lines("{t} {level} {message}", "%Y-%m-%d-%H.%M.%S.%3")),
    "blanks of a page": (
        LOCAL,
        KAFKAS_OWN.replace(" ", "\N{NO-BREAK SPACE}").replace("Trunc", "Trun\xadc"),
    ),
    "html, blanks of a page": (
        LOCAL,
        "".join(f"<span>{escape(line).replace(' ', '&nbsp;')}</span><br/>\n" for line in KAFKAS_OWN.splitlines()),
    ),
    "entities without tags": (
        LOCAL,
        KAFKAS_OWN.replace("(", "&#40;").replace('"', "&quot;"),
    ),
    "quoted in a mail and wrapped": (
        LOCAL,
        "".join(
            textwrap.indent(textwrap.fill(line, 76, break_long_words=False, break_on_hyphens=False), "> ") + "\n"
            for line in KAFKAS_OWN.splitlines()
        ),
    ),
    "as a mail carries it": (
        LOCAL,
        "".join(
            "=\n".join(textwrap.wrap(line.replace("=", "=3D"), 72, drop_whitespace=False)) + "\n"
            for line in KAFKAS_OWN.splitlines()
        ),
    ),
    "one line, line ends as escapes": (
        LOCAL,
        KAFKAS_OWN.replace("\n", "\\n").replace("\t", "\\t"),
    ),
    "json, one behind another": (
        LOCAL,
        "".join(
            json.dumps({"logStream": "b4", "logEvents": [{"id": "1", "timestamp": START_MS, "message": one}]})
            for one in KAFKAS_OWN.replace("\norg", "\0org").replace("\n\t", "\0\t").splitlines()
        ).replace("\\u0000", "\\n"),
    ),
    "json, lines in a list, behind a word": (
        LOCAL,
        "ok: [b4] => " + json.dumps({"msg": KAFKAS_OWN.splitlines()}, indent=1) + "\n",
    ),
    "day before month, full stops": (LOCAL, lines("{t} {level} {message}", "%d.%m.%Y %H:%M:%S,%3")),
    "utf-16": (LOCAL, KAFKAS_OWN),
}


def events_of(data: bytes):
    layout = layout_of(data[: 1 << 16], changed_ms=START_MS + 86_400_000)
    windows = [*scan_log([data], layout=layout)]
    return [event for window in windows for event in window.events], {
        zone for window in windows for zone, _ in window.zones
    }


def encoded(name: str, text: str) -> bytes:
    return codecs.BOM_UTF16_BE + text.encode("utf-16-be") if name == "utf-16" else text.encode()


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_gives_the_same_events(name):
    kind, text = LAYOUTS[name]
    data = encoded(name, text)

    found, zones = events_of(data)

    assert looks_like_broker_log(data, is_named=kind == NONE)
    found.sort(key=lambda event: [one[0] for one in WANTED].index(event.kind))
    assert [one[0] for one in WANTED] == [event.kind for event in found]
    for event, (_, partition, fields) in zip(found, WANTED, strict=True):
        assert event.topic_partition == (TopicPartition(*partition) if partition else Absent.NOT_WRITTEN)
        assert fields.items() <= dict(event.fields).items()
        assert event.span.length > 0
    for number, event in enumerate(found[:4]):
        if kind == NONE:
            assert not isinstance(event.time_ms, int)
            continue
        apart = event.time_ms - START_MS - 1000 * number
        apart -= 10 * 86_400_000 if name == "american" else 0
        assert abs(apart - (ZONE_MS if kind == LOCAL else 0)) < 1000
        assert event.zone_named is (kind == ZONED)
    if "compose" in name:
        assert zones == {-ZONE_MS}


def test_an_event_of_many_lines_is_not_split_between_windows(monkeypatch):
    monkeypatch.setattr(scan, "WINDOW_LENGTH", 1_000)
    event = "<event timestamp='{}' level='INFO'>\n<message><![CDATA[Truncating log t-0 to offset {}.]]></message>\n</event>\n\n"
    text = "".join(event.format(START_MS + number, number) for number in range(100)).encode()

    windows = [*scan.scan_log(text[start : start + 300] for start in range(0, len(text), 300))]

    assert len(windows) > 10
    assert [(event.number("offset"), event.time_ms) for window in windows for event in window.events] == [
        (number, START_MS + number) for number in range(100)
    ]


def test_a_span_holds_the_line_in_every_encoding():
    for name in ("kafka", "utf-16", "colours"):
        data = encoded(name, LAYOUTS[name][1])
        for event in events_of(data)[0]:
            line = data[event.span.position : event.span.end].decode("utf-16-be" if name == "utf-16" else "utf-8")
            assert line.strip("\ufeff\n") in LAYOUTS[name][1].splitlines()


def test_messages_that_are_pasted_without_a_time_are_lines_of_their_own():
    text = b"Loading logs\nError while writing to checkpoint file /srv/kf/replication-offset-checkpoint\nExiting Kafka due to fatal exception\n"
    found, _ = events_of(text)
    assert [(one.kind, one.line) for one in found if one.kind in {"log-dir-error", "start-failed"}] == [
        ("log-dir-error", 2),
        ("start-failed", 3),
    ]


def test_a_line_that_a_container_runtime_split_is_read_whole():
    head = "2025-11-07T21:48:06.950123456Z stdout"
    other = head.replace("stdout", "stderr")
    text = f"{head} P [2025-11-07 21:48:06,950] INFO [Log partition=t-0, dir=/d] Trunca\n{other} F note\n{head} F ting to offset 6 (kafka.log.Log)\n{head} F [2025-11-07 21:48:06,951] INFO Truncating log t-1 to offset 7. (x)\n"

    found, _ = events_of(text.encode())

    assert [(event.line, event.number("offset")) for event in found] == [(1, 6), (4, 7)]


@pytest.mark.parametrize(
    ("text", "day"), [("3/25/2025 10:00:00", 84), ("25/3/2025 10:00:00", 84), ("3/1/2025 10:00:00", None)]
)
def test_day_and_month_are_told_apart_where_a_line_of_the_file_shows_it(text, day):
    data = f"{text} INFO Truncating log t-1 to offset 7.\n".encode()
    time_ms = events_of(data)[0][0].time_ms

    assert (time_ms if day is None else (time_ms - 1_735_689_600_000) // 86_400_000 + 1) == (
        Absent.UNKNOWN if day is None else day
    )


@pytest.mark.parametrize(
    "counter", ["{}:", "  {}\t", '<134>1 - b4 kafka 811 - [meta seq="{}"] ', "[{}] k: [[176255208{}.95, {{}}] "]
)
def test_a_number_before_a_line_is_no_name_of_its_writer(counter):
    texts = lines("[{t}] {level} {message}", ISO).splitlines()
    numbered = "".join(f"{counter.format(at + 7, at)}{one}\n" for at, one in enumerate(texts))

    found, _ = events_of(numbered.encode())

    assert len({event.writer for event in found}) == 1


SETTINGS = ["broker.id = 7", "log.dirs = /d1,/d2", "num.io.threads = 8", "unclean.leader.election.enable = true"]
READ = {"broker.id": 7, "log.dirs": "/d1,/d2", "unclean.leader.election.enable": True}
BEGIN = f"[{ISO}] INFO KafkaConfig values: "
FRAMES = {
    "plain": "{}",
    "pods": "kafka-0 kafka {}",
    "times of collectors": "2025-11-07T21:48:06.95Z {}",
    "a container's": '{{"log":"{}\\n","stream":"stdout","time":"2025-11-07T21:48:06.95Z"}}',
    "pods in objects": '{{"line":"{}","kubernetes":{{"pod_name":"k-0","namespace_name":"name = no setting"}}}}',
    "quoted in mails": "> {}",
    "a journal": "_PID=8\nMESSAGE={}\n",
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_settings_are_read_whatever_stands_before_and_behind_each(frame):
    tab = "\\t" if "{{" in frame else "\t"
    texts = [stamp(0, BEGIN), *(f"{tab}{one}" for one in SETTINGS), stamp(1, f"[{ISO}] INFO min.insync.replicas = 9")]
    found, _ = events_of("".join(f"{frame.format(one)}\n" for one in texts).encode())

    assert [event.fields for event in found if event.kind == "configuration"] == [READ]


def test_settings_of_two_nodes_that_start_at_once_are_told_apart():
    pairs = [
        (f"kafka-{node} | {line}".replace("= 7", f"= {node}"))
        for line in [stamp(0, BEGIN), *(f"\t{one}" for one in SETTINGS)]
        for node in (7, 8)
    ]
    found, _ = events_of("".join(f"{one}\n" for one in pairs).encode())

    assert [event.fields for event in found] == [READ, {**READ, "broker.id": 8}]


def test_settings_in_one_line_are_read():
    text = "\\n\\t".join([stamp(0, BEGIN), *SETTINGS])

    for line in (f'"{text}"', json.dumps({"message": text.replace("\\n\\t", "\n\t")})):
        ((event,), _) = events_of(line.encode())
        assert event.fields == READ


@pytest.mark.parametrize(
    ("changed", "first", "is_day_first"),
    [
        ("2025-01-03", "1/3/2025", False),
        ("2025-02-27", "1/3/2025", False),
        ("2025-03-01", "1/3/2025", None),
        ("2025-11-26", "21/11/25", None),
        ("2025-11-09", "25/11/07", "year"),
        ("2025-11-29", "21/11/25 10:00:00 INFO x\n22/11/25", True),
    ],
)
def test_no_line_is_written_after_its_file_was_changed(changed, first, is_day_first):
    text = f"{first} 10:00:00 INFO Truncating log t-1 to offset 7.\n".encode()
    changed_ms = int(dt.datetime.fromisoformat(f"{changed}T12:00:00+00:00").timestamp()) * 1000

    orders = {None: None, True: (2, 1, 0), False: (2, 0, 1), "year": (0, 1, 2)}
    assert layout_of(text, changed_ms=changed_ms).order == orders[is_day_first]


def test_no_day_is_taken_from_a_date_that_no_calendar_has():
    found, _ = events_of(b"31.02.2025 21:48:06,950 INFO Truncating log meter.readings-11 to offset 7\n")

    assert [event.time_ms for event in found] == [Absent.NOT_WRITTEN]


def test_a_date_without_a_year_is_the_last_one_before_the_file_was_written():
    data = b"<134>Nov  7 21:48:06 b4 kafka[811]: INFO Truncating log t-1 to offset 7.\n"
    (event,), _ = events_of(data)

    assert START_MS - 1000 < event.time_ms <= START_MS
    assert event.writer == "b4"


def test_a_date_without_a_year_is_the_nearest_one_to_a_date_of_the_same_file():
    data = b"Jan  1 00:00:06 b4 kafka[8]: INFO Truncating log t-1 to offset 7.\n# Wed 2024-12-31 23:48:06 UTC\n"
    (event,), _ = events_of(data)

    assert event.time_ms == 1_735_689_606_000


def test_a_time_without_a_date_is_kept_as_it_is_written():
    (event,), _ = events_of(b"21:48:06.950 [main] INFO  kafka.log.Log -- Truncating log t-1 to offset 7.\n")

    assert (event.time_ms, event.fields["clock"]) == (Absent.UNKNOWN, "21:48:06.950")


WORDS = st.text("abcdefghijklmnopqrstuvwxyz0123456789-_./", min_size=1, max_size=12)
PIECES = st.one_of(
    WORDS,
    WORDS.map("[{}]".format),
    WORDS.map("{} |".format),
    WORDS.map("({})".format),
    st.integers(0, 1 << 31).map(str),
    st.sampled_from(["INFO", "WARN ", "[ERROR]", "stdout F", "-", "---", ":", "<134>", "\t", "é", "\x1b[32m"]),
)
TIMES = st.sampled_from(
    ["", f"[{ISO}]", ISO, "%Y-%m-%dT%H:%M:%S.%3Z", "%d/%b/%Y:%H:%M:%S", "%b %d %H:%M:%S", "%H:%M:%S.%3", "%s%3"]
)


@settings(max_examples=300)
@given(
    st.lists(PIECES, max_size=6),
    TIMES,
    st.lists(PIECES, max_size=4),
    st.sampled_from(["", " (kafka.log.X)", " | x (Y.scala:1)", " [main]"]),
)
@pytest.mark.slow
def test_any_prefix_gives_the_same_events(before, time, behind, suffix):
    text = ""
    for number, (_, _, _, message, stack) in enumerate(STORY):
        line = " ".join([*before, stamp(number, time), *behind, message]) + suffix
        text += "\n".join([line, *stack.splitlines()]) + "\n"

    found, _ = events_of(text.encode())

    assert [one[0] for one in WANTED] == [event.kind for event in found]
    for event, (_, partition, fields) in zip(found, WANTED, strict=True):
        assert partition is None or event.topic_partition == TopicPartition(*partition)
        assert fields.items() <= dict(event.fields).items()


def docker(text: str, stream: str = "stdout") -> str:
    return json.dumps({"log": text, "stream": stream, "time": "2025-11-07T21:48:06.95Z"}, separators=(",", ":")) + "\n"


def test_a_line_that_docker_split_is_read_whole():
    text = (
        docker("[2025-11-07 21:48:06,950] INFO [Log partition=t-0, dir=C:\\n] Trunca")
        + docker("note\n", "stderr")
        + docker("ting to off")
        + docker("set 6 (kafka.log.Log)\n")
        + docker("[2025-11-07 21:48:06,951] INFO Truncating log t-1 to offset 7. C:\\\n")
        + docker("[2025-11-07 21:48:06,952] INFO Truncating log t-2 to offset 8.\n")
    )

    found, _ = events_of(text.encode())

    assert [(event.line, event.number("offset")) for event in found] == [(1, 6), (5, 7), (6, 8)]
    assert found[0].fields["directory"] == "C:\\n"


@pytest.mark.parametrize("split", [docker, lambda text: f"2025-11-07T21:48:06.9Z stdout P {text}\n"])
def test_a_split_line_is_not_split_again_between_windows(split, monkeypatch):
    monkeypatch.setattr(scan, "WINDOW_LENGTH", 1_000)
    head, tail = (
        "[2025-11-07 21:48:06,950] INFO [Log partition=t-0, dir=/d] Trunca",
        "ting to offset {} (kafka.log.Log)",
    )
    whole = docker if split is docker else lambda text: f"2025-11-07T21:48:06.9Z stdout F {text}"
    text = "".join(split(head) + whole(tail.format(number) + "\n") for number in range(100)).encode()

    windows = [*scan.scan_log(text[start : start + 300] for start in range(0, len(text), 300))]

    assert len(windows) > 10
    assert [event.number("offset") for window in windows for event in window.events] == [*range(100)]


def test_lines_that_repeat_are_folded_whatever_their_layout():
    text = "2025-11-07 21:48:0{} WARN  [ReplicaFetcherThread-0-2] ReplicaFetcherThread:142 - [ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Partition t-0 marked as failed\n"
    (one,), _ = events_of("".join(text.format(second) for second in range(9)).encode())

    assert one.repeats == 8
    assert one.last_time_ms - one.time_ms == 8_000


TIMES_DRAWN = (
    "[%Y-%m-%d %H:%M:%S,%3]",
    "%Y-%m-%d %H:%M:%S,%3",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S.%3Z",
    "%Y-%m-%dT%H:%M:%S,%3+0530",
    "[%Y/%m/%d %H:%M:%S.%3]",
    "%d/%b/%Y:%H:%M:%S.%3 +0530",
    "%d %b %Y %H:%M:%S,%3",
    "%s%3",
)
ZONELESS = {one for one in TIMES_DRAWN if not one.endswith(("Z", "0530", "%s%3"))}
OUTER = "%Y-%m-%dT%H:%M:%S.%3456789Z"


def drawn(seed: int) -> tuple[bytes, str]:
    """The story in a layout that is drawn, and the pattern of its times."""
    draw = Random(seed)
    word = lambda: "".join(draw.choices("abcdefghijklmnopqrstuvwxyz0123456789-_./", k=draw.randint(1, 9)))  # noqa: E731
    time = draw.choice(TIMES_DRAWN)
    zone_ms = 0 if time.endswith(("Z", "%s%3")) else ZONE_MS
    bare = [
        word(),
        f"[{word()}]",
        f"({word()})",
        f"{word()}:",
        "-",
        "|",
        "---",
        "{thread}",
        "[{thread}]",
        "{short}:142",
        "{logger}",
    ]
    pieces = [*draw.sample(bare, draw.randint(0, 4)), "{time}", draw.choice(["{level}", "{level:5}", "[{level}]"])]
    draw.shuffle(pieces)
    pattern = " ".join(pieces) + draw.choice([" ", " - ", ": ", " | "]) + "{message}"
    pattern += draw.choice(
        ["", " ({logger})", " ({logger}) [{thread}]", " | {logger} (Logging.scala:66)", " [{thread}]"]
    )
    keys = [word().strip("./-_0123456789") or "k" for _ in range(4)]
    wrap = draw.choice(
        ["", "", "compose", "cri", "docker", "kubectl", "journal", "json", "gcp", "csv", "bytes", "line", "many lines"]
    )
    out, whole = [], []
    for number, (level, thread, logger, message, stack) in enumerate(STORY):
        named = {"level": level, "thread": thread, "logger": logger, "short": logger.rpartition(".")[2]}
        line = pattern.format(time=stamp(number, time, zone_ms=zone_ms), message=message, **named)
        texts, outer = [line, *stack.splitlines()], stamp(number, OUTER)
        if wrap in {"", "compose", "cri", "kubectl", "journal"}:
            before = {
                "": "",
                "compose": f"{keys[0]}-1  | ",
                "cri": f"{outer} stdout F ",
                "kubectl": f"[pod/{keys[0]}-0/kafka] {outer} ",
                "journal": stamp(number, f"Nov 07 %H:%M:%S {keys[0]} kafka[811]: "),
            }[wrap]
            out += [before + text for text in texts]
        elif wrap == "docker":
            out += [json.dumps({"log": f"{text}\n", "stream": "stdout", "time": outer}) for text in texts]
        elif wrap == "bytes":
            micros = str((START_MS + 1000 * number) * 1000)
            out.append(json.dumps({"__REALTIME_TIMESTAMP": micros, "MESSAGE": [*"\n".join(texts).encode()]}))
        elif wrap == "csv":
            quoted = "\n".join(texts).replace('"', '""')
            out.append(f'"{outer}",{keys[0]},"{quoted}"')
        elif wrap in {"line", "many lines"}:
            whole.append({"@timestamp": outer, keys[0]: {keys[1]: [1], keys[2]: "\n".join(texts)}})
        elif wrap == "gcp":
            out.append(
                json.dumps({"timestamp": outer, "jsonPayload": {keys[1]: {"a": 1}, "message": "\n".join(texts)}})
            )
        else:
            out.append(json.dumps({"@timestamp": outer, keys[2]: line, keys[3] + "_stack": stack, "level": level}))
    if whole:
        out = json.dumps({keys[3]: whole}, indent=1 if wrap == "many lines" else None).splitlines()
    text = draw.choice(["\n", "\n", "\r\n"]).join(out) + "\n"
    if wrap == "" and draw.random() < 0.2:
        text = f"\x1b[{draw.randint(30, 37)}m" + text.replace("\n", "\x1b[0m\n\x1b[31m")
    encoding = draw.choice(["utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-8" if wrap == "line" else "utf-16"])
    return text.encode(encoding), time


def check_drawn(seed: int) -> None:
    data, time = drawn(seed)
    found, _ = events_of(data)

    assert looks_like_broker_log(data[: 1 << 16], is_named=True), seed
    assert [one[0] for one in WANTED] == [event.kind for event in found], (seed, data[:600])
    for event, (_, partition, fields) in zip(found, WANTED, strict=True):
        assert partition is None or event.topic_partition == TopicPartition(*partition), (seed, data[:600])
        assert fields.items() <= dict(event.fields).items(), (seed, data[:600])
    for number, event in enumerate(found[:4]):
        assert isinstance(event.time_ms, int), (seed, data[:600])
        shown = event.time_ms - START_MS - 1000 * number
        assert -1000 < shown - (ZONE_MS if time in ZONELESS and not event.zone_named else 0) <= 0, (seed, data[:600])


@pytest.mark.parametrize("seed", [*range(30), 423])  # of that an exception stands behind what a container writes
def test_layouts_that_are_drawn_give_the_same_events(seed):
    check_drawn(seed)


@pytest.mark.slow
def test_a_thousand_layouts_give_the_same_events():
    for seed in range(30, 1_030):
        check_drawn(seed)


@pytest.mark.parametrize(
    "time", ["[2025-11-07 21:48:{:02},950]", "2025-11-07 21:48:{:02}", "2025-11-07T21:48:{:02}.950Z"]
)
def test_lines_on_which_nothing_rests_are_folded_and_part_no_others_that_repeat(time):
    pair = (
        "{} INFO [ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Current offset 14 for partition t-0 is out of range, which typically implies a leader change. Reset fetch offset to 9 (x)\n"
        "{} WARN [ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Reset fetch offset for partition t-0 from 14 to current leader's latest offset 9 (x)\n"
    )
    text = "".join(pair.format(*[time.format(second)] * 2) for second in range(40))
    found, _ = events_of(text.encode())

    assert [(event.kind, event.repeats) for event in found] == [("fetch-trouble", 39), ("fetch-offset-reset", 39)]
    assert {event.last_time_ms - event.time_ms for event in found} == {39_000}
