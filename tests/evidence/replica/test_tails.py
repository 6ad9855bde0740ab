"""What is read of the ends of logs whose small files or segments are damaged: it is what all of the log shows, or all of it is read."""

import json
import shutil
import struct

import pytest

from kforensics.cli.app import run
from kforensics.errors import EvidenceUnreadable
from kforensics.evidence.coordinators.replica_log import list_log
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.evidence.discovery.partition_dirs import find_places
from kforensics.evidence.replica import batch_reader, tails
from kforensics.evidence.replica.collect import collect_replica
from kforensics.evidence.replica.segments import scan_segment
from kforensics.source.mapped import open_below
from kforensics.units import Depth
from tests.builders.coordinators import batch
from tests.builders.directories import copied, log_dir

EPOCHS = (0, 0, 0, 3, 3, 3, 3, 5, 5, 5, 8)


@pytest.fixture
def log(tmp_path):
    """A log that was stopped cleanly, without an epoch checkpoint, with an index entry for every batch."""
    root = log_dir(tmp_path / "broker-1")
    (root / ".kafka_cleanshutdown").write_bytes(b"")
    folder = root / "orders-0"
    batches = [batch(at, [(b"k", b"v" * 50)], epoch=epoch) for at, epoch in enumerate(EPOCHS)]
    (folder / "00000000000000000000.log").write_bytes(b"".join(batches))
    positions = [sum(map(len, batches[:at])) for at in range(len(batches))]
    (folder / "00000000000000000000.index").write_bytes(_index(positions))
    return root


def test_the_epochs_of_a_sound_log_are_found_without_most_of_it(log):
    ends, content = (_collected(log, depth) for depth in (Depth.TAILS, Depth.CONTENT))

    assert (ends.unread_below, content.unread_below) == (10, 0)
    assert ends.segments[0].epochs == content.segments[0].epochs


def test_replicas_that_end_in_the_same_bytes_are_scanned_once(log, monkeypatch):
    scanned = []

    def watched(file, **at):
        scanned.append(at["path"])
        return scan_segment(file, **at)

    monkeypatch.setattr(tails, "scan_segment", watched)
    monkeypatch.setattr(tails, "_scanned_last", None)
    first, *others = (copied(log, log.with_name(f"broker-{number}")) for number in (2, 3, 4))
    segment = others[1] / "orders-0" / "00000000000000000000.log"
    data = bytearray(segment.read_bytes())
    data[-1] ^= 1
    segment.write_bytes(data)

    replicas = [_collected(root, Depth.TAILS) for root in (first, *others)]

    assert len(scanned) == 2
    ends = [one.segments[-1] for one in replicas]
    assert ends[0].digests is ends[1].digests
    assert ends[1].mtime_ns == (others[0] / "orders-0" / segment.name).stat().st_mtime_ns
    assert not ends[1].damage
    assert ends[2].damage


def _index(positions):
    return b"".join(struct.pack(">ii", at, position) for at, position in enumerate(positions) if at)


def _collected(root, depth):
    (places,) = find_places(find_inputs([root])).by_partition.values()
    return collect_replica(places[0], depth=depth).replica


@pytest.mark.parametrize("wrong", [0, -1, 7, 1 << 30])
@pytest.mark.parametrize("entry", range(10))
def test_an_entry_of_an_index_that_leads_elsewhere(log, entry, wrong):
    index = log / "orders-0" / "00000000000000000000.index"
    data = bytearray(index.read_bytes())
    data[entry * 8 + 4 : entry * 8 + 8] = struct.pack(">i", wrong)
    index.write_bytes(data)

    ends, content = (_collected(log, depth) for depth in (Depth.TAILS, Depth.CONTENT))

    assert [one.epochs for one in ends.segments] == [one.epochs for one in content.segments]


