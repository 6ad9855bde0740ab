"""Reports on the replicas of a partition, where nothing is known beyond what a test says."""

from collections.abc import Sequence
from typing import Any

from kforensics.evidence.model import BatchReader, Replica
from kforensics.reconcile.observed.facts import ClusterFacts
from kforensics.reconcile.replicas.partition import PartitionJudge
from kforensics.reconcile.replicas.report import PartitionReport
from tests.builders.logs import MemoryReader


def report_on(
    replicas: Sequence[Replica],
    *,
    reader: BatchReader | None = None,
    facts: ClusterFacts | None = None,
    wanted_leader: int | None = None,
    **known: Any,
) -> PartitionReport:
    """Return the report on replicas whose records a reader gives, with what else is known."""
    judge = PartitionJudge(replicas, reader or MemoryReader({}), facts or ClusterFacts(), **known)
    return judge.report(wanted_leader)
