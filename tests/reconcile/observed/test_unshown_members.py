"""What lines leave open of a new leader: a controller takes brokers out of the ISR, raises the leader epoch, and no broker logs it."""

from dataclasses import dataclass, replace

import pytest

from kforensics.damage import Absent
from kforensics.reconcile.observed.facts import ClusterFacts, Leadership
from kforensics.reconcile.observed.leadership import account_of
from tests.builders.history import PARTITION, leadership


@dataclass(frozen=True)
class Lines(ClusterFacts):
    """Leaders by the lines of brokers, each of which is on record."""

    states: tuple[Leadership, ...] = ()

    def leaderships(self, partition, topic_id):
        return self.states

    def reports_every_leader(self, since_ms):
        return True


def logged(leader, epoch, isr=None, *, unclean=False):
    state = replace(leadership(leader, epoch, isr or (), unclean=unclean), recorded_at=Absent.NOT_APPLICABLE)
    return replace(state, isr=state.isr if isr else Absent.NOT_WRITTEN)


NONE = replace(logged(0, 4), leader=Absent.NOT_APPLICABLE)
OPEN = "whether broker {} was in sync when it became leader in leader epoch {}"


@pytest.mark.parametrize(
    ("states", "is_open"),
    [
        # Broker 1 was taken out of the ISR in leader epoch 3, and nobody led in 4.
        ((logged(3, 0), logged(3, 2, (1, 3)), logged(3, 3), logged(1, 5)), True),
        ((logged(3, 0), logged(3, 2, (1, 3)), logged(3, 3), NONE, logged(1, 5)), True),
        ((logged(3, 0), logged(3, 3, (1, 3)), logged(1, 5)), True),
        ((logged(3, 3, (3,)), logged(1, 4)), True),
        # It joined the ISR of the leader before.
        ((logged(3, 0), logged(3, 3), logged(3, 3, (1, 3)), logged(1, 4)), False),
        # All replicas are in sync when a partition is created.
        ((logged(3, 0), logged(1, 1)), False),
        ((logged(3, 0), logged(1, 2)), True),
        # The leader before leads again.
        ((logged(3, 0), logged(3, 5)), False),
        ((logged(3, 3, (3,)), NONE, logged(3, 5)), False),
        # It is on record as unclean.
        ((logged(3, 3, (3,)), logged(1, 4, (1,), unclean=True)), False),
    ],
)
def test_a_new_leader_was_in_sync_only_where_lines_show_it(states, is_open):
    words = [gap.words for gap in account_of(PARTITION, "", Lines(states=states)).gaps]

    assert is_open is (OPEN.format(states[-1].leader, states[-1].leader_epoch) in words)


def test_a_metadata_log_records_every_change_of_the_isr():
    states = (leadership(3, 3, (1, 3)), leadership(1, 5, (1,)))

    assert not [gap for gap in account_of(PARTITION, "", Lines(states=states)).gaps if "in sync when" in gap.words]
