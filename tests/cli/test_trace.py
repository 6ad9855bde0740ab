"""`kforensics trace`: the copies of a record, what became of it, and when its absence is proven."""

import base64
import hashlib
import json

import pytest

from kforensics.cli.app import run
from tests import salvaged, traced
from tests.builders.coordinators import batch
from tests.builders.directories import copied, log_dir
from tests.captures import take
from tests.schemas import reason
from tests.trust.hostile import sound_batch, write_partition

FINAL = "snapshots/99-final"
KILLED = "snapshots/02-old-leader-killed"
SEGMENT = f"{0:020d}.log"


@pytest.fixture(scope="module")
def unclean(incident):
    return incident("unclean-election-4.x")


def trace(capsys, *arguments):
    code = run(["trace", *map(str, arguments), "--format", "json"])
    printed = capsys.readouterr()
    return code, json.loads(printed.out) if printed.out.startswith("{") else printed.err


def slow(name):
    return pytest.param(name, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    "name",
    [
        "hw-loss-0.10",
        slow("unclean-election-4.x"),
        slow("all-codecs-4.x"),
        slow("consumer-ahead-4.x"),
        slow("tiered-3.9"),
    ],
)
def test_keys_are_where_another_decoder_finds_them(name, incident):
    assert list(traced.check(incident(name), 1)) == []


def test_a_truncated_record_is_lost_with_what_took_it(capsys, unclean):
    inputs = (unclean / FINAL, unclean / "logs", "--before", unclean / KILLED)
    code, document = trace(capsys, *inputs, "-t", "orders", "-p", "0", "--offset", "62")

    lost, present = sorted(document["records"], key=lambda one: one["leader_epoch"])
    assert (code, document["answer"]["state"]) == (1, "lost")
    assert (lost["state"], lost["committed"], lost["leader_epoch"]) == ("lost", "certain", 0)
    assert {copy["in"] for copy in lost["copies"]} == {"snapshot"}
    assert [fate["kind"] for fate in lost["fate"]] == ["truncated", "truncated"]
    assert all(fate["citations"] for fate in lost["fate"])
    assert "unclean election" in lost["fate"][0]["statement"]
    assert (present["state"], present["leader_epoch"]) == ("present", 1)
    assert [copy["broker_id"] for copy in present["copies"] if copy["in"] == "live"] == [1, 2, 3]


def test_a_directory_that_a_start_sets_aside_holds_a_record_until_then(capsys, unclean, tmp_path):
    final = copied(unclean / FINAL, tmp_path / "final")
    (final / "broker-3/orders-0/partition.metadata").unlink()
    code, document = trace(capsys, final, "-t", "orders", "-p", "0", "--offset", "10")

    assert (code, document["answer"]["state"]) == (1, "present")
    assert "the start of broker 3 sets its directory aside and begins an empty log" in document["answer"]["headline"]


@pytest.mark.parametrize(
    "given", [(), ("broker-2",), ("broker-3", "controller-100"), ("broker-2/orders-0", "controller-100")]
)
@pytest.mark.some(2)
def test_a_record_at_an_offset_of_an_unclean_election_may_not_be_the_first_one_there(given, capsys, unclean):
    inputs = [unclean / FINAL / name for name in given or ("",)]
    code, document = trace(capsys, *inputs, "-t", "orders", "-p", "0", "--offset", "62")
    answer = document["answer"]

    assert (code, answer["state"]) == (3, "unknown")
    assert answer["headline"].startswith("NOW PRESENT: 1 matching record of orders-0, in ")
    assert "Another record may have had offset 62 before: no input shows whether" in answer["headline"]
    # Below the election both logs are the same.
    code, document = trace(capsys, *inputs, "-t", "orders", "-p", "0", "--offset", "35")
    assert (code, document["answer"]["state"]) == (0, "present")
    assert "before" not in document["answer"]["headline"]


