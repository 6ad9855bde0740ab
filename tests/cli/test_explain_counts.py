"""The numbers of `explain` and `salvage`: what they count, what is a lower bound, and what is no loss."""

import json
import os
import shutil

import pytest

from kforensics.cli.app import run
from tests.builders.coordinators import NOW, batch, write_log
from tests.builders.directories import copied
from tests.builders.explained import explain
from tests.schemas import reason

pytestmark = pytest.mark.usefixtures("read_once")

CORRUPT = """\
[2026-11-21 06:40:00,000] INFO [KafkaServer id={node}] starting (kafka.server.KafkaServer)
[2026-11-21 06:40:01,000] INFO Attempting recovery for all logs in /data since no clean shutdown file was found (kafka.log.LogManager)
[2026-11-21 06:40:01,300] WARN [LogLoader partition=t-3, dir=/data] Corruption found in segment 0, truncating to offset 90 (kafka.log.LogLoader)
[2026-11-21 06:40:05,000] INFO [KafkaServer id={node}] started (kafka.server.KafkaServer)
"""
CREATED = "[2026-11-21 06:39:00,000] INFO Created log for partition t-3 in /data/t-3 with properties {} (kafka.log.LogManager)\n"


def salvage(capsys, *arguments):
    run(["salvage", *map(str, arguments), "--format", "json"])
    return json.loads(capsys.readouterr().out)


def test_what_log_lines_say_was_truncated_is_a_lower_bound(incident, capsys, tmp_path):
    root = incident("consumer-ahead-4.x")
    now, logs = root / "snapshots" / "99-final", root / "logs"
    document, _ = explain(capsys, now, logs)

    assert document["answer"]["headline"].startswith("At least 65 records that were committed are lost")
    rows = [one for one in document["losses"] if one["topic"] == "billing"]
    assert rows
    assert all(one["records_at_least"] for one in rows)
    harmed = {one["partition"] for one in rows}
    of_billing = [one for one in document["partitions"] if one["topic"] == "billing" and one["partition"] in harmed]
    assert {True} == {one["records_at_least"] for one in of_billing}
    saved = salvage(capsys, now, logs, "-o", tmp_path / "out")
    assert " of at least " in saved["answer"]["headline"]

    before = [arg for one in sorted((root / "snapshots").iterdir())[:-1] for arg in ("--before", one)]
    whole, _ = explain(capsys, *before, now, logs)
    assert whole["answer"]["headline"].startswith("81 records that were committed are lost")
    assert {False} == {one["records_at_least"] for one in whole["losses"] if one["topic"] != "__cluster_metadata"}


def test_a_lower_bound_of_what_may_have_been_committed_is_said_in_the_first_line(incident, capsys):
    root = incident("hw-loss-0.10")
    now, logs = root / "snapshots" / "99-final", root / "logs"
    document, _ = explain(capsys, now, logs)

    assert document["answer"]["state"] == "maybe-lost"
    assert document["answer"]["headline"].startswith(
        "At least 6 offsets of orders-0 were truncated, whose records were possibly committed"
    )

    whole, _ = explain(capsys, now, logs, "--before", root / "snapshots" / "01-a-killed-live")
    assert whole["answer"]["headline"].startswith("15 records of orders-0 that were possibly committed")


@pytest.mark.slow
def test_aborted_transactions_are_counted_apart_by_explain_and_salvage(incident, capsys, tmp_path):
    root = incident("unclean-election-2.8")
    *earlier, now = sorted((root / "snapshots").iterdir())
    given = [*(arg for one in earlier for arg in ("--before", one)), now, root / "logs"]
    document, _ = explain(capsys, *given)
    saved = salvage(capsys, *given, "-o", tmp_path / "out")

    records = sum(one["records"] for one in document["losses"])
    aborted = sum(one["aborted"] for one in document["losses"])
    assert 8 == aborted
    assert document["answer"]["headline"].startswith(f"{records} records that were committed are lost")
    assert saved["answer"]["headline"].startswith(f"{records} of {records} lost records")
    assert any(f"{aborted} records of aborted transactions" in one for one in document["conclusion"])


