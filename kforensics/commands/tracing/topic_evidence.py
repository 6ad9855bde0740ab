"""What every search of a topic's partitions shares: the comparison of replicas, the settings of the topic, and what is known of changes of leaders."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

from kforensics.case.cluster import Cluster, cluster_of
from kforensics.case.comparison import comparison_of
from kforensics.case.model import Case, now_of, places_of
from kforensics.case.settings import retention_of, settings_by_node
from kforensics.case.tiers import remote_copies_of
from kforensics.commands.tracing.records import Place
from kforensics.commands.tracing.scan import ScannedReplica
from kforensics.damage import Absent
from kforensics.evidence.content.search import RecordSearch
from kforensics.evidence.metadata.state import newest_log
from kforensics.evidence.model import Problem, Replica
from kforensics.protocol.coordinators import CREATED_WITH, created_policy
from kforensics.reconcile.history.log_starts import LogStartMove, log_start_moves
from kforensics.reconcile.observed.facts import Leadership
from kforensics.reconcile.replicas.report import PartitionReport
from kforensics.reconcile.trace.fate import FateJudge
from kforensics.reconcile.trace.found_record import LaterRecord
from kforensics.reconcile.trace.model import CopyKind, SearchedPartition, TracedRecord
from kforensics.reconcile.trace.removal_time import NO_LIMIT, RemovalSettings
from kforensics.units import TopicPartition
from kforensics.words import listed

if TYPE_CHECKING:
    from kforensics.reconcile.incident.model import PartitionIncident


class TruncationAccount:
    """What metadata and server logs say about changes of leaders, at which followers truncate what the new leader lacks."""

    def __init__(self, gathered: Cluster) -> None:
        self._facts = gathered.facts
        self._has_metadata = newest_log(gathered.histories) is not None
        self._logged_from: dict[int, int | Absent] = {}
        for item in gathered.events:
            if isinstance(item.node_id, int) and isinstance(item.time_ms, int):
                self._logged_from.setdefault(item.node_id, item.time_ms)
        for file in gathered.log_files:
            if isinstance(file.node_id, int):
                self._logged_from.setdefault(file.node_id, Absent.UNKNOWN)

    def has_changed(self, partition: TopicPartition, topic_id: str | Absent) -> bool:
        """Whether more than one broker led, by what is on record."""
        return len(_leaders(self._facts.leaderships(partition, topic_id))) > 1

    def doubt(self, partition: TopicPartition, topic_id: str | Absent, brokers: Collection[int]) -> str:
        """Return why a truncation may have left no trace in the inputs; empty where one would have."""
        states = self._facts.leaderships(partition, topic_id)
        if self._has_metadata and states and len(_leaders(states)) < 2:
            return ""
        silent = sorted(set(brokers) - self._logged_from.keys())
        if silent or not brokers:
            who = f"broker {listed([str(one) for one in silent])}" if silent else "any broker"
            changed = (
                "its leader has changed"
                if len(_leaders(states)) > 1
                else "no input shows that its leader never changed"
            )
            return f"{changed}, and no server.log of {who} shows whether records were truncated then"
        changes = [one.time_ms for one in states[1:] if isinstance(one.time_ms, int)]
        late = sorted(
            broker
            for broker in brokers
            if changes and isinstance(since := self._logged_from[broker], int) and since > min(changes)
        )
        if late:
            return f"the logs of broker {listed([str(one) for one in late])} begin after its leader had changed, so that a truncation then may be in none"
        return ""


def _leaders(states: Collection[Leadership]) -> set[int]:
    return {one.leader for one in states if isinstance(one.leader, int)}


DAY_MS = 86_400_000


def removal_settings(case: Case, problems: list[Problem]) -> Callable[[int | Absent], RemovalSettings]:
    """Return a function that gives the settings of the topic that is asked about at a broker."""
    topic = case.ask.topic or ""
    by_node = settings_by_node(case, problems)

    @cache
    def of_broker(broker_id: int | Absent) -> RemovalSettings:
        settings = by_node(broker_id)
        policy, is_known = settings.of_topic(topic, "cleanup.policy")
        if policy is None and (settings.are_topics_known or topic in CREATED_WITH):
            policy, is_known = created_policy(topic), True
        return RemovalSettings(
            cleanup_policy=policy if policy is not None and is_known else Absent.UNKNOWN,
            delete_retention_ms=settings.number(topic, "delete.retention.ms", DAY_MS),
            min_compaction_lag_ms=settings.number(topic, "min.compaction.lag.ms", 0),
            max_compaction_lag_ms=settings.number(topic, "max.compaction.lag.ms", NO_LIMIT),
            retention=settings.retention(topic).policy,
            is_known=settings.are_topics_known,
        )

    return of_broker


class TracedPartition(NamedTuple):
    """What was searched of a partition, and the records that match."""

    looked: SearchedPartition
    records: Callable[[], Iterable[TracedRecord]]
    files: Sequence[Place]
    """The segment files that were searched."""
    damaged: Sequence[Place]
    """Those of them that can't be read at some place."""


class TopicEvidence:
    """The inputs of a search, and what is known of them before any log is read.

    Args:
        problems: what can't be read is added.
    """

    def __init__(self, case: Case, search: RecordSearch, problems: list[Problem]) -> None:
        self.case = case
        self.search = search
        self.problems = problems
        now = now_of(case)
        problems += places_of(now).problems if case.ranks else ()
        self.comparison = comparison_of(now)
        self.truncations = TruncationAccount(cluster_of(case))
        self.settings = removal_settings(case, problems)
        self.remote = remote_copies_of(case)

    def judge(
        self,
        partition: TopicPartition,
        replicas: Sequence[ScannedReplica],
        report: PartitionReport | None,
        incident: "PartitionIncident | None" = None,
        successors: Mapping[bytes, Sequence[LaterRecord]] | None = None,
        *,
        is_compacted: bool = False,
    ) -> FateJudge:
        """Return the judge of the records of one partition.

        Args:
            successors: by key, records of that key, of no aborted or open transaction.
        """
        current = current_id(replicas, report)
        return FateJudge(
            partition,
            report=report,
            incident=incident,
            views=[one.log for one in replicas if one.kind is CopyKind.LIVE and is_of(one.replica, current)],
            is_compacted=is_compacted,
            successors=successors or {},
            topic_ids=frozenset(
                str(one.replica.topic_id)
                for one in replicas
                if one.kind is CopyKind.LIVE and not isinstance(one.replica.topic_id, Absent)
            ),
            settings=self.settings,
            remote=self.remote,
            log_starts=self._log_starts.get(partition, ()),
            retention=partial(retention_of(self.case), partition),
        )

    @cached_property
    def _log_starts(self) -> Mapping[TopicPartition, Sequence[LogStartMove]]:
        return log_start_moves(cluster_of(self.case).events)


def current_id(scanned: Sequence[ScannedReplica], report: PartitionReport | None) -> str | Absent:
    """Return the id of the topic as it is now."""
    if report is not None and not isinstance(report.topic_id, Absent):
        return report.topic_id
    ids = [one.replica.topic_id for one in scanned if one.kind is CopyKind.LIVE]
    return next((one for one in ids if not isinstance(one, Absent)), Absent.UNKNOWN)


def is_of(replica: Replica, current: str | Absent) -> bool:
    """Whether a replica may be of the topic of an id."""
    return isinstance(current, Absent) or isinstance(replica.topic_id, Absent) or replica.topic_id == current
