"""Metadata logs as text: their comparison, and the partitions and brokers at one offset."""

from collections.abc import Iterator

from kforensics.commands.metadata import MetadataView
from kforensics.commands.processes import default_jobs
from kforensics.commands.result import Result
from kforensics.damage import Absent
from kforensics.evidence.metadata.compare import ComparedLog, LogComparison
from kforensics.evidence.metadata.state import BrokerState, MetadataState, PartitionState
from kforensics.render.escape import escape_text
from kforensics.render.text.metadata_history import history_pieces, ids_text
from kforensics.render.text.screen import Line, Words, columns
from kforensics.render.text.whole import whole_screen
from kforensics.render.view import View
from kforensics.words import counted, form, listed


@whole_screen
def write(result: Result[MetadataView], view: View) -> Iterator[Line]:
    """Yield how the logs compare, the state, and the history as it is put into words.

    Args:
        view: of the screen, and whether the whole history is listed.
    """
    body = result.body
    asked = body.request
    yield from _comparison_lines(body.comparison)
    yield ""
    if asked.broker is None or asked.at_offset is not None:
        yield from _state_lines(body.state, topic=asked.topic, partition=asked.partition)
    if asked.at_offset is not None and asked.topic is None and asked.broker is None:
        return
    pieces = history_pieces(body.events, verbose=view.verbose, jobs=default_jobs())
    separator = "\n"
    for piece in pieces:
        if piece:
            yield separator + piece.removesuffix("\n")
            separator = ""


def _comparison_lines(comparison: LogComparison) -> Iterator[Line]:
    """Yield how the other logs compare with the newest."""
    tails = [log for log in comparison.logs if not isinstance(log.tail, Absent)]
    if tails:
        yield Words(
            f"{counted(len(tails), 'node')} of {len(comparison.logs)} {form(len(tails), 'holds', 'hold')} "
            "records that the newest log does not hold: never committed, truncated when the node follows the leader."
        )
    if len(comparison.voters) > 1:
        yield Words(_majority_line(comparison))
    if len(comparison.logs) > 1:
        yield ""
        yield from _log_rows(comparison)


def _majority_line(comparison: LogComparison) -> str:
    voters = listed([str(voter) for voter in comparison.voters], most=9)
    end = comparison.majority_end_offset
    if isinstance(end, Absent):
        return f"Voters are {voters}; too few of their logs are among the inputs to show what a majority holds."
    return f"A majority of the voters {voters} holds everything below {end}."


def _log_rows(comparison: LogComparison) -> Iterator[str]:
    rows = []
    for log in comparison.logs:
        history = log.history
        rows.append(
            (
                _node(history.node_id),
                f"{history.start_offset}..{history.end_offset - 1}"
                if history.is_log_known
                else "could not be read whole",
                f"leader epoch {history.last_epoch}",
                _standing(log, comparison),
            )
        )
    yield from columns(rows)


def _standing(log: ComparedLog, comparison: LogComparison) -> str:
    if not log.history.is_log_known:
        return ""
    if log.history is comparison.newest:
        return "newest"
    behind = f"behind by {counted(log.behind, 'record')}" if log.behind else "the same"
    if isinstance(log.tail, Absent):
        return behind
    return f"{log.tail.first_offset}..{log.tail.last_offset} differ (leader epoch {log.tail.raft_epoch})"


def _node(node_id: int | Absent) -> str:
    return "a node" if isinstance(node_id, Absent) else f"node {node_id}"


def _state_lines(state: MetadataState, *, topic: str | None = None, partition: int | None = None) -> Iterator[str]:
    """Yield the partitions and brokers at one offset."""
    partitions = [
        one
        for one in sorted(state.partitions.values(), key=lambda one: (one.topic, one.partition))
        if (topic is None or one.topic == topic) and (partition is None or one.partition == partition)
    ]
    yield f"At metadata offset {state.offset}"
    if partitions:
        yield from columns([_partition_row(one) for one in partitions])
    else:
        yield "  no such partition" if topic is not None else "  no partitions"
    if topic is None:
        yield ""
        yield from columns([_broker_row(one) for _, one in sorted(state.brokers.items())])


def _partition_row(state: PartitionState) -> tuple[str, ...]:
    """Return the row of one partition."""
    leader = "no leader" if isinstance(state.leader, Absent) else f"leader {state.leader}"
    notes = []
    if state.is_recovering:
        notes.append("unclean leader election, recovering")
    if state.eligible_leader_replicas:
        notes.append(f"ELR {ids_text(state.eligible_leader_replicas)}")
    if state.last_known_elr:
        notes.append(f"last known {ids_text(state.last_known_elr)}")
    if state.adding_replicas or state.removing_replicas:
        notes.append(f"adding {ids_text(state.adding_replicas)} removing {ids_text(state.removing_replicas)}")
    return (
        f"{escape_text(state.topic)}-{state.partition}",
        leader,
        f"epoch {state.leader_epoch}",
        f"ISR {ids_text(state.isr)}",
        f"of {ids_text(state.replicas)}",
        f"since {state.when.offset}",
        ", ".join(notes),
    )


def _broker_row(state: BrokerState) -> tuple[str, ...]:
    return (
        f"broker {state.broker_id}",
        f"broker epoch {state.broker_epoch}",
        "fenced" if state.is_fenced else "unfenced",
        escape_text(listed(state.end_points)),
        f"since {state.when.offset}",
    )
