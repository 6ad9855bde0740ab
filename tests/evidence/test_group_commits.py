import tracemalloc
from struct import pack

import pytest

from kforensics.damage import Absent
from kforensics.evidence import group_commits
from kforensics.evidence.coordinators.replica_log import ReplicaLog
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.evidence.discovery.partition_dirs import find_places
from kforensics.evidence.group_commits import commits_in_file, walk_group_commits
from kforensics.formats.index import ProducerEntry, encode_producers
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from kforensics.formats.primitives.numbers import Codec
from kforensics.units import OFFSETS_TOPIC, TopicPartition
from tests.builders.coordinators import NOW, batch, commit, marker, write_log


def commits_of(path):
    places = find_places(find_inputs([path]))
    return list(
        walk_group_commits(p for tp, group in places.by_partition.items() if tp.topic == OFFSETS_TOPIC for p in group)
    )


def test_offsets_past_the_log_end_are_found(incident):
    found = commits_of(incident("consumer-ahead-4.x") / "snapshots" / "99-final")

    billing = [c for c in found if c.partition == TopicPartition("billing", 0)]
    assert 120 == max(c.offset for c in billing)
    assert all(c.citation.path.startswith("__consumer_offsets-") for c in billing)
    assert {Absent.NOT_WRITTEN} == {c.leader_epoch for c in billing}


def test_a_directory_without_groups_gives_none(fixtures):
    assert [] == commits_of(fixtures / "unclean-election" / "controller-100")


@pytest.mark.slow
def test_a_transaction_without_an_end_holds_little_memory(tmp_path):
    key = pack(">hh1sh1si", 1, 1, b"g", 1, b"t", 0)
    values = [(0, key, pack(">hqihq", 3, 5 + at % 7, 0, 0, 0)) for at in range(20_000)]
    batch = build_record_batch(0, values, codec=Codec.ZSTD, attributes=0x10, producer_id=5)
    marker = build_record_batch(
        20_000, [(0, pack(">hh", 0, 1), pack(">hi", 0, 0))], attributes=0x30, producer_id=5, producer_epoch=0
    )
    directory = tmp_path / "__consumer_offsets-0"
    directory.mkdir()
    path = directory / "00000000000000000000.log"
    path.write_bytes(encode_record_batch(batch))
    (place,) = next(iter(find_places(find_inputs([directory])).by_partition.values()))
    tracemalloc.start()
    assert [] == list(commits_in_file(place, str(path)))
    assert tracemalloc.get_traced_memory()[1] < 12 << 20
    tracemalloc.stop()

    path.write_bytes(encode_record_batch(batch) + encode_record_batch(marker))
    assert [("g", 11)] == [(one.group, one.offset) for one in commits_in_file(place, str(path))]


def test_a_transaction_that_ends_in_the_next_segment_counts(tmp_path):
    first = batch(0, [commit("g", "t", 0, 7), commit("g", "t", 0, 5)], producer=5, transactional=True)
    place = write_log(tmp_path, "__consumer_offsets-0", (0, first), (2, marker(2, 5, commits=True)))
    assert [("g", 7)] == [(one.group, one.offset) for one in walk_group_commits([place])]
    place = write_log(tmp_path, "__consumer_offsets-0", (0, first), (2, marker(2, 5, commits=False)))
    assert [] == list(walk_group_commits([place]))


@pytest.mark.parametrize("opened_at", [None, 0, 3])
def test_a_segment_gives_what_a_transaction_committed_that_ends_in_it(tmp_path, opened_at):
    place = write_log(
        tmp_path,
        "__consumer_offsets-0",
        (0, batch(0, [commit("g", "t", 0, 9)], producer=5, transactional=True)),
        (1, batch(1, [commit("g", "t", 1, 7)]) + batch(2, [commit("open", "t", 0, 1)], producer=6, transactional=True)),
        (3, marker(3, 5, commits=True) + batch(4, [commit("g", "t", 0, 4)])),
    )
    directory = place.state.root / place.path
    if opened_at is not None:
        entry = ProducerEntry(5, 0, -1, 0, 0, NOW, 0, opened_at if opened_at < 3 else -1)
        (directory / f"{3:020d}.snapshot").write_bytes(encode_producers([entry]))

    def of(name):
        path = directory / name
        return {(one.group, one.partition.partition, one.offset) for one in commits_in_file(place, str(path))}

    assert of(f"{0:020d}.log") == set()
    assert of(f"{1:020d}.log") == {("g", 1, 7)}
    # Without a snapshot the segment before is read alone; by a snapshot all that were open.
    assert of(f"{3:020d}.log") == ({("g", 0, 9), ("g", 0, 4)} if opened_at == 0 else {("g", 0, 4)})
    ended = [one for one in commits_in_file(place, str(directory / f"{3:020d}.log")) if one.offset == 9]
    assert all(one.citation.path.endswith(f"{3:020d}.log") for one in ended)


