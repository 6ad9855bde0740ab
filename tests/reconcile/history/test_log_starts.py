"""Who deleted the beginning of a log: named where a line says it, taken from disk and settings where they leave one way, else a choice."""

import pytest

from kforensics.damage import Absent
from kforensics.protocol.retention import RetentionPeriod, RetentionPolicy, RetentionTimes
from kforensics.reconcile.history import log_starts
from kforensics.reconcile.history.log_starts import LogStart, Remover, log_start_moves
from kforensics.reconcile.timeline.logged_operations import is_soon
from kforensics.units import TopicPartition
from tests.builders.history import logged_events

NEW, OLD = "[UnifiedLog partition=t-0, dir=/d] ", "[Log partition=t-0, dir=/d] "
SEGMENT = "LogSegment(baseOffset=0, size=9, lastModifiedTime=1745600000000, largestRecordTimestamp=1745600000000)"
BY_TIME = f"{NEW}Deleting segment {SEGMENT} due to log retention time 3600000ms breach based on the largest record timestamp in the segment"
BY_SIZE = f"{NEW}Deleting segment {SEGMENT} due to log retention size 1024 breach. Log size after deletion will be 9."
BY_START = f"{NEW}Deleting segments due to log start offset 40 breach: {SEGMENT}"
KEPT = RetentionPolicy(-1, -1, deletes=True)
WEEK_MS, HOUR_MS, CREATED_MS = 604_800_000, 3_600_000, 1745600000000


def moves(*lines):
    return log_start_moves(logged_events(*lines)).get(TopicPartition("t", 0), [])


def start(offset=40, **known):
    return LogStart(offset=offset, **known)


def times(policy, *, age_ms=None, is_known=True):
    """A retention that never changed, of a topic that was created so long ago."""
    if age_ms is None:
        return RetentionTimes((RetentionPeriod(0, policy, is_known, is_known),))
    return RetentionTimes((RetentionPeriod(0, policy, is_known, is_known),), CREATED_MS, CREATED_MS + age_ms)


@pytest.mark.parametrize(
    ("lines", "by", "words"),
    [
        ([BY_TIME, f"{NEW}Incremented log start offset to 40 due to segment deletion"], Remover.TIME, "1 hour"),
        ([BY_SIZE, f"{NEW}Incremented log start offset to 40 due to segment deletion"], Remover.SIZE, "1,024"),
        (
            [
                f"{OLD}Found deletable segments with base offsets [0,8] due to retention time 3600000ms breach",
                f"{OLD}Incrementing log start offset to 40",
            ],
            Remover.TIME,
            "1 hour",
        ),
        ([f"{NEW}Incremented log start offset to 40 due to client delete records request"], Remover.REQUEST, "client"),
        # Since 3.0 the log start is moved first.
        ([f"{NEW}Incremented log start offset to 40 due to segment deletion", BY_TIME], Remover.TIME, "1 hour"),
        ([f"{NEW}Incremented log start offset to 40 due to segment deletion", BY_SIZE], Remover.SIZE, "1,024"),
        ([BY_START, f"{NEW}Incremented log start offset to 40 due to segment deletion"], Remover.RETENTION, "no line"),
    ],
)
def test_a_line_names_the_rule(lines, by, words):
    found = start(moves=moves(*lines)).removal(8)

    assert (by, "proven") == (found.by, found.confidence)
    assert isinstance(found.since_ms, int)
    assert words in found.sentence
    assert found.citations


@pytest.mark.parametrize(
    "lines",
    [
        [f"{NEW}Incremented log start offset to 40 due to leader offset increment"],
        [f"{NEW}Incremented log start offset to 40 due to leader offset increment", BY_TIME],
        # A follower deletes by its own rules what its leader has passed.
        [BY_TIME, f"{NEW}Incremented log start offset to 40 due to leader offset increment"],
        [f"{OLD}Incrementing log start offset to 40"],
        [],
    ],
)
def test_what_no_line_names_stays_a_choice(lines):
    found = start(moves=moves(*lines)).removal(8)

    assert (Remover.UNKNOWN, "possible") == (found.by, found.confidence)
    assert "retention or DeleteRecords" in found.words


def test_the_move_that_passed_the_offset_counts():
    lines = [
        f"{NEW}Incremented log start offset to 4 due to client delete records request",
        BY_TIME,
        f"{NEW}Incremented log start offset to 40 due to segment deletion",
    ]
    known = start(moves=moves(*lines))

    assert known.removal(4).by is Remover.TIME
    assert known.removal(3).by is Remover.REQUEST
    assert "in another way" in known.removal(3).words
    assert known.removal(40) is None


@pytest.mark.parametrize(
    ("known", "by", "confidence"),
    [
        ({"is_inside": True}, Remover.REQUEST, "likely"),
        ({"times": times(KEPT)}, Remover.REQUEST, "possible"),
        ({"times": times(KEPT._replace(retention_ms=1000, deletes=False))}, Remover.NONE, "possible"),
        ({"times": times(KEPT._replace(retention_ms=1000))}, Remover.TIME, "possible"),
        ({"times": times(KEPT._replace(retention_bytes=1000))}, Remover.SIZE, "possible"),
        ({"times": times(KEPT._replace(retention_ms=1000, retention_bytes=9))}, Remover.UNKNOWN, "possible"),
        ({"times": times(KEPT._replace(retention_ms=WEEK_MS), age_ms=2 * WEEK_MS)}, Remover.TIME, "possible"),
        ({"times": times(KEPT._replace(retention_ms=WEEK_MS), age_ms=HOUR_MS)}, Remover.EARLY, "possible"),
        # What is not set may be shorter by a file of the broker.
        (
            {"times": times(KEPT._replace(retention_ms=WEEK_MS), age_ms=HOUR_MS, is_known=False)},
            Remover.TIME,
            "possible",
        ),
        ({"times": times(KEPT, age_ms=HOUR_MS)}, Remover.REQUEST, "possible"),
        ({}, Remover.UNKNOWN, "possible"),
    ],
)
def test_disk_and_settings_leave_out_what_can_not_be(known, by, confidence):
    found = start(**known).removal(0)

    assert (by, confidence) == (found.by, found.confidence)
    assert found.since_ms is Absent.UNKNOWN


