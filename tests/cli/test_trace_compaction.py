"""What `kforensics trace` says of compacted topics, whose replicas were cleaned at different times: brokers 1 and 2 clean, broker 3 does not."""

import hashlib
import json
from collections import defaultdict
from functools import cache

import pytest

from kforensics.cli.app import run
from tests import salvaged, traced

pytestmark = pytest.mark.usefixtures("read_once")

EVERY_TIME = "2000-01-01..2100-01-01"
RECORDINGS = ("compaction-4.x", "compaction-1.1")


def trace(capsys, *arguments):
    code = run(["trace", *map(str, arguments), "--format", "json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module", params=RECORDINGS)
def recording(request, compaction):
    root = compaction(request.param)
    return root, cache(lambda topic: traced.on_disk(root / "snapshots", topic)[topic])


# The two of most records are read whole in the slow tests.
TOPICS = [
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("profiles", "sessions")),
    "accounts",
    "lagged",
    "ledger",
]


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.some(2)
def test_every_record_is_where_another_decoder_finds_it_and_explained(topic, recording, capsys):
    root, disks = recording
    _, document = trace(capsys, *salvaged.arguments_of(root), "-t", topic, "--time", EVERY_TIME)
    inputs = [one["path"] for one in document["inputs"]]
    copies = {
        (one["partition"], one["offset"], str(traced._whole(inputs[copy["input"]], copy["path"])))
        for one in document["records"]
        for copy in one["copies"]
    }
    lost = {(one["partition"], one["offset"]) for one in document["records"] if one["state"] == "lost"}
    rows = [json.loads(line) for line in (root / "produced.jsonl").read_text().splitlines()]

    assert copies == set().union(*disks(topic).values())
    # What the leader alone had when another was elected; what a cleaner removed is none of it.
    assert lost == {(row["partition"], row["offset"]) for row in rows if row["topic"] == topic and row["acks"] == "1"}
    assert "unknown" not in {one["state"] for one in document["records"]}
    assert "KF204" not in {one["code"] for one in document["findings"]}


@pytest.mark.some(1)
def test_an_erasure_names_every_place_and_until_when(recording, capsys):
    root, disks = recording
    final = root / "snapshots" / "99-final"
    inputs = (final, root / "logs")
    code, document = trace(capsys, *inputs, "-t", "accounts", "--key", "acc-0-005", "--erasure")
    own = {place for place in disks("accounts")[b"acc-0-005"] if place[2].startswith(f"{final}/")}
    until = defaultdict(list)
    for one in document["records"]:
        for copy in one["copies"]:
            until[one["value_length"] is None, copy["in"]].append(copy["until"]["statement"])

    assert (code, document["answer"]["state"]) == (1, "bytes-left")
    assert document["erasure"]["places"] == len(own) > 0
    assert {record["state"] for record in document["records"]} == {"deleted-on-purpose"}
    assert all("passes the later record at offset 81" in words for words in until[False, "live"])
    assert all("delete.retention.ms" in words for words in until[True, "live"])
    for one in document["erasure"]["files"]:
        path = traced._whole(document["inputs"][one["input"]]["path"], one["path"])
        assert one["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.some(1)
def test_no_bytes_are_left_of_a_key_that_was_erased_and_cleaned(recording, capsys):
    root, _ = recording
    final = root / "snapshots" / "99-final"
    given = [path for path in final.iterdir() if path.name != "broker-3"]
    replicas = ["--partition", "0"]
    _, without = trace(capsys, *given, "-t", "accounts", *replicas, "--key", "acc-0-005", "--erasure")
    _, wrong = trace(capsys, final, "-t", "accounts", "--key", "never-produced", "--erasure")
    _, absent = trace(capsys, final, "-t", "accounts", "--key", "never-produced")

    # Broker 3 holds the partition and is not among the inputs, or nothing says who does.
    assert without["answer"]["state"] in {"unknown", "bytes-left"}
    assert wrong["answer"]["state"] == ("no-bytes-left" if root.name == "compaction-4.x" else "unknown")
    assert absent["answer"]["state"] == "unknown"


def test_due_times_follow_the_settings_of_the_topic(compaction, capsys):
    root = compaction("compaction-4.x")
    final = root / "snapshots" / "99-final"
    _, lagged = trace(capsys, final, "-t", "lagged", "--key", "lag-0-000")
    _, kept = trace(capsys, final, "-t", "profiles", "--key", "pro-0-005")
    first = lagged["records"][0]
    tombstone = kept["records"][-1]
    horizons = [copy["until"]["not_before_ms"] for copy in tombstone["copies"] if copy["broker_id"] in {1, 2}]

    assert "min.compaction.lag.ms (1 hour)" in first["copies"][0]["until"]["statement"]
    assert first["copies"][0]["until"]["not_before_ms"] == lagged["records"][1]["timestamp_ms"] + 3_600_000
    assert tombstone["value_length"] is None
    # What the cleaner wrote into the batch: ten minutes, delete.retention.ms, after its first pass.
    assert all(600_000 <= time - tombstone["timestamp_ms"] < 700_000 for time in horizons if isinstance(time, int))
    assert any(isinstance(time, int) for time in horizons)


def test_the_page_of_an_erasure_has_places_and_hashes_and_no_payload(compaction, capsys):
    final = compaction("compaction-4.x") / "snapshots" / "99-final"
    code = run(["trace", str(final), "-t", "accounts", "--key", "acc-0-005", "--erasure", "--format", "html"])
    page = capsys.readouterr().out
    whole = hashlib.sha256((final / "broker-3" / "accounts-0" / f"{0:020d}.log").read_bytes()).hexdigest()

    assert code == 1
    assert whole in page
    assert "passes the later record at offset 81" in page
    assert "Bytes of the key are left" in page
    assert "acc-0-005" not in page


@pytest.mark.parametrize("search", [("--time", EVERY_TIME), ("--key", "acc-0-005"), ("--offset", "20")])
@pytest.mark.slow
def test_later_records_that_are_too_many_to_hold_supersede_theirs_all_the_same(search, compaction, capsys, monkeypatch):
    inputs = (compaction("compaction-4.x") / "snapshots" / "99-final", "-t", "accounts", *search)
    code, held = trace(capsys, *inputs)
    monkeypatch.setattr("kforensics.commands.tracing.scan.MOST_HELD", 0)
    monkeypatch.setattr("kforensics.commands.tracing.topic_evidence.SLICE_OFFSETS", 16)

    assert any(fate["kind"] in {"superseded", "tombstoned"} for one in held["records"] for fate in one["fate"])
    assert trace(capsys, *inputs) == (code, held)


@pytest.mark.slow
def test_keys_that_are_too_many_to_be_followed_are_a_problem(compaction, capsys, monkeypatch):
    inputs = (compaction("compaction-4.x") / "snapshots" / "99-final", "-t", "accounts", "--time", EVERY_TIME)
    _, held = trace(capsys, *inputs)
    monkeypatch.setattr("kforensics.commands.tracing.partition_search.MOST_KEYS", 1)
    _, document = trace(capsys, *inputs)

    assert not held["problems"]
    assert any("more than 1 keys match" in one["message"] for one in document["problems"])
