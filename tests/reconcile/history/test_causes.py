"""Which election a cut is blamed on, where several passed before the replica came back."""

from dataclasses import replace

import pytest

from kforensics.damage import Absent
from kforensics.protocol.truncation import ProtocolName
from kforensics.reconcile.history.causes import CauseEvidence, CauseName, cause_of, election_behind
from kforensics.reconcile.history.topic_incarnations import Incarnation
from kforensics.reconcile.history.truncations import ObservedTruncation, Replacement
from kforensics.reconcile.observed.leadership import Election, LeadershipAccount, Risk
from kforensics.units import TopicPartition
from tests.builders.history import leadership, log_copy, truncation
from tests.builders.logs import HERE, batch, replica

CLEAN = leadership(2, 2, {2})
UNCLEAN = replace(leadership(3, 4, {3}), unclean=True)
ELECTIONS = (leadership(1, 0, {1, 2, 3}), leadership(1, 1, {1, 2}), CLEAN, UNCLEAN)


@pytest.mark.parametrize(("epoch", "election"), [(2, CLEAN), (4, UNCLEAN)])
def test_the_epoch_that_took_the_place_tells_the_election(epoch, election):
    assert election is election_behind(replace(truncation(33, 20), replacement=Replacement(0, epoch)), ELECTIONS[2:])


@pytest.mark.parametrize(
    ("leader", "elections", "found"),
    [
        (1, [leadership(1, 1, at=5)], 1),
        (Absent.UNKNOWN, [leadership(1, 1, at=5)], 1),
        (2, [leadership(1, 1, at=5)], None),
        (1, [leadership(1, 0, at=5)], None),
        (1, [leadership(1, 1, at=11)], None),
    ],
)
def test_by_time_alone_only_the_last_recorded_leader_that_was_followed_is_behind_it(leader, elections, found):
    one = truncation(25, 20, broker=3, leader=leader, leader_epoch=Absent.UNKNOWN, time_ms=10)
    election = election_behind(one, elections)

    assert found == (election if election is None else election.leader)


def test_without_a_later_log_the_leaders_epoch_tells_it():
    assert UNCLEAN is election_behind(replace(truncation(33, 20), leader_epoch=4), ELECTIONS)


@pytest.mark.parametrize(
    ("time_ms", "elected_ms", "is_behind"),
    [
        (7_000, (7_300,), True),  # a line of the layout that Strimzi sets, of some moment in the second
        (7_001, (7_300,), False),
        (7_000, (8_000,), False),
        (7_000, (7_300, 7_600), False),
    ],
)
def test_a_line_to_the_second_may_follow_an_election_of_that_second(time_ms, elected_ms, is_behind):
    elections = [leadership(2, 6 + at, time_ms=one) for at, one in enumerate(elected_ms)]
    one = replace(truncation(33, 20), time_ms=time_ms, leader_epoch=Absent.UNKNOWN)

    assert election_behind(one, elections) is (elections[0] if is_behind else None)


def why(one: ObservedTruncation, *elections):
    evidence = CauseEvidence(leaderships=elections, truncations=(one,), incarnation=Incarnation())
    return cause_of(one, evidence, protocol=ProtocolName.KIP_595, none_committed=False, is_by_protocol=True)


@pytest.mark.parametrize(
    ("is_of_topic", "cause"), [(True, CauseName.UNCOMMITTED_TAIL), (False, CauseName.RECREATED_TOPIC)]
)
def test_batches_overrule_a_clock_by_which_a_topic_is_younger_than_its_files(is_of_topic, cause):
    held = replica(1, [batch(0, 32, 1)])
    before = log_copy(replace(held, segments=(replace(held.segments[0], mtime_ns=10_000_000_000),)), is_final=False)
    one = replace(truncation(33, 20), before=before, time_ms=60_000, leader_epoch=4)
    evidence = CauseEvidence(
        leaderships=ELECTIONS,
        truncations=(one,),
        incarnation=Incarnation(created_ms=50_000),
        is_of_topic=lambda copy: is_of_topic and copy is before,
    )

    found = cause_of(one, evidence, protocol=ProtocolName.KIP_595, none_committed=False, is_by_protocol=True)
    assert cause is found.name


