"""Which replica leads a partition and which protocol its followers speak, each with the reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.protocol.truncation import ProtocolName
from kforensics.reconcile.logs.loaded_log import LogView
from kforensics.reconcile.observed.facts import Leadership
from kforensics.units import EpochEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderChoice:
    """The replica taken as leader, and why."""

    broker_id: int | Absent
    leader_epoch: int | Absent
    source: str
    """`option`, `metadata` or `inferred`."""
    reason: str
    view: LogView
    citations: tuple[Citation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolChoice:
    """The truncation protocol of a follower, and why."""

    name: ProtocolName
    reason: str


def choose_leader(
    views: Sequence[LogView], *, wanted: int | None, leaderships: Sequence[Leadership]
) -> LeaderChoice | None:
    """The leader from the option, else the newest metadata, else the highest last epoch and the longest log; none without live replicas."""
    if not views:
        return None
    by_broker = {view.replica.broker_id: view for view in views}
    if wanted is not None and wanted in by_broker:
        view = by_broker[wanted]
        return LeaderChoice(
            broker_id=view.replica.broker_id,
            leader_epoch=last_epoch(view),
            source="option",
            reason="as given",
            view=view,
        )
    newest = leaderships[-1] if leaderships else None
    asked = "" if wanted is None else f"broker {wanted} holds no replica here; "
    note = asked
    if newest is not None:
        led = by_broker.get(newest.leader) if not isinstance(newest.leader, Absent) else None
        where = (
            "broker logs" if isinstance(newest.recorded_at, Absent) else f"metadata log, offset {newest.recorded_at}"
        )
        if led is not None:
            return LeaderChoice(
                broker_id=newest.leader,
                leader_epoch=newest.leader_epoch,
                source="metadata",
                reason=asked + where,
                view=led,
                citations=(newest.citation,),
            )
        heir = _heir(newest, leaderships, by_broker)
        if heir is not None:
            return LeaderChoice(
                broker_id=heir.replica.broker_id,
                leader_epoch=newest.leader_epoch,
                source="metadata",
                reason=f"{asked}{where}: it names no leader, and {heir.replica.owner} is the next in its ISR",
                view=heir,
                citations=(newest.citation,),
            )
        note += (
            "the newest record names no leader; "
            if isinstance(newest.leader, Absent)
            else f"the newest record names broker {newest.leader}, which is not among the inputs; "
        )
    best = max(views, key=_strength)
    return LeaderChoice(
        broker_id=best.replica.broker_id,
        leader_epoch=last_epoch(best),
        source="inferred",
        reason=f"{note}highest last leader epoch, then the longest log",
        view=best,
        citations=(newest.citation,) if newest is not None else (),
    )


def _heir(
    newest: Leadership, leaderships: Sequence[Leadership], by_broker: Mapping[int | Absent, LogView]
) -> LogView | None:
    """Of a partition without a leader, the member of the ISR that leads when it returns: the last leader, else by assignment."""
    if not isinstance(newest.leader, Absent) or isinstance(newest.isr, Absent):
        return None
    last = next((state.leader for state in reversed(leaderships) if not isinstance(state.leader, Absent)), None)
    order = () if isinstance(newest.replicas, Absent) else newest.replicas
    return next((by_broker[b] for b in (last, *order) if b is not None and b in newest.isr and b in by_broker), None)


def last_epoch(view: LogView) -> int | Absent:
    """The newest leader epoch that a replica knows, from its cache or its batches."""
    known = [entries[-1].leader_epoch for entries in (_claimed(view), view.batch_epochs) if entries]
    return max(known) if known else Absent.NOT_APPLICABLE


def _claimed(view: LogView) -> tuple[EpochEntry, ...]:
    # An epoch that began at the log end is not in the loaded cache any more, but it tells who led last.
    claimed = view.replica.checkpoint_epochs
    return view.epochs if isinstance(claimed, Absent) else claimed or view.epochs


def _strength(view: LogView) -> tuple[int, int, int, int]:
    epoch = last_epoch(view)
    broker = view.replica.broker_id
    return (
        -1 if isinstance(epoch, Absent) else epoch,
        view.log_end_offset,
        view.high_watermark,
        0 if isinstance(broker, Absent) else -broker,
    )


def choose_protocol(
    follower: LogView, *, wanted: ProtocolName | None, is_kraft: bool, hint: ProtocolName | None = None
) -> ProtocolChoice:
    """The protocol from the option, else from the message format, the broker version or the feature level, else kip-595."""
    if wanted is not None:
        return ProtocolChoice(name=wanted, reason="as given")
    newest = newest_magic(follower)
    if newest is not None and newest < 2:
        return ProtocolChoice(name=ProtocolName.HW, reason=f"message format {newest} carries no leader epochs")
    if hint is not None:
        return ProtocolChoice(name=hint, reason="broker version in the log files")
    if is_kraft:
        return ProtocolChoice(name=ProtocolName.KIP_595, reason="KRaft cluster")
    return ProtocolChoice(name=ProtocolName.KIP_595, reason="assumed: nothing tells the broker version")


def newest_magic(view: LogView) -> int | None:
    """The message format of the newest segment that holds batches."""
    for segment in reversed(view.segments):
        if segment.magics:
            return max(segment.magics)
    return None
