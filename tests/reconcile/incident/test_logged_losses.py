from dataclasses import replace

import pytest

from kforensics.damage import Absent
from kforensics.evidence.model import CheckpointValue
from kforensics.protocol.truncation import ProtocolName
from kforensics.reconcile.committed.proofs import Bound
from kforensics.reconcile.history.causes import Cause, CauseName
from kforensics.reconcile.incident.logged_losses import find_logged_losses
from kforensics.units import EpochEntry, OffsetRange, TopicPartition
from tests.builders.history import leadership, truncation
from tests.builders.logs import HERE


def runs(
    *truncations,
    cause=CauseName.UNCLEAN_ELECTION,
    protocol=ProtocolName.KIP_595,
    shown=(),
    leader_end=100,
    leader_start=0,
    leaderships=(),
    needed=1,
    leader_epochs=(),
    judge=None,
    is_cleaned=False,
    earlier=False,
    whole=None,
):
    return find_logged_losses(
        TopicPartition("t", 0),
        [(one, Cause(name=cause, confidence="likely", reason="why"), protocol) for one in truncations],
        shown=shown,
        leader_end=leader_end,
        leader_start=leader_start,
        leaderships=leaderships,
        needed_in_sync=needed,
        leader_epochs=leader_epochs,
        judge=judge,
        is_cleaned=is_cleaned,
        may_be_of_earlier=lambda _one: earlier,
        whole=whole,
    )


def offsets(found):
    return [tuple(run.offsets) for run in found]


def test_what_a_line_says_was_cut_may_have_been_committed():
    found = runs(truncation(84, 70), leaderships=(leadership(1, 3, {1, 2}), leadership(1, 4, {1})))

    assert [(70, 83)] == offsets(found)
    assert ("possible", True, 4) == (found[0].committed, found[0].is_replaced, found[0].leader_epoch)
    assert "the ISR was [1] alone in leader epoch 4" in found[0].reason


def test_the_cause_of_the_truncation_keeps_its_confidence():
    (found,) = runs(truncation(84, 70))

    assert (CauseName.UNCLEAN_ELECTION, "likely") == (found.cause, found.confidence)


def test_what_some_copy_shows_is_left_to_it():
    assert [(70, 71), (76, 83)] == offsets(runs(truncation(84, 70), shown=[OffsetRange(72, 75)]))
    assert () == runs(truncation(84, 70), shown=[OffsetRange(0, 100)])


def test_what_the_leader_has_of_an_earlier_epoch_may_be_the_same_records():
    """A leader that was away appends in its old epoch what waited in its socket, after another leader wrote the same."""
    known = {
        "leaderships": (leadership(3, 2, {1, 3}), leadership(1, 4, {1}), leadership(2, 5, {2})),
        "leader_epochs": (EpochEntry(2, 0), EpochEntry(5, 76)),
    }
    same, replaced = runs(truncation(84, 70), **known)

    assert ((70, 75), (76, 83)) == (tuple(same.offsets), tuple(replaced.offsets))
    assert (True, False) == (same.may_be_in_leader, replaced.may_be_in_leader)
    assert same.is_only_logged
    assert replaced.is_only_logged
    assert "may be the same ones" in same.reason
    assert "may be the same ones" not in replaced.reason


def test_what_the_only_leader_cut_off_its_own_log_is_in_no_log_but_may_have_been_sent_again():
    (own,) = runs(truncation(71, 70, rule="recovery"), leaderships=(leadership(1, 3, {1}), leadership(1, 4, {1})))

    assert ((70, 70), "possible", True) == (tuple(own.offsets), own.was_committed, own.may_be_in_leader)
    assert "the leader's log has records there since, which may be the same ones" in own.reason
    # What another broker led with in between it has again.
    assert () == runs(truncation(71, 70, rule="recovery"), leaderships=(leadership(1, 3, {1}), leadership(2, 4, {2})))
    assert () == runs(truncation(71, 70, rule="recovery"))


class Judged:
    """A clean election in epoch 5 that proves what its leader never had."""

    def __init__(self, start, *, holder=1, until=None):
        self.holder, self.until = holder, until
        self.bound = Bound(offset=start, reason="broker 2 was in the ISR", citations=())

    def never_after(self, first_epoch, last_epoch, holder, until=None, by_ms=Absent.UNKNOWN):
        return self.bound if (first_epoch, last_epoch, holder, until) == (4, 4, self.holder, self.until) else None


@pytest.mark.parametrize(("start", "committed"), [(70, "no"), (71, "possible")])
def test_only_an_election_that_proves_it_makes_a_tail_uncommitted(start, committed):
    known = {
        "leaderships": (leadership(1, 4, {1, 2}), leadership(2, 5, {2})),
        "leader_epochs": (EpochEntry(4, 0), EpochEntry(5, 70)),
    }

    assert [committed] == [
        run.committed
        for run in runs(truncation(84, 70), cause=CauseName.UNCOMMITTED_TAIL, judge=Judged(start), **known)
    ]
    assert ["possible"] == [
        run.committed for run in runs(truncation(84, 70), cause=CauseName.UNCOMMITTED_TAIL, **known)
    ]


