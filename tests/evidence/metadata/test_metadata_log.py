"""The history that a metadata log tells: recorded clusters, and logs made for the rare cases."""

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kforensics.damage import Absent
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.evidence.event_kinds import EventKind
from kforensics.evidence.metadata.compare import LogComparison, MetadataTail, compare_metadata_logs
from kforensics.evidence.metadata.events import change_events
from kforensics.evidence.metadata.files import find_metadata_logs
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.evidence.metadata.log import read_metadata_log
from kforensics.evidence.metadata.replay import MetadataReplay
from kforensics.evidence.metadata.state import BROKER_RESOURCE, TOPIC_RESOURCE, When, newest_log
from kforensics.evidence.model import Citation
from kforensics.formats.log.batches import RecordBatch, build_record_batch, encode_record_batch
from kforensics.formats.messages.control import ControlType, encode_control_record
from kforensics.formats.messages.schema import Decoded
from kforensics.reconcile.observed.metadata_facts import MetadataFacts
from kforensics.reconcile.replicas.leader import source_of
from kforensics.units import TopicPartition
from tests.builders.directories import copied
from tests.builders.metadata_logs import TOPIC_ID, history_of, metadata_batch, metadata_record

Incident = Callable[[str], Path]


def read(*paths: Path) -> list[MetadataHistory]:
    return [read_metadata_log(files) for files in find_metadata_logs(find_inputs(paths))]


def kinds(history: MetadataHistory, topic: str, partition: int) -> list[tuple[int, str]]:
    return [
        (event.when.offset, event.kind.value)
        for event in change_events(history)
        if (event.topic, event.partition) == (topic, partition)
    ]


def test_an_unclean_election(incident: Incident) -> None:
    history = read(incident("unclean-election-4.x") / "snapshots/99-final/controller-100")[0]

    assert (history.problems, history.damage, history.unapplied, history.gaps) == ((), (), (), ())
    assert (history.start_offset, history.end_offset, history.metadata_version) == (0, 160, 27)
    states = history.partition_states("orders", 0)
    assert [(one.leader, one.leader_epoch, one.isr, one.when.offset) for one in states[:4]] == [
        (1, 0, (1, 2, 3), 22),
        (1, 0, (1, 3), 51),
        (1, 0, (1,), 60),
        (2, 1, (2,), 82),
    ]
    assert states[3].is_recovering
    assert states[3].when.citation.path == "__cluster_metadata-0/00000000000000000000.log"
    assert [one for one in kinds(history, "orders", 0) if one[1] == "unclean-election"] == [(82, "unclean-election")]
    unclean = [event for event in change_events(history) if event.kind is EventKind.UNCLEAN_ELECTION]
    assert sorted((event.topic, event.partition, event.leader_epoch) for event in unclean) == [
        ("orders", 0, 1),
        ("orders", 1, 3),
        ("orders", 2, 2),
        ("orders", 3, 1),
    ]


def test_the_state_at_an_offset(incident: Incident) -> None:
    history = read(incident("unclean-election-4.x") / "snapshots/99-final/controller-100")[0]

    before, after = history.at(81).partition("orders", 0), history.at(82).partition("orders", 0)
    assert before is not None
    assert after is not None
    assert (before.leader, after.leader) == (1, 2)
    assert history.at(17).partition("orders", 0) is None
    assert {broker_id: broker.is_fenced for broker_id, broker in history.at(90).brokers.items()} == {
        1: True,
        2: False,
        3: False,
    }
    config = history.latest().configs[2, "orders", "unclean.leader.election.enable"]
    assert (config.value, config.when.offset) == ("true", 20)
    newest = history.newest(after.topic_id, 0)
    assert newest is not None
    assert newest == history.partitions.at((after.topic_id, 0), 10_000)
    assert newest.leader is Absent.NOT_APPLICABLE
    assert history.newest("nobody", 0) is None


def test_the_preview_of_kraft(incident: Incident) -> None:
    histories = read(incident("epoch-truncate-2.8") / "snapshots/99-final")

    assert [one.node_id for one in histories] == [1, 2, 3, 100]
    history = histories[3]
    assert history.metadata_version is Absent.NOT_WRITTEN
    assert (history.problems, history.unapplied) == ((), ())
    assert [one.leader for one in history.partition_states("trades", 0)[:4]] == [1, 2, 2, 1]
    assert EventKind.UNCLEAN_ELECTION not in {event.kind for event in change_events(history)}


