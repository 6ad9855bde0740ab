import os

import pytest

from kforensics.damage import Absent
from kforensics.source import walk
from kforensics.source.mapped import scan_directory
from kforensics.source.naming import FileKind
from kforensics.source.walk import (
    DirectoryKind,
    FoundDirectory,
    FoundFile,
    Listings,
    Obstacle,
    list_directory,
    walk_files,
    walk_log_dir,
    walk_partition,
)


@pytest.fixture
def log_dir(tmp_path):
    (tmp_path / "meta.properties").write_text("version=0\n")
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / "00000000000000000000.log").write_bytes(b"x" * 7)
    (tmp_path / "orders-0" / "notes.txt").write_bytes(b"")
    return tmp_path


def files(found):
    return {one.path: one.name.kind for one in found if isinstance(one, FoundFile)}


def obstacles(found):
    return [(one.path, one.message) for one in found if isinstance(one, Obstacle)]


def test_every_file_is_listed_with_its_place(log_dir):
    found = list(walk_log_dir(Listings(log_dir)))

    assert files(found) == {
        "meta.properties": FileKind.META_PROPERTIES,
        "orders-0/00000000000000000000.log": FileKind.SEGMENT,
        "orders-0/notes.txt": FileKind.UNKNOWN,
    }
    directory = next(one for one in found if isinstance(one, FoundDirectory))
    segment = next(one for one in found if isinstance(one, FoundFile) and one.name.kind is FileKind.SEGMENT)
    assert (directory.path, directory.log_dir, directory.kind) == ("orders-0", "", DirectoryKind.PARTITION)
    assert segment.partition == directory
    assert segment.length == 7
    assert obstacles(found) == []


@pytest.mark.parametrize("beside", ["00000000000000000003.log.deleted", "below/00000000000000000003.log"])
def test_an_outline_has_the_length_of_plain_segments_and_walks_what_is_unusual(log_dir, beside):
    (outline,) = (one for one in walk_log_dir(Listings(log_dir), in_outline=True) if isinstance(one, FoundDirectory))
    unusual = log_dir / "orders-0" / beside
    unusual.parent.mkdir(exist_ok=True)
    unusual.write_bytes(b"x")
    walked = list(walk_log_dir(Listings(log_dir), in_outline=True))

    assert outline.segment_bytes == 7
    assert [one.segment_bytes for one in walked if isinstance(one, FoundDirectory)] == [None]
    assert f"orders-0/{beside}" in files(walked)


def test_an_outline_walks_a_directory_without_segments(log_dir):
    (log_dir / "orders-0" / "00000000000000000000.log").unlink()

    assert "orders-0/notes.txt" in files(walk_log_dir(Listings(log_dir), in_outline=True))


def test_recordings_hold_nothing_unknown(incident):
    names = ("tiered-3.9", "kraft-quorum-3x", "reassignment-jbod-2.8")
    for log_dir in (one.parent for name in names for one in incident(name).glob("snapshots/*/**/meta.properties")):
        found = list(walk_log_dir(Listings(log_dir)))

        assert FileKind.UNKNOWN not in files(found).values()
        assert all(one.kind is not DirectoryKind.UNKNOWN for one in found if isinstance(one, FoundDirectory))
        assert obstacles(found) == []
        assert len(files(found)) == sum(1 for one in log_dir.rglob("*") if one.is_file())


def test_symbolic_links_are_reported_and_not_followed(log_dir, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "00000000000000000000.log").write_bytes(b"secret")
    (log_dir / "orders-1").symlink_to(outside)
    (log_dir / "orders-0" / "loop").symlink_to("..")
    (log_dir / "orders-0" / "00000000000000000007.log").symlink_to(outside / "00000000000000000000.log")

    found = list(walk_log_dir(Listings(log_dir)))

    assert [path for path, _ in obstacles(found)] == [
        "orders-1",
        "orders-0/00000000000000000007.log",
        "orders-0/loop",
    ]
    assert not any("00000000000000000000.log" in path for path in files(found) if path.startswith("orders-1/"))
    assert files(found)["orders-1"] is FileKind.SYMBOLIC_LINK


def test_pipes_are_listed_and_never_opened(log_dir):
    os.mkfifo(log_dir / "orders-0" / "00000000000000000009.log")

    found = list(walk_log_dir(Listings(log_dir)))

    assert files(found)["orders-0/00000000000000000009.log"] is FileKind.SPECIAL
    assert obstacles(found) == []


def test_names_that_are_no_text_are_kept(log_dir):
    name = os.fsdecode(b"caf\xe9\x1b[2J.log")
    (log_dir / "orders-0" / name).write_bytes(b"")

    assert files(walk_log_dir(Listings(log_dir)))[f"orders-0/{name}"] is FileKind.UNKNOWN


