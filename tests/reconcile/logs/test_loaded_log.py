"""A replica as its broker loads it: the reconciler and the rule of recovery are one."""

from dataclasses import replace

from kforensics.damage import Absent, Damage, DamageKind, Gravity, Span
from kforensics.evidence.model import CheckpointValue
from kforensics.reconcile.logs.loaded_log import are_loaded_alike, load_log, load_logs, load_replica
from kforensics.units import EpochEntry, TopicPartition
from tests.builders.logs import HERE, batch, replica


def entries(*pairs):
    return tuple(EpochEntry(*pair) for pair in pairs)


def damaged(one, at, position):
    """The replica with a batch that fails in one of its segments."""
    bad = Damage(span=Span(position, 100), kind=DamageKind.CRC, expected="a", found="b", gravity=Gravity.DAMAGE)
    segment = one.segments[at]
    rows = segment.batches[segment.batches["position"] < position]
    end = int(rows["last_offset"][-1]) + 1 if len(rows) else Absent.NOT_APPLICABLE
    segments = list(one.segments)
    segments[at] = replace(segment, damage=(bad,), recovered_end_offset=end)
    return replace(one, segments=tuple(segments))


TWO = ([batch(0, 5, 0)], [batch(6, 9, 1), batch(10, 11, 1)])
"""Leader epoch 0 from offset 0, 1 from 6; a segment each."""


def test_only_scanned_segments_give_epochs():
    # As Kafka 4.1.0 loads such a directory: nothing is scanned, then the last segment, then all.
    for clean, point, epochs in ((True, 12, ()), (False, 12, ((1, 6),)), (False, 0, ((0, 0), (1, 6)))):
        view = load_log(replica(1, *TWO, checkpoint=(), clean=clean, recovery_point=point))

        assert entries(*epochs) == view.epochs
        assert "checkpoint" == view.epochs_from


def test_without_the_file_the_batches_stand_in_and_the_broker_knows_only_what_it_scans():
    missing = replace(replica(1, *TWO, clean=False, recovery_point=12), checkpoint_epochs=Absent.NOT_WRITTEN)
    view = load_log(missing)

    assert ("batches", entries((0, 0), (1, 6))) == (view.epochs_from, view.epochs)
    assert entries((1, 6)) == view.scanned_epochs
    assert () == load_log(replace(missing, clean_shutdown=True)).scanned_epochs


def test_epochs_past_the_log_end_hide_older_ones_that_recovery_meets():
    # The cache still holds epoch 5 while the log is scanned, so epoch 1 is no news; then the cache is trimmed to the log.
    view = load_log(replica(1, *TWO, checkpoint=((0, 0), (5, 40)), clean=False, recovery_point=0))

    assert entries((0, 0)) == view.epochs


def test_the_log_starts_at_its_first_segment_where_the_checkpoint_is_older():
    stale = replica(1, [batch(60, 79, 2)], checkpoint=((2, 60),), log_start=50)

    assert (60, 60) == (load_log(stale).log_start_offset, load_log(stale).content_start_offset)


def test_the_log_starts_at_the_checkpoint_where_older_segments_are_in_remote_storage():
    remote = replica(1, [batch(60, 79, 2)], checkpoint=((1, 10), (2, 60)), log_start=10)
    view = load_log(remote)

    assert (10, 60) == (view.log_start_offset, view.content_start_offset)
    assert entries((1, 10), (2, 60)) == view.epochs
    no_claim = replace(remote, checkpoint_epochs=Absent.NOT_WRITTEN)
    assert 60 == load_log(no_claim).log_start_offset


def test_the_metadata_log_is_recovered_at_every_start():
    kept = damaged(replica(1, *TWO, clean=True, recovery_point=12), 0, 0)
    metadata = replace(
        damaged(replica(1, *TWO, clean=True, recovery_point=12), 0, 0),
        topic_partition=TopicPartition("__cluster_metadata", 0),
    )

    assert (12, None) == (load_log(kept).log_end_offset, load_log(kept).truncated_by_recovery)
    assert 0 == load_log(metadata).log_end_offset
    where = load_log(metadata).truncated_by_recovery
    assert where is not None
    assert Span(0, 100) == where.span


def test_sound_records_that_recovery_discards_are_counted():
    torn = load_log(damaged(replica(1, *TWO, clean=False, recovery_point=0), 0, 0))

    assert 12 == torn.sound_records_dropped
    assert 0 == load_log(replica(1, *TWO, clean=False, recovery_point=0)).sound_records_dropped


def test_a_log_that_ends_below_its_start_begins_again_there():
    torn = damaged(replica(1, *TWO, clean=False, recovery_point=0, log_start=8), 0, 0)
    view = load_log(torn)

    assert ((), 8, 8) == (view.segments, view.log_start_offset, view.log_end_offset)
    assert view.truncated_by_recovery is not None
    assert 0 == load_replica(torn).kept_count


def test_a_log_with_no_segment_begins_at_its_checkpoint():
    empty = replace(replica(1, [batch(0, 5, 0)], clean=False), segments=())
    start = CheckpointValue(value=7, citation=HERE)

    assert 0 == load_log(empty).log_end_offset
    assert (7, 7) == (
        load_log(replace(empty, log_start=start)).log_start_offset,
        load_log(replace(empty, log_start=start)).log_end_offset,
    )


def test_cleaned_batches_that_a_new_replica_fetched_into_its_active_segment_are_compacted_ones():
    log = load_log(replica(1, [batch(5, 18, 0, count=1), batch(43, 47, 1, count=2), batch(48, 52, 1)], base=0))

    assert log.cleaned_below == 48


def test_an_active_segment_of_an_older_capture_shows_no_cleaner():
    held = replica(1, [batch(5, 18, 0, count=1), batch(43, 47, 1)], base=0)
    (active,) = held.segments

    assert load_log(replace(held, segments=(replace(active, thinned_below=Absent.UNKNOWN),))).cleaned_below == 0


def test_who_asks_next_gets_the_logs_that_were_loaded_and_no_others():
    replicas = [replica(1, *TWO, clean=True), replica(2, *TWO, clean=True)]
    first, again = load_logs(replicas), load_logs(replicas)

    assert [id(one) for one in first] == [id(one) for one in again]
    assert are_loaded_alike(first)
    shorter = load_logs([replicas[0], replace(replicas[1], segments=replicas[1].segments[:1])])
    assert (shorter[0], shorter[1].log_end_offset) == (first[0], 6)
    assert not are_loaded_alike(shorter)
