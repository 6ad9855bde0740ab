from kforensics.protocol.truncation import ProtocolName
from kforensics.reconcile.history.causes import CauseName
from kforensics.reconcile.history.logged_losses import find_logged_losses
from kforensics.units import OffsetRange
from tests.builders.history import leadership, truncation


def runs(
    *truncations,
    cause=CauseName.UNCLEAN_ELECTION,
    protocol=ProtocolName.KIP_595,
    shown=(),
    leader_end=100,
    leaderships=(),
    needed=1,
):
    return find_logged_losses(
        [(one, cause, protocol) for one in truncations],
        shown=shown,
        leader_end=leader_end,
        leaderships=leaderships,
        needed_in_sync=needed,
    )


def offsets(found):
    return [tuple(run.offsets) for run in found]


def test_what_a_line_says_was_cut_may_have_been_committed():
    found = runs(truncation(84, 70), leaderships=(leadership(1, 3, {1, 2}), leadership(1, 4, {1})))

    assert [(70, 83)] == offsets(found)
    assert ("possible", True, 4) == (found[0].committed, found[0].is_replaced, found[0].leader_epoch)
    assert "the ISR was [1] alone in leader epoch 4" in found[0].reason


def test_what_some_copy_shows_is_left_to_it():
    assert [(70, 71), (76, 83)] == offsets(runs(truncation(84, 70), shown=[OffsetRange(72, 75)]))
    assert () == runs(truncation(84, 70), shown=[OffsetRange(0, 100)])


def test_an_uncommitted_tail_is_no_loss_of_committed_records():
    assert ["no"] == [run.committed for run in runs(truncation(84, 70), cause=CauseName.UNCOMMITTED_TAIL)]


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
