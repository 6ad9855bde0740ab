"""Which copies show that an unclean election lost nothing: a power loss may take the end of a log and leave no sign."""

from dataclasses import replace

import pytest

from kforensics.damage import Absent
from kforensics.reconcile.history.topic_incarnations import MadeAnew
from kforensics.reconcile.incident.doubts import DoubtKind, Fencing, Moments, doubts_of
from kforensics.reconcile.observed.facts import Restart
from kforensics.reconcile.observed.leadership import Election, LeadershipAccount, Risk
from kforensics.reconcile.observed.outages import Outage, Sign, Took
from tests.builders.history import PARTITION, leadership, log_copy
from tests.builders.logs import batch, replica

LED, ALONE, NONE, AGAIN = (
    leadership(1, 0, {1, 2}, 10),
    leadership(1, 0, {1}, 20),
    replace(leadership(1, 1, (), 30), leader=Absent.NOT_APPLICABLE),
    leadership(1, 2, {1}, 50, unclean=True),
)
FINAL = (log_copy(replica(1, [batch(0, 9, 0)]), rank=2), log_copy(replica(2, [batch(0, 9, 0)]), rank=2))


def account(*states, restarts=()):
    return LeadershipAccount(
        partition=PARTITION,
        states=states,
        elections=(Election(states[-2], states[-1], Risk.UNCLEAN, 1),),
        gaps=(),
        source="metadata-log",
        assigned=frozenset({1, 2}),
        restarts={1: tuple(Restart(recorded_at=at, time_ms=at, is_clean=False) for at in restarts)},
    )


def earlier(rank, broker=1, *, end=9, **more):
    return log_copy(replica(broker, [batch(0, end, 0)], **{"clean": False, **more}), rank=rank, is_final=False)


def in_doubt(*copies, states=(LED, ALONE, NONE, AGAIN), moments=None, restarts=(45,), shortened=()):
    """The doubts that are left, once it is known which nodes had lost the end of any log."""
    found = doubts_of(
        account(*states, restarts=restarts),
        FINAL[0],
        (*FINAL, *copies),
        moments or Moments(metadata_ends={0: 15, 1: 40}, brokers=frozenset({1, 2})),
        is_leader_known=True,
        needed_in_sync=1 if ALONE in states else 2,
    )
    back = [one.doubt for one in found.dispelled if not one.holds({*shortened, *found.shortened})]
    return [*found.open, *back]


def elections_in_doubt(*copies, **more):
    """The kinds of those about elections."""
    return [one.kind for one in in_doubt(*copies, **more) if one.kind is DoubtKind.ELECTION]


@pytest.mark.parametrize(
    ("took", "is_proof", "is_open"),
    [(Took.PROCESS, True, False), (Took.PROCESS, False, True), (Took.MACHINE, True, True)],
)
def test_a_killed_process_takes_nothing_with_it_where_its_machine_is_proven_to_have_run_on(took, is_proof, is_open):
    moments = Moments(metadata_ends={0: 15, 1: 40}, outages={1: (Outage(1, 25, (Sign(took, "so", is_proof),)),)})

    assert bool(elections_in_doubt(moments=moments)) == is_open


def test_without_a_copy_of_the_leader_before_it_is_open():
    assert [DoubtKind.ELECTION] == elections_in_doubt()


def test_a_copy_of_a_broker_that_committed_alone_may_have_lost_its_tail_without_a_sign():
    assert [DoubtKind.ELECTION] == elections_in_doubt(earlier(0), earlier(1))


@pytest.mark.parametrize(
    ("copies", "asked", "is_input"),
    [
        ((), "a copy of the disks of broker 1 from before leader epoch 2, or ", True),
        ((earlier(1, 2),), "a copy of the disks of broker 1 from before leader epoch 2, or ", True),
        ((earlier(0),), "a later copy of broker 1's disks than those given, from before leader epoch 2, or ", True),
        ((earlier(0), earlier(1)), "", False),
    ],
)
def test_a_copy_that_is_given_is_not_asked_for(copies, asked, is_input):
    """Snapshot 0 was taken while broker 1 ran, snapshot 1 after it had been killed."""
    (found,) = (one for one in in_doubt(*copies) if one.kind is DoubtKind.ELECTION)

    assert found.settled_by.startswith(asked)
    assert "the system log of " in found.settled_by
    assert is_input is found.is_input


def test_after_a_clean_stop_the_copy_shows_all():
    assert [] == elections_in_doubt(earlier(1, clean=True))


def test_a_node_that_wrote_nothing_between_two_copies_lost_nothing_between_them():
    unchanged = Moments(metadata_ends={0: 15, 1: 40}, brokers=frozenset({1, 2}), unchanged=frozenset({(0, 1, 1)}))

    assert [] == elections_in_doubt(earlier(0), earlier(1), moments=unchanged)
    assert [DoubtKind.ELECTION] == elections_in_doubt(
        earlier(0), earlier(1), moments=replace(unchanged, unchanged=frozenset({(0, 1, 2)}))
    )


