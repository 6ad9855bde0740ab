from rich.text import Text

from kforensics.render.screen import columns, screen_pieces, wrapped
from kforensics.words import byte_count, counted, listed


def test_a_screen_has_no_escape_off_a_terminal():
    lines: list[Text | str] = [Text("DATA AT RISK", style="bold red"), "orders-0 [red]  ", Text("x" * 300)]

    assert "".join(screen_pieces(lines)) == "DATA AT RISK\norders-0 [red]\n" + "x" * 300 + "\n"
    assert "\x1b[1;31mDATA AT RISK" in "".join(screen_pieces(lines, colour=True))


def test_wrapping_keeps_within_the_width_and_every_word():
    words = "one two three four fiveandtwenty six"

    lines = [line.plain for line in wrapped(words, width=12, indent="  ", first="- ")]

    assert lines == ["- one two", "  three four", "  fiveandtwenty", "  six"]
    assert wrapped("", width=10) == []
    assert [line.plain for line in wrapped("", width=10, first="- ")] == ["- "]


def test_a_command_in_a_sentence_is_wrapped_only_where_no_line_has_room_for_it():
    words = "Look (`kforensics salvage --carve`): no `input"

    assert [line.plain for line in wrapped(words, width=34)] == [
        "Look",
        "(`kforensics salvage --carve`): no",
        "`input",
    ]
    assert all(len(line.plain) <= 12 for line in wrapped(words, width=12))


def test_columns():
    rows = [("a", "1", "x"), ("東京", "1000", "")]

    assert columns(rows, right=frozenset({1})) == ["  a        1  x", "  東京  1000"]
    assert columns([("a", "b")], least=(3,)) == ["  a    b"]
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
