"""Each row of the table of lines finds a line of its own, here with other names and numbers than anywhere else."""

from pathlib import Path

import pytest

from kforensics.formats.log_lines.anchors import counted_kinds, places_of
from kforensics.formats.log_lines.event import Weight
from kforensics.formats.log_lines.scan import scan_log
from kforensics.formats.log_lines.table import bulk_kinds, harmless_kinds, rows, sections, told_kinds
from kforensics.formats.log_lines.unwrap import find_message

LINES = [
    line.split("\t")
    for line in Path(__file__).with_name("lines.tsv").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]


def test_each_row_finds_a_line_and_no_other_row_before_it():
    found = [find_message(line.replace("\\n", "\n").encode()) for _, line in LINES]

    assert [kind for kind, _ in LINES] == [one.message.row.section.kind if one else None for one in found]
    assert {one.message.row.number for one in found if one} == {row.number for row in rows()}


@pytest.mark.parametrize("number", range(0, len(LINES), 50))
@pytest.mark.some(8)
def test_what_is_found_in_one_line_is_found_in_a_file(number):
    some = LINES[number : number + 50]

    for kind, line in some:
        (window,) = scan_log([line.replace("\\n", "\n").encode() + b"\n"])
        assert kind in {event.kind for event in window.events}, line


@pytest.mark.parametrize("counted", [bulk_kinds(), harmless_kinds() | bulk_kinds(), told_kinds()])
@pytest.mark.some(1)
def test_no_line_is_counted_unread_for_one_of_another_kind(counted):
    numbers, kinds = counted_kinds(frozenset(counted))
    for kind, line in LINES:
        found = numbers[places_of(line.partition("\\n")[0].encode()).anchors]

        assert len(set(found)) != 1 or found[0] < 0 or kinds[found[0]] == kind, line


@pytest.mark.parametrize(
    ("counted", "line", "kind"),
    [
        (
            "[ZooKeeperClient Kafka server] Connected. (kafka.zookeeper.ZooKeeperClient)",
            "[ZooKeeperClient Kafka server] Session expired. (kafka.zookeeper.ZooKeeperClient)",
            "session-lost",
        ),
        (
            "java.io.IOException: /d is not a readable log directory",
            "java.io.IOException: No space left on device",
            "disk-cause",
        ),
        (
            "[MetadataLoader id=1] initializeNewPublishers: waiting (org.apache.kafka.image.loader.MetadataLoader)",
            "[MetadataLoader id=1] the sky is green (org.apache.kafka.image.loader.MetadataLoader)",
            None,
        ),
    ],
)
def test_a_line_that_begins_like_one_that_is_counted_is_read(counted, line, kind):
    text = "".join(f"[2024-05-01 12:00:0{at},000] INFO {one}\n" for at, one in enumerate([counted, counted, line]))

    (window,) = scan_log([text.encode()], counted=told_kinds())

    assert [event.kind for event in window.events if event.line == 3] == ([kind] if kind else [])
    assert sum(1 + event.repeats for event in window.events if event.line < 3) == 2
    assert window.census.events == 2 + (kind is not None)


def test_every_row_and_section_says_what_it_is():
    versions = {row.versions for row in rows()}

    assert all(part.count(".") in {1, 2} for one in versions for part in one.replace("-", ",").split(","))
    assert {section.weight for section in sections()} == set(Weight)


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        (
            "Found directory /srv/lost+found, 'lost+found' is not in the form of topic-partition",
            {"path": "/srv/lost+found"},
        ),
        ("Shutdown broker because all log dirs in /a, /b have failed", {"reason": "all log dirs in /a, /b"}),
        ("Unable to register broker 3 because the controller returned error X_Y", {"broker": 3, "error": "X_Y"}),
        (
            "Error while renaming dir for t-0 in log dir D:\\kf (kafka.log.X)",
            {"directory": "D:\\kf", "reason": "renaming dir for t-0"},
        ),
        (
            "Could not read file /srv/t-0/00000000000000004020.log",
            {"path": "/srv/t-0/00000000000000004020.log", "base_offset": 4020},
        ),
        (
            "Creating new QuorumController with clusterId my.cluster. (kafka.controller.QuorumController)",
            {"cluster": "my.cluster"},
        ),
        (
            "Creating new QuorumController with clusterId 4kX1r5JQkqJjI0RRIxCkQ-, authorizer Optional.empty.",
            {"cluster": "4kX1r5JQkqJjI0RRIxCkQ-"},
        ),
        ("Cluster ID = y4kX1r5JQkqJjI0RRIxCkQ", {"cluster": "y4kX1r5JQkqJjI0RRIxCkQ"}),
        (
            "Downgrading metadata.version from 4.3-IV0 to 4.1-IV1. (o.a.k.X)",
            {"level_name": "4.3-IV0", "level_name_after": "4.1-IV1"},
        ),
    ],
)
def test_fields_have_the_values_of_the_line(line, fields):
    found = find_message(line.encode())

    assert found is not None
    assert fields.items() <= dict(found.message.fields).items()


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("[2026-03-01 10:00:00,123] ERROR [SocketServer nodeId=1] Error while accepting connection (k.X)", "connection-trouble"),
        ("java.io.IOException: Too many open files", "files-exhausted"),
        ("[9412.1] Out of memory: Killed process 812 (java) total-vm:9kB", "jvm-died"),
        ("[2026-03-01T10:00:00.123+0000][info][gc] GC(3) Pause Full (G1 Compaction Pause) 240M->230M(256M) 2345.1ms", "pause"),
        ("[2026-03-01T10:00:00.123+0000][info][gc] GC(3) Pause Young (Normal) (G1 Pause) 24M->5M(256M) 7.1ms", "pause-short"),
        (("[2026-03-01 10:00:00,123] ERROR [Broker id=1] Skipped the become-leader state change with correlation id 3 "
         "from controller 2 epoch 5 for partition t-0 (last update controller epoch 5) since the replica for the "
         "partition is offline due to storage error x"), "leader-offline"),
        (("[2026-03-01 10:00:00,123] ERROR [KafkaServer id=1] Timed out while waiting for the initial broker metadata "
         "update to be published"), "start-failed"),
        ("at most 5 Connection to the database failed", None),
        ("[2026-03-01 10:00:00,123] INFO Connection pool of orders-3 is full (com.example.Pool)", None),
        ("[2026-03-01 10:00:00,123] ERROR Request 17 failed (com.example.Api)", None),
    ],
)  # fmt: skip
def test_what_surrounds_kafka_is_told_from_what_only_looks_alike(line, kind):
    found = find_message(line.encode())

    assert (found.message.row.section.kind if found else None) == kind
