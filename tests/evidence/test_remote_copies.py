"""What is in remote storage: segments whose copies were finished, and are not being deleted."""

import shutil
from pathlib import Path

import pytest

from kforensics import verify
from kforensics.cli.app import run
from kforensics.damage import Absent
from kforensics.evidence.discovery.partition_dirs import LogDirState, PartitionPlace
from kforensics.evidence.remote_copies import replayed
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from kforensics.formats.messages.frame import encode_framed
from kforensics.formats.messages.remote_log import REMOTE_LOG_SEGMENT, REMOTE_LOG_SEGMENT_UPDATE
from kforensics.source.walk import Listings
from kforensics.units import OffsetRange, TopicPartition
from tests.builders.directories import copied

TOPIC = "AAAAAAAAAAAAAAAAAAAAAQ"
STARTED, FINISHED, DELETING, DELETED = range(4)


def _id(segment, partition):
    named = {"name": "archive", "id": TOPIC, "partition": partition}
    return {"remote_log_segment_id": {"topic_id_partition": named, "id": f"{segment:A<22}"}}


def started(segment, first, last, partition=0):
    fields = {**_id(segment, partition), "start_offset": first, "end_offset": last, "remote_log_segment_state": STARTED}
    return encode_framed(REMOTE_LOG_SEGMENT, 0, fields)


def becomes(segment, state, partition=0):
    return encode_framed(REMOTE_LOG_SEGMENT_UPDATE, 0, {**_id(segment, partition), "remote_log_segment_state": state})


@pytest.fixture
def place(tmp_path):
    def make(broker, *values):
        folder = tmp_path / str(broker) / "__remote_log_metadata-0"
        folder.mkdir(parents=True)
        data = encode_record_batch(build_record_batch(0, [(1, None, value) for value in values]))
        (folder / f"{0:020d}.log").write_bytes(data)
        state = LogDirState(
            listings=Listings(folder.parent), input=0, log_dir="", broker_id=Absent.UNKNOWN, clean_shutdown=False
        )
        return PartitionPlace(
            state=state, path=folder.name, topic_partition=TopicPartition(folder.name[:-2], 0), directory_state="live"
        )

    return make


def finished(*places):
    named = replayed(places).segments.values()
    return {one.offsets for ids in named for those in ids.values() for one in those if one.is_finished}


def test_the_last_record_of_each_copy_counts(place):
    found = replayed(
        [
            place(
                1,
                started("a", 0, 59),
                becomes("a", FINISHED),
                started("b", 60, 99),
                started("c", 100, 149),
                becomes("c", FINISHED),
                becomes("c", DELETING),
                started("d", 0, 9, partition=1),
                becomes("d", FINISHED, partition=1),
                becomes("d", DELETED, partition=1),
                b"\x01\x63\x00 of a later version",
            )
        ]
    )
    assert {number: [one.state_name for one in ids[TOPIC]] for (_, number), ids in found.segments.items()} == {
        0: ["finished", "started", "delete-started"],
        1: ["delete-finished"],
    }
    assert not found.whole  # one record is newer than known


def test_a_log_that_begins_late_is_not_whole(place):
    assert replayed([place(1, started("a", 0, 59))]).whole == {0}
    late = place(2, started("a", 0, 59))
    late.state.listings.root.joinpath(late.path, f"{0:020d}.log").rename(
        late.state.listings.root / late.path / f"{5:020d}.log"
    )
    assert not replayed([late]).whole


def test_a_replica_that_lags_does_not_bring_a_deleted_copy_back(place):
    behind = place(1, started("a", 0, 59), becomes("a", FINISHED))
    ahead = place(2, started("a", 0, 59), becomes("a", FINISHED), becomes("a", DELETING))

    assert finished(behind) == finished(behind, behind) == {OffsetRange(0, 59)}
    assert finished(ahead, behind) == finished(behind, ahead) == set()


@pytest.fixture
def tiered(incident, tmp_path):
    return copied(incident("tiered-3.9") / "snapshots" / "99-final", tmp_path / "final")


def test_finished_copies_on_record_leave_nothing_open(tiered, capsys):
    assert run(["explain", str(tiered)]) == 0
    assert capsys.readouterr().out.startswith("Nothing that was committed is lost")


def test_a_late_local_start_alone_proves_no_remote_copy(tiered, tmp_path, capsys):
    for folder in Path(tiered).glob("*/__remote_log_metadata-*"):
        shutil.rmtree(folder)

    # The logs of the topic that records the copies are gone, too.
    assert run(["explain", str(tiered)]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "Nothing that was committed is lost" not in shown
    assert "no finished copy is on record (archive-" in shown

    run(["trace", str(tiered), "-t", "archive", "-p", "0", "--offset", "10"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "only remote storage, which was not searched, can hold" in shown
    assert ": in remote storage" not in shown

    assert run(["salvage", str(tiered), "--what", "lost", "-o", str(tmp_path / "out")]) == 1
    assert "nothing to save" not in capsys.readouterr().out


def _cut(root, batches):
    """Cut the record of the copies behind so many batches on every broker."""
    for path in root.glob("*/__remote_log_metadata-1/*.log"):
        data, at = path.read_bytes(), 0
        for _ in range(batches):
            at += 12 + int.from_bytes(data[at + 8 : at + 12])
        path.write_bytes(data[:at])


@pytest.mark.parametrize("batches", [1, 9, 20])
@pytest.mark.some(2)
def test_only_copies_whose_finish_was_recorded_before_the_cut_are_called_remote(tiered, batches):
    _cut(tiered, batches)
    (checkpoint,) = {one.read_text() for one in tiered.glob("broker-1/replication-offset-checkpoint")}
    found = {one["partition"]: one for one in verify(tiered).to_dict()["tiers"]}
    for one in found.values():
        finished = {offset for each in one["copies"] if each["state"] == "finished" for offset in _offsets(each)}
        remote = {offset for each in one["ranges"] if each["tier"] == "remote" for offset in _offsets(each)}
        assert remote == finished
        assert remote < set(range(one["log_end_offset"]))
        # The log of the record ends below its high watermark: what it lacks is unknown, and not in neither tier.
        assert {each["tier"] for each in one["ranges"]} <= {"remote", "unknown"}
    for path in tiered.glob("*/replication-offset-checkpoint"):
        path.write_text(checkpoint.replace("__remote_log_metadata 1 28", "__remote_log_metadata 1 0"))
    for one in verify(tiered).to_dict()["tiers"]:
        assert {each["tier"] for each in one["ranges"]} <= {"remote", "neither", "unknown"}
        assert "neither" in {each["tier"] for each in one["ranges"]}


def _offsets(one):
    return range(one["offsets"]["first"], one["offsets"]["last"] + 1)
