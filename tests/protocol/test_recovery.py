"""Start-up after an unclean stop: what is scanned, truncated and deleted, and what becomes of the epochs and the high watermark."""

from typing import Any

from kforensics.damage import Absent
from kforensics.protocol.recovery import RecoveryRule, SegmentState, epochs_after_scan, first_scanned, recover_log
from kforensics.units import EpochEntry

MISSING = Absent.NOT_WRITTEN


def sound(base_offset, end_offset, *epochs):
    entries = tuple(EpochEntry(*entry) for entry in epochs)
    return SegmentState(base_offset=base_offset, end_offset=end_offset, recovered_end_offset=end_offset, epochs=entries)


def torn(base_offset, end_offset, recovered_end_offset, *epochs):
    entries = tuple(EpochEntry(*entry) for entry in epochs)
    return SegmentState(
        base_offset=base_offset,
        end_offset=end_offset,
        recovered_end_offset=recovered_end_offset,
        is_torn=True,
        epochs=entries,
    )


def load(segments, **overrides):
    arguments: dict[str, Any] = {
        "clean_shutdown": False,
        "recovery_point": MISSING,
        "log_start_offset": MISSING,
        "high_watermark": MISSING,
        "checkpoint_epochs": (),
    }
    return recover_log(segments, **(arguments | overrides))


def test_a_bad_batch_above_the_recovery_point_truncates_the_segment_and_deletes_later_ones():
    segments = [sound(0, 1000), torn(1000, 2000, 1200), sound(2000, 2500)]
    outcome = load(segments, recovery_point=1500, high_watermark=2400)
    assert outcome.rule is RecoveryRule.TRUNCATED
    assert outcome.scanned == (1000,)
    assert outcome.truncate_segment == 1000
    assert outcome.deleted == (2000,)
    assert outcome.log.log_end_offset == 1200
    assert outcome.log.high_watermark == 1200
    assert outcome.recovery_point == 1200


def test_a_bad_batch_below_the_recovery_point_is_not_seen():
    segments = [torn(0, 1000, 500), sound(1000, 2000), sound(2000, 2500)]
    outcome = load(segments, recovery_point=1500)
    assert outcome.rule is RecoveryRule.SOUND
    assert outcome.scanned == (1000, 2000)
    assert outcome.deleted == ()
    assert outcome.log.log_end_offset == 2500
    assert outcome.recovery_point == 1500


def test_a_clean_shutdown_scans_nothing():
    outcome = load([sound(0, 1000), torn(1000, 2000, 1200)], clean_shutdown=True, recovery_point=0, high_watermark=9)
    assert outcome.rule is RecoveryRule.CLEAN
    assert outcome.scanned == ()
    assert outcome.log.log_end_offset == 2000
    assert outcome.recovery_point == 2000


def test_a_log_that_ends_below_its_start_is_wiped():
    outcome = load([torn(100, 200, 120)], log_start_offset=150, checkpoint_epochs=(EpochEntry(3, 100),))
    assert outcome.rule is RecoveryRule.BELOW_LOG_START
    assert outcome.deleted == (100,)
    assert (outcome.log.log_start_offset, outcome.log.log_end_offset) == (150, 150)
    assert outcome.log.epochs == ()  # cleared, as measured on the loader of 4.1.0


def test_no_segments():
    outcome = load([])
    assert outcome.rule is RecoveryRule.EMPTY
    assert outcome.log.log_end_offset == 0
    assert load([], log_start_offset=7).log.log_end_offset == 7


def test_stale_epochs_go_and_scanned_ones_come():
    outcome = load(
        [torn(0, 30, 20, (0, 0), (2, 10), (4, 25))], checkpoint_epochs=(EpochEntry(0, 0),), log_start_offset=5
    )
    assert outcome.log.epochs == (EpochEntry(0, 5), EpochEntry(2, 10))
    stale = load([sound(0, 20)], clean_shutdown=True, checkpoint_epochs=(EpochEntry(0, 0), EpochEntry(4, 25)))
    assert stale.log.epochs == (EpochEntry(0, 0),)


def test_kafka_10432_does_not_restore_epoch_zero():
    found = (EpochEntry(0, 0), EpochEntry(1, 5))
    assert epochs_after_scan((), found) == found
    assert epochs_after_scan((), found, skips_epoch_zero=True) == (EpochEntry(1, 5),)


def test_high_watermark_is_clamped_into_the_log():
    assert load([sound(50, 90)], clean_shutdown=True).log.high_watermark == 50
    assert load([sound(50, 90)], clean_shutdown=True, high_watermark=70).log.high_watermark == 70


def test_the_segment_with_the_recovery_point_is_scanned():
    bases = [0, 1000, 2000]
    assert [first_scanned(bases, point) for point in (0, 999, 1000, 1500, 5000)] == [0, 0, 1, 1, 2]
    assert first_scanned([100], 0) == 0


def test_the_log_starts_below_its_first_segment_only_with_remote_storage():
    epochs = (EpochEntry(1, 10), EpochEntry(2, 60))
    local = load([sound(60, 80)], clean_shutdown=True, log_start_offset=10, checkpoint_epochs=epochs)
    remote = load(
        [sound(60, 80)], clean_shutdown=True, log_start_offset=10, checkpoint_epochs=epochs, has_remote_storage=True
    )
    assert (local.log.log_start_offset, local.log.epochs) == (
        60,
        epochs,
    )  # trimmed to the checkpoint, not to the segment
    assert (remote.log.log_start_offset, remote.log.epochs) == (10, epochs)


def test_what_is_kept_is_counted():
    segments = [sound(0, 10), torn(10, 20, 15), sound(20, 30)]
    assert load(segments, recovery_point=0).kept_count == 2
    assert load(segments, recovery_point=20).kept_count == 3
    assert load(segments, clean_shutdown=True).kept_count == 3
    assert load(segments, recovery_point=0, log_start_offset=18).kept_count == 0
