"""Replicas as they are now that hold other content than the leader, and that no rule of the protocol will truncate: they stay different."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.protocol.outcome import ProtocolName
from kforensics.reconcile.history.log_copies import Agreement, LogCopy
from kforensics.reconcile.history.losses import is_in_use
from kforensics.reconcile.replicas.expected_truncation import follower_outcome, next_epoch
from kforensics.reconcile.replicas.leader import ProtocolChoice

Protocols = Callable[[LogCopy], ProtocolChoice]


@dataclass(frozen=True, slots=True, kw_only=True)
class Residual:
    """One replica that differs from the leader for good."""

    broker_id: int | Absent
    offset: int
    """The first that differs."""
    protocol: ProtocolName
    old_format: bool
    """Some of its batches are of magic 0 or 1, without leader epochs."""
    damaged_on: tuple[int | Absent, ...] = ()
    """The brokers of the two whose log is damaged at that offset."""
    citations: tuple[Citation, ...]


def residuals(
    leader: LogCopy, copies: Iterable[LogCopy], agreement: Agreement, protocol_of: Protocols
) -> tuple[Residual, ...]:
    """Return every replica in use that differs from the leader below the offset that it would truncate to.

    Args:
        copies: all copies of the partition's log.
    """
    now = [copy for copy in copies if is_in_use(copy)]
    epoch = next_epoch([copy.view for copy in now], Absent.UNKNOWN)
    found = []
    for copy in now:
        parted = None if copy is leader else agreement.parted_at(copy.view, leader.view)
        if parted is None or any(one.view.is_left_out(parted) for one in (copy, leader)):
            continue
        protocol = protocol_of(copy)
        outcome = follower_outcome(copy.view, leader.view, protocol=protocol, new_epoch=epoch)
        if isinstance(outcome.offset, int) and outcome.offset <= parted:
            continue
        magic = copy.view.oldest_magic
        found.append(
            Residual(
                broker_id=copy.broker_id,
                offset=parted,
                protocol=protocol.name,
                old_format=isinstance(magic, int) and magic < 2,
                damaged_on=tuple(one.broker_id for one in (leader, copy) if _is_damaged(one, parted)),
                citations=(copy.view.replica.cite(), leader.view.replica.cite()),
            )
        )
    return tuple(found)


def _is_damaged(copy: LogCopy, offset: int) -> bool:
    return any(one.offsets.first <= offset <= one.offsets.last for one in copy.view.damaged)