@pytest.mark.parametrize(
    ("recovered", "confidence"), [((), "proven"), (((3, 20),), "possible"), (((3, 19), (2, 20)), "proven")]
)
def test_a_leader_whose_own_log_recovery_truncated_there_may_have_held_the_records(recovered, confidence):
    one = replace(truncation(33, 20, logged=False), leader_epoch=4, replacement=Replacement(0, 4))
    evidence = CauseEvidence(
        leaderships=ELECTIONS[2:], truncations=(one,), incarnation=Incarnation(), recovered=recovered
    )
    found = cause_of(one, evidence, protocol=ProtocolName.KIP_595, none_committed=False, is_by_protocol=True)

    assert (CauseName.UNCLEAN_ELECTION, confidence) == (found.name, found.confidence)


def test_a_leader_cuts_nothing():
    lost = replace(truncation(44, 24, logged=False), leader=1, replacement=Replacement(1, 4))

    assert CauseName.POWER_LOSS is why(lost, leadership(1, 1, {1}), leadership(1, 4, {1})).name


def test_what_the_leader_had_written_itself_it_had_lost():
    told = replace(truncation(30, 24, broker=2), leader=1, replacement=Replacement(0, 2))

    assert CauseName.UNCOMMITTED_TAIL is not why(told, leadership(1, 0, {1, 2}), leadership(1, 2, {1})).name
    assert CauseName.UNCOMMITTED_TAIL is why(told, leadership(2, 0, {1, 2}), leadership(1, 2, {1})).name


@pytest.mark.parametrize(("isr", "is_clean"), [({1, 3}, False), ({1, 2}, True), (None, False)])
def test_an_election_of_which_lines_name_no_isr_is_not_called_clean(isr, is_clean):
    before = leadership(1, 0, isr or {1})
    before = replace(before, isr=Absent.UNKNOWN) if isr is None else before
    lines = [replace(one, recorded_at=Absent.NOT_APPLICABLE) for one in (before, leadership(2, 1, {2}))]

    assert is_clean is ("took over cleanly in leader epoch 1" in why(truncation(30, 24), *lines).reason)
    assert (CauseName.UNCOMMITTED_TAIL if is_clean else CauseName.UNKNOWN) is why(truncation(30, 24), *lines).name
    assert "took over cleanly in leader epoch 1" in why(truncation(30, 24), before, leadership(2, 1, {2})).reason


def test_without_elections_a_tail_that_others_replaced_was_not_merely_lost():
    gone = ObservedTruncation(
        broker_id=1,
        topic_partition=TopicPartition("t", 0),
        time_ms=Absent.UNKNOWN,
        from_offset=33,
        to_offset=20,
        rule="unknown",
        leader=Absent.UNKNOWN,
        leader_epoch=Absent.UNKNOWN,
        is_full=False,
        is_logged=False,
        is_shortened=False,
        before=None,
        citations=(HERE,),
    )

    assert CauseName.POWER_LOSS is why(gone).name
    assert CauseName.UNKNOWN is why(replace(gone, replacement=Replacement(0, 4))).name


def test_recovery_that_empties_a_segment_is_the_cause_itself():
    emptied = replace(truncation(12, 10), rule="recovery", empties_segment=True)
    inside = replace(emptied, is_inside=True)

    for one in (emptied, inside):
        assert (CauseName.RECOVERY, "proven") == (why(one).name, why(one).confidence)
    assert CauseName.POWER_LOSS is why(replace(emptied, empties_segment=False)).name
    assert CauseName.DAMAGE is why(replace(inside, empties_segment=False)).name


def test_recovery_truncates_a_metadata_log_at_any_start():
    metadata = replace(truncation(95, 74), rule="recovery", topic_partition=TopicPartition("__cluster_metadata", 0))

    assert CauseName.RECOVERY is why(metadata).name
    assert CauseName.DAMAGE is why(replace(metadata, is_inside=True)).name
    assert CauseName.UNCOMMITTED_TAIL is why(replace(metadata, rule="epoch")).name


