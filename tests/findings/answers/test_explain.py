"""States of `explain`: a copy of a running broker is no loss, and one that was made while no broker ran hides none."""

from dataclasses import replace

import pytest

from kforensics.ask.model import Ask
from kforensics.findings.answers.advice import Holders
from kforensics.findings.answers.conclusion import conclude
from kforensics.findings.answers.explain import Scope, _open_question, explain_answer, incident_state
from kforensics.findings.answers.model import State
from kforensics.reconcile.history.losses import Holder
from kforensics.reconcile.history.residuals import Earlier, PastEnd, high_watermarks_past_end
from kforensics.reconcile.incident.doubts import Doubt, DoubtKind
from kforensics.reconcile.observed.leadership import Election, LeadershipAccount, Risk
from kforensics.reconcile.observed.outages import Outage, Sign, Took
from kforensics.units import OffsetRange, TopicPartition
from tests.builders.history import leadership, log_copy
from tests.builders.incidents import explanation
from tests.builders.logs import HERE, batch, replica

WHOLE = explanation("1")
QUIET = replace(WHOLE.incidents[0], losses=(), residuals=(), truncations=(), groups=(), is_leader_known=True)
PAST_END = PastEnd(broker_id=1, owner="broker 1", high_watermark=12, log_end=10, citation=HERE)


@pytest.mark.parametrize(
    ("is_sure", "is_leader_known", "missing", "state"),
    [
        (False, True, (), State.MAYBE_LOST),
        (True, True, (), State.LOST),
        (True, True, (3,), State.MAYBE_LOST),
        (True, False, (), State.UNKNOWN),
    ],
)
def test_a_high_watermark_past_every_end_is_a_loss_where_the_broker_had_stopped(
    is_sure, is_leader_known, missing, state
):
    incident = replace(
        QUIET,
        past_end=(replace(PAST_END, is_sure=is_sure),),
        is_leader_known=is_leader_known,
        missing_replicas=missing,
    )

    assert state is incident_state(incident)


@pytest.mark.parametrize(("is_sure", "hedge"), [(True, False), (False, True)])
def test_the_headline_hedges_what_copying_a_running_broker_explains(is_sure, hedge):
    incident = replace(QUIET, past_end=(replace(PAST_END, is_sure=is_sure),))
    words = conclude([incident], (), log_files=(), inputs=WHOLE.inputs, clocks=(), ask=Ask(), holders=Holders())

    headline = explain_answer([incident], words, Scope()).headline

    assert "recorded high watermark 12" in headline
    assert hedge is ("copied while it ran, or after a power loss" in headline)


@pytest.mark.parametrize("past_end", [(), (PAST_END,)])
def test_what_lies_below_a_high_watermark_past_every_end_is_in_no_count(past_end):
    shown = replace(WHOLE.incidents[0].losses[0], committed="certain", was_committed="certain", held_by=())
    incident = replace(QUIET, losses=(shown,), past_end=past_end, missing_replicas=())
    words = conclude([incident], (), log_files=(), inputs=WHOLE.inputs, clocks=(), ask=Ask(), holders=Holders())

    answer = explain_answer([incident], words, Scope())

    assert State.LOST is answer.state
    assert bool(past_end) == answer.headline.startswith("At least ")


@pytest.mark.parametrize(
    ("clean", "is_stopped", "is_sure"), [(False, False, False), (True, False, True), (False, True, True)]
)
def test_a_marker_or_the_user_says_that_the_broker_had_stopped(clean, is_stopped, is_sure):
    copy = log_copy(replica(1, [batch(0, 9, 0)], high_watermark=12, clean=clean))

    (found,) = high_watermarks_past_end([copy], (), is_stopped=is_stopped)

    assert (12, 10, is_sure) == (found.high_watermark, found.log_end, found.is_sure)


@pytest.mark.parametrize(
    ("known", "is_same", "doubted", "is_order_sure", "found"),
    [
        ((), True, {}, True, [(38, 36, True)]),
        ((OffsetRange(30, 36),), True, {}, False, [(38, 36, False)]),
        ((OffsetRange(30, 37),), True, {}, True, []),
        ((), False, {}, True, []),
        ((), True, {1: 36}, True, []),
    ],
)
def test_a_high_watermark_of_an_earlier_snapshot_is_past_the_end_of_the_logs_now(
    known, is_same, doubted, is_order_sure, found
):
    """All brokers lost power, and every log ends below what was committed, in the snapshot and now."""
    now = [log_copy(replica(broker, [batch(0, 28, 0), batch(29, 35, 1)], high_watermark=36)) for broker in (1, 2)]
    before = log_copy(replica(1, [batch(0, 34, 0)], high_watermark=38, clean=False), rank=0, is_final=False)
    earlier = Earlier(is_same_log=lambda _copy: is_same, doubted=doubted, is_order_sure=is_order_sure)

    past = high_watermarks_past_end([*now, before], known, earlier=earlier)

    assert found == [(one.high_watermark, one.log_end, one.is_sure) for one in past]
    assert all(one.is_earlier for one in past)


def test_a_tail_that_only_a_follower_holds_is_no_loss_of_a_running_broker():
    loss = replace(WHOLE.incidents[0].losses[0], committed="possible", was_committed="possible")
    incident = replace(QUIET, losses=(loss,))

    assert State.MAYBE_LOST is incident_state(incident)
    assert State.UNKNOWN is incident_state(replace(incident, tails_of_copies=(loss,)))
    certain = replace(loss, was_committed="certain")
    assert State.UNKNOWN is not incident_state(replace(incident, losses=(certain,), tails_of_copies=(certain,)))


