"""A log of which only rolled files are given says nothing of the time after them."""

from dataclasses import replace

import pytest

from kforensics.damage import Absent
from kforensics.reconcile.observed.broker_log_facts import facts_from_logs
from kforensics.reconcile.observed.facts import ClusterFacts
from kforensics.reconcile.observed.leadership import GapKind, account_of
from kforensics.reconcile.observed.logged_periods import logs_without_newest
from tests.builders.history import PARTITION, log_file, logged_events

STARTED = "[KafkaServer id=1] started (kafka.server.KafkaServer)"
CLEAN = "Skipping recovery for all logs in /data since clean shutdown file was found"
ELECTED = "Changed partition t-0 from NewPartition to OnlinePartition with state LeaderAndIsr(leader=1, leaderEpoch=0, isr=List(1), controllerEpoch=1, zkVersion=0)"


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        (("server.log.1", "server.log.2"), {1: ("server.log",)}),
        (("server.log", "server.log.1"), {}),
        (("server.log.gz", "server.log.2026-11-22-18"), {}),
        (("b/server.log.2026-11-22-18.gz",), {1: ("server.log",)}),
        (
            ("server.log", "state-change.log.1", "controller.log.2026-11-22"),
            {1: ("controller.log", "state-change.log")},
        ),
        # Nothing says how these are rolled.
        (("kafka.out.1", "broker-1.log", "server.log.old"), {}),
    ],
)
def test_the_file_that_is_being_written_is_missing(names, missing):
    file = log_file("", node=1)

    assert missing == logs_without_newest([replace(file, path=name, node_id=1) for name in names])


@pytest.mark.parametrize(
    ("name", "is_missing"), [("h/server.log", False), ("i/server.log", True), ("h/server.log.2", True)]
)
def test_a_quiet_file_that_names_no_node_is_of_the_broker_whose_rolled_files_are_beside_it(name, is_missing):
    rolled = replace(log_file("", node=1), path="h/server.log.1")
    quiet = replace(rolled, path=name, node_id=Absent.UNKNOWN)

    assert ({1: ("server.log",)} if is_missing else {}) == logs_without_newest([quiet, rolled])


@pytest.mark.parametrize(
    ("given", "keeps", "kind"),
    [({1}, True, GapKind.BROKER), ({1}, False, GapKind.END), (set(), True, GapKind.END)],
)
def test_what_a_broker_logged_last_is_an_open_question(given, keeps, kind):
    events = logged_events(STARTED, ELECTED, CLEAN)
    whole, rolled = (replace(events[0].file, path=name) for name in ("server.log", "server.log.1"))

    def facts(file):
        return facts_from_logs([event._replace(file=file) for event in events], ClusterFacts(), files=[file])

    def gaps(file):
        return account_of(
            PARTITION, "", facts(file), newest_epoch=0, given=frozenset(given), keeps_epoch=lambda _broker: keeps
        ).gaps

    ((found, words, settled_by, _),) = gaps(rolled)
    last = events[-1].time_ms
    assert isinstance(last, int)
    assert not gaps(whole)
    assert kind is found
    assert (
        "what broker 1 logged after the rolled files of its server.log",
        "the newest server.log of broker 1",
    ) == (words, settled_by)
    assert [True, True] == [facts(whole).is_unbroken(1, last, until) for until in (last, last + 1)]
    assert [True, False] == [facts(rolled).is_unbroken(1, last, until) for until in (last, last + 1)]
    assert facts(whole).started_clean(1, events[0].time_ms)
    assert not facts(rolled).started_clean(1, events[0].time_ms)