def test_logs_of_a_quorum_are_compared(incident: Incident) -> None:
    root = incident("kraft-quorum-3x") / "snapshots"
    killed = compare(read(root / "02-active-controller-killed"))
    assert killed.majority_end_offset == 87
    assert {log.history.node_id: log.behind for log in killed.logs} == {1: 0, 2: 0, 101: 0, 102: 6, 103: 6}

    later = compare(read(root / "03-old-controller-down-live"))
    tails = {log.history.node_id: log.tail for log in later.logs if not isinstance(log.tail, Absent)}
    assert tails == {101: MetadataTail(88, 92, 2)}
    assert next(log.common_end_offset for log in later.logs if log.history.node_id == 101) == 88
    assert later.majority_end_offset == 98
    assert later.voters == (101, 102, 103)
    assert later.newest.node_id in {102, 103}

    assert compare(read(root / "99-final" / "controller-101")).majority_end_offset is Absent.UNKNOWN
    assert compare_metadata_logs([]) is None
    assert newest_log([]) is None


def test_of_logs_that_end_alike_that_which_begins_first_counts_whatever_their_order(incident: Incident) -> None:
    (whole,) = read(incident("kraft-quorum-3x") / "snapshots" / "99-final" / "controller-101")
    later = replace(whole, start_offset=whole.start_offset + 1)

    assert newest_log([whole, later]) is newest_log([later, whole]) is whole


def test_what_one_log_lacks_by_damage_alone_is_no_difference_of_another_one(incident: Incident) -> None:
    (whole,) = read(incident("kraft-quorum-3x") / "snapshots" / "99-final" / "controller-101")
    lacking = whole.batches[10]
    gap = (int(lacking["base_offset"]), int(lacking["last_offset"]))
    damaged = replace(whole, batches=np.delete(whole.batches, 10), gaps=(gap,))

    for logs in ([whole, damaged], [damaged, whole]):
        assert {(0, Absent.NOT_APPLICABLE, False)} == {
            (one.behind, one.tail, one.is_mixed) for one in compare(logs).logs
        }


def compare(histories: Sequence[MetadataHistory]) -> LogComparison:
    comparison = compare_metadata_logs(histories)
    assert comparison is not None
    return comparison


def test_the_leader_of_a_compacted_log_stands_beside_it(incident: Incident, tmp_path: Path) -> None:
    """The record of the election is in a segment that a snapshot replaced."""
    source = incident("kraft-quorum-3x") / "snapshots/99-final/controller-101"
    target = tmp_path / "__cluster_metadata-0"
    target.mkdir()
    shutil.copy(source / "meta.properties", tmp_path)
    for name in ("00000000000000000176-0000000003.checkpoint", "quorum-state"):
        shutil.copy(source / "__cluster_metadata-0" / name, target)

    (whole,), (compacted,) = read(source), read(tmp_path)
    found = compacted.quorum_state
    (state,) = MetadataFacts(compacted, lambda _: ()).leaderships(TopicPartition("__cluster_metadata", 0), "")

    assert whole.quorum_state is None
    assert found is not None
    assert (found.leader_id, found.raft_epoch) == (102, 3)
    assert found.when.citation.path == "__cluster_metadata-0/quorum-state"
    assert (state.leader, state.leader_epoch, source_of(state)) == (102, 3, "quorum-state")
    assert compacted.quorum == []


def test_snapshots_alone(incident: Incident, tmp_path: Path) -> None:
    source = incident("kraft-quorum-3x") / "snapshots/99-final/controller-101/__cluster_metadata-0"
    whole = read(source)[0]
    target = tmp_path / "__cluster_metadata-0"
    target.mkdir()
    shutil.copy(source / "00000000000000000176-0000000003.checkpoint", target)
    alone = read(target)[0]

    assert (alone.start_offset, alone.end_offset) == (176, 176)
    told, known = whole.at(175), alone.latest()
    assert told.topics.keys() == known.topics.keys()
    for key, state in told.partitions.items():
        assert known.partitions[key]._replace(when=state.when, partition_epoch=state.partition_epoch) == state
        assert known.partitions[key].partition_epoch == state.partition_epoch
        assert known.partitions[key].when.from_snapshot
    assert {key: one.value for key, one in told.configs.items()} == {
        key: one.value for key, one in known.configs.items()
    }
    assert told.features == known.features
    assert {event.kind for event in change_events(alone)} <= {
        EventKind.SNAPSHOT,
        EventKind.CONFIG_CHANGE,
        EventKind.FEATURE_CHANGE,
        EventKind.BROKER_REGISTERED,
        EventKind.CONTROLLER_REGISTERED,
    }
    single = read(target / "00000000000000000176-0000000003.checkpoint")[0]
    assert single.latest().partitions.keys() == known.partitions.keys()


