"""The answer of `transactions`: which transactions no broker ends, which are torn, and which only wait."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.coordinators.transaction_log import TransactionState
from kforensics.findings.answers.model import Answer, State, skipped_words, worst_state
from kforensics.reconcile.transactions.partition import JudgedTransaction, PartitionTransactions, TornTransaction
from kforensics.reconcile.transactions.verdicts import TOOL, Coordinators, TransactionVerdict
from kforensics.units import TopicPartition
from kforensics.words import Step, counted, form, listed, name_text

MOST_NAMED = 4

_STATES = {
    TransactionVerdict.HANGING: State.HANGING,
    TransactionVerdict.TORN: State.TORN,
    TransactionVerdict.PREPARED: State.PREPARED,
    TransactionVerdict.UNKNOWN: State.UNKNOWN,
    TransactionVerdict.IN_TIME: State.IN_TIME,
}


_Key = tuple[TopicPartition, int, int]
"""The partition, the producer id and the offset of the marker."""


class _Seen(NamedTuple):
    """A transaction as its gravest replica shows it."""

    partition: TopicPartition
    one: JudgedTransaction
    place: tuple[int, str, int]


@dataclass(frozen=True, kw_only=True)
class JudgedTransactions:
    """What is known of transactions, and the answer to which of them hold consumers back."""

    judged: Sequence[PartitionTransactions]
    """Every replica that was asked for."""
    coordinators: Coordinators
    endings: Mapping[tuple[int, str, int], str]
    """What ends each open transaction, by input, directory and producer id."""
    waiting: Sequence[TransactionState]
    """Unfinished transactions with a partition that is not here."""
    has_transactions: bool
    """Any log here holds transactional records."""
    unread: int
    """Places that could not be read."""
    skipped: int
    """Records of `__transaction_state` that are not understood."""
    absent: Sequence[TopicPartition] = ()
    """Partitions that metadata or a checkpoint names, and of which no input holds a live replica."""
    cut_short: Sequence[TopicPartition] = ()
    """Each log here ends below a high watermark or recovery point that was written of it."""
    why_skipped: str = ""
    """Why the first of those records is not understood, in words."""
    asked: Sequence[str] = ()
    """Transactional ids and producers that were asked for; all where there are none."""

    @cached_property
    def _closed(self) -> dict[_Key, TornTransaction]:
        return {
            (one.topic_partition, each.producer_id, each.marker.offset): each
            for one in self.judged
            if one.counts and one.absent_leader is None
            for each in one.torn
        }

    @cached_property
    def _split(self) -> dict[_Key, TornTransaction]:
        return {key: each for key, each in self._closed.items() if each.committed_in is not None}

    def answer(self) -> Answer:
        """Return the answer: `none-open` and `in-time` only where the coordinators' log is here as a whole and nothing was unreadable."""
        states = [_STATES[each.one.judgement.verdict] for each in self._seen]
        states += [State.TORN] if self._closed else []
        doubts = (*self._doubts(), *self._lacks(), *self._without_leader())
        if doubts:
            states.append(State.UNKNOWN)
        state = worst_state(states) or State.NONE_OPEN
        return Answer(
            state=state,
            headline=self._headline(state),
            now=(*self._now(), *self._save()),
            tell=(*self._tell(), *self._miss()),
            later=tuple(self._later()),
            unknown=doubts,
        )

    @cached_property
    def _seen(self) -> list[_Seen]:
        """Each transaction once, as the replica that leads shows it, else as the gravest does."""
        order = list(_STATES)
        found: dict[tuple[TopicPartition, int], tuple[tuple[bool, int], _Seen]] = {}
        for replica in self.judged:
            place = replica.replica.place
            for one in replica.open:
                key = (replica.topic_partition, one.open.producer_id)
                rank = (replica.leads is not True, order.index(one.judgement.verdict))
                if key not in found or rank < found[key][0]:
                    seen = _Seen(replica.topic_partition, one, (place.state.input, place.path, one.open.producer_id))
                    found[key] = (rank, seen)
        return [
            seen
            for _, seen in sorted(
                found.values(), key=lambda each: (order.index(each[1].one.judgement.verdict), each[1].partition)
            )
        ]

    def _doubts(self) -> Iterator[str]:
        topic = self.coordinators.topic
        for reason, names in topic.reasons():
            say = form(len(names), "says", "say")
            yield f"What {listed(names, most=MOST_NAMED)} {say} of transactions, and of markers that are still to be written: {reason}."
        if not topic.lacks and isinstance(topic.count, Absent):
            also = " although there are transactional records" if self.has_transactions else ""
            yield (
                f"What the coordinators know: {'no partition' if not topic.present else 'not every partition'} of {topic.name} is shown to be here{also}; "
                "give the directories of all brokers, and a metadata log or a server.properties."
            )
        for state in self.waiting[:MOST_NAMED]:
            name = state.transactional_id
            shown = name_text(name)
            yield f"Partitions of the unfinished transaction of {shown} are not among the inputs: whether it holds them back is not shown."
        if self.unread:
            yield f"What {counted(self.unread, 'place')} that could not be read {form(self.unread, 'holds', 'hold')}."
        if self.skipped:
            yield skipped_words(self.skipped, topic.name, self.why_skipped)

    def _lacks(self) -> Iterator[str]:
        if self.absent:
            yield f"Whether a transaction is open in {_some(self.absent)}: no log of theirs is among the inputs."
        if self.cut_short:
            yield (
                f"What the logs of {_some(self.cut_short)} held at their ends: each that is here ends below a high watermark or recovery point "
                "that was written of it."
            )

    def _without_leader(self) -> Iterator[str]:
        by_leader: dict[int, set[TopicPartition]] = {}
        without_candidate: dict[str, set[TopicPartition]] = {}
        for one in self.judged:
            if one.absent_leader is not None:
                by_leader.setdefault(one.absent_leader, set()).add(one.topic_partition)
            elif one.without_candidate is not None:
                without_candidate.setdefault(one.without_candidate, set()).add(one.topic_partition)
        for leader, partitions in sorted(by_leader.items()):
            yield f"What is open in {_some(sorted(partitions))}: broker {leader} leads, and its log is not among the inputs."
        for reason, partitions in sorted(without_candidate.items()):
            yield f"What is open in {_some(sorted(partitions))}: {reason}."

    def _headline(self, state: State) -> str:
        torn = len(self._closed) - len(self._split)
        whose = f" of {listed(self.asked)}" if self.asked else ""
        by_state = {
            wanted: [each for each in self._seen if _STATES[each.one.judgement.verdict] is wanted]
            for wanted in _STATES.values()
        }
        others = _others(state, by_state)
        if self._split and (state is not State.TORN or torn or by_state[State.TORN]):
            others += f"; {len(self._split):,} committed in one partition and aborted in another"
        match state:
            case State.HANGING:
                found = by_state[State.HANGING]
                return f"{_counted('HANGING TRANSACTION', found)} back read_committed consumers of {_partitions(found)}{_hedge(found)}{others}."
            case State.TORN:
                found = by_state[State.TORN]
                if found:
                    words = f"{_counted('TORN TRANSACTION', found)} back read_committed consumers of {_partitions(found)}: the marker is lost and the records are kept"
                    more = (
                        f"; the records of {counted(torn, 'more transaction', 'more transactions')} are lost and the marker is kept"
                        if torn
                        else ""
                    )
                    return f"{words}{_hedge(found)}{more}{others}."
                if not torn:
                    where = _names({partition for partition, _, _ in self._split})
                    return f"{counted(len(self._split), 'TORN TRANSACTION', 'TORN TRANSACTIONS')} in {where}: committed in another partition and aborted there (likely){others}."
                partitions = {one.topic_partition for one in self.judged if one.torn and one.counts}
                return f"{counted(torn, 'TORN TRANSACTION', 'TORN TRANSACTIONS')} in {_names(partitions)}: the records are lost and the marker is kept{others}."
            case State.PREPARED:
                found = by_state[State.PREPARED]
                return f"{counted(_producers(found), 'transaction')} of {_partitions(found)} {form(_producers(found), 'is', 'are')} decided and wait for the marker of the coordinator{others}."
            case State.UNKNOWN:
                found = by_state[State.UNKNOWN]
                if found:
                    return f"Why {counted(len(found), 'transaction')} of {_partitions(found)} {form(len(found), 'is', 'are')} open is unknown{others}."
                open_ones = (
                    f"{counted(_producers(self._seen), 'transaction')} open, each in time"
                    if self._seen
                    else f"No open transaction{whose}"
                )
                return f"{open_ones} in the logs that are here; whether others hold consumers back is unknown."
            case State.IN_TIME:
                found = by_state[State.IN_TIME]
                return f"{counted(_producers(found), 'transaction')} of {_partitions(found)} {form(_producers(found), 'is', 'are')} open and in time; none{whose} hangs{_hedge(found)}."
        count = len({one.topic_partition for one in self.judged})
        return f"No transaction{whose} is open in {counted(count, 'partition')}."

    def _now(self) -> Iterator[str]:
        acting = [
            each
            for each in self._seen
            if each.one.judgement.verdict
            in {TransactionVerdict.HANGING, TransactionVerdict.TORN, TransactionVerdict.PREPARED}
        ]
        commands: dict[tuple[str, str], list[tuple[str, str]]] = {}
        others = []
        for each in acting[:MOST_NAMED]:
            whose, words = f"{each.partition}, producer {each.one.open.producer_id}", self.endings[each.place]
            before, tool, rest = words.partition(TOOL)
            options, is_noted, note = rest.partition(" (")
            if tool:
                key = (before.rstrip(": "), is_noted + note)
                commands.setdefault(key, []).append((whose, tool + options))
            else:
                others.append(f"{whose}: {words}")
        for (before, note), ended in commands.items():
            whose = listed([one for one, _ in ended])
            by_hand = f"End by hand the {form(len(ended), 'transaction')} of {whose}"
            yield Step(f"{whose}: {before}{note}" if before else f"{by_hand}{note}", [line for _, line in ended])
        yield from others
        if len(acting) > MOST_NAMED:
            yield f"{len(acting) - MOST_NAMED} more are listed below."

    def _tell(self) -> Iterator[str]:
        stuck = {
            each.partition
            for each in self._seen
            if each.one.judgement.verdict in {TransactionVerdict.HANGING, TransactionVerdict.TORN}
        }
        if stuck:
            yield f"Whoever reads {_names(stuck)} with isolation.level=read_committed gets nothing from the last stable offset on."

    def _save(self) -> Iterator[str]:
        for (partition, _, _), one in list(self._split.items())[:MOST_NAMED]:
            assert isinstance(one.records, int)
            records = counted(one.records, "aborted record")
            yield (
                f"{partition}, producer {one.producer_id}: copy the {records} at offsets {one.first_offset}..{one.last_offset} (kforensics dump), which were "
                "acknowledged as committed, and produce them again."
            )

    def _miss(self) -> Iterator[str]:
        if self._split:
            where = _names({partition for partition, _, _ in self._split})
            yield f"Whoever reads {where} with isolation.level=read_committed: acknowledged records are not given to them."

    def _later(self) -> Iterator[str]:
        if any(each.one.judgement.verdict is TransactionVerdict.HANGING for each in self._seen):
            yield "Kafka 3.6 and later verify transactions before they append (transaction.partition.verification.enable, KIP-890)."