def test_a_shorter_metadata_log_that_no_line_explains_may_be_an_older_copy():
    one = replace(truncation(95, 74), rule="epoch", topic_partition=TopicPartition("__cluster_metadata", 0))
    found = [why(replace(one, is_logged=is_logged)) for is_logged in (True, False)]

    assert [(CauseName.UNCOMMITTED_TAIL, "likely"), (CauseName.UNCOMMITTED_TAIL, "possible")] == [
        (cause.name, cause.confidence) for cause in found
    ]


def test_what_the_recovery_of_the_leader_had_emptied_is_behind_the_truncation_of_a_follower():
    leaders = replace(truncation(12, 10, broker=1), rule="recovery", empties_segment=True)
    follower = replace(truncation(12, 10, broker=2), leader=1)
    evidence = CauseEvidence(
        leaderships=(leadership(1, 1, {1, 2}),), truncations=(leaders, follower), incarnation=Incarnation()
    )
    found = cause_of(follower, evidence, protocol=ProtocolName.KIP_595, none_committed=False, is_by_protocol=True)

    assert (CauseName.RECOVERY, "likely") == (found.name, found.confidence)


@pytest.mark.parametrize("risk", [Risk.OTHER_DISK, Risk.UNCLEAN_RESTART, None])
def test_a_leader_with_another_disk_had_lost_the_log_with_the_old_one(risk):
    before, again = leadership(1, 1, {1, 2}), leadership(1, 2, {1, 2})
    account = LeadershipAccount(
        partition=TopicPartition("t", 0),
        states=(before, again),
        elections=tuple(Election(before=None, state=one, risk=risk, previous=1) for one in (before, again)),
        gaps=(),
        source="metadata-log",
        assigned=frozenset({1, 2}),
    )
    follower = replace(truncation(30, 24, broker=2), leader=1, leader_epoch=2, replacement=Replacement(0, 2))
    evidence = CauseEvidence(
        leaderships=(before, again), truncations=(follower,), incarnation=Incarnation(), account=account
    )
    found = cause_of(follower, evidence, protocol=ProtocolName.KIP_595, none_committed=False, is_by_protocol=True)

    assert (found.name is CauseName.DISK_REPLACED) is (risk is Risk.OTHER_DISK)


def judged(one: ObservedTruncation, risk, *elections):
    account = LeadershipAccount(
        partition=one.topic_partition,
        states=elections,
        elections=(Election(elections[0], elections[-1], risk, elections[0].leader),),
        gaps=(),
        source="metadata-log",
        assigned=Absent.UNKNOWN,
    )
    evidence = CauseEvidence(leaderships=elections, truncations=(one,), incarnation=Incarnation(), account=account)
    return cause_of(one, evidence, protocol=ProtocolName.KIP_595, none_committed=False, is_by_protocol=True)


def flushed_to(offset):
    return log_copy(replica(1, [batch(0, 43, 1)], recovery_point=offset), rank=0, is_final=False)


def test_what_was_flushed_is_lost_by_a_restored_disk_and_not_by_a_power_loss():
    elections = (leadership(1, 1, {1}), leadership(1, 4, {1}))
    lost = replace(truncation(44, 24, logged=False), leader=1, replacement=Replacement(1, 4))

    for offset, cause in ((24, CauseName.POWER_LOSS), (25, CauseName.DISK_RESTORED)):
        found = judged(replace(lost, before=flushed_to(offset)), Risk.UNCLEAN_RESTART, *elections)
        assert (cause, "likely") == (found.name, found.confidence)


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_start_with_the_marker_of_a_clean_stop_follows_no_power_loss(is_clean):
    held = replica(1, [batch(0, 43, 1)], recovery_point=0)
    written = replace(held, segments=tuple(replace(one, mtime_ns=7_000_000) for one in held.segments))
    before = log_copy(written, rank=0, is_final=False)
    own = replace(truncation(44, 24, logged=False), leader=1, replacement=Replacement(1, 4), before=before)
    # No line says whom the follower follows: the last that its lines name is itself.
    follower = replace(truncation(44, 24, broker=2), leader=2, replacement=Replacement(1, 4))
    evidence = CauseEvidence(
        leaderships=(leadership(2, 1, {1, 2}), leadership(1, 4, {1})),
        truncations=(own, follower),
        incarnation=Incarnation(),
        started_clean=lambda broker, since: is_clean and (broker, since) == (1, 7),
    )

    found = [
        cause_of(one, evidence, protocol=ProtocolName.KIP_595, none_committed=False, is_by_protocol=True)
        for one in (own, follower)
    ]

    assert is_clean is all(one.name is CauseName.DISK_RESTORED for one in found)
    assert is_clean is all("the marker of a clean stop" in one.reason for one in found)