def test_a_damaged_part_is_closed_by_a_snapshot(incident: Incident, tmp_path: Path) -> None:
    source = incident("kraft-quorum-3x") / "snapshots/99-final/controller-101/__cluster_metadata-0"
    whole = read(source)[0]
    target = tmp_path / "__cluster_metadata-0"
    copied(source, target)
    log = target / "00000000000000000000.log"
    data = bytearray(log.read_bytes())
    place = int(whole.batches["position"][whole.batches["base_offset"] <= 120][-1])
    data[place + 70] ^= 1
    log.write_bytes(data)

    history = read(target)[0]

    assert len(history.damage) == 1
    assert len(history.gaps) == 1
    first, last = history.gaps[0]
    assert 100 < first <= 120 <= last
    assert "a snapshot has the state behind it" in history.problems[0].message
    told, known = whole.latest(), history.latest()
    assert told.partitions.keys() == known.partitions.keys()
    assert [one._replace(when=None) for one in told.partitions.values()] == [  # type: ignore[arg-type]
        known.partitions[key]._replace(when=None)  # type: ignore[arg-type]
        for key in told.partitions
    ]


def batch(offset: int, *records: tuple[str, dict[str, Any]], epoch: int = 1) -> bytes:
    values = [metadata_record(name, fields) for name, fields in records]
    return metadata_batch(offset, values, times_ms=[1_000 + offset] * len(values), epoch=epoch)


def leader_change(offset: int, leader: int, voters: Sequence[int]) -> bytes:
    named = tuple({"voter_id": voter} for voter in voters)
    key, value = encode_control_record(
        ControlType.LEADER_CHANGE, {"leader_id": leader, "voters": named, "granting_voters": named}
    )
    built: RecordBatch = build_record_batch(offset, [(5, key, value)], partition_leader_epoch=1, attributes=0x20)
    return encode_record_batch(built)


TOPIC = ("TopicRecord", {"name": "t", "topic_id": TOPIC_ID})
PARTITION = (
    "PartitionRecord",
    {
        "partition_id": 0,
        "topic_id": TOPIC_ID,
        "replicas": (1, 2, 3),
        "isr": (1, 2),
        "leader": 1,
        "leader_epoch": 0,
        "partition_epoch": 0,
        "eligible_leader_replicas": (3,),
    },
)


def change(**fields: Any) -> tuple[str, dict[str, Any]]:
    return "PartitionChangeRecord", {"partition_id": 0, "topic_id": TOPIC_ID, **fields}


def test_transactions_count_when_they_end(tmp_path: Path) -> None:
    history = history_of(
        tmp_path,
        batch(0, ("BeginTransactionRecord", {"name": "create"}), TOPIC, PARTITION),
        batch(3, ("EndTransactionRecord", {})),
        batch(4, ("BeginTransactionRecord", {}), change(leader=2), ("AbortTransactionRecord", {"reason": "no"})),
        batch(7, ("BeginTransactionRecord", {}), change(leader=3)),
    )

    assert [one.leader for one in history.partition_states("t", 0)] == [1]
    assert [(one.first_offset, one.last_offset, one.reason) for one in history.aborted] == [
        (4, 6, "no"),
        (7, 8, "the log ends inside the transaction"),
    ]