def test_what_can_not_be_read_below_an_end_is_not_called_missing(log, capsys, monkeypatch):
    other = log.with_name("broker-2")
    copied(log, other)
    (other / "meta.properties").write_text((log / "meta.properties").read_text().replace("node.id=1", "node.id=2"))
    batches = [batch(at, [(b"k", b"w" * 50)], epoch=epoch + (at > 4)) for at, epoch in enumerate(EPOCHS)]
    (other / "orders-0" / "00000000000000000000.log").write_bytes(b"".join(batches))
    real = open_below

    def failing(root, relative):
        if other in (root / relative).parents:
            raise EvidenceUnreadable(str(root / relative), "the disk gives an I/O error")
        return real(root, relative)

    monkeypatch.setattr(batch_reader, "open_below", failing)

    def partitions(depth):
        run(["diff", str(log), str(other), "--replicas", "1,2", "--depth", depth, "--format", "json"])
        return json.loads(capsys.readouterr().out)["partitions"]

    assert partitions("tails") == partitions("content")


def test_segments_that_were_moved_into_a_directory_of_their_own_are_not_of_the_log(log, capsys, tmp_path):
    whole = [_collected(log, depth) for depth in (Depth.TAILS, Depth.CONTENT)]
    aside = log / "orders-0" / "aside"
    aside.mkdir()
    for name in ("00000000000000000000", "00000000000000000099"):
        shutil.copy(log / "orders-0" / "00000000000000000000.log", aside / f"{name}.log")

    found = [_collected(log, depth) for depth in (Depth.TAILS, Depth.CONTENT)]
    (places,) = find_places(find_inputs([log])).by_partition.values()

    assert [one.lineage for one in whole] == [one.lineage for one in found]
    assert [["orders-0/00000000000000000000.log"]] * 2 == [[one.path for one in each.segments] for each in found]
    assert [(0, "orders-0/00000000000000000000.log")] == list_log(places[0]).segments
    assert found[0].segments[0].length == places[0].length
    for depth in ("tails", "content"):
        out = tmp_path / f"{depth}.kfc"
        assert 0 == run(["capture", str(log), "--depth", depth, "-o", str(out)]), capsys.readouterr().err
        assert [one.path for one in found[0].segments] == [one.path for one in _collected(out, Depth.TAILS).segments]


def test_a_segment_in_the_middle_that_left_its_index_behind_is_missing_at_every_depth(log, capsys):
    folder = log / "orders-0"
    for base in (11, 22):
        batches = [batch(base + at, [(b"k", b"v" * 50)], epoch=8) for at in range(11)]
        (folder / f"{base:020}.log").write_bytes(b"".join(batches))
        (folder / f"{base:020}.index").write_bytes(b"")
    (folder / f"{11:020}.log").unlink()

    for depth in ("tails", "content"):
        assert 1 == run(["diff", str(log), "--replicas", "1", "--depth", depth, "--format", "json"])
        assert "Offsets 11 to 21 are unaccounted for" in json.loads(capsys.readouterr().out)["answer"]["headline"]


@pytest.mark.parametrize("depth", Depth)
def test_a_segment_that_a_start_puts_in_place_is_the_one_in_use(tmp_path, depth):
    root = log_dir(tmp_path / "broker-1")
    names = [f"orders-0/{base:020d}.log" for base in (0, 1, 2)]
    contents = [batch(at, [(b"k", b"v")]) for at in range(3)]
    for name, content in zip(names, contents, strict=True):
        (root / name).write_bytes(content)
    # The cleaner wrote one of two; the broker was killed as it deleted the first.
    (root / f"{names[0]}.swap").write_bytes(contents[0] + contents[1])
    (root / names[0]).rename(root / f"{names[0]}.deleted")
    replica = _collected(root, depth)

    assert [one.path for one in replica.segments] == [f"{names[0]}.swap", names[2]]
    assert [one.path for one in replica.deleted_segments] == [f"{names[0]}.deleted"]
    # What a cleaning was writing makes the start delete it.
    (root / f"{names[0]}.cleaned").write_bytes(b"")
    assert [one.path for one in _collected(root, depth).segments] == names[1:]
