"""The incident of one partition: its truncations with cause and recomputation, its losses, and the groups and producers that are affected."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from kforensics.damage import Absent, Damage
from kforensics.evidence.model import Citation, GroupCommit, Replica, Segment
from kforensics.formats.index import ProducerEntry
from kforensics.formats.log.sequences import SequenceBreak, WrittenAgain
from kforensics.protocol.retention import RetentionTimes
from kforensics.protocol.truncation import ProtocolName
from kforensics.reconcile.bugs.evidence import BugTrace, Sign
from kforensics.reconcile.committed.judge import CommittedCounts
from kforensics.reconcile.history.causes import Cause
from kforensics.reconcile.history.log_copies import LogOutline
from kforensics.reconcile.history.losses import Holder, Loss
from kforensics.reconcile.history.residuals import PastEnd, Residual, TornTransactions
from kforensics.reconcile.history.topic_incarnations import Incarnation
from kforensics.reconcile.incident.doubts import CopyKey, Doubt, DoubtKind, Moments, Reliance, WholeReturn
from kforensics.reconcile.logs.tiers import Tiers
from kforensics.reconcile.observed.facts import BrokerVersions, ClusterFacts, Leadership
from kforensics.reconcile.observed.leadership import LeadershipAccount
from kforensics.reconcile.observed.logged_truncations import LoggedTruncation
from kforensics.reconcile.observed.own_evidence import LackedEpoch
from kforensics.units import TopicPartition

if TYPE_CHECKING:
    from kforensics.reconcile.history.log_starts import LogStartMove, Removal
    from kforensics.reconcile.incident.logged_losses import DeletionRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentEvidence:
    """The evidence beyond the directories of the partition."""

    facts: ClusterFacts
    logged: Sequence[LoggedTruncation]
    """The logged truncations of this partition."""
    incarnation: Incarnation
    """What log lines say of its creation."""
    last_logged_ms: int | Absent
    """Time of the last line of all logs."""
    protocol_hints: Mapping[int, ProtocolName]
    commits: Sequence[GroupCommit]
    """Out of the consumer offsets as they are now."""
    versions: BrokerVersions = field(default_factory=BrokerVersions)
    signs: Sequence[Sign] = ()
    """Signs of known bugs in lines of it and of its brokers."""
    moments: Moments = field(default_factory=Moments)
    """The moments at which the inputs were taken."""
    whole_returns: Sequence[WholeReturn] = ()
    """Followers that truncated nothing by the leader's answer."""
    log_starts: "Sequence[LogStartMove]" = ()
    """The moves of its log start, by log lines."""
    retention: Callable[[int | Absent], RetentionTimes] = lambda _broker: RetentionTimes()
    """What retention it has had at a broker."""
    indexed_ms: Callable[[Replica, Segment], int | Absent] = lambda _replica, _segment: Absent.UNKNOWN
    """The last timestamp in the time index beside a segment, which a broker takes for its largest once it has started."""
    producers: Callable[[Replica, Iterable[int]], Mapping[int, Sequence[ProducerEntry]]] = lambda _replica, _offsets: {}
    """What the producer snapshots of a directory name that are of some offsets."""
    deletions: "Sequence[DeletionRequest]" = ()
    """Requests of clients to delete records of the partition, by log lines."""
    is_deletion_logged: bool = False
    """Whether a log line says that the topic was deleted."""
    has_zookeeper: bool = False
    """Whether its brokers run with ZooKeeper: they put a directory aside for its removal on request alone."""
    wanted_leader: int | None = None
    """The broker that is taken as the final leader, where it holds the partition."""
    is_order_in_doubt: bool = False
    """The times of files say that an earlier snapshot is younger than the directories as they are now, and nothing proves either."""


class LeaderBasis(StrEnum):
    """What a leader that is not known is taken for the leader by."""

    LOG = "log"
    """The leader epoch and the length of its log."""
    RECORD = "record"
    """It is the last leader on record, and a later one may be missing."""
    OLDER_LOG = "older-log"
    """It is the last leader on record, and its log that is given is from before its term."""
    OPTION = "option"
    """The caller named it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedTruncation:
    """A truncation that happened, explained."""

    broker_id: int | Absent
    topic_partition: TopicPartition
    time_ms: int | Absent
    from_offset: int
    to_offset: int
    protocol: str
    """The protocol in force, or `recovery`."""
    decided_by: str
    """The rule that decided, as the lines say: `epoch`, `high-watermark`, `leader-end` …"""
    leader: int | Absent
    leader_epoch: int | Absent
    expected_offset: int | Absent
    agrees: bool | Absent
    steps: tuple[str, ...]
    is_logged: bool
    cause: Cause
    committed: CommittedCounts
    citations: tuple[Citation, ...]
    bugs: tuple[BugTrace, ...] = ()
    """Known bugs of Kafka that leave such a truncation."""


class Candidate(NamedTuple):
    """A replica whose log speaks for it as much as that of the guessed leader, itself included, and what would be lost if it led."""

    broker_id: int | Absent
    records: int
    """Records that may have been committed and that copies show, but not its log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAtRisk:
    """A group whose committed offset, or the start offset of which, refers to lost records."""

    group: str
    offset: int
    kind: str
    """`ahead`: past the leader's end; `replaced`: inside offsets that hold other records now; `set-back`: a later commit was lost."""
    citation: Citation
    was_at: int | Absent = Absent.NOT_APPLICABLE
    """The offset of the lost commit, of a group that was set back."""
    is_share: bool = False
    """It is a share group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HangingTransaction:
    """A transaction of the leader's log that no coordinator will end."""

    producer_id: int
    first_offset: int
    last_stable_offset: int
    """Of the log: that of its first open transaction, this one or another."""
    verdict: str
    """`hanging` or `torn`."""
    confidence: str
    reason: str
    citations: tuple[Citation, ...]


