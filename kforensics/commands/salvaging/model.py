"""What is to be saved of a partition, and what came of it."""

from dataclasses import dataclass, field

from kforensics.commands.salvaging.folder import WrittenFile
from kforensics.damage import Absent
from kforensics.evidence.model import Problem
from kforensics.reconcile.history.log_copies import LogCopy
from kforensics.reconcile.logs.tiers import RemoteCopies
from kforensics.reconcile.salvage import Gap, Wanted
from kforensics.units import OffsetRange, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """The part of the records that is wanted."""

    offsets: OffsetRange | None = None
    time_ms: tuple[int, int] | None = None
    """From the first on, and before the second."""
    with_aborted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionPlan:
    """The plan for one partition: what is to be saved, and the copies that there are of it."""

    partition: TopicPartition
    topic_id: str | Absent
    copies: tuple[LogCopy, ...]
    """The leader's first where there is one, the others with the preferred first."""
    leader: LogCopy | None
    leader_source: str
    """Who says that it leads."""
    wanted: tuple[Wanted, ...] | None
    """None for all that there is."""
    gaps: tuple[Gap, ...] = ()
    """Known before anything is read."""
    is_other_topic: bool = False
    """Its directories are of another topic that had the name."""
    only: int | None = None
    """The copy of which anything is saved; the others only show what need not be."""
    name: str = ""
    """What its files are called; the partition where it is empty."""
    is_named: bool = True
    """Whether it is proven which partition it is."""
    likely: str = ""
    """The partition that it likely is of, where none is proven."""
    certain_below: int = 0
    """The offset below which the leader's log is certainly committed."""
    remote: RemoteCopies = field(default_factory=RemoteCopies)


@dataclass(slots=True, kw_only=True)
class SavedRun:
    """Records that were saved out of one run of bytes."""

    offsets: OffsetRange
    records: int
    input: int
    path: str
    position: int
    length: int
    sha256: str | Absent
    """Unreadable where the bytes could be read for their records, and not once more."""
    leader_epochs: OffsetRange
    """The lowest and the highest one, -1 for none."""


@dataclass(slots=True, kw_only=True)
class SavedLabel:
    """The best copy, or one alternate."""

    leader_epoch: int | Absent
    owner: str
    """Who holds it; empty for the best copy."""
    is_of_leader: bool = False
    """Whether it is what the leader holds at offsets where another replica in use keeps other content."""
    records: int = 0
    certain: int = 0
    possible: int = 0
    runs: list[SavedRun] = field(default_factory=list)
    files: tuple[WrittenFile, ...] = ()

    @classmethod
    def of_best_copy(cls) -> "SavedLabel":
        """Return the best copy before anything of it is written."""
        return cls(leader_epoch=Absent.NOT_APPLICABLE, owner="")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadEnd:
    """Bytes behind the last batch of a log that may hold records, of which not even the offsets can be read."""

    input: int
    path: str
    position: int
    length: int

    @property
    def words(self) -> str:
        """Which bytes they are."""
        return f"{self.length:,} bytes of {self.path} from byte {self.position:,} on"


@dataclass(slots=True, kw_only=True)
class SavedPartition:
    """The result for one partition."""

    partition: TopicPartition
    topic_id: str | Absent
    leader: int | Absent
    leader_source: str
    is_other_topic: bool
    labels: list[SavedLabel] = field(default_factory=list)
    """The best copy first."""
    gaps: list[Gap] = field(default_factory=list)
    aborted_records: int = 0
    """Of aborted transactions, and not taken."""
    unread_ends: tuple[UnreadEnd, ...] = ()
    markers: int = 0
    """Control records, which no form of records holds."""
    likely: str = ""
    """The partition that it likely is of, where none is proven."""
    is_named: bool = True
    """Whether the partition is proven; else its name is that of the files."""
    problems: list[Problem] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The partition, or what its files are called where none is proven."""
        return str(self.partition) if self.is_named else self.partition.topic

    @property
    def records(self) -> int:
        """Records that were saved, alternates included."""
        return sum(one.records for one in self.labels)

    @property
    def of_leader(self) -> int:
        """Those of them that the leader holds."""
        return sum(one.records for one in self.labels if one.is_of_leader)

    @property
    def certain(self) -> int:
        """Those of them that were certainly committed."""
        return sum(one.certain for one in self.labels)

    @property
    def missing(self) -> int:
        """Offsets that are not saved and were not removed by intention."""
        return sum(gap.count for gap in self.gaps if gap.is_loss)