def test_epochs_rise_with_every_record_that_names_a_leader(tmp_path: Path) -> None:
    history = history_of(
        tmp_path,
        leader_change(0, 100, [100]),
        batch(1, TOPIC, PARTITION),
        batch(3, change(leader=1)),
        batch(4, change(isr=(1, 2, 3), eligible_leader_replicas=())),
        batch(5, change(leader=-1, isr=())),
        batch(6, change(leader=3, isr=(3,), leader_recovery_state=1)),
        batch(7, change(leader_recovery_state=0)),
        batch(8, change(replicas=(3, 4), adding_replicas=(4,), removing_replicas=(1,))),
        batch(9, change(directories=(TOPIC_ID, TOPIC_ID))),
        batch(10, ("RemoveTopicRecord", {"topic_id": TOPIC_ID})),
    )

    states = history.partition_states("t", 0)
    assert [one.leader_epoch for one in states] == [0, 1, 1, 2, 3, 3, 3, 3]
    assert [one.partition_epoch for one in states] == list(range(8))
    assert [kind for _, kind in kinds(history, "t", 0)] == [
        "partition-created",
        "leader-epoch-bump",
        "isr-expand",
        "elr-change",
        "leader-change",
        "isr-shrink",
        "unclean-election",
        "isr-expand",
        "leader-recovered",
        "reassignment",
        "directory-change",
    ]
    assert not history.latest().partitions
    assert history.at(9).partition("t", 0) is not None
    assert [one.leader_id for one in history.quorum] == [100]


def test_a_leader_out_of_the_elr_is_clean(tmp_path: Path) -> None:
    history = history_of(tmp_path, batch(0, TOPIC, PARTITION), batch(2, change(leader=3, isr=(3,))))
    assert EventKind.UNCLEAN_ELECTION not in {event.kind for event in change_events(history)}

    history = history_of(
        tmp_path,
        batch(0, TOPIC, PARTITION),
        batch(2, ("ClearElrRecord", {"topic_name": "t"})),
        batch(3, change(leader=3, isr=(3,))),
    )
    assert [kind for _, kind in kinds(history, "t", 0)][1:3] == ["elr-change", "unclean-election"]
    assert history.partition_states("t", 0)[1].partition_epoch == 1


def test_brokers(tmp_path: Path) -> None:
    registration = {
        "broker_id": 1,
        "broker_epoch": 0,
        "end_points": ({"name": "PLAIN", "host": "h", "port": 9, "security_protocol": 0},),
    }
    history = history_of(
        tmp_path,
        batch(0, ("RegisterBrokerRecord", registration)),
        batch(1, ("BrokerRegistrationChangeRecord", {"broker_id": 1, "fenced": -1})),
        batch(2, ("BrokerRegistrationChangeRecord", {"broker_id": 1, "in_controlled_shutdown": 1})),
        batch(3, ("BrokerRegistrationChangeRecord", {"broker_id": 1, "fenced": 1})),
        batch(4, ("BrokerRegistrationChangeRecord", {"broker_id": 1, "log_dirs": (TOPIC_ID,)})),
        batch(5, ("UnfenceBrokerRecord", {"id": 1})),
        batch(6, ("RegisterBrokerRecord", registration | {"broker_epoch": 6, "rack": "r"})),
        batch(7, ("UnregisterBrokerRecord", {"broker_id": 1, "broker_epoch": 6})),
        batch(8, ("FenceBrokerRecord", {"id": 9})),
    )

    assert [event.kind.value for event in change_events(history)] == [
        "broker-registered",
        "broker-unfenced",
        "broker-controlled-shutdown",
        "broker-fenced",
        "broker-log-dirs",
        "broker-unfenced",
        "broker-registered",
        "broker-unregistered",
    ]
    assert history.brokers[1][0].end_points == ("PLAIN://h:9",)
    assert not history.latest().brokers
    assert [name for name, _ in history.unapplied] == ["FenceBrokerRecord"]


def test_a_directory_of_another_broker_and_what_a_level_has_no_place_for(tmp_path: Path) -> None:
    def registered(broker: int, **fields: object) -> tuple[str, dict[str, object]]:
        return "RegisterBrokerRecord", {"broker_id": broker, "broker_epoch": broker, **fields}

    history = history_of(
        tmp_path,
        batch(0, ("FeatureLevelRecord", {"name": "metadata.version", "feature_level": 29})),
        batch(1, registered(1, log_dirs=(TOPIC_ID,))),
        batch(2, ("UnregisterBrokerRecord", {"broker_id": 1, "broker_epoch": 1})),
        batch(3, registered(2, log_dirs=(TOPIC_ID,))),
        batch(4, registered(3, log_dirs=(TOPIC_ID,))),
        batch(5, ("BrokerRegistrationChangeRecord", {"broker_id": 3, "broker_epoch": 3, "cordoned_log_dirs": ()})),
    )

    assert [(name, when.offset) for name, when in history.unapplied] == [("RegisterBrokerRecord", 4)]
    assert history.beyond_level() == "the cordoned log directories of one or more brokers"


