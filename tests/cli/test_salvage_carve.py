"""`kforensics salvage --carve`: batches out of disk images whose files are deleted.

Images of ext4 are made without mounting anything, by `mke2fs -d`, and files deleted in them by `debugfs`; without these tools the tests are skipped. Images of
other file systems, and large ones, are carved by `python -m tests.carved`.
"""

import hashlib
import json
import random
import shutil

import numpy as np
import pytest

from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from kforensics.formats.primitives.word_buffer import MemoryBytes
from kforensics.formats.segment.resync import WINDOW_LENGTH, carve_batches
from kforensics.formats.segment.walk import Level, walk_segment
from tests import carved, salvaged
from tests.cli.test_salvage import salvage
from tests.schemas import reason

needs_tools = pytest.mark.skipif(
    shutil.which("mke2fs") is None or shutil.which("debugfs") is None, reason="needs e2fsprogs"
)


@pytest.fixture
def unclean(incident):
    return incident("unclean-election-4.x") / "snapshots"


@needs_tools
def test_what_a_deleted_file_held_comes_out_under_its_name(capsys, unclean, tmp_path):
    image = tmp_path / "disk.img"
    carved.make_ext4(image, {"kafka": unclean / "02-old-leader-killed" / "broker-1"}, megabytes=16)
    carved.remove(image, *(f"kafka/orders-0/{0:020d}{ending}" for ending in (".log", ".index", ".timeindex")))
    before = image.read_bytes()

    code, document = salvage(capsys, "--carve", image, unclean / "99-final", "-o", tmp_path / "out")
    lines = salvaged.saved(tmp_path / "out")
    lost = {content for content, _ in lines if content.topic == "orders" and content.partition == 0}
    disk, _ = salvaged.on_disk(unclean / "02-old-leader-killed")

    assert (0, "saved") == (code, document["answer"]["state"])
    assert set(range(60, 103)) == {content.offset for content in lost}
    assert lost <= disk
    assert image.read_bytes() == before
    assert document["carved"]["named_logs"] >= 5


@needs_tools
def test_carved_batches_fill_gaps_of_what_is_lost(capsys, unclean, tmp_path):
    image = tmp_path / "disk.img"
    carved.make_ext4(image, {"kafka": unclean / "02-old-leader-killed" / "broker-1"}, megabytes=16)
    carved.remove(image, *(f"kafka/orders-0/{0:020d}{ending}" for ending in (".log", ".index", ".timeindex")))
    given = (unclean / "99-final", unclean.parent / "logs", "--topic", "orders", "--partition", "0", "--what", "lost")

    without, nothing = salvage(capsys, *given, "-o", tmp_path / "without")
    code, document = salvage(capsys, *given, "--carve", image, "-o", tmp_path / "out")
    disk, _ = salvaged.on_disk(unclean / "02-old-leader-killed")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())

    assert (1, 0, 43) == (without, nothing["records"], nothing["missing"])
    # Broker 1 may have lost power before it truncated, so that it held more.
    assert (3, 43, 0) == (code, document["records"], document["missing"])
    assert {content for content, _ in salvaged.saved(tmp_path / "out")} <= disk
    (run,) = manifest["partitions"][0]["runs"]
    assert "image" == manifest["inputs"][run["source"]["input"]]["kind"]
    place = slice(run["source"]["position"], run["source"]["position"] + run["source"]["length"])
    assert hashlib.sha256(image.read_bytes()[place]).hexdigest() == run["sha256"]


@needs_tools
def test_everything_is_saved_with_what_an_image_holds_beside(capsys, unclean, tmp_path):
    image = tmp_path / "disk.img"
    carved.make_ext4(image, {"kafka": unclean / "02-old-leader-killed" / "broker-1"}, megabytes=16)

    _, document = salvage(
        capsys, unclean / "99-final", "--what", "all", "--topic", "orders", "--carve", image, "-o", tmp_path / "out"
    )
    _, plain = salvage(capsys, unclean / "99-final", "--what", "all", "--topic", "orders", "-o", tmp_path / "without")
    best = {content for content, line in salvaged.saved(tmp_path / "out") if line["source"]["input"] < 4}
    others = {content.offset for content, line in salvaged.saved(tmp_path / "out") if line["source"]["input"] == 4}

    assert best == {content for content, _ in salvaged.saved(tmp_path / "without")}
    assert plain["records"] == len(best)
    assert set(range(60, 103)) <= others
    assert all(one["name"].startswith("orders-") for one in document["partitions"])


