"""The answers of `ls`, `dump` and `metadata`, which say what is there."""

from collections import Counter
from collections.abc import Sequence

from kforensics.damage import Absent
from kforensics.evidence.inventory import Inventory
from kforensics.evidence.model import Input
from kforensics.findings.answers.model import Answer, State
from kforensics.words import byte_count, counted, form, listed

NODE_NAMES = {"broker": "broker", "controller": "controller", "combined": "combined node"}


def ls_answer(inventory: Inventory, inputs: Sequence[Input]) -> Answer:
    """Return the answer to what is below the inputs."""
    unread = len(inventory.problems)
    return Answer(
        state=State.UNKNOWN if unread else State.COMPLETE,
        headline=_headline(inventory, inputs),
        unknown=(
            f"{counted(unread, 'thing')} could not be read and {form(unread, 'is', 'are')} not counted: see the list below.",
        )
        if unread
        else (),
    )


def _headline(inventory: Inventory, inputs: Sequence[Input]) -> str:
    total = sum(one.count for one in inventory.files)
    if not inventory.nodes and not inventory.partitions:
        return f"{counted(total, 'file')}, no data directory."
    nodes = {
        (node.kind, node.cluster_id, node.node_id if not isinstance(node.node_id, Absent) else f"input {node.input}")
        for node in inventory.nodes
    }
    kinds = Counter(kind for kind, _, _ in nodes)
    parts = [counted(kinds[kind], name) for kind, name in NODE_NAMES.items() if kinds[kind]]
    if len(nodes) < len(inventory.nodes):
        parts[-1] += f" in {len(inventory.nodes)} copies"
    loose = sum(1 for one in inputs if one.kind == "partition")
    if loose:
        parts.append(counted(loose, "single partition directory", "single partition directories"))
    clusters = {node.cluster_id for node in inventory.nodes if not isinstance(node.cluster_id, Absent)}
    of_cluster = ""
    if len(clusters) == 1:
        of_cluster = f" of cluster {next(iter(clusters))}"
    elif clusters:
        of_cluster = f" of {len(clusters)} clusters"
    replicas = counted(len(inventory.partitions), "replica")
    named = {(one.topic, one.partition) for one in inventory.partitions}
    size = byte_count(sum(one.bytes for one in inventory.files if one.kind == "segment"))
    return (
        f"{listed(parts)}{of_cluster}: {replicas} of {counted(len(named), 'partition')}, "
        f"{size} of log, {counted(total, 'file')}."
    )


def dump_answer(*, files: int, damaged: int, unread: int) -> Answer:
    """Return the answer to whether the content is whole."""
    total = counted(files, "file")
    missed = f"{counted(unread, 'thing')} could not be read" if unread else ""
    if damaged:
        holds = form(damaged, "holds", "hold")
        return Answer(
            state=State.DAMAGED,
            headline=f"{damaged:,} of {total} {holds} damage, which is shown in its place.",
            now=(
                "Run `kforensics verify` on the same paths: it names what is lost and which replica holds it intact.",
            ),
            unknown=(f"{missed}.",) if missed else (),
        )
    if missed:
        return Answer(state=State.UNKNOWN, headline=f"Incomplete: {missed}; {total} decoded.")
    return Answer(state=State.COMPLETE, headline=f"{total} decoded.")
