"""The answers of `ls`, `dump` and `metadata`, which say what is there."""

from collections import Counter
from collections.abc import Iterator, Sequence

from kforensics.damage import Absent
from kforensics.evidence.inventory import Inventory
from kforensics.evidence.metadata.compare import LogComparison, MetadataTail
from kforensics.evidence.metadata.quorum import majority
from kforensics.evidence.metadata.set_back import QuorumSetBack
from kforensics.evidence.model import Input, Problem
from kforensics.evidence.replica.unaccounted import Unaccounted
from kforensics.findings.answers.model import Answer, State
from kforensics.findings.rules.quorum import quorum_steps, quorum_words
from kforensics.protocol.versions import NEWEST_LEVEL, level_name
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


def metadata_answer(
    comparison: LogComparison,
    problems: Sequence[Problem],
    *,
    lost_end: Unaccounted | None = None,
    quorum: QuorumSetBack | None = None,
) -> Answer:
    """Return the answer to what the metadata logs hold.

    Returns:
        `diverged` where a node holds records that the newest log does not and that a majority may have held, `unknown` where not all could be read, `behind` where a log is shorter or has a tail that no majority held, `agree`
        where several are the same, `complete` for one alone.
    """
    unread = counted(len(problems), "problem") if problems else ""
    incomplete = [f"with {unread}"] if unread else []
    if lost_end is not None:
        incomplete.append(f"a broker registered at offset {lost_end.last}, above its end")
    prefix = f"Incomplete, {' and '.join(incomplete)}: " if incomplete else ""
    headline = f"{prefix}{_newest(comparison)}"
    return Answer(
        state=_state(comparison, bool(incomplete or quorum)),
        headline=f"{quorum_words(quorum)} {headline}" if quorum else headline,
        now=tuple(quorum_steps(quorum)) if quorum else (),
        unknown=(
            *(
                (
                    f"What {lost_end.words} and later ones hold: .kafka_cleanshutdown names the broker epoch {lost_end.last}.",
                )
                if lost_end
                else ()
            ),
            *((f"What the metadata holds in the places of {unread} is not shown.",) if unread else ()),
            *_uncommitted(comparison),
        ),
    )


def _state(comparison: LogComparison, is_incomplete: bool) -> State:
    tails = [log.tail for log in comparison.logs if not isinstance(log.tail, Absent)]
    # What no majority holds was not committed: its node truncates it when it next fetches (KIP-595).
    if any(_can_be_committed(tail, comparison) for tail in tails) or any(log.is_mixed for log in comparison.logs):
        return State.DIVERGED
    if is_incomplete:
        return State.UNKNOWN
    if tails or any(log.behind for log in comparison.logs):
        return State.BEHIND
    return State.AGREE if len(comparison.logs) > 1 else State.COMPLETE


def _can_be_committed(tail: MetadataTail, comparison: LogComparison) -> bool:
    """Whether a majority of the voters can hold a tail that differs from the newest log; a majority that holds the newest log there excludes it."""
    voters = comparison.voters
    without = {
        log.history.node_id
        for log in comparison.logs
        if isinstance(log.tail, Absent) or log.tail.first_offset != tail.first_offset
    }
    return not voters or len(set(voters) - without) >= majority(len(voters))


def _uncommitted(comparison: LogComparison) -> Iterator[str]:
    """Yield the parts of the newest log that are not shown to be committed."""
    newest, end, voters = comparison.newest, comparison.majority_end_offset, comparison.voters
    if isinstance(end, Absent):
        if len(voters) > 1:
            yield f"How far the metadata is committed: the logs of most of the voters {listed(list(map(str, voters)))} would show it."
    elif end < newest.end_offset:
        last = newest.end_offset - 1
        is_one = last == end
        offsets, them = (f"offset {end}", "it") if is_one else (f"offsets {end}..{last}", "them")
        yield f"Whether {offsets} {'was' if is_one else 'were'} ever committed: no majority of the voters holds {them} in the logs given, which need not be of one moment."


def _newest(comparison: LogComparison) -> str:
    newest = comparison.newest
    node = "a node" if isinstance(newest.node_id, Absent) else f"node {newest.node_id}"
    version = newest.metadata_version
    newer = f" ({level_name(version)})" if isinstance(version, int) and version > NEWEST_LEVEL else ""
    feature = "" if isinstance(version, Absent) else f", metadata.version {version}{newer}"
    logs = "" if len(comparison.logs) == 1 else f" (the newest of {len(comparison.logs)} logs)"
    if not newest.is_log_known:
        return f"Metadata log of {node}{logs}: it could not be read whole, and where it ends is unknown{feature}."
    if newest.start_offset == newest.end_offset:
        return f"Metadata log of {node}{logs}: no record behind its snapshot at offset {newest.end_offset}{feature}."
    return (
        f"Metadata log of {node}{logs}: offsets {newest.start_offset}..{newest.end_offset - 1}, "
        f"leader epoch {newest.last_epoch}{feature}."
    )
