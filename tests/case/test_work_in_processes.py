"""What other processes find comes back from them: nothing is done again where they were started."""

import pytest

from kforensics.ask.model import Ask
from kforensics.case import account, comparison
from kforensics.case.account import accounts_of, explain_all
from kforensics.case.comparison import compare_all, comparison_of
from kforensics.case.model import now_of
from kforensics.case.opening import open_case
from kforensics.units import Depth


@pytest.fixture
def done_here(monkeypatch):
    """The partitions that this process explained or compared itself; each is a task, however small it is."""
    done: list[int] = []

    def noted(function):
        def of(shared, at, *rest):
            done.append(at)
            return function(shared, at, *rest)

        return of

    for module, name in ((account, "_explain_one"), (comparison, "_compare_one")):
        monkeypatch.setattr(module, name, noted(getattr(module, name)))
        monkeypatch.setattr(module, "SMALL_WORK", 0)
        monkeypatch.setattr(module, "CHUNK_PARTITIONS", 1)
    return done


@pytest.mark.parametrize("depth", Depth)
@pytest.mark.some(1)
def test_accounts_and_comparisons_come_back_from_other_processes(coordinators, done_here, depth):
    before, deleted, _ = sorted((coordinators("retention-3.9") / "snapshots").iterdir())
    logs = coordinators("retention-3.9") / "logs"
    case = open_case(Ask(paths=(deleted, logs), before=(before,), depth=depth, jobs=2))
    shared = accounts_of(case)
    accounts = explain_all(shared, None)
    compared = compare_all(comparison_of(now_of(case)), 2, None)

    assert done_here == []
    assert [one.incident.partition for one in accounts] == [partition for partition, _ in shared.groups]
    assert len(compared) > 1
    assert {"sized-0", "timed-0"} <= {str(one.incident.partition) for one in accounts if one.incident.deleted_since}
