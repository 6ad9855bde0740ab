"""Evidence on other storage is found and judged by the same code as on local disk."""

import os
import pickle
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import pyarrow.fs
import pytest

from kforensics.cli.app import run
from kforensics.commands.comparing import compare
from kforensics.damage import Absent
from kforensics.errors import EvidenceError, EvidenceNotFound, EvidenceUnreadable, UsageError
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.fleet.file_systems import _of_fsspec, check_options, options_of
from kforensics.fleet.pieces import _taken_up
from kforensics.fleet.plan import file_fingerprint
from kforensics.fleet.sources import find_sources, read_sources
from kforensics.fleet.storage import StoragePath, _filesystem, expand_glob, parse_location
from kforensics.source.mapped import open_evidence
from kforensics.source.naming import parse_file_name
from kforensics.source.walk import FoundFile
from tests.builders.cases import case_of


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


@pytest.mark.slow
def test_a_fleet_on_other_storage_is_judged_as_on_disk(stored):
    place, there = stored

    local = compare(case_of(find_inputs([place])))
    remote = compare(case_of(find_inputs([there])))

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


SECRET = "c2VjcmV0LWtleS1vZi10aGUtdGVzdA=="
GONE = "endpoint_override=127.0.0.1:1&scheme=http&connect_timeout=1&max_attempts=1"
URIS = [
    f"s3://AKIAEXAMPLE:{quote(SECRET, safe='')}@bucket/x?{GONE}",
    f"s3a://bucket/x?access_key=AKIAEXAMPLE&secret_key={quote(SECRET)}&{GONE}",
    f"s3://bucket/x?session_token={quote(SECRET)}&no_such_option=1",
    f"gs://bucket/x?access_token={quote(SECRET)}&retry_limit_seconds=soon",
    f"abfss://box:{quote(SECRET)}@account.dfs.core.windows.net/x?no_such_option=1",
    f"wasb://me:{SECRET}@host/x",
    f"s3://[me:{SECRET}@host/x",
]


@pytest.mark.parametrize("uri", URIS)
def test_no_output_shows_a_credential(uri, tmp_path, capsys):
    inventory = tmp_path / "fleet.yaml"
    inventory.write_text(f'nodes: [{{node: 1, location: "{uri}"}}]')
    for command in (
        ["report", uri],
        ["report", str(tmp_path / "none"), "--since", uri],
        ["report", uri, "--format", "json"],
    ):
        assert 3 == run(["fleet", *command])
    for source in (uri, str(inventory)):
        with pytest.raises(EvidenceError) as caught:
            find_sources(read_sources([source]))
        print(caught.value, repr(caught.value), caught.value.__cause__)

    shown = capsys.readouterr()
    assert shown.out
    assert shown.err
    assert SECRET not in shown.out + shown.err
    assert quote(SECRET) not in shown.out + shown.err


def test_a_credential_is_nowhere_in_a_path_and_travels_with_it():
    place = parse_location(f"s3://bucket/a?secret_key={quote(SECRET)}") / "b"

    assert SECRET not in f"{place} {place!r} {place.parts} {place.parent!r} {place.as_posix()}"
    assert SECRET.encode() in pickle.dumps(place)


def pyarrow_place(text, options=None):
    """Where pyarrow finds a path of other storage."""
    location = parse_location(text, options or {})
    assert isinstance(location, StoragePath)
    return location.place()


def test_options_reach_the_storage_that_knows_them():
    given = {
        "region": "eu-west-1",
        "s3a:endpoint_override": "here:9000",
        "gs:project_id": "p",
        "hdfs:dfs.replication": "1",
    }
    check_options(given)

    s3, inside = pyarrow_place("s3://bucket/a", given)

    assert (pyarrow.fs.S3FileSystem, "bucket/a", "eu-west-1") == (type(s3), inside, s3.region)
    assert {"region": "eu-west-1", "endpoint_override": "here:9000"} == options_of("s3a", given)
    assert {"dfs.replication": "1"} == options_of("hdfs", given)
    gs, inside = pyarrow_place("gs://anonymous@bucket/a", given)
    assert (pyarrow.fs.GcsFileSystem, "bucket/a") == (type(gs), inside)
    azure, inside = pyarrow_place("abfss://box@account.dfs.core.windows.net/a/b")
    assert (pyarrow.fs.AzureFileSystem, "box/a/b") == (type(azure), inside)
    with pytest.raises(UsageError, match="did you mean region"):
        check_options({"regio": "x"})


def test_relative_paths_are_absolute_before_they_travel(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broker-1").mkdir()
    (tmp_path / "inventory.csv").write_text("node,location\n1,broker-1\n")

    assert tmp_path / "out" == parse_location("out")
    assert [tmp_path / "broker-1"] * 2 == [one.location for one in read_sources(["broker-*", "inventory.csv"])]


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({"modificationTime": 1_700_000_000_123}, 1_700_000_000_123),
        ({"modification_time": 1_700_000_000_123}, 1_700_000_000_123),
        ({"LastModified": datetime(2026, 11, 22, tzinfo=UTC)}, 1_795_305_600_000),
        ({"updated": "2026-11-22T00:00:00Z"}, 1_795_305_600_000),
        ({"mtime": 1_700_000_000.0}, 1_700_000_000_000),
        ({"updated": "yesterday"}, None),
        ({"modificationTime": 2**63}, None),
        ({"mtime": float("inf")}, None),
        ({"created": datetime(2026, 11, 22, tzinfo=UTC)}, None),
    ],
)
def test_times_of_change_of_storages_behind_fsspec(info, expected):
    storage = SimpleNamespace(info=lambda path: {"name": path, "size": 1, "type": "file", **info})

    found = _of_fsspec(storage).get_file_info("/one")

    assert expected == (found.mtime_ns and found.mtime_ns // 1_000_000)


def test_a_file_whose_time_of_change_is_unknown_never_counts_as_unchanged():
    known = FoundFile("a", "", Absent.UNKNOWN, parse_file_name("00000000000000000000.log"), 5, 7)
    unknown = known._replace(mtime_ns=0)

    assert file_fingerprint(known) == file_fingerprint(known)
    assert file_fingerprint(unknown) != file_fingerprint(unknown)
    row = {"source": "s", "path": "a", "length": 5, "changed": False, "scanned_ns": 10**18}
    for mtime_ns, count in ((7, 1), (0, 0)):
        assert count == len([*_taken_up({"segments": [{**row, "mtime_ns": mtime_ns}]}, {"a": (5, mtime_ns)})])
