"""The incident of a partition, built from its directories, earlier copies, log lines and what else is known."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kforensics.damage import Absent
from kforensics.evidence.model import BatchReader, CheckpointValue, Replica
from kforensics.protocol.truncation import ProtocolName
from kforensics.reconcile.bugs.evidence import BugTrace, TraceEvidence
from kforensics.reconcile.bugs.log_signs import Sign
from kforensics.reconcile.bugs.traces import bug_traces, doubted_high_watermarks
from kforensics.reconcile.committed.judge import CommitJudge, CommittedCounts, CommittedRun, count_runs
from kforensics.reconcile.committed.proofs import FILE_TIME_SLACK_MS, Bound, LoggedHighWatermark, Moment
from kforensics.reconcile.history.causes import CauseEvidence, CauseName, cause_of, election_behind
from kforensics.reconcile.history.deleted_records import DeletedRecords, DeletionRequest
from kforensics.reconcile.history.log_copies import (
    Agreement,
    LogCopy,
    copies_of,
    final_leader,
    judge_times,
    of_one_incarnation,
    taken_before_their_lines,
)
from kforensics.reconcile.history.logged_losses import is_by_epoch, uncommitted_from, unrecorded_time
from kforensics.reconcile.history.losses import Loss, LostBatch, find_losses, is_in_use, lost_batches
from kforensics.reconcile.history.outline import outline_of
from kforensics.reconcile.history.past_end import Earlier, PastEnd, high_watermarks_past_end
from kforensics.reconcile.history.recomputation import recompute
from kforensics.reconcile.history.residual_divergence import Residual, residuals
from kforensics.reconcile.history.topic_incarnations import Incarnation
from kforensics.reconcile.history.torn_transactions import TornTransactions, find_torn_transactions
from kforensics.reconcile.history.truncations import ObservedTruncation, find_truncations, replacement_of
from kforensics.reconcile.incident.doubts import Doubt, DoubtKind, Doubts, Moments, WholeReturn, doubts_of
from kforensics.reconcile.incident.groups_at_risk import groups_at_risk
from kforensics.reconcile.incident.ledger import ledger_entry, logged_loss_entries
from kforensics.reconcile.incident.model import Candidate, ExplainedTruncation, Holder, LossEntry, PartitionIncident
from kforensics.reconcile.logs.agreement import common_range
from kforensics.reconcile.observed.broker_versions import BrokerVersions
from kforensics.reconcile.observed.facts import ClusterFacts, GroupCommit, Leadership
from kforensics.reconcile.observed.leadership import Election, Gap, GapKind, account_of
from kforensics.reconcile.observed.logged_truncations import LoggedTruncation
from kforensics.reconcile.replicas.leader import ProtocolChoice, choose_leader, choose_protocol
from kforensics.units import METADATA_TOPICS, EpochEntry, OffsetRange, TopicPartition

MOST_UNCLEAN_STARTS = 2
LINES_OF_A_START_MS = 10_000
"""The lines of one start are written within this time."""


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
    deletions: Sequence[DeletionRequest] = ()
    """Requests of clients to delete records of the partition, by log lines."""
    is_deletion_logged: bool = False
    """Whether a log line says that the topic was deleted."""
    wanted_leader: int | None = None
    """The broker that is taken as the final leader, where it holds the partition."""
    is_order_in_doubt: bool = False
    """The times of files say that an earlier snapshot is younger than the directories as they are now, and nothing proves either."""


def explain_partition(
    partition: TopicPartition,
    final: Sequence[Replica],
    before: Sequence[tuple[int, Replica]],
    *,
    final_rank: int,
    evidence: IncidentEvidence,
    reader: BatchReader,
) -> PartitionIncident:
    """Return everything that the directories and lines of one partition prove together.

    Args:
        partition: the topic and number.
        final: its replicas as they are now.
        before: its replicas in earlier snapshots, each with the rank of the snapshot.
        final_rank: the rank of now, above those of all snapshots.
        evidence: log lines, metadata and versions of the whole cluster.
        reader: reads batches of the replicas.
    """
    return _IncidentBuilder(partition, final, before, final_rank, evidence, reader).incident()


@dataclass(eq=False)
class _IncidentBuilder:
    partition: TopicPartition
    final: Sequence[Replica]
    before: Sequence[tuple[int, Replica]]
    final_rank: int
    evidence: IncidentEvidence
    reader: BatchReader

    def __post_init__(self) -> None:
        partition, evidence, reader = self.partition, self.evidence, self.reader
        topic_id = evidence.facts.topic_id(partition.topic)
        found = copies_of(self.final, self.before, topic_id=topic_id, final_rank=self.final_rank)
        timed = judge_times(found.copies, evidence.last_logged_ms)
        found = replace(found, copies=taken_before_their_lines(timed, evidence.logged))
        self.agreement = Agreement(reader, [copy.view for copy in found.copies])
        self.other_topics = found.other_topics
        self.leaderships = evidence.facts.leaderships(partition, found.topic_id)
        self.elected_before = self._elected_before(found.topic_id)
        self.leader = final_leader(found.live, self.leaderships, wanted=evidence.wanted_leader)
        self.copies: tuple[LogCopy, ...] = found.copies
        self.others: tuple[LogCopy, ...] = ()
        if self.leader is not None:
            self.copies = of_one_incarnation(
                found.copies, self.leader, self.agreement, created_ms=evidence.incarnation.created_ms
            )
            self.others = tuple(copy for copy in found.copies if copy not in self.copies)
        # The newest last: of a broker's logs the judge takes the last one for what it led with.
        logs = [copy.view for copy in sorted(self.copies, key=lambda copy: copy.rank) if not copy.is_remnant]
        self.observed = find_truncations(
            self.partition, evidence.logged, self.copies, self.agreement, others=self.others
        )
        self.deleted = DeletedRecords(evidence.deletions, self.leaderships, self.observed)
        self.ordinary = self._ordinary_truncations()
        self.doubted = doubted = doubted_high_watermarks(evidence.logged, evidence.versions, self.ordinary)
        self.observed = tuple(self._with_trusted_high_watermark(one, doubted) for one in self.observed)
        self.judge = (
            CommitJudge(
                logs,
                self.agreement.until,
                evidence.facts,
                reader,
                doubted=doubted,
                weakened=self._weakened(),
                logged=self._logged_high_watermarks(),
                moments=self._earlier_moments(),
                written_ms={id(copy.view): copy.taken_ms for copy in self.copies if isinstance(copy.taken_ms, int)},
            )
            if logs
            else None
        )
        self.account = account_of(
            partition,
            found.topic_id,
            evidence.facts,
            newest_epoch=max(
                (entries[-1].leader_epoch for copy in self.copies for entries in _epochs(copy) if entries),
                default=Absent.UNKNOWN,
            ),
            given=evidence.moments.brokers,
            by_high_watermark=any(self._truncates_to_high_watermark(copy) for copy in self.copies),
            keeps_epoch=evidence.versions.keeps_epoch_of_election,
        )
        gaps = (*self.account.gaps, *self._outside_metadata(), *self._before_its_term())
        self.account = replace(self.account, gaps=gaps)
        self.is_leader_known = (
            self.leader is not None
            and self.leader.broker_id == self.account.last_leader
            and self.account.reaches_now
            and not self._is_from_before(self.leader)
        )

        held = {copy.broker_id for copy in self.copies if copy.is_final and not copy.is_remnant}
        here = evidence.moments.brokers - evidence.moments.named_alone.get(partition, frozenset())
        self.missing_replicas = tuple(sorted(self.account.replicas - held - here))

    def _earlier_moments(self) -> list[Moment]:
        return [
            Moment(
                end,
                tuple(
                    copy.view
                    for copy in self.copies
                    if copy.rank == rank and not copy.is_remnant and copy.view.replica.state == "live"
                ),
            )
            for rank, end in self.evidence.moments.metadata_ends.items()
            if not self.evidence.is_order_in_doubt
        ]

    def _elected_before(self, topic_id: str | Absent) -> tuple[Leadership, ...]:
        """Return unclean elections from before the first state of a compacted metadata log, by lines of the controller: they explain what was truncated."""
        if not self.leaderships or not isinstance(self.leaderships[0].recorded_at, int):
            return ()
        return self.evidence.facts.unclean_elections_before(self.leaderships[0], self.partition, topic_id)

    def _outside_metadata(self) -> Iterator[Gap]:
        """Yield what the metadata log can't show: who led when a follower truncated its log, after its last record or, by a wrong clock, before an election on record."""
        states = self.account.states
        is_quorum = self.partition.topic in METADATA_TOPICS
        if is_quorum or self.account.source != "metadata-log" or not self.account.reaches_now:
            return
        elected = next((one.time_ms for one in states if one.leader_epoch > states[0].leader_epoch), None)
        for one in self.observed:
            time_ms = unrecorded_time(one, states)
            if one.rule == "recovery" or not isinstance(time_ms, int):
                continue
            is_before = elected is None or (isinstance(elected, int) and time_ms + FILE_TIME_SLACK_MS < elected)
            if is_before or self.evidence.facts.ends_before(time_ms):
                yield Gap(
                    GapKind.END,
                    f"who led when broker {one.broker_id} truncated its log, of which the metadata log shows no election before",
                    "a newer metadata log",
                )
                return

    def _is_from_before(self, leader: LogCopy) -> bool:
        """Whether the directories are older than the log lines, and the leader's log is not in the leader epoch that these name last."""
        newest = leader.view.last_epoch
        is_older = isinstance(newest, Absent) or newest < self.account.states[-1].leader_epoch
        return is_older and any(copy.is_outdated for copy in self.copies)

    def _before_its_term(self) -> Iterator[Gap]:
        """Yield a gap where the leader's directory was copied before it led: from its election on it would hold the epoch."""
        broker = self.account.last_leader
        if self.leader is None or not isinstance(broker, int) or self.leader.broker_id != broker:
            return
        if self.leader.view.replica.clean_shutdown:
            # A broker that is stopping can be elected and stop before it takes up its role.
            return
        if self.account.source != "metadata-log" and not self.evidence.versions.keeps_epoch_of_election(broker):
            return
        led = [state for state in self.account.states if isinstance(state.leader, int)]
        before = next((at for at in range(len(led), 0, -1) if led[at - 1].leader != broker), 0)
        known = [entries[-1].leader_epoch for entries in _epochs(self.leader) if entries]
        if known and max(known) < led[before].leader_epoch:
            yield Gap(
                GapKind.END,
                f"what broker {broker} wrote as the leader from leader epoch {led[before].leader_epoch} on, of which its directory holds nothing",
                f"the directory of broker {broker} as it is now",
            )

    def _truncates_to_high_watermark(self, copy: LogCopy) -> bool:
        magic = copy.view.oldest_magic
        return (isinstance(magic, int) and magic < 2) or self._protocol_of(copy).name is ProtocolName.HW

    def _weakened(self) -> frozenset[int]:
        """Brokers whose logs were shortened by recovery, to a high watermark, or in a way that no log line reports."""
        return frozenset(
            truncation.broker_id
            for truncation in self.observed
            if isinstance(truncation.broker_id, int)
            and (truncation.rule in {"recovery", "high-watermark"} or not truncation.is_logged)
        )

    def _with_trusted_high_watermark(
        self, truncation: ObservedTruncation, doubted: Mapping[int, int]
    ) -> ObservedTruncation:
        """Return the truncation without the high watermark of its line where that may speak of other records than those truncated.

        No log has a high watermark above its end: where the line's is, it is of another moment. A checkpoint that an unclean stop left is up to 5 s old. Where the log had been shortened or truncated, and written again, before that stop, it may be older than the records.
        """
        if isinstance(truncation.high_watermark, Absent):
            return truncation
        broker, time_ms = truncation.broker_id, truncation.time_ms
        is_trusted = isinstance(broker, int) and isinstance(time_ms, int) and broker not in doubted
        is_trusted &= truncation.high_watermark.value <= truncation.from_offset
        if isinstance(broker, int) and isinstance(time_ms, int):
            stops = [
                restart.time_ms
                for restart in self.evidence.facts.restarts(broker)
                if not restart.is_clean and isinstance(restart.time_ms, int) and restart.time_ms <= time_ms
            ]
            earlier = [
                other
                for other in self.observed
                if other.broker_id == broker
                and isinstance(other.time_ms, int)
                and other.time_ms < min(stops, default=0)
            ]
            is_trusted &= len(_apart(stops)) < MOST_UNCLEAN_STARTS and not earlier
        return truncation if is_trusted else replace(truncation, high_watermark=Absent.UNKNOWN)

    def _logged_high_watermarks(self) -> list[LoggedHighWatermark]:
        """High watermarks that lines state of logs before a truncation, where a copy shows that log."""
        found = []
        for one in self.observed:
            before, known = one.before, one.high_watermark
            if before is None or before not in self.copies or isinstance(known, Absent):
                continue
            # Without its time a copy may be of before an earlier truncation, and hold other records at these offsets.
            if before.view.log_end_offset == one.from_offset and isinstance(before.taken_ms, int):
                found.append(LoggedHighWatermark(before.view, known.value, known.citation))
        return found

    def _by_whole_account(self, loss: LossEntry) -> LossEntry:
        """Return a loss that only copies of followers' logs show, proven uncommitted where the account of leadership proves it."""
        whole = self._whole_account()
        if loss.was_committed != "possible" or whole is None:
            return loss
        led = self.account.last_leader
        is_of_leader = any(holder.broker_id in {led, Absent.UNKNOWN} for holder in loss.held_by)
        epoch, states = loss.leader_epoch, self.account.states
        if is_of_leader or not isinstance(epoch, int) or epoch >= states[-1].leader_epoch:
            return loss
        # A log that was shortened proves nothing of what was committed before, if its broker led since; else it took nothing with it.
        if self._weakened() & {state.leader for state in states if state.leader_epoch > epoch}:
            return loss
        return replace(
            loss,
            committed="no",
            was_committed="no",
            reason=whole.reason,
            citations=tuple(dict.fromkeys((*loss.citations, *whole.citations))),
        )

    def _whole_account(self) -> Bound | None:
        """Return the account of leadership as a proof that nothing that was committed was truncated by leader epoch since the partition was created."""
        states = self.account.states
        if not self.account.is_whole or not self.is_leader_known or states[0].leader_epoch:
            return None
        led = next((state for state in reversed(states) if isinstance(state.leader, int)), states[0])
        newest = self.leader.view.last_epoch if self.leader is not None else Absent.UNKNOWN
        if isinstance(newest, Absent) or newest < led.leader_epoch:
            # It is not the log with which the broker led: its disk was exchanged, or put back, since.
            return None
        return Bound(
            0,
            f"every leader up to leader epoch {states[-1].leader_epoch} was in sync when it was elected, and so held all that was committed",
            (states[-1].citation,),
        )

    def _ordinary_truncations(self) -> frozenset[int]:
        """Targets of truncations that an unclean election or a leader's own loss explains."""
        lost = {
            truncation.to_offset
            for truncation in self.observed
            if truncation.rule == "recovery" or not truncation.is_logged
        }
        for truncation in self.observed:
            election = election_behind(truncation, self.leaderships)
            if election is not None and election.unclean:
                lost.add(truncation.to_offset)
        return frozenset(lost)

    def incident(self) -> PartitionIncident:
        causes = CauseEvidence(
            leaderships=(*self.elected_before, *self.leaderships),
            truncations=self.observed,
            incarnation=self.evidence.incarnation,
            account=self.account,
            started_clean=self.evidence.facts.started_clean,
            recovered={(one.broker_id, one.to_offset) for one in self.evidence.logged if one.rule == "recovery"},
            is_of_topic=lambda copy: self.leader is not None and any(copy is one for one in self.copies),
        )
        differing = self._residuals()
        truncations = tuple(self._truncation(truncation, causes) for truncation in self.observed)
        lost = self._lost()
        found = self._found(lost)
        losses = self._losses(found, truncations, causes)
        bugs = self._bugs(differing, truncations, found)
        truncations = tuple(
            replace(
                one,
                bugs=tuple(bug for bug in bugs if (bug.broker_id, bug.truncated_to) == (one.broker_id, one.to_offset)),
            )
            for one in truncations
        )
        doubts = self._doubts(truncations, losses)
        view = self.leader.view if self.leader is not None else None
        at_risk = (
            groups_at_risk(
                self.evidence.commits,
                losses,
                log_end=view.log_end_offset,
                earlier=self.evidence.facts.commits(self.partition) if self._is_every_node_given() else (),
            )
            if view is not None
            else ()
        )
        return PartitionIncident(
            partition=self.partition,
            leader=self.leader.broker_id if self.leader is not None else Absent.UNKNOWN,
            log_start_offset=view.log_start_offset if view is not None else Absent.UNKNOWN,
            log_end_offset=view.log_end_offset if view is not None else Absent.UNKNOWN,
            leaderships=tuple(self.leaderships),
            truncations=truncations,
            losses=losses,
            groups=tuple(at_risk),
            torn_transactions=find_torn_transactions(self.leader, lost, self.reader)
            if self.leader is not None
            else TornTransactions(),
            other_topics=tuple(_directory(replica) for replica in self._of_other_topics()),
            copies=len(self.copies),
            logs=tuple(outline_of(copy) for copy in sorted(self.copies, key=_moment)),
            residuals=differing,
            past_end=self._past_end(losses),
            bugs=bugs,
            account=self.account,
            is_leader_known=self.is_leader_known,
            candidates=self._candidates(),
            missing_replicas=self.missing_replicas,
            doubts=doubts.open,
            dispelled=doubts.dispelled,
            shortened=doubts.shortened,
            tails_of_copies=self._tails_of_copies(losses),
            unread_below=max((copy.view.replica.unread_below for copy in self.copies), default=0),
            is_unclean_election_allowed=self._allowed(self._unclean()[-1:]),
            forced_elections=tuple(
                one.state
                for one in self._unclean()
                # A topic's own setting shows in the metadata log only.
                if isinstance(one.state.recorded_at, int)
                and self._allowed([one]) is False
                and one.previous != one.state.leader
            ),
        )

    def _doubts(self, truncations: Sequence[ExplainedTruncation], losses: Sequence[LossEntry]) -> Doubts:
        if self.partition.topic in METADATA_TOPICS or self._is_deleted():
            return Doubts()
        found = doubts_of(
            self.account,
            self.leader,
            self.copies,
            self.evidence.moments,
            is_leader_known=self.is_leader_known,
            needed_in_sync=self.evidence.facts.needed_in_sync(self.partition.topic),
            whole_returns=self.evidence.whole_returns,
            with_earlier_topic={copy.broker_id for copy in self.others if copy.is_final},
        )
        without_copy = [
            observed
            for observed, one in zip(self.observed, truncations, strict=True)
            if observed.before is None
            and one.cause.name is not CauseName.RECREATED_TOPIC
            # Where every record of it is proven not to have been committed, what they held does not matter.
            and not _covers(self._denied(observed, losses), OffsetRange(observed.to_offset, observed.from_offset - 1))
            and not self._is_uncommitted(observed)
        ]
        of_truncations = (
            Doubt(
                DoubtKind.TRUNCATION,
                f"what offsets {observed.to_offset} to {observed.from_offset - 1} held that broker {observed.broker_id} truncated",
                f"a copy of the disks of broker {observed.broker_id} from before",
                offsets=OffsetRange(observed.to_offset, observed.from_offset - 1),
            )
            for observed in without_copy
        )
        tails = (
            Doubt(
                DoubtKind.COPY,
                f"whether offsets {loss.offsets.first} to {loss.offsets.last} were lost, which the leader's copy lacks: it was made while the broker ran, or after a power loss",
                "a copy that was made while no broker ran (--stopped says so)",
            )
            for loss in self._tails_of_copies(losses)
        )
        order = Doubt(
            DoubtKind.ORDER,
            "which directories are the later ones: the times of files contradict the order of the snapshots",
            "the order in which the snapshots were taken",
        )
        in_order = (order,) if self.evidence.is_order_in_doubt else ()
        return replace(found, open=(*found.open, *in_order, *of_truncations, *tails, *self._of_compaction()))

    def _is_uncommitted(self, truncation: ObservedTruncation) -> bool:
        """Whether a clean election proves that nothing of what a line says was truncated had been committed."""
        if self.leader is None or self.judge is None or not is_by_epoch(truncation, self._protocol(truncation)):
            return False
        epochs = self.leader.view.epochs or self.leader.view.batch_epochs
        bound = uncommitted_from(truncation, self.leaderships, epochs, self.judge, by_epoch=True)
        return bound is not None and bound.offset <= truncation.to_offset

    def _denied(self, truncation: ObservedTruncation, losses: Sequence[LossEntry]) -> list[OffsetRange]:
        """Return the offsets of a truncation whose records are proven not to have been committed.

        What renamed segments of the broker still hold counts where they end where its log did, and it truncated these offsets only once.
        """
        broker, end = truncation.broker_id, truncation.from_offset
        over = [one for one in self.observed if one.broker_id == broker and one.from_offset > truncation.to_offset]
        is_kept = len(over) == 1 and any(
            copy.is_remnant and copy.broker_id == broker and copy.view.log_end_offset == end for copy in self.copies
        )
        return [
            loss.offsets
            for loss in losses
            if loss.was_committed == "no"
            and (not loss.held_by or (is_kept and broker in {holder.broker_id for holder in loss.held_by}))
        ]

    def _of_compaction(self) -> Iterator[Doubt]:
        """Replicas in use that differ from the leader by what compaction may have removed, though no input shows it."""
        for copy in self.copies:
            if self.leader is None or copy is self.leader or not is_in_use(copy):
                continue
            asked = self.agreement.divergence(copy.view, self.leader.view)
            if asked is not None and asked.is_open:
                yield Doubt(
                    DoubtKind.COMPACTION,
                    f"whether compaction removed the record of offset {asked.offset}, which broker {copy.broker_id} and the leader, broker {self.leader.broker_id}, do not both hold",
                    "the log of another replica, or an earlier copy, with a later record of its key",
                )

    def _is_deleted(self) -> bool:
        """Return whether the topic was deleted: only directories that wait for their removal are left, and the metadata does not know it any more."""
        now = [copy for copy in self.copies if copy.is_final and not copy.is_remnant]
        facts = self.evidence.facts
        if any(copy.view.replica.state in {"live", "future"} for copy in now) or not (now or self.account.states):
            return False
        if facts.has_metadata_log():
            return facts.is_newest_metadata() and isinstance(facts.topic_id(self.partition.topic), Absent)
        # A directory waits for its removal where its replica was moved to another broker, too.
        return self.evidence.is_deletion_logged

    def _past_end(self, losses: Sequence[LossEntry]) -> tuple[PastEnd, ...]:
        # A checkpoint keeps the line of a deleted topic until it is written again.
        if self.partition.topic in METADATA_TOPICS or self._of_other_topics():
            return ()
        return high_watermarks_past_end(
            self.copies,
            (loss.offsets for loss in losses),
            is_stopped=self.evidence.moments.is_stopped,
            earlier=Earlier(
                is_same_log=self._is_same_log,
                doubted=self.doubted,
                is_order_sure=not self.evidence.is_order_in_doubt,
            ),
        )

    def _is_same_log(self, copy: LogCopy) -> bool:
        """Whether the copy is shown to be of the log that the leader holds now: it begins with the same records, or its topic has the same id."""
        if self.leader is None:
            return False
        its, own = copy.view.replica.topic_id, self.leader.view.replica.topic_id
        is_same_topic = not isinstance(its, Absent) and its == own
        common = common_range(copy.view, self.leader.view)
        return is_same_topic or (
            common is not None and self.agreement.until(copy.view, self.leader.view) > common.first
        )

    def _is_every_node_given(self) -> bool:
        """Whether every node of the earlier snapshots, and every replica, is among the inputs as it is now: else the newest commit may be on one that is not."""
        moments = self.evidence.moments
        return (
            bool(moments.brokers) and self.account.replicas | {node for _, node in moments.logs_held} <= moments.brokers
        )

    def _unclean(self) -> list[Election]:
        return [one for one in self.account.elections if one.state.unclean]

    def _allowed(self, elections: Sequence[Election]) -> bool | Absent:
        """Whether the setting allowed the last of some unclean elections."""
        if not elections:
            return Absent.NOT_APPLICABLE
        return self.evidence.facts.allows_unclean_election(self.partition.topic, elections[-1].state.recorded_at)

    def _tails_of_copies(self, losses: Sequence[LossEntry]) -> tuple[LossEntry, ...]:
        """Losses that copying at different moments explains: a replica in use continues where the leader's log ends, in the same leader epoch."""
        if self.leader is None or self.evidence.moments.is_stopped or not self.is_leader_known:
            return ()
        view = self.leader.view
        newest = view.batch_epochs[-1].leader_epoch if view.batch_epochs else Absent.UNKNOWN
        if view.replica.clean_shutdown or not isinstance(newest, int):
            return ()
        return tuple(
            loss
            for loss in losses
            if loss.in_use and loss.offsets.first >= view.log_end_offset and loss.leader_epoch == newest
        )

    def _of_other_topics(self) -> list[Replica]:
        """Directories that ids, lines or their content show to be of an earlier topic of the name."""
        return [*self.other_topics, *(copy.view.replica for copy in self.others if not copy.is_remnant)]

    def _candidates(self) -> tuple[Candidate, ...]:
        """Return the replicas that the guess does not decide between, and what each of them lacks."""
        leader, judge = self.leader, self.judge
        if leader is None or judge is None or self.is_leader_known or self.evidence.wanted_leader is not None:
            return ()
        now = [copy for copy in self.copies if is_in_use(copy)]
        guess = choose_leader([copy.view for copy in now], wanted=None, leaderships=())
        if guess is None or guess.view is not leader.view or not guess.tied_with:
            return ()
        found = []
        for candidate in (leader, *(copy for copy in now if copy.broker_id in guess.tied_with)):
            others = [copy for copy in self.copies if copy is not candidate]
            lost = lost_batches(candidate, others, self.agreement, self.reader)
            losses = find_losses(candidate, lost, judge, self.reader, deleted_below=self.deleted.below)
            records = sum(loss.records for loss in losses if loss.was_committed != "no")
            found.append(Candidate(broker_id=candidate.broker_id, records=records))
        return tuple(found)

    def _found(self, lost: Sequence[LostBatch]) -> tuple[Loss, ...]:
        if self.leader is None or self.judge is None:
            return ()
        return find_losses(self.leader, lost, self.judge, self.reader, deleted_below=self.deleted.below)

    def _bugs(
        self, differing: tuple[Residual, ...], truncations: Sequence[ExplainedTruncation], losses: Sequence[Loss]
    ) -> tuple[BugTrace, ...]:
        stale = {
            replica.broker_id: replica.cite("partition.metadata")
            for replica in self.other_topics
            if replica.state == "live" and isinstance(replica.broker_id, int)
        }
        evidence = TraceEvidence(
            versions=self.evidence.versions,
            copies=self.copies,
            leader=self.leader,
            leaderships=self.leaderships,
            truncations=self.observed,
            logged=self.evidence.logged,
            residuals=differing,
            ordinary_truncations=self.ordinary,
            agree_until=self.agreement.until,
            reader=self.reader,
            losses=losses,
            disagreeing=frozenset(
                (truncation.broker_id, truncation.to_offset) for truncation in truncations if truncation.agrees is False
            ),
            stale_directories=stale,
            signs=self.evidence.signs,
        )
        return bug_traces(evidence)

    def _residuals(self) -> tuple[Residual, ...]:
        if self.leader is None or self.partition.topic in METADATA_TOPICS:
            return ()
        return residuals(self.leader, self.copies, self.agreement, self._protocol_of)

    def _protocol(self, truncation: ObservedTruncation) -> ProtocolName:
        own = next(
            (c for c in self.copies if c.broker_id == truncation.broker_id and not c.is_remnant), truncation.before
        )
        if own is None:
            broker = truncation.broker_id if isinstance(truncation.broker_id, int) else -1
            return self.evidence.protocol_hints.get(broker) or ProtocolName.KIP_595
        return self._protocol_of(own).name

    def _protocol_of(self, copy: LogCopy) -> ProtocolChoice:
        broker = copy.broker_id if isinstance(copy.broker_id, int) else -1
        return choose_protocol(
            copy.view,
            wanted=None,
            is_kraft=self.evidence.facts.has_metadata_log(),
            hint=self.evidence.protocol_hints.get(broker),
        )

    def _truncation(self, observed: ObservedTruncation, causes: CauseEvidence) -> ExplainedTruncation:
        truncation = _with_leader(observed, causes, self.copies)
        protocol = self._protocol(truncation)
        runs = self._runs_of(truncation)
        counts = CommittedCounts.of(runs)
        versions = self.evidence.versions
        again = recompute(
            truncation,
            self.copies,
            protocol,
            rules=versions.epoch_rules(truncation.broker_id, protocol),
            leader_rules=versions.epoch_rules(truncation.leader, protocol),
        )
        none_committed = all(run.certainty == "no" for run in runs) if runs else self._is_uncommitted(truncation)
        cause = cause_of(
            truncation,
            causes,
            protocol=protocol,
            none_committed=none_committed,
            some_committed=counts.certain > 0,
            is_by_protocol=again is not None and again.agrees(truncation),
        )
        is_by_recovery = truncation.is_inside or (
            cause.name in {CauseName.POWER_LOSS, CauseName.RECOVERY} and truncation.rule != "epoch"
        )
        if cause.name in {CauseName.POWER_LOSS, CauseName.RECREATED_TOPIC} or truncation.is_inside:
            again = None  # no protocol took these records
        return ExplainedTruncation(
            broker_id=truncation.broker_id,
            topic_partition=self.partition,
            time_ms=truncation.time_ms,
            from_offset=truncation.from_offset,
            to_offset=truncation.to_offset,
            protocol="recovery" if is_by_recovery else protocol.value,
            decided_by=truncation.rule,
            leader=truncation.leader,
            leader_epoch=truncation.leader_epoch,
            expected_offset=again.expected_offset if again is not None else Absent.UNKNOWN,
            agrees=again.agrees(truncation) if again is not None else Absent.UNKNOWN,
            steps=tuple(step.sentence() for step in again.outcome.steps) if again is not None else (),
            is_logged=truncation.is_logged,
            cause=cause,
            committed=counts if self.is_leader_known and not self.evidence.is_order_in_doubt else counts.on_a_guess,
            citations=tuple(dict.fromkeys((*truncation.citations, *cause.citations))),
        )

    def _runs_of(self, truncation: ObservedTruncation) -> tuple[CommittedRun, ...]:
        if truncation.before is None or self.judge is None or truncation.before not in self.copies:
            return ()
        view = truncation.before.view
        last = min(truncation.from_offset, view.log_end_offset) - 1
        if last < truncation.to_offset:
            return ()
        return count_runs(self.judge.runs(view, OffsetRange(truncation.to_offset, last)), view, self.reader)

    def _lost(self) -> tuple[LostBatch, ...]:
        if self.leader is None:
            return ()
        others = [copy for copy in self.copies if copy is not self.leader]
        return lost_batches(self.leader, others, self.agreement, self.reader)

    def _losses(
        self, found: Sequence[Loss], truncations: Sequence[ExplainedTruncation], causes: CauseEvidence
    ) -> tuple[LossEntry, ...]:
        if self.leader is None:
            return ()
        losses = [
            self._by_whole_account(ledger_entry(self.partition, loss, truncations, causes, self.leader))
            for loss in found
        ]
        causes_found = [
            (truncation, one.cause, self._protocol(truncation))
            for truncation, one in zip(self.observed, truncations, strict=True)
        ]
        needed = self.evidence.facts.needed_in_sync(self.partition.topic)
        logged = logged_loss_entries(
            self.partition,
            causes_found,
            losses,
            causes,
            self.leader,
            needed_in_sync=needed,
            judge=self.judge,
            whole=self._whole_account(),
            deleted=self.deleted.truncated(),
            is_cleaned=any(
                copy.view.cleaned_below > 0 or isinstance(copy.view.replica.cleaner_point, CheckpointValue)
                for copy in self.copies
            ),
        )
        sure = {one.cause.name: one.cause.confidence for one in truncations if one.cause.confidence == "likely"}
        sure |= {one.cause.name: one.cause.confidence for one in truncations if one.cause.confidence == "proven"}
        every = (*losses, *(replace(one, confidence=sure.get(one.cause, one.confidence)) for one in logged))
        if not self.is_leader_known:
            return tuple(_uncertain(one, "no input shows who leads") for one in every)
        if self.evidence.is_order_in_doubt:
            return tuple(_uncertain(one, "the times of files contradict the order of the snapshots") for one in every)
        if not self.missing_replicas and not any(copy.is_outdated for copy in self.copies):
            return every
        # Nothing is certainly lost while a replica that may hold it is not among the inputs, or while the logs as they are now, which may have been given other
        # records since, are not.
        return tuple(replace(one, committed="possible") if one.committed == "certain" else one for one in every)


