"""How many partitions a coordinator's topic has, and when no input shows it."""

import pytest

from kforensics.damage import Absent
from kforensics.protocol.coordinators import coordinator_partition
from kforensics.reconcile.coordinator_topics import coordinator_topic

NAMES = [f"group-{number}" for number in range(200)]


def topic(count, present, *, names=NAMES, settings=()):
    held = [(name, at) for name in names if (at := coordinator_partition(name, count)) in present]
    return coordinator_topic("__consumer_offsets", present, history=None, settings=settings, names=held)


@pytest.mark.parametrize("count", [1, 5, 50])
def test_names_show_the_count_where_all_partitions_are_here(count):
    assert topic(count, range(count)).count == count


@pytest.mark.parametrize("here", [1, 2, 5, 10, 25])
def test_first_partitions_of_more_are_not_taken_for_all_though_their_names_fit(here):
    found = topic(50, range(here))

    assert (found.count, found.is_complete) == (Absent.UNKNOWN, False)
    assert all(found.may_lack(name) for name in NAMES)


def test_a_single_name_shows_no_count():
    assert topic(1, [0], names=["billing"]).count is Absent.UNKNOWN


def test_a_setting_that_the_names_contradict_was_not_in_force_when_the_topic_was_created():
    assert topic(50, range(3), settings=[50]).count == 50
    assert topic(50, range(3), settings=[3]).count is Absent.UNKNOWN


def test_nothing_shows_no_count():
    assert topic(50, []).count is Absent.UNKNOWN
