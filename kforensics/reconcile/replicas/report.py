"""The report of a comparison: each replica with its verdict, who holds what alone or intact, and brokers that are given and hold no directory of the partition."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple

from kforensics.damage import Absent, Damage
from kforensics.evidence.checks.context import CheckedPartition, SoundRange
from kforensics.evidence.model import CheckpointValue, Input, Replica
from kforensics.formats.checkpoint.properties import RESERVED_DIRECTORY_IDS
from kforensics.protocol.truncation import ProtocolName, TruncationOutcome
from kforensics.reconcile.committed.judge import CommitJudge, CommittedCounts, CommittedRun, count_runs
from kforensics.reconcile.logs.divergence import Divergence
from kforensics.reconcile.logs.loaded_log import LoadedLog
from kforensics.reconcile.logs.log_pairs import LogPairs
from kforensics.reconcile.observed.facts import ClusterFacts, GivenBroker, Leadership, LoggedEnd
from kforensics.reconcile.observed.leadership import LeadershipAccount
from kforensics.reconcile.replicas.leader import ExpectedTruncation, LeaderChoice, ProtocolChoice
from kforensics.units import Depth, OffsetRange, TopicPartition
from kforensics.words import form, listed


class SoleHolder(NamedTuple):
    """A replica that alone, among those given, holds the records of its log from an offset on."""

    view: LoadedLog
    offsets: OffsetRange
    runs: tuple[CommittedRun, ...]
    counts: CommittedCounts
    is_tail_of_a_copy: bool
    """The others may hold them too: a replica that the record calls in sync was copied while it ran, or lost power."""
    is_other_content: bool
    """Another replica holds other content at these offsets, at least at the first of them."""


def sole_runs(
    view: LoadedLog,
    others: Sequence[LoadedLog],
    logs: LogPairs,
    judge: CommitJudge,
) -> tuple[OffsetRange, tuple[CommittedRun, ...]] | None:
    """Return the part of a log that no other log holds, in runs of one certainty; none where there is no such part."""
    first = max([view.content_start_offset, *(logs.held_until(view, other) for other in others)])
    end = min([view.log_end_offset, *(logs.held_again_from(view, other) for other in others)])
    if first >= end:
        return None
    offsets = OffsetRange(first, end - 1)
    held = (logs.same_again(view, other) for other in others)
    pieces = offsets.without(one for one in held if one is not None)
    return offsets, tuple(run for piece in pieces for run in count_runs(judge.runs(view, piece), view, logs.reader))


def distinct_counts(
    losses: Iterable[tuple[LoadedLog, int, int]],
    logs: LogPairs,
    judge: CommitJudge,
) -> CommittedCounts:
    """Return records between two offsets in several logs, each counted once by offset and content.

    Logs that agree up to an offset hold the same records below it, so what the one has been counted for is left out of the other.
    """
    total = CommittedCounts()
    counted: list[tuple[LoadedLog, int, int]] = []
    for view, first, end in sorted(losses, key=lambda item: (item[1] - item[2], str(item[0].replica.path))):
        shared: list[OffsetRange] = []
        for other, other_first, other_end in counted:
            both = [OffsetRange(other_first, min(logs.same_records_until(view, other), other_end) - 1)]
            if other is not view and (again := logs.same_again(view, other)) is not None:
                both.append(OffsetRange(max(again.first, other_first), min(again.last, other_end - 1)))
            # What a log can't give has not been counted with it.
            shared += [held for one in both if one.count > 0 for held in one.without(other.lost_ranges)]
        for piece in OffsetRange(first, end - 1).without(shared):
            total += CommittedCounts.of(count_runs(judge.runs(view, piece), view, logs.reader))
        counted.append((view, first, end))
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class IntactReplica:
    """A replica that holds every offset of a damaged range in sound batches of the same leader epochs."""

    input: int
    broker_id: int | Absent
    path: str


class IntactReplicas:
    """Answers, for all replicas among the inputs, who holds a range intact.

    Args:
        partitions: every partition directory that was checked.
    """

    def __init__(self, partitions: Sequence[CheckedPartition], inputs: Sequence[Input]) -> None:
        self._inputs = inputs
        self._by_partition: dict[TopicPartition, list[CheckedPartition]] = defaultdict(list)
        self._by_directory: dict[tuple[int, str], CheckedPartition] = {}
        for one in partitions:
            self._by_directory[one.context.input, one.context.path] = one
            if not isinstance(one.context.topic_partition, Absent):
                self._by_partition[one.context.topic_partition].append(one)

    def holders(self, owner: CheckedPartition, damage: Damage) -> tuple[IntactReplica, ...]:
        """Return other replicas of the partition that hold the lost offsets; none where no offset is known to be lost."""
        lost = damage.offsets_lost
        if isinstance(lost, Absent) or isinstance(owner.context.topic_partition, Absent):
            return ()
        window = _epoch_window(owner.coverage, lost)
        found = []
        for other in self._by_partition[owner.context.topic_partition]:
            if (
                other is owner
                or _is_other_topic(owner.topic_id, other.topic_id)
                or not _holds(other.coverage, lost, window)
            ):
                continue
            described = self._inputs[other.context.input]
            found.append(
                IntactReplica(input=other.context.input, broker_id=described.broker_id, path=other.context.path)
            )
        return tuple(found)

    def owner(self, input_index: int, path: str) -> CheckedPartition | None:
        """Return the partition directory that a file is in, or None where it is in none."""
        folder = path.rpartition("/")[0]
        return self._by_directory.get((input_index, folder)) or self._by_directory.get((input_index, path))


def _is_other_topic(one: str | Absent, other: str | Absent) -> bool:
    # An id that is not written yet says nothing.
    return not isinstance(one, Absent) and not isinstance(other, Absent) and one != other


def _epoch_window(coverage: Sequence[SoundRange], lost: OffsetRange) -> tuple[int, int]:
    """Return the leader epochs between which the lost range lies, by the sound batches around it."""
    epochs = [entry for part in coverage for entry in part.epochs]
    lowest = max((epoch for epoch, first in epochs if first <= lost.first), default=-1)
    highest = min((epoch for epoch, first in epochs if first > lost.last), default=1 << 31)
    return lowest, highest


def _holds(coverage: Sequence[SoundRange], lost: OffsetRange, window: tuple[int, int]) -> bool:
    first = lost.first
    for part in coverage:
        if part.first_offset <= first <= part.last_offset:
            first = part.last_offset + 1
        if any(start <= lost.last and end >= lost.first for start, end in part.lost):
            return False
    if first <= lost.last:
        return False
    held = [epoch for part in coverage for epoch, start in part.epochs if start <= lost.last]
    return not held or window[0] <= max(held) <= window[1]


Holding = Literal["elsewhere", "emptied", "maybe-emptied"]


class EmptiedReplica(NamedTuple):
    """A replica that should be on a broker that is given, and is not."""

    broker_id: int
    is_certain: bool
    reason: str
    is_electable: bool
    """Its broker is in the ISR or an eligible leader replica: it can lead with an empty log."""
    is_sole: bool
    """It is the whole ISR."""
    is_assigned: bool = True
    """An input shows that it is assigned to its broker; else the broker is given, and one of its log directories may be the one that held it."""
    named: CheckpointValue | None = None
    """The checkpoint that names the partition on that broker, where one does."""
    place: tuple[int, str] | None = None
    """Input and path of the directory that a start of the broker takes for a stray; none where it holds none."""


def where_is(
    broker: GivenBroker, partition: TopicPartition, state: Leadership, facts: ClusterFacts
) -> tuple[Holding, str]:
    """Return what it means that a broker of the assignment holds no directory of the partition.

    Returns:
        `elsewhere` where a log directory of it is not among the inputs or its disk may not tell case apart, `emptied` where a disk was exchanged or emptied, and why.
    """
    named = broker.named.get(partition)
    if named is not None:
        return "emptied", f"checkpoints name it up to offset {named.value}, and no directory of it is there"
    if partition in broker.other_case:
        return "elsewhere", ""
    registered = facts.registered_directories(broker.broker_id)
    here = broker.directory_ids
    if isinstance(registered, frozenset) and registered and here:
        if here - registered:
            is_empty = "its disk is empty, " if broker.is_empty else ""
            return "emptied", f"{is_empty}its directory.id is not the registered one"
        holder = dict(state.directories).get(broker.broker_id)
        if holder in here:
            return "maybe-emptied", "the log directory that is to hold it is there without it"
        # A broker that started without a disk registers what is left of it.
        if registered - here or (holder is not None and holder not in RESERVED_DIRECTORY_IDS):
            return "elsewhere", "one of its log directories is not among the inputs"
    if broker.is_empty:
        # A running broker without a partition can be copied before its first one is created.
        return "emptied" if not (isinstance(registered, frozenset) and here) else "maybe-emptied", "its disk is empty"
    return "maybe-emptied", beside(broker) or "its log directories hold no directory of it"


def beside(broker: GivenBroker) -> str:
    """Return what the empty directories beside a broker's log directories may mean, in words; empty where there are none."""
    if not broker.empty_beside:
        return ""
    names, are = listed(broker.empty_beside), form(len(broker.empty_beside), "is", "are")
    return f"{names}, beside its log directories, {are} empty"


