"""What `metadata` shows: how the logs compare, the partitions and brokers at one offset, the history."""

from collections.abc import Iterator
from itertools import chain

from kforensics.case.processes import default_jobs
from kforensics.case.wanted import is_wanted
from kforensics.commands.metadata import MetadataView
from kforensics.commands.result import Result
from kforensics.damage import Absent
from kforensics.evidence.metadata.compare import ComparedLog, LogComparison
from kforensics.evidence.metadata.set_back import QuorumSetBack
from kforensics.evidence.metadata.state import BrokerState, PartitionState
from kforensics.findings.rules.quorum import broker_words, forgotten_words
from kforensics.render.blocks import GAP, Block, Column, Lines, Prose, Table, item
from kforensics.render.metadata_history import history_pieces, ids_text
from kforensics.render.view import View
from kforensics.words import counted, form, listed

_LOG = tuple(Column(title) for title in ("Node", "Offsets", "Leader epoch", "Compared with the newest"))
_PARTITION = tuple(
    Column(title) for title in ("Partition", "Leader", "Epoch", "ISR", "Replicas", "Since offset", "Notes")
)
_BROKER = tuple(Column(title) for title in ("Broker", "Broker epoch", "Fenced", "End points", "Since offset"))


def blocks(result: Result[MetadataView], view: View) -> Iterator[Block]:
    """Yield how the logs compare, the state, and the history as it is put into words."""
    body = result.body
    asked = body.request
    yield from _comparison(body.comparison)
    yield from _quorum(body.quorum)
    yield GAP
    if asked.broker is None or body.at_offset is not None:
        yield from _state(body)
    if body.at_offset is not None and not asked.topics and asked.broker is None:
        return
    pieces = (piece for piece in history_pieces(body.events, verbose=view.verbose, jobs=default_jobs()) if piece)
    first = next(pieces, None)
    if first is not None:
        yield GAP
        yield Lines("History", chain([first], pieces))


def _asked_for(body: MetadataView) -> list[PartitionState]:
    wanted = (one for one in body.state.partitions.values() if is_wanted(one.topic_partition, body.request))
    return sorted(wanted, key=lambda one: (one.topic, one.partition))


def _comparison(comparison: LogComparison) -> Iterator[Block]:
    tails = [log for log in comparison.logs if not isinstance(log.tail, Absent) and not log.is_mixed]
    if tails:
        yield Prose(
            f"{counted(len(tails), 'node')} of {len(comparison.logs)} {form(len(tails), 'holds', 'hold')} "
            "records that the newest log does not hold: never committed, truncated when the node follows the leader."
        )
    if len(comparison.voters) > 1:
        yield Prose(_majority_line(comparison))
    if len(comparison.logs) > 1:
        yield GAP
        yield Table(
            name="Logs", columns=_LOG, rows=[_log_row(log, comparison) for log in comparison.logs], has_heading=False
        )


def _quorum(quorum: QuorumSetBack | None) -> Iterator[Block]:
    """Yield who can lead the quorum, what it forgets then, and what the brokers do."""
    if quorum is None:
        return
    yield GAP
    yield Prose("With the logs that are here")
    for one in quorum.standings:
        epoch, end = one.position
        holds = f"its log ends at {end}, leader epoch {epoch}" if end else "its log is empty"
        vote = "can be elected" if one.can_lead else "can't be elected"
        if one.known_as:
            vote += f": the voters know it as directory id {one.known_as}"
        yield item(f"controller {one.node} {vote}; {holds}")
    if quorum.forgotten is not None:
        for words in forgotten_words(quorum.forgotten):
            yield item(f"forgotten then: {words}")
    for broker in quorum.brokers:
        yield item(f"broker {broker.node} {broker_words(broker)}")


def _majority_line(comparison: LogComparison) -> str:
    voters = listed([str(voter) for voter in comparison.voters], most=9)
    end = comparison.majority_end_offset
    if isinstance(end, Absent):
        return f"Voters are {voters}; too few of their logs are among the inputs to show what a majority holds."
    return f"A majority of the voters {voters} holds everything below {end}."


def _log_row(log: ComparedLog, comparison: LogComparison) -> tuple[str, ...]:
    history = log.history
    return (
        "a node" if isinstance(history.node_id, Absent) else f"node {history.node_id}",
        f"{history.start_offset}..{history.end_offset - 1}" if history.is_log_known else "could not be read whole",
        f"leader epoch {history.last_epoch}",
        _standing(log, comparison),
    )


def _standing(log: ComparedLog, comparison: LogComparison) -> str:
    if not log.history.is_log_known:
        return ""
    if log.history is comparison.newest:
        return "newest"
    behind = f"behind by {counted(log.behind, 'record')}" if log.behind else "the same"
    if isinstance(log.tail, Absent):
        return behind
    return f"{log.tail.first_offset}..{log.tail.last_offset} differ (leader epoch {log.tail.raft_epoch})"


def _state(body: MetadataView) -> Iterator[Block]:
    partitions, topics = _asked_for(body), body.request.topics
    yield Prose(f"At metadata offset {body.state.offset}")
    if partitions:
        rows = [_partition_row(one) for one in partitions]
        yield Table(name="Partitions", columns=_PARTITION, rows=rows, has_heading=False)
    else:
        yield Prose("no such partition" if topics else "no partitions", depth=1)
    if not topics:
        yield GAP
        brokers = [_broker_row(one) for _, one in sorted(body.state.brokers.items())]
        yield Table(name="Brokers", columns=_BROKER, rows=brokers, has_heading=False)


def _partition_row(state: PartitionState) -> tuple[str, ...]:
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
        f"{state.topic}-{state.partition}",
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
        listed(state.end_points),
        f"since {state.when.offset}",
    )
