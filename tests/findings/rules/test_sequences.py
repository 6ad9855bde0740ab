"""A producer's sequences that are missing or there twice, as verify and explain say it, and where they keep still."""

import pytest

from kforensics import explain, verify
from kforensics.formats.index import encode_producers
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from tests.builders.directories import log_dir


def batch(offset, records, sequence, *, producer=4100, epoch=3):
    return encode_record_batch(
        build_record_batch(
            offset,
            [(1_700_000_000_000, b"k", b"v")] * records,
            partition_leader_epoch=epoch,
            producer_id=producer,
            producer_epoch=2,
            base_sequence=sequence,
        )
    )


def written(folder, *segments, cleaner=None):
    log_dir(folder, partitions=("shipments-4",))
    (folder / ".kafka_cleanshutdown").touch()
    for base, batches in segments:
        (folder / f"shipments-4/{base:020d}.log").write_bytes(b"".join(batches))
    (folder / "shipments-4/leader-epoch-checkpoint").write_text("0\n1\n3 0\n")
    if cleaner is not None:
        (folder / "cleaner-offset-checkpoint").write_text(f"0\n1\nshipments 4 {cleaner}\n")
    return folder


def codes(result):
    return {one.code: one for one in result.findings if one.code in {"KF118", "KF119"}}


@pytest.mark.parametrize("command", [verify, explain])
def test_missing_sequences_are_named_over_segments(tmp_path, command):
    place = written(
        tmp_path / "b1",
        (0, [batch(0, 10, 0), batch(10, 1, 0, producer=55)]),
        (11, [batch(11, 5, 11, epoch=4), batch(16, 1, 1, producer=55, epoch=4)]),
    )
    found = codes(command(place))
    assert set(found) == {"KF118"}
    assert "sequence 10 of producer 4100 (epoch 2) is missing between offsets 9 and 11" in found["KF118"].statement


@pytest.mark.parametrize("command", [verify, explain])
def test_repeated_sequences_are_a_note(tmp_path, command):
    place = written(tmp_path / "b1", (0, [batch(0, 10, 0), batch(10, 4, 6), batch(14, 2, 3)]))
    found = codes(command(place))
    assert set(found) == {"KF119"}
    words = found["KF119"].statement
    assert "sequences 6 to 9 of producer 4100 (epoch 2) are there up to offset 9 and again from offset 10 on" in words
    assert words.endswith(", and 1 more such place")
    assert not found["KF119"].is_grave


@pytest.mark.parametrize("command", [verify, explain])
def test_nothing_is_said_where_a_cleaner_has_been(tmp_path, command):
    assert not codes(command(written(tmp_path / "a", (0, [batch(0, 10, 0), batch(12, 5, 12)]))))
    assert not codes(command(written(tmp_path / "b", (0, [batch(0, 10, 0), batch(10, 5, 12)]), cleaner=15)))


def test_nothing_is_said_of_a_producer_that_the_broker_had_forgotten(tmp_path):
    place = written(tmp_path / "b1", (0, [batch(0, 10, 0)]), (10, [batch(10, 5, 12)]))
    (place / "shipments-4/00000000000000000010.snapshot").write_bytes(encode_producers([]))
    assert not codes(verify(place))
