"""A move between log directories that can't go on, and partitions that a broker makes anew where their directory goes offline."""

import pytest

from kforensics import predict, verify
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from tests.builders.directories import log_dir

FUTURE = "orders-0.0123456789abcdef0123456789abcdef-future"


def records(offset, count=10):
    return encode_record_batch(
        build_record_batch(offset, [(1_700_000_000_000, b"k", b"v")] * count, partition_leader_epoch=0)
    )


def written(place, name, base, content):
    (place / name / f"{base:020d}.log").write_bytes(content)
    (place / name / "leader-epoch-checkpoint").write_text(f"0\n1\n0 {base}\n")
    (place / ".kafka_cleanshutdown").touch()


def moving(root, *, start, end):
    """A broker whose log begins at one offset, and whose future log ends at another."""
    one = log_dir(root / "d1", 4)
    written(one, "orders-0", start, records(start))
    two = log_dir(root / "d2", 4, partitions=(FUTURE,))
    written(two, FUTURE, 0, records(0, end) if end else b"")
    return root


def words(result):
    return " ".join(map(str, (*result.answer.now, *result.answer.later)))


@pytest.mark.parametrize("end", [0, 7])
def test_a_future_log_below_the_start_can_never_catch_up(tmp_path, end):
    root = moving(tmp_path, start=700, end=end)
    (found,) = (one for one in verify(root).findings if one.code == "KF516")
    assert f"ends at {end}, below 700, where the log of orders-0 in d1/orders-0 begins" in found.statement
    said = words(predict(root, kafka="2.8.1"))
    assert f"d2/{FUTURE} ends at {end}, below the start of d1/orders-0, 700" in said
    assert f"Delete d2/{FUTURE} while broker 4 is stopped" in said


def test_a_future_log_that_is_only_behind_goes_on(tmp_path):
    root = moving(tmp_path, start=5, end=7)
    assert not [one for one in verify(root).findings if one.code == "KF516"]
    assert "can't go on" not in words(predict(root, kafka="2.8.1"))


def two_disks(root):
    """A broker without ZooKeeper, one of whose two log directories holds a file that fails."""
    for name, partition in (("d1", "orders-0"), ("d2", "orders-1")):
        written(log_dir(root / name, 4, partitions=(partition,)), partition, 0, records(0))
    (root / "d2/orders-1/leader-epoch-checkpoint").write_text("0\n1\n\n0 0\n")
    (root / "server.properties").write_text(
        "process.roles=broker\nnode.id=4\ncontroller.quorum.voters=9@127.0.0.1:9093\ncontroller.listener.names=CONTROLLER\nlog.dirs=/d1,/d2\n"
    )
    return root


def test_a_broker_before_3_7_makes_partitions_of_an_offline_directory_anew(tmp_path):
    result = predict(two_disks(tmp_path), kafka="3.5.1")
    assert "makes orders-1 anew, empty, in d1" in result.answer.headline
    said = words(result)
    assert "Mend d2 before broker 4 is started" in said
    assert "followers truncate to 0" in said
    assert "orders-0 anew" not in said


def test_a_broker_since_3_7_knows_in_which_directory_a_partition_was(tmp_path):
    result = predict(two_disks(tmp_path), kafka="3.7.0")
    assert "anew" not in f"{result.answer.headline} {words(result)}"
