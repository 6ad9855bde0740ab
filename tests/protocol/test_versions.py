"""Which version speaks which protocol, has which bug, and what counts as committed."""

import pytest

from kforensics.damage import Absent
from kforensics.protocol.election import (
    Acks,
    accepts_write,
    follower_high_watermark,
    is_acknowledged,
    is_in_sync_by_messages,
    is_in_sync_by_time,
    last_stable_offset,
    leader_high_watermark,
    may_join_isr,
)
from kforensics.protocol.epochs import CURRENT_RULES, RULES_BEFORE_1_0_2, RULES_BEFORE_2_0_1, RULES_BEFORE_2_6_1
from kforensics.protocol.known_bugs import KNOWN_BUGS, is_affected
from kforensics.protocol.truncation import ProtocolName
from kforensics.protocol.versions import (
    METADATA_VERSION_LEVELS,
    PROTOCOL_RULES,
    advances_only_at_min_isr,
    epoch_rules_of,
    least_version_of_level,
    parse_inter_broker_version,
    parse_version,
    protocol_of,
)


@pytest.mark.parametrize(
    ("version", "level", "protocol"),
    [
        ("0.8.2.2", None, "hw"),
        ("0.10.2.2", None, "hw"),
        ("0.11.0.0", "0.11.0-IV1", "hw"),
        ("0.11.0.0", None, "kip-101"),
        ("1.1.1", "0.10.2", "hw"),
        ("1.1.1", "0.11.0", "kip-101"),
        ("2.0.0", None, "kip-279"),
        ("2.0.0", "1.1-IV0", "kip-101"),
        ("2.7.0", None, "kip-279"),
        ("2.8.0", "2.7-IV0", "kip-279"),
        ("2.8.0", "2.7-IV1", "kip-595"),
        ("2.8.1", None, "kip-595"),
        ("3.9.0", "2.7", "kip-595"),
        ("4.1.0", "0.8.2", "kip-595"),
    ],
)
def test_protocol_of(version, level, protocol):
    spoken = Absent.NOT_WRITTEN if level is None else parse_inter_broker_version(level)
    assert protocol_of(parse_version(version), spoken) is ProtocolName(protocol)


def test_versions_are_read_and_written():
    assert str(parse_version("0.10.2.2")) == "0.10.2.2"
    assert str(parse_version("3.9.0-SNAPSHOT")) == "3.9.0"
    for text in ("", "kafka", "99999.1"):
        with pytest.raises(ValueError, match="not a Kafka version"):
            parse_version(text)
    with pytest.raises(ValueError, match="not an inter-broker"):
        parse_inter_broker_version("IV2")


def test_epoch_rules():
    of = {text: epoch_rules_of(parse_version(text)) for text in ("1.0.1", "1.0.2", "1.1.0", "1.1.1", "2.0.1", "2.6.1")}
    assert of["1.0.1"] is of["1.1.0"] is RULES_BEFORE_1_0_2
    assert of["1.0.2"] is of["1.1.1"] is RULES_BEFORE_2_0_1
    assert of["2.0.1"] is RULES_BEFORE_2_6_1
    assert of["2.6.1"] is CURRENT_RULES
    assert PROTOCOL_RULES[ProtocolName.KIP_101].epoch_rules is RULES_BEFORE_2_0_1
    assert PROTOCOL_RULES[ProtocolName.KIP_595].epoch_rules is CURRENT_RULES