def test_directories_of_the_file_system_and_of_tiered_storage(log_dir):
    (log_dir / "lost+found").mkdir()
    (log_dir / "lost+found" / "#123").write_bytes(b"")
    (log_dir / "remote-log-index-cache").mkdir()
    (log_dir / "remote-log-index-cache" / "60_vEIJ6JF6SkmTCJ1H9LLg7w.index").write_bytes(b"")
    (log_dir / "backup").mkdir()
    (log_dir / "backup" / "00000000000000000000.log").write_bytes(b"")

    found = list(walk_log_dir(Listings(log_dir)))

    kinds = {one.path: one.kind for one in found if isinstance(one, FoundDirectory)}
    assert kinds == {
        "backup": DirectoryKind.UNKNOWN,
        "lost+found": DirectoryKind.LOST_AND_FOUND,
        "orders-0": DirectoryKind.PARTITION,
        "remote-log-index-cache": DirectoryKind.REMOTE_INDEX_CACHE,
    }
    assert "lost+found/#123" not in files(found)
    cached = next(one for one in found if isinstance(one, FoundFile) and one.path.endswith("7w.index"))
    assert cached.partition is Absent.NOT_APPLICABLE
    assert "backup/00000000000000000000.log" in files(found)


def test_a_directory_that_can_not_be_listed_is_an_obstacle(log_dir, monkeypatch):
    real = scan_directory

    def refuse(path):
        if str(path).endswith("orders-0"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr("kforensics.source.walk.scan_directory", refuse)

    found = list(walk_log_dir(Listings(log_dir)))

    assert obstacles(found) == [("orders-0", "the directory can't be listed: Permission denied")]
    assert "meta.properties" in files(found)


class Vanished:
    def __init__(self, name, error):
        self.name = name
        self.error = error

    def stat(self, *, follow_symlinks):
        raise self.error


def test_what_vanishes_is_an_obstacle_unless_brokers_take_it_away_by_themselves(monkeypatch, tmp_path):
    gone = FileNotFoundError(2, "No such file or directory")
    entries = [
        Vanished("00000000000000000000.log", gone),
        Vanished("00000000000000000000.log.deleted", gone),
        Vanished("orders-0.0123456789abcdef0123456789abcdef-delete", gone),
        Vanished("orders-0", gone),
        Vanished("bad-block", OSError(5, "Input/output error")),
    ]

    class Scan:
        def __enter__(self):
            return iter(entries)

        def __exit__(self, *_):
            pass

    with monkeypatch.context() as patch:
        patch.setattr("kforensics.source.walk.scan_directory", lambda _: Scan())
        listing = list_directory(tmp_path, "data")

    assert [one.path for one in listing.obstacles] == [
        "data/00000000000000000000.log",
        "data/orders-0",
        "data/bad-block",
    ]
    assert listing.entries == ()


def test_nesting_is_bounded(log_dir):
    deep = log_dir / "orders-0"
    for _ in range(walk.DEEPEST + 3):
        deep /= "d"
        deep.mkdir()

    found = list(walk_log_dir(Listings(log_dir)))

    assert len(obstacles(found)) == 1
    assert "nested" in obstacles(found)[0][1]


def test_a_partition_directory_by_itself(log_dir):
    found = list(walk_partition(Listings(log_dir / "orders-0")))

    assert isinstance(found[0], FoundDirectory)
    assert found[0].name != Absent.UNKNOWN
    assert set(files(found)) == {"00000000000000000000.log", "notes.txt"}

    renamed = list(walk_partition(Listings(log_dir / "orders-0"), name="copy of something"))
    assert isinstance(renamed[0], FoundDirectory)
    assert renamed[0].name is Absent.UNKNOWN


def test_files_outside_of_log_directories(tmp_path):
    (tmp_path / "broker-1").mkdir()
    (tmp_path / "broker-1" / "server.log").write_text("")

    assert files(walk_files(Listings(tmp_path))) == {"broker-1/server.log": FileKind.LOG_FILE}


def test_the_order_is_that_of_the_names(tmp_path):
    for name in ("c", "a", "b"):
        (tmp_path / name).write_bytes(b"")

    assert [entry.name for entry in list_directory(tmp_path, "").entries] == ["a", "b", "c"]


def test_what_others_have_listed_is_not_listed_again(log_dir, monkeypatch):
    first = Listings(log_dir)
    listed = first.of("orders-0")
    beside = Listings(log_dir).beside(first)
    monkeypatch.setattr(walk, "list_directory", None)

    assert beside.of("orders-0") == listed
    assert tuple(beside.rows("orders-0", once=True)[0]) == listed.entries
    assert beside.below("orders-0").of("") == listed
    beside.forget("orders-0")
    assert first.of("orders-0") == listed

    monkeypatch.undo()
    (log_dir / "orders-1").mkdir()
    assert not beside.of("orders-1").entries
    (log_dir / "orders-1" / "notes.txt").touch()
    assert [one.name for one in first.of("orders-1").entries] == ["notes.txt"]
