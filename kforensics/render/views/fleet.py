"""What audits of fleets show: one, what changed between two, one after the other, and what was taken on a broker."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from zlib import crc32

from kforensics.commands.result import Result
from kforensics.damage import Absent
from kforensics.evidence.captured.columns import known_or
from kforensics.evidence.model import Input
from kforensics.findings.answers.fleet import change_words
from kforensics.findings.answers.model import State
from kforensics.findings.changes import Change, FindingChange
from kforensics.findings.fleet_summary import (
    AuditComparison,
    AuditTrend,
    BrokerHealth,
    FleetSummary,
    PartitionLine,
    TrendLine,
    TrimmedHistory,
)
from kforensics.findings.model import Finding, Severity
from kforensics.findings.rule import all_rules
from kforensics.render.blocks import (
    GAP,
    Bars,
    Block,
    Cell,
    Column,
    Facts,
    FactsForm,
    Prose,
    Section,
    Table,
    Tone,
    item,
    known,
)
from kforensics.render.frame import SEVERITY_TONES, problem_items
from kforensics.render.view import View
from kforensics.units import OffsetRange
from kforensics.words import byte_count, command_line, counted, form, listed, utc_text

MOST_ON_SCREEN = 20
"""Partitions, findings of a kind and problems that a screen shows."""
MOST_NODES = 10
MOST_OF_CAUSE = 200
"""Findings of one cause that a page shows."""
_MOST_PATHS = 5

_TONES = {
    "silent-divergence": Tone.BAD,
    "lost": Tone.BAD,
    "unreadable": Tone.BAD,
    "damaged": Tone.BAD,
    "findings": Tone.WARNING,
    "will-truncate": Tone.WARNING,
    "different-topic": Tone.WARNING,
    "sound": Tone.GOOD,
}
"""Of verdicts, and of how nodes are."""


def audit(result: Result[FleetSummary], view: View) -> Iterator[Block]:
    """Yield the figures, what changed, findings by cause, the worst partitions, nodes, disks, placement, and where the rest is."""
    summary = result.body
    if view.page:
        yield from _identity(summary)
    else:
        yield GAP
        yield Prose(totals_words(summary))
    yield from _decision(summary, view)
    if view.page and summary.counts[1:]:
        yield Section(title="Trend", anchor="trend", lead="The findings of the audits of its history up to this one.")
        yield Bars(
            name="Findings by audit",
            kinds=("findings",),
            moments=[(utc_text(time_ms), (count,)) for time_ms, count in summary.counts],
        )
    if view.page:
        yield from _causes(summary)
    yield from _clusters(summary, view)
    yield from _partitions(summary, view)
    yield from _nodes(summary, view)
    if lines := placement_words(summary):
        yield Section(title="Placement", anchor="placement")
        yield from map(item, lines)
    if not view.page:
        yield from _findings(summary, view)
    yield from _problems(summary, view)
    yield GAP
    yield Prose(f"Tables: {summary.tables}", Tone.QUIET)


def _identity(summary: FleetSummary) -> Iterator[Block]:
    compared = summary.comparison
    rows = [
        (
            "Clusters" if summary.clusters[1:] else "Cluster",
            listed(summary.clusters) or "unknown: no input names its id",
        ),
        ("Audited", utc_text(summary.audited_ms)),
        ("Fleet", totals_words(summary)),
        ("Compared with", "no earlier audit: --history keeps them, --since names one")
        if compared is None
        else ("Compared with", compared.earlier_audit),
    ]
    yield Facts(name="Audit", form=FactsForm.IDENTITY, rows=[(*one, Tone.PLAIN) for one in rows])
    figures = [
        ("partitions that do not agree", summary.not_consistent, Tone.WARNING),
        ("committed records at risk", summary.lost_certain, Tone.BAD),
        ("possibly committed records at risk", summary.lost_possible, Tone.WARNING),
        ("damaged places", sum(one.damaged_places for one in summary.damage_by_disk), Tone.WARNING),
        ("under-replicated partitions", summary.under_replicated, Tone.WARNING),
        ("partitions without a leader", summary.offline, Tone.BAD),
        ("files and directories not read", summary.problem_count, Tone.BAD),
    ]
    yield _figures("At a glance", figures)
    if compared is not None:
        yield _changed(compared, f"What changed since {compared.earlier_audit}")


def _figures(name: str, figures: Iterable[tuple[str, int, Tone]]) -> Facts:
    rows = [(label, f"{count:,}", tone if count else Tone.PLAIN) for label, count, tone in figures]
    return Facts(name=name, form=FactsForm.FIGURES, rows=rows)


def _decision(summary: FleetSummary, view: View) -> Iterator[Block]:
    if summary.gate is None:
        return
    if view.page:
        yield Section(title="Decision of this audit's rules", anchor="decision")
    yield from map(Prose, summary.gate.sentences())
    if view.page:
        yield from map(item, summary.gate.failing_ids)


# ---------------------------------------------------------------- clusters and partitions


def _clusters(summary: FleetSummary, view: View) -> Iterator[Block]:
    """Yield the clusters, the worst first, where there are several or each has a page."""
    states = summary.states_by_cluster
    if len(states) < (1 if view.has_pages else 2):
        return
    severities = [one for one in Severity if summary.findings_by_severity.get(one.value)]
    yield Section(title="Clusters", anchor="clusters")
    yield Table(
        name="Clusters, the worst first",
        columns=[
            Column("Cluster"),
            Column("State"),
            Column("Partitions", is_number=True),
            *(Column(one.value.capitalize(), is_number=True) for one in severities),
        ],
        rows=[
            (
                Cell(text=cluster or "unknown", link=page_name(cluster) if view.has_pages else ""),
                next(iter(states[cluster]), ""),
                sum(states[cluster].values()),
                *(summary.findings_by_cluster.get(cluster, {}).get(one.value, 0) for one in severities),
            )
            for cluster in states
        ],
    )


def page_name(cluster: str) -> str:
    """Return the name of the page of a cluster, beside that of the whole fleet."""
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", cluster) or "unknown"
    return f"cluster-{plain}{'' if plain == cluster else f'-{crc32(cluster.encode()):08x}'}.html"


def _partitions(summary: FleetSummary, view: View) -> Iterator[Block]:
    if not summary.states:
        return
    whole = max(sum(summary.states.values()), 1)
    yield Section(title="Partitions by state", anchor="partitions")
    bar = [Column("Share", on_pages_only=True)] if view.page else []
    yield Table(
        name="Partitions by state",
        columns=[Column("State"), Column("Partitions", is_number=True), *bar],
        rows=[
            (
                state,
                count,
                *([Cell(shares=((count / whole, "no" if State(state).is_calm else "possible"),))] if view.page else []),
            )
            for state, count in summary.states.items()
        ],
        has_heading=False,
    )
    most = view.most(MOST_ON_SCREEN)
    several = summary.clusters[1:]
    for state, lines in groupby(summary.worst[:most], key=lambda one: one.state):
        yield (
            Section(title=f"Worst first: {state}", level=3, anchor=f"state-{state}")
            if view.page
            else Section(title=f"Worst first: {state}")
        )
        yield Table(
            name=f"Partitions that are {state}",
            columns=[
                Column("Partition"),
                *([Column("Cluster")] if several else []),
                Column("Verdict"),
                Column("Certainly lost", is_number=True),
                Column("Possibly lost", is_number=True),
            ],
            rows=[_partition_row(one, several=bool(several)) for one in lines],
            has_heading=view.page,
        )
    rest = summary.not_consistent - min(most, len(summary.worst))
    if rest > 0:
        yield Prose(f"and {rest:,} more (--most, -v, or the table partitions)", depth=1)


def _partition_row(one: PartitionLine, *, several: bool) -> tuple[str | int | Cell, ...]:
    return (
        f"{one.topic}-{one.partition}",
        *([known(one.cluster_id)] if several else []),
        Cell(badge=one.verdict, tone=_TONES.get(one.verdict, Tone.QUIET)),
        one.lost_certain,
        one.lost_possible,
    )


# ---------------------------------------------------------------- nodes, disks, placement

_HEALTH = {
    "unreadable": "not completely read",
    "damaged": "with damage",
    "findings": "with findings",
    "ends-read": "without a finding at the ends of their logs",
    "sound": "sound",
}
"""How nodes are, the worst first."""


def _nodes(summary: FleetSummary, view: View) -> Iterator[Block]:
    health = Counter(one.health for one in summary.brokers)
    order = {name: at for at, name in enumerate(_HEALTH)}
    nodes = sorted(
        summary.brokers, key=lambda one: (order[one.health], -one.damaged_places, -one.grave_findings, one.input)
    )
    if not nodes:
        return
    yield Section(title="Nodes by health", anchor="nodes")
    yield item(", ".join(f"{health[one]} {words}" for one, words in _HEALTH.items() if health[one]), hang=0)
    if not (view.page or view.verbose):
        nodes = [one for one in nodes if one.health not in {"sound", "ends-read"}]
    most = view.most(MOST_NODES)
    yield Table(
        name="Nodes",
        columns=[
            Column("Node"),
            Column("Health"),
            Column("Rack", on_pages_only=True),
            Column("Replicas", is_number=True),
            Column("Size", is_number=True),
            Column("Findings", is_number=True),
            Column("Damaged places", is_number=True),
            Column("Path", is_mono=True, on_pages_only=True),
        ],
        rows=[_node_row(one) for one in nodes[:most]],
    )
    if nodes[most:]:
        yield Prose(f"and {len(nodes) - most:,} more (-v)", depth=1)
    if summary.damage_by_disk and view.page:
        yield Section(title="Damage by disk", anchor="disks")
    for disk in summary.damage_by_disk[: view.most(MOST_NODES)]:
        where = f"{disk.path}/{disk.log_dir}".rstrip("/")
        places, replicas = counted(disk.damaged_places, "damaged place"), counted(disk.replicas, "replica")
        yield item(f"{places} in {replicas} on {where} (node {_id(disk.node_id)})")


def _node_row(one: BrokerHealth) -> tuple[str | int | Cell | Absent, ...]:
    return (
        _id(one.node_id),
        Cell(badge=one.health, tone=_TONES.get(one.health, Tone.QUIET)),
        one.rack,
        one.replicas,
        byte_count(one.bytes),
        one.grave_findings,
        one.damaged_places,
        one.path,
    )


def _id(node_id: int | Absent) -> str:
    return "?" if isinstance(node_id, Absent) else str(node_id)


def totals_words(summary: FleetSummary) -> str:
    """Describe the size of the fleet, and how much of it was read."""
    deleted = f" ({summary.deleted_partitions:,} of deleted topics)" if summary.deleted_partitions else ""
    words = [
        counted(summary.nodes, "node"),
        counted(summary.partition_count, "partition") + deleted,
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
        directories = counted(summary.stray_replicas, "stray directory", "stray directories")
        lines.append(f"{directories}, {byte_count(summary.stray_bytes)}")
    if summary.deleted_replicas:
        directories = counted(summary.deleted_replicas, "directory", "directories")
        lines.append(f"{directories} on the way to deletion, {byte_count(summary.deleted_bytes)}")
    for share in summary.leaders:
        is_only = isinstance(share.cluster_id, Absent) or len(summary.leaders) == 1
        of = "" if is_only else f" of cluster {share.cluster_id}"
        spread = f"{share.fewest} to {share.most} (node {share.busiest}), mean {share.mean:.1f}"
        lines.append(f"leaders per broker{of}: {spread}")
    return lines


# ---------------------------------------------------------------- findings


def _findings(summary: FleetSummary, view: View) -> Iterator[Block]:
    if not summary.finding_count:
        return
    counts = summary.findings_by_severity
    yield Section(title="Findings: " + ", ".join(f"{count} {severity}" for severity, count in counts.items()))
    named = zip(summary.findings, summary.finding_ids, strict=True)
    shown = [(one, own) for one, own in named if one.severity is not Severity.NOTE][: view.most(MOST_ON_SCREEN)]
    for one, own in shown:
        yield item(f"{one.code} {one.severity}: {one.statement}")
        if view.verbose:
            yield Prose(own, Tone.QUIET, depth=2)
    rest = sum(count for severity, count in counts.items() if severity != "note") - len(shown)
    if rest > 0:
        yield Prose(f"and {rest:,} more (-v, or the table findings)", depth=1)


def _causes(summary: FleetSummary) -> Iterator[Block]:
    """Yield the findings by their code, the gravest cause first, then the most frequent, with the command that shows more of each."""
    by_code: dict[str, list[tuple[Finding, str]]] = {}
    for one, name in zip(summary.findings, summary.finding_ids, strict=True):
        by_code.setdefault(one.code, []).append((one, name))
    if by_code:
        yield Section(title="Findings by cause", anchor="findings")
    stakes, changes = _stakes(summary), dict(_changes_of(summary.comparison))
    rank = {code: max(one.severity.rank for one, _ in found) for code, found in by_code.items()}
    for code in sorted(by_code, key=lambda code: (-rank[code], -len(by_code[code]), code)):
        yield from _cause(code, by_code[code], summary, stakes, changes)
    if summary.finding_count > len(summary.findings):
        yield Prose(
            f"{summary.finding_count - len(summary.findings):,} findings more in the table findings.", Tone.QUIET
        )


def _cause(
    code: str,
    found: Sequence[tuple[Finding, str]],
    summary: FleetSummary,
    stakes: Mapping[tuple[str, int], str],
    changes: Mapping[str, str],
) -> Iterator[Block]:
    gravest = max((one for one, _ in found), key=lambda one: one.severity.rank)
    kind = all_rules().get(code, gravest)
    title = gravest.statement if isinstance(kind, Finding) else kind.title
    total = summary.findings_by_code.get(code, len(found))
    lead = f"{_where_words(found, summary, total)}. {kind.meaning}"
    yield Section(title=f"{code} {title}", mark=gravest.severity.value, level=3, anchor=code, lead=lead)
    if kind.advice:
        yield Prose(kind.advice)
    yield Table(
        name=f"{code}: where it was found",
        columns=[
            Column("Partition"),
            Column("Broker"),
            Column("Offsets"),
            Column("Records at stake"),
            Column("What was found"),
            Column("Next", is_mono=True),
        ],
        rows=[
            (
                Cell(text=_place(one), badge=changes.get(name, ""), tone=Tone.WARNING),
                ", ".join(_brokers(one, summary.inputs)),
                "" if isinstance(one.offsets, Absent) else f"{one.offsets.first:,} to {one.offsets.last:,}",
                "" if isinstance(one.partition, Absent) else stakes.get((str(one.topic), one.partition), ""),
                Cell(
                    badge=one.severity.value,
                    tone=SEVERITY_TONES.get(one.severity.value, Tone.QUIET),
                    text=one.statement,
                    below="" if one.advice == kind.advice else one.advice,
                ),
                next_command(one, summary.inputs, summary.tables),
            )
            for one, name in found[:MOST_OF_CAUSE]
        ],
        is_ledger=True,
    )
    if total > MOST_OF_CAUSE:
        yield Prose(f"{total - min(len(found), MOST_OF_CAUSE):,} more in the table findings.", Tone.QUIET)


def _where_words(found: Sequence[tuple[Finding, str]], summary: FleetSummary, total: int) -> str:
    places = {(one.topic, one.partition) for one, _ in found if not isinstance(one.partition, Absent)}
    brokers = {broker for one, _ in found for broker in _brokers(one, summary.inputs)}
    words = [counted(total, "finding")]
    words += [f"in {counted(len(places), 'partition')}"] if places else []
    words += [f"on {form(len(brokers), 'broker')} {listed(sorted(brokers, key=int))}"] if 0 < len(brokers) <= 8 else []
    words += [f"on {len(brokers):,} brokers"] if len(brokers) > 8 else []
    return " ".join(words)


def _changes_of(comparison: AuditComparison | None) -> Iterator[tuple[str, str]]:
    if comparison is not None:
        for change in (Change.NEW, Change.WORSE, Change.CHANGED, Change.BETTER):
            yield from ((one.finding_id, one.change.value) for one in _of_change(comparison, change))


def _stakes(summary: FleetSummary) -> Mapping[tuple[str, int], str]:
    """Return the records at stake in each partition that the summary shows; of a name that several clusters have none."""
    out: dict[tuple[str, int], str] = {}
    for one in summary.worst:
        key = (one.topic, one.partition)
        parts = [counted(one.lost_certain, "committed record")] if one.lost_certain else []
        parts += [f"{one.lost_possible:,} possibly committed"] if one.lost_possible else []
        out[key] = "" if key in out else ", ".join(parts)
    return out


def _place(one: Finding) -> str:
    if isinstance(one.topic, Absent):
        return "the cluster"
    return one.topic if isinstance(one.partition, Absent) else f"{one.topic}-{one.partition}"


def _brokers(one: Finding, inputs: Sequence[Input]) -> list[str]:
    """Return the broker that a finding is about, or those whose files it cites."""
    if not isinstance(one.broker_id, Absent):
        return [str(one.broker_id)]
    cited = {inputs[cite.input].broker_id for cite in one.citations if 0 <= cite.input < len(inputs)}
    return [str(number) for number in sorted(number for number in cited if isinstance(number, int))]


def next_command(one: Finding, inputs: Sequence[Input], tables: str) -> str:
    """Return the command that shows more of a finding: from the files where they are at hand, else from the tables."""
    paths = list(dict.fromkeys(inputs[cite.input].path for cite in one.citations if 0 <= cite.input < len(inputs)))
    filters = []
    if not isinstance(one.topic, Absent):
        filters += ["--topic", one.topic]
        filters += [] if isinstance(one.partition, Absent) else ["--partition", str(one.partition)]
    if not paths or len(paths) > _MOST_PATHS or any("://" in path for path in paths):
        return command_line(["kforensics", "fleet", "report", tables, *filters, "--code", one.code])
    if len(paths) > 1 and filters:
        return command_line(["kforensics", "diff", *paths, *filters])
    folder = one.citations[0].path.rpartition("/")[0]
    own = f"{paths[0].rstrip('/')}/{folder}" if folder and folder != "." and not paths[0].endswith(".kfc") else paths[0]
    return command_line(["kforensics", "verify", own])


def _problems(summary: FleetSummary, view: View) -> Iterator[Block]:
    shown = summary.problems if view.page else summary.problems[: view.most(MOST_ON_SCREEN)]
    if shown and not view.page:
        yield GAP
    yield from problem_items(shown, summary.inputs, view)
    if summary.problem_count > len(shown):
        yield Prose(f"and {summary.problem_count - len(shown):,} more (the table problems)", depth=1)


# ---------------------------------------------------------------- two audits

_HEADINGS = {
    Change.NEW: "New",
    Change.WORSE: "Worse",
    Change.CHANGED: "Changed, neither proven worse nor better",
    Change.BETTER: "Better",
    Change.UNCHECKED: "No longer found, not checked again",
    Change.GONE: "Gone",
}
_FIGURES = (
    ("new findings", Change.NEW, Tone.BAD),
    ("worse", Change.WORSE, Tone.BAD),
    ("changed", Change.CHANGED, Tone.WARNING),
    ("better", Change.BETTER, Tone.PLAIN),
    ("not checked again", Change.UNCHECKED, Tone.WARNING),
    ("gone", Change.GONE, Tone.PLAIN),
    ("unchanged", Change.UNCHANGED, Tone.PLAIN),
)


def _changed(comparison: AuditComparison, name: str) -> Facts:
    return _figures(name, [(label, comparison.count(change), tone) for label, change, tone in _FIGURES])


def _of_change(comparison: AuditComparison, change: Change) -> tuple[FindingChange, ...]:
    found: tuple[FindingChange, ...] = getattr(comparison, f"{change.value}_findings", ())
    return found


def comparison(result: Result[AuditComparison], view: View) -> Iterator[Block]:
    """Yield what is new and what is no longer there."""
    compared = result.body
    most = view.most(MOST_ON_SCREEN)
    if view.page:
        rows = [("Audit", compared.later_audit), ("Compared with", compared.earlier_audit)]
        rows += [("Tables", compared.later), ("Tables compared with", compared.earlier)]
        yield Facts(name="Audits", form=FactsForm.IDENTITY, rows=[(*one, Tone.PLAIN) for one in rows])
        yield _changed(compared, "At a glance")
    else:
        yield GAP
        yield Prose(f"Audit {compared.later_audit}, compared with {compared.earlier_audit}", Tone.QUIET)
    for heading, nodes in (("New nodes", compared.new_nodes), ("Missing nodes", compared.gone_nodes)):
        if nodes:
            yield item(f"{heading}: {listed(nodes)}", hang=0)
    if compared.changes:
        yield Section(title="Verdicts", anchor="verdicts")
        yield Table(
            name="Partitions with another verdict, the worst first",
            columns=[Column("Partition"), Column("Before"), Column("Now")],
            rows=[
                (f"{one.topic}-{one.partition}", _verdict(one.before), _verdict(one.after))
                for one in compared.changes[:most]
            ],
        )
    for change, heading in _HEADINGS.items():
        findings = _of_change(compared, change)
        if not findings:
            continue
        yield Section(title=heading, anchor=change.value)
        yield from _page_of_changes(findings, heading) if view.page else _screen_of_changes(findings[:most], view)
        rest = compared.count(change) - min(len(findings), most)
        if rest > 0:
            yield Prose(f"and {rest:,} more (-v, or the tables)", depth=1)


def _screen_of_changes(findings: Iterable[FindingChange], view: View) -> Iterator[Block]:
    for one in findings:
        yield item(f"{one.code} {one.said}")
        for more in (moved_words(one), one.finding_id if view.verbose else ""):
            if more:
                yield Prose(more, Tone.QUIET, depth=2)


def _page_of_changes(findings: Sequence[FindingChange], heading: str) -> Iterator[Block]:
    severities = [one.severity or one.severity_before for one in findings]
    yield Table(
        name=f"{heading}, the gravest first",
        columns=[Column("Code"), Column("Topic"), Column("Node"), Column("Statement"), Column("Finding", is_mono=True)],
        rows=[
            (
                Cell(text=one.code, badge=severity or "", tone=SEVERITY_TONES.get(str(severity), Tone.QUIET)),
                known_or(one.topic, Absent.NOT_APPLICABLE),
                "" if one.node_id is None else str(one.node_id),
                Cell(text=one.said, below=moved_words(one)),
                one.finding_id,
            )
            for one, severity in zip(findings, severities, strict=True)
        ],
    )


def _verdict(value: str | Absent) -> str:
    return "none" if isinstance(value, Absent) else value


def moved_words(one: FindingChange) -> str:
    """Describe how severity and offsets of a finding that both audits have moved; empty where they did not."""
    moved = []
    if one.severity is None or one.severity_before is None:
        return ""
    if one.severity != one.severity_before:
        moved.append(f"{one.severity}, it was {one.severity_before}")
    if one.offsets != one.offsets_before:
        moved.append(f"offsets {_range(one.offsets)}, they were {_range(one.offsets_before)}")
    if not moved and one.statement != one.statement_before:
        moved.append(f"it was: {one.statement_before}")
    return "; ".join(moved)


def _range(offsets: OffsetRange | Absent) -> str:
    return "unknown" if isinstance(offsets, Absent) else f"{offsets.first}..{offsets.last}"


# ---------------------------------------------------------------- audits one after the other


def trend(result: Result[AuditTrend], view: View) -> Iterator[Block]:
    """Yield the findings of each audit as a picture, and one line for each, the oldest first."""
    lines = result.body.lines
    severities = [one for one in Severity if any(one.value in line.findings_by_severity for line in lines)]
    if view.page and lines[1:]:
        yield Section(title="Findings by severity", anchor="picture")
        yield Bars(
            name="Findings by audit and severity",
            kinds=[one.value for one in severities],
            moments=[
                (utc_text(line.audited_ms), [line.findings_by_severity.get(one.value, 0) for one in severities])
                for line in lines
            ],
        )
    if view.page:
        yield Section(title="Audits", anchor="audits")
    else:
        yield GAP
    yield Table(
        name="Audits, the oldest first",
        columns=[Column(one) for one in ("audited (UTC)", "findings", "since the one before", "audit")],
        rows=[_trend_row(one) for one in lines],
    )


def _trend_row(line: TrendLine) -> tuple[str, ...]:
    found = [f"{count:,} {name}" for name, count in line.findings_by_severity.items()]
    if line.problem_count:
        found.append(f"{line.problem_count:,} not read")
    changes = [f"{count:,} {change_words(name)}" for name, count in line.findings_by_change.items()]
    is_first = isinstance(line.compared_with, Absent)
    return (
        utc_text(line.audited_ms)[:16].replace("T", " "),
        ", ".join(found) or "none",
        "" if is_first else ", ".join(changes) or "no change",
        line.audit_id,
    )


# ---------------------------------------------------------------- what is left of a history


def history(result: Result[TrimmedHistory], view: View) -> Iterator[Block]:
    """Yield the audits that were removed, where they are asked for."""
    if view.verbose or view.page:
        yield from (item(f"removed: {one}") for one in result.body.trimmed_audits)
