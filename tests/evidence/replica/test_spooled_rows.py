import os

import numpy as np
import pytest

from kforensics.evidence.replica import batch_reader
from kforensics.evidence.replica.batch_reader import RowSpool
from kforensics.formats.log.batch_table import empty_batches


def _rows(bases):
    rows = empty_batches(len(bases))
    rows["base_offset"], rows["last_offset"] = bases, np.array(bases) + 4
    rows["crc"] = range(len(bases))
    return rows


@pytest.fixture
def spool(tmp_path, monkeypatch):
    monkeypatch.setattr(batch_reader, "_BLOCK_ROWS", 3)
    found = RowSpool(tmp_path)
    yield found
    found.close()


def test_rows_that_wait_in_a_file_are_those_of_the_table(spool, tmp_path):
    parts = [
        _rows(range(0, 100, 5)),
        _rows([200, 300, 150, 900]),
        _rows([]),
    ]  # a compacted log has its offsets in any order
    spool.add(0, "t-0/0.log", [spool.write(number, rows) for number, rows in enumerate(parts)])
    table = np.concatenate(parts)

    for first in range(-5, 910, 7):
        for last in (first, first + 40, 2**62):
            rows = spool.rows(0, "t-0/0.log", first, last)
            touched = (rows["last_offset"] >= first) & (rows["base_offset"] <= last)
            wanted = (table["last_offset"] >= first) & (table["base_offset"] <= last)
            assert (rows[touched] == table[wanted]).all()
            assert touched.sum() == wanted.sum()
            assert len(rows) <= wanted.sum() + 6 * len(parts)

    assert spool.rows(0, "t-0/5.log", 0, 9) is None
    assert not list(tmp_path.iterdir())


def test_rows_that_can_not_be_read_any_more_are_none(spool):
    spool.add(0, "t-0/0.log", [spool.write(0, _rows(range(40)))])
    os.ftruncate(spool._file.fileno(), 100)

    assert spool.rows(0, "t-0/0.log", 0, 99) is None
