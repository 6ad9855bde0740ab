"""The answers of the commands for fleets: whether partitions are at risk, and what changed between two audits."""

from kforensics.findings.answers.model import Answer, State
from kforensics.findings.fleet_summary import AuditComparison, FleetSummary, ScanResult
from kforensics.findings.model import Severity
from kforensics.words import byte_count, counted

_GRAVE = ("critical", "error", "warning")


def fleet_answer(summary: FleetSummary) -> Answer:
    """The answer to whether the fleet is sound.

    Args:
        summary: of the audit, or of the part of it that was asked for.

    Returns:
        A state as `diff` has it, the worst that any partition gives; `damaged` where only files are.
    """
    verdicts, total = summary.verdicts, counted(summary.partition_count, "partition")
    damaged = sum(one.damaged_places for one in summary.damage_by_disk)
    grave = sum(summary.findings_by_severity.get(one, 0) for one in _GRAVE)
    now = ""
    if verdicts.get("silent-divergence"):
        headline = (
            f"REPLICAS DIFFER FOR GOOD: {counted(verdicts['silent-divergence'], 'partition')} of {total} hold "
            "different content at the same offset, and no rule will repair it."
        )
        now = "Find out which content is right before a leader changes: `kforensics diff` on their replicas shows the bytes."
    elif verdicts.get("lost"):
        headline = f"DATA IS MISSING: {counted(verdicts['lost'], 'partition')} of {total} had committed records past the end of every log."
        now = "Look for another replica or snapshot before anything is started."
    elif summary.lost_certain or summary.lost_possible:
        what = (
            counted(summary.lost_certain, "committed record")
            if summary.lost_certain
            else f"{counted(summary.lost_possible, 'record')} that may have been committed"
        )
        headline = f"DATA AT RISK: {what} would be discarded in {verdicts.get('will-truncate', 0)} of {total}."
        now = "Copy the directories of the replicas that will truncate before their brokers start."
    elif damaged:
        disks = counted(len(summary.damage_by_disk), "disk")
        headline = f"{counted(damaged, 'damaged place')} on {disks}; no replica will be truncated for it."
        now = "See below which disks, and `kforensics verify` for the bytes."
    elif grave:
        headline = f"No replica holds what others contradict, but {counted(grave, 'finding')} to look at in {total}."
    elif summary.partition_count:
        headline = f"The fleet is sound: {total} agree on {counted(summary.nodes, 'node')}."
    else:
        headline = "Nothing to judge: no partition was found."
    unread = ""
    if summary.problem_count:
        unread = (
            f"{counted(summary.problem_count, 'thing')} could not be read (listed below); what they hold is not judged."
        )
        headline = f"Incomplete: {headline}"
    return Answer(
        state=_state(summary, damaged=bool(damaged)),
        headline=headline,
        now=(now,) if now else (),
        unknown=(unread,) if unread else (),
    )


def _state(summary: FleetSummary, *, damaged: bool) -> State:
    verdicts = summary.verdicts
    checks = (
        (summary.lost_certain or verdicts.get("lost"), State.AT_RISK),
        (summary.lost_possible, State.MAYBE_AT_RISK),
        (verdicts.get("silent-divergence"), State.DIVERGED),
        (damaged, State.DAMAGED),
        (summary.problem_count or not summary.partition_count, State.UNKNOWN),
        (verdicts.get("will-truncate"), State.UNCOMMITTED_ONLY),
        (verdicts.get("behind"), State.BEHIND),
    )
    return next((state for holds, state in checks if holds), State.AGREE)


def scan_answer(result: ScanResult) -> Answer:
    """The answer to what was extracted.

    Args:
        result: of the scan.

    Returns:
        `complete`, or `unknown` where something could not be read.
    """
    reused = f", {counted(result.reused_segments, 'segment')} as before" if result.reused_segments else ""
    grave = sum(one.severity.rank >= Severity.WARNING.rank for one in result.findings)
    return Answer(
        state=State.UNKNOWN if result.problems else State.COMPLETE,
        headline=f"{counted(result.replicas, 'replica')} with {counted(result.segments, 'segment')} extracted: "
        f"{byte_count(result.read_bytes)} read{reused}, {byte_count(result.evidence_bytes)} written"
        + (f"; {counted(grave, 'finding')} to look at." if grave else "."),
        later=(
            f"Bring {result.evidence} together with that of the other brokers and give all to `kforensics fleet audit`.",
        ),
        unknown=(f"{counted(len(result.problems), 'thing')} could not be read (listed below).",)
        if result.problems
        else (),
    )


def comparison_answer(comparison: AuditComparison) -> Answer:
    """The answer to what changed between two audits.

    Args:
        comparison: of the audits.

    Returns:
        `changed` where there are new findings, `unknown` where the later audit could not read everything, `unchanged` where nothing is new.
    """
    new, resolved, changes = comparison.new_findings, comparison.gone_findings, comparison.changes
    nodes = (*comparison.new_nodes, *comparison.gone_nodes)
    headline = "Nothing changed between the two audits."
    if new or resolved or changes or nodes:
        headline = f"{counted(len(new), 'finding')} new, {len(resolved)} no longer there; {counted(len(changes), 'partition')} with another verdict."
    unread = counted(comparison.problem_count, "thing")
    return Answer(
        state=State.CHANGED if new else State.UNKNOWN if comparison.problem_count else State.UNCHANGED,
        headline=headline,
        unknown=(f"The later audit could not read {unread}.",) if comparison.problem_count else (),
    )