@needs_tools
def test_without_replicas_no_log_has_a_name(capsys, unclean, tmp_path):
    image = tmp_path / "disk.img"
    carved.make_ext4(image, {"kafka": unclean / "99-final" / "broker-2"}, megabytes=16)

    _, document = salvage(capsys, "--carve", image, "-o", tmp_path / "out")
    lines = [line for _, line in _lines(tmp_path / "out")]

    assert {"unknown"} == {reason(line, "topic") for line in lines}
    assert {"carved-0001"} <= {one["name"] for one in document["partitions"]}
    assert 0 == document["carved"]["named_logs"]
    produced, _ = salvaged.on_disk(unclean / "99-final" / "broker-2")
    assert {content[2:] for content in produced if not content.topic.startswith("_")} <= {
        content[2:] for content, _ in _lines(tmp_path / "out")
    }


def _lines(out):
    return [(content._replace(topic="", partition=0), line) for content, line in salvaged.saved(out)]


def test_nothing_is_found_where_nothing_is(capsys, tmp_path):
    (tmp_path / "disk.img").write_bytes(random.Random(7).randbytes(1 << 20) + bytes(1 << 20))

    code, document = salvage(capsys, "--carve", tmp_path / "disk.img", "-o", tmp_path / "out")

    assert (3, "unknown", 0) == (code, document["answer"]["state"], document["carved"]["batches"])


@pytest.mark.parametrize("seed", range(3))
def test_every_sound_batch_is_found_wherever_it_begins(seed):
    random_ = random.Random(seed)
    batches, image, places = [], bytearray(), []
    for number in range(60):
        records = [(1_700_000_000_000, random_.randbytes(8), random_.randbytes(random_.choice([10, 300, 5_000])))]
        batches.append(encode_record_batch(build_record_batch(number * 10, records, partition_leader_epoch=3)))
    for batch in batches:
        image += random_.choice([b"", b"", bytes(random_.randrange(600)), random_.randbytes(random_.randrange(600))])
        places.append(len(image))
        image += batch
    broken = places[30] + 70
    image[broken] ^= 1

    found = np.concatenate(list(carve_batches(MemoryBytes(bytes(image)), 0, len(image))))

    assert [place for number, place in enumerate(places) if number != 30] == found["position"].tolist()
    assert found["crc_valid"].all()


def test_a_batch_across_windows_and_one_larger_than_a_window():
    small = encode_record_batch(build_record_batch(0, [(0, None, bytes(1000))]))
    large = encode_record_batch(build_record_batch(1, [(0, None, random.Random(1).randbytes(WINDOW_LENGTH + 77))]))
    image = bytes(WINDOW_LENGTH - 500) + small + bytes(9) + large + small

    found = np.concatenate(list(carve_batches(MemoryBytes(image), 0, len(image))))

    first = WINDOW_LENGTH - 500
    assert [first, first + len(small) + 9, len(image) - len(small)] == found["position"].tolist()


def test_messages_of_old_formats_are_found_by_structure(incident):
    root = incident("hw-loss-0.10") / "snapshots" / "99-final" / "broker-1" / "kafka-logs"
    (segment,) = root.glob(f"orders-0/{0:020d}.log")
    data = segment.read_bytes()
    plain = [row for window in walk_segment(MemoryBytes(data), level=Level.CRC) for row in window.batches]
    image = random.Random(3).randbytes(5_000) + data + bytes(3_000)

    found = np.concatenate(list(carve_batches(MemoryBytes(image), 0, len(image))))

    assert [int(row["position"]) + 5_000 for row in plain] == found["position"].tolist()
    assert {0, 1} >= set(found["magic"].tolist())


@pytest.mark.parametrize(
    "options", [["--what", "all"], ["--what", "at-risk"], ["--leader", "1"], ["--before", "x"]], ids=" ".join
)
def test_options_that_do_not_go_with_an_image(capsys, tmp_path, options):
    (tmp_path / "disk.img").touch()
    code, words = salvage(capsys, "--carve", tmp_path / "disk.img", *options, "-o", tmp_path / "out")

    assert 2 == code
    assert "--what" in words
