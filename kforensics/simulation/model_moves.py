"""The actions of the models: the possible next steps, grouped by the parts of a state that they depend on.

A move names what happens and the parts it changes, so that the explorer can remember it for every state with the same
parts.
"""

from collections.abc import Iterator
from typing import NamedTuple

from kforensics.protocol.visibility import follower_high_watermark
from kforensics.simulation.model_values import (
    NO_LEADER,
    ModelController,
    ModelRecord,
    ModelReplica,
    ModelSize,
    Request,
)
from kforensics.simulation.models import ReplicationModel, Side, presumes


class Move(NamedTuple):
    """A possible step and its result; a part that is `None` is unchanged."""

    action: str
    replica: ModelReplica | None = None
    controller: ModelController | None = None


def controller_moves(controller: ModelController, size: ModelSize) -> Iterator[Move]:
    """Yield the decisions of the controller: remove a replica from the ISR, or elect a member of it.

    Args:
        size: of the configuration, which bounds the leader epochs.
    """
    if len(controller.requests) > size.max_epoch:
        return
    leader, isr = controller.leader, controller.isr
    for replica in range(size.replicas):
        if leader == replica:
            rest = isr if isr == {replica} else isr - {replica}
            yield Move(f"controller: leader {replica} is offline", controller=_send(controller, NO_LEADER, rest))
        elif replica in isr:
            shrunk = _send(controller, leader, isr - {replica})
            yield Move(f"controller: replica {replica} leaves the ISR", controller=shrunk)
    for replica in sorted(isr):
        if replica != leader:
            yield Move(f"controller: elects replica {replica}", controller=_send(controller, replica, isr))


def own_moves(side: Side, controller: ModelController, size: ModelSize) -> Iterator[Move]:
    """Yield the actions of one replica: become leader, write.

    Args:
        size: of the configuration, which bounds records and logs.
    """
    index, replica = side
    for leader_epoch, request in enumerate(controller.requests):
        if request.leader == index and leader_epoch > replica.leader_epoch:
            leading = replica._replace(leader_epoch=leader_epoch, leader=index, isr=request.isr)
            yield Move(f"replica {index} becomes leader in epoch {leader_epoch}", leading)
    if presumes(side) and controller.next_record < size.max_records and replica.log_end_offset < size.max_log:
        record = ModelRecord(controller.next_record, replica.leader_epoch)
        yield Move(
            f"leader {index} writes record {record.record_id}",
            replica._replace(log=(*replica.log, record)),
            controller._replace(next_record=record.record_id + 1),
        )


def follower_moves(
    model: ReplicationModel, leader: Side, follower: Side, controller: ModelController
) -> Iterator[Move]:
    """Yield the actions of a follower with a leader: fetch, follow a request, truncate late; each changes the follower's state.

    Args:
        leader: the replica to fetch from, whatever the controller says.
        controller: with the requests that were sent.
    """
    own, other = follower.replica, leader.replica
    end = own.log_end_offset
    if end < other.log_end_offset and model.may_fetch(leader, follower):
        # The models know no empty answer: a fetch that brings no record does not happen, nor moves the high watermark.
        log = (*own.log, other.log[end])
        copied = own._replace(log=log, high_watermark=follower_high_watermark(len(log), other.high_watermark))
        yield Move(f"replica {follower.broker} fetches from {leader.broker}", copied)
    for leader_epoch, request in enumerate(controller.requests):
        takes = request.leader == leader.broker and leader_epoch > own.leader_epoch
        if takes and model.may_follow(leader, leader_epoch):
            following = model.following(own, other, request, leader_epoch)
            if following is not None:
                truncation = own.log_end_offset - following.log_end_offset
                words = f"replica {follower.broker} follows {leader.broker} in epoch {leader_epoch}"
                yield Move(f"{words} and truncates to {following.log_end_offset}" if truncation else words, following)
    late = model.truncate_late(leader, follower)
    if late is not None:
        yield Move(f"replica {follower.broker} finds that it differs and truncates to {late.log_end_offset}", late)


def isr_moves(model: ReplicationModel, leader: Side, follower: Side, controller: ModelController) -> Iterator[Move]:
    """Yield the changes of a follower's membership in the ISR; only the true leader makes them, and each changes its state."""
    index, replica = leader
    is_true = controller.leader == index and presumes(leader) and replica.leader_epoch == controller.leader_epoch
    if not is_true:
        return
    if follower.broker in replica.isr:
        if model.may_leave_isr(leader, follower):
            isr = replica.isr - {follower.broker}
            words = f"leader {index} takes {follower.broker} out of the ISR"
            yield Move(words, replica._replace(isr=isr), controller._replace(isr=isr))
    elif model.may_join_isr(leader, follower):
        isr = replica.isr | {follower.broker}
        words = f"leader {index} takes {follower.broker} into the ISR"
        yield Move(words, replica._replace(isr=isr), controller._replace(isr=isr))


def raised_high_watermark(leader: Side) -> Move:
    """Return the move that raises the leader's high watermark by one; every member of its ISR must allow it."""
    raised = leader.replica.high_watermark + 1
    return Move(
        f"leader {leader.broker} raises its high watermark to {raised}", leader.replica._replace(high_watermark=raised)
    )


def _send(controller: ModelController, leader: int, isr: frozenset[int]) -> ModelController:
    return controller._replace(isr=isr, requests=(*controller.requests, Request(leader, isr)))
