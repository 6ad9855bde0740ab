"""How far a log had grown by the lines of its broker, and what ends that."""

import pytest

from kforensics.formats.log_lines.event import LogEventKind
from kforensics.reconcile.observed.broker_log_facts import facts_from_logs, logged_ends
from kforensics.reconcile.observed.clocks import SKEW_TOLERATED_MS
from kforensics.reconcile.observed.facts import ClusterFacts
from tests.builders.history import PARTITION, logged_events

LOG = "[Log partition=t-0, dir=/d] "
ROLLED = LOG + "Rolled new log segment at offset {} in 3 ms."
SNAPSHOT = "[ProducerStateManager partition=t-0] Wrote producer snapshot at offset {} with 0 producer ids in 1 ms."
LOADED = "Completed load of Log(dir=/d/t-0, topic=t, partition=0, highWatermark=0, lastStableOffset=0, logStartOffset=0, logEndOffset={}) with 1 segments"
FOLLOWS = "[Broker id=1] Follower t-0 starts at leader epoch 2 from offset {} with high watermark 3. Previous leader epoch was 1."
RESET = "[ReplicaFetcherThread-0-2]: Reset fetch offset for partition t-0 from 40 to current leader's {} offset {}"


def end_by(*lines):
    """The offset by the lines of broker 1, and the number of the line."""
    end = logged_ends(logged_events(*lines), ClusterFacts().recreated_ms).get(PARTITION, {}).get(1)
    return None if end is None else (end.offset, end.citation.line)


@pytest.mark.parametrize(
    "line",
    [
        ROLLED,
        "[LocalLog partition=t-0, dir=/d] Rolled new log segment at offset {} in 3 ms.",
        "[UnifiedLog partition=t-0, dir=/d] Rolled new log segment at offset {} in 3 ms.",
    ],
)
def test_the_line_of_a_rolled_segment_is_read(line):
    (event,) = (one.event for one in logged_events(line.format(32)))

    assert LogEventKind.SEGMENT_ROLLED is event.kind
    assert (PARTITION, 32) == (event.topic_partition, event.number("offset"))


@pytest.mark.parametrize("line", ["Rolled new log segment for 't-0' in 3 ms.", "Rolled new log segment at offset x"])
def test_a_line_that_only_begins_like_it_names_no_offset(line):
    """Up to 1.0 it names none."""
    assert [] == logged_events(LOG + line)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((ROLLED.format(16), ROLLED.format(32)), (32, 2)),
        ((SNAPSHOT.format(32),), (32, 1)),
        ((LOADED.format(32),), (32, 1)),
        ((FOLLOWS.format(32),), (32, 1)),
        ((LOG + "Incremented log start offset to 32 due to segment deletion",), (32, 1)),
        ((LOG + "Truncating to 50 has no effect as the largest offset in the log is 31",), (32, 1)),
        ((ROLLED.format(32), LOADED.format(20)), (20, 2)),
        ((ROLLED.format(32), LOADED.format(0)), (32, 1)),
        ((ROLLED.format(32), LOG + "Truncating to offset 20"), (20, 2)),
        ((ROLLED.format(32), LOG + "Truncating to offset 40"), (32, 1)),
        ((ROLLED.format(32), LOG + "Corruption found in segment 16, truncating to offset 20"), (20, 2)),
        ((ROLLED.format(32), RESET.format("latest", 30)), (30, 2)),
        ((ROLLED.format(32), RESET.format("start", 0)), (40, 2)),
        ((ROLLED.format(32), RESET.format("start", 90)), None),
        ((ROLLED.format(32), LOG + "Deleting segments as part of log recovery: LogSegment(baseOffset=16"), (16, 2)),
        ((ROLLED.format(32), LOG + "Deleting all segments because logEndOffset (9) is smaller than logStartOffset (20)"), None),
        ((ROLLED.format(32), "Created log for partition t-0 in /d/t-0 with properties {}"), None),
        ((ROLLED.format(32), "Log for partition t-0 is renamed to /d/t-0.5f-delete and is scheduled for deletion"), None),
        ((ROLLED.format(32), "Log in /d/t-0 marked stray and renamed to /d/t-0.5f-stray"), None),
        ((ROLLED.format(32), "Log in /d/u-t-0 marked stray and renamed to /d/u-t-0.5f-stray"), (32, 1)),
        ((ROLLED.format(32), "Log in /d/t-0.5f-future marked stray and renamed to /d/t-0.5f-stray"), (32, 1)),
        ((ROLLED.format(32), "[Controller 1]: Deletion of topic t successfully completed"), None),
        ((ROLLED.format(32).replace("t-0", "__cluster_metadata-0"),), None),
        ((LOADED.replace("/d/t-0", "/d/t-0.5f-future").format(32),), None),
    ],
)  # fmt: skip
def test_a_log_had_grown_to_the_highest_offset_since_it_was_truncated_or_replaced(lines, expected):
    assert expected == end_by(*lines)


def test_the_order_of_a_role_and_a_truncation_of_one_millisecond_is_not_known():
    truncated, role = logged_events(LOG + "Truncating to offset 20", FOLLOWS.format(32))

    assert {} == logged_ends([truncated, role._replace(time_ms=truncated.time_ms)], ClusterFacts().recreated_ms)


def test_facts_of_log_lines_give_the_ends_by_broker():
    facts = facts_from_logs(
        [*logged_events(ROLLED.format(32)), *logged_events(ROLLED.format(9), node=2)], ClusterFacts()
    )

    assert {1: 32, 2: 9} == {broker: end.offset for broker, end in facts.logged_ends(PARTITION).items()}


def recreated(created_ms):
    """A metadata log by which a topic was created again at a time."""

    class Metadata(ClusterFacts):
        def recreated_ms(self, topic):
            return created_ms

    return Metadata()


@pytest.mark.parametrize(
    ("later_ms", "is_known"), [(-1, True), (SKEW_TOLERATED_MS, True), (SKEW_TOLERATED_MS + 1, False)]
)
def test_lines_from_before_a_topic_was_created_again_say_nothing_of_its_log(later_ms, is_known):
    events = logged_events(ROLLED.format(32))
    facts = facts_from_logs(events, recreated(events[0].time_ms + later_ms))

    assert is_known is (1 in facts.logged_ends(PARTITION))


def test_what_a_log_of_an_earlier_topic_had_reached_hides_no_line_of_the_log_of_now():
    earlier, later = logged_events(ROLLED.format(32), ROLLED.format(9))
    events = [earlier._replace(time_ms=0), later._replace(time_ms=60_000)]
    facts = facts_from_logs(events, recreated(60_000))

    assert [9] == [end.offset for end in facts.logged_ends(PARTITION).values()]
