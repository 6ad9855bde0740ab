"""Tasks of near-equal weight, whatever the fleet looks like."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kforensics.fleet.plan import LARGEST_TASK, LEAST_TASK, LogDirTotals, divide


def totals(weights):
    return [
        LogDirTotals(number=n, weight=w, bytes=w, replicas=1, segments=1, problems=0) for n, w in enumerate(weights)
    ]


@given(st.lists(st.integers(0, 5 << 30), max_size=40), st.integers(1, 64))
def test_tasks_cover_everything_once_and_are_of_one_size(weights, cores):
    tasks = divide(totals(weights), cores=cores)

    by_number: dict[int, list[tuple[int, int]]] = {}
    for task in tasks:
        for piece in task:
            by_number.setdefault(piece.number, []).append((piece.start, piece.end))
    assert set(range(len(weights))) == set(by_number)
    for number, runs in by_number.items():
        assert runs[0][0] == 0
        assert runs[-1][1] == weights[number]
        assert all(before[1] == after[0] for before, after in pairwise(runs))
    sizes = [sum(piece.end - piece.start for piece in task) for task in tasks]
    if len(sizes) > 1:
        assert max(sizes[:-1]) == min(sizes[:-1]) >= sizes[-1]
        assert LEAST_TASK <= sizes[0] <= LARGEST_TASK


def test_a_large_fleet_has_a_bounded_number_of_tasks():
    tasks = divide(totals([333 << 30] * 3_000), cores=2_000)

    assert 19_000 < len(tasks) <= 20_001
