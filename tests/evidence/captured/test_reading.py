"""What a capture says of a segment, compared with what another one says of a replica of it."""

import json

import pytest

from kforensics.evidence.captured.reading import findings_in

ROW = {
    "valid_length": 300,
    "first_offset": 0,
    "last_offset": 19,
    "recovered_end_offset": 20,
    "batch_count": 4,
    "record_count": 20,
    "recovered_batch_count": 4,
    "recovered_record_count": 20,
    "magics": [2],
    "max_timestamp_ms": 1_795_243_926_213,
    "is_thinned": False,
    "thinned_below": 0,
    "longest_batch": 6,
    "changed": False,
    "damage": [],
    "digests": [[0, -5, 7, 4, 0]],
    "epochs": [[0, 0]],
    "carried_from": 0,
    "batches": [[0, 0, 3], [1, 0, 1]],
}


def test_equal_rows_are_the_same_wherever_their_batches_are():
    other = json.loads(json.dumps(ROW)) | {"batches": [[7, 100, 4]], "carried_from": 12}

    assert findings_in(ROW) is not None
    assert findings_in(ROW) == findings_in(other)


@pytest.mark.parametrize(
    "lie",
    [
        {"batch_count": 4.0},
        {"first_offset": False},
        {"magics": [2.0]},
        {"digests": [[0, -5, 7, 4.0, False]]},
        {"is_thinned": 0},
        {"max_timestamp_ms": float("nan")},
    ],
)
def test_a_value_that_equals_a_number_is_not_that_number(lie):
    assert findings_in(ROW | lie) != findings_in(ROW)


@pytest.mark.parametrize("runs", [[[0, -1, 4]], [[0, 0, 4.0]], [[1, 0, 3], [0, 0, 1]], [[0, 0]], [4], 4, None])
def test_rows_that_are_nowhere_are_no_findings(runs):
    assert findings_in(ROW | {"batches": runs}) is None
