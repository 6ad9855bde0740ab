"""From which offset on another record may have been before an election."""

import pytest

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.reconcile.observed.facts import Leadership
from kforensics.reconcile.observed.leadership import Election, LeadershipAccount, Risk
from kforensics.reconcile.trace.found_record import displaced_from, may_be_displaced
from kforensics.units import EpochEntry, TopicPartition


def account(*states, risky=()):
    """An account by leader and epoch of each state, and the epochs of risky elections."""
    made = [
        Leadership(
            leader=leader,
            leader_epoch=epoch,
            isr=frozenset({leader}),
            replicas=(1, 2, 3),
            unclean=epoch in risky,
            recorded_at=at,
            time_ms=at,
            citation=Citation(input=0, path="p"),
        )
        for at, (leader, epoch) in enumerate(states)
    ]
    return LeadershipAccount(
        partition=TopicPartition("orders", 0),
        states=tuple(made),
        elections=tuple(Election(None, one, Risk.UNCLEAN, Absent.UNKNOWN) for one in made if one.leader_epoch in risky),
        gaps=(),
        source="metadata-log",
        assigned=frozenset({1, 2, 3}),
    )


def entries(*pairs):
    return [EpochEntry(*pair) for pair in pairs]


@pytest.mark.parametrize(
    ("states", "risky", "epochs", "expected"),
    [
        pytest.param([(1, 0), (2, 1)], {1}, [(0, 0), (1, 60)], 60, id="the epoch before is shared"),
        pytest.param([(1, 0), (1, 1), (2, 2)], {2}, [(0, 0), (2, 60)], 60, id="the same leader in between"),
        pytest.param([(1, 0), (3, 1), (2, 2)], {2}, [(0, 0), (2, 60)], 0, id="another leader in between left no epoch"),
        pytest.param([(1, 0), (1, 1), (1, 2)], {1, 2}, [(0, 0), (2, 60)], 0, id="it had lost its end before"),
        pytest.param([(1, 0), (2, 1)], {1}, [(0, 0)], None, id="nothing was written since"),
        pytest.param([(2, 1)], {1}, [(0, 0), (1, 60)], 0, id="who led before is not told"),
        pytest.param([(1, 0), (2, 1)], {1}, [(1, 40)], 40, id="the log starts with the election"),
        pytest.param([(1, 0), (2, 1)], {1}, [], 0, id="the log has no epochs"),
    ],
)
def test_another_record_may_have_been_where_the_logs_are_not_known_to_be_the_same(states, risky, epochs, expected):
    told = account(*states, risky=risky)

    assert displaced_from(max(risky), told, entries(*epochs)) == expected
    for offset in (39, 60):
        may_be = expected is not None and offset >= expected
        assert may_be_displaced(offset, told, entries(*epochs)) is may_be
