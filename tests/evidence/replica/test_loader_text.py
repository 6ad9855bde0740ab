"""Numbers of small text files, as Java reads them."""

import pytest

from kforensics.evidence.replica.loader_reader import read_offset_checkpoint
from kforensics.formats.log.loader_values import LoadFailure


@pytest.mark.parametrize(
    ("text", "offset"),
    [("0" * 5000 + "7", 7), ("-0012", -12), ("9" * 5000, None), (str(2**63 - 1), 2**63 - 1), (str(2**63), None)],
)
def test_numbers_of_any_length(text, offset):
    found = read_offset_checkpoint(f"0\n1\norders 0 {text}\n".encode())

    assert offset == (None if isinstance(found, LoadFailure) else next(iter(found.values())))
