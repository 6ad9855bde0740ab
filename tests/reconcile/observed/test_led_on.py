"""A ZooKeeper broker that alone is in sync keeps its leader epoch over a restart: no election is on record, and its log may be shorter all the same."""

from dataclasses import dataclass, replace

import pytest

from kforensics.damage import Absent
from kforensics.reconcile.incident.doubts import Moments, doubts_of
from kforensics.reconcile.observed.broker_log_facts import BrokerLogFacts, facts_from_logs
from kforensics.reconcile.observed.facts import ClusterFacts, Restart
from kforensics.reconcile.observed.leadership import Risk, account_of
from tests.builders.history import PARTITION, leadership, logged_events, shifted

LED = "[Partition t-0 broker=1] t-0 starts at Leader Epoch {} from offset 0. Previous Leader Epoch was: {} (kafka.cluster.Partition)"
ISR = "[Partition t-0 broker=1] ISR updated to 1 and version updated to [2]"
JOINED = "[Partition t-0 broker=1] ISR updated to 1,2 and version updated to [3]"
RECOVERY = "Attempting recovery for all logs in /d since no clean shutdown file was found"
CLEAN = "Skipping recovery for all logs in /d since clean shutdown file was found"
NEW = "No meta.properties file under dir /d/meta.properties"
STARTED = "[KafkaServer id=1] started (kafka.server.KafkaServer)"
LATER = "[Controller id=1 epoch=3] Changed partition t-0 from OnlinePartition to OnlinePartition with state LeaderAndIsr(leader=2, leaderEpoch=3, isr=List(2, 1), zkVersion=9)"


@pytest.mark.parametrize("later", [(), (JOINED, LATER)])
@pytest.mark.parametrize(
    ("start", "risk"), [(RECOVERY, Risk.UNCLEAN_RESTART), (NEW, Risk.OTHER_DISK), (CLEAN, Risk.RESTART)]
)
def test_a_leader_that_comes_back_and_leads_on_may_have_lost_records(start, risk, later):
    lines = (NEW, STARTED, LED.format(0, -1), LED.format(2, 0), ISR, start, STARTED, *later)
    account = account_of(PARTITION, "", facts_from_logs(logged_events(*lines), ClusterFacts()))

    assert [(risk, 2)] == [(one.risk, one.state.leader_epoch) for one in account.risky]


@pytest.mark.parametrize("joined", [False, True])
def test_who_joins_later_proves_nothing_of_a_leader_that_came_back(joined):
    lines = (STARTED, LED.format(0, -1), LED.format(2, 0), ISR, RECOVERY, STARTED, *[JOINED] * joined)
    account = account_of(PARTITION, "", facts_from_logs(logged_events(*lines), ClusterFacts()))

    assert [(Risk.UNCLEAN_RESTART, 2)] == [(one.risk, one.state.leader_epoch) for one in account.risky]


AGAIN = "[Partition t-0 broker=1] t-0 starts at Leader Epoch {} from offset 60. Previous Leader Epoch was: -1 (kafka.cluster.Partition)"


@pytest.mark.parametrize(
    ("lines", "risk"),
    [
        ((RECOVERY, STARTED, AGAIN.format(0)), Risk.UNCLEAN_RESTART),
        ((RECOVERY, STARTED, LED.format(0, -1)), None),  # there was no partition before
        ((RECOVERY, STARTED, AGAIN.format(3)), None),  # who led before is a gap of its own
    ],
)
def test_lines_that_begin_in_the_first_leader_epoch_do_not_show_when_it_began(lines, risk):
    """state-change.log was rotated, and its oldest line is of the start after a power loss."""
    account = account_of(PARTITION, "", facts_from_logs(logged_events(*lines), ClusterFacts()))

    assert [risk] * (risk is not None) == [one.risk for one in account.risky]
    assert risk is None or not account.is_whole


CREATED = "Created log for partition t-0 in /d/t-0 with properties {} (kafka.log.LogManager)"
FULL = "[Partition t-0 broker=1] ISR updated to 1,2 and version updated to [2]"


@pytest.mark.parametrize(
    ("between", "risk"),
    [
        (("nothing of note",), Risk.RESTART),  # as where server.log has only warnings
        ((CLEAN, STARTED), Risk.RESTART),
        ((RECOVERY, STARTED), Risk.UNCLEAN_RESTART),
        ((CREATED,), None),
    ],
)
def test_a_broker_that_knows_no_leader_epoch_before_has_restarted(between, risk):
    lines = (STARTED, *["nothing of note"] * 12, LED.format(0, -1), FULL, *between, AGAIN.format(0))
    account = account_of(PARTITION, "", facts_from_logs(logged_events(*lines), ClusterFacts()))

    assert [risk] * (risk is not None) == [one.risk for one in account.risky]


