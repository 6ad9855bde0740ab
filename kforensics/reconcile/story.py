"""One partition's incident put together: its cuts with cause and recomputation, its losses, and who else is touched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kforensics.damage import Absent
from kforensics.evidence.model import BatchReader, Citation, Replica
from kforensics.protocol.truncation import ProtocolName
from kforensics.reconcile.bug_traces import BrokerVersions, BugTrace, TraceEvidence, bug_traces, doubted_marks
from kforensics.reconcile.causes import Cause, CauseEvidence, CauseName, cause_of, election_behind
from kforensics.reconcile.committed import Certainty, CommitJudge, CommittedCounts, CommittedRun, count_runs
from kforensics.reconcile.copies import Agreement, Copy, copies_of, final_leader, judge_times, of_one_incarnation
from kforensics.reconcile.facts import ClusterFacts, GroupCommit, Leadership
from kforensics.reconcile.incidents import Cut, cuts_of
from kforensics.reconcile.leader import ProtocolChoice, choose_protocol
from kforensics.reconcile.logged_truncations import METADATA_TOPICS, LoggedTruncation
from kforensics.reconcile.losses import Loss, LostBatch, find_losses, lost_batches
from kforensics.reconcile.outline import LogOutline, outline_of
from kforensics.reconcile.recompute import recompute
from kforensics.reconcile.residual import Residual, residuals
from kforensics.reconcile.torn import Tears, find_tears
from kforensics.reconcile.unseen import unseen_runs
from kforensics.units import OffsetRange, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A place that still holds records."""

    input: int
    path: str
    broker_id: int | Absent
    is_final: bool
    """As it is now, not in an earlier snapshot."""
    in_use: bool
    """A replica that its broker serves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncation:
    """A cut that happened, explained."""

    broker_id: int | Absent
    topic_partition: TopicPartition
    time_ms: int | Absent
    from_offset: int
    to_offset: int
    protocol: str
    """The protocol in force, or `recovery`."""
    decided_by: str
    """What the lines say decided: `epoch`, `high-watermark`, `leader-end` …"""
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
    """Known bugs of Kafka that leave such a cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossEntry:
    """A run of records that the final leader does not hold, explained."""

    topic_partition: TopicPartition
    offsets: OffsetRange
    records: int
    markers: int
    committed: Certainty
    was_committed: Certainty
    is_replaced: bool
    leader_epoch: int | Absent
    reason: str
    cause: CauseName
    held_by: tuple[Holder, ...]
    citations: tuple[Citation, ...]

    @property
    def in_use(self) -> tuple[Holder, ...]:
        """Replicas that still hold the run and may yet lead."""
        return tuple(holder for holder in self.held_by if holder.in_use)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAtRisk:
    """A consumer group whose committed offset speaks of records that are gone."""

    group: str
    offset: int
    kind: str
    """`ahead`: past the leader's end; `replaced`: inside offsets that hold other records now."""
    citation: Citation


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStory:
    """All that happened to one partition."""

    partition: TopicPartition
    leader: int | Absent
    log_start_offset: int | Absent
    log_end_offset: int | Absent
    leaderships: tuple[Leadership, ...]
    truncations: tuple[Truncation, ...]
    losses: tuple[LossEntry, ...]
    groups: tuple[GroupAtRisk, ...]
    tears: Tears
    other_topics: tuple[Holder, ...]
    """Directories of other topics that had the name."""
    copies: int
    logs: tuple[LogOutline, ...] = ()
    """Every copy of the log, the oldest first."""
    residuals: tuple[Residual, ...] = ()
    """Replicas that hold other content than the leader and keep it."""
    bugs: tuple[BugTrace, ...] = ()
    """Known bugs of Kafka whose traces are there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryEvidence:
    """What is known beyond the directories of the partition."""

    facts: ClusterFacts
    logged: Sequence[LoggedTruncation]
    """Of this partition."""
    created_ms: int | Absent
    last_logged_ms: int | Absent
    """Time of the last line of all logs."""
    protocol_hints: Mapping[int, ProtocolName]
    commits: Sequence[GroupCommit]
    """Out of the consumer offsets as they are now."""
    versions: BrokerVersions = field(default_factory=BrokerVersions)


def tell_story(
    partition: TopicPartition,
    final: Sequence[Replica],
    before: Sequence[tuple[int, Replica]],
    *,
    final_rank: int,
    evidence: StoryEvidence,
    reader: BatchReader,
) -> PartitionStory:
    """Everything that the directories and lines of one partition prove together."""
    return _Teller(partition, final, before, final_rank, evidence, reader).story()


class _Teller:
    def __init__(
        self,
        partition: TopicPartition,
        final: Sequence[Replica],
        before: Sequence[tuple[int, Replica]],
        final_rank: int,
        evidence: StoryEvidence,
        reader: BatchReader,
    ) -> None:
        self.partition = partition
        self.evidence = evidence
        self.reader = reader
        self.agreement = Agreement(reader)
        topic_id = evidence.facts.topic_id(partition.topic)
        found = copies_of(final, before, topic_id=topic_id, final_rank=final_rank)
        found = replace(found, copies=judge_times(found.copies, evidence.last_logged_ms))
        self.other_topics = found.other_topics
        self.leaderships = evidence.facts.leaderships(partition, found.topic_id)
        self.leader = final_leader(found.live, self.leaderships)
        self.copies: tuple[Copy, ...] = found.copies
        self.others: tuple[Copy, ...] = ()
        if self.leader is not None:
            self.copies = of_one_incarnation(found.copies, self.leader, self.agreement, created_ms=evidence.created_ms)
            self.others = tuple(copy for copy in found.copies if copy not in self.copies)
        # The newest last: of a broker's logs the judge takes the last one for what it led with.
        logs = [copy.view for copy in sorted(self.copies, key=lambda copy: copy.rank) if not copy.is_remnant]
        self.cuts = cuts_of(self.partition, evidence.logged, self.copies, self.agreement, others=self.others)
        self.ordinary = self._ordinary_cuts()
        doubted = doubted_marks(evidence.logged, evidence.versions, self.ordinary)
        self.judge = CommitJudge(logs, self.agreement.until, evidence.facts, reader, doubted=doubted) if logs else None

    def _ordinary_cuts(self) -> frozenset[int]:
        """Targets of cuts that an unclean election or a leader's own loss explains."""
        lost = {cut.to_offset for cut in self.cuts if cut.rule == "recovery" or not cut.is_logged}
        for cut in self.cuts:
            election = election_behind(cut, self.leaderships)
            if election is not None and election.unclean:
                lost.add(cut.to_offset)
        return frozenset(lost)

    def story(self) -> PartitionStory:
        cuts = self.cuts
        causes = CauseEvidence(leaderships=self.leaderships, cuts=cuts, created_ms=self.evidence.created_ms)
        differing = self._residuals()
        bugs = self._bugs(differing)
        truncations = tuple(self._truncation(cut, causes) for cut in cuts)
        truncations = tuple(replace(cut, bugs=tuple(bug for bug in bugs if _explains(bug, cut))) for cut in truncations)
        lost = self._lost()
        losses = self._losses(lost, truncations, causes)
        losses = (*losses, *self._unseen(cuts, truncations, losses))
        view = self.leader.view if self.leader is not None else None
        return PartitionStory(
            partition=self.partition,
            leader=self.leader.broker_id if self.leader is not None else Absent.UNKNOWN,
            log_start_offset=view.log_start_offset if view is not None else Absent.UNKNOWN,
            log_end_offset=view.log_end_offset if view is not None else Absent.UNKNOWN,
            leaderships=tuple(self.leaderships),
            truncations=truncations,
            losses=losses,
            groups=tuple(self._groups(losses)),
            tears=find_tears(self.leader, lost, self.reader) if self.leader is not None else Tears(),
            other_topics=tuple(_directory(replica) for replica in self.other_topics),
            copies=len(self.copies),
            logs=tuple(outline_of(copy) for copy in sorted(self.copies, key=_moment)),
            residuals=differing,
            bugs=bugs,
        )

    def _bugs(self, differing: tuple[Residual, ...]) -> tuple[BugTrace, ...]:
        evidence = TraceEvidence(
            versions=self.evidence.versions,
            copies=self.copies,
            leader=self.leader,
            leaderships=self.leaderships,
            cuts=self.cuts,
            logged=self.evidence.logged,
            residuals=differing,
            ordinary_cuts=self.ordinary,
        )
        return bug_traces(evidence)

    def _residuals(self) -> tuple[Residual, ...]:
        if self.leader is None or self.partition.topic in METADATA_TOPICS:
            return ()
        return residuals(self.leader, self.copies, self.agreement, self._protocol_of)

    def _protocol(self, cut: Cut) -> ProtocolName:
        own = next((c for c in self.copies if c.broker_id == cut.broker_id and not c.is_remnant), cut.before)
        if own is None:
            broker = cut.broker_id if isinstance(cut.broker_id, int) else -1
            return self.evidence.protocol_hints.get(broker) or ProtocolName.KIP_595
        return self._protocol_of(own).name

    def _protocol_of(self, copy: Copy) -> ProtocolChoice:
        broker = copy.broker_id if isinstance(copy.broker_id, int) else -1
        return choose_protocol(
            copy.view,
            wanted=None,
            is_kraft=self.evidence.facts.has_metadata_log(),
            hint=self.evidence.protocol_hints.get(broker),
        )

    def _truncation(self, told: Cut, causes: CauseEvidence) -> Truncation:
        cut = _with_leader(told, causes)
        protocol = self._protocol(cut)
        runs = self._runs_of(cut)
        counts = CommittedCounts.of(runs)
        again = recompute(cut, self.copies, protocol)
        none_committed = bool(runs) and all(run.certainty == "no" for run in runs)
        cause = cause_of(
            cut,
            causes,
            protocol=protocol,
            none_committed=none_committed,
            is_by_protocol=again is not None and again.agrees(cut),
        )
        if cause.name in {CauseName.POWER_LOSS, CauseName.RECREATED_TOPIC}:
            again = None  # no protocol took these records
        return Truncation(
            broker_id=cut.broker_id,
            topic_partition=self.partition,
            time_ms=cut.time_ms,
            from_offset=cut.from_offset,
            to_offset=cut.to_offset,
            protocol="recovery" if cause.name is CauseName.POWER_LOSS and cut.rule != "epoch" else protocol.value,
            decided_by=cut.rule,
            leader=cut.leader,
            leader_epoch=cut.leader_epoch,
            expected_offset=again.expected_offset if again is not None else Absent.UNKNOWN,
            agrees=again.agrees(cut) if again is not None else Absent.UNKNOWN,
            steps=tuple(step.sentence() for step in again.outcome.steps) if again is not None else (),
            is_logged=cut.is_logged,
            cause=cause,
            committed=counts,
            citations=tuple(dict.fromkeys((*cut.citations, *cause.citations))),
        )

    def _runs_of(self, cut: Cut) -> tuple[CommittedRun, ...]:
        if cut.before is None or self.judge is None or cut.before not in self.copies:
            return ()
        view = cut.before.view
        last = min(cut.from_offset, view.log_end_offset) - 1
        if last < cut.to_offset:
            return ()
        return count_runs(self.judge.runs(view, OffsetRange(cut.to_offset, last)), view, self.reader)

    def _lost(self) -> tuple[LostBatch, ...]:
        if self.leader is None:
            return ()
        others = [copy for copy in self.copies if copy is not self.leader]
        return lost_batches(self.leader, others, self.agreement, self.reader)

    def _losses(
        self, lost: Sequence[LostBatch], truncations: Sequence[Truncation], causes: CauseEvidence
    ) -> tuple[LossEntry, ...]:
        if self.leader is None or self.judge is None:
            return ()
        found = find_losses(self.leader, lost, self.judge, self.reader)
        return tuple(self._entry(loss, truncations, causes) for loss in found)

    def _unseen(
        self, cuts: Sequence[Cut], truncations: Sequence[Truncation], losses: Sequence[LossEntry]
    ) -> list[LossEntry]:
        """What log lines say was cut and no copy shows; the metadata quorum cuts only what it has not committed."""
        if self.leader is None or self.partition.topic in METADATA_TOPICS:
            return []
        found = unseen_runs(
            [(cut, told.cause.name, self._protocol(cut)) for cut, told in zip(cuts, truncations, strict=True)],
            shown=[loss.offsets for loss in losses],
            leader_end=self.leader.view.log_end_offset,
            leaderships=self.leaderships,
            needed_in_sync=self.evidence.facts.needed_in_sync(self.partition.topic),
        )
        return [
            LossEntry(
                topic_partition=self.partition,
                offsets=run.offsets,
                records=run.offsets.count,
                markers=0,
                committed=run.committed,
                was_committed=run.committed,
                is_replaced=run.is_replaced,
                leader_epoch=run.leader_epoch,
                reason=run.reason,
                cause=run.cause,
                held_by=(),
                citations=run.citations,
            )
            for run in found
        ]

    def _entry(self, loss: Loss, truncations: Sequence[Truncation], causes: CauseEvidence) -> LossEntry:
        cause, citations = _cause_of_loss(loss, truncations, causes)
        if self.partition.topic in METADATA_TOPICS and loss.was_committed == "possible":
            # Members of the quorum refuse to cut below their high watermark (KAFKA-12460).
            loss = replace(
                loss, committed="no", was_committed="no", reason="the quorum cuts only what it has not committed"
            )
        return LossEntry(
            topic_partition=self.partition,
            offsets=loss.offsets,
            records=loss.records,
            markers=loss.markers,
            committed=loss.committed,
            was_committed=loss.was_committed,
            is_replaced=loss.is_replaced,
            leader_epoch=loss.leader_epoch,
            reason=loss.reason,
            cause=cause,
            held_by=tuple(_holder(copy, loss) for copy in loss.held_by),
            citations=tuple(dict.fromkeys((*loss.citations, *citations))),
        )

    def _groups(self, losses: Sequence[LossEntry]) -> list[GroupAtRisk]:
        if self.leader is None:
            return []
        end = self.leader.view.log_end_offset
        newest: dict[str, GroupCommit] = {}
        for commit in self.evidence.commits:
            known = newest.get(commit.group)
            if known is None or _time(commit) >= _time(known):
                newest[commit.group] = commit
        out = []
        for commit in newest.values():
            inside = any(
                loss.is_replaced
                and loss.offsets.first < commit.offset <= loss.offsets.last + 1
                and commit.leader_epoch == loss.leader_epoch
                for loss in losses
            )
            if commit.offset > end or inside:
                kind = "ahead" if commit.offset > end else "replaced"
                out.append(GroupAtRisk(group=commit.group, offset=commit.offset, kind=kind, citation=commit.citation))
        return sorted(out, key=lambda one: one.group)


