"""Times as people read them: every number is told, since a record can claim any."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.words import in_short_sentences, joined_by_and, time_of_day, utc_text, utc_words

LAST_MS = 253_402_300_799_999


@pytest.mark.parametrize(
    ("time_ms", "text"),
    [
        (1_795_243_573_332, "2026-11-21T06:46:13.332Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (-62_135_596_800_000, "0001-01-01T00:00:00.000Z"),
        (-62_135_596_800_001, "-62135596800001 ms"),
        (LAST_MS, "9999-12-31T23:59:59.999Z"),
        (LAST_MS + 1, "253402300800000 ms"),
        (1_700_000_000_000_000, "1700000000000000 ms"),
    ],
)
def test_a_time_is_told_as_a_date_or_as_the_number_that_it_is(time_ms, text):
    assert utc_text(time_ms) == text


def test_a_time_that_no_calendar_holds_has_no_piece_of_a_date():
    assert utc_words(1_795_243_573_332) == "2026-11-21 06:46:13 UTC"
    assert time_of_day(1_795_243_573_332) == "06:46:13.332"
    assert utc_words(LAST_MS + 1) == time_of_day(LAST_MS + 1) == "253402300800000 ms"


@given(time_ms=st.integers(-(2**70), 2**70))
def test_no_number_is_refused(time_ms):
    for text in (utc_text(time_ms), utc_words(time_ms), time_of_day(time_ms)):
        assert text == f"{time_ms} ms" or ":" in text


def test_a_long_sentence_is_broken_between_its_clauses_and_a_short_one_is_not():
    short = "Copy it; then start the broker."
    long = f"{' '.join(['word'] * 28)} of it; whether more is lost is unknown (the log ends; no copy is given); orders-0 has no leader. {short}"

    assert short == in_short_sentences(short)
    assert in_short_sentences(long) == (
        f"{' '.join(['word'] * 28)} of it. Whether more is lost is unknown (the log ends; no copy is given). orders-0 has no leader. {short}"
    )


def test_names_of_one_kind_stand_together():
    assert joined_by_and(["broker 2", "controller 100", "broker 1"]) == "brokers 1 and 2 and controller 100"
    assert joined_by_and(["the node at /b", "the node at /a"]) == "the nodes at /a and /b"
