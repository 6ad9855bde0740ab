from itertools import pairwise
from typing import Any

import pytest

from kforensics.case.cluster import cluster_of
from kforensics.damage import Absent
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.evidence.event_kinds import EventKind
from kforensics.evidence.metadata.events import change_events, is_unclean_election
from kforensics.evidence.metadata.state import newest_log
from kforensics.formats.log.batch_table import CONTROL_BIT
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from kforensics.formats.messages.control import ControlType, encode_control_record
from kforensics.protocol.truncation import ProtocolName
from kforensics.reconcile.observed.broker_log_facts import facts_from_logs
from kforensics.reconcile.observed.facts import ClusterFacts
from kforensics.reconcile.observed.metadata_facts import MetadataFacts, recorded_unclean_elections
from kforensics.units import TopicPartition
from tests.builders.cases import case_of
from tests.builders.metadata_logs import TOPIC_ID, history_of, metadata_batch, metadata_record

OTHER_TOPIC_ID = "R-kKWFdjT42_xP0jtMe7nQ"


def gathered(*paths):
    inputs = find_inputs(paths, with_server_logs=True)
    return cluster_of(case_of(inputs))


def test_metadata_shows_unclean_elections(fixtures):
    facts = gathered(fixtures / "unclean-election").facts
    states = facts.leaderships(TopicPartition("orders", 0), facts.topic_id("orders"))

    assert [(2, 1)] == [(s.leader, s.leader_epoch) for s in states if s.unclean]
    assert frozenset({1}) in [s.isr for s in states]
    assert facts.has_metadata_log()
    assert 1 == facts.needed_in_sync("orders")
    assert 2 == facts.needed_in_sync("payments")
    assert Absent.UNKNOWN is facts.topic_id("no-such-topic")


def test_a_topics_own_setting_takes_precedence_over_that_of_the_brokers(fixtures):
    facts = gathered(fixtures / "unclean-election").facts
    logged = facts_from_logs((), facts, configured=[3])

    assert 1 == logged.needed_in_sync("orders")
    assert 2 == logged.needed_in_sync("payments")
    assert 3 == facts_from_logs((), ClusterFacts(), configured=[3]).needed_in_sync("orders")


def test_the_metadata_quorum_has_its_own_leaders(incident):
    facts = gathered(incident("kraft-quorum-3x") / "snapshots" / "99-final").facts
    states = facts.leaderships(TopicPartition("__cluster_metadata", 0), Absent.UNKNOWN)

    assert {(101, 102, 103)} == {tuple(sorted(s.replicas)) for s in states}
    assert sorted(s.leader_epoch for s in states) == [s.leader_epoch for s in states]


def test_logs_show_leaders_without_metadata(incident):
    root = incident("unclean-election-2.8")
    found = gathered(root / "snapshots" / "99-final", root / "logs")

    assert found.facts.leaderships(TopicPartition("orders", 0), Absent.UNKNOWN)
    assert {1: ProtocolName.KIP_595, 2: ProtocolName.KIP_595, 3: ProtocolName.KIP_595} == found.protocol_hints
    assert not found.facts.has_metadata_log()


def test_old_brokers_speak_old_protocols(incident):
    assert {ProtocolName.KIP_101} == set(
        gathered(
            incident("fast-failover-1.1") / "snapshots" / "99-final", incident("fast-failover-1.1") / "logs"
        ).protocol_hints.values()
    )


NOTHING_COMMITS_ALONE = "min.insync.replicas=2\n"


@pytest.mark.parametrize(
    ("settings", "log", "needed"),
    [
        (None, None, Absent.UNKNOWN),
        ("log.dirs=/data\n", None, Absent.UNKNOWN),
        (NOTHING_COMMITS_ALONE, None, 2),
        ("min.insync.replicas=1\n" + NOTHING_COMMITS_ALONE, None, 2),
        (NOTHING_COMMITS_ALONE, "Kafka version: 3.6.2", 1),
        (NOTHING_COMMITS_ALONE, "Kafka version: 3.7.0", 2),
        (None, "Kafka version: 3.6.2", 1),
    ],
)
def test_how_many_must_be_in_sync_is_known_from_settings_and_versions_only(settings, log, needed, tmp_path):
    folder = tmp_path / "broker-1"
    folder.mkdir()
    if settings is not None:
        (folder / "server.properties").write_text(settings)
    line = f"[2024-05-01 12:00:00,123] INFO {log} (org.apache.kafka.common.utils.AppInfoParser)\n" if log else ""
    start = "[2024-05-01 12:00:01,123] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n"
    (folder / "server.log").write_text(line + start)

    assert needed == gathered(tmp_path).facts.needed_in_sync("orders")


@pytest.mark.parametrize("name", ["unclean-election-4.x", "power-loss-4.x", "kraft-quorum-3x"])
def test_unclean_elections_are_found_without_making_every_state(name, incident):
    found = gathered(incident(name) / "snapshots" / "99-final")
    history = newest_log(found.histories)
    assert history is not None

    one_by_one = {
        (TopicPartition(state.topic, state.partition), state.when.offset)
        for key in history.partitions
        for before, state in pairwise(history.partitions[key])
        if is_unclean_election(before, state)
    }

    assert one_by_one == {(partition, state.recorded_at) for partition, _, state in recorded_unclean_elections(history)}
    assert all(
        state.unclean and state.leader_epoch > before.leader_epoch
        for _, before, state in recorded_unclean_elections(history)
    )