def _epochs(copy: LogCopy) -> Iterator[Sequence[EpochEntry]]:
    """Yield the leader epochs of a log by its batches, and by leader-epoch-checkpoint, which names a leader that has written nothing too."""
    yield copy.view.batch_epochs
    if not isinstance(copy.view.replica.checkpoint_epochs, Absent):
        yield copy.view.replica.checkpoint_epochs


def _uncertain(loss: LossEntry, why: str) -> LossEntry:
    """Return the loss where nothing about it is certain: by a leader that no input shows, or in an order of snapshots that is in doubt."""
    if loss.was_committed != "certain":
        return loss
    return replace(loss, committed="possible", was_committed="possible", reason=f"{loss.reason}; {why}")


def _apart(times_ms: Iterable[int]) -> list[int]:
    """Return the starts, of whose several lines only the first counts."""
    found: list[int] = []
    for time_ms in sorted(times_ms):
        if not found or time_ms - found[-1] > LINES_OF_A_START_MS:
            found.append(time_ms)
    return found


def _covers(runs: Sequence[OffsetRange], offsets: OffsetRange) -> bool:
    """Whether the runs, of which no two overlap, hold every one of the offsets."""
    inside = (min(run.last, offsets.last) - max(run.first, offsets.first) + 1 for run in runs)
    return sum(count for count in inside if count > 0) == offsets.count