def test_a_clean_stop_flushes_so_that_only_a_restored_disk_lacks_the_tail():
    elections = (leadership(1, 1, {1}), leadership(1, 4, {1}))
    own = replace(truncation(44, 24, logged=False), leader=1, replacement=Replacement(1, 4), before=flushed_to(0))
    followers = replace(truncation(44, 24, broker=2), leader=1, replacement=Replacement(1, 4))

    for one in (own, followers):
        assert CauseName.DISK_RESTORED is judged(one, Risk.RESTART, *elections).name
        assert CauseName.DISK_RESTORED is not judged(one, Risk.UNCLEAN_RESTART, *elections).name


def test_another_disk_is_no_power_loss_on_the_leader_either():
    own = replace(truncation(44, 0, logged=False), leader=1, replacement=Replacement(-1, 4), before=flushed_to(0))

    assert CauseName.DISK_REPLACED is judged(own, Risk.OTHER_DISK, leadership(1, 1, {1}), leadership(1, 4, {1})).name


@pytest.mark.parametrize(("none_committed", "name"), [(True, CauseName.UNCOMMITTED_TAIL), (False, CauseName.UNKNOWN)])
def test_what_was_proven_uncommitted_is_a_tail_whatever_the_new_leader_had_truncated(none_committed, name):
    leaders = replace(truncation(40, 24, broker=1), leader_epoch=1)
    followers = replace(truncation(44, 24, broker=2), leader=1)
    evidence = CauseEvidence(
        leaderships=(leadership(2, 1, {1, 2}), leadership(1, 4, {1})),
        truncations=(leaders, followers),
        incarnation=Incarnation(),
    )

    found = cause_of(
        followers, evidence, protocol=ProtocolName.KIP_595, none_committed=none_committed, is_by_protocol=True
    )

    assert name is found.name


def test_a_leader_that_no_input_names_may_have_written_what_took_the_place():
    lost = replace(truncation(30, 24, broker=2), leader=1, replacement=Replacement(0, 4))
    again = (leadership(1, 0, {1, 2}), leadership(1, 2, {1}))

    found = why(lost, *again)

    assert (CauseName.UNKNOWN, "no evidence shows which election changed the log") == (found.name, found.reason)
    assert CauseName.LAST_REPLICA_STANDING is why(replace(lost, replacement=Replacement(0, 2)), *again).name


def test_what_a_leader_wrote_in_its_term_it_lost_after_its_election():
    """Two unclean elections in a row: broker 2 led, and truncated its own records when broker 3 led."""
    written = log_copy(replica(2, [batch(0, 19, 0), batch(20, 25, 2)]), rank=0, is_final=False)
    second = replace(truncation(26, 20, broker=2, logged=False), replacement=Replacement(0, 4), before=written)
    first = replace(truncation(28, 20, broker=1, logged=False), replacement=Replacement(0, 4))
    elections = (leadership(1, 0, {1}), leadership(2, 2, {2}, unclean=True), leadership(3, 4, {3}, unclean=True))
    evidence = CauseEvidence(leaderships=elections, truncations=(first, second), incarnation=Incarnation())

    found = cause_of(first, evidence, protocol=ProtocolName.KIP_595, none_committed=False, is_by_protocol=True)

    assert (CauseName.UNCLEAN_ELECTION, elections[1].citation) == (found.name, found.citations[0])