def test_configurations_and_features(tmp_path: Path) -> None:
    config = {"resource_type": 2, "resource_name": "t", "name": "retention.ms"}
    history = history_of(
        tmp_path,
        batch(0, ("FeatureLevelRecord", {"name": "metadata.version", "feature_level": 20})),
        batch(1, ("ConfigRecord", config | {"value": "1"})),
        batch(2, ("ConfigRecord", config | {"value": None})),
        batch(3, ("FeatureLevelRecord", {"name": "metadata.version", "feature_level": 21})),
    )

    assert history.at(2).metadata_version == 20
    assert history.metadata_version == 21
    assert history.at(1).configs[2, "t", "retention.ms"].value == "1"
    assert not history.latest().configs


def test_a_topic_that_is_created_again_has_none_of_the_settings_of_the_deleted_one(tmp_path: Path) -> None:
    again = TOPIC_ID[:-1] + "w"
    config = {"resource_type": 2, "resource_name": "t", "name": "min.insync.replicas"}
    history = history_of(
        tmp_path,
        batch(0, TOPIC),
        batch(1, ("ConfigRecord", config | {"value": "2"})),
        batch(2, ("RemoveTopicRecord", {"topic_id": TOPIC_ID})),
        batch(3, ("TopicRecord", {"name": "t", "topic_id": again})),
    )

    assert history.at(1).configs[2, "t", "min.insync.replicas"].value == "2"
    assert not history.latest().configs


def test_a_setting_of_a_broker_that_a_snapshot_lacks_is_not_taken_for_that_of_a_topic(tmp_path: Path) -> None:
    """A snapshot that lacks the setting of the broker says nothing of the setting of the topic."""
    place = history_of(tmp_path, batch(0, TOPIC)).topics[TOPIC_ID].created
    replay = MetadataReplay()
    topic = Decoded("TopicRecord", 0, {"name": "1", "topic_id": TOPIC_ID})
    setting = {"name": "min.insync.replicas", "resource_name": "1", "value": "2"}
    of_topic = Decoded("ConfigRecord", 0, setting | {"resource_type": TOPIC_RESOURCE})
    of_broker = Decoded("ConfigRecord", 0, setting | {"resource_type": BROKER_RESOURCE})
    for message in (topic, of_topic, of_broker):
        replay.add(message, place, 0)
    replay.apply_snapshot((topic, of_topic), place._replace(offset=5, from_snapshot=True), 1)
    replay.add(Decoded("RemoveTopicRecord", 0, {"topic_id": TOPIC_ID}), place._replace(offset=6), 2)

    assert [(one.resource_type, one.value, one.when.offset) for one in replay.configs] == [
        (TOPIC_RESOURCE, "2", 0),
        (BROKER_RESOURCE, "2", 0),
        (BROKER_RESOURCE, None, 5),
        (TOPIC_RESOURCE, None, 6),
    ]


def test_records_that_are_not_understood_are_named(tmp_path: Path) -> None:
    odd = encode_record_batch(build_record_batch(0, [(1, None, b"\x01\x63\x00"), (1, None, None)]))
    history = history_of(tmp_path, odd, batch(2, change(leader=2)))

    assert [one.message for one in history.problems] == [
        "offset 0: a record is not understood: record type 99 is newer than 29, which kforensics knows",
        "offset 1: a record is not understood: there is no value",
    ]
    assert [name for name, _ in history.unapplied] == ["PartitionChangeRecord of no topic"]


def test_a_log_that_starts_late_without_a_snapshot(tmp_path: Path) -> None:
    history = history_of(tmp_path, batch(40, TOPIC, PARTITION))

    assert history.start_offset == 40
    assert history.gaps == ((0, 39),)
    assert "no snapshot covers them" in history.problems[0].message


