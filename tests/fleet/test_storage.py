"""Evidence on other storage is found and judged by the same code as on local disk."""

import os
from pathlib import Path

import pytest

from kforensics.commands.diff import DiffOptions, compare
from kforensics.errors import EvidenceNotFound, EvidenceUnreadable
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.fleet.storage import StoragePath, _filesystem, expand_glob, parse_location
from kforensics.source.mapped import open_evidence


@pytest.fixture
def stored(incident):
    """A recorded fleet in a file system that exists in memory only."""
    place = incident("unclean-election-4.x") / "snapshots" / "03-old-leader-down-live"
    _filesystem.cache_clear()
    filesystem, _ = _filesystem("mock", "")
    for folder, _, names in os.walk(place):
        below = "fleet" + folder.removeprefix(str(place))
        filesystem.create_dir(below)
        for name in names:
            with filesystem.open_output_stream(f"{below}/{name}") as stream:
                stream.write(Path(folder, name).read_bytes())
    return place, parse_location("mock:///fleet")


def test_a_fleet_on_other_storage_is_judged_as_on_disk(stored):
    place, there = stored

    local = compare(find_inputs([place]), DiffOptions(), jobs=1)
    remote = compare(find_inputs([there]), DiffOptions(), jobs=1)

    assert [(one.code, one.statement) for one in local.findings] == [
        (one.code, one.statement) for one in remote.findings
    ]
    assert [(one.partition, one.verdict) for one in local.partitions] == [
        (one.partition, one.verdict) for one in remote.partitions
    ]
    assert () == remote.problems
    assert "mock:///fleet/broker-1" == remote.inputs[0].path


def test_names_of_places():
    assert "s3://bucket/a/b" == str(parse_location("s3://bucket/a/b"))
    assert "s3://bucket/a/b/c" == str(parse_location("s3://bucket/a/b") / "c")
    assert "gs://bucket" == str(parse_location("gs://bucket/"))
    assert "hdfs://default/logs" == str(parse_location("hdfs:///logs"))
    assert "hdfs://name:8020/logs" == str(parse_location("hdfs://name:8020/logs"))
    assert not isinstance(parse_location("/data/a b"), StoragePath)
    assert "/data/a b" == str(parse_location("file:///data/a%20b"))
    assert "b" == parse_location("s3://bucket/a/b").name
    assert parse_location("s3://bucket/a?region=x/y") == parse_location("s3://bucket/a?region=x/y")
    with pytest.raises(EvidenceUnreadable):
        parse_location("s3://[bad/a")


def test_a_place_is_sent_to_workers_as_it_is():
    import pickle

    place = parse_location("s3://bucket/a/b?endpoint_override=http%3A%2F%2Fhere")

    again = pickle.loads(pickle.dumps(place))

    assert (place, str(place), type(place)) == (again, str(again), type(again))


def test_globs(stored, tmp_path):
    _, there = stored
    assert ["broker-1", "broker-2", "broker-3"] == [one.name for one in expand_glob(there / "broker-[1-3]")]
    assert [] == expand_glob(there / "nothing-*")
    for name in ("b1", "b2", ".b3"):
        (tmp_path / name / "data").mkdir(parents=True)
    assert [tmp_path / "b1" / "data", tmp_path / "b2" / "data"] == expand_glob(tmp_path / "*" / "data")
    assert [tmp_path / "none"] == expand_glob(tmp_path / "none")


def test_missing_files_are_reported(stored):
    _, there = stored

    with pytest.raises(EvidenceNotFound):
        find_inputs([there / "none"])
    with pytest.raises(EvidenceNotFound):
        open_evidence(there / "broker-1" / "none")


def test_bytes_at_positions(stored):
    place, there = stored
    name = "broker-2/orders-0/00000000000000000000.log"
    data = (place / name).read_bytes()

    with open_evidence(there / name) as file:
        assert len(data) == file.size
        assert data[100:200] == file.read(100, 100)
        assert data[-5:] == file.read(len(data) - 5, 100)
        buffer = bytearray(10)
        assert 0 == file.read_into(len(data) + 5, memoryview(buffer))
        assert not file.changed()