@pytest.mark.parametrize(
    ("risk", "epoch", "none_committed", "cause"),
    [
        (Risk.UNCLEAN_RESTART, 4, False, CauseName.POWER_LOSS),
        (Risk.UNCLEAN_RESTART, 4, True, CauseName.UNCOMMITTED_TAIL),
        (Risk.UNCLEAN_RESTART, 6, False, CauseName.UNCOMMITTED_TAIL),
        (None, 4, False, CauseName.UNCOMMITTED_TAIL),
    ],
)
def test_a_leader_that_led_after_an_unclean_shutdown_may_have_lost_what_its_followers_truncate(
    risk, epoch, none_committed, cause
):
    states = (leadership(1, 0, {1, 2}), leadership(2, 2, {2}), leadership(2, epoch, {2}))
    account = LeadershipAccount(
        partition=TopicPartition("t", 0),
        states=states,
        elections=(Election(states[1], states[2], risk, 2),),
        gaps=(),
        source="metadata-log",
        assigned=frozenset({1, 2}),
    )
    one = replace(truncation(33, 20), replacement=Replacement(0, 5))
    evidence = CauseEvidence(
        leaderships=(*states, leadership(2, 5, {2})), truncations=(one,), incarnation=Incarnation(), account=account
    )
    found = cause_of(one, evidence, protocol=ProtocolName.KIP_595, none_committed=none_committed, is_by_protocol=True)

    assert cause is found.name
    assert found.confidence == ("proven" if none_committed else "possible")
    # Where lines alone name the leader and no ISR, it may as well have been out of sync.
    lines = [replace(one, recorded_at=Absent.NOT_APPLICABLE, isr=Absent.UNKNOWN) for one in evidence.leaderships]
    named = account._replace(elections=(account.elections[0]._replace(state=lines[2]),))
    by_lines = replace(evidence, leaderships=lines, account=named)
    found = cause_of(one, by_lines, protocol=ProtocolName.KIP_595, none_committed=False, is_by_protocol=True)
    assert CauseName.UNKNOWN is found.name


def test_a_metadata_log_that_begins_with_a_snapshot_does_not_show_how_its_first_leader_was_elected():
    one = replace(truncation(27, 20), leader_epoch=2)

    assert (CauseName.UNKNOWN, "broker 2 took over in leader epoch 2; no input shows whether it was in sync") == (
        (found := why(one, leadership(2, 2, {2}))).name,
        found.reason,
    )
    assert CauseName.UNCOMMITTED_TAIL is why(one, leadership(1, 1, {1, 2}), leadership(2, 2, {2})).name


def test_a_leader_that_was_elected_again_may_have_lost_its_end_after_its_first_election():
    before = log_copy(replica(1, [batch(0, 32, 1)]), is_final=False)
    one = truncation(33, 20, before=before, replacement=Replacement(1, 3), leader_epoch=3)
    terms = [leadership(2, 1), leadership(2, 2), leadership(2, 3)]

    assert why(one, *terms).reason.startswith("broker 2 had written these records itself")
    assert "led again, and goes on in leader epoch 3" in why(one, *terms).reason
    assert "led again in leader epoch 2:" in why(replace(one, replacement=Replacement(1, 2)), *terms).reason


@pytest.mark.parametrize(
    ("rule", "is_out_of_range", "cause"),
    [
        ("high-watermark", False, CauseName.HIGH_WATERMARK),
        ("unknown", False, CauseName.HIGH_WATERMARK),
        ("leader-end", True, CauseName.UNKNOWN),
        ("unknown", True, CauseName.UNKNOWN),
    ],
)
def test_a_truncation_to_the_leaders_end_is_none_to_the_own_high_watermark(rule, is_out_of_range, cause):
    elections = leadership(1, 0, {1, 2}), leadership(2, 1, {2})
    evidence = CauseEvidence(leaderships=elections, truncations=(), incarnation=Incarnation())
    found = cause_of(
        truncation(58, 45, rule=rule, leader_epoch=1),
        evidence,
        protocol=ProtocolName.HW,
        none_committed=False,
        some_committed=True,
        is_by_protocol=True,
        is_out_of_range=is_out_of_range,
    )

    assert cause is found.name
    assert ("high watermark" in found.reason) is not is_out_of_range


