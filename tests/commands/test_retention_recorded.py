"""What real brokers deleted by time, by size, on request and by a time index of zeros, expired, and lost with its disk: told as it was."""

import json
import re
import shutil
from dataclasses import replace

import pytest

from kforensics.ask.model import Ask
from kforensics.case.opening import open_case
from kforensics.case.settings import retention_of
from kforensics.commands.diff import run as diff
from kforensics.commands.explain import run as explain
from kforensics.commands.groups import run as groups
from kforensics.commands.predict import run as predict
from kforensics.commands.trace import run as trace
from kforensics.commands.verify import run as verify
from kforensics.damage import Absent
from kforensics.formats.index import ProducerEntry, encode_producers
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from kforensics.units import TopicPartition

RECORDING = "retention-3.9"


def moments(root):
    before, deleted, wiped = sorted((root / "snapshots").iterdir())
    return before, deleted, wiped, root / "logs"


def acts(root, what):
    return [one for one in json.loads((root / "incident.json").read_text())["acts"] if one["act"] == what]


@pytest.fixture(scope="module")
def of_deleted(coordinators):
    before, deleted, _, logs = moments(coordinators(RECORDING))
    return groups(Ask(paths=(deleted, logs), before=(before,), jobs=1))


@pytest.mark.parametrize(
    ("topic", "by"),
    [
        ("timed", "retention-time"),
        ("sized", "retention-size"),
        ("asked", "delete-records"),
        ("zeroed", "retention-time"),
    ],
)
def test_who_deleted_what_a_group_had_not_read(coordinators, of_deleted, topic, by):
    told = [one for one in acts(coordinators(RECORDING), "log start and end") if one["topic"] == topic][-1]
    (position,) = [one for view in of_deleted.body.groups for one in view.positions if one.topic == topic]

    assert (by, "proven") == (position.removal.by, position.removal.confidence)
    assert (told["start"], told["end"]) == (position.log_start_offset, position.log_end_offset)
    assert (told["start"] - 3, told["end"] - told["start"]) == (position.deleted_unread, position.left_unread)


def test_a_topic_that_keeps_its_records_is_below_nothing(of_deleted):
    positions = [one for view in of_deleted.body.groups for one in view.positions if one.topic in {"kept", "future"}]

    assert positions
    assert all(one.removal is None and not one.deleted_unread for one in positions)


def test_each_tool_and_the_expiry_are_told_apart(of_deleted):
    found = {one.key.group: (one.previous, one.offset, one.by, one.removed_by) for one in of_deleted.body.setbacks}

    assert found == {
        "etl": (15, 2, "member", "expiry"),
        "by-tool": (12, 4, "administrator", None),
        "by-api": (12, 3, "administrator", None),
        "by-hand": (9, 2, "administrator", None),
    }
    assert of_deleted.answer.headline.startswith("ETL WAS SET BACK: kept-0 from 15 to 2")
    assert "43 offsets were deleted before slow read them" in of_deleted.answer.headline


def test_what_a_disk_took_with_it_is_the_first_line(coordinators):
    _, deleted, wiped, logs = moments(coordinators(RECORDING))
    result = groups(Ask(paths=(wiped, logs), before=(deleted,), jobs=1))
    lost = {(one.key.group, one.key.topic) for one in result.body.setbacks if one.is_lost}

    assert lost == {("slow", topic) for topic in ("timed", "sized", "asked", "zeroed", "future")} | {
        ("etl", "kept"),
        ("by-hand", "kept"),
    }
    assert "HAS LOST ITS POSITION" in result.answer.headline
    assert result.answer.headline.index("HAS LOST") < 12


def test_groups_of_a_log_that_had_been_longer_are_not_known_to_be_none(coordinators):
    """Without the earlier snapshot only lines of the broker show that its log of __consumer_offsets had records."""
    _, _, wiped, logs = moments(coordinators(RECORDING))
    result = groups(Ask(paths=(wiped, logs), jobs=1))

    assert (result.exit_code, result.answer.state.value) == (3, "unknown")
    assert "has committed anything" not in result.answer.headline
    assert any("had reached offset 27 by line" in one and "ends at 0 here" in one for one in result.answer.unknown)
    alone = groups(Ask(paths=(wiped,), jobs=1))
    assert (alone.exit_code, alone.answer.state.value) == (3, "unknown"), (
        "an empty log shows nothing of the epochs before"
    )
    assert any("its log is empty in leader epoch 4" in one for one in alone.answer.unknown)
    assert not any("had reached" in one for one in alone.answer.unknown)


