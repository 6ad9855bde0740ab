"""Which gaps of an account of leadership may hide how a leader after a leader epoch was elected."""

import pytest

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.reconcile.observed.facts import ClusterFacts, Leadership
from kforensics.reconcile.observed.leadership import GapKind, account_of
from tests.builders.history import PARTITION


def state(leader_epoch, recorded_at=None):
    return Leadership(
        leader=1,
        leader_epoch=leader_epoch,
        isr=frozenset({1, 2}),
        replicas=(1, 2),
        unclean=False,
        recorded_at=Absent.UNKNOWN if recorded_at is None else recorded_at,
        time_ms=leader_epoch,
        citation=Citation(input=0, path="server.log"),
    )


class Facts(ClusterFacts):
    def __init__(self, *states, metadata_gaps=()):
        self._states, self._metadata_gaps = states, metadata_gaps

    def leaderships(self, partition, topic_id):
        return self._states

    def metadata_gaps(self):
        return self._metadata_gaps


def kinds(facts, since_epoch, newest_epoch):
    account = account_of(PARTITION, Absent.UNKNOWN, facts, newest_epoch=newest_epoch)
    return [gap.kind for gap in account.gaps_since(since_epoch)]


@pytest.mark.parametrize(
    ("states", "since", "newest", "expected"),
    [
        ((), 0, 3, [GapKind.NO_SOURCE]),
        ((state(0), state(1)), 0, 1, []),
        ((state(2), state(3)), 0, 3, [GapKind.EPOCHS]),
        ((state(2), state(3)), 1, 3, [GapKind.EPOCHS]),
        ((state(2), state(3)), 2, 3, []),
        ((state(2, 9), state(3, 12)), 1, 3, [GapKind.BEGINNING]),
        ((state(2, 9), state(3, 12)), 2, 3, []),
        ((state(0), state(3)), 0, 3, [GapKind.EPOCHS]),
        ((state(0), state(3)), 2, 3, [GapKind.EPOCHS]),
        ((state(0), state(3)), 3, 3, []),
        ((state(0), state(1)), 0, 4, [GapKind.END]),
        ((state(0), state(1)), 4, 4, []),
    ],
)
def test_an_election_after_a_leader_epoch_is_hidden_where_its_states_are_not_on_record(states, since, newest, expected):
    assert expected == kinds(Facts(*states), since, newest)


def test_what_can_not_be_read_of_a_metadata_log_may_hide_any_election():
    facts = Facts(state(0, 1), state(1, 5), metadata_gaps=("what offsets 3 to 4 hold",))

    assert [GapKind.METADATA] == kinds(facts, 0, 1)