class BrokenSequences(NamedTuple):
    """Where the sequences of producers do not follow each other in logs as they are now, equally in all that are cited."""

    breaks: tuple[SequenceBreak, ...]
    again: tuple[WrittenAgain, ...]
    owners: tuple[str, ...]
    citations: tuple[Citation, ...]
    whereabouts: tuple[str, ...] = ()
    """Where the first missing sequences are, in sentences."""


class DoubledOffsets(NamedTuple):
    """A log as it is now in which batches do not follow each other."""

    broker_id: int | Absent
    owner: str
    is_leader: bool
    place: Damage
    citation: Citation
    others: str = ""
    """What the other logs in use hold there, in sentences."""


class DeletedSince(NamedTuple):
    """The first offset that a copy has below the start of the leader's log, and what deleted it."""

    offset: int
    removal: "Removal"
    is_since_earlier: bool = True
    """Whether an earlier snapshot has it; else it is in segments that are renamed for deletion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionIncident:
    """Everything that happened to one partition."""

    partition: TopicPartition
    leader: int | Absent
    log_start_offset: int | Absent
    log_end_offset: int | Absent
    deleted_since: DeletedSince | None = None
    """What was deleted below the start of the leader's log, and is in an earlier snapshot or waits for its removal."""
    cleaned: tuple[int, int] | None = None
    """How many offsets of the leader's log hold no record any more, of those below an offset to which its cleaner has come."""
    leaderships: tuple[Leadership, ...]
    truncations: tuple[ExplainedTruncation, ...]
    losses: tuple[Loss, ...]
    groups: tuple[GroupAtRisk, ...]
    torn_transactions: TornTransactions
    hanging: tuple[HangingTransaction, ...] = ()
    """Transactions that hold the last stable offset back, by what the coordinators know, be anything lost or not."""
    other_topics: tuple[Holder, ...]
    """Directories of other topics that had the name."""
    deleted_topics: tuple[Holder, ...] = ()
    """Those of topics whose deletion is on record."""
    copies: int
    is_deleted: bool = False
    """It is on record that its topic was deleted, and no log of it is in use."""
    logs: tuple[LogOutline, ...] = ()
    """Every copy of the log, the oldest first."""
    residuals: tuple[Residual, ...] = ()
    """Replicas that hold other content than the leader and keep it."""
    past_end: tuple[PastEnd, ...] = ()
    """High watermarks that no log reaches."""
    bugs: tuple[BugTrace, ...] = ()
    """Known bugs of Kafka whose traces are there."""
    account: LeadershipAccount | None = None
    """Who led from when to when."""
    is_leader_known: bool = False
    """The leader is on record and nothing later can be missing."""
    leader_basis: LeaderBasis = LeaderBasis.LOG
    """Where it is not known, what it is taken for the leader by."""
    candidates: tuple[Candidate, ...] = ()
    """Those that may lead, where the guess is a tie."""
    missing_replicas: tuple[int, ...] = ()
    """Brokers that may hold a replica and whose directories are not among the inputs, or whose logs are not known."""
    doubts: tuple[Doubt, ...] = ()
    """The doubts that keep the partition from being proven whole."""
    dispelled: tuple[Reliance, ...] = ()
    """Doubts that copies dispel, unless another log shows that the node of such a copy had lost the end of its logs."""
    shortened: frozenset[CopyKey] = frozenset()
    """Copies in which the log of this partition shows such a loss."""
    tails_of_copies: tuple[Loss, ...] = ()
    """Losses that copying the replicas at different moments, while they ran, explains as well."""
    is_unclean_election_allowed: bool | Absent = Absent.UNKNOWN
    """The setting `unclean.leader.election.enable` at the last unclean election."""
    forced_elections: tuple[Leadership, ...] = ()
    """Unclean elections although the setting forbade them, of another replica than the last leader: an operator forced them."""
    unread_below: int = 0
    """The offset below which content of a log was not read, as the ends of logs were read alone; 0 where all was."""
    sequence_breaks: tuple["BrokenSequences", ...] = ()
    lacked_epoch: LackedEpoch | None = None
    """The epoch that the leader leads in and does not know."""
    doubled: tuple["DoubledOffsets", ...] = ()
    tiers: Tiers | None = None
    """Where its offsets are, of a partition with a part or a copy in remote storage."""
    state: str = ""
    """One of the states of `explain`, once it has been judged."""

    @property
    def counts_at_least(self) -> bool:
        """Whether more may be lost than its losses say: a log was truncated, or ended further on, and no input holds what was there."""
        return bool(self.past_end) or any(doubt.kind is DoubtKind.TRUNCATION for doubt in self.doubts)

    @property
    def stuck_at(self) -> tuple[int, int] | None:
        """The last stable offset where it is stuck, and the first offset of the first transaction that keeps it there."""
        torn = [one.open_from for one in self.torn_transactions.transactions if isinstance(one.open_from, int)]
        known = self.torn_transactions.stuck_at
        if isinstance(known, int) and torn:
            return known, min(torn)
        if self.hanging:
            return self.hanging[0].last_stable_offset, min(one.first_offset for one in self.hanging)
        return None