@pytest.mark.parametrize("first", ["", CREATED])
def test_a_log_that_recovery_found_corrupt_is_in_the_first_line_with_an_end_that_is_unknown(first, capsys, tmp_path):
    for node in (1, 2):
        folder = tmp_path / f"broker-{node}"
        folder.mkdir()
        lines = CORRUPT.format(node=node).splitlines(keepends=True)
        (folder / "server.log").write_text(lines[0] + first + "".join(lines[1:]))
    document, code = explain(capsys, tmp_path / "broker-1", tmp_path / "broker-2")

    assert (3, "unknown") == (code, document["answer"]["state"])
    assert "t-3" in document["answer"]["headline"]
    events = [one for one in document["timeline"] if one["kind"] == "truncation"]
    assert ["unknown"] * 2 == [reason(one["detail"], "from_offset") for one in events]
    assert not any(one["quiet"] for one in events)
    run(["explain", str(tmp_path / "broker-1"), str(tmp_path / "broker-2")])
    assert "truncates t-3" in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
def test_copies_that_nothing_distinguishes_are_in_one_order_however_they_are_given(incident, capsys, tmp_path):
    """Two copies of one minute, of which one was made a moment earlier."""
    *_, last, now = sorted((incident("benign-rolling-restart-4.x") / "snapshots").iterdir())
    both = [tmp_path / "one", tmp_path / "other"]
    for path in both:
        shutil.copytree(last, path)
    metadata = max((both[0] / "controller-100").rglob("__cluster_metadata-0/*.log"))
    written = metadata.stat().st_mtime_ns
    metadata.chmod(0o644)
    metadata.write_bytes(metadata.read_bytes()[:-40])
    os.utime(metadata, ns=(written, written))
    found = [
        explain(capsys, *(arg for path in order for arg in ("--before", path)), now)[0]
        for order in (both, list(reversed(both)))
    ]

    assert [] == found[0]["truncations"] == found[1]["truncations"]
    assert found[0]["answer"] == found[1]["answer"]


def test_a_holder_without_a_broker_is_named_as_diff_names_it(fixtures, capsys, tmp_path):
    cluster = copied(fixtures / "unclean-election", tmp_path / "cluster")
    (cluster / "broker-1" / "meta.properties").unlink()
    document, _ = explain(capsys, cluster)

    answer = document["answer"]
    assert "are only on input 1, which isn't the leader" in answer["headline"]
    assert answer["now"][0].startswith("Do not start input 1 before its directory is copied")
    assert "broker unknown" not in json.dumps(document)


def test_what_a_live_directory_holds_is_not_lost_though_the_guessed_leader_shares_nothing_with_it(capsys, tmp_path):
    for broker, since in ((1, NOW), (2, NOW + 10**9)):
        log = b"".join(batch(at, [(b"k", b"v")], time_ms=since + at) for at in range(18))
        node = tmp_path / f"broker-{broker}"
        write_log(node, "orders-0", (0, log))
        (node / "meta.properties").write_text(f"version=0\nbroker.id={broker}\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\n")
        (node / "replication-offset-checkpoint").write_text("0\n1\norders 0 18\n")
    document, code = explain(capsys, tmp_path)

    assert (document["answer"]["state"], code) == ("maybe-lost", 1)
    assert "18 possibly committed records of orders-0 are only on broker 2" in document["answer"]["headline"]
    assert {True} == {holder["in_use"] for loss in document["losses"] for holder in loss["held_by"]}
    assert document["losses"]


@pytest.mark.slow
def test_a_disk_that_holds_nothing_of_a_log_is_not_said_to_be_an_earlier_state(incident, capsys, tmp_path):
    root = incident("disk-replaced-4.x")
    before = copied(root / "snapshots" / "02-all-down-before-replacement", tmp_path / "before")
    now = copied(root / "snapshots" / "99-final", tmp_path / "now")
    logs = copied(root / "logs", tmp_path / "logs")
    for path in (*tmp_path.rglob("__cluster_metadata-0"), *tmp_path.rglob("controller-*")):
        shutil.rmtree(path, ignore_errors=True)
    document, _ = explain(capsys, now, logs, "--before", before)

    assert "put back to an earlier state" not in document["answer"]["headline"]
    assert "another or an emptied disk" in document["answer"]["headline"]
    assert "disk-restored" not in {one["cause"] for one in document["truncations"] if not one["to_offset"]}