def test_only_what_went_before_its_time_is_lost(coordinators):
    before, deleted, _, logs = moments(coordinators(RECORDING))
    result = explain(Ask(paths=(deleted, logs), before=(before,), jobs=1))
    losses = [one for incident in result.body.incidents for one in incident.losses]

    assert [("zeroed-0", (0, 15), 16, "early-retention")] == [
        (str(one.topic_partition), tuple(one.offsets), one.records, one.cause) for one in losses
    ]
    assert "16 records of zeroed-0" in result.answer.headline
    by_setting = [one for one in result.answer.tell if "was set to" in one]
    assert [("retention.bytes", "sized-0"), ("retention.ms", "timed-0")] == [
        tuple(word for word in ("retention.bytes", "retention.ms", "sized-0", "timed-0") if word in one)
        for one in by_setting
    ]
    said = " ".join(result.body.conclusion)
    assert "Offsets 0 to 7 of sized-0 were deleted" in said
    assert "by retention by size (retention.bytes 1,200)" in said
    assert "by retention by time (retention.ms 1 second)" in said
    assert result.exit_code == 1


def test_a_line_that_names_a_timestamp_in_seconds_tells_of_a_loss_of_which_no_copy_is_left(coordinators, tmp_path):
    _, deleted, _, logs = moments(coordinators(RECORDING))
    lines = (logs / "broker-1" / "server.log").read_text().splitlines()
    (at,) = [number for number, one in enumerate(lines) if "zeroed-0" in one and "due to log retention time" in one][:1]
    lines[at] = re.sub(r"largestRecordTimestamp=-?\d+", "largestRecordTimestamp=1795729848", lines[at])
    (tmp_path / "server.log").write_text("\n".join(lines))
    result = explain(Ask(paths=(deleted, tmp_path), topics=frozenset({"zeroed"}), jobs=1))
    (loss,) = [one for incident in result.body.incidents for one in incident.losses]

    assert (0, "possible", "likely", ()) == (loss.offsets.first, loss.was_committed, loss.confidence, loss.held_by)
    assert "in seconds, it is 2026-11-26" in loss.reason
    assert "of zeroed-0 that were possibly committed are lost: retention" in result.answer.headline


def test_a_changed_policy_is_named_with_what_its_cleaner_took(compaction):
    result = explain(Ask(paths=(compaction("policy-changed-4.1"),), jobs=1))

    assert {"nokey-0": "60 of the offsets", "orders-0": "110 of the offsets"} == {
        str(one.topic_partition): one.meaning.split(" UTC, ")[1].removesuffix(one.meaning.partition(" offsets")[2])
        for one in result.body.operations
    }
    assert " Since cleanup.policy was set to compact at 2026-11-28 06:36:45 UTC, 60 of the" in result.answer.headline


def test_a_last_leader_that_came_back_with_another_disk_leaves_open_what_it_held(coordinators):
    """No leader was elected since, and its log is empty."""
    paths = (coordinators("exchanged-3.9"),)
    words = "whether anything was lost when broker 1 came back with another disk in leader epoch 0"

    for result in (
        groups(Ask(paths=paths, jobs=1)),
        explain(Ask(paths=paths, topics=frozenset({"__consumer_offsets"}), jobs=1)),
        diff(Ask(paths=paths, topics=frozenset({"__consumer_offsets"}), jobs=1)),
    ):
        assert (result.exit_code, result.answer.state.value) == (3, "unknown")
        assert words in " ".join((result.answer.headline, *result.answer.unknown))


@pytest.mark.parametrize("has_earlier", [True, False])
def test_what_went_before_its_time_is_no_calm_without_lines(coordinators, has_earlier):
    """The settings and the times of the metadata leave a wrong time, or a request of which no line tells."""
    before, deleted, _, _ = moments(coordinators(RECORDING))
    result = explain(Ask(paths=(deleted,), before=(before,) if has_earlier else (), jobs=1))
    losses = [one for incident in result.body.incidents for one in incident.losses]

    assert [("zeroed-0", (0, 15), "early-retention", "possible", has_earlier)] == [
        (str(one.topic_partition), tuple(one.offsets), one.cause, one.confidence, bool(one.held_by)) for one in losses
    ]
    assert (result.answer.state.value, result.exit_code) == ("maybe-lost", 1)
    assert "16 records of zeroed-0" in result.answer.headline
    assert "are lost or deleted on request: " in result.answer.headline
    assert "DeleteRecords" in losses[0].reason
    said = " ".join(result.body.conclusion)
    assert ("by retention by time (retention.ms 1 second, as it was until" in said) is has_earlier
    assert "zeroed-0 were deleted since" not in said


def test_a_trace_of_it_says_no_purpose(coordinators):
    before, deleted, _, _ = moments(coordinators(RECORDING))
    early, asked_for = (
        trace(Ask(paths=(deleted,), before=(before,), topics=frozenset({topic}), offset=3, jobs=1))
        for topic in ("zeroed", "asked")
    )

    assert (early.answer.state.value, early.exit_code) == ("lost", 1)
    assert "or a client's request (DeleteRecords), deleted them" in early.answer.headline
    assert asked_for.answer.state.value == "deleted-on-purpose"


