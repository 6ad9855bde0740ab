"""The five published replication models: their states, which replica may fetch from which, which is caught up, and where a follower truncates.

    hw               until 0.10     truncate to the own high watermark
    kip-101          0.11 to 1.1    truncate to the leader's end of the follower's last epoch
    kip-279          2.0            truncate behind the last record that both hold
    kip-320-first-try  a draft      no truncation when following, a late one when a fetch does not fit
    kip-320          2.1 and later  as kip-279, and leader and follower must be in the same epoch

The models are J. Gustafson's (kafka-specification): a state is the log and belief of each replica, the controller's truth, and the LeaderAndIsr requests,
which are never lost and may be taken late. A rule takes a leader and a follower by place and value: `Side`.
"""

from abc import ABC
from collections.abc import Mapping
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
    """Return whether `member` holds what `leader` holds at every offset below the leader's high watermark."""
    end = leader.high_watermark
    return len(leader.log) >= end and leader.log[:end] == member.log[:end]


class Side(NamedTuple):
    """A replica with its number."""

    broker: int
    replica: ModelReplica


def presumes(leader: Side) -> bool:
    """Return whether a replica presumes to be the leader."""
    return leader.replica.leader == leader.broker


def follows(follower: Side, leader: Side) -> bool:
    """Return whether a replica believes in a leader, whatever the epoch."""
    return follower.replica.leader == leader.broker


def shares_epoch(leader: Side, follower: Side) -> bool:
    """Return whether leader and follower agree who leads and in which epoch: the fence of KIP-320."""
    return (
        presumes(leader) and follows(follower, leader) and leader.replica.leader_epoch == follower.replica.leader_epoch
    )


def last_match(follower: ModelReplica, leader: ModelReplica) -> int:
    """Return the offset behind the last one at which both hold the same record, 0 where there is none."""
    for offset in range(min(follower.log_end_offset, leader.log_end_offset), 0, -1):
        if follower.log[offset - 1] == leader.log[offset - 1]:
            return offset
    return 0


class ReplicationModel(ABC):
    """The common rules of the models before fencing: a follower believes in a leader or not, and epochs are not compared."""

    name: str

    def may_fetch(self, leader: Side, follower: Side) -> bool:
        """Return whether the leader answers the follower's fetch with records."""
        return presumes(leader) and follows(follower, leader)

    def is_caught_up(self, leader: Side, follower: Side, end: int) -> bool:
        """Return whether the follower holds the log up to an exclusive offset."""
        return follows(follower, leader) and min(leader.replica.log_end_offset, follower.replica.log_end_offset) >= end

    def may_leave_isr(self, leader: Side, follower: Side) -> bool:
        """Return whether the leader may take the follower out of the ISR."""
        return not self.is_caught_up(leader, follower, leader.replica.log_end_offset)

    def may_join_isr(self, leader: Side, follower: Side) -> bool:
        """Return whether the leader may take the follower into the ISR."""
        return self.is_caught_up(leader, follower, leader.replica.high_watermark)

    def counts_for_high_watermark(self, leader: Side, member: Side) -> bool:
        """Return whether a member of the ISR holds the record at the leader's high watermark."""
        has_record = member.replica.log_end_offset > leader.replica.high_watermark
        return presumes(leader) and follows(member, leader) and has_record

    def may_follow(self, leader: Side, leader_epoch: int) -> bool:
        """Return whether a follower can take a request while the leader is as it is."""
        del leader, leader_epoch
        return True

    def truncate_to(self, follower: ModelReplica, leader: ModelReplica) -> int:
        """Return where a follower truncates when it accepts a request; above its log end it can't accept the request."""
        return last_match(follower, leader)

    def following(
        self, follower: ModelReplica, leader: ModelReplica, request: Request, epoch: int
    ) -> ModelReplica | None:
        """Return the follower after it accepted a request, or None if it can't."""
        truncate_to = self.truncate_to(follower, leader)
        if truncate_to > follower.log_end_offset:
            return None
        return ModelReplica(
            log=follower.log[:truncate_to],
            high_watermark=min(truncate_to, follower.high_watermark),
            leader_epoch=epoch,
            leader=request.leader,
            isr=request.isr,
        )

    def truncate_late(self, leader: Side, follower: Side) -> ModelReplica | None:
        """Return the follower after a fetch has shown that its log does not fit, or None."""
        del leader, follower
        return None


class HighWatermarkModel(ReplicationModel):
    """Before 0.11: a follower truncates to its own high watermark."""

    name = "hw"

    def truncate_to(self, follower: ModelReplica, leader: ModelReplica) -> int:
        """Return the follower's own high watermark, whatever the leader holds."""
        del leader
        return follower.high_watermark


