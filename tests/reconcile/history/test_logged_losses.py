from kforensics.damage import Absent
from kforensics.protocol.truncation import ProtocolName
from kforensics.reconcile.history.causes import CauseName
from kforensics.reconcile.history.logged_losses import unseen_runs
from kforensics.reconcile.history.truncations import Cut
from kforensics.reconcile.observed.facts import Leadership
from kforensics.units import OffsetRange, TopicPartition
from tests.reconcile.logs import HERE


def cut(from_offset, to_offset, *, rule="epoch", broker=1, logged=True):
    return Cut(
        broker_id=broker,
        topic_partition=TopicPartition("t", 0),
        time_ms=1,
        from_offset=from_offset,
        to_offset=to_offset,
        rule=rule,
        leader=2,
        leader_epoch=5,
        is_full=False,
        is_logged=logged,
        is_shortened=False,
        before=None,
        citations=(HERE,),
    )


def term(leader, epoch, isr):
    return Leadership(
        leader=leader,
        leader_epoch=epoch,
        isr=frozenset(isr),
        replicas=(1, 2),
        unclean=False,
        recorded_at=Absent.NOT_APPLICABLE,
        time_ms=0,
        citation=HERE,
    )


def runs(
    *cuts,
    cause=CauseName.UNCLEAN_ELECTION,
    protocol=ProtocolName.KIP_595,
    shown=(),
    leader_end=100,
    leaderships=(),
    needed=1,
):
    return unseen_runs(
        [(one, cause, protocol) for one in cuts],
        shown=shown,
        leader_end=leader_end,
        leaderships=leaderships,
        needed_in_sync=needed,
    )


def offsets(found):
    return [tuple(run.offsets) for run in found]


def test_what_a_line_says_was_cut_may_have_been_committed():
    found = runs(cut(84, 70), leaderships=(term(1, 3, {1, 2}), term(1, 4, {1})))

    assert [(70, 83)] == offsets(found)
    assert ("possible", True, 4) == (found[0].committed, found[0].is_replaced, found[0].leader_epoch)
    assert "the ISR was [1] alone in leader epoch 4" in found[0].reason


def test_what_some_copy_shows_is_left_to_it():
    assert [(70, 71), (76, 83)] == offsets(runs(cut(84, 70), shown=[OffsetRange(72, 75)]))
    assert () == runs(cut(84, 70), shown=[OffsetRange(0, 100)])


def test_an_uncommitted_tail_is_no_loss_of_committed_records():
    assert ["no"] == [run.committed for run in runs(cut(84, 70), cause=CauseName.UNCOMMITTED_TAIL)]


def test_two_replicas_that_cut_the_same_count_once():
    assert [(70, 79), (80, 83)] == offsets(runs(cut(80, 70, broker=1), cut(84, 70, broker=3)))


def test_a_cut_to_the_high_watermark_counts_past_the_leaders_end_only():
    assert () == runs(cut(84, 70, rule="high-watermark"))
    assert [(75, 83)] == offsets(runs(cut(84, 70, rule="high-watermark"), leader_end=75))
    assert [(75, 83)] == offsets(runs(cut(84, 70, rule="unknown"), protocol=ProtocolName.HW, leader_end=75))
    assert [(70, 74), (75, 83)] == offsets(runs(cut(84, 70, rule="unknown"), leader_end=75))


def test_disks_speak_for_themselves():
    assert () == runs(cut(84, 70, logged=False))


def test_a_line_with_absurd_offsets_takes_no_time():
    assert [(5, 99), (100, 2**62 - 1)] == offsets(runs(cut(2**62, 5)))
