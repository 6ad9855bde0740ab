"""Transactions that were committed in one partition and aborted in another: their coordinator decided to commit, lost the decision in an unclean election, and aborted what was left.

A coordinator writes markers once its decision is in all replicas in sync (KIP-98); an unclean election of its partition of `__transaction_state` may take the decision, and
the next coordinator finds the transaction Ongoing. It ends it when it times out or when its producer comes back, with an epoch that is one higher at most
(`TransactionCoordinator.handleInitProducerId`, KIP-890).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kforensics.evidence.coordinators.open_transactions import Marker, ProducerBatches
from kforensics.evidence.coordinators.transaction_log import TransactionState
from kforensics.formats.log.batch_table import CONTROL_BIT
from kforensics.formats.messages.control import ControlType
from kforensics.protocol.coordinators import TransactionStatus
from kforensics.reconcile.transactions.coordinators import status_name
from kforensics.reconcile.transactions.partition import TornTransaction
from kforensics.units import TopicPartition
from kforensics.words import name_text

_ABORTED = frozenset(
    {TransactionStatus.PREPARE_ABORT, TransactionStatus.COMPLETE_ABORT, TransactionStatus.PREPARE_EPOCH_FENCE}
)

Directory = tuple[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortedLate:
    """A transaction that began before an unclean election of its coordinator's partition and was aborted after it."""

    state: TransactionState
    """The record of the abort."""
    now: TransactionState
    """The newest record of its transactional id."""

    @property
    def producer_ids(self) -> frozenset[int]:
        """The ids that its batches and markers may have."""
        named = (self.state.producer_id, self.state.previous_producer_id, self.state.next_producer_id)
        return frozenset(one for one in named if one >= 0)


def aborted_late(history: Sequence[TransactionState], election_ms: int) -> Iterator[AbortedLate]:
    """Yield the transactions of an id that were aborted after an unclean election and began before it, each once.

    Args:
        election_ms: when the leader of its partition was elected uncleanly, -1 where the record has no time.
    """
    begun: dict[int, TransactionState] = {}
    for state in history:
        is_after = election_ms < 0 or state.started_ms <= election_ms <= state.time_ms
        if not state.is_removed and state.status in _ABORTED and state.started_ms >= 0 and is_after:
            begun[state.started_ms] = state
    for state in begun.values():
        yield AbortedLate(state=state, now=history[-1])


def split_transactions(
    late: Sequence[AbortedLate], contents: Mapping[TopicPartition, Sequence[ProducerBatches]]
) -> dict[Directory, list[TornTransaction]]:
    """Return the transactions with a commit marker in one partition and aborted records in another, by the directory of those."""
    found: dict[Directory, list[TornTransaction]] = defaultdict(list)
    for one in late:
        commits = [
            (partition, marker)
            for partition, copies in contents.items()
            for copy in copies
            for marker in copy.markers.values()
            if marker.kind is ControlType.COMMIT
            and marker.producer_id in one.producer_ids
            and one.state.started_ms <= marker.time_ms <= one.state.time_ms
            and 0 <= marker.coordinator_epoch < one.state.leader_epoch
        ]
        if not commits:
            continue
        partition, commit = min(commits, key=lambda each: (each[1].time_ms, each[0], each[1].offset))
        for elsewhere, copies in contents.items():
            for copy in copies if elsewhere != partition else ():
                torn = _aborted_in(copy, one, partition, commit)
                if torn is not None:
                    found[copy.place.state.input, copy.place.path].append(torn)
    return found


def _aborted_in(
    copy: ProducerBatches, one: AbortedLate, partition: TopicPartition, commit: Marker
) -> TornTransaction | None:
    """Return the transaction in a log that aborts its records, where its commit marker is in another partition."""
    for producer in sorted(one.producer_ids):
        rows = copy.rows[copy.rows["producer_id"] == producer]
        ends = np.flatnonzero((rows["attributes"] & CONTROL_BIT) != 0)
        begin = 0
        for end in ends.tolist():
            data, begin = rows[begin:end], end + 1
            marker = copy.markers[int(rows["base_offset"][end])]
            is_of_abort = (
                marker.kind is ControlType.ABORT
                and marker.coordinator_epoch > commit.coordinator_epoch
                and commit.producer_epoch <= marker.producer_epoch <= commit.producer_epoch + 1
                and marker.time_ms >= commit.time_ms
            )
            if not is_of_abort or not len(data) or int(data["producer_epoch"].max()) > commit.producer_epoch:
                continue
            name = name_text(one.state.transactional_id)
            first, last = int(data["base_offset"][0]), int(data["last_offset"][-1])
            return TornTransaction(
                producer_id=producer,
                producer_epoch=marker.producer_epoch,
                first_offset=first,
                last_offset=last,
                records=int(data["count"].sum()),
                marker=marker,
                transactional_id=one.state.transactional_id,
                coordinator_state=status_name(one.now.status),
                confidence="likely",
                reason=(
                    f"its commit marker is at offset {commit.offset:,} of {partition}, and its records at offsets {first:,}..{last:,} were aborted here: "
                    f"the coordinator of {name} lost its decision in an unclean election"
                ),
                citations=tuple(
                    each for each in (marker.citation, commit.citation, one.state.citation) if each is not None
                ),
                committed_in=partition,
                commit_offset=commit.offset,
            )
    return None