FOLLOWED = (leadership(3, 4, {1, 2, 3}), leadership(2, 5, {2}))
LED = (leadership(1, 4, {1, 2}), leadership(3, 5, {1, 3}), leadership(2, 6, {2}))


@pytest.mark.parametrize(
    ("line", "states", "until", "committed"),
    [
        ({"leader_epoch": 5}, FOLLOWED, None, "no"),
        ({"leader_epoch": 5, "rule": "recovery"}, FOLLOWED, None, "possible"),
        ({"leader_epoch": Absent.UNKNOWN}, FOLLOWED, None, "possible"),
        ({"leader_epoch": 6}, LED, 6, "no"),
        ({"leader_epoch": 6}, LED, None, "possible"),
        ({"leader_epoch": 6}, (LED[0], leadership(3, 5, {2, 3}), LED[2]), None, "no"),
    ],
)
def test_what_a_follower_may_have_copied_from_later_leaders_counts_too(line, states, until, committed):
    known = {"leaderships": states, "leader_epochs": (EpochEntry(4, 0), EpochEntry(5, 70)), "leader_end": 80}
    judge = Judged(70, until=until)

    assert {committed} == {run.committed for run in runs(replace(truncation(84, 70), **line), judge=judge, **known)}


def test_two_replicas_that_cut_the_same_count_once():
    assert [(70, 79), (80, 83)] == offsets(runs(truncation(80, 70, broker=1), truncation(84, 70, broker=3)))


def test_a_cut_to_the_high_watermark_counts_past_the_leaders_end_only():
    assert () == runs(truncation(84, 70, rule="high-watermark"))
    assert [(75, 83)] == offsets(runs(truncation(84, 70, rule="high-watermark"), leader_end=75))
    assert [(75, 83)] == offsets(runs(truncation(84, 70, rule="unknown"), protocol=ProtocolName.HW, leader_end=75))
    assert [(70, 74), (75, 83)] == offsets(runs(truncation(84, 70, rule="unknown"), leader_end=75))


def test_disks_speak_for_themselves():
    assert () == runs(truncation(84, 70, logged=False))


def test_a_line_with_absurd_offsets_takes_no_time():
    assert [(5, 99), (100, 2**62 - 1)] == offsets(runs(truncation(2**62, 5)))


def with_high_watermark(value, **more):
    return truncation(84, 70, high_watermark=CheckpointValue(value=value, citation=HERE), **more)


def test_what_was_below_the_high_watermark_of_the_role_was_committed():
    after = (EpochEntry(0, 0), EpochEntry(5, 70))

    found = runs(with_high_watermark(80), leader_end=76, leader_epochs=after)

    assert [(70, 75), (76, 79), (80, 83)] == offsets(found)
    assert ["certain", "certain", "possible"] == [run.was_committed for run in found]
    # Of offsets that hold other records now, a committed offset may speak of either.
    assert ["possible", "certain", "possible"] == [run.committed for run in found]
    assert "below high watermark 80" in found[0].reason


def test_what_a_cleaner_may_have_removed_before_is_no_certain_loss():
    found = runs(with_high_watermark(80), leader_end=76, leader_epochs=(EpochEntry(5, 70),), is_cleaned=True)

    assert {"possible"} == {certainty for run in found for certainty in (run.was_committed, run.committed)}
    assert "compaction may have removed some of these records" in found[0].reason
    assert "compaction" not in found[-1].reason


def test_records_that_came_back_in_their_own_epoch_are_no_certain_loss():
    found = runs(with_high_watermark(80), leader_epochs=(EpochEntry(0, 0), EpochEntry(4, 60)))

    assert {"possible"} == {run.was_committed for run in found}


def test_what_lies_below_the_leaders_log_start_was_deleted():
    assert [(75, 83)] == offsets(runs(truncation(84, 70), leader_start=75))
    assert () == runs(truncation(84, 70), leader_start=90)


def test_of_a_log_that_was_truncated_whole_nothing_is_denied_where_no_input_shows_who_led():
    (found,) = runs(truncation(10, 0, leader_epoch=3), judge=Judged(0))

    assert (0, 9) == tuple(found.offsets)
    assert found.was_committed == "possible"


@pytest.mark.parametrize("earlier", [False, True])
def test_nothing_is_proven_of_what_may_have_been_the_log_of_an_earlier_topic(earlier):
    """A broker that was away while its topic was created again still has the old log, and truncates it."""
    stated = truncation(27, 14, high_watermark=CheckpointValue(value=27, citation=HERE))
    whole = Bound(0, "every leader was in sync", (HERE,))

    (above,) = runs(stated, leader_end=14, earlier=earlier)
    (by_account,) = runs(truncation(27, 14), leader_end=14, earlier=earlier, whole=whole)

    assert ("possible" if earlier else "certain") == above.committed
    assert ("possible" if earlier else "no") == by_account.committed
    assert earlier == ("may be that of an earlier topic" in above.reason)