class Verdict(StrEnum):
    """The verdict on a replica against the leader; of a partition, the worst of its replicas."""

    LEADER = "leader"
    CONSISTENT = "consistent"
    BEHIND = "behind"
    DIFFERENT_TOPIC = "different-topic"
    NOT_ASSIGNED = "not-assigned"
    UNREADABLE = "unreadable"
    WILL_TRUNCATE = "will-truncate"
    LOST = "lost"
    SILENT_DIVERGENCE = "silent-divergence"


WORST = {verdict: rank for rank, verdict in enumerate(Verdict)}
"""The rank of each verdict, the worst highest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaReport:
    """One replica judged."""

    view: LoadedLog
    verdict: Verdict
    protocol: ProtocolChoice | Absent = Absent.NOT_APPLICABLE
    truncation: ExpectedTruncation | None = None
    divergence: Divergence | None = None
    outcome: TruncationOutcome | None = None
    compared_with: LoadedLog | None = None
    """The log that it was judged against; none where it leads or is no replica."""
    without_file: TruncationOutcome | None = None
    """The truncation by a broker that finds no epoch checkpoint, where `outcome` rests on epochs rebuilt from batches."""
    past_end: CheckpointValue | None = None
    """A high watermark on record that lies past every log end."""
    by_other_protocols: tuple[tuple[ProtocolName, int | Absent], ...] = ()
    """The other protocols that it can be, by which it truncates elsewhere or not at all, where the protocol is assumed."""
    is_tail_of_a_copy: bool = False
    """Whether what it would truncate is more of what the leader holds: the leader may have been copied earlier while it ran, or have lost power."""


class WhatIf(NamedTuple):
    """The truncations of every other replica if one replica led."""

    leader: LoadedLog
    truncations: tuple[tuple[LoadedLog, ExpectedTruncation], ...] = ()
    discarded: CommittedCounts = CommittedCounts()
    """Distinct records that truncations discard and this leader does not hold."""
    lost_certain: int = 0
    lost_possible: int = 0
    """Distinct records that this leader does not hold, also those that stay on a divergent replica: readers get them no more."""
    kept_divergent: int = 0
    """Replicas that would keep content that differs from this leader's."""
    is_tail_of_a_copy: bool = False
    """It lacks only the end of what others hold, and may have been copied earlier while it ran, or have lost power."""

    is_emptied: bool = False
    """It is a broker that holds no directory of the partition and can be elected all the same: it leads with an empty log."""

    @property
    def rank(self) -> tuple[int, int, int]:
        """Least loss first: certainly committed records, possibly committed ones, replicas that stay divergent."""
        return (self.lost_certain, self.lost_possible, self.kept_divergent)


