"""Findings about a fleet: where replicas are against where they should be, who leads, and what could not be compared without the disks."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kforensics.damage import Absent
from kforensics.evidence.model import BatchReader
from kforensics.findings.model import Confidence, Finding, Weight
from kforensics.findings.rule import Rule
from kforensics.findings.rules.quorum import quorum_words
from kforensics.reconcile.logs.divergence import first_divergence
from kforensics.reconcile.replicas.placement import LeaderSpread, Placement
from kforensics.reconcile.replicas.report import PartitionReport
from kforensics.units import OffsetRange
from kforensics.words import form, listed

if TYPE_CHECKING:
    from kforensics.evidence.metadata.set_back import QuorumSetBack

NO_LEADER = Rule(
    "KF401",
    Weight.DAMAGE,
    title="a partition without a leader",
    meaning="No client can produce to it or consume from it until a replica is elected.",
    advice="See `kforensics diff` for what each possible leader would lose, before an unclean election is allowed.",
    references=("KIP-966",),
)

UNDER_REPLICATED = Rule(
    "KF402",
    Weight.DECIDE,
    title="an under-replicated partition",
    meaning="Fewer replicas are in sync than the topic should have: one more failure may make it unavailable or lose records.",
    advice="Find out why the others are not in sync before anything else is restarted.",
)

MISSING_REPLICA = Rule(
    "KF403",
    Weight.DAMAGE,
    title="an assigned replica that is not on the broker's disks",
    meaning="The cluster counts on a copy that is not there: it was deleted, is on a disk that is not mounted, or was never made.",
    advice="Look for an offline or unmounted log directory first; a broker that starts without it copies the partition again.",
    references=("KIP-858",),
)

EXCESS_REPLICA = Rule(
    "KF404",
    Weight.DECIDE,
    title="a replica that the metadata does not assign to the broker",
    meaning="Left behind by a reassignment or by a topic that was deleted while the broker was away; it takes space and may hold records that no other replica has.",
    advice="Compare it with the assigned replicas before it is removed.",
    references=("KAFKA-15605",),
)

SHARED_RACK = Rule(
    "KF405",
    Weight.DECIDE,
    title="replicas of a partition share a rack",
    meaning="The loss of one rack takes more than one copy, though there are racks enough to spread them.",
    advice="Reassign one of the replicas to a broker of another rack.",
    references=("KIP-36",),
)


def placement_findings(report: PartitionReport, placement: Placement) -> Iterator[Finding]:
    """Yield the findings about the placement of one partition."""
    partition = report.partition
    if placement.is_offline:
        yield NO_LEADER.states(
            f"{partition} has no leader in the metadata log; its replicas are on {_brokers(placement.assigned)}",
            topic_partition=partition,
        )
    if placement.is_under_replicated and not isinstance(placement.isr, Absent):
        yield UNDER_REPLICATED.states(
            f"{partition} is under-replicated: of {_brokers(placement.assigned)} {_in_sync(placement.isr)} in sync",
            topic_partition=partition,
        )
    for broker in placement.missing:
        yield MISSING_REPLICA.states(
            f"broker {broker} should hold {partition} and has no directory of it",
            topic_partition=partition,
            broker_id=broker,
        )
    for broker in placement.excess:
        yield EXCESS_REPLICA.states(
            f"broker {broker} holds {partition}, which the metadata assigns to {_brokers(placement.assigned)}",
            topic_partition=partition,
            broker_id=broker,
            citations=tuple(one.view.replica.cite() for one in report.replicas if one.view.replica.broker_id == broker),
        )
    if placement.shares_rack:
        replicas = placement.holders if isinstance(placement.assigned, Absent) else placement.assigned
        yield SHARED_RACK.states(
            f"replicas of {partition} share a rack: {_brokers(replicas)}",
            topic_partition=partition,
        )


UNEVEN_LEADERS = Rule(
    "KF406",
    Weight.NOTE,
    title="leaders are spread unevenly",
    meaning="One broker serves far more than its share of producers and consumers.",
    advice="A preferred leader election moves leaders back to the first replica of each assignment.",
)


def spread_findings(spread: LeaderSpread, cluster: str) -> Iterator[Finding]:
    """Yield a finding where some broker leads far more than its share."""
    if spread.is_skewed:
        broker = max(spread.by_broker, key=lambda one: (spread.by_broker[one], -one))
        where = f" of cluster {cluster}" if cluster else ""
        yield UNEVEN_LEADERS.states(
            f"broker {broker}{where} leads {spread.most} partitions, the mean is {spread.mean:.1f}",
            broker_id=broker,
        )


OTHER_NODE = Rule(
    "KF407",
    Weight.DAMAGE,
    title="the inventory and a directory disagree about who it is",
    meaning="A volume is mounted on, or listed for, another node than the one that wrote it.",
    advice="Trust meta.properties; correct the inventory, or find out which volume was swapped.",
)


def inventory_finding(path: str, given: str, written: str, broker_id: int | Absent) -> Finding:
    """Return the finding about a directory that is not of the node or cluster that the inventory gives."""
    words = f"the inventory gives {given} for {path}, whose meta.properties says {written}"
    return OTHER_NODE.states(words, broker_id=broker_id)


UNKNOWN_CLUSTER = Rule(
    "KF409",
    Weight.DECIDE,
    title="nodes of which nothing names the cluster",
    meaning="Brokers before 2.4 wrote no cluster id into meta.properties, and a damaged file has none. Nodes of two clusters are compared with each other then, and in the tables the cluster of their rows is null.",
    advice="Name the cluster in the inventory, in the column `cluster`.",
)


def unknown_cluster_finding(names: Sequence[str], judged_as: str) -> Finding:
    """Return the finding about nodes of which neither a file nor the inventory names the cluster."""
    subject = (
        f"the cluster of {listed(names, most=10)} is not known: {form(len(names), 'it is', 'they are')} judged as of"
    )
    if judged_as:
        return UNKNOWN_CLUSTER.states(f"{subject} cluster {judged_as}, the only one that others name")
    return UNKNOWN_CLUSTER.states(f"{subject} one cluster", weight=Weight.NOTE)


QUORUM = Rule(
    "KF410",
    Weight.DAMAGE,
    title="a metadata quorum that does not go on as it was",
    meaning="What a start forgets of the metadata, brokers set aside or delete; where no controller can be elected, no broker registers.",
    advice="Start no node of this cluster, and format none, before its metadata is brought back; the answer of the audit says how.",
)


def quorum_finding(found: "QuorumSetBack") -> Finding:
    """Return the finding about a quorum that goes on without metadata that was committed, or that can elect no controller."""
    confidence = Confidence.PROVEN if found.is_certain else Confidence.POSSIBLE
    return QUORUM.states(quorum_words(found).removesuffix("."), confidence=confidence)


NOT_COMPARABLE = Rule(
    "KF408",
    Weight.NOTE,
    title="logs that captures can't compare",
    meaning="Below what can still be truncated a capture has digests, each of 65,536 offsets: where one log holds a part of such a run only, its digest proves nothing. Where a cleaner worked on one log, and the capture of the other node did not know of it, the records that would show it were not taken along.",
    advice="Take the captures with --all-batches, or run `kforensics diff` or `fleet audit` where the bytes of these replicas can be read.",
)


def undecided_findings(report: PartitionReport, reader: BatchReader) -> Iterator[Finding]:
    """Yield runs of offsets whose digests do not prove two logs equal, where the evidence that would show it is not at hand."""
    for one in report.replicas:
        other = one.compared_with
        replicas = () if other is None else (one.view.replica, other.replica)
        if other is None or all(replica.has_records for replica in replicas):
            continue
        undecided: list[OffsetRange] = []
        first_divergence(one.view, other, reader, undecided)
        if not undecided or one.divergence is not None:
            continue
        yield NOT_COMPARABLE.states(
            f"{report.partition}: offsets {undecided[0].first} to {undecided[-1].last} of broker "
            f"{_broker(one.view.replica.broker_id)} and broker {_broker(other.replica.broker_id)} can't be compared by batches alone",
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
