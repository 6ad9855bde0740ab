"""What a line about a truncation says of the log before it, where no other line shows where that ended."""

import pytest

from kforensics.damage import Absent
from kforensics.formats.log_lines.event import LogEventKind as Kind
from kforensics.reconcile.observed.clocks import Clock
from kforensics.reconcile.observed.logged_events import order_events
from kforensics.reconcile.observed.logged_truncations import logged_truncations
from tests.builders.history import log_file, logged_events, shifted

SINCE_1_0 = "[Log partition=t-0, dir=/d] Truncating to offset {}"
UP_TO_0_11 = "Truncating log t-0 to offset {}."
NONE = "[Log partition=t-0, dir=/d] Truncating to {} has no effect as the largest offset in the log is {}"


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        # It is written only where something goes: at least one record.
        ((SINCE_1_0.format(22),), [(23, 22, True)]),
        ((SINCE_1_0.format(32), SINCE_1_0.format(22)), [(33, 32, True), (32, 22, True)]),
        # The log had grown from 22 on.
        ((SINCE_1_0.format(22), SINCE_1_0.format(25)), [(23, 22, True), (26, 25, True)]),
        ((NONE.format(22, 21), SINCE_1_0.format(22)), [(22, 22, False), (23, 22, True)]),
        ((NONE.format(30, 21),), [(22, 30, False)]),
        # Up to 0.11 it is written in any case.
        ((UP_TO_0_11.format(22),), [(Absent.UNKNOWN, 22, Absent.UNKNOWN)]),
    ],
)
def test_the_text_since_1_0_says_that_something_was_removed(lines, found):
    truncations = logged_truncations(logged_events(*lines))

    assert found == [(one.from_offset, one.to_offset, one.has_effect) for one in truncations]
    assert all(not one.is_exact for one in truncations if one.has_effect is True)


CUT = "[Log partition=t-0, dir=/d] Corruption found in segment 0, truncating to offset 22"
INVALID = "Found invalid messages in log segment /d/t-0/00000000000000000000.log at byte offset 90: {}"


@pytest.mark.parametrize(
    ("found", "from_offset"),
    [
        ("Record is corrupt (stored crc = 2869174691, computed crc = 133592913). null", 23),
        # Zeros behind the last batch are none.
        ("Found record size 0 smaller than minimum record overhead (14) in file /d/t-0/0.log.", Absent.UNKNOWN),
        ("Record is corrupt (stored crc = 0, computed crc = 133592913). null", Absent.UNKNOWN),
    ],
)
def test_a_batch_that_fits_no_checksum_was_there_before_recovery_cut_it(found, from_offset):
    (torn,) = logged_truncations(logged_events(INVALID.format(found), CUT))

    assert (from_offset, 22, False, "recovery") == (torn.from_offset, torn.to_offset, torn.is_exact, torn.rule)
    (other,) = logged_truncations(logged_events(INVALID.format(found).replace("t-0", "t-1"), CUT))
    assert Absent.UNKNOWN is other.from_offset


FOLLOWS = "[Broker id=1] Follower t-0 starts at leader epoch {} from offset {} with high watermark 0. Previous leader epoch was -1."


def in_one_second(*, of_server, of_roles, is_role_first):
    """What two files of a node hold whose layout writes no milliseconds."""
    texts = ["".join(f"2024-05-01 12:00:00 INFO {line}\n" for line in lines) for lines in (of_server, of_roles)]
    files = [log_file(text) for text in texts]
    return order_events(files[::-1] if is_role_first else files, [Clock(shift_ms=0, source="zone")] * 2)


@pytest.mark.parametrize("is_role_first", [False, True])
def test_a_replica_truncates_after_it_began_to_follow_where_both_are_of_one_second(is_role_first):
    events = in_one_second(
        of_server=(
            "[LogLoader partition=t-0, dir=/d] Loading producer state till offset 64 with message format version 2",
            "Completed load of Log(dir=/d/t-0, topic=t, partition=0, highWatermark=0, lastStableOffset=0, logStartOffset=0, logEndOffset=64) with 1 segments in 12ms (1/1 loaded in /d)",
            SINCE_1_0.format(55),
        ),
        of_roles=(FOLLOWS.format(1, 64), FOLLOWS.format(1, 55)),
        is_role_first=is_role_first,
    )
    (found,) = logged_truncations(events)

    assert (found.from_offset, found.to_offset, found.leader_epoch) == (64, 55, 1)
    assert [
        one.event.number("offset") for one in events if one.event.kind in {Kind.FOLLOWER_START, Kind.TRUNCATION}
    ] == [
        64,
        55,
        55,
    ]