def test_what_another_replica_holds_is_not_called_lost():
    loss = replace(WHOLE.incidents[0].losses[0], committed="possible", was_committed="possible", held_by=())
    holder = Holder(input=0, path="t-0", broker_id=3, is_final=True, in_use=True)
    incident = replace(QUIET, losses=(loss, replace(loss, held_by=(holder,))))

    words = conclude([incident], (), log_files=(), inputs=WHOLE.inputs, clocks=(), ask=Ask(), holders=Holders())
    headline = explain_answer([incident], words, Scope()).headline
    assert f"Other replicas hold {loss.records} of them, {loss.records} are lost" in headline


def test_a_marker_alone_is_not_told_as_no_records():
    """A marker that only another replica holds, alone and beside records that no log holds."""
    holder = Holder(input=0, path="t-0", broker_id=3, is_final=True, in_use=True)
    gone = replace(WHOLE.incidents[0].losses[0], committed="possible", was_committed="possible", held_by=())
    marker = replace(gone, records=0, markers=1, committed="certain", was_committed="certain", held_by=(holder,))

    def told(*losses):
        incident = replace(QUIET, losses=losses)
        words = conclude([incident], (), log_files=(), inputs=WHOLE.inputs, clocks=(), ask=Ask(), holders=Holders())
        return explain_answer([incident], words, Scope()).headline, " ".join(words.conclusion)

    headline, conclusion = told(marker)
    assert headline.startswith("1 committed transaction marker of ")
    assert " is only on broker 3" in headline
    assert "0 records" not in headline + conclusion
    headline, conclusion = told(gone, marker)
    assert headline.startswith(f"{gone.records} records of ")
    assert "hold 0" not in headline
    assert "1 transaction marker that was committed is not in the leader's log" in conclusion
    assert "0 more records" not in conclusion


@pytest.mark.parametrize(("certainty", "is_sure"), [("certain", True), ("possible", False)])
def test_markers_alone_were_committed_only_where_that_is_certain(certainty, is_sure):
    shown = WHOLE.incidents[0].losses[0]
    loss = replace(shown, records=0, markers=1, committed="possible", was_committed=certainty, held_by=())
    incident = replace(QUIET, losses=(loss,))

    words = conclude([incident], (), log_files=(), inputs=WHOLE.inputs, clocks=(), ask=Ask(), holders=Holders())
    headline = explain_answer([incident], words, Scope()).headline

    assert is_sure is ("1 transaction marker that was committed" in headline)
    assert is_sure is not ("possibly committed" in headline)


def test_the_headline_counts_records_only_of_the_partitions_that_lost_them():
    """Of u-0 only a high watermark shows that something is gone."""
    lost = replace(WHOLE.incidents[0], is_leader_known=True, missing_replicas=())
    past = replace(QUIET, partition=TopicPartition("u", 0), past_end=(replace(PAST_END, is_sure=True),))
    certain = [loss for loss in lost.losses if loss.was_committed == "certain" and not loss.in_use]
    assert certain

    words = conclude([lost, past], (), log_files=(), inputs=WHOLE.inputs, clocks=(), ask=Ask(), holders=Holders())
    headline = explain_answer([lost, past], words, Scope()).headline

    assert f"lost from {lost.partition}:" in headline
    assert headline.endswith("Committed records of u-0 are on no disk given, too.")


def test_an_unclean_election_is_the_first_open_question():
    """Partition t-0 was led again after a restart, u-0 after an unclean election."""
    states = leadership(1, 0), leadership(2, 2, {2})

    def doubted(topic, risk):
        partition = TopicPartition(topic, 0)
        account = LeadershipAccount(
            partition=partition,
            states=states,
            elections=(Election(states[0], states[1], risk, 1),),
            gaps=(),
            source="metadata-log",
            assigned=frozenset({1, 2}),
        )
        doubt = Doubt(DoubtKind.ELECTION, f"what {topic} lost", "a copy", leader_epoch=2)
        return replace(QUIET, partition=partition, account=account, doubts=(doubt,))

    incidents = [doubted("t", Risk.UNCLEAN_RESTART), doubted("u", Risk.UNCLEAN)]
    words = conclude(incidents, (), log_files=(), inputs=WHOLE.inputs, clocks=(), ask=Ask(), holders=Holders())

    assert "what u lost (u-0)" in explain_answer(incidents, words, Scope()).headline
    assert "what t lost (t-0)" in explain_answer(incidents[:1], words, Scope()).headline


@pytest.mark.parametrize(
    ("took", "past_end", "logs", "said"),
    [
        (Took.PROCESS, (), WHOLE.incidents[0].logs, "is unknown, and unlikely by all signs. "),
        (Took.PROCESS, (PAST_END,), WHOLE.incidents[0].logs, "is unknown. "),
        (Took.MACHINE, (), WHOLE.incidents[0].logs, "is unknown, but likely. "),
        (Took.MACHINE, (PAST_END,), WHOLE.incidents[0].logs, "is unknown, and likely by all signs. "),
        (Took.MACHINE, (), (), "is unknown, and likely by all signs. "),
    ],
)
def test_a_loss_by_a_returned_leader_is_as_likely_as_the_signs_below_it_say(took, past_end, logs, said):
    outage = Outage(1, 5, (Sign(took, "so"),))
    doubt = Doubt(DoubtKind.ELECTION, "what it lost", "a copy", leader_epoch=2, outage=outage)
    calm = replace(QUIET, doubts=(doubt,), logs=logs)
    other = replace(QUIET, partition=TopicPartition("u", 0), past_end=past_end, logs=logs)

    assert said in f"{_open_question([calm], [calm, other], Scope())} "
