"""`__transaction_state` of the inputs: the replica by which each of its partitions is judged, what it says of transactional ids, and the replicas that are judged by it."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kforensics.ask.model import Ask
from kforensics.case.cluster import newest_time
from kforensics.case.leaders import Leaders, weight_of
from kforensics.case.processes import default_jobs
from kforensics.damage import Absent
from kforensics.evidence.coordinators.group_log import Name
from kforensics.evidence.coordinators.open_transactions import (
    ProducerBatches,
    ReplicaTransactions,
    read_producers,
    scan_transactions,
)
from kforensics.evidence.coordinators.transaction_log import TransactionLog, TransactionState, read_transaction_log
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.model import Problem
from kforensics.evidence.parallel import Progress, spread
from kforensics.reconcile.coordinator_topics import coordinator_topic
from kforensics.reconcile.transactions.partition import (
    AbortedLate,
    Copy,
    PartitionTransactions,
    aborted_late,
    judge_partition,
)
from kforensics.reconcile.transactions.verdicts import Coordinators, join_coordinators
from kforensics.units import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TopicPartition

INTERNAL_TOPICS = frozenset({TRANSACTIONS_TOPIC, OFFSETS_TOPIC})
"""Topics whose records only brokers write."""


class StateLogs:
    """The replicas of `__transaction_state`, and the one of each partition that speaks for it.

    Args:
        until_ms: what was written later is left out; None for nothing.
    """

    def __init__(self, given: Leaders, *, until_ms: int | None) -> None:
        self._given, self.until_ms = given, until_ms
        self._chosen: dict[int, TransactionLog] = {}
        self.problems: list[Problem] = []
        self._leaders: dict[int, int | Absent] = {}
        self.skipped = 0
        self.why_skipped = ""
        unread: dict[int, str] = {}
        for partition, places in given.live(TRANSACTIONS_TOPIC).items():
            logs = [read_transaction_log(place, until_ms=self.until_ms) for place in places]
            leader = given.leader(partition, newest_epoch=max(log.last_epoch for log in logs))
            self._leaders[partition.partition] = leader
            chosen = max(logs, key=lambda log: weight_of(leader, log.place, log.last_epoch, log.end))
            self._chosen[partition.partition] = chosen
            self.skipped += chosen.skipped
            self.why_skipped = self.why_skipped or chosen.why_skipped
            self.problems += chosen.problems
            end = chosen.end if self.until_ms is None and not chosen.problems else None
            is_damaged = bool(chosen.problems or chosen.skipped)
            # What was decided may be in the log of a follower that an unclean election left behind.
            promised = given.promised_end(partition)
            why = given.unread(partition, leader, end=end, promised_end=promised, is_damaged=is_damaged)
            if why is not None:
                unread[partition.partition] = why
        self._topic = coordinator_topic(
            TRANSACTIONS_TOPIC,
            self._chosen,
            history=given.history,
            is_history_newest=given.is_history_newest,
            settings=given.settings("transaction.state.log.num.partitions"),
            names=((one.transactional_id, number) for number, log in self._chosen.items() for one in log.states),
            unread=unread,
        )

    def ends(self) -> dict[TopicPartition, int]:
        """Return the log end offsets of the chosen replicas, where they were read to their ends."""
        if self.until_ms is not None:
            return {}
        return {log.place.topic_partition: log.end for log in self._chosen.values() if not log.problems}

    def ids_of(self, producers: Collection[int]) -> set[Name]:
        """Return the transactional ids whose newest state names one of the producers."""
        return {
            one.transactional_id
            for log in self._chosen.values()
            for one in log.states
            if not {one.producer_id, one.previous_producer_id, one.next_producer_id}.isdisjoint(producers)
        }

    def joined(self, names: Collection[Name]) -> Coordinators:
        """Return the knowledge of the coordinators, with the history of some transactional ids."""
        return join_coordinators(
            self._topic,
            self._chosen,
            stopped=frozenset(
                number
                for number, log in self._chosen.items()
                if log.place.state.clean_shutdown and number not in self._topic.unread
            ),
            brokers=self._leaders,
            unclean={
                number: found.time_ms
                for number in self._chosen
                if (found := self._given.last_unclean_election(TopicPartition(TRANSACTIONS_TOPIC, number))) is not None
            },
            epochs={
                number: self._given.leader_epoch(TopicPartition(TRANSACTIONS_TOPIC, number)) for number in self._chosen
            },
            history=self._history(names),
        )

    def aborted_late(self) -> list[AbortedLate]:
        """Return the transactions that began before an unclean election of their coordinator's partition and were aborted after it."""
        found: list[AbortedLate] = []
        for log in self._chosen.values():
            election = self._given.last_unclean_election(log.place.topic_partition)
            if election is None:
                continue
            election_ms = election.time_ms
            names = {one.transactional_id for one in log.states if one.time_ms >= election_ms}
            for states in self._history(names).values() if names else ():
                found += aborted_late(states, election_ms)
        return found

    def _history(self, names: Collection[Name]) -> dict[Name, Sequence[TransactionState]]:
        if not names:
            return {}
        found: dict[Name, dict[tuple[int, int, int], TransactionState]] = defaultdict(dict)
        needed = {number for name in names if isinstance(number := self._topic.partition_of(name), int)}
        for partition, places in self._given.places.by_partition.items():
            if partition.topic != TRANSACTIONS_TOPIC or (needed and partition.partition not in needed):
                continue
            for place in sorted(places, key=lambda one: not self._given.is_now(one)):
                for deleted in (False, True):
                    log = read_transaction_log(
                        place, until_ms=self.until_ms, history_of=frozenset(names), deleted=deleted
                    )
                    for state in log.history:
                        found[state.transactional_id].setdefault(
                            (state.leader_epoch, state.offset, state.time_ms), state
                        )
        return {name: [states[key] for key in sorted(states)] for name, states in found.items()}