def test_a_truncation_of_one_second_is_of_no_epoch_where_the_replica_may_have_followed_before():
    events = in_one_second(of_server=(SINCE_1_0.format(55),), of_roles=(FOLLOWS.format(7, 64),), is_role_first=False)
    (found,) = logged_truncations(events)

    assert found.leader_epoch is Absent.UNKNOWN


LED = "[Broker id=1] Follower t-0 starts at leader epoch {} from offset {} with partition epoch 2 and high watermark 0. Current leader is {}. Previous leader Some(-1) and previous leader epoch was 1."
DECIDED = "[ReplicaFetcher replicaId=1, leaderId={}, fetcherId=0] Truncating partition t-0 with TruncationState(offset={}, completed=true) due to leader epoch and offset EpochEndOffset(errorCode=0, partition=0, leaderEpoch=0, endOffset={})"
LOADED = "Completed load of Log(dir=/d/t-0, topic=t, partition=0, highWatermark=0, lastStableOffset=0, logStartOffset=0, logEndOffset=64) with 1 segments in 12ms (1/1 loaded in /d)"


def by_leaders(*truncations):
    return [
        line
        for leader, to in truncations
        for line in (DECIDED.format(leader, to, to), f"[UnifiedLog partition=t-0, dir=/d] Truncating to offset {to}")
    ]


@pytest.mark.parametrize("is_role_first", [False, True])
@pytest.mark.parametrize(
    ("of_server", "of_roles", "epochs"),
    [
        # As long as no broker leads, there is nobody to truncate to.
        (by_leaders((2, 55)), [(1, 64, -1), (2, 64, 2)], [2]),
        (by_leaders((2, 55), (3, 50)), [(1, 64, 2), (2, 55, 3)], [1, 2]),
        (by_leaders((2, 55)), [(1, 64, 2), (2, 55, 3)], [1]),
    ],
)
def test_of_one_second_a_replica_truncates_under_the_leader_that_its_lines_name(
    of_server, of_roles, epochs, is_role_first
):
    roles = [LED.format(*one) for one in of_roles]
    events = in_one_second(of_server=(LOADED, *of_server), of_roles=roles, is_role_first=is_role_first)

    assert [one.leader_epoch for one in logged_truncations(events)] == epochs


REACHED = "[ProducerStateManager partition=t-0] Wrote producer snapshot at offset {} with 0 producer ids in 1 ms."


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ((REACHED.format(90), LOADED), [(90, 64, "recovery")]),
        ((REACHED.format(64), LOADED), []),
        # An empty log may be another one.
        ((REACHED.format(90), LOADED.replace("=64", "=0")), []),
        ((REACHED.format(90), "Created log for partition t-0 in /d/t-0 with properties {}", LOADED), []),
        ((REACHED.format(90), LOADED.replace("/d/t-0", "/d/t-0.5f-future")), []),
        ((REACHED.format(90).replace("t-0", "t-1"), LOADED), []),
        # The metadata log has lines and rules of its own.
        (tuple(one.replace("t-0", "__cluster_metadata-0") for one in (REACHED.format(90), LOADED)), []),
    ],
)
def test_a_log_that_is_loaded_shorter_than_it_was_has_lost_its_end(lines, found):
    truncations = logged_truncations(logged_events(*lines))

    assert found == [(one.from_offset, one.to_offset, one.rule) for one in truncations]


def test_lines_that_are_missing_may_say_why_a_log_was_loaded_shorter():
    older, newer = logged_events(REACHED.format(90)), logged_events("Truncating log t-1 to offset 3.", LOADED)

    whole = [*older, *(shifted(one, 60_000) for one in newer)]

    assert {"t-1"} == {str(one.topic_partition) for one in logged_truncations(whole)}
