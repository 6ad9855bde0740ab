"""What a leader's own line and own files show: who leads, an epoch that its file lacks, offsets that its log holds twice."""

import pytest

from kforensics import diff, explain, verify
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from tests.builders.directories import log_dir

SHRINKS = "[Partition orders-0 broker={0}] Shrinking ISR from 1,2 to {0}. Leader: (highWatermark: {1}, endOffset: {1}). Out of sync replicas: (brokerId: 9, endOffset: -1). (kafka.cluster.Partition)"
BEGINS = "[Partition orders-0 broker={0}] orders-0 starts at leader epoch {1} from offset {2} with high watermark {2}. Previous leader epoch was 6. (kafka.cluster.Partition)"


def batches(*offsets, epoch=6):
    return b"".join(
        encode_record_batch(
            build_record_batch(offset, [(1_700_000_000_000, b"k", b"v")] * 10, partition_leader_epoch=epoch)
        )
        for offset in offsets
    )


def broker(root, number, epochs, content):
    place = log_dir(root / f"b{number}", number)
    (place / "orders-0/00000000000000000000.log").write_bytes(content)
    lines = "".join(f"{epoch} {offset}\n" for epoch, offset in epochs)
    (place / "orders-0/leader-epoch-checkpoint").write_text(f"0\n{len(epochs)}\n{lines}")
    return place


def logged(root, number, *lines):
    folder = root / f"logs/broker-{number}"
    folder.mkdir(parents=True)
    stamped = (f"[2023-11-14 23:{at:02}:00,000] INFO {line}\n" for at, line in enumerate(lines))
    (folder / "server.log").write_text("".join(stamped))
    return folder


def of(result, code):
    return [one for one in result.findings if one.code == code]


@pytest.mark.parametrize("command", [verify, diff, explain])
def test_a_leader_that_lacks_its_epoch_is_named(tmp_path, command):
    whole = batches(0, 10)
    broker(tmp_path, 1, [(6, 0)], whole)
    broker(tmp_path, 2, [(6, 0), (7, 20)], whole)
    logged(tmp_path, 1, BEGINS.format(1, 7, 20), SHRINKS.format(1, 20))
    (found,) = of(command(tmp_path), "KF220")
    assert "broker 1 leads in leader epoch 7, and is alone in the ISR" in found.statement
    assert "ends with epoch 6. Followers that fetch in epoch 7 get OFFSET_OUT_OF_RANGE" in found.statement
    assert "KAFKA-15608" in found.references


@pytest.mark.parametrize("command", [verify, diff, explain])
def test_nothing_is_lacked_where_the_epoch_was_written_in_or_only_a_follower_lacks_it(tmp_path, command):
    (tmp_path / "a").mkdir()
    broker(tmp_path / "a", 1, [(6, 0)], batches(0, 10))
    broker(tmp_path / "a", 2, [(6, 0), (7, 20)], batches(0, 10) + batches(20, epoch=7))
    logged(tmp_path / "a", 1, BEGINS.format(1, 7, 20))
    assert not of(command(tmp_path / "a"), "KF220")
    (tmp_path / "b").mkdir()
    broker(tmp_path / "b", 1, [(6, 0), (7, 20)], batches(0, 10))
    broker(tmp_path / "b", 2, [(6, 0)], batches(0, 10))
    logged(tmp_path / "b", 1, BEGINS.format(1, 7, 20), SHRINKS.format(1, 20))
    assert not of(command(tmp_path / "b"), "KF220")


@pytest.mark.parametrize(("version", "count"), [("1.1.1", 0), ("2.0.1", 1)])
def test_up_to_2_0_0_a_leader_enters_its_epoch_with_its_first_record_only(tmp_path, version, count):
    broker(tmp_path, 1, [(6, 0)], batches(0, 10))
    logged(
        tmp_path, 1, f"Kafka version : {version} (org.apache.kafka.common.utils.AppInfoParser)", BEGINS.format(1, 7, 20)
    )
    assert len(of(diff(tmp_path), "KF220")) == count


def test_an_isr_line_shows_who_leads_and_its_log_holds_offsets_twice(tmp_path):
    broker(tmp_path, 1, [(6, 0)], batches(0, 10))
    broker(tmp_path, 2, [(6, 0)], batches(0, 10, 20, 30, 20, 40))
    logged(tmp_path, 2, SHRINKS.format(2, 50))
    result = explain(tmp_path)
    assert "which replica leads" not in result.answer.headline
    (found,) = of(result, "KF208")
    assert "the log of broker 2, the leader, holds batches out of order" in found.statement
    assert "OffsetsOutOfOrderException" in found.meaning
    assert "Broker 1 ends below them, with the same batches up to there." in found.meaning
    (judged,) = diff(tmp_path).to_dict()["partitions"]
    assert judged["leader"]["is_known"]
    assert judged["leader"]["broker_id"] == 2


@pytest.mark.parametrize(
    ("epochs", "content", "end"),
    [
        ([(6, 0), (7, 20)], batches(0, 10) + batches(20, epoch=7), 20),  # another knows a later epoch
        ([(6, 0)], batches(0, 10), 90),  # the directory is older than the line
    ],
)
def test_an_isr_line_shows_no_leader_of_directories_of_another_time(tmp_path, epochs, content, end):
    broker(tmp_path, 1, epochs, content)
    broker(tmp_path, 2, [(6, 0)], batches(0, 10))
    logged(tmp_path, 2, SHRINKS.format(2, end))
    (judged,) = diff(tmp_path).to_dict()["partitions"]
    assert not judged["leader"]["is_known"]
    assert "which replica leads" in explain(tmp_path).answer.headline


def test_an_isr_line_shows_no_leader_where_a_replica_that_it_names_is_not_given(tmp_path):
    broker(tmp_path, 2, [(6, 0)], batches(0, 10))
    logged(tmp_path, 2, SHRINKS.format(2, 20))
    assert "which replica leads" in explain(tmp_path).answer.headline


@pytest.mark.parametrize(
    ("second", "words"), [(False, "holds the first of the two"), (True, "holds the second of the two")]
)
def test_another_log_shows_which_of_two_batches_it_was_given(tmp_path, second, words):
    other = encode_record_batch(
        build_record_batch(20, [(1_700_000_000_000, b"k", b"w")] * 10, partition_leader_epoch=6)
    )
    broker(tmp_path, 1, [(6, 0)], batches(0, 10) + (other if second else batches(20)))
    broker(tmp_path, 2, [(6, 0)], batches(0, 10, 20, 30) + other + batches(40))
    (found,) = of(explain(tmp_path), "KF208")
    assert f"Broker 1 {words}." in found.meaning
    assert "ends below them" not in found.meaning
