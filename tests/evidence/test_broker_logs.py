"""Log files as evidence: recognised by content, rotated, gzipped, damaged, and with their node."""

import gzip

import pytest

from kforensics.damage import Absent, Span
from kforensics.errors import EvidenceNotFound
from kforensics.evidence import broker_logs
from kforensics.formats.log_lines.event import FOLDED, LogEventKind
from kforensics.formats.log_lines.table import told_kinds
from tests.builders.history import read_log

LINE = b"[2024-05-01 12:00:00,123] INFO [Log partition=t-0, dir=/d] Truncating to offset %d (kafka.log.Log)\n"
NAMED = b"[2024-05-01 12:00:00,100] INFO [KafkaServer id=7] started (kafka.server.KafkaServer)\n"


def test_every_log_of_a_recording_names_its_node(incident, untouched):
    root = incident("power-loss-4.x") / "logs"
    with untouched(root):
        files = {path: read_log(root, str(path.relative_to(root)), number=3) for path in sorted(root.rglob("*.*"))}

    for path, file in files.items():
        if path.suffix == ".properties":
            assert file is None
            continue
        assert file is not None
        assert int(path.parent.name.rpartition("-")[2]) == file.node_id
        assert file.problems == ()
        assert file.events_dropped == 0
    server = files[root / "broker-1" / "server.log"]
    assert server is not None
    cut = next(e for e in server.events if e.kind is LogEventKind.TRUNCATION)
    citation = server.cite(cut)
    assert isinstance(citation.line, int)
    assert isinstance(citation.span, Span)
    raw = (root / "broker-1" / "server.log").read_bytes()
    assert b"Truncating to offset" in raw.splitlines()[citation.line - 1]
    assert raw[citation.span.position : citation.span.end].rstrip() == raw.splitlines()[citation.line - 1]


def test_gzip_of_any_name_in_members(tmp_path):
    (tmp_path / "old").write_bytes(gzip.compress(NAMED + LINE % 5) + gzip.compress(LINE % 4))

    file = read_log(tmp_path, "old")

    assert file is not None
    assert file.is_compressed
    assert (file.node_id, [e.number("offset") for e in file.events if e.kind is LogEventKind.TRUNCATION]) == (7, [5, 4])
    assert file.problems == ()
    assert file.census.lines == 3


@pytest.mark.parametrize("damage", ["cut", "flip"])
def test_a_damaged_gzip_gives_what_it_still_holds(tmp_path, damage):
    whole = gzip.compress(b"".join(LINE % number for number in range(20_000)), mtime=0)
    middle = len(whole) // 2
    bad = whole[:middle] if damage == "cut" else whole[:middle] + bytes([whole[middle] ^ 0xFF]) + whole[middle + 1 :]
    (tmp_path / "server.log.gz").write_bytes(bad)

    file = read_log(tmp_path, "server.log.gz")

    assert file is not None
    assert len(file.problems) == 1
    assert 0 < len(file.events) <= 20_000


COLLECTED = {
    "containers": (b"broker-7  | ", b"broker-71 | "),
    "pods": (b"[pod/kafka-0/kafka] 2024-05-01T12:00:00.%09dZ ", b"[pod/kafka-1/kafka] 2024-05-01T12:00:00.%09dZ "),
    "syslog": (b"May  1 12:00:%02d one kafka[42]: ", b"May  1 12:00:%02d two kafka[42]: "),
}


