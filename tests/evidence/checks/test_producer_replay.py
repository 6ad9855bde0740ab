"""The producer state that a log leads to, on histories made by hand."""

import numpy as np
import pytest

from kforensics.evidence.checks.producers import DataRun, Marker, ProducerEvents, Split, parse_marker, replay
from kforensics.formats.index import ProducerEntry
from kforensics.formats.log.batch_table import CONTROL_BIT, TRANSACTIONAL_BIT, empty_batches

COMMIT, ABORT = 1, 0


def table(*rows):
    batches = empty_batches(len(rows))
    for at, (producer, base, last, sequence, attributes) in enumerate(rows):
        batches[at]["producer_id"], batches[at]["base_offset"], batches[at]["last_offset"] = producer, base, last
        batches[at]["base_sequence"], batches[at]["attributes"], batches[at]["position"] = (
            sequence,
            attributes,
            base * 100,
        )
    batches["magic"], batches["crc_valid"], batches["count"] = 2, True, 1
    return batches


def events_of(*windows, splits=(), kind=COMMIT):
    events = ProducerEvents(splits, lambda _position, _length: (kind, 7))
    for window in windows:
        events.add(window)
    return events.finish()


T, C = TRANSACTIONAL_BIT, TRANSACTIONAL_BIT | CONTROL_BIT


def test_batches_without_transactions_are_one_run_each():
    events = events_of(table((1, 0, 4, 0, 0), (2, 5, 5, 0, 0), (1, 6, 9, 5, 0)), table((1, 10, 10, 9, 0)))
    assert sorted(events) == [DataRun(1, -1, 0, 9, 10, 0, 0), DataRun(2, -1, 0, 0, 5, 0, 0)]


def test_a_transaction_over_two_windows():
    events = events_of(table((1, 0, 4, 0, T), (1, 5, 5, 5, T)), table((1, 6, 6, -1, C), (1, 7, 8, 6, T)))
    assert [type(event) for event in events] == [DataRun, Marker, DataRun]
    history = replay(events, start={}, splits=(9,))
    assert history.states[9][1] == ProducerEntry(1, 0, 7, 8, 1, 0, 7, 7)
    assert history.committed == {(1, 6)}


def test_an_abort_without_records_is_distinguished():
    rows = table((1, 0, 0, 0, T), (1, 1, 1, -1, C), (2, 2, 2, -1, C))
    history = replay(events_of(rows, kind=ABORT), start={}, splits=())
    assert history.aborted == {1: (0, 1, 0, 1, 2), 2: (0, 2, -1, 2, 3)}


def test_the_last_stable_offset_waits_for_other_transactions():
    rows = table((1, 0, 0, 0, T), (2, 1, 1, 0, T), (1, 2, 2, -1, C))
    assert replay(events_of(rows, kind=ABORT), start={}, splits=()).aborted[2].last_stable_offset == 1


def test_cuts_divide_windows():
    rows = table((1, 0, 4, 0, 0), (1, 5, 9, 5, 0), (1, 10, 14, 10, 0))
    events = events_of(rows, splits=(5, 10, 99))
    assert [event.offset for event in events if isinstance(event, Split)] == [5, 10]
    history = replay(events, start={}, splits=(5, 10, 99))
    assert [history.states[split][1].last_sequence for split in (5, 10, 99)] == [4, 9, 14]


def test_a_new_epoch_without_data_forgets_the_last_batch():
    rows = table((1, 0, 4, 0, T), (1, 5, 5, -1, C))
    rows["producer_epoch"] = [3, 4]
    assert replay(events_of(rows), start={}, splits=(6,)).states[6][1] == ProducerEntry(1, 4, -1, -1, 0, 0, 7, -1)


def test_sequences_wrap():
    (run,) = events_of(table((1, 0, 4, 2**31 - 2, 0)))
    assert run.last_sequence == 2


@pytest.mark.parametrize(("key", "value"), [(None, b""), (b"\0\0", bytes(6)), (bytes(4), None), (bytes(4), bytes(3))])
def test_what_is_no_marker(key, value):
    assert parse_marker(key, value) is None
    assert parse_marker(b"\0\0\0\1", b"\0\0\0\0\0\5") == (1, 5)


def test_unreadable_markers_change_nothing():
    events = ProducerEvents((), lambda _position, _length: None)
    events.add(table((1, 0, 0, -1, C)))
    events.add(np.zeros(0, dtype=empty_batches().dtype))
    assert events.finish() == ()