def _some(partitions: Sequence[TopicPartition]) -> str:
    return listed([str(one) for one in partitions], most=MOST_NAMED)


def _counted(noun: str, found: Sequence[_Seen]) -> str:
    verb = form(len(found), "holds", "hold")
    return f"{counted(len(found), noun, f'{noun}S')} {verb}"


def _hedge(found: Sequence[_Seen]) -> str:
    return (
        ""
        if all(each.one.judgement.confidence == "proven" for each in found)
        else " (likely, by copies that may be of different moments)"
    )


def _others(state: State, by_state: Mapping[State, Sequence[_Seen]]) -> str:
    words = {
        State.HANGING: "hanging",
        State.TORN: "torn",
        State.PREPARED: "waiting for the coordinator",
        State.UNKNOWN: "unexplained",
        State.IN_TIME: "in time",
    }
    known = {State.PREPARED, State.IN_TIME}
    counts = {one: _producers(found) if one in known else len(found) for one, found in by_state.items()}
    parts = [f"{count} {words[one]}" for one, count in counts.items() if count and one is not state]
    return f"; {listed(parts)}" if parts else ""


def _producers(found: Sequence[_Seen]) -> int:
    """Return the number of transactions that coordinators know: a producer has one at a time, be it in several partitions."""
    return len({each.one.open.producer_id for each in found})


def _partitions(found: Sequence[_Seen]) -> str:
    return _names({each.partition for each in found})


def _names(partitions: set[TopicPartition]) -> str:
    names = [str(one) for one in sorted(partitions)]
    return listed(names) if len(names) <= MOST_NAMED else counted(len(names), "partition")
