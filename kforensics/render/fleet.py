"""The audit of a fleet as text and as JSON."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from rich.text import Text

from kforensics.damage import Absent
from kforensics.pipeline.fleet_summary import AuditComparison, FleetSummary
from kforensics.render.escape import escape_text
from kforensics.render.jsonout import document
from kforensics.render.text import INDENT, Style, byte_count, columns, counted, listed, wrapped

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
_SHOWN_PARTITIONS = 20
_SHOWN_FINDINGS = 20
_SHOWN_NODES = 10


def fleet_screen(summary: FleetSummary, *, verbose: bool, width: int) -> Iterator[Text | str]:
    """The screen: the answer, what to do, the worst partitions, brokers, disks, placement, and where the rest stands."""
    yield from _answer(summary, width)
    yield ""
    yield from wrapped(totals_words(summary), width=width)
    yield from _verdict_lines(summary)
    yield from _partition_lines(summary, width, most=None if verbose else _SHOWN_PARTITIONS)
    yield from _broker_lines(summary, width, verbose=verbose)
    yield from _placement_lines(summary, width)
    yield from _finding_lines(summary, width, most=None if verbose else _SHOWN_FINDINGS)
    yield from _problem_lines(summary, width, most=None if verbose else _SHOWN_NODES)
    yield ""
    yield from wrapped(f"Tables: {escape_text(summary.tables)}", width=width, style=Style.QUIET)


def answer_lines(summary: FleetSummary) -> tuple[str, str, list[str]]:
    """How the answer looks, the answer, and what to do about it."""
    verdicts, total = summary.verdicts, counted(summary.partition_count, "partition")
    style, advice = Style.ANSWER_BAD, ""
    damaged = sum(one.damaged_places for one in summary.damage_by_disk)
    if verdicts.get("silent-divergence"):
        head = (
            f"REPLICAS DIFFER FOR GOOD: {counted(verdicts['silent-divergence'], 'partition')} of {total} hold "
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
            else f"{counted(summary.lost_possible, 'record')} that may have been committed"
        )
        head = f"DATA AT RISK: {what} would go in {verdicts.get('will-truncate', 0)} of {total}."
        advice = "Copy the directories of the replicas that will cut before their brokers start."
    elif damaged:
        head = f"{counted(damaged, 'damaged place')} on {counted(len(summary.damage_by_disk), 'disk')}; no replica will be cut for it."
        advice = "See below which disks, and `kforensics verify` for the bytes."
        style = Style.ANSWER_WARNING
    elif summary.findings_by_severity.get("error") or summary.findings_by_severity.get("warning"):
        grave = sum(summary.findings_by_severity.get(one, 0) for one in ("critical", "error", "warning"))
        head = f"No replica holds what others contradict, but {counted(grave, 'finding')} to look at in {total}."
        style = Style.ANSWER_WARNING
    elif summary.partition_count:
        head, style = f"The fleet is sound: {total} agree on {counted(summary.nodes, 'node')}.", Style.ANSWER_GOOD
    else:
        head, style = "Nothing to judge: no partition was found.", Style.ANSWER_WARNING
    rest = [advice] if advice else []
    if summary.problem_count:
        unread = counted(summary.problem_count, "thing")
        rest.insert(0, f"Incomplete: {unread} could not be read (listed below); what they hold is not judged.")
    return style, head, rest


def _answer(summary: FleetSummary, width: int) -> Iterator[Text]:
    style, head, rest = answer_lines(summary)
    yield from wrapped(head, width=width, style=style)
    for line in rest:
        yield from wrapped(line, width=width)


def totals_words(summary: FleetSummary) -> str:
    """How large the fleet is, and how much of it had to be read."""
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


def _verdict_lines(summary: FleetSummary) -> Iterator[Text | str]:
    rows = [(str(summary.verdicts[one]), one) for one in _VERDICTS if summary.verdicts.get(one)]
    if rows:
        yield ""
        yield Text("Partitions by verdict", style=Style.HEADING)
        yield from columns(
            [(count, "one replica here" if one == "leader" else one) for count, one in rows], right=frozenset({0})
        )


def _partition_lines(summary: FleetSummary, width: int, *, most: int | None) -> Iterator[Text | str]:
    worst = summary.worst[:most]
    if not worst:
        return
    yield ""
    yield Text("Worst first", style=Style.HEADING)
    rows = []
    for one in worst:
        loss = (
            f"{one.lost_certain} certain, {one.lost_possible} possible" if one.lost_certain or one.lost_possible else ""
        )
        rows.append((escape_text(f"{one.topic}-{one.partition}"), one.verdict, loss))
    yield from columns(rows)
    if summary.not_consistent > len(worst):
        yield from wrapped(
            f"and {summary.not_consistent - len(worst)} more (--most, -v, or the table partitions)",
            width=width,
            indent=INDENT,
        )


def _broker_lines(summary: FleetSummary, width: int, *, verbose: bool) -> Iterator[Text | str]:
    health = Counter(one.health for one in summary.brokers)
    if not health:
        return
    yield ""
    yield Text("Nodes by health", style=Style.HEADING)
    words = {"sound": "sound", "findings": "with findings", "damaged": "with damage", "unreadable": "not read whole"}
    parts = [f"{health[one]} {words[one]}" for one in ("unreadable", "damaged", "findings", "sound") if health[one]]
    yield from wrapped(", ".join(parts), width=width, indent=INDENT, first=INDENT)
    order = {"unreadable": 0, "damaged": 1, "findings": 2, "sound": 3}
    ailing = sorted(
        (one for one in summary.brokers if verbose or one.health != "sound"),
        key=lambda one: (order[one.health], -one.damaged_places, -one.grave_findings, one.input),
    )
    shown = ailing if verbose else ailing[:_SHOWN_NODES]
    yield from columns(
        [
            (
                f"node {_id(one.node_id)}",
                one.health,
                counted(one.replicas, "replica"),
                byte_count(one.bytes),
                counted(one.grave_findings, "finding") if one.grave_findings else "",
                counted(one.damaged_places, "damaged place") if one.damaged_places else "",
            )
            for one in shown
        ]
    )
    if len(ailing) > len(shown):
        yield Text(f"{INDENT}and {len(ailing) - len(shown)} more (-v)")
    for disk in summary.damage_by_disk[:_SHOWN_NODES]:
        where = escape_text(f"{disk.path}/{disk.log_dir}".rstrip("/"))
        yield from wrapped(
            f"{counted(disk.damaged_places, 'damaged place')} in {counted(disk.replicas, 'replica')} on {where} (node {_id(disk.node_id)})",
            width=width,
            indent=INDENT * 2,
            first=INDENT,
        )


def placement_words(summary: FleetSummary) -> list[str]:
    """What there is to say of where replicas and leaders are."""
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
            f"leaders a broker{of}: {share.fewest} to {share.most} (node {share.busiest}), mean {share.mean:.1f}"
        )
    if summary.topics_checked:
        lines.append(
            f"{summary.topics_by_rule} of {counted(summary.topics_checked, 'topic')} lie as the assignment rule i mod n, (i+j) mod n lays them out"
        )
    return lines


def _placement_lines(summary: FleetSummary, width: int) -> Iterator[Text | str]:
    lines = placement_words(summary)
    if lines:
        yield ""
        yield Text("Placement", style=Style.HEADING)
    for line in lines:
        yield from wrapped(line, width=width, indent=INDENT * 2, first=INDENT)


def _finding_lines(summary: FleetSummary, width: int, *, most: int | None) -> Iterator[Text | str]:
    if not summary.finding_count:
        return
    yield ""
    by_severity = ", ".join(f"{count} {severity}" for severity, count in summary.findings_by_severity.items())
    yield Text(f"Findings: {by_severity}", style=Style.HEADING)
    shown = [one for one in summary.findings if one.severity.value != "note"][:most]
    for item in shown:
        yield from wrapped(
            f"{item.code} {item.severity}: {escape_text(item.statement)}", width=width, indent=INDENT * 2, first=INDENT
        )
    grave = sum(count for severity, count in summary.findings_by_severity.items() if severity != "note")
    if grave > len(shown):
        yield from wrapped(f"and {grave - len(shown)} more (-v, or the table findings)", width=width, indent=INDENT)


def _problem_lines(summary: FleetSummary, width: int, *, most: int | None) -> Iterator[Text | str]:
    shown = summary.problems[:most]
    if shown:
        yield ""
    for problem in shown:
        where = summary.inputs[problem.input].path if problem.input < len(summary.inputs) else ""
        path = "" if problem.path == "." else f"/{problem.path}"
        yield from wrapped(
            f"not read: {escape_text(where + path)}: {escape_text(problem.message)}",
            width=width,
            indent=INDENT * 2,
            first=INDENT,
        )
    if summary.problem_count > len(shown):
        yield from wrapped(
            f"and {summary.problem_count - len(shown)} more (the table problems)", width=width, indent=INDENT
        )


def _id(node_id: int | Absent) -> str:
    return "?" if isinstance(node_id, Absent) else str(node_id)


# ---------------------------------------------------------------- JSON


def fleet_document(command: str, summary: FleetSummary, exit_code: int) -> str:
    """The document of `--format json`."""
    return document(
        command,
        inputs=summary.inputs,
        findings=summary.findings,
        problems=summary.problems,
        exit_code=exit_code,
        **plain_summary(summary),
    )


def plain_summary(summary: FleetSummary) -> dict[str, Any]:
    """The numbers and the worst partitions, which are as `diff` gives them."""
    names = (
        "clusters",
        "nodes",
        "replicas",
        "segments",
        "bytes",
        "partition_count",
        "verdicts",
        "brokers",
        "damage_by_disk",
        "unclean_elections",
        "stray_replicas",
        "stray_bytes",
        "deleted_replicas",
        "deleted_bytes",
        "missing_replicas",
        "excess_replicas",
        "under_replicated",
        "offline",
        "sharing_rack",
        "leaders",
        "topics_checked",
        "topics_by_rule",
        "not_consistent",
        "finding_count",
        "findings_by_severity",
        "findings_by_code",
        "problem_count",
        "read_bytes",
        "reused_segments",
    )
    return {
        **{name: getattr(summary, name) for name in names},
        "partitions": [json.loads(one.report) for one in summary.worst],
        "tables": summary.tables,
    }


# ---------------------------------------------------------------- two audits


def comparison_screen(comparison: AuditComparison, *, verbose: bool, width: int) -> Iterator[Text | str]:
    """What is new and what is gone."""
    new, gone, changes = comparison.new_findings, comparison.gone_findings, comparison.changes
    if not new and not gone and not changes and not comparison.new_nodes and not comparison.gone_nodes:
        yield Text("Nothing changed between the two audits.", style=Style.ANSWER_GOOD)
        return
    style = Style.ANSWER_BAD if new else Style.ANSWER_WARNING
    yield from wrapped(
        f"{counted(len(new), 'finding')} new, {len(gone)} gone; {counted(len(changes), 'partition')} judged otherwise.",
        width=width,
        style=style,
    )
    most = None if verbose else _SHOWN_FINDINGS
    for heading, nodes in (("New nodes", comparison.new_nodes), ("Nodes gone", comparison.gone_nodes)):
        if nodes:
            yield from wrapped(f"{heading}: {escape_text(listed(nodes))}", width=width, indent=INDENT)
    if changes:
        yield ""
        yield Text("Verdicts", style=Style.HEADING)
        yield from columns(
            [
                (escape_text(f"{one.topic}-{one.partition}"), _verdict(one.before), "->", _verdict(one.after))
                for one in changes[:most]
            ]
        )
    for heading, findings in (("New", new), ("Gone", gone)):
        if findings:
            yield ""
            yield Text(heading, style=Style.HEADING)
        for item in findings[:most]:
            yield from wrapped(
                f"{item.code} {escape_text(item.statement)}", width=width, indent=INDENT * 2, first=INDENT
            )
        if most is not None and len(findings) > most:
            yield Text(f"{INDENT}and {len(findings) - most} more (-v)")


def _verdict(value: str | Absent) -> str:
    return "not there" if isinstance(value, Absent) else value


def comparison_document(comparison: AuditComparison, exit_code: int) -> str:
    """The document of `fleet report --since`."""
    return document(
        "fleet-report",
        inputs=(),
        findings=(),
        problems=(),
        exit_code=exit_code,
        earlier=comparison.earlier,
        later=comparison.later,
        new_findings=comparison.new_findings,
        gone_findings=comparison.gone_findings,
        changes=comparison.changes,
        new_nodes=comparison.new_nodes,
        gone_nodes=comparison.gone_nodes,
        problem_count=comparison.problem_count,
    )
