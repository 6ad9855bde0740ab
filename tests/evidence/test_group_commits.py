from kforensics.damage import Absent
from kforensics.evidence.group_commits import OFFSETS_TOPIC, walk_group_commits
from kforensics.evidence.inputs import find_inputs
from kforensics.evidence.places import find_places
from kforensics.units import TopicPartition


def commits_of(path):
    places = find_places(find_inputs([path]))
    return list(
        walk_group_commits(p for tp, group in places.by_partition.items() if tp.topic == OFFSETS_TOPIC for p in group)
    )


def test_offsets_past_the_log_end_are_found(incident):
    found = commits_of(incident("consumer-ahead-4.x") / "snapshots" / "99-final")

    billing = [c for c in found if c.partition == TopicPartition("billing", 0)]
    assert 120 == max(c.offset for c in billing)
    assert all(c.citation.path.startswith("__consumer_offsets-") for c in billing)
    assert {Absent.NOT_WRITTEN} == {c.leader_epoch for c in billing}


def test_a_directory_without_groups_gives_none(fixtures):
    assert [] == commits_of(fixtures / "unclean-election" / "controller-100")