SNAPSHOT = "[ProducerStateManager partition=t-0] Writing producer snapshot at offset {}"
OF_OTHER = "[ProducerStateManager partition=u-0] Writing producer snapshot at offset 7"
STOPPED = "[KafkaServer id=1] shut down completed"
LOADED = "Completed load of Log(dir=/d/t-0, topic=t, partition=0, highWatermark=0, lastStableOffset=0, logStartOffset=0, logEndOffset={}) with 1 segments"
TRUNCATED = "[Log partition=t-0, dir=/d] Truncating to offset {}"


@pytest.mark.parametrize(
    ("stop", "loaded", "risk", "end"),
    [
        ((SNAPSHOT.format(39),), 39, None, None),
        ((SNAPSHOT.format(39),), 20, Risk.OLDER_DISK, 20),
        ((), 39, Risk.RESTART, None),
        ((OF_OTHER,), 30, None, None),
        ((OF_OTHER,), 29, Risk.OLDER_DISK, 29),
        ((TRUNCATED.format(25), OF_OTHER), 29, None, None),
    ],
)
def test_the_end_of_the_log_at_a_clean_stop_and_at_the_load_shows_whether_the_disk_is_the_same(stop, loaded, risk, end):
    lines = (LOADED.format(30), STARTED, *["nothing of note"] * 12, LED.format(0, -1), LED.format(2, 0), ISR)
    again = (*stop, STOPPED, CLEAN, LOADED.format(loaded), STARTED)
    account = account_of(PARTITION, "", facts_from_logs(logged_events(*lines, *again), ClusterFacts()))

    assert [risk] * (risk is not None) == [one.risk for one in account.risky]
    assert end is None or [end] == [one.loaded_end for one in account.risky]


def test_a_log_that_was_discarded_and_copied_again_is_no_older_state_of_the_disk():
    moved = "Log for partition t-0 is renamed to /d/t-0.abc-delete and is scheduled for deletion"
    lines = (STARTED, SNAPSHOT.format(39), moved, LOADED.format(0), OF_OTHER, STOPPED, CLEAN, LOADED.format(0), STARTED)
    facts = facts_from_logs(logged_events(*lines), ClusterFacts())

    assert [False, True] == [isinstance(one.end_at_stop, int) for one in facts.loads(1, PARTITION)]
    assert () == facts.loads(2, PARTITION)


def test_a_new_log_in_the_place_of_another_is_no_older_state_of_the_disk():
    created = "Created log for partition t-0 in /d/t-0 with properties {} (kafka.log.LogManager)"
    lines = (STARTED, LOADED.format(39), created, OF_OTHER, STOPPED, CLEAN, LOADED.format(0), STARTED)
    facts = facts_from_logs(logged_events(*lines), ClusterFacts())

    assert [Absent.UNKNOWN] * 2 == [one.end_at_stop for one in facts.loads(1, PARTITION)]


def test_where_lines_were_not_kept_the_end_at_a_stop_is_unknown():
    lines = (STARTED, LOADED.format(30), SNAPSHOT.format(39), STOPPED, CLEAN, LOADED.format(20), STARTED)
    whole = logged_events(*lines)
    lacking = [one._replace(file=replace(one.file, events_dropped=1)) for one in whole]

    ends = [
        [one.end_at_stop for one in facts_from_logs(given, ClusterFacts()).loads(1, PARTITION)]
        for given in (whole, lacking)
    ]

    assert [[Absent.UNKNOWN, 39], [Absent.UNKNOWN, Absent.UNKNOWN]] == ends


def test_a_start_that_an_election_overtook_is_none_of_that_leader():
    lines = (STARTED, LED.format(0, -1), LED.format(2, 0), JOINED, RECOVERY, LATER, STARTED)

    assert () == account_of(PARTITION, "", facts_from_logs(logged_events(*lines), ClusterFacts())).risky


def test_the_first_start_of_a_broker_finds_no_identity_and_exchanges_no_disk():
    facts = facts_from_logs(logged_events(NEW, CLEAN, STARTED, LED.format(0, -1)), ClusterFacts())

    assert not any(one.other_disk for one in facts.restarts(1))


def test_lines_that_begin_in_a_later_leader_epoch_leave_open_who_led_before():
    gaps = [
        account_of(PARTITION, "", facts_from_logs(logged_events(STARTED, LED.format(epoch, -1)), ClusterFacts())).gaps
        for epoch in (0, 3)
    ]

    assert [[], ["who led before leader epoch 3"]] == [[one.words for one in found] for found in gaps]


