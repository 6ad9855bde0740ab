"""The summary of an audit of a fleet, as values that a screen, a document or another audit can use."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.metadata.set_back import QuorumSetBack
from kforensics.evidence.model import Input, Problem
from kforensics.findings.changes import Change, FindingChange
from kforensics.findings.concern import JudgedPartition
from kforensics.findings.gate import Gate
from kforensics.findings.model import Finding
from kforensics.findings.rules.inputs import RefusedStart
from kforensics.units import Depth


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerHealth:
    """One node of the fleet."""

    input: int
    node_id: int | Absent
    path: str
    kind: str
    rack: str | Absent
    health: str
    """`sound`, `ends-read` where no more than the ends of its logs were, `findings`, `damaged` or `unreadable`, the worst that holds."""
    replicas: int
    segments: int
    bytes: int
    damaged_places: int
    grave_findings: int
    """The number of findings of severity `warning` and above."""
    problems: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskDamage:
    """A log directory with damaged places."""

    input: int
    node_id: int | Absent
    path: str
    log_dir: str
    damaged_places: int
    replicas: int
    """The number of replicas that hold them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderShare:
    """The share of the partitions of a cluster that each broker leads."""

    cluster_id: str | Absent
    most: int
    fewest: int
    mean: float
    busiest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLine:
    """One partition that needs attention; `report` is its entry of the JSON document."""

    cluster_id: str | Absent
    topic: str
    partition: int
    verdict: str
    state: str
    lost_certain: int
    lost_possible: int
    report: str


class OpenFindings(NamedTuple):
    """The findings of a cluster that are not closed, of one severity and state, by their age."""

    cluster: str
    severity: str
    state: str
    age: str
    """A name of `AGES`."""
    findings: int
    first_seen_ms: int
    """When the oldest was first seen."""


AGES = {"under 1 day": 1, "1 to 7 days": 7, "7 to 30 days": 30, "over 30 days": 1 << 30}
"""Ages of findings since they were first seen, by the days that they are below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSummary:
    """The audit in numbers, the worst partitions and the gravest findings."""

    inputs: tuple[Input, ...]
    clusters: tuple[str, ...]
    nodes: int
    replicas: int
    segments: int
    bytes: int
    partition_count: int
    verdicts: Mapping[str, int]
    states: Mapping[str, int]
    """The number of partitions in each state of `diff`, the worst first."""
    states_by_cluster: Mapping[str, Mapping[str, int]]
    """The same by cluster, that with the worst state first; the cluster is empty where it is not known."""
    judged: tuple[JudgedPartition, ...]
    """Partitions of the worst state with what they give reason for, the first of them where they are many."""
    brokers: tuple[BrokerHealth, ...]
    damage_by_disk: tuple[DiskDamage, ...]
    unclean_elections: int
    stray_replicas: int
    stray_bytes: int
    deleted_replicas: int
    deleted_bytes: int
    missing_replicas: int
    excess_replicas: int
    under_replicated: int
    offline: int
    sharing_rack: int
    leaders: tuple[LeaderShare, ...]
    lost_certain: int
    lost_possible: int
    worst: tuple[PartitionLine, ...]
    not_consistent: int
    findings: tuple[Finding, ...]
    finding_ids: tuple[str, ...]
    """The id of each of these findings, in their order."""
    finding_count: int
    findings_by_severity: Mapping[str, int]
    findings_by_code: Mapping[str, int]
    problems: tuple[Problem, ...]
    problem_count: int
    tables: str
    read_bytes: int
    reused_segments: int
    audit_id: str
    audited_ms: int
    """When the audit began."""
    seconds: Mapping[str, float]
    """The time that each stage took; empty where the history had the audit already."""
    findings_by_cluster: Mapping[str, Mapping[str, int]]
    """The number of findings of each severity, by cluster; the cluster is empty where it is not known."""
    quorums: tuple[QuorumSetBack, ...] = ()
    """Of the clusters whose metadata quorum does not go on as it was."""
    refused: tuple[RefusedStart, ...] = ()
    """Brokers that do not start as they are."""
    comparison: "AuditComparison | None" = None
    """What changed since an earlier audit, where there is one to compare with."""
    gate: Gate | None = None
    """Whether the audit fails a schedule, where rules for that are given."""
    deleted_partitions: int = 0
    """Those of the partitions whose topics were deleted: nothing of them was compared."""
    depth: Depth = Depth.CONTENT
    """How much of the logs was read."""
    open_findings: tuple[OpenFindings, ...] = ()
    """Those that are not closed, by how long they have been known."""
    counts: tuple[tuple[int, int], ...] = ()
    """When each audit of its history up to this one began, in milliseconds since 1970, and how many findings it had; the latest of the same clusters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictChange:
    """A partition judged otherwise than before; absent where it was not there."""

    cluster_id: str | Absent
    topic: str
    partition: int
    before: str | Absent
    after: str | Absent


class _Compared:
    """What has findings by what became of them."""

    __slots__ = ()
    findings_by_change: Mapping[str, int]

    def count(self, change: Change) -> int:
        return self.findings_by_change.get(change.value, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditComparison(_Compared):
    """What became of the findings and partitions of an earlier audit."""

    earlier: str
    later: str
    earlier_audit: str
    """The id of the audit."""
    later_audit: str
    findings_by_change: Mapping[str, int]
    """All findings of either audit, by what became of them."""
    new_findings: tuple[FindingChange, ...]
    worse_findings: tuple[FindingChange, ...]
    changed_findings: tuple[FindingChange, ...]
    better_findings: tuple[FindingChange, ...]
    unchecked_findings: tuple[FindingChange, ...]
    """No longer found, by an audit that did not read all that showed them."""
    gone_findings: tuple[FindingChange, ...]
    changes: tuple[VerdictChange, ...]
    """The worst first."""
    new_nodes: tuple[str, ...]
    gone_nodes: tuple[str, ...]
    problem_count: int
    """The number of problems of the later audit: what it could not read."""
    limits: tuple[str, ...] = ()
    """Why not everything could be compared, in sentences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendLine(_Compared):
    """One audit among others."""

    audit_id: str
    audited_ms: int
    clusters: tuple[str, ...]
    partition_count: int
    states: Mapping[str, int]
    findings_by_severity: Mapping[str, int]
    compared_with: str | Absent
    """The id of the audit before it that has a cluster in common with it."""
    findings_by_change: Mapping[str, int]
    """The findings of either, by what became of them."""
    gone_nodes: tuple[str, ...]
    problem_count: int
    limits: tuple[str, ...] = ()
    """Why not everything could be compared with the audit before it, in sentences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditTrend:
    """Audits one after the other."""

    tables: tuple[str, ...]
    audit_count: int
    """The number of audits that there are, of which `lines` has the latest."""
    lines: tuple[TrendLine, ...]
    """The oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimmedHistory:
    """A history after its old audits were removed."""

    tables: str
    days: int
    audits: tuple[str, ...]
    """Those that are left, the oldest first."""
    trimmed_audits: tuple[str, ...]
    removed_files: int
    oldest_ms: int
    """When the oldest audit that is left began."""
