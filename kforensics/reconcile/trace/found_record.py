"""A record that was found, and the offsets at which another one may have been before."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.model import Citation, Replica
from kforensics.formats.log.records import Record
from kforensics.reconcile.observed.leadership import LeadershipAccount
from kforensics.reconcile.trace.model import CopyKind
from kforensics.reconcile.trace.removal_time import NO_HORIZON
from kforensics.units import EpochEntry


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CopyFile:
    """One file of a copy of the log; there is one object of each."""

    replica: Replica
    path: str
    suffix: str
    """Of the file's name: `deleted`, `swap` or none."""
    kind: CopyKind


class FoundCopy(NamedTuple):
    """One copy of a record."""

    file: CopyFile
    position: int
    """Of its batch in the file, in bytes."""
    delete_horizon_ms: int = NO_HORIZON

    @property
    def replica(self) -> Replica:
        """The directory."""
        return self.file.replica

    @property
    def kind(self) -> CopyKind:
        """What the copy is in."""
        return self.file.kind

    @property
    def path(self) -> str:
        """The path of its file in the input."""
        return self.file.path


class LaterRecord(NamedTuple):
    """A record of a key, with one of its copies."""

    record: Record
    citation: Citation
    is_live: bool
    """Whether a live replica holds it."""


class FoundRecord(NamedTuple):
    """One record with all its copies."""

    record: Record
    topic_id: str | Absent
    copies: tuple[FoundCopy, ...]
    outcome: bool | Absent | None
    """Whether the transaction was aborted, None where no marker follows, absent for records of none."""


def displaced_from(leader_epoch: int, account: LeadershipAccount, epochs: Sequence[EpochEntry]) -> int | None:
    """Return the first offset at which a leader before may have held another record than the log does now; None where there is none.

    What a replica has of a leader epoch is what the leader of that epoch wrote, so up to the end of the last epoch that it shares with the leader before, it holds
    the same (KIP-101). Where brokers that led in between left no epoch in its log, the end of that shared part is not known, only its beginning.

    Args:
        leader_epoch: of an election after which the new leader may have lacked records.
    """
    since = next((entry.start_offset for entry in epochs if entry.leader_epoch >= leader_epoch), None)
    earlier = [entry for entry in epochs if entry.leader_epoch < leader_epoch]
    if not earlier:
        return since or 0
    last = earlier[-1]
    epochs_between = [state.leader_epoch for state in account.states if state.leader_epoch < leader_epoch]
    leaders = {
        state.leader
        for state in account.states
        if isinstance(state.leader, int) and last.leader_epoch <= state.leader_epoch < leader_epoch
    }
    is_on_record = bool(epochs_between) and min(epochs_between) <= last.leader_epoch
    is_repeated = any(last.leader_epoch < one.state.leader_epoch < leader_epoch for one in account.risky)
    return since if is_on_record and len(leaders) <= 1 and not is_repeated else last.start_offset


def may_be_displaced(offset: int, account: LeadershipAccount, epochs: Sequence[EpochEntry]) -> bool:
    """Whether an election may have replaced the record that an offset had before."""
    starts = (displaced_from(one.state.leader_epoch, account, epochs) for one in account.risky)
    return any(start is not None and offset >= start for start in starts)
