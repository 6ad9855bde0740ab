"""The best copy of each offset, out of replicas made of batches in memory."""

from dataclasses import replace

import numpy as np
import pytest

from kforensics.reconcile.history.log_copies import LogCopy
from kforensics.reconcile.logs.loaded_log import load_log
from kforensics.reconcile.salvage import MAIN, MOST_LABELS, BestCopies, GapReason, HoleJudge, Label, Wanted
from kforensics.units import OffsetRange
from tests.builders.logs import MemoryReader, batch, replica


def copy_of(broker, *batches, rank=1, **options):
    return LogCopy(view=load_log(replica(broker, batches, **options)), rank=rank, is_final=rank == 1)


def chosen(copies, leader=None, wanted=None, **options):
    """(label, broker, base offset, epoch, merged) of everything that is taken."""
    best = BestCopies(copies=copies, leader=leader, reader=MemoryReader({}), wanted=wanted, **options)
    out = []
    for selection in best.selections():
        for row, at, label, merged in zip(
            selection.rows, selection.copies, selection.labels, selection.merged, strict=True
        ):
            named = best.labels[label]
            broker = copies[at].view.replica.broker_id
            out.append((named, broker, int(row["base_offset"]), int(row["partition_leader_epoch"]), bool(merged)))
    return out


BEST = Label()


def test_the_leaders_batches_come_first_and_the_same_batch_is_taken_once():
    leader = copy_of(1, batch(0, 9, 0), batch(10, 19, 1))
    follower = copy_of(2, batch(0, 9, 0), batch(10, 19, 1))

    assert [(BEST, 1, 0, 0, False), (BEST, 1, 10, 1, False)] == chosen([leader, follower], leader)


def test_a_hole_is_filled_by_a_batch_of_the_same_lineage_alone():
    leader = copy_of(1, batch(0, 9, 0), batch(20, 29, 2), checkpoint=((0, 0), (1, 10), (2, 20)))
    same = copy_of(2, batch(0, 9, 0), batch(10, 19, 1), batch(20, 29, 2))
    other = copy_of(3, batch(0, 9, 0), batch(10, 19, 0, 77))

    taken = chosen([leader, same, other], leader)
    assert (BEST, 2, 10, 1, False) in taken
    assert (Label(0, "broker 3"), 3, 10, 0, False) in taken
    assert (Label(0, "broker 3"), 3, 10, 0, False) in chosen([leader, other], leader)


def test_above_the_leaders_end_only_what_is_of_no_older_epoch_is_its_lineage():
    leader = copy_of(1, batch(0, 9, 0), batch(10, 14, 3))
    longer = copy_of(2, batch(0, 9, 0), batch(10, 14, 3), batch(15, 19, 3))
    divergent = copy_of(3, batch(0, 9, 0), batch(10, 19, 2), batch(20, 29, 2))

    taken = chosen([leader, longer, divergent], leader)
    assert (BEST, 2, 15, 3, False) in taken
    assert [(Label(2, "broker 3"), 3, 10, 2, False), (Label(2, "broker 3"), 3, 20, 2, False)] == taken[3:]


def test_an_epoch_outside_of_the_checksum_makes_no_other_content():
    leader = copy_of(1, batch(0, 9, 0, 5))
    appended_again = copy_of(2, batch(0, 9, 1, 5))

    assert [(BEST, 1, 0, 0, False)] == chosen([leader, appended_again], leader)


def test_what_a_cleaner_left_is_merged_with_what_was_there():
    cleaned = copy_of(1, batch(0, 9, 0, 8, count=2), batch(10, 19, 0))
    before = copy_of(1, batch(0, 9, 0, 9), batch(10, 19, 0), rank=0)

    taken = chosen([cleaned, before], cleaned)
    assert [(BEST, 1, 0, 0, False), (BEST, 1, 0, 0, True), (BEST, 1, 10, 0, False)] == taken


@pytest.mark.parametrize("in_one_directory", [True, False])
def test_what_a_cleaner_left_is_merged_in_other_content_too(in_one_directory):
    """An alternate, and what was lost, held each record of such a batch twice."""
    leader = copy_of(1, batch(0, 9, 4, 7))
    left, whole = batch(1, 9, 2, 8, count=2), batch(0, 9, 2, 9)
    groups = [[whole, left]] if in_one_directory else [[left], [whole]]
    others = [copy_of(2, *rows, rank=0) for rows in groups]
    old = Label(2, "broker 2")
    first, second = ((old, 2, base, 2, is_merged) for base, is_merged in ((0, False), (1, True)))
    if not in_one_directory:
        first, second = (old, 2, 0, 2, True), (old, 2, 1, 2, False)

    assert [(BEST, 1, 0, 4, False), first, second] == chosen([leader, *others], leader)
    lost = [(BEST, *one[1:]) for one in (first, second)]
    assert lost == chosen([leader, *others], leader, [wanted(0, 9, 2, *others)])

    # Batches that are not thinned hold other records at these offsets: both are taken whole.
    apart = [copy_of(2, whole, batch(0, 9, 2, 6), rank=0)]
    assert [False, False, False] == [one[-1] for one in chosen([leader, *apart], leader)]


def test_without_a_leader_everything_of_one_log_is_taken():
    one = copy_of(1, batch(5, 9, 0), batch(10, 19, 4), rank=0)

    assert [(BEST, 1, 5, 0, False), (BEST, 1, 10, 4, False)] == chosen([one])


