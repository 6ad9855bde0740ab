"""What every search of a topic's partitions shares: the comparison of replicas, the settings of the topic, and what is known of changes of leaders."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kforensics.case.cluster import cluster_of
from kforensics.case.comparison import comparison_of
from kforensics.case.model import Case, now_of, places_of
from kforensics.commands.tracing.account import TruncationAccount
from kforensics.commands.tracing.records import Place
from kforensics.commands.tracing.removal import removal_settings
from kforensics.commands.tracing.scan import ScannedReplica
from kforensics.damage import Absent
from kforensics.evidence.content.search import RecordSearch
from kforensics.evidence.model import Problem, Replica
from kforensics.reconcile.replicas.report import PartitionReport
from kforensics.reconcile.trace.fate import FateJudge
from kforensics.reconcile.trace.found_record import LaterRecord
from kforensics.reconcile.trace.model import CopyKind, SearchedPartition, TracedRecord
from kforensics.units import TopicPartition

if TYPE_CHECKING:
    from kforensics.reconcile.incident.model import PartitionIncident


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
            report: what `diff` says of it.
            incident: what `explain` says of it.
            successors: by key, records of that key, of no aborted or open transaction.
            is_compacted: a cleaner is shown to work on it.
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
        )


def current_id(scanned: Sequence[ScannedReplica], report: PartitionReport | None) -> str | Absent:
    """Return the id of the topic as it is now.

    Args:
        report: what `diff` says of it.
    """
    if report is not None and not isinstance(report.topic_id, Absent):
        return report.topic_id
    ids = [one.replica.topic_id for one in scanned if one.kind is CopyKind.LIVE]
    return next((one for one in ids if not isinstance(one, Absent)), Absent.UNKNOWN)


def is_of(replica: Replica, current: str | Absent) -> bool:
    """Whether a replica may be of the topic of an id.

    Args:
        replica: whose `partition.metadata` may be missing.
        current: the topic id of now; absent where it is not known.
    """
    return isinstance(current, Absent) or isinstance(replica.topic_id, Absent) or replica.topic_id == current