def test_a_segment_without_a_snapshot_looks_at_the_one_before(tmp_path):
    open_one = batch(0, [commit("g", "t", 0, 9)], producer=5, transactional=True)
    for commits in (True, False):
        place = write_log(tmp_path, "__consumer_offsets-0", (0, open_one), (1, marker(1, 5, commits=commits)))
        path = place.state.root / place.path / f"{1:020d}.log"
        assert [one.offset for one in commits_in_file(place, str(path))] == [9] * commits


def test_a_transaction_that_never_ends_lets_no_earlier_segment_be_read_again(tmp_path, monkeypatch):
    own = [
        (at, batch(at, [commit("g", "t", 0, at)], producer=6, transactional=True) + marker(at + 1, 6, commits=True))
        for at in range(2, 12, 2)
    ]
    hanging = batch(0, [commit("open", "t", 0, 1), commit("open", "t", 1, 1)], producer=5, transactional=True)
    place = write_log(tmp_path, "__consumer_offsets-0", (0, hanging), *own)
    directory = place.state.root / place.path
    for at, _ in own:
        entries = [ProducerEntry(5, 0, -1, 0, 0, NOW, 0, 0), ProducerEntry(6, 0, -1, 0, 0, NOW, 0, -1)]
        (directory / f"{at:020d}.snapshot").write_bytes(encode_producers(entries))
    read = []

    def counting(place, segments):
        read.extend(segments)
        return ReplicaLog(place, segments=segments)

    monkeypatch.setattr(group_commits, "ReplicaLog", counting)
    for at, _ in own:
        assert [one.offset for one in commits_in_file(place, str(directory / f"{at:020d}.log"))] == [at]
    assert len(read) == len(own)


@pytest.mark.parametrize("is_damaged", [False, True])
def test_of_two_transactions_of_one_producer_only_the_first_was_open_before(tmp_path, is_damaged):
    """A damaged snapshot tells nothing: the segment before is looked at, and what was aborted there does not count."""
    aborted = batch(0, [commit("no", "t", 0, 8)], producer=5, transactional=True) + marker(1, 5, commits=False)
    opened = batch(2, [commit("g", "t", 0, 9)], producer=5, transactional=True)
    others = batch(3, [commit("h", "t", 0, 3)], producer=6, transactional=True)
    again = batch(5, [commit("g", "t", 0, 10)], producer=5, transactional=True)
    ends = marker(4, 5, commits=True) + again + marker(6, 5, commits=True) + marker(7, 6, commits=False)
    without_data = marker(8, 7, commits=True)
    place = write_log(tmp_path, "__consumer_offsets-0", (0, aborted + opened + others), (4, ends + without_data))
    directory = place.state.root / place.path
    entries = [ProducerEntry(5, 0, -1, 0, 0, NOW, 0, 2), ProducerEntry(6, 0, -1, 0, 0, NOW, 0, 3)]
    snapshot = encode_producers(entries)
    (directory / f"{4:020d}.snapshot").write_bytes(snapshot[:-3] if is_damaged else snapshot)
    found = [(one.group, one.offset) for one in commits_in_file(place, str(directory / f"{4:020d}.log"))]
    assert found == [("g", 9), ("g", 10)]


def test_of_long_logs_the_last_segments_are_read(tmp_path):
    logs = [
        write_log(
            tmp_path / name,
            "__consumer_offsets-0",
            *((at, batch(at, [commit(name, "t", 0, at, leader_epoch=at)])) for at in range(3)),
        )
        for name in ("a", "b")
    ]
    one_segment = len(batch(0, [commit("a", "t", 0, 0)]))

    def read(most_bytes):
        return {(one.group, one.offset) for one in walk_group_commits(logs, most_bytes=most_bytes)}

    assert read(2 * one_segment) == {("a", 2), ("b", 2)}
    assert read(3 * one_segment) == {("a", 2), ("b", 2), ("a", 1)}
    assert read(None) == {(name, at) for name in ("a", "b") for at in range(3)}
    assert read(0) == set()


def test_the_first_of_the_highest_commits_of_each_leader_epoch_is_given(tmp_path):
    commits = [(5, 0), (9, 0), (9, 0), (7, 1), (8, -1), (3, -1)]
    records = [
        commit("g", "t", 0, offset, leader_epoch=epoch, time_ms=at) for at, (offset, epoch) in enumerate(commits)
    ]
    records += [
        commit("g", "t", 1, 4, version=2, time_ms=9),
        commit("g", "t", 0, None),
        commit("g", "t", 2, 1, version=4),
    ]
    place = write_log(tmp_path, "__consumer_offsets-0", (0, batch(0, records)))
    found = {
        (one.partition.partition, one.leader_epoch): (one.offset, one.time_ms) for one in walk_group_commits([place])
    }
    assert found == {
        (0, 0): (9, 1),
        (0, 1): (7, 3),
        (0, Absent.NOT_WRITTEN): (8, 4),
        (1, Absent.NOT_WRITTEN): (4, 9),
        (2, Absent.NOT_WRITTEN): (1, NOW),
    }
