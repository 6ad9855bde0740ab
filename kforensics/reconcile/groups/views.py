"""Groups and their positions as they are shown: at the end of the log, or at a time."""

from dataclasses import dataclass

from kforensics.damage import Absent
from kforensics.evidence.coordinators.group_log import Name
from kforensics.reconcile.groups.replay import Position
from kforensics.reconcile.groups.state import GroupState, ShareState
from kforensics.reconcile.history.log_starts import Removal, Remover
from kforensics.units import OffsetRange
from kforensics.words import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPosition:
    """A group's position in a partition, and how far behind the log end it is."""

    topic: Name
    partition: int
    position: Position
    log_end_offset: int | Absent
    """As of the time that was asked for; unknown where no log of the partition is here."""
    log_start_offset: int | Absent = Absent.UNKNOWN
    """Below it no record can be read; not of a time in the past."""
    markers_from: int | Absent = Absent.UNKNOWN
    """The offset from which on the log holds markers of transactions alone, up to its end."""
    may_have_more: bool = False
    """The log end is that of one replica that may not lead: another may end higher."""
    records_left: int | Absent = Absent.NOT_APPLICABLE
    """How many records at most are left from it up to the log end, where a cleaner has passed it and offsets count more; unknown where the log does not show it."""
    absent_leader: int | None = None
    """The broker whose log would show where the partition ends, where that is known."""
    share: ShareState | None = None
    """Of a share group: what became of the records from its start offset on, which the position is."""
    removal: Removal | None = None
    """What deleted the records between it and the log start, where the log starts above it."""
    goes_on_at: int | Absent = Absent.NOT_APPLICABLE
    """Where a consumer that asks for the end of its leader epoch goes on, where the log contradicts that epoch; unknown where the leader knows none such."""
    had_others: bool = False
    """The record in front of it was written after the commit: those that the group read there are gone."""
    recreated_ms: int | None = None
    """When the topic that has the name now was created, where the position was committed before that."""
    removed_ms: int | None = None
    """When its topic was deleted, where there is none of the name any more."""

    @property
    def lag(self) -> int | Absent:
        """Offsets up to the log end, of a share group those that it is not done with; below 0 past the end."""
        end, at = self.log_end_offset, self.position.offset
        if isinstance(end, Absent):
            return end
        return self._unread(at, end) if end > at else end - at

    @property
    def deleted_unread(self) -> int:
        """Offsets from the position to the log start, of a share group those that it is not done with: their records were deleted before the group read them."""
        start = self.log_start_offset
        return 0 if isinstance(start, Absent) else self._unread(self.position.offset, start)

    @property
    def is_deleted(self) -> bool:
        """Whether a broker may have deleted those: not where its files show that none did."""
        return self.removal is None or self.removal.by is not Remover.NONE

    @property
    def left_unread(self) -> int | Absent:
        """Offsets that are there to be read, from the log start on where that lies above it."""
        end, start = self.log_end_offset, self.log_start_offset
        if isinstance(end, Absent) or isinstance(start, Absent):
            return self.lag
        return 0 if self.is_before_markers else self._unread(max(start, self.position.offset), end)

    def _unread(self, first: int, end: int) -> int:
        done = 0 if self.share is None else self.share.done(OffsetRange(first, end - 1))
        return max(end - first, 0) - done

    @property
    def has_wrong_epoch(self) -> bool:
        """Whether the log contradicts the leader epoch that it was committed with, or that the group has read what is in front of it; not where it lies outside of the log anyway."""
        is_outside = self.is_past_the_end is True or bool(self.deleted_unread)
        return (self.goes_on_at is not Absent.NOT_APPLICABLE or self.has_unread_in_front) and not is_outside

    @property
    def has_unread_in_front(self) -> bool:
        """Whether the log was written after the commit up to the position, and a consumer stays there: it never reads those records."""
        is_other = self.had_others or (self.recreated_ms is not None and self.position.offset > 0)
        return is_other and self.goes_on_at is Absent.NOT_APPLICABLE

    @property
    def way_on(self) -> str:
        """What a consumer does with a position that the log contradicts."""
        if self.has_unread_in_front:
            return "it stays, and never reads what is in front of its position"
        if isinstance(self.goes_on_at, Absent):
            return "auto.offset.reset decides where it goes on"
        start = self.log_start_offset
        if isinstance(start, int) and self.goes_on_at < start:
            return f"it goes back to {self.goes_on_at:,}, below the log start, and auto.offset.reset decides"
        again = self.position.offset - self.goes_on_at
        return f"it goes back to {self.goes_on_at:,} and reads {counted(again, 'offset')} again"

    @property
    def is_before_markers(self) -> bool:
        """Whether markers of transactions alone lie between it and the log end."""
        lag, markers_from = self.lag, self.markers_from
        return (
            isinstance(lag, int) and lag > 0 and isinstance(markers_from, int) and markers_from <= self.position.offset
        )

    @property
    def is_past_the_end(self) -> bool | Absent:
        """Whether it lies above the log end."""
        if isinstance(self.lag, Absent):
            return self.lag
        return Absent.UNKNOWN if self.lag < 0 and self.may_have_more else self.lag < 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """One group."""

    name: Name
    state: GroupState | None
    """None where no record of the group itself is in force: only commits are."""
    is_known_empty: bool
    """With no such record: whether that shows that it has no members."""
    positions: tuple[GroupPosition, ...]
