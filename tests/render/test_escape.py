import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.render.escape import escape_text, shorten

HOSTILE = [
    "\x1b[2J",
    "\x1b]0;title\x07",
    "\x1b]52;c;ZXZpbA==\x07",
    "\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\",
    "\x1bP1$r0m\x1b\\",
    "\x1bc",
    "\x9b31m",
    "\x90q\x9c",
    "\x85",
    "\x00",
    "\x07",
    "\x08\x08\x08",
    "\r",
    "\n",
    "\t",
    "\x7f",
    "\u202e" + "gpj.exe",
    "\u202a",
    "\u2066\u2069",
    "\u200b",
    "\u200f",
    "\u2028",
    "\u2029",
    "\ufeff",
    "\udc9b",
    "\ud800",
    "\U000e0041",
    "\uffff",
]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_nothing_that_steers_a_terminal_is_left(hostile):
    shown = escape_text(f"orders{hostile}-0")

    assert shown.startswith("orders\\")
    assert shown.endswith("-0")
    assert shown.isprintable()


@given(st.one_of(st.text(), st.binary()))
def test_whatever_comes_is_shown_on_one_line(text):
    shown = escape_text(text)

    assert shown.isprintable()
    assert not any(unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for character in shown)
    shown.encode()


@given(st.text(), st.text())
def test_two_texts_never_look_the_same(one, other):
    surrogates = [character for character in one + other if "\udc80" <= character <= "\udcff"]

    assert (one == other) == (escape_text(one) == escape_text(other)) or surrogates


def test_plain_text_stays_as_it_is():
    assert escape_text("orders-0") == "orders-0"
    assert escape_text("Zürich 東京 ½") == "Zürich 東京 ½"
    assert escape_text(b"caf\xc3\xa9 \xff\x1b") == "café \\xff\\x1b"
    assert escape_text("a\\x1b") == "a\\\\x1b"
    assert escape_text("D:\\kf\\data") == "D:\\kf\\data"
    assert escape_text("D:\\") == "D:\\\\"
    assert escape_text("\u202e") == "\\u202e"
    assert escape_text("\U000e0041") == "\\U000e0041"


@pytest.mark.parametrize(
    ("width", "expected"), [(10, "abcdefghij"), (9, "abcd…ghij"), (4, "a…ij"), (2, "…j"), (1, "…"), (0, "")]
)
def test_shortening_keeps_both_ends(width, expected):
    assert shorten("abcdefghij", width) == expected
