"""Versions that remember what was asked of them: which others start alike."""

import pytest

from kforensics.protocol.loading.versions import AskedVersion, distinct_rules, loading_rules
from kforensics.protocol.versions import KafkaVersion


def test_versions_agree_in_what_was_asked_and_in_nothing_else():
    asked = AskedVersion(3, 9)
    assert all(asked.agrees(one) for one in distinct_rules() if loading_rules(one).has_time_indexes)

    assert loading_rules(asked).renames_swaps
    assert [asked.agrees(KafkaVersion(*one)) for one in ((3, 0), (2, 8), (4, 4))] == [True, False, True]
    assert (3, 6) <= asked < (4, 0)
    assert [asked.agrees(KafkaVersion(*one)) for one in ((3, 5), (3, 6), (4, 0))] == [False, True, False]
    assert (3, 7) < asked <= (3, 9, 1)
    assert [asked.agrees(KafkaVersion(*one)) for one in ((3, 6), (3, 8), (3, 9, 2))] == [False, True, False]


@pytest.mark.parametrize(("version", "has_none"), [((1, 0), True), ((1, 1), False), ((2, 2), False), ((2, 3), True)])
def test_a_version_between_two_may_have_a_rule_of_its_own(version, has_none):
    """Segments without an index are scanned up to 1.0 and from 2.3 on."""
    newest, lowest = AskedVersion(3, 9), AskedVersion(0, 11)
    assert newest.rules.scans_without_index
    assert lowest.rules.scans_without_index

    assert newest.has_no_own(KafkaVersion(*version), lowest) == has_none


def test_what_only_the_lowest_was_asked_counts_too():
    newest, lowest = AskedVersion(3, 9), AskedVersion(0, 11)
    assert newest.has_no_own(KafkaVersion(2, 8), lowest)
    assert not lowest.rules.lists_snapshots_first
    assert not newest.has_no_own(KafkaVersion(2, 8), lowest)
