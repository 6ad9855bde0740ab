from hypothesis import given
from hypothesis import strategies as st

from kforensics.damage import DamageKind
from kforensics.errors import FormatError
from kforensics.formats.checkpoint.lines import (
    LeaderEpochCheckpoint,
    LeaderEpochLine,
    encode_leader_epoch_checkpoint,
    parse_leader_epoch_checkpoint,
)
from kforensics.units import EpochEntry


@given(st.dictionaries(st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1), max_size=20))
def test_round_trip(epochs):
    lines = tuple(LeaderEpochLine(epoch, epochs[epoch]) for epoch in sorted(epochs))
    parsed = parse_leader_epoch_checkpoint(encode_leader_epoch_checkpoint(LeaderEpochCheckpoint(lines=lines)))
    assert parsed.entries == tuple(EpochEntry(*line[:2]) for line in lines)
    assert parsed.damage == ()


def test_the_line_is_citable():
    data = b"0\n2\n0 0\n3 60\n"
    parsed = parse_leader_epoch_checkpoint(data)
    last = parsed.lines[-1]
    assert (last.leader_epoch, last.start_offset, last.line) == (3, 60, 4)
    assert data[last.span.position : last.span.end] == b"3 60"


def test_falling_epochs_are_damage_and_kept():
    parsed = parse_leader_epoch_checkpoint(b"0\n3\n0 0\n5 10\n3 20\n")
    assert len(parsed.entries) == 3
    assert [(place.kind, place.found) for place in parsed.damage] == [(DamageKind.ORDER, "line 5: '3 20'")]


def test_equal_start_offsets_are_what_0_11_wrote():
    assert parse_leader_epoch_checkpoint(b"0\n2\n1 10\n2 10\n").damage == ()


def test_an_empty_file_is_no_epoch():
    assert parse_leader_epoch_checkpoint(b"") == LeaderEpochCheckpoint()


@given(st.binary(max_size=100))
def test_any_bytes(data):
    for candidate in (data, b"0\n1\n" + data):
        try:
            parse_leader_epoch_checkpoint(candidate)
        except FormatError:
            continue