class OddOne(NamedTuple):
    """The replica whose content is not that of the others, where damage or a majority shows which it is."""

    view: LoadedLog
    reason: str


class PastEnd(NamedTuple):
    """A log that had grown further than any log given that holds what the leader does."""

    view: LoadedLog
    end: LoggedEnd
    """What it had reached, by a line of its broker."""
    held: int
    """The offset at which the longest of these logs ends."""
    is_furthest: bool
    """Whether no other log given, be it one that parted from the leader's, ends behind."""
    is_same_topic: bool
    """Whether the metadata log says that the topic was not created again since the line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReport:
    """One partition judged."""

    partition: TopicPartition
    topic_id: str | Absent
    leader: LeaderChoice | None
    verdict: Verdict
    replicas: tuple[ReplicaReport, ...]
    what_if: tuple[WhatIf, ...]
    missing_replicas: tuple[int, ...]
    """Brokers that the partition is assigned to, of which no live directory of it is among the inputs."""
    without_disk: frozenset[int] = frozenset()
    """Those of the missing ones of which other log directories are among the inputs."""
    set_aside: tuple[Replica, ...] = ()
    """Directories of the partition that are no replica of it any more: deleted and stray ones."""
    assigned: tuple[int, ...] | Absent = Absent.UNKNOWN
    """Brokers that the partition is assigned to; of the metadata log, its voters."""
    is_assignment_stated: bool = False
    """No record names these brokers: `--replicas` does."""
    isr: frozenset[int] | Absent = Absent.UNKNOWN
    """The ISR by the newest record, where no log is newer than it."""
    electable: frozenset[int] | Absent = Absent.UNKNOWN
    """Brokers that can be elected cleanly: the ISR and the eligible leader replicas, or the voters that can win."""
    sole_holders: tuple[SoleHolder, ...] = ()
    """Replicas that hold the end of their log alone among those given."""
    unassigned_holders: tuple[SoleHolder, ...] = ()
    """Directories outside of the assignment, stray and deleted ones among them, that hold records which no replica holds."""
    unassigned_counts: CommittedCounts | None = None
    """The distinct records that only such directories hold."""
    recovered: tuple[SoleHolder, ...] = ()
    """Replicas whose broker's start discards sound records behind damage that no log holds then."""
    recovered_counts: CommittedCounts | None = None
    """The distinct records among these."""
    odd_ones: tuple[OddOne, ...] = ()
    """Of replicas that differ for good, those that are wrong by damage of their own or by what the others hold; empty where nothing shows it."""
    emptied: tuple[EmptiedReplica, ...] = ()
    """Assigned brokers that are given and hold no directory of the partition."""
    strays: tuple[EmptiedReplica, ...] = ()
    """Replicas that the next start of their broker takes for strays."""
    displaced: tuple[int, ...] = ()
    """Brokers that hold it in another log directory than the metadata says, which is not here."""
    is_deleted: bool = False
    """The metadata records that the topic was deleted, so that no directory here is a replica any more."""
    is_replaced: bool = False
    """A topic of that name was created again, and no directory here is of it."""
    is_unknown_topic: bool = False
    """No metadata log knows the topic id that its directories have, though one is given."""
    is_quorum: bool = False
    is_stopped: bool = False
    """It was said that no broker ran when the directories were copied."""
    account: LeadershipAccount | None = None
    """Who led, and how each leader came to lead; none of the metadata log."""
    depth: Depth = Depth.CONTENT
    not_compared_below: int = 0
    """The offset below which content was not compared, as the ends of logs were read alone."""
    later_epoch: int | Absent = Absent.NOT_APPLICABLE
    """The leader epoch that log lines name and no directory knows, its leader's included: the directories were copied before."""
    logged_past_end: tuple[PastEnd, ...] = ()
    """Logs that had grown past the end of every log that holds what the leader does, by lines of their brokers: the directories are older, or have lost their ends."""

    @property
    def leader_log(self) -> LoadedLog | None:
        """The log that the others follow; none where no leader is taken, or its log is not known."""
        leader = self.leader
        return leader.view if leader is not None and leader.view.replica.is_log_known else None

    @property
    def costly_elections(self) -> tuple[WhatIf, ...]:
        """The leaders with a log that can be elected cleanly, the known one aside, and have others discard more than that one has; none where the ISR is not known."""
        leader = self.leader
        if leader is None or self.is_quorum or isinstance(self.electable, Absent):
            return ()
        led = next((one.discarded for one in self.what_if if leader.is_known and one.leader is leader.view), None)
        found = []
        for choice in self.what_if:
            cost, is_led = choice.discarded, leader.is_known and choice.leader is leader.view
            is_no_worse = led is not None and cost.certain <= led.certain and cost.possible <= led.possible
            can_be = not choice.is_emptied and choice.leader.replica.broker_id in self.electable
            if can_be and not is_led and not is_no_worse and (cost.certain or cost.possible):
                found.append(choice)
        return tuple(found)

    @property
    def empty_elections(self) -> tuple[WhatIf, ...]:
        """The brokers that hold none of it, can be elected all the same, and have others discard what they hold."""
        return tuple(one for one in self.what_if if one.is_emptied and one.truncations)

    def owner_of(self, view: LoadedLog) -> str:
        """Return the owner of a replica in words: members of the metadata quorum are controllers."""
        return view.replica.owner.replace("broker", "controller") if self.is_voter(view) else view.replica.owner

    def is_voter(self, view: LoadedLog) -> bool:
        """Whether a replica belongs to a member of the metadata quorum, or to one that may be."""
        return self.is_quorum and (isinstance(self.assigned, Absent) or view.replica.broker_id in self.assigned)

    def is_observer(self, view: LoadedLog) -> bool:
        """Whether a replica is a copy of the metadata log that has no part in what is committed."""
        return self.is_quorum and not self.is_voter(view)
