import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.damage import DamageKind
from kforensics.errors import FormatError, UnsupportedFormat
from kforensics.formats.checkpoint.lines import (
    Checkpoint,
    CheckpointEntry,
    encode_checkpoint,
    parse_checkpoint,
    plain_entries,
)
from kforensics.formats.primitives.text_lines import MOST_DAMAGE
from tests.steps import steps

TOPICS = st.text("abcXYZ019._-", min_size=1, max_size=40)
ENTRIES = st.lists(
    st.builds(CheckpointEntry, TOPICS, st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)), max_size=20
)


@given(ENTRIES)
def test_round_trip_keeps_entries_and_numbers_their_lines(entries):
    parsed = parse_checkpoint(encode_checkpoint(Checkpoint(entries=tuple(entries))))
    assert parsed.damage == ()
    assert [entry[:3] for entry in parsed.entries] == [entry[:3] for entry in entries]
    assert [entry.line for entry in parsed.entries] == list(range(3, 3 + len(entries)))


@pytest.mark.parametrize("data", [b"", b"0\n", b"0\n0\n", b"0"])
def test_an_empty_list_has_many_forms(data):
    assert parse_checkpoint(data) == Checkpoint()


def test_digits_of_other_scripts_are_read_as_java_reads_them():
    (entry,) = parse_checkpoint("0\n1\norders \u0660 \u0665\uff11\n".encode()).entries
    assert (entry.partition, entry.offset) == (0, 51)
    assert parse_checkpoint("0\n1\norders 0 \U0001d7ce\n".encode()).damage, "beyond 16 bits"


def test_a_bad_line_costs_only_itself():
    data = b"0\n3\norders 0 12\norders one 3\npayments 2 99\n"
    parsed = parse_checkpoint(data)
    assert [entry.topic for entry in parsed.entries] == ["orders", "payments"]
    (place,) = parsed.damage
    assert place.kind is DamageKind.TEXT
    assert data[place.span.position : place.span.end] == b"orders one 3"
    assert place.found == "line 4: 'orders one 3'"


@pytest.mark.parametrize(
    "line",
    [b"orders 0", b"orders 0 1 2", b"orders 0 -1", b"or/ders 0 1", b"orders 0 9223372036854775808", b"", b"\xff 0 1"],
)
def test_lines_no_broker_writes(line):
    parsed = parse_checkpoint(b"0\n1\n" + line + b"\n")
    assert parsed.entries == ()
    assert [place.kind for place in parsed.damage] == [DamageKind.TEXT]


@given(ENTRIES, st.lists(st.tuples(st.integers(0), st.sampled_from(b"\n\r 09a/-+")), max_size=2), st.booleans())
def test_a_file_as_brokers_write_it_is_read_at_once_and_any_other_line_by_line(entries, changes, is_short):
    data = bytearray(encode_checkpoint(Checkpoint(entries=tuple(entries))))
    for at, byte in changes:
        data[at % len(data)] = byte
    plain = plain_entries(bytes(data[: len(data) - is_short]))
    if plain is None:
        assert changes or is_short or any(one.offset >= 10**18 or one.partition >= 10**9 for one in entries)
        return
    parsed = parse_checkpoint(bytes(data))

    assert () == parsed.damage
    assert [one[:3] for one in parsed.entries] == [(topic.decode(), int(n), int(offset)) for topic, n, offset in plain]
    assert [one.line for one in parsed.entries] == list(range(3, 3 + len(plain)))


def test_a_wrong_count_is_named_and_the_lines_are_kept():
    parsed = parse_checkpoint(b"0\n5\na 0 1\nb 0 2\n")
    assert len(parsed.entries) == 2
    assert [(place.kind, place.span.position) for place in parsed.damage] == [(DamageKind.COUNT, 2)]


def test_an_entry_in_the_place_of_the_count_is_not_lost():
    parsed = parse_checkpoint(b"0\na 0 1\nb 0 2\n")
    assert [entry.topic for entry in parsed.entries] == ["a", "b"]
    assert len(parsed.damage) == 1


def test_what_is_no_checkpoint_at_all():
    with pytest.raises(FormatError):
        parse_checkpoint(bytes(64))
    with pytest.raises(UnsupportedFormat):
        parse_checkpoint(b"1\n0\n")


def test_carriage_returns_end_lines_as_in_java():
    assert len(parse_checkpoint(b"0\r\n2\r\na 0 1\r\nb 0 2\r\n").entries) == 2


def test_many_lines_are_read_in_steps_linear_to_them():
    def parse(count):
        return parse_checkpoint(b"0\n%d\n" % count + b"orders 0 1\n" * count)

    assert len(parse(100_000).entries) == 100_000
    assert steps(lambda: parse(1_000)) < 2.1 * steps(lambda: parse(500))


def test_damage_is_bounded():
    bad = parse_checkpoint(b"0\n1000\n" + b"x\n" * 1000)
    assert len(bad.damage) == MOST_DAMAGE + 1
    assert bad.damage[-1].found == "900 more damaged places"


@given(st.binary(max_size=200))
def test_any_bytes_end_in_a_value_or_a_format_error(data):
    for candidate in (data, b"0\n" + data, b"0\n3\n" + data):
        with contextlib.suppress(FormatError):
            parse_checkpoint(candidate)
