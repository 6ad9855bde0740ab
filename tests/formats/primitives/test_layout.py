import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.formats.log.batch_table import BATCH_HEADER, MESSAGE_HEADER_0, MESSAGE_HEADER_1
from kforensics.formats.primitives.numbers import FixedLayout
from kforensics.formats.primitives.word_buffer import MemoryBytes
from kforensics.formats.segment.walk import Level, walk_segment
from tests.formats.segments import recorded_logs

LAYOUTS = {"batch": BATCH_HEADER, "message 0": MESSAGE_HEADER_0, "message 1": MESSAGE_HEADER_1}


@pytest.mark.parametrize("name", LAYOUTS)
def test_lengths_agree(name):
    layout = LAYOUTS[name]

    assert layout.declaration.sizeof() == layout.struct.size == layout.dtype.itemsize == layout.length


@pytest.mark.parametrize("name", LAYOUTS)
@given(st.data())
def test_the_three_readers_agree_on_any_bytes(name, data):
    layout = LAYOUTS[name]
    content = data.draw(st.binary(min_size=layout.length, max_size=layout.length))

    assert_readers_agree(layout, content)
    assert content == layout.struct.pack(*layout.struct.unpack(content))


def test_the_three_readers_agree_on_every_recorded_batch(incident):
    checked = 0
    for path in recorded_logs(incident, "mixed-magic-1.1", "all-codecs-4.x"):
        content = path.read_bytes()
        for window in walk_segment(MemoryBytes(content), level=Level.HEADERS):
            for position, magic in zip(
                window.batches["position"].tolist(), window.batches["magic"].tolist(), strict=True
            ):
                layout = {0: MESSAGE_HEADER_0, 1: MESSAGE_HEADER_1, 2: BATCH_HEADER}[magic]
                assert_readers_agree(layout, content[position : position + layout.length])
                checked += 1

    assert checked > 1000


def test_fields_have_places():
    assert 17 == BATCH_HEADER.position_of("crc")
    assert 57 == BATCH_HEADER.position_of("record_count")


def test_a_field_that_is_no_integer_is_refused():
    with pytest.raises(KeyError, match="s"):
        FixedLayout(name="s")


def assert_readers_agree(layout: FixedLayout, content: bytes) -> None:
    parsed = layout.declaration.parse(content)
    reference = [parsed[name] for name in layout.names]
    row = np.frombuffer(content, dtype=layout.dtype)[0]

    assert reference == list(layout.struct.unpack(content)) == [row[name].item() for name in layout.names]
