"""Keys of compacted logs: what later records supersede, above the cleaner's point and below it, and when tombstones may go."""

import pytest

from kforensics import verify
from kforensics.commands import cleaning
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.evidence.discovery.partition_dirs import find_places
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from kforensics.reconcile.logs import compacted_keys
from kforensics.reconcile.logs.compacted_keys import keys_of_log
from tests.builders.coordinators import NOW, TRANSACTIONAL, marker
from tests.builders.directories import log_dir
from tests.builders.metadata_logs import metadata_batch, metadata_log, metadata_record

HORIZON = 0x40


def batch(offset, *records, attributes=0, time_ms=NOW, producer=-1):
    """A batch of keys with values; a value of None is a tombstone."""
    return encode_record_batch(
        build_record_batch(
            offset,
            [(time_ms, key, value) for key, value in records],
            attributes=attributes,
            producer_id=producer,
            producer_epoch=0 if producer >= 0 else -1,
            base_sequence=0 if producer >= 0 else -1,
        )
    )


def cleaned(root, point, *batches):
    place = log_dir(root / "b1", partitions=("state-0",))
    (place / "state-0/00000000000000000000.log").write_bytes(b"".join(batches))
    (place / "cleaner-offset-checkpoint").write_text(f"0\n1\nstate 0 {point}\n")
    return place


def counted(place):
    (group,) = find_places(find_inputs([place])).by_partition.values()
    return keys_of_log(group[0])


def twice(result):
    return [one for one in result.findings if one.code == "KF128"]


@pytest.mark.slow
def test_real_cleaners_leave_one_record_of_a_key_below_their_points(compaction):
    result = verify(compaction("compaction-4.x") / "snapshots/02-tombstoned-live", level="records")
    logs = [one for one in result.body.compacted if one.partition.topic in {"profiles", "accounts"}]
    assert {(one.partition.topic, one.broker_id) for one in logs} == {
        (topic, broker) for topic in ("profiles", "accounts") for broker in (1, 2, 3)
    }
    for one in logs:
        if one.broker_id == 3:  # its cleaner runs once an hour: the metadata log alone says that the topic is compacted
            assert one.superseded > 0
            assert (one.cleaner_point, one.superseded_below, one.due + one.kept) == (0, 0, 0)
            assert one.tombstones == 4
            continue
        assert one.records > 40
        assert (one.superseded_below, one.twice, one.is_estimate, one.is_at_least) == (0, None, False, False)
        # Keys 005, 006, 007 and 030 of each topic, whose horizons are ten minutes or six seconds behind the cleaning.
        assert (one.tombstones, one.due, one.kept) == (4, 0, 4)
        assert isinstance(one.kept_until_ms, int)
        assert one.kept_until_ms > one.written_ms
    assert not twice(result)
    (row, *_) = [one for one in result.to_dict()["compacted"] if one["topic"] == "accounts"]
    assert (row["tombstones"], row["tombstones_kept"], row["superseded"]) == (4, 4, 0)


@pytest.mark.slow
def test_brokers_before_delete_horizons_have_tombstones_without_one(compaction):
    result = verify(compaction("compaction-1.1") / "snapshots/02-tombstoned-live", level="records")
    logs = [one for one in result.body.compacted if one.partition.topic == "accounts"]
    assert {(one.tombstones, one.due, one.kept) for one in logs} == {(4, 0, 0)}
    assert "4 without one" in logs[0].tombstone_words()


@pytest.mark.parametrize(("point", "below"), [(3, 0), (4, 1), (0, 0)])
def test_a_key_that_is_twice_below_the_cleaners_point_is_a_note(tmp_path, point, below):
    place = cleaned(tmp_path, point, batch(0, (b"a", b"1"), (b"b", b"1")), batch(2, (b"c", b"1"), (b"a", b"2")))
    found = counted(place)
    assert (found.records, found.superseded, found.superseded_below) == (4, 1, below)
    notes = twice(verify(place, level="records"))
    assert len(notes) == below
    for one in notes:
        assert (
            "below the cleaner's point, offset 4, 1 record has a later one of the key, offsets 0 and 3" in one.statement
        )
        assert not one.is_grave
    assert not twice(verify(place, level="crc"))


def test_a_topic_that_is_compacted_no_more_is_left_out(tmp_path):
    place = cleaned(tmp_path, 4, batch(0, (b"a", b"1"), (b"a", b"2")))
    assert verify(place).to_dict()["compacted"]
    fields = {"resource_type": 2, "resource_name": "state", "name": "cleanup.policy", "value": "delete"}
    metadata_log(place, metadata_batch(0, [metadata_record("ConfigRecord", fields)]))
    assert not verify(place).to_dict()["compacted"]


def test_what_was_aborted_supersedes_nothing(tmp_path):
    kept = batch(0, (b"a", b"1"))
    aborted = batch(1, (b"a", b"2"), attributes=TRANSACTIONAL, producer=5)
    place = cleaned(tmp_path, 0, kept, aborted, marker(2, 5, commits=False))
    assert (counted(place).records, counted(place).superseded) == (1, 0)
    place = cleaned(tmp_path / "other", 0, kept, aborted, marker(2, 5, commits=True))
    assert (counted(place).records, counted(place).superseded) == (2, 1)


def test_tombstones_are_told_apart_by_their_horizons(tmp_path):
    place = cleaned(
        tmp_path,
        3,
        batch(0, (b"a", None), attributes=HORIZON, time_ms=NOW - 1),
        batch(1, (b"b", None), attributes=HORIZON, time_ms=NOW + 60_000),
        batch(2, (b"c", None), (b"d", b"1"), time_ms=NOW),
    )
    found = counted(place)
    assert (found.tombstones, found.due, found.kept) == (3, 1, 1)
    # The base timestamp of a batch with a horizon is the horizon, and its records keep their times.
    assert "3 are tombstones (1 past its delete horizon, 1 before it, " in found.tombstone_words()
    assert "1 without one)" in found.tombstone_words()


def test_of_many_keys_a_sample_is_held(tmp_path, monkeypatch):
    monkeypatch.setattr(compacted_keys, "_MOST_KEYS", 500)
    keys = [b"%d" % number for number in range(4000)]
    records = [(key, b"v") for key in keys for _ in range(2)]
    place = cleaned(tmp_path, 0, *(batch(at, *records[at : at + 400]) for at in range(0, len(records), 400)))
    found = counted(place)
    assert found.is_estimate
    assert found.records == 8000
    assert found.superseded_words().startswith("about ")
    assert 3000 < found.superseded < 5000


def test_damage_leaves_at_least(tmp_path):
    damaged = bytearray(batch(2, (b"b", b"1")))
    damaged[-3] ^= 1
    place = cleaned(tmp_path, 0, batch(0, (b"a", b"1"), (b"a", b"2")), bytes(damaged), batch(3, (b"a", b"3")))
    assert counted(place).superseded_words() == "at least 2"


def test_a_log_that_is_too_long_is_left_out(tmp_path, monkeypatch):
    place = cleaned(tmp_path, 0, batch(0, (b"a", b"1")))
    monkeypatch.setattr(cleaning, "_MOST_TOGETHER", 10)
    document = verify(place, level="records").to_dict()
    assert (document["compacted"], document["compacted_not_counted"]) == ([], 1)
    monkeypatch.setattr(compacted_keys, "_LONGEST", 10)
    assert counted(place) is None
