from kforensics.damage import Absent
from kforensics.evidence.collect import find_places
from kforensics.evidence.inputs import find_inputs
from kforensics.pipeline.facts import gather_facts
from kforensics.protocol.truncation import ProtocolName
from kforensics.units import TopicPartition


def gathered(*paths):
    inputs = find_inputs(paths, with_server_logs=True)
    return gather_facts(inputs, find_places(inputs))


def test_metadata_tells_of_unclean_elections(fixtures):
    facts = gathered(fixtures / "unclean-election").facts
    states = facts.leaderships(TopicPartition("orders", 0), facts.topic_id("orders"))

    assert [(2, 1)] == [(s.leader, s.leader_epoch) for s in states if s.unclean]
    assert frozenset({1}) in [s.isr for s in states]
    assert facts.has_metadata_log()
    assert 1 == facts.needed_in_sync("orders")
    assert 2 == facts.needed_in_sync("payments")
    assert Absent.UNKNOWN is facts.topic_id("no-such-topic")


def test_the_metadata_quorum_has_its_own_leaders(incident):
    facts = gathered(incident("kraft-quorum-3x") / "snapshots" / "99-final").facts
    states = facts.leaderships(TopicPartition("__cluster_metadata", 0), Absent.UNKNOWN)

    assert {(101, 102, 103)} == {tuple(sorted(s.replicas)) for s in states}
    assert sorted(s.leader_epoch for s in states) == [s.leader_epoch for s in states]


def test_logs_tell_where_there_is_no_metadata(incident):
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
