import io

import pytest
from rich.text import Text

from kforensics.render.text.screen import columns, render_screen, screen_width, speaks_unicode, wants_colour, wrapped
from kforensics.words import byte_count, counted, listed


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in ("COLUMNS", "NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)


def test_a_screen_has_no_escape_off_a_terminal():
    lines: list[Text | str] = [Text("DATA AT RISK", style="bold red"), "orders-0 [red]  ", Text("x" * 300)]

    assert render_screen(lines) == "DATA AT RISK\norders-0 [red]\n" + "x" * 300 + "\n"
    assert "\x1b[1;31mDATA AT RISK" in render_screen(lines, colour=True)


def test_colour_needs_a_terminal_that_wants_it(monkeypatch):
    assert wants_colour(Terminal())
    assert not wants_colour(io.StringIO())
    monkeypatch.setenv("TERM", "dumb")
    assert not wants_colour(Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour(Terminal())


def test_width(monkeypatch):
    assert screen_width(io.StringIO()) == 80
    monkeypatch.setenv("COLUMNS", "100")
    assert screen_width() == 100
    monkeypatch.setenv("COLUMNS", "999")
    assert screen_width() == 120
    monkeypatch.setenv("COLUMNS", "5")
    assert screen_width(io.StringIO()) == 80


def test_what_a_stream_can_show():
    assert speaks_unicode(io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    assert not speaks_unicode(io.TextIOWrapper(io.BytesIO(), encoding="latin-1"))
    assert not speaks_unicode(io.StringIO())


def test_wrapping_keeps_within_the_width_and_every_word():
    words = "one two three four fiveandtwenty six"

    lines = [line.plain for line in wrapped(words, width=12, indent="  ", first="- ")]

    assert lines == ["- one two", "  three four", "  fiveandtwenty", "  six"]
    assert wrapped("", width=10) == []
    assert [line.plain for line in wrapped("", width=10, first="- ")] == ["- "]


def test_columns():
    rows = [("a", "1", "x"), ("東京", "1000", "")]

    assert [line.plain for line in columns(rows, right=frozenset({1}))] == ["  a        1  x", "  東京  1000"]
    assert [line.plain for line in columns([("a", "b")], least=(3,))] == ["  a    b"]
    assert columns([]) == []


def test_words_for_numbers():
    assert counted(1, "record") == "1 record"
    assert counted(4300, "record") == "4,300 records"
    assert counted(2, "index", "indexes") == "2 indexes"
    assert [byte_count(n) for n in (0, 1023, 1536, 10 * 2**20, 3 * 2**40, 2**60)] == [
        "0 B",
        "1023 B",
        "1.5 KB",
        "10 MB",
        "3.0 TB",
        "1048576 TB",
    ]
    assert listed([]) == ""
    assert listed(["1"]) == "1"
    assert listed(["1", "2", "3"]) == "1, 2 and 3"
    assert listed(list("1234567")) == "1, 2, 3, 4, 5 and 2 more"
