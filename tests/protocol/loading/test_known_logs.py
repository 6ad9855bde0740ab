"""A log that was read before, once it is started again: what is truncated and deleted, and what becomes of its epochs."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kforensics.damage import Absent
from kforensics.protocol.epochs import epochs_after_scan
from kforensics.protocol.loading import load
from kforensics.protocol.loading.disk import LoadSettings, first_scanned
from kforensics.protocol.loading.load import KnownSegment, load_known_log
from kforensics.protocol.loading.versions import distinct_rules, loading_rules
from kforensics.units import EpochEntry

NOT_TRUNCATED = Absent.NOT_APPLICABLE


def sound(base_offset, end_offset, *epochs):
    entries = tuple(EpochEntry(*entry) for entry in epochs)
    return KnownSegment(base_offset=base_offset, end_offset=end_offset, recovered_end_offset=end_offset, epochs=entries)


def torn(base_offset, end_offset, recovered_end_offset, *epochs):
    return sound(base_offset, end_offset, *epochs)._replace(recovered_end_offset=recovered_end_offset, is_torn=True)


def started(segments, *, clean_shutdown=False, **known):
    return load_known_log(segments, clean_shutdown=clean_shutdown, **known)


def test_a_bad_batch_above_the_recovery_point_truncates_the_segment_and_deletes_later_ones():
    segments = [sound(0, 1000), torn(1000, 2000, 1200), sound(2000, 2500)]
    outcome = started(segments, recovery_point=1500)
    assert (outcome.truncated, outcome.kept_count) == (1000, 2)
    assert (outcome.state.log_end_offset, outcome.state.recovery_point) == (1200, 1200)


def test_a_bad_batch_below_the_recovery_point_is_not_seen():
    segments = [torn(0, 1000, 500), sound(1000, 2000), sound(2000, 2500)]
    outcome = started(segments, recovery_point=1500)
    assert (outcome.truncated, outcome.kept_count) == (NOT_TRUNCATED, 3)
    assert (outcome.state.log_end_offset, outcome.state.recovery_point) == (2500, 1500)


def test_a_clean_shutdown_truncates_nothing():
    outcome = started([sound(0, 1000), torn(1000, 2000, 1200)], clean_shutdown=True)
    assert (outcome.truncated, outcome.kept_count) == (NOT_TRUNCATED, 2)
    assert (outcome.state.log_end_offset, outcome.state.recovery_point) == (2000, 2000)


def test_bytes_that_are_no_batch_truncate_nothing_but_themselves():
    outcome = started([torn(0, 1000, 1000), sound(1000, 1200)])
    assert (outcome.truncated, outcome.kept_count, outcome.state.log_end_offset) == (0, 1, 1000)


def test_a_log_that_ends_below_its_start_is_wiped():
    outcome = started([torn(100, 200, 120)], log_start_offset=150, checkpoint_epochs=(EpochEntry(3, 100),))
    assert (outcome.truncated, outcome.kept_count) == (100, 0)
    assert (outcome.state.log_start_offset, outcome.state.log_end_offset) == (150, 150)
    assert outcome.state.epochs == ()  # cleared, as measured on the loader of 4.1.0


def test_no_segments():
    assert started([]).state.log_end_offset == 0
    assert started([], log_start_offset=7).state.log_end_offset == 7


def test_stale_epochs_go_and_scanned_ones_come():
    outcome = started(
        [torn(0, 30, 20, (0, 0), (2, 10), (4, 25))], checkpoint_epochs=(EpochEntry(0, 0),), log_start_offset=5
    )
    assert outcome.state.epochs == (EpochEntry(0, 5), EpochEntry(2, 10))
    stale = started([sound(0, 20)], clean_shutdown=True, checkpoint_epochs=(EpochEntry(0, 0), EpochEntry(4, 25)))
    assert stale.state.epochs == (EpochEntry(0, 0),)


def test_kafka_10432_does_not_restore_epoch_zero():
    found = (EpochEntry(0, 0), EpochEntry(1, 5))
    assert epochs_after_scan((), found) == found
    assert epochs_after_scan((), found, skips_epoch_zero=True) == (EpochEntry(1, 5),)


def test_the_segment_with_the_recovery_point_is_scanned():
    bases = [0, 1000, 2000]
    assert [first_scanned(bases, point) for point in (0, 999, 1000, 1500, 5000)] == [0, 0, 1, 1, 2]
    assert first_scanned([100], 0) == 0


def test_the_log_starts_below_its_first_segment_only_with_remote_storage():
    epochs = (EpochEntry(1, 10), EpochEntry(2, 60))
    for segment in (sound(60, 80), torn(60, 80, 70)):
        known = {"clean_shutdown": True, "log_start_offset": 10, "checkpoint_epochs": epochs}
        local, remote = (started([segment], has_remote_storage=one, **known).state for one in (False, True))
        assert (local.log_start_offset, local.epochs) == (60, epochs)  # trimmed to the checkpoint, not to the segment
        assert (remote.log_start_offset, remote.epochs) == (10, epochs)


def test_what_is_kept_is_counted():
    segments = [sound(0, 10), torn(10, 20, 15), sound(20, 30)]
    assert started(segments).kept_count == 2
    assert started(segments, recovery_point=20).kept_count == 3
    assert started(segments, clean_shutdown=True).kept_count == 3
    assert started(segments, log_start_offset=18).kept_count == 0


def test_a_log_whose_load_throws_stays_as_it_lies():
    epochs = (EpochEntry(-3, 0),)  # IllegalArgumentException
    outcome = started([torn(0, 30, 20)], checkpoint_epochs=epochs)
    assert (outcome.truncated, outcome.kept_count) == (NOT_TRUNCATED, 1)
    assert (outcome.state.log_end_offset, outcome.state.epochs) == (30, epochs)


@given(
    st.lists(st.integers(0, 40), min_size=2, max_size=5, unique=True),
    st.booleans(),
    st.integers(0, 45),
    st.integers(0, 45),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 45)), max_size=3, unique_by=lambda one: one[0]),
    st.sampled_from([one for one in distinct_rules() if one >= (2, 8)]),
)
def test_a_sound_log_loads_in_one_step_as_by_all(bounds, clean, point, start, epochs, version):
    segments = [sound(base, end, (at, base)) for at, (base, end) in enumerate(pairwise(sorted(bounds)))]
    rules = loading_rules(version)
    checkpoint = epochs_after_scan((), tuple(EpochEntry(*one) for one in sorted(epochs)), rules=rules.epochs)
    asked = (segments, clean, point, start, checkpoint, LoadSettings(), rules)

    at_once = load._load_sound(*asked)
    by_steps = load._load_by_steps(*asked)

    if at_once is not None:
        assert (at_once.kept_count, at_once.truncated) == (by_steps.kept_count, by_steps.truncated)
        assert at_once.state.epochs == by_steps.state.epochs
        assert at_once.state.log_start_offset == by_steps.state.log_start_offset
        assert at_once.state.log_end_offset == by_steps.state.log_end_offset
        assert at_once.state.recovery_point == by_steps.state.recovery_point