def test_a_truncated_offset_that_no_input_holds_is_lost_by_its_lines(capsys, unclean):
    code, document = trace(capsys, unclean / FINAL, unclean / "logs", "-t", "orders", "-p", "0", "--offset", "100")

    assert (code, document["answer"]["state"]) == (1, "lost")
    [lost] = document["records"]
    assert lost["copies"] == []
    assert reason(lost, "timestamp_ms") == "unknown"
    assert lost["fate"]


def test_a_record_is_lost_whose_offset_another_one_has_now_though_no_input_holds_a_copy(capsys, unclean):
    asked = ("-t", "orders", "-p", "0", "--offset")
    code, document = trace(capsys, unclean / FINAL, unclean / "logs", *asked, "62")
    before, kept = trace(capsys, unclean / FINAL, unclean / "logs", *asked, "59")

    lost, present = sorted(document["records"], key=lambda one: one["state"])
    assert (code, document["answer"]["state"]) == (1, "lost")
    assert (lost["state"], lost["committed"], lost["copies"]) == ("lost", "possible", [])
    assert (present["state"], len(present["copies"])) == ("present", 3)
    assert (before, [one["state"] for one in kept["records"]]) == (0, ["present"])
    assert "orders-0: offset 62 is not served any more, or holds another record" in document["answer"]["tell"][0]


@pytest.mark.slow
def test_a_key_that_was_never_produced_was_never_here(capsys, unclean):
    inputs = salvaged.arguments_of(unclean)
    code, document = trace(capsys, *inputs, "-t", "orders", "--key", "never-produced")

    assert (code, document["answer"]["state"], document["records"]) == (0, "never-here", [])
    assert [one["gaps"] for one in document["looked_at"]["partitions"]] == [[]] * 4
    assert all(one["offsets"] for one in document["looked_at"]["partitions"])


def test_absence_is_unknown_without_a_replica(capsys, unclean):
    final = unclean / FINAL
    code, document = trace(
        capsys,
        final / "broker-2",
        final / "broker-3",
        final / "controller-100",
        "-t",
        "orders",
        "--key",
        "never-produced",
    )

    reasons = {gap["reason"] for one in document["looked_at"]["partitions"] for gap in one["gaps"]}
    assert (code, document["answer"]["state"]) == (3, "unknown")
    assert "missing-replica" in reasons


def test_absence_is_unknown_where_truncated_records_are_held_by_no_input(capsys, unclean):
    _, document = trace(capsys, unclean / FINAL, unclean / "logs", "-t", "orders", "-p", "0", "--key", "ord-nowhere")

    gaps = [gap for one in document["looked_at"]["partitions"] for gap in one["gaps"]]
    assert document["answer"]["state"] == "unknown"
    assert "truncated" in {gap["reason"] for gap in gaps}


def test_damage_in_the_range_leaves_absence_unproven(capsys, unclean, tmp_path):
    copied(unclean / FINAL, tmp_path / "final")
    for broker in (1, 2, 3):
        path = tmp_path / "final" / f"broker-{broker}" / "orders-3" / SEGMENT
        data = bytearray(path.read_bytes())
        data[200] ^= 1
        path.write_bytes(data)
    code, document = trace(
        capsys, tmp_path / "final", unclean / "logs", "-t", "orders", "-p", "3", "--key", "never-produced"
    )

    assert code != 0
    assert document["answer"]["state"] == "unknown"
    assert document["looked_at"]["partitions"][0]["gaps"]