def _moment(copy: LogCopy) -> tuple[int, int, int, str, bool]:
    broker = copy.broker_id if isinstance(copy.broker_id, int) else -1
    return (copy.rank, broker, copy.view.replica.input, copy.view.replica.path, copy.is_remnant)


def _with_leader(
    truncation: ObservedTruncation, causes: CauseEvidence, copies: Sequence[LogCopy]
) -> ObservedTruncation:
    """Return the truncation with its leader, where no log line names one: who led in the epoch that a line names, else the one of the election behind it."""
    if isinstance(truncation.leader, int):
        return truncation
    named = truncation.leader_epoch
    led = {
        state.leader for state in causes.leaderships if state.leader_epoch == named and isinstance(state.leader, int)
    }
    if isinstance(named, int) and len(led) == 1:
        truncation = replace(truncation, leader=led.pop())
        return replace(truncation, replacement=truncation.replacement or replacement_of(truncation, copies))
    election = election_behind(truncation, causes.leaderships)
    if election is None or (isinstance(named, int) and election.leader_epoch != named):
        return truncation
    return replace(truncation, leader=election.leader, leader_epoch=election.leader_epoch)


def _directory(replica: Replica) -> Holder:
    return Holder(input=replica.input, path=replica.path, broker_id=replica.broker_id, is_final=True, in_use=False)
