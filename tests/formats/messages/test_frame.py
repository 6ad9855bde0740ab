"""The numbers before a message of the metadata log."""

import pytest

from kforensics.formats.messages.frame import bare_frame


@pytest.mark.parametrize(
    ("data", "frame"),
    [
        (b"\x01\x02\x00rest", b"\x01\x02\x00"),
        (b"\x01\x8a\x01\x03rest", b"\x01\x8a\x01\x03"),  # a record type above 127 takes two bytes
        (b"", b""),
        (b"\x01\x02", b""),
        (b"\xff\xff\xff\xff\xff\xff", b""),
    ],
)
def test_the_frame_of_a_message_is_kept_without_the_message(data, frame):
    assert frame == bare_frame(data)