def test_nothing_of_a_payload_is_shown_unless_it_is_asked_for(capsys, unclean):
    plain = "ord-000001"
    digest = hashlib.sha256(plain.encode()).hexdigest()
    inputs = (str(unclean / FINAL), "-t", "orders", "-p", "0")
    for form in ("json", "text"):
        assert run(["trace", *inputs, "--key-sha256", digest, "--format", form]) == 0
        assert plain not in capsys.readouterr().out
    assert run(["trace", *inputs, "--key", plain, "--format", "json"]) == 0
    hidden = capsys.readouterr().out
    assert plain not in hidden
    _, shown = trace(capsys, *inputs, "--key", plain, "--show-payload")
    assert base64.b64decode(shown["records"][0]["key"]["base64"]).decode() == plain
    assert {key for key in shown["records"][0] if key not in json.loads(hidden)["records"][0]} == {
        "key",
        "value",
        "headers",
    }


def test_a_key_in_an_unexpected_partition_is_a_note(capsys, unclean):
    code, document = trace(capsys, unclean / FINAL, "-t", "orders", "--key", "ord-000001")

    assert code == 0
    assert document["placement"] == {"partitions": 4, "is_recorded": True, "murmur2": 1, "crc32": 2}
    assert [(one["code"], one["partition"]) for one in document["findings"]] == [("KF310", 0)]


@pytest.mark.slow
def test_time_header_and_value_narrow_the_search(capsys, unclean):
    inputs = (unclean / FINAL, "-t", "orders", "-p", "0")
    _, document = trace(capsys, *inputs, "--key", "ord-000001", "--show-payload")
    [record] = document["records"]
    value = base64.b64decode(record["value"]["base64"]).decode("latin-1")
    time = record["timestamp_ms"]

    for sought, found in (
        (("--time", f"{time}..{time + 1}", "--key", "ord-000001"), 1),
        (("--time", f"{time + 1}..{time + 2}", "--key", "ord-000001"), 0),
        (("--value", value[:8], "--offset", "0"), 1),
        (("--header", "no-such-header", "--offset", "0"), 0),
    ):
        _, document = trace(capsys, *inputs, *sought)
        assert len(document["records"]) == found, sought


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "what to trace is needed"),
        (("--key-sha256", "abc"), "64 hexadecimal digits"),
        (("--key-base64", "?"), "not base64"),
        (("--key", "a", "--key-base64", "YQ=="), "name the same thing"),
        (("--offset", "1", "--all-partitions", "-p", "0"), "contradict each other"),
        (("--offset", "1", "-p", "77"), "no partition 77"),
    ],
)
def test_what_can_not_be_searched_is_refused(capsys, unclean, arguments, words):
    code, complaint = trace(capsys, unclean / FINAL, "-t", "orders", *arguments)

    assert code == 2
    assert words in complaint


def test_a_pattern_without_a_linear_matcher_is_refused(capsys, unclean, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "re2", None)
    code, complaint = trace(capsys, unclean / FINAL, "-t", "orders", "--value-regex", "a.*b")

    assert code == 2
    assert "kforensics[regex]" in complaint


def test_a_record_that_will_be_truncated_is_present_and_a_warning(capsys, unclean):
    """The old leader's disk beside the logs of those that replaced it."""
    final = unclean / FINAL
    code, document = trace(
        capsys,
        unclean / KILLED / "broker-1",
        *(final / name for name in ("broker-2", "broker-3", "controller-100")),
        *("-t", "orders", "-p", "0", "--offset", "62"),
    )

    old = next(one for one in document["records"] if one["leader_epoch"] == 0)
    assert (code, old["state"]) == (1, "present")
    assert [fate["kind"] for fate in old["fate"]] == ["will-be-truncated"]
    assert {one["code"] for one in document["findings"]} & {"KF201", "KF202"}


def test_what_a_start_takes_away_is_in_the_first_line(capsys, unclean):
    down = unclean / "snapshots" / "03-old-leader-down-live"

    _, document = trace(capsys, down, "-t", "orders", "--key", "ord-000417")

    assert (
        ". But broker 1 will truncate its log to offset 60 when it follows broker 2" in document["answer"]["headline"]
    )


