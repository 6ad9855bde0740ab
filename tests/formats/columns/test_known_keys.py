"""Keys that are numbered many at once, held against a dictionary: few slots, so that keys get into one another's, and long keys."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.formats.columns import record_stream
from kforensics.formats.columns.record_stream import KnownKeys

KEYS = st.one_of(
    st.sampled_from([b"", b"\0", b"\0" * 8, b"group-1", b"group-12", b"group-123", b"group-123\0"]),
    st.binary(max_size=20),
    st.binary(min_size=125, max_size=131),
)


@pytest.mark.parametrize("bits", [1, 18])
@given(chunks=st.lists(st.lists(KEYS, max_size=12), max_size=4))
def test_the_same_bytes_get_the_same_number(bits, chunks):
    met: list[bytes] = []
    known = KnownKeys(lambda key: met.append(key) or len(met) - 1)  # type: ignore[func-returns-value]
    for keys in chunks:
        ends = np.cumsum([len(key) for key in keys], dtype=np.int64)
        lengths = np.array([len(key) for key in keys], dtype=np.int64)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(record_stream, "_SHIFT", np.uint64(64 - bits))
            found = known.numbers(bytearray(b"".join(keys) + b"\xff" * 8), ends - lengths, lengths)
        assert [met[number] for number in found.tolist()] == keys
    assert len(set(met)) == len(met)


def test_more_keys_than_are_compared_as_words_are_numbered_too(monkeypatch):
    monkeypatch.setattr(record_stream, "MOST_COMPARED", 3)
    known = KnownKeys(int)
    keys = [b"%03d" % number for number in [*range(200), *range(200)]]
    places = np.arange(len(keys)) * 3

    found = known.numbers(bytearray(b"".join(keys) + bytes(8)), places, np.full(len(keys), 3))

    assert found.tolist() == [int(key) for key in keys]