@pytest.mark.parametrize("command", [diff, predict, verify], ids=("diff", "predict", "verify"))
def test_no_command_is_calm_beside_it(coordinators, command):
    before, deleted, _, _ = moments(coordinators(RECORDING))
    early, whole = (command(Ask(paths=(place,), jobs=1)) for place in (deleted, before))

    assert (early.answer.state.value, early.exit_code) == ("maybe-lost", 1)
    assert "16 records of zeroed-0" in early.answer.headline.partition(": see `kforensics explain`")[0]
    assert any("kforensics explain" in each for one in early.answer.now for each in getattr(one, "commands", ()))
    assert "lost" not in whole.answer.state.value


def test_producer_snapshots_and_first_batches_say_of_when_records_are(coordinators, tmp_path):
    _, deleted, _, _ = moments(coordinators(RECORDING))
    shutil.copytree(deleted, tmp_path / "now")
    snapshot = next((tmp_path / "now").glob("*/zeroed-0/*16.snapshot"))
    written_ms = 1795729848691
    snapshot.write_bytes(
        encode_producers([ProducerEntry(7, 0, 15, 15, 3, written_ms, -1, -1), ProducerEntry(8, 0, 1, -1, 0, 9, -1, -1)])
    )
    times = retention_of(open_case(Ask(paths=(tmp_path / "now",), jobs=1)))(TopicPartition("zeroed", 0), 1)

    assert times.stamps() == ((15, written_ms),)
    assert times.begins_ms() in range(written_ms - 60_000, written_ms + 60_000)
    assert times.early_from(0, 16) == (0, times.created_ms)
    assert times._replace(created_ms=Absent.UNKNOWN).early_from(0, 16) == (15, written_ms)
    renamed = snapshot.with_name(f"{0:020}.log.deleted")
    renamed.write_bytes(stamped(written_ms - 86_400_000 * 365))
    again = retention_of(open_case(Ask(paths=(tmp_path / "now",), jobs=1)))(TopicPartition("zeroed", 0), 1)
    assert again.bound_ms is Absent.UNKNOWN, "records are older than their topic"
    assert again.early_from(0, 16) == (15, written_ms)
    snapshot.unlink()
    asked = Ask(paths=(tmp_path / "now",), jobs=1, topics=frozenset({"zeroed"}))
    said = str(explain(asked).body.conclusion)
    assert "Offsets 0 to 15 of zeroed-0 were deleted by retention by time" in said
    assert "the oldest here is 2025-11-26 21:50:48 UTC, before the topic was created" in said
    renamed.write_bytes(stamped(written_ms // 1_000))
    lost = explain(asked)
    assert (
        "16 records of zeroed-0 that were possibly committed are lost: retention that took them" in lost.answer.headline
    )
    assert "their timestamps are in seconds in place of milliseconds" in lost.body.incidents[0].losses[0].reason


def stamped(stamp):
    """The bytes of 16 records with a timestamp."""
    return encode_record_batch(build_record_batch(0, [(stamp, b"key", b"value")] * 16, partition_leader_epoch=0))


def test_of_segments_that_were_removed_by_hand_no_broker_is_said_to_have_deleted_them(coordinators, tmp_path):
    before, *_ = moments(coordinators(RECORDING))
    shutil.copytree(before, tmp_path / "now")
    for one in (tmp_path / "now").glob("*/kept-0/00000000000000000000.*"):
        one.unlink()
    asked = Ask(paths=(tmp_path / "now",), jobs=1)
    of_groups, traced = groups(asked), trace(replace(asked, topics=frozenset({"kept"}), offset=1))
    removals = [one.removal for view in of_groups.body.groups for one in view.positions if one.topic == "kept"]

    assert {one.by for one in removals if one is not None} == {"no-broker"}
    assert "4 offsets are gone before by-hand and etl read them" in of_groups.answer.headline
    assert (traced.answer.state.value, traced.exit_code) == ("unknown", 3)
    said = f"{of_groups.answer} {traced.answer}"
    assert "retention" not in said
    assert "DeleteRecords" not in said


def test_the_first_line_has_the_answer(coordinators):
    _, deleted, _, logs = moments(coordinators(RECORDING))
    gone = trace(Ask(paths=(deleted, logs), topics=frozenset({"timed"}), offset=3, jobs=1)).answer.headline
    kept = verify(Ask(paths=(deleted,), topics=frozenset({"future"}), jobs=1)).answer.headline

    assert "it was removed at 2026-11-26 21:52:22 UTC by retention by time (retention.ms 1 second)" in gone
    assert "the record at offset 0 in segment 00000000000000000000.log is stamped 2031-04-26 20:00:00 UTC" in kept
