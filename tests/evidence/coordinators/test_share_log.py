"""Share partitions of made logs of `__share_group_state`: snapshots, updates, tombstones, and what can't be decoded."""

import pytest

from kforensics import groups
from kforensics.cli.app import run
from kforensics.evidence.coordinators.transaction_log import Delivery, ShareLog, SharePartition
from kforensics.formats.messages.coordinators import SHARE_TABLES
from kforensics.reconcile.groups.state import played
from tests.builders.coordinators import NOW, batch, write_log
from tests.builders.directories import log_dir
from tests.builders.messages import encode_coordinator_record

TOPIC_ID = "Zm9vYmFyYmF6cXV4cXV1eA"
ORDERS = SharePartition("workers", TOPIC_ID, 0)
SEGMENT = f"{0:020d}.log"


def key(partition):
    return {"group_id": "workers", "topic_id": TOPIC_ID, "partition": partition}


def runs(*deliveries):
    return [
        dict(zip(("first_offset", "last_offset", "delivery_state", "delivery_count"), one, strict=True))
        for one in deliveries
    ]


def snapshot(partition, start, *deliveries, epoch=1, state_epoch=7):
    value = {
        "snapshot_epoch": epoch,
        "state_epoch": state_epoch,
        "leader_epoch": 3,
        "start_offset": start,
        "create_timestamp": NOW,
    }
    value |= {"write_timestamp": NOW, "state_batches": runs(*deliveries)}
    return encode_coordinator_record(SHARE_TABLES, 0, key(partition), 0, value)


def update(partition, start, *deliveries):
    value = {"snapshot_epoch": 1, "leader_epoch": 4, "start_offset": start, "state_batches": runs(*deliveries)}
    return encode_coordinator_record(SHARE_TABLES, 1, key(partition), 0, value)


def tombstone(partition):
    return encode_coordinator_record(SHARE_TABLES, 0, key(partition))


def test_an_update_changes_what_it_names_and_a_snapshot_all(tmp_path):
    first = [snapshot(0, 10, (10, 19, 0, 1)), update(0, 12, (12, 13, 2, 1)), update(0, -1, (15, 15, 4, 2))]
    place = write_log(tmp_path, "__share_group_state-0", (0, batch(0, [*first, snapshot(1, -1)])))
    found = ShareLog(place)
    states = played(found.changes()).states
    state = states[ORDERS]

    assert (state.start_offset, state.state_epoch, state.leader_epoch, state.at.offset) == (12, 7, 4, 2)
    assert state.deliveries == (
        Delivery(12, 13, 2, 1),
        Delivery(14, 14, 0, 1),
        Delivery(15, 15, 4, 2),
        Delivery(16, 19, 0, 1),
    )
    assert states[ORDERS._replace(partition=1)].start_offset == -1
    assert (found.skipped, found.end, found.problems) == (0, 4, ())

    place = write_log(tmp_path / "more", "__share_group_state-0", (0, batch(0, [*first, snapshot(0, 40, epoch=2)])))
    assert played(ShareLog(place).changes()).states[ORDERS].deliveries == ()


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([snapshot(0, 40), snapshot(0, 10, epoch=2, state_epoch=8)], [(40, 10, True)]),
        ([snapshot(0, 5), update(0, 40), snapshot(0, 10, epoch=2)], [(40, 10, False)]),
        ([snapshot(0, 40), update(0, 10)], [(40, 10, False)]),
        # A group that is made again begins below where it was; a state that none has begun does not go back.
        ([snapshot(0, 40), tombstone(0), snapshot(0, 10)], [(40, 10, False)]),
        ([snapshot(0, 40), tombstone(0), snapshot(0, -1), update(0, 10)], [(40, 10, False)]),
        ([snapshot(0, 40), tombstone(0), snapshot(0, -1), update(0, 50)], []),
        ([snapshot(0, 40), snapshot(0, -1, epoch=2, state_epoch=8), update(0, -1)], []),
        ([snapshot(0, 10), update(0, 40), snapshot(0, 40, epoch=2, state_epoch=8)], []),
    ],
)
def test_a_start_offset_that_goes_back_was_reset_where_the_state_epoch_rose(tmp_path, records, expected):
    place = write_log(tmp_path, "__share_group_state-0", (0, batch(0, records)))

    found = played(ShareLog(place).changes()).setbacks

    assert expected == [(one.previous, one.offset, one.is_reset) for one in found]


def test_groups_names_who_set_a_share_group_back(tmp_path, capsys):
    root = log_dir(tmp_path / "broker-1", partitions=("__share_group_state-0",))
    records = [snapshot(0, 40), snapshot(0, 10, epoch=2, state_epoch=8)]
    (root / "__share_group_state-0" / SEGMENT).write_bytes(batch(0, records))

    run(["groups", str(root), "--history", "-v"])
    out = " ".join(capsys.readouterr().out.split())

    assert f"WORKERS WAS SET BACK: {TOPIC_ID}-0 from 40 to 10" in out
    assert "while the group was empty: a reset by an administrator" in out
    assert "kafka-share-groups.sh --reset-offsets --to-datetime" in out
    assert "kafka-consumer-groups.sh" not in out