def stuck_replicas(
    given: Leaders, wanted: Mapping[TopicPartition, tuple[PartitionPlace, ...]]
) -> tuple[PartitionTransactions, ...]:
    """Return the replicas with open transactions that no coordinator will end, by what `__transaction_state` says of them."""
    request = given.case.ask
    scans = scan_replicas(request, wanted, given.case.jobs)
    open_producers = {one.producer_id for scan in scans for one in scan.open}
    if not open_producers:
        return ()
    states = StateLogs(given, until_ms=request.at_ms)
    coordinators = states.joined(states.ids_of(open_producers))
    judged = judged_replicas(request, given, scans, coordinators, last_known_time(given, scans, coordinators))
    return tuple(one for one in judged if any(each.judgement.holds_back for each in one.open))


def last_known_time(given: Leaders, scans: Sequence[ReplicaTransactions], coordinators: Coordinators) -> int:
    """Return the newest time that a broker or controller wrote; times of records are what their producers say."""
    times = [one.newest_ms for one in scans if one.place.topic_partition.topic in INTERNAL_TOPICS]
    recorded_ms = newest_time(given.history)
    if isinstance(recorded_ms, int):
        times.append(recorded_ms)
    return max((coordinators.newest_ms, *times))


def scan_replicas(
    request: Ask, wanted: Mapping[TopicPartition, tuple[PartitionPlace, ...]], jobs: int
) -> list[ReplicaTransactions]:
    """Return what the replicas of some partitions say of transactions, read by several processes."""
    places = [place for group in wanted.values() for place in group]
    until_ms = request.at_ms
    share = sum(place.length for place in places) // jobs
    # A log that is more than its share of the bytes would keep one process busy when the others are done.
    large = {
        at: scan_transactions(place, until_ms=until_ms, jobs=jobs)
        for at, place in enumerate(places)
        if jobs > 1 and place.length > share
    }

    def work(place: PartitionPlace, progress: Progress) -> ReplicaTransactions:
        found = scan_transactions(place, until_ms=until_ms)
        progress(place.length)
        return found

    others = [place for at, place in enumerate(places) if at not in large]
    spread_over = iter(spread(work, others, weights=[place.length for place in others], jobs=jobs))
    return [large[at] if at in large else next(spread_over) for at in range(len(places))]


def judged_replicas(
    request: Ask,
    given: Leaders,
    scans: Sequence[ReplicaTransactions],
    coordinators: Coordinators,
    now_ms: int,
) -> list[PartitionTransactions]:
    """Return the replicas, each of their open and torn transactions judged by what its coordinator says."""
    by_partition: dict[TopicPartition, list[ReplicaTransactions]] = defaultdict(list)
    for scan in scans:
        by_partition[scan.place.topic_partition].append(scan)
    judged: list[PartitionTransactions] = []
    for partition, replicas in by_partition.items():
        leader = given.leader(partition, newest_epoch=max(one.last_epoch for one in replicas))
        live = {(one.place.state.input, one.place.path) for one in replicas}
        copies = [
            Copy(
                place=place,
                owner=given.owner(place)
                if not deleted
                else f"segments that {given.owner(place).removeprefix('the log of ')} is deleting",
                is_now=not deleted and (place.state.input, place.path) in live,
                is_deleted=deleted,
            )
            for place in given.copies(partition)
            for deleted in (False, True)
        ]
        needs_copies = any(one.open or one.lone for one in replicas)
        judged += judge_partition(
            replicas,
            copies if needs_copies else (),
            coordinators,
            _reading(request.at_ms, request.jobs or default_jobs()),
            leader=leader,
            without_candidate=given.without_candidate(partition, leader),
            is_stopped=request.is_stopped,
            now_ms=now_ms,
        )
    return judged


def _reading(until_ms: int | None, jobs: int) -> Callable[[PartitionPlace, NDArray[np.int64], bool], ProducerBatches]:
    def read(place: PartitionPlace, wanted: NDArray[np.int64], deleted: bool) -> ProducerBatches:
        return read_producers(place, wanted, deleted=deleted, until_ms=until_ms, jobs=jobs)

    return read
