"""Traces of known bugs: versions decide whether they are named, and which recorded high watermarks are doubted."""

import pytest

from kforensics.damage import Absent
from kforensics.protocol.epochs import CURRENT_RULES, RULES_BEFORE_2_0_1, RULES_BEFORE_2_6_1
from kforensics.protocol.known_bugs import KNOWN_BUGS
from kforensics.protocol.truncation import ProtocolName
from kforensics.protocol.versions import parse_version
from kforensics.reconcile.bugs.evidence import RULES, rule
from kforensics.reconcile.bugs.traces import _WORDS_OF_BROKERS, doubted_high_watermarks
from kforensics.reconcile.observed.broker_lives import BrokerLife
from kforensics.reconcile.observed.broker_log_facts import BrokerLogFacts
from kforensics.reconcile.observed.facts import BrokerVersions, ClusterFacts
from tests.builders.history import logged_truncation
from tests.conftest import ROOT


def truncation(to_offset, high_watermark):
    return logged_truncation(100, to_offset, leader=2, leader_epoch=3, high_watermark=high_watermark)


@pytest.mark.parametrize(
    ("version", "line", "ordinary", "doubted"),
    [
        ("3.4.0", truncation(60, 70), (), {1: 60}),
        ("2.7.1", truncation(60, 70), (), {1: 60}),
        ("3.5.0", truncation(60, 70), (), {}),
        ("3.4.0", truncation(60, 60), (), {}),
        ("3.4.0", truncation(60, Absent.UNKNOWN), (), {}),
        ("3.4.0", truncation(60, 70), (60,), {}),
    ],
)
def test_a_high_watermark_raised_over_truncated_records_is_doubted(version, line, ordinary, doubted):
    versions = BrokerVersions(by_broker={1: parse_version(version)})

    assert doubted == doubted_high_watermarks([line], versions, frozenset(ordinary))


def test_a_version_that_only_the_metadata_bounds_is_no_more_than_possible():
    versions = BrokerVersions(by_broker={1: parse_version("1.1.0")}, at_least=parse_version("3.0"))

    assert "likely" == versions.confidence(1, "KAFKA-6361")
    assert "possible" == versions.confidence(2, "KAFKA-14704")
    assert versions.confidence(2, "KAFKA-6361") is None
    assert BrokerVersions().confidence(1, "KAFKA-14704") is None


def test_a_broker_of_known_version_has_the_epoch_cache_of_its_version():
    versions = BrokerVersions(by_broker={1: parse_version("2.4.0")})

    assert RULES_BEFORE_2_6_1 is versions.epoch_rules(1, ProtocolName.KIP_279)
    assert CURRENT_RULES is versions.epoch_rules(2, ProtocolName.KIP_279)
    assert RULES_BEFORE_2_0_1 is versions.epoch_rules(Absent.UNKNOWN, ProtocolName.KIP_101)


def test_a_broker_is_unbroken_only_where_its_lines_reach_back_far_enough():
    facts = BrokerLogFacts(metadata=ClusterFacts(), lives={1: BrokerLife(first_ms=10, unclean_starts=(20,))})

    assert facts.is_unbroken(1, 21, 30)
    assert not facts.is_unbroken(1, 15, 30)
    assert not facts.is_unbroken(1, 5, 8)
    assert not facts.is_unbroken(2, 21, 30)


def test_every_known_bug_has_a_rule_or_a_reason():
    reasons = (ROOT / "docs" / "known-bugs.md").read_text(encoding="utf-8").partition("## Not recognized")[2]

    named = {jira for jira, _ in _WORDS_OF_BROKERS.values()}.union(*RULES.values())

    assert {bug.jira for bug in KNOWN_BUGS if bug.jira not in named and bug.jira not in reasons} == set()


def test_no_rule_is_registered_for_a_bug_that_is_not_known():
    with pytest.raises(KeyError):
        rule("KAFKA-0")
