"""Brokers of 0.11 to 2.5 log that they lead, without the ISR; their controller logs which brokers are alive, and takes all others out of it."""

from dataclasses import replace

import pytest

from kforensics.protocol.versions import KafkaVersion
from kforensics.reconcile.observed.broker_lives import broker_lives
from kforensics.reconcile.observed.broker_log_facts import facts_from_logs
from kforensics.reconcile.observed.facts import ClusterFacts
from kforensics.reconcile.observed.leadership import Risk, account_of
from kforensics.reconcile.observed.logged_leaderships import logged_leaderships
from kforensics.reconcile.observed.logged_periods import logged_periods
from tests.builders.history import PARTITION, logged_events, shifted

STARTED = "[KafkaServer id=1] started (kafka.server.KafkaServer)"


def alive(brokers):
    return f"[Controller id=2] Newly added brokers: , deleted brokers: , bounced brokers: , all live brokers: {brokers}"


def led(broker, epoch, before):
    return f"[Partition t-0 broker={broker}] t-0 starts at leader epoch {epoch} from offset 0 with high watermark 0. Previous leader epoch was {before}."


def isr(words):
    return f"[Partition t-0 broker=1] {words}"


ALL_IN, ALONE, BACK = isr("ISR updated to [1,2,3]"), isr("ISR updated to [1]"), isr("ISR updated to [1,2]")
ASKED = isr("Shrinking ISR from 1,2,3 to 1")
QUIET = "nothing of note"


def history(*of_leader, again=(STARTED,), silent=()):
    """Broker 1 leads and dies, broker 2 takes over 20 s later, broker 1 comes back after 20 more; broker 3 has started only."""
    lines = {
        1: [(0, (STARTED, led(1, 0, -1), ALL_IN, *of_leader)), (40, again)],
        2: [(0, (STARTED, alive("1,2,3"))), (20, (STARTED, alive("2"), led(2, 3, -1)))],
        3: [(0, (STARTED,))],
    }
    events = [
        shifted(event, at * 1_000)
        for node, parts in lines.items()
        if node not in silent
        for at, part in parts
        for event in logged_events(*part, node=node)
    ]
    return sorted(events, key=lambda event: event.time_ms)


@pytest.mark.parametrize(
    ("events", "is_unclean"),
    [
        (history(alive("1"), led(1, 2, 0)), True),
        (history(ALONE), True),
        (history(ASKED), False),
        (history(ASKED, alive("1"), led(1, 2, 0)), True),
        (history(ALONE, alive("1,2"), BACK), False),
        # By the clock of broker 1 the other one joined later than it was elected.
        (history(ALONE, *[QUIET] * 20, BACK), False),
        (history(ALONE, again=()), False),
        (history(ALONE, silent={3}), False),
        (history(ALONE, silent={1}), False),
    ],
)
def test_a_broker_that_its_leader_never_let_join_was_elected_uncleanly(events, is_unclean):
    newest = logged_leaderships(events)[PARTITION][-1]

    assert (2, 3, frozenset({2}), is_unclean) == (newest.leader, newest.leader_epoch, newest.isr, newest.unclean)


@pytest.mark.parametrize(
    ("names", "is_whole"),
    [
        (("server.log", "server.log.1", "server.log.2.gz"), True),
        (("server.log", "server.log.2.gz"), False),
        (("server.log.3", "server.log.5"), False),
        # An account that ends before the newest file.
        (("server.log.2", "server.log.3"), False),
        (("server.log.1", "server.log.2"), True),
        (("server.log.1970-01-01-00", "server.log.1970-01-01-01", "server.log.1970-01-01-02"), True),
        (("server.log.1970-01-01-00", "server.log.1970-01-01-02"), False),
        (("server.log.1970-01-03", "server.log.1970-01-01"), False),
        (("server.log.1970-13-03", "server.log"), True),
    ],
)
def test_a_rolled_file_that_is_missing_may_hold_the_line(names, is_whole):
    events = history(ALONE)
    files = [replace(events[0].file, path=name) for name in names]
    ours = [event for event in events if event.node_id == 1]
    of_file = {id(event): files[at % len(files)] for at, event in enumerate(ours)}
    named = [event._replace(file=of_file.get(id(event), event.file)) for event in events]

    assert is_whole is logged_leaderships(named)[PARTITION][-1].unclean
    assert is_whole is facts_from_logs(named, ClusterFacts(), newest_version=KafkaVersion(2, 5)).starts_are_logged


def test_a_rolled_file_without_events_is_not_missing():
    events = history(ALONE)
    files = [replace(events[0].file, path=f"server.log.1970-01-01-0{hour}", node_id=1) for hour in range(3)]
    ours = [event for event in events if event.node_id == 1]
    of_file = {id(event): files[at % 2 * 2] for at, event in enumerate(ours)}
    named = [event._replace(file=of_file.get(id(event), event.file)) for event in events]

    assert broker_lives(named)[1].first_ms > broker_lives(named, logged_periods(named, files))[1].first_ms
    # The name of the newest file is two hours ahead of UTC.
    newest = [
        replace(files[0], path="server.log", mtime_ns=(events[0].time_ms + hours * 3_600_000) * 10**6)
        for hours in (1, 2)
    ]
    assert [True, False] == [
        logged_leaderships(named, logged_periods(named, [*files, one]))[PARTITION][-1].unclean for one in newest
    ]
    assert logged_leaderships(named, logged_periods(named, files))[PARTITION][-1].unclean


def test_the_only_broker_alive_is_the_only_one_in_sync():
    states = logged_leaderships(history(alive("1"), led(1, 2, 0)))[PARTITION]
    others = logged_leaderships(history(alive("1,3"), led(1, 2, 0)))[PARTITION]
    late = logged_leaderships(history(alive("1"), *[QUIET] * 11, led(1, 2, 0)))[PARTITION]

    assert [frozenset({1})] == [one.isr for one in states if one.leader_epoch == 2]
    assert not any(isinstance(one.isr, frozenset) for found in (others, late) for one in found if one.leader_epoch == 2)


@pytest.mark.parametrize(
    ("version", "silent", "is_open"),
    [
        (KafkaVersion(2, 5), (), False),
        (KafkaVersion(2, 6), (), True),
        (None, (), True),
        (KafkaVersion(2, 5), (3,), True),
    ],
)
def test_an_epoch_that_no_broker_says_to_lead_in_had_no_leader(version, silent, is_open):
    """Nobody leads in epochs 1 and 2: a controller raises the epoch as often as it changes the ISR."""
    facts = facts_from_logs(history(ALONE, silent=silent), ClusterFacts(), newest_version=version)
    account = account_of(PARTITION, "", facts)

    assert is_open is any("leader epochs 1 to 2" in gap.words for gap in account.gaps)
    assert (not silent) is (Risk.UNCLEAN in {one.risk for one in account.elections})
