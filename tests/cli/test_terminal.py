"""What is asked of the terminal, and what is chosen without one."""

import io

import pytest

from kforensics.cli.terminal import ColourChoice, screen_width, speaks_unicode, wants_colour


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in ("COLUMNS", "NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)


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


def test_colour_as_chosen_needs_no_terminal():
    assert wants_colour(io.StringIO(), ColourChoice.ALWAYS)
    assert not wants_colour(Terminal(), ColourChoice.NEVER)
    assert not wants_colour(None)