def test_the_timeline_and_the_judgement_call_the_same_elections_unclean(tmp_path):
    partition: dict[str, Any] = {"partition_id": 0, "topic_id": TOPIC_ID, "replicas": (1, 2, 3)}
    states: list[dict[str, Any]] = [
        {"leader": 1, "leader_epoch": 5, "isr": (2, 3)},
        {"leader": 1, "leader_epoch": 6, "isr": (2, 3)},  # the same leader again, from outside of the ISR
        {"leader": 1, "leader_epoch": 4, "isr": (2, 3)},  # no controller lowers a leader epoch
        {"leader": 3, "leader_epoch": 7, "isr": (3,)},
        {"leader": 3, "leader_epoch": 7, "isr": (3,), "replicas": (4, 1, 2, 3), "adding_replicas": (4,)},
        {"leader": 4, "leader_epoch": 8, "isr": (4,), "replicas": (4,)},  # it joined the ISR, which ends the move
    ]
    records = [("PartitionRecord", partition | state | {"partition_epoch": at}) for at, state in enumerate(states)]
    named: list[tuple[str, dict[str, Any]]] = [("TopicRecord", {"name": "t", "topic_id": TOPIC_ID}), *records]
    history = history_of(tmp_path, metadata_batch(0, [metadata_record(name, fields) for name, fields in named]))

    events = change_events(history, wants=lambda event: event.kind is EventKind.UNCLEAN_ELECTION)
    assert [6] == [event.leader_epoch for event in events]
    assert [6] == [state.leader_epoch for _, _, state in recorded_unclean_elections(history)]


@pytest.mark.parametrize(("voters", "is_newest"), [((103,), False), ((101, 103), True), ((101, 102, 103), True)])
def test_a_minority_of_the_voters_may_lack_the_newest_metadata(incident, voters, is_newest):
    final = incident("kraft-quorum-3x") / "snapshots" / "99-final"

    assert is_newest is gathered(*(final / f"controller-{voter}" for voter in voters)).facts.is_newest_metadata()


def test_a_topic_is_created_again_at_the_time_of_its_record(tmp_path):
    made: tuple[str, dict[str, Any]] = ("TopicRecord", {"name": "t"})
    removed: tuple[str, dict[str, Any]] = ("RemoveTopicRecord", {})
    steps = [
        (made, TOPIC_ID, 1_000),
        (removed, TOPIC_ID, 2_000),
        (made, OTHER_TOPIC_ID, 3_000),
        (removed, OTHER_TOPIC_ID, 4_000),
    ]
    batches = [
        metadata_batch(at, [metadata_record(name, {**fields, "topic_id": topic_id})], times_ms=[time_ms])
        for at, ((name, fields), topic_id, time_ms) in enumerate(steps)
    ]

    known = [MetadataFacts(history_of(tmp_path / f"{count}", *batches[:count]), lambda _: ()) for count in range(1, 5)]

    assert [Absent.UNKNOWN, Absent.UNKNOWN, 3_000, Absent.UNKNOWN] == [one.recreated_ms("t") for one in known]
    assert [1_000, Absent.UNKNOWN, 3_000, Absent.UNKNOWN] == [one.exists_since_ms("t") for one in known]


def _control(offset, kind, fields):
    record = (1_000, *encode_control_record(kind, fields))
    return encode_record_batch(build_record_batch(offset, [record], partition_leader_epoch=1, attributes=CONTROL_BIT))


def test_voters_are_those_of_the_newest_record_that_names_them(tmp_path):
    """A controller was removed within the leader's term (KIP-853)."""
    led = {"version": 0, "leader_id": 100, "voters": [{"voter_id": number} for number in (100, 101, 102)]}
    voters: list[dict[str, Any]] = [
        {"voter_id": number, "voter_directory_id": TOPIC_ID, "endpoints": []} for number in (102, 100)
    ]
    removed = _control(1, ControlType.KRAFT_VOTERS, {"version": 0, "voters": voters})
    histories = [
        history_of(tmp_path / name, *batches)
        for name, batches in (
            ("before", [_control(0, ControlType.LEADER_CHANGE, {**led, "granting_voters": []})]),
            ("after", [_control(0, ControlType.LEADER_CHANGE, {**led, "granting_voters": []}), removed]),
            ("alone", [removed]),
        )
    ]
    partition = TopicPartition("__cluster_metadata", 0)
    facts = [MetadataFacts(one, lambda _partition: (), is_of_now=True) for one in histories]

    assert [(100, 101, 102), (100, 102), (100, 102)] == [one.current_voters for one in histories]
    assert [[(100, 101, 102)], [(100, 102)], []] == [
        [state.replicas for state in one.leaderships(partition, Absent.UNKNOWN)] for one in facts
    ]