TOGETHER = (LED, NONE, AGAIN)


def test_what_two_had_to_hold_both_would_have_to_lose():
    both = (earlier(0, end=5), earlier(0, 2, end=5), earlier(1), earlier(1, 2))

    assert [] == elections_in_doubt(*both, states=TOGETHER)
    assert [DoubtKind.ELECTION] == elections_in_doubt(*both[:3], states=TOGETHER)
    assert [DoubtKind.ELECTION] == elections_in_doubt(*both[2:], states=TOGETHER)


def test_a_node_of_which_another_log_lost_its_end_proves_nothing():
    both = (earlier(0, end=5), earlier(0, 2, end=5), earlier(1), earlier(1, 2))

    assert [DoubtKind.ELECTION] == elections_in_doubt(*both, states=TOGETHER, shortened={(1, 2)})
    assert [] == elections_in_doubt(*both, states=TOGETHER, shortened={(0, 2), (1, 3)})


@pytest.mark.parametrize("sign", [{"high_watermark": 11}, {"recovery_point": 11}, {"checkpoint": [(0, 0), (1, 12)]}])
def test_a_log_that_ends_below_what_was_written_down_of_it_is_such_a_sign(sign):
    copies = (earlier(0, end=5), earlier(0, 2, end=5), earlier(1), earlier(1, 2, **sign))

    assert [DoubtKind.ELECTION] == elections_in_doubt(*copies, states=TOGETHER)


def test_a_copy_from_before_a_restart_is_none_of_the_last_stop():
    moments = Moments(
        metadata_ends={1: 25},
        metadata_times={1: 1_000},
        fencings={1: (Fencing(recorded_at=26, last_heartbeat_ms=900),)},
        brokers=frozenset({1, 2}),
    )
    stopped = earlier(1, clean=True)

    assert [] == elections_in_doubt(stopped, moments=moments)
    assert [DoubtKind.ELECTION] == elections_in_doubt(stopped, moments=moments, restarts=(28, 45))
    running = replace(moments, fencings={1: (Fencing(recorded_at=26, last_heartbeat_ms=1_100),)})
    assert [DoubtKind.ELECTION] == elections_in_doubt(stopped, moments=running)


def test_logs_that_end_where_an_earlier_copy_had_them_may_have_lost_what_followed():
    both = (earlier(0), earlier(0, 2), earlier(1), earlier(1, 2))

    assert [DoubtKind.ELECTION] == elections_in_doubt(*both, states=TOGETHER)


def test_a_log_that_its_leader_made_anew_leaves_open_what_it_held_before():
    made = MadeAnew(broker_id=1, time_ms=46, directory="/d0/t-0", since_ms=45, failed="/d1")

    def asked(one, *copies):
        found = doubts_of(
            account(LED, ALONE, NONE, AGAIN, restarts=(45,)),
            FINAL[0],
            copies or FINAL,
            Moments(brokers=frozenset({1, 2})),
            is_leader_known=True,
            made_anew=(one,),
        )
        return [each.words for each in found.open if each.kind is DoubtKind.DISK]

    (words,) = asked(made)
    assert "made it anew, empty, in /d0/t-0 while /d1 was offline" in words
    assert asked(made._replace(since_ms=5)) == [], "it was not created by then"
    assert asked(made._replace(broker_id=2)) == [], "it follows a leader that holds all"
    assert asked(made, FINAL[0], FINAL[0], FINAL[1]) == [], "the log of before is given, too"


def test_a_directory_without_meta_properties_may_be_that_of_a_broker_whose_others_do_not_hold_the_replica():
    unnamed = log_copy(replica(Absent.UNREADABLE, [batch(0, 9, 0)]), rank=2)

    found = doubts_of(
        account(LED, AGAIN), FINAL[0], (FINAL[0], unnamed), Moments(brokers=frozenset({1, 2})), is_leader_known=True
    )

    words = [one.words for one in found.open]
    assert "whether the directory without meta.properties is that of broker 2, a replica" in words
    assert not any("hold none" in one for one in words)


@pytest.mark.parametrize(
    ("replicas", "isr", "named"),
    [
        ((1, 1), {1}, "a broker twice among the replicas"),
        ((), (), "no replicas"),
        ((1,), {1, 9}, "an in-sync replica that is none of the replicas"),
        ((1, 2), {1}, ""),
    ],
)
def test_metadata_of_a_partition_that_contradict_themselves_leave_open_which_replicas_count(replicas, isr, named):
    state = replace(leadership(1, 0, isr, 10), replicas=replicas)
    words = [one.words for one in in_doubt(states=(state, state)) if one.kind is DoubtKind.ACCOUNT]

    assert words == ([f"which replicas count: the metadata names {named}"] if named else [])
