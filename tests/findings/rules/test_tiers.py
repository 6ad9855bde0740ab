"""Where the offsets of a tiered topic are, by the records of its copies: said alike by verify, explain, trace and salvage, and "in remote storage" of finished copies alone."""

import json

import pytest

from kforensics import capture, diff, explain, groups, predict, salvage, trace, transactions, verify
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from kforensics.formats.messages.frame import encode_framed
from kforensics.formats.messages.remote_log import (
    REMOTE_LOG_SEGMENT,
    REMOTE_LOG_SEGMENT_UPDATE,
    REMOTE_PARTITION_DELETE,
)
from tests.builders.coordinators import batch, commit
from tests.builders.directories import CLUSTER, log_dir

TOPIC = "EcyzJ0lTQ0WaUJHfKhR5lg"
NOW = 1_700_000_000_000
STARTED, FINISHED, DELETING, DELETED = range(4)


def copy(name, first, last, *states, epoch=0, topic_id=TOPIC):
    """The records of one copy: begun, then in each state."""
    named = {"name": "archive", "id": topic_id, "partition": 0}
    segment = {"remote_log_segment_id": {"topic_id_partition": named, "id": f"{name:A<22}"}, "broker_id": 1}
    epochs = [{"leader_epoch": epoch, "offset": first}]
    begun = {"start_offset": first, "end_offset": last, "segment_leader_epochs": epochs, "event_timestamp_ms": NOW}
    yield encode_framed(REMOTE_LOG_SEGMENT, 0, {**segment, **begun, "remote_log_segment_state": STARTED})
    for at, state in enumerate(states, 1):
        fields = {**segment, "event_timestamp_ms": NOW + at, "remote_log_segment_state": state}
        yield encode_framed(REMOTE_LOG_SEGMENT_UPDATE, 0, fields)


def disks(root, *copies, first_offset=0):
    """A broker whose log of archive-0 runs from 0 to 100 and has its last segment, from 90 on, alone."""
    place = log_dir(root / "b1", partitions=("archive-0", "__remote_log_metadata-0"))
    log = build_record_batch(90, [(NOW, b"k", b"v")] * 10, partition_leader_epoch=1)
    (place / f"archive-0/{90:020d}.log").write_bytes(encode_record_batch(log))
    (place / "archive-0/leader-epoch-checkpoint").write_text("0\n2\n0 0\n1 60\n")
    (place / "archive-0/partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC}\n")
    (place / "log-start-offset-checkpoint").write_text("0\n1\narchive 0 0\n")
    values = [(NOW, None, value) for one in copies for value in one]
    records = encode_record_batch(build_record_batch(first_offset, values))
    (place / f"__remote_log_metadata-0/{first_offset:020d}.log").write_bytes(records)
    (place / ".kafka_cleanshutdown").touch()
    return place


WHOLE = (("a", 0, 59, FINISHED), ("b", 60, 89, FINISHED))


def whole(root):
    first, second = WHOLE
    return disks(root, copy(*first), copy(*second, epoch=1))


def tiers(place):
    (found,) = verify(place).to_dict()["tiers"]
    return [(one["offsets"]["first"], one["offsets"]["last"], one["tier"]) for one in found["ranges"]]


def of_tiers(result):
    return {one.code: one for one in result.findings if one.code in {"KF122", "KF123", "KF130"}}


def removal(*states):
    """Records of the deletion of the whole partition."""
    named = {"topic_id_partition": {"name": "archive", "id": TOPIC, "partition": 0}}
    for at, state in enumerate(states, 10):
        fields = {**named, "event_timestamp_ms": NOW + at, "remote_partition_delete_state": state}
        yield encode_framed(REMOTE_PARTITION_DELETE, 0, fields)


def saved(place, out):
    salvage(place, out=out, what="all", topics={"archive"})
    (found,) = json.loads((out / "manifest.json").read_text())["partitions"]
    return [(gap["offsets"]["first"], gap["reason"]) for gap in found["gaps"]]


def test_finished_copies_hold_what_no_disk_does(tmp_path):
    place = whole(tmp_path)
    assert tiers(place) == [(0, 89, "remote"), (90, 99, "local")]
    assert not of_tiers(verify(place))
    assert not of_tiers(explain(place))
    assert not of_tiers(diff(place))
    assert "in no live log here" not in diff(place).answer.headline
    found = trace(place, topics="archive", offset=70)
    assert (found.answer.state, found.exit_code) == ("in-remote-storage", 0)
    assert "the copy of offsets 60 to 89 was finished" in found.answer.headline
    assert trace(place, topics="archive", offset=95).answer.state == "present"
    assert trace(place, topics="archive", key=b"none").answer.state == "unknown"
    assert saved(place, tmp_path / "out") == [(0, "in-remote-storage")]