def _explains(bug: BugTrace, cut: Truncation) -> bool:
    return bug.broker_id == cut.broker_id and bug.cut_to == cut.to_offset


def _moment(copy: Copy) -> tuple[int, int, int, str, bool]:
    broker = copy.broker_id if isinstance(copy.broker_id, int) else -1
    return (copy.rank, broker, copy.view.replica.input, copy.view.replica.path, copy.is_remnant)


def _with_leader(cut: Cut, causes: CauseEvidence) -> Cut:
    """The cut with the leader of the election behind it, where no line names one."""
    election = election_behind(cut, causes.leaderships)
    if isinstance(cut.leader, int) or election is None:
        return cut
    epoch = cut.leader_epoch if isinstance(cut.leader_epoch, int) else election.leader_epoch
    return replace(cut, leader=election.leader, leader_epoch=epoch)


def _time(commit: GroupCommit) -> int:
    return commit.time_ms if isinstance(commit.time_ms, int) else 0


def _cause_of_loss(
    loss: Loss, truncations: Sequence[Truncation], causes: CauseEvidence
) -> tuple[CauseName, tuple[Citation, ...]]:
    """Of the cut that took the run, the first in time; where nothing was cut yet, the election that left it behind."""
    brokers = {copy.broker_id for copy in loss.held_by}
    over = [
        cut for cut in truncations if cut.to_offset <= loss.offsets.first < cut.from_offset and cut.broker_id in brokers
    ]
    if over:
        known = [cut for cut in over if cut.cause.name is not CauseName.UNKNOWN]
        chosen = (known or over)[0]
        return chosen.cause.name, chosen.citations
    if isinstance(loss.leader_epoch, int):
        after = [state for state in causes.leaderships if state.leader_epoch > loss.leader_epoch]
        if after and after[0].unclean:
            return CauseName.UNCLEAN_ELECTION, (after[0].citation,)
        if after and loss.was_committed == "no":
            return CauseName.UNCOMMITTED_TAIL, (after[0].citation,)
    return CauseName.UNKNOWN, ()


def _holder(copy: Copy, loss: Loss) -> Holder:
    replica = copy.view.replica
    return Holder(
        input=replica.input,
        path=replica.path,
        broker_id=replica.broker_id,
        is_final=copy.is_final,
        in_use=copy in loss.in_use,
    )


def _directory(replica: Replica) -> Holder:
    return Holder(input=replica.input, path=replica.path, broker_id=replica.broker_id, is_final=True, in_use=False)