def test_tombstones_remove_and_what_is_not_known_is_counted(tmp_path):
    unknown = [(b"\0\x63" + b"x", b"y"), (b"\0", b""), (snapshot(0, 5)[0], b"\0\x63")]
    place = write_log(tmp_path, "__share_group_state-0", (0, batch(0, [snapshot(0, 5), tombstone(0), *unknown])))
    found = ShareLog(place)

    states, setbacks, removals, _ = played(found.changes())
    assert (states, setbacks, [offset for _, offset, _ in removals], found.skipped) == ({}, [], [5], 3)
    assert list(found.changes(until_ms=NOW - 1)) == []


def test_groups_shows_share_partitions_and_what_is_missing_of_them(tmp_path, capsys):
    root = log_dir(tmp_path / "broker-1", partitions=("__share_group_state-0",))
    (root / "__share_group_state-0" / SEGMENT).write_bytes(batch(0, [snapshot(0, 10, (10, 19, 0, 2), (25, 25, 2, 1))]))
    assert run(["groups", str(root)]) == 3
    out = " ".join(capsys.readouterr().out.split())

    assert (
        f"workers: state unknown: only share partitions are here partition committed log end lag at {TOPIC_ID}-0 10 unknown"
        in out
    )
    assert f"{TOPIC_ID}-0 from 10 on: 10 available, delivered 2 times; 1 acknowledged" in out
    assert "Where workers reads: not all of __share_group_state is shown to be here" in out


def directory(root, records, *, log=(), start=0, files=True):
    """A log directory with the state of share groups, and what they read."""
    names = ("orders-0", *(("__share_group_state-0",) if files else ()))
    place = log_dir(root, partitions=names)
    if files:
        (place / "__share_group_state-0" / SEGMENT).write_bytes(batch(0, records))
    (place / "orders-0" / SEGMENT).write_bytes(batch(0, list(log)))
    (place / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}\n")
    (place / "log-start-offset-checkpoint").write_text(f"0\n1\norders 0 {start}\n")
    return place


@pytest.mark.parametrize(
    ("deliveries", "unread", "left"), [((), 3, 2), (((6, 6, 2, 1), (7, 9, 4, 5)), 1, 0), (((5, 7, 0, 1),), 3, 2)]
)
def test_what_a_share_group_had_not_done_below_the_log_start_is_gone(tmp_path, deliveries, unread, left):
    place = directory(tmp_path / "b1", [snapshot(0, 5, *deliveries)], log=[(b"k", b"v")] * 10, start=8)
    result = groups(place)
    (position,) = result.body.groups[0].positions
    assert (result.answer.state, position.deleted_unread, position.left_unread) == ("below-the-start", unread, left)
    assert (
        "WORKERS IS BELOW THE LOG START of orders-0: it starts at 5, and the log starts at 8" in result.answer.headline
    )
    assert "goes on at the log start by itself" in " ".join(map(str, result.answer.now))
    (finding,) = [one for one in result.findings if one.code == "KF613"]
    assert "auto.offset.reset" not in f"{result.answer.now}{finding.advice}"


def test_a_share_group_that_is_done_with_what_was_deleted_is_below_nothing(tmp_path):
    place = directory(tmp_path / "b1", [snapshot(0, 5, (5, 7, 2, 1))], log=[(b"k", b"v")] * 10, start=8)
    assert "below" not in groups(place).answer.headline.lower()


def test_start_offsets_of_share_groups_that_went_with_their_disk_are_lost(tmp_path):
    before = directory(tmp_path / "before", [snapshot(0, 15)], log=[(b"k", b"v")] * 20)
    now = directory(tmp_path / "now", [], log=[(b"k", b"v")] * 20, files=False)
    result = groups(now, before=(before,))
    assert "WORKERS HAS LOST ITS POSITION in orders-0: 15, which an earlier copy holds" in result.answer.headline
    assert result.exit_code == 1
    assert "share.auto.offset.reset" in " ".join(map(str, result.answer.tell))


def test_a_share_group_that_was_deleted_is_told_in_the_history_and_as_no_loss(tmp_path):
    before = directory(tmp_path / "before", [snapshot(0, 15)])
    now = directory(tmp_path / "now", [snapshot(0, 15), tombstone(0)])
    result = groups(now, before=(before,), history=True)
    assert [(one.key.topic, one.previous, one.by) for one in result.body.changes()] == [("orders", 15, "deletion")]
    assert result.body.setbacks == ()
