"""Facts about the cluster that stand beside the replicas: the metadata log and the consumer groups among the inputs."""

from collections.abc import Mapping

from kforensics.damage import Absent
from kforensics.evidence.collect import PartitionPlace, Places, find_places
from kforensics.evidence.group_commits import OFFSETS_TOPIC, GroupCommitRecord, walk_group_commits
from kforensics.evidence.inputs import Inputs
from kforensics.reconcile.facts import ClusterFacts, GroupCommit, Leadership
from kforensics.units import TopicPartition


class GatheredFacts:
    """What the inputs say of leaders, in-sync replicas, topic ids and committed consumer offsets; each is read when it is first asked for."""

    def __init__(self, offsets_places: tuple[PartitionPlace, ...]) -> None:
        self._offsets_places = offsets_places
        self._commits: Mapping[TopicPartition, tuple[GroupCommit, ...]] | None = None

    def leaderships(self, partition: TopicPartition, topic_id: str | Absent) -> tuple[Leadership, ...]:  # noqa: ARG002
        """Every recorded state of the partition, oldest first."""
        return ()

    def topic_id(self, topic: str) -> str | Absent:  # noqa: ARG002
        """The id under which the metadata log knows the topic now."""
        return Absent.UNKNOWN

    def unclean_restarts(self, broker_id: int) -> tuple[int, ...]:  # noqa: ARG002
        """Offsets in the metadata log where the broker registered anew without a clean shutdown before."""
        return ()

    def metadata_version(self) -> int | Absent:
        """The feature level `metadata.version` of the cluster."""
        return Absent.UNKNOWN

    def min_insync_replicas(self, topic: str) -> int:  # noqa: ARG002
        """The topic's or the cluster's `min.insync.replicas`, else Kafka's default of 1."""
        return 1

    def commits(self, partition: TopicPartition) -> tuple[GroupCommit, ...]:
        """The highest offset that each group committed in each leader epoch."""
        if self._commits is None:
            self._commits = _highest_commits(self._offsets_places)
        return self._commits.get(partition, ())


def _highest_commits(places: tuple[PartitionPlace, ...]) -> dict[TopicPartition, tuple[GroupCommit, ...]]:
    best: dict[tuple[TopicPartition, str, int | Absent], GroupCommitRecord] = {}
    for commit in walk_group_commits(places):
        key = (commit.partition, commit.group, commit.leader_epoch)
        if key not in best or best[key].offset < commit.offset:
            best[key] = commit
    out: dict[TopicPartition, list[GroupCommit]] = {}
    for commit in best.values():
        out.setdefault(commit.partition, []).append(
            GroupCommit(
                group=commit.group,
                offset=commit.offset,
                leader_epoch=commit.leader_epoch,
                time_ms=commit.time_ms,
                citation=commit.citation,
            )
        )
    return {partition: tuple(commits) for partition, commits in out.items()}


def gather_facts(inputs: Inputs, places: Places | None = None) -> ClusterFacts:
    """The facts that the inputs hold; `places` where they were found before."""
    known = places or find_places(inputs)
    offsets = tuple(place for tp, group in known.by_partition.items() if tp.topic == OFFSETS_TOPIC for place in group)
    return GatheredFacts(offsets)
