"""The screen of `kforensics ls`: the inventory, node by node."""

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.text import Text

from kforensics.commands.ls import Listing
from kforensics.commands.result import Result
from kforensics.damage import Absent
from kforensics.evidence.inventory import Inventory, ListedNode, ListedPartition
from kforensics.evidence.model import Input
from kforensics.findings.model import Finding
from kforensics.render.escape import escape_text, shorten
from kforensics.render.text.screen import INDENT, Line, Style, Words, columns, hanging, section
from kforensics.render.text.whole import whole_screen
from kforensics.render.view import View
from kforensics.words import byte_count, counted, listed

NUMBERS = frozenset({1, 2, 3, 4, 5, 6, 7})
"""The columns of the partition table that hold numbers."""

HEADINGS = ("partition", "epoch", "from", "HW", "recovery", "end", "segs", "bytes", "start")
MOST_ALIKE = 5


@whole_screen
def write(result: Result[Listing], view: View) -> Iterator[Line]:
    """Yield what is odd, then a table a node.

    Args:
        view: of the screen, and whether what is fine is listed too.
    """
    inventory, inputs, findings = result.body.inventory, result.inputs, result.findings
    verbose = view.verbose
    yield Words(_second_line(inventory))
    yield from _odd(inventory, findings, inputs, verbose=verbose)
    partitions: dict[int, list[ListedPartition]] = {}
    for one in inventory.partitions:
        partitions.setdefault(one.input, []).append(one)
    nodes = {node.input: node for node in inventory.nodes}
    for index, described in enumerate(inputs):
        if index in nodes or index in partitions:
            yield Text()
            yield from _heading(described, nodes.get(index), width=view.width)
            yield from _tables(partitions.get(index, []), nodes.get(index), width=view.width, verbose=verbose)
    yield Text()
    yield Words(_files(inventory))


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
) -> Iterator[Line]:
    lines: list[Line] = []
    for problem in inventory.problems:
        words = f"{escape_text(problem.place(inputs))}: {escape_text(problem.message)}"
        lines.append(hanging(words))
    if lines:
        yield from section("Could not be read")
        yield from lines
    shown = [one for one in findings if verbose or one.is_grave]
    if shown:
        yield from section("Worth a look")
        for code in dict.fromkeys(one.code for one in shown):
            alike = [one for one in shown if one.code == code]
            for one in alike[: None if verbose else MOST_ALIKE]:
                words = f"{one.severity}: {escape_text(one.statement)}"
                yield hanging(words)
            if len(alike) > MOST_ALIKE and not verbose:
                yield Text(f"{INDENT}and {len(alike) - MOST_ALIKE} more like these (-v lists them)")
            meaning = f"{alike[0].meaning} {alike[0].advice}"
            yield Words(meaning, indent=INDENT * 2, style=Style.QUIET)


def _heading(described: Input, node: ListedNode | None, *, width: int) -> Iterator[Line]:
    if node is None:
        yield Text(f"{described.kind} {escape_text(described.path)}", style=Style.HEADING)
        return
    yield Text(
        f"{node.kind} {_node_name(node.node_id)}  {shorten(escape_text(described.path), width - 24)}",
        style=Style.HEADING,
    )
    facts = []
    if not isinstance(node.kafka_version_hint, Absent):
        facts.append(f"Kafka {node.kafka_version_hint}")
    if node.kind != "controller":
        facts.append("stopped cleanly" if node.clean_shutdown else "no clean stop")
    facts += [f"broker epoch {one.broker_epoch}" for one in node.log_dirs if not isinstance(one.broker_epoch, Absent)][
        :1
    ]
    yield Words(" · ".join(facts), indent=INDENT)


def _tables(
    partitions: Sequence[ListedPartition], node: ListedNode | None, *, width: int, verbose: bool
) -> Iterator[Line]:
    """Yield one table per log directory, under its path if that is not the node's own."""
    by_log_dir: dict[str, list[ListedPartition]] = {}
    for one in partitions:
        by_log_dir.setdefault(one.log_dir, []).append(one)
    clean = {one.path: one.clean_shutdown for one in node.log_dirs} if node else {}
    rows = {log_dir: [_row(one, log_dir) for one in inside] for log_dir, inside in by_log_dir.items()}
    every = [HEADINGS, *(row for some in rows.values() for row in some)]
    fixed = [max(len(row[place]) for row in every) for place in range(1, len(HEADINGS))]
    room = max(width - len(INDENT) - sum(fixed) - 2 * len(fixed), 16)
    names = max(min(len(row[0]), room) for row in every)
    for log_dir, inside in by_log_dir.items():
        if log_dir:
            differs = len(set(clean.values())) > 1
            state = (", stopped cleanly" if clean.get(log_dir) else ", no clean stop") if differs else ""
            yield Text(f"{INDENT}log directory {escape_text(log_dir)}{state}")
        table = [HEADINGS, *((shorten(row[0], room), *row[1:]) for row in rows[log_dir])]
        yield from columns(table, right=NUMBERS, least=(names, *fixed))
        if verbose:
            ids = [(one, one.topic_id) for one in inside if not isinstance(one.topic_id, Absent)]
            yield from (Text(f"{INDENT}topic id {topic_id}  {escape_text(one.path)}") for one, topic_id in ids)


def _row(one: ListedPartition, log_dir: str) -> tuple[str, ...]:
    if isinstance(one.topic, Absent) or (one.state == "live" and one.path != "."):
        name = one.path[len(log_dir) :].lstrip("/")
    else:
        name = f"{one.topic}-{one.partition}" + (f" {one.state}" if one.state != "live" else "")
    return (
        escape_text(name),
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


def _files(inventory: Inventory) -> str:
    kinds = Counter[tuple[str, str]]()
    for one in inventory.files:
        kinds[one.kind.replace("-", " "), one.suffix] += one.count
    total = sum(kinds.values())
    by_kind = ", ".join(
        counted(count, kind, _plural(kind)) + (f" ({suffix})" if suffix else "")
        for (kind, suffix), count in sorted(kinds.items())
    )
    unknown = len(inventory.unknown)
    if total == 1:
        known = "known" if not unknown else "none of a kind that brokers write"
    else:
        known = "all of known kinds" if not unknown else f"{unknown} of unknown kinds"
    return f"{counted(total, 'file')}, {known}: {by_kind}." if total else "No file."


def _plural(kind: str) -> str:
    """Return the plural of the name of a kind of file: `offset indexes`."""
    return kind if kind.endswith("s") or kind in _WITHOUT_PLURAL else f"{kind}{'es' if kind.endswith('x') else 's'}"