@pytest.mark.parametrize("name", ["power-loss-4.x", "tiered-3.9", "consumer-ahead-4.x"])
def test_every_recorded_log_is_understood(incident: Incident, name: str) -> None:
    histories = read(incident(name) / "snapshots/99-final")

    assert len(histories) >= 3
    for history in histories:
        assert (history.problems, history.damage, history.unapplied, history.gaps) == ((), (), (), ())
        counted = Counter(event.kind for event in change_events(history))
        assert counted[EventKind.PARTITION_CREATED] == len(history.partitions)


@pytest.mark.parametrize("names_voters", [True, False])
def test_a_compacted_log_of_a_voter_is_known_by_the_files_beside_it(
    incident: Incident, tmp_path: Path, names_voters: bool
) -> None:
    """No record of the log names the voters: quorum-state does, or a snapshot."""
    copied(incident("epoch-truncate-3.9") / "snapshots" / "99-final", tmp_path / "now")
    for path in sorted((tmp_path / "now").rglob("__cluster_metadata-0/*.log")):
        path.rename(path.with_name("00000000000000000000-0000000001.checkpoint"))
    if not names_voters:
        for path in sorted((tmp_path / "now").rglob("quorum-state")):
            path.unlink()
    histories = read(tmp_path / "now")

    assert [] == [change for one in histories for change in one.quorum]
    assert ({100} if names_voters else set()) == {one.node_id for one in histories if one.is_of_voter}


def test_a_controller_is_unregistered_and_stays_a_voter(incident: Incident) -> None:
    (history,) = read(incident("controller-change-4.4") / "snapshots/99-final/controller-902")

    assert (history.problems, history.unread, history.unapplied) == ((), (), ())
    assert [one.is_registered for one in history.controllers[901]] == [True, False]
    assert all(one[-1].is_registered for key, one in history.controllers.items() if key != 901)
    (event,) = [one for one in change_events(history) if one.kind is EventKind.CONTROLLER_UNREGISTERED]
    assert (event.when.offset, event.broker_id) == (140, 901)
    assert history.current_voters == (902, 903, 904)


def test_a_snapshot_without_a_controller_unregisters_it(tmp_path: Path) -> None:
    replay = MetadataReplay()
    citation = Citation(input=0, path="x")
    registered = {"controller_id": 7, "incarnation_id": TOPIC_ID, "end_points": (), "features": ()}
    first = When(1, 1, 1_000, citation)
    for controller in (7, 8):
        fields = registered | {"controller_id": controller}
        replay.add(Decoded("RegisterControllerRecord", 0, fields, 27), first, 0)
    snapshot = When(9, 1, 2_000, citation, from_snapshot=True)
    replay.apply_snapshot([Decoded("RegisterControllerRecord", 0, registered, 27)], snapshot, 1)

    assert [one.is_registered for one in replay.controllers[7]] == [True]
    assert [(one.is_registered, one.when) for one in replay.controllers[8]] == [(True, first), (False, snapshot)]
    replay.add(Decoded("UnregisterControllerRecord", 0, {"controller_id": 9}, 29), first, 0)
    assert [name for name, _ in replay.unapplied] == ["UnregisterControllerRecord"]


def test_records_that_fit_nothing_before_them_are_noted(tmp_path: Path) -> None:
    other = {"name": "orders", "topic_id": "B" * 21 + "A"}
    history = history_of(
        tmp_path,
        metadata_batch(
            0,
            [
                metadata_record("TopicRecord", {"name": "orders", "topic_id": TOPIC_ID}),
                metadata_record("TopicRecord", other),
                metadata_record("RemoveTopicRecord", {"topic_id": TOPIC_ID}),
                metadata_record("RemoveTopicRecord", {"topic_id": other["topic_id"]}),
                metadata_record("TopicRecord", {"name": "orders", "topic_id": "C" * 21 + "A"}),
                metadata_record("PartitionRecord", {"partition_id": 0, "topic_id": "D" * 21 + "A", "replicas": (1,)}),
                metadata_record("EndTransactionRecord", {}),
                metadata_record("AbortTransactionRecord", {}),
            ],
        ),
    )

    assert [(name, when.offset) for name, when in history.unapplied] == [
        ("TopicRecord", 1),
        ("PartitionRecord of no topic", 5),
        ("EndTransactionRecord", 6),
        ("AbortTransactionRecord", 7),
    ]