@pytest.mark.parametrize(
    ("inputs", "is_known", "is_held"),
    [
        # What a broker knows of its leaders ends where it stopped.
        (("03-old-leader-down-live/broker-1",), False, False),
        (("99-final/broker-1", "99-final/broker-2"), False, False),
        # Any of them holds it.
        (("99-final/broker-1", "99-final/broker-2", "99-final/broker-3"), False, True),
        (("99-final/broker-1", "--leader", "1"), True, True),
    ],
)
def test_one_replica_does_not_show_that_the_leader_holds_a_record(capsys, unclean, inputs, is_known, is_held):
    given = [one if "/" not in one else unclean / "snapshots" / one for one in inputs]

    _, document = trace(capsys, *given, "-t", "orders", "--offset", "5", "-p", "0")

    assert "present" == document["records"][0]["state"]
    assert is_held is ("whether the leader holds it is unknown" not in document["answer"]["headline"])
    assert {is_known} == {one["leader"]["is_known"] for one in document["looked_at"]["partitions"]}


def test_cleaned_offsets_are_superseded_and_absent_keys_unknown(capsys, incident):
    root = incident("all-codecs-4.x")
    inputs = (root / FINAL, root / "logs", "-t", "compacted")
    code, document = trace(capsys, *inputs, "--offset", "3")
    [record] = document["records"]
    assert (code, record["state"], record["copies"]) == (0, "superseded", [])
    assert [fate["kind"] for fate in record["fate"]] == ["cleaned"]

    code, document = trace(capsys, *inputs, "--key", "never-produced")
    reasons = {gap["reason"] for one in document["looked_at"]["partitions"] for gap in one["gaps"]}
    assert (code, document["answer"]["state"]) == (3, "unknown")
    assert "compacted" in reasons


def test_offsets_below_the_log_start_are_deleted_on_purpose(capsys, incident):
    root = incident("all-codecs-4.x")
    code, document = trace(capsys, root / FINAL, root / "logs", "-t", "purged", "--offset", "3")

    [record] = document["records"]
    assert (code, record["state"]) == (0, "deleted-on-purpose")
    assert "below-log-start" in [fate["kind"] for fate in record["fate"]]


def test_a_record_of_an_earlier_copy_is_in_remote_storage_now(capsys, incident):
    root = incident("tiered-3.9")
    before = [part for one in sorted((root / "snapshots").iterdir())[:-1] for part in ("--before", one)]
    code, document = trace(capsys, root / FINAL, *before, "-t", "archive", "-p", "0", "--offset", "175")

    [record] = document["records"]
    assert (code, record["state"]) == (0, "in-remote-storage")
    assert [fate["kind"] for fate in record["fate"]] == ["remote"]


@pytest.mark.slow
def test_copies_without_a_topic_id_are_of_the_record_that_has_one(capsys, incident):
    root = incident("reassignment-jbod-2.8")
    _, document = trace(capsys, *salvaged.arguments_of(root), "-t", "inventory", "-p", "2", "--key", "ord-102223")

    [record] = document["records"]
    assert {"live", "future", "snapshot"} == {copy["in"] for copy in record["copies"]}


def test_an_unclean_election_on_record_leaves_absence_unproven(capsys, unclean):
    """The log as it is now covers every offset, and records that it replaced are among no input."""
    code, document = trace(capsys, unclean / FINAL, "-t", "orders", "-p", "0", "--key", "ord-nowhere")

    [gap] = document["looked_at"]["partitions"][0]["gaps"]
    assert (code, document["answer"]["state"]) == (3, "unknown")
    assert gap["reason"] == "truncated"


