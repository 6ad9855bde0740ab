"""What clients asked to delete (DeleteRecords) before a log lost it: it is no loss, even where a copy that was made before the request still shows it.

The log start that a request sets is on disk only after the next checkpoint, and is lost with the log of a leader that is replaced; the line of the broker stays.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kforensics.formats.log_lines.event import LogEventKind
from kforensics.reconcile.history.losses import LostBatch
from kforensics.reconcile.history.truncations import ObservedTruncation
from kforensics.reconcile.observed.facts import Leadership
from kforensics.reconcile.observed.logged_events import LoggedEvent
from kforensics.reconcile.timeline.events import DELETE_REQUEST
from kforensics.units import OffsetRange, TopicPartition


class DeletionRequest(NamedTuple):
    """A leader moved its log start because a client asked for it."""

    broker_id: int
    log_start_offset: int
    time_ms: int


def deletion_requests(events: Iterable[LoggedEvent]) -> dict[TopicPartition, tuple[DeletionRequest, ...]]:
    """Return the requests to delete records that the lines of leaders report (2.8 and later name the reason), by partition.

    Args:
        events: of all nodes, in the order of time.
    """
    found: dict[TopicPartition, list[DeletionRequest]] = defaultdict(list)
    for item in events:
        event, offset = item.event, item.event.number("log_start_offset")
        if event.kind is not LogEventKind.LOG_START_MOVED or event.fields.get("reason") != DELETE_REQUEST:
            continue
        if not isinstance(event.topic_partition, TopicPartition) or not isinstance(offset, int):
            continue
        if isinstance(item.node_id, int) and isinstance(item.time_ms, int):
            found[event.topic_partition].append(DeletionRequest(item.node_id, offset, item.time_ms))
    return {partition: tuple(requests) for partition, requests in found.items()}


class DeletedRecords:
    """The records of one partition that were deleted on request."""

    def __init__(
        self,
        requests: Sequence[DeletionRequest],
        leaderships: Sequence[Leadership],
        truncations: Sequence[ObservedTruncation],
    ) -> None:
        """Join the requests with the leader epoch in which each was served.

        Args:
            leaderships: its recorded states, the oldest first; a request that none of them explains is ignored.
        """
        self._truncations = truncations
        self._served = [
            (request, led[-1])
            for request in requests
            if (
                led := [
                    one.leader_epoch
                    for one in leaderships
                    if one.leader == request.broker_id
                    and isinstance(one.time_ms, int)
                    and one.time_ms <= request.time_ms
                ]
            )
        ]

    def below(self, batch: LostBatch) -> int:
        """Return the offset below which the records of a batch were deleted, 0 where nothing shows that they were.

        They were in the leader's log when it served the request: a copy of that log holds them, in its leader epoch then or an earlier one, and it had not truncated them yet.

        Args:
            batch: that some copy shows and the final leader's log lacks.
        """
        holders = {holder.broker_id for holder in batch.holders}
        return max(
            (
                request.log_start_offset
                for request, epoch in self._served
                if request.broker_id in holders
                and batch.epoch <= epoch
                and not any(
                    one.broker_id == request.broker_id
                    and one.to_offset <= batch.last_offset
                    and not _is_later(one, request)
                    for one in self._truncations
                )
            ),
            default=0,
        )

    def truncated(self) -> list[OffsetRange]:
        """Return the deleted offsets that the broker which served the request truncated afterwards, by its first truncation over them."""
        found = []
        for request, _ in self._served:
            own = [one for one in self._truncations if one.broker_id == request.broker_id]
            over = [one for one in own if one.to_offset < request.log_start_offset <= one.from_offset]
            if over and all(_is_later(one, request) for one in over):
                found.append(OffsetRange(over[0].to_offset, request.log_start_offset - 1))
        return found


def _is_later(truncation: ObservedTruncation, request: DeletionRequest) -> bool:
    return isinstance(truncation.time_ms, int) and truncation.time_ms > request.time_ms