def test_only_what_no_other_copy_has_is_taken_of_one():
    given = copy_of(1, batch(0, 9, 0))
    image = copy_of(9, batch(0, 9, 0), batch(10, 19, 0), rank=0)

    assert [(BEST, 9, 10, 0, False)] == chosen([given, image], given, only=1)


def wanted(first, last, epoch, *holders, committed="certain"):
    places = frozenset((copy.view.replica.input, copy.view.replica.path) for copy in holders)
    return Wanted(offsets=OffsetRange(first, last), leader_epoch=epoch, holders=places, committed=committed)


def test_lost_runs_are_taken_from_a_holder_and_never_what_the_leader_has():
    leader = copy_of(1, batch(0, 9, 0), batch(10, 14, 1))
    before = copy_of(2, batch(0, 9, 0), batch(10, 19, 0), batch(20, 29, 0), rank=0)

    assert [(BEST, 2, 10, 0, False), (BEST, 2, 20, 0, False)] == chosen(
        [leader, before], leader, [wanted(10, 29, 0, before)]
    )
    assert [] == chosen([leader, before], leader, [wanted(0, 9, 0, before)])


def test_a_lost_run_may_begin_inside_of_a_batch_of_an_earlier_bucket():
    far = 65_536
    leader = copy_of(1, batch(0, 9, 1))
    before = copy_of(2, batch(far - 5, far + 5, 0), rank=0)

    assert [(BEST, 2, far - 5, 0, False)] == chosen([leader, before], leader, [wanted(far + 1, far + 5, 0, before)])


def test_two_lost_contents_of_one_offset_are_the_surer_one_and_an_alternate():
    leader = copy_of(1, batch(0, 9, 2))
    one = copy_of(2, batch(0, 9, 0), rank=0)
    other = copy_of(3, batch(0, 9, 1), rank=0)
    runs = [wanted(0, 9, 0, one, committed="certain"), wanted(0, 9, 1, other, committed="possible")]

    assert [(BEST, 2, 0, 0, False), (Label(1, "broker 3"), 3, 0, 1, False)] == chosen(
        [leader, one, other], leader, runs
    )


def test_what_one_replica_in_use_holds_may_be_that_of_the_leader():
    leader = copy_of(1, batch(0, 9, 0), batch(10, 14, 1))

    assert [(BEST, 1, 10, 1, False)] == chosen([leader], leader, [wanted(10, 14, None, leader)])


@pytest.mark.parametrize("offset", [0, 1 << 40, (1 << 62) - 10])
def test_offsets_far_apart_cost_nothing(offset):
    leader = copy_of(1, batch(offset, offset + 9, 0, 7))

    assert 1 == len(chosen([leader], leader))
    assert MAIN == 0
    assert np.int64(offset) >= 0


def test_a_log_with_an_epoch_a_batch_does_not_make_a_file_of_each():
    leader = copy_of(1, *(batch(at, at, 1_000) for at in range(300)))
    hostile = copy_of(2, *(batch(at, at, at) for at in range(300)), rank=0)

    taken = chosen([leader, hostile], leader)
    assert 600 == len(taken)
    assert MOST_LABELS + 2 == len({one[0] for one in taken})


def test_holes_have_their_reasons():
    cleaned = copy_of(1, batch(40, 49, 0), batch(60, 69, 0), cleaned=55, log_start=30)
    judge = HoleJudge([cleaned.view], cleaned.view)

    (below,) = judge.gaps(OffsetRange(0, 29))
    (inside,) = judge.gaps(OffsetRange(50, 54))
    (above,) = judge.gaps(OffsetRange(70, 79))
    assert [GapReason.RETENTION, GapReason.COMPACTED, GapReason.NEVER_SEEN] == [
        below.reason,
        inside.reason,
        above.reason,
    ]
    assert [False, False, True] == [below.is_loss, inside.is_loss, above.is_loss]


def test_what_an_earlier_copy_of_the_leader_holds_is_not_the_leaders_and_what_the_leader_holds_is_never_the_best_copy():
    leader = copy_of(1, batch(0, 9, 0), batch(10, 29, 6))
    before = copy_of(1, batch(0, 9, 0), batch(10, 14, 4), rank=0)
    before = replace(before, view=load_log(replace(before.view.replica, input=9)))
    other = copy_of(2, batch(0, 9, 0), batch(10, 19, 5))
    places = {
        at: frozenset({(one.view.replica.input, one.view.replica.path)})
        for at, one in enumerate((leader, before, other))
    }

    def wanted(at, first, last, epoch, **more):
        return Wanted(
            offsets=OffsetRange(first, last), leader_epoch=epoch, holders=places[at], committed="possible", **more
        )

    lost = [wanted(1, 10, 14, 4), wanted(2, 10, 19, 5)]
    taken = chosen([leader, before, other], leader, lost)
    assert {(2, 10), (1, 10)} == {(broker, base) for _, broker, base, _, _ in taken}
    assert not any(label.is_of_leader for label, *_ in taken)

    # Beside what is lost at other offsets alone: what the leader holds is no lost record.
    beside = wanted(0, 10, 29, None, is_of_leader=True)
    taken = chosen([leader, before, other], leader, [wanted(2, 10, 19, 5), beside])
    assert [(BEST, 2)] == [(label, broker) for label, broker, *_ in taken if not label.is_of_leader]
    assert [1] == [broker for label, broker, *_ in taken if label.is_of_leader]