@pytest.mark.slow
def test_records_that_are_too_many_to_hold_are_read_again_and_are_the_same(incident, capsys, monkeypatch):
    inputs = [
        *salvaged.arguments_of(incident("consumer-ahead-4.x")),
        "-t",
        "billing",
        "--time",
        "2000-01-01..2100-01-01",
    ]
    _, held = trace(capsys, *inputs)
    monkeypatch.setattr("kforensics.commands.tracing.scan.MOST_HELD", 0)
    monkeypatch.setattr("kforensics.commands.tracing.topic_evidence.SLICE_OFFSETS", 16)
    _, read_again = trace(capsys, *inputs)
    run(["trace", *map(str, inputs), "--format", "jsonl"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert len(held["records"]) > 100
    assert read_again == held
    assert [{"type": "record", **one} for one in held["records"]] == [one for one in lines if one["type"] == "record"]
    assert lines[0] == {"type": "answer", **held["answer"]}


@pytest.mark.slow
def test_a_record_that_was_truncated_before_it_was_committed_is_not_called_never_here(incident, capsys):
    root = incident("epoch-truncate-2.8")
    final = root / "snapshots" / "99-final"
    _, alone = trace(capsys, final, "-t", "clicks", "--key", "trd-000583")
    _, logged = trace(capsys, final, root / "logs", "-t", "clicks", "--key", "trd-000583")
    _, never = trace(capsys, *salvaged.arguments_of(root), "-t", "clicks", "--key", "never-produced")

    assert alone["answer"]["state"] == logged["answer"]["state"] == "unknown"
    assert "no server.log of broker 1, 2 and 3" in alone["answer"]["headline"]
    assert never["answer"]["state"] == "never-here"


@pytest.mark.parametrize(
    ("name", "topic", "partition", "offset", "is_glance_enough"),
    [
        ("silent-divergence-4.x", "audit", 1, 100, True),
        ("epoch-truncate-3.9", "trades", 3, 126, True),
        # A broker that was killed, an offset that no log has: the logs are read.
        ("power-cut-2.8", "readings", 0, 5, False),
        ("unclean-election-4.x", "orders", 0, 1_000, False),
    ],
)
@pytest.mark.some(2)
def test_a_glance_at_one_offset_says_what_reading_all_says(
    name, topic, partition, offset, is_glance_enough, incident, capsys, monkeypatch
):
    given = (incident(name) / "snapshots" / "99-final", "-t", topic, "-p", partition, "--offset", offset)
    code, glanced = trace(capsys, *given)
    monkeypatch.setattr("kforensics.commands.trace.outline_of", lambda place: None)
    other_code, whole = trace(capsys, *given)

    assert (code, glanced["records"], glanced["findings"]) == (other_code, whole["records"], whole["findings"])
    assert glanced["answer"]["headline"] == whole["answer"]["headline"]
    assert (glanced["looked_at"]["bytes"] < whole["looked_at"]["bytes"]) is is_glance_enough


@pytest.mark.parametrize(
    ("name", "topic", "partition", "span_ms", "is_index_enough"),
    [
        ("silent-divergence-4.x", "audit", 1, 50, True),
        ("epoch-truncate-3.9", "trades", 3, 50, True),
        # A broker that was killed; no record of the span.
        ("power-cut-2.8", "readings", 0, 50, False),
        ("silent-divergence-4.x", "audit", 1, 0, False),
    ],
)
@pytest.mark.some(2)
def test_a_span_of_time_by_the_indexes_says_what_reading_all_says(
    name, topic, partition, span_ms, is_index_enough, incident, capsys, monkeypatch
):
    given = (incident(name) / "snapshots" / "99-final", "-t", topic, "-p", partition)
    _, one = trace(capsys, *given, "--offset", 100)
    time = one["records"][0]["timestamp_ms"]
    span = ("--time", f"{time}..{time + span_ms}" if span_ms else "0..1")
    code, found = trace(capsys, *given, *span)
    monkeypatch.setattr("kforensics.commands.tracing.partition_search.search_by_time", lambda *_: None)
    other_code, whole = trace(capsys, *given, *span)

    assert (code, found["records"], found["findings"]) == (other_code, whole["records"], whole["findings"])
    assert found["answer"]["headline"] == whole["answer"]["headline"]
    assert bool(found["records"]) is bool(span_ms)
    assert (found["looked_at"]["bytes"] < whole["looked_at"]["bytes"]) is is_index_enough


def test_timestamps_that_do_not_rise_are_found_behind_an_index_entry(tmp_path, capsys, monkeypatch):
    """An entry says the largest timestamp up to its offset: an older record behind it is in the span all the same, and one before it is not."""
    times = [1_000, 5_000, 2_000, 9_000, 2_500, 9_500]
    batches = [batch(at, [(b"k%d" % at, b"v")], time_ms=time) for at, time in enumerate(times)]
    positions = [sum(map(len, batches[:at])) for at in range(len(batches))]
    for number in (1, 2):
        root = log_dir(tmp_path / f"broker-{number}", number)
        (root / ".kafka_cleanshutdown").write_bytes(b"")
        folder = root / "orders-0"
        (folder / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
        (folder / SEGMENT).write_bytes(b"".join(batches))
        index = b"".join(at.to_bytes(4, "big") + positions[at].to_bytes(4, "big") for at in (1, 3, 5))
        (folder / SEGMENT.replace(".log", ".index")).write_bytes(index)
        entries = b"".join(
            time.to_bytes(8, "big") + at.to_bytes(4, "big") for time, at in ((1_000, 0), (5_000, 1), (9_000, 3))
        )
        (folder / SEGMENT.replace(".log", ".timeindex")).write_bytes(entries)
    given = (tmp_path / "broker-1", tmp_path / "broker-2", "-t", "orders", "--time")
    spans = {"2000..3000": [2, 4], "5001..9001": [3], "9500..9501": [5], "0..1001": [0], "3000..4000": []}

    for span, offsets in spans.items():
        _, document = trace(capsys, *given, span)
        assert [one["offset"] for one in document["records"]] == offsets, span
    _, late = trace(capsys, *given, "9001..10000")
    assert late["looked_at"]["records"] == 2


@pytest.mark.parametrize("search", [("--offset", "2"), ("--key", "k2")])
def test_a_record_below_the_log_start_whose_bytes_are_left_is_not_present(search, tmp_path, capsys):
    for number in (1, 2):
        root = log_dir(tmp_path / f"broker-{number}", number)
        (root / ".kafka_cleanshutdown").write_bytes(b"")
        (root / "log-start-offset-checkpoint").write_text("0\n1\norders 0 5\n")
        (root / "orders-0" / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
        batches = [batch(at, [(b"k%d" % at, b"v")]) for at in range(10)]
        (root / "orders-0" / SEGMENT).write_bytes(b"".join(batches))
    _, below = trace(capsys, tmp_path / "broker-1", tmp_path / "broker-2", "-t", "orders", *search)
    _, above = trace(capsys, tmp_path / "broker-1", tmp_path / "broker-2", "-t", "orders", "--key", "k5")

    (record,) = below["records"]
    assert (record["state"], len(record["copies"])) == ("deleted-on-purpose", 2)
    assert [fate["kind"] for fate in record["fate"]] == ["below-log-start"]
    assert "its bytes are left" in record["fate"][0]["statement"]
    assert all("log start of" in copy["until"]["statement"] for copy in record["copies"])
    assert below["answer"]["state"] != "present"
    assert [one["state"] for one in above["records"]] == ["present"]
    assert not any("log start of" in copy["until"]["statement"] for copy in above["records"][0]["copies"])


@pytest.mark.parametrize("hours", ["${RETENTION_HOURS}", "--5", "9" * 5_000])
def test_a_setting_that_is_no_number_is_not_taken_for_one(hours, tmp_path, capsys):
    root = log_dir(tmp_path / "broker-1")
    (root / "orders-0" / SEGMENT).write_bytes(batch(0, [(b"k", b"v")]))
    settings = tmp_path / "server.properties"
    settings.write_text(f"node.id=1\nlog.cleanup.policy=delete\nlog.retention.hours={hours}\n")
    _, document = trace(capsys, root, settings, "-t", "orders", "--key", "k")

    assert [one["state"] for one in document["records"]] == ["present"]


def test_a_topic_may_have_the_name_of_a_reason_for_absence(tmp_path, capsys):
    root = log_dir(tmp_path / "broker-1", partitions=("unknown-0",))
    (root / "unknown-0" / SEGMENT).write_bytes(batch(0, [(b"k", None)]))
    _, document = trace(capsys, root, "-t", "unknown", "--key", "k", "--show-payload")

    (record,) = document["records"]
    assert (record["topic"], reason(record, "topic_id")) == ("unknown", "unknown")
    assert (record["key"], record["value"], record["value_length"]) == ({"base64": "aw=="}, None, None)


def test_offsets_that_a_snapshot_holds_are_not_said_to_be_held_by_no_input(capsys, incident):
    root = incident("consumer-ahead-4.x") / "snapshots"
    asked = (root / "99-final", "-t", "billing", "-p", "0", "--offset", "100")

    code, document = trace(capsys, *asked, "--before", root / "02-leader-killed")

    assert (1, "lost") == (code, document["answer"]["state"])
    assert ["truncated"] == [one["reason"] for one in document["looked_at"]["partitions"][0]["gaps"]]
    assert not [one for one in document["answer"]["unknown"] if "no input holds them" in one]


@pytest.mark.parametrize("with_logs", [False, True])
@pytest.mark.some(1)
def test_what_a_capture_left_on_the_broker_is_not_said_to_be_gone(incident, tmp_path, capsys, with_logs):
    recorded = incident("unclean-election-4.x")
    snapshot = recorded / "snapshots" / "03-old-leader-down-live"
    captures = []
    for node in ("broker-1", "broker-2", "broker-3", "controller-100"):
        logs = [recorded / "logs" / node] if with_logs else []
        captures.append(take([snapshot / node, *logs], tmp_path / f"{node}.kfc"))

    code = run(["trace", *map(str, captures), "-t", "orders", "-p", "0", "--offset", "70"])
    screen = " ".join(capsys.readouterr().out.split())

    assert "no copy left" not in screen
    if with_logs:  # a line says that broker 1 truncated it since
        assert 1 == code
        assert screen.startswith(
            "LOST: 1 matching record of orders-0 held by no live replica (1 committed; no copy was read)."
        )
    else:
        assert 3 == code
        assert screen.startswith(
            "NOT FOUND, AND THAT IS NO PROOF: 0 records of orders-0 read, none matches. Open: orders-0 at offsets 0 to 84: their bytes stayed on broker 2"
        )


def test_how_many_partitions_there_are_is_not_guessed(capsys, tmp_path):
    for number in (2, 12):
        write_partition(tmp_path, f"clicks-{number}", b"".join(sound_batch(offset, key=b"k7") for offset in range(3)))

    _, document = trace(capsys, tmp_path, "-t", "clicks", "--key", "k7")
    assert len(document["records"]) == 6
    assert [one["code"] for one in document["findings"] if one["code"] == "KF310"] == []
    run(["trace", str(tmp_path), "-t", "clicks", "--key", "k7"])
    assert "chose the partition itself" not in capsys.readouterr().out


def test_only_offsets_that_are_missing_are_gaps(capsys, tmp_path):
    write_partition(tmp_path / "whole", "clicks-0", b"".join(sound_batch(offset) for offset in range(9)))
    write_partition(tmp_path / "holed", "clicks-0", b"".join(sound_batch(offset) for offset in (0, 1, 5, 6)))

    run(["trace", str(tmp_path / "whole"), "-t", "clicks", "--offset", "4"])
    assert "0 gaps" in capsys.readouterr().out
    run(["trace", str(tmp_path / "holed"), "-t", "clicks", "--offset", "5"])
    assert "1 gap" in capsys.readouterr().out
