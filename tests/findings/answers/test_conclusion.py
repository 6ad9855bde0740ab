"""Advice follows from what is on record: settings, who forced an election, what is about to be deleted, whom it concerns."""

from dataclasses import replace

import pytest

from kforensics.ask.model import Ask
from kforensics.damage import Absent
from kforensics.evidence.event_kinds import EventKind
from kforensics.evidence.model import GroupCommit, Input
from kforensics.findings.answers.advice import Holders, missing_evidence
from kforensics.findings.answers.conclusion import conclude
from kforensics.findings.rules.causes import CAUSES, causes_of
from kforensics.reconcile.history.causes import CauseName
from kforensics.reconcile.history.losses import Holder
from kforensics.reconcile.history.residuals import TornTransaction, TornTransactions
from kforensics.reconcile.incident.model import GroupAtRisk
from kforensics.reconcile.incident.operations import Operation
from kforensics.reconcile.incident.partition import groups_at_risk
from kforensics.reconcile.observed.clocks import Clock
from kforensics.reconcile.timeline.events import TimelineEntry
from kforensics.units import OffsetRange, TopicPartition
from tests.builders.history import leadership, log_file
from tests.builders.incidents import explanation
from tests.builders.logs import HERE

WHOLE = explanation("1")
INCIDENT = WHOLE.incidents[0]
TOPIC = INCIDENT.partition.topic
LOSS = replace(INCIDENT.losses[0], confidence="likely")


def words(incident, *timeline):
    return conclude([incident], timeline, log_files=(), inputs=WHOLE.inputs, clocks=(), ask=Ask(), holders=Holders())


@pytest.mark.parametrize(("allowed", "advised"), [(True, True), (Absent.UNKNOWN, True), (False, False)])
def test_a_setting_that_is_there_already_is_not_advised(allowed, advised):
    incident = replace(INCIDENT, losses=(LOSS,), is_unclean_election_allowed=allowed)

    assert advised is any("Set unclean.leader.election.enable=false" in one for one in words(incident).later)


def test_an_election_that_an_operator_forced_is_no_fault_of_a_setting():
    forced = leadership(2, 1, {2}, unclean=True)
    incident = replace(INCIDENT, losses=(LOSS,), is_unclean_election_allowed=False, forced_elections=(forced,))
    entry = TimelineEntry(
        kind=EventKind.UNCLEAN_ELECTION, time_ms=1, topic_partition=INCIDENT.partition, leader_epoch=1
    )

    found = words(incident, entry)

    assert any("an operator forced" in one for one in found.later)
    assert any("1 unclean election, which an operator forced" in one for one in found.conclusion)


def held_by(**more):
    holder = Holder(input=0, path="orders-0", broker_id=1, is_final=True, in_use=False, **more)
    return replace(INCIDENT, losses=(replace(LOSS, held_by=(holder,)),))


def test_what_will_be_deleted_is_copied_first():
    (first, *_) = words(held_by(is_vanishing=True)).now

    assert first.startswith("Copy this directory before any broker starts")
    assert f'cp -a {WHOLE.inputs[0].path}/orders-0 "${{SAFE:?}}"' in first
    assert "-stray" in words(held_by(is_stray=True)).now[0]
    assert not any("cp -a" in one for one in words(held_by()).now)


def test_what_was_never_committed_needs_no_haste():
    incident = held_by(is_vanishing=True)
    harmless = replace(incident.losses[0], committed="no", was_committed="no")

    assert not any("cp -a" in one for one in words(replace(incident, losses=(harmless,))).now)


def test_consumers_are_told_where_they_stick_and_how_to_end_it():
    torn = TornTransaction(producer_id=7, producer_epoch=0, kind="marker-lost", lost=OffsetRange(9, 9), open_from=4)
    incident = replace(INCIDENT, torn_transactions=TornTransactions(transactions=(torn,), stuck_at=2))

    (sentence,) = [one for one in words(incident).tell if "read_committed" in one]

    assert "from offset 2 on" in sentence
    assert "until the transaction at 4 is ended" in sentence
    assert "abort" not in sentence  # what was decided to be committed is not to be aborted
    assert not any("read_committed" in one for one in words(INCIDENT).tell)


def commit(offset, time_ms, group="g"):
    return GroupCommit(
        TopicPartition("orders", 0), group=group, offset=offset, leader_epoch=0, time_ms=time_ms, citation=HERE
    )


def test_a_group_that_had_committed_later_was_set_back():
    now = [commit(10, 100), commit(30, 100, "kept")]
    before = [commit(25, 200), commit(5, 300), commit(90, 50), commit(20, 90, "kept")]

    assert [GroupAtRisk(group="g", offset=10, kind="set-back", citation=HERE, was_at=25)] == groups_at_risk(
        now, (), log_end=100, earlier=before
    )
    assert [] == groups_at_risk(now, (), log_end=100)


