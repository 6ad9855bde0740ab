"""Open transactions of made logs, held against a model of a few lines."""

from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.evidence import parallel, segment_parts
from kforensics.evidence.coordinators.open_transactions import read_producers, scan_transactions
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.evidence.discovery.partition_dirs import find_places
from kforensics.formats.index import ProducerEntry, encode_producers
from kforensics.formats.messages.control import ControlType
from tests.builders.coordinators import NOW, batch, marker, write_log

STEPS = st.one_of(
    st.tuples(st.just("data"), st.sampled_from([3, 4, 5]), st.integers(1, 4)),
    st.tuples(st.just("plain"), st.sampled_from([-1, 3]), st.integers(1, 3)),
    st.tuples(st.just("end"), st.sampled_from([3, 4, 5]), st.booleans()),
)


@contextmanager
def in_parts(smallest):
    """Segments are walked in parts of a few batches, one part after the other; yields how many parts were walked."""
    counts = []

    def one_by_one(work, tasks, **_options):
        counts.append(len(tasks))
        return [work(task, lambda _: None) for task in tasks]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment_parts, "SMALLEST_PART", smallest)
        patch.setattr(segment_parts, "spread", one_by_one)
        yield counts


def records(count):
    return [(b"k", b"v")] * count


@given(steps=st.lists(STEPS, max_size=30), cuts=st.sets(st.integers(0, 29)), smallest=st.integers(60, 400))
def test_what_is_open_is_what_no_marker_ended(tmp_path_factory, steps, cuts, smallest):
    segments, content, base, offset = [], b"", 0, 0
    known: dict = {}
    lone: list = []
    for at, (what, producer, value) in enumerate(steps):
        if at in cuts and content:
            segments.append((base, content))
            base, content = offset, b""
        if what == "end":
            content += marker(offset, producer, commits=value)
            if known.pop(producer, None) is None:
                lone.append((offset, ControlType.COMMIT if value else ControlType.ABORT))
            offset += 1
            continue
        content += batch(offset, records(value), producer=producer, transactional=what == "data")
        if what == "data":
            first, _, count = known.get(producer, (offset, 0, 0))
            known[producer] = (first, offset + value - 1, count + value)
        offset += value
    segments.append((base, content))

    place = write_log(tmp_path_factory.mktemp("log"), "t-0", *segments)
    found = scan_transactions(place)

    with in_parts(smallest):
        assert scan_transactions(place, jobs=3) == found
    assert {one.producer_id: (one.first_offset, one.last_offset, one.records) for one in found.open} == known
    assert sorted((one.offset, one.kind) for one in found.lone) == lone
    assert [one.first_offset for one in found.open] == sorted(one.first_offset for one in found.open)
    assert found.log_end_offset == offset
    assert found.problems == ()
    assert found.has_transactions is any(what != "plain" for what, *_ in steps)


def test_a_marker_behind_the_snapshot_ends_what_began_below_the_log(tmp_path):
    open_one = ProducerEntry(3, 0, 4, 40, 0, NOW, -1, 38)
    ended = ProducerEntry(4, 0, 4, 41, 0, NOW, -1, 36)
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{50:020d}.snapshot").write_bytes(encode_producers([open_one, ended]))

    found = scan_transactions(write_log(tmp_path, "t-0", (50, batch(50, records(2)) + marker(52, 4, commits=False))))

    assert [(one.producer_id, one.first_offset) for one in found.open] == [(3, 38)]
    assert found.lone == ()
    assert found.open[0].citation.path.endswith(".snapshot")


def test_a_damaged_snapshot_shows_nothing(tmp_path):
    (tmp_path / "t-0").mkdir()
    data = bytearray(encode_producers([ProducerEntry(3, 0, 4, 40, 0, NOW, -1, 38)]))
    data[20] ^= 1
    (tmp_path / "t-0" / f"{50:020d}.snapshot").write_bytes(bytes(data))

    assert scan_transactions(write_log(tmp_path, "t-0", (50, batch(50, records(2))))).open == ()


def test_lone_markers_are_kept_up_to_a_number(tmp_path, monkeypatch):
    monkeypatch.setattr("kforensics.evidence.coordinators.open_transactions.MOST_LONE_MARKERS", 3)
    content = b"".join(marker(at, 3, commits=True) for at in range(10))

    found = scan_transactions(write_log(tmp_path, "t-0", (0, content)))

    assert len(found.lone) == 3


@given(
    steps=st.lists(STEPS, min_size=8, max_size=30),
    flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 7)), max_size=2),
    smallest=st.integers(60, 400),
    until=st.booleans(),
)
def test_parts_of_a_damaged_log_give_what_the_log_gives(tmp_path_factory, steps, flips, smallest, until):
    content, offset = b"", 0
    for what, producer, value in steps:
        if what == "end":
            content += marker(offset, producer, commits=value)
        else:
            content += batch(offset, records(value), producer=producer, transactional=what == "data")
        offset += 1 if what == "end" else value
    damaged = bytearray(content)
    for place, bit in flips:
        damaged[int(place * len(damaged))] ^= 1 << bit
    place = write_log(tmp_path_factory.mktemp("log"), "t-0", (0, bytes(damaged)))
    until_ms = NOW if until else None
    wanted = np.array([3, 5])

    whole, batches = scan_transactions(place, until_ms=until_ms), read_producers(place, wanted, until_ms=until_ms)

    with in_parts(smallest) as counts:
        assert scan_transactions(place, until_ms=until_ms, jobs=3) == whole
        split = read_producers(place, wanted, until_ms=until_ms, jobs=3)
    assert (split.markers, split.last_epoch) == batches[2:]
    assert np.array_equal(split.rows, batches.rows)
    assert max(counts, default=1) <= 6


def test_recorded_logs_are_the_same_in_parts_and_by_processes(coordinators, monkeypatch):
    root = coordinators("transactions-3.9") / "snapshots"
    found = find_places(find_inputs([root / "02-hanging-live"])).by_partition
    places = [place for group in found.values() for place in group if place.length > 400]
    whole = [scan_transactions(place) for place in places]

    with in_parts(128) as counts:
        assert [scan_transactions(place, jobs=2) for place in places] == whole

    assert sum(one > 1 for one in counts) > len(places) // 2
    assert sum(len(one.open) for one in whole) > 2
    monkeypatch.setattr(segment_parts, "SMALLEST_PART", 128)
    monkeypatch.setattr(parallel, "WORTH_A_PROCESS", 1)
    assert scan_transactions(places[0], jobs=2) == whole[0]
