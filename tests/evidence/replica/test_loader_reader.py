"""Batches as Kafka's loader reads them, where they are no batches."""

from kforensics.evidence.replica.loader_reader import read_needed
from kforensics.formats.log.batch_table import CONTROL_BIT, LOG_OVERHEAD, TRANSACTIONAL_BIT
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from kforensics.formats.log.loader_values import Batches, Content, LoadFailure, Need


def test_the_marker_of_a_control_batch_that_ends_within_its_header_is_an_invalid_record(tmp_path):
    data = bytearray(
        encode_record_batch(
            build_record_batch(
                0,
                [(0, b"key", b"value")],
                partition_leader_epoch=0,
                attributes=CONTROL_BIT | TRANSACTIONAL_BIT,
                producer_id=5,
                producer_epoch=0,
            )
        )
    )
    data[8:LOG_OVERHEAD] = (28).to_bytes(4)
    (tmp_path / "0.log").write_bytes(data)

    found = read_needed(tmp_path, Need("0.log", Content.BATCHES))

    assert isinstance(found, Batches)
    assert found.batches[0].length == 28 + LOG_OVERHEAD
    end = found.batches[0].end
    assert isinstance(end, LoadFailure)
    assert end.exception == "InvalidRecordException"
