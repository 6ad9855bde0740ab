"""The sentences about an audit that its screen and its page share."""

from dataclasses import dataclass
from typing import NamedTuple

from kforensics.commands.fleet_summary import FleetSummary
from kforensics.damage import Absent
from kforensics.render.escape import escape_text
from kforensics.render.text.screen import Style, byte_count, counted

_VERDICTS = (
    "silent-divergence",
    "lost",
    "will-truncate",
    "unreadable",
    "different-topic",
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
    """Return the verdicts that occur, the worst first."""
    return [
        VerdictCount(name, "one replica here" if name == "leader" else name, count)
        for name in _VERDICTS
        if (count := summary.verdicts.get(name))
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetAnswer:
    """The answer in one sentence, its style, and the advice."""

    style: str
    sentence: str
    rest: tuple[str, ...]


def fleet_answer(summary: FleetSummary) -> FleetAnswer:
    """Answer whether the fleet is sound."""
    verdicts, total = summary.verdicts, counted(summary.partition_count, "partition")
    style, advice = Style.ANSWER_BAD, ""
    damaged = sum(one.damaged_places for one in summary.damage_by_disk)
    if verdicts.get("silent-divergence"):
        head = (
            f"REPLICAS DIFFER PERMANENTLY: {counted(verdicts['silent-divergence'], 'partition')} of {total} hold "
            "different content at the same offset, and no rule will repair it."
        )
        advice = "Find out which content is right before a leader changes: `kforensics diff` on their replicas shows the bytes."
    elif verdicts.get("lost"):
        head = f"DATA IS MISSING: {counted(verdicts['lost'], 'partition')} of {total} had committed records past the end of every log."
        advice = "Look for another replica or snapshot before anything is started."
    elif summary.lost_certain or summary.lost_possible:
        what = (
            counted(summary.lost_certain, "committed record")
            if summary.lost_certain
            else f"{counted(summary.lost_possible, 'possibly committed record')}"
        )
        head = f"DATA AT RISK: {what} would be discarded in {verdicts.get('will-truncate', 0)} of {total}."
        advice = "Copy the directories of the replicas that will truncate before their brokers start."
    elif damaged:
        head = f"{counted(damaged, 'damaged place')} on {counted(len(summary.damage_by_disk), 'disk')}; no replica will truncate records because of it."
        advice = "The disks are listed below; `kforensics verify` shows the bytes."
        style = Style.ANSWER_WARNING
    elif summary.findings_by_severity.get("error") or summary.findings_by_severity.get("warning"):
        grave = sum(summary.findings_by_severity.get(one, 0) for one in ("critical", "error", "warning"))
        head = f"No replica contradicts another, but {counted(grave, 'finding')} in {total} {'needs' if grave == 1 else 'need'} a look."
        style = Style.ANSWER_WARNING
    elif summary.partition_count:
        head, style = f"The fleet is sound: {total} agree on {counted(summary.nodes, 'node')}.", Style.ANSWER_GOOD
    else:
        head, style = "Nothing to judge: no partition was found.", Style.ANSWER_WARNING
    rest = [advice] if advice else []
    if summary.problem_count:
        unread = counted(summary.problem_count, "thing")
        rest.insert(0, f"Incomplete: {unread} could not be read (listed below); what they hold is not judged.")
    return FleetAnswer(style=style, sentence=head, rest=tuple(rest))


def totals_words(summary: FleetSummary) -> str:
    """Describe the size of the fleet, and how much of it was read."""
    words = [
        counted(summary.nodes, "node"),
        counted(summary.partition_count, "partition"),
        counted(summary.replicas, "replica"),
        counted(summary.segments, "segment"),
        byte_count(summary.bytes),
    ]
    if not summary.reused_segments:
        return ", ".join(words)
    reused = f"{byte_count(summary.read_bytes)} read, {counted(summary.reused_segments, 'segment')} known from before"
    return f"{', '.join(words)}; {reused}"


def placement_words(summary: FleetSummary) -> list[str]:
    """Describe the placement of replicas and leaders."""
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
            f"{summary.topics_by_rule} of {counted(summary.topics_checked, 'topic')} {'is' if summary.topics_by_rule == 1 else 'are'} placed by the assignment rule i mod n, (i+j) mod n"
        )
    return lines