def test_lines_that_show_no_start_leave_open_what_a_leader_lost():
    """state-change.log names the leaders, and server.log alone the recovery that its log went through."""
    whole = (STARTED, LED.format(0, -1), LED.format(1, 0), RECOVERY, STARTED)
    late = (LED.format(0, -1), *["nothing of note"] * 12, RECOVERY, STARTED, LED.format(1, 0))
    of_elections = logged_events(LED.format(0, -1))
    rotated = [*of_elections, *[one for one in logged_events(*late) if one.event.kind != "leader-start"]]

    gaps = [
        [one.words for one in account_of(PARTITION, "", facts_from_logs(events, ClusterFacts())).gaps]
        for events in (logged_events(*whole), of_elections, rotated)
    ]

    assert [[], ["what broker 1 logged"], ["whether broker 1 restarted before its log lines begin"]] == gaps


def test_a_clock_that_went_back_leaves_open_when_its_broker_restarted():
    """By their times the restart came before the partition was created."""
    lines = logged_events(STARTED, LED.format(0, -1), RECOVERY, STARTED)
    late = [shifted(one, -60_000) if at > 1 else one for at, one in enumerate(lines)]
    account = account_of(PARTITION, "", facts_from_logs(late, ClusterFacts()))

    assert () == account_of(PARTITION, "", facts_from_logs(lines[:2], ClusterFacts())).gaps
    assert ["when broker 1 restarted, whose clock went back while it logged"] == [one.words for one in account.gaps]


METADATA_RECOVERED = "[LogLoader partition=__cluster_metadata-0, dir=/d] Recovering unflushed segment 0"


def test_the_first_start_after_a_moment_was_clean_where_no_log_but_that_of_the_metadata_was_recovered():
    clean, unclean = (
        (STARTED, *["nothing of note"] * 9, METADATA_RECOVERED, start, STARTED) for start in (CLEAN, RECOVERY)
    )
    events = logged_events(*clean)
    (began, *_, ended) = (one.time_ms for one in events if isinstance(one.time_ms, int))
    since = began + 1_000

    assert facts_from_logs(events, ClusterFacts()).started_clean(1, since)
    assert not facts_from_logs(events, ClusterFacts()).started_clean(1, since - 2_000)
    assert not facts_from_logs(events, ClusterFacts()).started_clean(1, ended + 1)
    assert not facts_from_logs(logged_events(*unclean), ClusterFacts()).started_clean(1, since)


def test_facts_of_log_lines_answer_every_question_themselves():
    asked = {name for name in vars(ClusterFacts) if not name.startswith("_")}

    assert len(asked) > 15
    assert asked - vars(BrokerLogFacts).keys() == set()  # else what the metadata log shows would be unknown


@dataclass(frozen=True)
class Disks(ClusterFacts):
    """A broker of two log directories that registered again without one of them."""

    directory: str = ""

    def leaderships(self, partition, topic_id):
        led = replace(leadership(1, 1, {1}, at=5), directories=((1, self.directory), (2, "b")))
        return (led, replace(led, leader=Absent.NOT_APPLICABLE, recorded_at=6), leadership(1, 2, {1}, at=9))

    def restarts(self, broker_id):
        missing = frozenset({"gone"} if broker_id == 1 else ())
        return (Restart(recorded_at=8, time_ms=8, is_clean=True, other_disk=True, missing_directories=missing),)


@pytest.mark.parametrize(("directory", "is_other"), [("kept", False), ("gone", True), ("A" * 22, True)])
def test_a_partition_on_a_disk_that_stayed_was_not_led_with_another_disk(directory, is_other):
    account = account_of(PARTITION, "", Disks(directory=directory))

    assert is_other is (Risk.OTHER_DISK in {one.risk for one in account.risky})


@dataclass(frozen=True)
class Compacted(ClusterFacts):
    """A metadata log that begins with a snapshot."""

    first: int = 2

    def leaderships(self, partition, topic_id):
        return (leadership(2, self.first, {2}, at=9, time_ms=500),)


@pytest.mark.parametrize(
    ("first", "since_ms", "is_open"), [(2, None, True), (2, 400, True), (2, 500, False), (0, None, False)]
)
def test_who_led_before_a_compacted_metadata_log_begins_is_open_unless_it_is_not_asked(first, since_ms, is_open):
    account = account_of(PARTITION, "", Compacted(first=first))
    found = doubts_of(account, None, (), Moments(since_ms=since_ms), is_leader_known=True)

    words = "who led before leader epoch 2, with which the metadata log begins"
    assert is_open is (words in {one.words for one in found.open})