class Kip101Model(ReplicationModel):
    """0.11: a follower truncates to the leader's end of the follower's last epoch."""

    name = "kip-101"

    def truncate_to(self, follower: ModelReplica, leader: ModelReplica) -> int:
        """Return the leader's end of the follower's last epoch, or the high watermark if the leader knows no later epoch."""
        if not follower.log:
            return 0
        last_epoch = follower.log[-1].leader_epoch
        if not leader.log:
            return follower.high_watermark
        if leader.log[-1].leader_epoch == last_epoch:
            return leader.log_end_offset
        above = (offset for offset, record in enumerate(leader.log) if record.leader_epoch > last_epoch)
        return next(above, follower.high_watermark)


class Kip279Model(ReplicationModel):
    """2.0: a follower truncates behind the last record that both hold."""

    name = "kip-279"


class Kip320FirstTryModel(ReplicationModel):
    """A draft that was not adopted: fetches compare the last epoch, and a follower truncates only when one does not fit."""

    name = "kip-320-first-try"

    def is_caught_up(self, leader: Side, follower: Side, end: int) -> bool:
        """Return whether both hold a record before `end` of the same epoch."""
        if not (presumes(leader) and follows(follower, leader)):
            return False
        if end == 0:
            return True
        if min(leader.replica.log_end_offset, follower.replica.log_end_offset) < end:
            return False
        return leader.replica.log[end - 1].leader_epoch == follower.replica.log[end - 1].leader_epoch

    def may_fetch(self, leader: Side, follower: Side) -> bool:
        """Return whether the follower's last record fits."""
        return self.is_caught_up(leader, follower, follower.replica.log_end_offset)

    def may_join_isr(self, leader: Side, follower: Side) -> bool:
        """Return whether it is caught up to the high watermark, which must have reached the leader's own epoch."""
        caught_up = self.is_caught_up(leader, follower, leader.replica.high_watermark)
        return caught_up and high_watermark_is_current(leader.replica)

    def counts_for_high_watermark(self, leader: Side, member: Side) -> bool:
        """Return whether leader and member hold a record of the same epoch at the high watermark."""
        return self.is_caught_up(leader, member, leader.replica.high_watermark + 1)

    def following(self, follower: ModelReplica, leader: ModelReplica, request: Request, epoch: int) -> ModelReplica:
        """Return the follower after it accepted the request, which truncates nothing."""
        del leader
        return follower._replace(leader_epoch=epoch, leader=request.leader, isr=request.isr)

    def truncate_late(self, leader: Side, follower: Side) -> ModelReplica | None:
        """Return the follower truncated as KIP-279 does, if it is longer or has another last epoch; else None."""
        own, other = follower.replica, leader.replica
        if not (presumes(leader) and follows(follower, leader) and own.log):
            return None
        end = own.log_end_offset
        if end <= other.log_end_offset and own.log[-1].leader_epoch == other.log[end - 1].leader_epoch:
            return None
        truncate_to = last_match(own, other)
        return own._replace(log=own.log[:truncate_to], high_watermark=min(own.high_watermark, truncate_to))


class Kip320Model(ReplicationModel):
    """2.1 and later: as KIP-279, and nothing happens between replicas that are not in the same epoch."""

    name = "kip-320"

    def may_fetch(self, leader: Side, follower: Side) -> bool:
        """Return whether both are in the same epoch."""
        return shares_epoch(leader, follower)

    def may_leave_isr(self, leader: Side, follower: Side) -> bool:
        """Return whether the follower is in another epoch or behind."""
        is_behind = follower.replica.log_end_offset < leader.replica.log_end_offset
        return not shares_epoch(leader, follower) or is_behind

    def may_join_isr(self, leader: Side, follower: Side) -> bool:
        """Return whether it is in the same epoch and at the high watermark, which must have reached the leader's own epoch."""
        reaches = follower.replica.log_end_offset >= leader.replica.high_watermark
        return shares_epoch(leader, follower) and reaches and high_watermark_is_current(leader.replica)

    def counts_for_high_watermark(self, leader: Side, member: Side) -> bool:
        """Return whether both are in the same epoch and hold the record at the high watermark."""
        needed = leader.replica.high_watermark
        both = min(leader.replica.log_end_offset, member.replica.log_end_offset)
        return shares_epoch(leader, member) and both > needed

    def may_follow(self, leader: Side, leader_epoch: int) -> bool:
        """Return whether the leader has taken the same request."""
        return presumes(leader) and leader.replica.leader_epoch == leader_epoch


def high_watermark_is_current(leader: ModelReplica) -> bool:
    """Return whether the high watermark has reached what the leader wrote in its own epoch, or its log end."""
    high_watermark = leader.high_watermark
    if high_watermark == leader.log_end_offset:
        return True
    return high_watermark < leader.log_end_offset and leader.log[high_watermark].leader_epoch == leader.leader_epoch


MODELS: Mapping[str, ReplicationModel] = {
    model.name: model
    for model in (HighWatermarkModel(), Kip101Model(), Kip279Model(), Kip320FirstTryModel(), Kip320Model())
}
"""The models by the names of the command line."""
