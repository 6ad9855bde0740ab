"""What `transactions` shows: each partition with what holds its last stable offset."""

from collections.abc import Iterator

from kforensics.commands.result import Result
from kforensics.commands.transactions import Transactions
from kforensics.damage import Absent
from kforensics.evidence.coordinators.group_log import Name
from kforensics.evidence.coordinators.transaction_log import TransactionState
from kforensics.reconcile.transactions.partition import JudgedTransaction, PartitionTransactions, TornTransaction
from kforensics.reconcile.transactions.verdicts import status_name
from kforensics.render.blocks import GAP, Block, Fact, Prose, Section, Tone, item, text_of
from kforensics.render.frame import problem_items
from kforensics.render.view import View
from kforensics.words import counted, listed, utc_text

MOST_PARTITIONS = 20
"""Replicas that are shown without -v."""
LABEL_WIDTH = 13


def blocks(result: Result[Transactions], view: View) -> Iterator[Block]:
    """Yield the replicas; -v lists all of them."""
    body = result.body
    alike = _alike(body)
    shown = alike[: view.most(MOST_PARTITIONS)]
    for group in shown:
        yield GAP
        yield from _partition(body, group)
    if len(alike) > len(shown):
        yield Prose(f"and {len(alike) - len(shown)} more (-v lists them)")
    if body.history:
        yield Section(title="What the coordinators wrote:")
    yield from (item(_state_words(state)) for state in body.history)
    yield from problem_items(result.problems, result.inputs, view)


def _alike(body: Transactions) -> list[list[PartitionTransactions]]:
    """Return the replicas of a partition that show the same, together; the leader's first."""
    found: dict[object, list[PartitionTransactions]] = {}
    for one in sorted(body.partitions, key=lambda each: (each.topic_partition, each.leads is not True)):
        opens = [
            (
                each.open.producer_id,
                each.open.first_offset,
                each.open.last_offset,
                each.judgement.verdict,
                each.judgement.reason,
            )
            for each in one.open
        ]
        torn = [(each.producer_id, each.marker.offset, each.reason) for each in one.torn]
        key = (one.topic_partition, one.last_stable_offset, one.replica.log_end_offset, tuple(opens), tuple(torn))
        found.setdefault(key, []).append(one)
    return list(found.values())


def _who(one: PartitionTransactions) -> str:
    place = one.replica.place
    broker = place.state.broker_id
    role = " (leader)" if one.leads is True else ""
    return (f"input {place.state.input + 1}" if isinstance(broker, Absent) else f"broker {broker}") + role


def _partition(body: Transactions, group: list[PartitionTransactions]) -> Iterator[Block]:
    one = group[0]
    watermark = one.replica.high_watermark
    parts = [f"last stable offset {one.last_stable_offset:,}", f"log end {one.replica.log_end_offset:,}"]
    if not isinstance(watermark, Absent):
        parts.insert(1, f"high watermark {watermark.value:,}")
    who = listed([_who(each) for each in group])
    yield Section(title=f"{one.topic_partition} on {who}: {', '.join(parts)}", level=3)
    after = [body.after_start.get((each.replica.place.state.input, each.replica.place.path)) for each in group]
    forgotten = max((offset for offset in after if isinstance(offset, int)), default=-1)
    if one.open and forgotten > one.last_stable_offset:
        words = (
            f"a start forgets what is open here, for want of a producer snapshot: the last stable offset becomes {forgotten:,}, "
            "and consumers read records that were never committed"
        )
        yield item(words, tone=Tone.WARNING)
    for each in one.open:
        yield from _open(body, one, each)
    for torn in one.torn:
        yield item(_torn_words(torn))


def _open(body: Transactions, partition: PartitionTransactions, one: JudgedTransaction) -> Iterator[Block]:
    ending, judged = body.ending(partition, one), one.judgement
    count = "" if isinstance(one.open.records, Absent) else f", {counted(one.open.records, 'record')}"
    since = f", since {utc_text(one.open.first_time_ms)}" if one.open.first_time_ms >= 0 else ""
    whose = "" if isinstance(judged.transactional_id, Absent) else f" ({text_of(judged.transactional_id)})"
    epoch = (
        f"epoch {one.open.producer_epoch}, offsets {one.open.first_offset:,}..{one.open.last_offset:,}{count}{since}"
    )
    yield Fact(f"producer {one.open.producer_id}{whose}", epoch, width=0, hang=LABEL_WIDTH)
    for label, words in (
        ("coordinator", _coordinator(judged.coordinator_state)),
        ("verdict", f"{judged.verdict.value.upper()} ({judged.confidence}): {judged.reason}"),
        ("blocks", f"{counted(ending.blocked_records, 'offset')} up to the log end{_groups(ending.blocked_groups)}"),
        ("to end it", ending.to_end_it),
    ):
        yield Fact(label, words, width=LABEL_WIDTH, depth=2)


def _coordinator(state: str | Absent) -> str:
    if isinstance(state, Absent):
        return "knows no such producer" if state is Absent.NOT_WRITTEN else "nothing of the producer is here"
    return state


def _groups(groups: tuple[Name, ...]) -> str:
    return f"; read by {listed([text_of(one) for one in groups])}" if groups else ""


def _torn_words(one: TornTransaction) -> str:
    what = f"{one.marker.kind.value} marker at offset {one.marker.offset:,}"
    if one.committed_in is not None:
        return f"TORN ({one.confidence}): producer {one.producer_id}, {what}: {one.reason}"
    return f"TORN ({one.confidence}): producer {one.producer_id}, {what} without its records: {one.reason}"


def _state_words(state: TransactionState) -> str:
    when = utc_text(state.time_ms)
    if state.is_removed:
        return f"{when}  {text_of(state.transactional_id)}: removed, the id expired"
    where = f" of {', '.join(str(one) for one in state.partitions)}" if state.partitions else ""
    return f"{when}  {text_of(state.transactional_id)}: {status_name(state.status)}{where}, producer {state.producer_id}, epoch {state.producer_epoch}"
