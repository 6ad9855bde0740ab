"""The root cause is what is proven or likely behind most of the gravest losses, with broker and time where an input shows them."""

from dataclasses import replace

import pytest

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.findings.rules.causes import root_cause
from kforensics.reconcile.history.causes import Cause, CauseName
from kforensics.reconcile.observed.leadership import Risk
from kforensics.units import METADATA_TOPICS, OffsetRange, TopicPartition
from tests.builders.incidents import explanation


def incident(**changes):
    """The incident of the builder, whose one loss comes from the unclean election of broker 1, changed."""
    return replace(explanation("").incidents[0], **changes)


def loss(**changes):
    return replace(incident().losses[0], **changes)


def test_the_election_that_the_loss_cites_is_named_with_time_and_isr():
    found = root_cause([incident()])

    assert found is not None
    assert CauseName.UNCLEAN_ELECTION is found.cause
    assert ((1,), (2,)) == (found.brokers, found.isr)
    assert 1_795_243_207_719 == found.first_ms == found.last_ms
    assert "proven" == found.confidence
    assert (TopicPartition("topic", 0),) == found.partitions
    assert ((), 0) == (found.other_causes, found.unexplained)
    assert 1 == len(found.citations)


def test_an_election_that_the_loss_does_not_cite_is_named_where_it_is_the_only_unclean_one_since():
    one = incident(losses=(loss(citations=(), leader_epoch=Absent.UNKNOWN),))
    assert one.account is not None
    election = next(one for one in one.account.elections if one.risk is Risk.UNCLEAN)
    again = election._replace(state=replace(election.state, leader_epoch=election.state.leader_epoch + 1))

    def brokers(*elections):
        found = root_cause([replace(one, account=one.account._replace(elections=elections))])
        assert found is not None
        return found.brokers

    assert brokers(election) == (1,)
    assert brokers(election, again) is Absent.UNKNOWN
    assert brokers(election._replace(risk=Risk.UNCLEAN_RESTART)) is Absent.UNKNOWN


@pytest.mark.parametrize("changes", [{"confidence": "possible"}, {"cause": CauseName.UNKNOWN}])
def test_what_is_only_possible_is_no_cause(changes):
    assert root_cause([incident(losses=(loss(**changes),))]) is None


def test_without_a_loss_there_is_no_cause():
    assert root_cause([incident(losses=())]) is None
    assert root_cause([]) is None


def test_losses_of_the_metadata_log_are_none():
    metadata = TopicPartition(next(iter(METADATA_TOPICS)), 0)

    assert root_cause([incident(partition=metadata)]) is None


def test_records_without_a_known_cause_are_counted_and_not_attributed():
    unknown = loss(cause=CauseName.UNKNOWN, offsets=OffsetRange(200, 299), records=100)

    found = root_cause([incident(losses=(loss(), unknown))])

    assert found is not None
    assert CauseName.UNCLEAN_ELECTION is found.cause
    assert 100 == found.unexplained
    assert "proven" == found.confidence


def test_committed_records_come_before_those_that_may_have_been_and_these_before_the_others():
    many = loss(was_committed="possible", cause=CauseName.POWER_LOSS, confidence="likely", records=1_000)
    most = loss(was_committed="no", cause=CauseName.UNCOMMITTED_TAIL, confidence="likely", records=9_000)

    def cause(*losses):
        found = root_cause([incident(losses=losses)])
        return None if found is None else found.cause

    assert CauseName.UNCLEAN_ELECTION is cause(most, many, loss())
    assert CauseName.POWER_LOSS is cause(most, many)
    assert CauseName.UNCOMMITTED_TAIL is cause(most)


def test_of_a_truncation_the_broker_is_named_whose_log_recovery_truncated():
    found_at = Citation(input=1, path="server.log", line=9)
    recovery = replace(
        incident().truncations[0],
        broker_id=2,
        decided_by="recovery",
        time_ms=1_795_243_200_500,
        cause=Cause(name=CauseName.POWER_LOSS, confidence="likely", reason="", citations=(found_at,)),
        citations=(found_at,),
    )
    lost = loss(cause=CauseName.POWER_LOSS, confidence="likely", citations=(found_at,))

    found = root_cause([incident(losses=(lost,), truncations=(incident().truncations[0], recovery))])

    assert found is not None
    assert ((2,), 1_795_243_200_500) == (found.brokers, found.first_ms)
    assert Absent.NOT_APPLICABLE == found.isr or found.isr is Absent.UNKNOWN


def test_a_broker_that_is_known_of_some_partitions_only_is_not_named():
    elsewhere = incident(partition=TopicPartition("topic", 1), account=None)
    other = replace(elsewhere, losses=(loss(topic_partition=TopicPartition("topic", 1)),))

    found = root_cause([incident(), other])

    assert found is not None
    assert (Absent.UNKNOWN, Absent.UNKNOWN) == (found.brokers, found.first_ms)
    assert 2 == len(found.partitions)


def test_the_weakest_confidence_holds_for_the_whole():
    other = loss(topic_partition=TopicPartition("topic", 1), confidence="likely")

    found = root_cause([incident(losses=(loss(), other))])

    assert found is not None
    assert "likely" == found.confidence


def test_what_a_broker_lost_before_it_led_again_is_laid_on_it_and_not_on_its_follower():
    (follower,) = incident().truncations
    (recovery,) = incident().losses[0].citations[1:]
    cause = Cause(CauseName.LAST_REPLICA_STANDING, "likely", "it had lost them", (recovery,))
    followed = replace(follower, broker_id=3, decided_by="epoch", cause=cause)
    lost = replace(follower, broker_id=2, decided_by="recovery", time_ms=7, citations=(recovery,))
    own = loss(cause=cause.name, confidence="likely", citations=follower.citations[:1])

    found = root_cause([incident(truncations=(followed, lost), losses=(own,))])

    assert found is not None
    assert (found.brokers, found.first_ms) == ((2,), 7)
