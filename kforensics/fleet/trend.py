"""Audits in their order -> the findings of each, and what became of them from one to the next."""

from collections.abc import Iterator, Sequence

from kforensics.damage import Absent
from kforensics.findings.fleet_summary import AuditTrend, TrendLine
from kforensics.findings.model import Severity
from kforensics.fleet.audit_tables import AuditTables, Filters, counts_of, last_alike
from kforensics.fleet.comparison import compare_audits


def trend_of(audits: Sequence[AuditTables], most: int, filters: Filters) -> AuditTrend:
    """Return the findings of audits, and what became of them from each to the next of the same cluster.

    Args:
        most: audits that are shown, the latest ones.
        filters: which partitions and findings it is about.
    """
    return AuditTrend(
        tables=tuple(dict.fromkeys(str(one) for one in audits)),
        audit_count=len(audits),
        lines=tuple(_lines(audits, max(len(audits) - most, 0), filters)),
    )


def _lines(audits: Sequence[AuditTables], first: int, filters: Filters) -> Iterator[TrendLine]:
    for at in range(first, len(audits)):
        one = audits[at]
        one.check_parts()
        clusters = set(one.manifest.get("clusters", ()))
        earlier = last_alike(one, audits[:at])
        findings = one.column_table("findings", ["severity"], filters.of_findings())
        partitions = one.column_table("partitions", ["state"], filters.of_partitions())
        counts = counts_of(findings, "severity")
        if earlier is not None and at == first:  # all later ones have been checked as lines of their own
            earlier.check_parts()
        comparison = None if earlier is None else compare_audits(earlier, one, filters)
        yield TrendLine(
            audit_id=one.audit_id,
            audited_ms=one.audited_ns // 1_000_000,
            clusters=tuple(sorted(clusters - {""})),
            partition_count=partitions.num_rows,
            states=counts_of(partitions, "state"),
            findings_by_severity={own.value: counts[own.value] for own in Severity if counts.get(own.value)},
            compared_with=Absent.NOT_APPLICABLE if earlier is None else earlier.audit_id,
            findings_by_change={} if comparison is None else comparison.findings_by_change,
            gone_nodes=() if comparison is None else comparison.gone_nodes,
            problem_count=one.row_count("problems"),
            limits=() if comparison is None else comparison.limits,
        )
