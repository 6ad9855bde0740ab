import os

import pytest

from kforensics.errors import EvidenceNotFound, EvidenceUnreadable, NotADataDir
from kforensics.source import discover as discover_module
from kforensics.source.discover import Shape, discover


def partition(path):
    path.mkdir(parents=True)
    (path / "00000000000000000000.log").write_bytes(b"")


def test_a_log_directory_by_its_markers(tmp_path):
    (tmp_path / "replication-offset-checkpoint").write_text("0\n0\n")

    place = discover(tmp_path)

    assert (place.shape, place.log_dirs) == (Shape.LOG_DIR, ("",))


def test_a_log_directory_by_its_partitions(tmp_path):
    partition(tmp_path / "orders-0")

    assert discover(tmp_path).shape is Shape.LOG_DIR


def test_nodes_whose_names_look_like_partitions(tmp_path):
    for node in ("broker-1", "broker-2"):
        partition(tmp_path / node / "orders-0")
        (tmp_path / node / "meta.properties").write_text("version=0\n")

    place = discover(tmp_path)

    assert (place.shape, place.log_dirs) == (Shape.PARENT, ("broker-1", "broker-2"))


def test_a_partition_directory_that_was_put_beside_those_of_nodes(tmp_path):
    partition(tmp_path / "audit-0")
    for node in ("broker-1", "broker-2"):
        partition(tmp_path / node / "orders-0")
        (tmp_path / node / "meta.properties").write_text("version=0\n")

    place = discover(tmp_path)

    assert (place.shape, place.log_dirs) == (Shape.PARENT, ("broker-1", "broker-2"))
    assert place.partitions == ("audit-0",)


def test_a_partition_directory_whatever_its_name(tmp_path):
    partition(tmp_path / "a copy")

    assert discover(tmp_path / "a copy").shape is Shape.PARTITION
    place = discover(tmp_path)
    assert (place.shape, place.partitions) == (Shape.PARENT, ("a copy",))


def test_files_and_directories_of_server_logs(tmp_path):
    (tmp_path / "broker-1").mkdir()
    (tmp_path / "broker-1" / "server.log").write_text("")

    assert discover(tmp_path / "broker-1" / "server.log").shape is Shape.FILE
    assert discover(tmp_path / "broker-1").shape is Shape.FILES
    assert discover(tmp_path).shape is Shape.FILES


def test_a_link_that_was_named_is_followed(tmp_path):
    partition(tmp_path / "real" / "orders-0")
    (tmp_path / "link").symlink_to("real")

    assert discover(tmp_path / "link").root == (tmp_path / "real").resolve()


def test_links_on_the_way_are_not_followed(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    partition(tmp_path / "b" / "orders-0")

    assert discover(tmp_path).log_dirs == ("b",)
    with pytest.raises(NotADataDir):
        discover(tmp_path / "a")


@pytest.mark.parametrize(
    ("names", "cause"),
    [
        (["controller/0_0/0-1-v1.log"], "Redpanda"),
        (["config_cache.yaml", "kafka/orders/0_18/0-1-v1.base_index"], "Redpanda"),
        (["version-2/snapshot.100000001", "version-2/log.1"], "ZooKeeper"),
        (["bin/kafka-server-start.sh", "libs/kafka.jar"], "log.dirs"),
    ],
)
def test_directories_of_others_are_refused_in_words(tmp_path, names, cause):
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")

    with pytest.raises(NotADataDir) as caught:
        discover(tmp_path)

    assert cause in " ".join(caught.value.causes)
    assert caught.value.path == str(tmp_path)


def test_what_is_not_there_or_can_not_be_read(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").symlink_to("nowhere")
    (tmp_path / "self").symlink_to("self")

    with pytest.raises(EvidenceNotFound, match="no such file"):
        discover(tmp_path / "gone")
    with pytest.raises(EvidenceNotFound):
        discover(tmp_path / "broken")
    with pytest.raises(EvidenceUnreadable):
        discover(tmp_path / "self")
    with pytest.raises(EvidenceUnreadable):
        discover(tmp_path / "null\0byte")
    with pytest.raises(EvidenceUnreadable, match="named pipe"):
        discover(tmp_path / "pipe")
    with pytest.raises(NotADataDir, match="an empty directory"):
        discover(tmp_path / "empty")

    def refuse(_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("kforensics.source.walk.scan_directory", refuse)
    with pytest.raises(EvidenceUnreadable, match="can't be listed: Permission denied"):
        discover(tmp_path)


def test_a_search_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(discover_module, "DEEPEST_SEARCH", 2)
    partition(tmp_path / "1" / "2" / "data" / "orders-0")
    (tmp_path / "1" / "2" / "3" / "4").mkdir(parents=True)
    partition(tmp_path / "1" / "2" / "3" / "4" / "orders-0")

    place = discover(tmp_path / "1")
    assert place.log_dirs == ("2/data",)
    assert [one.path for one in place.obstacles] == ["2/3/4"]

    monkeypatch.setattr(discover_module, "MOST_SEARCHED", 1)
    with pytest.raises(EvidenceUnreadable, match="name the data directories themselves"):
        discover(tmp_path)


def test_a_folder_without_data_names_the_empty_ones_below_it(tmp_path):
    (tmp_path / "broker-1" / "kafka-logs").mkdir(parents=True)
    (tmp_path / "broker-1" / "other").mkdir()
    (tmp_path / "broker-1" / "other" / "notes.xyz").write_text("")

    with pytest.raises(NotADataDir) as refused:
        discover(tmp_path / "broker-1")

    (cause,) = refused.value.causes
    assert cause.startswith("empty in it: kafka-logs; the volume is not mounted, or the disk is new or was emptied")
