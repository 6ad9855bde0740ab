"""What `ls` shows: what is odd, then the inventory, node by node."""

from collections import Counter
from collections.abc import Iterator, Sequence

from kforensics.commands.ls import Listing
from kforensics.commands.result import Result
from kforensics.damage import Absent
from kforensics.evidence.inventory import Inventory, ListedNode, ListedPartition
from kforensics.evidence.model import Input
from kforensics.findings.model import Finding
from kforensics.render.blocks import GAP, Block, Column, Prose, Section, Table, Tone, item
from kforensics.render.view import View
from kforensics.words import byte_count, counted, listed

MOST_ALIKE = 5
MOST_KINDS = 6
"""Kinds of files that are counted by name without -v, those of most files."""
_NUMBERS = ("epoch", "from", "HW", "recovery", "end", "segs", "bytes")
COLUMNS = (
    Column("partition", is_shortened=True),
    *(Column(title, is_number=True) for title in _NUMBERS),
    Column("start"),
)


def blocks(result: Result[Listing], view: View) -> Iterator[Block]:
    """Yield what is odd, then a table a node."""
    inventory, inputs = result.body.inventory, result.inputs
    yield Prose(_second_line(inventory))
    if not view.page:
        yield from _odd(inventory, result.findings, inputs, verbose=view.verbose)
    partitions: dict[int, list[ListedPartition]] = {}
    for one in inventory.partitions:
        partitions.setdefault(one.input, []).append(one)
    nodes = {node.input: node for node in inventory.nodes}
    for index, described in enumerate(inputs):
        if index in nodes or index in partitions:
            yield GAP
            yield from _heading(described, nodes.get(index))
            yield from _tables(partitions.get(index, []), nodes.get(index), verbose=view.verbose)
    yield GAP
    yield Prose(_files(inventory, view))


def _second_line(inventory: Inventory) -> str:
    brokers = [node for node in inventory.nodes if node.kind != "controller"]
    unclean = [node for node in brokers if not node.clean_shutdown]
    if not brokers:
        return ""
    if not unclean:
        if len(brokers) == 1:
            return "Stopped cleanly."
        what = "brokers" if len({node.node_id for node in brokers}) == len(brokers) else "broker directories"
        return f"{'Both' if len(brokers) == 2 else f'All {len(brokers)}'} {what} stopped cleanly."
    names = [_node_name(node.node_id) for node in unclean]
    if len(brokers) == 1:
        who = "The broker"
    elif len(set(names)) < len(names):
        who = f"{len(unclean)} of {len(brokers)} broker directories"
    else:
        who = f"{'Brokers' if len(names) > 1 else 'Broker'} {listed(names)}"
    return (
        f"{who} left no clean-shutdown marker: killed, or running when this was copied; a start would recover the logs."
    )


def _odd(
    inventory: Inventory, findings: Sequence[Finding], inputs: Sequence[Input], *, verbose: bool
) -> Iterator[Block]:
    if inventory.problems:
        yield Section(title="Could not be read")
    for problem in inventory.problems:
        yield item(f"{problem.place(inputs)}: {problem.message}")
    shown = [one for one in findings if verbose or one.is_grave]
    if shown:
        yield Section(title="Worth a look")
    for code in dict.fromkeys(one.code for one in shown):
        alike = [one for one in shown if one.code == code]
        for one in alike[: None if verbose else MOST_ALIKE]:
            yield item(f"{one.severity}: {one.statement}")
        if len(alike) > MOST_ALIKE and not verbose:
            yield Prose(f"and {len(alike) - MOST_ALIKE} more like these (-v lists them)", depth=1)
        yield Prose(f"{alike[0].meaning} {alike[0].advice}", Tone.QUIET, depth=2)