def test_known_bugs_end_with_the_version_that_fixes_them():
    assert is_affected(parse_version("2.8.0"), "KAFKA-13141")
    assert not is_affected(parse_version("2.8.1"), "KAFKA-13141")
    assert not is_affected(parse_version("2.7.2"), "KAFKA-13141")
    assert is_affected(parse_version("4.0.0"), "KAFKA-18723")
    assert not is_affected(parse_version("3.9.1"), "KAFKA-18723")
    assert [bug.jira for bug in KNOWN_BUGS if is_affected(parse_version("4.1.0"), bug.jira)] == ["RECOVERY-IO-ERROR"]
    assert not is_affected(parse_version("3.9.1"), "RECOVERY-IO-ERROR")
    assert is_affected(parse_version("4.3.1"), "RECOVERY-IO-ERROR")
    assert is_affected(parse_version("7.0.0"), "RECOVERY-IO-ERROR"), "no fix is known"
    assert is_affected(parse_version("0.10.2.2"), "KAFKA-1211")
    assert is_affected(parse_version("0.10.2.2"), "KAFKA-3968")


def test_metadata_version_levels():
    named = {METADATA_VERSION_LEVELS[level] for level in (1, 3, 7, 14, 19, 21, 25, 27, 29, 30)}
    assert named == {
        "3.0-IV1",
        "3.2-IV0",
        "3.3-IV3",
        "3.6-IV2",
        "3.7-IV4",
        "3.9-IV0",
        "4.0-IV3",
        "4.1-IV1",
        "4.2-IV1",
        "4.3-IV0",
    }


def test_no_broker_is_older_than_its_metadata_version():
    assert [str(least_version_of_level(level)) for level in (1, 7, 27, 28, 30, 31, 33, 34, 4_000)] == [
        "3.0.0",
        "3.3.0",
        "4.1.0",
        "4.2.0",
        "4.3.0",
        "4.4.0",
        "4.4.0",
        "4.4.0",
        "4.4.0",
    ]
    assert least_version_of_level(0) is None


def test_the_high_watermark_waits_for_min_isr_since_3_7():
    assert advances_only_at_min_isr(parse_version("3.7.0"))
    assert not advances_only_at_min_isr(parse_version("3.6.2"))


def test_high_watermark():
    assert leader_high_watermark(1, [5, 3, 4], isr_size=3) == 3
    assert leader_high_watermark(4, [5, 3], isr_size=2) == 4
    assert leader_high_watermark(1, [5], isr_size=1, min_insync_replicas=2) == 1
    assert leader_high_watermark(1, [5], isr_size=1, min_insync_replicas=2, strict_min_isr=False) == 5
    assert leader_high_watermark(1, [], isr_size=0) == 1
    assert follower_high_watermark(3, 5) == 3
    assert follower_high_watermark(6, 5) == 5


def test_isr_rules():
    assert may_join_isr(5, 5, 3, needs_epoch_start=True)
    assert not may_join_isr(4, 5, 3, needs_epoch_start=True)
    assert not may_join_isr(5, 5, 6, needs_epoch_start=True)
    assert may_join_isr(5, 5, 6, needs_epoch_start=False)
    assert is_in_sync_by_time(lag_ms=30_000, lag_time_max_ms=30_000)
    assert not is_in_sync_by_time(lag_ms=30_001, lag_time_max_ms=30_000)
    assert is_in_sync_by_messages(lag_messages=4_000, lag_max_messages=4_000)
    assert not is_in_sync_by_messages(lag_messages=5_000, lag_max_messages=4_000)


def test_acknowledgement_and_visibility():
    assert accepts_write(Acks.ALL, isr_size=2, min_insync_replicas=2)
    assert not accepts_write(Acks.ALL, isr_size=1, min_insync_replicas=2)
    assert accepts_write(Acks.LEADER, isr_size=1, min_insync_replicas=2)
    told = {acks: is_acknowledged(acks, 4, leader_log_end_offset=5, high_watermark=4) for acks in Acks}
    assert told == {Acks.NONE: False, Acks.LEADER: True, Acks.ALL: False}
    assert is_acknowledged(Acks.ALL, 3, leader_log_end_offset=5, high_watermark=4)
    assert last_stable_offset(9, Absent.NOT_APPLICABLE) == 9
    assert last_stable_offset(9, 4) == 4
    assert last_stable_offset(9, 12) == 9
