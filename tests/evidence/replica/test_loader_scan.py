"""Segments scanned in parts by several processes, held against the reader that takes batch after batch in one."""

import os
import signal

import pytest

from kforensics.errors import EvidenceNotFound, EvidenceUnreadable
from kforensics.evidence import parallel, segment_parts
from kforensics.evidence.replica import loader_scan
from kforensics.evidence.replica.loader_reader import read_needed
from kforensics.evidence.replica.loader_scan import ScansAhead, read_batches
from kforensics.evidence.segment_parts import split_segment
from kforensics.formats.log.batch_table import BATCH_HEADER
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from kforensics.formats.log.loader_values import Content, Need
from kforensics.source.mapped import open_evidence
from tests.oracle.loading.made import Case, edited_files

LOG = f"{0:020d}.log"
KINDS = ("plain", "txn", "abort", "txn", "commit", "plain")
LINES = [[2, 60, at // 9, 3 if KINDS[at % 6] != "plain" else -1, KINDS[at % 6], 1000] for at in range(36)]
SOUND = edited_files(Case(batches=LINES))[LOG]
OLD = edited_files(Case(batches=[[2, 60, 0, -1, "plain", 1000]] * 12, magic=1))[LOG]
SMALLEST = len(SOUND) // 5
MAGIC = BATCH_HEADER.position_of("magic")


def positions(data):
    starts = [0]
    while (end := starts[-1] + 12 + int.from_bytes(data[starts[-1] + 8 : starts[-1] + 12])) < len(data):
        starts.append(end)
    return starts


BATCHES = positions(SOUND)


@pytest.fixture
def small_parts(monkeypatch):
    """Parts of some batches and tasks of some bytes are worth a process."""
    monkeypatch.setattr(segment_parts, "SMALLEST_PART", SMALLEST)
    monkeypatch.setattr(parallel, "WORTH_A_PROCESS", 1)
    monkeypatch.setattr(loader_scan, "WORTH_A_PROCESS", 1)
    monkeypatch.setattr(loader_scan, "WORTH_COLUMNS", 0)
    monkeypatch.setattr(loader_scan, "WINDOW_LENGTH", SMALLEST // 2)


def edited(at, data, whole=SOUND):
    return whole[:at] + data + whole[at + len(data) :]


def border(tmp_path):
    """Where the second part of the sound segment begins."""
    path = tmp_path / LOG
    path.write_bytes(SOUND)
    parts = split_segment(path, length=len(SOUND), base_offset=0, jobs=2)
    assert len(parts) == 4
    return parts[1].start


def both_ways(folder, *, jobs=2):
    """What the reader finds batch by batch, and what the parts come to."""
    with open_evidence(folder / LOG) as file:
        one_by_one = read_batches(file, 0, checked=True)
    return one_by_one, read_needed(folder, Need(LOG, Content.CHECKED_BATCHES), ScansAhead(jobs=jobs))


DAMAGE = {
    "sound": lambda _: SOUND,
    "torn tail": lambda _: SOUND[:-20],
    "torn within the header": lambda _: SOUND[: BATCHES[-1] + 15],
    "zeros at the end": lambda _: SOUND + bytes(3 * SMALLEST),
    "corrupt in the middle": lambda _: edited(BATCHES[17] + 70, b"\xff\xfe"),
    "corrupt at a border": lambda border: edited(border + 70, b"\xff\xfe"),
    "corrupt before a border": lambda border: edited(border - 3, b"\xff\xfe"),
    "no length at a border": lambda border: edited(border + 8, (5).to_bytes(4)),
    "offsets that go back": lambda _: SOUND[BATCHES[20] :] + SOUND[: BATCHES[20]],
    "another magic": lambda _: edited(BATCHES[20] + MAGIC, b"\x01"),
    "a magic that is not known": lambda _: edited(BATCHES[20] + MAGIC, b"\x07"),
    "a length past the end": lambda _: edited(BATCHES[20] + 8, (1 << 30).to_bytes(4)),
    "a negative length": lambda _: edited(BATCHES[20] + 8, b"\xff\xff\xff\xf0"),
    "a length that ends within another batch": lambda _: edited(
        BATCHES[20] + 8, (BATCHES[21] - BATCHES[20] - 4).to_bytes(4)
    ),
    "a base offset whose batch ends past 64 bits": lambda _: edited(BATCHES[20], (2**63 - 1).to_bytes(8)),
    "messages of magic 1 before": lambda _: OLD + SOUND,
    "messages of magic 1 between": lambda _: SOUND[: BATCHES[18]] + OLD + SOUND[BATCHES[18] :],
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.some(3)
def test_parts_come_to_what_the_reader_finds_batch_by_batch(damage, small_parts, tmp_path):
    (tmp_path / LOG).write_bytes(DAMAGE[damage](border(tmp_path)))

    one_by_one, in_parts = both_ways(tmp_path)

    assert in_parts == one_by_one
    assert [tuple(map(type, one)) for one in in_parts.batches] == [tuple(map(type, one)) for one in one_by_one.batches]


def test_a_batch_within_a_record_at_which_a_part_begins_is_none(small_parts, tmp_path):
    """The checksum of the batch around it is set right, so that only where the part before ends says so."""
    data = b"".join(
        encode_record_batch(build_record_batch(at, [(0, b"k", value)], partition_leader_epoch=0))
        for at, value in enumerate((b"v", SOUND, b"v" * 100, SOUND, b"v"))
    )
    (tmp_path / LOG).write_bytes(data)
    starts = [one.start for one in split_segment(tmp_path / LOG, length=len(data), base_offset=0, jobs=2)]

    one_by_one, in_parts = both_ways(tmp_path)

    assert set(starts) - set(positions(data))
    assert in_parts == one_by_one
    assert len(in_parts.batches) == 5


def test_those_that_come_next_are_scanned_with_the_one_that_is_asked_for(small_parts, tmp_path, monkeypatch):
    asked = []

    def counted(work, tasks, **options):
        asked.append(sorted({path for path, _ in tasks}))
        return parallel.spread(work, tasks, **options)

    monkeypatch.setattr(loader_scan, "spread", counted)
    paths = [tmp_path / f"orders-{at}" / LOG for at in range(3)]
    for path in paths:
        path.parent.mkdir()
        path.write_bytes(SOUND)
    scans = ScansAhead(jobs=2)
    scans.plan([(str(path), len(SOUND)) for path in paths])
    monkeypatch.setattr(loader_scan, "GROUP_LENGTH", len(SOUND))

    found = [read_needed(path.parent, Need(LOG, Content.CHECKED_BATCHES), scans) for path in paths]

    assert asked == [sorted(map(str, paths[:2])), [str(paths[2])]]
    assert found[1:] == found[:1] * 2
    with scans.left_to_each():
        assert scans.take(str(paths[0]), len(SOUND)) == {}


def test_a_process_that_dies_leaves_its_parts_to_be_scanned_here(small_parts, tmp_path, monkeypatch):
    border(tmp_path)
    this, scan = os.getpid(), loader_scan._scan

    def dying(file, part, window):
        if os.getpid() != this and part.start:
            os.kill(os.getpid(), signal.SIGKILL)
        return scan(file, part, window)

    monkeypatch.setattr(loader_scan, "_scan", dying)

    one_by_one, in_parts = both_ways(tmp_path)

    assert in_parts == one_by_one


def test_a_part_that_can_not_be_read_is_named_where_the_segment_is_asked_for(small_parts, tmp_path, monkeypatch):
    border(tmp_path)
    scan = loader_scan._scan

    def failing(file, part, window):
        if part.start:
            raise EvidenceUnreadable(str(file.path), "the disk gives an I/O error")
        return scan(file, part, window)

    monkeypatch.setattr(loader_scan, "_scan", failing)

    with pytest.raises(EvidenceUnreadable, match="the disk gives an I/O error"):
        both_ways(tmp_path)
    with pytest.raises(EvidenceNotFound):
        read_needed(tmp_path, Need("1.log", Content.CHECKED_BATCHES), ScansAhead(jobs=2))


def test_parts_of_a_segment_that_was_written_to_meanwhile_are_not_joined(small_parts, tmp_path, monkeypatch):
    border(tmp_path)
    read = []
    scan = loader_scan._scan

    def seen(file, part, window):
        read.append(part)
        return scan(file, part, window)

    def late(work, tasks, **_):
        found = [work(task, lambda _: None) for task in tasks]
        return [one._replace(version=(*one.version, 0)) for one in found]

    monkeypatch.setattr(loader_scan, "_scan", seen)
    monkeypatch.setattr(loader_scan, "spread", late)

    one_by_one, in_parts = both_ways(tmp_path)

    assert in_parts == one_by_one
    assert read[-1] == (0, None)


def test_a_segment_that_becomes_shorter_while_it_is_read_is_unreadable(tmp_path):
    (tmp_path / LOG).write_bytes(SOUND)
    with open_evidence(tmp_path / LOG) as file:
        os.truncate(tmp_path / LOG, BATCHES[3] + 5)
        with pytest.raises(EvidenceUnreadable, match="became shorter"):
            read_batches(file, 0, checked=True)
        with pytest.raises(EvidenceUnreadable, match="became shorter"):
            loader_scan.scan_batches(file, 0, {})
