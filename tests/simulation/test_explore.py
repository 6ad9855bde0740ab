"""The published models, cell by cell: state counts where nothing breaks, lengths of the shortest traces where something does."""

import pytest

from kforensics.damage import Absent
from kforensics.errors import UsageError
from kforensics.simulation.explore import Explorer, Invariant
from kforensics.simulation.models import ModelSize
from tests.simulation.truncation_agreement import compare_truncations


def size(replicas, max_log, max_records, max_epoch):
    return ModelSize(replicas=replicas, max_log=max_log, max_records=max_records, max_epoch=max_epoch)


SIZES = ((2, 2, 2, 1), (2, 2, 2, 2), (2, 3, 3, 2), (3, 2, 2, 1), (3, 2, 2, 2))
COLUMNS = {
    ("hw", "WeakIsr"): (9, 9, 9, 9, 9),
    ("hw", "StrongIsr"): (10, 10, 10, 9, 9),
    ("kip-101", "WeakIsr"): ("1177", 12, 12, "59788", 11),
    ("kip-101", "StrongIsr"): ("1177", 12, 12, 12, 11),
    ("kip-279", "WeakIsr"): ("1177", "9027", "32713", "60106", 11),
    ("kip-279", "StrongIsr"): ("1177", "9027", "32713", 12, 11),
    ("kip-320-first-try", "WeakIsr"): ("1165", "8429", "30737", "59092", 12),
    ("kip-320-first-try", "StrongIsr"): ("1165", "8429", "30737", "59092", 13),
    ("kip-320", "WeakIsr"): ("957", "5973", "21493", "39619", "737794"),
    ("kip-320", "StrongIsr"): ("957", "5973", "21493", "39619", "737794"),
}
"""A number is the length of the shortest trace, a word the count of states where none breaks the invariant."""
LARGE = {(model, (3, 2, 2, 2)) for model in ("kip-101", "kip-279", "kip-320-first-try", "kip-320")}


def is_slow(model, invariant, at, expected):
    """A large graph, and one of more than 10,000 states that the other invariant has explored whole already."""
    again = invariant == "StrongIsr" and expected in COLUMNS[model, "WeakIsr"]
    return (model, at) in LARGE or (isinstance(expected, str) and int(expected) > (10_000 if again else 30_000))


CELLS = [
    pytest.param(
        *key,
        at,
        expected,
        id=f"{key[0]}-{key[1]}-{''.join(map(str, at))}",
        marks=[pytest.mark.slow] if is_slow(*key, at, expected) else [],
    )
    for key, row in COLUMNS.items()
    for at, expected in zip(SIZES, row, strict=True)
]


@pytest.mark.no_cover  # millions of steps through a few lines, which other tests cover
@pytest.mark.parametrize(("model", "invariant", "at", "expected"), CELLS)
@pytest.mark.some(10)
def test_the_table_of_models_and_invariants(model, invariant, at, expected):
    found = Explorer(model, size(*at)).explore(Invariant(invariant))
    if isinstance(expected, str):
        assert found.violation is Absent.NOT_APPLICABLE
        assert found.complete
        assert found.distinct_states == int(expected)
    else:
        assert not isinstance(found.violation, Absent)
        assert not found.complete
        assert len(found.violation.trace) == expected


@pytest.mark.parametrize("model", ["hw", "kip-101", "kip-279", "kip-320-first-try", "kip-320"])
@pytest.mark.some(2)
def test_leader_in_isr_breaks_at_the_start_unless_a_missing_leader_is_allowed(model):
    trap = Explorer(model, size(2, 2, 2, 1)).explore(Invariant.LEADER_IN_ISR)
    assert not isinstance(trap.violation, Absent)
    assert len(trap.violation.trace) == 1
    assert Explorer(model, size(2, 2, 2, 1)).explore(Invariant.LEADER_IN_ISR_OR_NONE).complete
    assert Explorer(model, size(2, 2, 2, 1)).explore(Invariant.TYPE_OK).complete


def test_counts_without_an_invariant():
    hw = Explorer("hw", size(2, 2, 2, 1)).explore()
    assert (hw.distinct_states, hw.complete) == (1251, True)
    assert Explorer("kip-320", size(2, 2, 2, 1)).explore().depth == 15


@pytest.mark.slow
def test_counts_of_the_large_graphs():
    assert Explorer("kip-320", size(3, 2, 2, 2)).explore().depth == 26
    assert Explorer("kip-279", size(3, 2, 2, 2)).explore().distinct_states == 1_616_461
    assert Explorer("kip-320", size(2, 4, 4, 3)).explore().distinct_states == 441_543
    assert Explorer("kip-279", size(2, 4, 4, 3)).explore().distinct_states == 819_351


def test_the_shortest_history_of_high_watermark_truncation():
    found = Explorer("hw", size(2, 2, 2, 1)).explore(Invariant.WEAK_ISR)
    assert not isinstance(found.violation, Absent)
    actions = [step.action for step in found.violation.trace]
    assert actions[0] == "at the start"
    assert "truncates to 0" in actions[-1]
    last = found.violation.trace[-1].state
    assert sorted(len(replica.log) for replica in last.replicas) == [0, 1]


def test_a_limit_stops_the_search_with_what_it_knows():
    found = Explorer("kip-320", size(2, 2, 2, 2)).explore(Invariant.STRONG_ISR, max_states=1000)
    assert (found.complete, found.stopped_at_limit) == (False, True)
    assert found.distinct_states >= 1000
    assert found.violation is Absent.NOT_APPLICABLE


def test_an_unknown_model_is_refused():
    with pytest.raises(UsageError, match="no model 'kip-999'"):
        Explorer("kip-999", size(2, 2, 2, 1))


@pytest.mark.parametrize(
    ("at", "pairs", "truncating"),
    [
        ((2, 2, 2, 1), 286, 34),
        ((2, 2, 2, 2), 2_110, 290),
        ((2, 3, 3, 2), 7_038, 1_642),
        ((3, 2, 2, 1), 28_038, 2_772),
        pytest.param((2, 4, 4, 3), 161_844, 48_406, marks=pytest.mark.slow),
        pytest.param((3, 2, 2, 2), 649_302, 71_652, marks=pytest.mark.slow),
    ],
)
@pytest.mark.some("at0-286-34", "at1-2110-290")
def test_epochs_alone_find_the_point_of_divergence_when_fenced(at, pairs, truncating):
    agreement = compare_truncations("kip-320", size(*at))
    assert (agreement.pairs, agreement.truncating) == (pairs, truncating)
    assert agreement.agreeing == pairs
    assert agreement.below_high_watermark == 0