def test_the_retention_of_then_counts_and_not_that_of_now():
    periods = (
        RetentionPeriod(0, KEPT._replace(retention_ms=WEEK_MS)),
        RetentionPeriod(CREATED_MS + 1000, KEPT._replace(retention_ms=1000)),
        RetentionPeriod(CREATED_MS + 5000, KEPT),
    )
    found = start(times=RetentionTimes(periods, CREATED_MS, CREATED_MS + HOUR_MS)).removal(0)

    assert found.by is Remover.TIME
    assert "retention.ms 1 second, as it was until 2025-04-25 16:53:25 UTC" in found.words
    assert "7 days" not in found.words


def test_a_default_that_no_file_confirms_is_named_as_one():
    found = start(times=times(KEPT._replace(retention_ms=WEEK_MS), age_ms=WEEK_MS, is_known=False)).removal(0)

    assert "Kafka's default" in found.words


IN_REMOTE = "[RemoteLogManager=1 partition=CMPYijmTTXWjFERN_Redbg:t-0] About to delete remote log segment RemoteLogSegmentId{topicIdPartition=CMPYijmTTXWjFERN_Redbg:t-0, id=IVvTY7gRQTyrD0rJTn_MzQ} due to "
REMOTE_TIME = f"{IN_REMOTE}retention time 2000ms breach based on the largest record timestamp in the segment"
REMOTE_SIZE = f"{IN_REMOTE}retention size 1024 breach. Log size after deletion will be 9."
MOVED = f"{NEW}Incremented log start offset to 40 due to segment deletion"


@pytest.mark.parametrize(
    ("lines", "by", "words"),
    [
        ([REMOTE_TIME, REMOTE_TIME, MOVED], Remover.TIME, "retention by time (retention.ms 2 seconds)"),
        ([REMOTE_SIZE, MOVED], Remover.SIZE, "retention by size (retention.bytes 1,024)"),
        ([REMOTE_SIZE, REMOTE_TIME, MOVED], Remover.RETENTION, "retention, by time and by size"),
    ],
)
def test_lines_of_remote_storage_name_the_rule_too(lines, by, words):
    found = start(moves=moves(*lines)).removal(8)

    assert (by, "proven", words) == (found.by, found.confidence, found.words)


def test_a_log_whose_leader_epochs_begin_below_it_was_shortened_by_no_broker():
    known = {"times": times(KEPT._replace(retention_ms=WEEK_MS), age_ms=HOUR_MS)}

    cut, moved = start(epochs_from=0, **known).removal(0), start(epochs_from=40, **known).removal(0)
    assert (Remover.NONE, Remover.EARLY) == (cut.by, moved.by)
    assert "removed by hand or left out of the copy" in cut.words
    assert "retention" not in cut.words
    named = start(epochs_from=0, moves=moves(BY_TIME, MOVED)).removal(0)
    assert Remover.TIME is named.by, "a line names it"


def test_a_topic_that_is_compacted_alone_lost_nothing_to_retention_or_a_request():
    found = start(times=times(KEPT._replace(retention_ms=1000, deletes=False))).removal(0)

    assert "the policy was another one, or files were removed by hand" in found.words


def test_a_producer_snapshot_shows_that_records_were_too_young():
    known = times(KEPT._replace(retention_ms=WEEK_MS), age_ms=2 * WEEK_MS)
    known = known._replace(stamps=lambda: ((29, CREATED_MS + 2 * WEEK_MS - 9),))

    late, whole = start(times=known).removal(29), start(times=known).removal(3)
    assert (Remover.EARLY, "possible") == (late.by, late.confidence)
    assert "a producer snapshot has offset 29 of 2025-05-09" in late.words
    assert Remover.UNKNOWN is whole.by, "what stands before it may have been old"
    assert "from offset 29 on" in whole.words


def test_records_that_are_stamped_before_their_topic_are_no_sign_of_a_wrong_time():
    young = times(KEPT._replace(retention_ms=WEEK_MS), age_ms=HOUR_MS)
    mirrored = young._replace(begins_ms=lambda: CREATED_MS - WEEK_MS)

    by_age = start(times=mirrored).removal(0)
    assert Remover.TIME is by_age.by
    assert by_age.words.endswith("UTC, before the topic was created")
    found = start(times=young).removal(0)
    assert "or stamped earlier, as mirrored records are" in found.words


def test_of_many_lines_of_one_deletion_each_is_looked_at_a_few_times(monkeypatch):
    looked = []

    def soon(before, item):
        looked.append(item)
        return is_soon(before, item)

    monkeypatch.setattr(log_starts, "is_soon", soon)
    (move,) = moves(*[BY_TIME] * 50, f"{NEW}Incremented log start offset to 40 due to segment deletion")

    assert move.remover is Remover.TIME
    assert len(looked) <= 50