@pytest.mark.parametrize("writers", COLLECTED.values(), ids=COLLECTED)
def test_lines_of_several_nodes_in_one_file_are_told_apart_by_what_is_before_them(writers, tmp_path):
    lines = [NAMED, NAMED.replace(b"id=7", b"id=71"), LINE % 5, LINE % 4]
    before = [writers[at % 2] for at in range(4)]
    before = [one % at if b"%" in one else one for at, one in enumerate(before)]
    other = b"zookeeper | " + LINE % 3
    (tmp_path / "all.log").write_bytes(b"".join(a + b for a, b in zip(before, lines, strict=True)))
    (tmp_path / "more.log").write_bytes((tmp_path / "all.log").read_bytes() + other)

    file, more = (read_log(tmp_path, name) for name in ("all.log", "more.log"))

    assert file is not None
    assert Absent.UNKNOWN is file.node_id
    assert [(7, 5), (71, 4)] == [(one.broker_id, one.number("offset")) for one in file.events[2:]]
    assert () == file.problems
    assert more is not None
    assert file.events == more.events
    assert "lines of nodes 7 and 71 are in one file, and 1 event of lines" in more.problems[0].message


def test_lines_of_several_nodes_that_begin_alike_are_left_out(tmp_path):
    """The node of most of them was taken for that of all: a truncation of one broker was told of another."""
    (tmp_path / "all.log").write_bytes(NAMED * 2 + NAMED.replace(b"id=7", b"id=8") + LINE % 5)

    file = read_log(tmp_path, "all.log")

    assert file is not None
    assert (Absent.UNKNOWN, ()) == (file.node_id, file.events)
    assert "lines of nodes 7 and 8 are in one file, and 4 events of lines" in file.problems[0].message


def test_what_is_left_out_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(broker_logs, "EVENTS_KEPT", 10)
    (tmp_path / "broker-9").mkdir()
    (tmp_path / "broker-9" / "x").write_bytes(b"".join(LINE % number for number in range(50)))

    file = read_log(tmp_path, "broker-9/x")

    assert file is not None
    assert (len(file.events), file.events_dropped, file.node_id) == (20, 30, 9)
    assert "30 events of 50" in file.problems[0].message


def test_other_files_and_missing_ones(tmp_path):
    (tmp_path / "00000000000000000000.log").write_bytes(b"\x00" * 100)
    (tmp_path / "bomb.gz").write_bytes(b"\x1f\x8b" + b"\xff" * 50)

    assert read_log(tmp_path, "00000000000000000000.log") is None
    assert read_log(tmp_path, "bomb.gz") is None
    with pytest.raises(EvidenceNotFound):
        read_log(tmp_path, "gone")


def test_a_log_without_a_node_says_so(tmp_path):
    (tmp_path / "x").write_bytes(LINE % 1)

    file = read_log(tmp_path / "x", ".")

    assert file is not None
    assert file.first_time_ms == file.last_time_ms == 1_714_564_800_123
    assert file.node_id is Absent.UNKNOWN


def test_the_log_of_a_zookeeper_server_is_named_as_what_it_is_at_no_cost(tmp_path):
    words = "Reading configuration from: zoo.cfg (org.apache.zookeeper.server.quorum.QuorumPeerConfig)"
    (tmp_path / "server.log").write_text(f"[2024-05-01 12:00:00,123] INFO {words}\n")
    file = read_log(tmp_path, "server.log")
    assert file is not None
    problem = broker_logs.silence_of(file)

    assert problem is not None
    assert (problem.is_foreign, problem.is_silent) == (True, False)
    assert "the log of a ZooKeeper server" in problem.message


def test_ranges_of_a_file_give_what_the_whole_file_gives(incident, monkeypatch):
    root = incident("epoch-truncate-3.9") / "logs" / "broker-1"
    whole = read_log(root, "server.log")
    monkeypatch.setattr(broker_logs, "RANGE_LENGTH", 7_001)
    parts = read_log(root, "server.log")

    assert whole is not None
    assert parts is not None
    assert [(e.kind, e.line, e.span) for e in whole.events if not e.repeats and not _is_folded(e)] == [
        (e.kind, e.line, e.span) for e in parts.events if not e.repeats and not _is_folded(e)
    ]
    assert (whole.census.lines, whole.node_id) == (parts.census.lines, parts.node_id)


def _is_folded(event):
    return event.kind in FOLDED | told_kinds()