def changed_retention(time_ms):
    topic = TopicPartition(TOPIC, -1)
    detail = {"name": "retention.ms", "value": "1000"}
    return (
        TimelineEntry(kind=EventKind.TOPIC_CREATED, time_ms=5_000, topic_partition=topic),
        TimelineEntry(kind=EventKind.CONFIG_CHANGE, time_ms=time_ms, topic_partition=topic, detail=detail),
    )


def test_records_that_a_change_of_retention_deleted_are_named_with_what_still_holds_them():
    moved = replace(INCIDENT, log_start_offset=50)

    def told(incident, time_ms):
        return [one for one in words(incident, *changed_retention(time_ms)).tell if "below the log start" in one]

    (sentence,) = told(moved, 60_000)
    assert "Offsets 0 to 49" in sentence
    assert "retention.ms was set to 1000" in sentence
    assert [] == told(moved, 5_100)
    assert [] == told(INCIDENT, 60_000)


def lost_by(cause, confidence, records):
    return replace(LOSS, cause=cause, confidence=confidence, records=records)


ELECTION = lost_by(CauseName.UNCLEAN_ELECTION, "proven", 64)
ELECTION_WORDS = CAUSES[CauseName.UNCLEAN_ELECTION].name
POWER_WORDS = CAUSES[CauseName.POWER_LOSS].name


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ((), ELECTION_WORDS),
        ((lost_by(CauseName.POWER_LOSS, "likely", 3),), f"{ELECTION_WORDS} and {POWER_WORDS}"),
        (
            (lost_by(CauseName.UNKNOWN, "possible", 76),),
            f"{ELECTION_WORDS} for 64 of them; of the other 76 the cause is unknown",
        ),
        (
            (lost_by(CauseName.POWER_LOSS, "possible", 1),),
            f"{ELECTION_WORDS} for 64 of them; of the other one the cause is unknown, {POWER_WORDS} is possible",
        ),
        (
            (lost_by(CauseName.UNCLEAN_ELECTION, "possible", 2),),
            f"{ELECTION_WORDS} for 64 of them; of the other 2 the cause is unknown, the same is possible",
        ),
    ],
)
def test_a_cause_is_said_of_no_more_records_than_it_is_known_of(others, expected):
    assert expected == causes_of([ELECTION, *others])


def test_a_cause_that_is_only_possible_is_none():
    assert "cause unknown" == causes_of([lost_by(CauseName.UNKNOWN, "possible", 1)])
    assert f"cause unknown, {POWER_WORDS} is possible" == causes_of([lost_by(CauseName.POWER_LOSS, "possible", 1)])


@pytest.mark.parametrize(
    ("kind", "committed", "is_calm"),
    [("reassignment", "possible", False), ("reassignment", "no", True), ("delete-records", "possible", True)],
)
def test_a_reassignment_of_a_partition_that_lost_records_is_not_said_to_be_without_loss(kind, committed, is_calm):
    done = Operation(
        kind=kind, topic_partition=INCIDENT.partition, time_ms=1, meaning="orders-0 was acted upon", citations=(HERE,)
    )
    incident = replace(INCIDENT, losses=(replace(LOSS, committed=committed, was_committed=committed),))

    found = conclude(
        [incident], (), operations=(done,), log_files=(), inputs=WHOLE.inputs, clocks=(), ask=Ask(), holders=Holders()
    ).conclusion

    assert ("On purpose, and no loss: orders-0 was acted upon." in found) is is_calm
    assert (
        "Asked for, in partitions that lost records, which may not be related: orders-0 was acted upon." in found
    ) is not is_calm


@pytest.mark.parametrize(("name", "is_asked_for"), [("server.log", True), ("broker-1/state-change.log.1", False)])
def test_a_state_change_log_that_is_given_is_not_asked_for(name, is_asked_for):
    file, clock = replace(log_file(""), path=name), Clock(shift_ms=0, source="named")
    asked = [line for line in missing_evidence((), (file,), (), (clock,)) if "state-change.log" in line]

    assert is_asked_for == bool(asked)


@pytest.mark.parametrize("node_id", [2, Absent.UNKNOWN])
def test_a_log_that_names_no_broker_may_be_of_any(node_id):
    file, clock = replace(log_file(""), node_id=node_id), Clock(shift_ms=0, source="named")
    broker = Input(path="broker-1", kind="broker", broker_id=1)

    [asked] = [line for line in missing_evidence((), (file,), (broker,), (clock,)) if "broker 1" in line]

    expected = "No log file says that it is of broker 1; 1 log file names no broker."
    assert asked == (expected if node_id is Absent.UNKNOWN else "The log files of broker 1 are not among the inputs.")
