"""What retention deleted is one entry for each rule, and never of no consequence; settings by which records go, as lines of brokers with ZooKeeper have them."""

import pytest

from kforensics.reconcile.timeline.logged_operations import logged_operations, retention_entries
from tests.builders.history import logged_events

PREFIX = "[UnifiedLog partition=t-0, dir=/d] "
OF_TIME = "due to log retention time 604800000ms breach based on the largest record timestamp in the segment"


def segment(base: int, largest: int) -> str:
    return f"LogSegment(baseOffset={base}, size=9, lastModifiedTime=1745600000000, largestRecordTimestamp={largest})"


def test_deletions_by_one_rule_are_one_entry_with_the_log_start():
    events = logged_events(
        f"{PREFIX}Deleting segment {segment(0, 1745600000000)} {OF_TIME}",
        f"{PREFIX}Incremented log start offset to 40 due to segment deletion",
        f"{PREFIX}Deleting segment {segment(40, 1745600000000)} {OF_TIME}",
        f"{PREFIX}Incremented log start offset to 90 due to segment deletion",
    )
    (entry,) = retention_entries(events)

    assert (entry.kind, entry.is_quiet, len(entry.citations)) == ("retention", False, 2)
    assert entry.detail["segments"] == "2 segments"
    assert entry.detail["rule"] == "retention by time (604,800,000 ms)"
    assert entry.detail["log_start_offset"] == 90
    assert "remark" not in entry.detail


def test_a_timestamp_far_from_the_last_write_is_told():
    (entry,) = retention_entries(logged_events(f"{PREFIX}Deleting segment {segment(0, 1527000000000)} {OF_TIME}"))

    assert (entry.detail["largest_timestamp_ms"], entry.detail["last_modified_ms"]) == (1527000000000, 1745600000000)
    assert "2018-05-22" in str(entry.detail["remark"])
    assert "2025-04-25" in str(entry.detail["remark"])


def test_a_segment_that_is_stamped_far_is_told_whatever_is_deleted_after_it():
    (entry,) = retention_entries(
        logged_events(
            f"{PREFIX}Deleting segment {segment(0, 1527000000000)} {OF_TIME}",
            f"{PREFIX}Deleting segment {segment(40, 1745600000000)} {OF_TIME}",
        )
    )

    assert entry.detail["segments"] == "2 segments"
    assert "2018-05-22" in str(entry.detail["remark"])


def test_a_follower_that_follows_its_leaders_log_start_is_quiet():
    line = f"{PREFIX}Deleting segments due to log start offset 5000 breach: {segment(0, 1)}"
    by_size = "[Log partition=t-1, dir=/d] Found deletable segments with base offsets [0,8] due to retention size 1024 bytes breach"
    quiet, size = retention_entries(logged_events(line, by_size))

    assert quiet.is_quiet
    assert (size.detail["segments"], size.detail["rule"]) == ("2 segments", "retention by size (1,024 bytes)")


OVERRIDE = "Processing override for entityPath: topics/t with config: HashMap({}) (kafka.server.DynamicConfigManager)"
MADE = "Created log for partition t-0 in /d/t-0 with properties {{{}}} (kafka.log.LogManager)"
COMPACT, DELETE = "cleanup.policy -> compact", "segment.ms -> 9, cleanup.policy -> delete"


@pytest.mark.parametrize(
    ("lines", "changes"),
    [
        ((MADE.format("segment.bytes=9"), OVERRIDE.format(f"{COMPACT}, segment.bytes -> 9")), [("cleanup.policy", "compact")]),
        ((MADE.format("cleanup.policy=compact"), OVERRIDE.format(f"segment.ms -> 8, {COMPACT}")), []),
        ((OVERRIDE.format(COMPACT),), []),
        ((OVERRIDE.format(DELETE), OVERRIDE.format(COMPACT), OVERRIDE.format(COMPACT)), [("cleanup.policy", "compact")]),
        ((MADE.format(""), OVERRIDE.format("cleanup.policy -> compact,delete, retention.ms -> 1000")), [("cleanup.policy", "compact,delete"), ("retention.ms", "1000")]),
        ((MADE.format("retention.bytes -> -1, cleanup.policy -> [delete], flush.ms -> 9"), OVERRIDE.format("cleanup.policy -> delete")), []),
    ],
)  # fmt: skip
def test_with_zookeeper_the_lines_of_brokers_say_which_settings_of_a_topic_were_changed(lines, changes):
    found = [one for one in logged_operations(logged_events(*lines)) if one.kind == "config-change"]

    assert [(one.detail["name"], one.detail["value"]) for one in found] == changes