def test_a_copy_that_is_on_disk_too_is_in_both(tmp_path):
    place = disks(
        tmp_path, *(copy(*one, epoch=at) for at, one in enumerate(WHOLE)), copy("c", 90, 94, FINISHED, epoch=1)
    )
    assert tiers(place) == [(0, 89, "remote"), (90, 94, "both"), (95, 99, "local")]
    erasure = trace(place, topics="archive", partitions={0}, key=b"none", erasure=True)
    assert any("3 copies in remote storage on record" in words for words in erasure.answer.unknown)


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (("b", 60, 89), "was begun and never finished"),
        (("b", 60, 89, FINISHED, DELETING), "is being deleted"),
        (("b", 60, 89, FINISHED, DELETED), "was deleted"),
    ],
)
def test_offsets_in_neither_tier_are_named_by_every_command(tmp_path, second, words):
    place = disks(tmp_path, copy(*WHOLE[0]), copy(*second, epoch=1))
    assert tiers(place) == [(0, 59, "remote"), (60, 89, "neither"), (90, 99, "local")]
    for result in (verify(place), explain(place)):
        found = of_tiers(result)["KF122"]
        assert "offsets 60 to 89 are in no live log here" in found.statement
        assert words in found.meaning
        assert result.exit_code != 0
    assert explain(place).answer.state == "unknown"
    compared = diff(place)
    assert compared.answer.headline.startswith("archive-0: offsets 60 to 89 are in no live log here")
    assert (compared.answer.state, compared.exit_code, set(of_tiers(compared))) == ("unknown", 3, {"KF122"})
    found = trace(place, topics="archive", offset=70)
    assert found.answer.state == "unknown"
    assert "IN REMOTE STORAGE" not in found.answer.headline
    assert words in found.answer.headline
    assert saved(place, tmp_path / "out") == [(0, "in-remote-storage"), (60, "in-neither-tier")]


def test_a_copy_of_leader_epochs_that_the_log_has_not_is_read_by_no_broker(tmp_path):
    place = disks(tmp_path, copy(*WHOLE[0]), copy(*WHOLE[1], epoch=7))
    assert (60, 89, "neither") in tiers(place)
    found = of_tiers(verify(place))
    assert "its leader epochs are not those of the log" in found["KF122"].meaning
    assert (
        "1 copy in remote storage that no broker reads (1 of other leader epochs, or behind the end of the log)"
        in found["KF123"].statement
    )
    assert not found["KF123"].is_grave


def test_what_retention_deleted_from_the_start_on_is_no_hole(tmp_path):
    place = disks(tmp_path, copy(*WHOLE[0], DELETED), copy(*WHOLE[1], epoch=1))
    assert tiers(place) == [(0, 59, "deleted"), (60, 89, "remote"), (90, 99, "local")]
    assert not of_tiers(verify(place))
    assert "IN REMOTE STORAGE" not in trace(place, topics="archive", offset=10).answer.headline
    assert saved(place, tmp_path / "out") == [(0, "deleted-by-retention"), (60, "in-remote-storage")]


def test_of_a_record_that_is_not_whole_nothing_is_called_missing(tmp_path):
    place = disks(tmp_path, copy(*WHOLE[0]), first_offset=5)
    assert tiers(place) == [(0, 59, "remote"), (60, 89, "unknown"), (90, 99, "local")]
    assert "KF122" not in of_tiers(verify(place))
    assert explain(place).answer.state == "unknown"
    found = trace(place, topics="archive", offset=70)
    assert "only remote storage, which was not searched, can hold them" in found.answer.headline
    assert "__remote_log_metadata-0, read whole, would name the copies" in found.answer.headline


def test_a_capture_says_the_same(tmp_path):
    out = tmp_path / "b1.kfcap"
    capture(whole(tmp_path), out=out)
    assert trace(out, topics="archive", offset=70).answer.state == "in-remote-storage"


@pytest.mark.parametrize(("states", "is_said"), [((FINISHED,), False), ((), True)])
def test_predict_is_not_calm_of_offsets_in_neither_tier(tmp_path, states, is_said):
    place = disks(tmp_path, copy(*WHOLE[0]), copy("b", 60, 89, *states, epoch=1))
    # With ZooKeeper: which directories are strays is then no question.
    (place / "meta.properties").write_text(f"version=0\nbroker.id=1\ncluster.id={CLUSTER}\n")
    result = predict(place, kafka="3.9.1", now="2023-11-15T00:00:00Z")
    assert ("offsets 60 to 89 are in no live log here" in result.answer.headline) is is_said
    assert ("KF122" in of_tiers(result)) is is_said


def test_the_record_of_copies_is_read_where_it_is_asked_for_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("kforensics.evidence.remote_copies.replayed", lambda *_: pytest.fail("it was read"))
    transactions(whole(tmp_path))


