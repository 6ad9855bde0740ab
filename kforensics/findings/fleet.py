"""Findings about a fleet: where replicas are against where they should be, who leads, and what could not be compared without the disks."""

from collections.abc import Iterator, Mapping

from kforensics.damage import Absent
from kforensics.evidence.model import BatchReader
from kforensics.findings.model import Finding, Severity, finding
from kforensics.reconcile.logs.divergence import first_divergence
from kforensics.reconcile.replicas.placement import LeaderSpread, Placement
from kforensics.reconcile.replicas.report import PartitionReport
from kforensics.units import OffsetRange
from kforensics.words import form, listed


def placement_findings(report: PartitionReport, placement: Placement) -> Iterator[Finding]:
    """Yield the findings about the placement of one partition.

    Args:
        placement: where they are, and where the metadata says they should be.
    """
    partition = report.partition
    if placement.is_offline:
        yield finding(
            "KF401",
            severity=Severity.ERROR,
            statement=f"{partition} has no leader in the metadata log; its replicas are on {_brokers(placement.assigned)}",
            topic_partition=partition,
        )
    if placement.is_under_replicated and not isinstance(placement.isr, Absent):
        yield finding(
            "KF402",
            severity=Severity.WARNING,
            statement=f"{partition} is under-replicated: of {_brokers(placement.assigned)} {_in_sync(placement.isr)} in sync",
            topic_partition=partition,
        )
    for broker in placement.missing:
        yield finding(
            "KF403",
            severity=Severity.ERROR,
            statement=f"broker {broker} should hold {partition} and has no directory of it",
            topic_partition=partition,
            broker_id=broker,
        )
    for broker in placement.excess:
        yield finding(
            "KF404",
            severity=Severity.WARNING,
            statement=f"broker {broker} holds {partition}, which the metadata assigns to {_brokers(placement.assigned)}",
            topic_partition=partition,
            broker_id=broker,
            citations=tuple(one.view.replica.cite() for one in report.replicas if one.view.replica.broker_id == broker),
        )
    if placement.shares_rack:
        replicas = placement.holders if isinstance(placement.assigned, Absent) else placement.assigned
        yield finding(
            "KF405",
            severity=Severity.WARNING,
            statement=f"replicas of {partition} share a rack: {_brokers(replicas)}",
            topic_partition=partition,
        )


def spread_findings(spread: LeaderSpread, cluster: str) -> Iterator[Finding]:
    """Yield a finding where some broker leads far more than its share.

    Args:
        spread: how many partitions each broker leads.
        cluster: the name that the finding gives the cluster; empty where there is one only.
    """
    if spread.is_skewed:
        broker = max(spread.by_broker, key=lambda one: (spread.by_broker[one], -one))
        where = f" of cluster {cluster}" if cluster else ""
        yield finding(
            "KF406",
            severity=Severity.NOTE,
            statement=f"broker {broker}{where} leads {spread.most} partitions, the mean is {spread.mean:.1f}",
            broker_id=broker,
        )


def node_id_findings(disagreements: Mapping[str, tuple[int, int]]) -> Iterator[Finding]:
    """Yield findings about directories whose node id is not the one that the inventory gives.

    Args:
        disagreements: by path, the inventory's id and the one in `meta.properties`.
    """
    for path, (given, written) in sorted(disagreements.items()):
        yield finding(
            "KF407",
            severity=Severity.ERROR,
            statement=f"the inventory gives node {given} for {path}, whose meta.properties says {written}",
            broker_id=written,
        )


def undecided_findings(report: PartitionReport, reader: BatchReader) -> Iterator[Finding]:
    """Yield runs of offsets whose digests do not prove two logs equal, where the evidence that would show it is not at hand.

    Args:
        report: the replicas of one partition, compared.
        reader: reads batches of the replicas that are at hand.
    """
    for one in report.replicas:
        other = one.compared_with
        replicas = () if other is None else (one.view.replica, other.replica)
        if other is None or all(replica.is_at_hand and replica.has_records for replica in replicas):
            continue
        undecided: list[OffsetRange] = []
        first_divergence(one.view, other, reader, undecided)
        if not undecided or one.divergence is not None:
            continue
        what = "batches" if all(replica.is_at_hand for replica in replicas) else "digests"
        yield finding(
            "KF408",
            severity=Severity.NOTE,
            statement=(
                f"{report.partition}: offsets {undecided[0].first} to {undecided[-1].last} of broker "
                f"{_broker(one.view.replica.broker_id)} and broker {_broker(other.replica.broker_id)} can't be compared by {what} alone"
            ),
            topic_partition=report.partition,
            broker_id=one.view.replica.broker_id,
            offsets=OffsetRange(undecided[0].first, undecided[-1].last),
        )


def _brokers(brokers: tuple[int, ...] | Absent) -> str:
    return "brokers unknown" if isinstance(brokers, Absent) else f"brokers {', '.join(map(str, brokers)) or 'none'}"


def _in_sync(isr: tuple[int, ...]) -> str:
    if not isr:
        return "none is"
    return f"only {listed([str(one) for one in sorted(isr)], most=len(isr))} {form(len(isr), 'is', 'are')}"


def _broker(broker_id: int | Absent) -> str:
    return "?" if isinstance(broker_id, Absent) else str(broker_id)