def _heading(described: Input, node: ListedNode | None) -> Iterator[Block]:
    if node is None:
        yield Section(title=f"{described.kind} {described.path}", level=3)
        return
    yield Section(title=f"{node.kind} {_node_name(node.node_id)}", aside=described.path, level=3)
    facts = []
    if not isinstance(node.kafka_version_hint, Absent):
        facts.append(f"Kafka {node.kafka_version_hint}")
    if node.kind != "controller":
        facts.append("stopped cleanly" if node.clean_shutdown else "no clean stop")
    facts += [f"broker epoch {one.broker_epoch}" for one in node.log_dirs if not isinstance(one.broker_epoch, Absent)][
        :1
    ]
    yield Prose(" · ".join(facts), depth=1)


def _tables(partitions: Sequence[ListedPartition], node: ListedNode | None, *, verbose: bool) -> Iterator[Block]:
    """Yield one table per log directory, under its path if that is not the node's own."""
    by_log_dir: dict[str, list[ListedPartition]] = {}
    for one in partitions:
        by_log_dir.setdefault(one.log_dir, []).append(one)
    clean = {one.path: one.clean_shutdown for one in node.log_dirs} if node else {}
    rows = {log_dir: [_row(one, log_dir) for one in inside] for log_dir, inside in by_log_dir.items()}
    every = [[column.title for column in COLUMNS], *(row for some in rows.values() for row in some)]
    least = [max(len(row[place]) for row in every) for place in range(len(COLUMNS))]
    for log_dir, inside in by_log_dir.items():
        if log_dir:
            differs = len(set(clean.values())) > 1
            state = (", stopped cleanly" if clean.get(log_dir) else ", no clean stop") if differs else ""
            yield Prose(f"log directory {log_dir}{state}", depth=1)
        yield Table(name=f"Partitions of {log_dir or 'the node'}", columns=COLUMNS, rows=rows[log_dir], least=least)
        if verbose:
            ids = [(one, one.topic_id) for one in inside if not isinstance(one.topic_id, Absent)]
            yield from (Prose(f"topic id {topic_id}  {one.path}", depth=1) for one, topic_id in ids)


def _row(one: ListedPartition, log_dir: str) -> tuple[str, ...]:
    if isinstance(one.topic, Absent) or (one.state == "live" and one.path != "."):
        name = one.path[len(log_dir) :].lstrip("/")
    else:
        name = f"{one.topic}-{one.partition}" + (f" {one.state}" if one.state != "live" else "")
    return (
        name,
        _number(one.last_leader_epoch),
        _number(one.log_start_offset),
        _number(one.high_watermark),
        _number(one.recovery_point),
        _number(one.log_end_offset),
        f"{one.segments}+{one.deleted_segments} del" if one.deleted_segments else str(one.segments),
        byte_count(one.bytes),
        "-" if one.start == "unknown" else one.start,
    )


def _number(value: int | Absent) -> str:
    if value is Absent.UNREADABLE:
        return "unreadable"
    return "-" if isinstance(value, Absent) else str(value)


def _node_name(node_id: int | Absent) -> str:
    return "of unknown id" if isinstance(node_id, Absent) else str(node_id)


_WITHOUT_PLURAL = frozenset({"partition metadata", "special", "unknown"})


def _files(inventory: Inventory, view: View) -> str:
    kinds = Counter[tuple[str, str]]()
    for one in inventory.files:
        kinds[one.kind.replace("-", " "), one.suffix] += one.count
    total = sum(kinds.values())
    named = sorted(kinds.items() if view.verbose or view.page else kinds.most_common(MOST_KINDS))
    by_kind = ", ".join(
        counted(count, kind, _plural(kind)) + (f" ({suffix})" if suffix else "") for (kind, suffix), count in named
    )
    rest = total - sum(count for _, count in named)
    by_kind += f" and {counted(rest, 'other')}" if rest else ""
    unknown = len(inventory.unknown)
    if total == 1:
        known = "known" if not unknown else "none of a kind that brokers write"
    else:
        known = "all of known kinds" if not unknown else f"{unknown} of unknown kinds"
    return f"{counted(total, 'file')}, {known}: {by_kind}." if total else "No file."


def _plural(kind: str) -> str:
    """Return the plural of the name of a kind of file: `offset indexes`."""
    return kind if kind.endswith("s") or kind in _WITHOUT_PLURAL else f"{kind}{'es' if kind.endswith('x') else 's'}"
