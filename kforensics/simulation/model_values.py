"""The state of the published replication models: one partition, its replicas, the controller, and all requests sent.

The models are J. Gustafson's (kafka-specification): a state is the log and belief of each replica, the controller's
truth, and the LeaderAndIsr requests, which are never lost and may be taken late.
"""

from dataclasses import dataclass
from typing import NamedTuple

NO_LEADER = -1
"""The id that means "no leader"."""
BEFORE_ALL_EPOCHS = -1
"""The epoch of a replica that has not received any request."""


class ModelRecord(NamedTuple):
    """A record: its number among all records ever written, and the epoch of the leader that wrote it."""

    record_id: int
    leader_epoch: int


class ModelReplica(NamedTuple):
    """The log of one replica, and the leader and epoch that it believes in."""

    log: tuple[ModelRecord, ...]
    high_watermark: int
    leader_epoch: int
    leader: int
    isr: frozenset[int]

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        return len(self.log)


class Request(NamedTuple):
    """A LeaderAndIsr request; its epoch is its place among all requests."""

    leader: int
    isr: frozenset[int]


class ModelController(NamedTuple):
    """The controller's state, and the number of the next record to be written."""

    isr: frozenset[int]
    requests: tuple[Request, ...]
    next_record: int

    @property
    def leader(self) -> int:
        """The leader by the last request."""
        return self.requests[-1].leader if self.requests else NO_LEADER

    @property
    def leader_epoch(self) -> int:
        """The epoch of the last request."""
        return len(self.requests) - 1


class ModelState(NamedTuple):
    """One state of a model."""

    replicas: tuple[ModelReplica, ...]
    controller: ModelController


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSize:
    """The bounds that make a model finite."""

    replicas: int
    max_log: int
    """The most records that a log can hold."""
    max_records: int
    """The most records that are ever written."""
    max_epoch: int
    """The highest leader epoch; the lowest is 0."""

    def initial_state(self) -> ModelState:
        """Return the initial state: empty logs, no leader, every replica in the controller's ISR."""
        replica = ModelReplica(
            log=(), high_watermark=0, leader_epoch=BEFORE_ALL_EPOCHS, leader=NO_LEADER, isr=frozenset()
        )
        everybody = frozenset(range(self.replicas))
        return ModelState(
            replicas=(replica,) * self.replicas,
            controller=ModelController(isr=everybody, requests=(), next_record=0),
        )


def agrees_below_high_watermark(leader: ModelReplica, member: ModelReplica) -> bool:
    """Return whether `member` holds what `leader` holds at every offset below the leader's high watermark.

    Args:
        leader: a replica that presumes to be one.
    """
    end = leader.high_watermark
    return len(leader.log) >= end and leader.log[:end] == member.log[:end]
