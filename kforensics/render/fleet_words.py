"""The sentences about an audit that its screen and its page share."""

from collections.abc import Iterator
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.findings.fleet_summary import AuditComparison, FindingChange, FleetSummary
from kforensics.render.escape import escape_text
from kforensics.units import OffsetRange
from kforensics.words import byte_count, counted, form

_VERDICTS = (
    "silent-divergence",
    "lost",
    "will-truncate",
    "unreadable",
    "different-topic",
    "not-assigned",
    "behind",
    "consistent",
    "leader",
)


class VerdictCount(NamedTuple):
    """The number of partitions with a verdict, and the verdict in words."""

    name: str
    words: str
    partitions: int


def verdict_counts(summary: FleetSummary) -> list[VerdictCount]:
    """Return the verdicts that occur, the worst first, with the words for each."""
    return [
        VerdictCount(name, "one replica here" if name == "leader" else name, count)
        for name in _VERDICTS
        if (count := summary.verdicts.get(name))
    ]


def totals_words(summary: FleetSummary) -> str:
    """Describe the size of the fleet, and how much of it was read."""
    words = [
        counted(summary.nodes, "node"),
        counted(summary.partition_count, "partition")
        + (f" ({summary.deleted_partitions:,} of deleted topics)" if summary.deleted_partitions else ""),
        counted(summary.replicas, "replica"),
        counted(summary.segments, "segment"),
        byte_count(summary.bytes),
    ]
    if not summary.reused_segments:
        return ", ".join(words)
    reused = f"{byte_count(summary.read_bytes)} read, {counted(summary.reused_segments, 'segment')} known from before"
    return f"{', '.join(words)}; {reused}"


def placement_words(summary: FleetSummary) -> list[str]:
    """Describe the placement of replicas and leaders, a line for each thing that there is."""
    parts = [
        (summary.offline, "partition without a leader", "partitions without a leader"),
        (summary.under_replicated, "under-replicated partition", None),
        (summary.missing_replicas, "replica missing from its broker", "replicas missing from their brokers"),
        (summary.excess_replicas, "replica that is not assigned", "replicas that are not assigned"),
        (summary.sharing_rack, "partition with replicas in one rack", "partitions with replicas in one rack"),
        (summary.unclean_elections, "unclean election on record", "unclean elections on record"),
    ]
    lines = [counted(count, one, many) for count, one, many in parts if count]
    if summary.stray_replicas:
        lines.append(
            f"{counted(summary.stray_replicas, 'stray directory', 'stray directories')}, {byte_count(summary.stray_bytes)}"
        )
    if summary.deleted_replicas:
        lines.append(
            f"{counted(summary.deleted_replicas, 'directory', 'directories')} on the way to deletion, {byte_count(summary.deleted_bytes)}"
        )
    for share in summary.leaders:
        of = (
            ""
            if isinstance(share.cluster_id, Absent) or len(summary.leaders) == 1
            else f" of cluster {escape_text(share.cluster_id)}"
        )
        lines.append(
            f"leaders per broker{of}: {share.fewest} to {share.most} (node {share.busiest}), mean {share.mean:.1f}"
        )
    if summary.topics_checked:
        lines.append(
            f"{summary.topics_by_rule} of {counted(summary.topics_checked, 'topic')} {form(summary.topics_by_rule, 'is', 'are')} placed by the assignment rule i mod n, (i+j) mod n"
        )
    return lines


_HEADINGS = (
    ("New", "new_findings"),
    ("Worse", "worse_findings"),
    ("Changed, neither proven worse nor better", "changed_findings"),
    ("Better", "better_findings"),
    ("No longer found, not checked again", "unchecked_findings"),
    ("Gone", "gone_findings"),
)


def changes_by_heading(comparison: AuditComparison) -> Iterator[tuple[str, tuple[FindingChange, ...]]]:
    """Yield the findings of each change that there is, under its heading."""
    for heading, name in _HEADINGS:
        findings = getattr(comparison, name)
        if findings:
            yield heading, findings


def moved_words(item: FindingChange) -> str:
    """Describe how severity and offsets of a finding that both audits have moved; empty where they did not."""
    moved = []
    if isinstance(item.severity, Absent) or isinstance(item.severity_before, Absent):
        return ""
    if item.severity != item.severity_before:
        moved.append(f"{item.severity}, it was {item.severity_before}")
    if item.offsets != item.offsets_before:
        moved.append(f"offsets {_range(item.offsets)}, they were {_range(item.offsets_before)}")
    if not moved and item.statement != item.statement_before:
        moved.append(f"it was: {item.statement_before}")
    return "; ".join(moved)


def _range(offsets: OffsetRange | Absent) -> str:
    return "unknown" if isinstance(offsets, Absent) else f"{offsets.first}..{offsets.last}"
