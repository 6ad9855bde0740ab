"""What retention deleted is one entry for each rule, and never of no consequence."""

from kforensics.reconcile.timeline.logged_operations import retention_entries
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
