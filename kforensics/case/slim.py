"""Reports and replicas without their batch tables and digests: what is kept of a partition once it is compared."""

from dataclasses import replace

import numpy as np

from kforensics.damage import Absent
from kforensics.evidence.model import DIGEST_DTYPE, Replica, Segment
from kforensics.reconcile.logs.loaded_log import LoadedLog
from kforensics.reconcile.replicas.holders import SoleHolder
from kforensics.reconcile.replicas.report import PartitionReport


def without_batches(report: PartitionReport) -> PartitionReport:
    """Return the report without batch tables and digests, which only the comparison needs.

    Args:
        report: it stays as it is; a view that it names twice is one view in the result too.
    """
    # A view stays one object wherever the report names it: readers compare by identity.
    slim: dict[int, LoadedLog] = {}

    def view(one: LoadedLog) -> LoadedLog:
        if id(one) not in slim:
            segments = tuple(map(_slim_segment, one.segments))
            slim[id(one)] = replace(one, replica=without_tables(one.replica), segments=segments)
        return slim[id(one)]

    def holders(those: tuple[SoleHolder, ...]) -> tuple[SoleHolder, ...]:
        return tuple(one._replace(view=view(one.view)) for one in those)

    replicas = tuple(
        replace(r, view=view(r.view), compared_with=view(r.compared_with) if r.compared_with else None)
        for r in report.replicas
    )
    what_if = tuple(
        w._replace(leader=view(w.leader), truncations=tuple((view(v), truncation) for v, truncation in w.truncations))
        for w in report.what_if
    )
    leader = report.leader._replace(view=view(report.leader.view)) if report.leader else None
    return replace(
        report,
        replicas=replicas,
        what_if=what_if,
        leader=leader,
        set_aside=tuple(map(without_tables, report.set_aside)),
        odd_ones=tuple(one._replace(view=view(one.view)) for one in report.odd_ones),
        sole_holders=holders(report.sole_holders),
        unassigned_holders=holders(report.unassigned_holders),
    )


def without_tables(replica: Replica) -> Replica:
    """Return the replica without the batch tables and digests of its segments.

    Args:
        replica: as it was read; it stays as it is.
    """
    return replace(
        replica,
        segments=tuple(map(_slim_segment, replica.segments)),
        deleted_segments=tuple(map(_slim_segment, replica.deleted_segments)),
    )


def _slim_segment(segment: Segment) -> Segment:
    return replace(segment, batches=Absent.NOT_WRITTEN, digests=np.zeros(0, dtype=DIGEST_DTYPE))
