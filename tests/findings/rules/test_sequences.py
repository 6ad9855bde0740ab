"""A producer's sequences that are missing or there twice, as verify and explain say it, and where they keep still."""

import pytest

from kforensics import explain, trace, verify
from kforensics.formats.index import ProducerEntry, encode_producers
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from tests.builders.directories import log_dir
from tests.steps import steps


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
    return {one.code: one for one in result.findings if one.code in {"KF118", "KF119", "KF124"}}


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


def test_missing_sequences_of_another_replica_are_found_there(tmp_path):
    written(tmp_path / "b1", (0, [batch(0, 10, 0), batch(10, 5, 12, epoch=4)]))
    other = written(tmp_path / "b2", (0, [batch(0, 10, 0), batch(10, 2, 10)]))
    meta = other / "meta.properties"
    meta.write_text(meta.read_text().replace("node.id=1", "node.id=2"))
    found = codes(explain(tmp_path))["KF118"]
    assert "They are in the log of broker 2, from offset 10 to 11." in found.meaning
    assert f" {found.statement}." in explain(tmp_path).answer.headline
    assert "No log here holds them" in codes(explain(tmp_path / "b1"))["KF118"].meaning


def test_many_breaks_and_many_producers_take_steps_in_proportion(tmp_path):
    def check(count):
        place = written(tmp_path / f"b{count}", (0, [batch(at, 1, 2 * at) for at in range(count)]))
        entries = [ProducerEntry(at, 2, 0, 0, 0, 0, -1, -1) for at in range(10 * count)]
        (place / f"shipments-4/{count:020d}.snapshot").write_bytes(encode_producers(entries))
        return lambda: codes(verify(place))

    few, many = check(50), check(100)
    assert set(many()) == {"KF118"}
    assert steps(many) < 2.1 * steps(few)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (verify, "00000000000000000012.snapshot names sequence 11 at offset 11: the broker had appended it"),
        (explain, "Producer snapshot 12 of broker 1 names sequence 11 at offset 11: it had been appended there"),
    ],
)
def test_a_snapshot_shows_that_missing_sequences_were_appended(tmp_path, command, words):
    place = written(tmp_path / "b1", (0, [batch(0, 10, 0), batch(10, 5, 12)]))
    entry = ProducerEntry(4100, 2, 11, 11, 1, 1_700_000_000_000, -1, -1)
    (place / "shipments-4/00000000000000000012.snapshot").write_bytes(encode_producers([entry]))
    found = codes(command(place))["KF118"]
    assert words in found.meaning
    assert "nothing shows that they were ever appended" not in found.meaning


def test_what_no_truncation_and_no_snapshot_names_may_never_have_been_appended(tmp_path):
    place = written(tmp_path / "b1", (0, [batch(0, 10, 0), batch(10, 5, 12)]))
    assert "nothing shows that they were ever appended" in codes(explain(place))["KF118"].meaning


@pytest.mark.parametrize("command", [verify, explain])
def test_a_log_that_does_not_go_on_where_the_snapshot_at_its_beginning_ends(tmp_path, command):
    place = written(tmp_path / "b1", (100, [batch(100, 5, 158)]))
    (place / "shipments-4/leader-epoch-checkpoint").write_text("0\n1\n3 100\n")
    snapshot = place / "shipments-4/00000000000000000100.snapshot"
    for last, statement in ((155, "sequences 156 and 157 of producer 4100 (epoch 2) are missing"), (157, "")):
        snapshot.write_bytes(encode_producers([ProducerEntry(4100, 2, last, 99, 4, 1_700_000_000_000, -1, -1)]))
        found = codes(command(place))
        assert set(found) == ({"KF118"} if statement else set())
        assert not statement or f"{statement} between offsets 99 and 100" in found["KF118"].statement


def sent(offset, sequence, epoch, *, time_ms=0, value=b"v", producer=7):
    record = (1_700_000_000_000 + time_ms, b"key7", value)
    return encode_record_batch(
        build_record_batch(offset, [record], producer_id=producer, producer_epoch=epoch, base_sequence=sequence)
    )


@pytest.mark.parametrize(
    ("command", "epoch"),
    [
        *((command, epoch) for command in (verify, explain) for epoch in (0, 1)),
        (lambda path: trace(path, topics="shipments", key=b"key7"), 1),
    ],
)
def test_a_batch_that_is_sent_again_as_its_producer_begins_anew_is_a_note(tmp_path, command, epoch):
    place = written(tmp_path / "b1", (0, [sent(0, 0, 0), sent(1, 1, 0, time_ms=5), sent(2, 0, epoch, time_ms=5)]))
    found = codes(command(place))
    assert set(found) == {"KF124"}
    assert (
        f"1 record of producer 7 from offset 1 on is there again from offset 2 on, in its epoch {epoch}"
        in found["KF124"].statement
    )
    assert not found["KF124"].is_grave


@pytest.mark.parametrize("command", [verify, lambda path: trace(path, topics="shipments", key=b"key7")])
def test_another_record_of_the_same_length_and_time_is_none_that_was_sent_again(tmp_path, command):
    place = written(tmp_path / "b1", (0, [sent(0, 0, 0), sent(1, 0, 1, value=b"w")]))
    assert not codes(command(place))
    later = written(tmp_path / "b2", (0, [sent(0, 0, 0), sent(1, 0, 1, time_ms=5)]))
    assert not codes(command(later))


@pytest.mark.parametrize("command", [verify, explain])
def test_nothing_is_said_where_a_cleaner_has_been(tmp_path, command):
    assert not codes(command(written(tmp_path / "a", (0, [batch(0, 10, 0), batch(12, 5, 12)]))))
    assert not codes(command(written(tmp_path / "b", (0, [batch(0, 10, 0), batch(10, 5, 12)]), cleaner=15)))


@pytest.mark.parametrize("command", [verify, explain])
def test_nothing_is_said_of_a_producer_that_the_broker_had_forgotten(tmp_path, command):
    place = written(tmp_path / "b1", (0, [batch(0, 10, 0)]), (10, [batch(10, 5, 12)]))
    (place / "shipments-4/00000000000000000010.snapshot").write_bytes(encode_producers([]))
    assert not codes(command(place))
