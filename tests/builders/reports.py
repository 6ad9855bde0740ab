"""Reports on the replicas of a partition, where nothing is known beyond what a test says."""

from collections.abc import Sequence
from typing import Any

from kforensics.ask.model import Ask
from kforensics.evidence.model import BatchReader, Replica
from kforensics.protocol.truncation import ProtocolName
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
    wanted_protocol: ProtocolName | None = None,
    stated_replicas: tuple[int, ...] = (),
    is_stopped: bool = False,
    **known: Any,
) -> PartitionReport:
    """Return the report on replicas whose records a reader gives, with what else is known."""
    ask = Ask(leader=wanted_leader, protocol=wanted_protocol, replicas=stated_replicas, is_stopped=is_stopped)
    return PartitionJudge(replicas, reader or MemoryReader({}), facts or ClusterFacts(), ask=ask, **known).report()