QUORUM = replace(leadership(101, 3, at=90), replicas=(101, 102, 103))
OF_QUORUM = TopicPartition("__cluster_metadata", 0)


@pytest.mark.parametrize(
    ("broker", "shown", "committed", "cause", "words"),
    [
        # What a majority holds no member discards, whether a voter or not.
        (1, {"logged": False}, True, (CauseName.DISK_RESTORED, "likely"), "broker 1 lacks"),
        (102, {"logged": False}, True, (CauseName.DISK_RESTORED, "likely"), "node 102 lacks"),
        # A log that merely ends earlier met no other records.
        (1, {"logged": False, "is_shortened": True}, False, (CauseName.DISK_RESTORED, "possible"), "put back"),
        (1, {"logged": False}, False, (CauseName.UNCOMMITTED_TAIL, "possible"), "only observes"),
        (1, {}, False, (CauseName.UNCOMMITTED_TAIL, "likely"), "only observes"),
        (102, {}, False, (CauseName.UNCOMMITTED_TAIL, "likely"), "a quorum member discards"),
    ],
)
def test_a_metadata_log_that_lacks_what_was_committed_was_put_back(broker, shown, committed, cause, words):
    one = truncation(93, 88, broker=broker, topic=OF_QUORUM, **shown)
    evidence = CauseEvidence(leaderships=(QUORUM,), truncations=(one,), incarnation=Incarnation())
    found = cause_of(
        one,
        evidence,
        protocol=ProtocolName.KIP_595,
        none_committed=False,
        some_committed=committed,
        is_by_protocol=False,
    )

    assert cause == (found.name, found.confidence)
    assert words in found.reason


@pytest.mark.parametrize(
    ("between", "cause"),
    [
        # Nobody else led: a leader truncates nothing.
        ((), (CauseName.POWER_LOSS, "likely")),
        ((leadership(2, 1, {2}),), (CauseName.UNCLEAN_ELECTION, "possible")),
    ],
)
def test_a_broker_that_followed_another_leader_before_it_led_need_not_have_lost_power(between, cause):
    before = log_copy(replica(1, [batch(0, 59, 0)]), is_final=False)
    one = replace(truncation(60, 40, logged=False), before=before, replacement=Replacement(0, 2))
    elected = leadership(1, 2, {1}, unclean=True)

    found = why(one, leadership(3, 0, {1, 3}), *between, elected)
    assert cause == (found.name, found.confidence)


@pytest.mark.parametrize("followed", [True, False])
def test_an_unclean_election_is_no_power_loss_where_the_new_leader_had_followed_another(followed):
    """The new leader's own log is shorter than in an earlier snapshot, which no line reports."""
    held = log_copy(replica(2, [batch(0, 59, 0)]), is_final=False)
    own = replace(truncation(60, 40, broker=2, logged=False), before=held, replacement=Replacement(0, 2))
    one = replace(truncation(60, 40, leader=2, leader_epoch=2), replacement=Replacement(0, 2))
    between = (leadership(3, 1, {3}),) if followed else ()
    elections = leadership(1, 0, {1, 2}), *between, leadership(2, 2, {2}, unclean=True)
    evidence = CauseEvidence(leaderships=elections, truncations=(own, one), incarnation=Incarnation())
    found = cause_of(one, evidence, protocol=ProtocolName.KIP_595, none_committed=False, is_by_protocol=True)

    assert (found.name is CauseName.UNCLEAN_ELECTION) is followed
    assert ("unclean shutdown" in found.reason) is not followed


@pytest.mark.parametrize(
    ("to_offset", "cause"), [(0, (CauseName.DISK_REPLACED, "possible")), (40, (CauseName.POWER_LOSS, "likely"))]
)
def test_a_leaders_log_of_which_nothing_stayed_is_no_likely_power_loss(to_offset, cause):
    before = log_copy(replica(1, [batch(0, 59, 0)]), is_final=False)
    one = replace(truncation(60, to_offset, logged=False), before=before, replacement=Replacement(-1, 2))

    found = why(one, leadership(1, 0, {1, 3}), leadership(1, 2, {1}))
    assert cause == (found.name, found.confidence)