@pytest.mark.parametrize(("states", "is_below"), [((FINISHED,), False), ((FINISHED, DELETED), True)])
def test_a_group_that_reads_from_remote_storage_is_below_no_log_start(tmp_path, states, is_below):
    place = disks(tmp_path, copy("a", 0, 59, *states), copy(*WHOLE[1], epoch=1))
    (place / "log-start-offset-checkpoint").write_text("0\n0\n")
    (place / "__consumer_offsets-0").mkdir()
    commits = batch(0, [commit("audit", "archive", 0, 5, leader_epoch=0)], time_ms=NOW)
    (place / f"__consumer_offsets-0/{0:020d}.log").write_bytes(commits)
    (position,) = groups(place).body.groups[0].positions
    assert bool(position.deleted_unread) is is_below
    assert ("AUDIT IS BELOW THE LOG START" in groups(place).answer.headline) is is_below


@pytest.mark.parametrize(("states", "words"), [((0,), "is being deleted"), ((0, 1, 2), "was deleted")])
def test_the_deletion_of_a_partition_takes_all_of_its_copies(tmp_path, states, words):
    place = disks(tmp_path, *(copy(*one, epoch=at) for at, one in enumerate(WHOLE)), removal(*states))
    assert tiers(place) == [(0, 89, "deleted"), (90, 99, "local")]
    found = trace(place, topics="archive", offset=70)
    assert found.answer.state == "deleted-on-purpose"
    assert words in found.answer.headline


@pytest.mark.parametrize(("ends", "first"), [(100, 100), (90, 90)])
def test_what_finished_copies_hold_behind_the_end_of_every_log_is_denied_by_no_command(tmp_path, ends, first):
    """Brokers copy committed records alone, so a log that ends before them has lost them."""
    place = disks(tmp_path, copy(*WHOLE[0]), copy("b", 60, 119, FINISHED, epoch=1))
    if ends == 90:
        (place / f"archive-0/{90:020d}.log").write_bytes(b"")
    words = f"finished copies in remote storage hold records at offsets {first} to 119 that the log has not"
    for result in (verify(place), explain(place), diff(place)):
        assert words in of_tiers(result)["KF130"].statement
        assert result.exit_code != 0
    assert words in diff(place).answer.headline
    for what in ("lost", "all"):
        put_back = salvage(place, what=what, plan=True)
        assert (words in put_back.answer.headline, put_back.answer.state) == (True, "unknown")
    found = trace(place, topics="archive", offset=110)
    assert found.answer.state == "unknown"
    assert "remote storage was not searched. The copy of offsets 60 to 119 was finished" in str(found.answer.unknown)


def test_copies_of_an_earlier_topic_of_that_name_are_told(tmp_path):
    place = disks(
        tmp_path, copy(*WHOLE[0]), copy(*WHOLE[1], epoch=1), copy("c", 0, 200, FINISHED, topic_id="A" * 21 + "Q")
    )
    assert "(1 of a topic with another id)" in of_tiers(verify(place))["KF123"].statement
    assert "(1 of a topic with another id)" in of_tiers(explain(place))["KF123"].statement
    assert trace(place, topics="archive", offset=150).answer.state == "unknown"


@pytest.mark.parametrize("name", ["log-start-offset-checkpoint", "archive-0/leader-epoch-checkpoint"])
def test_a_lost_checkpoint_makes_no_deletion_of_what_finished_copies_hold(tmp_path, name):
    place = whole(tmp_path)
    (place / name).unlink()
    assert tiers(place) == [(0, 89, "remote"), (90, 99, "local")]
    assert trace(place, topics="archive", offset=70).answer.state == "in-remote-storage"
    assert saved(place, tmp_path / "out") == [(0, "in-remote-storage")]
    assert not [one for one in diff(place).findings if one.code == "KF116"]


def test_a_segment_that_is_missing_between_others_is_in_its_copy(tmp_path):
    place = whole(tmp_path)
    log = build_record_batch(0, [(NOW, b"k", b"v")] * 40, partition_leader_epoch=0)
    (place / f"archive-0/{0:020d}.log").write_bytes(encode_record_batch(log))
    assert tiers(place) == [(0, 39, "both"), (40, 89, "remote"), (90, 99, "local")]
    assert trace(place, topics="archive", offset=70).answer.state == "in-remote-storage"
    assert saved(place, tmp_path / "out") == [(40, "in-remote-storage")]


def test_retention_of_a_tiered_log_starts_it_at_the_end_of_a_copy(tmp_path):
    """No segment on disk begins there: it is no request of a client all the same."""
    place = disks(tmp_path, copy(*WHOLE[0], DELETING, DELETED), copy(*WHOLE[1], epoch=1))
    (place / "log-start-offset-checkpoint").write_text("0\n1\narchive 0 60\n")
    (place / "archive-0/leader-epoch-checkpoint").write_text("0\n1\n1 60\n")
    found = trace(place, topics="archive", offset=10)
    assert found.answer.state == "deleted-on-purpose"
    assert "DeleteRecords): the log starts inside" not in found.answer.headline
    assert verify(place).exit_code == 0
