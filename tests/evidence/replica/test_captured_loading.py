"""What the rules of loading are given of captured batches."""

from typing import cast

import numpy as np
import pytest

from kforensics.evidence.captured.columns import NO_CONTROL
from kforensics.evidence.replica import captured_loading
from kforensics.formats.log.batch_table import TRANSACTIONAL_BIT, empty_batches
from kforensics.source.capture import CapturedSegment


class Segment:
    size = 200
    row: dict[str, object] = {}  # noqa: RUF012 - nothing writes to it


@pytest.mark.parametrize("sequence", [-1, 0, 7])
def test_commits_of_offsets_in_transactions_have_no_sequence(monkeypatch, sequence):
    rows = empty_batches(2)
    rows["position"], rows["length"], rows["magic"] = (0, 100), 100, 2
    rows["attributes"], rows["base_sequence"], rows["count"] = TRANSACTIONAL_BIT, sequence, 1
    monkeypatch.setattr(captured_loading, "captured_batches", lambda _: rows)
    controls = np.full(2, NO_CONTROL), np.full(2, -1)
    monkeypatch.setattr(captured_loading, "captured_controls", lambda _: controls)

    found = captured_loading.batches_in(cast(CapturedSegment, Segment()), 0, checked=False)

    assert [sequence] * 2 == [one.base_sequence for one in found.batches]
    assert 200 == found.end
