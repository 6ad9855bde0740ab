"""The short, deterministic form of the fuzzers; the long one is `python -m tests.fuzz`, its figures are in docs/validation.md."""

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.cli.app import run
from tests.builders.repeating import times
from tests.fuzz.captures import NODE, explore, forged, real, with_rows
from tests.fuzz.commands import INVOCATIONS, available, check_command, damaged_trees
from tests.fuzz.corpus import seeds
from tests.fuzz.mutation import mutations
from tests.fuzz.targets import TARGETS, attempt

SEED = 20_261_121
RUNS = 300
TREES = 2


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.some(10)
def test_mutated_recordings_never_break_a_decoder(target):
    if target == "signature":
        pytest.importorskip("cryptography")
    for number, data in enumerate(islice(mutations(SEED, seeds(target)), RUNS)):
        try:
            attempt(target, data)
        except Exception as error:
            raise AssertionError(f"{target}, input {number} of seed {SEED}") from error


@pytest.mark.parametrize("target", TARGETS)
def test_the_corpus_is_taken(target):
    if target == "signature":
        pytest.importorskip("cryptography")

    assert any(attempt(target, data) for data in seeds(target))


@pytest.mark.parametrize("target", sorted(set(TARGETS) - {"signature"}))
@given(data=st.binary(max_size=400))
def test_any_bytes_never_break_a_decoder(target, data):
    attempt(target, data)


@pytest.mark.parametrize("seed", [1, 101][: times(1, 2)])
@pytest.mark.slow
def test_damaged_directories_never_break_a_command(seed):
    for _, tree in islice(damaged_trees(seed), TREES):
        for name in available():
            for arguments in INVOCATIONS[name]:
                check_command(arguments, tree)


def test_mutations_depend_on_the_seed_alone():
    inputs = [b"abc", b"defg" * 100]

    assert list(islice(mutations(5, inputs), 50)) == list(islice(mutations(5, inputs), 50))
    assert list(islice(mutations(5, inputs), 50)) != list(islice(mutations(6, inputs), 50))


@given(data=forged())
def test_a_forged_capture_is_refused_or_read_in_bounds(data):
    explore(data)


LIES = (
    {"batch_count": 70_000, "batches": [["0", 0, 16]]},
    {"batches": 7, "unread_below": 5},
    {"batch_count": 70_000, "first": {"offset": 0}},
    {"records": [[0, 2**70, 1]]},
    {"records": {"0": 1}, "commits": 3},
    {"batch_count": 70_000, "batches": [[0, 0, 2], [0, 0, 2]], "bytes": []},
)
"""What a capture may say of the rows of its segments, one of each."""


def test_lies_about_the_rows_of_segments_are_refused_by_whatever_reads_them(tmp_path, capsys):
    data = with_rows(LIES)
    explore(data)
    forged_one = tmp_path / "broker-1.kfc"
    forged_one.write_bytes(data)
    other = str(NODE.with_name("broker-2"))
    for command in (["diff", "--show-records", other], ["diff", "--depth", "tails", other]):
        assert run([*command, str(forged_one)]) in {1, 3}
        assert "is impossible" in " ".join("".join(capsys.readouterr()).split())


def test_a_real_capture_is_read():
    parts, _, data = real()

    assert explore(data) > 20
    assert any(name.startswith("private-records/") for name in parts)
